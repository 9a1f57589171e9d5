"""Codes of columns: at most 256 for each, a missing value among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...data.frames import Column
from ...engine import Spec
from ...engine.encode import encode_within
from ...engine.piecewise import spec_of
from ...engine.table import EDGES, Table
from ...schema import SchemaError, anything, array, boolean, record, saved, text

MISSING = 0  # code of a missing value, in every column
OTHER = 1  # code of a category's levels that have none of their own
_CODES = 256
SAMPLE = 200_000  # rows that quantiles are taken from
_HALVED = 6  # how often the outer bins of a column are halved
_ROWS = 1 << 15  # whose codes are found at a time
_TOGETHER = 3  # rows whose mean is saved as it is, as is a value or a level that so many share
_PAIRED = 2  # rows that share a whole number of a small range, where it is kept as it is
_VALUES = 1000  # that tell how many rows share one
_APART = 1e-300  # least width of the outer bins: next to zero there is no room for cells


@record
class Codebook:
    """How the values of one column become codes.

    Numbers: code 0 is a missing value, code k + 1 the k-th bin, whose values are represented by
    ``nodes[k]``. Categories: code 0 is a missing value, code 1 a level without a code of its own
    (unseen in training, of one or two rows, or beyond the 254 most frequent), code k + 2 level k.

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
        Whether every value of the training rows has a code of its own. Of other numbers, nothing
        that is saved is the value of a single row.
    """

    name: str = saved(text())
    kind: str = saved(text(("number", "category")))
    nodes: np.ndarray = saved(array("f8", "nodes", least=0))
    edges: np.ndarray = saved(array("f8", "edges", least=0))
    levels: tuple[str, ...] = saved(anything)
    exact: bool = saved(boolean)

    def _check_state(self) -> None:
        if len(self.edges) != max(len(self.nodes) - 1, 0) or (np.diff(self.nodes) <= 0).any():
            raise SchemaError(f"the bins of column {self.name!r} are not in order")
        if (np.diff(self.edges) <= 0).any() or self.n_codes > _CODES:
            raise SchemaError(f"the codes of column {self.name!r} are not as they should be")
        named = isinstance(self.levels, tuple) and all(isinstance(l, str) for l in self.levels)
        if (
            not named
            or (self.levels and self.kind == "number")
            or (len(self.nodes) and self.kind == "category")
        ):
            raise SchemaError(f"the levels of column {self.name!r} are not as they should be")

    @property
    def n_codes(self) -> int:
        return len(self.nodes) + 1 if self.kind == "number" else len(self.levels) + 2

    def numbers(self, column: Column, owner: str) -> np.ndarray:
        """A column's rows as numbers: levels by their position, −1 for others; NaN if missing."""
        self.check(column, owner)
        if self.kind == "number":
            return np.full(len(column), np.nan) if column.is_category else column.values
        return self.level_numbers(column.levels)[column.codes]

    def level_numbers(self, levels: list[str]) -> np.ndarray:
        """Positions of levels by name, −1 for others; one entry more, NaN, for a missing value."""
        codes = self.level_codes(levels)
        return np.where(codes == MISSING, np.nan, codes - (OTHER + 1.0))

    def level_codes(self, levels: list[str]) -> np.ndarray:
        """Codes of levels by name; one entry more, the last, for a missing value."""
        place = {level: k + 2 for k, level in enumerate(self.levels)}
        found = [place.get(level, OTHER) for level in levels]
        return np.array([*found, MISSING], dtype=np.uint8)

    def check(self, column: Column, owner: str) -> None:
        """Refuse categories where numbers were trained on, and the reverse."""
        if column.is_category == (self.kind == "category") or not len(column):
            return
        if column.is_category and not (column.codes >= 0).any():
            return  # nothing but gaps
        seen, found = ("categories", "numbers") if self.kind == "category" else (
            "numbers", f"categories such as {column.levels[0]!r}",
        )  # fmt: skip
        raise ValueError(
            f"{owner}: column {self.name!r} holds {found}, but held {seen} in fit. Convert it, or "
            "list it in categorical_features before fitting."
        )

    def label(self, code: int) -> str:
        """A code in words."""
        if code == MISSING:
            return "missing"
        if self.kind == "number":
            return f"{self.nodes[code - 1]:.6g}"
        return "other" if code == OTHER else self.levels[code - 2]


