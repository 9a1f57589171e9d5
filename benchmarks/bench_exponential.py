"""ExponentialMap beside its own matrix product and beside scikit-learn's chained recipe."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.pipeline import make_pipeline

import kernelmaps as km

from . import histograms
from .harness import Bench

RECIPE = "sklearn AdditiveChi2Sampler(3) + RBFSampler"
SHAPES = [  # rows, features, columns per feature, D
    (3000, 300, 10, 4096),
    (3000, 784, 5, 4096),
    (1024, 1500, 10, 7000),
]
D = 4096


def rows(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.full(d, 0.3), size=n).astype(np.float32)


def product_rows(bench: Bench) -> None:
    """The whole transform beside nothing but its matrix product, c(X) given."""
    for n, d, columns, size in SHAPES:
        X = rows(n, d)
        first = km.ChebyshevMap(columns)
        fitted = km.ExponentialMap(first, size, sampling="iid", random_state=0).fit(X)
        C = fitted.additive_map_.transform(X)
        matrix = fitted.spec_.parts[1].arrays["matrix"]
        out, product = np.empty((n, size), np.float32), np.empty((n, matrix.shape[1]), np.float32)
        bench.race(
            f"ExponentialMap.transform {n}×{d}, {columns} columns each, D = {size}, float32",
            partial(fitted.transform, X, out=out),
            partial(np.matmul, C, matrix, out=product),
            peer="its own matrix product alone (np.matmul)",
            at_least=1 / 1.2,
            repeats=31,
            flops=("sgemm", 2.0 * C.size * matrix.shape[1]),
        )
        structured = km.ExponentialMap(first, size, random_state=0).fit(X)
        bench.race(
            f"the same with structured frequencies (the default), {n}×{d}, D = {size}",
            partial(structured.transform, X, out=out),
            partial(np.matmul, C, matrix, out=product),
            peer="the matrix product of iid frequencies",
        )


def csr_rows(bench: Bench) -> None:
    """CSR rows: the product of sparse blocks beside that of the densified rows."""
    for density in (0.03, 0.2):
        X = sparse.random(2000, 1500, density, format="csr", dtype=np.float32, random_state=0)
        fitted = km.ExponentialMap(km.SeriesMap(5), D, sampling="iid", random_state=0).fit(X)
        bench.race(
            f"ExponentialMap.transform, CSR 2000×1500, {density:.0%} non-zero, D = {D}",
            partial(fitted.transform, X),
            partial(fitted.transform, X.toarray()),
            peer="the same rows, dense",
            at_least=0.9,
        )


def error_rows(bench: Bench) -> None:
    """rms kernel error at D = 4096 beside scikit-learn's recipe and samplers, same γ, same rows."""
    names = ["digits", *(histograms.GRIDS if bench.data else ())]
    for name in names:
        X = histograms.load(name, bench.data)[0][:500]
        X = X.toarray() if sparse.issparse(X) else X
        ours = km.ExponentialMap(n_components=D, gamma="scale", random_state=0).fit(X)
        error = km.kernel_error(ours, X)
        peers = {
            RECIPE: make_pipeline(
                AdditiveChi2Sampler(sample_steps=3),
                RBFSampler(gamma=ours.gamma_, n_components=D, random_state=0),
            ),
            "sklearn SkewedChi2Sampler(0.03)": SkewedChi2Sampler(
                skewedness=0.03, n_components=D, random_state=0
            ),
        }
        for peer, theirs in peers.items():
            other = km.kernel_error(theirs.fit(X), X, kernel=ours.kernel_).rms
            record(bench, name, peer, error, other, 2.0 if peer == RECIPE else None)
        record(bench, name, "sklearn Nystroem, exact kernel, 250 rows", error, nystroem(ours, X))


def nystroem(ours: Any, X: np.ndarray, n: int = 250) -> float:
    """rms error of Nystroem on the exact Gram matrix."""
    chosen = np.random.default_rng(0).permutation(len(X))[:n]
    model = Nystroem(kernel="precomputed", n_components=n).fit(ours.kernel_(X[chosen]))
    Z = model.transform(ours.kernel_(X, X[chosen]))
    return float(np.sqrt(np.mean((Z @ Z.T - ours.kernel_(X)) ** 2)))


def nystroem_rows(bench: Bench) -> None:
    """NystroemMap beside scikit-learn's Nystroem: exp-χ² on digits, 256 columns, same γ."""
    X = histograms.load("digits", bench.data)[0].astype(np.float64)
    ours = km.NystroemMap("exp_chi2", 256, random_state=0).fit(X)
    peer = Nystroem(
        kernel="chi2", gamma=ours.kernel_.gamma, n_components=256, random_state=0
    ).fit(X)  # fmt: skip
    theirs = km.kernel_error(peer, X, kernel=ours.kernel_).rms
    row = bench.measure(
        "NystroemMap, rms error of exp-χ², digits, 256 columns",
        found := km.kernel_error(ours, X).rms,
        "",
        peer="sklearn Nystroem",
        theirs=theirs,
        ratio=theirs / found,
    )
    row.target, row.reached = "≥ 1×", row.ratio >= 1
    bench.race(
        f"NystroemMap.transform, digits {X.shape[0]}×{X.shape[1]}, 256 columns",
        partial(ours.transform, X),
        partial(peer.transform, X),
        peer="sklearn Nystroem",
        at_least=1.0,
    )


def record(
    bench: Bench, name: str, peer: str, error: Any, other: float, at_least: float | None = None
) -> None:
    row = bench.measure(
        f"rms error of exp-χ², D = {D}, {name}",
        error.rms,
        "",
        peer=peer,
        theirs=other,
        ratio=other / error.rms,
        note=", ".join(f"{k} stage {v.rms:.2g}" for k, v in error.parts.items()),
    )
    if at_least is not None:
        row.target, row.reached = f"≥ {at_least:g}×", row.ratio >= at_least


PARTS = {
    "errors": error_rows,
    "nystroem": nystroem_rows,
    "products": product_rows,
    "csr": csr_rows,
}


def run(bench: Bench, parts: Sequence[str] = tuple(PARTS)) -> None:
    for name in parts:
        PARTS[name](bench)
