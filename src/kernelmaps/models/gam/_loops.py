"""Compiled loops over splines and banded matrices of one curve."""

from __future__ import annotations

import numpy as np

from ...compiling import HELPER, njit


@njit(**HELPER)
def _splines_at(position: float, size: int, values: np.ndarray) -> int:
    """Values of the B-splines that do not vanish at a position in [0, 1], and the first of them.

    They have even knots, and as many values as one more than their degree.
    """
    degree = values.size - 1
    u = min(max(position, 0.0), 1 - 1e-12) * (size - degree)
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
    rhs: np.ndarray,
) -> None:  # fmt: skip
    """Add BᵀNB, as its lower bands, and BᵀT, for B-splines B with even knots over [0, 1].

    On several axes, the first axis of `position`, `gram` and `rhs`. The bands are one more than
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
                for k in range(rhs.shape[1]):
                    rhs[axis, k, first + a] += targets[k, i] * values[a]


@njit(**HELPER, fastmath={"contract"})
def _profile(
    gram: np.ndarray, penalty: np.ndarray, rhs: np.ndarray, smoothing: np.ndarray,
    explained: np.ndarray, logdet: np.ndarray,
) -> None:  # fmt: skip
    """explained[k] = rᵀ(G + λ_k S)⁻¹ r and logdet[k] = log|G + λ_k S|.

    Matrices come as their lower bands, ``gram[b, i] = G[i + b, i]``; both have as many. Their
    Cholesky factors are computed column by column for all λ at once, side by side in vectors; of a
    factor only the columns that later ones need are kept.
    """
    width, size = gram.shape
    n_smoothing = smoothing.size
    factor = np.zeros((width, width, n_smoothing))  # [column % width, band, λ]
    solution = np.zeros((width, n_smoothing))
    pivots = np.ones(n_smoothing)
    for k in range(n_smoothing):
        explained[k] = logdet[k] = 0.0
    for i in range(size):
        column, z = factor[i % width], solution[i % width]
        for k in range(n_smoothing):
            z[k] = rhs[i]
            for b in range(width):
                column[b, k] = gram[b, i] + smoothing[k] * penalty[b, i]
        for a in range(1, min(width, i + 1)):
            earlier, earlier_z = factor[(i - a) % width], solution[(i - a) % width]
            for k in range(n_smoothing):
                z[k] -= earlier[a, k] * earlier_z[k]
            for b in range(width - a):
                for k in range(n_smoothing):
                    column[b, k] -= earlier[a, k] * earlier[a + b, k]
        for k in range(n_smoothing):
            pivot = max(column[0, k], 1e-30)
            pivots[k] *= pivot
            column[0, k] = 1 / np.sqrt(pivot)
            z[k] *= column[0, k]
            explained[k] += z[k] * z[k]
        for b in range(1, width):
            for k in range(n_smoothing):
                column[b, k] *= column[0, k]
        if i % 8 == 7 or i == size - 1:  # logarithms are slow, products of eight do not overflow
            for k in range(n_smoothing):
                logdet[k] += np.log(pivots[k])
                pivots[k] = 1.0


@njit(cache=True, nogil=True)
def profiles(
    gram: np.ndarray, penalty: np.ndarray, rhs: np.ndarray, smoothing: np.ndarray,
    explained: np.ndarray, logdet: np.ndarray,
) -> None:  # fmt: skip
    """The same for axes a and outputs o: explained[a, o, k] and logdet[a, k]."""
    for axis in range(gram.shape[0]):
        for output in range(rhs.shape[1]):
            _profile(
                gram[axis], penalty, rhs[axis, output], smoothing[axis], explained[axis, output],
                logdet[axis],
            )  # fmt: skip
