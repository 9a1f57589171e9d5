"""Tables 1 to 4 of the paper on additive nearest-neighbour feature maps.

Tables 1 and 2 are on MNIST, by the protocol to which the paper's figures belong (the one that it
prints, 10000 training and 10000 test images of each class, cannot be): images divided by their
sums, 10000 random training images, one against one, the whole test set; three samples of training
images.
Table 3's features of Caltech-101 are not to be had; its analogue uses spatial pyramids of visual
words of the same data set and of 15 scenes, rows of sum 1. Table 4's pedestrians are not, either;
its analogue are gradient histograms of INRIA's, rows of sum 1.

The protocol, the same for every line: C = c / mean k(x, x) (c / mean ‖φ(x)‖² of MB and Li, whose
features have units of their own), with c of a grid chosen by stratified two-fold cross-validation
on the training rows (the same folds for all; the smaller c of equals); then one fit on all of them,
and the accuracy on the test rows, which nothing has seen before. The seconds are processor time of
this last mapping and training, the bytes those of the training rows in the form in which they are
stored. All classifiers have the hinge loss, and are one against one but for Caltech's 102 classes,
which are one against the rest. The exact kernel machine is LIBSVM's on a Gram matrix, VZ and Li are
mapped and given to LIBLINEAR (with its own tolerance, 0.1), and MB (a linear spline), AN and 2-AN
are `AdditiveSVC` (to a duality gap of 1 %), AN on codes.

    python -m benchmarks.reproduce_annfm --data FOLDER [--sets mnist caltech scenes inria]
        [--kernels chi2 jensen_shannon intersection] [--methods exact VZ MB Li AN 2-AN]
        [--samples 3] [--train 10000] [--test 10000] [--jobs 1] [--results FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km

from . import parallel
from .datasets import load as load_dataset
from .memory import n_bytes
from .paper_parts import SignCauchyMap, vlfeat_map

RECORD = Path(__file__).parent / "results" / "reproductions" / "annfm.json"
RESULTS = RECORD.parent / "jobs" / "annfm"
GRID = (1.0, 2.0, 5.0, 10.0, 30.0)
FOLDS = 2
SAMPLES = 3
GAP = 1e-2  # relative duality gap of AdditiveSVC
SETS = ("mnist", "caltech", "scenes", "inria")
SAMPLED = ("mnist",)  # sets with more training rows than are taken
OWN_UNITS = ("MB", "Li", "linear")
METHODS = ("exact", "Li", "MB", "VZ", "2-AN", "AN", "linear")
KERNELS = ("chi2", "jensen_shannon", "intersection")
_SPARSE = ("caltech", "scenes")


class Exact:
    """Kernel machine on the Gram matrix; the matrices are made once and shared by the C search."""

    def __init__(self, kernel: str, X: Any, X_test: Any, how: str) -> None:
        self.kernel = km.kernels.get(kernel)
        start = process_time()
        self.gram = self.kernel(X)
        self.seconds = process_time() - start
        self.X, self.X_test, self.how = X, X_test, how

    def __call__(self, C: float, y: np.ndarray, rows: np.ndarray, test: np.ndarray | None) -> Any:
        start = process_time()
        model = SVC(C=C, kernel="precomputed", cache_size=500)  # one against one, of itself
        model = OneVsRestClassifier(model) if self.how == "ovr" else model
        model.fit(self.gram[np.ix_(rows, rows)], y[rows])
        seconds = process_time() - start + self.seconds
        cross = self.kernel(self.X_test, self.X) if test is None else self.gram[test]
        return model.predict(cross[:, rows]), seconds, n_bytes(self.gram)


class Mapped:
    """A map followed by LIBLINEAR."""

    def __init__(self, feature_map: Any, X: Any, X_test: Any, how: str) -> None:
        self.map, self.X, self.X_test, self.how = feature_map, X, X_test, how
        if "n_jobs" in self.map.get_params():
            self.map.set_params(n_jobs=1)

    def squared_length(self) -> float:
        """Mean ‖φ(x)‖² of training rows."""
        some = np.random.default_rng(2).permutation(self.X.shape[0])[:1000]
        Z = self.map.fit(self.X).transform(self.X[some])
        return float(np.square(Z.data if sparse.issparse(Z) else Z).sum() / len(some))

    def __call__(self, C: float, y: np.ndarray, rows: np.ndarray, test: np.ndarray | None) -> Any:
        start = process_time()
        Z = self.map.fit_transform(self.X[rows])
        model = LinearSVC(C=C, loss="hinge", tol=0.1, random_state=0)
        if self.how == "ovo" and len(np.unique(y)) > 2:
            model = OneVsOneClassifier(model)
        model.fit(Z, y[rows])
        seconds = process_time() - start
        X_test = self.X_test if test is None else self.X[test]
        return model.predict(self.map.transform(X_test)), seconds, n_bytes(Z)


class Additive(Mapped):
    """AdditiveSVC, on codes if the map is an AnchorMap, else on the values."""

    def __call__(self, C: float, y: np.ndarray, rows: np.ndarray, test: np.ndarray | None) -> Any:
        start = process_time()
        X, feature_map = self.X[rows], self.map
        if isinstance(feature_map, km.AnchorMap):
            X = feature_map.fit(X).encode(X)
        model = km.AdditiveSVC(
            feature_map, C=C, loss="hinge", tol=GAP, random_state=0, n_jobs=1, solver="dual",
            multi_class=self.how,
        )  # fmt: skip
        model.fit(X, y[rows])
        seconds = process_time() - start
        stored = X.nbytes if isinstance(feature_map, km.AnchorMap) else n_bytes(X)
        if hasattr(feature_map, "spec_"):
            stored += feature_map.spec_.nbytes
        X_test = self.X_test if test is None else self.X[test]
        return model.predict(X_test), seconds, stored


Make = Callable[[Any, Any, str], Any]  # from training rows, test rows and "ovo" or "ovr"


def methods(kernel: str, data: str) -> list[tuple[str, str, Make]]:
    """(name, size, constructor from the rows) of every line for one kernel."""
    mnist = data == "mnist"
    energy = 0.95 if mnist else 0.99  # as in the paper's tables
    sizes = {"mnist": (30, 40, 50), "inria": (30, 50)}.get(data, (20, 30, 40, 50))

    def anchors(n: int, **options: Any) -> Make:
        options = {"anchors": "uniform", "feature_range": (0, None), **options}
        return lambda *rows: Additive(km.AnchorMap(kernel, n, **options), *rows)

    found: list[tuple[str, str, Make]] = [("exact", "-", lambda *rows: Exact(kernel, *rows))]
    for n in (3, 5):
        found.append(
            (
                "VZ",
                str(n),
                lambda *rows, n=n: Mapped(vlfeat_map(kernel, n), *rows),
            )
        )
    if kernel == "intersection":
        for n in (10, 20):
            spline = km.SplineMap(n_bases=n, degree=1, order=1, zero_at_zero=data in _SPARSE)
            found.append(("MB", str(n), lambda *rows, s=spline: Additive(s, *rows)))
    if kernel == "chi2":
        for n in {"mnist": (1000, 2000), "inria": (6000, 12000)}.get(data, (4000, 8000)):
            li = SignCauchyMap(n, random_state=0)
            found.append(("Li", str(n), lambda *rows, m=li: Mapped(m, *rows)))
    found += [("AN", str(n), anchors(n, energy=energy)) for n in sizes]
    found += [("2-AN", str(n), anchors(n, energy=energy, n_neighbors=2)) for n in sizes]
    averaged = {"energy": energy, "n_neighbors": 2, "weights": "uniform"}  # the paper's 2-AN
    # The mean of the anchors beside 0 is not zero: these rows are dense, and only the paper's sizes
    # are run on the sets whose rows are stored as sparse.
    for n in sizes[:2] if data in _SPARSE else sizes:
        found.append(("2-AN, averaged", str(n), _dense(anchors(n, **averaged))))
    found.append(("linear", "-", lambda *rows: Mapped(_Same(), *rows)))
    if mnist:
        found.append(("AN, 99 %", "40", anchors(40)))
        found.append(("2-AN, 99 %", "40", anchors(40, n_neighbors=2)))
        for n in (30, 40):
            found.append(("AN, k-means", str(n), anchors(n, energy=energy, anchors="kmeans")))
    # Most values of a row of sum one are small.
    sqrt = {"energy": energy, "anchors": "sqrt"}
    found.append(("AN, sqrt", "40", anchors(40, **sqrt)))
    found.append(("2-AN, sqrt", "40", anchors(40, n_neighbors=2, **sqrt)))
    return found


def _dense(make: Make) -> Make:
    """The same line on rows that are not stored as sparse."""

    def made(X: Any, X_test: Any, how: str) -> Any:
        return make(*(A.toarray() if sparse.issparse(A) else A for A in (X, X_test)), how)

    return made


class _Same(FunctionTransformer):
    """The rows themselves."""

    def set_params(self, **_: Any) -> Any:
        return self


def jobs(
    sets: Sequence[str] = SETS,
    kernels: Sequence[str] = KERNELS,
    chosen: Sequence[str] = METHODS,
    rows: tuple[int, int] = (10000, 10000),
    samples: int = SAMPLES,
) -> list[dict[str, Any]]:
    """Every line for every sample of training rows: sample by sample, the longest first."""
    found = []
    for group in METHODS:
        for data in sets:
            for kernel in kernels:
                for name, size, _ in methods(kernel, data):
                    if name.split(",")[0] != group or group not in chosen:
                        continue
                    if name == "linear" and kernel != KERNELS[0]:
                        continue
                    found += [
                        {"data": data, "kernel": kernel, "method": name, "size": size,
                         "rows": list(rows), "sample": sample}
                        for sample in range(samples if data in SAMPLED else 1)
                    ]  # fmt: skip
    return sorted(found, key=lambda job: job["sample"])


def run(job: dict[str, Any], folder: str) -> dict[str, Any]:
    """One line: c by cross-validation, then the test rows."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", km.exceptions.OutOfDomainWarning)
    name, kernel = job["method"], job["kernel"]
    X, y, X_test, y_test = load(job["data"], folder, *job["rows"], job["sample"])
    make = next(
        m for n, size, m in methods(kernel, job["data"]) if (n, size) == (name, job["size"])
    )
    line = make(X, X_test, "ovr" if job["data"] == "caltech" else "ovo")
    own = name in OWN_UNITS
    unit = 1 / (line.squared_length() if own else float(km.kernels.get(kernel).diag(X).mean()))
    scores = dict.fromkeys(GRID, 0.0)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    for part, held_out in folds.split(np.zeros(len(y)), y):
        for c in GRID:
            scores[c] += float(np.sum(line(c * unit, y, part, held_out)[0] == y[held_out]))
    best = max(GRID, key=lambda c: scores[c])
    predicted, seconds, stored = line(best * unit, y, np.arange(len(y)), None)
    return {
        "accuracy": 100 * float(np.mean(predicted == y_test)),
        "seconds": seconds,
        "stored": int(stored),
        "c": best,
        "validation": 100 * scores[best] / len(y),
        "rows": [len(y), len(y_test)],
    }


