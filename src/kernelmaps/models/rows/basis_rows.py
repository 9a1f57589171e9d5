"""Rows through a map by their non-zero basis functions: sums over rows without ψ(X).

The columns of a map are ψ = RΦ, where Φ is a *local basis*: few of its functions, consecutive ones,
are not zero at a value (see :mod:`kernelmaps.engine.table.update`). A pass over n rows of d values
reads those few; ψ(X) itself has all functions of a feature for each value.

A value of a row is located once, and its non-zero functions are stored as one entry
(:class:`BasisEntries`). Scores, sums over rows and products with a Hessian then read the entries
alone. The compiled loops rely on
entries that :func:`write_entries` made, and on weights of all features and one vector more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._util.compiling import loop, njit
from ..._util.threads import cached_property, check_stop
from ...engine.simd import (
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
from ...engine.table.stored import allocate_aligned
from ...engine.table.update import (
    FAST,
    Basis,
    RowArrays,
    RowWorkspace,
    feature_of,
    locate_row,
)
from .map_tables import BasisTables, make_workspace, rows_of

# Bytes of the entries up to which they stay in memory; of more rows they are computed in each pass.
MEMORY_LIMIT = 2**26
BLOCK_VALUES = 2**20  # numbers of entries that are computed at a time
_VECTOR = 64  # numbers after the last weight that vectors may touch

Blocks = Iterator[tuple[slice, Any]]  # rows, and their `BasisEntries`


class BasisEntries(NamedTuple):
    """Entries of the values of some rows, row after row."""

    indptr: np.ndarray  # int64[rows + 1]: the entries of a row
    first_weight: np.ndarray  # int32[entries]: the first weight that an entry touches
    values: np.ndarray  # T, flat [entry][function], padded with zeros
    chunk: tuple  # static: functions in a vector
    parts: tuple  # static: vectors in an entry


class EntryTarget(NamedTuple):
    """Where the entries of a basis are written."""

    table: LocalPolynomials
    stride: int  # weights of each feature
    first_weight: np.ndarray
    values: np.ndarray


@loop(_nrt=False)
def _write_rows(bins, target, rows, workspace, start, indptr):
    """Write the entries of the rows from `start` on."""
    table, locations = target.table, workspace.locations
    for i in range(indptr.size - 1):
        begin, n = locate_row(bins, rows, start + i, workspace)
        for k in range(n):
            piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
            j, entry = feature_of(rows, begin + k, begin), indptr[i] + k
            put(target.first_weight, entry, j * target.stride + item(table.first_column, piece))
            for v in range(len(table.parts)):
                position = (entry * len(table.parts) + v) * len(table.chunk)
                store(target.values, position, polynomial(table, piece, u, v))


def write_entries(
    basis: Basis, rows: RowArrays, workspace: RowWorkspace, span: tuple[int, int]
) -> BasisEntries:
    """The entries of the rows from one row to before another."""
    start, end = span
    counts = np.diff(rows.indptr[start : end + 1]) if rows.sparse else rows.width
    indptr = np.zeros(end - start + 1, np.int64)
    indptr[1:] = np.cumsum(np.broadcast_to(counts, end - start))
    table = basis.values
    first_weight = np.empty(indptr[-1], np.int32)
    values = np.empty(indptr[-1] * table.n_columns, table.coef.dtype)
    target = EntryTarget(table, basis.stride, first_weight, values)
    _write_rows(basis.bins, target, rows, workspace, start, indptr)
    return BasisEntries(indptr, first_weight, values, table.chunk, table.parts)


@njit(**FAST)
def _row_score(entries, i, w):
    """The score of row i. Two sums hide the latency of the adds."""
    t, end = item(entries.indptr, i), item(entries.indptr, i + 1)
    chunk, size, parts = entries.chunk, len(entries.chunk), len(entries.parts)
    a = zeros(w, chunk)
    b = a
    while t < end:
        for v in range(parts):
            vector, place = t * parts + v, item(entries.first_weight, t) + v * size
            a = multiply_add(load(entries.values, vector * size, chunk), load(w, place, chunk), a)
        if t + 1 < end:
            for v in range(parts):
                vector, place = (t + 1) * parts + v, item(entries.first_weight, t + 1) + v * size
                b = multiply_add(
                    load(entries.values, vector * size, chunk), load(w, place, chunk), b
                )
        t += 2
    return fold(add(a, b), ONE)


@njit(**FAST)
def _add_row(entries, i, value, w):
    """Add a multiple of row i to weights."""
    chunk, size, parts = entries.chunk, len(entries.chunk), len(entries.parts)
    factor = fill(w, value, chunk)
    for t in range(item(entries.indptr, i), item(entries.indptr, i + 1)):
        for v in range(parts):
            place = item(entries.first_weight, t) + v * size
            phi = load(entries.values, (t * parts + v) * size, chunk)
            store(w, place, multiply_add(phi, factor, load(w, place, chunk)))


@loop(fastmath=True, _nrt=False)
def score_rows(entries, w, out):
    """out[i] = ⟨w, Φ_i⟩."""
    for i in range(out.size):
        store(out, i, _row_score(entries, i, w))


@loop(fastmath=True, _nrt=False)
def add_rows(entries, factors, w):
    """w += Σ factors[i] Φ_i, over rows whose factor is not zero."""
    for i in range(factors.size):
        if factors[i] != 0:
            _add_row(entries, i, factors[i], w)


@loop(fastmath=True, _nrt=False)
def add_products(entries, factors, p, shift, score, w):
    """w += Σ factors[i] (⟨p, Φ_i⟩ − shift) Φ_i, over rows whose factor is not zero.

    `score` is memory for one number.
    """
    for i in range(factors.size):
        if factors[i] != 0:
            store(score, 0, _row_score(entries, i, p))
            _add_row(entries, i, factors[i] * (score[0] - shift), w)


@njit(**FAST)
def _add_outer_product(entries, t, s, factor, place, stride, out):
    """Add a multiple of Φ_t Φ_sᵀ of two entries to a block, from its number `place` on."""
    chunk, size, parts = entries.chunk, len(entries.chunk), len(entries.parts)
    for v in range(parts):
        phi = load(entries.values, (s * parts + v) * size, chunk)
        phi = multiply_add(phi, fill(out, factor, chunk), zeros(out, chunk))
        for k in range(size * parts):
            position = place + k * stride + v * size
            value = fill(out, item(entries.values, t * parts * size + k), chunk)
            store(out, position, multiply_add(phi, value, load(out, position, chunk)))


@loop(fastmath=True, _nrt=False)
def add_block_products(entries, factors, stride, out):
    """out[j] += Σ factors[i] Φ_ij Φ_ijᵀ for each feature j, of rows whose factor is not zero.

    `out` is flat, [feature][function][function], each with `stride` functions. Entries of a feature
    follow each other.
    """
    for i in range(factors.size):
        if factors[i] != 0:
            end = item(entries.indptr, i + 1)
            for t in range(item(entries.indptr, i), end):
                weight = item(entries.first_weight, t)
                column = weight % stride
                place = weight * stride + column
                _add_outer_product(entries, t, t, factors[i], place, stride, out)
                for s in range(t + 1, end):
                    step = item(entries.first_weight, s) - weight
                    if column + step < 0 or column + step >= stride:  # of another feature
                        break
                    _add_outer_product(entries, t, s, factors[i], place + step, stride, out)
                    below = place + step * stride
                    _add_outer_product(entries, s, t, factors[i], below, stride, out)


@loop(fastmath=True, _nrt=False)
def add_pair_products(entries, factors, row_length, out):
    """out += a half of Σ factors[i] Φ_i Φ_iᵀ, whose transpose is the other half.

    A product of two entries is added once, that of an entry with itself by half. `out` is flat,
    with `row_length` numbers for each weight.
    """
    for i in range(factors.size):
        if factors[i] != 0:
            end = item(entries.indptr, i + 1)
            for t in range(item(entries.indptr, i), end):
                row = item(entries.first_weight, t) * row_length
                for s in range(t, end):
                    factor = factors[i] * (0.5 if s == t else 1.0)
                    place = row + item(entries.first_weight, s)
                    _add_outer_product(entries, t, s, factor, place, row_length, out)


@loop(fastmath=True, _nrt=False)
def write_dense(entries, factors, stride, width, n_weights, out):
    """Write the rows whose factor is not zero, times the factor, one after the other.

    `out` is flat, with `n_weights` zeros for each of them, `width` for each feature, and one vector
    more: an entry that is padded adds zeros to what lies behind its feature.
    """
    chunk, size, parts = entries.chunk, len(entries.chunk), len(entries.parts)
    start = 0
    for i in range(factors.size):
        if factors[i] != 0:
            factor = fill(out, factors[i], chunk)
            for t in range(item(entries.indptr, i), item(entries.indptr, i + 1)):
                weight = item(entries.first_weight, t)
                weight -= (weight // stride) * (stride - width)
                for v in range(parts):
                    place = start + weight + v * size
                    phi = load(entries.values, (t * parts + v) * size, chunk)
                    store(out, place, multiply_add(phi, factor, load(out, place, chunk)))
            start += n_weights


@dataclass(frozen=True)
class BasisRows:
    """ψ(X) as a solver sees it; weights w are flat, [feature][function].

    Features with fewer functions than others have weights that touch nothing.

    Attributes
    ----------
    tables : BasisTables
        Of one lane.
    X : array or CSR
    """

    tables: BasisTables
    X: Any

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]  # CSR matrices have no length

    @cached_property
    def n_features(self) -> int:
        return self.tables.map_basis.table.n_features

    @cached_property
    def width(self) -> int:
        """Functions of a feature, the most that one has."""
        return int(self.tables.map_basis.table.width.max())

    @property
    def n_weights(self) -> int:
        return self.n_features * self.width

    @property
    def entries_per_row(self) -> float:
        """Numbers that a product reads of a row."""
        return self.tables.basis.values.n_columns * self.X.size / max(self.n_rows, 1)

    @cached_property
    def _transforms(self) -> np.ndarray | None:
        """R of each feature, or the one that all share; None for the identity."""
        basis = self.tables.map_basis
        if basis.transforms is None:
            return None
        index = basis.transform_of[basis.table.set_of]
        shared = bool((index == index[0]).all())
        return basis.transforms[index[:1] if shared else index]

    def __iter__(self) -> Blocks:
        check_stop()
        size = 8 * self.entries_per_row * self.n_rows
        return iter(self._stored_blocks if size <= MEMORY_LIMIT else self._compute_blocks())

    @cached_property
    def _stored_blocks(self) -> list[tuple[slice, Any]]:
        return list(self._compute_blocks())

    def _compute_blocks(self) -> Blocks:
        rows = rows_of(self.X)
        workspace = make_workspace(self.tables, rows)
        step = max(1, int(BLOCK_VALUES / max(self.entries_per_row, 1)))
        for begin in range(0, self.n_rows, step):
            end = min(begin + step, self.n_rows)
            entries = write_entries(self.tables.basis, rows, workspace, (begin, end))
            yield slice(begin, end), entries

    def transform_weights(self, w: np.ndarray) -> np.ndarray:
        """Weights v = Rᵀw of Φ, [feature][function]: ⟨w, RΦ⟩ = ⟨v, Φ⟩."""
        w = w.reshape(self.n_features, self.width)
        if self._transforms is None:
            return w
        return np.matmul(w[:, None, :], self._transforms)[:, 0]

    def _laid_out(self, w: np.ndarray) -> np.ndarray:
        """Weights of Φ as loops take them."""
        flat = self._zeros()
        self._view_features(flat)[:] = self.transform_weights(w)
        return flat

    def _zeros(self) -> np.ndarray:
        """Weights or sums of the loops, [feature][function]; vectors may touch what follows."""
        return allocate_aligned(self.tables.n_weights + _VECTOR, np.dtype(np.float64))

    def _view_features(self, flat: np.ndarray) -> np.ndarray:
        """Weights or sums of the loops as [feature][function]: a view."""
        tables = self.tables
        return flat[: tables.n_weights].reshape(-1, tables.stride)[:, : self.width]

    def _transform_sums(self, flat: np.ndarray) -> np.ndarray:
        """R times sums of Φ."""
        sums = self._view_features(flat)
        if self._transforms is None:
            return sums.ravel()
        return np.matmul(self._transforms, sums[:, :, None]).ravel()

    def scores(self, w: np.ndarray) -> np.ndarray:
        """ψ(X) w."""
        v, out = self._laid_out(w), np.empty(self.n_rows)
        for rows, entries in self:
            score_rows(entries, v, out[rows])
        return out

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """ψ(X)ᵀ v."""
        flat = self._zeros()
        for rows, entries in self:
            add_rows(entries, values[rows], flat)
        return self._transform_sums(flat)

    def product(self, weight: np.ndarray, w: np.ndarray, shift: float = 0.0) -> np.ndarray:
        """ψ(X)ᵀ W (ψ(X) w − shift); rows without a weight are left out."""
        v, score, flat = self._laid_out(w), np.zeros(1), self._zeros()
        for rows, entries in self:
            add_products(entries, weight[rows], v, float(shift), score, flat)
        return self._transform_sums(flat)

    def blocks(self, weight: np.ndarray) -> np.ndarray:
        """The block of ψ(X)ᵀ W ψ(X) of each feature, [feature][function][function]."""
        n, stride = self.n_features, self.tables.stride
        flat = allocate_aligned(n * stride**2 + _VECTOR * stride, np.dtype(np.float64))
        for rows, entries in self:
            add_block_products(entries, weight[rows], stride, flat)
        blocks = flat[: n * stride**2].reshape(n, stride, stride)
        blocks = blocks[:, : self.width, : self.width].copy()
        if self._transforms is not None:
            blocks = self._transforms @ blocks @ self._transforms.transpose(0, 2, 1)
        return blocks

    @property
    def gram_cost(self) -> float:
        """Work for a row of `gram`, in units of that for an entry of a product with a vector."""
        return min(self._pairs_cost, self.n_weights**2 / 32)

    @property
    def _pairs_cost(self) -> float:
        """Products of pairs of entries, four at a time; of whole rows, BLAS takes 32."""
        return self.entries_per_row**2 / 4

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """ψ(X)ᵀ W ψ(X) for W ≥ 0; other rows are left out."""
        n_weights, takes_pairs = self.n_weights, self._pairs_cost <= self.gram_cost
        gram = self._multiply_pairs(weight) if takes_pairs else self._multiply_rows(weight)
        if self._transforms is not None:  # of the rows, and, transposed, of the columns
            for _ in range(2):
                gram = self._transforms @ gram.reshape(self.n_features, self.width, -1)
                gram = gram.reshape((n_weights,) * 2).T
        return np.ascontiguousarray(gram)

    def _multiply_pairs(self, weight: np.ndarray) -> np.ndarray:
        """Φᵀ W Φ by products of the entries of a row."""
        n, stride, size = self.n_features, self.tables.stride, self.tables.n_weights
        flat = allocate_aligned((size + _VECTOR) * (size + 1), np.dtype(np.float64))
        for rows, entries in self:
            add_pair_products(entries, weight[rows], size, flat)
        half = flat[: size**2].reshape(n, stride, n, stride)[:, : self.width, :, : self.width]
        return (half + half.transpose(2, 3, 0, 1)).reshape((self.n_weights,) * 2)

    def _multiply_rows(self, weight: np.ndarray) -> np.ndarray:
        """The same by products of dense matrices."""
        n_weights, roots = self.n_weights, np.sqrt(weight)
        gram = np.zeros((n_weights, n_weights))
        for rows, entries in self:
            n_rows = int(np.count_nonzero(roots[rows]))
            flat = allocate_aligned(n_rows * n_weights + _VECTOR, np.dtype(np.float64))
            write_dense(entries, roots[rows], self.tables.stride, self.width, n_weights, flat)
            dense = flat[: n_rows * n_weights].reshape(n_rows, n_weights)
            gram += dense.T @ dense
        return gram
