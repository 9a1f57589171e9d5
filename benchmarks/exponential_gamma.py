"""Rules for the γ of `ExponentialMap` beside a γ that is chosen on training rows.

    python -m benchmarks.exponential_gamma --data FOLDER

Test accuracy, in percent, of an SVM on the exact exp-χ² kernel with γ by the rules "scale" and
"local", and with the best of seven multiples (1/4 to 16) of "scale" by three folds of the training
rows; means of three splits. The figures are written to results/exponential_gamma.json, and their
table to the page on exponential maps.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import SVC

import kernelmaps as km
from kernelmaps._util.sparse import dense

from .datasets import load as load_dataset

HERE = Path(__file__).parent
RECORD = HERE / "results" / "exponential_gamma.json"
PAGE = HERE.parent / "docs" / "methods" / "exponential.md"
BEGIN, END = "<!-- gamma: made by benchmarks/exponential_gamma.py -->", "<!-- end gamma -->"
DATASETS = {
    "pendigits": "pendigits",
    "letter": "letter",
    "usps": "usps",
    "digits": "digits",
    "cifar10_hist": "colour histograms (cifar-10)",
    "mnist": "mnist",
    "scene15_bow": "visual words (scene15)",
    "caltech101_bow": "visual words (caltech101)",
    "spambase": "spambase",
    "magic04": "magic",
}
RULES = ("scale", "local", "chosen")
MULTIPLES = tuple(2.0**power for power in range(-2, 5))
PENALTIES = (1.0, 10.0)
TRAIN_ROWS, MOST_TEST_ROWS, SPLITS = 800, 1200, 3


def accuracy(squared: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, C: float,
             gamma: float) -> float:  # fmt: skip
    """Test accuracy of an SVM, from the squared distances of the base kernel."""
    K = np.exp(-gamma * squared)
    machine = SVC(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
    return float(machine.score(K[np.ix_(test, train)], y[test]))


def chosen_gamma(
    squared: np.ndarray, y: np.ndarray, train: np.ndarray, C: float, gammas: Sequence[float]
) -> float:
    """The γ of the best mean accuracy in three folds of the training rows."""
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(train, y[train]))

    def score(gamma: float) -> float:
        return float(
            np.mean([accuracy(squared, y, train[a], train[b], C, gamma) for a, b in folds])
        )

    return max(gammas, key=score)


def one_split(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, list[list[float]]]:
    """Local over scale, and for each C the accuracies of scale, local and the chosen γ."""
    n = min(len(X), TRAIN_ROWS + MOST_TEST_ROWS)
    rows, _ = train_test_split(np.arange(len(X)), train_size=n - 1, random_state=seed)
    X, y = X[rows].astype(np.float64), y[rows]
    train, test = np.arange(TRAIN_ROWS), np.arange(TRAIN_ROWS, len(X))
    squared = km.kernels.chi2.squared_distance(X)
    scale, local = (
        km.ExponentialMap(n_components=8, gamma=rule, random_state=0).fit(X[train]).gamma_
        for rule in ("scale", "local")
    )
    accuracies = []
    for C in PENALTIES:
        best = chosen_gamma(squared, y, train, C, [m * scale for m in MULTIPLES])
        gammas = scale, local, best
        accuracies.append([accuracy(squared, y, train, test, C, gamma) for gamma in gammas])
    return local / scale, accuracies


def measure(name: str, folder: str | None) -> dict[str, Any]:
    """Means over the splits of a dataset: accuracies for each C, in percent, and local / scale."""
    data = load_dataset(name, folder=folder)
    X = np.concatenate([dense(data.X_train), dense(data.X_test)])
    y = np.concatenate([data.y_train, data.y_test])
    X = X - np.minimum(X.min(axis=0), 0)  # χ² is defined for values from 0 on
    ratios, accuracies = zip(*(one_split(X, y, seed) for seed in range(SPLITS)))
    percent = 100 * np.mean(accuracies, axis=0)
    by_penalty = {
        f"C = {C:g}": dict(zip(RULES, np.round(row, 3).tolist(), strict=True))
        for C, row in zip(PENALTIES, percent, strict=True)
    }
    return {"local / scale": round(float(np.mean(ratios)), 3), **by_penalty}


def table(record: dict[str, Any]) -> str:
    """The figures as a table of the page."""
    heads = [f"C = {C:g}: {RULES[0]} | {' | '.join(RULES[1:])}" for C in PENALTIES]
    lines = [f"| data | local / scale | {' | '.join(heads)} |"]
    lines.append("|---" * (2 + len(PENALTIES) * len(RULES)) + "|")
    for name, figures in record.items():
        values = [figures[f"C = {C:g}"][rule] for C in PENALTIES for rule in RULES]
        cells = " | ".join(f"{value:.2f}" for value in values)
        lines.append(f"| {DATASETS[name]} | {figures['local / scale']:.2f} | {cells} |")
    return "\n".join(lines)


def closed_shares(record: dict[str, Any], C: float) -> dict[str, float]:
    """Share of the gap from "scale" to the chosen γ that "local" closes, where there is a gap."""
    rows = {name: figures[f"C = {C:g}"] for name, figures in record.items()}
    return {
        name: (row["local"] - row["scale"]) / (row["chosen"] - row["scale"])
        for name, row in rows.items()
        if row["chosen"] > row["scale"]
    }


def write_page(record: dict[str, Any]) -> None:
    """Put the table between the page's markers."""
    text = f"{BEGIN}\n\n{table(record)}\n\n{END}"
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: text, PAGE.read_text("utf-8")), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--dataset", nargs="*", default=list(DATASETS), choices=list(DATASETS))
    arguments = parser.parse_args()
    record = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    for name in arguments.dataset:
        record[name] = measure(name, arguments.data)
        record = {item: record[item] for item in DATASETS if item in record}
        RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        print(f"{name}: {record[name]}", flush=True)
    for C in PENALTIES:
        shares = closed_shares(record, C)
        words = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
        half = sum(share >= 0.5 for share in shares.values())
        print(f"C = {C:g}: half or more of the gap on {half} of {len(shares)} with one ({words})")
    write_page(record)


if __name__ == "__main__":
    main()
