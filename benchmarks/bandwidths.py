"""Which length scale: ridge on random Fourier features by rule, on validation rows of many tables.

    python -m benchmarks.bandwidths --data FOLDER [--names letter usps] [--kernels gaussian]

Each table: 9000 training rows at most (test rows are not used), two thirds to fit and the others to
validate. Columns are standardised where they are not of one unit; categories have a column for
each level. Two scores for each rule: with ridge parameter 1 (the default), and with one chosen by
leave-one-out. Accuracy of classes, R² of numbers; lengths are multiples of the median distance.
"and columns": features at the median beside the columns, which are scaled to rows of mean square 1.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.preprocessing import StandardScaler

import kernelmaps as km

from .datasets import load_table

RECORD = Path(__file__).parent / "results" / "bandwidths.json"
ONE_UNIT = ("cifar10_color", "cifar10_hog", "inria_person_hog", "usps", "mnist")
NUMBERS = ("california_housing", "casp_protein", "diamonds", "diabetes")
PARQUET = ("telecom_churn", "credit", "attrition", "diamonds")
NAMES = (
    *ONE_UNIT, *NUMBERS, "letter", "pendigits", "magic04", "spambase", "telecom_churn", "credit",
    "attrition",
)  # fmt: skip
MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
PENALTIES = np.logspace(-6, 4, 11)


def rows_of(name: str, folder: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Random training rows, and their targets."""
    X, y = load_table(name, folder)
    if name in PARQUET:  # without a split of their own
        y = np.log(y.astype(float)) if name in NUMBERS else y.astype(str)
        kept = np.random.default_rng(1).permutation(len(y))[: len(y) * 3 // 4]
        X, y = X[kept], y[kept]
    rows = np.random.default_rng(0).permutation(X.shape[0])[:n_rows]
    return np.asarray(X[rows], dtype=np.float64), y[rows]


def measure(name: str, X: np.ndarray, y: np.ndarray, kernels: Sequence[str]) -> dict[str, Any]:
    """Scores on the validation rows by length scale, and those of the raw columns."""
    fit, held_out = np.arange(len(y)) < len(y) * 2 // 3, np.arange(len(y)) >= len(y) * 2 // 3
    if name in ONE_UNIT:
        X = X / np.abs(X).max()
    else:
        X = StandardScaler().fit(X[fit]).transform(X)

    def score(feature_map: Any, columns: bool = False) -> list[float]:
        Z = X if feature_map is None else feature_map.fit(X[fit]).transform(X)
        Z = np.hstack([Z, X / np.sqrt((X[fit] ** 2).sum(axis=1).mean())]) if columns else Z
        estimator = RidgeCV if name in NUMBERS else RidgeClassifierCV
        models = (estimator(alphas).fit(Z[fit], y[fit]) for alphas in ([1.0], PENALTIES))
        return [float(model.score(Z[held_out], y[held_out])) for model in models]

    scores: dict[str, Any] = {"raw": score(None)}
    for kernel in kernels:
        median = km.RandomFourierMap(kernel, 8, random_state=0).fit(X[fit]).kernel_
        d, variance = X.shape[1], X[fit].var()  # scikit-learn's γ = 1/(d Var X), and its like
        scale = d * np.sqrt(variance) if kernel == "laplacian" else np.sqrt(d * variance / 2)
        lengths = {f"{m:g} medians": m * median.length for m in MULTIPLES}
        lengths["scale"] = scale
        for rule, length in lengths.items():
            made = km.RandomFourierMap(median.with_parameter(length), random_state=0)
            scores[f"{kernel}, {rule}"] = score(made)
            if rule == "1 medians":
                scores[f"{kernel}, {rule}, and columns"] = score(made, columns=True)
        scores[f"{kernel}, scale / median"] = scale / median.length
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--names", nargs="+", default=NAMES)
    parser.add_argument("--kernels", nargs="+", default=["gaussian", "laplacian"])
    parser.add_argument("--rows", type=int, default=9000)
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args()
    record = {}
    for name in options.names:
        X, y = rows_of(name, options.data, options.rows)
        scores = measure(name, X, y, options.kernels)
        print(f"{name} {X.shape}")
        record[name] = {"rows": len(y), "features": X.shape[1], **scores}
        options.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        for rule, values in scores.items():
            print(f"    {rule:28}", *(f"{value:7.3f}" for value in np.ravel(values)), flush=True)


if __name__ == "__main__":
    main()
