"""Codes of rows: the bin of every value as an integer, or bin and position in fixed point.

A code is the bin b, or the position b + u in units of 2^−fraction_bits for maps that interpolate.
Values that are NaN or outside [least, most] of their feature are detected in the same pass: a
separate pass over the data would cost as much as the encoding. Their codes are those that they have
without that range (NaN: anything).
"""

from typing import NamedTuple

import numpy as np

from ..._util.compiling import INNER, loop, njit, static
from ..simd.arithmetic import (
    all_inside,
    as_floats,
    clip,
    fixed_point,
    none_outside,
    parameter,
    scale_and_shift,
    shift_and_scale,
    still_inside,
    truncate,
    truncate_unsigned,
)
from ..simd.vectors import copy_numbers, item, load, load_some, prefetch, store, store_codes
from .layout import CELL, LIMIT, NO_POSITION, Bins
from .locate import ACROSS, WITHIN, affine_position, cell_of, passed_edges
from .stored import AFFINE, aligned, by_vector

_MAX_ROWS = 64  # of a block: its rows use the tables of a vector of features while they are cached
# Fewest rows of a block, and its values: they stay in a cache until all features were encoded.
_MIN_ROWS, _BLOCK_VALUES = 16, 2**16  # in the second-level cache
_AFFINE_MIN_ROWS, _AFFINE_BLOCK_VALUES = (
    8,
    2**13,
)  # in the first-level one: uniform bins need no table
# Bytes of the records of a vector of features that are prefetched: fewer arrive in time without,
# more do not fit into the first-level cache.
_PREFETCH_ABOVE, _PREFETCH_BELOW = 2**13, 2**15


# Rows of the arrays of `Encoding`.
LEAST, MOST, BEFORE, BEHIND = range(4)
UNIT_ORIGIN, UNIT_FACTOR = range(2)
FIRST, FINAL = range(2)


class Encoding(NamedTuple):
    """How values are encoded: bits after the point, size of a code, ranges, one thread's memory.

    The size of a code is a number, not a type: codes are written as bytes. Positions among uniform
    bins are (x − origin)·factor in units of codes, `units`, of values between BEFORE and BEHIND,
    whose positions 31 bits hold.
    """

    width: int  # features
    rows: int  # of a block
    fraction_bits: int
    half: float  # uniform bins: what is added before positions are truncated
    size: int  # bytes of a code: 1, 2 or 4
    ends: np.ndarray  # T[2 or 4, features], padded to whole vectors: LEAST …
    units: np.ndarray  # [2, features]: UNIT_ORIGIN, UNIT_FACTOR
    end_codes: np.ndarray  # int32[2, features]: codes of the ends, FIRST and FINAL
    in_units: tuple  # static flag: uniform bins have units, which 31 bits are enough for
    lanes: tuple  # static: features at a time
    # Memory of one thread.
    codes: np.ndarray  # uint8: for a vector of codes
    cells: np.ndarray  # int32: of a vector of features of a block of rows


