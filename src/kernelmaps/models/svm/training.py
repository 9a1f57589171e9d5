r"""Training of additive support vector machines on rows in memory.

f(x) = b + Σ_j g_j(x_j), g_j = ⟨w_j, ψ_j(x_j)⟩, with the objective

.. math:: \tfrac12 \|w\|^2 + C \sum_i s_i\, ℓ(y_i, f(x_i))

of LIBLINEAR, the intercept b not penalised. ψ(X) is never stored: see :mod:`..solvers.dual` for
the algorithm and :mod:`..solvers._dual_loops` for the form in which the weights are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..._util.static_int import StaticInt
from ..._util.threads import resolve_threads, run_interruptibly
from ...engine import Spec
from ..losses import LOSSES, make_loss
from ..rows.band_rows import BandRows
from ..rows.map_bands import Bands, band_size, single_precision_bands
from ..rows.map_tables import (
    bands_of,
    lanes_for,
    rounded,
    rows_of,
    tables_of,
    tables_of_fractions,
    unpack_weights,
)
from ..rows.two_valued import TwoValuedColumns
from ..solvers._dual_loops import SVMProblem
from ..solvers.dual import DualOptions, Solution, solve
from ..solvers.newton_cg import MOST_FACTORISED
from .fitted_map import FittedMap
from .primal import is_single_enough, solve_by_conditional_gradient, solve_primal, targets_of
from .problem import LARGEST_TARGET, MOST_LANES, SMALL, Options, Targets, costs_of, precision_of
from .scale import MappedSample, curvature_ratio
from .solver_costs import COSTS, TrainingSize

# Whether training starts on rounded rows where that pays: dense floats of at least 32 columns and
# SMALL values on splines with uniform knots (see `map_tables.rounded`). Tests compare both ways.
START_ON_ROUNDED_ROWS = True
_ROUGH = 1e-5  # tolerances from which on approximate rows or tables are worth a start
# Values of rows from which on a start in single precision is worth loops of their own, which take
# a second to compile.
_START_IN_SINGLE = 50_000

Start = tuple[np.ndarray, np.ndarray]  # dual variables [row][output] and intercepts
RoundedRows = Callable[[], tuple[np.ndarray, int] | None]


def dual_options(options: Options, n_groups: int) -> DualOptions:
    """Options of the solver of each of so many groups of outputs."""
    threads = max(1, resolve_threads(options.n_jobs) // n_groups)
    progress = bool(options.progress)
    return DualOptions(
        options.fit_intercept, options.tol, options.max_iter, options.seed, threads, progress
    )


def problem_of(
    options: Options, y: np.ndarray, positive: np.ndarray, cost: np.ndarray
) -> SVMProblem:
    """Loss, targets and costs as the loops take them."""
    return SVMProblem(
        loss=StaticInt(list(LOSSES).index(options.loss)),
        of_labels=LOSSES[options.loss].of_labels,
        epsilon=options.epsilon,
        y=np.ascontiguousarray(y, np.float64),
        positive=np.ascontiguousarray(positive, np.float64),
        cost=np.ascontiguousarray(cost, np.float64),
    )


def train(
    rows: Any,
    targets: Targets,
    C: float,
    fitted: FittedMap,
    options: Options,
    start: Start | None = None,
) -> Solution:
    """Solve for all outputs, in groups of lanes, one thread each."""
    y, cost = targets.y, costs_of(options.owner, C, targets.weight)
    groups = lane_groups(targets, rows.size, options.n_jobs)
    of_group = dual_options(options, len(groups))
    # Computed when coordinate descent asks for them, once for all groups.
    rounded_rows = cache(lambda: None if start else _rounded_rows(rows, fitted, options))

    def solve_outputs(group: slice) -> Solution:
        positive, members = targets.positive[group], np.zeros(0, np.int64)
        labels = y
        if targets.multilabel:
            labels, positive = y[:, group.start], np.ones(1)
        if targets.pairwise:  # trained on the rows of the two classes
            members, positive = np.flatnonzero(np.isin(y, positive)), positive[0, 1:]

        def taken(values: Any) -> Any:
            return values[members] if targets.pairwise else values

        problem = problem_of(options, taken(labels), positive, taken(cost))
        alpha, intercept = np.zeros((len(problem.y), len(positive))), None
        if not problem.cost.any():
            return _no_weights(len(y), len(positive), fitted)
        if start is not None:
            # Duals of rows that do not take part now are zero.
            alpha[:] = np.where(problem.cost[:, None] > 0, taken(start[0][:, group]), 0)
            intercept = start[1][group] if options.fit_intercept else None
        quiet = of_group if group.start == 0 else replace(of_group, progress=False)

        def codes() -> tuple[np.ndarray, int] | None:
            coded = rounded_rows()
            return None if coded is None else (taken(coded[0]), coded[1])

        solution = solve_group(
            taken(rows), problem, fitted, options, quiet, alpha, intercept, codes
        )
        return solution.scattered(members, len(y)) if targets.pairwise else solution

    return joined(run_interruptibly(solve_outputs, groups, resolve_threads(options.n_jobs)))


def lane_groups(targets: Targets, n_values: float, n_jobs: int | None) -> list[slice]:
    """Outputs that are trained together, so that the busiest thread has the least to do.

    Lanes of a group are a power of two; idle ones cost as much as those in use. Few values are
    trained on for all classes together: groups have loops of their own to compile, and their
    last digits depend on how many processors there are. Pairs of classes are trained one by one:
    a row belongs to two classes, so that most lanes of a visit would be idle. So are several labels
    of a row, since a lane compares one code of the row with its own.
    """
    count = len(targets.positive)

    def groups(size: int) -> list[slice]:
        return [slice(k, min(k + size, count)) for k in range(0, count, size)]

    if targets.pairwise or targets.multilabel:
        return groups(1)
    if n_values * count <= SMALL:
        return groups(-(-count // -(-count // MOST_LANES)))
    threads = resolve_threads(n_jobs)

    def busiest(size: int) -> float:
        """Time of the thread that has the most to do, in units of a lane."""
        loads = np.zeros(threads)
        for group in groups(size):
            loads[loads.argmin()] += COSTS.shared_lanes + lanes_for(group.stop - group.start)
        return float(loads.max())

    sizes = range(min(count, MOST_LANES), 0, -1)
    return groups(min(sizes, key=busiest))


def solve_group(
    rows: Any,
    problem: SVMProblem,
    fitted: FittedMap,
    options: Options,
    dual: DualOptions,
    alpha: np.ndarray,
    intercept: np.ndarray | None,
    codes: RoundedRows,
) -> Solution:
    """Solve one group of lanes by the solver of lower predicted cost.

    Coordinate descent that turns out far slower than predicted is where Newton's method starts.

    Parameters
    ----------
    rows : array or CSR
        The examples.
    problem : SVMProblem
        Loss, targets and costs.
    fitted : FittedMap
        The map.
    options : Options
        Which solver to take.
    dual : DualOptions
        Tolerance, iterations, threads.
    alpha, intercept : ndarray
        Where to start; None: with the best intercept of a model without weights.
    codes : callable
        Gives the rows rounded to fractions of bins, and the bits of a fraction; or None.
    """
    examples = np.flatnonzero(problem.cost > 0).astype(np.int32)
    plan = _choose_solver(rows, problem, fitted, options, examples)
    if plan.columns is not None:
        codes = _no_rounded_rows
    solution = None
    if plan.gradient_steps > 0 and not alpha.any():
        solution = _solve_by_conditional_gradient(plan, problem, examples, options)
        if not solution.converged:
            alpha, intercept, solution = solution.alpha, solution.intercept, None
    if solution is None and plan.epochs > 0:
        of_dual = replace(dual, max_iter=plan.epochs, max_visits=plan.max_visits)
        solution = _solve_dual(plan, problem, examples, of_dual, alpha, intercept, codes)
        if not solution.converged and plan.newton_follows:
            alpha, intercept, solution = solution.alpha, solution.intercept, None
    if solution is None:
        start = (alpha, intercept) if intercept is not None and alpha.any() else None
        solution = _solve_primal(plan, problem, examples, options, start)
    if plan.columns is None:
        return solution
    # The weights of coded rows as those of ψ.
    return replace(
        solution,
        weights=plan.columns.band_weights(solution.weights),
        intercept=solution.intercept - plan.columns.absorbed(solution.weights),
    )


@dataclass(frozen=True)
class SolverPlan:
    """Which solver runs, and on what.

    Attributes
    ----------
    rows : array or CSR
        The rows, or, with codes for columns of two values, rows that stand for them.
    spec : Spec
        The map of the rows that are trained on.
    columns : TwoValuedColumns, optional
        What the codes stand for.
    epochs : int
        Epochs of coordinate descent.
    max_visits : float
        Visits to examples after which no further epoch starts.
    newton_follows : bool
        Whether Newton's method goes on where they are not enough.
    gradient_steps : int
        Conditional gradient steps before either solver, at most.
    """

    rows: Any
    spec: Spec
    columns: TwoValuedColumns | None
    epochs: int
    max_visits: float = np.inf
    newton_follows: bool = False
    gradient_steps: int = 0

    def taken(self, examples: np.ndarray) -> Any:
        """The rows of some examples; the same object if these are all."""
        return self.rows if len(examples) == self.rows.shape[0] else self.rows[examples]

    def bands(self, X: Any, dtype: Any) -> Bands:
        """Bands of `rows`, or some of them."""
        if self.columns is None:
            return bands_of(self.spec, X, np.dtype(dtype))
        return self.columns.bands

    def single_precision_bands(self) -> Bands | None:
        """Bands of `rows` to single precision, if these are of lower degree."""
        if self.columns is None:
            return single_precision_bands(self.spec, self.rows)
        bands = single_precision_bands(self.spec, self.columns.rows)
        return None if bands is None else replace(self.columns, map_bands=bands).bands


def _no_rounded_rows() -> None:
    """Codes are not rounded."""


def _solve_dual(
    plan: SolverPlan, problem: SVMProblem, examples: np.ndarray, dual: DualOptions,
    alpha: np.ndarray, intercept: np.ndarray | None, codes: RoundedRows,
) -> Solution:  # fmt: skip
    """Coordinate descent, on rows or tables of lower precision first where that pays."""
    n_outputs, precision = problem.positive.size, precision_of(plan.rows, dual.tol)
    lanes, rows = lanes_for(n_outputs), rows_of(plan.rows)
    tables = tables_of(plan.bands(plan.rows, precision), plan.rows, precision, lanes)
    rounded_rows, single, approximate = codes(), None, None
    if rounded_rows is not None:
        approximate = tables_of_fractions(tables, rounded_rows[1]), rows_of(rounded_rows[0])
    elif _starts_in_single(plan.rows, problem, dual.tol):
        single = plan.single_precision_bands()
    if single is not None:
        approximate = tables_of(single, plan.rows, np.float32, lanes), rows
    solution = solve(tables, rows, problem, examples, dual, alpha, intercept, approximate)
    return replace(solution, weights=unpack_weights(solution.weights, tables, n_outputs))


def _starts_in_single(rows: Any, problem: SVMProblem, tol: float) -> bool:
    """Whether a first solution in single precision pays, and none of its numbers overflows."""
    many = rows.dtype == np.float64 and rows.size >= _START_IN_SINGLE and tol >= _ROUGH
    return many and float(np.abs(problem.y).max()) <= LARGEST_TARGET[np.float32]


def _solve_by_conditional_gradient(
    plan: SolverPlan, problem: SVMProblem, examples: np.ndarray, options: Options
) -> Solution:
    """Conditional gradient steps on the dual."""
    X, intercept, tol = plan.taken(examples), options.fit_intercept, options.tol
    tables = tables_of(plan.bands(X, np.float64), X, np.float64, lanes_for(1), values_only=True)
    return solve_by_conditional_gradient(
        BandRows(tables, X), problem, examples, intercept, tol, plan.gradient_steps
    )


def _solve_primal(
    plan: SolverPlan, problem: SVMProblem, examples: np.ndarray, options: Options,
    start: Start | None,
) -> Solution:  # fmt: skip
    """Newton's method, in single precision where that is exact enough."""
    X = plan.taken(examples)
    bands = plan.bands(X, np.float64)
    single = plan.columns is None and is_single_enough(
        bands, problem, problem.cost[examples], options.tol
    )
    for dtype in (np.float32, np.float64) if single else (np.float64,):
        tables = tables_of(bands, X, dtype, lanes_for(1), values_only=True)
        rows = BandRows(tables, X, dtype)
        solution = solve_primal(rows, problem, examples, options.fit_intercept, options.tol, start)
        if solution.converged:
            break
    return solution


