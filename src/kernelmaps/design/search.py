r"""Search for the largest error of a map, to test its certificate.

A certificate is as good as what it survives. The search looks where errors hide: on an even and on
a logarithmic grid, between their points, at the ends, at tiny values, on the diagonal (where
kernels have their kinks), at random pairs; then it climbs from the worst pairs in ever smaller
steps. What it finds is a lower bound on the true maximum, never an upper one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

PairError = Callable[[np.ndarray, np.ndarray], np.ndarray]
Worst = tuple[float, float, float]
"""The largest error found, and the values x, y where it is."""

_GRID = 60
_KEPT = 24
_MOVES = np.array(
    [[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]], dtype=float
)


def largest_error(
    error: PairError,
    low: float,
    high: float,
    *,
    at: np.ndarray | None = None,
    random_state: int = 0,
    pairs: int = 4000,
) -> Worst:
    """Search [low, high]² for the pair of the largest |error|.

    Parameters
    ----------
    error : callable
        (x, y) -> signed or absolute errors, elementwise on arrays of equal length.
    low, high : float
        Range of both values; `low` may be zero.
    at : ndarray, optional
        Further values to try against each other: nodes, anchors, borders of bins.
    random_state : int
        Seed of the random pairs.
    pairs : int
        Number of random pairs.
    """
    rng = np.random.default_rng(random_state)
    tiny = np.finfo(float).tiny ** 0.5
    smallest = low if low > 0 else max(high, tiny) * 1e-12
    values = [
        np.linspace(low, high, _GRID),
        np.clip(np.geomspace(smallest, high, _GRID), low, high),
    ]
    if low <= 0:
        values.append(np.array([0.0, smallest**2, 1e-300 if low == 0 else low]))
    if at is not None and len(at):
        chosen = at if len(at) <= _GRID else np.sort(rng.choice(at, _GRID, replace=False))
        values.append(np.clip(np.r_[chosen, np.nextafter(chosen, low)], low, high))
    grid = np.unique(np.concatenate(values))
    grid = np.union1d(grid, grid[:-1] + 0.382 * np.diff(grid))
    x, y = (side.ravel() for side in np.meshgrid(grid, grid, indexing="ij"))
    even = rng.uniform(low, high, (2, pairs // 2))
    ratio = np.clip(np.exp(rng.uniform(np.log(smallest), np.log(high), (2, pairs // 2))), low, high)
    scattered = np.concatenate([even, ratio], axis=1)
    scattered[1, ::3] = scattered[0, ::3]
    x, y = np.r_[x, scattered[0]], np.r_[y, scattered[1]]
    size = np.abs(error(x, y))
    best = np.argsort(-size, kind="stable")[:_KEPT]
    return _climb(error, x[best], y[best], size[best], low, high)


def _climb(
    error: PairError, x: np.ndarray, y: np.ndarray, size: np.ndarray, low: float, high: float
) -> Worst:
    """From each pair to better neighbours: steps of a value's own size, halved when none helps."""
    step = 0.05
    while step > 1e-9:
        scale = np.maximum(np.abs(np.stack([x, y], axis=1)), 1e-12 * high)  # (pairs, 2)
        moved = np.stack([x, y], axis=1)[:, None] + step * scale[:, None] * _MOVES
        moved = np.clip(moved, low, high).reshape(-1, 2)
        found = np.abs(error(moved[:, 0], moved[:, 1])).reshape(x.size, -1)
        top = np.argmax(found, axis=1)
        rows = np.arange(x.size)
        better = found[rows, top] > size
        best = moved.reshape(x.size, -1, 2)[rows, top]
        x, y = np.where(better, best[:, 0], x), np.where(better, best[:, 1], y)
        size = np.where(better, found[rows, top], size)
        if not better.any():
            step /= 2
    worst = int(np.argmax(size))
    return float(size[worst]), float(x[worst]), float(y[worst])
