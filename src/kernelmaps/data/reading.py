"""Rows, column names and a target from a file or a named dataset.

CSV, also compressed, is read here; npy, npz, HDF5, Zarr, Parquet and LIBSVM text through
:func:`kernelmaps.data.open_source`, the one reader of such files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .columns import ColumnChoice, Wanted, column_positions, hold_text, no_target
from .csv_text import csv_header, csv_lines, is_text, labels_of, numbers_of
from .loader import load, names, read_npz
from .prepared import PreparedSource, check_cells, open_rows
from .suffixes import is_csv, is_parquet, parquet_dataset

_BLOCK = 65536


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
        """Select columns by name.

        Parameters
        ----------
        wanted : sequence of str
            Names, in the order of the result.

        Returns
        -------
        Rows
            The rows with these columns.
        """
        if self.columns is None:
            raise ValueError(f"{self.name} has no names of columns, so that none can be chosen.")
        return replace(
            self,
            X=self.X[:, column_positions(self.columns, wanted, self.name)],
            columns=list(wanted),
        )

    def normalized(self, norm: str) -> Rows:
        """Scale every row to norm 1.

        Parameters
        ----------
        norm : {"l1", "l2", "none"}
            The norm; "none" leaves the rows unchanged.

        Returns
        -------
        Rows
            The scaled rows.
        """
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
    """Read the rows of a file or of a named dataset.

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
        Features, target and names.
    """
    path, wanted = Path(source), Wanted(target, columns, drop)
    known = target if with_target else None
    if not path.exists() and os.fspath(source) in names():
        rows = _dataset(os.fspath(source), known)
    elif not path.exists():
        known_names = ", ".join(names())
        raise FileNotFoundError(
            f"there is no file {os.fspath(source)!r}, nor a dataset of that name ({known_names})."
        )
    elif is_csv(path):
        header, lines, first = csv_lines(path)
        choice = wanted.found_in(
            header, str(path), need_target=need_target, with_target=with_target
        )
        column_positions(header, keep, str(path))
        rows = _read_csv(path, lines, first, header, choice, keep)
    elif path.suffix.lower() == ".npz":
        rows = _read_npz(path, known)
    else:
        rows = _read_source(path, open_rows(path, wanted, with_target=with_target), known)
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
        return csv_header(path)
    if is_parquet(path):
        return list(parquet_dataset(path).schema.names)
    return None


def read_columns(
    path: str | os.PathLike[str], wanted: Sequence[str], n_rows: int | None = None
) -> dict[str, list[Any]]:
    """Cells of the named columns of a CSV or Parquet file, as they are; the first `n_rows`."""
    path = Path(path)
    if is_csv(path):
        header, lines, _ = csv_lines(path)
        found = dict(zip(wanted, column_positions(header, wanted, str(path))))
        return {column: [line[j] for line in lines[:n_rows]] for column, j in found.items()}
    if not is_parquet(path):
        raise ValueError(f"{path} has no names of columns, so that none can be kept.")
    data = parquet_dataset(path)
    column_positions(list(data.schema.names), wanted, str(path))
    names_ = list(wanted)
    table = data.to_table(columns=names_) if n_rows is None else data.head(n_rows, columns=names_)
    return table.to_pydict()


def _dataset(name: str, target: str | None) -> Rows:
    data = load(name, target=target)
    return Rows(name, data.X_train, data.y_train)


# ---- CSV ----------------------------------------------------------------------------------------


def _read_csv(
    path: Path,
    lines: list[list[str]],
    first: int,
    header: list[str],
    choice: ColumnChoice,
    keep: Sequence[str],
) -> Rows:
    name = str(path)
    cells = dict(zip(header, zip(*lines))) if lines else dict.fromkeys(header, ())
    _refuse_text(cells, choice.features, name)
    X = np.empty((len(lines), len(choice.features)))
    for j, column in enumerate(choice.features):
        X[:, j] = numbers_of(cells[column], column, name, first)
    y = None
    if choice.target is not None:
        y = labels_of(cells[choice.target], choice.target, name, first)
    kept = {column: list(cells[column]) for column in keep}
    return Rows(name, X, y, choice.features, choice.target, kept)


def _refuse_text(cells: Mapping[str, Sequence[str]], features: Sequence[str], name: str) -> None:
    """Name all columns of text at once, where there are several."""
    texts = [column for column in features if cells[column] and is_text(cells[column][0])]
    if len(texts) > 1:
        raise ValueError(f"{name}: {hold_text(texts)}")


# ---- everything else ----------------------------------------------------------------------------


def _read_npz(path: Path, target: str | None) -> Rows:
    """Arrays ``X`` (or ``X_train``) and ``y`` (or ``y_train``); CSR matrices are put together."""
    arrays = read_npz(path)
    if {"format", "indptr", "indices", "data"} <= set(arrays):
        return _read_source(path, open_rows(path, Wanted(target)), target)
    name = next((key for key in ("X", "X_train") if key in arrays), None)
    if name is None:
        raise ValueError(f"{path} has no array 'X' (nor 'X_train'); it has {sorted(arrays)}.")
    if target is not None and target not in arrays:
        raise ValueError(f"{path} has no array {target!r} for the target; it has {sorted(arrays)}.")
    X = arrays[name]
    key = target or name.replace("X", "y")
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"{path}: X must have two dimensions, found {X.shape}.")
    y = arrays.get(key)
    if y is not None and len(y) != X.shape[0]:
        raise ValueError(f"{path}: X has {X.shape[0]} rows, the target {len(y)} values.")
    check_cells(X, 0, None, str(path))
    return Rows(str(path), X, y, None, None if y is None else key)


def _read_source(path: Path, source: PreparedSource, target: str | None) -> Rows:
    blocks = list(source.blocks(_BLOCK))
    X = [block.X for block in blocks]
    if not X:
        return Rows(str(path), np.empty((0, source.n_features or 0)), None)
    stacked = sparse.csr_matrix(sparse.vstack(X)) if sparse.issparse(X[0]) else np.vstack(X)
    y = None if blocks[0].y is None else np.concatenate([block.y for block in blocks])
    return Rows(str(path), stacked, y, source.columns, source.target or target)
