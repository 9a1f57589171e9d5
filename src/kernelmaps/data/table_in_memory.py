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

from .._util.arguments import needed
from ..exceptions import MissingTargetWarning
from .columns import column_positions
from .csv_files import CsvFile
from .raw_columns import RawTable
from .sources import check_lengths, default_target
from .suffixes import is_csv, is_parquet, parquet_dataset, uncompressed_bytes
from .targets import number_values, target_values

IN_MEMORY_BYTES = 1 << 28  # of a file, uncompressed, up to which it is read at once


def fits_in_memory(X: Any) -> bool:
    """Whether X names a CSV or Parquet file whose cells are few enough to be read at once."""
    if not isinstance(X, str | os.PathLike) or not Path(X).exists():
        return False
    if is_parquet(X):
        return _parquet_bytes(Path(X)) <= IN_MEMORY_BYTES
    return is_csv(X) and uncompressed_bytes(X, IN_MEMORY_BYTES) <= IN_MEMORY_BYTES


def _parquet_bytes(path: Path) -> int:
    """Bytes of all values of a Parquet file, or of a folder of them.

    Repeated values are stored once: eight bytes of a value is the least that is counted.
    """
    files = [path] if path.is_file() else path.rglob("*.p*q*")
    read_metadata = needed("pyarrow.parquet").read_metadata
    total = 0
    for metadata in map(read_metadata, files):
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        stored = sum(group.total_byte_size for group in groups)
        total += max(stored, 8 * metadata.num_rows * metadata.num_columns)
    return total


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

    def beside(
        self, y: Any, sample_weight: Any = None, exposure: Any = None
    ) -> tuple[Any, Any, Any, np.ndarray | None]:
        """Targets, weights and exposures of the rows that have a target.

        Each is the name of a column, or holds the values of all rows. The last result says which
        rows have a target; None if all do.
        """
        if not self.table.num_rows:
            raise ValueError(f"{self.name} has no rows.")
        check_lengths(self.table.num_rows, y=y, sample_weight=sample_weight, exposure=exposure)
        weight, exposures = (
            self.numbers(item) if isinstance(item, str) else item
            for item in (sample_weight, exposure)
        )
        if not isinstance(y, str):
            return y, weight, exposures, None
        values, has_target = self.target(y)
        if has_target.all():
            return values, weight, exposures, None
        if not has_target.any():
            raise ValueError(f"{self.name} has no rows with a target {y!r}.")
        warn_of_gaps(self.name, y, int((~has_target).sum()))
        weight, exposures = (
            None if item is None else np.asarray(item)[has_target] for item in (weight, exposures)
        )
        return values, weight, exposures, has_target

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
    y = target_in(names, y, file.name)
    beside = [item for item in (y, sample_weight, exposure) if isinstance(item, str)]
    column_positions(names, beside, file.name)
    X = file.table.select([n for n in names if n not in beside] if columns is None else columns)
    *values, has_target = file.beside(y, sample_weight, exposure)
    return X if has_target is None else X.filter(pa.array(has_target)), *values


def target_in(names: Sequence[str], y: Any, file: str) -> Any:
    """Targets as given, or the column "y"; a file without it is refused."""
    y = default_target(names, y)
    if y is None:
        shown = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
        raise ValueError(
            f"{file} has no target: name the column to predict as y, as in "
            f"fit(path, {names[-1]!r}). It has the columns {shown}."
        )
    return y
