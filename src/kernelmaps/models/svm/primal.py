r"""Newton's method on the weights of a map.

.. math:: P(w, b) = ½\|w\|² + \sum_i c_i\,ℓ(y_i, ⟨w, ψ_i⟩ + b)

is minimised by Newton steps, which conjugate gradients solve for (:mod:`..solvers.newton_cg`): each
takes some passes over the bands of the rows, of n·d times a few operations. A few steps are enough,
whatever C.

:math:`α_i = -c_i ℓ'(y_i, f_i)` are feasible dual variables. With the gradient g of P by the weights
their duality gap is

.. math:: P(w, b) - D(α) = ½\|g\|² + \sum_i \big(c_iℓ(y_i, f_i) + (c_iℓ)^*(-α_i) + α_i f_i\big),

whose sum is zero for these α. With an intercept, they are scaled to sum to zero before the gap is
certified.

Losses whose curvature varies from row to row are minimised for small costs first: from zero at
once, rows that change sides keep the steps of a large cost short. Losses with kinks have no
second derivatives: an interior-point method (:mod:`..solvers.interior_point`) takes steps of the
same kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._util.threads import limit_blas
from ..losses import Loss, make_loss, name_with
from ..rows.band_rows import BandRows
from ..solvers.dual import Solution
from ..solvers.interior_point import InteriorPointFit, balanced
from ..solvers.linear_systems import blas_threads
from ..solvers.newton_cg import Preconditioner, conjugate_gradients

LossDerivatives = tuple[np.ndarray, np.ndarray]  # by the scores: first, second

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
    forcing: float = 0.1  # of the residual of a Newton step
    residual: float = 0.06  # of the gap that is asked for: a smaller residual adds nothing
    line: float = 1e-3  # decrease along a direction that is left, of what it has brought
    balance: float = 0.02  # of the gap: what an intercept that is not at its minimum adds


ACCURACY = Accuracy()


def solve_primal(
    rows: BandRows, problem: Any, examples: np.ndarray, fit_intercept: bool, tol: float,
    start: tuple[np.ndarray, np.ndarray] | None = None,
) -> Solution:  # fmt: skip
    """Minimise P for all outputs; the solution has weights [feature][function][output] of bands.

    Parameters
    ----------
    rows : BandRows
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
    loss = make_loss(name_with(problem.loss), y, epsilon=problem.epsilon)
    primal, gap, first, intercept = np.zeros((4, outputs))
    weights = np.zeros((rows.n_features, rows.width, outputs))
    alpha, n_iter = np.zeros((problem.y.size, outputs)), 0
    with limit_blas(blas_threads(rows.n_weights)):
        for k in range(outputs):
            target = targets_of(problem, y, k)
            kind: Any = InteriorPointFit if loss.has_kinks else PrimalFit
            fit = kind(rows, loss, target, cost, fit_intercept, tol)
            first[k] = fit.value()
            if start is not None:
                fit.start_from(start[0][examples, k], start[1][k])
            primal[k], gap[k], alpha[examples, k] = fit.minimise()
            weights[:, :, k] = rows.band_weights(fit.point.weights)
            intercept[k] = fit.point.intercept
            n_iter = max(n_iter, fit.n_iter)
    # Small beside the objective or, where that is next to zero (targets that the intercept alone
    # explains), beside rounding errors of where it began.
    small = bool(np.all(np.abs(gap) <= np.maximum(tol * primal, 1e-13 * first)))
    return Solution(weights, intercept, alpha, primal, gap, n_iter, small, "primal")


def targets_of(problem: Any, y: np.ndarray, output: int) -> np.ndarray:
    """Labels ±1 of an output, or numbers."""
    return np.where(y == problem.positive[output], 1.0, -1.0) if problem.of_labels else y


@dataclass(frozen=True)
class Point:
    """Weights and an intercept, and the scores of all rows without the intercept."""

    weights: np.ndarray
    intercept: float
    scores: np.ndarray

    @property
    def eta(self) -> np.ndarray:
        """Scores f."""
        return self.scores + self.intercept


class LineMinimum(NamedTuple):
    """The minimum of P along a line, and the derivatives of the losses there, if known."""

    point: Point
    value: float
    derivatives: LossDerivatives | None


