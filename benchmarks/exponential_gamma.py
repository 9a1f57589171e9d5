"""Rules for the γ of `ExponentialMap` beside a γ that is chosen on training rows.

    python -m benchmarks.exponential_gamma --data FOLDER

Test accuracy, in percent, of an SVM on the exact exp-χ² kernel with γ by the rules "scale" and
"local", and with the best of seven multiples (1/4 to 16) of "scale" by three folds of the training
rows; means of three splits. The table is that of the page on exponential maps.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import SVC

import kernelmaps as km
from kernelmaps.sparse_rows import dense

DATASETS = ("pendigits", "letter", "usps", "digits", "cifar10_hist", "mnist", "spambase", "magic04")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder with the datasets")
    parser.add_argument("--dataset", nargs="*", default=DATASETS)
    arguments = parser.parse_args()
    print(
        "| data | local / scale | C = 1: scale | local | chosen | C = 10: scale | local | chosen |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.dataset:
        data = km.datasets.load(name, folder=arguments.data)
        X = np.concatenate([dense(data.X_train), dense(data.X_test)])
        y = np.concatenate([data.y_train, data.y_test])
        X = X - np.minimum(X.min(axis=0), 0)  # χ² is defined for values from 0 on
        ratios, accuracies = zip(*(one_split(X, y, seed) for seed in range(SPLITS)))
        cells = " | ".join(f"{100 * value:.2f}" for value in np.mean(accuracies, axis=0).ravel())
        print(f"| {name} | {np.mean(ratios):.2f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
