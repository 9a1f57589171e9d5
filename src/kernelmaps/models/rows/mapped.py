"""Rows through a map: the model matrix is ψ(X), with a column of ones for an intercept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ...engine import Spec
from ...engine.piecewise import spec_of
from ...engine.table import code_table
from ..losses import Loss
from .in_memory import EvaluationInMemory

# Bytes of ψ(X) up to which it stays in memory; of more rows it is computed again in each pass.
MEMORY_LIMIT = 2**28
BLOCK_VALUES = 2**22  # numbers of ψ(X) that are computed at a time
SAME_WEIGHT = 1e-9  # relative difference of two working weights that are the same but for rounding


@dataclass
class GramUpdates:
    """Gram matrices ZᵀWZ from which the next one differs in some rows alone.

    The working weights of a squared hinge loss are a constant or zero: between two Newton steps, or
    between two classes, those of most rows stay. Of the first matrix and the latest, the one with
    fewer rows to change is updated.
    """

    known: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)  # W and ZᵀWZ

    def nearest(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The change of W, and the matrix to update; None if that is more work than a new one."""
        best, fewest = None, np.count_nonzero(weight) // 2
        for before, gram in self.known:
            # All weights may be multiplied by a number, such as a larger C.
            factor = weight.max() / before.max() if before.any() else 0.0
            change = weight - factor * before
            change[np.abs(change) <= SAME_WEIGHT * weight] = 0.0
            n_changed = np.count_nonzero(change)
            if n_changed < fewest:
                best, fewest = (change, factor * gram), n_changed
        return best

    def add(self, weight: np.ndarray, gram: np.ndarray) -> None:
        self.known = [*self.known[:1], (weight, gram)]


