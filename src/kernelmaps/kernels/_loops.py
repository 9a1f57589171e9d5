"""Compiled sums over features, sum_d c(x_d, y_d), for dense and CSR rows.

A kernel (or its squared distance) reaches these loops as a `Rule`: an integer that picks a scalar
function, and a number that parametrises it; nothing else distinguishes one from another here.

The loops rely on what is checked on entry (`_util.sparse`): dense rows of X and Y have as
many columns; the row ends of CSR rows ascend within their data, as do the columns of each row.
"""

from typing import Any, NamedTuple

import numpy as np

from .._util.compiling import HELPER, loop, njit, static
from .._util.sparse import convert_for_loops

CHI2, MINIMUM, JENSEN_SHANNON, ABSOLUTE, LOG_CAUCHY, CHI2_DISTANCE = range(6)
_LOGARITHMIC = (JENSEN_SHANNON, LOG_CAUCHY)
FIRST_NONZERO = ABSOLUTE  # from this code on, c(x, 0) is not 0
TILE = 32  # rows of Y that stay in a cache while the loop goes over the rows of X

_FAST = {"reassoc", "nsz", "arcp", "contract"}  # not nnan/ninf: a NaN must stay visible
_IN_ORDER = {"contract", "nsz"}  # no reassociation
_LN2 = 0.6931471805599453
_LOG2_E = 1.4426950408889634
_CHUNK = 512  # features summed in the input's precision before joining a float64 total


class Rule(NamedTuple):
    """A scalar function c(x, y)."""

    code: int
    parameter: float
    tiny: float  # smallest normal number of the type that is computed in
    # Flag: its sums are of logarithms, whose loops take long to compile and few kernels need.
    logarithmic: tuple  # static


def make_rule(code: int, parameter: float, width: np.dtype) -> Rule:
    """The rule of a code for sums that are computed in a type."""
    tiny = width.type(np.finfo(width).tiny)
    return Rule(code, float(parameter), tiny, static(code in _LOGARITHMIC))


