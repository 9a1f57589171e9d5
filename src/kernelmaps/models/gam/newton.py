r"""Penalised fits of coded columns: one pass for squared loss, one a Newton step for the others.

.. math:: \min_β \sum_i c_i\,ℓ(y_i, o_i + z_i^\top β) + ½ β^\top \mathrm{diag}(d) β,

:math:`z_i` the row of ``[1, B_1[c_i1], B_2[c_i2], …]`` and o an offset. While the strengths in d
are still to be chosen, each step chooses them anew for its working least-squares problem
(performance iteration, Gu 1992); once they rest, the steps go on to the minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...threads import available_threads, limit_blas
from ..losses import Loss, Squared
from .bases import Basis
from .constraints import nearest
from .held import CodedPoint, CodedRows
from .reml import (
    COARSE,
    Penalties,
    Sums,
    WorkingFit,
    choose_strengths,
    coarse_strengths,
    solve_with,
    widening,
)
from .streamed import CodedStream, StreamedPoint

_SETTLE = 15  # steps after which strengths stay: performance iteration may cycle
# Degrees of freedom that no term gains or loses any more once strengths stay: these, or this share
# of all.
_STILL = 0.1, 0.002
_MOST_CHORDS, _SLOW = 20, 0.3  # steps between two curvatures; ratio of the gains of every second
_END = 1e-4  # times the tolerance: a gain after which no more is to be had, as after Newton's steps
# Steps on the strengths for each step on the weights, and where they are near already.
_INNER, _MOST_INNER = 3, 10
_ROUGHLY = 1e-3  # relative change of the objective at the end of a rough fit
_TOLD = 0.5  # of a log-likelihood: gain beyond a working problem whose strengths are believed
# Derivatives of the restricted log-likelihood that are small enough: of a working problem, of the
# last one, and where a large model starts from strengths that are known.
_EXACT, _FINE, _LARGE = 5e-3, 0.1, 1.0
_SHRUNK = 0.9  # of the weights: where fewer than that are within reach, the others are left out
_PLENTY = 2  # rows for each weight, from which on those out of reach are left out
_NEARLY = 0.01  # share of a majorant from which on steps are nearly Newton's
_LEFT = 1e-4  # of the objective, by which leaving weights out may raise it
# Weights below which more threads cost BLAS more than they bring: they wait by spinning, and take
# the processor from the threads that sum up rows.
_SMALL = 2500


Solve = Callable[[np.ndarray], np.ndarray]  # with the matrix of a working problem
Rows = CodedRows | CodedStream
Point = CodedPoint | StreamedPoint


@dataclass(frozen=True)
class PenalisedFit:
    """Weights, strengths and the posterior of a fit.

    Attributes
    ----------
    weights : ndarray
        β, the intercept first.
    covariance, wider : ndarray
        Posterior covariance of β for these strengths, and what their uncertainty adds to it.
    rho : ndarray
        Logarithms of the strengths.
    edf : ndarray
        Effective degrees of freedom of each weight.
    dispersion, objective : float
        φ, and the penalised loss.
    n_iter : int
        Steps, each one pass over the rows.
    converged : bool
    """

    weights: np.ndarray
    covariance: np.ndarray
    wider: np.ndarray
    rho: np.ndarray
    edf: np.ndarray
    dispersion: float
    objective: float
    n_iter: int
    converged: bool


def penalties_of(bases: Sequence[Basis]) -> Penalties:
    """Penalties of all terms' weights, after an intercept without one."""
    scale, group, count = [np.zeros(1)], [np.full(1, -1)], 0
    for basis in bases:
        scale.append(basis.penalty)
        group.append(basis.group + count)
        count += basis.n_strengths
    return Penalties(np.concatenate(scale), np.concatenate(group).astype(np.int64), count)


def fit_rows(
    rows: Rows,
    loss: Loss,
    rho: np.ndarray,
    fixed: np.ndarray | None = None,
    tol: float = 1e-7,
    max_iter: int = 100,
    beta: np.ndarray | None = None,
) -> PenalisedFit:
    """Fit rows with strengths that are chosen, or `fixed`.

    Parameters
    ----------
    rows : Rows
    loss : Loss
    rho : ndarray
        Logarithms of the strengths to start from.
    fixed : ndarray of bool, optional
        Which of them stay.
    tol : float
        The objective's relative change at the end.
    max_iter : int
        Most steps.
    beta : ndarray, optional
        Weights to start from, of a fit with almost the same terms and with these strengths.
    """
    penalties = penalties_of(rows.bases)
    fixed = np.zeros(len(rho), bool) if fixed is None else fixed
    with limit_blas(blas_threads(len(penalties.scale))):
        if isinstance(loss, Squared):
            return _fit_squared(rows, penalties, rho, fixed, beta)
        return _fit(rows, loss, penalties, rho, fixed, tol, max_iter, beta)


