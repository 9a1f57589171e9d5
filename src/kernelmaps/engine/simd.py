"""Vector registers for the compiled loops: a SIMD value as a numba type; loads, stores, shuffles.

The inner loops of transforms and solvers combine, per feature, a few contiguous numbers with a
few table entries.  Written with arrays, the accumulators live in memory and every feature waits
for the store of the previous one (about ten cycles); a value of the type below lives in registers.
LLVM splits it into what the machine has: no instruction set is named. This is the only file that
knows numba's internals; importing it imports numba, so import it lazily.

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

from .._util.compiling import python_fallback, static

WORD = ir.IntType(32)
_COUNT = ir.IntType(64)
ONE = static(1)  # a length that compiled code asks for by name


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


def fill_vector(builder, value, kind: types.Type):
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
        return fill_vector(builder, args[1], kind)

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
        builder.store(number, where).set_metadata("noalias", _read_only(builder))
        return context.get_dummy_value()

    return types.void(array, types.int64, value), build


def _read_only(builder):
    """The scope, to LLVM, of memory that :func:`read` reads and no :func:`put` writes to."""
    scope = builder.module.add_metadata(["read", builder.module.add_metadata(["kernelmaps"])])
    return builder.module.add_metadata([scope])


@python_fallback(lambda array, offset: array.reshape(-1)[offset])
def read(typing_context, array, offset):
    """``array[offset]`` of a contiguous array that the loop does not :func:`put` to.

    LLVM reads several of them at a time: it need not think of what was written in between.
    """

    def build(context, builder, signature, args):
        where = pointer(context, builder, array, args[0], args[1], llvm(array.dtype))
        number = builder.load(where)
        number.set_metadata("alias.scope", _read_only(builder))
        return number

    return array.dtype(array, types.int64), build


@python_fallback(lambda array, offset: array.reshape(-1)[offset])
def item(typing_context, array, offset):
    """``array[offset]`` of a contiguous array: no test for a negative index."""

    def build(context, builder, signature, args):
        where = pointer(context, builder, array, args[0], args[1], llvm(array.dtype))
        return builder.load(where)

    return array.dtype(array, types.int64), build


def _field_type(record: types.Type, name: str) -> types.Type:
    """The type of a field, from the type of a NamedTuple."""
    return record.types[record.fields.index(name)]


def _python_polynomial(values, piece, u, v):
    size, width = len(values.chunk), len(values.chunk) * len(values.parts)
    start = piece * width * len(values.powers) + v * size
    total = 0
    for power in reversed(range(len(values.powers))):
        position = start + power * width
        total = total * u + values.coef[position : position + size]
    return total


@python_fallback(_python_polynomial)
def polynomial(typing_context, values, piece, u, part):
    """Σ_k coef[piece, k] u^k for one vector of the columns, by Horner's rule."""
    coef, powers = _field_type(values, "coef"), _field_type(values, "powers").count
    kind = Vector(coef.dtype, _field_type(values, "chunk").count)
    width = kind.size * _field_type(values, "parts").count

    def build(context, builder, signature, args):
        block, piece, u, part = args
        numbers = context.get_getattr(values, "coef")(context, builder, values, block, "coef")
        position = fill_vector(builder, u, kind)
        start = builder.mul(piece, _COUNT(width * powers))
        start = builder.add(start, builder.mul(part, _COUNT(kind.size)))
        total = None
        for power in reversed(range(powers)):
            offset = builder.add(start, _COUNT(width * power))
            where = pointer(context, builder, coef, numbers, offset, llvm(kind))
            coefficients = builder.load(where, align=coef.dtype.bitwidth // 8)
            if total is None:
                total = coefficients
                continue
            product = builder.fmul(total, position, flags=("fast",))
            total = builder.fadd(product, coefficients, flags=("fast",))
        return total

    return kind(values, types.int64, coef.dtype, types.int64), build
