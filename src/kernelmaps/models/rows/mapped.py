"""Rows through a map: the model matrix is ψ(X), with a column of ones for an intercept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..losses import Loss
from .in_memory import EvaluationInMemory

# Bytes of ψ(X) up to which it stays in memory; of more rows it is computed again in each pass.
MEMORY_LIMIT = 2**28
BLOCK_VALUES = 2**22  # numbers of ψ(X) that are computed at a time


@dataclass(frozen=True)
class MapColumns:
    """Columns of ψ(X), and one of ones for an intercept, block by block."""

    transform: Callable[[Any], Any]
    X: Any
    n_columns: int
    fit_intercept: bool

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
            part = slice(begin, min(begin + step, self.n_rows))
            psi = self.transform(self.X[part])
            psi = np.asarray(psi.toarray() if hasattr(psi, "toarray") else psi, np.float64)
            ones = np.ones((len(psi), int(self.fit_intercept)))
            yield part, np.hstack([psi, ones])

    def scores(self, beta: np.ndarray) -> np.ndarray:
        """Zβ."""
        eta = np.empty(self.n_rows)
        for part, block in self:
            eta[part] = block @ beta
        return eta

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Zᵀv."""
        return sum(block.T @ values[part] for part, block in self)

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """ZᵀWZ of weights that are not negative, by products of √W·Z with its transpose (SYRK).

        Rows of weight 0 are left out: most of them where a loss has curvature in a few rows alone.
        """
        gram = np.zeros((len(self.penalty),) * 2)
        for part, block in self:
            positive = np.flatnonzero(weight[part])
            if len(positive) < len(block):
                block = block[positive]
            root = np.sqrt(weight[part][positive])[:, None] * block
            gram += root.T @ root
        return gram


@dataclass(frozen=True)
class MappedRows:
    """Columns of a map, with targets and sample weights."""

    columns: MapColumns
    y: np.ndarray
    weight: np.ndarray
    offset = 0.0
    cone = None
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

    def products(self, weight: np.ndarray, response: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ZᵀWZ and Zᵀv."""
        return self.columns.gram(weight), self.columns.adjoint(response)
