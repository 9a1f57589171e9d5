"""Lower bounds by shorter ways are those of the whole matrix, and hold for matrices of any kind."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.design import tables as bounds
from kernelmaps.design.tables import grid_kernel


@pytest.mark.parametrize("n_columns", [1, 3, 5])
def test_a_thin_factor_leaves_what_the_whole_matrix_leaves(n_columns, seed):
    grid = grid_kernel(km.kernels.chi2, (0.01, 1.0))
    gram = grid.gram(grid.nodes)
    factor = bounds._factor(gram)
    assert factor.shape[1] < len(gram) / 2
    d = np.random.default_rng(seed).uniform(0.1, 1, len(gram))
    tail, share = bounds._tail_of_factor(factor, n_columns, d)
    whole, shares = bounds._tail_of_gram(gram, n_columns, d)
    assert tail == pytest.approx(whole, rel=1e-9)
    np.testing.assert_allclose(share, shares, rtol=1e-6, atol=1e-9 * whole)


@pytest.mark.parametrize("size", [1.0, 1e9])
def test_a_matrix_that_is_not_of_a_kernel_has_a_bound_that_holds(size):
    x = np.linspace(0, 1, 20)
    gram, unit = -size * np.abs(x[:, None] - x), np.ones((20, 20))
    assert bounds._factor(gram) is None
    bound, _ = bounds.gram_bound(gram, unit, 3, [np.ones(20)])
    values, vectors = np.linalg.eigh(gram)
    kept = np.argsort(-np.abs(values))[:3]
    nearest = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
    assert 0 < bound <= np.max(np.abs(gram - nearest))
