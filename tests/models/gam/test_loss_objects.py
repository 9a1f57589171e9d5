"""Losses as objects with parameters: a known dispersion reaches all that rests on it."""

import pickle

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import kernelmaps as km
from kernelmaps import losses


def rows(seed, n=300):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(6 * X[:, 0]), rng


def errors(model, X):
    return model.predictor_.score_errors(model._columns(X))[:, 0]


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("squared_error", losses.SquaredError()),
        ("poisson", losses.Poisson()),
        ("gamma", losses.Gamma()),
        ("absolute_error", losses.Quantile(0.5)),
        ("quantile", losses.Quantile()),
        ("log_loss", losses.LogLoss()),
    ],
)
def test_an_object_is_its_name_with_parameters(seed, name, loss, tmp_path):
    X, f, rng = rows(seed)
    y, kind = rng.poisson(2 * np.exp(f)) + 0.5, km.AdditiveRegressor
    if name == "log_loss":
        y, kind = rng.random(len(f)) < 1 / (1 + np.exp(-f)), km.AdditiveClassifier
    given = kind(loss)
    again = clone(given)
    assert again.loss == loss
    assert eval(repr(given.loss), vars(losses)) == loss
    scores = kind(name).fit(X, y).eval_terms(X)
    km.save(again.fit(X, y), tmp_path / "model.kmap")
    for model in (again, pickle.loads(pickle.dumps(again)), km.load(tmp_path / "model.kmap")):
        assert model.loss == model.predictor_.loss == loss
        np.testing.assert_array_equal(model.eval_terms(X), scores)
        assert str(model.summary()).splitlines()[1].startswith(f"  loss: {loss!r} ")
    assert km.anova(kind(name, terms=[0]).fit(X, y), again).records[1]["model"] == 2


def test_a_grid_of_losses(seed):
    """The quantile at which the pinball loss of 0.9 is least is 0.9."""
    X, f, rng = rows(seed, 600)
    y = f + rng.gamma(1.0, size=len(f))

    def score(model, X, y):
        r = y - model.predict(X)
        return -np.mean(np.maximum(0.9 * r, -0.1 * r))

    grid = {"loss": [losses.Quantile(q) for q in (0.5, 0.9, 0.98)]}
    search = GridSearchCV(km.AdditiveRegressor(), grid, scoring=score, cv=3).fit(X, y)
    assert search.best_params_["loss"] == losses.Quantile(0.9)


@pytest.mark.parametrize("kind", [losses.SquaredError, losses.Poisson, losses.Gamma])
def test_a_known_dispersion_scales_the_covariance(seed, kind):
    """Of given smoothing parameters: the fit is the same, and variances are multiples of φ."""
    X, f, rng = rows(seed)
    y = rng.poisson(3 * np.exp(f)) + 1.0
    one, four = (km.AdditiveRegressor(kind(d), smoothing=10.0).fit(X, y) for d in (1.0, 4.0))
    np.testing.assert_allclose(four.predict(X), one.predict(X), rtol=1e-10)
    np.testing.assert_allclose(errors(four, X), 2 * errors(one, X), rtol=1e-4)  # float32 factors
    assert one.dispersion_[0] == 1.0
    summary = one.summary()
    assert summary.columns[6] == "chi²"  # tests know φ, too
    first, second = summary.to_frame(), four.summary().to_frame()
    np.testing.assert_allclose(first["statistic"], 4 * second["statistic"], rtol=1e-3)
    with pytest.raises(ValueError, match="have different losses"):
        km.anova(km.AdditiveRegressor(kind(1.0), terms=[0]).fit(X, y), four)


