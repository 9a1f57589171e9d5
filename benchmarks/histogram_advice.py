"""Square roots, maps of χ² and of exp-χ² on histograms of CIFAR-10: the figures of the guide.

    python -m benchmarks.histogram_advice --data FOLDER

Three draws of the training rows: some to fit, and 3000 others, which score; test rows are not used.
Gradients and colours are each divided by their sum. The model is ridge regression with its α by
generalised cross-validation.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import kernelmaps as km

from .datasets import load

RECORD = Path(__file__).parent / "results" / "histogram_advice.json"
DRAWS, HELD_OUT = 3, 3000
ALPHAS = np.logspace(-6, 4, 21)


def maps(kinds: str, seed: int) -> dict[str, object]:
    """Maps of histograms: "additive" ones, or "joint" ones of 500 columns."""
    if kinds == "joint":
        return {
            "NystroemMap, exp-χ²": km.NystroemMap("exp_chi2", 500, random_state=seed),
            "ExponentialMap, exp-χ²": km.ExponentialMap(n_components=500, random_state=seed),
        }
    return {
        "raw rows": FunctionTransformer(),
        "square roots": FunctionTransformer(np.sqrt),
        "χ², 3 columns": km.DesignedMap("chi2", 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args()
    data = load("cifar10_hist", options.data)
    shares = {}
    for name, columns in data.columns.items():
        counts = data.X_train[:, columns].astype(np.float64)
        shares[name] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    both = np.hstack(list(shares.values()))
    record: dict[str, list[float]] = {}
    for words, X, n_rows, kinds in (
        ("gradients and colours", both, 10_000, "additive"),
        ("colours", shares["color"], 4000, "additive"),
        ("gradients and colours", both, 4000, "joint"),
    ):
        for seed in range(DRAWS):
            rows = np.random.default_rng(seed).permutation(len(X))[: n_rows + HELD_OUT]
            fit, others = rows[:n_rows], rows[n_rows:]
            for name, feature_map in maps(kinds, seed).items():
                ridge = km.StreamingRidgeClassifier(ALPHAS, validation="gcv")
                model = make_pipeline(feature_map, ridge)
                score = model.fit(X[fit], data.y_train[fit]).score(X[others], data.y_train[others])
                record.setdefault(f"{words}, {n_rows} rows: {name}", []).append(round(score, 4))
    for what, scores in record.items():
        print(f"{what}: {np.mean(scores):.3f} {scores}")
    text = json.dumps(record, indent=1, ensure_ascii=False)
    options.record.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
