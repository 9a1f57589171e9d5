"""Compiled loops over rows as entries of their bands.

A value of a row is located once, and its band, the few functions of its feature that are not zero
there, is stored as one entry (:class:`BandArrays`). Scores, sums over rows and products with a
Hessian then read the entries alone.

The loops rely on entries that :func:`write_entries` made, and on weights of all features and one
vector more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._util.compiling import loop, njit
from ...engine.simd.vectors import (
    ONE,
    add,
    fill,
    fold,
    item,
    load,
    multiply_add,
    polynomial,
    put,
    store,
    zeros,
)
from ...engine.table.layout import LocalPolynomials
from ...engine.table.update import (
    FAST,
    Basis,
    RowArrays,
    RowWorkspace,
    feature_of,
    locate_row,
)


class BandArrays(NamedTuple):
    """Entries of the values of some rows, row after row."""

    indptr: np.ndarray  # int64[rows + 1]: the entries of a row
    first: np.ndarray  # int32[entries]: the first weight that an entry touches
    values: np.ndarray  # T, flat [entry][function], padded with zeros
    chunk: tuple  # static: functions in a vector
    parts: int  # vectors in an entry


class EntryTarget(NamedTuple):
    """Where the entries of a basis are written."""

    table: LocalPolynomials
    stride: int  # weights of each feature
    first: np.ndarray
    values: np.ndarray


@loop(_nrt=False)
def _write_rows(bins, target, rows, workspace, start, indptr):
    """Write the entries of the rows from `start` on."""
    table, locations = target.table, workspace.locations
    for i in range(indptr.size - 1):
        begin, n = locate_row(bins, rows, start + i, workspace)
        for k in range(n):
            piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
            j, to = feature_of(rows, begin + k, begin), indptr[i] + k
            put(target.first, to, j * target.stride + item(table.first, piece))
            for v in range(table.parts):
                place = (to * table.parts + v) * len(table.chunk)
                store(target.values, place, polynomial(table, piece, u, v))


def write_entries(
    basis: Basis, rows: RowArrays, workspace: RowWorkspace, span: tuple[int, int]
) -> BandArrays:
    """The entries of the rows from one row to before another."""
    start, end = span
    counts = np.diff(rows.indptr[start : end + 1]) if rows.sparse else rows.width
    indptr = np.zeros(end - start + 1, np.int64)
    indptr[1:] = np.cumsum(np.broadcast_to(counts, end - start))
    table = basis.values
    first = np.empty(indptr[-1], np.int32)
    values = np.empty(indptr[-1] * table.n_columns, table.coef.dtype)
    target = EntryTarget(table, basis.stride, first, values)
    _write_rows(basis.bins, target, rows, workspace, start, indptr)
    return BandArrays(indptr, first, values, table.chunk, table.parts)


@njit(**FAST)
def _row_score(bands, i, w):
    """The score of row i. Two sums hide the latency of the adds."""
    t, end = item(bands.indptr, i), item(bands.indptr, i + 1)
    chunk, size, parts = bands.chunk, len(bands.chunk), bands.parts
    a = zeros(w, chunk)
    b = a
    while t < end:
        for v in range(parts):
            at, place = t * parts + v, item(bands.first, t) + v * size
            a = multiply_add(load(bands.values, at * size, chunk), load(w, place, chunk), a)
        if t + 1 < end:
            for v in range(parts):
                at, place = (t + 1) * parts + v, item(bands.first, t + 1) + v * size
                b = multiply_add(load(bands.values, at * size, chunk), load(w, place, chunk), b)
        t += 2
    return fold(add(a, b), ONE)


@njit(**FAST)
def _add_row(bands, i, value, w):
    """Add a multiple of row i to weights."""
    chunk, size, parts = bands.chunk, len(bands.chunk), bands.parts
    factor = fill(w, value, chunk)
    for t in range(item(bands.indptr, i), item(bands.indptr, i + 1)):
        for v in range(parts):
            place = item(bands.first, t) + v * size
            phi = load(bands.values, (t * parts + v) * size, chunk)
            store(w, place, multiply_add(phi, factor, load(w, place, chunk)))


@loop(fastmath=True, _nrt=False)
def scores(bands, w, out):
    """out[i] = ⟨w, Φ_i⟩."""
    for i in range(out.size):
        store(out, i, _row_score(bands, i, w))


@loop(fastmath=True, _nrt=False)
def add_rows(bands, factors, w):
    """w += Σ factors[i] Φ_i, over rows whose factor is not zero."""
    for i in range(factors.size):
        if factors[i] != 0:
            _add_row(bands, i, factors[i], w)


@loop(fastmath=True, _nrt=False)
def add_products(bands, factors, p, shift, score, w):
    """w += Σ factors[i] (⟨p, Φ_i⟩ − shift) Φ_i, over rows whose factor is not zero.

    `score` is memory for one number.
    """
    for i in range(factors.size):
        if factors[i] != 0:
            store(score, 0, _row_score(bands, i, p))
            _add_row(bands, i, factors[i] * (score[0] - shift), w)


@njit(**FAST)
def _add_outer_product(bands, t, s, factor, place, stride, out):
    """Add a multiple of Φ_t Φ_sᵀ of two entries to a block, from its number `place` on."""
    chunk, size, parts = bands.chunk, len(bands.chunk), bands.parts
    for v in range(parts):
        phi = load(bands.values, (s * parts + v) * size, chunk)
        phi = multiply_add(phi, fill(out, factor, chunk), zeros(out, chunk))
        for k in range(size * parts):
            at = place + k * stride + v * size
            value = fill(out, item(bands.values, t * parts * size + k), chunk)
            store(out, at, multiply_add(phi, value, load(out, at, chunk)))


@loop(fastmath=True, _nrt=False)
def add_block_products(bands, factors, stride, out):
    """out[j] += Σ factors[i] Φ_ij Φ_ijᵀ for each feature j, of rows whose factor is not zero.

    `out` is flat, [feature][function][function], each with `stride` functions. Entries of a feature
    follow each other.
    """
    for i in range(factors.size):
        if factors[i] != 0:
            end = item(bands.indptr, i + 1)
            for t in range(item(bands.indptr, i), end):
                first = item(bands.first, t)
                column = first % stride
                place = first * stride + column
                _add_outer_product(bands, t, t, factors[i], place, stride, out)
                for s in range(t + 1, end):
                    step = item(bands.first, s) - first
                    if column + step < 0 or column + step >= stride:  # of another feature
                        break
                    _add_outer_product(bands, t, s, factors[i], place + step, stride, out)
                    below = place + step * stride
                    _add_outer_product(bands, s, t, factors[i], below, stride, out)


@loop(fastmath=True, _nrt=False)
def add_pair_products(bands, factors, row_length, out):
    """out += a half of Σ factors[i] Φ_i Φ_iᵀ, of rows whose factor is not zero.

    The other half is its transpose: a product of two entries is added once, that of an entry with
    itself by half. `out` is flat, with `row_length` numbers for each weight.
    """
    chunk, size, parts = bands.chunk, len(bands.chunk), bands.parts
    for i in range(factors.size):
        if factors[i] != 0:
            end = item(bands.indptr, i + 1)
            for t in range(item(bands.indptr, i), end):
                top = item(bands.first, t)
                for s in range(t, end):
                    left = item(bands.first, s)
                    factor = fill(out, factors[i] * (0.5 if s == t else 1.0), chunk)
                    for v in range(parts):
                        phi = load(bands.values, (s * parts + v) * size, chunk)
                        phi = multiply_add(phi, factor, zeros(out, chunk))
                        for k in range(size * parts):
                            other = fill(out, item(bands.values, t * parts * size + k), chunk)
                            place = (top + k) * row_length + left + v * size
                            store(out, place, multiply_add(phi, other, load(out, place, chunk)))


@loop(fastmath=True, _nrt=False)
def write_dense(bands, factors, stride, width, n_weights, out):
    """Write the rows whose factor is not zero, times the factor, one after the other.

    `out` is flat, with `n_weights` zeros for each of them, `width` for each feature, and one vector
    more: an entry that is padded adds zeros to what lies behind its feature.
    """
    chunk, size, parts = bands.chunk, len(bands.chunk), bands.parts
    start = 0
    for i in range(factors.size):
        if factors[i] != 0:
            factor = fill(out, factors[i], chunk)
            for t in range(item(bands.indptr, i), item(bands.indptr, i + 1)):
                first = item(bands.first, t)
                first -= (first // stride) * (stride - width)
                for v in range(parts):
                    place = start + first + v * size
                    phi = load(bands.values, (t * parts + v) * size, chunk)
                    store(out, place, multiply_add(phi, factor, load(out, place, chunk)))
            start += n_weights
