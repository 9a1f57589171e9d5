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

from ..._util.compiling import INNER, interpreted, njit, static
from ..._util.sparse import for_compiled_loops
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
from .layout import (
    CELL,
    CROWD,
    EDGE,
    FACTOR,
    FIRST_PIECE,
    FLOAT64_POSITION,
    KEY,
    LAST,
    LIMIT,
    LOW,
    NO_POSITION,
    ORIGIN,
    TOP,
)
from .search import EDGES_RECORD, NO_RECORDS, THRESHOLD_RECORD
from .stored import AFFINE, CODE, LANES, LOG2, aligned

# To which features the lanes of a vector belong.
ACROSS = static(True)  # to j, j + 1, …: consecutive values of a dense row
WITHIN = static(False)  # all to j
_NOT_CENTRED = static(False)


@njit(**INNER)
def find(bins, kind, checked, x, j, across, beyond):
    """Piece of the table and position in the bin.

    Parameters
    ----------
    bins : BinFinder
    kind, checked : tuple
        Of `bins`: as arguments by themselves, they decide what is compiled.
    x : number or Vector
        Of the precision of the rows, or unsigned integers where they are codes.
    j : int
        Feature.
    across : tuple
        ACROSS or WITHIN.
    beyond : number or Vector
        A distance.

    Returns
    -------
    piece, u : int32 and floats, one for each value
    beyond : number or Vector
        With the distance of x from its range added, if ranges are checked (NaN for NaN).
    """
    if len(kind) == CODE:
        b = code_of(x, parameter(bins.integers, TOP, j, x, across))
        piece = plus(parameter(bins.integers, FIRST_PIECE, j, x, across), b)
        return piece, filled_like(x, bins.edges.dtype.type(0)), beyond
    value = as_floats(x, bins.edges)
    if len(checked) == 1:
        low = parameter(bins.ranges, np.int64(0), j, value, across)
        inside = clip(value, low, parameter(bins.ranges, np.int64(1), j, value, across))
        beyond = add_distance(beyond, inside, value)
        value = value if len(bins.clipped) == 1 else inside
    size = magnitude(value, bins.signed)
    if len(kind) == AFFINE:
        t = affine_position(bins, size, j, across)
        b, t = split(t, parameter(bins.numbers, LAST, j, x, across), bins.centred)
        u = as_floats(t, bins.edges)
    elif len(kind) == LOG2:
        size = clip_to_range(size, bins.numbers, LOW, j, across, bins.clipped)
        b, u = octave_bin(size, bins.shift, bins.start, bins.limit)
    else:
        cells = in_memory(cell_of(bins, size, j, across))
        b, u = passed_edges(bins, bins.record, bins.position, size, cells, np.int64(0), j, across)
        if len(bins.position) != NO_POSITION:  # values at the right end belong to the last bin
            b, u = cap_bin(b, parameter(bins.integers, TOP, j, x, across), u)
    piece = plus(parameter(bins.integers, FIRST_PIECE, j, x, across), b)
    piece = signed_piece(piece, value, bins.mirror, bins.signed, bins.zero_piece, bins.zero_at_zero)
    return piece, u, beyond


@njit(**INNER)
def affine_position(bins, size, j, across):
    """t = (x − origin)·factor within [low, high], in the precision of the origin."""
    origin = parameter(bins.numbers, ORIGIN, j, size, across)
    factor = parameter(bins.numbers, FACTOR, j, size, across)
    t = shift_and_scale(as_floats(size, bins.numbers), origin, factor)
    return clip_to_range(t, bins.numbers, LOW, j, across, bins.clipped)


# The search among edges (:mod:`.search`): a value's cell says how many edges lie before it, and a
# comparison or two say how many of the cell's own edges it passes.


@njit(**INNER)
def cell_of(bins, x, j, across):
    """Index of a value's cell: of its record, or, without records, of its count of edges."""
    x = clip_to_range(x, bins.numbers, LOW, j, across, bins.clipped)
    origin = parameter(bins.numbers, ORIGIN, j, x, across)
    t = shift_and_scale(x, origin, parameter(bins.numbers, FACTOR, j, x, across))
    if bins.shift == 0:  # uniform cells
        cell = split(t, parameter(bins.numbers, LAST, j, x, across), _NOT_CENTRED)[0]
    else:
        key = parameter(bins.integers, KEY, j, x, across)
        limit = parameter(bins.integers, LIMIT, j, x, across)
        cell = leading_bits(t, bins.shift, key, limit)
    cell = plus(cell, parameter(bins.integers, CELL, j, x, across))
    return cell if len(bins.record) == NO_RECORDS else times(cell, len(bins.record))


