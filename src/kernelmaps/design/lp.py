r"""Frequencies from a finite pool: the two linear programs of low-dim-maps section 2.1.

The relaxed dimension D̄(k̂) = Σ D_ω α_ω (eq. 6), D_0 = 1 and D_ω = 2 otherwise, is traded for the
error C (eqs. 4, 5) over a pool Ω_j = {iπ/(2^j M)} (eqs. 7, 8):

* least D̄ subject to C ≤ C_max, for an asked error;
* least D̄ + γC, with a search over γ, for an asked size.

D̄ equals 2k̂(0) − α_0 and hardly measures sparsity: vertices of the LP do the selecting, and they
like pairs of neighbours that stand for one frequency between them. So every output is cut to its
largest weights *and refitted* (without that the 5-D χ² map is ten times worse), and clusters are
merged before a refinement starts from them.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from .problem import Cosines, Problem
from .slp import error_rows, solve_lp

_LAGS = 240  # evaluation lags of a pool program
_SEARCH = 8  # values of γ that are tried


def columns_each(frequencies: np.ndarray) -> np.ndarray:
    """D_ω: one column for the zero frequency, two for others."""
    return np.where(np.asarray(frequencies) == 0, 1, 2)


def columns(frequencies: np.ndarray) -> int:
    """D(k̂) = Σ D_ω (eq. 3)."""
    return int(np.sum(columns_each(frequencies)))


def frequency_pool(problem: Problem, n_columns: int, halvings: int = 2) -> np.ndarray:
    """Ω_j up to a frequency that a best map of this size does not exceed (eqs. 7, 8).

    A periodic signature has only the harmonics of its period. An even number of columns leaves
    no column for the zero frequency.
    """
    base = np.pi / problem.span
    if problem.period is not None:
        halvings = 0
    count = int(np.ceil(max(8, 2.5 * n_columns) * 2**halvings))
    pool = np.arange(count + 1) * base / 2**halvings
    return pool if n_columns % 2 else pool[1:]


def _weights(
    problem: Problem,
    pool: np.ndarray,
    scale: float,
    prices: tuple[float, float] = (0.0, 1.0),
    limited: bool = False,
) -> np.ndarray:
    """Weights of least D̄ and C/scale, each times its price; `limited`: of those with C ≤ scale."""
    lags, target, weight = problem.sampled(_LAGS)
    matrix = (weight / scale)[:, None] * problem.atoms(lags, pool)
    rows, limit = error_rows(matrix, weight * target / scale, problem.norm)
    # eq. (4) sums over all of Z: a thinned set stands for it
    share = 1.0 if problem.norm == "max" else problem.lags.size / lags.size
    errors = np.full(rows.shape[1] - pool.size, share)
    if limited:
        rows = np.vstack([rows, np.r_[np.zeros(pool.size), errors]])
        limit = np.append(limit, 1.0)
    cost = np.r_[prices[0] * columns_each(pool), prices[1] * errors]
    return np.maximum(solve_lp(cost, rows, limit)[: pool.size], 0.0)


def fit_pool(problem: Problem, pool: np.ndarray) -> np.ndarray:
    """Non-negative weights of least error C for given frequencies."""
    scale = problem.scale
    for _ in range(2):  # the second time in units of the error itself: HiGHS is absolute to 1e-7
        weights = _weights(problem, pool, scale)
        scale = max(problem.max_error((pool, weights)), 1e-5 * problem.scale)
    return weights


def tradeoff_lp(problem: Problem, pool: np.ndarray, gamma: float) -> np.ndarray:
    """Weights of least D̄ + γ C."""
    return _weights(problem, pool, problem.scale, (1 / (1 + gamma), gamma / (1 + gamma)))


def bounded_lp(problem: Problem, pool: np.ndarray, max_error: float) -> np.ndarray | None:
    """Weights of least D̄ with C ≤ max_error; None if the pool cannot do it."""
    if fit_error(problem, pool) > max_error:
        return None
    return _weights(problem, pool, max_error, (1.0, 0.0), limited=True)


def fit_error(problem: Problem, pool: np.ndarray) -> float:
    """Least error C of a non-negative mixture of the pool."""
    return problem.cost((pool, fit_pool(problem, pool)))


def largest_that_fit(weights: np.ndarray, need: np.ndarray, room: int) -> np.ndarray:
    """Indices of the largest weights whose columns fit into some room."""
    chosen = []
    for index in np.argsort(-weights, kind="stable"):
        if weights[index] > 0 and need[index] <= room:
            chosen.append(int(index))
            room -= int(need[index])
    return np.array(sorted(chosen), dtype=int)


def truncate(pool: np.ndarray, weights: np.ndarray, n_columns: int) -> np.ndarray:
    """Frequencies of the largest weights that fit into `n_columns` columns, sorted."""
    return pool[largest_that_fit(weights, columns_each(pool), n_columns)]


def merge_clusters(pool: np.ndarray, weights: np.ndarray, gap: float) -> Cosines:
    """Replace neighbours closer than `gap` by their weighted mean; the zero frequency stays."""
    alive = weights > 1e-9 * np.max(weights, initial=0.0)
    pool, weights = pool[alive], weights[alive]
    if pool.size == 0:
        return pool, weights
    starts = np.r_[True, (np.diff(pool) > gap) | (pool[:-1] == 0)]
    group = np.cumsum(starts) - 1
    mass = np.bincount(group, weights)
    return np.bincount(group, weights * pool) / mass, mass


def lp_design(problem: Problem, n_columns: int, halvings: int = 2) -> Cosines:
    """The best pool design of a size: binary search over γ, all outputs cut and refitted."""
    pool = frequency_pool(problem, n_columns, halvings)
    best, least = (np.zeros(1), np.zeros(1)), np.inf
    low, high, seen = np.log(1e-2), np.log(1e8), set()
    for step in range(_SEARCH):
        middle = high if step == 0 else 0.5 * (low + high)
        weights = tradeoff_lp(problem, pool, float(np.exp(middle)))
        alive = weights > 1e-9 * max(np.max(weights), 1e-300)
        if step and columns(pool[alive]) <= n_columns:
            low = middle
        elif step:
            high = middle
        for chosen in _selections(pool, np.where(alive, weights, 0.0), n_columns):
            if chosen.size == 0 or chosen.tobytes() in seen:
                continue
            seen.add(chosen.tobytes())
            refit = fit_pool(problem, chosen)
            error = problem.cost((chosen, refit))
            if error < least:
                best, least = (chosen, refit), error
    return _exchange(problem, pool, best)


def _exchange(problem: Problem, pool: np.ndarray, start: Cosines) -> Cosines:
    """Move single frequencies to neighbours in the pool as long as the refitted error falls."""
    best, least = start, problem.cost(start)
    index = np.searchsorted(pool, start[0])
    improved = pool.size > 1 and bool(np.all(np.isin(start[0], pool)))
    while improved:
        improved = False
        for member, step in product(range(index.size), (-1, 1)):
            moved = index.copy()
            moved[member] += step
            inside = 0 <= moved[member] < pool.size and np.unique(moved).size == index.size
            if not inside or 0 in (pool[index[member]], pool[moved[member]]):
                continue
            chosen = pool[moved]
            refit = fit_pool(problem, chosen)
            error = problem.cost((chosen, refit))
            if error < least * (1 - 1e-6):
                best, least, index, improved = (chosen, refit), error, moved, True
    return best


def _selections(pool: np.ndarray, weights: np.ndarray, n_columns: int) -> list[np.ndarray]:
    """The largest weights; and the clusters of neighbours, each by the pool's nearest member."""
    merged, mass = merge_clusters(pool, weights, gap=1.5 * (pool[1] - pool[0]))
    nearest = pool[np.argmin(np.abs(pool[:, None] - merged), axis=0)] if merged.size else merged
    return [truncate(pool, weights, n_columns), truncate(nearest, mass, n_columns)]


