"""Compressive random features of a dot-product kernel, as compressive-rf conjectures them.

The paper's theory is for stationary kernels. It conjectures the same for dot-product kernels: that
features of m random measurements of a row approximate the kernel of the row. Here the kernel is
(1 + <x, y> / c)^2 with c the mean of |x|^2; its features are those of scikit-learn's
`PolynomialCountSketch`, the measurements those of `RandomOrthoprojector`, and the machine is the
paper's (Crammer and Singer, C = 1, no intercept). The errors of the kernel are root mean squares on
500 test rows, relative to that of the kernel of the rows without measurements.

    python -m benchmarks.dot_product_features --data FOLDER [--rows 5000] [--seeds 5]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.svm import SVC

import kernelmaps as km

from . import crammer_singer
from .datasets import load as load_dataset
from .reproduce_compressive_rf import measured

RECORD = Path(__file__).parent / "results" / "reproductions" / "dot_product_features.json"
DATASETS = ("mnist", "usps")
MEASUREMENTS = (None, 25, 50, 100, 200)  # None: the rows themselves
COLUMNS = (500, 2000)
DEGREE = 2
ERROR_ROWS = 500  # test rows on which the error of the kernel is measured


def rows_of(name: str, folder: str, n_rows: int) -> tuple[np.ndarray, ...]:
    """Random training rows and all test rows, in [0, 1] and float32, with codes of the classes."""
    data = load_dataset(name, folder=folder)
    chosen = np.random.default_rng(0).permutation(len(data.y_train))[:n_rows]
    largest = float(data.X_train.max())
    X, X_test = (
        np.asarray(part / largest, dtype=np.float32) for part in (data.X_train[chosen], data.X_test)
    )
    return X, data.y_train[chosen], X_test, data.y_test


def kernel_of(X: np.ndarray) -> km.kernels.Polynomial:
    """The kernel (1 + <x, y> / c)^2, c the mean square of the rows."""
    mean_square = float(np.mean(np.sum(X.astype(np.float64) ** 2, axis=1)))
    return km.kernels.Polynomial(DEGREE, 1 / mean_square, 1.0)


def features(data: Any, kernel: Any, m: int | None, columns: int, seed: int) -> tuple[float, float]:
    """Test accuracy in percent of a machine on features, and the relative error of the kernel."""
    X, y, X_test, y_test = data
    A, A_test = measured(m, seed, X, X_test)
    sketch = PolynomialCountSketch(
        degree=kernel.degree,
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        n_components=columns,
        random_state=seed,
    ).fit(A)
    Z, Z_test = (sketch.transform(part).astype(np.float32) for part in (A, A_test))
    return crammer_singer.accuracy(Z, y, Z_test, y_test), relative_error(kernel, X_test, Z_test)


def measured_error(X: np.ndarray, kernel: Any, m: int | None, seed: int) -> float:
    """Relative error of the exact kernel of measurements, without features."""
    A = measured(m, seed, X, X)[0][:ERROR_ROWS].astype(np.float64)
    return _difference(kernel(A), kernel(X[:ERROR_ROWS].astype(np.float64)))


def relative_error(kernel: Any, X: np.ndarray, Z: np.ndarray) -> float:
    """Root mean square of <z, z'> - k(x, x') over pairs of the first rows, relative to k's."""
    exact, Z = kernel(X[:ERROR_ROWS].astype(np.float64)), Z[:ERROR_ROWS].astype(np.float64)
    return _difference(Z @ Z.T, exact)


def _difference(gram: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(gram - exact) / np.linalg.norm(exact))


def exact_machine(data: Any, kernel: Any, m: int | None) -> float:
    """Test accuracy of LIBSVM with the kernel of rows or measurements, one against one, C = 1."""
    X, y, X_test, y_test = data
    A, A_test = measured(m, 0, X, X_test)
    model = SVC(kernel="poly", degree=kernel.degree, gamma=kernel.gamma, coef0=kernel.coef0)
    return 100 * float(model.set_params(cache_size=1000).fit(A, y).score(A_test, y_test))


def compute(name: str, folder: str, n_rows: int, seeds: int) -> dict[str, Any]:
    """All lines of a dataset."""
    data = rows_of(name, folder, n_rows)
    kernel, lines = kernel_of(data[0]), {}
    for m in MEASUREMENTS:
        source = "rows" if m is None else f"m = {m}"
        lines[f"exact kernel, {source}"] = {
            "accuracy": [exact_machine(data, kernel, m)],
            "kernel error": float(
                np.mean([measured_error(data[2], kernel, m, seed) for seed in range(seeds)])
            ),
        }
        for columns in COLUMNS:
            pairs = [features(data, kernel, m, columns, seed) for seed in range(seeds)]
            accuracies, errors = zip(*pairs, strict=True)
            lines[f"M = {columns}, {source}"] = {
                "accuracy": list(accuracies),
                "kernel error": float(np.mean(errors)),
            }
    return {"features": int(data[0].shape[1]), "rows": len(data[0]), "lines": lines}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args(given)
    if not options.data:
        parser.error("the data are not part of the package: name their folder by --data")
    record = {name: compute(name, options.data, options.rows, options.seeds) for name in DATASETS}
    print(json.dumps(record, indent=1))
    options.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
