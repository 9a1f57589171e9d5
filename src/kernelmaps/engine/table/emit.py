"""φ of rows: the polynomials of every value's piece, written side by side.

A row takes two passes over some of its features at a time. The first locates the values
(:mod:`.locate`); it knows about bins and nothing else. The second evaluates polynomials there; it
knows about powers and columns and nothing else.

All columns of a value are computed and stored as full vectors, which are longer than a feature's
columns: the surplus zeros fall on columns that are written later. Only the end of the last row has
nothing after it: its columns go through a separate vector, from which they are copied.

Both passes are routines (:mod:`.entry`): the loop over dense rows is compiled once for all tables.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...compiling import njit
from ...static_int import ABSENT, StaticInt
from ..simd.polynomials import polynomial, vectors
from ..simd.vectors import clear, copy_numbers, item, prefetch, store, width
from .entry import INNER, bind, call, entry, routine
from .layout import Layout, layout_of
from .locate import Dense, Locations, Stored, locator, packed_bins
from .memory import LANES
from .packing import packed
from .stored import Table

PREFETCH = 1024  # numbers ahead of the one that is written
TILE = 512  # values that are located at a time: pieces and positions stay in the first-level cache


class EmitWorkspace(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    locations: Locations  # of a tile of values
    columns: np.ndarray  # T: those of one value


class DenseOutput(NamedTuple):
    """The result for dense rows, with the memory of one thread that writes it."""

    locations: Locations
    columns: np.ndarray
    out: np.ndarray  # T, flat


class ColumnPlaces(NamedTuple):
    """Where the columns of a value go: what the loop over dense rows reads of a table."""

    first: np.ndarray
    column: np.ndarray
    band: np.ndarray
    even: int


class Writer(NamedTuple):
    """A routine that writes columns, with its bound argument."""

    columns: ColumnPlaces
    routine: Any
    layout: Any


@dataclass(frozen=True, eq=False)
class Emitter:
    """A table as the loops take it."""

    layout: Layout
    packed_layout: Any  # without the bins
    packed_bins: Any
    locations: Any  # packed memory like a thread's: routines are compiled for its type

    @cached_property
    def writer(self) -> Any:
        """The packed routine that writes columns of dense rows."""
        layout, values = self.layout, self.layout.values
        output = output_to(layout, values.coef[:0])
        columns = ColumnPlaces(values.first, layout.column, layout.band, layout.even)
        return packed(Writer(columns, *bind(_write_values, (self.packed_layout,), (output,), 6)))

    def locator(self, rows: Dense | Stored) -> Any:
        """The packed routine that locates values of such rows."""
        return packed(locator(self.packed_bins, rows, self.locations))


@lru_cache(maxsize=64)
def emitter(table: Table) -> Emitter:
    """A table as the loops take it."""
    layout = layout_of(table)
    locations = packed(emit_workspace(layout).locations)
    without_bins = packed(layout._replace(bins=ABSENT))
    return Emitter(layout, without_bins, packed_bins(layout.bins), locations)


def emit_workspace(layout: Layout) -> EmitWorkspace:
    """Memory for one thread."""
    values = layout.values
    columns = np.zeros(values.chunk * values.parts, values.coef.dtype)
    # Many are made, few of them large: not aligned, which takes longer than it saves.
    piece, u = (np.zeros(TILE + LANES, kind) for kind in (np.int32, values.coef.dtype))
    return EmitWorkspace(Locations(piece, u, StaticInt(width(u.itemsize))), columns)


def output_to(layout: Layout, out: np.ndarray) -> DenseOutput:
    """Memory for one thread that writes dense rows to `out`."""
    return DenseOutput(*emit_workspace(layout), out)


@njit(**INNER)
def _write(values, piece, u, to, out):
    """The columns of one value from out[to] on."""
    for v in range(vectors(values)):
        store(out, to + v * values.chunk, polynomial(values, piece, u, v))


@routine()
def _write_values(layout, output, begin, end, n, top, a, last):
    """The columns of located values begin..end: k is of row top + k // n and feature a + k % n.

    Full vectors are written, from the first value on. If `last` is not zero, those of the value
    `begin` go to ``output.columns``.
    """
    values, locations, out, column = layout.values, output.locations, output.out, layout.column
    even, width = layout.even, column[column.size - 1]
    if last != 0:
        piece, u = np.int64(item(locations.piece, begin)), item(locations.u, begin)
        _write(values, piece, u, np.int64(0), output.columns)
    elif even > 0:
        # A separate loop without decisions takes three quarters of the time.
        at = top * width + column[a]
        for k in range(begin, end):
            prefetch(out, at + k * even + PREFETCH)
            piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
            _write(values, piece, u, at + k * even, out)
    else:
        for first in range(begin, end, n):
            at = (top + first // n) * width
            for k in range(first, first + n if first + n < end else end):
                piece = np.int64(item(locations.piece, k))
                to = at + column[a + k - first] + item(values.first, piece)
                _write(values, piece, item(locations.u, k), to, out)


@njit(**INNER)
def _column_of(columns, locations, k, n, top, a):
    """Index of the first column of a located value in the flat result."""
    piece, column = np.int64(item(locations.piece, k)), columns.column
    at = (top + k // n) * column[column.size - 1]
    return at + column[a + k % n] + item(columns.first, piece)


@entry()
def emit_dense(write, locate, output, begin, end):
    """φ of dense rows begin..end, one after the other.

    Short rows are located together, as many as a tile holds, and long ones in several tiles.
    """
    columns, locations, out, zero = write.columns, output.locations, output.out, np.int64(0)
    column = columns.column
    d, width = column.size - 1, column[column.size - 1]
    stop = end * width - output.columns.size
    together = TILE // d if d < TILE else 1
    for top in range(begin, end, together):
        rows = together if end - top > together else end - top
        if columns.even == 0:
            clear(out, top * width, rows * width)
        for a in range(0, d, TILE):
            n = TILE if d - a > TILE else d - a
            at = top * d + a
            call(locate.routine, locate.table, locate.rows, locations, at, a, n, rows)
            # Only the last values of the result must not write full vectors.
            safe = n * rows
            while safe > 0 and _column_of(columns, locations, safe - 1, n, top, a) > stop:
                safe -= 1
            call(write.routine, write.layout, output, zero, safe, n, top, a, zero)
            for k in range(safe, n * rows):
                call(write.routine, write.layout, output, k, k + 1, n, top, a, np.int64(1))
                to = _column_of(columns, locations, k, n, top, a)
                copy_numbers(output.columns, out, to, np.int64(item(columns.band, a + k % n)))


@entry()
def emit_stored(layout, locate, rows, work, begin, end, out):
    """φ of CSR rows begin..end, for maps with φ(0) = 0; ``out.indptr`` is given."""
    values = layout.values
    to, last = out.indptr[begin], rows.indptr[end]
    stop, locations = out.indptr[end] - work.columns.size, work.locations
    for a in range(rows.indptr[begin], last, TILE):
        n = TILE if last - a > TILE else last - a
        zero, one = np.int64(0), np.int64(1)
        call(locate.routine, locate.table, locate.rows, locations, a, zero, n, one)
        for k in range(n):
            piece, j = np.int64(item(locations.piece, k)), np.int64(item(rows.indices, a + k))
            count = np.int64(item(layout.band, j))
            if to <= stop:
                _write(values, piece, item(locations.u, k), to, out.data)
            else:
                _write(values, piece, item(locations.u, k), zero, work.columns)
                copy_numbers(work.columns, out.data, to, count)
            first = item(layout.column, j) + item(values.first, piece)
            for c in range(count):
                out.indices[to + c] = first + c
            to += count
