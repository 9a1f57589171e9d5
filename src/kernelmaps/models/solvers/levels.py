r"""Elimination of the levels of a large factor from penalised normal equations.

The levels of a factor exclude each other: :math:`Z^\top WZ` is diagonal among them. With the
coefficients divided into β and those of the levels, θ,

.. math:: G + \mathrm{diag}(d) = \begin{pmatrix} A & B^\top \\ B & D \end{pmatrix}, \qquad
          S = A - B^\top D^{-1} B, \qquad
          \log|G + \mathrm{diag}(d)| = \log|S| + \sum_c \log D_c,

and only the Schur complement S, which has the size of β, is factorised. Its inverse is the block of
β in :math:`V = (G + \mathrm{diag}(d))^{-1}`; given β, levels are independent of each other:

.. math:: θ \mid β \sim N\big(\hat θ - R(β - \hat β),\; φD^{-1}\big), \qquad R = D^{-1}B,

which is all that is stored of V. Its further blocks are :math:`V_{θβ} = -RV_{ββ}` and
:math:`V_{θθ} = D^{-1} + RV_{ββ}R^\top`. A step of REML takes three products with B, of
:math:`O(mp^2)` operations for m levels and p other coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from ..._util.threads import cached_property
from ..rows.normal_equations import LevelSums

_BLOCK_LEVELS = 2048  # whose products are held at a time: some MB, for hundreds of coefficients


@dataclass(frozen=True)
class IndexBlocks:
    """Disjoint sets of coefficients or of smoothing parameters.

    Attributes
    ----------
    index : ndarray of int
        The block of each, −1 if it is in none.
    count : int
        Number of blocks.
    """

    index: np.ndarray
    count: int

    def take(self, n: int) -> IndexBlocks:
        """The same blocks of the first n alone."""
        return IndexBlocks(self.index[:n], self.count)

    def sizes(self) -> np.ndarray:
        """Number of members of each block."""
        return np.bincount(self.index + 1, minlength=self.count + 1)[1:]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of values over each block."""
        return np.bincount(self.index + 1, values, self.count + 1)[1:]

    def rows(self, values: np.ndarray) -> csr_array:
        """A matrix with a row for each block: the values of its members, zero elsewhere."""
        members, starts = self._members
        return csr_array((values[members], members, starts), (self.count, len(self.index)))

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """Members in the order of their blocks, and where blocks start and end among them."""
        order = np.argsort(self.index, kind="stable")
        starts = np.searchsorted(self.index[order], np.arange(self.count + 1))
        return order[starts[0] :], starts - starts[0]


