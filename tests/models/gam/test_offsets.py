"""Offsets of every loss."""

import warnings

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.exceptions import MissingTargetWarning


def rows(seed, n=400):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.integers(0, 20, n) / 20, "c": rng.choice(list("uv"), n)})
    return rng, X, (np.sin(5 * X["a"]) + (X["c"] == "u")).to_numpy(), rng.normal(size=n)


def test_an_offset_of_squared_error_is_a_part_of_the_target(seed):
    rng, X, eta, offset = rows(seed)
    y = eta + offset + 0.3 * rng.normal(size=len(eta))
    model = km.AdditiveRegressor().fit(X, y, offset=offset)
    without = km.AdditiveRegressor().fit(X, y - offset)
    np.testing.assert_allclose(model.predict(X, offset=offset), without.predict(X) + offset)
    assert model.score(X, y, offset=offset) > 0.9
    assert model.deviance_ == pytest.approx(without.deviance_)
    assert model.deviance_explained_ == pytest.approx(without.deviance_explained_)
    low, high = model.predict_interval(X, offset=offset).T
    assert 0.9 < np.mean((low < y) & (y < high)) < 0.99
    with pytest.warns(UserWarning, match="an exposure or an offset, and none is given"):
        model.score(X, y)


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_an_exposure_is_the_exponential_of_an_offset(seed, loss):
    rng, X, eta, offset = rows(seed)
    mean = np.exp(eta + offset)
    y = rng.poisson(mean) if loss == "poisson" else rng.gamma(2.0, mean / 2)
    by_offset = km.AdditiveRegressor(loss).fit(X, y, offset=offset)
    by_exposure = km.AdditiveRegressor(loss).fit(X, y, exposure=np.exp(offset))
    both = km.AdditiveRegressor(loss).fit(X, y, exposure=np.exp(offset / 2), offset=offset / 2)
    expected = by_exposure.predict(X, exposure=np.exp(offset))
    np.testing.assert_allclose(by_offset.predict(X, offset=offset), expected)
    np.testing.assert_allclose(both.predict(X, offset=offset), expected)
    assert by_offset.score(X, y, offset=offset) == pytest.approx(by_offset.deviance_explained_)


def test_quantiles_have_offsets(seed):
    rng, X, eta, offset = rows(seed, 1000)
    y = eta + 5 * offset + rng.normal(size=len(eta))
    model = km.AdditiveRegressor(km.losses.Quantile(0.8)).fit(X, y, offset=5 * offset)
    assert np.mean(y < model.predict(X, offset=5 * offset)) == pytest.approx(0.8, abs=0.02)


def test_classes_have_offsets(seed):
    """The case-control correction: log-odds that are known to differ by rows."""
    rng, X, eta, offset = rows(seed, 3000)
    y = rng.random(len(eta)) < 1 / (1 + np.exp(-(eta - 1 + 2 * offset)))
    model = km.AdditiveClassifier().fit(X, y, offset=2 * offset)
    assert np.std(model.decision_function(X) - (eta - 1)) < 0.2
    p = model.predict_proba(X, offset=2 * offset)[:, 1]
    assert p.mean() == pytest.approx(y.mean(), rel=1e-3)  # the score equation of the intercept
    assert (model.predict(X, offset=2 * offset) == (p > 0.5)).all()
    with_std, _ = model.decision_function(X, return_std=True, offset=2 * offset)
    np.testing.assert_allclose(with_std, model.decision_function(X) + 2 * offset)
    draws = model.posterior_draws(X, 20, offset=2 * offset, random_state=seed)
    assert np.abs(draws.mean(axis=0)[:, 1] - p).mean() < 0.05
    with warnings.catch_warnings(action="error"):
        assert model.check(X, y, offset=2 * offset).deviance_residuals.std() < 1.2
        model.score(X, y, offset=2 * offset)
    for call in (model.score, model.check):
        with pytest.warns(UserWarning, match=r"fitted with an offset, and none is given.*offset="):
            call(X, y)
    # The deviance of a constant is that of the best one.
    assert model.deviance_explained_ < 0.3


def test_weights_of_unknown_classes_are_reported(seed):
    _, X, eta, _ = rows(seed, 50)
    model = km.AdditiveClassifier(class_weight={0: 1, 1: 2, 7: 3})
    with pytest.warns(UserWarning, match="class_weight has 7, which is not a class in y"):
        model.fit(X, (eta > 1).astype(int))


def test_rows_without_a_target_leave_their_offset_out(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=300)})
    offset = rng.normal(size=300)
    y = pd.Series(np.sin(2 * X["a"]) + offset)
    y[::10] = np.nan
    with pytest.warns(MissingTargetWarning):
        model = km.AdditiveRegressor().fit(X, y, offset=offset)
    rows = y.notna().to_numpy()
    expected = km.AdditiveRegressor().fit(X[rows], y[rows], offset=offset[rows])
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_checks_pages_and_calibration_without_exposures_warn(seed, tmp_path):
    rng, X, eta, offset = rows(seed)
    y = rng.poisson(np.exp(eta + offset))
    model = km.AdditiveRegressor("poisson").fit(X, y, exposure=np.exp(offset))
    page = tmp_path / "page.html"
    for call in (
        lambda: model.check(X, y),
        lambda: km.model_report(model, page, X=X, y=y),
        lambda: model.predict_interval(X, exposure=np.exp(offset), calibration=(X, y)),
    ):
        with pytest.warns(UserWarning, match="an exposure or an offset, and none is given"):
            call()
    with warnings.catch_warnings(action="error"):
        km.model_report(model, page, X=X, y=y, exposure=np.exp(offset))
        model.check(X, y, exposure=np.exp(offset))
    explained = model.score(X, y, exposure=np.exp(offset))
    assert f"{explained:.4g}" in page.read_text(encoding="utf-8")
