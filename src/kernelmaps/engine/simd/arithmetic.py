"""Arithmetic, comparison and choice for numbers and for vectors alike.

LLVM's operations are the same for both, so that what is written with these functions serves one
value as well as sixteen. No operation reorders or contracts floating-point arithmetic: NumPy finds
the same bins, bit by bit. Where nothing is compiled there are no vectors: the Python fallbacks take
single numbers.

Flags of the operations are :func:`~kernelmaps._util.compiling.static` numbers: tuples, empty for
false, so that the compiler sees their values.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ..._util.compiling import python_fallback
from .vectors import WORD, Vector, constant, converted, filled, like, llvm, on_arm, pointer

_NAMES = {types.float32: "f32", types.float64: "f64"}
# By type: a float so large that its neighbours are consecutive integers, and its last 32 bits.
_ROUNDING = {types.float32: (1.5 * 2**23, 0x4B400000), types.float64: (1.5 * 2**52, 0)}


def _at_least(builder, a, b):
    """The larger one; b where a is NaN."""
    return _bounded(builder, ">", "llvm.maxnum", a, b)


def _at_most(builder, a, b):
    return _bounded(builder, "<", "llvm.minnum", a, b)


def _bounded(builder, comparison, name, a, b):
    """One instruction: on x86 if it is written as a select, on ARM if it is called by its name."""
    if not on_arm(builder):
        return builder.select(builder.fcmp_ordered(comparison, a, b), a, b)
    kind, suffix = a.type, ""
    if isinstance(kind, ir.VectorType):
        kind, suffix = kind.element, f"v{kind.count}"
    name = f"{name}.{suffix}{'f32' if kind == ir.FloatType() else 'f64'}"
    signature = ir.FunctionType(a.type, [a.type, a.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), [a, b])


def _dtype(kind: types.Type) -> types.Type:
    return kind.dtype if isinstance(kind, Vector) else kind


def _integers_like(kind: types.Type) -> types.Type:
    """The integer type with as many bits as a float type."""
    return like(types.int32 if _dtype(kind) == types.float32 else types.int64, kind)


def _word(builder, value, kind: types.Type):
    """A 64-bit number as 32 bits in every lane."""
    return filled(builder, builder.trunc(value, WORD), kind)


def _absolute(builder, value, kind: types.Type):
    suffix = f"v{kind.size}" if isinstance(kind, Vector) else ""
    signature = ir.FunctionType(llvm(kind), [llvm(kind)])
    name = f"llvm.fabs.{suffix}{_NAMES[_dtype(kind)]}"
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), [value])


@python_fallback(lambda array, row, j, x, across: array[row, j])
def parameter(typing_context, array, row, j, x, across):
    """What belongs to the value x of feature j: ``array[row, j]``.

    If `across`, the lanes of x belong to the features j, j + 1, …, and so do those of the result;
    else all belong to feature j, and the same number is in every lane.
    """
    kind = like(array.dtype, x)

    def build(context, builder, signature, args):
        return _parameter(context, builder, array, args[:3], kind, across)

    return kind(array, types.int64, types.int64, x, across), build


def _parameter(context, builder, array: types.Type, args, kind: types.Type, across):
    numbers, row, j = args
    by_lane = isinstance(kind, Vector) and bool(across.count)
    source = llvm(kind if by_lane else array.dtype)
    length = builder.extract_value(context.make_array(array)(context, builder, numbers).shape, 1)
    at = builder.add(builder.mul(row, length), j)
    where = pointer(context, builder, array, numbers, at, source)
    value = builder.load(where, align=array.dtype.bitwidth // 8)
    # Nothing writes to tables while a loop runs: one load may serve many rows.
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value if by_lane else filled(builder, value, kind)


@python_fallback(lambda x, value: value)
def filled_like(typing_context, x, value):
    """A number, as often as x has lanes."""
    kind = like(value, x)

    def build(context, builder, signature, args):
        return filled(builder, args[1], kind)

    return kind(x, value), build


@python_fallback(lambda x: 1)
def lanes_of(typing_context, x):
    """How many numbers x is."""

    def build(context, builder, signature, args):
        return ir.Constant(ir.IntType(64), x.size if isinstance(x, Vector) else 1)

    return types.int64(x), build


@python_fallback(lambda x, array: array.dtype.type(x))
def as_floats(typing_context, x, array):
    """The numbers in the array's floating type."""
    kind = like(array.dtype, x)

    def build(context, builder, signature, args):
        return converted(builder, args[0], x, kind)

    return kind(x, array), build


@python_fallback(lambda x, signed: abs(x) if signed else x)
def magnitude(typing_context, x, signed):
    """``|x|`` if `signed`, else x."""

    def build(context, builder, signature, args):
        return _absolute(builder, args[0], x) if signed.count else args[0]

    return x(x, signed), build


