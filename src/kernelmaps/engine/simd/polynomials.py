"""Polynomials of a table's pieces, evaluated in registers.

They are written as intrinsics, not as functions that numba compiles: every loop over values uses
them, and a function would be compiled once more for each variant of the loop.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import types

from ..._util.compiling import python_fallback
from .vectors import Vector, filled, llvm, pointer

_COUNT = ir.IntType(64)


def _field_type(record: types.Type, name: str) -> types.Type:
    """The type of a field, from the type of a NamedTuple."""
    return record.types[record.fields.index(name)]


def _field(context, builder, block: types.Type, value, name: str):
    return context.get_getattr(block, name)(context, builder, block, value, name)


def _vectors(context, builder, block: types.Type, value):
    if not _field_type(block, "several").count:
        return _COUNT(1)
    return _field(context, builder, block, value, "parts")


@python_fallback(lambda values: values.parts)
def vectors(typing_context, values):
    """Vectors in a piece of the table; a constant 1 if there is only one."""

    def build(context, builder, signature, args):
        return _vectors(context, builder, values, args[0])

    return types.int64(values), build


def _python_polynomial(values, piece, u, v):
    size, width = len(values.chunk), len(values.chunk) * values.parts
    first = piece * width * len(values.powers) + v * size
    total = 0
    for power in reversed(range(len(values.powers))):
        at = first + power * width
        total = total * u + values.coef[at : at + size]
    return total


@python_fallback(_python_polynomial)
def polynomial(typing_context, values, piece, u, part):
    """Σ_k coef[piece, k] u^k for one vector of the columns, by Horner's rule."""
    coef, powers = _field_type(values, "coef"), _field_type(values, "powers").count
    kind = Vector(coef.dtype, _field_type(values, "chunk").count)

    def build(context, builder, signature, args):
        block, piece, u, part = args
        numbers = _field(context, builder, values, block, "coef")
        position = filled(builder, u, kind)
        width = builder.mul(_COUNT(kind.size), _vectors(context, builder, values, block))
        at = builder.mul(piece, builder.mul(width, _COUNT(powers)))
        at = builder.add(at, builder.mul(part, _COUNT(kind.size)))
        total = None
        for power in reversed(range(powers)):
            offset = builder.add(at, builder.mul(width, _COUNT(power)))
            where = pointer(context, builder, coef, numbers, offset, llvm(kind))
            coefficients = builder.load(where, align=coef.dtype.bitwidth // 8)
            if total is None:
                total = coefficients
                continue
            product = builder.fmul(total, position, flags=("fast",))
            total = builder.fadd(product, coefficients, flags=("fast",))
        return total

    return kind(values, types.int64, coef.dtype, types.int64), build
