"""Where a value falls: its row of the table and its position in the bin, for all kinds of bins.

The one finder of the library. It is written once for a number and for a vector of them
(:mod:`..simd.arithmetic`), and compiled for the kind of bins at hand. The bin of a value depends on
the number, not on the type that holds it: even bins are found in float64, uneven ones by
comparisons that are exact in the rows' precision, octaves by the bits.

Rests on the relations that :mod:`.layout` names. A NaN falls into some bin, never out of bounds;
whoever has to notice it compares (:func:`..simd.arithmetic.still_inside`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from ...compiling import interpreted, njit
from ...sparse_rows import for_compiled_loops
from ..simd.arithmetic import (
    as_floats,
    bits_of,
    capped,
    code_of,
    filled_like,
    from_origin,
    in_range,
    lanes_of,
    magnitude,
    no_more,
    octave,
    octave_and_rest,
    parameter,
    plus,
    settled,
    share,
    split,
    times,
    where_passed,
)
from ..simd.vectors import gather_blocks, in_memory, item, load_some, store
from .entry import INNER, bound, routine
from .stored import AFFINE, CODE, EDGES, LOG2


def find(bins, x, j, across):
    """Row of the table and position in the bin.

    Parameters
    ----------
    bins : Bins
    x : number or Vector
        Of the precision of the rows, or unsigned integers where they are codes.
    j : int
        Feature.
    across : tuple
        Of length 1: a vector's values belong to the features j, j + 1, …; of length 0: all to j.

    Returns
    -------
    row, u : int32 and floats, one for each value
    """
    return _finder(len(bins.kind))(bins, x, j, across)


@overload(find, jit_options=INNER)
def _find(bins, x, j, across):
    return _finder(len(bins.types[bins.fields.index("kind")]))


def _finder(kind):
    return {AFFINE: _affine, LOG2: _octaves, EDGES: _uneven, CODE: _codes}[kind]


def _codes(bins, x, j, across):
    """The value is the bin."""
    b = code_of(x, parameter(bins.top, j, x, across))
    zero = bins.number.dtype.type(0)
    return plus(parameter(bins.row, j, x, across), b), filled_like(x, zero)


def _affine(bins, x, j, across):
    """Even bins: b = ⌊t⌋ and u = t − b."""
    value = as_floats(x, bins.number)
    t = even_position(bins, magnitude(value, bins.signed), j, across)
    b, u = split(t, parameter(bins.last, j, x, across), bins.clipped)
    row = plus(parameter(bins.row, j, x, across), b)
    row = settled(row, value, bins.mirror, bins.signed, bins.nothing, bins.vanishes)
    return row, as_floats(u, bins.number)


@njit(**INNER)
def even_position(bins, size, j, across):
    """t = (x − origin)·factor within [low, high], in the precision of the origin."""
    origin = parameter(bins.origin, j, size, across)
    t = from_origin(as_floats(size, bins.origin), origin, parameter(bins.factor, j, size, across))
    return in_range(t, bins.low, bins.high, j, across, bins.clipped)


def _octaves(bins, x, j, across):
    """Octaves by the bits of positive floats, each divided evenly."""
    value = as_floats(x, bins.number)
    size = magnitude(value, bins.signed)
    size = in_range(size, bins.low, bins.high, j, across, bins.clipped)
    b, u = octave_and_rest(size, bins.shift, bins.start, bins.limit)
    row = plus(parameter(bins.row, j, x, across), b)
    return settled(row, value, bins.mirror, bins.signed, bins.nothing, bins.vanishes), u


def _uneven(bins, x, j, across):
    """Bins between edges."""
    value = as_floats(x, bins.number)
    size = magnitude(value, bins.signed)
    cells = in_memory(cell_of(bins, size, j, across))
    b, u = passed_edges(bins, size, cells, np.int64(0), j, across)
    if len(bins.placed):
        b, u = capped(b, parameter(bins.top, j, x, across), u)
    row = plus(parameter(bins.row, j, x, across), b)
    return settled(row, value, bins.mirror, bins.signed, bins.nothing, bins.vanishes), u


@njit(**INNER)
def cell_of(bins, x, j, across):
    """Where the search for a value begins: the place of its cell among the records, or counts."""
    x, search = in_range(x, bins.low, bins.high, j, across, bins.clipped), bins.search
    cell = plus(_cell(bins, x, j, across), parameter(search.cell, j, x, across))
    return times(cell, max(1, len(search.record)))


def passed_edges(bins, x, cells, at, j, across):
    """Edges passed, and position after the last: from the value's cell, comparing what is left.

    One more than bins for values at the right end, or beyond it (see :mod:`.search`). The cells
    come from memory (`cells`, from `at` on): loops that wrote them some time ago read them without
    waiting for what was just written.
    """
    return _SEARCHES[len(bins.search.record)](bins, x, cells, at, j, across)


@overload(passed_edges, jit_options=INNER)
def _search(bins, x, cells, at, j, across):
    search = bins.types[bins.fields.index("search")]
    return _SEARCHES[len(search.types[search.fields.index("record")])]


@njit(**INNER)
def _cell(bins, x, j, across):
    search = bins.search
    origin, factor = parameter(bins.origin, j, x, across), parameter(bins.factor, j, x, across)
    t = from_origin(x, origin, factor)
    if search.shift == 0:
        return split(t, parameter(bins.last, j, x, across), ())[0]
    key, limit = parameter(search.key, j, x, across), parameter(search.limit, j, x, across)
    return octave(t, search.shift, key, limit)


@njit(**INNER)
def _crowd(bins, j, x):
    """Thresholds that may share a cell: the most of a vector's features."""
    return max(bins.search.crowd[j], bins.search.crowd[j + lanes_of(x) - 1])


