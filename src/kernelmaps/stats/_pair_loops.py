"""Compiled sums over codes and over pairs of codes."""

from __future__ import annotations

import numpy as np

from .._util.compiling import loop


@loop()
def add_pairs(first: np.ndarray, second: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """out[p, v, first[p, i], second[p, i]] += values[v, i], for pairs p of columns."""
    for p in range(first.shape[0]):
        a, b = first[p], second[p]
        for v in range(values.shape[0]):
            table, of_rows = out[p, v], values[v]
            for i in range(a.size):
                table[a[i], b[i]] += of_rows[i]


@loop()
def add_rows(
    first: np.ndarray, second: np.ndarray, weight: np.ndarray, basis: np.ndarray, out: np.ndarray
) -> None:
    """out[first[i]] += weight[i] · basis[second[i]]: a pair table times a basis, at once."""
    width = basis.shape[1]
    for i in range(first.size):
        row, other, w = first[i], second[i], weight[i]
        for c in range(width):
            out[row, c] += w * basis[other, c]


@loop()
def add_codes(codes: np.ndarray, values: np.ndarray, first: np.ndarray, out: np.ndarray) -> None:
    """out[first[j] + codes[j, i]] += values[i]: sums over the codes of several terms."""
    for j in range(codes.shape[0]):
        sums = out[first[j] :]
        for i in range(codes.shape[1]):
            sums[codes[j, i]] += values[i]


@loop()
def gather_codes(codes: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """out[i] += values[codes[i]]."""
    for i in range(codes.size):
        out[i] += values[codes[i]]
