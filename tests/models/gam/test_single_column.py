"""Fits of one column alone, and what is decided by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.models.gam import bases
from kernelmaps.models.gam.bases import (
    SMOOTHING_GRID,
    ColumnTargets,
    fit_alone,
    number_bases,
)
from kernelmaps.models.rows.normal_equations import NormalEquations
from kernelmaps.models.solvers.reml import Penalties, penalised_fit


def targets_of(codes, bins, *outputs):
    counts = np.bincount(codes, minlength=bins + 1).astype(float)
    targets = np.stack([np.bincount(codes, y, bins + 1) for y in outputs])
    return ColumnTargets(counts, targets, np.array([y @ y for y in outputs]))


def one_column(seed, n=3000, bins=60):
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, bins + 1, n)
    place = (np.arange(bins) + 0.5) / bins
    y = np.sin(9 * place[codes - 1]) + rng.normal(size=n)
    y -= y.mean()
    counts = np.bincount(codes, minlength=bins + 1).astype(float)
    candidates = number_bases(place[None], counts, n_bases=20, degree=3, order=2)
    return candidates, targets_of(codes, bins, y), codes, y


def test_the_sum_over_coefficients_is_the_restricted_likelihood(seed):
    """The best smoothing parameter of the grid is that of the full criterion."""
    candidates, signal, codes, y = one_column(seed)
    n, basis = len(y), candidates[0]
    Z = np.column_stack([np.ones(n), basis.values[codes]])
    penalties = Penalties.from_bases([basis])
    problem = NormalEquations(Z.T @ Z, Z.T @ y, float(y @ y), float(n))
    fits = [
        penalised_fit(problem, penalties, np.array([np.log(n * smoothing), 0.0]))
        for smoothing in SMOOTHING_GRID
    ]
    best = min(fits, key=lambda fit: fit.criterion)
    _, likelihood, edf = fit_alone(candidates, signal)
    exact = np.sum(1 - penalties.diagonal(best.rho) * best.inverse.diagonal()) - 1
    # The basis is orthonormal up to the ridge for codes without rows, 1e-7 of its mean diagonal.
    assert edf == pytest.approx(exact, rel=1e-5)
    twice = targets_of(codes, 60, y, y)
    assert fit_alone(candidates, twice)[1:] == (pytest.approx(2 * likelihood), pytest.approx(edf))


def test_the_axis_and_the_splines_of_the_highest_likelihood_are_taken(seed, monkeypatch):
    """One candidate for each axis, then one with point masses and one that follows steps."""
    rng, fits = np.random.default_rng(seed), []

    def record(candidates, column):
        fits.append(fit_alone(candidates, column))
        return fits[-1]

    monkeypatch.setattr(bases, "fit_alone", record)
    x = np.where(rng.random(3000) < 0.3, 0.0, rng.lognormal(size=3000))
    y = np.floor(2 * np.minimum(x, 2.0)) + 0.3 * rng.normal(size=3000)
    model = km.AdditiveRegressor().fit(x[:, None], y)
    likelihoods = [likelihood for fit in fits for likelihood in fit.likelihood]
    assert len(likelihoods) == 5
    assert likelihoods[4] > max(likelihoods[:4]) + bases.CURVES.rough_cost
    rough = fits[2].bases[0]
    assert 0 < model.predictor_.terms[0].edf[0] <= rough.n_functions


@pytest.mark.parametrize("size", [1000, 12_000])
def test_a_straight_effect_of_a_skewed_column_is_a_straight_line(seed, size):
    """Its error is that of a line: of three numbers (two slopes, an intercept), and some curve.

    A curve of six more degrees of freedom would have twice this error.
    """
    rng = np.random.default_rng(seed)
    errors, used = [], []
    for _ in range(5):
        X = np.column_stack([rng.lognormal(0, 1, size), rng.random(size)])
        truth = X.sum(axis=1)
        noise = X[:, 0].std()
        model = km.AdditiveRegressor().fit(X, truth + noise * rng.normal(size=size))
        errors.append(np.sqrt(np.mean((model.predict(X) - truth) ** 2)) / noise)
        used.append(model.predictor_.terms[0].edf[0])
    assert np.median(errors) < 1.5 * np.sqrt(3 / size)
    assert np.median(used) < 5


UNEVEN = {
    "outlier": np.array([0.0, 1, 2, 3, 10]),
    "price list": np.array([1.0, 2, 5, 10, 20, 50, 100]),
    "lognormal": np.exp(2 * np.sin(np.arange(25.0))),
    "close pair": np.array([0.0, 1e-9, 1, 2, 4, 8]),
}


@pytest.mark.parametrize("knots", ["auto", "even"])
@pytest.mark.parametrize("values", UNEVEN)
def test_a_straight_effect_of_a_few_uneven_values_is_straight(seed, values, knots):
    """Its error is that of least squares, of two numbers; a value for each level would have more.

    With one coefficient for each of m values it would be sqrt(m / 2) times as large.
    """
    rng, errors, used = np.random.default_rng(seed), [], []
    for _ in range(8):
        x = rng.choice(UNEVEN[values], 1000)
        truth = x / x.std()
        model = km.AdditiveRegressor(terms=[km.Term(0, knots=knots)])
        model.fit(x[:, None], truth + 0.1 * rng.normal(size=1000))
        errors.append(np.mean((model.predict(x[:, None]) - truth) ** 2))
        used.append(model.predictor_.terms[0].edf[0])
    assert np.median(used) < 2
    # The mean of 8 χ² with two degrees of freedom, and some curve: it is below 2.5 times that of
    # two degrees by three standard deviations.
    assert np.mean(errors) < 2.5 * 2 * 0.1**2 / 1000


def test_outliers_in_a_long_tail_are_no_steps(seed):
    """Of x, log x and x², with a noise of heavy tails that grows with x, and an effect of x.

    Steps would follow single rows: the three curves would use 11 to 16 degrees of freedom.
    """
    rng, used = np.random.default_rng(seed), []
    for _ in range(8):
        x = rng.lognormal(0, 1, 300)
        y = x + 0.5 * x * rng.standard_t(3, 300)
        model = km.AdditiveRegressor().fit(np.column_stack([x, np.log(x), x**2]), y)
        used.append(model.edf_[0] - 1)
    assert np.median(used) < 10


@pytest.mark.parametrize("jump", [0.0, 1.5])
def test_a_value_that_many_rows_share_may_lie_off_the_curve(seed, jump):
    """Half of the rows hold zero, and the values begin right beside it."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(4000) < 0.5, 0.0, 0.01 + rng.gamma(2.0, 1.0, 4000))
    y = np.sin(x) + jump * (x == 0) + 0.5 * rng.normal(size=4000)
    model = km.AdditiveRegressor().fit(x[:, None], y)
    first = model.predictor_.books[0].nodes[1]  # zero's own bin is the first
    beside, zero = model.predict([[first], [0.0]])
    # Beside zero some hundred rows with a standard deviation of one half determine the curve.
    assert abs((zero - beside) - (jump - np.sin(first))) < 0.3


def test_steps_are_followed_and_smooth_effects_stay_smooth(seed, monkeypatch):
    """The error at steps is lower than without a curve for them; a wave and a line stay."""
    rng = np.random.default_rng(seed)
    X, new = rng.random((2, 3000, 3))
    y = np.floor(4 * X[:, 0]) % 2 + np.sin(6 * X[:, 1]) + X[:, 2] + 0.3 * rng.normal(size=3000)
    model = km.AdditiveRegressor().fit(X, y)
    monkeypatch.setattr(bases, "CURVES", replace(bases.CURVES, rough_cost=np.inf))
    smooth = km.AdditiveRegressor().fit(X, y)
    true = np.floor(4 * new[:, 0]) % 2
    errors = [np.std(fit.eval_terms(new)[:, 0] - true) for fit in (model, smooth)]
    assert errors[0] < 0.85 * errors[1]
    after, before = (fit.predictor_.terms for fit in (model, smooth))
    assert after[0].edf[0] > before[0].edf[0] + 5
    for j in (1, 2):
        assert after[j].edf[0] == pytest.approx(before[j].edf[0], abs=0.5)
