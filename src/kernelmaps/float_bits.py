"""Floating-point numbers as bits, inside compiled loops (imports numba: import it lazily).

The bits of a positive float, read as an integer, are a piecewise-linear log2: the exponent field
counts octaves and the mantissa runs evenly through each. Two uses: an index into tables that are
even in octaves, without a logarithm, and a logarithm that the compiler can vectorise.
"""

import llvmlite.ir as ir
import numpy as np
from numba.core import types

from .compiling import meaning, njit


@meaning(lambda value: value.view(np.int32 if value.itemsize == 4 else np.int64))
def float_bits(typing_context, value):
    """Bits of a float32 (as int32) or float64 (as int64)."""
    if value not in (types.float32, types.float64):
        return None
    width = 32 if value == types.float32 else 64
    result = types.int32 if width == 32 else types.int64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(width))

    return result(value), codegen


@meaning(lambda value: value.view(np.float32 if value.itemsize == 4 else np.float64))
def from_bits(typing_context, value):
    """Inverse of :func:`float_bits`."""
    if value not in (types.int32, types.int64):
        return None
    single = value == types.int32
    result = types.float32 if single else types.float64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType() if single else ir.DoubleType())

    return result(value), codegen


_FAST = {"reassoc", "nsz", "arcp", "contract"}
_LOG2_E = 1.4426950408889634


@njit(cache=True, fastmath=_FAST, inline="always", error_model="numpy")
def log2(value):
    """log2 of a positive normal float64, to about two units in the last place.

    value = 2^e m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh(t), t = (m - 1)/(m + 1),
    |t| < 0.1716: the odd series to t^21 leaves less than 1e-17. No branch, no table, no call, so
    that a loop around it becomes vector code.
    """
    bits = float_bits(np.float64(value))
    shifted = bits + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    exponent = (shifted >> 52) - 1023
    m = from_bits(bits - (exponent << 52))
    t = (m - 1.0) / (m + 1.0)
    s = t * t
    series = 1.0 / 21
    series = series * s + 1.0 / 19
    series = series * s + 1.0 / 17
    series = series * s + 1.0 / 15
    series = series * s + 1.0 / 13
    series = series * s + 1.0 / 11
    series = series * s + 1.0 / 9
    series = series * s + 1.0 / 7
    series = series * s + 1.0 / 5
    series = series * s + 1.0 / 3
    series = series * s + 1.0
    return exponent + 2.0 * _LOG2_E * t * series
