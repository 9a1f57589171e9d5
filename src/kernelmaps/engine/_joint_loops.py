r"""Compiled cosines in place, products of CSR rows with a dense matrix, and fast transforms.

The argument is reduced in turns: with t = x/2π + b and r = t − ⌊t + ½⌋ in [−½, ½],
cos 2πt = cos 2πr = −sin 2π(|r| − ¼), and on a half turn the sine is an odd polynomial (minimax:
5 terms reach 3.4e-9, 8 terms 9e-17). No branches and no tables, so that the loop vectorises; the
rounding of t costs about |x| ε, no more than the rounding of the matrix product before it. Angles
of `FAR` turns or more, where t has no digits left for r, and NaN are detected in the same pass.

The loops rely on relations that their callers make: rows and columns begin..end lie within `out`,
phases are as many as columns, and the columns of CSR rows are less than the rows of the matrix,
which is checked on entry.

**Fast Walsh-Hadamard transforms**: H x in p log₂ p additions, without a matrix.
:math:`H_{2p} = \bigl(\begin{smallmatrix} H_p & H_p \\ H_p & -H_p \end{smallmatrix}\bigr)`, entries
±1, natural (Sylvester) order. The transform is written in constant geometry (Pease): every stage
reads neighbours and writes at a distance of a quarter of the length, so that all stages are one
long loop that vectorises, where the textbook form has many loops of length 1, 2, 4, … . They rely
on the schema of projections (:func:`.linear.check_operator`): the length p of the signs is a power
of two and at least that of a row, `rows` ascend and are less than blocks × p, and `gains` are as
many.
"""

import math
from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numba.extending import overload

from .._util.compiling import HELPER, loop, njit

# Angles in turns: from these on, the type has too few digits for the fraction of a turn.
FAR = {np.dtype(np.float32): np.float32(2.0**17), np.dtype(np.float64): 2.0**46}
_FAST = {"contract", "nsz"}
_CONTRACT = {"contract"}  # of transforms
_INNER = HELPER | {"_nrt": False}  # nothing is allocated: no references are counted


class Tile(NamedTuple):
    """Rows top … bottom and columns left … right of an array.

    A view would hide from the compiler that columns are neighbours in memory.
    """

    top: int
    bottom: int
    left: int
    right: int


class Wave(NamedTuple):
    """Numbers of one precision; a quarter is among them, lest it widen the rest."""

    turn: Any
    scale: Any
    quarter: Any
    far: Any


def wave(scale: float, dtype: np.dtype) -> Wave:
    """Cosines of that height, of angles in radians."""
    real = dtype.type
    return Wave(real(1 / (2 * np.pi)), real(scale), real(0.25), FAR[dtype])


def cosine(t):
    """cos 2πt in the precision of t."""
    return math.cos(2 * math.pi * t)


@overload(cosine, inline="always")
def _compiled_cosine(t):
    f = np.float32

    def single(t):
        s = abs(t - np.floor(t + f(0.5))) - f(0.25)
        v = s * s
        poly = f(-76.549782387613466) + v * f(39.536706762014836)
        poly = f(-41.341655031479419) + v * (f(81.601004077356553) + v * poly)
        return -s * (f(6.2831851600897227) + v * poly)

    def double(t):
        s = abs(t - np.floor(t + 0.5)) - 0.25
        v = s * s
        poly = 3.8169974295671560615 + v * -0.69093588762802366194
        poly = 42.058688305395575059 + v * (-15.094471616749452933 + v * poly)
        poly = 81.605249275026291884 + v * (-76.705859647469673123 + v * poly)
        return -s * (6.2831853071795803916 + v * (-41.341702240395082638 + v * poly))

    return single if t == nb.float32 else double


@njit(**HELPER, fastmath=_FAST)
def _row_cosines(z, turns, wave):
    beyond = False  # or'd, not counted: counts of 64 bits would take half of the loop
    for k in range(z.size):
        t = z[k] * wave.turn + turns[k]
        beyond |= not abs(t) < wave.far
        z[k] = wave.scale * cosine(t)
    return beyond