def harmonic_design(problem: Problem, n_columns: int) -> Cosines:
    """Orthogonal projection on the harmonics of 2M, largest non-negative coefficients (section 3).

    The comparison of section 4.1: k is continued periodically, which makes some coefficients
    negative (they are left out) and slows the decay of the others.
    """
    count = 4096
    step = problem.span / count
    lags = (np.arange(count) + 0.5) * step
    values = problem.signature(lags)
    order = np.arange(max(16, 3 * n_columns))
    frequencies = order * np.pi / problem.span
    weights = np.cos(np.outer(frequencies, lags)) @ values * (2 / count)
    weights[0] /= 2
    if n_columns % 2 == 0:
        frequencies, weights = frequencies[1:], weights[1:]
    chosen = largest_that_fit(weights, columns_each(frequencies), n_columns)
    return frequencies[chosen], weights[chosen]


def periodic_design(problem: Problem, n_columns: int) -> Cosines:
    """Harmonics of a periodic signature: the projection's choice or the LP's, both refitted."""
    candidates = [lp_design(problem, n_columns), harmonic_design(problem, n_columns)]
    chosen = candidates[1][0]
    if chosen.size:
        candidates.append((chosen, fit_pool(problem, chosen)))
    return problem.best(candidates)


def pool_start(problem: Problem, n_columns: int) -> np.ndarray:
    """Frequencies of the best unrestricted mixture, clusters merged and cut to size."""
    pool = frequency_pool(problem, n_columns, halvings=2)
    weights = _weights(problem, pool, problem.scale)
    merged, mass = merge_clusters(pool, weights, gap=0.6 * np.pi / problem.span)
    return truncate(merged, mass, n_columns)
