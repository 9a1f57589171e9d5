"""Vector operations of encoders and prediction: arithmetic, comparison, gathers, permutations.

A compiler does not make gathers of a loop that looks up tables and stores results: it cannot know
that the result does not overlap the tables. Here it is said which values are independent, with the
type of :mod:`._vectors`. No operation reorders or contracts floating-point arithmetic: NumPy finds
the same cells, bit by bit.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from ._vectors import Vector, _llvm, _mask, _pointer, _side_by_side

_WORD = ir.IntType(32)
_NAMES = {types.int32: "i32", types.int64: "i64", types.float32: "f32", types.float64: "f64"}


def _filled(builder, value, kind: Vector):
    """All lanes equal to a scalar."""
    lane = builder.insert_element(ir.Constant(_llvm(kind), ir.Undefined), value, _WORD(0))
    return builder.shuffle_vector(lane, lane, _mask([0] * kind.size))


def _at_least(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)  # b where a is NaN


def _at_most(builder, a, b):
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


@intrinsic
def as_floats(typing_context, vector, array):
    """The numbers in the array's floating type."""
    kind = Vector(array.dtype, vector.size)

    def build(context, builder, signature, args):
        return _converted(builder, args[0], vector, kind)

    return kind(vector, array), build


def _converted(builder, value, vector: Vector, kind: Vector):
    """Unsigned integers or floats as floats that are no shorter."""
    if isinstance(vector.dtype, types.Integer):
        return builder.uitofp(value, _llvm(kind))
    return value if kind == vector else builder.fpext(value, _llvm(kind))


@intrinsic
def from_origin(typing_context, x, origin, factor):
    """``(x − origin)·factor``."""

    def build(context, builder, signature, args):
        return builder.fmul(builder.fsub(args[0], args[1]), args[2])

    return x(x, x, x), build


@intrinsic
def between(typing_context, x, low, high):
    """``min(max(x, low), high)``; `low` for NaN."""

    def build(context, builder, signature, args):
        return _at_most(builder, _at_least(builder, args[0], args[1]), args[2])

    return x(x, x, x), build


@intrinsic
def outside(typing_context, x, low, high):
    """Whether a number is below `low`, above `high` or NaN."""

    def build(context, builder, signature, args):
        below = builder.fcmp_unordered("<", args[0], args[1])
        above = builder.fcmp_unordered(">", args[0], args[2])
        lanes = builder.bitcast(builder.or_(below, above), ir.IntType(x.size))
        return builder.icmp_unsigned("!=", lanes, ir.IntType(x.size)(0))

    return types.boolean(x, x, x), build


@intrinsic
def rounded(typing_context, x, unit, half, array):
    """``int(x·unit + half)`` of numbers that are not negative and fit the array's integers."""
    kind = Vector(types.int32, x.size)

    def build(context, builder, signature, args):
        unit, half = (_filled(builder, value, x) for value in args[1:3])
        value = builder.fadd(builder.fmul(args[0], unit), half)
        if array.dtype.bitwidth < 32:  # signed conversions are the cheaper ones
            return builder.fptosi(value, _llvm(kind))
        return builder.fptoui(value, _llvm(kind))

    return kind(x, x.dtype, x.dtype, array), build


@intrinsic
def octave(typing_context, x, shift, key, last):
    """Leading bits of positive floats, less `key`, within 0 … last."""
    kind = Vector(types.int32, x.size)
    wide = Vector(types.int32 if x.dtype == types.float32 else types.int64, x.size)

    def build(context, builder, signature, args):
        element = _llvm(wide).element
        drop = builder.trunc(args[1], element) if element == _WORD else args[1]
        bits = builder.bitcast(args[0], _llvm(wide))
        bits = builder.ashr(bits, _filled(builder, drop, wide))
        bits = bits if element == _WORD else builder.trunc(bits, _llvm(kind))
        cell = builder.sub(bits, args[2])
        none = ir.Constant(_llvm(kind), None)
        cell = builder.select(builder.icmp_signed(">", cell, none), cell, none)
        return builder.select(builder.icmp_signed("<", cell, args[3]), cell, args[3])

    return kind(x, types.int64, kind, kind), build


