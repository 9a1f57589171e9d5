"""Training rows of a GAM: coded, in memory or from a stream, with the targets of all outputs.

All that a fit needs of its rows are sums over them. Those of a stream (files, chunks and Dask) are
read, coded and added up anew for each pass, and nothing of them is kept. Sums merge, which is how
Dask's partitions come together. The passes are

1. a sample of up to 200,000 rows, which the codes of the columns are computed from; classifiers
   also read the column of labels, and levels of categories that are too many for the sample are
   counted over all rows;
2. the weights of the codes and, for squared loss, of all pairs of codes: with these, no further
   pass is needed, whatever the smoothing parameters, unless there is a large factor;
3. for other losses one for each Newton step, and for pairs one to rank them and one to fit them in
   each round of the search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ...data import Block, Source
from ...data.columns import Column
from ...data.sources import RowSample
from ...data.table_reader import ReadingNotes, TableReader
from ...stats.pair_tables import CodeSums, pair_table
from ..inputs import missing_targets, real_targets
from ..losses import Loss, LossTotals
from ..rows.basis import Basis, TermBasis
from ..rows.normal_equations import NormalEquations
from ..rows.term_rows import StreamedTermRows, SumOverChunks, TermRows, fold_chunks
from .codebooks import SAMPLE_ROWS, Codebook, LevelCounts, encode_columns, value_range
from .pairs import CoarseCodes, PairCodes, PairTerm, sums_by_pair
from .predictor import check_exposures
from .surfaces import Surface
from .terms import Pair, Shapes

PAIR_TABLE_BYTES = 1 << 28  # of all tables of pairs of codes; if they need more, none are kept
NO_ROWS = LossTotals(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class DesignTerm:
    """A term of the model matrix: the columns that its codes come from, and its basis.

    The codes of a `pair` or a `surface` are cells of the codes of two columns. A term with
    `fixed_effects`, values at its codes by output, has no functions: it is an offset.
    """

    name: str
    kind: str
    columns: tuple[int, ...]
    basis: Basis
    counts: np.ndarray
    pair: PairTerm | None = None
    shapes: tuple[str, ...] = ()
    pair_shapes: Shapes = field(default_factory=dict)
    extrapolation: str = "constant"
    period: float = 0.0
    fixed_effects: tuple[np.ndarray, ...] = ()
    surface: Surface | None = None

    def codes(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Codes of the term from those of the columns."""
        cells = self.pair or self.surface
        return codes[self.columns[0]] if cells is None else cells.codes(codes)

    def place_at_knots(self) -> DesignTerm:
        """The term as it is stored: a surface at its knots."""
        if self.surface is None or not isinstance(self.basis, TermBasis):
            return self
        basis = replace(self.basis, values=self.surface.values, at_rows=None)
        return replace(self, basis=basis, counts=self.surface.counts)


