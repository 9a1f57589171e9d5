"""Columns of any table in one of four forms, before anything is known of what they mean.

Arrays of numbers (float or integer), arrays of ``datetime64[s]``, `Text`, and `Categories`, which a
frame declares.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._util.arguments import needed
from .._util.sparse import dense
from .._util.threads import cached_property
from .dates import duration_cells
from .frames import is_frame, level_name, unnamed
from .text_cells import Cells, Text

RawColumn: TypeAlias = "np.ndarray | Text | Categories"
_LARGE = 1 << 31  # bytes that the offsets of a plain array of strings cannot reach
_TRUTH = pa.array(["False", "True"])


@dataclass(frozen=True)
class Categories:
    """A column of declared categories.

    Attributes
    ----------
    levels : pyarrow array of strings
        Names of the levels, none of them null.
    codes : ndarray of int64
        Which of them each row holds; −1 for a missing value.
    ordered : bool
    """

    levels: pa.Array
    codes: np.ndarray
    ordered: bool

    @classmethod
    def of_arrow(cls, values: pa.DictionaryArray) -> Categories:
        """From a dictionary of strings."""
        if values.dictionary.null_count:
            values = values.dictionary_decode().dictionary_encode()
        codes = pc.fill_null(values.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        return cls(values.dictionary, codes, values.type.ordered)

    def to_arrow(self) -> pa.DictionaryArray:
        """As a dictionary of strings."""
        indices = pa.array(self.codes, mask=self.codes < 0)
        return pa.DictionaryArray.from_arrays(indices, self.levels, ordered=self.ordered)

    @cached_property
    def cells(self) -> Cells:
        """The levels without blanks around them; two of them may be the same."""
        return Cells(pc.utf8_trim_whitespace(self.levels), self.codes)

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class RawTable:
    """Columns of a table as they come.

    Attributes
    ----------
    names : list of str
        Names of the columns; x0, x1, … for an array.
    named : bool
        Whether these names are the table's own.
    n_rows : int
    """

    names: list[str]
    named: bool
    n_rows: int
    columns: Any

    @classmethod
    def of(cls, X: Any, owner: str) -> RawTable:
        """From a frame (pandas, Polars, pyarrow) or an array; refuses two columns of one name."""
        if not is_frame(X):
            X = dense(X) if hasattr(X, "shape") else np.asarray(X)
            if X.ndim != 2:
                raise ValueError(f"{owner}: X must have two dimensions, got {X.ndim}.")
            return cls([f"x{j}" for j in range(X.shape[1])], False, X.shape[0], list(X.T))
        package = type(X).__module__.split(".")[0]
        if package == "polars":
            X = X.to_arrow()
        given = X.columns if package == "pandas" else X.column_names
        names = [str(name) or unnamed(j) for j, name in enumerate(given)]
        named = all(isinstance(name, str) for name in given)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"{owner}: X has {names.count(twice)} columns named {twice!r}: rename them, or "
                "leave all but one out."
            )
        # Not X.iloc, which checks each place anew: 0.2 ms a column.
        columns = [series for _, series in X.items()] if package == "pandas" else _as_saved(X)
        return cls(names, named, X.shape[0], columns)

    def column(self, place: int, owner: str) -> RawColumn:
        """One column, in one of the four forms."""
        return raw_column(self.columns[place], self.names[place], owner)


def _as_saved(table: Any) -> list[Any]:
    """Columns of an Arrow table; categories and periods of pandas, which files hold as numbers."""
    stated = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}")).get("columns", [])
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for column in stated:
        values = columns.get(column["field_name"])
        if values is None or isinstance(values.type, pa.DictionaryType):
            continue
        if column["pandas_type"] == "categorical":
            columns[column["field_name"]] = values.dictionary_encode()
        elif column["numpy_type"].startswith("period["):
            pandas = needed("pandas")
            kind = pandas.api.types.pandas_dtype(column["numpy_type"])
            columns[column["field_name"]] = pandas.Series(kind.__from_arrow__(values))
    return list(columns.values())


def raw_column(values: Any, name: str, owner: str) -> RawColumn:
    """A series or array, in one of the four forms."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _from_arrow(values, name, owner)
    dtype = values.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "fiuM":
        array = np.asarray(values)
        return array.astype("datetime64[s]") if dtype.kind == "M" else array
    if getattr(dtype, "kind", "") == "c":
        raise ValueError(
            f"{owner}: column {name!r} holds complex numbers: pass their real and imaginary parts "
            "as two columns."
        )
    if str(dtype) == "category":
        category = values.array
        levels = _strings([level_name(item) for item in category.categories], name, owner)
        return Categories(levels, category.codes.astype(np.int64), bool(category.ordered))
    if str(dtype).startswith("period"):
        values = values.dt.to_timestamp()
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError,
            UnicodeEncodeError):  # fmt: skip
        array = _mixed(values, name, owner)
    if pa.types.is_temporal(array.type) and getattr(dtype, "kind", "") == "O":
        array = _clock_times(values, array)
    if isinstance(array, pa.ExtensionArray):
        array = _mixed(values, name, owner)
    return _from_arrow(array, name, owner)