def _by_threshold(bins, x, cells, at, j, across):
    """One look-up and one comparison."""
    search, one = bins.search, np.int64(1)
    threshold, bits = gather_blocks(search.records, one, cells, at, search.record, x)
    x = in_range(x, bins.low, bins.high, j, across, bins.clipped)
    count = where_passed(x, threshold, plus(bits_of(bits), 1), bits_of(bits))
    return count, filled_like(x, search.edges.dtype.type(0))


def _by_edges(bins, x, cells, at, j, across):
    """The same; the threshold is an end of the bins on both sides."""
    search, one = bins.search, np.int64(1)
    found = gather_blocks(search.records, one, cells, at, search.record, x)
    before, threshold, bits, after = found
    x = in_range(x, bins.low, bins.high, j, across, bins.clipped)
    count = where_passed(x, threshold, plus(bits_of(bits), 1), bits_of(bits))
    if len(bins.placed) != 1:
        return count, _between_edges(bins, x, count, j, across)
    left = where_passed(x, threshold, threshold, before)
    return count, share(x, left, where_passed(x, threshold, after, threshold))


def _bisected(bins, x, cells, at, j, across):
    """Some comparisons; edges[edge + b] is the left end of bin b."""
    search, one, edge = bins.search, (0,), parameter(bins.search.edge, j, x, across)
    x = in_range(x, bins.low, bins.high, j, across, bins.clipped)
    count = gather_blocks(search.before, np.int64(1), cells, at, one, x)[0]
    left = _crowd(bins, j, x)
    while left > 0:  # nearly always once
        step = (left + 1) >> 1
        farther = in_memory(plus(plus(count, edge), step))
        edges = gather_blocks(search.edges, np.int64(1), farther, np.int64(0), one, x)
        count = where_passed(x, edges[0], plus(count, step), count)
        left -= step
    if len(bins.placed):  # padding is beyond the end
        count = no_more(count, plus(parameter(bins.top, j, x, across), 1))
    return count, _between_edges(bins, x, count, j, across)


_SEARCHES = {0: _bisected, 2: _by_threshold, 4: _by_edges}  # by the length of a record


@njit(**INNER)
def _between_edges(bins, x, count, j, across):
    """Position after so many edges, before the next one; 0 for look-ups."""
    search = bins.search
    if len(bins.placed) == 0:
        return filled_like(x, search.edges.dtype.type(0))
    at, one = in_memory(plus(count, parameter(search.edge, j, x, across))), np.int64(1)
    if len(bins.placed) == 1:
        left, right = gather_blocks(search.edges, one, at, np.int64(0), (0, 0), x)
        return share(x, left, right)
    left, right = gather_blocks(search.exact, one, at, np.int64(0), (0, 0), x)
    return as_floats(share(as_floats(x, search.exact), left, right), search.edges)


class Dense(NamedTuple):
    """Rows in C order."""

    values: np.ndarray  # flat
    lanes: tuple  # length: values that are located at a time


class Stored(NamedTuple):
    """CSR rows."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class Found(NamedTuple):
    """Where values fell: memory of one thread, with room for a vector more than values."""

    row: np.ndarray  # int32
    u: np.ndarray  # T


class Finder(NamedTuple):
    """A routine that locates values, and what it alone knows."""

    routine: Any
    bins: Any
    rows: Any


def for_loops(bins: Any) -> Any:
    """Bins as the loops take them: positions are a variant of the search among edges alone."""
    return bins if len(bins.kind) == EDGES else bins._replace(placed=())


def finder(bins: Any, rows: Dense | Stored, found: Any) -> Finder:
    """What locates values of such rows; bins and memory may have been handed over before.

    Its routine takes them and ``(found, at, j, n, rows)``: ``found.row[k]`` and ``found.u[k]``
    become those of the n values from `at` on, of the features j + k, in as many rows that follow
    one another. Stored values are of their own features.
    """
    dense = _one_by_one if interpreted() else _locate_dense
    found_by = _locate_stored if isinstance(rows, Stored) else dense
    bins = for_loops(bins) if hasattr(bins, "kind") else bins
    return Finder(*bound(found_by, (bins, rows), (found,), 4))


@routine()
def _locate_dense(bins, dense, found, at, j, n, rows):
    """In whole vectors: the last one of a row overlaps the one before it, if there is one."""
    x, lanes = dense.values, dense.lanes
    for first in range(0, n * rows, n):
        for start in range(0, n, len(lanes)):
            k = start if start <= n - len(lanes) else max(n - len(lanes), 0)
            values = load_some(x, at + first + k, n, lanes)
            row, u = find(bins, values, j + k, (0,))
            store(found.row, first + k, row)
            store(found.u, first + k, u)


def _one_by_one(bins, dense, found, at, j, n, rows):
    """The same where nothing is compiled: there are no vectors."""
    for k in range(n * rows):
        found.row[k], found.u[k] = find(bins, item(dense.values, at + k), j + k % n, ())


@routine()
def _locate_stored(bins, stored, found, at, j, n, rows):
    for k in range(n * rows):
        feature = np.int64(item(stored.indices, at + k))
        found.row[k], found.u[k] = find(bins, item(stored.data, at + k), feature, ())


def stored_rows(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Stored:
    """CSR rows as the loops take them."""
    return Stored(*for_compiled_loops(data, indices, indptr))