@loop()
def cosines(out, piece, turns, wave):
    """z ← scale · cos 2π(z·turn + turns) for a piece of `out`; all arguments of one precision.

    Returns whether an angle was of `far` turns or more.
    """
    beyond, left, right = False, piece.left, piece.right
    for i in range(piece.top, piece.bottom):
        beyond |= _row_cosines(out[i, left:right], turns[left:right], wave)
    return beyond


@njit(**HELPER, fastmath=_FAST)
def _row_pairs(z, w, wave):
    beyond = False
    for k in range(z.size):
        t = z[k] * wave.turn
        beyond |= not abs(t) < wave.far
        z[k] = wave.scale * cosine(t)
        w[k] = wave.scale * cosine(t - wave.quarter)
    return beyond


@loop()
def pairs(out, piece, half, wave):
    """z → scale · cos z in place, and scale · sin z = scale · cos(z − ¼ turn) `half` columns on.

    All numbers in the precision of `out`; returns whether an angle was of `far` turns or more.
    """
    beyond, left, right = False, piece.left, piece.right
    for i in range(piece.top, piece.bottom):
        z, w = out[i, left:right], out[i, left + half : right + half]
        beyond |= _row_pairs(z, w, wave)
    return beyond


@njit(**HELPER, fastmath=_FAST)
def _csr_row(data, indices, start, stop, W, z):
    """Four entries at a time: a quarter of the reads and writes of the sum."""
    for k in range(z.size):
        z[k] = 0
    t = start
    while t + 4 <= stop:
        j0, j1 = np.uint64(indices[t]), np.uint64(indices[t + 1])
        j2, j3 = np.uint64(indices[t + 2]), np.uint64(indices[t + 3])
        a0, a1, a2, a3 = data[t], data[t + 1], data[t + 2], data[t + 3]
        for k in range(z.size):
            z[k] += a0 * W[j0, k] + a1 * W[j1, k] + (a2 * W[j2, k] + a3 * W[j3, k])
        t += 4
    while t < stop:
        j0, a0 = np.uint64(indices[t]), data[t]
        for k in range(z.size):
            z[k] += a0 * W[j0, k]
        t += 1


@loop()
def csr_product(data, indices, indptr, W, top, left, out):
    """X W for CSR rows X, into `out` from row `top` and column `left` on."""
    for i in range(indptr.size - 1):
        z = out[top + i, left : left + W.shape[1]]
        _csr_row(data, indices, indptr[i], indptr[i + 1], W, z)


class Transform(NamedTuple):
    """Signed transforms in blocks of length p, and which of their entries are the outputs."""

    signs: np.ndarray  # [block, turn, p]
    starts: np.ndarray  # first output of each block, and the number of all
    rows: np.ndarray  # entry of the transforms, for each output
    gains: np.ndarray


@njit(**_INNER, fastmath=_CONTRACT)
def _two_stages(a, b):
    m = a.size // 4
    for i in range(m):
        s, t = a[4 * i] + a[4 * i + 1], a[4 * i] - a[4 * i + 1]
        u, v = a[4 * i + 2] + a[4 * i + 3], a[4 * i + 2] - a[4 * i + 3]
        b[i] = s + u
        b[i + m] = t + v
        b[i + 2 * m] = s - u
        b[i + 3 * m] = t - v


@njit(**_INNER, fastmath=_CONTRACT)
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


@njit(**_INNER, fastmath=_CONTRACT)
def _flip(x, signs, block, turn, a):
    """Signs on x, and zeros behind it."""
    for k in range(x.size):
        a[k] = x[k] * signs[block, turn, k]
    for k in range(x.size, a.size):
        a[k] = 0


@njit(**_INNER, fastmath=_CONTRACT)
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


def make_workspace(transform, dtype):
    """Memory of one thread: two buffers."""
    return np.zeros((2, transform.signs.shape[2]), dtype)


@loop(_nrt=False)
def transform_rows(X, transform, workspace, top, out):
    """Signed Hadamard transforms of dense rows, padded with zeros to the length of the signs."""
    for i in range(X.shape[0]):
        _transform_row(X[i], transform, workspace, top + i, out)
