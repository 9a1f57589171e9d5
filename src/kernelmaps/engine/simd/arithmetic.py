"""Arithmetic, comparison and choice for numbers and for vectors alike.

LLVM's operations are the same for both, so that what is written with these functions serves one
value as well as sixteen. No operation reorders or contracts floating-point arithmetic: NumPy finds
the same bins, bit by bit. Where nothing is compiled there are no vectors: the plain meanings are
those of numbers.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ...compiling import meaning
from .vectors import WORD, Vector, constant, converted, filled, like, llvm, on_arm, pointer

_NAMES = {types.float32: "f32", types.float64: "f64"}
# Numbers next to which floats are integers, and the last 32 of their bits.
_ROUNDING = {types.float32: (1.5 * 2**23, 0x4B400000), types.float64: (1.5 * 2**52, 0)}


def _at_least(builder, a, b):
    """The larger one; b where a is NaN."""
    return _bounded(builder, ">", "llvm.maxnum", a, b)


def _at_most(builder, a, b):
    return _bounded(builder, "<", "llvm.minnum", a, b)


def _bounded(builder, comparison, name, a, b):
    """One instruction on x86 if it is written as a choice, on ARM if it is called by its name."""
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


def _whole(kind: types.Type) -> types.Type:
    """The integers that have as many bits as some floats."""
    return like(types.int32 if _dtype(kind) == types.float32 else types.int64, kind)


def _word(builder, value, kind: types.Type):
    """A 64-bit number as 32 bits in every lane."""
    return filled(builder, builder.trunc(value, WORD), kind)


def _absolute(builder, value, kind: types.Type):
    suffix = f"v{kind.size}" if isinstance(kind, Vector) else ""
    signature = ir.FunctionType(llvm(kind), [llvm(kind)])
    name = f"llvm.fabs.{suffix}{_NAMES[_dtype(kind)]}"
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), [value])


@meaning(lambda array, j, x, across: array[j])
def parameter(typing_context, array, j, x, across):
    """What belongs to the value x of feature j: ``array[j]``.

    For a vector of values of features j, j + 1, … (`across` has length 1) as many numbers; for
    several values of feature j (length 0) the same number in every lane.
    """
    kind = like(array.dtype, x)

    def build(context, builder, signature, args):
        return _parameter(context, builder, array, args[0], args[1], kind, across)

    return kind(array, types.int64, x, across), build


def _parameter(context, builder, array: types.Type, numbers, j, kind: types.Type, across):
    whole = isinstance(kind, Vector) and len(across) > 0
    source = llvm(kind if whole else array.dtype)
    where = pointer(context, builder, array, numbers, j, source)
    found = builder.load(where, align=array.dtype.bitwidth // 8)
    # Nothing writes to tables while a loop runs: it may be read once for many rows.
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found if whole else filled(builder, found, kind)


@meaning(lambda x, value: value)
def filled_like(typing_context, x, value):
    """A number, as often as x has lanes."""
    kind = like(value, x)

    def build(context, builder, signature, args):
        return filled(builder, args[1], kind)

    return kind(x, value), build


@meaning(lambda x: 1)
def lanes_of(typing_context, x):
    """How many numbers x is."""

    def build(context, builder, signature, args):
        return ir.Constant(ir.IntType(64), x.size if isinstance(x, Vector) else 1)

    return types.int64(x), build


@meaning(lambda x, array: array.dtype.type(x))
def as_floats(typing_context, x, array):
    """The numbers in the array's floating type."""
    kind = like(array.dtype, x)

    def build(context, builder, signature, args):
        return converted(builder, args[0], x, kind)

    return kind(x, array), build


@meaning(lambda x, wanted: abs(x) if len(wanted) else x)
def magnitude(typing_context, x, wanted):
    """``|x|`` if `wanted` has length 1, x if it has length 0."""

    def build(context, builder, signature, args):
        return _absolute(builder, args[0], x) if len(wanted) else args[0]

    return x(x, wanted), build


@meaning(lambda x, origin, factor: (x - origin) * factor)
def from_origin(typing_context, x, origin, factor):
    """``(x − origin)·factor``."""

    def build(context, builder, signature, args):
        return builder.fmul(builder.fsub(args[0], args[1]), args[2])

    return x(x, x, x), build


