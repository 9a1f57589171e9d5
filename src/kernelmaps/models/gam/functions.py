"""The terms of a fitted table as a table of the engine, for prediction, C and ONNX.

A row is one number for each column: numbers as they are, a level of a category by its position,
−1 for a level that has none. NaN is a missing value.

A term of one column is a feature of the table with a column for each output: straight lines between
the means of the bins, steps for levels. Beyond the bins it is constant; a straight line that was
asked for goes on. A pair is a look-up in two dimensions, which the engine does not have: its two
features are steps whose values are the coarse codes of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...engine.table import EDGES, Table
from .codebooks import OTHER, Codebook, with_ends


class Functions(NamedTuple):
    """Functions of single columns.

    Attributes
    ----------
    table : Table
        A feature for each of them.
    columns : ndarray of int
        The column of a row that each is a function of.
    missing : ndarray
        Its values where that column is missing, one after the other, as the columns of the table.
    """

    table: Table
    columns: np.ndarray
    missing: np.ndarray


# One function: edges, coefficients (bins, 2, columns), the ends beyond which it is constant, and
# its values where the column is missing.
_Piece = tuple[np.ndarray, np.ndarray, float, float, np.ndarray]


def functions_of(books: Sequence[Codebook], terms: Sequence[Any]) -> Functions:
    """The functions of all terms, in their order; those of a pair are its two coarse codes."""
    columns: list[int] = []
    pieces: list[_Piece] = []
    for term in terms:
        columns.extend(term.columns)
        own = [books[j] for j in term.columns]
        if term.coarse:
            codes = [coarse[:, None].astype(np.float64) for coarse in term.coarse]
            pieces.extend(_steps(book, values) for book, values in zip(own, codes, strict=True))
        else:
            pieces.append(_curve(own[0], term.values, term.kind == "linear"))
    edges, coef, low, high, missing = map(list, zip(*pieces, strict=True))
    none = np.zeros(len(pieces))
    table = Table.build(
        EDGES, 1, coef, np.arange(len(pieces)), lo=none, scale=none + 1, edges=edges,
        low=np.array(low), high=np.array(high),
    )  # fmt: skip
    return Functions(table, np.array(columns), np.concatenate(missing))


def _curve(book: Codebook, values: np.ndarray, straight: bool) -> _Piece:
    """A function given at codes: between the nodes of numbers along straight lines."""
    nodes = book.nodes
    if len(nodes) < 2:
        return _steps(book, values)
    low, high, places = nodes[0], nodes[-1], np.arange(1, len(values))
    if straight:  # one line
        low, high, nodes, places = -np.inf, np.inf, nodes[[0, -1]], places[[0, -1]]
    rise = np.diff(values[places], axis=0)
    return nodes, np.stack([values[places[:-1]], rise], axis=1), low, high, values[0]


def _steps(book: Codebook, values: np.ndarray) -> _Piece:
    """A function given at codes: constant on the bins of numbers, and on levels."""
    if book.kind == "category":
        levels = len(book.levels)
        edges = np.arange(-1.0, levels + 2)
        places = np.array([OTHER, *range(OTHER + 1, levels + 2), OTHER])
    else:
        edges = with_ends(book.edges)
        places = np.arange(1, len(values)) if len(values) > 1 else np.zeros(1, int)  # only gaps
    steps = values[places]
    kept = np.append(True, (steps[1:] != steps[:-1]).any(axis=1))  # coarse codes are of many bins
    coef = np.stack([steps[kept], np.zeros_like(steps[kept])], axis=1)
    return edges[np.append(kept, True)], coef, edges[0], edges[-1], values[0]


def term_values(terms: Sequence[Any], found: Any, xp: Any) -> Iterator[Any]:
    """Values (n_samples, n_outputs) of one term after the other, from those of the functions."""
    at = 0
    for term in terms:
        width = 2 if term.coarse else term.values.shape[1]
        own = found[:, at : at + width]
        at += width
        if term.coarse:
            codes = xp.astype(own, xp.int64)
            _, second, outputs = term.values.shape
            cells = xp.astype(term.values.reshape(-1, outputs), found.dtype)
            own = xp.take(cells, codes[:, 0] * second + codes[:, 1], axis=0)
        yield own
