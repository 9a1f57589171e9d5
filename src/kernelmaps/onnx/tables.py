"""Models of tables as graphs: one input for each column, or one matrix of numbers.

A category is a column of strings (``""`` is a missing value) where columns have inputs of their
own, and a number in a matrix. NaN is a missing number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.reference import evaluate_table
from ..models.tables.functions import term_values
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
    table, own = model.table_, model.table_.functions
    dtype = next((x.dtype for x in columns if x.dtype.kind == "f"), np.dtype(np.float64))
    pairs = zip(table.books, columns, strict=True)
    rows = xp.concat([_numbers(xp, book, column, dtype) for book, column in pairs], axis=1)
    found = evaluate_table(own.table, xp.take(rows, own.columns, axis=1), xp, own.missing)
    scores = xp.zeros((BATCH, len(table.intercept)), dtype=dtype) + table.intercept
    for values in term_values(table.terms, found, xp):
        scores = scores + values
    return scores


def _numbers(xp: Trace, book: Any, x: Traced, dtype: Any) -> Traced:
    """A column as numbers: levels by their position, −1 for others; NaN if missing."""
    if book.kind == "number":
        return x
    if x.dtype.kind == "O":
        keys = list(dict.fromkeys(["", *book.levels]))
        places = book.level_numbers(keys)[: len(keys)]
        places[0] = places[0] if "" in book.levels else np.nan
        found = xp.node(
            "LabelEncoder", [x], x.shape, np.float32,
            keys_strings=keys, values_floats=places.tolist(), default_float=-1.0, **_LABELS,
        )  # fmt: skip
        return xp.astype(found, dtype)
    levels = np.array([[float(level) for level in book.levels]], dtype)
    same = xp.astype(x == levels, dtype)
    place = xp.sum(same * np.arange(1.0, levels.size + 1), axis=1)[:, None] - 1.0
    return xp.where(x != x, x, place)