@python_fallback(lambda x, origin, factor: (x - origin) * factor)
def shift_and_scale(typing_context, x, origin, factor):
    """``(x − origin)·factor``."""

    def build(context, builder, signature, args):
        return builder.fmul(builder.fsub(args[0], args[1]), args[2])

    return x(x, x, x), build


@python_fallback(lambda x, low, high: min(high, max(low, x)))
def clip(typing_context, x, low, high):
    """``min(max(x, low), high)``; `low` for NaN."""

    def build(context, builder, signature, args):
        return _at_most(builder, _at_least(builder, args[0], args[1]), args[2])

    return x(x, x, x), build


def _python_clip(x, ends, row, j, across, clipped):
    return min(ends[row + 1, j], max(ends[row, j], x)) if clipped else x


@python_fallback(_python_clip)
def clip_to_range(typing_context, x, ends, row, j, across, clipped):
    """x of feature j :func:`clip`-ped to ``ends[row, j]`` … ``ends[row + 1, j]``, if `clipped`."""

    def build(context, builder, signature, args):
        if not clipped.count:
            return args[0]
        rows = args[2], builder.add(args[2], ir.Constant(args[2].type, 1))
        lower, upper = (
            _parameter(context, builder, ends, (args[1], row, args[3]), x, across) for row in rows
        )
        return _at_most(builder, _at_least(builder, args[0], lower), upper)

    return x(x, ends, types.int64, types.int64, across, clipped), build


@intrinsic
def all_inside(typing_context, x):
    """The initial value of :func:`still_inside`, for values like x."""
    kind = _integers_like(x)

    def build(context, builder, signature, args):
        return constant(kind, -1)

    return kind(x), build


@intrinsic
def still_inside(typing_context, inside, x, bounded):
    """`inside`, with 0 in the lanes where x differs from x clipped to its range (`bounded`).

    Loops accumulate it and ask :func:`none_outside` at the end.
    """

    def build(context, builder, signature, args):
        equal = builder.fcmp_ordered("==", args[1], args[2])
        return builder.and_(args[0], builder.sext(equal, llvm(inside)))

    return inside(inside, x, x), build


@intrinsic
def none_outside(typing_context, inside):
    """Whether all numbers were inside."""

    def build(context, builder, signature, args):
        is_inside = builder.icmp_signed("<", args[0], constant(inside, 0))
        if isinstance(inside, Vector):
            lanes = ir.IntType(inside.size)
            is_inside = builder.icmp_unsigned("==", builder.bitcast(is_inside, lanes), lanes(-1))
        return is_inside

    return types.boolean(inside), build


@intrinsic
def truncate(typing_context, x, first, last):
    """Integers int(x) within first … last, of numbers that 32 bits hold."""
    kind = like(types.int32, x)

    def build(context, builder, signature, args):
        return _ordered(builder, builder.fptosi(args[0], llvm(kind)), *args[1:])

    return kind(x, kind, kind), build


@intrinsic
def truncate_unsigned(typing_context, x):
    """Integers int(x) of numbers that are not negative: all 32 bits."""
    kind = like(types.int32, x)

    def build(context, builder, signature, args):
        return builder.fptoui(args[0], llvm(kind))

    return kind(x), build


@python_fallback(lambda x, unit, half: x * unit + half)
def scale_and_shift(typing_context, x, unit, half):
    """``x·unit + half``, with the same unit and half in every lane."""

    def build(context, builder, signature, args):
        unit, half = (filled(builder, value, x) for value in args[1:3])
        return builder.fadd(builder.fmul(args[0], unit), half)

    return x(x, _dtype(x), _dtype(x)), build


def _python_split(x, last, centred):
    b = round(x) if centred else int(min(last, max(0.0, x)))
    return b, x - b


@python_fallback(_python_split)
def split(typing_context, x, last, centred):
    """Bins b = ⌊x⌋ within 0 … last, and the positions x − b; the nearest integers if `centred`.

    The nearest integers are not limited: the caller provides the values that they can have.
    """
    kind = types.Tuple((like(types.int32, x), x))

    def build(context, builder, signature, args):
        pair = _nearest(builder, args[0], x) if centred.count else _floor(builder, *args[:2], x)
        return context.make_tuple(builder, kind, pair)

    return kind(x, x, centred), build


def _floor(builder, value, last, kind: types.Type):
    """⌊value⌋ within 0 … last as 32-bit integers, and value − ⌊value⌋."""
    int32 = like(types.int32, kind)
    bounded = _at_most(builder, _at_least(builder, value, constant(kind, 0.0)), last)
    # ARM converts floats to integers of their own size, and back.
    integers = _integers_like(kind) if on_arm(builder) else int32
    floor = builder.fptosi(bounded, llvm(integers))
    position = builder.fsub(value, builder.sitofp(floor, llvm(kind)))
    return (floor if integers == int32 else builder.trunc(floor, llvm(int32))), position


