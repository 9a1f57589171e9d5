"""Pairs of columns: sums over their codes for tests, and their terms.

Columns are coded more coarsely for pairs, so that a pair has at most some thousand codes. The bins
are even on an axis between ranks and values: bins of equal weight alone would leave one for the
tail of a column, where its effects may be largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...stats.pair_tables import tables_of_pairs
from ..rows.basis import TermBasis
from .bases import (
    MarginalBasis,
    axis_between,
    linear_marginal_basis,
    marginal_basis,
    tensor_basis,
)
from .codebooks import OTHER, Codebook


@dataclass(frozen=True)
class PairOptions:
    """Constants of the codes and functions of pairs."""

    test_codes: int = 16  # of a column while pairs are tested
    max_cells: int = 2500  # codes of a pair
    max_side: int = 64  # codes of the finer of its columns
    max_functions: int = 400
    # Degrees of freedom of a pair from a search that stays, during the search and after its last
    # fit: with less, next to nothing is left of it.
    min_edf: float = 0.3
    max_levels: int = 16  # levels of a category that a pair of a search distinguishes
    # The same of a pair that was asked for, as many as a byte can code, and its cells. Slopes by
    # level have one function each: 16,384 cells of 254 functions are 32 MiB. Curves by level have
    # `max_functions`, which are sought among three times as many products.
    max_requested_levels: int = 254
    max_requested_cells: int = 6600
    max_cells_of_slopes: int = 1 << 14


PAIRS = PairOptions()

LinearSides = tuple[bool, bool]  # whether a pair is linear in its first and in its second column


@dataclass(frozen=True)
class CoarseCodes:
    """Fewer codes for a column.

    Attributes
    ----------
    of_code : ndarray of uint8
        Coarse code of each code; 0 stays the missing value.
    size : int
        Number of coarse codes.
    """

    of_code: np.ndarray
    size: int

    def sum_rows(self, table: np.ndarray) -> np.ndarray:
        """Rows of a table that share a coarse code, added up."""
        return np.eye(self.size)[self.of_code].T @ table


@dataclass(frozen=True)
class PairTerm:
    """A pair's coarse codes and functions; pair code = first · second.size + second.

    `positions` are the means of the coarse bins of both columns; a category has none. `linear` are
    the columns that the pair is linear in.
    """

    columns: tuple[int, int]
    first: CoarseCodes
    second: CoarseCodes
    marginal_bases: tuple[MarginalBasis, MarginalBasis]
    counts: np.ndarray
    positions: tuple[np.ndarray, np.ndarray]
    linear: LinearSides

    def basis(self, n_functions: int = PAIRS.max_functions) -> TermBasis:
        """The smoothest functions of the pair."""
        return tensor_basis(
            *self.marginal_bases, self.counts, min(n_functions, PAIRS.max_functions)
        )

    def codes(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Pair codes of rows, from the codes of all columns."""
        first, second = (codes[j] for j in self.columns)
        dtype = np.uint8 if self.first.size * self.second.size <= 256 else np.uint16
        row_start = self.first.of_code.astype(dtype) * dtype(self.second.size)
        return row_start[first] + self.second.of_code.astype(dtype)[second]


def coarse_codes(book: Codebook, counts: np.ndarray, max_codes: int) -> CoarseCodes:
    """At most `max_codes` codes: even bins for numbers, frequent levels of a category."""
    if book.kind == "category":
        return _frequent_levels(counts, max_codes)
    counts = counts[1:]
    n_bins = min(len(counts), max_codes - 1)
    if n_bins == len(counts):
        return CoarseCodes(np.arange(n_bins + 1, dtype=np.uint8), n_bins + 1)
    rank = (np.cumsum(counts) - 0.5 * counts) / max(counts.sum(), 1e-300)
    value = (book.nodes - book.nodes[0]) / (book.nodes[-1] - book.nodes[0])
    bins = np.minimum((axis_between(rank, value) * n_bins).astype(np.int64), n_bins - 1)
    _, bins = np.unique(bins, return_inverse=True)
    return CoarseCodes(np.concatenate([[0], bins + 1]).astype(np.uint8), int(bins.max()) + 2)


def _frequent_levels(counts: np.ndarray, max_codes: int) -> CoarseCodes:
    """Missing, other, and the most frequent levels in their order."""
    levels = np.arange(OTHER + 1, len(counts))
    frequent = np.argsort(-counts[levels], kind="stable")[: max_codes - 2]
    levels = np.sort(levels[frequent])
    of_code = np.full(len(counts), OTHER, np.uint8)
    of_code[0] = 0
    of_code[levels] = np.arange(2, len(levels) + 2)
    return CoarseCodes(of_code, len(levels) + 2)