@dataclass(frozen=True)
class RowsInMemory:
    """Coded rows in memory, with the targets of one or more outputs.

    `RowsFromStream` has the same methods for rows that are read anew for each call.
    `n_without_target` further rows were left out, as their target is missing. `numbers` are the
    values of columns of few rows whose codes do not stand for single values. `ranges` are the
    ends of columns of numbers, the lower ones negated, of rows from a stream.
    """

    books: tuple[Codebook, ...]
    codes: tuple[np.ndarray, ...]
    targets: tuple[np.ndarray, ...]
    weight: np.ndarray
    offset: np.ndarray
    n_jobs: int | None = None
    n_without_target: int = 0
    ranges: np.ndarray | None = None
    numbers: Mapping[int, np.ndarray] = field(default_factory=dict)

    @property
    def total_weight(self) -> float:
        return float(self.weight.sum())

    @property
    def weight_sums(self) -> np.ndarray:
        """Sums of w, w² and log w, and the number of rows, of those of positive weight."""
        w = self.weight[self.weight > 0]
        return np.array([w.sum(), w @ w, np.log(w).sum(), len(w)])

    def scale_weights(self, weights: str) -> RowsInMemory:
        """The rows with the weights that a fit takes; `weights` says what they are."""
        # In units of the largest, equal weights of any size become exactly one.
        unit = 1.0 if weights == "frequency" else self.weight.max()
        rows = replace(self, weight=self.weight / unit)
        return replace(rows, weight=rows.weight * fit_scale(weights, *rows.weight_sums))

    def output_sums(self, losses: Sequence[Loss]) -> OutputSums:
        """Sums of weights and of negative gradients over the codes of columns, by output."""
        return OutputSums.empty(self, losses).update(self)

    def loss_totals(self, losses: Sequence[Loss]) -> list[LossTotals]:
        """`LossTotals` of each output, for losses with an estimated parameter."""
        return self.output_sums(losses).totals

    def pair_counts(self, pairs: Sequence[Pair], coarse: Sequence[PairCodes]) -> list[np.ndarray]:
        """Sums of weights over the pairs of coarse codes of two columns."""
        return [
            pair_table(
                row_codes.of_code[self.codes[j]], column_codes.of_code[self.codes[k]], self.weight,
                (row_codes.size, column_codes.size),
            )
            for (j, k), (row_codes, column_codes) in zip(pairs, coarse, strict=True)
        ]  # fmt: skip

    def with_terms(
        self, terms: Sequence[DesignTerm], constraints: np.ndarray | None, output: int | None
    ) -> TermRows:
        """The rows with some terms, as a solver sees them; an output of None stands for all."""
        offset, free = self.offset, [term for term in terms if not term.fixed_effects]
        for term in terms:
            if term.fixed_effects and output is not None:
                offset = offset + term.fixed_effects[output][term.codes(self.codes)]
        codes, bases = [term.codes(self.codes) for term in free], [term.basis for term in free]
        several = output is None and len(self.targets) > 1
        y = np.column_stack(self.targets) if several else self.targets[output or 0]
        return TermRows(codes, bases, y, self.weight, offset, self.n_jobs, constraints)

    def derivative_tables(
        self, terms: Sequence[DesignTerm], beta: np.ndarray, loss: Loss, output: int,
        pairs: Sequence[Pair], coarse: dict[int, CoarseCodes],
    ) -> np.ndarray:  # fmt: skip
        """Weighted sums of the losses' derivatives at β over the coarse codes of pairs.

        They are those of curvatures, gradients and squared gradients: the shape is
        (n_pairs, 3, n_codes, n_codes); see `sums_by_pair`.
        """
        y, eta = self.targets[output], self.with_terms(terms, None, output).scores(beta)
        gradient, curvature = loss.derivatives(y, eta)
        values = [curvature, gradient, loss.squared_gradient(y, eta)]
        values = [self.weight * item for item in values]
        return sums_by_pair(pairs, coarse, self.codes, values, self.n_jobs)


def fit_scale(
    weights: str, total: float, squares: float, log_sum: float = 0.0, n_rows: float = 0.0
) -> float:
    """The factor of all weights in a fit, from their sums.

    By it, relative weights sum to the effective number of rows, (Σw)²/Σw² (Kish 1965), and
    precisions to the number of rows.
    """
    if weights == "frequency":
        return 1.0
    return float(n_rows / total if weights == "precision" else total / squares)


