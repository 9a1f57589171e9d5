"""Weights of a table's columns: scores of single rows, and steps along them, for training.

A :class:`Basis` says where a value falls (a row of a table and a position ``u`` inside it) and has
two tables of local polynomials in ``u``,

* ``values``: the band Φ(x), the only weights that an evaluation touches;
* ``column``: the change L_d Φ(x) of the weights (eq. 7); for order 0 it is the band again.

The weights lie as ``[feature][basis][lane]``; a lane is a class. A row is placed once (`place`),
then scored (:func:`score`), and then the weights move along it (:func:`add`): routines that loops
call by address, so that none of them is compiled again for other bins, rows or losses. What does
not change from call to call, bins and weights, is handed over once (:func:`weights_of`).

Rests on the relations of :mod:`.layout` (every row of a table that the finder gives is there, and
its band ends within the weights of its feature), and on CSR columns that were checked on entry.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compiling import njit
from ..simd.polynomials import polynomial, vectors
from ..simd.vectors import add as plus
from ..simd.vectors import (
    fold,
    item,
    load,
    multiply_add,
    prefetch,
    repeat,
    store,
    tile,
    zeros,
)
from .entry import INNER, bound, by_address, call, routine
from .layout import Bins, Block
from .locate import Dense, Finder, Found, Stored, finder

FAST = INNER | {"fastmath": True}


class Squares(NamedTuple):
    """Squared norms as polynomials in u."""

    norm: np.ndarray  # float64 flat [row][power]
    powers: tuple  # length: 2 degree + 1


class Basis(NamedTuple):
    """A compiled additive map; tables are addressed by the rows of `bins`."""

    bins: Bins
    handed: Any  # the bins, as a finder takes them
    values: Block  # the band Phi
    column: Block  # the change L_d Phi of the weights
    squares: Squares  # <Phi, L_d Phi>
    stride: int  # weights of each feature


class Rows(NamedTuple):
    """The rows of X as they lie in memory: dense (C order) or CSR."""

    values: np.ndarray  # flat; loops see bytes
    columns: np.ndarray  # CSR: feature of each value
    indptr: np.ndarray
    sparse: tuple  # length 1 for CSR, 0 for dense
    width: int  # dense: features
    itemsize: int  # bytes of a value


class Room(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    found: Found  # of the values of one example
    f: np.ndarray  # T, flat [score][lane]: one score, or one of each value
    move: np.ndarray  # T[lanes]
    seen: np.ndarray  # float64[4, lanes]
    norm: np.ndarray  # float64[1]
    said: np.ndarray  # int64[2]: whether a step moved a weight, and whether all lanes rest


class Weights(NamedTuple):
    """Weights of a basis, and the polynomials that say which of them a value touches, and how."""

    table: Block
    touched: tuple  # length: weights that one vector of the table touches, all lanes
    lanes: tuple  # length: lanes
    stride: int  # weights of each feature
    w: np.ndarray  # T, flat


class Use(NamedTuple):
    """Something to do with a row, and what it alone knows."""

    routine: Any
    known: Any


NONE = Use(0, 0)


class Work(NamedTuple):
    """What is done with the rows of a problem: routines, and what the loops themselves read."""

    find: Finder
    score: Use
    add: Use
    steps: Use  # of a loss
    norm: Use


def weights_of(basis: Basis, table: Block, lanes: tuple, w: np.ndarray) -> Any:
    """Weights that one of the tables of a basis touches, by address."""
    touched = (0,) * (len(table.chunk) * len(lanes))
    return by_address(Weights(table, touched, lanes, basis.stride, w))


def work_of(
    basis: Basis,
    rows: Rows,
    room: Room,
    *,
    scored: Any = None,
    changed: Any = None,
    steps: Use = NONE,
    norms: bool = False,
) -> tuple[Any, Any, Any]:
    """The work of loops on such rows, the rows and the room, all by address.

    `scored` are weights to score with, and `changed` those to add to (see :func:`weights_of`).
    `norms` asks for squared norms, too.
    """
    seen = by_address(rows._replace(values=rows.values.view(np.uint8)))  # whatever their type
    taken = by_address(room)

    def use(function: Any, weights: Any, numbers: int) -> Use:
        known = seen, taken
        return NONE if weights is None else Use(*bound(function, (weights,), known, numbers))

    stored = Stored(rows.values, rows.columns, rows.indptr)
    values = stored if len(rows.sparse) else Dense(rows.values)
    find = finder(basis.handed, values, room.found)
    norm = Use(*bound(_squared_norm, (basis.squares,), (taken,), 1)) if norms else NONE
    uses = use(score, scored, 3), use(add, changed, 2)
    return by_address(Work(find, *uses, steps, norm)), seen, taken


@njit(**FAST)
def _span(rows, i):
    if len(rows.sparse):
        return np.int64(item(rows.indptr, i)), np.int64(item(rows.indptr, i + 1))
    return i * rows.width, (i + 1) * rows.width


@njit(**FAST)
def column_of(rows, k, begin):
    """Feature of the k-th stored value: the index in a CSR row, the position in a dense one."""
    return np.int64(item(rows.columns, k)) if len(rows.sparse) else k - begin


@njit(**FAST)
def place(work, rows, i, room):
    """Where the values of example i fall, into `room`; the place of the first, and their number."""
    begin, end = _span(rows, i)
    find, none, one = work.find, np.int64(0), np.int64(1)
    call(find.routine, find.table, find.rows, room.found, begin, none, end - begin, one)
    return begin, end - begin


@njit(**FAST)
def _gather(weights, rows, found, begin, k, total):
    """Add the k-th value's part of the scores, chunk by chunk and lane by lane."""
    row, u = np.int64(item(found.row, k)), item(found.u, k)
    table, lanes, size = weights.table, weights.lanes, len(weights.touched)
    at = (column_of(rows, begin + k, begin) * weights.stride + item(table.first, row)) * len(lanes)
    for part in range(vectors(table)):
        phi = repeat(polynomial(table, row, u, part), lanes)
        here = load(weights.w, at + part * size, weights.touched)
        total = multiply_add(phi, here, total)
    return total


