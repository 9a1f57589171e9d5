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

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ...data.frames import read_columns
from ...data.table_source import Chunk, TableSource, chunks_of_partition
from ...stats import CodeSums
from ...stats.distributed import sum_on_dask
from ...threads import interruptible
from .codebooks import Codebook, encode_columns
from .held import HeldRows, Pair, Part, Scored, Tables
from .judging import Gain, mostly_different
from .likelihoods import Likelihood, Squared
from .newton import some_functions
from .pairs import Coarse
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
        Chunk → targets (numbers, or codes of labels), weights and offsets.
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

    def __call__(self, chunk: Chunk) -> HeldRows:
        """Coded rows with the targets of all outputs."""
        categories = [j for j, book in enumerate(self.books) if book.kind == "category"]
        columns = read_columns(chunk.X, f"{self.owner}, chunk {chunk.number}", categories)
        found = [column.name for column in columns]
        if self.names and found != list(self.names):
            raise ValueError(
                f"{self.owner}: chunk {chunk.number} has the columns {found[:8]}, expected "
                f"{list(self.names[:8])}."
            )
        y, weight, offset = self.checks(chunk)
        codes = encode_columns(self.books, columns, self.owner, self.n_jobs)
        rows = HeldRows(self.books, codes, self.targets(y), weight, offset, self.n_jobs)
        return rows if self.part is None else rows.part(*self.part)

    def targets(self, y: np.ndarray) -> tuple[np.ndarray, ...]:
        """Targets of all outputs: ±1 for one class against the rest, or numbers as they are."""
        return tuple(np.where(y == own, 1.0, -1.0) for own in self.outputs) or (y,)


# ---- sums over rows -----------------------------------------------------------------------------


@dataclass
class Tally:
    """Sums over the codes of columns, of each output's signals at its intercept.

    For squared loss, whose signals are residuals, the first output has pairs of codes as well.
    """

    sums: list[CodeSums]
    losses: tuple[Likelihood, ...]
    starts: tuple[float, ...]

    def zero(self) -> Tally:
        return replace(self, sums=[own.zero() for own in self.sums])

    def update(self, rows: HeldRows) -> None:
        for k, (own, loss, start) in enumerate(
            zip(self.sums, self.losses, self.starts, strict=True)
        ):
            own.update(rows.codes, rows.signal(loss, k, start), rows.weight, rows.n_jobs)

    def merge(self, other: Tally) -> Tally:
        for own, more in zip(self.sums, other.sums, strict=True):
            own.merge(more)
        return self


@dataclass
class PairWeights:
    """Weights of the codes of some pairs of columns."""

    pairs: tuple[Pair, ...]
    tables: list[np.ndarray]

    def zero(self) -> PairWeights:
        return PairWeights(self.pairs, [np.zeros_like(table) for table in self.tables])

    def update(self, rows: HeldRows) -> None:
        for table, more in zip(self.tables, rows.pair_weights(self.pairs), strict=True):
            table += more

    def merge(self, other: PairWeights) -> PairWeights:
        for table, more in zip(self.tables, other.tables, strict=True):
            table += more
        return self


@dataclass
class StepSums:
    """Losses of all rows for some weights, and the sums of a Newton step from there.

    With a `shift` in the place of a loss: the sums of squared loss, of targets shifted by it.
    """

    parts: tuple[Part, ...]
    output: int
    beta: np.ndarray
    loss: Likelihood | None
    shift: float = 0.0
    value: float = 0.0
    found: Sums | None = None

    def zero(self) -> StepSums:
        return replace(self, value=0.0, found=None)

    def update(self, rows: HeldRows) -> None:
        own = rows.coded(self.parts, None, self.output)
        if self.loss is None:
            shifted = replace(own, y=own.y - own.offset - self.shift, offset=np.zeros(len(own.y)))
            product = shifted.weight * shifted.y
            square = float(product @ shifted.y)
            self._add(0.0, Sums(*own.sums(own.weight, product), square, own.total))
            return
        point = own.at(self.loss, self.beta)
        self._add(point.value, point.sums())

    def _add(self, value: float, more: Sums | None) -> None:
        self.value += value
        if more is None:
            return
        own = self.found
        self.found = more if own is None else Sums(
            own.gram + more.gram, own.right + more.right, own.square + more.square,
            own.rows + more.rows,
        )  # fmt: skip

    def merge(self, other: StepSums) -> StepSums:
        self._add(other.value, other.found)
        return self

    def sums(self) -> Sums:
        assert self.found is not None
        return self.found

    def gradient(self) -> np.ndarray:
        sums = self.sums()
        return sums.gram @ self.beta - sums.right


