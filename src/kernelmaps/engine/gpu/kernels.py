"""Triton kernels over the table of local polynomials: find the bin, evaluate, write or add up.

They read the same layout as the compiled loops of the CPU (:mod:`kernelmaps.engine.table`): a value
has a *piece* of the table and a position ``u`` in its bin, and a column is a polynomial in ``u``. A
program locates a tile of values, each of them once, and then evaluates their columns as a matrix
(value, column). These kernels are bound by accesses to the first-level cache, so that the lanes of
a warp read the coefficients of *one* value side by side: of a float32 cubic all four lie together,
16 bytes for each lane, and a piece is padded to a power of two of columns. Reading them word by
word, or with one value for each lane, takes two to four times as long.

A kernel takes its table whole, as one of the named tuples of :mod:`kernelmaps.engine.gpu.tables`,
in which what the compiler has to know is marked as a constant. SIZES are those of one launch.
"""

import re
from typing import Any, NamedTuple

import triton
import triton.language as tl

from ..table import stored
from . import splines

AFFINE, LOG2 = tl.constexpr(stored.AFFINE), tl.constexpr(stored.LOG2)
EDGES, CODE = tl.constexpr(stored.EDGES), tl.constexpr(stored.CODE)
WORDS = tl.constexpr(splines.WORDS)
GROUP = tl.constexpr(8)  # tiles of rows whose programs share columns of a product in the cache


@triton.jit
def _within(x, low, high):
    return tl.minimum(tl.maximum(x, low), high)


@triton.jit
def _bits(x):
    """The bits of a positive float: a piecewise-linear logarithm."""
    if x.dtype == tl.float64:
        return x.to(tl.int64, bitcast=True)
    else:
        return x.to(tl.int32, bitcast=True)


class _Feature(NamedTuple):
    """What the finder reads of a feature; `first_piece` where its bins have no such number."""

    first_piece: Any
    top: Any
    origin: Any
    origin_error: Any
    factor: Any
    low: Any
    high: Any
    last: Any
    key: Any
    cell: Any
    edge: Any


@triton.jit
def _read(f, bins):
    """What the finder reads of features f, once for many rows."""
    numbers, integers, stride = bins.numbers, bins.integers, bins.stride
    first_piece = tl.load(integers + f)
    top = tl.load(integers + 4 * stride + f)
    none = first_piece
    origin, origin_error, factor, low, high, last = none, none, none, none, none, none
    key, cell, edge = none, none, none
    if bins.kind == AFFINE:
        origin_error = tl.load(numbers + stride + f)
    if bins.kind == AFFINE or bins.kind == EDGES:
        origin = tl.load(numbers + f)
        factor = tl.load(numbers + 2 * stride + f)
        last = tl.load(numbers + 5 * stride + f)
    if bins.kind == AFFINE or bins.kind == EDGES or bins.clipped:
        low = tl.load(numbers + 3 * stride + f)
        high = tl.load(numbers + 4 * stride + f)
    if bins.kind == EDGES:
        key = tl.load(integers + stride + f)
        cell = tl.load(integers + 2 * stride + f)
        edge = tl.load(integers + 3 * stride + f)
    return _Feature(
        first_piece, top, origin, origin_error, factor, low, high, last, key, cell, edge
    )


@triton.jit
def _find_affine(size, at):
    """Uniform bins. The origin is a sum of two numbers: float32 loses nothing far from zero."""
    t = ((size.to(at.origin.dtype) - at.origin) - at.origin_error) * at.factor
    t = _within(t, at.low, at.high)
    b = _within(t, 0.0, at.last).to(tl.int32)
    return at.first_piece + b, (t - b.to(t.dtype)).to(size.dtype)


@triton.jit
def _find_log2(size, at, bins):
    """Octaves, each divided evenly, by the leading bits of positive floats."""
    if bins.clipped:
        size = _within(size, at.low, at.high)
    bits = _bits(size)
    leading = bits >> bins.shift
    b = _within(leading - bins.start, 0, bins.limit).to(tl.int32)
    other_bits = bits - (leading << bins.shift)
    return at.first_piece + b, other_bits.to(size.dtype) * bins.unit.to(size.dtype)


