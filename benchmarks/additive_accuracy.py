"""Accuracy of additive models beside the exact intersection-kernel machine and a linear one.

All sides see the same rows, and choose C (and the additive model its map) by the same folds of the
training rows, from the same values of C times the mean squared distance of the features from their
centre: kernels and maps differ in their units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km
from kernelmaps.datasets import load as load_dataset

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


def candidates(name: str, X: Any) -> dict[str, Any]:
    """Maps whose kernels are like min(x, y): first differences, one range for all features."""
    high = float(X.max())
    if name == "inria_person_hog":
        return {
            "D1, linear, 10": km.SplineMap(10, 1, 1, domain=(0, 1)),
            "D1, cubic, 10": km.SplineMap(10, 3, 1, domain=(0, 1)),
            "D0, cubic, 10": km.SplineMap(10, 3, 0, domain=(0, 1)),
        }
    maps = {
        "chi2, 3 columns": km.HomogeneousMap("chi2", 3),
        "intersection, 5 columns": km.HomogeneousMap("intersection", 5),
    }
    if name == "scene15_bow":  # with the 102 classes of caltech101 it takes an hour
        maps["D1, linear, 20"] = km.SplineMap(20, 1, 1, domain=(0, high))
    return maps


def additive(name: str, data: Data, feature_map: Any, tol: float = 1e-2) -> dict[str, Any]:
    X, y, X_test, y_test = data
    feature_map = feature_map.fit(X)
    sample = np.random.default_rng(0).permutation(X.shape[0])[:500]
    unit = spread(feature_map.transform(X[sample]))
    model = km.AdditiveClassifierCV(
        feature_map, [s / unit for s in STRENGTHS], cv=folds_of(name, y), tol=tol, random_state=0
    ).fit(X, y)
    best = STRENGTHS[int(np.argmin(np.abs(np.asarray(model.Cs_) - model.C_)))]
    scores = model.scores_.mean(axis=0).tolist()
    return {"strength": best, "folds": scores, "accuracy": 100 * model.score(X_test, y_test)}