@meaning(lambda x, low, high: min(high, max(low, x)))
def between(typing_context, x, low, high):
    """``min(max(x, low), high)``; `low` for NaN."""

    def build(context, builder, signature, args):
        return _at_most(builder, _at_least(builder, args[0], args[1]), args[2])

    return x(x, x, x), build


def _plain_range(x, low, high, j, across, wanted):
    return min(high[j], max(low[j], x)) if len(wanted) == 1 else x


@meaning(_plain_range)
def in_range(typing_context, x, low, high, j, across, wanted):
    """x of feature j :func:`between` ``low[j]`` and ``high[j]``, if `wanted` has length 1."""

    def build(context, builder, signature, args):
        if len(wanted) != 1:
            return args[0]
        lower, upper = (
            _parameter(context, builder, array, args[k], args[3], x, across)
            for k, array in ((1, low), (2, high))
        )
        return _at_most(builder, _at_least(builder, args[0], lower), upper)

    return x(x, low, high, types.int64, across, wanted), build


@intrinsic
def all_inside(typing_context, x):
    """What :func:`still_inside` begins with, for values like x."""
    kind = _whole(x)

    def build(context, builder, signature, args):
        return constant(kind, -1)

    return kind(x), build


@intrinsic
def still_inside(typing_context, inside, x, bounded):
    """Integers without a bit where a number is not what it was bounded to, or was so before.

    Vectors of them are looked at after the loop (:func:`none_outside`).
    """

    def build(context, builder, signature, args):
        found = builder.fcmp_ordered("==", args[1], args[2])
        return builder.and_(args[0], builder.sext(found, llvm(inside)))

    return inside(inside, x, x), build


@intrinsic
def none_outside(typing_context, inside):
    """Whether all numbers were inside."""

    def build(context, builder, signature, args):
        found = builder.icmp_signed("<", args[0], constant(inside, 0))
        if isinstance(inside, Vector):
            lanes = ir.IntType(inside.size)
            found = builder.icmp_unsigned("==", builder.bitcast(found, lanes), lanes(-1))
        return builder.zext(found, ir.IntType(8)) if found.type != ir.IntType(1) else found

    return types.boolean(inside), build


@intrinsic
def cut_off(typing_context, x, first, last):
    """Integers int(x) within first … last, of numbers that 32 bits hold."""
    kind = like(types.int32, x)

    def build(context, builder, signature, args):
        return _ordered(builder, builder.fptosi(args[0], llvm(kind)), *args[1:])

    return kind(x, kind, kind), build


@intrinsic
def cut_off_unsigned(typing_context, x):
    """Integers int(x) of numbers that are not negative: all 32 bits."""
    kind = like(types.int32, x)

    def build(context, builder, signature, args):
        return builder.fptoui(args[0], llvm(kind))

    return kind(x), build


@meaning(lambda x, unit, half: x * unit + half)
def scaled(typing_context, x, unit, half):
    """``x·unit + half`` for one unit and one half."""

    def build(context, builder, signature, args):
        unit, half = (filled(builder, value, x) for value in args[1:3])
        return builder.fadd(builder.fmul(args[0], unit), half)

    return x(x, _dtype(x), _dtype(x)), build


def _plain_split(x, last, near):
    b = round(x) if len(near) == 2 else int(min(last, max(0.0, x)))
    return b, x - b


@meaning(_plain_split)
def split(typing_context, x, last, near):
    """Integers b = int(x) within 0 … last, and x − b.

    The nearest integers, wherever they are, if `near` has length 2.
    """
    count = like(types.int32, x)
    kind = types.Tuple((count, x))

    def build(context, builder, signature, args):
        parts = _nearest(builder, args[0], x) if len(near) == 2 else _below(builder, *args[:2], x)
        return context.make_tuple(builder, kind, parts)

    return kind(x, x, near), build


def _below(builder, value, last, kind: types.Type):
    """Integers within 0 … last that are not above the values, and what is left of these."""
    count = like(types.int32, kind)
    bounded = _at_most(builder, _at_least(builder, value, constant(kind, 0.0)), last)
    # ARM converts floats to integers of their own size, and back.
    own = _whole(kind) if on_arm(builder) else count
    whole = builder.fptosi(bounded, llvm(own))
    rest = builder.fsub(value, builder.sitofp(whole, llvm(kind)))
    return (whole if own == count else builder.trunc(whole, llvm(count))), rest


