"""Parquet, CSV and pyarrow datasets, read one record batch after another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from .._util.arguments import needed
from .._util.threads import cached_property
from .columns import advice_on_text, check_order, check_selection, column_positions
from .csv_files import CsvFile
from .sources import Block, Source, check_lengths, default_target, values_at
from .table_in_memory import TableFile
from .targets import finite_numbers
from .text_cells import Text

_LEARNED_ROWS = 1 << 14  # of a CSV file, which say whether a column holds numbers


@dataclass(frozen=True)
class CsvFragment:
    """A CSV file of numbers and labels in the place of a fragment of a dataset."""

    file: CsvFile

    @cached_property
    def physical_schema(self) -> Any:
        """Columns whose first cells are numbers must hold numbers; others are text."""
        first = next(self.file.blocks(rows=_LEARNED_ROWS))
        numbers = [Text(column.combine_chunks()).plain is not None for column in first.columns]
        kinds = [pa.float64() if number else pa.string() for number in numbers]
        return pa.schema(list(zip(first.column_names, kinds, strict=True)))

    def to_batches(self, columns: list[str], batch_size: int, **_: Any) -> Iterator[Any]:
        start = 0
        for table in self.file.blocks(columns, batch_size):
            arrays = {name: self._typed(table.column(name), name, start) for name in columns}
            yield pa.record_batch(arrays)
            start += table.num_rows

    def _typed(self, column: Any, name: str, start: int) -> Any:
        text = column.combine_chunks()
        if not pa.types.is_floating(self.physical_schema.field(name).type):
            return text

        def where(row: int) -> str:
            return self.file.where(start + row)

        return pa.array(finite_numbers(Text(text), name, where, advice_on_text()))


@dataclass
class ArrowSource(Source):
    """Record batches of a dataset, as rows of numbers or, with `frames`, as pyarrow tables.

    Attributes
    ----------
    fragments : list
        Row groups of Parquet files, a CSV file, or other fragments of a dataset.
    features : list of str
        Columns of numbers; one of fixed-size lists stands for as many. With `frames`, any columns.
    y, w, exposure : str, array or None
        Columns by name, or values of all rows; `y` may be a list of names.
    frames : bool
    begin : int
        Number of the first row in a larger whole.
    name : str
        For messages.
    has_target : ndarray of bool or None
        Which rows are read, if not all: `y`, `w` and `exposure` are arrays of their values.
    """

    fragments: list[Any]
    features: list[str]
    y: Any = None
    w: Any = None
    exposure: Any = None
    has_target: np.ndarray | None = None
    frames: bool = False
    begin: int = 0
    name: str = "the Parquet dataset"

    def __post_init__(self) -> None:
        countable = not any(isinstance(fragment, CsvFragment) for fragment in self.fragments)
        self.rows = [count_rows(fragment) for fragment in self.fragments] if countable else []
        self.n_rows = sum(self.rows) if countable else None
        if self.has_target is not None:
            self.n_rows = int(np.count_nonzero(self.has_target))
        self.names = self.features
        if not self.frames:
            named = _value_names(self.fragments[0].physical_schema, self.features)
            self.names = [name for names in named.values() for name in names]
        self.n_features = len(self.names)

    @classmethod
    def of(
        cls, data: Any, y: Any, w: Any, exposure: Any = None, *,
        frames: bool = False, columns: Sequence[str] | None = None,
        name: str = "the Parquet dataset",
    ) -> ArrowSource:  # fmt: skip
        """From a pyarrow table or dataset, or from a CSV file; `y` by default by name.

        `columns` are the names of the features, in their order; by default all others.
        """
        if isinstance(data, CsvFragment):
            fragments, schema = [data], data.physical_schema
        else:
            if isinstance(data, pa.Table):
                data = needed("pyarrow.dataset").dataset(data)
            fragments, schema = row_groups(data), data.schema
        frames = frames and not any(map(pa.types.is_fixed_size_list, schema.types))
        if not fragments and not frames:
            raise ValueError(f"{name} has no rows")
        expected = [] if columns is None else list(columns)
        y = default_target(set(schema.names) - set(expected), y)
        taken = [column for item in (y, w, exposure) for column in _names(item)]
        column_positions(schema.names, taken, name)
        features = [column for column in schema.names if column not in taken]
        if columns is not None:
            features = _selected(schema, features, expected, name)
        if not frames:
            _check_numbers(schema, features)
        if frames and taken:  # all values of these columns, as of a table in memory
            batches = list(scanned(fragments, taken, 1 << 20))
            table = pa.Table.from_batches(batches) if batches else schema.empty_table()
            values = TableFile(name, table).beside(y, w, exposure)
            return cls(fragments, features, *values, frames=frames, name=name)
        source = cls(fragments, features, y, w, exposure, None, frames, 0, name)
        if source.n_rows is not None:
            source._check_lengths(source.n_rows)
        return source

    def describe(self) -> str:
        size = "" if self.frames else f" of {self.n_rows} rows and {self.n_features} features"
        return f"{self.name}{size}"

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        return self._read(scanned(self.fragments, self._columns, block_rows), block_rows, skip)

    def labels(self) -> Iterator[Block]:
        return replace(self, features=self.features[:1]).blocks(1 << 20)

    def column(self, position: int) -> Iterator[Block]:
        if not self.frames:
            return super().column(position)
        return replace(self, features=[self.features[position]]).blocks(1 << 18)

    def n_blocks(self, block_rows: int) -> int | None:
        """Sum over row groups, none of which shares a block with the next."""
        return sum(math.ceil(n / block_rows) for n in self.rows) or None

    def partitions(self, n: int, block_rows: int) -> list[Source]:
        """One source per run of row groups."""
        step = math.ceil(len(self.fragments) / max(n, 1))
        begins = self.begin + np.cumsum([0, *self.rows])
        return [
            replace(self, fragments=self.fragments[a : a + step], begin=int(begins[a]))
            for a in range(0, len(self.fragments), step)
        ]

    @property
    def _columns(self) -> list[str]:
        beside = (column for item in (self.y, self.w, self.exposure) for column in _names(item))
        return [*self.features, *beside]

    def _read(self, batches: Iterator[Any], rows: int, skip: int = 0) -> Iterator[Block]:
        start = self.begin
        if self.has_target is not None:
            batches = _filtered(batches, self.has_target)
        tables = _grouped(batches, rows) if self.frames else _cut(batches, rows)
        for number, table in enumerate(tables):
            if number >= skip:
                yield self._block(table, number, start)
            start += table.num_rows
        if self.n_rows is None:
            self._check_lengths(start)

    def _block(self, table: Any, number: int, start: int) -> Block:
        rows = slice(start, start + table.num_rows)

        def stacked(names: list[str]) -> np.ndarray:
            return np.column_stack([_values(table.column(name)) for name in names])

        def beside(item: Any) -> Any:
            if isinstance(item, str):
                return _values(table.column(item))
            return stacked(_names(item)) if _names(item) else values_at(item, rows)

        y, w, exposure = map(beside, (self.y, self.w, self.exposure))
        X = table.select(self.features) if self.frames else stacked(self.features)
        return Block(X, y, w, number, 0, start, exposure)

    def _check_lengths(self, n_rows: int) -> None:
        given = {"y": self.y, "sample_weight": self.w, "exposure": self.exposure}
        check_lengths(n_rows, **{k: values for k, values in given.items() if not _names(values)})


def _filtered(batches: Iterator[Any], mask: np.ndarray) -> Iterator[Any]:
    start = 0
    for batch in batches:
        yield batch.filter(pa.array(mask[start : start + batch.num_rows]))
        start += batch.num_rows


def row_groups(dataset: Any) -> list[Any]:
    """Row groups of all files of a dataset; a fragment that has none as it is."""
    groups: list[Any] = []
    for fragment in dataset.get_fragments():
        split = getattr(fragment, "split_by_row_group", None)
        groups += split() if split else [fragment]
    return groups


def count_rows(fragment: Any) -> int:
    # count_rows of a single row group answers for its whole file (pyarrow 26).
    groups = getattr(fragment, "row_groups", None)
    return fragment.count_rows() if groups is None else sum(group.num_rows for group in groups)


def scanned(fragments: list[Any], columns: list[str], rows: int) -> Iterator[Any]:
    """Record batches, fragment by fragment: a scan of a whole dataset reads far ahead."""
    for fragment in fragments:
        # Little read-ahead: the default of 16 batches is hundreds of megabytes.
        yield from fragment.to_batches(columns=columns, batch_size=rows, batch_readahead=1)


def _cut(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Batches of at most `rows`: those of a CSV file are cut by bytes."""
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _grouped(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Small batches together as tables of up to `rows`."""
    tables, group = pa.Table, list[Any]()
    for batch in filter(len, batches):
        if group and sum(map(len, group)) + len(batch) > rows:
            yield tables.from_batches(group)
            group = []
        group.append(batch)
    if group:
        yield tables.from_batches(group)


def _value_names(schema: Any, columns: list[str]) -> dict[str, list[str]]:
    """Names of the values of each column: its own or, of fixed-size lists, "column[0]", …."""
    sizes = {name: getattr(schema.field(name).type, "list_size", None) for name in columns}
    return {
        name: [name] if size is None else [f"{name}[{k}]" for k in range(size)]
        for name, size in sizes.items()
    }


def _selected(schema: Any, header: list[str], names: list[str], where: str) -> list[str]:
    """Columns that hold the values of these names, in their order."""
    value_names = _value_names(schema, header)
    column_of = {value: column for column, values in value_names.items() for value in values}
    check_selection(list(column_of), names, where)
    columns = list(dict.fromkeys(column_of[name] for name in names))
    values = [name for column in columns for name in value_names[column]]
    check_order(values, names, where)  # of lists, all values or none
    return columns


def _check_numbers(schema: Any, features: list[str]) -> None:
    types = pa.types
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_fixed_size_list)
    for column in features:
        kind = schema.field(column).type
        if not any(is_such(kind) for is_such in numeric):
            raise ValueError(
                f"column {column!r} has type {kind}; features must be numbers. Name the "
                "target with y=, or drop the column"
            )


def _names(what: Any) -> list[str]:
    if isinstance(what, str):
        return [what]
    if isinstance(what, list | tuple) and what and all(isinstance(name, str) for name in what):
        return list(what)
    return []


def _values(column: Any) -> np.ndarray:
    """A column as numbers (nulls become NaN, which the fold refuses) or labels."""
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not types.is_fixed_size_list(column.type):
        return column.to_numpy(zero_copy_only=False)
    values = column.flatten().to_numpy(zero_copy_only=False)  # without the missing lists
    values = values.reshape(-1, column.type.list_size)
    if column.null_count == 0:
        return values
    out = np.full((len(column), column.type.list_size), np.nan)
    out[column.is_valid().to_numpy(zero_copy_only=False)] = values
    return out
