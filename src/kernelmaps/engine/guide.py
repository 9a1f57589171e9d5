r"""Finding the bin among uneven edges without a search.

Cells much finer than the bins cover the edges e_0 … e_B of a set, and a table says for each which
bins begin in it: hardly ever more than one edge is left to compare. Two kinds of cells:

* even ones, ⌊(x − e_0)·scale⌋, where edges are spread over the whole range;
* octaves of x − e_0, each divided evenly, where edges crowd near the first one. The bits of a
  positive float are a piecewise-linear logarithm, so that its leading bits are the cell.

Both are monotone functions of x, in floating-point arithmetic as on paper: an edge whose cell lies
before that of x is not above x, one whose cell lies after is, so that only edges of the same cell
need comparing, and the result is that of the full search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Guide", "build_guide"]

_MANTISSA = 52
_CELLS = 8  # per edge


class Guide(NamedTuple):
    """Cell c of set s: ⌊(x − e_0)·scale[s]⌋, or bits(x − e_0) >> shift less key[s] if shift > 0.

    Clipped to the set's cells; its bins are ``guide[start[s] + c]`` to ``guide[start[s] + c + 1]``,
    both included.
    """

    guide: np.ndarray  # uint16 flat
    start: np.ndarray  # int64[S + 1]
    scale: np.ndarray  # float64[S]
    key: np.ndarray  # int64[S]
    shift: int


def build_guide(edges: np.ndarray, edge_start: np.ndarray, bins: np.ndarray) -> Guide:
    """Even cells where they part the edges well enough, else octaves if they do it better."""
    inner = [
        edges[begin + 1 : begin + count] - edges[begin]
        for begin, count in zip(edge_start, bins.astype(np.int64), strict=True)
    ]
    none = np.zeros(len(inner), np.int64)
    scale = np.array([_CELLS * len(e) / e[-1] if len(e) and e[-1] > 0 else 1.0 for e in inner])
    even = [(e * factor).astype(np.int64) for e, factor in zip(inner, scale, strict=True)]
    octaves, shift = _octaves(inner)
    if _crowding(even) <= max(2.0, _crowding(octaves)):
        return Guide(*_tables(even, none), scale, none, 0)
    key = np.array([cells[0] - 1 if len(cells) else 0 for cells in octaves])
    return Guide(*_tables(octaves, key), scale, key, shift)


def _octaves(inner: list[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """Leading bits of the distances: as many as the number of cells allows."""
    allowed = _CELLS * sum(len(e) for e in inner)
    for bits in range(_MANTISSA):
        cells = [e.view(np.int64) >> (_MANTISSA - bits) for e in inner]
        if 2 * sum(int(c[-1] - c[0]) + 1 for c in cells if len(c)) > allowed:
            break
    return cells, _MANTISSA - bits


def _crowding(cells: list[np.ndarray]) -> float:
    """Mean number of edges in the cell of an edge."""
    counts = [np.unique(c, return_counts=True)[1] for c in cells if len(c)]
    return float(sum((n * n).sum() for n in counts) / max(1, sum(n.sum() for n in counts)))


def _tables(cells: list[np.ndarray], key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many edges lie before each cell (and, at the end, how many there are)."""
    tables = []
    for own, first in zip(cells, key, strict=True):
        last = int(own[-1] - first) if len(own) else 0
        tables.append(np.append(np.searchsorted(own - first, np.arange(last + 1)), len(own)))
    start = np.cumsum([0, *(len(table) for table in tables)]).astype(np.int64)
    return np.concatenate(tables).astype(np.uint16), start