def test_a_known_variance_of_numbers(seed):
    """Likelihood, AIC and intervals are those of the normal distribution with this variance."""
    X, f, rng = rows(seed)
    y = f + 0.3 * rng.normal(size=len(f))
    model = km.AdditiveRegressor(losses.SquaredError(0.09)).fit(X, y)
    fitted, deviation = model.predict(X), np.hypot(0.3, errors(model, X))
    likelihood = stats.norm.logpdf(y, fitted, 0.3).sum()
    assert model.log_likelihood_ == pytest.approx(likelihood, rel=1e-9)
    assert model.aic_ == pytest.approx(2 * (model.edf_[0] - likelihood), rel=1e-9)
    ends = stats.norm.interval(0.9, fitted, deviation)
    np.testing.assert_allclose(model.predict_interval(X, 0.9), np.column_stack(ends), rtol=1e-9)


def test_the_dispersion_of_sparse_counts_is_fletchers(seed):
    """Pearson's statistic over its degrees of freedom and 1 + s, in memory and block by block."""
    X, f, rng = rows(seed, 400)
    y = rng.poisson(0.2 * np.exp(f)).astype(float)
    terms = [km.Term(0, "parametric"), km.Term(1, "parametric")]
    model = km.AdditiveRegressor("poisson", terms=terms).fit(X, y)
    mean = model.predict(X)
    pearson = np.sum((y - mean) ** 2 / mean) / (len(y) - 3)
    assert model.dispersion_[0] == pytest.approx(pearson / np.mean(y / mean), rel=1e-3)
    blocks = km.AdditiveRegressor("poisson", terms=terms).fit(
        [(X[:150], y[:150]), (X[150:], y[150:])]
    )
    assert blocks.dispersion_[0] == pytest.approx(model.dispersion_[0], rel=1e-6)


def test_rare_events_reject_few_nulls():
    """15 events among 500 rows. Without the correction, φ is .3 to 1 and .15 of nulls rejected."""
    p_values, dispersions = {}, []
    for k in range(16):
        rng = np.random.default_rng(k)
        X = rng.random((500, 4))
        eta = 1.5 * X[:, 0] + np.sin(2 * np.pi * X[:, 1])
        y = rng.poisson(0.03 * np.exp(eta) / np.exp(eta).mean())
        for loss in ("poisson", losses.Poisson(dispersion=1)):
            model = km.AdditiveRegressor(loss, n_jobs=1).fit(X, y)
            table = model.summary().to_frame().set_index("term")["p_value"]
            p_values.setdefault(loss, []).extend(table[model.term_names_[2:]])
            dispersions.append(model.dispersion_[0])
    assert 0.9 < np.min(dispersions) < np.max(dispersions) < 1.3
    for found in p_values.values():  # 0.05, and two standard errors of shares of 32
        assert np.mean(np.array(found) < 0.05) <= 0.127


def test_parameters_are_checked_when_they_are_given():
    for kind in (losses.SquaredError, losses.Poisson, losses.Gamma):
        for wrong in (0, -1.0, np.inf, "1", True):
            with pytest.raises(ValueError, match="dispersion must be a positive number or None"):
                kind(wrong)
    for wrong in (0, 1, -0.5, "0.9"):
        with pytest.raises(ValueError, match="Quantile: quantile must be between 0 and 1"):
            losses.Quantile(wrong)
    X, f, _ = rows(0, 50)
    for wrong, hint in (
        (losses.Poisson, r"Write Poisson\(\), an object"),
        (losses.LogLoss(), "LogLoss"),
    ):
        with pytest.raises(ValueError, match=hint):
            km.AdditiveRegressor(wrong).fit(X, f)
    with pytest.raises(
        ValueError, match=r"one of .*'log_loss'.* or an object of kernelmaps\.losses"
    ):
        km.AdditiveClassifier(losses.Poisson()).fit(X, f > 0)
    with pytest.raises(ValueError, match="AdditiveSVR: loss must be one of"):
        km.AdditiveSVR(km.SplineMap(domain=(0, 1)), loss=losses.SquaredError()).fit(X, f)
    with pytest.raises(ValueError, match="the link 'identity'"):
        km.AdditiveRegressor(losses.Quantile(0.9)).fit(X, f, exposure=np.ones(50))
