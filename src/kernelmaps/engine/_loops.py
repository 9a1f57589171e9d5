"""Compiled application of tables: the one loop behind every additive map.

A row takes two passes. The first finds, for every value, where its bin's coefficients lie and the
position in the bin; it knows about binning and nothing else. The second evaluates polynomials at
these places; it knows about degree and width and nothing else. Each is a short loop that the
compiler can unroll or vectorise, which one loop for both could not be.

The arguments are those of :meth:`kernelmaps.engine.table.Table.arguments`, plain arrays and
numbers. A NaN never reaches these loops (rows are checked before).
"""

import numba as nb
import numpy as np

from ..bits import float_bits
from ._vectors import fill, load, multiply_add, store

AFFINE, LOG2, EDGES, CODE = range(4)
_FAST = {"reassoc", "nsz", "arcp", "contract"}


@nb.njit(cache=True, error_model="numpy")
def _fold(x, sets, signed, low, high, size):
    """Magnitudes within the clipping range."""
    for d in range(x.size):
        value = abs(x[d]) if signed else x[d]
        size[d] = min(max(value, low[sets[d]]), high[sets[d]])


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _locate_log2(size, bins, coef_start, stride, key, shift, inverse, nothing, bin_of, place, u):
    """Octaves by the bits of positive floats; all features share one set of coefficients."""
    mask = (np.int64(1) << shift) - 1
    last = np.int64(bins[0]) - 1
    origin, step, unit = coef_start[0], stride[0], u.dtype.type(inverse)
    for d in range(size.size):
        bits = np.int64(float_bits(size[d]))
        b = min((bits >> shift) - key, last)  # zero has bits 0, far below the first octave
        bin_of[d] = b
        place[d] = origin + b * step if b >= 0 else nothing
        u[d] = u.dtype.type(bits & mask) * unit


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _locate_affine(size, sets, lo, scale, bins, coef_start, stride, bin_of, place, u):
    for d in range(size.size):
        s = sets[d]
        t = (np.float64(size[d]) - lo[s]) * scale[s]
        b = np.int64(max(min(t, bins[s] - 1.0), 0.0))
        bin_of[d] = b
        place[d] = coef_start[s] + b * stride[s]
        u[d] = t - b


@nb.njit(cache=True, error_model="numpy")
def _locate_edges(
    size, sets, edges, edge_start, coef_start, stride,
    guide, guide_start, guide_scale, guide_key, guide_shift, bin_of, place, u,
):  # fmt: skip
    """Bins between edges: from the value's cell (see :mod:`.guide`), comparing what is left."""
    for d in range(size.size):
        s = sets[d]
        first = edge_start[s]
        beyond = max(np.float64(size[d]) - edges[first], 0.0)
        if guide_shift == 0:
            cell = np.int64(min(beyond * guide_scale[s], 4e9))
        else:
            cell = max((float_bits(beyond) >> guide_shift) - guide_key[s], 0)
        at = min(guide_start[s] + cell, guide_start[s + 1] - 2)
        below, above = np.int64(guide[at]), np.int64(guide[at + 1])
        while above - below > 4:
            middle = (below + above + 1) // 2
            if edges[first + middle] <= size[d]:
                below = middle
            else:
                above = middle - 1
        # One comparison is nearly always all that is left: without a branch to mispredict.
        below += (edges[first + below + 1] <= size[d]) & (below < above)
        while below < above and edges[first + below + 1] <= size[d]:
            below += 1
        left = edges[first + below]
        bin_of[d] = below
        place[d] = coef_start[s] + below * stride[s]
        u[d] = (size[d] - left) / (edges[first + below + 1] - left)


