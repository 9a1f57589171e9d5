"""Sizes of row blocks, which bound the temporary memory of every routine, and padded lengths."""

from __future__ import annotations

BLOCK_BYTES = 16 * 2**20
"""Bound on the temporaries of a call, beside input and output."""


def row_blocks(n: int, bytes_per_row: float, budget: int = BLOCK_BYTES) -> list[slice]:
    """Slices of 0..n whose temporaries stay within the budget (at least one row each)."""
    step = max(1, int(budget // max(1.0, bytes_per_row)))
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(0, int(n) - 1).bit_length()
