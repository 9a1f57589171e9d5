r"""Pools of joint frequencies, and what is selected from them (low-dim-maps section 6).

A pool is a polar grid ("polar") or the product of one-dimensional designs ("product", eq. 21). A
linear program selects from it, or the greedy rule α = Π α^i ("⊗ no LP").
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import nnls

from .boxes import JointProblem, lag_axes, product_grid
from .joint import reflections
from .lp import harmonic_design, largest_that_fit
from .problem import Cosines, Problem, of_lags, unweighted
from .refine import refined_design
from .slp import error_rows, least_error, solve_lp

POOLS = ("product", "polar")
_POLAR_STEPS = (0.75, 1.0, 1.2, 1.3, 1.4)  # distances of a polar grid, in units of π / span


def selections(
    problem: JointProblem, marginals: list[Callable], n_columns: int, pool: str, select: str
) -> list[Cosines]:
    """Candidate sets of frequencies with refitted weights."""
    pools: list[tuple[np.ndarray, Any]]  # vectors; products of the marginals' weights
    if pool == "polar":
        pools = [(_polar_pool(problem, n_columns, step), None) for step in _POLAR_STEPS]
    else:
        sizes = _pool_sizes(problem, n_columns)
        pools = [_product_pool(problem, marginals, size) for size in sizes]
    found: list[Cosines] = []
    for vectors, products in pools:
        if select == "greedy":
            chosen = _largest(problem, vectors, products, n_columns)
            total = problem.signature(np.zeros((1, len(problem.spans))))[0]
            kept = products[chosen]
            found += [(vectors[chosen], kept), (vectors[chosen], kept * total / kept.sum())]
            continue
        ranks = _lp_weights(problem, vectors) + ([] if products is None else [products])
        found += [_refitted(problem, vectors, weights, n_columns) for weights in ranks]
    return found


def disturbed_selections(
    problem: JointProblem,
    marginals: list[Callable],
    n_columns: int,
    turns: int,
    rng: np.random.Generator,
) -> list[Cosines]:
    """Selections by the products of weights, disturbed: sets that no program would choose."""
    found = []
    for size in _pool_sizes(problem, n_columns):
        vectors, products = _product_pool(problem, marginals, size)
        alike = np.unique(np.round(products / np.max(products), 6), return_inverse=True)[1]
        for turn in range(turns):
            noise = rng.normal(0, 0.7, products.size)
            if turn % 2:  # equal weights alike: a symmetric kernel may want a symmetric set
                noise = noise[alike]
            found.append(_refitted(problem, vectors, products * np.exp(noise), n_columns))
    return found


def _product_pool(problem: JointProblem, marginals: list[Callable], size: int) -> Cosines:
    """Ω_⊗ and the products of weights (eq. 21); for projections with all reflections.

    Each axis has a one-dimensional design of `size` columns.
    """
    designs = [
        _axis_design(signature, float(span), period, size)
        for signature, span, period in zip(marginals, problem.spans, problem.periods, strict=True)
    ]
    vectors = product_grid(tuple(frequencies for frequencies, _ in designs))
    weights = np.prod(product_grid(tuple(weights for _, weights in designs)), axis=1)
    return (vectors, weights) if problem.form == "modulation" else reflections(vectors, weights)


@lru_cache(maxsize=32)
def _axis_design(signature: Callable, span: float, period: float | None, size: int) -> Cosines:
    """The design of one axis: both forms, their disturbed selections and equal axes share it."""
    flat = Problem(of_lags("axis", signature), unweighted, span, period=period)
    return harmonic_design(flat, size) if period else refined_design(flat, size)


def _polar_pool(problem: JointProblem, n_columns: int, step: float) -> np.ndarray:
    """Zero and a polar grid of half the plane, of even density, with twice as many as needed.

    The distance of the grid decides how good a selection can become, and the best one is not known
    beforehand: about what the lags [−M, M] and the width of the kernel together can tell apart.
    """
    step = step * np.pi / float(np.max(problem.spans))
    reach = step * np.sqrt(2 * n_columns / np.pi)  # half a disc holds π r² / (2 step²) of them
    vectors = [np.zeros(2)]
    for radius in np.arange(step, reach + step, step):
        count = max(3, round(np.pi * radius / step))
        angle = np.pi * np.arange(count) / count
        vectors += list(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    return np.array(vectors)


def _pool_sizes(problem: JointProblem, n_columns: int) -> list[int]:
    """Columns of the one-dimensional designs of a pool: some fewer and some more than needed."""
    per_axis = round(n_columns ** (1 / len(problem.spans)))
    return sorted({s | 1 for s in (per_axis - 1, per_axis + 1, per_axis + 3) if s > 0})


def _largest(
    problem: JointProblem, pool: np.ndarray, weights: np.ndarray, n_columns: int
) -> np.ndarray:
    """Indices of the largest weights that fit into `n_columns` columns."""
    return largest_that_fit(weights, problem.columns(pool), n_columns)


def _refitted(
    problem: JointProblem, pool: np.ndarray, weights: np.ndarray, n_columns: int
) -> Cosines:
    """The largest that fit, with least-squares weights: a start for the continuous extension."""
    chosen = pool[_largest(problem, pool, weights, n_columns)]
    return chosen, nnls(problem.atoms(problem.coarse.lags, chosen), problem.coarse.target)[0]


def _lp_weights(problem: JointProblem, pool: np.ndarray) -> list[np.ndarray]:
    """Weights of least D̄ + γC for a few γ, on a thinned grid."""
    steps = 13 if problem.spans.size == 2 else 7
    grid = product_grid(lag_axes(problem.spans, steps, problem.form))
    atoms, target = problem.atoms(grid, pool), problem.signature(grid)
    rows, limit = error_rows(atoms, target)
    out = []
    for gamma in (10.0, 100.0, 1000.0):
        cost = np.r_[problem.columns(pool).astype(float), gamma] / gamma
        out.append(np.maximum(solve_lp(cost, rows, limit)[:-1], 0.0))
    return out


def minimax_weights(problem: JointProblem, frequencies: np.ndarray) -> np.ndarray:
    """Weights of least largest error on the grid: the end of a design that does not move."""
    return least_error(problem.atoms(problem.coarse.lags, frequencies), problem.coarse.target)
