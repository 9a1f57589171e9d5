"""Training on rows that come in blocks: data that do not fit into memory, and `partial_fit`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from ..._util.threads import mixed_bits, resolve_threads, run_interruptibly
from ...data import Block, Source, open_source
from ...data.sources import IterableSource
from ...engine.extent import column_range, extent_of, first_not_finite
from ..rows.map_tables import basis_tables, lanes_for, pack_weights, unpack_weights
from ..solvers.dual import Solution
from ..solvers.dual_blocks import BlockDescent, DescentOverBlocks
from .fitted import FittedMap, precision_of
from .inputs import naming_gams
from .problem import Options, Progress, Targets, costs_of
from .training import dual_options, joined, lane_groups, problem_of

_MOST_EPOCHS = 100  # on one chunk of `partial_fit`

Kind = tuple[bool, np.dtype]  # whether rows are sparse, and their type


def train_on_source(
    source: Source,
    block_rows: int,
    sample: Any,
    targets: Targets,
    C: float,
    fitted: FittedMap,
    options: Options,
) -> Solution:
    """Solve with all rows of a source; `sample` holds the whole range of the values."""
    cost = costs_of(options.owner, C, targets.weight)
    states = _solvers(sample, targets, cost, fitted, options)

    def read() -> Iterator[tuple[Any, int]]:
        for block in source.blocks(block_rows):
            if block.X.shape[0]:
                yield fitted.block(block.X), block.start

    solutions = DescentOverBlocks(states, read, _in_threads(states, options.n_jobs)).solve()
    for solution, state in zip(solutions, states, strict=True):
        solution.weights = unpack_weights(solution.weights, state.tables, state.n_outputs)
    return joined(solutions)


def _solvers(
    sample: Any, targets: Targets, cost: np.ndarray, fitted: FittedMap, options: Options
) -> list[BlockDescent]:
    """Solvers of all groups of lanes; `sample` holds the whole range of the values."""
    groups = lane_groups(targets, np.inf, options.n_jobs)
    of_group, states = dual_options(options, len(groups)), []
    precision = precision_of(sample, options.tol)
    for group in groups:
        problem = problem_of(options, targets.y, targets.positive[group], cost)
        lanes = lanes_for(group.stop - group.start)
        tables = basis_tables(fitted.spec, sample, precision, lanes, all_codes=True)
        states.append(BlockDescent(tables, sample, problem, of_group))
    return states


def _in_threads(
    states: list[BlockDescent], n_jobs: int | None
) -> Callable[[Callable[[BlockDescent], Any]], list[Any]]:
    """Call a function with every state, in as many threads as are allowed."""
    return lambda work: run_interruptibly(work, states, resolve_threads(n_jobs))


def kind_of(rows: Any) -> Kind:
    """Whether rows are sparse, and their type."""
    return sparse.issparse(rows), rows.dtype


def check_kind(owner: str, rows: Any, first: Kind) -> None:
    """Refuse a chunk of another kind than the first, whose tables are in use."""
    is_sparse, dtype = first
    if sparse.issparse(rows) != is_sparse:
        raise TypeError(
            f"{owner}.partial_fit: the first chunk was {'sparse' if is_sparse else 'dense'}, this "
            "one is not."
        )
    if rows.dtype != dtype:
        raise TypeError(
            f"{owner}.partial_fit: the first chunk was of {dtype}, this one is of {rows.dtype}: "
            "convert it."
        )


class ChunkTraining:
    """Solvers that learn one chunk of rows after the other, for `partial_fit`."""

    def __init__(
        self, rows: Any, targets: Targets, cost: np.ndarray, fitted: FittedMap, options: Options
    ) -> None:
        self.kind = kind_of(rows)
        self.states = _solvers(rows, targets, cost, fitted, options)
        self._groups = lane_groups(targets, np.inf, options.n_jobs)

    def start_from(self, weights: np.ndarray, offset: np.ndarray) -> None:
        """Start from the weights of a trained model."""
        for state, group in zip(self.states, self._groups, strict=True):
            state.start_from(pack_weights(state.tables, weights[:, :, group]), offset[group])

    def resume(self, progress: Progress) -> None:
        """Stand where the solvers of a saved model stood."""
        for state, group in zip(self.states, self._groups, strict=True):
            state.w[:] = pack_weights(state.tables, progress.weights[:, :, group])
            state.bias[:] = progress.offset[group]
            state.past_alpha_sum = np.array(progress.balance[group])
        self.kind = progress.kind

    def learn(self, rows: Any, targets: Targets, cost: np.ndarray, options: Options) -> None:
        """Optimise the dual variables of one chunk; those of earlier chunks stay."""
        most = min(options.max_iter, _MOST_EPOCHS)
        learn_in_threads = _in_threads(self.states, options.n_jobs)
        learn_in_threads(lambda state: state.learn(rows, targets.y, cost, most))

    def mean(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """Weights and offsets averaged over the chunks; the last has that share of all rows."""
        weights = [unpack_weights(s.average(share), s.tables, s.n_outputs) for s in self.states]
        offset = np.concatenate([state.mean_intercept for state in self.states])
        return np.concatenate(weights, axis=2), offset

    def progress(self) -> Progress:
        """What the next chunk needs, without the solvers and their last rows."""
        states = self.states
        weights = [unpack_weights(s.w.astype(np.float64), s.tables, s.n_outputs) for s in states]
        return Progress(
            weights=np.concatenate(weights, axis=2),
            offset=np.concatenate([state.bias for state in states]).astype(np.float64),
            balance=np.concatenate([state._alpha_total() for state in states]),
            sparse=bool(self.kind[0]),
            dtype=str(self.kind[1]),
        )


_BLOCK_VALUES = 2**23  # numbers of one block, about
_SAMPLE_ROWS = 4096  # rows of the sample, at least (if there are as many)


@dataclass(frozen=True)
class FirstPass:
    """What a first pass over the data tells.

    Attributes
    ----------
    y, weight : ndarray of shape (n,)
    sample : array or CSR
        Rows of positive weight, at random.
    sampled : ndarray of int
        Their numbers.
    outline : array or CSR
        The sample, with the columns' smallest and largest values as two more rows.
    """

    y: np.ndarray
    weight: np.ndarray
    sample: Any
    sampled: np.ndarray
    outline: Any


def open_rereadable(owner: str, X: Any, y: Any, sample_weight: Any) -> Source:
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


def read_once(owner: str, source: Source, block_rows: int) -> FirstPass:
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
    return FirstPass(np.concatenate(ys), np.concatenate(weights), sample, at, outline)


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


def sample_source(owner: str, X: Any, y: Any, sample_weight: Any) -> tuple[Source, FirstPass, int]:
    """The source, what a first pass over it tells, and the rows of a block."""
    source = open_rereadable(owner, X, y, sample_weight)
    head = source.head(16)
    if head is None:
        raise ValueError(f"{owner}: the data have no rows.")
    block_rows = max(64, _BLOCK_VALUES // max(1, head.X.shape[1]))
    return source, read_once(owner, source, block_rows), block_rows
