"""The search for the pair of values with the largest error of a map, by attack.

A certificate is as good as what it survives. The search looks where errors hide: on an even and a
logarithmic grid, between their points, at the ends, at tiny values, on the diagonal (where kernels
have their kinks), at random pairs; then it climbs from the worst pairs in ever smaller steps. What
it finds is a lower bound on the true maximum, never an upper one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

PairError = Callable[[np.ndarray, np.ndarray], np.ndarray]
Worst = tuple[float, float, float]
"""The largest error found, and the values x, y where it is."""


@dataclass(frozen=True)
class ErrorSearch:
    """Constants of the search for the pair of the largest error."""

    n_values: int = 60  # of a grid, even and geometric, and of those where the map has jumps
    n_random: int = 2000  # pairs that are spread evenly, and as many by their ratio
    n_climbed: int = 24  # worst pairs from which the search climbs on
    first_step: float = 0.05  # of a climb, as a share of a value
    last_step: float = 1e-9


_ERROR_SEARCH = ErrorSearch()
_NEIGHBOURS = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j], dtype=float)


def largest_error(
    error: PairError,
    low: float,
    high: float,
    *,
    at: np.ndarray | None = None,
    random_state: int = 0,
    symmetric: bool = False,
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
    symmetric : bool
        Whether the error of (y, x) is that of (x, y), and need not be looked at.
    """
    options, rng = _ERROR_SEARCH, np.random.default_rng(random_state)
    tiny = np.finfo(float).tiny ** 0.5
    smallest = low if low > 0 else max(high, tiny) * 1e-12
    values = [
        np.linspace(low, high, options.n_values),
        np.clip(np.geomspace(smallest, high, options.n_values), low, high),
    ]
    if low <= 0:
        values.append(np.array([0.0, smallest**2, 1e-300 if low == 0 else low]))
    if at is not None and len(at):
        count = options.n_values
        sample = at if len(at) <= count else np.sort(rng.choice(at, count, replace=False))
        values.append(np.clip(np.r_[sample, np.nextafter(sample, low)], low, high))
    grid = np.unique(np.concatenate(values))
    grid = np.union1d(grid, grid[:-1] + 0.382 * np.diff(grid))
    first, second = np.triu_indices(grid.size) if symmetric else np.indices([grid.size] * 2)
    x, y = grid[first].ravel(), grid[second].ravel()
    even = rng.uniform(low, high, (2, options.n_random))
    ratio = np.clip(
        np.exp(rng.uniform(np.log(smallest), np.log(high), (2, options.n_random))), low, high
    )
    scattered = np.concatenate([even, ratio], axis=1)
    scattered[1, ::3] = scattered[0, ::3]
    x, y = np.concatenate([x, scattered[0]]), np.concatenate([y, scattered[1]])
    size = np.abs(error(x, y))
    best = np.argsort(-size, kind="stable")[: options.n_climbed]
    return _climb(error, x[best], y[best], size[best], low, high)


def _climb(
    error: PairError, x: np.ndarray, y: np.ndarray, size: np.ndarray, low: float, high: float
) -> Worst:
    """From each pair to better neighbours: steps of a value's own size, halved when none helps."""
    step = _ERROR_SEARCH.first_step
    while step > _ERROR_SEARCH.last_step:
        scale = np.maximum(np.abs(np.stack([x, y], axis=1)), 1e-12 * high)  # (pairs, 2)
        moved = np.stack([x, y], axis=1)[:, None] + step * scale[:, None] * _NEIGHBOURS
        moved = np.clip(moved, low, high).reshape(-1, 2)
        errors = np.abs(error(moved[:, 0], moved[:, 1])).reshape(x.size, -1)
        top = np.argmax(errors, axis=1)
        rows = np.arange(x.size)
        better = errors[rows, top] > size
        best = moved.reshape(x.size, -1, 2)[rows, top]
        x, y = np.where(better, best[:, 0], x), np.where(better, best[:, 1], y)
        size = np.where(better, errors[rows, top], size)
        if not better.any():
            step /= 2
    worst = int(np.argmax(size))
    return float(size[worst]), float(x[worst]), float(y[worst])
