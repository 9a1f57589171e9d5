"""Tables that are larger than memory: read block by block, as often as a fit asks for.

Parquet files are read as they are. The text of a CSV file is parsed once and written to a temporary
folder as typed columns. How each column is written is learned from the first rows, and learned anew
where later ones contradict it.
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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .._util.arguments import needed
from .arrow import ArrowSource, row_groups, scanned
from .columns import column_positions, no_target
from .csv_files import CsvFile
from .opening import open_table
from .sources import Source, default_target
from .suffixes import is_csv, is_parquet, parquet_dataset
from .table_in_memory import TableFile, warn_of_gaps
from .table_reader import (
    ColumnFormat,
    ColumnKindError,
    ReadingNotes,
    TableReader,
    learn_formats,
    typed_column,
)
from .targets import LARGEST_EXACT_INTEGER
from .text_cells import LABEL_GAPS, quoted

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

BLOCK = 1 << 16  # rows that are read at a time
_PREFIX = "kernelmaps-rows-"
_LOCK = ".kernelmaps-lock"  # a folder without this file is not ours


@dataclass(frozen=True)
class Learning:
    """What the columns of a table are learned with.

    Attributes
    ----------
    owner : str
        Estimator or file, for messages.
    sample_rows : int
        Rows that say what is left out, and which parts of a date are features.
    categorical, terms
        See `TableReader.learn_and_read`.
    """

    owner: str
    sample_rows: int
    categorical: Any = None
    terms: Any = None


@contextmanager
def open_large_table(
    X: Any, y: Any, sample_weight: Any, exposure: Any, learning: Learning,
    columns: Sequence[str] | None = None, encoding: str = "utf-8",
) -> Iterator[Source]:  # fmt: skip
    """A table that is read block by block, for as long as the context lasts.

    Parameters
    ----------
    X : path, or what `open_table` opens
    y, sample_weight, exposure : str or array-like, optional
        Columns by name, or values of all rows.
    learning : Learning
    columns : sequence of str, optional
        Features of a file; by default all other columns.
    encoding : str
        Of CSV text.
    """
    path = Path(X) if isinstance(X, str | os.PathLike) else None
    if path is not None and path.exists() and is_csv(path):
        with temporary_folder() as folder:
            file = CsvFile(path, encoding)
            y = default_target(file.names, y)
            if y is None:
                raise no_target(str(path), file.names)
            yield _Spool(file, folder, (y, sample_weight, exposure), columns, learning).source()
    elif path is not None and columns is not None and is_parquet(path):
        data, beside = parquet_dataset(path), (y, sample_weight, exposure)
        taken = [*columns, *(name for name in beside if isinstance(name, str))]
        data = data.replace_schema(pa.schema([data.schema.field(name) for name in taken]))
        yield ArrowSource.of(data, *beside, frames=True, name=str(path))
    else:
        yield open_table(X, y, sample_weight, exposure)


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


class _AnotherFormatError(Exception):
    """A column is written in another way than its first cells were."""

    def __init__(self, how: ColumnFormat) -> None:
        super().__init__(how.name)
        self.how = how


@dataclass
class _Spool:
    """Writes the columns of a CSV file to a folder, typed."""

    file: CsvFile
    folder: Path
    beside: tuple[Any, Any, Any]  # targets, weights and exposures: names of columns, or arrays
    columns: Sequence[str] | None
    learning: Learning
    formats: dict[str, ColumnFormat] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = self.file.names
        self.name = str(self.file.path)
        self.named = [name for name in self.beside if isinstance(name, str)]
        column_positions(names, self.named, self.name)
        features = [name for name in names if name not in self.named]
        self.features = features if self.columns is None else list(self.columns)
        self.target = self.beside[0] if isinstance(self.beside[0], str) else None

    def source(self) -> ArrowSource:
        """The rows, with the reader that was learned from them."""
        first = next(raw_tables(self.file.path, self._taken, self.file.encoding))
        if not first.table.num_rows:
            raise ValueError(f"{self.name} has no rows.")
        self.formats, remarks = self._learned(first.table.select(self.features), self.features)
        tried = {name: [how] for name, how in self.formats.items()}
        while True:
            try:
                integer_targets, notes = self._write(first)
                break
            except _AnotherFormatError as error:
                how, name = error.how, error.how.name
                tried_before = how in tried[name]
                self.formats[name] = ColumnFormat(name, "category", "text") if tried_before else how
                tried[name].append(how)
        groups = row_groups(parquet_dataset(self.folder / "rows.parquet"))
        name = f"the file {self.name!r}"
        source = ArrowSource(groups, self.features, *self.beside, frames=True, name=name)
        source.integer_targets = integer_targets
        source.reader = self._reader(source, remarks, notes)
        return source

    @property
    def _taken(self) -> list[str]:
        return list(dict.fromkeys([*self.features, *self.named]))

    def _reader(self, source: Source, remarks: list[str], notes: ReadingNotes) -> TableReader:
        """How raw text is read: formats of the text, all else from a sample of typed columns."""
        learning = self.learning
        categories = [name for name, how in self.formats.items() if how.kind == "category"]
        tables = [block.X for block in source.samples(learning.sample_rows)]
        typed, _ = TableReader.learn_and_read(tables, learning.owner, categories, learning.terms)
        columns = []
        for column in typed.columns:
            how = self.formats[column.name]
            if column.kind in ("number", "date"):
                column = replace(column, form=how.form, unit=how.unit)
            else:
                notes.unreadable.pop(column.name, None)
            columns.append(column)
        return TableReader(columns, typed.named).with_remarks(remarks, notes.remarks)

    def _write(self, first: TableFile) -> tuple[bool, ReadingNotes]:
        """Write all rows that have a target; whether targets are whole numbers, and notes."""
        notes, writer, gaps = ReadingNotes(), None, 0
        kind, integer_targets = "", self.target is not None
        try:
            for block in raw_tables(self.file.path, self._taken, self.file.encoding):
                arrays: dict[str, Any] = {}
                if self.target is not None:
                    y, has_target = self._targets(block, self.target, kind)
                    if not kind and not len(y):
                        raise ValueError(
                            f"the first {BLOCK:,} rows of {self.name} have no {self.target!r}."
                        )
                    kind = kind or ("f" if y.dtype.kind in "iuf" else y.dtype.kind)
                    gaps += int((~has_target).sum())
                    integer_targets = integer_targets and y.dtype.kind == "i"
                    block = replace(block, table=block.table.filter(has_target))
                    arrays[self.target] = y.astype(np.float64) if kind == "f" else y
                names = [name for name in self.named if name != self.target]
                arrays |= {name: block.numbers(name) for name in names}
                arrays |= {name: self._typed(block, name, first, notes) for name in self.features}
                table = pa.table(arrays)
                if writer is None:
                    writer = needed("pyarrow.parquet").ParquetWriter(
                        self.folder / "rows.parquet", table.schema,
                        use_dictionary=[f.name for f in table.schema if f.type == pa.string()],
                    )  # fmt: skip
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
        if self.target is not None:
            warn_of_gaps(self.name, self.target, gaps)
        return integer_targets, notes

    def _targets(self, block: TableFile, target: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Targets of a block, of the same kind as those of the first one."""
        if kind == "U":
            cells = block.raw(target).cells
            has_target = np.append(cells.present(LABEL_GAPS), False)[cells.codes]
            labels = cells.distinct.take(pa.array(cells.codes[has_target]))
            return np.array(labels.to_pylist(), dtype=str), has_target
        y, has_target = block.target(target)
        now = "f" if y.dtype.kind in "iuf" else y.dtype.kind
        if kind and len(y) and now != kind:
            held = "numbers" if kind == "f" else "true and false"
            example = quoted(map(str, y[:1].tolist()))
            raise ValueError(
                f"{block.where(int(np.argmax(has_target)))}: the target {target!r} holds {held} in "
                f"the rows before, and {example} here. Correct these cells, or put a letter in "
                "front of all if they name classes."
            )
        if (
            now == "f"
            and len(y)
            and np.abs(y).max() > LARGEST_EXACT_INTEGER
            and y.dtype.kind in "iu"
        ):
            raise ValueError(
                f"{self.name}: the target {target!r} holds whole numbers beyond 2⁵³, which "
                "float64 does not represent exactly. Put a letter in front if they name classes."
            )
        return y, has_target

    def _typed(self, block: TableFile, name: str, first: TableFile, notes: ReadingNotes) -> Any:
        """A column of a block; raises where its cells call for another format."""
        how, block_notes, raw = self.formats[name], ReadingNotes(), block.raw(name)
        values = None
        with suppress(ColumnKindError):
            values = typed_column(raw, how, self.learning.owner, block_notes)
        if values is not None and not block_notes.unreadable:
            return values
        both = pa.concat_tables([first.table, block.table]).select(self.features)
        again = self._learned(both, [name])[0][name]
        if (again.kind, again.form, again.unit) != (how.kind, how.form, how.unit):
            raise _AnotherFormatError(again)
        if values is None:
            raise _AnotherFormatError(ColumnFormat(name, "category", "text"))
        notes.add(how, 1, 1, block_notes.unreadable[name])
        return values

    def _learned(
        self, table: pa.Table, names: Sequence[str]
    ) -> tuple[dict[str, ColumnFormat], list[str]]:
        learning = self.learning
        return learn_formats(table, learning.owner, learning.categorical, learning.terms, names)


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
