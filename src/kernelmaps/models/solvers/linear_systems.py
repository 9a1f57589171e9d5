"""Symmetric positive definite systems G + diag(d), and coefficients of an active set.

Levels of a large factor are eliminated first (:mod:`.levels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, lapack, solve_triangular
from scipy.optimize import nnls

from ..._util.threads import available_threads
from ..rows.normal_equations import (
    IndependentEquations,
    NormalEquations,
    WorkingProblem,
    merge_parts,
)
from .levels import BlockCovariance, ConditionalLevels, IndexBlocks

_ROUNDING = 1e-12  # of constraints, in units of the largest coefficient
# Constraints that take part at once. Of a pair of two columns with 255 bins, 15,000 constraints on
# 480 coefficients: .5 s with 300, 1.0 s with 1000, 1.9 s with 2000, 14 s with all. Of eight curves,
# 2,000 constraints: a fifth faster than with all.
_CONSTRAINTS_AT_ONCE = 1000
# Where the rows agree with the shape of such a pair, five rounds are enough (.2 s). Where they
# contradict it, active sets took 18 to 150 (3 to 40 s), the interior-point method takes 3 s.
_MAX_ACTIVE_SET_ROUNDS = 8
_MAX_ACTIVE = 150  # a round with more of them takes .5 to 4 s; shapes that the rows have need 120
_INTERIOR_GAP = 1e-10  # slacks times multipliers, in units of the target's sum of squares
_MAX_INTERIOR_STEPS = 60
_SHARE_OF_STEP = 0.995  # of the way to the boundary (Nocedal and Wright, section 16.6)

# Ridges, in units of G's mean diagonal: the first one with which G + diag(d) has a Cholesky factor
# is added, since columns without rows make G singular.
RIDGES = 1e-10, 1e-7, 1e-4
# The ridge in units of the mean of d where G is zero, as that of a hinge loss far from its kink:
# it keeps the step of an intercept, which has no penalty, finite.
RIDGE_WITHOUT_CURVATURE = 1e-6
# Coefficients below which threads of BLAS cost more than they bring: they wait by spinning, and
# take the processor from the threads that sum over rows.
THREADED_SIZE = 2500


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
    below = np.tril(lapack.dpotri(factor, lower=1)[0])
    return below + np.tril(below, -1).T


@dataclass(frozen=True)
class IndependentCovariance:
    """V of several linear predictors without coefficients in common, or their factorised systems.

    Attributes
    ----------
    parts : tuple
        V of each predictor, or its system.
    places : tuple of ndarray of int
        Positions of its coefficients among all.
    """

    parts: tuple[Any, ...]
    places: tuple[np.ndarray, ...]
    levels = None

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """V times a vector, from factorised systems or from V."""
        pairs = zip(self.parts, self.places, strict=True)
        return merge_parts([part.solve(rhs[place]) for part, place in pairs], self.places)

    dot = solve

    def inverse(self) -> IndependentCovariance:
        """V, from factorised systems."""
        return replace(self, parts=tuple(part.inverse() for part in self.parts))

    @property
    def dense(self) -> np.ndarray:
        """V as a matrix."""
        return self.block(np.arange(sum(map(len, self.places))))

    def block(self, indices: np.ndarray) -> np.ndarray:
        """V of some coefficients."""
        matrix = np.zeros((len(indices), len(indices)))
        for part, place in zip(self.parts, self.places, strict=True):
            _, in_block, in_part = np.intersect1d(indices, place, return_indices=True)
            matrix[np.ix_(in_block, in_block)] = part.block(in_part)
        return matrix

    def diagonal(self) -> np.ndarray:
        """Variances of all coefficients."""
        return merge_parts([part.diagonal() for part in self.parts], self.places)

    def logdet(self) -> float:
        """Logarithm of the determinant."""
        return sum(part.logdet() for part in self.parts)

    def scale(self, dispersion: float) -> IndependentCovariance:
        """φV."""
        return replace(self, parts=tuple(part.scale(dispersion) for part in self.parts))

    def penalised_diagonal(self, diagonal: np.ndarray) -> tuple[np.ndarray, float]:
        """d_i V_ii."""
        return diagonal * self.diagonal(), 0.0

    def columns(self, u: np.ndarray, blocks: IndexBlocks) -> np.ndarray:
        """V times the vectors that have u in the coefficients of a block, one for each block."""
        columns = [
            part.columns(u[place], IndexBlocks(blocks.index[place], blocks.count))
            for part, place in zip(self.parts, self.places, strict=True)
        ]
        return merge_parts(columns, self.places)

    def block_sums(
        self, d: np.ndarray, u: np.ndarray, blocks: IndexBlocks
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sums of d_i V_il² d_l and of u_i V_il u_l over pairs of blocks of coefficients."""
        squares, products = np.zeros((2, blocks.count, blocks.count))
        for part, place in zip(self.parts, self.places, strict=True):
            part_blocks = IndexBlocks(blocks.index[place], blocks.count)
            more_squares, more_products = part.block_sums(d[place], u[place], part_blocks)
            squares, products = squares + more_squares, products + more_products
        return squares, products


