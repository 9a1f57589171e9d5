r"""Compiled fast Walsh-Hadamard transforms: H x in p log₂ p additions, without a matrix.

:math:`H_{2p} = \bigl(\begin{smallmatrix} H_p & H_p \\ H_p & -H_p \end{smallmatrix}\bigr)`, entries
±1, natural (Sylvester) order. The transform is written in constant geometry (Pease): every stage
reads neighbours and writes at a distance of a quarter of the length, so that all stages are one
long loop that vectorises, where the textbook form has many loops of length 1, 2, 4, … .

Where few outputs are wanted, H_p = H_{p/t} ⊗ H_t is used: the stages of H_{p/t} are loops of length
t and more, in place, and each wanted output is one sum of t neighbours with the signs of a row of
H_t, instead of log₂ t stages over all p.
"""

import numba as nb
import numpy as np

_FAST = {"contract"}


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _two_stages(a, b):
    m = a.size // 4
    for i in range(m):
        s, t = a[4 * i] + a[4 * i + 1], a[4 * i] - a[4 * i + 1]
        u, v = a[4 * i + 2] + a[4 * i + 3], a[4 * i + 2] - a[4 * i + 3]
        b[i] = s + u
        b[i + m] = t + v
        b[i + 2 * m] = s - u
        b[i + 3 * m] = t - v


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _one_stage(a, b):
    m = a.size // 2
    for i in range(m):
        b[i] = a[2 * i] + a[2 * i + 1]
        b[i + m] = a[2 * i] - a[2 * i + 1]


@nb.njit(cache=True, error_model="numpy")
def hadamard(a, b):
    """H a, which ends up in one of the two buffers: the result, then the free one."""
    done = 1
    while 4 * done <= a.size:
        _two_stages(a, b)
        a, b = b, a
        done *= 4
    if 2 * done == a.size:
        _one_stage(a, b)
        a, b = b, a
    return a, b


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _flip(x, signs, block, turn, a):
    for k in range(a.size):
        a[k] = x[k] * signs[block, turn, k]


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _gather(a, rows, gains, offset, out):
    for k in range(out.size):
        out[k] = a[np.uint64(rows[k] - offset)] * gains[k]


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _four(a, b, c, d):
    for i in range(a.size):
        s, t, u, v = a[i] + b[i], a[i] - b[i], c[i] + d[i], c[i] - d[i]
        a[i] = s + u
        b[i] = t + v
        c[i] = s - u
        d[i] = t - v


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _two(a, b):
    for i in range(a.size):
        a[i], b[i] = a[i] + b[i], a[i] - b[i]


@nb.njit(cache=True, error_model="numpy")
def far_stages(a, t):
    """(H_{p/t} ⊗ I_t) a, in place."""
    h = a.size
    while h >= 4 * t:
        q = h // 4
        for k in range(0, a.size, h):
            _four(
                a[k : k + q], a[k + q : k + 2 * q], a[k + 2 * q : k + 3 * q], a[k + 3 * q : k + h]
            )
        h = q
    if h == 2 * t:
        for k in range(0, a.size, h):
            _two(a[k : k + t], a[k + t : k + h])


@nb.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _signed_sum(a, start, patterns, row):
    total = a[start] * 0
    for j in range(patterns.shape[1]):
        total += a[start + j] * patterns[row, j]
    return total


@nb.njit(cache=True, error_model="numpy")
def _few_outputs(a, rows, gains, offset, patterns, out):
    """gains · (I ⊗ H_t) a at the wanted rows; `patterns` is H_t."""
    t = patterns.shape[1]
    for k in range(out.size):
        row = rows[k] - offset
        out[k] = gains[k] * _signed_sum(a, row // t * t, patterns, row % t)


@nb.njit(cache=True, error_model="numpy")
def _transform_row(x, signs, starts, rows, gains, patterns, a, b, i, out):
    """out[i, k] = gains[k] (H D_R ⋯ H D_1 x)[rows[k]], block after block of p outputs."""
    for block in range(signs.shape[0]):
        _flip(x, signs, block, 0, a)
        if patterns.size:
            j, k = starts[block], starts[block + 1]
            far_stages(a, patterns.shape[1])
            _few_outputs(a, rows[j:k], gains[j:k], block * a.size, patterns, out[i, j:k])
            continue
        a, b = hadamard(a, b)
        for turn in range(1, signs.shape[1]):
            _flip(a, signs, block, turn, a)
            a, b = hadamard(a, b)
        j, k = starts[block], starts[block + 1]
        _gather(a, rows[j:k], gains[j:k], block * a.size, out[i, j:k])


@nb.njit(cache=True, nogil=True, error_model="numpy")
def apply_dense(X, signs, starts, rows, gains, patterns, top, out):
    """Signed Hadamard transforms of dense rows, padded with zeros to the length of the signs.

    `patterns` is a small Hadamard matrix where few outputs of a single transform are wanted, and
    empty elsewhere.
    """
    x = np.zeros(signs.shape[2], out.dtype)
    a, b = np.empty_like(x), np.empty_like(x)
    for i in range(X.shape[0]):
        for k in range(X.shape[1]):
            x[k] = X[i, k]
        _transform_row(x, signs, starts, rows, gains, patterns, a, b, top + i, out)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def apply_csr(data, indices, indptr, signs, starts, rows, gains, patterns, top, out):
    """Likewise for CSR rows: one row is unpacked at a time."""
    x = np.zeros(signs.shape[2], out.dtype)
    a, b = np.empty_like(x), np.empty_like(x)
    for i in range(indptr.size - 1):
        for at in range(indptr[i], indptr[i + 1]):
            x[indices[at]] += data[at]
        _transform_row(x, signs, starts, rows, gains, patterns, a, b, top + i, out)
        for at in range(indptr[i], indptr[i + 1]):
            x[indices[at]] = 0
