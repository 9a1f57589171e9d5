"""Random Fourier features with fitted weights: errors on held-out rows of eight tables.

    python -m benchmarks.fitted_frequencies --data FOLDER [--columns 200 600]

Each table: 3000 training rows, standardised where the columns are not of one unit; root mean square
error of the Gaussian kernel on all pairs of 500 other rows, mean of three seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

import kernelmaps as km

from .datasets import load as load_dataset

RECORD = Path(__file__).parent / "results" / "fitted_frequencies.json"
TABLES = (
    "letter", "pendigits", "magic04", "spambase", "california_housing", "casp_protein", "usps",
    "inria_person_hog",
)  # fmt: skip
ONE_UNIT = ("usps", "inria_person_hog")
WAYS = {
    "iid": {},
    "orthogonal": {"sampling": "orthogonal"},
    "fitted": {"weights": "fitted", "sampling": "orthogonal"},
}


def main() -> None:
    """Record errors and the ratio of the fitted one to the best other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=None)
    parser.add_argument("--columns", type=int, nargs="+", default=[200, 600])
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args()
    record: dict[str, dict[str, dict[str, float]]] = {}
    for name in TABLES:
        X = np.asarray(load_dataset(name, folder=options.data).X_train, dtype=np.float64)
        X = X[np.random.default_rng(0).permutation(len(X))[:3500]]
        if name not in ONE_UNIT:
            X = StandardScaler().fit(X[:3000]).transform(X)
        for columns in options.columns:
            errors, seconds = {}, 0.0
            for way, settings in WAYS.items():
                start, squares = time.process_time(), []
                for seed in range(3):
                    made = km.RandomFourierMap("gaussian", columns, random_state=seed, **settings)
                    made.fit(X[:3000])
                    Z = made.transform(X[3000:])
                    squares.append(np.mean((Z @ Z.T - made.kernel_(X[3000:])) ** 2))
                errors[way] = float(np.sqrt(np.mean(squares)))
                seconds = (time.process_time() - start) / 3
            ratio = errors["fitted"] / min(errors["iid"], errors["orthogonal"])
            figures = {**errors, "ratio": ratio, "seconds of a fitted map": seconds}
            figures = {key: round(value, 4) for key, value in figures.items()}
            print(name, columns, figures, flush=True)
            record.setdefault(name, {})[f"{columns} columns"] = figures
            options.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
