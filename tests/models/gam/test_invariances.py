"""Fits of GAMs do not depend on what should not matter: order, units, names, signs."""

import functools

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km

# Codes, bases and smoothing parameters are computed in another order or scale: rounding errors,
# amplified by the last REML steps, of which 1e-3 in log λ is negligible (see solvers/pirls.py).
SAME = 1e-4


def table(seed, n=400):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.gamma(2.0, size=n), "c": rng.choice(["u", "v", "w"], n)}
    )
    eta = np.sin(2 * X["a"]) + np.log1p(X["b"]) + 0.8 * (X["c"] == "v")
    return X, eta.to_numpy(), rng


LOSSES = ["squared_error", "log_loss", "poisson", "quantile"]


def target(loss, eta, rng):
    if loss == "log_loss":
        return rng.random(len(eta)) < 1 / (1 + np.exp(1 - eta))
    return (
        rng.poisson(np.exp(eta / 2)) if loss == "poisson" else eta + 0.3 * rng.normal(size=len(eta))
    )


def model_of(loss, **options):
    kind = km.AdditiveClassifier if loss == "log_loss" else km.AdditiveRegressor
    return kind(loss=loss, **options)


def scores(model, X):
    """Scores of rows in units of their standard deviation."""
    values = model.eval_terms(X).sum(axis=1) + model.intercept_
    return np.ravel(values)


def assert_same(first, second, tol=SAME):
    assert np.abs(first - second).max() <= tol * first.std()


@functools.cache
def fitted(loss, seed):
    """Rows, their targets, and the scores of a model of them."""
    X, eta, rng = table(seed)
    y = target(loss, eta, rng)
    return X, y, scores(model_of(loss).fit(X, y), X)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_order_of_rows_and_columns(loss, seed):
    X, y, expected = fitted(loss, seed)
    order = np.random.default_rng(seed).permutation(len(X))
    assert_same(expected, scores(model_of(loss).fit(X.iloc[order], y[order]), X))
    turned = X[["c", "b", "a"]]
    assert_same(expected, scores(model_of(loss).fit(turned, y), turned))


@pytest.mark.parametrize("loss", LOSSES)
def test_units_of_columns_and_names_of_levels(loss, seed):
    X, y, expected = fitted(loss, seed)
    # Powers of two: ranges are cut at the same values.
    scaled = X.assign(a=1024 * X["a"], b=X["b"] / 4096)
    assert_same(expected, scores(model_of(loss).fit(scaled, y), scaled))
    named = X.assign(c=X["c"].map({"u": "zebra", "v": "1", "w": "ä"}))
    assert_same(expected, scores(model_of(loss).fit(named, y), named))


@pytest.mark.parametrize("loss", ["squared_error", "quantile"])
def test_the_unit_of_y_and_a_constant(loss, seed):
    X, y, expected = fitted(loss, seed)
    for factor, constant in ((1000.0, 0.0), (0.001, 0.0), (1.0, 500.0)):
        model = model_of(loss).fit(X, factor * y + constant)
        # The pinball loss is rounded off within a small share of the spread of y.
        tol = 0.01 if loss == "quantile" else SAME
        assert_same(expected, (scores(model, X) - constant) / factor, tol)


def test_a_large_constant_in_y_of_quantile_losses(seed):
    """Targets are multiples of 2⁻²⁰, so that constants are added to them without rounding."""
    X, eta, rng = table(seed)
    X, y = X[:200], np.round(target("quantile", eta, rng)[:200] * 2**20) / 2**20
    model = model_of(km.losses.Quantile(0.9))
    expected, offset = scores(model.fit(X, y), X), 2.0 ** rng.integers(-3, 3, len(y))
    with_offset = scores(model.fit(X, y + offset, offset=offset), X)
    for constant in (-1e5, 2.0**30):
        moved = scores(model.fit(X, y + constant), X) - constant
        assert_same(expected, moved, 1e-5)  # rounding of the scores: 2³⁰ has steps of 1e-7
        moved = scores(model.fit(X, y + offset + constant, offset=offset), X) - constant
        assert_same(with_offset, moved, 1e-5)
    blocks = [(X[:100], y[:100]), (X[100:], y[100:])]
    moved = [(part, values + 1e5) for part, values in blocks]
    assert_same(scores(model.fit(blocks), X), scores(model.fit(moved), X) - 1e5, 1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_sign_of_a_column(loss, seed):
    X, y, expected = fitted(loss, seed)
    mirrored = X.assign(a=-X["a"], b=-X["b"])
    assert_same(expected, scores(model_of(loss).fit(mirrored, y), mirrored), 0.02)


@pytest.mark.parametrize(("quantile", "n"), [(0.5, 60), (0.8, 61), (0.8, 400)])
def test_the_sign_of_y_of_quantile_losses(quantile, n, seed):
    """The quantile q of y is that of 1 − q of −y, with the other sign."""
    X, eta, rng = table(seed, n)
    y, weight = target("quantile", eta, rng), rng.integers(1, 4, n)
    for sample_weight in (None, weight):
        model, mirrored = (model_of(km.losses.Quantile(q)) for q in (quantile, 1 - quantile))
        model.fit(X, y, sample_weight)
        mirrored.fit(X, -y, sample_weight)
        assert_same(scores(model, X), -scores(mirrored, X))
        np.testing.assert_allclose(
            model.predict_interval(X, 0.8), -mirrored.predict_interval(X, 0.8)[:, ::-1], atol=1e-3
        )
