r"""Compiled cosines of whole blocks, in place, and products of CSR rows with a dense matrix.

The argument is reduced in turns: with t = x/2π + b and r = t − ⌊t + ½⌋ in [−½, ½],
cos 2πt = cos 2πr = −sin 2π(|r| − ¼), and on a half turn the sine is an odd polynomial (minimax:
5 terms reach 3.4e-9, 8 terms 9e-17). No branches and no tables, so that the loop vectorises; the
rounding of t costs about |x| ε, no more than the rounding of the matrix product before it.
"""

import math

import numba as nb
import numpy as np
from numba.extending import overload

_FAST = {"contract", "nsz"}


def cosine(t):
    """cos 2πt in the precision of t."""
    return math.cos(2 * math.pi * t)


@overload(cosine, inline="always")
def _compiled_cosine(t):
    f = np.float32

    def single(t):
        s = abs(t - np.floor(t + f(0.5))) - f(0.25)
        v = s * s
        poly = f(-76.549782387613466) + v * f(39.536706762014836)
        poly = f(-41.341655031479419) + v * (f(81.601004077356553) + v * poly)
        return -s * (f(6.2831851600897227) + v * poly)

    def double(t):
        s = abs(t - np.floor(t + 0.5)) - 0.25
        v = s * s
        poly = 3.8169974295671560615 + v * -0.69093588762802366194
        poly = 42.058688305395575059 + v * (-15.094471616749452933 + v * poly)
        poly = 81.605249275026291884 + v * (-76.705859647469673123 + v * poly)
        return -s * (6.2831853071795803916 + v * (-41.341702240395082638 + v * poly))

    return single if t == nb.float32 else double


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _row_cosines(z, turns, turn, scale):
    for k in range(z.size):
        z[k] = scale * cosine(z[k] * turn + turns[k])


@nb.njit(cache=True, parallel=True)
def cosines(Z, turns, turn, scale, n_threads):
    """Z ← scale · cos 2π(Z·turn + turns), in place; all arguments of one precision."""
    share = -(-Z.shape[0] // n_threads)
    for t in nb.prange(n_threads):
        for i in range(t * share, min(Z.shape[0], (t + 1) * share)):
            _row_cosines(Z[i], turns, turn, scale)


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _add_four(z, a, W, j):
    w0, w1, w2, w3 = W[j[0]], W[j[1]], W[j[2]], W[j[3]]
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    for k in range(z.size):
        z[k] += a0 * w0[k] + a1 * w1[k] + (a2 * w2[k] + a3 * w3[k])


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _add_one(z, a, w):
    for k in range(z.size):
        z[k] += a * w[k]


@nb.njit(cache=True, parallel=True, error_model="numpy")
def csr_product(data, indices, indptr, W, n_threads, Z):
    """Z = X W for CSR rows X, four of their entries at a time."""
    n = indptr.size - 1
    share = -(-n // n_threads)
    for t in nb.prange(n_threads):
        for i in range(t * share, min(n, (t + 1) * share)):
            z, at, end = Z[i], indptr[i], indptr[i + 1]
            z[:] = 0
            while at + 4 <= end:
                _add_four(z, data[at : at + 4], W, indices[at : at + 4])
                at += 4
            while at < end:
                _add_one(z, data[at], W[indices[at]])
                at += 1
