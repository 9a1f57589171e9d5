"""Read a CSV or Parquet file as a table: numbers, categories and dates, with missing values.

`read_table` reads a file whole; others may be larger than memory.

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
from .columns import Wanted, column_positions
from .csv_files import CsvFile
from .csv_text import gaps_of
from .dates import date_columns
from .kinds import Kind, RawColumn, cells_as, kind_of, names_rows
from .reading import Rows, held_out
from .sources import Block
from .suffixes import is_csv, parquet_dataset
from .targets import target_values
from .text_cells import Text


@dataclass(frozen=True)
class TableFile:
    """A table whose columns have kinds.

    Attributes
    ----------
    rows : Rows
        `rows.columns` are the columns of the file that are used; `rows.X` is None until `frame` is
        asked for.
    kinds : dict of str to Kind
        Of each of these columns.
    values : dict of str to ndarray
        Their cells, as :func:`cells_as` reads them.
    remarks : list of str
        Sentences for the user: what was left out, or taken for missing.
    """

    rows: Rows
    kinds: dict[str, Kind]
    values: dict[str, np.ndarray]
    remarks: list[str] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers without gaps."""
        return all(kind.name == "number" for kind in self.kinds.values()) and not any(
            np.isnan(values).any() for values in self.values.values()
        )

    def matrix(self) -> np.ndarray:
        """The columns of a plain table as one array."""
        return np.column_stack(list(self.values.values()))

    def frame(self) -> Any:
        """A pandas frame: numbers, categories, and each date as numbers."""
        return frame_of(features_of(self.rows.name, self.kinds, self.values))


