"""Successive halving: many methods on few rows, the best of them on all, within a budget.

Scores can only be compared on the same rows and folds. So a budget first shortens the list of
methods, and shrinks the rows only where even the two best would not finish: every round measures
the methods that are left on three times as many rows, and at most half of them go on. Those that
reach the last round are *finished*; all others are shown with what they had when they were stopped.
Up to four times the rows of a first round, a sample costs almost as much as it saves: there is one
round on all rows, in the order of the list, until the time is over.

Two thirds of the budget belong to maps and the plain linear model, one quarter to what they are
compared with (exact kernel machines, scikit-learn's maps, boosting), which are measured on few rows
first and on those of the last round only if that fits; the rest to the errors of the maps. The time
of compiling belongs to none of them.

`measure` does the cross-validation and timing of one method, `measure_error` that of its map.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline

from ..exceptions import KernelScaleWarning, OutOfDomainWarning
from ..progress import track
from ..threads import interruptible, limit_blas, pools
from .errors import KernelError, kernel_error
from .methods import Method
from .results import Row

# Warnings that a reader of the table should know of.
_WORTH_KNOWING = {
    ConvergenceWarning: "the linear solver stopped before it converged",
    KernelScaleWarning: "the kernel is constant or diagonal on these rows",
}
_ERROR_FIT = 2000  # rows that a map is fitted to before its error is measured
_SMALL = 1_000_000  # cells, up to which another library's threads cost more than they bring
WARM_ROWS = 500
"""Rows that tell what a map compiles: fewer may miss a feature's zeros."""


