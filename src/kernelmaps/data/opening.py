"""`open_source` and `open_table` turn whatever holds rows into a `Source`.

Files of arrays (npz, HDF5, Zarr and SVMlight text) are read here, too, block by block.
"""

from __future__ import annotations

import io
import math
import os
import re
import sys
import zipfile
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from .._util.arguments import needed
from .._util.sparse import check_sparse
from .arrow import ArrowSource, CsvFragment
from .columns import check_order
from .csv_files import CsvFile
from .dask import DaskSource
from .frames import is_frame
from .sources import (
    Block,
    ContainerRows,
    IterableSource,
    SlicedSource,
    Source,
    check_lengths,
    check_members,
    default_target,
    is_chunks,
    open_hdf5,
    read_npy_header,
    sliced_source,
    values_at,
)
from .suffixes import SVMLIGHT, is_csv, is_parquet, known_suffixes, parquet_dataset

LARGEST_INDEX = 2**31 - 2  # of a column in SVMlight text; indices are kept in 32 bits


def open_path(path: Path, y: Any, w: Any, *, name: str, n_features: int | None) -> Source:
    """Open a file of arrays by its suffix."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return sliced_source(path, y, w)
    if suffix == ".npz":
        return _open_npz(path, y, w, name)
    if suffix in (".h5", ".hdf5"):
        with open_hdf5(str(path)) as container:
            return _open_container(path, y, w, name, container, "hdf5")
    if suffix == ".zarr":
        zarr = needed("zarr")
        root = zarr.open(path, mode="r")
        if isinstance(root, zarr.Array):
            return sliced_source(ContainerRows(str(path), "", "zarr"), y, w)
        return _open_container(path, y, w, name, root, "zarr")
    if suffix in SVMLIGHT:
        return SvmlightSource(path, y, w, n_features=n_features)
    raise ValueError(
        f"{str(path)!r}: the suffix {path.suffix!r} is not known. Known are {known_suffixes()}."
    )


def _open_container(
    path: Path, y: Any, w: Any, name: str, container: Any, form: str
) -> SlicedSource:
    def rows(array: Any) -> Any:
        named = isinstance(array, str)
        return (
            ContainerRows(str(path), _existing_array(path, container, array), form)
            if named
            else array
        )

    return sliced_source(*map(rows, (name, *_default_arrays(container, y, w))))


def _default_arrays(names: Container[str], y: Any, w: Any) -> tuple[Any, Any]:
    """Targets and weights: as given, or the arrays "y" and "sample_weight" where there are any."""
    return default_target(
        names, y
    ), "sample_weight" if w is None and "sample_weight" in names else w


def _existing_array(path: Path, container: Any, name: str) -> str:
    """The name of an array that a file has; it may lie in a group: "group/name"."""
    if name not in container:
        raise KeyError(f"{str(path)!r} has no array {name!r}; it has {sorted(container)}")
    return name


# ---- npz ----------------------------------------------------------------------------------------


def _open_npz(path: Path, y: Any, w: Any, name: str) -> Source:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{str(path)!r} is not a readable .npz file: it is not a whole archive")
    check_members(path)
    with np.load(path, allow_pickle=False) as archive:
        names = set(archive.files)
        y, w = (
            archive[_existing_array(path, names, array)] if isinstance(array, str) else array
            for array in _default_arrays(names, y, w)
        )
    if {"format", "indptr", "data"} <= names:
        matrix = scipy.sparse.load_npz(path)
        check_sparse(matrix, str(path))
        return sliced_source(matrix, y, w)
    return NpzSource(path, _existing_array(path, names, name), y, w)


class NpzSource(Source):
    """The rows of one array of an .npz, decompressed as they are read, never as a whole."""

    n_rows: int
    n_features: int

    def __init__(self, path: Path, name: str, y: Any, w: Any) -> None:
        self.path, self.name, self.y, self.w = path, name, y, w
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
            shape, self.fortran, self.dtype = read_npy_header(stream)
        if len(shape) != 2:
            raise ValueError(f"{str(path)!r}: array {name!r} must have two dimensions, has {shape}")
        self.n_rows, self.n_features = shape
        check_lengths(self.n_rows, y=y, sample_weight=w)

    def describe(self) -> str:
        return f"the file {str(self.path)!r} of {self.n_rows} rows and {self.n_features} features"

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        if self.fortran:  # its rows are scattered over the whole member
            X = np.load(self.path, allow_pickle=False)[self.name]
            yield from SlicedSource(X, self.y, self.w).blocks(block_rows, skip)
            return
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.name}.npy") as stream:
            read_npy_header(stream)
            width = self.n_features * self.dtype.itemsize
            for chunk, a in enumerate(range(0, self.n_rows, block_rows)):
                rows = slice(a, min(a + block_rows, self.n_rows))
                data = stream.read((rows.stop - a) * width)
                if len(data) < (rows.stop - a) * width:
                    raise ValueError(
                        f"{str(self.path)!r} ends early: the rows from {a} on are declared, but "
                        "not all of them are there. Write the file again."
                    )
                if chunk < skip:
                    continue
                X = np.frombuffer(data, self.dtype).reshape(-1, self.n_features)
                yield Block(X, values_at(self.y, rows), values_at(self.w, rows), chunk, 0, a)

    def partitions(self, n: int, block_rows: int) -> list[Source]:
        return [self]  # a compressed stream has no way in but its beginning


# ---- SVMlight text ------------------------------------------------------------------------------

_INDEX = re.compile(rb"\s(\d+):")


@dataclass
class SvmlightSource(Source):
    """``label index:value …`` lines, streamed as CSR blocks.

    A first pass over the text finds the number of columns, whether indices begin at 0 or 1, and
    the number of rows. `n_features` saves it; indices then begin at 1, unless `zero_based`.
    """

    path: Path
    y: Any = None
    w: Any = None
    n_features: int | None = None
    zero_based: bool = False
    span: tuple[int, int] = (0, sys.maxsize)  # bytes of the file
    begin: int = 0

    def __post_init__(self) -> None:
        self.span = (self.span[0], min(self.span[1], self.path.stat().st_size))
        if self.n_features is None:
            self._scan()

    def _scan(self) -> None:
        low, high, rows = 1, 0, 0
        with open(self.path, "rb") as stream:
            while lines := stream.readlines(1 << 24):
                for line in lines:
                    text = line.split(b"#", 1)[0]
                    indices = _INDEX.findall(text)
                    rows += bool(text.strip())
                    if indices:
                        low, high = min(low, int(indices[0])), max(high, int(indices[-1]))
        if high > LARGEST_INDEX:
            raise ValueError(
                f"the SVMlight text {str(self.path)!r} has the index {high}; indices up to "
                f"{LARGEST_INDEX} can be read. Renumber the columns, or hash them to fewer."
            )
        self.zero_based, self.n_rows = low == 0, rows
        self.n_features = high + self.zero_based

    def like(self, n_features: int, zero_based: bool) -> Source:
        """The same text for a model of `n_features`: its last or first ones may not occur here."""
        if self.n_features is None or self.n_features >= n_features:
            return self
        return replace(self, n_features=n_features, zero_based=self.zero_based or zero_based)

    def files(self) -> list[Path] | None:
        return [self.path] if self.y is None and self.w is None else None

    def describe(self) -> str:
        return f"the SVMlight text {str(self.path)!r} of {self.n_features} features"

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        start = self.begin
        with open(self.path, "rb") as stream:
            stream.seek(self.span[0])
            lines = _lines(stream, self.span[1])
            for chunk, text in enumerate(iter(lambda: list(islice(lines, block_rows)), [])):
                if chunk >= skip:
                    X, labels = self._parse(text, start)
                    rows = slice(start, start + len(text))
                    y = labels if self.y is None else values_at(self.y, rows)
                    yield Block(
                        scipy.sparse.csr_array(X), y, values_at(self.w, rows), chunk, 0, start
                    )
                start += len(text)

    def _parse(self, text: list[bytes], start: int) -> tuple[Any, np.ndarray]:
        from sklearn.datasets import load_svmlight_file

        options = {"n_features": self.n_features, "zero_based": self.zero_based}
        try:
            X, labels = load_svmlight_file(io.BytesIO(b"".join(text)), **options)
            _check_labels(labels, text)
        except (ValueError, OverflowError) as error:  # the latter: an index of more than 31 bits
            raise ValueError(
                f"{self.describe()}: rows {start} to {start + len(text)} cannot be read: {error}"
            ) from error
        return X, labels

    def partitions(self, n: int, block_rows: int) -> list[Source]:
        """Byte ranges that begin at every k-th block of lines (one pass finds them)."""
        cuts = [self.span[0]]
        with open(self.path, "rb") as stream:
            stream.seek(self.span[0])
            for count, _ in enumerate(_lines(stream, self.span[1]), 1):
                if count % block_rows == 0:
                    cuts.append(stream.tell())
        if cuts[-1] != self.span[1]:
            cuts.append(self.span[1])
        step = math.ceil((len(cuts) - 1) / max(n, 1))
        spans = pairwise([*cuts[:-1:step], cuts[-1]])
        begins = range(self.begin, sys.maxsize, step * block_rows)
        return [replace(self, span=span, begin=begin) for span, begin in zip(spans, begins)]


def _check_labels(labels: np.ndarray, text: list[bytes]) -> None:
    """Refuse whole numbers that float64, the type of labels here, merges with their neighbours."""
    for row in np.flatnonzero(np.abs(labels) >= 2.0**53).tolist():
        word = text[row].split(None, 1)[0].lstrip(b"+-")
        if word.isdigit() and int(word) != int(abs(labels[row])):
            raise ValueError(f"float64 does not represent the label {word.decode()} exactly")


def _lines(stream: Any, end: int) -> Iterator[bytes]:
    """Lines with data that begin before byte `end`."""
    while stream.tell() < end:
        line = stream.readline()
        if not line:
            return
        if line.split(b"#", 1)[0].strip():
            yield line


def open_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    name: str = "X",
    n_features: int | None = None,
    columns: Sequence[str] | None = None,
) -> Source:
    """Open anything that holds rows.

    Parameters
    ----------
    X : array, sparse matrix, DataFrame, path, iterable, callable, Dask collection or Source
        NumPy arrays and memory maps, SciPy sparse, pandas, h5py datasets, Zarr arrays, pyarrow
        tables and datasets, Dask arrays and dataframes; paths of ``.npy``, ``.npz``, ``.h5`` or
        ``.hdf5``, ``.zarr``, ``.parquet`` (a file or a directory), ``.csv`` or ``.tsv`` (of numbers
        with commas or tabs between them) and ``.svm``, ``.svmlight``, ``.libsvm`` or ``.txt``
        (SVMlight text); an iterable or a generator of chunks ``X``,
        ``(X, y)`` or ``(X, y, weights)``; a callable without arguments that returns one, which,
        unlike a generator, can be read twice.
    y : array-like, str or None
        Targets. For files with named parts (npz, HDF5, Zarr, Parquet, CSV) the name of the dataset
        or column(s), by default "y" where there is one; for others also the path of a ``.npy``.
    sample_weight : array-like, str or None
        Weights, or the name of a dataset or column. By default the dataset "sample_weight" of npz,
        HDF5 and Zarr files; a column of that name in a table is a feature unless it is named here,
        as in a frame.
    name : str
        Name of the dataset of features in npz, HDF5 and Zarr files.
    n_features : int, optional
        For SVMlight text: the number of columns, which saves a pass to find it.
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
    return _opened(X, y, sample_weight, name=name, n_features=n_features, columns=columns)


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
    frames: bool = False, name: str = "X", n_features: int | None = None,
    columns: Sequence[str] | None = None,
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
    if path is not None:
        return open_path(path, y, w, name=name, n_features=n_features)
    if not isinstance(X, Source):
        return sliced_source(X, y, w)
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
