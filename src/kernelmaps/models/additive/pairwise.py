"""One against one on a fitted map: the problem of each pair, on the rows of its two classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...threads import resolve_threads, together


def solve_pairs(
    model: Any,
    X: Any,
    y: np.ndarray,
    pairs: np.ndarray,
    cost: np.ndarray,
    start: tuple[np.ndarray, np.ndarray] | None,
) -> list[Any]:
    """Solve the problems of all pairs of class codes, each in a thread of its own.

    Rows of other classes take no part: their duals are zero. (Lanes, as for one against the rest,
    would not pay: a row belongs to two of K classes, so that most lanes of a visit were idle.)
    """
    settings = model._settings(len(pairs))

    def work(k: int) -> Any:
        own = np.flatnonzero((y == pairs[k, 0]) | (y == pairs[k, 1]))
        if not cost[own].any():
            return _nothing(model, len(y))
        beta, intercept = np.zeros((len(own), 1)), None
        if start is not None:
            # Of rows that do not take part now, nothing may be left.
            beta[:] = np.where(cost[own, None] > 0, start[0][own, k : k + 1], 0)
            intercept = start[1][k : k + 1] if model.fit_intercept else None
        problem = model._asked(y[own], pairs[k, 1:], cost[own])
        quiet = settings if k == 0 else replace(settings, progress=False)
        solution = model._solve(X[own], problem, quiet, beta, intercept)
        whole = np.zeros((len(y), 1))
        whole[own] = solution.beta
        return replace(solution, beta=whole)

    return together(work, range(len(pairs)), resolve_threads(model.n_jobs))


def _nothing(model: Any, n: int) -> Any:
    """The solution for a pair without rows: no weights."""
    from .dual import Solution

    shape = (model.n_features_in_, max(model.feature_map_._columns_per_feature()), 1)
    none = np.zeros(1)
    return Solution(np.zeros(shape), none, np.zeros((n, 1)), none, none, 0, 0, True)
