"""Deviance, log-likelihood, AIC and REML score of a fit, its summary, and nested models."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import kernelmaps as km


def lines(*columns):
    return [km.Term(j, "linear") for j in columns]


def free(**options):
    """A model whose lines are hardly penalised."""
    return km.AdditiveRegressor(smoothing=1e-8, n_jobs=1, **options)


def data(seed, n=60):
    """Columns of few values, which have a code each."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n, 3)).astype(float)
    return X, X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=n)


def residual_squares(X, y):
    Z = np.column_stack([np.ones(len(y)), X])
    return float(np.sum((y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]) ** 2))


def test_of_linear_models_it_is_the_f_test(seed):
    X, y = data(seed)
    small, large = free(terms=lines(0)).fit(X, y), free(terms=lines(0, 1, 2)).fit(X, y)
    first, second = km.anova(small, large).records
    squares = [residual_squares(X[:, :1], y), residual_squares(X, y)]
    exact = (squares[0] - squares[1]) / 2 / (squares[1] / 56)
    assert np.isnan(first["p_value"])
    assert [first["deviance"], second["deviance"]] == pytest.approx(squares, rel=1e-6)
    assert second["df"] == pytest.approx(2)
    assert second["statistic"] == pytest.approx(exact, rel=1e-4)
    assert second["p_value"] == pytest.approx(stats.f.sf(exact, 2, 56), rel=1e-3)


def test_of_classes_it_is_the_likelihood_ratio_test(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 2))
    y = rng.random(200) < 1 / (1 + np.exp(-X[:, 0]))
    models = [
        km.AdditiveClassifier(terms=lines(*columns), smoothing=1e-8).fit(X, y)
        for columns in ((0,), (0, 1))
    ]
    table = km.anova(*models)
    ratio = 2 * (models[1].log_likelihood_ - models[0].log_likelihood_)
    assert table.columns[-2] == "chi²"
    assert table.records[1]["statistic"] == pytest.approx(ratio)
    assert table.records[1]["p_value"] == pytest.approx(stats.chi2.sf(ratio, 1), rel=1e-3)


def test_the_degrees_of_freedom_include_smoothing_parameters(seed):
    """With fixed smoothing parameters there is nothing to add."""
    rng = np.random.default_rng(seed)
    X = rng.random((200, 1))
    y = np.sin(6 * X[:, 0]) + 0.5 * rng.normal(size=200)
    fixed, estimated = (
        km.AdditiveRegressor(smoothing=10.0).fit(X, y),
        km.AdditiveRegressor().fit(X, y),
    )
    assert fixed._corrected_edf == pytest.approx(fixed.edf_[0])
    assert estimated.edf_[0] + 0.1 < estimated._corrected_edf < estimated.edf_[0] + 5


# -- statistics of a fit ---------------------------------------------------------------------------


