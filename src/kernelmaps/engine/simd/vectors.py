"""Vector registers for the compiled loops: a SIMD value as a numba type; loads, stores, shuffles.

The inner loops of transforms and solvers combine, per feature, a few contiguous numbers with a
few table entries.  Written with arrays, the accumulators live in memory and every feature waits
for the store of the previous one (about ten cycles); a value of the type below lives in registers.
LLVM splits it into what the machine has. All that is below runs on every processor; where two forms
of an operation differ in speed, the faster one for the processor is built (`on_arm`).

Lengths are part of the type: they come in as :func:`~kernelmaps._util.compiling.static` numbers,
tuples of that length.

The operations that training needs have a Python fallback on arrays: where nothing is compiled, its
loops run as they are read. (Maps have a readable form of their own then, :mod:`..reference`.)
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from ..._util.compiling import python_fallback, static

WORD = ir.IntType(32)
ONE, TWO = static(1), static(2)  # lengths that compiled code asks for by name
_UNSIGNED = {1: types.uint8, 2: types.uint16, 4: types.uint32}  # by bytes
# 32-bit integers in a store that later loads can read from the store buffer (measured on x86).
_FORWARDED = 8
_NAMES = {types.int32: "i32", types.int64: "i64", types.float32: "f32", types.float64: "f64"}


class Vector(types.Type):
    """``size`` numbers of one type in registers."""

    def __init__(self, dtype: types.Number, size: int) -> None:
        self.dtype, self.size = dtype, size
        super().__init__(name=f"Vector({dtype}, {size})")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """A vector is one LLVM value."""

    def __init__(self, manager, kind) -> None:
        super().__init__(manager, kind, llvm(kind))


def llvm(kind: types.Type) -> ir.Type:
    """The LLVM type of a vector, or of a number."""
    dtype = kind.dtype if isinstance(kind, Vector) else kind
    if isinstance(dtype, types.Integer):
        element = ir.IntType(dtype.bitwidth)
    else:
        element = ir.FloatType() if dtype == types.float32 else ir.DoubleType()
    return ir.VectorType(element, kind.size) if isinstance(kind, Vector) else element


def on_arm(builder) -> bool:
    """Whether the code is for 64-bit ARM: some operations are one instruction if put another way.

    Either form runs everywhere; only speed and the rounding of sums depend on it.
    """
    return builder.module.triple.startswith(("aarch64", "arm64"))


def like(dtype: types.Type, x: types.Type) -> types.Type:
    """Numbers of `dtype`, as many as x is: a vector for a vector, a number for a number."""
    return Vector(dtype, x.size) if isinstance(x, Vector) else dtype


def constant(kind: types.Type, value: float) -> ir.Constant:
    """A known number, in every lane."""
    return ir.Constant(llvm(kind), [value] * kind.size if isinstance(kind, Vector) else value)


def filled(builder, value, kind: types.Type):
    """A number in every lane."""
    if not isinstance(kind, Vector):
        return value
    lane = builder.insert_element(ir.Constant(llvm(kind), ir.Undefined), value, WORD(0))
    return builder.shuffle_vector(lane, lane, mask([0] * kind.size))


def pointer(context, builder, array_type, array, offset, llvm_type):
    """Address of ``array[offset]``, to be read or written as ``llvm_type``."""
    if array_type.layout != "C":
        raise TypeError(f"Compiled loops take contiguous arrays, not {array_type}.")
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), ir.PointerType(llvm_type))


def mask(indices) -> ir.Constant:
    return ir.Constant(ir.VectorType(WORD, len(indices)), list(indices))


def side_by_side(builder, parts):
    """Vectors of one length (as many as a power of two) in one."""
    while len(parts) > 1:
        both = mask(range(2 * parts[0].type.count))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [builder.shuffle_vector(a, b, both) for a, b in pairs]
    return parts[0]


@python_fallback(lambda array, size: np.zeros(len(size), array.dtype))
def zeros(typing_context, array, size):
    """A vector of `size` zeros of the array's type."""
    kind = Vector(array.dtype, size.count)

    def build(context, builder, signature, args):
        return ir.Constant(llvm(kind), None)

    return kind(array, size), build


