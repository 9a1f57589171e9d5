"""Figures 2 and 4 of compressive-rf: six methods on MNIST and on INRIA's pedestrians.

    python -m benchmarks.reproduce_compressive_rf --data FOLDER [--jobs 2] [--results FOLDER]
        [--datasets mnist] [--sizes 100 500] [--seeds 1] [--kinds cell linear kernel peer]

MNIST follows the paper: pixels in [0, 1], σ = 10 (with pixels up to 255 the kernel would be the
identity), the machine of Crammer and Singer with C = 1 and without a bias (LIBLINEAR -s 4), all
60,000 + 10,000 rows. Linear machines are LIBLINEAR's own; on random features, whose rows are dense,
the same method on float32 (:mod:`benchmarks.crammer_singer`). Kernel machines are LIBSVM's, one
against one, all rows: each pair of classes is a job, and their votes are counted in the end.

INRIA: the paper took pixels of 32×16 images; the folder holds gradient histograms of the same
pedestrians (1152 features), scaled here to [0, 1], with σ = 5 as in the paper. So the figures are
not comparable one by one, only their order is.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import kernelmaps as km

from . import crammer_singer, parallel

RECORD = Path(__file__).parent / "results" / "reproductions" / "compressive-rf.json"
RESULTS = RECORD.parent / "jobs" / "compressive-rf"
SIGMA = {"mnist": 10.0, "inria_person_hog": 5.0}
SEEDS = 5
# Figures 2b and 4b: rows M, columns typical random features and m measurements.
MEASUREMENTS = {"mnist": (50, 100, 200, 300), "inria_person_hog": (50, 100, 200, 300, 400)}
PAPER = {
    "mnist": {
        100: (87.75, 85.14, 86.87, 87.45, 87.66),
        500: (94.78, 91.92, 93.83, 94.45, 94.67),
        1000: (95.89, 93.03, 94.89, 95.56, 95.65),
        2000: (96.47, 93.73, 95.51, 96.15, 96.27),
        4000: (96.82, 94.12, 95.79, 96.45, 96.61),
        6000: (96.96, 94.08, 95.95, 96.61, 96.76),
    },
    "inria_person_hog": {
        500: (84.23, 82.87, 83.62, 84.38, 84.36, 84.17),
        1000: (86.52, 84.75, 85.66, 86.01, 86.30, 86.21),
        2000: (88.15, 85.65, 87.23, 87.70, 87.85, 87.86),
        4000: (89.67, 86.63, 88.44, 88.91, 89.50, 89.42),
        5000: (90.27, 87.19, 88.42, 89.21, 89.68, 89.86),
        6000: (90.24, 87.11, 88.89, 89.55, 89.76, 90.15),
    },
}
PAPER_OTHERS = {
    "mnist": {
        "original linear": 92.82, "original kernel": 96.63,
        "compressive linear m=100": 89.85, "compressive kernel m=100": 95.34,
    },
    "inria_person_hog": {
        "original linear": 89.20, "original kernel": 91.90,
        "compressive linear m=100": 84.36, "compressive kernel m=100": 89.92,
    },
}  # fmt: skip


PEERS = ("RBFSampler", "Nystroem", "PCA to 100, then RandomFourierMap")


@lru_cache(2)
def read(folder: str, name: str) -> tuple[np.ndarray, ...]:
    """Train and test rows in [0, 1], float32."""
    with np.load(Path(folder) / f"{name}.npz") as data:
        X, X_test = (data[key].astype(np.float32) / 255 for key in ("X_train", "X_test"))
        return X, data["y_train"], X_test, data["y_test"]


def jobs(
    datasets: Sequence[str] = tuple(PAPER),
    sizes: Sequence[int] | None = None,
    seeds: int = SEEDS,
    kinds: Sequence[str] = ("kernel", "linear", "peer", "cell"),
) -> list[dict[str, Any]]:
    """All jobs, seed by seed, the longest first."""
    found: list[dict[str, Any]] = []
    for name in datasets:
        classes = 10 if name == "mnist" else 2
        for m in (None, 100):
            found += [
                {"kind": "kernel", "data": name, "m": m, "pair": list(pair)}
                for pair in combinations(range(classes), 2)
            ]
        found.append({"kind": "linear", "data": name, "m": None, "seed": 0})
        found += [{"kind": "linear", "data": name, "m": 100, "seed": s} for s in range(seeds)]
        found += [{"kind": "peer", "data": name, "name": peer} for peer in PEERS]
        found += [
            {"kind": "cell", "data": name, "M": M, "m": m, "seed": seed}
            for M in sorted(sizes or PAPER[name], reverse=True)
            for m in (None, *MEASUREMENTS[name])
            for seed in range(seeds)
        ]
    found.sort(key=lambda job: job.get("seed", 0))
    return [job for job in found if job["kind"] in kinds]


def run(job: dict[str, Any], folder: str) -> Any:
    """Test accuracy in percent; of a pair of classes, its votes for the second one, as digits."""
    data = read(folder, job["data"])
    return {"cell": cell, "linear": linear, "kernel": kernel, "peer": peer}[job["kind"]](job, data)


def features_of(job: dict[str, Any]) -> Any:
    """Typical (m None) or compressive random features, in the paper's form (cosines)."""
    sigma, seed, M = SIGMA[job["data"]], job["seed"], job["M"]
    if job["m"] is None:
        return km.RandomFourierMap("gaussian", M, sigma=sigma, random_state=seed)
    return km.CompressiveFourierMap(job["m"], M, form="cosine", sigma=sigma, random_state=seed)


