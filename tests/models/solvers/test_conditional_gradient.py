"""Conditional gradient steps: exact vertices, certified gaps, an early end if they are slow."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linprog

from kernelmaps.models.losses import make_loss
from kernelmaps.models.solvers.conditional_gradient import (
    balanced,
    bounded_duals,
    conditional_gradient,
    steepest_vertex,
)
from kernelmaps.models.solvers.interior_point import InteriorPointFit

from .test_interior_point import MatrixRows, problem

EPSILON = 0.2
LOSSES = ("hinge", "epsilon_insensitive")


def hinges(loss, y):
    return make_loss(loss, y, epsilon=EPSILON).hinges(y)


@dataclass(frozen=True)
class CountedRows:
    """Rows of a matrix that count their products."""

    Z: np.ndarray
    products: list

    def scores(self, w):
        self.products.append("scores")
        return self.Z @ w

    def adjoint(self, values):
        self.products.append("adjoint")
        return self.Z.T @ values


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_vertex_maximises_a_linear_function(seed, loss, fit_intercept):
    """Its value is that of a linear program, and, by duality, the loss of the best intercept."""
    _, y, cost = problem(seed, loss, n=25)
    sign, margin = hinges(loss, y)
    unmet = margin - sign * np.random.default_rng(seed).normal(size=len(y))
    vertex, intercept = steepest_vertex(sign, unmet, cost, fit_intercept)
    assert np.all((vertex >= 0) & (vertex <= cost))
    bounds = [(0, c) for c in np.broadcast_to(cost, sign.shape).ravel()]
    balance = {"A_eq": sign.reshape(1, -1), "b_eq": [0.0]} if fit_intercept else {}
    exact = linprog(-unmet.ravel(), bounds=bounds, **balance)
    assert np.vdot(unmet, vertex) == pytest.approx(-exact.fun)
    assert np.sum(cost * np.maximum(unmet - sign * intercept, 0)) == pytest.approx(-exact.fun)
    if fit_intercept:
        assert np.sum(sign * vertex) == pytest.approx(0, abs=1e-12 * cost.sum())
    else:
        assert intercept == 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_gap_is_a_certificate(seed, loss, fit_intercept):
    """The minimum lies between dual and primal values; α is feasible and gives the weights."""
    Z, y, cost = problem(seed, loss)
    cost = 0.01 * cost
    sign, margin = hinges(loss, y)
    fit = conditional_gradient(MatrixRows(Z), (sign, margin), cost, fit_intercept, 1e-9, 3)
    exact = InteriorPointFit(
        MatrixRows(Z), make_loss(loss, y, epsilon=EPSILON), y, cost, fit_intercept, 1e-10
    ).minimise()[0]
    assert fit.primal - fit.gap <= exact * (1 + 1e-9)
    assert fit.primal >= exact * (1 - 1e-9)
    losses = np.maximum(margin - sign * (Z @ fit.weights + fit.intercept), 0)
    assert fit.primal == pytest.approx(0.5 * fit.weights @ fit.weights + np.sum(cost * losses))
    np.testing.assert_allclose(fit.weights, Z.T @ fit.alpha, atol=1e-12)
    assert np.all(np.abs(fit.alpha) <= cost * (1 + 1e-12))
    if fit_intercept:
        assert fit.alpha.sum() == pytest.approx(0, abs=1e-12 * cost.sum())


@pytest.mark.parametrize("loss", LOSSES)
def test_small_costs_take_few_steps_of_two_products(seed, loss):
    """As costs shrink, all dual variables of classes go to their bounds."""
    Z, y, cost = problem(seed, loss)
    rows = CountedRows(Z, [])
    fit = conditional_gradient(rows, hinges(loss, y), 1e-4 * cost, True, 1e-3, 20)
    assert fit.gap <= 1e-3 * fit.primal
    assert fit.n_steps <= 4
    assert rows.products == ["adjoint", "scores"] * (1 + fit.n_steps)


def test_slow_steps_end_early(seed):
    """Large costs: the gap shrinks as one over the steps."""
    Z, y, cost = problem(seed)
    fit = conditional_gradient(MatrixRows(Z), hinges("hinge", y), 10 * cost, True, 1e-6, 1000)
    assert fit.gap > 1e-6 * fit.primal
    assert fit.n_steps < 100


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_never_lower_the_dual(seed, loss):
    Z, y, cost = problem(seed, loss)
    values = []
    for steps in range(4):
        fit = conditional_gradient(MatrixRows(Z), hinges(loss, y), 0.1 * cost, True, 1e-12, steps)
        values.append(fit.primal - fit.gap)
    assert np.all(np.diff(values) >= -1e-12 * abs(values[0]))
    assert values[-1] > values[0]


def test_first_duals_are_at_their_bounds_for_the_smaller_class(seed):
    _, y, _ = problem(seed)
    cost = np.ones(len(y))
    dual = bounded_duals(*hinges("hinge", y), cost, True)[0]
    smaller = -1 if np.sum(y > 0) > len(y) / 2 else 1
    np.testing.assert_allclose(dual[y == smaller], 1)
    np.testing.assert_allclose(dual[y != smaller], np.sum(y == smaller) / np.sum(y != smaller))
    assert balanced(y * dual).sum() == pytest.approx(0, abs=1e-9)