def _choose_solver(
    rows: Any, problem: SVMProblem, fitted: FittedMap, options: Options, examples: np.ndarray
) -> SolverPlan:
    """The solver that the options name, or the one of lower predicted cost."""
    plan = SolverPlan(rows, fitted.spec, None, options.max_iter)
    if options.solver == "dual":
        return plan
    n, widths = len(examples), np.asarray(fitted.feature_map._columns_per_feature())
    X = rows if n == rows.shape[0] else rows[examples]
    columns = _two_valued_columns(X, fitted, options)
    if columns is not None:
        plan = replace(plan, rows=columns.coded(rows), columns=columns)
    if options.solver == "primal":
        return replace(plan, epochs=0)
    # Of wide rows, examples have little in common: coordinate descent takes far fewer visits than
    # are predicted, and the Hessian of the weights is not factorised.
    n_weights = columns.n_weights if columns is not None else int(widths.sum())
    if n_weights > MOST_FACTORISED:
        return plan
    cost, y = problem.cost[examples], problem.y[examples]
    loss = make_loss(options.loss, y, epsilon=options.epsilon)
    n_sampled = COSTS.bound_rows if loss.has_corners else COSTS.sample_rows
    sample = MappedSample.of(fitted.spec, X, cost, n_sampled)
    size = TrainingSize(
        n_rows=n,
        n_values=plan.rows.size,
        band=1 if columns is not None and columns.is_all else band_size(plan.spec, widths),
        n_outputs=problem.positive.size,
        n_weights=n_weights,
        curvature_ratio=curvature_ratio(loss, y, cost, sample.mean_square),
        tol=options.tol,
        has_corners=loss.has_corners,
        of_codes=rows.dtype.kind == "u" and not issparse(plan.rows),
        bound_ratio=_largest_bound_ratio(sample, loss, problem, y, cost),
    )
    if size.curvature_ratio > COSTS.max_curvature_ratio:  # Newton's method would end anywhere
        return plan
    plan = replace(plan, gradient_steps=size.max_gradient_steps)
    if size.cheaper == "primal":
        return replace(plan, epochs=0)
    return replace(plan, max_visits=n * size.max_visits, newton_follows=True)


