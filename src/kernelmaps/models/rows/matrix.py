"""Rows as a model matrix in memory: for a few columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses import Loss
from .in_memory import EvaluationInMemory
from .protocol import NormalEquations


@dataclass(frozen=True)
class MatrixRows:
    """A model matrix Z, with targets and sample weights."""

    Z: np.ndarray
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
        return EvaluationInMemory.of(self, loss, beta, self.Z @ beta)

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Zᵀv."""
        return self.Z.T @ values

    def normal_equations(
        self, weight: np.ndarray, response: np.ndarray, square: float
    ) -> NormalEquations:
        """The problem with working weights W, Zᵀv on the right side, and zᵀWz."""
        gram = self.Z.T @ (weight[:, None] * self.Z)
        return NormalEquations(gram, self.adjoint(response), square, self.total_weight)
