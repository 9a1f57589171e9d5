r"""Where an encoder looks: edges, cells and thresholds of every feature, laid out for vectors.

Uneven bins are found as in :mod:`.guide`, with two differences that let sixteen values be handled
at a time. The arithmetic has the precision of the rows: the cell of x is a monotone function of x
in any precision, and x ≥ e ⇔ x ≥ t for the smallest number t ≥ e of that precision, so that the
bins are those of exact comparison. And the cells are as fine as it takes to leave *one* threshold
in each, so that one comparison ends the search:

.. math:: b(x) = g[c(x)] + [x ≥ t_{g[c(x)] + 1}], \qquad g[c] = \#\{k : c(t_k) < c\}.

Where m > 1 thresholds share a cell, ⌈log₂(m + 1)⌉ comparisons do, as in any bisection.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .spec import Spec
from .table import AFFINE, EDGES, Table

__all__ = ["LANES", "Places", "by_vector", "places_of"]

LANES = 16  # values that are handled at a time
_CELLS = 16  # at most, per threshold
_TILE_BYTES = 2**15  # of tables, that a first-level cache holds beside the rows


class Places(NamedTuple):
    """Arrays by feature, padded to whole vectors, then the tables that they point into.

    Even bins: position t = (x − lo)·scale within [first, final]. Uneven ones: x within [low, high],
    cell ⌊(x − origin)·factor⌋ within [0, last], or bits(x − origin) >> shift less key if shift > 0.
    """

    even: bool
    lo: np.ndarray  # float64
    scale: np.ndarray
    first: np.ndarray
    final: np.ndarray
    origin: np.ndarray  # of the rows' precision
    factor: np.ndarray
    last: np.ndarray
    low: np.ndarray
    high: np.ndarray
    key: np.ndarray  # int32
    limit: np.ndarray
    cell_start: np.ndarray
    edge_start: np.ndarray
    crowd: np.ndarray  # int64 by vector: most thresholds in a cell of its features
    guide: np.ndarray  # uint16
    edges: np.ndarray  # e_0, thresholds, then numbers that no value passes
    pairs: np.ndarray  # int64: threshold (float32) and count of each cell, if it has one at most
    shift: int
    tile: int  # features whose tables are used together


class Cells(NamedTuple):
    """Cells of one kind for all sets: of each threshold, and what they are computed with."""

    of: list[np.ndarray]
    origin: np.ndarray
    factor: np.ndarray
    key: np.ndarray
    count: np.ndarray
    shift: int

    @property
    def crowd(self) -> np.ndarray:
        return np.array([np.unique(c, return_counts=True)[1].max(initial=0) for c in self.of])


@lru_cache(maxsize=16)
def places_of(spec: Spec, table: Table) -> Places:
    """Places for rows of the precision of the table's coefficients (`spec` is its identity)."""
    if table.signed or table.binning not in (AFFINE, EDGES):
        raise ValueError(f"Only tables of even or uneven bins have codes, not {spec.family!r}.")
    of, dtype = table.set_of, table.coef.dtype
    if table.binning == AFFINE:
        last = table.bins - float(table.degree == 0)
        # Clipping t is clipping x: both steps are monotone, in floating point as on paper.
        ends = [(end - table.lo) * table.scale for end in (table.low, table.high)]
        ends = [np.clip(end, 0, last) for end in ends]
        by_feature = [by_vector(a[of]) for a in (table.lo, table.scale, *ends)]
        none, whole = np.zeros(0, dtype), np.zeros(0, np.int32)
        crowd, guide = np.zeros(0, np.int64), np.zeros(0, np.uint16)
        tile = 1024
        tables = [crowd, guide, none, np.zeros(0, np.int64), 0, tile]
        return Places._make([True, *by_feature, *[none] * 5, *[whole] * 4, *tables])
    return _uneven(table, of, dtype)


