"""Figures 2 to 5 of compressive-rf: six methods on digits, pedestrians, scenes and CIFAR-10.

    python -m benchmarks.reproduce_compressive_rf --data FOLDER [--jobs 2] [--results FOLDER]
        [--datasets mnist] [--sizes 100 500] [--seeds 1] [--kinds cell linear kernel peer time]

MNIST follows the paper: pixels in [0, 1], σ = 10 (with pixels up to 255 the kernel would be the
identity), the machine of Crammer and Singer with C = 1 and without a bias (LIBLINEAR -s 4), all
60,000 + 10,000 rows. Linear machines are LIBLINEAR's own; on random features, whose rows are dense,
the same method on float32 (:mod:`benchmarks.crammer_singer`). Kernel machines are LIBSVM's, one
against one, all rows: each pair of classes is a job, and their votes are counted in the end.

INRIA: the paper took pixels of 32×16 images; the folder holds gradient histograms of the same
pedestrians (1152 features), scaled here to [0, 1], with σ = 5 as in the paper. Scenes and CIFAR-10
are at hand as histograms of visual words (15 scenes, 4200 bins) and of gradients and colours (208
bins; 10000 training rows): their square roots, and σ half the median distance. CIFAR's m are the
paper's shares m/d of the features. So the figures of these three are not comparable
one by one, only their order is. The house numbers of Figure 6 cannot be had.

Random features are cosines with a phase each, as in the paper (eq. 2 with a phase per feature).
Figure 2d's seconds are processor time of one thread for the 60000 training rows, float32.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import kernelmaps as km

from . import crammer_singer, histograms, parallel
from .reproduce_figures import pyplot

RECORD = Path(__file__).parent / "results" / "reproductions" / "compressive-rf.json"
RESULTS = RECORD.parent / "jobs" / "compressive-rf"
SIGMA = {"mnist": 10.0, "inria_person_hog": 5.0, "scene15_bow": 0.54, "cifar10_hist": 0.53}
SEEDS = 20  # as in the paper
PEER_SEEDS = 5
# Figures 2b to 5b: rows M, columns typical random features and m measurements.
MEASUREMENTS = {
    "mnist": (50, 100, 200, 300),
    "inria_person_hog": (50, 100, 200, 300, 400),
    "scene15_bow": (100, 200, 400, 500, 750),
    "cifar10_hist": (7, 14, 27, 41, 54),
}
DRAWN = {"mnist": 100, "inria_person_hog": 200, "scene15_bow": 400, "cifar10_hist": 27}  # m of "a"
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
    "scene15_bow": {
        1000: (53.87, 52.19, 53.60, 53.55, 53.56, 53.86),
        2000: (56.42, 54.66, 56.14, 56.68, 56.64, 56.83),
        3000: (58.86, 56.25, 56.59, 58.09, 58.32, 58.56),
        4000: (59.47, 56.42, 57.64, 58.87, 58.89, 59.38),
        5000: (60.33, 57.40, 58.89, 59.38, 59.10, 60.09),
        6000: (60.95, 57.64, 59.21, 59.69, 60.25, 60.42),
    },
    "cifar10_hist": {
        1000: (45.06, 41.66, 43.56, 44.19, 44.31, 44.22),
        2000: (46.93, 44.36, 45.95, 46.66, 47.15, 47.22),
        4000: (49.24, 45.65, 47.48, 48.31, 48.81, 49.01),
        5000: (49.19, 45.96, 48.22, 48.96, 49.08, 49.20),
        6000: (49.84, 46.06, 48.43, 49.56, 49.76, 49.68),
    },
}
# Of the rows themselves, then of m measurements.
PAPER_OTHERS = {
    "mnist": {
        "linear": (92.82, 85.63, 89.85, 91.86, 92.45),
        "kernel": (96.63, 93.22, 95.34, 96.36, 96.31),
    },
    "inria_person_hog": {
        "linear": (89.20, 81.93, 84.36, 86.06, 87.18, 87.96),
        "kernel": (91.90, 87.99, 89.92, 90.93, 91.27, 91.43),
    },
    "scene15_bow": {
        "linear": (36.43, 43.00, 40.53, 36.63, 36.26, 35.91),
        "kernel": (61.34, 57.93, 59.69, 60.49, 60.62, 60.99),
    },
    "cifar10_hist": {
        "linear": (36.96, 25.60, 25.66, 32.45, 34.23, 35.45),
        "kernel": (49.56, 45.27, 47.42, 48.51, 48.93, 49.20),
    },
}
# Figure 2d: seconds, typical features and m measurements.
PAPER_SECONDS = {
    100: (1.26, 0.71, 1.29, 2.43, 3.65),
    500: (5.74, 1.05, 1.72, 3.04, 4.40),
    1000: (11.64, 1.48, 2.24, 3.82, 5.38),
    2000: (24.22, 2.37, 3.33, 5.29, 7.17),
    4000: (46.97, 4.06, 5.43, 8.00, 10.88),
    6000: (71.46, 5.84, 7.41, 11.02, 14.64),
}
CIFAR_ROWS = 10000  # of 50000 for training
BLOCK = 10000  # rows mapped at a time where seconds are measured


KINDS = ("cell", "linear", "kernel", "peer", "time")
CLASSES = {"mnist": 10, "inria_person_hog": 2, "scene15_bow": 15, "cifar10_hist": 10}
PEERS = ("RBFSampler", "Nystroem", "PCA to 100, then RandomFourierMap")


@lru_cache(2)
def read(folder: str, name: str) -> tuple[np.ndarray, ...]:
    """Train and test rows in float32: values in [0, 1], or square roots of histograms."""
    if name == "scene15_bow":
        X, y, X_test, y_test = histograms.load(name, folder)
        return _roots(X.toarray()), y, _roots(X_test.toarray()), y_test
    with np.load(Path(folder) / f"{name}.npz") as data:
        if name == "cifar10_hist":
            rows = np.random.default_rng(0).permutation(len(data["y_train"]))[:CIFAR_ROWS]
            X, X_test = (
                np.hstack([_roots(data[f"{kind}_{part}"]) for kind in ("hog", "color")])
                for part in ("train", "test")
            )
            return X[rows], data["y_train"][rows], X_test, data["y_test"]
        X, X_test = (data[key].astype(np.float32) / 255 for key in ("X_train", "X_test"))
        return X, data["y_train"], X_test, data["y_test"]


def _roots(counts: np.ndarray) -> np.ndarray:
    """Square roots of histograms of sum one."""
    sums = counts.sum(axis=1, keepdims=True, dtype=np.float64)
    return np.sqrt(counts / np.where(sums > 0, sums, 1)).astype(np.float32)


def jobs(
    datasets: Sequence[str] = tuple(PAPER),
    sizes: Sequence[int] | None = None,
    seeds: int = SEEDS,
    kinds: Sequence[str] = KINDS,
) -> list[dict[str, Any]]:
    """All jobs, seed by seed, the longest first."""
    found: list[dict[str, Any]] = []
    for name in datasets:
        for m in (None, *MEASUREMENTS[name]):
            pairs = combinations(range(CLASSES[name]), 2)
            found += [{"kind": "kernel", "data": name, "m": m, "pair": list(p)} for p in pairs]
        found.append({"kind": "linear", "data": name, "m": None, "seed": 0})
        found += [
            {"kind": "linear", "data": name, "m": m, "seed": seed}
            for m in MEASUREMENTS[name]
            for seed in range(seeds)
        ]
        found += [
            {"kind": "peer", "data": name, "name": peer, "seed": seed}
            for peer in PEERS
            for seed in range(min(seeds, PEER_SEEDS))
        ]
        cells = [
            {"data": name, "M": M, "m": m}
            for M in sorted(sizes or PAPER[name], reverse=True)
            for m in (None, *MEASUREMENTS[name])
        ]
        found += [{"kind": "cell", **cell, "seed": s} for cell in cells for s in range(seeds)]
        if name == "mnist":
            found += [{"kind": "time", **cell, "seed": 0} for cell in cells]
    found.sort(key=lambda job: job.get("seed", 0))
    return [job for job in found if job["kind"] in kinds]


def run(job: dict[str, Any], folder: str) -> Any:
    """Test accuracy in percent; of a pair of classes, its votes for the second one, as digits."""
    compute = {"cell": cell, "linear": linear, "kernel": kernel, "peer": peer, "time": seconds}
    return compute[job["kind"]](job, read(folder, job["data"]))


def features_of(job: dict[str, Any]) -> Any:
    """Typical (m None) or compressive random features, in the paper's form (cosines)."""
    sigma, seed, M = SIGMA[job["data"]], job["seed"], job["M"]
    if job["m"] is None:
        return km.RandomFourierMap("gaussian", M, form="cosine", sigma=sigma, random_state=seed)
    return km.CompressiveFourierMap(job["m"], M, form="cosine", sigma=sigma, random_state=seed)


