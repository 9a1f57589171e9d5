"""Weights of rows: relative by default, frequencies and inverse variances on request."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import kernelmaps as km
from kernelmaps.data import tables


def waves(seed, n=500):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 1))
    return x, np.sin(6 * x[:, 0]), np.sin(6 * x[:, 0]) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("loss", ["squared_error", "gamma", "poisson", "quantile"])
@pytest.mark.parametrize("weight", [1e-3, 20.0])
def test_equal_weights_of_any_size_change_nothing(seed, loss, weight):
    x, _, y = waves(seed)
    y = np.exp(y) if loss in ("gamma", "poisson") else y
    plain = km.AdditiveRegressor(loss).fit(x, y)
    weighted = km.AdditiveRegressor(loss).fit(x, y, np.full(len(y), weight))
    np.testing.assert_allclose(weighted.edf_, plain.edf_)
    np.testing.assert_allclose(weighted.predict(x), plain.predict(x))
    np.testing.assert_allclose(
        weighted.shape_functions_[0].errors, plain.shape_functions_[0].errors
    )


def test_weights_of_random_size_hardly_change_the_smoothness(seed):
    """The effective number of rows is 3/4 of all for uniform weights, whatever their unit."""
    x, _, y = waves(seed)
    weight = np.random.default_rng(seed).random(len(y))
    models = [km.AdditiveRegressor().fit(x, y, k * weight) for k in (1e-3, 1.0, 20.0)]
    edf = np.array([model.edf_[0] for model in models])
    np.testing.assert_allclose(edf, edf[1], rtol=1e-6)
    n_effective = models[0].predictor_.terms[0].counts.sum()
    assert n_effective == pytest.approx(weight.sum() ** 2 / np.sum(weight**2))
    shape = models[0].shape_functions_[0]
    error = shape.values + models[0].intercept_ - np.sin(6 * shape.grid)
    assert np.mean(np.abs(error) < 2 * shape.errors) > 0.8


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "quantile", "absolute_error"])
def test_frequencies_are_repeated_rows(seed, loss):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(200), "c": rng.choice(list("abcd"), 200)})
    y, weight = rng.poisson(np.exp(np.sin(5 * X["x"]))), rng.integers(0, 4, 200)
    model = km.AdditiveRegressor(loss, weights="frequency")
    weighted = clone(model).fit(X, y, weight)
    repeated = clone(model).fit(X.loc[X.index.repeat(weight)], np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)
    np.testing.assert_allclose(weighted.edf_, repeated.edf_, rtol=1e-6)
    relative = clone(model).set_params(weights="relative").fit(X, y, weight)
    assert relative.edf_[0] < weighted.edf_[0]


def test_balanced_classes_do_not_follow_noise(seed):
    """One row in a hundred is positive, and a factor of 40 levels says nothing."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((12000, 2)), columns=["a", "b"])
    X["factor"] = [f"l{k}" for k in rng.integers(0, 40, len(X))]
    odds = -5.2 + 2.5 * X["a"] + np.sin(5 * X["b"])
    y = rng.random(len(X)) < 1 / (1 + np.exp(-odds))
    train = np.arange(len(X)) < 4000
    auc, edf = [], []
    for class_weight in (None, "balanced"):
        model = km.AdditiveClassifier(class_weight=class_weight).fit(X[train], y[train])
        auc.append(roc_auc_score(y[~train], model.decision_function(X[~train])))
        edf.append(model.predictor_.terms[2].edf[0])
    assert auc[1] > auc[0] - 0.01
    assert edf[1] < 20


def test_weights_of_a_stream_are_those_of_memory(tmp_path, seed, monkeypatch):
    """Also if they are whole numbers, which are not taken for frequencies."""
    x, _, y = waves(seed, 600)
    weight = np.random.default_rng(seed).integers(0, 5, 600).astype(float)
    frame = pd.DataFrame({"x": x[:, 0], "y": y, "sample_weight": weight})
    frame.to_parquet(tmp_path / "rows.parquet")
    cases = {}, {"weights": "frequency"}, {"weights": "precision"}, {"loss": "quantile"}
    for options in cases:
        in_memory = km.AdditiveRegressor(**options).fit(frame[["x"]], y, weight)
        with monkeypatch.context() as patch:
            patch.setattr(tables, "IN_MEMORY_BYTES", 0)
            path = tmp_path / "rows.parquet"
            streamed = km.AdditiveRegressor(**options).fit(path, sample_weight="sample_weight")
        np.testing.assert_allclose(streamed.edf_, in_memory.edf_, rtol=1e-5)
        X = frame[["x"]]
        np.testing.assert_allclose(streamed.predict(X), in_memory.predict(X), rtol=1e-5)
        for name in ("dispersion_", "deviance_", "aic_", "reml_"):
            np.testing.assert_allclose(getattr(streamed, name), getattr(in_memory, name), rtol=1e-5)