Covariance = BlockCovariance | IndependentCovariance


def penalised_system(
    problem: WorkingProblem, diagonal: np.ndarray
) -> PenalisedSystem | IndependentCovariance:
    """G + diag(d) of normal equations, factorised."""
    if isinstance(problem, IndependentEquations):
        pairs = zip(problem.parts, problem.places, strict=True)
        systems = tuple(penalised_system(part, diagonal[place]) for part, place in pairs)
        return IndependentCovariance(systems, problem.places)
    return PenalisedSystem.factorise(problem, diagonal)


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
    def factorise(cls, problem: NormalEquations, diagonal: np.ndarray) -> PenalisedSystem:
        if problem.levels is None:
            return cls(cholesky_factor(problem.gram, diagonal))
        n = len(problem.gram)
        levels = ConditionalLevels(problem.levels, float(diagonal[n]))
        reduced = problem.gram - levels.ratio_gram(levels.precision)  # the Schur complement S of A
        return cls(cholesky_factor(reduced, diagonal[:n]), levels)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """(G + diag(d))⁻¹ times a vector."""
        if self.levels is None:
            return cholesky_solve(self.factor, rhs)
        dense = cholesky_solve(self.factor, self.levels.reduce_rhs(rhs))
        return self.levels.append_levels(dense, rhs)

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


