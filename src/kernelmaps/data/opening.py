"""`open_source` and `open_table` turn whatever holds rows into a `Source`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .arrow import ArrowSource, CsvFragment
from .columns import check_order
from .csv_files import CsvFile
from .dask import DaskSource
from .frames import is_frame
from .sources import (
    Block,
    IterableSource,
    Source,
    check_lengths,
    is_chunks,
    sliced_source,
    values_at,
)
from .suffixes import is_csv, is_parquet, known_suffixes, parquet_dataset


def open_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    columns: Sequence[str] | None = None,
) -> Source:
    """Open anything that holds rows.

    Parameters
    ----------
    X : array, sparse matrix, DataFrame, path, iterable, callable, Dask collection or Source
        Whatever has a shape and can be sliced by rows (NumPy, memory maps, SciPy sparse, pandas,
        h5py, Zarr); pyarrow tables and datasets; Dask arrays and dataframes; paths of ``.npy``,
        ``.parquet`` (a file or a directory), ``.csv`` or ``.tsv`` (of numbers; also compressed); an
        iterable or a generator of chunks ``X``, ``(X, y)`` or ``(X, y, weights)``; a callable
        without arguments that returns one, which, unlike a generator, can be read twice.
    y : array-like, str or None
        Targets; of Parquet and CSV the name of the column(s), by default "y" where there is one; of
        others also the path of a ``.npy``.
    sample_weight : array-like, str or None
        Weights, or the name of a column: one named "sample_weight" is a feature unless it is named
        here, as in a frame.
    columns : sequence of str, optional
        Names of the columns of X, in the order in which they are given; by default all but those
        of `y` and `sample_weight`, as they come. Parquet and CSV files and Dask dataframes may have
        them in any order; a warning names further ones, which are ignored. Chunks that are frames
        must have them in this order.

    Returns
    -------
    Source
        The rows, to be read block by block.
    """
    return _opened(X, y, sample_weight, columns=columns)


def open_table(X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None) -> Source:
    """Open anything that holds a table: columns of any kind, as frames, where they have names.

    Parameters
    ----------
    X : path, pyarrow dataset, Dask collection, iterable, callable, or what `open_source` opens
        Chunks may be frames. CSV files are opened by `open_large_table`.
    y, sample_weight, exposure : str or array-like, optional
        Columns by name, or values of all rows. The target is by default the column ``"y"``.
    """
    # A list holds values: in a table, only a string names a column.
    beside = (np.asarray(v) if isinstance(v, list) else v for v in (y, sample_weight, exposure))
    return _opened(X, *beside, frames=True)


def _opened(
    X: Any, y: Any, w: Any, exposure: Any = None, *,
    frames: bool = False, columns: Sequence[str] | None = None,
) -> Source:  # fmt: skip
    path = Path(X) if isinstance(X, str | os.PathLike) else None
    if path is not None and not path.exists():
        raise FileNotFoundError(f"no file or directory {str(path)!r}")
    if path is not None and (is_parquet(path) or is_csv(path)):
        data = parquet_dataset(path) if is_parquet(path) else CsvFragment(CsvFile(path))
        where = str(path) if frames else f"the file {str(path)!r}"
        return ArrowSource.of(data, y, w, exposure, frames=frames, columns=columns, name=where)
    package = type(X).__module__.split(".")[0]
    if package == "pyarrow":
        return ArrowSource.of(X, y, w, exposure, frames=frames, columns=columns)
    collection, given = package.startswith("dask"), not isinstance(exposure, str | None)
    if given and (collection or isinstance(X, DaskSource)):
        raise ValueError("exposure of a Dask collection must be the name of a column")
    if collection:
        return DaskSource(X, y, w, exposure, frames=frames, columns=columns)
    if callable(X) or (path is None and is_chunks(X)):
        return IterableSource(X, y, w, exposure, frames, columns)
    if isinstance(exposure, str):
        raise ValueError(f"exposure={exposure!r} names a column, but X has no names of columns")
    if exposure is not None:
        source = _opened(X, y, w)
        if isinstance(source, IterableSource):  # its first chunks can be looked at and still come
            return IterableSource(source.chunks, *source.beside[:2], exposure, source.frames)
        return ExposedSource(source, exposure)
    if path is not None and path.suffix.lower() != ".npy":
        raise ValueError(f"{str(path)!r} is not a file of rows that is read. {known_suffixes()}")
    if not isinstance(X, Source):
        return sliced_source(X if path is None else path, y, w)
    if y is not None or w is not None:
        raise ValueError("a Source has its own targets and weights; leave y and weights out")
    if columns is not None and X.names is not None:
        check_order(X.names, columns, X.describe())
    return X


class ExposedSource(Source):
    """A source with exposures of all rows beside it."""

    def __init__(self, source: Source, exposure: Any) -> None:
        self.source, self.exposure, self.once = source, exposure, source.once

    def describe(self) -> str:
        return self.source.describe()

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        end = 0
        for block in self.source.blocks(block_rows, skip):
            end = block.start + len(block)
            yield replace(block, exposure=values_at(self.exposure, slice(block.start, end)))
        check_lengths(end, exposure=self.exposure)


def in_memory(X: Any) -> bool:
    """Whether X is an array, a sparse matrix, a frame or a nested list, not read in blocks."""
    if isinstance(X, Source | str | os.PathLike) or callable(X):
        return False
    if type(X).__module__.startswith(("dask", "h5py", "zarr", "pyarrow")):
        return False
    return not is_chunks(X)


def has_text(X: Any) -> bool:
    """Whether a file, dataset or Dask frame has columns of other things than numbers.

    A CSV file counts as if it had: it is read as a table, or not at all.
    """
    if isinstance(X, str | os.PathLike):
        if is_csv(X):
            return Path(X).exists()
        if not (Path(X).exists() and is_parquet(X)):
            return False
        X = parquet_dataset(X)
    package = type(X).__module__.split(".")[0]
    if package == "pyarrow" and not is_frame(X):
        return any(_is_text(kind) for kind in X.schema.types)
    if package.startswith("dask") and hasattr(X, "columns"):
        return any(kind.kind not in "fiub" for kind in X.dtypes)
    return False


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    words = types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind)
    return words or types.is_temporal(kind)
