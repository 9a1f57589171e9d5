"""Classes by one softmax: the optimum, invariances, tests, bands, and what is kept one by one."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

import kernelmaps as km
from kernelmaps.models.losses import Softmax
from kernelmaps.models.rows.basis import TermBasis
from kernelmaps.models.rows.predictors import Predictors
from kernelmaps.models.rows.term_rows import TermRows
from kernelmaps.models.solvers.pirls import fit_penalised
from kernelmaps.models.solvers.reml import Penalties


def draw_classes(rng, scores):
    """A class for each row, with the probabilities of a softmax."""
    return (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def simulate(seed, n=400):
    """A curve for one class, a line for another, a third column without an effect."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    scores = np.column_stack([1.5 * np.sin(6 * X[:, 0]), 2 * X[:, 1] - 1, np.zeros(n)])
    scores -= scores.mean(axis=1, keepdims=True)
    return X, scores, draw_classes(rng, scores)


@pytest.mark.parametrize("is_separate", [False, True])
def test_fit_is_the_minimum_of_the_penalised_loss(seed, is_separate):
    """SciPy finds the same minimum over the scores of all classes, with the same λ for each."""
    rng, n, n_classes = np.random.default_rng(seed), 300, 4
    codes = rng.integers(0, 12, n).astype(np.uint8)
    values = np.cos(np.pi * np.outer(np.arange(12) / 11, np.arange(1, 6)))
    values -= values[codes].mean(axis=0)
    basis = TermBasis(values, np.arange(1.0, 6.0) ** 2, np.zeros(5, np.int64))
    labels = draw_classes(rng, np.outer(np.sin(codes / 3), rng.normal(size=n_classes)))
    y = np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
    weight, rho = rng.uniform(0.5, 2, n), np.log([3.0])
    loss = Softmax(n_classes=n_classes, is_separate=is_separate)
    predictors = Predictors(loss.n_predictors, True)
    rows = TermRows([codes], [basis], y, weight, np.zeros(n), predictors=predictors)
    fit = fit_penalised(rows, loss, rho, np.array([True]))
    assert fit.converged
    Z = np.hstack([np.ones((n, 1)), values[codes]])
    penalty = Penalties.from_bases([basis]).diagonal(rho)[:, None]

    def objective(flat):
        beta = flat.reshape(-1, n_classes)
        log_p = log_softmax(Z @ beta, axis=1)
        gradient = Z.T @ (weight[:, None] * (np.exp(log_p) - (y > 0))) + penalty * beta
        value = -weight @ log_p[np.arange(n), labels] + 0.5 * np.sum(penalty * beta**2)
        return value, gradient.ravel()

    start = np.zeros(Z.shape[1] * n_classes)
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    best = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    assert fit.objective == pytest.approx(best.fun, rel=1e-8)
    scores = Z @ (fit.beta.reshape(-1, loss.n_predictors) @ loss.coding.T)
    expected = log_softmax(Z @ best.x.reshape(-1, n_classes), axis=1)
    np.testing.assert_allclose(log_softmax(scores, axis=1), expected, atol=1e-4)


