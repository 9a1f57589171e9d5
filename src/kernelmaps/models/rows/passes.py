"""Passes over the chunks of a source: each adds up what is computed from every chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..._util.threads import interruptible
from ...data import Block, Source
from ...data.dask import DaskSource, source_of_partition

CHUNK_ROWS = 1 << 18  # rows read at a time: tens of MB for ordinary tables


@dataclass
class SumOverChunks:
    """The sum of a function's results over chunks, which are lists, tuples or things that add."""

    function: Callable[[Any], Any]
    total: Any = None

    def zero(self) -> SumOverChunks:
        return SumOverChunks(self.function)

    def update(self, chunk: Any) -> None:
        self._add(self.function(chunk))

    def merge(self, other: SumOverChunks) -> SumOverChunks:
        self._add(other.total)
        return self

    def _add(self, term: Any) -> None:
        if term is not None:  # None: the sum of a partition without rows
            self.total = term if self.total is None else _sum(self.total, term)


def _sum(first: Any, second: Any) -> Any:
    """Add two results, lists and tuples of them entry by entry."""
    if isinstance(first, list | tuple):
        return type(first)(_sum(a, b) for a, b in zip(first, second, strict=True))
    return first + second


def fold_chunks(
    source: Source, read: Callable[[Block], Any], stats: Any,
    chunks: Iterable[Block] | None = None,
) -> Any:  # fmt: skip
    """Update statistics with what `read` makes of each chunk of a source: one pass."""
    if isinstance(source, DaskSource):
        return stats.merge(source.merge_parts(_fold_partition, stats.zero(), read))
    for chunk in source.blocks(CHUNK_ROWS) if chunks is None else chunks:
        interruptible(lambda chunk=chunk: stats.update(read(chunk)))
    return stats


def _fold_partition(number: int, partition: Any, zero: Any, read: Callable[[Block], Any]) -> Any:
    stats = zero.zero()
    for chunk in source_of_partition(partition, chunk=number, frames=True).blocks(CHUNK_ROWS):
        stats.update(read(chunk))
    return stats
