"""Compiled sums over features, sum_d c(x_d, y_d), for dense and CSR rows.

A kernel reaches these loops as an integer `code` that picks a scalar rule and a number `p` that
parametrises it; nothing else distinguishes one kernel from another here.
"""

import numba as nb
import numpy as np

from ..bits import log2

CHI2, MINIMUM, JENSEN_SHANNON, ABSOLUTE, LOG_CAUCHY = range(5)

_FAST = {"reassoc", "nsz", "arcp", "contract"}  # not nnan/ninf: a NaN must stay visible
_LN2 = 0.6931471805599453
_CHUNK = 512  # features summed in the input's precision before joining a float64 total


@nb.njit(cache=True, fastmath=_FAST, inline="always")
def _xlog2x(s, tiny):
    """s log2 s with 0 log 0 = 0."""
    return s * log2(max(s, tiny))


@nb.njit(cache=True, fastmath={"contract", "nsz"}, error_model="numpy", inline="never")
def _harmonic(x, y, tiny):
    """2xy/(x + y), where xy may leave the range of the numbers: not to be reassociated."""
    return (x + x) * (y / max(x + y, tiny))


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _pair_sum(code, x, y, p, tiny):
    """Sum of the scalar rule over the features, in the precision of the rows."""
    total = 0.0 * x[0]
    two = x.dtype.type(2)
    if code == CHI2:
        for d in range(x.size):
            total += _harmonic(x[d], y[d], tiny)
    elif code == MINIMUM:
        for d in range(x.size):
            total += min(x[d], y[d])
    elif code == JENSEN_SHANNON:
        # x/2 log2((x+y)/x) + y/2 log2((x+y)/y): the x log x parts are added per row outside.
        for d in range(x.size):
            total += _xlog2x(x[d] + y[d], tiny)
        total /= two
    elif code == ABSOLUTE:
        for d in range(x.size):
            total += abs(x[d] - y[d])
    else:
        for d in range(x.size):
            total += _LN2 * log2(1 + (x[d] - y[d]) * (x[d] - y[d]) * p)
    return total


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy", inline="always")
def _rule(code, x, y, p, tiny):
    """The scalar rule for one pair; on sparse rows, less its values where one side is zero."""
    if code == CHI2:
        return _harmonic(x, y, tiny)
    if code == MINIMUM:
        return min(x, y)
    if code == JENSEN_SHANNON:
        return 0.5 * (_xlog2x(x + y, tiny) - _xlog2x(x, tiny) - _xlog2x(y, tiny))
    if code == ABSOLUTE:
        return abs(x - y) - abs(x) - abs(y)
    q = (x - y) * (x - y) * p
    return _LN2 * (log2(1 + q) - log2(1 + x * x * p) - log2(1 + y * y * p))


@nb.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def dense_sums(code, p, X, Y, row_x, row_y, symmetric, tile, tiny, out, begin, end):
    """out[i, j] = row_x[i] + row_y[j] + sum_d c(X[i, d], Y[j, d]) on tiles begin..end."""
    n, m, d = X.shape[0], Y.shape[0], X.shape[1]
    columns = -(-m // tile)
    for job in range(begin, end):
        a, b = job // columns, job % columns
        if symmetric and b < a:
            continue
        for i in range(a * tile, min(n, (a + 1) * tile)):
            for j in range(max(b * tile, i if symmetric else 0), min(m, (b + 1) * tile)):
                total = 0.0
                for start in range(0, d, _CHUNK):
                    stop = min(d, start + _CHUNK)
                    total += _pair_sum(code, X[i, start:stop], Y[j, start:stop], p, tiny)
                out[i, j] = total + row_x[i] + row_y[j]
                if symmetric:
                    out[j, i] = out[i, j]


@nb.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def csr_sums(
    code, p, x_data, x_col, x_ptr, y_data, y_col, y_ptr, row_x, row_y, d, symmetric, tiny, out,
    begin, end,
):  # fmt: skip
    """The same on CSR rows begin..end of X, touching stored values only.

    A row of X is scattered into a dense one, and the stored values of Y run past it; `row_x` and
    `row_y` carry what the zeros contribute.
    """
    m = out.shape[1]
    mine = np.zeros(d, x_data.dtype)
    for i in range(begin, end):
        for k in range(x_ptr[i], x_ptr[i + 1]):
            mine[x_col[k]] = x_data[k]
        for j in range(i if symmetric else 0, m):
            total = 0.0
            for k in range(y_ptr[j], y_ptr[j + 1]):
                x = mine[y_col[k]]
                if x != 0:
                    total += _rule(code, x, y_data[k], p, tiny)
            out[i, j] = total + row_x[i] + row_y[j]
            if symmetric:
                out[j, i] = out[i, j]
        for k in range(x_ptr[i], x_ptr[i + 1]):
            mine[x_col[k]] = 0
