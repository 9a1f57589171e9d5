"""Checks of a fitted model: residuals, basis dimensions, concurvity, influential rows."""

import re

import numpy as np
import pandas as pd
import pytest
from loss_of_targets import make_loss
from scipy import stats

import kernelmaps as km


def lines(seed, n=150):
    """A linear model of columns with few values, hardly penalised, and its design matrix."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (n, 2)).astype(float)
    y = X @ [0.5, -0.3] + rng.normal(size=n)
    options = {"terms": {0: "linear", 1: "linear"}, "smoothing": 1e-8, "n_jobs": 1}
    return X, y, km.AdditiveRegressor(**options), np.column_stack([np.ones(n), X])


def test_leverages_are_the_diagonal_of_the_hat_matrix(seed):
    X, y, model, Z = lines(seed)
    hat = Z @ np.linalg.solve(Z.T @ Z, Z.T)
    check = model.fit(X, y).check(X, y)
    np.testing.assert_allclose(check.leverage, hat.diagonal(), rtol=1e-4)
    np.testing.assert_allclose(check.deviance_residuals, y - hat @ y, atol=1e-5)


def test_cooks_distances_are_those_of_fits_without_a_row(seed):
    X, y, model, Z = lines(seed)
    check = model.fit(X, y).check(X, y)
    beta = np.linalg.lstsq(Z, y, rcond=None)[0]
    for row in (*check.influential(2), 0):
        left = np.arange(len(y)) != row
        moved = Z @ (beta - np.linalg.lstsq(Z[left], y[left], rcond=None)[0])
        exact = moved @ moved / (3 * model.dispersion_[0])
        assert check.cooks_distance[row] == pytest.approx(exact, rel=1e-3)


def wave(seed, n=600):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.random(n), "b": rng.random(n)})
    return rng, X, (np.sin(6 * X["a"]) + X["b"]).to_numpy()


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "log_loss"])
def test_quantile_residuals_of_the_right_model_are_normal(seed, loss):
    rng, X, eta = wave(seed)
    y = {
        "squared_error": eta + rng.normal(size=len(eta)),
        "poisson": rng.poisson(np.exp(eta)),
        "gamma": rng.gamma(2.0, np.exp(eta) / 2),
        "log_loss": rng.random(len(eta)) < 1 / (1 + np.exp(-eta)),
    }[loss]
    estimator = km.AdditiveClassifier if loss == "log_loss" else km.AdditiveRegressor
    check = estimator(loss, n_jobs=1).fit(X, y).check(X, y, random_state=seed)
    assert stats.kstest(check.quantile_residuals, "norm").pvalue > 1e-3
    theoretical, observed = check.qq()
    assert np.corrcoef(theoretical, observed)[0, 1] > 0.99
    assert (np.diff(observed) >= 0).all()


def test_residuals_show_the_wrong_distribution(seed):
    rng, X, eta = wave(seed)
    y = np.exp(eta + rng.normal(size=len(eta)))
    check = km.AdditiveRegressor().fit(X, y).check(X, y)
    assert stats.kstest(check.quantile_residuals, "norm").pvalue < 1e-6
    assert any("quantile residual" in finding for finding in check.findings)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "log_loss"])
def test_squared_deviance_residuals_sum_to_the_deviance(seed, loss):
    rng = np.random.default_rng(seed)
    eta = rng.normal(size=50)
    y = np.where(eta > 0, 1.0, -1.0) if loss == "log_loss" else rng.gamma(1.0, size=50)
    residuals = make_loss(loss, y).deviance_residuals(y, eta)
    mean = eta if loss == "squared_error" else np.exp(eta)
    deviance = {
        "squared_error": lambda: (y - mean) ** 2,
        "poisson": lambda: 2 * (y * np.log(y / mean) - y + mean),
        "gamma": lambda: 2 * (y / mean - 1 - np.log(y / mean)),
        "log_loss": lambda: 2 * np.log1p(np.exp(-y * eta)),
    }[loss]()
    np.testing.assert_allclose(residuals**2, deviance, atol=1e-9)
    above = y > 0 if loss == "log_loss" else y > mean
    assert (residuals[above] > 0).all()
    assert (residuals[~above] < 0).all()


def test_a_basis_that_is_too_small_is_found(seed):
    rng, X, eta = wave(seed)
    y = np.sin(40 * X["a"]) + 0.3 * rng.normal(size=len(eta))
    small = km.AdditiveRegressor(terms={"a": km.Term("a", n_bases=5)}).fit(X, y).check(X, y)
    large = km.AdditiveRegressor(terms={"a": km.Term("a", n_bases=40)}).fit(X, y).check(X, y)
    assert small.basis[0]["k_index"] < 0.5 < 0.85 < large.basis[0]["k_index"] < 1.15
    assert small.basis[0]["functions"] == 4  # 5 splines without the constant
    assert any(finding.startswith("a: residuals of neighbouring") for finding in small.findings)
    assert not any(finding.startswith("b:") for finding in small.findings + large.findings)


def test_p_values_of_basis_checks_are_uniform_for_enough_functions():
    p_values = []
    for seed in range(25):
        rng, X, eta = wave(seed, 200)
        y = X["b"] + rng.normal(size=len(eta))
        check = km.AdditiveRegressor(terms=["b"], n_jobs=1).fit(X, y).check(X, y)
        p_values += [item["p_value"] for item in check.basis]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_concurvity_of_lines_is_their_squared_correlation(seed):
    X, y, model, _ = lines(seed)
    X[:, 1] = np.clip(X[:, 0] + X[:, 1] // 3, 0, 9)
    check = model.fit(X, y).check(X, y)
    exact = np.corrcoef(X.T)[0, 1] ** 2
    for item in check.concurvity:
        assert item["estimate"] == pytest.approx(exact, rel=1e-3)
        assert item["worst"] == pytest.approx(exact, rel=1e-3)


def test_rows_that_lack_rare_levels_have_a_concurvity(seed):
    """Functions of levels that these rows lack are large, and do not vary over them."""
    rng, X, eta = wave(seed)
    X["level"] = rng.choice(["u", "v", "w"], len(eta), p=[0.7, 0.29, 0.01])
    X.loc[:2, "level"] = "rare"
    y = eta + (X["level"] == "v") - (X["level"] == "rare") + 0.3 * rng.normal(size=len(eta))
    model = km.AdditiveRegressor().fit(X, y)
    some = X["level"].isin(["u", "v"]).to_numpy()
    shares = {item["term"]: item["worst"] for item in model.check(X[some], y[some]).concurvity}
    assert len(shares) == 3
    assert shares["level"] < 0.5


def test_weights_and_exposures_are_those_of_the_fit(seed):
    rng, X, eta = wave(seed, 300)
    exposure = rng.uniform(0.2, 5.0, len(eta))
    y = rng.poisson(exposure * np.exp(eta))
    model = km.AdditiveRegressor("poisson").fit(X, y, exposure=exposure)
    check = model.check(X, y, exposure=exposure)
    np.testing.assert_allclose(np.exp(check.fitted), model.predict(X, exposure=exposure))
    weighted = km.AdditiveRegressor().fit(X, eta + rng.normal(size=300), 7 * np.ones(300))
    checks = [weighted.check(X, eta, w) for w in (None, 7 * np.ones(300))]
    np.testing.assert_allclose(checks[0].leverage, checks[1].leverage)
    # Leverages sum to the degrees of freedom, and those of the smoothing parameters.
    assert checks[0].leverage.sum() == pytest.approx(weighted._corrected_edf, rel=0.05)


def test_quantiles_and_classes_are_checked(seed):
    rng, X, eta = wave(seed, 300)
    y = eta + rng.normal(size=300)
    check = km.AdditiveRegressor(km.losses.Quantile(0.8)).fit(X, y).check(X, y)
    assert check.quantile_residuals is None
    share = float(check.residual_facts().split(" %")[0])
    assert share == pytest.approx(80, abs=3)
    assert check.qq()[1].std() == pytest.approx(1.0)
    labels = np.array(["u", "v", "w"])[np.digitize(y, [0, 1])]
    model = km.AdditiveClassifier().fit(X, labels)
    of_w = model.check(X, labels, output=2)
    assert (of_w.deviance_residuals[labels == "w"] > 0).all()
    with pytest.raises(ValueError, match="output must be 0 … 2, got 3"):
        model.check(X, labels, output=3)
    with pytest.raises(ValueError, match="y holds z, a class that the model was not fitted on"):
        model.check(X, np.full(300, "z"))


def test_a_log_link_is_advised_where_effects_are_factors(seed):
    rng = np.random.default_rng(seed)
    X, noise = rng.random((400, 2)), rng.normal(size=400)
    sums, factors = 9 + 3 * X[:, 0] + noise, np.exp(3 * X[:, 0] + 0.4 * noise)
    tables = {
        "sums": sums, "factors": factors, "zeros": np.maximum(factors - 1.0, 0),
        "counts": rng.poisson(factors), "signed": factors - 1.5,
    }  # fmt: skip
    found = {}
    for name, y in tables.items():
        for loss in ("squared_error", "location_scale"):
            words = str(km.AdditiveRegressor(loss).fit(X, y).check(X, y))
            advised = re.findall(r"Try loss='(\w+)'", words)
            if advised:
                found[name, loss] = advised[0]
    assert found == {
        ("factors", "squared_error"): "gamma",
        ("zeros", "squared_error"): "tweedie",
        ("counts", "squared_error"): "poisson",
    }
