r"""Additive models on data that do not fit into memory: block dual descent.

The dual variables of all examples stay in memory (one number per example and class), the rows come
in blocks and go again.  A visit to a block runs a few epochs of :mod:`.dual` on it, while the
contributions of all other blocks are in the weights: coordinate descent on the same dual, whose
coordinates are merely taken in another order.  The end is the same certified duality gap, summed
over one more pass without steps, so that the objective is that of a fit in memory to `tol`.

A first pass surveys the data: labels, weights, ranges of the columns, and rows spread evenly over
the whole.  The map is fitted to these rows with the ends of the ranges below them, which for maps
that learn ranges alone is the fit to all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from ...data import Block, Source, open_source
from ...data.sources import IterableSource
from ...engine.extent import column_range, extent_of
from ...hashing import mixed_bits
from ._loops import Problem
from .basis import Compiled, rows_of
from .dual import Gap, Settings, Solution, State, descend, small
from .inputs import naming_gams

_KEPT = 4096  # rows of the sample, at least (if there are as many)
_EPOCHS = 3  # on a block, each time that it is read


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
    if source.parts is not None:
        return _in_turn(source)
    return source


def _in_turn(source: Any) -> Source:
    """Partitions of a Dask collection, each computed when its turn comes."""
    import dask

    return IterableSource(lambda: (dask.compute(*part[:3]) for part in source.parts))


def survey(owner: str, source: Source, block_rows: int) -> Survey:
    """One pass: labels, ranges, a sample; refuses rows that no map accepts."""
    ys, weights, kept, at = [], [], [], np.zeros(0, np.int64)
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
        own = _ranges(block.X)
        low = own[0] if low is None else np.minimum(low, own[0])
        high = own[1] if high is None else np.maximum(high, own[1])
        taken = np.flatnonzero((weights[-1] > 0) & _chosen(block.start + np.arange(n), stride))
        kept.append(block.X[taken])
        at = np.concatenate([at, block.start + taken])
        while len(at) > 2 * _KEPT:  # half of the rows kept so far
            stride *= 2
            keep = _chosen(at, stride)
            kept, at = [_stack(kept)[np.flatnonzero(keep)]], at[keep]
    if low is None:
        raise ValueError(f"{owner}: the data have no rows.")
    if len(at) == 0:
        raise ValueError(f"{owner}: no row has a positive weight.")
    sample = _stack(kept)
    ends = np.stack([low, high]).astype(sample.dtype)
    outline = _stack([sample, type(sample)(ends) if sparse.issparse(sample) else ends])
    return Survey(np.concatenate(ys), np.concatenate(weights), sample, at, outline)


def _chosen(rows: np.ndarray, stride: int) -> np.ndarray:
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
    _, row, column = extent_of(np.ascontiguousarray(values))
    if row >= 0:
        place = "" if sparse.issparse(block.X) else f", row {block.row + row}, column {column}"
        raise ValueError(f"{owner}: Input X contains NaN or infinity (chunk {block.chunk}{place}).")


def _ranges(X: Any) -> tuple[np.ndarray, np.ndarray]:
    return min_max_axis(X.tocsr(), axis=0) if sparse.issparse(X) else column_range(X)


def _stack(parts: list[Any]) -> Any:
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)


class Blocks(State):
    """The solver's state where only one block of rows is at hand at a time."""

    def __init__(
        self, compiled: Compiled, sample: Any, problem: Problem, settings: Settings, n: int
    ) -> None:
        self.every, self.duals = problem, np.zeros((n, problem.positive.size))
        self.frozen = np.zeros(problem.positive.size)  # Σβ of rows that are gone (`learn`)
        self.norm, self.shifts = np.zeros(n), np.zeros(n)
        own = problem._replace(y=np.zeros(sample.shape[0]), cost=np.ones(sample.shape[0]))
        examples = np.arange(sample.shape[0], dtype=np.int32)
        start = np.zeros((sample.shape[0], problem.positive.size))
        super().__init__(compiled, rows_of(sample), own, examples, settings, start, None)
        if settings.fit_intercept:
            self._set_scale(float(problem.cost.sum()))
        self.rng = np.random.default_rng(settings.seed)

    def load(self, X: Any, start: int, *, first: bool) -> None:
        """Make one block the rows at hand; at the first time its norms are computed."""
        here = slice(start, start + X.shape[0])
        self.rows, self.beta = rows_of(X), self.duals[here]
        self.problem = replace_rows(self.every, here)
        self.examples = np.flatnonzero(self.problem.cost > 0).astype(np.int32)
        if first:
            self.norm[here], self.shifts[here] = self._norms()
        self.shift = self.shifts[here]
        norm = self.norm[here].copy()
        self._centred(norm)
        self._set_centre(norm)
        self.wake()

    def visit(self, epochs: int = _EPOCHS) -> np.ndarray:
        """A few epochs on the block at hand; what the first of them saw."""
        seen = None
        for _ in range(epochs):
            self.rng.shuffle(self.order[: self.active])
            found = self.sweep()
            seen = found.copy() if seen is None else seen
            if self.active == 0:
                break
        return seen

    def learn(self, X: Any, y: np.ndarray, cost: np.ndarray, most: int) -> None:
        """Optimise the variables of new rows; those of rows before stay as they are.

        With the others fixed the problem is ½|w|² + Σ over these rows of their losses, of which w
        starts from where it is: the gap is again a sum over the examples.
        """
        self.frozen = self._total()
        self.duals, n = np.zeros((len(y), self.used)), len(y)
        self.norm, self.shifts = np.zeros(n), np.zeros(n)
        self.every = self.every._replace(
            y=np.ascontiguousarray(y, np.float64), cost=np.ascontiguousarray(cost, np.float64)
        )
        if self.settings.fit_intercept:
            self._set_scale(float(cost.sum()))
        self.load(X, 0, first=True)
        for _ in range(most):
            if small([self.after(self.visit(1))], self.settings.tol):
                break
            if self.active == 0:
                self.wake()
        if self.settings.fit_intercept:
            self.balanced()

    def go_on(self, w: np.ndarray, offset: np.ndarray) -> None:
        """Start from weights that were trained before."""
        self.w[:], self.offset[:] = w, offset
        self.mean_w, self.mean_offset = w.astype(np.float64), np.array(offset)

    def average(self, share: float) -> np.ndarray:
        """The mean of the weights after each chunk, the last of which has that share of all rows.

        The last chunk's variables alone were free: w leans towards it, the mean does not.
        """
        if share == 1:
            self.mean_w, self.mean_offset = self.w.astype(np.float64), self.offset.copy()
        self.mean_w += share * (self.w - self.mean_w)
        self.mean_offset += share * (self.offset - self.mean_offset)
        return self.mean_w.copy()

    def price(self) -> np.ndarray:
        """Loss, gap and Σ βf of the block at hand, without a step."""
        report = np.zeros_like(self.report)
        count = len(self.examples)
        self.visits += count
        self._pass(self.examples, count, report, np.zeros_like(report), False)
        return report

    def _total(self) -> np.ndarray:
        return self.frozen + self.duals.sum(axis=0)

    def balanced(self) -> bool:
        """Take Σβ off the block at hand as far as its variables reach; whether nothing is left."""
        self._balance()
        left = np.abs(self._total())
        done = bool(np.all(left <= 1e-12 * np.maximum(np.abs(self.duals).sum(axis=0), 1e-300)))
        self.slope[:] = 0.0 if done else self._total()
        return done


