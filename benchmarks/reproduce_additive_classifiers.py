"""Tables 2–5 of *Linearized smooth additive classifiers* on data at hand.

    python -m benchmarks.reproduce_additive_classifiers --data FOLDER
        [--tables 2 3 4 5] [--rows N] [--only WORDS] [--C 1.0] [--output FILE] [--list]

The paper's pedestrians (Daimler) are replaced by the INRIA pedestrians (1152 gradient features,
8570 + 3459 rows), its MNIST features by our own pyramid of gradients of the same size (2172).
C is chosen for every cell on training rows held out (the paper has C = 1 for the pedestrians and
cross-validation for the digits; the scale of the basis decides what C = 1 means): 0.1, 1, 10 or 100
divided by the mean squared distance of the features from their centre, by the accuracy on a third
of (at most 15000 of) the training rows after training on the rest of them. Table 2's D2 is computed
with the paper's C = 1, too, which takes Newton's method. Table 5 has the C of two folds of all
training rows, as the paper's, and labels by Platt's probabilities beside those by plain scores.
``--C`` takes one for all. Every line is kept as soon as it is there, by any number of processes;
lines that are kept are not computed again, so that an interrupted run goes on. With ``--rows``
nothing is kept.

``--list`` prints the names of the cells, one on a line, for such processes. Times are processor
seconds of the last fit, so that they do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km
from kernelmaps import storage
from kernelmaps.exceptions import OutOfDomainWarning

from .additive_accuracy import STRENGTHS, spread
from .bench_additive import Split, some, split

RECORD = Path(__file__).parent / "results" / "reproductions" / "additive_classifiers.json"
DEGREES = {1: "linear", 2: "quadratic", 3: "cubic"}
SEARCH_ROWS = 15000
MOST_EPOCHS = 300
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
    "Fourier, d=1, n=4": lambda: km.TrigonometricMap(4, 1),
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

    def fit(C: float, X: Any, y: Any) -> km.AdditiveClassifier:
        model = km.AdditiveClassifier(make(), C=C, max_iter=MOST_EPOCHS, random_state=0)
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
            most = np.argmax(model.predict_proba(data[2]), axis=1)
            right = model.classes_[most] == data[3]
            found[", by probabilities"] = 100 * float(np.mean(right))
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


def exact(most: int) -> Run:
    """The exact kernel machine on at most that many rows."""

    def fit(C: float, X: Any, y: Any) -> SVC:
        return SVC(kernel=km.kernels.intersection, C=C, cache_size=1000).fit(X, y)

    def run(data: Split, C: float | None) -> Found:
        data = scaled(data)
        X, y = some(data, most)
        K = km.kernels.intersection(X[:1000])
        unit = float(np.mean(np.diag(K)) - np.mean(K))
        _, C, seconds, accuracy = timed(fit, C, unit, (X, y, *data[2:]))
        return seconds, {"": accuracy}, f"C={C:.2g}, {len(X)} rows"

    return run


def cells() -> Iterator[Cell]:
    """All figures of the four tables, the quick ones of a table first."""
    for order in (0, 1, 2):
        for (bases, degree), paper in PAPER_2.items():
            words = f"{bases} bases, {DEGREES[degree]}, D{order}"
            make = lambda b=bases, p=degree, o=order: km.SplineMap(b, p, order=o)  # noqa: E731
            yield Cell(2, words, with_map(make, 2), paper[order])
            if order == 2:
                yield Cell(2, f"{words}, C = 1", with_map(make, 2, 1.0), paper[order])
    kinds = [(name, order) for name in ("trigonometric", "Hermite") for order in (1, 2)]
    made = {"trigonometric": km.TrigonometricMap, "Hermite": km.HermiteMap}
    for bases, papers in PAPER_3.items():
        for (name, order), paper in zip(kinds, papers, strict=True):
            make = lambda n=name, b=bases, o=order: made[n](b, o)  # noqa: E731
            yield Cell(3, f"{name}, {bases} bases, d={order}", with_map(make, 3), paper)
    for table, papers, most in ((4, PAPER_4, 10**6), (5, PAPER_5, 5000)):
        special: dict[str, Run] = {"linear, LinearSVC": linear, "min kernel, SVC": exact(most)}
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
    """Compute one cell. On other pedestrians than the paper's its figure is a remark only."""
    seconds, found, remark = cell.run(data, C)
    same = cell.table == 5
    paper = f"{cell.paper[1]:g} s" if same else f"{cell.paper[0]:.2f} %, {cell.paper[1]:g} s"
    where = "" if same else " on Daimler's"
    note = f"{seconds:.2f} s, {remark}; paper{where}: {paper}"
    printed = cell.paper[0] if same else None
    return {
        cell.what + words: {"paper": printed, "ours": round(accuracy, 2), "note": note}
        for words, accuracy in found.items()
    }


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA") or None)
    parser.add_argument("--tables", nargs="*", type=int, default=[2, 3, 4, 5], choices=[2, 3, 4, 5])
    parser.add_argument("--rows", type=int, default=None, help="of training data; nothing is kept")
    parser.add_argument("--only", default="", help="cells that have these words in their name")
    parser.add_argument("--C", type=float, default=None, help="for all; default: chosen for each")
    parser.add_argument("--output", type=Path, default=RECORD)
    parser.add_argument("--list", action="store_true", help="print the names of the cells and stop")
    arguments = parser.parse_args(given)
    if arguments.list:
        print("\n".join(cell.what for cell in cells() if cell.table in arguments.tables))
        return
    if arguments.data is None:
        parser.error("the real data are needed: --data FOLDER or KERNELMAPS_DATA")
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", OutOfDomainWarning)
    data: dict[str, Split] = {}
    for cell in cells():
        if cell.table not in arguments.tables or arguments.only not in cell.what:
            continue
        with record(arguments.output) as kept:
            known = {k: v for k, v in kept["lines"].items() if k.startswith(cell.what)}
        if cell.what not in known or arguments.rows:
            name = "mnist" if cell.table == 5 else "inria_person_hog"
            if name not in data:
                found = split(name, arguments.data)
                data[name] = (*some(found, arguments.rows), *found[2:])
            known = lines_of(cell, data[name], arguments.C)
            if not arguments.rows:
                with record(arguments.output) as kept:
                    kept["lines"] |= known
        for what, line in known.items():
            print(f"{what}: {line['ours']:.2f} % | {line['note']}", flush=True)


if __name__ == "__main__":
    main()
