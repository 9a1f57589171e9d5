"""Figures 2 and 4 of compressive-rf: six methods on MNIST and on INRIA's pedestrians.

    python -m benchmarks.reproduce_compressive_rf --data FOLDER [--seeds 5] [--sizes 100 500]
    python -m benchmarks.reproduce_compressive_rf --data FOLDER --only cells --device cuda

Parts can be computed by processes of their own, each into its own file, and put together:

    python -m benchmarks.reproduce_compressive_rf --datasets mnist --only cells --sizes 500
        --maps typical 100 --solver liblinear --results a.json
    python -m benchmarks.reproduce_compressive_rf --datasets mnist --only others --results b.json
    python -m benchmarks.reproduce_compressive_rf --merge a.json b.json

MNIST follows the paper: pixels in [0, 1], σ = 10 (with pixels up to 255 the kernel would be the
identity), LIBLINEAR's C-SVM with C = 1 (squared hinge, no bias), all 60,000 + 10,000 rows. The
optimum of that objective is found by LIBLINEAR itself (`--solver liblinear`, its primal solver), or
by Newton's method for all classes at once (`--solver newton`, the default: much faster, and on
GPUs, too); `--check` compares the two on a part of the data. `--solver crammer-singer` is
LIBLINEAR's multi-class machine (-s 4).

INRIA: the paper took pixels of 32×16 images; the folder holds gradient histograms of the same
pedestrians (1152 features), scaled here to [0, 1], with σ = 5 as in the paper. So the figures are
not comparable one by one, only their order is.

Kernel machines (LIBSVM) run on `--kernel-rows` training rows.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import array_namespace

import kernelmaps as km
from kernelmaps.engine import Spec, apply

RESULTS = Path(__file__).parent / "results" / "reproductions" / "compressive-rf.json"
SIGMA = {"mnist": 10.0, "inria_person_hog": 5.0}
# Figure 2b and 4b: (M, m) -> accuracy, m = None for typical random features.
PAPER = {
    "mnist": {
        (100, None): 87.75, (100, 50): 85.14, (100, 100): 86.87, (100, 200): 87.45,
        (500, None): 94.78, (500, 50): 91.92, (500, 100): 93.83, (500, 200): 94.45,
        (1000, None): 95.89, (1000, 50): 93.03, (1000, 100): 94.89, (1000, 200): 95.56,
        (2000, None): 96.47, (2000, 50): 93.73, (2000, 100): 95.51, (2000, 200): 96.15,
    },
    "inria_person_hog": {
        (500, None): 84.23, (500, 50): 82.87, (500, 100): 83.62, (500, 200): 84.38,
        (1000, None): 86.52, (1000, 50): 84.75, (1000, 100): 85.66, (1000, 200): 86.01,
        (2000, None): 88.15, (2000, 50): 85.65, (2000, 100): 87.23, (2000, 200): 87.70,
    },
}  # fmt: skip
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


def squared_hinge(Z: Any, Y: Any, C: float = 1.0, tolerance: float = 1e-4) -> Any:
    """argmin ½‖w‖² + C Σ max(0, 1 − y wᵀz)² for each column of Y (±1): LIBLINEAR's -s 1 and 2.

    Newton's method; its linear systems by conjugate gradients, preconditioned by the Hessian that
    has the same share of rows active everywhere. It starts at the least-squares solution. Z and Y
    may be arrays of any array-API library.
    """
    xp = array_namespace(Z)

    def wide(values: Any) -> Any:
        return xp.astype(values, xp.float64)

    def size(values: Any) -> float:
        return float(xp.linalg.vector_norm(values))

    gram, right = wide(Z.T @ Z), 2 * C * wide(Z.T @ Y)
    eye = xp.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
    W = xp.linalg.solve(eye + 2 * C * gram, right)
    for _ in range(30):
        slack = 1 - Y * (Z @ xp.astype(W, Z.dtype))
        active = xp.astype(slack > 0, Z.dtype)
        gradient = W - 2 * C * wide(Z.T @ (Y * slack * active))
        if size(gradient) <= tolerance * size(right):
            break
        inverse = xp.linalg.inv(eye + 2 * C * float(xp.mean(active)) * gram)

        def curved(V: Any, active: Any = active) -> Any:
            return V + 2 * C * wide(Z.T @ (active * (Z @ xp.astype(V, Z.dtype))))

        W = W - _conjugate_gradients(xp, curved, gradient, inverse, 0.05 * size(gradient))
    return xp.astype(W, Z.dtype)


def _conjugate_gradients(
    xp: Any, curved: Any, right: Any, inverse: Any, enough: float, steps: int = 20
) -> Any:
    solution, residual = xp.zeros_like(right), right
    direction = inverse @ residual
    product = xp.sum(residual * direction, axis=0)
    for _ in range(steps):
        image = curved(direction)
        step = product / (xp.sum(direction * image, axis=0) + 1e-300)
        solution = solution + step * direction
        residual = residual - step * image
        if float(xp.linalg.vector_norm(residual)) < enough:
            break
        better = inverse @ residual
        new = xp.sum(residual * better, axis=0)
        direction = better + direction * (new / (product + 1e-300))
        product = new
    return solution


def linear_accuracy(Z: Any, y: np.ndarray, Z_test: Any, y_test: np.ndarray) -> float:
    """Percent right by one-against-rest machines on features."""
    xp = array_namespace(Z)
    classes = np.unique(y)
    Y = np.where(y[:, None] == classes, 1, -1).astype(np.float32)
    W = squared_hinge(Z, xp.asarray(Y, device=Z.device))
    found = np.asarray(xp.asarray(xp.argmax(Z_test @ W, axis=1), device="cpu"))
    return 100 * float(np.mean(classes[found] == y_test))


def liblinear_accuracy(Z: Any, y: np.ndarray, Z_test: Any, y_test: np.ndarray, how: str) -> float:
    """The same by LIBLINEAR: one-against-rest squared hinge, or the machine of Crammer-Singer."""
    from sklearn.svm import LinearSVC

    whole = {"multi_class": "crammer_singer"} if how == "crammer-singer" else {"dual": False}
    machine = LinearSVC(C=1.0, fit_intercept=False, random_state=0, **whole)
    return 100 * float(machine.fit(Z, y).score(Z_test, y_test))


def kernel_accuracy(X, y, X_test, y_test, sigma: float) -> float:
    """Percent right by LIBSVM, C = 1."""
    from sklearn.svm import SVC

    machine = SVC(C=1.0, gamma=1 / (2 * sigma**2), cache_size=1000).fit(X, y)
    return 100 * float(machine.score(X_test, y_test))


def read(folder: str, name: str):
    """Train and test rows in [0, 1], float32."""
    with np.load(Path(folder) / f"{name}.npz") as data:
        X, X_test = (data[key].astype(np.float32) / 255 for key in ("X_train", "X_test"))
        return X, data["y_train"], X_test, data["y_test"]


def spec_of(X: np.ndarray, M: int, m: int | None, sigma: float, seed: int) -> Spec:
    """Typical (m None) or compressive random features, in the paper's form (cosines)."""
    if m is None:
        features = km.RandomFourierMap("gaussian", M, sigma=sigma, random_state=seed)
    else:
        features = km.CompressiveFourierMap(m, M, form="cosine", sigma=sigma, random_state=seed)
    return features.fit(X[:100]).spec_