@python_fallback(lambda array, offset, size: array[offset : offset + len(size)].copy())
def load(typing_context, array, offset, size):
    """``array[offset : offset + size]`` of a contiguous array."""
    kind = Vector(array.dtype, size.count)

    def build(context, builder, signature, args):
        where = pointer(context, builder, array, args[0], args[1], llvm(kind))
        return builder.load(where, align=array.dtype.bitwidth // 8)

    return kind(array, types.int64, size), build


@intrinsic
def load_some(typing_context, array, offset, count, size):
    """As `load`, but reads at most `count` ≥ 1 numbers; the last one read fills the other lanes."""
    kind = Vector(array.dtype, size.count)

    def build(context, builder, signature, args):
        where = pointer(context, builder, array, args[0], args[1], llvm(kind))
        fewer = builder.icmp_signed("<", args[2], ir.Constant(args[2].type, kind.size))
        with builder.if_else(fewer, likely=False) as (masked_branch, full_branch):
            with masked_branch:
                last = builder.sub(builder.add(args[1], args[2]), ir.Constant(args[1].type, 1))
                last = pointer(context, builder, array, args[0], last, llvm(array.dtype))
                masked = _load_first(builder, where, args[2], builder.load(last), kind)
                after_masked = builder.block
            with full_branch:
                full = builder.load(where, align=array.dtype.bitwidth // 8)
                after_full = builder.block
        vector = builder.phi(llvm(kind))
        vector.add_incoming(full, after_full)
        vector.add_incoming(masked, after_masked)
        return vector

    return kind(array, types.int64, types.int64, size), build


def _load_first(builder, where, count, last, kind: Vector):
    """A masked load of the first `count` numbers; `last` in the other lanes."""
    vector = llvm(kind)
    lanes = ir.Constant(ir.VectorType(WORD, kind.size), list(range(kind.size)))
    count = filled(builder, builder.trunc(count, WORD), Vector(types.int32, kind.size))
    is_read = builder.icmp_signed("<", lanes, count)
    element = _NAMES.get(kind.dtype, f"i{kind.dtype.bitwidth}")
    name = f"llvm.masked.load.v{kind.size}{element}.p0"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [where.type, WORD, is_read.type, vector]), name
    )
    align = WORD(kind.dtype.bitwidth // 8)
    return builder.call(function, [where, align, is_read, filled(builder, last, kind)])


@python_fallback(
    lambda array, offset, vector: np.copyto(array[offset : offset + len(vector)], vector)
)
def store(typing_context, array, offset, vector):
    """``array[offset : offset + n] = vector``."""

    def build(context, builder, signature, args):
        where = pointer(context, builder, array, args[0], args[1], llvm(vector))
        builder.store(args[2], where, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), build


@python_fallback(lambda a, b, c: a * b + c)
def multiply_add(typing_context, a, b, c):
    """``a * b + c``, element by element."""

    def build(context, builder, signature, args):
        product = builder.fmul(args[0], args[1], flags=("fast",))
        return builder.fadd(product, args[2], flags=("fast",))

    return a(a, a, a), build


@python_fallback(lambda a, b: a + b)
def add(typing_context, a, b):
    """``a + b``."""

    def build(context, builder, signature, args):
        return builder.fadd(args[0], args[1], flags=("fast",))

    return a(a, a), build


@python_fallback(lambda array, value, size: np.full(len(size), value, array.dtype))
def fill(typing_context, array, value, size):
    """`size` copies of a number, in the array's type."""
    kind = Vector(array.dtype, size.count)

    def build(context, builder, signature, args):
        return filled(builder, args[1], kind)

    return kind(array, array.dtype, size), build


@python_fallback(lambda vector, lanes: np.repeat(vector, len(lanes)))
def repeat(typing_context, vector, lanes):
    """Each element `lanes` times in a row: ``np.repeat``."""
    kind = Vector(vector.dtype, vector.size * lanes.count)

    def build(context, builder, signature, args):
        indices = [k // lanes.count for k in range(kind.size)]
        return builder.shuffle_vector(args[0], args[0], mask(indices))

    return kind(vector, lanes), build


@python_fallback(lambda vector, copies: np.tile(vector, len(copies)))
def tile(typing_context, vector, copies):
    """The vector `copies` times, one after the other: ``np.tile``."""
    kind = Vector(vector.dtype, vector.size * copies.count)

    def build(context, builder, signature, args):
        indices = [k % vector.size for k in range(kind.size)]
        return builder.shuffle_vector(args[0], args[0], mask(indices))

    return kind(vector, copies), build


@python_fallback(lambda vector, lanes: vector.reshape(-1, len(lanes)).sum(axis=0))
def fold(typing_context, vector, lanes):
    """Sum of the consecutive pieces of `lanes` elements: ``v.reshape(-1, lanes).sum(0)``."""
    kind = Vector(vector.dtype, lanes.count)

    def build(context, builder, signature, args):
        pieces = [
            builder.shuffle_vector(args[0], args[0], mask(range(k, k + kind.size)))
            for k in range(0, vector.size, kind.size)
        ]
        while len(pieces) > 1:
            pairs = zip(pieces[::2], pieces[1::2], strict=False)
            odd = pieces[-1:] if len(pieces) % 2 else []
            pieces = [builder.fadd(a, b, flags=("fast",)) for a, b in pairs] + odd
        return pieces[0]

    return kind(vector, lanes), build


@python_fallback(lambda array, offset: None)
def prefetch(typing_context, array, offset):
    """Prefetch the cache line of ``array[offset]``."""

    def build(context, builder, signature, args):
        byte, word = ir.PointerType(ir.IntType(8)), ir.IntType(32)
        where = context.make_array(array)(context, builder, args[0]).data
        where = builder.bitcast(builder.gep(where, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(call, [where, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), build


@intrinsic
def copy_numbers(typing_context, source, target, offset, count):
    """``target[offset : offset + count] = source[:count]``; a loop would take long to compile."""

    def build(context, builder, signature, args):
        begin = context.make_array(source)(context, builder, args[0]).data
        where = pointer(context, builder, target, args[1], args[2], llvm(target.dtype))
        cgutils.raw_memcpy(builder, where, begin, args[3], target.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(source, target, types.int64, types.int64), build


@intrinsic
def clear(typing_context, array, offset, count):
    """``array[offset : offset + count] = 0``, likewise."""

    def build(context, builder, signature, args):
        where = pointer(context, builder, array, args[0], args[1], llvm(array.dtype))
        size = builder.mul(args[2], ir.Constant(args[2].type, array.dtype.bitwidth // 8))
        cgutils.memset(builder, where, size, 0)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), build


def _python_put(array, offset, value):
    array.reshape(-1)[offset] = value


@python_fallback(_python_put)
def put(typing_context, array, offset, value):
    """``array.flat[offset] = value`` of a contiguous array: a third of the time to compile."""

    def build(context, builder, signature, args):
        number = context.cast(builder, args[2], value, array.dtype)
        where = pointer(context, builder, array, args[0], args[1], llvm(array.dtype))
        builder.store(number, where)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), build


@python_fallback(lambda array, offset: array[offset])
def item(typing_context, array, offset):
    """``array[offset]`` of a contiguous array: no test for a negative index."""

    def build(context, builder, signature, args):
        where = pointer(context, builder, array, args[0], args[1], llvm(array.dtype))
        return builder.load(where)

    return array.dtype(array, types.int64), build


def converted(builder, value, kind: types.Type, target: types.Type):
    """Unsigned integers or floats as floats."""
    dtype = kind.dtype if isinstance(kind, Vector) else kind
    new_dtype = target.dtype if isinstance(target, Vector) else target
    if isinstance(dtype, types.Integer):
        return builder.uitofp(value, llvm(target))
    if dtype == new_dtype:
        return value
    change = builder.fpext if new_dtype == types.float64 else builder.fptrunc
    return change(value, llvm(target))


@python_fallback(lambda index: np.array([index], np.int32))
def in_memory(typing_context, index):
    """32-bit integers as an array, for :func:`gather_blocks`: its loads take them from there.

    Extracting them from a register one by one costs three times as much. The compiler would do that
    if it knew the contents of the array: the empty assembler statement hides them. Loads that
    follow at once can read halves of a 64-byte vector from the store buffer only if each half was
    stored by itself.
    """
    kind = types.Array(types.int32, 1, "C")
    size = index.size if isinstance(index, Vector) else 1

    def build(context, builder, signature, args):
        slot = cgutils.alloca_once(builder, WORD, size)
        if isinstance(index, Vector):
            for k in range(0, size, _FORWARDED):
                lanes = mask(range(k, min(k + _FORWARDED, size)))
                half = builder.shuffle_vector(args[0], args[0], lanes)
                where = builder.gep(slot, [WORD(k)])
                builder.store(half, builder.bitcast(where, half.type.as_pointer()), align=4)
            opaque = ir.FunctionType(ir.VoidType(), [slot.type])
            builder.asm(opaque, "", "r,~{memory}", [slot], side_effect=True)
        else:
            builder.store(args[0], slot)
        array = context.make_array(kind)(context, builder)
        array.data = slot
        return array._getvalue()

    return kind(index), build


def _transposed(builder, rows):
    """Transpose a square matrix given by rows; longer rows are squares side by side.

    Stage by stage, the off-diagonal blocks of half the size, of a quarter, … are exchanged.
    """
    rows, size = list(rows), rows[0].type.count
    step = len(rows) // 2
    while step:
        left = mask([k if not k & step else size + (k ^ step) for k in range(size)])
        right = mask([k ^ step if not k & step else size + k for k in range(size)])
        for i in (i for i in range(len(rows)) if not i & step):
            pair = rows[i], rows[i + step]
            rows[i] = builder.shuffle_vector(*pair, left)
            rows[i + step] = builder.shuffle_vector(*pair, right)
        step //= 2
    return rows


def _python_blocks(array, step, indices, offset, block, x):
    start = step * int(indices[offset])
    return tuple(array[start : start + len(block)])


@python_fallback(_python_blocks)
def gather_blocks(typing_context, array, step, indices, offset, block, x):
    """``array[step·indices[offset + i] + k]`` for k = 0 … `block` − 1 and each lane i of x.

    Each index's block of contiguous numbers is loaded at once and the blocks are transposed: half
    the time of a gather instruction for each k. The numbers of lanes and of a block are powers of
    two.
    """
    kind = types.UniTuple(like(array.dtype, x), block.count)

    def build(context, builder, signature, args):
        blocks = _blocks(context, builder, (array, indices), args, block.count, x)
        if isinstance(x, Vector):
            columns = _columns(builder, blocks)
        else:
            columns = [builder.extract_element(blocks[0], WORD(k)) for k in range(block.count)]
        return context.make_tuple(builder, kind, columns)

    return kind(array, types.int64, indices, types.int64, block, x), build


def _blocks(context, builder, arrays, args, length, x):
    """The blocks as they lie in memory; arguments of :func:`gather_blocks`."""
    (array, indices), (numbers, step, places, offset) = arrays, args[:4]
    index = pointer(context, builder, indices, places, offset, WORD)
    data = context.make_array(array)(context, builder, numbers).data
    vector, blocks = llvm(Vector(array.dtype, length)), []
    for i in range(x.size if isinstance(x, Vector) else 1):
        at = builder.sext(builder.load(builder.gep(index, [WORD(i)])), ir.IntType(64))
        at = builder.gep(data, [builder.mul(at, step)])
        where = builder.bitcast(at, ir.PointerType(vector))
        blocks.append(builder.load(where, align=array.dtype.bitwidth // 8))
    return blocks


@intrinsic
def add_polynomials(typing_context, array, step, indices, offset, block, u, total):
    """`total` plus polynomials of u, with the coefficients of :func:`gather_blocks`.

    Only the sum over all lanes is defined: which values a lane of the result holds is not.
    """

    def build(context, builder, signature, args):
        blocks = _blocks(context, builder, (array, indices), args, block.count, u)
        if on_arm(builder) and block.count == 4 and array.dtype == types.float64:
            return _by_element(builder, blocks, args[5], args[6])
        *lower_powers, value = _columns(builder, blocks)
        for coef in reversed(lower_powers):
            value = builder.fmul(value, args[5], flags=("fast",))
            value = builder.fadd(value, coef, flags=("fast",))
        return builder.fadd(args[6], value, flags=("fast",))

    return u(array, types.int64, indices, types.int64, block, u, u), build


def _by_element(builder, cubics, u, total):
    """Cubics as (c₀ + c₂u², c₁ + c₃u²)·(1, u), two numbers at a time.

    ARM multiplies by one element of a vector as fast as by all, and coefficients stay as they are:
    two thirds of the time.
    """
    square, ones = builder.fmul(u, u), ir.Constant(u.type, [1.0] * u.type.count)
    parts = [
        builder.shuffle_vector(total, total, mask([k, k + 1])) for k in range(0, u.type.count, 2)
    ]
    for i, cubic in enumerate(cubics):
        low, high = (builder.shuffle_vector(cubic, cubic, mask([k, k + 1])) for k in (0, 2))
        u_squared = builder.shuffle_vector(square, square, mask([i, i]))
        value = builder.fadd(low, builder.fmul(high, u_squared, flags=("fast",)), flags=("fast",))
        powers = builder.shuffle_vector(ones, u, mask([i % 2, u.type.count + i]))
        value = builder.fmul(value, powers, flags=("fast",))
        parts[i % len(parts)] = builder.fadd(parts[i % len(parts)], value, flags=("fast",))
    return side_by_side(builder, parts)


def _columns(builder, rows):
    """Columns of a matrix whose rows are vectors; both numbers are powers of two."""
    n, length = len(rows), rows[0].type.count
    if n >= length:
        return _transposed(builder, [side_by_side(builder, rows[k::length]) for k in range(length)])
    columns = []
    for k in range(0, length, n):
        square = [builder.shuffle_vector(row, row, mask(range(k, k + n))) for row in rows]
        columns += _transposed(builder, square)
    return columns


@intrinsic
def store_codes(typing_context, array, offset, size, codes):
    """Write codes (32-bit integers) from byte `offset` on, each in so many bytes: 1, 2 or 4."""

    def build(context, builder, signature, args):
        data = context.make_array(array)(context, builder, args[0]).data
        where = builder.gep(data, [args[1]])

        def write(n_bytes):
            kind = llvm(like(_UNSIGNED[n_bytes], codes))
            small = args[3] if n_bytes == 4 else builder.trunc(args[3], kind)
            builder.store(small, builder.bitcast(where, ir.PointerType(kind)), align=n_bytes)

        def is_size(n_bytes):
            return builder.icmp_unsigned("==", args[2], ir.Constant(args[2].type, n_bytes))

        with builder.if_else(is_size(1)) as (one, more):
            with one:
                write(1)
            with more, builder.if_else(is_size(2)) as (two, four):
                with two:
                    write(2)
                with four:
                    write(4)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, codes), build


def width(itemsize: int) -> int:
    """Numbers of that many bytes in a vector, on every machine alike.

    Where registers have 64 bytes, vectors of 32 take up to a fifth longer (predictions; encodings a
    tenth, transforms and fits as long); where they have 16, the two differ by a tenth at most.
    """
    return 64 // itemsize
