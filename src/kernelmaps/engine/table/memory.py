"""Arrays that suit vectors: padded to whole ones, and beginning on a cache line."""

from __future__ import annotations

from typing import Any

import numpy as np

LANES = 16  # features in the longest vector: arrays by feature are padded to whole ones
_LINE = 64  # bytes of a cache line: a vector that straddles two is loaded twice


def aligned(size: int, dtype: Any) -> np.ndarray:
    """Zeros that begin on a cache line."""
    n_bytes = size * np.dtype(dtype).itemsize
    raw = np.zeros(n_bytes + _LINE, np.uint8)
    begin = -raw.__array_interface__["data"][0] % _LINE
    return raw[begin : begin + n_bytes].view(dtype)


def by_vector(array: np.ndarray) -> np.ndarray:
    """Numbers by feature, the last one repeated to fill a vector."""
    out = aligned(len(array) + -len(array) % LANES, array.dtype)
    out[: len(array)] = array
    out[len(array) :] = array[-1:]
    return out