@dataclass
class OutputSums:
    """Sums over the codes of columns of each output's negative gradients at its intercept.

    For squared loss these are the residuals of the constant model. `totals` are sums over all
    rows, by output, `weight_sums` those of `RowsInMemory`, and `n_without_target` counts rows that
    were left out.
    `ranges` are those of the rows, see `RowsInMemory`.
    """

    by_output: list[CodeSums]
    losses: Sequence[Loss]
    intercepts: Sequence[float]
    totals: list[LossTotals]
    weight_sums: np.ndarray | float = 0.0
    n_without_target: int = 0
    ranges: np.ndarray | float = -np.inf

    @classmethod
    def empty(
        cls, rows: RowsInMemory, losses: Sequence[Loss], with_pairs: bool = False
    ) -> OutputSums:
        """Of no rows, with the intercepts of these; the first output may sum over pairs, too."""
        sizes = [book.n_codes for book in rows.books]
        sums = [CodeSums(sizes, with_pairs and k == 0) for k in range(len(losses))]
        intercepts = [
            loss.initial_intercept(y, rows.weight, rows.offset) if rows.weight.any() else 0.0
            for loss, y in zip(losses, rows.targets, strict=True)
        ]
        return cls(sums, losses, intercepts, [NO_ROWS] * len(losses))

    def zero(self) -> OutputSums:
        by_output = [sums.zero() for sums in self.by_output]
        return OutputSums(by_output, self.losses, self.intercepts, [NO_ROWS] * len(by_output))

    def update(self, rows: RowsInMemory) -> OutputSums:
        self.weight_sums = self.weight_sums + rows.weight_sums
        self.n_without_target += rows.n_without_target
        if rows.ranges is not None:
            self.ranges = np.maximum(self.ranges, rows.ranges)
        for k, (loss, intercept) in enumerate(zip(self.losses, self.intercepts, strict=True)):
            y = rows.targets[k]
            eta = rows.offset + intercept
            gradient, sums = loss.derivatives(y, eta)[0], self.by_output[k]
            sums.update(rows.codes, -gradient, rows.weight, n_jobs=rows.n_jobs)
            if loss.counts_trials:
                sums.square += float(rows.weight @ (loss.squared_gradient(y, eta) - gradient**2))
            self.totals[k] += loss.totals(y, rows.weight, rows.offset, intercept)
        return self

    def merge(self, other: OutputSums) -> OutputSums:
        for sums, more in zip(self.by_output, other.by_output, strict=True):
            sums.merge(more)
        self.weight_sums = self.weight_sums + other.weight_sums
        self.n_without_target += other.n_without_target
        self.ranges = np.maximum(self.ranges, other.ranges)
        self.totals = [a + b for a, b in zip(self.totals, other.totals, strict=True)]
        return self

    @property
    def weight(self) -> float:
        """Σw."""
        return self.by_output[0].weight

    def scale(self, factor: float) -> OutputSums:
        """The sums for weights that are multiplied by a factor."""
        by_output = [sums.scaled(factor) for sums in self.by_output]
        totals = [item.scale(factor) for item in self.totals]
        return replace(self, by_output=by_output, totals=totals)


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
        exposure = chunk.exposure
        if exposure is not None:
            exposure = check_exposures(exposure, len(chunk), chunk.place)
        y = self.targets(chunk)
        if self.classes is None:
            if exposure is not None and self.loss is not None:
                y, weight, offset = self.loss.with_exposure(y, weight, exposure)
            # One valid target more: whether some are positive is a question for all chunks.
            valid = self.loss.valid_target if self.loss else 1.0
            problem = self.loss and self.loss.target_error(np.append(y[weight > 0], valid))
            if self.loss and problem:
                wrong = (k for k in np.flatnonzero(weight)
                         if self.loss.target_error(np.append(y[k], valid)))  # fmt: skip
                row = int(next(wrong))
                raise ValueError(f"{self.owner}: {problem}; found {y[row]:g}: {chunk.place(row)}.")
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
    read, weight = reader.read(chunk.X, where, notes=notes), checks(chunk)[1]
    return [LevelCounts.from_column(read[j], weight, frequency) for j in columns]


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


@dataclass(frozen=True)
class ChunkEncoder:
    """Turns chunks into coded rows; it is sent to Dask's workers.

    Attributes
    ----------
    reader : TableReader
        How the columns of a chunk are read.
    books : tuple of Codebook
    checks : RowChecks
        Block → targets (numbers, or codes of labels), weights and offsets.
    outputs : tuple of float
        For classes: the code of the label that each output calls +1; empty for numbers.
    weight_scale : float
        Factor of all weights.
    """

    reader: TableReader
    books: tuple[Codebook, ...]
    checks: RowChecks
    outputs: tuple[float, ...] = ()
    n_jobs: int | None = None
    weight_scale: float = 1.0

    def __call__(self, chunk: Block) -> RowsInMemory:
        """Coded rows with the targets of all outputs."""
        owner, n_rows = self.checks.owner, len(chunk)
        chunk = rows_with_target(chunk)
        notes = ReadingNotes(refuses=False)  # all rows were looked at before
        columns = self.reader.read(chunk.X, f"{owner}, chunk {chunk.chunk}", notes=notes)
        y, weight, offset = self.checks(chunk)
        no_numbers = np.zeros(0)
        ranges = [
            value_range(no_numbers if column.is_category else column.values[weight > 0])
            for column in columns
        ]
        return RowsInMemory(
            self.books, encode_columns(self.books, columns, owner, self.n_jobs),
            one_against_rest(y, self.outputs), self.weight_scale * weight, offset, self.n_jobs,
            n_rows - len(chunk), np.array(ranges) * (-1.0, 1.0),
        )  # fmt: skip


def one_against_rest(y: np.ndarray, outputs: Sequence[float]) -> tuple[np.ndarray, ...]:
    """Targets of outputs that call a code +1, and all others −1; without outputs, as they are."""
    return tuple(np.where(y == code, 1.0, -1.0) for code in outputs) or (y,)