def first_columns(spec: Spec, M: int) -> Spec:
    """The map of the first M features: iid features may be left out."""
    if spec.family == "chain":
        return Spec("chain", parts=(spec.parts[0], first_columns(spec.parts[1], M)))
    arrays = {name: array[..., :M] for name, array in spec.arrays.items()}
    return Spec("fourier", arrays, {**spec.numbers, "scale": float(np.sqrt(2 / M))})


def halved(spec: Spec) -> Spec:
    """Matrices in half precision, to travel: rounded frequencies are a sample like any other."""
    arrays = {k: v.astype(np.float16) if k == "matrix" else v for k, v in spec.arrays.items()}
    return Spec(spec.family, arrays, spec.numbers, tuple(halved(part) for part in spec.parts))


def random_feature_cell(
    data: Any, specs: list[Spec], device: str | None, solver: str
) -> dict[str, Any]:
    """Mean accuracy of the machines on several maps."""
    X, y, X_test, y_test = data
    if device:
        import torch

        X, X_test = (torch.asarray(rows, device=device) for rows in (X, X_test))
    accuracies = []
    for spec in specs:
        arguments = apply(spec, X), y, apply(spec, X_test), y_test
        if solver == "newton":
            accuracies.append(linear_accuracy(*arguments))
        else:
            accuracies.append(liblinear_accuracy(*arguments, solver))
    mean = float(np.mean(accuracies))
    return {"ours": mean, "seeds": len(specs), "each": accuracies, "solver": solver}


def others(name: str, data, sigma: float, kernel_rows: int, m: int = 100) -> dict[str, float]:
    """The four methods without random features, and three peers at M = 500."""
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.pipeline import make_pipeline

    X, y, X_test, y_test = data
    P = km.RandomOrthoprojector(m, random_state=0).fit(X[:100])
    few = np.sort(np.random.default_rng(0).permutation(len(X))[:kernel_rows])
    A, A_test = P.transform(X), P.transform(X_test)
    found = {
        "original linear": linear_accuracy(X, y, X_test, y_test),
        f"compressive linear m={m}": linear_accuracy(A, y, A_test, y_test),
        "original kernel": kernel_accuracy(X[few], y[few], X_test, y_test, sigma),
        f"compressive kernel m={m}": kernel_accuracy(A[few], y[few], A_test, y_test, sigma),
    }
    gamma = 1 / (2 * sigma**2)
    features = km.RandomFourierMap(n_components=500, sigma=sigma, random_state=0)
    peers = {
        "sklearn RBFSampler, M=500": RBFSampler(gamma=gamma, n_components=500, random_state=0),
        "sklearn Nystroem, M=500": Nystroem(gamma=gamma, n_components=500, random_state=0),
        f"PCA to {m}, then RandomFourierMap, M=500": make_pipeline(
            PCA(m, random_state=0), features
        ),
    }
    for label, peer in peers.items():
        Z = peer.fit(X[few]).transform(X).astype(np.float32)
        Z_test = peer.transform(X_test).astype(np.float32)
        found[label] = linear_accuracy(Z, y, Z_test, y_test)
    return found


