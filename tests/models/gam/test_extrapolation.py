"""Values beyond the range of the training rows: a warning, and errors that grow."""

import warnings

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.cli.predict import predict_rows
from kernelmaps.exceptions import OutOfDomainWarning

NEW = pd.DataFrame({"x": [5.0, 9.99, 12.0, 20.0, 1e6, -5.0], "z": 0.0, "hour": 30.0, "g": "new"})


def line(seed, n=400):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.uniform(0, 10, n), "z": rng.normal(size=n)})
    X["hour"], X["g"] = rng.integers(0, 24, n), rng.choice(["a", "b"], n)
    return X, (2 * X["x"] + rng.normal(size=n)).to_numpy()


def fitted(seed, **term):
    terms = {"x": km.Term("x", **term), "hour": km.Term("hour", "periodic", period=24)}
    X, y = line(seed)
    return km.AdditiveRegressor(terms=terms).fit(X, y), X


def messages(call, *arguments, **options):
    """What a call warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments, **options)
    assert all(item.category is OutOfDomainWarning for item in caught)
    return [str(item.message) for item in caught]


def test_each_call_warns_once_with_columns_and_rows(seed, tmp_path):
    """Levels, periodic columns, missing values and training rows are no reason to warn."""
    model, X = fitted(seed)
    new = pd.concat([NEW, NEW[:1].assign(x=np.nan), NEW[:1].assign(z=-99.0)])
    km.save(model, tmp_path / "model.kmap")
    new.to_csv(tmp_path / "new.csv", index=False)
    loaded = km.load(tmp_path / "model.kmap")
    labels = km.AdditiveClassifier(terms=["x", "z", "g"]).fit(X, X["x"] + X["z"] > 5)
    for call, options in (
        (model.predict, {}),
        (model.predict, {"return_std": True}),
        (model.predict_interval, {}),
        (model.posterior_draws, {"n_draws": 3}),
        (loaded.predict, {"return_std": True}),
        (labels.predict_proba, {}),
    ):
        (message,) = messages(call, new, **options)
        assert "training rows: 'x' in 4 rows, 'z' in 1 row." in message
        assert messages(call, X, **options) == []
    assert "'x' in 1 row." in messages(model.explain, NEW[3:4])[0]
    _, predictions = predict_rows(tmp_path / "model.kmap", tmp_path / "new.csv")
    (message,) = messages(lambda: list(predictions))
    assert "'x' in 4 rows, 'z' in 1 row." in message


def test_many_columns_are_counted(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((50, 8))
    (message,) = messages(km.AdditiveRegressor().fit(X, X[:, 0]).predict, X + 2)
    assert "'x4' in 50 rows, 3 other columns." in message


def test_errors_cover_a_line_that_predictions_do_not_follow(seed, tmp_path):
    """The truth goes on with a slope of 2; before, the errors were those of the end."""
    model, _ = fitted(seed)
    mean, std = model.predict(NEW, return_std=True)
    assert np.ptp(mean[2:5]) == 0  # constant
    assert (np.abs(mean - 2 * NEW["x"]) < 1.96 * std).all()
    assert std[4] / std[3] == pytest.approx((1e6 - 10) / 10, rel=0.02)
    assert std[1] < 0.5 < std[2]
    low, high = model.predict_interval(NEW).T
    assert ((low < 2 * NEW["x"]) & (2 * NEW["x"] < high)).all()
    draws = model.posterior_draws(NEW, 4000, random_state=seed)
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=5 / np.sqrt(8000))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * std.max() / np.sqrt(4000))
    km.save(model, tmp_path / "model.kmap")
    again = km.load(tmp_path / "model.kmap").predict(NEW, return_std=True)[1]
    np.testing.assert_array_equal(again, std)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "absolute_error"])
def test_intervals_of_other_losses_cover_what_lies_beyond(loss, seed):
    """Around exp(2 + x/5) or 2x; distributions of the mean exp(f) alone would end at zero."""
    rng = np.random.default_rng(seed)
    X, y = line(seed)
    if loss != "absolute_error":
        mean = np.exp(2 + X["x"] / 5)
        y = rng.poisson(mean) if loss == "poisson" else rng.gamma(4.0, mean / 4)
    model = km.AdditiveRegressor(loss, terms=["x"]).fit(X, y)
    low, high = model.predict_interval(NEW).T
    truth = 2 * NEW["x"] if loss == "absolute_error" else np.exp(2 + np.minimum(NEW["x"], 100) / 5)
    assert ((low <= truth) & (truth <= high)).all()
    assert (high[0] - low[0]) < 3 * (high[1] - low[1])
    assert (np.diff((high - low)[1:5]) >= 0).all()


@pytest.mark.parametrize("first", ["x", "g"])
def test_errors_grow_where_only_a_pair_has_the_effect(first, seed):
    """The pair goes on with its slopes: bilinear, or a line for each group."""
    X, noise = line(seed)
    other = X["x"] / 5 - 1 if first == "x" else np.where(X["g"] == "a", 1.0, -1.0)
    y = other * 5 * X["z"] + 0.1 * (noise - 2 * X["x"])
    model = km.AdditiveRegressor(terms=[(first, "z")]).fit(X, y)
    end = X["z"].max()
    z = [end - 1, end, end + 1, 30.0, 300.0, np.nan]
    new = pd.DataFrame({"x": 8.0, "z": z, "hour": 3, "g": "a"})
    mean, std = model.predict(new, return_std=True)
    assert np.ptp(mean[1:5]) == 0  # constant
    assert (np.diff(std[1:5]) > 0).all()
    assert std[4] > 0.02 * 5 * 300  # the slope at the end is that of a coarse cell
    assert std[4] / std[3] == pytest.approx((300 - end) / (30 - end), rel=0.1)
    of_fit = model.predictor_.score_errors(model._columns(new), as_fitted=True)[:, 0]
    np.testing.assert_allclose(std[[0, 5]], of_fit[[0, 5]])
    of_term = model.predictor_.errors(model._columns(new))[:, 0, 0]
    np.testing.assert_allclose(of_term[3:5], std[3:5], rtol=0.01)


@pytest.mark.parametrize("term", [{"extrapolation": "linear"}, {"kind": "linear"}])
def test_errors_of_lines_that_go_on_are_those_of_the_slope(term, seed):
    """Far away, as many standard errors of the slope as the distance, and no more."""
    model, _ = fitted(seed, **term)
    far = NEW[4:5]
    mean, std = model.predict(far, return_std=True)
    slope = next(f for f in model.shape_functions_ if f.name == "x").derivative()
    assert mean[0] / 1e6 == pytest.approx(slope.values[-1], rel=1e-3)
    # Coefficients with 99 % of the variance are saved.
    assert std[0] / 1e6 == pytest.approx(slope.errors[-1], rel=0.1)


@pytest.mark.parametrize("term", [{}, {"extrapolation": "linear"}, {"kind": "linear"}])
def test_explanations_have_the_errors_of_predictions(term, seed):
    X, y = line(seed)
    terms = [km.Term("x", **term)]
    model = km.AdditiveRegressor(terms=terms).fit(X, y)
    _, std = model.predict(NEW, return_std=True)
    explained = [model.explain(NEW[k : k + 1]).errors[0] for k in range(len(NEW))]
    np.testing.assert_allclose(explained, std, rtol=0.02)


def test_the_model_matrix_is_that_of_the_predictions(seed):
    """Errors of the fit, which leverages are computed from, are those of its coefficients."""
    X, y = line(seed)
    model = km.AdditiveRegressor().fit(X, y)
    Z = model.model_matrix(NEW)
    np.testing.assert_array_equal(Z[2], Z[3])  # constant, as the predictions
    of_fit = model.predictor_.score_errors(model._columns(NEW), as_fitted=True)[:3, 0]
    covariance = np.delete(model.covariance_, model.predictor_.posterior.new_levels, axis=0)
    covariance = np.delete(covariance, model.predictor_.posterior.new_levels, axis=1)
    Z = np.delete(Z, model.predictor_.posterior.new_levels, axis=1)[:3]
    np.testing.assert_allclose(of_fit**2, np.sum((Z @ covariance) * Z, axis=1), rtol=1e-5)
