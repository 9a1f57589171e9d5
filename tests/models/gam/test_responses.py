"""Losses of counts, amounts and shares with an estimated parameter, and of ordered classes."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats
from scipy.optimize import minimize_scalar
from sklearn.metrics import log_loss

import kernelmaps as km
from kernelmaps import losses
from kernelmaps.models import losses as losses_module
from kernelmaps.models import tweedie
from kernelmaps.models.losses import Gamma, Poisson, cdf_below

NUMBERS = [
    (losses.NegativeBinomial(2.5), np.array([0.0, 1.0, 4.0, 30.0])),
    (losses.Tweedie(1.4, 0.7), np.array([0.0, 0.2, 3.0, 20.0])),
    (losses.Binomial(), np.array([0.0, 1.0])),
    (losses.Beta(6.0), np.array([0.01, 0.3, 0.7, 0.99])),
]


def table(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.sin(6 * X[:, 0]) + X[:, 1] ** 2, rng


def draw(name, f, rng):
    """Targets with θ = 2, with power 1.5, and with precision 8."""
    mean = np.exp(f)
    if name == "beta":
        return rng.beta(8 * special.expit(f), 8 * special.expit(-f))
    if name == "negative_binomial":
        return rng.negative_binomial(2, 2 / (2 + mean)).astype(float)
    return tweedie.TweedieDistribution(mean, np.ones(len(f)), 1.5).rvs(rng)


# -- formulas -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "y"), NUMBERS, ids=lambda item: type(item).__name__)
def test_derivatives_are_those_of_the_value(loss, y):
    """The gradient by differences; the expected curvature by the mean of the gradient's square.

    −log-likelihoods ℓ/φ have E[ℓ''] = E[ℓ'²]/φ.
    """
    h = 1e-5
    for eta in (-1.0, 0.3, 2.0):
        at = np.full(len(y), eta)
        gradient = loss.derivatives(y, at)[0]
        slope = (loss.value(y, at + h) - loss.value(y, at - h)) / (2 * h)
        np.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-7)
        drawn = loss.observation_distribution(
            np.full(50_000, eta), np.zeros(50_000), loss.dispersion, np.inf
        ).rvs(random_state=np.random.default_rng(0))
        squares = loss.derivatives(drawn, np.full(len(drawn), eta))[0] ** 2 / loss.dispersion
        error = squares.std() / np.sqrt(len(squares))
        expected = loss.expected_curvature(drawn[:1], np.array([eta]), loss.dispersion)[0]
        assert abs(squares.mean() - expected) < 4 * error
        # The smallest loss, a minimum.
        assert (loss.value(y, at) >= loss.saturated_value(y) - 1e-12).all()
        best = [
            minimize_scalar(
                lambda f, k=k: loss.value(y[k : k + 1], np.array([f]))[0],
                bounds=(-30, 10),
                method="bounded",
            ).fun
            for k in range(len(y))
        ]
        np.testing.assert_allclose(loss.saturated_value(y), best, atol=1e-4)


def test_negative_binomial_is_that_of_scipy_and_tends_to_poisson():
    y, eta = np.arange(2000.0), np.full(2000, 1.2)
    loss = losses.NegativeBinomial(2.5)
    likelihood = -(loss.value(y, eta) + loss.base_measure(y))
    exact = stats.nbinom(2.5, 2.5 / (2.5 + np.exp(1.2)))
    np.testing.assert_allclose(likelihood, exact.logpmf(y), rtol=1e-10, atol=1e-8)
    assert np.exp(likelihood).sum() == pytest.approx(1, abs=1e-12)
    few = np.arange(20.0)
    limit, poisson = losses.NegativeBinomial(1e8), Poisson()
    for near, exact in zip(
        (limit.value(few, eta[:20]), *limit.derivatives(few, eta[:20]), limit.saturated_value(few)),
        (
            poisson.value(few, eta[:20]),
            *poisson.derivatives(few, eta[:20]),
            poisson.saturated_value(few),
        ),
        strict=True,
    ):
        np.testing.assert_allclose(near, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("power", [1.05, 1.3, 1.5, 1.9])
def test_tweedie_densities_integrate_to_one(power):
    """Over log y, with the probability of zero; so do y times the density to the mean."""
    mean, dispersion = 2.0, 0.6
    u = np.linspace(-150 if power > 1.8 else -30, 5, 200_001)
    y, ones = np.exp(u), np.ones(len(u))
    density = np.exp(
        tweedie.TweedieDistribution(mean * ones, dispersion * ones, power).logpdf(y) + u
    )
    law = tweedie.TweedieDistribution(np.array([mean]), np.array([dispersion]), power)
    assert law.zeros[0] + integrate.trapezoid(density, u) == pytest.approx(1, abs=1e-5)
    assert integrate.trapezoid(y * density, u) == pytest.approx(mean, rel=1e-5)
    variance = integrate.trapezoid((y - mean) ** 2 * density, u) + mean**2 * law.zeros[0]
    assert variance == pytest.approx(dispersion * mean**power, rel=1e-5)
    for q in (0.6, 0.9, 0.99):
        end = law.ppf(q)
        assert law.cdf(end)[0] == pytest.approx(q, abs=1e-5)
        below = integrate.trapezoid(density[y <= end[0]], u[y <= end[0]])
        assert law.zeros[0] + below == pytest.approx(q, abs=1e-3)


def test_the_series_is_the_sum_of_its_terms():
    """On the grid, beyond it, and where one term is all."""
    for a in (0.05, 1.0, 20.0):
        t = (1 + a) * np.log(np.geomspace(1e-3, 1500, 40)) + a * np.log(a)
        j = np.arange(1, 3000)
        terms = t[:, None] * j - special.gammaln(j + 1) - special.gammaln(j * a)
        np.testing.assert_allclose(
            tweedie._log_series(t, a), special.logsumexp(terms, axis=1), rtol=1e-5, atol=2e-5
        )


def test_powers_near_the_ends_are_poisson_and_gamma():
    """Losses and derivatives of the powers 1 and 2, up to what no η is in."""
    eta, y = np.linspace(-2, 2, 9), np.full(9, 3.0)
    for power, limit in ((1 + 1e-7, Poisson()), (2 - 1e-7, Gamma())):
        loss = losses.Tweedie(power)
        value, exact = loss.value(y, eta), limit.value(y, eta)
        np.testing.assert_allclose(value - value[0], exact - exact[0], atol=1e-5)
        np.testing.assert_allclose(loss.derivatives(y, eta)[0], limit.derivatives(y, eta)[0],
                                   atol=1e-5)  # fmt: skip


def test_probabilities_below_a_target_leave_out_its_mass():
    y = np.array([0.0, 1.0])
    for law, expected in (
        (stats.poisson(np.ones(2)), [0.0, np.exp(-1)]),
        (stats.gamma(np.ones(2)), stats.gamma(1).cdf(y)),
    ):
        np.testing.assert_allclose(cdf_below(law, y, law.cdf(y)), expected)
    law = tweedie.TweedieDistribution(np.ones(2), np.ones(2), 1.5)
    np.testing.assert_allclose(cdf_below(law, y, law.cdf(y)), [0.0, law.cdf(y)[1]])


# -- fits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameter", "true", "tolerance"),
    [
        ("negative_binomial", "theta", 2.0, 0.57), ("tweedie", "power", 1.5, 0.1),
        ("beta", "precision", 8.0, 1.4),
    ],
)  # fmt: skip
def test_a_parameter_is_the_same_everywhere(seed, name, parameter, true, tolerance, tmp_path):
    X, f, rng = table(seed, 2000)
    y = draw(name, f, rng)
    model = km.AdditiveRegressor(name).fit(X, y)
    estimate = getattr(model.loss_, parameter)
    assert abs(estimate - true) < tolerance
    assert getattr(model._loss, parameter) is None
    assert f"{parameter}: {estimate:.4g}" in str(model.summary())
    # The same rows block by block, and with the estimate given.
    blocks = km.AdditiveRegressor(name).fit([(X[:1500], y[:1500]), (X[1500:], y[1500:])])
    assert getattr(blocks.loss_, parameter) == pytest.approx(estimate, abs=2e-3)
    np.testing.assert_allclose(blocks.predict(X), model.predict(X), rtol=0.01)
    assert blocks.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-4)
    assert blocks.null_deviance_ == pytest.approx(model.null_deviance_, rel=1e-2)
    given = km.AdditiveRegressor(model.loss_).fit(X, y)
    np.testing.assert_allclose(given.predict(X), model.predict(X), rtol=0.01)
    assert model.aic_ - given.aic_ == pytest.approx(2, abs=0.5)  # one parameter less
    # The likelihood is that of the distribution, and nearly the largest.
    loss, mean = model.loss_, model.predict(X)
    if name == "tweedie":
        exact = tweedie.TweedieDistribution(mean, model.dispersion_[0] + 0 * mean, estimate).logpdf(
            y
        )
    elif name == "beta":
        exact = stats.beta(estimate * mean, estimate * (1 - mean)).logpdf(y)
    else:
        exact = stats.nbinom(estimate, estimate / (estimate + mean)).logpmf(y)
    assert model.log_likelihood_ == pytest.approx(exact.sum(), rel=1e-3)  # of bins
    other = type(loss)(estimate + 2 * tolerance)
    assert km.AdditiveRegressor(other).fit(X, y).log_likelihood_ < model.log_likelihood_
    # Files, copies and quantile residuals know the estimate.
    km.save(model, tmp_path / "model.kmap")
    loaded = km.load(tmp_path / "model.kmap")
    assert loaded.loss == name
    assert loaded.loss_ == loss
    new, f_new, rng = table(seed + 1, 2000)
    y_new, (low, high) = draw(name, f_new, rng), loaded.predict_interval(new, 0.9).T
    assert 0.87 < np.mean((y_new >= low) & (y_new <= high)) < 0.96
    residuals = model.check(X, y).quantile_residuals
    assert stats.kstest(residuals, "norm").pvalue > 1e-3


def test_poisson_counts_have_a_large_theta(seed):
    X, f, rng = table(seed, 2000)
    y = rng.poisson(np.exp(f)).astype(float)
    model = km.AdditiveRegressor("negative_binomial").fit(X, y)
    poisson = km.AdditiveRegressor(losses.Poisson(1.0)).fit(X, y)
    assert model.loss_.theta > 10
    np.testing.assert_allclose(model.predict(X), poisson.predict(X), rtol=0.05)


def test_trials_are_repeated_rows(seed):
    """Of shares: the fit, its deviance up to that of the trials, and predictions of successes."""
    X, f, rng = table(seed, 2100)  # more than are fitted at their values
    trials = rng.integers(1, 6, len(f))
    y = rng.binomial(trials, special.expit(f))
    model = km.AdditiveRegressor("binomial").fit(X, y, exposure=trials)
    rows = np.repeat(np.arange(len(f)), trials)
    labels = (np.arange(len(rows)) - np.repeat(np.cumsum(trials) - trials, trials)) < y[rows]
    repeated = km.AdditiveClassifier().fit(X[rows], labels)
    np.testing.assert_allclose(model._scores(X), repeated._scores(X), atol=1e-6)
    np.testing.assert_allclose(model.edf_, repeated.edf_, rtol=1e-6)
    # The deviance is that of binomial counts, as in R: zero where each row has its own share.
    p = repeated.predict_proba(X)[:, 1]

    def deviance(p):
        terms = special.xlogy(y, p) + special.xlogy(trials - y, 1 - p)
        return -2 * terms.sum()

    smallest = deviance(y / trials)
    null = deviance(np.full(len(y), y.sum() / trials.sum())) - smallest
    # Scores of the fit are those at the means of bins.
    assert model.deviance_ == pytest.approx(deviance(p) - smallest, rel=1e-3)
    assert model.null_deviance_ == pytest.approx(null, rel=1e-6)
    assert model.score(X, y, exposure=trials) == pytest.approx(model.deviance_explained_, abs=1e-3)
    shares = km.AdditiveRegressor("binomial", weights="frequency").fit(X, y / trials, trials)
    np.testing.assert_allclose(shares._scores(X), model._scores(X), atol=1e-6)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, trials=trials)
    streamed = km.AdditiveRegressor("binomial").fit(
        [frame[:900], frame[900:]], "y", exposure="trials"
    )
    np.testing.assert_allclose(streamed._scores(frame[[*"abc"]]), model._scores(X), atol=1e-3)
    np.testing.assert_allclose(model.predict(X, exposure=trials), trials * p, rtol=1e-6)
    low, high = model.predict_interval(X, 0.9, exposure=trials).T
    assert 0.9 < np.mean((y >= low) & (y <= high)) < 0.99  # few trials: ends have probabilities
    residuals = model.check(X, y, exposure=trials, random_state=seed).quantile_residuals
    assert stats.kstest(residuals, "norm").pvalue > 1e-3
    mean, std = model.predict(X[:5], return_std=True, exposure=trials[:5])
    share, error = model.predict(X[:5], return_std=True)
    np.testing.assert_allclose((mean, std), (trials[:5] * share, trials[:5] * error))


def test_weights_of_trials_are_repeated_rows(seed):
    X, f, rng = table(seed, 300)
    trials, counts = rng.integers(1, 6, len(f)), rng.integers(1, 4, len(f))
    y, each = rng.binomial(trials, special.expit(f)), np.repeat(np.arange(len(f)), counts)
    model = km.AdditiveRegressor("binomial").fit(X, y, counts, exposure=trials)
    repeated = km.AdditiveRegressor("binomial").fit(X[each], y[each], exposure=trials[each])
    check = model.check(X, y, counts, exposure=trials)
    of_each = repeated.check(X[each], y[each], exposure=trials[each])
    leverage = np.bincount(each, of_each.leverage)
    np.testing.assert_allclose(check.leverage, leverage, rtol=1e-4)


def test_a_mixture_of_binomials_has_the_variance_of_both():
    trials, eta, error = np.full(3, 40), np.array([-1.0, 0.0, 2.0]), np.array([0.0, 0.2, 0.1])
    law, y = losses_module.BinomialMixture(trials, eta, error), np.arange(41)[:, None]
    p, mass = special.expit(eta), law.pmf(y)
    np.testing.assert_allclose(mass.sum(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(mass[:, 0], stats.binom.pmf(y[:, 0], 40, p[0]), rtol=1e-10)
    mean = (y * mass).sum(axis=0)
    variance = ((y - mean) ** 2 * mass).sum(axis=0)
    both = 40 * p * (1 - p) + (40 * p * (1 - p) * error) ** 2
    np.testing.assert_allclose(variance, both, rtol=0.03)  # to second order in the error
    for q in (0.05, 0.5, 0.95):
        end = law.ppf(q)
        assert (law.cdf(end) >= q).all()
        assert (law.cdf(end - 1) < q).all()


def test_models_with_other_estimates_are_not_compared(seed):
    X, f, rng = table(seed, 500)
    y = draw("negative_binomial", f, rng)
    small, large = (km.AdditiveRegressor("negative_binomial", terms=t).fit(X, y)
                    for t in ([1], [0, 1]))  # fmt: skip
    with pytest.raises(ValueError, match=r"different estimates.* Fit all of them with loss=Neg"):
        km.anova(small, large)
    small = km.AdditiveRegressor(large.loss_, terms=[1]).fit(X, y)
    assert km.anova(small, km.AdditiveRegressor(large.loss_).fit(X, y)).records[1]["p_value"] < 1e-3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.NegativeBinomial(0), "theta must be a positive number or None"),
        (lambda: losses.Tweedie(2.0), "power must be between 1 and 2, or None"),
        (lambda: losses.Tweedie(1.5, -1), "dispersion must be a positive number or None"),
        (lambda: fit("negative_binomial", [1, -1, 2]), "needs counts: whole numbers y >= 0"),
        (lambda: fit("negative_binomial", [1, 0.5, 2]), "needs counts: whole numbers y >= 0"),
        (lambda: fit("negative_binomial", [0, 0, 0]), "needs some y > 0"),
        (lambda: fit("tweedie", [1, -0.5, 2]), "'tweedie' needs y >= 0"),
        (lambda: losses.Beta(-1), "precision must be a positive number or None"),
        (lambda: fit("beta", [0.1, 0.0, 0.5]), "needs shares 0 < y < 1.* for loss='binomial'"),
        (lambda: fit("binomial", [0.1, 1.5, 0.5]), "needs shares 0 <= y <= 1"),
        (lambda: fit("binomial", [1, 3, 2], [2, 2, 2]), "trials as exposure, which are at least y"),
        (lambda: fit("binomial", [0, 1, 1], [0, 1, 2]), "one for each row; row 0 has 0"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def fit(loss, y, exposure=None):
    X = np.arange(len(y), dtype=float)[:, None]
    return km.AdditiveRegressor(loss).fit(X, y, exposure=exposure)


# -- ordered classes ------------------------------------------------------------------------------

CUTS = np.array([0.0, 1.0, 3.0])


def ordered(seed, n):
    """Rows, their classes, and the true probabilities."""
    X, f, rng = table(seed, n)
    f = 3 * f
    p = -np.diff(special.expit(f[:, None] - CUTS), axis=1, prepend=1.0, append=0.0)
    return X, np.digitize(f + rng.logistic(size=n), CUTS), p


def test_ordinal_derivatives_and_probabilities():
    """By differences; probabilities are those of the likelihood, and sum to one."""
    loss, eta, h = losses.Ordinal((0.0, 0.7, 2.5)), np.linspace(-4, 6, 11), 1e-5
    total = np.zeros(len(eta))
    for k in range(4):
        y = np.full(len(eta), float(k))
        gradient, curvature = loss.derivatives(y, eta)
        slope = (loss.value(y, eta + h) - loss.value(y, eta - h)) / (2 * h)
        bend = (loss.derivatives(y, eta + h)[0] - loss.derivatives(y, eta - h)[0]) / (2 * h)
        np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(curvature, bend, rtol=1e-6, atol=1e-8)
        p = loss.probabilities(eta[:, None])[:, k]
        np.testing.assert_allclose(np.exp(-loss.value(y, eta)), p, rtol=1e-10)
        law = loss.observation_distribution(eta, 0 * eta, 1.0, np.inf)
        np.testing.assert_allclose(law.cdf(y) - law.cdf(y - 1), law.pmf(y), atol=1e-15)
        np.testing.assert_allclose(law.pmf(y), p)
        total += p
    np.testing.assert_allclose(total, 1, rtol=1e-14)
    assert losses.Ordinal([0, 1]) == losses.Ordinal((0.0, 1.0))


def test_ordered_classes(seed, tmp_path):
    """Thresholds are found, and probabilities are better than those of one against the rest."""
    X, y, _ = ordered(seed, 3000)
    model = km.AdditiveClassifier("ordinal").fit(X, y)
    error = np.abs(np.array(model.loss_.thresholds) - CUTS)
    assert error.max() < 0.4  # standard errors of about 0.1
    new, labels, p_new = ordered(seed + 1, 3000)
    rest = km.AdditiveClassifier().fit(X, y)
    excess = [log_loss(labels, q) - log_loss(labels, p_new)
              for q in (model.predict_proba(new), rest.predict_proba(new))]  # fmt: skip
    assert excess[0] < excess[1]
    assert excess[0] < 0.01  # half of the edf over the rows, and noise of the same size
    assert model.decision_function(X).shape == (3000,)
    assert model.log_likelihood_ == pytest.approx(
        -log_loss(y, model.predict_proba(X), normalize=False), rel=1e-3
    )  # of bins
    shares = np.bincount(y) / len(y)
    assert model.null_deviance_ == pytest.approx(-2 * np.bincount(y) @ np.log(shares), rel=1e-6)
    # Quantile residuals are normal, and the summary, files and other rows know the thresholds.
    residuals = model.check(X, y).quantile_residuals
    assert stats.kstest(residuals, "norm").pvalue > 1e-3
    assert f"thresholds: 0, {model.loss_.thresholds[1]:.4g}" in str(model.summary())
    blocks = km.AdditiveClassifier("ordinal").fit([(X[:1000], y[:1000]), (X[1000:], y[1000:])])
    np.testing.assert_allclose(blocks.predict_proba(X), model.predict_proba(X), atol=1e-3)
    words = np.array(["never", "at times", "often", "always"])
    named = pd.Series(pd.Categorical(words[y], words, ordered=True))
    by_name = km.AdditiveClassifier("ordinal").fit(X, named)
    assert by_name.classes_.tolist() == words.tolist()
    km.save(by_name, tmp_path / "model.kmap")
    loaded = km.load(tmp_path / "model.kmap")
    assert loaded.loss_ == by_name.loss_
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), words[model.predict(X)])
    assert loaded.score(X, named) == model.score(X, y)


def test_two_ordered_classes_have_the_log_loss(seed):
    X, y, _ = ordered(seed, 400)
    first = km.AdditiveClassifier("ordinal").fit(X, y > 1)
    second = km.AdditiveClassifier().fit(X, y > 1)
    assert first.loss_.thresholds == (0.0,)
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-8)
    assert first.deviance_ == pytest.approx(second.deviance_, rel=1e-8)


def test_bad_orders_are_refused(tmp_path):
    X, y, _ = ordered(0, 60)
    levels = pd.Series(pd.Categorical(y, [0, 1, 2, 3, 9], ordered=True))
    with pytest.raises(ValueError, match=r"no row has the level 9 of y.*remove_unused_categories"):
        km.AdditiveClassifier("ordinal").fit(X, levels)
    with pytest.raises(ValueError, match="y has only one class"):
        km.AdditiveClassifier("ordinal").fit(X, np.zeros(60))
    for wrong in ((0.0, 1.0, 0.5), (1.0, 2.0), (), 1.0, "high"):
        with pytest.raises(ValueError, match="Ordinal: thresholds must be None, or 0 and asc"):
            losses.Ordinal(wrong)
    with pytest.raises(ValueError, match="has other thresholds than y has classes, 4"):
        km.AdditiveClassifier(losses.Ordinal((0.0, 1.0))).fit(X, y)


def test_words_in_the_order_of_the_alphabet_are_said(seed):
    rng = np.random.default_rng(seed)
    x = rng.random(200)
    codes = np.digitize(3 * x + rng.logistic(size=200), [1.0, 2.0])
    y = np.array(["low", "middle", "high"])[codes]
    with pytest.warns(UserWarning, match="high < low < middle"):
        km.AdditiveClassifier("ordinal").fit(x[:, None], y)
    ordered = pd.Categorical(y, ["low", "middle", "high"], ordered=True)
    model = km.AdditiveClassifier("ordinal").fit(x[:, None], pd.Series(ordered))
    assert model.classes_.tolist() == ["low", "middle", "high"]


def test_a_variance_of_several_classes_is_in_its_interval(seed):
    """The scores of three classes share the variance of a factor; the true one is 0.6²·2/3."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 30, 3000)
    scores = 0.6 * rng.normal(size=(30, 3))[group]
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    table = pd.DataFrame({"group": pd.Categorical(group.astype(str))})
    (component,) = km.AdditiveClassifier().fit(table, y).summary().variance_components
    assert component["low"] < component["sd"] < component["high"]
    assert component["low"] < 0.6 * np.sqrt(2 / 3) < component["high"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("spread", [0.0, 1e-6])
def test_equal_shares_are_fitted_without_warnings(spread):
    x = np.linspace(0, 1, 100)
    model = km.AdditiveRegressor("beta").fit(x[:, None], 0.3 + spread * x)
    np.testing.assert_allclose(model.predict(x[:, None]), 0.3, atol=1e-6)
