r"""Penalised iteratively re-weighted least squares (PIRLS) with estimated smoothing parameters.

.. math:: \min_β \sum_i c_i\,ℓ(y_i, o_i + z_i^\top β) + ½ β^\top \mathrm{diag}(d) β,
          \qquad d_i = λ_{g(i)} s_i.

1. *Performance iteration* (Gu 1992; Wood 2017, section 6.4): form the working least-squares problem
   at β, take some Newton steps on ρ = log λ towards the penalised REML estimate for it
   (:mod:`.reml`), and go to its minimum, halving the step while the penalised loss would rise.
   Repeat until the effective degrees of freedom of all terms stay the same. A loss with nearly a
   kink begins with that of a wider one (:meth:`..losses.Loss.start_loss`).
2. *Newton's method* for these smoothing parameters, to the minimum (:mod:`.newton`).
3. The posterior covariance, from the last working problem.

The working problem of squared loss is the problem itself: there, 1 is one REML estimate.

A curve has many basis functions, and estimated smoothing parameters leave little of most of them.
Steps are taken in the *active set* of coefficients that penalties leave something of
(:meth:`.reml.Penalties.active_set`); the others are zero. The set begins with the smoothest
functions of each term, or with very many coefficients with the null spaces of terms alone (straight
lines, mostly). Once smoothing parameters stay, other ones may promise a gain, those of a wiggly
curve that strong effects have hidden (:func:`.reml.entering_smoothing`): then they are estimated
again, with the functions that these need. With very many coefficients, each step looks for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._util.threads import limit_blas
from ..losses import Loss
from ..rows.normal_equations import WorkingProblem
from ..rows.term_rows import LossEvaluation, SolverRows, TermRows
from .linear_systems import Covariance, blas_threads, constrained_minimum, rearrange_rows, scatter
from .newton import NEWTON, Objective, damped_step, halved_step, minimise, quasi_newton_steps
from .reml import (
    REML,
    Penalties,
    WorkingFit,
    coarse_smoothing,
    entering_smoothing,
    estimate_deviations,
    estimate_smoothing,
    penalised_fit,
    smoothing_deviations,
)


@dataclass(frozen=True)
class PirlsOptions:
    """Constants of PIRLS."""

    # Steps on ρ for each step on β: few from a cold start, since the next working problem is
    # another one; from the fit of nearly the same model, enough to reach the estimate.
    reml_steps: int = 3
    reml_steps_warm: int = 10
    # Smoothing parameters stay once no term's edf changes by more than this many degrees of
    # freedom, or this share of all; at the latest after `max_performance_iter` steps, since
    # performance iteration may cycle (Wood 2017, section 6.4).
    settled_edf: float = 0.1
    settled_edf_share: float = 0.002
    max_performance_iter: int = 15
    # Decimals that ρ is rounded to: during the iteration, so that steps do not amplify the rounding
    # errors of those before them; and of the final ρ, so that rounding errors do not change it:
    # with 3 decimals, probabilities change by 0.002 (in the fits of `RemlOptions`).
    rho_decimals: int = 3
    final_rho_decimals: int = 1
    # From a warm start: decrement of the penalised loss, in units of φ, beyond a working problem
    # whose smoothing parameters are taken as those of the fit; half a unit of log-likelihood.
    negligible_decrement: float = 0.5
    # Derivative of the REML criterion at the end for squared loss, which has one working problem.
    squared_tol: float = 0.1
    # Coefficients from which on terms are screened: REML costs the cube of those in the model.
    screen_above: int = 1000
    max_searches: int = 6  # for what enters; later it is hardly more than noise
    reml_steps_screened: int = 15  # at the end; further ones move edf by a few per cent of all
    # Largest change of a loss's parameter between steps at the end, relative to its size, and while
    # smoothing parameters are estimated: the standard error of one in 10⁵ rows, and of 10³.
    parameter_tol: float = 1e-3
    settled_parameter: float = 1e-2
    max_parameter_iter: int = 20  # for a change that falls to a half at each step
    # Of several linear predictors, L-BFGS steps follow each step to a minimum until their decrement
    # is this share of the penalised loss. Without them, the working responses of rows with a small
    # probability are so large that smoothing parameters follow these (log loss of 2000 held-out
    # rows of pendigits: 0.129 instead of 0.090).
    tol_of_predictors: float = 1e-5
    # An active set shrinks if at most this share of it remains; each change costs a few more steps
    # (x1.1 to x1.3 of the time on 20,000 rows with 1).
    shrink_below: float = 0.9


PIRLS = PirlsOptions()


@dataclass(frozen=True)
class PenalisedFit:
    """Coefficients, smoothing parameters and the posterior of a fit.

    Attributes
    ----------
    beta : ndarray
        Coefficients, the intercept first.
    active : ndarray of int
        The coefficients that are not left out.
    posterior : Covariance
        Posterior covariance of those for these smoothing parameters.
    smoothing_deviations : ndarray
        C, where CCᵀ is what the uncertainty of these adds.
    smoothing_edf : float
        Degrees of freedom that estimating them uses, tr(CCᵀ ZᵀWZ)/φ (Wood, Pya and Säfken 2016).
    rho : ndarray
        Logarithms of the smoothing parameters.
    edf : ndarray
        Effective degrees of freedom of each coefficient.
    dispersion, objective : float
        φ, and the penalised loss.
    n_iter : int
        Steps, each at least one pass over the rows.
    converged, smoothing_converged : bool
        Whether the coefficients are those of the minimum, and the smoothing parameters too.
    loss : Loss
        With the parameter that was estimated, if there is one.
    """

    beta: np.ndarray
    active: np.ndarray
    posterior: Covariance
    smoothing_deviations: np.ndarray
    smoothing_edf: float
    rho: np.ndarray
    edf: np.ndarray
    dispersion: float
    objective: float
    n_iter: int
    converged: bool
    smoothing_converged: bool
    loss: Loss

    @property
    def covariance(self) -> np.ndarray:
        """Posterior covariance of the active coefficients that are not levels."""
        return self.posterior.dense

    def active_in(self, span: slice) -> np.ndarray:
        """Positions in the active set of the coefficients of a term, which are at `span`."""
        return np.arange(*np.searchsorted(self.active, [span.start, span.stop]))


def fit_penalised(
    rows: SolverRows, loss: Loss, rho: np.ndarray, fixed: np.ndarray | None = None,
    max_iter: int = 100, beta: np.ndarray | None = None, estimates_parameter: bool = False,
) -> PenalisedFit:  # fmt: skip
    """Fit rows with smoothing parameters that are estimated, or `fixed`.

    Parameters
    ----------
    rows : SolverRows
    loss : Loss
    rho : ndarray
        Logarithms of the smoothing parameters to start from.
    fixed : ndarray of bool, optional
        Which of them stay.
    max_iter : int
        Most working problems; squared loss has one.
    beta : ndarray, optional
        Coefficients for a warm start, of a fit with almost the same terms and with these smoothing
        parameters.
    estimates_parameter : bool
        Whether the parameter of the loss is a start, and estimated with the smoothing parameters.
    """
    penalties = Penalties.from_bases(rows.bases, rows.predictors)
    fixed = np.zeros(len(rho), bool) if fixed is None else fixed
    # Screening leaves about one coefficient for each term.
    n_coefficients = min(penalties.n_dense, max(PIRLS.screen_above, 2 * len(rows.bases)))
    with limit_blas(blas_threads(n_coefficients)):
        if loss.is_quadratic:
            return _fit_squared(rows, loss, penalties, rho, fixed, warm=beta is not None)
        selection = SmoothingSelection(
            rho, fixed, loss.dispersion, beta is not None, estimates_parameter
        )
        return _fit_pirls(rows, loss, penalties, selection, max_iter, beta)


# ---- the active set -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ActiveSet:
    """The coefficients that steps are taken on, with the rows and penalties of these alone.

    Attributes
    ----------
    all_rows, all_penalties
        Those of all coefficients.
    indices : ndarray of int
        The coefficients of the set.
    rows, penalties
        Those of the set.
    """

    all_rows: SolverRows
    all_penalties: Penalties
    indices: np.ndarray
    rows: SolverRows
    penalties: Penalties

    @classmethod
    def from_indices(cls, rows: SolverRows, penalties: Penalties, indices: np.ndarray) -> ActiveSet:
        if len(indices) == len(penalties.scale):
            return cls(rows, penalties, indices, rows, penalties)
        return cls(rows, penalties, indices, rows.restrict(indices), penalties.restrict(indices))

    @property
    def screened(self) -> bool:
        """Whether there are so many coefficients that terms have to earn their place."""
        return self.all_penalties.n_dense > PIRLS.screen_above * self.all_penalties.n_sharing

    def update(self, rho: np.ndarray, working_weight: float, final: bool) -> ActiveSet:
        """The active set of other smoothing parameters.

        It stays as it is if it would shrink by little, unless these smoothing parameters are
        `final`: which coefficients the result has must not depend on the way to it.
        """
        indices = self.all_penalties.active_set(rho, working_weight, self.screened)
        max_size = len(self.indices) if final else PIRLS.shrink_below * len(self.indices)
        if len(indices) >= max_size and np.isin(indices, self.indices).all():
            return self
        return ActiveSet.from_indices(self.all_rows, self.all_penalties, indices)

    def enlarge(
        self, rho: np.ndarray, fixed: np.ndarray, beta: np.ndarray, gradient: np.ndarray,
        working_weight: float, dispersion: float,
    ) -> tuple[ActiveSet, np.ndarray]:  # fmt: skip
        """The active set with what promises to gain at some β, and the smoothing parameters.

        `gradient` holds the derivatives of the losses by all coefficients.
        """
        penalties = self.all_penalties
        entering = entering_smoothing(
            penalties, rho, self.scatter(beta), gradient, working_weight,
            self.rows.total_weight, dispersion,
        )  # fmt: skip
        rho = np.where(fixed, rho, entering)
        needed = penalties.active_set(rho, working_weight, self.screened)
        if np.isin(needed, self.indices).all():
            return self, rho
        return ActiveSet.from_indices(
            self.all_rows, penalties, np.union1d(self.indices, needed)
        ), rho

    def scatter(self, values: np.ndarray) -> np.ndarray:
        """A vector or matrix of the set in all coefficients: zero for the others."""
        return scatter(values, self.indices, len(self.all_penalties.scale))


def unscreened_smoothing(rows: SolverRows, fixed: np.ndarray) -> np.ndarray:
    """Smoothing parameters of functions that enter a fit of these rows without a screening.

    `fixed` as in `fit_penalised`.
    """
    penalties = Penalties.from_bases(rows.bases, rows.predictors)
    if penalties.n_dense > PIRLS.screen_above and _may_restrict(rows, fixed):
        return penalties.is_unscreened
    return np.ones(penalties.count, bool)


def _may_restrict(rows: SolverRows, fixed: np.ndarray) -> bool:
    """Whether to use an active set: for estimated smoothing parameters without constraints."""
    return rows.constraints is None and not fixed.all()


def _without_range_spaces(penalties: Penalties, rho: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """ρ to start with if terms are screened: only null spaces are in the model."""
    return np.where(fixed | penalties.is_unscreened, rho, REML.max_log_over_rows + rho)


# ---- squared loss -------------------------------------------------------------------------------


def _fit_squared(
    rows: SolverRows, loss: Loss, penalties: Penalties, rho: np.ndarray, fixed: np.ndarray,
    warm: bool,
) -> PenalisedFit:  # fmt: skip
    """One working problem: REML in an active set, which grows until it has all that it needs."""
    tol = REML.rough_tol if warm else PIRLS.squared_tol
    active = ActiveSet.from_indices(rows, penalties, np.arange(len(penalties.scale)))
    n, phi, may_restrict = rows.total_weight, loss.dispersion, _may_restrict(rows, fixed)
    screened, entered = active.screened and may_restrict, fixed
    all_problem = None
    cache = rows.gram_cache if isinstance(rows, TermRows) else None
    if not screened or (cache is not None and cache.has(rows.bases)):
        all_problem, mean = rows.squared_problem()
    if not warm and screened:
        rho = _without_range_spaces(penalties, rho, fixed)
    elif not warm and all_problem is not None:
        rho = coarse_smoothing(all_problem, penalties, rho, phi, fixed)
    if may_restrict:
        active = active.update(rho, n, final=True)
    for n_left in range(PIRLS.max_searches, -1, -1):
        if all_problem is None:
            problem, mean = active.rows.squared_problem()
        else:
            problem = all_problem.restrict(active.indices)
        loop_tol = REML.rough_tol if screened else tol
        fit = estimate_smoothing(problem, active.penalties, rho, phi, fixed, tol=loop_tol)
        if not (n_left and may_restrict):
            break
        beta = active.scatter(fit.beta)
        if all_problem is None:
            beta[0] += mean
            gradient = rows.gradient(loss, beta)
        else:
            gradient = all_problem.product(beta) - all_problem.rhs
        larger, rho = active.enlarge(fit.rho, entered, fit.beta, gradient, n, fit.dispersion)
        if larger is active and np.array_equal(rho, fit.rho):
            break
        entered = entered | (rho != fit.rho)
        active = larger.update(rho, n, final=True)
    if screened and tol < REML.rough_tol:
        max_steps = PIRLS.reml_steps_screened
        fit = estimate_smoothing(problem, active.penalties, fit.rho, phi, fixed, max_steps, tol)
    deviations = smoothing_deviations(fit, problem, active.penalties, ~fixed, phi is None)
    beta = constrained_minimum(fit.beta, fit.inverse, rows.constraints).copy()
    system = problem.product(beta) + active.penalties.diagonal(fit.rho) * beta
    objective = 0.5 * (problem.square - 2 * problem.rhs @ beta + beta @ system)
    beta[0] += mean
    return PenalisedFit(
        active.scatter(beta), active.indices, fit.inverse.scale(fit.dispersion), deviations,
        _smoothing_edf(fit, problem, deviations), fit.rho,
        fit.edf_of_all(active.indices, penalties, n), fit.dispersion, float(objective), 1, True,
        fit.converged, loss,
    )  # fmt: skip


def _smoothing_edf(fit: WorkingFit, problem: WorkingProblem, deviations: np.ndarray) -> float:
    """tr(CCᵀG)/φ."""
    return float(np.sum(deviations * problem.product(deviations)) / fit.dispersion)


# ---- other losses -------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkingSolution:
    """The fit of a working problem in an active set."""

    fit: WorkingFit
    active: ActiveSet
    problem: WorkingProblem

    def inverse_in(self, active: ActiveSet) -> Covariance:
        """The inverse of the problem in the coefficients of another active set."""
        penalties, indices = self.active.all_penalties, self.active.indices
        return self.fit.inverse_in(active.indices, indices, penalties, self.problem.working_weight)


@dataclass(frozen=True)
class PirlsState:
    """Where an iteration is.

    Attributes
    ----------
    active, point : ActiveSet, LossEvaluation
        β in an active set, and the losses there.
    loss : Loss
        The loss that these are of, with its share of a majorizer.
    solution : WorkingSolution, optional
        Of the last working problem.
    n_hessians, n_steps : int
        Working problems of performance iteration, and all steps, with or without a new problem.
    converged : bool
    """

    active: ActiveSet
    point: LossEvaluation
    loss: Loss
    solution: WorkingSolution | None = None
    n_hessians: int = 0
    n_steps: int = 0
    converged: bool = False


def _fit_pirls(
    rows: SolverRows, loss: Loss, penalties: Penalties, selection: SmoothingSelection,
    max_iter: int, beta: np.ndarray | None,
) -> PenalisedFit:  # fmt: skip
    """The three phases of the module's docstring."""
    active = _initial_active_set(rows, penalties, selection)
    if beta is None:
        beta = np.zeros(len(penalties.scale))
        beta[: rows.n_intercepts] = rows.initial_intercept(loss)
    beta = beta[active.indices]
    start_loss = loss if selection.warm or selection.settled else loss.start_loss()
    state = PirlsState(active, active.rows.evaluate(start_loss, beta), start_loss)
    for current in (start_loss, loss) if start_loss != loss else (loss,):
        if current != start_loss:  # smoothing parameters are estimated further
            selection.settled, selection._edf, selection._n_iter = False, np.inf, 1
            point = state.active.rows.evaluate(loss, state.point.beta)
            state = replace(state, point=point, loss=loss, converged=False)
        while not (selection.settled or state.converged) and state.n_hessians < max_iter:
            state = _performance_step(state, selection)
    if not state.converged and state.n_hessians < max_iter:
        state = _newton_phase(state, selection, max_iter)
    for _ in range(PIRLS.max_parameter_iter if selection.estimates_parameter else 0):
        state = _estimate_parameter(state, selection)
        if selection.parameter_change <= PIRLS.parameter_tol:
            break
        state = _newton_phase(state, selection, max_iter)
    return _posterior(state, selection)


