r"""Newton steps by conjugate gradients, which take products with a Hessian and do not form it.

The Hessian of ½‖w‖² plus losses of Zw + b, whose second derivatives are the diagonal of W, is

.. math:: \begin{pmatrix} I + Z^\top W Z & Z^\top W 1 \\ 1^\top W Z & 1^\top W 1 \end{pmatrix}.

The intercept is eliminated: what is left, with the sum s of W and the mean m of the rows, weighted
by W, is the Hessian of centred rows, :math:`I + Z^\top W Z - s\,m m^\top`.

Its diagonal blocks, one for each feature, precondition it: for independent features they are all of
it but for the noise of the sample. Where features are correlated, or few rows have curvature, steps
take many products. Once these have taken as long as it takes to form and to factorise the Hessian,
that is done, and its factor preconditions the steps that follow: at most twice the time of the
better of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .linear_systems import cholesky_factor, cholesky_solve

Solve = Callable[[np.ndarray], np.ndarray]

MOST_FACTORISED = 3000  # weights, at most, of a Hessian that is formed
_MAX_PRODUCTS = 500  # of one step; the next one continues
# Ridges of a Hessian in units of rounding errors; see `linear_systems`.
_RIDGES = 10.0, 1e4, 1e7, 1e10


@dataclass(frozen=True)
class ProductCosts:
    """Times in seconds, on one core of an ARM Neoverse N1; their ratios matter."""

    per_entry: float = 1e-9  # a number of the rows, in a product with ZᵀWZ
    per_product: float = 5e-5  # vectors of weights
    per_multiplication: float = 1 / 1.5e10  # of a matrix product
    per_factor_entry: float = 1.4e-9  # of a Cholesky factor that a system is solved with


COSTS = ProductCosts()


class ProductRows(Protocol):
    """Rows Z whose products are computed without storing Z: those of `BandRows`."""

    @property
    def n_weights(self) -> int: ...

    @property
    def epsilon(self) -> float:
        """The relative rounding error of the sums."""
        ...

    @property
    def entries_per_row(self) -> float:
        """Numbers that a product reads of a row."""
        ...

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Zᵀv."""
        ...

    def product(self, weight: np.ndarray, w: np.ndarray, shift: float) -> np.ndarray:
        """ZᵀW(Zw − shift)."""
        ...

    def blocks(self, weight: np.ndarray) -> np.ndarray:
        """The blocks of ZᵀWZ of the features, [feature][function][function]."""
        ...

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """ZᵀWZ."""
        ...


@dataclass(frozen=True)
class CentredHessian:
    """I + ZᵀWZ − s m mᵀ; without an intercept, s and m are zero."""

    rows: ProductRows
    weight: np.ndarray
    total: float
    mean: np.ndarray

    @classmethod
    def of(cls, rows: ProductRows, weight: np.ndarray, fit_intercept: bool) -> CentredHessian:
        total = float(weight.sum()) if fit_intercept else 0.0
        if not total:
            return cls(rows, weight, 0.0, np.zeros(rows.n_weights))
        return cls(rows, weight, total, rows.adjoint(weight) / total)

    def product(self, p: np.ndarray) -> np.ndarray:
        """The Hessian times a vector; Σ W(Zp − mᵀp) is zero, and needs no centring again."""
        return p + self.rows.product(self.weight, p, float(self.mean @ p))

    def block_solver(self) -> Solve:
        """Solve with the blocks of the features."""
        blocks = self.rows.blocks(self.weight)
        n, width = blocks.shape[:2]
        mean = self.mean.reshape(n, width)
        # What is left of functions without variance is rounding, which must not be negative.
        rounding = 4 * self.rows.epsilon * np.trace(blocks, axis1=1, axis2=2)
        blocks -= (self.total * mean)[:, :, None] * mean[:, None, :]
        blocks += (1 + rounding)[:, None, None] * np.eye(width)
        inverses = np.linalg.inv(blocks)
        return lambda r: np.matmul(inverses, r.reshape(n, width, 1)).ravel()

    def solver(self) -> Solve:
        """Solve with the Hessian itself."""
        gram = self.rows.gram(self.weight)
        gram -= np.multiply.outer(self.total * self.mean, self.mean)
        ridges = [self.rows.epsilon * factor for factor in _RIDGES]
        factor = cholesky_factor(gram, np.ones(len(gram)), ridges)
        return lambda r: cholesky_solve(factor, r)

    @property
    def product_seconds(self) -> float:
        n_rows = np.count_nonzero(self.weight)
        return COSTS.per_product + COSTS.per_entry * self.rows.entries_per_row * n_rows

    @property
    def factor_seconds(self) -> float:
        """Of forming and factorising the Hessian."""
        n_rows, n_weights = np.count_nonzero(self.weight), self.rows.n_weights
        return COSTS.per_multiplication * (n_rows * n_weights**2 + n_weights**3 / 3)


@dataclass
class Preconditioner:
    """Solvers with an approximation of Hessians, for steps of one problem.

    Attributes
    ----------
    factorised : callable, optional
        The solver of the last Hessian that was factorised.
    n_factorised : int
    seconds : float
        Predicted time of the products since.
    """

    factorised: Solve | None = None
    n_factorised: int = 0
    seconds: float = 0.0

    def of(self, hessian: CentredHessian) -> Solve:
        """The solver for a step with this Hessian."""
        if hessian.rows.n_weights > MOST_FACTORISED or self.seconds <= hessian.factor_seconds:
            # Blocks of former steps are not worth keeping: steps of a large cost take more products
            # by them, and those of a small one are few.
            return self.factorised or hessian.block_solver()
        self.factorised, self.seconds = hessian.solver(), 0.0
        self.n_factorised += 1
        return self.factorised

    def count(self, hessian: CentredHessian, n_products: int) -> None:
        """Count the time of products."""
        n_entries = 0 if self.factorised is None else hessian.rows.n_weights**2
        a_product = hessian.product_seconds + COSTS.per_factor_entry * n_entries
        self.seconds += n_products * a_product


def conjugate_gradients(
    product: Solve, precondition: Solve, rhs: np.ndarray, forcing: float,
    is_enough: Callable[[np.ndarray], bool],
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Solve Hp = r until the residual has shrunk by `forcing`, or `is_enough` says so of it.

    Its size is that in the norm of the preconditioner. Returns p and the number of products.
    """
    solution, residual = np.zeros_like(rhs), rhs.copy()
    direction = preconditioned = precondition(residual)
    square = float(residual @ preconditioned)
    least, n_products = forcing**2 * square, 0
    while square > least and n_products < _MAX_PRODUCTS and not is_enough(residual):
        image = product(direction)
        n_products += 1
        curvature = float(direction @ image)
        if not curvature > 0:  # beyond rounding
            break
        step = square / curvature
        solution += step * direction
        residual -= step * image
        preconditioned = precondition(residual)
        square, last = float(residual @ preconditioned), square
        direction = preconditioned + (square / last) * direction
    return solution, n_products
