"""Bases are orthonormal over the rows, centred, and carry the penalty that was asked for."""

import numpy as np
import pytest

from kernelmaps.models.gam.bases import (
    category_basis,
    compute_differences,
    linear_basis,
    number_bases,
    periodic_splines,
    splines,
)
from kernelmaps.models.gam.pairs import marginal_basis, tensor_basis


def counts_of(seed, size, missing=True):
    counts = np.random.default_rng(seed).integers(1, 50, size + 1).astype(float)
    counts[0] *= missing
    return counts


def pair_of(seed, counts):
    cells = np.random.default_rng(seed).random((len(counts), 6)) * 10
    margins = [
        marginal_basis(cells.sum(1), category=False),
        marginal_basis(cells.sum(0), category=True),
    ]
    return tensor_basis(*margins, cells, 30), cells.ravel()


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("kind", ["spline", "few", "periodic", "linear", "category", "pair"])
def test_basis_is_centred_and_orthonormal_over_the_rows(seed, kind, missing):
    counts = counts_of(seed, 30, missing)
    position = np.linspace(0, 1, 30)
    options = {"degree": 3, "order": 2}
    if kind == "pair":
        basis, counts = pair_of(seed, counts)
    else:
        basis = {
            "spline": lambda: number_bases(position[None], counts, n_bases=12, **options)[0],
            "few": lambda: number_bases(position[None], counts, n_bases=30, **options)[0],
            "periodic": lambda: number_bases(
                (position * 0.97)[None], counts, n_bases=8, periodic=True, **options
            )[0],
            "linear": lambda: linear_basis(position, counts),
            "category": lambda: category_basis(counts),
        }[kind]()
    assert basis.n_functions > 0
    np.testing.assert_allclose(counts @ basis.values / counts.sum(), 0, atol=1e-9)
    scale = basis.values.T @ (counts[:, None] * basis.values) / counts.sum()
    # Rounding errors of the largest share of K, 1e-16, are divided by the least, some 1e-8.
    np.testing.assert_allclose(scale, np.eye(basis.n_functions), atol=1e-6)
    assert (np.diff(basis.smoothing_index) >= 0).all()


@pytest.mark.parametrize("skewed", [False, True])
def test_penalty_in_new_coordinates_is_the_old_one(seed, skewed):
    """For f = Bθ: θᵀSθ = βᵀΛβ up to one factor, which the smoothing parameter takes up.

    Also where most splines have no rows, as those of a skewed column are.
    """
    counts = counts_of(seed, 40, missing=False)
    place = np.linspace(0, 1, 40) ** (6 if skewed else 1)
    raw, differences = splines(place, 9, 3), compute_differences(np.ones(8), 2)
    basis = number_bases(place[None], counts, n_bases=9, degree=3, order=2)[0]
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(4):
        beta = rng.normal(size=basis.n_functions)
        beta[basis.penalty > 1e6 * basis.penalty[0]] = 0  # what no row sees
        theta = np.linalg.lstsq(raw, (basis.values @ beta)[1:], rcond=None)[0]
        smooth = basis.smoothing_index == 0
        ratios.append(
            np.sum((differences @ theta) ** 2) / np.sum((basis.penalty * beta**2)[smooth])
        )
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_values_at_uneven_nodes_are_penalised_by_derivatives(seed, order):
    """Of x²: the integral of f''² = 4, and of f'² = 4x² by the midpoint rule; of x: 0 and 1."""
    nodes = np.cumsum(np.random.default_rng(seed).uniform(0.1, 2, 1000)) / 1000
    steps = np.diff(nodes)
    differences = compute_differences(steps, order)
    line, parabola = (np.sum((differences @ nodes**k) ** 2) for k in (1, 2))
    extent, middle = nodes[-1] - nodes[0], (nodes[1:] + nodes[:-1]) / 2
    if order == 1:
        assert line == pytest.approx(extent)
        assert parabola == pytest.approx(np.sum(4 * middle**2 * steps))
    else:
        assert line < 1e-12 * parabola
        assert parabola == pytest.approx(4 * (extent - (steps[0] + steps[-1]) / 2))


