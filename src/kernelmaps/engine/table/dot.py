"""Sums of a table's columns over the features: the scores of a trained model.

The columns of the table are the model's outputs. Some features of a row at a time are located
(:mod:`.locate`), and the polynomials of their rows are added up in registers: for one output,
several values side by side, whose blocks of coefficients are transposed; for more, the outputs side
by side. The coefficients of so few features stay in the cache while a block of rows passes by, each
with its sums so far, and the rows to come are asked for early: that is worth more than any wider
vector.

Values outside the range of the table, and those that are not finite, are noticed on the way.
"""

from math import comb
from typing import NamedTuple

import numpy as np
from numba.extending import overload

from ...blocks import power_of_two
from ...compiling import njit
from ..simd.polynomials import polynomial, vectors
from ..simd.vectors import (
    add,
    add_polynomials,
    fill,
    fold,
    item,
    load,
    prefetch,
    store,
    zeros,
)
from .entry import INNER, entry
from .layout import Bins, Block, bins_of, block_of, rows_of
from .locate import Found, found_for, locate_dense, locate_stored
from .memory import LANES, aligned, by_vector
from .stored import AFFINE, CODE, EDGES, Table

TILE = 128  # features at a time, at most
BLOCK = 2048  # rows at a time: their sums stay in a cache while the features pass by
_TILE_BYTES = 2**19  # of coefficients at a time: a part of a second-level cache
_FAR = 4  # widths of a range, from zero to its start
_NEAR = 0.01  # bins: more than rounding, less than the row behind the last one
_AHEAD = 256  # values from the one at work to the one that is asked for


class Summed(NamedTuple):
    """A table whose columns are summed over the features."""

    bins: Bins
    values: Block  # columns: the outputs; of one output, the number of powers is a power of two
    low: np.ndarray  # T by feature, in vectors: values outside low … high are noticed (CODE: none)
    high: np.ndarray
    features: int
    outputs: int
    tile: int  # features at a time: their coefficients stay in a cache


class Room(NamedTuple):
    """Memory of one thread."""

    found: Found  # of a tile of values, and a vector more
    sums: np.ndarray  # T: of a block of rows, a vector each (one output) or an entry per output
    one: np.ndarray  # T
    alone: tuple  # length 1 for one output, 0 for more