@triton.jit
def _find_edges(size, at, bins):
    """Bins between edges: a cell has the number of thresholds before it; its own are compared."""
    size = _within(size, at.low, at.high)
    if bins.octaves:
        leading = (_bits(tl.maximum(size - at.origin, 0.0)) >> bins.shift).to(tl.int32)
        cell = at.cell + _within(leading - at.key, 0, at.last.to(tl.int32))
    else:
        cell = at.cell + _within((size - at.origin) * at.factor, 0.0, at.last).to(tl.int32)
    count, edges = tl.load(bins.before + cell), bins.edges + at.edge
    for step in tl.static_range(bins.crowd, 0, -1):  # bisection, by powers of two
        farther = 1 << (step - 1)
        passed = size >= tl.load(edges + count + farther)
        count = tl.where(passed, count + farther, count)
    b = tl.minimum(count, at.top)
    u = tl.zeros(size.shape, size.dtype)
    if bins.position:
        left = tl.load(edges + b)
        width = tl.load(edges + b + 1) - left
        if bins.position > 1 and size.dtype == tl.float32:
            u = tl.div_rn(size - left, width)  # Triton's own division is off by up to two digits
        else:
            u = (size - left) / width
    return at.first_piece + b, u


@triton.jit
def _find(x, at, bins):
    """Row of the table and position in the bin, for values x; `at` is what `_read` found."""
    if bins.kind == CODE:
        piece = at.first_piece + tl.minimum(x.to(tl.int32), at.top)
        u = tl.zeros(x.shape, tl.float32)
    else:
        size = x
        if bins.signed:
            size = tl.abs(x)
        if bins.kind == AFFINE:
            piece, u = _find_affine(size, at)
        elif bins.kind == LOG2:
            piece, u = _find_log2(size, at, bins)
        else:
            piece, u = _find_edges(size, at, bins)
        if bins.signed:
            piece = tl.where(x < 0, piece + bins.mirror, piece)
        if bins.zero_at_zero:
            piece = tl.where(x == 0, bins.zero_piece, piece)
    return piece, u


@triton.jit
def _halves(word):
    """The two float32 numbers of a 64-bit word."""
    low = word.to(tl.int32).to(tl.float32, bitcast=True)
    high = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return low, high


@triton.jit
def _columns(block, piece, u, begin, count, COLUMNS: tl.constexpr):
    """Σ_k coef[piece, k, begin + c] u^k for values (V,) and columns c < COLUMNS, by Horner's rule.

    Columns from `count` on are not read. See `tables.block_on` for the order of them: the last
    axis of what is loaded is contiguous, which also tells Triton how to share it among lanes.
    """
    u_, c = u[:, None], tl.arange(0, COLUMNS)[None, :]
    read = c < count
    if block.powers == 4 and u.dtype == tl.float32:
        at = (piece * block.columns + begin) * 2
        w = tl.arange(0, 2 * COLUMNS)[None, :]
        words = tl.load(block.coef + at[:, None] + w, w < 2 * count, other=0)
        first, second = tl.split(tl.reshape(words, (piece.shape[0], COLUMNS, 2)))
        a, b = _halves(first)
        square, cube = _halves(second)
        return ((cube * u_ + square) * u_ + b) * u_ + a
    elif block.powers == 2 and u.dtype == tl.float32:
        at = piece * block.columns + begin
        a, b = _halves(tl.load(block.coef + at[:, None] + c, read, other=0))
        return b * u_ + a
    else:
        at = (piece * block.powers + (block.powers - 1)) * block.columns + begin
        place = block.coef + at[:, None] + c
        value = tl.load(place, read, other=0)
        for k in tl.static_range(1, block.powers):
            value = value * u_ + tl.load(place - k * block.columns, read, other=0)
        return value


