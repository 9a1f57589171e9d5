"""Compiled loops of dual coordinate descent: arrays and numbers in, arrays changed in place.

:mod:`.dual` has the algorithm and its notation. What is done with a row's values
(:mod:`kernelmaps.engine.table.update`) knows nothing of losses, and the rules of losses nothing of
tables: here they meet, example by example, as routines that are called through pointers.

The loops rely on what `update` relies on, on codes that were checked on entry, and on a number per
example in `y`, `cost` and the dual variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from ..._util.compiling import njit
from ..._util.static_int import StaticInt
from ...engine.simd.vectors import item, put
from ...engine.table.entry import BoundRoutine, bind, call, entry, routine
from ...engine.table.update import (
    FAST,
    RowWorkspace,
    feature_of,
    locate_row,
    prefetch_row,
)
from ..losses import dual_rules_of


class SVMProblem(NamedTuple):
    """Loss, targets and costs of the examples: one binary or scalar problem per output."""

    loss: StaticInt  # its index in `LOSSES`
    of_labels: bool
    epsilon: float
    y: np.ndarray  # float64[n]: class code, or the regression target
    positive: np.ndarray  # float64[outputs]: the class code whose label is +1
    cost: np.ndarray  # float64[n]: c_i, C times the weight of the example


class DualHessian(NamedTuple):
    """Q of the dual, with centred ψ and the penalty σ of the augmented Lagrangian.

    Q_ij = ⟨ψ_i − m, ψ_j − m⟩ + σ = ⟨ψ_i, ψ_j⟩ − ⟨m, ψ_i⟩ − ⟨m, ψ_j⟩ + q0 with q0 = |m|² + σ.
    """

    diagonal: np.ndarray  # float64[n]: Q_ii
    mean_dot: np.ndarray  # float64[n]: ⟨m, ψ_i⟩
    q0: float


class DualVariables(NamedTuple):
    """What coordinate descent moves beside the weights."""

    alpha: np.ndarray  # float64[n, outputs]
    alpha_sum: np.ndarray  # float64[outputs]: s = Σα
    bias: np.ndarray  # float64[outputs]: the intercept, where s = 0


class PassTotals(NamedTuple):
    """Totals of some examples, of each output, in a pass over them: float64[outputs] each."""

    max_violation: np.ndarray  # largest |Δα_i| Q_ii: the change of a score by its own step
    loss: np.ndarray  # Σ c_i ℓ(y_i, f_i)
    gap: np.ndarray  # Σ of Fenchel's inequality, the duality gap
    alpha_dot_score: np.ndarray  # Σ α_i f_i

    @classmethod
    def zeros(cls, n_outputs: int) -> PassTotals:
        return cls(*np.zeros((4, n_outputs)))

    def assign(self, other: PassTotals) -> None:
        """Take the values of other totals."""
        for values, others in zip(self, other, strict=True):
            values[:] = others

    def merged(self, other: PassTotals) -> PassTotals:
        """Totals of two sets of examples together."""
        return PassTotals(
            np.maximum(self.max_violation, other.max_violation),
            self.loss + other.loss,
            self.gap + other.gap,
            self.alpha_dot_score + other.alpha_dot_score,
        )


class PassRecord(NamedTuple):
    """The threshold that a pass shrinks by, and the totals that it writes."""

    shrink_threshold: np.ndarray  # float64[outputs]
    visited: PassTotals  # of all examples that are visited, and of those that were shrunk before
    shrunk: PassTotals  # of those that are shrunk, in this pass or before; they have no violation
    example: PassTotals  # of the example at hand

    @classmethod
    def empty(cls, shrink_threshold: np.ndarray) -> PassRecord:
        totals = np.zeros((3, 4, shrink_threshold.size))
        return cls(shrink_threshold.copy(), *(PassTotals(*values) for values in totals))


class StepData(NamedTuple):
    """What a step of coordinate descent is computed from."""

    problem: SVMProblem
    hessian: DualHessian


def _step(loss, y, f, alpha, q, c, epsilon):
    """The new dual variable, and the derivative of the dual at a bound (see `DualRules`)."""
    return dual_rules_of(loss).step(y, f, alpha, q, c, epsilon)


@overload(_step, jit_options=FAST)
def _step_of(loss, y, f, alpha, q, c, epsilon):
    rule = njit(**FAST)(dual_rules_of(loss.value).step)
    return lambda loss, y, f, alpha, q, c, epsilon: rule(y, f, alpha, q, c, epsilon)


def _loss_and_gap(loss, y, f, alpha, c, epsilon):
    """The loss cℓ of an example, and its part of the duality gap."""
    rules = dual_rules_of(loss)
    value = c * rules.value(y, f, epsilon)
    return value, value + rules.conjugate(y, alpha, c, epsilon) + alpha * f


@overload(_loss_and_gap, jit_options=FAST)
def _loss_and_gap_of(loss, y, f, alpha, c, epsilon):
    rules = dual_rules_of(loss.value)
    loss_of, conjugate = (njit(**FAST)(rule) for rule in (rules.value, rules.conjugate))

    def loss_and_gap(loss, y, f, alpha, c, epsilon):
        value = c * loss_of(y, f, epsilon)
        return value, value + conjugate(y, alpha, c, epsilon) + alpha * f

    return loss_and_gap


@entry(fastmath=True)
def compiled_rules(loss, y, f, alpha, q, c, epsilon):
    """New variable, derivative at a bound, loss and gap of one example, as the loops see them."""
    new, bound_derivative = _step(loss, y, f, alpha, q, c, epsilon)
    value, gap = _loss_and_gap(loss, y, f, alpha, c, epsilon)
    return new, bound_derivative, value, gap


@njit(**FAST)
def _target(problem, i, k):
    """The label ±1 of example i for output k, or its regression target."""
    if not problem.of_labels:
        return problem.y[i]
    return 1.0 if problem.y[i] == problem.positive[k] else -1.0


@njit(**FAST)
def _add_example(totals, example):
    """Add the totals of one example to those of several."""
    for k in range(totals.loss.size):
        totals.max_violation[k] = max(totals.max_violation[k], example.max_violation[k])
        totals.loss[k] += example.loss[k]
        totals.gap[k] += example.gap[k]
        totals.alpha_dot_score[k] += example.alpha_dot_score[k]


@njit(**FAST)
def _start_with_shrunk(record):
    """Totals of a pass start with those of examples that are not visited."""
    visited, shrunk = record.visited, record.shrunk
    for k in range(visited.loss.size):
        visited.max_violation[k], visited.loss[k] = 0.0, shrunk.loss[k]
        visited.gap[k], visited.alpha_dot_score[k] = shrunk.gap[k], shrunk.alpha_dot_score[k]


def steps_of(
    problem: SVMProblem, hessian: DualHessian, duals: DualVariables, record: PassRecord,
    workspace: RowWorkspace,
) -> BoundRoutine:  # fmt: skip
    """The routine that takes the steps of a problem's loss."""
    bound = bind(_coordinate_steps, (StepData(problem, hessian),), (duals, record, workspace), 2)
    return BoundRoutine(*bound)


