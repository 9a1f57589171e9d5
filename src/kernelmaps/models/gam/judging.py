"""Rows that judge: a quarter of a table, held out while pairs are searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...hashing import mixed_bits

_SHARE = 4  # one row of so many is held out


def contents(codes: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """A number for each row that depends on its codes alone."""
    out = np.zeros(rows, np.uint64)
    for own in codes:
        out *= np.uint64(0x9E3779B97F4A7C15)
        out += own
    return out


def mostly_different(codes: Sequence[np.ndarray], rows: int) -> bool:
    """Whether most rows of a table differ from all others."""
    return 2 * len(np.unique(contents(codes, rows))) > rows


def held_out(codes: Sequence[np.ndarray], rows: int, by_content: bool) -> np.ndarray:
    """Which rows are held out.

    By their content, rows that occur twice, or have a weight of two, are on one side, whatever the
    order of the rows. By their place where few contents occur: a content that is held out as a
    whole says nothing about the others.
    """
    numbers = contents(codes, rows) if by_content else np.arange(rows)
    return mixed_bits(numbers) % np.uint64(_SHARE) == 0


@dataclass
class Gain:
    """How much lower the losses of rows are in one of two models: sums that merge."""

    sums: np.ndarray = field(default_factory=lambda: np.zeros(4))

    def add(self, lower: np.ndarray, weight: np.ndarray) -> None:
        """Add rows, by how much their losses are lower in the second model."""
        own = weight.sum(), weight @ weight, weight @ lower, weight @ lower**2
        self.sums = self.sums + np.array(own)

    @property
    def certainty(self) -> float:
        """Mean gain in standard errors; −∞ where losses are not finite or there are no rows."""
        total, squares, first, second = self.sums
        if not total > 0 or not np.isfinite(self.sums).all():
            return -np.inf
        mean = first / total
        error = np.sqrt(max(second / total - mean**2, 0.0) * squares) / total
        return float(mean / max(error, 1e-300))
