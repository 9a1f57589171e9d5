"""Rows, column names and a target from a file or a named dataset.

Files are read block by block: the columns that are asked for, checked cell by cell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._util.arguments import argument
from .._util.sparse import find_not_finite
from .._util.storage import AnyPath
from . import table_files
from .columns import ColumnSelection, column_positions, no_target
from .datasets import BUNDLED, load
from .sources import Block, Source, join_blocks
from .table_files import TableFile, open_table
from .tables import TableSource, load_table, open_source, read_complete_column


def open_rows(
    path: AnyPath, selection: ColumnSelection, *, with_target: bool = True, normalize: str = "none"
) -> PreparedSource:
    """Open a file of any format to be read block by block: only the columns that are asked for."""
    file = open_table(path)
    if file is not None:
        table = _assign_columns(file, selection, with_target).check_numbers()
        return PreparedSource(table, table.y, normalize)
    if selection.columns is not None or selection.drop:
        raise ValueError(f"{path} has no names of columns, so that none can be chosen.")
    source = open_source(path, selection.target if with_target else None)
    return PreparedSource(source, selection.target, normalize)


def _assign_columns(
    file: TableFile, selection: ColumnSelection, with_target: bool, required: bool = False
) -> TableSource:
    """The columns of a file that are asked for, and the target, unless it is left out."""
    header, name = file.names, str(file)
    target = selection.find_target(header, name, required=required, to_fit=with_target)
    table = TableSource.assign(file, target, columns=selection.columns, drop=selection.drop)
    return table if with_target else replace(table, y=None)


class PreparedSource(Source):
    """A source whose cells are finite, whose labels have no gaps, and whose rows may be scaled.

    Attributes
    ----------
    columns : list of str or None
        Names of its columns; models are fitted on the numbers alone.
    target : str or None
    """

    def __init__(self, source: Source, target: str | None, normalize: str) -> None:
        self.source, self.target, self.normalize = source, target, normalize
        self.n_rows, self.n_features, self.columns = source.n_rows, source.n_features, source.names

    def describe(self) -> str:
        return self.source.describe()

    def blocks(self, block_rows: int) -> Iterator[Block]:
        return map(self._check_block, self.source.blocks(block_rows))

    def _check_block(self, block: Block) -> Block:
        """A block without missing or infinite cells; others are refused by their place."""
        X, y = block.X, None if block.y is None else np.asarray(block.y)
        where = f"{self.describe()}: row {{}} (counted from 0)"
        place = find_not_finite(X)
        if place is not None:
            row, column = place
            shown = repr(self.columns[column]) if self.columns is not None else str(column)
            raise ValueError(
                f"{where.format(block.start + row)}, column {shown}: the cell is empty or "
                f"infinite. Fill it, or leave the column out with {argument('drop')}."
            )
        is_gap = {"f": np.isnan, "O": lambda cells: np.equal(cells, None)}
        gaps = is_gap[y.dtype.kind](y) if y is not None and y.dtype.kind in is_gap else np.False_
        if gaps.any():
            row = block.start + int(np.argmax(gaps))
            raise ValueError(f"{where.format(row)}: {self.target or 'y'!r} is missing.")
        return replace(block, X=_normalize_rows(X, self.normalize), y=y)


def _normalize_rows(X: Any, norm: str) -> Any:
    """Rows of norm 1, if there is a norm; rows of zeros stay as they are."""
    if norm == "none":
        return X
    X = X.astype(np.float64)  # without scikit-learn, whose import takes as long as a prediction
    norms = np.linalg.norm(X, 1 if norm == "l1" else 2, axis=1, keepdims=True)
    return X / np.where(norms == 0, 1.0, norms)


@dataclass(frozen=True)
class Rows:
    """Rows with what is known about them.

    Attributes
    ----------
    name : str
    X : ndarray, or data frame of a table that was read as it is
    y : ndarray or None
    columns : list of str or None
        Names of the features, where the source has them.
    target : str or None
        Name of the target.
    extra_columns : dict of str to list
        Cells of the columns that were asked for by `keep`, as they stand in the file.
    """

    name: str
    X: Any
    y: np.ndarray | None
    columns: list[str] | None = None
    target: str | None = None
    extra_columns: dict[str, list[Any]] = field(default_factory=dict)

    def select_columns(self, columns: Sequence[str]) -> Rows:
        """Select columns by name.

        Parameters
        ----------
        columns : sequence of str
            Names, in the order of the result.

        Returns
        -------
        Rows
            The rows with these columns.
        """
        if self.columns is None:
            raise ValueError(f"{self.name} has no names of columns, so that none can be chosen.")
        places = column_positions(self.columns, columns, self.name)
        return replace(self, X=self.X[:, places], columns=list(columns))

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
        return self if norm == "none" else replace(self, X=_normalize_rows(self.X, norm))


def read_rows(
    source: str | os.PathLike[str],
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    need_target: bool = False,
    with_target: bool = True,
    numeric: bool = True,
    **options: Any,
) -> Rows:
    """Read the rows of a file or of a named dataset.

    Parameters
    ----------
    source : str or path
        A file (``.csv`` and ``.tsv``, also ``.gz`` or ``.zst``; ``.xlsx``,
        ``.parquet``, ``.npy``) or ``digits`` (its training rows).
    target : str, optional
        Column to predict; by default ``y`` where there is one. Of ``.npy`` it is the path of
        another.
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
    numeric : bool
        False reads a file as it is, into a data frame: text, dates and gaps. Rows without a target
        are left out.
    **options : str or sequence of str
        How the file is read: those of :func:`open_table`.

    Returns
    -------
    Rows
        Features, target and names.
    """
    path, selection = Path(source), ColumnSelection(target, columns, drop)
    if not path.exists():
        if os.fspath(source) not in BUNDLED:
            raise FileNotFoundError(
                f"there is no file {os.fspath(source)!r}, nor a dataset of that name (digits)."
            )
        if columns is not None or drop or keep:
            raise ValueError(f"{source} has no names of columns, so that none can be chosen.")
        data = load(os.fspath(source))
        return Rows(data.name, data.X_train, data.y_train if with_target else None)
    file, target = open_table(source, **options), target if with_target else None
    if file is not None:
        table = _assign_columns(file, selection, with_target, need_target or not numeric)
        features, target = table.features, table.y
    if file is not None and not numeric:
        loaded, y, *_ = load_table(file, target, columns=list(dict.fromkeys([*features, *keep])))
        cells = {column: loaded.column(column).to_pylist() for column in keep}
        rows = Rows(str(path), loaded.select(features).to_pandas(), y, features, target, cells)
    else:
        opened = open_rows(file or path, selection, with_target=with_target and file is None)
        cells = read_columns(file or source, keep) if keep else {}
        blocks = list(opened.blocks(table_files.BLOCK_ROWS))
        block = join_blocks(blocks or [Block(np.empty((0, opened.n_features or 0)))])
        y = block.y
        if file is not None and target is not None:  # by all of its cells
            y = read_complete_column(file.table([target]), target, file.locate_row)
        rows = Rows(str(path), block.X, y, opened.columns, target, cells)
    if need_target and rows.y is None:
        raise no_target(rows.name, rows.columns)
    if rows.X.shape[0] == 0:
        raise ValueError(f"{rows.name} has no rows.")
    return rows


def column_names(path: AnyPath) -> list[str] | None:
    """Names of the columns of a file; None for files without such names."""
    file = open_table(path)
    return None if file is None else file.names


def read_columns(path: AnyPath, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Cells of the named columns of a file, as they are."""
    file = open_table(path)
    if file is None:
        raise ValueError(f"{path} has no names of columns, so that none can be kept.")
    column_positions(file.names, columns, str(path))
    return file.table(columns).to_pydict()
