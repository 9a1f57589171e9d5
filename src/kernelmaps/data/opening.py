"""`open_source`: the one function that turns whatever holds rows into a `Source`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .dask import DaskSource
from .files import ParquetSource, open_path
from .sources import IterableSource, Source, is_group, is_table, sliced_source


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
    """
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise ValueError("a Source has its own targets and weights; leave y and weights out")
        return X
    if isinstance(X, str | os.PathLike):
        return open_path(Path(X), y, sample_weight, name=name, n_features=n_features)
    package = type(X).__module__.split(".")[0]
    if package.startswith("dask"):
        return DaskSource.of(X, y, sample_weight)
    if package == "pyarrow":
        return ParquetSource.of(X, y, sample_weight)
    if callable(X) or is_chunks(X):
        return IterableSource(X, y, sample_weight)
    return sliced_source(X, y, sample_weight)


def is_chunks(X: Any) -> bool:
    """Whether X is a stream of blocks of rows rather than one table."""
    if hasattr(X, "shape") or hasattr(X, "__array__"):
        return False
    if isinstance(X, list | tuple):
        first = X[0] if X else None
        return is_table(first) or is_group(first)
    return isinstance(X, Iterable)
