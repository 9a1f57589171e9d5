"""Figures that the papers draw without printing numbers: Figure 1 of the Chebyshev paper, Figure 2
of the paper on additive nearest-neighbour feature maps, and Figure 1 of additive classifiers.

The Chebyshev paper's Figure 1 is the constant C of Theorem 1 by the value x of a histogram, found
as the square of max m |c_m(x)| / √x over 100000 <= m <= 500000 (eq. 13), where c_m are the terms of
the series. Beside it stands what m times the relative error of k(x, x) tends to
(:func:`kernelmaps.maps.chebyshev.lemma_constant`), by the tail that the same terms leave out.

Figure 2 of the other paper has pictures of four kernels on [0, 1] and of their maps with 100
anchors; here are the errors. (Its Figure 1 is a scheme, its Figure 3 are photographs.)

Figure 1 of the third has the kernels of 10 linear, quadratic and cubic B-splines with penalised
differences beside min(x, y). They are K = a + b min(x, y) nearly, a and b by least squares; the
error is that of (K − a) / b.

    python -m benchmarks.reproduce_figures [--part constants anchors splines] [--images FOLDER]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import kernelmaps as km
from kernelmaps._util import storage
from kernelmaps.maps.chebyshev import lemma_constant

OUTPUT = Path(__file__).parent / "results" / "reproductions"
FIRST, LAST = 100_000, 500_000  # the paper's m
VALUES = (1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.5)  # whose constants are kept as numbers
KERNELS = ("hellinger", "chi2", "intersection", "jensen_shannon")


def terms(x: np.ndarray) -> Iterator[np.ndarray]:
    """c_k(x)/√x for k = 0, 1, 2, … (eq. 12)."""
    a = np.log(x) * 2 / np.pi
    before = 1 / np.cosh(np.log(x) / 2)
    yield before
    now = before * a * -np.sqrt(0.5)
    k = 2
    while True:
        yield now
        before, now = now, ((a if k % 2 == 0 else -a) * now + (k - 2) * before) / k
        k += 1


def constants(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(max m |c_m|/√x)² over the paper's m, and the largest m Σ_{k>=m} c_k²/x of the same m."""
    largest, worst, kept = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for m, term in enumerate(terms(x)):
        if m >= FIRST:
            largest = np.maximum(largest, m * np.abs(term))
            worst = np.maximum(worst, m * (1 - kept))
        kept = kept + term**2
        if m == LAST:
            return largest**2, worst


def figure_1(images: Path) -> dict[str, Any]:
    x = np.concatenate([VALUES, np.logspace(-6, 0, 61)[:-1]])
    bound, tail = constants(x)
    limit = lemma_constant(np.log(x))
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    line = slice(len(VALUES), None)
    ax.semilogx(x[line], bound[line], label="max m² c_m² / x, the paper's")
    ax.semilogx(x[line], limit[line], "--", label="limit of m times the relative error")
    ax.semilogx(x[line], np.sqrt(x[line]) * bound[line], label="the first, times √x")
    ax.set(xlabel="x", ylabel="C")
    ax.legend(frameon=False)
    figure.savefig(images / "chebyshev_figure_1.png", dpi=80)
    return {
        f"{value:g}": {"bound": float(bound[i]), "tail": float(tail[i]), "limit": float(limit[i])}
        for i, value in enumerate(VALUES)
    }


def figure_2(images: Path) -> dict[str, Any]:
    """Largest and root mean square errors on [0, 1]² of maps with 100 anchors."""
    x = np.linspace(0, 1, 1001)[:, None]
    plt = pyplot()
    figure, axes = plt.subplots(2, 4, figsize=(12, 6), layout="constrained")
    found = {}
    for column, kernel in zip(axes.T, KERNELS, strict=True):
        exact = km.kernels.get(kernel)(x)
        shown = [exact]
        for name, neighbours in (("AN", 1), ("2-AN", 2)):
            options = {"anchors": "uniform", "feature_range": (0, 1), "energy": 1.0}
            anchors = km.AnchorMap(kernel, 100, n_neighbors=neighbours, **options)
            Z = anchors.fit(x).transform(x)
            miss = Z @ Z.T - exact
            rms = float(np.sqrt(np.mean(miss**2)))
            found[f"{kernel}, {name}"] = {"largest": float(np.abs(miss).max()), "rms": rms}
            shown.append(Z @ Z.T)
        for ax, values, words in zip(column, shown[:2], ("exact", "100 anchors"), strict=True):
            ax.imshow(values[::4, ::4], origin="lower", extent=(0, 1, 0, 1), cmap="viridis")
            ax.set_title(f"{kernel}, {words}")
    figure.savefig(images / "annfm_figure_2.png", dpi=80)
    return found


def spline_kernels(images: Path) -> dict[str, Any]:
    """How far the kernels of 10 B-splines are from the min kernel on [0, 1]²."""
    x = np.linspace(0, 1, 901)[:, None]  # the knots are among them
    least = np.minimum(x, x.T)
    shown, found = {"min(x, y)": least}, {}
    for degree in (1, 2, 3):
        Z = km.SplineMap(10, degree, order=1).fit(x).transform(x)
        K = Z @ Z.T
        scale, offset = np.polyfit(least.ravel(), K.ravel(), 1)
        miss = (K - offset) / scale - least
        shown[f"degree {degree}"] = least + miss
        found[f"degree {degree}"] = {
            "largest": float(np.abs(miss).max()),
            "rms": float(np.sqrt(np.mean(miss**2))),
            "offset": float(offset),
            "scale": float(scale),
        }
    figure, axes = pyplot().subplots(1, 4, figsize=(12, 3.2), layout="constrained")
    for ax, (words, values) in zip(axes, shown.items(), strict=True):
        ax.imshow(values[::4, ::4], origin="lower", extent=(0, 1, 0, 1), cmap="inferno")
        ax.set_title(words)
    figure.savefig(images / "additive_figure_1.png", dpi=80)
    return found


def pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def main(given: Sequence[str] | None = None) -> None:
    parts = {"constants": figure_1, "anchors": figure_2, "splines": spline_kernels}
    names = {
        "constants": "chebyshev_figure1.json",
        "anchors": "annfm_figure2.json",
        "splines": "additive_figure1.json",
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs="+", default=list(parts), choices=list(parts))
    parser.add_argument("--images", type=Path, default=OUTPUT / "images")
    options = parser.parse_args(given)
    options.images.mkdir(parents=True, exist_ok=True)
    for part in options.part:
        found = parts[part](options.images)
        print(json.dumps(found, indent=1))
        storage.write_file(OUTPUT / names[part], (json.dumps(found, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
