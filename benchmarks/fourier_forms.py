"""Which form of random Fourier features classifies better: cosines, or cosines and sines in pairs?

Accuracy of ridge classifiers in two folds of the training rows (test rows are not used), for
several lengths σ and numbers of columns D; the mean over seeds, and the standard error of the
difference between the two forms. The errors of the kernel are measured on the same rows.

    python -m benchmarks.fourier_forms --data FOLDER [--rows 1000] [--seeds 5]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold

import kernelmaps as km

from .datasets import load as load_dataset

RECORD = Path(__file__).parent / "results" / "reproductions" / "fourier_forms.json"
DATASETS = ("mnist", "inria_person_hog", "usps")
LENGTHS = (0.5, 1.0, 2.0)  # σ in units of the median distance; 1 is the default
COLUMNS = (100, 400, 1600)
FORMS = ("cosine", "paired")
PENALTIES = np.logspace(-4, 2, 7)  # ridge parameters, chosen by leave-one-out


def rows_of(name: str, folder: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Random training rows in [0, 1], and their classes."""
    data = load_dataset(name, folder=folder)
    chosen = np.random.default_rng(0).permutation(len(data.y_train))[:n_rows]
    X = np.asarray(data.X_train[chosen], dtype=np.float64)
    return (X - X.min()) / np.ptp(X), data.y_train[chosen]


def measure(X: np.ndarray, y: np.ndarray, sigma: float, columns: int, form: str, seed: int) -> Any:
    """Two-fold accuracy in percent, and the root mean square error of the kernel."""
    features = km.RandomFourierMap(
        km.kernels.Gaussian(sigma), columns, form=form, random_state=seed
    ).fit(X)
    Z, right = features.transform(X), 0
    for part, held_out in StratifiedKFold(2, shuffle=True, random_state=seed).split(X, y):
        model = RidgeClassifierCV(PENALTIES).fit(Z[part], y[part])
        right += int(np.sum(model.predict(Z[held_out]) == y[held_out]))
    return 100 * right / len(y), km.kernel_error(features, X[:300]).rms


def compare(X: np.ndarray, y: np.ndarray, sigma: float, columns: int, seeds: int) -> dict[str, Any]:
    """Both forms with the same seeds and folds."""
    found = np.array(
        [[measure(X, y, sigma, columns, form, seed) for form in FORMS] for seed in range(seeds)]
    )
    accuracies, errors = found[..., 0], found[..., 1].mean(axis=0)
    gain = accuracies[:, 1] - accuracies[:, 0]
    return {
        "accuracy": dict(zip(FORMS, accuracies.mean(axis=0))),
        "paired − cosine": float(gain.mean()),
        "standard error": float(gain.std(ddof=1) / np.sqrt(seeds)),
        "kernel error": dict(zip(FORMS, errors)),
    }


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args(given)
    if not options.data:
        parser.error("name the folder of the datasets with --data or KERNELMAPS_DATA")
    record = {}
    for name in DATASETS:
        X, y = rows_of(name, options.data, options.rows)
        median = float(np.median(pdist(X[:1000])))
        for length, columns in product(LENGTHS, COLUMNS):
            figures = compare(X, y, length * median, columns, options.seeds)
            figures |= {"rows": len(y), "features": X.shape[1]}
            record[f"{name}, σ = {length:g} median, D = {columns}"] = figures
            print(f"{name} {length:g} {columns}: {figures}", flush=True)
            text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
            options.record.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
