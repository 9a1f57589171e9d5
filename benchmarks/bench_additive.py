"""Additive SVMs: training beside LinearSVC, beside stored features and other additive models.

LinearSVC gets the same values (as float64 in [0, 1], its own format), the same C, and the largest
tolerance of a short list at which its objective is within 1e-3 of the minimum; ours stop at a
certified relative gap of 1e-3.
"""

from __future__ import annotations

import json
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import kernelmaps as km
from kernelmaps._util import storage
from kernelmaps.exceptions import OutOfDomainWarning

from .datasets import load
from .gradients import pyramid
from .harness import RESULTS, Bench, Goal

TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3)
SPLINES = ((0, 1), (0, 3), (1, 1), (1, 3))  # order, degree
FITS = {0: Goal(1 / 0.4, 1 / 0.6), 1: Goal(1 / 0.8, 1 / 1.2)}  # by order


Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Part = Callable[[Bench], None]
LARGE_TABLE = (
    "a value reads 32 bytes of a table of 3 kB a feature, from the second-level cache; with fewer "
    "features at a time, whose tables fit the nearest one, it takes longer (on a Xeon 1.8 ns "
    "a value with 128, 2.0 with 64, 3.7 with 16)"
)


def split(name: str, data: str | None) -> Split:
    """Training and test data; MNIST as pyramids of gradients."""
    found = load(name, folder=data)
    X, X_test = found.X_train, found.X_test
    if name == "mnist":
        X, X_test = pyramid(X), pyramid(X_test)
    return X, found.y_train, X_test, found.y_test


