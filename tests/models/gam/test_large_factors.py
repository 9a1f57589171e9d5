"""Factors of more than 254 levels: random intercepts, whose levels are eliminated."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.models.gam import design, training_rows
from kernelmaps.models.gam.inference import mixture_test, random_effects_test
from kernelmaps.models.gam.levels import variance_test
from kernelmaps.models.losses import SquaredError
from kernelmaps.models.rows.basis import LevelBasis, TermBasis
from kernelmaps.models.rows.term_rows import TermRows
from kernelmaps.models.solvers.pirls import fit_penalised

SITES = 300


def sites_of(code):
    return [f"s{k}" for k in code]


def table(seed, n_rows=3000, n_sites=SITES, sd=1.0, noise=0.5):
    """Rows of sites of three rows or more with effects, and a number that depends on the site."""
    rng = np.random.default_rng(seed)
    share = rng.gamma(0.5, size=n_sites)
    further = rng.choice(n_sites, n_rows - 3 * n_sites, p=share / share.sum())
    code = rng.permutation(np.concatenate([np.repeat(np.arange(n_sites), 3), further]))
    x = np.round(rng.normal(size=n_sites)[code] + rng.normal(size=n_rows), 0).clip(-3, 3)
    effect = sd * rng.normal(size=n_sites)
    y = 2 + effect[code] + 0.3 * x + noise * rng.normal(size=n_rows)
    return pd.DataFrame({"site": sites_of(code), "x": x}), y, effect, code


def is_eliminated(model):
    return model.predictor_.posterior.levels is not None


def test_balanced_one_way_layout_has_the_known_estimates(seed):
    """REML of balanced groups: σ² = MSW, τ² = (MSB − MSW)/r, shrinkage rτ²/(rτ² + σ²)."""
    rng, r = np.random.default_rng(seed), 8
    code = np.repeat(np.arange(SITES), r)
    y = 3 + 0.4 * rng.normal(size=SITES)[code] + rng.normal(size=len(code))
    model = km.AdditiveRegressor().fit(pd.DataFrame({"site": sites_of(code)}), y)
    assert is_eliminated(model)
    means = y.reshape(SITES, r).mean(axis=1)
    within = np.sum((y - means[code]) ** 2) / (len(y) - SITES)
    tau2 = (r * means.var(ddof=1) - within) / r
    shrinkage = r * tau2 / (r * tau2 + within)
    # Estimation ends where the derivative by log λ is 0.1, of a likelihood with a second derivative
    # of about SITES k²/2: a per cent of λ.
    assert model.dispersion_[0] == pytest.approx(within, rel=2e-3)
    (term,) = model.predictor_.terms
    assert term.smoothing[0, 0] / SITES == pytest.approx(within / tau2, rel=0.03)
    effects = pd.Series(term.values[2:, 0], model.predictor_.books[0].levels)
    expected = shrinkage * (means - y.mean())
    np.testing.assert_allclose(effects[sites_of(range(SITES))], expected, rtol=0.01, atol=1e-6)
    assert model.edf_[0] == pytest.approx(1 + (SITES - 1) * shrinkage, rel=0.01)
    assert model.intercept_ == pytest.approx(y.mean())


def test_standard_errors_are_those_of_the_mixed_model_equations(seed):
    """With a given smoothing parameter, φzᵀ(ZᵀZ + D)⁻¹z, for known and for new sites."""
    X, y, _, code = table(seed)
    model = km.AdditiveRegressor(
        terms=["site", km.Term("x", "parametric")], smoothing={"site": 400.0}
    ).fit(X, y)
    Z = np.column_stack([np.ones(len(y)), X["x"], np.eye(SITES)[code]])
    penalty = np.repeat([0.0, 400.0 / SITES], [2, SITES])
    inverse = np.linalg.inv(Z.T @ Z + np.diag(penalty))
    beta = inverse @ (Z.T @ y)
    prediction, errors = model.predict(X, return_std=True)
    np.testing.assert_allclose(prediction, Z @ beta, atol=1e-6)
    expected = np.sqrt(model.dispersion_[0] * np.sum((Z @ inverse) * Z, axis=1))
    # What is left out of the covariances has a ten-thousandth of the variance of a site, and up to
    # a hundredth of its standard error.
    np.testing.assert_allclose(errors, expected, rtol=0.01)
    centre = X["x"].mean()
    at_centre = Z.copy()
    at_centre[:, 1] = centre
    band = np.sqrt(model.dispersion_[0] * np.sum((at_centre @ inverse) * at_centre, axis=1))
    shape = next(f for f in model.shape_functions_ if f.name == "site")
    shown = pd.Series(shape.errors, shape.levels)
    np.testing.assert_allclose(shown[X["site"]], band, rtol=1e-6)
    # A new site has the mean of the sites, and their variance.
    new, error = model.predict(pd.DataFrame({"site": ["new"], "x": [1.0]}), return_std=True)
    z = np.zeros(len(beta))
    z[:2] = 1, 1
    variance = model.dispersion_[0] * (z @ inverse @ z + SITES / 400)
    np.testing.assert_allclose(new, z @ beta, atol=1e-6)
    np.testing.assert_allclose(error, np.sqrt(variance), rtol=0.01)


def test_standard_errors_of_log_odds_are_those_of_the_last_step(seed):
    """z(ZᵀWZ + D)⁻¹z with the working weights p(1 − p): the mean and the sites are correlated."""
    X, score, _, code = table(seed)
    y = np.random.default_rng(seed).random(len(score)) < 1 / (1 + np.exp(1 - score))
    model = km.AdditiveClassifier(
        terms=["site", km.Term("x", "parametric")], smoothing={"site": 400.0}
    ).fit(X, y)
    probability = model.predict_proba(X)[:, 1]
    Z = np.column_stack([np.ones(len(y)), X["x"], np.eye(SITES)[code]])
    penalty = np.repeat([0.0, 400.0 / SITES], [2, SITES])
    weighted = (probability * (1 - probability))[:, None] * Z
    inverse = np.linalg.inv(Z.T @ weighted + np.diag(penalty))
    at_centre = Z.copy()
    at_centre[:, 1] = X["x"].mean()
    band = np.sqrt(np.sum((at_centre @ inverse) * at_centre, axis=1))
    shape = next(f for f in model.shape_functions_ if f.name == "site")
    shown = pd.Series(shape.errors, shape.levels)
    np.testing.assert_allclose(shown[X["site"]], band, rtol=1e-4)


@pytest.mark.parametrize("sd", [0.0, 0.5])
def test_test_of_a_variance_is_that_of_the_dense_covariance(seed, sd):
    """The statistic is exact, and so is the mean of its weights; p-values are nearly equal."""
    X, y, _, code = table(seed, 900, sd=sd)
    levels = code.astype(np.uint16)
    numbers = (X["x"].to_numpy() + 4).astype(np.uint8)
    factor = LevelBasis(np.bincount(levels) + 0.0)
    line = TermBasis((np.arange(8.0) - 4)[:, None], np.ones(1), np.zeros(1, int))
    dense = TermBasis(np.eye(SITES), factor.penalty, factor.smoothing_index)
    rows = TermRows([numbers, levels], [line, factor], y, np.ones(len(y)), np.zeros(len(y)))
    rho, fixed = np.log([1e-6, 400.0]), np.ones(2, bool)
    fit = fit_penalised(rows, SquaredError(), rho, fixed)
    reference = fit_penalised(replace(rows, bases=[line, dense]), SquaredError(), rho, fixed)
    penalty = factor.penalty * 400.0
    statistic, weights = variance_test(fit)
    block = reference.covariance[2:, 2:]
    prior = fit.dispersion / penalty
    expected = random_effects_test(reference.beta[2:], block, prior, 600.0)
    test = mixture_test(statistic, weights, 600.0)
    assert test.statistic == pytest.approx(expected.statistic, rel=1e-6)
    assert np.log(test.p_value) == pytest.approx(np.log(expected.p_value), rel=0.05, abs=0.02)


@pytest.mark.parametrize("loss", ["log_loss", "poisson", "gamma", "quantile"])
def test_all_losses(seed, loss):
    X, score, effect, code = table(seed, 6000, sd=1.0, noise=0.0)
    rng = np.random.default_rng(seed)
    eta = score - 2
    if loss == "log_loss":
        y = rng.random(len(eta)) < 1 / (1 + np.exp(-2 * eta))
        model = km.AdditiveClassifier(loss=loss).fit(X, y)
    else:
        mean = np.exp(0.7 * eta)
        y = rng.poisson(mean) if loss == "poisson" else mean * rng.gamma(4, 0.25, len(eta)) + 1e-9
        model = km.AdditiveRegressor(loss=loss).fit(X, y)
    assert is_eliminated(model)
    values = model.eval_terms(X)[:, model.term_names_.index("site")]
    assert np.corrcoef(values, effect[code])[0, 1] > 0.75
    assert np.isfinite(model.summary().to_frame()["p_value"]).all()


@pytest.mark.parametrize("kind", ["generator", "dask"])
def test_streams_give_the_model_of_the_frame(seed, kind):
    """A generator's chunks are kept, since levels are counted in a pass of their own."""
    X, y, _, _ = table(seed, 2000)
    chunks = [(X[k : k + 500], y[k : k + 500]) for k in range(0, 2000, 500)]
    source = (iter(chunks),)
    if kind == "dask":
        dataframe = pytest.importorskip("dask.dataframe", reason="partitions are Dask's")
        source = dataframe.from_pandas(X.assign(y=y), npartitions=3), "y"
    model, streamed = km.AdditiveRegressor().fit(X, y), km.AdditiveRegressor().fit(*source)
    assert is_eliminated(streamed)
    np.testing.assert_allclose(streamed.predict(X), model.predict(X), atol=1e-6)
    np.testing.assert_allclose(*(m.predict(X, return_std=True)[1] for m in (model, streamed)), 1e-4)


