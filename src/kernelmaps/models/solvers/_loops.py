"""Compiled loops over the inverse of a penalised least-squares problem."""

from __future__ import annotations

import numpy as np

from ...compiling import njit

_FAST = {"reassoc", "contract", "nsz"}  # sums in any order


@njit(cache=True, nogil=True, fastmath=_FAST)
def block_sums(
    inverse: np.ndarray, scale: np.ndarray, vector: np.ndarray, ends: np.ndarray,
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
                    product += row[j] * vector[j]
                squares[a, b] += scale[i] * square
                products[a, b] += vector[i] * product
        for b in range(a):
            squares[b, a] = squares[a, b]
            products[b, a] = products[a, b]
