"""Training rows of a GAM from a stream: files, chunks and Dask, read anew for each pass.

All that a fit needs of its rows are sums over them: the chunks are read, coded and added up, and
nothing of them is kept. Sums merge, which is how Dask's partitions come together. The passes are

1. a sample of up to 200,000 rows, which the codes of the columns are computed from; classifiers
   also read the column of labels, and levels of categories that are too many for the sample are
   counted over all rows;
2. the weights of the codes and, for squared loss, of all pairs of codes: with these, no further
   pass is needed, whatever the smoothing parameters, unless there is a large factor;
3. for other losses one for each Newton step, and for pairs one to rank them and one to fit them in
   each round of the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from ...data import Block, Source
from ...data.columns import Column
from ...data.table_reader import ReadingNotes, TableReader
from ...stats import CodeSums
from ..losses import Loss, Squared
from ..rows.basis import TermBasis
from ..rows.in_memory import TermRows
from ..rows.passes import SumOverChunks, fold_chunks
from ..rows.protocol import NormalEquations
from ..rows.streamed import StreamedTermRows
from .codebooks import Codebook, encode_columns, value_range
from .pairs import PairCodes
from .sampling import rows_with_target
from .training_rows import (
    DesignTerm,
    OutputSums,
    Pair,
    RowsInMemory,
    relative_scale,
)

PAIR_TABLE_BYTES = 1 << 28  # of all tables of pairs of codes; if they need more, none are kept


@dataclass(frozen=True)
class ChunkEncoder:
    """Turns chunks into coded rows; it is sent to Dask's workers.

    Attributes
    ----------
    reader : TableReader
        How the columns of a chunk are read.
    books : tuple of Codebook
    owner : str
        Estimator, for messages.
    checks : callable
        Block → targets (numbers, or codes of labels), weights and offsets.
    outputs : tuple of float
        For classes: the code of the label that each output calls +1; empty for numbers.
    weight_scale : float
        Factor of all weights.
    """

    reader: TableReader
    books: tuple[Codebook, ...]
    owner: str
    checks: Any
    outputs: tuple[float, ...] = ()
    n_jobs: int | None = None
    weight_scale: float = 1.0

    def __call__(self, chunk: Block) -> RowsInMemory:
        """Coded rows with the targets of all outputs."""
        where, n_rows = f"{self.owner}, chunk {chunk.chunk}", len(chunk)
        chunk = rows_with_target(chunk)
        notes = ReadingNotes(refuses=False)  # all rows were looked at before
        columns = self.reader.read(chunk.X, where, ordered=False, notes=notes)
        y, weight, offset = self.checks(chunk)
        codes = encode_columns(self.books, columns, self.owner, self.n_jobs)
        targets = one_against_rest(y, self.outputs)
        weight = self.weight_scale * weight
        return RowsInMemory(
            self.books, codes, targets, weight, offset, self.n_jobs, n_rows - len(chunk),
            _ranges(columns, weight > 0),
        )  # fmt: skip


def _ranges(columns: Sequence[Column], used: np.ndarray) -> np.ndarray:
    """The ends of columns of numbers in some rows: shape (n_columns, 2), the lower ones negated."""
    no_numbers = np.zeros(0)
    ranges = [
        value_range(no_numbers if column.is_category else column.values[used]) for column in columns
    ]
    return np.array(ranges) * (-1.0, 1.0)


def one_against_rest(y: np.ndarray, outputs: Sequence[float]) -> tuple[np.ndarray, ...]:
    """Targets of outputs that call a code +1, and all others −1; without outputs, as they are."""
    return tuple(np.where(y == code, 1.0, -1.0) for code in outputs) or (y,)


def sums_of_first_pass(
    source: Source, encoder: ChunkEncoder, losses: Sequence[Loss], sample: RowsInMemory
) -> OutputSums:
    """The first pass: weights of codes; for squared loss, and if there is room, of pairs of codes.

    The intercepts are those of a sample.
    """
    sizes = [book.n_codes for book in encoder.books]
    n_cells = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    with_pairs = isinstance(losses[0], Squared) and 8 * n_cells <= PAIR_TABLE_BYTES
    return fold_chunks(source, encoder, OutputSums.empty(sample, losses, with_pairs))


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

    @property
    def books(self) -> tuple[Codebook, ...]:
        return self.encoder.books

    @property
    def total_weight(self) -> float:
        return self.first_pass.weight

    def with_relative_weights(self) -> RowsFromStream:
        """The rows with weights that sum to the effective number of rows."""
        scale = relative_scale(self.first_pass.weight, self.first_pass.squared_weight)
        encoder = replace(self.encoder, weight_scale=scale * self.encoder.weight_scale)
        return replace(self, encoder=encoder, first_pass=self.first_pass.scaled(scale))

    def sum_over_chunks(self, function: Callable[[RowsInMemory], Any]) -> Any:
        """The sum of a function's results for the rows of all chunks: one pass."""
        return fold_chunks(self.source, self.encoder, SumOverChunks(function)).total

    def output_sums(self, losses: Sequence[Loss]) -> OutputSums:
        return self.first_pass

    def pair_counts(self, pairs: Sequence[Pair], coarse: Sequence[PairCodes]) -> list[np.ndarray]:
        tables = self.first_pass.by_output[0].pairs
        if all(pair in tables for pair in pairs):
            return [
                first.sum_rows(second.sum_rows(tables[pair].T).T)
                for pair, (first, second) in zip(pairs, coarse, strict=True)
            ]
        return self.sum_over_chunks(methodcaller("pair_counts", pairs, coarse))

    def with_terms(
        self, terms: Sequence[DesignTerm], constraints: np.ndarray | None, output: int
    ) -> StreamedTermRows:
        sums = self.first_pass.by_output[0]
        # Sums over the codes of columns do for curves and small factors.
        only_columns = all(
            term.pair is None and isinstance(term.basis, TermBasis) and not term.fixed_effects
            for term in terms
        )
        enough = sums.with_pairs or len(terms) < 2
        columns = [term.columns[0] for term in terms]
        bases = [term.basis for term in terms if not term.fixed_effects]
        return StreamedTermRows(
            partial(_fold_terms, self, tuple(terms), output), bases, constraints,
            self.total_weight, self.sample.with_terms((), None, output),
            self.first_pass.intercepts[0],
            partial(_problem_from_bins, sums, columns) if only_columns and enough else None,
        )  # fmt: skip

    def derivative_tables(self, *arguments: Any) -> np.ndarray:
        return self.sum_over_chunks(methodcaller("derivative_tables", *arguments))


TrainingRows = RowsInMemory | RowsFromStream


def _fold_terms(
    rows: RowsFromStream, terms: Sequence[DesignTerm], output: int,
    function: Callable[[TermRows], Any],
) -> Any:  # fmt: skip
    """The sum over chunks of a function of their rows with some terms."""
    return rows.sum_over_chunks(partial(_on_terms, terms, output, function))


def _on_terms(
    terms: Sequence[DesignTerm], output: int, function: Callable[[TermRows], Any],
    rows: RowsInMemory,
) -> Any:  # fmt: skip
    return function(rows.with_terms(terms, None, output))


def _problem_from_bins(
    sums: CodeSums, columns: Sequence[int], bases: Sequence[TermBasis]
) -> NormalEquations:
    """The problem of squared loss from sums over pairs of codes."""
    products = sums.products([basis.values for basis in bases], columns)
    return NormalEquations(*products, sums.square, sums.weight)
