"""Training on rows that come in blocks: data that do not fit into memory, and `partial_fit`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..._util.threads import resolve_threads, run_interruptibly
from ...data import Source
from ..rows.map_tables import basis_tables, lanes_for, pack_weights, unpack_weights
from ..solvers.dual import Solution
from ..solvers.dual_blocks import BlockDescent, DescentOverBlocks
from .fitted_map import FittedMap
from .problem import Options, Targets, costs_of, precision_of
from .training import dual_options, joined, lane_groups, problem_of
from .training_summary import Progress

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
