"""Rows of Dask collections, read partition by partition, and work that is done where they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from .._util.arguments import needed
from .._util.threads import interruptible
from .columns import check_selection, column_positions, names_of
from .sources import (
    Block,
    RowSample,
    SlicedSource,
    Source,
    as_rows,
    check_lengths,
    default_target,
)

RETRIES = 3  # for errors of a task; a task lost with its worker is rescheduled by Dask itself
FAN_IN = 8  # results that one task merges: a tree of depth 4 merges 4,096 partitions
POLL_SECONDS = 1.0  # between two looks at the workers
PATIENCE_SECONDS = 30.0  # without any worker, after which a fit is given up
RESERVED_ROWS = 1 << 40  # for a partition of unknown length, so that row numbers stay distinct

Result = TypeVar("Result")


class DaskSource(Source):
    """Partitions of a Dask array or dataframe: delayed X, y, weights, exposure, and first row."""

    parts: list[tuple[Any, ...]]

    def __init__(
        self, X: Any, y: Any = None, w: Any = None, exposure: Any = None, *,
        frames: bool = False, columns: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        # Of a dataframe, the others may be columns, by name.
        if hasattr(X, "columns"):
            if frames:
                y = default_target(X.columns, y)
            taken = [name for name in (y, w, exposure) if isinstance(name, str)]
            column_positions(list(X.columns), taken, "the Dask dataframe")
            y, w, exposure = (X[v] if isinstance(v, str) else v for v in (y, w, exposure))
            X = X.drop(columns=taken)
            if columns is not None:
                check_selection(list(X.columns), columns, "the Dask dataframe")
                X = X[list(columns)]
            self.names = names_of(X)
            rows, width = (float("nan"),) * X.npartitions, len(X.columns)
        else:
            if isinstance(exposure, str):
                raise ValueError(
                    f"exposure={exposure!r} names a column, but X has no names of columns"
                )
            if X.ndim != 2:
                raise ValueError(f"X must have two dimensions, found shape {X.shape}")
            X = X.rechunk({1: -1})
            rows, width = X.chunks[0], X.shape[1]
        partitions = list(np.ravel(np.array(X.to_delayed(), dtype=object)))
        beside = {"y": y, "weights": w, "exposure": exposure}
        pieces = [self._beside(values, what, rows) for what, values in beside.items()]
        lengths_known = not any(math.isnan(n) for n in rows)
        starts = np.cumsum([0, *(rows if lengths_known else [RESERVED_ROWS] * len(partitions))])
        self.parts = list(zip(partitions, *pieces, starts.tolist()))
        self.n_rows = int(sum(rows)) if lengths_known else None
        self.n_features, self.frames = width, frames

    @staticmethod
    def _beside(values: Any, what: str, rows: tuple[Any, ...]) -> list[Any]:
        """Targets or weights, cut where X is cut."""
        n = len(rows)
        if values is None:
            return [None] * n
        lengths_known = not any(math.isnan(count) for count in rows)
        if hasattr(values, "to_delayed"):
            if lengths_known and hasattr(values, "rechunk") and not np.isnan(values.shape[0]):
                check_lengths(sum(rows), **{what: values})
                values = values.rechunk({0: rows, **dict.fromkeys(range(1, values.ndim), -1)})
            pieces = list(np.ravel(np.array(values.to_delayed(), dtype=object)))
            if len(pieces) != n:
                raise ValueError(
                    f"X has {n} partitions, {what} has {len(pieces)}: align them first"
                )
            return pieces
        if not lengths_known:
            raise ValueError(
                f"{what} is an array in memory, but the partitions of X have unknown lengths. Pass "
                f"{what} as a Dask collection, or call X.compute_chunk_sizes() first"
            )
        check_lengths(sum(rows), **{what: values})
        return np.split(np.asarray(values), np.cumsum(rows)[:-1])

    def describe(self) -> str:
        return f"the Dask collection of {len(self.parts)} partitions"

    def blocks(self, block_rows: int, skip: int = 0) -> Iterator[Block]:
        """Partition by partition in this process (to look at the first rows, say)."""
        import dask

        number = 0
        for chunk, partition in enumerate(self.parts):
            values = dask.compute(*partition)
            for block in source_of_partition(values, chunk, self.frames).blocks(block_rows):
                if number >= skip:
                    yield block
                number += 1


def source_of_partition(
    partition: tuple[Any, ...], chunk: int | None = None, frames: bool = False
) -> Source:
    """A partition as a source: rows that are already here, or a file to be opened here."""
    if isinstance(partition[0], Source):
        return partition[0]
    X, *beside, start = partition
    y, w, exposure = (None if values is None else np.asarray(values) for values in beside)
    rows = as_rows(X, frames)
    return SlicedSource(rows, y, w, first=start, chunk=chunk, exposure=exposure, frames=frames)


# ---- work on Dask's workers --------------------------------------------------------------------


def on_sample(
    source: Source, function: Callable[[Block | None], Result], rows: int, client: Any,
    everywhere: bool = True,
) -> Result:  # fmt: skip
    """``function(block)`` for a sample of rows, from everywhere or the first ones.

    Of rows that are elsewhere, the sample is all that travels.
    """
    if client is None and source.parts is None:
        look = source.sample if everywhere else source.head
        return interruptible(lambda: function(look(rows)))
    parts = partitions(source, 1, rows)
    task = needed("dask").delayed(_sample_of_partition)
    with connected(client) as client:
        if not everywhere:
            return function(_computed(task(parts[0], rows, False), client))
        samples = [task(partition, rows, True) for partition in parts]
        return function(reduced(samples, _merged_samples, client).block())


def _sample_of_partition(partition: tuple[Any, ...], rows: int, everywhere: bool) -> Any:
    source = source_of_partition(partition)
    if not everywhere:
        return source.head(rows)
    sample = RowSample(rows, with_ends=True)
    for block in source.blocks(rows):
        sample.update(block)
    return sample


def _merged_samples(samples: list[RowSample]) -> RowSample:
    return reduce(RowSample.merge, samples, samples[0].zero())


def partitions(source: Source, n: int, rows: int) -> list[tuple[Any, ...]]:
    """What tasks read (`source_of_partition`): about `n` parts, unless Dask has cut the rows."""
    return source.parts or [(share,) for share in source.partitions(n, rows)]


def reduced(nodes: list[Any], merge: Callable[[list[Any]], Any], client: Any) -> Any:
    """The values of all tasks, merged `FAN_IN` at a time."""
    task = needed("dask").delayed(merge)
    while len(nodes) > 1:
        nodes = [task(nodes[i : i + FAN_IN]) for i in range(0, len(nodes), FAN_IN)]
    return _computed(nodes[0], client)


@contextmanager
def connected(client: Any) -> Iterator[Any]:
    """The client itself, or one for the address of a scheduler, closed afterwards."""
    if not isinstance(client, str):
        yield client
        return
    Client = needed("distributed").Client
    with Client(client, set_as_default=False) as made:
        yield made


def _computed(task: Any, client: Any) -> Any:
    """The value of a task: on the client's workers, or on Dask's current scheduler."""
    if client is not None:
        return _awaited(client.compute(task, retries=RETRIES), client)
    return needed("dask").compute(task)[0]


def _awaited(future: Any, client: Any) -> Any:
    """The value of a future; without workers, which nobody restarts, it would never come."""
    alone_since = None
    while True:
        try:
            return future.result(timeout=POLL_SECONDS)
        except TimeoutError:
            if future.status != "pending":  # it ended meanwhile, or the error is the task's own
                return future.result()
        if client.nthreads():
            alone_since = None
            continue
        alone_since = monotonic() if alone_since is None else alone_since
        if monotonic() - alone_since > PATIENCE_SECONDS:
            future.cancel()
            raise TimeoutError(
                f"the Dask cluster has had no worker for {PATIENCE_SECONDS:g} seconds. Start "
                "workers, with a nanny so that those that die are replaced, and fit again."
            )
