"""The terms of a fitted GAM as a table of the engine, for prediction, C and ONNX.

A row is one number for each column: numbers as they are, a level of a category by its position,
−1 for a level that has none. NaN is a missing value.

A term of one column is a feature of the table with a column for each output: straight lines between
the means of the bins, steps for levels. Beyond the bins it is constant, goes on along a straight
line if that was asked for, or goes on to the other end of its circle. A pair is a look-up in two
dimensions, which the engine does not have: its two features are the places of values among the
coarse codes of its columns. A level of a category has its code as its place, and so has the mean of
a bin of numbers; between the means of two bins places go along a straight line, and the pair is
interpolated (bilinearly) between their cells. If a pair is linear in a column, places are 0 at its
first bin and 1 at its last one, and go on beyond. The two features of a surface are its coordinates
themselves, and it is the thin-plate spline through its values at knots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...engine.table import EDGES, Table
from ..shapes import predictor_of
from .codebooks import OTHER, Codebook, with_ends

STRAIGHT = ("linear", "parametric")  # kinds of terms that go on beyond the training rows


def input_names(model: Any) -> Sequence[str] | None:
    """Names of the numbers that an exported model takes; None where its columns have none.

    Those of a GAM are the columns that it reads: a date as its trend and its periodic parts.
    """
    model = predictor_of(model)
    if not hasattr(model, "books"):
        return getattr(model, "feature_names_in_", None)
    return [book.name for book in model.books] if model.reader.named else None


def exposure_note(model: Any) -> str:
    """What the export of a model with an exposure says of its predictions."""
    exposed = getattr(model, "_exposed", False)
    return "Predictions are for one unit of exposure and an offset of 0." if exposed else ""


class TermFunctions(NamedTuple):
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


_LEAST_SQUARE = 1e-30  # added to squared distances whose logarithm is taken


class Piece(NamedTuple):
    """A function of one column, with as many outputs as the term, or places in a pair.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
    coef : ndarray of shape (n_bins, 2, n_outputs)
        The value at the left edge of each bin, and the rise to the right one.
    low, high : float
        The ends beyond which it is constant.
    missing : ndarray of shape (n_outputs,)
        Its values where the column is missing.
    """

    edges: np.ndarray
    coef: np.ndarray
    low: float
    high: float
    missing: np.ndarray

    def values_at(self, numbers: np.ndarray) -> np.ndarray:
        """The values (n, n_outputs) for some numbers of the column."""
        x = np.clip(numbers, self.low, self.high)
        left = np.searchsorted(self.edges, x, side="right") - 1
        left = np.clip(left, 0, len(self.edges) - 2)
        share = (x - self.edges[left]) / (self.edges[left + 1] - self.edges[left])
        values = self.coef[left, 0] + share[:, None] * self.coef[left, 1]
        return np.where(np.isnan(numbers)[:, None], self.missing, values)


def pieces_of(books: Sequence[Codebook], terms: Sequence[Any]) -> list[list[Piece]]:
    """The functions of each term: itself, the places in a pair, the coordinates of a surface."""
    pieces: list[list[Piece]] = []
    for term in terms:
        if term.kind == "surface":
            pieces.append([_coordinate(nodes) for nodes in term.positions[0].T])
        elif term.coarse:
            pieces.append([_places(books[j], term, axis) for axis, j in enumerate(term.columns)])
        else:
            pieces.append([curve_of(books[term.columns[0]], term, term.values)])
    return pieces


def functions_of(books: Sequence[Codebook], terms: Sequence[Any]) -> TermFunctions:
    """The functions of all terms, in their order; those of a pair are places among its codes."""
    pieces = list(chain.from_iterable(pieces_of(books, terms)))
    edges, coef, low, high, missing = map(list, zip(*pieces, strict=True))
    zeros = np.zeros(len(pieces))
    table = Table.build(
        EDGES, 1, coef, np.arange(len(pieces)), origin=zeros, resolution=zeros + 1, edges=edges,
        clip_low=np.array(low), clip_high=np.array(high),
    )  # fmt: skip
    columns = np.array([j for term in terms for j in term.columns])
    return TermFunctions(table, columns, np.concatenate(missing))


def curve_of(book: Codebook, term: Any, values: np.ndarray) -> Piece:
    """A function given at codes: between the nodes of numbers along straight lines."""
    nodes = book.nodes
    if len(nodes) < 2:
        return _steps(book, values)
    codes = np.arange(1, len(values))
    if nodes[0] + term.period > nodes[-1]:  # the first node follows the last one
        nodes = np.hstack([nodes[-1] - term.period, nodes, nodes[0] + term.period])
        codes = np.hstack([codes[-1], codes, codes[0]])
    low, high = nodes[0], nodes[-1]
    if term.extrapolation == "linear":
        low, high = -np.inf, np.inf
        if term.kind in STRAIGHT:  # one line
            nodes, codes = nodes[[0, -1]], codes[[0, -1]]
    rise = np.diff(values[codes], axis=0)
    return Piece(nodes, np.stack([values[codes[:-1]], rise], axis=1), low, high, values[0])


def _coordinate(nodes: np.ndarray) -> Piece:
    """A number as it is."""
    ends = np.array([nodes.min(), nodes.max()])
    rise = np.array([[[ends[0]], [np.ptp(ends)]]])
    return Piece(ends, rise, -np.inf, np.inf, np.array([np.nan]))


def thin_plate_functions(points: Any, knots: np.ndarray, xp: Any = np) -> Any:
    """r² log r of the distances of points (n, 2) from knots, ones, and both coordinates.

    Lengths are in units of the spread of the knots.
    """
    centre, scale = knots.mean(axis=0), np.sqrt(2 * knots.var(axis=0).sum())
    knots, points = (knots - centre) / scale, (points - centre) / scale
    squares = (points[:, :1] - knots[:, 0]) ** 2 + (points[:, 1:] - knots[:, 1]) ** 2
    radial = squares * xp.log(squares + _LEAST_SQUARE)
    return xp.concat([radial, 0 * points[:, :1] + 1.0, points], axis=1)


def thin_plate_matrix(knots: np.ndarray) -> np.ndarray:
    """The matrix whose solutions are the coefficients of splines with given values at the knots."""
    functions = thin_plate_functions(knots, knots)
    planes = functions[:, len(knots) :]
    return np.block([[functions], [planes.T, np.zeros((3, 3))]])


def surface_values(term: Any, points: Any, xp: Any = np) -> Any:
    """A surface at points (n_samples, 2), NaN where a coordinate is missing."""
    values = thin_plate_functions(points, term.positions[0], xp) @ term.spline_coefficients
    total = points[:, :1] + points[:, 1:]
    return xp.where(total != total, term.values[:1], values)


def _places(book: Codebook, term: Any, axis: int) -> Piece:
    """The places of a column's values among the coarse codes of a pair."""
    codes = term.coarse[axis][:, None].astype(np.float64)
    if not is_interpolated(term, axis):
        return _steps(book, codes)
    nodes = term.positions[axis]
    if last_code(term, axis):
        missing = np.array([linear_mean(term, axis)])
        return Piece(nodes[[0, -1]], np.array([[[0.0], [1.0]]]), -np.inf, np.inf, missing)
    ones = np.ones((len(nodes) - 1, 1))
    coef = np.stack([1 + np.arange(len(ones))[:, None], ones], axis=1)
    if term.extrapolation == "linear":  # places beyond the bins are no codes, and 0 is one of them
        return Piece(nodes, coef, -np.inf, np.inf, np.array([np.nan]))
    return Piece(nodes, coef, nodes[0], nodes[-1], codes[0])