@dataclass(frozen=True)
class Problem:
    """Rows, targets, and the way to judge predictions.

    Attributes
    ----------
    task : str
        "classification", "regression" or "none" (no targets).
    error_rows : array or CSR matrix
        Rows whose pairs the errors of maps are measured on.
    order : array of int
        Order in which rows are taken where not all are.
    """

    X: Any
    y: np.ndarray | None
    task: str
    cv: int
    error_rows: Any
    random_state: int
    order: Any = None

    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Pairs of training and test rows, the same for every method."""
        kind = StratifiedKFold if self.task == "classification" else KFold
        splitter = kind(self.cv, shuffle=True, random_state=self.random_state)
        with warnings.catch_warnings(action="ignore"):  # rare classes in a small sample
            return list(splitter.split(self.X, self.y))

    def of_rows(self, count: int) -> Problem:
        """The same problem on the first rows of `order`."""
        if count == self.X.shape[0]:
            return self
        chosen = np.sort(self.order[:count])
        return replace(self, X=self.X[chosen], y=None if self.y is None else self.y[chosen])


class _Fold(NamedTuple):
    """What one fold took, in seconds for map, fit and prediction, and gave."""

    seconds: np.ndarray
    columns: int | None
    bytes: int
    score: float | None
    losses: Any


def warm_up(method: Method, problem: Problem) -> None:
    """Compile, or load, what the method runs, so that it is not part of any measurement."""
    few = problem.X[:WARM_ROWS]
    with warnings.catch_warnings(action="ignore"):
        if method.kind == "map":
            _pipeline(method.steps).fit_transform(few)
        elif method.exact is not None:
            method.exact(few[:64])


def least_seconds(method: Method, problem: Problem) -> float:
    """Seconds that all folds will take at least, where a small part of the work tells.

    Boosting is a sum of trees that take as long as each other: it is known by its first two.
    """
    if method.kind != "boosting" or problem.y is None:
        return 0.0
    X = _for_others(method, problem.X)
    start, some = perf_counter(), clone(method.model).set_params(max_iter=2)
    with _calm(method, X.shape[0] * X.shape[1]):
        some.fit(X, problem.y)
    rest = (problem.cv - 1) * method.model.max_iter / some.max_iter  # folds × trees
    return (perf_counter() - start) * rest / 2  # later trees may be smaller


def measure(method: Method, problem: Problem, seconds: float = np.inf) -> tuple[Row, Any]:
    """Cross-validate a method; after `seconds` no further fold is begun.

    Returns
    -------
    row : Row
        Without the error of its map.
    losses : ndarray or None
        Loss of each row when it was held out; None unless all folds were done.
    """
    notes: list[str] = []
    folds: list[_Fold] = []
    deadline = perf_counter() + seconds
    losses = np.full(problem.X.shape[0], np.nan)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", OutOfDomainWarning)  # part of the error and of the score
        for train, test in problem.folds():
            if folds and perf_counter() > deadline:
                notes.append(f"{len(folds)} of {problem.cv} folds: the time was over")
                break
            with _calm(method, train.size * problem.X.shape[1]):
                folds.append(_one_fold(method, problem, train, test))
                if folds[-1].losses is not None:
                    losses[test] = folds[-1].losses
    kinds = {item.category for item in caught}
    notes += [words for kind, words in _WORTH_KNOWING.items() if kind in kinds]
    scores = [fold.score for fold in folds if fold.score is not None]
    map_seconds, fit_seconds, predict_seconds = np.mean([f.seconds for f in folds], axis=0).tolist()
    row = Row(
        label=method.label,
        kind=method.kind,
        kernel=method.kernel,
        rows=problem.X.shape[0],
        columns=folds[0].columns,
        score=float(np.mean(scores)) if scores else None,
        score_std=float(np.std(scores) / np.sqrt(len(scores))) if scores else None,
        map_seconds=map_seconds,
        fit_seconds=fit_seconds,
        predict_seconds=predict_seconds,
        bytes=folds[0].bytes,
        code=method.code(),
        note="; ".join(notes),
        status="finished" if len(folds) == problem.cv else "unfinished",
        fold_scores=tuple(scores),
    )
    return row, None if np.isnan(losses).any() else losses


def _calm(method: Method, n_cells: int) -> Any:
    """One thread for other libraries on little data: their threads would wait for one another."""
    if n_cells > _SMALL or method.kind not in ("boosting", "sklearn"):
        return nullcontext()
    if method.kind == "sklearn":
        return limit_blas(1)
    return pools().limit(limits=1, user_api="openmp")


def _one_fold(method: Method, problem: Problem, train: np.ndarray, test: np.ndarray) -> _Fold:
    X_train, X_test = (_for_others(method, problem.X[rows]) for rows in (train, test))
    model = score = losses = None
    times = [perf_counter()]
    Z_train, features = _fitted(method, X_train)
    times.append(perf_counter())
    if problem.y is not None:
        model = clone(method.model).fit(Z_train, problem.y[train])
    times.append(perf_counter())
    found = features(X_test) if model is None else model.predict(features(X_test))
    times.append(perf_counter())
    if problem.y is not None:
        score, losses = _judged(problem.task, problem.y[test], found)
    columns = None if method.exact is not None else Z_train.shape[1]
    return _Fold(np.diff(times), columns, _nbytes(Z_train), score, losses)


def _judged(task: str, truth: np.ndarray, found: np.ndarray) -> tuple[float, np.ndarray]:
    """Accuracy and wrong rows, or R² and squared errors."""
    if task == "classification":
        losses = (found != truth).astype(np.float64)
        return float(1 - losses.mean()), losses
    losses = np.square(found - truth)
    spread = float(np.square(truth - truth.mean()).sum())
    return float(1 - losses.sum() / spread) if spread else float(losses.sum() == 0), losses


def _fitted(method: Method, X_train: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Features of the training rows, and the function that gives those of others."""
    steps = _pipeline(method.steps)
    Z = steps.fit_transform(X_train)
    if method.exact is None:
        return Z, steps.transform
    kernel = method.exact
    scale = float(np.mean(kernel.diag(Z))) or 1.0  # mean k(x, x) = 1, as for the maps
    return kernel(Z) / scale, lambda X: kernel(steps.transform(X), Z) / scale


def _pipeline(steps: Sequence[Any]) -> Any:
    """The steps, unfitted; rows as they are where there are none."""
    return make_pipeline("passthrough", *map(clone, steps))


