"""Sources in files: npz, HDF5, Zarr, Parquet and SVMlight text, all read block by block."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..extras import needed
from ..sparse_rows import check_sparse
from .sources import (
    Block,
    ContainerRows,
    SlicedSource,
    Source,
    check_lengths,
    check_members,
    default_names,
    labels_of,
    open_hdf5,
    raw_rows,
    read_npy_header,
    sliced_source,
)
from .suffixes import SVMLIGHT, is_csv, known_suffixes, parquet_dataset

LARGEST_INDEX = 2**31 - 2  # of a column in SVMlight text; indices are kept in 32 bits


def open_path(path: Path, y: Any, w: Any, *, name: str, n_features: int | None) -> Source:
    """Open a file by its suffix."""
    if not path.exists():
        raise FileNotFoundError(f"no file or directory {str(path)!r}")
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return sliced_source(raw_rows(path), y, w)
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
    if suffix in (".parquet", ".pq") or (path.is_dir() and any(path.rglob("*.parquet"))):
        return ParquetSource.of(parquet_dataset(path), y, w)
    if suffix in SVMLIGHT:
        return SvmlightSource(path, y, w, n_features=n_features)
    if is_csv(path):
        raise ValueError(
            f"{str(path)!r}: CSV is not read block by block. Read it with "
            "kernelmaps.data.read_rows, or store it as Parquet."
        )
    raise ValueError(
        f"{str(path)!r}: the suffix {path.suffix!r} is not known. Known are {known_suffixes()}."
    )


def _open_container(
    path: Path, y: Any, w: Any, name: str, container: Any, form: str
) -> SlicedSource:
    y, w = default_names(container, y, w)
    found = [
        ContainerRows(str(path), _there(path, container, part), form)
        if isinstance(part, str)
        else part
        for part in (name, y, w)
    ]
    return sliced_source(*found)


def _there(path: Path, container: Any, name: str) -> str:
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
            archive[_there(path, names, part)] if isinstance(part, str) else part
            for part in default_names(names, y, w)
        )
    if {"format", "indptr", "data"} <= names:
        matrix = sp.load_npz(path)
        check_sparse(matrix, str(path))
        return sliced_source(matrix, y, w)
    return NpzSource(path, _there(path, names, name), y, w)


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
                yield Block(X, labels_of(self.y, rows), labels_of(self.w, rows), chunk, 0, a)

    def partitions(self, n: int, block_rows: int) -> list[Source]:
        return [self]  # a compressed stream has no way in but its beginning


# ---- Parquet ------------------------------------------------------------------------------------


class ParquetSource(Source):
    """Record batches of Parquet files or of any pyarrow dataset.

    Feature columns are all numeric columns that are neither target nor weight, in their order; a
    single column of fixed-size lists also serves.
    """

    def __init__(
        self, fragments: Sequence[Any], features: list[str], y: Any, w: Any, begin: int = 0
    ) -> None:
        self.fragments, self.features, self.y, self.w = list(fragments), features, y, w
        self.rows = [count_rows(fragment) for fragment in self.fragments]
        self.n_rows, self.begin = sum(self.rows), begin
        schema = self.fragments[0].physical_schema
        types = [schema.field(column).type for column in features]
        # A fixed-size list stands for as many columns as it is long; list_size raises on others.
        self.n_features = sum(getattr(kind, "list_size", 1) for kind in types)

    @classmethod
    def of(cls, data: Any, y: Any, w: Any) -> ParquetSource:
        """From a pyarrow Table or Dataset; `y` and `w` name columns (or are arrays)."""
        import pyarrow as pa
        import pyarrow.dataset

        if isinstance(data, pa.Table):
            data = pyarrow.dataset.dataset(data)
        fragments = row_groups(data)
        if not fragments:
            raise ValueError("the Parquet dataset has no rows")
        names = data.schema.names
        y, w = default_names(names, y, w)
        taken = [*_names(y), *_names(w)]
        missing = [column for column in taken if column not in names]
        if missing:
            raise KeyError(f"the Parquet dataset has no column {missing}; it has {names[:20]}")
        features = [column for column in names if column not in taken]
        for column in features:
            kind = data.schema.field(column).type
            if not (
                pa.types.is_integer(kind)
                or pa.types.is_floating(kind)
                or pa.types.is_boolean(kind)
                or pa.types.is_fixed_size_list(kind)
            ):
                raise ValueError(
                    f"column {column!r} has type {kind}; features must be numbers. Name the "
                    "target with y=, or drop the column"
                )
        return cls(fragments, features, y, w)

    def describe(self) -> str:
        return f"the Parquet dataset of {self.n_rows} rows and {self.n_features} features"

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        taken = [*self.features, *_names(self.y), *_names(self.w)]
        start, number = self.begin, 0
        for fragment in self.fragments:
            # Little read-ahead: the default of 16 batches is hundreds of megabytes.
            batches = fragment.to_batches(columns=taken, batch_size=block_rows, batch_readahead=2)
            for batch in batches:
                n = batch.num_rows
                if n and number >= skip:
                    X = np.column_stack([_values(batch.column(c)) for c in self.features])
                    y, w = (self._beside(batch, v, start, n) for v in (self.y, self.w))
                    yield Block(X, y, w, number, 0, start)
                number += n > 0
                start += n

    def _beside(self, batch: Any, what: Any, start: int, n: int) -> Any:
        names = _names(what)
        if not names:
            return labels_of(what, slice(start, start + n))
        columns = [_values(batch.column(name)) for name in names]
        return columns[0] if isinstance(what, str) else np.column_stack(columns)

    def n_blocks(self, block_rows: int) -> int:
        """Sum over row groups, none of which shares a block with the next."""
        return sum(math.ceil(n / block_rows) for n in self.rows)

    def partitions(self, n: int, block_rows: int) -> list[Source]:
        """One source per run of row groups."""
        step = math.ceil(len(self.fragments) / max(n, 1))
        begins = self.begin + np.cumsum([0, *self.rows])
        return [
            ParquetSource(
                self.fragments[a : a + step], self.features, self.y, self.w, int(begins[a])
            )
            for a in range(0, len(self.fragments), step)
        ]


def row_groups(dataset: Any) -> list[Any]:
    """Row groups of all files of a dataset; a fragment that has none as it is."""
    found: list[Any] = []
    for fragment in dataset.get_fragments():
        split = getattr(fragment, "split_by_row_group", None)
        found += split() if split else [fragment]
    return found


def count_rows(fragment: Any) -> int:
    # count_rows of a single row group answers for its whole file (pyarrow 26).
    groups = getattr(fragment, "row_groups", None)
    return fragment.count_rows() if groups is None else sum(group.num_rows for group in groups)


def _names(what: Any) -> list[str]:
    if isinstance(what, str):
        return [what]
    if isinstance(what, list | tuple) and what and all(isinstance(name, str) for name in what):
        return list(what)
    return []


def _values(column: Any) -> np.ndarray:
    """A column as numbers (nulls become NaN, which the fold refuses) or labels."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(column.type):
        values = column.flatten().to_numpy(zero_copy_only=False)  # without the missing lists
        values = values.reshape(-1, column.type.list_size)
        if column.null_count == 0:
            return values
        out = np.full((len(column), column.type.list_size), np.nan)
        out[column.is_valid().to_numpy(zero_copy_only=False)] = values
        return out
    return column.to_numpy(zero_copy_only=False)