def _nearest(builder, value, kind: types.Type):
    """The nearest integers as 32-bit integers, and the signed distances from them.

    Adding a large number L rounds the value to an integer, which the last bits of the sum are. Two
    additions take less time than a conversion to an integer and back.
    """
    int32 = like(types.int32, kind)
    large, large_bits = _ROUNDING[_dtype(kind)]
    total = builder.fadd(value, constant(kind, large))
    distance = builder.fsub(value, builder.fsub(total, constant(kind, large)))
    bits = builder.bitcast(total, llvm(_integers_like(kind)))
    if not large_bits:
        return builder.trunc(bits, llvm(int32)), distance
    return builder.sub(bits, constant(int32, large_bits)), distance


def _leading(builder, x, kind: types.Type, shift):
    """The bits of floats, and those bits without the last `shift`, as 32-bit integers."""
    integers = _integers_like(kind)
    is_int32 = _dtype(integers) == types.int32
    dropped = filled(builder, builder.trunc(shift, WORD) if is_int32 else shift, integers)
    bits = builder.bitcast(x, llvm(integers))
    leading = builder.ashr(bits, dropped)
    return bits, leading if is_int32 else builder.trunc(leading, llvm(like(types.int32, kind)))


def _within(builder, value, last, kind: types.Type):
    """Integers within 0 … last."""
    return _ordered(builder, value, constant(kind, 0), last)


def _ordered(builder, value, first, last):
    """Integers within first … last."""
    value = builder.select(builder.icmp_signed(">", value, first), value, first)
    return builder.select(builder.icmp_signed("<", value, last), value, last)


def _python_bits(x):
    """Bits of a float32 or float64, as an integer of its size."""
    return x.view(f"i{x.itemsize}")


@python_fallback(lambda x, shift, key, last: min(last, max(0, (_python_bits(x) >> shift) - key)))
def leading_bits(typing_context, x, shift, key, last):
    """Leading bits of positive floats, less `key`, within 0 … last."""
    kind = like(types.int32, x)

    def build(context, builder, signature, args):
        _, leading = _leading(builder, args[0], x, args[1])
        return _within(builder, builder.sub(leading, args[2]), args[3], kind)

    return kind(x, types.int64, kind, kind), build


def _python_octave_bin(x, shift, start, limit):
    bits, size = _python_bits(x), 1 << shift
    return min(limit, max(0, (bits >> shift) - start)), type(x)((bits & (size - 1)) / size)


@python_fallback(_python_octave_bin)
def octave_bin(typing_context, x, shift, start, limit):
    """Bins that divide every octave evenly, and the positions in them, of positive floats.

    The bin is the leading bits less `start`, within 0 … limit; the position is the other `shift`
    bits as a fraction of the bin, within [0, 1).
    """
    int32 = like(types.int32, x)
    kind = types.Tuple((int32, x))

    def build(context, builder, signature, args):
        bits, leading = _leading(builder, args[0], x, args[1])
        limit = _word(builder, args[3], int32)
        b = _within(builder, builder.sub(leading, _word(builder, args[2], int32)), limit, int32)
        # As the mantissa of a number in [1, 2), the other bits are 1 + the position: this needs no
        # conversion of integers.
        integers = _integers_like(x)
        mantissa, one = (23, 127 << 23) if _dtype(x) == types.float32 else (52, 1023 << 52)
        is_int32 = _dtype(integers) == types.int32
        shift = builder.trunc(args[1], WORD) if is_int32 else args[1]
        left = builder.sub(ir.Constant(shift.type, mantissa), shift)
        other_bits = builder.shl(bits, filled(builder, left, integers))
        other_bits = builder.and_(other_bits, constant(integers, (1 << mantissa) - 1))
        number = builder.bitcast(builder.or_(other_bits, constant(integers, one)), llvm(x))
        return context.make_tuple(builder, kind, [b, builder.fsub(number, constant(x, 1.0))])

    return kind(x, types.int64, types.int64, types.int64), build


@python_fallback(lambda x, last: int(min(last, max(0, x))))
def code_of(typing_context, x, last):
    """Codes as 32-bit integers within 0 … last, from unsigned integers or from floats."""
    kind = like(types.int32, x)

    def build(context, builder, signature, args):
        if isinstance(_dtype(x), types.Integer):
            is_narrow = _dtype(x).bitwidth < 32
            value = builder.zext(args[0], llvm(kind)) if is_narrow else args[0]
        else:
            bounded = _at_least(builder, args[0], constant(x, 0.0))
            value = builder.fptosi(_at_most(builder, bounded, constant(x, 2.0**30)), llvm(kind))
        return _within(builder, value, args[1], kind)

    return kind(x, kind), build