def blas_threads(weights: int) -> int:
    """Threads of BLAS for systems of so many weights."""
    return 1 if weights < _SMALL else available_threads()


def among_all(own: np.ndarray, kept: np.ndarray, size: int) -> np.ndarray:
    """A vector or matrix of some weights among all: zero for the others."""
    if len(kept) == size:
        return own
    out = np.zeros((size,) * own.ndim)
    out[np.ix_(*[kept] * own.ndim)] = own
    return out


@dataclass(frozen=True)
class Reach:
    """The weights that steps are taken on: those of which penalties leave something.

    A curve has many functions, and strengths that are chosen leave little of most of them: what
    is out of reach costs time alone.

    Attributes
    ----------
    whole, every
        The rows and the penalties of all weights.
    kept : ndarray of int
        The weights within reach.
    rows, penalties
        The same with these only.
    """

    whole: Rows
    every: Penalties
    kept: np.ndarray
    rows: Rows
    penalties: Penalties

    @classmethod
    def of(cls, rows: Rows, penalties: Penalties, kept: np.ndarray) -> Reach:
        """Some of the weights."""
        if len(kept) == len(penalties.scale):
            return cls(rows, penalties, kept, rows, penalties)
        return cls(rows, penalties, kept, rows.only(kept), penalties.only(kept))

    def after(self, rho: np.ndarray, total: float, last: bool) -> Reach:
        """The weights within reach of other strengths.

        Not if they are only some fewer, unless these are the last strengths: the end is then the
        same, whatever the way to it.
        """
        kept = self.every.within_reach(rho, total)
        enough = len(self.kept) if last else _SHRUNK * len(self.kept)
        if len(kept) >= enough and np.isin(kept, self.kept).all():
            return self
        return Reach.of(self.whole, self.every, kept)

    def among_all(self, own: np.ndarray) -> np.ndarray:
        """A vector or matrix of these weights among all: zero for those out of reach."""
        return among_all(own, self.kept, len(self.every.scale))


def _fit_squared(
    rows: Rows, penalties: Penalties, rho: np.ndarray, fixed: np.ndarray, beta: np.ndarray | None
) -> PenalisedFit:
    sums, middle = rows.squared()
    if beta is None:
        rho = coarse_strengths(sums, penalties, rho, None, fixed)
    tol = _FINE if beta is None else _LARGE
    kept = np.arange(len(penalties.scale))
    if _may_leave_out(rows, penalties, fixed):
        kept = penalties.within_reach(rho, sums.rows)
    while True:
        few = penalties.only(kept)
        found = choose_strengths(sums.only(kept), few, rho, None, fixed, 60, tol)
        wanted = penalties.within_reach(found.rho, sums.rows)
        if np.isin(wanted, kept).all():
            break
        rho, kept = found.rho, np.union1d(kept, wanted)
    wider = widening(found, few, rows.total, ~fixed, True)
    wider = among_all(wider, kept, len(penalties.scale))
    found = found.among(kept, penalties, sums.rows)
    weights = allowed(rows, found).copy()
    system = sums.gram @ weights + penalties.diagonal(found.rho) * weights
    value = 0.5 * (sums.square - 2 * sums.right @ weights + weights @ system)
    weights[0] += middle
    return _finished(found, penalties, value, 1, weights, wider)


def _may_leave_out(rows: Rows, penalties: Penalties, fixed: np.ndarray) -> bool:
    """Whether weights out of reach may be left out: of chosen strengths without constraints.

    Of few rows, where strengths move far and back, every function may be needed again.
    """
    plenty = rows.total > _PLENTY * len(penalties.scale)
    return plenty and rows.cone is None and not fixed.all()


