"""Checkpoints of a fold: sums, position, and digests of the rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._util import storage
from .._util.devices import to_host
from .._util.schema import Check, SchemaError, check_entries, instance, optional, text
from ..data.sources import Block, Source
from ..exceptions import FileFormatError
from .composite import stats_from_state

KIND = "fold-checkpoint"
DIGESTS, DIGEST_BYTES = "digests of blocks", 16
SAMPLES = 8  # blocks that stand for all where the files are as they were
_ENTRIES: dict[str, Check] = {
    "identity": instance((dict,)), "stats": instance((dict,)), "files": optional(instance((list,)))
}  # fmt: skip


@dataclass
class Checkpoint:
    """Where a fold stands.

    The file holds the sums, the digest of every added block, the identity of the fold (source,
    map, block size), and size and times of the files that the rows came from. To go on, the added
    blocks are read once more and compared, all of them, because any row may have been changed
    since. Where the rows come from files that were not touched, a few blocks stand for all.
    Files are replaced atomically, so a kill leaves the state after some whole block.
    """

    path: Path | None
    every: int
    source: Source
    stats: Any
    block_rows: int
    name: str
    digests: list[bytes] = field(default_factory=list)
    written: int | None = None  # blocks whose sums are in the file

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"{self.name}: checkpoint_every must be at least 1, got {self.every}")
        # Taken before the first row is read: a file that changes meanwhile is then noticed.
        self.files = None if self.path is None else _states(self.source.files())

    @property
    def position(self) -> int:
        """Number of added blocks."""
        return len(self.digests)

    def remaining(self) -> Iterator[Block]:
        """Take over what is in the file, if there is one; return the blocks still to be added."""
        if self.path is None or not self.path.exists():
            return self.source.blocks(self.block_rows)
        try:
            header, arrays = storage.read(self.path, KIND)
            check_entries(header, _ENTRIES, {"kind": text((KIND,))}, "the checkpoint")
            digests = _stored_digests(arrays.pop(DIGESTS, None))
        except (FileFormatError, SchemaError) as error:
            raise FileFormatError(
                f"{self.name}: the checkpoint cannot be used: {error} Delete it to start again."
            ) from error
        self._check_identity(header["identity"])
        untouched = self.files is not None and header["files"] == self.files
        blocks = self._after(digests, sampled=untouched)
        self.stats = stats_from_state(header["stats"], arrays)
        self.digests, self.written = digests, len(digests)
        return blocks

    def added(self, block: Block) -> None:
        """Note that a block was added."""
        if self.path is None:
            return
        self.digests.append(_digest(block))
        if self.position % self.every == 0:
            self._write(self.path)

    def finish(self) -> None:
        """Note that all blocks were added."""
        if self.path is not None and self.written != self.position:
            self._write(self.path)

    def _write(self, path: Path) -> None:
        header, arrays = self.stats.state()
        content = {"identity": self._identity(), "files": self.files, "stats": header}
        digests = np.frombuffer(b"".join(self.digests), np.uint8).reshape(-1, DIGEST_BYTES)
        storage.write(path, KIND, content, arrays | {DIGESTS: digests})
        self.written = self.position

    def _after(self, digests: list[bytes], sampled: bool) -> Iterator[Block]:
        """Blocks behind those of the checkpoint, which are compared with what is read now."""
        if not digests:
            return self.source.blocks(self.block_rows)
        last = len(digests) - 1
        for number in {last * k // SAMPLES for k in range(SAMPLES)} - {last} if sampled else ():
            block = next(self.source.blocks(self.block_rows, number), None)
            self._check_block(block, digests, number)
        first = last if sampled else 0
        blocks = self.source.blocks(self.block_rows, first)
        for number in range(first, last + 1):
            self._check_block(next(blocks, None), digests, number)
        return blocks

    def _check_block(self, block: Block | None, digests: list[bytes], number: int) -> None:
        if block is None:
            fault = f"the data end before block {number}, and {len(digests)} blocks were added"
        elif _digest(block) != digests[number]:
            stop = block.start + block.X.shape[0]
            fault = f"rows {block.start} to {stop} are not those that were added"
        else:
            return
        raise self._refusal(fault)

    def _identity(self) -> dict[str, Any]:
        return {
            "source": self.source.describe(),
            "statistics": _question(self.stats),
            "map": self.stats.tag,
            "block_rows": self.block_rows,
        }

    def _check_identity(self, stored: dict[str, Any]) -> None:
        identity = self._identity()
        differing = [key for key in identity if stored.get(key) != identity[key]]
        if differing:
            words = [f"{key}: {stored.get(key)!r}, now {identity[key]!r}" for key in differing]
            raise self._refusal("; ".join(words))

    def _refusal(self, fault: str) -> ValueError:
        return ValueError(
            f"{self.name}: the checkpoint {str(self.path)!r} belongs to another fold ({fault}). "
            "Delete it to start again, or name another file."
        )


def _states(files: list[Path] | None) -> list[list[Any]] | None:
    """What changes when a file does; the time of its inode cannot be set back."""
    if files is None:
        return None
    states = [(str(path), path.stat()) for path in files]
    return [[path, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino] for path, s in states]


def _stored_digests(array: np.ndarray | None) -> list[bytes]:
    if array is None:
        raise FileFormatError("it was written by an earlier version, without digests of its rows.")
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != DIGEST_BYTES:
        raise FileFormatError(f"its digests have the shape {array.shape} and type {array.dtype}.")
    return [row.tobytes() for row in array]


def _question(stats: Any) -> list[Any]:
    """What is summed, whatever was added so far: kinds, targets, given classes, parts."""
    parts = getattr(stats, "parts", [stats])
    classes = [p.classes.tolist() if p.closed else None for p in parts[:1]]
    return [type(stats).__name__, len(parts), parts[0].target, *classes]


def _digest(block: Block) -> bytes:
    h = hashlib.blake2b(digest_size=DIGEST_BYTES)
    X = block.X
    arrays = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
    for array in [*arrays, block.y, block.w]:
        if array is not None:
            array = np.ascontiguousarray(to_host(array))  # a block of a tensor is copied for it
            h.update(str((array.shape, array.dtype.str)).encode())
            text = array.dtype.hasobject
            h.update(repr(array.tolist()).encode() if text else array.reshape(-1).view(np.uint8))
    return h.digest()