@python_fallback(lambda a, b: a + b)
def plus(typing_context, a, b):
    """Sums of 32-bit integers, or of them and one number."""
    same = a == b

    def build(context, builder, signature, args):
        return builder.add(args[0], args[1] if same else _word(builder, args[1], a))

    return a(a, b if same else types.int64), build


@python_fallback(lambda a, step: a * step)
def times(typing_context, a, step):
    """Products of 32-bit integers with one number."""

    def build(context, builder, signature, args):
        return builder.mul(args[0], _word(builder, args[1], a))

    return a(a, types.int64), build


def _python_signed_piece(piece, x, mirror, signed, zero_piece, zero_at_zero):
    if zero_at_zero and x == 0:
        return zero_piece
    return piece + mirror if signed and x < 0 else piece


@python_fallback(_python_signed_piece)
def signed_piece(typing_context, piece, x, mirror, signed, zero_piece, zero_at_zero):
    """The piece of x, from that of |x|: the odd extension, and φ(0) = 0.

    ``piece + mirror`` where x < 0, if `signed`; `zero_piece` where x == 0, if `zero_at_zero`.
    """

    def build(context, builder, signature, args):
        result, zero = args[0], constant(x, 0.0)
        if signed.count:
            is_negative = builder.fcmp_ordered("<", args[1], zero)
            mirrored = builder.add(result, _word(builder, args[2], piece))
            result = builder.select(is_negative, mirrored, result)
        if zero_at_zero.count:
            is_zero = builder.fcmp_ordered("==", args[1], zero)
            result = builder.select(is_zero, _word(builder, args[4], piece), result)
        return result

    return piece(piece, x, types.int64, signed, types.int64, zero_at_zero), build


@python_fallback(min)
def smaller(typing_context, a, b):
    """The smaller of two integers."""

    def build(context, builder, signature, args):
        return builder.select(builder.icmp_signed("<", *args), *args)

    return a(a, a), build


@python_fallback(lambda count, last, u: (b := min(count, last), u + type(u)(count - b)))
def cap_bin(typing_context, count, last, u):
    """b = min(count, last), and the position u + count − b that belongs to it."""
    kind = types.Tuple((count, u))

    def build(context, builder, signature, args):
        below = builder.icmp_signed("<", args[0], args[1])
        b = builder.select(below, args[0], args[1])
        excess = builder.sitofp(builder.sub(args[0], b), llvm(u))
        return context.make_tuple(builder, kind, [b, builder.fadd(args[2], excess)])

    return kind(count, count, u), build


@intrinsic
def fixed_point(typing_context, count, fraction, bits, half):
    """``(count << bits) + int(fraction·2^bits + half)``, fraction within [0, 1]."""

    def build(context, builder, signature, args):
        shift = builder.trunc(args[2], WORD)
        unit = builder.uitofp(builder.shl(WORD(1), shift), llvm(_dtype(fraction)))
        unit, half = filled(builder, unit, fraction), filled(builder, args[3], fraction)
        # The product is exact, so that one rounding (a fused operation) or two are the same.
        units = builder.fmul(args[1], unit, flags=("contract",))
        units = builder.fptosi(builder.fadd(units, half, flags=("contract",)), llvm(count))
        return builder.add(builder.shl(args[0], filled(builder, shift, count)), units)

    return count(count, fraction, types.int64, _dtype(fraction)), build


@python_fallback(lambda x, left, right: (x - left) / (right - left) if right > left else type(x)(0))
def position_between(typing_context, x, left, right):
    """``(x − left) / (right − left)``; 0 between equal ends."""

    def build(context, builder, signature, args):
        ratio = builder.fdiv(builder.fsub(args[0], args[1]), builder.fsub(args[2], args[1]))
        return builder.select(builder.fcmp_ordered(">", args[2], args[1]), ratio, constant(x, 0.0))

    return x(x, x, x), build


@python_fallback(lambda x, threshold, a, b: a if x >= threshold else b)
def where_at_least(typing_context, x, threshold, a, b):
    """a where x >= threshold, b elsewhere."""

    def build(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">=", args[0], args[1]), args[2], args[3])

    return a(x, x, a, a), build


@intrinsic
def add_distance(typing_context, total, a, b):
    """``total + |a − b|``."""

    def build(context, builder, signature, args):
        return builder.fadd(args[0], _absolute(builder, builder.fsub(args[1], args[2]), a))

    return a(a, a, a), build


@python_fallback(lambda x: int(_python_bits(x)))
def bits_of(typing_context, x):
    """The last 32 bits of floats, as integers."""
    kind = like(types.int32, x)

    def build(context, builder, signature, args):
        bits = builder.bitcast(args[0], llvm(_integers_like(x)))
        return bits if _dtype(x) == types.float32 else builder.trunc(bits, llvm(kind))

    return kind(x), build
