"""Prediction intervals that are corrected by further rows."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.models.gam.conformal import conformal_interval


def test_coverage_is_exact_for_exchangeable_rows(seed):
    """Of n = 39 rows and a level of 0.9, each tail has the mean 1 − ⌈40 · 0.95⌉/40 = 0.05."""
    rng = np.random.default_rng(seed)
    hits = np.empty(4000)
    for k in range(len(hits)):
        y, new = rng.gamma(1.0, size=39), rng.gamma(1.0)
        ends = conformal_interval(np.ones((1, 2)), np.ones((39, 2)), y, 0.9, "test")
        hits[k] = ends[0, 0] <= new <= ends[0, 1]
    assert hits.mean() == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / len(hits)))


def skewed(rng, n):
    X = rng.random((n, 1))
    return X, np.sin(6 * X[:, 0]) + rng.gamma(0.5, size=n)


@pytest.mark.parametrize("loss", ["quantile", "absolute_error", "squared_error"])
def test_intervals_cover_whatever_the_distribution(loss):
    """Rows of calibration are drawn anew: their coverage varies by √(0.09/400) = 0.015."""
    rng = np.random.default_rng(0)
    model = km.AdditiveRegressor(loss, quantile=0.8).fit(*skewed(rng, 500))
    X, y = skewed(rng, 4000)
    shares = []
    for _ in range(10):
        low, high = model.predict_interval(X, 0.9, calibration=skewed(rng, 400)).T
        shares.append(np.mean((low <= y) & (y <= high)))
    assert np.mean(shares) == pytest.approx(0.9, abs=0.02)
    low, high = model.predict_interval(X, 0.9, calibration=skewed(rng, 400)).T
    assert np.mean(y < low) == pytest.approx(0.05, abs=0.05)  # either side, though y is skewed
    assert np.mean(y > high) == pytest.approx(0.05, abs=0.05)


def test_what_cannot_be_calibrated_is_refused():
    rng = np.random.default_rng(0)
    X, y = skewed(rng, 200)
    model = km.AdditiveRegressor("quantile").fit(X, y)
    with pytest.raises(ValueError, match=r"Pass calibration=\(X, y\)"):
        model.predict_interval(X)
    with pytest.raises(ValueError, match=r"a tuple \(X, y\) of further rows"):
        model.predict_interval(X, calibration=X)
    with pytest.raises(ValueError, match=r"10 rows of calibration are too few.*: pass 39 or more"):
        model.predict_interval(X, calibration=(X[:10], y[:10]))
    assert model.predict_interval(X, calibration=(X[:39], y[:39])).shape == (200, 2)