@triton.jit
def _refused(x, CHECK: tl.constexpr):
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
    at = _read(f, table.bins)
    begin = tl.program_id(2) * SIZES.columns
    c = begin + tl.arange(0, SIZES.columns)
    if table.uniform:
        to = (k * table.n_columns)[:, None] + c[None, :]
        real = (c < table.n_columns)[None, :]
    else:
        to = (r * table.width + tl.load(table.column + f))[:, None] + c[None, :]
        real = c[None, :] < tl.load(table.count + f)[:, None]
    wrong = k < 0
    for step in range(SIZES.steps):
        top = (tl.program_id(0).to(tl.int64) * SIZES.steps + step) * group
        left = (tl.minimum(n - top, group) * d).to(tl.int32)
        x = tl.load(x_ptr + top * d + k, k < left, other=0)
        wrong = wrong | _refused(x, CHECK)
        piece, u = _find(_real(x), at, table.bins)
        if table.banded:
            # A piece has columns from `away` on: those before and behind are of other pieces.
            away = tl.load(table.first + piece)
            since = table.margin + begin - away
            value = _columns(table.block, piece, u, since, SIZES.columns, SIZES.columns)
            place = c[None, :] - away[:, None]
            value = tl.where((place >= 0) & (place < table.block.columns), value, 0.0)
        else:
            value = _columns(table.block, piece, u, begin, table.n_columns - begin, SIZES.columns)
        out = out_ptr + top * table.width + to
        tl.store(out, value.to(out_ptr.dtype.element_ty), real & (k < left)[:, None])
    if CHECK > 0:
        _set_flag(wrong, flag_ptr)


@triton.jit
def transform_stored(
    x_ptr, out_ptr, flag_ptr, n, entries, table, CHECK: tl.constexpr, SIZES: tl.constexpr
):  # fmt: skip
    """The stored columns of the values of sparse rows, and where they stand in the result.

    `entries` are two arrays by value: its feature, and the columns that it fills.
    """
    band = table.band
    v = tl.program_id(0).to(tl.int64) * SIZES.tile + tl.arange(0, SIZES.tile)
    begin = tl.program_id(1) * SIZES.columns
    c = begin + tl.arange(0, SIZES.columns)
    inside = v < n
    f = tl.load(entries[0] + v, inside, other=0).to(tl.int32)
    x = tl.load(x_ptr + v, inside, other=0)
    if CHECK > 0:
        _set_flag(_refused(x, CHECK), flag_ptr)
    piece, u = _find(_real(x), _read(f, table.bins), table.bins)
    value = _columns(table.block, piece, u, table.margin + begin, band - begin, SIZES.columns)
    real = inside[:, None] & (c < band)[None, :]
    to = (v * band)[:, None] + c[None, :]
    first = tl.load(table.column + f) + tl.load(table.first + piece)
    tl.store(out_ptr + to, value.to(out_ptr.dtype.element_ty), real)
    tl.store(entries[1] + to, first[:, None] + c[None, :], real)


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
        feature = tl.minimum(f, d - 1)
        at = _read(feature, table.bins)
        x = tl.load(x_ptr + i[:, None] * d + f, used, other=0)
        wrong = wrong | _refused(x, CHECK)
        if table.bounded:
            size = _real(x)
            beyond = (size < tl.load(table.low + feature)) | (size > tl.load(table.high + feature))
            wrong = wrong | (used & beyond)
        piece, u = _find(_real(x), at, table.bins)
        piece = tl.where(used, piece, table.bins.zero_piece)
        piece = tl.reshape(tl.permute(piece, (1, 0)), (FEATURES * ROWS,))
        u = tl.reshape(tl.permute(u, (1, 0)), (FEATURES * ROWS,))
        value = _columns(table.block, piece, u, begin, outputs - begin, COLUMNS)
        total += tl.sum(tl.reshape(value, (FEATURES, ROWS, COLUMNS)), axis=0)
    _set_flag(wrong, flag_ptr)
    place = out_ptr + ((tl.program_id(1) * n + i) * outputs)[:, None] + c[None, :]
    tl.store(place, total, inside[:, None] & (c < outputs)[None, :])


