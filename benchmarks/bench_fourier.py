"""Random Fourier features and compressive features beside scikit-learn's RBFSampler."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import RBFSampler

import kernelmaps as km

from .harness import Bench

PEER = "sklearn RBFSampler"
SIGMA = 10.0


def rows(n: int, d: int, dtype: Any) -> np.ndarray:
    return np.random.default_rng(0).random((n, d)).astype(dtype)


def fourier(X: Any, D: int, **parameters: Any) -> km.RandomFourierMap:
    return km.RandomFourierMap("gaussian", D, sigma=SIGMA, random_state=0, **parameters).fit(X[:50])


def compressive(X: Any, D: int, m: int = 100, **parameters: Any) -> km.CompressiveFourierMap:
    return km.CompressiveFourierMap(m, D, sigma=SIGMA, random_state=0, **parameters).fit(X[:50])


def sampler(X: Any, D: int) -> RBFSampler:
    return RBFSampler(gamma=1 / (2 * SIGMA**2), n_components=D, random_state=0).fit(X[:50])


def transforms(bench: Bench) -> None:
    """Transform alone, maps fitted before: one matrix product and a cosine for each column."""
    n, d, D = 5000, 784, 2000
    for dtype, gemm in [(np.float32, "sgemm"), (np.float64, "dgemm")]:
        X = rows(n, d, dtype)
        flops = (gemm, 2.0 * n * d * D) if gemm in bench.limits else None
        name = np.dtype(dtype).name
        ours, theirs = fourier(X, D), sampler(X, D)
        bench.race(
            f"RandomFourierMap {n}×{d} → {D}, {name}", partial(ours.transform, X),
            partial(theirs.transform, X), peer=PEER, at_least=1.0, flops=flops, repeats=25,
        )  # fmt: skip
        S = sparse.random(n, d, 0.19, format="csr", dtype=dtype, random_state=0)
        bench.race(
            f"RandomFourierMap {n}×{d} → {D}, CSR 19 % non-zero, {name}",
            partial(ours.transform, S), partial(theirs.transform, S), peer=PEER, at_least=1.0,
            repeats=9,
        )  # fmt: skip
        paired = fourier(X, D, form="paired")
        bench.race(
            f"RandomFourierMap paired {n}×{d} → {D}, {name}", partial(paired.transform, X),
            partial(theirs.transform, X), peer=PEER, note="half as many products",
        )  # fmt: skip


def constructions(bench: Bench) -> None:
    """Typical against compressive features (the paper's Figure 2d: 9.6×), and fast transforms.

    Each form beside itself, and defaults beside defaults: compressive features are paired unless
    told otherwise. Results go into memory that is there already, so that the time is that of the
    map alone; the last races return new arrays, page faults and all.
    """
    for dtype in (np.float32, np.float64):
        X, name = rows(3000, 784, dtype), np.dtype(dtype).name
        out = np.empty((3000, 6000), dtype)
        typical = {form: fourier(X, 6000, form=form) for form in ("cosine", "paired")}
        small = {form: compressive(X, 6000, form=form) for form in typical}
        for own, other, wanted in [
            ("paired", "cosine", 5.0), ("cosine", "cosine", 5.0), ("paired", "paired", None)
        ]:  # fmt: skip
            bench.race(
                f"compressive features m=100, {own}, 3000×784 → 6000, {name}",
                partial(small[own].transform, X, out=out),
                partial(typical[other].transform, X, out=out),
                peer=f"our typical features, {other}" + (" (defaults)" if own != other else ""),
                at_least=wanted, repeats=15,
                note="paper: 9.6×; cosine against cosine has 6.9× fewer products",
            )  # fmt: skip
        bench.race(
            f"compressive features m=100 (default), 3000×784 → 6000, {name}",
            partial(small["paired"].transform, X), partial(sampler(X, 6000).transform, X),
            peer=f"{PEER}, all features", at_least=5.0, note="new arrays on both sides",
        )  # fmt: skip
    X, out = rows(2000, 3072, np.float32), np.empty((2000, 6000), np.float32)
    typical, small = fourier(X, 6000), compressive(X, 6000)
    fast = compressive(X, 6000, projection="dct")
    structured = fourier(X, 6000, sampling="structured")
    for words, feature_map, peer, other, wanted in [
        ("compressive m=100", small, "our typical features", typical, 5.0),
        ("compressive m=100, cosine projection", fast, "our typical features", typical, 5.0),
        ("compressive m=100, cosine projection", fast, "with a dense projection", small, 1.0),
        ("structured, no projection", structured, "our typical features", typical, 1.0),
    ]:
        bench.race(
            f"{words}, 2000×3072 → 6000", partial(feature_map.transform, X, out=out),
            partial(other.transform, X, out=out), peer=peer, at_least=wanted, repeats=9,
        )  # fmt: skip


def errors(bench: Bench) -> None:
    """Kernel rms error at equal size, mean of 20 seeds: ratio iid / other (more is better)."""
    for d, spread in [(8, 1.0), (64, 0.5), (256, 0.25)]:
        X = spread * np.random.default_rng(1).normal(size=(100, d))
        for form in ("cosine", "paired"):
            rms = {}
            for way in ("iid", "orthogonal", "structured"):
                maps = [
                    km.RandomFourierMap(
                        km.kernels.Gaussian(4.0), 512, sampling=way, form=form, random_state=s
                    )
                    for s in range(20)
                ]
                rms[way] = float(np.mean([km.kernel_error(m.fit(X), X).rms for m in maps]))
            for way in ("orthogonal", "structured"):
                bench.measure(
                    f"rms error, {way} / iid, d={d}, 512 columns, {form}",
                    rms[way] / rms["iid"], "×", at_most=1.0,
                )  # fmt: skip


def prepare_ours() -> Callable[[], object]:
    """For the memory account: everything fitted and compiled before it starts."""
    X = rows(8000, 784, np.float32)
    feature_map = fourier(X, 2000)
    feature_map.transform(X[:64])
    return partial(feature_map.transform, X)


def prepare_theirs() -> Callable[[], object]:
    X = rows(8000, 784, np.float32)
    feature_map = sampler(X, 2000)
    feature_map.transform(X[:64])
    return partial(feature_map.transform, X)


def run(bench: Bench) -> None:
    transforms(bench)
    constructions(bench)
    errors(bench)
    bench.peak(
        "memory of RandomFourierMap, float32 8000×784 → 2000",
        "benchmarks.bench_fourier:prepare_ours",
        "benchmarks.bench_fourier:prepare_theirs",
        peer=PEER,
        of_output=0.25,
    )
