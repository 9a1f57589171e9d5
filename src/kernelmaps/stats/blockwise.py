"""Fold a source into statistics: read, map, multiply, add; φ(X) is never stored.

Blocks are read in order by the calling thread, mapped and multiplied by a few threads with one
BLAS thread each, and added in order again. The sums are therefore the same, bit for bit, for any
number of threads, and after any block they are a state from which the fold can go on.

On a card (:class:`.on_device.OnDevice`) one thread hands blocks over and does not wait for them:
the card maps and multiplies one block while the next is read. The sums come back at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from ..data.sources import Block, Source
from ..device import in_halves, is_tensor, memory_named, share_memory, to_host
from ..progress import track
from ..sparse_rows import first_bad
from ..threads import interruptible, ordered_map, resolve_threads
from .checkpoint import Checkpoint
from .moments import BLOCK_ROWS
from .on_device import OnDevice

_FEWER = "The sums have to fit: use fewer components, or leave device out"

Transform = Callable[[Any], Any]
Result = TypeVar("Result")
BLOCK_BYTES = 64 << 20


def fold_blocks(
    source: Source,
    stats: Any,
    transform: Transform | None = None,
    *,
    block_rows: int,
    n_threads: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 1,
    progress: bool | None = None,
    name: str = "fold",
) -> Any:
    """Add all rows of a source to statistics in this process; see `kernelmaps.stats.fold`."""
    saved = Checkpoint(checkpoint, checkpoint_every, source, stats, block_rows, name)
    remaining = saved.remaining()
    stats = saved.stats
    total = source.n_blocks(block_rows)
    total = None if total is None else total - saved.position
    blocks = track(remaining, description=name, total=total, enabled=progress)

    card = transform if isinstance(transform, OnDevice) else None

    def centre(block: Block) -> None:
        if stats.shift is None:
            Z, _ = features_of(block, transform, name)
            _named(name, block, stats.centre_on, Z, block.y, block.w)

    def sums(block: Block) -> Any:
        Z, own = features_of(block, transform, name)
        return _named(name, block, stats.partial, Z, block.y, block.w, block.start, own=own)

    def in_parts(work: Callable[[Block], Result], block: Block, join: Any) -> Result:
        """On a card, fewer rows at a time where their features outgrow its memory."""
        if card is None:
            return work(block)
        rows = slice(0, len(block))
        return in_halves(lambda rows: work(block.part(rows)), rows, join, name, _FEWER)

    def centred() -> Iterator[Block]:
        # The shift must be known before the first product; all later blocks share it.
        for block in blocks:
            if stats.shift is None:
                interruptible(in_parts, centre, block, lambda *_: None)
            yield block

    def added(block: Block) -> tuple[Block, Any]:
        return block, in_parts(sums, block, lambda a, b: a.merge(b))

    with nullcontext() if card is None else _on_card(card, name):
        threads = resolve_threads(n_threads)
        # The session belongs to this thread, and a card needs no other.
        parts = ordered_map(added, centred(), threads) if card is None else map(added, centred())
        for block, part in parts:
            _named(name, block, stats.merge, part)
            saved.added(block)
        saved.finish()
        return stats if card is None else stats.on_host()


@contextmanager
def _on_card(transform: OnDevice, name: str) -> Iterator[None]:
    """Around all blocks: how products are computed, and what to do where the sums do not fit."""
    with transform.session(), memory_named(name, _FEWER):
        yield


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
    X = block.X
    if is_tensor(X):  # a card is asked for one number, unless it is bad
        X = np.zeros((1, 1)) if X.isfinite().all() else to_host(X)
    place = first_bad(X)
    if place is not None:
        row, column = place
        value = "NaN" if np.isnan(X[place]) else "infinity (inf)"
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
