"""Tables 2–5 of *Linearized smooth additive classifiers* on data at hand.

    python -m benchmarks.reproduce_additive_classifiers --data FOLDER
        [--tables 2 3 4 5] [--rows N] [--only WORDS] [--C 1.0] [--output FILE] [--list]
        [--device cuda] [--resume]

The paper's pedestrians (Daimler) are replaced by the INRIA pedestrians (1152 gradient features,
8570 + 3459 rows), its MNIST features by our own pyramid of gradients of the same size (2172).
C is chosen for every cell on training rows held out (the paper has C = 1 for the pedestrians and
cross-validation for the digits; the scale of the basis decides what C = 1 means): 0.1, 1, 10 or 100
divided by the mean squared distance of the features from their centre, by the accuracy on a third
of (at most 15000 of) the training rows after training on the rest of them. Table 2 is computed with
the paper's C = 1, too, which takes Newton's method for D2. Table 5 has the C of two folds of all
training rows, as the paper's, and labels by Platt's probabilities beside those by plain scores; its
exact kernel machine has all rows, too, one against one, the Gram matrices of pairs of classes on
``--device`` if there is one.
``--C`` takes one for all. Every line is kept as soon as it is there, by any number of processes. A
run begins by removing the lines that it computes from the record; with ``--resume`` those in the
record stay, so that an interrupted run goes on. With ``--rows`` nothing is kept.

``--list`` prints the names of the cells, one on a line, for such processes. Times are processor
seconds of the last fit, so that they do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from pathlib import Path
from time import process_time, thread_time
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km
from kernelmaps._util import storage
from kernelmaps._util.devices import resolve, to_device, to_host
from kernelmaps.exceptions import OutOfDomainWarning

from .additive_accuracy import STRENGTHS, spread
from .bench_additive import Split, some, split

RECORD = Path(__file__).parent / "results" / "reproductions" / "additive_classifiers.json"
DEGREES = {1: "linear", 2: "quadratic", 3: "cubic"}
SEARCH_ROWS = 15000
MOST_EPOCHS = 300
PROBABILITIES = ", by probabilities"  # ends the names of lines of Table 5
FINE = (0.3, 1.0, 3.0, 10.0, 30.0)  # C of Table 5, in units of 1 / spread

# Printed accuracy (%) and seconds, by bases and degree for D0, D1, D2; on Daimler's pedestrians.
PAPER_2 = {
    (5, 1): ((89.55, 6.60), (89.68, 20.27), (89.93, 41.60)),
    (5, 2): ((90.45, 8.74), (90.20, 30.47), (89.94, 80.25)),
    (5, 3): ((90.03, 11.68), (89.93, 49.85), (88.57, 143.50)),
    (10, 1): ((90.42, 5.61), (90.86, 23.06), (89.43, 77.99)),
    (10, 2): ((90.69, 8.10), (90.73, 29.97), (89.23, 126.03)),
    (10, 3): ((90.48, 11.59), (90.67, 42.26), (89.14, 193.47)),
    (20, 1): ((90.23, 5.96), (91.20, 32.43), (89.06, 246.87)),
    (20, 2): ((90.34, 7.26), (91.10, 34.99), (88.89, 328.32)),
    (20, 3): ((90.39, 10.08), (91.00, 42.88), (88.92, 429.57)),
}
# By number of bases: trigonometric d = 1, d = 2, Hermite d = 1, d = 2.
PAPER_3 = {
    1: ((88.94, 7.0), (88.94, 7.0), (84.17, 2.8), (84.17, 2.8)),
    2: ((89.59, 10.2), (89.64, 10.2), (88.01, 4.6), (88.01, 4.6)),
    3: ((88.99, 12.7), (89.77, 12.8), (88.22, 7.7), (88.70, 9.9)),
    4: ((89.77, 16.0), (89.84, 15.9), (89.00, 12.6), (89.05, 11.9)),
}
PAPER_4 = {
    "linear, LinearSVC": (81.49, 3.8),
    "min kernel, SVC": (89.05, 363.1),
    "D0, linear, n=5": (88.51, 5.9),
    "D0, cubic, n=5": (89.00, 10.8),
    "D1, linear, n=10": (89.56, 17.2),
    "D1, cubic, n=10": (89.25, 19.2),
    "Fourier, d=1, n=4": (88.44, 159.9),
    "Hermite, d=1, n=4": (87.67, 35.5),
}
PAPER_5 = {
    "linear, LinearSVC": (98.56, 6.2),
    "min kernel, SVC": (99.21, 9000.0),
    "D0, linear, n=20": (99.12, 31.6),
    "D0, cubic, n=20": (99.14, 51.6),
    "D1, linear, n=40": (99.19, 157.7),
    "D1, cubic, n=40": (99.18, 244.9),
    "Hermite, d=1, n=4": (98.94, 358.6),
}
MAPS: dict[str, Callable[[], Any]] = {
    "D0, linear, n=5": lambda: km.SplineMap(5, 1, order=0),
    "D0, cubic, n=5": lambda: km.SplineMap(5, 3, order=0),
    "D1, linear, n=10": lambda: km.SplineMap(10, 1, order=1),
    "D1, cubic, n=10": lambda: km.SplineMap(10, 3, order=1),
    "D0, linear, n=20": lambda: km.SplineMap(20, 1, order=0),
    "D0, cubic, n=20": lambda: km.SplineMap(20, 3, order=0),
    "D1, linear, n=40": lambda: km.SplineMap(40, 1, order=1),
    "D1, cubic, n=40": lambda: km.SplineMap(40, 3, order=1),
    "Fourier, d=1, n=4": lambda: km.TrigonometricMap(4, 1, periodic=True),
    "Hermite, d=1, n=4": lambda: km.HermiteMap(4, 1),
}

Found = tuple[float, dict[str, float], str]  # seconds, accuracies by a suffix of the name, remark
Run = Callable[[Split, float | None], Found]
Fit = Callable[[float, Any, Any], Any]  # of C, rows and labels


@dataclass(frozen=True)
class Cell:
    """One figure of a table: how it is computed, and what the paper has."""

    table: int
    words: str
    run: Run
    paper: tuple[float, float]

    @property
    def what(self) -> str:
        return f"table {self.table}, {self.words}"


def searched(fit: Fit, unit: float, X: Any, y: Any) -> float:
    """The C whose model of some of the rows is right most often on others; of equals the least."""
    rows = np.random.default_rng(0).permutation(len(X))[:SEARCH_ROWS]
    part, held_out = train_test_split(rows, test_size=1 / 3, stratify=y[rows], random_state=0)
    costs = [strength / unit for strength in STRENGTHS]
    return max(costs, key=lambda C: fit(C, X[part], y[part]).score(X[held_out], y[held_out]))


def in_two_folds(fit: Fit, unit: float, X: Any, y: Any) -> float:
    """The C whose models of half of the rows are right most often on the other half."""
    folds = list(StratifiedKFold(2, shuffle=True, random_state=0).split(X, y))

    def right(C: float) -> float:
        return sum(fit(C, X[a], y[a]).score(X[b], y[b]) for a, b in folds)

    return max([strength / unit for strength in FINE], key=right)


def timed(
    fit: Fit, C: float | None, unit: float, data: Split, search: Callable = searched
) -> tuple[Any, float, float, float]:
    """The model, its C, the processor seconds of its fit, and its accuracy in per cent."""
    X, y, X_test, y_test = data
    C = C or search(fit, unit, X, y)
    start = process_time()
    model = fit(C, X, y)
    return model, C, process_time() - start, 100 * model.score(X_test, y_test)


def with_map(make: Callable[[], Any], table: int, fixed: float | None = None) -> Run:
    """The additive model; what is said of it is the gap, where it was stopped before the end."""
    digits = table == 5

    def fit(C: float, X: Any, y: Any) -> km.AdditiveSVC:
        model = km.AdditiveSVC(make(), C=C, max_iter=MOST_EPOCHS, random_state=0)
        return model.fit(X, y)

    def run(data: Split, C: float | None) -> Found:
        X = some(data, 1000)[0]
        unit = spread(make().fit(data[0]).transform(X))
        search = in_two_folds if digits else searched
        model, C, seconds, accuracy = timed(fit, fixed or C, unit, data, search)
        gap = float((model.duality_gap_ / model.objective_).max())
        stopped = f", stopped after {MOST_EPOCHS} epochs at a gap of {gap:.1g}"
        found = {"": accuracy}
        if digits:
            calibrated = CalibratedClassifierCV(FrozenEstimator(model)).fit(data[0], data[1])
            most = np.argmax(calibrated.predict_proba(data[2]), axis=1)
            right = model.classes_[most] == data[3]
            found[PROBABILITIES] = 100 * float(np.mean(right))
        return seconds, found, f"C={C:.2g}" + (stopped if gap > model.tol else "")

    return run


def scaled(data: Split) -> Split:
    return data[0] / 255.0, data[1], data[2] / 255.0, data[3]


def linear(data: Split, C: float | None) -> Found:
    def fit(C: float, X: Any, y: Any) -> LinearSVC:
        return LinearSVC(dual=True, C=C, random_state=0).fit(X, y)

    data = scaled(data)
    search = in_two_folds if len(np.unique(data[1])) > 2 else searched
    _, C, seconds, accuracy = timed(fit, C, spread(data[0]), data, search)
    return seconds, {"": accuracy}, f"C={C:.2g}"


def exact(data: Split, C: float | None) -> Found:
    """The exact kernel machine of two classes."""

    def fit(C: float, X: Any, y: Any) -> SVC:
        return SVC(kernel=km.kernels.intersection, C=C, cache_size=1000).fit(X, y)

    data = scaled(data)
    _, C, seconds, accuracy = timed(fit, C, least_spread(data[0]), data)
    return seconds, {"": accuracy}, f"C={C:.2g}, {len(data[0])} rows"


def least_spread(X: np.ndarray) -> float:
    """Mean squared distance from the centre in the feature space of the intersection kernel."""
    K = km.kernels.intersection(X[np.random.default_rng(0).permutation(len(X))[:1000]])
    return float(np.mean(np.diag(K)) - np.mean(K))


def common_mass(A: np.ndarray, B: np.ndarray, device: Any) -> np.ndarray:
    """Σ min(a, b) / 255 of bytes on a device, from distances: min(a, b) = (a + b − |a − b|) / 2."""
    import torch

    a, b = (to_device(rows, device, np.float32) for rows in (A, B))
    sums = a.sum(dim=1)[:, None] + b.sum(dim=1)
    return to_host((sums - torch.cdist(a, b, p=1)) / 510)


@dataclass(frozen=True)
class Pair:
    """Exact kernel machines of one pair of classes, for several C."""

    seconds: list[float]
    right: list[int]  # rows of either fold that the model of the other one gets right
    votes: list[np.ndarray]  # whether test rows are of the second class


def exact_by_pairs(device: Any) -> Run:
    """The exact kernel machine of many classes, one against one, on all rows.

    One C for all pairs: that of the best two-fold accuracy within pairs.
    """

    def gram(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        if device is not None:
            return common_mass(A, B, device)
        return km.kernels.intersection(A / np.float32(255), B / np.float32(255), n_jobs=1)

    def one(pair: tuple[Any, Any], data: Split, costs: Sequence[float]) -> Pair:
        start = thread_time()
        X, y, X_test, _ = data
        own = X[np.isin(y, pair)]
        K, second = gram(own, own), y[np.isin(y, pair)] == pair[1]
        made = thread_time() - start
        folds = list(StratifiedKFold(2, shuffle=True, random_state=0).split(K, second))
        models, found = [], Pair([], [], [])
        for C in costs:
            model = SVC(kernel="precomputed", C=C, cache_size=200)
            found.right.append(0)
            for a, b in folds if len(costs) > 1 else ():
                model.fit(K[np.ix_(a, a)], second[a])
                found.right[-1] += int(np.sum(model.predict(K[np.ix_(b, a)]) == second[b]))
            start = thread_time()
            models.append(model.fit(K, second))
            found.seconds.append(made + thread_time() - start)
        used = np.unique(np.concatenate([model.support_ for model in models]))
        cross = gram(X_test, own[used])
        for model in models:
            columns = cross[:, np.searchsorted(used, model.support_)]
            found.votes.append(columns @ model.dual_coef_[0] + model.intercept_ > 0)
        return found

    def run(data: Split, C: float | None) -> Found:
        unit = least_spread(data[0]) / 255
        costs = [C] if C else [strength / unit for strength in FINE]
        classes = np.unique(data[1])
        pairs = list(combinations(range(len(classes)), 2))
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            names = [(classes[a], classes[b]) for a, b in pairs]
            found = list(pool.map(lambda pair: one(pair, data, costs), names))
        best = int(np.argmax(np.sum([each.right for each in found], axis=0)))
        votes = np.zeros((len(data[3]), len(classes)), int)
        for (a, b), each in zip(pairs, found, strict=True):
            votes[each.votes[best], b] += 1
            votes[~each.votes[best], a] += 1
        accuracy = 100 * float(np.mean(classes[votes.argmax(axis=1)] == data[3]))
        seconds = sum(each.seconds[best] for each in found)
        where = "" if device is None else ", Gram matrices on a GPU"
        remark = f"C={costs[best]:.2g}, one against one, {len(data[0])} rows{where}"
        return seconds, {"": accuracy}, remark

    return run


def cells(device: Any = None) -> Iterator[Cell]:
    """All figures of the four tables, the quick ones of a table first."""
    for order in (0, 1, 2):
        for (bases, degree), paper in PAPER_2.items():
            words = f"{bases} bases, {DEGREES[degree]}, D{order}"
            make = lambda b=bases, p=degree, o=order: km.SplineMap(b, p, order=o)  # noqa: E731
            yield Cell(2, words, with_map(make, 2), paper[order])
            yield Cell(2, f"{words}, C = 1", with_map(make, 2, 1.0), paper[order])
    kinds = [(name, order) for name in ("trigonometric", "Hermite") for order in (1, 2)]
    made = {"trigonometric": partial(km.TrigonometricMap, periodic=True), "Hermite": km.HermiteMap}
    for bases, papers in PAPER_3.items():
        for (name, order), paper in zip(kinds, papers, strict=True):
            make = lambda n=name, b=bases, o=order: made[n](b, o)  # noqa: E731
            yield Cell(3, f"{name}, {bases} bases, d={order}", with_map(make, 3), paper)
    for table, papers, kernel in ((4, PAPER_4, exact), (5, PAPER_5, exact_by_pairs(device))):
        special: dict[str, Run] = {"linear, LinearSVC": linear, "min kernel, SVC": kernel}
        for words, paper in papers.items():
            run = special.get(words) or with_map(MAPS[words], table)
            yield Cell(table, words, run, paper)


@contextmanager
def record(path: Path) -> Iterator[dict[str, Any]]:
    """The kept lines, to be changed by one process at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = json.loads(path.read_text()) if path.exists() else {"lines": {}}
        before = json.dumps(kept)
        yield kept
        if json.dumps(kept) != before:
            text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
            storage.write_file(path, text.encode())
    path.with_suffix(".lock").unlink(missing_ok=True)