def rearrange_rows(rows: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Rows of an active set in another one: zero where the first has no coefficient."""
    out = np.zeros((len(target), *rows.shape[1:]))
    _, positions, origin = np.intersect1d(target, source, assume_unique=True, return_indices=True)
    out[positions] = rows[origin]
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
              \quad ⇔ \quad \min_u ½ \|u - L^{-1} \hat β\|^2, \quad CLu ≥ 0, \quad β = Lu.

    Its dual, :math:`\min_{μ ≥ 0} ½ \|(CL)^\top μ + L^{-1} \hat β\|^2` with
    :math:`u = (CL)^\top μ + L^{-1} \hat β`, is a non-negative least-squares problem, whose solution
    is exact. Of many constraints (pairs have thousands) some at a time take part: those that matter
    and those that are violated most. Where hundreds of them matter, an interior-point method takes
    all of them at once.

    Levels of a large factor, which have no constraints, take the values that are best beside the
    other coefficients.
    """
    if constraints is None:
        return beta
    n = len(inverse.dense)
    free, theta = beta[:n], beta[n:]
    slack = constraints @ free
    if not (slack < 0).any():
        return beta
    factor = cholesky(inverse.dense, lower=True)
    target = solve_triangular(factor, free, lower=True)
    used = np.argsort(slack)[:_CONSTRAINTS_AT_ONCE]
    for rounds in count(1):
        normals = (constraints[used] @ factor).T
        multipliers, _ = nnls(normals, -target, maxiter=50 * len(used))
        constrained = factor @ (normals @ multipliers + target)
        slack = constraints @ constrained
        violated = slack < -_ROUNDING * np.abs(free).max()
        violated[used] = False
        if not violated.any():
            break
        if rounds == _MAX_ACTIVE_SET_ROUNDS or np.count_nonzero(multipliers) > _MAX_ACTIVE:
            constrained = factor @ _interior_minimum(target, constraints @ factor)
            break
        worst = np.argsort(np.where(violated, slack, 0.0))[:_CONSTRAINTS_AT_ONCE]
        used = np.concatenate([used[multipliers > 0], worst[violated[worst]]])
    if inverse.levels is None:
        return constrained
    return np.concatenate([constrained, theta - inverse.levels.means(constrained - free)])


def _interior_minimum(target: np.ndarray, normals: np.ndarray) -> np.ndarray:
    r"""The point of Au ≥ 0 next to `target`, by Mehrotra's predictor-corrector method.

    With slacks s = Au and multipliers z ≥ 0, the conditions :math:`u - \hat u = A^\top z`,
    :math:`Au = s`, :math:`s_i z_i = μ` are solved by Newton's method, whose matrix
    :math:`I + A^\top \mathrm{diag}(z / s) A` has the size of u, while μ falls to 0 (Nocedal and
    Wright, Numerical Optimization, section 16.6). All equations are scaled such that the rows of A
    have length one. The steps start in the interior, where the direction f of
    :math:`\min \|Af - 1\|` leads if :math:`Af > 0`, and then stay there: Au = s holds throughout.
    """
    lengths = np.linalg.norm(normals, axis=1)
    nonzero = lengths > _ROUNDING * lengths.max()
    normals = normals[nonzero] / lengths[nonzero, None]
    inward = np.linalg.lstsq(normals.T @ normals, normals.sum(axis=0))[0]
    u, slack, change = target, normals @ target, normals @ inward
    if change.min() > 0:
        u = target + 1.1 * np.max(-slack / change) * inward
        slack = normals @ u
    else:
        slack = np.maximum(slack, 0.1 * np.abs(slack).max())
    identity, scale = np.eye(len(target)), target @ target
    multipliers = (100 * scale / len(slack)) / slack
    for _ in range(_MAX_INTERIOR_STEPS):
        gap = slack @ multipliers
        gradient = u - target - normals.T @ multipliers
        violation = normals @ u - slack
        if gap <= _INTERIOR_GAP * scale and gradient @ gradient <= _INTERIOR_GAP**2 * scale:
            break
        scaled = np.sqrt(multipliers / slack)[:, None] * normals
        try:
            system = cho_factor(identity + scaled.T @ scaled, check_finite=False)
        except np.linalg.LinAlgError:  # as many constraints as coefficients hold to rounding
            break
        residual = slack * multipliers  # of complementarity: with its aim 0 the predictor
        for _ in range(2):
            rhs = gradient + normals.T @ ((residual + multipliers * violation) / slack)
            du = -cho_solve(system, rhs, check_finite=False)
            ds = normals @ du + violation
            dz = -(residual + multipliers * ds) / slack
            step = min(_longest_step(slack, ds), _longest_step(multipliers, dz))
            aim = gap / len(slack) * (1 - step) ** 3
            residual = slack * multipliers + ds * dz - aim
        step *= _SHARE_OF_STEP
        u, slack, multipliers = u + step * du, slack + step * ds, multipliers + step * dz
    return u


def _longest_step(values: np.ndarray, change: np.ndarray) -> float:
    """How far positive values can go, at most 1, before the first of them is 0."""
    falling = change < 0
    return min(1.0, np.min(-values[falling] / change[falling], initial=1.0))
