"""Sums of a table's columns over the features: the scores of a trained model.

The columns of the table are the model's outputs. Some features of a row at a time are located
(:mod:`.locate`), and the polynomials of their pieces are added up in registers, the outputs side by
side. The coefficients of so few features stay in the cache while a block of rows is processed: a
model of many features would be read anew for every row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._util.compiling import INNER, loop, njit
from ..simd import add, item, polynomial, prefetch, store, zeros
from .layout import Bins, LocalPolynomials, bins_of, pieces_of, polynomials_of
from .locate import Locations, locate_dense, locate_stored
from .stored import CODE, Table

TILE = 128  # most features at a time
BLOCK = 2048  # rows at a time, while the loop goes over the features
AHEAD = 3  # rows whose values are prefetched: wide ones take 0.6 to 0.8 of the time without
_TILE_BYTES = 2**19  # coefficients at a time: a part of a second-level cache


class SummedTable(NamedTuple):
    """A table whose columns are summed over the features."""

    bins: Bins
    values: LocalPolynomials  # columns: outputs
    ends: np.ndarray  # float64[2, features]: a GPU tells of values outside (CODE: no features)
    features: int
    outputs: int
    tile: int  # features at a time: their coefficients stay in a cache


class SumWorkspace(NamedTuple):
    """Memory of one thread."""

    locations: Locations  # of a tile of values
    sums: np.ndarray  # T: of a row, the columns that fill vectors included


def sum_table(table: Table, dtype: np.dtype) -> SummedTable:
    """The layout of a table of outputs, with coefficients in the precision of `dtype`.

    The ends of its range are rounded as rows of that precision are.
    """
    first_piece, sets = pieces_of(table)
    blocks = [table.polynomials(s) for s in sets]
    bins = bins_of(table, first_piece)
    first_columns = [np.zeros(len(block), np.int32) for block in blocks]
    values = polynomials_of(first_columns, blocks, dtype, bool(bins.mirror))
    with np.errstate(over="ignore"):  # ends beyond the range of float32
        ends = np.stack([table.clip_low, table.clip_high])[:, table.set_of].astype(dtype)
    ends = np.ascontiguousarray(ends if table.binning != CODE else ends[:, :0], np.float64)
    tile = _TILE_BYTES // (values.coef.nbytes // table.n_features)
    tile = max(16, min(TILE, tile))
    return SummedTable(bins, values, ends, table.n_features, int(table.width[0]), tile)


@njit(**INNER)
def _add_sums(values, work, n, outputs, row, out):
    """Add the polynomials of the n located values to a row of `out`."""
    locations, size = work.locations, len(values.chunk)
    for v in range(len(values.parts)):
        a, k = zeros(values.coef, values.chunk), np.int64(0)
        b = a  # two sums hide half the latency of an addition
        while k + 1 < n:
            piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
            a = add(a, polynomial(values, piece, u, v))
            piece, u = np.int64(item(locations.piece, k + 1)), item(locations.u, k + 1)
            b = add(b, polynomial(values, piece, u, v))
            k += 2
        if k < n:
            piece, u = np.int64(item(locations.piece, k)), item(locations.u, k)
            a = add(a, polynomial(values, piece, u, v))
        store(work.sums, v * size, add(a, b))
    for c in range(outputs):
        out[row * outputs + c] += item(work.sums, c)


@loop(_nrt=False)
def dot_dense(table, x, work, begin, end, out):
    """Add the sums of dense rows begin..end to `out`, rows of `table.outputs`; both are flat."""
    d, single_row = table.features, np.int64(1)
    for top in range(begin, end, BLOCK):
        bottom = top + BLOCK if top + BLOCK < end else end
        for j in range(0, d, table.tile):
            n = table.tile if d - j > table.tile else d - j
            for i in range(top, bottom):
                position = i * d + j
                # Parts of rows lie too far apart for the processor to read ahead by itself.
                for k in range(0, n if n < d else 0, 64 // x.itemsize):
                    prefetch(x, position + AHEAD * d + k)
                locate_dense(table.bins, x, position, j, n, single_row, work.locations)
                _add_sums(table.values, work, n, table.outputs, i, out)


@loop(_nrt=False)
def dot_stored(table, rows, work, begin, end, out):
    """As `dot_dense`, for CSR rows; features that are not stored add nothing."""
    for i in range(begin, end):
        last = np.int64(item(rows.indptr, i + 1))
        for a in range(np.int64(item(rows.indptr, i)), last, TILE):
            n = TILE if last - a > TILE else last - a
            locate_stored(table.bins, rows, a, n, work.locations)
            _add_sums(table.values, work, n, table.outputs, i, out)
