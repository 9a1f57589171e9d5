"""Compiled loops over small matrices: banded ones of one curve, sums over blocks of an inverse."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["block_sums", "mirror", "profile"]

_FAST = {"reassoc", "contract", "nsz"}  # sums in any order
_TILE = 32


@numba.njit(cache=True, nogil=True, error_model="numpy")
def profile(
    gram: np.ndarray, penalty: np.ndarray, right: np.ndarray, strengths: np.ndarray,
    left: np.ndarray, logdet: np.ndarray,
) -> None:  # fmt: skip
    """left[k] = rᵀ(G + λ_k S)⁻¹ r and logdet[k] = log|G + λ_k S|.

    Matrices come as their lower bands, ``gram[b, i] = G[i + b, i]``; both have as many.
    """
    width, size = gram.shape
    factor = np.empty((width, size))
    solved = np.empty(size)
    for k in range(strengths.size):
        total = determinant = 0.0
        for i in range(size):
            factor[:, i] = gram[:, i] + strengths[k] * penalty[:, i]
        for i in range(size):
            rest = right[i]
            for a in range(1, min(width, i + 1)):  # columns i − a to the left
                own = factor[a, i - a]
                rest -= own * solved[i - a]
                for b in range(width - a):
                    factor[b, i] -= own * factor[a + b, i - a]
            pivot = np.sqrt(max(factor[0, i], 1e-300))
            determinant += np.log(pivot)
            solved[i] = rest / pivot
            total += solved[i] * solved[i]
            factor[0, i] = pivot
            for b in range(1, width):
                factor[b, i] /= pivot
        left[k] = total
        logdet[k] = 2 * determinant


@numba.njit(cache=True, nogil=True)
def mirror(matrix: np.ndarray) -> None:
    """Copy the upper triangle of a matrix into its lower one, tile by tile."""
    size = len(matrix)
    for top in range(0, size, _TILE):
        for left in range(0, top + 1, _TILE):
            for i in range(top, min(top + _TILE, size)):
                for j in range(left, min(left + _TILE, i)):
                    matrix[i, j] = matrix[j, i]


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def block_sums(
    inverse: np.ndarray, scale: np.ndarray, pull: np.ndarray, ends: np.ndarray,
    squares: np.ndarray, products: np.ndarray,
) -> None:  # fmt: skip
    """Sums of d_i V_il² d_l and of u_i V_il u_l over blocks of a symmetric V, d and u per row.

    Block a has the rows from ``ends[a]`` to before ``ends[a + 1]``; those before the first block
    do not count. `squares` and `products` are zero at the beginning.
    """
    blocks = ends.size - 1
    for a in range(blocks):
        for i in range(ends[a], ends[a + 1]):
            row = inverse[i]
            for b in range(a + 1):
                square = product = 0.0
                for j in range(ends[b], ends[b + 1]):
                    square += row[j] * row[j] * scale[j]
                    product += row[j] * pull[j]
                squares[a, b] += scale[i] * square
                products[a, b] += pull[i] * product
        for b in range(a):
            squares[b, a] = squares[a, b]
            products[b, a] = products[a, b]
