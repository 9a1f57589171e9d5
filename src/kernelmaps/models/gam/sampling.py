"""What a fit to a stream reads before its first pass: a sample of rows, and the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...data import Block, Source
from ...data.columns import Column
from ...data.sources import RowSample
from ...data.table_reader import ReadingNotes, TableReader
from ..inputs import missing_targets, real_targets
from ..losses import Loss
from ..rows.term_rows import SumOverChunks, fold_chunks
from .codebooks import SAMPLE_ROWS, LevelCounts


@dataclass(frozen=True)
class RowChecks:
    """Targets, weights and offsets of a chunk, checked.

    Attributes
    ----------
    owner : str
        Estimator, for messages.
    classes : ndarray or None
        Labels of a classifier: its targets are their codes.
    class_weight, total_weight : ndarray or None
        Factor of the weights of each class, and the sum of its weights over all rows.
    loss : Loss or None
        Of a regressor: it knows which targets it cannot have.
    location : float
        What is subtracted from the targets of a regressor; see `Loss.location`.
    """

    owner: str
    classes: np.ndarray | None = None
    class_weight: np.ndarray | None = None
    total_weight: np.ndarray | None = None
    loss: Loss | None = None
    location: float = 0.0

    def __call__(self, chunk: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        weight = self.weights(chunk)
        offset = np.zeros(len(weight))
        if chunk.exposure is not None:
            exposure = np.asarray(chunk.exposure, np.float64)
            good = np.isfinite(exposure) & (exposure > 0)
            if not good.all():
                raise ValueError(
                    f"{self.owner}: exposure must hold positive numbers, one for each row: "
                    f"{chunk.place(int(np.argmin(good)))}."
                )
            offset = np.log(exposure)
        y = self.targets(chunk)
        if self.classes is None:
            # One valid target more: whether some are positive is a question for all chunks.
            problem = self.loss and self.loss.target_error(np.append(y[weight > 0], 1.0))
            if problem:
                at = int(np.argmin(np.where(weight > 0, y, np.inf)))
                raise ValueError(f"{self.owner}: {problem}; found {y[at]:g}: {chunk.place(at)}.")
            return y - self.location, weight, offset
        codes = np.searchsorted(self.classes, y)
        if self.class_weight is not None:
            weight = weight * self.class_weight[codes]
        return codes.astype(np.float64), weight, offset

    def weights(self, chunk: Block) -> np.ndarray:
        """Weights of the rows as they were given."""
        if chunk.w is None:
            return np.ones(len(chunk))
        weight = np.asarray(chunk.w, np.float64)
        good = np.isfinite(weight) & (weight >= 0)
        if not good.all():
            raise ValueError(
                f"{self.owner}: sample_weight must hold finite numbers >= 0: "
                f"{chunk.place(int(np.argmin(good)))}."
            )
        return weight

    def targets(self, chunk: Block) -> np.ndarray:
        """Targets of the rows: numbers, or labels as they are."""
        where = f"{self.owner}, chunk {chunk.chunk}"
        if chunk.y is None:
            raise ValueError(
                f"{self.owner} requires y to be passed, but the target y is None: name the column "
                "of the target, pass an array, or chunks (X, y)."
            )
        y = np.asarray(chunk.y)
        if len(y) != len(chunk):
            raise ValueError(f"{where} has {len(chunk)} rows but {len(y)} targets.")
        return real_targets(y, self.owner, chunk.place) if self.classes is None else y


def rows_with_target(chunk: Block) -> Block:
    """A chunk without the rows whose target is missing."""
    y = chunk.y
    if y is None or np.ndim(y) != 1 or len(y) != len(chunk):
        return chunk
    missing = missing_targets(y)
    if not missing.any():
        return chunk
    return chunk.take(np.flatnonzero(~missing))


@dataclass(frozen=True)
class Sample:
    """Columns of some rows, and the chunks that they come from; whether these are all rows."""

    reader: TableReader
    columns: list[Column]
    chunks: list[Block]
    complete: bool


def take_sample(source: Source, owner: str, categorical: Any = None, terms: Any = None) -> Sample:
    """All rows if they are at most 200,000, else as many of them, from everywhere: one pass.

    How a column is read is learned from all of its rows (`TableReader.learn_and_read`).
    """
    chunks = fold_chunks(source, lambda chunk: chunk, RowSample(SAMPLE_ROWS)).shrink()
    n_rows = sum(map(len, chunks))
    if not n_rows:
        raise ValueError(f"{owner}: {source.describe()} has no rows.")
    chunks = [chunk for chunk in map(rows_with_target, chunks) if len(chunk)]
    if not chunks:
        raise ValueError(f"{owner}: the rows of {source.describe()} have no target.")

    def column(position: int) -> Iterator[Any]:
        return (rows_with_target(block).X for block in source.column(position))

    complete, tables = n_rows < SAMPLE_ROWS, [chunk.X for chunk in chunks]
    reader, columns = TableReader.learn_and_read(
        tables, owner, categorical, terms, None if complete else column
    )
    return Sample(reader, columns, chunks, complete)


def count_levels(
    source: Source, reader: TableReader, checks: RowChecks, columns: Sequence[int], frequency: bool
) -> dict[int, LevelCounts]:
    """Levels of some categories over all rows of a source, by column: one pass."""
    read = partial(_count_in_chunk, reader, checks, tuple(columns), frequency)
    return dict(zip(columns, fold_chunks(source, read, SumOverChunks(list)).total, strict=True))


def _count_in_chunk(
    reader: TableReader, checks: RowChecks, columns: Sequence[int], frequency: bool, chunk: Block
) -> list[LevelCounts]:
    chunk = rows_with_target(chunk)
    where, notes = f"{checks.owner}, chunk {chunk.chunk}", ReadingNotes(refuses=False)
    read, weight = reader.read(chunk.X, where, ordered=False, notes=notes), checks(chunk)[1]
    return [LevelCounts.of(read[j], weight, frequency) for j in columns]


def count_labels(source: Source, checks: RowChecks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All labels of a source in order, the number of rows that have them, and their weights."""
    sums = SumOverChunks(partial(_sum_by_label, checks))
    counts, weights = fold_chunks(source, rows_with_target, sums, source.labels()).total
    labels = np.array(sorted(counts))
    n_rows, weight = (np.array([c[label] for label in labels.tolist()]) for c in (counts, weights))
    return labels, n_rows, weight


def _sum_by_label(checks: RowChecks, chunk: Block) -> tuple[Counter, Counter]:
    distinct, codes = np.unique(checks.targets(chunk), return_inverse=True)
    counts, weights = (
        Counter(dict(zip(distinct.tolist(), np.bincount(codes, values).tolist(), strict=True)))
        for values in (None, checks.weights(chunk))
    )
    return counts, weights
