"""φ of rows: the polynomials of every value's piece, written side by side.

A row takes two passes over some of its features at a time. The first locates the values
(:mod:`.locate`); it knows about bins and nothing else. The second evaluates polynomials there; it
knows about powers and columns and nothing else.

All columns of a value are computed and stored as full vectors, which are longer than a feature's
columns: the surplus zeros fall on columns that are written later. Only the end of the last row has
nothing after it: its columns go through a scratch vector, from which they are copied.
"""

from typing import NamedTuple

import numpy as np

from ..._util.compiling import INNER, loop, njit
from ..simd import clear, copy_numbers, item, polynomial, prefetch, store
from .layout import Layout
from .locate import Locations, locate_dense, locate_stored, locations_for

PREFETCH = 1024  # numbers ahead of the one that is written
TILE = 512  # values that are located at a time: pieces and positions stay in the first-level cache


class TransformWorkspace(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    locations: Locations  # of a tile of values
    scratch: np.ndarray  # T: columns of one value


def transform_workspace(table: Layout) -> TransformWorkspace:
    """Memory for one thread."""
    scratch = np.zeros(table.values.n_columns, table.values.coef.dtype)
    return TransformWorkspace(locations_for(TILE), scratch)


@njit(**INNER)
def _write(values, piece, u, position, out):
    """Write the columns of one value from out[to] on, by Horner's rule."""
    for v in range(len(values.parts)):
        store(out, position + v * len(values.chunk), polynomial(values, piece, u, v))


@njit(**INNER)
def _place_of(table, locations, k, n_features, first_row, first_feature):
    """Index in the flat result of the first column of the located value k.

    It is of row first_row + k // n_features and feature first_feature + k % n_features.
    """
    piece, column = np.int64(item(locations.piece, k)), table.column
    row_start = (first_row + k // n_features) * column[column.size - 1]
    start = row_start + column[first_feature + k % n_features]
    return start + item(table.values.first_column, piece)


@loop(_nrt=False)
def transform_dense(table, x, work, begin, end, out):
    """φ of dense rows begin..end, one after the other; `x` and `out` are flat.

    Short rows are located together, as many as a tile holds, and long ones in several tiles.
    """
    values, locations, column, zero = table.values, work.locations, table.column, np.int64(0)
    d, row_width, uniform_width = column.size - 1, column[column.size - 1], table.uniform_width
    stop = end * row_width - work.scratch.size
    together = TILE // d if d < TILE else 1
    for row in range(begin, end, together):
        n_rows = together if end - row > together else end - row
        if uniform_width == 0:
            clear(out, row * row_width, n_rows * row_width)
        for j in range(0, d, TILE):
            n = TILE if d - j > TILE else d - j
            locate_dense(table.bins, x, row * d + j, j, n, n_rows, locations)
            # Only the last values of the result must not write full vectors.
            safe = n * n_rows
            while safe > 0 and _place_of(table, locations, safe - 1, n, row, j) > stop:
                safe -= 1
            if uniform_width > 0:
                # A separate loop without decisions takes three quarters of the time.
                row_start = row * row_width + column[j]
                for k in range(safe):
                    prefetch(out, row_start + k * uniform_width + PREFETCH)
                    piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
                    _write(values, piece, u, row_start + k * uniform_width, out)
            else:
                for start in range(0, safe, n):
                    row_start = (row + start // n) * row_width
                    for k in range(start, start + n if start + n < safe else safe):
                        piece = np.int64(item(locations.piece, k))
                        position = row_start + column[j + k - start]
                        position += item(values.first_column, piece)
                        _write(values, piece, item(locations.u, k), position, out)
            for k in range(safe, n * n_rows):
                piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
                _write(values, piece, u, zero, work.scratch)
                position = _place_of(table, locations, k, n, row, j)
                copy_numbers(work.scratch, out, position, np.int64(item(table.n_stored, j + k % n)))


@loop(_nrt=False)
def transform_stored(table, rows, work, begin, end, out):
    """φ of CSR rows begin..end, for maps with φ(0) = 0; ``out.indptr`` is given."""
    values, zero = table.values, np.int64(0)
    position, last = out.indptr[begin], rows.indptr[end]
    stop, locations = out.indptr[end] - work.scratch.size, work.locations
    for a in range(rows.indptr[begin], last, TILE):
        n = TILE if last - a > TILE else last - a
        locate_stored(table.bins, rows, a, n, locations)
        for k in range(n):
            piece, j = np.int64(item(locations.piece, k)), np.int64(item(rows.indices, a + k))
            count = np.int64(item(table.n_stored, j))
            if position <= stop:
                _write(values, piece, item(locations.u, k), position, out.data)
            else:
                _write(values, piece, item(locations.u, k), zero, work.scratch)
                copy_numbers(work.scratch, out.data, position, count)
            column = item(table.column, j) + item(values.first_column, piece)
            for c in range(count):
                out.indices[position + c] = column + c
            position += count
