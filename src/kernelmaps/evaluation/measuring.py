"""Measurements of one method: cross-validation with times, and the error of its map."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
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

from .._util.threads import limit_blas, pools
from ..exceptions import KernelScaleWarning, OutOfDomainWarning
from ..inspection.kernel_error import KernelError, kernel_error
from .methods import Method, penalty_of
from .results import Row

# Warnings that a reader of the table should know of.
_NOTED_WARNINGS = {
    ConvergenceWarning: "the linear solver stopped before it converged",
    KernelScaleWarning: "the kernel is constant or diagonal on these rows",
}
_ERROR_FIT_ROWS = 2000  # rows that a map is fitted to before its error is measured
_ONE_THREAD_CELLS = (
    1_000_000  # cells, up to which another library's threads cost more than they bring
)
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
        rows = np.sort(self.order[:count])
        return replace(self, X=self.X[rows], y=None if self.y is None else self.y[rows])


class _FoldMeasurement(NamedTuple):
    """Seconds of map, fit and prediction in one fold, its score, and the loss of each row."""

    seconds: np.ndarray
    columns: int | None
    bytes: int
    score: float | None
    losses: Any


def warm_up(method: Method, problem: Problem) -> None:
    """Compile, or load, what the method runs, so that it is not part of any measurement."""
    few = problem.X[:WARM_ROWS]
    threads = limit_threads(method, few.shape[0] * few.shape[1])
    with warnings.catch_warnings(action="ignore"), threads:
        if method.kind == "map":
            _pipeline(method.steps).fit_transform(few)
        elif method.exact is not None:
            method.exact(few[:64])
        elif method.kind == "gam":
            rows = problem.of_rows(min(WARM_ROWS, problem.X.shape[0]))  # of all classes
            clone(method.model).fit(rows.X, rows.y).predict(rows.X)


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
    folds: list[_FoldMeasurement] = []
    deadline = perf_counter() + seconds
    losses = np.full(problem.X.shape[0], np.nan)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", OutOfDomainWarning)  # part of the error and of the score
        for train, test in problem.folds():
            if folds and perf_counter() > deadline:
                notes.append(f"{len(folds)} of {problem.cv} folds: the time was over")
                break
            with limit_threads(method, train.size * problem.X.shape[1]):
                folds.append(_one_fold(method, problem, train, test))
                if folds[-1].losses is not None:
                    losses[test] = folds[-1].losses
    kinds = {item.category for item in caught}
    notes += [words for kind, words in _NOTED_WARNINGS.items() if kind in kinds]
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
        C=penalty_of(method.model),
    )
    return row, None if np.isnan(losses).any() else losses


def limit_threads(method: Method, n_cells: int) -> Any:
    """One thread for other libraries on little data: their threads would wait for one another."""
    if n_cells > _ONE_THREAD_CELLS:
        return nullcontext()
    if method.kind == "boosting":
        return pools().limit(limits=1, user_api="openmp")
    return limit_blas(1)


def _one_fold(
    method: Method, problem: Problem, train: np.ndarray, test: np.ndarray
) -> _FoldMeasurement:
    X_train, X_test = (for_library(method, problem.X[rows]) for rows in (train, test))
    model = score = losses = None
    times = [perf_counter()]
    Z_train, features = fit_features(method, X_train)
    times.append(perf_counter())
    if problem.y is not None:
        model = clone(method.model).fit(Z_train, problem.y[train])
    times.append(perf_counter())
    predicted = features(X_test) if model is None else model.predict(features(X_test))
    times.append(perf_counter())
    if problem.y is not None:
        score, losses = judge(problem.task, problem.y[test], predicted)
    columns = None if method.exact is not None else Z_train.shape[1]
    return _FoldMeasurement(np.diff(times), columns, _nbytes(Z_train), score, losses)


def judge(task: str, truth: np.ndarray, predicted: np.ndarray) -> tuple[float, np.ndarray]:
    """Accuracy and wrong rows, or R² and squared errors."""
    if task == "classification":
        losses = (predicted != truth).astype(np.float64)
        return float(1 - losses.mean()), losses
    losses = np.square(predicted - truth)
    spread = float(np.square(truth - truth.mean()).sum())
    return float(1 - losses.sum() / spread) if spread else float(losses.sum() == 0), losses


def fit_features(method: Method, X_train: Any) -> tuple[Any, Callable[[Any], Any]]:
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
    train = for_library(method, problem.X[: max(1, min(_ERROR_FIT_ROWS, problem.X.shape[0] // 2))])
    rows = for_library(method, problem.error_rows)
    threads = limit_threads(method, train.shape[0] * train.shape[1])
    with warnings.catch_warnings(action="ignore"), threads:
        before = _pipeline(method.steps[: method.steps.index(method.feature_map)]).fit(train)
        fitted = clone(method.feature_map).fit(before.transform(train))
        truth = method.truth or getattr(fitted, "kernel_", None)
        return None if truth is None else kernel_error(fitted, before.transform(rows), kernel=truth)


def for_library(method: Method, X: Any) -> Any:
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
