"""Smoothing parameters maximise the restricted likelihood of a Gaussian model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from kernelmaps.models.rows.normal_equations import NormalEquations
from kernelmaps.models.solvers.reml import (
    REML,
    Penalties,
    _newton_step,
    covariance_deviations,
    estimate_deviations,
    estimate_smoothing,
    penalised_fit,
    reml_hessian,
    smoothing_deviations,
)
from kernelmaps.models.solvers.smoothing_prior import SmoothingPrior


def least_squares(seed, n=60):
    rng = np.random.default_rng(seed)
    Z = np.hstack([np.ones((n, 1)), rng.normal(size=(n, 7))])
    scale = np.concatenate([[0.0], rng.random(7) + 0.5])
    group = np.array([-1, 0, 0, 0, 1, 1, 2, 2])
    beta = np.concatenate([[2.0], rng.normal(size=3), 0.3 * rng.normal(size=2), np.zeros(2)])
    y = Z @ beta + 0.7 * rng.normal(size=n)
    problem = NormalEquations(Z.T @ Z, Z.T @ y, float(y @ y), float(n))
    flat = SmoothingPrior(np.ones(3), np.zeros(3, bool), 0)
    return Z, y, problem, Penalties(scale, group, 3, flat)


@pytest.mark.parametrize("dispersion", [None, 0.5])
def test_derivatives_are_those_of_the_criterion(seed, dispersion):
    _, _, problem, penalties = least_squares(seed)
    rho, step = np.array([0.3, 1.5, -0.4]), 1e-4
    fit = penalised_fit(problem, penalties, rho, dispersion)
    hessian = reml_hessian(fit, penalties, dispersion is None)
    for j in range(3):
        move = step * np.eye(3)[j]
        up, down = (penalised_fit(problem, penalties, rho + s * move, dispersion) for s in (1, -1))
        derivative = (up.criterion - down.criterion) / (2 * step)
        assert derivative == pytest.approx(fit.gradient[j], abs=1e-5)
        second = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(second, hessian[j], atol=1e-5)


def test_criterion_is_the_restricted_likelihood(seed):
    """Up to a constant: −log density of contrasts AᵀY, AᵀY ∼ N(0, φAᵀ(I + ZD⁻¹Zᵀ)A)."""
    Z, y, problem, penalties = least_squares(seed)
    A = np.linalg.svd(np.ones((1, len(y))))[2][1:].T  # orthogonal to the intercept
    phi, gaps = 0.5, []
    for rho in ([0.0, 0.0, 0.0], [2.0, -1.0, 3.0]):
        d = penalties.diagonal(np.array(rho))[1:]
        cov = phi * A.T @ (np.eye(len(y)) + Z[:, 1:] / d @ Z[:, 1:].T) @ A
        density = multivariate_normal(np.zeros(len(y) - 1), cov).logpdf(A.T @ y)
        gaps.append(penalised_fit(problem, penalties, np.array(rho), phi).criterion + density)
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-6)


def test_estimated_smoothing_parameters_are_a_minimum(seed):
    _, _, problem, penalties = least_squares(seed, 200)
    fit = estimate_smoothing(problem, penalties, np.full(3, 5.0))
    rng = np.random.default_rng(seed)
    for _ in range(30):
        other = penalised_fit(problem, penalties, fit.rho + rng.normal(size=3))
        assert other.criterion >= fit.criterion - 0.01
    assert fit.rho[2] > fit.rho[0]  # coefficients that are zero are shrunk, others are not


def test_a_search_whose_steps_are_used_up_has_not_converged(seed):
    """The same search does, with steps enough."""
    _, _, problem, penalties = least_squares(seed, 2000)
    far = np.full(3, 9.0)
    few = estimate_smoothing(problem, penalties, far, max_iter=1)
    assert not few.converged
    assert not few.stuck
    enough = estimate_smoothing(problem, penalties, far)
    assert enough.converged
    assert enough.criterion < few.criterion


def test_fixed_smoothing_parameters_stay(seed):
    _, _, problem, penalties = least_squares(seed)
    start = np.array([1.0, 2.0, 3.0])
    fit = estimate_smoothing(problem, penalties, start, fixed=np.array([False, True, True]))
    np.testing.assert_array_equal(fit.rho[1:], start[1:])
    assert fit.rho[0] != start[0]


def test_coefficients_solve_the_ridge_problem(seed):
    Z, y, problem, penalties = least_squares(seed)
    rho = np.array([0.3, 1.5, -0.4])
    fit = penalised_fit(problem, penalties, rho)
    d = penalties.diagonal(rho)
    beta = np.linalg.solve(Z.T @ Z + np.diag(d), Z.T @ y)
    np.testing.assert_allclose(fit.beta, beta, rtol=1e-7, atol=1e-8)
    penalised = np.sum((y - Z @ beta) ** 2) + d @ beta**2
    assert fit.dispersion == pytest.approx(penalised / (len(y) - 1), rel=1e-6)


@pytest.mark.parametrize("convex", [True, False])
def test_uncertain_smoothing_parameters_widen_the_covariance(seed, convex):
    """By JHJᵀ, with J the derivative of β by the logarithms of the smoothing parameters.

    H is without its negative part, where the criterion is not convex: far from its minimum.
    """
    _, _, problem, penalties = least_squares(seed, 200)
    rho = np.array([0.0, 0.0, 4.0]) if convex else np.array([12.0, 0.0, 0.0])
    fit = penalised_fit(problem, penalties, rho)
    step, J = 1e-4, np.zeros((8, 3))
    for j in range(3):
        move = step * np.eye(3)[j]
        up, down = (penalised_fit(problem, penalties, fit.rho + s * move) for s in (1, -1))
        J[:, j] = (up.beta - down.beta) / (2 * step)
    values, vectors = np.linalg.eigh(reml_hessian(fit, penalties, True))
    assert (values[0] > 0) == convex
    H = vectors / (np.maximum(values, 0) + 1 / 9) @ vectors.T
    deviations = estimate_deviations(fit, problem, penalties, np.ones(3, bool), True)
    wider = deviations @ deviations.T
    np.testing.assert_allclose(wider, J @ H @ J.T, atol=1e-6 * np.abs(wider).max())
    assert not smoothing_deviations(fit, problem, penalties, np.zeros(3, bool), True).any()


@pytest.mark.parametrize("dispersion", [None, 1.0])
def test_the_covariance_is_averaged_over_each_smoothing_parameter(seed, dispersion):
    """As by refitting, with the weight exp(−ℓ) dσ of standard deviations on a grid."""
    _, _, problem, penalties = least_squares(seed, 60)
    offset = np.log(np.array([2.0, 1.0, 0.5]))
    prior = SmoothingPrior(np.exp(offset), np.zeros(3, bool), 3)  # of 60 rows: half counts
    penalties = replace(penalties, prior=prior)
    fit = estimate_smoothing(problem, penalties, np.full(3, 3.0), dispersion)
    V, expected = fit.inverse.dense, 0.0
    grid = np.geomspace(0.1, 300, 25)  # in units of 1/√n
    for j in range(3):
        refits = []
        for sigma in grid:
            rho = fit.rho.copy()
            rho[j] = offset[j] + np.log(problem.working_weight) - 2 * np.log(sigma)
            refits.append(penalised_fit(problem, penalties, rho, dispersion))
        criterion = np.array([refit.criterion for refit in refits])
        weight = np.exp(criterion.min() - criterion) * grid
        mean = np.tensordot(weight / weight.sum(), [r.inverse.dense for r in refits], 1)
        L = np.linalg.cholesky(V)
        values, vectors = np.linalg.eigh(np.linalg.solve(L, np.linalg.solve(L, mean - V).T))
        larger = L @ vectors * np.sqrt(np.maximum(values, 0.0))
        expected = expected + 0.5 * fit.dispersion * larger @ larger.T
    deviations = covariance_deviations(
        fit, problem, penalties, np.ones(3, bool), dispersion is None
    )
    assert deviations.any()
    np.testing.assert_allclose(deviations @ deviations.T, expected, atol=1e-7 * V.max())


def test_a_smoothing_parameter_that_goes_to_infinity_holds_up_no_other():
    """With a diagonal Hessian, steps are those of each smoothing parameter alone."""
    step = _newton_step(np.diag([1e-6, 2.0]), np.array([-1.0, 1.0]))
    np.testing.assert_allclose(step, [REML.max_step, -0.5], rtol=1e-12)


def test_a_clipped_step_descends():
    """Near the null direction of the Hessian Newton's step is long: clipped, it would go uphill."""
    hessian, gradient = np.array([[-72.0, -3.6], [-3.6, -0.12]]), np.array([143.0, 12.0])
    values, vectors = np.linalg.eigh(hessian)
    newton = -vectors @ (
        vectors.T @ gradient / np.maximum(np.abs(values), 1e-3 * np.abs(values[0]))
    )
    assert newton @ gradient < 0 < np.clip(newton, -2, 2) @ gradient
    step = _newton_step(hessian, gradient)
    assert step @ gradient < 0
    assert np.abs(step).max() <= 2


def test_the_order_of_the_rows_does_not_matter(seed):
    """Straight lines share the largest ρ as a bound: rounding must not take any of them off it."""
    n, m = 60, 30
    for k in range(seed, seed + 10):
        rng = np.random.default_rng(k)
        Z = np.hstack([np.ones((n, 1)), rng.normal(size=(n, m))])
        y = Z[:, 1:6].sum(axis=1) + rng.normal(size=n)
        scale = np.append(0.0, rng.random(m) + 0.5)
        prior = SmoothingPrior(1 / scale[1:], np.ones(m, bool), m)
        penalties, beta = Penalties(scale, np.arange(-1, m), m, prior), []
        for rows in (np.arange(n), rng.permutation(n)):
            A, b = Z[rows], y[rows]
            problem = NormalEquations(A.T @ A, A.T @ b, float(b @ b), float(n))
            beta.append(estimate_smoothing(problem, penalties, np.full(m, 3.0)).beta)
        np.testing.assert_allclose(beta[0], beta[1], rtol=0, atol=1e-10)
