"""Columns of data frames as numbers or categories with missing values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..sparse_rows import dense


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


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns (pandas, Polars, pyarrow)."""
    return _package(X) in ("pandas", "polars", "pyarrow") and len(getattr(X, "shape", ())) == 2


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """A frame without some columns."""
    if not names:
        return X
    if hasattr(X, "iloc"):
        return X.drop(columns=names)
    return X.drop_columns(names) if hasattr(X, "drop_columns") else X.drop(names)


def is_mixed(X: Any) -> bool:
    """Whether a frame has columns of other things than numbers, or missing values."""
    return is_frame(X) and not all(map(_is_whole, _raw_columns(X)[1]))


def read_columns(
    X: Any, owner: str, categorical: Sequence[Any] | None = None, names: Any = None
) -> list[Column]:
    """Read a frame or a two-dimensional array column by column.

    Parameters
    ----------
    X : DataFrame, pyarrow table or array of shape (n_samples, n_features)
    owner : str
        Estimator, for messages.
    categorical : sequence of int, str or bool, optional
        Columns that hold categories though they look like numbers: names, positions or a mask.
    names : sequence of str, optional
        Of the columns of an array; x0, x1, … by default.
    """
    found, raw = _raw_columns(X)
    if names is not None and not is_frame(X):
        found = [str(name) for name in names]
    chosen = categorical_columns(categorical, found, owner)
    columns = enumerate(zip(found, raw, strict=True))
    return [_column(name, values, j in chosen, owner) for j, (name, values) in columns]


def check_names(X: Any, owner: str) -> None:
    """Refuse a frame two of whose columns have the same name."""
    names = [str(name) for name in (X.column_names if _package(X) == "pyarrow" else X.columns)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"{owner}: X has {names.count(twice)} columns named {twice!r}: rename them, or leave "
            "all but one out."
        )


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
    whole = isinstance(item, int | np.integer) and not isinstance(item, bool)
    if whole and -len(names) <= item < len(names):
        return int(item) % len(names)
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    raise ValueError(f"{owner}: {argument} names the column {item!r}; X has {shown}.")


def _package(X: Any) -> str:
    return type(X).__module__.split(".")[0]


def _raw_columns(X: Any) -> tuple[list[str], Iterator[Any]]:
    """Names and columns: of pandas as they are, of pyarrow where they hold text, else arrays."""
    package = _package(X)
    if package == "pandas":
        return [str(name) for name in X.columns], (column for _, column in X.items())
    if package == "polars":
        return list(X.columns), map(_from_polars, X.iter_columns())
    if package == "pyarrow":
        return list(X.column_names), map(_from_arrow, X.itercolumns())
    X = dense(X)
    return [f"x{j}" for j in range(X.shape[1])], iter(X.T)


def _from_polars(values: Any) -> np.ndarray:
    import polars

    kind = values.dtype
    if kind.is_decimal():
        return values.cast(polars.Float64).to_numpy()
    if kind.is_numeric() or kind.is_temporal() or kind == polars.Boolean:
        return values.to_numpy()  # integers as they are: they may name levels beyond 2⁵³
    return values.cast(polars.String).to_numpy()


def _from_arrow(values: Any) -> Any:
    import pyarrow
    from pyarrow import types

    kind = values.type
    if types.is_decimal(kind) or (types.is_integer(kind) and values.null_count):
        try:
            values = values.cast(pyarrow.float64())
        except pyarrow.ArrowInvalid:  # integers beyond 2⁵³, which may name levels
            return np.array(values.to_pylist(), dtype=object)
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind)):
        return values
    return values.to_numpy(zero_copy_only=False)