class Csr(NamedTuple):
    """The arrays of a CSR matrix with sorted indices."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    width: int


def pack_csr(rows: Any) -> Csr:
    """A CSR matrix as the loops take it."""
    data, indices, indptr = convert_for_loops(rows.data, rows.indices, rows.indptr)
    return Csr(data, indices, indptr, rows.shape[1])


@njit(**HELPER, fastmath=_FAST, inline="always")
def _log2(value):
    """log2 of a positive normal float64, to about two units in the last place.

    value = 2^e m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh(t), t = (m - 1)/(m + 1),
    |t| < 0.1716: the odd series to t^21 leaves less than 1e-17. No branch, no table, no call, so
    that a loop around it becomes vector code.
    """
    # The bits of a float, read as an integer: its exponent counts octaves.
    bits = np.float64(value).view(np.int64)
    shifted = bits + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    exponent = (shifted >> 52) - 1023
    m = np.int64(bits - (exponent << 52)).view(np.float64)
    t = (m - 1.0) / (m + 1.0)
    s = t * t
    series = 1.0 / 13 + s * (1.0 / 15 + s * (1.0 / 17 + s * (1.0 / 19 + s / 21)))
    series = 1.0 / 7 + s * (1.0 / 9 + s * (1.0 / 11 + s * series))
    series = 1.0 + s * (1.0 / 3 + s * (1.0 / 5 + s * series))
    return exponent + 2.0 * _LOG2_E * t * series


@njit(**HELPER, fastmath=_FAST, inline="always")
def _xlog2x(s):
    """s log2 s with 0 log 0 = 0."""
    return s * _log2(max(s, 2.2250738585072014e-308))


@njit(**HELPER, fastmath=_IN_ORDER, inline="never")
def _harmonic(x, y, tiny):
    """2xy/(x + y), where xy may leave the range of the numbers: not to be reassociated."""
    return (x + x) * (y / max(x + y, tiny))


@njit(**HELPER, fastmath=_IN_ORDER, inline="never")
def _contrast(x, y, tiny):
    """(x − y)²/(x + y), where the square may leave the range of the numbers."""
    return (x - y) * ((x - y) / max(x + y, tiny))


@njit(**HELPER, fastmath=_FAST, inline="always")
def _log_cauchy(difference, inverse):
    """log(1 + (δ/s)²); a square of δ or of s alone could leave the range."""
    ratio = difference * inverse
    return _LN2 * _log2(1 + ratio * ratio)


@njit(**HELPER, fastmath=_FAST)
def _pair_sum(rule, logarithmic, x, y):
    """Sum of the scalar rule over the features, in the precision of the rows or in float64.

    `logarithmic` is that of the rule, as an argument by itself: it decides what is compiled.
    """
    if len(logarithmic) == 1:
        # Rules whose terms cancel, or whose logarithm is taken in float64 anyway.
        total = 0.0
        if rule.code == JENSEN_SHANNON:
            # x/2 log2((x+y)/x) + y/2 log2((x+y)/y): the x log x parts are added per row outside.
            for d in range(x.size):
                total += _xlog2x(np.float64(x[d]) + np.float64(y[d]))
            return total / 2
        for d in range(x.size):
            total += _log_cauchy(np.float64(x[d]) - np.float64(y[d]), rule.parameter)
        return total
    total = 0.0 * x[0]
    if rule.code == CHI2:
        for d in range(x.size):
            total += _harmonic(x[d], y[d], rule.tiny)
    elif rule.code == MINIMUM:
        for d in range(x.size):
            total += min(x[d], y[d])
    elif rule.code == ABSOLUTE:
        for d in range(x.size):
            total += abs(x[d] - y[d])
    else:
        for d in range(x.size):
            total += _contrast(x[d], y[d], rule.tiny)
    return np.float64(total)


@njit(**HELPER, fastmath=_FAST, inline="always")
def _value(rule, x, y):
    """The scalar rule for one pair of float64."""
    if rule.code == CHI2:
        return _harmonic(x, y, rule.tiny)
    if rule.code == MINIMUM:
        return min(x, y)
    if rule.code == JENSEN_SHANNON:
        return 0.5 * (_xlog2x(x + y) - _xlog2x(x) - _xlog2x(y))
    if rule.code == ABSOLUTE:
        return abs(x - y)
    if rule.code == CHI2_DISTANCE:
        return _contrast(x, y, rule.tiny)
    return _log_cauchy(x - y, rule.parameter)


@njit(**HELPER, fastmath=_IN_ORDER, inline="never")
def _alone(rule, x):
    """c(x, 0) = c(0, x) of a rule from `FIRST_NONZERO` on."""
    if rule.code == LOG_CAUCHY:
        return _log_cauchy(x, rule.parameter)
    return abs(x)


@loop(fastmath=_FAST)
def dense_sums(rule, X, Y, terms, symmetric, out, begin, end):
    """out[i, j] = terms[0][i] + terms[1][j] + sum_d c(X[i, d], Y[j, d]) on tiles begin..end."""
    n, m, d = X.shape[0], Y.shape[0], X.shape[1]
    columns = -(-m // TILE)
    for job in range(begin, end):
        a, b = job // columns, job % columns
        if symmetric and b < a:
            continue
        for i in range(a * TILE, min(n, (a + 1) * TILE)):
            for j in range(max(b * TILE, i if symmetric else 0), min(m, (b + 1) * TILE)):
                total = 0.0
                for start in range(0, d, _CHUNK):
                    stop = min(d, start + _CHUNK)
                    total += _pair_sum(rule, rule.logarithmic, X[i, start:stop], Y[j, start:stop])
                out[i, j] = total + terms[0][i] + terms[1][j]
                if symmetric:
                    out[j, i] = out[i, j]


@loop(fastmath=_IN_ORDER)
def csr_terms(rule, x):
    """sum_d c(x_d, 0) of every CSR row."""
    out = np.zeros(len(x.indptr) - 1)
    if rule.code >= FIRST_NONZERO:
        for i in range(len(out)):
            for k in range(x.indptr[i], x.indptr[i + 1]):
                out[i] += _alone(rule, np.float64(x.data[k]))
    return out


@loop(fastmath=_IN_ORDER)
def csr_sums(rule, x, y, terms, symmetric, out, begin, end):
    """The same on CSR rows begin..end of X, touching stored values only.

    A row of X is scattered into a dense one, and the stored values of Y run past it. Values that
    meet no other are what is left of the sums over all of a row, `terms`: exactly nothing where
    there are none, since both sums run in the same order.
    """
    m = out.shape[1]
    mine = np.zeros(x.width, x.data.dtype)
    nonzero_at_zero = rule.code >= FIRST_NONZERO
    for i in range(begin, end):
        for k in range(x.indptr[i], x.indptr[i + 1]):
            mine[x.indices[k]] = x.data[k]
        for j in range(i if symmetric else 0, m):
            total, met_x, met_y = 0.0, 0.0, 0.0
            for k in range(y.indptr[j], y.indptr[j + 1]):
                x_value = np.float64(mine[y.indices[k]])
                if x_value != 0:
                    other = np.float64(y.data[k])
                    total += _value(rule, x_value, other)
                    if nonzero_at_zero:
                        met_x += _alone(rule, x_value)
                        met_y += _alone(rule, other)
            out[i, j] = total + ((terms[0][i] - met_x) + (terms[1][j] - met_y))
            if symmetric:
                out[j, i] = out[i, j]
        for k in range(x.indptr[i], x.indptr[i + 1]):
            mine[x.indices[k]] = 0
