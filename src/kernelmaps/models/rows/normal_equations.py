r"""The sums of working least-squares problems, which Newton (PIRLS) steps solve.

Row i of the model matrix Z is :math:`z_i`, its linear predictor :math:`η_i = o_i + z_i^\top β`
with an offset :math:`o_i`, and its loss :math:`c_iℓ(y_i, η_i)` with a sample weight :math:`c_i`.
The working weights of a problem are :math:`w_i = c_iℓ''_i`, its working responses
:math:`η_i - o_i - ℓ'_i/ℓ''_i`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._util.threads import cached_property

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
    def shared_grams(self) -> tuple[np.ndarray, np.ndarray] | None:
        """One level of each weight, and BᵀB of all levels that share it; None if few share one.

        Levels of as many rows, each of weight one, have the same weight: sums over them need not be
        computed again for each smoothing parameter.
        """
        _, level, group, counts = np.unique(
            self.weight, return_index=True, return_inverse=True, return_counts=True
        )
        if len(level) * max(self.border.shape[1], MIN_SHARING_LEVELS) > len(group):
            return None
        order, ends = np.argsort(group, kind="stable"), np.cumsum(counts)
        members = (order[end - count : end] for end, count in zip(ends, counts, strict=True))
        return level, np.stack([self.border[rows].T @ self.border[rows] for rows in members])


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
    variance_slopes : float
        Weighted sum of `Loss.variance_slopes`, by which φ is corrected.
    n_intercepts : int
        Intercepts, one for each linear predictor; they are the first coefficients.
    levels : LevelSums, optional
        ZᵀWZ of the levels of a large factor.
    """

    gram: np.ndarray
    rhs: np.ndarray
    square: float
    total_weight: float
    levels: LevelSums | None = None
    variance_slopes: float = 0.0
    n_intercepts: int = 1

    @property
    def dispersion_factor(self) -> float:
        """What an estimate of φ is divided by (Fletcher 2012); at least a tenth, as in mgcv."""
        return 1 + max(self.variance_slopes / max(self.total_weight, 1.0), -0.9)

    @property
    def working_weight(self) -> float:
        """Sum of the working weights, the intercept's entry of ZᵀWZ: n for squared loss.

        Of several linear predictors, their mean.
        """
        return float(self.gram.diagonal()[: self.n_intercepts].mean())

    def restrict(self, active: np.ndarray) -> NormalEquations:
        """The problem in some of the coefficients, all levels among them."""
        dense, levels = active, self.levels
        if levels is not None:
            dense = active[active < len(self.gram)]
            levels = LevelSums(levels.border[:, dense], levels.weight)
        gram = self.gram[np.ix_(dense, dense)]
        return replace(self, gram=gram, rhs=self.rhs[active], levels=levels)

    def product(self, beta: np.ndarray) -> np.ndarray:
        """ZᵀWZβ, for one or more columns β."""
        if self.levels is None:
            return self.gram @ beta
        dense, theta = np.split(beta, [len(self.gram)])
        border, weight = self.levels.border, self.levels.weight
        level_products = border @ dense + (weight * theta.T).T
        return np.concatenate([self.gram @ dense + border.T @ theta, level_products])

    def __add__(self, other: NormalEquations) -> NormalEquations:
        levels = self.levels
        if levels is not None and other.levels is not None:
            levels = levels + other.levels
        return NormalEquations(
            self.gram + other.gram, self.rhs + other.rhs, self.square + other.square,
            self.total_weight + other.total_weight, levels,
            variance_slopes=self.variance_slopes + other.variance_slopes,
            n_intercepts=self.n_intercepts,
        )  # fmt: skip


@dataclass(frozen=True)
class IndependentEquations:
    """Problems of several linear predictors that have no coefficients in common.

    Attributes
    ----------
    parts : tuple of NormalEquations
        Of each predictor.
    places : tuple of ndarray of int
        Positions of its coefficients among all.
    """

    parts: tuple[NormalEquations, ...]
    places: tuple[np.ndarray, ...]

    @cached_property
    def rhs(self) -> np.ndarray:
        """ZᵀWz."""
        return merge_parts([part.rhs for part in self.parts], self.places)

    @property
    def square(self) -> float:
        """zᵀWz."""
        return sum(part.square for part in self.parts)

    @property
    def total_weight(self) -> float:
        return self.parts[0].total_weight

    dispersion_factor = 1.0

    @property
    def working_weight(self) -> float:
        """Sum of the working weights, the mean of the predictors."""
        return sum(part.working_weight for part in self.parts) / len(self.parts)

    def product(self, beta: np.ndarray) -> np.ndarray:
        """ZᵀWZβ, for one or more columns β."""
        pairs = zip(self.parts, self.places, strict=True)
        return merge_parts([part.product(beta[place]) for part, place in pairs], self.places)

    def __add__(self, other: IndependentEquations) -> IndependentEquations:
        parts = zip(self.parts, other.parts, strict=True)
        return IndependentEquations(tuple(a + b for a, b in parts), self.places)


WorkingProblem = NormalEquations | IndependentEquations


def merge_parts(parts: Sequence[np.ndarray], places: Sequence[np.ndarray]) -> np.ndarray:
    """A vector, or the rows of a matrix, from parts and their positions."""
    out = np.empty((sum(map(len, places)), *parts[0].shape[1:]))
    for part, place in zip(parts, places, strict=True):
        out[place] = part
    return out
