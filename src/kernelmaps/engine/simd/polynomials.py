"""Polynomials of a table's rows, evaluated in registers.

They are written in LLVM's operations, not as functions that numba compiles: every loop over values
has them, and for each of its kinds a function would be compiled once more.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import types

from ...compiling import meaning
from .vectors import Vector, filled, llvm, pointer

_COUNT = ir.IntType(64)


def _kind(block: types.Type, name: str) -> types.Type:
    return block.types[block.fields.index(name)]


def _field(context, builder, block: types.Type, value, name: str):
    return context.get_getattr(block, name)(context, builder, block, value, name)


def _vectors(context, builder, block: types.Type, value):
    if not len(_kind(block, "several")):
        return _COUNT(1)
    return _field(context, builder, block, value, "parts")


@meaning(lambda values: values.parts)
def vectors(typing_context, values):
    """Vectors in a row of a block; the compiler knows if it is one."""

    def build(context, builder, signature, args):
        return _vectors(context, builder, values, args[0])

    return types.int64(values), build


def _plain_polynomial(values, row, u, part):
    size, width = len(values.chunk), len(values.chunk) * values.parts
    first = row * width * len(values.powers) + part * size
    total = 0
    for power in reversed(range(len(values.powers))):
        at = first + power * width
        total = total * u + values.coef[at : at + size]
    return total


@meaning(_plain_polynomial)
def polynomial(typing_context, values, row, u, part):
    """Σ_k coef[row, k] u^k for one vector of a block's columns."""
    coef, powers = _kind(values, "coef"), len(_kind(values, "powers"))
    kind = Vector(coef.dtype, len(_kind(values, "chunk")))

    def build(context, builder, signature, args):
        block, row, u, part = args
        numbers = _field(context, builder, values, block, "coef")
        position = filled(builder, u, kind)
        width = builder.mul(_COUNT(kind.size), _vectors(context, builder, values, block))
        at = builder.mul(row, builder.mul(width, _COUNT(powers)))
        at = builder.add(at, builder.mul(part, _COUNT(kind.size)))
        total = None
        for power in reversed(range(powers)):
            here = builder.add(at, builder.mul(width, _COUNT(power)))
            where = pointer(context, builder, coef, numbers, here, llvm(kind))
            own = builder.load(where, align=coef.dtype.bitwidth // 8)
            if total is None:
                total = own
                continue
            product = builder.fmul(total, position, flags=("fast",))
            total = builder.fadd(product, own, flags=("fast",))
        return total

    return kind(values, types.int64, coef.dtype, types.int64), build
