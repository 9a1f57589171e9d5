"""Compiled loops over the inverse of a penalised least-squares problem."""

from __future__ import annotations

import numpy as np

from ...compiling import njit

_FAST = {"reassoc", "contract", "nsz"}  # sums in any order


@njit(cache=True, nogil=True, fastmath=_FAST)
def block_sums(
    V: np.ndarray, d: np.ndarray, u: np.ndarray, bounds: np.ndarray, squares: np.ndarray,
    products: np.ndarray,
) -> None:  # fmt: skip
    """Sums of d_i V_il² d_l and of u_i V_il u_l over blocks of a symmetric V.

    Block a has the rows from ``bounds[a]`` to before ``bounds[a + 1]``; those before the first
    block do not count. `squares` and `products` are zero at the beginning.
    """
    for a in range(bounds.size - 1):
        for i in range(bounds[a], bounds[a + 1]):
            row = V[i]
            for b in range(a + 1):
                square = product = 0.0
                for j in range(bounds[b], bounds[b + 1]):
                    square += row[j] * row[j] * d[j]
                    product += row[j] * u[j]
                squares[a, b] += d[i] * square
                products[a, b] += u[i] * product
        for b in range(a):
            squares[b, a] = squares[a, b]
            products[b, a] = products[a, b]
