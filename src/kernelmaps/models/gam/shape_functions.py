"""The terms of a fitted GAM as shape functions and heat maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..shapes import PairFunction, ShapeFunction
from .codebooks import MISSING, OTHER, Codebook
from .predictor import AdditivePredictor, FittedTerm

_DENSITY_BINS = 24  # of the histogram below a curve


ValueNames = Mapping[str, Mapping[float, str]]
"""Names of the values of some columns, such as weekdays."""


def shape_functions(
    model: AdditivePredictor, names: ValueNames, residual_df: float
) -> list[ShapeFunction]:
    """The functions of single columns; the degrees of freedom are those of their errors."""
    books = [
        (term, model.books[term.columns[0]]) for term in model.pure_terms if len(term.columns) == 1
    ]
    return [_shape(term, book, names.get(book.name, {}), residual_df) for term, book in books]


def pair_functions(model: AdditivePredictor, names: ValueNames) -> list[PairFunction]:
    """The functions of pairs."""
    return [_pair(term, model, names) for term in model.pure_terms if len(term.columns) == 2]


def _shape(
    term: FittedTerm, book: Codebook, names: Mapping[float, str], residual_df: float
) -> ShapeFunction:
    values, errors = _of_single_output(term.values), _of_single_output(term.errors)
    counts = term.counts / max(float(term.counts.sum()), 1e-300)
    missing = np.stack([values[MISSING], errors[MISSING]]) if counts[MISSING] > 0 else None
    increments = None if term.increment_errors is None else _of_single_output(term.increment_errors)
    codes: Any
    labels = None
    if book.kind == "number":
        grid = book.nodes if len(book.nodes) else np.zeros(1)
        codes = slice(1, None) if len(book.nodes) else slice(0, 1)
        low, high = float(grid[0]), float(grid[-1])
        edges = np.linspace(low, high if high > low else low + 1.0, _DENSITY_BINS + 1)
        density = np.histogram(grid, edges, weights=counts[codes])[0]
    else:
        codes = np.arange(OTHER if counts[OTHER] > 0 else OTHER + 1, book.n_codes)
        labels = tuple(book.label(code) for code in codes.tolist())
        grid, edges = np.arange(len(codes), dtype=float), np.arange(len(codes) + 1) - 0.5
        density = counts[codes]
    return ShapeFunction(
        term.name, grid, values[codes], edges, density, errors[codes], labels, missing,
        term.importance, tuple(names.items()) or None, increments, residual_df,
    )  # fmt: skip


def _pair(term: FittedTerm, model: AdditivePredictor, names: ValueNames) -> PairFunction:
    labels, used = [], []
    for axis, (coarse, column) in enumerate(zip(term.coarse, term.columns, strict=True)):
        with_rows = np.flatnonzero(term.counts.sum(axis=1 - axis) > 0)
        used.append(with_rows)
        book = model.books[column]
        value_names = names.get(book.name, {})
        labels.append(tuple(_cell_label(book, coarse, int(k), value_names) for k in with_rows))
    cells = np.ix_(*used)
    density = term.counts[cells] / max(float(term.counts.sum()), 1e-300)
    values, errors = _of_single_output(term.values)[cells], _of_single_output(term.errors)[cells]
    first, second = labels
    across = model.books[term.columns[0]].name
    return PairFunction(term.name, first, second, values, errors, density, term.importance, across)


def _cell_label(book: Codebook, coarse: np.ndarray, cell: int, names: Mapping[float, str]) -> str:
    codes = np.flatnonzero(coarse == cell)
    if book.kind == "category" or codes[0] == MISSING:
        return book.label(int(codes[0])) if len(codes) == 1 else "other"
    ends = [float(book.nodes[code - 1]) for code in (codes[0], codes[-1])]
    if len(codes) == 1:
        return names.get(ends[0], book.label(int(codes[0])))
    return " … ".join(names.get(end, f"{end:.4g}") for end in ends)


def _of_single_output(values: np.ndarray) -> np.ndarray:
    """Without the axis of outputs where there is one output only."""
    return values[..., 0] if values.shape[-1] == 1 else values
