r"""Smoothing parameters by penalised REML, from normal equations alone.

They minimise :math:`ℓ(ρ) - \log p(ρ)`: the criterion ℓ of restricted maximum likelihood (REML),
plus a penalised-complexity prior p (:mod:`.smoothing_prior`). With many rows for each smoothing
parameter, the prior is next to nothing, and they are REML estimates.

For :math:`z ∼ N(Zβ, φW^{-1})` with prior precisions :math:`d/φ` of the coefficients,
:math:`d_i = λ_{g(i)} s_i` (zero for the intercept), :math:`G = Z^\top WZ`,
:math:`r = Z^\top Wz` and :math:`q = z^\top Wz` are all that the criterion needs:

.. math:: 2ℓ(ρ) = \frac{D}{φ} + (n - p)\log φ + \log|G + \mathrm{diag}(d)| - \sum_j m_j ρ_j,
          \qquad D = q - r^\top β, \quad ρ = \log λ,

:math:`m_j` being the number of coefficients with the smoothing parameter j, and p that of the
coefficients without a penalty, the intercept among them. φ is known (log loss) or profiled out,
:math:`φ = D/(n-p)`. With :math:`V = (G + \mathrm{diag}(d))^{-1}` and sums over the
coefficients of a smoothing parameter,

.. math:: 2ℓ_j = b_j/φ + t_j - m_j, \qquad b_j = \sum_i d_i β_i^2, \quad t_j = \sum_i d_i V_{ii},

and the second derivatives need :math:`\sum d_i V_{il}^2 d_l` only: Newton's method on ρ costs one
inverse a step. (Wood 2011; Li and Wood 2020 call it fREML if the sums come from binned columns.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import lapack

from ..._util.threads import cached_property
from ..rows.basis import Basis, count_levels
from ..rows.normal_equations import LevelSums, NormalEquations, WorkingProblem
from ..rows.predictors import Predictors
from .levels import BlockCovariance, IndexBlocks
from .linear_systems import (
    Covariance,
    IndependentCovariance,
    penalised_system,
    rearrange_rows,
)
from .smoothing_prior import PriorParameterisation, SmoothingPrior


@dataclass(frozen=True)
class RemlOptions:
    """Constants of penalised REML.

    Changes of predictions are root mean squares, in standard deviations of the targets or of
    probabilities: the largest of 12 fits, with squared and log loss, of 6 simulated tables of 150
    and 600 rows and 8 columns.
    """

    # Bounds of ρ, and of ρ − log n: λ weighs a hundredth of a row, or e²⁰ times as much as all rows
    # (nothing is left of the function). With −9 and 15, predictions change by 3e-7.
    min_log: float = float(np.log(1e-2))
    max_log_over_rows: float = 20.0
    # The largest change of one ρ in a Newton step; each is clipped for itself, since those that go
    # to infinity would otherwise hold up the others. (mgcv's default is 5.)
    max_step: float = 2.0
    # Distance from a bound up to which ρ lies on it: between working problems ρ is rounded to three
    # decimals, which takes it off a bound, and then no step that is left lowers ℓ noticeably.
    at_bound: float = 1e-3
    # Steps that are tried, each a third of the one before (1/2000 in the end). Clipped Newton steps
    # are rarely too long: with 4 tries, predictions are the same, with divisors of 2 and 6 they
    # change by less than 1e-8.
    max_line_search: int = 8
    step_divisor: float = 3.0
    # Relative rise of the criterion that counts as rounding.
    rounding: float = 1e-10
    # Share of `tol` below which a derivative counts as zero: its ρ stays where it is, and the
    # system of the step is smaller. With 0.01, predictions change by 0.01.
    stationary_share: float = 0.1
    # Smallest eigenvalue of the Hessian that steps take, in units of the largest, and at all: the
    # criterion is flat in ρ of functions that have vanished, and not convex far from a minimum.
    # With 1e-4, predictions change by 1e-6, and with 1e-2 by 0.01.
    min_eigenvalue_share: float = 1e-3
    min_eigenvalue: float = 1e-8
    # Derivative of ℓ − log p by ρ at which a search ends. ℓ is minus the logarithm of a
    # likelihood: differences below a hundredth mean nothing. `rough` is for starting points and for
    # models that are refitted.
    tol: float = 5e-3
    rough_tol: float = 1.0
    # Functions of each smoothing parameter in the model that a search starts with.
    coarse_functions: int = 3
    # Searches start from smoothing parameters that weigh as much as all rows, those of null spaces
    # e⁻⁶ of that. Collinear columns may have large effects that nearly cancel each other; from
    # penalised lines, each of which explains little by itself, a search ends at a minimum without
    # these effects, whose ℓ may be higher by a hundred. (3 and 9 ended near the same minima.)
    free_null_space: float = 6.0
    # Penalty, in units of the sum of the working weights, beyond which a coefficient is left out:
    # less than a hundredth of it would remain.
    negligible_penalty: float = 100.0
    # ρ of a term that a linear predictor does not have: beyond the largest of any number of rows.
    absent: float = 60.0
    # Precision of ρ (standard deviation 3) in the covariance for its uncertainty: a function that
    # has vanished says nothing about its ρ.
    min_precision: float = 1 / 9
    # Coefficients up to which their covariance is averaged over the smoothing parameters, as
    # deviations are as many as these.
    max_averaged: int = 1000
    # Share of that average for each smoothing parameter per row, up to one. With 100 rows and eight
    # smoothing parameters all of it counts, without which bands with log loss cover 84 % in the
    # place of 88. With 400 and 1500 rows they cover 96 to 98 % without it, and 1 % more with it.
    averaged_share: float = 10.0
    # Smoothing parameter of a term without a penalty, in units of a row: small beside any number of
    # rows.
    no_penalty: float = 1e-8


REML = RemlOptions()


def is_penalised(diagonal: np.ndarray) -> np.ndarray:
    """Which of these penalties are penalties; exp(log λ) may be rounded."""
    return diagonal > 2 * REML.no_penalty


def residual_df(diagonal: np.ndarray, problem: WorkingProblem) -> float:
    """Rows less the coefficients without a penalty, and less the intercept in any case.

    Times 1 + s, so that the dispersion is :math:`D/((n - p)(1 + s))`; see `Loss.variance_slopes`.
    """
    unpenalised = len(diagonal) - np.count_nonzero(is_penalised(diagonal))
    return max(problem.total_weight - max(unpenalised, 1), 1.0) * problem.dispersion_factor


@dataclass(frozen=True)
class Penalties:
    """Diagonal penalties: d_i is λ of ``smoothing_index[i]`` (−1: none) times ``scale[i]``.

    The coefficients of a smoothing parameter are a group. Without a `prior` on the smoothing
    parameters, they are estimated by REML alone. The last `n_levels` coefficients are those of a
    large factor, the last smoothing parameter is theirs. Each function has the same penalty for
    `n_sharing` linear predictors.
    """

    scale: np.ndarray
    smoothing_index: np.ndarray
    count: int
    prior: SmoothingPrior
    n_levels: int = 0
    n_sharing: int = 1

    @classmethod
    def from_bases(cls, bases: Sequence[Basis], predictors: Predictors | None = None) -> Penalties:
        """Those of all terms, after an intercept without one; of several linear predictors, too."""
        scale, index, variance = [np.zeros(1)], [np.full(1, -1)], [np.zeros(1)]
        in_null_space: list[bool] = []
        for basis in bases:
            scale.append(basis.penalty)
            index.append(basis.smoothing_index + len(in_null_space))
            variance.append(basis.variance)
            in_null_space += [False] * basis.n_smoothing
            if basis.has_null_space:
                in_null_space[-1] = True
        count, groups = len(in_null_space), np.concatenate(index).astype(np.int64)
        group_variance = np.bincount(groups + 1, np.concatenate(variance), count + 1)[1:]
        prior = SmoothingPrior(group_variance, np.array(in_null_space, bool), count)
        penalties = cls(np.concatenate(scale), groups, count, prior, count_levels(bases))
        return penalties if predictors is None else penalties.repeat(predictors)

    def repeat(self, predictors: Predictors) -> Penalties:
        """The same of each linear predictor."""
        m, prior = predictors.count, self.prior
        scale, index = np.repeat(self.scale, m), np.repeat(self.smoothing_index, m)
        sizes = {"scale": scale, "n_levels": m * self.n_levels}
        if predictors.shares_smoothing:
            return replace(self, smoothing_index=index, n_sharing=m, **sizes)
        separate = np.where(index < 0, -1, m * index + np.tile(np.arange(m), len(self.scale)))
        prior = replace(
            prior, variance=np.repeat(prior.variance, m), total=m * prior.total,
            in_null_space=np.repeat(prior.in_null_space, m),
        )  # fmt: skip
        return replace(self, smoothing_index=separate, count=m * self.count, prior=prior, **sizes)

    @property
    def n_dense(self) -> int:
        """Coefficients that are not levels of a large factor."""
        return len(self.scale) - self.n_levels

    def diagonal(self, rho: np.ndarray) -> np.ndarray:
        """The diagonal d for smoothing parameters exp(ρ)."""
        smoothing = np.zeros(self.count + 1)  # the last for index −1
        np.exp(rho, out=smoothing[:-1])
        return self.scale * smoothing[self.smoothing_index]

    @cached_property
    def ranks(self) -> np.ndarray:
        """Number of coefficients of each smoothing parameter."""
        return np.bincount(self._bin, minlength=self.count + 1)[1:].astype(float)

    def sum_by_group(self, values: np.ndarray) -> np.ndarray:
        """Sums over the coefficients of each smoothing parameter; the last ones may be left out."""
        return np.bincount(self._bin[: len(values)], values, self.count + 1)[1:]

    @cached_property
    def _bin(self) -> np.ndarray:
        return self.smoothing_index + 1

    def coefficient_blocks(self, groups: IndexBlocks) -> IndexBlocks:
        """The coefficients of blocks of smoothing parameters."""
        return IndexBlocks(np.append(groups.index, -1)[self.smoothing_index], groups.count)

    def restrict(self, active: np.ndarray) -> Penalties:
        """Those of some coefficients; all smoothing parameters stay."""
        return replace(self, scale=self.scale[active], smoothing_index=self.smoothing_index[active])

    def restrict_to_groups(self, active: np.ndarray) -> tuple[Penalties, np.ndarray]:
        """Those of some coefficients and of their smoothing parameters, and which these are."""
        groups = np.unique(self.smoothing_index[active][self.smoothing_index[active] >= 0])
        number = np.full(self.count + 1, -1)  # the last for index −1
        number[groups] = np.arange(len(groups))
        index, prior = number[self.smoothing_index[active]], self.prior.restrict(groups)
        return Penalties(self.scale[active], index, len(groups), prior), groups

    def prior_of(self, free: np.ndarray, problem: WorkingProblem) -> PriorParameterisation:
        """The prior of the smoothing parameters that are estimated."""
        return self.prior.parameterisation(free, problem.total_weight, problem.working_weight)

    @cached_property
    def order_within(self) -> np.ndarray:
        """Rank of each coefficient in its group, the least penalised first; 0 for all levels.

        Those of a function that linear predictors share a penalty for have the same.
        """
        rank = np.zeros(len(self.scale), np.int64)
        order = np.lexsort((self.scale, self.smoothing_index))
        index = self.smoothing_index[order]
        rank[order] = (np.arange(len(order)) - np.searchsorted(index, index)) // self.n_sharing
        rank[self.n_dense :] = 0
        return rank

    def active_set(
        self, rho: np.ndarray, working_weight: float, screened: bool = False
    ) -> np.ndarray:
        """Coefficients that penalties leave something of, and the smoothest of each group.

        Functions of natural bases have a mean square of one, hence about the sum of the working
        weights in the diagonal of ZᵀWZ. With a penalty of 100 times that, less than a hundredth is
        left of what they would be without, far below their standard errors. The smoothest of a
        group stays, since it would be the first to come back, unless a screening brings groups
        back, or the term is not there. Levels always stay.
        """
        active = self.diagonal(rho) <= REML.negligible_penalty * working_weight
        active[self.n_dense :] = True
        if not screened:
            is_there = np.append(rho < REML.absent, True)[self.smoothing_index]
            active |= (self.order_within == 0) & is_there
        return np.flatnonzero(active)

    @property
    def is_unscreened(self) -> np.ndarray:
        """Which smoothing parameters belong to terms that are in a model from the beginning."""
        is_level = np.arange(self.count) >= self.count - (self.n_levels > 0)
        return self.prior.in_null_space | is_level


@dataclass(frozen=True)
class WorkingFit:
    """A penalised least-squares fit with its smoothing parameters.

    Attributes
    ----------
    beta : ndarray
        Coefficients, the intercept first.
    inverse : Covariance
        V = (G + diag(d))⁻¹; φV is the posterior covariance of β.
    traces : ndarray
        Sums of d_i V_ii over the coefficients of each smoothing parameter.
    rho, diagonal : ndarray
        Logarithms of the smoothing parameters, and the penalties d.
    dispersion, residual_df : float
        φ, and what an estimate of it is divided by.
    criterion, gradient : float, ndarray
        The REML criterion ℓ, without the prior, and its derivatives by ρ.
    converged, stuck : bool
        Whether the search for ρ ended near a minimum, and whether it ended far from one because no
        step lowered ℓ − log p; if neither, its steps were used up.
    """

    beta: np.ndarray
    inverse: Covariance
    traces: np.ndarray
    rho: np.ndarray
    diagonal: np.ndarray
    dispersion: float
    residual_df: float
    criterion: float
    gradient: np.ndarray
    converged: bool = True
    stuck: bool = False

    def edf(self) -> np.ndarray:
        """Effective degrees of freedom of each coefficient."""
        return 1 - self.diagonal * self.inverse.diagonal()

    def edf_of_all(
        self, active: np.ndarray, penalties: Penalties, working_weight: float
    ) -> np.ndarray:
        """Effective degrees of freedom of all coefficients, where the fit was made in some.

        `working_weight` is the sum of the working weights, G's diagonal for a natural basis. The
        others are zero in the fit, and have the little that they would have had in it: edf do not
        jump where a coefficient leaves the active set.
        """
        edf = working_weight / (penalties.diagonal(self.rho) + working_weight)
        edf[active] = self.edf()
        return edf

    def inverse_in(
        self, other: np.ndarray, active: np.ndarray, penalties: Penalties, working_weight: float
    ) -> Covariance:
        """V of other coefficients than those of the fit, which has most of them.

        Those that it has not have the variances that their penalties leave them.
        """
        if np.array_equal(other, active):
            return self.inverse
        alone = 1 / (penalties.diagonal(self.rho) + working_weight)
        if not isinstance(self.inverse, IndependentCovariance):
            return _rearrange(self.inverse, active, other, alone, penalties.n_levels)
        inverse, m = self.inverse, len(self.inverse.parts)
        places = tuple(np.flatnonzero(other % m == k) for k in range(m))
        parts = tuple(
            _rearrange(part, active[part_place], other[place], alone, penalties.n_levels // m)
            for part, part_place, place in zip(inverse.parts, inverse.places, places, strict=True)
        )
        return IndependentCovariance(parts, places)


def _rearrange(
    inverse: Covariance, active: np.ndarray, other: np.ndarray, alone: np.ndarray, n_levels: int
) -> Covariance:
    """V of coefficients `other` from that of `active`, and from the variances of all alone."""
    other, active = (indices[: len(indices) - n_levels] for indices in (other, active))
    dense = rearrange_rows(rearrange_rows(inverse.dense, active, other).T, active, other)
    levels = inverse.levels
    if levels is not None:
        border = rearrange_rows(levels.border.T, active, other).T
        levels = replace(levels, sums=LevelSums(border, levels.weight))
    return BlockCovariance(
        dense + np.diag(np.where(np.isin(other, active), 0.0, alone[other])), levels
    )


def penalised_fit(
    problem: WorkingProblem, penalties: Penalties, rho: np.ndarray, dispersion: float | None = None
) -> WorkingFit:
    """Fit with given smoothing parameters; a `dispersion` of None is estimated."""
    diagonal = penalties.diagonal(rho)
    system = penalised_system(problem, diagonal)
    beta = system.solve(problem.rhs)
    inverse = system.inverse()
    deviance = problem.square - problem.rhs @ beta
    df, ranks = residual_df(diagonal, problem), penalties.ranks
    if dispersion is None:
        deviance = max(deviance, 1e-300 + 1e-14 * problem.square)
    phi = deviance / df if dispersion is None else dispersion
    criterion = 0.5 * (deviance / phi + df * np.log(phi) - inverse.logdet() - ranks @ rho)
    squares = penalties.sum_by_group(diagonal * beta**2) / phi
    dense_traces, level_traces = inverse.penalised_diagonal(diagonal)
    traces = penalties.sum_by_group(dense_traces)
    traces[-1:] += level_traces
    gradient = 0.5 * (squares + traces - ranks)
    return WorkingFit(beta, inverse, traces, rho, diagonal, phi, df, criterion, gradient)


def reml_hessian(
    fit: WorkingFit, penalties: Penalties, profiled: bool, groups: IndexBlocks | None = None
) -> np.ndarray:
    """Second derivatives of ℓ by ρ, or their sums over blocks of smoothing parameters, `groups`.

    `profiled`: φ is estimated.
    """
    if groups is None:
        groups = IndexBlocks(np.arange(penalties.count), penalties.count)
    blocks, diagonal = penalties.coefficient_blocks(groups), fit.diagonal
    product = diagonal * fit.beta
    squares = blocks.sums(product * fit.beta) / fit.dispersion
    traces = groups.sums(fit.traces)
    trace_terms, beta_terms = fit.inverse.block_sums(diagonal, product, blocks)
    hessian = -2 / fit.dispersion * beta_terms - trace_terms
    hessian.flat[:: len(hessian) + 1] += squares + traces
    if profiled:
        hessian -= np.outer(squares, squares) / fit.residual_df
    return 0.5 * hessian


def smoothing_deviations(
    fit: WorkingFit, problem: WorkingProblem, penalties: Penalties, free: np.ndarray,
    profiled: bool,
) -> np.ndarray:  # fmt: skip
    """C of CCᵀ, which the uncertain smoothing parameters add to the covariance of β.

    The estimate of β varies with them, and so does its covariance given them.
    """
    estimate = estimate_deviations(fit, problem, penalties, free, profiled)
    if penalties.n_levels or len(fit.beta) > REML.max_averaged:
        return estimate
    return np.hstack([estimate, covariance_deviations(fit, problem, penalties, free, profiled)])


def estimate_deviations(
    fit: WorkingFit, problem: WorkingProblem, penalties: Penalties, free: np.ndarray,
    profiled: bool,
) -> np.ndarray:  # fmt: skip
    r"""C of :math:`CC^\top`, the variance of the estimate of β over the smoothing parameters.

    To first order it is :math:`J H^{-1} J^\top` with
    :math:`J = ∂β/∂ρ = -V \mathrm{diag}(d) β` by the coefficients of each smoothing parameter, and H
    the Hessian of ℓ (Wood, Pya and Säfken 2016) and of the prior on ρ, without its negative part.
    Where both are flat, a precision is added.
    """
    free = free & (penalties.ranks > 0)
    if not free.any():
        return np.zeros((len(fit.beta), 0))
    groups = IndexBlocks(np.where(free, np.cumsum(free) - 1, -1), np.count_nonzero(free))
    product = fit.diagonal * fit.beta
    jacobian = fit.inverse.columns(product, penalties.coefficient_blocks(groups))
    hessian = reml_hessian(fit, penalties, profiled, groups)
    curvature = penalties.prior_of(free, problem).curvature(fit.rho)[free]
    hessian.flat[:: len(hessian) + 1] += curvature
    if lapack.dpotrf(hessian, lower=1, clean=0)[1] == 0:  # a tenth of the time of eigenvalues
        hessian.flat[:: len(hessian) + 1] += REML.min_precision
        factor = lapack.dpotrf(hessian, lower=1, clean=0, overwrite_a=1)[0]
        return lapack.dtrtrs(factor, jacobian.T, lower=1)[0].T
    values, vectors = np.linalg.eigh(hessian)
    return jacobian @ (vectors / np.sqrt(np.maximum(values, 0.0) + REML.min_precision))


def covariance_deviations(
    fit: WorkingFit, problem: WorkingProblem, penalties: Penalties, free: np.ndarray,
    profiled: bool,
) -> np.ndarray:  # fmt: skip
    r"""C of :math:`CC^\top = u \sum \max(\mathrm{E}[φV] - φV, 0)` over smoothing parameters.

    Each is averaged over by itself, and those of null spaces together, as they share a variance.
    With 1 + c times the penalties of the coefficients a, and
    :math:`U \mathrm{diag}(t) U^\top = \mathrm{diag}(d_a)^{1/2} V_{aa} \mathrm{diag}(d_a)^{1/2}`,

    .. math:: V_c = V - V_{\cdot a} \mathrm{diag}(d_a)^{1/2} U \mathrm{diag}(h)
              U^\top \mathrm{diag}(d_a)^{1/2} V_{a \cdot}, \qquad h_i = c / (1 + c t_i),

    and ℓ changes by sums over t, too: an average takes the eigenvalues of one block of V. Its
    weights are :math:`e^{-ℓ}`, uniform in the standard deviation σ of the function. The rest of the
    prior is there for the errors of predictions: where it shrinks effects that are real, bands
    would be too narrow with it. With many rows for each smoothing parameter, functions that have
    vanished hardly hide a real effect, and the share u of this average is small.
    """
    free = free & (penalties.ranks > 0)
    share = min(REML.averaged_share * penalties.prior.total / problem.total_weight, 1.0)
    prior = penalties.prior_of(free, problem)
    sets = list(np.flatnonzero(free & ~prior.in_null_space)[:, None])
    sets += [prior.null_spaces] if len(prior.null_spaces) else []
    V, deviations = fit.inverse.dense, [np.zeros((len(fit.beta), 0))]
    for together in sets:
        indices = np.flatnonzero(np.isin(penalties.smoothing_index, together))
        root = np.sqrt(fit.diagonal[indices])
        shares, vectors = np.linalg.eigh(V[np.ix_(indices, indices)] * np.outer(root, root))
        shares = np.clip(shares, 0.0, 1.0)
        # Deviations are in units of the standard error of a linear effect.
        log_variance = np.log(problem.working_weight) - (fit.rho - prior.offset)[together].max()
        change = log_variance - 2 * np.log(_DEVIATIONS)  # of ρ
        times = np.expm1(change)[:, None]
        h = times / (1 + times * shares)
        squares = h @ (vectors.T @ (root * fit.beta[indices])) ** 2 / fit.dispersion
        if profiled:
            left = np.maximum(1 + squares / fit.residual_df, 1e-14)
            squares = fit.residual_df * np.log(left)
        criterion = 0.5 * (squares + np.log1p(times * shares).sum(axis=1) - len(indices) * change)
        weight = np.exp(criterion.min() - criterion) * _DEVIATIONS
        mean = share * fit.dispersion * np.maximum(-(weight @ h) / weight.sum(), 0.0)
        deviations.append(V[:, indices] @ (root[:, None] * vectors * np.sqrt(mean)))
    return np.hstack(deviations)


def coarse_smoothing(
    problem: NormalEquations, penalties: Penalties, rho: np.ndarray,
    dispersion: float | None = None, fixed: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Smoothing parameters of a model with the smoothest functions of each only: a start.

    They cost a fraction of those of the model with all functions, and mostly are close to them.
    """
    active = np.flatnonzero(penalties.order_within < REML.coarse_functions)
    if 2 * (len(active) - penalties.n_levels) > penalties.n_dense:
        return rho
    problem, penalties = problem.restrict(active), penalties.restrict(active)
    return estimate_smoothing(problem, penalties, rho, dispersion, fixed, tol=REML.rough_tol).rho


