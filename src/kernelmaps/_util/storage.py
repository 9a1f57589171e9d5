"""The file container of kernelmaps: a JSON header and plain arrays.

Layout of a file (all integers little-endian)::

    8 bytes   magic  b"KMAP\\x89\\r\\n\\x00"
    4 bytes   container version (uint32)
    8 bytes   length H of the header (uint64)
    32 bytes  SHA-256 of everything that follows
    H bytes   UTF-8 JSON {"kind", "header", "arrays": [{name, dtype, shape, offset}]}
    ...       the arrays' bytes, C order, each aligned to 64 bytes

Reading never executes what is in a file: only numeric arrays and JSON are understood. Every size
that a file declares is compared with its length before anything is allocated, every array has bytes
of its own, and the header is nested `DEEPEST` levels deep at most; anything else raises
`FileFormatError`.

Writing goes to a temporary name next to the target and is moved into place, so that an interrupted
or failed write (a full disk, say) leaves an older file as it was. The target keeps its permissions,
and a symbolic link keeps pointing to the file that is replaced. A pipe or a terminal is written
to, never replaced; folders are not created.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import shutil
import stat
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..exceptions import FileFormatError
from .arguments import with_parameter

AnyPath = str | os.PathLike[str]
Content = tuple[dict[str, Any], dict[str, np.ndarray]]  # header and arrays
MAGIC = b"KMAP\x89\r\n\x00"
VERSION = 1
_PREFIX = struct.Struct("<8sIQ32s")
_ALIGN = 64
_KINDS_OF_DTYPE = "biuf"  # bool, signed, unsigned, float: nothing that could hold an object
_STORED_DTYPES = {"|b1", *(f"|{kind}1" for kind in "iu"), *(f"<{kind}{n}" for kind in "iuf"
                  for n in (2, 4, 8) )}  # fmt: skip
DEEPEST = 64
"""Levels of lists and dictionaries in a header, at most."""


def to_bytes(kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Serialise a header and named arrays; equal content gives equal bytes."""
    head_length, body = _payload(kind, header, arrays)
    return _PREFIX.pack(MAGIC, VERSION, head_length, hashlib.sha256(body).digest()) + body


def from_bytes(data: bytes, kind: str | None = None, *, source: str = "the data") -> Content:
    """Inverse of :func:`to_bytes`; the arrays are read-only views.

    Raises
    ------
    FileFormatError
        If the data are not a kernelmaps container, are truncated or damaged, come from a newer
        version, or hold another kind of thing than `kind`.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise FileFormatError(
            f"{source} is not a kernelmaps file: it does not begin with the KMAP signature."
        )
    if len(data) < _PREFIX.size:
        raise FileFormatError(
            f"{source} is truncated ({len(data)} bytes found). Restore it or write it again."
        )
    _, version, head_length, expected = _PREFIX.unpack_from(data)
    if version > VERSION:
        raise FileFormatError(
            f"{source} has container version {version}; this kernelmaps reads up to {VERSION}. "
            "Upgrade kernelmaps to read it."
        )
    body = memoryview(data)[_PREFIX.size :]
    if hashlib.sha256(body).digest() != expected:
        raise FileFormatError(
            f"{source} is damaged: its content does not match its checksum "
            f"({len(data)} bytes found). Restore it from a copy or write it again."
        )
    try:
        stored_kind, header, table = _read_head(body, head_length)
        arrays = _read_arrays(body, _align(head_length), table)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise FileFormatError(f"{source} has an unreadable header: {error}") from error
    if kind is not None and stored_kind != kind:
        raise FileFormatError(f"{source} holds a {stored_kind!r}, not a {kind!r}.")
    return {**header, "kind": stored_kind}, arrays


def write(
    path: AnyPath, kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write a container atomically: the target is either the old file or the whole new one."""
    write_file(path, to_bytes(kind, header, arrays))


def write_json(path: AnyPath, values: dict[str, Any]) -> None:
    """Write plain values as JSON; an older file is replaced only by a complete one."""
    text = json.dumps(values, indent=1, ensure_ascii=False)
    write_file(path, (text + "\n").encode())


def write_file(path: AnyPath, data: bytes | Iterable[bytes]) -> None:
    """Write bytes, or parts of them, to a temporary name and move it into place.

    On failure nothing has changed. An existing file keeps its permissions; a symbolic link is
    followed. A pipe or a character device (``/dev/null``) is written to; a folder, a socket, a
    disk, and a file in a folder that does not exist are refused.
    """
    parts = [data] if isinstance(data, bytes | bytearray | memoryview) else data
    shown, target = repr(os.fspath(path)), Path(os.path.realpath(path))
    if not os.fspath(path):
        raise FileNotFoundError("the path is empty: name a file to write to.")
    # The path itself is looked at: ``/dev/stdout`` may lead to a pipe that has no other name.
    mode = os.stat(path).st_mode if os.path.exists(path) else stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{shown} is a folder: name a file in it.")
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        with open(path, "wb") as stream:
            stream.writelines(parts)
        return
    if not stat.S_ISREG(mode):
        raise OSError(f"{shown} is a socket or a disk, which is neither written to nor replaced.")
    if not target.parent.is_dir():
        folder = str(target.parent)
        raise FileNotFoundError(
            f"{shown} cannot be written: there is no folder {folder!r}. Create it first."
        )
    # Of at most 160 bytes, in any script, and some letters: names of files have 255.
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            with contextlib.suppress(FileNotFoundError):  # a new file keeps those it has
                shutil.copymode(target, temporary)  # before anything is in it: it may be private
            stream.writelines(parts)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: AnyPath, kind: str | None = None) -> Content:
    """Read a container written by :func:`write`; ``header["kind"]`` says what it holds."""
    return from_bytes(Path(path).read_bytes(), kind, source=f"{os.fspath(path)!r}")


