"""Sums of a table's columns over the features: the scores of a trained model.

The columns of the table are the model's outputs. Some features of a row at a time are located
(:mod:`.locate`), and the polynomials of their rows are added up in registers: for one output,
several values side by side, whose blocks of coefficients are transposed; for more, the outputs side
by side. The coefficients of so few features stay in the cache while all rows pass by, and the rows
to come are asked for early: that is worth more than any wider vector.

Values outside the range of the table, and those that are not finite, are noticed on the way.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
from numba.extending import overload

from ..simd import (
    add,
    as_floats,
    between,
    fill,
    fold,
    gather_blocks,
    item,
    load,
    multiply_add,
    plus_distance,
    prefetch,
    store,
    width,
    zeros,
)
from .emit import polynomial
from .layout import Bins, Block, bins_of, block_of, rows_of
from .locate import INNER, load_values, locate, locate_stored
from .search import by_vector
from .stored import CODE, Table

__all__ = ["Room", "Summed", "dot_dense", "dot_stored", "room_for", "summed_table"]

TILE = 128  # features at a time: their coefficients, and where they lie, stay in the nearest cache
_AHEAD = 2  # rows from the one at work to the one that is asked for
_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}


class Summed(NamedTuple):
    """A table whose columns are summed over the features."""

    bins: Bins
    values: Block  # columns: the outputs; of one output, the number of powers is a power of two
    low: np.ndarray  # T by feature, in vectors: values outside low … high are noticed; CODE: none
    high: np.ndarray
    features: int
    outputs: int


class Room(NamedTuple):
    """Memory of one thread: room for a tile of values, and a vector more."""

    row: np.ndarray  # int32
    u: np.ndarray  # T
    sums: np.ndarray  # T


def summed_table(table: Table, dtype: np.dtype) -> Summed:
    """The layout of a table of outputs, in the precision `dtype`."""
    row, sets = rows_of(table)
    outputs = int(table.width[0])
    powers = table.degree + 1
    padded = 1 << (powers - 1).bit_length() if outputs == 1 else powers
    blocks = []
    for s in sets:
        shape = (int(table.bins[s]), powers, int(table.band[s]))
        start = int(table.coef_start[s])
        block = np.zeros((shape[0], padded, shape[2]))
        block[:, :powers] = table.coef[start : start + int(np.prod(shape))].reshape(shape)
        blocks.append(block)
    bins = bins_of(table, row, dtype)
    first = [np.zeros(len(block), np.int32) for block in blocks]
    low, high = (by_vector(end[table.set_of].astype(dtype)) for end in (table.low, table.high))
    if table.binning == CODE:
        low, high = low[:0], high[:0]
    values = block_of(first, blocks, dtype, bool(bins.mirror))
    return Summed(bins, values, low, high, table.n_features, outputs)


def room_for(table: Summed) -> tuple[Room, tuple]:
    """Room for one thread, and the lanes of its vectors."""
    dtype = table.values.coef.dtype
    lanes = (0,) * width(dtype.itemsize)
    size = TILE + 16
    return Room(np.zeros(size, np.int32), np.zeros(size, dtype), np.zeros(16, dtype)), lanes


def _sum(table, room, n, lanes, at, out, x, ahead):
    """``out[at + c]`` += the sum of output c over the n values that were located.

    Meanwhile ``x[ahead : ahead + n]`` is asked for, a line at a time: all at once they would wait.
    """
    raise NotImplementedError("for compiled loops")


@overload(_sum, jit_options=INNER)
def _sum_of(table, room, n, lanes, at, out, x, ahead):
    block = table.types[table.fields.index("values")]
    chunk, parts = (len(block.types[block.fields.index(name)]) for name in ("chunk", "parts"))
    return _one_output if chunk * parts == 1 else _many_outputs


def _one_output(table, room, n, lanes, at, out, x, ahead):
    """Polynomials of as many values as there are lanes, by Horner's rule."""
    values = table.values
    total = zeros(values.coef, lanes)
    for k in range(0, n, len(lanes)):
        prefetch(x, ahead + k)
        coef = gather_blocks(values.coef, room.row, k, values.powers, lanes)
        u = load(room.u, k, lanes)
        value = coef[len(values.powers) - 1]
        for power in range(len(values.powers) - 2, -1, -1):
            value = multiply_add(value, u, coef[power])
        total = add(total, value)
    store(room.sums, 0, fold(total, (0,)))
    out[at] += item(room.sums, 0)