@dataclass(frozen=True)
class ConditionalLevels:
    """Coefficients of levels given all others, whose posterior makes them independent.

    Attributes
    ----------
    sums : LevelSums
        B, and the working weights of the levels.
    penalty : float
        d, the same for all levels; D is the sum of both.
    dispersion : float
        φ; 1 for V itself.
    """

    sums: LevelSums
    penalty: float
    dispersion: float = 1.0

    @property
    def border(self) -> np.ndarray:
        """B."""
        return self.sums.border

    @property
    def weight(self) -> np.ndarray:
        """Working weights of the levels."""
        return self.sums.weight

    @cached_property
    def precision(self) -> np.ndarray:
        """D."""
        return self.weight + self.penalty

    @cached_property
    def penalty_gram(self) -> np.ndarray:
        """Rᵀ diag(d) R."""
        return self.ratio_gram(np.full(len(self.weight), self.penalty))

    @property
    def variances(self) -> np.ndarray:
        """Conditional variances, φ/D."""
        return self.dispersion / self.precision

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Some levels at a time: which, their rows of B, and their D as a column."""
        for begin in range(0, len(self.precision), _BLOCK_LEVELS):
            rows = slice(begin, begin + _BLOCK_LEVELS)
            yield rows, self.border[rows], self.precision[rows, None]

    def ratio_gram(self, weight: np.ndarray) -> np.ndarray:
        """Rᵀ diag(weight) R for weights that are not negative, and functions of D."""
        shared = self.sums.shared_grams
        if shared is not None:
            level, grams = shared
            return np.tensordot(weight[level] / self.precision[level] ** 2, grams, 1)
        total = np.zeros((self.border.shape[1],) * 2)
        for rows, border, precision in self._blocks():
            scaled = border * (np.sqrt(weight[rows, None]) / precision)
            total += scaled.T @ scaled
        return total

    def reduce_rhs(self, rhs: np.ndarray) -> np.ndarray:
        """The right side for β from that of all coefficients, one or more columns."""
        n = self.border.shape[1]
        return rhs[:n] - self.adjoint(rhs[n:])

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Rᵀ times a vector or matrix of levels."""
        return self.border.T @ _divide_rows(values, self.precision)

    def means(self, beta: np.ndarray) -> np.ndarray:
        """R times a vector or matrix of the other coefficients."""
        return _divide_rows(self.border @ beta, self.precision)

    def append_levels(self, beta: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """All coefficients, θ = D⁻¹(r − Bβ), for the right side of all coefficients."""
        theta = _divide_rows(rhs[self.border.shape[1] :], self.precision) - self.means(beta)
        return np.concatenate([beta, theta])

    def marginal_variances(self, dense: np.ndarray) -> np.ndarray:
        """The diagonal of V_θθ, from V_ββ."""
        variances = self.variances
        for rows, border, precision in self._blocks():
            variances[rows] += np.sum((border @ dense) * border, axis=1) / precision[:, 0] ** 2
        return variances


def _divide_rows(values: np.ndarray, divisors: np.ndarray) -> np.ndarray:
    """Rows of a vector or matrix divided by numbers."""
    return values / (divisors if values.ndim == 1 else divisors[:, None])


@dataclass(frozen=True)
class BlockCovariance:
    """V = (G + diag(d))⁻¹, or φV: the block of β, and the levels of a large factor given β.

    Attributes
    ----------
    dense : ndarray
        The block of β: of all coefficients, if there are no levels.
    levels : ConditionalLevels, optional
    log_determinant : float, optional
        Of the block of β, if it is known from a factor.
    """

    dense: np.ndarray
    levels: ConditionalLevels | None = None
    log_determinant: float | None = None

    def block(self, indices: np.ndarray) -> np.ndarray:
        """V of some coefficients that are not levels."""
        return self.dense[np.ix_(indices, indices)]

    def diagonal(self) -> np.ndarray:
        """Variances of all coefficients."""
        if self.levels is None:
            return self.dense.diagonal()
        return np.concatenate([self.dense.diagonal(), self.levels.marginal_variances(self.dense)])

    def dot(self, rhs: np.ndarray) -> np.ndarray:
        """V times a vector or matrix; not for φV."""
        if self.levels is None:
            return self.dense @ rhs
        return self.levels.append_levels(self.dense @ self.levels.reduce_rhs(rhs), rhs)

    solve = dot  # with the matrix that V is the inverse of

    def logdet(self) -> float:
        """Logarithm of the determinant."""
        level_part = 0.0 if self.levels is None else float(np.log(self.levels.variances).sum())
        dense_part = self.log_determinant
        if dense_part is None:
            dense_part = float(np.linalg.slogdet(self.dense)[1])
        return dense_part + level_part

    def scale(self, dispersion: float) -> BlockCovariance:
        """φV."""
        levels = None if self.levels is None else replace(self.levels, dispersion=dispersion)
        logdet = self.log_determinant
        if logdet is not None:
            logdet += len(self.dense) * float(np.log(dispersion))
        return BlockCovariance(self.dense * dispersion, levels, logdet)

    def penalised_diagonal(self, diagonal: np.ndarray) -> tuple[np.ndarray, float]:
        """d_i V_ii of β, and the sum of d_i V_ii over all levels."""
        if self.levels is None:
            return diagonal * self.dense.diagonal(), 0.0
        level_sum = np.sum(self.levels.penalty / self.levels.precision)
        level_sum += np.sum(self.dense * self.levels.penalty_gram)
        return diagonal[: len(self.dense)] * self.dense.diagonal(), float(level_sum)

    def columns(self, u: np.ndarray, blocks: IndexBlocks) -> np.ndarray:
        """V times the vectors that have u in the coefficients of a block, one for each block."""
        vectors = blocks.rows(u)
        if self.levels is None:
            return (vectors @ self.dense).T
        return self.dot(vectors.toarray().T)

    def block_sums(
        self, d: np.ndarray, u: np.ndarray, blocks: IndexBlocks
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sums of d_i V_il² d_l and of u_i V_il u_l over pairs of blocks of coefficients.

        The levels, if they are in a block, are all of it.
        """
        n = len(self.dense)
        dense_blocks = blocks.take(n)
        rows_d, rows_u = dense_blocks.rows(d[:n]), dense_blocks.rows(u[:n])
        squares, products = rows_d @ (rows_d @ self.dense**2).T, rows_u @ (rows_u @ self.dense).T
        if self.levels is None or blocks.index[n] < 0:
            return squares, products
        penalty, level_u, precision = self.levels.penalty, u[n:], self.levels.precision
        gram = self.dense @ self.levels.penalty_gram
        pulled = self.dense @ self.levels.adjoint(level_u)  # V Rᵀ u
        block = blocks.index[n]
        row = dense_blocks.sums(d[:n] * np.sum(gram * self.dense, axis=1))
        row[block] = np.sum((penalty / precision) ** 2) + np.sum(gram * gram.T)
        row[block] += 2 * np.sum(self.dense * self.levels.ratio_gram(penalty**2 / precision))
        squares[block], squares[:, block] = row, row
        row = dense_blocks.sums(-u[:n] * pulled)
        row[block] = np.sum(level_u**2 / precision) + self.levels.adjoint(level_u) @ pulled
        products[block], products[:, block] = row, row
        return squares, products