def linear_mean(term: Any, axis: int) -> float:
    """The place of a missing value in a pair that is linear in a column: that of the mean.

    There the centred line is zero.
    """
    weight, nodes = term.counts.sum(axis=1 - axis)[1:], term.positions[axis]
    mean = float(weight @ (nodes - nodes[0])) / max(float(weight.sum()), 1e-300)
    return mean / float(nodes[-1] - nodes[0])


def last_code(term: Any, axis: int) -> int:
    """The last coarse code of a column that a pair is linear in, where its place is 1; else 0."""
    linear = bool(term.linear) and term.linear[axis] and is_interpolated(term, axis)
    return len(term.positions[axis]) if linear else 0


def is_interpolated(term: Any, axis: int) -> bool:
    """Whether a pair is interpolated between the coarse codes of a column."""
    return bool(term.positions) and len(term.positions[axis]) > 1


def _steps(book: Codebook, values: np.ndarray) -> Piece:
    """A function given at codes: constant on the bins of numbers, and on levels."""
    if book.kind == "category":
        n_levels = len(book.levels)
        edges = np.arange(-1.0, n_levels + 2)
        codes = np.array([OTHER, *range(OTHER + 1, n_levels + 2), OTHER])
    else:
        edges = with_ends(book.edges)
        codes = np.arange(1, len(values)) if len(values) > 1 else np.zeros(1, int)  # all missing
    steps = values[codes]
    jumps = np.append(True, (steps[1:] != steps[:-1]).any(axis=1))  # coarse codes span bins
    coef = np.stack([steps[jumps], np.zeros_like(steps[jumps])], axis=1)
    return Piece(edges[np.append(jumps, True)], coef, edges[0], edges[-1], values[0])


def term_values(terms: Sequence[Any], function_values: Any, xp: Any) -> Iterator[Any]:
    """Values (n_samples, n_outputs) of one term after the other, from those of the functions."""
    begin = 0
    for term in terms:
        width = len(term.columns) if len(term.columns) > 1 else term.values.shape[1]
        values = function_values[:, begin : begin + width]
        begin += width
        if len(term.columns) > 1:
            values = (_interpolate_pair if term.coarse else surface_values)(term, values, xp)
        yield values


def _interpolate_pair(term: Any, places: Any, xp: Any) -> Any:
    """A pair at places (n_samples, 2) among the codes of its columns."""
    *sizes, n_outputs = term.values.shape
    cells = xp.astype(term.values.reshape(-1, n_outputs), places.dtype)
    corners: list[tuple[Any, Any]] = [(0, 1.0)]  # index of a cell, and its share
    for axis, size in enumerate(sizes):
        place, last = places[:, axis], last_code(term, axis)
        sides: list[tuple[Any, Any]]
        if last:
            share = place[:, None]
            sides = [(np.array([1]), 1.0 - share), (np.array([last]), share)]
        else:
            if term.extrapolation == "linear" and is_interpolated(term, axis):
                missing = np.isnan(place)
                place = np.where(missing, 0.0, place)
                code = np.where(missing, 0, np.clip(place, 1, size - 2).astype(np.int64))
            else:
                code = xp.astype(place, xp.int64)
            sides = [(code, 1.0)]
            if is_interpolated(term, axis):
                share = (place - xp.astype(code, places.dtype))[:, None]
                sides = [(code, 1.0 - share), (xp.minimum(code + 1, xp.asarray(size - 1)), share)]
        corners = [
            (size * index + next_index, cell * side)
            for index, cell in corners
            for next_index, side in sides
        ]
    return sum(share * xp.take(cells, index, axis=0) for index, share in corners)
