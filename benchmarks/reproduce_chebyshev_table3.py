"""Table 3 of the Chebyshev paper on other data: PCA of random features, one and two descriptors.

The paper's table is on VOC 2010 segments, which are not to be had in this form. The same comparison
is made on CIFAR-10 with two histograms per image (gradients, 144 bins, and colours, 64 bins):
exp-χ² kernels by ``ExponentialMap``, ridge regression on one-hot targets, α chosen by held-out rows
of the training set, the same final number of columns for all lines. As in the paper, PCA starts
from three times as many random features, and may also see the unlabelled test rows. Nyström's
features are the exact kernel at as many random training rows. The exact kernel machine is support
vector regression, as the paper's; it does not get further than some 10000 training rows here, so
that it has a companion line on the same rows.

    python -m benchmarks.reproduce_chebyshev_table3 --data FOLDER [--seeds 5] [--size 600]
        [--lines ...] [--out FILE]
    python -m benchmarks.reproduce_chebyshev_table3 --merge a.json b.json
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import train_test_split
from sklearn.svm import SVR

import kernelmaps as km

from .paper_parts import vlfeat_map

OUTPUT = Path(__file__).parent / "results" / "reproductions" / "chebyshev_table3.json"
ALPHAS = np.logspace(-4, 2, 13)
HOG, COLOUR = slice(0, 144), slice(144, 208)
SVR_ROWS = 10_000


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
    chebyshev, vz = km.ChebyshevMap(10), vlfeat_map("chi2", 9)
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


class ExactKernel:
    """The sum of an exp-χ² kernel of each descriptor, γ = 1 / mean χ² distance of some rows."""

    def __init__(self, X: np.ndarray) -> None:
        some = X[np.random.default_rng(0).permutation(len(X))[:1000]]
        self.parts = []
        for columns in (HOG, COLOUR):
            gram = km.kernels.chi2(some[:, columns])
            sums = np.diag(gram)
            distance = np.add.outer(sums, sums) - 2 * gram
            gamma = 1 / float(distance[np.triu_indices(len(gram), 1)].mean())
            self.parts.append((columns, km.kernels.Exponential(km.kernels.chi2, gamma)))

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return sum(kernel(X[:, columns], Y[:, columns]) for columns, kernel in self.parts)


class Nystroem(TransformerMixin, BaseEstimator):
    """Features whose products are the exact kernel wherever one row is a landmark."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed

    def fit(self, X: np.ndarray, y: Any = None) -> Nystroem:
        self.kernel_ = ExactKernel(X)
        self.landmarks_ = X[np.random.default_rng(self.seed).permutation(len(X))[: self.size]]
        values, axes = eigh(self.kernel_(self.landmarks_, self.landmarks_))
        self.root_ = axes / np.sqrt(np.maximum(values, 1e-8 * values[-1]))
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return self.kernel_(X, self.landmarks_) @ self.root_


def nystroem(data: dict[str, np.ndarray], size: int, seed: int) -> float:
    feature_map = Nystroem(size, seed).fit(data["X_train"])
    model = km.StreamingRidgeClassifier(ALPHAS, feature_map, validation=3)
    model.fit(data["X_train"], data["y_train"])
    return model.score(data["X_test"], data["y_test"])


def some_rows(data: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    rows = np.random.default_rng(seed).permutation(len(data["y_train"]))[:SVR_ROWS]
    return data | {name: data[name][rows] for name in ("X_train", "y_train")}


def kernel_svr(data: dict[str, np.ndarray], seed: int) -> float:
    """Support vector regression on ±1 targets, each class against the rest; C by held-out rows."""
    data = some_rows(data, seed)
    X, y = data["X_train"], data["y_train"]
    kernel, classes = ExactKernel(X), np.unique(y)
    gram = kernel(X, X)

    def scores(C: float, rows: np.ndarray, cross: np.ndarray) -> np.ndarray:
        model = SVR(kernel="precomputed", C=C, epsilon=0.1, cache_size=1000)
        part = gram[np.ix_(rows, rows)]
        each = [model.fit(part, np.where(y[rows] == c, 1.0, -1.0)).predict(cross) for c in classes]
        return classes[np.argmax(each, axis=0)]

    few = np.arange(len(y))[: SVR_ROWS // 2]
    part, held = train_test_split(few, test_size=1 / 3, stratify=y[few], random_state=0)
    cross = gram[np.ix_(held, part)]
    best = max((0.1, 1.0, 10.0), key=lambda C: np.mean(scores(C, part, cross) == y[held]))
    found = scores(best, np.arange(len(y)), kernel(data["X_test"], X))
    return float(np.mean(found == data["y_test"]))


Run = Callable[[dict[str, np.ndarray], int, int], float]  # of data, size and seed


def runs() -> dict[str, Run]:
    """Name of a line → its accuracy."""
    names = list(lines(2, 0))
    found: dict[str, Run] = {
        name: lambda data, size, seed, name=name: accuracy(data, lines(size, seed)[name])
        for name in names
    }
    found["both, Nyström"] = nystroem
    few = f", {SVR_ROWS} rows"
    found["both, PCA-Chebyshev" + few] = lambda data, size, seed: accuracy(
        some_rows(data, seed), lines(size, seed)["both, PCA-Chebyshev"]
    )
    found["both, kernel SVR" + few] = lambda data, size, seed: kernel_svr(data, seed)
    return found


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
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=1000, help="columns of the final model")
    parser.add_argument("--rows", type=int, default=None, help="fewer training rows")
    parser.add_argument("--lines", nargs="+", default=list(runs()), choices=list(runs()))
    parser.add_argument("--out", type=Path, default=OUTPUT)
    parser.add_argument("--merge", type=Path, nargs="+", help="files whose lines go into --out")
    options = parser.parse_args(given)
    if options.merge:
        for part in options.merge:
            record = json.loads(part.read_text(encoding="utf-8"))
            keep(record["accuracy"], options.out, record["size"], record.get("first seed", 0))
        return
    data = load(options.data)
    for part in ("X_train", "y_train"):
        data[part] = data[part][: options.rows]
    found: dict[str, list[float]] = {}
    start = perf_counter()
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for name in options.lines:
            found.setdefault(name, []).append(runs()[name](data, options.size, seed))
            print(f"{perf_counter() - start:6.0f} s  {name}: {found[name][-1]:.4f}", flush=True)
            if options.rows is None:  # after every line: the rest may take a while
                keep(found, options.out, options.size, options.first_seed)
    print(table(found))


def keep(found: dict[str, list[float]], out: Path, size: int, first_seed: int) -> None:
    """Lines into the file, from that seed on; others that are there stay.

    A file of later seeds alone says which is its first one, so that it can be put into another.
    """
    old = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"accuracy": {}}
    begins = old.get("first seed", 0) if old["accuracy"] else first_seed
    lines = old["accuracy"]
    for name, values in found.items():
        before = lines.get(name, [])[: first_seed - begins]
        if len(before) < first_seed - begins:
            raise ValueError(f"{name}: the file ends before seed {first_seed}")
        lines = lines | {name: before + values}
    record: dict[str, Any] = {"size": size, "accuracy": lines}
    if begins:
        record["first seed"] = begins
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
