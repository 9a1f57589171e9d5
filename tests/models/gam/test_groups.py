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


def grid_of(site, x, z=0.0):
    return pd.DataFrame({"x": x, "z": z, "site": site})


def test_random_slopes_are_those_of_the_groups(seed):
    rng, X, code = groups(seed, 3000, 30)
    intercept, slope = rng.normal(size=(2, 30))
    y = intercept[code] + slope[code] * X["x"] + 0.3 * rng.normal(size=3000)
    model = km.AdditiveRegressor(
        terms=["site", km.Term("x", "linear"), ("site", km.Term("x", "linear"))]
    ).fit(X, y)
    x = np.array([0.1, 0.5, 0.9])
    predictions = np.array([model.predict(grid_of(f"s{k:02d}", x)) for k in range(30)])
    estimates = (predictions[:, 2] - predictions[:, 0]) / 0.8
    # A slope of 100 rows has the standard error 0.3 / √(100 / 12) ≈ 0.1.
    assert np.sqrt(np.mean((estimates - slope) ** 2)) < 0.15
    bends = predictions[:, 2] - 2 * predictions[:, 1] + predictions[:, 0]
    assert np.abs(bends).max() < 0.1  # 63 steps of x
    assert 20 < model.summary().to_frame().set_index("term").loc["x × site", "edf"] < 30


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


def test_slopes_of_few_rows_are_shrunk_to_the_mean(seed):
    """The estimate of a group is the mean, weighted by the variances: Stein's shrinkage."""
    rng, X, code = groups(seed, 400, 40)
    slope = 1 + 0.5 * rng.normal(size=40)
    y = slope[code] * X["x"] + rng.normal(size=400)
    model = km.AdditiveRegressor(terms=["x", "site", ("site", km.Term("x", "linear"))]).fit(X, y)
    ends = np.array([0.05, 0.95])
    shrunk = np.array([np.diff(model.predict(grid_of(f"s{k:02d}", ends)))[0] for k in range(40)])
    alone = np.array([np.polyfit(X["x"][code == k], y[code == k], 1)[0] for k in range(40)])
    errors = [np.sqrt(np.mean((estimate - slope) ** 2)) for estimate in (shrunk / 0.9, alone)]
    assert errors[0] < 0.75 * errors[1]


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


def test_a_varying_coefficient_is_linear_in_its_column(seed):
    rng, X, _ = groups(seed, 3000, 2)
    y = X["z"] * np.sin(6 * X["x"]) + 0.2 * rng.normal(size=3000)
    model = km.AdditiveRegressor(
        terms=["x", km.Term("z", "linear"), ("x", km.Term("z", "linear"))]
    ).fit(X, y)
    x = np.linspace(0.05, 0.95, 30)
    below, middle, above = (model.predict(grid_of("s00", x, z)) for z in (-1.0, 0.0, 1.0))
    assert np.abs((above - below) / 2 - np.sin(6 * x)).mean() < 0.1
    assert np.abs(above - 2 * middle + below).max() < 0.15


def test_levels_that_a_pair_merges_are_reported(seed):
    """Of 300 equally frequent levels, a pair has 254: the others are 15 % of the rows."""
    rng = np.random.default_rng(seed)
    code = np.arange(3000) % 300
    X = pd.DataFrame({"x": rng.random(3000), "site": [f"s{k:03d}" for k in code]})
    y = rng.normal(size=300)[code] * X["x"] + 0.3 * rng.normal(size=3000)
    model = km.AdditiveRegressor(terms=["x", "site", ("site", km.Term("x", "linear"))])
    message = "the 254 most frequent levels of 'site', which has 300. The others, 15% of the rows"
    with pytest.warns(UserWarning, match=message):
        model.fit(X, y)
    # As many of them beside a column of few values, whichever column is the first.
    coarse = X.assign(x=np.round(X["x"], 1))
    for columns in (["x", "site"], ["site", "x"]):
        with pytest.warns(UserWarning, match=message):
            model.fit(coarse[columns], y)
    few = code < 254
    with warnings.catch_warnings(action="error"):
        model.fit(X[few], y[few])