# Cubic B-splines of a value for a matrix product on tensor cores, in PTX (one asm block for a pair
# of neighbouring lanes). With bins of unit length, t = LENGTH·q the position of a value whose share
# of the range is q = (x − origin)·factor, b = ⌊t⌋, u = t − b and r = 1 − u, the B-splines
#
#     6 B_b = r³,  6 B_{b+1} = 3u³ − 6u² + 4,  6 B_{b+2} = 3r³ − 6r² + 4,  6 B_{b+3} = u³
#
# are the only ones that are not zero (v0 … v3 below). Each is written as one or two float16 halves
# into a row of ten halves, five words, at the places b … b + 3; the other halves are zero.
#
# - ⌊t⌋ without a conversion: t + 2^23, rounded toward zero, ends with the bits of b.
# - Which bytes go into the five words is read from memory, 16 bytes for each bin
#   (`splines.SELECTORS`). SELECTORS points before them by 16 times the bits of 2^23, since those
#   are added with the bin.
# - LARGEST is the largest q so far (MOST before), as bits: those of negative numbers and of NaN are
#   larger than those of 1, so that it tells whether a value was outside its range.
# - An operand comes twice, for the two lanes; the first is read. The last operand is not read: it
#   is the result of a product, and makes the compiler lay out all others as tensor cores need them.
_BASES = """
{
.reg .f32 t, q, y, b, u, r, uu, rr, v0, v1, v2, v3, x0, x1, x2, x3;
.reg .b32 i, s0, s1, s2, s3, s4, h01, h23, l01, l23;
.reg .b16 a0, a1, a2, a3;
.reg .b64 p;
add.f32 t, X, LESS;
mul.f32 t, t, FACTOR;
mov.b32 i, t;
max.u32 LARGEST, i, MOST;
mov.b32 OTHER, SECOND;
add.sat.f32 q, t, 0f00000000;
fma.rz.f32 y, q, LENGTH, 0f4B000000;
mov.b32 i, y;
mad.wide.u32 p, i, 16, SELECTORS;
ld.global.nc.v4.b32 {s0, s1, s2, s3}, [p];
shr.u32 s4, s3, 16;
sub.f32 b, 0f4B000000, y;
fma.rn.f32 u, q, LENGTH, b;
sub.f32 r, 0f3F800000, u;
mul.f32 uu, u, u;
mul.f32 rr, r, r;
mul.f32 v3, uu, u;
mul.f32 v0, rr, r;
fma.rn.f32 x0, u, 0f40400000, 0fC0C00000;
fma.rn.f32 v1, x0, uu, 0f40800000;
fma.rn.f32 x0, r, 0f40400000, 0fC0C00000;
fma.rn.f32 v2, x0, rr, 0f40800000;
"""
_ONE_HALF = """
cvt.rn.f16x2.f32 h01, v1, v0;
cvt.rn.f16x2.f32 h23, v3, v2;
"""
_TWO_HALVES = """
cvt.rz.f16x2.f32 h01, v1, v0;
cvt.rz.f16x2.f32 h23, v3, v2;
mov.b32 {a0, a1}, h01;
mov.b32 {a2, a3}, h23;
cvt.f32.f16 x0, a0;
cvt.f32.f16 x1, a1;
cvt.f32.f16 x2, a2;
cvt.f32.f16 x3, a3;
sub.f32 x0, v0, x0;
sub.f32 x1, v1, x1;
sub.f32 x2, v2, x2;
sub.f32 x3, v3, x3;
cvt.rn.f16x2.f32 l01, x1, x0;
cvt.rn.f16x2.f32 l23, x3, x2;
"""


# Operands of the asm block after the words of the result; those without a name are not read.
_OPERANDS = (
    "LARGEST", "OTHER",
    "X", "", "LESS", "", "FACTOR", "", "MOST", "SECOND", "SELECTORS", "", "LENGTH",
)  # fmt: skip


def _instructions(parts: int) -> str:
    """PTX that writes B-splines as sums of `parts` halves, 1 or 2, with numbered operands."""
    text = _BASES + (_ONE_HALF, _TWO_HALVES)[parts - 1]
    for k, letter in enumerate("hl"[:parts]):  # the high and the low halves
        for word in range(5):
            text += f"prmt.b32 ${5 * k + word}, {letter}01, {letter}23, s{word};\n"
    for number, name in enumerate(_OPERANDS, 5 * parts):
        if name:
            text = re.sub(rf"\b{name}\b", f"${number}", text)
    return text + "}"


_ONE_PART, _TWO_PARTS = tl.constexpr(_instructions(1)), tl.constexpr(_instructions(2))


@triton.jit
def _twice(x, ROWS: tl.constexpr, FEATURES: tl.constexpr):
    """Numbers of features, of all rows or of each, in two neighbouring columns each."""
    x = tl.broadcast_to(x, (ROWS, FEATURES))
    return tl.reshape(tl.join(x, x), (ROWS, 2 * FEATURES))