def estimate_smoothing(
    problem: WorkingProblem,
    penalties: Penalties,
    rho: np.ndarray,
    dispersion: float | None = None,
    fixed: np.ndarray | None = None,
    max_iter: int = 60,
    tol: float = REML.tol,
) -> WorkingFit:
    """Minimise the penalised REML criterion, ℓ − log p, over ρ by Newton's method.

    The steps are taken in the coordinates θ of the prior, in which its constraint is a bound.

    Parameters
    ----------
    problem, penalties
        The least-squares problem.
    rho : ndarray
        Where to start.
    dispersion : float, optional
        φ where it is known.
    fixed : ndarray of bool, optional
        Smoothing parameters that stay as they are.
    max_iter, tol
        Most steps, and the largest derivative of ℓ − log p at the end.
    """
    limits = REML.min_log, REML.max_log_over_rows + np.log(max(problem.total_weight, 1.0))
    free = penalties.ranks > 0  # the others are outside of the active set
    if fixed is not None:
        free &= ~fixed
    rho = np.where(free, np.clip(rho, *limits), rho)
    prior = penalties.prior_of(free, problem)
    lower, upper = prior.bounds(*limits)
    movable, fit = prior.extend(free), penalised_fit(problem, penalties, rho, dispersion)
    near_tol, stuck = max(tol, REML.rough_tol), False
    inner_lower, inner_upper = lower + REML.at_bound, upper - REML.at_bound
    for n_steps in range(max_iter + 1):
        theta = prior.to_theta(fit.rho)
        gradient = prior.penalised_gradient(fit.gradient, fit.rho)
        size = np.abs(gradient)
        moving = movable & (size > REML.stationary_share * tol)
        # At a bound, only steps away from it are left.
        moving &= np.where(gradient > 0, theta > inner_lower, theta < inner_upper)
        steepest = float(size[moving].max(initial=0.0))
        if steepest <= tol or n_steps == max_iter:
            break
        step = np.zeros(len(theta))
        hessian_of = partial(reml_hessian, fit, penalties, dispersion is None)
        hessian = prior.penalised_hessian(hessian_of, fit.rho, moving)
        step[moving] = _newton_step(hessian, gradient[moving])
        highest = prior.penalised_criterion(fit.criterion, fit.rho)
        highest += REML.rounding * abs(highest)
        for _ in range(REML.max_line_search):
            bounded = np.minimum(np.maximum(theta + step, lower), upper)
            theta_new = np.where(step != 0, bounded, theta)
            rho = np.where(free, prior.to_rho(theta_new), fit.rho)
            candidate = penalised_fit(problem, penalties, rho, dispersion)
            if prior.penalised_criterion(candidate.criterion, rho) <= highest:
                break
            step = step / REML.step_divisor
        else:
            stuck = True
            break
        fit = candidate
    return fit if steepest <= near_tol else replace(fit, converged=False, stuck=stuck)