def encoding_of(
    bins: Bins, bits: int, codes: np.dtype, least: np.ndarray, most: np.ndarray
) -> Encoding:
    """How rows are encoded that have as many features as there are ends; without memory yet."""
    d, half = len(least), 0.5 if bins.position else 0.0
    uniform = bins.kind == AFFINE
    min_rows = _AFFINE_MIN_ROWS if uniform else _MIN_ROWS
    values = _AFFINE_BLOCK_VALUES if uniform else _BLOCK_VALUES
    rows = max(min_rows, min(_MAX_ROWS, values // max(1, d)))
    ends = [by_vector(least), by_vector(most)]
    units = _code_units(bins, 2.0**bits, half) if uniform and codes.itemsize < 4 else None
    if units is not None:
        ends += units[0]
    _, scale, end_codes = units or (None, np.zeros((2, 0)), np.zeros((2, 0), np.int32))
    none = np.zeros(0, np.uint8), np.zeros(0, np.int32)
    flags = static(units is not None), static(0)
    return Encoding(
        d, rows, bits, half, codes.itemsize, np.stack(ends), scale, end_codes, *flags, *none
    )


def _code_units(
    bins: Bins, unit: float, half: float
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray] | None:
    """Ends, origin and factor, and codes of the ends, of positions in units of codes.

    Products with a power of two are exact, and so is the last step, to the codes of the ends. None
    where rows are so coarse that the next number is farther away than 31 bits reach.
    """
    limits = np.finfo(bins.number.dtype)
    with np.errstate(all="ignore"):
        factor = bins.factor * unit
        ends = (bins.origin + side * 2.0**30 / factor for side in (-1, 1))
        before, behind = (
            by_vector(np.clip(end, limits.min, limits.max).astype(limits.dtype)) for end in ends
        )
        reached = [(end.astype(np.float64) - bins.origin) * factor for end in (before, behind)]
    if not np.all(np.abs(reached) < 2.0**31 - 1) or not np.all(before < behind):
        return None
    codes = [end * unit + half for end in (bins.low, bins.high)]
    return [before, behind], np.stack([bins.origin, factor]), np.stack(codes).astype(np.int32)


def with_memory(encoding: Encoding, lanes: int) -> Encoding:
    """The encoding with memory for one thread, of `lanes` features at a time; 0 for CSR rows."""
    cells = aligned(_MAX_ROWS * max(lanes, 1), np.int32)
    codes = np.zeros(lanes * encoding.size, np.uint8)
    return encoding._replace(lanes=static(lanes), codes=codes, cells=cells)


@njit(**INNER)
def _bounded(encoding, x, j, across):
    """Values clipped to the ranges of their features."""
    least = parameter(encoding.ends, LEAST, j, x, across)
    return clip(x, least, parameter(encoding.ends, MOST, j, x, across))


@njit(**INNER)
def _position_code(bins, kind, encoding, in_units, x, at, j, across):
    """Bin and position of a value in fixed point, as a 32-bit integer.

    Bins between edges: its cell is ``cells[at]``. `kind` and `in_units` are those of `bins` and
    `encoding`, as arguments by themselves.
    """
    if len(kind) != AFFINE:
        b, u = passed_edges(bins, bins.record, bins.position, x, encoding.cells, at, j, across)
        if len(bins.position) == NO_POSITION:
            return b
        return fixed_point(b, u, encoding.fraction_bits, bins.edges.dtype.type(0.5))
    if len(in_units) == 0:
        unit = np.float64(np.int64(1) << encoding.fraction_bits)
        t = affine_position(bins, x, j, across)
        return truncate_unsigned(scale_and_shift(t, unit, encoding.half))
    before = parameter(encoding.ends, BEFORE, j, x, across)
    inside = clip(x, before, parameter(encoding.ends, BEHIND, j, x, across))
    origin = parameter(encoding.units, UNIT_ORIGIN, j, x, across)
    factor = parameter(encoding.units, UNIT_FACTOR, j, x, across)
    t = shift_and_scale(as_floats(inside, encoding.units), origin, factor)
    first = parameter(encoding.end_codes, FIRST, j, x, across)
    final = parameter(encoding.end_codes, FINAL, j, x, across)
    return truncate(scale_and_shift(t, 1.0, encoding.half), first, final)


@njit(**INNER)
def _store_cell(bins, kind, encoding, x, at, j, across):
    """Bins between edges: the cell of a value becomes ``cells[at]``."""
    if len(kind) != AFFINE:
        store(encoding.cells, at, cell_of(bins, as_floats(x, bins.edges), j, across))


@njit(**INNER)
def _find_records(bins, record, lanes, j, parts):
    """Where the records of a vector of features begin, and the numbers in one of `parts` of them.

    0 numbers if they need no prefetching, or do not fit into the first-level cache. `record` is
    that of the bins.
    """
    if len(record) == 0:
        return np.int64(0), np.int64(0)
    last = j + lanes - 1
    begin = np.int64(bins.integers[CELL, j])
    end = np.int64(bins.integers[CELL, last]) + np.int64(bins.integers[LIMIT, last]) + 1
    count = (end - begin) * len(record)
    prefetched = _PREFETCH_ABOVE < count * bins.records.itemsize < _PREFETCH_BELOW
    return begin * len(record), (count // parts + 1 if prefetched else np.int64(0))


@njit(**INNER)
def _prefetch_records(bins, record, begin, size):
    """Prefetch `size` numbers of the records from `begin` on, a line at a time."""
    if len(record) > 0:
        for at in range(begin, begin + size, 64 // bins.records.itemsize):
            prefetch(bins.records, at)


@njit(**INNER)
def _values(x, at, n, lanes):
    """As `load_some`; with the branch out here the loop takes 5 % less time."""
    if n < len(lanes):
        return load_some(x, at, n, lanes)
    return load(x, at, lanes)


@njit(**INNER)
def _column(bins, encoding, x, j, rows, out):
    """Codes of a vector of features from j on, for rows begin..end; whether all were in range.

    What the finder reads by feature stays in registers. First come the cells of all rows, since a
    load right after the store of its index would wait for it. Meanwhile the records that they point
    to are prefetched, and then the rows that follow, in the order of memory, from ``rows[2]`` on.
    """
    begin, end, ahead = rows
    d, size, lanes = encoding.width, encoding.size, len(encoding.lanes)
    records, part_size = _find_records(bins, bins.record, lanes, j, end - begin)
    for i in range(begin, end):
        values = _values(x, i * d + j, d, encoding.lanes)
        _prefetch_records(bins, bins.record, records + (i - begin) * part_size, part_size)
        _store_cell(bins, bins.kind, encoding, values, (i - begin) * lanes, j, ACROSS)
    inside = all_inside(as_floats(_values(x, begin * d + j, d, encoding.lanes), bins.edges))
    for i in range(begin, end):
        at, k = i * d + j, (i - begin) * lanes
        prefetch(x, ahead + k)
        value = as_floats(_values(x, at, d, encoding.lanes), bins.edges)
        inside = still_inside(inside, value, _bounded(encoding, value, j, ACROSS))
        code = _position_code(bins, bins.kind, encoding, encoding.in_units, value, k, j, ACROSS)
        if d >= lanes:
            store_codes(out, at * size, size, code)
        else:
            store_codes(encoding.codes, 0, size, code)
            copy_numbers(encoding.codes, out, at * size, d * size)
    return none_outside(inside)


@loop(_nrt=False)
def encode_dense(bins, encoding, x, begin, end, out):
    """Codes of dense rows begin..end (flat, `out` in bytes); whether all were in their ranges.

    Some features of a block of rows at a time: their tables stay in the first-level cache, the rows
    in the next one. The next block is prefetched meanwhile.
    """
    d, lanes, inside = encoding.width, len(encoding.lanes), True
    final = d - lanes if d > lanes else 0
    for top in range(begin, end, encoding.rows):
        bottom = top + encoding.rows if top + encoding.rows < end else end
        ahead = bottom * d
        for start in range(0, d, lanes):
            # The last vector overlaps the one before, if there is one.
            j = start if start < final else final
            inside &= _column(bins, encoding, x, j, (top, bottom, ahead), out)
            ahead += (bottom - top) * lanes
    return inside


@loop(_nrt=False)
def encode_stored(bins, encoding, rows, begin, end, out):
    """Codes of the stored values begin..end of CSR rows."""
    zero = np.int64(0)
    for k in range(begin, end):
        feature = np.int64(item(rows.indices, k))
        value = as_floats(item(rows.data, k), bins.edges)
        _store_cell(bins, bins.kind, encoding, value, zero, feature, WITHIN)
        code = _position_code(
            bins, bins.kind, encoding, encoding.in_units, value, zero, feature, WITHIN
        )
        store_codes(out, k * encoding.size, encoding.size, code)