def cell(job: dict[str, Any], data: Any) -> float:
    """A machine on random features."""
    X, y, X_test, y_test = data
    features = features_of(job).fit(X[:100])
    return crammer_singer.accuracy(features.transform(X), y, features.transform(X_test), y_test)


def seconds(job: dict[str, Any], data: Any) -> float:
    """Processor time of making features of the training rows, with one thread (Figure 2d)."""
    features = features_of(job).set_params(n_jobs=1).fit(data[0][:100])
    features.transform(data[0][:BLOCK])  # compiled before it is timed
    start = process_time()
    for first in range(0, len(data[0]), BLOCK):
        features.transform(data[0][first : first + BLOCK])
    return process_time() - start


def measured(m: int | None, seed: int, X: np.ndarray, X_test: np.ndarray) -> tuple[Any, Any]:
    """m compressive measurements; None for the rows themselves."""
    if m is None:
        return X, X_test
    P = km.RandomOrthoprojector(m, random_state=seed).fit(X[:100])
    return P.transform(X), P.transform(X_test)


def linear(job: dict[str, Any], data: Any) -> float:
    """LIBLINEAR -s 4, through scikit-learn, on the rows or their measurements."""
    from sklearn.svm import LinearSVC

    X, y, X_test, y_test = data
    A, A_test = measured(job["m"], job["seed"], X, X_test)
    model = LinearSVC(C=1.0, multi_class="crammer_singer", fit_intercept=False, tol=0.1)
    return 100 * float(model.set_params(random_state=0).fit(A, y).score(A_test, y_test))


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
    sigma, seed = SIGMA[job["data"]], job["seed"]
    gamma = 1 / (2 * sigma**2)
    ours = km.RandomFourierMap(n_components=500, form="cosine", sigma=sigma, random_state=seed)
    features = {
        PEERS[0]: RBFSampler(gamma=gamma, n_components=500, random_state=seed),
        PEERS[1]: Nystroem(gamma=gamma, n_components=500, random_state=seed),
        PEERS[2]: make_pipeline(PCA(100, random_state=seed), ours),
    }[job["name"]]
    few = np.sort(np.random.default_rng(seed).permutation(len(X))[:10000])
    features.fit(X[few])
    return crammer_singer.accuracy(features.transform(X), y, features.transform(X_test), y_test)


