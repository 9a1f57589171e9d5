"""`fold`: add all rows of a source to statistics, in this process or on Dask's workers.

Read, map, multiply, add; φ(X) is never stored. Blocks are read in order by the calling thread,
mapped and multiplied by a few threads with one BLAS thread each, and added in order again. The sums
are therefore the same, bit for bit, for any number of threads, and after any block they are a state
from which the fold can go on.

On a GPU (:class:`.on_device.OnDevice`) one thread hands blocks over and does not wait for them:
the GPU maps and multiplies one block while the next is read. The sums come back at the end.

On Dask there is one task per partition, and their sums are merged in a tree. What travels out is
the map, the empty statistics (shift only, kB) and, for files, where to read; what comes back is one
set of sums. Rows stay where they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from .._util.arguments import needed
from .._util.devices import in_halves, is_tensor, share_memory, to_host
from .._util.display import track
from .._util.sparse import first_bad
from .._util.threads import interruptible, ordered_map, resolve_threads
from ..data.dask import connected, partitions, reduced, source_of_partition
from ..data.sources import Block, Source
from .checkpoint import Checkpoint
from .moments import BLOCK_ROWS
from .on_device import OnDevice

BLOCK_BYTES = 64 << 20
_SUMS_MUST_FIT = "The sums have to fit: use fewer components, or leave device out"

Transform = Callable[[Any], Any]
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
        return _fold_on_dask(source, stats, transform, client, block_rows, name)
    path = None if checkpoint is None else Path(checkpoint)
    saved = Checkpoint(path, checkpoint_every, source, stats, block_rows, name)
    remaining = saved.remaining()
    stats, total = saved.stats, source.n_blocks(block_rows)
    total = None if total is None else total - saved.position
    blocks = track(remaining, description=name, total=total, enabled=progress)
    on_device = transform if isinstance(transform, OnDevice) else None
    with nullcontext() if on_device is None else on_device.session(_SUMS_MUST_FIT):
        for block, sums in _sums(blocks, stats, transform, n_jobs, name):
            _named(name, block, stats.merge, sums)
            saved.added(block)
        saved.finish()
        return stats if on_device is None else stats.on_host()


def _sums(
    blocks: Iterator[Block], stats: Any, transform: Transform | None, n_jobs: int | None, name: str
) -> Iterator[tuple[Block, Any]]:
    """Each block and its sums, in order."""
    on_gpu = isinstance(transform, OnDevice)

    def centre(block: Block) -> None:
        if stats.shift is None:  # known after the first of several parts
            Z, _ = features_of(block, transform, name)
            _named(name, block, stats.centre_on, Z, block.y, block.w)

    def sums(block: Block) -> Any:
        Z, overwrite = features_of(block, transform, name)
        return _named(
            name, block, stats.partial, Z, block.y, block.w, block.start, overwrite=overwrite
        )

    def in_parts(work: Callable[[Block], Result], block: Block, join: Any) -> Result:
        """On a GPU, fewer rows at a time where their features outgrow its memory."""
        if not on_gpu:
            return work(block)
        rows = slice(0, len(block))
        return in_halves(lambda rows: work(block.part(rows)), rows, join, name, _SUMS_MUST_FIT)

    def centred() -> Iterator[Block]:
        # The shift must be known before the first product; all later blocks share it.
        for block in blocks:
            if stats.shift is None:
                interruptible(in_parts, centre, block, lambda *_: None)
            yield block

    def added(block: Block) -> tuple[Block, Any]:
        return block, in_parts(sums, block, lambda a, b: a.merge(b))

    # The session belongs to this thread, and a GPU needs no other.
    threads = resolve_threads(n_jobs)
    return map(added, centred()) if on_gpu else ordered_map(added, centred(), threads)


def features_of(block: Block, transform: Transform | None, name: str) -> tuple[Any, bool]:
    """Features of a block, and whether they are ours to overwrite; bad values are refused."""
    _check_block(block, name)
    if transform is None:
        return block.X, False
    Z = _named(name, block, transform, block.X)
    if is_tensor(Z):
        return Z, not (is_tensor(block.X) and share_memory(Z, block.X))
    Z = Z.tocsr() if sp.issparse(Z) else np.asarray(Z)
    return Z, not sp.issparse(Z) and not np.may_share_memory(Z, block.X)


def choose_block_rows(n_features: int, n_outputs: int, itemsize: int) -> int:
    """Choose the rows of a block such that its inputs and features take about 64 MiB.

    Not below 2048, where adding D² sums would cost as much as the products, nor above the bound
    that keeps float32 products accurate.

    Parameters
    ----------
    n_features, n_outputs : int
        Columns of the rows, and of their features.
    itemsize : int
        Bytes of a number.

    Returns
    -------
    int
        A power of two.
    """
    rows = BLOCK_BYTES // max((n_features + n_outputs) * itemsize, 1)
    return int(2 ** np.floor(np.log2(np.clip(rows, 2048, BLOCK_ROWS))))


# ---- messages -----------------------------------------------------------------------------------


def _named(
    name: str, block: Block, function: Callable[..., Result], *args: Any, **kw: Any
) -> Result:
    """Call; a ValueError learns which estimator and which chunk it comes from."""
    try:
        return function(*args, **kw)
    except ValueError as error:
        raise ValueError(f"{name}: chunk {block.chunk}: {error}") from error


def _check_block(block: Block, name: str) -> None:
    X = block.X
    if is_tensor(X):  # a GPU is asked for one number, unless it is bad
        X = np.zeros((1, 1)) if X.isfinite().all() else to_host(X)
    place = first_bad(X)
    if place is not None:
        row, column = place
        value = "NaN" if np.isnan(X[place]) else "infinity (inf)"
        raise ValueError(
            f"{name}: input X contains {value}: {block.place(row)}, column {column}. "
            "Impute or drop such rows before folding"
        )
    for what, values in (("y", block.y), ("sample_weight", block.w)):
        if values is None or values.dtype.kind != "f" or np.isfinite(values).all():
            continue
        row = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
        raise ValueError(f"{name}: input {what} contains NaN or inf: {block.place(row)}")
    if block.w is not None and (block.w < 0).any():
        row = int(np.argmax(block.w < 0))
        raise ValueError(f"{name}: sample_weight is negative in {block.place(row)}")


# ---- on Dask ------------------------------------------------------------------------------------


def _fold_on_dask(
    source: Source, stats: Any, transform: Any, client: Any, rows: int, name: str
) -> Any:
    """Fold on Dask's workers; `client` may be an address.

    The shift is taken from the first block by a first task, for all: float32 products then round
    as in one process, and results agree to the rounding of float64 sums.
    """
    with connected(client) as client:
        dask = needed("dask")
        n = 1 if client is None else 4 * max(sum(client.nthreads().values()), 1)
        parts = partitions(source, n, rows)
        # One key for the map: it reaches each worker once, not once per task.
        shared = dask.delayed(transform, traverse=False) if transform is not None else None
        leaf, zero = dask.delayed(_leaf), stats.zero()
        if stats.shift is None:
            zero = dask.delayed(_centre)(zero, parts[0], shared, rows, name)
        nodes = [
            leaf(zero, partition, shared, rows, f"{name}, partition {i}")
            for i, partition in enumerate(parts)
        ]
        return stats.merge(reduced(nodes, _merge, client))


def sum_on_dask(parts: list[Any], leaf: Callable[..., Any]) -> Any:
    """Sums of all partitions: ``leaf(number, part)`` where each one is, merged in a tree."""
    task = needed("dask").delayed(leaf)
    return reduced(
        [task(number, partition) for number, partition in enumerate(parts)], _merge, None
    )


def _centre(zero: Any, partition: tuple[Any, ...], transform: Any, rows: int, name: str) -> Any:
    zero = zero.zero()
    for block in source_of_partition(partition).blocks(rows):
        zero.centre_on(features_of(block, transform, name)[0], block.y, block.w)
        if zero.shift is not None:
            break
    return zero


def _leaf(zero: Any, partition: tuple[Any, ...], transform: Any, rows: int, name: str) -> Any:
    options: Any = {"block_rows": rows, "n_jobs": 1, "progress": False, "name": name}
    return fold(source_of_partition(partition), zero.zero(), transform, **options)


def _merge(parts: list[Any]) -> Any:
    # Into new sums: Dask may still need its inputs.
    return reduce(lambda total, sums: total.merge(sums), parts, parts[0].zero())
