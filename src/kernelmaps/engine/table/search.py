r"""Finding the bin among edges without a search: a cell, and what is left to compare.

Cells much finer than the bins cover the edges of a set, and a table says for each how many edges
lie before it. Two kinds of cells:

* uniform ones, ⌊(x − origin)·factor⌋, where edges are spread over the whole range;
* octaves of x − origin, each divided evenly, where edges crowd near the first one. The bits of a
  positive float are a piecewise-linear logarithm, so that its leading bits are the cell.

The arithmetic has the precision of the rows: the cell of x is a monotone function of x in any
precision, and x ≥ e ⇔ x ≥ t for the smallest number t ≥ e of that precision, so that the bins are
those of exact comparison. The cells are as fine as it takes to leave *one* threshold in each, so
that one comparison ends the search:

.. math:: b(x) = g[c(x)] + [x ≥ t_{g[c(x)] + 1}], \qquad g[c] = \#\{k : c(t_k) < c\}.

Where m > 1 thresholds share a cell, ⌈log₂(m + 1)⌉ comparisons do, as in any bisection.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .stored import LANES, Table, aligned, by_vector, starts_of

CELLS = 16  # most cells per threshold: more would not fit into a cache
_MAX_RECORD_BYTES = 2**28  # beyond (a million features), the search reads the edges themselves
_MAX_OCTAVE_BITS = 12  # bits that divide an octave into cells, fewer than this

# Numbers in a record: how the search ends.
NO_RECORDS = 0  # by bisection among the edges
THRESHOLD_RECORD = 2  # look-ups: the next threshold, and the bits of how many lie before
# Positions: the edge before, the next threshold, the bits of how many lie before, the edge after.
EDGES_RECORD = 4


class EdgeSearch(NamedTuple):
    """What the search reads: arrays by feature, then the tables that they point into.

    Cell ⌊(x − origin)·factor⌋ within [0, limit]; if shift > 0, bits(x − origin) >> shift less key.
    """

    key: np.ndarray  # int32
    limit: np.ndarray  # int32: last cell
    cell: np.ndarray  # int32: first cell
    edge: np.ndarray  # int32: first edge
    crowd: np.ndarray  # int32: most thresholds in a cell, of a vector's features
    before: np.ndarray  # int32: thresholds before each cell
    edges: np.ndarray  # T: e_0, thresholds, the end (see `_end`), numbers that no value passes
    exact: np.ndarray  # float64: the same without rounding
    # T [cell][record]: one look-up ends the search. Empty if a cell has more than one threshold, or
    # if the records would be too large.
    records: np.ndarray
    record: int  # numbers in a record: THRESHOLD_RECORD, EDGES_RECORD or NO_RECORDS
    shift: int


class CellParameters(NamedTuple):
    """Numbers by set: cell ⌊(x − origin)·factor⌋ up to `last`, of values within low … high."""

    origin: np.ndarray
    factor: np.ndarray
    last: np.ndarray
    low: np.ndarray
    high: np.ndarray


class CellGrid(NamedTuple):
    """Cells of one kind for all sets: the cell of each threshold, and their parameters."""

    of: list[np.ndarray]
    origin: np.ndarray
    factor: np.ndarray
    key: np.ndarray
    count: np.ndarray
    shift: int

    @property
    def crowd(self) -> np.ndarray:
        return np.array([np.unique(c, return_counts=True)[1].max(initial=0) for c in self.of])


def no_search(dtype: np.dtype) -> EdgeSearch:
    """Tables for bins that need no search."""
    none = np.zeros(1, np.int32)
    tables = none, np.zeros(1, dtype), np.zeros(1), np.zeros(0, dtype)
    return EdgeSearch(none, none, none, none, none, *tables, NO_RECORDS, 0)


@np.errstate(over="ignore")  # of edges that are farther apart than numbers reach
def search_of(table: Table, dtype: np.dtype) -> tuple[CellParameters, EdgeSearch]:
    """The search among a table's edges, for rows of precision `dtype`."""
    sets = [
        table.edges[begin : begin + bins + 1]
        for begin, bins in zip(table.edge_start, table.bins, strict=True)
    ]
    inner = [_not_below(e[1:-1], dtype) for e in sets]
    cells, crowd = _finest(inner, [e[:1].astype(dtype) for e in sets])
    padding = np.full(int(crowd.max()) + 2, np.inf, dtype)
    edges = [
        np.concatenate([e[:1].astype(dtype), t, _end(e, table.degree, dtype), padding])
        for e, t in zip(sets, inner, strict=True)
    ]
    exact = [np.concatenate([e[:-1], _end(e, table.degree, e.dtype), padding]) for e in sets]
    before = [
        np.searchsorted(of_thresholds, np.arange(count))
        for of_thresholds, count in zip(cells.of, cells.count, strict=True)
    ]
    floats = [cells.origin, cells.factor, cells.count - 1.0, table.clip_low, table.clip_high]
    fits = 4 * dtype.itemsize * cells.count.sum() <= _MAX_RECORD_BYTES
    by_record = fits and crowd.max() <= 1
    records = _records(before, edges, table.degree) if by_record else np.zeros((0, 0), dtype)
    of = table.set_of
    integers = [cells.key, cells.count - 1, starts_of(before), starts_of(edges)]
    most = by_vector(crowd[of]).reshape(-1, LANES).max(axis=1)
    key, limit, cell, edge = (by_vector(a[of].astype(np.int32)) for a in integers)
    search = EdgeSearch(
        key,
        limit,
        cell,
        edge,
        np.repeat(most, LANES).astype(np.int32),
        np.concatenate(before).astype(np.int32),
        np.concatenate(edges),
        np.concatenate(exact),
        records.reshape(-1),
        records.shape[1],
        cells.shift,
    )
    return CellParameters(*(np.asarray(a).astype(dtype) for a in floats)), search


