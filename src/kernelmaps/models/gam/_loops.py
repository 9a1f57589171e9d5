"""Compiled loop over banded matrices of one curve."""

from __future__ import annotations

import numpy as np

from ...engine.table.entry import entry


@entry(fastmath={"contract"})
def profiles(
    system: np.ndarray, penalty: np.ndarray, smoothing: np.ndarray, factor: np.ndarray,
    explained: np.ndarray, logdet: np.ndarray,
) -> None:  # fmt: skip
    """explained[p, k] = rᵀ(G + λ_k S)⁻¹ r and logdet[p, k] = log|G + λ_k S| of problems p.

    Matrices come as their lower bands, ``system[p, b, i] = G[i + b, i]``; the last row is r, and
    zero in `penalty`. Their Cholesky factors are computed column by column for all λ at once, side
    by side in vectors, and r is eliminated as one more row below each column. Of a factor only the
    columns that later ones need are kept, in ``factor[column % width, band, λ]``; ``logdet`` holds
    the products of the last pivots meanwhile, in the last row of `factor`.
    """
    n_problems, n_rows, size = system.shape
    width, n_smoothing, one = n_rows - 1, smoothing.shape[1], np.int64(1)
    for p in range(n_problems):
        for k in range(n_smoothing):
            explained[p, k] = logdet[p, k] = 0.0
            factor[width, 0, k] = 1.0
        for i in range(size):
            c = i % width
            for b in range(n_rows):
                for k in range(n_smoothing):
                    factor[c, b, k] = system[p, b, i] + smoothing[p, k] * penalty[b, i]
            for a in range(one, width if width < i + 1 else i + 1):
                e = (i - a) % width
                for b in range(width - a + 1):
                    # The row of r comes last in both columns.
                    to, of = (b, a + b) if b < width - a else (width, width)
                    for k in range(n_smoothing):
                        factor[c, to, k] -= factor[e, a, k] * factor[e, of, k]
            for k in range(n_smoothing):
                pivot = factor[c, 0, k]
                pivot = 1e-30 if pivot < 1e-30 else pivot
                factor[width, 0, k] *= pivot
                factor[c, 0, k] = 1 / np.sqrt(pivot)
            for b in range(one, n_rows):
                for k in range(n_smoothing):
                    factor[c, b, k] *= factor[c, 0, k]
            for k in range(n_smoothing):
                explained[p, k] += factor[c, width, k] * factor[c, width, k]
            if i % 8 == 7 or i == size - 1:  # logarithms are slow; eight factors do not overflow
                for k in range(n_smoothing):
                    logdet[p, k] += np.log(factor[width, 0, k])
                    factor[width, 0, k] = 1.0
