"""Tables 1 to 3 of the paper on additive nearest-neighbour feature maps.

Tables 1 and 2 are on MNIST, as in the paper, with a protocol that can be stated (the paper's,
10000 training and 10000 test images of each class, cannot): a random part of the training set,
pixels in [0, 1], the (first images of the) test set. Table 3's features of Caltech-101 are not to
be had; its analogue uses spatial pyramids of visual words of the same data set and of 15 scenes,
rows of sum 1.

The protocol, the same for every line: C = c / mean k(x, x) (c / mean ‖φ(x)‖² of MB and Li, whose
features have units of their own), with c of {1, 3, 10, 30, 100} chosen by
stratified three-fold cross-validation on the training rows (the same folds for all; the smaller c
of equals); then one fit on all of them, and the accuracy on the test rows, which nothing has seen
before. The seconds are those of this last mapping and training with `--jobs` threads (LIBSVM and
LIBLINEAR have one), the bytes those of the training rows in the form in which they are stored. All
classifiers are one against the rest, with the hinge loss. The exact kernel machine is LIBSVM's on a
Gram matrix, VZ and Li are mapped and given to LIBLINEAR (with its own tolerance, 0.1), and MB (a
linear spline), AN and 2-AN are `AdditiveClassifier` (to a duality gap of 1 %), AN on codes.

Lines are kept as they come, and not computed again by a later run: any number of processes may
share the work and the file of results.

    python -m benchmarks.reproduce_annfm --data FOLDER [--sets mnist caltech scenes]
        [--kernels chi2 jensen_shannon intersection] [--methods exact VZ MB Li AN 2-AN]
        [--sizes 40 50] [--train 10000] [--test 10000] [--jobs 1] [--output FILE] [--list]

`--list` prints the options of the parts that such processes may take, one part on each line:

    python -m benchmarks.reproduce_annfm --list | xargs -P 16 -I{} sh -c \\
        "python -m benchmarks.reproduce_annfm --data FOLDER {}"
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km
from kernelmaps.threads import limit_threads

from . import machine
from .memory import n_bytes

OUTPUT = Path(__file__).parent / "results" / "reproductions" / "annfm.json"
GRID = (1.0, 3.0, 10.0, 30.0, 100.0)
FOLDS = 3
SEARCH = f"{FOLDS} folds, c of {', '.join(f'{c:g}' for c in GRID)}"
GAP = 1e-2  # relative duality gap of AdditiveClassifier
SETS = ("mnist", "caltech", "scenes")
OWN_UNITS = ("MB", "Li")
METHODS = ("exact", "VZ", "MB", "Li", "AN", "2-AN")
KERNELS = ("chi2", "jensen_shannon", "intersection")


@dataclass
class Line:
    """One line of a table, for one kernel."""

    data: str
    kernel: str
    method: str
    size: str
    accuracy: float
    seconds: float
    stored: int
    c: float
    validation: float
    rows: tuple[int, int]
    jobs: int
    search: str = SEARCH


class Exact:
    """Kernel machine on the Gram matrix; the matrices are made once and shared by the C search."""

    def __init__(self, kernel: str, X: Any, X_test: Any, jobs: int) -> None:
        self.kernel = km.kernels.get(kernel)
        start = perf_counter()
        with limit_threads(jobs):
            self.gram = self.kernel(X)
        self.seconds = perf_counter() - start
        self.X, self.X_test, self.jobs = X, X_test, jobs

    def __call__(self, C: float, y: np.ndarray, rows: np.ndarray, test: np.ndarray | None) -> Any:
        start = perf_counter()
        model = OneVsRestClassifier(
            SVC(C=C, kernel="precomputed", cache_size=500), n_jobs=self.jobs
        )
        model.fit(self.gram[np.ix_(rows, rows)], y[rows])
        seconds = perf_counter() - start + self.seconds
        cross = self.kernel(self.X_test, self.X) if test is None else self.gram[test]
        return model.predict(cross[:, rows]), seconds, n_bytes(self.gram)


class Mapped:
    """A map followed by LIBLINEAR."""

    def __init__(self, feature_map: Any, X: Any, X_test: Any, jobs: int) -> None:
        self.map, self.X, self.X_test, self.jobs = feature_map, X, X_test, jobs
        self.map.set_params(n_jobs=jobs)

    def squared_length(self) -> float:
        """Mean ‖φ(x)‖² of training rows."""
        some = np.random.default_rng(2).permutation(self.X.shape[0])[:1000]
        Z = self.map.fit(self.X).transform(self.X[some])
        return float(np.square(Z.data if sparse.issparse(Z) else Z).sum() / len(some))

    def __call__(self, C: float, y: np.ndarray, rows: np.ndarray, test: np.ndarray | None) -> Any:
        start = perf_counter()
        Z = self.map.fit_transform(self.X[rows])
        model = LinearSVC(C=C, loss="hinge", tol=0.1, random_state=0).fit(Z, y[rows])
        seconds = perf_counter() - start
        X_test = self.X_test if test is None else self.X[test]
        return model.predict(self.map.transform(X_test)), seconds, n_bytes(Z)


class Additive(Mapped):
    """AdditiveClassifier, on codes if the map is an AnchorMap, else on the values."""

    def __call__(self, C: float, y: np.ndarray, rows: np.ndarray, test: np.ndarray | None) -> Any:
        start = perf_counter()
        X, feature_map = self.X[rows], self.map
        if isinstance(feature_map, km.AnchorMap):
            X = feature_map.fit(X).encode(X)
        model = km.AdditiveClassifier(
            feature_map, C=C, loss="hinge", tol=GAP, random_state=0, n_jobs=self.jobs
        )
        model.fit(X, y[rows])
        seconds = perf_counter() - start
        stored = X.nbytes if isinstance(feature_map, km.AnchorMap) else n_bytes(X)
        if hasattr(feature_map, "spec_"):
            stored += feature_map.spec_.nbytes
        X_test = self.X_test if test is None else self.X[test]
        return model.predict(X_test), seconds, stored


Make = Callable[[Any, Any, int], Any]  # from training rows, test rows and threads


def methods(kernel: str, data: str) -> list[tuple[str, str, Make]]:
    """(name, size, constructor from the rows) of every line for one kernel."""
    mnist = data == "mnist"
    energy = 0.95 if mnist else 0.99  # as in the paper's tables
    sizes = (20, 30, 40, 50)

    def anchors(n: int, **options: Any) -> Make:
        options = {"feature_range": (0, None), **options}
        return lambda *rows: Additive(km.AnchorMap(kernel, n, **options), *rows)

    found: list[tuple[str, str, Make]] = [("exact", "-", lambda *rows: Exact(kernel, *rows))]
    for n in (3, 5):
        found.append(
            (
                "VZ",
                str(n),
                lambda *rows, n=n: Mapped(km.HomogeneousMap(kernel, n, period="vlfeat"), *rows),
            )
        )
    if kernel == "intersection":
        for n in (10, 20):
            spline = km.SplineMap(n_bases=n, degree=1, order=1, zero_at_zero=not mnist)
            found.append(("MB", str(n), lambda *rows, s=spline: Additive(s, *rows)))
    if kernel == "chi2":
        for n in (1000, 2000) if mnist else (4000, 8000):
            li = km.SignCauchyMap(n, random_state=0)
            found.append(("Li", str(n), lambda *rows, m=li: Mapped(m, *rows)))
    found += [("AN", str(n), anchors(n, energy=energy)) for n in sizes]
    found += [("2-AN", str(n), anchors(n, energy=energy, n_neighbors=2)) for n in sizes]
    if mnist:
        found.append(("AN, 99 %", "40", anchors(40)))
        found.append(("2-AN, 99 %", "40", anchors(40, n_neighbors=2)))
        uniform = anchors(40, energy=energy, n_neighbors=2, weights="uniform")
        found.append(("2-AN, averaged", "40", uniform))
        for n in (30, 40):
            found.append(("AN, k-means", str(n), anchors(n, energy=energy, anchors="kmeans")))
    else:  # most values of a histogram of sum one are small
        found.append(("AN, sqrt", "40", anchors(40, energy=energy, anchors="sqrt")))
        sqrt = anchors(40, energy=energy, anchors="sqrt", n_neighbors=2)
        found.append(("2-AN, sqrt", "40", sqrt))
    return found


def measure(data: str, kernel: str, name: str, size: str, make: Make, rows: Any, jobs: int) -> Line:
    """One line: c by cross-validation, then the test rows."""
    X, y, X_test, y_test = rows
    run = make(X, X_test, jobs)
    own = name in OWN_UNITS
    unit = 1 / (run.squared_length() if own else float(km.kernels.get(kernel).diag(X).mean()))
    scores = dict.fromkeys(GRID, 0.0)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    for part, held_out in folds.split(np.zeros(len(y)), y):
        for c in GRID:
            scores[c] += float(np.sum(run(c * unit, y, part, held_out)[0] == y[held_out]))
    best = max(GRID, key=lambda c: scores[c])
    predicted, seconds, stored = run(best * unit, y, np.arange(len(y)), None)
    accuracy = 100 * float(np.mean(predicted == y_test))
    print(f"{data:8} {kernel:15} {name:15} {size:>5} {accuracy:6.2f} % {seconds:8.2f} s "
          f"{stored / 1e6:8.2f} MB  c={best:g}", flush=True)  # fmt: skip
    validation = 100 * scores[best] / len(y)
    shape = (len(y), len(y_test))
    return Line(data, kernel, name, size, accuracy, seconds, stored, best, validation, shape, jobs)


class Record:
    """The file of results, which several processes may write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> dict[str, Any]:
        return json.loads(self.path.read_text()) if self.path.exists() else {"lines": []}

    def has(self, key: tuple[str, ...], rows: tuple[int, int]) -> bool:
        """Whether a line of this protocol is there."""
        protocol = (*key, list(rows), SEARCH)
        return any((*_key(line), line["rows"], line["search"]) == protocol
                   for line in self.read()["lines"])  # fmt: skip

    def keep(self, line: Line) -> None:
        """Put a line in the place of an older one; readers never see half a file."""
        with open(self.path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record, new = self.read(), asdict(line)
            lines = [old for old in record["lines"] if _key(old) != _key(new)]
            record = {"lines": sorted([*lines, new], key=_order), "machine": machine.description()}
            partial = self.path.with_suffix(".partial")
            partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            partial.replace(self.path)


def _key(line: dict[str, Any]) -> tuple[str, ...]:
    return tuple(line[name] for name in ("data", "kernel", "method", "size"))


def _order(line: dict[str, Any]) -> tuple[int, ...]:
    """As in the paper's tables."""
    data, kernel, method, size = _key(line)
    every = [(name, size) for name, size, _ in methods(kernel, data)]
    place = every.index((method, size)) if (method, size) in every else len(every)
    return SETS.index(data), KERNELS.index(kernel), place


def parts() -> Iterator[str]:
    """Options of the single lines, the longest first."""
    for group in METHODS:
        for data in SETS:
            for kernel in KERNELS:
                found = [(name, size) for name, size, _ in methods(kernel, data)]
                for size in dict.fromkeys(size for name, size in found if _group(name) == group):
                    yield f"--sets {data} --kernels {kernel} --methods {group} --sizes={size}"


def _group(name: str) -> str:
    return name.split(",")[0]


def load(
    data: str, folder: str, n_train: int, n_test: int
) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Rows and labels: pixels in [0, 1], or pyramids of sum one."""
    if data == "mnist":
        found = km.datasets.load("mnist", folder=folder)
        rows = np.random.default_rng(0).permutation(len(found.y_train))[:n_train]
        X, X_test = (np.float32(A) / 255 for A in (found.X_train[rows], found.X_test[:n_test]))
        return X, found.y_train[rows], X_test, found.y_test[:n_test]
    grid, words = {"caltech": (2, 300), "scenes": (4, 200)}[data]
    name = {"caltech": "caltech101_bow", "scenes": "scene15_bow"}[data]
    found = km.datasets.load(name, folder=folder)
    X, X_test = (pyramid(A, grid, words) for A in (found.X_train, found.X_test))
    some = np.random.default_rng(0).permutation(len(found.y_train))[:n_train]
    few = np.random.default_rng(1).permutation(len(found.y_test))[:n_test]
    return X[some], found.y_train[some], X_test[few], found.y_test[few]


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
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--kernels", nargs="+", default=KERNELS, choices=KERNELS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--sizes", nargs="+", help="such as 3 or 40; '-' is the exact machine's")
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--list", action="store_true", help="print the parts and stop")
    arguments = parser.parse_args(given)
    if arguments.list:
        print("\n".join(parts()))
        return
    if not arguments.data:
        parser.error("name the folder of the datasets with --data or KERNELMAPS_DATA")
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", km.exceptions.OutOfDomainWarning)
    record = Record(arguments.output)
    for data in arguments.sets:
        rows = load(data, arguments.data, arguments.train, arguments.test)
        shape = (len(rows[1]), len(rows[3]))
        print(f"{data}: {rows[0].shape} training rows, {shape[1]} test rows", flush=True)
        for kernel in arguments.kernels:
            for name, size, make in methods(kernel, data):
                wanted = _group(name) in arguments.methods and size in (arguments.sizes or [size])
                if wanted and not record.has((data, kernel, name, size), shape):
                    record.keep(measure(data, kernel, name, size, make, rows, arguments.jobs))


if __name__ == "__main__":
    main()
