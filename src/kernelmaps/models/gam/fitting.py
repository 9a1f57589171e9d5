r"""Fits of the outputs of a design: exact ones, and rough ones of terms that are added to a model.

A search for pairs adds terms to a fit. With the coefficients divided into old and new ones, and the
smoothing parameters of the old ones fixed, the restricted likelihood of the new smoothing
parameters is that of the smaller problem

.. math:: S = G_{nn} - G_{no} A^{-1} G_{on}, \qquad s = r_n - G_{no} A^{-1} r_o,
          \qquad p = q - r_o^\top A^{-1} r_o, \qquad A = G_{oo} + \mathrm{diag}(d_o),

(S the Schur complement) up to :math:`\log|A|`, which is constant: REML for the new terms costs
inverses of their size, and the coefficients of all terms follow from these and from the Cholesky
factor of A. The model that a search ends with is fitted exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ..._util.threads import limit_blas
from ..losses import JointLoss, Loss, LossTotals
from ..rows.basis import LevelBasis
from ..rows.normal_equations import NormalEquations
from ..rows.predictors import Predictors
from ..rows.term_rows import GramCache, SolverRows, TermRows
from ..solvers.levels import BlockCovariance
from ..solvers.linear_systems import (
    IndependentCovariance,
    blas_threads,
    cholesky_factor,
    constrained_minimum,
    scatter,
)
from ..solvers.newton import Objective, damped_step, quasi_newton_steps
from ..solvers.pirls import PenalisedFit, fit_penalised, unscreened_smoothing
from ..solvers.reml import REML, Penalties, estimate_smoothing
from .design import AdditiveDesign
from .terms import GamSettings
from .training_rows import DesignTerm


@dataclass(frozen=True)
class AddingTerms:
    """Constants of rough fits, and of exact ones that start from them."""

    # Relative decrement of the objective at the end of the steps for new terms: what is left is
    # far below what decides on a pair.
    tol: float = 1e-3
    # Derivative of the REML criterion at the end: with 1, that of models that are refitted, a pair
    # of few cells stays at the smoothing parameter that it starts with, which leaves nothing of it.
    reml_tol: float = 0.1
    # An exact fit begins at smoothing parameters of at most e² times the weight of all rows: a
    # function that has vanished has a REML gradient of zero, and would hardly come back by itself.
    # Where curves are screened, the screening brings them back: all together would have too many
    # coefficients.
    max_start_over_rows: float = 2.0
    # Logarithms of smoothing parameters of rough fits are rounded to multiples of this before an
    # exact fit starts from them: rounding errors of rows in memory and of rows from a stream, which
    # are others, do not lead to other smoothing parameters.
    start_grid: float = 0.5


ADDING = AddingTerms()


@dataclass(frozen=True)
class FittedDesign:
    """A design, and a fit of each output; `joint` is that of all of them together."""

    design: AdditiveDesign
    fits: list[PenalisedFit]
    joint: JointFit | None = None


@dataclass(frozen=True)
class JointFit:
    """The fit of all linear predictors of a loss.

    Attributes
    ----------
    loss : JointLoss
    fit : PenalisedFit
    penalty : ndarray
        Penalties of its coefficients.
    totals : LossTotals
        Sums over the rows.
    """

    loss: JointLoss
    fit: PenalisedFit
    penalty: np.ndarray
    totals: LossTotals


class RoughFit(NamedTuple):
    """What a search for terms needs of a fit.

    Attributes
    ----------
    beta, edf : ndarray
        Coefficients, the intercept first, and their degrees of freedom.
    rho : ndarray
        Logarithms of the smoothing parameters.
    dispersion : float
        φ.
    """

    beta: np.ndarray
    edf: np.ndarray
    rho: np.ndarray
    dispersion: float


@dataclass(frozen=True)
class RoughModel:
    """A design, and a rough fit of each output: a model during a search for pairs."""

    design: AdditiveDesign
    fits: list[RoughFit]


class WarmStart(NamedTuple):
    """What is known before terms are added.

    Attributes
    ----------
    rho : ndarray
        Logarithms of the smoothing parameters; of new terms, where to begin.
    fixed : ndarray of bool
        Which of them stay.
    beta, edf : ndarray
        Coefficients and their degrees of freedom; zero for new terms.
    """

    rho: np.ndarray
    fixed: np.ndarray
    beta: np.ndarray
    edf: np.ndarray


def fit_outputs(
    design: AdditiveDesign, losses: Sequence[Loss], settings: GamSettings,
    before: RoughModel | None = None, caches: Sequence[GramCache] = (),
) -> FittedDesign:  # fmt: skip
    """Fit all outputs exactly.

    Parameters
    ----------
    design, losses, settings
        The model.
    before : RoughModel, optional
        A model with some of the terms, to start from.
    caches : sequence of GramCache
        ZᵀWZ of terms of these rows, by output, with `before`: for squared loss.
    """
    if design.joint_loss is not None:
        return _fit_jointly(design, design.joint_loss, settings)
    fits = []
    for output, loss in enumerate(losses):
        rows = design.rows.with_terms(design.ordered_terms, design.constraint_matrix(), output)
        rho, fixed = _initial_smoothing(design, settings)
        beta = None
        if before is not None:
            start = _warm_start(design, before, output, rho)
            highest = np.log(design.total_weight) + ADDING.max_start_over_rows
            highest = np.where(unscreened_smoothing(rows, fixed), highest, np.inf)
            estimate = np.minimum(start.rho, highest)
            estimate = ADDING.start_grid * np.round(estimate / ADDING.start_grid)
            rho, beta = np.where(fixed, rho, estimate), start.beta
            if isinstance(rows, TermRows) and caches[output].has(rows.bases):
                rows = replace(rows, gram_cache=caches[output])
        fits.append(fit_penalised(
            rows, loss, rho, fixed, settings.max_iter, beta, settings.estimates_parameter
        ))  # fmt: skip
    return FittedDesign(design, fits)


def _fit_jointly(design: AdditiveDesign, loss: JointLoss, settings: GamSettings) -> FittedDesign:
    """Fit all linear predictors of a loss."""
    predictors = Predictors(loss.n_predictors, loss.shares_smoothing)
    rows = replace(design.rows.with_terms(design.ordered_terms, None, None), predictors=predictors)
    constants = replace(design.rows.with_terms((), None, None), predictors=predictors)
    null = constants.evaluate(loss, np.asarray(constants.initial_intercept(loss))).value
    rho, fixed = _initial_smoothing(design, settings)
    if not loss.shares_smoothing:
        rho, fixed = np.repeat(rho, predictors.count), np.repeat(fixed, predictors.count)
    for k, columns in enumerate(settings.columns_of_predictors):
        for term, _, smoothing in design.slices():
            if columns is not None and not columns.issuperset(term.columns):
                positions = np.arange(len(rho)).reshape(-1, predictors.count)[smoothing, k]
                rho[positions], fixed[positions] = REML.absent, True
    fit = fit_penalised(rows, loss, rho, fixed, max_iter=settings.max_iter)
    penalty = Penalties.from_bases(design.bases, predictors).diagonal(fit.rho)
    n = design.total_weight
    totals = LossTotals(n, 0.0, null, n * loss.base)
    return FittedDesign(design, split_fit(fit, loss), JointFit(loss, fit, penalty, totals))


def split_fit(fit: PenalisedFit, loss: JointLoss) -> list[PenalisedFit]:
    """The fits of the outputs of a loss, which are combinations of its predictors.

    Of scores that sum to zero, that of one class has the variance of its combination, and as many
    degrees of freedom as its share of the predictors' coefficients has.
    """
    m, coding = loss.n_predictors, loss.coding
    matrix, edf = fit.beta.reshape(-1, m), fit.edf.reshape(-1, m)
    rho = [fit.rho if loss.shares_smoothing else fit.rho[k::m] for k in range(m)]
    if isinstance(fit.posterior, IndependentCovariance):
        if loss.shares_smoothing:  # scores that sum to zero
            matrix = matrix - matrix.mean(axis=1, keepdims=True)
        outputs, pairs = [], zip(fit.posterior.parts, fit.posterior.places, strict=True)
        for k, (part, index) in enumerate(pairs):
            unit = float(coding[k, k])
            beta = unit * matrix[:, k]
            beta[0] += loss.shift[k]
            outputs.append(replace(
                fit, beta=beta, active=fit.active[index] // m, posterior=part.scale(unit**2),
                smoothing_deviations=unit * fit.smoothing_deviations[index],
                rho=rho[k] - 2 * np.log(unit), edf=edf[:, k],
            ))  # fmt: skip
        return outputs
    active = np.unique(fit.active // m)
    n = len(active)
    covariance = fit.covariance.reshape(n, m, n, m)
    deviations = fit.smoothing_deviations.reshape(n, m, -1)
    outputs = []
    for share in coding:
        output_covariance = np.einsum("a,iajb,b->ij", share, covariance, share, optimize=True)
        edf_of_output = edf @ share**2
        lost = (1 - edf.reshape(-1, m)[active, 0]) / fit.covariance.diagonal()[::m]  # the penalty
        edf_of_output[active] = share @ share - lost * output_covariance.diagonal()
        outputs.append(replace(
            fit, beta=matrix @ share, active=active, posterior=BlockCovariance(output_covariance),
            smoothing_deviations=np.tensordot(deviations, share, (1, 0)), rho=rho[0],
            edf=edf_of_output,
        ))  # fmt: skip
    return outputs


def fit_outputs_roughly(
    design: AdditiveDesign, losses: Sequence[Loss], settings: GamSettings, before: RoughModel,
    caches: Sequence[GramCache],
) -> RoughModel:  # fmt: skip
    """Fit all outputs: the smoothing parameters of terms in `before` stay as they are."""
    fits = []
    for output, loss in enumerate(losses):
        rows = design.rows.with_terms(design.ordered_terms, design.constraint_matrix(), output)
        if loss.is_quadratic and isinstance(rows, TermRows):
            rows = replace(rows, gram_cache=caches[output])
        rho, fixed = _initial_smoothing(design, settings)
        start = _warm_start(design, before, output, rho)
        rho = np.where(fixed, rho, start.rho)
        fits.append(fit_added_terms(rows, loss, start._replace(rho=rho, fixed=fixed | start.fixed)))
    return RoughModel(design, fits)


def _initial_smoothing(
    design: AdditiveDesign, settings: GamSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the smoothing parameters to start from, and which of them are fixed."""
    rho, fixed = [], []
    for term in design.ordered_terms:
        smoothing, count = settings.smoothing, term.basis.n_smoothing
        if term.kind == "parametric":
            smoothing = REML.no_penalty
        elif isinstance(smoothing, dict):
            smoothing = smoothing.get(term.columns[0]) if len(term.columns) == 1 else None
        start = design.total_weight if smoothing is None else max(smoothing, 1e-300)
        rho += [np.log(start)] * count
        if smoothing is None and term.basis.has_null_space:
            rho[-1] -= REML.free_null_space
        fixed += [smoothing is not None] * count
    return np.array(rho, float), np.array(fixed, bool)


