"""CSV and Parquet files that fit into memory, as a table with its target and weights beside it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..exceptions import MissingTargetWarning
from .columns import column_positions
from .csv_files import CsvFile
from .raw_columns import RawTable
from .sources import check_lengths, default_target
from .suffixes import is_csv, is_parquet, parquet_dataset
from .targets import number_values, target_values

IN_MEMORY_BYTES = 1 << 28  # of a file, up to which it is read at once


def fits_in_memory(X: Any) -> bool:
    """Whether X names a CSV or Parquet file that is small enough to be read at once."""
    if not isinstance(X, str | os.PathLike) or not (is_csv(X) or is_parquet(X)):
        return False
    path = Path(X)
    return path.exists() and file_bytes(path) <= IN_MEMORY_BYTES


def file_bytes(path: Path) -> int:
    """Bytes of a file, or of the Parquet files of a folder."""
    return sum(p.stat().st_size for p in ([path] if path.is_file() else path.rglob("*.p*q*")))


@dataclass(frozen=True)
class TableFile:
    """A CSV file (all cells as strings) or a Parquet file, or some of its rows.

    Attributes
    ----------
    name : str
        The file, for messages.
    table : pyarrow.Table
    csv : CsvFile or None
        Knows the line of a row.
    start : int
        Number of the first row in the file.
    """

    name: str
    table: pa.Table
    csv: CsvFile | None = None
    start: int = 0

    @classmethod
    def read(cls, path: str | os.PathLike[str], encoding: str = "utf-8") -> TableFile:
        """Read a file."""
        if is_csv(path):
            file = CsvFile(Path(path), encoding)
            return cls(os.fspath(path), file.table(), file)
        return cls(os.fspath(path), parquet_dataset(path).to_table())

    def where(self, row: int) -> str:
        """The file and the line or row, for messages."""
        if self.csv is not None:
            return self.csv.where(self.start + row)
        return f"{self.name}, row {self.start + row} (counted from 0)"

    def target(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Targets of the rows that have one, and which rows these are."""
        return target_values(self.raw(name), name, self.where)

    def numbers(self, name: str) -> np.ndarray:
        """A column of numbers, NaN where one is missing."""
        return number_values(self.raw(name), name, self.where)

    def raw(self, name: str) -> Any:
        """A column as it is stored."""
        (place,) = column_positions(self.table.column_names, [name], self.name)
        return RawTable.of(self.table, self.name).column(place, self.name)


def warn_of_gaps(name: str, target: str, gaps: int) -> None:
    """Say how many rows have no target, if there are any."""
    if gaps:
        warnings.warn(
            f"{name}: {gaps:,} {'row' if gaps == 1 else 'rows'} without {target!r} left out.",
            MissingTargetWarning,
            stacklevel=6,
        )


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
        CSV or Parquet.
    y, sample_weight, exposure : str or array-like, optional
        Columns by name, or values of all rows. The target is by default the column ``"y"``.
    columns : sequence of str, optional
        The features; by default all other columns.
    """
    file = file if isinstance(file, TableFile) else TableFile.read(file)
    names = file.table.column_names
    y = default_target(names, y)
    if y is None:
        shown = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
        raise ValueError(
            f"{file.name} has no target: name the column to predict as y, as in "
            f"fit(path, {names[-1]!r}). It has the columns {shown}."
        )
    beside = [item for item in (y, sample_weight, exposure) if isinstance(item, str)]
    column_positions(names, beside, file.name)
    X = file.table.select([n for n in names if n not in beside] if columns is None else columns)
    if not X.num_rows:
        raise ValueError(f"{file.name} has no rows.")
    check_lengths(X.num_rows, y=y, sample_weight=sample_weight, exposure=exposure)
    weight, exposures = (
        file.numbers(item) if isinstance(item, str) else item for item in (sample_weight, exposure)
    )
    if not isinstance(y, str):
        return X, y, weight, exposures
    values, has_target = file.target(y)
    if has_target.all():
        return X, values, weight, exposures
    if not has_target.any():
        raise ValueError(f"{file.name} has no rows with a target {y!r}.")
    warn_of_gaps(file.name, y, int((~has_target).sum()))
    weight, exposures = (
        None if item is None else np.asarray(item)[has_target] for item in (weight, exposures)
    )
    return X.filter(pa.array(has_target)), values, weight, exposures
