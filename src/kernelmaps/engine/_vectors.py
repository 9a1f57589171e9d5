"""Vector registers for the compiled loops: a SIMD value as a numba type.

The inner loops of transforms and solvers combine, per feature, a few contiguous numbers with a
few table entries.  Written with arrays, the accumulators live in memory and every feature waits
for the store of the previous one (about ten cycles); a value of the type below lives in registers.
LLVM splits it into what the machine has, so nothing here depends on the instruction set.

Lengths are part of the type.  They come in as the *lengths of tuples*, ``(0,) * n``: an argument
type that numba's disk cache knows, unlike closures or literal arguments.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model


class Vector(types.Type):
    """``size`` numbers of one type in registers."""

    def __init__(self, dtype: types.Number, size: int) -> None:
        self.dtype, self.size = dtype, size
        super().__init__(name=f"Vector({dtype}, {size})")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """A vector is one LLVM value."""

    def __init__(self, manager, kind) -> None:
        super().__init__(manager, kind, _llvm(kind))


def _llvm(kind: Vector) -> ir.VectorType:
    if isinstance(kind.dtype, types.Integer):
        element = ir.IntType(kind.dtype.bitwidth)
    else:
        element = ir.FloatType() if kind.dtype == types.float32 else ir.DoubleType()
    return ir.VectorType(element, kind.size)


def _pointer(context, builder, array_type, array, offset, llvm_type):
    """Address of ``array[offset]``, to be read or written as ``llvm_type``."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), ir.PointerType(llvm_type))


def _mask(indices) -> ir.Constant:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(indices)), list(indices))


def _side_by_side(builder, parts):
    """Vectors of one length (as many as a power of two) in one."""
    while len(parts) > 1:
        every = _mask(range(2 * parts[0].type.count))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [builder.shuffle_vector(a, b, every) for a, b in pairs]
    return parts[0]


@intrinsic
def zeros(typing_context, array, size):
    """A vector of ``len(size)`` zeros of the array's type."""
    kind = Vector(array.dtype, len(size))

    def build(context, builder, signature, args):
        return ir.Constant(_llvm(kind), None)

    return kind(array, size), build


@intrinsic
def load(typing_context, array, offset, size):
    """``array[offset : offset + len(size)]`` of a contiguous array."""
    kind = Vector(array.dtype, len(size))

    def build(context, builder, signature, args):
        where = _pointer(context, builder, array, args[0], args[1], _llvm(kind))
        return builder.load(where, align=array.dtype.bitwidth // 8)

    return kind(array, types.int64, size), build


@intrinsic
def store(typing_context, array, offset, vector):
    """``array[offset : offset + n] = vector``."""

    def build(context, builder, signature, args):
        where = _pointer(context, builder, array, args[0], args[1], _llvm(vector))
        builder.store(args[2], where, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), build


@intrinsic
def multiply_add(typing_context, a, b, c):
    """``a * b + c``, element by element."""

    def build(context, builder, signature, args):
        product = builder.fmul(args[0], args[1], flags=("fast",))
        return builder.fadd(product, args[2], flags=("fast",))

    return a(a, a, a), build


@intrinsic
def add(typing_context, a, b):
    """``a + b``."""

    def build(context, builder, signature, args):
        return builder.fadd(args[0], args[1], flags=("fast",))

    return a(a, a), build


@intrinsic
def fill(typing_context, array, value, size):
    """``len(size)`` copies of a number, in the array's type."""
    kind = Vector(array.dtype, len(size))

    def build(context, builder, signature, args):
        lane = builder.insert_element(
            ir.Constant(_llvm(kind), ir.Undefined), args[1], ir.IntType(32)(0)
        )
        return builder.shuffle_vector(lane, lane, _mask([0] * kind.size))

    return kind(array, array.dtype, size), build


@intrinsic
def repeat(typing_context, vector, lanes):
    """Each element ``len(lanes)`` times in a row: ``np.repeat``."""
    kind = Vector(vector.dtype, vector.size * len(lanes))

    def build(context, builder, signature, args):
        indices = [k // len(lanes) for k in range(kind.size)]
        return builder.shuffle_vector(args[0], args[0], _mask(indices))

    return kind(vector, lanes), build


@intrinsic
def tile(typing_context, vector, copies):
    """The whole vector ``len(copies)`` times: ``np.tile``."""
    kind = Vector(vector.dtype, vector.size * len(copies))

    def build(context, builder, signature, args):
        indices = [k % vector.size for k in range(kind.size)]
        return builder.shuffle_vector(args[0], args[0], _mask(indices))

    return kind(vector, copies), build


@intrinsic
def fold(typing_context, vector, lanes):
    """Sum of the consecutive pieces of ``len(lanes)`` elements: ``v.reshape(-1, L).sum(0)``."""
    kind = Vector(vector.dtype, len(lanes))

    def build(context, builder, signature, args):
        pieces = [
            builder.shuffle_vector(args[0], args[0], _mask(range(k, k + kind.size)))
            for k in range(0, vector.size, kind.size)
        ]
        while len(pieces) > 1:
            pairs = zip(pieces[::2], pieces[1::2], strict=False)
            odd = pieces[-1:] if len(pieces) % 2 else []
            pieces = [builder.fadd(a, b, flags=("fast",)) for a, b in pairs] + odd
        return pieces[0]

    return kind(vector, lanes), build


@intrinsic
def prefetch(typing_context, array, offset):
    """Ask for the cache line of ``array[offset]``."""

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
def item(typing_context, array, offset):
    """``array[offset]`` of a contiguous array: no test for a negative index."""

    def build(context, builder, signature, args):
        data = context.make_array(array)(context, builder, args[0]).data
        return builder.load(builder.gep(data, [args[1]]))

    return array.dtype(array, types.int64), build