def _estimate_parameter(state: PirlsState, selection: SmoothingSelection) -> PirlsState:
    """Estimate the parameter of the loss at the coefficients of a state."""
    rows, beta = state.active.rows, state.point.beta
    total_edf = 1.0 + (float(np.sum(selection._edf)) if np.ndim(selection._edf) else 0.0)
    loss = rows.estimate_parameter(state.loss, beta, total_edf)
    selection.parameter_change = loss.parameter_distance(state.loss)
    if selection.parameter_change <= PIRLS.parameter_tol:
        return state
    return replace(state, loss=loss, point=rows.evaluate(loss, beta))


def _performance_step(state: PirlsState, selection: SmoothingSelection) -> PirlsState:
    """One working problem: smoothing parameters, a damped step and, near the end, L-BFGS steps."""
    if selection.estimates_parameter:
        state = _estimate_parameter(state, selection)
    problem, active, loss = state.point.working_problem(), state.active, state.loss
    fit = selection.step(problem, active.penalties)
    solution = WorkingSolution(fit, active, problem)
    if _may_restrict(active.all_rows, selection.fixed):
        active = active.update(fit.rho, solution.problem.working_weight, selection.settled)
    objective = Objective(active.rows, loss, active.penalties.diagonal(fit.rho))
    point = _step_to_minimum(objective, state.point, solution, active)
    larger = active
    may_grow = _may_restrict(active.all_rows, selection.fixed)
    may_grow &= selection.n_searches < PIRLS.max_searches
    if may_grow and (active.screened or selection.settled):
        gradient = active.all_rows.gradient(loss, active.scatter(point.beta))
        larger, rho = active.enlarge(
            selection.rho, selection.fixed | selection.entered, point.beta, gradient,
            problem.working_weight, fit.dispersion,
        )  # fmt: skip
        selection.n_searches += 1
        selection.entered |= rho != selection.rho
        selection.settled &= larger is active and np.array_equal(rho, selection.rho)
        selection.rho = rho
    decrements: list[float] = []
    converged = False
    warm = selection.warm and larger is active and active.rows.in_memory
    several = active.rows.predictors is not None and larger is active
    if (selection.settled or warm or several) and objective.allows_quasi_newton:
        inverse, end = solution.inverse_in(active), NEWTON.quasi_newton_end * NEWTON.tol
        if not (selection.settled or warm):
            end = PIRLS.tol_of_predictors
        point, decrements, ended = quasi_newton_steps(objective, point, inverse.dot, end)
        # If a working problem left nothing to gain, its smoothing parameters are those of the fit.
        negligible = decrements[0] < PIRLS.negligible_decrement * fit.dispersion
        converged = ended and (selection.settled or (negligible and selection.warm))
    if larger is not active:
        point = larger.rows.evaluate(loss, active.scatter(point.beta)[larger.indices])
    n_steps = state.n_steps + 1 + len(decrements)
    return PirlsState(larger, point, loss, solution, state.n_hessians + 1, n_steps, converged)


