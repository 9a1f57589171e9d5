r"""Weights of a table's columns: scores of single rows, and steps along them, for training.

The columns of a map are ψ = RΦ, where Φ is a *local basis*, few functions of which are not zero at
a value (splines: R = D_d^{-T}; other maps: R = I). The loops store v = Rᵀw, not the weights w of ψ:
so the score of a value reads these few alone, and a step Δα along ψ adds a multiple of RᵀRΦ
(S. Maji, Linearized smooth additive classifiers, 2012, eq. 7, where RᵀR is called L_d):

.. math:: ⟨w, ψ⟩ = ⟨v, Φ⟩, \qquad w ← w + Δα\,ψ \;⇔\; v ← v + Δα\,RᵀRΦ, \qquad
          ‖ψ‖² = ⟨Φ, RᵀRΦ⟩.

A :class:`Basis` says where a value falls (a piece of a table and a position ``u`` in its bin) and
has three tables of local polynomials in ``u``, one for each of these: ``values`` Φ, ``update``
RᵀRΦ, and ``squares`` ‖ψ‖².

The weights lie as ``[feature][basis][lane]``; a lane is a class. The values of a row are located
once (:func:`locate_row`), the row is scored (:func:`score`), and the weights move along it
(:func:`add`).

Relies on the relations of :mod:`.layout` (the pieces that the finder returns exist, and the columns
of each end within the weights of its feature), and on CSR columns that were checked on entry.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._util.compiling import INNER, njit, static
from ..simd import add as plus
from ..simd import (
    fold,
    item,
    load,
    multiply_add,
    polynomial,
    prefetch,
    repeat,
    store,
    tile,
    zeros,
)
from .layout import Bins, LocalPolynomials
from .locate import Locations, locate_dense, locate_stored

FAST = INNER | {"fastmath": True}


class Squares(NamedTuple):
    """Squared norms as polynomials in u."""

    norm: np.ndarray  # float64 flat [piece][power]
    powers: tuple  # static: 2 degree + 1


class Basis(NamedTuple):
    """The tables of an additive map for training, addressed by the pieces of `bins`."""

    bins: Bins
    values: LocalPolynomials  # the local basis Φ
    update: LocalPolynomials  # RᵀRΦ, the change of the weights; the same object as Φ if R = I
    squares: Squares  # ‖ψ‖² = ⟨Φ, RᵀRΦ⟩
    stride: int  # weights of each feature


class RowArrays(NamedTuple):
    """The rows of X as they lie in memory: dense (C order) or CSR."""

    data: np.ndarray  # flat
    indices: np.ndarray  # CSR: feature of each value
    indptr: np.ndarray
    sparse: tuple  # static: 1 of CSR, 0
    width: int  # dense: features


class RowWorkspace(NamedTuple):
    """Memory of one thread (made in Python: code that allocates takes long to compile)."""

    locations: Locations  # of the values of one example
    f: np.ndarray  # T, flat [score][lane]: one score, or one of each value
    move: np.ndarray  # T[lanes]


class Weights(NamedTuple):
    """Weights of a basis, and the polynomials that say which of them a value touches, and how."""

    table: LocalPolynomials
    touched: tuple  # static: weights that one vector of the table touches, all lanes
    lanes: tuple  # static
    stride: int  # weights of each feature
    w: np.ndarray  # T, flat: v = Rᵀw


class RowWork(NamedTuple):
    """What loops do with rows: where values fall, and the weights that they score or change."""

    bins: Bins
    scored: Weights | None = None
    changed: Weights | None = None
    squares: Squares | None = None  # to compute norms
    steps: Any = None  # what the steps of a loss are computed from


def weights_of(basis: Basis, table: LocalPolynomials, lanes: int, w: np.ndarray) -> Weights:
    """The weights that one of the tables of a basis touches."""
    sizes = static(len(table.chunk) * lanes), static(lanes)
    return Weights(table, *sizes, basis.stride, w)


@njit(**FAST)
def _span(rows, i):
    """First and last value of example i."""
    if len(rows.sparse):
        return np.int64(item(rows.indptr, i)), np.int64(item(rows.indptr, i + 1))
    return i * rows.width, (i + 1) * rows.width


@njit(**FAST)
def feature_of(rows, k, begin):
    """Feature of the k-th stored value: the index in a CSR row, the position in a dense one."""
    return np.int64(item(rows.indices, k)) if len(rows.sparse) else k - begin


@njit(**FAST)
def locate_row(bins, rows, i, work):
    """Locate the values of example i, into `work`; index of its first value, and their number."""
    begin, end = _span(rows, i)
    if len(rows.sparse):
        locate_stored(bins, rows, begin, end - begin, work.locations)
    else:
        feature, single_row = np.int64(0), np.int64(1)
        locate_dense(bins, rows.data, begin, feature, end - begin, single_row, work.locations)
    return begin, end - begin


@njit(**FAST)
def _add_term(weights, rows, locations, begin, k, total):
    """Add the k-th value's term of the scores, chunk by chunk and lane by lane."""
    piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
    table, j = weights.table, feature_of(rows, begin + k, begin)
    position = (j * weights.stride + item(table.first_column, piece)) * len(weights.lanes)
    for v in range(len(table.parts)):
        phi = repeat(polynomial(table, piece, u, v), weights.lanes)
        w = load(weights.w, position + v * len(weights.touched), weights.touched)
        total = multiply_add(phi, w, total)
    return total


@njit(**FAST)
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
        store(work.f, start * len(lanes), fold(plus(plus(a, b), plus(c, d)), lanes))


@njit(**FAST)
def add(weights, rows, work, begin, n):
    """v += work.move · RᵀRΦ of the n located values, lane by lane."""
    table, lanes, w, locations = weights.table, weights.lanes, weights.w, work.locations
    steps = tile(load(work.move, 0, lanes), table.chunk)
    for k in range(n):
        piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
        j = feature_of(rows, begin + k, begin)
        start = (j * weights.stride + item(table.first_column, piece)) * len(lanes)
        for v in range(len(table.parts)):
            position = start + v * len(weights.touched)
            phi = repeat(polynomial(table, piece, u, v), lanes)
            store(w, position, multiply_add(phi, steps, load(w, position, weights.touched)))


@njit(**INNER)
def _square(squares, locations, k):
    """The k-th value's term of ‖ψ‖² = ⟨Φ, RᵀRΦ⟩, itself a local polynomial in u."""
    piece, u, size = np.int64(item(locations.piece, k)), item(locations.u, k), len(squares.powers)
    value = item(squares.norm, piece * size + size - 1)
    for power in range(size - 2, -1, -1):
        value = value * u + item(squares.norm, piece * size + power)
    return value


@njit(**INNER)
def squared_norm(squares, work, n):
    """‖ψ‖². Four sums, as for the scores.

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
    return (a + b) + (c + d)


@njit(**FAST)
def prefetch_row(rows, i):
    """Prefetch the values of example i."""
    begin, end = _span(rows, i)
    for k in range(begin, end, 64 // rows.data.itemsize):
        prefetch(rows.data, k)
