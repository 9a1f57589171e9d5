r"""Training of additive support vector machines, on rows in memory or in blocks.

f(x) = b + Σ_j g_j(x_j), g_j = ⟨w_j, ψ_j(x_j)⟩, with the objective

.. math:: \tfrac12 \|w\|^2 + C \sum_i s_i\, ℓ(y_i, f(x_i))

of LIBLINEAR, the intercept b not penalised. ψ(X) is never stored: see :mod:`..solvers.dual` for
the algorithm and :mod:`..solvers._dual_loops` for the form in which the weights are stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.sparsefuncs import min_max_axis

from ..._util.display import track
from ..._util.sparse import find_not_finite
from ..._util.threads import power_of_two, run_interruptibly
from ...data import Block, Source, open_source
from ...data.sources import IterableSource, RowSample, sampled_rows
from ...engine.extent import column_range
from ..losses import LOSSES, svm_loss
from ..rows.basis_rows import BasisRows
from ..rows.map_basis import TwoValuedColumns, make_basis
from ..rows.map_tables import (
    make_tables,
    round_rows,
    rows_of,
    tabulate_fractions,
    unpack_weights,
)
from ..solvers._dual_loops import SVMProblem
from ..solvers.dual import Solution, solve
from ..solvers.dual_blocks import BlockDescent, DescentOverBlocks
from ..solvers.primal import solve_primal
from .fitted import MOST_LANES, SMALL, AdditiveMachine, FittedMap, precision_of
from .inputs import naming_gams
from .problem import Options, Targets, curvature_ratio, mean_square, weigh_costs

MOST_WEIGHTS = 1000  # of which Newton steps take less time than epochs
_KINK_CURVATURE = 15.0  # κ from which on the interior-point method takes less time than epochs
# κ beyond which a penalty lies below the rounding of the losses, and Newton's method has nothing to
# go by; the gap of coordinate descent stays at most twice the objective.
_MOST_CURVATURE = 1e12
_SAMPLE_ROWS = 32  # whose distances from their mean give κ, exact to some percent
_ROUGH = 1e-5  # tolerances from which on rounded rows are worth a start
_BLOCK_VALUES = 2**23  # numbers of one block that is read, about
_MOST_SAMPLED = 8192  # rows that a map is fitted to, of rows that come in blocks

# Of scores [row][output], targets and weights of the rows that a fold holds out: the higher, the
# better.
Score = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
Start = tuple[np.ndarray, np.ndarray]  # dual variables [row][output] and intercepts
RoundedRows = Callable[[], tuple[np.ndarray, int] | None]


def make_problem(
    options: Options, y: np.ndarray, positive: np.ndarray, cost: np.ndarray
) -> SVMProblem:
    """Loss, targets and costs as the loops take them."""
    y, positive, cost = (np.ascontiguousarray(values, np.float64) for values in (y, positive, cost))
    loss = list(LOSSES).index(options.loss)
    return SVMProblem(loss, LOSSES[options.loss].has_labels, options.epsilon, y, positive, cost)


def train(
    rows: Any,
    targets: Targets,
    C: float,
    fitted: FittedMap,
    options: Options,
    start: Start | None = None,
) -> Solution:
    """Solve for all outputs, in groups of lanes, one thread each."""
    y, cost = targets.y, weigh_costs(options.owner, C, targets.weight)
    groups = lane_groups(targets, rows.size, options.n_threads)
    group_options = replace(options, n_threads=max(1, options.n_threads // len(groups)))
    # Computed when coordinate descent asks for them, once for all groups.
    rounded = cache(lambda: None if start else _round_rows(rows, fitted, options))

    def solve_outputs(group: slice) -> Solution:
        positive, members = targets.positive[group], slice(None)
        if targets.pairwise:  # trained on the rows of the two classes
            members, positive = np.flatnonzero(np.isin(y, positive)), positive[0, 1:]
        problem = make_problem(options, y[members], positive, cost[members])
        alpha, intercept = np.zeros((len(problem.y), len(positive))), None
        if start is not None:
            # Duals of rows that do not take part now are zero.
            alpha[:] = np.where(problem.cost[:, None] > 0, start[0][members, group], 0)
            intercept = start[1][group] if options.fit_intercept else None
        quiet = group_options if group.start == 0 else replace(group_options, progress=False)
        if not targets.pairwise:
            return solve_group(rows, problem, fitted, quiet, alpha, intercept, rounded)
        solution = solve_group(
            rows[members], problem, fitted, quiet, alpha, intercept, lambda: None
        )
        all_alpha = np.zeros((len(y), 1))
        all_alpha[members] = solution.alpha
        return replace(solution, alpha=all_alpha)

    return join_solutions(run_interruptibly(solve_outputs, groups, options.n_threads))


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
            machine = AdditiveMachine.from_fit(
                None, feature_map=fitted.feature_map, on_codes=fitted.on_codes,
                weights=solution.weights, offset=solution.intercept, tol=quiet.tol,
            )  # fmt: skip
            scores[k, i] = score(machine.scores(rows[test]), targets.y[test], counts[test])
            start = solution.alpha, solution.intercept
            n_failed += not solution.converged
    if n_failed:
        warnings.warn(
            f"{options.owner}: {n_failed} of {scores.size} fits to folds stopped above tol="
            f"{options.tol:g}: raise max_iter= or tol=, or leave out large values of C=.",
            ConvergenceWarning,
            stacklevel=6,  # this function, two of the base class, fit and its decorator
        )
    return scores


def lane_groups(targets: Targets, n_values: float, n_threads: int) -> list[slice]:
    """Outputs that are trained together, as many for each thread.

    Lanes of a group are a power of two; idle ones cost as much as those in use. Few values are
    trained on for all classes together: groups have loops of their own to compile, and their
    last digits depend on how many processors there are. Pairs of classes are trained one by one:
    a row belongs to two classes, so that most lanes would be idle.
    """
    count = len(targets.positive)
    if targets.pairwise:
        size = 1
    elif n_values * count <= SMALL:
        size = -(-count // -(-count // MOST_LANES))
    else:  # no lane is idle but in the last group
        size = min(MOST_LANES, 2 ** (max(1, count // n_threads).bit_length() - 1))
    return [slice(k, min(k + size, count)) for k in range(0, count, size)]


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
    each certificate: Newton's method is never much slower. (Measured by
    ``benchmarks/svm_solvers.py`` on eight tables, with three maps and five C: at most 1.7 times the
    time of the faster one, or 30 ms more.)
    """
    if n_weights > MOST_WEIGHTS or curvature_ratio > _MOST_CURVATURE:
        return "dual"
    return "dual" if has_kinks and curvature_ratio < _KINK_CURVATURE else "primal"