def _many_outputs(table, room, n, lanes, at, out, x, ahead):
    """The outputs of two values at a time: two sums hide half the latency of an addition."""
    values, size = table.values, len(table.values.chunk)
    for part in range(len(values.parts)):
        a = zeros(values.coef, values.chunk)
        b = a
        for k in range(0, n, 2):
            prefetch(x, ahead + k)
            a = add(a, polynomial(values, np.int64(item(room.row, k)), item(room.u, k), part))
            row, u = np.int64(item(room.row, k + 1)), item(room.u, k + 1)
            b = add(b, polynomial(values, row, u, part))
        store(room.sums, 0, add(a, b))
        left = table.outputs - part * size
        for c in range(size if left > size else left):
            out[at + part * size + c] += item(room.sums, c)


@nb.njit(**INNER)
def _end(table, room, n, lanes):
    """Behind n values: others that add nothing, to fill a vector."""
    store(room.row, n, fill(room.row, np.int32(table.bins.nothing), lanes))
    store(room.u, n, zeros(room.u, lanes))


@nb.njit(**INNER)
def _notice(table, x, at, j, n, lanes, total):
    """Add by how much values x[at + k] of features j + k, k < n, are outside; NaN stays NaN."""
    for start in range(0, n, len(lanes)):
        k = start if start <= n - len(lanes) else max(n - len(lanes), 0)
        value = as_floats(load_values(x, at + k, n, lanes), table.values.coef)
        inside = between(value, load(table.low, j + k, lanes), load(table.high, j + k, lanes))
        total = plus_distance(total, inside, value)
    return total


@nb.njit(**_OPTIONS)
def dot_dense(table, x, lanes, room, begin, end, out):
    """Add the sums of dense rows begin..end to `out`, rows of `table.outputs`; both are flat.

    Returns by how much values were outside the range in all: 0 if none was, NaN for NaN.
    """
    d = table.features
    beyond = zeros(table.values.coef, lanes)
    for a in range(0, d, TILE):
        n = TILE if d - a > TILE else d - a
        for i in range(begin, end):
            locate(table.bins, x, i * d + a, a, n, lanes, room.row, room.u)
            if table.low.size > 0:
                beyond = _notice(table, x, i * d + a, a, n, lanes, beyond)
            _end(table, room, n, lanes)
            _sum(table, room, n, lanes, i * table.outputs, out, x, (i + _AHEAD) * d + a)
    store(room.sums, 0, fold(beyond, (0,)))
    return item(room.sums, 0)


@nb.njit(**_OPTIONS)
def dot_stored(table, rows, lanes, room, begin, end, out):
    """The same for CSR rows; features that are not stored add nothing."""
    beyond = 0.0
    for i in range(begin, end):
        last = np.int64(item(rows.indptr, i + 1))
        for a in range(np.int64(item(rows.indptr, i)), last, TILE):
            n = TILE if last - a > TILE else last - a
            locate_stored(table.bins, rows, a, n, room.row, room.u)
            for k in range(a, a + n if table.low.size > 0 else a):
                j, value = np.int64(item(rows.indices, k)), np.float64(item(rows.data, k))
                inside = between(value, np.float64(table.low[j]), np.float64(table.high[j]))
                beyond += abs(inside - value)
            _end(table, room, n, lanes)
            _sum(table, room, n, lanes, i * table.outputs, out, rows.data, a + n)
    return beyond