def _step_to_minimum(
    objective: Objective, point: LossEvaluation, solution: WorkingSolution, active: ActiveSet
) -> LossEvaluation:
    """Go to the minimum of a working problem, or as far towards it as P falls.

    If the active set has changed, the step begins without the coefficients that have left.
    """
    fit, fitted = solution.fit, solution.active
    target = constrained_minimum(fit.beta, fit.inverse, fitted.rows.constraints)
    if active is fitted:
        return damped_step(objective, point, target)[0]
    highest = replace(objective, penalty=fitted.penalties.diagonal(fit.rho)).value(point)
    beta, target = (fitted.scatter(values)[active.indices] for values in (point.beta, target))
    step = halved_step(objective, beta, target, highest)
    return objective.evaluate(beta) if step is None else step[0]


def _newton_phase(state: PirlsState, selection: SmoothingSelection, max_iter: int) -> PirlsState:
    """Minimise for the final smoothing parameters, and fit the last working problem."""
    active, n_left = state.active, max_iter - state.n_hessians
    objective = Objective(active.rows, state.loss, active.penalties.diagonal(selection.rho))
    result = minimise(objective, state.point, n_left)
    problem = result.problem
    if objective.allows_quasi_newton:  # their Hessian may be that of a distant point
        problem = result.point.working_problem()
    fit = penalised_fit(problem, active.penalties, selection.rho, selection.dispersion)
    solution = WorkingSolution(fit, active, problem)
    n_steps = state.n_steps + result.n_iter
    return replace(
        state, point=result.point, loss=result.loss, solution=solution, n_steps=n_steps,
        converged=result.converged,
    )  # fmt: skip