@dataclass(frozen=True)
class Line:
    """P on the plane of a direction of the weights and the intercept: no pass over the rows.

    Attributes
    ----------
    fit : PrimalFit
    cost : ndarray
        Factors of the losses.
    start : Point
    direction, scores : ndarray
        Of the weights, and what one of it adds to the scores.
    """

    fit: PrimalFit
    cost: np.ndarray
    start: Point
    direction: np.ndarray
    scores: np.ndarray

    def _eta(self, step: float, intercept: float) -> np.ndarray:
        return self.start.scores + step * self.scores + intercept

    def value(self, step: float, intercept: float) -> float:
        """P."""
        w, p = self.start.weights, self.direction
        square = float(w @ w) + 2 * step * float(w @ p) + step**2 * float(p @ p)
        losses = self.fit.loss.value(self.fit.y, self._eta(step, intercept))
        return 0.5 * square + float(self.cost @ losses)

    def at(self, step: float, intercept: float) -> Point:
        weights = self.start.weights + step * self.direction
        return Point(weights, intercept, self.start.scores + step * self.scores)

    def minimise(self, step: float, change: float, highest: float) -> LineMinimum | None:
        """The minimum of P on the plane, from a step and a change of the intercept on.

        None if none of ever shorter steps leads to a P of at most `highest`.
        """
        value, begin = np.inf, self.start.intercept
        for halvings in range(_MAX_HALVINGS):
            length, intercept = step * 0.5**halvings, begin + change * 0.5**halvings
            value = self.value(length, intercept)
            if value <= highest:
                break
        else:
            return None
        step = length
        derivatives = None
        for _ in range(_MAX_LINE_STEPS):
            derivatives = self._loss_derivatives(step, intercept)
            move, decrease, imbalance = self._newton_step(step, intercept, *derivatives)
            enough = ACCURACY.line * (highest - value) + 1e-14 * abs(value)
            if decrease <= enough and imbalance <= ACCURACY.balance * self.fit.tol * value:
                break
            trial = None
            for halvings in range(_MAX_LINE_STEPS):
                length = 0.5**halvings
                trial = step + length * move[0], intercept + length * move[1]
                trial_value = self.value(*trial)
                if trial_value <= value:
                    break
            else:
                break
            (step, intercept), value, derivatives = trial, trial_value, None
        return LineMinimum(self.at(step, intercept), value, derivatives)

    def _loss_derivatives(self, step: float, intercept: float) -> LossDerivatives:
        """First and second derivatives of the losses of all rows by their scores."""
        slope, curvature = self.fit.loss.derivatives(self.fit.y, self._eta(step, intercept))
        return self.cost * slope, self.cost * curvature

    def _newton_step(
        self, step: float, intercept: float, slope: np.ndarray, curvature: np.ndarray
    ) -> tuple[tuple[float, float], float, float]:
        """A Newton step on the plane, the decrease that it predicts, and |∂P/∂b| (1 + |b|)."""
        w, p, z = self.start.weights, self.direction, self.scores
        by_step = float(w @ p) + step * float(p @ p) + float(slope @ z)
        weighted = curvature * z
        step_curvature = float(p @ p) + float(weighted @ z)
        by_intercept = intercept_curvature = 0.0
        if self.fit.fit_intercept:
            by_intercept, intercept_curvature = float(slope.sum()), float(curvature.sum())
        mixed = float(weighted.sum()) if intercept_curvature else 0.0
        determinant = step_curvature * intercept_curvature - mixed**2
        if determinant > 1e-12 * step_curvature * intercept_curvature:
            move = (
                (mixed * by_intercept - intercept_curvature * by_step) / determinant,
                (mixed * by_step - step_curvature * by_intercept) / determinant,
            )
        elif intercept_curvature:
            move = 0.0, -by_intercept / intercept_curvature
        else:
            move = (-by_step / step_curvature if step_curvature else 0.0), 0.0
        decrease = -0.5 * (by_step * move[0] + by_intercept * move[1])
        return move, decrease, abs(by_intercept) * (1 + abs(intercept))