def _warm_start(
    design: AdditiveDesign, before: RoughModel, output: int, rho: np.ndarray
) -> WarmStart:
    """Start from an earlier fit; smoothing parameters of terms that have not changed are fixed."""
    fit, old = before.fits[output], {item[0].columns: item for item in before.design.slices()}
    beta = np.zeros(1 + sum(basis.n_functions for basis in design.bases))
    rho, fixed, edf = rho.copy(), np.zeros(len(rho), bool), np.zeros(len(beta))
    beta[0], edf[0] = fit.beta[0], 1.0
    for term, span, smoothing in design.slices():
        if term.columns not in old:
            continue
        old_term, old_span, old_smoothing = old[term.columns]
        rho[smoothing] = fit.rho[old_smoothing]
        if old_term.basis is term.basis:
            fixed[smoothing] = True
            beta[span], edf[span] = fit.beta[old_span], fit.edf[old_span]
        else:
            beta[span] = _project(term, old_term.basis.evaluate(fit.beta[old_span]))
    return WarmStart(rho, fixed, beta, edf)


def _project(term: DesignTerm, values: np.ndarray) -> np.ndarray:
    """Coefficients of a term's functions, orthonormal or levels, closest to values at its codes."""
    if isinstance(term.basis, LevelBasis):
        return values
    counts = term.counts.ravel()
    return term.basis.values.T @ (counts * values) / max(float(counts.sum()), 1e-300)