@routine(fastmath=True)
def _coordinate_steps(data, duals, record, workspace, i, take_steps):
    """Minimise the dual over α_i, for each output by itself.

    The scores ⟨w, ψ_i⟩ are in ``workspace.f``. The steps go to ``workspace.move``, and two flags to
    ``workspace.flags``: whether an α_i moves, and whether the example is shrunk.

    It is shrunk if no α_i moves, and each is held at its bound by a derivative above the threshold.
    """
    problem, hessian, example = data.problem, data.hessian, record.example
    moved, shrink = np.int64(0), np.int64(1)
    q, c, mean_dot = hessian.diagonal[i], problem.cost[i], hessian.mean_dot[i]
    for k in range(problem.positive.size):
        y, alpha = _target(problem, i, k), duals.alpha[i, k]
        score = workspace.f[k] + duals.bias[k] - duals.alpha_sum[k] * mean_dot
        new, bound_derivative = _step(problem.loss, y, score, alpha, q, c, problem.epsilon)
        step = new - alpha
        if step != 0.0 or bound_derivative <= record.shrink_threshold[k]:
            shrink = np.int64(0)
        loss, gap = _loss_and_gap(problem.loss, y, score, alpha, c, problem.epsilon)
        example.max_violation[k], example.loss[k] = abs(step) * q, loss
        example.gap[k], example.alpha_dot_score[k] = gap, alpha * score
        if take_steps == 0:
            step = 0.0
        workspace.move[k] = step
        if step != 0.0:
            moved = np.int64(1)
            duals.alpha[i, k] = new
            duals.alpha_sum[k] += step
            duals.bias[k] += step * (hessian.q0 - mean_dot)
    _add_example(record.visited, example)
    if shrink != 0:
        _add_example(record.shrunk, example)
    workspace.flags[0], workspace.flags[1] = moved, shrink


