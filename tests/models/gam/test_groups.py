"""Random slopes, curves by group, and varying coefficients, as pairs of terms."""

import warnings

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km


def groups(seed, n_rows, n_groups):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(n_rows), "z": rng.normal(size=n_rows)})
    code = rng.integers(0, n_groups, n_rows)
    X["site"] = [f"s{k:02d}" for k in code]
    return rng, X, code


def test_slopes_of_many_levels(seed):
    """250 levels of 16 rows: slopes have the errors of the best linear predictor."""
    rng = np.random.default_rng(seed)
    n_levels, n_each, noise, sd = 250, 16, 0.3, 0.5
    code, x = np.repeat(np.arange(n_levels), n_each), rng.random(n_levels * n_each)
    X = pd.DataFrame({"x": x, "site": [f"s{k}" for k in code]})
    slope = 1 + sd * rng.normal(size=n_levels)
    y = rng.normal(size=n_levels)[code] + slope[code] * x + noise * rng.normal(size=len(x))
    terms = [km.Term("x", "linear"), "site", ("site", km.Term("x", "linear"))]
    with warnings.catch_warnings(action="error"):
        model = km.AdditiveRegressor(terms=terms).fit(X, y)
    low, high = (model.predict(X[::n_each].assign(x=v)) for v in (0.1, 0.9))
    # With the intercepts nearly free, a slope has its variance among the 16 rows of its level.
    centred = x.reshape(n_levels, n_each) - x.reshape(n_levels, n_each).mean(axis=1, keepdims=True)
    information = np.sum(centred**2, axis=1) / noise**2
    expected = np.sqrt(np.mean(1 / (information + 1 / sd**2)))
    error = np.sqrt(np.mean(((high - low) / 0.8 - slope) ** 2))
    # Its standard error is √(1/500); bins and one variance for all levels cost a little more.
    assert error < 1.15 * expected


def test_curves_by_group_are_shrunk_together(seed):
    rng, X, code = groups(seed, 4000, 40)
    phase = rng.uniform(0, 2, 40)
    true = np.sin(6 * X["x"] + phase[code])
    y = true + 0.3 * rng.normal(size=4000)
    model = km.AdditiveRegressor(interactions=[("site", "x")]).fit(X.drop(columns="z"), y)
    without = km.AdditiveRegressor().fit(X.drop(columns="z"), y)
    errors = [
        np.sqrt(np.mean((m.predict(X.drop(columns="z")) - true) ** 2)) for m in (model, without)
    ]
    # A curve of 100 rows alone, with about 5 degrees of freedom, has 0.3 √(5 / 100) ≈ 0.07.
    assert errors[0] < 0.12 < 0.3 < errors[1]


def test_levels_that_a_pair_merges_are_reported(seed):
    """Of 300 equally frequent levels, a pair has 254: the others are 15 % of the rows."""
    rng = np.random.default_rng(seed)
    code = np.arange(3000) % 300
    X = pd.DataFrame({"x": rng.random(3000), "site": [f"s{k:03d}" for k in code]})
    y = rng.normal(size=300)[code] * X["x"] + 0.3 * rng.normal(size=3000)
    terms = ["x", "site", ("site", km.Term("x", "linear"))]
    model = km.AdditiveRegressor(terms=terms, smoothing=1.0)
    message = "the 254 most frequent levels of 'site', which has 300. The others, 15% of the rows"
    with pytest.warns(UserWarning, match=message):
        model.fit(X, y)
    # As many of them beside a column of few values, also where the levels come first.
    with pytest.warns(UserWarning, match=message):
        model.fit(X.assign(x=np.round(X["x"], 1))[["site", "x"]], y)
    few = code < 254
    with warnings.catch_warnings(action="error"):
        model.fit(X[few], y[few])


# -- variance components --------------------------------------------------------------------------


def test_variance_components_are_those_of_the_analysis_of_variance(seed, tmp_path):
    """Balanced: σ² by mean squares, and the interval of the restricted likelihood on a grid."""
    rng, m, k = np.random.default_rng(seed), 12, 25
    y = np.repeat(rng.normal(size=m), k) + rng.normal(size=m * k)
    X = pd.DataFrame({"g": np.repeat([f"level {j}" for j in range(m)], k)})
    model = km.AdditiveRegressor().fit(X, y)
    means = y.reshape(m, k).mean(axis=1)
    between, within = k * np.sum((means - y.mean()) ** 2), np.sum((y.reshape(m, k).T - means) ** 2)
    noise = within / (m * k - m)
    component, of_noise = model.summary().variance_components
    expected = np.sqrt((between / (m - 1) - noise) / k)
    assert component["sd"] == pytest.approx(expected, rel=0.05)  # the prior shrinks it
    assert of_noise["sd"] == pytest.approx(np.sqrt(noise), rel=0.01)
    sd = np.geomspace(0.01, 30, 3000)
    ratio = 1 + k * sd**2 / noise
    deviance = (m * k - 1) * np.log(within + between / ratio) + (m - 1) * np.log(ratio)
    inside = sd[deviance < deviance.min() + 3.841]
    assert component["low"] == pytest.approx(inside[0], rel=0.05)
    assert component["high"] == pytest.approx(inside[-1], rel=0.05)
    km.save(model, tmp_path / "model.kmap")
    loaded = km.load(tmp_path / "model.kmap").summary()
    assert loaded.variance_components == model.summary().variance_components
    assert f"g {component['sd']:.3g} (" in str(loaded)


def test_intervals_of_variance_components_cover():
    """Random intercepts and slopes, and the noise."""
    rng, covered, n, m = np.random.default_rng(0), [], 300, 12
    terms = ["x", "g", ("g", km.Term("x", "linear"))]
    for _ in range(20):
        level, x = rng.integers(0, m, n), rng.normal(size=n)
        intercept, slope = 0.5 * rng.normal(size=m), 0.4 * rng.normal(size=m)
        y = intercept[level] + slope[level] * x + rng.normal(size=n)
        X = pd.DataFrame({"x": x, "g": [f"level {j}" for j in level]})
        summary = km.AdditiveRegressor(terms=terms, n_jobs=1).fit(X, y).summary()
        by_name = {item["component"]: item for item in summary.variance_components}
        true = {"g": 0.5, "x × g": 0.4, "noise": 1.0}
        covered.append([by_name[k]["low"] < sd < by_name[k]["high"] for k, sd in true.items()])
    # Three standard deviations of 20 draws below 0.95: 0.804.
    assert np.mean(covered, axis=0).min() > 0.8
