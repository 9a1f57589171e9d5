"""Exponential kernels exp(−γ D²) of the distance D of a base kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._util.arguments import check_positive
from .base import Kernel, Rows, UnitDiagonal
from .homogeneous import chi2


@dataclass(frozen=True)
class Exponential(UnitDiagonal):
    """The kernel exp(−γ ‖φ(x) − φ(y)‖²), with φ the feature space of `base`.

    For χ² the squared distance is Σ (x − y)²/(x + y), without a factor ½ (Li et al. 2012, eq. 14
    and Algorithm 1), and every base kernel gives a positive-definite exponential (Schoenberg).

    Parameters
    ----------
    base : Kernel
        The kernel whose distance is used; χ² by default.
    gamma : float
        γ > 0, the inverse of a squared length scale.
    """

    base: Kernel = chi2
    gamma: float = 1.0
    name = "exponential"

    def __post_init__(self) -> None:
        if not isinstance(self.base, Kernel):
            raise TypeError(f"Exponential: base must be a kernel, got {self.base!r}.")
        check_positive(self, "gamma", self.gamma)

    def with_parameter(self, value: float) -> Self:
        return replace(self, gamma=value)

    def _check_values(self, X: Any, name: str) -> None:
        self.base._check_values(X, name)

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        distance = self.base.squared_distance(X, Y, n_jobs=n_jobs)
        distance *= -self.gamma
        return np.exp(distance, out=distance)

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        return xp.exp(-self.gamma * self.base._distance_array_api(xp, X, Y))
