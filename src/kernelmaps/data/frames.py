"""Data frames, and columns of them as numbers or categories with missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
    values : ndarray of float64 or None
        Numbers, NaN where missing; None for a category.
    codes : ndarray of int64 or None
        Index into `levels`, −1 where missing; None for numbers.
    levels : list of str
        Levels in the order of the codes.
    """

    name: str
    values: Any
    codes: Any
    levels: list[str]

    @property
    def is_category(self) -> bool:
        return self.codes is not None

    def __len__(self) -> int:
        return len(self.codes if self.values is None else self.values)

    def head(self, n_rows: int) -> Column:
        """A copy of the first rows."""
        return self.take(np.arange(min(n_rows, len(self))))

    def take(self, rows: np.ndarray) -> Column:
        """A copy of some rows, by their positions."""
        if self.is_category:
            return replace(self, codes=self.codes[rows])
        return replace(self, values=self.values[rows])


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns (pandas, Polars, pyarrow)."""
    return _package(X) in ("pandas", "polars", "pyarrow") and len(getattr(X, "shape", ())) == 2


def is_series(y: Any) -> bool:
    """Whether y is a column of a table (pandas, Polars, pyarrow)."""
    return _package(y) in ("pandas", "polars", "pyarrow") and not is_frame(y)


def unnamed(position: int) -> str:
    """The name of a column without one, as pandas gives it."""
    return f"Unnamed: {position}"


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """A frame without some columns."""
    if not names:
        return X
    if hasattr(X, "iloc"):
        return X.drop(columns=names)
    return X.drop_columns(names) if hasattr(X, "drop_columns") else X.drop(names)


def first_column_without_numbers(X: Any) -> tuple[str, str] | None:
    """The first column of a frame that is not of complete numbers, and what it holds."""
    if not is_frame(X):
        return None
    if hasattr(X, "iloc"):
        columns = ((str(name), *_kind_and_gaps(X.iloc[:, j])) for j, name in enumerate(X.columns))
    else:
        table = X.to_arrow() if hasattr(X, "to_arrow") else X
        columns = (
            (name, *_kind_and_gaps(column))
            for name, column in zip(table.column_names, table.columns, strict=True)
        )
    for name, kind, gaps in columns:
        if kind or gaps:
            return name, kind or "missing values"
    return None


def _kind_and_gaps(column: Any) -> tuple[str, bool]:
    """What a column holds instead of numbers (empty: numbers), and whether values are missing.

    True and false are the numbers 1 and 0, as `pandas.get_dummies` writes them.
    """
    if isinstance(column, pa.ChunkedArray):
        tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        numeric = any(test(column.type) for test in tests)
        gaps = bool(pc.any(pc.is_null(column, nan_is_null=True)).as_py())
    else:
        letter = "" if str(column.dtype) == "category" else column.dtype.kind
        numeric, gaps = letter in ("f", "i", "u", "b"), bool(column.isna().any())
    return "" if numeric else "text, categories or dates", gaps


def categorical_columns(given: Sequence[Any] | None, names: list[str], owner: str) -> set[int]:
    """Positions of the columns that `categorical_features` names."""
    if given is None:
        return set()
    if isinstance(given, str) or not np.iterable(given):
        raise ValueError(
            f"{owner}: categorical_features must be a list of columns or a mask, got {given!r}."
        )
    items = list(given)
    if len(items) == len(names) and all(isinstance(item, bool | np.bool_) for item in items):
        return {j for j, item in enumerate(items) if item}
    return {column_position(item, names, owner, "categorical_features") for item in items}


def column_position(item: Any, names: list[str], owner: str, argument: str) -> int:
    """Position of a column that is named, or given by its number."""
    if isinstance(item, str) and item in names:
        return names.index(item)
    is_integer = isinstance(item, int | np.integer) and not isinstance(item, bool)
    if is_integer and -len(names) <= item < len(names):
        return int(item) % len(names)
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    raise ValueError(f"{owner}: {argument} names the column {item!r}; X has {shown}.")


def _package(X: Any) -> str:
    return type(X).__module__.split(".")[0]


def level_name(item: Any) -> str:
    """A level in words: 3 for 3.0, so that integers and floats name the same level; so do days."""
    if isinstance(item, float | np.floating) and float(item).is_integer():
        return str(int(item))
    if isinstance(item, date | np.datetime64):
        return str(item).replace("T", " ").removesuffix(" 00:00:00")
    return str(item)


def _renumbered(codes: np.ndarray, levels: list[str], names: list[str]) -> np.ndarray:
    """Codes of levels as numbers in another list of their names; −1, for missing, stays."""
    place = {name: k for k, name in enumerate(names)}
    return np.array([*(place[level] for level in levels), -1], np.int64)[codes]


def joined_columns(parts: Sequence[Sequence[Column]]) -> list[Column]:
    """The columns of several chunks of one table, one below the other."""
    out = []
    for pieces in zip(*parts, strict=True):
        name = pieces[0].name
        if not pieces[0].is_category:
            out.append(Column(name, np.concatenate([c.values for c in pieces]), None, []))
            continue
        levels = list(dict.fromkeys(level for column in pieces for level in column.levels))
        codes = [_renumbered(column.codes, column.levels, levels) for column in pieces]
        out.append(Column(name, None, np.concatenate(codes), levels))
    return out