@pytest.mark.parametrize("order", [1, 2])
def test_differences_of_even_steps_are_those_of_neighbours(order):
    even = compute_differences(np.ones(6), order)
    np.testing.assert_allclose(even, np.diff(np.eye(7), order, axis=0), atol=1e-14)


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize(("masses", "order"), [((), 1), ((), 2), ((0,), 2), ((0, 254), 2)])
def test_only_straight_functions_have_no_curvature(seed, missing, masses, order):
    """As many as differences do not see, though nine in ten splines have next to no rows."""
    counts = counts_of(seed, 255, missing)
    place = np.exp(5 * np.linspace(-1, 1, 255) ** 3)
    place = (place - place[0]) / (place[-1] - place[0])
    basis = number_bases(place[None], counts, n_bases=80, degree=3, order=order, masses=masses)[0]
    straight = (
        basis.values[:, basis.smoothing_index == 1]
        if missing or masses or order > 1
        else basis.values
    )
    n_straight = (order - 1) + missing + len(masses)
    assert straight.shape[1] == (n_straight or basis.n_functions)
    inner = np.delete(straight, [0, *(1 + mass for mass in masses)], axis=0)
    slopes = np.diff(inner, axis=0) / np.diff(np.delete(place, masses))[:, None]
    if n_straight:
        np.testing.assert_allclose(slopes - slopes[0], 0, atol=1e-6 * np.abs(slopes).max() + 1e-6)


def test_splines_sum_to_one_and_the_circle_closes():
    position = np.linspace(0, 1, 50)
    np.testing.assert_allclose(splines(position, 12, 3).sum(1), 1, rtol=1e-12)
    around = periodic_splines(np.array([0.0, 1.0, 1e-9, 1 - 1e-9]), 8, 3)
    np.testing.assert_allclose(around.sum(1), 1, rtol=1e-12)
    np.testing.assert_allclose(around[2], around[3], atol=1e-7)


def test_codes_without_rows_get_the_mean():
    counts = np.array([0.0, 0.0, 5.0, 3.0, 0.0])
    basis = category_basis(counts)
    np.testing.assert_array_equal(basis.values[[0, 1, 4]], 0)
    assert basis.n_functions == 1


def test_one_level_has_no_function():
    assert category_basis(np.array([0.0, 0.0, 9.0])).n_functions == 0


@pytest.mark.parametrize("spread", [np.inf, 0.2])
def test_a_pair_keeps_its_smoothest_functions(seed, spread):
    """Those with the smallest penalties, nearly, whether its columns depend on each other or not.

    Among fewer candidates no penalty is lower than its like among all (Courant and Fischer).
    """
    place = (np.arange(30) + 0.5) / 30
    cells = np.outer(counts_of(seed, 30), counts_of(seed + 1, 30))
    cells[1:, 1:] *= np.exp(-(np.subtract.outer(place, place) ** 2) / spread**2)
    margins = [marginal_basis(cells.sum(axis), category=False) for axis in (1, 0)]
    full, small = (tensor_basis(*margins, cells, most) for most in (1000, 24))
    assert small.n_functions == 24 < full.n_functions
    ratio = np.sort(small.penalty) / np.sort(full.penalty)[:24]
    assert ratio.min() > 1 - 1e-6
    assert ratio.max() < 1.25


def test_pairs_stay_small_where_no_row_is(seed):
    """Penalties, not rounding errors, decide about cells without rows."""
    rng = np.random.default_rng(seed)
    cells = np.zeros((51, 51))
    first = np.minimum(rng.exponential(6, 20_000).astype(int), 49)
    second = np.clip(first + rng.integers(-3, 4, first.size), 0, 49)
    np.add.at(cells, (1 + first, 1 + second), 1.0)
    margins = [marginal_basis(cells.sum(axis), category=False) for axis in (1, 0)]
    values = tensor_basis(*margins, cells, 48).values.reshape(51, 51, -1)
    assert np.abs(values).max() < 3 * np.abs(values[cells > 0]).max()


def test_two_equal_smoothing_parameters_are_one(seed):
    """The functions are the same, the smoothest ones apart from the others."""
    counts = counts_of(seed, 40)
    basis = number_bases(np.linspace(0, 1, 40)[None], counts, n_bases=20, degree=3, order=2)[0]
    apart = basis.with_two_smoothing_parameters(6)
    np.testing.assert_array_equal(np.bincount(apart.smoothing_index), [12, 6, 2])
    assert (
        apart.penalty[apart.smoothing_index == 1].max()
        < apart.penalty[apart.smoothing_index == 0].min()
    )
    inner = [b.values / b.penalty @ b.values.T for b in (basis, apart)]
    np.testing.assert_allclose(*inner, rtol=1e-9)
    assert basis.with_two_smoothing_parameters(18) is basis
