"""Tables of files, datasets and streams: read at once, or block by block."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._util.arguments import import_optional
from .._util.lazy import pa
from .._util.threads import cached_property
from ..exceptions import MissingTargetWarning
from . import table_files
from .columns import (
    RawTable,
    advice_on_text,
    check_order,
    check_selection,
    column_positions,
    list_names,
    no_target,
    raw_column,
    to_text,
    without_named,
)
from .dask import DaskSource
from .sources import (
    Block,
    IterableSource,
    RowFilter,
    SlicedSource,
    Source,
    check_lengths,
    default_target,
    is_chunks,
    sliced_source,
    values_at,
)
from .table_files import CsvFile, Fragments, RowTable, TableFile, open_table
from .targets import Where, finite_numbers, number_values, target_values, truth_values
from .text_cells import NumberFormat, Text, find_number_format

IN_MEMORY_BYTES = 1 << 28  # of a file, uncompressed, up to which it is read at once


def fits_in_memory(X: Any) -> bool:
    """Whether X names a CSV or Parquet file whose cells are few enough to be read at once."""
    if not isinstance(X, str | os.PathLike) or not Path(X).exists():
        return False
    if table_files.is_parquet(X):
        return _parquet_bytes(Path(X)) <= IN_MEMORY_BYTES
    if not table_files.is_csv(X):
        return table_files.has_column_names(X)
    return table_files.uncompressed_bytes(X, IN_MEMORY_BYTES) <= IN_MEMORY_BYTES


def _parquet_bytes(path: Path) -> int:
    """Bytes of all values of a Parquet file, or of a folder of them.

    Repeated values are stored once: rows are as wide as the first ones, and values as numbers.
    """
    total = 0
    for file in [path] if path.is_file() else path.rglob("*.p*q*"):
        with import_optional("pyarrow.parquet").ParquetFile(file, pre_buffer=False) as parquet:
            metadata, head = parquet.metadata, next(parquet.iter_batches(1 << 8), None)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        stored = sum(group.total_byte_size for group in groups)
        width = max(8 * metadata.num_columns, head.nbytes / len(head) if head else 0)
        total += max(stored, int(metadata.num_rows * width))
    return total


def read_complete_column(table: pa.Table, name: str, where: Where) -> np.ndarray:
    """A column without gaps, as numbers, booleans or text."""
    raw = RawTable.from_data(table.select([name]), name).column(0, name)
    values, is_present = target_values(raw, name, where)
    if not is_present.all():
        row, n_missing = where(int(np.argmin(is_present))), int((~is_present).sum())
        raise ValueError(
            f"{row}: {name!r} is missing (rows without it: {n_missing}). Leave such rows out."
        )
    return values


def warn_of_gaps(name: str, target: str, gaps: int) -> None:
    """Say how many rows have no target, if there are any."""
    if gaps:
        warnings.warn(
            f"{name}: {gaps:,} {'row' if gaps == 1 else 'rows'} without {target!r} left out.",
            MissingTargetWarning,
            stacklevel=6,
        )


@dataclass
class TableSource(Source):
    """A table, as rows of numbers or, with `frames`, as pyarrow tables.

    Attributes
    ----------
    rows : RowTable
    features : list of str
        Columns of numbers; with `frames`, any columns.
    y, w, exposure : str, array or None
        Columns by name, or values of all rows; `y` may be a list of names.
    frames : bool
    """

    rows: RowTable
    features: list[str]
    y: Any = None
    w: Any = None
    exposure: Any = None
    frames: bool = False

    def __post_init__(self) -> None:
        self.n_rows, self.names = self.rows.n_rows, self.features
        self.n_features = len(self.features)

    @classmethod
    def assign(
        cls, rows: RowTable, y: Any = None, w: Any = None, exposure: Any = None, *,
        frames: bool = False, columns: Sequence[str] | None = None, drop: Sequence[str] = (),
    ) -> TableSource:  # fmt: skip
        """Decide which columns of a table are what.

        `columns` are the names of the features, in their order; by default all others but those
        to `drop`.
        """
        header, features = rows.names, [] if columns is None else list(columns)
        source = cls(rows, features, y, w, exposure, frames)
        named = source.named_columns
        for listed in (named, drop, features):
            column_positions(header, listed, str(rows))
        if columns is None:
            features = [column for column in header if column not in {*named, *drop}]
        return replace(source, features=features)

    def _names(self, item: Any) -> list[str]:
        """Names of columns; a list holds values, unless it is that of several targets."""
        if isinstance(item, str):
            return [item]
        is_list = isinstance(item, list | tuple) and item and not self.frames
        return list(item) if is_list and all(isinstance(name, str) for name in item) else []

    @property
    def named_columns(self) -> list[str]:
        """Columns of targets, weights and exposures."""
        items = (self.y, self.w, self.exposure)
        return list(dict.fromkeys(name for item in items for name in self._names(item)))

    def read_roles(self, table: pa.Table) -> tuple[Any, Any, Any, np.ndarray | None]:
        """Targets, weights and exposures of the rows of a table, and which rows have a target.

        Targets of rows without one are without meaning; the last result is None if all have one.
        """
        name, where = str(self.rows), self.rows.locate_row
        self._check_lengths(table.num_rows)
        raw = RawTable.from_data(table, name)

        def column(item: str) -> Any:
            return raw.column(raw.names.index(item), name)

        weight, exposures = (
            number_values(column(item), item, where) if isinstance(item, str) else item
            for item in (self.w, self.exposure)
        )
        if not isinstance(self.y, str):
            return self.y, weight, exposures, None
        values, has_target = target_values(column(self.y), self.y, where)
        if has_target.all():
            return values, weight, exposures, None
        if not has_target.any():
            raise ValueError(f"{name} has no rows with a target {self.y!r}.")
        warn_of_gaps(name, self.y, int((~has_target).sum()))
        targets = np.zeros(len(has_target), values.dtype)
        targets[has_target] = values
        return targets, weight, exposures, has_target

    def with_roles(self) -> Source:
        """The rows that have a target, with targets, weights and exposures by all their cells."""
        if self.n_rows is not None:
            self._check_lengths(self.n_rows)
        if not self.named_columns:
            return self
        y, w, exposure, has_target = self.read_roles(self.rows.table(self.named_columns))
        source = replace(self, y=y, w=w, exposure=exposure)
        if has_target is None:
            return source
        n_rows = int(np.count_nonzero(has_target))
        return RowFilter(source, lambda start, n: has_target[start : start + n], n_rows=n_rows)

    @cached_property
    def _formats(self) -> dict[str, NumberFormat | None]:
        """How columns of text write their numbers, by the first rows; None: they hold others."""
        schema = getattr(self.rows, "schema", None)
        names = [
            name
            for name in dict.fromkeys([*self.features, *self.named_columns])
            if schema is None or not pa.types.is_primitive(schema.field(name).type)
        ]
        head = next(self.rows.blocks(names, _LEARNED_ROWS)) if names else pa.table({})
        columns = {name: raw_column(head.column(name), name, str(self.rows)) for name in names}
        return {
            name: find_number_format(raw, codes_too=True) if isinstance(raw, Text) else None
            for name, raw in columns.items()
            if not (isinstance(raw, np.ndarray) and raw.dtype.kind in "fiu")
        }

    def check_numbers(self) -> TableSource:
        """The table itself; features of text are refused by their first cells.

        In files of text, one feature alone is refused by its line.
        """
        names = [name for name in self.features if self._formats.get(name, name) is None]
        head = next(self.rows.blocks(names, 1)) if names else pa.table({})
        cells = {name: to_text(raw_column(head.column(name), name, "")) for name in names}
        texts = [n for n, c in cells.items() if c.plain is None and truth_values(c.array) is None]
        if len(texts) > (self.n_rows is None):
            which = "column {} holds" if len(texts) == 1 else "the columns {} hold"
            columns = which.format(list_names(texts))
            raise ValueError(f"{self.rows}: {columns} text, not numbers. {advice_on_text()}")
        if self.n_rows is not None:
            self._check_lengths(self.n_rows)
        return self

    def describe(self) -> str:
        size = f" of {self.n_rows} rows and {self.n_features} features"
        return str(self.rows) if self.frames else f"{self.rows}{size}"

    def blocks(self, block_rows: int) -> Iterator[Block]:
        start, columns = 0, [*self.features, *self.named_columns]
        for number, table in enumerate(self.rows.blocks(columns, block_rows)):
            if table.num_rows:
                yield self._block(table, number, start)
            start += table.num_rows
        if self.n_rows is None and start:
            self._check_lengths(start)

    def labels(self) -> Iterator[Block]:
        return replace(self, features=self.features[:1]).blocks(1 << 20)

    def column(self, position: int) -> Iterator[Block]:
        if not self.frames:
            return super().column(position)
        return replace(self, features=[self.features[position]]).blocks(1 << 18)

    def _block(self, table: pa.Table, number: int, start: int) -> Block:
        rows = slice(start, start + table.num_rows)

        def stack_columns(names: list[str]) -> np.ndarray:
            return np.column_stack([self._numbers(table, name, start) for name in names])

        def read_values(item: Any) -> Any:
            if isinstance(item, str):
                return self._target(table, item, start)
            names = self._names(item)
            return stack_columns(names) if names else values_at(item, rows)

        y, w, exposure = map(read_values, (self.y, self.w, self.exposure))
        X = table.select(self.features) if self.frames else stack_columns(self.features)
        return Block(X, y, w, number, 0, start, exposure)

    def _numbers(self, table: pa.Table, name: str, start: int) -> np.ndarray:
        """A column as numbers; nulls become NaN, which the fold refuses."""
        column = table.column(name)
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        raw = raw_column(column, name, str(self.rows))
        if isinstance(raw, np.ndarray) and raw.dtype.kind in "fiu":
            return raw

        def locate(row: int | None) -> str:
            return self.rows.locate_row(None if row is None else start + row)

        return finite_numbers(to_text(raw), self._formats.get(name), name, locate, advice_on_text())

    def _target(self, table: pa.Table, name: str, start: int) -> np.ndarray:
        """A column as numbers or, if its first cells are none, as labels."""
        column, types = table.column(name), pa.types
        if (
            self._formats.get(name)
            or types.is_integer(column.type)
            or types.is_floating(column.type)
        ):
            return self._numbers(table, name, start)
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column.to_numpy(zero_copy_only=False)

    def _check_lengths(self, n_rows: int) -> None:
        """Refuse a table without rows, and values of more or fewer rows than it has."""
        if not n_rows:
            raise ValueError(f"{self.rows} has no rows.")
        roles = {"y": self.y, "sample_weight": self.w, "exposure": self.exposure}
        values = {role: item for role, item in roles.items() if not self._names(item)}
        check_lengths(n_rows, **values)


def open_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    columns: Sequence[str] | None = None,
    exposure: Any = None,
    frames: bool = False,
) -> Source:
    """Open anything that holds rows.

    Parameters
    ----------
    X : array, sparse matrix, DataFrame, path, iterable, callable, Dask collection or Source
        Whatever has a shape and can be sliced by rows (NumPy, memory maps, SciPy sparse, pandas,
        h5py, Zarr); pyarrow tables and datasets; Dask arrays and dataframes; paths of ``.npy``,
        ``.parquet`` (a file or a directory), ``.csv`` or ``.tsv`` (of numbers; also compressed); an
        iterable or a generator of chunks ``X``, ``(X, y)`` or ``(X, y, weights)``; a callable
        without arguments that returns one, which, unlike a generator, can be read twice.
    y : array-like, str or None
        Targets; of Parquet and CSV the name of the column(s), by default "y" where there is one; of
        others also the path of a ``.npy``.
    sample_weight : array-like, str or None
        Weights, or the name of a column: one named "sample_weight" is a feature unless it is named
        here, as in a frame.
    columns : sequence of str, optional
        Names of the columns of X, in the order in which they are given; by default all but those
        of `y` and `sample_weight`, as they come. Parquet and CSV files and Dask dataframes may have
        them in any order; a warning names further ones, which are ignored. Chunks that are frames
        must have them in this order.
    exposure : array-like, str or None
        Exposures, or the name of a column.
    frames : bool
        Whether blocks are tables, whose columns may hold anything, where X has names of columns.

    Returns
    -------
    Source
        The rows, to be read block by block.
    """
    X, y, sample_weight, exposure = without_named("the data", X, y, sample_weight, exposure)
    path = Path(X) if isinstance(X, str | os.PathLike) else None
    if path is not None and not path.exists():
        raise FileNotFoundError(f"no file or directory {str(path)!r}")
    if path is not None:
        table_files.refuse_pipe(path)
    package, roles = type(X).__module__.split(".")[0], (y, sample_weight, exposure)
    rows = None if path is None else open_table(X)
    rows = Fragments.from_data(X) if package == "pyarrow" else rows
    if rows is not None:
        y = default_target(set(rows.names).difference([] if columns is None else columns), y)
        table = TableSource.assign(rows, y, *roles[1:], frames=frames, columns=columns)
        if columns is not None:
            named = table.named_columns
            check_selection([n for n in rows.names if n not in named], columns, str(rows))
        return table.with_roles() if frames else table.check_numbers()
    if path is not None and path.suffix.lower() != ".npy":
        raise ValueError(
            f"{str(path)!r} is not a file of rows that is read. {table_files.known_suffixes()}"
        )
    is_dask = package.startswith("dask")
    if (is_dask or isinstance(X, DaskSource)) and not isinstance(exposure, str | None):
        raise ValueError("exposure of a Dask collection must be the name of a column")
    if is_dask:
        return DaskSource(X, *roles, frames=frames, columns=columns)
    if callable(X) or (path is None and is_chunks(X)):
        return IterableSource(X, *roles, frames, columns)
    if isinstance(exposure, str):
        raise ValueError(f"exposure={exposure!r} names a column, but X has no names of columns")
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise ValueError("a Source has its own targets and weights; leave y and weights out")
        if columns is not None and X.names is not None:
            check_order(X.names, columns, X.describe())
    source = X if isinstance(X, Source) else sliced_source(path or X, y, sample_weight)
    if exposure is None:
        return source
    if not isinstance(source, SlicedSource | TableSource | IterableSource):
        raise ValueError(f"exposure of {source.describe()} must be the name of a column")
    if source.n_rows is not None:
        check_lengths(source.n_rows, exposure=exposure)
    return replace(source, exposure=exposure)


def is_in_memory(X: Any) -> bool:
    """Whether X is an array, a sparse matrix, a frame or a nested list, not read in blocks."""
    if isinstance(X, Source | str | os.PathLike) or callable(X):
        return False
    if type(X).__module__.startswith(("dask", "h5py", "zarr", "pyarrow")):
        return False
    return not is_chunks(X)


_LEARNED_ROWS = 1 << 14  # rows that show how numbers are written, and whether there are any


def _assign_file(
    file: TableFile, y: Any, sample_weight: Any, exposure: Any, columns: Sequence[str] | None
) -> TableSource:
    """A table of a file, which must have a target."""
    y = default_target(file.names, y)
    if y is None:
        raise no_target(str(file), file.names)
    return TableSource.assign(file, y, sample_weight, exposure, frames=True, columns=columns)


def load_table(
    file: str | os.PathLike[str] | TableFile,
    y: Any = None,
    sample_weight: Any = None,
    exposure: Any = None,
    columns: Sequence[str] | None = None,
) -> tuple[pa.Table, Any, Any, Any]:
    """Features, targets, weights and exposures of a file; rows without a target are left out.

    Parameters
    ----------
    file : path or TableFile
    y, sample_weight, exposure : str or array-like, optional
        Columns by name, or values of all rows. The target is by default the column ``"y"``.
    columns : sequence of str, optional
        The features; by default all other columns.
    """
    source = _assign_file(open_table(file), y, sample_weight, exposure, columns)
    table = source.rows.table([*source.features, *source.named_columns])
    *values, has_target = source.read_roles(table)
    X = table.select(source.features)
    if has_target is None:
        return X, *values
    return X.filter(has_target), *(v if v is None else np.asarray(v)[has_target] for v in values)


@contextmanager
def open_large_table(
    X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None,
    columns: Sequence[str] | None = None,
) -> Iterator[Source]:  # fmt: skip
    """A table that is read block by block, for as long as the context lasts.

    Parameters
    ----------
    X : what `open_source` opens
        Chunks may be frames.
    y, sample_weight, exposure : str or array-like, optional
        Columns by name, or values of all rows.
    columns : sequence of str, optional
        Features of a file; by default all other columns.
    """
    file = open_table(X) if isinstance(X, str | os.PathLike) and Path(X).exists() else None
    if file is None:
        source = open_source(X, y, sample_weight, exposure=exposure, frames=True)
        source.keep_chunks()
        yield source
        return
    table = _assign_file(file, y, sample_weight, exposure, columns)
    # The file has no name, and is gone with the process, however that ends.
    with tempfile.TemporaryFile() as cells:
        if isinstance(file, CsvFile):
            columns = list(dict.fromkeys([*table.features, *table.named_columns]))
            table = replace(table, rows=_CsvCells.write(file, cells, columns))
        yield table.with_roles()


@dataclass(frozen=True)
class _CsvCells(Fragments):
    """The text of some columns of a CSV file, in a Parquet file."""

    file: Any = None

    @classmethod
    def write(cls, file: CsvFile, cells: Any, columns: list[str]) -> _CsvCells:
        """Write the text to an open file."""
        schema = pa.schema([(column, pa.string()) for column in columns])
        with import_optional("pyarrow.parquet").ParquetWriter(cells, schema) as writer:
            for table in file.blocks(columns, table_files.BLOCK_ROWS):
                writer.write_table(table)
        groups = import_optional("pyarrow.dataset").ParquetFileFormat().make_fragment(cells)
        return cls(groups.split_by_row_group(), schema, str(file), file)

    def locate_row(self, row: int | None) -> str:
        return self.file.locate_row(row)
