"""Does training reach its gap, whatever the map, the loss and C?

Every additive map, loss and C from 1e-6 to 1e6 on spambase (57 features, 3065 rows), with the
settings that a user gets who changes nothing else. A fit either has a certified duality gap of at
most `tol` times its objective, or its warning says what to change.

    python -m benchmarks.convergence --data FOLDER [--maps ...] [--losses ...] [--rows N]
        [--steps 13] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import kernelmaps as km
from kernelmaps.exceptions import OutOfDomainWarning

from .datasets import load as load_dataset

LOSSES = ("squared_hinge", "hinge", "log_loss")
MAPS: dict[str, Callable[[], Any]] = {
    "SplineMap()": km.SplineMap,
    "SplineMap(20, order=2)": lambda: km.SplineMap(20, order=2),
    "SplineMap(20, 1, order=0)": lambda: km.SplineMap(20, 1, order=0),
    "TrigonometricMap()": km.TrigonometricMap,
    "HermiteMap()": km.HermiteMap,
    "HomogeneousMap()": km.HomogeneousMap,
    "DesignedMap()": km.DesignedMap,
    "AnchorMap()": km.AnchorMap,
    "ChebyshevMap()": km.ChebyshevMap,
    "SeriesMap()": km.SeriesMap,
}


def fits(
    folder: str | None, maps: Sequence[str], losses: Sequence[str], steps: int, rows: int | None
) -> Iterator[dict[str, Any]]:
    data = load_dataset("spambase", folder=folder)
    X, y = data.X_train[:rows], data.y_train[:rows]
    for name in maps:
        for loss in losses:
            for C in np.logspace(-6, 6, steps):
                yield one(name, loss, float(C), X, y)


def one(name: str, loss: str, C: float, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """The relative gap of one fit, whether it is within `tol`, and what its warning says."""
    model = km.AdditiveSVC(MAPS[name](), C=C, loss=loss, random_state=0, n_jobs=1)
    start = process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", OutOfDomainWarning)
        model.fit(X, y)
    said = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    gap = float(np.max(model.duality_gap_ / model.objective_))
    return {
        "map": name, "loss": loss, "C": C, "gap": gap, "reached": gap <= model.tol,
        "seconds": process_time() - start, "warning": said[0] if said else None,
    }  # fmt: skip


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--maps", nargs="+", default=list(MAPS), choices=list(MAPS))
    parser.add_argument("--losses", nargs="+", default=LOSSES, choices=LOSSES)
    parser.add_argument("--steps", type=int, default=13, help="values of C")
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--out", type=Path, default=None, help="JSON, written after every fit")
    options = parser.parse_args(given)
    found = []
    wanted = (options.data, options.maps, options.losses, options.steps, options.rows)
    for item in fits(*wanted):
        found.append(item)
        if not item["reached"]:
            print(f"{item['map']}, {item['loss']}, C = {item['C']:.0e}: {item['warning']}")
        if options.out:
            options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    silent = [item for item in found if not item["reached"] and not item["warning"]]
    reached = sum(item["reached"] for item in found)
    slowest = max(item["seconds"] for item in found)
    print(f"{reached} of {len(found)} fits reached their gap, the slowest in {slowest:.1f} s;")
    print(f"{len(silent)} of the others said nothing")


if __name__ == "__main__":
    main()
