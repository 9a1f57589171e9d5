"""Tables that are larger than memory: read block by block, as often as a fit asks for.

Parquet files are read as they are. The text of a CSV file is split into cells once, which are kept
in a temporary folder, and so are the chunks of a generator. What a column holds is decided from all
of its rows (`TableReader`), by the rules of tables in memory.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from .._util.arguments import needed
from .arrow import ArrowSource, row_groups, scanned
from .columns import column_positions
from .csv_files import CsvFile
from .opening import open_table
from .sources import Source
from .suffixes import is_csv, is_parquet, parquet_dataset
from .table_in_memory import TableFile, target_in

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

BLOCK = 1 << 16  # rows that are read at a time
_PREFIX = "kernelmaps-rows-"
_LOCK = ".kernelmaps-lock"  # a folder without this file is not ours


@contextmanager
def open_large_table(
    X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None,
    columns: Sequence[str] | None = None, encoding: str = "utf-8",
) -> Iterator[Source]:  # fmt: skip
    """A table that is read block by block, for as long as the context lasts.

    Parameters
    ----------
    X : path, or what `open_table` opens
    y, sample_weight, exposure : str or array-like, optional
        Columns by name, or values of all rows.
    columns : sequence of str, optional
        Features of a file; by default all other columns.
    encoding : str
        Of CSV text.
    """
    path = Path(X) if isinstance(X, str | os.PathLike) else None
    if path is not None and path.exists() and is_csv(path):
        with temporary_folder() as folder:
            file = CsvFile(path, encoding)
            yield _split_into_cells(file, folder, (y, sample_weight, exposure), columns)
    elif path is not None and columns is not None and is_parquet(path):
        data, beside = parquet_dataset(path), (y, sample_weight, exposure)
        taken = [*columns, *(name for name in beside if isinstance(name, str))]
        data = data.replace_schema(pa.schema([data.schema.field(name) for name in taken]))
        yield ArrowSource.of(data, *beside, frames=True, name=str(path))
    else:
        source = open_table(X, y, sample_weight, exposure)
        source.keep_chunks()
        yield source


def _split_into_cells(
    file: CsvFile, folder: Path, beside: tuple[Any, Any, Any], columns: Sequence[str] | None
) -> ArrowSource:
    """The rows of a CSV file, features as text, from a Parquet file in a folder."""
    name = str(file.path)
    y = target_in(file.names, beside[0], name)
    named = [item for item in (y, *beside[1:]) if isinstance(item, str)]
    column_positions(file.names, named, name)
    features = [c for c in file.names if c not in named] if columns is None else list(columns)
    counted = named or features[:1]  # a table without columns has no rows
    values = TableFile(name, file.table(counted), file).beside(y, *beside[1:])
    path, writer = folder / "cells.parquet", None
    try:
        for table in file.blocks(features, BLOCK):
            if writer is None:
                writer = needed("pyarrow.parquet").ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    return ArrowSource(row_groups(parquet_dataset(path)), features, *values, frames=True, name=name)


def raw_tables(path: Path, names: Sequence[str], encoding: str = "utf-8") -> Iterator[TableFile]:
    """Some columns of a CSV or Parquet file as they are stored, a block of rows at a time."""
    csv, start = CsvFile(path, encoding) if is_csv(path) else None, 0
    if csv is not None:
        tables = csv.blocks(names, BLOCK)
    else:
        tables = map(pa.table, _parquet_batches(path, list(names)))
    for table in tables:
        yield TableFile(str(path), table, csv, start)
        start += table.num_rows


def _parquet_batches(path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a Parquet file, or of a folder of them."""
    if path.is_dir():
        yield from scanned(row_groups(parquet_dataset(path)), names, BLOCK)
        return
    # Its module does not import pandas, and CSV files do without it.
    with needed("pyarrow.parquet").ParquetFile(path) as file:
        for batch in file.iter_batches(BLOCK, columns=names):
            yield batch.select(names)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed at the end, also if the process is asked to end.

    Folders that processes left behind when they were killed are removed first: they hold a file of
    ours, which is not locked any more.
    """
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"{_PREFIX}*"):
        with suppress(OSError), _lock(left, os.O_RDWR):
            shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"new-{_PREFIX}"))
    with _lock(made, os.O_RDWR | os.O_CREAT), _signals_raise():
        folder = made.rename(base / made.name.removeprefix("new-"))  # locked, from the first moment
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _lock(folder: Path, flags: int) -> Iterator[None]:
    """Hold the lock of a folder; OSError if another process or user does, or if there is none."""
    if fcntl is None:
        if folder.name.startswith(_PREFIX):
            raise OSError("there are no locks here")
        yield
        return
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is not ours")
    lock = os.open(folder / _LOCK, flags | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Let signals that end the process raise SystemExit, so that folders are removed."""
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    codes = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {code: signal.getsignal(code) for code in codes}
    changed = [code for code, handler in before.items() if handler is signal.SIG_DFL]

    def end(code: int, frame: Any) -> None:
        raise SystemExit(128 + code)

    for code in changed:
        signal.signal(code, end)
    try:
        yield
    finally:
        for code in changed:
            signal.signal(code, before[code])