def cell(job: dict[str, Any], data: Any) -> float:
    """A machine on random features."""
    X, y, X_test, y_test = data
    features = features_of(job).fit(X[:100])
    return crammer_singer.accuracy(features.transform(X), y, features.transform(X_test), y_test)


def measured(m: int | None, seed: int, X: np.ndarray, X_test: np.ndarray) -> tuple[Any, Any]:
    """m compressive measurements; None for the rows themselves."""
    if m is None:
        return X, X_test
    P = km.RandomOrthoprojector(m, random_state=seed).fit(X[:100])
    return P.transform(X), P.transform(X_test)


def linear(job: dict[str, Any], data: Any) -> float:
    """LIBLINEAR -s 4 on the rows or their measurements."""
    from liblinear.liblinearutil import predict, train
    from scipy.sparse import csr_matrix

    X, y, X_test, y_test = data
    A, A_test = measured(job["m"], job["seed"], X, X_test)
    rows, others = (csr_matrix(Z.astype(np.float64)) for Z in (A, A_test))
    model = train(y.astype(np.float64), rows, "-s 4 -c 1 -q")
    found = predict([], others, model, "-q")[0]
    return 100 * float(np.mean(np.asarray(found) == y_test))


def kernel(job: dict[str, Any], data: Any) -> str:
    """LIBSVM for one pair of classes, C = 1."""
    from sklearn.svm import SVC

    X, y, X_test, _ = data
    A, A_test = measured(job["m"], 0, X, X_test)
    codes = np.unique(y, return_inverse=True)[1]
    own = np.flatnonzero(np.isin(codes, job["pair"]))
    gamma = 1 / (2 * SIGMA[job["data"]] ** 2)
    model = SVC(C=1.0, gamma=gamma, cache_size=1000).fit(A[own], codes[own] == job["pair"][1])
    return "".join(map(str, (model.decision_function(A_test) > 0).astype(int)))