def fit_added_terms(rows: SolverRows, loss: Loss, start: WarmStart) -> RoughFit:
    """Fit rows roughly: the edf of old terms stay as they were."""
    all_penalties = Penalties.from_bases(rows.bases)
    # All coefficients of new terms, and those of the others that penalties leave something of.
    is_active = _is_new(all_penalties, start)
    is_active[all_penalties.active_set(start.rho, rows.total_weight)] = True
    active = np.flatnonzero(is_active)
    penalties = all_penalties.restrict(active)
    constraints = None if rows.constraints is None else rows.constraints[:, active]
    active_rows = rows.restrict(active)
    with limit_blas(blas_threads(len(active))):
        if loss.is_quadratic:
            # A cached Gram matrix has all coefficients, which are too many for tables of many
            # columns.
            if isinstance(rows, TermRows) and rows.gram_cache is None:
                problem, mean = active_rows.squared_problem()
            else:
                problem, mean = rows.squared_problem()
                problem = problem.restrict(active)
            fit = fit_bordered(problem, penalties, start, loss.dispersion, constraints)
            beta = fit.beta.copy()
            beta[0] += mean
        else:
            point = active_rows.evaluate(loss, start.beta[active])
            working = point.working_problem()
            assert isinstance(working, NormalEquations)  # outputs are fitted one by one
            problem = working
            fit = fit_bordered(problem, penalties, start, loss.dispersion, constraints)
            objective = Objective(active_rows, loss, penalties.diagonal(fit.rho))
            point, _ = damped_step(objective, point, fit.beta)
            if objective.allows_quasi_newton:
                point, _, _ = quasi_newton_steps(objective, point, fit.solve, ADDING.tol)
            beta = point.beta
    edf = start.edf.copy()
    edf[active[fit.new]] = fit.new_edf
    beta = scatter(beta, active, len(all_penalties.scale))
    return RoughFit(beta, edf, fit.rho, fit.dispersion)


