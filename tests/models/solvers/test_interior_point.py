"""Sums of hinges are minimised to a certified gap, in few steps whatever the costs."""

from dataclasses import dataclass

import numpy as np
import pytest
from loss_of_targets import make_loss
from sklearn.svm import SVC, SVR

from kernelmaps.models.solvers.interior_point import InteriorPointFit, best_constant

EPSILON = 0.2


@dataclass(frozen=True)
class MatrixRows:
    """Rows of a matrix, as the method sees rows."""

    Z: np.ndarray

    @property
    def n_weights(self):
        return self.Z.shape[1]

    @property
    def entries_per_row(self):
        return self.n_weights

    @property
    def gram_cost(self):
        return self.n_weights**2 / 32

    def scores(self, w):
        return self.Z @ w

    def adjoint(self, values):
        return self.Z.T @ values

    def product(self, weight, w, shift=0.0):
        return self.Z.T @ (weight * (self.Z @ w - shift))

    def blocks(self, weight):
        return (self.Z.T**2 @ weight)[:, None, None]

    def gram(self, weight):
        return self.Z.T @ (weight[:, None] * self.Z)


def problem(seed, loss="hinge", n=120, d=6):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) * 2.0 ** rng.integers(-2, 3, d)
    y = Z[:, 0] + np.sin(3 * Z[:, 1]) + 0.4 + rng.normal(size=n)
    cost = rng.uniform(0.2, 2.0, n)
    return Z, np.sign(y) if loss == "hinge" else y, cost


def fitted(Z, y, cost, loss="hinge", fit_intercept=True, tol=1e-8, start=None):
    kind = make_loss(loss, y, epsilon=EPSILON)
    fit = InteriorPointFit(MatrixRows(Z), kind, y, cost, fit_intercept, tol)
    if start is not None:
        fit.start_from(*start)
    primal, gap, alpha = fit.minimise()
    assert primal == fit.value()
    return fit, primal, gap, alpha


def objective(Z, y, cost, loss, w, b):
    f = Z @ w + b
    losses = 1 - y * f if loss == "hinge" else np.abs(y - f) - EPSILON
    return 0.5 * w @ w + cost @ np.maximum(losses, 0)


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("factor", [1e-3, 1.0, 30.0])
def test_the_minimum_is_that_of_libsvm(seed, loss, factor):
    Z, y, cost = problem(seed, loss)
    cost = factor * cost
    fit, primal, gap, alpha = fitted(Z, y, cost, loss)
    exact = SVC(kernel="linear", C=1.0)
    if loss != "hinge":
        exact = SVR(kernel="linear", C=1.0, epsilon=EPSILON)
    exact.fit(Z, y, sample_weight=cost)
    least = objective(Z, y, cost, loss, exact.coef_[0], exact.intercept_[0])
    # libsvm ends where no gradient of the dual is wrong by more than 1e-3: its gap is at most that
    # times the sum of the costs. Smaller tolerances may take it minutes.
    assert least - 1e-3 * cost.sum() <= primal <= least * (1 + 1e-8)
    assert 0 <= gap <= 1e-8 * primal
    w, b = fit.point.weights, fit.point.intercept
    assert primal == pytest.approx(objective(Z, y, cost, loss, w, b), rel=1e-12)
    # Feasible, and P − D: nothing of the certificate is taken on trust.
    assert (np.abs(alpha) <= cost * (1 + 1e-12)).all()
    assert abs(alpha.sum()) <= 1e-12 * np.abs(alpha).sum()
    conjugate = make_loss(loss, y, epsilon=EPSILON).dual_rules.conjugate(y, alpha, cost, EPSILON)
    dual = -0.5 * np.sum((Z.T @ alpha) ** 2) - conjugate.sum()
    assert dual >= primal - gap - 1e-12 * primal


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_the_certificate_never_gets_worse(seed, loss, monkeypatch):
    records, step = [], InteriorPointFit._step

    def recorded(fit, point):
        records.append((fit.primal, fit.dual))
        return step(fit, point)

    monkeypatch.setattr(InteriorPointFit, "_step", recorded)
    fit, primal, gap, _ = fitted(*problem(seed, loss), loss)
    values = np.array([*records, (primal, primal - gap)])
    assert len(records) == fit.n_iter > 4
    assert (np.diff(values[:, 0]) <= 0).all()
    assert (np.diff(values[:-1, 1]) >= 0).all()
    # Bounds of one minimum, all of them; rounded duals may give some of the tolerance away.
    assert values[:, 1].max() <= values[:, 0].min() * (1 + 1e-12)
    assert gap <= 1e-8 * primal


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_few_steps_whatever_the_costs(seed, loss, factor):
    Z, y, cost = problem(seed, loss, n=500)
    fit, primal, gap, _ = fitted(Z, y, factor * cost, loss, tol=1e-3)
    assert gap <= 1e-3 * primal
    assert fit.n_iter <= 20


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_rows_count_as_often_as_their_cost(seed, loss):
    Z, y, cost = problem(seed, loss)
    _, once, _, _ = fitted(Z, y, 2 * cost, loss)
    _, twice, _, _ = fitted(np.vstack([Z, Z]), np.tile(y, 2), np.tile(cost, 2), loss)
    assert twice == pytest.approx(once, rel=1e-7)