def peer(job: dict[str, Any], data: Any) -> float:
    """Other features of the same size, M = 500, made on 10000 rows."""
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.pipeline import make_pipeline

    X, y, X_test, y_test = data
    sigma = SIGMA[job["data"]]
    gamma = 1 / (2 * sigma**2)
    ours = km.RandomFourierMap(n_components=500, sigma=sigma, random_state=0)
    features = {
        PEERS[0]: RBFSampler(gamma=gamma, n_components=500, random_state=0),
        PEERS[1]: Nystroem(gamma=gamma, n_components=500, random_state=0),
        PEERS[2]: make_pipeline(PCA(100, random_state=0), ours),
    }[job["name"]]
    few = np.sort(np.random.default_rng(0).permutation(len(X))[:10000])
    features.fit(X[few])
    return crammer_singer.accuracy(features.transform(X), y, features.transform(X_test), y_test)


def record_of(found: list[dict[str, Any]], folder: str, old: dict[str, Any]) -> dict[str, Any]:
    """Figures by dataset and name, from the files of the jobs; other datasets stay as they were."""
    new = {item["job"]["data"] for item in found}
    record = {k: v for k, v in old.items() if k in SIGMA and k not in new}
    groups: dict[tuple[str, str], list[Any]] = {}
    for item in sorted(found, key=lambda item: _place(item["job"])):
        groups.setdefault((item["job"]["data"], label(item["job"])), []).append(item)
    for (name, what), items in groups.items():
        own = record.setdefault(name, {"sigma": SIGMA[name], "cells": {}, "others": {}})
        job = items[0]["job"]
        part = own["cells" if job["kind"] == "cell" else "others"]
        if job["kind"] == "kernel":
            each = [counted(items, read(folder, name))]
        else:
            each = [item["found"] for item in items]
        part[what] = {"ours": float(np.mean(each)), "seeds": len(each), "each": each}
        part[what]["paper"] = printed(name, job)
    return {**record, "machine": parallel.where(found)}


def _place(job: dict[str, Any]) -> tuple[Any, ...]:
    """As in the paper's tables."""
    order = ("cell", "linear", "kernel", "peer").index(job["kind"])
    m = job.get("m") or 0
    return list(SIGMA).index(job["data"]), order, job.get("M", 0), m, job.get("seed", 0)


def label(job: dict[str, Any]) -> str:
    """Name of a figure."""
    if job["kind"] == "cell":
        return f"M={job['M']} " + ("typical" if job["m"] is None else f"m={job['m']}")
    if job["kind"] == "peer":
        return f"{job['name']}, M=500"
    return f"original {job['kind']}" if job["m"] is None else f"compressive {job['kind']} m=100"


def printed(name: str, job: dict[str, Any]) -> float | None:
    """The paper's figure."""
    if job["kind"] != "cell":
        return PAPER_OTHERS[name].get(label(job))
    row = PAPER[name].get(job["M"])
    return row[(None, *MEASUREMENTS[name]).index(job["m"])] if row else None


def counted(items: list[dict[str, Any]], data: Any) -> float:
    """Test accuracy by the votes of all pairs; LIBSVM's first class of equals."""
    _, y, _, y_test = data
    classes = np.unique(y)
    votes = np.zeros((len(y_test), len(classes)), int)
    for item in items:
        a, b = item["job"]["pair"]
        for_b = np.array(list(item["found"])) == "1"
        votes[for_b, b] += 1
        votes[~for_b, a] += 1
    assert len(items) == len(classes) * (len(classes) - 1) // 2, "some pairs have not been run"
    return 100 * float(np.mean(classes[votes.argmax(axis=1)] == y_test))


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--datasets", nargs="*", default=list(PAPER))
    parser.add_argument("--sizes", nargs="*", type=int)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--kinds", nargs="*", default=["kernel", "linear", "peer", "cell"])
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0: only collect")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the jobs' files")
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args(given)
    if not options.data:
        parser.error("the data are not part of the package: name their folder by --data")
    wanted = jobs(options.datasets, options.sizes, options.seeds, options.kinds)
    parallel.compute(__spec__.name, wanted, options.data, options.results, options.jobs)
    kept = options.record
    old = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    record = record_of(parallel.finished(options.results), options.data, old)
    kept.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
