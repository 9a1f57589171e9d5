r"""Placement of a feature's anchors, and square roots of their kernel (Wang et al. 2015, §3.2-3.3).

**Square roots** Q of the anchor kernel, K = Q Qᵀ: row n is the map of anchor n. Plain Cholesky
fails on anchor kernels: an anchor at 0 makes a zero row, and 50 anchors of χ² have a numerical rank
of 13. So K = U Λ Uᵀ, with rounding's negative eigenvalues set to zero, and Q = U Λ^{1/2}, largest
first: the best r columns of all, the fewest with Σ λ ≥ energy · trace K, or `rank` of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

_MAX_CELLS = 2**28  # entries of the table of split points in k-means


def space_by_roots(low: float, high: float, n: int) -> np.ndarray:
    """Equal steps of √x (of √(x − low) if there are negative values): dense at small values."""
    if low <= 0 or n < 2:
        return low + (high - low) * np.linspace(0, 1, n) ** 2
    anchors = np.linspace(np.sqrt(low), np.sqrt(high), n) ** 2
    anchors[[0, -1]] = low, high
    return anchors


def kmeans(values: np.ndarray, counts: np.ndarray, n: int) -> np.ndarray:
    r"""The codebook v that minimises :math:`\sum_m \min_j (x_m - v_j)^2` (eq. 3), exactly.

    Optimal clusters of numbers are intervals, so that dynamic programming over the sorted distinct
    values finds the optimum: with D(k, m) the least cost of k clusters for the first m values,
    D(k, m) = min_i D(k − 1, i) + cost(i, m). The best i grows with m, which divide and conquer
    turns into O(n m log m) steps. Repeated values enter as weights, which a library for plain
    lists of numbers cannot do: a feature of 60000 pixels has at most 256 distinct values.

    Where the rounding of the squared range is more than a millionth of the cost that was found, as
    with an outlier, the search is repeated with twice the digits.
    """
    if len(values) <= n:
        return values
    if n * len(values) > _MAX_CELLS:
        raise ValueError(
            f"exact k-means of {len(values)} distinct values into {n} anchors needs a table of "
            f"{n * len(values)} split points; use anchors='sqrt', or fewer anchors."
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


def column_values(X: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Distinct values of each column of a dense or CSC matrix, sorted, and their counts."""
    if not sparse.issparse(X):
        pairs = [np.unique(column, return_counts=True) for column in np.ascontiguousarray(X.T)]
        return [values.astype(np.float64) for values, _ in pairs], [counts for _, counts in pairs]
    n_rows, d = X.shape
    stored = np.diff(X.indptr)
    with_zeros = np.flatnonzero(stored < n_rows)
    columns = np.concatenate([np.repeat(np.arange(d), stored), with_zeros])
    values = np.concatenate([X.data, np.zeros(len(with_zeros))])
    times = np.concatenate([np.ones(len(X.data), np.intp), (n_rows - stored)[with_zeros]])
    order = np.lexsort((values, columns))
    columns, values, times = columns[order], values[order], times[order]
    is_new = np.append(True, (np.diff(values) != 0) | (np.diff(columns) != 0))
    counts = np.add.reduceat(times, np.flatnonzero(is_new))
    ends = np.cumsum(np.bincount(columns[is_new]))[:-1]
    return np.split(values[is_new].astype(np.float64), ends), np.split(counts, ends)


def cover_radius(anchors: np.ndarray, low: float, high: float) -> float:
    """Largest distance from a point of [low, high] to its nearest anchor."""
    ends = (anchors[0] - low, high - anchors[-1])
    return float(max(*ends, np.max(np.diff(anchors), initial=0.0) / 2, 0.0))


_EPS = float(np.finfo(np.float64).eps)

Component = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Root:
    """Rows of the anchors.

    Attributes
    ----------
    rows : ndarray of shape (N, r)
        ⟨rows[i], rows[j]⟩ ≈ K[i, j].
    left_out : float
        Largest entry of K − Q Qᵀ, which is positive semi-definite: it is on the diagonal.
    """

    rows: np.ndarray
    left_out: float


def square_root(
    component: Component, anchors: np.ndarray, energy: float = 0.99, rank: int | None = None
) -> Root:
    """Feature maps of anchors.

    Parameters
    ----------
    component : callable
        Scalar kernel c(x, y), elementwise with broadcasting.
    anchors : ndarray of shape (N,)
        Distinct values.
    energy : float in (0, 1]
        Share of the trace to keep; 1 keeps all that is above rounding.
    rank : int, optional
        Number of columns to keep instead (never more than K has).
    """
    kernel = _matrix(component, anchors)
    values, vectors = np.linalg.eigh(kernel)
    _check_semidefinite(values)
    keep = _leading(values, energy, rank)
    rows = vectors[:, ::-1][:, :keep] * np.sqrt(np.maximum(values[::-1][:keep], 0.0))
    rows[~kernel.any(axis=1)] = 0.0  # c(0, ·) = 0 gives a zero row, not a row of roundings
    # Signs of the columns are fixed, so that equal input is equal output.
    rows = np.ascontiguousarray(rows * np.where(rows.sum(axis=0) < 0, -1.0, 1.0))
    left_out = np.max(np.diag(kernel) - (rows**2).sum(axis=1), initial=0.0)
    return Root(rows, float(left_out))


def _matrix(component: Component, anchors: np.ndarray) -> np.ndarray:
    kernel = np.array(component(anchors[:, None], anchors[None, :]), dtype=np.float64)
    if not np.isfinite(kernel).all():
        i, j = np.argwhere(~np.isfinite(kernel))[0]
        raise ValueError(
            f"AnchorMap: the kernel's component is {kernel[i, j]} at the anchors "
            f"({anchors[i]:g}, {anchors[j]:g}). It must be finite on the range of the data."
        )
    gap = np.abs(kernel - kernel.T)
    i, j = np.unravel_index(np.argmax(gap), gap.shape)
    if gap[i, j] > 1e-10 * np.abs(kernel).max():
        raise ValueError(
            f"AnchorMap: the kernel's component is not symmetric: c({anchors[i]:g}, "
            f"{anchors[j]:g}) = {kernel[i, j]:g}, but c({anchors[j]:g}, {anchors[i]:g}) = "
            f"{kernel[j, i]:g}."
        )
    return (kernel + kernel.T) / 2


def _check_semidefinite(eigenvalues: np.ndarray) -> None:
    """Rounding makes eigenvalues as low as −N eps λ_max; anything lower is the kernel's own."""
    allowed = 100 * len(eigenvalues) * _EPS * float(np.abs(eigenvalues).max())
    if eigenvalues[0] < -allowed:
        raise ValueError(
            "AnchorMap: the kernel's component is not positive semi-definite on "
            f"the {len(eigenvalues)} anchors: the most negative eigenvalue of its matrix is "
            f"{eigenvalues[0]:.6g} (the largest is "
            f"{eigenvalues[-1]:.6g}). A feature map exists for Mercer kernels only."
        )


def _leading(eigenvalues: np.ndarray, energy: float, rank: int | None) -> int:
    """How many of the (ascending) eigenvalues to keep for a share of their sum, at least one."""
    values = np.maximum(eigenvalues[::-1], 0.0)
    keep = max(1, int((values > len(values) * _EPS * values[0]).sum()))
    if rank is not None:
        keep = min(rank, keep)
    elif energy < 1:
        keep = min(keep, int(np.searchsorted(np.cumsum(values), energy * values.sum())) + 1)
    return keep
