r"""Newton's method on the weights of a map.

.. math:: P(w, b) = ½\|w\|² + \sum_i c_i\,ℓ(y_i, ⟨w, ψ_i⟩ + b)

is minimised by Newton steps, which conjugate gradients solve for (:mod:`.newton_cg`): each
takes some passes over the non-zero basis functions of the rows, of n·d times a few operations. A
few steps are enough, whatever C.

:math:`α_i = -c_i ℓ'(y_i, f_i)` are feasible dual variables. With the gradient g of P by the weights
their duality gap is

.. math:: P(w, b) - D(α) = ½\|g\|² + \sum_i \big(c_iℓ(y_i, f_i) + (c_iℓ)^*(-α_i) + α_i f_i\big),

whose sum is zero for these α. With an intercept, they are scaled to sum to zero before the gap is
certified.

Losses whose curvature varies from row to row are minimised for small costs first: from zero at
once, rows that change sides keep the steps of a large cost short. Losses with kinks have no
second derivatives: an interior-point method (:mod:`.interior_point`) takes steps of the
same kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._util.threads import limit_blas
from ..losses import LOSSES, Loss, svm_loss
from ..rows.basis_rows import BasisRows
from .dual import Solution
from .interior_point import InteriorPointFit, balance
from .linear_systems import blas_threads
from .newton_cg import CentredHessian, Preconditioner, conjugate_gradients

_COST_STEP = 10.0  # from one cost to the next on the way to a large one
_CERTIFICATES = 4  # attempts at a gap that is small by its estimate, each ten times as strict
_MAX_STEPS = 200  # for one cost
_MAX_HALVINGS = 60  # of a step
_MAX_LINE_STEPS = 8  # along a direction; two or three are usual
# The curvature of an intercept where no loss has any: it keeps its step finite.
_LEAST_CURVATURE = 1e-6


@dataclass(frozen=True)
class Accuracy:
    """Where steps end: parts of the relative gap, as shares of `tol`.

    In parentheses: processor time with other values, relative to that with the default.
    """

    # Relative gap on the way to the full cost: large, since P is then within some percent of its
    # minimum. 2000 × 50, C = 1000: 8 steps instead of 10 with 0.5. With 50 it is 7, but heavy
    # tailed columns and C = 10⁶ take hundreds.
    rough_gap: float = 5.0
    estimated: float = 0.8  # the gap that is certified next
    # Of the residual of a Newton step, in the norm of the preconditioner. 800 × 15 heavy-tailed
    # values, C = 10⁶: 77 steps, with 0.1 170.
    forcing: float = 0.01
    residual: float = 0.06  # of the gap that is asked for: a smaller residual adds nothing
    line: float = 1e-3  # decrease of a step along a line, of all before: less ends the search


ACCURACY = Accuracy()


def solve_primal(
    rows: BasisRows, problem: Any, examples: np.ndarray, fit_intercept: bool, tol: float,
    start: tuple[np.ndarray, np.ndarray] | None = None,
) -> Solution:  # fmt: skip
    """Minimise P for all outputs; weights of the solution are [feature][function][output].

    Parameters
    ----------
    rows : BasisRows
        The examples.
    problem : SVMProblem
        Loss, targets and costs of all rows.
    examples : int32[m]
        Which of them take part.
    fit_intercept : bool
    tol : float
        Relative duality gap that is wanted.
    start : (ndarray, ndarray), optional
        Dual variables of all rows and intercepts to start from.
    """
    outputs, cost, y = problem.positive.size, problem.cost[examples], problem.y[examples]
    loss = svm_loss(list(LOSSES)[problem.loss], problem.epsilon)
    primal, gap, start_value, intercept = np.zeros((4, outputs))
    weights = np.zeros((rows.n_features, rows.width, outputs))
    alpha, n_iter = np.zeros((problem.y.size, outputs)), 0
    with limit_blas(blas_threads(rows.n_weights)):
        for k in range(outputs):
            target = np.where(y == problem.positive[k], 1.0, -1.0) if problem.has_labels else y
            kind: Any = InteriorPointFit if loss.has_kinks else PrimalFit
            fit = kind(rows, loss, target, cost, fit_intercept, tol)
            start_value[k] = fit.value()
            if start is not None and not loss.has_kinks:
                fit.start_from(start[0][examples, k], start[1][k])
            primal[k], gap[k], alpha[examples, k] = fit.minimise()
            weights[:, :, k] = rows.transform_weights(fit.point.weights)
            intercept[k] = fit.point.intercept
            n_iter = max(n_iter, fit.n_iter)
    # Small beside the objective or, where that is next to zero (targets that the intercept alone
    # explains), beside rounding errors of where it began.
    small = bool(np.all(np.abs(gap) <= np.maximum(tol * primal, 1e-13 * start_value)))
    return Solution(weights, intercept, alpha, primal, gap, n_iter, small, "primal")


@dataclass(frozen=True)
class Point:
    """Weights and an intercept, and the scores f of all rows, the intercept included."""

    weights: np.ndarray
    intercept: float
    eta: np.ndarray

    def move(self, step: float, direction: Point) -> Point:
        """The point so many directions from here."""
        return Point(
            self.weights + step * direction.weights,
            self.intercept + step * direction.intercept,
            self.eta + step * direction.eta,
        )


class PrimalFit:
    """The fit of one output by Newton's method: weights, and the certificate there."""

    def __init__(
        self, rows: BasisRows, loss: Loss, y: np.ndarray, cost: np.ndarray, fit_intercept: bool,
        tol: float,
    ) -> None:  # fmt: skip
        self.rows, self.loss, self.y, self.cost = rows, loss, y, cost
        self.fit_intercept, self.tol = fit_intercept, tol
        self.loss_cost = loss.svm_factor * cost
        self.point = Point(np.zeros(rows.n_weights), 0.0, np.zeros(len(y)))
        self.n_iter, self.is_started = 0, False
        self.preconditioner = Preconditioner()

    def value(self, cost: np.ndarray | None = None, point: Point | None = None) -> float:
        """P, with other factors of the losses or at another point if they are given."""
        cost, point = self.loss_cost if cost is None else cost, point or self.point
        losses = cost @ self.loss.value(self.y, point.eta)
        return 0.5 * float(point.weights @ point.weights) + float(losses)

    def start_from(self, alpha: np.ndarray, intercept: float) -> None:
        """Start from the weights Σ α_i ψ_i, if P is lower there than without weights."""
        weights = self.rows.adjoint(alpha)
        start = Point(weights, float(intercept), self.rows.scores(weights) + intercept)
        self.is_started = self.value(point=start) < self.value()
        if self.is_started:
            self.point = start

    def minimise(self) -> tuple[float, float, np.ndarray]:
        """Go to the minimum; the certificate there."""
        if not self.loss.is_quadratic and not self.is_started:
            # Near the minima of smaller costs first.
            for power in range(int(np.ceil(np.log(self.cost.max()) / np.log(_COST_STEP))), 0, -1):
                rough = ACCURACY.rough_gap / ACCURACY.estimated
                self._newton(self.loss_cost / _COST_STEP**power, rough)
        for attempt in range(_CERTIFICATES):
            self._newton(self.loss_cost, self.tol / 10.0**attempt)
            primal, gap, alpha = self.certify()
            if gap <= self.tol * primal:
                break
        return primal, gap, alpha

    def _newton(self, cost: np.ndarray, tol: float) -> None:
        """Take Newton steps until the relative gap is about `tol`."""
        value = self.value(cost)
        for _ in range(_MAX_STEPS):
            slope, curvature = self.loss.derivatives(self.y, self.point.eta)
            slope, curvature = cost * slope, cost * curvature
            gradient = self.point.weights + self.rows.adjoint(slope)
            intercept_slope = float(slope.sum()) if self.fit_intercept else 0.0
            # Scaling the α to sum to zero moves the gap by about |b| times their sum.
            imbalance = abs(intercept_slope) * (1 + abs(self.point.intercept))
            limit = ACCURACY.estimated * tol * value
            if 0.5 * float(gradient @ gradient) + imbalance <= limit:
                return
            direction = self._direction(gradient, intercept_slope, curvature, limit)
            self.n_iter += 1
            before, value = value, self._search_line(cost, direction, value)
            if self.fit_intercept:
                # The step of Newton's method in the intercept alone.
                slope, curvature = self.loss.derivatives(self.y, self.point.eta)
                step = -float(cost @ slope) / max(float(cost @ curvature), _LEAST_CURVATURE)
                shift = Point(np.zeros(self.rows.n_weights), step, np.full(len(self.y), step))
                value = self._search_line(cost, shift, value)
            if not value < before:  # rounding errors do not let it go on
                return

    def _direction(
        self, gradient: np.ndarray, intercept_slope: float, curvature: np.ndarray, limit: float
    ) -> Point:
        """The direction of a Newton step."""
        hessian = CentredHessian.from_weight(self.rows, curvature, self.fit_intercept)
        enough = ACCURACY.residual * limit
        weights, n_products = conjugate_gradients(
            hessian.product,
            self.preconditioner.prepare(hessian),
            intercept_slope * hessian.mean - gradient,
            ACCURACY.forcing,
            lambda residual: 0.5 * float(residual @ residual) <= enough,
        )
        self.preconditioner.n_products += n_products
        scores, intercept = self.rows.scores(weights), 0.0
        if self.fit_intercept:
            total = max(hessian.total, _LEAST_CURVATURE)
            intercept = -(intercept_slope + float(curvature @ scores)) / total
        return Point(weights, intercept, scores + intercept)

    def _search_line(self, cost: np.ndarray, direction: Point, value: float) -> float:
        """Go near the minimum of P along a direction, by Newton's method; P there.

        No pass over the rows: their scores are linear in the step.
        """
        start, step = self.point, 1.0
        for _ in range(_MAX_HALVINGS):
            lowest = self.value(cost, start.move(step, direction))
            if lowest < value:
                break
            step *= 0.5
        else:
            return value
        weight_slope = float(start.weights @ direction.weights)
        square = float(direction.weights @ direction.weights)
        for _ in range(_MAX_LINE_STEPS):
            eta = start.eta + step * direction.eta
            slope, curvature = self.loss.derivatives(self.y, eta)
            gradient = weight_slope + step * square + float(cost * slope @ direction.eta)
            curvature_sum = square + float(cost * curvature @ direction.eta**2)
            trial = step - gradient / curvature_sum if curvature_sum else step
            trial_value = self.value(cost, start.move(trial, direction))
            if not lowest - trial_value > ACCURACY.line * (value - lowest):
                break
            step, lowest = trial, trial_value
        self.point = start.move(step, direction)
        return lowest

    def certify(self) -> tuple[float, float, np.ndarray]:
        """P, the duality gap of the weights, and the dual variables α = −cℓ'.

        The gap's sum Σ cℓ(f) + (cℓ)*(−α) + αf is not negative, and zero for the α of this f.
        """
        eta = self.point.eta
        alpha = -self.loss_cost * self.loss.derivatives(self.y, eta)[0]
        if self.fit_intercept:
            alpha = balance(alpha)
        difference = self.point.weights - self.rows.adjoint(alpha)
        rules: Any = self.loss.dual_rules
        losses = self.loss_cost * self.loss.value(self.y, eta)
        conjugates = rules.conjugate(self.y, alpha, self.cost, 0.0)
        gap = 0.5 * float(difference @ difference) + float(
            np.sum(losses + conjugates + alpha * eta)
        )
        return self.value(), gap, alpha
