"""Sizes of row blocks, which bound the temporary memory of every routine; positions; lengths."""

from __future__ import annotations

import numpy as np

BLOCK_BYTES = 16 * 2**20
"""Bound on the temporaries of a call, beside input and output."""


def row_blocks(n: int, bytes_per_row: float, budget: int = BLOCK_BYTES) -> list[slice]:
    """Slices of 0..n whose temporaries stay within the budget (at least one row each)."""
    step = max(1, int(budget // max(1.0, bytes_per_row)))
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


def evenly_spaced(n: int, most: int) -> np.ndarray:
    """At most `most` of the positions 0 … n − 1, the first and the last among them."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(0, int(n) - 1).bit_length()