def codes_for_tests(
    books: Sequence[Codebook], counts: Sequence[np.ndarray], columns: Sequence[int]
) -> dict[int, CoarseCodes]:
    """Codes of some columns while pairs are tested."""
    return {j: coarse_codes(books[j], counts[j], PAIRS.test_codes) for j in columns}


def sums_by_pair(
    pairs: Sequence[tuple[int, int]], coarse: dict[int, CoarseCodes], codes: Sequence[np.ndarray],
    values: Sequence[np.ndarray], n_jobs: int | None = None,
) -> np.ndarray:  # fmt: skip
    """Sums of values of the rows over the coarse codes of pairs of columns.

    Parameters
    ----------
    pairs : sequence of (int, int)
        The pairs.
    coarse, codes
        Of the columns.
    values : sequence of ndarray of shape (n_samples,)
        Each has one table for each pair.

    Returns
    -------
    ndarray of shape (n_pairs, n_values, n_codes, n_codes)
        With as many codes as the column of `coarse` with the most has; others end with zeros.
    """
    columns = sorted({j for pair in pairs for j in pair})
    small = np.stack([coarse[j].of_code[codes[j]] for j in columns])
    places = np.searchsorted(columns, np.array(pairs))
    size = max(column.size for column in coarse.values())
    return tables_of_pairs(small, places, np.stack(values), size, n_jobs)


PairCodes = tuple[CoarseCodes, CoarseCodes]


def pair_codes(
    columns: tuple[int, int], books: Sequence[Codebook], counts: Sequence[np.ndarray],
    requested: LinearSides | None,
) -> PairCodes:  # fmt: skip
    """Coarse codes of the columns of a pair; one that was `requested` distinguishes more levels.

    `counts` are the weights of the codes of all columns.
    """
    sizes = _side_sizes((books[columns[0]], books[columns[1]]), requested)
    first, second = (
        coarse_codes(books[j], counts[j], size) for j, size in zip(columns, sizes, strict=True)
    )
    return first, second


def build_pair(
    columns: tuple[int, int], books: Sequence[Codebook], counts: Sequence[np.ndarray],
    codes: PairCodes, cells: np.ndarray, requested: LinearSides | None = None,
) -> PairTerm:  # fmt: skip
    """The term of a pair, from its coarse codes and the weights of its cells.

    A pair that was `requested` may be linear in some columns.
    """
    marginal_bases, positions, linear = [], [], requested or (False, False)
    for axis, (j, coarse) in enumerate(zip(columns, codes, strict=True)):
        category, weight = books[j].kind == "category", cells.sum(axis=1 - axis)
        positions.append(bin_means(coarse, books[j].nodes, counts[j]))
        if linear[axis]:
            marginal_bases.append(linear_marginal_basis(positions[axis], weight))
        else:
            marginal_bases.append(marginal_basis(weight, category))
    return PairTerm(
        columns, *codes, (marginal_bases[0], marginal_bases[1]), cells,
        (positions[0], positions[1]), linear,
    )  # fmt: skip


def bin_means(coarse: CoarseCodes, nodes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means of the values of a column in its coarse bins, which increase; none for a category.

    `nodes` and `counts` are those of its codes.
    """
    if not len(nodes):
        return nodes
    bins = coarse.of_code[1:].astype(np.int64)
    first = np.searchsorted(bins, np.arange(1, coarse.size))
    last = np.append(first[1:], len(bins)) - 1
    # Offsets from the first node of each bin: products of huge nodes would overflow.
    offset = nodes / 2 - nodes[first][bins - 1] / 2
    total = np.bincount(bins, counts[1:], coarse.size)[1:]
    means = np.bincount(bins, counts[1:] * offset, coarse.size)[1:] / np.maximum(total, 1e-300)
    return np.minimum(nodes[first] + 2 * means, nodes[last])


def _side_sizes(books: tuple[Codebook, Codebook], requested: LinearSides | None) -> tuple[int, int]:
    """Coarse codes of each column: levels as they are, what remains for numbers."""
    max_levels, max_cells = PAIRS.max_levels, PAIRS.max_cells
    if requested is not None:
        max_levels = PAIRS.max_requested_levels
        max_cells = PAIRS.max_cells_of_slopes if any(requested) else PAIRS.max_requested_cells
    categories = [book.kind == "category" for book in books]
    a, b = (
        min(book.n_codes, max_levels + 2) if category else book.n_codes
        for book, category in zip(books, categories, strict=True)
    )
    even = int(np.sqrt(PAIRS.max_cells))
    levels_last = categories[1] and not categories[0]
    if (a <= even and not levels_last) or (categories[0] and not categories[1]):
        return a, min(b, max(max_cells // a, 2), PAIRS.max_side)
    if b <= even or levels_last:
        return min(a, max(max_cells // b, 2), PAIRS.max_side), b
    return even, even