def _records(before: list[np.ndarray], edges: list[np.ndarray], degree: int) -> np.ndarray:
    """What a value needs of its cell, side by side and within a line of the cache."""
    records = []
    for count, e in zip(before, edges, strict=True):
        bits = count.astype(f"i{e.itemsize}").view(e.dtype)
        if degree == 0:
            record: tuple[np.ndarray, ...] = e[count + 1], bits  # THRESHOLD_RECORD
        else:
            record = e[count], e[count + 1], bits, e[count + 2]  # EDGES_RECORD
        records.append(np.stack(record, axis=1))
    numbers = np.concatenate(records)
    out = aligned(numbers.size, numbers.dtype).reshape(numbers.shape)
    out[...] = numbers
    return out


def _end(edges: np.ndarray, degree: int, dtype: np.dtype) -> np.ndarray:
    """Right end of the last bin, and of the one after it if it were as wide: positions beyond it.

    A look-up has neither, since no value shall pass them.
    """
    if degree == 0:
        return np.zeros(0, dtype)
    left, right = _not_below(edges[-2:], dtype)
    return np.array([right, right + (right - left) if right > left else np.inf], dtype)


def _finest(inner: list[np.ndarray], start: list[np.ndarray]) -> tuple[CellGrid, np.ndarray]:
    """The kind that leaves fewer comparisons, or has fewer cells; with the crowd of each set."""
    uniform, octaves = _uniform_cells(inner), _octaves(inner, start)
    by_uniform, by_octave = uniform.crowd, octaves.crowd
    work = [int(np.ceil(np.log2(crowd + 1.0)).sum()) for crowd in (by_uniform, by_octave)]
    if (work[0], uniform.count.sum()) <= (work[1], octaves.count.sum()):
        return uniform, by_uniform
    return octaves, by_octave


def _uniform_cells(inner: list[np.ndarray]) -> CellGrid:
    """Cells no wider than the smallest gap, as far as their number allows."""
    origin, factor, count, of = [], [], [], []
    for t in inner:
        zero, span = t.dtype.type(0), np.ptp(t) if len(t) else 0
        gaps = np.diff(t)
        gap = gaps[gaps > 0].min(initial=np.inf)
        n = int(min(np.ceil(np.float64(span) / gap) + 1, CELLS * len(t))) if span > 0 else 1
        origin.append(t[0] if len(t) else zero)
        most = np.finfo(t.dtype).max  # of thresholds whose distance is next to nothing
        factor.append(min(t.dtype.type(n / span), most) if span > 0 else zero)
        count.append(n + 1)
        of.append(np.clip((t - origin[-1]) * factor[-1], zero, t.dtype.type(n)).astype(np.int64))
    none = np.zeros(len(inner), np.int64)
    return CellGrid(of, np.array(origin), np.array(factor), none, np.array(count), 0)


def _octaves(inner: list[np.ndarray], start: list[np.ndarray]) -> CellGrid:
    """Leading bits of the distances from the first edge: as many as their number allows."""
    dtype = inner[0].dtype
    mantissa, integers = (23, np.int32) if dtype == np.float32 else (52, np.int64)
    distance = [(t - e).astype(dtype).view(integers) for t, e in zip(inner, start, strict=True)]
    allowed = CELLS * sum(len(t) for t in inner) + len(inner)
    for octave_bits in range(_MAX_OCTAVE_BITS):
        shift = mantissa - octave_bits
        of = [(bits >> shift).astype(np.int64) for bits in distance]
        key = np.array([c[0] if len(c) else 0 for c in of])
        count = np.array([c[-1] - c[0] + 1 if len(c) else 1 for c in of])
        cells = CellGrid(
            [c - k for c, k in zip(of, key, strict=True)],
            np.concatenate(start), np.ones(len(inner), dtype), key, count, shift,
        )  # fmt: skip
        if count.sum() * 2 > allowed or cells.crowd.max() <= 1:
            break
    return cells


def _not_below(edges: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The smallest numbers of `dtype` that are not below the edges."""
    rounded = edges.astype(dtype)
    return np.where(rounded < edges, np.nextafter(rounded, dtype.type(np.inf)), rounded)
