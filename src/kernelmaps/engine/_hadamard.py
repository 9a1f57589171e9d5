r"""Compiled fast Walsh-Hadamard transforms: H x in p log₂ p additions, without a matrix.

:math:`H_{2p} = \bigl(\begin{smallmatrix} H_p & H_p \\ H_p & -H_p \end{smallmatrix}\bigr)`, entries
±1, natural (Sylvester) order. The transform is written in constant geometry (Pease): every stage
reads neighbours and writes at a distance of a quarter of the length, so that all stages are one
long loop that vectorises, where the textbook form has many loops of length 1, 2, 4, … .

The loops rely on the schema of projections (:func:`.linear.check_operator`): the length p of the
signs is a power of two and at least that of a row, `rows` ascend and are less than blocks × p, and
`gains` are as many; the columns of CSR rows are checked on entry.
"""

from typing import NamedTuple

import numpy as np

from .._util.compiling import HELPER, loop, njit

_FAST = {"contract"}
_INNER = HELPER | {"_nrt": False}  # nothing is allocated: no references are counted


class Transform(NamedTuple):
    """Signed transforms in blocks of length p, and which of their entries are the outputs."""

    signs: np.ndarray  # [block, turn, p]
    starts: np.ndarray  # first output of each block, and the number of all
    rows: np.ndarray  # entry of the transforms, for each output
    gains: np.ndarray


@njit(**_INNER, fastmath=_FAST)
def _two_stages(a, b):
    m = a.size // 4
    for i in range(m):
        s, t = a[4 * i] + a[4 * i + 1], a[4 * i] - a[4 * i + 1]
        u, v = a[4 * i + 2] + a[4 * i + 3], a[4 * i + 2] - a[4 * i + 3]
        b[i] = s + u
        b[i + m] = t + v
        b[i + 2 * m] = s - u
        b[i + 3 * m] = t - v


@njit(**_INNER, fastmath=_FAST)
def _one_stage(a, b):
    m = a.size // 2
    for i in range(m):
        b[i] = a[2 * i] + a[2 * i + 1]
        b[i + m] = a[2 * i] - a[2 * i + 1]


@njit(**_INNER)
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


@njit(**_INNER, fastmath=_FAST)
def _flip(x, signs, block, turn, a):
    """Signs on x, and zeros behind it."""
    for k in range(x.size):
        a[k] = x[k] * signs[block, turn, k]
    for k in range(x.size, a.size):
        a[k] = 0


@njit(**_INNER, fastmath=_FAST)
def _gather(a, rows, gains, offset, out):
    for k in range(out.size):
        out[k] = a[np.uint64(rows[k] - offset)] * gains[k]


@njit(**_INNER)
def _transform_row(x, transform, workspace, i, out):
    """out[i, k] = gains[k] (H D_R ⋯ H D_1 x)[rows[k]], block after block of p outputs."""
    signs, starts, rows, gains = transform.signs, transform.starts, transform.rows, transform.gains
    a, b = workspace[0], workspace[1]
    for block in range(signs.shape[0]):
        _flip(x, signs, block, 0, a)
        a, b = hadamard(a, b)
        for turn in range(1, signs.shape[1]):
            _flip(a, signs, block, turn, a)
            a, b = hadamard(a, b)
        j, k = starts[block], starts[block + 1]
        _gather(a, rows[j:k], gains[j:k], block * a.size, out[i, j:k])


def workspace_for(transform, dtype):
    """Memory of one thread: two buffers, and zeros for a row that is unpacked."""
    return np.zeros((3, transform.signs.shape[2]), dtype)


@loop(_nrt=False)
def apply_dense(X, transform, workspace, top, out):
    """Signed Hadamard transforms of dense rows, padded with zeros to the length of the signs."""
    for i in range(X.shape[0]):
        _transform_row(X[i], transform, workspace, top + i, out)


@loop(_nrt=False)
def apply_csr(data, indices, indptr, transform, workspace, top, out):
    """Likewise for CSR rows: one row is unpacked at a time."""
    x = workspace[2]
    for i in range(indptr.size - 1):
        for at in range(indptr[i], indptr[i + 1]):
            x[indices[at]] += data[at]
        _transform_row(x, transform, workspace, top + i, out)
        for at in range(indptr[i], indptr[i + 1]):
            x[indices[at]] = 0
