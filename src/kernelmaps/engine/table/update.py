r"""Weights of a table's columns: scores of single rows, and steps along them, for training.

The columns of a map are ψ = RΦ, where Φ, the *band*, has few entries that are not zero (splines:
R = D_d^{-T}; other maps: R = I). The loops store v = Rᵀw, not the weights w of ψ: so the score of
a value reads the band alone, and a step Δα along ψ adds a multiple of RᵀRΦ (S. Maji, Linearized
smooth additive classifiers, 2012, eq. 7, where RᵀR is called L_d):

.. math:: ⟨w, ψ⟩ = ⟨v, Φ⟩, \qquad w ← w + Δα\,ψ \;⇔\; v ← v + Δα\,RᵀRΦ, \qquad
          ‖ψ‖² = ⟨Φ, RᵀRΦ⟩.

A :class:`Basis` says where a value falls (a piece of a table and a position ``u`` in its bin) and
has three tables of local polynomials in ``u``, one for each of these: ``values`` Φ, ``update``
RᵀRΦ, and ``squares`` ‖ψ‖².

The weights lie as ``[feature][basis][lane]``; a lane is a class. The values of a row are located
once (:func:`locate_row`), the row is scored (:func:`score`), and the weights move along it
(:func:`add`). These are routines that loops call through pointers, so that none of them is compiled
again for other bins, rows or losses. What does not change from call to call, bins and weights, is
packed once (:func:`weights_of`).

Relies on the relations of :mod:`.layout` (the pieces that the finder returns exist, and the band of
each ends within the weights of its feature), and on CSR columns that were checked on entry.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._util.compiling import njit
from ..._util.static_int import StaticInt
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
from .entry import INNER, BoundRoutine, bind, call, routine
from .layout import Bins, LocalPolynomials
from .locate import Dense, Locations, Locator, Stored, locator
from .packing import packed

FAST = INNER | {"fastmath": True}


class Squares(NamedTuple):
    """Squared norms as polynomials in u."""

    norm: np.ndarray  # float64 flat [piece][power]
    powers: StaticInt  # 2 degree + 1


class Basis(NamedTuple):
    """The tables of an additive map for training, addressed by the pieces of `bins`."""

    bins: Bins
    packed_bins: Any  # as a locator takes them
    values: LocalPolynomials  # the band Φ
    update: LocalPolynomials  # RᵀRΦ, the change of the weights; the same object as Φ if R = I
    squares: Squares  # ‖ψ‖² = ⟨Φ, RᵀRΦ⟩
    stride: int  # weights of each feature


class RowArrays(NamedTuple):
    """The rows of X as they lie in memory: dense (C order) or CSR."""

    values: np.ndarray  # flat; loops see bytes
    features: np.ndarray  # CSR: of each value
    indptr: np.ndarray
    sparse: StaticInt  # flag: CSR
    width: int  # dense: features
    itemsize: int  # bytes of a value


class RowWorkspace(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    locations: Locations  # of the values of one example
    f: np.ndarray  # T, flat [score][lane]: one score, or one of each value
    move: np.ndarray  # T[lanes]
    norm: np.ndarray  # float64[1]
    flags: np.ndarray  # int64[2]: whether a step moved a weight, and whether to shrink the example


class Weights(NamedTuple):
    """Weights of a basis, and the polynomials that say which of them a value touches, and how."""

    table: LocalPolynomials
    touched: StaticInt  # weights that one vector of the table touches, all lanes
    lanes: StaticInt
    stride: int  # weights of each feature
    w: np.ndarray  # T, flat: v = Rᵀw


NONE = BoundRoutine(0, 0)


class RowRoutines(NamedTuple):
    """What loops do with the rows of a problem."""

    locate: Locator
    score: BoundRoutine
    add: BoundRoutine
    steps: BoundRoutine  # of a loss
    norm: BoundRoutine


def weights_of(basis: Basis, table: LocalPolynomials, lanes: StaticInt, w: np.ndarray) -> Any:
    """The packed weights that one of the tables of a basis touches."""
    touched = StaticInt(table.chunk * lanes)
    return packed(Weights(table, touched, lanes, basis.stride, w))


def routines_of(
    basis: Basis,
    rows: RowArrays,
    work: RowWorkspace,
    *,
    scored: Any = None,
    changed: Any = None,
    steps: BoundRoutine = NONE,
    norms: bool = False,
) -> tuple[Any, Any, Any]:
    """The routines of loops over such rows, the rows and the workspace, all packed.

    `scored` are weights to score with, and `changed` those to add to (see :func:`weights_of`).
    `norms` asks for squared norms, too.
    """
    # As bytes, rows of all types share the loops: only the locator reads values.
    packed_rows = packed(rows._replace(values=rows.values.view(np.uint8)))
    packed_work = packed(work)

    def for_weights(function: Any, weights: Any, numbers: int) -> BoundRoutine:
        if weights is None:
            return NONE
        return BoundRoutine(*bind(function, (weights,), (packed_rows, packed_work), numbers))

    stored = Stored(rows.values, rows.features, rows.indptr)
    values = stored if rows.sparse else Dense(rows.values)
    norm = NONE
    if norms:
        norm = BoundRoutine(*bind(_squared_norm, (basis.squares,), (packed_work,), 1))
    routines = RowRoutines(
        locate=locator(basis.packed_bins, values, work.locations),
        score=for_weights(score, scored, 3),
        add=for_weights(add, changed, 2),
        steps=steps,
        norm=norm,
    )
    return packed(routines), packed_rows, packed_work


@njit(**FAST)
def _span(rows, i):
    """First and last value of example i."""
    if rows.sparse:
        return np.int64(item(rows.indptr, i)), np.int64(item(rows.indptr, i + 1))
    return i * rows.width, (i + 1) * rows.width


@njit(**FAST)
def feature_of(rows, k, begin):
    """Feature of the k-th stored value: the index in a CSR row, the position in a dense one."""
    return np.int64(item(rows.features, k)) if rows.sparse else k - begin


@njit(**FAST)
def locate_row(routines, rows, i, work):
    """Locate the values of example i, into `work`; index of its first value, and their number."""
    begin, end = _span(rows, i)
    zero, one = np.int64(0), np.int64(1)
    call(routines.locate, work.locations, begin, zero, end - begin, one)
    return begin, end - begin


@njit(**FAST)
def _add_term(weights, rows, locations, begin, k, total):
    """Add the k-th value's term of the scores, chunk by chunk and lane by lane."""
    piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
    table, lanes, size = weights.table, weights.lanes, weights.touched
    at = (feature_of(rows, begin + k, begin) * weights.stride + item(table.first, piece)) * lanes
    for v in range(vectors(table)):
        phi = repeat(polynomial(table, piece, u, v), lanes)
        w = load(weights.w, at + v * size, size)
        total = multiply_add(phi, w, total)
    return total


