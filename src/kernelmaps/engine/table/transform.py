"""φ of rows: the polynomials of every value's piece, written side by side.

A row takes two passes over some of its features at a time. The first locates the values
(:mod:`.locate`); it knows about bins and nothing else. The second evaluates polynomials there; it
knows about powers and columns and nothing else.

All columns of a value are computed and stored as full vectors, which are longer than a feature's
columns: the surplus zeros fall on columns that are written later. Only the end of the last row has
nothing after it: its columns go through a scratch vector, from which they are copied.

Both passes are routines (:mod:`.entry`): the loop over dense rows is compiled once for all tables.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..._util.compiling import njit
from ..._util.static_int import ABSENT, StaticInt
from ..._util.threads import cached_property
from ..simd.polynomials import polynomial, vectors
from ..simd.vectors import clear, copy_numbers, item, prefetch, store, width
from .entry import INNER, BoundRoutine, bind, call, entry, routine
from .layout import Layout, layout_of
from .locate import Dense, Locations, Stored, locator, packed_bins
from .memory import LANES
from .packing import packed
from .stored import Table

PREFETCH = 1024  # numbers ahead of the one that is written
TILE = 512  # values that are located at a time: pieces and positions stay in the first-level cache


class TransformWorkspace(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    locations: Locations  # of a tile of values
    scratch: np.ndarray  # T: columns of one value


class DenseOutput(NamedTuple):
    """The result for dense rows, with the memory of one thread that writes it."""

    locations: Locations
    scratch: np.ndarray
    out: np.ndarray  # T, flat


class ColumnPlaces(NamedTuple):
    """Where the columns of a value go: what the loop over dense rows reads of a table."""

    first: np.ndarray
    column: np.ndarray
    band: np.ndarray
    uniform_width: int


@dataclass(frozen=True, eq=False)
class TransformPlan:
    """A table as the loops below take it."""

    layout: Layout
    packed_layout: Any  # without the bins
    packed_bins: Any
    locations: Any  # packed memory like a thread's: routines are compiled for its type

    @cached_property
    def columns(self) -> Any:
        """The packed places of columns, for dense rows."""
        layout = self.layout
        places = layout.values.first, layout.column, layout.band, layout.uniform_width
        return packed(ColumnPlaces(*places))

    @cached_property
    def write(self) -> Any:
        """The packed routine that writes columns of dense rows."""
        output = self.output_to(self.layout.values.coef[:0])
        return packed(BoundRoutine(*bind(_write_values, (self.packed_layout,), (output,), 6)))

    def locate(self, rows: Dense | Stored) -> Any:
        """The packed routine that locates values of such rows."""
        return packed(locator(self.packed_bins, rows, self.locations))

    def workspace(self) -> TransformWorkspace:
        """Memory for one thread."""
        return _workspace(self.layout)

    def output_to(self, out: np.ndarray) -> DenseOutput:
        """Memory for one thread that writes dense rows to `out`, which is flat."""
        return DenseOutput(*self.workspace(), out)


@lru_cache(maxsize=64)
def transform_plan(table: Table) -> TransformPlan:
    """A table as the loops below take it."""
    layout = layout_of(table)
    locations = packed(_workspace(layout).locations)
    without_bins = packed(layout._replace(bins=ABSENT))
    return TransformPlan(layout, without_bins, packed_bins(layout.bins), locations)


def _workspace(layout: Layout) -> TransformWorkspace:
    values = layout.values
    scratch = np.zeros(values.chunk * values.parts, values.coef.dtype)
    # Many are made, few of them large: not aligned, which takes longer than it saves.
    piece, u = (np.zeros(TILE + LANES, kind) for kind in (np.int32, values.coef.dtype))
    return TransformWorkspace(Locations(piece, u, StaticInt(width(u.itemsize))), scratch)


@njit(**INNER)
def _write(values, piece, u, to, out):
    """Write the columns of one value from out[to] on, by Horner's rule."""
    for v in range(vectors(values)):
        store(out, to + v * values.chunk, polynomial(values, piece, u, v))


