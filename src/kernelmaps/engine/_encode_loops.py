"""Compiled encoding: where values fall in a table, as integers, and whether all were in its range.

A code is the bin b, or the position b + u in units of 2^−bits for maps that interpolate. A value
that is NaN or outside [least, most] of its feature is coded as the nearest end (NaN: anything),
and reported: a pass of its own over the data would cost as much as the encoding.
"""

import numba as nb
import numpy as np

from ..bits import float_bits
from ._loops import AFFINE, EDGES, _locate


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _outside(x, least, most):
    wrong = 0
    for d in range(x.size):
        wrong |= not (x[d] >= least[d] and x[d] <= most[d])
    return wrong


@nb.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _encode_affine(x, low, high, lo, scale, unit, last, half, out):
    """Everything by feature, nothing by set: the compiler makes vector code of it."""
    for d in range(x.size):
        value = min(max(np.float64(x[d]), low[d]), high[d])
        t = (value - lo[d]) * scale[d]
        t = max(min(t, last[d]), 0.0) * unit + half
        out[d] = np.uint32(t) if out.itemsize == 4 else np.int32(t)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _encode_edges(x, origin, factor, key, begin, last, first, edges, guide, shift, crowd, out):
    """Bins between uneven edges (see :mod:`.guide`); unsigned indices are not tested for sign."""
    for d in range(x.size):
        value = x[d]
        beyond = max(np.float64(value) - origin[d], 0.0)
        if shift == 0:
            cell = np.uint64(np.int64(beyond * factor[d]))
        else:
            cell = np.uint64(max((float_bits(beyond) >> shift) - key[d], 0))
        at = begin[d] + min(cell, last[d])
        below, above = np.uint64(guide[at]), np.uint64(guide[at + np.uint64(1)])
        while crowd > 4 and below < above:  # bisection, where cells are crowded
            middle = (below + above + np.uint64(1)) >> np.uint64(1)
            if edges[first[d] + middle] <= value:
                below = middle
            else:
                above = middle - np.uint64(1)
        for _ in range(min(crowd, 4)):  # else so many comparisons, and no branch to mispredict
            passed = edges[first[d] + below + np.uint64(1)] <= value
            below += np.uint64(passed & (below < above))
        out[d] = below


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _store(bin_of, u, bits, out):
    if bits == 0:
        for d in range(out.size):
            out[d] = bin_of[d]
    else:
        unit = np.float64(np.int64(1) << bits)
        for d in range(out.size):
            out[d] = np.int64((bin_of[d] + np.float64(u[d])) * unit + 0.5)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def encode_dense(
    X,
    binning, degree, signed, zero, set_of, lo, scale, low, high, bins, width, band,
    edges, edge_start, first, first_start, coef, coef_start, column,
    stride, even, clipped, key, shift, inverse, nothing,
    guide, guide_start, guide_scale, guide_key, guide_shift,
    bits, crowd, least, most, begin, end, out,
):  # fmt: skip
    """Codes of dense rows begin..end; returns whether a value was outside its range."""
    d = X.shape[1]
    wrong = 0
    size = np.empty(d, coef.dtype)
    bin_of = np.empty(d, np.int64)
    place = np.empty(d, np.int64)
    u = np.empty(d, coef.dtype)
    by_feature = low[set_of], high[set_of], lo[set_of], scale[set_of]
    last = bins[set_of] - (1.0 if degree == 0 else 0.0)
    unit, half = np.float64(np.int64(1) << bits), 0.5 if bits > 0 else 0.0
    from_edge = edge_start[set_of].astype(np.uint64)
    origin = edges[from_edge] if binning == EDGES else lo
    factor, from_cell = guide_scale[set_of], guide_start[set_of]
    cells = (guide_start[set_of + 1] - 2 - from_cell).astype(np.uint64)
    of_edges = origin, factor, guide_key[set_of], from_cell.astype(np.uint64), cells
    for i in range(begin, end):
        wrong |= _outside(X[i], least, most)
        if binning == AFFINE:
            _encode_affine(X[i], *by_feature, unit, last, half, out[i])
        elif binning == EDGES and degree == 0:
            _encode_edges(X[i], *of_edges, from_edge, edges, guide, guide_shift, crowd, out[i])
        else:
            _locate(
                X[i], set_of, binning, signed, zero, lo, scale, low, high, bins, edges, edge_start,
                coef_start, stride, clipped, key, shift, inverse, nothing,
                guide, guide_start, guide_scale, guide_key, guide_shift, size, bin_of, place, u,
            )  # fmt: skip
            _store(bin_of, u, bits, out[i])
    return wrong


@nb.njit(cache=True, nogil=True, error_model="numpy")
def encode_stored(
    data, indices,
    binning, degree, signed, zero, set_of, lo, scale, low, high, bins, width, band,
    edges, edge_start, first, first_start, coef, coef_start, column,
    stride, even, clipped, key, shift, inverse, nothing,
    guide, guide_start, guide_scale, guide_key, guide_shift,
    bits, piece, begin, end, out,
):  # fmt: skip
    """Codes of the stored values begin..end of CSR rows, in pieces that fit the cache."""
    sets = np.empty(piece, np.int32)
    size = np.empty(piece, coef.dtype)
    bin_of = np.empty(piece, np.int64)
    place = np.empty(piece, np.int64)
    u = np.empty(piece, coef.dtype)
    for start in range(begin, end, piece):
        stop = min(start + piece, end)
        for k in range(stop - start):
            sets[k] = set_of[indices[start + k]]
        _locate(
            data[start:stop], sets, binning, signed, zero, lo, scale, low, high, bins, edges,
            edge_start, coef_start, stride, clipped, key, shift, inverse, nothing,
            guide, guide_start, guide_scale, guide_key, guide_shift, size, bin_of, place, u,
        )  # fmt: skip
        _store(bin_of, u, bits, out[start:stop])
