"""Terms of dates: a trend that goes on, smooth cycles of the year and the day, and weekdays."""

import warnings

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.exceptions import OutOfDomainWarning

N = 1096  # three years


def daily(seed, n_new=400, slope=2.0):
    """A trend, a yearly cycle and weekends, with noise of one: dates, cycle, mean and targets."""
    rng = np.random.default_rng(seed)
    day = pd.date_range("2019-01-01", periods=N + n_new)
    angle = 2 * np.pi * (day.day_of_year.to_numpy() - 1) / 365.25
    cycle = 3 * np.sin(angle) + np.cos(2 * angle)
    mean = slope * np.arange(len(day)) / 365.25 + cycle - 1.5 * (day.day_of_week >= 5)
    return pd.DataFrame({"day": day}), cycle, mean, mean + rng.normal(size=len(day))


@pytest.fixture
def forecast(seed):
    X, cycle, mean, y = daily(seed)
    return km.AdditiveRegressor().fit(X[:N], y[:N]), X, cycle, mean, y


def test_every_day_is_explained_by_its_date(forecast):
    model, X, *_ = forecast
    for row in (0, 58, 59, 364, 365, 424, N - 1):  # ends of years, and the days around a 29th
        shown = dict(zip(model.term_names_, model.explain(X.iloc[[row]]).shown))
        assert shown["day"] == str(X.day[row].date())


@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
def test_a_yearly_cycle_is_smooth_and_a_forecast_has_the_slope(forecast):
    """The cycle has about eight degrees of freedom, an error of 0.09; steps of months have 0.4."""
    model, X, cycle, mean, y = forecast
    terms = model.eval_terms(X[:N])[:, model.term_names_.index("day (month)")]
    assert np.sqrt(np.mean((terms - cycle[:N] + cycle[:N].mean()) ** 2)) < 0.2
    assert np.abs(np.diff(terms)).max() < 0.15  # 4 · 2π/365 = 0.07
    assert model.score(X[N:], y[N:]) > 0.7
    predicted, error = model.predict(X[N:], return_std=True)
    assert (np.abs(predicted - mean[N:]) < 4 * error).all()
    fitted_error = model.predict(X[:N], return_std=True)[1].mean()
    assert error[-1] > 1.2 * fitted_error  # it grows with the distance
    weekday = model.shape_functions_[model.term_names_.index("day (weekday)")]
    assert weekday.levels == ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    assert np.ptp(weekday.values[5:]) < 0.5 < 1 < weekday.values[:5].min() - weekday.values[5]


def test_a_year_closes_at_its_end(forecast):
    """31 December is as close to 1 January as any day to the next."""
    model, _, cycle, _, _ = forecast
    shape = model.shape_functions_[model.term_names_.index("day (month)")]
    assert abs(shape.values[-1] - shape.values[0]) < np.abs(np.diff(cycle)).max() * 3
    assert shape.ticks[0] == (1, "Jan")


def test_months_are_interpolated_around_the_circle(seed):
    """Monthly rows, daily predictions: the middle of December lies between its ends."""
    X, _, _, y = daily(seed)
    first = (X["day"].dt.day == 1).to_numpy()
    terms = {"day": None, "day (month)": "periodic"}
    model = km.AdditiveRegressor(terms=terms).fit(X[first], y[first])
    days = pd.to_datetime(["2020-12-01", "2020-12-16", "2021-01-01"])
    begin, middle, end = model.predict(pd.DataFrame({"day": days}))
    assert middle == pytest.approx(begin + 15 / 31 * (end - begin), abs=1e-9)


def test_hours_are_a_smooth_cycle(seed):
    rng = np.random.default_rng(seed)
    hour = pd.date_range("2024-03-04", periods=24 * 14, freq="h")
    cycle = 2 * np.sin(2 * np.pi * hour.hour / 24)
    X = pd.DataFrame({"at": hour})
    model = km.AdditiveRegressor().fit(X, cycle + rng.normal(size=len(X)))
    assert model.term_names_ == ["at", "at (weekday)", "at (hour)"]
    assert np.sqrt(np.mean((model.eval_terms(X)[:, 2] - cycle) ** 2)) < 0.35
    assert model.predictor_.terms[2].edf[0] < 10


def test_what_goes_on_is_said(forecast, seed):
    model, X, _, _, y = forecast
    with pytest.warns(OutOfDomainWarning, match=r"'day' \(goes on with its slope\) in 390 rows\."):
        model.predict(X[N:])
    constant = km.Term("day", extrapolation="constant")
    ended = km.AdditiveRegressor(terms={"day": constant}).fit(X[:N], y[:N])
    with pytest.warns(OutOfDomainWarning, match=r"'day' in 390 rows\."):
        trend = ended.eval_terms(X[N:])[:, 0]
    assert np.ptp(trend) == 0
    line = km.AdditiveRegressor(terms={"day": "linear"}).fit(X[:N], y[:N])
    assert line.term_names_ == model.term_names_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfDomainWarning)
        assert line.score(X[N:], y[N:]) > 0.7


def test_cycles_without_an_effect_shrink_and_are_not_significant():
    """Of 20 series, 1 is expected below 5 %; more than 4 have a probability of 0.003."""
    p_values = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"day": pd.date_range("2019-01-01", periods=3 * 365)[::5]})
        model = km.AdditiveRegressor().fit(X, np.linspace(0, 2, len(X)) + rng.normal(size=len(X)))
        frame = model.summary().to_frame().set_index("term")
        p_values.append(frame.loc[["day (month)", "day (weekday)"], "p_value"])
    assert (np.array(p_values) < 0.05).sum(axis=0).max() <= 4
