"""Compile ahead of use, for images and servers whose first request shall not wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import kernelmaps as km

from .._util.display import track


@dataclass(frozen=True)
class WarmUp:
    """What was compiled (or found on disk), and how long it took."""

    steps: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.steps} loops are ready after {self.seconds:.1f} s; later runs find them."


def warm_up() -> WarmUp:
    """Run the maps and the models of everyday use once on each kind of rows.

    Streaming models are not among them: apart from their map, they compile nothing.
    """
    start, steps = perf_counter(), list(_steps())
    for step in track(steps, "compiling"):
        step()
    return WarmUp(len(steps), perf_counter() - start)


def _steps() -> Iterator[Callable[[], Any]]:
    X = np.random.default_rng(0).random((4096, 18))  # more than NumPy is left to look at
    labels = np.arange(len(X)) % 2
    kinds = [X, X.astype(np.float32), sparse.csr_matrix(X), (255 * X).astype(np.uint8)]
    everyday = ("HomogeneousMap", "DesignedMap", "ChebyshevMap", "SplineMap", "AnchorMap")
    yield from (partial(getattr(km, n)().fit_transform, rows) for n in everyday for rows in kinds)
    rarer = ("TrigonometricMap", "HermiteMap", "RandomFourierMap", "ExponentialMap")
    yield from (partial(getattr(km, n)().fit_transform, rows) for n in rarer for rows in kinds[:2])
    yield from (partial(_encode, rows) for rows in kinds[:3])
    for machine, y in ((km.AdditiveSVC(max_iter=2), labels), (km.AdditiveSVR(max_iter=2), X[:, 0])):
        yield from (partial(_predict, clone(machine), y, rows) for rows in kinds[:2])
    for gam, y in ((km.AdditiveClassifier, labels), (km.AdditiveRegressor, X[:, 0])):
        yield partial(_predict, gam(categorical_features=[4]), y, _table(X))


def _table(X: np.ndarray) -> np.ndarray:
    """Numbers, gaps and words."""
    table = X[:, :5].astype(object)
    table[::7, 0] = None
    table[:, 4] = np.array(["one", "two", "three"])[np.arange(len(X)) % 3]
    return table


def _encode(rows: Any) -> None:
    km.AnchorMap().fit(rows).encode(rows)


def _predict(model: Any, y: np.ndarray, rows: Any) -> None:
    model.fit(rows, y).predict(rows)
