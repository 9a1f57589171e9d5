"""Compiled loops of the additive solver: arrays and numbers in, arrays changed in place.

Everything the loops know about a map is the :class:`Basis` below: where a value falls (a row of
a table and a position ``u`` inside it) and two tables of local polynomials in ``u``,

* ``values``: the band Φ(x), the only weights that an evaluation touches;
* ``column``: the change L_d Φ(x) of the weights (eq. 7); for order 0 it is the band again.

The weights lie as ``[feature][basis][lane]``; a lane is a class.  Lengths that the compiler must
know are passed as tuples of that length (see :mod:`kernelmaps.engine.simd`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ...bits import float_bits
from ...engine.simd import (
    add,
    fill,
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
from .losses import LOSSES

AFFINE, LOG2, EDGES, CODES = range(4)

_options = {"cache": True, "nogil": True, "fastmath": True, "error_model": "numpy"}
# Helpers are called from the loops alone: without wrappers for Python they compile much faster.
_inner = {
    "fastmath": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


class Taps(NamedTuple):
    """A table of local polynomials; a row has ``powers`` vectors of ``parts`` chunks each."""

    first: np.ndarray  # int32[rows]: first weight of the feature that the row touches
    coef: np.ndarray  # flat [row][power][tap]
    powers: tuple  # length degree + 1
    chunk: tuple  # length of one vector of taps
    block: tuple  # len(chunk) * len(lanes): the weights that one chunk touches
    parts: tuple  # length: chunks per row


class Basis(NamedTuple):
    """A compiled additive map, ready for the loops."""

    binning: tuple  # length AFFINE, LOG2, EDGES or CODES
    place: np.ndarray  # int32 flat [feature]: first row of its table, first of its weights
    limit: np.ndarray  # int32 flat [feature]: number of bins - 1, first of its edges
    domain: np.ndarray  # float64 flat [feature]: lo, scale; values are clipped to low, high
    edges: np.ndarray
    key: int  # LOG2: bits of the first bin, and number of bits below a bin's
    shift: int
    nothing: int  # row of zeros, for x = 0; -1 if the map does not vanish there
    mirror: int  # rows from a value's to its negative's (odd extension); 0 if there are none
    values: Taps
    column: Taps
    norm: np.ndarray  # float64 flat [row][power]: <Phi, L_d Phi>
    square: tuple  # length 2 degree + 1


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
def _search(edges, first, bins, x):
    """Largest b < bins with edges[first + b] <= x, or 0."""
    low, high = 0, bins
    while high - low > 1:
        middle = (low + high) // 2
        if item(edges, first + middle) <= x:
            low = middle
        else:
            high = middle
    return low


@njit(**_inner)
def _locate(basis, x, j):
    """Row of the table and position in it for the value x of feature j."""
    row = np.int64(item(basis.place, 2 * j))
    if len(basis.binning) == CODES:
        return row + np.int64(x), 0.0
    if basis.nothing >= 0 and x == 0:
        return basis.nothing, 0.0
    size = np.float64(x)
    if basis.mirror and size < 0:
        row += basis.mirror
        size = -size
    size = min(max(size, item(basis.domain, 4 * j + 2)), item(basis.domain, 4 * j + 3))
    last = np.int64(item(basis.limit, 2 * j))
    if len(basis.binning) == LOG2:
        return _locate_octave(basis, row, last, size)
    if len(basis.binning) == EDGES:
        first = np.int64(item(basis.limit, 2 * j + 1))
        b = _search(basis.edges, first, last + 1, size)
        left = item(basis.edges, first + b)
        return row + b, (size - left) / (item(basis.edges, first + b + 1) - left)
    t = (size - item(basis.domain, 4 * j)) * item(basis.domain, 4 * j + 1)
    b = min(np.int64(max(t, 0.0)), last)
    return row + b, t - b


@njit(**_inner)
def _locate_octave(basis, row, last, size):
    """Sub-bins of octaves, by the bits of a positive number."""
    bits = np.int64(float_bits(basis.values.coef.dtype.type(size)))
    b = min((bits >> basis.shift) - basis.key, last)
    if b < 0:
        return basis.nothing, 0.0
    below = bits & ((np.int64(1) << basis.shift) - 1)
    return row + b, below / np.float64(np.int64(1) << basis.shift)


@njit(**_inner)
def _taps(taps, row, u, part):
    """The polynomials of one chunk of a row, at u."""
    size = len(taps.chunk)
    width = size * len(taps.parts)
    at = (row + 1) * width * len(taps.powers) - width + part * size
    value = load(taps.coef, at, taps.chunk)
    for _ in range(len(taps.powers) - 1):
        at -= width
        value = multiply_add(
            value,
            fill(taps.coef, taps.coef.dtype.type(u), taps.chunk),
            load(taps.coef, at, taps.chunk),
        )
    return value


@njit(**_inner)
def _gather(basis, rows, k, begin, w, lanes, total):
    """Add the k-th value's part of the scores, chunk by chunk and lane by lane."""
    j = _column(rows, k, begin)
    row, u = _locate(basis, item(rows.values, k), j)
    taps = basis.values
    at = (np.int64(item(basis.place, 2 * j + 1)) + item(taps.first, row)) * len(lanes)
    for part in range(len(taps.parts)):
        phi = repeat(_taps(taps, row, u, part), lanes)
        total = multiply_add(phi, load(w, at + part * len(taps.block), taps.block), total)
    return total


@njit(**_inner)
def _score(basis, rows, i, w, lanes, out):
    """``out[:len(lanes)]`` = <w, psi(x_i)>; four sums at a time hide the latency of the adds."""
    begin, end = _span(rows, i)
    a = zeros(w, basis.values.block)
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
    taps = basis.column
    steps = tile(load(step, 0, lanes), taps.chunk)
    for k in range(begin, end):
        j = _column(rows, k, begin)
        row, u = _locate(basis, item(rows.values, k), j)
        at = (np.int64(item(basis.place, 2 * j + 1)) + item(taps.first, row)) * len(lanes)
        for part in range(len(taps.parts)):
            here = at + part * len(taps.block)
            phi = repeat(_taps(taps, row, u, part), lanes)
            store(w, here, multiply_add(phi, steps, load(w, here, taps.block)))


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
            row, u = _locate(basis, item(rows.values, k), _column(rows, k, begin))
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
def epoch(
    basis,
    rows,
    problem,
    lanes,
    order,
    active,
    w,
    beta,
    centre,
    offset,
    slope,
    keep,
    report,
    parked,
    learn,
):
    """Visit the first ``active`` examples of ``order`` once; returns how many stay active.

    Each lane takes its best step in beta_i; the weights follow at once.  The score of a lane is
    <w, psi_i> + offset - slope * shift_i, see :class:`Centre`.  ``keep[lane]``
    is the largest step of the previous epoch: an example whose lanes all rest with a larger
    slack is moved behind the active ones.  ``report`` gets, per lane: the largest step, the
    loss, the gap and sum(beta * f), as seen on the way; ``parked`` collects those of the examples
    that are put aside, from the last time that they were seen.  Without ``learn`` nothing moves:
    the report is then exact for the weights as they are.
    """
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
    nothing = zeros(w, basis.values.block)
    for i in range(out.shape[0]):
        first, end = _span(rows, begin + i)
        for k in range(first, end):
            store(f, 0, fold(_gather(basis, rows, k, first, w, lanes, nothing), lanes))
            for lane in range(out.shape[2]):
                out[i, _column(rows, k, first), lane] = f[lane]
