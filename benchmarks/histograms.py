"""Real histograms for reproductions: spatial pyramids of visual words, L1-normalised."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from .datasets import load as load_dataset

GRIDS = {"scene15_bow": (4, 200), "caltech101_bow": (2, 300)}  # cells per side, words


def pyramid(counts: Any, side: int, words: int) -> sparse.csr_matrix:
    """Counts of all levels side by side: cells of side × side, then sums of 2 × 2 of them, …"""
    levels = [sparse.csr_matrix(counts, dtype=np.float64)]
    while side > 1:
        column = np.arange(side * side * words)
        row, col, word = column // words // side, column // words % side, column % words
        parent = (row // 2 * (side // 2) + col // 2) * words + word
        merge = sparse.csr_matrix((np.ones(len(column)), (column, parent)))
        levels.append(levels[-1] @ merge)
        side //= 2
    return sparse.hstack(levels, format="csr")


def load(name: str, folder: str | None) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Training rows and labels, test rows and labels; every row sums to one."""
    data = load_dataset(name, folder=folder)
    if name == "digits":
        return data.X_train, data.y_train, data.X_test, data.y_test
    parts = (data.X_train, data.X_test)
    if name in GRIDS:
        parts = tuple(pyramid(part, *GRIDS[name]) for part in parts)
    train, test = (normalize(sparse.csr_matrix(p, dtype=np.float64), "l1") for p in parts)
    return train, data.y_train, test, data.y_test