def record_of(found: list[dict[str, Any]], folder: str, old: dict[str, Any]) -> dict[str, Any]:
    """Figures by dataset and name, from the files of the jobs; other figures stay as they were."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for item in sorted(found, key=lambda item: item["job"].get("seed", 0)):
        groups.setdefault((item["job"]["data"], label(item["job"])), []).append(item)
    record: dict[str, Any] = {}
    for name in SIGMA:
        before = {**old.get(name, {}).get("cells", {}), **old.get(name, {}).get("others", {})}
        parts: dict[str, Any] = {"sigma": SIGMA[name], "cells": {}, "others": {}}
        for job in sorted(jobs([name], seeds=1), key=_place):
            what = label(job)
            figures = before.get(what)
            if (name, what) in groups:
                figures = _figures(groups[name, what], folder)
            if figures:
                part = parts["cells" if job["kind"] == "cell" else "others"]
                part[what] = {**figures, "paper": printed(name, job)}
        if parts["cells"] or parts["others"]:
            record[name] = parts
    return record


def _figures(items: list[dict[str, Any]], folder: str) -> dict[str, Any]:
    """The mean of all seeds."""
    if items[0]["job"]["kind"] == "kernel":
        each = [counted(items, read(folder, items[0]["job"]["data"]))]
    else:
        each = [item["found"] for item in items]
    figures = {"ours": float(np.mean(each)), "seeds": len(each), "each": each}
    return {**figures, "processor": items[0]["machine"]["processor"]}


def _place(job: dict[str, Any]) -> tuple[Any, ...]:
    """As in the paper's tables."""
    return KINDS.index(job["kind"]), job.get("M", 0), job.get("m") or 0


