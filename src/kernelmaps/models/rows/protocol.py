r"""What a solver asks of rows: losses, gradients and working least-squares problems.

Row i of the model matrix Z is :math:`z_i`, its linear predictor :math:`η_i = o_i + z_i^\top β`
with an offset :math:`o_i`, and its loss :math:`c_iℓ(y_i, η_i)` with a sample weight :math:`c_i`.
Z is never stored: coded rows sum over bins, rows through a map compute it block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..._util.threads import cached_property
from ..losses import Loss
from .basis import Basis

MIN_SHARING_LEVELS = 8  # levels for each distinct weight, on average: fewer save no work


@dataclass(frozen=True)
class LevelSums:
    """The part of ZᵀWZ that belongs to the levels of a large factor, where it is diagonal.

    Attributes
    ----------
    border : ndarray of shape (n_levels, n_coefficients)
        Products with the other coefficients.
    weight : ndarray of shape (n_levels,)
        The diagonal: working weights of the levels.
    """

    border: np.ndarray
    weight: np.ndarray

    def __add__(self, other: LevelSums) -> LevelSums:
        return LevelSums(self.border + other.border, self.weight + other.weight)

    @cached_property
    def by_weight(self) -> tuple[np.ndarray, np.ndarray] | None:
        """One level of each weight, and BᵀB of all levels that share it; None if few share one.

        Levels of as many rows, each of weight one, have the same weight: sums over them need not be
        computed again for each smoothing parameter.
        """
        _, first, group, counts = np.unique(
            self.weight, return_index=True, return_inverse=True, return_counts=True
        )
        if len(first) * max(self.border.shape[1], MIN_SHARING_LEVELS) > len(group):
            return None
        order, ends = np.argsort(group, kind="stable"), np.cumsum(counts)
        members = (order[end - count : end] for end, count in zip(ends, counts, strict=True))
        return first, np.stack([self.border[rows].T @ self.border[rows] for rows in members])


@dataclass(frozen=True)
class NormalEquations:
    r"""The sums of a weighted least-squares problem :math:`\min_β (z - Zβ)^\top W (z - Zβ)`.

    Attributes
    ----------
    gram : ndarray
        ZᵀWZ, without the levels of a large factor.
    rhs : ndarray
        ZᵀWz, the levels last.
    square : float
        zᵀWz.
    total_weight : float
        Sum of the sample weights: n where all are one.
    levels : LevelSums, optional
        ZᵀWZ of the levels of a large factor.
    root : ndarray, optional
        :math:`W^{1/2}Z`, if there are far fewer rows than coefficients.
    """

    gram: np.ndarray
    rhs: np.ndarray
    square: float
    total_weight: float
    levels: LevelSums | None = None
    root: np.ndarray | None = None

    @property
    def working_weight(self) -> float:
        """Sum of the working weights, the intercept's entry of ZᵀWZ: n for squared loss."""
        return float(self.gram[0, 0])

    def restricted(self, active: np.ndarray) -> NormalEquations:
        """The problem in some of the coefficients, all levels among them."""
        dense, levels = active, self.levels
        if levels is not None:
            dense = active[active < len(self.gram)]
            levels = LevelSums(levels.border[:, dense], levels.weight)
        gram, root = self.gram[np.ix_(dense, dense)], self.root
        if root is not None:
            root = root[:, active]
        return NormalEquations(gram, self.rhs[active], self.square, self.total_weight, levels, root)

    def product(self, beta: np.ndarray) -> np.ndarray:
        """ZᵀWZβ, for one or more columns β."""
        if self.root is not None:
            return self.root.T @ (self.root @ beta)
        if self.levels is None:
            return self.gram @ beta
        dense, theta = np.split(beta, [len(self.gram)])
        border, weight = self.levels.border, self.levels.weight
        of_levels = border @ dense + (weight * theta.T).T
        return np.concatenate([self.gram @ dense + border.T @ theta, of_levels])

    def __add__(self, other: NormalEquations) -> NormalEquations:
        levels = self.levels
        if levels is not None and other.levels is not None:
            levels = levels + other.levels
        return NormalEquations(
            self.gram + other.gram, self.rhs + other.rhs, self.square + other.square,
            self.total_weight + other.total_weight, levels,
        )  # fmt: skip


class LossEvaluation(Protocol):
    """The losses of rows at some coefficients β; `value` is their sum, without penalties."""

    @property
    def beta(self) -> np.ndarray: ...

    @property
    def value(self) -> float: ...

    def gradient(self) -> np.ndarray:
        """Derivatives of the losses by the coefficients."""
        ...

    def working_problem(self) -> NormalEquations:
        """The least-squares problem of a Newton (PIRLS) step from here.

        Its working weights are :math:`w_i = c_iℓ''_i` and its working responses
        :math:`η_i - o_i - ℓ'_i/ℓ''_i`.
        """
        ...


class LossRows(Protocol):
    """Rows, targets and a model matrix; `constraints` holds C of Cβ ≥ 0, or None."""

    @property
    def constraints(self) -> np.ndarray | None: ...

    def at(self, loss: Loss, beta: np.ndarray) -> LossEvaluation:
        """Evaluate the losses of all rows at some coefficients: one pass."""
        ...


class SolverRows(LossRows, Protocol):
    """Rows as codes of terms, whose smoothing parameters can be estimated."""

    @property
    def bases(self) -> Sequence[Basis]:
        """Of the terms; that of a large factor is the last."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether a gradient costs less than a working problem."""
        ...

    @property
    def total_weight(self) -> float: ...

    def gradient(self, loss: Loss, beta: np.ndarray) -> np.ndarray:
        """Derivatives of the losses at some coefficients by all of them: one pass."""
        ...

    def squared_problem(self) -> tuple[NormalEquations, float]:
        """The problem of squared loss, and the mean that was subtracted from the targets."""
        ...

    def restricted(self, active: np.ndarray) -> SolverRows:
        """The rows with some of the coefficients; `active` is sorted."""
        ...

    def initial_intercept(self, loss: Loss) -> float:
        """An intercept to start from."""
        ...
