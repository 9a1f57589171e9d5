"""The state of a fold in a file: the sums, the position, and what they belong to."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import storage
from ..data.sources import Block, Source
from ..exceptions import FileFormatError
from .composite import stats_from_state

__all__ = ["Checkpoint"]

KIND = "fold-checkpoint"


class Checkpoint:
    """Where a fold stands.

    The file holds the number of added blocks, their sums, the digest of the last added block and
    the identity of the fold (source, map, block size). To go on, the last added block is read once
    more and compared: a stream cannot be recognised otherwise, and a file may have been rewritten.
    Files are replaced atomically, so a kill leaves the state after some whole block.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        every: int,
        source: Source,
        stats: Any,
        block_rows: int,
        name: str,
    ) -> None:
        if every < 1:
            raise ValueError(f"{name}: checkpoint_every must be at least 1, got {every}")
        self.path = None if path is None else Path(path)
        self.every, self.source, self.stats = every, source, stats
        self.block_rows, self.name = block_rows, name
        self.position, self.done = 0, False
        self.last: Block | None = None

    def remaining(self) -> Iterator[Block]:
        """Take over what is in the file, if there is one; return the blocks still to be added."""
        if self.path is None or not self.path.exists():
            return self.source.blocks(self.block_rows)
        try:
            header, arrays = storage.read(self.path, KIND)
        except FileFormatError as error:
            raise FileFormatError(
                f"{self.name}: the checkpoint cannot be used: {error} Delete it to begin anew."
            ) from error
        self._compare("the fold", header["identity"], self._identity())
        self.position, self.done = header["position"], header["done"]
        blocks = self.source.blocks(self.block_rows, max(self.position - 1, 0))
        if self.position:
            self.last = next(blocks, None)
            found = None if self.last is None else _digest(self.last)
            self._compare("the last block", header["digest"], found)
        self.stats = stats_from_state(header["stats"], arrays)
        return blocks

    def added(self, block: Block) -> None:
        """Note that a block was added."""
        self.position += 1
        self.last = block
        if self.path is not None and self.position % self.every == 0:
            self._write(done=False)

    def finish(self) -> None:
        """Note that all blocks were added."""
        if self.path is not None:
            self._write(done=True)

    def _write(self, done: bool) -> None:
        header, arrays = self.stats.state()
        identity = self._identity()
        digest = None if self.last is None else _digest(self.last)
        content = {"identity": identity, "position": self.position, "digest": digest, "done": done}
        storage.write(self.path, KIND, content | {"stats": header}, arrays)

    def _identity(self) -> dict[str, Any]:
        return {
            "source": self.source.describe(),
            "statistics": _question(self.stats),
            "map": self.stats.tag,
            "block_rows": self.block_rows,
        }

    def _compare(self, what: str, stored: Any, found: Any) -> None:
        if stored == found:
            return
        if isinstance(stored, dict):
            differing = [f"{k}: {stored.get(k)!r}, now {v!r}" for k, v in found.items()
                         if stored.get(k) != v]  # fmt: skip
            detail = "; ".join(differing)
        else:
            detail = "the data before the stopping point are not the same"
        raise ValueError(
            f"{self.name}: the checkpoint {str(self.path)!r} belongs to another fold ({what} "
            f"differs: {detail}). Delete it to begin anew, or name another file."
        )


def _question(stats: Any) -> list[Any]:
    """What is summed, whatever was added so far: kinds, targets, given classes, parts."""
    parts = getattr(stats, "parts", [stats])
    given = [p.classes.tolist() if p.closed else None for p in parts[:1]]
    return [type(stats).__name__, len(parts), parts[0].target, *given]


def _digest(block: Block) -> str:
    h = hashlib.blake2b(digest_size=16)
    X = block.X
    arrays = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
    for array in [*arrays, block.y, block.w]:
        if array is not None:
            array = np.ascontiguousarray(array)
            h.update(str((array.shape, array.dtype.str)).encode())
            text = array.dtype.hasobject
            h.update(repr(array.tolist()).encode() if text else array.reshape(-1).view(np.uint8))
    return h.hexdigest()
