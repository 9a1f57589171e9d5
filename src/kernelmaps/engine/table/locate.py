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
    between,
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
    plus_distance,
    settled,
    share,
    split,
    times,
    where_passed,
)
from ..simd.vectors import gather_blocks, in_memory, item, load_some, store, width
from .entry import INNER, bound, by_address, routine
from .layout import Bins
from .memory import LANES, aligned
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


class Stored(NamedTuple):
    """CSR rows."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class Found(NamedTuple):
    """Where values fell: memory of one thread, with room for a vector more than values."""

    row: np.ndarray  # int32
    u: np.ndarray  # T
    lanes: tuple  # length: values that are located at a time


class Unwatched(NamedTuple):
    """A table of which nothing is asked but where values fall."""

    bins: Any


class Finder(NamedTuple):
    """A routine that locates values, and what it alone knows."""

    routine: Any
    table: Any
    rows: Any


def for_loops(bins: Bins) -> Bins:
    """Bins as the loops take them: positions are a variant of the search among edges alone."""
    return bins if len(bins.kind) == EDGES else bins._replace(placed=())


def unwatched(bins: Bins) -> Any:
    """The same as a finder takes it, by address."""
    return by_address(Unwatched(for_loops(bins)))


def found_for(count: int, dtype: Any) -> Found:
    """Memory for where so many values fall, whose positions are of `dtype`."""
    row, u = (aligned(count + LANES, kind) for kind in (np.int32, dtype))
    return Found(row, u, (0,) * width(u.itemsize))


def finder(table: Any, rows: Dense | Stored, found: Any) -> Finder:
    """What locates values of such rows; table and memory may have been handed over before.

    Its routine takes them and ``(found, at, j, n, rows)``: ``found.row[k]`` and ``found.u[k]``
    become those of the n values from `at` on, of the features j + k, in as many rows that follow
    one another. Stored values are of their own features.
    """
    dense = _one_by_one if interpreted() else _find_dense
    found_by = _find_stored if isinstance(rows, Stored) else dense
    return Finder(*bound(found_by, (table, rows), (found,), 4))


@njit(**INNER)
def locate_dense(table, x, at, j, n, rows, found, beyond):
    """Where n values from x[at] on fall, of the features j + k, in as many rows as follow.

    In whole vectors: the last one of a row overlaps the one before it, if there is one. For tables
    that know their ranges, returns `beyond` plus how far values are outside (see :func:`_within`).
    """
    lanes = found.lanes
    final = n - len(lanes) if n > len(lanes) else 0
    for first in range(0, n * rows, n):
        for start in range(0, n, len(lanes)):
            k = start if start < final else final
            here = load_some(x, at + first + k, n, lanes)
            value, beyond = _within(table, here, j + k, (0,), beyond)
            row, u = find(table.bins, value, j + k, (0,))
            store(found.row, first + k, row)
            store(found.u, first + k, u)
    return beyond


@njit(**INNER)
def locate_stored(table, stored, at, n, found, beyond):
    """The same of n stored values of CSR rows, which are of their own features."""
    for k in range(n):
        j = np.int64(item(stored.indices, at + k))
        value, beyond = _within(table, item(stored.data, at + k), j, (), beyond)
        found.row[k], found.u[k] = find(table.bins, value, j, ())
    return beyond


def _within(table, x, j, across, beyond):
    """Values for the finder, and `beyond` plus their distance from the range (NaN for NaN).

    Arguments as those of :func:`find`. Tables without ranges, and codes, have them as they are.
    """
    return x, beyond


@overload(_within, jit_options=INNER)
def _within_of(table, x, j, across, beyond):
    bins = table.types[table.fields.index("bins")]
    coded = len(bins.types[bins.fields.index("kind")]) == CODE
    return _within if coded or "low" not in table.fields else _in_range


def _in_range(table, x, j, across, beyond):
    value = as_floats(x, table.bins.number)
    low, high = parameter(table.low, j, value, across), parameter(table.high, j, value, across)
    inside = between(value, low, high)
    beyond = plus_distance(beyond, inside, value)
    return (value if len(table.bins.clipped) == 1 else inside), beyond


@routine()
def _find_dense(unwatched, dense, found, at, j, n, rows):
    locate_dense(unwatched, dense.values, at, j, n, rows, found, np.int64(0))


@routine()
def _find_stored(unwatched, stored, found, at, j, n, rows):
    locate_stored(unwatched, stored, at, n * rows, found, np.int64(0))


def _one_by_one(unwatched, dense, found, at, j, n, rows):
    """The first of them where nothing is compiled: there are no vectors."""
    for k in range(n * rows):
        value = item(dense.values, at + k)
        found.row[k], found.u[k] = find(unwatched.bins, value, j + k % n, ())


def stored_rows(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Stored:
    """CSR rows as the loops take them."""
    return Stored(*for_compiled_loops(data, indices, indptr))
