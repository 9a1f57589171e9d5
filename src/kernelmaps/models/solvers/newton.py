r"""Newton's method for penalised losses, with quasi-Newton steps between Hessians.

.. math:: P(β) = \sum_i c_i\,ℓ(y_i, η_i) + ½ β^\top \mathrm{diag}(d) β, \qquad η = o + Zβ.

A Newton step goes to the minimum of the working least-squares problem at β, halved while it raises
P. Its Hessian then serves for some quasi-Newton steps (L-BFGS), which take exact gradients: a
gradient costs a pass over the rows, a Hessian that and a product for each pair of terms.

A loss may give an upper bound in the place of its second derivative (a majorizer, for losses with a
kink): steps then cannot raise P, but are short. Full steps lower the share of the bound, until
the last ones are Newton's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..losses import Loss
from ..rows.normal_equations import WorkingProblem
from ..rows.term_rows import LossEvaluation, SolverRows
from .linear_systems import constrained_minimum, penalised_system

Solve = Callable[[np.ndarray], np.ndarray]  # a system with a Hessian


@dataclass(frozen=True)
class NewtonOptions:
    """Constants of Newton's method."""

    # Change of P in the last step, relative to |P| + value_scale: small, since the last steps
    # square the error and cost little.
    tol: float = 1e-10
    value_scale: float = 1.0
    max_iter: int = 100  # Hessians
    max_halvings: int = 30  # of a step; 2⁻³⁰ of it is beyond rounding
    max_quasi_newton: int = 20  # steps with one Hessian; three to six are usual
    # Decrement, in units of tol, after which a quasi-Newton step is the last one: it converges
    # linearly, so that its decrement says less about the error than that of a Newton step.
    quasi_newton_end: float = 1e-4

    def size_of(self, value: float) -> float:
        """What changes of P are compared with."""
        return self.value_scale + abs(value)


NEWTON = NewtonOptions()


@dataclass(frozen=True)
class Objective:
    """P: rows, a loss and the diagonal d of a quadratic penalty."""

    rows: SolverRows
    loss: Loss
    penalty: np.ndarray

    def evaluate(self, beta: np.ndarray) -> LossEvaluation:
        """Evaluate the losses: one pass over the rows."""
        return self.rows.evaluate(self.loss, beta)

    def value(self, point: LossEvaluation) -> float:
        """P."""
        return float(point.value + 0.5 * self.penalty @ point.beta**2)

    def gradient(self, point: LossEvaluation) -> np.ndarray:
        """∇P."""
        return point.gradient() + self.penalty * point.beta

    @property
    def allows_quasi_newton(self) -> bool:
        """Whether steps by a former Hessian are of use: not for majorizers or under constraints."""
        return not self.loss.majorizer_share and self.rows.constraints is None


@dataclass(frozen=True)
class NewtonResult:
    """Where `minimise` ended.

    Attributes
    ----------
    point : LossEvaluation
        β, and the losses there.
    problem : NormalEquations
        The last working least-squares problem.
    loss : Loss
        With the share of a majorizer of the last evaluation.
    n_iter : int
        Steps, quasi-Newton ones included.
    converged : bool
    """

    point: LossEvaluation
    problem: WorkingProblem
    loss: Loss
    n_iter: int
    converged: bool


