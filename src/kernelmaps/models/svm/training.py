r"""Training of additive support vector machines on rows in memory.

f(x) = b + Σ_j g_j(x_j), g_j = ⟨w_j, ψ_j(x_j)⟩, with the objective

.. math:: \tfrac12 \|w\|^2 + C \sum_i s_i\, ℓ(y_i, f(x_i))

of LIBLINEAR, the intercept b not penalised. ψ(X) is never stored: see :mod:`..solvers.dual` for
the algorithm and :mod:`..solvers._dual_loops` for the form in which the weights are stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from ..._util.display import track
from ..._util.threads import resolve_threads, run_interruptibly
from ..losses import LOSSES, make_loss
from ..rows.band_rows import BandRows
from ..rows.map_bands import bands_of
from ..rows.map_tables import (
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
from .fitted import MOST_LANES, SMALL, AdditiveMachine, FittedMap, precision_of
from .primal import solve_primal
from .problem import Options, Targets, costs_of, curvature_ratio, mean_square

MOST_WEIGHTS = 1000  # of which Newton steps take less time than epochs
_KINK_CURVATURE = 15.0  # κ from which on the interior-point method takes less time than epochs
# κ beyond which a penalty lies below the rounding of the losses, and Newton's method has nothing to
# go by; the gap of coordinate descent stays at most twice the objective.
_MOST_CURVATURE = 1e12
_SAMPLE_ROWS = 32  # whose distances from their mean give κ, exact to some percent
_ROUGH = 1e-5  # tolerances from which on rounded rows are worth a start
_SHARED_LANES = 1.5  # outputs that take as long as what is done once for all of them

# Of scores [row][output], targets and weights of the rows that a fold holds out: the higher, the
# better.
Score = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
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
        loss=list(LOSSES).index(options.loss),
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


def cross_validate(
    Cs: np.ndarray, folds: list[np.ndarray], rows: Any, targets: Targets, counts: np.ndarray,
    score: Score, fitted: FittedMap, options: Options,
) -> np.ndarray:  # fmt: skip
    """Held-out scores of shape (n_folds, n_Cs); fits that did not converge are warned of.

    The map is fitted already (it learns ranges, nothing of the targets), no rows are copied for
    the training (those held out have cost 0), and each C starts from the duals of the one before.
    """
    quiet, n_failed = replace(options, progress=None), 0
    scores = np.empty((len(folds), len(Cs)))
    for k in track(range(len(folds)), "folds", enabled=options.progress):
        start, weight, test = None, targets.weight.copy(), folds[k][counts[folds[k]] > 0]
        weight[folds[k]] = 0.0
        for i, C in enumerate(Cs):
            solution = train(rows, targets._replace(weight=weight), float(C), fitted, quiet, start)
            machine = AdditiveMachine(
                fitted.feature_map, fitted.on_codes, solution.weights, solution.intercept, quiet.tol
            )
            outputs = machine.trained_scores(rows, test, options.n_jobs)
            scores[k, i] = score(outputs, targets.y[test], counts[test])
            start = solution.alpha, solution.intercept
            n_failed += not solution.converged
    if n_failed:
        warnings.warn(
            f"{options.owner}: {n_failed} of {scores.size} fits to folds stopped with a duality "
            f"gap above tol={options.tol:g}, so that their scores are approximate: raise max_iter= "
            "or tol=, or leave out large values of C=.",
            ConvergenceWarning,
            stacklevel=6,  # this function, two of the base class, fit and its decorator
        )
    return scores


def lane_groups(targets: Targets, n_values: float, n_jobs: int | None) -> list[slice]:
    """Outputs that are trained together, so that the busiest thread has the least to do.

    Lanes of a group are a power of two; idle ones cost as much as those in use. Few values are
    trained on for all classes together: groups have loops of their own to compile, and their
    last digits depend on how many processors there are. Pairs of classes are trained one by one:
    a row belongs to two classes, so that most lanes would be idle. So are several labels
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
            loads[loads.argmin()] += _SHARED_LANES + lanes_for(group.stop - group.start)
        return float(loads.max())

    sizes = range(min(count, MOST_LANES), 0, -1)
    return groups(min(sizes, key=busiest))