def table(seed, n=400):
    """Columns of few values, each with a code: predictions are exactly those of the fit."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.integers(0, 20, n) / 20, "c": rng.choice(list("uvw"), n)})
    eta = np.sin(5 * X["a"]) + X["c"].map({"u": 0.5, "v": 0.0, "w": -0.5})
    return X, eta.to_numpy(), rng


def density(loss, y, model, X):
    """Log-density of the targets by scipy."""
    mean = model.predict(X)
    if loss == "squared_error":
        return stats.norm.logpdf(y, mean, np.sqrt(np.mean((y - mean) ** 2)))
    if loss == "poisson":
        return stats.poisson.logpmf(y, mean)
    phi = model.dispersion_[0]
    return stats.gamma.logpdf(y, 1 / phi, scale=mean * phi)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma"])
def test_likelihoods_are_those_of_the_distributions(seed, loss):
    X, eta, rng = table(seed)
    y = {
        "squared_error": eta + rng.normal(size=len(eta)),
        "poisson": rng.poisson(np.exp(eta)),
        "gamma": rng.gamma(3.0, np.exp(eta) / 3),
    }[loss]
    model = km.AdditiveRegressor(loss).fit(X, y)
    expected = density(loss, y, model, X).sum()
    assert model.log_likelihood_ == pytest.approx(expected)
    n_parameters = model.edf_[0] + (loss != "poisson")
    assert model.aic_ == pytest.approx(2 * n_parameters - 2 * expected)
    assert model.deviance_explained_ == pytest.approx(model.score(X, y))


def test_classes_have_the_binomial_likelihood(seed):
    X, eta, rng = table(seed)
    y = rng.random(len(eta)) < 1 / (1 + np.exp(-eta))
    model = km.AdditiveClassifier().fit(X, y)
    p = model.predict_proba(X)[np.arange(len(y)), y.astype(int)]
    assert model.log_likelihood_ == pytest.approx(np.log(p).sum())
    null = np.log(np.where(y, y.mean(), 1 - y.mean())).sum()
    assert model.deviance_explained_ == pytest.approx(1 - model.log_likelihood_ / null)


def test_the_reml_score_is_a_marginal_likelihood(seed):
    """Of a line with a normal prior and an intercept without one, which is integrated out."""
    rng = np.random.default_rng(seed)
    x, smoothing = rng.integers(0, 20, 100).astype(float), 7.0
    y = 0.1 * x + rng.normal(size=100)
    model = km.AdditiveRegressor(terms={0: "linear"}, smoothing=smoothing).fit(x[:, None], y)
    z, phi = (x - x.mean()) / x.std(), model.dispersion_[0]
    covariance = phi * (np.eye(100) + np.outer(z, z) / smoothing)
    inverse = np.linalg.inv(covariance)
    ones = np.ones(100)
    residual = y - (ones @ inverse @ y) / (ones @ inverse @ ones)
    exact = 0.5 * (
        99 * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1]
        + np.log(ones @ inverse @ ones) + residual @ inverse @ residual
    )  # fmt: skip
    assert model.reml_ == pytest.approx(exact)


def test_smoothing_parameters_minimise_the_score(seed):
    X, eta, rng = table(seed)
    y = eta + rng.normal(size=len(eta))
    best = km.AdditiveRegressor().fit(X, y)
    for smoothing in (1.0, 100.0, 10_000.0):
        assert km.AdditiveRegressor(smoothing=smoothing).fit(X, y).reml_ > best.reml_ - 0.1


def test_targets_of_rows_without_weight_do_not_count(seed):
    X, eta, rng = table(seed)
    y = rng.gamma(3.0, np.exp(eta) / 3)
    plain = km.AdditiveRegressor("gamma").fit(X, y)
    more, z = pd.concat([X, X[:1]], ignore_index=True), np.append(y, -1.0)
    weighted = km.AdditiveRegressor("gamma").fit(more, z, np.append(np.ones(len(y)), 0.0))
    assert weighted.log_likelihood_ == pytest.approx(plain.log_likelihood_)


def test_summaries_say_it(tmp_path, seed):
    X, eta, rng = table(seed)
    X["noise"] = rng.permutation(np.repeat(np.linspace(0, 1, 40), 10))
    y = eta + 0.1 * rng.normal(size=len(eta))
    model = km.AdditiveRegressor(smoothing={"noise": 1e9}).fit(X, y)
    text = str(model.summary())
    for words in (
        "normal family, link: identity", "deviance explained: ", "AIC: ", "REML score: ",
        "(se ", "shrunk to nothing: noise\n", "ref df",
    ):  # fmt: skip
        assert words in text
    frame = model.summary().to_frame().set_index("term")
    assert frame.loc["a", "edf"] == pytest.approx(model.predictor_.terms[0].edf[0])
    assert {"ref_df", "statistic", "p_value", "importance", "low", "high"} <= set(frame.columns)
    assert frame.loc["a", "p_value"] < 1e-10 < frame.loc["noise", "p_value"]
    explanation = model.explain(X.iloc[[0]])
    assert f"(se {explanation.errors[0]:.2g})" in str(explanation)
    km.save(model, tmp_path / "model.kmap")
    assert str(km.load(tmp_path / "model.kmap").summary()) == text