# ---- SVMlight text ------------------------------------------------------------------------------

_INDEX = re.compile(rb"\s(\d+):")


class SvmlightSource(Source):
    """``label index:value …`` lines, streamed as CSR blocks.

    A first pass over the text finds the number of columns, whether indices begin at 0 or 1, and
    the number of rows. `n_features` saves it; indices then begin at 1, unless `zero_based`.
    """

    def __init__(
        self,
        path: Path,
        y: Any = None,
        w: Any = None,
        *,
        n_features: int | None = None,
        zero_based: bool = False,
        span: tuple[int, int] | None = None,
        begin: int = 0,
    ) -> None:
        self.path, self.y, self.w = path, y, w
        self.n_features, self.zero_based = n_features, zero_based
        self.span = span or (0, path.stat().st_size)
        self.begin = begin
        if n_features is None:
            self._scan()

    def _scan(self) -> None:
        low, high, rows = 1, 0, 0
        with open(self.path, "rb") as stream:
            while lines := stream.readlines(1 << 24):
                for line in lines:
                    text = line.split(b"#", 1)[0]
                    found = _INDEX.findall(text)
                    rows += bool(text.strip())
                    if found:
                        low, high = min(low, int(found[0])), max(high, int(found[-1]))
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
        first = self.zero_based or zero_based
        return SvmlightSource(self.path, self.y, self.w, n_features=n_features, zero_based=first)

    def files(self) -> list[Path] | None:
        return [self.path] if self.y is None and self.w is None else None

    def describe(self) -> str:
        return f"the SVMlight text {str(self.path)!r} of {self.n_features} features"

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        from sklearn.datasets import load_svmlight_file

        start = self.begin
        with open(self.path, "rb") as stream:
            stream.seek(self.span[0])
            lines = _lines(stream, self.span[1])
            for chunk in range(1 << 62):
                text = list(islice(lines, block_rows))
                if not text:
                    return
                if chunk >= skip:
                    X, labels = self._parse(load_svmlight_file, text, start)
                    rows = slice(start, start + len(text))
                    y = labels if self.y is None else labels_of(self.y, rows)
                    yield Block(sp.csr_array(X), y, labels_of(self.w, rows), chunk, 0, start)
                start += len(text)

    def _parse(self, load: Any, text: list[bytes], start: int) -> tuple[Any, np.ndarray]:
        try:
            X, labels = load(
                io.BytesIO(b"".join(text)),
                n_features=self.n_features,
                zero_based=self.zero_based,
            )
            _check_labels(labels, text)
        except (ValueError, OverflowError) as error:  # the latter: an index of more than 31 bits
            raise ValueError(
                f"{self.describe()}: rows {start} to {start + len(text)} cannot be read: {error}"
            ) from error
        return X, labels

    def partitions(self, n: int, block_rows: int) -> list[Source]:
        """Byte ranges that begin at every k-th block of lines (one pass finds them)."""
        cuts, count = [self.span[0]], 0
        with open(self.path, "rb") as stream:
            stream.seek(self.span[0])
            for _ in _lines(stream, self.span[1]):
                count += 1
                if count % block_rows == 0:
                    cuts.append(stream.tell())
        if cuts[-1] != self.span[1]:
            cuts.append(self.span[1])
        step = math.ceil((len(cuts) - 1) / max(n, 1))
        picked = list(range(0, len(cuts) - 1, step))
        return [
            SvmlightSource(
                self.path, self.y, self.w, n_features=self.n_features, zero_based=self.zero_based,
                span=(cuts[a], cuts[min(a + step, len(cuts) - 1)]),
                begin=self.begin + a * block_rows,
            )
            for a in picked
        ]  # fmt: skip


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
