r"""Dual coordinate descent on rows that come in blocks, for data that do not fit into memory.

The dual variables of all examples stay in memory (one number per example and class), the rows come
in blocks and go again.  A visit to a block runs a few epochs of :mod:`.dual` on it, while the
contributions of all other blocks are in the weights: coordinate descent on the same dual, whose
coordinates are merely taken in another order.  The end is the same certified duality gap, summed
over one more pass without steps, so that the objective is that of a fit in memory to `tol`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..rows.map_tables import Compiled, rows_of
from ._dual_loops import SVMProblem
from .dual import CoordinateDescent, DualOptions, Gap, Solution, all_small, descend

_EPOCHS = 3  # on a block, each time that it is read


class BlockDescent(CoordinateDescent):
    """Dual coordinate descent of which only one block of rows is in memory at a time."""

    def __init__(
        self, compiled: Compiled, sample: Any, problem: SVMProblem, options: DualOptions
    ) -> None:
        self.frozen = np.zeros(problem.positive.size)  # Σβ of rows that are gone (`learn`)
        self._set_problem(problem)
        # The centre is that of the sample.
        size = sample.shape[0]
        of_sample = problem._replace(y=np.zeros(size), cost=np.ones(size))
        examples, start = np.arange(size, dtype=np.int32), np.zeros((size, len(problem.positive)))
        super().__init__(compiled, rows_of(sample), of_sample, examples, options, start, None)
        if options.fit_intercept:
            self._set_scale(float(problem.cost.sum()))
        self.rng = np.random.default_rng(options.seed)

    def _set_problem(self, problem: SVMProblem) -> None:
        """Set the problem of all rows, with duals that are zero."""
        n = len(problem.y)
        self.all_rows, self.duals = problem, np.zeros((n, problem.positive.size))
        self.norm, self.shifts = np.zeros((2, n))

    def load(self, X: Any, start: int, *, first: bool) -> None:
        """Make one block the rows at hand; at the first time its norms are computed."""
        span = slice(start, start + X.shape[0])
        self.rows, self.beta, problem = rows_of(X), self.duals[span], self.all_rows
        self.problem = problem._replace(y=problem.y[span], cost=problem.cost[span])
        self.examples = np.flatnonzero(self.problem.cost > 0).astype(np.int32)
        if first:
            self.norm[span], self.shifts[span] = self._norms()
        self.shift = self.shifts[span]
        norm = self.norm[span].copy()
        self._centred(norm)
        self._set_centre(norm)
        self.activate_all()

    def visit(self, epochs: int = _EPOCHS) -> np.ndarray:
        """A few epochs on the block at hand; the sums of the first of them."""
        sums: list[np.ndarray] = []
        while len(sums) < epochs and (self.active or not sums):
            self.rng.shuffle(self.order[: self.active])
            sums.append(self.sweep())
        return sums[0]

    def learn(self, X: Any, y: np.ndarray, cost: np.ndarray, most: int) -> None:
        """Optimise the variables of new rows; those of rows before stay as they are.

        With the others fixed the problem is ½|w|² + Σ over these rows of their losses, of which w
        starts from where it is: the gap is again a sum over the examples.
        """
        self.frozen = self._total()
        y, cost = (np.ascontiguousarray(values, np.float64) for values in (y, cost))
        self._set_problem(self.all_rows._replace(y=y, cost=cost))
        if self.options.fit_intercept:
            self._set_scale(float(cost.sum()))
        self.load(X, 0, first=True)
        for _ in range(most):
            if all_small([self.after(self.visit(1))], self.options.tol):
                break
            if self.active == 0:
                self.activate_all()
        if self.options.fit_intercept:
            self.balance()

    def start_from(self, w: np.ndarray, offset: np.ndarray) -> None:
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
        self.visits += len(self.examples)
        return self._pass(self.examples, len(self.examples), False)[1]

    def _total(self) -> np.ndarray:
        return self.frozen + self.duals.sum(axis=0)

    def balance(self) -> bool:
        """Take Σβ off the block at hand as far as its variables allow; whether it is zero then."""
        self._balance()
        left = np.abs(self._total())
        done = bool(np.all(left <= 1e-12 * np.maximum(np.abs(self.duals).sum(axis=0), 1e-300)))
        self.beta_sum[:] = 0.0 if done else self._total()
        return done


def solve_blocks(
    states: list[BlockDescent],
    read: Callable[[], Iterator[tuple[Any, int]]],
    for_states: Callable[[Callable[[BlockDescent], Any]], list[Any]],
) -> list[Solution]:
    """Pass over the blocks until the duality gaps of all groups of lanes are certified.

    Parameters
    ----------
    states : list of BlockDescent
        One for each group of lanes.
    read : callable
        Gives the blocks (rows, number of the first row), from the beginning.
    for_states : callable
        Calls a function with every state (in threads, say).
    """

    def epoch(number: int) -> list[Gap]:
        parts = _on_blocks(read, for_states, BlockDescent.visit, first=number == 1)
        return [state.after(sums) for state, sums in zip(states, _total(parts), strict=True)]

    options = states[0].options
    gaps, n_iter, converged = descend(options, epoch, lambda: _certify(options, read, for_states))
    return [
        Solution(s.w, s.offset, s.duals, primal, gap, n_iter, s.visits, converged)
        for s, (primal, gap) in zip(states, gaps, strict=True)
    ]


def _on_blocks(
    read: Any, for_states: Any, work: Callable[[BlockDescent], Any], *, first: bool = False
) -> Iterator[list[Any]]:
    """Load every block into every state; what `work` returns for each state."""
    for X, start in read():

        def on_block(state: BlockDescent, X: Any = X, start: int = start) -> Any:
            state.load(X, start, first=first)
            return work(state)

        yield for_states(on_block)


def _total(parts: Iterator[list[np.ndarray]]) -> list[np.ndarray]:
    """The sums over all blocks, of each state."""
    return [sum(of_state) for of_state in zip(*parts, strict=True)]


def _certify(options: DualOptions, read: Any, for_states: Any) -> list[Gap]:
    """Primal values and gaps over all rows, from dual points with Σβ = 0."""
    if options.fit_intercept:
        for balanced in _on_blocks(read, for_states, BlockDescent.balance):
            if all(balanced):
                break
    all_sums = _total(_on_blocks(read, for_states, BlockDescent.price))
    return [(sums[1] + 0.5 * sums[3], sums[2]) for sums in all_sums]
