"""Exponential kernels exp(−γ D²) of the distance D of a base kernel.

The polynomial kernel (γ⟨x, y⟩ + c)^p, for comparisons: scikit-learn has the sketch of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._util.arguments import check_count, check_number, check_positive
from .._util.threads import limit_threads
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


@dataclass(frozen=True)
class Polynomial(Kernel):
    """Polynomial kernel (γ⟨x, y⟩ + c)^p, as scikit-learn's `polynomial_kernel`.

    Parameters
    ----------
    degree : int
        p >= 1.
    gamma : float
        γ > 0.
    coef0 : float
        c >= 0; a negative constant is not positive definite.
    """

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0
    name = "polynomial"

    def __post_init__(self) -> None:
        check_count(self, "degree", self.degree)
        check_positive(self, "gamma", self.gamma)
        check_number(self, "coef0", self.coef0, ">= 0", lambda c: c >= 0)

    def with_parameter(self, value: float) -> Self:
        return replace(self, gamma=value)

    def _power(self, products: Any) -> Any:
        return (self.gamma * products + self.coef0) ** self.degree

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        left = X.astype(np.float64)
        right = left if Y is None else Y.astype(np.float64)
        with limit_threads(n_jobs):
            products = safe_sparse_dot(left, right.T, dense_output=True)
        if Y is None:
            products = (products + products.T) / 2
        return self._power(products).astype(X.dtype, copy=False)

    def _diag(self, X: Rows) -> np.ndarray:
        squares = row_norms(X.astype(np.float64), squared=True)
        return self._power(squares).astype(X.dtype, copy=False)

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        return self._power(X @ Y.T)
