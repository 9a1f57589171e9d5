r"""Where a value falls: the piece of the table for its bin b, and its position u in the bin.

====== ====================================================================================
bins   b and u of a value x
====== ====================================================================================
AFFINE t = (x − origin)·factor, b = ⌊t⌋, u = t − b
LOG2   x = 2^e (1 + m/M + u/M) with M bins in each octave: b = (e − first octave)·M + m.
       Exponent and m are the leading bits of the float, u the others
EDGES  edges e_0 < e_1 < …: b = #{k ≥ 1 : e_k ≤ x}, u = (x − e_b) / (e_{b+1} − e_b)
CODE   b = x, u = 0
====== ====================================================================================

If the table is `signed` (odd extension), b and u are those of |x|, and negative values have the
piece with the sign changed; if `zero_at_zero`, zero has the piece of zeros.

This is the only compiled code of the processor that finds bins: transforms, sums, codes and
training call it. It relies on the relations that :mod:`.layout` states. A NaN falls into some bin,
never out of bounds; callers that must notice it compare. Two other forms cannot share it, since
they are other languages: the kernels of a GPU (:mod:`..gpu.kernels`) and exported C; all read the
same :class:`.layout.Bins`. The readable form is :func:`..reference.positions`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._util.compiling import INNER, njit
from ..._util.sparse import convert_for_loops
from ..simd import item, put, read
from .layout import (
    CELL,
    EDGE,
    FACTOR,
    FIRST_PIECE,
    HIGH,
    KEY,
    LAST_CELL,
    LOW,
    ORIGIN,
    TOP,
)
from .stored import AFFINE, CODE, LOG2


class Stored(NamedTuple):
    """CSR rows."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class Locations(NamedTuple):
    """Where values fell: one thread's memory."""

    piece: np.ndarray  # int32
    u: np.ndarray  # float64


def locations_for(count: int) -> Locations:
    """Memory for the locations of `count` values."""
    return Locations(np.zeros(count, np.int32), np.zeros(count))


@njit(**INNER)
def locate_values(bins, kind, x, start, j, locations, offset, n):
    """Locate the values x[start:] of n features from j on, into locations from `offset` on.

    `kind` is that of the bins, as an argument by itself: one kind is compiled.
    """
    d = bins.numbers.shape[1]
    for k in range(n):
        f, top = j + k, read(bins.integers, TOP * d + j + k)
        first_piece = read(bins.integers, FIRST_PIECE * d + f)
        if len(kind) == CODE:  # positions stay zero
            b = min(np.int64(read(x, start + k)), top)
            put(locations.piece, offset + k, first_piece + b)
            continue
        value = np.float64(read(x, start + k))
        size = abs(value) if bins.signed else value
        low, high = read(bins.numbers, LOW * d + f), read(bins.numbers, HIGH * d + f)
        size = size if size > low else low  # NaN, too
        size = size if size < high else high
        if len(kind) == AFFINE:
            u = (size - read(bins.numbers, ORIGIN * d + f)) * read(bins.numbers, FACTOR * d + f)
            inside = u if u > 0.0 else 0.0
            b = np.int64(inside if inside < top else np.float64(top))
            u -= b
        elif len(kind) == LOG2:
            bits, bin_size = np.float64(size).view(np.int64), np.int64(1) << bins.shift
            b = min(max((bits >> bins.shift) - bins.start, 0), top)
            u = np.float64(bits & (bin_size - 1)) / np.float64(bin_size)
        else:
            b, u = _find_between_edges(bins, size, f, d)
        b += first_piece + (bins.mirror if value < 0 else 0)
        put(locations.piece, offset + k, bins.zero_piece if bins.zero_at_zero and value == 0 else b)
        put(locations.u, offset + k, u)


@njit(**INNER)
def _find_between_edges(bins, size, f, d):
    """Bin and position between the edges of feature f."""
    bits = np.float64(size - item(bins.numbers, ORIGIN * d + f)).view(np.int64)
    cell = (bits >> bins.shift) - item(bins.integers, KEY * d + f)
    cell = min(max(cell, 0), item(bins.integers, LAST_CELL * d + f))
    cell += item(bins.integers, CELL * d + f)
    edge = item(bins.integers, EDGE * d + f)
    b, last = np.int64(item(bins.before, cell)), np.int64(item(bins.before, cell + 1))
    for _ in range(bins.halvings):  # without branches, which would be mispredicted
        middle = (b + last + 1) >> 1
        passed = size >= item(bins.edges, edge + middle)
        last = last if passed or b == last else middle - 1
        b = middle if passed else b
    if not bins.position:
        return b, 0.0
    left, right = item(bins.edges, edge + b), item(bins.edges, edge + b + 1)
    return b, (size - left) / (right - left) if right > left else 0.0


@njit(inline="always", **INNER)
def locate_dense(bins, x, position, j, n, n_rows, locations):
    """Locate the values of n features from j on in n_rows consecutive rows, from x[at] on."""
    for k in range(0, n * n_rows, n):
        locate_values(bins, bins.kind, x, position + k, j, locations, k, n)


@njit(inline="always", **INNER)
def locate_stored(bins, stored, position, n, locations):
    """The same for n stored values of CSR rows, which have features of their own."""
    for k in range(n):
        j = np.int64(item(stored.indices, position + k))
        locate_values(bins, bins.kind, stored.data, position + k, j, locations, k, np.int64(1))


def stored_rows(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Stored:
    """CSR rows as the loops take them."""
    return Stored(*convert_for_loops(data, indices, indptr))