def _dtype_kind(values: Any) -> str:
    """NumPy's letter for what a column holds: f, i, u, b, M, or O for anything else."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")  # pandas' own types have one, too
    return kind if kind in "fiubM" and str(values.dtype) != "category" else "O"


def _is_whole(values: Any) -> bool:
    """Whether a column holds numbers, without gaps."""
    kind = _dtype_kind(values)
    if kind not in "fiu":
        return False
    gaps = values.isna() if _package(values) == "pandas" else np.isnan(_numbers(values, kind))
    return not gaps.any()


def _column(name: str, values: Any, categorical: bool, owner: str) -> Column:
    kind = _dtype_kind(values)
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise ValueError(
            f"{owner}: column {name!r} holds complex numbers: pass their real and imaginary parts "
            "as two columns."
        )
    if kind in "fiuM" and not categorical:
        return Column(name, _finite(_numbers(values, kind), name, owner), None, [])
    if kind == "O" and not categorical:
        numbers = _numbers_of_objects(values)
        if numbers is not None:
            return Column(name, _finite(numbers, name, owner), None, [])
    try:
        return Column(name, None, *_factorized(values, kind))
    except TypeError as error:  # of lists, dicts and arrays, which are not hashable
        raise TypeError(
            f"{owner}: column {name!r} holds values that are neither numbers nor names of levels "
            f"({error}). Turn them into columns of numbers or text, or leave the column out."
        ) from None


def _finite(numbers: np.ndarray, name: str, owner: str) -> np.ndarray:
    bad = np.isinf(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{owner}: column {name!r} of input X contains infinity (row {row}). Replace it, or "
            "use NaN for a missing value."
        )
    return numbers


def _numbers(values: Any, kind: str) -> np.ndarray:
    """A numeric column as float64; dates as seconds since 1970."""
    pandas = _package(values) == "pandas"
    if kind == "M":
        if pandas and getattr(values.dt, "tz", None) is not None:
            values = values.dt.tz_convert(None)
        times = np.asarray(values).astype("datetime64[us]")
        return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e6)
    if pandas and not isinstance(values.dtype, np.dtype):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(values).astype(np.float64, copy=False)


def _numbers_of_objects(values: Any) -> np.ndarray | None:
    """Numbers that are stored as objects (Python's, None among them); None if any is not one."""
    if _package(values) not in ("pandas", "numpy") or str(values.dtype) != "object":
        return None
    items = np.asarray(values, dtype=object)
    known = not all(map(_missing, items[:100]))
    if not known or not all(_is_number(item) or _missing(item) for item in items):
        return None
    return np.array([np.nan if _missing(item) else float(item) for item in items])


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float | np.number) and not isinstance(item, bool | np.bool_)


def _missing(item: Any) -> bool:
    if item is None:
        return True
    if isinstance(item, float | np.floating):
        return bool(np.isnan(item))
    return type(item).__name__ in ("NAType", "NaTType")


def level_name(item: Any) -> str:
    """A level in words: 3 for 3.0, so that integers and floats name the same level."""
    if isinstance(item, float | np.floating) and float(item).is_integer():
        return str(int(item))
    return str(item)


def _factorized(values: Any, kind: str) -> tuple[np.ndarray, list[str]]:
    """Codes (−1: missing) and levels, in order of appearance or of the frame's own categories."""
    package = _package(values)
    if package == "pyarrow":
        return _dictionary(values)
    if package == "pandas" and str(values.dtype) == "category":
        return _merged(values.cat.codes.to_numpy().astype(np.int64), values.cat.categories)
    if package == "pandas" and kind == "O":
        return _distinct(values.to_numpy(dtype=object, na_value=None))
    return _distinct(np.asarray(values))


def _dictionary(values: Any) -> tuple[np.ndarray, list[str]]:
    """Codes and levels of a pyarrow column, which encodes itself."""
    import pyarrow

    whole = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    if isinstance(whole, pyarrow.ChunkedArray):
        whole = whole.unify_dictionaries().combine_chunks()
    if not pyarrow.types.is_dictionary(whole.type):
        whole = whole.dictionary_encode()
    codes = whole.indices.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False).copy()
    items = whole.dictionary.to_pylist()
    missing = np.array([*(_missing(item) for item in items), True])
    codes[missing[codes]] = -1
    return _merged(codes, items)


def _distinct(items: np.ndarray) -> tuple[np.ndarray, list[str]]:
    if "pandas" in sys.modules:  # hashing beats sorting strings by a factor of five
        codes, found = sys.modules["pandas"].factorize(items)
        return _merged(codes.astype(np.int64), found)
    code_of: dict[Any, int] = {}
    codes = [-1 if _missing(x) else code_of.setdefault(x, len(code_of)) for x in items.tolist()]
    return _merged(np.array(codes, np.int64), code_of)


def _merged(codes: np.ndarray, items: Iterable[Any]) -> tuple[np.ndarray, list[str]]:
    """Codes, and names of levels; those of the same name (1 and 1.0) become one."""
    levels = [level_name(item) for item in items]
    names = list(dict.fromkeys(levels))
    same = len(names) == len(levels)
    return codes if same else _renumbered(codes, levels, names), names


def _renumbered(codes: np.ndarray, levels: list[str], names: list[str]) -> np.ndarray:
    """Codes of levels as numbers in another list of their names; −1, for missing, stays."""
    place = {name: k for k, name in enumerate(names)}
    return np.array([*(place[level] for level in levels), -1], np.int64)[codes]


def joined_columns(parts: Sequence[Sequence[Column]]) -> list[Column]:
    """The columns of several chunks of one table, one below the other."""
    out = []
    for own in zip(*parts, strict=True):
        name = own[0].name
        if not own[0].is_category:
            out.append(Column(name, np.concatenate([c.values for c in own]), None, []))
            continue
        levels = list(dict.fromkeys(level for column in own for level in column.levels))
        codes = [_renumbered(column.codes, column.levels, levels) for column in own]
        out.append(Column(name, None, np.concatenate(codes), levels))
    return out
