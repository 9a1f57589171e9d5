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
from .entry import INNER, by_address, call, entry
from .layout import Layout, layout_of
from .locate import Dense, Found, Stored, finder
from .memory import LANES
from .stored import Table

AHEAD = 1024  # numbers from what is written to the line that is asked for
TILE = 512  # values that are located at a time: rows and positions stay in the nearest cache


class Room(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    found: Found  # of a tile of values
    columns: np.ndarray  # T: those of one value


class Emitter(NamedTuple):
    """A table as the loops take it."""

    layout: Layout
    handed: Any  # all but the bins
    bins: Any  # handed, too
    found: Any  # memory such as a thread's, for what depends on its type

    def finder(self, rows: Dense | Stored) -> Any:
        """What locates values of such rows."""
        return by_address(finder(self.bins, rows, self.found))


@lru_cache(maxsize=64)
def emitter(table: Table) -> Emitter:
    """A table as the loops take it."""
    layout = layout_of(table)
    parts = layout._replace(bins=()), layout.bins, room_for(layout).found
    return Emitter(layout, *(by_address(part) for part in parts))


def room_for(layout: Layout) -> Room:
    """Room for one thread."""
    values = layout.values
    columns = np.zeros(len(values.chunk) * values.parts, values.coef.dtype)
    found = Found(np.zeros(TILE + LANES, np.int32), np.zeros(TILE + LANES, values.coef.dtype))
    return Room(found, columns)


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
def emit_dense(layout, find, room, begin, end, out):
    """φ of dense rows begin..end, one after the other.

    Short rows are located together, as many as a tile holds, and long ones in several tiles.
    """
    values, column, even, found = layout.values, layout.column, layout.even, room.found
    d, width = column.size - 1, column[column.size - 1]
    stop = end * width - room.columns.size
    together = TILE // d if d < TILE else 1
    for top in range(begin, end, together):
        rows = together if end - top > together else end - top
        if even == 0:
            clear(out, top * width, rows * width)
        for a in range(0, d, TILE):
            n = TILE if d - a > TILE else d - a
            call(find.routine, find.bins, find.rows, found, top * d + a, a, n, rows)
            at = top * width + column[a]
            # All but the last values may write whole vectors. Their own loop decides nothing, which
            # saves a quarter of the time.
            whole = (stop - at) // even + 1 if even > 0 and at <= stop else 0
            whole = whole if whole < n * rows else n * rows
            for k in range(whole):
                prefetch(out, at + k * even + AHEAD)
                _write(values, np.int64(item(found.row, k)), item(found.u, k), at + k * even, out)
            for r in range(whole // n, rows):
                for k in range(whole - r * n if whole > r * n else 0, n):
                    row, u = np.int64(item(found.row, r * n + k)), item(found.u, r * n + k)
                    to = at + (r * n + k) * even
                    if even == 0:
                        to = (top + r) * width + column[a + k] + item(values.first, row)
                    if to <= stop:
                        _write(values, row, u, to, out)
                    else:
                        _write(values, row, u, np.int64(0), room.columns)
                        copy_numbers(room.columns, out, to, np.int64(item(layout.band, a + k)))


@entry()
def emit_stored(layout, find, rows, room, begin, end, out):
    """φ of CSR rows begin..end, for maps with φ(0) = 0; ``out.indptr`` is given."""
    values = layout.values
    to, last = out.indptr[begin], rows.indptr[end]
    stop, found = out.indptr[end] - room.columns.size, room.found
    for a in range(rows.indptr[begin], last, TILE):
        n = TILE if last - a > TILE else last - a
        call(find.routine, find.bins, find.rows, found, a, np.int64(0), n, np.int64(1))
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