def encode_columns(
    books: Sequence[Codebook], columns: Sequence[Column], owner: str, n_jobs: int | None = None
) -> tuple[np.ndarray, ...]:
    """Codes of all columns; those of the numbers are found together."""
    out: list = [None] * len(books)
    numbers = []
    for j, (book, column) in enumerate(zip(books, columns, strict=True)):
        book.check(column, owner)
        if book.kind == "category":
            out[j] = book.level_codes(column.levels)[column.codes]
        elif column.is_category or not len(book.nodes):  # nothing but gaps
            out[j] = np.full(len(column), MISSING, np.uint8)
        else:
            numbers.append(j)
    if numbers:
        values = [columns[j].values for j in numbers]
        for j, codes in zip(numbers, _codes_of([books[j] for j in numbers], values, n_jobs)):
            out[j] = codes
    return tuple(out)


def _codes_of(
    books: Sequence[Codebook], values: Sequence[np.ndarray], n_jobs: int | None
) -> list[np.ndarray]:
    """Codes of numbers, by the finder of the engine, some rows of all columns at a time."""
    spec, n = _search_of(books), len(values[0])
    out = [np.empty(n, np.uint8) for _ in books]
    for begin in range(0, n, _ROWS):
        rows = slice(begin, begin + _ROWS)
        block = np.stack([own[rows] for own in values], axis=1)
        found, inside = encode_within(spec, block, -np.inf, np.inf, n_jobs=n_jobs)
        found += 1
        if not inside:  # NaN
            found[np.isnan(block)] = MISSING
        for own, codes in zip(out, found.T, strict=True):
            own[rows] = codes
    return out


def _search_of(books: Sequence[Codebook]) -> Spec:
    """A table of the engine whose bins are those of some codebooks."""
    edges = [with_ends(book.edges) for book in books]
    none = np.zeros(len(books))
    return spec_of(
        Table.build(
            EDGES, 0, [np.zeros((len(own) - 1, 1, 1)) for own in edges], np.arange(len(books)),
            lo=none, scale=none + 1, edges=edges,
        )
    )  # fmt: skip


def with_ends(edges: np.ndarray) -> np.ndarray:
    """Edges of bins, with those of the first and of the last one: values beyond are clipped."""
    if not len(edges):
        return np.array([0.0, 1.0])
    first, last = edges[:1], edges[-1:]
    begin = np.minimum(np.nextafter(first, -np.inf), first - _APART)
    return np.concatenate([begin, edges, np.maximum(np.nextafter(last, np.inf), last + _APART)])


def fit_codebook(column: Column, weight: np.ndarray) -> Codebook:
    """Codes for the values of rows of positive weight."""
    taken = weight > 0
    if column.is_category:
        return _of_levels(column, column.codes[taken], weight[taken])
    values, own = (column.values, weight) if taken.all() else (column.values[taken], weight[taken])
    if len(values) > SAMPLE:
        rows = np.linspace(0, len(values) - 1, SAMPLE).astype(np.int64)
        values, own = values[rows], own[rows]
    if len(own) and own.min() == own.max():
        return _of_numbers(column.name, np.sort(values), None)
    order = np.argsort(values, kind="stable")  # NaN last
    return _of_numbers(column.name, values[order], own[order])


