"""Hold-out selection: a quarter of the rows decides which pairs of columns a model keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...hashing import mixed_bits

HELD_OUT = 4  # one row in four is held out


def row_hashes(codes: Sequence[np.ndarray], n_rows: int) -> np.ndarray:
    """A number for each row that depends on its codes alone."""
    hashes = np.zeros(n_rows, np.uint64)
    for column in codes:
        hashes *= np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio: Fibonacci hashing
        hashes += column
    return hashes


def mostly_distinct(codes: Sequence[np.ndarray], n_rows: int) -> bool:
    """Whether more than half of the rows have different codes."""
    return 2 * len(np.unique(row_hashes(codes, n_rows))) > n_rows


def held_out_mask(codes: Sequence[np.ndarray], n_rows: int, by_content: bool) -> np.ndarray:
    """Which rows are held out.

    By their content, copies of a row are on the same side, as a row with a weight of two is,
    whatever the order of the rows. By their position if few contents occur: a content that is held
    out completely says nothing about the others.
    """
    numbers = row_hashes(codes, n_rows) if by_content else np.arange(n_rows)
    return mixed_bits(numbers) % np.uint64(HELD_OUT) == 0


@dataclass
class HeldOutGain:
    """How much lower the held-out losses of one model are than those of another.

    `sums` are Σc, Σc², Σcg and Σcg² of the sample weights c and the gains g of rows: they merge.
    """

    sums: np.ndarray = field(default_factory=lambda: np.zeros(4))

    @classmethod
    def of(cls, gain: np.ndarray, weight: np.ndarray) -> HeldOutGain:
        """Of rows, by how much their losses are lower in the second model."""
        return cls(np.array([weight.sum(), weight @ weight, weight @ gain, weight @ gain**2]))

    def __add__(self, other: HeldOutGain) -> HeldOutGain:
        return HeldOutGain(self.sums + other.sums)

    @property
    def z_score(self) -> float:
        """Mean gain in standard errors; −∞ if losses are not finite or there are no rows."""
        total, squares, first, second = self.sums
        if not total > 0 or not np.isfinite(self.sums).all():
            return -np.inf
        mean = first / total
        error = np.sqrt(max(second / total - mean**2, 0.0) * squares) / total
        return float(mean / max(error, 1e-300))
