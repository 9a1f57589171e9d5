"""Discretised columns (as `discrete=TRUE` in mgcv): codebooks, and the codes of their values.

Each column is coded by integers, a missing value among them: at most 256 for numbers, any number
for the levels of a category. Rows with one code share one value of the term (Li and Wood 2020).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._util.display import plain_number
from ..._util.schema import SchemaError, array, boolean, number, pair, record, saved, several, text
from ..._util.threads import map_in_threads
from ...data.columns import Column
from ...data.sources import sampled_rows
from ...engine.encode import encode_into
from ...engine.table import EDGES, Table

MISSING = 0  # code of a missing value, in every column
OTHER = 1  # code of a category's levels that have none of their own
SAMPLE_ROWS = 200_000  # rows that quantiles are taken from: these are off by 0.1 % of the rows


@dataclass(frozen=True)
class CodingOptions:
    """Constants of the codes of columns."""

    # Codes of numbers are bytes. A category of more codes is a large factor, whose levels are
    # eliminated from systems of equations; codes of its levels have two or four bytes.
    max_codes: int = 256
    # How often the outer bins of a column are halved: a tail may reach far, its effect with it.
    tail_halvings: int = 6
    # Levels of fewer rows share one coefficient: nothing tells the effect of a single row from
    # its noise, and names of rows would be as many levels as there are rows.
    min_level_rows: int = 3
    rounding_error: float = 1e-9  # compared with numbers and their range: seven digits above eps
    few_values: int = 1 << 16  # of a column, up to which NumPy's search finds their bins
    # Width of the outer bins, where nextafter(0) is too close for the engine.
    min_end_width: float = 1e-300


CODING = CodingOptions()


@record
class Codebook:
    """How the values of one column become codes.

    Numbers: code 0 is a missing value, code k + 1 the k-th bin, whose values are represented by
    ``nodes[k]``. Categories: code 0 is a missing value, code 1 a level without a code of its own
    (unseen in training, or of one or two rows), code k + 2 level k.

    Attributes
    ----------
    name : str
    kind : {"number", "category"}
    nodes : ndarray
        Means of the bins, increasing; empty for a category.
    edges : ndarray
        Bins begin here, the first one excepted; one fewer than nodes.
    levels : tuple of str
        Levels of a category; empty for numbers.
    exact : bool
        Whether every value of the training rows has a code of its own.
    training_range : tuple of two floats
        Of the training rows, a hundredth of its extent added at both ends: values beyond it are
        warned of. Infinite for categories.
    """

    name: str = saved(text())
    kind: str = saved(text(("number", "category")))
    nodes: np.ndarray = saved(array("f8", "nodes", least=0, increasing=True))
    edges: np.ndarray = saved(array("f8", "edges", least=0, increasing=True))
    levels: tuple[str, ...] = saved(several(text()))
    exact: bool = saved(boolean)
    training_range: tuple[float, float] = saved(
        pair(number(finite=False)), default=(-np.inf, np.inf)
    )

    def _check_state(self) -> None:
        is_number = self.kind == "number"
        bins_fit = len(self.edges) == max(len(self.nodes) - 1, 0)
        one_kind = not len(self.levels if is_number else self.nodes)
        if not (bins_fit and one_kind):
            raise SchemaError(f"the codes of column {self.name!r} are not as they should be")

    @property
    def n_codes(self) -> int:
        return len(self.nodes) + 1 if self.kind == "number" else len(self.levels) + 2

    @property
    def is_large(self) -> bool:
        """Whether the column is a category of so many levels that its codes are no bytes."""
        return self.kind == "category" and self.n_codes > CODING.max_codes

    @property
    def numbers_of_codes(self) -> np.ndarray:
        """What stands for each code among `numbers`: nodes, or positions of levels."""
        levels = np.arange(-1.0, len(self.levels))
        return np.append(np.nan, self.nodes if self.kind == "number" else levels)

    def quantiles(self, counts: np.ndarray, shares: Any) -> np.ndarray:
        """Nodes that reach these shares of the rows, whose codes have these weights."""
        reached = np.cumsum(counts[1:]) / max(counts[1:].sum(), 1e-300)
        return self.nodes[np.minimum(np.searchsorted(reached, shares), len(self.nodes) - 1)]

    def with_range(self, low: float, high: float) -> Codebook:
        """The same for training rows with other ends."""
        margin = (high - low) / 100
        ends = (low - margin, high + margin)
        return replace(self, training_range=ends) if low <= high else self

    def numbers(self, column: Column, owner: str) -> np.ndarray:
        """A column's rows as numbers: levels by their position, −1 for others; NaN if missing."""
        if self.kind == "category":
            codes = self.category_codes(column, owner)
            return np.where(codes == MISSING, np.nan, codes - (OTHER + 1.0))
        self.check(column, owner)
        return np.full(len(column), np.nan) if column.is_category else column.values

    def category_codes(self, column: Column, owner: str) -> np.ndarray:
        """Codes of the rows of a category."""
        self.check(column, owner)
        code = {level: k + 2 for k, level in enumerate(self.levels)}
        dtype = np.min_scalar_type(self.n_codes - 1)
        codes = [*(code.get(level, OTHER) for level in column.levels), MISSING]
        return np.array(codes, dtype)[column.codes]

    def check(self, column: Column, owner: str) -> None:
        """Refuse categories where numbers were trained on, and the reverse."""
        if column.is_category == (self.kind == "category") or not len(column):
            return
        if column.is_category and not (column.codes >= 0).any():
            return  # nothing but missing values
        in_fit, now = ("categories", "numbers") if self.kind == "category" else (
            "numbers", f"categories such as {column.levels[0]!r}",
        )  # fmt: skip
        raise ValueError(
            f"{owner}: column {self.name!r} holds {now}, but held {in_fit} in fit. Convert it, or "
            "list it in categorical_features before fitting."
        )

    def label(self, code: int) -> str:
        """The name of a code."""
        if code == MISSING:
            return "missing"
        if self.kind == "number":
            return plain_number(self.nodes[code - 1])
        return "other" if code == OTHER else self.levels[code - 2]