def test_derivatives_are_those_of_the_loss(seed):
    rng = np.random.default_rng(seed)
    loss = Softmax(n_classes=4)
    y = np.where(np.eye(4)[rng.integers(0, 4, 9)] > 0, 1.0, -1.0)
    eta, step = rng.normal(size=(9, 3)), 1e-5
    np.testing.assert_allclose(loss.coding.T @ loss.coding, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(loss.coding.sum(axis=0), 0, atol=1e-15)
    gradient, hessian = loss.derivatives(y, eta)[0], loss.hessian(y, eta)
    for a in range(3):
        moved = [eta + sign * step * np.eye(3)[a] for sign in (1, -1)]
        values, gradients = ([f(y, at) for at in moved] for f in (
            loss.value, lambda y, at: loss.derivatives(y, at)[0]))  # fmt: skip
        slope = (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(slope, gradient[:, a], atol=1e-8)
        bend = (gradients[0] - gradients[1]) / (2 * step)
        for b in range(a, 3):
            np.testing.assert_allclose(bend[:, b], hessian[a, b], atol=1e-8)


def test_order_of_the_classes_changes_nothing(seed):
    """Contrasts of another order are a rotation, which neither penalties nor REML see."""
    X, _, y = simulate(seed)
    model = km.AdditiveClassifier().fit(X, y)
    order = np.array([2, 0, 1])
    other = km.AdditiveClassifier().fit(X, order[y])
    np.testing.assert_allclose(other.predict_proba(X)[:, order], model.predict_proba(X), atol=1e-6)
    assert other.reml_ == pytest.approx(model.reml_, rel=1e-6)
    p = [m.summary().to_frame().set_index("term").p_value for m in (model, other)]
    pd.testing.assert_series_equal(p[0], p[1], rtol=1e-3)
    _, errors = model.decision_function(X, return_std=True)
    _, other_errors = other.decision_function(X, return_std=True)
    np.testing.assert_allclose(other_errors[:, order], errors, rtol=1e-3)


def test_mean_probabilities_are_the_shares_of_the_classes(seed):
    """The intercepts have no penalty: derivatives by them are Σ_i p_ik − n_k = 0."""
    X, _, y = simulate(seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(y))
    model = km.AdditiveClassifier(weights="frequency").fit(X, y, weight)
    shares = np.bincount(y, weight) / weight.sum()
    mean = np.average(model.predict_proba(X), axis=0, weights=weight)
    np.testing.assert_allclose(mean, shares, atol=1e-5)
    np.testing.assert_allclose(model.decision_function(X).sum(axis=1), 0, atol=1e-9)
    log_p = np.log(model.predict_proba(X)[np.arange(len(y)), y])
    assert model.log_likelihood_ == pytest.approx(weight @ log_p, rel=1e-9)
    null = -2 * np.bincount(y, weight) @ np.log(shares)
    assert model.null_deviance_ == pytest.approx(null, rel=1e-9)
    repeated = km.AdditiveClassifier().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(repeated.predict_proba(X), model.predict_proba(X), atol=2e-3)


def test_classes_one_by_one_in_large_systems_are_nearly_the_same(seed, monkeypatch):
    """Without the blocks between classes, smoothing parameters and errors change by little."""
    X, _, y = simulate(seed)
    model = km.AdditiveClassifier().fit(X, y)
    monkeypatch.setattr("kernelmaps.models.losses.MAX_JOINT_COEFFICIENTS", 0)
    separate = km.AdditiveClassifier().fit(X, y)
    difference = separate.predict_proba(X) - model.predict_proba(X)
    errors = model.decision_function(X, return_std=True)[1]
    assert np.sqrt(np.mean(difference**2)) < 0.5 * 0.25 * errors.mean()  # |∂p/∂s| ≤ 1/4
    other_errors = separate.decision_function(X, return_std=True)[1]
    np.testing.assert_allclose(other_errors.mean(), errors.mean(), rtol=0.4)


def test_draws_sum_to_zero_and_have_the_standard_errors(seed):
    X, _, y = simulate(seed)
    model = km.AdditiveClassifier().fit(X, y)
    draws = model._score_draws(X[:5], 4000, 0)
    np.testing.assert_allclose(draws.sum(axis=2), 0, atol=1e-4)
    _, errors = model.decision_function(X[:5], return_std=True)
    # A standard deviation of 4000 draws has a relative error of 1/√8000.
    np.testing.assert_allclose(draws.std(axis=0), errors, rtol=6 / np.sqrt(8000))


def test_tests_and_bands_have_their_level():
    """Of 12 tables: at most 3 null rejections at 5 % (chance of more: 0.2 %), bands cover."""
    rejected, covered = 0, []
    for seed in range(12):
        X, scores, y = simulate(seed)
        model = km.AdditiveClassifier().fit(X, y)
        found, errors = model.decision_function(X, return_std=True)
        covered.append(np.mean(np.abs(found - scores) < 1.96 * errors))
        p_values = model.summary().to_frame().set_index("term").p_value
        rejected += p_values["x2"] < 0.05
        assert p_values["x0"] < 0.01
    assert rejected <= 3
    assert 0.90 <= np.mean(covered) <= 0.98


def test_one_row_of_the_summary_for_each_term(seed):
    X, _, y = simulate(seed)
    model = km.AdditiveClassifier().fit(X, y)
    assert model.loss_ == km.losses.Multinomial()
    frame = model.summary().to_frame()
    assert sorted(frame.term) == ["x0", "x1", "x2"]
    assert "class" not in frame
    # Two intercepts of contrasts are the other degrees of freedom.
    assert frame.edf.sum() + 2 == pytest.approx(model.edf_.sum(), rel=1e-9)
    smaller = km.AdditiveClassifier(terms=["x0", "x1"]).fit(X, y)
    table = km.anova(smaller, model).to_frame()
    assert 0 < table.p_value[1] <= 1
    assert table.df[1] >= 2


def test_constraints_keep_one_class_against_the_others(seed):
    """Scores that sum to zero cannot all increase."""
    X, _, y = simulate(seed)
    model = km.AdditiveClassifier(constraints={"x0": "increasing"}).fit(X, y)
    assert model.loss_ == km.losses.LogLoss()


def test_large_factor_of_three_classes(seed):
    """Levels are eliminated one class at a time; their effects are found."""
    rng, n_levels = np.random.default_rng(seed), 300
    level = rng.integers(0, n_levels, 6000)
    effects = rng.normal(size=(n_levels, 3))
    effects -= effects.mean(axis=1, keepdims=True)
    y = draw_classes(rng, effects[level])
    names = np.array([f"site {k}" for k in range(n_levels)])
    frame = pd.DataFrame({"site": names[level]})
    model = km.AdditiveClassifier().fit(frame, y)
    found = model.decision_function(pd.DataFrame({"site": names}))
    assert np.corrcoef(found.ravel(), effects.ravel())[0, 1] > 0.85
    assert model.summary().to_frame().p_value[0] < 1e-10


def test_two_classes_are_logistic_regression(seed):
    X, _, y = simulate(seed)
    models = [
        km.AdditiveClassifier(loss=loss).fit(X, y > 0) for loss in ("log_loss", "multinomial")
    ]
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


def test_the_intercept_of_each_class_is_named(seed):
    X, _, y = simulate(seed)
    facts = km.AdditiveClassifier().fit(X, np.array(["u", "v", "w"])[y]).summary().facts
    assert [part.split()[0] for part in facts["intercept"].split(", ")] == ["u", "v", "w"]
