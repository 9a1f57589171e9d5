r"""Penalised normal equations of few rows and many coefficients, in the space of the rows.

With :math:`X = W^{1/2}Z` of n rows and more columns, and penalties d > 0,

.. math:: (X^\top X + \mathrm{diag}(d))^{-1} = \mathrm{diag}(1/d) - U^\top U, \qquad
          U = L^{-1} X \,\mathrm{diag}(1/d), \quad LL^\top = I + X \,\mathrm{diag}(1/d)\, X^\top

(Woodbury), which takes :math:`O(n^2p)` operations instead of :math:`O(p^3)`. Penalties far below
the others would lose digits: those of a few coefficients F, the intercept among them, are raised by
the same δ. With
:math:`V_0` the inverse for the raised penalties,

.. math:: V = V_0 + T^\top T, \qquad T = M^{-1} V_0[F, :], \quad
          MM^\top = I/δ - V_0[F, F],

.. math:: \log|X^\top X + \mathrm{diag}(d)| = \sum_{i} \log d^+_i + \log|LL^\top|
          + \sum_{i \in F} \log δ + \log|MM^\top|, \qquad d^+ = d + δ \text{ in } F.

V is never stored: it is a diagonal matrix and a product of low rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack

from ..._util.threads import cached_property
from .levels import IndexBlocks, block_sums

# Penalties are raised if they are less, in units of the mean diagonal of XᵀX: with p coefficients,
# LLᵀ has a condition number of about p times its inverse, and V nine digits.
LEAST_PENALTY = 1e-4
RAISED_BY = 0.1  # δ in the same unit: the difference of I/δ and V₀[F, F] cancels no digits
# Coefficients, in units of the rows, whose penalties lose no digits however small they are, if they
# are all alike: the rows determine at most four fifths of these, and penalties the others. In the
# place of a larger mean diagonal, the unit is then the largest of as many smallest penalties.
SATURATING = 1.25


@dataclass(frozen=True)
class LowRankCovariance:
    """V = diag(a) + Bᵀ diag(s) B, the inverse of G + diag(d), or φV.

    Attributes
    ----------
    variances : ndarray of shape (p,)
        a.
    factors : ndarray of shape (r, p)
        B.
    signs : ndarray of shape (r,)
        s, −1 or 1.
    log_determinant : float
        Of V.
    """

    variances: np.ndarray
    factors: np.ndarray
    signs: np.ndarray
    log_determinant: float
    levels = None

    @cached_property
    def _low_rank_diagonal(self) -> np.ndarray:
        return self.signs @ self.factors**2

    @cached_property
    def dense(self) -> np.ndarray:
        """V as a matrix."""
        negative = self.signs < 0
        inner, outer = self.factors[negative], self.factors[~negative]
        matrix = outer.T @ outer - inner.T @ inner
        matrix.flat[:: len(matrix) + 1] += self.variances
        return matrix

    def diagonal(self) -> np.ndarray:
        """Variances of all coefficients."""
        return self.variances + self._low_rank_diagonal

    def dot(self, rhs: np.ndarray) -> np.ndarray:
        """V times a vector."""
        return self.variances * rhs + (self.signs * (self.factors @ rhs)) @ self.factors

    solve = dot  # with the matrix that V is the inverse of

    def inverse(self) -> LowRankCovariance:
        """V, which a factorised system gives, too."""
        return self

    def columns(self, u: np.ndarray, blocks: IndexBlocks) -> np.ndarray:
        """V times the vectors that have u in the coefficients of a block, one for each block."""
        return (blocks.rows(u) @ self.dense).T

    def logdet(self) -> float:
        """Logarithm of the determinant."""
        return self.log_determinant

    def scaled(self, dispersion: float) -> LowRankCovariance:
        """φV."""
        return replace(
            self, variances=dispersion * self.variances,
            factors=np.sqrt(dispersion) * self.factors,
            log_determinant=self.log_determinant + len(self.variances) * np.log(dispersion),
        )  # fmt: skip

    def penalised_diagonal(self, diagonal: np.ndarray) -> tuple[np.ndarray, float]:
        """d_i V_ii, and 0 for levels, of which there are none."""
        return diagonal * self.diagonal(), 0.0

    def block_sums(
        self, d: np.ndarray, u: np.ndarray, blocks: IndexBlocks
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sums of d_i V_il² d_l and of u_i V_il u_l over pairs of blocks of coefficients."""
        return block_sums(self.dense, d, u, blocks)


def invert_by_rows(root: np.ndarray, diagonal: np.ndarray, mean: float) -> LowRankCovariance | None:
    """(XᵀX + diag(d))⁻¹ of X with few rows and d > 0; `mean` is that of the diagonal of XᵀX.

    None if so many penalties are far below the others that a system of the coefficients is smaller,
    or if it is singular.
    """
    n, p = root.shape
    saturating = int(SATURATING * n)
    if 2 * n > p:
        return None
    least = LEAST_PENALTY * min(mean, float(np.partition(diagonal, saturating)[saturating]))
    raised, by = np.flatnonzero(diagonal < least), RAISED_BY * mean
    if 2 * (n + len(raised)) > p:
        return None
    penalty = diagonal.copy()
    penalty[raised] += by
    scaled = root / np.sqrt(penalty)
    system = scaled @ scaled.T
    system.flat[:: n + 1] += 1.0
    lower, info = lapack.dpotrf(system.T, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        return None
    inner = lapack.dtrtrs(lower, scaled, lower=1)[0] / np.sqrt(penalty)
    cross = -inner[:, raised].T @ inner  # V₀[F, :]
    cross[np.arange(len(raised)), raised] += 1 / penalty[raised]
    border = -cross[:, raised]
    border.flat[:: len(border) + 1] += 1 / by
    of_border, info = lapack.dpotrf(border, lower=1, clean=0)
    if info != 0:
        return None
    outer = lapack.dtrtrs(of_border, cross, lower=1)[0] if len(raised) else cross
    logdet = np.sum(np.log(penalty)) + len(raised) * np.log(by)
    logdet += 2 * sum(np.sum(np.log(factor.diagonal())) for factor in (lower, of_border))
    signs = np.repeat([-1.0, 1.0], [n, len(raised)])
    factors = np.concatenate([inner, outer])
    return LowRankCovariance(1 / penalty, factors, signs, -float(logdet))