def record_of(found: list[dict[str, Any]], old: dict[str, Any]) -> dict[str, Any]:
    """Lines of all samples together, in the paper's order; other lines stay as they were."""
    lines = {_key(line): line for line in old.get("lines", [])}
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for item in found:
        line = {**item["found"], "processor": item["machine"]["processor"]}
        groups.setdefault(_key(item["job"]), []).append(line)
    for key, items in groups.items():
        each = [item["accuracy"] for item in items]
        spread = float(np.std(each, ddof=1)) if len(each) > 1 else None
        lines[key] = {
            **dict(zip(("data", "kernel", "method", "size"), key)),
            **items[0],
            "accuracy": float(np.mean(each)),
            "sd": spread,
            "samples": len(each),
            "each": each,
            "seconds": float(np.mean([item["seconds"] for item in items])),
        }
    return {"lines": sorted(lines.values(), key=_order)}


def _key(line: dict[str, Any]) -> tuple[str, ...]:
    return tuple(line[name] for name in ("data", "kernel", "method", "size"))


def _order(line: dict[str, Any]) -> tuple[int, ...]:
    """As in the paper's tables."""
    data, kernel, method, size = _key(line)
    every = [(name, size) for name, size, _ in methods(kernel, data)]
    place = every.index((method, size)) if (method, size) in every else len(every)
    return SETS.index(data), KERNELS.index(kernel), place


