r"""Terms that are added to a fit: their smoothing parameters, given those of the terms before them.

With the coefficients divided into old and new ones, and the smoothing parameters of the old ones
fixed, the restricted likelihood of the new smoothing parameters is that of the smaller problem

.. math:: S = G_{nn} - G_{no} A^{-1} G_{on}, \qquad s = r_n - G_{no} A^{-1} r_o,
          \qquad p = q - r_o^\top A^{-1} r_o, \qquad A = G_{oo} + \mathrm{diag}(d_o),

(S the Schur complement) up to :math:`\log|A|`, which is constant: REML for the new terms costs
inverses of their size, and the coefficients of all terms follow from these and from the Cholesky
factor of A.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import lapack

from ..._util.threads import limit_blas
from ..losses import Loss, Squared
from ..rows.normal_equations import NormalEquations
from ..rows.term_rows import EvaluationInMemory, LossEvaluation, SolverRows, TermRows
from ..solvers.inequalities import constrained_minimum
from ..solvers.linear_systems import blas_threads, cholesky_factor, cholesky_solve, scatter
from ..solvers.newton import Objective, damped_step, quasi_newton_steps
from ..solvers.pirls import PenalisedFit
from ..solvers.reml import Penalties, WorkingFit, estimate_smoothing


@dataclass(frozen=True)
class AddingTerms:
    """Constants of rough fits; the model that a search ends with is fitted exactly."""

    # Relative decrement of the objective at the end of the steps for new terms: what is left is
    # far below what decides on a pair.
    tol: float = 1e-3
    # Derivative of the REML criterion at the end: with 1, that of models that are refitted, a pair
    # of few cells stays at the smoothing parameter that it starts with, which leaves nothing of it.
    reml_tol: float = 0.1
    # Relative decrement for steps towards the minimum of the last model, which PIRLS starts from.
    approach_tol: float = 1e-6


ADDING = AddingTerms()


@dataclass(frozen=True)
class WarmStart:
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


@dataclass(frozen=True)
class RoughFit:
    """What a search for terms needs of a fit; the last model is fitted exactly.

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

    @classmethod
    def of(cls, fit: PenalisedFit) -> RoughFit:
        """The same without the posterior."""
        return cls(fit.beta, fit.edf, fit.rho, fit.dispersion)


def fit_added_terms(rows: SolverRows, loss: Loss, start: WarmStart) -> RoughFit:
    """Fit rows roughly: the edf of old terms stay as they were."""
    all_penalties = Penalties.of_bases(rows.bases)
    active = _active_set(all_penalties, start, rows.total_weight)
    penalties = all_penalties.restricted(active)
    constraints = None if rows.constraints is None else rows.constraints[:, active]
    with limit_blas(blas_threads(len(active))):
        if isinstance(loss, Squared):
            problem, mean = _squared_problem(rows, active)
            fit = fit_bordered(problem, penalties, start, loss.dispersion, constraints)
            beta = fit.beta.copy()
            beta[0] += mean
        else:
            active_rows = rows.restricted(active)
            point = active_rows.at(loss, start.beta[active])
            problem = _working_problem(point, rows, active)
            fit = fit_bordered(problem, penalties, start, loss.dispersion, constraints)
            objective = Objective(active_rows, loss, penalties.diagonal(fit.rho))
            point, _ = damped_step(objective, point, fit.beta)
            if objective.allows_quasi_newton:
                point, _, _ = quasi_newton_steps(objective, point, fit.solve, ADDING.tol)
            beta = point.beta
    edf = start.edf.copy()
    edf[active[fit.border.new]] = fit.edf_of_new(penalties)
    beta = scatter(beta, active, len(all_penalties.scale))
    return RoughFit(beta, edf, fit.rho, fit.working_fit.dispersion)


def _active_set(penalties: Penalties, start: WarmStart, total_weight: float) -> np.ndarray:
    """All coefficients of new terms, and those of the others that penalties leave something of."""
    active = np.append(~start.fixed, False)[penalties.smoothing_index]  # the last for index −1
    active[penalties.active_set(start.rho, total_weight)] = True
    return np.flatnonzero(active)


def _squared_problem(rows: SolverRows, active: np.ndarray) -> tuple[NormalEquations, float]:
    """The problem of squared loss in the active set, by the Gram cache if the rows have one.

    All coefficients of a table with many columns would be too many for a Gram matrix.
    """
    if isinstance(rows, TermRows) and rows.gram_cache is None:
        return rows.restricted(active).squared_problem()
    problem, mean = rows.squared_problem()
    return problem.restricted(active), mean


def _working_problem(
    point: LossEvaluation, rows: SolverRows, active: np.ndarray
) -> NormalEquations:
    """The working problem in the active set, by the Gram cache of the rows if they have one."""
    cached = rows if isinstance(rows, TermRows) and rows.gram_cache is not None else None
    if cached is None or not isinstance(point, EvaluationInMemory):
        return point.working_problem()
    return point.working_problem(cached).restricted(active)


