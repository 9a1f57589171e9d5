"""Compiled loops over small matrices: banded ones of one curve, sums over blocks of an inverse."""

from __future__ import annotations

import numpy as np

from ...compiling import HELPER, njit

_FAST = {"reassoc", "contract", "nsz"}  # sums in any order
_TILE = 32


@njit(**HELPER)
def _splines_at(place: float, size: int, values: np.ndarray) -> int:
    """Values of the B-splines that do not vanish at a place of [0, 1], and the first of them.

    They have even knots, and as many values as one more than their degree.
    """
    degree = values.size - 1
    u = min(max(place, 0.0), 1 - 1e-12) * (size - degree)
    first = int(u)
    t = u - first
    values[0] = 1.0
    for d in range(1, degree + 1):  # de Boor's recursion
        saved = 0.0
        for r in range(d):
            share = values[r] / d
            values[r] = saved + (r + 1 - t) * share
            saved = (t + d - r - 1) * share
        values[d] = saved
    return first


@njit(cache=True, nogil=True, error_model="numpy")
def local_splines(position: np.ndarray, size: int, first: np.ndarray, values: np.ndarray) -> None:
    """The same for some positions, one row of `values` each."""
    for i in range(position.size):
        first[i] = _splines_at(position[i], size, values[i])


@njit(cache=True, nogil=True, error_model="numpy")
def add_bands(
    position: np.ndarray, counts: np.ndarray, targets: np.ndarray, gram: np.ndarray,
    right: np.ndarray,
) -> None:  # fmt: skip
    """Add BᵀNB, as its lower bands, and BᵀT, for B-splines B with even knots over [0, 1].

    On several axes, the first axis of `position`, `gram` and `right`. The bands are one more than
    the degree; N = diag(counts), and T has one column per output.
    """
    degree, size = gram.shape[1] - 1, gram.shape[2]
    values = np.empty(degree + 1)
    for axis in range(position.shape[0]):
        for i in range(position.shape[1]):
            first = _splines_at(position[axis, i], size, values)
            for a in range(degree + 1):
                for b in range(degree + 1 - a):
                    gram[axis, b, first + a] += counts[i] * values[a] * values[a + b]
                for k in range(right.shape[1]):
                    right[axis, k, first + a] += targets[k, i] * values[a]


@njit(**HELPER, fastmath={"contract"})
def _profile(
    gram: np.ndarray, penalty: np.ndarray, right: np.ndarray, strengths: np.ndarray,
    left: np.ndarray, logdet: np.ndarray,
) -> None:  # fmt: skip
    """left[k] = rᵀ(G + λ_k S)⁻¹ r and logdet[k] = log|G + λ_k S|.

    Matrices come as their lower bands, ``gram[b, i] = G[i + b, i]``; both have as many. Their
    factors are found column by column for all strengths at once, side by side in vectors; only the
    columns that later ones need are kept.
    """
    width, size = gram.shape
    many = strengths.size
    factor = np.zeros((width, width, many))  # [column % width, band, strength]
    solved = np.zeros((width, many))
    pivots = np.ones(many)
    for k in range(many):
        left[k] = logdet[k] = 0.0
    for i in range(size):
        own, at = factor[i % width], solved[i % width]
        for k in range(many):
            at[k] = right[i]
            for b in range(width):
                own[b, k] = gram[b, i] + strengths[k] * penalty[b, i]
        for a in range(1, min(width, i + 1)):
            other, there = factor[(i - a) % width], solved[(i - a) % width]
            for k in range(many):
                at[k] -= other[a, k] * there[k]
            for b in range(width - a):
                for k in range(many):
                    own[b, k] -= other[a, k] * other[a + b, k]
        for k in range(many):
            pivot = max(own[0, k], 1e-30)
            pivots[k] *= pivot
            own[0, k] = 1 / np.sqrt(pivot)
            at[k] *= own[0, k]
            left[k] += at[k] * at[k]
        for b in range(1, width):
            for k in range(many):
                own[b, k] *= own[0, k]
        if i % 8 == 7 or i == size - 1:  # logarithms are slow, products of eight do not overflow
            for k in range(many):
                logdet[k] += np.log(pivots[k])
                pivots[k] = 1.0


@njit(cache=True, nogil=True)
def profiles(
    gram: np.ndarray, penalty: np.ndarray, right: np.ndarray, strengths: np.ndarray,
    left: np.ndarray, logdet: np.ndarray,
) -> None:  # fmt: skip
    """The same for axes a and outputs o: left[a, o, k] and logdet[a, k]."""
    for axis in range(gram.shape[0]):
        for output in range(right.shape[1]):
            _profile(
                gram[axis], penalty, right[axis, output], strengths[axis], left[axis, output],
                logdet[axis],
            )  # fmt: skip


@njit(cache=True, nogil=True)
def mirror(matrix: np.ndarray) -> None:
    """Copy the upper triangle of a matrix into its lower one, tile by tile."""
    size = len(matrix)
    for top in range(0, size, _TILE):
        for left in range(0, top + 1, _TILE):
            for i in range(top, min(top + _TILE, size)):
                for j in range(left, min(left + _TILE, i)):
                    matrix[i, j] = matrix[j, i]


@njit(cache=True, nogil=True, fastmath=_FAST)
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
