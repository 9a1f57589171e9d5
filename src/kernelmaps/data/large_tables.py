"""CSV and Parquet files larger than memory as tables.

To predict, rows are read and forgotten a block at a time (`TableBlocks`). To fit, a file is read
once (`prepare_table`): the cells are read block by block, as `read_table` reads those of a whole
file, and written to temporary Parquet files of numbers and names of levels, which are read as often
as a fit asks for. What a column holds is told from the first block, and told anew where later ones
contradict it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..extras import needed
from .arrow import ArrowSource, row_groups, scanned
from .columns import ColumnChoice, column_positions
from .csv_text import csv_blocks, gaps_of
from .holdout import held_out
from .kinds import Kind, RawColumn, cells_as, kind_of, names_rows
from .reading import Rows
from .sources import Block
from .suffixes import is_csv, parquet_dataset
from .table_files import (
    TableFile,
    arrow_cells,
    arrow_labels,
    cells_at,
    csv_labels,
    is_constant,
    kinds_of,
    unreadable,
    without_target,
)

BLOCK = 1 << 16  # rows that are read at a time
_FEW_WORDS = 0.05  # share of unreadable cells of a block up to which they are gaps


@dataclass
class PreparedTable(ArrowSource):
    """Columns of numbers and levels in Parquet files, one of them the target."""

    whole: bool = False  # whether targets are labels, and whole numbers

    def _block(self, table: Any, number: int, start: int) -> Block:
        block = super()._block(table, number, start)
        return replace(block, y=block.y.astype(np.int64)) if self.whole else block


@dataclass
class LargeTable:
    """A file that was read block by block.

    Attributes
    ----------
    folder : Path
        Holds ``fitted.parquet`` and ``held.parquet``: four in five rows, and the others.
    columns : list of str
        Columns of the file that are used.
    target : str
    kinds : dict of str to Kind
    first : ndarray
        Targets of the first block.
    ids : list of str
        Columns that were left out because they name the rows.
    remarks : list of str
        Sentences for the user.
    rows : int
        Rows with a target.
    whole : bool
        Whether all targets are whole numbers.
    """

    folder: Path
    columns: list[str]
    target: str
    kinds: dict[str, Kind]
    first: np.ndarray
    ids: list[str]
    remarks: list[str] = field(default_factory=list)
    rows: int = 0
    whole: bool = True
    only: dict[str, Any] = field(default_factory=dict)  # the value of a column that has just one

    def source(self, part: str | None = None, *, labels: bool = False) -> PreparedTable:
        """All rows, or those of one part: "fitted" or "held"."""
        path = self.folder if part is None else self.folder / f"{part}.parquet"
        data, unused = parquet_dataset(path), {self.target, *self.only}
        features = [name for name in data.schema.names if name not in unused]
        # Not by `open_table`: there, a column may be one of weights by its name.
        return PreparedTable(
            row_groups(data), features, self.target, frames=True, name="the table",
            whole=labels and self.whole,
        )  # fmt: skip


class _AnotherKindError(Exception):
    """A column turns out to hold other things than its first block."""


def file_size(path: Path) -> int:
    """Bytes of a file, or of the files of a folder."""
    return sum(p.stat().st_size for p in ([path] if path.is_file() else path.rglob("*.p*q*")))


def prepare_table(
    path: Path, folder: Path, *, target: str | None, columns: Sequence[str] | None,
    drop: Sequence[str], categories: Sequence[str],
) -> LargeTable:  # fmt: skip
    """Read a file once and keep its columns in a folder; arguments as those of `read_table`."""
    # An empty file, or one with a column twice, is refused with its first block.
    header = _header(path)
    choice = ColumnChoice.from_header(header, str(path), target, columns, drop, True, True)
    assert choice.target is not None
    column_positions(choice.features, categories, str(path))
    raw, _, _ = next(_blocks(path, [*choice.features, choice.target]), ({}, {}, 0))
    if not len(raw.get(choice.target, ())):
        raise ValueError(f"{path} has no rows.")
    y, taken = _targets(raw[choice.target], None, choice.target, str(path))
    if not len(y):
        raise ValueError(f"the first {BLOCK:,} rows of {path} have no {choice.target!r}.")
    known = {name: cells_at(raw[name], taken) for name in choice.features}
    kinds = kinds_of(known, categories)
    ids, remarks = [], []
    for name in list(kinds) if columns is None else []:
        reason = names_rows(name, cells_as(known[name], kinds[name])[0])
        if reason is not None:
            ids.append(name)
            remarks.append(f"column {name!r} left out: {reason}")
            del kinds[name]
    if not kinds:
        raise ValueError(f"{path} has no column to learn from: {'; '.join(remarks)}.")
    while True:
        table = LargeTable(folder, list(kinds), choice.target, dict(kinds), y, ids, list(remarks))
        try:
            _write(path, table)
        except _AnotherKindError as found:
            kinds[str(found)] = Kind("category")
            continue
        table.only = {} if columns is not None else table.only
        for name in table.only:
            table.remarks.append(f"column {name!r} left out: all its values are the same")
            table.columns.remove(name)
            del table.kinds[name]
        if not table.kinds:
            raise ValueError(f"{path} has no column to learn from: {'; '.join(table.remarks)}.")
        return table


def _header(path: Path) -> list[str]:
    """Names of the columns."""
    return next(csv_blocks(path, 1))[0] if is_csv(path) else parquet_dataset(path).schema.names


def _blocks(
    path: Path, names: Sequence[str], keep: Sequence[str] = ()
) -> Iterator[tuple[dict[str, RawColumn], dict[str, list[Any]], int]]:
    """A block of rows at a time: columns, cells of others as they are, and its first line."""
    if is_csv(path):
        for header, lines, first in csv_blocks(path, BLOCK):
            cells = dict(zip(header, map(list, zip(*lines)))) if lines else {n: [] for n in header}
            yield cells, {name: cells[name] for name in keep}, first
        return
    pa = needed("pyarrow")
    taken = list(dict.fromkeys([*names, *keep]))
    fragments = row_groups(parquet_dataset(path))
    for batch in (batch for own in fragments for batch in scanned(own, taken, BLOCK)):
        found = pa.Table.from_batches([batch])
        raw = {name: arrow_cells(found.column(name), name, str(path)) for name in names}
        yield raw, found.select(list(keep)).to_pydict(), 0


class TableBlocks:
    """New rows for a model of a table, a block at a time.

    Parameters
    ----------
    path : Path
        A CSV or Parquet file.
    kinds : mapping of str to Kind
        What the columns held that the model was fitted on.
    target : str, optional
        Column with the targets.
    keep : sequence of str
        Columns whose cells are carried along.
    with_target : bool
        Whether targets are read; rows that have none are then left out.

    Attributes
    ----------
    remarks : list of str
        Sentences for the user about the rows that were read.
    """

    def __init__(
        self, path: Path, kinds: Mapping[str, Kind], target: str | None = None,
        keep: Sequence[str] = (), with_target: bool = False,
    ) -> None:  # fmt: skip
        header = _header(path)
        self.path, self.keep = path, list(keep)
        self.choice = ColumnChoice.from_header(
            header, str(path), target, list(kinds), (), with_target, with_target
        )
        column_positions(header, keep, str(path))
        self.kinds = {name: kinds[name] for name in self.choice.features}
        self._unread: dict[str, dict[str, None]] = {}
        self._gaps = 0

    def __iter__(self) -> Iterator[Rows]:
        self._unread, self._gaps, some = {}, 0, False
        target = self.choice.target
        names = [*self.kinds, *([target] if target else [])]
        for raw, kept, first in _blocks(self.path, names, self.keep):
            rows = self._rows(raw, kept, first)
            if len(rows.X):
                some = True
                yield rows
        if not some:
            raise ValueError(f"{self.path} has no rows.")

    def _rows(self, raw: Mapping[str, RawColumn], kept: dict[str, list[Any]], first: int) -> Rows:
        target, y = self.choice.target, None
        taken = np.ones(len(next(iter(raw.values()))), dtype=bool)
        if target is not None:
            cells = raw[target]
            labels = csv_labels(cells, target, self.path, first) if is_csv(self.path) else None
            y, taken = labels or arrow_labels(cells)
            self._gaps += int((~taken).sum())
        values = {}
        for name, kind in self.kinds.items():
            values[name], words = cells_as(cells_at(raw[name], taken), kind)
            if words:
                self._unread.setdefault(name, {}).update(dict.fromkeys(words))
        rows = Rows(str(self.path), None, y, list(self.kinds), target, {})
        frame = TableFile(rows, self.kinds, values).frame()
        return replace(rows, X=frame, kept={n: cells_at(cells, taken) for n, cells in kept.items()})

    @property
    def remarks(self) -> list[str]:
        said = [without_target(self._gaps, self.choice.target)] if self._gaps else []
        return said + [unreadable(n, self.kinds[n], list(c)) for n, c in self._unread.items()]


def _targets(
    raw: RawColumn, kind: Kind | None, name: str, path: str
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, or labels as text, and the rows that have one."""
    if isinstance(raw, np.ndarray):
        there = ~(np.isnat(raw) if raw.dtype.kind == "M" else np.isnan(raw))
        return raw[there].astype(np.float64), there
    there = ~gaps_of(raw)
    cells = cells_at(raw, there)
    kind = kind or (kind_of(cells) if cells else Kind("number"))
    if kind.name != "number":
        return np.array([cell.strip() for cell in cells], dtype=object), there
    values, unread = cells_as(cells, kind)
    if unread or not np.isfinite(values).all():
        shown = repr(unread[0]) if unread else "a number that is not finite"
        raise ValueError(
            f"{path}: the target {name!r} holds numbers, and {shown} beside them. Correct these "
            "cells, or put a letter in front of all if they name classes."
        )
    return values, there