def _nearest(builder, value, kind: types.Type):
    """The same for the nearest integers: the last bits of a large number to which a value is added.

    Two additions take less time than a conversion and another one back.
    """
    count = like(types.int32, kind)
    large, first = _ROUNDING[_dtype(kind)]
    moved = builder.fadd(value, constant(kind, large))
    rest = builder.fsub(value, builder.fsub(moved, constant(kind, large)))
    bits = builder.bitcast(moved, llvm(_whole(kind)))
    whole = bits if first else builder.trunc(bits, llvm(count))
    return (builder.sub(whole, constant(count, first)) if first else whole), rest


def _leading(builder, x, kind: types.Type, shift):
    """Bits of floats without the last `shift`, as 32-bit integers."""
    wide = _whole(kind)
    short = _dtype(wide) == types.int32
    drop = filled(builder, builder.trunc(shift, WORD) if short else shift, wide)
    bits = builder.bitcast(x, llvm(wide))
    leading = builder.ashr(bits, drop)
    return bits, leading if short else builder.trunc(leading, llvm(like(types.int32, kind)))


def _within(builder, value, last, kind: types.Type):
    """Integers within 0 … last."""
    return _ordered(builder, value, constant(kind, 0), last)


def _ordered(builder, value, first, last):
    """Integers within first … last."""
    value = builder.select(builder.icmp_signed(">", value, first), value, first)
    return builder.select(builder.icmp_signed("<", value, last), value, last)


def _plain_bits(x):
    """Bits of a float32 or float64, as an integer of its size."""
    return x.view(f"i{x.itemsize}")


@meaning(lambda x, shift, key, last: min(last, max(0, (_plain_bits(x) >> shift) - key)))
def octave(typing_context, x, shift, key, last):
    """Leading bits of positive floats, less `key`, within 0 … last."""
    kind = like(types.int32, x)

    def build(context, builder, signature, args):
        _, leading = _leading(builder, args[0], x, args[1])
        return _within(builder, builder.sub(leading, args[2]), args[3], kind)

    return kind(x, types.int64, kind, kind), build


def _plain_octave(x, shift, start, limit):
    bits, size = _plain_bits(x), 1 << shift
    return min(limit, max(0, (bits >> shift) - start)), type(x)((bits & (size - 1)) / size)


@meaning(_plain_octave)
def octave_and_rest(typing_context, x, shift, start, limit):
    """Bins of positive floats that are even in every octave: leading bits less `start`, within
    0 … limit, and what the other bits make of a bin, within [0, 1)."""
    count = like(types.int32, x)
    kind = types.Tuple((count, x))

    def build(context, builder, signature, args):
        bits, leading = _leading(builder, args[0], x, args[1])
        limit = _word(builder, args[3], count)
        b = _within(builder, builder.sub(leading, _word(builder, args[2], count)), limit, count)
        # 1 + the rest has these bits behind those of 1: no conversion of integers.
        wide = _whole(x)
        mantissa, one = (23, 127 << 23) if _dtype(x) == types.float32 else (52, 1023 << 52)
        narrow = _dtype(wide) == types.int32
        shift = builder.trunc(args[1], WORD) if narrow else args[1]
        left = builder.sub(ir.Constant(shift.type, mantissa), shift)
        rest = builder.shl(bits, filled(builder, left, wide))
        rest = builder.and_(rest, constant(wide, (1 << mantissa) - 1))
        rest = builder.bitcast(builder.or_(rest, constant(wide, one)), llvm(x))
        return context.make_tuple(builder, kind, [b, builder.fsub(rest, constant(x, 1.0))])

    return kind(x, types.int64, types.int64, types.int64), build


@meaning(lambda x, last: int(min(last, max(0, x))))
def code_of(typing_context, x, last):
    """Codes as 32-bit integers within 0 … last, from unsigned integers or from floats."""
    kind = like(types.int32, x)

    def build(context, builder, signature, args):
        if isinstance(_dtype(x), types.Integer):
            short = _dtype(x).bitwidth < 32
            value = builder.zext(args[0], llvm(kind)) if short else args[0]
        else:
            bounded = _at_least(builder, args[0], constant(x, 0.0))
            value = builder.fptosi(_at_most(builder, bounded, constant(x, 2.0**30)), llvm(kind))
        return _within(builder, value, args[1], kind)

    return kind(x, kind), build


@meaning(lambda a, b: a + b)
def plus(typing_context, a, b):
    """32-bit integers and others, or one for all."""
    same = a == b

    def build(context, builder, signature, args):
        return builder.add(args[0], args[1] if same else _word(builder, args[1], a))

    return a(a, b if same else types.int64), build


