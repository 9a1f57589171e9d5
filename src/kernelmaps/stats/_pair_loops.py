"""Compiled sums over codes and over pairs of codes."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def add_single(codes: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
    """out[codes[i]] += weight[i]."""
    for i in range(codes.size):
        out[codes[i]] += weight[i]


@numba.njit(cache=True, nogil=True)
def add_pair(first: np.ndarray, second: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
    """out[first[i], second[i]] += weight[i]."""
    for i in range(first.size):
        out[first[i], second[i]] += weight[i]


@numba.njit(cache=True, nogil=True)
def add_rows(
    first: np.ndarray, second: np.ndarray, weight: np.ndarray, basis: np.ndarray, out: np.ndarray
) -> None:
    """out[first[i]] += weight[i] · basis[second[i]]: a pair table times a basis, at once."""
    width = basis.shape[1]
    for i in range(first.size):
        own, other, w = first[i], second[i], weight[i]
        for c in range(width):
            out[own, c] += w * basis[other, c]


@numba.njit(cache=True, nogil=True)
def add_scaled(first: np.ndarray, weights: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """out[first[a] + i] += weights[a, i] · table[a]: a band matrix times a table."""
    for a in range(first.size):
        for i in range(weights.shape[1]):
            own, w = first[a] + i, weights[a, i]
            if w != 0.0:
                for c in range(table.shape[1]):
                    out[own, c] += w * table[a, c]


@numba.njit(cache=True, nogil=True)
def gather(codes: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """out[i] += values[codes[i]]."""
    for i in range(codes.size):
        out[i] += values[codes[i]]


@numba.njit(cache=True, nogil=True)
def scaled_rows(codes: np.ndarray, scale: np.ndarray, basis: np.ndarray, out: np.ndarray) -> None:
    """out[i] = scale[i] · basis[codes[i]]."""
    width = basis.shape[1]
    for i in range(codes.size):
        own, factor = codes[i], scale[i]
        for c in range(width):
            out[i, c] = factor * basis[own, c]
