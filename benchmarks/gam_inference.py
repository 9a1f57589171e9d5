"""Simulations of a GAM's p-values, standard errors, prediction intervals and chosen pairs.

    python -m benchmarks.gam_inference [--samples 400] [--jobs 16] [--parts pairs ...] [--write]

prints, for each setting, the share of p-values below 0.05 beside that of the F test, and the shares
of means and of new observations that nominal intervals of 95 % and 90 % cover; those of means of
four losses with 100 to 1500 rows, and of p-values below 0.05 of a column without an effect; the
shares of tables with a false pair, and with the true one; the shares of p-values below 0.05 of a
column beside pairs, and of such a pair; those of `km.anova` for a curve without an effect; the
shares of means and of rows of new levels of a factor that these intervals cover; and for quantile
losses the shares of new observations that intervals of 90 % cover, and of models that are nearly
constant.
``--write`` records them in ``results/gam_inference.json``.
The tests hold shorter runs of some of these settings to bounds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import kernelmaps as km

from .harness import RESULTS

RESULT = RESULTS / "gam_inference.json"
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


class Curves(NamedTuple):
    """Three curves and a column without an effect (Gu and Wahba 1991; `gamSim` of mgcv)."""

    noise: str
    n_rows: int


CURVES = [
    Curves(noise, n_rows)
    for n_rows in (100, 400, 1500) for noise in ("normal", "classes", "poisson", "gamma")
]  # fmt: skip


def curve_coverage(curves: Curves, rng: np.random.Generator) -> tuple[float, float]:
    """Of the link's means by ±1.96 standard errors, and whether the last column is found."""
    x = rng.random((curves.n_rows, 4))
    f = 2 * np.sin(np.pi * x[:, 0]) + np.exp(2 * x[:, 1])
    f += 0.2 * x[:, 2] ** 11 * (10 * (1 - x[:, 2])) ** 6
    f += 10 * (10 * x[:, 2]) ** 3 * (1 - x[:, 2]) ** 10
    if curves.noise == "classes":
        eta = (f - 5) / 3
        model: Any = km.AdditiveClassifier().fit(x, rng.random(len(x)) < 1 / (1 + np.exp(-eta)))
        fitted, std = model.decision_function(x, return_std=True)
    else:
        eta = f / {"normal": 1, "poisson": 7, "gamma": 4}[curves.noise]
        y = {
            "normal": lambda: eta + 2 * rng.normal(size=len(x)),
            "poisson": lambda: rng.poisson(np.exp(eta)),
            "gamma": lambda: rng.gamma(2.0, np.exp(eta) / 2),
        }[curves.noise]()
        model = km.AdditiveRegressor(LOSSES[curves.noise]).fit(x, y)
        fitted, std = model.predict(x, return_std=True)
        if curves.noise != "normal":
            fitted, std = np.log(fitted), std / fitted
    p_value = float(model.predictor_.terms[3].p_value[0])
    return float(np.mean(np.abs(fitted - eta) < 1.96 * std)), float(p_value < 0.05)


class Pairs(NamedTuple):
    """A table in which one pair of columns may interact.

    `columns` says what they hold: normal numbers, skewed ones, a category in every third column, or
    whole numbers. `weights` are random ones ("relative"), or equal rows are one row with their
    number as its weight ("frequency").
    """

    noise: str
    n_rows: int
    n_columns: int
    correlation: float = 0.0
    columns: str = "normal"
    weights: str = "none"
    true_pair: bool = False


PAIRS = [
    Pairs(*setting, true_pair=true_pair)
    for setting in (
        ("normal", 150, 8, 0.0), ("normal", 300, 15, 0.0), ("normal", 2000, 8, 0.0),
        ("normal", 2000, 8, 0.5), ("normal", 1000, 8, 0.0, "skewed"),
        ("normal", 1000, 9, 0.0, "categories"), ("normal", 1000, 8, 0.0, "normal", "relative"),
        ("heteroscedastic", 1500, 8, 0.0), ("poisson", 2000, 8, 0.0),
        ("poisson", 1000, 8, 0.5, "skewed"), ("gamma", 1000, 8, 0.0), ("classes", 300, 8, 0.0),
        ("classes", 2000, 8, 0.5), ("classes", 2000, 9, 0.0, "categories"),
        ("classes", 2000, 8, 0.0, "normal", "relative"),
        ("classes", 4000, 6, 0.0, "whole numbers", "frequency"), ("rare", 4000, 8, 0.0),
        ("factors", 26_000, 6, 0.0),
    )
    for true_pair in (False, True)
]  # fmt: skip
PAIR_LOSSES = {"poisson": "poisson", "gamma": "gamma"}
OF_CLASSES = ("classes", "rare", "factors")


