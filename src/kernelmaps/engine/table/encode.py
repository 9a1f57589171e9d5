"""Codes of rows: the bin of every value as an integer, or bin and position in fixed point.

A code is the bin b, or the position b + u in units of 2^−fraction_bits for maps that interpolate.
Values that are NaN or outside [least, most] of their feature are detected in the same pass: a
separate pass over the data would cost as much as the encoding. Their codes are those that they have
without that range (NaN: anything).
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from ..._util.compiling import njit
from ..._util.static_int import ABSENT, StaticInt
from ..._util.static_types import field_type, is_absent, static_field
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
from .entry import INNER, entry
from .layout import NO_POSITION, Bins
from .locate import ACROSS, WITHIN, affine_position, cell_of, passed_edges
from .memory import aligned, by_vector
from .stored import AFFINE

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


class CodeUnits(NamedTuple):
    """Positions among uniform bins, by feature and in units of codes: (x − origin)·factor."""

    before: np.ndarray  # T: between these ends 31 bits hold any position
    behind: np.ndarray
    origin: np.ndarray
    factor: np.ndarray
    first: np.ndarray  # int32: codes of the ends
    last: np.ndarray


class Encoding(NamedTuple):
    """How values are encoded: bits after the point, size of a code, ranges, one thread's memory.

    The size of a code is a number, not a type: codes are written as bytes.
    """

    width: int  # features
    rows: int  # of a block
    fraction_bits: int
    half: float  # uniform bins: what is added before positions are truncated
    size: int  # bytes of a code: 1, 2 or 4
    least: np.ndarray  # by feature, padded to whole vectors
    most: np.ndarray
    units: Any  # CodeUnits of uniform bins; ABSENT where 31 bits are too few, and for other bins
    lanes: StaticInt  # features at a time
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
    units = _code_units(bins, 2.0**bits, half) if uniform and codes.itemsize < 4 else ABSENT
    ends, none = (by_vector(least), by_vector(most)), (np.zeros(0, np.uint8), np.zeros(0, np.int32))
    return Encoding(d, rows, bits, half, codes.itemsize, *ends, units, StaticInt(0), *none)


def _code_units(bins: Bins, unit: float, half: float) -> CodeUnits | StaticInt:
    """Products with a power of two are exact, and so is the last step, to the codes of the ends.

    ABSENT where rows are so coarse that the next number is farther away than 31 bits reach.
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
        return ABSENT
    codes = (end * unit + half for end in (bins.low, bins.high))
    first, last = (code.astype(np.int32) for code in codes)
    return CodeUnits(before, behind, bins.origin, factor, first, last)


def with_memory(encoding: Encoding, lanes: StaticInt) -> Encoding:
    """The encoding with memory for one thread, of `lanes` features at a time; 0 for CSR rows."""
    cells = aligned(_MAX_ROWS * max(lanes, 1), np.int32)
    codes = np.zeros(lanes * encoding.size, np.uint8)
    return encoding._replace(lanes=lanes, codes=codes, cells=cells)


@njit(**INNER)
def _bounded(encoding, x, j, across):
    """Values clipped to the ranges of their features."""
    least, most = parameter(encoding.least, j, x, across), parameter(encoding.most, j, x, across)
    return clip(x, least, most)


def position_code(bins, encoding, x, at, j, across):
    """Bin and position of a value in fixed point, as a 32-bit integer.

    Bins between edges: its cell is ``cells[at]``.
    """
    raise NotImplementedError("position_code is for compiled loops")


@overload(position_code, jit_options=INNER)
def _position_code(bins, encoding, x, at, j, across):
    if not _uniform(bins):
        return _edges_code
    return _wide_code if is_absent(field_type(encoding, "units")) else _uniform_code


def _uniform(bins):
    """Whether bins are uniform, from their type."""
    return static_field(bins, "kind") == AFFINE


def _uniform_code(bins, encoding, x, at, j, across):
    units = encoding.units
    origin, factor = parameter(units.origin, j, x, across), parameter(units.factor, j, x, across)
    before, behind = parameter(units.before, j, x, across), parameter(units.behind, j, x, across)
    t = shift_and_scale(as_floats(clip(x, before, behind), units.origin), origin, factor)
    first, last = parameter(units.first, j, x, across), parameter(units.last, j, x, across)
    return truncate(scale_and_shift(t, 1.0, encoding.half), first, last)


def _wide_code(bins, encoding, x, at, j, across):
    unit = np.float64(np.int64(1) << encoding.fraction_bits)
    t = affine_position(bins, x, j, across)
    return truncate_unsigned(scale_and_shift(t, unit, encoding.half))


