"""Base of mergeable statistics: how blocks of any size are added, and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from .. import storage

BLOCK_ROWS = 8192  # longest float32 product: see "Precision" in the docstring of `moments`


class Statistics(ABC):
    """Sums over rows: `zero` and `merge` make them a monoid, `partial` are those of one block."""

    kind: ClassVar[str]  # of the file

    @abstractmethod
    def zero(self) -> Self:
        """Return the neutral element that merges with this one; it shares the shift.

        Returns
        -------
        Self
            Sums of no rows.
        """

    @abstractmethod
    def copy(self) -> Self:
        """Return an independent copy.

        Returns
        -------
        Self
            The same sums.
        """

    @abstractmethod
    def centre_on(self, Z: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Fix what the sums are taken about, from a first block.

        Parameters
        ----------
        Z : ndarray, tensor or sparse array of shape (B, D)
            Features; float32 is multiplied as float32.
        y : array-like of shape (B,) or (B, t), optional
            Targets.
        sample_weight : array-like of shape (B,), optional
            Weights; 1 by default.
        """

    @abstractmethod
    def partial(
        self, Z: Any, y: Any = None, sample_weight: Any = None, start: int = 0, *, own: bool = False
    ) -> Self:
        """Return the sums of one block about the shift; nothing changes here (thread-safe).

        Parameters
        ----------
        Z : ndarray, tensor or sparse array of shape (B, D)
            Features; float32 is multiplied as float32.
        y : array-like of shape (B,) or (B, t), optional
            Targets.
        sample_weight : array-like of shape (B,), optional
            Weights; 1 by default.
        start : int
            Number of the block's first row in the whole (used where rows are split).
        own : bool
            Whether Z may be overwritten.

        Returns
        -------
        Self
            Sums of these rows alone.
        """

    @abstractmethod
    def merge(self, other: Any) -> Self:
        """Add the sums of other rows to these.

        Parameters
        ----------
        other : Self
            Sums of the same kind; they stay as they are.

        Returns
        -------
        Self
            This object, changed.
        """

    @abstractmethod
    def on_host(self) -> Self:
        """Bring sums that lie on a card back.

        Returns
        -------
        Self
            This object, changed.
        """

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what a file holds.

        Returns
        -------
        header : dict
            What JSON can hold.
        arrays : dict of str to ndarray
            Sums; of symmetric matrices the lower triangle.
        """

    @classmethod
    @abstractmethod
    def from_state(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Make the sums that `state` described.

        Parameters
        ----------
        header : mapping
            The header.
        arrays : mapping of str to ndarray
            The arrays.

        Returns
        -------
        Self
            The same sums.
        """

    def update(self, Z: Any, y: Any = None, sample_weight: Any = None, start: int = 0) -> Self:
        """Add a block of rows, in products of at most `BLOCK_ROWS` rows.

        Parameters
        ----------
        Z : ndarray, tensor or sparse array of shape (B, D)
            Features; float32 is multiplied as float32.
        y : array-like of shape (B,) or (B, t), optional
            Targets.
        sample_weight : array-like of shape (B,), optional
            Weights; 1 by default.
        start : int
            Number of the block's first row in the whole (used where rows are split).

        Returns
        -------
        Self
            This object, changed.
        """
        self.centre_on(Z, y, sample_weight)
        for a in range(0, Z.shape[0], BLOCK_ROWS):
            rows = slice(a, a + BLOCK_ROWS)
            y_part, w_part = (None if v is None else v[rows] for v in (y, sample_weight))
            self.merge(self.partial(Z[rows], y_part, w_part, start + a))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file, atomically.

        Parameters
        ----------
        path : path
            Where to write it.
        """
        storage.write(path, self.kind, *self.state())