def minimise(
    objective: Objective, point: LossEvaluation, max_iter: int = NEWTON.max_iter
) -> NewtonResult:
    """Minimise P from `point`, for fixed penalties.

    Parameters
    ----------
    objective : Objective
    point : LossEvaluation
        ``objective.evaluate(beta)`` for the β to start from.
    max_iter : int
        Hessians, at most.
    """
    n_iter, next_loss = 0, objective.loss
    for _ in range(max_iter):
        problem = point.working_problem()
        system = penalised_system(problem, objective.penalty)
        # By the gradient: solving for the minimum itself leaves errors of the size of the condition
        # number, which steps cannot correct.
        minimum = point.beta - system.solve(objective.gradient(point))
        if objective.rows.constraints is not None:
            minimum = constrained_minimum(minimum, system.inverse(), objective.rows.constraints)
        before = objective.value(point)
        objective = replace(objective, loss=next_loss)
        point, is_full = damped_step(objective, point, minimum)
        n_iter += 1
        next_loss = objective.loss.add_majorizer(is_full)
        value = objective.value(point)
        converged = before - value <= NEWTON.tol * NEWTON.size_of(value)
        if not converged and objective.allows_quasi_newton:
            point, decrements, converged = quasi_newton_steps(
                objective, point, system.solve, NEWTON.quasi_newton_end * NEWTON.tol
            )
            n_iter += len(decrements)
        if converged:
            break
    return NewtonResult(point, problem, objective.loss, n_iter, converged)


def damped_step(
    objective: Objective, point: LossEvaluation, target: np.ndarray
) -> tuple[LossEvaluation, bool]:
    """Go towards `target`, halving the step while it raises P, and tell whether it was a full one.

    A majorizer's value does not depend on its share, so that P at `point` is that of any share.
    """
    highest = objective.value(point)
    highest += 1e-12 * abs(highest)
    step = halved_step(objective, point.beta, target, highest)
    return step or (point, False)


def halved_step(
    objective: Objective, beta: np.ndarray, target: np.ndarray, highest: float
) -> tuple[LossEvaluation, bool] | None:
    """The longest of ever shorter steps to a P of at most `highest`; None if there is none.

    If half a step leads to a higher P than all of it, P falls all the way, since it is convex, and
    shorter steps lead higher still.
    """
    value_of_longer = np.inf
    for halvings in range(NEWTON.max_halvings):
        trial = objective.evaluate(beta + 0.5**halvings * (target - beta) if halvings else target)
        value = objective.value(trial)
        if np.isfinite(value) and value <= highest:
            return trial, halvings == 0
        if np.isfinite(value) and value >= value_of_longer:
            return None
        value_of_longer = value
    return None


def quasi_newton_steps(
    objective: Objective, point: LossEvaluation, solve: Solve, tol: float
) -> tuple[LossEvaluation, list[float], bool]:
    """Take L-BFGS steps from a Hessian of an earlier point.

    They end where the decrement ½∇PᵀH⁻¹∇P is at most `tol` times P. Returns the last point, the
    decrements, and whether this was the reason.
    """
    memory = LbfgsMemory()
    decrements: list[float] = []
    gradient = objective.gradient(point)
    for _ in range(NEWTON.max_quasi_newton):
        direction = memory.solve(solve, gradient)
        decrements.append(0.5 * float(gradient @ direction))  # no difference of large sums
        beta, last_gradient = point.beta, gradient
        point, _ = damped_step(objective, point, beta - direction)
        if decrements[-1] <= tol * NEWTON.size_of(objective.value(point)):
            return point, decrements, True
        gradient = objective.gradient(point)
        memory.add(point.beta - beta, gradient - last_gradient)
    return point, decrements, False


@dataclass
class LbfgsMemory:
    """Steps and changes of the gradient, which correct a Hessian (Nocedal 1980, two loops)."""

    steps: list[np.ndarray] = field(default_factory=list)
    changes: list[np.ndarray] = field(default_factory=list)

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Add a step, if the curvature along it is positive."""
        if step @ change > 0:
            self.steps.append(step)
            self.changes.append(change)

    def solve(self, solve: Solve, rhs: np.ndarray) -> np.ndarray:
        """Solve with the corrected Hessian, by a solver with the first one."""
        rhs, shares = rhs.copy(), []
        for step, change in zip(self.steps[::-1], self.changes[::-1], strict=True):
            shares.append(float(step @ rhs) / float(step @ change))
            rhs -= shares[-1] * change
        solution = solve(rhs)
        for step, change, share in zip(self.steps, self.changes, shares[::-1], strict=True):
            solution = solution + (share - float(change @ solution) / float(step @ change)) * step
        return solution