def digest(kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Content hash: equal for equal content, whatever the order of the keys."""
    return hashlib.sha256(_payload(kind, header, arrays)[1]).hexdigest()


def _payload(
    kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[int, bytes]:
    table, chunks, offset = [], [], 0
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        if array.dtype.kind not in _KINDS_OF_DTYPE:
            raise TypeError(
                f"array {name!r} has dtype {array.dtype}; only bool, integer and float arrays "
                "can be stored"
            )
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        table.append(
            {"name": name, "dtype": little.dtype.str, "shape": array.shape, "offset": offset}
        )
        chunks.append(little.tobytes())
        padding = -len(chunks[-1]) % _ALIGN
        chunks.append(b"\x00" * padding)
        offset += little.nbytes + padding
    head = json.dumps(
        {"kind": kind, "header": dict(header), "arrays": table}, sort_keys=True, allow_nan=True
    ).encode()
    return len(head), b"".join([head, b" " * (_align(len(head)) - len(head)), *chunks])


def _read_head(body: memoryview, length: int) -> tuple[str, dict[str, Any], list[Any]]:
    """Kind, header and list of arrays; ValueError or KeyError if they are not what they should."""
    if length > len(body):
        raise ValueError(f"it declares {length} bytes, but {len(body)} were found")
    head = json.loads(bytes(body[:length]))
    if not isinstance(head, dict):
        raise ValueError("it is not a dictionary")
    kind, header, table = head["kind"], head["header"], head["arrays"]
    if not (isinstance(kind, str) and isinstance(header, dict) and isinstance(table, list)):
        raise ValueError("'kind', 'header' or 'arrays' has the wrong type")
    _check_depth(head)
    return kind, header, table


def _check_depth(node: Any, level: int = 0) -> None:
    if level > DEEPEST:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    if isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            _check_depth(item, level + 1)


def _read_arrays(body: memoryview, base: int, table: list[Any]) -> dict[str, np.ndarray]:
    """Read-only views of one aligned copy of the arrays' bytes."""
    available, places = max(len(body) - base, 0), []
    for item in table:
        name, dtype, shape, begin = (item[key] for key in ("name", "dtype", "shape", "offset"))
        if not isinstance(name, str) or not isinstance(shape, list) or len(shape) > 32:
            raise ValueError("an array has a malformed name or shape")
        if dtype not in _STORED_DTYPES:
            raise ValueError(f"array {name!r} has the unsupported dtype {dtype!r}")
        are_sizes = all(type(size) is int and 0 <= size <= 2**62 for size in (*shape, begin))
        size = math.prod(shape) * np.dtype(dtype).itemsize if are_sizes else 0
        if not are_sizes or begin + size > available:
            raise ValueError(f"array {name!r} is declared larger than the file")
        places.append((begin, begin + size, name, dtype, shape))
    last = 0
    for begin, end, name, *_ in sorted(places, key=lambda place: place[:2]):
        if end > begin and begin < last:
            raise ValueError(f"array {name!r} overlaps another one")
        last = max(last, end)
    if len({place[2] for place in places}) < len(places):
        raise ValueError("two arrays have the same name")
    # Compiled loops want aligned arrays; a file's own bytes begin anywhere.
    raw = np.empty(available + _ALIGN, np.uint8)
    start = -raw.ctypes.data % _ALIGN
    raw[start : start + available] = np.frombuffer(body, np.uint8)[base:]
    raw.setflags(write=False)
    return {
        name: raw[start + begin : start + end].view(dtype).reshape(shape)
        for begin, end, name, dtype, shape in places
    }


def _align(length: int) -> int:
    # The body follows a 52-byte prefix; aligning within the body is enough for numpy views.
    return length + (-length % _ALIGN)


Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(method: Method) -> Method:
    """Leave the attributes as they were if the method ends by an error or by Ctrl-C.

    An estimator whose `fit` is interrupted would otherwise keep, say, the new map next to the old
    weights. The method must set attributes, not change their values in place. An error that a
    parameter of a wrong kind led to names that parameter.
    """

    @wraps(method)
    def wrapper(self: Any, *arguments: Any, **options: Any) -> Any:
        before = dict(self.__dict__)
        try:
            return method(self, *arguments, **options)
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            named = with_parameter(self, error) if isinstance(error, Exception) else error
            if named is error:
                raise
            raise named from error

    return wrapper  # type: ignore[return-value]