def _is_new(penalties: Penalties, start: WarmStart) -> np.ndarray:
    """Which coefficients have smoothing parameters that are not fixed."""
    return np.append(~start.fixed, False)[penalties.smoothing_index]  # the last for index −1


class BorderedFit(NamedTuple):
    """The minimum of a working problem with new coefficients as the border of the old ones.

    Attributes
    ----------
    beta, rho, dispersion
        As in `RoughFit`.
    new, new_edf : ndarray
        Positions of the new coefficients, and their degrees of freedom.
    solve : callable
        (G + diag(d))⁻¹ times a vector.
    """

    beta: np.ndarray
    rho: np.ndarray
    dispersion: float
    new: np.ndarray
    new_edf: np.ndarray
    solve: Callable[[np.ndarray], np.ndarray]


def fit_bordered(
    problem: NormalEquations, penalties: Penalties, start: WarmStart, dispersion: float | None,
    constraints: np.ndarray | None = None,
) -> BorderedFit:  # fmt: skip
    """Estimate the smoothing parameters that are not fixed, and fit; see the module's docstring.

    Constraints need an inverse of all coefficients: with `constraints`, all count as new.
    """
    is_new = _is_new(penalties, start)
    if constraints is not None or not is_new.any():
        is_new[:] = True
    old, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
    factor, gram, right = np.zeros((0, 0)), problem.gram, problem.rhs
    if len(old):
        factor = cholesky_factor(gram[np.ix_(old, old)], penalties.diagonal(start.rho)[old])

    def solve_factor(rhs: np.ndarray, transposed: int = 0) -> np.ndarray:
        """L⁻¹ or L⁻ᵀ times a right side, with LLᵀ = A."""
        return lapack.dtrtrs(factor, rhs, lower=1, trans=transposed)[0] if len(old) else rhs

    cross, old_right = solve_factor(gram[np.ix_(old, new)]), solve_factor(right[old])
    schur = NormalEquations(
        gram[np.ix_(new, new)] - cross.T @ cross, right[new] - old_right @ cross,
        problem.square - float(old_right @ old_right), problem.total_weight,
        variance_slopes=problem.variance_slopes,
    )  # fmt: skip
    new_penalties, groups = penalties.restrict_to_groups(new)
    prior = replace(new_penalties.prior, working_weight=problem.working_weight)
    new_penalties = replace(new_penalties, prior=prior)
    fit = estimate_smoothing(
        schur, new_penalties, start.rho[groups], dispersion, start.fixed[groups],
        tol=ADDING.reml_tol,
    )  # fmt: skip

    def join(new_part: np.ndarray, old_rhs: np.ndarray) -> np.ndarray:
        """All coefficients from the new ones, and from L⁻¹ times the right side of the others."""
        joined = np.empty(len(is_new))
        joined[new] = new_part
        joined[old] = solve_factor(old_rhs - cross @ new_part, transposed=1)
        return joined

    def solve(rhs: np.ndarray) -> np.ndarray:
        old_rhs = solve_factor(rhs[old])
        return join(fit.inverse.dense @ (rhs[new] - old_rhs @ cross), old_rhs)

    rho = start.rho.copy()
    rho[groups] = fit.rho
    beta = constrained_minimum(join(fit.beta, old_right), fit.inverse, constraints)
    new_edf = 1 - penalties.diagonal(rho)[new] * fit.inverse.diagonal()
    return BorderedFit(beta, rho, fit.dispersion, new, new_edf, solve)