def _largest_bound_ratio(
    sample: MappedSample, loss: Any, problem: SVMProblem, y: np.ndarray, cost: np.ndarray
) -> float:
    """That of any output (see `MappedSample.bound_ratio`); infinity for smooth losses."""
    if not loss.has_corners:
        return np.inf
    y = y[sample.rows]
    return max(
        sample.bound_ratio(loss.hinges(targets_of(problem, y, k)), cost)
        for k in range(problem.positive.size)
    )


def _two_valued_columns(X: Any, fitted: FittedMap, options: Options) -> TwoValuedColumns | None:
    """Columns to train one weight of, where that pays."""
    if fitted.on_codes:
        return None
    if not issparse(X):
        return TwoValuedColumns.of(fitted.spec, X) if options.fit_intercept else None
    # Zeros of sparse rows cost nothing anyway: what pays is a Hessian that can be factorised.
    if fitted.n_columns <= MOST_FACTORISED:
        return None
    columns = TwoValuedColumns.of(fitted.spec, X)
    return columns if columns is not None and columns.n_weights <= MOST_FACTORISED else None


def _rounded_rows(rows: Any, fitted: FittedMap, options: Options) -> tuple[np.ndarray, int] | None:
    """Rows in a compact form, on which a first solution takes less time (see `rounded`)."""
    pays = START_ON_ROUNDED_ROWS and options.solver != "primal" and options.tol >= _ROUGH
    if not pays or rows.size < SMALL:
        return None
    precision = np.dtype(precision_of(rows, options.tol))
    return rounded(fitted.spec, rows, precision, resolve_threads(options.n_jobs))


def _no_weights(n_rows: int, n_outputs: int, fitted: FittedMap) -> Solution:
    """The solution of outputs without rows."""
    shape = (len(fitted.feature_map._columns_per_feature()), fitted.n_bases, n_outputs)
    zero = np.zeros(n_outputs)
    alpha = np.zeros((n_rows, n_outputs))
    return Solution(np.zeros(shape), zero, alpha, zero, zero, 0, 0, True)


def joined(solutions: Sequence[Solution]) -> Solution:
    """The solution of all outputs from those of groups of them."""
    if len(solutions) == 1:
        return solutions[0]
    primal = any(solution.solver == "primal" for solution in solutions)
    return Solution(
        weights=np.concatenate([solution.weights for solution in solutions], axis=2),
        intercept=np.concatenate([solution.intercept for solution in solutions]),
        alpha=np.hstack([solution.alpha for solution in solutions]),
        primal=np.concatenate([solution.primal for solution in solutions]),
        gap=np.concatenate([solution.gap for solution in solutions]),
        n_iter=max(solution.n_iter for solution in solutions),
        n_visits=sum(solution.n_visits for solution in solutions),
        converged=all(solution.converged for solution in solutions),
        solver="primal" if primal else "dual",
    )