def check(data: Any) -> None:
    """The objective's optimum against LIBLINEAR, on 5000 rows and 300 features."""
    from sklearn.svm import LinearSVC

    X, y, X_test, y_test = data
    features = km.RandomFourierMap(n_components=300, sigma=10.0, random_state=0).fit(X[:10])
    Z, Z_test = features.transform(X[:5000]), features.transform(X_test)
    machine = LinearSVC(fit_intercept=False, dual=False, tol=1e-6).fit(Z, y[:5000])
    W = squared_hinge(Z, np.where(y[:5000, None] == np.arange(10), 1, -1).astype(np.float32))
    theirs, ours = machine.score(Z_test, y_test), linear_accuracy(Z, y[:5000], Z_test, y_test)
    print(
        f"largest difference of weights: {np.abs(W.T - machine.coef_).max():.2e} of "
        f"{np.abs(machine.coef_).max():.2f}; accuracy {100 * theirs:.2f} and {ours:.2f}"
    )


def cells(name: str, data: Any, arguments: argparse.Namespace, record: dict[str, Any]) -> None:
    """Typical and compressive random features, size by size; each is kept as it comes."""
    own = record[name]
    for m in [None if word == "typical" else int(word) for word in arguments.maps]:
        files = [
            Path(arguments.specs or ".") / f"{name}-{m}-{s}.kmap" for s in range(arguments.seeds)
        ]
        if arguments.specs and not arguments.prepare:
            largest = [Spec.load(file) for file in files]
        else:
            M = max(arguments.sizes)
            largest = [spec_of(data[0], M, m, SIGMA[name], s) for s in range(arguments.seeds)]
        if arguments.prepare:
            for file, spec in zip(files, largest, strict=True):
                halved(spec).save(file)
            continue
        for M in arguments.sizes:
            specs = [first_columns(spec, M) for spec in largest]
            cell = random_feature_cell(data, specs, arguments.device, arguments.solver)
            cell["paper"] = PAPER[name].get((M, m))
            name_of_cell = f"M={M} " + ("typical" if m is None else f"m={m}")
            if arguments.solver == "crammer-singer":
                name_of_cell += ", Crammer-Singer"
            own["cells"][name_of_cell] = cell
            write_record(record, arguments.results)
            print(name, M, m, json.dumps(cell), flush=True)


def merge(records: list[dict[str, Any]]) -> dict[str, Any]:
    """One record of several, later ones on top."""
    whole: dict[str, Any] = {}
    for record in records:
        for name, entry in record.items():
            own = whole.setdefault(name, {"cells": {}, "others": {}})
            cells, others = own["cells"] | entry["cells"], own["others"] | entry["others"]
            own |= entry | {"cells": cells, "others": others}
    return whole


def read_record(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_record(record: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--datasets", nargs="*", default=list(PAPER))
    parser.add_argument("--sizes", nargs="*", type=int, default=[100, 500, 1000, 2000])
    parser.add_argument("--maps", nargs="*", default=["typical", "50", "100", "200"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--kernel-rows", type=int, default=10000)
    parser.add_argument("--only", choices=["cells", "others"])
    parser.add_argument(
        "--solver", choices=["newton", "liblinear", "crammer-singer"], default="newton"
    )
    parser.add_argument("--merge", type=Path, nargs="+", help="files of parts, for --results")
    parser.add_argument("--device", help="a device of torch, such as cuda, for the cells")
    parser.add_argument("--specs", help="folder of fitted maps, made by --prepare elsewhere")
    parser.add_argument("--prepare", action="store_true", help="store fitted maps and stop")
    parser.add_argument("--check", action="store_true", help="compare the solver with LIBLINEAR")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(given)
    kept = arguments.results
    if arguments.merge:
        write_record(merge([read_record(file) for file in [kept, *arguments.merge]]), kept)
        return
    if not arguments.data:
        parser.error("the data are not part of the package: name their folder by --data")
    record = read_record(kept)
    for name in arguments.datasets:
        data = read(arguments.data, name)
        if arguments.check:
            check(data)
            continue
        own = record.setdefault(name, {"sigma": SIGMA[name], "cells": {}, "others": {}})
        if arguments.only != "others":
            cells(name, data, arguments, record)
        if arguments.only != "cells" and not arguments.prepare:
            own["kernel_rows"] = arguments.kernel_rows
            for label, value in others(name, data, SIGMA[name], arguments.kernel_rows).items():
                own["others"][label] = {"ours": value, "paper": PAPER_OTHERS[name].get(label)}
                print(name, label, own["others"][label], flush=True)
        if not arguments.prepare:
            write_record(record, kept)


if __name__ == "__main__":
    main()
