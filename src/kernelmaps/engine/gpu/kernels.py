"""Triton kernels over the table of local polynomials: find the bin, evaluate, write or add up.

They read the same layout as the compiled loops of the CPU (:mod:`kernelmaps.engine.table`): a value
has a *piece* of the table and a position ``u`` in its bin, and a column is a polynomial in ``u``. A
program locates a tile of values, each of them once, and then evaluates their columns as a matrix
(value, column). These kernels are bound by accesses to the first-level cache, so that the lanes of
a warp read the coefficients of *one* value side by side: of a float32 cubic all four lie together,
16 bytes for each lane, and a piece is padded to a power of two of columns. Reading them word by
word, or with one value for each lane, takes two to four times as long.

A kernel takes its table whole, as one of the named tuples of
:mod:`kernelmaps.engine.gpu.device_tables`, in which what the compiler has to know is marked as a
constant. SIZES are those of one launch.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from ..table import stored

AFFINE, LOG2 = tl.constexpr(stored.AFFINE), tl.constexpr(stored.LOG2)
EDGES, CODE = tl.constexpr(stored.EDGES), tl.constexpr(stored.CODE)


class _Feature(NamedTuple):
    """What the finder reads of a feature; `first_piece` where its bins have no such number."""

    first_piece: Any
    top: Any
    low: Any
    high: Any
    origin: Any
    factor: Any
    edge: Any
    cell: Any
    last_cell: Any
    key: Any


@triton.jit
def _read(f, bins):
    """What the finder reads of features f, once for many rows: see `layout.Bins`."""
    numbers, integers, stride = bins.numbers, bins.integers, bins.stride
    first_piece = tl.load(integers + f)
    top = tl.load(integers + stride + f)
    none = first_piece
    low, high, origin, factor = none, none, none, none
    edge, cell, last_cell, key = none, none, none, none
    if bins.kind != CODE:
        low = tl.load(numbers + f)
        high = tl.load(numbers + stride + f)
    if bins.kind == AFFINE or bins.kind == EDGES:
        origin = tl.load(numbers + 2 * stride + f)
        factor = tl.load(numbers + 3 * stride + f)
    if bins.kind == EDGES:
        edge = tl.load(integers + 2 * stride + f)
        cell = tl.load(integers + 3 * stride + f)
        last_cell = tl.load(integers + 4 * stride + f)
        key = tl.load(integers + 5 * stride + f)
    return _Feature(first_piece, top, low, high, origin, factor, edge, cell, last_cell, key)


@triton.jit
def _clip(x, low, high):
    return tl.minimum(tl.maximum(x, low), high)


@triton.jit
def _bin_between_edges(size, feature, bins):
    """A cell has the number of edges before it; its own are compared."""
    leading = ((size - feature.origin).to(tl.int64, bitcast=True) >> bins.shift).to(tl.int32)
    cell = bins.before + feature.cell + _clip(leading - feature.key, 0, feature.last_cell)
    b, last = tl.load(cell), tl.load(cell + 1)
    edges = bins.edges + feature.edge
    for _ in tl.static_range(bins.halvings):
        middle = (b + last + 1) >> 1
        passed = size >= tl.load(edges + middle)
        last = tl.where(passed | (b == last), last, middle - 1)
        b = tl.where(passed, middle, b)
    return b


@triton.jit
def _find_bin(x, feature, bins):
    """Bin b of values, and the position u in it, in float64 as on the processor."""
    if bins.kind == CODE:
        b = tl.minimum(x.to(tl.int32), feature.top)
        u = tl.zeros(x.shape, tl.float32)
    else:
        size = x.to(tl.float64)
        if bins.signed:
            size = tl.abs(size)
        size = _clip(size, feature.low, feature.high)
        if bins.kind == AFFINE:
            t = (size - feature.origin) * feature.factor
            b = _clip(t, 0.0, feature.top.to(tl.float64)).to(tl.int32)
            u = t - b.to(tl.float64)
        elif bins.kind == LOG2:
            bits = size.to(tl.int64, bitcast=True)
            leading = bits >> bins.shift
            b = _clip((leading - bins.start).to(tl.int32), 0, feature.top)
            u = (bits - (leading << bins.shift)).to(tl.float64) * bins.unit.to(tl.float64)
        else:
            b = _bin_between_edges(size, feature, bins)
            u = tl.zeros(x.shape, tl.float64)
            if bins.position:
                left = tl.load(bins.edges + feature.edge + b)
                u = (size - left) / (tl.load(bins.edges + feature.edge + b + 1) - left)
    return b, u


@triton.jit
def _find(x, feature, bins):
    """Piece of the table and position in the bin, for values x; `feature` is what `_read` found."""
    b, u = _find_bin(x, feature, bins)
    piece = feature.first_piece + b
    if bins.signed:
        piece = tl.where(x < 0, piece + bins.mirror, piece)
    if bins.zero_at_zero:
        piece = tl.where(x == 0, bins.zero_piece, piece)
    if x.dtype == tl.float64:
        return piece, u
    else:
        return piece, u.to(tl.float32)


@triton.jit
def _halves(word):
    """The two float32 numbers of a 64-bit word."""
    low = word.to(tl.int32).to(tl.float32, bitcast=True)
    high = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return low, high


@triton.jit
def _columns(block, piece, u, begin, count, COLUMNS: tl.constexpr):
    """Σ_k coef[piece, k, begin + c] u^k for values (V,) and columns c < COLUMNS, by Horner's rule.

    Columns from `count` on are not read. See `device_tables.put_block` for their order: the last
    axis of what is loaded is contiguous, which also tells Triton how to share it among lanes.
    """
    u_, c = u[:, None], tl.arange(0, COLUMNS)[None, :]
    read = c < count
    if block.powers == 4 and u.dtype == tl.float32:
        position = (piece * block.columns + begin) * 2
        w = tl.arange(0, 2 * COLUMNS)[None, :]
        words = tl.load(block.coef + position[:, None] + w, w < 2 * count, other=0)
        low_words, high_words = tl.split(tl.reshape(words, (piece.shape[0], COLUMNS, 2)))
        a, b = _halves(low_words)
        square, cube = _halves(high_words)
        return ((cube * u_ + square) * u_ + b) * u_ + a
    elif block.powers == 2 and u.dtype == tl.float32:
        position = piece * block.columns + begin
        a, b = _halves(tl.load(block.coef + position[:, None] + c, read, other=0))
        return b * u_ + a
    else:
        position = (piece * block.powers + (block.powers - 1)) * block.columns + begin
        place = block.coef + position[:, None] + c
        value = tl.load(place, read, other=0)
        for k in tl.static_range(1, block.powers):
            value = value * u_ + tl.load(place - k * block.columns, read, other=0)
        return value


@triton.jit
def _is_refused(x, CHECK: tl.constexpr):
    """Which values are not finite (CHECK 1), or negative, too (2); none for CHECK 0.

    Those in float32's last octave, which no table of octaves has, are refused as well.
    """
    if CHECK == 0:
        return x != x
    else:
        if x.dtype == tl.float64:
            wrong = (x != x) | (tl.abs(x) == float("inf"))
        else:
            wrong = (x != x) | (tl.abs(x) >= 1.7014118346046923e38)
        if CHECK > 1:
            wrong = wrong | (x < 0)
        return wrong


@triton.jit
def _set_flag(wrong, flag_ptr):
    """Set the flag if something was wrong. All threads have to meet for it: once, at the end."""
    if tl.max(wrong.to(tl.int32)) > 0:
        tl.store(flag_ptr, 1)


@triton.jit
def _real(x):
    """Halves as single numbers; the others stay what they are."""
    if x.dtype == tl.float16:
        return x.to(tl.float32)
    elif x.dtype == tl.bfloat16:
        return x.to(tl.float32)
    else:
        return x


@triton.jit
def transform(
    x_ptr, out_ptr, flag_ptr, n, group, table, CHECK: tl.constexpr, SIZES: tl.constexpr
):  # fmt: skip
    """φ of rows that lie one after the other.

    A `group` of rows is divided into tiles of so many values, none of them in part. A program has
    one tile in each of several groups, with the same features, of which it reads once. Every
    feature has `table.n_columns` columns if `uniform`; else the table says how many, and where.
    """
    d = table.features
    k = tl.program_id(1) * SIZES.tile + tl.arange(0, SIZES.tile)
    r = k // d
    f = k - r * d
    feature = _read(f, table.bins)
    begin = tl.program_id(2) * SIZES.columns
    c = begin + tl.arange(0, SIZES.columns)
    if table.uniform:
        target = (k * table.n_columns)[:, None] + c[None, :]
        real = (c < table.n_columns)[None, :]
    else:
        target = (r * table.width + tl.load(table.column + f))[:, None] + c[None, :]
        real = c[None, :] < tl.load(table.count + f)[:, None]
    wrong = k < 0
    for step in range(SIZES.steps):
        top = (tl.program_id(0).to(tl.int64) * SIZES.steps + step) * group
        left = (tl.minimum(n - top, group) * d).to(tl.int32)
        x = tl.load(x_ptr + top * d + k, k < left, other=0)
        wrong = wrong | _is_refused(x, CHECK)
        piece, u = _find(_real(x), feature, table.bins)
        if table.banded:
            # Columns of a piece begin at `first_column`: others around are of other pieces.
            first_column = tl.load(table.first_column + piece)
            since = table.margin + begin - first_column
            value = _columns(table.block, piece, u, since, SIZES.columns, SIZES.columns)
            place = c[None, :] - first_column[:, None]
            value = tl.where((place >= 0) & (place < table.block.columns), value, 0.0)
        else:
            value = _columns(table.block, piece, u, begin, table.n_columns - begin, SIZES.columns)
        out = out_ptr + top * table.width + target
        tl.store(out, value.to(out_ptr.dtype.element_ty), real & (k < left)[:, None])
    if CHECK > 0:
        _set_flag(wrong, flag_ptr)


@triton.jit
def dot(
    x_ptr, out_ptr, flag_ptr, n, split, table, CHECK: tl.constexpr, SIZES: tl.constexpr
):  # fmt: skip
    """Sums over `split` features of their polynomials, for some rows: one share of the scores.

    Rows come first in the order of values, so that a thread has all features of its rows, and adds
    them up by itself. The flag is also set by values outside the ranges of a table that has some.
    """
    d, outputs = table.features, table.outputs
    ROWS: tl.constexpr = SIZES.rows
    FEATURES: tl.constexpr = SIZES.features
    COLUMNS: tl.constexpr = SIZES.columns
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    begin = tl.program_id(2) * COLUMNS
    c = begin + tl.arange(0, COLUMNS)
    inside = i < n
    total = tl.zeros((ROWS, COLUMNS), out_ptr.dtype.element_ty)
    wrong = (inside[:, None]) & (tl.arange(0, FEATURES)[None, :] < 0)
    since = tl.program_id(1) * split
    until = tl.minimum(since + split, d)
    for block in range(since, until, FEATURES):
        f = (block + tl.arange(0, FEATURES))[None, :]
        used = inside[:, None] & (f < until)
        index = tl.minimum(f, d - 1)
        feature = _read(index, table.bins)
        x = tl.load(x_ptr + i[:, None] * d + f, used, other=0)
        wrong = wrong | _is_refused(x, CHECK)
        if table.bounded:
            size = _real(x)
            low, high = tl.load(table.low + index), tl.load(table.high + index)
            beyond = (size < low) | (size > high)
            wrong = wrong | (used & beyond)
        piece, u = _find(_real(x), feature, table.bins)
        piece = tl.where(used, piece, table.bins.zero_piece)
        piece = tl.reshape(tl.permute(piece, (1, 0)), (FEATURES * ROWS,))
        u = tl.reshape(tl.permute(u, (1, 0)), (FEATURES * ROWS,))
        value = _columns(table.block, piece, u, begin, outputs - begin, COLUMNS)
        total += tl.sum(tl.reshape(value, (FEATURES, ROWS, COLUMNS)), axis=0)
    _set_flag(wrong, flag_ptr)
    place = out_ptr + ((tl.program_id(1) * n + i) * outputs)[:, None] + c[None, :]
    tl.store(place, total, inside[:, None] & (c < outputs)[None, :])


@triton.jit
def encode(x_ptr, out_ptr, flag_ptr, n, group, table, SIZES: tl.constexpr):
    """Codes of values: bins, or positions b + u in units of 1/unit, rounded.

    Tiles are those of `transform`: a program reads once of its features. The flag is set by values
    outside low … high of their features, and by NaN.
    """
    d = table.features
    k = tl.program_id(1) * SIZES.tile + tl.arange(0, SIZES.tile)
    f = k % d
    feature = _read(f, table.bins)
    low, high = tl.load(table.low + f), tl.load(table.high + f)
    outside = k < 0
    for step in range(SIZES.steps):
        top = (tl.program_id(0).to(tl.int64) * SIZES.steps + step) * group
        inside = k < (tl.minimum(n - top, group) * d).to(tl.int32)
        x = _real(tl.load(x_ptr + top * d + k, inside, other=0))
        outside = outside | (inside & (((x >= low) & (x <= high)) == 0))
        code, u = _find_bin(x, feature, table.bins)
        if table.bins.position:
            t = _clip(code.to(tl.float64) + u, 0.0, feature.top.to(tl.float64) + 1.0)
            code = (t * table.unit.to(tl.float64) + 0.5).to(tl.int32)
        tl.store(out_ptr + top * d + k, code.to(out_ptr.dtype.element_ty), inside)
    _set_flag(outside, flag_ptr)
