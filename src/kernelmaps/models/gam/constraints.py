r"""Monotone and convex terms.

A term's function is linear between the bins of its column, so that its increments from bin to bin
(and the increments of its slopes) decide its shape: :math:`Cβ ≥ 0`.
:mod:`..solvers.inequalities` minimises under such constraints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.table_reader import TableReader
from .codebooks import Codebook

SHAPES = ("increasing", "decreasing", "convex", "concave")
_SIGNS = {1: "increasing", -1: "decreasing"}


def resolve_constraints(given: Any, columns: TableReader, owner: str) -> dict[int, tuple[str, ...]]:
    """Shapes that are asked for, by column."""
    names = columns.feature_names
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError(
            f"{owner}: constraints must be a mapping from columns to {', '.join(SHAPES)}, got "
            f"{given!r}."
        )
    by_column = {}
    for key, value in given.items():
        j = columns.position(key, owner, "constraints")
        items: Any = value if isinstance(value, tuple | list) else (value,)
        shapes = tuple(_SIGNS.get(item, item) for item in items)
        if not set(shapes) <= set(SHAPES):
            raise ValueError(
                f"{owner}: the constraint of column {names[j]!r} must be one of "
                f"{', '.join(SHAPES)}, or a tuple of these, got {value!r}."
            )
        for pair in (("increasing", "decreasing"), ("convex", "concave")):
            if set(pair) <= set(shapes):
                raise ValueError(
                    f"{owner}: column {names[j]!r} cannot be both {pair[0]} and {pair[1]}."
                )
        by_column[j] = shapes
    return by_column


def constraint_rows(shapes: tuple[str, ...], book: Codebook, values: np.ndarray) -> np.ndarray:
    """Rows of C for a basis with these values at the codes of a column."""
    increments = np.diff(values[1:], axis=0)
    slopes = increments / np.diff(book.nodes)[:, None]
    rows = [np.zeros((0, values.shape[1]))]
    for shape in shapes:
        sign = 1.0 if shape in ("increasing", "convex") else -1.0
        monotone = shape.endswith("creasing")
        rows.append(sign * (increments if monotone else np.diff(slopes, axis=0)))
    matrix = np.concatenate(rows)
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(length > 0, length, 1.0)


def enforce_direction(values: np.ndarray, shapes: tuple[str, ...]) -> np.ndarray:
    """Values at codes without rounding errors against a direction."""
    bins = values[1:]
    if "increasing" in shapes:
        bins = np.maximum.accumulate(bins, axis=0)
    elif "decreasing" in shapes:
        bins = np.minimum.accumulate(bins, axis=0)
    return np.concatenate([values[:1], bins])
