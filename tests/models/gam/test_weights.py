"""Weights of rows: relative by default, frequencies on request."""

import numpy as np
import pandas as pd
import pytest
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


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
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
    for options in ({}, {"weights": "frequency"}, {"loss": "quantile"}):
        in_memory = km.AdditiveRegressor(**options).fit(frame[["x"]], y, weight)
        with monkeypatch.context() as patch:
            patch.setattr(tables, "IN_MEMORY_BYTES", 0)
            path = tmp_path / "rows.parquet"
            streamed = km.AdditiveRegressor(**options).fit(path, sample_weight="sample_weight")
        np.testing.assert_allclose(streamed.edf_, in_memory.edf_, rtol=1e-5)
        X = frame[["x"]]
        np.testing.assert_allclose(streamed.predict(X), in_memory.predict(X), rtol=1e-5)
