"""Which additive map of χ² has the least error per output column, on real histograms?

Every map is fitted to the same rows, at several sizes; the error is that of the squared distance
(what exp-χ² needs) and that of the kernel (what a linear model needs), both over all pairs and
relative to the root mean square of the truth.

    python -m benchmarks.additive_error --data FOLDER [--rows 150]

writes the figures to results/additive_error.json and the page's picture and tables.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

import kernelmaps as km

from . import histograms
from .datasets import load as load_dataset
from .datasets import names
from .paper_parts import vlfeat_map

HERE = Path(__file__).parent
OUTPUT = HERE / "results" / "additive_error.json"
PAGE = HERE.parent / "docs" / "methods" / "which_additive_map.md"
PICTURE = HERE.parent / "docs" / "images" / "additive_error.png"

DATA = {
    "digits": "ink in 64 cells",
    "scene15_bow": "visual words, pyramid of 4200 bins",
    "caltech101_bow": "visual words, pyramid of 1500 bins",
    "inria_person_hog": "gradients, 1152 bins",
    "newsgroups20": "words, 22379 bins",
    "microbiome_hmp": "species, 3383 bins",
}
SIZES = (1, 2, 3, 4, 5, 7, 9, 14, 20)
LARGEST_DESIGN = 9


def maps(low: float, high: float) -> dict[str, Any]:
    """Name → map of a given size; anchors get the data's range, as all others do."""

    def anchors(n: int) -> Any:
        return km.AnchorMap(
            "chi2",
            anchors=np.append(0.0, np.geomspace(low, high, 63)),
            n_neighbors=2,
            rank=n,
        )

    return {
        "VZ": lambda n: vlfeat_map("chi2", n),
        "designed": lambda n: km.DesignedMap("chi2", n) if n <= LARGEST_DESIGN else None,
        "anchors": anchors,
        "Chebyshev": lambda n: km.ChebyshevMap(n),
        "series": lambda n: km.SeriesMap(n),
        "Chebyshev, unscaled": lambda n: km.ChebyshevMap(n, scale=1.0),
    }


def errors(feature_map: Any, X: np.ndarray, K: np.ndarray) -> dict[str, float]:
    """Relative rms errors of the kernel and of the squared distance, and seconds to fit."""
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Z = feature_map.fit_transform(X)
    seconds = perf_counter() - start
    G = np.asarray((Z @ Z.T).toarray() if sparse.issparse(Z) else Z @ Z.T)
    distance = np.add.outer(np.diag(K), np.diag(K)) - 2 * K
    found = np.add.outer(np.diag(G), np.diag(G)) - 2 * G
    return {
        "kernel": float(np.linalg.norm(G - K) / np.linalg.norm(K)),
        "distance": float(np.linalg.norm(found - distance) / np.linalg.norm(distance)),
        "seconds": seconds,
    }


def measure(name: str, folder: str | None, n_rows: int) -> list[dict[str, Any]]:
    if name == "microbiome_hmp":
        X = load_dataset(name, folder=folder).X_train
        X = sparse.csr_matrix(X, dtype=np.float64)
        X = X.multiply(1 / np.maximum(X.sum(axis=1), 1)).tocsr()
    else:
        X = histograms.load(name, folder)[0]
    X = X[np.random.default_rng(0).permutation(X.shape[0])[:n_rows]]
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    X = np.ascontiguousarray(X[:, X.any(axis=0)])
    K = km.kernels.chi2(X)
    rows = []
    for label, make in maps(float(X[X > 0].min()), float(X.max())).items():
        for size in SIZES:
            feature_map = make(size)
            if feature_map is None:
                continue
            row = {"data": name, "map": label, "columns": size, **errors(feature_map, X, K)}
            rows.append(row)
        best = {r["columns"]: f"{r['distance']:.1e}" for r in rows if r["map"] == label}
        print(name, label, best, flush=True)
    return rows


def picture(rows: list[dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = [name for name in DATA if any(r["data"] == name for r in rows)]
    figure, axes = plt.subplots(2, 3, figsize=(10.5, 6), sharex=True, layout="constrained")
    for ax, name in zip(axes.ravel(), names, strict=False):
        for label in dict.fromkeys(r["map"] for r in rows):
            line = [r for r in rows if r["data"] == name and r["map"] == label]
            style = "--" if "unscaled" in label else "-"
            ax.loglog(
                [r["columns"] for r in line], [r["distance"] for r in line], style, label=label
            )
        ax.set_title(f"{name}: {DATA[name]}", fontsize=9)
        ax.grid(alpha=0.3)
    for ax in axes[1]:
        ax.set_xlabel("columns per feature")
    for ax in axes[:, 0]:
        ax.set_ylabel("relative error of the χ² distance")
    axes[0, 0].legend(fontsize=8)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


def tables(rows: list[dict[str, Any]]) -> str:
    """Errors of the distance at five columns, and who has the least at each size."""
    labels = list(dict.fromkeys(r["map"] for r in rows))
    names = list(dict.fromkeys(r["data"] for r in rows))
    found = {(r["data"], r["map"], r["columns"]): r["distance"] for r in rows}
    lines = [
        "| data, five columns | " + " | ".join(labels) + " |",
        "|---" * (len(labels) + 1) + "|",
    ]
    for name in names:
        values = [found[name, label, 5] for label in labels]
        cells = [f"**{v:.1e}**" if v == min(values) else f"{v:.1e}" for v in values]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    shown = (1, 2, 3, 5, 9, 20)
    lines += [
        "",
        "| least error | " + " | ".join(f"{n} column{'s' * (n > 1)}" for n in shown) + " |",
    ]
    lines.append("|---" * (len(shown) + 1) + "|")
    for name in names:
        cells = []
        for size in shown:
            candidates = {m: found[name, m, size] for m in labels if (name, m, size) in found}
            best = min(candidates, key=candidates.get)
            cells.append(f"{best} {candidates[best]:.0e}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_page(rows: list[dict[str, Any]]) -> None:
    """Put the tables between the markers of the page."""
    page = PAGE.read_text(encoding="utf-8")
    marks = "<!-- distance: made by benchmarks/additive_error.py -->", "<!-- end distance -->"
    pattern = re.escape(marks[0]) + ".*?" + re.escape(marks[1])
    text = f"{marks[0]}\n\n{tables(rows)}\n\n{marks[1]}"
    page = re.sub(pattern, lambda _: text, page, flags=re.DOTALL)
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--redraw", action="store_true", help="tables and picture from the JSON")
    options = parser.parse_args()
    if options.redraw:
        rows = json.loads(OUTPUT.read_text(encoding="utf-8"))
    else:
        rows = []
        for name in [n for n in DATA if n in names(options.data)]:
            rows += measure(name, options.data, options.rows)
            OUTPUT.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
    picture(rows)
    write_page(rows)


if __name__ == "__main__":
    main()
