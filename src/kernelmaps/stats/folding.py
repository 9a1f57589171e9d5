"""Fold a source into statistics: read, map, multiply, add; φ(X) is never stored.

Blocks are read in order by the calling thread, mapped and multiplied by a few threads with one
BLAS thread each, and added in order again. The sums are therefore the same, bit for bit, for any
number of threads, and after any block they are a state from which the fold can go on.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from ..progress import track
from ..threads import resolve_threads
from .checkpoint import Checkpoint
from .moments import BLOCK_ROWS
from .sources import Block, Source

__all__ = ["choose_block_rows", "features_of", "fold", "on_sample", "ordered_map"]

Transform = Callable[[Any], Any]
Result = TypeVar("Result")
BLOCK_BYTES = 64 << 20


def fold(
    source: Source,
    stats: Any,
    transform: Transform | None = None,
    *,
    block_rows: int = 4096,
    n_threads: int | None = None,
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
    stats : Moments, FoldMoments, KernelMoments or anything with their verbs
        What to add to; changed and returned.
    transform : callable, optional
        The feature map: rows to features. It is called from several threads at once.
    block_rows : int
        Longest block; `choose_block_rows` proposes one.
    n_threads : int, optional
        As `n_jobs` of scikit-learn; None means all.
    checkpoint : path, optional
        File that holds the state of the fold. If it exists, the fold goes on from there, after
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
    """
    if client is not None or source.remote:
        if checkpoint is not None:
            raise ValueError(
                f"{name}: a fold on Dask has no checkpoint: the scheduler retries lost parts itself"
            )
        from .distributed import fold_on_dask

        return fold_on_dask(source, stats, transform, client, block_rows=block_rows, name=name)
    saved = Checkpoint(checkpoint, checkpoint_every, source, stats, block_rows, name)
    remaining = saved.remaining()
    stats = saved.stats
    if saved.done:
        return stats
    total = source.n_blocks(block_rows)
    total = None if total is None else total - saved.position
    blocks = track(remaining, description=name, total=total, enabled=progress)

    def sums(block: Block) -> tuple[Block, Any]:
        Z, own = features_of(block, transform, name)
        return block, _named(name, block, stats.partial, Z, block.y, block.w, block.start, own=own)

    def centred() -> Iterator[Block]:
        # The shift must be known before the first product; all later blocks share it.
        for block in blocks:
            if stats.shift is None:
                Z, _ = features_of(block, transform, name)
                _named(name, block, stats.centre_on, Z, block.y, block.w)
            yield block

    for block, part in ordered_map(sums, centred(), resolve_threads(n_threads)):
        _named(name, block, stats.merge, part)
        saved.added(block)
    saved.finish()
    return stats


def on_sample(
    source: Source, function: Callable[[Block | None], Result], rows: int, client: Any = None
) -> Result:
    """Apply `function` to a sample of rows, in this process or where Dask holds them."""
    if client is None and not source.remote:
        return function(source.sample(rows))
    from .distributed import call_on_sample

    return call_on_sample(source, function, client, rows=rows)


def ordered_map(
    function: Callable[[Any], Result], items: Iterable[Any], n_threads: int
) -> Iterator[Result]:
    """Apply `function` in threads of one BLAS thread each; yield results in order.

    At most ``n_threads + 1`` items are alive: one is read while the others are worked on.
    """
    pending: deque[Any] = deque()
    with one_blas_thread(), ThreadPoolExecutor(n_threads, "kernelmaps-fold") as pool:
        try:
            for item in items:
                pending.append(pool.submit(_as_worker, function, item))
                if len(pending) > n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def features_of(block: Block, transform: Transform | None, name: str) -> tuple[Any, bool]:
    """Features of a block, and whether they are ours to overwrite; bad values are refused."""
    _check_block(block, name)
    if transform is None:
        return block.X, False
    Z = _named(name, block, transform, block.X)
    Z = Z.tocsr() if sp.issparse(Z) else np.asarray(Z)
    return Z, not sp.issparse(Z) and not np.may_share_memory(Z, block.X)


def choose_block_rows(n_features: int, n_outputs: int, itemsize: int) -> int:
    """A power of two such that inputs and features of a block take about 64 MiB.

    Not below 2048, where adding D² sums would cost as much as the products, nor above the bound
    that keeps float32 products accurate.
    """
    rows = BLOCK_BYTES // max((n_features + n_outputs) * itemsize, 1)
    return int(2 ** np.floor(np.log2(np.clip(rows, 2048, BLOCK_ROWS))))


# ---- threads ------------------------------------------------------------------------------------

_blas_lock = threading.Lock()
_blas_users = 0
_blas_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread per caller while any fold runs.

    The limit belongs to the process, so folds in several threads (Dask's) count their users: the
    last one lifts it, where nested contexts would restore one another's value.
    """
    global _blas_users, _blas_limit
    from threadpoolctl import threadpool_limits

    with _blas_lock:
        _blas_users += 1
        if _blas_users == 1:
            _blas_limit = threadpool_limits(1)
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0:
                _blas_limit.restore_original_limits()


def _as_worker(function: Callable[[Any], Result], item: Any) -> Result:
    """Run as joblib's workers do: a map's own n_jobs=None then means one thread."""
    import joblib
    from joblib.parallel import ThreadingBackend

    with joblib.parallel_config(backend=ThreadingBackend(nesting_level=1), n_jobs=1):
        return function(item)


# ---- messages -----------------------------------------------------------------------------------


def _place(block: Block, row: int = 0) -> str:
    return f"chunk {block.chunk}, row {block.row + row} (row {block.start + row} of the data)"


def _named(
    name: str, block: Block, function: Callable[..., Result], *args: Any, **kw: Any
) -> Result:
    """Call; a ValueError learns which estimator and which chunk it comes from."""
    try:
        return function(*args, **kw)
    except ValueError as error:
        raise ValueError(f"{name}: chunk {block.chunk}: {error}") from error


def _check_block(block: Block, name: str) -> None:
    X = block.X.data if sp.issparse(block.X) else block.X
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        row, column, value = _first_bad(block.X)
        raise ValueError(
            f"{name}: input X contains {value}: {_place(block, row)}, column {column}. "
            "Impute or drop such rows before folding"
        )
    for what, values in (("y", block.y), ("sample_weight", block.w)):
        if values is None or values.dtype.kind != "f" or np.isfinite(values).all():
            continue
        row = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
        raise ValueError(f"{name}: input {what} contains NaN or inf: {_place(block, row)}")
    if block.w is not None and (block.w < 0).any():
        row = int(np.argmax(block.w < 0))
        raise ValueError(f"{name}: sample_weight is negative in {_place(block, row)}")


def _first_bad(X: Any) -> tuple[int, int, str]:
    if sp.issparse(X):
        at = int(np.argmin(np.isfinite(X.data)))
        row = int(np.searchsorted(X.indptr, at, side="right")) - 1
        column, value = int(X.indices[at]), X.data[at]
    else:
        row = int(np.argmin(np.isfinite(X).all(axis=1)))
        column = int(np.argmin(np.isfinite(X[row])))
        value = X[row, column]
    return row, column, "NaN" if np.isnan(value) else "infinity (inf)"