@intrinsic
def plus(typing_context, a, b):
    """Integers and others, or one for all."""
    same = isinstance(b, Vector)

    def build(context, builder, signature, args):
        other = args[1] if same else _filled(builder, builder.trunc(args[1], _WORD), a)
        return builder.add(args[0], other)

    return a(a, b if same else types.int64), build


@intrinsic
def plus_share(typing_context, count, share, bits, half):
    """``(count << bits) + int(share·2^bits + half)``, share within [0, 1]."""

    def build(context, builder, signature, args):
        shift = builder.trunc(args[2], _WORD)
        unit = builder.uitofp(builder.shl(_WORD(1), shift), _llvm(share).element)
        unit, half = _filled(builder, unit, share), _filled(builder, args[3], share)
        part = builder.fptosi(builder.fadd(builder.fmul(args[1], unit), half), _llvm(count))
        return builder.add(builder.shl(args[0], _filled(builder, shift, count)), part)

    return count(count, share, types.int64, share.dtype), build


@intrinsic
def share(typing_context, x, left, right):
    """``(x − left) / (right − left)``."""

    def build(context, builder, signature, args):
        return builder.fdiv(builder.fsub(args[0], args[1]), builder.fsub(args[2], args[1]))

    return x(x, x, x), build


@intrinsic
def where_passed(typing_context, x, threshold, a, b):
    """a where x >= threshold, b elsewhere."""

    def build(context, builder, signature, args):
        above = builder.fcmp_ordered(">=", args[0], args[1])
        return builder.select(above, args[2], args[3])

    return x(x, x, x, x), build


