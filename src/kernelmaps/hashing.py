"""Hashes of row numbers, independent of the order of the rows."""

from __future__ import annotations

import numpy as np


def mixed_bits(numbers: np.ndarray) -> np.ndarray:
    """Mix each whole number into 64 bits with the finaliser of SplitMix64.

    The result depends on the number alone, so that a choice made by it (a fold, a sample) is the
    same for any chunks, threads or workers, and rows that repeat with a period are chosen evenly.
    """
    z = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
