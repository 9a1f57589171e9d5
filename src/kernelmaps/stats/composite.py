"""Several moments at once: per group of columns (kernels) or of rows (folds).

A tuple of monoids is a monoid, so these have the same methods as `Moments` and use the same
fold, the same checkpoint and the same tree reduction.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from .._util import storage
from .._util.schema import SchemaError, State, instance, integer, many
from .._util.threads import mixed_bits
from .moments import Moments, Statistics


class _Composite(Statistics):
    """Base of the tuples of moments: subclasses say how a block is split."""

    _state: ClassVar[State] = State({"parts": many(instance((Moments,)), least=1)})
    widths: Sequence[int] = ()  # of groups of columns, where these are what is split

    def _check_state(self) -> None:
        """Raise SchemaError if the parts do not belong together."""
        if len({moments.target for moments in self.parts}) > 1:
            raise SchemaError(f"{type(self).__name__}: parts have different targets")

    def __init__(self, parts: Sequence[Moments], widths: Sequence[int] = ()) -> None:
        self.parts, self.widths = list(parts), [int(width) for width in widths]

    def _split(self, Z: Any, y: Any, w: Any, start: int) -> list[tuple[Any, Any, Any]]:
        raise NotImplementedError

    @property
    def tag(self) -> str:
        """Content hash of the map that made the features."""
        return self.parts[0].tag

    @property
    def n(self) -> int:
        """Rows of positive weight."""
        return self.parts[0].n

    @property
    def shift(self) -> np.ndarray | None:
        """What the sums are about, a number for each feature; None before the first row."""
        return self.parts[0].shift

    def zero(self) -> Self:
        return type(self)([moments.zero() for moments in self.parts], self.widths)

    def centre_on(self, Z: Any, y: Any = None, sample_weight: Any = None) -> None:
        for moments, block in zip(self.parts, self._split(Z, y, sample_weight, 0)):
            moments.centre_on(*block)

    def partial(self, Z: Any, y: Any = None, sample_weight: Any = None, start: int = 0) -> Self:
        blocks = self._split(Z, y, sample_weight, start)
        parts = [moments.partial(*block) for moments, block in zip(self.parts, blocks)]
        return type(self)(parts, self.widths)

    def merge(self, other: Self) -> Self:
        if type(self) is not type(other) or len(self.parts) != len(other.parts):
            raise ValueError(
                f"{type(other).__name__} of {len(getattr(other, 'parts', []))} parts cannot be "
                f"merged into {type(self).__name__} of {len(self.parts)}"
            )
        for mine, theirs in zip(self.parts, other.parts):
            mine.merge(theirs)
        return self

    def on_host(self) -> Self:
        for moments in self.parts:
            moments.on_host()
        return self

    def state(self) -> storage.Content:
        states = [moments.state() for moments in self.parts]
        arrays = {
            f"{i}/{name}": values
            for i, (_, sums) in enumerate(states)
            for name, values in sums.items()
        }
        header = {"kind_of_stats": self.kind, "widths": self.widths}
        return header | {"parts": [head for head, _ in states]}, arrays

    @classmethod
    def from_state(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        by_part: list[dict[str, np.ndarray]] = [{} for _ in header["parts"]]
        for name, values in arrays.items():
            part, _, of_part = name.partition("/")
            by_part[int(part)][of_part] = values
        return cls(list(map(Moments.from_state, header["parts"], by_part)), header["widths"])


class FoldMoments(_Composite):
    """Moments of k disjoint sets of rows, from one pass: exact k-fold cross-validation.

    Row number i belongs to fold h(i) mod k, with h a fixed mixing of the bits of i: the folds
    do not depend on the chunks, threads or workers, and a periodic or sorted file does not end up
    with unequal folds. Training sums of fold f are ``total().minus(parts[f])``.

    Parameters
    ----------
    parts : sequence of Moments
        One for each fold; `of` makes empty ones.
    widths : sequence of int
        Not used here.
    """

    kind = "fold-moments"

    @classmethod
    def of(cls, zero: Moments, n_folds: int) -> Self:
        """Make empty folds.

        Parameters
        ----------
        zero : Moments
            What each fold is like.
        n_folds : int
            Number of folds, k.

        Returns
        -------
        FoldMoments
            k folds without rows.
        """
        return cls([zero.zero() for _ in range(n_folds)])

    @property
    def n(self) -> int:
        """Rows of positive weight, of all folds."""
        return sum(moments.n for moments in self.parts)

    def total(self) -> Moments:
        """Add all folds up.

        Returns
        -------
        Moments
            Sums over all rows.
        """
        return reduce(Moments.merge, self.parts, self.parts[0].zero())

    def centre_on(self, Z: Any, y: Any = None, sample_weight: Any = None) -> None:
        # One shift for all folds, so that their sums add without being moved.
        for moments in self.parts:
            moments.centre_on(Z, y, sample_weight)

    def _split(self, Z: Any, y: Any, w: Any, start: int) -> list[tuple[Any, Any, Any]]:
        fold = fold_of_row(np.arange(start, start + Z.shape[0]), len(self.parts))
        rows = (np.flatnonzero(fold == f) for f in range(len(self.parts)))
        return [(Z[taken], *(v if v is None else v[taken] for v in (y, w))) for taken in rows]


class KernelMoments(_Composite):
    """Moments of several groups of columns, without the products between groups.

    For the first pass of Algorithm 4, which needs the PCA of each kernel alone: Σ D_k² numbers
    instead of (Σ D_k)².

    Parameters
    ----------
    parts : sequence of Moments
        One for each group.
    widths : sequence of int
        Columns of each group.
    """

    kind = "kernel-moments"

    _state = _Composite._state.extended({"widths": many(integer(0))})

    def _check_state(self) -> None:
        super()._check_state()
        if len(self.widths) != len(self.parts):
            raise SchemaError("KernelMoments: 'widths' and 'parts' have different lengths")

    def _split(self, Z: Any, y: Any, w: Any, start: int) -> list[tuple[Any, Any, Any]]:
        ends = np.cumsum(self.widths)
        return [(Z[:, end - width : end], y, w) for width, end in zip(self.widths, ends)]


def fold_of_row(rows: np.ndarray, n_folds: int) -> np.ndarray:
    """Fold of each row number: its mixed bits modulo the number of folds."""
    return (mixed_bits(rows) % np.uint64(n_folds)).astype(np.int64)


def stats_from_state(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """Rebuild whichever statistics a header describes."""
    kinds = {cls.kind: cls for cls in (Moments, FoldMoments, KernelMoments)}
    try:
        stats = kinds[header["kind_of_stats"]].from_state(header, arrays)
        stats._check_state()
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise storage.FileFormatError(f"the statistics are malformed: {error!r}") from error
    return stats


def load_stats(path: storage.AnyPath) -> Any:
    """Read any statistics that were written by their ``save``.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Moments, FoldMoments or KernelMoments
        Whatever the file holds.
    """
    header, arrays = storage.read(path)
    if "kind_of_stats" not in header:
        raise storage.FileFormatError(
            f"{os.fspath(path)!r} holds a {header['kind']!r}, not statistics."
        )
    return stats_from_state(header, arrays)
