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
from numba.extending import overload

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
from ...engine.table.emit import polynomial, vectors
from ...engine.table.entry import INNER, entry
from ...engine.table.layout import Bins, Block
from ...engine.table.locate import find, locate
from .losses import LOSSES

_inner = INNER | {"fastmath": True}


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

    loss: tuple  # length: its place in `LOSSES`
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
    learn: bool


class Tally(NamedTuple):
    """What an epoch sees."""

    keep: np.ndarray  # float64[lanes in use]
    report: np.ndarray  # float64[4, lanes in use]
    parked: np.ndarray


class Room(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    row: np.ndarray  # int32: of the values of one example, and a vector more
    u: np.ndarray  # T
    f: np.ndarray  # T[lanes]
    move: np.ndarray  # T[lanes]
    seen: np.ndarray  # float64[4, lanes]
    vector: tuple  # length: values that are placed at a time


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


def _place(basis, rows, i, room):
    """Where the values of example i fall, into `room`; the place of the first, and their number."""
    begin, end = _span(rows, i)
    for k in range(begin, end):
        j = _column(rows, k, begin)
        room.row[k - begin], room.u[k - begin] = find(basis.bins, item(rows.values, k), j, ())
    return begin, end - begin


@overload(_place, jit_options=_inner)
def _place_of(basis, rows, i, room):
    sparse = len(rows.types[rows.fields.index("sparse")])
    return _place if sparse else _place_vectors


def _place_vectors(basis, rows, i, room):
    """The same for dense rows, some features at a time."""
    begin, n = i * rows.width, rows.width
    locate(basis.bins, rows.values, begin, 0, n, room.vector, room.row, room.u)
    return begin, n


@njit(**_inner)
def _gather(basis, rows, room, begin, k, w, lanes, total):
    """Add the k-th value's part of the scores, chunk by chunk and lane by lane."""
    row, u = np.int64(item(room.row, k)), item(room.u, k)
    values = basis.values
    at = (_column(rows, begin + k, begin) * basis.stride + item(values.first, row)) * len(lanes)
    for part in range(vectors(values)):
        phi = repeat(polynomial(values, row, u, part), lanes)
        total = multiply_add(phi, load(w, at + part * len(basis.taken), basis.taken), total)
    return total


@njit(**_inner)
def _score(basis, rows, room, begin, n, w, lanes):
    """``room.f`` = <w, psi> of the n values that were placed.

    Four sums at a time hide the latency of the adds.
    """
    a = zeros(w, basis.taken)
    b, c, d = a, a, a
    whole = n - n % 4
    for k in range(0, whole, 4):
        a = _gather(basis, rows, room, begin, k, w, lanes, a)
        b = _gather(basis, rows, room, begin, k + 1, w, lanes, b)
        c = _gather(basis, rows, room, begin, k + 2, w, lanes, c)
        d = _gather(basis, rows, room, begin, k + 3, w, lanes, d)
    for k in range(whole, n):
        a = _gather(basis, rows, room, begin, k, w, lanes, a)
    store(room.f, 0, fold(add(add(a, b), add(c, d)), lanes))


@njit(**_inner)
def _add(basis, rows, room, begin, n, w, lanes):
    """w += room.move * (the column of the n values that were placed), lane by lane."""
    column = basis.column
    steps = tile(load(room.move, 0, lanes), column.chunk)
    for k in range(n):
        row, u = np.int64(item(room.row, k)), item(room.u, k)
        j = _column(rows, begin + k, begin)
        at = (j * basis.stride + item(column.first, row)) * len(lanes)
        for part in range(vectors(column)):
            here = at + part * len(basis.changed)
            phi = repeat(polynomial(column, row, u, part), lanes)
            store(w, here, multiply_add(phi, steps, load(w, here, basis.changed)))


def _step(loss, y, f, beta, q, c, epsilon):
    """The best new dual variable, and its slack."""
    return LOSSES[len(loss)].step(y, f, beta, q, c, epsilon)


@overload(_step, jit_options=_inner)
def _step_of(loss, y, f, beta, q, c, epsilon):
    rule = njit(**_inner)(LOSSES[len(loss)].step)
    return lambda loss, y, f, beta, q, c, epsilon: rule(y, f, beta, q, c, epsilon)


def _price(loss, y, f, beta, c, epsilon):
    """The primal loss of an example, and its part of the duality gap."""
    entry = LOSSES[len(loss)]
    price = c * entry.value(y, f, epsilon)
    return price, price + entry.conjugate(y, beta, c, epsilon) + beta * f


@overload(_price, jit_options=_inner)
def _price_of(loss, y, f, beta, c, epsilon):
    entry = LOSSES[len(loss)]
    value, conjugate = (njit(**_inner)(rule) for rule in (entry.value, entry.conjugate))

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


@njit(**_inner)
def _target(problem, i, lane):
    if not problem.of_labels:
        return problem.y[i]
    return 1.0 if problem.y[i] == problem.positive[lane] else -1.0


@njit(**_inner)
def _squared_norm(basis, room, n):
    """|psi|^2: per feature <Phi, L_d Phi>, itself a local polynomial in u."""
    size, total = len(basis.square), 0.0
    for k in range(n):
        row, u = np.int64(item(room.row, k)), item(room.u, k)
        value = item(basis.norm, row * size + size - 1)
        for power in range(size - 2, -1, -1):
            value = value * u + item(basis.norm, row * size + power)
        total += value
    return total


@entry(fastmath=True)
def norms(basis, rows, lanes, room, first, mean, norm, shift):
    """norm[k] = |psi_i|^2 and shift[k] = <mean, psi_i> for the examples i = first + k."""
    for k in range(norm.size):
        begin, n = _place(basis, rows, first + k, room)
        norm[k] = _squared_norm(basis, room, n)
        _score(basis, rows, room, begin, n, mean, lanes)
        shift[k] = room.f[0]


@njit(**_inner)
def _clear(report):
    for kind in range(report.shape[0]):
        for lane in range(report.shape[1]):
            report[kind, lane] = 0.0


@njit(**_inner)
def _ask_for(rows, i):
    """Have the values of example i brought from memory."""
    begin, end = _span(rows, i)
    for k in range(begin, end, 64 // rows.values.itemsize):
        prefetch(rows.values, k)


@njit(**_inner)
def _steps(problem, centre, duals, tally, room, i, learn):
    """The best steps in beta_i, into `room.move`; whether one moves, and whether all rest."""
    keep, report = tally.keep, tally.report
    moved, resting = False, True
    q, c, shift = centre.norm[i], problem.cost[i], centre.shift[i]
    for lane in range(problem.positive.size):
        target, old = _target(problem, i, lane), duals.beta[i, lane]
        score = room.f[lane] + duals.offset[lane] - duals.slope[lane] * shift
        new, slack = old, -1.0
        if learn:
            new, slack = _step(problem.loss, target, score, old, q, c, problem.epsilon)
        loss, gap = _price(problem.loss, target, score, old, c, problem.epsilon)
        step = new - old
        report[0, lane] = max(report[0, lane], abs(step) * q)
        report[1, lane] += loss
        report[2, lane] += gap
        report[3, lane] += old * score
        room.seen[1, lane], room.seen[2, lane], room.seen[3, lane] = loss, gap, old * score
        room.move[lane] = step
        if step != 0.0:
            moved = True
            duals.beta[i, lane] = new
            duals.slope[lane] += step
            duals.offset[lane] += step * (centre.pull - shift)
        if step != 0.0 or slack <= keep[lane]:
            resting = False
    return moved, resting


@entry(fastmath=True)
def epoch(basis, rows, problem, centre, duals, visits, tally, room):
    """Visit the first ``active`` examples of ``order`` once; returns how many stay active.

    Each lane takes its best step in beta_i; the weights follow at once.  The score of a lane is
    <w, psi_i> + offset - slope * shift_i, see :class:`Centre`.  ``keep[lane]``
    is the largest step of the previous epoch: an example whose lanes all rest with a larger
    slack is moved behind the active ones.  ``report`` gets, per lane: the largest step, the
    loss, the gap and sum(beta * f), as seen on the way; ``parked`` collects those of the examples
    that are put aside, from the last time that they were seen.  Without ``learn`` nothing moves:
    the report is then exact for the weights as they are.
    """
    order, active, learn = visits.order, visits.active, visits.learn
    w, lanes = duals.w, duals.lanes
    _clear(tally.report)
    t = 0
    while t < active:
        i = order[t]
        if t + 1 < active:
            _ask_for(rows, order[t + 1])
        begin, n = _place(basis, rows, i, room)
        _score(basis, rows, room, begin, n, w, lanes)
        moved, resting = _steps(problem, centre, duals, tally, room, i, learn)
        if moved:
            _add(basis, rows, room, begin, n, w, lanes)
        if resting:
            for kind in range(1, 4):
                for lane in range(problem.positive.size):
                    tally.parked[kind, lane] += room.seen[kind, lane]
            active -= 1
            order[t], order[active] = order[active], order[t]
        else:
            t += 1
    return active


@entry(fastmath=True)
def accumulate(basis, rows, lanes, room, examples, steps, w):
    """w += sum over the listed examples of steps[k] * column(x_i)."""
    for k in range(examples.size):
        for lane in range(steps.shape[1]):
            room.move[lane] = steps[k, lane]
        begin, n = _place(basis, rows, examples[k], room)
        _add(basis, rows, room, begin, n, w, lanes)


@entry(fastmath=True)
def scores(basis, rows, lanes, room, first, w, out):
    """out[k, lane] = <w, psi(x_i)> for the examples i = first + k."""
    for k in range(out.shape[0]):
        begin, n = _place(basis, rows, first + k, room)
        _score(basis, rows, room, begin, n, w, lanes)
        for lane in range(out.shape[1]):
            out[k, lane] = room.f[lane]


@entry(fastmath=True)
def terms(basis, rows, lanes, room, first, w, out):
    """out[k, j, lane] = <w_j, psi_j(x_ij)>: the scores feature by feature; zeros stay as given."""
    nothing = zeros(w, basis.taken)
    for i in range(out.shape[0]):
        begin, n = _place(basis, rows, first + i, room)
        for k in range(n):
            part = _gather(basis, rows, room, begin, k, w, lanes, nothing)
            store(room.f, 0, fold(part, lanes))
            for lane in range(out.shape[2]):
                out[i, _column(rows, begin + k, begin), lane] = room.f[lane]