def _uneven(table: Table, of: np.ndarray, dtype: np.dtype) -> Places:
    sets = [
        table.edges[begin : begin + bins + 1]
        for begin, bins in zip(table.edge_start, table.bins, strict=True)
    ]
    # A look-up ends with its last bin; a position may reach the right end of it.
    inner = [_not_below(e[1:-1] if table.degree == 0 else e[1:], dtype) for e in sets]
    cells, crowd = _finest(inner, [e[:1].astype(dtype) for e in sets])
    padding = np.full(int(crowd.max()) + 1, np.inf, dtype)
    edges = [
        np.concatenate([e[:1].astype(dtype), t, padding]) for e, t in zip(sets, inner, strict=True)
    ]
    guides = [
        np.searchsorted(own, np.arange(count))
        for own, count in zip(cells.of, cells.count, strict=True)
    ]
    padded_crowd = by_vector(crowd[of]).reshape(-1, LANES).max(axis=1).astype(np.int64)
    # Within the edges, so that the share of a bin is in [0, 1].
    low = np.maximum(table.low, [e[0] for e in edges])
    high = np.minimum(table.high, [e[-1 - len(padding)] for e in edges])
    floats = [cells.origin, cells.factor, cells.count - 1.0, low, high]
    whole = [cells.key, cells.count - 1, _starts(guides), _starts(edges)]
    pairs = np.zeros(0, np.int64)
    if dtype == np.float32 and crowd.max() <= 1:
        # edges[1 + g] is the threshold after g others
        next_one = [e[1 + g].view(np.int32) for e, g in zip(edges, guides, strict=True)]
        words = [np.concatenate(part).astype(np.int32) for part in (next_one, guides)]
        pairs = np.stack(words, axis=1).view(np.int64).reshape(-1)
    n_bytes = pairs.nbytes or sum(2 * len(g) for g in guides)
    if table.degree > 0 or not pairs.size:
        n_bytes += sum(e.nbytes for e in edges)
    tile = LANES * max(1, _TILE_BYTES * len(sets) // (n_bytes * LANES))
    fields = [
        False,
        *[np.zeros(0)] * 4,
        *(by_vector(a[of]).astype(dtype) for a in floats),
        *(by_vector(a[of]).astype(np.int32) for a in whole),
        padded_crowd,
        # Two more entries: sixteen bits are read as the first half of thirty-two.
        np.concatenate([*guides, [0, 0]]).astype(np.uint16),
        np.concatenate(edges),
        pairs,
        cells.shift,
        tile,
    ]
    return Places._make(fields)


def _finest(inner: list[np.ndarray], start: list[np.ndarray]) -> tuple[Cells, np.ndarray]:
    """The kind that leaves fewer comparisons, or has fewer cells; with the crowd of each set."""
    even, octaves = _even_cells(inner), _octaves(inner, start)
    by_even, by_octave = even.crowd, octaves.crowd
    work = [int(np.ceil(np.log2(crowd + 1.0)).sum()) for crowd in (by_even, by_octave)]
    if (work[0], even.count.sum()) <= (work[1], octaves.count.sum()):
        return even, by_even
    return octaves, by_octave


def _even_cells(inner: list[np.ndarray]) -> Cells:
    """Cells no wider than the smallest gap, as far as their number allows."""
    origin, factor, count, of = [], [], [], []
    for t in inner:
        zero, span = t.dtype.type(0), np.ptp(t) if len(t) else 0
        gaps = np.diff(t)
        gap = gaps[gaps > 0].min(initial=np.inf)
        n = int(min(np.ceil(np.float64(span) / gap) + 1, _CELLS * len(t))) if span > 0 else 1
        origin.append(t[0] if len(t) else zero)
        factor.append(t.dtype.type(n / span) if span > 0 else zero)
        count.append(n + 1)
        of.append(np.clip((t - origin[-1]) * factor[-1], zero, t.dtype.type(n)).astype(np.int64))
    none = np.zeros(len(inner), np.int64)
    return Cells(of, np.array(origin), np.array(factor), none, np.array(count), 0)


def _octaves(inner: list[np.ndarray], start: list[np.ndarray]) -> Cells:
    """Leading bits of the distances from the first edge: as many as their number allows."""
    dtype = inner[0].dtype
    mantissa, whole = (23, np.int32) if dtype == np.float32 else (52, np.int64)
    away = [(t - e).astype(dtype).view(whole) for t, e in zip(inner, start, strict=True)]
    allowed = _CELLS * sum(len(t) for t in inner) + len(inner)
    for bits in range(12):
        shift = mantissa - bits
        of = [(a >> shift).astype(np.int64) for a in away]
        key = np.array([c[0] if len(c) else 0 for c in of])
        count = np.array([c[-1] - c[0] + 1 if len(c) else 1 for c in of])
        found = Cells(
            [c - k for c, k in zip(of, key, strict=True)],
            np.concatenate(start), np.ones(len(inner), dtype), key, count, shift,
        )  # fmt: skip
        if count.sum() * 2 > allowed or found.crowd.max() <= 1:
            break
    return found


def _not_below(edges: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The smallest numbers of `dtype` that are not below the edges."""
    near = edges.astype(dtype)
    return np.where(near < edges, np.nextafter(near, dtype.type(np.inf)), near)


def by_vector(array: np.ndarray) -> np.ndarray:
    """Numbers by feature, the last one repeated to fill a vector."""
    return np.concatenate([array, np.repeat(array[-1:], -len(array) % LANES)])


def _starts(parts: list[np.ndarray]) -> np.ndarray:
    return np.cumsum([0, *(len(part) for part in parts)])[:-1]