def _posterior(state: PirlsState, selection: SmoothingSelection) -> PenalisedFit:
    """The covariance of β, by the curvature that standard errors take, and the fit's figures."""
    solution, active, n = state.solution, state.active, state.active.rows.total_weight
    assert solution is not None
    loss = state.loss.correct_curvature(n, state.point.value)
    if loss != state.loss:
        problem = active.rows.evaluate(loss, state.point.beta).working_problem()
        dispersion = loss.known_dispersion(n, problem.working_weight) or selection.dispersion
        fit = penalised_fit(problem, active.penalties, selection.rho, dispersion)
        solution = WorkingSolution(fit, active, problem)
    fit, fitted = solution.fit, solution.active
    profiled = selection.dispersion is None
    # Residuals of quantiles without a row, for intervals, take the errors of the fit itself.
    estimate = smoothing_deviations if loss.has_distribution else estimate_deviations
    deviations = estimate(fit, solution.problem, fitted.penalties, ~selection.fixed, profiled)
    edf = fit.edf_of_all(fitted.indices, active.all_penalties, solution.problem.working_weight)
    objective = Objective(active.rows, loss, active.penalties.diagonal(fit.rho))
    return PenalisedFit(
        active.scatter(state.point.beta), active.indices,
        solution.inverse_in(active).scale(fit.dispersion),
        rearrange_rows(deviations, fitted.indices, active.indices),
        _smoothing_edf(fit, solution.problem, deviations), fit.rho, edf, fit.dispersion,
        objective.value(state.point), state.n_steps, state.converged, selection.converged, loss,
    )  # fmt: skip