@entry(fastmath=True)
def visit_examples(work, rows, workspace, duals, record, order, n_active, take_steps):
    """Visit the first `n_active` examples of `order` once; returns how many stay active.

    Each takes its steps in α_i, which the weights follow at once. An example that is shrunk changes
    places with the last active one. Without `take_steps` nothing moves: totals are then exact for
    the weights as they are, and violations are those of the steps that would be taken.

    `order` is int64, which NumPy shuffles in half the time of int32.
    """
    score, add, steps, flags, one = work.score, work.add, work.steps, workspace.flags, np.int64(1)
    _start_with_shrunk(record)
    t = 0
    while t < n_active:
        i = np.int64(order[t])
        if t + 1 < n_active:
            prefetch_row(rows, np.int64(order[t + 1]))
        begin, n = locate_row(work, rows, i, workspace)
        call(score, rows, workspace, begin, one, n)
        call(steps, duals, record, workspace, i, np.int64(take_steps))
        moved, shrink = flags[0], flags[1]
        if moved != 0:
            call(add, rows, workspace, begin, n)
        if shrink != 0:
            n_active -= 1
            order[t], order[n_active] = order[n_active], order[t]
        else:
            t += 1
    return n_active


@entry(fastmath=True)
def accumulate(work, rows, workspace, examples, steps):
    """w += Σ over the listed examples of steps[k] times ψ_i."""
    add = work.add
    for k in range(examples.size):
        for lane in range(steps.shape[1]):
            workspace.move[lane] = steps[k, lane]
        begin, n = locate_row(work, rows, np.int64(examples[k]), workspace)
        call(add, rows, workspace, begin, n)


@entry(fastmath=True)
def evaluate(work, rows, workspace, examples, norm, out):
    """Scores of the examples i = examples[k], or the terms that they are the sums of.

    out[k, 0, lane] = ⟨w, ψ(x_i)⟩, or, where `out` has a place for every feature, out[k, j, lane]
    = ⟨w_j, ψ_j(x_ij)⟩: zeros of sparse rows stay as given.  norm[k] = |ψ_i|², unless it is
    empty.
    """
    score, one = work.score, np.int64(1)
    size, (_, places, lanes) = workspace.move.size, out.shape
    terms = np.int64(places > 1)
    for i in range(out.shape[0]):
        begin, n = locate_row(work, rows, examples[i], workspace)
        if norm.size > 0:
            call(work.norm, workspace, n)
            norm[i] = workspace.norm[0]
        count, n_values = (n, one) if terms else (one, n)
        call(score, rows, workspace, begin, count, n_values)
        for k in range(count):
            # A score of all values may be of none: there is no column to look for.
            j = feature_of(rows, begin + k, begin) if terms else np.int64(0)
            for lane in range(lanes):
                put(out, (i * places + j) * lanes + lane, item(workspace.f, k * size + lane))
