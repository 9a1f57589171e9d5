"""One container for everything that kernelmaps writes: a JSON header and plain arrays.

Layout of a file (all integers little-endian)::

    8 bytes   magic  b"KMAP\\x89\\r\\n\\x00"
    4 bytes   container version (uint32)
    8 bytes   length H of the header (uint64)
    32 bytes  SHA-256 of everything that follows
    H bytes   UTF-8 JSON {"kind", "header", "arrays": [{name, dtype, shape, offset}]}
    ...       the arrays' bytes, C order, each aligned to 64 bytes

Reading never executes what is in a file: only numeric arrays and JSON are understood. Writing goes
to a temporary name beside the target and is moved into place, so that an interrupted or failed
write (a full disk, say) leaves an older file as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .exceptions import FileFormatError

__all__ = ["VERSION", "digest", "from_bytes", "read", "to_bytes", "write", "write_file"]

MAGIC = b"KMAP\x89\r\n\x00"
VERSION = 1
_PREFIX = struct.Struct("<8sIQ32s")
_ALIGN = 64
_KINDS_OF_DTYPE = "biuf"  # bool, signed, unsigned, float: nothing that could hold an object


def to_bytes(kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Serialise a header and named arrays; equal content gives equal bytes."""
    payload = _payload(kind, header, arrays)
    head_length, body = payload
    return _PREFIX.pack(MAGIC, VERSION, head_length, hashlib.sha256(body).digest()) + body


def from_bytes(
    data: bytes, kind: str | None = None, *, source: str = "the data"
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Inverse of :func:`to_bytes`; the arrays are read-only views.

    Raises
    ------
    FileFormatError
        If the data are not a kernelmaps container, are truncated or damaged, come from a newer
        version, or hold another kind of thing than `kind`.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise FileFormatError(
            f"{source} is not a kernelmaps file (it does not begin with the KMAP signature). "
            "Was it written by another program, or as a pickle?"
        )
    if len(data) < _PREFIX.size:
        raise FileFormatError(
            f"{source} is truncated ({len(data)} bytes found). Restore it from a copy or write it "
            "again."
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
        head = json.loads(bytes(body[:head_length]))
        found, header, table = head["kind"], head["header"], head["arrays"]
        base = _aligned(head_length)
        arrays = {item["name"]: _array(body, base, item) for item in table}
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{source} has an unreadable header: {error}") from error
    if kind is not None and found != kind:
        raise FileFormatError(f"{source} holds a {found!r}, not a {kind!r}.")
    return {"kind": found, **header}, arrays


def write(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Write a container atomically: the target is either the old file or the whole new one."""
    write_file(path, to_bytes(kind, header, arrays))


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write bytes to a temporary name and move it into place; on failure nothing has changed."""
    target = Path(path)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent or ".")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(
    path: str | os.PathLike[str], kind: str | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
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
    return len(head), b"".join([head, b" " * (_aligned(len(head)) - len(head)), *chunks])


def _array(body: memoryview, base: int, item: Mapping[str, Any]) -> np.ndarray:
    dtype = np.dtype(item["dtype"])
    if dtype.kind not in _KINDS_OF_DTYPE:
        raise ValueError(f"array {item['name']!r} has the unsupported dtype {dtype}")
    shape = tuple(int(size) for size in item["shape"])
    count = int(np.prod(shape, dtype=np.int64))
    flat = np.frombuffer(body, dtype=dtype, count=count, offset=base + int(item["offset"]))
    return flat.reshape(shape)


def _aligned(length: int) -> int:
    # The body follows a 52-byte prefix; aligning within the body is enough for numpy views.
    return length + (-length % _ALIGN)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
