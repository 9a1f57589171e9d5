"""Compiled sums over codes and over pairs of codes."""

from __future__ import annotations

import numpy as np

from .._util.compiling import loop


@loop()
def add_pairs(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """out[p, v, rows[p, i], columns[p, i]] += values[v, i], for pairs p of columns."""
    for p in range(rows.shape[0]):
        a, b = rows[p], columns[p]
        for v in range(values.shape[0]):
            table, numbers = out[p, v], values[v]
            for i in range(a.size):
                table[a[i], b[i]] += numbers[i]


@loop()
def add_rows(
    rows: np.ndarray, columns: np.ndarray, weight: np.ndarray, basis: np.ndarray, out: np.ndarray
) -> None:
    """out[rows[i]] += weight[i] · basis[columns[i]]: a pair table times a basis, at once."""
    width = basis.shape[1]
    for i in range(rows.size):
        row, other, w = rows[i], columns[i], weight[i]
        for c in range(width):
            out[row, c] += w * basis[other, c]


@loop()
def add_codes(codes: np.ndarray, values: np.ndarray, starts: np.ndarray, out: np.ndarray) -> None:
    """out[starts[j] + codes[j, i]] += values[i]: sums over the codes of several terms."""
    for j in range(codes.shape[0]):
        sums = out[starts[j] :]
        for i in range(codes.shape[1]):
            sums[codes[j, i]] += values[i]


@loop()
def gather_codes(codes: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """out[i] += values[codes[i]]."""
    for i in range(codes.size):
        out[i] += values[codes[i]]