@nb.njit(cache=True, error_model="numpy")
def _locate(
    x, sets, binning, signed, zero, lo, scale, low, high, bins, edges, edge_start, coef_start,
    stride, clipped, key, shift, inverse, nothing,
    guide, guide_start, guide_scale, guide_key, guide_shift, size, bin_of, place, u,
):  # fmt: skip
    """Bin, place of its coefficients and position in it, for each value; `nothing` where φ = 0."""
    if binning == CODE:  # u stays zero
        for d in range(x.size):
            bin_of[d] = np.int64(x[d])
        if coef_start.size == 1:
            origin, step = coef_start[0], stride[0]
            for d in range(x.size):
                place[d] = origin + bin_of[d] * step
        else:
            for d in range(x.size):
                place[d] = coef_start[sets[d]] + bin_of[d] * stride[sets[d]]
        return
    if clipped or signed:
        _fold(x, sets, signed, low, high, size)
    else:
        for d in range(x.size):
            size[d] = x[d]
    if binning == LOG2:
        _locate_log2(
            size[: x.size], bins, coef_start, stride, key, shift, inverse, nothing, bin_of, place, u
        )
    elif binning == AFFINE:
        _locate_affine(size[: x.size], sets, lo, scale, bins, coef_start, stride, bin_of, place, u)
    else:
        _locate_edges(
            size[: x.size], sets, edges, edge_start, coef_start, stride,
            guide, guide_start, guide_scale, guide_key, guide_shift, bin_of, place, u,
        )  # fmt: skip
    if zero and (binning != LOG2 or clipped):
        for d in range(x.size):
            if x[d] == 0:
                place[d] = nothing


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _polynomial(coef, at, u, degree, step):
    """Σ_k coef[at + k·step] u^k."""
    value = coef[at + degree * step]
    for k in range(degree - 1, -1, -1):
        value = value * u + coef[at + k * step]
    return value


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _emit_lanes(coef, place, u, degree, q, lanes, out):
    """out[d·q + c] = Σ_k coef[place[d] + k·L + c] u[d]^k for c < q ≤ L = len(lanes).

    All L columns of a value are computed and stored in one vector; the L − q too many are
    overwritten by the next value. The last values of the row have no next one.
    """
    L = len(lanes)
    n = place.size
    safe = max((n * q - L) // q + 1, 0)
    if degree == 0:
        for d in range(safe):
            store(out, d * q, load(coef, place[d], lanes))
    elif degree == 3:
        for d in range(safe):
            at, v = place[d], fill(coef, u[d], lanes)
            value = multiply_add(load(coef, at + 3 * L, lanes), v, load(coef, at + 2 * L, lanes))
            value = multiply_add(value, v, load(coef, at + L, lanes))
            store(out, d * q, multiply_add(value, v, load(coef, at, lanes)))
    else:
        for d in range(safe):
            at, v = place[d], fill(coef, u[d], lanes)
            value = load(coef, at + degree * L, lanes)
            for k in range(degree - 1, -1, -1):
                value = multiply_add(value, v, load(coef, at + k * L, lanes))
            store(out, d * q, value)
    for d in range(safe, n):
        for c in range(q):
            out[d * q + c] = _polynomial(coef, place[d] + c, u[d], degree, L)


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _emit_even(coef, place, u, degree, q, lanes, out):
    """Polynomials of features that all have q columns, stored `lanes` apart (see `Table`)."""
    if lanes == 8:
        _emit_lanes(coef, place, u, degree, q, (0,) * 8, out)
    elif lanes == 4:
        _emit_lanes(coef, place, u, degree, q, (0,) * 4, out)
    elif lanes == 2:
        _emit_lanes(coef, place, u, degree, q, (0,) * 2, out)
    elif lanes == 16:
        _emit_lanes(coef, place, u, degree, q, (0,) * 16, out)
    else:
        for d in range(place.size):
            for c in range(q):
                out[d * q + c] = _polynomial(coef, place[d] + c, u[d], degree, lanes)


@nb.njit(cache=True)
def _consecutive(features, q, out):
    for k in range(features.size):
        for c in range(q):
            out[k * q + c] = features[k] * q + c


@nb.njit(cache=True)
def _spread_even(features, q, out):
    """Column indices of features that all have q columns (few of them: see `_emit_even`)."""
    if q == 5:
        _consecutive(features, 5, out)
    elif q == 3:
        _consecutive(features, 3, out)
    else:
        _consecutive(features, q, out)


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _emit_uneven(coef, place, u, degree, band, start, out):
    """Polynomials of features with band[d] stored columns each, from column start[d] on."""
    for d in range(place.size):
        q = np.int64(band[d])
        for c in range(q):
            value = coef[place[d] + degree * q + c]
            for k in range(degree - 1, -1, -1):
                value = value * u[d] + coef[place[d] + k * q + c]
            out[start[d] + c] = value


@nb.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def apply_dense(
    X,
    binning, degree, signed, zero, set_of, lo, scale, low, high, bins, width, band,
    edges, edge_start, first, first_start, coef, coef_start, column,
    stride, even, lanes, clipped, key, shift, inverse, nothing,
    guide, guide_start, guide_scale, guide_key, guide_shift,
    begin, end, out,
):  # fmt: skip
    """φ of dense rows begin..end; `even`: all features store the same number of columns."""
    d = X.shape[1]
    size = np.empty(d, coef.dtype)
    bin_of = np.empty(d, np.int64)
    place = np.empty(d, np.int64)
    u = np.zeros(d, coef.dtype)
    start = np.empty(d, np.int64)
    bands = band[set_of]
    for i in range(begin, end):
        x = X[i]
        _locate(
            x, set_of, binning, signed, zero, lo, scale, low, high, bins, edges, edge_start,
            coef_start, stride, clipped, key, shift, inverse, nothing,
            guide, guide_start, guide_scale, guide_key, guide_shift, size, bin_of, place, u,
        )  # fmt: skip
        if even > 0:
            _emit_even(coef, place, u, degree, even, lanes, out[i])
        else:
            out[i] = 0
            for k in range(d):
                start[k] = column[k] + first[first_start[set_of[k]] + max(bin_of[k], 0)]
            _emit_uneven(coef, place, u, degree, bands, start, out[i])
        if signed:
            for k in range(d):
                if x[k] < 0:
                    for c in range(column[k], column[k + 1]):
                        out[i, c] = -out[i, c]


@nb.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def apply_csr(
    data, indices, indptr,
    binning, degree, signed, zero, set_of, lo, scale, low, high, bins, width, band,
    edges, edge_start, first, first_start, coef, coef_start, column,
    stride, even, lanes, clipped, key, shift, inverse, nothing,
    guide, guide_start, guide_scale, guide_key, guide_shift,
    begin, end, out_data, out_indices, out_indptr,
):  # fmt: skip
    """φ of CSR rows begin..end, for maps with φ(0) = 0; `out_indptr` is given."""
    longest = 0
    for i in range(begin, end):
        longest = max(longest, indptr[i + 1] - indptr[i])
    sets = np.empty(longest, np.int32)
    size = np.empty(longest, coef.dtype)
    bin_of = np.empty(longest, np.int64)
    place = np.empty(longest, np.int64)
    u = np.zeros(longest, coef.dtype)
    start = np.empty(longest, np.int64)
    bands = np.empty(longest, np.int32)
    for i in range(begin, end):
        count = indptr[i + 1] - indptr[i]
        x, features = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        for k in range(count):
            sets[k] = set_of[features[k]]
        _locate(
            x, sets, binning, signed, zero, lo, scale, low, high, bins, edges, edge_start,
            coef_start, stride, clipped, key, shift, inverse, nothing,
            guide, guide_start, guide_scale, guide_key, guide_shift, size, bin_of, place, u,
        )  # fmt: skip
        row = out_data[out_indptr[i] : out_indptr[i + 1]]
        if even > 0:
            _emit_even(coef, place[:count], u, degree, even, lanes, row)
            _spread_even(features, even, out_indices[out_indptr[i] : out_indptr[i + 1]])
            if not signed:
                continue
        at = out_indptr[i]
        for k in range(count):
            s = sets[k]
            bands[k] = band[s]
            start[k] = at - out_indptr[i]
            if even == 0:
                to = column[features[k]] + first[first_start[s] + max(bin_of[k], 0)]
                for c in range(band[s]):
                    out_indices[at + c] = to + c
            at += band[s]
        if even == 0:
            _emit_uneven(coef, place[:count], u, degree, bands, start, row)
        if signed:
            for k in range(count):
                if x[k] < 0:
                    for c in range(start[k], start[k] + bands[k]):
                        row[c] = -row[c]


@nb.njit(cache=True, error_model="numpy")
def _bit_range(bits, magnitude):
    """Smallest and largest key, smallest magnitude but zero and largest magnitude, all as bits."""
    kind = bits.dtype.type
    shift = 8 * bits.itemsize - 1
    low, high, least, most = magnitude, kind(~magnitude), magnitude, kind(0)
    for d in range(bits.size):
        size = kind(bits[d] & magnitude)
        key = kind(bits[d] ^ kind(kind(bits[d] >> shift) & magnitude))
        low, high = min(low, key), max(high, key)
        least, most = min(least, size if size != 0 else magnitude), max(most, size)
    return low, high, least, most


@nb.njit(cache=True, nogil=True, error_model="numpy")
def scan(bits, magnitude, infinity, begin, end):
    """Extremes of rows begin..end of floats that are given as bits, as :func:`_bit_range` has
    them, and the first row with a value that is not finite (−1: none).

    Keys are integers in the order of the values (bits of negative ones are turned round), and
    magnitudes the bits without the sign. Minima and maxima of integers become vector code; those
    of floats do not, since they must mind NaN (nine times slower).
    """
    kind = bits.dtype.type
    lowest, highest, smallest, wrong = magnitude, kind(~magnitude), magnitude, -1
    for i in range(begin, end):
        low, high, least, most = _bit_range(bits[i], magnitude)
        if most >= infinity:
            wrong = i if wrong < 0 else wrong
            continue
        lowest, highest, smallest = min(lowest, low), max(highest, high), min(smallest, least)
    return lowest, highest, smallest, wrong


@nb.njit(cache=True, nogil=True, error_model="numpy")
def column_range(X, begin, end):
    """Minimum and maximum of every column over rows begin..end."""
    lows = np.full(X.shape[1], np.inf)
    highs = np.full(X.shape[1], -np.inf)
    for i in range(begin, end):
        for d in range(X.shape[1]):
            lows[d] = min(lows[d], X[i, d])
            highs[d] = max(highs[d], X[i, d])
    return lows, highs