@triton.jit
def _spline_bases(operands, PARTS: tl.constexpr):
    """The words of a tile's B-splines, high halves first, and the largest positions so far."""
    if PARTS == 2:
        return tl.inline_asm_elementwise(
            _TWO_PARTS,
            "=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,=r,f,f,f,f,f,f,r,r,l,l,f,f,f,f",
            operands,
            (tl.float16,) * 10 + (tl.int32,),
            True,
            2,
        )
    else:
        return tl.inline_asm_elementwise(
            _ONE_PART,
            "=r,=r,=r,=r,=r,=r,=r,f,f,f,f,f,f,r,r,l,l,f,f,f,f",
            operands,
            (tl.float16,) * 5 + (tl.int32,),
            True,
            2,
        )


@triton.jit
def dot_splines(x_ptr, out_ptr, flag_ptr, n, split, table, SIZES: tl.constexpr):
    """`dot` of smooth cubics on uniform bins, as matrix products on tensor cores.

    The cubics of feature j and output o are Σ_k W[j, k, o] B_k(t_j) with cubic B-splines B_k. A
    program computes ROWS rows and OUTPUTS outputs, summed over `split` features, FEATURES at a
    time: it evaluates B (rows × bases of the block) and multiplies it with W (bases × outputs),
    word by word of two bases each. Halves have 11 bits, so that B is a sum of PARTS halves, and W
    of a large and a small one, side by side in the columns of the product.

    - The flag is set by values outside their ranges.
    - If FEATURES does not divide d, the last feature stands for those that are missing; their
      weights are zero.
    - Tensor cores lose digits of long sums: the sums of the blocks are added in float32.
    - −origin and factor of the next block are loaded before those of this one are used.

    See `splines.SplineWeights` for the layout of the weights.
    """
    d, outputs = table.features, table.outputs
    PARTS: tl.constexpr = SIZES.parts
    ROWS: tl.constexpr = SIZES.rows
    FEATURES: tl.constexpr = SIZES.features
    OUTPUTS: tl.constexpr = SIZES.columns
    WORD_SIZE: tl.constexpr = 4 * FEATURES * OUTPUTS  # weights of one word of all features
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    f = tl.arange(0, FEATURES)[None, :]
    rows = x_ptr + tl.minimum(i, n - 1)[:, None] * d
    # Pointers to the weights of the first word: a row for each half of a feature's word.
    k, c = tl.arange(0, 2 * FEATURES)[:, None], tl.arange(0, 2 * OUTPUTS)[None, :]
    weights = table.halves + tl.program_id(2) * table.size + (k * (2 * OUTPUTS)) + c
    # What does not change from block to block, in the shape of a tile.
    selectors = table.selectors.to(tl.int64) - 16 * 0x4B000000
    selectors = tl.zeros((ROWS, 2 * FEATURES), tl.int64) + selectors
    length = tl.zeros((ROWS, 2 * FEATURES), tl.float32) + table.last
    total = tl.zeros((ROWS, 2 * OUTPUTS), tl.float32)
    largest = tl.zeros((ROWS, 2 * FEATURES), tl.int32)
    first = tl.program_id(1) * split
    pair = tl.load(table.pairs + first + f)
    for block in range(first, tl.minimum(first + split, d), FEATURES):
        if SIZES.divides:
            x = tl.load(rows + block + f)
        else:
            x = tl.load(rows + tl.minimum(block + f, d - 1))
        next_pair = tl.load(table.pairs + block + FEATURES + f)
        less, factor = _halves(pair)
        x, less = _twice(x, ROWS, FEATURES), _twice(less, ROWS, FEATURES)
        factor = _twice(factor, ROWS, FEATURES)
        operands = (x, less, factor, largest, selectors, length, total)
        bases = _spline_bases(operands, PARTS)
        largest = bases[PARTS * WORDS]
        sums = tl.zeros((ROWS, 2 * OUTPUTS), tl.float32)
        block_weights = weights + block // FEATURES * (WORDS * WORD_SIZE)
        for word in tl.static_range(WORDS):
            w = tl.load(block_weights + word * WORD_SIZE)
            sums = tl.dot(bases[word], w, sums)
            if PARTS == 2:
                sums = tl.dot(bases[WORDS + word], w, sums)
        total += sums
        pair = next_pair
    _set_flag(largest.to(tl.uint32, bitcast=True) > 0x3F800000, flag_ptr)  # the bits of 1
    # Add the products with the large and with the small halves of the weights.
    value = tl.sum(tl.reshape(total, (ROWS, 2, OUTPUTS)), axis=1) * table.unit
    o = tl.program_id(2) * OUTPUTS + tl.arange(0, OUTPUTS)
    place = out_ptr + ((tl.program_id(1) * n + i) * outputs)[:, None] + o[None, :]
    is_real = (i < n)[:, None] & (o < outputs)[None, :]
    tl.store(place, value.to(out_ptr.dtype.element_ty), is_real)