def features_of(
    name: str, kinds: Mapping[str, Kind], values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Numbers, names of levels (None: missing), and each date as numbers."""
    found: dict[str, np.ndarray] = {}
    for column, kind in kinds.items():
        own = values[column]
        more = date_columns(own, column, kind.parts) if kind.name == "date" else {column: own}
        twice = sorted(set(more) & set(found))
        if twice:
            raise ValueError(
                f"{name}: the column {twice[0]!r} has the name of a part of a date. Rename it, or "
                "leave it out with drop=."
            )
        found |= more
    return found


def frame_of(features: Mapping[str, np.ndarray]) -> Any:
    """Features as a pandas frame."""
    pandas = needed("pandas")
    texts = {name: own for name, own in features.items() if own.dtype.kind == "O"}
    return pandas.DataFrame({**features, **{n: pandas.Categorical(v) for n, v in texts.items()}})


def read_table(
    path: Path, wanted: Wanted, *, keep: Sequence[str] = (), categories: Sequence[str] = ()
) -> TableFile:
    """Read a CSV or Parquet file with a target, whose columns may hold text, dates and gaps.

    Parameters
    ----------
    path : Path
    wanted : Wanted
        Rows without a target are left out, and so are columns that are constant or name the rows,
        unless `wanted.columns` asks for them.
    keep : sequence of str
        Columns to carry along as they are.
    categories : sequence of str
        Columns that are categories though they look like numbers or dates.
    """
    header = header_of(path)
    features, target = wanted.found_in(header, str(path), need_target=True)
    column_positions(header, keep, str(path))
    column_positions(features, categories, str(path))
    block = next(raw_blocks(path, [*features, target], keep))
    y, taken = block.labels(target)
    raw = {name: cells_at(block.columns[name], taken) for name in features}
    reader = CellReader(kinds_of(raw, categories), target, gaps=int((~taken).sum()))
    values = reader.values(raw)
    remarks, ids = reader.remarks, list[str]()
    if wanted.columns is None:
        ids, more = useless(values)
        remarks += more
    kept = {name: cells_at(cells, taken) for name, cells in block.cells([*keep, *ids]).items()}
    rows = Rows(str(path), None, y, list(values), target, kept)
    if not len(y):
        raise ValueError(f"{path} has no rows.")
    if not values:
        raise _nothing_to_learn_from(path, remarks)
    return TableFile(rows, {name: reader.kinds[name] for name in values}, values, remarks)


class AnotherKindError(Exception):
    """A column turns out to hold other things than was told from its first cells."""


@dataclass
class CellReader:
    """Reads columns as their kinds, and remembers what was not there or could not be read.

    Attributes
    ----------
    kinds : dict of str to Kind
    target : str or None
    most_words : float
        Share of unreadable cells beyond which a column is taken to be of another kind.
    gaps : int
        Rows that were left out because they have no target.
    """

    kinds: dict[str, Kind]
    target: str | None
    most_words: float = 1.0
    gaps: int = 0
    unread: dict[str, dict[str, None]] = field(default_factory=dict)

    def values(
        self, columns: Mapping[str, RawColumn], taken: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """Cells of the rows that are used, as :func:`cells_as` reads them."""
        found = {}
        for name, kind in self.kinds.items():
            cells = cells_at(columns[name], taken)
            found[name], words = cells_as(cells, kind)
            if not words:
                continue
            if sum(map(set(words).__contains__, cells)) > self.most_words * len(cells):
                raise AnotherKindError(name)
            self.unread.setdefault(name, {}).update(dict.fromkeys(words))
        return found

    @property
    def remarks(self) -> list[str]:
        """Sentences for the user."""
        said = []
        if self.gaps:
            rows = "row" if self.gaps == 1 else "rows"
            said.append(f"{self.gaps:,} {rows} without {self.target!r} left out")
        for name, found in self.unread.items():
            cells = list(found)
            shown = ", ".join(repr(cell[:30]) for cell in cells[:3])
            shown += ", …" if len(cells) > 3 else ""
            kind = self.kinds[name].name
            said.append(f"column {name!r} holds {kind}s: {shown} counted as missing")
        return said


def kinds_of(raw: Mapping[str, RawColumn], categories: Sequence[str]) -> dict[str, Kind]:
    return {
        name: Kind("category") if name in categories else kind_of(cells)
        for name, cells in raw.items()
    }


def useless(values: dict[str, np.ndarray], constant: bool = True) -> tuple[list[str], list[str]]:
    """Take columns out that name the rows, or are `constant`; names of the former, and remarks."""
    ids, remarks = [], []
    for name in list(values):
        reason = names_rows(name, values[name])
        if reason is not None:
            ids.append(name)
        elif constant and is_constant(values[name]):
            reason = "all its values are the same"
        else:
            continue
        remarks.append(f"column {name!r} left out: {reason}")
        del values[name]
    return ids, remarks


def is_constant(values: np.ndarray) -> bool:
    """Whether a column has one value, a missing one counted."""
    if values.dtype.kind == "O":
        return len(set(values.tolist())) == 1
    gaps = missing(values)
    return bool(gaps.all() or (not gaps.any() and (values == values[0]).all()))


def cells_at(cells: Any, taken: np.ndarray | None) -> Any:
    """Cells of the rows that are used."""
    if taken is None or taken.all():
        return cells
    if isinstance(cells, np.ndarray):
        return cells[taken]
    return [cell for cell, used in zip(cells, taken.tolist()) if used]


# ---- files --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RawBlock:
    """Some rows of a CSV or Parquet file.

    Attributes
    ----------
    path : Path
    columns : mapping of str to RawColumn
    stored : dict or pyarrow table
        The same, and those to be kept, as they stand in the file.
    start : int
        Number of the first row in the file.
    """

    path: Path
    columns: Mapping[str, RawColumn]
    stored: Any
    start: int = 0

    def cells(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """Cells of some columns as they stand in the file."""
        if isinstance(self.stored, dict):
            return {name: self.stored[name] for name in names}
        return self.stored.select(list(names)).to_pydict()

    def labels(self, target: str) -> tuple[np.ndarray, np.ndarray]:
        """Targets of the rows that have one, and which rows these are."""
        raw = self.columns[target]
        cells = raw if isinstance(raw, np.ndarray) else Text(needed("pyarrow").array(raw, "string"))
        return target_values(cells, target, self._where)

    def _where(self, row: int) -> str:
        row += self.start
        return CsvFile(self.path).where(row) if is_csv(self.path) else f"{self.path}, row {row}"


def missing(raw: RawColumn) -> np.ndarray:
    """Which cells of a column are missing."""
    if isinstance(raw, np.ndarray):
        return np.isnat(raw) if raw.dtype.kind == "M" else np.isnan(raw)
    return gaps_of(raw)


def header_of(path: Path) -> list[str]:
    """Names of the columns; an empty file, or one with a column twice, is refused."""
    return CsvFile(path).names if is_csv(path) else parquet_dataset(path).schema.names


def raw_blocks(
    path: Path, names: Sequence[str], keep: Sequence[str] = (), rows: int | None = None
) -> Iterator[RawBlock]:
    """The columns of a file, and those to be kept as they are, so many rows at a time."""
    if is_csv(path):
        file, start, taken = CsvFile(path), 0, list(dict.fromkeys([*names, *keep]))
        for table in [file.table(taken)] if rows is None else file.blocks(taken, rows):
            cells = table.to_pydict()
            yield RawBlock(path, cells, cells, start)
            start += table.num_rows
        return
    data, taken = parquet_dataset(path), list(dict.fromkeys([*names, *keep]))
    if rows is None:
        tables = iter([data.to_table(columns=taken)])
    else:
        tables = map(needed("pyarrow").table, scanned(row_groups(data), taken, rows))
    for table in tables:
        raw = {name: arrow_cells(table.column(name), name, str(path)) for name in names}
        yield RawBlock(path, raw, table)


def arrow_cells(column: Any, name: str, path: str) -> RawColumn:
    """A column of Parquet as numbers, dates or text."""
    pa = needed("pyarrow")
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        if getattr(kind, "tz", None):
            column = column.cast(pa.timestamp(kind.unit))  # UTC, without its name
        return column.to_numpy(zero_copy_only=False).astype("datetime64[s]")
    if pa.types.is_nested(kind):
        raise ValueError(
            f"{path}: column {name!r} holds {kind}, not one value in each row. Leave it out with "
            "drop=."
        )
    return ["" if cell is None else str(cell) for cell in column.to_pylist()]


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
    features, target = wanted.found_in(header_of(path), str(path), need_target=True)
    column_positions(features, categories, str(path))
    block = next(raw_blocks(path, [*features, target], rows=BLOCK), None)
    if block is None or not len(block.columns[target]):
        raise ValueError(f"{path} has no rows.")
    y, taken = _targets(block.columns[target], None, target, str(path))
    if not len(y):
        raise ValueError(f"the first {BLOCK:,} rows of {path} have no {target!r}.")
    known = {name: cells_at(block.columns[name], taken) for name in features}
    kinds = kinds_of(known, categories)
    values = {name: cells_as(known[name], kind)[0] for name, kind in kinds.items()}
    ids, remarks = useless(values, constant=False) if wanted.columns is None else ([], [])
    kinds = {name: kinds[name] for name in values}
    if not kinds:
        raise _nothing_to_learn_from(path, remarks)
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
            raise _nothing_to_learn_from(path, table.remarks)
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
        needs = {"need_target": with_target, "with_target": with_target}
        features, target = wanted.found_in(header, str(path), **needs)
        column_positions(header, keep, str(path))
        self._reader = CellReader({n: kinds[n] for n in features}, target)

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


def _nothing_to_learn_from(path: Any, remarks: list[str]) -> ValueError:
    """The error of a file without columns, and why none of those that it has is left."""
    why = "; ".join(remarks) or "it holds the target alone"
    return ValueError(f"{path} has no column to learn from: {why}.")
