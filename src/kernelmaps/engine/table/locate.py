r"""Where a value falls: the piece of the table for its bin b, and its position u in the bin.

====== ====================================================================================
bins   b and u of a value x
====== ====================================================================================
AFFINE t = (x − origin)·factor, b = ⌊t⌋, u = t − b
LOG2   x = 2^e (1 + m/M + u/M) with M bins in each octave: b = (e − first octave)·M + m.
       Exponent and m are the leading bits of the float, u the others
EDGES  edges e_0 < e_1 < …: b = #{k ≥ 1 : e_k ≤ x}, u = (x − e_b) / (e_{b+1} − e_b)
CODE   b = x, u = 0
====== ====================================================================================

The piece is ``first_piece[j] + b`` for feature j. If the table is `signed` (odd extension), b and u
are those of |x|, and negative values have the piece with the sign changed; if `zero_at_zero`,
zero has the piece of zeros.

This is the only place that finds bins. It is written once for a number and for a vector of them
(:mod:`..simd.arithmetic`), and compiled for the kind of bins in use. The bin of a value depends on
the number, not on its type: uniform bins are found in float64, those between edges by comparisons
that are exact in the rows' precision, octaves by the bits.

It relies on the relations that :mod:`.layout` states. A NaN falls into some bin, never out of
bounds; callers that must notice it compare (:func:`..simd.arithmetic.still_inside`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from ..._util.compiling import interpreted, njit
from ..._util.sparse import for_compiled_loops
from ..._util.static_int import StaticInt
from ..._util.static_types import field_type, static_field
from ..simd.arithmetic import (
    add_distance,
    as_floats,
    bits_of,
    cap_bin,
    clip,
    clip_to_range,
    code_of,
    filled_like,
    lanes_of,
    leading_bits,
    magnitude,
    octave_bin,
    parameter,
    plus,
    position_between,
    shift_and_scale,
    signed_piece,
    smaller,
    split,
    times,
    where_at_least,
)
from ..simd.vectors import ONE, TWO, gather_blocks, in_memory, item, load_some, store, width
from .entry import INNER, bind, routine
from .layout import FLOAT64_POSITION, NO_POSITION, POSITION, Bins
from .memory import LANES, aligned
from .packing import packed
from .search import EDGES_RECORD, NO_RECORDS, THRESHOLD_RECORD
from .stored import AFFINE, CODE, EDGES, LOG2

# To which features the lanes of a vector belong.
ACROSS = StaticInt(1)  # to j, j + 1, …: consecutive values of a dense row
WITHIN = StaticInt(0)  # all to j
_NOT_CENTRED = StaticInt(0)


def find(bins, x, j, across):
    """Piece of the table and position in the bin.

    Parameters
    ----------
    bins : Bins
    x : number or Vector
        Of the precision of the rows, or unsigned integers where they are codes.
    j : int
        Feature.
    across : StaticInt
        ACROSS or WITHIN.

    Returns
    -------
    piece, u : int32 and floats, one for each value
    """
    return _FINDERS[bins.kind](bins, x, j, across)


@overload(find, jit_options=INNER)
def _find(bins, x, j, across):
    return _FINDERS[static_field(bins, "kind")]


def _find_code(bins, x, j, across):
    b = code_of(x, parameter(bins.top, j, x, across))
    zero = bins.number.dtype.type(0)
    return plus(parameter(bins.first_piece, j, x, across), b), filled_like(x, zero)


def _find_affine(bins, x, j, across):
    value = as_floats(x, bins.number)
    t = affine_position(bins, magnitude(value, bins.signed), j, across)
    b, u = split(t, parameter(bins.last, j, x, across), bins.centred)
    return _piece(bins, value, b, j, across), as_floats(u, bins.number)


def _find_octave(bins, x, j, across):
    value = as_floats(x, bins.number)
    size = magnitude(value, bins.signed)
    size = clip_to_range(size, bins.low, bins.high, j, across, bins.clipped)
    b, u = octave_bin(size, bins.shift, bins.start, bins.limit)
    return _piece(bins, value, b, j, across), u


def _find_between_edges(bins, x, j, across):
    value = as_floats(x, bins.number)
    size = magnitude(value, bins.signed)
    cells = in_memory(cell_of(bins, size, j, across))
    b, u = passed_edges(bins, size, cells, np.int64(0), j, across)
    if bins.position != NO_POSITION:  # values at the right end belong to the last bin
        b, u = cap_bin(b, parameter(bins.top, j, x, across), u)
    return _piece(bins, value, b, j, across), u


_FINDERS = {
    AFFINE: _find_affine,
    LOG2: _find_octave,
    EDGES: _find_between_edges,
    CODE: _find_code,
}


@njit(**INNER)
def _piece(bins, value, b, j, across):
    """The piece of bin b of a value's magnitude, with the odd extension and the piece of zero."""
    piece = plus(parameter(bins.first_piece, j, value, across), b)
    return signed_piece(piece, value, bins.mirror, bins.signed, bins.zero_piece, bins.zero_at_zero)


