"""Rows as a model matrix have its sums."""

import numpy as np

from kernelmaps.models.losses import make_loss
from kernelmaps.models.rows.matrix import MatrixRows


def test_sums_are_those_of_the_matrix(seed):
    rng = np.random.default_rng(seed)
    Z, y, cost = rng.normal(size=(40, 3)), np.sign(rng.normal(size=40)), rng.random(40)
    rows, loss = MatrixRows(Z, y, cost), make_loss("squared_hinge", y)
    point = rows.at(loss, rng.normal(size=3))
    problem, f = point.working_problem(), Z @ point.beta
    slope, curvature = loss.derivatives(y, f)
    np.testing.assert_allclose(point.value, cost @ np.maximum(0, 1 - y * f) ** 2)
    np.testing.assert_allclose(point.gradient(), Z.T @ (cost * slope))
    np.testing.assert_allclose(problem.gram, Z.T @ ((cost * curvature)[:, None] * Z))
    # The minimum of the working problem is where a Newton step goes.
    np.testing.assert_allclose(problem.gram @ point.beta - problem.rhs, point.gradient())