@dataclass(frozen=True)
class RowsFromStream:
    """Rows that are read anew for each pass; the methods are those of `RowsInMemory`.

    Attributes
    ----------
    source, encoder
        What is read, and how it becomes codes.
    first_pass : OutputSums
        Sums over all rows.
    sample : RowsInMemory
        Some rows, or one of each class, which the intercepts to start from are those of.
    """

    source: Source
    encoder: ChunkEncoder
    first_pass: OutputSums
    sample: RowsInMemory

    @classmethod
    def read(
        cls, source: Source, encoder: ChunkEncoder, losses: Sequence[Loss], sample: RowsInMemory
    ) -> RowsFromStream:
        """The first pass: weights of codes; for squared loss, if there is room, of their pairs.

        It also finds the ranges of numbers.
        """
        sizes = [book.n_codes for book in encoder.books]
        n_cells = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
        with_pairs = losses[0].is_quadratic and 8 * n_cells <= PAIR_TABLE_BYTES
        sums = fold_chunks(source, encoder, OutputSums.empty(sample, losses, with_pairs))
        ends = sums.ranges * np.array([-1.0, 1.0])
        books = tuple(
            book.with_range(*pair) for book, pair in zip(encoder.books, ends, strict=True)
        )
        return cls(source, replace(encoder, books=books), sums, replace(sample, books=books))

    @property
    def books(self) -> tuple[Codebook, ...]:
        return self.encoder.books

    @property
    def total_weight(self) -> float:
        return self.first_pass.weight

    @property
    def weight_sums(self) -> np.ndarray:
        return np.asarray(self.first_pass.weight_sums)

    def scale_weights(self, weights: str) -> RowsFromStream:
        """The rows with the weights that a fit takes."""
        scale = fit_scale(weights, *self.weight_sums)
        encoder = replace(self.encoder, weight_scale=scale)
        return replace(self, encoder=encoder, first_pass=self.first_pass.scale(scale))

    def sum_over_chunks(self, function: Callable[[RowsInMemory], Any]) -> Any:
        """The sum of a function's results for the rows of all chunks: one pass."""
        return fold_chunks(self.source, self.encoder, SumOverChunks(function)).total

    def output_sums(self, losses: Sequence[Loss]) -> OutputSums:
        return self.first_pass

    def loss_totals(self, losses: Sequence[Loss]) -> list[LossTotals]:
        sums = OutputSums.empty(self.sample, losses)
        return fold_chunks(self.source, self.encoder, sums).totals

    def pair_counts(self, pairs: Sequence[Pair], coarse: Sequence[PairCodes]) -> list[np.ndarray]:
        tables = self.first_pass.by_output[0].pairs
        if all(pair in tables for pair in pairs):
            return [
                row_codes.sum_rows(column_codes.sum_rows(tables[pair].T).T)
                for pair, (row_codes, column_codes) in zip(pairs, coarse, strict=True)
            ]
        return self.sum_over_chunks(lambda rows: rows.pair_counts(pairs, coarse))

    def with_terms(
        self, terms: Sequence[DesignTerm], constraints: np.ndarray | None, output: int | None
    ) -> StreamedTermRows:
        sums = self.first_pass.by_output[0]
        # Sums over the codes of columns do for curves and small factors.
        only_columns = all(
            len(term.columns) == 1 and isinstance(term.basis, TermBasis) and not term.fixed_effects
            for term in terms
        )
        enough = only_columns and (sums.with_pairs or len(terms) < 2)
        columns = [term.columns[0] for term in terms]
        bases = [term.basis for term in terms if not term.fixed_effects]
        sample_terms = terms if self.first_pass.losses[output or 0].parameter else ()

        def fold(function: Callable[[TermRows], Any]) -> Any:
            return self.sum_over_chunks(lambda rows: function(rows.with_terms(terms, None, output)))

        def problem_from_bins(bases: Sequence[Any]) -> NormalEquations:
            products = sums.products([basis.values for basis in bases], columns)
            return NormalEquations(*products, sums.square, sums.weight)

        return StreamedTermRows(
            fold, bases, constraints, self.total_weight,
            self.sample.with_terms(sample_terms, None, output), self.first_pass.intercepts[0],
            problem_from_bins if enough else None,
        )  # fmt: skip

    def derivative_tables(self, *arguments: Any) -> np.ndarray:
        return self.sum_over_chunks(lambda rows: rows.derivative_tables(*arguments))


TrainingRows = RowsInMemory | RowsFromStream