def test_terms_add_up_and_are_centred(seed):
    X, y, _, _ = table(seed, 1500)
    model = km.AdditiveRegressor().fit(X, y)
    values = model.eval_terms(X)
    np.testing.assert_allclose(values.sum(axis=1) + model.intercept_, model.predict(X))
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-9)
    assert model.intercept_ == pytest.approx(y.mean(), abs=1e-6)
    explanation = model.explain(X[:1])
    assert explanation.errors.shape == (2,)
    assert np.isfinite(explanation.errors).all()


def test_crossed_large_factors(seed):
    """All levels have an effect each, without a warning, and errors are of the stated size.

    The factor of more levels is eliminated, the other is a dense term.
    """
    rng, n = np.random.default_rng(seed), 4500
    sizes = {"item": 300, "user": 420}
    codes = {
        name: rng.permutation(np.append(np.repeat(np.arange(m), 3), rng.integers(0, m, n - 3 * m)))
        for name, m in sizes.items()
    }
    effects = {name: rng.normal(size=m)[codes[name]] for name, m in sizes.items()}
    mean = sum(effects.values())
    X = pd.DataFrame({name: sites_of(code) for name, code in codes.items()})
    with warnings.catch_warnings(action="error"):
        model = km.AdditiveRegressor().fit(X, mean + 0.5 * rng.normal(size=n))
    assert [len(book.levels) for book in model.predictor_.books] == list(sizes.values())
    assert model.predictor_.posterior.levels.term == model.term_names_.index("user")
    for values, truth in zip(model.eval_terms(X).T, effects.values(), strict=True):
        assert np.corrcoef(values, truth)[0, 1] > 0.97
    predicted, errors = model.predict(X, return_std=True)
    # The mean of the squared errors of 720 effects varies by √(2/720): four times that.
    assert np.mean((predicted - mean) ** 2) == pytest.approx(np.mean(errors**2), rel=0.21)
    assert np.mean(errors**2) < 0.25 * sum(sizes.values()) / n  # that of least squares


