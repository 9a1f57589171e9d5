"""Newton's method ends at the minimum of penalised losses, whatever the rows are."""

from dataclasses import dataclass

import numpy as np
import pytest
from loss_of_targets import make_loss

from kernelmaps.models.losses import Loss
from kernelmaps.models.rows.normal_equations import NormalEquations
from kernelmaps.models.solvers.newton import LbfgsMemory, Objective, minimise


@dataclass
class MatrixRows:
    """Rows through a map: a matrix Z with a column of ones, as additive SVMs have them."""

    Z: np.ndarray
    y: np.ndarray
    cost: np.ndarray
    constraints: np.ndarray | None = None
    in_memory = True

    def evaluate(self, loss, beta):
        return MatrixEvaluation(
            beta, float(self.cost @ loss.value(self.y, self.Z @ beta)), self, loss
        )


@dataclass
class MatrixEvaluation:
    beta: np.ndarray
    value: float
    rows: MatrixRows
    loss: Loss

    def gradient(self):
        rows = self.rows
        return rows.Z.T @ (rows.cost * self.loss.derivatives(rows.y, rows.Z @ self.beta)[0])

    def working_problem(self):
        rows = self.rows
        curvature = self.loss.derivatives(rows.y, rows.Z @ self.beta)[1]
        gram = rows.Z.T @ ((rows.cost * curvature)[:, None] * rows.Z)
        return NormalEquations(gram, gram @ self.beta - self.gradient(), np.nan, len(rows.y))


@pytest.mark.parametrize("name", ["squared_hinge", "log_loss"])
def test_losses_of_additive_svms_are_minimised(name, seed):
    """The gradient vanishes."""
    rng = np.random.default_rng(seed)
    Z = np.column_stack([rng.normal(size=(400, 8)), np.ones(400)])
    y = Z @ rng.normal(size=9) + rng.normal(size=400)
    loss = make_loss(name, y)
    rows = MatrixRows(Z, np.sign(y), rng.random(400) + 0.1)
    objective = Objective(rows, loss, np.append(np.ones(8), 0.0))
    start = objective.evaluate(np.zeros(9))
    result = minimise(objective, start)
    assert result.converged
    assert objective.value(result.point) < objective.value(start)
    # Newton's decrement bounds what is left to gain: below the tolerance, 1e-10 of the objective.
    hessian = result.problem.gram + np.diag(objective.penalty)
    gradient = objective.gradient(result.point)
    decrement = 0.5 * gradient @ np.linalg.solve(hessian, gradient)
    assert decrement <= 1e-9 * objective.value(result.point)


def test_constraints_hold_at_the_minimum(seed):
    """A non-negative logistic regression: the gradient is zero, or non-negative at the bound."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(500, 5))
    y = np.where(rng.random(500) < 1 / (1 + np.exp(Z[:, 0] - Z[:, 1])), 1.0, -1.0)
    rows = MatrixRows(Z, y, np.ones(500), constraints=np.eye(5))
    objective = Objective(rows, make_loss("log_loss", y), np.ones(5))
    result = minimise(objective, objective.evaluate(np.zeros(5)))
    beta, gradient = result.point.beta, objective.gradient(result.point)
    assert result.converged
    assert beta.min() > -1e-10
    at_bound = beta < 1e-10
    assert at_bound[0]
    assert not at_bound[1]
    assert gradient[at_bound].min() > 0
    np.testing.assert_allclose(gradient[~at_bound], 0, atol=1e-3)


def test_steps_satisfy_the_secant_equation(seed):
    """For the last step, whatever the steps before it."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 6))
    hessian, memory = root @ root.T + np.eye(6), LbfgsMemory()
    for _ in range(9):
        step = rng.normal(size=6)
        memory.add(step, hessian @ step)
        np.testing.assert_allclose(memory.solve(np.copy, hessian @ step), step, atol=1e-9)
    count = len(memory.steps)
    memory.add(step, -step)  # of negative curvature
    assert len(memory.steps) == count
