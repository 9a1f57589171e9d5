"""Table 3 of the Chebyshev paper on other data: PCA of random features, one and two descriptors.

The paper's table is on VOC 2010 segments, which are not to be had in this form. The same comparison
is made on CIFAR-10 with two histograms per image (gradients, 144 bins, and colours, 64 bins):
exp-χ² kernels by ``ExponentialMap``, ridge regression on one-hot targets, α chosen by held-out rows
of the training set, the same final number of columns for all lines. As in the paper, PCA starts
from three times as many random features, and may also see the unlabelled test rows.

    python -m benchmarks.reproduce_chebyshev_table3 --data FOLDER [--seeds 5] [--size 600]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import kernelmaps as km

OUTPUT = Path(__file__).parent / "results" / "reproductions" / "chebyshev_table3.json"
ALPHAS = np.logspace(-4, 2, 13)
HOG, COLOUR = slice(0, 144), slice(144, 208)


def load(folder: str) -> dict[str, np.ndarray]:
    """Both descriptors side by side, each of sum one."""
    path = Path(folder) / "cifar10_hist.npz"
    if not path.exists():
        raise SystemExit(f"{path} is missing: name the folder of the datasets with --data")
    with np.load(path) as file:
        found = {f"y_{part}": file[f"y_{part}"] for part in ("train", "test")}
        for part in ("train", "test"):
            histograms = [file[f"{name}_{part}"].astype(np.float32) for name in ("hog", "color")]
            histograms = [h / np.maximum(h.sum(axis=1, keepdims=True), 1) for h in histograms]
            found[f"X_{part}"] = np.hstack(histograms)
    return found


def kernel(columns: slice, size: int, seed: int, base: Any) -> tuple[slice, Any]:
    """An exp-χ² kernel on some columns; γ is 1 / mean χ² distance, without looking at labels."""
    return columns, km.ExponentialMap(
        additive_map=base, n_components=size, gamma="scale", random_state=seed
    )


def lines(size: int, seed: int) -> dict[str, tuple[list[Any], int | None, bool]]:
    """Name of the line → kernels, PCA size of each, whether the PCA sees the test rows."""
    chebyshev, vz = km.ChebyshevMap(10), km.HomogeneousMap("chi2", 9, period="vlfeat")
    half = size // 2

    def both(each: int, base: Any) -> list[Any]:
        return [kernel(HOG, each, seed, base), kernel(COLOUR, each, seed + 1000, base)]

    return {
        "gradients, Chebyshev": ([kernel(HOG, size, seed, chebyshev)], None, False),
        "colours, Chebyshev": ([kernel(COLOUR, size, seed, chebyshev)], None, False),
        "gradients, PCA-Chebyshev": ([kernel(HOG, 3 * size, seed, chebyshev)], size, True),
        "colours, PCA-Chebyshev": ([kernel(COLOUR, 3 * size, seed, chebyshev)], size, True),
        "both, VZ": (both(half, vz), None, False),
        "both, Chebyshev": (both(half, chebyshev), None, False),
        "both, PCA-training-Chebyshev": (both(3 * half, chebyshev), half, False),
        "both, PCA-Chebyshev": (both(3 * half, chebyshev), half, True),
    }


def accuracy(data: dict[str, np.ndarray], line: tuple[list[Any], int | None, bool]) -> float:
    kernels, n_components, unlabelled = line
    model = km.StreamingRidgeClassifier(ALPHAS, kernels, n_components=n_components, validation=3)
    extra = data["X_test"] if unlabelled else None
    model.fit(data["X_train"], data["y_train"], unlabeled=extra)
    return model.score(data["X_test"], data["y_test"])


def table(found: dict[str, list[float]]) -> str:
    rows = ["| method | accuracy |", "|---|---|"]
    for name, values in found.items():
        spread = np.std(values, ddof=1) if len(values) > 1 else 0.0
        rows.append(f"| {name} | {100 * np.mean(values):.2f} % ± {100 * spread:.2f} % |")
    return "\n".join(rows)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA") or ".")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--size", type=int, default=1000, help="columns of the final model")
    parser.add_argument("--rows", type=int, default=None, help="fewer training rows")
    arguments = parser.parse_args(given)
    data = load(arguments.data)
    for part in ("X_train", "y_train"):
        data[part] = data[part][: arguments.rows]
    found: dict[str, list[float]] = {}
    start = perf_counter()
    for seed in range(arguments.seeds):
        for name, line in lines(arguments.size, seed).items():
            found.setdefault(name, []).append(accuracy(data, line))
            print(f"{perf_counter() - start:6.0f} s  {name}: {found[name][-1]:.4f}", flush=True)
        if arguments.rows is None:  # after every seed: the rest may take a while
            OUTPUT.parent.mkdir(parents=True, exist_ok=True)
            record = {"size": arguments.size, "seeds": seed + 1, "accuracy": found}
            OUTPUT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
