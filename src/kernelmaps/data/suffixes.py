"""File suffixes that data are read from, and text files that may be compressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from ..extras import needed

CSV = (".csv", ".tsv")
SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".txt")
_ARRAYS = (".parquet", ".pq", ".npz", ".npy", ".h5", ".hdf5", ".zarr")


def _open_zstandard(path: str | os.PathLike[str], mode: str) -> IO[bytes]:
    try:  # Python 3.14 has its own
        return import_module("compression.zstd").open(path, mode)
    except ModuleNotFoundError:
        stream = needed("pyarrow")
        opened = stream.input_stream if mode == "rb" else stream.output_stream
        return opened(os.fspath(path), compression="zstd")


_COMPRESSED: dict[str, Callable[[Any, str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstandard,
}


def data_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix that tells the format, in small letters: ``.csv`` of ``a.csv.gz``."""
    path = Path(path)
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in _COMPRESSED else suffix


def is_csv(path: str | os.PathLike[str]) -> bool:
    """Whether a file is read as CSV or TSV, compressed or not."""
    return data_suffix(path) in CSV


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a file, or a folder of files, is read as Parquet."""
    suffix, path = data_suffix(path), Path(path)
    if suffix in (".parquet", ".pq"):
        return True
    return suffix != ".zarr" and path.is_dir() and any(path.rglob("*.p*q*"))


def parquet_dataset(path: str | os.PathLike[str]) -> Any:
    """A Parquet file, or a folder of them, as a pyarrow dataset."""
    return needed("pyarrow.dataset").dataset(path, format="parquet")


def open_bytes(path: str | os.PathLike[str]) -> Any:
    """Open a file, which its suffix may say to be compressed, for its bytes."""
    opener = _COMPRESSED.get(Path(path).suffix.lower())
    return open(path, "rb") if opener is None else opener(path, "rb")


def open_text(
    path: str | os.PathLike[str], *, write: bool = False, encoding: str = "utf-8"
) -> io.TextIOBase:
    """Open a text file, which its suffix may say to be compressed, with line ends as they are.

    Raises
    ------
    ModuleNotFoundError
        For ``.zst`` where neither Python nor pyarrow can read it.
    """
    if encoding == "utf-8" and not write:
        encoding = "utf-8-sig"  # spreadsheets write a byte-order mark
    opener = _COMPRESSED.get(Path(path).suffix.lower())
    if opener is None:
        return open(path, "w" if write else "r", newline="", encoding=encoding)
    stream: Any = opener(path, "wb" if write else "rb")
    return io.TextIOWrapper(stream, encoding=encoding, newline="")


def known_suffixes() -> str:
    """All suffixes that data are read from, for messages."""
    compressed = ", ".join(_COMPRESSED)
    return (
        f"{', '.join(CSV)} (also compressed: {compressed}), {', '.join(_ARRAYS)} and, for "
        f"SVMlight text, {', '.join(SVMLIGHT)}"
    )