@njit(**INNER)
def affine_position(bins, size, j, across):
    """t = (x − origin)·factor within [low, high], in the precision of the origin."""
    origin, factor = (
        parameter(bins.origin, j, size, across),
        parameter(bins.factor, j, size, across),
    )
    t = shift_and_scale(as_floats(size, bins.origin), origin, factor)
    return clip_to_range(t, bins.low, bins.high, j, across, bins.clipped)


# The search among edges (:mod:`.search`): a value's cell says how many edges lie before it, and a
# comparison or two say how many of the cell's own edges it passes.


@njit(**INNER)
def cell_of(bins, x, j, across):
    """Index of a value's cell: of its record, or, without records, of its count of edges."""
    search = bins.search
    x = clip_to_range(x, bins.low, bins.high, j, across, bins.clipped)
    origin, factor = parameter(bins.origin, j, x, across), parameter(bins.factor, j, x, across)
    t = shift_and_scale(x, origin, factor)
    if search.shift == 0:  # uniform cells
        cell = split(t, parameter(bins.last, j, x, across), _NOT_CENTRED)[0]
    else:
        key, limit = parameter(search.key, j, x, across), parameter(search.limit, j, x, across)
        cell = leading_bits(t, search.shift, key, limit)
    cell = plus(cell, parameter(search.cell, j, x, across))
    return cell if search.record == NO_RECORDS else times(cell, search.record)


def passed_edges(bins, x, cells, at, j, across):
    """How many edges after e_0 a value passes, and its position after the last of them.

    For values at the right end or beyond it, the count is one more than the last bin. The cells
    (:func:`cell_of`) come from memory, ``cells[at:]``: loops that stored them some time ago read
    them without waiting for the store.
    """
    return _SEARCHES[bins.search.record](bins, x, cells, at, j, across)


@overload(passed_edges, jit_options=INNER)
def _passed_edges(bins, x, cells, at, j, across):
    return _SEARCHES[static_field(field_type(bins, "search"), "record")]


def _by_threshold(bins, x, cells, at, j, across):
    """Look-ups: one record and one comparison."""
    search = bins.search
    threshold, bits = gather_blocks(search.records, np.int64(1), cells, at, search.record, x)
    x = clip_to_range(x, bins.low, bins.high, j, across, bins.clipped)
    count = where_at_least(x, threshold, plus(bits_of(bits), 1), bits_of(bits))
    return count, filled_like(x, search.edges.dtype.type(0))


def _by_edges(bins, x, cells, at, j, across):
    """Positions: the same; the threshold is an end of the bins on both of its sides."""
    search = bins.search
    record = gather_blocks(search.records, np.int64(1), cells, at, search.record, x)
    before, threshold, bits, after = record
    x = clip_to_range(x, bins.low, bins.high, j, across, bins.clipped)
    count = where_at_least(x, threshold, plus(bits_of(bits), 1), bits_of(bits))
    if bins.position != POSITION:
        return count, _position_after(bins, x, count, j, across)
    left = where_at_least(x, threshold, threshold, before)
    return count, position_between(x, left, where_at_least(x, threshold, after, threshold))


def _by_bisection(bins, x, cells, at, j, across):
    """Cells with several edges: ``edges[edge + b]`` is the left end of bin b."""
    search, edge = bins.search, parameter(bins.search.edge, j, x, across)
    x = clip_to_range(x, bins.low, bins.high, j, across, bins.clipped)
    count = gather_blocks(search.before, np.int64(1), cells, at, ONE, x)[0]
    remaining = _crowd(bins, j, x)
    while remaining > 0:  # nearly always once
        step = (remaining + 1) >> 1
        candidate = in_memory(plus(plus(count, edge), step))
        edges = gather_blocks(search.edges, np.int64(1), candidate, np.int64(0), ONE, x)
        count = where_at_least(x, edges[0], plus(count, step), count)
        remaining -= step
    if bins.position != NO_POSITION:  # edges beyond the end are padding
        count = smaller(count, plus(parameter(bins.top, j, x, across), 1))
    return count, _position_after(bins, x, count, j, across)


_SEARCHES = {
    NO_RECORDS: _by_bisection,
    THRESHOLD_RECORD: _by_threshold,
    EDGES_RECORD: _by_edges,
}


@njit(**INNER)
def _crowd(bins, j, x):
    """The most edges that share a cell, over a vector's features."""
    return max(bins.search.crowd[j], bins.search.crowd[j + lanes_of(x) - 1])


@njit(**INNER)
def _position_after(bins, x, count, j, across):
    """Position between the last of `count` edges and the next one; 0 for look-ups."""
    search = bins.search
    if bins.position == NO_POSITION:
        return filled_like(x, search.edges.dtype.type(0))
    at = in_memory(plus(count, parameter(search.edge, j, x, across)))
    if bins.position == FLOAT64_POSITION:
        left, right = gather_blocks(search.exact, np.int64(1), at, np.int64(0), TWO, x)
        return as_floats(position_between(as_floats(x, search.exact), left, right), search.edges)
    left, right = gather_blocks(search.edges, np.int64(1), at, np.int64(0), TWO, x)
    return position_between(x, left, right)