def _fit(
    rows: Rows, loss: Loss, penalties: Penalties, rho: np.ndarray, fixed: np.ndarray,
    tol: float, max_iter: int, beta: np.ndarray | None,
) -> PenalisedFit:  # fmt: skip
    fresh = beta is None
    if beta is None:
        beta = np.zeros(len(penalties.scale))
        beta[0] = rows.start(loss)
    kept, leaving = np.arange(len(beta)), _may_leave_out(rows, penalties, fixed)
    if leaving and fresh:
        kept = np.flatnonzero(penalties.order_within < COARSE)
    elif leaving:
        kept = penalties.within_reach(rho, rows.total)
    reach = Reach.of(rows, penalties, kept)
    here: Point = reach.rows.at(loss, beta[kept])
    value, n_iter, extra, converged = np.inf, 0, 0, False
    near = following = loss  # as losses are here, and as they will be after the next step
    chosen = Chosen(rho, fixed, loss.dispersion, fresh)
    tol = min(tol, 1e-10)  # the last steps square the error, and cost little
    for n_iter in range(1, max_iter + 1):
        sums, resting, solved = here.sums(), chosen.settled, reach
        found = chosen.step(sums, solved.penalties, n_iter)
        start = _penalised(here, solved.penalties.diagonal(found.rho))
        wanted, total = allowed(rows, found), float(sums.gram[0, 0])
        if leaving and not resting:
            reach = solved.after(found.rho, total, chosen.settled)
        beta, seen = here.beta, here if reach is solved else None
        if seen is None:  # losses are not known with other weights
            beta, wanted = (solved.among_all(own)[reach.kept] for own in (beta, wanted))
        diagonal = reach.penalties.diagonal(found.rho)
        caution, near = near.majorizer_share, following
        here, whole = _damped(reach.rows, near, beta, wanted, diagonal, start, seen)
        following = near.after(whole) if resting else near
        value = _penalised(here, diagonal)
        # A majorant's steps may be short far from the minimum.
        telling = caution < _NEARLY or (caution == 1 and not whole)
        converged = resting and telling and start - value <= tol * (1 + abs(value))
        near_end = chosen.settled or (isinstance(rows, CodedRows) and not fresh)
        if near_end and not (converged or loss.majorizer_share) and rows.cone is None:
            solve = _among_others(found, solved, reach.kept, total).dot
            here, gains, ended = chords(reach.rows, loss, here, solve, diagonal, _END * tol)
            value, extra = _penalised(here, diagonal), extra + len(gains)
            # Where a working problem left nothing to gain, its strengths are those of the fit.
            converged = ended and (chosen.settled or gains[0] < _TOLD * found.dispersion)
        if converged:
            break
    last = loss.for_errors(rows.total, here.value)
    if near != last:  # errors are told by another curvature than steps
        sums, solved = reach.rows.at(last, here.beta).sums(), reach
        total = float(sums.gram[0, 0])
        known = last.known_dispersion(rows.total, total) or chosen.dispersion
        found = solve_with(sums, reach.penalties, chosen.rho, known)
    profiled = chosen.dispersion is None
    wider = solved.among_all(widening(found, solved.penalties, rows.total, ~fixed, profiled))
    found = found.among(solved.kept, penalties, total)
    beta = reach.among_all(here.beta)
    return _finished(found, penalties, value, n_iter + extra, beta, wider, converged)


def _among_others(found: WorkingFit, solved: Reach, kept: np.ndarray, total: float) -> np.ndarray:
    """The inverse of some weights as one of others, of which most are among them."""
    if solved.kept is kept:
        return found.inverse
    return found.among(solved.kept, solved.every, total).inverse[np.ix_(kept, kept)]


def chords(
    rows: Rows, loss: Loss, here: Point, solve: Solve, diagonal: np.ndarray, least: float,
    patient: bool = False,
) -> tuple[Point, list[float], bool]:  # fmt: skip
    """Steps with exact derivatives and the curvature of a step before: a pass over codes each.

    They end where a step gains less than the share `least` of the objective, or, without
    patience, where a new curvature would bring more: the point, the gains that steps promised, and
    whether it is the end.
    """
    value, gains, seen = _penalised(here, diagonal), [], Bends()
    slope = here.gradient() + diagonal * here.beta
    for _ in range(_MOST_CHORDS):
        move = seen.solve(solve, slope)
        gains.append(0.5 * float(slope @ move))  # without a difference of sums
        if not patient and len(gains) > 2 and gains[-1] > _SLOW * gains[-3]:
            break
        last, before = here.beta, slope
        here, _ = _damped(rows, loss, last, last - move, diagonal, value, here)
        value = _penalised(here, diagonal)
        if gains[-1] <= least * (1 + abs(value)):
            return here, gains, True
        slope = here.gradient() + diagonal * here.beta
        seen.add(here.beta - last, slope - before)
    return here, gains, False


