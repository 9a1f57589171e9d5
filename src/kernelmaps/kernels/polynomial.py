"""The polynomial kernel (γ⟨x, y⟩ + c)^p, for comparisons: scikit-learn has the sketch of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._util.arguments import check_count, check_number, check_positive
from .._util.threads import limit_threads
from .base import Kernel, Rows


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
