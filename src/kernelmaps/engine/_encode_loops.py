"""Compiled encoding: where values fall in a table, as integers, and whether all were in its range.

A code is the bin b, or the position b + u in units of 2^−bits for maps that interpolate. A value
that is NaN or outside [least, most] of its feature is coded as the nearest end (NaN: anything),
and reported: a pass of its own over the data would cost as much as the encoding.
"""

import numba as nb
import numpy as np

from ._lanes import (
    as_floats,
    between,
    from_origin,
    gather,
    octave,
    outside,
    passed,
    plus,
    plus_share,
    reals,
    rounded,
    share,
    store_codes,
    where_passed,
    words,
)
from ._loops import _locate
from ._vectors import load, prefetch, zeros


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _even(x, d, at, rows, begin, end, places, least, most, bits, lanes, out):
    """Codes of the features begin..end of some rows, in whole vectors; x begins with feature at."""
    wrong = False
    unit, half = np.float64(np.int64(1) << bits), 0.5 if bits > 0 else 0.0
    for i in range(rows[0], rows[1]):
        for j in range(begin, end, len(lanes)):
            value = as_floats(load(x, i * d + j - at, lanes), least)
            wrong |= outside(value, load(least, j, lanes), load(most, j, lanes))
            t = as_floats(value, places.lo)
            t = from_origin(t, load(places.lo, j, lanes), load(places.scale, j, lanes))
            t = between(t, load(places.first, j, lanes), load(places.final, j, lanes))
            store_codes(out, i * d + j - at, rounded(t, unit, half, out))
    return wrong


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _uneven(x, d, at, rows, begin, end, places, least, most, bits, lanes, out):
    """The same between uneven edges: a cell's count of thresholds, and what is left to compare.

    Gathers are what this loop waits for: one for a cell's count and its threshold, where they are
    stored as a pair, else two; and for a position in a bin one more, since the threshold is one of
    the bin's ends, else two. The next block of rows is asked for meanwhile, since no hardware
    guesses the order of tiles.
    """
    wrong = False
    edges = places.edges
    one, none, half = edges.dtype.type(1), edges.dtype.type(0), edges.dtype.type(0.5)
    for i in range(rows[0], rows[1]):
        ahead = min(i + rows[1] - rows[0], rows[2] - 1) * d
        for j in range(begin, end, len(lanes)):
            prefetch(x, ahead + j - at)
            value = as_floats(load(x, i * d + j - at, lanes), edges)
            wrong |= outside(value, load(least, j, lanes), load(most, j, lanes))
            if bits > 0:
                value = between(value, load(places.low, j, lanes), load(places.high, j, lanes))
            t = from_origin(value, load(places.origin, j, lanes), load(places.factor, j, lanes))
            if places.shift == 0:
                t = between(t, zeros(edges, lanes), load(places.last, j, lanes))
                cell = rounded(t, one, none, places.guide)
            else:
                key, limit = load(places.key, j, lanes), load(places.limit, j, lanes)
                cell = octave(t, places.shift, key, limit)
            cell = plus(cell, load(places.cell_start, j, lanes))
            if places.pairs.size > 0:
                word = words(gather(places.pairs, cell))
                threshold = reals(word[0], edges)
                count = passed(word[1], value, threshold, 1)
                if bits > 0:
                    # The threshold is one end of the bin. The other is the edge after it for
                    # values that pass it, and the edge before it for those that do not.
                    place = plus(word[1], load(places.edge_start, j, lanes))
                    other = gather(edges, passed(place, value, threshold, 2))
                    begins = where_passed(value, threshold, threshold, other)
                    ends = where_passed(value, threshold, other, threshold)
                    count = plus_share(count, share(value, begins, ends), bits, half)
            else:
                count = gather(places.guide, cell)
                # edges[place + b] is the left end of bin b
                place = load(places.edge_start, j, lanes)
                left = places.crowd[np.uint64(j) // np.uint64(len(lanes))]
                while left > 0:  # nearly always once
                    step = (left + 1) >> 1
                    farther = plus(plus(count, place), step)
                    count = passed(count, value, gather(edges, farther), step)
                    left -= step
                if bits > 0:
                    here = plus(count, place)
                    part = share(value, gather(edges, here), gather(edges, plus(here, 1)))
                    count = plus_share(count, part, bits, half)
            store_codes(out, i * d + j - at, count)
    return wrong


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _tile(x, d, at, rows, begin, end, places, least, most, bits, lanes, out):
    if places.even:
        return _even(x, d, at, rows, begin, end, places, least, most, bits, lanes, out)
    return _uneven(x, d, at, rows, begin, end, places, least, most, bits, lanes, out)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def encode_dense(x, d, places, least, most, bits, lanes, block, begin, end, out):
    """Codes of dense rows begin..end (flat); returns whether a value was outside its range.

    Features in tiles whose tables stay in the nearest cache for a block of rows. What is left of
    rows after whole vectors goes through rows of their own, padded with the last feature.
    """
    wrong = False
    size = len(lanes)
    whole = d - d % size
    rest, codes = np.zeros(block * size, x.dtype), np.zeros(block * size, out.dtype)
    for top in range(begin, end, block):
        bottom, left = min(top + block, end), 0
        while left < d:
            right = min(left + places.tile, whole) if left < whole else d
            source, target, width, at, rows = x, out, d, 0, (top, bottom, end)
            if right > whole:
                for i in range(top, bottom):
                    for j in range(size):
                        rest[(i - top) * size + j] = x[i * d + min(whole + j, d - 1)]
                rows = (0, bottom - top, bottom - top)
                source, target, width, at = rest, codes, size, whole
            wrong |= _tile(
                source, width, at, rows, left, right, places, least, most, bits, lanes, target
            )
            if right > whole:
                for i in range(top, bottom):
                    for j in range(whole, d):
                        out[i * d + j] = codes[(i - top) * size + j - whole]
            left = right
    return wrong


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
def encode_stored(
    data, indices,
    binning, degree, signed, zero, set_of, lo, scale, low, high, bins, width, band,
    edges, edge_start, first, first_start, coef, coef_start, column,
    stride, even, lanes, clipped, key, shift, inverse, nothing,
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
