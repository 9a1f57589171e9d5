"""Predictions for levels that training rows do not have: new draws from that of the levels."""

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km


def layout(rng, n_levels, n_each, sd=1.0):
    """Rows of levels of as many rows each, with normal effects of the levels."""
    code = np.repeat(np.arange(n_levels), n_each)
    y = sd * rng.normal(size=n_levels)[code] + rng.normal(size=len(code))
    return pd.DataFrame({"site": [f"s{k}" for k in code]}), y


def variance_components(y, n_levels, n_each):
    """Of the rows and of the levels, by the analysis of variance, which REML is here."""
    groups = y.reshape(n_levels, n_each)
    within = groups.var(axis=1, ddof=1).mean()
    return within, groups.mean(axis=1).var(ddof=1) - within / n_each


@pytest.mark.parametrize("n_levels", [20, 300])  # few levels, and those of a large factor
def test_the_error_of_a_new_level_is_that_of_the_one_way_layout(n_levels, seed):
    """τ² + τ²/m + σ²/n: its effect, and the error of the mean of the m levels as that of all.

    τ² has a factor ν/(ν − 2) of a t distribution, with ν = (m − 1)κ² for a share κ of the effects
    that shrinkage leaves.
    """
    X, y = layout(np.random.default_rng(seed), n_levels, 8)
    model = km.AdditiveRegressor().fit(X, y)
    within, between = variance_components(y, n_levels, 8)
    df = (n_levels - 1) * (8 * between / (8 * between + within)) ** 2
    expected = np.sqrt(between * df / (df - 2) * (1 + 1 / n_levels) + within / len(y))
    new = pd.DataFrame({"site": ["new", "newer", None, "s0"]})
    prediction, errors = model.predict(new, return_std=True)
    np.testing.assert_allclose(prediction[:3], y.mean(), atol=1e-3)
    # The prior of smoothing parameters takes a per cent or two off the variance of 20 levels.
    np.testing.assert_allclose(errors[:3], expected, rtol=0.03)
    assert errors[3] < 0.5
    draws = model.posterior_draws(new, 4000, random_state=seed)
    np.testing.assert_allclose(draws.std(axis=0), errors, rtol=5 / np.sqrt(8000))
    # The display has the same: an effect and the intercept, which both errors have.
    np.testing.assert_allclose(model.explain(new[:1]).errors, errors[:1], rtol=0.01)


@pytest.mark.parametrize(("n_levels", "n_each"), [(20, 40), (300, 8)])
def test_levels_that_share_a_code_differ_from_their_mean(n_levels, n_each, seed):
    """Levels of one row have one effect; each of them varies around it as the levels do."""
    rng = np.random.default_rng(seed)
    X, y = layout(rng, n_levels, n_each)
    rare = pd.DataFrame({"site": [f"r{k}" for k in range(200)]})
    X, y = pd.concat([X, rare]), np.append(y, 2 + rng.normal(size=200) + rng.normal(size=200))
    model = km.AdditiveRegressor().fit(X, y)
    prediction, errors = model.predict(rare[:1], return_std=True)
    assert prediction[0] == pytest.approx(2, abs=0.5)
    # Their mean has an error of √(2/200); the 200 rows vary by 2, not by 1 as the others.
    assert errors[0] == pytest.approx(np.sqrt(model.predictor_.terms[0].values[2:].var()), rel=0.4)
    leverage = model.check(X, y).leverage
    assert leverage.sum() == pytest.approx(model.edf_[0], rel=0.05)


@pytest.mark.parametrize("linear", [True, False])
def test_new_levels_have_slopes_and_curves_of_their_own(linear, seed):
    """95 % intervals cover means of new sites, whose slopes or curves have not been seen."""
    rng, covered, without = np.random.default_rng(seed), [], []

    def rows(n_levels, n_each):
        code, x = np.repeat(np.arange(n_levels), n_each), rng.random(n_levels * n_each)
        waves = np.cos(np.pi * np.arange(1, 5)[:, None] * x) / 2
        functions = np.stack([0.3 + 0 * x, *(2 * (x - 0.5)[None] if linear else waves)])
        mean = np.sum(rng.normal(size=(len(functions), n_levels))[:, code] * functions, axis=0)
        return pd.DataFrame({"x": x, "site": [f"s{k}" for k in code]}), mean

    for _ in range(6 if linear else 3):
        X, mean = rows(40, 30)
        pair = ("site", km.Term("x", "linear") if linear else "x")
        model = km.AdditiveRegressor(terms=["x", "site", pair], n_jobs=1)
        model.fit(X, mean + 0.3 * rng.normal(size=len(X)))
        new, truth = rows(300, 1)
        new["site"] = "new"
        prediction, errors = model.predict(new, return_std=True)
        covered.append(np.mean(np.abs(prediction - truth) < 1.96 * errors))
        columns = model._columns(new)
        ends = new["x"].to_numpy() < 0.15
        spread = errors[ends].mean() / errors[np.abs(new["x"] - 0.5) < 0.1].mean()
        without.append(model.predictor_.score_errors(columns, as_fitted=True).max())
        assert not linear or spread > 1.1  # a slope adds most at the ends
    # Variances of 40 effects and slopes vary by √(2/40); means of 6 fits of 300 rows by .015, of
    # 3 by .021. Curves vary more at the ends of x than their prior says, which costs some per cent;
    # without their variance, intervals cover .6.
    assert np.mean(covered) == pytest.approx(0.95, abs=0.04 if linear else 0.08)
    assert max(without) < 0.6


def test_a_factor_without_an_effect_adds_nothing(seed):
    rng = np.random.default_rng(seed)
    X, y = layout(rng, 10, 40, sd=0.0)
    X["x"] = rng.random(len(X))
    new = pd.DataFrame({"site": ["new", "s0"], "x": 0.5})
    _, errors = km.AdditiveRegressor(smoothing={"site": 1e9}).fit(X, y).predict(new, True)
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)


def test_the_model_matrix_has_new_levels(seed, tmp_path):
    """Errors are those of the coefficients of `covariance_`, also of a saved model."""
    rng = np.random.default_rng(seed)
    X, y = layout(rng, 12, 20)
    X["x"] = rng.random(len(X))
    labels = y + X["x"] > 0.5
    rows = pd.DataFrame({"site": ["new", "s1", None], "x": 0.3})
    model = km.AdditiveClassifier().fit(X, labels)
    _, errors = model.decision_function(rows, return_std=True)
    Z = model.model_matrix(rows)
    np.testing.assert_allclose(errors**2, np.sum((Z @ model.covariance_) * Z, axis=1), rtol=1e-5)
    assert errors[0] > 1.5 * errors[1]
    km.save(model, tmp_path / "model.kmap")
    loaded = km.load(tmp_path / "model.kmap")
    np.testing.assert_array_equal(loaded.decision_function(rows, return_std=True)[1], errors)
