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
from .arrow import ArrowSource, row_groups
from .columns import Wanted, column_positions
from .kinds import Kind, RawColumn, cells_as, kind_of
from .prepared import held_out
from .reading import Rows
from .sources import Block
from .suffixes import parquet_dataset
from .table_files import (
    AnotherKindError,
    CellReader,
    RawBlock,
    cells_at,
    features_of,
    frame_of,
    header_of,
    is_constant,
    kinds_of,
    missing,
    raw_blocks,
    useless,
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


def file_size(path: Path) -> int:
    """Bytes of a file, or of the files of a folder."""
    return sum(p.stat().st_size for p in ([path] if path.is_file() else path.rglob("*.p*q*")))


def prepare_table(
    path: Path, folder: Path, wanted: Wanted, categories: Sequence[str]
) -> LargeTable:
    """Read a file once and keep its columns in a folder; arguments as those of `read_table`."""
    choice = wanted.found_in(header_of(path), str(path), need_target=True)
    target = str(choice.target)
    column_positions(choice.features, categories, str(path))
    block = next(raw_blocks(path, [*choice.features, target], rows=BLOCK), None)
    if block is None or not len(block.columns[target]):
        raise ValueError(f"{path} has no rows.")
    y, taken = _targets(block.columns[target], None, target, str(path))
    if not len(y):
        raise ValueError(f"the first {BLOCK:,} rows of {path} have no {target!r}.")
    known = {name: cells_at(block.columns[name], taken) for name in choice.features}
    kinds = kinds_of(known, categories)
    values = {name: cells_as(known[name], kind)[0] for name, kind in kinds.items()}
    ids, remarks = useless(values, constant=False) if wanted.columns is None else ([], [])
    kinds = {name: kinds[name] for name in values}
    if not kinds:
        raise ValueError(f"{path} has no column to learn from: {'; '.join(remarks)}.")
    while True:
        table = LargeTable(folder, list(kinds), target, dict(kinds), y, ids, list(remarks))
        try:
            _write(path, table)
        except AnotherKindError as found:
            kinds[str(found)] = Kind("category")
            continue
        table.only = {} if wanted.columns is not None else table.only
        for name in table.only:
            table.remarks.append(f"column {name!r} left out: all its values are the same")
            table.columns.remove(name)
            del table.kinds[name]
        if not table.kinds:
            raise ValueError(f"{path} has no column to learn from: {'; '.join(table.remarks)}.")
        return table


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
        header, wanted = header_of(path), Wanted(target, list(kinds))
        self.path, self.keep = path, list(keep)
        choice = wanted.found_in(
            header, str(path), need_target=with_target, with_target=with_target
        )
        column_positions(header, keep, str(path))
        self._reader = CellReader({n: kinds[n] for n in choice.features}, choice.target)

    def __iter__(self) -> Iterator[Rows]:
        self._reader = replace(self._reader, gaps=0, unread={})
        target, some = self._reader.target, False
        names = [*self._reader.kinds, *([target] if target else [])]
        for block in raw_blocks(self.path, names, self.keep, BLOCK):
            rows = self._rows(block, target)
            if len(rows.X):
                some = True
                yield rows
        if not some:
            raise ValueError(f"{self.path} has no rows.")

    def _rows(self, block: RawBlock, target: str | None) -> Rows:
        y, taken, name = None, None, str(self.path)
        if target is not None:
            y, taken = block.labels(target)
            self._reader.gaps += int((~taken).sum())
        kinds, values = self._reader.kinds, self._reader.values(block.columns, taken)
        kept = {n: cells_at(cells, taken) for n, cells in block.cells(self.keep).items()}
        return Rows(name, frame_of(features_of(name, kinds, values)), y, list(kinds), target, kept)

    @property
    def remarks(self) -> list[str]:
        return self._reader.remarks


def _targets(
    raw: RawColumn, kind: Kind | None, name: str, path: str
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, or labels as text, and the rows that have one."""
    there = ~missing(raw)
    cells = cells_at(raw, there)
    if isinstance(cells, np.ndarray):
        return cells.astype(np.float64), there
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
    reader = CellReader(table.kinds, table.target, _FEW_WORDS)
    try:
        for block in raw_blocks(path, [*table.columns, table.target], rows=BLOCK):
            y, taken = _targets(block.columns[table.target], kind, table.target, str(path))
            reader.gaps += int((~taken).sum())
            values = reader.values(block.columns, taken)
            for name, own in values.items():
                _note_value(table, name, own)
            arrays = {
                name: pa.array(own, pa.string() if own.dtype.kind == "O" else pa.float64())
                for name, own in features_of(str(path), table.kinds, values).items()
            }
            found = pa.table(arrays | {table.target: y})
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
    table.remarks += reader.remarks


def _note_value(table: LargeTable, name: str, values: np.ndarray) -> None:
    """Keep the value of a column that has had no other, a missing one counted."""
    if len(values) and (table.rows == 0 or name in table.only):
        own = values[0] if values.dtype.kind == "O" or values[0] == values[0] else None
        first = table.only.setdefault(name, own)
        if not is_constant(values) or own != first:
            del table.only[name]