def value_range(values: np.ndarray) -> tuple[float, float]:
    """The least and the largest of some numbers, NaN aside; of none, (inf, -inf)."""
    least = np.fmin.reduce(values, initial=np.inf)
    return float(least), float(np.fmax.reduce(values, initial=-np.inf))


def encode_columns(
    books: Sequence[Codebook], columns: Sequence[Column], owner: str, n_jobs: int | None = None
) -> tuple[np.ndarray, ...]:
    """Codes of all columns."""

    def encode(j: int) -> np.ndarray:
        book, column = books[j], columns[j]
        if book.kind == "category":
            return book.category_codes(column, owner)
        book.check(column, owner)
        if column.is_category or not len(book.nodes):  # nothing but missing values
            return np.full(len(column), MISSING, np.uint8)
        codes = _find_bins(book.edges, column.values)
        codes += 1
        codes[np.isnan(column.values)] = MISSING
        return codes

    return tuple(map_in_threads(encode, range(len(books)), n_jobs))


def _find_bins(edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """How many of the edges are at most each value; anything for NaN.

    The engine finds bins without a search, which saves a fifth of a fit of three million rows of a
    file (`benchmarks/table_from_file.py`); few values are searched sooner than compiled code loads.
    """
    if len(values) <= CODING.few_values:
        return np.searchsorted(edges, values, side="right").astype(np.uint8)
    edges, zero = with_ends(edges), np.zeros(1)
    coef = np.zeros((len(edges) - 1, 1, 1))
    table = Table.build(EDGES, 0, [coef], [0], origin=zero, resolution=zero + 1, edges=[edges])
    bins = np.empty((len(values), 1), np.uint8)
    encode_into(table, values[:, None], (-np.inf, np.inf), 0, bins, n_jobs=1)
    return bins[:, 0]


def with_ends(edges: np.ndarray) -> np.ndarray:
    """Edges of bins, with those of the first and of the last one: values beyond are clipped."""
    if not len(edges):
        return np.array([0.0, 1.0])
    low, high = edges[:1], edges[-1:]
    begin = np.minimum(np.nextafter(low, -np.inf), low - CODING.min_end_width)
    end = np.maximum(np.nextafter(high, np.inf), high + CODING.min_end_width)
    return np.concatenate([begin, edges, end])


def fit_codebook(
    column: Column, weight: np.ndarray, frequency: bool = False, max_levels: int | None = None
) -> Codebook:
    """Codes for the values of rows of positive weight.

    Of categories, `frequency` says that an integer weight is a row that occurs so often, and
    `max_levels` is the largest number of levels, those of the most rows.
    """
    if column.is_category:
        return LevelCounts.from_column(column, weight, frequency).codebook(column.name, max_levels)
    values, positive = column.values, weight > 0
    if not positive.all():
        values, weight = values[positive], weight[positive]
    ends = value_range(values)
    if len(values) > SAMPLE_ROWS:
        rows = sampled_rows(len(values), SAMPLE_ROWS)
        values, weight = values[rows], weight[rows]
    if (weight == weight[:1]).all():  # a third of the time of sorting places
        ordered = np.sort(values)  # NaN last
    else:
        order = np.argsort(values, kind="stable")
        ordered, weight = values[order], weight[order]
    return _number_codebook(column.name, ordered, weight).with_range(*ends)


def _number_codebook(name: str, ordered: np.ndarray, weight: np.ndarray) -> Codebook:
    """Bins of sorted numbers: each value if they are few, else bins of nearly equal weight."""
    n = len(ordered) - int(np.count_nonzero(np.isnan(ordered)))
    ordered, weight = ordered[:n], weight[:n]
    if not n:
        return Codebook(name, "number", ordered, ordered, (), True)
    bounds = np.concatenate([[0], np.flatnonzero(_differ(ordered)) + 1, [n]])
    exact = len(bounds) <= CODING.max_codes  # one code is for missing values
    begins = bounds[1:-1]
    if not exact:  # bins of the same weight, but for the outer ones, which are halved repeatedly
        n_bins = CODING.max_codes - 1 - 2 * CODING.tail_halvings
        tail = 0.5 ** np.arange(1, CODING.tail_halvings + 1) / n_bins
        shares = np.sort(np.concatenate([np.arange(1, n_bins) / n_bins, tail, 1 - tail]))
        begins = bounds[_nearest_cuts(np.append(0, np.cumsum(weight))[bounds], shares)]
    low, high = ordered[begins - 1], ordered[begins]
    middle = 0.5 * low + 0.5 * high
    edges = np.where(middle > low, middle, high)  # of neighbouring numbers, the upper one
    begins = np.append(0, begins)
    nodes = ordered[begins]
    if not exact or (ordered[np.append(begins[1:], n) - 1] > nodes).any():
        nodes = np.add.reduceat(ordered * weight, begins) / np.add.reduceat(weight, begins)
    return Codebook(name, "number", nodes, edges, (), exact)


def _differ(ordered: np.ndarray) -> np.ndarray:
    """Which of sorted numbers are smaller than the next one, by more than a rounding error.

    Months of a computation are 1 + 1e-13, say, and 12 numbers. Errors are small compared with the
    numbers and with their range: seconds since 1970 differ by 1e-9 of themselves, amounts up to
    1e12 by 1e-12 of their range. They count only where the others are few enough to be codes.
    """
    with np.errstate(over="ignore"):
        gaps, extent = np.diff(ordered), min(ordered[-1] - ordered[0], np.finfo(float).max)
    share, max_gaps = CODING.rounding_error, CODING.max_codes - 2
    if np.count_nonzero(gaps > share * extent) > max_gaps:
        return gaps > 0
    size = np.maximum(abs(ordered[1:]), abs(ordered[:-1]))
    errors = np.maximum(share * np.minimum(size, extent), 512 * np.finfo(float).eps * extent)
    return gaps > (errors if np.count_nonzero(gaps > errors) <= max_gaps else 0)


def _nearest_cuts(below: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Where to cut sorted values so that bins begin as close to these shares as possible.

    `below` is the weight below each distinct value, and of all; the ends are no cuts. Of two places
    that are as close, the inner one is taken: the values −x have the mirrored bins.
    """
    total = below[-1]
    targets = shares * total
    right = np.clip(np.searchsorted(below, targets), 1, len(below) - 1)
    excess = (targets - below[right - 1]) - (below[right] - targets)  # positive: right is closer
    inner = np.where(shares < 0.5, excess > -1e-9 * total, excess > 1e-9 * total)
    is_cut = np.zeros(len(below), bool)
    is_cut[right - ~inner] = True
    return np.flatnonzero(is_cut[1:-1]) + 1


@dataclass(frozen=True)
class LevelCounts:
    """Weights of the levels of a category, and how many rows they have; sums merge."""

    weight: Counter[str]
    n_rows: Counter[str]

    @classmethod
    def from_column(cls, column: Column, weight: np.ndarray, frequency: bool) -> LevelCounts:
        """Those of rows of positive weight; `frequency`: integer weights count rows."""
        present = (column.codes >= 0) & (weight > 0)
        codes, weight, n_levels = column.codes[present], weight[present], len(column.levels)
        sums = np.bincount(codes, weight, n_levels)
        are_counts = frequency and bool((weight == np.rint(weight)).all())
        n_rows = np.bincount(codes, weight if are_counts else None, n_levels)
        used = np.flatnonzero(sums).tolist()
        return cls(
            Counter({column.levels[k]: float(sums[k]) for k in used}),
            Counter({column.levels[k]: float(n_rows[k]) for k in used}),
        )

    def __add__(self, other: LevelCounts) -> LevelCounts:
        return LevelCounts(self.weight + other.weight, self.n_rows + other.n_rows)

    def codebook(self, name: str, max_levels: int | None = None) -> Codebook:
        """Levels of three rows or more, the most frequent ones if there is a limit."""
        frequent = {level for level, _ in self.weight.most_common(max_levels)}
        levels = tuple(
            level
            for level in self.weight
            if level in frequent and self.n_rows[level] >= CODING.min_level_rows
        )
        empty = np.zeros(0)
        exact = len(levels) == len(self.weight)
        return Codebook(name, "category", empty, empty, levels, exact)