@dataclass(frozen=True)
class MapColumns:
    """Columns of ψ(X), and one of ones for an intercept, block by block."""

    transform: Callable[[Any], Any]
    X: Any
    n_columns: int
    fit_intercept: bool
    gram_updates: GramUpdates = field(default_factory=GramUpdates)

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]  # CSR matrices have no length

    @property
    def penalty(self) -> np.ndarray:
        """One for each column of ψ, zero for the intercept."""
        return np.append(np.ones(self.n_columns), np.zeros(int(self.fit_intercept)))

    def __iter__(self) -> Iterator[tuple[slice, np.ndarray]]:
        in_memory = self.n_rows * self.n_columns * 8 <= MEMORY_LIMIT
        return iter(self._stored if in_memory else self._computed())

    @cached_property
    def _stored(self) -> list[tuple[slice, np.ndarray]]:
        return list(self._computed())

    def _computed(self) -> Iterator[tuple[slice, np.ndarray]]:
        step = max(1, BLOCK_VALUES // max(self.n_columns, 1))
        for begin in range(0, self.n_rows, step):
            rows = slice(begin, min(begin + step, self.n_rows))
            psi = _dense(self.transform(self.X[rows]))
            ones = np.ones((len(psi), int(self.fit_intercept)))
            yield rows, np.hstack([psi, ones])

    def scores(self, beta: np.ndarray) -> np.ndarray:
        """Zβ."""
        eta = np.empty(self.n_rows)
        for rows, block in self:
            eta[rows] = block @ beta
        return eta

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Zᵀv."""
        return sum(block.T @ values[rows] for rows, block in self)

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """ZᵀWZ of weights that are not negative."""
        nearest = self.gram_updates.nearest(weight)
        if nearest is None:
            gram = self._products(weight)
        else:
            change, gram = nearest
            for sign in (1.0, -1.0):
                part = np.maximum(sign * change, 0.0)
                if part.any():
                    gram += sign * self._products(part)
        self.gram_updates.add(weight, gram)
        return gram

    def _products(self, weight: np.ndarray) -> np.ndarray:
        """ZᵀWZ by products of √W·Z with its transpose (SYRK), of rows with a positive weight.

        Most rows have none where a loss has curvature in a few rows alone.
        """
        gram = np.zeros((len(self.penalty),) * 2)
        for rows, block in self:
            positive = np.flatnonzero(weight[rows])
            if len(positive) < len(block):
                block = block[positive]
            root = np.sqrt(weight[rows][positive])[:, None] * block
            gram += root.T @ root
        return gram


PROBED_ROWS = 64  # rows that tell most columns of more than two values


@dataclass(frozen=True)
class TwoValuedColumns:
    r"""A map of rows of which some columns have two values: one coefficient for each of these.

    :math:`ψ_j` takes the values :math:`ψ_j(l)` and :math:`ψ_j(l) + δ_j`. An intercept absorbs
    :math:`⟨w_j, ψ_j(l)⟩`, and at the minimum of ½‖w‖² plus losses :math:`w_j` is a multiple of
    :math:`δ_j`: the column :math:`\|δ_j\|\,[x_j ≠ l]` has the same inner products.

    Attributes
    ----------
    transform : callable
        ψ, of all columns.
    widths : ndarray of int
        Columns of each :math:`ψ_j`.
    low : ndarray
        The smallest value of each column.
    is_two_valued : ndarray of bool
    at_low, difference : ndarray
        ψ(l) and δ of the columns of two values, in the columns of ψ, and 0 elsewhere.
    """

    transform: Callable[[Any], Any]
    widths: np.ndarray
    low: np.ndarray
    is_two_valued: np.ndarray
    at_low: np.ndarray
    difference: np.ndarray

    @classmethod
    def of(
        cls, transform: Callable[[Any], Any], widths: np.ndarray, X: Any, fit_intercept: bool
    ) -> TwoValuedColumns:
        """Look for such columns: in dense rows, and where there is an intercept."""
        low, (at_low, difference) = np.zeros(X.shape[1]), np.zeros((2, int(widths.sum())))
        is_two_valued = two_valued(X[:PROBED_ROWS], fit_intercept)
        candidates = np.flatnonzero(is_two_valued)
        if len(candidates):
            is_two_valued[candidates] = two_valued(X[:, candidates], True)
        if is_two_valued.any():
            low, high = X.min(axis=0), X.max(axis=0)
            ends = _dense(transform(np.stack([low, high])))
            at_low = np.where(np.repeat(is_two_valued, widths), ends[0], 0.0)
            difference = np.where(np.repeat(is_two_valued, widths), ends[1] - ends[0], 0.0)
        return cls(transform, widths, low, is_two_valued, at_low, difference)

    @cached_property
    def _length(self) -> np.ndarray:
        """Lengths of δ."""
        starts = np.concatenate([[0], np.cumsum(self.widths)[:-1]])
        return np.sqrt(np.add.reduceat(self.difference**2, starts))[self.is_two_valued]

    @property
    def n_columns(self) -> int:
        """Columns of `reduced`: those of ψ for columns of more than two values, then one each."""
        return reduced_columns(self.widths, self.is_two_valued)

    def count_high(self, X: np.ndarray) -> int:
        """How many values are not the smaller one of their column."""
        return int(np.count_nonzero(self.low != X))

    def coded(self, X: np.ndarray) -> tuple[sparse.csr_matrix, Spec]:
        """[x_j ≠ l] as sparse codes, where all columns have two values, and their map.

        The map of the codes has the columns of `reduced`.
        """
        codes = sparse.csr_matrix((self.low != X).astype(np.uint8))
        values = np.stack([np.zeros(len(self._length)), self._length], axis=1)[:, :, None]
        set_of = np.arange(len(values))
        return codes, spec_of(code_table(values, set_of, np.dtype(np.float64), zero_at_zero=True))

    def reduced(self, X: Any) -> np.ndarray:
        """The columns whose inner products are those of ψ(X), up to constants."""
        if not self.is_two_valued.any():
            return self.transform(X)
        is_high = X[:, self.is_two_valued] != self.low[self.is_two_valued]
        columns = is_high * self._length
        if self.is_two_valued.all():
            return columns
        is_mapped = ~np.repeat(self.is_two_valued, self.widths)
        return np.hstack([_dense(self.transform(X))[:, is_mapped], columns])

    def absorbed(self, weights: np.ndarray) -> np.ndarray:
        """What the intercepts of reduced columns have more than those of ψ: Σ ⟨w_j, ψ_j(l)⟩.

        `weights` are those of the reduced columns.
        """
        return self.at_low @ self.expanded(weights)

    def expanded(self, weights: np.ndarray) -> np.ndarray:
        """Weights [column of ψ][output] from weights [reduced column][output]."""
        repeated = np.repeat(self.is_two_valued, self.widths)
        n_others = int((~repeated).sum())
        out = np.zeros((len(repeated), weights.shape[1]))
        out[~repeated] = weights[:n_others]
        along = weights[n_others:] / np.maximum(self._length, 1e-300)[:, None]
        times = self.widths[self.is_two_valued]
        out[repeated] = self.difference[repeated, None] * np.repeat(along, times, axis=0)
        return out


def reduced_columns(widths: np.ndarray, is_two_valued: np.ndarray) -> int:
    """The number of columns, with one for each column of X that has two values."""
    return int(np.where(is_two_valued, 1, widths).sum())


def two_valued(X: Any, fit_intercept: bool) -> np.ndarray:
    """Which columns of dense rows have at most two values; none without an intercept."""
    if sparse.issparse(X) or not fit_intercept:
        return np.zeros(X.shape[1], bool)
    return ((X.min(axis=0) == X) | (X.max(axis=0) == X)).all(axis=0)


def _dense(psi: Any) -> np.ndarray:
    return np.asarray(psi.toarray() if hasattr(psi, "toarray") else psi, np.float64)


@dataclass(frozen=True)
class MappedRows:
    """Columns of a map, with targets and sample weights."""

    columns: MapColumns
    y: np.ndarray
    weight: np.ndarray
    offset = 0.0
    constraints = None
    gram_cache = None

    @property
    def total_weight(self) -> float:
        return float(self.weight.sum())

    def at(self, loss: Loss, beta: np.ndarray) -> EvaluationInMemory:
        """Evaluate the losses of all rows at some coefficients."""
        return EvaluationInMemory.of(self, loss, beta, self.columns.scores(beta))

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Zᵀv."""
        return self.columns.adjoint(values)

    def gram_and_rhs(
        self, weight: np.ndarray, response: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """ZᵀWZ and Zᵀv."""
        return self.columns.gram(weight), self.columns.adjoint(response)

    def level_sums(self, weight: np.ndarray) -> None:
        """Rows of a map have no levels."""
