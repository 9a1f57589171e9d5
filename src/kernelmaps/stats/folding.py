"""`fold`: add all rows of a source to statistics, in this process or on Dask's workers.

Read, map, multiply, add; φ(X) is never stored. Blocks are read in order by the calling thread,
mapped and multiplied by a few threads with one BLAS thread each, and added in order again. The sums
are therefore the same, bit for bit, for any number of threads.

On a GPU (:class:`OnDevice`) one thread hands blocks over and does not wait for them: the GPU maps
and multiplies one block while the next is read. The sums come back at the end.

On Dask (by its current client, if there is one) there is one task per partition, and their sums are
merged in a tree. What travels out is the map and the empty statistics (shift only, kB); what comes
back is one set of sums. Rows stay where they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from .._util import devices
from .._util.arguments import import_optional
from .._util.display import track
from .._util.sparse import find_not_finite
from .._util.threads import interruptible, ordered_map, resolve_threads
from ..data.dask import DaskSource, source_of_partition
from ..data.sources import Block, Source
from .moments import BLOCK_ROWS

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
    progress : bool, optional
        Whether to show a bar; by default if there is a terminal.
    name : str
        Who folds, for messages.

    Returns
    -------
    stats
        The statistics that were given, with all rows added.
    """
    if isinstance(source, DaskSource):
        return _fold_partitions(source, stats, transform, block_rows, name)
    total = None if source.n_rows is None else -(-source.n_rows // block_rows)
    blocks = track(source.blocks(block_rows), description=name, total=total, enabled=progress)
    on_device = transform if isinstance(transform, OnDevice) else None

    def centre(block: Block) -> None:
        if stats.shift is None:  # known after the first of several parts
            Z = features_of(block, transform, name)
            _name_errors(name, block, stats.centre_on, Z, block.y, block.w)

    def add_up(block: Block) -> Any:
        Z = features_of(block, transform, name)
        return _name_errors(name, block, stats.partial, Z, block.y, block.w, block.start)

    def centre_blocks() -> Iterator[Block]:
        # The shift must be known before the first product; all later blocks share it.
        for block in blocks:
            if stats.shift is None:
                interruptible(_work_in_parts, centre, block, lambda *_: None, name, on_device)
            yield block

    def add_block(block: Block) -> tuple[Block, Any]:
        return block, _work_in_parts(add_up, block, lambda a, b: a.merge(b), name, on_device)

    with nullcontext() if on_device is None else on_device.session(_SUMS_MUST_FIT):
        # The session belongs to this thread, and a GPU needs no other.
        threads, centred = resolve_threads(n_jobs), centre_blocks()
        results = map(add_block, centred) if on_device else ordered_map(add_block, centred, threads)
        for block, sums in results:
            _name_errors(name, block, stats.merge, sums)
        return stats if on_device is None else stats.to_host()


def _work_in_parts(
    work: Callable[[Block], Any], block: Block, join: Any, name: str, on_device: OnDevice | None
) -> Any:
    """On a GPU, fewer rows at a time where their features outgrow its memory."""
    if on_device is None:
        return work(block)
    rows = slice(0, len(block))
    return devices.run_in_halves(
        lambda rows: work(block.take(rows)), rows, join, name, _SUMS_MUST_FIT
    )


def _fold_partitions(
    source: DaskSource, stats: Any, transform: Transform | None, block_rows: int, name: str
) -> Any:
    # One key for the map: it reaches each worker once, not once per task.
    delayed = import_optional("dask").delayed
    options = delayed(transform, traverse=False), block_rows, name
    zero = stats.zero()
    if stats.shift is None:  # one shift for all: products round as in one process
        zero = delayed(_centre)(zero, source.parts[0], *options)
    return stats.merge(source.merge_parts(_fold_partition, zero, *options))


def _centre(zero: Any, partition: Any, transform: Any, rows: int, name: str) -> Any:
    block, zero = source_of_partition(partition).head(rows), zero.zero()
    if block is not None:
        zero.centre_on(features_of(block, transform, name), block.y, block.w)
    return zero


def _fold_partition(
    number: int, partition: Any, zero: Any, transform: Any, rows: int, name: str
) -> Any:
    options: Any = {"block_rows": rows, "n_jobs": 1, "progress": False}
    where = f"{name}, partition {number}"
    return fold(source_of_partition(partition), zero.zero(), transform, **options, name=where)


def features_of(block: Block, transform: Transform | None, name: str) -> Any:
    """Features of a block; bad values are refused."""
    _check_block(block, name)
    if transform is None:
        return block.X
    Z = _name_errors(name, block, transform, block.X)
    if devices.is_tensor(Z):
        return Z
    return Z.tocsr() if sp.issparse(Z) else np.asarray(Z)


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


def _name_errors(
    name: str, block: Block, function: Callable[..., Result], *args: Any, **kw: Any
) -> Result:
    """Call; a ValueError learns which estimator and which chunk it comes from."""
    try:
        return function(*args, **kw)
    except ValueError as error:
        raise ValueError(f"{name}: chunk {block.chunk}: {error}") from error


def _check_block(block: Block, name: str) -> None:
    X = block.X
    if devices.is_tensor(X):  # a GPU is asked for one number, unless it is bad
        X = np.zeros((1, 1)) if X.isfinite().all() else devices.to_host(X)
    place = find_not_finite(X)
    if place is not None:
        row, column = place
        value = "NaN" if np.isnan(X[place]) else "infinity (inf)"
        raise ValueError(
            f"{name}: input X contains {value}: {block.place(row)}, column {column}. "
            "Impute or drop such rows before folding"
        )
    for source, values in (("y", block.y), ("sample_weight", block.w)):
        if values is None or values.dtype.kind != "f" or np.isfinite(values).all():
            continue
        row = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
        raise ValueError(f"{name}: input {source} contains NaN or inf: {block.place(row)}")
    if block.w is not None and (block.w < 0).any():
        row = int(np.argmax(block.w < 0))
        raise ValueError(f"{name}: sample_weight is negative in {block.place(row)}")


# ---- on a GPU -----------------------------------------------------------------------------------

AHEAD = 2  # blocks that may be on their way while one is computed
DEVICE_BYTES = 2 << 30  # of features on the GPU
DEVICE_ROWS = 1 << 15
_SHORT = (np.float32, np.float16, np.uint8, np.uint16)  # types that float32 holds exactly


@dataclass
class OnDevice:
    """Copy rows to a device, unless they are there, and map them there.

    Parameters
    ----------
    transform : callable or None
        Tensors of rows to tensors of features; None: the rows themselves.
    device : str
        A device of torch.
    arithmetic : {"float64", "float32", "tf32"} or None
        Precision of features and of their products; None: that of the rows.
    owner : str
        Who folds, for messages.
    """

    transform: Callable[[Any], Any] | None
    device: str
    arithmetic: str | None
    owner: str
    _pending: deque[Any] = field(default_factory=deque, repr=False)

    def __call__(self, X: Any) -> Any:
        """Features of a block of rows, on the device."""
        if sp.issparse(X):
            raise TypeError(
                f"{self.owner}: sparse rows are not folded on a device. Leave device out, or pass "
                "blocks of dense rows"
            )
        device = devices.resolve(self.device, self.owner)
        while len(self._pending) > AHEAD:  # every block on its way to a GPU holds memory
            self._pending.popleft().synchronize()
        wide = devices.numpy_dtype(X.dtype) not in _SHORT
        double = self.arithmetic == "float64" if self.arithmetic else wide
        if devices.is_tensor(X):  # one that is there already stays
            rows = X.to(device).double() if double else X.to(device).float()
        else:
            rows = devices.to_device(X, device, np.float64 if double else np.float32)
        Z = rows if self.transform is None else self.transform(rows)
        if device.type == "cuda":
            import torch

            self._pending.append(torch.cuda.current_stream().record_event())
        return Z

    @contextmanager
    def session(self, instead: str) -> Iterator[None]:
        """Around all blocks: how products are computed, and what to do `instead` without memory."""
        multiplying = devices.precision(self.arithmetic or "float32")
        with multiplying, devices.memory_named(self.owner, instead):
            yield

    @staticmethod
    def block_rows(width: int) -> int:
        """Rows at a time for features of so many columns."""
        fit = max(1024, DEVICE_BYTES // (8 * width))
        return min(DEVICE_ROWS, 1 << (fit.bit_length() - 1))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_pending": deque()}


def check_device(device: Any, arithmetic: str | None, owner: str) -> None:
    """Refuse a device that is not there before any row is read."""
    if arithmetic is not None and arithmetic not in devices.PRECISIONS:
        raise ValueError(
            f"{owner}: precision must be None or one of {', '.join(devices.PRECISIONS)}; got "
            f"{arithmetic!r}"
        )
    if device is not None:
        devices.resolve(device, owner)