def _mixed(values: Any, name: str, owner: str) -> pa.Array:
    """Python objects of several kinds, as text."""
    items = np.asarray(values, dtype=object).tolist()
    nested = next((item for item in items if isinstance(item, _NESTED)), None)
    if nested is not None:
        raise _nested(name, type(nested).__name__, owner)
    return _strings([None if is_missing(item) else level_name(item) for item in items], name, owner)


def _strings(items: list[str | None], name: str, owner: str) -> pa.Array:
    try:
        return pa.array(items, pa.string())
    except UnicodeEncodeError as error:
        row = items.index(error.object)
        raise ValueError(
            f"{owner}: column {name!r} holds {error.object[:30]!r} (item {row}), which is no valid "
            "text: it has half of a surrogate pair. Read the file in its own encoding, or replace "
            "the character."
        ) from None


def _clock_times(values: Any, array: pa.Array) -> pa.Array:
    """Python's dates and times as the clock shows them where each is, as those of text.

    pyarrow reads all of them by the type and the time zone of the first one.
    """
    items = np.asarray(values, dtype=object).tolist()
    if not all(is_missing(item) or isinstance(item, date) for item in items):
        return array
    times = [None if is_missing(item) else datetime.fromisoformat(item.isoformat()[:19])
             for item in items]  # fmt: skip
    return pa.array(times, pa.timestamp("s"))


_NESTED = (list, dict, set, np.ndarray)


def _nested(name: str, kind: Any, owner: str) -> TypeError:
    return TypeError(
        f"{owner}: column {name!r} holds values that are neither numbers nor names of levels "
        f"({kind}). Turn them into columns of numbers or text, or leave the column out."
    )


def is_missing(item: Any) -> bool:
    """Whether an object stands for a missing value."""
    if item is None:
        return True
    if isinstance(item, float | np.floating):
        return bool(np.isnan(item))
    return type(item).__name__ in ("NAType", "NaTType")


def _from_arrow(values: Any, name: str, owner: str) -> RawColumn:
    if isinstance(values, pa.ChunkedArray):
        if pa.types.is_string(values.type) and values.nbytes >= _LARGE:
            values = values.cast(pa.large_string())
        values = values.unify_dictionaries().combine_chunks()
    kind, types = values.type, pa.types
    if types.is_dictionary(kind):
        levels = _from_arrow(values.dictionary, name, owner)
        if isinstance(levels, np.ndarray):
            names = pa.array([level_name(item) for item in levels], pa.string())
        else:
            names = as_text(levels).array
        named = pa.DictionaryArray.from_arrays(values.indices, names, ordered=kind.ordered)
        return Categories.of_arrow(named)
    if types.is_boolean(kind):
        return Text(_TRUTH.take(values.cast(pa.int8())))
    if types.is_null(kind):
        return np.full(len(values), np.nan)
    if types.is_nested(kind):
        raise _nested(name, kind, owner)
    if types.is_timestamp(kind) or types.is_date(kind):
        if getattr(kind, "tz", None):  # weekdays and hours are those of the time zone
            values = pc.local_timestamp(values)
        return values.to_numpy(zero_copy_only=False).astype("datetime64[s]")
    if types.is_duration(kind):
        return Text(duration_cells(values))
    if types.is_decimal(kind) or (types.is_integer(kind) and values.null_count):
        try:
            values = values.cast(pa.float64())
        except pa.ArrowInvalid:  # whole numbers beyond 2⁵³, which may name levels
            return Text(values.cast(pa.string()))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return values.to_numpy(zero_copy_only=False)
    try:
        return Text(values.cast(pa.large_string() if values.nbytes >= _LARGE else pa.string()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _nested(name, kind, owner) from None


def joined_raw(parts: Sequence[RawColumn]) -> RawColumn:
    """The same column of several chunks, one below the other; as text where they differ."""
    if len(parts) == 1:
        return parts[0]
    arrays = [chunk for chunk in parts if isinstance(chunk, np.ndarray)]
    if len(arrays) == len(parts) and len({array.dtype.kind == "M" for array in arrays}) == 1:
        return np.concatenate(arrays)
    categories = [chunk.to_arrow() for chunk in parts if isinstance(chunk, Categories)]
    if len(categories) == len(parts):
        unified = pa.chunked_array(categories).unify_dictionaries().combine_chunks()
        return Categories.of_arrow(unified)
    return Text(pa.concat_arrays([as_text(chunk).array.cast(pa.string()) for chunk in parts]))


def as_text(raw: RawColumn) -> Text:
    """A column of any form as text; numbers and dates as they are usually written."""
    if isinstance(raw, Text):
        return raw
    if not isinstance(raw, np.ndarray):
        return Text(raw.to_arrow().dictionary_decode())
    if raw.dtype.kind == "M":
        return Text(pa.array(np.datetime_as_string(raw), pa.string(), mask=np.isnat(raw)))
    codes, levels = factorized(raw)
    return Text(pa.array(levels, pa.string()).take(pa.array(codes, mask=codes < 0)))


def factorized(values: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Codes (−1: missing) and names of the levels of numbers or dates."""
    encoded = pa.array(values, from_pandas=True).dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [level_name(item) for item in encoded.dictionary.to_numpy(zero_copy_only=False)]
