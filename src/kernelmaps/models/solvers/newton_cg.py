r"""Newton steps by conjugate gradients, which take products with a Hessian and do not form it.

The Hessian of ½‖w‖² plus losses of Zw + b, whose second derivatives are the diagonal of W, is

.. math:: \begin{pmatrix} I + Z^\top W Z & Z^\top W 1 \\ 1^\top W Z & 1^\top W 1 \end{pmatrix}.

The intercept is eliminated: what is left, with the sum s of W and the mean m of the rows, weighted
by W, is the Hessian of centred rows, :math:`I + Z^\top W Z - s\,m m^\top`.

Its diagonal blocks, one for each feature, precondition it: for independent features they are all of
it but for the noise of the sample. Where features are correlated, or few rows have curvature, steps
take many products. Once these have taken as long as it takes to form and to factorise the Hessian,
that is done, and its factor preconditions the steps that follow, until products have again taken as
long: at most twice the time of the better of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .linear_systems import cholesky_factor, cholesky_solve

if TYPE_CHECKING:
    from ..rows.basis_rows import BasisRows

Solve = Callable[[np.ndarray], np.ndarray]

MOST_FACTORISED = 3000  # weights, at most, of a Hessian that is formed
STALE_SHARE = 0.2  # change of the weights W, relative to their sum, after which blocks are anew
_DOUBLE = float(np.finfo(np.float64).eps)
_MAX_PRODUCTS = 500  # of one step; the next one continues
# Ridges of a Hessian in units of rounding errors; see `linear_systems`.
_RIDGES = [factor * _DOUBLE for factor in (10.0, 1e4, 1e7, 1e10)]


@dataclass(frozen=True)
class CentredHessian:
    """I + ZᵀWZ − s m mᵀ; without an intercept, s and m are zero."""

    rows: BasisRows
    weight: np.ndarray
    total: float
    mean: np.ndarray

    @classmethod
    def from_weight(
        cls, rows: BasisRows, weight: np.ndarray, fit_intercept: bool
    ) -> CentredHessian:
        """The Hessian for these weights of the rows."""
        total = float(weight.sum()) if fit_intercept else 0.0
        mean = rows.adjoint(weight) / total if total else np.zeros(rows.n_weights)
        return cls(rows, weight, total, mean)

    def product(self, p: np.ndarray) -> np.ndarray:
        """The Hessian times a vector; Σ W(Zp − mᵀp) is zero, and needs no centring again."""
        return p + self.rows.product(self.weight, p, float(self.mean @ p))

    def centre(self, matrix: np.ndarray) -> np.ndarray:
        """ZᵀWZ − s m mᵀ, or blocks of it, from ZᵀWZ."""
        mean = self.mean.reshape(matrix.shape[:-1])
        return matrix - (self.total * mean)[..., :, None] * mean[..., None, :]


class Preconditioner:
    """Solvers with an approximation of Hessians, for the steps of one problem.

    Attributes
    ----------
    solve : callable
        The solver of the last step.
    weight : ndarray
        The weights W that it was made for; none before the first.
    gram : ndarray or None
        ZᵀWZ of these, once a Hessian was formed; before, the solver is that of blocks.
    n_products : int
        Products since a Hessian was factorised.
    """

    solve: Solve

    def __init__(self) -> None:
        self.weight, self.gram, self.n_products = np.zeros(0), None, 0

    def prepare(self, hessian: CentredHessian) -> Solve:
        """The solver for a step with this Hessian."""
        rows, weight = hessian.rows, hessian.weight
        change = weight - (0.0 if self.gram is None else self.weight)
        if self._factor_pays(hessian, change):
            # Of a squared hinge loss, the rows whose weight has changed are those that change
            # sides: if they are few, they are added to the matrix or taken off it.
            if self.gram is None or 2 * np.count_nonzero(change) > np.count_nonzero(weight):
                self.gram = rows.gram(weight)
            else:
                added, removed = np.maximum(change, 0.0), np.maximum(-change, 0.0)
                self.gram = self.gram + rows.gram(added) - rows.gram(removed)
            self.solve, self.weight, self.n_products = factor_solver(hessian, self.gram), weight, 0
        elif self.gram is None and (
            not len(self.weight)
            or np.abs(weight - self.weight).sum() > STALE_SHARE * self.weight.sum()
        ):
            self.solve, self.weight = block_solver(hessian), weight
        return self.solve

    def _factor_pays(self, hessian: CentredHessian, change: np.ndarray) -> bool:
        """Whether products have taken as long as it takes to form and factorise this Hessian.

        A product reads the e entries of n rows. The rows that have changed take the work that
        `gram_cost` states, the factor p³/3 multiplications, about 20 times as fast.
        """
        n_weights, n_changed = hessian.rows.n_weights, np.count_nonzero(change)
        if n_weights > MOST_FACTORISED or not n_changed:
            return False
        n_entries = max(hessian.rows.entries_per_row * np.count_nonzero(hessian.weight), 1)
        work = n_changed * hessian.rows.gram_cost + n_weights**3 / 64
        return self.n_products * n_entries > work


def block_solver(hessian: CentredHessian) -> Solve:
    """Solve with the blocks of the features."""
    sums = hessian.rows.blocks(hessian.weight)
    n, width = sums.shape[:2]
    # What is left of functions without variance is rounding, which must not be negative.
    rounding = 4 * _DOUBLE * np.trace(sums, axis1=1, axis2=2)
    blocks = hessian.centre(sums) + (1 + rounding)[:, None, None] * np.eye(width)
    inverses = np.linalg.inv(blocks)
    return lambda r: np.matmul(inverses, r.reshape(n, width, 1)).ravel()


def factor_solver(hessian: CentredHessian, gram: np.ndarray) -> Solve:
    """Solve with the Hessian itself, from ZᵀWZ."""
    factor = cholesky_factor(hessian.centre(gram), np.ones(len(gram)), _RIDGES)
    return lambda r: cholesky_solve(factor, r)


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
