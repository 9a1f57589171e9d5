"""GAMs of tables with many columns: they neither fit the noise nor lose to a linear model."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeCV

import kernelmaps as km
from kernelmaps.models.gam import design
from kernelmaps.models.rows.basis import TermBasis
from kernelmaps.models.solvers import pirls, reml
from kernelmaps.models.solvers.reml import Penalties, entering_smoothing
from kernelmaps.models.solvers.smoothing_prior import PriorParameterisation


def table(rng, n, p, effect=1.0):
    """y = effect · x_0 + noise of variance one."""
    X = rng.normal(size=(n, p))
    return X, effect * X[:, 0] + rng.normal(size=n)


def error(model, effect, rng, p):
    """Root mean square of the difference from the true function on new rows."""
    new = rng.normal(size=(1000, p))
    return np.sqrt(np.mean((model.predict(new) - effect * new[:, 0]) ** 2))


def p_values(model):
    return np.array([term.p_value[0] for term in model.predictor_.terms])


@pytest.fixture(scope="module")
def half_as_many_columns_as_rows():
    """Five fits of 100 rows and 50 columns, one of which has an effect."""
    rng = np.random.default_rng(5)
    fits = []
    for _ in range(5):
        X, y = table(rng, 100, 50)
        model = km.AdditiveRegressor().fit(X, y)
        fits.append((model, error(model, 1.0, rng, 50)))
    return fits


def test_the_dispersion_is_not_explained_away(half_as_many_columns_as_rows):
    """Five estimates of a variance of one, each with about 90 degrees of freedom."""
    dispersion = np.mean([model.dispersion_[0] for model, _ in half_as_many_columns_as_rows])
    assert abs(dispersion - 1) < 0.3


def test_the_effect_is_found_among_many_columns(half_as_many_columns_as_rows):
    """The mean alone has an error of one."""
    assert np.mean([error for _, error in half_as_many_columns_as_rows]) < 0.6
    assert all(p_values(model)[0] < 0.01 for model, _ in half_as_many_columns_as_rows)


def test_columns_without_an_effect_are_rarely_significant(half_as_many_columns_as_rows):
    p = np.concatenate([p_values(model)[1:] for model, _ in half_as_many_columns_as_rows])
    assert np.mean(p < 0.05) <= 0.10


def test_noise_of_as_many_columns_as_rows_stays_noise():
    rng = np.random.default_rng(11)
    X, y = table(rng, 100, 100, effect=0.0)
    model = km.AdditiveRegressor().fit(X, y)
    assert model.edf_[0] < 50
    assert model.dispersion_[0] > 0.5
    assert error(model, 0.0, rng, 100) < 0.5


def test_many_rows_leave_the_prior_nothing_to_say():
    """With 250 rows for each smoothing parameter, edf are those without it to a few per cent."""
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(2000, 4))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + rng.normal(size=2000)
    with_prior = km.AdditiveRegressor().fit(X, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Penalties, "prior_of", _without_prior)
        without = km.AdditiveRegressor().fit(X, y)
    assert not np.array_equal(with_prior.edf_, without.edf_)  # the prior was there
    assert np.std(with_prior.predict(X) - without.predict(X)) < 0.02


def _without_prior(self, free, problem):
    return PriorParameterisation(np.zeros(self.count), np.zeros(self.count, bool), 0.0)


def test_the_prior_has_the_derivatives_of_its_density(seed):
    """By finite differences along each coordinate; so is ρ recovered."""
    rng = np.random.default_rng(seed)
    null = np.array([True, False, True, True, False])
    prior = PriorParameterisation(rng.normal(size=5), null, 3.0, 20.0, 0.4)
    rho, square = rng.normal(size=5), rng.normal(size=(5, 5))
    square = square @ square.T
    theta = prior.to_theta(rho)
    np.testing.assert_allclose(prior.to_rho(theta), rho)
    assert theta[:5][null].max() == 0

    def value(theta):
        rho, common = prior.to_rho(theta), np.exp(-0.5 * theta[-1])
        sigma = np.exp(-0.5 * (rho - prior.offset))
        costs = np.where(null, 1.0, 0.4) * np.log1p(20 * sigma) + 3 * sigma
        of_common = np.log1p(20 * common) + 3 * common
        density = costs.sum() - null.sum() * of_common + np.log1p(3 * common)
        return density + 0.5 * rho @ square @ rho

    assert prior.penalised_criterion(0.5 * rho @ square @ rho, rho) == pytest.approx(value(theta))
    gradient = prior.penalised_gradient(square @ rho, rho)
    hessian_of = partial(summed_by_block, square)
    hessian = prior.penalised_hessian(hessian_of, rho, np.ones(6, bool))
    step = 1e-4 * np.eye(6)
    for i in range(6):
        up, down = value(theta + step[i]), value(theta - step[i])
        assert gradient[i] == pytest.approx((up - down) / 2e-4, rel=1e-5, abs=1e-5)
        second = (up - 2 * value(theta) + down) / 1e-8
        assert hessian[i, i] == pytest.approx(second, rel=1e-3, abs=1e-3)
    np.testing.assert_allclose(hessian, hessian.T)
    for moving in rng.random((20, 6)) < 0.5:
        some = prior.penalised_hessian(hessian_of, rho, moving)
        np.testing.assert_allclose(some, hessian[np.ix_(moving, moving)])


def summed_by_block(matrix, blocks):
    """Sums over blocks of rows and columns."""
    members = np.arange(blocks.count)[:, None] == blocks.index
    return members @ matrix @ members.T


def weak_effects(rng, n):
    """Small linear effects of all columns, some of them zeros and ones."""
    X = rng.normal(size=(n, 8))
    X[:, 5:] = X[:, 5:] > 0
    return X, (X - [0, 0, 0, 0, 0, 0.5, 0.5, 0.5]) @ [0.4, 0.4, -0.4, 0.2, 0, 0.8, 0.8, 0.4]


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_small_linear_effects_cost_no_more_than_in_a_linear_model(loss):
    """Not worse than ridge or logistic regression, by more than two standard errors and 0.01."""
    rng, differences = np.random.default_rng(4), []
    for _ in range(6):
        (X, eta), (new, true) = weak_effects(rng, 150), weak_effects(rng, 1000)
        if loss == "log_loss":
            y = rng.random(150) < 1 / (1 + np.exp(-eta))
            models = km.AdditiveClassifier(), LogisticRegression()
            scores = [model.fit(X, y).decision_function(new) for model in models]
        else:
            y = eta + 2 * rng.normal(size=150)
            models = km.AdditiveRegressor(), RidgeCV(np.geomspace(0.1, 1000, 20))
            scores = [model.fit(X, y).predict(new) for model in models]
        ours, theirs = (np.corrcoef(score, true)[0, 1] for score in scores)
        differences.append(ours - theirs)
    assert np.mean(differences) > -0.01 - 2 * np.std(differences) / np.sqrt(6)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_effects_of_collinear_columns_that_cancel_are_found(loss, seed):
    """y depends on the difference of two columns, which have a correlation of 0.999."""
    rng = np.random.default_rng(seed)
    common, difference, noise = rng.normal(size=(3, 750))
    X = np.column_stack([common, common + 0.05 * difference, rng.normal(size=750)])
    y = difference + 0.3 * noise
    train, new = slice(0, 250), slice(250, None)
    if loss == "log_loss":
        model, y, lowest = km.AdditiveClassifier(), y > 0, 0.8  # the true coefficients have 0.91
    else:
        model, lowest = km.AdditiveRegressor(), 0.7  # and 0.92
    assert model.fit(X[train], y[train]).score(X[new], y[new]) > lowest


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_screened_terms_are_those_that_all_of_them_lead_to(monkeypatch, loss):
    """Curves that enter by their gain give the predictions of a model that starts with all."""
    rng = np.random.default_rng(8)
    X, new = rng.uniform(-1, 1, size=(2, 600, 25))

    def effect(X):
        return np.sin(4 * X[:, 0]) + X[:, 1] ** 2 - X[:, 2]

    y = effect(X) + 0.5 * rng.normal(size=600)
    if loss == "poisson":
        y = rng.poisson(np.exp(effect(X)))
    full = km.AdditiveRegressor(loss=loss).fit(X, y)
    options = pirls.PirlsOptions(screen_above=50)
    monkeypatch.setattr(pirls, "PIRLS", options)
    screened = km.AdditiveRegressor(loss=loss).fit(X, y)
    assert not np.array_equal(full.edf_, screened.edf_)
    spread = np.std(full.eval_terms(new).sum(axis=1))
    change = np.std(full.eval_terms(new).sum(axis=1) - screened.eval_terms(new).sum(axis=1))
    assert change < 0.1 * spread
    assert screened.edf_[0] < full.edf_[0] + 2


def test_a_term_enters_for_its_evidence_alone():
    """A gradient of some standard errors brings a curve in, one within them does not."""
    penalties = Penalties.from_bases([_two_functions(), _two_functions()])
    rho, n = np.full(2, 30.0), 1000.0
    gradient = np.sqrt(n) * np.array([0.0, 5.0, 0.5, 0.5, 0.5])
    entering = entering_smoothing(penalties, rho, np.zeros(5), gradient, n, n, 1.0)
    assert entering[0] < np.log(n)
    assert entering[1] == 30.0
    # A function that is in the model stays as it is, close to where its evidence puts it.
    beta = -gradient / (n + penalties.diagonal(entering))
    remaining = gradient + n * beta
    again = entering_smoothing(penalties, entering, beta, remaining, n, n, 1.0)
    np.testing.assert_array_equal(again, entering)


def _two_functions():
    return TermBasis(np.eye(2), np.array([1.0, 4.0]), np.zeros(2, int))


def test_more_columns_than_rows_fit():
    rng = np.random.default_rng(4)
    X, y = table(rng, 100, 200, effect=3.0)
    model = km.AdditiveRegressor().fit(X, y)
    assert p_values(model)[0] < 1e-6
    assert error(model, 3.0, rng, 200) < 1.5


def test_a_fit_that_follows_the_noise_warns():
    rng = np.random.default_rng(1)
    X, y = table(rng, 40, 20)
    with pytest.warns(UserWarning, match="effective degrees of freedom for 40 rows"):
        km.AdditiveRegressor(smoothing=1e-6).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        km.AdditiveRegressor().fit(X, y)


def test_more_columns_than_smoothing_parameters_can_be_estimated_for_are_refused(monkeypatch):
    rng = np.random.default_rng(1)
    monkeypatch.setattr(design, "MAX_TERMS", 5)
    X, y = table(rng, 30, 6)
    with pytest.raises(ValueError, match=r"6 columns have terms.*AdditiveSVR"):
        km.AdditiveRegressor().fit(X, y)
    km.AdditiveRegressor(terms=[0, 1]).fit(X, y)


def test_pairs_are_searched_among_the_strongest_columns(monkeypatch):
    from kernelmaps.models.gam import interactions

    rng = np.random.default_rng(6)
    X = rng.normal(size=(1500, 8))
    y = X[:, 2] + X[:, 5] + X[:, 2] * X[:, 5] + 0.3 * rng.normal(size=1500)
    options = interactions.PairSearch(max_columns=2)
    monkeypatch.setattr(interactions, "PAIR_SEARCH", options)
    model = km.AdditiveRegressor(interactions="auto").fit(X, y)
    pairs = [term.columns for term in model.predictor_.terms if len(term.columns) == 2]
    assert pairs == [(2, 5)]


@pytest.mark.parametrize("quantile", [0.5, 0.8])
def test_quantiles_of_few_rows_follow_clear_effects(quantile):
    """From a constant, one in four of such fits nearly stayed one: few rows are near it."""
    spread = []
    for k in range(5):
        rng = np.random.default_rng([k, int(10 * quantile)])
        X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.gamma(2.0, size=60)})
        X["c"] = rng.choice(["u", "v", "w"], 60)
        eta = np.sin(2 * X["a"]) + np.log1p(X["b"]) + 0.8 * (X["c"] == "v")
        y = eta.to_numpy() + 0.3 * rng.normal(size=60)
        model = km.AdditiveRegressor(km.losses.Quantile(quantile), n_jobs=1).fit(X, y)
        spread.append(model.predict(X).std() / y.std())
    # The effects have 95 % of the standard deviation, of which smoothing takes some.
    assert min(spread) > 0.6


def test_a_search_for_smoothing_parameters_that_fails_is_reported(seed, monkeypatch):
    """Steps uphill lower no criterion."""
    X, y = table(np.random.default_rng(seed), 300, 3, effect=3.0)
    for model, targets in ((km.AdditiveRegressor(), y), (km.AdditiveClassifier(), y > 0)):
        with warnings.catch_warnings(action="error"):
            model.fit(X, targets)
        with monkeypatch.context() as patch:
            patch.setattr(reml, "_newton_step", lambda hessian, gradient: np.sign(gradient))
            with pytest.warns(ConvergenceWarning, match="stopped far from a minimum of the REML"):
                model.fit(X, targets)