def test_further_factors_share_a_limit(seed, monkeypatch):
    monkeypatch.setattr(design, "MAX_FURTHER_LEVELS", 600)
    rng, n = np.random.default_rng(seed), 3000
    X = pd.DataFrame({k: sites_of(rng.permutation(n) % m) for k, m in zip("abc", (500, 320, 310))})
    with pytest.warns(UserWarning, match=r"has more than 300 levels, and 'a' more still") as caught:
        model = km.AdditiveRegressor().fit(X, rng.normal(size=n))
    assert [len(book.levels) for book in model.predictor_.books] == [500, 300, 300]
    assert sum("more than 300 levels" in str(item.message) for item in caught) == 2


def test_pairs_are_found_beside_a_large_factor(seed):
    X, y, effect, code = table(seed, 4000)
    rng = np.random.default_rng(seed)
    X["z"] = rng.random(len(y))
    X["w"] = rng.random(len(y))
    y = y + 2 * (X["z"] - 0.5) * (X["w"] > 0.5)
    model = km.AdditiveRegressor(interactions="auto").fit(X, y)
    assert "z × w" in model.term_names_
    assert is_eliminated(model)
    values = model.eval_terms(X)
    np.testing.assert_allclose(values.sum(axis=1) + model.intercept_, model.predict(X))
    assert np.corrcoef(values[:, 0], effect[code])[0, 1] > 0.95