@dataclass
class Residuals:
    """Tables of residuals over the coarse codes of pairs; see `pairs.residual_tables`."""

    parts: tuple[Part, ...]
    output: int
    beta: np.ndarray
    loss: Likelihood
    places: tuple[Pair, ...]
    coarse: dict[int, Coarse]
    tables: Tables = field(default_factory=list)
    bend: float = 0.0
    rows: int = 0

    def zero(self) -> Residuals:
        return replace(self, tables=[], bend=0.0, rows=0)

    def update(self, rows: HeldRows) -> None:
        tables, mean = rows.residuals(
            self.parts, self.beta, self.loss, self.output, self.places, self.coarse
        )
        count = len(rows.weight)
        self._add(tables, mean * count, count)

    def _add(self, tables: Tables, bend: float, rows: int) -> None:
        self.bend += bend
        self.rows += rows
        if not self.tables:
            self.tables = tables
        elif tables:
            self.tables = [
                (a + c, b + d) for (a, b), (c, d) in zip(self.tables, tables, strict=True)
            ]

    def merge(self, other: Residuals) -> Residuals:
        self._add(other.tables, other.bend, other.rows)
        return self


@dataclass
class GainSums:
    """Losses in a model beside those in others; see `HeldRows.gains`."""

    losses: tuple[Likelihood, ...]
    others: tuple[Scored, ...]
    model: Scored
    found: list[Gain]

    def zero(self) -> GainSums:
        return replace(self, found=[Gain() for _ in self.others])

    def update(self, rows: HeldRows) -> None:
        self._add(rows.gains(self.losses, self.others, self.model))

    def _add(self, more: list[Gain]) -> None:
        for own, gain in zip(self.found, more, strict=True):
            own.sums = own.sums + gain.sums

    def merge(self, other: GainSums) -> GainSums:
        self._add(other.found)
        return self


# ---- rows ---------------------------------------------------------------------------------------


def fold_table(source: TableSource, coder: Coder, stats: Any) -> Any:
    """Add all rows of a table to statistics: one pass."""
    if source.parts is not None:
        leaf = partial(_partition_sums, stats.zero(), replace(coder, n_jobs=1))
        return stats.merge(sum_on_dask(source.parts, leaf))
    for chunk in source.chunks(CHUNK):
        interruptible(lambda chunk=chunk: stats.update(coder(chunk)))
    return stats


def _partition_sums(zero: Any, coder: Coder, number: int, *part: Any) -> Any:
    stats = zero.zero()
    for chunk in chunks_of_partition(CHUNK, number, *part):
        stats.update(coder(chunk))
    return stats


