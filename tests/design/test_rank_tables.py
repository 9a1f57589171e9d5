"""Tables and the bound that no map of their rank can beat."""

import numpy as np
import pytest
from scipy.special import logsumexp

import kernelmaps as km
from benchmarks.paper_parts import eigen_table
from kernelmaps.design import rank_tables as tables
from kernelmaps.design.approximation import build_problem
from kernelmaps.design.certify import bound_table_everywhere
from kernelmaps.design.cosines import harmonic_design, log_p_norm, refined_design
from kernelmaps.design.rank_tables import (
    RankTable,
    grid_kernel,
    minimax_table,
    rank_bound,
)
from kernelmaps.kernels import Additive, Gaussian


@pytest.mark.parametrize(("kernel", "n_columns", "limit", "floor"), [("chi2", 5, 0.033, 0.0310)])
def test_best_tables_meet_the_bound(kernel, n_columns, limit, floor):
    grid = grid_kernel(kernel, (1, 255))
    bound, _ = rank_bound(grid, n_columns)
    table = minimax_table(grid, n_columns)
    assert bound >= floor
    assert bound <= table.error_on(grid.nodes) <= 1.02 * bound
    integers = np.arange(1.0, 256.0)
    assert table.error_on(integers) <= limit
    between = np.exp(np.random.default_rng(0).uniform(0, np.log(255), 400))
    assert table.error_on(between) <= 1.1 * table.error_on(integers)


def test_tables_of_the_intersection():
    grid = grid_kernel("intersection", (1, 50))
    table = minimax_table(grid, 2)
    bound, _ = rank_bound(grid, 2)
    assert bound >= 50 / 25 * 0.99  # b / (2D + 1)²
    assert table.max_error <= 1.13 * bound


def test_bound_holds_for_every_map(seed):
    """Random maps, eigenvectors and cosines of rank 3 are all above it."""
    grid = grid_kernel("chi2", (1, 50))
    bound, _ = rank_bound(grid, 3)
    x = grid.nodes
    gram = grid.gram(x)
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(gram)
    exact = vectors[:, -3:] * np.sqrt(values[-3:])
    candidates = [exact, exact + 0.01 * rng.standard_normal(exact.shape), eigen_table(grid, 3)(x)]
    candidates.append(km.design_map("chi2", 3, domain=(1, 50))(x))
    for phi in candidates:
        assert np.max(np.abs(gram - phi @ phi.T)) >= bound * (1 - 1e-9)


def test_bound_is_at_least_the_spectral_one():
    grid = grid_kernel("js", (1, 255))
    bound, d = rank_bound(grid, 4)
    gram = grid.gram(grid.allowed)
    singular = np.linalg.svd(d[:, None] * gram * d, compute_uv=False)
    assert bound >= singular[4] / np.sum(d**2) * (1 - 1e-9)
    np.testing.assert_allclose(bound, np.sqrt(np.sum(singular[4:] ** 2)) / np.sum(d**2), rtol=1e-6)


def test_bound_of_a_kernel_of_that_rank_is_zero():
    grid = grid_kernel(Additive(lambda x, y: 1 + x * y), (0, 1))
    assert rank_bound(grid, 2)[0] == 0


@pytest.mark.parametrize("error", ["relative", "signature"])
def test_other_errors_have_their_own_tables(error):
    grid = grid_kernel("chi2", (1, 255), error)
    bound, _ = rank_bound(grid, 3)
    table = minimax_table(grid, 3)
    assert bound <= table.max_error <= 1.3 * bound
    assert table.max_error < km.design_map("chi2", 3, error=error).max_error


def test_high_norms_and_their_gradients(seed):
    error = np.random.default_rng(seed).normal(size=(9, 7)) * 10.0 ** np.arange(-3, 4)
    for power in (2, 8, 512):
        norm, gradient = log_p_norm(error, power)
        sizes = power * np.log(np.abs(error))
        assert norm == pytest.approx(logsumexp(sizes) / power, rel=1e-12)
        expected = np.exp(sizes - logsumexp(sizes)) / error  # |e|^p / (e Σ|e|^p)
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-270)


def test_tables_of_other_kernels():
    """A stationary kernel in x, and a user's own component without any signature."""
    for kernel in (Gaussian(0.5), Additive(lambda x, y: np.exp(-((x - y) ** 2) / 0.5))):
        grid = grid_kernel(kernel, (0, 2))
        bound, _ = rank_bound(grid, 4)
        assert bound <= minimax_table(grid, 4).max_error <= 1.25 * bound


def worst_pair(table, seed, size=300):
    """The largest error over random pairs of values, and near the worst of them."""
    grid = table.kernel
    rng = np.random.default_rng(seed)

    def error(u, v):
        x, y = grid.place(np.clip(u, 0, 1)), grid.place(np.clip(v, 0, 1))
        miss = grid.component(x, y) - np.sum(table(x) * table(y), axis=1)
        return np.abs(miss) / grid.tolerance(x, y)

    u, v = rng.uniform(0, 1, (2, size * 40))
    v[::3] = u[::3]  # kinks are on the diagonal
    for spread in (0.02, 2e-3, 2e-4):
        best = np.argsort(-error(u, v))[:40]
        near = rng.normal(0, spread, (2, 40, size))
        near[1, :, ::3] = near[0, :, ::3]
        u, v = (
            np.r_[z[best], (z[best, None] + n).ravel()] for z, n in zip((u, v), near, strict=True)
        )
    return float(np.max(error(u, v)))


