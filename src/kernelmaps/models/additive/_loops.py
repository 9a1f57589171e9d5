"""Compiled loops of the additive solver: arrays and numbers in, arrays changed in place.

Everything the loops know about a map is the :class:`Basis` below: where a value falls (a row of
a table and a position ``u`` inside it) and two tables of local polynomials in ``u``,

* ``values``: the band Φ(x), the only weights that an evaluation touches;
* ``column``: the change L_d Φ(x) of the weights (eq. 7); for order 0 it is the band again.

The weights lie as ``[feature][basis][lane]``; a lane is a class.  Lengths that the compiler must
know are passed as tuples of that length (see :mod:`kernelmaps.engine.simd`).

The loops rest on the relations of :mod:`kernelmaps.engine.table.layout` (every row of a table that
the finder gives is there, and its band ends within the weights of its feature), on codes and CSR
columns that were checked on entry, and on a number per example in `y`, `cost` and the duals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ...engine.simd import (
    add,
    fold,
    item,
    load,
    multiply_add,
    prefetch,
    repeat,
    store,
    tile,
    zeros,
)
from ...engine.table.emit import polynomial
from ...engine.table.layout import Bins, Block
from ...engine.table.locate import find
from .losses import LOSSES

_options = {"cache": True, "nogil": True, "fastmath": True, "error_model": "numpy"}
# Helpers are called from the loops alone: without wrappers for Python they compile much faster.
# They are part of these loops: a call would hand over a whole table by value for every number.
_inner = {
    "fastmath": True,
    "error_model": "numpy",
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


class Basis(NamedTuple):
    """A compiled additive map, ready for the loops; tables are addressed by the rows of `bins`."""

    bins: Bins
    values: Block  # the band Phi
    taken: tuple  # length: weights that one vector of `values` touches, all lanes
    column: Block  # the change L_d Phi of the weights
    changed: tuple  # length: weights that one vector of `column` touches
    norm: np.ndarray  # float64 flat [row][power]: <Phi, L_d Phi>
    square: tuple  # length 2 degree + 1
    stride: int  # weights of each feature


class Rows(NamedTuple):
    """The rows of X as they lie in memory: dense (C order) or CSR."""

    values: np.ndarray  # flat
    columns: np.ndarray  # CSR: feature of each value
    indptr: np.ndarray
    sparse: tuple  # length 1 for CSR, 0 for dense
    width: int  # dense: features


class Problem(NamedTuple):
    """What the examples ask for: one binary or scalar problem per lane."""

    loss: int  # its place in `LOSSES`
    of_labels: bool
    epsilon: float
    y: np.ndarray  # float64[n]: class code, or the regression target
    positive: np.ndarray  # float64[lanes in use]: the class code that the lane calls +1
    cost: np.ndarray  # float64[n]: C times the weight of the example


class Duals(NamedTuple):
    """What an epoch moves."""

    w: np.ndarray  # flat [feature][basis][lane]
    beta: np.ndarray  # float64[n, lanes in use]
    offset: np.ndarray  # float64[lanes in use]
    slope: np.ndarray
    lanes: tuple  # length: lanes


class Visits(NamedTuple):
    """Whom an epoch visits: the first `active` examples of an order."""

    order: np.ndarray  # int32
    active: int


class Tally(NamedTuple):
    """What an epoch sees."""

    keep: np.ndarray  # float64[lanes in use]
    report: np.ndarray  # float64[4, lanes in use]
    parked: np.ndarray


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


@njit(**_inner)
def _span(rows, i):
    if len(rows.sparse):
        return np.int64(item(rows.indptr, i)), np.int64(item(rows.indptr, i + 1))
    return i * rows.width, (i + 1) * rows.width


@njit(**_inner)
def _column(rows, k, begin):
    """Feature of the k-th stored value: the index in a CSR row, the position in a dense one."""
    return np.int64(item(rows.columns, k)) if len(rows.sparse) else k - begin


@njit(**_inner)
def _find(basis, rows, k, begin):
    """Feature of the k-th value, its row of the tables and its position in the bin."""
    j = _column(rows, k, begin)
    row, u = find(basis.bins, item(rows.values, k), j, ())
    return j, np.int64(row), u


@njit(**_inner)
def _gather(basis, rows, k, begin, w, lanes, total):
    """Add the k-th value's part of the scores, chunk by chunk and lane by lane."""
    j, row, u = _find(basis, rows, k, begin)
    values = basis.values
    at = (j * basis.stride + item(values.first, row)) * len(lanes)
    for part in range(len(values.parts)):
        phi = repeat(polynomial(values, row, u, part), lanes)
        total = multiply_add(phi, load(w, at + part * len(basis.taken), basis.taken), total)
    return total