def _newton_step(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """A Newton step with a Hessian made positive definite, each entry clipped; it descends."""
    factor, info = lapack.dpotrf(hessian, lower=1, clean=0)
    largest = np.abs(hessian.diagonal()).max(initial=0.0)
    if info == 0 and factor.diagonal().min(initial=np.inf) ** 2 > _eigenvalue_floor(largest):
        step = -lapack.dpotrs(factor, gradient, lower=1)[0]
    else:
        values, vectors = np.linalg.eigh(hessian)
        floor = _eigenvalue_floor(np.abs(values).max(initial=0.0))
        step = -vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), floor))
    step = np.minimum(np.maximum(step, -REML.max_step), REML.max_step)
    if step @ gradient < 0:
        return step
    # Clipping has turned the direction uphill, as it may where the Hessian is nearly singular:
    # its diagonal alone gives a step each entry of which goes downhill.
    diagonal = np.maximum(np.abs(hessian.diagonal()), _eigenvalue_floor(largest))
    return np.clip(-gradient / diagonal, -REML.max_step, REML.max_step)


def _eigenvalue_floor(largest: float) -> float:
    """The smallest eigenvalue of a Hessian that a step takes as it is."""
    return max(REML.min_eigenvalue_share * largest, REML.min_eigenvalue)


