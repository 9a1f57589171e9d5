"""Comparison of nested models."""

import numpy as np
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
    assert table.statistic == "chi²"
    assert table.records[1]["statistic"] == pytest.approx(ratio)
    assert table.records[1]["p_value"] == pytest.approx(stats.chi2.sf(ratio, 1), rel=1e-3)


def test_a_comparison_tells_an_effect_from_none():
    """At 0.05; the test of penalised terms is approximate."""
    rng = np.random.default_rng(0)
    p_values = np.empty((60, 2))
    for row in p_values:
        X = rng.random((150, 3))
        y = np.sin(6 * X[:, 0]) + 0.3 * np.sin(6 * X[:, 1]) + 0.5 * rng.normal(size=150)
        models = [km.AdditiveRegressor(terms=terms, n_jobs=1).fit(X, y)
                  for terms in ([0], [0, 1], [0, 1, 2])]  # fmt: skip
        row[:] = [record["p_value"] for record in km.anova(*models).records[1:]]
    power, error = (p_values < 0.05).mean(axis=0)
    assert power > 0.8
    assert error < 0.2  # 0.1 or less, and three standard deviations of 60 draws


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


def test_the_table_has_text_and_numbers(seed):
    X, y = data(seed)
    table = km.anova(free(terms=lines(0)).fit(X, y), free(terms=lines(0, 1)).fit(X, y))
    text = str(table).split("\n")
    assert text[1:3] == ["  model 1: x0", "  model 2: x0, x1"]
    assert text[4].split() == ["model", "residual", "df", "deviance", "df", "difference", "F", "p"]
    assert table.to_frame()["residual_df"].tolist() == pytest.approx([58, 57], rel=1e-6)
    assert "<th>difference</th>" in table._repr_html_()


def test_models_that_cannot_be_compared_are_refused(seed):
    X, y = data(seed)
    one, two = free(terms=lines(0)).fit(X, y), free(terms=lines(0, 1)).fit(X, y)
    with pytest.raises(ValueError, match="two models or more"):
        km.anova(one)
    with pytest.raises(ValueError, match="model 2 has no term 'x1'"):
        km.anova(two, one)
    with pytest.raises(ValueError, match=r"different rows.*60 and 50 rows"):
        km.anova(one, free(terms=lines(0, 1)).fit(X[:50], y[:50]))
    with pytest.raises(ValueError, match="different rows, targets or weights"):
        km.anova(one, free(terms=lines(0, 1)).fit(X, y + X[:, 0]))
    with pytest.raises(ValueError, match="different losses, 'squared_error' and 'gamma'"):
        km.anova(one, free(loss="gamma", terms=lines(0, 1)).fit(X, np.exp(y)))
    with pytest.raises(TypeError, match="got StreamingRidge"):
        km.anova(one, km.StreamingRidge())
    three = km.AdditiveClassifier().fit(X, np.digitize(y, [-0.5, 0.5]))
    with pytest.raises(ValueError, match="one against the rest"):
        km.anova(three, three)
