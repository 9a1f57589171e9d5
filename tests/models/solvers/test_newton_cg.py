"""Products with a Hessian are those of the matrix, and steps by them those of Newton."""

import numpy as np

import kernelmaps as km
from kernelmaps.models.rows.basis_rows import BasisRows
from kernelmaps.models.rows.map_basis import make_basis
from kernelmaps.models.rows.map_tables import make_tables
from kernelmaps.models.solvers.newton_cg import (
    CentredHessian,
    Preconditioner,
    block_solver,
    conjugate_gradients,
    factor_solver,
)


def problem(seed, n=200):
    """Rows, columns ψ(X), working weights of half of the rows, and the whole Hessian."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    feature_map = km.SplineMap(6).fit(X)
    basis = make_basis(feature_map.spec_, X, np.dtype(np.float64))
    rows = BasisRows(make_tables(basis, X, np.float64, 1), X)
    weight = 100 * rng.random(n) * (rng.random(n) < 0.5)
    Z1 = np.hstack([feature_map.transform(X), np.ones((n, 1))])
    full = Z1.T @ (weight[:, None] * Z1) + np.diag([1.0] * rows.n_weights + [0.0])
    return rng, rows, weight, full


def test_the_product_is_that_of_the_schur_complement(seed):
    """Eliminating the intercept from the Hessian of weights and intercept."""
    rng, rows, weight, full = problem(seed)
    p = rng.normal(size=rows.n_weights)
    schur = full[:-1, :-1] - np.outer(full[:-1, -1], full[-1, :-1]) / full[-1, -1]
    hessian = CentredHessian.from_weight(rows, weight, fit_intercept=True)
    atol = 1e-12 * np.abs(full).max() * np.abs(p).sum()
    np.testing.assert_allclose(hessian.product(p), schur @ p, atol=atol)
    solve = factor_solver(hessian, rows.gram(weight))
    np.testing.assert_allclose(solve(schur @ p), p, atol=1e-6)
    without = CentredHessian.from_weight(rows, weight, fit_intercept=False)
    np.testing.assert_allclose(without.product(p), full[:-1, :-1] @ p, atol=atol)


def test_blocks_solve_what_has_no_other_entries(seed):
    rng, rows, weight, full = problem(seed)
    hessian, width = CentredHessian.from_weight(rows, weight, fit_intercept=True), rows.width
    schur = full[:-1, :-1] - np.outer(full[:-1, -1], full[-1, :-1]) / full[-1, -1]
    r = rng.normal(size=rows.n_weights)
    solution = block_solver(hessian)(r)
    for j in range(3):
        block = slice(j * width, (j + 1) * width)
        np.testing.assert_allclose(schur[block, block] @ solution[block], r[block], atol=1e-8)


def test_conjugate_gradients_end_where_the_matrix_does(seed):
    rng, rows, weight, _ = problem(seed)
    hessian, rhs = CentredHessian.from_weight(rows, weight, True), rng.normal(size=rows.n_weights)
    never = lambda residual: False  # noqa: E731
    arguments = hessian.product, block_solver(hessian), rhs
    solution, n_products = conjugate_gradients(*arguments, 1e-10, never)
    np.testing.assert_allclose(hessian.product(solution), rhs, atol=1e-6)
    assert n_products <= 2 * rows.n_weights
    _, few = conjugate_gradients(*arguments, 0.1, never)
    assert few < n_products
    # With the Hessian itself as its own preconditioner, one product is enough.
    solve = factor_solver(hessian, rows.gram(weight))
    exact, one = conjugate_gradients(hessian.product, solve, rhs, 1e-3, never)
    assert one == 1
    np.testing.assert_allclose(exact, solution, atol=1e-5)
    assert conjugate_gradients(*arguments, 0.1, lambda residual: True)[1] == 0


def test_rows_whose_weight_has_changed_are_added_to_the_hessian(seed, monkeypatch):
    """Weights of zero and one cost, as a squared hinge loss has: the solver is exact."""
    rng, rows, weight, _ = problem(seed)
    first = np.where(weight > 0, 30.0, 0.0)
    second = np.where(rng.random(len(weight)) < 0.1, 30.0 - first, first)
    preconditioner, summed = Preconditioner(), []
    gram = BasisRows.gram
    monkeypatch.setattr(
        BasisRows, "gram", lambda own, w: (summed.append(np.count_nonzero(w)), gram(own, w))[1]
    )
    for own in (first, second):
        preconditioner.n_products = 1000
        hessian = CentredHessian.from_weight(rows, own, True)
        solve = preconditioner.prepare(hessian)
    assert summed == [np.count_nonzero(w) for w in (first, second > first, second < first)]
    r = rng.normal(size=rows.n_weights)
    exact = factor_solver(hessian, gram(rows, second))(r)
    np.testing.assert_allclose(solve(r), exact, atol=1e-9)
