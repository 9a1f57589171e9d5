"""Symmetric positive definite systems G + diag(d), and coefficients of an active set.

Levels of a large factor are eliminated first (:mod:`.levels`). Systems of few rows are solved in
the space of the rows (:mod:`.row_space`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, cholesky, lapack, solve_triangular
from scipy.optimize import nnls

from ..._util.threads import available_threads
from ..rows.normal_equations import NormalEquations
from .levels import BlockCovariance, ConditionalLevels
from .row_space import LowRankCovariance, invert_by_rows

# Ridges, in units of G's mean diagonal: the first one with which G + diag(d) has a Cholesky factor
# is added, since columns without rows make G singular.
RIDGES = 1e-10, 1e-7, 1e-4
# The ridge in units of the mean of d where G is zero, as that of a hinge loss far from its kink:
# it keeps the step of an intercept, which has no penalty, finite.
RIDGE_WITHOUT_CURVATURE = 1e-6
# Coefficients below which threads of BLAS cost more than they bring: they wait by spinning, and
# take the processor from the threads that sum over rows.
THREADED_SIZE = 2500
# Rows from which on a triangular matrix is inverted by blocks: OpenBLAS's dtrtri takes three times
# as long as the Cholesky factor, which has as many operations (0.79 ms for 200 rows, by blocks
# 0.40 ms; with 48 or 96 the same).
_INVERSE_BLOCK = 64
_TILE = 64  # rows and columns of a tile that is transposed: it stays in the L1 cache (32 kB)
_BELOW = np.tri(_TILE, k=-1, dtype=bool)


def cholesky_factor(
    gram: np.ndarray, diagonal: np.ndarray, ridges: Sequence[float] = RIDGES
) -> np.ndarray:
    """L with LLᵀ = G + diag(d), below the diagonal, and the first of the ridges that is enough."""
    mean = float(gram.trace()) / len(gram)
    if not mean:
        mean, ridges = float(diagonal.mean()), [RIDGE_WITHOUT_CURVATURE]
    for ridge in ridges:
        system = gram.copy()
        system.flat[:: len(system) + 1] += diagonal + ridge * mean
        # The matrix is symmetric: its transpose, in LAPACK's column order, is the same.
        factor, info = lapack.dpotrf(system.T, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return factor
    raise FloatingPointError("the penalised normal equations are not positive definite")


def cholesky_solve(factor: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """(LLᵀ)⁻¹ times a vector."""
    return lapack.dpotrs(factor, rhs, lower=1)[0]


def cholesky_inverse(factor: np.ndarray) -> np.ndarray:
    """(LLᵀ)⁻¹, of which L is read below the diagonal."""
    inverse = lapack.dlauum(_triangular_inverse(factor), lower=1, overwrite_c=1)[0].T
    _mirror(inverse)
    return inverse


def _triangular_inverse(lower: np.ndarray) -> np.ndarray:
    """L⁻¹ of a lower triangular matrix, below the diagonal; the blocks of two halves at a time."""
    n = len(lower)
    if n <= _INVERSE_BLOCK:
        return lapack.dtrtri(lower, lower=1)[0]
    half = n // 2
    first, second = (_triangular_inverse(lower[at, at]) for at in (slice(half), slice(half, n)))
    inverse = np.empty((n, n), order="F")
    inverse[:half, :half], inverse[half:, half:] = first, second
    below = blas.dtrmm(-1.0, second, lower[half:, :half], lower=1)
    inverse[half:, :half] = blas.dtrmm(1.0, first, below, side=1, lower=1, overwrite_b=1)
    return inverse


def _mirror(matrix: np.ndarray) -> None:
    """Copy the upper triangle of a matrix into its lower one, tile by tile."""
    for top in range(0, len(matrix), _TILE):
        rows = slice(top, top + _TILE)
        matrix[rows, :top] = matrix[:top, rows].T
        tile = matrix[rows, rows]
        np.copyto(tile, tile.T, where=_BELOW[: len(tile), : len(tile)])


Covariance = BlockCovariance | LowRankCovariance


def penalised_system(
    problem: NormalEquations, diagonal: np.ndarray
) -> PenalisedSystem | LowRankCovariance:
    """G + diag(d) of normal equations, factorised, in the smaller of two spaces."""
    mean = 0.0 if problem.root is None else float(problem.gram.diagonal().mean())
    if problem.root is not None and mean > 0:
        inverse = invert_by_rows(problem.root, diagonal + RIDGES[0] * mean, mean)
        if inverse is not None:
            return inverse
    return PenalisedSystem.of(problem, diagonal)


@dataclass(frozen=True)
class PenalisedSystem:
    """G + diag(d) of normal equations, factorised in the space of the coefficients.

    Attributes
    ----------
    factor : ndarray
        Cholesky factor of the matrix or, with levels, of its Schur complement.
    levels : ConditionalLevels, optional
    """

    factor: np.ndarray
    levels: ConditionalLevels | None = None

    @classmethod
    def of(cls, problem: NormalEquations, diagonal: np.ndarray) -> PenalisedSystem:
        if problem.levels is None:
            return cls(cholesky_factor(problem.gram, diagonal))
        n = len(problem.gram)
        levels = ConditionalLevels(problem.levels, float(diagonal[n]))
        return cls(cholesky_factor(levels.reduced(problem.gram), diagonal[:n]), levels)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """(G + diag(d))⁻¹ times a vector."""
        if self.levels is None:
            return cholesky_solve(self.factor, rhs)
        dense = cholesky_solve(self.factor, self.levels.reduced_rhs(rhs))
        return self.levels.extended(dense, rhs)

    def inverse(self) -> BlockCovariance:
        """(G + diag(d))⁻¹."""
        logdet = -2 * float(np.log(self.factor.diagonal()).sum())
        return BlockCovariance(cholesky_inverse(self.factor), self.levels, logdet)


def scatter(values: np.ndarray, active: np.ndarray, size: int) -> np.ndarray:
    """A vector or matrix of an active set in all coefficients: zero for the others."""
    if len(active) == size:
        return values
    scattered = np.zeros((size,) * values.ndim)
    scattered[np.ix_(*[active] * values.ndim)] = values
    return scattered


def rearranged(rows: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Rows of an active set in another one: zero where the first has no coefficient."""
    out = np.zeros((len(target), *rows.shape[1:]))
    _, to, origin = np.intersect1d(target, source, assume_unique=True, return_indices=True)
    out[to] = rows[origin]
    return out


