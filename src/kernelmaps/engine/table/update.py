"""Weights of a table's columns: scores of single rows, and steps along them, for training.

A :class:`Basis` says where a value falls (a row of a table and a position ``u`` inside it) and has
two tables of local polynomials in ``u``,

* ``values``: the band Φ(x), the only weights that an evaluation touches;
* ``column``: the change L_d Φ(x) of the weights (eq. 7); for order 0 it is the band again.

The weights lie as ``[feature][basis][lane]``; a lane is a class. A row is placed once (`place`),
then scored (`score`), and then the weights move along it (`add`).

Rests on the relations of :mod:`.layout` (every row of a table that the finder gives is there, and
its band ends within the weights of its feature), and on CSR columns that were checked on entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from ...compiling import njit
from ..simd.vectors import add as plus
from ..simd.vectors import fold, item, load, multiply_add, prefetch, repeat, store, tile, zeros
from .emit import polynomial, vectors
from .entry import INNER
from .layout import Bins, Block
from .locate import find, locate

FAST = INNER | {"fastmath": True}


class Basis(NamedTuple):
    """A compiled additive map, ready for the loops; tables are addressed by the rows of `bins`."""

    bins: Bins
    values: Block  # the band Phi
    taken: tuple  # length: weights that one vector of `values` touches, all lanes
    column: Block  # the change L_d Phi of the weights
    changed: tuple  # length: weights that one vector of `column` touches
    norm: np.ndarray  # float64 flat [row][power]: <Phi, L_d Phi>
    square: tuple  # length 2 degree + 1
    stride: int  # weights of each feature


class Rows(NamedTuple):
    """The rows of X as they lie in memory: dense (C order) or CSR."""

    values: np.ndarray  # flat
    columns: np.ndarray  # CSR: feature of each value
    indptr: np.ndarray
    sparse: tuple  # length 1 for CSR, 0 for dense
    width: int  # dense: features


class Room(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    row: np.ndarray  # int32: of the values of one example, and a vector more
    u: np.ndarray  # T
    f: np.ndarray  # T[lanes]
    move: np.ndarray  # T[lanes]
    seen: np.ndarray  # float64[4, lanes]
    vector: tuple  # length: values that are placed at a time


@njit(**FAST)
def _span(rows, i):
    if len(rows.sparse):
        return np.int64(item(rows.indptr, i)), np.int64(item(rows.indptr, i + 1))
    return i * rows.width, (i + 1) * rows.width


@njit(**FAST)
def column_of(rows, k, begin):
    """Feature of the k-th stored value: the index in a CSR row, the position in a dense one."""
    return np.int64(item(rows.columns, k)) if len(rows.sparse) else k - begin


def place(basis, rows, i, room):
    """Where the values of example i fall, into `room`; the place of the first, and their number."""
    begin, end = _span(rows, i)
    for k in range(begin, end):
        j = column_of(rows, k, begin)
        room.row[k - begin], room.u[k - begin] = find(basis.bins, item(rows.values, k), j, ())
    return begin, end - begin


@overload(place, jit_options=FAST)
def _place_of(basis, rows, i, room):
    sparse = len(rows.types[rows.fields.index("sparse")])
    return place if sparse else _place_vectors


def _place_vectors(basis, rows, i, room):
    """The same for dense rows, some features at a time."""
    begin, n = i * rows.width, rows.width
    locate(basis.bins, rows.values, begin, np.int64(0), n, room.vector, room.row, room.u)
    return begin, n


@njit(**FAST)
def gather(basis, rows, room, begin, k, w, lanes, total):
    """Add the k-th value's part of the scores, chunk by chunk and lane by lane."""
    row, u = np.int64(item(room.row, k)), item(room.u, k)
    values = basis.values
    at = (column_of(rows, begin + k, begin) * basis.stride + item(values.first, row)) * len(lanes)
    for part in range(vectors(values)):
        phi = repeat(polynomial(values, row, u, part), lanes)
        total = multiply_add(phi, load(w, at + part * len(basis.taken), basis.taken), total)
    return total


@njit(**FAST)
def score(basis, rows, room, begin, n, w, lanes):
    """``room.f`` = <w, psi> of the n values that were placed.

    Four sums at a time hide the latency of the adds.
    """
    a = zeros(w, basis.taken)
    b, c, d = a, a, a
    whole = n - n % 4
    for k in range(0, whole, 4):
        a = gather(basis, rows, room, begin, k, w, lanes, a)
        b = gather(basis, rows, room, begin, k + 1, w, lanes, b)
        c = gather(basis, rows, room, begin, k + 2, w, lanes, c)
        d = gather(basis, rows, room, begin, k + 3, w, lanes, d)
    for k in range(whole, n):
        a = gather(basis, rows, room, begin, k, w, lanes, a)
    store(room.f, 0, fold(plus(plus(a, b), plus(c, d)), lanes))


@njit(**FAST)
def add(basis, rows, room, begin, n, w, lanes):
    """w += room.move * (the column of the n values that were placed), lane by lane."""
    column = basis.column
    steps = tile(load(room.move, 0, lanes), column.chunk)
    for k in range(n):
        row, u = np.int64(item(room.row, k)), item(room.u, k)
        j = column_of(rows, begin + k, begin)
        at = (j * basis.stride + item(column.first, row)) * len(lanes)
        for part in range(vectors(column)):
            here = at + part * len(basis.changed)
            phi = repeat(polynomial(column, row, u, part), lanes)
            store(w, here, multiply_add(phi, steps, load(w, here, basis.changed)))


@njit(**FAST)
def squared_norm(basis, room, n):
    """|psi|^2: per feature <Phi, L_d Phi>, itself a local polynomial in u."""
    size, total = len(basis.square), 0.0
    for k in range(n):
        row, u = np.int64(item(room.row, k)), item(room.u, k)
        value = item(basis.norm, row * size + size - 1)
        for power in range(size - 2, -1, -1):
            value = value * u + item(basis.norm, row * size + power)
        total += value
    return total


@njit(**FAST)
def ask_for(rows, i):
    """Have the values of example i brought from memory."""
    begin, end = _span(rows, i)
    for k in range(begin, end, 64 // rows.values.itemsize):
        prefetch(rows.values, k)