def tally(
    source: TableSource, coder: Coder, losses: Sequence[Likelihood], sample: HeldRows
) -> Tally:
    """The first pass: weights of codes; for squared loss with all that is needed of pairs.

    Intercepts to begin with are those of a sample.
    """
    starts = [
        loss.start(y, sample.weight, sample.offset) if sample.weight.any() else 0.0
        for loss, y in zip(losses, sample.targets, strict=True)
    ]
    sizes = [book.n_codes for book in coder.books]
    total = sum(sizes)
    cells = (total**2 - sum(size**2 for size in sizes)) // 2
    pairs = isinstance(losses[0], Squared) and 8 * cells <= _TABLES
    sums = [CodeSums(sizes, pairs and k == 0) for k in range(len(losses))]
    return fold_table(source, coder, Tally(sums, tuple(losses), tuple(starts)))


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

    source: TableSource
    coder: Coder
    first: Tally
    sample: HeldRows

    @property
    def books(self) -> tuple[Codebook, ...]:
        return self.coder.books

    @property
    def n_outputs(self) -> int:
        return max(len(self.coder.outputs), 1)

    @property
    def total(self) -> float:
        return self.first.sums[0].weight

    def fold(self, stats: Any) -> Any:
        """One pass over all rows."""
        if self.source.once:
            raise TypeError(
                f"{self.coder.owner}: {self.source.describe()} can be read only once, but this fit "
                "needs several passes (one for squared loss without pairs). Pass a file, a list of "
                "chunks, or a function that returns the chunks."
            )
        return fold_table(self.source, self.coder, stats)

    def margins(self, losses: Sequence[Likelihood]) -> list[CodeSums]:
        return self.first.sums

    def pair_weights(self, pairs: Sequence[Pair]) -> list[np.ndarray]:
        known = self.first.sums[0].pairs
        if all(pair in known for pair in pairs):
            return [known[pair] for pair in pairs]
        sizes = [book.n_codes for book in self.books]
        empty = [np.zeros((sizes[j], sizes[k])) for j, k in pairs]
        return self.fold(PairWeights(tuple(pairs), empty)).tables

    def coded(self, parts: Sequence[Part], cone: np.ndarray | None, output: int) -> CodedStream:
        return CodedStream(self, tuple(parts), output, cone)

    def residuals(
        self, parts: Sequence[Part], beta: np.ndarray, loss: Likelihood, output: int,
        places: Sequence[Pair], coarse: dict[int, Coarse],
    ) -> tuple[Tables, float]:  # fmt: skip
        empty = Residuals(tuple(parts), output, beta, loss, tuple(places), coarse)
        found = self.fold(empty)
        return found.tables, found.bend / max(found.rows, 1)

    def split(self) -> tuple[StreamedRows, StreamedRows]:
        by_content = mostly_different(self.sample.codes, len(self.sample.weight))
        parts = [replace(self.coder, part=(fitted, by_content)) for fitted in (True, False)]
        return replace(self, coder=parts[0]), replace(self, coder=parts[1])

    def gains(
        self, losses: Sequence[Likelihood], others: Sequence[Scored], model: Scored
    ) -> list[Gain]:
        empty = [Gain() for _ in others]
        return self.fold(GainSums(tuple(losses), tuple(others), model, empty)).found


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

    def at(self, loss: Likelihood, beta: np.ndarray) -> StepSums:
        return self.rows.fold(StepSums(self.parts, self.output, beta, loss))

    def squared(self) -> tuple[Sums, float]:
        first, middle = self.rows.first.sums[0], self.rows.first.starts[0]
        alone = all(part.pair is None for part in self.parts)
        whole = self.rows.coder.part is None
        if whole and alone and (first.with_pairs or len(self.parts) < 2):
            columns = [part.columns[0] for part in self.parts]
            products = first.products([b.values for b in self.bases], columns)
            return Sums(*products, first.square, first.weight), middle
        empty = StepSums(self.parts, self.output, np.zeros(0), None, middle)
        return self.rows.fold(empty).sums(), middle

    def only(self, kept: np.ndarray) -> CodedStream:
        bases = some_functions(self.bases, kept)
        parts = [replace(part, basis=own) for part, own in zip(self.parts, bases, strict=True)]
        cone = None if self.cone is None else self.cone[:, kept]
        return replace(self, parts=tuple(parts), cone=cone)

    def start(self, loss: Likelihood) -> float:
        sample = self.rows.sample
        return loss.start(sample.targets[self.output], sample.weight, sample.offset)