class Dense(NamedTuple):
    """Rows in C order."""

    values: np.ndarray  # flat


class Stored(NamedTuple):
    """CSR rows."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class Locations(NamedTuple):
    """Where values fell: one thread's memory, a vector longer than the values that it holds."""

    piece: np.ndarray  # int32
    u: np.ndarray  # T
    lanes: StaticInt  # values that are located at a time


class BinsOnly(NamedTuple):
    """A table without a range to check: its values are located and nothing else."""

    bins: Any


class Locator(NamedTuple):
    """A routine that locates values, and its bound arguments."""

    routine: Any
    table: Any
    rows: Any


def for_loops(bins: Bins) -> Bins:
    """Bins as the loops take them: only bins between edges have variants of the position."""
    return bins if bins.kind == EDGES else bins._replace(position=NO_POSITION)


def packed_bins(bins: Bins) -> Any:
    """Bins as a locator takes them."""
    return packed(BinsOnly(for_loops(bins)))


def locations_for(count: int, dtype: Any) -> Locations:
    """Memory for the locations of `count` values, with positions of `dtype`."""
    piece, u = (aligned(count + LANES, kind) for kind in (np.int32, dtype))
    return Locations(piece, u, StaticInt(width(u.itemsize)))


def locator(table: Any, rows: Dense | Stored, locations: Any) -> Locator:
    """The routine that locates values of such rows; `table` and `locations` may be packed.

    A loop calls it with ``(table, rows, locations, at, j, n, n_rows)``: it fills
    ``locations.piece[k]`` and ``locations.u[k]`` for n features from j on in n_rows consecutive
    rows, whose values begin at `at`. Stored values have features of their own.
    """
    dense = _locate_one_by_one if interpreted() else _locate_dense
    locate = _locate_stored if isinstance(rows, Stored) else dense
    return Locator(*bind(locate, (table, rows), (locations,), 4))


@njit(**INNER)
def locate_dense(table, x, at, j, n, n_rows, locations, beyond):
    """Locate the values of n features from j on in n_rows consecutive rows, from x[at] on.

    In full vectors: the last one of a row overlaps the one before it, if there is one. For tables
    with ranges, returns `beyond` plus how far values are outside (see :func:`_check_range`).
    """
    lanes = locations.lanes
    final = n - lanes if n > lanes else 0
    for first in range(0, n * n_rows, n):
        for start in range(0, n, lanes):
            k = start if start < final else final
            x_k = load_some(x, at + first + k, n, lanes)
            value, beyond = _check_range(table, x_k, j + k, ACROSS, beyond)
            piece, u = find(table.bins, value, j + k, ACROSS)
            store(locations.piece, first + k, piece)
            store(locations.u, first + k, u)
    return beyond


@njit(**INNER)
def locate_stored(table, stored, at, n, locations, beyond):
    """The same for n stored values of CSR rows, which have features of their own."""
    for k in range(n):
        j = np.int64(item(stored.indices, at + k))
        value, beyond = _check_range(table, item(stored.data, at + k), j, WITHIN, beyond)
        locations.piece[k], locations.u[k] = find(table.bins, value, j, WITHIN)
    return beyond


def _check_range(table, x, j, across, beyond):
    """Values for the finder, and `beyond` plus their distance from the range (NaN for NaN).

    Tables without ranges, and codes, take values as they are.
    """
    return x, beyond


@overload(_check_range, jit_options=INNER)
def _check_range_of(table, x, j, across, beyond):
    coded = static_field(field_type(table, "bins"), "kind") == CODE
    return _check_range if coded or "low" not in table.fields else _add_distance_from_range


def _add_distance_from_range(table, x, j, across, beyond):
    value = as_floats(x, table.bins.number)
    low, high = parameter(table.low, j, value, across), parameter(table.high, j, value, across)
    inside = clip(value, low, high)
    beyond = add_distance(beyond, inside, value)
    return (value if table.bins.clipped else inside), beyond


@routine()
def _locate_dense(table, dense, locations, at, j, n, n_rows):
    locate_dense(table, dense.values, at, j, n, n_rows, locations, np.int64(0))


@routine()
def _locate_stored(table, stored, locations, at, j, n, n_rows):
    locate_stored(table, stored, at, n * n_rows, locations, np.int64(0))


def _locate_one_by_one(table, dense, locations, at, j, n, n_rows):
    """Dense values where nothing is compiled: there are no vectors."""
    for k in range(n * n_rows):
        value = item(dense.values, at + k)
        locations.piece[k], locations.u[k] = find(table.bins, value, j + k % n, WITHIN)


def stored_rows(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Stored:
    """CSR rows as the loops take them."""
    return Stored(*for_compiled_loops(data, indices, indptr))
