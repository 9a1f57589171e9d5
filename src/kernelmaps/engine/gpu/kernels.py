"""Triton kernels over the table of local polynomials: find the bin, evaluate, write or add up.

They read the same layout as the compiled loops of the CPU (:mod:`kernelmaps.engine.table`): a value
has a *row* of the table and a position ``u`` in its bin, and a column is a polynomial in ``u``. Two
things differ on a card. The coefficients of one column lie side by side, those of float32 in pairs:
these kernels are bound by the number of accesses to the cache, not by arithmetic. And a thread owns
one column of the result, so that neighbouring threads write neighbouring numbers.

`numbers` and `whole` hold one line of `stride` entries per field, see
:class:`kernelmaps.engine.gpu.tables.DeviceTable`.
"""

import triton
import triton.language as tl

AFFINE = tl.constexpr(0)
LOG2 = tl.constexpr(1)
EDGES = tl.constexpr(2)
CODE = tl.constexpr(3)


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


@triton.jit
def _parameters(f, numbers, whole, stride, KIND: tl.constexpr, CLIPPED: tl.constexpr):
    """What the finder reads of features f, once for many rows."""
    row = tl.load(whole + f)
    top = tl.load(whole + 4 * stride + f)
    origin, rest, factor, low, high, last = row, row, row, row, row, row
    key, cell, edge = row, row, row
    if KIND == AFFINE:
        rest = tl.load(numbers + stride + f)
    if KIND == AFFINE or KIND == EDGES:
        origin = tl.load(numbers + f)
        factor = tl.load(numbers + 2 * stride + f)
        last = tl.load(numbers + 5 * stride + f)
    if KIND == AFFINE or KIND == EDGES or CLIPPED:
        low = tl.load(numbers + 3 * stride + f)
        high = tl.load(numbers + 4 * stride + f)
    if KIND == EDGES:
        key = tl.load(whole + stride + f)
        cell = tl.load(whole + 2 * stride + f)
        edge = tl.load(whole + 3 * stride + f)
    return row, top, origin, rest, factor, low, high, last, key, cell, edge


@triton.jit
def _find_affine(size, p):
    """Even bins. The origin has two parts, so that float32 loses nothing far from zero."""
    row, top, origin, rest, factor, low, high, last, key, cell, edge = p
    t = _within(((size.to(origin.dtype) - origin) - rest) * factor, low, high)
    b = _within(t, 0.0, last).to(tl.int32)
    return row + b, (t - b.to(t.dtype)).to(size.dtype)


@triton.jit
def _find_log2(size, p, shift, start, limit, unit, CLIPPED: tl.constexpr):
    """Octaves, each divided evenly, by the leading bits of positive floats."""
    row, top, origin, rest, factor, low, high, last, key, cell, edge = p
    if CLIPPED:
        size = _within(size, low, high)
    bits = _bits(size)
    leading = bits >> shift
    b = _within(leading - start, 0, limit).to(tl.int32)
    return row + b, (bits - (leading << shift)).to(size.dtype) * unit.to(size.dtype)


@triton.jit
def _find_edges(
    size, p, guide, edges, shift,
    OCTAVES: tl.constexpr, CROWD: tl.constexpr, PLACED: tl.constexpr,
):  # fmt: skip
    """Uneven bins: a cell says how many thresholds lie before it; those inside are compared."""
    row, top, origin, rest, factor, low, high, last, key, cell, edge = p
    size = _within(size, low, high)
    if OCTAVES:
        leading = (_bits(tl.maximum(size - origin, 0.0)) >> shift).to(tl.int32)
        cell = cell + _within(leading - key, 0, last.to(tl.int32))
    else:
        cell = cell + _within((size - origin) * factor, 0.0, last).to(tl.int32)
    count = tl.load(guide + cell)
    for step in tl.static_range(CROWD, 0, -1):  # bisection, by powers of two
        farther = 1 << (step - 1)
        passed = size >= tl.load(edges + edge + count + farther)
        count = tl.where(passed, count + farther, count)
    b = tl.minimum(count, top)
    u = size * 0
    if PLACED:
        left = tl.load(edges + edge + b)
        u = (size - left) / (tl.load(edges + edge + b + 1) - left)
    return row + b, u


@triton.jit
def _find(
    x, p, guide, edges, shift, start, limit, unit, nothing, mirror,
    KIND: tl.constexpr, SIGNED: tl.constexpr, VANISHES: tl.constexpr, CLIPPED: tl.constexpr,
    PLACED: tl.constexpr, OCTAVES: tl.constexpr, CROWD: tl.constexpr,
):  # fmt: skip
    """Row of the table and position in the bin, for values x of features with parameters p."""
    if KIND == CODE:
        row = p[0] + tl.minimum(x.to(tl.int32), p[1])
        u = x.to(tl.float32) * 0
    else:
        size = x
        if SIGNED:
            size = tl.abs(x)
        if KIND == AFFINE:
            row, u = _find_affine(size, p)
        elif KIND == LOG2:
            row, u = _find_log2(size, p, shift, start, limit, unit, CLIPPED)
        else:
            row, u = _find_edges(size, p, guide, edges, shift, OCTAVES, CROWD, PLACED)
        if SIGNED:
            row = tl.where(x < 0, row + mirror, row)
        if VANISHES:
            row = tl.where(x == 0, nothing, row)
    return row, u


