"""Selection of feature and target columns by name, with messages for wrong names."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np

from .._util.arguments import argument, import_optional, parameter
from .._util.lazy import pa, pc
from .._util.sparse import dense
from .._util.threads import evenly_spaced, limit_blas
from .text_cells import (
    Categories,
    DistinctCells,
    NumberFormat,
    Text,
    may_be_dates,
    number_doubts,
    quote_cells,
)


def advice_on_text() -> str:
    """What to do with a column that holds text, not numbers."""
    return (
        f"Name it with {argument('target')} if it is what to predict, leave it out with "
        f"{argument('drop')}, replace the text by numbers first, or fit a GAM (AdditiveRegressor, "
        "AdditiveClassifier), which takes text as it is."
    )


@dataclass(frozen=True)
class ColumnSelection:
    """What is asked of the columns of a file; see :func:`read_rows`."""

    target: str | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()

    def find_target(
        self, header: Sequence[str], name: str, *, required: bool = False, to_fit: bool = True
    ) -> Any:
        """The target in the header of a table: by default "y", where there is one.

        One that is named must be there, `to_fit`; `required` refuses a table without any.
        """
        target = "y" if self.target is None and "y" in header else self.target
        target = target if to_fit or target in header else None
        if target is None and required:
            raise no_target(name, header)
        column_positions(header, [] if target is None else [target], name, what="target")
        return target


def no_target(name: str, columns: Sequence[str] | None) -> ValueError:
    """The error that says how to name one."""
    hint = f" It has the columns {list_names(columns)}." if columns else ""
    return ValueError(
        f"{name} has no target: name the column (or array) to predict with "
        f"{argument('target')}.{hint}"
    )


def column_positions(
    header: Sequence[str], columns: Sequence[str], name: str, what: str = "column"
) -> list[int]:
    """Positions of columns by name; an unknown name is refused, with the nearest existing one."""
    place = {column: j for j, column in enumerate(header)}
    unknown = [column for column in columns if column not in place]
    if unknown:
        small = {column.lower(): column for column in reversed(header)}  # of equal ones, the first
        matches = get_close_matches(unknown[0].lower(), list(small), n=1)
        guess = f" Did you mean {small[matches[0]]!r}?" if matches else ""
        raise ValueError(
            f"{name} has no {what} {', '.join(map(repr, unknown))}; "
            f"it has {list_names(header)}.{guess}"
        )
    return [place[column] for column in columns]


def names_of(frame: Any) -> list[str] | None:
    """Names of the columns of a frame; None if it has none, or other things for names."""
    names = getattr(frame, "column_names", None)  # pyarrow
    names = getattr(frame, "columns", None) if names is None else names
    names = None if names is None or callable(names) else list(names)
    return names if names and all(isinstance(name, str) for name in names) else None


def check_order(names: Sequence[str], expected: Sequence[str], what: str) -> None:
    """Refuse columns of other names, or in another order."""
    names, expected = list(names), list(expected)
    if names == expected:
        return
    column_positions(names, expected, what)
    unknown = [name for name in names if name not in set(expected)]
    raise ValueError(
        f"{what} has columns that are not expected: {list_names(unknown)}; leave them out"
        if unknown
        else f"{what} has its columns in another order; they must be {list_names(expected)}"
    )


def check_selection(header: Sequence[str], columns: Sequence[str], name: str) -> None:
    """Refuse a table without some of the `columns`; warn once of those that are not among them."""
    column_positions(header, columns, name)
    unused = [column for column in header if column not in set(columns)]
    if unused:
        warnings.warn(
            f"{name} has columns that the model was not fitted on, which are ignored: "
            f"{list_names(unused)}",
            UserWarning,
            stacklevel=2,
        )


def list_names(columns: Sequence[str] | None) -> str:
    shown = ", ".join(map(repr, list(columns or [])[:12]))
    return f"{shown}, … ({len(columns)} in all)" if columns and len(columns) > 12 else shown


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


def default_name(position: int) -> str:
    """The name of a column without one, as pandas gives it."""
    return f"Unnamed: {position}"


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """A frame without some columns."""
    if not names:
        return X
    if hasattr(X, "iloc"):
        return X.drop(columns=names)
    return X.drop_columns(names) if hasattr(X, "drop_columns") else X.drop(names)


def without_named(owner: str, X: Any, *roles: Any) -> list[Any]:
    """A frame without the columns that roles (targets, weights, …) name, and their values.

    A query of Polars is run first. Other rows are as they were, and names of their columns, too.
    """
    if _package(X) == "polars" and hasattr(X, "collect"):
        X = X.collect()
    named = [item for item in roles if isinstance(item, str)] if is_frame(X) else []
    if not named:
        return [X, *roles]
    header = X.column_names if hasattr(X, "column_names") else list(X.columns)
    column_positions(header, named, f"{owner}: X")
    values = [X[item] if isinstance(item, str) else item for item in roles]
    return [without_columns(X, named), *values]


def reorder_columns(model: Any, X: Any) -> Any:
    """A frame with its columns in the order of fit; others, if their names are not the same."""
    names, header = getattr(model, "feature_names_in_", None), names_of(X)
    if names is None or header is None or sorted(names) != sorted(header):
        return X
    return X.select(list(names)) if hasattr(X, "select") else X[list(names)]


def column_position(item: Any, names: list[str], owner: str, argument: str) -> int:
    """Position of a column that is named, or given by its number."""
    if isinstance(item, str) and item in names:
        return names.index(item)
    is_integer = isinstance(item, int | np.integer) and not isinstance(item, bool)
    if is_integer and -len(names) <= item < len(names):
        return int(item) % len(names)
    what = f"{owner}: {parameter(argument)} names the column {item!r}"
    raise ValueError(f"{what}; X has {list_names(names)}.")


def _package(X: Any) -> str:
    return type(X).__module__.split(".")[0]


def level_name(item: Any) -> str:
    """A level in words: 3 for 3.0, so that integers and floats name the same level; so do days."""
    if isinstance(item, float | np.floating) and float(item).is_integer():
        return str(int(item))
    if isinstance(item, date | np.datetime64):
        return str(item).replace("T", " ").removesuffix(" 00:00:00")
    return str(item)


RawColumn: TypeAlias = np.ndarray | Text | Categories
_LARGE = 1 << 31  # bytes that the offsets of a plain array of strings cannot reach


@dataclass(frozen=True)
class RawTable:
    """Columns of a table as they come.

    Attributes
    ----------
    names : list of str
        Names of the columns; x0, x1, … for an array.
    named : bool
        Whether these names are the table's own.
    """

    names: list[str]
    named: bool
    columns: Any

    @classmethod
    def from_data(cls, X: Any, owner: str) -> RawTable:
        """From a frame (pandas, Polars, pyarrow) or an array; refuses two columns of one name."""
        if not is_frame(X):
            X = dense(X) if hasattr(X, "shape") else np.asarray(X)
            if X.ndim != 2:
                raise ValueError(f"{owner}: X must have two dimensions, got {X.ndim}.")
            return cls([f"x{j}" for j in range(X.shape[1])], False, list(X.T))
        X = X.to_arrow() if _package(X) == "polars" else X
        is_pandas = hasattr(X, "iloc")
        labels = X.columns if is_pandas else X.column_names
        names = [str(name) or default_name(j) for j, name in enumerate(labels)]
        named = all(isinstance(name, str) for name in labels)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"{owner}: X has {names.count(twice)} columns named {twice!r}: rename them."
            )
        # Not X.iloc, which checks each place anew: 0.2 ms a column.
        columns = [series for _, series in X.items()] if is_pandas else _restore_types(X)
        return cls(names, named, columns)

    def column(self, place: int, owner: str) -> RawColumn:
        """One column, in one of the four forms."""
        return raw_column(self.columns[place], self.names[place], owner)


def _restore_types(table: Any) -> list[Any]:
    """Columns of an Arrow table; categories and periods of pandas, which files hold as numbers."""
    stated = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}")).get("columns", [])
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for column in stated:
        name = column["field_name"]
        if name not in columns or isinstance(columns[name].type, pa.DictionaryType):
            continue
        if column["pandas_type"] == "categorical":
            columns[name] = columns[name].dictionary_encode()
        elif column["numpy_type"].startswith("period["):
            pandas = import_optional("pandas")
            kind = pandas.api.types.pandas_dtype(column["numpy_type"])
            columns[name] = pandas.Series(kind.__from_arrow__(columns[name]))
    return list(columns.values())


def raw_column(values: Any, name: str, owner: str) -> RawColumn:
    """A series or array, in one of the four forms."""
    dtype = getattr(values, "dtype", None)
    kind = getattr(dtype, "kind", "")
    if isinstance(dtype, np.dtype) and kind in "fiuM":
        array = np.asarray(values)
        return array.astype("datetime64[s]") if kind == "M" else array
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _from_arrow(values, name, owner)
    if kind == "c":
        raise ValueError(
            f"{owner}: column {name!r} holds complex numbers: make two columns of its parts."
        )
    if str(dtype) == "category":
        items, codes = values.cat.categories, values.cat.codes.to_numpy(np.int64)
        items = items.to_numpy() if items.dtype.kind == "f" else items  # float32 as it prints
        levels = _strings([level_name(item) for item in items], name, owner)
        return Categories(pc.utf8_trim_whitespace(levels), codes, bool(values.cat.ordered))
    if str(dtype).startswith("period"):
        values = values.dt.to_timestamp()
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        array = None
    if array is not None and kind == "O" and _is_day(array.type):
        # pyarrow reads all by the type and the time zone of the first: a time is what the clock
        # shows where it is, as in text.
        times = ["NaT" if is_missing(item) else str(item)[:19] for item in values]
        return np.array(times, "datetime64[s]")
    if array is None or isinstance(array, pa.ExtensionArray):
        items = np.asarray(values, dtype=object).tolist()
        nested = next((item for item in items if isinstance(item, _NESTED)), None)
        if nested is not None:
            raise _nested_error(name, type(nested).__name__, owner)
        texts = [None if is_missing(item) else level_name(item) for item in items]
        array = _strings(texts, name, owner)
    return _from_arrow(array, name, owner)


def _is_day(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def _strings(items: list[str | None], name: str, owner: str) -> pa.Array:
    try:
        return pa.array(items, pa.string())
    except UnicodeEncodeError as error:
        row = items.index(error.object)
        raise ValueError(
            f"{owner}: column {name!r} holds {error.object[:30]!r} (item {row}), which is no valid "
            "text: it has half of a surrogate pair. Read the file in its own encoding."
        ) from None


_NESTED = (list, dict, set, complex, np.ndarray)


def _nested_error(name: str, kind: Any, owner: str) -> TypeError:
    option = argument("drop", name)
    drop = f": {option}" if option.startswith("-") else ""
    return TypeError(
        f"{owner}: column {name!r} holds values that are neither numbers nor names of levels "
        f"({kind}). Turn them into columns of numbers or text, or leave the column out{drop}."
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
            names = to_text(levels).array
        names = pc.fill_null(pc.utf8_trim_whitespace(names), "")  # a gap may be a declared level
        codes = pc.fill_null(values.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        return Categories(names, codes, kind.ordered)
    if types.is_boolean(kind):
        return Text(pa.array(["False", "True"]).take(values.cast(pa.int8())))
    if types.is_null(kind):
        return np.full(len(values), np.nan)
    if _is_day(kind):
        if getattr(kind, "tz", None):  # weekdays and hours are those of the time zone
            values = pc.local_timestamp(values)
        return values.to_numpy(zero_copy_only=False).astype("datetime64[s]")
    if types.is_duration(kind):
        values = values.cast(pa.duration("us"), safe=False).dictionary_encode()
        cells = pa.array(map(str, values.dictionary.to_pylist()), pa.string())
        return Text(cells.take(values.indices))
    try:
        if types.is_decimal(kind) or (types.is_integer(kind) and values.null_count):
            values = values.cast(pa.float64())
        if types.is_integer(values.type) or types.is_floating(values.type):
            return values.to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # whole numbers beyond 2⁵³, which may name levels
        pass
    try:
        return Text(values.cast(pa.large_string() if values.nbytes >= _LARGE else pa.string()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _nested_error(name, kind, owner) from None


def joined_raw(parts: Sequence[RawColumn]) -> RawColumn:
    """The same column of several chunks, one below the other; as text where they differ."""
    if len(parts) == 1:
        return parts[0]
    kinds = {isinstance(part, np.ndarray) and part.dtype.kind == "M" for part in parts}
    if all(isinstance(part, np.ndarray) for part in parts) and len(kinds) == 1:
        return np.concatenate(parts)
    some = [part for part in parts if isinstance(part, Categories)]
    if len(some) == len(parts):
        begins = np.cumsum([0, *(len(part.distinct) for part in some)])
        codes = [np.where(p.codes < 0, -1, p.codes + begin) for p, begin in zip(some, begins)]
        levels = pa.concat_arrays([part.distinct for part in some])
        return Categories(levels, np.concatenate(codes), some[0].ordered)
    return Text(pa.concat_arrays([to_text(part).array.cast(pa.string()) for part in parts]))


def to_text(raw: RawColumn) -> Text:
    """A column of any form as text; numbers and dates as they are usually written."""
    if isinstance(raw, Text):
        return raw
    cells = encode_values(raw) if isinstance(raw, np.ndarray) else raw
    return Text(cells.distinct.take(pa.array(cells.codes, mask=cells.codes < 0)))


def encode_values(values: np.ndarray) -> DistinctCells:
    """Numbers or dates by the names of their levels."""
    encoded = pa.array(values, from_pandas=True).dictionary_encode()
    codes = np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)
    names = [level_name(item) for item in np.asarray(encoded.dictionary)]
    return DistinctCells(pa.array(names, pa.string()), codes)


def typed_number_doubts(raw: np.ndarray) -> list[str]:
    """What else numbers with a type may mean: 20240131 and 1.2024 may be dates."""
    doubts = list[str]()
    for part in (raw[:100], raw) if may_be_dates(raw) else ():
        # A float has no marks of thousands.
        doubts = number_doubts(to_text(part), NumberFormat())
        doubts = [doubt for doubt in doubts if doubt.endswith("for a date")]
        if not doubts:
            break
    return doubts


# ---- collinear columns --------------------------------------------------------------------------

_FEWEST_ROWS, _SAMPLED_ROWS = 20, 5000  # in which relations are looked for
_MOST_NUMBERS = 200  # among which linear relations are
_ADVICE = "so that their effects cannot be told apart: leave one of them out"


def describe_collinear(columns: Sequence[Column]) -> dict[str, str]:
    """Ends of sentences about columns that repeat others, or are linear in them, by name.

    A relation in a sample of the rows is tried on all of them.
    """
    ends, first, n = dict[str, str](), dict[Any, Column](), len(columns[0]) if columns else 0
    rows = evenly_spaced(n, _SAMPLED_ROWS)
    if n < _FEWEST_ROWS:
        return ends
    for column in columns:
        groups = _partition(column.take(rows))
        twin, varies = first.setdefault(groups, column), groups[1].strip(b"\0")
        if twin is not column and varies and _partition(twin) == _partition(column):
            ends[column.name] = f"repeats {twin.name!r}, {_ADVICE}"
    numbers = [column for column in first.values() if column.codes is None]
    sample = np.column_stack([*(item.values[rows] for item in numbers), np.zeros(len(rows))])
    with np.errstate(all="ignore"):
        mean, scale = sample.mean(axis=0), sample.std(axis=0)
        sample = (sample - mean) / np.where(scale > 0, scale, 1.0)
    if not (len(numbers) <= min(_MOST_NUMBERS, len(rows) - 2) and np.isfinite(sample).all()):
        return ends
    with limit_blas(1):  # threads of a small matrix wait for each other
        R, independent = np.linalg.qr(sample, mode="r"), list[int]()
    for j, column in enumerate(numbers):
        if abs(R[j, j]) > 1e-8 * np.sqrt(len(rows)) or not scale[j]:
            independent.append(j)
            continue
        weights = np.linalg.lstsq(R[:, independent], R[:, j])[0] / scale[independent]
        terms = [(k, w) for k, w in zip(independent, weights) if abs(w * scale[k]) > 1e-6]
        residual = (column.values - mean[j]) / scale[j]
        residual -= sum(w * (numbers[k].values - mean[k]) for k, w in terms)
        if np.abs(residual).max() < 1e-6:
            names = quote_cells([numbers[k].name for k, _ in terms], 9)
            ends[column.name] = f"is linear in {names}, {_ADVICE}"
    return ends


def _partition(column: Column) -> tuple[bool, bytes]:
    """Which rows have the same value and, of numbers, in which order, up to its direction."""
    if column.codes is not None:
        return len(column.levels) > 2, column.codes.astype(np.int32).tobytes()
    codes = np.unique(column.values, return_inverse=True)[1].astype(np.int32)
    if codes.max() < 2:  # as those of two levels, which rows number
        return False, (codes != codes[0]).astype(np.int32).tobytes()
    codes = 2 * codes - codes.max()
    return True, (codes * np.sign(codes[np.argmax(codes != 0)])).tobytes()
