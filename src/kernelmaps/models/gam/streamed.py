"""Rows of a table that are read anew for every pass: from files, chunks and Dask.

What a fit asks of its rows are sums over them, so that each question is one pass: the chunks are
read, coded and added up, and nothing of them is kept. Sums merge, which is how Dask's partitions
come together. In all there are

1. the sample: up to 200,000 rows, from which the codes of the columns are found. Classifiers also
   read the column of labels;
2. one pass for the weights of the codes, and, for squared loss, of all pairs of codes: then nothing
   more is needed, whatever the strengths;
3. for other losses one pass a Newton step, and for pairs one to rank them and one to fit them in
   each of the goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from ...data import Block, Source
from ...data.dask import source_of_partition
from ...data.frames import read_columns
from ...stats import CodeSums
from ...stats.folding import sum_on_dask
from ...threads import interruptible
from ..losses import Loss, Squared
from .codebooks import Codebook, encode_columns
from .held import HeldRows, Pair, Part, Tables, Tally, some_functions
from .judging import Gain, mostly_different
from .reml import Sums

CHUNK = 1 << 18  # rows read at a time
_TABLES = 1 << 28  # bytes of all tables of pairs; beyond, they are not kept


@dataclass(frozen=True)
class Coder:
    """Turns chunks into codes and targets; it travels to Dask's workers.

    Attributes
    ----------
    books : tuple of Codebook
    owner : str
        Estimator, for messages.
    checks : callable
        Block → targets (numbers, or codes of labels), weights and offsets.
    outputs : tuple of float
        For classes: the code of the label that each output calls +1; empty for numbers.
    part : tuple of bool, optional
        Which rows are taken, as `HeldRows.part` says; by default all.
    """

    books: tuple[Codebook, ...]
    owner: str
    checks: Any
    outputs: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    n_jobs: int | None = None
    part: tuple[bool, bool] | None = None

    def __call__(self, chunk: Block) -> HeldRows:
        """Coded rows with the targets of all outputs."""
        categories = [j for j, book in enumerate(self.books) if book.kind == "category"]
        columns = read_columns(chunk.X, f"{self.owner}, chunk {chunk.chunk}", categories)
        found = [column.name for column in columns]
        if self.names and found != list(self.names):
            raise ValueError(
                f"{self.owner}: chunk {chunk.chunk} has the columns {found[:8]}, expected "
                f"{list(self.names[:8])}."
            )
        y, weight, offset = self.checks(chunk)
        codes = encode_columns(self.books, columns, self.owner, self.n_jobs)
        targets = one_against_rest(y, self.outputs)
        rows = HeldRows(self.books, codes, targets, weight, offset, self.n_jobs)
        return rows if self.part is None else rows.part(*self.part)


def one_against_rest(y: np.ndarray, outputs: Sequence[float]) -> tuple[np.ndarray, ...]:
    """Targets of outputs that call a code +1, and all others −1; without outputs, as they are."""
    return tuple(np.where(y == own, 1.0, -1.0) for own in outputs) or (y,)


# ---- sums over rows -----------------------------------------------------------------------------


@dataclass
class Answers:
    """The sum over chunks of what a question, to rows in memory say, has as its answer."""

    question: Callable[[Any], Any]
    total: Any = None

    def zero(self) -> Answers:
        return Answers(self.question)

    def update(self, read: Any) -> None:
        self._add(self.question(read))

    def merge(self, other: Answers) -> Answers:
        self._add(other.total)
        return self

    def _add(self, more: Any) -> None:
        if more is not None:  # as of a partition without rows
            self.total = more if self.total is None else added(self.total, more)


def added(first: Any, second: Any) -> Any:
    """The sum of two answers: numbers, arrays, records whose fields add up, and lists of these."""
    if isinstance(first, list | tuple):
        return type(first)(added(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, Sums | Gain):
        both = zip(vars(first).values(), vars(second).values(), strict=True)
        return type(first)(*(added(a, b) for a, b in both))
    return first + second


def _sums_at(
    parts: Sequence[Part], output: int, loss: Loss, beta: np.ndarray, rows: HeldRows
) -> tuple[float, Sums]:
    """Losses of rows for some weights, and the sums of a Newton step from there."""
    point = rows.coded(parts, None, output).at(loss, beta)
    return point.value, point.sums()


def _squared_sums(parts: Sequence[Part], output: int, middle: float, rows: HeldRows) -> Sums:
    """The sums of squared loss."""
    return rows.coded(parts, None, output).squared(middle)[0]


# ---- rows ---------------------------------------------------------------------------------------


def fold_table(
    source: Source, read: Callable[[Block], Any], stats: Any,
    chunks: Iterable[Block] | None = None,
) -> Any:  # fmt: skip
    """Add what is read of all chunks of a table to statistics: one pass."""
    if source.parts is not None:
        return stats.merge(sum_on_dask(source.parts, partial(_partition_sums, stats.zero(), read)))
    for chunk in source.blocks(CHUNK) if chunks is None else chunks:
        interruptible(lambda chunk=chunk: stats.update(read(chunk)))
    return stats


def _partition_sums(zero: Any, read: Callable[[Block], Any], number: int, part: Any) -> Any:
    stats = zero.zero()
    for chunk in source_of_partition(part, chunk=number, frames=True).blocks(CHUNK):
        stats.update(read(chunk))
    return stats


def tally(source: Source, coder: Coder, losses: Sequence[Loss], sample: HeldRows) -> Tally:
    """The first pass: weights of codes; for squared loss with all that is needed of pairs.

    Intercepts to begin with are those of a sample.
    """
    sizes = [book.n_codes for book in coder.books]
    cells = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    pairs = isinstance(losses[0], Squared) and 8 * cells <= _TABLES
    return fold_table(source, coder, Tally.of(sample, losses, pairs))


@dataclass(frozen=True)
class StreamedRows:
    """Rows that are read anew for every pass.

    Attributes
    ----------
    source, coder
        What is read, and how it becomes codes.
    first : Tally
        Of the first pass, over all rows.
    sample : HeldRows
        Some rows: intercepts start from theirs.
    """

    source: Source
    coder: Coder
    first: Tally
    sample: HeldRows

    @property
    def books(self) -> tuple[Codebook, ...]:
        return self.coder.books

    @property
    def total(self) -> float:
        return self.first.sums[0].weight

    def ask(self, question: Callable[[HeldRows], Any]) -> Any:
        """The answer of all rows to what can be asked of rows in memory: one pass."""
        if self.source.once:
            raise TypeError(
                f"{self.coder.owner}: {self.source.describe()} can be read only once, but this fit "
                "needs several passes (one for squared loss without pairs). Pass a file, a list of "
                "chunks, or a function that returns the chunks."
            )
        return fold_table(self.source, self.coder, Answers(question)).total

    def margins(self, losses: Sequence[Loss]) -> list[CodeSums]:
        return self.first.sums

    def pair_weights(self, pairs: Sequence[Pair]) -> list[np.ndarray]:
        known = self.first.sums[0].pairs
        if all(pair in known for pair in pairs):
            return [known[pair] for pair in pairs]
        return self.ask(methodcaller("pair_weights", pairs))

    def coded(self, parts: Sequence[Part], cone: np.ndarray | None, output: int) -> CodedStream:
        return CodedStream(self, tuple(parts), output, cone)

    def residuals(self, *given: Any) -> tuple[Tables, float, int]:
        return self.ask(methodcaller("residuals", *given))

    def split(self) -> tuple[StreamedRows, StreamedRows]:
        by_content = mostly_different(self.sample.codes, len(self.sample.weight))
        parts = [replace(self.coder, part=(fitted, by_content)) for fitted in (True, False)]
        return replace(self, coder=parts[0]), replace(self, coder=parts[1])

    def gains(self, *given: Any) -> list[Gain]:
        return self.ask(methodcaller("gains", *given))


TableRows = HeldRows | StreamedRows


@dataclass(frozen=True)
class StreamedPoint:
    """Weights, the losses that rows have there, and the sums of a Newton step."""

    beta: np.ndarray
    value: float
    found: Sums

    def sums(self) -> Sums:
        return self.found

    def gradient(self) -> np.ndarray:
        return self.found.gram @ self.beta - self.found.right


@dataclass(frozen=True)
class CodedStream:
    """Streamed rows with some terms, as the solver sees them."""

    rows: StreamedRows
    parts: tuple[Part, ...]
    output: int
    cone: np.ndarray | None

    @property
    def bases(self) -> list:
        return [part.basis for part in self.parts]

    @property
    def total(self) -> float:
        return self.rows.total

    def at(self, loss: Loss, beta: np.ndarray) -> StreamedPoint:
        question = partial(_sums_at, self.parts, self.output, loss, beta)
        return StreamedPoint(beta, *self.rows.ask(question))

    def squared(self) -> tuple[Sums, float]:
        first, middle = self.rows.first.sums[0], self.rows.first.starts[0]
        alone = all(part.pair is None for part in self.parts)
        whole = self.rows.coder.part is None
        if whole and alone and (first.with_pairs or len(self.parts) < 2):
            columns = [part.columns[0] for part in self.parts]
            products = first.products([b.values for b in self.bases], columns)
            return Sums(*products, first.square, first.weight), middle
        return self.rows.ask(partial(_squared_sums, self.parts, self.output, middle)), middle

    def only(self, kept: np.ndarray) -> CodedStream:
        bases = some_functions(self.bases, kept)
        parts = [replace(part, basis=own) for part, own in zip(self.parts, bases, strict=True)]
        cone = None if self.cone is None else self.cone[:, kept]
        return replace(self, parts=tuple(parts), cone=cone)

    def start(self, loss: Loss) -> float:
        sample = self.rows.sample
        return loss.start(sample.targets[self.output], sample.weight, sample.offset)