def _of_numbers(name: str, ordered: np.ndarray, weight: np.ndarray | None) -> Codebook:
    ordered = ordered[: len(ordered) - int(np.count_nonzero(np.isnan(ordered)))]
    if not len(ordered):
        return Codebook(name, "number", ordered, ordered, (), True)
    weight = np.ones(len(ordered)) if weight is None else weight[: len(ordered)]
    reached, rows = np.cumsum(weight), _rows_counted(weight)
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(ordered) > 0) + 1, [len(ordered)]])
    usual = _usual_count(bounds, np.cumsum(rows))
    shared = usual >= _TOGETHER  # by rows: a value says little about one of them
    paired = usual >= _PAIRED  # else it may number the rows
    most = _CODES - 1  # bins: one code is for missing values
    if len(bounds) <= most + 1 and (shared or (paired and _few_whole_numbers(ordered))):
        distinct = ordered[bounds[:-1]]
        return Codebook(name, "number", distinct, _between(distinct[:-1], distinct[1:]), (), True)
    if not shared:
        most = max(min(most, int(rows.sum() / (_TOGETHER * usual))), 1)
    wanted = _shares(most) * reached[-1]
    cuts = ordered[np.minimum(np.searchsorted(reached, wanted, side="right"), len(ordered) - 1)]
    begins = np.searchsorted(ordered, np.unique(cuts[cuts > ordered[0]]))
    edges, begins = _between(ordered[begins - 1], ordered[begins]), np.append(0, begins)
    nodes = np.add.reduceat(ordered * weight, begins) / np.add.reduceat(weight, begins)
    if not shared:
        alone = np.add.reduceat(rows, begins) < _TOGETHER * usual
        nodes = np.where(alone, _rounded(nodes), nodes)
    return Codebook(name, "number", nodes, edges, (), False)


def _rows_counted(weight: np.ndarray) -> np.ndarray:
    """How often each row counts as a row.

    A whole number as a weight is a row that occurs so often; other weights do not count rows.
    """
    repeated = bool((weight == np.rint(weight)).all())
    return weight if repeated else np.ones(len(weight))


def _usual_count(bounds: np.ndarray, reached: np.ndarray) -> float:
    """Median number of rows that share a value, from some values.

    `bounds` are where the rows of each value begin, and where the last ones end; `reached` counts
    the rows up to each.
    """
    some = np.arange(0, len(bounds) - 1, 1 + len(bounds) // _VALUES)
    first, last = bounds[some], bounds[some + 1]
    below = np.where(first > 0, reached[first - 1], 0.0)
    return float(np.sort(reached[last - 1] - below)[len(some) // 2])


def _few_whole_numbers(ordered: np.ndarray) -> bool:
    """Whether values are whole numbers of a small range: years, ages, counts."""
    return bool(ordered[-1] - ordered[0] < _CODES and (ordered == np.rint(ordered)).all())


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Numbers above `low` and at most `high`: in the middle, unless these are neighbours."""
    middle = 0.5 * low + 0.5 * high
    return np.where(middle > low, middle, high)


def _rounded(nodes: np.ndarray) -> np.ndarray:
    """Numbers that differ from increasing ones by at most a thirtieth of the distance to the next.

    They lie in the middle of the cells of a grid, where whole and other round numbers do not.
    """
    gaps = np.diff(nodes)
    if not len(gaps):
        return nodes
    near = np.minimum(np.append(gaps[:1], gaps), np.append(gaps, gaps[-1:]))
    step = 2.0 ** np.floor(np.log2(near / 16))
    return np.where(np.isfinite(step), (np.floor(nodes / step) + 0.5) * step, nodes)


def _shares(most: int) -> np.ndarray:
    """Shares of the weight below the edges of at most so many bins.

    All bins have the same, but for the outer ones, which are halved again and again: a column's
    tail may reach far, and its effect with it.
    """
    halved = min(_HALVED, most // 4)
    bins = most - 2 * halved
    tail = 0.5 ** np.arange(1, halved + 1) / bins
    return np.sort(np.concatenate([np.arange(1, bins) / bins, tail, 1 - tail]))


def _of_levels(column: Column, codes: np.ndarray, weight: np.ndarray) -> Codebook:
    """The most frequent levels of three rows or more: what one row has alone is no level."""
    known = codes >= 0
    counts = np.bincount(codes[known], weight[known], len(column.levels))
    order = np.argsort(-counts, kind="stable")[: _CODES - 2]
    held = np.bincount(codes[known], _rows_counted(weight[known]), len(counts))
    kept = np.sort(order[held[order] >= _TOGETHER])
    levels = tuple(column.levels[k] for k in kept)
    none = np.zeros(0)
    exact = len(kept) == np.count_nonzero(counts)
    return Codebook(column.name, "category", none, none, levels, exact)