def summed_table(table: Table, dtype: np.dtype, *, centred: bool = False) -> Summed:
    """The layout of a table of outputs, in the precision `dtype`.

    `centred`: where it can be, positions count from the middle of a bin, −½ … ½, as the loops
    below find them at the least cost. Rounding may carry values at the ends of a range half a unit
    too far: before the first bin and behind the last one are rows with the values at the ends.
    """
    kind = _precision(table, dtype)
    near, closed = _near_their_bins(table, dtype, kind)
    centred = centred and near and closed
    row, sets = rows_of(table, 2 * centred)
    outputs = int(table.width[0])
    powers = table.degree + 1
    padded = power_of_two(powers) if outputs == 1 else powers
    blocks = []
    for s in sets:
        polynomials = table.polynomials(s)
        polynomials = _around_middles(polynomials) if centred else polynomials
        blocks.append(np.zeros((len(polynomials), padded, table.band[s])))
        blocks[-1][:, :powers] = polynomials
    bins = bins_of(table, row + centred, dtype)
    if centred:
        origin = bins.origin + 0.5 / bins.factor
        bins = bins._replace(origin=origin, clipped=(0, 0), nothing=bins.nothing + 1)
    elif near or (_smooth(table) and table.binning == EDGES):
        bins = bins._replace(clipped=())
    bins = _in_precision(bins, kind) if table.binning == AFFINE else bins
    first = [np.zeros(len(block), np.int32) for block in blocks]
    with np.errstate(over="ignore"):  # rows of float32 do not reach so far
        low, high = (by_vector(end[table.set_of].astype(dtype)) for end in (table.low, table.high))
    if table.binning == CODE:
        low, high = low[:0], high[:0]
    values = block_of(first, blocks, dtype, bool(bins.mirror))
    each = values.coef.nbytes // table.n_features  # bytes
    # Of bytes, a line of a row: tables of twice as many features would be read from farther away.
    most = TILE // 2 if table.binning == CODE else TILE
    tile = max(LANES, min(most, _TILE_BYTES // each // LANES * LANES))
    return Summed(bins, values, low, high, table.n_features, outputs, tile)


def _smooth(table: Table) -> bool:
    """Whether polynomials go on into the next bin, of values that were clipped to their ranges.

    Values that vanish and odd extensions ask for the value as it is.
    """
    smooth = table.degree > 0 and table.binning in (AFFINE, EDGES)
    return smooth and not table.signed and not table.zero


def _near_their_bins(table: Table, dtype: np.dtype, kind: np.dtype) -> tuple[bool, bool]:
    """Whether values that were clipped to their ranges have even bins, or the rows beside these.

    Also, whether the ranges have ends at all. Rows are of `dtype`, positions are found in `kind`:
    what the loops compute for the ends is computed here.
    """
    if not _smooth(table) or table.binning != AFFINE or not np.all(table.scale > 0):
        return False, False
    with np.errstate(over="ignore", invalid="ignore"):
        origin, factor = (table.lo + 0.5 / table.scale).astype(kind), table.scale.astype(kind)
        first, last = (
            (end.astype(dtype).astype(kind) - origin) * factor for end in (table.low, table.high)
        )
    near = np.isfinite(origin) & np.isfinite(factor)
    near &= (table.low == -np.inf) | (np.isfinite(first) & (first >= -0.5 - _NEAR))
    near &= (table.high == np.inf) | (np.isfinite(last) & (last <= table.bins - 0.5 + _NEAR))
    return bool(near.all()), bool(np.isfinite([table.low, table.high]).all())


def _around_middles(coef: np.ndarray) -> np.ndarray:
    """Polynomials (bins, powers, columns) of u as those of u − ½, between values at both ends."""
    powers = range(coef.shape[1])
    move = np.array([[comb(j, k) * 0.5 ** max(j - k, 0) for j in powers] for k in powers])
    ends = np.zeros((2, *coef.shape[1:]))
    ends[:, 0] = coef[0, 0], coef[-1].sum(axis=0)
    return np.concatenate([ends[:1], np.einsum("kj,bjc->bkc", move, coef), ends[1:]])


def _precision(table: Table, dtype: np.dtype) -> np.dtype:
    """The precision in which even bins are found: that of the rows, where polynomials allow it.

    Look-ups need the very bin, in float64; polynomials go on continuously into the next bin, so
    that what float32 may change is as little as a rounding error of x, unless the range is far from
    zero, or float32 cannot hold it.
    """
    close = np.all(np.abs(table.lo) * table.scale <= _FAR * table.bins)
    return dtype if close and _near_their_bins(table, dtype, dtype)[0] else np.dtype(np.float64)


def _in_precision(bins: Bins, kind: np.dtype) -> Bins:
    names = ("origin", "factor", "last", "low", "high")
    with np.errstate(over="ignore"):
        return bins._replace(**{n: by_vector(getattr(bins, n).astype(kind)) for n in names})


def room_for(table: Summed, rows: int) -> Room:
    """Room for one thread that sums so many rows."""
    values, dtype = table.values, table.values.coef.dtype
    found, alone = found_for(TILE + LANES, dtype), (0,) * (table.outputs == 1)
    size = max(len(found.lanes) if alone else 0, len(values.chunk) * values.parts)
    return Room(found, aligned(min(BLOCK, rows) * size, dtype), np.zeros(16, dtype), alone)


def _sum(values, room, n, at, x, ahead):
    """``room.sums``, from row `at` of the block on, += the sum over the n values located.

    Meanwhile ``x[ahead : ahead + n]`` is asked for, a line at a time: all at once they would wait.
    """
    raise NotImplementedError("for compiled loops")


@overload(_sum, jit_options=INNER)
def _sum_of(values, room, n, at, x, ahead):
    return _one_output if _alone(room) else _many_outputs


def _alone(room):
    """Whether there is one output, from the type of the room."""
    return len(room.types[room.fields.index("alone")]) == 1


def _one_output(values, room, n, at, x, ahead):
    """Polynomials of as many values as there are lanes."""
    found, lanes, here = room.found, room.found.lanes, at * len(room.found.lanes)
    total = load(room.sums, here, lanes)
    for k in range(0, n, len(lanes)):
        prefetch(x, ahead + k)
        u, powers = load(found.u, k, lanes), np.int64(len(values.powers))
        total = add_polynomials(values.coef, powers, found.row, k, values.powers, u, total)
    store(room.sums, here, total)


def _many_outputs(values, room, n, at, x, ahead):
    """The outputs of two values at a time: two sums hide half the latency of an addition."""
    found, size = room.found, len(values.chunk)
    here = at * size * vectors(values)
    for part in range(vectors(values)):
        a = load(room.sums, here + part * size, values.chunk)
        b = zeros(values.coef, values.chunk)
        for k in range(0, n, 2):
            prefetch(x, ahead + k)
            a = add(a, polynomial(values, np.int64(item(found.row, k)), item(found.u, k), part))
            row, u = np.int64(item(found.row, k + 1)), item(found.u, k + 1)
            b = add(b, polynomial(values, row, u, part))
        store(room.sums, here + part * size, add(a, b))


# What follows takes no table, so that it is compiled once for many.
def _drain(room, size, outputs, count, top, out):
    """Add the sums of `count` rows to `out`, from row `top` on, and clear them.

    They are of `size` numbers each.
    """
    raise NotImplementedError("for compiled loops")


@overload(_drain, jit_options=INNER)
def _drain_of(room, size, outputs, count, top, out):
    return _drain_one if _alone(room) else _drain_many


def _drain_one(room, size, outputs, count, top, out):
    lanes = room.found.lanes
    for i in range(count):
        store(room.one, 0, fold(load(room.sums, i * len(lanes), lanes), (0,)))
        out[top + i] += item(room.one, 0)
        store(room.sums, i * len(lanes), zeros(room.sums, lanes))


def _drain_many(room, size, outputs, count, top, out):
    for i in range(count):
        for c in range(outputs):
            out[(top + i) * outputs + c] += item(room.sums, i * size + c)
        for c in range(size):
            room.sums[i * size + c] = 0


@njit(**INNER)
def _end(found, n, nothing):
    """Behind n values: others that add nothing, to fill a vector."""
    lanes = found.lanes
    if n % len(lanes) != 0:
        store(found.row, n, fill(found.row, np.int32(nothing), lanes))
        store(found.u, n, zeros(found.u, lanes))


@entry()
def dot_dense(table, x, room, begin, end, out):
    """Add the sums of dense rows begin..end to `out`, rows of `table.outputs`; both are flat.

    Returns by how much values were outside the range in all: 0 if none was, NaN for NaN.
    """
    d, tile, values, found = table.features, table.tile, table.values, room.found
    lanes, one = found.lanes, np.int64(1)
    beyond = zeros(values.coef, lanes)
    size, nothing = len(values.chunk) * vectors(values), table.bins.nothing
    for top in range(begin, end, BLOCK):
        bottom = top + BLOCK if top + BLOCK < end else end
        a = np.int64(0)
        while a < d:
            n = tile if a + tile + len(lanes) <= d else d - a
            ahead = (1 + _AHEAD // n) * d
            for i in range(top, bottom):
                at = i * d + a
                beyond = locate_dense(table, x, at, a, n, one, found, beyond)
                _end(found, n, nothing)
                _sum(values, room, n, i - top, x, at + ahead)
            a += n
        _drain(room, size, table.outputs, bottom - top, top, out)
    store(room.one, 0, fold(beyond, (0,)))
    return item(room.one, 0)


@entry()
def dot_stored(table, rows, room, begin, end, out):
    """As `dot_dense`, for CSR rows; features that are not stored add nothing."""
    values, nothing, beyond = table.values, table.bins.nothing, table.values.coef.dtype.type(0)
    size = len(values.chunk) * vectors(values)
    for i in range(begin, end):
        last = np.int64(item(rows.indptr, i + 1))
        for a in range(np.int64(item(rows.indptr, i)), last, TILE):
            n = TILE if last - a > TILE else last - a
            beyond = locate_stored(table, rows, a, n, room.found, beyond)
            _end(room.found, n, nothing)
            _sum(values, room, n, np.int64(0), rows.data, a + n)
        _drain(room, size, table.outputs, np.int64(1), i, out)
    return beyond