@njit(**INNER)
def passed_edges(bins, record, position, x, cells, at, j, across):
    """How many edges after e_0 a value passes, and its position after the last of them.

    For values at the right end or beyond it, the count is one more than the last bin. The cells
    (:func:`cell_of`) come from memory, ``cells[at:]``: loops that stored them some time ago read
    them without waiting for the store. `record` and `position` are those of the bins.
    """
    one, zero = np.int64(1), np.int64(0)
    x = clip_to_range(x, bins.numbers, LOW, j, across, bins.clipped)
    if len(record) == THRESHOLD_RECORD:  # look-ups: one record and one comparison
        threshold, bits = gather_blocks(bins.records, one, cells, at, record, x)
        count = where_at_least(x, threshold, plus(bits_of(bits), 1), bits_of(bits))
        return count, filled_like(x, bins.edges.dtype.type(0))
    if len(record) == EDGES_RECORD:
        # Positions: the same; the threshold is an end of the bins on both of its sides.
        before, threshold, bits, after = gather_blocks(bins.records, one, cells, at, record, x)
        count = where_at_least(x, threshold, plus(bits_of(bits), 1), bits_of(bits))
        if len(position) == FLOAT64_POSITION:
            return count, _position_after(bins, position, x, count, j, across)
        left = where_at_least(x, threshold, threshold, before)
        return count, position_between(x, left, where_at_least(x, threshold, after, threshold))
    # Cells with several edges: ``edges[edge + b]`` is the left end of bin b.
    edge = parameter(bins.integers, EDGE, j, x, across)
    count = gather_blocks(bins.before, one, cells, at, ONE, x)[0]
    # The most edges that share a cell, over a vector's features.
    last = j + lanes_of(x) - 1
    remaining = np.int64(max(bins.integers[CROWD, j], bins.integers[CROWD, last]))
    while remaining > 0:  # nearly always once
        step = (remaining + 1) >> 1
        candidate = in_memory(plus(plus(count, edge), step))
        edges = gather_blocks(bins.edges, one, candidate, zero, ONE, x)
        count = where_at_least(x, edges[0], plus(count, step), count)
        remaining -= step
    if len(position) != NO_POSITION:  # edges beyond the end are padding
        count = smaller(count, plus(parameter(bins.integers, TOP, j, x, across), 1))
    return count, _position_after(bins, position, x, count, j, across)


@njit(**INNER)
def _position_after(bins, position, x, count, j, across):
    """Position between the last of `count` edges and the next one; 0 for look-ups."""
    if len(position) == NO_POSITION:
        return filled_like(x, bins.edges.dtype.type(0))
    at = in_memory(plus(count, parameter(bins.integers, EDGE, j, x, across)))
    if len(position) == FLOAT64_POSITION:
        left, right = gather_blocks(bins.exact, np.int64(1), at, np.int64(0), TWO, x)
        return as_floats(position_between(as_floats(x, bins.exact), left, right), bins.edges)
    left, right = gather_blocks(bins.edges, np.int64(1), at, np.int64(0), TWO, x)
    return position_between(x, left, right)


class Stored(NamedTuple):
    """CSR rows."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class Locations(NamedTuple):
    """Where values fell: one thread's memory, a vector longer than the values that it holds."""

    piece: np.ndarray  # int32
    u: np.ndarray  # T
    lanes: tuple  # static: values that are located at a time


def locations_for(count: int, dtype: Any) -> Locations:
    """Memory for the locations of `count` values, with positions of `dtype`."""
    piece, u = (aligned(count + LANES, kind) for kind in (np.int32, dtype))
    return Locations(piece, u, static(width(u.itemsize)))


@njit(**INNER)
def locate_dense(bins, x, at, j, n, n_rows, locations, beyond):
    """Locate the values of n features from j on in n_rows consecutive rows, from x[at] on.

    In full vectors: the last one of a row overlaps the one before it, if there is one. Returns
    `beyond` plus how far values are outside of their ranges, if these are checked.
    """
    lanes = len(locations.lanes)
    final = n - lanes if n > lanes else 0
    for first in range(0, n * n_rows, n):
        for start in range(0, n, lanes):
            k = start if start < final else final
            x_k = load_some(x, at + first + k, n, locations.lanes)
            piece, u, beyond = find(bins, bins.kind, bins.checked, x_k, j + k, ACROSS, beyond)
            store(locations.piece, first + k, piece)
            store(locations.u, first + k, u)
    return beyond


def _locate_one_by_one(bins, x, at, j, n, n_rows, locations, beyond):
    """The same where nothing is compiled: there are no vectors."""
    for k in range(n * n_rows):
        x_k = item(x, at + k)
        found = find(bins, bins.kind, bins.checked, x_k, j + k % n, WITHIN, beyond)
        locations.piece[k], locations.u[k], beyond = found
    return beyond


locate_dense = _locate_one_by_one if interpreted() else locate_dense


@njit(**INNER)
def locate_stored(bins, stored, at, n, locations, beyond):
    """The same for n stored values of CSR rows, which have features of their own."""
    for k in range(n):
        j = np.int64(item(stored.indices, at + k))
        value = item(stored.data, at + k)
        piece, u, beyond = find(bins, bins.kind, bins.checked, value, j, WITHIN, beyond)
        locations.piece[k], locations.u[k] = piece, u
    return beyond


def stored_rows(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Stored:
    """CSR rows as the loops take them."""
    return Stored(*for_compiled_loops(data, indices, indptr))
