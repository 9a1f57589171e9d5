"""Codes of rows: the bin of every value as an integer, or bin and position in fixed point.

A code is the bin b, or the position b + u in units of 2^−fraction_bits for maps that interpolate.
Values that are NaN or outside [least, most] of their feature are reported on the way: a pass of its
own over the data would cost as much as the encoding. Their codes are those that they have without
that range (NaN: anything).
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from ...compiling import njit
from ..simd.arithmetic import (
    all_inside,
    as_floats,
    between,
    cut_off,
    cut_off_unsigned,
    from_origin,
    none_outside,
    parameter,
    plus_share,
    scaled,
    still_inside,
)
from ..simd.vectors import copy_numbers, item, load, load_some, prefetch, store, store_codes
from .entry import INNER, entry
from .layout import Bins
from .locate import cell_of, even_position, passed_edges
from .memory import aligned, by_vector
from .stored import AFFINE

_MOST_ROWS = 64  # of a block, in which tables are used again
# Fewest rows of a block, and its values: they stay in a cache until all features had their turn.
_BLOCK = (16, 2**16)
_NEAR_BLOCK = (8, 2**13)  # the same in the nearest cache, for bins without tables
# Bytes of the records of a vector of features: fewer come fast enough, more have no room.
_FEW_BYTES, _MANY_BYTES = 2**13, 2**15


class Units(NamedTuple):
    """Positions among even bins, by feature and in units of codes: (x − origin)·factor."""

    before: np.ndarray  # T: from here on 31 bits hold any position
    behind: np.ndarray
    origin: np.ndarray
    factor: np.ndarray
    first: np.ndarray  # int32: codes of the ends
    last: np.ndarray


class Frame(NamedTuple):
    """What is asked for: codes of how many bits behind the point, of values in which range.

    The size of a code is a number, not a type: codes are written as bytes.
    """

    width: int  # features
    rows: int  # of a block
    fraction_bits: int
    half: float  # even bins: what is added before positions are cut off
    size: int  # bytes of a code: 1, 2 or 4
    least: np.ndarray  # by feature, padded to whole vectors
    most: np.ndarray
    units: Any  # Units of even bins; none where 31 bits are not enough, and of others
    lanes: tuple  # length: features at a time
    # Memory of one thread.
    room: np.ndarray  # uint8: for a vector of codes
    cells: np.ndarray  # int32: of a vector of uneven features of a block of rows


def frame_for(bins: Bins, bits: int, codes: np.dtype, least: np.ndarray, most: np.ndarray) -> Frame:
    """What is asked for, of rows that have as many features as there are ends."""
    d, half = len(least), 0.5 if bins.placed else 0.0
    even = len(bins.kind) == AFFINE
    fewest, values = _NEAR_BLOCK if even else _BLOCK
    rows = max(fewest, min(_MOST_ROWS, values // max(1, d)))
    units = _units(bins, 2.0**bits, half) if even and codes.itemsize < 4 else ()
    ends, none = (by_vector(least), by_vector(most)), (np.zeros(0, np.uint8), np.zeros(0, np.int32))
    return Frame(d, rows, bits, half, codes.itemsize, *ends, units, (), *none)


def _units(bins: Bins, unit: float, half: float) -> Units | tuple:
    """Products with a power of two are exact, and so is the last step, to the codes of the ends.

    An empty tuple where rows are so coarse that the next number is farther away than 31 bits reach.
    """
    kind = np.finfo(bins.number.dtype)
    with np.errstate(all="ignore"):
        factor = bins.factor * unit
        near = (
            np.clip(bins.origin + side * 2.0**30 / factor, kind.min, kind.max).astype(kind.dtype)
            for side in (-1, 1)
        )
        before, behind = (by_vector(end) for end in near)
        reached = [(end.astype(np.float64) - bins.origin) * factor for end in (before, behind)]
    if not np.all(np.abs(reached) < 2.0**31 - 1) or not np.all(before < behind):
        return ()
    codes = (end * unit + half for end in (bins.low, bins.high))
    first, last = (code.astype(np.int32) for code in codes)
    return Units(before, behind, bins.origin, factor, first, last)


def room_for(frame: Frame, lanes: tuple) -> Frame:
    """A frame with memory for one thread."""
    cells = aligned(_MOST_ROWS * max(len(lanes), 1), np.int32)
    room = np.zeros(len(lanes) * frame.size, np.uint8)
    return frame._replace(lanes=lanes, room=room, cells=cells)


@njit(**INNER)
def _bounded(frame, x, j, across):
    """Values no farther than the ends of their features' ranges."""
    least, most = parameter(frame.least, j, x, across), parameter(frame.most, j, x, across)
    return between(x, least, most)


def position_code(bins, frame, x, at, j, across):
    """Bin and position of a value in fixed point, as a 32-bit integer.

    Its cell, if it has one, is ``cells[at]``.
    """
    raise NotImplementedError("position_code is for compiled loops")


@overload(position_code, jit_options=INNER)
def _position_code(bins, frame, x, at, j, across):
    if not _even(bins):
        return _uneven_code
    units = frame.types[frame.fields.index("units")]
    return _even_code if hasattr(units, "fields") else _wide_code


def _even(bins):
    return len(bins.types[bins.fields.index("kind")]) == AFFINE


def _even_code(bins, frame, x, at, j, across):
    units = frame.units
    origin, factor = parameter(units.origin, j, x, across), parameter(units.factor, j, x, across)
    before, behind = parameter(units.before, j, x, across), parameter(units.behind, j, x, across)
    t = from_origin(as_floats(between(x, before, behind), units.origin), origin, factor)
    first, last = parameter(units.first, j, x, across), parameter(units.last, j, x, across)
    return cut_off(scaled(t, 1.0, frame.half), first, last)


