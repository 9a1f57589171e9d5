"""Columns of two values have one weight each, alone or beside columns of more values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..._util.threads import cached_property, row_blocks
from ...engine import Spec, apply
from ...engine.extent import column_range
from ...engine.table import CODE, EDGES, LOG2, Table
from .map_bands import Bands, bands_of

_CACHED_BYTES = 2**18
_PROBED_ROWS = 64  # rows that tell most columns of more than two values
# Values of dense rows that stay, as a share of all, up to which codes pay beside other columns:
# values of sparse rows are located one by one, not in vectors. Splines, three losses, C = 1, in
# units of the time with all functions: 1.2 to 1.5 for a share of 0.75 and 0.9 to 1.2 for 0.55
# (5000 × 40), 0.2 to 0.5 for 0.08 (8000 × 102).
_MOST_STORED = 0.5


class StoredValues(NamedTuple):
    """Values of rows that are stored by row: their columns, and where rows begin and end."""

    columns: np.ndarray
    values: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, reference: np.ndarray, may_skip: np.ndarray) -> StoredValues:
        """Those of dense rows; columns in `may_skip` do not store their reference values."""
        n, d = X.shape
        if not may_skip.all():
            reference = np.where(may_skip, reference, np.nan)  # which no value is equal to
        blocks = row_blocks(n, X.itemsize * d, _CACHED_BYTES)
        places = np.concatenate(
            [rows.start * d + np.flatnonzero(X[rows] != reference) for rows in blocks]
        )
        ends = np.searchsorted(places, d * np.arange(n + 1))
        return cls(places % d, X.reshape(-1)[places], ends)

    def are(self, values: np.ndarray) -> np.ndarray:
        """Whether all values of a column are the one given for it."""
        same = np.ones(len(values), bool)
        same[self.columns[self.values != values[self.columns]]] = False
        return same


@dataclass(frozen=True)
class TwoValuedColumns:
    r"""Columns of two values, with one weight each, beside others that keep their functions.

    :math:`ψ_j` takes the values :math:`ψ_j(r)` at a reference value and :math:`ψ_j(r) + δ_j`. An
    intercept absorbs :math:`⟨w_j, ψ_j(r)⟩`, and at the minimum of ½‖w‖² plus losses :math:`w_j` is
    a multiple of :math:`δ_j`: the column :math:`\|δ_j\|\,[x_j ≠ r]` has the same inner products. In
    sparse rows r is zero, :math:`ψ_j(0)`, too, and there is nothing to absorb.

    Rows are stored by row (CSR), without the reference values. Of the other columns all values are
    stored. Several columns of two values share a feature, which has as many functions as the
    others: a row has a value for each of them, the code (the number) of the column.

    Attributes
    ----------
    map_bands : Bands
        Those of ψ.
    is_two_valued : ndarray of bool
        Which columns have two values.
    reference : ndarray
        r.
    at_reference, difference : ndarray
        ψ(r) and δ, in the columns of ψ; zero for other columns.
    rows : array or CSR
        Those that the columns were found in.
    stored : StoredValues
        Of these rows.
    """

    map_bands: Bands
    is_two_valued: np.ndarray
    reference: np.ndarray
    at_reference: np.ndarray
    difference: np.ndarray
    rows: Any
    stored: StoredValues

    @classmethod
    def of(cls, spec: Spec, X: Any) -> TwoValuedColumns | None:
        """The columns of rows; None if codes do not pay.

        Codes do not stand beside bins of octaves, which are the same for all features.
        """
        detected = _detect_in_sparse(X) if sparse.issparse(X) else _detect(X)
        if detected is None:
            return None
        ends, is_two_valued, stored = detected
        bands = bands_of(spec, X if sparse.issparse(X) else ends, np.dtype(np.float64))
        if bands.table.binning == LOG2 and not is_two_valued.all():
            return None
        mapped = apply(spec, ends)
        mapped = np.asarray(mapped.toarray() if sparse.issparse(mapped) else mapped, np.float64)
        mapped[:, np.repeat(~is_two_valued, _widths(bands))] = 0.0
        difference = mapped[1] - mapped[0]
        return cls(bands, is_two_valued, ends[0], mapped[0], difference, X, stored)

    @cached_property
    def widths(self) -> np.ndarray:
        """Columns of each ψ_j."""
        return _widths(self.map_bands)

    @property
    def is_all(self) -> bool:
        """Whether all columns have two values."""
        return bool(self.is_two_valued.all())

    @cached_property
    def _per_feature(self) -> int:
        """Columns of two values that share a feature."""
        return 1 if self.is_all else int(self.widths[~self.is_two_valued].max())

    @cached_property
    def _place(self) -> tuple[np.ndarray, np.ndarray]:
        """The feature of each column, and its function there (zero for other columns).

        Features are in the order of their first columns: most tables have columns of two values
        side by side, and rows are then sorted by feature as they are.
        """
        order = np.cumsum(self.is_two_valued) - 1
        function = np.where(self.is_two_valued, order % self._per_feature, 0)
        starts = np.cumsum(function == 0) - 1
        feature = starts.copy()
        # Columns of two values join the last feature of such that was started.
        latest = np.maximum.accumulate(np.where(self.is_two_valued & (function == 0), starts, -1))
        feature[self.is_two_valued] = latest[self.is_two_valued]
        return feature, function

    @property
    def n_weights(self) -> int:
        """Weights of the codes and of the functions of other columns."""
        return int(np.where(self.is_two_valued, 1, self.widths).sum())

    @cached_property
    def _length(self) -> np.ndarray:
        """Lengths of δ."""
        starts = np.concatenate([[0], np.cumsum(self.widths)[:-1]])
        return np.sqrt(np.add.reduceat(self.difference**2, starts))

    def coded(self, X: Any) -> sparse.csr_matrix:
        """The rows, with codes instead of the values of these columns."""
        if X is self.rows:
            columns, values, ends = self.stored
        elif sparse.issparse(X):
            columns, values, ends = X.indices, X.data, X.indptr
        else:
            columns, values, ends = StoredValues.of(X, self.reference, self.is_two_valued)
        feature = self._place[0].astype(np.int32)
        code = np.cumsum(self.is_two_valued) - 1
        if self.is_all:
            codes = code.astype(np.min_scalar_type(len(code)))[columns]
        else:  # the middle of a bin
            codes = np.where(
                self.is_two_valued[columns], (code + 0.5).astype(X.dtype)[columns], values
            )
        shape = X.shape[0], int(feature.max()) + 1
        rows = sparse.csr_matrix((codes, feature[columns], ends), shape)
        rows.sort_indices()  # values of a feature side by side
        return rows

    @cached_property
    def bands(self) -> Bands:
        """The bands of coded rows."""
        if self.is_all:
            table = self._code_table(CODE, 0)
            return Bands(table, None, np.zeros(len(table.origin), np.int32))
        others = self.map_bands.of_features(np.flatnonzero(~self.is_two_valued))
        bands = others.beside(self._code_table(others.table.binning, others.table.degree))
        is_coded = np.ones(bands.table.n_features, bool)
        is_coded[self._place[0][~self.is_two_valued]] = False
        return bands.of_features(np.argsort(np.argsort(is_coded, kind="stable")))

    def _code_table(self, binning: int, degree: int) -> Table:
        """‖δ_j‖ of the codes: one bin for each column, with one of the functions of its feature."""
        lengths = self._length[self.is_two_valued]
        coef = np.zeros((len(lengths), degree + 1, 1))
        coef[:, 0, 0] = lengths
        features, functions = (place[self.is_two_valued] for place in self._place)
        return Table.build(
            binning,
            degree,
            [coef],
            np.zeros(len(np.unique(features)), int),
            origin=np.zeros(1),
            resolution=np.ones(1),
            width=np.array([self._per_feature]),
            first=[functions],
            edges=[np.arange(len(lengths) + 1.0)] if binning == EDGES else None,
        )

    def band_weights(self, weights: np.ndarray) -> np.ndarray:
        """Weights of the bands of ψ, from those of coded rows: [feature][function][output]."""
        out = self.map_bands.band_weights(self._expanded(weights))
        # Columns of two values may have more functions than any of the others.
        out[~self.is_two_valued, : weights.shape[1]] = weights[self._place[0][~self.is_two_valued]]
        return out

    def absorbed(self, weights: np.ndarray) -> np.ndarray:
        """What the intercepts of coded rows have more than those of ψ: Σ ⟨w_j, ψ_j(r)⟩."""
        return self.at_reference @ self._expanded(weights)

    def _expanded(self, weights: np.ndarray) -> np.ndarray:
        """Weights [column of ψ][output] of columns of two values; zero for others."""
        along = weights[self._place] / np.maximum(self._length, 1e-300)[:, None]
        return self.difference[:, None] * np.repeat(along, self.widths, axis=0)


def _widths(bands: Bands) -> np.ndarray:
    return bands.table.width[bands.table.set_of]


Detected = tuple[np.ndarray, np.ndarray, StoredValues]
"""References and other values of the columns, which of them have no others, and what is stored."""


def _detect(X: np.ndarray) -> Detected | None:
    """Columns of two values of dense rows; None if codes do not save time."""
    some = X[:: max(1, len(X) // _PROBED_ROWS)]
    ends = _column_ends(some)
    is_two_valued = ((some == ends[0]) | (some == ends[1])).all(axis=0)
    if not _pays(some, ends[0], is_two_valued):
        return None
    ends = _column_ends(X)
    stored = StoredValues.of(X, ends[0], is_two_valued)
    has_others = is_two_valued & ~stored.are(ends[1])
    if has_others.any():
        is_two_valued = is_two_valued & ~has_others
        if not _pays(some, ends[0], is_two_valued):
            return None
        stored = StoredValues.of(X, ends[0], is_two_valued)
    return ends, is_two_valued, stored


def _detect_in_sparse(X: sparse.csr_matrix) -> Detected | None:
    """The same of sparse rows; None without such columns."""
    stored = StoredValues(X.indices, X.data, X.indptr)
    ends = np.zeros((2, X.shape[1]), X.dtype)
    ends[1, stored.columns] = stored.values
    is_two_valued = stored.are(ends[1])
    pays = is_two_valued.any() if X.dtype.kind == "f" else is_two_valued.all()
    return (ends, is_two_valued, stored) if pays else None


def _pays(X: np.ndarray, reference: np.ndarray, is_two_valued: np.ndarray) -> bool:
    """Whether codes of such columns, in dense rows of which these are some, save time."""
    if is_two_valued.all() or X.dtype.kind != "f":  # integers are looked up, without arithmetic
        return bool(is_two_valued.all())
    n_stored = np.count_nonzero((reference != X) | ~is_two_valued)
    return n_stored <= _MOST_STORED * X.size


def _column_ends(X: np.ndarray) -> np.ndarray:
    """The smallest and the largest value of each column, in two rows."""
    return np.stack(column_range(X, 1)).astype(X.dtype)
