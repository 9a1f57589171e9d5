"""Sums of a table's columns over the features: the scores of a trained model.

The columns of the table are the model's outputs. Some features of a row at a time are located
(:mod:`.locate`), and the polynomials of their pieces are added up in registers: for one output,
several values side by side, whose blocks of coefficients are transposed; for more, the outputs side
by side. The coefficients of so few features stay in the cache while a block of rows is processed,
each row with its sums so far, and the next rows are prefetched: that gains more than any wider
vector.

Values outside the range of the table, and those that are not finite, are detected in the same pass.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from ..._util.compiling import INNER, loop, njit, static
from ..._util.threads import power_of_two
from ..simd.polynomials import polynomial, vectors
from ..simd.vectors import (
    ONE,
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
from .layout import (
    BinFinder,
    Bins,
    LocalPolynomials,
    PolynomialTable,
    bins_of,
    pieces_of,
    polynomials_of,
)
from .locate import Locations, locate_dense, locate_stored, locations_for
from .stored import AFFINE, CODE, EDGES, LANES, Table, aligned, by_vector

TILE = 128  # most features at a time
BLOCK = 2048  # rows at a time: their sums stay in a cache while the loop goes over the features
_TILE_BYTES = 2**19  # coefficients at a time: a part of a second-level cache
# Uniform bins are found in float32 if a range begins at most this many of its widths from zero:
# rounding then moves a value by a few units in the last place of x.
_MAX_DISTANCE = 4
# Bins that rounding may carry a value beyond the ends: more than rounding can, less than the piece
# after the last bin.
_END_TOLERANCE = 0.01
_PREFETCH = 256  # values ahead of the one in work


class SummedTable(NamedTuple):
    """A table whose columns are summed over the features."""

    bins: Bins
    values: LocalPolynomials  # columns: outputs; if there is one, `powers` is a power of two
    low: np.ndarray  # T by feature: values outside low … high are detected (CODE: none)
    high: np.ndarray
    features: int
    outputs: int
    tile: int  # features at a time: their coefficients stay in a cache

    def for_loops(self) -> SumTable:
        ranges = np.stack([self.low, self.high]) if len(self.low) else None
        sizes = self.features, self.outputs, self.tile
        return SumTable(self.bins.for_loops(ranges), self.values.for_loops(), *sizes)


class SumTable(NamedTuple):
    """The same as loops take it."""

    bins: BinFinder
    values: PolynomialTable
    features: int
    outputs: int
    tile: int


class SumWorkspace(NamedTuple):
    """Memory of one thread."""

    locations: Locations  # of a tile of values, and a vector more
    sums: np.ndarray  # T: of a block of rows, a vector each (one output) or an entry per output
    one: np.ndarray  # T
    one_output: tuple  # static flag


def summed_table(table: Table, dtype: np.dtype, *, centred: bool = False) -> SummedTable:
    """The layout of a table of outputs, in the precision `dtype`.

    `centred`: where possible, positions count from the middle of a bin, −½ … ½, which the loops
    below find at the least cost. Rounding may carry values at the ends of a range half a unit too
    far: before the first bin and after the last one are pieces with the values at the ends.
    """
    precision = _precision(table, dtype)
    within_bins, bounded = _stay_within_bins(table, dtype, precision)
    centred = centred and within_bins and bounded
    first_piece, sets = pieces_of(table, 2 * centred)
    outputs = int(table.width[0])
    powers = table.degree + 1
    padded = power_of_two(powers) if outputs == 1 else powers
    blocks = []
    for s in sets:
        polynomials = table.polynomials(s)
        polynomials = _around_middles(polynomials) if centred else polynomials
        blocks.append(np.zeros((len(polynomials), padded, table.band[s])))
        blocks[-1][:, :powers] = polynomials
    bins = bins_of(table, first_piece + centred, dtype)
    if centred:
        origin = bins.origin + 0.5 / bins.factor
        bins = bins._replace(origin=origin, zero_piece=bins.zero_piece + 1)
        bins = bins._replace(clipped=False, centred=True)
    elif within_bins or (_smooth(table) and table.binning == EDGES):
        bins = bins._replace(clipped=False)
    bins = _in_precision(bins, precision) if table.binning == AFFINE else bins
    first = [np.zeros(len(block), np.int32) for block in blocks]
    with np.errstate(over="ignore"):  # ends beyond the range of float32
        low, high = (
            by_vector(end[table.set_of].astype(dtype)) for end in (table.clip_low, table.clip_high)
        )
    if table.binning == CODE:
        low, high = low[:0], high[:0]
    values = polynomials_of(first, blocks, dtype, bool(bins.mirror))
    feature_bytes = values.coef.nbytes // table.n_features
    # Of codes, one cache line of a row: tables of twice as many features would leave the cache.
    most = TILE // 2 if table.binning == CODE else TILE
    tile = max(LANES, min(most, _TILE_BYTES // feature_bytes // LANES * LANES))
    return SummedTable(bins, values, low, high, table.n_features, outputs, tile)


def _smooth(table: Table) -> bool:
    """Whether polynomials continue into the next bin, for values clipped to their ranges.

    Tables that vanish at zero and odd extensions need the value before clipping.
    """
    smooth = table.degree > 0 and table.binning in (AFFINE, EDGES)
    return smooth and not table.signed and not table.zero_at_zero


def _stay_within_bins(table: Table, dtype: np.dtype, precision: np.dtype) -> tuple[bool, bool]:
    """Whether clipped values fall into uniform bins or the pieces beside them; whether ranges end.

    Rows are of `dtype`, positions are found in `precision`: the ends' positions are computed here
    as the loops compute them.
    """
    if not _smooth(table) or table.binning != AFFINE or not np.all(table.resolution > 0):
        return False, False
    with np.errstate(over="ignore", invalid="ignore"):
        origin = (table.origin + 0.5 / table.resolution).astype(precision)
        factor = table.resolution.astype(precision)
        ends = (end.astype(dtype).astype(precision) for end in (table.clip_low, table.clip_high))
        first, last = ((end - origin) * factor for end in ends)
    most = table.bins - 0.5 + _END_TOLERANCE
    within = np.isfinite(origin) & np.isfinite(factor)
    within &= (table.clip_low == -np.inf) | (np.isfinite(first) & (first >= -0.5 - _END_TOLERANCE))
    within &= (table.clip_high == np.inf) | (np.isfinite(last) & (last <= most))
    return bool(within.all()), bool(np.isfinite([table.clip_low, table.clip_high]).all())


def _around_middles(coef: np.ndarray) -> np.ndarray:
    """Polynomials (bins, powers, columns) of u as those of u − ½, between values at both ends."""
    powers = range(coef.shape[1])
    move = np.array([[comb(j, k) * 0.5 ** max(j - k, 0) for j in powers] for k in powers])
    ends = np.zeros((2, *coef.shape[1:]))
    ends[:, 0] = coef[0, 0], coef[-1].sum(axis=0)
    return np.concatenate([ends[:1], np.einsum("kj,bjc->bkc", move, coef), ends[1:]])


def _precision(table: Table, dtype: np.dtype) -> np.dtype:
    """The precision in which uniform bins are found: that of the rows, where polynomials allow it.

    Look-ups need the exact bin, in float64. Polynomials continue into the next bin: what float32
    changes is as small as a rounding error of x, unless the range is far from zero, or too wide for
    float32.
    """
    close = np.all(np.abs(table.origin) * table.resolution <= _MAX_DISTANCE * table.bins)
    return dtype if close and _stay_within_bins(table, dtype, dtype)[0] else np.dtype(np.float64)


def _in_precision(bins: Bins, precision: np.dtype) -> Bins:
    names = ("origin", "factor", "last", "low", "high")
    with np.errstate(over="ignore"):
        return bins._replace(**{n: by_vector(getattr(bins, n).astype(precision)) for n in names})


def sum_workspace(table: SummedTable, rows: int) -> SumWorkspace:
    """Memory for one thread that sums `rows` rows."""
    values, dtype = table.values, table.values.coef.dtype
    locations, one_output = locations_for(TILE + LANES, dtype), table.outputs == 1
    size = max(len(locations.lanes) if one_output else 0, values.chunk * values.parts)
    sums = aligned(min(BLOCK, rows) * size, dtype)
    return SumWorkspace(locations, sums, np.zeros(16, dtype), static(one_output))


@njit(**INNER)
def _sum(values, one_output, work, n, at, x, ahead):
    """Add the polynomials of the n located values to ``work.sums``, row `at` of the block.

    Meanwhile ``x[ahead : ahead + n]`` is prefetched, a line at a time: all at once would stall.
    `one_output` is that of `work`, as an argument by itself.
    """
    locations = work.locations
    if len(one_output) == 1:  # polynomials of as many values at a time as there are lanes
        lanes, powers = len(locations.lanes), len(values.powers)
        total = load(work.sums, at * lanes, locations.lanes)
        for k in range(0, n, lanes):
            prefetch(x, ahead + k)
            u = load(locations.u, k, locations.lanes)
            total = add_polynomials(
                values.coef, powers, locations.piece, k, values.powers, u, total
            )
        store(work.sums, at * lanes, total)
    else:  # the outputs of two values at a time: two sums hide half the latency of an addition
        size = len(values.chunk)
        start = at * size * vectors(values)
        for v in range(vectors(values)):
            a = load(work.sums, start + v * size, values.chunk)
            b = zeros(values.coef, values.chunk)
            for k in range(0, n, 2):
                prefetch(x, ahead + k)
                piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
                a = add(a, polynomial(values, piece, u, v))
                piece, u = np.int64(item(locations.piece, k + 1)), item(locations.u, k + 1)
                b = add(b, polynomial(values, piece, u, v))
            store(work.sums, start + v * size, add(a, b))


@njit(**INNER)
def _drain(work, size, outputs, count, top, out):
    """Add the sums of `count` rows to `out`, from row `top` on, and clear them.

    Each row has `size` numbers.
    """
    if len(work.one_output) == 1:
        lanes = len(work.locations.lanes)
        for i in range(count):
            total = load(work.sums, i * lanes, work.locations.lanes)
            store(work.one, 0, fold(total, ONE))
            out[top + i] += item(work.one, 0)
            store(work.sums, i * lanes, zeros(work.sums, work.locations.lanes))
    else:
        for i in range(count):
            for c in range(outputs):
                out[(top + i) * outputs + c] += item(work.sums, i * size + c)
            for c in range(size):
                work.sums[i * size + c] = 0


@njit(**INNER)
def _pad(locations, n, zero_piece):
    """Fill the last vector with locations in the piece of zeros, after n values."""
    if n % len(locations.lanes) != 0:
        store(locations.piece, n, fill(locations.piece, np.int32(zero_piece), locations.lanes))
        store(locations.u, n, zeros(locations.u, locations.lanes))


@loop(_nrt=False)
def dot_dense(table, x, work, begin, end, out):
    """Add the sums of dense rows begin..end to `out`, rows of `table.outputs`; both are flat.

    Returns the total distance of values from their ranges: 0 if none was outside, NaN for NaN.
    """
    d, tile, values, locations = table.features, table.tile, table.values, work.locations
    lanes, one = len(locations.lanes), np.int64(1)
    beyond = zeros(values.coef, locations.lanes)
    size, zero_piece = len(values.chunk) * vectors(values), table.bins.zero_piece
    for top in range(begin, end, BLOCK):
        bottom = top + BLOCK if top + BLOCK < end else end
        a = np.int64(0)
        while a < d:
            n = tile if a + tile + lanes <= d else d - a
            ahead = (1 + _PREFETCH // n) * d
            for i in range(top, bottom):
                at = i * d + a
                beyond = locate_dense(table.bins, x, at, a, n, one, locations, beyond)
                _pad(locations, n, zero_piece)
                _sum(values, work.one_output, work, n, i - top, x, at + ahead)
            a += n
        _drain(work, size, table.outputs, bottom - top, top, out)
    store(work.one, 0, fold(beyond, ONE))
    return item(work.one, 0)


@loop(_nrt=False)
def dot_stored(table, rows, work, begin, end, out):
    """As `dot_dense`, for CSR rows; features that are not stored add nothing."""
    values, zero_piece, beyond = (
        table.values,
        table.bins.zero_piece,
        table.values.coef.dtype.type(0),
    )
    size = len(values.chunk) * vectors(values)
    for i in range(begin, end):
        last = np.int64(item(rows.indptr, i + 1))
        for a in range(np.int64(item(rows.indptr, i)), last, TILE):
            n = TILE if last - a > TILE else last - a
            beyond = locate_stored(table.bins, rows, a, n, work.locations, beyond)
            _pad(work.locations, n, zero_piece)
            _sum(values, work.one_output, work, n, np.int64(0), rows.data, a + n)
        _drain(work, size, table.outputs, np.int64(1), i, out)
    return beyond
