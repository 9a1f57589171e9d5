"""File suffixes that data are read from, and text files that may be compressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from .._util.arguments import needed

CSV = (".csv", ".tsv")


_OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": partial(pa.input_stream, compression="zstd"),
}
# A file may consist of several compressed parts, one after another.
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": partial(pa.compress, codec="zstd", asbytes=True),
}


def data_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix that tells the format, in small letters: ``.csv`` of ``a.csv.gz``."""
    path = Path(path)
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in _OPENERS else suffix


def is_csv(path: str | os.PathLike[str]) -> bool:
    """Whether a file is read as CSV or TSV, compressed or not."""
    return data_suffix(path) in CSV


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a file, or a folder of files, is read as Parquet."""
    suffix, path = data_suffix(path), Path(path)
    if suffix in (".parquet", ".pq"):
        return True
    return path.is_dir() and any(path.rglob("*.p*q*"))


def parquet_dataset(path: str | os.PathLike[str]) -> Any:
    """A Parquet file, or a folder of them, as a pyarrow dataset (which imports pandas)."""
    return needed("pyarrow.dataset").dataset(path, format="parquet")


def parquet_names(path: str | os.PathLike[str]) -> list[str]:
    """Names of the columns of a Parquet file, or of a folder of them."""
    if Path(path).is_file():  # without the module of datasets, which imports pandas
        return list(needed("pyarrow.parquet").read_schema(path).names)
    return list(parquet_dataset(path).schema.names)


class _Decompressed(io.RawIOBase):
    """Bytes of a compressed file; ValueError that names the file if it is damaged."""

    def __init__(self, path: str | os.PathLike[str], opener: Callable[[Any, str], Any]) -> None:
        self._path = os.fspath(path)
        self._stream = opener(os.fspath(path))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            if getattr(error, "errno", None) is not None:  # of the disk, not of the content
                raise
            suffix = Path(self._path).suffix
            raise ValueError(
                f"{self._path!r} is damaged, incomplete or no {suffix} file: {error}. Copy or "
                "compress it again."
            ) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_bytes(path: str | os.PathLike[str]) -> Any:
    """Open a file, which its suffix may say to be compressed, for its bytes; not a pipe."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        raise ValueError(
            f"{os.fspath(path)!r} is a pipe, and files are read more than once: write what comes "
            "through it to a file first."
        )
    opener = _OPENERS.get(Path(path).suffix.lower())
    if opener is None:
        return open(path, "rb")
    return io.BufferedReader(_Decompressed(path, opener), 1 << 16)


def uncompressed_bytes(path: str | os.PathLike[str], limit: int) -> int:
    """Bytes of a file, of a compressed one its content; counted until they exceed a limit."""
    if Path(path).suffix.lower() not in _OPENERS:
        return Path(path).stat().st_size
    total = 0
    with open_bytes(path) as stream:
        while total <= limit and (data := stream.read(1 << 20)):
            total += len(data)
    return total


def compressed(path: str | os.PathLike[str], parts: Iterable[bytes]) -> Iterable[bytes]:
    """The bytes of a file, compressed as its suffix says, some at a time; nothing is written."""
    compress = _COMPRESS.get(Path(path).suffix.lower())
    return parts if compress is None else map(compress, parts)


def open_text(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> io.TextIOBase:
    """Open a text file, which its suffix may say to be compressed, with line ends as they are.

    A compressed file that is damaged is refused with a ValueError while it is read.
    """
    if encoding == "utf-8":
        encoding = "utf-8-sig"  # spreadsheets write a byte-order mark
    file = open_bytes(path)
    try:
        return io.TextIOWrapper(file, encoding=encoding, newline="")
    except LookupError:  # no such encoding
        file.close()
        raise


def known_suffixes() -> str:
    """What files can be read, for messages."""
    return (
        f"Files with the suffixes {', '.join(CSV)} (also compressed: {', '.join(_OPENERS)}), "
        ".parquet, .pq and .npy are read. Others: read them with their own library, and pass "
        "arrays, chunks or a Dask array in Python."
    )