def lines_of(cell: Cell, data: Split, C: float | None) -> dict[str, dict[str, Any]]:
    """Compute one cell, of pedestrians with the accuracies of several sets.

    These are others than the paper's, so that its figure is a remark only.
    """
    seconds, found, remark = cell.run(data, C)
    same = cell.table == 5
    paper = f"{cell.paper[1]:g} s" if same else f"{cell.paper[0]:.2f} %, {cell.paper[1]:g} s"
    where = "" if same else " on Daimler's"
    note = f"{seconds:.2f} s, {remark}; paper{where}: {paper}"
    printed = cell.paper[0] if same else None
    lines: dict[str, dict[str, Any]] = {
        cell.what + words: {"paper": printed, "ours": round(accuracy, 2), "note": note}
        for words, accuracy in found.items()
    }
    if not same:
        C = float(re.search(r"C=([\d.e+-]+)", remark)[1])
        lines[cell.what]["sets"] = [round(value, 2) for value in spread_over_sets(cell, data, C)]
    return lines


def spread_over_sets(cell: Cell, data: Split, C: float) -> list[float]:
    """Accuracies of three training sets on two test sets each, all disjoint, as the paper has them.

    A training set is a third of the rows, a test set half of them; C is that of all rows.
    """
    X, y, X_test, y_test = data
    rng = np.random.default_rng(0)
    thirds = np.array_split(rng.permutation(len(y)), 3)
    halves = np.array_split(rng.permutation(len(y_test)), 2)
    return [cell.run((X[a], y[a], X_test[b], y_test[b]), C)[1][""] for a in thirds for b in halves]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA") or None)
    parser.add_argument("--tables", nargs="*", type=int, default=[2, 3, 4, 5], choices=[2, 3, 4, 5])
    parser.add_argument("--rows", type=int, default=None, help="of training data; nothing is kept")
    parser.add_argument("--only", default="", help="cells that have these words in their name")
    parser.add_argument("--C", type=float, default=None, help="for all; default: chosen for each")
    parser.add_argument("--output", type=Path, default=RECORD)
    parser.add_argument("--list", action="store_true", help="print the names of the cells and stop")
    parser.add_argument("--device", help="where Gram matrices are computed, such as cuda")
    parser.add_argument("--resume", action="store_true", help="keep the lines that are there")
    arguments = parser.parse_args(given)
    device = resolve(arguments.device, "--device") if arguments.device else None
    chosen = [
        cell
        for cell in cells(device)
        if cell.table in arguments.tables and arguments.only in cell.what
    ]
    if arguments.list:
        print("\n".join(cell.what for cell in chosen))
        return
    if arguments.data is None:
        parser.error("the real data are needed: --data FOLDER or KERNELMAPS_DATA")
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", OutOfDomainWarning)
    if not (arguments.resume or arguments.rows):
        with record(arguments.output) as kept:
            for cell in chosen:
                for words in ("", PROBABILITIES):
                    kept["lines"].pop(cell.what + words, None)

    @lru_cache
    def load(name: str) -> Split:
        found = split(name, arguments.data)
        return (*some(found, arguments.rows), *found[2:])

    for cell in chosen:
        with record(arguments.output) as kept:
            known = cell.what in kept["lines"]
        if known and not arguments.rows:
            continue
        data = load("mnist" if cell.table == 5 else "inria_person_hog")
        computed = lines_of(cell, data, arguments.C)
        if not arguments.rows:
            with record(arguments.output) as kept:
                kept["lines"] |= computed
        for what, line in computed.items():
            print(f"{what}: {line['ours']:.2f} % | {line['note']}", flush=True)


if __name__ == "__main__":
    main()
