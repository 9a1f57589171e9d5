"""`fold`: add all rows of a source to statistics, in this process or on Dask's workers.

Folds on Dask: one task per partition, merged in a tree.

What travels out is the map, the empty statistics (shift only, kB) and, for files, where to read;
what comes back is one set of sums. Rows stay where they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

from ..data.dask import DaskSource, source_of_partition
from ..data.sources import Block, Source
from ..extras import needed
from ..threads import interruptible
from .blockwise import Transform, features_of, fold_blocks

RETRIES = 3  # for errors of a task; a task lost with its worker is rescheduled by Dask itself
FAN_IN = 8
POLL, PATIENCE = 1.0, 30.0  # seconds: between two looks at the workers, and without any


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
            parts = [(part,) for part in source.partitions(n, block_rows)]
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
    leaf, centre = dask.delayed(_leaf), dask.delayed(_centre)
    zero = stats.zero()
    if stats.shift is None:
        zero = centre(zero, parts[0], starts[0], shared, block_rows, name)
    nodes = [
        leaf(zero, part, start, shared, block_rows, f"{name}, partition {i}")
        for i, (part, start) in enumerate(zip(parts, starts))
    ]
    return _merged(nodes)


def _merged(nodes: list[Any]) -> Any:
    """One task that merges the sums of all, `FAN_IN` at a time."""
    import dask

    merge = dask.delayed(_merge)
    while len(nodes) > 1:
        nodes = [merge(nodes[i : i + FAN_IN]) for i in range(0, len(nodes), FAN_IN)]
    return nodes[0]


def sum_on_dask(parts: list[Any], leaf: Callable[..., Any]) -> Any:
    """Sums of all partitions: ``leaf(number, part)`` where each one is, merged in a tree."""
    import dask

    task = dask.delayed(leaf)
    nodes = [task(number, part) for number, part in enumerate(parts)]
    return _computed(_merged(nodes), None)


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
    import dask

    return dask.compute(task)[0]


def _awaited(future: Any, client: Any) -> Any:
    """The value of a future; without workers, which nobody restarts, it would never come."""
    alone_since = None
    while True:
        try:
            return future.result(timeout=POLL)
        except TimeoutError:
            if future.status != "pending":  # it ended meanwhile, or the error is the task's own
                return future.result()
        if client.nthreads():
            alone_since = None
            continue
        alone_since = monotonic() if alone_since is None else alone_since
        if monotonic() - alone_since > PATIENCE:
            future.cancel()
            raise TimeoutError(
                f"the Dask cluster has had no worker for {PATIENCE:g} seconds. Start workers, with "
                "a nanny so that those that die are replaced, and fit again."
            )


def call_on_sample(source: Source, function: Any, client: Any, *, rows: int) -> Any:
    """``function(block)`` for a sample of rows, where the rows are; only the result travels."""
    dask = needed("dask")
    if isinstance(source, DaskSource):
        part, start = source.parts[0], source.starts[0]
    else:
        part, start = (source.partitions(1, rows)[0],), 0
    task = dask.delayed(_on_sample)(function, part, start, rows)
    with connected(client) as client:
        return _computed(task, client)


def _on_sample(function: Any, part: tuple[Any, ...], start: int, rows: int) -> Any:
    return function(source_of_partition(part, start).sample(rows))


def _centre(zero: Any, part: tuple[Any, ...], start: int, transform: Any, rows: int, name: str):
    zero = zero.zero()
    for block in source_of_partition(part, start).blocks(rows):
        zero.centre_on(features_of(block, transform, name)[0], block.y, block.w)
        if zero.shift is not None:
            break
    return zero


def _leaf(
    zero: Any, part: tuple[Any, ...], start: int, transform: Any, rows: int, name: str
) -> Any:
    source, stats = source_of_partition(part, start), zero.zero()
    return fold_blocks(
        source, stats, transform, block_rows=rows, n_threads=1, progress=False, name=name
    )


def _merge(parts: list[Any]) -> Any:
    total = parts[0].zero()  # Dask may still need its inputs: they are not changed
    for part in parts:
        total.merge(part)
    return total


Result = TypeVar("Result")


def fold(
    source: Source,
    stats: Any,
    transform: Transform | None = None,
    *,
    block_rows: int = 4096,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 1,
    client: Any = None,
    progress: bool | None = None,
    name: str = "fold",
) -> Any:
    """Add all rows of a source to statistics.

    Parameters
    ----------
    source : Source
        From `open_source`.
    stats : Moments, FoldMoments, KernelMoments or anything with their methods
        What to add to; changed and returned.
    transform : callable, optional
        The feature map: rows to features. It is called from several threads at once.
    block_rows : int
        Longest block; `choose_block_rows` proposes one.
    n_jobs : int, optional
        Threads; None means all that are available.
    checkpoint : path, optional
        File that holds the state of the fold. If it exists, the fold continues from there, after
        making sure that it belongs to these data, this map and this size of blocks.
    checkpoint_every : int
        Blocks between two writes. With 1, a kill loses only blocks that were not added yet; each
        write costs D²/2 numbers.
    client : distributed.Client or str, optional
        Fold on its workers; a string is the address of a scheduler. A Dask collection is always
        folded where Dask computes it.
    progress : bool, optional
        Whether to show a bar; by default if there is a terminal.
    name : str
        Who folds, for messages.

    Returns
    -------
    stats
        The statistics that were given, with all rows added.
    """
    if client is not None or source.parts is not None:
        if checkpoint is not None:
            raise ValueError(
                f"{name}: a fold on Dask has no checkpoint: the scheduler retries lost parts itself"
            )
        return fold_on_dask(source, stats, transform, client, block_rows=block_rows, name=name)
    return fold_blocks(
        source,
        stats,
        transform,
        block_rows=block_rows,
        n_threads=n_jobs,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        progress=progress,
        name=name,
    )


def on_sample(
    source: Source, function: Callable[[Block | None], Result], rows: int, client: Any = None
) -> Result:
    """Apply `function` to a sample of rows, in this process or where Dask holds them."""
    if client is None and source.parts is None:
        return interruptible(lambda: function(source.sample(rows)))
    return call_on_sample(source, function, client, rows=rows)
