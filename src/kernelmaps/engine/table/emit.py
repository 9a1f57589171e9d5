"""φ of rows: the polynomials of every value's row, written side by side.

A row takes two passes over some of its features at a time. The first finds rows and positions
(:mod:`.locate`); it knows about bins and nothing else. The second evaluates polynomials there; it
knows about powers and columns and nothing else.

All columns of a value are computed and stored as whole vectors, which are longer than a feature's
columns: the zeros too many fall on columns that are written later. Only the last row of a part has
nothing after it, and goes through a vector of its own at its end.

Both passes are routines (:mod:`.entry`): the loop over dense rows is compiled once for all tables.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...compiling import njit
from ..simd.polynomials import polynomial, vectors
from ..simd.vectors import clear, copy_numbers, item, prefetch, store, width
from .entry import INNER, bound, by_address, call, entry, routine
from .layout import Layout, layout_of
from .locate import Dense, Found, Stored, finder, unwatched
from .memory import LANES
from .stored import Table

AHEAD = 1024  # numbers from what is written to the line that is asked for
TILE = 512  # values that are located at a time: rows and positions stay in the nearest cache


class Room(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    found: Found  # of a tile of values
    columns: np.ndarray  # T: those of one value


class Target(NamedTuple):
    """Where the columns of dense rows go, and from where: memory of one thread, and the result."""

    found: Found
    columns: np.ndarray
    out: np.ndarray  # T, flat


class Columns(NamedTuple):
    """Where columns lie: what the loop over dense rows reads of a table."""

    first: np.ndarray
    column: np.ndarray
    band: np.ndarray
    even: int


class Writer(NamedTuple):
    """A routine that writes columns, and what it alone knows."""

    columns: Columns
    routine: Any
    layout: Any


@dataclass(frozen=True, eq=False)
class Emitter:
    """A table as the loops take it."""

    layout: Layout
    handed: Any  # all but the bins
    bins: Any  # handed, too
    found: Any  # memory such as a thread's, for what depends on its type

    @cached_property
    def writer(self) -> Any:
        """What writes columns of dense rows."""
        layout, values = self.layout, self.layout.values
        target = target_for(layout, values.coef[:0])
        columns = Columns(values.first, layout.column, layout.band, layout.even)
        return by_address(Writer(columns, *bound(_write_values, (self.handed,), (target,), 6)))

    def finder(self, rows: Dense | Stored) -> Any:
        """What locates values of such rows."""
        return by_address(finder(self.bins, rows, self.found))


@lru_cache(maxsize=64)
def emitter(table: Table) -> Emitter:
    """A table as the loops take it."""
    layout = layout_of(table)
    found = by_address(room_for(layout).found)
    return Emitter(layout, by_address(layout._replace(bins=())), unwatched(layout.bins), found)


def room_for(layout: Layout) -> Room:
    """Room for one thread."""
    values = layout.values
    columns = np.zeros(len(values.chunk) * values.parts, values.coef.dtype)
    # Many are made, of which few are large: not aligned, which takes longer than what it saves.
    row, u = (np.zeros(TILE + LANES, kind) for kind in (np.int32, values.coef.dtype))
    return Room(Found(row, u, (0,) * width(u.itemsize)), columns)


def target_for(layout: Layout, out: np.ndarray) -> Target:
    """Room for one thread that writes dense rows to `out`."""
    return Target(*room_for(layout), out)


@njit(**INNER)
def _write(values, row, u, to, out):
    """The columns of one value from out[to] on."""
    for part in range(vectors(values)):
        store(out, to + part * len(values.chunk), polynomial(values, row, u, part))


@routine()
def _write_values(layout, target, begin, end, n, top, a, last):
    """The columns of located values begin..end: k is of row top + k // n and feature a + k % n.

    Whole vectors are written, from the first value on. If `last` is not zero, those of the value
    `begin` go to ``target.columns``.
    """
    values, found, out, column = layout.values, target.found, target.out, layout.column
    even, width = layout.even, column[column.size - 1]
    if last != 0:
        row, u = np.int64(item(found.row, begin)), item(found.u, begin)
        _write(values, row, u, np.int64(0), target.columns)
    elif even > 0:
        # A loop of their own, which decides nothing, saves a quarter of the time.
        at = top * width + column[a]
        for k in range(begin, end):
            prefetch(out, at + k * even + AHEAD)
            _write(values, np.int64(item(found.row, k)), item(found.u, k), at + k * even, out)
    else:
        for first in range(begin, end, n):
            at = (top + first // n) * width
            for k in range(first, first + n if first + n < end else end):
                row = np.int64(item(found.row, k))
                to = at + column[a + k - first] + item(values.first, row)
                _write(values, row, item(found.u, k), to, out)


@njit(**INNER)
def _place(columns, found, k, n, top, a):
    """Where the columns of a located value begin."""
    row, column = np.int64(item(found.row, k)), columns.column
    at = (top + k // n) * column[column.size - 1]
    return at + column[a + k % n] + item(columns.first, row)


@entry()
def emit_dense(write, find, target, begin, end):
    """φ of dense rows begin..end, one after the other.

    Short rows are located together, as many as a tile holds, and long ones in several tiles.
    """
    columns, found, out, none = write.columns, target.found, target.out, np.int64(0)
    column = columns.column
    d, width = column.size - 1, column[column.size - 1]
    stop = end * width - target.columns.size
    together = TILE // d if d < TILE else 1
    for top in range(begin, end, together):
        rows = together if end - top > together else end - top
        if columns.even == 0:
            clear(out, top * width, rows * width)
        for a in range(0, d, TILE):
            n = TILE if d - a > TILE else d - a
            call(find.routine, find.table, find.rows, found, top * d + a, a, n, rows)
            # All but the last values may write whole vectors.
            whole = n * rows
            while whole > 0 and _place(columns, found, whole - 1, n, top, a) > stop:
                whole -= 1
            call(write.routine, write.layout, target, none, whole, n, top, a, none)
            for k in range(whole, n * rows):
                call(write.routine, write.layout, target, k, k + 1, n, top, a, np.int64(1))
                to, count = _place(columns, found, k, n, top, a), item(columns.band, a + k % n)
                copy_numbers(target.columns, out, to, np.int64(count))


@entry()
def emit_stored(layout, find, rows, room, begin, end, out):
    """φ of CSR rows begin..end, for maps with φ(0) = 0; ``out.indptr`` is given."""
    values = layout.values
    to, last = out.indptr[begin], rows.indptr[end]
    stop, found = out.indptr[end] - room.columns.size, room.found
    for a in range(rows.indptr[begin], last, TILE):
        n = TILE if last - a > TILE else last - a
        call(find.routine, find.table, find.rows, found, a, np.int64(0), n, np.int64(1))
        for k in range(n):
            row, j = np.int64(item(found.row, k)), np.int64(item(rows.indices, a + k))
            count = np.int64(item(layout.band, j))
            if to <= stop:
                _write(values, row, item(found.u, k), to, out.data)
            else:
                _write(values, row, item(found.u, k), np.int64(0), room.columns)
                copy_numbers(room.columns, out.data, to, count)
            first = item(layout.column, j) + item(values.first, row)
            for c in range(count):
                out.indices[to + c] = first + c
            to += count
