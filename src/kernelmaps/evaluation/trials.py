"""Trials on few rows: the time that a method will take, and its penalty C."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from .measuring import Problem, fit_features, for_library, judge, limit_threads
from .methods import Method, penalty_of, with_penalty

TRIAL_ROWS = 500
"""Rows of a trial at most."""
_TIMED_TREES = 2  # of boosting: trees take about as long as each other


@dataclass(frozen=True)
class Trial:
    """Times of one method on few rows, and how they grow.

    Attributes
    ----------
    rows : int
        Rows of the trial.
    seconds : float
        Predicted time of a cross-validation on these rows.
    tuning_seconds : float
        Predicted time of :func:`tune`.
    growth : float
        Exponent of the time in the number of rows.
    """

    rows: int
    seconds: float
    tuning_seconds: float
    growth: float

    def predicted(self, rows: int) -> float:
        """Seconds of a cross-validation on a number of rows."""
        return self.seconds * (rows / self.rows) ** self.growth


def run_trial(method: Method, problem: Problem, n_penalties: int = 1) -> Trial:
    """Fit a method once to few rows, to predict the time of its cross-validation."""
    problem = _few_rows(method, problem)
    n_rows, cv = problem.X.shape[0], problem.cv
    with _quiet(method, problem):
        if method.kind == "boosting":
            return Trial(n_rows, _boosting_seconds(method, problem), 0.0, method.growth)
        start = perf_counter()
        inner = _features(method, problem)
        map_seconds, start = perf_counter() - start, perf_counter()
        if problem.y is not None:
            _losses(method, inner, inner.folds()[:1])
        fit_seconds = perf_counter() - start
    # The held-out rows of a fold are mapped, too, and the fit here had the rows of one fold less.
    seconds = cv * cv / (cv - 1) * (map_seconds + fit_seconds)
    tuning = map_seconds + n_penalties * cv * fit_seconds if n_penalties > 1 else 0.0
    return Trial(n_rows, seconds, tuning, method.growth)


def tune(method: Method, problem: Problem, penalties: Sequence[float]) -> Method:
    """Choose the penalty of a method by a cross-validation on few rows.

    These are training rows of the first fold. The features are computed once for all penalties. Of
    equal losses, the smallest penalty is chosen.
    """
    if problem.y is None or penalty_of(method.model) is None:
        return method
    problem = _few_rows(method, problem)
    candidates = [replace(method, model=with_penalty(method.model, C)) for C in sorted(penalties)]
    with _quiet(method, problem):
        inner = _features(method, problem)
        losses = [_losses(candidate, inner, inner.folds()).mean() for candidate in candidates]
    return candidates[int(np.argmin(losses))]


def _few_rows(method: Method, problem: Problem) -> Problem:
    return problem.of_rows(min(problem.X.shape[0], TRIAL_ROWS, method.max_rows or TRIAL_ROWS))


@contextmanager
def _quiet(method: Method, problem: Problem) -> Iterator[None]:
    """Without warnings, which the measurement gives again, and with the threads of measuring."""
    n_cells = problem.X.shape[0] * problem.X.shape[1]
    with warnings.catch_warnings(action="ignore"), limit_threads(method, n_cells):
        yield


def _features(method: Method, problem: Problem) -> Problem:
    """Features (or the Gram matrix of an exact kernel) of the training rows of the first fold."""
    train = problem.folds()[0][0]
    Z, _ = fit_features(method, for_library(method, problem.X[train]))
    return replace(problem, X=Z, y=None if problem.y is None else problem.y[train])


def _losses(method: Method, inner: Problem, folds: Sequence[Any]) -> np.ndarray:
    """Losses of the rows that the folds hold out."""
    assert inner.y is not None
    losses = []
    for train, test in folds:
        Z_train, Z_test = inner.X[train], inner.X[test]
        if method.exact is not None:
            Z_train, Z_test = Z_train[:, train], Z_test[:, train]
        model = clone(method.model).fit(Z_train, inner.y[train])
        losses.append(judge(inner.task, inner.y[test], model.predict(Z_test))[1])
    return np.concatenate(losses)


def _boosting_seconds(method: Method, problem: Problem) -> float:
    """Seconds of all folds of gradient boosting, from its first trees."""
    X: Any = for_library(method, problem.X)
    start, model = perf_counter(), clone(method.model).set_params(max_iter=_TIMED_TREES)
    model.fit(X, problem.y)
    folds_and_trees = (problem.cv - 1) * method.model.max_iter / _TIMED_TREES
    return (perf_counter() - start) * folds_and_trees / 2  # later trees may be smaller