@dataclass
class Bends:
    """What steps have shown of a curvature beyond the one they began with (L-BFGS).

    Attributes
    ----------
    steps, changes : list of ndarray
        Steps, and how the derivatives changed along them.
    """

    steps: list[np.ndarray] = field(default_factory=list)
    changes: list[np.ndarray] = field(default_factory=list)

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        if step @ change > 0:
            self.steps.append(step)
            self.changes.append(change)

    def solve(self, solve: Solve, right: np.ndarray) -> np.ndarray:
        """Solve with the curvature, from a solver with the first one."""
        right, shares = right.copy(), []
        for step, change in zip(self.steps[::-1], self.changes[::-1], strict=True):
            shares.append(float(step @ right) / float(step @ change))
            right -= shares[-1] * change
        out = solve(right)
        for step, change, share in zip(self.steps, self.changes, shares[::-1], strict=True):
            out = out + (share - float(change @ out) / float(step @ change)) * step
        return out


@dataclass
class Chosen:
    """Strengths while the weights are sought: chosen anew at each step, until they rest.

    Attributes
    ----------
    rho, fixed
        As in `fit_rows`.
    dispersion : float or None
        φ where it is known.
    afresh : bool
        Whether the first step takes many on the strengths, with few functions.
    settled : bool
        Whether they rest.
    """

    rho: np.ndarray
    fixed: np.ndarray
    dispersion: float | None
    afresh: bool
    used: np.ndarray | float = np.inf

    def __post_init__(self) -> None:
        self.settled = bool(self.fixed.all())

    def step(self, sums: Sums, penalties: Penalties, n_iter: int) -> WorkingFit:
        """The fit of a working least-squares problem."""
        if not self.settled:
            if n_iter == 1 and self.afresh:
                self.rho = coarse_strengths(sums, penalties, self.rho, self.dispersion, self.fixed)
            most, tol = (_INNER, _EXACT) if self.afresh else (_MOST_INNER, _LARGE)
            found = choose_strengths(
                sums, penalties, self.rho, self.dispersion, self.fixed, most, tol
            )
            used, before = penalties.total(found.edf(penalties)), self.used
            # Rounded, so that steps do not amplify the rounding errors of those before them.
            self.rho, self.used = np.where(self.fixed, self.rho, np.round(found.rho, 3)), used
            moved = float(np.max(np.abs(used - before), initial=0.0))
            still = max(_STILL[0], _STILL[1] * float(used.sum()))
            self.settled = n_iter >= _SETTLE or (n_iter > 1 + self.afresh and moved < still)
            if not self.settled:
                return found
            # A tenth in the logarithm of a strength means nothing.
            self.rho = np.where(self.fixed, self.rho, np.round(self.rho, 1))
        return solve_with(sums, penalties, self.rho, self.dispersion)


def allowed(rows: Rows, found: WorkingFit) -> np.ndarray:
    """The minimum of a working problem among the weights that constraints allow."""
    if rows.cone is None:
        return found.weights
    return nearest(found.weights, found.inverse, rows.cone)


def _penalised(point: Point, diagonal: np.ndarray) -> float:
    """The objective: losses and penalties."""
    return float(point.value + 0.5 * diagonal @ point.beta**2)


def _damped(
    rows: Rows, loss: Loss, beta: np.ndarray, wanted: np.ndarray, diagonal: np.ndarray,
    before: float, here: Point | None,
) -> tuple[Point, bool]:  # fmt: skip
    """The longest of ever shorter steps towards `wanted` that does not raise the objective.

    And whether it is the whole step. `before` is its value; where losses at these weights are not
    known `here`, those that were left out since then may have lowered it a little.
    """
    share, slack = 1.0, (_LEFT if here is None else 1e-12) * abs(before)
    for _ in range(30):
        trial = rows.at(loss, beta + share * (wanted - beta))
        value = _penalised(trial, diagonal)
        if np.isfinite(value) and value <= before + slack:
            return trial, share == 1.0
        share *= 0.5
    return (rows.at(loss, beta) if here is None else here), False


def rough_step(
    rows: Rows, loss: Loss, here: Point, wanted: np.ndarray, solve: Solve,
    diagonal: np.ndarray,
) -> Point:  # fmt: skip
    """Go to the minimum of a working problem, or as far towards it as losses get lower.

    Further steps have the same curvature.
    """
    before = _penalised(here, diagonal)
    here, _ = _damped(rows, loss, here.beta, wanted, diagonal, before, here)
    if loss.majorizer_share or rows.cone is not None:
        return here
    return chords(rows, loss, here, solve, diagonal, _ROUGHLY)[0]


def _finished(
    found: WorkingFit, penalties: Penalties, value: float, n_iter: int,
    beta: np.ndarray, wider: np.ndarray, converged: bool = True,
) -> PenalisedFit:  # fmt: skip
    return PenalisedFit(
        beta, found.inverse * found.dispersion, wider, found.rho, found.edf(penalties),
        found.dispersion, float(value), n_iter, converged,
    )  # fmt: skip
