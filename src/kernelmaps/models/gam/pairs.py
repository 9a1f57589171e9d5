"""Pairs of columns: sums over their codes for tests, and their terms.

Columns are coded more coarsely for pairs, so that a pair has at most some thousand codes. The bins
are even on an axis between ranks and values: bins of equal weight alone would leave one for the
tail of a column, where its effects may be largest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...stats.pair_tables import tables_of_pairs
from ..rows.basis import TermBasis
from .bases import (
    compute_differences,
    decompose_smoothest,
    empty_basis,
    interpolate_axes,
    level_indicators,
    orthogonal_complement,
    splines,
    with_missing_code,
)
from .codebooks import OTHER, Codebook
from .terms import LinearSides, Pair


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
    marginal_splines: int = 22  # of each column
    # Penalty of a straight line, beside those of the other column, whose mean is one: so little
    # that the other column decides, and not zero, where both are straight lines.
    line_penalty: float = 1e-3
    # The n smoothest functions are sought among 3n + 16 products of the columns' functions.
    candidates_factor: int = 3
    candidates_offset: int = 16


PAIRS = PairOptions()


class CoarseCodes(NamedTuple):
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


PairCodes = tuple[CoarseCodes, CoarseCodes]


class MarginalBasis(NamedTuple):
    """The marginal basis of a pair in one of its columns: centred functions, diagonal penalty.

    Attributes
    ----------
    functions : ndarray of shape (n_codes, n_functions)
    penalty : ndarray of shape (n_functions,)
    """

    functions: np.ndarray
    penalty: np.ndarray


@dataclass(frozen=True)
class PairTerm:
    """A pair's coarse codes and functions; pair code = a·n_b + b for coarse codes a and b.

    `positions` are the means of the coarse bins of both columns; a category has none. `linear` are
    the columns that the pair is linear in.
    """

    columns: Pair
    coarse: PairCodes
    marginal_bases: tuple[MarginalBasis, MarginalBasis]
    counts: np.ndarray
    positions: tuple[np.ndarray, np.ndarray]
    linear: LinearSides

    def basis(self, n_functions: int = PAIRS.max_functions) -> TermBasis:
        """The smoothest functions of the pair."""
        n_functions = min(n_functions, PAIRS.max_functions)
        return tensor_basis(*self.marginal_bases, self.counts, n_functions)

    def codes(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Pair codes of rows, from the codes of all columns."""
        (left, right), (j, k) = self.coarse, self.columns
        dtype = np.uint8 if left.size * right.size <= 256 else np.uint16
        row_start = left.of_code.astype(dtype) * dtype(right.size)
        return row_start[codes[j]] + right.of_code.astype(dtype)[codes[k]]


def coarse_codes(book: Codebook, counts: np.ndarray, max_codes: int) -> CoarseCodes:
    """At most `max_codes` codes: even bins for numbers, frequent levels of a category."""
    if book.kind == "category":  # missing, other, and the most frequent levels in their order
        levels = np.arange(OTHER + 1, len(counts))
        frequent = np.argsort(-counts[levels], kind="stable")[: max_codes - 2]
        coarse = np.full(len(counts), OTHER, np.uint8)
        coarse[0] = 0
        coarse[np.sort(levels[frequent])] = np.arange(2, len(frequent) + 2)
        return CoarseCodes(coarse, len(frequent) + 2)
    counts = counts[1:]
    n_bins = min(len(counts), max_codes - 1)
    if n_bins == len(counts):
        return CoarseCodes(np.arange(n_bins + 1, dtype=np.uint8), n_bins + 1)
    rank = (np.cumsum(counts) - 0.5 * counts) / max(counts.sum(), 1e-300)
    value = (book.nodes - book.nodes[0]) / (book.nodes[-1] - book.nodes[0])
    bins = np.minimum((interpolate_axes(rank, value) * n_bins).astype(np.int64), n_bins - 1)
    _, bins = np.unique(bins, return_inverse=True)
    return CoarseCodes(np.concatenate([[0], bins + 1]).astype(np.uint8), int(bins.max()) + 2)


