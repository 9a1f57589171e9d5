"""GAMs of tables with many columns or levels: time, memory, and errors beside ridge regression.

Simulated, so that the true function is known: `few` of the columns have an effect, or `all` of
them a small linear one, or none. Errors are root mean squares of the difference from the true
function on new rows, the means of some tables. Times are processor times, each fit in a process of
its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from time import process_time

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV

import kernelmaps as km

from .harness import Bench
from .memory import peak_bytes

# Rows, columns, loss, and the most seconds and MiB of a fit.
SIZES = [
    (5_000, 400, "squared_error", 8, 2048),
    (5_000, 1_000, "squared_error", 30, 2048),
    (3_000, 2_000, "squared_error", 120, 3072),
    (252, 751, "log_loss", 20, 2048),
    (100_000, 230, "log_loss", 60, 2048),
    (500_000, 230, "log_loss", 300, 3072),
]
# Rows and columns of searches for pairs, and the most seconds and MiB; also the most times the fit
# without pairs, in the same run.
PAIRS = [
    (1_000, 500, 20, 1024, 5.0),
    (500, 2_000, 60, 2048, 5.0),
    (2_000, 2_000, 120, 2048, 5.0),
]
# Rows, levels of a factor beside eight columns of numbers, loss, and the most seconds and MiB.
LEVELS = [
    (50_000, 1_000, "squared_error", 5, 1024),
    (1_000_000, 100_000, "squared_error", 30, 2048),
    (1_000_000, 100_000, "log_loss", 60, 2048),
]
# Rows, columns, and which columns have an effect.
ERRORS = [
    (100, 50, "few"),
    (100, 100, "none"),
    (200, 30, "few"),
    (200, 100, "all"),
    (100, 200, "all"),
]
TABLES = 10


def effect(X: np.ndarray, of: str) -> np.ndarray:
    """The true function."""
    if of == "few":
        return np.sin(2 * X[:, 0]) + 0.5 * (X[:, 1] ** 2 - 1) + 0.5 * X[:, 2]
    beta = np.random.default_rng(0).normal(size=X.shape[1]) / np.sqrt(X.shape[1])
    return X @ beta if of == "all" else np.zeros(len(X))


def fit_once(rows: int, columns: int, loss: str, interactions: str | None = None) -> None:
    """Fit, and print seconds and MiB."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    score = effect(X, "few") + rng.normal(size=rows)
    if interactions is not None:
        score += X[:, 0] * X[:, 1]
    if loss == "log_loss":
        model, y = km.AdditiveClassifier(interactions=interactions), (score > 0).astype(int)
    else:
        model, y = km.AdditiveRegressor(interactions=interactions), score
    model.fit(X[:200, :3], y[:200])  # compiles
    start = process_time()
    model.fit(X, y)
    peak = peak_bytes() / 2**20
    print(json.dumps([process_time() - start, peak]))


def fit_levels(rows: int, levels: int, loss: str) -> None:
    """Fit rows of many levels, and print seconds, MiB, and the R² of new rows beside the best."""
    rng = np.random.default_rng(0)
    effects = rng.normal(size=levels)

    def draw(n: int) -> tuple[pd.DataFrame, np.ndarray]:
        level, X = rng.integers(0, levels, n), rng.normal(size=(n, 8))
        names = np.array([f"level {k}" for k in range(levels)], dtype=object)[level]
        frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(8)]).assign(level=names)
        return frame, effects[level] + 0.5 * effect(X, "few")

    X, score = draw(rows)
    if loss == "log_loss":
        model, y = km.AdditiveClassifier(), rng.random(rows) < 1 / (1 + np.exp(-score))
    else:
        model, y = km.AdditiveRegressor(), score + 0.5 * rng.normal(size=rows)
    few = X[:2000].assign(level=[f"level {k % 300}" for k in range(2000)])
    model.fit(few, y[:2000])  # compiles
    start = process_time()
    model.fit(X, y)
    seconds = process_time() - start
    peak = peak_bytes() / 2**20
    new, truth = draw(10_000)
    error = np.mean((model.predictor_.scores(model._columns(new))[:, 0] - truth) ** 2)
    print(json.dumps([seconds, peak, 1 - float(error) / float(truth.var())]))