@njit(**_inner)
def _score(basis, rows, i, w, lanes, out):
    """``out[:len(lanes)]`` = <w, psi(x_i)>; four sums at a time hide the latency of the adds."""
    begin, end = _span(rows, i)
    a = zeros(w, basis.taken)
    b, c, d = a, a, a
    whole = end - (end - begin) % 4
    for k in range(begin, whole, 4):
        a = _gather(basis, rows, k, begin, w, lanes, a)
        b = _gather(basis, rows, k + 1, begin, w, lanes, b)
        c = _gather(basis, rows, k + 2, begin, w, lanes, c)
        d = _gather(basis, rows, k + 3, begin, w, lanes, d)
    for k in range(whole, end):
        a = _gather(basis, rows, k, begin, w, lanes, a)
    store(out, 0, fold(add(add(a, b), add(c, d)), lanes))


@njit(**_inner)
def _add(basis, rows, i, w, lanes, step):
    """w += step * (the column of x_i), lane by lane."""
    begin, end = _span(rows, i)
    column = basis.column
    steps = tile(load(step, 0, lanes), column.chunk)
    for k in range(begin, end):
        j, row, u = _find(basis, rows, k, begin)
        at = (j * basis.stride + item(column.first, row)) * len(lanes)
        for part in range(len(column.parts)):
            here = at + part * len(basis.changed)
            phi = repeat(polynomial(column, row, u, part), lanes)
            store(w, here, multiply_add(phi, steps, load(w, here, basis.changed)))


def _step_of(own, rule, otherwise):
    @njit(**_inner)
    def step(code, y, f, beta, q, c, epsilon):
        if code == own:
            return rule(y, f, beta, q, c, epsilon)
        return otherwise(code, y, f, beta, q, c, epsilon)

    return step


def _gap_of(own, value, conjugate, otherwise):
    @njit(**_inner)
    def price(code, y, f, beta, c, epsilon):
        if code == own:
            loss = c * value(y, f, epsilon)
            return loss, loss + conjugate(y, beta, c, epsilon) + beta * f
        return otherwise(code, y, f, beta, c, epsilon)

    return price


@njit(**_inner)
def _no_step(code, y, f, beta, q, c, epsilon):
    return beta, 0.0


@njit(**_inner)
def _no_price(code, y, f, beta, c, epsilon):
    return 0.0, 0.0


def _dispatchers():
    """`_step` and `_price` of the loss with a given code, from the entries of `LOSSES`.

    `_step` gives the best new dual variable and its slack, `_price` the primal loss of an example
    and its part of the duality gap.
    """
    step, price = _no_step, _no_price
    for code in reversed(range(len(LOSSES))):
        value, conjugate, rule = (njit(**_inner)(f) for f in LOSSES[code][2:5])
        step = _step_of(code, rule, step)
        price = _gap_of(code, value, conjugate, price)
    return step, price


_step, _price = _dispatchers()


@njit(**_options)
def rules(code, y, f, beta, q, c, epsilon):
    """New variable, slack, price and gap of one example: the rules as the loops see them."""
    new, slack = _step(code, y, f, beta, q, c, epsilon)
    loss, gap = _price(code, y, f, beta, c, epsilon)
    return new, slack, loss, gap


@njit(**_inner)
def _target(problem, i, lane):
    if not problem.of_labels:
        return problem.y[i]
    return 1.0 if problem.y[i] == problem.positive[lane] else -1.0


@njit(**_options)
def squared_norms(basis, rows, first, out):
    """|psi(x_i)|^2: per feature <Phi, L_d Phi>, itself a local polynomial in u."""
    size = len(basis.square)
    for i in range(out.size):
        begin, end = _span(rows, first + i)
        total = 0.0
        for k in range(begin, end):
            _, row, u = _find(basis, rows, k, begin)
            value = item(basis.norm, row * size + size - 1)
            for power in range(size - 2, -1, -1):
                value = value * u + item(basis.norm, row * size + power)
            total += value
        out[i] = total