def test_units_of_columns_and_targets_do_not_matter(seed):
    """P(w; kZ, c/k²) = P(kw; Z, c)/k², and targets in other units are the same problem."""
    Z, y, cost = problem(seed)
    _, primal, _, _ = fitted(Z, y, cost)
    _, scaled, _, _ = fitted(1000 * Z, y, cost / 1e6)
    assert 1e6 * scaled == pytest.approx(primal, rel=1e-7)
    Z, y, cost = problem(seed, "epsilon_insensitive")
    kind = make_loss("epsilon_insensitive", y, epsilon=1000 * EPSILON)
    fits = [
        fitted(Z, y, cost, "epsilon_insensitive")[0],
        InteriorPointFit(MatrixRows(Z), kind, 1000 * y, 1000 * cost, True, 1e-8),
    ]
    fits[1].minimise()
    assert fits[1].value() == pytest.approx(1e6 * fits[0].value(), rel=1e-7)
    assert fits[1].n_iter == fits[0].n_iter


def test_targets_that_an_intercept_explains_need_no_step(seed):
    Z, y, cost = problem(seed)
    for labels in (np.ones_like(y), -np.ones_like(y)):
        fit, primal, gap, alpha = fitted(Z, labels, cost)
        assert (primal, gap, fit.n_iter) == (0.0, 0.0, 0)
        assert fit.point.intercept == labels[0]
        assert not alpha.any()


def test_the_steps_of_many_weights_need_no_factor(seed, monkeypatch):
    """Conjugate gradients alone, where the Hessian is not formed."""
    from kernelmaps.models.solvers import newton_cg

    monkeypatch.setattr(newton_cg, "MOST_FACTORISED", 0)
    monkeypatch.setattr(MatrixRows, "gram", None)
    Z, y, cost = problem(seed, n=60, d=200)
    _, primal, gap, _ = fitted(Z, y, cost, tol=1e-4)
    assert gap <= 1e-4 * primal


def test_the_best_constant_is_that_of_a_search(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        shape = (int(rng.integers(1, 3)), int(rng.integers(1, 9)))
        sign, margin = rng.choice([-1.0, 1.0], shape), rng.normal(size=shape)
        cost = rng.integers(1, 4, shape[1]).astype(float)

        def value(b, parts=(sign, margin, cost)):
            return np.sum(parts[2] * np.maximum(parts[1] - parts[0] * b, 0))

        least = min(value(b) for b in (sign * margin).ravel())
        assert value(best_constant(sign, margin, cost)) == pytest.approx(least, abs=1e-12)