def solve_group(
    rows: Any,
    problem: SVMProblem,
    fitted: FittedMap,
    options: Options,
    alpha: np.ndarray,
    intercept: np.ndarray | None,
    rounded: RoundedRows,
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
        Which solver to take, tolerance, iterations, threads.
    alpha, intercept : ndarray
        Where to start; None: with the best intercept of a model without weights.
    rounded : callable
        Gives the rows rounded to fractions of bins, and the bits of a fraction; or None.
    """
    examples, n_outputs = np.flatnonzero(problem.cost > 0).astype(np.int32), problem.positive.size
    if not len(examples):  # of a pair of classes, all rows of weight 0
        weights, zero = np.zeros((rows.shape[1], fitted.n_bases, n_outputs)), np.zeros(n_outputs)
        return Solution(weights, zero, alpha, zero, zero, 0, True)
    X = rows if len(examples) == rows.shape[0] else rows[examples]
    columns = _two_valued_columns(X, fitted, options)
    n_weights = fitted.n_columns if columns is None else columns.n_weights
    solver = options.solver
    if solver == "auto":
        cost, y = problem.cost[examples], problem.y[examples]
        loss = svm_loss(options.loss, options.epsilon)
        square = mean_square(fitted.spec, X, cost, _SAMPLE_ROWS)
        solver = choose_solver(n_weights, loss.has_kinks, curvature_ratio(loss, y, cost, square))
    if solver == "primal":
        precision, used = np.dtype(np.float64), X
    else:
        precision, used = np.dtype(precision_of(rows, options.tol)), rows
    if columns is None:
        basis = make_basis(fitted.spec, rows, precision)
    else:
        used, basis = columns.encode(used), columns.basis
    if solver == "primal":
        tables = make_tables(basis, used, precision, 1, values_only=True)
        start = (alpha, intercept) if intercept is not None and alpha.any() else None
        solution = solve_primal(
            BasisRows(tables, used), problem, examples, options.fit_intercept, options.tol, start
        )
    else:
        tables = make_tables(basis, used, precision, power_of_two(n_outputs))
        approximate = None
        if columns is None and (coded := rounded()) is not None:
            approximate = tabulate_fractions(tables, coded[1]), rows_of(coded[0])
        solution = solve(
            tables, rows_of(used), problem, examples, options, alpha, intercept, approximate
        )
        solution.weights = unpack_weights(solution.weights, tables, n_outputs)
    if columns is None:
        return solution
    # The weights of coded rows as those of ψ.
    return replace(
        solution,
        weights=columns.transform_weights(solution.weights),
        intercept=solution.intercept - columns.intercept_shift(solution.weights),
    )


def _two_valued_columns(X: Any, fitted: FittedMap, options: Options) -> TwoValuedColumns | None:
    """Columns to train one weight of, where that pays."""
    is_sparse = sparse.issparse(X)
    if fitted.on_codes or options.solver == "dual" or not (is_sparse or options.fit_intercept):
        return None
    # Zeros of sparse rows cost nothing anyway: what pays is a number of weights for Newton steps.
    if is_sparse and fitted.n_columns <= MOST_WEIGHTS:
        return None
    columns = TwoValuedColumns.detect(fitted.spec, X)
    if is_sparse and columns is not None and columns.n_weights > MOST_WEIGHTS:
        return None
    return columns


def _round_rows(rows: Any, fitted: FittedMap, options: Options) -> tuple[np.ndarray, int] | None:
    """Rows in a compact form, on which a first solution takes less time (see `round_rows`)."""
    if options.tol < _ROUGH or rows.size < SMALL:
        return None
    basis = make_basis(fitted.spec, rows, np.dtype(precision_of(rows, options.tol)))
    return round_rows(basis, rows, options.n_threads)


def join_solutions(solutions: Sequence[Solution]) -> Solution:
    """The solution of all outputs from those of groups of them."""
    if len(solutions) == 1:
        return solutions[0]
    joined = {
        name: np.concatenate([getattr(solution, name) for solution in solutions], axis=-1)
        for name in ("weights", "intercept", "alpha", "primal", "gap")
    }
    return Solution(
        **joined,
        n_iter=max(solution.n_iter for solution in solutions),
        converged=all(solution.converged for solution in solutions),
        solver=max(solution.solver for solution in solutions),  # primal, if one is
    )


# ---- rows that come in blocks -------------------------------------------------------------------


def open_rereadable(owner: str, X: Any, y: Any, sample_weight: Any) -> Source:
    """Open data that can be read again and again."""
    source = open_source(X, y, sample_weight)
    if source.once:
        raise TypeError(
            f"{owner}.fit reads its data several times, and a generator can be read only once. "
            "Pass a callable that makes one, a file, or an array."
        )
    if source.parts is None:
        return source
    import dask

    # Partitions of a Dask collection, each computed when its turn comes.
    return IterableSource(lambda: (dask.compute(*partition[:3]) for partition in source.parts))


def read_blocks(source: Source) -> Iterator[Block]:
    """The blocks of a source that have rows."""
    head = source.head(16)
    n_columns = 1 if head is None else max(1, head.X.shape[1])
    for block in source.blocks(max(64, _BLOCK_VALUES // n_columns)):
        if block.X.shape[0]:
            yield block


def read_once(owner: str, source: Source) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """One pass over the data, which refuses rows that no map accepts.

    Returns targets and weights, the numbers of some rows of positive weight, at random, and these
    rows, with the columns' smallest and largest values as two more rows.
    """
    ys, weights, ends, sample, n_counted = [], [], [], RowSample(_MOST_SAMPLED), 0
    for block in read_blocks(source):
        with naming_gams():
            _check_block(owner, block)
        weight = np.ones(len(block)) if block.w is None else np.asarray(block.w, np.float64)
        ys.append(np.asarray(block.y))
        weights.append(weight)
        is_sparse = sparse.issparse(block.X)
        ends.append(min_max_axis(block.X.tocsr(), 0) if is_sparse else column_range(block.X))
        counted = block.take(np.flatnonzero(weight > 0))
        sample.update(replace(counted, start=n_counted))
        n_counted += len(counted)
    if not ends:
        raise ValueError(f"{owner}: the data have no rows.")
    if not n_counted:
        raise ValueError(f"{owner}: no row has a positive weight.")
    y, weight = np.concatenate(ys), np.concatenate(weights)
    sampled = np.flatnonzero(weight > 0)[sampled_rows(n_counted, _MOST_SAMPLED)]
    rows = sample.block().X  # type: ignore[union-attr]
    low, high = (np.stack(values) for values in zip(*ends, strict=True))
    outer = np.stack([low.min(axis=0), high.max(axis=0)]).astype(rows.dtype)
    if sparse.issparse(rows):
        outline = sparse.vstack([rows, sparse.csr_matrix(outer)], format="csr")
    else:
        outline = np.vstack([rows, outer])
    return y, weight, sampled, outline


def _check_block(owner: str, block: Block) -> None:
    if block.y is None:
        raise ValueError(
            f"{owner}: the data carry no targets: pass y, or chunks (X, y), or the name of the "
            "column that holds them."
        )
    place = find_not_finite(block.X)
    if place is not None:
        where = f"chunk {block.chunk}, row {block.row + place[0]}, column {place[1]}"
        raise ValueError(f"{owner}: Input X contains NaN or infinity ({where}).")


def train_on_blocks(
    source: Source, outline: Any, targets: Targets, cost: np.ndarray, fitted: FittedMap,
    options: Options,
) -> Solution:  # fmt: skip
    """Solve for all outputs with the rows of a source; `outline` holds the range of the values."""
    groups = lane_groups(targets, np.inf, options.n_threads)
    group_options = replace(options, n_threads=max(1, options.n_threads // len(groups)))
    precision, states = np.dtype(precision_of(outline, options.tol)), []
    basis = make_basis(fitted.spec, outline, precision)
    for group in groups:
        problem = make_problem(options, targets.y, targets.positive[group], cost)
        lanes = power_of_two(group.stop - group.start)
        tables = make_tables(basis, outline, precision, lanes, all_codes=True)
        states.append(BlockDescent(tables, outline, problem, group_options))

    def read() -> Iterator[tuple[Any, int]]:
        return ((fitted.block(block.X), block.start) for block in read_blocks(source))

    solutions = DescentOverBlocks(states, read, options.n_threads).solve()
    for solution, state in zip(solutions, states, strict=True):
        solution.weights = unpack_weights(solution.weights, state.tables, state.n_outputs)
    return join_solutions(solutions)
