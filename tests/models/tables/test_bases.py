"""Bases are orthonormal over the rows, centred, and carry the penalty that was asked for."""

import numpy as np
import pytest

from kernelmaps.models.tables.bases import (
    category_basis,
    differences,
    linear_basis,
    margin,
    natural,
    number_basis,
    periodic_splines,
    splines,
    tensor_basis,
)


def counts_of(seed, size, missing=True):
    counts = np.random.default_rng(seed).integers(1, 50, size + 1).astype(float)
    counts[0] *= missing
    return counts


def pair_of(seed, counts):
    cells = np.random.default_rng(seed).random((len(counts), 6)) * 10
    sides = [
        margin((np.arange(30) + 0.5) / 30, cells.sum(1), n_bases=8, category=False),
        margin(np.zeros(0), cells.sum(0), n_bases=0, category=True),
    ]
    return tensor_basis(*sides, cells.ravel(), 30), cells.ravel()


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
            "spline": lambda: number_basis(position, counts, n_bases=12, **options),
            "few": lambda: number_basis(position, counts, n_bases=30, **options),
            "periodic": lambda: number_basis(
                position * 0.97, counts, n_bases=8, periodic=True, **options
            ),
            "linear": lambda: linear_basis(position, counts),
            "category": lambda: category_basis(counts),
        }[kind]()
    assert basis.n_functions > 0
    np.testing.assert_allclose(counts @ basis.values / counts.sum(), 0, atol=1e-9)
    scale = basis.values.T @ (counts[:, None] * basis.values) / counts.sum()
    # 1e-7 of the mean diagonal is added before it is inverted; conditions reach 1e4.
    np.testing.assert_allclose(scale, np.eye(basis.n_functions), atol=2e-3)
    assert (np.diff(basis.group) >= 0).all()


@pytest.mark.parametrize("missing", [True, False])
def test_splines_are_also_a_product(seed, missing):
    """Few splines at each code, times a matrix: the values of the basis."""
    counts = counts_of(seed, 40, missing)
    basis = number_basis(np.linspace(0, 1, 40), counts, n_bases=12, degree=3, order=2)
    for own in (basis, basis.smoothest(5)):
        first, weights, turn = own.local
        rows = np.zeros((41, len(turn)))
        for k in range(4):
            rows[np.arange(41), first + k] += weights[:, k]
        np.testing.assert_allclose(rows @ turn, own.values, atol=1e-9)
    few = number_basis(np.linspace(0, 1, 9), counts[:10], n_bases=12, degree=3, order=2)
    assert few.local is None


def test_penalty_in_new_coordinates_is_the_old_one(seed):
    """For f = Bθ: θᵀSθ = βᵀΛβ up to one factor, which the strength takes up."""
    counts = counts_of(seed, 40, missing=False)
    raw = np.vstack([np.zeros(9), splines(np.linspace(0, 1, 40), 9, 3)])
    penalty = differences(9, 2)
    basis = natural(raw, penalty, counts)
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(4):
        beta = rng.normal(size=basis.n_functions)
        function = basis.values @ beta
        theta = np.linalg.lstsq(raw[1:], function[1:], rcond=None)[0]
        smooth = basis.group == 0
        ratios.append((theta @ penalty @ theta) / np.sum((basis.penalty * beta**2)[smooth]))
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-5)
    assert np.count_nonzero(basis.group == 1) == 1  # straight lines are not bent


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


def test_a_pair_keeps_its_smoothest_functions(seed):
    """Those with the smallest penalties, of which the others are a continuation."""
    counts = counts_of(seed, 30)
    sides = [
        margin((np.arange(30) + 0.5) / 30, counts, n_bases=8, category=False),
        margin((np.arange(9) + 0.5) / 9, counts[:10], n_bases=6, category=False),
    ]
    cells = np.outer(counts, counts[:10]).ravel()
    whole, some = (tensor_basis(*sides, cells, most) for most in (1000, 12))
    assert some.n_functions == 12 < whole.n_functions
    kept = np.argsort(whole.penalty)[:12]
    np.testing.assert_array_equal(np.sort(some.penalty), whole.penalty[kept])
    np.testing.assert_array_equal(some.values, whole.values[:, np.sort(kept)])