def some(data: Split, rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """At most that many training rows, drawn at random: files may be sorted by class."""
    order = np.random.default_rng(0).permutation(len(data[0]))[:rows]
    return data[0][np.sort(order)], data[1][np.sort(order)]


def primal(model: LinearSVC, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """LinearSVC's own objective (its intercept is penalised) of each one-vs-rest problem."""
    classes = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    sign = np.where(y[:, None] == classes, 1.0, -1.0)
    f = model.decision_function(X).reshape(len(y), -1)
    norm = (model.coef_**2).sum(axis=1) + model.intercept_**2
    return 0.5 * norm + model.C * (np.maximum(1 - sign * f, 0) ** 2).sum(axis=0)


def peer_for(X: np.ndarray, y: np.ndarray, C: float) -> Callable[[], LinearSVC]:
    """LinearSVC with the largest tolerance that brings it within 1e-3 of its minimum."""

    def make(tol: float) -> LinearSVC:
        return LinearSVC(dual=True, C=C, tol=tol, max_iter=1000, random_state=0)

    least = primal(make(1e-4).fit(X, y), X, y)
    for tol in TOLERANCES:
        if (primal(make(tol).fit(X, y), X, y) <= least * (1 + 1e-3)).all():
            break
    return lambda: make(tol).fit(X, y)


def train(bench: Bench, name: str, data: Split, C: float, repeats: int) -> None:
    X, y, X_test, y_test = data
    scaled = X if X.dtype.kind == "f" else X / np.maximum(X.max(axis=0), 1).astype(np.float64)
    theirs = peer_for(scaled, y, C)
    for order, degree in SPLINES:

        def ours(order: int = order, degree: int = degree) -> km.AdditiveSVC:
            feature_map = km.SplineMap(order=order, degree=degree)
            return km.AdditiveSVC(feature_map, C=C, random_state=0).fit(X, y)

        at_least: float | Goal | None = 1 / 2.5 if order else 1.0
        if name in ("inria", "cifar10_hist"):
            at_least = FITS[order]
        elif X.dtype.kind == "f":
            at_least = None
        row = bench.race(
            f"fit {name}, C={C:g}: D{order}, degree {degree}, 10 bases", ours, theirs,
            peer="LinearSVC, dual", at_least=at_least, repeats=repeats, budget=60,
        )  # fmt: skip
        model = ours()
        row.details |= {
            "accuracy": float(model.score(X_test, y_test)),
            "steps": model.n_iter_,
            "relative gap": float(np.max(model.duality_gap_ / model.objective_)),
        }


def stored(bench: Bench, data: Split, C: float, rows: int, spline: tuple[int, int]) -> None:
    """Our map and LinearSVC on stored features; objectives are compared without intercepts.

    (LinearSVC penalises its intercept, ours is free: only without are the problems the same.)
    """
    X, y = some(data, rows)
    order, degree = spline
    settings = {"order": order, "degree": degree, "sparse_output": order == 0}
    feature_map = km.SplineMap(**settings).fit(X)

    def ours(intercept: bool = True) -> km.AdditiveSVC:
        model = km.AdditiveSVC(feature_map, C, random_state=0, fit_intercept=intercept)
        return model.fit(X, y)

    def theirs(intercept: bool = True) -> LinearSVC:
        Z = feature_map.transform(X).astype(np.float64)
        peer = LinearSVC(dual=True, C=C, tol=0.03, max_iter=2000, fit_intercept=intercept)
        return peer.set_params(random_state=0).fit(Z, y)

    row = bench.race(
        f"the same model on stored features, D{order}, degree {degree} ({len(X)} rows)",
        ours, theirs, peer="SplineMap + LinearSVC", at_least=5, repeats=2, budget=60,
    )  # fmt: skip
    Z = feature_map.transform(X).astype(np.float64)
    objectives = [float(ours(False).objective_[0]), float(primal(theirs(False), Z, y)[0])]
    row.details["objectives without intercept"] = objectives
    row.note = f"objectives differ by {abs(objectives[0] / objectives[1] - 1):.1e} relative"
    print("  ", row.note)


def predict(bench: Bench, data: Split) -> None:
    X, y, X_test, _ = data
    peer = LinearSVC(dual=True, tol=0.1, random_state=0).fit(X / 255, y)
    for kind in (np.uint8, np.float64):
        mine = X_test if kind is np.uint8 else X_test / 255
        theirs = X_test / 255
        for bases in (10, 100):
            fitted = X if kind is np.uint8 else X / 255
            model = km.AdditiveSVC(km.SplineMap(bases), C=0.01).fit(fitted, y)
            bench.race(
                f"decision_function, cubic, {bases} bases, {np.dtype(kind).name} rows",
                lambda model=model, mine=mine: model.decision_function(mine),
                lambda theirs=theirs: peer.decision_function(theirs),
                peer="LinearSVC (float64 rows)", at_least=Goal(1 / 1.3, 1 / 2), repeats=20, calls=5,
                note=LARGE_TABLE if bases == 100 and kind is not np.uint8 else "",
            )  # fmt: skip


def memory_share(X: np.ndarray, y: np.ndarray, feature_map: Any) -> float:
    """Peak of the allocations of a fit beyond weights and duals, as a share of X."""
    km.AdditiveSVC(feature_map, C=0.01).fit(X, y)  # compile
    tracemalloc.start()
    model = km.AdditiveSVC(feature_map, C=0.01, random_state=0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - model.predictor_.weights.nbytes - model.dual_coef_.nbytes) / X.nbytes


def synthetic(n: int = 15000, d: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels from a sum of smooth functions of ten of twenty features."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    j = np.arange(d // 2)
    score = (np.sin((1 + j % 4) * 2 * X[:, : d // 2] + j) * (1 + (j % 3))).sum(axis=1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * (score - np.median(score))))).astype(int)


def installed(module: str, name: str) -> Any:
    """A peer's class, or None where it is not installed."""
    try:
        return getattr(import_module(module), name)
    except ImportError:
        return None


def against_additive(bench: Bench) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    X, y = synthetic()
    train_, test = slice(0, 10000), slice(10000, None)
    accuracy = {}

    def run(name: str, make: Callable[[], Any]) -> Callable[[], None]:
        def call() -> None:
            model = make().fit(X[train_], y[train_])
            accuracy[name] = float(np.mean(model.predict(X[test]).ravel() == y[test]))

        return call

    ours = run("ours", km.AdditiveClassifier)
    peers = {"SplineTransformer + LogisticRegression": lambda: make_pipeline(
        SplineTransformer(10), LogisticRegression(max_iter=1000))}  # fmt: skip
    peers["pyGAM"] = installed("pygam", "LogisticGAM")
    boosted = installed("interpret.glassbox", "ExplainableBoostingClassifier")
    peers["EBM"] = boosted and (lambda: boosted(interactions=0))
    for name, make in peers.items():
        if make is None:
            row = bench.measure("fit + score, 15000 × 20 additive data", float("nan"), "s")
            row.ours, row.peer, row.note = None, name, "not installed"
            continue
        slow = name == "EBM"
        row = bench.race(
            "fit + score, 15000 × 20 additive data", ours, run(name, make), peer=name, at_least=1,
            repeats=1 if slow else 2, budget=30,
        )  # fmt: skip
        row.note = f"accuracy {accuracy['ours']:.4f} against {accuracy[name]:.4f}; all at defaults"
        row.reached = bool(row.ratio > 1 and accuracy["ours"] >= accuracy[name] - 1e-12)


def remembered(key: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """One side of a comparison of accuracies, kept at once: an interrupted run goes on.

    What is kept is not computed again; remove the file after a change of the protocol.
    """
    path = RESULTS / "accuracy" / "additive.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if key not in kept:
        kept[key] = compute()
        path.parent.mkdir(exist_ok=True)
        storage.write_file(path, (json.dumps(kept, indent=1) + "\n").encode())
        print("  ", key, kept[key], flush=True)
    return kept[key]


def accuracy(bench: Bench, name: str) -> None:
    """The best additive model (chosen by cross-validation) beside the exact kernel machine."""
    from . import additive_accuracy as ways

    data = ways.rows_of(name, bench.data)
    exact = remembered(f"{name}: exact", partial(ways.exact, name, data))
    found = {
        key: remembered(f"{name}: {key}", partial(ways.additive, name, data, *way))
        for key, way in ways.candidates(name, data[0]).items()
    }
    linear = remembered(f"{name}: linear", partial(ways.linear, name, data))
    best = max(found, key=lambda key: max(found[key]["folds"]))
    row = bench.measure(
        f"accuracy on {name}, additive model ({best})", found[best]["accuracy"], "%",
        peer="SVC(precomputed), intersection",
    )  # fmt: skip
    row.theirs, row.target = exact["accuracy"], "within 0.3 points of the exact machine"
    row.reached = bool(row.ours >= row.theirs - 0.3)
    row.note = (
        f"linear: {linear['accuracy']:.2f} %; C by folds on both sides, on ours also the map and "
        "the strategy"
    )
    row.details = {"additive": found, "exact": exact, "linear": linear}
    print("  ", row.theirs, row.note)


def fit_part(
    name: str,
    file: str,
    Cs: tuple[float, ...],
    repeats: int,
    rows: int | None,
    *,
    floats: bool = False,
) -> Part:
    def part(bench: Bench) -> None:
        data = split(file, bench.data)
        if floats:  # not those of bytes alone
            noise = np.random.default_rng(0).random(data[0].shape) - 0.5
            data = ((data[0] + noise).clip(0, 255) / 255, data[1], data[2] / 255, data[3])
        data = (*some(data, rows), *data[2:])
        for C in Cs:
            train(bench, name if rows is None else f"{name} ({rows} rows)", data, C, repeats)

    return part


def stored_part(spline: tuple[int, int]) -> Part:
    return lambda bench: stored(bench, split("inria_person_hog", bench.data), 0.01, 2000, spline)


def memory(bench: Bench) -> None:
    people = split("inria_person_hog", bench.data)
    for order, degree in SPLINES:
        share = memory_share(people[0], people[1], km.SplineMap(order=order, degree=degree))
        bench.measure(
            f"extra memory of a fit on inria, D{order}, degree {degree}", 100 * share,
            "% of X", at_most=10,
        )  # fmt: skip


PARTS: dict[str, Part] = {
    "peers": against_additive,
    "inria": fit_part("inria", "inria_person_hog", (0.01, 1.0), 5, None),
    "inria-floats": fit_part(
        "inria, float64 rows", "inria_person_hog", (0.01, 1.0), 5, None, floats=True
    ),
    "predict": lambda bench: predict(bench, split("inria_person_hog", bench.data)),
    "memory": memory,
    "stored-d0-linear": stored_part((0, 1)),
    "stored-d0-cubic": stored_part((0, 3)),
    "stored-d1-linear": stored_part((1, 1)),
    "stored-d1-cubic": stored_part((1, 3)),
    "cifar": fit_part("cifar10_hist", "cifar10_hist", (0.01,), 2, None),
    "mnist-10000": fit_part("MNIST gradients", "mnist", (0.01,), 2, 10000),
    "mnist": fit_part("MNIST gradients", "mnist", (0.01,), 2, None),
    "accuracy-inria": lambda bench: accuracy(bench, "inria_person_hog"),
    "accuracy-scene15": lambda bench: accuracy(bench, "scene15_bow"),
    "accuracy-caltech101": lambda bench: accuracy(bench, "caltech101_bow"),
}


def run(bench: Bench, parts: Sequence[str] = tuple(PARTS)) -> None:
    """All rows; without the real data only the synthetic ones."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", OutOfDomainWarning)
    for name in parts:
        if bench.data is None and name != "peers":
            print(f"{name} needs --data or KERNELMAPS_DATA: left out")
            continue
        PARTS[name](bench)
