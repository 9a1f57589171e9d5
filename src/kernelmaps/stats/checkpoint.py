"""Checkpoints of a fold: its sums, and how far it came."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._util import storage
from .._util.devices import to_host
from .._util.schema import Check, SchemaError, check_entries, instance, integer, text
from ..data.sources import Block, Source
from ..exceptions import FileFormatError
from .composite import stats_from_state

KIND = "fold-checkpoint"
_ENTRIES: dict[str, Check] = {
    "kind": text((KIND,)), "identity": instance((dict,)), "stats": instance((dict,)),
    "position": integer(), "digest": text(),
}  # fmt: skip


@dataclass
class Checkpoint:
    """Where a fold stands.

    The file holds the sums, the number of blocks that were added, a digest of their rows, and the
    identity of the fold (source, map, block size). To go on, these blocks are read once more, and
    their digest is compared, because any row may have been changed since. Files are replaced
    atomically, so a kill leaves the state after some whole block.
    """

    path: Path | None
    every: int
    source: Source
    stats: Any
    block_rows: int
    name: str
    position: int = 0  # blocks that were added

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"{self.name}: checkpoint_every must be at least 1, got {self.every}")
        self._digest = hashlib.blake2b(digest_size=16)

    def remaining(self) -> Iterator[Block]:
        """Take over what is in the file, if there is one; return the blocks still to be added."""
        blocks = self.source.blocks(self.block_rows)
        if self.path is None or not self.path.exists():
            return blocks
        try:
            header, arrays = storage.read(self.path, KIND)
            check_entries(header, _ENTRIES, {}, "the checkpoint")
            stats = stats_from_state(header["stats"], arrays)
        except (FileFormatError, SchemaError) as error:
            raise FileFormatError(
                f"{self.name}: the checkpoint cannot be used: {error} Delete it to start again."
            ) from error
        identity, stored = self._identity(), header["identity"]
        differing = [key for key in identity if stored.get(key) != identity[key]]
        words = [f"{key}: {stored.get(key)!r}, now {identity[key]!r}" for key in differing]
        while not words and self.position < header["position"]:
            block = next(blocks, None)
            if block is None:
                words = [f"the data end after {self.position} of {header['position']} blocks"]
            else:
                self._note(block)
        if not words and self._digest.hexdigest() != header["digest"]:
            words = [f"the first {self.position} blocks have other rows"]
        if words:
            raise ValueError(
                f"{self.name}: the checkpoint {str(self.path)!r} belongs to another fold "
                f"({'; '.join(words)}). Delete it to start again, or name another file."
            )
        self.stats = stats
        return blocks

    def added(self, block: Block) -> None:
        """Note that a block was added."""
        if self.path is not None:
            self._note(block)
            if self.position % self.every == 0:
                self._write(self.path)

    def finish(self) -> None:
        """Note that all blocks were added."""
        if self.path is not None and self.position % self.every:
            self._write(self.path)

    def _write(self, path: Path) -> None:
        header, arrays = self.stats.state()
        content = {"identity": self._identity(), "stats": header, "position": self.position}
        storage.write(path, KIND, content | {"digest": self._digest.hexdigest()}, arrays)

    def _note(self, block: Block) -> None:
        X = block.X
        arrays = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
        for array in [*arrays, block.y, block.w]:
            if array is not None:
                array = np.ascontiguousarray(to_host(array))  # of a tensor, a copy
                self._digest.update(str((array.shape, array.dtype.str)).encode())
                objects = repr(array.tolist()).encode() if array.dtype.hasobject else None
                self._digest.update(objects or array.reshape(-1).view(np.uint8))
        self.position += 1

    def _identity(self) -> dict[str, Any]:
        """The fold, and what is summed, whatever was added so far."""
        parts = getattr(self.stats, "parts", [self.stats])
        classes = parts[0].classes.tolist() if parts[0].closed else None
        return {
            "source": self.source.describe(),
            "statistics": [type(self.stats).__name__, len(parts), parts[0].target, classes],
            "map": self.stats.tag,
            "block_rows": self.block_rows,
        }
