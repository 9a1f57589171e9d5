r"""Lower bounds on the error of every map of a size, from a Gram matrix on a grid of values.

Any map of D columns has a Gram matrix of rank at most D. Let E = K − K̂ with K̂ of rank at most D
and |E_ij| ≤ ε T_ij. For any weights d_i ≥ 0 write K_d = diag(d) K diag(d). Eckart, Young and Mirsky
say that no matrix of rank D comes closer to K_d in the Frobenius norm than the root of the squares
of its other singular values, so

.. math:: \Big(\sum_{j>D} σ_j(K_d)^2\Big)^{1/2} \le \|E_d\|_F
          \le ε \Big(\sum_{ij} d_i^2 d_j^2 T_{ij}^2\Big)^{1/2},

a bound on ε for *every* map, at least as strong as the spectral one σ_{D+1}(K_d)/Σd² for the same
d. It is maximised over d by L-BFGS on log d; with K_d = VΣVᵀ the gradient of the logarithm of the
left side with respect to log d_i is 2 Σ_{j>D} σ_j² V_ij² / Σ_{j>D} σ_j².

**Smooth kernels** have Gram matrices K = FFᵀ with a thin F, up to rounding. The eigenvalues σ_j of
K_d are then those of the small matrix (dF)ᵀ(dF), and σ_j V_ij² = (d_i F_i u_j)², with its
eigenvectors u_j.

**Kernels with a kink** have many local maxima. They differ in the points that have weight, which
are hardly more than D + 1. A few steps on a part of the grid tell which points these may be; then
points move to the next place of the grid, one at a time, for as long as that raises the bound, with
matrices of no more rows than there are points.

Any d gives a valid bound. The one returned is computed from all of K for the best d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize

# The tail of a Gram matrix beyond rank D, for weights d: Σ_{j>D} σ_j² of K_d, and each row's share.
Tail = Callable[[np.ndarray], tuple[float, np.ndarray]]
POINTS_PER_COLUMN = 3
"""Points for each column of the map: with fewer, all of them may have weight."""
_EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class PointSearchOptions:
    """Constants of the search for points (kernels with a kink).

    Measured on the bounds of three kernels with 3 to 25 columns: without the search, from the same
    starts, bounds are up to 4 % smaller; twice or half of a number changes them by 1.3 % at most.
    """

    first_steps: int = 6  # of L-BFGS, from every start
    n_followed: int = 6  # best starts whose points are moved; 2: 0.5 % smaller, 12: 43 % slower
    min_weight: float = 1e-3  # of the largest: points with less are dropped
    min_gain: float = 1e-5  # of log(bound), for which a point is moved; 1e-9: eight times slower


_OPTIONS = PointSearchOptions()


def descend(value: Callable, x: np.ndarray, given: tuple, **options: Any) -> OptimizeResult:
    """Minimise a function that returns its value and its gradient, by L-BFGS."""
    gradient = np.empty(0)

    def value_alone(x: np.ndarray) -> float:
        nonlocal gradient
        loss, gradient = value(x, *given)
        return loss

    # L-BFGS asks for the gradient where it has just asked for the value; ``jac=True`` would
    # copy and compare all of x to find that out.
    return minimize(value_alone, x, jac=lambda _: gradient, method="L-BFGS-B", options=options)


def gram_bound(
    gram: np.ndarray, unit: np.ndarray, n_columns: int, starts: list[np.ndarray], steps: int = 300
) -> tuple[float, np.ndarray]:
    """The bound for a Gram matrix and squared tolerances T², from several starts of d."""
    weights = np.ones(len(gram))
    if n_columns >= len(gram):
        return 0.0, weights
    tail_of, least = _tail_of(gram, n_columns), np.inf
    for start in starts:
        optimum = descend(_loss, np.log(start), (tail_of, unit), maxiter=steps, maxcor=30)
        if optimum.fun < least:
            least, weights = optimum.fun, np.exp(optimum.x - np.max(optimum.x))
    return bound_with(gram, unit, n_columns, weights), weights


def moved_bound(
    gram: np.ndarray,
    unit: np.ndarray,
    n_columns: int,
    starts: list[np.ndarray],
    places: np.ndarray,
) -> tuple[float, np.ndarray]:
    """The same for a kernel with a kink: few points have weight, and they move.

    The search begins with the points at some places of the grid, and with those that the starts
    lead to.
    """
    search = _PointSearch(gram, unit, n_columns)
    candidates = [search.reweighted(places, np.zeros(places.size), 30), *map(search.first, starts)]
    candidates = [points for points in candidates if points.places.size > n_columns]
    candidates = sorted(candidates, key=lambda points: points.loss)[: _OPTIONS.n_followed]
    weights = np.ones(len(gram))
    if candidates:
        best = min(map(search.moved, candidates), key=lambda points: points.loss)
        weights = np.zeros(len(gram))
        weights[best.places] = np.exp(best.logs)
    lower = bound_with(gram, unit, n_columns, weights)
    # Points that the search has left out may still join.
    joined = gram_bound(gram, unit, n_columns, [np.maximum(weights, 0.03)], steps=60)
    return max((lower, weights), joined, key=lambda bound: bound[0])


def bound_with(gram: np.ndarray, unit: np.ndarray, n_columns: int, weights: np.ndarray) -> float:
    """The bound that weights d prove; zero where it is no more than rounding."""
    tail, _ = _tail_of_gram(gram, n_columns, weights)
    squared = weights * weights
    size = float(squared @ unit @ squared)
    bound = float(np.sqrt(tail / size)) if size > 0 else 0.0
    rounding = 1e-14 * float(np.max(np.abs(gram) / np.sqrt(unit)))
    return bound if np.isfinite(bound) and bound > rounding else 0.0


def _loss(logs: np.ndarray, tail_of: Tail, unit: np.ndarray) -> tuple[float, np.ndarray]:
    """Minus the logarithm of the bound, and its gradient in log d."""
    d = np.exp(logs - np.max(logs))
    tail, share = tail_of(d)
    squared = d * d
    spread = unit @ squared
    size = squared @ spread
    if tail <= 0 or size <= 0:
        return 700.0, np.zeros_like(logs)
    gradient = 2 * share / tail - 2 * squared * spread / size
    return -0.5 * (np.log(tail) - np.log(size)), -gradient


def _tail_of(gram: np.ndarray, n_columns: int) -> Tail:
    """The tail of K_d, by a thin factor of K where there is one."""
    factor = _factor(gram)
    if factor is None:
        return partial(_tail_of_gram, gram, n_columns)
    return partial(_tail_of_factor, factor, n_columns)


def _tail_of_gram(gram: np.ndarray, n_columns: int, d: np.ndarray) -> tuple[float, np.ndarray]:
    values, vectors = np.linalg.eigh(d[:, None] * gram * d)
    order = np.argsort(-np.abs(values))[n_columns:]
    squares = values[order] ** 2
    return float(np.sum(squares)), vectors[:, order] ** 2 @ squares


def _tail_of_factor(factor: np.ndarray, n_columns: int, d: np.ndarray) -> tuple[float, np.ndarray]:
    weighted = d[:, None] * factor
    values, vectors = np.linalg.eigh(weighted.T @ weighted)
    small = slice(max(values.size - n_columns, 0))
    tail = values[small]
    return float(tail @ tail), (weighted @ vectors[:, small]) ** 2 @ tail


def _factor(gram: np.ndarray) -> np.ndarray | None:
    """F with FFᵀ = K up to the rounding of its entries; None if K is not positive semi-definite.

    Rows are scaled to one first: weights may be large where K is small.
    """
    root = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    if np.any(np.abs(gram) > 2 * np.outer(root, root)):  # beyond Cauchy and Schwarz: no scale
        return None
    values, vectors = np.linalg.eigh(gram / root[:, None] / root)
    if not values[0] > -64 * _EPSILON * len(gram) * values[-1]:
        return None
    is_large = values > 4 * _EPSILON * values[-1]
    return root[:, None] * vectors[:, is_large] * np.sqrt(values[is_large])


class _Points(NamedTuple):
    """Points of a grid that have weight.

    Attributes
    ----------
    loss : float
        Minus the logarithm of their bound.
    places : ndarray of int
    logs : ndarray
        Logarithms of their weights, the largest zero.
    """

    loss: float
    places: np.ndarray
    logs: np.ndarray


class _PointSearch(NamedTuple):
    """A search for the points of a grid that give the largest bound."""

    gram: np.ndarray
    unit: np.ndarray
    n_columns: int

    def first(self, start: np.ndarray) -> _Points:
        """The points that gain weight from a start, of every second one if these are enough."""
        places = np.union1d(np.arange(0, start.size, 2), start.size - 1)
        if places.size < POINTS_PER_COLUMN * self.n_columns:
            places = np.arange(start.size)
        logs = self._weighted(places, np.log(start[places]), _OPTIONS.first_steps)[1]
        fewest = np.sort(logs)[-min(self.n_columns + 2, logs.size)]
        is_visible = logs >= min(np.log(_OPTIONS.min_weight), fewest)
        return self.reweighted(places[is_visible], logs[is_visible], 30)

    def moved(self, points: _Points) -> _Points:
        """Points moved to neighbours, each time the move of most gain, until none gains."""
        better: _Points | None = points
        while better is not None:
            points = better
            better = self._step(points)
        return self.reweighted(points.places, points.logs, 100)

    def reweighted(self, places: np.ndarray, logs: np.ndarray, steps: int) -> _Points:
        """Points with better weights, without those that lose theirs."""
        loss, logs = self._weighted(places, logs, steps)
        has_weight = logs > np.log(_OPTIONS.min_weight)
        return _Points(loss, places[has_weight], logs[has_weight])

    def _weighted(
        self, places: np.ndarray, logs: np.ndarray, steps: int
    ) -> tuple[float, np.ndarray]:
        some = np.ix_(places, places)
        tail_of = partial(_tail_of_gram, self.gram[some], self.n_columns)
        optimum = descend(_loss, logs, (tail_of, self.unit[some]), maxiter=steps, maxcor=30)
        return float(optimum.fun), optimum.x - np.max(optimum.x)

    def _step(self, points: _Points) -> _Points | None:
        """One point moved, and all weights improved; None if that raises no bound."""
        moves = self._moves(points.places)
        if not len(moves):
            return None
        best = moves[np.argmin(self._losses(moves, points.logs))]
        moved = self.reweighted(best, points.logs, 8)
        is_better = moved.loss < points.loss - _OPTIONS.min_gain
        return moved if is_better and moved.places.size > self.n_columns else None

    def _moves(self, places: np.ndarray) -> np.ndarray:
        """The places after every move of one of them to a free neighbour."""
        member = np.repeat(np.arange(places.size), 2)
        target = places[member] + np.tile([-1, 1], places.size)
        free = (target >= 0) & (target < len(self.gram)) & ~np.isin(target, places)
        moves = np.repeat(places[None], np.count_nonzero(free), axis=0)
        moves[np.arange(len(moves)), member[free]] = target[free]
        return moves

    def _losses(self, moves: np.ndarray, logs: np.ndarray) -> np.ndarray:
        """The losses of many choices of places, with the same weights."""
        d = np.exp(logs)
        pairs = moves[:, :, None], moves[:, None, :]
        values = np.linalg.eigvalsh(self.gram[pairs] * (d[:, None] * d))
        squares = np.sort(values**2, axis=1)[:, : d.size - self.n_columns]
        size = (self.unit[pairs] @ d**2) @ d**2
        return 0.5 * np.log(size / np.maximum(np.sum(squares, axis=1), 1e-300))
