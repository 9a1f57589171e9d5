"""Inverses of positive definite systems."""

import numpy as np
import pytest

from kernelmaps.models.rows.normal_equations import NormalEquations
from kernelmaps.models.solvers.linear_systems import (
    cholesky_factor,
    cholesky_inverse,
    penalised_system,
)


@pytest.mark.parametrize("size", [1, 2, 130])
def test_inverses_are_symmetric_and_leave_the_factor(size, seed):
    """Their errors are those of rounding, at most the condition number times 1e-16."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2 * size, size))
    gram, diagonal = root.T @ root, rng.random(size)
    factor = cholesky_factor(gram, diagonal)
    before = np.tril(factor)
    inverse = cholesky_inverse(factor)
    expected = np.linalg.inv(before @ before.T)
    tolerance = 1e-14 * np.linalg.cond(gram + np.diag(diagonal)) * np.abs(expected).max()
    np.testing.assert_allclose(inverse, expected, atol=tolerance, rtol=0)
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_array_equal(np.tril(factor), before)  # the factor can be used again


def test_a_covariance_has_the_determinant_of_its_system(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(50, 20))
    problem = NormalEquations(root.T @ root, np.zeros(20), 1.0, 50.0)
    covariance = penalised_system(problem, rng.random(20)).inverse().scale(0.3)
    expected = np.linalg.slogdet(covariance.dense)[1]
    assert covariance.logdet() == pytest.approx(expected, abs=1e-10)
