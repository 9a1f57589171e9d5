r"""Dual coordinate descent for additive SVMs (Hsieh et al. 2008): the outer loop.

The primal problem, for weights w, an intercept b that is not penalised and costs c_i, and its dual:

.. math::

    P(w, b) &= ½\|w\|² + \sum_i c_i\,ℓ(y_i, ⟨w, ψ_i⟩ + b), \\
    -D(α) &= ½\|w\|² + \sum_i (c_iℓ)^*(-α_i), \qquad w = \sum_i α_i ψ_i, \quad \sum_i α_i = 0.

For a class, α_i has the sign of y_i: it is scikit-learn's ``dual_coef_``, and y_i α_i in the
notation of LIBLINEAR.

**The intercept** is the multiplier of the constraint, which is met by an augmented Lagrangian
(method of multipliers). Coordinate descent minimises

.. math:: -D(α) + b s + ½ σ s², \qquad s = \sum_i α_i,

and after each epoch b grows by σs; σ is the `penalty_weight`. Where s = 0, any vector m may be
taken off all ψ_i without changing the problem. With their mean, the diagonal of the dual,
:math:`Q_{ii} = \|ψ_i - m\|² + σ`, is small, and steps are long: for splines, whose functions sum to
one, most of :math:`\|ψ_i\|²` is the mean. The loops keep the weights W = Σ α_i ψ_i, which are not
centred, and the score of an example is

.. math:: f_i = ⟨W, ψ_i⟩ - s ⟨m, ψ_i⟩ + \text{bias}, \qquad
          \text{bias} = b - ⟨W, m⟩ + s\,(\|m\|² + σ).

Where s = 0, W is w, and the bias is the intercept of the model.

**An epoch** (:meth:`CoordinateDescent.run_epoch`) visits the active examples in random order, and
minimises over one α_i at a time (:func:`._dual_loops.visit_examples`).

**Shrinking**: an example whose α_i stays at a bound, where the derivative of the dual is larger
than a share of the largest |Δα_i| Q_ii of the last pass, is not active until the others have
converged. For losses with kinks, |Δα_i| Q_ii is the projected gradient, which LIBLINEAR takes,
with a share of one; for smooth ones it is smaller.

**The end** is certified: s is made exactly zero, and the duality gap, a sum over all examples of
Fenchel's inequality, must be at most ``tol`` times P.

Several outputs (classes) are trained at once. The weights of one basis function for all outputs lie
side by side and fill the *lanes* of a vector register: a value is located once for all of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..._util.display import track
from ..._util.threads import check_stop, run_interruptibly
from ...engine.table.update import RowArrays, RowWork, weights_of
from ..losses import dual_rules_of
from ..rows.map_tables import BasisTables, weight_memory, workspace_for
from . import _dual_loops
from ._dual_loops import DualHessian, DualVariables, PassRecord, PassTotals, SVMProblem

NO_SHRINKING = 1e30  # a threshold that no derivative reaches


@dataclass(frozen=True)
class DescentConstants:
    """Constants of coordinate descent.

    In parentheses: visits to examples with other values, relative to those with the default, as the
    geometric mean of 20 fits to 2000 rows (five losses, C from 0.001 to 1, rare and frequent
    classes, numbers and counts), and the worst of them where it matters. Differences below 0.07 are
    noise: another choice among equal variables in `_largest` makes as much.
    """

    # Threshold of shrinking, as a share of the largest violation (0.1: 1.09; 1, as in LIBLINEAR:
    # 1.11; 3: 1.17; without shrinking: 1.45, worst 5.3).
    shrink_share: float = 0.3
    # Weight σ of the constraint's square, as a share of the mean of |ψ_i − m|² (0.01: 1.34,
    # worst 5.0; 0.03: 1.16; 0.3: 1.03; 1: 1.04).
    penalty_share: float = 0.1
    # Smallest σ, in units of 1/Σc (0.5: 1.07, worst 3.2; 1: 1.02; 16: 1.00). Where losses count for
    # little beside ½|w|², the intercept alone is left to move, and 1/Σc is the curvature of its
    # step.
    min_penalty: float = 4.0
    # A gap that is estimated during an epoch must be `tol` times a factor, which shrinks each time
    # that the exact gap turns out to be larger (never: 1.06, worst 1.7; by 0.5: 1.03), down to
    # a least one (0.7: 1.00).
    estimate_factor: float = 0.7
    min_estimate_factor: float = 0.2
    # Variables that make up for s ≠ 0 sum to so many times |s|: each loses a quarter, at most (1:
    # 1.05; 2: 1.02; 16: 0.97).
    balance_reserve: float = 4.0
    # How many of the largest variables are sorted for that; all are, if they do not suffice.
    balance_candidates: int = 256
    mean_rows: int = 250  # whose mean is m: any vector is right (100: 1.01; all rows: 1.00)
    approximate_share: float = 0.75  # of `max_iter`, at most, on approximate rows


CONSTANTS = DescentConstants()


class GapCertificate(NamedTuple):
    """Primal values and duality gaps of some outputs."""

    primal: np.ndarray
    gap: np.ndarray

    def is_within(self, tol: float) -> bool:
        """Whether all gaps are numbers of at most `tol` times the objective.

        A gap is a sum of non-negative terms: one below zero by more than that is rounding, and
        certifies nothing.
        """
        return bool((np.abs(self.gap) <= tol * self.primal).all())


class Descent(Protocol):
    """Coordinate descent on some form of rows."""

    def run_epoch(self) -> GapCertificate:
        """Take steps; primal values and gaps as estimated on the way."""
        ...

    def balance_and_certify(self) -> GapCertificate:
        """Make s zero; primal values and gaps at that point."""
        ...


@dataclass(frozen=True)
class DualOptions:
    """How to solve, and when to stop."""

    fit_intercept: bool
    tol: float
    max_iter: int
    seed: int
    n_threads: int
    progress: bool | None = False


@dataclass
class Solution:
    """Weights [feature][basis][output], intercepts and dual variables of a group of outputs."""

    weights: np.ndarray
    intercept: np.ndarray
    alpha: np.ndarray
    primal: np.ndarray
    gap: np.ndarray
    n_iter: int
    converged: bool
    solver: str = "dual"

    def scattered(self, rows: np.ndarray, n: int) -> Solution:
        """The solution of some of n rows: the dual variables of the others are zero."""
        alpha = np.zeros((n, self.alpha.shape[1]))
        alpha[rows] = self.alpha
        return replace(self, alpha=alpha)


def in_blocks(n_threads: int, n: int, work: Callable[[int, int], Any]) -> list[Any]:
    """``work(begin, end)`` over blocks of 0 … n, one per thread; the loops release the GIL."""
    step = max(1, -(-n // n_threads))
    blocks = [(begin, min(n, begin + step)) for begin in range(0, n, step)]
    if len(blocks) <= 1:
        return [work(*block) for block in blocks]
    return run_interruptibly(lambda block: work(*block), blocks, len(blocks))


def solve(
    tables: BasisTables,
    rows: RowArrays,
    problem: SVMProblem,
    examples: np.ndarray,
    options: DualOptions,
    alpha: np.ndarray,
    intercept: np.ndarray | None = None,
    approximate: tuple[BasisTables, RowArrays] | None = None,
) -> Solution:
    """Solve the problems of all outputs to a relative duality gap of `tol`.

    Parameters
    ----------
    tables : BasisTables
        The map's tables.
    rows : RowArrays
        The examples.
    problem : SVMProblem
        Loss, targets and costs.
    examples : int32[m]
        The rows to train on, all of positive cost.
    options : DualOptions
        Tolerance, iterations, threads.
    alpha : float64[n, outputs]
        Where to start, and where the dual variables go.
    intercept : ndarray, optional
        Where to start.
    approximate : tables and rows, optional
        Those of lower precision, which take less time: their solution is where to start.
    """
    if intercept is None and options.fit_intercept and not alpha.any():
        intercept = initial_intercepts(problem)
    first_rows = approximate or (tables, rows)
    state = CoordinateDescent(*first_rows, problem, examples, options, alpha, intercept)
    n_iter, converged = 0, False
    if approximate is not None:
        most = int(np.ceil(CONSTANTS.approximate_share * options.max_iter))
        _, n_iter, _ = descend(state, replace(options, max_iter=most))
        state.switch_rows(tables, rows)
        certificate = state.balance_and_certify()
        converged = certificate.is_within(options.tol)
    n_left = options.max_iter - n_iter
    if not converged and n_left > 0:
        certificate, further, converged = descend(state, replace(options, max_iter=n_left))
        n_iter += further
    return state.solution(state.alpha, certificate, n_iter, converged)


def descend(solver: Descent, options: DualOptions) -> tuple[GapCertificate, int, bool]:
    """Epochs until the gaps of all outputs are certified; their number, and whether so."""
    factor, converged, n_iter = 1.0, False, 0
    for _ in track(range(options.max_iter), "training", enabled=options.progress):
        check_stop()
        n_iter += 1
        estimate = solver.run_epoch()
        if not estimate.is_within(factor * options.tol):
            continue
        certificate = solver.balance_and_certify()
        converged = certificate.is_within(options.tol)
        if converged:
            break
        factor = max(CONSTANTS.min_estimate_factor, CONSTANTS.estimate_factor * factor)
    if not converged:
        certificate = solver.balance_and_certify()
        converged = certificate.is_within(options.tol)
    return certificate, n_iter, converged


def initial_intercepts(problem: SVMProblem) -> np.ndarray | None:
    """The intercepts that are best without weights, where these are not next to 0."""
    start = dual_rules_of(problem.loss).start
    if start is None:
        return None
    shares = np.array([problem.cost[problem.y == code].sum() for code in problem.positive])
    return start(shares / problem.cost.sum())


class CoordinateDescent:
    """Weights, dual variables, active set and totals of dual coordinate descent.

    Attributes
    ----------
    w : ndarray
        The weights W, flat [feature][basis][lane].
    alpha, alpha_sum, bias : ndarray
        Dual variables, their sum s, and the bias, of each output.
    hessian : DualHessian
        The diagonal of the dual, and what centres it.
    mean_sq_norm, penalty_weight, min_penalty_weight : float
        |m|², σ, and a lower limit of σ.
    order, n_active : int64 array, int
        The examples, the active ones first.
    record : PassRecord
        Derivatives at a bound above which examples are shrunk, and totals, those of examples that
        are not active from the pass that shrunk them.
    """

    n_active: int

    def __init__(
        self,
        tables: BasisTables,
        rows: RowArrays,
        problem: SVMProblem,
        examples: np.ndarray,
        options: DualOptions,
        alpha: np.ndarray,
        intercept: np.ndarray | None,
    ) -> None:
        self.tables, self.rows, self.problem, self.options = tables, rows, problem, options
        self.examples, self.alpha, self.n_outputs = examples, alpha, problem.positive.size
        self.rng = np.random.default_rng(options.seed)
        self.w = weight_memory(tables)
        self._bound: tuple[tuple, Any] = (None,) * 4, ()
        self.n_certificates = 0
        self.mean_sq_norm = self.penalty_weight = 0.0
        self._centre()
        self.bias = np.zeros(self.n_outputs) if intercept is None else np.array(intercept, float)
        self.alpha_sum = np.zeros(self.n_outputs)
        self.record = PassRecord.empty(np.full(self.n_outputs, NO_SHRINKING))
        if self._accumulate_duals() and options.fit_intercept:
            # The intercept that was given is the one where Σα = 0.
            self.update_intercept()
            self.balance()
        self.activate_all()

    def solution(
        self, alpha: np.ndarray, certificate: GapCertificate, n_iter: int, converged: bool
    ) -> Solution:
        """The solution with these dual variables, and how it was reached."""
        return Solution(self.w, self.bias, alpha, *certificate, n_iter, converged)

    # The map: weights from dual variables, norms and centre.

    def _accumulate_duals(self) -> bool:
        """Add Σ α_i ψ_i to the weights; whether any α_i is not zero."""
        nonzero = np.flatnonzero(self.alpha.any(axis=1))
        if len(nonzero):
            self._add_to_weights(nonzero, self.alpha[nonzero])
        return len(nonzero) > 0

    def switch_rows(self, tables: BasisTables, rows: RowArrays) -> None:
        """Other tables of the same bases, and the same rows in another form, with these duals.

        The centre stays: it is without effect where s = 0, as after a certificate. So do lengths of
        steps: |ψ_i|² is nearly the same, and steps up to twice as long would converge.
        """
        self.tables, self.rows, self.n_certificates = tables, rows, 0
        self.w = weight_memory(tables)
        self._accumulate_duals()

    def _add_to_weights(self, examples: np.ndarray, steps: np.ndarray) -> None:
        """Add the sum of ψ_i, times the steps of the examples, to the weights."""
        work, workspace = self._bound_arguments()
        work = RowWork(work.bins, changed=work.changed)  # the same type as that of a mean
        _dual_loops.accumulate(work, self.rows, workspace, examples.astype(np.int32), steps)

    def _mean_of(self, examples: np.ndarray) -> np.ndarray:
        """The mean of ψ_i of some examples, in the layout of the weights."""
        tables, rows, mean = self.tables, self.rows, weight_memory(self.tables)
        basis, lanes = tables.basis, tables.lanes
        changed = weights_of(basis, basis.update, lanes, mean)
        work, workspace = RowWork(basis.bins, changed=changed), workspace_for(tables, rows)
        shares = np.full((len(examples), 1), 1.0 / len(examples))
        _dual_loops.accumulate(work, rows, workspace, examples.astype(np.int32), shares)
        return mean

    def _centre(self) -> None:
        """Set m, σ and the diagonal of the dual; without an intercept, m and σ are zero."""
        self.mean = weight_memory(self.tables)
        if not self.options.fit_intercept:
            self._set_hessian(*self._norms())
            return
        sample = self.examples[:: -(-len(self.examples) // CONSTANTS.mean_rows)]
        self.mean = self._mean_of(sample)
        sq_norm, mean_dot = self._norms()
        self.mean_sq_norm = float(mean_dot[sample].mean())
        self._centre_norms(sq_norm, mean_dot)
        mean_square = float(sq_norm[self.examples].mean())
        self.min_penalty_weight = CONSTANTS.penalty_share * mean_square
        self.set_penalty_weight(float(self.problem.cost[self.examples].sum()))
        self._set_hessian(sq_norm, mean_dot)

    def set_penalty_weight(self, cost: float) -> None:
        """Set σ for examples that cost so much together."""
        least = CONSTANTS.min_penalty / max(cost, 1e-300)
        self.penalty_weight = max(self.min_penalty_weight, least)

    def _norms(self) -> tuple[np.ndarray, np.ndarray]:
        """|ψ_i|² and ⟨m, ψ_i⟩ of all rows at hand."""
        tables, rows, n = self.tables, self.rows, self.problem.y.size
        sq_norm, mean_dot = np.empty(n), np.empty((n, 1, 1), tables.basis.values.coef.dtype)
        basis = tables.basis
        scored = weights_of(basis, basis.values, tables.lanes, self.mean)
        work = RowWork(basis.bins, scored=scored, squares=basis.squares)

        def part(begin: int, end: int) -> None:
            part_rows = np.arange(begin, end, dtype=np.int64)
            workspace, out = workspace_for(tables, rows), mean_dot[begin:end]
            _dual_loops.evaluate(work, rows, workspace, part_rows, sq_norm[begin:end], out)

        in_blocks(self.options.n_threads, n, part)
        return sq_norm, mean_dot[:, 0, 0].astype(np.float64, copy=False)

    def _centre_norms(self, sq_norm: np.ndarray, mean_dot: np.ndarray) -> None:
        """|ψ_i − m|² from |ψ_i|² and ⟨m, ψ_i⟩, in place."""
        sq_norm += self.mean_sq_norm
        sq_norm -= mean_dot
        sq_norm -= mean_dot

    def _set_hessian(self, sq_norm: np.ndarray, mean_dot: np.ndarray) -> None:
        """Set the dual's Hessian from |ψ_i − m|², whose memory becomes the diagonal's."""
        sq_norm += self.penalty_weight
        diagonal = np.maximum(sq_norm, 1e-12, out=sq_norm)
        self.hessian = DualHessian(diagonal, mean_dot, self.mean_sq_norm + self.penalty_weight)

    # Epochs.

    def run_epoch(self) -> GapCertificate:
        """Visit the active examples and update the intercept; estimated primal values and gaps."""
        totals = self.update_active()
        self.update_intercept()
        return self.certificate(totals)

    def update_active(self) -> PassTotals:
        """Take steps in the active examples; totals of all, valid until the next pass."""
        self.rng.shuffle(self.order[: self.n_active])
        self.n_active, record = self._run_pass(self.order, self.n_active, take_steps=True)
        self._set_shrink_threshold(record.visited)
        return record.visited

    def update_intercept(self) -> None:
        """The multiplier's step of the augmented Lagrangian, b += σs."""
        if self.options.fit_intercept:
            self.alpha_sum[:] = self._alpha_total()
            self.bias += self.penalty_weight * self.alpha_sum

    def certificate(self, totals: PassTotals) -> GapCertificate:
        """Primal values and gaps from totals of all examples: exact where s = 0."""
        sq_norm = totals.alpha_dot_score - self.bias * self.alpha_sum
        return GapCertificate(totals.loss + 0.5 * sq_norm, totals.gap)

    def _alpha_total(self) -> np.ndarray:
        """Σα of each output."""
        return self.alpha.sum(axis=0)

    def _set_shrink_threshold(self, totals: PassTotals) -> None:
        self.record.shrink_threshold[:] = CONSTANTS.shrink_share * totals.max_violation

    def _run_pass(
        self, order: np.ndarray, n_active: int, *, take_steps: bool
    ) -> tuple[int, PassRecord]:
        """Visit the first examples of an order; how many of them stay active, and totals.

        Totals of a pass with steps are valid until the next one.
        """
        (work, workspace), record = self._bound_arguments(), self.record
        if not take_steps:  # several threads do so at a time
            workspace = workspace_for(self.tables, self.rows)
            record = PassRecord.empty(record.shrink_threshold)
        duals = DualVariables(self.alpha, self.alpha_sum, self.bias)
        n_active = _dual_loops.visit_examples(
            work, self.rows, workspace, duals, record, order, n_active, take_steps
        )
        return n_active, record

    def _bound_arguments(self) -> tuple[Any, ...]:
        """Work and workspace of the loop, made once for the same tables and rows."""
        bound_to = (self.tables, self.rows, self.problem, self.hessian)
        if not all(map(operator.is_, bound_to, self._bound[0])):
            basis, lanes = self.tables.basis, self.tables.lanes
            scored, changed = (
                weights_of(basis, table, lanes, self.w) for table in (basis.values, basis.update)
            )
            steps = _dual_loops.steps_of(self.problem, self.hessian)
            work = RowWork(basis.bins, scored, changed, None, steps)
            self._bound = bound_to, (work, workspace_for(self.tables, self.rows))
        return self._bound[1]

    # Certificates.

    def balance_and_certify(self) -> GapCertificate:
        """Make s zero, measure the gap there, and set the active set for the epochs that follow."""
        if self.options.fit_intercept:
            self.balance()
        totals = self._pass_over_all()
        self.n_certificates += 1
        # Examples that would not move were shrunk: a gap that is left is that of the others. From
        # the second certificate on all are active, because the intercept may converge slowly where
        # few can move (the hinge with a small C took 80 epochs, not 8).
        if self.n_active == 0 or self.n_certificates > 1:
            self.activate_all()
        return self.certificate(totals)

    def activate_all(self) -> None:
        """All examples are active again."""
        self.order, self.n_active = self.examples.astype(np.int64), len(self.examples)
        self.record.shrink_threshold[:] = NO_SHRINKING
        self.record.shrunk.assign(PassTotals.zeros(self.n_outputs))

    def _pass_over_all(self) -> PassTotals:
        """Visit all examples without a step: exact totals, and who is active, by the threshold."""

        def pass_over_block(begin: int, end: int) -> tuple[PassRecord, np.ndarray, np.ndarray]:
            order = self.examples[begin:end].astype(np.int64)
            n_active, record = self._run_pass(order, end - begin, take_steps=False)
            return record, order[:n_active], order[n_active:]

        blocks = in_blocks(self.options.n_threads, len(self.examples), pass_over_block)
        records, active, shrunk = zip(*blocks, strict=True)
        totals = reduce(PassTotals.merged, (record.visited for record in records))
        shrunk_totals = reduce(PassTotals.merged, (record.shrunk for record in records))
        self.record.shrunk.assign(shrunk_totals)
        self._set_shrink_threshold(totals)
        # Sorted: the order must not depend on the number of threads.
        self.order = np.concatenate([np.sort(np.concatenate(active)), *shrunk])
        self.n_active = sum(map(len, active))
        return totals

    def balance(self) -> None:
        """Make each output's s zero: move a few of its largest α of that sign towards zero.

        This is feasible for every loss. The multiplier b stays, and the bias follows as in a step;
        its part σs vanishes with s. If that stayed, the intercept would swing around its place from
        one certificate to the next.
        """
        total = self._alpha_total()
        for k in np.flatnonzero(total):
            excess = abs(total[k])
            largest, sums = _largest(
                self.alpha[:, k] * np.sign(total[k]), CONSTANTS.balance_reserve * excess
            )
            if len(largest) == 0:  # none here has that sign (blocks of one class)
                continue
            step = np.zeros((len(largest), self.n_outputs))
            step[:, k] = -self.alpha[largest, k] * min(excess / sums, 1.0)
            self.alpha[largest, k] += step[:, k]
            self._add_to_weights(largest, step)
            self.bias[k] += step[:, k] @ (self.hessian.q0 - self.hessian.mean_dot[largest])
        self.alpha_sum[:] = 0.0


def _largest(values: np.ndarray, total: float) -> tuple[np.ndarray, float]:
    """Indices of the largest positive values, just so many that they sum to `total`; their sum.

    All positive ones if they do not. A few nearly always do: the others are not sorted.
    """
    for count in (CONSTANTS.balance_candidates, len(values)):
        some = np.argpartition(-values, count)[:count] if count < len(values) else slice(None)
        indices = np.arange(len(values))[some]
        indices = indices[values[indices] > 0]
        indices = indices[np.argsort(-values[indices], kind="stable")]
        sums = np.cumsum(values[indices])
        if len(sums) and sums[-1] >= total:
            break
    if len(sums) == 0:
        return indices, 0.0
    n_needed = int(np.searchsorted(sums, min(total, sums[-1]))) + 1
    return indices[:n_needed], float(sums[n_needed - 1])
