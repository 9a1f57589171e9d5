r"""Dual coordinate descent for additive models: the outer loop.

Primal and dual, for weights w, intercept b (not penalised) and costs c_i:

.. math:: P(w, b) = ½\|w\|² + \sum_i c_i\,ℓ(y_i, ⟨w, ψ_i⟩ + b), \qquad
          w = \sum_i β_i ψ_i, \quad \sum_i β_i = 0.

An epoch visits the active examples in random order and solves for one β_i at a time, in all lanes
(classes) at once (:func:`._dual_loops.epoch`).  Three things make few epochs enough:

* examples whose variables stay at a bound are shrunk (left out) until the others have converged;
* the intercept's constraint lets ψ be centred without changing the problem
  (:class:`._dual_loops.Centre`): the dual's diagonal, |ψ_i − m|² instead of |ψ_i|², is what limits
  the steps, and for splines, whose functions sum to one, most of |ψ_i|² is the mean;
* the constraint itself is met by the method of multipliers, one step per epoch.

The end is certified: Σβ is made exactly zero, and the duality gap, a sum over all examples of
Fenchel's inequality, must be at most ``tol`` times P.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...engine.table.memory import aligned
from ...engine.table.update import RowArrays, RowWorkspace, routines_of, weights_of
from ...progress import track
from ...threads import check_stop, together
from ..losses import dual_rules_of
from ..rows.map_tables import Compiled, workspace_for
from . import _dual_loops
from ._dual_loops import Centre, Duals, PassSums, SVMProblem, Visits

NO_SHRINKING = 1e30  # a slack that no example has
SHRINKING_SHARE = 0.3  # of the last pass's largest step: examples with more slack are shrunk
MULTIPLIER_WEIGHT = 0.1  # weight of the constraint's square, in units of the dual's diagonal
INTERCEPT_STEP = 4.0  # the step of the intercept where nothing else moves, in units of 1/Σc
BALANCING_VARIABLES = 256  # variables that nearly always make up for what the constraint lacks
ROUNDED_QUARTERS = 3  # quarters of the epochs, at most, on rounded rows
CENTRE_ROWS = 1000  # rows for the centre: any vector is right, a rough mean is good


Gap = tuple[np.ndarray, np.ndarray]  # primal values of some lanes, and their duality gaps


@dataclass(frozen=True)
class DualOptions:
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

    def scattered(self, rows: np.ndarray, n: int) -> Solution:
        """The solution of some of n rows: the duals of the others are zero."""
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
    rows: RowArrays,
    problem: SVMProblem,
    examples: np.ndarray,
    options: DualOptions,
    beta: np.ndarray,
    intercept: np.ndarray | None = None,
    rounded: tuple[Compiled, RowArrays] | None = None,
) -> Solution:
    """Solve the problems of all lanes to a relative duality gap of `tol`.

    Parameters
    ----------
    compiled : Compiled
        The map's tables.
    rows : RowArrays
        The examples.
    problem : SVMProblem
        Loss, targets and costs.
    examples : int32[m]
        The rows to train on, all of positive cost.
    options : DualOptions
        Tolerance, iterations, threads.
    beta : float64[n, lanes]
        Where to start, and where the duals go.
    intercept : ndarray, optional
        Where to start.
    rounded : tables and rows, optional
        Those of rounded rows, which take less time: their solution is where to start.
    """
    if intercept is None and options.fit_intercept and not beta.any():
        intercept = initial_intercepts(problem)
    first_rows = rounded or (compiled, rows)
    state = CoordinateDescent(*first_rows, problem, examples, options, beta, intercept)
    state.mean = None  # done with: all rows have their norms
    rng = np.random.default_rng(options.seed)

    def epoch(number: int) -> list[Gap]:
        rng.shuffle(state.order[: state.active])
        return [state.epoch()]

    def certify() -> list[Gap]:
        return [state.certify()]

    if rounded is None:
        gaps, n_iter, converged = descend(options, epoch, certify)
    else:
        first = replace(options, max_iter=-(-ROUNDED_QUARTERS * options.max_iter // 4))
        _, n_iter, _ = descend(first, epoch, certify)
        state.switch_rows(compiled, rows)
        gaps = certify()
        converged = all_small(gaps, options.tol)
        left = replace(options, max_iter=options.max_iter - n_iter)
        if not converged and left.max_iter > 0:
            gaps, more, converged = descend(left, epoch, certify)
            n_iter += more
    [(primal, gap)] = gaps
    return Solution(state.w, state.offset, state.beta, primal, gap, n_iter, state.visits, converged)


def descend(
    options: DualOptions, epoch: Callable[[int], list[Gap]], certify: Callable[[], list[Gap]]
) -> tuple[list[Gap], int, bool]:
    """Epochs until the gaps of all groups of lanes are certified; their number, and whether so.

    `epoch` returns primal values and gaps as seen on the way, `certify` those of one point.
    """
    strictness, converged, n_iter = 1.0, False, 0
    for n_iter in track(range(1, options.max_iter + 1), "training", enabled=options.progress):
        check_stop()
        if not all_small(epoch(n_iter), strictness * options.tol):
            continue
        gaps = certify()
        converged = all_small(gaps, options.tol)
        if converged:
            break
        strictness = max(0.2, 0.7 * strictness)  # what was seen on the way had been too good
    if not converged:
        gaps = certify()
        converged = all_small(gaps, options.tol)
    return gaps, n_iter, converged


def all_small(gaps: list[Gap], tol: float) -> bool:
    """Whether all gaps are numbers of at most `tol` times the objective.

    A gap is a sum of non-negative terms: one below zero by more than that is rounding, and
    certifies nothing.
    """
    return all(np.all(np.abs(gap) <= tol * primal) for primal, gap in gaps)


def initial_intercepts(problem: SVMProblem) -> np.ndarray | None:
    """The intercepts that are best without weights, where these are not next to 0."""
    start = dual_rules_of(problem.loss).start
    if start is None:
        return None
    shares = np.array([problem.cost[problem.y == code].sum() for code in problem.positive])
    return start(shares / problem.cost.sum())


class CoordinateDescent:
    """Dual coordinate descent with shrinking: weights, dual variables, and sums of the passes."""

    def __init__(
        self,
        compiled: Compiled,
        rows: RowArrays,
        problem: SVMProblem,
        examples: np.ndarray,
        options: DualOptions,
        beta: np.ndarray,
        intercept: np.ndarray | None,
    ) -> None:
        self.compiled, self.rows, self.problem, self.options = compiled, rows, problem, options
        self.examples, self.beta, self.n_outputs = examples, beta, problem.positive.size
        self.w = self._no_weights()
        self._packed: tuple[tuple, tuple] = (None,) * 3, ()
        self.visits, self.certificates = len(examples), 0
        self.square = self.scale = 0.0
        self._centre_rows()
        self.offset = np.zeros(self.n_outputs) if intercept is None else np.array(intercept, float)
        self.beta_sum = np.zeros(self.n_outputs)
        if self._accumulate_duals() and options.fit_intercept:
            # The intercept that was given is the one where Σβ = 0.
            self.beta_sum[:] = self._total()
            self.offset += self.scale * self.beta_sum
            self._balance()
        self.active_sums = np.zeros((4, self.n_outputs))
        self.shrunk_sums = np.zeros((4, self.n_outputs))
        self.activate_all()

    def _accumulate_duals(self) -> bool:
        """Weights from the duals; whether there are any."""
        started = np.flatnonzero(self.beta.any(axis=1))
        if len(started):
            self._accumulate(started, self.beta[started], self.w)
            self.visits += len(started)
        return len(started) > 0

    def switch_rows(self, compiled: Compiled, rows: RowArrays) -> None:
        """Other tables of the same bases, and the same rows in another form, with these duals.

        The centre stays: it is without effect where Σβ = 0, as after a certificate. So do lengths
        of steps: |ψ_i|² is nearly the same, and steps up to twice as long would converge.
        """
        self.compiled, self.rows, self.certificates = compiled, rows, 0
        self.w = self._no_weights()
        self._accumulate_duals()

    def _no_weights(self) -> np.ndarray:
        dtype = self.compiled.basis.values.coef.dtype
        # One vector more: the last feature's may reach beyond its weights.
        size = (self.compiled.n_weights + 64) * self.compiled.lanes
        return aligned(size, dtype)

    def _accumulate(self, examples: np.ndarray, steps: np.ndarray, w: np.ndarray) -> None:
        compiled, rows = self.compiled, self.rows
        examples = np.ascontiguousarray(examples, np.int32)
        basis, lanes = compiled.basis, compiled.lanes
        changed = weights_of(basis, basis.column, lanes, w)
        work = routines_of(basis, rows, workspace_for(compiled, rows), changed=changed)
        _dual_loops.accumulate(*work, examples, steps)

    def _centre_rows(self) -> None:
        """Squared norms of the examples, centred where the intercept allows it."""
        if self.options.fit_intercept:
            sample = self.examples[:: -(-len(self.examples) // CENTRE_ROWS)]
            self._mean_of(sample)
        norm, self.shift = self._norms()
        if self.options.fit_intercept:
            self.square = float(self.shift[sample].mean())
        self._centred(norm)
        if self.options.fit_intercept:
            self.multiplier = MULTIPLIER_WEIGHT * float(norm[self.examples].mean())
            self._set_scale(float(self.problem.cost[self.examples].sum()))
        self._set_centre(norm)

    def _set_scale(self, cost: float) -> None:
        """Weight of the constraint's square, for examples that cost so much together.

        Where losses count for little beside ½|w|², the intercept alone is left to move, and 1/Σc is
        the curvature of its step.
        """
        self.scale = max(self.multiplier, INTERCEPT_STEP / max(cost, 1e-300))

    def _mean_of(self, sample: np.ndarray) -> None:
        self.mean = self._no_weights()
        self._accumulate(sample, np.full((len(sample), 1), 1.0 / len(sample)), self.mean)

    def _norms(self) -> tuple[np.ndarray, np.ndarray]:
        """|ψ_i|² and ⟨m, ψ_i⟩ of all rows at hand."""
        compiled, rows, n = self.compiled, self.rows, self.problem.y.size
        norm, shift = np.empty(n), np.empty((n, 1, 1), compiled.basis.values.coef.dtype)
        mean = self.mean if self.options.fit_intercept else self._no_weights()
        basis = compiled.basis
        scored = weights_of(basis, basis.values, compiled.lanes, mean)

        def part(begin: int, end: int) -> None:
            workspace, out = workspace_for(compiled, rows), shift[begin:end]
            work = routines_of(basis, rows, workspace, scored=scored, norms=True)
            _dual_loops.evaluate(*work, np.arange(begin, end, dtype=np.int64), norm[begin:end], out)

        in_blocks(self.options.n_threads, n, part)
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

    def activate_all(self) -> None:
        """All examples are active again."""
        self.order, self.active = self.examples.copy(), len(self.examples)
        self.shrink_above = np.full(self.n_outputs, NO_SHRINKING)
        self.shrunk_sums[:] = 0.0

    def epoch(self) -> Gap:
        """One pass over the active examples; primal and gap as seen on the way."""
        return self.after(self.sweep())

    def sweep(self) -> np.ndarray:
        """Steps for the active examples; the sums over all, those of shrunk ones from before."""
        self.visits += self.active
        self.active, self.active_sums, newly_shrunk = self._pass(self.order, self.active, True)
        self.shrink_above = SHRINKING_SHARE * self.active_sums[0]
        sums = self.active_sums + self.shrunk_sums
        self.shrunk_sums += newly_shrunk
        return sums

    def after(self, sums: np.ndarray) -> Gap:
        """The multiplier's step after a pass over all examples; primal and gap from its sums."""
        if self.options.fit_intercept:
            self.beta_sum[:] = self._total()
            self.offset += self.scale * self.beta_sum
        primal = sums[1] + 0.5 * (sums[3] - self.offset * self.beta_sum)
        return primal, sums[2]

    def _total(self) -> np.ndarray:
        """Σβ of each lane."""
        return self.beta.sum(axis=0)

    def _pass(
        self, order: np.ndarray, active: int, learn: bool
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Visit examples: how many stay active, sums over all, and over those that are shrunk."""
        duals = Duals(self.beta, self.offset, self.beta_sum)
        sums = PassSums(self.shrink_above, *np.zeros((2, 4, self.n_outputs)))
        visits, workspace = Visits(order, active, learn), workspace_for(self.compiled, self.rows)
        constants = self._constants(duals, sums, workspace)
        active = _dual_loops.epoch(*constants, duals, visits, sums, workspace)
        return active, sums.active, sums.shrunk

    def _constants(self, duals: Duals, sums: PassSums, workspace: RowWorkspace) -> tuple:
        """What all passes over the same rows have in common, as the loops take it."""
        now = (self.rows, self.problem, self.centre)
        if any(a is not b for a, b in zip(now, self._packed[0], strict=True)):
            basis, lanes = self.compiled.basis, self.compiled.lanes
            steps = _dual_loops.steps_of(self.problem, self.centre, duals, sums, workspace)
            scored, changed = (
                weights_of(basis, table, lanes, self.w) for table in (basis.values, basis.column)
            )
            work = routines_of(
                basis, self.rows, workspace, scored=scored, changed=changed, steps=steps
            )
            self._packed = now, work[:2]
        return self._packed[1]

    def certify(self) -> Gap:
        """Primal value and duality gap over all examples, from a dual point with Σβ = 0.

        Examples that would not move are shrunk: a gap that is left is that of the others. This is
        so after the first certificate. After later ones all are active, because the intercept
        may settle slowly where few can move (the hinge with a small C took 80 epochs, not 8).
        """
        if self.options.fit_intercept:
            self._balance()
        self.visits += len(self.examples)

        def certify_rows(begin: int, end: int) -> tuple[np.ndarray, ...]:
            order = self.examples[begin:end].copy()
            active, *sums = self._pass(order, end - begin, False)
            return *sums, order[:active], order[active:]

        blocks = in_blocks(self.options.n_threads, len(self.examples), certify_rows)
        all_sums, shrunk_sums, active, shrunk = zip(*blocks, strict=True)
        self.active_sums, self.shrunk_sums = np.sum(all_sums, axis=0), np.sum(shrunk_sums, axis=0)
        self.active_sums[0] = np.max([sums[0] for sums in all_sums], axis=0)
        self.shrink_above = SHRINKING_SHARE * self.active_sums[0]
        # Sorted: the order must not depend on the number of threads.
        self.order = np.concatenate([np.sort(np.concatenate(active)), *shrunk])
        self.active = sum(map(len, active))
        self.certificates += 1
        if self.active == 0 or self.certificates > 1:
            self.activate_all()
        return self.active_sums[1] + 0.5 * self.active_sums[3], self.active_sums[2].copy()

    def _balance(self) -> None:
        """Make each lane's Σβ zero: shrink a few of its largest variables of the sum's sign.

        Towards zero is feasible for every loss. Of the offset the multiplier stays, which is the
        intercept; what the square of the constraint adds to it goes with Σβ. If that stayed, too,
        the intercept would swing around its place from one certificate to the next.
        """
        total = self._total()
        for lane in np.flatnonzero(total):
            side = self.beta[:, lane] * np.sign(total[lane])
            largest, sums = _largest(side, 4 * abs(total[lane]))
            if len(largest) == 0:  # none here that could shrink (blocks of one class)
                continue
            enough = min(4 * abs(total[lane]), sums[-1])
            largest = largest[: int(np.searchsorted(sums, enough)) + 1]
            step = np.zeros((len(largest), self.n_outputs))
            share = min(abs(total[lane]) / sums[len(largest) - 1], 1.0)
            step[:, lane] = -self.beta[largest, lane] * share
            self.beta[largest, lane] += step[:, lane]
            self._accumulate(largest, step, self.w)
            self.offset[lane] += step[:, lane] @ (self.centre.pull - self.shift[largest])
        self.beta_sum[:] = 0.0


def _largest(values: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray]:
    """Places of the largest positive values, so many that these sum to `total`; their sums.

    All positive ones if they do not. A few nearly always do: the others are not sorted.
    """
    for count in (BALANCING_VARIABLES, len(values)):
        some = np.argpartition(-values, count)[:count] if count < len(values) else slice(None)
        places = np.arange(len(values))[some]
        places = places[values[places] > 0]
        places = places[np.argsort(-values[places], kind="stable")]
        sums = np.cumsum(values[places])
        if len(sums) and sums[-1] >= total:
            break
    return places, sums