@triton.jit
def encode(x_ptr, out_ptr, flag_ptr, count, d, table, VALUES: tl.constexpr):
    """Codes of values: bins, or positions b + u in units of 1/scale, rounded (`half` is 1/2).

    The flag is set by values outside low … high of their features, and by NaN.
    """
    v = tl.program_id(0).to(tl.int64) * VALUES + tl.arange(0, VALUES)
    inside = v < count
    f = (v % d).to(tl.int32)
    x = _real(tl.load(x_ptr + v, inside, other=0))
    within = (x >= tl.load(table.low + f)) & (x <= tl.load(table.high + f))
    _set_flag(inside & (within == 0), flag_ptr)
    at = _read(f, table.bins)
    if table.bins.kind == AFFINE:
        x = x.to(tl.float64)
    b, u = _find(x, at, table.bins)
    code = b * table.scale.to(tl.int32)
    code = code + (u * table.scale.to(u.dtype) + table.half.to(u.dtype)).to(tl.int32)
    tl.store(out_ptr + v, code.to(out_ptr.dtype.element_ty), inside)


@triton.jit
def _within_half(t):
    """The part of an angle in turns that is left within half a turn.

    Angles so large that their neighbours are half a turn away have none; infinity becomes NaN.
    """
    if t.dtype == tl.float64:
        t = tl.where(tl.abs(t) < 2251799813685248.0, t, t - t)
    else:
        t = tl.where(tl.abs(t) < 4194304.0, t, t - t)
    return t - tl.floor(t + 0.5)


@triton.jit
def _half_wave(s):
    """sin 2πs on a half turn, |s| ≤ 1/4: the minimax polynomials of the processor's `_waves`."""
    v = s * s
    if s.dtype == tl.float64:
        p = 3.8169974295671560615 + v * -0.69093588762802366194
        p = 42.058688305395575059 + v * (-15.094471616749452933 + v * p)
        p = 81.605249275026291884 + v * (-76.705859647469673123 + v * p)
        return s * (6.2831853071795803916 + v * (-41.341702240395082638 + v * p))
    else:
        p = -76.549782387613466 + v * 39.536706762014836
        p = -41.341655031479419 + v * (81.601004077356553 + v * p)
        return s * (6.2831851600897227 + v * p)


@triton.jit
def _angles(ptr, i, c, n, form):
    """Addresses of rows i and columns c of angles, and which of them there are.

    The width is a product with a constant, so that the compiler knows how rows are aligned.
    """
    width = form.units * form.unit
    at = ptr + i[:, None] * (width * (1 + form.paired)) + c[None, :]
    return at, (i < n)[:, None] & (c < width)[None, :]


@triton.jit
def _write_waves(angle, at, inside, c, form):
    """Cosines of angles in turns; of paired ones, sines stand `width` columns further on."""
    width = form.units * form.unit
    real = c < width
    if form.paired:
        t = _within_half(angle)
        size = tl.abs(t)
        sine = _half_wave(tl.minimum(size, 0.5 - size))
        sine = tl.where(t < 0, -sine, sine)
        amplitude = tl.load(form.amplitudes + width + c, real, other=0.0)[None, :]
        tl.store(at + width, amplitude * sine, inside)
    else:
        t = _within_half(angle + tl.load(form.phases + c, real, other=0.0)[None, :])
    amplitude = tl.load(form.amplitudes + c, real, other=0.0)[None, :]
    tl.store(at, amplitude * _half_wave(0.25 - tl.abs(t)), inside)


@triton.jit
def waves(z_ptr, n, form, SIZES: tl.constexpr):
    """Angles become cosines where they stand."""
    c = tl.program_id(1) * SIZES.columns + tl.arange(0, SIZES.columns)
    i = tl.program_id(0).to(tl.int64) * SIZES.rows + tl.arange(0, SIZES.rows)
    at, inside = _angles(z_ptr, i, c, n, form)
    _write_waves(tl.load(at, inside, other=0.0), at, inside, c, form)