def pair_table(
    pairs: Pairs, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray | None]:
    """Rows, targets and weights; columns x0 and x1 may interact."""
    shape, effect = (pairs.n_rows, pairs.n_columns), float(pairs.true_pair)
    x = np.sqrt(1 - pairs.correlation) * rng.normal(size=shape)
    x += np.sqrt(pairs.correlation) * rng.normal(size=(pairs.n_rows, 1))
    if pairs.columns == "whole numbers":
        x = np.clip(np.rint(x), -2, 2)
    X = pd.DataFrame(x, columns=[f"x{j}" for j in range(pairs.n_columns)])
    if pairs.columns == "skewed":
        X = np.exp(X)
    if pairs.columns == "categories":
        for name in X.columns[2::3]:
            X[name] = pd.cut(X[name], [-9, -1, -0.5, 0, 0.5, 1, 9], labels=list("abcdef"))
    if pairs.noise == "factors":  # one row in 22 is positive, nearly none of one cell
        X["x0"] = rng.choice(list("abcde"), pairs.n_rows, p=[0.5, 0.3, 0.15, 0.04, 0.01])
        X["x1"] = rng.choice(list("uv"), pairs.n_rows, p=[0.95, 0.05])
        first, second = X["x0"] == "b", X["x1"] == "v"
        eta = -3.4 + 0.5 * first + 0.6 * second + 0.5 * x[:, 2] - 2 * effect * (first & second)
        return X, rng.random(pairs.n_rows) < 1 / (1 + np.exp(-eta.to_numpy())), None
    product = effect * x[:, 0] * x[:, 1]
    if pairs.noise in OF_CLASSES:
        eta = (-3 if pairs.noise == "rare" else 0) + 0.5 * x[:, 0] + 0.5 * x[:, 1] + product
        y = rng.random(pairs.n_rows) < 1 / (1 + np.exp(-eta))
    else:
        y = _numbers(pairs.noise, x, product, rng)
    if pairs.weights == "frequency":
        counted = X.assign(y=y).value_counts().reset_index()
        return counted[X.columns], counted["y"].to_numpy(), counted["count"].to_numpy()
    return X, y, rng.exponential(size=pairs.n_rows) if pairs.weights == "relative" else None


