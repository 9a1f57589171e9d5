r"""Newton's method on the weights of a map: for problems that coordinate descent is slow on.

.. math:: P(w, b) = ½\|w\|² + \sum_i c_i\,ℓ(y_i, ⟨w, ψ_i⟩ + b)

is minimised by :mod:`..solvers.newton`, at a cost of n·D² for D columns of ψ and a Hessian. A few
of these are enough, whatever C: for weak regularisation and smooth penalties (splines
of second order), where coordinate descent on the dual is slow.

:math:`α_i = -c_i ℓ'(y_i, f_i)` are feasible dual variables. With the gradient g of P by the weights
their duality gap is

.. math:: P(w, b) - D(α) = ½\|g\|² + \sum_i \big(c_iℓ(y_i, f_i) + (c_iℓ)^*(-α_i) + α_i f_i\big),

whose sum is zero unless corners of the loss are smoothed. With an intercept, the α are scaled to
sum to zero before the gap is certified.

Two continuations keep the number of steps small. Corners of a loss are smoothed by a parabola,
whose width shrinks until the gap is small enough. Losses whose curvature varies from row to row are
minimised for small costs first: from zero at once, rows that change sides keep the steps of a large
cost short.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...threads import limit_blas
from ..losses import Loss, make_loss, name_with
from ..rows.in_memory import EvaluationInMemory
from ..rows.mapped import MapColumns, MappedRows
from ..solvers.dual import Solution
from ..solvers.linear_systems import RIDGES, blas_threads
from ..solvers.newton import NewtonOptions, Objective, Stop, minimise

MOST_COLUMNS = 3000  # a step factorises a matrix of this size
_MOST_OPERATIONS = 2e12  # n·D² of a step
# P falls until rounding errors end it, unless the certificate does so before.
# The first ridge is next to nothing: beside a large cost it would hide the penalty.
_NEWTON = NewtonOptions(
    slow_ratio=0.3,  # L-BFGS steps with one Hessian that shrink less are worth a new Hessian
    tol=1e-14,
    value_scale=0.0,
    max_iter=200,
    max_halvings=60,
    ridges=(1e-14, *RIDGES),
)
_ROUGH = replace(_NEWTON, tol=1e-2)  # on the way to the full cost
_WIDTHS = 4.0 ** -np.arange(-1, 16)  # of smoothed corners, in units of the mean size of targets
# Part of the gap that is due to the steps at their end, as a share of `tol` times P or of the part
# due to smoothed corners.
_SMALL_SHARE, _SMALL_BESIDE_CORNERS = 5e-2, 0.1
_CERTIFICATES = 4  # attempts at a gap that is small by its estimate, each ten times as strict


def is_feasible(n_columns: int, n_rows: int) -> bool:
    """Whether a step is affordable."""
    return n_columns <= MOST_COLUMNS and n_rows * n_columns**2 <= _MOST_OPERATIONS


def solve_primal(
    columns: MapColumns, problem: Any, examples: np.ndarray, tol: float,
    start: tuple[np.ndarray, np.ndarray] | None = None,
) -> Solution:  # fmt: skip
    """Minimise P for all outputs; the solution has weights [column][output].

    Parameters
    ----------
    columns : MapColumns
        Of the examples.
    problem : SVMProblem
        Loss, targets and costs of all rows.
    examples : int32[m]
        Which of them take part.
    tol : float
        Relative duality gap that is wanted.
    start : (ndarray, ndarray), optional
        Dual variables of all rows and intercepts to start from.
    """
    outputs, cost, y = problem.positive.size, problem.cost[examples], problem.y[examples]
    loss = make_loss(name_with(problem.loss), y, epsilon=problem.epsilon)
    primal, gap, first, intercept = np.zeros((4, outputs))
    weights, alpha = np.zeros((columns.n_columns, outputs)), np.zeros((problem.y.size, outputs))
    n_iter = 0
    with limit_blas(blas_threads(columns.n_columns)):
        for k, code in enumerate(problem.positive):
            target = np.where(y == code, 1.0, -1.0) if loss.of_labels else y
            fit = PrimalFit(columns, loss, target, cost, tol)
            first[k] = fit.value()
            if start is not None:
                fit.start_from(start[0][examples, k], start[1][k])
            primal[k], gap[k], alpha[examples, k] = fit.minimise()
            weights[:, k] = fit.weights[: columns.n_columns]
            intercept[k] = fit.weights[-1] if columns.fit_intercept else 0.0
            n_iter = max(n_iter, fit.n_iter)
    # Small beside the objective or, where that is next to zero (targets that the intercept alone
    # explains), beside rounding errors of where it began.
    small = bool(np.all(np.abs(gap) <= np.maximum(tol * primal, 1e-13 * first)))
    visits = n_iter * len(examples)
    return Solution(weights, intercept, alpha, primal, gap, n_iter, visits, small, "primal")


class PrimalFit:
    """The fit of one output: weights, the width of smoothed corners, and the certificate there."""

    def __init__(
        self, columns: MapColumns, loss: Loss, y: np.ndarray, cost: np.ndarray, tol: float
    ) -> None:
        self.columns, self.loss, self.cost, self.tol = columns, loss, cost, tol
        self.rows = MappedRows(columns, y, loss.svm_factor * cost)
        self.penalty = columns.penalty
        self.n_iter, self.is_started = 0, False
        self.point: Any = self.rows.at(loss, np.zeros(len(self.penalty)))

    @property
    def weights(self) -> np.ndarray:
        """Weights of the columns, and the intercept."""
        return self.point.beta

    def value(self) -> float:
        """P, with the corners of the loss as they are."""
        losses = float(self.rows.weight @ self.loss.value(self.rows.y, self.point.eta))
        return 0.5 * float(self.penalty @ self.point.beta**2) + losses

    def start_from(self, alpha: np.ndarray, intercept: float) -> None:
        """Start from the weights Σ α_i ψ_i, if P is lower there than without weights."""
        weights = self.columns.adjoint(alpha)
        if self.columns.fit_intercept:
            weights[-1] = intercept
        before, lowest = self.point, self.value()
        self.point = self.rows.at(self.loss, weights)
        if self.value() < lowest:
            self.is_started = True
        else:
            self.point = before

    def minimise(self) -> tuple[float, float, np.ndarray]:
        """Go to the minimum, with ever less smoothed corners where the loss has them.

        Returns the certificate there.
        """
        if self.loss.has_corners:
            scale = float(np.average(np.abs(self.rows.y), weights=self.cost)) or 1.0
            stages = [(width, self.tol) for width in scale * _WIDTHS]
        else:
            if self.loss.curvature_varies and not self.is_started:
                self.approach_cost()
            stages = [(1.0, self.tol / 10.0**k) for k in range(_CERTIFICATES)]
        for width, tol in stages:
            loss = self.loss.smoothed(width)
            self._newton(Objective(self.rows, loss, self.penalty), _NEWTON, self._is_small(tol))
            primal, gap, alpha = self.certify()
            if gap <= 0.5 * self.tol * primal:
                break
        return primal, gap, alpha

    def approach_cost(self) -> None:
        """Go near the minima of the costs divided by powers of ten, the smallest costs first."""
        for power in range(int(np.ceil(np.log10(self.cost.max()))), 0, -1):
            rows = replace(self.rows, weight=self.rows.weight / 10.0**power)
            self._newton(Objective(rows, self.loss, self.penalty), _ROUGH, None)

    def _newton(self, objective: Objective, options: NewtonOptions, stop: Stop | None) -> None:
        result = minimise(objective, objective.at(self.point.beta), options, stop)
        self.n_iter += result.n_iter
        self.point = result.point

    def _is_small(self, tol: float) -> Stop:
        """Whether little of the gap is due to anything but smoothed corners."""

        def stop(point: EvaluationInMemory, gradient: np.ndarray) -> bool:
            smoothing = (
                self._fenchel_sum(point, self._duals(point)) if self.loss.has_corners else 0.0
            )
            # Scaling the α to sum to zero moves the gap by about |b| times their sum.
            unbalanced = (1 - self.penalty) * np.abs(gradient) @ (1 + np.abs(point.beta))
            steps = 0.5 * float(self.penalty @ gradient**2) + float(unbalanced)
            value = float(point.value + 0.5 * self.penalty @ point.beta**2)
            return steps <= max(_SMALL_SHARE * tol * value, _SMALL_BESIDE_CORNERS * smoothing)

        return stop

    def certify(self) -> tuple[float, float, np.ndarray]:
        """P, the duality gap of the weights, and the dual variables α."""
        alpha = self._duals(self.point)
        if self.columns.fit_intercept:
            alpha = _balanced(alpha)
        difference = self.penalty * (self.point.beta - self.columns.adjoint(alpha))
        gap = 0.5 * float(difference @ difference) + self._fenchel_sum(self.point, alpha)
        return self.value(), gap, alpha

    def _duals(self, point: EvaluationInMemory) -> np.ndarray:
        """α = −cℓ'."""
        return -self.rows.weight * point.loss.derivatives(self.rows.y, point.eta)[0]

    def _fenchel_sum(self, point: EvaluationInMemory, alpha: np.ndarray) -> float:
        """Σ cℓ(f) + (cℓ)*(−α) + αf: not negative, and zero for the α of this f."""
        rules: Any = self.loss.dual_rules
        y, epsilon = self.rows.y, getattr(self.loss, "epsilon", 0.0)
        losses = self.rows.weight * self.loss.value(y, point.eta)
        conjugates = rules.conjugate(y, alpha, self.cost, epsilon)
        return float(np.sum(losses + conjugates + alpha * point.eta))


def _balanced(alpha: np.ndarray) -> np.ndarray:
    """Duals that sum to zero: those of the larger side shrink, which is feasible for every loss."""
    total = float(alpha.sum())
    side = np.where(alpha * total > 0, alpha, 0.0)
    return alpha - side * (total / float(side.sum())) if total and side.any() else alpha