@triton.jit
def fourier(rows, matrix, out_ptr, n, inner, form, SIZES: tl.constexpr):
    """Product in TF32 and cosines of it, without storing the angles between them.

    `rows` (n, inner) and `matrix` (width, inner) are described to the GPU's copy engine, which
    gives zeros beyond their ends; the matrix is transposed since tensor cores read both factors of
    TF32 along the sum. Programs of GROUP tiles of rows share their columns in the cache.
    """
    ROWS: tl.constexpr = SIZES.rows
    COLUMNS: tl.constexpr = SIZES.columns
    width = form.units * form.unit
    tall, wide = tl.cdiv(n, ROWS), tl.cdiv(width, COLUMNS)
    together = GROUP * wide
    place = tl.program_id(0)
    first = place // together * GROUP
    high = tl.minimum(tall - first, GROUP)
    place = place % together
    top, left = (first + place % high) * ROWS, place // high * COLUMNS
    angle = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, inner, SIZES.inner):
        a, b = rows.load([top, start]), matrix.load([left, start])
        angle = tl.dot(a, tl.trans(b), angle, input_precision="tf32")
    i, c = top + tl.arange(0, ROWS), left + tl.arange(0, COLUMNS)
    at, inside = _angles(out_ptr, i.to(tl.int64), c, n, form)
    _write_waves(angle, at, inside, c, form)


@triton.jit
def _transform_bits(x, M: tl.constexpr, BITS: tl.constexpr):
    """Hadamard transform of the last BITS bits of an index, which become the first ones.

    Bit after bit becomes the last, and is then moved to the front of the last BITS: after BITS
    turns they are in order. All of them belong to one thread, so that nothing is exchanged before
    the end.
    """
    for _ in tl.static_range(BITS):
        a, b = tl.split(tl.reshape(x, (M, 1 << (BITS - 1), 2)))
        x = tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 2, 1)), (M, 1 << BITS))
    return tl.reshape(tl.permute(x, (1, 0)), (M * (1 << BITS),))


@triton.jit
def _transform(x, LOG: tl.constexpr, BITS: tl.constexpr):
    """Hadamard transform of 2^LOG numbers, BITS levels at a time; the order is that of before."""
    SIZE: tl.constexpr = 1 << LOG
    REST: tl.constexpr = LOG % BITS
    for _ in tl.static_range(LOG // BITS):
        x = _transform_bits(tl.reshape(x, (SIZE >> BITS, 1 << BITS)), SIZE >> BITS, BITS)
    if REST > 0:
        x = _transform_bits(tl.reshape(x, (SIZE >> REST, 1 << REST)), SIZE >> REST, REST)
    return x


@triton.jit
def hadamard(x_ptr, out_ptr, d, width, first, transforms, SIZES: tl.constexpr):
    """One row, one block of a structured projection: several times signs and a transform.

    The row stays on the processor throughout. Of the last transform the first 2^LAST_LOG numbers
    are made: those of the sums over all that differ in the leading bits.
    """
    LOG: tl.constexpr = SIZES.log
    LAST_LOG: tl.constexpr = SIZES.last_log
    LAST: tl.constexpr = SIZES.rounds - 1
    SIZE: tl.constexpr = 1 << LOG
    i, block = tl.program_id(0).to(tl.int64), first + tl.program_id(1)
    k = tl.arange(0, SIZE)
    x = tl.load(x_ptr + i * d + k, k < d, other=0.0)
    signs = transforms.signs + block * SIZES.rounds * SIZE + k
    for turn in tl.static_range(LAST):
        x = _transform(x * tl.load(signs + turn * SIZE), LOG, SIZES.levels)
    x = x * tl.load(signs + LAST * SIZE)
    if LAST_LOG < LOG:
        x = tl.sum(tl.reshape(x, (SIZE >> LAST_LOG, 1 << LAST_LOG)), axis=0)
    x = _transform(x, LAST_LOG, SIZES.last_levels)
    to = tl.load(transforms.to + block * SIZE + tl.arange(0, 1 << LAST_LOG))
    gain = tl.load(transforms.gains + tl.maximum(to, 0))
    tl.store(out_ptr + i * width + to, x * gain, to >= 0)
