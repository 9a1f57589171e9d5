"""kernelmaps warmup: compile ahead of use, for images and servers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import kernelmaps as km

from .._util.display import track
from . import application as cli


@cli.command
def warmup(json: cli.AsJson = False) -> None:
    """Compile the loops of everyday use now, so that the first request does not wait.

    For images and servers: compiled loops are kept next to the package, or in the folder that the
    environment variable NUMBA_CACHE_DIR names. Streaming models are not among them: apart from
    their map, they compile nothing.

    Example: `kernelmaps warmup`
    """
    start, steps = perf_counter(), list(_steps())
    with warnings.catch_warnings(action="ignore"):  # of rows that nobody will see
        for step in track(steps, "compiling"):
            step()
    seconds = perf_counter() - start
    if json:
        cli.show_json({"steps": len(steps), "seconds": seconds})
    else:
        cli.say(f"{len(steps)} loops are ready after {seconds:.1f} s; later runs find them.")


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