@routine()
def _write_values(layout, output, begin, end, n_features, first_row, first_feature, to_scratch):
    """Write the columns of the located values begin..end.

    Value k is of row first_row + k // n_features and feature first_feature + k % n_features. Full
    vectors are written, from the first value on: to the result, or, of the value `begin` alone, to
    ``output.scratch`` if `to_scratch` is not zero.
    """
    values, locations, out, column = layout.values, output.locations, output.out, layout.column
    uniform_width, row_width = layout.uniform_width, column[column.size - 1]
    if to_scratch != 0:
        piece, u = np.int64(item(locations.piece, begin)), item(locations.u, begin)
        _write(values, piece, u, np.int64(0), output.scratch)
    elif uniform_width > 0:
        # A separate loop without decisions takes three quarters of the time.
        at = first_row * row_width + column[first_feature]
        for k in range(begin, end):
            prefetch(out, at + k * uniform_width + PREFETCH)
            piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
            _write(values, piece, u, at + k * uniform_width, out)
    else:
        for first in range(begin, end, n_features):
            at = (first_row + first // n_features) * row_width
            for k in range(first, first + n_features if first + n_features < end else end):
                piece = np.int64(item(locations.piece, k))
                to = at + column[first_feature + k - first] + item(values.first, piece)
                _write(values, piece, item(locations.u, k), to, out)


@njit(**INNER)
def _place_of(columns, locations, k, n_features, first_row, first_feature):
    """Index in the flat result of the first column of the located value k."""
    piece, column = np.int64(item(locations.piece, k)), columns.column
    at = (first_row + k // n_features) * column[column.size - 1]
    return at + column[first_feature + k % n_features] + item(columns.first, piece)


@entry()
def transform_dense(columns, write, locate, output, begin, end):
    """φ of dense rows begin..end, one after the other.

    Short rows are located together, as many as a tile holds, and long ones in several tiles.
    """
    locations, out, column, zero = output.locations, output.out, columns.column, np.int64(0)
    d, row_width = column.size - 1, column[column.size - 1]
    stop = end * row_width - output.scratch.size
    together = TILE // d if d < TILE else 1
    for row in range(begin, end, together):
        n_rows = together if end - row > together else end - row
        if columns.uniform_width == 0:
            clear(out, row * row_width, n_rows * row_width)
        for j in range(0, d, TILE):
            n = TILE if d - j > TILE else d - j
            call(locate, locations, row * d + j, j, n, n_rows)
            # Only the last values of the result must not write full vectors.
            safe = n * n_rows
            while safe > 0 and _place_of(columns, locations, safe - 1, n, row, j) > stop:
                safe -= 1
            call(write, output, zero, safe, n, row, j, zero)
            for k in range(safe, n * n_rows):
                call(write, output, k, k + 1, n, row, j, np.int64(1))
                to = _place_of(columns, locations, k, n, row, j)
                copy_numbers(output.scratch, out, to, np.int64(item(columns.band, j + k % n)))


@entry()
def transform_stored(layout, locate, rows, work, begin, end, out):
    """φ of CSR rows begin..end, for maps with φ(0) = 0; ``out.indptr`` is given."""
    values = layout.values
    to, last = out.indptr[begin], rows.indptr[end]
    stop, locations = out.indptr[end] - work.scratch.size, work.locations
    for a in range(rows.indptr[begin], last, TILE):
        n = TILE if last - a > TILE else last - a
        zero, one = np.int64(0), np.int64(1)
        call(locate, locations, a, zero, n, one)
        for k in range(n):
            piece, j = np.int64(item(locations.piece, k)), np.int64(item(rows.indices, a + k))
            count = np.int64(item(layout.band, j))
            if to <= stop:
                _write(values, piece, item(locations.u, k), to, out.data)
            else:
                _write(values, piece, item(locations.u, k), zero, work.scratch)
                copy_numbers(work.scratch, out.data, to, count)
            first = item(layout.column, j) + item(values.first, piece)
            for c in range(count):
                out.indices[to + c] = first + c
            to += count
