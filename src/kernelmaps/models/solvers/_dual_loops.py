"""Compiled loops of dual coordinate descent: arrays and numbers in, arrays changed in place.

What they do with a row's values (:mod:`kernelmaps.engine.table.update`) knows nothing of losses,
and the rules of losses nothing of tables: here they meet, example by example, as routines that are
called through pointers.

The loops rely on what `update` relies on, on codes that were checked on entry, and on a number per
example in `y`, `cost` and the duals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from ...compiling import njit
from ...engine.simd.vectors import item, put
from ...engine.table.entry import bind, call, entry, routine
from ...engine.table.update import (
    FAST,
    BoundRoutine,
    RowWorkspace,
    column_of,
    locate_row,
    prefetch_row,
)
from ...static_int import StaticInt
from ..losses import dual_rules_of


class SVMProblem(NamedTuple):
    """Loss, targets and costs of the examples: one binary or scalar problem per lane."""

    loss: StaticInt  # its index in `LOSSES`
    of_labels: bool
    epsilon: float
    y: np.ndarray  # float64[n]: class code, or the regression target
    positive: np.ndarray  # float64[lanes in use]: the class code that the lane calls +1
    cost: np.ndarray  # float64[n]: C times the weight of the example


class Duals(NamedTuple):
    """What an epoch moves."""

    beta: np.ndarray  # float64[n, lanes in use]
    offset: np.ndarray  # float64[lanes in use]
    beta_sum: np.ndarray  # float64[lanes in use]: Σβ


class Visits(NamedTuple):
    """The examples that an epoch visits: the first `active` ones of an order."""

    order: np.ndarray  # int32
    active: int
    learn: bool


class PassSums(NamedTuple):
    """Sums of a pass over the examples: largest step, loss, gap and Σ βf of each lane."""

    shrink_above: np.ndarray  # float64[lanes in use]: slack from which on examples are shrunk
    active: np.ndarray  # float64[4, lanes in use]: of the examples that are visited; zero before
    shrunk: np.ndarray  # of those of them that are shrunk in this pass


class Centre(NamedTuple):
    """The intercept's part of the problem.

    An intercept that is not penalised makes the model blind to a constant vector m taken off
    every psi(x_i): b + <w, m> does the same.  Taking off the mean makes the dual's diagonal
    small, that is its steps long.  With s = sum_i beta_i the score becomes
    <w, psi_i> - s <m, psi_i> - <w, m> + s |m|^2 + b, and b itself follows the proximal rule
    b = b_last + scale * s (the multiplier of the constraint s = 0).
    """

    norm: np.ndarray  # float64[n]: |psi_i - m|^2 + scale
    shift: np.ndarray  # float64[n]: <m, psi_i>
    pull: float  # |m|^2 + scale


class StepData(NamedTuple):
    """What a step of an epoch is computed from."""

    problem: SVMProblem
    centre: Centre


def _step(loss, y, f, beta, q, c, epsilon):
    """The best new dual variable, and its slack."""
    return dual_rules_of(loss).step(y, f, beta, q, c, epsilon)


@overload(_step, jit_options=FAST)
def _step_of(loss, y, f, beta, q, c, epsilon):
    rule = njit(**FAST)(dual_rules_of(loss.value).step)
    return lambda loss, y, f, beta, q, c, epsilon: rule(y, f, beta, q, c, epsilon)


def _price(loss, y, f, beta, c, epsilon):
    """The primal loss of an example, and its part of the duality gap."""
    entry = dual_rules_of(loss)
    price = c * entry.value(y, f, epsilon)
    return price, price + entry.conjugate(y, beta, c, epsilon) + beta * f


@overload(_price, jit_options=FAST)
def _price_of(loss, y, f, beta, c, epsilon):
    entry = dual_rules_of(loss.value)
    value, conjugate = (njit(**FAST)(rule) for rule in (entry.value, entry.conjugate))

    def price(loss, y, f, beta, c, epsilon):
        price = c * value(y, f, epsilon)
        return price, price + conjugate(y, beta, c, epsilon) + beta * f

    return price


@entry(fastmath=True)
def rules(loss, y, f, beta, q, c, epsilon):
    """New variable, slack, price and gap of one example: the rules as the loops see them."""
    new, slack = _step(loss, y, f, beta, q, c, epsilon)
    price, gap = _price(loss, y, f, beta, c, epsilon)
    return new, slack, price, gap


@njit(**FAST)
def _target(problem, i, lane):
    if not problem.of_labels:
        return problem.y[i]
    return 1.0 if problem.y[i] == problem.positive[lane] else -1.0


def steps_of(
    problem: SVMProblem, centre: Centre, duals: Duals, sums: PassSums, workspace: RowWorkspace
) -> BoundRoutine:
    """The routine that takes the steps of a problem's loss."""
    bound = bind(_steps, (StepData(problem, centre),), (duals, sums, workspace), 2)
    return BoundRoutine(*bound)


