"""Tables that are read chunk by chunk: Parquet, CSV, Dask, frames that come one after the other.

A chunk is a frame (or an array) with targets, weights and exposures beside it. Reading all chunks
once is a *pass*.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..extras import needed
from .columns import column_positions
from .dask import DaskSource
from .files import count_rows, row_groups
from .frames import is_frame
from .opening import open_source
from .sources import Peek, Source, check_lengths, default_names, labels_of, parts_of
from .suffixes import is_csv, is_parquet, parquet_dataset

_RUNS = 16  # places of a file that a sample is taken from


@dataclass(frozen=True)
class Chunk:
    """Some consecutive rows of a table.

    Attributes
    ----------
    X : DataFrame, pyarrow table or array
    y, w, exposure : ndarray or None
        Targets, weights and exposures of these rows.
    number : int
        Of the chunk, for messages.
    """

    X: Any
    y: Any
    w: Any
    exposure: Any
    number: int = 0

    def __len__(self) -> int:
        return self.X.shape[0]

    def head(self, rows: int) -> Chunk:
        """The first rows."""
        first = slice(0, rows)
        X = self.X.iloc[first] if hasattr(self.X, "iloc") else self.X[first]
        y, w, exposure = (labels_of(values, first) for values in (self.y, self.w, self.exposure))
        return Chunk(X, y, w, exposure, self.number)


class TableSource:
    """A table that is read chunk by chunk.

    Attributes
    ----------
    once : bool
        Whether it can be read only once (a generator).
    parts : list or None
        For Dask: delayed (X, y, weights, exposure) of each partition.
    """

    once = False
    parts: list[tuple[Any, ...]] | None = None

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """All chunks, none of them longer than `rows`."""
        raise NotImplementedError

    def labels(self) -> Iterator[Chunk]:
        """All chunks, with as few columns as can be: targets and weights are what is wanted."""
        return self.chunks(1 << 20)

    def sample(self, rows: int) -> list[Chunk]:
        """All rows where they are no more than `rows`, else the first of them."""
        return _first(self.chunks(rows), rows)

    def describe(self) -> str:
        return f"the table of {type(self).__name__}"


def _first(chunks: Iterator[Chunk], rows: int) -> list[Chunk]:
    found = []
    for chunk in chunks:
        found.append(chunk.head(rows) if len(chunk) > rows else chunk)
        rows -= len(found[-1])
        if rows <= 0:
            break
    return found


def open_table(X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None) -> Any:
    """Open anything that holds a table.

    Parameters
    ----------
    X : path, pyarrow dataset, Dask collection, iterable, callable, or what `open_source` opens
        Paths of Parquet (a file or a folder) and CSV; an iterable of chunks ``X``, ``(X, y)`` or
        ``(X, y, weights)``, frames or arrays, or a callable without arguments that returns one.
    y, sample_weight, exposure : str or array-like, optional
        Columns by name, or values of all rows. ``"y"`` and ``"sample_weight"`` by default where
        there are columns of that name.

    Returns
    -------
    TableSource
    """
    if isinstance(X, TableSource):
        return X
    package = type(X).__module__.split(".")[0]
    if isinstance(X, str | os.PathLike):
        path = Path(X)
        if not path.exists():
            raise FileNotFoundError(f"no file or directory {str(path)!r}")
        if is_csv(path) or (is_parquet(path) and not _holds_lists(path)):
            return ArrowTable(_ArrowFiles(str(path), is_csv(path)), y, sample_weight, exposure)
    elif package == "pyarrow":
        return ArrowTable(_ArrowData(X), y, sample_weight, exposure)
    elif package.startswith("dask"):
        return DaskTable(X, y, sample_weight, exposure)
    elif not isinstance(X, Source) and not hasattr(X, "shape"):
        return ChunkTable(X, y, sample_weight, exposure)
    if isinstance(exposure, str):
        raise ValueError(f"exposure={exposure!r} names a column, but X has no names of columns")
    return BlockTable(open_source(X, y, sample_weight), exposure)


def has_text(X: Any) -> bool:
    """Whether a file, dataset or Dask frame has columns of other things than numbers.

    A CSV file counts as if it had: it is read as a table, or not at all.
    """
    if isinstance(X, str | os.PathLike):
        if is_csv(X):
            return Path(X).exists()
        if not (Path(X).exists() and is_parquet(X)):
            return False
        X = parquet_dataset(X)
    package = type(X).__module__.split(".")[0]
    if package == "pyarrow" and not is_frame(X):
        return any(_is_text(kind) for kind in X.schema.types)
    if package.startswith("dask") and hasattr(X, "columns"):
        return any(kind.kind not in "fiub" for kind in X.dtypes)
    return False


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    words = types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind)
    return words or types.is_temporal(kind)


def _holds_lists(path: Path) -> bool:
    schema = parquet_dataset(path).schema
    types = needed("pyarrow").types
    return any(types.is_fixed_size_list(kind) for kind in schema.types)


# ---- Parquet and CSV ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _ArrowFiles:
    """Files by their path: other processes can open them, too."""

    path: str
    csv: bool

    def names(self) -> list[str]:
        if self.csv:
            with self._opened() as reader:
                return list(reader.schema.names)
        return list(parquet_dataset(self.path).schema.names)

    def batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        if not self.csv:
            yield from _batches(parquet_dataset(self.path), columns, rows)
            return
        with self._opened(columns) as reader:
            yield from reader

    def spread(self, columns: list[str], rows: int) -> Iterator[Any] | None:
        """Rows from all over the files, where they can be entered anywhere."""
        return None if self.csv else _spread_batches(parquet_dataset(self.path), columns, rows)

    def _opened(self, columns: list[str] | None = None) -> Any:
        """CSV in blocks, with the types of the first one; whole numbers may have digits later."""
        csv, pa = needed("pyarrow.csv"), needed("pyarrow")
        read = csv.ReadOptions(block_size=1 << 24)
        parse = csv.ParseOptions(delimiter="\t" if ".tsv" in Path(self.path).name else ",")
        convert = csv.ConvertOptions(strings_can_be_null=True)
        with csv.open_csv(self.path, read, parse, convert) as first:
            schema = first.schema
        kinds = {
            field.name: pa.float64() if pa.types.is_integer(field.type) else field.type
            for field in schema
        }
        # A first block without any value says nothing about the type.
        kinds = {k: pa.string() if pa.types.is_null(t) else t for k, t in kinds.items()}
        convert.column_types = kinds
        convert.include_columns = columns or []
        return csv.open_csv(self.path, read, parse, convert)

    def __str__(self) -> str:
        return f"the file {self.path!r}"


@dataclass(frozen=True)
class _ArrowData:
    """A pyarrow dataset."""

    dataset: Any

    def names(self) -> list[str]:
        return list(self.dataset.schema.names)

    def batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        return _batches(self.dataset, columns, rows)

    def spread(self, columns: list[str], rows: int) -> Iterator[Any] | None:
        return _spread_batches(self.dataset, columns, rows)

    def __str__(self) -> str:
        return "the pyarrow dataset"


def _batches(dataset: Any, columns: list[str], rows: int) -> Iterator[Any]:
    """Record batches of a dataset, row group by row group: a scan of all reads far ahead."""
    for fragment in row_groups(dataset):
        yield from _scanned(fragment, columns, rows)


def _scanned(fragment: Any, columns: list[str], rows: int) -> Iterator[Any]:
    # Little read-ahead: the default of 16 batches is hundreds of megabytes.
    return fragment.to_batches(columns=columns, batch_size=rows, batch_readahead=1)


def _spread_batches(dataset: Any, columns: list[str], rows: int) -> Iterator[Any] | None:
    """The first rows of row groups from all over a dataset; None where all rows are wanted."""
    fragments = row_groups(dataset)
    if len(fragments) < 2 or sum(map(count_rows, fragments)) <= rows:
        return None
    picked = np.unique(np.linspace(0, len(fragments) - 1, _RUNS).astype(int))

    def batches() -> Iterator[Any]:
        share = -(-rows // len(picked))
        for at in picked.tolist():
            yield from _upto(_scanned(fragments[at], columns, share), share)

    return batches()


def _upto(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    for batch in batches:
        # Copied: a slice would keep the whole row group in memory.
        yield batch.take(np.arange(min(rows, batch.num_rows)))
        rows -= batch.num_rows
        if rows <= 0:
            return


class ArrowTable(TableSource):
    """Record batches of Parquet, CSV or a pyarrow dataset."""

    def __init__(self, files: Any, y: Any, w: Any, exposure: Any) -> None:
        names = files.names()
        y, w = default_names(names, y, w)
        self.files, self.beside = files, (y, w, exposure)
        taken = [name for name in self.beside if isinstance(name, str)]
        column_positions(names, taken, str(files))
        self.features = [name for name in names if name not in taken]

    def describe(self) -> str:
        return str(self.files)

    def chunks(self, rows: int) -> Iterator[Chunk]:
        return self._read(self.features, rows)

    def labels(self) -> Iterator[Chunk]:
        return self._read(self.features[:1], 1 << 20)

    def sample(self, rows: int) -> list[Chunk]:
        arrays = any(not isinstance(item, str | None) for item in self.beside)
        spread = None if arrays else self.files.spread(self._columns(self.features), rows)
        if spread is None:
            return super().sample(rows)
        return list(self._chunked(spread, self.features, rows))

    def _columns(self, features: list[str]) -> list[str]:
        return [*features, *(name for name in self.beside if isinstance(name, str))]

    def _read(self, features: list[str], rows: int) -> Iterator[Chunk]:
        batches = self.files.batches(self._columns(features), rows)
        return self._chunked(batches, features, rows)

    def _chunked(self, batches: Iterator[Any], features: list[str], rows: int) -> Iterator[Chunk]:
        pa, start = needed("pyarrow"), 0
        for number, group in enumerate(_grouped(batches, rows)):
            table = pa.Table.from_batches(group)
            beside = []
            for item in self.beside:
                if isinstance(item, str):
                    beside.append(_column_values(table.column(item)))
                else:
                    beside.append(labels_of(item, slice(start, start + table.num_rows)))
            start += table.num_rows
            y, w, exposure = beside
            yield Chunk(table.select(features), y, w, exposure, number)
        _check_ends(self.beside, start)


def _grouped(batches: Iterator[Any], rows: int) -> Iterator[list[Any]]:
    """Small batches together, up to about `rows`."""
    group: list[Any] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        if group and sum(item.num_rows for item in group) + batch.num_rows > rows:
            yield group
            group = []
        group.append(batch)
    if group:
        yield group


def _column_values(column: Any) -> np.ndarray:
    """A column as numbers or labels."""
    if needed("pyarrow").types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.to_numpy()


def _check_ends(beside: tuple[Any, ...], count: int) -> None:
    """Refuse targets for more rows than there are."""
    y, w, exposure = (None if isinstance(values, str) else values for values in beside)
    check_lengths(count, y=y, sample_weight=w, exposure=exposure)


# ---- chunks, arrays, Dask -----------------------------------------------------------------------


class ChunkTable(TableSource):
    """Chunks X, (X, y) or (X, y, weights) from an iterable, or from a callable that makes one."""

    def __init__(self, items: Any, y: Any, w: Any, exposure: Any) -> None:
        self.items, self.beside = items, (y, w, exposure)
        self.once = hasattr(items, "__next__")

    def describe(self) -> str:
        return f"the stream {type(self.items).__name__}"

    def chunks(self, rows: int) -> Iterator[Chunk]:
        start = 0
        for number, item in enumerate(self.items() if callable(self.items) else self.items):
            X, *rest = parts_of(item, number)
            X = X if is_frame(X) else np.asarray(X)
            end, found = start + X.shape[0], []
            for values, given in zip(self.beside, (*rest, None)):
                found.append(_beside(X, values, given, slice(start, end)))
            names = [name for name in self.beside if isinstance(name, str)]
            y, w, exposure = found
            if X.shape[0]:
                yield Chunk(_without(X, names), y, w, exposure, number)
            start = end
        _check_ends(self.beside, start)

    def sample(self, rows: int) -> list[Chunk]:
        if not self.once:
            return super().sample(rows)
        peek = Peek(self.items)
        found = _first(ChunkTable(peek.items, *self.beside).chunks(rows), rows)
        self.items = peek.restored()
        return found


def _beside(X: Any, wanted: Any, given: Any, rows: slice) -> Any:
    """Targets (or weights) of a chunk: its own, a column of it, or some of those of all rows."""
    if given is not None:
        return np.asarray(given)
    if isinstance(wanted, str):
        return np.asarray(X[wanted])
    return labels_of(wanted, rows)


def _without(X: Any, names: list[str]) -> Any:
    if not names:
        return X
    if hasattr(X, "iloc"):
        return X.drop(columns=names)
    return X.drop_columns(names) if hasattr(X, "drop_columns") else X.drop(names)


class BlockTable(TableSource):
    """Rows of numbers that `open_source` opens: .npy, HDF5, Zarr, memory maps."""

    def __init__(self, source: Source, exposure: Any) -> None:
        self.source, self.exposure, self.once = source, exposure, source.once

    def describe(self) -> str:
        return self.source.describe()

    def chunks(self, rows: int) -> Iterator[Chunk]:
        for number, block in enumerate(self.source.blocks(rows)):
            X = block.X.toarray() if hasattr(block.X, "toarray") else block.X
            own = slice(block.start, block.start + X.shape[0])
            yield Chunk(X, block.y, block.w, labels_of(self.exposure, own), number)

    def sample(self, rows: int) -> list[Chunk]:
        n = self.source.n_rows
        if n is None or n <= rows or self.exposure is not None:
            return super().sample(rows)
        block = self.source.sample(rows)
        return [] if block is None else [Chunk(block.X, block.y, block.w, None)]


class DaskTable(TableSource):
    """Partitions of a Dask frame or array, which stay where they are."""

    def __init__(self, X: Any, y: Any, w: Any, exposure: Any) -> None:
        if exposure is not None and not isinstance(exposure, str):
            raise ValueError("exposure of a Dask collection must be the name of a column")
        names = list(getattr(X, "columns", ()))
        y, w = default_names(names, y, w)
        if exposure is not None:
            column_positions(names, [exposure], "the Dask collection")
        source = DaskSource.of(X, y, w)
        self.parts = [(*part, exposure) for part in source.parts]

    def describe(self) -> str:
        return f"the Dask collection of {len(self.parts or [])} partitions"

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Partition by partition in this process, to look at the first rows."""
        import dask

        for number, part in enumerate(self.parts or []):
            yield from chunks_of_partition(rows, number, *dask.compute(*part))


def chunks_of_partition(
    rows: int, number: int, X: Any, y: Any, w: Any, exposure: Any
) -> Iterator[Chunk]:
    """The chunks of one partition of Dask, where it is."""
    y, w = (None if values is None else np.asarray(values) for values in (y, w))
    if exposure is not None:
        X, exposure = X.drop(columns=[exposure]), np.asarray(X[exposure])
    for begin in range(0, X.shape[0], rows):
        own = slice(begin, begin + rows)
        part = X.iloc[own] if hasattr(X, "iloc") else X[own]
        yield Chunk(part, labels_of(y, own), labels_of(w, own), labels_of(exposure, own), number)
