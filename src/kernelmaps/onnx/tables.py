"""Models of tables as graphs: one input for each column, or one matrix of numbers.

A category is a column of strings (``""`` is a missing value) where columns have inputs of their
own, and a number in a matrix. NaN is a missing number. Bins are found by counting the edges that
are not beyond a value, as everywhere in these graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .tracer import BATCH, Trace, Traced

_LABELS = {"op_domain": "ai.onnx.ml", "op_version": 2}


def table_inputs(model: Any) -> list[tuple[str, Any]] | None:
    """Names and types of a column's inputs; None where one matrix of numbers serves."""
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    names = getattr(model, "feature_names_in_", None)
    books = model.table_.books
    words = any(book.kind == "category" and not _are_numbers(book.levels) for book in books)
    if names is None and not words:
        return None
    return [
        (book.name, StringTensorType([None, 1]) if book.kind == "category" else
         DoubleTensorType([None, 1]))
        for book in books
    ]  # fmt: skip


def _are_numbers(levels: Sequence[str]) -> bool:
    try:
        return all(np.isfinite(float(level)) for level in levels)
    except ValueError:
        return False


def table_scores(xp: Trace, model: Any, columns: Sequence[Traced]) -> Traced:
    """Scores of rows: shape (rows, outputs). `columns` have the shape (rows, 1) each."""
    table = model.table_
    found = [_Column(xp, book, own) for book, own in zip(table.books, columns, strict=True)]
    dtype = next((c.x.dtype for c in found if c.x.dtype.kind == "f"), np.dtype(np.float64))
    scores = xp.zeros((BATCH, len(table.intercept)), dtype=dtype) + table.intercept.astype(dtype)
    for term in table.terms:
        if len(term.columns) == 1:
            column = found[term.columns[0]]
            scores = scores + column.function(term.values.astype(dtype))
            if term.kind == "linear":
                scores = scores + column.beyond() * term.slope(column.book)[None].astype(dtype)
            continue
        first, second = (
            xp.take(coarse.astype(np.int64), found[j].code, axis=0)
            for coarse, j in zip(term.coarse, term.columns, strict=True)
        )
        cell = first * np.int64(term.values.shape[1]) + second
        flat = term.values.reshape(-1, term.values.shape[-1]).astype(dtype)
        scores = scores + xp.take(flat, cell, axis=0)
    return scores


class _Column:
    """One column of the graph: its codes, and functions of it."""

    def __init__(self, xp: Trace, book: Any, x: Traced) -> None:
        self.xp, self.book, self.x = xp, book, x
        self._code: Traced | None = None
        if x.dtype.kind != "O":
            self.missing = xp.node("IsNaN", [x], x.shape, np.bool_)
            self.value = xp.where(self.missing, np.zeros((1, 1), x.dtype), x)

    @property
    def code(self) -> Traced:
        """Codes of the rows, shape (rows,)."""
        if self._code is None:
            self._code = self.xp.reshape(self._codes(), (-1,))
        return self._code

    def _codes(self) -> Traced:
        xp, book = self.xp, self.book
        if book.kind == "number" and not len(book.nodes):  # nothing but gaps in training
            return xp.zeros((BATCH, 1), dtype=np.int64)
        if book.kind == "number":
            edges = book.edges[None, :].astype(self.x.dtype)
            return xp.where(self.missing, np.zeros((1, 1), np.int64), self._above(edges) + 1)
        if self.x.dtype.kind == "O":
            keys = ["", *(level for level in book.levels if level != "")]
            known = book.level_codes(keys).astype(int).tolist()[: len(keys)]
            codes = [known[0] if "" in book.levels else 0, *known[1:]]
            return xp.node(
                "LabelEncoder", [self.x], self.x.shape, np.int64,
                keys_strings=keys, values_int64s=codes, default_int64=1, **_LABELS,
            )  # fmt: skip
        if not book.levels:
            return xp.where(self.missing, np.zeros((1, 1), np.int64), np.ones((1, 1), np.int64))
        levels = np.array([[float(level) for level in book.levels]], self.x.dtype)
        same = xp.astype(self.value == levels, np.int64)
        place = xp.sum(same * np.arange(1, levels.size + 1)[None, :], axis=1)[:, None]
        return xp.where(self.missing, np.zeros((1, 1), np.int64), place + 1)

    def _above(self, sorted_values: np.ndarray) -> Traced:
        """How many of some increasing numbers are not beyond the value."""
        if sorted_values.size == 0:
            return self.xp.astype(self.value != self.value, np.int64)
        return self.xp.sum(self.xp.astype(self.value >= sorted_values, np.int64), axis=1)[:, None]

    def beyond(self) -> Traced:
        """How far a value lies beyond the bins, 0 if it is missing."""
        nodes = self.book.nodes if len(self.book.nodes) else np.zeros(1)
        ends = nodes[[0, -1]].astype(self.x.dtype)
        found = self.value - self.xp.clip(self.value, ends[0], ends[1])
        return self.xp.where(self.missing, np.zeros((1, 1), self.x.dtype), found)

    def function(self, values: np.ndarray) -> Traced:
        """A function given by its values at codes: looked up, or interpolated between bins."""
        xp, nodes = self.xp, self.book.nodes
        if self.book.kind == "category" or len(nodes) < 2:
            return xp.take(values, self.code, axis=0)
        nodes = nodes.astype(self.x.dtype)
        place = xp.reshape(self._above(nodes[None, 1:-1]), (-1,))
        inside = xp.clip(self.value, nodes[0], nodes[-1])
        slope = np.diff(values[1:], axis=0) / np.diff(nodes)[:, None]
        along = inside - xp.take(nodes[:, None], place, axis=0)
        found = xp.take(slope, place, axis=0) * along + xp.take(values[1:], place, axis=0)
        return xp.where(self.missing, values[:1], found)