def blas_threads(n_coefficients: int) -> int:
    """Threads of BLAS for systems of this size."""
    return 1 if n_coefficients < THREADED_SIZE else available_threads()


def constrained_minimum(
    beta: np.ndarray, inverse: Covariance, constraints: np.ndarray | None
) -> np.ndarray:
    r"""The minimum under Cβ ≥ 0 from the free minimum `beta`, for monotone and convex terms.

    The minimum :math:`\hat β` of a penalised least-squares problem with the inverse
    :math:`V = LL^\top` of its matrix becomes, under :math:`Cβ ≥ 0`,

    .. math:: \min_β ½ (β - \hat β)^\top V^{-1} (β - \hat β), \quad Cβ ≥ 0
              \quad ⇔ \quad \min_{μ ≥ 0} ½ \|(CL)^\top μ + L^{-1} \hat β\|^2,
              \quad β = L\,\big((CL)^\top μ + L^{-1} \hat β\big),

    a non-negative least-squares problem, whose solution is exact.

    Levels of a large factor, which have no constraints, take the values that are best beside the
    other coefficients.
    """
    if constraints is None:
        return beta
    n = len(inverse.dense)
    free, theta = beta[:n], beta[n:]
    if not (constraints @ free < 0).any():
        return beta
    factor = cholesky(inverse.dense, lower=True)
    start = solve_triangular(factor, free, lower=True)
    normals = (constraints @ factor).T
    multipliers, _ = nnls(normals, -start, maxiter=50 * len(constraints))
    constrained = factor @ (normals @ multipliers + start)
    if inverse.levels is None:
        return constrained
    return np.concatenate([constrained, theta - inverse.levels.means(constrained - free)])
