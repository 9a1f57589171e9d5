"""Compiled loop over banded matrices of one curve."""

from __future__ import annotations

import numpy as np

from ...engine.table.entry import entry


@entry(fastmath={"contract"})
def profiles(
    system: np.ndarray, penalty: np.ndarray, smoothing: np.ndarray, factor: np.ndarray,
    squares: np.ndarray, cross: np.ndarray, logdet: np.ndarray,
) -> None:  # fmt: skip
    """Quadratic forms of A⁻¹ = (G + λ_k S)⁻¹, and log|A|, of problems p and smoothing parameters k.

    squares[p, j, k] = r_jᵀA⁻¹r_j, and cross[p, j, k] = r_jᵀA⁻¹r_last, for right sides r_j.

    Matrices come as their lower bands, ``system[p, b, i] = G[i + b, i]``; the last rows are the
    r_j, and zero in `penalty`. Their Cholesky factors are computed column by column for all λ at
    once, side by side in vectors, and the r_j are eliminated as further rows below each column. Of
    a factor only the columns that later ones need are kept, in ``factor[column % width, band, λ]``;
    its last row holds the products of the last pivots. `squares` and `cross` are zero at the start.
    """
    n_problems, n_rows, size = system.shape
    width, n_smoothing, one = factor.shape[0] - 1, smoothing.shape[1], np.int64(1)
    for p in range(n_problems):
        for k in range(n_smoothing):
            logdet[p, k] = 0.0
            factor[width, 0, k] = 1.0
        for i in range(size):
            c = i % width
            for b in range(n_rows):
                for k in range(n_smoothing):
                    factor[c, b, k] = system[p, b, i] + smoothing[p, k] * penalty[p, b, i]
            for a in range(one, width if width < i + 1 else i + 1):
                e = (i - a) % width
                for b in range(n_rows - a):
                    to = b if b < width - a else a + b  # right sides are no bands
                    for k in range(n_smoothing):
                        factor[c, to, k] -= factor[e, a, k] * factor[e, a + b, k]
            for k in range(n_smoothing):
                pivot = factor[c, 0, k]
                pivot = 1e-30 if pivot < 1e-30 else pivot
                factor[width, 0, k] *= pivot
                factor[c, 0, k] = 1 / np.sqrt(pivot)
            for b in range(one, n_rows):
                for k in range(n_smoothing):
                    factor[c, b, k] *= factor[c, 0, k]
            for j in range(n_rows - width):
                for k in range(n_smoothing):
                    r = factor[c, width + j, k]
                    squares[p, j, k] += r * r
                    cross[p, j, k] += r * factor[c, n_rows - 1, k]
            if i % 8 == 7 or i == size - 1:  # logarithms are slow; eight factors do not overflow
                for k in range(n_smoothing):
                    logdet[p, k] += np.log(factor[width, 0, k])
                    factor[width, 0, k] = 1.0
