"""Base of mergeable statistics: how blocks of any size are added, and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from .. import storage

BLOCK_ROWS = 8192  # longest float32 product: see "Precision" in the docstring of `moments`


class Statistics(ABC):
    """Sums over rows: `zero` and `merge` make them a monoid, `partial` are those of one block."""

    kind: ClassVar[str]  # of the file

    @abstractmethod
    def centre_on(self, Z: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Fix what the sums are taken about, from a first block."""

    @abstractmethod
    def partial(
        self, Z: Any, y: Any = None, sample_weight: Any = None, start: int = 0, *, own: bool = False
    ) -> Self:
        """Sums of one block."""

    @abstractmethod
    def merge(self, other: Any) -> Self:
        """Add the sums of other rows to these; returns self."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of a file."""

    def update(self, Z: Any, y: Any = None, sample_weight: Any = None, start: int = 0) -> Self:
        """Add a block of rows, in products of at most `BLOCK_ROWS` rows.

        The first of them is row number `start` of the whole.
        """
        self.centre_on(Z, y, sample_weight)
        for a in range(0, Z.shape[0], BLOCK_ROWS):
            rows = slice(a, a + BLOCK_ROWS)
            y_part, w_part = (None if v is None else v[rows] for v in (y, sample_weight))
            self.merge(self.partial(Z[rows], y_part, w_part, start + a))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file, atomically."""
        storage.write(path, self.kind, *self.state())