def test_pairs_with_a_large_factor_share_its_display(seed):
    """A pair of the most frequent sites; its main part moves to the sites, with finite errors."""
    X, y, _, _ = table(seed, 3000)
    with pytest.warns(UserWarning, match="distinguishes the 254 most frequent levels of 'site'"):
        model = km.AdditiveRegressor(interactions=[("site", "x")]).fit(X, y)
    values = model.eval_terms(X)
    np.testing.assert_allclose(values.sum(axis=1) + model.intercept_, model.predict(X))
    shape = next(f for f in model.shape_functions_ if f.name == "site")
    assert np.isfinite(shape.errors).all()
    assert (shape.errors > 0).all()


def test_levels_that_a_sample_lacks_are_counted_over_all_chunks(seed, monkeypatch):
    """Of 300 levels, many have fewer than three rows among 750 sampled ones."""
    monkeypatch.setattr(training_rows, "SAMPLE_ROWS", 750)
    X, y, _, _ = table(seed, 3000)
    chunks = [(X[k : k + 500], y[k : k + 500]) for k in range(0, 3000, 500)]
    streamed = km.AdditiveRegressor().fit(chunks)
    assert set(streamed.predictor_.books[0].levels) == set(X["site"])
    model = km.AdditiveRegressor().fit(X, y)
    np.testing.assert_allclose(streamed.predict(X), model.predict(X), atol=1e-3)


@pytest.mark.parametrize("noise", [None, 0.0])
def test_targets_without_noise(seed, noise):
    """Constant targets, and effects alone: no warnings, and the targets themselves."""
    X, _, effect, code = table(seed, 1500)
    y = np.ones(len(code)) if noise is None else effect[code]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = km.AdditiveRegressor(terms=["site"]).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3)
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()


def test_rare_and_unseen_levels_have_the_variance_of_the_levels(seed):
    """Levels of one or two rows share a value: their mean is known, not the effect of one."""
    rng = np.random.default_rng(seed)
    level = (2000 * rng.random(16_000) ** 2).astype(int)
    effects = rng.normal(size=2000)
    X = pd.DataFrame({"x": rng.random(16_000), "town": [f"t{k}" for k in level]})
    mean = X["x"].to_numpy() + effects[level]
    y = mean + 0.5 * rng.normal(size=16_000)
    train, test = slice(0, 6000), slice(6000, None)
    model = km.AdditiveRegressor().fit(X[train], y[train])
    predicted, deviation = model.predict(X[test], return_std=True)
    rare = np.bincount(level[train], minlength=2000)[level[test]] <= 2
    inside = np.abs(predicted - mean[test]) < 1.96 * deviation
    n_levels = len(np.unique(level[test][rare]))
    # Rows of a level stand and fall together: the standard error is that of so many levels.
    assert abs(inside[rare].mean() - 0.95) < 4 * np.sqrt(0.95 * 0.05 / n_levels)
    np.testing.assert_allclose(deviation[rare].mean(), 1.0, rtol=0.15)
