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

**An epoch** (:meth:`CoordinateDescent.run_epoch`) takes the active examples in random order, and
minimises over one α_i at a time (:func:`._dual_loops.update_examples`).

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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._util.compiling import static
from ..._util.display import track
from ..._util.threads import check_stop
from ...engine.table.update import RowArrays, RowWork, weights_of
from ..losses import dual_rules_of
from ..rows.map_tables import BasisTables, make_workspace, weight_memory
from . import _dual_loops
from ._dual_loops import SHRUNK, DualHessian, DualVariables, PassRecord, PassTotals, SVMProblem

if TYPE_CHECKING:
    from ..svm.problem import Options

NO_SHRINKING = 1e30  # a threshold that no derivative reaches


@dataclass(frozen=True)
class DescentConstants:
    """Constants of coordinate descent.

    In parentheses: updates of examples with other values, relative to those with the default, as
    the geometric mean of 20 fits to 2000 rows (five losses, C from 0.001 to 1, rare and frequent
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


def solve(
    tables: BasisTables,
    rows: RowArrays,
    problem: SVMProblem,
    examples: np.ndarray,
    options: Options,
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
    options : Options
        Tolerance and iterations.
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
        max_epochs = int(np.ceil(CONSTANTS.approximate_share * options.max_iter))
        _, n_iter, _ = descend(state, options, max_epochs)
        state.switch_rows(tables, rows)
        certificate = state.balance_and_certify()
        converged = certificate.is_within(options.tol)
    n_left = options.max_iter - n_iter
    if not converged and n_left > 0:
        certificate, further, converged = descend(state, options, n_left)
        n_iter += further
    return state.solution(state.alpha, certificate, n_iter, converged)


def descend(solver: Any, options: Options, max_iter: int) -> tuple[GapCertificate, int, bool]:
    """Epochs until the gaps of all outputs are certified; their number, and whether so.

    `solver` takes steps by ``run_epoch()``, which estimates the gaps on the way, and measures them
    where s = 0 by ``balance_and_certify()``.
    """
    factor, converged, n_iter = 1.0, False, 0
    for _ in track(range(max_iter), "training", enabled=options.progress):
        check_stop()
        n_iter += 1
        last = n_iter == max_iter
        if not (solver.run_epoch().is_within(factor * options.tol) or last):
            continue
        certificate = solver.balance_and_certify()
        converged = certificate.is_within(options.tol)
        if converged:
            break
        factor = max(CONSTANTS.min_estimate_factor, CONSTANTS.estimate_factor * factor)
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

    order: np.ndarray
    n_active: int

    def __init__(
        self,
        tables: BasisTables,
        rows: RowArrays,
        problem: SVMProblem,
        examples: np.ndarray,
        options: Options,
        alpha: np.ndarray,
        intercept: np.ndarray | None,
    ) -> None:
        self.tables, self.rows, self.problem, self.options = tables, rows, problem, options
        self.examples, self.alpha, self.n_outputs = examples, alpha, problem.positive.size
        self.rng = np.random.default_rng(options.seed)
        self.w, self.n_certificates = weight_memory(tables), 0
        self._centre()
        self.bias = np.zeros(self.n_outputs) if intercept is None else np.array(intercept, float)
        self.alpha_sum = np.zeros(self.n_outputs)
        self.record = PassRecord.empty(self.n_outputs)
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
        self._add_rows(nonzero, self.alpha[nonzero], self.w)
        return len(nonzero) > 0

    def switch_rows(self, tables: BasisTables, rows: RowArrays) -> None:
        """Other tables of the same bases, and the same rows in another form, with these duals.

        The centre stays: it is without effect where s = 0, as after a certificate. So do lengths of
        steps: |ψ_i|² is nearly the same, and steps up to twice as long would converge.
        """
        self.tables, self.rows, self.n_certificates = tables, rows, 0
        self.w = weight_memory(tables)
        self._accumulate_duals()

    def _add_rows(self, examples: np.ndarray, steps: np.ndarray, w: np.ndarray) -> None:
        """Add the sum of ψ_i, times the steps of the examples, to weights."""
        tables, basis = self.tables, self.tables.basis
        work = RowWork(basis.bins, changed=weights_of(basis, basis.update, tables.lanes, w))
        workspace, examples = make_workspace(tables, self.rows), examples.astype(np.int32)
        _dual_loops.accumulate(work, self.rows, workspace, examples, steps)

    def _centre(self) -> None:
        """Set m, σ and the diagonal of the dual; without an intercept, m and σ are zero."""
        self.mean, self.mean_sq_norm = weight_memory(self.tables), 0.0
        self.penalty_weight = 0.0
        if not self.options.fit_intercept:
            self._set_hessian(*self._centred_norms())
            return
        sample = self.examples[:: -(-len(self.examples) // CONSTANTS.mean_rows)]
        self._add_rows(sample, np.full((len(sample), 1), 1.0 / len(sample)), self.mean)
        sq_norm, mean_dot = self._centred_norms()
        self.mean_sq_norm = float(mean_dot[sample].mean())
        sq_norm += self.mean_sq_norm
        self.min_penalty_weight = CONSTANTS.penalty_share * float(sq_norm[self.examples].mean())
        self.set_penalty_weight(float(self.problem.cost[self.examples].sum()))
        self._set_hessian(sq_norm, mean_dot)

    def set_penalty_weight(self, cost: float) -> None:
        """Set σ for examples that cost so much together."""
        least = CONSTANTS.min_penalty / max(cost, 1e-300)
        self.penalty_weight = max(self.min_penalty_weight, least)

    def _centred_norms(self) -> tuple[np.ndarray, np.ndarray]:
        """|ψ_i − m|² and ⟨m, ψ_i⟩ of all rows at hand, with the |m|² that is known so far."""
        tables, basis, n = self.tables, self.tables.basis, self.problem.y.size
        scored = weights_of(basis, basis.values, tables.lanes, self.mean)
        work = RowWork(basis.bins, scored=scored, squares=basis.squares)
        sq_norm, mean_dot = np.empty(n), np.empty(n)
        _dual_loops.measure(work, self.rows, make_workspace(tables, self.rows), sq_norm, mean_dot)
        return sq_norm + (self.mean_sq_norm - 2 * mean_dot), mean_dot

    def _set_hessian(self, sq_norm: np.ndarray, mean_dot: np.ndarray) -> None:
        """Set the dual's Hessian from |ψ_i − m|²."""
        diagonal = np.maximum(sq_norm + self.penalty_weight, 1e-12)
        self.hessian = DualHessian(diagonal, mean_dot, self.mean_sq_norm + self.penalty_weight)

    # Epochs.

    def run_epoch(self) -> GapCertificate:
        """Update the active examples and the intercept; estimated primal values and gaps."""
        totals = self.update_active()
        self.update_intercept()
        return self.certificate(totals)

    def update_active(self) -> PassTotals:
        """Take steps in the active examples; totals of all, valid until the next pass."""
        self.rng.shuffle(self.order[: self.n_active])
        return self._pass_over_active(take_steps=True)

    def update_intercept(self) -> None:
        """The multiplier's step of the augmented Lagrangian, b += σs."""
        if self.options.fit_intercept:
            self.alpha_sum[:] = self.sum_duals()
            self.bias += self.penalty_weight * self.alpha_sum

    def certificate(self, totals: PassTotals) -> GapCertificate:
        """Primal values and gaps from totals of all examples: exact where s = 0."""
        sq_norm = totals.alpha_dot_score - self.bias * self.alpha_sum
        return GapCertificate(totals.loss + 0.5 * sq_norm, totals.gap)

    def sum_duals(self) -> np.ndarray:
        """Σα of each output."""
        return self.alpha.sum(axis=0)

    def _pass_over_active(self, *, take_steps: bool) -> PassTotals:
        """One pass over the active examples, some of which are shrunk; totals of all.

        Threshold and totals are valid until the next pass.
        """
        tables, basis = self.tables, self.tables.basis
        scored, changed = (
            weights_of(basis, table, tables.lanes, self.w) for table in (basis.values, basis.update)
        )
        steps = _dual_loops.StepData(static(self.problem.loss), *self.problem[1:], *self.hessian)
        work = RowWork(basis.bins, scored, changed, None, steps)
        duals = DualVariables(self.alpha, self.alpha_sum, self.bias)
        workspace = make_workspace(tables, self.rows)
        self.n_active = _dual_loops.update_examples(
            work, self.rows, workspace, duals, self.record, self.order, self.n_active, take_steps
        )
        totals = PassTotals(*self.record.totals[_dual_loops.UPDATED])
        self.record.shrink_threshold[:] = CONSTANTS.shrink_share * totals.max_violation
        return totals

    # Certificates.

    def balance_and_certify(self) -> GapCertificate:
        """Make s zero, measure the gap there, and set the active set for the epochs that follow."""
        if self.options.fit_intercept:
            self.balance()
        totals = self.pass_over_all()
        self.n_certificates += 1
        certificate = self.certificate(totals)
        # Examples that would not move were shrunk: a gap that is left is that of the others. From
        # the second certificate on all are active, because the intercept may converge slowly where
        # few can move (the hinge with a small C took 80 epochs, not 8).
        if self.n_active == 0 or self.n_certificates > 1:
            self.activate_all()
        return certificate

    def activate_all(self) -> None:
        """All examples are active again."""
        self.order, self.n_active = self.examples.astype(np.int64), len(self.examples)
        self.record.shrink_threshold[:] = NO_SHRINKING
        self.record.totals[SHRUNK] = 0.0

    def pass_over_all(self) -> PassTotals:
        """One pass over all examples without a step: exact totals, and the active set."""
        threshold = self.record.shrink_threshold.copy()
        self.activate_all()
        self.record.shrink_threshold[:] = threshold
        return self._pass_over_active(take_steps=False)

    def balance(self) -> None:
        """Make each output's s zero: move a few of its largest α of that sign towards zero.

        This is feasible for every loss. The multiplier b stays, and the bias follows as in a step;
        its part σs vanishes with s. If that stayed, the intercept would swing around its place from
        one certificate to the next.
        """
        total = self.sum_duals()
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
            self._add_rows(largest, step, self.w)
            self.bias[k] += step[:, k] @ (self.hessian.q0 - self.hessian.mean_dot[largest])
        self.alpha_sum[:] = 0.0


def _largest(values: np.ndarray, total: float) -> tuple[np.ndarray, float]:
    """Indices of the largest positive values, just so many that they sum to `total`; their sum.

    All positive ones if they do not.
    """
    indices = np.flatnonzero(values > 0)
    indices = indices[np.argsort(-values[indices], kind="stable")]
    sums = np.cumsum(values[indices])
    if len(sums) == 0:
        return indices, 0.0
    n_needed = int(np.searchsorted(sums, min(total, sums[-1]))) + 1
    return indices[:n_needed], float(sums[n_needed - 1])