def _edges_code(bins, encoding, x, at, j, across):
    b, u = passed_edges(bins, x, encoding.cells, at, j, across)
    if bins.position == NO_POSITION:
        return b
    return fixed_point(b, u, encoding.fraction_bits, bins.number.dtype.type(0.5))


def store_cell(bins, encoding, x, at, j, across):
    """Bins between edges: the cell of a value becomes ``cells[at]``."""
    raise NotImplementedError("store_cell is for compiled loops")


@overload(store_cell, jit_options=INNER)
def _store_cell(bins, encoding, x, at, j, across):
    return _no_cell if _uniform(bins) else _edges_cell


def _no_cell(bins, encoding, x, at, j, across):
    pass


def _edges_cell(bins, encoding, x, at, j, across):
    store(encoding.cells, at, cell_of(bins, as_floats(x, bins.number), j, across))


def records_for(bins, lanes, j, parts):
    """Where the records of a vector of features begin, and the numbers in one of `parts` of them.

    0 numbers if they need no prefetching, or do not fit into the first-level cache.
    """
    raise NotImplementedError("records_for is for compiled loops")


@overload(records_for, jit_options=INNER)
def _records_for(bins, lanes, j, parts):
    return _no_records if _uniform(bins) else _some_records


def _no_records(bins, lanes, j, parts):
    return np.int64(0), np.int64(0)


def _some_records(bins, lanes, j, parts):
    search, last, size = bins.search, j + lanes - 1, bins.search.record
    begin = np.int64(item(search.cell, j)) * size
    end = (np.int64(item(search.cell, last)) + np.int64(item(search.limit, last)) + 1) * size
    prefetched = _PREFETCH_ABOVE < (end - begin) * search.records.itemsize < _PREFETCH_BELOW
    return begin, ((end - begin) // parts + 1 if prefetched else np.int64(0))


def prefetch_records(bins, begin, size):
    """Prefetch `size` numbers of the records from `begin` on, a line at a time."""
    raise NotImplementedError("prefetch_records is for compiled loops")


@overload(prefetch_records, jit_options=INNER)
def _prefetch_records(bins, begin, size):
    return _prefetch_none if _uniform(bins) else _prefetch_some


def _prefetch_none(bins, begin, size):
    pass


def _prefetch_some(bins, begin, size):
    records = bins.search.records
    for at in range(begin, begin + size, 64 // records.itemsize):
        prefetch(records, at)


@njit(**INNER)
def _values(x, at, n, lanes):
    """As `load_some`; with the branch out here the loop takes 5 % less time."""
    if n < lanes:
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
    d, size, lanes = encoding.width, encoding.size, encoding.lanes
    records, part_size = records_for(bins, lanes, j, end - begin)
    for i in range(begin, end):
        values = _values(x, i * d + j, d, lanes)
        prefetch_records(bins, records + (i - begin) * part_size, part_size)
        store_cell(bins, encoding, values, (i - begin) * lanes, j, ACROSS)
    inside = all_inside(as_floats(_values(x, begin * d + j, d, lanes), bins.number))
    for i in range(begin, end):
        at, k = i * d + j, (i - begin) * lanes
        prefetch(x, ahead + k)
        value = as_floats(_values(x, at, d, lanes), bins.number)
        inside = still_inside(inside, value, _bounded(encoding, value, j, ACROSS))
        code = position_code(bins, encoding, value, k, j, ACROSS)
        if d >= lanes:
            store_codes(out, at * size, size, code)
        else:
            store_codes(encoding.codes, 0, size, code)
            copy_numbers(encoding.codes, out, at * size, d * size)
    return none_outside(inside)


@entry()
def encode_dense(bins, encoding, x, begin, end, out):
    """Codes of dense rows begin..end (flat, `out` in bytes); whether all were in their ranges.

    Some features of a block of rows at a time: their tables stay in the first-level cache, the rows
    in the next one. The next block is prefetched meanwhile.
    """
    d, lanes, inside = encoding.width, encoding.lanes, True
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


@entry()
def encode_stored(bins, encoding, rows, begin, end, out):
    """Codes of the stored values begin..end of CSR rows."""
    for k in range(begin, end):
        feature = np.int64(item(rows.indices, k))
        value = as_floats(item(rows.data, k), bins.number)
        store_cell(bins, encoding, value, np.int64(0), feature, WITHIN)
        code = position_code(bins, encoding, value, np.int64(0), feature, WITHIN)
        store_codes(out, k * encoding.size, encoding.size, code)