@triton.jit
def _halves(word):
    """The two float32 numbers of a 64-bit word."""
    low = word.to(tl.int32).to(tl.float32, bitcast=True)
    high = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return low, high


@triton.jit
def _polynomial(coef, at, u, POWERS: tl.constexpr):
    """Σ_k coef[at, k] u^k by Horner's rule; float32 coefficients come in pairs.

    A pair is one access instead of two. All four of a cubic at once would be a matrix, which
    Triton lays out in another way than the vector that it becomes: the way back costs more.
    """
    if POWERS == 1:
        return tl.load(coef + at)
    elif u.dtype == tl.float64:
        value = tl.load(coef + at * POWERS + (POWERS - 1))
        for k in tl.static_range(POWERS - 2, -1, -1):
            value = value * u + tl.load(coef + at * POWERS + k)
        return value
    else:
        low, high = _halves(tl.load(coef + at * (POWERS // 2) + (POWERS // 2 - 1)))
        value = high * u + low
        for k in tl.static_range(POWERS // 2 - 2, -1, -1):
            low, high = _halves(tl.load(coef + at * (POWERS // 2) + k))
            value = (value * u + high) * u + low
        return value


@triton.jit
def _report(x, flag_ptr, CHECK: tl.constexpr):
    """Tell of values that are not finite (CHECK 1), or negative, too (2).

    Those in float32's last octave, which no table of octaves has, are told of as well.
    """
    if CHECK > 0:
        if x.dtype == tl.float64:
            wrong = (x != x) | (tl.abs(x) == float("inf"))
        else:
            wrong = (x != x) | (tl.abs(x) >= 1.7014118346046923e38)
        if CHECK > 1:
            wrong = wrong | (x < 0)
        if tl.max(wrong.to(tl.int32), axis=0) > 0:
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
def emit(
    x_ptr, out_ptr, flag_ptr, n, d, width, band, feature_ptr, within_ptr, first_ptr, coef_ptr,
    numbers, whole, guide, edges, stride, shift, start, limit, unit, nothing, mirror,
    KIND: tl.constexpr, SIGNED: tl.constexpr, VANISHES: tl.constexpr, CLIPPED: tl.constexpr,
    PLACED: tl.constexpr, OCTAVES: tl.constexpr, CROWD: tl.constexpr, POWERS: tl.constexpr,
    BANDED: tl.constexpr, CHECK: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """φ of rows that lie one after the other: ROWS rows, COLUMNS columns of the result.

    Every column finds the place of its own value. Where that takes a search, the values of at most
    VALUES features are located first, once each, and the columns pick theirs.
    """
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    known = c < width
    own = tl.load(feature_ptr + c, known, other=0)
    place = tl.load(within_ptr + c, known, other=0)
    f, used = own, known
    if KIND == EDGES:
        begin = tl.load(feature_ptr + tl.program_id(1) * COLUMNS)
        own = tl.where(known, own - begin, 0)
        f = begin + tl.arange(0, VALUES)
        used = f < d
        f = tl.minimum(f, d - 1)
    p = _parameters(f, numbers, whole, stride, KIND, CLIPPED)
    first = tl.program_id(0).to(tl.int64) * ROWS
    for i in range(first, tl.minimum(first + ROWS, n)):
        x = tl.load(x_ptr + i * d + f, used, other=0)
        _report(x, flag_ptr, CHECK)
        row, u = _find(
            _real(x), p, guide, edges, shift, start, limit, unit, nothing, mirror,
            KIND, SIGNED, VANISHES, CLIPPED, PLACED, OCTAVES, CROWD,
        )  # fmt: skip
        if KIND == EDGES:
            row = tl.gather(row, own, 0)
            u = tl.gather(u, own, 0)
        at = row * band + place
        if BANDED:
            away = place - tl.load(first_ptr + row)
            stored = (away >= 0) & (away < band)
            at = row * band + tl.where(stored, away, 0)
        value = _polynomial(coef_ptr, at, u, POWERS)
        if BANDED:
            value = tl.where(stored, value, 0.0)
        tl.store(out_ptr + i * width + c, value.to(out_ptr.dtype.element_ty), known)


@triton.jit
def emit_stored(
    x_ptr, feature_ptr, out_ptr, to_ptr, flag_ptr, n, band, column_ptr, first_ptr, coef_ptr,
    numbers, whole, guide, edges, stride, shift, start, limit, unit, nothing, mirror,
    KIND: tl.constexpr, SIGNED: tl.constexpr, VANISHES: tl.constexpr, CLIPPED: tl.constexpr,
    PLACED: tl.constexpr, OCTAVES: tl.constexpr, CROWD: tl.constexpr, POWERS: tl.constexpr,
    BANDED: tl.constexpr, CHECK: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """The stored columns of the values of sparse rows, and where they stand in the result."""
    to = tl.program_id(0).to(tl.int64) * VALUES + tl.arange(0, VALUES)
    v = to // band
    c = (to - v * band).to(tl.int32)
    inside = v < n
    f = tl.load(feature_ptr + v, inside, other=0).to(tl.int32)
    x = tl.load(x_ptr + v, inside, other=0)
    _report(x, flag_ptr, CHECK)
    p = _parameters(f, numbers, whole, stride, KIND, CLIPPED)
    row, u = _find(
        _real(x), p, guide, edges, shift, start, limit, unit, nothing, mirror,
        KIND, SIGNED, VANISHES, CLIPPED, PLACED, OCTAVES, CROWD,
    )  # fmt: skip
    value = _polynomial(coef_ptr, row * band + c, u, POWERS)
    tl.store(out_ptr + to, value.to(out_ptr.dtype.element_ty), inside)
    tl.store(to_ptr + to, tl.load(column_ptr + f) + tl.load(first_ptr + row) + c, inside)


@triton.jit
def dot(
    x_ptr, out_ptr, flag_ptr, n, d, outputs, split, coef_ptr,
    numbers, whole, guide, edges, stride, shift, start, limit, unit, nothing, mirror,
    KIND: tl.constexpr, SIGNED: tl.constexpr, VANISHES: tl.constexpr, CLIPPED: tl.constexpr,
    PLACED: tl.constexpr, OCTAVES: tl.constexpr, CROWD: tl.constexpr, POWERS: tl.constexpr,
    CHECK: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    """Sums over the features of their polynomials: PLACES (row, output) pairs, some features.

    Programs of the second axis have `split` features each; they add to the result in the order in
    which they come, so that sums of several shares agree to rounding, not bit for bit.
    """
    place = tl.program_id(0).to(tl.int64) * PLACES + tl.arange(0, PLACES)
    i = place // outputs
    k = (place - i * outputs).to(tl.int32)
    inside = i < n
    total = tl.zeros((PLACES,), out_ptr.dtype.element_ty)
    begin = tl.program_id(1) * split
    for f in range(begin, tl.minimum(begin + split, d)):
        x = tl.load(x_ptr + i * d + f, inside, other=0)
        _report(x, flag_ptr, CHECK)
        p = _parameters(f, numbers, whole, stride, KIND, CLIPPED)
        row, u = _find(
            _real(x), p, guide, edges, shift, start, limit, unit, nothing, mirror,
            KIND, SIGNED, VANISHES, CLIPPED, PLACED, OCTAVES, CROWD,
        )  # fmt: skip
        total += _polynomial(coef_ptr, row * outputs + k, u, POWERS)
    tl.atomic_add(out_ptr + place, total, inside)


@triton.jit
def waves(
    z_ptr, phase_ptr, amplitude_ptr, n, width, stride,
    PAIRED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Angles become cosines where they stand; PAIRED: and sines `width` columns further on."""
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    real = c < width
    inside = (i < n)[:, None] & real[None, :]
    at = z_ptr + i[:, None] * stride + c[None, :]
    angle = tl.load(at, inside, other=0.0)
    if PAIRED:
        amplitude = tl.load(amplitude_ptr + width + c, real, other=0.0)[None, :]
        tl.store(at + width, amplitude * tl.sin(angle), inside)
    else:
        angle = angle + tl.load(phase_ptr + c, real, other=0.0)[None, :]
    amplitude = tl.load(amplitude_ptr + c, real, other=0.0)[None, :]
    tl.store(at, amplitude * tl.cos(angle), inside)


@triton.jit
def _butterfly(x, H: tl.constexpr, SIZE: tl.constexpr):
    """Sums and differences of the numbers k and k + H: x is a matrix (SIZE / 2H, 2, H)."""
    pairs = tl.permute(tl.reshape(x, (SIZE // (2 * H), 2, H)), (0, 2, 1))
    a, b = tl.split(pairs)
    return tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 2, 1)), (SIZE,))


@triton.jit
def hadamard(
    x_ptr, out_ptr, sign_ptr, to_ptr, gain_ptr, n, d, width,
    ROUNDS: tl.constexpr, LOG: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """One row, one block of a structured projection: ROUNDS times signs and a Hadamard transform.

    The row stays on the processor throughout.
    """
    i, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    k = tl.arange(0, SIZE)
    x = tl.load(x_ptr + i * d + k, k < d, other=0.0)
    for turn in tl.static_range(ROUNDS):
        x = x * tl.load(sign_ptr + (block * ROUNDS + turn) * SIZE + k)
        for level in tl.static_range(LOG):
            x = _butterfly(x, 1 << level, SIZE)
    to = tl.load(to_ptr + block * SIZE + k)
    gain = tl.load(gain_ptr + tl.maximum(to, 0))
    tl.store(out_ptr + i * width + to, x * gain, to >= 0)
