"""Cross-validation and timing of one method, and the error of its map."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from ..exceptions import KernelScaleWarning, OutOfDomainWarning
from ..threads import limit_blas, pools
from .errors import KernelError, kernel_error
from .methods import Method
from .results import Row

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
        with warnings.catch_warnings(action="ignore"):  # rare classes in a small sample
            return list(splitter(self.task, self.cv, self.random_state).split(self.X, self.y))

    def of_rows(self, chosen: np.ndarray) -> Problem:
        """The same problem on some of the rows."""
        return replace(self, X=self.X[chosen], y=None if self.y is None else self.y[chosen])


def splitter(task: str, cv: int, random_state: int) -> Any:
    """How rows are divided into folds."""
    kind = StratifiedKFold if task == "classification" else KFold
    return kind(cv, shuffle=True, random_state=random_state)


@dataclass
class _Fold:
    """What one fold took and gave."""

    map: float = 0.0
    fit: float = 0.0
    predict: float = 0.0
    columns: int | None = None
    bytes: int = 0
    score: float | None = None
    losses: Any = None


def warm_up(method: Method, problem: Problem) -> None:
    """Compile, or load, what the method runs, so that it is not part of any measurement."""
    few = problem.X[:WARM_ROWS]
    with warnings.catch_warnings(action="ignore"):
        if method.kind == "map":
            for step in map(clone, method.steps):
                few = step.fit_transform(few)
        elif method.exact is not None:
            method.exact(few[:64])


def least_seconds(method: Method, problem: Problem) -> float:
    """Seconds that all folds will take at least, where a small part of the work tells.

    Boosting is a sum of trees that take as long as each other: it is known by its first two.
    """
    if method.kind != "boosting" or problem.y is None:
        return 0.0
    X = _for_others(method, problem.X)
    watch, some = _Watch(), clone(method.model).set_params(max_iter=2)
    with _calm(method, X.shape[0] * X.shape[1]):
        some.fit(X, problem.y)
    rest = (problem.cv - 1) * method.model.max_iter / some.max_iter  # folds × trees
    return watch.lap() * rest / 2  # later trees may be smaller


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
    deadline = perf_counter() + seconds
    folds: list[_Fold] = []
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
    notes += _heard(caught)
    scores = [fold.score for fold in folds if fold.score is not None]
    row = Row(
        label=method.label,
        kind=method.kind,
        kernel=method.kernel,
        rows=problem.X.shape[0],
        columns=folds[0].columns,
        score=float(np.mean(scores)) if scores else None,
        score_std=float(np.std(scores) / np.sqrt(len(scores))) if scores else None,
        map_seconds=float(np.mean([fold.map for fold in folds])),
        fit_seconds=float(np.mean([fold.fit for fold in folds])),
        predict_seconds=float(np.mean([fold.predict for fold in folds])),
        bytes=folds[0].bytes,
        code=method.code(),
        note="; ".join(notes),
        status="finished" if len(folds) == problem.cv else "unfinished",
        fold_scores=tuple(scores),
    )
    return row, None if np.isnan(losses).any() else losses


def _heard(caught: list[Any]) -> list[str]:
    """What warnings a reader of the table should know of."""
    kinds = {item.category for item in caught}
    found = []
    if ConvergenceWarning in kinds:
        found.append("the linear solver stopped before it converged")
    if KernelScaleWarning in kinds:
        found.append("the kernel is constant or diagonal on these rows")
    return found


def _calm(method: Method, n_cells: int) -> Any:
    """One thread for other libraries on little data: their threads would wait for one another."""
    if n_cells > _SMALL or method.kind not in ("boosting", "sklearn"):
        return nullcontext()
    if method.kind == "sklearn":
        return limit_blas(1)
    return pools().limit(limits=1, user_api="openmp")


def _one_fold(method: Method, problem: Problem, train: np.ndarray, test: np.ndarray) -> _Fold:
    X_train, X_test = (_for_others(method, problem.X[rows]) for rows in (train, test))
    fold, watch = _Fold(), _Watch()
    Z_train, features = _fitted(method, X_train)
    fold.map = watch.lap()
    fold.bytes = _nbytes(Z_train)
    fold.columns = None if method.exact is not None else Z_train.shape[1]
    if problem.y is None:
        features(X_test)
        fold.predict = watch.lap()
        return fold
    model = clone(method.model).fit(Z_train, problem.y[train])
    fold.fit = watch.lap()
    found = model.predict(features(X_test))
    fold.predict = watch.lap()
    fold.score, fold.losses = _judged(problem.task, problem.y[test], found)
    return fold


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
    steps, Z = [clone(step) for step in method.steps], X_train
    for step in steps:
        Z = step.fit_transform(Z)

    def features(X: Any) -> Any:
        for step in steps:
            X = step.transform(X)
        return X

    if method.exact is None:
        return Z, features
    kernel, rows = method.exact, Z
    scale = float(np.mean(kernel.diag(rows))) or 1.0  # mean k(x, x) = 1, as for the maps
    return kernel(rows) / scale, lambda X: kernel(features(X), rows) / scale


def measure_error(method: Method, problem: Problem) -> KernelError | None:
    """Error of the method's map behind the steps before it, on rows that it was not fitted to."""
    if method.feature_map is None:
        return None
    train = _for_others(method, problem.X[: max(1, min(_ERROR_FIT, problem.X.shape[0] // 2))])
    rows = _for_others(method, problem.error_rows)
    calm = _calm(method, train.shape[0] * train.shape[1])
    with warnings.catch_warnings(action="ignore"), calm:
        return _error_behind(method, train, rows)


def _error_behind(method: Method, train: Any, rows: Any) -> KernelError | None:
    for step in method.steps:
        fitted = clone(step).fit(train)
        if step is method.feature_map:
            truth = method.truth or getattr(fitted, "kernel_", None)
            return None if truth is None else kernel_error(fitted, rows, kernel=truth)
        train, rows = fitted.transform(train), fitted.transform(rows)
    return None


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


class _Watch:
    def __init__(self) -> None:
        self.last = perf_counter()

    def lap(self) -> float:
        now = perf_counter()
        self.last, elapsed = now, now - self.last
        return elapsed
