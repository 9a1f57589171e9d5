r"""Dual coordinate descent on rows that come in blocks, for data that do not fit into memory.

The dual variables of all examples stay in memory (one number per example and class), the rows come
in blocks and go again.  A turn of a block runs a few epochs of :mod:`.dual` on it, while the
contributions of all other blocks are in the weights: coordinate descent on the same dual, whose
coordinates are merely taken in another order.  The end is the same certified duality gap, summed
over one more pass without steps, so that the objective is that of a fit in memory to `tol`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._util.threads import run_interruptibly
from ..rows.map_tables import BasisTables, rows_of
from ._dual_loops import PassTotals, SVMProblem
from .dual import CoordinateDescent, GapCertificate, Solution, descend

if TYPE_CHECKING:
    from ..svm.problem import Options

_EPOCHS = 3  # on a block, each time that it is read


class BlockDescent(CoordinateDescent):
    """Dual coordinate descent of which only one block of rows is in memory at a time.

    Attributes
    ----------
    all_problem, all_alpha : SVMProblem, ndarray
        Targets, costs and dual variables of the rows of all blocks.
    """

    def __init__(
        self, tables: BasisTables, sample: Any, problem: SVMProblem, options: Options
    ) -> None:
        n = len(problem.y)
        self.all_problem, self.all_alpha = problem, np.zeros((n, problem.positive.size))
        self._sq_norms, self._mean_dots = np.zeros((2, n))  # of blocks that were loaded before
        self._loaded: set[int] = set()  # their first rows
        # The centre is that of the sample.
        size = sample.shape[0]
        sample_problem = problem._replace(y=np.zeros(size), cost=np.ones(size))
        examples, start = np.arange(size, dtype=np.int32), np.zeros((size, len(problem.positive)))
        super().__init__(tables, rows_of(sample), sample_problem, examples, options, start, None)
        if options.fit_intercept:
            self.set_penalty_weight(float(problem.cost.sum()))

    def load(self, X: Any, start: int) -> None:
        """Make one block the rows at hand; at the first time its norms are computed."""
        span = slice(start, start + X.shape[0])
        self.rows, self.alpha, problem = rows_of(X), self.all_alpha[span], self.all_problem
        self.problem = problem._replace(y=problem.y[span], cost=problem.cost[span])
        self.examples = np.flatnonzero(self.problem.cost > 0).astype(np.int32)
        sq_norm, mean_dot = self._sq_norms[span], self._mean_dots[span]
        if start not in self._loaded:
            self._loaded.add(start)
            sq_norm[:], mean_dot[:] = self._centred_norms()
        self._set_hessian(sq_norm, mean_dot)
        self.activate_all()

    def run_block_epochs(self) -> PassTotals:
        """A few epochs on the block at hand; the totals of the first of them."""
        totals = PassTotals(*np.array(self.update_active()))  # a copy
        for _ in range(_EPOCHS - 1):
            if self.n_active:
                self.update_active()
        return totals

    def block_totals(self) -> PassTotals:
        """The totals of the block at hand, without a step."""
        return PassTotals(*np.array(self.pass_over_all()))

    def balance_block(self) -> bool:
        """Take s off the block at hand as far as its variables allow; whether it is zero then."""
        self.balance()
        total = self.sum_duals()
        size = np.maximum(np.abs(self.all_alpha).sum(axis=0), 1e-300)
        is_zero = bool(np.all(np.abs(total) <= 1e-12 * size))
        self.alpha_sum[:] = 0.0 if is_zero else total
        return is_zero

    def sum_duals(self) -> np.ndarray:
        return self.all_alpha.sum(axis=0)


@dataclass(frozen=True)
class DescentOverBlocks:
    """Coordinate descent of several groups of outputs that share passes over blocks.

    Attributes
    ----------
    groups : list of BlockDescent
        One for each group of outputs.
    read : callable
        Gives the blocks (rows, number of the first row), from the beginning.
    n_threads : int
    """

    groups: list[BlockDescent]
    read: Callable[[], Iterator[tuple[Any, int]]]
    n_threads: int

    def run_epoch(self) -> GapCertificate:
        """A few epochs on each block; estimated primal values and gaps of all outputs."""
        totals = self._join_totals(BlockDescent.run_block_epochs)
        for group in self.groups:
            group.update_intercept()
        return self._certificate(totals)

    def balance_and_certify(self) -> GapCertificate:
        """Make s zero, across blocks if need be; primal values and gaps there."""
        if self.groups[0].options.fit_intercept:
            for is_balanced in self._map_blocks(BlockDescent.balance_block):
                if all(is_balanced):
                    break
        return self._certificate(self._join_totals(BlockDescent.block_totals))

    def _map_blocks(self, work: Callable[[BlockDescent], Any]) -> Iterator[list[Any]]:
        """Load every block into every group; what `work` returns for each group."""
        for X, start in self.read():

            def load_and_work(group: BlockDescent, X: Any = X, start: int = start) -> Any:
                group.load(X, start)
                return work(group)

            yield run_interruptibly(load_and_work, self.groups, self.n_threads)

    def _join_totals(self, work: Callable[[BlockDescent], PassTotals]) -> list[PassTotals]:
        """Totals over all blocks, of each group."""
        return [
            reduce(PassTotals.merge, parts) for parts in zip(*self._map_blocks(work), strict=True)
        ]

    def _certificate(self, totals: list[PassTotals]) -> GapCertificate:
        """Of the outputs of all groups, one after the other."""
        parts = (group.certificate(item) for group, item in zip(self.groups, totals, strict=True))
        primal, gap = zip(*parts, strict=True)
        return GapCertificate(np.concatenate(primal), np.concatenate(gap))

    def solve(self) -> list[Solution]:
        """Pass over the blocks until all duality gaps are certified; solutions of the groups."""
        options = self.groups[0].options
        certificate, n_iter, converged = descend(self, options, options.max_iter)
        ends = np.cumsum([group.n_outputs for group in self.groups])[:-1]
        parts = zip(*(np.split(values, ends) for values in certificate), strict=True)
        return [
            group.solution(group.all_alpha, GapCertificate(*part), n_iter, converged)
            for group, part in zip(self.groups, parts, strict=True)
        ]
