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
from .columns import column_positions, no_target
from .csv_files import CsvFile
from .raw_columns import RawTable
from .sources import check_lengths, default_names
from .suffixes import is_csv, is_parquet, parquet_dataset
from .targets import target_values

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
    """A CSV file (all cells as strings) or a Parquet file, read at once.

    Attributes
    ----------
    name : str
        The file, for messages.
    table : pyarrow.Table
    csv : CsvFile or None
        Knows the line of a row.
    """

    name: str
    table: pa.Table
    csv: CsvFile | None = None

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
            return self.csv.where(row)
        return f"{self.name}, row {row} (counted from 0)"

    def without(self, names: Sequence[str]) -> pa.Table:
        """The table without some columns."""
        return self.table.select([n for n in self.table.column_names if n not in set(names)])

    def target(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Targets of the rows that have one, and which rows these are."""
        return target_values(self._raw(name), name, self.where)

    def numbers(self, name: str) -> np.ndarray:
        """A column of numbers, NaN where one is missing."""
        values, there = self.target(name)
        if values.dtype.kind not in "iuf":
            raise ValueError(f"{self.name}: column {name!r} must hold numbers.")
        out = np.full(len(there), np.nan)
        out[there] = values
        return out

    def _raw(self, name: str) -> Any:
        (place,) = column_positions(self.table.column_names, [name], self.name)
        return RawTable.of(self.table, self.name).column(place, self.name)


def load_table(
    path: str | os.PathLike[str], y: Any = None, sample_weight: Any = None, exposure: Any = None
) -> tuple[pa.Table, Any, Any, Any]:
    """Features, targets, weights and exposures of a file; rows without a target are left out.

    Parameters
    ----------
    path : path
        CSV or Parquet.
    y, sample_weight, exposure : str or array-like, optional
        Columns by name, or values of all rows. ``"y"`` and ``"sample_weight"`` by default where
        there are columns of that name.
    """
    file = TableFile.read(path)
    names = file.table.column_names
    y, sample_weight = default_names(names, y, sample_weight)
    if y is None:
        raise no_target(file.name, names)
    beside = [item for item in (y, sample_weight, exposure) if isinstance(item, str)]
    column_positions(names, beside, file.name)
    X = file.without(beside)
    if not X.num_rows:
        raise ValueError(f"{file.name} has no rows.")
    check_lengths(X.num_rows, y=y, sample_weight=sample_weight, exposure=exposure)
    weight, exposures = (
        file.numbers(item) if isinstance(item, str) else item for item in (sample_weight, exposure)
    )
    if not isinstance(y, str):
        return X, y, weight, exposures
    values, there = file.target(y)
    if there.all():
        return X, values, weight, exposures
    gaps = int((~there).sum())
    warnings.warn(
        f"{file.name}: {gaps:,} {'row' if gaps == 1 else 'rows'} without {y!r} left out.",
        MissingTargetWarning,
        stacklevel=5,
    )
    weight, exposures = (
        None if item is None else np.asarray(item)[there] for item in (weight, exposures)
    )
    return X.filter(pa.array(there)), values, weight, exposures
