r"""Conditional gradient steps (Frank and Wolfe 1956) for losses that are sums of hinges.

The dual of :mod:`.interior_point`,

.. math:: D(a) = \sum_{ik} m_{ik} a_{ik} - ½\|w\|², \qquad w = Z^\top α, \quad
          α_i = \sum_k s_{ik} a_{ik}, \quad 0 ≤ a_{ik} ≤ c_i, \quad \sum_i α_i = 0,

is maximised along lines. Of all feasible v, one with the largest :math:`⟨∇D(a), v⟩` has each
:math:`v_{ik}` at a bound, but for one: the hinges that the scores f = Zw + b do not meet are at
:math:`c_i`, with the intercept b for which they balance, the best one for these weights. A step
goes to the maximum of D on the way from a to v, and takes one product with Z and one with Zᵀ.

.. math:: ⟨∇D(a), v - a⟩ = P(w, b) - D(a)

is the duality gap. It shrinks as 1/k after k steps, and within a few of them where costs are so
small that nearly all a are at a bound: then this is faster than other methods.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

# Powers of 1/(1 + k) that the gap after k steps has shrunk by where these are no faster than in the
# worst case, whose power is one. Fits that take at most 7 steps: at least 1.9; those of 18: 1.3.
_SLOW_POWER = 1.5


class HingeRows(Protocol):
    """Rows Z whose products are computed without storing Z: those of `BandRows`."""

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Zw."""
        ...

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Zᵀv."""
        ...


class HingePoint(NamedTuple):
    """Dual variables [hinge of a row][row], their weights Zᵀα, and the scores Z Zᵀα."""

    dual: np.ndarray
    weights: np.ndarray
    scores: np.ndarray

    def moved(self, step: float, direction: HingePoint) -> HingePoint:
        return HingePoint(*(x + step * d for x, d in zip(self, direction, strict=True)))


class HingeSolution(NamedTuple):
    """Weights Zᵀα and the best intercept for them, P and the duality gap there, α."""

    weights: np.ndarray
    intercept: float
    primal: float
    gap: float
    alpha: np.ndarray
    n_steps: int


def conditional_gradient(
    rows: HingeRows, hinges: tuple[np.ndarray, np.ndarray], cost: np.ndarray, fit_intercept: bool,
    tol: float, max_steps: int,
) -> HingeSolution:  # fmt: skip
    """Take steps until the gap is at most `tol` times P, or will not be after `max_steps`.

    Parameters
    ----------
    rows : HingeRows
    hinges : (ndarray, ndarray)
        Signs s and margins m, [hinge of a row][row].
    cost : ndarray
        c, of each row.
    fit_intercept : bool
    tol : float
    max_steps : int
        It ends before where the gap shrinks slowly.
    """
    sign, margin = hinges

    def at(dual: np.ndarray) -> HingePoint:
        weights = rows.adjoint(np.sum(sign * dual, axis=0))
        return HingePoint(dual, weights, rows.scores(weights))

    point, first_gap = at(bounded_duals(sign, margin, cost, fit_intercept)), np.inf
    for n_steps in range(max_steps + 1):
        unmet, square = margin - sign * point.scores, float(point.weights @ point.weights)
        vertex, intercept = steepest_vertex(sign, unmet, cost, fit_intercept)
        primal = 0.5 * square + float(np.sum(cost * np.maximum(unmet - sign * intercept, 0)))
        gap = primal - (float(np.vdot(margin, point.dual)) - 0.5 * square)
        if n_steps == 0:
            first_gap = gap
        is_slow = gap * (1 + n_steps) ** _SLOW_POWER > first_gap
        is_hopeless = is_slow and gap * (1 + n_steps) > max_steps * tol * primal
        if gap <= tol * primal or is_hopeless or n_steps == max_steps:
            break
        direction = at(vertex - point.dual)
        # Along it, D has the derivative `gap` and the second derivative −‖δw‖².
        curvature = float(direction.weights @ direction.weights)
        point = point.moved(min(1.0, gap / curvature) if curvature else 1.0, direction)
    alpha = np.sum(sign * point.dual, axis=0)
    return HingeSolution(point.weights, intercept, primal, gap, alpha, n_steps)


def bounded_duals(
    sign: np.ndarray, margin: np.ndarray, cost: np.ndarray, fit_intercept: bool
) -> np.ndarray:
    """Dual variables at the costs, of hinges that the best constant does not exceed; balanced."""
    constant = best_constant(sign, margin, cost) if fit_intercept else 0.0
    dual = np.where(margin - sign * constant >= 0, cost, 0.0)
    return np.abs(balanced(sign * dual)) if fit_intercept else dual


def steepest_vertex(
    sign: np.ndarray, unmet: np.ndarray, cost: np.ndarray, fit_intercept: bool
) -> tuple[np.ndarray, float]:
    """The feasible v with the largest ⟨unmet, v⟩, and the intercept with the least loss.

    The loss Σ c max(0, unmet − s b) is convex in b: its derivative rises by c at each corner, s
    times `unmet`. Where it passes zero, one hinge has the share of its cost that balances v.
    """
    costs = np.broadcast_to(cost, sign.shape)
    if not fit_intercept:
        return np.where(unmet > 0, costs, 0.0), 0.0
    corners, costs, is_positive = (sign * unmet).ravel(), costs.ravel(), sign.ravel() > 0
    order = np.argsort(corners)
    rising, falling = np.cumsum(costs[order]), float(costs[is_positive].sum())
    middle = min(int(np.searchsorted(rising, falling)), len(order) - 1)
    dual = np.where(is_positive, costs, 0.0)  # for an intercept below all corners
    before, at = order[:middle], order[middle]
    dual[before] = costs[before] - dual[before]
    share = rising[middle] - falling
    dual[at] = np.clip(share if is_positive[at] else costs[at] - share, 0.0, costs[at])
    return dual.reshape(sign.shape), float(corners[at])


def best_constant(sign: np.ndarray, margin: np.ndarray, cost: np.ndarray) -> float:
    """The b with the least Σ c max(0, m − s b)."""
    return steepest_vertex(sign, margin, cost, True)[1]


def balanced(alpha: np.ndarray) -> np.ndarray:
    """Duals that sum to zero: those of the larger side shrink, which is feasible for every loss."""
    total = float(alpha.sum())
    side = np.where(alpha * total > 0, alpha, 0.0)
    return alpha - side * (total / float(side.sum())) if total and side.any() else alpha
