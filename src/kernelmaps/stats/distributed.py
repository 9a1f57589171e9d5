"""The fold on Dask: one task per partition, merged in a tree.

What travels out is the map, the empty statistics (shift only, kB) and, for files, where to read;
what comes back is one set of sums. Rows stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .sources import Block, SlicedSource, Source, as_rows, needed

__all__ = ["DaskSource", "call_on_sample", "fold_on_dask"]

RETRIES = 3  # for errors of a task; a task lost with its worker is rescheduled by Dask itself
FAN_IN = 8
UNKNOWN = 1 << 40  # rows reserved for a partition of unknown length: row numbers stay distinct


class DaskSource(Source):
    """Partitions of a Dask array or dataframe, as delayed (X, y, weights)."""

    remote = True

    def __init__(self, parts: list[tuple[Any, Any, Any]], rows: tuple[Any, ...], width: int):
        self.parts, self.n_features = parts, width
        known = not any(math.isnan(n) for n in rows)
        self.n_rows = int(sum(rows)) if known else None
        steps = rows if known else [UNKNOWN] * len(parts)
        self.starts = [int(start) for start in np.cumsum([0, *steps])[:-1]]

    @classmethod
    def of(cls, X: Any, y: Any = None, w: Any = None) -> DaskSource:
        """From a Dask array or dataframe; `y` and `w` may be columns of a dataframe, by name."""
        if hasattr(X, "columns"):
            taken = [name for name in (y, w) if isinstance(name, str)]
            missing = [name for name in taken if name not in X.columns]
            if missing:
                raise KeyError(f"the dataframe has no column {missing}; it has {list(X.columns)}")
            y = X[y] if isinstance(y, str) else y
            w = X[w] if isinstance(w, str) else w
            X = X.drop(columns=taken)
            rows, width = (float("nan"),) * X.npartitions, len(X.columns)
        else:
            if X.ndim != 2:
                raise ValueError(f"X must have two dimensions, found shape {X.shape}")
            X = X.rechunk({1: -1})
            rows, width = X.chunks[0], X.shape[1]
        parts = list(np.ravel(np.array(X.to_delayed(), dtype=object)))
        beside = [cls._beside(values, what, rows) for what, values in (("y", y), ("weights", w))]
        return cls(list(zip(parts, *beside)), rows, width)

    @staticmethod
    def _beside(values: Any, what: str, rows: tuple[Any, ...]) -> list[Any]:
        """Targets or weights, cut where X is cut."""
        n = len(rows)
        if values is None:
            return [None] * n
        known = not any(math.isnan(count) for count in rows)
        if hasattr(values, "to_delayed"):
            if known and hasattr(values, "rechunk") and not np.isnan(values.shape[0]):
                if values.shape[0] != sum(rows):
                    raise ValueError(
                        f"X and {what} have inconsistent numbers of rows: {sum(rows)} and "
                        f"{values.shape[0]}"
                    )
                values = values.rechunk({0: rows, **dict.fromkeys(range(1, values.ndim), -1)})
            found = list(np.ravel(np.array(values.to_delayed(), dtype=object)))
            if len(found) != n:
                raise ValueError(f"X has {n} partitions, {what} has {len(found)}: align them first")
            return found
        if not known:
            raise ValueError(
                f"{what} is an array in memory, but the partitions of X have unknown lengths. Pass "
                f"{what} as a Dask collection, or call X.compute_chunk_sizes() first"
            )
        if len(values) != sum(rows):
            raise ValueError(
                f"X and {what} have inconsistent numbers of rows: {sum(rows)} and {len(values)}"
            )
        return np.split(np.asarray(values), np.cumsum(rows)[:-1])

    def describe(self) -> str:
        return f"the Dask collection of {len(self.parts)} partitions"

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        """Partition by partition in this process (to look at the first rows, say)."""
        import dask

        number = 0
        for part, start in zip(self.parts, self.starts):
            X, y, w = dask.compute(*part)
            for block in _local(X, y, w, start).blocks(block_rows):
                if number >= skip:
                    yield block
                number += 1


def fold_on_dask(
    source: Source, stats: Any, transform: Any, client: Any, *, block_rows: int, name: str
) -> Any:
    """Fold on Dask's workers; see `kernelmaps.stats.fold`. `client` may be an address.

    The shift is taken from the first block by a first task, for all: float32 products then round
    as in one process, and results agree to the rounding of float64 sums.
    """
    with connected(client) as client:
        if isinstance(source, DaskSource):
            parts, starts = source.parts, source.starts
        else:
            n = 4 * max(sum(client.nthreads().values()), 1)
            parts = [(part, None, None) for part in source.partitions(n, block_rows)]
            starts = [0] * len(parts)
        root = _tree(parts, starts, stats, transform, block_rows, name)
        return stats.merge(_computed(root, client))


def _tree(
    parts: list[Any], starts: list[int], stats: Any, transform: Any, block_rows: int, name: str
) -> Any:
    """One leaf per partition, merged `FAN_IN` at a time."""
    import dask

    # One key for the map: it reaches each worker once, not once per task.
    shared = dask.delayed(transform, traverse=False) if transform is not None else None
    leaf, centre, merge = dask.delayed(_leaf), dask.delayed(_centre), dask.delayed(_merge)
    zero = stats.zero()
    if stats.shift is None:
        zero = centre(zero, *parts[0], starts[0], shared, block_rows, name)
    nodes = [
        leaf(zero, *part, start, shared, block_rows, f"{name}, partition {i}")
        for i, (part, start) in enumerate(zip(parts, starts))
    ]
    while len(nodes) > 1:
        nodes = [merge(nodes[i : i + FAN_IN]) for i in range(0, len(nodes), FAN_IN)]
    return nodes[0]


@contextmanager
def connected(client: Any) -> Iterator[Any]:
    """The client itself, or one for the address of a scheduler, closed afterwards."""
    if not isinstance(client, str):
        yield client
        return
    Client = needed("distributed", "dask").Client
    with Client(client, set_as_default=False) as made:
        yield made


def _computed(task: Any, client: Any) -> Any:
    """The value of a task: on the client's workers, or on Dask's current scheduler."""
    if client is not None:
        return client.compute(task, retries=RETRIES).result()
    import dask

    return dask.compute(task)[0]


def call_on_sample(source: Source, function: Any, client: Any, *, rows: int) -> Any:
    """``function(block)`` for a sample of rows, where the rows are; only the result travels."""
    dask = needed("dask", "dask")
    if isinstance(source, DaskSource):
        part, start = source.parts[0], source.starts[0]
    else:
        part, start = (source.partitions(1, rows)[0], None, None), 0
    task = dask.delayed(_on_sample)(function, *part, start, rows)
    with connected(client) as client:
        return _computed(task, client)


def _on_sample(function: Any, X: Any, y: Any, w: Any, start: int, rows: int) -> Any:
    return function(_local(X, y, w, start).sample(rows))


def _local(X: Any, y: Any, w: Any, start: int) -> Source:
    """A partition as a source: rows that are already here, or a file to be opened here."""
    if isinstance(X, Source):
        return X
    y, w = (None if values is None else np.asarray(values) for values in (y, w))
    return SlicedSource(as_rows(X), y, w, first=start)


def _centre(zero: Any, X: Any, y: Any, w: Any, start: int, transform: Any, rows: int, name: str):
    from .folding import features_of

    zero = zero.zero()
    for block in _local(X, y, w, start).blocks(rows):
        zero.centre_on(features_of(block, transform, name)[0], block.y, block.w)
        if zero.shift is not None:
            break
    return zero


def _leaf(
    zero: Any, X: Any, y: Any, w: Any, start: int, transform: Any, rows: int, name: str
) -> Any:
    from .folding import fold

    source = _local(X, y, w, start)
    return fold(
        source, zero.zero(), transform, block_rows=rows, n_threads=1, progress=False, name=name
    )


def _merge(parts: list[Any]) -> Any:
    total = parts[0].zero()  # Dask may still need its inputs: they are not changed
    for part in parts:
        total.merge(part)
    return total
