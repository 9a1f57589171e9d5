r"""Newton steps by conjugate gradients, which take products with a Hessian and do not form it.

The Hessian of ½‖w‖² plus losses of Zw + b, whose second derivatives are the diagonal of W, is

.. math:: \begin{pmatrix} I + Z^\top W Z & Z^\top W 1 \\ 1^\top W Z & 1^\top W 1 \end{pmatrix}.

The intercept is eliminated: what is left, with the sum s of W and the mean m of the rows, weighted
by W, is the Hessian of centred rows, :math:`I + Z^\top W Z - s\,m m^\top`.

Its diagonal blocks, one for each feature, precondition it: for independent features they are all of
it but for the noise of the sample. Where features are correlated, or few rows have curvature, steps
take many products. Once these have taken as long as it takes to form and to factorise the Hessian,
that is done, and its factor preconditions the steps that follow: at most twice the time of the
better of the two. From one step to the next, the rows whose weight has changed are added to the
blocks and to the Hessian, not all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .linear_systems import cholesky_factor, cholesky_solve

Solve = Callable[[np.ndarray], np.ndarray]

MOST_FACTORISED = 3000  # weights, at most, of a Hessian that is formed
# Change of a weight, relative to the weight, up to which sums for preconditioners are not updated.
LEAST_CHANGE = 0.2
_ROUNDING = 1e-12  # change of weights by rounding, relative to the largest one
_DOUBLE = float(np.finfo(np.float64).eps)
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

    def gram_seconds(self, n_rows: int) -> float:
        """Predicted time of `gram` with so many rows that have a weight."""
        ...


class RowSums:
    """Sums over rows, linear in weights of the rows, for weights that change from step to step.

    Only rows whose weight has changed are summed again: of a squared hinge loss, whose second
    derivative is 0 or 2, those that change sides.

    Attributes
    ----------
    sum_of : callable
        Gives the sums of weights.
    least_change : float
        The share of a weight up to which its change is ignored.
    weight, value : ndarray
        The weights of the last sums, and these.
    n_updates : int
        Rows that were added since all of them were summed: rounding errors add up.
    """

    def __init__(self, sum_of: Callable[[np.ndarray], np.ndarray], least_change: float) -> None:
        self.sum_of, self.least_change = sum_of, least_change
        self.weight = self.value = np.zeros(0)
        self.n_updates = 0

    def n_changed(self, weight: np.ndarray) -> int:
        """Rows that are summed next."""
        return int(np.count_nonzero(self._change(weight)))

    def _change(self, weight: np.ndarray) -> np.ndarray:
        """What to add to the weights of the last sums."""
        if not len(self.weight):
            return weight
        change = weight - self.weight
        least = self.least_change * np.maximum(weight, self.weight)
        return np.where(np.abs(change) > least, change, 0.0)

    def at(self, weight: np.ndarray) -> np.ndarray:
        """The sums for these weights."""
        change = self._change(weight)
        is_first = not len(self.weight)
        self.n_updates += int(np.count_nonzero(change))
        if is_first or 2 * self.n_updates > np.count_nonzero(weight):
            self.weight, self.value, self.n_updates = weight.copy(), self.sum_of(weight), 0
        elif change.any():
            self.weight, self.value = self.weight + change, self.value + self.sum_of(change)
        return self.value

    def rescale(self, factor: float) -> None:
        """Multiply the weights and the sums."""
        self.weight, self.value = factor * self.weight, factor * self.value


@dataclass(frozen=True)
class CentredHessian:
    """I + ZᵀWZ − s m mᵀ; without an intercept, s and m are zero."""

    rows: ProductRows
    weight: np.ndarray
    total: float
    mean: np.ndarray

    @classmethod
    def of(
        cls, rows: ProductRows, weight: np.ndarray, fit_intercept: bool,
        adjoint: Solve | None = None,
    ) -> CentredHessian:  # fmt: skip
        """The Hessian for these weights; `adjoint` gives Zᵀv, by default that of the rows."""
        total = float(weight.sum()) if fit_intercept else 0.0
        if not total:
            return cls(rows, weight, 0.0, np.zeros(rows.n_weights))
        return cls(rows, weight, total, (adjoint or rows.adjoint)(weight) / total)

    def product(self, p: np.ndarray) -> np.ndarray:
        """The Hessian times a vector; Σ W(Zp − mᵀp) is zero, and needs no centring again."""
        return p + self.rows.product(self.weight, p, float(self.mean @ p))

    @property
    def product_seconds(self) -> float:
        n_rows = np.count_nonzero(self.weight)
        return COSTS.per_product + COSTS.per_entry * self.rows.entries_per_row * n_rows

    def factor_seconds(self, n_rows: int) -> float:
        """Of adding so many rows to the Hessian, and factorising it."""
        n_multiplications = self.rows.n_weights**3 / 3
        return self.rows.gram_seconds(n_rows) + COSTS.per_multiplication * n_multiplications


class Preconditioner:
    """Solvers with an approximation of Hessians, for the steps of one problem.

    Attributes
    ----------
    rows : ProductRows
    blocks, gram, adjoint : RowSums
        The blocks of the features, and all of ZᵀWZ, both of weights that are nearly those of a
        step; ZᵀW1.
    solver : callable, optional
        The solver of the last step.
    is_factorised : bool
        Whether it is that of a Hessian, not of blocks.
    is_rescaled : bool
        Whether all weights were multiplied since a Hessian was factorised.
    n_factorised : int
    seconds : float
        Predicted time of the products since.
    """

    def __init__(self, rows: ProductRows) -> None:
        self.rows = rows
        self.blocks = RowSums(rows.blocks, LEAST_CHANGE)
        self.gram = RowSums(rows.gram, LEAST_CHANGE)
        self.adjoint = RowSums(rows.adjoint, 0.0)
        self.solver: Solve | None = None
        self.is_factorised = self.is_rescaled = False
        self.n_factorised, self.seconds = 0, 0.0

    def hessian(self, weight: np.ndarray, fit_intercept: bool) -> CentredHessian:
        """The Hessian of a step."""
        return CentredHessian.of(self.rows, weight, fit_intercept, self.adjoint.at)

    def of(self, hessian: CentredHessian) -> Solve:
        """The solver for a step with this Hessian."""
        if self._factor_pays(hessian):
            self.solver, self.is_factorised = self.factor_solver(hessian), True
            self.is_rescaled, self.seconds = False, 0.0
            self.n_factorised += 1
        elif self.solver is None or (
            not self.is_factorised and self.blocks.n_changed(hessian.weight)
        ):
            self.solver = self.block_solver(hessian)
        return self.solver

    def _factor_pays(self, hessian: CentredHessian) -> bool:
        """Whether products have taken as long as it takes to factorise this Hessian."""
        if self.rows.n_weights > MOST_FACTORISED or not self.seconds:
            return False
        n_rows = self.gram.n_changed(hessian.weight)
        is_other = n_rows > 0 or self.is_rescaled
        return is_other and self.seconds > hessian.factor_seconds(n_rows)

    def block_solver(self, hessian: CentredHessian) -> Solve:
        """Solve with the blocks of the features."""
        blocks = self._centred(self.blocks, hessian)
        n, width = blocks.shape[:2]
        # What is left of functions without variance is rounding, which must not be negative.
        rounding = 4 * _DOUBLE * np.trace(self.blocks.value, axis1=1, axis2=2)
        blocks += (1 + rounding)[:, None, None] * np.eye(width)
        inverses = np.linalg.inv(blocks)
        return lambda r: np.matmul(inverses, r.reshape(n, width, 1)).ravel()

    def factor_solver(self, hessian: CentredHessian) -> Solve:
        """Solve with the Hessian itself."""
        gram = self._centred(self.gram, hessian)
        ridges = [_DOUBLE * factor for factor in _RIDGES]
        factor = cholesky_factor(gram, np.ones(len(gram)), ridges)
        return lambda r: cholesky_solve(factor, r)

    def _centred(self, sums: RowSums, hessian: CentredHessian) -> np.ndarray:
        """ZᵀWZ − s m mᵀ, or blocks of it, of the weights of the sums."""
        matrix, total, mean = sums.at(hessian.weight), hessian.total, hessian.mean
        if not total:
            return matrix.copy()
        difference = float(np.abs(sums.weight - hessian.weight).max())
        if difference > _ROUNDING * float(hessian.weight.max()):  # centred by their own mean
            total = float(sums.weight.sum())
            mean = self.rows.adjoint(sums.weight) / total
        mean = mean.reshape(matrix.shape[:-1])
        return matrix - (total * mean)[..., :, None] * mean[..., None, :]

    def rescale(self, factor: float) -> None:
        """Prepare for weights that are all multiplied."""
        for sums in (self.blocks, self.gram, self.adjoint):
            sums.rescale(factor)
        self.is_rescaled = True
        if not self.is_factorised:
            self.solver = None

    def count(self, hessian: CentredHessian, n_products: int) -> None:
        """Count the time of products."""
        n_entries = self.rows.n_weights**2 if self.is_factorised else 0
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