def sums_by_pair(
    pairs: Sequence[Pair], coarse: Mapping[int, CoarseCodes], codes: Sequence[np.ndarray],
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


def pair_codes(
    columns: Pair, books: Sequence[Codebook], counts: Sequence[np.ndarray],
    requested: LinearSides | None,
) -> PairCodes:  # fmt: skip
    """Coarse codes of the columns of a pair: levels as they are, what remains for numbers.

    A pair that was `requested` distinguishes more levels. `counts` are the weights of the codes of
    all columns.
    """
    max_levels, max_cells = PAIRS.max_levels, PAIRS.max_cells
    if requested is not None:
        max_levels = PAIRS.max_requested_levels
        max_cells = PAIRS.max_cells_of_slopes if any(requested) else PAIRS.max_requested_cells
    categories = [books[j].kind == "category" for j in columns]
    a, b = (
        min(books[j].n_codes, max_levels + 2) if category else books[j].n_codes
        for j, category in zip(columns, categories, strict=True)
    )
    even = int(np.sqrt(PAIRS.max_cells))
    levels_last = categories[1] and not categories[0]
    if (a <= even and not levels_last) or (categories[0] and not categories[1]):
        b = min(b, max(max_cells // a, 2), PAIRS.max_side)
    elif b <= even or levels_last:
        a = min(a, max(max_cells // b, 2), PAIRS.max_side)
    else:
        a = b = even
    j, k = columns
    return coarse_codes(books[j], counts[j], a), coarse_codes(books[k], counts[k], b)


def build_pair(
    columns: Pair, books: Sequence[Codebook], counts: Sequence[np.ndarray], codes: PairCodes,
    cells: np.ndarray, linear: LinearSides | None,
) -> PairTerm:  # fmt: skip
    """The term of a pair, from its coarse codes and the weights of its cells."""

    def build_side(axis: int) -> tuple[MarginalBasis, np.ndarray]:
        book, weight = books[columns[axis]], cells.sum(axis=1 - axis)
        position = bin_means(codes[axis], book.nodes, counts[columns[axis]])
        if linear and linear[axis]:
            return linear_marginal_basis(position, weight), position
        return marginal_basis(weight, book.kind == "category"), position

    (row_basis, row_means), (column_basis, column_means) = build_side(0), build_side(1)
    return PairTerm(
        columns, codes, (row_basis, column_basis), cells, (row_means, column_means),
        linear or (False, False),
    )  # fmt: skip


def bin_means(coarse: CoarseCodes, nodes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means of the values of a column in its coarse bins, which increase; none for a category.

    `nodes` and `counts` are those of its codes.
    """
    if not len(nodes):
        return nodes
    bins = coarse.of_code[1:].astype(np.int64)
    begin = np.searchsorted(bins, np.arange(1, coarse.size))
    last = np.append(begin[1:], len(bins)) - 1
    # Offsets from the first node of each bin: products of huge nodes would overflow.
    offset = nodes / 2 - nodes[begin][bins - 1] / 2
    total = np.bincount(bins, counts[1:], coarse.size)[1:]
    means = np.bincount(bins, counts[1:] * offset, coarse.size)[1:] / np.maximum(total, 1e-300)
    return np.minimum(nodes[begin] + 2 * means, nodes[last])


def marginal_basis(counts: np.ndarray, category: bool) -> MarginalBasis:
    """Functions of one column of a pair, from the weights of its codes.

    First differences are penalised: their null space, the constants, is removed by centring, so
    that one smoothing parameter can shrink a pair to nothing.
    """
    if category:
        raw = level_indicators(counts)
        penalty = np.eye(raw.shape[1])
    else:
        n_bins, n_splines = len(counts) - 1, PAIRS.marginal_splines
        position = (np.arange(n_bins) + 0.5) / max(n_bins, 1)
        curve = np.eye(n_bins) if n_bins <= n_splines else splines(position, n_splines, 3)
        raw = with_missing_code(curve, counts[0] > 0)
        size, penalty = curve.shape[1], np.eye(raw.shape[1])
        differences = compute_differences(np.ones(max(size - 1, 0)), 1)
        penalty[:size, :size] = differences.T @ differences
    centring = orthogonal_complement(counts @ raw / max(float(counts.sum()), 1e-300))
    values, rotation = np.linalg.eigh(centring.T @ penalty @ centring)
    functions = np.where((counts > 0)[:, None], raw @ (centring @ rotation), 0.0)
    return MarginalBasis(functions, values / max(values.mean() if len(values) else 0.0, 1e-300))


def linear_marginal_basis(position: np.ndarray, counts: np.ndarray) -> MarginalBasis:
    """The straight line as the one function of a column of a pair, by the positions of its bins."""
    share = counts[1:] / max(float(counts[1:].sum()), 1e-300)
    centred = position - share @ position
    spread = np.sqrt(share @ centred**2)
    line = np.concatenate([[0.0], centred / spread if spread > 0 else 0 * centred])
    return MarginalBasis(line[:, None], np.full(1, PAIRS.line_penalty))


def tensor_basis(
    left: MarginalBasis, right: MarginalBasis, counts: np.ndarray, max_functions: int
) -> TermBasis:
    r"""Products of the functions of two columns; code a·n_b + b stands for the pair (a, b).

    Their penalty, :math:`S_a ⊗ I + I ⊗ S_b`, is diagonal. Of all products only the smoothest
    combinations are kept: in coordinates where they are orthonormal over the rows as well, the
    others are those that the penalty would leave least of (as in thin-plate regression splines,
    Wood 2003). So fine marginal bases need no more coefficients than coarse ones. They are sought
    among about three times as many products, those with the largest variance for their penalty.
    """
    total = max(float(counts.sum()), 1e-300)
    penalty = np.add.outer(left.penalty, right.penalty)
    means, variances = _product_moments(left, right, counts)
    if not variances.sum() > 0:
        return empty_basis(counts.size)
    order = np.argsort(-variances / penalty, axis=None, kind="stable")
    candidates = order[: PAIRS.candidates_factor * max_functions + PAIRS.candidates_offset]
    a, b = np.unravel_index(candidates, variances.shape)
    scale = 1 / np.sqrt(penalty[a, b])
    cells = np.nonzero(counts)  # most pairs have many cells without rows
    products = left.functions[np.ix_(cells[0], a)] * right.functions[np.ix_(cells[1], b)]
    rows = np.sqrt(counts[cells] / total)[:, None] * ((products - means[a, b]) * scale)
    smoothest, rotation = decompose_smoothest(rows.T @ rows, max_functions)
    rotation *= scale[:, None]
    # Sums of products in all cells, over one column at a time: the products themselves would take
    # several times as long.
    weights = np.zeros((*variances.shape, len(smoothest)))
    weights[a, b] = rotation
    right_sums = np.tensordot(right.functions, weights, (1, 1))
    values = np.tensordot(left.functions, right_sums, (1, 1)).reshape(counts.size, -1)
    values -= means[a, b] @ rotation
    unit = _product_unit(penalty, variances)
    return TermBasis(values, 1 / (unit * smoothest), np.zeros(len(smoothest), np.int64))


def new_level_variances(
    levels: MarginalBasis, other: MarginalBasis, counts: np.ndarray
) -> np.ndarray:
    """Variances that the penalty of a pair allows the functions of `other` for one more level.

    They are for a smoothing parameter and a dispersion of one; `counts` are the weights of the
    cells, those of a level in a row.
    """
    penalty = np.add.outer(levels.penalty, other.penalty)
    _, variances = _product_moments(levels, other, counts)
    if not variances.sum() > 0:
        return np.zeros(len(other.penalty))
    return _product_unit(penalty, variances) / penalty.mean(axis=0)


def _product_moments(
    left: MarginalBasis, right: MarginalBasis, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances over the rows of the products of the functions of two columns."""
    total = max(float(counts.sum()), 1e-300)
    means = left.functions.T @ counts @ right.functions / total
    return means, (left.functions**2).T @ counts @ right.functions**2 / total - means**2


def _product_unit(penalty: np.ndarray, variances: np.ndarray) -> float:
    """The penalty of products that counts as one."""
    return float(penalty.sum() / variances.sum())