@lru_cache(1)
def load(
    data: str, folder: str, n_train: int, n_test: int, sample: int = 0
) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Rows of sum one, and labels: images, gradients, or pyramids of visual words."""
    if data in ("mnist", "inria"):
        found = load_dataset({"inria": "inria_person_hog"}.get(data, data), folder=folder)
        rows = np.random.default_rng(sample).permutation(len(found.y_train))[:n_train]
        X, X_test = (_of_sum_one(A) for A in (found.X_train[rows], found.X_test[:n_test]))
        return X, found.y_train[rows], X_test, found.y_test[:n_test]
    grid, words = {"caltech": (2, 300), "scenes": (4, 200)}[data]
    name = {"caltech": "caltech101_bow", "scenes": "scene15_bow"}[data]
    found = load_dataset(name, folder=folder)
    X, X_test = (pyramid(A, grid, words) for A in (found.X_train, found.X_test))
    some = np.random.default_rng(0).permutation(len(found.y_train))[:n_train]
    few = np.random.default_rng(1).permutation(len(found.y_test))[:n_test]
    return X[some], found.y_train[some], X_test[few], found.y_test[few]


def _of_sum_one(X: np.ndarray) -> np.ndarray:
    X = X.astype(np.float64)
    return (X / np.maximum(X.sum(axis=1, keepdims=True), 1)).astype(np.float32)


def pyramid(X: sparse.csr_matrix, grid: int, words: int) -> sparse.csr_matrix:
    """Cells and their sums over ever larger squares, down to the whole image; rows of sum one."""
    levels = [X.astype(np.float64)]
    cells = np.arange(grid * grid).reshape(grid, grid)
    size = grid // 2
    while size >= 1:
        square = (cells // grid) // (grid // size) * size + (cells % grid) // (grid // size)
        target = square.ravel()[:, None] * words + np.arange(words)
        shape = (X.shape[1], size * size * words)
        gather = sparse.csr_matrix(
            (np.ones(X.shape[1]), (np.arange(X.shape[1]), target.ravel())), shape
        )
        levels.append(levels[0] @ gather)
        size //= 2
    stacked = sparse.hstack(levels, format="csr")
    sums = np.asarray(stacked.sum(axis=1)).ravel()
    return sparse.csr_matrix(sparse.diags(1 / np.maximum(sums, 1)) @ stacked, dtype=np.float32)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--train", type=int, default=10000, help="training rows, at most")
    parser.add_argument("--test", type=int, default=10000, help="test rows, at most")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="of training rows")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--kernels", nargs="+", default=KERNELS, choices=KERNELS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0: only collect")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the jobs' files")
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args(given)
    if not options.data:
        parser.error("name the folder of the datasets with --data or KERNELMAPS_DATA")
    rows = (options.train, options.test)
    wanted = jobs(options.sets, options.kernels, options.methods, rows, options.samples)
    parallel.compute(__spec__.name, wanted, options.data, options.results, options.jobs)
    kept = options.record
    old = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    text = json.dumps(record_of(parallel.finished(options.results), old), indent=1)
    kept.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
