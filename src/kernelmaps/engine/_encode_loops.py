"""Compiled encoding: the first pass of the table loops, its result kept as integers.

A code is the bin b, or the position b + u in units of 2^−bits for maps that interpolate.
"""

import numba as nb
import numpy as np

from ._loops import _locate


@nb.njit(cache=True, error_model="numpy")
def _store(bin_of, u, bits, out):
    if bits == 0:
        for d in range(out.size):
            out[d] = bin_of[d]
    else:
        unit = np.float64(np.int64(1) << bits)
        for d in range(out.size):
            out[d] = np.int64((bin_of[d] + np.float64(u[d])) * unit + 0.5)


@nb.njit(cache=True, parallel=True, error_model="numpy")
def encode_dense(
    X,
    binning, degree, signed, zero, set_of, lo, scale, low, high, bins, width, band,
    edges, edge_start, first, first_start, coef, coef_start, column,
    stride, even, clipped, key, shift, inverse, nothing,
    bits, n_threads, out,
):  # fmt: skip
    """Codes of dense rows."""
    n, d = X.shape
    rows = -(-n // n_threads)
    for t in nb.prange(n_threads):
        size = np.empty(d, coef.dtype)
        bin_of = np.empty(d, np.int64)
        place = np.empty(d, np.int64)
        u = np.empty(d, coef.dtype)
        for i in range(t * rows, min(n, (t + 1) * rows)):
            _locate(
                X[i], set_of, binning, signed, zero, lo, scale, low, high, bins, edges, edge_start,
                coef_start, stride, clipped, key, shift, inverse, nothing, size, bin_of, place, u,
            )  # fmt: skip
            _store(bin_of, u, bits, out[i])


@nb.njit(cache=True, parallel=True, error_model="numpy")
def encode_stored(
    data, indices,
    binning, degree, signed, zero, set_of, lo, scale, low, high, bins, width, band,
    edges, edge_start, first, first_start, coef, coef_start, column,
    stride, even, clipped, key, shift, inverse, nothing,
    bits, piece, out,
):  # fmt: skip
    """Codes of the stored values of CSR rows, in pieces that fit the cache."""
    for p in nb.prange(-(-data.size // piece)):
        begin, end = p * piece, min(data.size, (p + 1) * piece)
        sets = np.empty(end - begin, np.int32)
        for k in range(end - begin):
            sets[k] = set_of[indices[begin + k]]
        size = np.empty(end - begin, coef.dtype)
        bin_of = np.empty(end - begin, np.int64)
        place = np.empty(end - begin, np.int64)
        u = np.empty(end - begin, coef.dtype)
        _locate(
            data[begin:end], sets, binning, signed, zero, lo, scale, low, high, bins, edges,
            edge_start, coef_start, stride, clipped, key, shift, inverse, nothing,
            size, bin_of, place, u,
        )  # fmt: skip
        _store(bin_of, u, bits, out[begin:end])