def label(job: dict[str, Any]) -> str:
    """Name of a figure."""
    kind = job["kind"]
    if kind == "peer":
        return f"{job['name']}, M=500"
    if kind in ("linear", "kernel"):
        return f"original {kind}" if job["m"] is None else f"compressive {kind} m={job['m']}"
    name = f"M={job['M']} " + ("typical" if job["m"] is None else f"m={job['m']}")
    return f"seconds, {name}" if kind == "time" else name


def printed(name: str, job: dict[str, Any]) -> float | None:
    """The paper's figure."""
    if job["kind"] == "peer":
        return None
    place = (None, *MEASUREMENTS[name]).index(job["m"])
    if job["kind"] in ("linear", "kernel"):
        return PAPER_OTHERS[name][job["kind"]][place]
    row = (PAPER_SECONDS if job["kind"] == "time" else PAPER[name]).get(job["M"])
    return row[place] if row else None


def draw(record: dict[str, Any], images: Path) -> None:
    """Figures 2a to 5a, accuracy by the number M of features, and 2c, seconds by M."""
    plt = pyplot()
    shown = [name for name in SIGMA if name in record]
    figure, axes = plt.subplots(1, len(shown) + 1, figsize=(16, 3.6), layout="constrained")
    for ax, name in zip(axes, shown):
        cells, others = record[name]["cells"], record[name]["others"]
        m = DRAWN[name]
        for kind, style in (("typical", "o-"), (f"m={m}", "s-")):
            values = {M: cells.get(f"M={M} {kind}") for M in PAPER[name]}
            points = [(M, cell["ours"]) for M, cell in values.items() if cell]
            label = "typical" if kind == "typical" else "compressive"
            ax.plot(*zip(*points), style, label=f"{label} random features")
        for kind, color in (("linear", "C2"), ("kernel", "C3")):
            lines = ((f"original {kind}", "-"), (f"compressive {kind} m={m}", "--"))
            for what, style in lines:
                if what in others:
                    ax.axhline(others[what]["ours"], linestyle=style, color=color, label=what)
        ax.set(title=f"{name}, m = {m}", xlabel="M", ylabel="test accuracy (%)")
        ax.legend(frameon=False, fontsize="small")
    others = record.get("mnist", {}).get("others", {})
    for kind in ("typical", *(f"m={m}" for m in MEASUREMENTS["mnist"])):
        seconds = {M: others.get(f"seconds, M={M} {kind}") for M in PAPER_SECONDS}
        points = [(M, cell["ours"]) for M, cell in seconds.items() if cell]
        if points:
            axes[-1].plot(*zip(*points), "o-", label=kind)
    axes[-1].set(title="mnist, making the features", xlabel="M", ylabel="seconds")
    axes[-1].legend(frameon=False)
    images.mkdir(parents=True, exist_ok=True)
    figure.savefig(images / "compressive_figures_2_to_5.png", dpi=80)


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
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
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
    draw(record, kept.parent / "images")


if __name__ == "__main__":
    main()
