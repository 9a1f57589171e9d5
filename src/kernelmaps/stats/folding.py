"""`fold`: add all rows of a source to statistics, in this process or on Dask's workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from ..data.sources import Block, Source
from ..threads import interruptible
from .blockwise import Transform, fold_blocks
from .distributed import call_on_sample, fold_on_dask

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
