"""Rows whose columns have two values each: codes with one weight for each column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ...blocks import row_blocks
from ...engine import Spec
from ...engine.extent import column_range
from ...engine.piecewise import spec_of
from ...engine.table import code_table

_CACHED_BYTES = 2**18
_PROBED_ROWS = 64  # rows that tell most tables with a column of more than two values


@dataclass(frozen=True)
class TwoValuedColumns:
    r"""A map of rows whose columns have two values: one weight for each column.

    :math:`ψ_j` takes the values :math:`ψ_j(l)` and :math:`ψ_j(l) + δ_j`. An intercept absorbs
    :math:`⟨w_j, ψ_j(l)⟩`, and at the minimum of ½‖w‖² plus losses :math:`w_j` is a multiple of
    :math:`δ_j`: the column :math:`\|δ_j\|\,[x_j ≠ l]` has the same inner products.

    Attributes
    ----------
    widths : ndarray of int
        Columns of each :math:`ψ_j`.
    low : ndarray
        The smallest value of each column.
    at_low, difference : ndarray
        ψ(l) and δ, in the columns of ψ.
    """

    widths: np.ndarray
    low: np.ndarray
    at_low: np.ndarray
    difference: np.ndarray

    @classmethod
    def of(
        cls, transform: Callable[[Any], Any], widths: np.ndarray, X: Any
    ) -> TwoValuedColumns | None:
        """The columns of dense rows; None if one has more than two values."""
        if sparse.issparse(X) or _ends_of_two_valued(X[:_PROBED_ROWS]) is None:
            return None
        ends = _ends_of_two_valued(X)
        if ends is None:
            return None
        low = ends[0]
        ends = transform(ends)
        ends = np.asarray(ends.toarray() if sparse.issparse(ends) else ends, np.float64)
        return cls(widths, low, ends[0], ends[1] - ends[0])

    @cached_property
    def _length(self) -> np.ndarray:
        """Lengths of δ."""
        starts = np.concatenate([[0], np.cumsum(self.widths)[:-1]])
        return np.sqrt(np.add.reduceat(self.difference**2, starts))

    def coded(self, X: np.ndarray) -> tuple[sparse.csr_matrix, Spec]:
        """[x_j ≠ l] as sparse codes, and their map."""
        n, d = X.shape
        places = np.concatenate(
            [rows.start * d + np.flatnonzero(X[rows] != self.low) for rows in _cached_blocks(X)]
        )
        ends = np.searchsorted(places, d * np.arange(n + 1))
        codes = sparse.csr_matrix(
            (np.ones(len(places), np.uint8), (places % d).astype(np.int32), ends), (n, d)
        )
        values = np.stack([np.zeros(len(self._length)), self._length], axis=1)[:, :, None]
        set_of = np.arange(len(values))
        return codes, spec_of(code_table(values, set_of, np.dtype(np.float64), zero_at_zero=True))

    def absorbed(self, weights: np.ndarray) -> np.ndarray:
        """What the intercepts of the codes have more than those of ψ: Σ ⟨w_j, ψ_j(l)⟩.

        `weights` are those of the codes, [column][output].
        """
        return self.at_low @ self.expanded(weights)

    def expanded(self, weights: np.ndarray) -> np.ndarray:
        """Weights [column of ψ][output] from weights of the codes."""
        along = weights / np.maximum(self._length, 1e-300)[:, None]
        return self.difference[:, None] * np.repeat(along, self.widths, axis=0)


def _cached_blocks(X: np.ndarray) -> list[slice]:
    """Blocks of rows that stay in a cache while they are compared twice."""
    return row_blocks(len(X), X.itemsize * X.shape[1], _CACHED_BYTES)


def _ends_of_two_valued(X: np.ndarray) -> np.ndarray | None:
    """The smallest and the largest value of each column; None if one has more than two values."""
    low, high = (end.astype(X.dtype) for end in column_range(X, 1))
    for rows in _cached_blocks(X):
        if ((X[rows] != low) & (X[rows] != high)).any():
            return None
    return np.stack([low, high])
