"""One against the rest or one against one: `AdditiveSVC` on tables of 3 to 26 classes.

    python -m benchmarks.many_classes --data FOLDER [--names letter usps] [--rows 3000]

Training rows alone: two folds, in each of which C is chosen by three folds of its training part,
for both ways. Accuracy in percent, and seconds of one core. Tables of histograms have the χ² map,
others the default. Some targets are categorical columns of tables that are about something else.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

import kernelmaps as km

from .datasets import load_table

RECORD = Path(__file__).parent / "results" / "many_classes.json"
HISTOGRAMS = ("cifar10_color", "cifar10_hog", "scene15_bow")
COLUMNS = {  # categorical columns that serve as targets
    "telecom_churn": "payment_method",
    "diamonds": "clarity",
    "credit": "Home",
    "attrition": "JobRole",
}
NAMES = ("wine", *COLUMNS, "digits", "cifar10_color", "pendigits", "letter")  # others take hours
COSTS = (0.1, 1.0, 10.0)
LEAST_OF_CLASS = 20


def rows_of(name: str, folder: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Random training rows of classes that are not too rare, and their classes."""
    X, y = load_table(name, folder, COLUMNS.get(name, "target"))
    y = y.astype(str) if name in COLUMNS else y
    rows = np.random.default_rng(0).permutation(X.shape[0])[:n_rows]
    X, y = X[rows], y[rows]
    X = X.toarray() if hasattr(X, "toarray") else X
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    kept = counts[codes] >= LEAST_OF_CLASS
    return np.asarray(X[kept], dtype=np.float64), y[kept]


def measure(name: str, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Accuracy of both ways on the same folds."""
    if name in HISTOGRAMS:
        X = X / np.maximum(X.sum(axis=1, keepdims=True), 1e-12)
    feature_map = km.DesignedMap("chi2") if name in HISTOGRAMS else None
    figures: dict[str, Any] = {"rows": len(y), "features": X.shape[1]}
    figures["classes"] = len(np.unique(y))
    for way in ("ovr", "ovo"):
        scores, start = [], time.process_time()
        for fit, held_out in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y):
            model = km.AdditiveSVC(feature_map, C=COSTS, cv=3, multi_class=way, n_jobs=1)
            model.set_params(random_state=0).fit(X[fit], y[fit])
            scores.append(100 * float(np.mean(model.predict(X[held_out]) == y[held_out])))
        figures[way] = float(np.mean(scores))
        figures[f"{way} seconds"] = (time.process_time() - start) / 2
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--names", nargs="+", default=NAMES)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args()
    record = {}
    for name in options.names:
        X, y = rows_of(name, options.data, options.rows)
        record[name] = measure(name, X, y)
        print(name, {key: round(value, 1) for key, value in record[name].items()}, flush=True)
        options.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