# -- screening ------------------------------------------------------------------------------------

# Standard deviations of a term's function, in standard errors of a linear effect: from what is
# hardly visible to what nothing hides.
_DEVIATIONS = np.geomspace(0.1, 300.0, 25)
_MIN_GAIN = 1.0  # of log-likelihood: what a parameter gains by chance, about


def entering_smoothing(
    penalties: Penalties, rho: np.ndarray, beta: np.ndarray, gradient: np.ndarray,
    working_weight: float, total_weight: float, dispersion: float,
) -> np.ndarray:  # fmt: skip
    r"""ρ where a term by itself promises to gain by another one, and as it was for the others.

    A term that has vanished has no gradient that leads back, and a curve that is stiff beside
    strong effects may be far from a lower minimum, where it is wiggly. With :math:`g_i` the
    derivatives of the losses by the coefficients and w the sum of the working weights, which is
    their curvature in a natural basis, the penalised REML criterion of a term is, with all others
    as they are and relative to the model without it,

    .. math:: 2ℓ(ρ) - 2\log p(ρ)
              = \sum_i \Bigl(\log(1 + w/d_i) - \frac{(wβ_i - g_i)^2}{φ(w + d_i)}\Bigr)
              - 2\log p(ρ), \qquad d_i = e^ρ s_i.

    The smallest value on a grid is taken if it is far enough below that at ρ. Null spaces, which
    share a variance, stay.
    """
    prior = penalties.prior
    rate, weight = prior.rate(total_weight, working_weight), prior.range_weight(total_weight)
    explained = (working_weight * beta - gradient) ** 2 / dispersion

    def criterion(rho: np.ndarray) -> np.ndarray:
        diagonal = np.maximum(penalties.diagonal(rho), 1e-300)
        with np.errstate(over="ignore"):  # of a vanishing penalty, which is not the minimum
            costs = np.log1p(working_weight / diagonal)
        changes = costs - explained / (working_weight + diagonal)
        deviation = np.exp(0.5 * (prior.offset - rho))
        prior_term = weight * np.log1p(np.sqrt(working_weight) * deviation) + rate * deviation
        return penalties.sum_by_group(changes) + 2 * prior_term

    best, best_rho = criterion(rho) - 2 * _MIN_GAIN, rho
    for deviation in _DEVIATIONS:
        trial = prior.offset + np.log(working_weight) - 2 * np.log(deviation)
        value = criterion(trial)
        best_rho = np.where(value < best, trial, best_rho)
        best = np.minimum(value, best)
    return np.where(penalties.is_unscreened, rho, best_rho)
