r"""Dual coordinate descent for additive models: the outer loop.

Primal and dual, for weights w, intercept b (not penalised) and costs c_i:

.. math:: P(w, b) = ½\|w\|² + \sum_i c_i\,ℓ(y_i, ⟨w, ψ_i⟩ + b), \qquad
          w = \sum_i β_i ψ_i, \quad \sum_i β_i = 0.

An epoch visits the active examples in random order and solves for one β_i at a time, in all lanes
(classes) at once (:func:`._loops.epoch`).  Three things make few epochs enough:

* examples that rest at a bound are put aside (shrinking) until the others have converged;
* the intercept's constraint lets ψ be centred without changing the problem
  (:class:`._loops.Centre`): the dual's diagonal, |ψ_i − m|² instead of |ψ_i|², is what limits the
  steps, and for splines, whose functions sum to one, most of |ψ_i|² is the mean;
* the constraint itself is kept by the method of multipliers, one step per epoch.

The end is certified: Σβ is made exactly zero, and the duality gap, a sum over all examples of
Fenchel's inequality, must be at most ``tol`` times P.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...engine.table.memory import aligned
from ...engine.table.update import Room, Rows, weights_of, work_of
from ...progress import track
from ...threads import check_stop, together
from ..losses import rules_of
from . import _loops
from ._loops import Centre, Duals, Problem, Tally, Visits
from .basis import Compiled, room_for

_NEVER = 1e30  # a slack that no example has: nothing is put aside
_EAGER = 0.3  # examples rest if their slack exceeds this share of the last pass's largest step
_MULTIPLIER = 0.1  # weight of the constraint's square, in units of the dual's diagonal
_INTERCEPT = 4.0  # the step of the intercept where nothing else moves, in units of 1/Σc
_FEW = 256  # variables that nearly always make up for what the constraint lacks
_NEAR = 3  # quarters of the epochs, at most, on rows that are nearly the same
_SAMPLE = 1000  # rows for the centre: any vector is right, a rough mean is good


Gap = tuple[np.ndarray, np.ndarray]  # primal values of some lanes, and their duality gaps


@dataclass(frozen=True)
class Settings:
    """How to solve, and when to stop."""

    fit_intercept: bool
    tol: float
    max_iter: int
    seed: int
    n_threads: int
    progress: bool | None = False


@dataclass
class Solution:
    """Weights [feature][basis][lane], intercepts and duals of a group of lanes."""

    weights: np.ndarray
    intercept: np.ndarray
    beta: np.ndarray
    primal: np.ndarray
    gap: np.ndarray
    n_iter: int
    n_visits: int
    converged: bool
    solver: str = "dual"

    def among(self, rows: np.ndarray, n: int) -> Solution:
        """The solution of some rows among all: the duals of the others are zero."""
        beta = np.zeros((n, self.beta.shape[1]))
        beta[rows] = self.beta
        return replace(self, beta=beta)


def in_blocks(n_threads: int, n: int, work: Callable[[int, int], Any]) -> list[Any]:
    """``work(begin, end)`` over blocks of 0 … n, one per thread; the loops release the GIL."""
    step = max(1, -(-n // n_threads))
    blocks = [(begin, min(n, begin + step)) for begin in range(0, n, step)]
    if len(blocks) <= 1:
        return [work(*block) for block in blocks]
    return together(lambda block: work(*block), blocks, len(blocks))


def solve(
    compiled: Compiled,
    rows: Rows,
    problem: Problem,
    examples: np.ndarray,
    settings: Settings,
    beta: np.ndarray,
    intercept: np.ndarray | None = None,
    near: tuple[Compiled, Rows] | None = None,
) -> Solution:
    """Solve the problems of all lanes to a relative duality gap of `tol`.

    Parameters
    ----------
    compiled : Compiled
        The map's tables.
    rows : Rows
        The examples.
    problem : Problem
        Loss, targets and costs.
    examples : int32[m]
        The rows to train on, all of positive cost.
    settings : Settings
        Tolerance, iterations, threads.
    beta : float64[n, lanes]
        Where to start, and where the duals go.
    intercept : ndarray, optional
        Where to start.
    near : tables and rows, optional
        Others that are nearly the same and take less time: their solution is where to start.
    """
    if intercept is None and settings.fit_intercept and not beta.any():
        intercept = _alone(problem)
    state = State(*(near or (compiled, rows)), problem, examples, settings, beta, intercept)
    state.mean = None  # done with: all rows have their norms
    rng = np.random.default_rng(settings.seed)

    def epoch(number: int) -> list[Gap]:
        rng.shuffle(state.order[: state.active])
        return [state.epoch()]

    def certify() -> list[Gap]:
        return [state.certify()]

    if near is None:
        found, n_iter, converged = descend(settings, epoch, certify)
    else:
        first = replace(settings, max_iter=-(-_NEAR * settings.max_iter // 4))
        _, n_iter, _ = descend(first, epoch, certify)
        state.go_over_to(compiled, rows)
        found = certify()
        converged = small(found, settings.tol)
        left = replace(settings, max_iter=settings.max_iter - n_iter)
        if not converged and left.max_iter > 0:
            found, more, converged = descend(left, epoch, certify)
            n_iter += more
    [(primal, gap)] = found
    return Solution(state.w, state.offset, state.beta, primal, gap, n_iter, state.visits, converged)


def descend(
    settings: Settings, epoch: Callable[[int], list[Gap]], certify: Callable[[], list[Gap]]
) -> tuple[list[Gap], int, bool]:
    """Epochs until the gaps of all groups of lanes are certified; their number, and whether so.

    `epoch` tells primal values and gaps as seen on the way, `certify` those of one point.
    """
    strictness, converged, n_iter = 1.0, False, 0
    for n_iter in track(range(1, settings.max_iter + 1), "training", enabled=settings.progress):
        check_stop()
        if not small(epoch(n_iter), strictness * settings.tol):
            continue
        found = certify()
        converged = small(found, settings.tol)
        if converged:
            break
        strictness = max(0.2, 0.7 * strictness)  # what was seen on the way had been too good
    if not converged:
        found = certify()
        converged = small(found, settings.tol)
    return found, n_iter, converged


def small(found: list[Gap], tol: float) -> bool:
    """Whether all gaps are numbers of at most `tol` times the objective.

    A gap is a sum of non-negative terms: one below zero by more than that is rounding, and
    certifies nothing.
    """
    return all(np.all(np.abs(gap) <= tol * primal) for primal, gap in found)


def _alone(problem: Problem) -> np.ndarray | None:
    """The intercepts that are best without weights, where these are not next to 0."""
    start = rules_of(problem.loss).start
    if start is None:
        return None
    shares = np.array([problem.cost[problem.y == code].sum() for code in problem.positive])
    return start(shares / problem.cost.sum())


class State:
    """Weights, duals and bookkeeping of a run."""

    def __init__(
        self,
        compiled: Compiled,
        rows: Rows,
        problem: Problem,
        examples: np.ndarray,
        settings: Settings,
        beta: np.ndarray,
        intercept: np.ndarray | None,
    ) -> None:
        self.compiled, self.rows, self.problem, self.settings = compiled, rows, problem, settings
        self.examples, self.beta, self.used = examples, beta, problem.positive.size
        self.w = self._no_weights()
        self._handed: tuple[tuple, tuple] = (None,) * 3, ()
        self.visits, self.certificates = len(examples), 0
        self.square = self.scale = 0.0
        self._centre_rows()
        self.offset = np.zeros(self.used) if intercept is None else np.array(intercept, float)
        self.slope = np.zeros(self.used)
        if self._add_up() and settings.fit_intercept:
            # The intercept that was given is the one where Σβ = 0.
            self.slope[:] = self._total()
            self.offset += self.scale * self.slope
            self._balance()
        self.report = np.zeros((4, self.used))
        self.parked = np.zeros((4, self.used))
        self.wake()

    def _add_up(self) -> bool:
        """Weights from the duals; whether there are any."""
        started = np.flatnonzero(self.beta.any(axis=1))
        if len(started):
            self._accumulate(started, self.beta[started], self.w)
            self.visits += len(started)
        return len(started) > 0

    def go_over_to(self, compiled: Compiled, rows: Rows) -> None:
        """Other tables of the same bases, and the same rows in another form, with these duals.

        The centre stays: it is without effect where Σβ = 0, as after a certificate. So do lengths
        of steps: |ψ_i|² is nearly the same, and steps up to twice as long would converge.
        """
        self.compiled, self.rows, self.certificates = compiled, rows, 0
        self.w = self._no_weights()
        self._add_up()

    def _no_weights(self) -> np.ndarray:
        dtype = self.compiled.basis.values.coef.dtype
        # One vector more: the last feature's may reach beyond its weights.
        size = (self.compiled.n_weights + 64) * len(self.compiled.lanes)
        return aligned(size, dtype)

    def _accumulate(self, examples: np.ndarray, steps: np.ndarray, w: np.ndarray) -> None:
        compiled, rows = self.compiled, self.rows
        examples = np.ascontiguousarray(examples, np.int32)
        basis, lanes = compiled.basis, compiled.lanes
        changed = weights_of(basis, basis.column, lanes, w)
        work = work_of(basis, rows, room_for(compiled, rows), changed=changed)
        _loops.accumulate(*work, examples, steps)

    def _centre_rows(self) -> None:
        """Squared norms of the examples, centred where the intercept allows it."""
        if self.settings.fit_intercept:
            sample = self.examples[:: -(-len(self.examples) // _SAMPLE)]
            self._mean_of(sample)
        norm, self.shift = self._norms()
        if self.settings.fit_intercept:
            self.square = float(self.shift[sample].mean())
        self._centred(norm)
        if self.settings.fit_intercept:
            self.multiplier = _MULTIPLIER * float(norm[self.examples].mean())
            self._set_scale(float(self.problem.cost[self.examples].sum()))
        self._set_centre(norm)

    def _set_scale(self, cost: float) -> None:
        """Weight of the constraint's square, for examples that cost so much together.

        Where losses count for little beside ½|w|², the intercept alone is left to move, and 1/Σc is
        the curvature of its step.
        """
        self.scale = max(self.multiplier, _INTERCEPT / max(cost, 1e-300))

    def _mean_of(self, sample: np.ndarray) -> None:
        self.mean = self._no_weights()
        self._accumulate(sample, np.full((len(sample), 1), 1.0 / len(sample)), self.mean)

    def _norms(self) -> tuple[np.ndarray, np.ndarray]:
        """|ψ_i|² and ⟨m, ψ_i⟩ of all rows at hand."""
        compiled, rows, n = self.compiled, self.rows, self.problem.y.size
        norm, shift = np.empty(n), np.empty((n, 1, 1), compiled.basis.values.coef.dtype)
        mean = self.mean if self.settings.fit_intercept else self._no_weights()
        basis = compiled.basis
        scored = weights_of(basis, basis.values, compiled.lanes, mean)

        def part(begin: int, end: int) -> None:
            room, out = room_for(compiled, rows), shift[begin:end]
            work = work_of(basis, rows, room, scored=scored, norms=True)
            _loops.evaluate(*work, np.arange(begin, end, dtype=np.int64), norm[begin:end], out)

        in_blocks(self.settings.n_threads, n, part)
        self.visits += n
        return norm, shift[:, 0, 0].astype(np.float64, copy=False)

    def _centred(self, norm: np.ndarray) -> None:
        """|ψ_i − m|² from |ψ_i|², in place."""
        norm += self.square
        norm -= self.shift
        norm -= self.shift

    def _set_centre(self, norm: np.ndarray) -> None:
        """What the loops know of the intercept; `norm` becomes part of it."""
        norm += self.scale
        np.maximum(norm, 1e-12, out=norm)
        self.centre = Centre(norm, self.shift, self.square + self.scale)

    def wake(self) -> None:
        """All examples are active again."""
        self.order, self.active = self.examples.copy(), len(self.examples)
        self.keep = np.full(self.used, _NEVER)
        self.parked[:] = 0.0

    def epoch(self) -> Gap:
        """One pass over the active examples; primal and gap as seen on the way."""
        return self.after(self.sweep())

    def sweep(self) -> np.ndarray:
        """Steps for the active examples; what was seen, those put aside before included."""
        put_aside = np.zeros_like(self.report)
        self.visits += self.active
        self.active = self._pass(self.order, self.active, self.report, put_aside, True)
        self.keep = _EAGER * self.report[0]
        seen = self.report + self.parked
        self.parked += put_aside
        return seen

    def after(self, seen: np.ndarray) -> Gap:
        """The multiplier's step, and primal and gap, once all examples were seen."""
        if self.settings.fit_intercept:
            self.slope[:] = self._total()
            self.offset += self.scale * self.slope
        primal = seen[1] + 0.5 * (seen[3] - self.offset * self.slope)
        return primal, seen[2]

    def _total(self) -> np.ndarray:
        """Σβ of each lane."""
        return self.beta.sum(axis=0)

    def _pass(
        self, order: np.ndarray, active: int, report: np.ndarray, put_aside: np.ndarray, learn: bool
    ) -> int:
        duals = Duals(self.beta, self.offset, self.slope)
        tally = Tally(self.keep, report, put_aside)
        visits, room = Visits(order, active, learn), room_for(self.compiled, self.rows)
        return _loops.epoch(*self._constants(duals, tally, room), duals, visits, tally, room)

    def _constants(self, duals: Duals, tally: Tally, room: Room) -> tuple:
        """What all passes over the same rows have in common, as the loops take it."""
        now = (self.rows, self.problem, self.centre)
        if any(a is not b for a, b in zip(now, self._handed[0], strict=True)):
            basis, lanes = self.compiled.basis, self.compiled.lanes
            steps = _loops.steps_of(self.problem, self.centre, duals, tally, room)
            scored, changed = (
                weights_of(basis, table, lanes, self.w) for table in (basis.values, basis.column)
            )
            work = work_of(basis, self.rows, room, scored=scored, changed=changed, steps=steps)
            self._handed = now, work[:2]
        return self._handed[1]

    def certify(self) -> Gap:
        """Primal value and duality gap over all examples, from a dual point with Σβ = 0.

        Examples that would not move rest afterwards: a gap that is left is that of the others. This
        is so after the first certificate. After later ones all are active, because the intercept
        may settle slowly where few can move (the hinge with a small C took 80 epochs, not 8).
        """
        if self.settings.fit_intercept:
            self._balance()
        self.visits += len(self.examples)

        def part(begin: int, end: int) -> tuple[np.ndarray, ...]:
            report, put_aside = np.zeros_like(self.report), np.zeros_like(self.report)
            order = self.examples[begin:end].copy()
            active = self._pass(order, end - begin, report, put_aside, False)
            return report, put_aside, order[:active], order[active:]

        blocks = in_blocks(self.settings.n_threads, len(self.examples), part)
        reports, put_aside, active, resting = zip(*blocks, strict=True)
        self.report, self.parked = np.sum(reports, axis=0), np.sum(put_aside, axis=0)
        self.report[0] = np.max([report[0] for report in reports], axis=0)
        self.keep = _EAGER * self.report[0]
        # Sorted: the order must not depend on the number of threads.
        self.order = np.concatenate([np.sort(np.concatenate(active)), *resting])
        self.active = sum(len(part) for part in active)
        self.certificates += 1
        if self.active == 0 or self.certificates > 1:
            self.wake()
        return self.report[1] + 0.5 * self.report[3], self.report[2].copy()

    def _balance(self) -> None:
        """Make each lane's Σβ zero: shrink a few of its largest variables of the sum's sign.

        Towards zero is feasible for every loss. Of the offset the multiplier stays, which is the
        intercept; what the square of the constraint adds to it goes with Σβ. If that stayed, too,
        the intercept would swing around its place from one certificate to the next.
        """
        total = self._total()
        for lane in np.flatnonzero(total):
            side = self.beta[:, lane] * np.sign(total[lane])
            largest, reached = _largest(side, 4 * abs(total[lane]))
            if len(largest) == 0:  # none here that could shrink (blocks of one class)
                continue
            wanted = min(4 * abs(total[lane]), reached[-1])
            chosen = largest[: int(np.searchsorted(reached, wanted)) + 1]
            step = np.zeros((len(chosen), self.used))
            share = min(abs(total[lane]) / reached[len(chosen) - 1], 1.0)
            step[:, lane] = -self.beta[chosen, lane] * share
            self.beta[chosen, lane] += step[:, lane]
            self._accumulate(chosen, step, self.w)
            moved = step[:, lane] @ (self.centre.pull - self.shift[chosen])
            self.offset[lane] += moved
        self.slope[:] = 0.0


def _largest(values: np.ndarray, wanted: float) -> tuple[np.ndarray, np.ndarray]:
    """Places of the largest positive values, so many that these sum to `wanted`; their sums.

    All positive ones if they do not. A few nearly always do: the others are not sorted.
    """
    for count in (_FEW, len(values)):
        some = np.argpartition(-values, count)[:count] if count < len(values) else slice(None)
        found = np.arange(len(values))[some]
        found = found[values[found] > 0]
        found = found[np.argsort(-values[found], kind="stable")]
        reached = np.cumsum(values[found])
        if len(reached) and reached[-1] >= wanted:
            break
    return found, reached
