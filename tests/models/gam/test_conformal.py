"""Prediction intervals that are corrected by further rows."""

import numpy as np
import pytest
from scipy import stats

import kernelmaps as km
from kernelmaps.models.gam.regressor import (
    conformal_interval,
    distribution_interval,
    leave_one_out_residuals,
)
from kernelmaps.models.losses import SquaredError


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


@pytest.mark.parametrize("loss", [km.losses.Quantile(0.8), "absolute_error", "squared_error"])
def test_intervals_cover_whatever_the_distribution(loss):
    """Rows of calibration are drawn anew: their coverage varies by √(0.09/400) = 0.015."""
    rng = np.random.default_rng(0)
    model = km.AdditiveRegressor(loss).fit(*skewed(rng, 500))
    X, y = skewed(rng, 4000)
    shares = []
    for _ in range(10):
        low, high = model.predict_interval(X, 0.9, calibration=skewed(rng, 400)).T
        shares.append(np.mean((low <= y) & (y <= high)))
    assert np.mean(shares) == pytest.approx(0.9, abs=0.02)
    low, high = model.predict_interval(X, 0.9, calibration=skewed(rng, 400)).T
    assert np.mean(y < low) == pytest.approx(0.05, abs=0.05)  # either side, though y is skewed
    assert np.mean(y > high) == pytest.approx(0.05, abs=0.05)


def test_rows_of_calibration_have_exposures_and_offsets(seed):
    """y over its mean has one distribution, no gamma: rows of all exposures have the level."""
    rng = np.random.default_rng(seed)

    def amounts(n):
        X, exposure = rng.random((n, 1)), np.exp(rng.normal(size=n))
        y = exposure * np.exp(np.sin(6 * X[:, 0]) + 0.3 * rng.standard_t(3, size=n))
        return {"X": X, "y": y, "exposure": exposure}

    model = km.AdditiveRegressor("gamma").fit(**amounts(600))
    shares = []
    for _ in range(10):
        new, calibration = amounts(1000), amounts(400)
        low, high = model.predict_interval(
            new["X"], 0.8, exposure=new["exposure"], calibration=calibration
        ).T
        inside = (new["y"] >= low) & (new["y"] <= high)
        large = new["exposure"] > 1
        shares.append([inside[large].mean(), inside[~large].mean()])
    # 400 rows of calibration, ten times: √(.16/4000) = .006, and .005 for 10 × 500 rows of a half.
    np.testing.assert_allclose(np.mean(shares, axis=0), 0.8, atol=0.035)
    offset = np.log(calibration.pop("exposure"))
    both = ({**calibration, "offset": offset}, {**calibration, "exposure": np.exp(offset)})
    ends = [model.predict_interval(new["X"], calibration=rows) for rows in both]
    np.testing.assert_allclose(*ends)


# -- quantile losses without further rows ----------------------------------------------------------


def test_leave_one_out_residuals_of_squares_are_exact(seed):
    """Weighted least squares: those of fits without a row."""
    rng, n = np.random.default_rng(seed), 40
    Z, y, weight = (
        np.column_stack([np.ones(n), rng.random((n, 2))]),
        rng.normal(size=n),
        rng.random(n),
    )
    inverse = np.linalg.inv(Z.T @ (weight[:, None] * Z))
    eta = Z @ (inverse @ (Z.T @ (weight * y)))
    errors = np.sqrt(3.0 * np.sum((Z @ inverse) * Z, axis=1))
    residuals = leave_one_out_residuals(SquaredError(), y, eta, errors, weight, 3.0)
    for k in range(n):
        rows = np.arange(n) != k
        root = np.sqrt(weight[rows])
        beta = np.linalg.lstsq(root[:, None] * Z[rows], root * y[rows])[0]
        assert residuals[k] == pytest.approx(y[k] - Z[k] @ beta)


def test_weights_and_refits_of_residuals(seed, tmp_path):
    rng = np.random.default_rng(seed)
    X, y = skewed(rng, 150)
    counts = rng.integers(1, 4, 150)
    weighted = km.AdditiveRegressor("quantile", weights="frequency").fit(X, y, counts)
    repeated = km.AdditiveRegressor("quantile").fit(X.repeat(counts, axis=0), y.repeat(counts))
    ends = [model.predict_interval(X, 0.8) for model in (weighted, repeated)]
    np.testing.assert_allclose(*ends, atol=0.05 * y.std())
    km.save(repeated, tmp_path / "model.kmap")
    np.testing.assert_array_equal(
        km.load(tmp_path / "model.kmap").predict_interval(X, 0.8), ends[1]
    )
    chunks = [(X[:70], y[:70]), (X[70:], y[70:])]
    model = km.AdditiveRegressor("quantile").fit(X, y)
    streamed = km.AdditiveRegressor("quantile").fit(chunks)
    np.testing.assert_allclose(
        streamed.predict_interval(X), model.predict_interval(X), atol=0.02 * y.std()
    )
    model.set_params(loss="squared_error").fit(X, y)
    assert len(model._residual_quantiles) == 0


# -- counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_intervals_of_counts_have_their_level_and_little_more(level):
    """At least the level; above it by at most the smaller probability of two ends."""
    mean = np.linspace(0.05, 200, 4000)
    distribution = stats.poisson(mean)
    low, high = distribution_interval(distribution, level).T
    covered = distribution.cdf(high) - distribution.cdf(low - 1)
    assert (covered >= level - 1e-12).all()
    ends = np.minimum(distribution.pmf(low), distribution.pmf(high))
    assert (covered - np.where(high > low, ends, 1.0) < level).all()
    if level == 0.9:
        assert covered[mean >= 10].max() < 0.93
    exact = distribution_interval(stats.norm(mean), level)
    np.testing.assert_allclose(exact, np.transpose(stats.norm(mean).interval(level)))