def choose_solver(n_weights: int, has_kinks: bool, curvature_ratio: float) -> str:
    """The solver of a fit: "primal" (Newton's or the interior-point method) or "dual".

    A Newton step multiplies by the Hessian, which couples p weights: it forms and factorises p × p
    numbers, p²(n + p/3) multiplications, or takes √κ products with conjugate gradients, so that it
    is for few weights, and then the number of steps hardly depends on C. An epoch of coordinate
    descent costs n·d look-ups, whatever p; the epochs that it takes grow in proportion to κ, the
    curvature of the losses in units of that of the penalty (:func:`.problem.curvature_ratio`).

    An interior-point method takes 10 to 20 steps of about 30 passes of 3 ns a value. That is the
    time of 50 updates of each dual variable, of 25 ns a value: those that coordinate descent takes
    for κ of about 15. Smooth losses take a third of the steps, and a pass of coordinate descent for
    each certificate: Newton's method is never much slower. (Measured on eight tables, three maps
    and five C: at most 1.7 times the time of the faster one, or 30 ms more.)
    """
    if n_weights > MOST_WEIGHTS or curvature_ratio > _MOST_CURVATURE:
        return "dual"
    return "dual" if has_kinks and curvature_ratio < _KINK_CURVATURE else "primal"


def solve_group(
    rows: Any,
    problem: SVMProblem,
    fitted: FittedMap,
    options: Options,
    dual: DualOptions,
    alpha: np.ndarray,
    intercept: np.ndarray | None,
    rounded_rows: RoundedRows,
) -> Solution:
    """Solve one group of lanes.

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
    rounded_rows : callable
        Gives the rows rounded to fractions of bins, and the bits of a fraction; or None.
    """
    examples = np.flatnonzero(problem.cost > 0).astype(np.int32)
    X = _select(rows, examples)
    columns = _two_valued_columns(X, fitted, options)
    n_weights = fitted.n_columns if columns is None else columns.n_weights
    solver = options.solver
    if solver == "auto":
        cost, y = problem.cost[examples], problem.y[examples]
        loss = make_loss(options.loss, y, epsilon=options.epsilon)
        square = mean_square(fitted.spec, X, cost, _SAMPLE_ROWS)
        solver = choose_solver(n_weights, loss.has_kinks, curvature_ratio(loss, y, cost, square))
    precision = np.dtype(np.float64 if solver == "primal" else precision_of(rows, options.tol))
    if columns is None:
        bands = bands_of(fitted.spec, rows, precision)
    else:
        rows, bands = columns.coded(rows), columns.bands
    if solver == "primal":
        X = _select(rows, examples)
        tables = tables_of(bands, X, precision, lanes_for(1), values_only=True)
        start = (alpha, intercept) if intercept is not None and alpha.any() else None
        solution = solve_primal(
            BandRows(tables, X), problem, examples, options.fit_intercept, options.tol, start
        )
    else:
        n_outputs = problem.positive.size
        tables = tables_of(bands, rows, precision, lanes_for(n_outputs))
        approximate = None
        if columns is None and (coded := rounded_rows()) is not None:
            approximate = tables_of_fractions(tables, coded[1]), rows_of(coded[0])
        solution = solve(
            tables, rows_of(rows), problem, examples, dual, alpha, intercept, approximate
        )
        solution.weights = unpack_weights(solution.weights, tables, n_outputs)
    if columns is None:
        return solution
    # The weights of coded rows as those of ψ.
    return replace(
        solution,
        weights=columns.band_weights(solution.weights),
        intercept=solution.intercept - columns.absorbed(solution.weights),
    )


def _select(rows: Any, examples: np.ndarray) -> Any:
    """The rows of some examples; the same object if these are all."""
    return rows if len(examples) == rows.shape[0] else rows[examples]


def _two_valued_columns(X: Any, fitted: FittedMap, options: Options) -> TwoValuedColumns | None:
    """Columns to train one weight of, where that pays."""
    if fitted.on_codes or options.solver == "dual":
        return None
    if not issparse(X):
        return TwoValuedColumns.of(fitted.spec, X) if options.fit_intercept else None
    # Zeros of sparse rows cost nothing anyway: what pays is a number of weights for Newton steps.
    if fitted.n_columns <= MOST_WEIGHTS:
        return None
    columns = TwoValuedColumns.of(fitted.spec, X)
    return columns if columns is not None and columns.n_weights <= MOST_WEIGHTS else None


def _rounded_rows(rows: Any, fitted: FittedMap, options: Options) -> tuple[np.ndarray, int] | None:
    """Rows in a compact form, on which a first solution takes less time (see `rounded`)."""
    if options.tol < _ROUGH or rows.size < SMALL:
        return None
    precision = np.dtype(precision_of(rows, options.tol))
    return rounded(fitted.spec, rows, precision, resolve_threads(options.n_jobs))


def _no_weights(n_rows: int, n_outputs: int, fitted: FittedMap) -> Solution:
    """The solution of outputs without rows."""
    shape = (len(fitted.feature_map._columns_per_feature()), fitted.n_bases, n_outputs)
    zero = np.zeros(n_outputs)
    alpha = np.zeros((n_rows, n_outputs))
    return Solution(np.zeros(shape), zero, alpha, zero, zero, 0, True)


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
        converged=all(solution.converged for solution in solutions),
        solver="primal" if primal else "dual",
    )
