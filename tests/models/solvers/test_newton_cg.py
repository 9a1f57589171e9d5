"""Products with a Hessian are those of the matrix, and steps by them those of Newton."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.models.rows.band_rows import BandRows
from kernelmaps.models.rows.map_tables import basis_tables, lanes_for
from kernelmaps.models.solvers import newton_cg
from kernelmaps.models.solvers.newton_cg import (
    CentredHessian,
    Preconditioner,
    RowSums,
    conjugate_gradients,
)


def problem(seed, n=200):
    """Rows, columns ψ(X), working weights of half of the rows, and the whole Hessian."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    feature_map = km.SplineMap(6).fit(X)
    rows = BandRows(basis_tables(feature_map.spec_, X, np.float64, lanes_for(1)), X)
    weight = 100 * rng.random(n) * (rng.random(n) < 0.5)
    Z1 = np.hstack([feature_map.transform(X), np.ones((n, 1))])
    full = Z1.T @ (weight[:, None] * Z1) + np.diag([1.0] * rows.n_weights + [0.0])
    return rng, rows, weight, full


def test_the_product_is_that_of_the_schur_complement(seed):
    """Eliminating the intercept from the Hessian of weights and intercept."""
    rng, rows, weight, full = problem(seed)
    p = rng.normal(size=rows.n_weights)
    schur = full[:-1, :-1] - np.outer(full[:-1, -1], full[-1, :-1]) / full[-1, -1]
    hessian = CentredHessian.of(rows, weight, fit_intercept=True)
    atol = 1e-12 * np.abs(full).max() * np.abs(p).sum()
    np.testing.assert_allclose(hessian.product(p), schur @ p, atol=atol)
    solve = Preconditioner(rows).factor_solver(hessian)
    np.testing.assert_allclose(solve(schur @ p), p, atol=1e-6)
    without = CentredHessian.of(rows, weight, fit_intercept=False)
    np.testing.assert_allclose(without.product(p), full[:-1, :-1] @ p, atol=atol)


def test_blocks_solve_what_has_no_other_entries(seed):
    rng, rows, weight, full = problem(seed)
    hessian, width = CentredHessian.of(rows, weight, fit_intercept=True), rows.width
    schur = full[:-1, :-1] - np.outer(full[:-1, -1], full[-1, :-1]) / full[-1, -1]
    r = rng.normal(size=rows.n_weights)
    solution = Preconditioner(rows).block_solver(hessian)(r)
    for j in range(3):
        block = slice(j * width, (j + 1) * width)
        np.testing.assert_allclose(schur[block, block] @ solution[block], r[block], atol=1e-8)


def test_conjugate_gradients_end_where_the_matrix_does(seed):
    rng, rows, weight, _ = problem(seed)
    hessian, rhs = CentredHessian.of(rows, weight, True), rng.normal(size=rows.n_weights)
    preconditioner = Preconditioner(rows)
    never = lambda residual: False  # noqa: E731
    arguments = hessian.product, preconditioner.block_solver(hessian), rhs
    solution, n_products = conjugate_gradients(*arguments, 1e-10, never)
    np.testing.assert_allclose(hessian.product(solution), rhs, atol=1e-6)
    assert n_products <= 2 * rows.n_weights
    _, few = conjugate_gradients(*arguments, 0.1, never)
    assert few < n_products
    # With the Hessian itself as its own preconditioner, one product is enough.
    solve = preconditioner.factor_solver(hessian)
    exact, one = conjugate_gradients(hessian.product, solve, rhs, 1e-3, never)
    assert one == 1
    np.testing.assert_allclose(exact, solution, atol=1e-5)
    assert conjugate_gradients(*arguments, 0.1, lambda residual: True)[1] == 0


@pytest.mark.parametrize("most", [newton_cg.MOST_FACTORISED, 1])
def test_a_hessian_is_factorised_once_products_took_as_long(monkeypatch, seed, most):
    monkeypatch.setattr(newton_cg, "MOST_FACTORISED", most)
    _, rows, weight, _ = problem(seed)
    hessian, preconditioner = CentredHessian.of(rows, weight, True), Preconditioner(rows)
    factor_seconds = hessian.factor_seconds(np.count_nonzero(weight))
    n_products = int(factor_seconds / hessian.product_seconds)
    preconditioner.count(hessian, n_products)
    preconditioner.of(hessian)
    assert preconditioner.n_factorised == 0
    preconditioner.count(hessian, 2)
    factorised = preconditioner.of(hessian)
    assert preconditioner.n_factorised == (1 if most > 1 else 0)
    # A solver serves as long as the weights stay; the factor, until products took as long again.
    assert preconditioner.of(hessian) is factorised
    other = CentredHessian.of(rows, weight[::-1].copy(), True)
    assert (preconditioner.of(other) is factorised) == (most > 1)


def test_sums_are_those_of_all_rows_and_add_those_that_changed(seed):
    rng, rows, weight, _ = problem(seed)
    summed = []

    def gram(weight):
        summed.append(np.count_nonzero(weight))
        return rows.gram(weight)

    assert not RowSums(rows.gram, 0.2).at(np.zeros(len(weight))).any()
    sums = RowSums(gram, 0.2)
    sums.at(weight)
    nearly = weight * rng.uniform(0.9, 1.1, len(weight))
    before = sums.at(nearly)
    assert summed == [np.count_nonzero(weight)]  # changes below a fifth are none
    few = rng.permutation(len(weight))[:20]
    weight[few] = 50 * (weight[few] == 0)  # rows that come and rows that go
    after = sums.at(weight)
    assert summed[1:] == [20]
    atol = 1e-12 * np.abs(before).max()
    np.testing.assert_allclose(after, rows.gram(weight), atol=atol)
    sums.rescale(10.0)
    np.testing.assert_allclose(sums.at(10 * weight), 10 * rows.gram(weight), atol=10 * atol)
    other = rng.random(len(weight))
    np.testing.assert_allclose(sums.at(other), rows.gram(other), atol=atol)
    assert summed[2:] == [len(weight)]


def test_preconditioners_of_updated_sums_are_those_of_the_weights(seed):
    """Weights of zero and one cost, as a squared hinge loss has: the solvers are exact."""
    rng, rows, weight, _ = problem(seed)
    first = np.where(weight > 0, 30.0, 0.0)
    second = np.where(rng.random(len(weight)) < 0.1, 30.0 - first, first)
    updated, fresh = Preconditioner(rows), Preconditioner(rows)
    r = rng.normal(size=rows.n_weights)
    for solver in ("block_solver", "factor_solver"):
        getattr(updated, solver)(updated.hessian(first, True))
        updated.rescale(2.0)
        hessian = updated.hessian(2 * second, True)
        expected = CentredHessian.of(rows, 2 * second, True)
        np.testing.assert_allclose(hessian.mean, expected.mean, atol=1e-12)
        solution = getattr(updated, solver)(hessian)(r)
        np.testing.assert_allclose(solution, getattr(fresh, solver)(expected)(r), atol=1e-9)
        updated = Preconditioner(rows)
