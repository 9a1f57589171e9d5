"""Offsets of every loss, and binomial counts."""

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
    model = km.AdditiveRegressor("quantile", quantile=0.8).fit(X, y, offset=5 * offset)
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
    assert model.check(X, y, offset=2 * offset).deviance_residuals.std() < 1.2
    # The deviance of a constant is that of the best one.
    assert model.deviance_explained_ < 0.3


def test_binomial_counts_are_single_trials(seed):
    rng, X, eta, _ = rows(seed, 200)
    trials = rng.integers(0, 8, 200)
    successes = rng.binomial(trials, 1 / (1 + np.exp(-eta)))
    model = km.AdditiveClassifier().fit(X, successes, trials=trials)
    each = np.repeat(np.arange(200), trials)
    order = np.concatenate([np.arange(k) for k in trials])
    single = km.AdditiveClassifier().fit(X.iloc[each], order < successes[each])
    assert model.classes_.tolist() == [0, 1]
    assert model.edf_ == pytest.approx(single.edf_, rel=1e-4)
    np.testing.assert_allclose(
        model.decision_function(X, return_std=True),
        single.decision_function(X, return_std=True), rtol=1e-4, atol=1e-6,
    )  # fmt: skip
    assert model.deviance_explained_ == pytest.approx(single.deviance_explained_)
    again = model.fit(X.to_numpy(object), successes, trials=trials, offset=np.ones(200))
    assert again.intercept_[0] == pytest.approx(single.intercept_[0] - 1, abs=1e-4)
    again.fit(X, successes > 0)  # the next fit is of labels
    assert again.predictor_.terms[0].counts.sum() == 200


def test_wrong_counts_and_offsets_are_refused(seed):
    _, X, eta, offset = rows(seed, 50)
    for y, trials in (([3] * 50, [2] * 50), ([0.5] * 50, [1] * 50), ([-1] * 50, [1] * 50)):
        with pytest.raises(ValueError, match="whole numbers of successes"):
            km.AdditiveClassifier().fit(X, y, trials=trials)
    with pytest.raises(ValueError, match="offset must hold 50 finite numbers"):
        km.AdditiveRegressor().fit(X, eta, offset=offset[:20])
    with pytest.raises(ValueError, match="offset= is for two classes"):
        km.AdditiveClassifier().fit(X, np.arange(50) % 3, offset=offset)
    chunks = [(X.iloc[:25], eta[:25]), (X.iloc[25:], eta[25:])]
    with pytest.raises(ValueError, match="offset= is for rows in memory"):
        km.AdditiveRegressor().fit(chunks, offset=offset)


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
