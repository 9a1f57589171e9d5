"""Levels of a large factor, eliminated from normal equations, against the dense equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from loss_of_targets import make_loss

from kernelmaps.models.gam.bases import number_bases
from kernelmaps.models.rows.basis import LevelBasis, TermBasis
from kernelmaps.models.rows.normal_equations import LevelSums
from kernelmaps.models.rows.term_rows import TermRows
from kernelmaps.models.solvers.levels import ConditionalLevels
from kernelmaps.models.solvers.pirls import fit_penalised
from kernelmaps.models.solvers.reml import (
    Penalties,
    estimate_smoothing,
    penalised_fit,
    reml_hessian,
)

N_LEVELS = 40


def rows_of(
    seed: int, loss: str, n: int = 1200, constrained: bool = False
) -> tuple[TermRows, TermRows]:
    """The same rows with a factor as levels, and as a dense term; a level has no rows."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(1, N_LEVELS, n)
    numbers = (rng.integers(0, 20, n) + levels // 4) % 20 + 1  # not independent of the levels
    effect = rng.normal(size=N_LEVELS)[levels] + np.sin(numbers / 4)
    y = effect + 0.5 * rng.normal(size=n)
    if loss == "log_loss":
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-effect)), 1.0, -1.0)
    elif loss == "poisson":
        y = rng.poisson(np.exp(0.5 * effect)).astype(float)
    curve = number_bases(
        np.linspace(0, 1, 20)[None], np.bincount(numbers, minlength=21) + 0.0, n_bases=10, degree=3,
        order=2,
    )[0]  # fmt: skip
    factor = LevelBasis(np.bincount(levels, minlength=N_LEVELS) + 0.0)
    dense = TermBasis(np.eye(N_LEVELS), factor.penalty, factor.smoothing_index)
    codes = [numbers.astype(np.uint8), levels.astype(np.uint8)]
    weight = rng.uniform(0.5, 2, n)
    constraints = None
    if constrained:  # the second bin is below the first, and so on
        constraints = np.zeros((19, 1 + curve.n_functions))
        constraints[:, 1:] = -np.diff(curve.values[1:], axis=0)
    offset = 0.1 * rng.normal(size=n)
    rows = TermRows(codes, [curve, factor], y, weight, offset, constraints=constraints)
    if constrained:
        constraints = np.hstack([constraints, np.zeros((19, N_LEVELS))])
    return rows, replace(rows, bases=[curve, dense], constraints=constraints)


def problems(seed: int):
    rows, dense_rows = rows_of(seed, "squared_error")
    penalties = [Penalties.from_bases(r.bases) for r in (rows, dense_rows)]
    # The prior on smoothing parameters takes functions of a mean square of one.
    penalties[1] = replace(penalties[1], prior=penalties[0].prior)
    problems_of_both = (r.squared_problem()[0] for r in (rows, dense_rows))
    return tuple(zip(problems_of_both, penalties, strict=True))


def test_a_fit_with_levels_is_that_of_the_dense_system(seed):
    """Coefficients, criterion, its derivatives, the inverse, its determinant and its products."""
    rng = np.random.default_rng(seed)
    (problem, penalties), (dense_problem, dense_penalties) = problems(seed)
    rho = rng.normal(3, 1, penalties.count)
    fit, dense = penalised_fit(problem, penalties, rho), penalised_fit(
        dense_problem, dense_penalties, rho
    )  # fmt: skip
    np.testing.assert_allclose(fit.beta, dense.beta, atol=1e-8)
    np.testing.assert_allclose(fit.traces, dense.traces, rtol=1e-7)
    diagonals = (f.inverse.diagonal() for f in (fit, dense))
    np.testing.assert_allclose(*diagonals, rtol=1e-7)
    # The dense system has a ridge of 1e-10 of its mean diagonal on the levels, too.
    assert fit.criterion == pytest.approx(dense.criterion, abs=1e-5)
    np.testing.assert_allclose(fit.gradient, dense.gradient, atol=1e-7)
    hessians = [reml_hessian(f, p, True) for f, p in ((fit, penalties), (dense, dense_penalties))]
    np.testing.assert_allclose(*hessians, atol=1e-7 * np.abs(hessians[1]).max())
    inverse, n = dense.inverse.dense, len(problem.gram)
    levels = fit.inverse.levels
    np.testing.assert_allclose(-levels.means(fit.inverse.dense), inverse[n:, :n], atol=1e-9)
    x = rng.normal(size=(len(inverse), 2))
    np.testing.assert_allclose(fit.inverse.dot(x), inverse @ x, atol=1e-7)
    products = problem.product(x)
    np.testing.assert_allclose(products, dense_problem.product(x), atol=1e-9 * products.max())
    assert fit.inverse.logdet() == pytest.approx(dense.inverse.logdet(), rel=1e-8)
    np.testing.assert_allclose(
        problem.product(fit.beta), dense_problem.product(fit.beta), atol=1e-9
    )


def test_estimated_smoothing_parameters_are_those_of_the_dense_system(seed):
    (problem, penalties), (dense_problem, dense_penalties) = problems(seed)
    fits = [
        estimate_smoothing(*arguments, np.full(penalties.count, 3.0), tol=1e-6)
        for arguments in ((problem, penalties), (dense_problem, dense_penalties))
    ]
    np.testing.assert_allclose(fits[0].rho, fits[1].rho, rtol=1e-6)
    assert fits[0].dispersion == pytest.approx(fits[1].dispersion, rel=1e-8)


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "poisson"])
def test_a_model_with_levels_is_the_dense_one(seed, loss, constrained):
    """With given smoothing parameters, for losses with and without steps, and under constraints."""
    rows, dense_rows = rows_of(seed, loss, constrained=constrained)
    rho = np.log([3.0, 30.0, 400.0])
    loss_of_rows = make_loss(loss, rows.y, rows.weight)
    fit, dense = (fit_penalised(r, loss_of_rows, rho, np.ones(3, bool)) for r in (rows, dense_rows))
    np.testing.assert_allclose(fit.beta, dense.beta, atol=1e-6)
    np.testing.assert_allclose(fit.edf, dense.edf, atol=1e-6)
    assert fit.objective == pytest.approx(dense.objective, rel=1e-9)
    np.testing.assert_allclose(fit.posterior.diagonal(), np.diag(dense.covariance), rtol=1e-6)
    if constrained:
        assert (rows.constraints @ fit.beta[: rows.constraints.shape[1]] >= -1e-9).all()


@pytest.mark.parametrize("shared", [False, True])
def test_gram_matrices_of_levels_that_share_a_weight(seed, shared):
    """Rᵀ diag(w) R from sums over levels of the same weight, where they are many, or from all."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, 5000) + 0.0 if shared else rng.uniform(1, 4, 5000)
    levels = ConditionalLevels(LevelSums(rng.normal(size=(5000, 6)), weight), 0.7)
    assert (levels.sums.shared_grams is not None) == shared
    ratios = levels.border / (weight + 0.7)[:, None]
    for w in (levels.precision, np.full(5000, 0.7), 0.49 / levels.precision):
        np.testing.assert_allclose(levels.ratio_gram(w), ratios.T @ (w[:, None] * ratios))
