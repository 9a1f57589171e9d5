"""Tables of a user's own: rows, named columns and a target from a file or a known dataset.

CSV, also compressed, is read here; npy, npz, HDF5, Zarr, Parquet and LIBSVM text through
:func:`kernelmaps.data.open_source`, the one reader of such files.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..extras import needed
from .columns import ADVICE, Wish, hold_text, no_target, places
from .loader import load, names, read_npz
from .prepared import PreparedSource, check_cells, open_rows
from .suffixes import data_suffix, is_csv, is_parquet, open_text

__all__ = ["Rows", "column_names", "read_columns", "read_rows"]

_BLOCK = 65536
_WHOLE = re.compile(r"[+-]?[0-9]+")
_EMPTY = ("", "na", "nan", "null", "none", "?")


@dataclass(frozen=True)
class Rows:
    """Rows with what is known about them.

    Attributes
    ----------
    name : str
    X : ndarray or CSR matrix
    y : ndarray or None
    columns : list of str or None
        Names of the features, where the source has them.
    target : str or None
        Name of the target.
    kept : dict of str to list
        Cells of the columns that were asked for by `keep`, as they stand in the file.
    """

    name: str
    X: Any
    y: np.ndarray | None
    columns: list[str] | None = None
    target: str | None = None
    kept: dict[str, list[Any]] = field(default_factory=dict)

    def of_columns(self, wanted: Sequence[str]) -> Rows:
        """The named columns, in that order."""
        if self.columns is None:
            raise ValueError(f"{self.name} has no names of columns, so that none can be chosen.")
        return replace(
            self, X=self.X[:, places(self.columns, wanted, self.name)], columns=list(wanted)
        )

    def normalized(self, norm: str) -> Rows:
        """Rows scaled to norm 1 ("l1" or "l2"); "none" leaves them as they are."""
        if norm == "none":
            return self
        from sklearn.preprocessing import normalize

        return replace(self, X=normalize(self.X.astype(np.float64), norm=norm))


def read_rows(
    source: str | os.PathLike[str],
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    need_target: bool = False,
    with_target: bool = True,
) -> Rows:
    """Read a file, or a dataset by its name.

    Parameters
    ----------
    source : str or path
        A file (``.csv`` and ``.tsv``, also ``.gz``, ``.bz2``, ``.xz`` or ``.zst``; ``.parquet``,
        ``.npy``, ``.npz``, ``.h5``, ``.zarr``, LIBSVM text) or the name of a dataset (its training
        rows). Sparse data stay sparse.
    target : str, optional
        Column (or array, in files of arrays) to predict; by default ``y`` where there is one.
        LIBSVM text has its own; of ``.npy`` it is the path of another.
    columns : sequence of str, optional
        Features to keep, by name; by default all columns but the target.
    drop : sequence of str
        Instead: columns to exclude, such as an ID.
    keep : sequence of str
        Columns to carry along as they are, such as an ID; they may be excluded ones.
    need_target : bool
        Whether to refuse data without a target.
    with_target : bool
        False reads no target: rows to predict need not have one.

    Returns
    -------
    Rows
    """
    path = Path(source)
    known = target if with_target else None
    if not path.exists() and os.fspath(source) in names():
        rows = _dataset(os.fspath(source), known)
    elif not path.exists():
        known_names = ", ".join(names())
        raise FileNotFoundError(
            f"there is no file {os.fspath(source)!r}, nor a dataset of that name ({known_names})."
        )
    elif is_csv(path):
        header, lines, first = _csv_lines(path)
        wish = Wish.of(header, str(path), target, columns, drop, need_target, with_target)
        places(header, keep, str(path))
        rows = _read_csv(path, lines, first, header, wish, keep)
    elif path.suffix.lower() == ".npz":
        rows = _read_npz(path, known)
    else:
        opened = open_rows(path, target=target, columns=columns, drop=drop, with_target=with_target)
        rows = _read_source(path, opened, known)
    if keep and not rows.kept:
        rows = replace(rows, kept=read_columns(path, keep))
    if not with_target:
        rows = replace(rows, y=None, target=None)
    if columns is not None and rows.columns != list(columns):
        rows = rows.of_columns(columns)
    if drop and rows.columns is None:
        raise ValueError(f"{rows.name} has no names of columns, so that none can be left out.")
    if need_target and rows.y is None:
        raise no_target(rows.name, rows.columns)
    if rows.X.shape[0] == 0:
        raise ValueError(f"{rows.name} has no rows.")
    return rows


def column_names(path: str | os.PathLike[str]) -> list[str] | None:
    """Names of the columns of a CSV or Parquet file; None for files without such names."""
    path = Path(path)
    if is_csv(path) and path.is_file():
        return _csv_header(path)
    if is_parquet(path):
        return list(_parquet(path).schema.names)
    return None


def read_columns(
    path: str | os.PathLike[str], wanted: Sequence[str], n_rows: int | None = None
) -> dict[str, list[Any]]:
    """Cells of the named columns of a CSV or Parquet file, as they are; the first `n_rows`."""
    path = Path(path)
    if is_csv(path):
        header, lines, _ = _csv_lines(path)
        found = dict(zip(wanted, places(header, wanted, str(path))))
        return {column: [line[j] for line in lines[:n_rows]] for column, j in found.items()}
    if not is_parquet(path):
        raise ValueError(f"{path} has no names of columns, so that none can be kept.")
    data = _parquet(path)
    places(list(data.schema.names), wanted, str(path))
    names_ = list(wanted)
    table = data.to_table(columns=names_) if n_rows is None else data.head(n_rows, columns=names_)
    return table.to_pydict()


def _parquet(path: Path) -> Any:
    return needed("pyarrow.dataset").dataset(path, format="parquet")


def _csv_header(path: Path) -> list[str]:
    with open_text(path) as stream:
        line = stream.readline()
    cells = next(csv.reader([line], delimiter=_delimiter(path, line)), [])
    return _header_of(cells)[0]


def _header_of(cells: Sequence[str]) -> tuple[list[str], bool]:
    """Names of the columns, and whether they stand in the first line (which is not all numbers)."""
    if all(_is_number(cell) for cell in cells):
        return [f"x{j}" for j in range(len(cells))], False
    return [cell.strip() for cell in cells], True


def _dataset(name: str, target: str | None) -> Rows:
    data = load(name, target=target)
    return Rows(name, data.X_train, data.y_train)


# ---- CSV ----------------------------------------------------------------------------------------


def _read_csv(
    path: Path,
    lines: list[list[str]],
    first: int,
    header: list[str],
    wish: Wish,
    keep: Sequence[str],
) -> Rows:
    name = str(path)
    cells = dict(zip(header, zip(*lines))) if lines else dict.fromkeys(header, ())
    _refuse_text(cells, wish.features, name)
    X = np.empty((len(lines), len(wish.features)))
    for j, column in enumerate(wish.features):
        X[:, j] = _numbers(cells[column], column, name, first)
    y = None
    if wish.target is not None:
        y = _labels(cells[wish.target], wish.target, name, first)
    kept = {column: list(cells[column]) for column in keep}
    return Rows(name, X, y, wish.features, wish.target, kept)


def _refuse_text(cells: Mapping[str, Sequence[str]], features: Sequence[str], name: str) -> None:
    """Name all columns of text at once, where there are several."""
    texts = [column for column in features if cells[column] and _is_text(cells[column][0])]
    if len(texts) > 1:
        raise ValueError(f"{name}: {hold_text(texts)}. {ADVICE}")


def _is_text(cell: str) -> bool:
    return not _is_number(cell) and cell.strip().lower() not in _EMPTY


def _csv_lines(path: Path) -> tuple[list[str], list[list[str]], int]:
    """Names of the columns, the cells, and the number of the line that the cells begin on."""
    lines = _split(path)
    if not lines:
        raise ValueError(f"{path} is empty.")
    header, named = _header_of(lines[0])
    twice = sorted(column for column, count in Counter(header).items() if count > 1)
    if twice:
        raise ValueError(f"{path} has the columns {twice} more than once.")
    body, first = (lines[1:], 2) if named else (lines, 1)
    for number, line in enumerate(body):
        if len(line) != len(header):
            raise ValueError(
                f"{path}, line {number + first}: {len(line)} cells where the header has "
                f"{len(header)} columns."
            )
    return header, body, first


def _split(path: Path) -> list[list[str]]:
    """The cells of all lines that are not empty."""
    with open_text(path) as stream:
        try:
            # Not by seeking back, which decompression would pay for twice.
            first = stream.readline()
            reader = csv.reader(chain([first], stream), delimiter=_delimiter(path, first))
            return [line for line in reader if line]
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is not UTF-8 text ({error.reason}, byte {error.start} of a block). Save "
                "it as UTF-8."
            ) from error
        except csv.Error as error:
            raise ValueError(
                f"{path}, line {reader.line_num}: the line cannot be split into cells: {error}."
                " Is a quotation mark missing?"
            ) from error


def _delimiter(path: Path, line: str) -> str:
    return "\t" if data_suffix(path) == ".tsv" else max(",;\t", key=line.count)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_2 as 12


def _numbers(cells: Sequence[str], column: str, name: str, first: int) -> np.ndarray:
    try:
        values = np.array(cells, dtype=np.float64)
        plain = np.array(["_" not in cell for cell in cells], dtype=bool)
        fine = np.isfinite(values) & plain
        if fine.all():
            return values
        place = int(np.argmin(fine))
    except ValueError:
        place = next(i for i, cell in enumerate(cells) if not _is_number(cell))
    found, where = cells[place], f"{name}, line {place + first}, column {column!r}: the cell"
    if found.strip().lower() in _EMPTY:
        raise ValueError(f"{where} is empty. Fill it, or leave the column out with drop=.")
    raise ValueError(f"{where} holds {found!r}, not a finite number. {ADVICE}")


def _labels(cells: Sequence[str], target: str, name: str, first: int) -> np.ndarray:
    """Numbers where all cells are numbers (whole ones as integers), else strings."""
    missing = [i for i, cell in enumerate(cells) if cell.strip().lower() in _EMPTY]
    if missing:
        raise ValueError(
            f"{name}, line {missing[0] + first}: the target {target!r} is missing (rows without "
            f"it: {len(missing)})."
        )
    if not all(_is_number(cell) for cell in cells):
        return np.array([cell.strip() for cell in cells])
    values = [_exact(cell) for cell in cells]
    if all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    numbers = np.array(values, dtype=np.float64)
    for place, value in enumerate(values):
        if not np.isfinite(numbers[place]) or int(numbers[place]) != int(value):
            fault = "neither a 64-bit integer nor a float64 represents exactly"
            fault = fault if np.isfinite(numbers[place]) else "is not a finite number"
            raise ValueError(
                f"{name}, line {place + first}: the target {target!r} holds {cells[place][:50]!r}, "
                f"which {fault}. Rescale it, or put a letter in front if it names a class."
            )
    whole = np.all(numbers == np.round(numbers)) and np.all(np.abs(numbers) <= 2.0**53)
    return numbers.astype(np.int64) if whole else numbers


def _exact(cell: str) -> int | float:
    """An integer where the text is one, because float64 has no others beyond 2⁵³."""
    value = float(cell)
    return int(cell) if np.isfinite(value) and _WHOLE.fullmatch(cell.strip()) else value


# ---- everything else ----------------------------------------------------------------------------


def _read_npz(path: Path, target: str | None) -> Rows:
    """Arrays ``X`` (or ``X_train``) and ``y`` (or ``y_train``); CSR matrices are put together."""
    arrays = read_npz(path)
    if {"format", "indptr", "indices", "data"} <= set(arrays):
        return _read_source(path, open_rows(path, target=target), target)
    name = next((key for key in ("X", "X_train") if key in arrays), None)
    if name is None:
        raise ValueError(f"{path} has no array 'X' (nor 'X_train'); it has {sorted(arrays)}.")
    if target is not None and target not in arrays:
        raise ValueError(f"{path} has no array {target!r} for the target; it has {sorted(arrays)}.")
    X = arrays[name]
    key = target or name.replace("X", "y")
    return _checked(Rows(str(path), X, arrays.get(key), None, key if key in arrays else None))


def _read_source(path: Path, source: PreparedSource, target: str | None) -> Rows:
    blocks = list(source.blocks(_BLOCK))
    X = [block.X for block in blocks]
    if not X:
        return Rows(str(path), np.empty((0, source.n_features or 0)), None)
    kinds = {bool(sparse.issparse(part)) for part in X}
    if len(kinds) > 1:
        raise ValueError(f"{path} mixes sparse and dense rows: store them all in one way.")
    stacked = sparse.csr_matrix(sparse.vstack(X)) if kinds == {True} else np.vstack(X)
    y = None if blocks[0].y is None else np.concatenate([block.y for block in blocks])
    return _checked(Rows(str(path), stacked, y, source.columns, source.target or target))


def _checked(rows: Rows) -> Rows:
    if getattr(rows.X, "ndim", 2) != 2:
        raise ValueError(f"{rows.name}: X must have two dimensions, found {rows.X.shape}.")
    if rows.y is not None and len(rows.y) != rows.X.shape[0]:
        raise ValueError(
            f"{rows.name}: X has {rows.X.shape[0]} rows, the target {len(rows.y)} values."
        )
    check_cells(rows.X, 0, rows.columns, rows.name)
    return rows