def race_levels(bench: Bench) -> None:
    """Time, memory and R² of the true scores by the number of levels."""
    for rows, levels, loss, most_seconds, most_mib in LEVELS[: 1 if bench.quick else None]:
        words = [sys.executable, "-m", __name__, str(rows), str(levels), loss, "levels"]
        output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        seconds, peak, explained = json.loads(output)
        what = f"{rows:,} rows of {levels:,} levels, {loss}"
        bench.measure(f"{what}: fit", seconds, "s", at_most=most_seconds)
        bench.measure(f"{what}: memory", peak, "MiB", at_most=most_mib)
        bench.measure(f"{what}: share of the true scores explained", explained, "R²")


def race_sizes(bench: Bench) -> None:
    """Time and memory by size."""
    for rows, columns, loss, most_seconds, most_mib in SIZES[: 2 if bench.quick else None]:
        words = [sys.executable, "-m", __name__, str(rows), str(columns), loss]
        output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        seconds, peak = json.loads(output)
        what = f"{rows:,} × {columns:,}, {loss}"
        bench.measure(f"{what}: fit", seconds, "s", at_most=most_seconds)
        bench.measure(f"{what}: memory", peak, "MiB", at_most=most_mib)


def race_pairs(bench: Bench) -> None:
    """Time and memory of searches for pairs, beside the fit without pairs."""
    for rows, columns, most_seconds, most_mib, most_times in PAIRS[: 1 if bench.quick else None]:
        words = [sys.executable, "-m", __name__, str(rows), str(columns), "squared_error"]
        outputs = [
            subprocess.run([*words, *more], capture_output=True, text=True, check=True).stdout
            for more in ((), ("auto",))
        ]
        (alone, _), (seconds, peak) = map(json.loads, outputs)
        what = f"{rows:,} × {columns:,}, pairs"
        bench.measure(f"{what}: fit", seconds, "s", at_most=most_seconds)
        row = bench.measure(
            f"{what}: fit", seconds, "s", peer="the fit without pairs", theirs=alone
        )
        row.ratio, row.target = alone / seconds, f"≥ 1/{most_times:g}"
        row.reached = seconds <= most_times * alone
        bench.measure(f"{what}: memory", peak, "MiB", at_most=most_mib)


def race_errors(bench: Bench) -> None:
    """Errors beside ridge regression with a tuned penalty."""
    for rows, columns, of in ERRORS:
        errors, dispersions = [], []
        for seed in range(2 if bench.quick else TABLES):
            rng = np.random.default_rng(seed)
            X, new = rng.normal(size=(rows, columns)), rng.normal(size=(1000, columns))
            y = effect(X, of) + rng.normal(size=rows)
            gam = km.AdditiveRegressor().fit(X, y)
            ridge = RidgeCV(np.geomspace(0.01, 1e4, 25)).fit(X, y)
            dispersions.append(float(gam.dispersion_[0]))
            differences = (model.predict(new) - effect(new, of) for model in (gam, ridge))
            errors.append([np.sqrt(np.mean(d**2)) for d in differences])
        ours, theirs = np.mean(errors, axis=0).tolist()
        details = {"dispersion": float(np.mean(dispersions))}
        what = f"{rows} × {columns}, effects of {of}: error"
        bench.measure(what, ours, "rmse", peer="RidgeCV", theirs=theirs, details=details)


PARTS = {
    "errors": race_errors,
    "sizes": race_sizes,
    "pairs": race_pairs,
    "levels": race_levels,
}


def run(bench: Bench, parts: Sequence[str] = tuple(PARTS)) -> None:
    for part in parts:
        PARTS[part](bench)


if __name__ == "__main__":
    size = int(sys.argv[1]), int(sys.argv[2])
    if sys.argv[-1] == "levels":
        fit_levels(*size, sys.argv[3])
    else:
        fit_once(*size, *sys.argv[3:])
