"""Simulations of a GAM's p-values, standard errors, prediction intervals and chosen pairs.

    python -m benchmarks.gam_inference [number of samples, 200 by default]

prints, for each setting, the share of p-values below 0.05 beside that of the F test, and the shares
of means and of new observations that nominal intervals of 95 % and 90 % cover; then the shares of
tables with a false pair, and with the true one. The tests hold shorter runs of the same settings to
bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import kernelmaps as km

LOSSES = {"normal": "squared_error", "poisson": "poisson", "gamma": "gamma"}


class Factor(NamedTuple):
    """A factor whose levels have normal effects, and whether a curve is in the model."""

    n_rows: int
    n_levels: int
    sd: float
    unbalanced: bool = False
    curve: bool = False


FACTORS = [
    Factor(60, 8, 0.0),
    Factor(400, 8, 0.0),
    Factor(400, 8, 0.0, unbalanced=True, curve=True),
    Factor(1000, 50, 0.0),
    Factor(400, 8, 0.15),
    Factor(1000, 50, 0.2),
    Factor(1000, 50, 0.2, unbalanced=True, curve=True),
]


def p_values(factor: Factor, rng: np.random.Generator) -> tuple[float, float]:
    """Of the factor in a fitted model, and of the F test with the curve known."""
    shares = rng.dirichlet(np.ones(factor.n_levels)) if factor.unbalanced else None
    level = rng.choice(factor.n_levels, factor.n_rows, p=shares)
    y = factor.sd * rng.normal(size=factor.n_levels)[level] + rng.normal(size=factor.n_rows)
    X = pd.DataFrame({"level": [f"l{k}" for k in level]})
    groups = [y[level == k] for k in np.flatnonzero(np.bincount(level) > 1)]
    exact = float(stats.f_oneway(*groups).pvalue)
    if factor.curve:
        X["x"] = rng.random(factor.n_rows)
        y = y + np.sin(5 * X["x"].to_numpy())
    return float(km.AdditiveRegressor().fit(X, y).predictor_.terms[0].p_value[0]), exact


def additive(
    noise: str, n_rows: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows, their means, and observations."""
    X = pd.DataFrame({"a": rng.random(n_rows), "b": rng.normal(size=n_rows)})
    X["c"] = rng.choice(list("uvw"), n_rows)
    effects = np.sin(6 * X["a"]) + 0.3 * X["b"] + X["c"].map({"u": 0.5, "v": 0.0, "w": -0.5})
    eta = effects.to_numpy()
    if noise == "normal":
        return X, eta, eta + 0.5 * rng.normal(size=n_rows)
    mean = np.exp(2 + eta)
    return X, mean, rng.poisson(mean) if noise == "poisson" else rng.gamma(4.0, mean / 4)


def coverage(noise: str, rng: np.random.Generator, n_rows: int = 300) -> tuple[float, float]:
    """Of the mean by ±1.96 standard errors, and of new observations by intervals of 90 %."""
    X, _, y = additive(noise, n_rows, rng)
    model = km.AdditiveRegressor(LOSSES[noise]).fit(X, y)
    new, mean, observed = additive(noise, n_rows, rng)
    predicted, std = model.predict(new, return_std=True)
    low, high = model.predict_interval(new, 0.9).T
    inside = (observed >= low) & (observed <= high)
    return float(np.mean(np.abs(predicted - mean) < 1.96 * std)), float(np.mean(inside))


class Pairs(NamedTuple):
    """A table in which one pair of columns may interact."""

    noise: str
    n_rows: int
    n_columns: int
    true_pair: bool
    correlation: float = 0.0


PAIRS = [
    Pairs(noise, n_rows, n_columns, true_pair, correlation)
    for noise, n_rows, n_columns, correlation in (
        ("normal", 300, 15, 0.0), ("normal", 2000, 8, 0.0), ("normal", 2000, 8, 0.5),
        ("heteroscedastic", 1500, 8, 0.0), ("poisson", 2000, 8, 0.0), ("rare", 4000, 8, 0.0),
        ("factors", 26_000, 6, 0.0),
    )
    for true_pair in (False, True)
]  # fmt: skip


def pair_table(pairs: Pairs, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows and targets; columns x0 and x1 may interact."""
    shape, effect = (pairs.n_rows, pairs.n_columns), float(pairs.true_pair)
    x = np.sqrt(1 - pairs.correlation) * rng.normal(size=shape)
    x += np.sqrt(pairs.correlation) * rng.normal(size=(pairs.n_rows, 1))
    X = pd.DataFrame(x, columns=[f"x{j}" for j in range(pairs.n_columns)])
    if pairs.noise == "factors":  # one row in 22 is positive, nearly none of one cell
        X["x0"] = rng.choice(list("abcde"), pairs.n_rows, p=[0.5, 0.3, 0.15, 0.04, 0.01])
        X["x1"] = rng.choice(list("uv"), pairs.n_rows, p=[0.95, 0.05])
        first, second = X["x0"] == "b", X["x1"] == "v"
        eta = -3.4 + 0.5 * first + 0.6 * second + 0.5 * x[:, 2] - 2 * effect * (first & second)
        return X, rng.random(pairs.n_rows) < 1 / (1 + np.exp(-eta.to_numpy()))
    if pairs.noise == "rare":
        eta = -3 + 0.5 * x[:, 0] + 0.5 * x[:, 1] + effect * x[:, 0] * x[:, 1]
        return X, rng.random(pairs.n_rows) < 1 / (1 + np.exp(-eta))
    eta = np.sin(x[:, 0]) + x[:, 1] + x[:, 2] ** 2 / 2
    if pairs.noise == "poisson":
        eta = 0.3 * eta + 0.3 * effect * x[:, 0] * x[:, 1]
        return X, rng.poisson(np.exp(np.minimum(eta, 4)))
    sd = 0.3 + 0.7 * x[:, 3] ** 2 if pairs.noise == "heteroscedastic" else 1.0
    return X, eta + 1.5 * effect * x[:, 0] * x[:, 1] + sd * rng.normal(size=pairs.n_rows)


def chosen_pairs(pairs: Pairs, rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether a search adds a false pair, and the true one."""
    X, y = pair_table(pairs, rng)
    if y.dtype == bool:
        model = km.AdditiveClassifier(interactions="auto")
    else:
        loss = "poisson" if pairs.noise == "poisson" else "squared_error"
        model = km.AdditiveRegressor(loss, interactions="auto")
    chosen = set(model.fit(X, y).term_names_[pairs.n_columns :])
    true = {"x0 × x1"} if pairs.true_pair else set()
    return bool(chosen - true), bool(chosen & true)


def lines(n_samples: int) -> Iterator[str]:
    """The results, one line each."""
    for factor in FACTORS:
        rng = np.random.default_rng(0)
        p = np.array([p_values(factor, rng) for _ in range(n_samples)])
        ours, of_f = np.mean(p < 0.05, axis=0)
        yield f"{factor}: {ours:.3f} below 0.05, F test {of_f:.3f}"
    for noise in LOSSES:
        rng = np.random.default_rng(0)
        of_mean, of_new = np.mean([coverage(noise, rng) for _ in range(n_samples)], axis=0)
        yield f"{noise}: means {of_mean:.3f} (0.95), new observations {of_new:.3f} (0.90)"
    for pairs in PAIRS:
        rng = np.random.default_rng(0)
        false, true = np.mean([chosen_pairs(pairs, rng) for _ in range(n_samples)], axis=0)
        yield f"{pairs}: {false:.3f} of the tables have a false pair, {true:.3f} the true one"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
        print(line, flush=True)