def test_the_bound_sees_what_a_grid_does_not():
    """A table with a spike between the points of the reported grid."""
    grid = grid_kernel("intersection", (1, 255))
    table = eigen_table(grid, 3)
    nodes = np.sort(np.r_[table.nodes, 100.31, 100.32, 100.33])
    values = table(nodes)
    values[np.searchsorted(nodes, 100.32)] += 30.0
    spiked = RankTable(grid, values, nodes)
    bound = bound_table_everywhere(spiked).bound
    assert bound > 5 * spiked.max_error
    assert bound == pytest.approx(spiked.error_on(nodes), rel=0.1)


def test_without_a_proof_there_is_no_bound_but_the_largest_error_found(seed):
    own = Additive(lambda x, y: np.exp(-((x - y) ** 2) / 0.5))
    table = eigen_table(grid_kernel(own, (0, 2)), 3)
    proof = bound_table_everywhere(table)
    assert proof.bound == np.inf
    assert worst_pair(table, seed) <= 1.01 * proof.found
    design = km.design_map(own, 2, domain=(0, 2), method="minimax", cache=False)
    assert not design.certificate.proved
    assert "largest error found (no bound is proved" in design.summary()
    stated = str(design.certificate.summarise("absolute", "values in [0, 2]"))
    assert "at most" not in stated
    assert "no bound is proved" in stated


def test_a_signature_is_the_kernel_that_it_belongs_to():
    arguments = {"domain": (1, 255), "cache": False}
    own = km.design_map(lambda lag: 1 / np.cosh(lag / 2), 3, homogeneous=True, **arguments)
    named = km.design_map("chi2", 3, **arguments)
    assert own.max_error == pytest.approx(named.max_error, rel=1e-9)
    assert own.rms == pytest.approx(named.rms, rel=1e-9)  # pairs with zero included
    assert own.certificate.bound == pytest.approx(named.certificate.bound, rel=1e-6)


def test_a_set_of_values_is_proved_by_looking_at_all_of_it():
    proof = bound_table_everywhere(eigen_table(grid_kernel("chi2", np.arange(1, 99)), 3))
    assert "98 of 98" in proof.bound_method
    assert 0 < proof.bound == proof.found
    many = grid_kernel("chi2", np.linspace(1, 99, 4000))
    assert not bound_table_everywhere(
        eigen_table(many, 3)
    ).proved  # some of the set were not looked at


@pytest.mark.parametrize(
    ("kernel", "error", "n_columns"),
    [  # both sizes for every kernel and for every error
        ("chi2", "relative", 5),
        ("chi2", "signature", 2),
        ("jensen_shannon", "absolute", 2),
        ("jensen_shannon", "signature", 5),
        ("intersection", "absolute", 5),
        ("intersection", "relative", 2),
    ],
)
def test_the_best_table_is_never_worse_than_another_method(kernel, error, n_columns):
    grid, problem = grid_kernel(kernel, (1, 255), error), build_problem(kernel, (1, 255), error)
    table = km.design_map(kernel, n_columns, error=error, method="minimax").max_error  # shipped
    others = [
        eigen_table(grid, n_columns).max_error,
        problem.max_error(harmonic_design(problem, n_columns)),
        problem.max_error(refined_design(problem, n_columns)),
    ]
    # √x on 256 straight lines of ratio r = 255^(1/256) is off by (log r)²/32 of itself
    slack = 2 * (np.log(255) / 256) ** 2 / 32 if grid.rough else 1e-6
    assert table <= min(others) + slack * max(1.0, min(others))


def test_a_start_that_cannot_be_improved_is_the_answer(monkeypatch):
    """Even where the descent fails, the table is no worse than the maps that it was shown."""
    best = km.design_map("chi2", 2, method="minimax").table  # shipped
    grid = best.kernel
    assert best.max_error < 0.9 * eigen_table(grid, 2).max_error

    def failing(kernel, nodes, start, *arguments, **options):
        return RankTable(kernel, 0 * best.coefficients, best.nodes)

    monkeypatch.setattr(tables, "_descend", failing)
    actual = minimax_table(grid, 2, [best])
    assert actual.max_error == pytest.approx(best.max_error, rel=1e-6)


@pytest.mark.parametrize("n_columns", [1, 3, 5])
def test_a_thin_factor_leaves_what_the_whole_matrix_leaves(n_columns, seed):
    grid = grid_kernel(km.kernels.chi2, (0.01, 1.0))
    gram = grid.gram(grid.nodes)
    factor = tables._factor(gram)
    assert factor.shape[1] < len(gram) / 2
    d = np.random.default_rng(seed).uniform(0.1, 1, len(gram))
    tail, share = tables._tail_of_factor(factor, n_columns, d)
    whole, shares = tables._tail_of_gram(gram, n_columns, d)
    assert tail == pytest.approx(whole, rel=1e-9)
    np.testing.assert_allclose(share, shares, rtol=1e-6, atol=1e-9 * whole)


@pytest.mark.parametrize("size", [1.0, 1e9])
def test_a_matrix_that_is_not_of_a_kernel_has_a_bound_that_holds(size):
    x = np.linspace(0, 1, 20)
    gram, unit = -size * np.abs(x[:, None] - x), np.ones((20, 20))
    assert tables._factor(gram) is None
    bound, _ = tables.gram_bound(gram, unit, 3, [np.ones(20)])
    values, vectors = np.linalg.eigh(gram)
    kept = np.argsort(-np.abs(values))[:3]
    nearest = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
    assert 0 < bound <= np.max(np.abs(gram - nearest))