class PrimalFit:
    """The fit of one output by Newton's method: weights, and the certificate there."""

    def __init__(
        self, rows: BandRows, loss: Loss, y: np.ndarray, cost: np.ndarray, fit_intercept: bool,
        tol: float,
    ) -> None:  # fmt: skip
        self.rows, self.loss, self.y, self.cost = rows, loss, y, cost
        self.fit_intercept, self.tol = fit_intercept, tol
        self.loss_cost = loss.svm_factor * cost
        self.point = Point(np.zeros(rows.n_weights), 0.0, np.zeros(len(y)))
        self.n_iter, self.is_started = 0, False
        self.preconditioner = Preconditioner(rows)

    def value(self) -> float:
        """P."""
        w = self.point.weights
        losses = self.loss_cost @ self.loss.value(self.y, self.point.eta)
        return 0.5 * float(w @ w) + float(losses)

    def start_from(self, alpha: np.ndarray, intercept: float) -> None:
        """Start from the weights Σ α_i ψ_i, if P is lower there than without weights."""
        before, lowest = self.point, self.value()
        weights = self.rows.adjoint(alpha)
        self.point = Point(weights, float(intercept), self.rows.scores(weights))
        self.is_started = self.value() < lowest
        if not self.is_started:
            self.point = before

    def minimise(self) -> tuple[float, float, np.ndarray]:
        """Go to the minimum; the certificate there."""
        if self.loss.curvature_varies and not self.is_started:
            self.approach_cost()
        for attempt in range(_CERTIFICATES):
            self._newton(self.loss_cost, self.tol / 10.0**attempt)
            primal, gap, alpha = self.certify()
            if gap <= self.tol * primal:
                break
        return primal, gap, alpha

    def approach_cost(self) -> None:
        """Go near the minima of smaller costs, the smallest first."""
        n_steps = int(np.ceil(np.log(self.cost.max()) / np.log(_COST_STEP)))
        for power in range(n_steps, 0, -1):
            cost = self.loss_cost / _COST_STEP**power
            self._newton(cost, ACCURACY.rough_gap / ACCURACY.estimated)
            self.preconditioner.rescale(_COST_STEP)

    def _newton(self, cost: np.ndarray, tol: float) -> None:
        """Take Newton steps until the relative gap is about `tol`."""
        eta, w = self.point.eta, self.point.weights
        value = 0.5 * float(w @ w) + float(cost @ self.loss.value(self.y, eta))
        derivatives = None
        for _ in range(_MAX_STEPS):
            eta, w = self.point.eta, self.point.weights
            if derivatives is None:
                slope, curvature = self.loss.derivatives(self.y, eta)
                derivatives = cost * slope, cost * curvature
            slope, curvature = derivatives
            gradient = w + self.rows.adjoint(slope)
            by_intercept = float(slope.sum()) if self.fit_intercept else 0.0
            # Scaling the α to sum to zero moves the gap by about |b| times their sum.
            imbalance = abs(by_intercept) * (1 + abs(self.point.intercept))
            limit = ACCURACY.estimated * tol * value
            if 0.5 * float(gradient @ gradient) + imbalance <= limit:
                return
            line, change = self._direction(cost, (gradient, by_intercept, curvature), limit)
            self.n_iter += 1
            lowest = line.minimise(1.0, change, value + 1e-12 * abs(value))
            if lowest is None or not lowest.value < value:  # rounding errors do not let it go on
                return
            self.point, value, derivatives = lowest

    def _direction(
        self, cost: np.ndarray, derivatives: tuple[np.ndarray, float, np.ndarray],
        limit: float,
    ) -> tuple[Line, float]:  # fmt: skip
        """The direction of a Newton step, and the change of the intercept."""
        gradient, by_intercept, curvature = derivatives
        hessian = self.preconditioner.hessian(curvature, self.fit_intercept)
        enough = ACCURACY.residual * limit
        direction, n_products = conjugate_gradients(
            hessian.product,
            self.preconditioner.of(hessian),
            by_intercept * hessian.mean - gradient,
            ACCURACY.forcing,
            lambda residual: 0.5 * float(residual @ residual) <= enough,
        )
        self.preconditioner.count(hessian, n_products)
        scores = self.rows.scores(direction)
        change = 0.0
        if self.fit_intercept:
            total = max(hessian.total, _LEAST_CURVATURE)
            change = -(by_intercept + float(curvature @ scores)) / total
        return Line(self, cost, self.point, direction, scores), change

    def certify(self) -> tuple[float, float, np.ndarray]:
        """P, the duality gap of the weights, and the dual variables α = −cℓ'."""
        eta = self.point.eta
        alpha = -self.loss_cost * self.loss.derivatives(self.y, eta)[0]
        if self.fit_intercept:
            alpha = balanced(alpha)
        difference = self.point.weights - self.rows.adjoint(alpha)
        gap = 0.5 * float(difference @ difference) + self._fenchel_sum(eta, alpha)
        return self.value(), gap, alpha

    def _fenchel_sum(self, eta: np.ndarray, alpha: np.ndarray) -> float:
        """Σ cℓ(f) + (cℓ)*(−α) + αf: not negative, and zero for the α of this f."""
        rules: Any = self.loss.dual_rules
        losses = self.loss_cost * self.loss.value(self.y, eta)
        conjugates = rules.conjugate(self.y, alpha, self.cost, getattr(self.loss, "epsilon", 0.0))
        return float(np.sum(losses + conjugates + alpha * eta))