@njit(**_inner)
def _clear(report):
    for kind in range(report.shape[0]):
        for lane in range(report.shape[1]):
            report[kind, lane] = 0.0


@njit(**_options)
def epoch(basis, rows, problem, centre, duals, visits, tally, learn):
    """Visit the first ``active`` examples of ``order`` once; returns how many stay active.

    Each lane takes its best step in beta_i; the weights follow at once.  The score of a lane is
    <w, psi_i> + offset - slope * shift_i, see :class:`Centre`.  ``keep[lane]``
    is the largest step of the previous epoch: an example whose lanes all rest with a larger
    slack is moved behind the active ones.  ``report`` gets, per lane: the largest step, the
    loss, the gap and sum(beta * f), as seen on the way; ``parked`` collects those of the examples
    that are put aside, from the last time that they were seen.  Without ``learn`` nothing moves:
    the report is then exact for the weights as they are.
    """
    w, beta, offset, slope, lanes = duals
    order, active = visits
    keep, report, parked = tally
    used = problem.positive.size
    f, move = np.zeros(len(lanes), w.dtype), np.zeros(len(lanes), w.dtype)
    seen = np.zeros((4, used))
    _clear(report)
    t = 0
    while t < active:
        i = order[t]
        if t + 1 < active:
            begin, end = _span(rows, order[t + 1])
            for k in range(begin, end, 64 // rows.values.itemsize):
                prefetch(rows.values, k)
        _score(basis, rows, i, w, lanes, f)
        moved, resting = False, True
        q, c, shift = centre.norm[i], problem.cost[i], centre.shift[i]
        for lane in range(used):
            target, old = _target(problem, i, lane), beta[i, lane]
            score = f[lane] + offset[lane] - slope[lane] * shift
            new, slack = old, -1.0
            if learn:
                new, slack = _step(problem.loss, target, score, old, q, c, problem.epsilon)
            loss, gap = _price(problem.loss, target, score, old, c, problem.epsilon)
            step = new - old
            report[0, lane] = max(report[0, lane], abs(step) * q)
            report[1, lane] += loss
            report[2, lane] += gap
            report[3, lane] += old * score
            seen[1, lane], seen[2, lane], seen[3, lane] = loss, gap, old * score
            move[lane] = step
            if step != 0.0:
                moved = True
                beta[i, lane] = new
                slope[lane] += step
                offset[lane] += step * (centre.pull - shift)
            if step != 0.0 or slack <= keep[lane]:
                resting = False
        if moved:
            _add(basis, rows, i, w, lanes, move)
        if resting:
            for kind in range(1, 4):
                for lane in range(used):
                    parked[kind, lane] += seen[kind, lane]
            active -= 1
            order[t], order[active] = order[active], order[t]
        else:
            t += 1
    return active


@njit(**_options)
def accumulate(basis, rows, lanes, examples, steps, w):
    """w += sum over the listed examples of steps[k] * column(x_i)."""
    move = np.zeros(len(lanes), w.dtype)
    for k in range(examples.size):
        for lane in range(steps.shape[1]):
            move[lane] = steps[k, lane]
        _add(basis, rows, examples[k], w, lanes, move)


@njit(**_options)
def scores(basis, rows, lanes, begin, w, out):
    """out[k, lane] = <w, psi(x_i)> for the examples i = begin + k."""
    f = np.zeros(len(lanes), w.dtype)
    for k in range(out.shape[0]):
        _score(basis, rows, begin + k, w, lanes, f)
        for lane in range(out.shape[1]):
            out[k, lane] = f[lane]


@njit(**_options)
def terms(basis, rows, lanes, begin, w, out):
    """out[k, j, lane] = <w_j, psi_j(x_ij)>: the scores feature by feature; zeros stay as given."""
    f = np.zeros(len(lanes), w.dtype)
    nothing = zeros(w, basis.taken)
    for i in range(out.shape[0]):
        first, end = _span(rows, begin + i)
        for k in range(first, end):
            store(f, 0, fold(_gather(basis, rows, k, first, w, lanes, nothing), lanes))
            for lane in range(out.shape[2]):
                out[i, _column(rows, k, first), lane] = f[lane]
