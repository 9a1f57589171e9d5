"""Tables 2–5 of *Linearized smooth additive classifiers* on data at hand.

``python -m benchmarks.reproduce_additive_classifiers --data FOLDER [--tables 2 3 4 5] [--rows N]``

The paper's pedestrians (Daimler) are replaced by the INRIA pedestrians (1152 gradient features,
8570 + 3459 rows), its MNIST features by our own pyramid of gradients of the same size (2172).
C = 1 as in the paper unless said otherwise. Times are processor seconds of the fit, so that they
do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from time import process_time
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km

from .bench_additive import Split, some, split


def timed(model: Any, data: Split) -> tuple[float, float]:
    """Processor seconds of the fit, and accuracy in per cent on the test rows."""
    X, y, X_test, y_test = data
    start = process_time()
    model.fit(X, y)
    return process_time() - start, 100 * model.score(X_test, y_test)


def additive(feature_map: Any, C: float, max_iter: int = 300) -> km.AdditiveClassifier:
    return km.AdditiveClassifier(feature_map, C=C, max_iter=max_iter, random_state=0)


def table2(data: Split, C: float) -> Iterator[str]:
    """The effect of spline parameters on training time and accuracy."""
    yield "| bases | degree | D0 | D1 | D2 |\n|---|---|---|---|---|"
    for bases in (5, 10, 20):
        for degree in (1, 2, 3):
            cells = []
            for order in (0, 1, 2):
                feature_map = km.SplineMap(bases, degree, order)
                cells.append("{:.2f} s ({:.2f} %)".format(*timed(additive(feature_map, C), data)))
            yield f"| {bases} | {degree} | {' | '.join(cells)} |"


def table3(data: Split, C: float) -> Iterator[str]:
    """The effect of the size of trigonometric and Hermite bases."""
    yield "| bases | trigonometric, d=1 | d=2 | Hermite, d=1 | d=2 |\n|---|---|---|---|---|"
    for bases in (1, 2, 3, 4):
        maps = [make(bases, order) for make in (km.TrigonometricMap, km.HermiteMap)
                for order in (1, 2)]  # fmt: skip
        cells = ["{:.2f} s ({:.2f} %)".format(*timed(additive(m, C), data)) for m in maps]
        yield f"| {bases} | {' | '.join(cells)} |"


def scaled(data: Split) -> Split:
    return data[0] / 255.0, data[1], data[2] / 255.0, data[3]


def intersection(data: Split, C: float, most: int) -> tuple[float, float]:
    """The exact kernel machine on at most that many rows."""
    X_test, y_test = data[2:]
    X, y = some(data, most)
    start = process_time()
    model = SVC(kernel="precomputed", C=C).fit(km.kernels.intersection(X), y)
    seconds = process_time() - start
    return seconds, 100 * model.score(km.kernels.intersection(X_test, X), y_test)


def comparison(data: Split, maps: dict[str, Any], C: float, most: int) -> Iterator[str]:
    yield "| method | accuracy | processor time |\n|---|---|---|"
    rows = {"linear, LinearSVC": timed(LinearSVC(dual=True, C=C, random_state=0), scaled(data))}
    exact = intersection(scaled(data), C, most)
    rows[f"min kernel, SVC ({min(most, len(data[0]))} rows)"] = exact
    rows |= {name: timed(additive(feature_map, C), data) for name, feature_map in maps.items()}
    for name, (seconds, accuracy) in rows.items():
        yield f"| {name} | {accuracy:.2f} % | {seconds:.2f} s |"


def table4(data: Split, C: float) -> Iterator[str]:
    """Additive models beside the linear and the exact kernel machine."""
    maps = {
        "D0, linear, n=5": km.SplineMap(5, 1, 0),
        "D0, cubic, n=5": km.SplineMap(5, 3, 0),
        "D1, linear, n=10": km.SplineMap(10, 1, 1),
        "D1, cubic, n=10": km.SplineMap(10, 3, 1),
        "Fourier, d=1, n=4": km.TrigonometricMap(4, 1),
        "Hermite, d=1, n=4": km.HermiteMap(4, 1),
    }
    yield from comparison(data, maps, C, 10**6)


def table5(data: Split, C: float) -> Iterator[str]:
    """Digits: ten classes, one against the rest."""
    maps = {
        "D0, linear, n=20": km.SplineMap(20, 1, 0),
        "D0, cubic, n=20": km.SplineMap(20, 3, 0),
        "D1, linear, n=40": km.SplineMap(40, 1, 1),
        "D1, cubic, n=40": km.SplineMap(40, 3, 1),
        "Hermite, d=1, n=4": km.HermiteMap(4, 1),
    }
    yield from comparison(data, maps, C, 5000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA") or None)
    parser.add_argument("--tables", nargs="*", type=int, default=[2, 3, 4, 5])
    parser.add_argument("--rows", type=int, default=None, help="of training data, at most")
    parser.add_argument("--C", type=float, default=1.0)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("the real data are needed: --data FOLDER or KERNELMAPS_DATA")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for number in arguments.tables:
        table = {2: table2, 3: table3, 4: table4, 5: table5}[number]
        data = split("mnist" if number == 5 else "inria_person_hog", arguments.data)
        data = (*some(data, arguments.rows), *data[2:])
        print(f"\nTable {number}, {len(data[0])} rows, C={arguments.C:g}: {table.__doc__}\n")
        for line in table(data, arguments.C):
            print(line, flush=True)


if __name__ == "__main__":
    main()
