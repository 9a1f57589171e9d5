r"""Placement of the anchors of a feature (annfm §3.2).

*Spaced* anchors need a range only. *Fitted* anchors look at the distinct values of the feature and
at how often each occurs; a feature with no more distinct values than anchors gets these values as
its anchors, and the map is then exact on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

_MAX_CELLS = 2**28  # entries of the table of split points in k-means


def uniform(low: float, high: float, n: int, least: float) -> np.ndarray:
    """Equal steps (eq. 2, which counts one too few: n points cover to (high − low)/(2(n − 1)))."""
    return np.linspace(low, high, n)


def sqrt_spaced(low: float, high: float, n: int, least: float) -> np.ndarray:
    """Equal steps of √x (of √(x − low) if there are negative values): dense at small values."""
    if low <= 0 or n < 2:
        return low + (high - low) * np.linspace(0, 1, n) ** 2
    anchors = np.linspace(np.sqrt(low), np.sqrt(high), n) ** 2
    anchors[[0, -1]] = low, high
    return anchors


def log_spaced(low: float, high: float, n: int, least: float) -> np.ndarray:
    """Equal ratios from the smallest positive value to `high`, and 0 itself where `low` is 0."""
    if low > 0:
        return np.geomspace(low, high, n)
    anchors = np.append(0.0, np.geomspace(least, high, n - 1) if n > 2 else high)
    return anchors[len(anchors) - n :]


def kmeans(values: np.ndarray, counts: np.ndarray, n: int) -> np.ndarray:
    r"""The codebook v that minimises :math:`\sum_m \min_j (x_m - v_j)^2` (eq. 3), exactly.

    Optimal clusters of numbers are intervals, so that dynamic programming over the sorted distinct
    values finds the optimum: with D(k, m) the least cost of k clusters for the first m values,
    D(k, m) = min_i D(k − 1, i) + cost(i, m). The best i grows with m, which divide and conquer
    turns into O(n m log m) steps. Repeated values enter as weights, which a library for plain
    lists of numbers cannot do: a feature of 60000 pixels has at most 256 distinct values.

    Where the rounding of the squared range is more than a millionth of the cost that was found, as
    beside an outlier, the search is repeated with twice the digits.
    """
    if len(values) <= n:
        return values
    if n * len(values) > _MAX_CELLS:
        raise ValueError(
            f"exact k-means of {len(values)} distinct values into {n} anchors needs a table of "
            f"{n * len(values)} split points; use anchors='quantile', or fewer anchors."
        )
    from ._kmeans import optimal_splits

    # Sums of squares lose digits far from zero. Deviations from a value amid the others are exact
    # for its neighbours, and so is a scale that is a power of two.
    away = values - values[len(values) // 2]
    away = np.ldexp(away, -int(np.frexp(np.abs(away).max())[1]))
    weights = counts.astype(np.float64)
    starts, cost, rounding = optimal_splits(away, weights, n, False)
    if not rounding < 1e-6 * cost:
        starts = optimal_splits(away, weights, n, True)[0]
    mass = np.add.reduceat(counts, starts)
    return np.add.reduceat(values * counts, starts) / mass


def quantiles(values: np.ndarray, counts: np.ndarray, n: int) -> np.ndarray:
    """n values with equally many data between them; equal ones (heavy values) are one anchor."""
    if len(values) <= n:
        return values
    below = np.cumsum(counts)
    wanted = np.linspace(0, 1, n) * (below[-1] - 1)
    return np.unique(values[np.searchsorted(below, wanted, side="right")])


def cover(values: np.ndarray, epsilon: float) -> np.ndarray:
    """The smallest set of anchors with |x − anchor| ≤ ε for every value.

    From the left: the first uncovered value x needs an anchor in [x − ε, x + ε], and none reaches
    further than x + ε. So groups of width 2ε, taken greedily, are as few as possible. Each group's
    anchor is put in its middle.
    """
    anchors = []
    start = 0
    while start < len(values):
        stop = int(np.searchsorted(values, values[start] + 2 * epsilon, side="right"))
        anchors.append(0.5 * (values[start] + values[stop - 1]))
        start = stop
    return np.array(anchors)


SPACED: dict[str, Callable[[float, float, int, float], np.ndarray]] = {
    "uniform": uniform,
    "sqrt": sqrt_spaced,
    "log": log_spaced,
}
FITTED: dict[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    "kmeans": kmeans,
    "quantile": quantiles,
}


def column_values(X: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values of column d of a dense or CSC matrix, sorted, and how often each occurs."""
    if not sparse.issparse(X):
        values, counts = np.unique(X[:, d], return_counts=True)
        return values.astype(np.float64), counts
    stored = X.data[X.indptr[d] : X.indptr[d + 1]]
    absent = X.shape[0] - len(stored)
    values, counts = np.unique(stored.astype(np.float64), return_counts=True)
    if absent == 0:
        return values, counts
    at = int(np.searchsorted(values, 0.0))
    if at < len(values) and values[at] == 0:
        counts[at] += absent
        return values, counts
    return np.insert(values, at, 0.0), np.insert(counts, at, absent)


def cover_radius(anchors: np.ndarray, low: float, high: float) -> float:
    """Largest distance from a point of [low, high] to its nearest anchor."""
    ends = (anchors[0] - low, high - anchors[-1])
    return float(max(*ends, np.max(np.diff(anchors), initial=0.0) / 2, 0.0))