@intrinsic
def gather(typing_context, array, index):
    """``array[index]``; uint16 comes as int32 (one more entry must follow the last)."""
    short = array.dtype == types.uint16
    kind = Vector(types.int32 if short else array.dtype, index.size)

    def build(context, builder, signature, args):
        data = context.make_array(array)(context, builder, args[0]).data
        # Halves for wide numbers: indices of a whole vector would be widened before they are split.
        size = min(index.size, 512 // kind.dtype.bitwidth)
        parts = [
            builder.shuffle_vector(args[1], args[1], _mask(range(k, k + size)))
            for k in range(0, index.size, size)
        ]
        found = [_gathered(builder, data, array.dtype, part) for part in parts]
        if len(parts) > 1:
            return builder.shuffle_vector(*found, _mask(range(index.size)))
        if short:
            return builder.and_(found[0], ir.Constant(_llvm(kind), [0xFFFF] * index.size))
        return found[0]

    return kind(array, index), build


def _gathered(builder, data, dtype, index):
    """What lies at some indices from an address; thirty-two bits where sixteen are asked for."""
    size = index.type.count
    taken = types.int32 if dtype == types.uint16 else dtype
    kind = _llvm(Vector(taken, size))
    step = ir.IntType(16) if dtype == types.uint16 else kind.element
    places = builder.gep(data, [index], source_etype=step)
    places.type = ir.VectorType(data.type, size)  # one address for each index
    every = ir.Constant(ir.VectorType(ir.IntType(1), size), [1] * size)
    signature = ir.FunctionType(kind, [places.type, _WORD, every.type, kind])
    name = f"llvm.masked.gather.v{size}{_NAMES[taken]}.v{size}p0"
    function = cgutils.get_or_insert_function(builder.module, signature, name)
    align = _WORD(dtype.bitwidth // 8)
    return builder.call(function, [places, align, every, ir.Constant(kind, ir.Undefined)])


@intrinsic
def bin_and_rest(typing_context, x, last):
    """Integers b = int(x) within 0 … last, and x − b."""
    count = Vector(types.int64 if x.dtype == types.float64 else types.int32, x.size)
    kind = types.Tuple((count, x))

    def build(context, builder, signature, args):
        none = ir.Constant(_llvm(x), None)
        bounded = _at_most(builder, _at_least(builder, args[0], none), args[1])
        whole = builder.fptosi(bounded, _llvm(count))
        rest = builder.fsub(args[0], builder.sitofp(whole, _llvm(x)))
        return context.make_tuple(builder, kind, [whole, rest])

    return kind(x, x), build


@intrinsic
def store_places(typing_context, array, offset, index, block):
    """``array[offset : offset + n] = len(block)·index``, as int64."""

    def build(context, builder, signature, args):
        kind = _llvm(Vector(types.int64, index.size))
        where = _pointer(context, builder, array, args[0], args[1], kind)
        wide = args[2] if index.dtype == types.int64 else builder.zext(args[2], kind)
        steps = ir.Constant(kind, [len(block)] * index.size)
        builder.store(builder.mul(wide, steps), where, align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, index, block), build


@intrinsic
def plus_distance(typing_context, total, a, b):
    """``total + |a − b|``."""

    def build(context, builder, signature, args):
        name = f"llvm.fabs.v{a.size}{_NAMES[a.dtype]}"
        kind = ir.FunctionType(_llvm(a), [_llvm(a)])
        size = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.fadd(args[0], builder.call(size, [builder.fsub(args[1], args[2])]))

    return a(a, a, a), build


@intrinsic
def look_up(typing_context, array, offset, index, registers):
    """``array[offset + index]``, index less than ``len(registers)`` (a power of two) vectors.

    All of them are loaded and permuted: only where `permutes`.
    """
    kind = Vector(array.dtype, index.size)

    def build(context, builder, signature, args):
        where = _pointer(context, builder, array, args[0], args[1], _llvm(kind))
        parts = [
            builder.load(builder.gep(where, [_WORD(k)]), align=array.dtype.bitwidth // 8)
            for k in range(max(1, len(registers)))  # none: in a branch that is not taken
        ]
        return _permuted(builder, parts, args[2])

    return kind(array, types.int64, index, registers), build


def permutes() -> bool:
    """Whether the machine permutes 64 bytes by indices that are known at run time."""
    return "+avx512f" in cpu_target.target_context.codegen().magic_tuple()[2].split(",")


def _permuted(builder, parts, index, start=0):
    """The numbers at some indices (less `start`) of registers side by side: 64 bytes each."""
    kind, size = parts[0].type, index.type.count
    letter = "d" if kind.element == ir.DoubleType() else "s"
    if len(parts) == 1:
        signature = ir.FunctionType(kind, [kind, index.type])
        name = f"llvm.x86.avx512.permvar.{letter}f.512"
        function = cgutils.get_or_insert_function(builder.module, signature, name)
        return builder.call(function, [parts[0], index])
    if len(parts) == 2:
        signature = ir.FunctionType(kind, [kind, index.type, kind])
        name = f"llvm.x86.avx512.vpermi2var.p{letter}.512"
        function = cgutils.get_or_insert_function(builder.module, signature, name)
        return builder.call(function, [parts[0], index, parts[1]])
    half = len(parts) // 2
    middle = start + half * size
    lower = _permuted(builder, parts[:half], index, start)
    upper = _permuted(builder, parts[half:], index, middle)
    first = ir.Constant(index.type, [middle] * size)
    return builder.select(builder.icmp_signed("<", index, first), lower, upper)


def _transposed(builder, rows):
    """Rows of a square; longer ones are squares side by side, each of which is transposed.

    Stage by stage, blocks off the diagonal change places: those of half the size, a quarter, ….
    """
    rows, size = list(rows), rows[0].type.count
    step = len(rows) // 2
    while step:
        left = _mask([k if not k & step else size + (k ^ step) for k in range(size)])
        right = _mask([k ^ step if not k & step else size + k for k in range(size)])
        for i in (i for i in range(len(rows)) if not i & step):
            pair = rows[i], rows[i + step]
            rows[i] = builder.shuffle_vector(*pair, left)
            rows[i + step] = builder.shuffle_vector(*pair, right)
        step //= 2
    return rows


@intrinsic
def transpose(typing_context, source, at, stride, target, to, away, size):
    """``target[to + away·j + i] = source[at + stride·i + j]``, i and j less than ``len(size)``.

    Both are flat; the numbers become those of the target.
    """
    n, long = len(size), ir.IntType(64)
    taken, given = Vector(source.dtype, n), Vector(target.dtype, n)

    def build(context, builder, signature, args):
        rows = []
        for i in range(n):
            place = builder.add(args[1], builder.mul(args[2], long(i)))
            where = _pointer(context, builder, source, args[0], place, _llvm(taken))
            value = builder.load(where, align=source.dtype.bitwidth // 8)
            rows.append(_converted(builder, value, taken, given))
        for j, row in enumerate(_transposed(builder, rows)):
            place = builder.add(args[4], builder.mul(args[5], long(j)))
            where = _pointer(context, builder, target, args[3], place, _llvm(given))
            builder.store(row, where, align=target.dtype.bitwidth // 8)
        return context.get_dummy_value()

    offsets = (types.int64, types.int64)
    return types.void(source, *offsets, target, *offsets, size), build


@intrinsic
def gather_blocks(typing_context, array, origin, places, offset, block, size):
    """Vectors k = 0 … ``len(block)`` − 1 of ``array[origin + places[offset + i] + k]``.

    A block of contiguous numbers for each of ``len(size)`` places is loaded as a whole, and blocks
    are transposed, which takes half the time of one gather for each k. The places come from
    memory: to take them out of a register one by one would cost as much as the loads.
    """
    n, length, long = len(size), len(block), ir.IntType(64)
    kind = types.UniTuple(Vector(array.dtype, n), length)

    def build(context, builder, signature, args):
        vector, own = _llvm(Vector(array.dtype, length)), _llvm(Vector(array.dtype, 1)).element
        table = _pointer(context, builder, array, args[0], args[1], own)
        parts = []
        for i in range(n):
            where = _pointer(context, builder, places, args[2], args[3], long)
            place = builder.load(builder.gep(where, [_WORD(i)]))
            where = builder.bitcast(builder.gep(table, [place]), ir.PointerType(vector))
            parts.append(builder.load(where, align=array.dtype.bitwidth // 8))
        rows = [_side_by_side(builder, parts[k::length]) for k in range(length)]
        return context.make_tuple(builder, kind, _transposed(builder, rows))

    return kind(array, types.int64, places, types.int64, block, size), build


@intrinsic
def words(typing_context, pairs):
    """The first and the second words of int64, in the order of memory."""
    kind = types.UniTuple(Vector(types.int32, pairs.size), 2)

    def build(context, builder, signature, args):
        both = builder.bitcast(args[0], ir.VectorType(_WORD, 2 * pairs.size))
        masks = [_mask(range(k, 2 * pairs.size, 2)) for k in (0, 1)]
        parts = [builder.shuffle_vector(both, both, mask) for mask in masks]
        return context.make_tuple(builder, kind, parts)

    return kind(pairs), build


@intrinsic
def reals(typing_context, word, array):
    """The float32 whose bits these are, in the array's type."""
    kind = Vector(array.dtype, word.size)

    def build(context, builder, signature, args):
        value = builder.bitcast(args[0], ir.VectorType(ir.FloatType(), word.size))
        return value if array.dtype == types.float32 else builder.fpext(value, _llvm(kind))

    return kind(word, array), build


@intrinsic
def passed(typing_context, count, x, threshold, step):
    """``count + step`` where x >= threshold."""

    def build(context, builder, signature, args):
        above = builder.fcmp_ordered(">=", args[1], args[2])
        step = _filled(builder, builder.trunc(args[3], _WORD), count)
        none = ir.Constant(_llvm(count), None)
        return builder.add(args[0], builder.select(above, step, none))

    return count(count, x, x, types.int64), build


@intrinsic
def store_codes(typing_context, array, offset, codes):
    """``array[offset : offset + n] = codes``, in the array's smaller integers."""

    def build(context, builder, signature, args):
        kind = _llvm(Vector(array.dtype, codes.size))
        data = context.make_array(array)(context, builder, args[0]).data
        where = builder.bitcast(builder.gep(data, [args[1]]), ir.PointerType(kind))
        small = args[2] if array.dtype.bitwidth == 32 else builder.trunc(args[2], kind)
        builder.store(small, where, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, codes), build