def approach_minimum(
    rows: SolverRows, loss: Loss, rho: np.ndarray, beta: np.ndarray, gram: np.ndarray
) -> np.ndarray:
    """Coefficients near the minimum for given smoothing parameters, by quasi-Newton steps.

    `gram` is about ZᵀWZ of these rows.
    """
    penalties = Penalties.of_bases(rows.bases)
    active = penalties.active_set(rho, rows.total_weight)
    diagonal = penalties.restricted(active).diagonal(rho)
    objective = Objective(rows.restricted(active), loss, diagonal)
    if not objective.allows_quasi_newton:
        return beta
    with limit_blas(blas_threads(len(active))):
        factor = cholesky_factor(gram[np.ix_(active, active)], diagonal)
        point, _, _ = quasi_newton_steps(
            objective, objective.at(beta[active]), partial(cholesky_solve, factor),
            ADDING.approach_tol,
        )  # fmt: skip
    return scatter(point.beta, active, len(penalties.scale))


@dataclass(frozen=True)
class BorderedSystem:
    """New coefficients as the border of a system in the old ones; see the module's docstring.

    Attributes
    ----------
    old, new : ndarray of int
        Positions of the coefficients.
    factor, cross, old_rhs : ndarray
        L with LLᵀ = A, L⁻¹G_on and L⁻¹r_o.
    """

    old: np.ndarray
    new: np.ndarray
    factor: np.ndarray
    cross: np.ndarray
    old_rhs: np.ndarray

    @classmethod
    def of(
        cls, problem: NormalEquations, diagonal: np.ndarray, is_new: np.ndarray
    ) -> BorderedSystem:
        old, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
        if not len(old):
            return cls(old, new, np.zeros((0, 0)), np.zeros((0, len(new))), np.zeros(0))
        factor = cholesky_factor(problem.gram[np.ix_(old, old)], diagonal[old])
        border = np.column_stack([problem.gram[np.ix_(old, new)], problem.rhs[old]])
        border = lapack.dtrtrs(factor, border, lower=1)[0]
        return cls(old, new, factor, border[:, :-1], border[:, -1])

    def schur_complement(self, problem: NormalEquations) -> NormalEquations:
        """S, s and p."""
        return NormalEquations(
            problem.gram[np.ix_(self.new, self.new)] - self.cross.T @ self.cross,
            problem.rhs[self.new] - self.old_rhs @ self.cross,
            problem.square - float(self.old_rhs @ self.old_rhs), problem.total_weight,
        )  # fmt: skip

    def all_coefficients(self, of_new: np.ndarray, old_rhs: np.ndarray) -> np.ndarray:
        """All coefficients from the new ones, and from L⁻¹ times the right side of the others."""
        beta = np.empty(len(self.old) + len(self.new))
        beta[self.new] = of_new
        if len(self.old):
            rhs = old_rhs - self.cross @ of_new
            beta[self.old] = lapack.dtrtrs(self.factor, rhs, lower=1, trans=1)[0]
        return beta

    def solve(self, inverse: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """(G + diag(d))⁻¹ times a vector, from the inverse of the new block."""
        old_rhs = rhs[self.old]
        if len(old_rhs):
            old_rhs = lapack.dtrtrs(self.factor, old_rhs, lower=1)[0]
        of_new = inverse @ (rhs[self.new] - old_rhs @ self.cross)
        return self.all_coefficients(of_new, old_rhs)


@dataclass(frozen=True)
class BorderedFit:
    """The minimum of a working problem, its smoothing parameters, and the fit of the new block."""

    border: BorderedSystem
    working_fit: WorkingFit
    beta: np.ndarray
    rho: np.ndarray

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """(G + diag(d))⁻¹ times a vector."""
        return self.border.solve(self.working_fit.inverse.dense, rhs)

    def edf_of_new(self, penalties: Penalties) -> np.ndarray:
        """Degrees of freedom of the new coefficients."""
        diagonal = penalties.diagonal(self.rho)[self.border.new]
        return 1 - diagonal * self.working_fit.inverse.diagonal()


def fit_bordered(
    problem: NormalEquations, penalties: Penalties, start: WarmStart, dispersion: float | None,
    constraints: np.ndarray | None = None,
) -> BorderedFit:  # fmt: skip
    """Estimate the smoothing parameters that are not fixed, and fit.

    Constraints need an inverse of all coefficients: with `constraints`, all count as new.
    """
    is_new = np.append(~start.fixed, False)[penalties.smoothing_index]  # the last for index −1
    if constraints is not None or not is_new.any():
        is_new[:] = True
    border = BorderedSystem.of(problem, penalties.diagonal(start.rho), is_new)
    new_penalties, groups = penalties.restricted_to_groups(border.new)
    if new_penalties.prior is not None:
        prior = replace(new_penalties.prior, working_weight=problem.working_weight)
        new_penalties = replace(new_penalties, prior=prior)
    fit = estimate_smoothing(
        border.schur_complement(problem), new_penalties, start.rho[groups], dispersion,
        start.fixed[groups], tol=ADDING.reml_tol,
    )  # fmt: skip
    rho = start.rho.copy()
    rho[groups] = fit.rho
    beta = border.all_coefficients(fit.beta, border.old_rhs)
    return BorderedFit(border, fit, constrained_minimum(beta, fit.inverse, constraints), rho)
