"""Strengths maximise the restricted likelihood, which is one of a Gaussian model."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from kernelmaps.models.gam import reml
from kernelmaps.models.gam.reml import (
    Penalties,
    Sums,
    _curvature,
    choose_strengths,
    solve_with,
    widening,
)


def problem(seed, n=60):
    rng = np.random.default_rng(seed)
    Z = np.hstack([np.ones((n, 1)), rng.normal(size=(n, 7))])
    scale = np.concatenate([[0.0], rng.random(7) + 0.5])
    group = np.array([-1, 0, 0, 0, 1, 1, 2, 2])
    beta = np.concatenate([[2.0], rng.normal(size=3), 0.3 * rng.normal(size=2), np.zeros(2)])
    y = Z @ beta + 0.7 * rng.normal(size=n)
    sums = Sums(Z.T @ Z, Z.T @ y, float(y @ y), float(n))
    return Z, y, sums, Penalties(scale, group, 3)


@pytest.mark.parametrize("dispersion", [None, 0.5])
def test_derivatives_are_those_of_the_criterion(seed, dispersion):
    _, _, sums, penalties = problem(seed)
    rho, step = np.array([0.3, 1.5, -0.4]), 1e-4
    fit = solve_with(sums, penalties, rho, dispersion)
    bend = _curvature(fit, penalties, sums.rows, dispersion is None)
    for j in range(3):
        move = step * np.eye(3)[j]
        up, down = (solve_with(sums, penalties, rho + s * move, dispersion) for s in (1, -1))
        slope = (up.criterion - down.criterion) / (2 * step)
        assert slope == pytest.approx(fit.gradient[j], abs=1e-5)
        np.testing.assert_allclose((up.gradient - down.gradient) / (2 * step), bend[j], atol=1e-5)


def test_criterion_is_the_restricted_likelihood(seed):
    """Up to a constant: −log density of contrasts AᵀY, AᵀY ∼ N(0, φAᵀ(I + ZD⁻¹Zᵀ)A)."""
    Z, y, sums, penalties = problem(seed)
    A = np.linalg.svd(np.ones((1, len(y))))[2][1:].T  # orthogonal to the intercept
    phi, gaps = 0.5, []
    for rho in ([0.0, 0.0, 0.0], [2.0, -1.0, 3.0]):
        d = penalties.diagonal(np.array(rho))[1:]
        cov = phi * A.T @ (np.eye(len(y)) + Z[:, 1:] / d @ Z[:, 1:].T) @ A
        density = multivariate_normal(np.zeros(len(y) - 1), cov).logpdf(A.T @ y)
        gaps.append(solve_with(sums, penalties, np.array(rho), phi).criterion + density)
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-6)


def test_chosen_strengths_are_a_minimum(seed):
    _, _, sums, penalties = problem(seed, 200)
    found = choose_strengths(sums, penalties, np.full(3, 5.0))
    rng = np.random.default_rng(seed)
    for _ in range(30):
        other = solve_with(sums, penalties, found.rho + rng.normal(size=3))
        assert other.criterion >= found.criterion - 0.01
    assert found.rho[2] > found.rho[0]  # weights that are zero are shrunk, others are not


def test_fixed_strengths_stay(seed):
    _, _, sums, penalties = problem(seed)
    start = np.array([1.0, 2.0, 3.0])
    found = choose_strengths(sums, penalties, start, fixed=np.array([False, True, True]))
    np.testing.assert_array_equal(found.rho[1:], start[1:])
    assert found.rho[0] != start[0]


def test_weights_solve_the_ridge_problem(seed):
    Z, y, sums, penalties = problem(seed)
    rho = np.array([0.3, 1.5, -0.4])
    fit = solve_with(sums, penalties, rho)
    d = penalties.diagonal(rho)
    wanted = np.linalg.solve(Z.T @ Z + np.diag(d), Z.T @ y)
    np.testing.assert_allclose(fit.weights, wanted, rtol=1e-7, atol=1e-8)
    penalised = np.sum((y - Z @ wanted) ** 2) + d @ wanted**2
    assert fit.dispersion == pytest.approx(penalised / (len(y) - 1), rel=1e-6)


def test_uncertain_strengths_widen_the_covariance(seed):
    """By JHJᵀ, with J the derivative of the weights by the logarithms of the strengths."""
    _, _, sums, penalties = problem(seed, 200)
    fit = choose_strengths(sums, penalties, np.zeros(3))
    step, J = 1e-4, np.zeros((8, 3))
    for j in range(3):
        move = step * np.eye(3)[j]
        up, down = (solve_with(sums, penalties, fit.rho + s * move) for s in (1, -1))
        J[:, j] = (up.weights - down.weights) / (2 * step)
    values, vectors = np.linalg.eigh(_curvature(fit, penalties, sums.rows, True))
    H = vectors / (np.maximum(values, 0) + 1 / 9) @ vectors.T
    wider = widening(fit, penalties, sums.rows, np.ones(3, bool), True)
    np.testing.assert_allclose(wider, J @ H @ J.T, atol=1e-6 * np.abs(wider).max())
    some = widening(fit, penalties, sums.rows, np.array([False] * 3), True)
    assert not some.any()


def test_a_strength_without_an_end_holds_up_no_other():
    """Steps on strengths of which nothing hangs on the others are those of each alone."""
    step = reml._descent(np.diag([1e-6, 2.0]), np.array([-1.0, 1.0]))
    np.testing.assert_allclose(step, [reml._STEP, -0.5], rtol=1e-12)
