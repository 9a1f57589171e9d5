"""Compiled loops of dual coordinate descent: arrays and numbers in, arrays changed in place.

:mod:`.dual` has the algorithm and its notation. What is done with a row's values
(:mod:`kernelmaps.engine.table.update`) knows nothing of losses, and the rules of losses nothing of
tables: here they meet, example by example.

The loops rely on what `update` relies on, on codes that were checked on entry, and on a number per
example in `y`, `cost` and the dual variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from ..._util.compiling import loop, njit
from ...engine.table.update import (
    FAST,
    add,
    locate_row,
    prefetch_row,
    score,
    squared_norm,
)
from ..losses import dual_rules_of


class SVMProblem(NamedTuple):
    """Loss, targets and costs of the examples: one binary or scalar problem per output."""

    loss: int  # its index in `LOSSES`
    has_labels: bool
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

    def merge(self, other: PassTotals) -> PassTotals:
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
    totals: np.ndarray  # float64[3, 4, outputs]: UPDATED …, with the fields of `PassTotals`

    @classmethod
    def empty(cls, n_outputs: int) -> PassRecord:
        return cls(np.zeros(n_outputs), np.zeros((3, 4, n_outputs)))


# Of all that are updated and those shrunk before; of those that are shrunk, in this pass or before,
# which have no violation; of the example at hand.
UPDATED, SHRUNK, EXAMPLE = map(np.int64, range(3))
VIOLATION = np.int64(0)  # the first of the totals, a maximum; the others are sums


class StepData(NamedTuple):
    """What a step of coordinate descent is computed from."""

    loss: tuple  # static: its index in `LOSSES`
    has_labels: bool
    epsilon: float
    y: np.ndarray
    positive: np.ndarray
    cost: np.ndarray
    diagonal: np.ndarray
    mean_dot: np.ndarray
    q0: float


def _step(loss, y, f, alpha, q, c, epsilon):
    """The new dual variable, and the derivative of the dual at a bound (see `DualRules`)."""
    return dual_rules_of(len(loss)).step(y, f, alpha, q, c, epsilon)


@overload(_step, jit_options=FAST)
def _step_of(loss, y, f, alpha, q, c, epsilon):
    rule = njit(**FAST)(dual_rules_of(loss.count).step)
    return lambda loss, y, f, alpha, q, c, epsilon: rule(y, f, alpha, q, c, epsilon)


def _loss_and_gap(loss, y, f, alpha, c, epsilon):
    """The loss cℓ of an example, and its part of the duality gap."""
    rules = dual_rules_of(len(loss))
    value = c * rules.value(y, f, epsilon)
    return value, value + rules.conjugate(y, alpha, c, epsilon) + alpha * f


@overload(_loss_and_gap, jit_options=FAST)
def _loss_and_gap_of(loss, y, f, alpha, c, epsilon):
    rules = dual_rules_of(loss.count)
    loss_of, conjugate = (njit(**FAST)(rule) for rule in (rules.value, rules.conjugate))

    def loss_and_gap(loss, y, f, alpha, c, epsilon):
        value = c * loss_of(y, f, epsilon)
        return value, value + conjugate(y, alpha, c, epsilon) + alpha * f

    return loss_and_gap


@njit(**FAST)
def _add_example(totals, group):
    """Add the totals of one example to those of several."""
    for k in range(totals.shape[2]):
        violation = totals[EXAMPLE, VIOLATION, k]
        totals[group, VIOLATION, k] = max(totals[group, VIOLATION, k], violation)
        for total in range(1, 4):
            totals[group, total, k] += totals[EXAMPLE, total, k]


@njit(**FAST)
def _coordinate_steps(data, duals, record, workspace, i, take_steps):
    """Minimise the dual over α_i, for each output by itself.

    The scores ⟨w, ψ_i⟩ are in ``workspace.f``. The steps go to ``workspace.move``. Returns whether
    an α_i moves, and whether the example is shrunk.

    It is shrunk if no α_i moves, and each is held at its bound by a derivative above the threshold.
    """
    totals, moved, shrink = record.totals, False, True
    q, c, mean_dot = data.diagonal[i], data.cost[i], data.mean_dot[i]
    for k in range(data.positive.size):
        y, alpha = data.y[i], duals.alpha[i, k]
        if data.has_labels:
            y = 1.0 if y == data.positive[k] else -1.0
        f = workspace.f[k] + duals.bias[k] - duals.alpha_sum[k] * mean_dot
        new, bound_derivative = _step(data.loss, y, f, alpha, q, c, data.epsilon)
        step = new - alpha
        if step != 0.0 or bound_derivative <= record.shrink_threshold[k]:
            shrink = False
        loss, gap = _loss_and_gap(data.loss, y, f, alpha, c, data.epsilon)
        totals[EXAMPLE, VIOLATION, k] = abs(step) * q
        totals[EXAMPLE, 1, k], totals[EXAMPLE, 2, k] = loss, gap
        totals[EXAMPLE, 3, k] = alpha * f
        if not take_steps:
            step = 0.0
        workspace.move[k] = step
        if step != 0.0:
            moved = True
            duals.alpha[i, k] = new
            duals.alpha_sum[k] += step
            duals.bias[k] += step * (data.q0 - mean_dot)
    _add_example(totals, UPDATED)
    if shrink:
        _add_example(totals, SHRUNK)
    return moved, shrink


@loop(fastmath=True, _nrt=False)
def update_examples(work, rows, workspace, duals, record, order, n_active, take_steps):
    """Update the first `n_active` examples of `order` once; returns how many stay active.

    Each takes its steps in α_i, which the weights follow at once. An example that is shrunk changes
    places with the last active one. Without `take_steps` nothing moves: totals are then exact for
    the weights as they are, and violations are those of the steps that would be taken.

    `order` is int64, which NumPy shuffles in half the time of int32.
    """
    totals = record.totals  # of a pass start with those of examples that are not updated
    for k in range(totals.shape[2]):
        totals[UPDATED, VIOLATION, k] = 0.0
        for total in range(1, 4):
            totals[UPDATED, total, k] = totals[SHRUNK, total, k]
    t = 0
    while t < n_active:
        i = np.int64(order[t])
        if t + 1 < n_active:
            prefetch_row(rows, np.int64(order[t + 1]))
        begin, n = locate_row(work.bins, rows, i, workspace)
        score(work.scored, rows, workspace, begin, np.int64(1), n)
        moved, shrink = _coordinate_steps(work.steps, duals, record, workspace, i, take_steps)
        if moved:
            add(work.changed, rows, workspace, begin, n)
        if shrink:
            n_active -= 1
            order[t], order[n_active] = order[n_active], order[t]
        else:
            t += 1
    return n_active


@loop(fastmath=True, _nrt=False)
def accumulate(work, rows, workspace, examples, steps):
    """w += Σ over the listed examples of steps[k] times ψ_i."""
    for k in range(examples.size):
        for lane in range(steps.shape[1]):
            workspace.move[lane] = steps[k, lane]
        begin, n = locate_row(work.bins, rows, np.int64(examples[k]), workspace)
        add(work.changed, rows, workspace, begin, n)


@loop(fastmath=True, _nrt=False)
def measure(work, rows, workspace, sq_norm, scores):
    """|ψ_i|² of all rows, and their scores ⟨w, ψ_i⟩ of the first lane."""
    for i in range(sq_norm.size):
        begin, n = locate_row(work.bins, rows, np.int64(i), workspace)
        sq_norm[i] = squared_norm(work.squares, workspace, n)
        score(work.scored, rows, workspace, begin, np.int64(1), n)
        scores[i] = workspace.f[0]