def _initial_active_set(
    rows: SolverRows, penalties: Penalties, selection: SmoothingSelection
) -> ActiveSet:
    """All coefficients; or those of given smoothing parameters, or the smoothest functions."""
    active = ActiveSet.from_indices(rows, penalties, np.arange(len(penalties.scale)))
    if not _may_restrict(rows, selection.fixed):
        return active
    if active.screened and not selection.warm:
        selection.rho = _without_range_spaces(penalties, selection.rho, selection.fixed)
    elif not selection.warm:
        smoothest = np.flatnonzero(penalties.order_within < REML.coarse_functions)
        return ActiveSet.from_indices(rows, penalties, smoothest)
    return active.update(selection.rho, rows.total_weight, final=True)


@dataclass
class SmoothingSelection:
    """Smoothing parameters during performance iteration: estimated at each step, until they stay.

    `step` changes it, and so do terms that enter by screening, with their first ρ.

    Attributes
    ----------
    rho, fixed
        As in `fit_penalised`.
    dispersion : float or None
        φ where it is known.
    warm : bool
        Whether they come from a fit of nearly the same model.
    estimates_parameter, parameter_change : bool, float
        Whether the loss has a parameter that is estimated, too, and by how much it moved.
    n_searches : int
        How often others were searched for that promise to gain.
    settled, converged : bool
        Whether they stay from now on, and whether they are the estimates, up to small changes of
        the edf.
    """

    rho: np.ndarray
    fixed: np.ndarray
    dispersion: float | None
    warm: bool
    estimates_parameter: bool = False

    def __post_init__(self) -> None:
        self.parameter_change = 0.0
        self.settled = bool(self.fixed.all())
        self._edf: np.ndarray | float = np.inf
        self.n_searches, self.entered = 0, np.zeros(len(self.rho), bool)
        self._n_iter, self.converged = 0, True

    def step(self, problem: WorkingProblem, penalties: Penalties) -> WorkingFit:
        """Move towards the estimate for a working problem, and fit it.

        The fit has the ρ before rounding, except the last one: it has the final ρ.
        """
        self._n_iter += 1
        limits = PIRLS.reml_steps, REML.tol
        if self.warm or self._n_iter == 1:
            limits = PIRLS.reml_steps_warm, REML.rough_tol
        fit = estimate_smoothing(problem, penalties, self.rho, self.dispersion, self.fixed, *limits)
        self.rho = np.where(self.fixed, self.rho, np.round(fit.rho, PIRLS.rho_decimals))
        edf = penalties.ranks - fit.traces
        change = float(np.max(np.abs(edf - self._edf), initial=0.0))
        small = max(PIRLS.settled_edf, PIRLS.settled_edf_share * float(edf.sum()))
        first_step = 1 if self.warm else 2  # steps before which a change of the edf says nothing
        self._edf = edf
        edf_stay = self._n_iter > first_step and change < small
        edf_stay &= self.parameter_change <= PIRLS.settled_parameter
        self.converged = not fit.stuck and (edf_stay or fit.converged)
        self.settled = edf_stay or self._n_iter >= PIRLS.max_performance_iter
        if not self.settled:
            return fit
        final = np.round(self.rho, PIRLS.final_rho_decimals)
        self.rho = np.where(self.fixed, self.rho, final)
        return penalised_fit(problem, penalties, self.rho, self.dispersion)
