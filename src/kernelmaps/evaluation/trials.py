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
"""Rows of a first trial at most, and of the search for a penalty."""
_SMALLER = 3  # times fewer rows of another trial, which tells what part of the time is fixed
_LARGER = 4  # times the rows of a further trial, if these are no more than half of all
_MOST_FIXED = 0.95  # of a time, at most, that does not grow with the rows: measurements are rough
# The same of a first trial, whose times are those of milliseconds. On 500 to 6435 rows of two
# tables, times of nine methods grew by factors of 3 to 21 (median 9); half of them fixed, it is 9.
_MOST_FIXED_OF_FEW = 0.5
# Of the time of all rows that few rows take if something was computed for the first time.
_ONCE = 0.8
_TIMED_TREES = 2, 8  # of boosting


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
        Exponent of the time in the number of rows, apart from what is fixed.
    fixed : float
        Part of the time that does not depend on the number of rows.
    """

    rows: int
    seconds: float
    tuning_seconds: float
    growth: float
    fixed: float = 0.0

    def predicted(self, rows: int) -> float:
        """Seconds of a cross-validation on a number of rows."""
        return self.seconds * grown(rows / self.rows, self.growth, self.fixed)

    def fixed_at(self, rows: int) -> float:
        """Part of the time on a number of rows that does not depend on it."""
        return self.fixed * self.seconds / max(self.predicted(rows), 1e-9)


def grown(ratio: float, growth: float, fixed: float) -> float:
    """Time for `ratio` times the rows, in units of the time for the rows themselves."""
    return fixed + (1 - fixed) * ratio**growth


def fixed_part(smaller: tuple[int, float], larger: tuple[int, float], growth: float) -> float:
    """The part of the time of `larger` (rows, seconds) that does not grow, from both times."""
    ratio = (smaller[0] / larger[0]) ** growth
    share = (smaller[1] / max(larger[1], 1e-9) - ratio) / (1 - ratio)
    return float(np.clip(share, 0.0, _MOST_FIXED))


def run_trial(
    method: Method, problem: Problem, n_penalties: int = 1, seconds: float = 0.0
) -> Trial:
    """Fit a method to few rows, and to fewer, to predict the time of its cross-validation.

    Trials on more rows follow, as long as one takes no more than `seconds`: what takes milliseconds
    on few rows says little of many.
    """
    few, growth, cv = _few_rows(method, problem), method.growth, problem.cv
    seconds_of = _boosting_seconds if method.kind == "boosting" else _seconds
    fixed = of_fewer = 0.0
    with _quiet(method, few):
        # Fewer rows first: what is computed once (a design) then is no part of the later times.
        if smaller := _smaller_rows(few):
            of_fewer = sum(seconds_of(method, problem.of_rows(smaller)))
        map_seconds, fit_seconds = seconds_of(method, few)
        rows, spent = few.X.shape[0], map_seconds + fit_seconds
        if smaller and of_fewer >= _ONCE * spent:
            of_fewer = sum(seconds_of(method, problem.of_rows(smaller)))
        if smaller:
            fixed = fixed_part((smaller, of_fewer), (rows, spent), growth)
            fixed = min(fixed, _MOST_FIXED_OF_FEW)
        most_rows = min(problem.X.shape[0] // 2, method.max_rows or problem.X.shape[0])
        # What a trial takes itself, of the time that it predicts.
        share = sum(_TIMED_TREES) / method.model.max_iter if method.kind == "boosting" else 1.0
        while (
            _LARGER * rows <= most_rows and share * spent * grown(_LARGER, growth, fixed) <= seconds
        ):
            before, rows = (rows, spent), _LARGER * rows
            spent = sum(seconds_of(method, problem.of_rows(rows)))
            fixed = fixed_part(before, (rows, spent), growth)
    if method.kind == "boosting":  # all rows: a fold has fewer
        return Trial(rows, (cv - 1) * spent, 0.0, growth, fixed)
    tuned = n_penalties > 1 and penalty_of(method.model) is not None
    tuning = map_seconds + n_penalties * cv * fit_seconds if tuned else 0.0
    # The held-out rows of a fold are mapped, too, and the fit here had the rows of one fold less.
    return Trial(rows, cv * cv / (cv - 1) * spent, tuning, growth, fixed)


def _smaller_rows(problem: Problem) -> int:
    """Rows of a second trial; 0 where there would be too few of each class."""
    smaller = problem.X.shape[0] // _SMALLER
    n_classes = 1 if problem.task != "classification" else len(np.unique(problem.y))
    return smaller if smaller >= 2 * problem.cv * n_classes else 0


def _seconds(method: Method, problem: Problem) -> tuple[float, float]:
    """Seconds of mapping the rows of one fold, and of a fit to those of an inner fold."""
    start = perf_counter()
    inner = _features(method, problem)
    map_seconds, start = perf_counter() - start, perf_counter()
    if problem.y is not None:
        _losses(method, inner, inner.folds()[:1])
    return map_seconds, perf_counter() - start


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


def _boosting_seconds(method: Method, problem: Problem) -> tuple[float, float]:
    """Seconds of gradient boosting from its first trees: what is done once, and all trees."""
    X, times = for_library(method, problem.X), []
    for trees in _TIMED_TREES:
        start, model = perf_counter(), clone(method.model).set_params(max_iter=trees)
        model.fit(X, problem.y)
        times.append(perf_counter() - start)
    per_tree = max(0.0, times[1] - times[0]) / (_TIMED_TREES[1] - _TIMED_TREES[0])
    return max(0.0, times[0] - _TIMED_TREES[0] * per_tree), method.model.max_iter * per_tree
