"""Codes of rows: the bin of every value as an integer, or bin and position in fixed point.

A code is the bin b, or the position b + u in units of 2^−bits for maps that interpolate. Values
that are NaN or outside of the range of their feature are noticed on the way: a separate pass over
the data would cost as much as the encoding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._util.compiling import INNER, loop, njit
from ..simd import item, put, read
from .layout import TOP
from .locate import locate_dense

TILE = 512  # values that are located at a time


class Encoding(NamedTuple):
    """How values are encoded."""

    unit: float  # codes in a bin: 2^bits
    ends: np.ndarray  # float64[2, features]


@njit(**INNER)
def _code(bins, unit, locations, k, j):
    """The code of the located value k, of feature j: that of the last bin at most."""
    b = np.int64(item(locations.piece, k))
    if not bins.position:
        return b
    t, end = b + item(locations.u, k), read(bins.integers, TOP * bins.numbers.shape[1] + j) + 1.0
    t = t if t > 0.0 else 0.0
    return np.int64((t if t < end else end) * unit + 0.5)


@loop(_nrt=False)
def encode_dense(bins, encoding, x, locations, begin, end, out):
    """Codes of dense rows begin..end (both are flat); whether all were in their ranges."""
    ends, inside = encoding.ends, True
    d = ends.shape[1]
    together = TILE // d if d < TILE else 1
    for row in range(begin, end, together):
        n_rows = together if end - row > together else end - row
        for j in range(0, d, TILE):
            n, position = TILE if d - j > TILE else d - j, row * d + j
            locate_dense(bins, x, position, j, n, n_rows, locations)
            for start in range(0, n * n_rows, n):
                for k in range(n):
                    value = np.float64(read(x, position + start + k))
                    inside &= (read(ends, j + k) <= value) & (value <= read(ends, d + j + k))
                    code = _code(bins, encoding.unit, locations, start + k, j + k)
                    put(out, position + start + k, code)
    return inside
