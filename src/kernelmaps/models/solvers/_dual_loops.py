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

from ..._util.compiling import loop, njit, static
from ...engine.simd.vectors import item, put
from ...engine.table.update import (
    FAST,
    add,
    feature_of,
    locate_row,
    prefetch_row,
    score,
    squared_norm,
)
from ..losses import dual_rules_of


class SVMProblem(NamedTuple):
    """Loss, targets and costs of the examples: one binary or scalar problem per output."""

    loss: int  # its index in `LOSSES`
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
    totals: np.ndarray  # float64[3, 4, outputs]: VISITED …, with the fields of `PassTotals`

    @classmethod
    def empty(cls, shrink_threshold: np.ndarray) -> PassRecord:
        return cls(shrink_threshold.copy(), np.zeros((3, 4, shrink_threshold.size)))

    @property
    def visited(self) -> PassTotals:
        """Of all examples that are visited, and of those that were shrunk before."""
        return PassTotals(*self.totals[VISITED])

    @property
    def shrunk(self) -> PassTotals:
        """Of those that are shrunk, in this pass or before; they have no violation."""
        return PassTotals(*self.totals[SHRUNK])


VISITED, SHRUNK, EXAMPLE = map(np.int64, range(3))  # the last one: the example at hand
VIOLATION = np.int64(0)  # the first of the totals, a maximum; the others are sums


class StepData(NamedTuple):
    """What a step of coordinate descent is computed from."""

    loss: tuple  # static: its index in `LOSSES`
    of_labels: bool
    epsilon: float
    y: np.ndarray
    positive: np.ndarray
    cost: np.ndarray
    diagonal: np.ndarray
    mean_dot: np.ndarray
    q0: float


def steps_of(problem: SVMProblem, hessian: DualHessian) -> StepData:
    """The data of the steps of a problem."""
    return StepData(static(problem.loss), *problem[1:], *hessian)


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


@loop(fastmath=True, _nrt=False)
def compiled_rules(loss, y, f, alpha, q, c, epsilon):
    """New variable, derivative at a bound, loss and gap of one example, as the loops see them."""
    new, bound_derivative = _step(loss, y, f, alpha, q, c, epsilon)
    value, gap = _loss_and_gap(loss, y, f, alpha, c, epsilon)
    return new, bound_derivative, value, gap


@njit(**FAST)
def _add_example(totals, which):
    """Add the totals of one example to those of several."""
    for k in range(totals.shape[2]):
        violation = totals[EXAMPLE, VIOLATION, k]
        totals[which, VIOLATION, k] = max(totals[which, VIOLATION, k], violation)
        for total in range(1, 4):
            totals[which, total, k] += totals[EXAMPLE, total, k]


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
        if data.of_labels:
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
    _add_example(totals, VISITED)
    if shrink:
        _add_example(totals, SHRUNK)
    return moved, shrink


@loop(fastmath=True, _nrt=False)
def visit_examples(work, rows, workspace, duals, record, order, n_active, take_steps):
    """Visit the first `n_active` examples of `order` once; returns how many stay active.

    Each takes its steps in α_i, which the weights follow at once. An example that is shrunk changes
    places with the last active one. Without `take_steps` nothing moves: totals are then exact for
    the weights as they are, and violations are those of the steps that would be taken.

    `order` is int64, which NumPy shuffles in half the time of int32.
    """
    totals = record.totals  # of a pass start with those of examples that are not visited
    for k in range(totals.shape[2]):
        totals[VISITED, VIOLATION, k] = 0.0
        for total in range(1, 4):
            totals[VISITED, total, k] = totals[SHRUNK, total, k]
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
def evaluate(work, rows, workspace, examples, norm, out):
    """Scores of the examples i = examples[k], or the terms that they are the sums of.

    out[k, 0, lane] = ⟨w, ψ(x_i)⟩, or, where `out` has a place for every feature, out[k, j, lane]
    = ⟨w_j, ψ_j(x_ij)⟩: zeros of sparse rows stay as given.  norm[k] = |ψ_i|², unless it is
    empty.
    """
    one = np.int64(1)
    size, (_, places, lanes) = workspace.move.size, out.shape
    terms = places > 1
    for i in range(out.shape[0]):
        begin, n = locate_row(work.bins, rows, examples[i], workspace)
        _write_norm(work.squares, workspace, n, i, norm)
        count, n_values = (n, one) if terms else (one, n)
        score(work.scored, rows, workspace, begin, count, n_values)
        for k in range(count):
            # A score of all values may be of none: there is no column to look for.
            j = feature_of(rows, begin + k, begin) if terms else np.int64(0)
            for lane in range(lanes):
                put(out, (i * places + j) * lanes + lane, item(workspace.f, k * size + lane))


@njit(**FAST)
def _write_norm(squares, workspace, n, i, norm):
    if squares is not None:
        norm[i] = squared_norm(squares, workspace, n)