@meaning(lambda a, step: a * step)
def times(typing_context, a, step):
    """32-bit integers, all multiplied by one number."""

    def build(context, builder, signature, args):
        return builder.mul(args[0], _word(builder, args[1], a))

    return a(a, types.int64), build


def _plain_settled(row, x, mirror, signed, nothing, vanishes):
    if len(vanishes) and x == 0:
        return nothing
    return row + mirror if len(signed) and x < 0 else row


@meaning(_plain_settled)
def settled(typing_context, row, x, mirror, signed, nothing, vanishes):
    """Rows of values whose magnitudes have the rows `row`: odd extension, and φ(0) = 0.

    ``row + mirror`` where x < 0, if `signed` has length 1; `nothing` where x == 0, if `vanishes`
    has length 1.
    """

    def build(context, builder, signature, args):
        found, none = args[0], constant(x, 0.0)
        if len(signed):
            below = builder.fcmp_ordered("<", args[1], none)
            moved = builder.add(found, _word(builder, args[2], row))
            found = builder.select(below, moved, found)
        if len(vanishes):
            zero = builder.fcmp_ordered("==", args[1], none)
            found = builder.select(zero, _word(builder, args[4], row), found)
        return found

    return row(row, x, types.int64, signed, types.int64, vanishes), build


@meaning(min)
def no_more(typing_context, a, b):
    """The smaller of two integers."""

    def build(context, builder, signature, args):
        return builder.select(builder.icmp_signed("<", *args), *args)

    return a(a, a), build


@meaning(lambda count, last, u: (b := min(count, last), u + type(u)(count - b)))
def capped(typing_context, count, last, u):
    """Integers no larger than `last`, and u plus what they lost."""
    kind = types.Tuple((count, u))

    def build(context, builder, signature, args):
        below = builder.icmp_signed("<", args[0], args[1])
        b = builder.select(below, args[0], args[1])
        lost = builder.sitofp(builder.sub(args[0], b), llvm(u))
        return context.make_tuple(builder, kind, [b, builder.fadd(args[2], lost)])

    return kind(count, count, u), build


@intrinsic
def plus_share(typing_context, count, share, bits, half):
    """``(count << bits) + int(share·2^bits + half)``, share within [0, 1]."""

    def build(context, builder, signature, args):
        shift = builder.trunc(args[2], WORD)
        unit = builder.uitofp(builder.shl(WORD(1), shift), llvm(_dtype(share)))
        unit, half = filled(builder, unit, share), filled(builder, args[3], share)
        # The product is exact, so that one rounding (a fused operation) or two are the same.
        part = builder.fmul(args[1], unit, flags=("contract",))
        part = builder.fptosi(builder.fadd(part, half, flags=("contract",)), llvm(count))
        return builder.add(builder.shl(args[0], filled(builder, shift, count)), part)

    return count(count, share, types.int64, _dtype(share)), build


@meaning(lambda x, left, right: (x - left) / (right - left) if right > left else type(x)(0))
def share(typing_context, x, left, right):
    """``(x − left) / (right − left)``; 0 between equal ends."""

    def build(context, builder, signature, args):
        part = builder.fdiv(builder.fsub(args[0], args[1]), builder.fsub(args[2], args[1]))
        return builder.select(builder.fcmp_ordered(">", args[2], args[1]), part, constant(x, 0.0))

    return x(x, x, x), build


@meaning(lambda x, threshold, a, b: a if x >= threshold else b)
def where_passed(typing_context, x, threshold, a, b):
    """a where x >= threshold, b elsewhere."""

    def build(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">=", args[0], args[1]), args[2], args[3])

    return a(x, x, a, a), build


@intrinsic
def plus_distance(typing_context, total, a, b):
    """``total + |a − b|``."""

    def build(context, builder, signature, args):
        return builder.fadd(args[0], _absolute(builder, builder.fsub(args[1], args[2]), a))

    return a(a, a, a), build


@meaning(lambda x: int(_plain_bits(x)))
def bits_of(typing_context, x):
    """The 32-bit integers whose bits these floats are."""
    kind = like(types.int32, x)

    def build(context, builder, signature, args):
        bits = builder.bitcast(args[0], llvm(_whole(x)))
        return bits if _dtype(x) == types.float32 else builder.trunc(bits, llvm(kind))

    return kind(x), build