def _wide_code(bins, frame, x, at, j, across):
    unit = np.float64(np.int64(1) << frame.fraction_bits)
    return cut_off_unsigned(scaled(even_position(bins, x, j, across), unit, frame.half))


def _uneven_code(bins, frame, x, at, j, across):
    b, u = passed_edges(bins, x, frame.cells, at, j, across)
    if len(bins.placed):
        return plus_share(b, u, frame.fraction_bits, bins.number.dtype.type(0.5))
    return b


def note_cell(bins, frame, x, at, j, across):
    """``cells[at]`` of a value, if its bins are uneven."""
    raise NotImplementedError("note_cell is for compiled loops")


@overload(note_cell, jit_options=INNER)
def _note_cell(bins, frame, x, at, j, across):
    return _no_cell if _even(bins) else _uneven_cell


def _no_cell(bins, frame, x, at, j, across):
    pass


def _uneven_cell(bins, frame, x, at, j, across):
    store(frame.cells, at, cell_of(bins, as_floats(x, bins.number), j, across))


def records_for(bins, lanes, j, parts):
    """Where the records of a vector of features begin, and how many numbers a part of them has.

    None, if they are so few that they come fast enough, or too many for the nearest cache.
    """
    raise NotImplementedError("records_for is for compiled loops")


@overload(records_for, jit_options=INNER)
def _records_for(bins, lanes, j, parts):
    return _no_records if _even(bins) else _some_records


def _no_records(bins, lanes, j, parts):
    return np.int64(0), np.int64(0)


def _some_records(bins, lanes, j, parts):
    search, last, size = bins.search, j + len(lanes) - 1, len(bins.search.record)
    begin = np.int64(item(search.cell, j)) * size
    end = (np.int64(item(search.cell, last)) + np.int64(item(search.limit, last)) + 1) * size
    wanted = _FEW_BYTES < (end - begin) * search.records.itemsize < _MANY_BYTES
    return begin, ((end - begin) // parts + 1 if wanted else np.int64(0))


def ask_for_records(bins, begin, size):
    """So many numbers of the records from `begin` on, a line at a time."""
    raise NotImplementedError("ask_for_records is for compiled loops")


@overload(ask_for_records, jit_options=INNER)
def _ask_for_records(bins, begin, size):
    return _ask_for_none if _even(bins) else _ask_for_some


def _ask_for_none(bins, begin, size):
    pass


def _ask_for_some(bins, begin, size):
    records = bins.search.records
    for at in range(begin, begin + size, 64 // records.itemsize):
        prefetch(records, at)


@njit(**INNER)
def _values(x, at, n, lanes):
    """As `load_some`; where the question is asked out here, the loop takes 5 % less time."""
    if n < len(lanes):
        return load_some(x, at, n, lanes)
    return load(x, at, lanes)


@njit(**INNER)
def _column(bins, frame, x, j, rows, out):
    """Codes of a vector of features from j on; whether all values were in their ranges.

    Of rows begin..end, with what the finder reads by feature in registers: first the cells of all
    of them, since a load that follows the store of its index at once would wait for it. Meanwhile
    the records that they point to are asked for, and then the rows that follow, in the order of
    memory, from ``rows[2]`` on.
    """
    begin, end, ahead = rows
    d, size, lanes = frame.width, frame.size, frame.lanes
    records, part = records_for(bins, lanes, j, end - begin)
    for i in range(begin, end):
        values = _values(x, i * d + j, d, lanes)
        ask_for_records(bins, records + (i - begin) * part, part)
        note_cell(bins, frame, values, (i - begin) * len(lanes), j, (0,))
    inside = all_inside(as_floats(_values(x, begin * d + j, d, lanes), bins.number))
    for i in range(begin, end):
        at, k = i * d + j, (i - begin) * len(lanes)
        prefetch(x, ahead + k)
        value = as_floats(_values(x, at, d, lanes), bins.number)
        inside = still_inside(inside, value, _bounded(frame, value, j, (0,)))
        code = position_code(bins, frame, value, k, j, (0,))
        if d >= len(lanes):
            store_codes(out, at * size, size, code)
        else:
            store_codes(frame.room, 0, size, code)
            copy_numbers(frame.room, out, at * size, d * size)
    return none_outside(inside)


@entry()
def encode_dense(bins, frame, x, begin, end, out):
    """Codes of dense rows begin..end (flat, `out` in bytes); whether all were in their ranges.

    Some features of a block of rows at a time: their tables stay in the nearest cache, the rows in
    the next one. The block that follows is asked for meanwhile.
    """
    d, lanes, inside = frame.width, frame.lanes, True
    final = d - len(lanes) if d > len(lanes) else 0
    for top in range(begin, end, frame.rows):
        bottom = top + frame.rows if top + frame.rows < end else end
        ahead = bottom * d
        for start in range(0, d, len(lanes)):
            # The last vector overlaps the one before, if there is one.
            j = start if start < final else final
            inside &= _column(bins, frame, x, j, (top, bottom, ahead), out)
            ahead += (bottom - top) * len(lanes)
    return inside


@entry()
def encode_stored(bins, frame, rows, begin, end, out):
    """Codes of the stored values begin..end of CSR rows."""
    for k in range(begin, end):
        feature = np.int64(item(rows.indices, k))
        value = as_floats(item(rows.data, k), bins.number)
        note_cell(bins, frame, value, np.int64(0), feature, ())
        code = position_code(bins, frame, value, np.int64(0), feature, ())
        store_codes(out, k * frame.size, frame.size, code)
