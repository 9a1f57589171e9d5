r"""Pairs of columns: which ones matter, and their terms.

Columns are coded more coarsely for pairs, so that the codes of a pair are at most some thousand.
Their bins are even on an axis between ranks and values: bins of equal weight alone leave one for
the tail of a column, where its effects may be largest.

Pairs are ranked as FAST does (Lou, Caruana, Gehrke and Hooker 2013): with the main effects fitted,
:math:`\sum_{ab} R_{ab}^2 / (W_{ab} + κ)`, R and W the sums of residuals and of weights over the
pairs of codes, is about the drop in deviance that free cells would bring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...stats.pair_tables import pair_table
from ...threads import map_in_threads
from .bases import Basis, Side, side_of, tensor_basis
from .codebooks import OTHER, Codebook

_RANKING = 16  # codes of a column while pairs are ranked
_SHRINK = 10.0  # κ, in units of the mean weight of a row
_CELLS = 2500  # codes of a pair, at most
_FUNCTIONS = 400  # of a pair, at most
_BY_VALUE = 0.3  # share of the values, beside that of the ranks, in the axis of a pair
_LEVELS = 16  # levels of a category that a pair tells apart
_GRAIN = 65536


@dataclass(frozen=True)
class Coarse:
    """Fewer codes for a column.

    Attributes
    ----------
    of : ndarray of uint8
        Coarse code of each code; 0 stays the missing value.
    size : int
        Number of coarse codes.
    """

    of: np.ndarray
    size: int

    def summed(self, table: np.ndarray) -> np.ndarray:
        """Rows of a table that share a coarse code, added up."""
        return np.eye(self.size)[self.of].T @ table


@dataclass(frozen=True)
class PairTerm:
    """A pair's coarse codes and functions; pair code = first · second.size + second."""

    columns: tuple[int, int]
    first: Coarse
    second: Coarse
    sides: tuple[Side, Side]
    counts: np.ndarray

    def basis(self, most: int = _FUNCTIONS) -> Basis:
        """The smoothest functions of the pair."""
        return tensor_basis(*self.sides, self.counts, min(most, _FUNCTIONS))

    def codes(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Pair codes of rows, from the codes of all columns."""
        own, other = (codes[j] for j in self.columns)
        kind = np.uint8 if self.first.size * self.second.size <= 256 else np.uint16
        left = (self.first.of.astype(kind) * kind(self.second.size))[own]
        return left + self.second.of.astype(kind)[other]


def coarse_codes(book: Codebook, counts: np.ndarray, most: int) -> Coarse:
    """At most `most` codes: even bins for numbers, frequent levels of a category."""
    if book.kind == "category":
        return _frequent(counts, most)
    own = counts[1:]
    bins = min(len(own), most - 1)
    if bins == len(own):
        return Coarse(np.arange(len(counts), dtype=np.uint8), len(counts))
    rank = (np.cumsum(own) - 0.5 * own) / max(own.sum(), 1e-300)
    value = (book.nodes - book.nodes[0]) / (book.nodes[-1] - book.nodes[0])
    middle = (1 - _BY_VALUE) * rank + _BY_VALUE * value
    found = np.minimum((middle * bins).astype(np.int64), bins - 1)
    _, found = np.unique(found, return_inverse=True)
    return Coarse(np.concatenate([[0], found + 1]).astype(np.uint8), int(found.max()) + 2)


def _frequent(counts: np.ndarray, most: int) -> Coarse:
    """Missing, other, and the most frequent levels in their order."""
    levels = np.arange(OTHER + 1, len(counts))
    kept = np.sort(levels[np.argsort(-counts[levels], kind="stable")[: most - 2]])
    of = np.full(len(counts), OTHER, np.uint8)
    of[0] = 0
    of[kept] = np.arange(2, len(kept) + 2)
    return Coarse(of, len(kept) + 2)


def coarse_for_ranking(
    books: Sequence[Codebook], counts: Sequence[np.ndarray], columns: Sequence[int]
) -> dict[int, Coarse]:
    """Codes of some columns while pairs are ranked."""
    return {j: coarse_codes(books[j], counts[j], _RANKING) for j in columns}


def residual_tables(
    pairs: Sequence[tuple[int, int]], coarse: dict[int, Coarse], codes: Sequence[np.ndarray],
    slope: np.ndarray, bend: np.ndarray, n_jobs: int | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """Sums of curvatures and of slopes over the coarse codes of pairs of columns.

    Parameters
    ----------
    pairs : sequence of (int, int)
        The pairs.
    coarse, codes
        Of the columns.
    slope, bend : ndarray of shape (n_samples,)
        Weighted derivatives of the losses at the fitted scores, and curvatures.
    """
    small = {j: coarse[j].of[codes[j]] for j in {j for pair in pairs for j in pair}}

    def sums(pair: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        (own, other), (n, m) = (small[j] for j in pair), (coarse[j].size for j in pair)
        return pair_table(own, other, bend, (n, m)), pair_table(own, other, slope, (n, m))

    return map_in_threads(sums, pairs, n_jobs, max(1, _GRAIN // max(len(bend), 1)))


def promising(
    pairs: Sequence[tuple[int, int]], tables: Sequence[tuple[np.ndarray, np.ndarray]],
    mean_bend: float, dispersion: float, certain: float = 0.0,
) -> list[tuple[tuple[int, int], float]]:  # fmt: skip
    r"""Pairs whose gain is beyond what chance explains, with the excess, the largest first.

    Without an effect of the pair, R of a cell has the variance φW and, as sums of few rows do, a
    fourth moment of about :math:`φ^2 (3 W^2 + W)`. So a gain of :math:`R^2 / φ(W + κ)` has the mean
    :math:`W/(W + κ)` and the variance :math:`(2W^2 + W)/(W + κ)^2`: cells of few rows prove little.
    The main effects have used up a row and a column of the table. `certain` is the number of
    standard deviations by which a gain must exceed its mean.
    """
    shrink, found = _SHRINK * mean_bend, []
    for pair, (weights, residuals) in zip(pairs, tables, strict=True):
        seen = weights > 0
        cells = np.count_nonzero(seen)
        free = cells - seen.any(axis=1).sum() - seen.any(axis=0).sum() + 1
        own = weights[seen]
        share = max(free, 0) / max(cells, 1)
        gain = np.sum(residuals[seen] ** 2 / (own + shrink)) / dispersion
        chance = share * np.sum(own / (own + shrink))
        spread = np.sqrt(np.sum((2 * own**2 + own) / (own + shrink) ** 2))
        bar = certain * spread + certain**2 / 6 / (own.min(initial=np.inf) + shrink)
        if free > 0 and gain - chance > bar:
            found.append((pair, float(gain - chance)))
    return sorted(found, key=lambda item: -item[1])


def build_pair(
    columns: tuple[int, int],
    books: Sequence[Codebook],
    counts: Sequence[np.ndarray],
    weights: np.ndarray,
) -> PairTerm:
    """The term of a pair, its cells shared out between the two columns.

    `counts` are the weights of the codes of all columns, `weights` those of this pair's codes.
    """
    j, k = columns
    sizes = _shares(books[j], books[k])
    first = coarse_codes(books[j], counts[j], sizes[0])
    second = coarse_codes(books[k], counts[k], sizes[1])
    cells = first.summed(second.summed(weights.T).T)
    own, other = (books[at].kind == "category" for at in columns)
    sides = side_of(cells.sum(axis=1), own), side_of(cells.sum(axis=0), other)
    return PairTerm(columns, first, second, sides, cells)


def _shares(first: Codebook, second: Codebook) -> tuple[int, int]:
    """Coarse codes of each side: levels as they are, the rest for numbers."""
    wanted = [
        min(book.n_codes, _LEVELS + 2) if book.kind == "category" else book.n_codes
        for book in (first, second)
    ]
    even = int(np.sqrt(_CELLS))
    if wanted[0] <= even:
        return wanted[0], min(wanted[1], max(_CELLS // wanted[0], 2), 64)
    if wanted[1] <= even:
        return min(wanted[0], max(_CELLS // wanted[1], 2), 64), wanted[1]
    return even, even
