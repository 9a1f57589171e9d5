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

from typing import Any, NamedTuple

import triton
import triton.language as tl

from ..table import stored

AFFINE, LOG2 = tl.constexpr(stored.AFFINE), tl.constexpr(stored.LOG2)
EDGES, CODE = tl.constexpr(stored.EDGES), tl.constexpr(stored.CODE)
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
