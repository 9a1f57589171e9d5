"""Accuracy of additive models beside the exact intersection-kernel machine and a linear one.

All sides see the same rows, and choose C (the additive model its map and strategy, too) by the
same folds of the training rows, from the same values of C times the mean squared distance of the
features from their centre: kernels and maps differ in their units.

LIBSVM's exact machine tells classes apart two by two and lets the pairs vote; additive models do so
here as well (hinge loss, as LIBSVM), beside their own one-against-the-rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km
from kernelmaps._util.threads import resolve_threads

from .datasets import load as load_dataset
from .histograms import load

STRENGTHS = (0.1, 1.0, 10.0, 100.0)
FOLDS = {"inria_person_hog": 2, "scene15_bow": 3, "caltech101_bow": 3}

Data = tuple[Any, np.ndarray, Any, np.ndarray]


def rows_of(name: str, folder: str | None) -> Data:
    """Histograms of visual words with sum one (CSR), or gradients in [0, 1] (dense)."""
    if name != "inria_person_hog":
        return load(name, folder)
    found = load_dataset(name, folder=folder)
    return found.X_train / 255.0, found.y_train, found.X_test / 255.0, found.y_test


def folds_of(name: str, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    splitter = StratifiedKFold(FOLDS[name], shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(y)), y))


def dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else X


def exact(name: str, data: Data) -> dict[str, Any]:
    """SVC on the precomputed intersection kernel (one against one, LIBSVM's way)."""
    X, y, X_test, y_test = data
    K = km.kernels.intersection(dense(X))
    unit = float(np.mean(np.diag(K)) - np.mean(K))

    def fitted(strength: float, rows: np.ndarray) -> SVC:
        model = SVC(kernel="precomputed", C=strength / unit, cache_size=1000)
        return model.fit(K[np.ix_(rows, rows)], y[rows])

    scores = [
        np.mean([fitted(s, a).score(K[np.ix_(b, a)], y[b]) for a, b in folds_of(name, y)])
        for s in STRENGTHS
    ]
    best = STRENGTHS[int(np.argmax(scores))]
    K_test = km.kernels.intersection(dense(X_test), dense(X))
    model = fitted(best, np.arange(len(y)))
    return {"strength": best, "folds": scores, "accuracy": 100 * model.score(K_test, y_test)}


def linear(name: str, data: Data) -> dict[str, Any]:
    X, y, X_test, y_test = data
    unit = spread(X)

    def fitted(strength: float, rows: np.ndarray) -> LinearSVC:
        model = LinearSVC(C=strength / unit, dual=False)  # in the primal: C is large
        return model.fit(X[rows], y[rows])

    scores = [
        np.mean([fitted(s, a).score(X[b], y[b]) for a, b in folds_of(name, y)]) for s in STRENGTHS
    ]
    best = STRENGTHS[int(np.argmax(scores))]
    model = fitted(best, np.arange(len(y)))
    return {"strength": best, "folds": scores, "accuracy": 100 * model.score(X_test, y_test)}


def spread(X: Any) -> float:
    """Mean squared distance of the rows from their centre."""
    square = X.multiply(X).sum() if sparse.issparse(X) else (X * X).sum()
    centre = np.asarray(X.mean(axis=0)).ravel()
    return float(square / X.shape[0] - centre @ centre)


def like_min(X: Any, n_anchors: int = 128) -> km.AnchorMap:
    """min(x, y) by linear interpolation between anchors, as many per octave for all values.

    It errs next to the diagonal only, by a share of the value; even anchors on [0, max] lose the
    small values of histograms with sum one, of which there are most.
    """
    values = X.data if sparse.issparse(X) else X
    spaced = np.geomspace(values[values > 0].min(), values.max(), n_anchors - 1)
    return km.AnchorMap(
        "intersection", n_anchors, anchors=np.append(0.0, spaced), n_neighbors=2, energy=1.0,
    )  # fmt: skip


def candidates(name: str, X: Any) -> dict[str, tuple[Any, bool]]:
    """Maps whose kernels are like min(x, y), and whether the classes are told apart in pairs."""
    if name == "inria_person_hog":
        return {
            "D1, linear, 10": (km.SplineMap(10, 1, order=1, domain=(0, 1)), False),
            "D1, cubic, 10": (km.SplineMap(10, 3, order=1, domain=(0, 1)), False),
            "D0, cubic, 10": (km.SplineMap(10, 3, order=0, domain=(0, 1)), False),
        }
    rest = "intersection, 5 columns, one against the rest"
    ways: dict[str, tuple[Any, bool]] = {rest: (km.HomogeneousMap("intersection", 5), False)}
    if name == "scene15_bow":  # the 102 classes of caltech101 are 5151 pairs
        ways["intersection, 128 anchors, one against one"] = (like_min(X), True)
    return ways


def additive(
    name: str, data: Data, feature_map: Any, in_pairs: bool, tol: float = 1e-2
) -> dict[str, Any]:
    X, y, X_test, y_test = data
    feature_map = feature_map.fit(X)
    sample = np.random.default_rng(0).permutation(X.shape[0])[:500]
    costs = np.divide(STRENGTHS, spread(feature_map.transform(X[sample])))
    if in_pairs:
        return chosen_in_pairs(name, data, feature_map, costs, tol)
    model = km.AdditiveSVC(feature_map, costs, cv=folds_of(name, y), tol=tol, random_state=0).fit(
        X, y
    )
    best = STRENGTHS[int(np.argmin(np.abs(np.asarray(model.Cs_) - model.C_)))]
    scores = model.cv_scores_.mean(axis=0).tolist()
    return {"strength": best, "folds": scores, "accuracy": 100 * model.score(X_test, y_test)}


def chosen_in_pairs(
    name: str, data: Data, fitted: Any, costs: np.ndarray, tol: float
) -> dict[str, Any]:
    """As `additive`, with a model for each two classes."""
    X, y, X_test, y_test = data
    scores = np.mean(
        [np.mean(voted(fitted, costs, X[a], y[a], X[b], tol) == y[b], axis=1)
         for a, b in folds_of(name, y)],
        axis=0,
    )  # fmt: skip
    best = int(np.argmax(scores))
    found = voted(fitted, costs[best : best + 1], X, y, X_test, tol)[0]
    accuracy = 100 * float(np.mean(found == y_test))
    return {"strength": STRENGTHS[best], "folds": scores.tolist(), "accuracy": accuracy}


def voted(
    fitted: Any, costs: Sequence[float], X: Any, y: np.ndarray, X_test: Any, tol: float
) -> np.ndarray:
    """Labels of the test rows for each C: most votes of the pairs, as LIBSVM; of equals the first.

    scikit-learn's ``OneVsOneClassifier(AdditiveSVC(FrozenEstimator(fitted)))`` is the same
    thing for one C; this loop goes on from one C to the next.
    """
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.zeros((len(costs), X_test.shape[0], len(classes)), np.int32)
    jobs = Parallel(resolve_threads(None), prefer="threads", return_as="generator_unordered")
    for pair, found in jobs(
        delayed(between)(fitted, costs, X, codes, pair, X_test, tol)
        for pair in combinations(range(len(classes)), 2)
    ):
        votes[:, :, pair[1]] += found
        votes[:, :, pair[0]] += ~found
    return classes[votes.argmax(axis=2)]


def between(
    fitted: Any,
    costs: Sequence[float],
    X: Any,
    codes: np.ndarray,
    pair: tuple[int, int],
    X_test: Any,
    tol: float,
) -> tuple[tuple[int, int], np.ndarray]:
    """Whether the test rows are rather of the pair's second class, for increasing C."""
    rows = np.flatnonzero(np.isin(codes, pair))
    own, second = X[rows], codes[rows] == pair[1]
    model = km.AdditiveSVC(fitted, loss="hinge", tol=tol, random_state=0, n_jobs=1)
    found = np.empty((len(costs), X_test.shape[0]), bool)
    for k, C in enumerate(costs):
        model.set_params(C=C).fit(own, second)
        found[k] = model.predictor_.scores(X_test, n_jobs=1)[:, 0] > 0
    return pair, found
