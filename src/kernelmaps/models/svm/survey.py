"""A first pass over data that do not fit into memory: targets, ranges of the columns, a sample.

The map is fitted to the sample with the ends of the ranges below it, which for maps that learn
ranges alone is the fit to all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from ..._util.threads import mixed_bits
from ...data import Block, Source, open_source
from ...data.sources import IterableSource
from ...engine.extent import column_range, extent_of, first_not_finite
from .inputs import naming_gams

_BLOCK_VALUES = 2**23  # numbers of one block, about
_SAMPLE_ROWS = 4096  # rows of the sample, at least (if there are as many)


@dataclass(frozen=True)
class Survey:
    """What a first pass over the data tells.

    Attributes
    ----------
    y, weight : ndarray of shape (n,)
    sample : array or CSR
        Rows of positive weight, at random.
    at : ndarray of int
        Their numbers.
    outline : array or CSR
        The sample, with the columns' smallest and largest values as two more rows.
    """

    y: np.ndarray
    weight: np.ndarray
    sample: Any
    at: np.ndarray
    outline: Any


def reread(owner: str, X: Any, y: Any, sample_weight: Any) -> Source:
    """Open data that can be read again and again."""
    source = open_source(X, y, sample_weight)
    if source.once:
        raise TypeError(
            f"{owner}.fit reads its data several times, and a generator can be read only once. "
            "Pass a callable that makes one, a file, or an array; or call partial_fit with each "
            "chunk."
        )
    if source.parts is None:
        return source
    import dask

    # Partitions of a Dask collection, each computed when its turn comes.
    return IterableSource(lambda: (dask.compute(*partition[:3]) for partition in source.parts))


def survey(owner: str, source: Source, block_rows: int) -> Survey:
    """One pass: labels, ranges, a sample; refuses rows that no map accepts."""
    ys, weights, samples, at = [], [], [], np.zeros(0, np.int64)
    low = high = None
    stride = 1
    for block in source.blocks(block_rows):
        with naming_gams(block.X):
            _check(owner, block)
        n = block.X.shape[0]
        if n == 0:
            continue
        ys.append(np.asarray(block.y))
        weights.append(np.ones(n) if block.w is None else np.asarray(block.w, np.float64))
        least, largest = _ranges(block.X)
        low = least if low is None else np.minimum(low, least)
        high = largest if high is None else np.maximum(high, largest)
        taken = np.flatnonzero((weights[-1] > 0) & _sampled(block.start + np.arange(n), stride))
        samples.append(block.X[taken])
        at = np.concatenate([at, block.start + taken])
        while len(at) > 2 * _SAMPLE_ROWS:  # half of the rows so far
            stride *= 2
            some = np.flatnonzero(_sampled(at, stride))
            samples, at = [_stack(samples)[some]], at[some]
    if low is None:
        raise ValueError(f"{owner}: the data have no rows.")
    if len(at) == 0:
        raise ValueError(f"{owner}: no row has a positive weight.")
    sample = _stack(samples)
    ends = np.stack([low, high]).astype(sample.dtype)
    outline = _stack([sample, type(sample)(ends) if sparse.issparse(sample) else ends])
    return Survey(np.concatenate(ys), np.concatenate(weights), sample, at, outline)


def _sampled(rows: np.ndarray, stride: int) -> np.ndarray:
    """One of `stride` (a power of two) rows, by bits that have nothing to do with their order.

    Every k-th row may be of one kind. A larger stride chooses some of the same rows.
    """
    return mixed_bits(rows) % np.uint64(stride) == 0


def _check(owner: str, block: Block) -> None:
    if block.y is None:
        raise ValueError(
            f"{owner}: the data carry no targets: pass y, or chunks (X, y), or the name of the "
            "column that holds them."
        )
    values = block.X.data[None, :] if sparse.issparse(block.X) else block.X
    if not extent_of(np.ascontiguousarray(values)).is_finite:
        row, column = first_not_finite(values)
        place = "" if sparse.issparse(block.X) else f", row {block.row + row}, column {column}"
        raise ValueError(f"{owner}: Input X contains NaN or infinity (chunk {block.chunk}{place}).")


def _ranges(X: Any) -> tuple[np.ndarray, np.ndarray]:
    return min_max_axis(X.tocsr(), axis=0) if sparse.issparse(X) else column_range(X)


def _stack(parts: list[Any]) -> Any:
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)


def survey_source(owner: str, X: Any, y: Any, sample_weight: Any) -> tuple[Source, Survey, int]:
    """The source, what a first pass over it tells, and the rows of a block."""
    source = reread(owner, X, y, sample_weight)
    head = source.head(16)
    if head is None:
        raise ValueError(f"{owner}: the data have no rows.")
    block_rows = max(64, _BLOCK_VALUES // max(1, head.X.shape[1]))
    return source, survey(owner, source, block_rows), block_rows
