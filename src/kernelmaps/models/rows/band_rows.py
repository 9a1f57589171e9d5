"""Rows through a map as entries of their bands: sums over rows without ψ(X).

The columns of a map are ψ = RΦ, where few entries of Φ, the *band* of a value, are not zero (see
:mod:`kernelmaps.engine.table.update`). A pass over n rows of d values reads n·d bands; ψ(X) itself
has all functions of a feature for each value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._util.threads import cached_property, check_stop
from ...engine.table.stored import aligned
from . import _band_loops
from .map_tables import BasisTables, rows_of, workspace_for

# Bytes of the bands up to which they stay in memory; of more rows they are computed in each pass.
MEMORY_LIMIT = 2**26
BLOCK_VALUES = 2**20  # numbers of bands that are computed at a time
_VECTOR = 64  # numbers after the last weight that vectors may touch


@dataclass(frozen=True)
class GramCosts:
    """Times in seconds, on one core of an ARM Neoverse N1, in double precision."""

    # A product of two entries' numbers, of sums that stay in the second-level cache (magic: 0.49
    # ns, 10,000 × 20: 0.69 ns) or do not (spambase: 0.70 ns, 2000 × 50: 0.79 ns).
    per_cached_pair: float = 5.6e-10
    per_pair: float = 8e-10
    cache_bytes: int = 2**19
    per_multiplication: float = 1 / 1.5e10  # of a matrix product


COSTS = GramCosts()

Blocks = Iterator[tuple[slice, Any]]  # rows, and their `BandArrays`


@dataclass(frozen=True)
class BandRows:
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
        return self.tables.bands.table.n_features

    @cached_property
    def width(self) -> int:
        """Functions of a feature, the most that one has."""
        return int(self.tables.bands.table.width.max())

    @property
    def n_weights(self) -> int:
        return self.n_features * self.width

    @property
    def entries_per_row(self) -> float:
        """Numbers that a product reads of a row."""
        return self._band_size * self.X.size / max(self.n_rows, 1)

    @property
    def _band_size(self) -> int:
        values = self.tables.basis.values
        return values.n_columns

    @cached_property
    def _transforms(self) -> np.ndarray | None:
        """R of each feature, or the one that all share; None for the identity."""
        bands = self.tables.bands
        if bands.transforms is None:
            return None
        of_feature = bands.transform_of[bands.table.set_of]
        shared = bool((of_feature == of_feature[0]).all())
        return bands.transforms[of_feature[:1] if shared else of_feature]

    def __iter__(self) -> Blocks:
        check_stop()
        size = 8 * self.X.size * self._band_size
        return iter(self._stored if size <= MEMORY_LIMIT else self._computed())

    @cached_property
    def _stored(self) -> list[tuple[slice, Any]]:
        return list(self._computed())

    def _computed(self) -> Blocks:
        rows = rows_of(self.X)
        workspace = workspace_for(self.tables, rows)
        step = max(1, int(BLOCK_VALUES / max(self.entries_per_row, 1)))
        for begin in range(0, self.n_rows, step):
            end = min(begin + step, self.n_rows)
            bands = _band_loops.write_entries(self.tables.basis, rows, workspace, (begin, end))
            yield slice(begin, end), bands

    def band_weights(self, w: np.ndarray) -> np.ndarray:
        """Weights v = Rᵀw of the bands, [feature][function]: ⟨w, RΦ⟩ = ⟨v, Φ⟩."""
        w = w.reshape(self.n_features, self.width)
        if self._transforms is None:
            return w
        if len(self._transforms) == 1:
            return w @ self._transforms[0]
        return np.matmul(w[:, None, :], self._transforms)[:, 0]

    def _laid_out(self, w: np.ndarray) -> np.ndarray:
        """Weights of the bands as loops take them."""
        flat = self._zeros()
        self._by_feature(flat)[:] = self.band_weights(w)
        return flat

    def _zeros(self) -> np.ndarray:
        """Weights or sums of the loops, [feature][function]; vectors may touch what follows."""
        return aligned(self.tables.n_weights + _VECTOR, np.dtype(np.float64))

    def _by_feature(self, flat: np.ndarray) -> np.ndarray:
        """Weights or sums of the loops as [feature][function]: a view."""
        tables = self.tables
        return flat[: tables.n_weights].reshape(-1, tables.stride)[:, : self.width]

    def _transformed(self, flat: np.ndarray) -> np.ndarray:
        """R times sums of bands."""
        sums = self._by_feature(flat)
        if self._transforms is None:
            return sums.ravel()
        if len(self._transforms) == 1:
            return (sums @ self._transforms[0].T).ravel()
        return np.matmul(self._transforms, sums[:, :, None]).ravel()

    def scores(self, w: np.ndarray) -> np.ndarray:
        """ψ(X) w."""
        v, out = self._laid_out(w), np.empty(self.n_rows)
        for rows, bands in self:
            _band_loops.scores(bands, v, out[rows])
        return out

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """ψ(X)ᵀ v."""
        flat = self._zeros()
        for rows, bands in self:
            _band_loops.add_rows(bands, values[rows], flat)
        return self._transformed(flat)

    def product(self, weight: np.ndarray, w: np.ndarray, shift: float = 0.0) -> np.ndarray:
        """ψ(X)ᵀ W (ψ(X) w − shift); rows without a weight are left out."""
        v, score, flat = self._laid_out(w), np.zeros(1), self._zeros()
        for rows, bands in self:
            _band_loops.add_products(bands, weight[rows], v, float(shift), score, flat)
        return self._transformed(flat)

    def blocks(self, weight: np.ndarray) -> np.ndarray:
        """The block of ψ(X)ᵀ W ψ(X) of each feature, [feature][function][function]."""
        n, stride = self.n_features, self.tables.stride
        flat = aligned(n * stride**2 + _VECTOR * stride, np.dtype(np.float64))
        for rows, bands in self:
            _band_loops.add_block_products(bands, weight[rows], stride, flat)
        blocks = flat[: n * stride**2].reshape(n, stride, stride)
        blocks = blocks[:, : self.width, : self.width].copy()
        if self._transforms is not None:
            blocks = self._transforms @ blocks @ self._transforms.transpose(0, 2, 1)
        return blocks

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """ψ(X)ᵀ W ψ(X); rows without a weight are left out."""
        gram = self._gram_of_pairs(weight) if self._pairs_pay else self._gram_of_matrices(weight)
        if self._transforms is not None:  # of the rows, and, transposed, of the columns
            for _ in range(2):
                gram = self._transforms @ gram.reshape(self.n_features, self.width, -1)
                gram = gram.reshape((self.n_weights,) * 2).T
        return np.ascontiguousarray(gram)

    def gram_seconds(self, n_rows: int) -> float:
        """Predicted time of `gram` with so many rows that have a weight."""
        return n_rows * (self._pair_seconds if self._pairs_pay else self._matrix_seconds)

    @property
    def _pairs_pay(self) -> bool:
        """Whether products of entries take less time than those of dense matrices."""
        return self._pair_seconds < self._matrix_seconds

    @property
    def _pair_seconds(self) -> float:
        """Of a row."""
        is_cached = 8 * self.n_weights**2 <= COSTS.cache_bytes
        a_pair = COSTS.per_cached_pair if is_cached else COSTS.per_pair
        return a_pair * self.entries_per_row**2 / 2

    @property
    def _matrix_seconds(self) -> float:
        """Of a row."""
        return COSTS.per_multiplication * self.n_weights**2

    def _gram_of_pairs(self, weight: np.ndarray) -> np.ndarray:
        """Φᵀ W Φ by products of the entries of a row."""
        tables, width = self.tables, self.width
        row_length = tables.n_weights + _VECTOR
        flat = aligned(row_length**2, np.dtype(np.float64))
        for rows, bands in self:
            _band_loops.add_pair_products(bands, weight[rows], row_length, flat)
        square = flat.reshape(row_length, row_length)[: tables.n_weights, : tables.n_weights]
        n, stride = self.n_features, tables.stride
        sums = square.reshape(n, stride, n, stride)[:, :width, :, :width]
        return (sums + sums.transpose(2, 3, 0, 1)).reshape((self.n_weights,) * 2)

    def _gram_of_matrices(self, weight: np.ndarray) -> np.ndarray:
        """Φᵀ W Φ by products of dense matrices."""
        n_weights, gram = self.n_weights, np.zeros((self.n_weights,) * 2)
        for sign in (1.0, -1.0):
            roots = np.sqrt(np.maximum(sign * weight, 0.0))
            for rows, bands in self if roots.any() else ():
                n_rows = int(np.count_nonzero(roots[rows]))
                flat = aligned(n_rows * n_weights + _VECTOR, np.dtype(np.float64))
                _band_loops.write_dense(
                    bands, roots[rows], self.tables.stride, self.width, n_weights, flat
                )
                dense = flat[: n_rows * n_weights].reshape(n_rows, n_weights)
                gram += sign * (dense.T @ dense)
        return gram
