"""Read a CSV or Parquet file as a table: numbers, categories and dates, with missing values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..extras import needed
from .columns import ColumnChoice, column_positions
from .csv_text import csv_lines, gaps_of, labels_of
from .dates import date_columns
from .kinds import Kind, RawColumn, cells_as, kind_of, names_rows
from .reading import Rows, read_columns
from .suffixes import is_csv, parquet_dataset


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
    ids : list of str
        Columns that were left out because they name the rows.
    remarks : list of str
        Sentences for the user: what was left out, or taken for missing.
    """

    rows: Rows
    kinds: dict[str, Kind]
    values: dict[str, np.ndarray]
    ids: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers without gaps."""
        return all(kind.name == "number" for kind in self.kinds.values()) and not any(
            np.isnan(values).any() for values in self.values.values()
        )

    def matrix(self) -> np.ndarray:
        """The columns of a plain table as one array."""
        found = list(self.values.values())
        return np.column_stack(found) if found else np.empty((0, 0))

    def features(self) -> dict[str, np.ndarray]:
        """Numbers, names of levels (None: missing), and each date as numbers."""
        found: dict[str, np.ndarray] = {}
        for name, kind in self.kinds.items():
            values = self.values[name]
            more = date_columns(values, name, kind.parts) if kind.name == "date" else {name: values}
            twice = sorted(set(more) & set(found))
            if twice:
                raise ValueError(
                    f"{self.rows.name}: the column {twice[0]!r} has the name of a part of a date. "
                    "Rename it, or leave it out with drop=."
                )
            found |= more
        return found

    def frame(self) -> Any:
        """A pandas frame: numbers, categories, and each date as numbers."""
        pandas = needed("pandas")
        found = self.features().items()
        return pandas.DataFrame(
            {name: pandas.Categorical(own) if own.dtype.kind == "O" else own for name, own in found}
        )


def read_table(
    path: str | Path,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    categories: Sequence[str] = (),
    need_target: bool = False,
) -> TableFile:
    """Read a CSV or Parquet file, whose columns may hold text, dates and gaps.

    Parameters
    ----------
    path, target, columns, drop, keep, need_target
        As for :func:`read_rows`. Rows without a target are left out, and so are columns that are
        constant or name the rows, unless `columns` asks for them.
    categories : sequence of str
        Columns that are categories though they look like numbers or dates.
    """
    path = Path(path)
    header, columns_of, labels, cells_of = _opened(path)
    choice = ColumnChoice.from_header(header, str(path), target, columns, drop, need_target, True)
    column_positions(header, keep, str(path))
    column_positions(choice.features, categories, str(path))
    y, taken = (None, None) if choice.target is None else labels(choice.target)
    remarks = []
    if taken is not None and not taken.all():
        remarks.append(without_target(int((~taken).sum()), choice.target))
    raw = {name: cells_at(cells, taken) for name, cells in columns_of(choice.features).items()}
    known = kinds_of(raw, categories)
    values = {}
    for name, cells in raw.items():
        values[name], unread = cells_as(cells, known[name])
        if unread:
            remarks.append(unreadable(name, known[name], unread))
    ids: list[str] = []
    if columns is None:
        ids, more = _useless(values)
        remarks += more
    kept = {name: cells_at(cells, taken) for name, cells in cells_of([*keep, *ids]).items()}
    used = [name for name in choice.features if name in values]
    rows = Rows(str(path), None, y, used, choice.target, kept)
    table = TableFile(rows, {name: known[name] for name in used}, values, ids, remarks)
    _check(table, len(next(iter(raw.values()), [])))
    return table


def _check(table: TableFile, n_rows: int) -> None:
    name = table.rows.name
    if not n_rows:
        raise ValueError(f"{name} has no rows.")
    if not table.values:
        raise ValueError(f"{name} has no column to learn from: {'; '.join(table.remarks)}.")


def kinds_of(raw: Mapping[str, RawColumn], categories: Sequence[str]) -> dict[str, Kind]:
    return {
        name: Kind("category") if name in categories else kind_of(cells)
        for name, cells in raw.items()
    }


def _useless(values: dict[str, np.ndarray]) -> tuple[list[str], list[str]]:
    """Take columns out that name the rows or say nothing; their names (of IDs), and remarks."""
    ids, remarks = [], []
    for name in list(values):
        reason = names_rows(name, values[name])
        if reason is not None:
            ids.append(name)
        elif is_constant(values[name]):
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
    gaps = np.isnat(values) if values.dtype.kind == "M" else np.isnan(values)
    return bool(gaps.all() or (not gaps.any() and (values == values[0]).all()))


def unreadable(name: str, kind: Kind, unread: list[str]) -> str:
    shown = ", ".join(repr(cell[:30]) for cell in unread[:3]) + (", …" if len(unread) > 3 else "")
    return f"column {name!r} holds {kind.name}s: {shown} counted as missing"


def without_target(n: int, target: str | None) -> str:
    return f"{n:,} row{'s' if n != 1 else ''} without {target!r} left out"


def cells_at(cells: Any, taken: np.ndarray | None) -> Any:
    """Cells of the rows that are used."""
    if taken is None or taken.all():
        return cells
    if isinstance(cells, np.ndarray):
        return cells[taken]
    return [cell for cell, used in zip(cells, taken.tolist()) if used]


# ---- files --------------------------------------------------------------------------------------

Columns = Callable[[Sequence[str]], dict[str, RawColumn]]
Labels = Callable[[str], tuple[np.ndarray, np.ndarray]]
Cells = Callable[[Sequence[str]], dict[str, list[Any]]]
Opened: TypeAlias = "tuple[list[str], Columns, Labels, Cells]"


def _opened(path: Path) -> Opened:
    """Names of the columns, raw columns, labels with the rows that have one, and plain cells."""
    return _csv(path) if is_csv(path) else _parquet(path)


def _csv(path: Path) -> Opened:
    header, lines, first = csv_lines(path)
    cells = dict(zip(header, map(list, zip(*lines)))) if lines else {name: [] for name in header}

    def labels(target: str) -> tuple[np.ndarray, np.ndarray]:
        return csv_labels(cells[target], target, path, first)

    def columns(names: Sequence[str]) -> dict[str, Any]:
        return {name: cells[name] for name in names}

    return header, columns, labels, columns


def csv_labels(
    cells: Sequence[str], target: str, path: Path, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Targets of the rows that have one, and which rows these are."""
    there = ~gaps_of(cells)
    known = cells_at(cells, there)
    kind = kind_of(known)
    if kind.name == "number" and kind.form != "plain":
        return cells_as(known, kind)[0], there
    return labels_of(known, target, str(path), first), there


def arrow_labels(raw: RawColumn) -> tuple[np.ndarray, np.ndarray]:
    """The same for a column of Parquet."""
    if isinstance(raw, list):
        there = ~gaps_of(raw)
        return np.array(cells_at(raw, there)), there
    there = ~(np.isnat(raw) if raw.dtype.kind == "M" else np.isnan(raw))
    y = raw[there]
    whole = y.dtype.kind == "f" and (y == np.round(y)).all() and (np.abs(y) < 2**53).all()
    return y.astype(np.int64) if whole else y, there


def _parquet(path: Path) -> Opened:
    data = parquet_dataset(path)

    def columns(names: Sequence[str]) -> dict[str, RawColumn]:
        table = data.to_table(columns=list(names))
        return {name: arrow_cells(table.column(name), name, str(path)) for name in names}

    def labels(target: str) -> tuple[np.ndarray, np.ndarray]:
        return arrow_labels(columns([target])[target])

    return list(data.schema.names), columns, labels, lambda names: read_columns(path, names)


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
