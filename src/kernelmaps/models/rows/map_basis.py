"""The spec of an additive map as a local basis; columns of two values have one weight each.

Nothing here loads a compiler.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._util.lazy import scipy
from ..._util.sparse import dense, is_sparse
from ..._util.threads import cached_property
from ...engine import Spec, apply
from ...engine.extent import column_range, extent_of, extent_of_rows
from ...engine.piecewise import table_of
from ...engine.table import AFFINE, EDGES, LOG2, Table
from ...engine.tabulated import make_table


@dataclass(frozen=True)
class MapBasis:
    """An additive map through a local basis: ψ_j = R_s Φ, s the set of feature j.

    Few functions of Φ, consecutive ones, are not zero at a value.

    Attributes
    ----------
    table : Table
        Of Φ, in the engine's layout.
    transforms : ndarray (m, n, n) or None
        The different R's; None if there is only the identity.
    transform_of : int[sets]
        Which of them a set has.
    """

    table: Table
    transforms: np.ndarray | None
    transform_of: np.ndarray

    def transform_weights(self, weights: np.ndarray) -> np.ndarray:
        """Weights w of ψ, [column][output], as weights Rᵀw of Φ: ⟨w, RΦ⟩ = ⟨Rᵀw, Φ⟩."""
        set_of = self.table.set_of
        ends = np.concatenate([[0], np.cumsum(self.widths)])
        out = np.zeros((len(set_of), int(self.table.width.max()), weights.shape[1]))
        for j, s in enumerate(set_of):
            local = weights[ends[j] : ends[j + 1]]
            if self.transforms is not None:
                local = self.transforms[self.transform_of[s]].T @ local
            out[j, : len(local)] = local
        return out

    @property
    def widths(self) -> np.ndarray:
        """Columns of each ψ_j."""
        return self.table.width[self.table.set_of]

    def select(self, features: np.ndarray) -> MapBasis:
        """The basis of some features alone."""
        sets = self.table.set_of[features]
        return replace(self, table=self.table.take_sets(sets), transform_of=self.transform_of[sets])

    def join(self, table: Table) -> MapBasis:
        """The basis of these features, and of others whose table is that of ψ itself."""
        transforms, index = self.transforms, 0
        if transforms is not None:
            identity = np.eye(transforms.shape[1])[None]
            transforms, index = np.concatenate([transforms, identity]), len(transforms)
        index_of_others = np.full(len(table.origin), index, np.int32)
        transform_of = np.concatenate([self.transform_of, index_of_others])
        return MapBasis(self.table.join(table), transforms, transform_of)


def make_basis(spec: Spec, X: Any, dtype: np.dtype) -> MapBasis:
    """The basis of a spec: the stored one (splines), or the map's table as it is.

    Tables of curves cover the range of the rows X.
    """
    if "mix" in spec.arrays:
        full = table_of(spec)
        coef = spec.arrays["band_coef"]
        _, bins, powers, n_stored = coef.shape
        sets = len(full.origin)
        first_column = np.tile(spec.arrays["band_first"], len(coef))
        block_of = spec.arrays["band_of"].astype(np.int64)
        table = replace(
            full,
            coef=coef.ravel(),
            coef_start=block_of * (bins * powers * n_stored),
            first=first_column,
            first_start=block_of * bins,
            band=np.full(sets, n_stored, np.int32),
        )
        transforms = spec.arrays["mix"]
        plain = len(transforms) == 1 and np.array_equal(transforms[0], np.eye(len(transforms[0])))
        return MapBasis(table, None if plain else transforms, spec.arrays["mix_of"])
    extent = extent_of(X.data[None, :]) if is_sparse(X) else extent_of_rows(X, 1)
    curves = make_table(spec, dtype, X.shape[1], extent)
    if curves is None:  # finer than a table is worth in this precision
        curves = make_table(spec, np.dtype(np.float32), X.shape[1], extent)
    if curves is None:
        raise ValueError(
            "the values reach so far beyond the ranges that the map was fitted to (or its features "
            "are of so different size) that no table holds its curves: use "
            "out_of_domain='clip' instead of 'extrapolate', or scale the features."
        )
    return MapBasis(curves.astype(np.float64), None, np.zeros(len(curves.origin), np.int32))


_PROBED_ROWS = 64  # rows that tell most columns of more than two values
# Values of dense rows that stay, as a share of all, up to which codes pay next to other columns:
# values of sparse rows are located one by one, not in vectors. Splines, three losses, C = 1, in
# units of the time with all functions: 1.2 to 1.5 for a share of 0.75 and 0.9 to 1.2 for 0.55
# (5000 × 40), 0.2 to 0.5 for 0.08 (8000 × 102).
_MOST_STORED = 0.5


@dataclass(frozen=True)
class TwoValuedColumns:
    r"""Columns of two values, with one weight each, next to others that keep their functions.

    :math:`ψ_j` takes the values :math:`ψ_j(r)` at a reference value and :math:`ψ_j(r) + δ_j`. An
    intercept absorbs :math:`⟨w_j, ψ_j(r)⟩`, and at the minimum of ½‖w‖² plus losses :math:`w_j` is
    a multiple of :math:`δ_j`: the column :math:`\|δ_j\|\,[x_j ≠ r]` has the same inner products. In
    sparse rows r is zero, :math:`ψ_j(0)`, too, and there is nothing to absorb.

    Rows are stored by row (CSR), without the reference values. Of the other columns all values are
    stored. Several columns of two values share a feature behind those of the other columns, which
    has as many functions as they: a row has a value for each, the code (the number) of the column.

    Attributes
    ----------
    map_basis : MapBasis
        Those of ψ.
    is_two_valued : ndarray of bool
        Which columns have two values.
    reference : ndarray
        r.
    at_reference, difference : ndarray
        ψ(r) and δ, in the columns of ψ; zero for other columns.
    """

    map_basis: MapBasis
    is_two_valued: np.ndarray
    reference: np.ndarray
    at_reference: np.ndarray
    difference: np.ndarray

    @classmethod
    def detect(cls, spec: Spec, X: Any) -> TwoValuedColumns | None:
        """The columns of rows; None if codes do not pay.

        Codes do not stand next to bins of octaves, which are the same for all features.
        """
        ends, is_two_valued = _stored_ends(X) if is_sparse(X) else _ends(X)
        if not is_two_valued.any():
            return None
        basis = make_basis(spec, X if is_sparse(X) else ends, np.dtype(np.float64))
        if basis.table.binning == LOG2 and not is_two_valued.all():
            return None
        mapped = np.asarray(dense(apply(spec, ends)), np.float64)
        mapped[:, np.repeat(~is_two_valued, basis.widths)] = 0.0
        return cls(basis, is_two_valued, ends[0], mapped[0], mapped[1] - mapped[0])

    @cached_property
    def _code(self) -> np.ndarray:
        """The number of each column among those of two values, −1 before the first."""
        return np.cumsum(self.is_two_valued) - 1

    @cached_property
    def _codes_per_feature(self) -> int:
        """Columns of two values that share a feature."""
        return int(self.map_basis.widths[~self.is_two_valued].max(initial=1))

    @cached_property
    def _place(self) -> tuple[np.ndarray, np.ndarray]:
        """The feature of each column, and its function there (zero for other columns)."""
        is_curve = ~self.is_two_valued
        shared, function = np.divmod(self._code, self._codes_per_feature)
        feature = np.where(is_curve, np.cumsum(is_curve) - 1, np.count_nonzero(is_curve) + shared)
        return feature, np.where(is_curve, 0, function)

    @property
    def n_weights(self) -> int:
        """Weights of the codes and of the functions of other columns."""
        return int(np.where(self.is_two_valued, 1, self.map_basis.widths).sum())

    @cached_property
    def _length(self) -> np.ndarray:
        """Lengths of δ."""
        starts = np.cumsum(self.map_basis.widths) - self.map_basis.widths
        return np.sqrt(np.add.reduceat(self.difference**2, starts))

    def encode(self, X: Any) -> Any:
        """The rows, with codes (the middles of bins) instead of the values of these columns."""
        if is_sparse(X):
            columns, values, ends = X.indices, X.data, X.indptr
        else:
            stored = (self.reference != X) | ~self.is_two_valued
            places = np.flatnonzero(stored)
            columns, values = places % X.shape[1], X.reshape(-1)[places]
            ends = np.concatenate([[0], np.cumsum(np.count_nonzero(stored, axis=1))])
        feature = self._place[0].astype(np.int32)
        codes = (self._code + 0.5).astype(X.dtype if X.dtype.kind == "f" else np.float32)
        codes = np.where(self.is_two_valued[columns], codes[columns], values)
        shape = X.shape[0], int(feature.max()) + 1
        rows = scipy.sparse.csr_matrix((codes, feature[columns], ends), shape)
        rows.sort_indices()  # values of a feature side by side
        return rows

    @cached_property
    def basis(self) -> MapBasis:
        """The basis of coded rows: ‖δ_j‖ in a bin for each code, after those of other columns."""
        curves = None
        if not self.is_two_valued.all():
            curves = self.map_basis.select(np.flatnonzero(~self.is_two_valued))
        binning, degree = (curves.table.binning, curves.table.degree) if curves else (AFFINE, 0)
        features, functions = (place[self.is_two_valued] for place in self._place)
        lengths = self._length[self.is_two_valued]
        coef = np.zeros((len(lengths), degree + 1, 1))
        coef[:, 0, 0] = lengths
        table = Table.build(
            binning,
            degree,
            [coef],
            np.zeros(len(np.unique(features)), int),
            origin=np.zeros(1),
            resolution=np.ones(1),
            width=np.array([self._codes_per_feature]),
            first=[functions],
            edges=[np.arange(len(lengths) + 1.0)] if binning == EDGES else None,
        )
        return curves.join(table) if curves else MapBasis(table, None, np.zeros(1, np.int32))

    def transform_weights(self, weights: np.ndarray) -> np.ndarray:
        """Weights of the basis of ψ, from those of coded rows: [feature][function][output]."""
        out = self.map_basis.transform_weights(self._expand(weights))
        # Columns of two values may have more functions than any of the others.
        out[~self.is_two_valued, : weights.shape[1]] = weights[self._place[0][~self.is_two_valued]]
        return out

    def intercept_shift(self, weights: np.ndarray) -> np.ndarray:
        """What the intercepts of coded rows have more than those of ψ: Σ ⟨w_j, ψ_j(r)⟩."""
        return self.at_reference @ self._expand(weights)

    def _expand(self, weights: np.ndarray) -> np.ndarray:
        """Weights [column of ψ][output] of columns of two values; zero for others."""
        along = weights[self._place] / np.maximum(self._length, 1e-300)[:, None]
        return self.difference[:, None] * np.repeat(along, self.map_basis.widths, axis=0)


Ends = tuple[np.ndarray, np.ndarray]
"""References and other values of the columns, and which of them have no others."""


def _ends(X: np.ndarray) -> Ends:
    """Columns of two values of dense rows; none if codes do not save time."""
    probe = X[:: max(1, len(X) // _PROBED_ROWS)]
    for rows in (probe, X):
        ends = np.stack(column_range(rows, 1)).astype(X.dtype)
        is_two_valued = ((rows == ends[0]) | (rows == ends[1])).all(axis=0)
        n_stored = np.count_nonzero((ends[0] != probe) | ~is_two_valued)
        # Integers are looked up, without arithmetic.
        pays = X.dtype.kind == "f" and n_stored <= _MOST_STORED * probe.size
        if not (pays or is_two_valued.all()):
            return ends, np.zeros(X.shape[1], bool)
    return ends, is_two_valued


def _stored_ends(X: Any) -> Ends:
    """The same of sparse rows."""
    ends = np.zeros((2, X.shape[1]), X.dtype)
    ends[1, X.indices] = X.data
    is_two_valued = np.ones(X.shape[1], bool)
    is_two_valued[X.indices[ends[1, X.indices] != X.data]] = False
    return ends, is_two_valued & (X.dtype.kind == "f" or is_two_valued.all())
