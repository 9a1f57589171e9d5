"""File suffixes that data are read from, and text files that may be compressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from .._util.arguments import needed

CSV = (".csv", ".tsv")
SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".txt")
_ARRAYS = (".parquet", ".pq", ".npz", ".npy", ".h5", ".hdf5", ".zarr")


def _open_zstandard(file: str | os.PathLike[str] | IO[bytes], mode: str) -> IO[bytes]:
    try:  # Python 3.14 has its own
        return import_module("compression.zstd").open(file, mode)
    except ModuleNotFoundError:
        stream = needed("pyarrow")
        opened = stream.input_stream if mode == "rb" else stream.output_stream
        file = os.fspath(file) if isinstance(file, os.PathLike) else file
        return opened(file, compression="zstd")


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
        self._stream = opener(path, "rb")

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
    opener = _COMPRESSED.get(Path(path).suffix.lower())
    if opener is None:
        return open(path, "rb")
    return io.BufferedReader(_Decompressed(path, opener), 1 << 16)


def uncompressed_bytes(path: str | os.PathLike[str], limit: int) -> int:
    """Bytes of a file, of a compressed one its content; counted until they exceed a limit."""
    if Path(path).suffix.lower() not in _COMPRESSED:
        return Path(path).stat().st_size
    total = 0
    with open_bytes(path) as stream:
        while total <= limit and (data := stream.read(1 << 20)):
            total += len(data)
    return total


class _Collected(io.RawIOBase):
    """Collects the bytes that are written to it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def take(self) -> bytes:
        """The bytes since the last call, also after the stream was closed."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data


def compressed(path: str | os.PathLike[str], parts: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of a file, compressed as its suffix says, some at a time; nothing is written."""
    opener = _COMPRESSED.get(Path(path).suffix.lower())
    if opener is None:
        yield from parts
        return
    output = _Collected()
    with opener(output, "wb") as stream:
        for part in parts:
            stream.write(part)
            yield output.take()
    yield output.take()


def open_text(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> io.TextIOBase:
    """Open a text file, which its suffix may say to be compressed, with line ends as they are.

    Raises
    ------
    ModuleNotFoundError
        For ``.zst`` where neither Python nor pyarrow can read it.
    ValueError
        While it is read, if a compressed file is damaged.
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
    """All suffixes that data are read from, for messages."""
    return (
        f"{', '.join(CSV)} (also compressed: {', '.join(_COMPRESSED)}), {', '.join(_ARRAYS)} "
        f"and, for SVMlight text, {', '.join(SVMLIGHT)}"
    )
