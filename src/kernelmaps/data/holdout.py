"""Rows that are held out to score a model: one in five, chosen by the row's number alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..hashing import mixed_bits
from .sources import Block, Source, values_at

ONE_IN = 5


def held_out(start: int, n: int) -> np.ndarray:
    """Whether rows `start` to `start + n` are held out.

    The choice depends on the row's number alone: the same for a table in memory and for a file read
    in blocks, and unrelated to the order of the rows. The upper bits are taken because the lower
    ones choose the folds of a cross-validation.
    """
    bits = mixed_bits(np.arange(start, start + n)) >> np.uint64(32)
    return bits % np.uint64(ONE_IN) == 0


class PartOfSource(Source):
    """The rows of a source that are held out, or those that are not."""

    def __init__(self, source: Source, *, held: bool) -> None:
        self.source, self.held = source, held
        self.n_features = source.n_features

    def describe(self) -> str:
        part = "one in five rows" if self.held else "four in five rows"
        return f"{part} of {self.source.describe()}"

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        start = 0
        for number, block in enumerate(self.source.blocks(block_rows)):
            taken = np.flatnonzero(held_out(block.start, len(block)) == self.held)
            if number >= skip and len(taken):
                y, w = (values_at(values, taken) for values in (block.y, block.w))
                yield replace(block, X=block.X[taken], y=y, w=w, start=start)
            start += len(taken)

    def sample(self, rows: int) -> Block | None:
        """Rows of the whole: a map that is fitted on them learns ranges, and no targets."""
        return self.source.sample(rows)