@routine(fastmath=True)
def _steps(data, duals, sums, workspace, i, learn):
    """The best steps in beta_i, into `workspace.move`; whether one moves, and whether to shrink."""
    problem, centre, active_sums = data.problem, data.centre, sums.active
    moved, shrink = np.int64(0), np.int64(1)
    q, c, shift = centre.norm[i], problem.cost[i], centre.shift[i]
    for lane in range(problem.positive.size):
        target, old = _target(problem, i, lane), duals.beta[i, lane]
        score = workspace.f[lane] + duals.offset[lane] - duals.beta_sum[lane] * shift
        new, slack = _step(problem.loss, target, score, old, q, c, problem.epsilon)
        loss, gap = _price(problem.loss, target, score, old, c, problem.epsilon)
        step = new - old
        active_sums[0, lane] = max(active_sums[0, lane], abs(step) * q)
        if step != 0.0 or slack <= sums.shrink_above[lane]:
            shrink = np.int64(0)
        if learn == 0:
            step = 0.0
        active_sums[1, lane] += loss
        active_sums[2, lane] += gap
        active_sums[3, lane] += old * score
        example_sums = workspace.sums
        example_sums[1, lane], example_sums[2, lane] = loss, gap
        example_sums[3, lane] = old * score
        workspace.move[lane] = step
        if step != 0.0:
            moved = np.int64(1)
            duals.beta[i, lane] = new
            duals.beta_sum[lane] += step
            duals.offset[lane] += step * (centre.pull - shift)
    workspace.flags[0], workspace.flags[1] = moved, shrink


@entry(fastmath=True)
def epoch(work, rows, duals, visits, sums, workspace):
    """Visit the first ``active`` examples of ``order`` once; returns how many stay active.

    Each lane takes its best step in beta_i; the weights follow at once.  The score of a lane is
    <w, psi_i> + offset - beta_sum * shift_i, see :class:`Centre`.  ``sums.shrink_above[lane]``
    is a share of the largest step of the pass before: an example all of whose variables stay at
    their bounds with a larger slack is shrunk, that is moved behind the active ones, and its sums
    are added to ``sums.shrunk``.  Without ``learn`` nothing moves: ``sums.active`` is then exact
    for the weights as they are, and its largest step is the one that would be taken.
    """
    order, active, learn = visits.order, visits.active, np.int64(visits.learn)
    score, add, steps, flags, one = work.score, work.add, work.steps, workspace.flags, np.int64(1)
    t = 0
    while t < active:
        i = np.int64(order[t])
        if t + 1 < active:
            prefetch_row(rows, np.int64(order[t + 1]))
        begin, n = locate_row(work, rows, i, workspace)
        call(score.routine, score.argument, rows, workspace, begin, one, n)
        call(steps.routine, steps.argument, duals, sums, workspace, i, learn)
        if flags[0] != 0:
            call(add.routine, add.argument, rows, workspace, begin, n)
        if flags[1] != 0:
            for kind in range(1, 4):
                for lane in range(sums.shrunk.shape[1]):
                    sums.shrunk[kind, lane] += workspace.sums[kind, lane]
            active -= 1
            order[t], order[active] = order[active], order[t]
        else:
            t += 1
    return active


@entry(fastmath=True)
def accumulate(work, rows, workspace, examples, steps):
    """w += sum over the listed examples of steps[k] * column(x_i)."""
    add = work.add
    for k in range(examples.size):
        for lane in range(steps.shape[1]):
            workspace.move[lane] = steps[k, lane]
        begin, n = locate_row(work, rows, np.int64(examples[k]), workspace)
        call(add.routine, add.argument, rows, workspace, begin, n)


@entry(fastmath=True)
def evaluate(work, rows, workspace, examples, norm, out):
    """Scores of the examples i = examples[k], or the terms that they are the sums of.

    out[k, 0, lane] = <w, psi(x_i)>, or, where `out` has a place for every feature, out[k, j, lane]
    = <w_j, psi_j(x_ij)>: zeros of sparse rows stay as given.  norm[k] = |psi_i|^2, unless it is
    empty.
    """
    score, one = work.score, np.int64(1)
    size, (_, places, lanes) = workspace.move.size, out.shape
    terms = np.int64(places > 1)
    for i in range(out.shape[0]):
        begin, n = locate_row(work, rows, examples[i], workspace)
        if norm.size > 0:
            call(work.norm.routine, work.norm.argument, workspace, n)
            norm[i] = workspace.norm[0]
        count, n_values = (n, one) if terms else (one, n)
        call(score.routine, score.argument, rows, workspace, begin, count, n_values)
        for k in range(count):
            # A score of all values may be of none: there is no column to look for.
            j = column_of(rows, begin + k, begin) if terms else np.int64(0)
            for lane in range(lanes):
                put(out, (i * places + j) * lanes + lane, item(workspace.f, k * size + lane))
