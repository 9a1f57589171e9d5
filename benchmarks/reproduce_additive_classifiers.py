"""Tables 2–5 of *Linearized smooth additive classifiers* on data at hand.

    python -m benchmarks.reproduce_additive_classifiers --data FOLDER
        [--tables 2 3 4 5] [--rows N] [--only WORDS] [--C 1.0]

The paper's pedestrians (Daimler) are replaced by the INRIA pedestrians (1152 gradient features,
8570 + 3459 rows), its MNIST features by our own pyramid of gradients of the same size (2172).
Every line is kept as soon as it is there, by any number of processes, and lines that are kept are
not computed again: an interrupted run goes on. With ``--rows`` nothing is kept.

Times are processor seconds of the fit, so that they do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km
from kernelmaps import storage
from kernelmaps.exceptions import OutOfDomainWarning

from .bench_additive import Split, some, split

RECORD = Path(__file__).parent / "results" / "reproductions" / "additive_classifiers.json"
DEGREES = {1: "linear", 2: "quadratic", 3: "cubic"}
COSTS = {2: 1.0, 3: 1.0, 4: 1.0, 5: 0.01}  # the paper: 1, and for MNIST by cross-validation
MOST_EPOCHS = 300

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
    "D0, linear, n=5": lambda: km.SplineMap(5, 1, 0),
    "D0, cubic, n=5": lambda: km.SplineMap(5, 3, 0),
    "D1, linear, n=10": lambda: km.SplineMap(10, 1, 1),
    "D1, cubic, n=10": lambda: km.SplineMap(10, 3, 1),
    "D0, linear, n=20": lambda: km.SplineMap(20, 1, 0),
    "D0, cubic, n=20": lambda: km.SplineMap(20, 3, 0),
    "D1, linear, n=40": lambda: km.SplineMap(40, 1, 1),
    "D1, cubic, n=40": lambda: km.SplineMap(40, 3, 1),
    "Fourier, d=1, n=4": lambda: km.TrigonometricMap(4, 1),
    "Hermite, d=1, n=4": lambda: km.HermiteMap(4, 1),
}

Run = Callable[[Split, float], tuple[float, float, str]]


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


def timed(model: Any, data: Split) -> tuple[float, float]:
    """Processor seconds of the fit, and accuracy in per cent on the test rows."""
    X, y, X_test, y_test = data
    start = process_time()
    model.fit(X, y)
    return process_time() - start, 100 * model.score(X_test, y_test)


def with_map(make: Callable[[], Any]) -> Run:
    """The additive model; what is said of it is the gap, where it was stopped before the end."""

    def run(data: Split, C: float) -> tuple[float, float, str]:
        model = km.AdditiveClassifier(make(), C=C, max_iter=MOST_EPOCHS, random_state=0)
        seconds, accuracy = timed(model, data)
        gap = float((model.duality_gap_ / model.objective_).max())
        stopped = f", stopped after {MOST_EPOCHS} epochs at a gap of {gap:.1g}"
        return seconds, accuracy, stopped if gap > model.tol else ""

    return run


def scaled(data: Split) -> Split:
    return data[0] / 255.0, data[1], data[2] / 255.0, data[3]


def linear(data: Split, C: float) -> tuple[float, float, str]:
    return *timed(LinearSVC(dual=True, C=C, random_state=0), scaled(data)), ""


def exact(most: int) -> Run:
    """The exact kernel machine on at most that many rows; its C is in units of its own kernel."""

    def run(data: Split, C: float) -> tuple[float, float, str]:
        data = scaled(data)
        X_test, y_test = data[2:]
        X, y = some(data, most)
        start = process_time()
        model = SVC(kernel="precomputed", C=C).fit(km.kernels.intersection(X), y)
        seconds = process_time() - start
        accuracy = 100 * model.score(km.kernels.intersection(X_test, X), y_test)
        return seconds, accuracy, f", {len(X)} rows"

    return run


def cells() -> Iterator[Cell]:
    """All figures of the four tables, the quick ones of a table first."""
    for order in (0, 1, 2):
        for (bases, degree), paper in PAPER_2.items():
            words = f"{bases} bases, {DEGREES[degree]}, D{order}"
            make = lambda b=bases, p=degree, o=order: km.SplineMap(b, p, o)  # noqa: E731
            yield Cell(2, words, with_map(make), paper[order])
    kinds = [(name, order) for name in ("trigonometric", "Hermite") for order in (1, 2)]
    made = {"trigonometric": km.TrigonometricMap, "Hermite": km.HermiteMap}
    for bases, papers in PAPER_3.items():
        for (name, order), paper in zip(kinds, papers, strict=True):
            make = lambda n=name, b=bases, o=order: made[n](b, o)  # noqa: E731
            yield Cell(3, f"{name}, {bases} bases, d={order}", with_map(make), paper)
    for table, papers, most in ((4, PAPER_4, 10**6), (5, PAPER_5, 5000)):
        special: dict[str, Run] = {"linear, LinearSVC": linear, "min kernel, SVC": exact(most)}
        for words, paper in papers.items():
            yield Cell(table, words, special.get(words) or with_map(MAPS[words]), paper)


@contextmanager
def record() -> Iterator[dict[str, Any]]:
    """The kept lines, to be changed by one process at a time."""
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    with open(RECORD.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = json.loads(RECORD.read_text()) if RECORD.exists() else {"lines": {}}
        before = json.dumps(kept)
        yield kept
        if json.dumps(kept) != before:
            text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
            storage.write_file(RECORD, text.encode())
    RECORD.with_suffix(".lock").unlink(missing_ok=True)


def line_of(cell: Cell, data: Split, C: float) -> dict[str, Any]:
    """Compute one cell. On other pedestrians than the paper's its figure is a remark only."""
    seconds, accuracy, remark = cell.run(data, C)
    same = cell.table == 5
    paper = f"{cell.paper[1]:g} s" if same else f"{cell.paper[0]:.2f} %, {cell.paper[1]:g} s"
    where = "" if same else " on Daimler's"
    note = f"{seconds:.2f} s, C={C:g}{remark}; paper{where}: {paper}"
    return {"paper": cell.paper[0] if same else None, "ours": round(accuracy, 2), "note": note}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA") or None)
    parser.add_argument("--tables", nargs="*", type=int, default=[2, 3, 4, 5], choices=[2, 3, 4, 5])
    parser.add_argument("--rows", type=int, default=None, help="of training data; nothing is kept")
    parser.add_argument("--only", default="", help="cells that have these words in their name")
    parser.add_argument("--C", type=float, default=None, help="default: 1, and 0.01 in Table 5")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("the real data are needed: --data FOLDER or KERNELMAPS_DATA")
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", OutOfDomainWarning)
    data: dict[str, Split] = {}
    for cell in cells():
        if cell.table not in arguments.tables or arguments.only not in cell.what:
            continue
        with record() as kept:
            known = kept["lines"].get(cell.what)
        if known is None or arguments.rows:
            name = "mnist" if cell.table == 5 else "inria_person_hog"
            if name not in data:
                found = split(name, arguments.data)
                data[name] = (*some(found, arguments.rows), *found[2:])
            known = line_of(cell, data[name], arguments.C or COSTS[cell.table])
            if not arguments.rows:
                with record() as kept:
                    kept["lines"][cell.what] = known
        print(f"{cell.what}: {known['ours']:.2f} % | {known['note']}", flush=True)


if __name__ == "__main__":
    main()
