"""Compiled loop over banded matrices of one curve."""

from __future__ import annotations

import numpy as np

from ..._util.compiling import loop


@loop(fastmath={"contract"}, _nrt=False)
def eliminate(system: np.ndarray, width: int) -> None:
    """Cholesky factors L of banded matrices A, and L⁻¹r for right sides r, in the place of both.

    ``system[p, i, b, k] = A[i + b, i]`` for b below `width`, of problems p and smoothing parameters
    k; the rows b from `width` on are right sides, ``r[i]``. The smoothing parameters are side by
    side in vectors, and right sides are eliminated as further rows below each column.
    """
    n_problems, size, n_rows, n_smoothing = system.shape
    one = np.int64(1)
    for p in range(n_problems):
        for i in range(size):
            for a in range(one, width if width < i + 1 else i + 1):
                for b in range(n_rows - a):
                    to = b if b < width - a else a + b  # right sides are no bands
                    for k in range(n_smoothing):
                        system[p, i, to, k] -= system[p, i - a, a, k] * system[p, i - a, a + b, k]
            for k in range(n_smoothing):
                pivot = system[p, i, 0, k]
                system[p, i, 0, k] = np.sqrt(1e-30 if pivot < 1e-30 else pivot)
            for b in range(one, n_rows):
                for k in range(n_smoothing):
                    system[p, i, b, k] /= system[p, i, 0, k]
