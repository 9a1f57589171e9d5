"""φ of rows: the polynomials of every value's row, written side by side.

A row takes two passes over some of its features at a time. The first finds rows and positions
(:mod:`.locate`); it knows about bins and nothing else. The second evaluates polynomials there; it
knows about powers and columns and nothing else.

All columns of a value are computed and stored as whole vectors, which are longer than a feature's
columns: the zeros too many fall on columns that are written later. Only the last row of a part has
nothing after it, and goes through a vector of its own at its end.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...compiling import njit
from ..simd.vectors import clear, copy_numbers, fill, item, load, multiply_add, prefetch, store
from .entry import INNER, by_address, entry
from .layout import Layout, layout_of
from .locate import locate, locate_stored
from .stored import Table

AHEAD = 1024  # numbers from what is written to the line that is asked for
TILE = 512  # values that are located at a time: rows and positions stay in the nearest cache


class Stored(NamedTuple):
    """CSR rows."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


def stored_rows(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Stored:
    """CSR rows as the loops take them; arrays with gaps between their numbers are copied.

    Indices of 64 bits are, too, where 32 hold them: loops of their own would take far longer to
    compile.
    """
    most = np.iinfo(np.int32).max
    if indptr[-1] <= most and indices.max(initial=0) <= most:
        indices, indptr = (np.asarray(part, np.int32) for part in (indices, indptr))
    return Stored(*(np.ascontiguousarray(part) for part in (data, indices, indptr)))


class Room(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    row: np.ndarray  # int32
    u: np.ndarray  # T
    columns: np.ndarray  # T: those of one value


@lru_cache(maxsize=64)
def handed_layout(table: Table) -> tuple[Layout, Any]:
    """The layout of a table, and the same as the loops take it."""
    layout = layout_of(table)
    return layout, by_address(layout)


def room_for(layout: Layout) -> Room:
    """Room for one thread."""
    values = layout.values
    columns = np.zeros(len(values.chunk) * values.parts, values.coef.dtype)
    return Room(np.zeros(TILE, np.int32), np.zeros(TILE, values.coef.dtype), columns)


@njit(**INNER)
def vectors(values):
    """Vectors in a row; the compiler knows if it is one."""
    return values.parts if len(values.several) else 1


@njit(**INNER)
def polynomial(values, row, u, part):
    """Σ_k coef[row, k] u^k for one vector of columns."""
    size = len(values.chunk)
    width = size * vectors(values)
    at = (row + 1) * width * len(values.powers) - width + part * size
    value = load(values.coef, at, values.chunk)
    position = fill(values.coef, u, values.chunk)
    for _ in range(len(values.powers) - 1):
        at -= width
        value = multiply_add(value, position, load(values.coef, at, values.chunk))
    return value


@njit(**INNER)
def _write(values, row, u, to, out):
    """The columns of one value from out[to] on."""
    for part in range(vectors(values)):
        store(out, to + part * len(values.chunk), polynomial(values, row, u, part))


@entry()
def emit_dense(layout, x, lanes, room, begin, end, out):
    """φ of dense rows begin..end; x and out are flat."""
    values, column, even = layout.values, layout.column, layout.even
    d, width = column.size - 1, column[column.size - 1]
    stop = end * width - room.columns.size
    for i in range(begin, end):
        if even == 0:
            clear(out, i * width, width)
        for a in range(0, d, TILE):
            n = TILE if d - a > TILE else d - a
            locate(layout.bins, x, i * d + a, a, n, lanes, room.row, room.u)
            at = i * width + column[a]
            # All but the last values may write whole vectors. Their own loop decides nothing, which
            # saves a quarter of the time.
            whole = (stop - at) // even + 1 if even > 0 and at <= stop else 0
            whole = whole if whole < n else n
            for k in range(whole):
                prefetch(out, at + k * even + AHEAD)
                _write(values, np.int64(item(room.row, k)), item(room.u, k), at + k * even, out)
            for k in range(whole, n):
                row = np.int64(item(room.row, k))
                to = at + k * even
                if even == 0:
                    to = i * width + column[a + k] + item(values.first, row)
                if to <= stop:
                    _write(values, row, item(room.u, k), to, out)
                else:
                    _write(values, row, item(room.u, k), np.int64(0), room.columns)
                    copy_numbers(room.columns, out, to, np.int64(item(layout.band, a + k)))


@entry()
def emit_stored(layout, rows, room, begin, end, out):
    """φ of CSR rows begin..end, for maps with φ(0) = 0; ``out.indptr`` is given."""
    values = layout.values
    to, last = out.indptr[begin], rows.indptr[end]
    stop = out.indptr[end] - room.columns.size
    for a in range(rows.indptr[begin], last, TILE):
        n = TILE if last - a > TILE else last - a
        locate_stored(layout.bins, rows, a, n, room.row, room.u)
        for k in range(n):
            row, j = np.int64(item(room.row, k)), np.int64(item(rows.indices, a + k))
            count = np.int64(item(layout.band, j))
            if to <= stop:
                _write(values, row, item(room.u, k), to, out.data)
            else:
                _write(values, row, item(room.u, k), np.int64(0), room.columns)
                copy_numbers(room.columns, out.data, to, count)
            first = item(layout.column, j) + item(values.first, row)
            for c in range(count):
                out.indices[to + c] = first + c
            to += count