# -- inverse variances -----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_error", "gamma", "poisson"])
def test_equal_precisions_scale_the_dispersion_alone(seed, loss):
    X, _, y = waves(seed)
    y = y if loss == "squared_error" else np.exp(y)
    plain = km.AdditiveRegressor(loss).fit(X, y)
    model = clone(plain).set_params(weights="precision")
    ones = clone(model).fit(X, y, np.ones(len(y)))
    by_ten = clone(model).fit(X, y, np.full(len(y), 10.0))
    for of_weights, factor in ((model.fit(X, y), 1.0), (ones, 1.0), (by_ten, 10.0)):
        np.testing.assert_allclose(of_weights.predict(X), plain.predict(X), rtol=1e-9)
        np.testing.assert_allclose(of_weights.edf_, plain.edf_, rtol=1e-9)
        std = of_weights.predict(X, return_std=True)[1]
        np.testing.assert_allclose(std, plain.predict(X, return_std=True)[1], rtol=1e-6)
        for name in ("dispersion_", "deviance_", "null_deviance_"):
            expected = factor * getattr(plain, name)
            np.testing.assert_allclose(getattr(of_weights, name), expected, rtol=1e-9)
        assert of_weights.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-9)


def test_known_variances_give_generalised_least_squares(seed):
    """Each row with its own variance: coefficients, covariance, likelihood, checks."""
    rng = np.random.default_rng(seed)
    X, deviation = rng.normal(size=(300, 2)), np.exp(rng.normal(size=300))
    y = X @ [1.0, 0.5] + deviation * rng.normal(size=300)
    terms = [km.Term(j, "parametric") for j in range(2)]
    model = km.AdditiveRegressor(km.losses.SquaredError(1.0), terms=terms, weights="precision")
    model.fit(X, y, deviation**-2)
    Z = np.column_stack([np.ones(300), X])
    covariance = np.linalg.inv(Z.T @ (Z / deviation[:, None] ** 2))
    fitted = Z @ covariance @ Z.T @ (y / deviation**2)
    predicted, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(predicted, fitted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(std**2, np.sum((Z @ covariance) * Z, axis=1), rtol=1e-4)
    likelihood = stats.norm.logpdf(y, fitted, deviation).sum()
    assert model.log_likelihood_ == pytest.approx(likelihood, rel=1e-8)
    assert model.deviance_ == pytest.approx(np.sum(((y - fitted) / deviation) ** 2), rel=1e-8)
    # Residuals, each over its deviation, are standard normal up to the leverages.
    found = model.check(X, y, deviation**-2)
    np.testing.assert_allclose(found.quantile_residuals, (y - fitted) / deviation, rtol=1e-6)
    assert found.leverage.sum() == pytest.approx(3, rel=1e-3)


def test_rates_with_their_exposures_as_weights_are_counts(seed):
    """Y ~ Poisson(m μ) is y = Y/m with the variance μ/m."""
    rng = np.random.default_rng(seed)
    X, m = rng.random((400, 2)), rng.gamma(1.0, size=400)
    counts = rng.poisson(m * np.exp(X[:, 0] - 1))
    model = km.AdditiveRegressor(
        km.losses.Poisson(dispersion=1), terms=[km.Term(j, "parametric") for j in range(2)]
    )
    by_count = clone(model).fit(X, counts, exposure=m).predict(X, return_std=True)
    by_rate = clone(model).set_params(weights="precision").fit(X, counts / m, m)
    np.testing.assert_allclose(by_rate.predict(X, return_std=True), by_count, rtol=1e-4)