def _numbers(
    noise: str, x: np.ndarray, product: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Targets that are numbers or counts."""
    eta = np.sin(x[:, 0]) + x[:, 1] + x[:, 2] ** 2 / 2
    if noise in PAIR_LOSSES:
        mean = np.exp(np.minimum(0.3 * (eta + product), 4))
        return rng.poisson(mean) if noise == "poisson" else rng.gamma(2.0, mean / 2)
    sd = 0.3 + 0.7 * x[:, 3] ** 2 if noise == "heteroscedastic" else 1.0
    return eta + 1.5 * product + sd * rng.normal(size=len(x))


def chosen_pairs(pairs: Pairs, rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether a search adds a false pair, and the true one."""
    X, y, weight = pair_table(pairs, rng)
    options = {"interactions": "auto"}
    if pairs.weights == "frequency":
        options["weights"] = "frequency"
    if pairs.noise in OF_CLASSES:
        model: Any = km.AdditiveClassifier(**options)
    else:
        model = km.AdditiveRegressor(PAIR_LOSSES.get(pairs.noise, "squared_error"), **options)
    chosen = set(model.fit(X, y, weight).term_names_[pairs.n_columns :])
    true = {"x0 × x1"} if pairs.true_pair else set()
    return bool(chosen - true), bool(chosen & true)


class BesidePair(NamedTuple):
    """A column with a slope and a pair, beside a strong pair; or with slopes by group.

    `sd` is that of the slopes, 0 of no pair's effect.
    """

    groups: int
    n_rows: int
    slope: float = 0.0
    sd: float = 0.0


BESIDE_PAIRS = [
    BesidePair(groups, n_rows, *effect)
    for groups, n_rows in ((0, 500), (6, 300), (30, 500))
    for effect in ((0.0, 0.0), (0.15, 0.0), (0.0, 0.2))
]


def p_values_beside_pairs(setting: BesidePair, rng: np.random.Generator) -> tuple[float, float]:
    """Of the column, and of its pair alone."""
    n, groups = setting.n_rows, setting.groups
    x, z, w = rng.normal(size=(3, n))
    if groups:
        code, slopes = (
            rng.integers(0, groups, n),
            setting.slope + setting.sd * rng.normal(size=groups),
        )
        y = 0.5 * rng.normal(size=groups)[code] + slopes[code] * w + rng.normal(size=n)
        X = pd.DataFrame({"w": w, "site": [f"s{k}" for k in code]})
        model = km.AdditiveRegressor(terms=["w", "site", ("site", km.Term("w", "linear"))])
    else:
        y = 2 * x * z + setting.slope * w + setting.sd * x * w + rng.normal(size=n)
        X = pd.DataFrame({"w": w, "x": x, "z": z})
        model = km.AdditiveRegressor(interactions=[("x", "z"), ("w", "x")])
    terms = model.fit(X, y).predictor_.terms
    return float(terms[0].p_value[0]), float(terms[-1].p_value[0])


class Nested(NamedTuple):
    """Models with and without a curve that has no effect, or a category."""

    noise: str
    n_rows: int
    category: bool = False


NESTED = [
    Nested(noise, n_rows, category)
    for noise in ("normal", "poisson", "classes") for n_rows in (100, 400)
    for category in (False, True)
]  # fmt: skip


def anova_p_value(nested: Nested, rng: np.random.Generator) -> float:
    """Of the comparison of both models."""
    X = pd.DataFrame({"x": rng.random(nested.n_rows)})
    X["null"] = rng.choice(list("abcdefgh"), len(X)) if nested.category else rng.random(len(X))
    eta = np.sin(6 * X["x"].to_numpy())
    if nested.noise == "classes":
        estimator: Any = km.AdditiveClassifier
        y = rng.random(len(X)) < 1 / (1 + np.exp(-eta))
    else:
        estimator = partial(km.AdditiveRegressor, LOSSES[nested.noise])
        y = rng.poisson(np.exp(1 + eta)) if nested.noise == "poisson" else eta
        y = y + rng.normal(size=len(X)) if nested.noise == "normal" else y
    small, large = (estimator(terms=terms).fit(X, y) for terms in (["x"], ["x", "null"]))
    return float(km.anova(small, large).records[1]["p_value"])


class NewLevel(NamedTuple):
    """A factor whose levels have normal effects, and levels that no row has."""

    n_levels: int
    rows_per_level: int
    unbalanced: bool = False


NEW_LEVELS = [
    NewLevel(5, 40), NewLevel(8, 15), NewLevel(20, 15), NewLevel(20, 15, unbalanced=True),
    NewLevel(60, 8), NewLevel(300, 8),
]  # fmt: skip


def new_level_coverage(factor: NewLevel, rng: np.random.Generator) -> tuple[float, float]:
    """Of the means of new levels by ±1.96 standard errors, and of their rows by 90 % intervals."""
    n_rows = factor.n_levels * factor.rows_per_level
    shares = rng.dirichlet(np.full(factor.n_levels, 2.0)) if factor.unbalanced else None
    at_least = np.repeat(np.arange(factor.n_levels), 3)
    level = np.append(at_least, rng.choice(factor.n_levels, n_rows - len(at_least), p=shares))
    y = rng.normal(size=factor.n_levels)[level] + rng.normal(size=n_rows)
    X = pd.DataFrame({"level": [f"l{k}" for k in level]})
    model, new = km.AdditiveRegressor().fit(X, y), pd.DataFrame({"level": ["new"]})
    (predicted,), (error,) = model.predict(new, return_std=True)
    low, high = model.predict_interval(new, 0.9)[0]
    mean = rng.normal(size=200)
    rows = mean + rng.normal(size=200)
    inside = (rows >= low) & (rows <= high)
    return float(np.mean(np.abs(predicted - mean) < 1.96 * error)), float(np.mean(inside))


class Quantiles(NamedTuple):
    """A quantile loss, and rows whose effects have most of the variance."""

    quantile: float
    n_rows: int
    skewed: bool = False


QUANTILES = [
    Quantiles(quantile, n_rows, skewed)
    for quantile in (0.5, 0.9) for n_rows in (60, 300) for skewed in (False, True)
]  # fmt: skip


def quantile_intervals(setting: Quantiles, rng: np.random.Generator) -> tuple[float, float]:
    """Of new observations by 90 % intervals, and whether the model is nearly constant."""

    def rows(n: int) -> tuple[pd.DataFrame, np.ndarray]:
        X, mean, _ = additive("normal", n, rng)
        noise = rng.gamma(1.0, size=n) - 1 if setting.skewed else rng.normal(size=n)
        return X, mean + 0.3 * noise

    X, y = rows(setting.n_rows)
    model = km.AdditiveRegressor(km.losses.Quantile(setting.quantile)).fit(X, y)
    new, observed = rows(1000)
    low, high = model.predict_interval(new, 0.9).T
    constant = model.predict(X).std() < 0.5 * y.std()
    return float(np.mean((observed >= low) & (observed <= high))), float(constant)


class Simulation(NamedTuple):
    """Settings, what one sample of a setting gives, and what the shares of samples are called."""

    settings: Sequence[Any]
    sample: Callable[[Any, np.random.Generator], Any]
    shares: tuple[str, ...]
    level: float | None = None  # samples are p-values: their share below it is counted


PARTS = {
    "factors": Simulation(FACTORS, p_values, ("below 0.05", "F test"), 0.05),
    "coverage": Simulation(list(LOSSES), coverage, ("means (0.95)", "new observations (0.90)")),
    "curves": Simulation(CURVES, curve_coverage, ("means (0.95)", "no effect below 0.05")),
    "pairs": Simulation(PAIRS, chosen_pairs, ("false pair", "true pair")),
    "beside pairs": Simulation(
        BESIDE_PAIRS, p_values_beside_pairs, ("column below 0.05", "its pair below 0.05"), 0.05
    ),
    "anova": Simulation(NESTED, anova_p_value, ("below 0.05",), 0.05),
    "new levels": Simulation(
        NEW_LEVELS, new_level_coverage, ("means of new levels (0.95)", "their rows (0.90)")
    ),
    "quantiles": Simulation(
        QUANTILES, quantile_intervals, ("new observations (0.90)", "nearly constant")
    ),
}


def one_sample(part: str, setting: int, sample: int) -> np.ndarray:
    """What one sample of a setting gives, whatever else is drawn."""
    of = PARTS[part]
    result = of.sample(of.settings[setting], np.random.default_rng([setting, sample]))
    return np.atleast_1d(result if of.level is None else np.asarray(result) < of.level)


def records(parts: Sequence[str], n_samples: int, n_jobs: int) -> Iterator[dict[str, Any]]:
    """Shares of samples, by setting."""
    with ProcessPoolExecutor(n_jobs, get_context("spawn")) as pool:
        runs = [
            (name, k, setting, pool.map(partial(one_sample, name, k), range(n_samples)))
            for name in parts
            for k, setting in enumerate(PARTS[name].settings)
        ]
        for name, _, setting, samples in runs:
            mean = np.mean(list(samples), axis=0)
            shown = setting._asdict() if hasattr(setting, "_asdict") else {"noise": setting}
            shares = dict(zip(PARTS[name].shares, mean.tolist(), strict=True))
            yield {"part": name, **shown, "samples": n_samples, "shares": shares}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gam_inference", description=__doc__)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    arguments = parser.parse_args()
    results = []
    for record in records(arguments.parts, arguments.samples, arguments.jobs):
        results.append(record)
        print(json.dumps(record, ensure_ascii=False), flush=True)
    if arguments.write:
        RESULT.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