def measure_error(method: Method, problem: Problem) -> KernelError | None:
    """Error of the method's map behind the steps before it, on rows that it was not fitted to."""
    if method.feature_map is None:
        return None
    train = _for_others(method, problem.X[: max(1, min(_ERROR_FIT, problem.X.shape[0] // 2))])
    rows = _for_others(method, problem.error_rows)
    calm = _calm(method, train.shape[0] * train.shape[1])
    with warnings.catch_warnings(action="ignore"), calm:
        before = _pipeline(method.steps[: method.steps.index(method.feature_map)]).fit(train)
        fitted = clone(method.feature_map).fit(before.transform(train))
        truth = method.truth or getattr(fitted, "kernel_", None)
        return None if truth is None else kernel_error(fitted, before.transform(rows), kernel=truth)


def _for_others(method: Method, X: Any) -> Any:
    """What other libraries need: floats for scikit-learn's maps, dense rows for boosting."""
    if method.kind == "boosting" and sparse.issparse(X):
        return X.toarray()
    if method.kind == "map" or X.dtype in (np.float32, np.float64):
        return X
    return X.astype(np.float64)


def _nbytes(Z: Any) -> int:
    if sparse.issparse(Z):
        return int(Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes)
    return int(Z.nbytes)


_FIRST_ROWS = 500
_WORTH = 4  # times the first rows, up to which all methods run on all rows at once
_FACTOR = 3  # rows of a round, over those of the one before
_NEARLY = 1.5  # times the rows of a round are all rows: it takes them all, and is the last
_MAPS, _PEERS = 0.65, 0.25  # of the budget, for maps and for what they are compared with
_SAFETY = 0.8  # of the time left that a round is planned for: predictions are rough


def row_order(
    n: int, y: np.ndarray | None, task: str, cv: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows in random order, in which every beginning has all classes, as far as they go.

    The first rows hold `cv` of each class (or all of it), so that no round misses a rare one.
    """
    order = rng.permutation(n)
    if y is None or task != "classification":
        return order
    _, codes = np.unique(y[order], return_inverse=True)
    by_class = np.argsort(codes, kind="stable")
    starts = np.r_[0, np.flatnonzero(np.diff(codes[by_class])) + 1]
    within = np.arange(n) - np.repeat(starts, np.diff(np.r_[starts, n]))
    first = np.zeros(n, dtype=bool)
    first[by_class[within < cv]] = True
    return np.concatenate([order[first], order[~first]])


def _rivals(methods: Iterable[Method]) -> int:
    return sum(method.kind != "linear" for method in methods)


class Rounds:
    """Runs methods in rounds, and keeps the last row of each.

    Parameters
    ----------
    problem : Problem
        All rows, and the order in which they are taken.
    budget : float or None
        Seconds of measuring; None measures everything on all rows.
    progress : bool or None
        Whether to show a bar.
    """

    def __init__(self, problem: Problem, budget: float | None, progress: bool | None) -> None:
        self.problem, self.progress = problem, progress
        self.n = problem.X.shape[0]
        self.limited = budget is not None
        total = np.inf if budget is None else budget
        # Seconds that each sort of work may still take.
        shares = {"maps": _MAPS, "peers": _PEERS, "errors": 1 - _MAPS - _PEERS}
        self.left = {sort: share * total for sort, share in shares.items()}
        self.results: dict[str, Row] = {}
        self.losses: dict[str, np.ndarray] = {}
        self.costs: dict[str, list[tuple[int, float]]] = {}  # (rows, seconds) of each round
        self.failures: dict[str, str] = {}  # label: why it could not run
        self.rows = 0  # of the last round
        self.interrupted = False

    def run(self, methods: Sequence[Method]) -> None:
        """Measure; Ctrl-C ends it with what is finished by then."""
        own = [method for method in methods if not method.is_peer]
        peers = [method for method in methods if method.is_peer]
        try:
            self._all_rounds(own)
            self._run_peers(peers)
            self._measure_errors(methods)
        except KeyboardInterrupt:
            self.interrupted = True
            self.rows = self._most_common_rows()
        for method in methods:
            self._settle(method)

    def first_rows(self) -> int:
        """Rows of the first round: enough for some of every class in every fold."""
        if not self.limited:
            return self.n
        n_classes = 1 if self.problem.task != "classification" else len(np.unique(self.problem.y))
        first = max(_FIRST_ROWS, 2 * self.problem.cv * n_classes)
        return self.n if self.n <= _WORTH * first else first

    # ---- rounds ---------------------------------------------------------------------------------

    def _all_rounds(self, methods: list[Method]) -> None:
        going, rows = methods, self.first_rows()
        share = 1.0 if rows == self.n else 0.5
        while going:
            # What the first round cannot measure in its share of the time is not run at all.
            self._round(going, rows, "maps", keep=(1 - share) * self.left["maps"])
            share = 1.0
            self.rows = rows
            if rows == self.n:
                break
            plan = self._next(self._ranked(going))
            if plan is None:
                break
            going, rows = plan
        # What time is left goes to the next best that were stopped.
        if self.limited:
            for method in self._ranked(methods):
                if self.predicted(method, self.rows) <= _SAFETY * self.left["maps"]:
                    self._round([method], self.rows, "maps")

    def _next(self, ranked: list[Method]) -> tuple[list[Method], int] | None:
        """Methods and rows of the next round, best first; None if no further one is worth it."""
        left = _SAFETY * self.left["maps"]
        if sum(self.predicted(method, self.n) for method in ranked) <= left:
            return ranked, self.n
        rows = _FACTOR * self.rows
        if _NEARLY * rows >= self.n:
            rows = self.n
        rounds = max(1, int(np.ceil(np.log(self.n / (_NEARLY * self.rows)) / np.log(_FACTOR))))
        most = len(ranked) if rows == self.n else max(3, -(-len(ranked) // 2))
        while rows >= 1.5 * self.rows:
            going = self._fitting(ranked, rows, left / rounds)[:most]
            if _rivals(going) >= min(2, _rivals(ranked)):
                return going, rows
            rounds, rows = 1, int(rows / 1.25)
        return None

    def _fitting(self, ranked: Iterable[Method], rows: int, seconds: float) -> list[Method]:
        """The best methods that together fit into the time; what does not fit is passed over.

        The plain linear model comes first: everything is held against it, and it is quick.
        """
        chosen: list[Method] = []
        for method in sorted(ranked, key=lambda method: method.kind != "linear"):
            cost = self.predicted(method, rows)
            if cost <= seconds:
                chosen.append(method)
                seconds -= cost
        return chosen

    def _run_peers(self, peers: list[Method]) -> None:
        """Few rows first, to know the cost; then the rows of the last round, cheapest first."""
        if not peers or not self.rows:
            return
        if self.limited:
            self.left["peers"] += max(0.0, self.left["maps"])
            peers = sorted(peers, key=lambda method: method.kind == "boosting")
            few = min(self.rows, self.first_rows())
            kept = 0.5 if few < self.rows else 0.0  # for the last round
            self._round(peers, few, "peers", keep=kept * self.left["peers"])
            peers = sorted(peers, key=lambda method: self.predicted(method, self.rows))
            peers = self._fitting(peers, self.rows, _SAFETY * self.left["peers"])
        self._round(peers, self.rows, "peers")

    def _round(self, methods: Sequence[Method], rows: int, sort: str, keep: float = 0.0) -> None:
        """Measure methods on some rows, until no more than `keep` is left for their sort."""
        words = f"{len(methods)} methods on {rows} rows"
        enabled = self.progress if len(methods) > 1 else False
        for method in track(methods, words, enabled=enabled):
            own = min(rows, method.max_rows or rows)
            done = self.costs.get(method.label, [(0, 0.0)])[-1][0]
            if done >= own or method.label in self.failures:
                continue
            if self.left[sort] <= keep and len(self.results) > 1:
                continue
            problem = self.problem.of_rows(own)
            try:
                if self._is_too_long(method, problem, self.left[sort] - keep):
                    continue
                interruptible(warm_up, method, problem)
                start = perf_counter()
                # However small the budget, there are two results to compare.
                seconds = self.left[sort] - keep if len(self.results) > 1 else np.inf
                row, losses = interruptible(measure, method, problem, seconds)
                if self.problem.task == "none":
                    row = replace(row, error=interruptible(measure_error, method, problem))
            except (ValueError, TypeError, MemoryError) as error:
                self.failures[method.label] = str(error).splitlines()[0]
                self.results.pop(method.label, None)
                continue
            spent = perf_counter() - start
            self.left[sort] -= spent
            self.results[method.label] = row
            if losses is not None:
                self.losses[method.label] = losses
            share = len(row.fold_scores) / problem.cv or 1.0  # of the folds that were done
            self.costs.setdefault(method.label, []).append((own, spent / share))

    def _is_too_long(self, method: Method, problem: Problem, seconds: float) -> bool:
        """Whether a method that was not measured yet is known not to finish in time."""
        if not self.limited or len(self.results) < 2 or method.label in self.costs:
            return False
        return interruptible(least_seconds, method, problem) > seconds

    def _measure_errors(self, methods: Sequence[Method]) -> None:
        """Errors of the maps, those that finished first; they do not depend on the folds."""
        if self.limited:
            self.left["errors"] += max(0.0, self.left["peers"])
        known = [m for m in self._ranked(methods) if self.results[m.label].error is None]
        for method in track(known, "errors of the maps", enabled=self.progress):
            if self.left["errors"] <= 0:
                break
            start = perf_counter()
            error = interruptible(measure_error, method, self.problem)
            self.results[method.label] = replace(self.results[method.label], error=error)
            self.left["errors"] -= perf_counter() - start

    def _most_common_rows(self) -> int:
        """Rows that most methods were measured on when the round was interrupted."""
        seen = [row.rows for row in self.results.values()]
        return max(set(seen), key=lambda rows: (seen.count(rows), rows), default=0)

    def sample(self) -> tuple[Any, Any]:
        """Rows and targets of the last round."""
        problem = self.problem.of_rows(self.rows or self.first_rows())
        return problem.X, problem.y

    # ---- ranks and costs ------------------------------------------------------------------------

    def _ranked(self, methods: Iterable[Method]) -> list[Method]:
        """Methods that have a result: those on most rows first, of these the best first."""
        known = [m for m in methods if m.label in self.results]

        def rank(method: Method) -> tuple[float, float]:
            row = self.results[method.label]
            if self.problem.task == "none":
                return -row.rows, np.inf if row.error is None else row.error.relative
            return -row.rows, -np.inf if row.score is None else -row.score

        return sorted(known, key=rank)

    def predicted(self, method: Method, rows: int) -> float:
        """Seconds for more rows, by the growth that was seen between two rounds."""
        own = min(rows, method.max_rows or rows)
        history = self.costs.get(method.label)
        if not history:
            return 0.0 if method.label in self.failures else np.inf
        done, seconds = history[-1]
        if own <= done:
            return 0.0
        growth = method.growth
        if len(history) > 1:
            (before, earlier), _ = history[-2:]
            seen = np.log(max(seconds, 1e-9) / max(earlier, 1e-9)) / np.log(done / before)
            # Few rows are mostly overhead: what was seen is less than what will come.
            growth = float(np.clip(1.1 * seen, min(0.8, growth), growth))
        return seconds * (own / done) ** growth

    def _settle(self, method: Method) -> None:
        """Say of each method whether it may be compared with the others."""
        row = self.results.get(method.label)
        if row is None:
            if method.label not in self.failures:
                known = method.label, method.kind, method.kernel
                self.results[method.label] = Row(*known, 0, status="not run", code=method.code())
        elif row.status == "finished" and row.rows != self.rows:
            limited = method.max_rows is not None and row.rows == method.max_rows
            self.results[method.label] = replace(row, status="limited" if limited else "stopped")