def replace_rows(problem: Problem, rows: slice) -> Problem:
    return problem._replace(y=problem.y[rows], cost=problem.cost[rows])


def solve_blocks(
    states: list[Blocks],
    read: Callable[[], Iterator[tuple[Any, int]]],
    each: Callable[[Callable[[Blocks], Any]], list[Any]],
) -> list[Solution]:
    """Pass over the blocks until the duality gaps of all groups of lanes are certified.

    Parameters
    ----------
    states : list of Blocks
        One for each group of lanes.
    read : callable
        Gives the blocks (rows, number of the first row), from the beginning.
    each : callable
        Calls a function with every state (in threads, say).
    """

    def epoch(number: int) -> list[Gap]:
        seen = _over(states, read, each, lambda state: state.visit(), first=number == 1)
        return [state.after(own) for state, own in zip(states, seen, strict=True)]

    settings = states[0].settings
    found, n_iter, converged = descend(settings, epoch, lambda: _certify(states, read, each))
    return [
        Solution(s.w, s.offset, s.duals, primal, gap, n_iter, s.visits, converged)
        for s, (primal, gap) in zip(states, found, strict=True)
    ]


def _over(
    states: list[Blocks], read: Any, each: Any, work: Callable[[Blocks], Any], *, first: bool
) -> list[np.ndarray]:
    """Load every block into every state, and add up what `work` says."""
    total = [np.zeros_like(state.report) for state in states]
    for X, start in read():

        def on_block(state: Blocks, X: Any = X, start: int = start) -> Any:
            state.load(X, start, first=first)
            return work(state)

        for sums, own in zip(total, each(on_block), strict=True):
            sums += own
    return total


def _certify(states: list[Blocks], read: Any, each: Any) -> list[Gap]:
    """Primal values and gaps over all rows, from dual points with Σβ = 0."""
    if states[0].settings.fit_intercept:
        for X, start in read():

            def settle(state: Blocks, X: Any = X, start: int = start) -> bool:
                state.load(X, start, first=False)
                return state.balanced()

            if all(each(settle)):
                break
    reports = _over(states, read, each, lambda state: state.price(), first=False)
    return [(report[1] + 0.5 * report[3], report[2]) for report in reports]
