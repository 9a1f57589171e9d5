"""`StreamingRidge` by evidence beside scikit-learn's Gaussian process, on five tables.

    python -m benchmarks.gaussian_process --data FOLDER [--names diabetes] [--rows 2000]

Random rows are fitted, at most three quarters, and at most 2000 others predicted; columns are
standardised. R², coverage of 90 % intervals of new observations, and processor seconds of the fit.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import r2_score

import kernelmaps as km

from .datasets import load

RECORD = Path(__file__).parent / "results" / "gaussian_process.json"
NAMES = ("california_housing", "casp_protein", "diamonds", "diabetes", "friedman1")


def table_of(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows of a table, and their targets."""
    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    if name == "friedman1":
        return make_friedman1(6000, noise=1.0, random_state=0)
    if name == "diamonds":  # the logarithm of the price
        import pandas as pd

        frame = pd.read_parquet(Path(folder) / "tables" / "diamonds.parquet")
        y = np.log(frame.pop("target").to_numpy(float))
        return km.TableEncoder().fit_transform(frame), y
    data = load(name, folder)
    X = np.concatenate([data.X_train, data.X_test]).astype(float)
    return X, np.concatenate([data.y_train, data.y_test]).astype(float)


def measure(X: np.ndarray, y: np.ndarray, n_rows: int) -> dict[str, Any]:
    """R², coverage and seconds of both."""
    rows = np.random.default_rng(0).permutation(len(X))
    n_rows = min(n_rows, len(X) * 3 // 4)
    fit, others = rows[:n_rows], rows[n_rows : n_rows + 2000]
    X = (X - X[fit].mean(axis=0)) / (X[fit].std(axis=0) + 1e-12)
    figures: dict[str, Any] = {"rows": n_rows, "features": X.shape[1]}

    start = time.process_time()
    ridge = km.StreamingRidge("evidence", km.RandomFourierMap(n_components=1000, random_state=0))
    ridge.fit(X[fit], y[fit])
    seconds = time.process_time() - start
    low, high = ridge.predict_interval(X[others], level=0.9).T
    covered = float(np.mean((low <= y[others]) & (y[others] <= high)))
    figures["ridge"] = np.round([ridge.score(X[others], y[others]), covered, seconds], 3).tolist()

    start = time.process_time()
    kernel = ConstantKernel() * RBF(np.sqrt(X.shape[1])) + WhiteKernel()
    process = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[fit], y[fit])
    seconds = time.process_time() - start
    mean, std = process.predict(X[others], return_std=True)
    covered = float(np.mean(np.abs(y[others] - mean) < 1.6449 * std))
    figures["process"] = np.round([r2_score(y[others], mean), covered, seconds], 3).tolist()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--names", nargs="+", default=NAMES)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args()
    measure(*make_friedman1(300, random_state=0), 200)  # compiles
    record = {}
    for name in options.names:
        record[name] = measure(*table_of(name, options.data), options.rows)
        print(name, record[name], flush=True)
        options.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