def _write(path: Path, table: LargeTable) -> None:
    """Write the columns of all rows that have a target."""
    pa, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    text = table.first.dtype.kind == "O"
    kind = Kind("category") if text else None
    writers: dict[str, Any] = {}
    unread: dict[str, dict[str, None]] = {}
    gaps = 0
    try:
        for raw, _, _ in _blocks(path, [*table.columns, table.target]):
            y, taken = _targets(raw[table.target], kind, table.target, str(path))
            gaps += int((~taken).sum())
            found = pa.table(_arrays(pa, path, table, raw, taken, unread) | {table.target: y})
            held = held_out(table.rows, len(y))
            for name, rows in (("fitted", ~held), ("held", held)):
                if name not in writers:
                    file = table.folder / f"{name}.parquet"
                    writers[name] = parquet.ParquetWriter(file, found.schema)
                writers[name].write_table(found.filter(rows))
            table.rows += len(y)
            table.whole &= not text and bool((y == np.round(y)).all() and (abs(y) < 2**53).all())
    finally:
        for writer in writers.values():
            writer.close()
    if gaps:
        table.remarks.append(without_target(gaps, table.target))
    table.remarks += [unreadable(n, table.kinds[n], list(cells)) for n, cells in unread.items()]


def _note_value(table: LargeTable, name: str, values: np.ndarray) -> None:
    """Keep the value of a column that has had no other, a missing one counted."""
    if len(values) and (table.rows == 0 or name in table.only):
        own = values[0] if values.dtype.kind == "O" or values[0] == values[0] else None
        first = table.only.setdefault(name, own)
        if not is_constant(values) or own != first:
            del table.only[name]


def _arrays(
    pa: Any, path: Path, table: LargeTable, raw: Mapping[str, RawColumn], taken: np.ndarray,
    unread: dict[str, dict[str, None]],
) -> dict[str, Any]:  # fmt: skip
    """The features of some rows, as pyarrow keeps them."""
    values = {}
    for name, kind in table.kinds.items():
        cells = cells_at(raw[name], taken)
        values[name], words = cells_as(cells, kind)
        if words:
            known = set(words)
            if sum(cell in known for cell in cells) > _FEW_WORDS * len(cells):
                raise _AnotherKindError(name)
            unread.setdefault(name, {}).update(dict.fromkeys(words))
        _note_value(table, name, values[name])
    block = TableFile(Rows(str(path), None, None, table.columns, None, {}), table.kinds, values)
    return {
        name: pa.array(own, pa.string() if own.dtype.kind == "O" else pa.float64())
        for name, own in block.features().items()
    }