@routine(fastmath=True)
def score(weights, rows, room, begin, count, n):
    """``room.f[k]`` = <w, psi> of n of the values that were placed, from the k-th on, k < count.

    That is one score of all values, or one of each. Four sums hide the latency of the adds.
    """
    found, lanes = room.found, weights.lanes
    for start in range(count):
        a = zeros(weights.w, weights.touched)
        b, c, d = a, a, a
        whole = start + n - n % 4
        for k in range(start, whole, 4):
            a = _gather(weights, rows, found, begin, k, a)
            b = _gather(weights, rows, found, begin, k + 1, b)
            c = _gather(weights, rows, found, begin, k + 2, c)
            d = _gather(weights, rows, found, begin, k + 3, d)
        for k in range(whole, start + n):
            a = _gather(weights, rows, found, begin, k, a)
        store(room.f, start * len(lanes), fold(plus(plus(a, b), plus(c, d)), lanes))


@routine(fastmath=True)
def add(weights, rows, room, begin, n):
    """w += room.move * (the column of the n values that were placed), lane by lane."""
    table, lanes, w, found = weights.table, weights.lanes, weights.w, room.found
    steps = tile(load(room.move, 0, lanes), table.chunk)
    for k in range(n):
        row, u = np.int64(item(found.row, k)), item(found.u, k)
        j = column_of(rows, begin + k, begin)
        at = (j * weights.stride + item(table.first, row)) * len(lanes)
        for part in range(vectors(table)):
            here = at + part * len(weights.touched)
            phi = repeat(polynomial(table, row, u, part), lanes)
            store(w, here, multiply_add(phi, steps, load(w, here, weights.touched)))


@njit(**INNER)
def _square(squares, found, k):
    """The k-th value's part of |psi|^2: <Phi, L_d Phi>, itself a local polynomial in u."""
    row, u, size = np.int64(item(found.row, k)), item(found.u, k), len(squares.powers)
    value = item(squares.norm, row * size + size - 1)
    for power in range(size - 2, -1, -1):
        value = value * u + item(squares.norm, row * size + power)
    return value


@routine()
def _squared_norm(squares, room, n):
    """``room.norm[0]`` = |psi|^2. Four sums, as for the scores.

    In the order that is written here (no ``fastmath``): else the compiler takes instructions that
    gather numbers from memory, which take many processors several times as long.
    """
    found, whole = room.found, n - n % 4
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for k in range(0, whole, 4):
        a += _square(squares, found, k)
        b += _square(squares, found, k + 1)
        c += _square(squares, found, k + 2)
        d += _square(squares, found, k + 3)
    for k in range(whole, n):
        a += _square(squares, found, k)
    room.norm[0] = (a + b) + (c + d)


@njit(**FAST)
def ask_for(rows, i):
    """Have the values of example i brought from memory."""
    begin, end = _span(rows, i)
    for k in range(begin * rows.itemsize, end * rows.itemsize, 64):
        prefetch(rows.values, k)
