"""`open_source` and `open_table` turn whatever holds rows into a `Source`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .arrow import ArrowSource, CsvFragment
from .dask import DaskSource
from .files import open_path
from .frames import is_frame
from .sources import (
    Block,
    IterableSource,
    Source,
    check_lengths,
    is_group,
    is_table,
    sliced_source,
    values_at,
)
from .suffixes import is_csv, is_parquet, parquet_dataset


def open_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    name: str = "X",
    n_features: int | None = None,
) -> Source:
    """Open anything that holds rows.

    Parameters
    ----------
    X : array, sparse matrix, DataFrame, path, iterable, callable, Dask collection or Source
        NumPy arrays and memory maps, SciPy sparse, pandas, h5py datasets, Zarr arrays, pyarrow
        tables and datasets, Dask arrays and dataframes; paths of ``.npy``, ``.npz``, ``.h5`` or
        ``.hdf5``, ``.zarr``, ``.parquet`` (a file or a directory) and ``.svm``, ``.svmlight``,
        ``.libsvm`` or ``.txt`` (SVMlight text); an iterable or a generator of chunks ``X``,
        ``(X, y)`` or ``(X, y, weights)``; a callable without arguments that returns one, which,
        unlike a generator, can be read twice.
    y : array-like, str or None
        Targets. For files with named parts (npz, HDF5, Zarr, Parquet) the name of the dataset or
        column(s), by default "y" where there is one; for others also the path of a ``.npy``.
    sample_weight : array-like, str or None
        Weights, likewise.
    name : str
        Name of the dataset of features in npz, HDF5 and Zarr files.
    n_features : int, optional
        For SVMlight text: the number of columns, which saves a pass to find it.

    Returns
    -------
    Source
        The rows, to be read block by block.
    """
    return _opened(X, y, sample_weight, name=name, n_features=n_features)


def open_table(X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None) -> Source:
    """Open anything that holds a table: columns of any kind, as frames, where they have names.

    Parameters
    ----------
    X : path, pyarrow dataset, Dask collection, iterable, callable, or what `open_source` opens
        CSV files, too; chunks may be frames.
    y, sample_weight, exposure : str or array-like, optional
        Columns by name, or values of all rows. ``"y"`` and ``"sample_weight"`` by default where
        there are columns of that name.
    """
    # A list holds values: in a table, only a string names a column.
    y, sample_weight = (np.asarray(v) if isinstance(v, list) else v for v in (y, sample_weight))
    named = exposure if isinstance(exposure, str) else None
    source = _opened(X, y, sample_weight, named, frames=True)
    if named is not None or exposure is None:
        return source
    if source.parts is not None:
        raise ValueError("exposure of a Dask collection must be the name of a column")
    if isinstance(source, IterableSource):  # it can look at its first chunks and still give them
        return IterableSource(source.chunks, *source.beside[:2], exposure, source.frames)
    return ExposedSource(source, exposure)


def _opened(
    X: Any, y: Any, w: Any, exposure: str | None = None, *,
    frames: bool = False, name: str = "X", n_features: int | None = None,
) -> Source:  # fmt: skip
    path = Path(X) if isinstance(X, str | os.PathLike) else None
    if path is not None and not path.exists():
        raise FileNotFoundError(f"no file or directory {str(path)!r}")
    if path is not None and (is_parquet(path) or (frames and is_csv(path))):
        data = parquet_dataset(path) if is_parquet(path) else CsvFragment(str(path))
        where = f"the file {str(path)!r}" if frames else "the Parquet dataset"
        return ArrowSource.of(data, y, w, exposure, frames=frames, name=where)
    package = type(X).__module__.split(".")[0]
    if package == "pyarrow":
        return ArrowSource.of(X, y, w, exposure, frames=frames)
    if package.startswith("dask"):
        return DaskSource.of(X, y, w, exposure, frames=frames)
    if callable(X) or (path is None and is_chunks(X)):
        return IterableSource(X, y, w, exposure, frames)
    if exposure is not None:
        raise ValueError(f"exposure={exposure!r} names a column, but X has no names of columns")
    if path is not None:
        return open_path(path, y, w, name=name, n_features=n_features)
    if not isinstance(X, Source):
        return sliced_source(X, y, w)
    if y is not None or w is not None:
        raise ValueError("a Source has its own targets and weights; leave y and weights out")
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


def is_chunks(X: Any) -> bool:
    """Whether X is a stream of blocks of rows rather than one table."""
    if hasattr(X, "shape") or hasattr(X, "__array__"):
        return False
    if isinstance(X, list | tuple):
        first = X[0] if X else None
        return is_table(first) or is_group(first)
    return isinstance(X, Iterable)
