"""Codes of rows: the bin of every value as an integer, or bin and position in fixed point.

A code is the bin b, or the position b + u in units of 2^−bits for maps that interpolate. A value
that is NaN or outside [least, most] of its feature is coded as the nearest end (NaN: anything),
and reported: a pass of its own over the data would cost as much as the encoding.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
from numba.extending import overload

from ..simd import (
    as_floats,
    item,
    outside,
    parameter,
    plus_share,
    prefetch,
    rounded,
    store_codes,
)
from .entry import INNER, entry
from .locate import even_position, load_values, uneven_position
from .stored import AFFINE

BLOCK = 32  # rows that a tile of tables is used for at a time


class Frame(NamedTuple):
    """What is asked for: codes of how many bits behind the point, of values in which range."""

    width: int  # features
    bits: int
    least: np.ndarray  # by feature, padded to whole vectors
    most: np.ndarray
    room: np.ndarray  # for a vector of codes: memory of one thread
    tile: int  # features whose tables are used together


@nb.njit(**INNER)
def _code(bins, frame, x, j, across):
    """Codes as 32-bit integers, and whether a value was outside its range."""
    value = as_floats(x, bins.number)
    least, most = parameter(frame.least, j, x, across), parameter(frame.most, j, x, across)
    return position_code(bins, frame, value, j, across), outside(value, least, most)


def position_code(bins, frame, x, j, across):
    """Bin and position of a value in fixed point."""
    raise NotImplementedError("position_code is for compiled loops")


@overload(position_code, jit_options=INNER)
def _position_code(bins, frame, x, j, across):
    kind = len(bins.types[bins.fields.index("kind")])
    return _even_code if kind == AFFINE else _uneven_code


def _even_code(bins, frame, x, j, across):
    t = even_position(bins, x, j, across)
    half = 0.5 if len(bins.placed) else 0.0
    return rounded(t, np.float64(np.int64(1) << frame.bits), half, frame.room)


def _uneven_code(bins, frame, x, j, across):
    b, u = uneven_position(bins, x, j, across)
    if len(bins.placed):
        return plus_share(b, u, frame.bits, bins.number.dtype.type(0.5))
    return b


@nb.njit(**INNER)
def _row(bins, frame, x, rows, part, lanes, out):
    """Codes of features begin..end of a row; whether a value was outside its range.

    The second of the `rows` is one that will be needed: its values are asked for on the way.
    """
    begin, end = part
    at, ahead, n, wrong = rows[0] * frame.width, rows[1] * frame.width, end - begin, False
    for start in range(begin, end, len(lanes)):
        # The last vector overlaps the one before, if there is one.
        j = start if start <= end - len(lanes) else max(end - len(lanes), begin)
        prefetch(x, ahead + j)
        code, stray = _code(bins, frame, load_values(x, at + j, n, lanes), j, (0,))
        wrong |= stray
        if n >= len(lanes):
            store_codes(out, at + j, code)
        else:
            store_codes(frame.room, 0, code)
            for k in range(n):
                out[at + j + k] = frame.room[k]
    return wrong


@entry()
def encode_dense(bins, frame, x, lanes, begin, end, out):
    """Codes of dense rows begin..end (flat); returns whether a value was outside its range.

    Features in tiles whose tables stay in the nearest cache for a block of rows. The next block is
    asked for meanwhile, since no hardware guesses the order of tiles.
    """
    d, tile, wrong = frame.width, frame.tile, False
    for top in range(begin, end, BLOCK):
        bottom = top + BLOCK if top + BLOCK < end else end
        left = 0
        while left < d:
            right = left + tile if left + tile + len(lanes) <= d else d
            for i in range(top, bottom):
                ahead = i + BLOCK if i + BLOCK < end else end - 1
                wrong |= _row(bins, frame, x, (i, ahead), (left, right), lanes, out)
            left = right
    return wrong


@entry()
def encode_stored(bins, frame, rows, begin, end, out):
    """Codes of the stored values begin..end of CSR rows; whether one was outside its range."""
    wrong = False
    for k in range(begin, end):
        feature = np.int64(item(rows.indices, k))
        code, stray = _code(bins, frame, item(rows.data, k), feature, ())
        out[k] = code
        wrong |= stray
    return wrong
