r"""Interior-point method for losses that are sums of hinges (hinge, epsilon-insensitive).

With signs :math:`s_k = ±1` and margins :math:`m_k` for each row, the problem and its dual are

.. math::

    P(w, b) &= ½\|w\|² + \sum_{ik} c_i \max(0, m_{ik} - s_{ik} f_i), \qquad f = Zw + b, \\
    D(a) &= \sum_{ik} m_{ik} a_{ik} - ½\|Z^\top α\|², \qquad α_i = \sum_k s_{ik} a_{ik},
            \quad 0 ≤ a_{ik} ≤ c_i, \quad \sum_i α_i = 0.

A hinge is bounded by its *value* ξ ≥ 0, and its *slack* t = ξ − (m − s f) ≥ 0. At the
minimum a t = 0, (c − a) ξ = 0 and w = Zᵀα. Newton steps go to points where both products are μ, and
μ shrinks (Mehrotra 1992, predictor and corrector): the predictor aims at zero, the corrector at the
share of μ that the predictor's step length suggests, and takes off the product of the predictor's
own changes. Eliminating all but the weights leaves

.. math:: (I + Z^\top W Z)\,δw + Z^\top W 1\,δb = r, \qquad
          W_i = \sum_k \Big(\frac{t_{ik}}{a_{ik}} + \frac{ξ_{ik}}{c_i - a_{ik}}\Big)^{-1},

the system of a Newton step of smooth losses, which :mod:`.newton_cg` solves. Ten to twenty steps
reach a relative gap of 10⁻³, whatever the costs.

The certificate is the least P and the largest D of all points, those at the end of a predictor
included, with a clipped to [0, c] and balanced: it never gets worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .newton_cg import CentredHessian, Preconditioner, Solve, conjugate_gradients

_MAX_STEPS = 100
# Shares of the cost within which dual variables are set to a bound, the first one that is possible.
_ROUNDED = 10.0 ** -np.arange(2, 9)
_LEAST_STEP = 1e-8  # as a share of a direction: shorter ones are rounding errors


@dataclass(frozen=True)
class InteriorPointConstants:
    """Constants of the method.

    In parentheses: steps with other values on adult one-hot, magic and spambase for five C each,
    relative to those with the default.
    """

    boundary: float = 0.995  # share of the way to the boundary that a step takes (0.98: 1.03)
    centring_power: float = 3.0  # Mehrotra's exponent (2: 1.13)
    first_share: float = 0.5  # of the costs: dual variables to start from
    # The residual r of a direction adds ½‖r‖² to the gap of a full step: at most these shares of
    # the gap (0.05 and 0.02: as many steps, a tenth more products; 1 and 0.1: a tenth more steps).
    predictor_residual: float = 0.2
    residual: float = 0.1


CONSTANTS = InteriorPointConstants()


def best_constant(sign: np.ndarray, margin: np.ndarray, cost: np.ndarray) -> float:
    """The b with the least loss Σ c max(0, m − s b).

    It is convex in b, and its derivative rises by c at each kink, s times m.
    """
    costs, kinks = np.broadcast_to(cost, sign.shape).ravel(), (sign * margin).ravel()
    order = np.argsort(kinks)
    falling = float(costs[sign.ravel() > 0].sum())
    middle = min(int(np.searchsorted(np.cumsum(costs[order]), falling)), len(order) - 1)
    return float(kinks[order[middle]])


def balance(alpha: np.ndarray) -> np.ndarray:
    """Duals that sum to zero: those of the larger side shrink, which is feasible for every loss."""
    total = float(alpha.sum())
    side = np.where(alpha * total > 0, alpha, 0.0)
    return alpha - side * (total / float(side.sum())) if total and side.any() else alpha


class Iterate(NamedTuple):
    """A point inside all bounds, or a direction; hinges are [hinge of a row][row]."""

    weights: np.ndarray
    intercept: float
    scores: np.ndarray  # f, the intercept included
    slack: np.ndarray  # t
    hinge: np.ndarray  # ξ
    dual: np.ndarray  # a
    complement: np.ndarray  # c − a

    def move(self, step: float, direction: Iterate) -> Iterate:
        return Iterate(*(x + step * d for x, d in zip(self, direction, strict=True)))

    def largest_step(self, direction: Iterate) -> float:
        """Length of the step to the nearest bound."""
        pairs = zip(self[3:], direction[3:], strict=True)
        fastest = max(float(np.max(-d / x)) for x, d in pairs)  # all x are positive
        return 1 / fastest if fastest > 0 else np.inf

    @property
    def complementarity(self) -> float:
        """μ: the mean of a t and (c − a) ξ."""
        products = np.vdot(self.dual, self.slack) + np.vdot(self.complement, self.hinge)
        return float(products) / (2 * self.dual.size)


class InteriorPointFit:
    """The fit of one output by an interior-point method.

    Attributes
    ----------
    point : Iterate
        The weights and the intercept of the least P so far.
    primal, dual : float
        P there, and the largest D so far.
    n_iter : int
        Steps, each with a predictor and a corrector.
    """

    point: Iterate

    def __init__(
        self, rows: Any, loss: Any, y: np.ndarray, cost: np.ndarray, fit_intercept: bool, tol: float
    ) -> None:
        self.rows, self.cost, self.fit_intercept, self.tol = rows, cost, fit_intercept, tol
        self.sign, self.margin = loss.hinges(y)
        self.n_iter, self.preconditioner = 0, Preconditioner()
        self.primal, self.dual, self._signed = np.inf, 0.0, np.zeros(self.sign.shape)
        self.start = self._first_point()
        self._note_primal(self.start)

    def value(self) -> float:
        """The least P so far."""
        return self.primal

    def minimise(self) -> tuple[float, float, np.ndarray]:
        """Take steps until the gap is small enough; P, the gap and the dual variables."""
        point, rounding = self.start, 1e-13 * self.primal
        while self.n_iter < _MAX_STEPS:
            self._note_dual(point.dual)
            if self.gap <= max(self.tol * self.primal, rounding):
                break
            step = self._step(point)
            if step is None:
                break
            point = step
            self._note_primal(point)
        self._round_duals()
        return self.primal, self.gap, self._signed.sum(axis=0)

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    def _round_duals(self) -> None:
        """Set duals near a bound to it: as many as leave the gap small enough."""
        dual, lowest = np.abs(self._signed), (1 - self.tol) * self.primal
        for share in _ROUNDED:
            near_zero, near_cost = dual < share * self.cost, dual > (1 - share) * self.cost
            value, signed = self._dual_value(
                np.where(near_cost, self.cost, np.where(near_zero, 0.0, dual))
            )
            if value >= lowest:
                self.dual, self._signed = value, signed
                break

    def _first_point(self) -> Iterate:
        """No weights, the best intercept, and equal shares of the costs that sum to zero."""
        n_weights, shape = self.rows.n_weights, self.sign.shape
        share = np.full(shape, CONSTANTS.first_share)
        intercept = 0.0
        if self.fit_intercept:
            intercept = best_constant(self.sign, self.margin, self.cost)
            share = np.abs(balance(self.sign * share * self.cost)) / self.cost
        scores = np.full(shape[1], intercept)
        unmet = self.margin - self.sign * scores
        # Products of all rows are then at least about their mean: those of small costs would else
        # be far below it, and no step could be longer than they allow.
        length = float(np.average(np.abs(self.margin).mean(axis=0), weights=self.cost)) or 1.0
        hinge = np.maximum(unmet, 0) + length * self.cost.mean() / self.cost
        dual, complement = share * self.cost, (1 - share) * self.cost
        return Iterate(
            np.zeros(n_weights), intercept, scores, hinge - unmet, hinge, dual, complement
        )

    def _note_primal(self, point: Iterate) -> None:
        unmet = np.maximum(self.margin - self.sign * point.scores, 0)
        value = 0.5 * float(point.weights @ point.weights) + float(np.sum(self.cost * unmet))
        if value < self.primal:
            self.primal, self.point = value, point

    def _note_dual(self, dual: np.ndarray) -> None:
        value, signed = self._dual_value(np.clip(dual, 0, self.cost))
        if value > self.dual:
            self.dual, self._signed = value, signed

    def _dual_value(self, dual: np.ndarray) -> tuple[float, np.ndarray]:
        """D of dual variables within their bounds, once these are balanced; s times them."""
        signed = self.sign * dual
        if self.fit_intercept:
            signed = balance(signed)
        weights = self.rows.adjoint(signed.sum(axis=0))
        value = float(np.vdot(self.sign * self.margin, signed)) - 0.5 * float(weights @ weights)
        return value, signed

    def _step(self, point: Iterate) -> Iterate | None:
        """The next point; None where the predictor's end or rounding errors leave nothing to do."""
        weight = 1 / (point.slack / point.dual + point.hinge / point.complement)
        hessian = CentredHessian.from_weight(self.rows, weight.sum(axis=0), self.fit_intercept)
        precondition = self.preconditioner.prepare(hessian)
        find_direction = partial(self._direction, point, weight, hessian, precondition)
        predictor = find_direction(0.0, 0.0, CONSTANTS.predictor_residual)
        self._note_primal(point.move(1.0, predictor))
        self._note_dual(point.dual + predictor.dual)
        self.n_iter += 1
        if self.gap <= self.tol * self.primal:
            return None
        length = min(1.0, point.largest_step(predictor))
        left = point.move(length, predictor).complementarity / point.complementarity
        target = left**CONSTANTS.centring_power * point.complementarity
        corrector = find_direction(
            target - predictor.dual * predictor.slack,
            target - predictor.complement * predictor.hinge,
            CONSTANTS.residual,
        )
        length = min(1.0, CONSTANTS.boundary * point.largest_step(corrector))
        return point.move(length, corrector) if length > _LEAST_STEP else None

    def _direction(
        self, point: Iterate, weight: np.ndarray, hessian: CentredHessian, precondition: Solve,
        slack_target: Any, hinge_target: Any, residual_share: float,
    ) -> Iterate:  # fmt: skip
        """The Newton direction to a t = `slack_target` and (c − a) ξ = `hinge_target`.

        In both, the product of changes is left out. `weight` holds (t/a + ξ/(c − a))⁻¹ of each
        hinge, whose sums over the hinges of a row weigh the Hessian.
        """
        (weights, _, scores, slack, hinge, dual, complement), sign = point, self.sign
        shortfall = self.margin - sign * scores + slack_target / dual - hinge_target / complement
        alpha = np.sum(sign * (dual + weight * shortfall), axis=0)
        total = float(alpha.sum()) if hessian.total else 0.0
        enough = residual_share * self.gap
        d_weights, n_products = conjugate_gradients(
            hessian.product,
            precondition,
            self.rows.adjoint(alpha) - weights - total * hessian.mean,
            0.0,
            lambda residual: 0.5 * float(residual @ residual) <= enough,
        )
        self.preconditioner.n_products += n_products
        d_scores, d_intercept = self.rows.scores(d_weights), 0.0
        if hessian.total:
            d_intercept = (total - float(hessian.weight @ d_scores)) / hessian.total
        d_scores = d_scores + d_intercept
        d_dual = weight * (shortfall - sign * d_scores)
        return Iterate(
            d_weights, d_intercept, d_scores,
            (slack_target - slack * d_dual) / dual - slack,
            (hinge_target + hinge * d_dual) / complement - hinge,
            d_dual, -d_dual,
        )  # fmt: skip
