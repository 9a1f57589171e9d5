"""Files of compiled code that are read only if they are whole; others are compiled again.

numba unpickles what is in its cache and ends in whatever error that gives. Here every file begins
with a digest of the rest, and code says which signature and source it is of. What is damaged or of
another user is compiled again, what cannot be written is left unwritten, and one line says so.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

_DIGEST_BYTES = 32
_reported: set[str] = set()


class CheckedFiles(IndexDataCacheFile):
    """The index and the code of one function, as numba keeps them, with digests."""

    def save(self, key: Any, data: Any) -> None:
        """Write the code of a signature."""
        super().save(key, (self._owner(key), data))

    def load(self, key: Any) -> Any:
        """Read the code of a signature; None if there is none, or it is damaged or of another."""
        owner, data = super().load(key) or (None, None)
        return data if owner == self._owner(key) else None

    def _owner(self, key: Any) -> tuple[Any, ...]:
        # A writer that was killed between its two files leaves an index that names older code.
        return self._version, self._source_stamp, key

    def _load_index(self) -> dict[Any, str]:
        try:
            version, index = self._read(self._index_path)
            if version != self._version:  # before the rest, which may name what is gone
                return {}
            stamp, names = _unpickled_pair(self._index_path, index)
            _require(isinstance(names, dict), self._index_path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            _report_unusable("read", error)
            return {}
        return names if stamp == self._source_stamp else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        index = self._dump((self._source_stamp, overloads))
        self._write(self._index_path, (self._version, index))

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        try:
            owner, data = self._read(path)
            _require(isinstance(data, tuple), path)
        except OSError as error:  # which numba takes for a missing file
            _report_unusable("read", error)
            raise
        return owner, data

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _read(self, path: str) -> tuple[Any, Any]:
        """The pair that `_write` wrote; OSError if it is damaged."""
        content = Path(path).read_bytes()
        digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        _require(digest == _digest(code), path)
        return _unpickled_pair(path, code)

    def _write(self, path: str, content: tuple[Any, Any]) -> None:
        code = self._dump(content)
        with self._open_for_write(path) as stream:
            stream.write(_digest(code) + code)


def check_files(cache: Any, stamp: str) -> None:
    """Let numba's cache of a function read whole files only, of this `stamp` of the library."""
    numbas = cache._cache_file
    base = numbas._index_name.removesuffix(".nbi")
    checked = CheckedFiles(numbas._cache_path, base, numbas._source_stamp)
    checked._version += f", {stamp}"  # numba compares its version and the function's own file alone
    cache._cache_file = checked
    cache._guard_against_spurious_io_errors = _without_io_errors


@contextmanager
def _without_io_errors() -> Iterator[None]:
    """Compile, or go on without writing, where files cannot be read or written."""
    try:
        yield
    except OSError as error:
        _report_unusable("read or written", error)


def _unpickled_pair(path: str, code: Any) -> tuple[Any, Any]:
    """The two parts of pickled content; OSError if they cannot be read."""
    try:
        first, second = pickle.loads(code)
    except Exception as error:  # a right digest says nothing about the modules that a pickle names
        raise OSError(f"{path} is damaged") from error
    return first, second


def _require(is_whole: bool, path: str) -> None:
    if not is_whole:
        raise OSError(f"{path} is damaged")


def _digest(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=_DIGEST_BYTES).digest()


def _report_unusable(how: str, error: Exception) -> None:
    """One line in a process for each way to fail."""
    if how not in _reported:
        _reported.add(how)
        print(
            f"kernelmaps: some compiled code on disk cannot be {how} "
            f"({type(error).__name__}: {error}); it is compiled again.",
            file=sys.stderr,
        )