@routine(fastmath=True)
def score(weights, rows, work, begin, count, n):
    """``work.f[k]`` = ⟨w, ψ⟩ = ⟨v, Φ⟩ of n of the located values, from the k-th on, k < count.

    That is one score of all values, or one of each. Four sums hide the latency of the adds.
    """
    locations, lanes = work.locations, weights.lanes
    for start in range(count):
        a = zeros(weights.w, weights.touched)
        b, c, d = a, a, a
        fours = start + n - n % 4
        for k in range(start, fours, 4):
            a = _add_term(weights, rows, locations, begin, k, a)
            b = _add_term(weights, rows, locations, begin, k + 1, b)
            c = _add_term(weights, rows, locations, begin, k + 2, c)
            d = _add_term(weights, rows, locations, begin, k + 3, d)
        for k in range(fours, start + n):
            a = _add_term(weights, rows, locations, begin, k, a)
        store(work.f, start * lanes, fold(plus(plus(a, b), plus(c, d)), lanes))


@routine(fastmath=True)
def add(weights, rows, work, begin, n):
    """v += work.move · RᵀRΦ of the n located values, lane by lane."""
    table, lanes, w, locations = weights.table, weights.lanes, weights.w, work.locations
    steps = tile(load(work.move, 0, lanes), table.chunk)
    for k in range(n):
        piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
        j = feature_of(rows, begin + k, begin)
        first = (j * weights.stride + item(table.first, piece)) * lanes
        for v in range(vectors(table)):
            at = first + v * weights.touched
            phi = repeat(polynomial(table, piece, u, v), lanes)
            store(w, at, multiply_add(phi, steps, load(w, at, weights.touched)))


@njit(**INNER)
def _square(squares, locations, k):
    """The k-th value's term of ‖ψ‖² = ⟨Φ, RᵀRΦ⟩, itself a local polynomial in u."""
    piece, u, size = np.int64(item(locations.piece, k)), item(locations.u, k), squares.powers
    value = item(squares.norm, piece * size + size - 1)
    for power in range(size - 2, -1, -1):
        value = value * u + item(squares.norm, piece * size + power)
    return value


@routine()
def _squared_norm(squares, work, n):
    """``work.norm[0]`` = ‖ψ‖². Four sums, as for the scores.

    Without ``fastmath``, which would make the compiler use gather instructions: on many processors
    they take several times as long.
    """
    locations, fours = work.locations, n - n % 4
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for k in range(0, fours, 4):
        a += _square(squares, locations, k)
        b += _square(squares, locations, k + 1)
        c += _square(squares, locations, k + 2)
        d += _square(squares, locations, k + 3)
    for k in range(fours, n):
        a += _square(squares, locations, k)
    work.norm[0] = (a + b) + (c + d)


@njit(**FAST)
def prefetch_row(rows, i):
    """Prefetch the values of example i."""
    begin, end = _span(rows, i)
    for k in range(begin * rows.itemsize, end * rows.itemsize, 64):
        prefetch(rows.values, k)
