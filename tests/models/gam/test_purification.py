"""Pure pairs: their means are zero for each value of either column, and the sum stays."""

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.models.gam.purification import main_effects, subtract_main_effects


def correlated(seed, n=3000, rho=0.7):
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)
    y = X[:, 0] + X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    return pd.DataFrame(X, columns=["a", "b"]), y


def share_of_one_column(values, column):
    """Var E[f | column] / Var f, the mean by 20 bins of equal weight."""
    bins = pd.qcut(column, 20, labels=False)
    means = pd.Series(values).groupby(bins).transform("mean")
    return np.var(means) / np.var(values)


@pytest.mark.parametrize("loss", ["squared_error", "gamma"])
def test_a_pair_says_nothing_about_its_columns_alone(seed, loss):
    X, y = correlated(seed)
    y = np.exp(0.3 * y) if loss == "gamma" else y
    model = km.AdditiveRegressor(loss, interactions=[("a", "b")]).fit(X, y)
    raw = model.predictor_.terms[2]
    assert raw.main_parts[0].shape == (raw.values.shape[0], 1)
    new, _ = correlated(seed + 1)
    terms = model.eval_terms(new)
    for column in ("a", "b"):
        assert share_of_one_column(terms[:, 2], new[column]) < 0.05
    np.testing.assert_allclose(
        terms.sum(axis=1) + model.intercept_, model.predictor_.scores(model._columns(new), "")[:, 0]
    )
    shown = model.pair_functions_[0]
    np.testing.assert_allclose(np.sum(shown.density * shown.values, axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(np.sum(shown.density * shown.values, axis=0), 0, atol=1e-6)


def test_displays_are_what_eval_terms_has(seed):
    X, y = correlated(seed)
    X["c"] = np.where(np.random.default_rng(seed).random(len(X)) < 0.5, "u", "v")
    y = y + np.where(X["c"] == "u", X["a"], 0)
    model = km.AdditiveRegressor(interactions=[("a", "b"), ("a", "c")]).fit(X, y)
    terms = model.eval_terms(X)
    single = terms[:, :3].std(axis=0)
    np.testing.assert_allclose(model.feature_importances_, single, rtol=0.03)
    pairs = [pair.importance for pair in model.pair_functions_]
    np.testing.assert_allclose(pairs, terms[:, 3:].std(axis=0), rtol=0.03)
    levels = model.shape_functions_[2]
    row = X.iloc[[5]]
    assert model.eval_terms(row)[0, 2] == pytest.approx(
        levels.values[levels.levels.index(row["c"].iloc[0])]
    )
    assert (model.shape_functions_[0].errors > 0).all()
    said = model.explain(row)
    assert said.score == pytest.approx(model.predict(row)[0])


def test_pure_functions_are_those_of_the_joint_distribution(seed):
    """For normal variables ab − ρ = g(a) + g(b) + p with g(x) = ρ(x² − 1)/(1 + ρ²)."""
    rho = 0.7
    X, y = correlated(seed, rho=rho)
    model = km.AdditiveRegressor(interactions=[("a", "b")]).fit(X, y)
    g = rho * (X.to_numpy() ** 2 - 1) / (1 + rho**2)
    central = (np.abs(X) < 2).all(axis=1)
    error = (model.eval_terms(X)[:, 0] - X["a"] - g[:, 0])[central]
    assert np.sqrt(np.mean(error**2)) < 0.1
    pure = np.std(X["a"] * X["b"] - g.sum(axis=1))
    assert model.pair_functions_[0].importance == pytest.approx(pure, rel=0.1)


def test_a_pair_without_its_columns_is_shown_as_it_is(seed):
    X, y = correlated(seed)
    model = km.AdditiveRegressor(terms=[("a", "b")]).fit(X, y)
    shown = model.predictor_.pure_terms[0]
    np.testing.assert_array_equal(shown.values, model.predictor_.terms[0].values)
    np.testing.assert_allclose(model.eval_terms(X)[:, 0] + model.intercept_, model.predict(X))


@pytest.mark.parametrize("sides", [(True, True), (True, False)])
def test_main_effects_are_a_least_squares_fit(seed, sides):
    rng = np.random.default_rng(seed)
    weight, functions = rng.integers(0, 4, (5, 4)).astype(float), rng.normal(size=(20, 3))
    first, second = main_effects(functions, weight, sides)
    rest = subtract_main_effects(functions, first, second).reshape(5, 4, 3) * weight[:, :, None]
    np.testing.assert_allclose(rest.sum(axis=1), 0, atol=1e-6)
    if sides[1]:
        np.testing.assert_allclose(rest.sum(axis=0), 0, atol=1e-6)
    else:
        assert not second.any()


def test_pure_pairs_are_saved(tmp_path, seed):
    X, y = correlated(seed, 600)
    model = km.AdditiveRegressor(interactions=[("a", "b")]).fit(X, y)
    km.save(model, tmp_path / "model.kmap")
    again = km.load(tmp_path / "model.kmap")
    np.testing.assert_array_equal(again.eval_terms(X), model.eval_terms(X))
