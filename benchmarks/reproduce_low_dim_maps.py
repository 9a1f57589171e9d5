"""Tables 1, 2 and Figures 1 to 6 of the low-dimensional maps paper, its values beside ours.

    python -m benchmarks.reproduce_low_dim_maps [--part table1 table2 figures accuracy]
        [--data FOLDER] [--images FOLDER] [--sizes 31 73 101] [--methods ...]
        [--datasets ...] [--kernels ...] [--resume]

Table 2 and ``accuracy`` write their record after every line; with ``--resume`` the latter skips the
lines that are there.

``accuracy`` needs scene15_bow and caltech101_bow in the folder of ``--data`` (or KERNELMAPS_DATA):
linear SVMs on designed maps of 1, 2, 3 and 5 columns against SVMs on the exact kernels.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import kernelmaps as km
from kernelmaps._util import storage
from kernelmaps.design.approximation import Cosines, build_problem, cosine_sum
from kernelmaps.design.cosines import harmonic_design, largest_that_fit, refined_design
from kernelmaps.design.joint import (
    JointProblem,
    JointSearch,
    describe_design,
    resolve_signatures,
    taylor_programs,
)
from kernelmaps.design.rank_tables import grid_kernel

from .datasets import load as load_dataset
from .paper_parts import eigen_table, sine_map, vlfeat_map

OUTPUT = Path(__file__).parent / "results" / "reproductions"
VALUES = np.arange(256.0)
DATASETS = {"scene15_bow": (4, 200), "caltech101_bow": (2, 300)}  # cells per side, words
Keep = Callable[[dict[str, Any]], None]
KERNELS = {"chi2": "χ²", "intersection": "intersection", "jensen_shannon": "Jensen-Shannon"}
RBF = km.kernels.Gaussian(np.sqrt(0.1))  # exp(−d²/0.2): what the printed figures belong to
PROBLEM = build_problem(RBF, (0, np.pi))

# Printed values: (L∞, RMS) on {0..255}².
PAPER_1 = {
    ("ours", 5): {"chi2": (0.163, 0.081), "intersection": (10.922, 5.376),
                  "jensen_shannon": (0.019, 0.009)},
    ("ours", 7): {"chi2": (0.011, 0.005), "intersection": (8.238, 4.053),
                  "jensen_shannon": (9e-4, 3e-4)},
    ("VLFeat", 5): {"chi2": (3.205, 1.251), "intersection": (30.119, 6.679),
                    "jensen_shannon": (2.911, 1.203)},
    ("VLFeat", 7): {"chi2": (0.143, 0.053), "intersection": (22.287, 4.436),
                    "jensen_shannon": (0.127, 0.070)},
}  # fmt: skip
LAGS = 32  # on each axis: the evaluation set to which the paper's Table 2 belongs
DRAWS = 20  # of random features, whose errors are averaged
PAPER_2 = {
    31: {"Proj": 0.1199, "Proj ⊗": 0.0984, "⊗": 0.1061, "⊗ no LP": 0.2370},
    73: {"Proj": 0.0292, "Proj ⊗": 0.0148, "⊗": 0.0137, "⊗ no LP": 0.0439},
    101: {"Proj": 0.0092, "Proj ⊗": 0.0038, "⊗": 0.0038, "⊗ no LP": 0.0122},
}
METHODS_2 = ("Proj", "Proj ⊗", "⊗", "⊗ no LP")


class PolarSearch(JointSearch):
    """Projections from polar grids of half the plane, of even density, twice as many as needed."""

    def pools(self, problem: JointProblem) -> list[Cosines]:
        return [self._pool(problem, step) for step in (0.75, 1.0, 1.2, 1.3, 1.4)]

    def _pool(self, problem: JointProblem, step: float) -> Cosines:
        step = step * np.pi / float(np.max(problem.spans))
        outer = step * np.sqrt(2 * self.n_columns / np.pi)
        vectors = [np.zeros(2)]
        for radius in np.arange(step, outer + step, step):
            count = max(3, round(np.pi * radius / step))
            angle = np.pi * np.arange(count) / count
            vectors += list(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))
        # The signature's own spectrum stands for the products of one-dimensional weights.
        return np.array(vectors), np.exp(-0.05 * np.sum(np.square(vectors), axis=1))


def joint_design(method: str, size: int) -> Any:
    """A design of Table 2: projections from a polar pool or from products, modulations, greedy."""
    square, target = [(0, np.pi)] * 2, resolve_signatures(RBF, 2)
    search = (PolarSearch if method == "Proj" else JointSearch)(target, size, cache=False)
    modulations, projections = search.problems(square)
    if method == "Proj":
        result = search.design(projections, [])
    elif method == "Proj ⊗":
        result = search.designs([modulations, projections])[1]
    elif method == "⊗":
        result = search.design(modulations, [])
    else:
        pairs = [greedy(modulations, *pool, size) for pool in search.pools(modulations)]
        result = modulations, min(pairs, key=modulations.max_error), 0.0, False
    return describe_design(target, result, square)


def greedy(problem: JointProblem, vectors: np.ndarray, products: np.ndarray, size: int) -> Cosines:
    """The largest products of one-dimensional weights, scaled to sum to k(0)."""
    selected = largest_that_fit(products, problem.columns(vectors), size)
    return vectors[selected], products[selected] / products[selected].sum()


def measured(feature_map: Any, kernel: str) -> tuple[float, float]:
    """L∞ and RMS over all pairs of {0..255}, zeros included."""
    return errors_of(feature_map.fit(VALUES[1:, None]).transform(VALUES[:, None]), kernel)


def errors_of(phi: np.ndarray, kernel: str) -> tuple[float, float]:
    """L∞ and RMS of the mapped values of {0..255}."""
    miss = phi @ phi.T - km.kernels.get(kernel)(VALUES[:, None])
    return float(np.max(np.abs(miss))), float(np.sqrt(np.mean(miss**2)))


def table_1() -> dict[str, Any]:
    """Maps of 5 and 7 columns; the paper's rows, the best tables, and what no map can beat."""
    found: dict[str, Any] = {}
    for columns in (5, 7):
        for name in KERNELS:
            domain = (1, 255)
            grid = grid_kernel(name, domain, "absolute")
            rows = {
                "cosines": measured(km.DesignedMap(name, columns, domain=domain), name),
                "minimax table": measured(
                    km.DesignedMap(name, columns, domain=domain, method="minimax"), name
                ),
                "eigenvectors": errors_of(
                    np.vstack([np.zeros(columns), eigen_table(grid, columns)(VALUES[1:])]), name
                ),
                "HomogeneousMap (VLFeat)": measured(vlfeat_map(name, columns), name),
            }
            if name == "intersection":
                rows["sines"] = errors_of(sine_map(255.0, columns)(VALUES), name)
            certificate = km.design_map(name, columns, method="minimax").certificate
            found[f"{name} {columns}D"] = {
                "measured": rows,
                "no map is below": certificate.lower_bound,
                "paper": PAPER_1["ours", columns][name],
                "paper, VLFeat": PAPER_1["VLFeat", columns][name],
            }
            print_1(f"{KERNELS[name]} {columns}D", found[f"{name} {columns}D"])
    small = km.DesignedMap("chi2", 5, domain=(1, 127)).fit(VALUES[1:128, None])
    phi = small.transform(VALUES[:128, None])
    miss = phi @ phi.T - km.kernels.chi2(VALUES[:128, None])
    found["chi2 5D on {0..127}"] = {
        "largest": float(np.max(np.abs(miss))), "sum of squares": float(np.sum(miss**2)),
        "paper": (0.048, 9.121),
    }  # fmt: skip
    print("χ² 5D on {0..127}:", found["chi2 5D on {0..127}"])
    return found


def print_1(title: str, entry: dict[str, Any]) -> None:
    paper, vlfeat = entry["paper"], entry["paper, VLFeat"]
    print(f"{title}: paper {paper[0]:g} / {paper[1]:g}, its VLFeat {vlfeat[0]:g} / {vlfeat[1]:g}")
    for method, (largest, rms) in entry["measured"].items():
        print(f"    {method:24} {largest:.4g} / {rms:.4g}")
    print(f"    {'no map of any kind below':24} {entry['no map is below']:.4g}", flush=True)


def table_2(
    record: dict[str, Any], keep: Keep, sizes: Sequence[int], methods: Sequence[str]
) -> None:
    """The two-dimensional RBF kernel by four methods; each line replaces that of the record."""
    for size in sizes:
        for method in methods:
            start = perf_counter()
            design = joint_design(method, size)
            took = perf_counter() - start
            on_lags = error_on_lags(design, method != "⊗ no LP")
            record[f"{method} {size}"] = {
                "largest error": design.max_error, "on lags": on_lags,
                "columns": design.n_columns, "seconds": took, "paper": PAPER_2[size][method],
            }  # fmt: skip
            paper = PAPER_2[size][method]
            print(
                f"D = {size:3} {method:8} {on_lags:.5f}, everywhere {design.max_error:.5f} "
                f"(paper {paper:.4f}, {took:.0f} s)",
                flush=True,
            )
            order = [f"{m} {s}" for s in PAPER_2 for m in METHODS_2]
            keep({name: record[name] for name in order if name in record})


class OnLags(JointProblem):
    """A problem whose error counts at the lags of its grid alone, as the paper's does."""

    def max_error(self, cosines: Cosines) -> float:
        return float(np.max(np.abs(self.residual(self.coarse.lags, cosines))))

    def peaks(self, cosines: Cosines) -> np.ndarray:
        error = np.abs(self.residual(self.coarse.lags, cosines))
        return self.coarse.lags[np.argsort(-error)[:300]]


def error_on_lags(design: Any, refine: bool) -> float:
    """The least error at LAGS² lags that Taylor programs reach from a design.

    The paper's error counts on a finite set of lags, whose size it does not print. With 32 on each
    axis its figures come out: those of designs that need not hold between the lags.
    """
    spans = np.array([high - low for low, high in design.domain])

    def joint(lag: np.ndarray) -> np.ndarray:
        return RBF.signature(np.sqrt(np.sum(lag**2, axis=-1)))

    problem = OnLags(joint, spans, (None, None), design.form, LAGS)
    pair = design.frequencies, design.weights
    return problem.max_error(taylor_programs(problem, pair) if refine else pair)


def minimax_weights(
    frequencies: np.ndarray, exact: np.ndarray, lag: np.ndarray, prices: Any = 0.0
) -> tuple[np.ndarray, float]:
    """Weights >= 0 of least largest error, plus their prices, for given frequencies."""
    cosines, count = np.cos(np.outer(lag, frequencies)), len(frequencies)
    bound = np.ones((len(lag), 1))
    found = linprog(
        np.append(np.zeros(count) + prices, 1.0),
        A_ub=np.block([[cosines, -bound], [-cosines, -bound]]),
        b_ub=np.concatenate([exact, -exact]),
    )
    return found.x[:count], float(found.fun)


def pool_design(n_columns: int, spacing: float = 0.1) -> Cosines:
    """Section 2.1: least D̄ + γC over multiples of a spacing, cut to the largest and refitted."""
    lag = np.linspace(0, np.pi, 161)
    exact, pool = RBF.signature(lag), spacing * np.arange(int(2.5 * n_columns / spacing))
    columns, designs = np.where(pool == 0, 1, 2), []
    for gamma in np.geomspace(10.0, 1e6, 6):
        weights, _ = minimax_weights(pool, exact, lag, columns / gamma)
        frequencies = pool[largest_that_fit(weights, columns, n_columns)]
        designs.append((frequencies, minimax_weights(frequencies, exact, lag)[0]))
    return min(designs, key=PROBLEM.max_error)


def on_a_grid(frequencies: np.ndarray, spacing: float) -> float:
    """Least largest error with multiples of `spacing`, by exchanges of one or two frequencies.

    The search begins at the multiples next to `frequencies`; 0 stays, as it costs one column.
    """
    lag = np.linspace(0, np.pi, 161)
    exact = RBF.signature(lag)

    def error(places: tuple[int, ...]) -> float:
        if min(places[1:]) <= 0 or len(set(places)) < len(places):
            return np.inf
        return minimax_weights(spacing * np.array(places), exact, lag)[1]

    error = lru_cache(None)(error)
    best = tuple(np.round(frequencies / spacing).astype(int).tolist())
    while True:
        near = {
            tuple(sorted(p + s * (k == i) + t * (k == j) for k, p in enumerate(best)))
            for i, j in combinations(range(1, len(best)), 2)
            for s, t in product((-2, -1, 0, 1, 2), repeat=2)
        }
        better = min(near, key=error)
        if error(better) >= error(best) - 1e-9:
            return error(best)
        best = better


def figures_1_and_2() -> dict[str, float]:
    """k = cos(0.6 λ) on [−π, π] by harmonics, and by those of twice the period."""
    lag = np.linspace(0, np.pi, 2001)
    exact, n = np.cos(0.6 * lag), np.arange(40)
    projected = np.trapezoid(np.cos(np.outer(n, lag)) * exact, lag, axis=1) * 2 / np.pi
    projected[0] /= 2
    kept = np.maximum(projected, 0) @ np.cos(np.outer(n, lag))
    half = min(
        minimax_weights(np.array(pair) / 2, exact[::20], lag[::20])[1]
        for pair in combinations(range(1, 10), 2)
    )
    return {
        "1, harmonics, negative weights left out": float(np.abs(kept - exact).max()),
        "2, half harmonics, 4D": half,
    }


def figure_3(plt: Any) -> tuple[Any, dict[str, float]]:
    """One quadrant of the two-dimensional signature by maps of about 31 columns."""
    axis = np.linspace(0, np.pi, 101)
    lags = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    exact = RBF.signature(np.sqrt(np.sum(lags**2, axis=-1)))
    shown = {"exact": exact}
    for name, method in (("projections, 31D", "Proj"), ("⊗, 31D", "⊗")):
        design = joint_design(method, 31)
        vectors, weights = design.projections()
        shown[name] = np.cos(lags @ vectors.T) @ weights
    shown["FastFood, 32D"] = random_signature(lags, 32, "structured", 0)
    single = cosine_sum(axis, harmonic_design(PROBLEM, 5))
    shown["harmonics ⊗, 25D"] = np.multiply.outer(single, single)
    figure, axes = plt.subplots(1, len(shown), figsize=(15, 3.2), layout="constrained")
    for ax, (name, values) in zip(axes, shown.items(), strict=True):
        ax.imshow(values, origin="lower", vmin=-0.3, vmax=1, extent=(0, np.pi, 0, np.pi))
        ax.set_title(name)
    del shown["exact"], shown["FastFood, 32D"]
    found = {f"3, {n}": float(np.abs(v - exact).max()) for n, v in shown.items()}
    for name, sampling in (("FastFood", "structured"), ("random Fourier", "iid")):
        found[f"3, {name}, 32D"] = random_error(lags, exact, 32, sampling)
    return figure, found


def random_signature(lags: np.ndarray, columns: int, sampling: str, seed: int) -> np.ndarray:
    """⟨φ(0), φ(λ)⟩ of random features."""
    rows = lags.reshape(-1, lags.shape[-1])
    features = km.RandomFourierMap(RBF, columns, sampling=sampling, random_state=seed).fit(rows)
    mapped = features.transform(np.vstack([np.zeros_like(rows[:1]), rows]))
    return (mapped[1:] @ mapped[0]).reshape(lags.shape[:-1])


def random_error(lags: np.ndarray, exact: np.ndarray, columns: int, sampling: str) -> float:
    """Largest error of random features, the mean over DRAWS of them."""
    signatures = (random_signature(lags, columns, sampling, seed) for seed in range(DRAWS))
    return float(np.mean([np.abs(values - exact).max() for values in signatures]))


def figure_4(plt: Any) -> tuple[Any, dict[str, float]]:
    """One-dimensional RBF kernel: shapes of poor maps, errors of good ones."""
    lag = np.linspace(0, np.pi, 600)
    exact = RBF.signature(lag)
    designs = {
        "17D harmonic": harmonic_design(PROBLEM, 17),
        "11D discrete": pool_design(11),
        "11D continuous": refined_design(PROBLEM, 11),
    }
    poor = harmonic_design(PROBLEM, 11)
    random = random_signature(lag[:, None], 64, "iid", 0)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    axes[0].plot(lag, exact, "k", linewidth=4, alpha=0.3, label="exact")
    axes[0].plot(lag, cosine_sum(lag, poor), label="11D harmonic")
    axes[0].plot(lag, random, label="64D random Fourier")
    for name, design in designs.items():
        label = f"{name}: {PROBLEM.max_error(design):.2g}"
        axes[1].plot(lag, cosine_sum(lag, design) - exact, label=label)
    for ax, title in zip(axes, ("signature", "error"), strict=True):
        ax.set(xlabel="λ", title=title)
        ax.legend(frameon=False)
    found = {"4, 11D harmonic": PROBLEM.max_error(poor)}
    found["4, 64D random Fourier"] = random_error(lag[:, None], exact, 64, "iid")
    found |= {f"4, {name}": PROBLEM.max_error(design) for name, design in designs.items()}
    found["4, 11D continuous, everywhere"] = found.pop("4, 11D continuous")
    lags = np.linspace(0, np.pi, LAGS)
    found["4, 11D continuous"] = km.design_map(RBF, 11, domain=lags).max_error
    found["4, 11D discrete, by one linear program"] = found.pop("4, 11D discrete")
    found["4, 11D discrete"] = on_a_grid(designs["11D continuous"][0], 0.025)
    return figure, found


def figure_5(plt: Any) -> tuple[Any, dict[str, float]]:
    """Absolute error of χ² maps over pairs of values: largest, and sum of squares."""
    found = {}
    panels = {
        "designed 5D, {0..127}": (km.DesignedMap("chi2", 5, domain=(1, 127)), 128),
        "VLFeat 7D, {0..127}": (vlfeat_map("chi2", 7), 128),
        "designed 5D": (km.DesignedMap("chi2", 5, domain=(1, 255)), 256),
        "VLFeat 7D": (vlfeat_map("chi2", 7), 256),
        "designed 7D": (km.DesignedMap("chi2", 7, domain=(1, 255)), 256),
        "VLFeat 5D": (vlfeat_map("chi2", 5), 256),
    }
    figure, axes = plt.subplots(3, 2, figsize=(8, 10), layout="constrained")
    for ax, (title, (feature_map, size)) in zip(axes.ravel(), panels.items(), strict=True):
        x = VALUES[:size, None]
        phi = feature_map.fit(x[1:]).transform(x)
        miss = np.abs(phi @ phi.T - km.kernels.chi2(x))
        picture = ax.imshow(miss, origin="lower", cmap="viridis")
        figure.colorbar(picture, ax=ax)
        ax.set_title(f"{title}: {miss.max():.3g}")
        found[f"5, {title}, largest error"] = float(miss.max())
        found[f"5, {title}, sum of squares"] = float(np.sum(miss**2))
    return figure, found


def figure_6(plt: Any) -> tuple[Any, dict[str, float]]:
    """χ² maps beyond their range: absolute and relative error over ratios."""
    found = {}
    lag = np.linspace(0, np.log(1e7), 3000)
    exact, root = km.kernels.chi2.signature(lag), np.exp(-lag / 2)
    absolute = {
        "5D (255)": km.design_map("chi2", 5),
        "7D (255)": km.design_map("chi2", 7),
        "5D universal": km.design_map("chi2", 5, domain="universal"),
        "7D universal": km.design_map("chi2", 7, domain="universal"),
    }
    relative = {
        "5D relative": km.design_map("chi2", 5, error="relative"),
        "7D relative": km.design_map("chi2", 7, error="relative"),
    }
    vlfeat = vlfeat_map("chi2", 7).fit(VALUES[1:, None])
    curves = {name: (d.frequencies, d.weights) for name, d in (absolute | relative).items()}
    curves["VLFeat 7D"] = (vlfeat.frequencies_, vlfeat.weights_)
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
    for name, (frequencies, weights) in curves.items():
        miss = np.abs(np.cos(np.outer(lag, frequencies)) @ weights - exact)
        inside = lag <= np.log(255)
        if name in relative or name.startswith("VLFeat"):
            found[f"6c, {name}, largest relative error"] = float((miss / exact)[inside].max())
        if name in absolute or name.startswith("VLFeat"):
            found[f"6a, {name}, ratios up to 255"] = float((root * miss)[inside].max())
            found[f"6a, {name}, ratios from 255 to 10⁷"] = float((root * miss)[~inside].max())
            for ratio in (128, 256, 512):
                at = float(np.interp(np.log(ratio), lag, root * miss))
                found[f"6b, {name}, at the ratio {ratio}"] = at
            for ax in axes[:2]:
                ax.plot(lag / np.log(10), root * miss, label=name)
        if name in relative or name.startswith("VLFeat"):
            axes[2].semilogy(lag / np.log(10), miss / exact, label=name)
    axes[0].set(title="absolute error", ylabel="error / b")
    axes[1].set(title="close up", xlim=(1.8, 3.2), ylim=(0, 2e-3))
    for ratio in (128, 256, 512):
        axes[1].axvline(np.log10(ratio), linestyle=":", color="0.5")
    axes[2].set(title="relative error", xlim=(0, np.log10(255)), ylim=(1e-6, 1))
    for ax in axes:
        ax.set_xlabel("log10 of the ratio")
        ax.legend(frameon=False)
    return figure, {name: found[name] for name in sorted(found)}


def figures(images: Path) -> dict[str, float]:
    """Draw Figures 3 to 6 into a folder; the figures' numbers come back."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    images.mkdir(parents=True, exist_ok=True)
    numbers = figures_1_and_2()
    for place, draw in enumerate((figure_3, figure_4, figure_5, figure_6), start=3):
        drawn, errors = draw(plt)
        drawn.savefig(images / f"low_dim_maps_figure_{place}.png", dpi=80)
        numbers |= errors
    for name, value in numbers.items():
        print(f"figure {name}: {value:.4g}")
    return numbers


def pyramid(counts: Any, grid: int, words: int) -> sparse.csr_matrix:
    """All levels of the spatial pyramid side by side, of sum one: coarser levels sum cells."""
    cells = np.asarray(counts.todense(), dtype=np.float64).reshape(-1, grid, grid, words)
    levels, size = [], grid
    while size >= 1:
        step = grid // size
        merged = cells.reshape(-1, size, step, size, step, words).sum(axis=(2, 4))
        levels.append(merged.reshape(cells.shape[0], -1))
        size //= 2
    stacked = np.hstack(levels)
    stacked /= np.maximum(stacked.sum(axis=1, keepdims=True), 1)
    return sparse.csr_matrix(stacked.astype(np.float32))


def without_lines(
    record: dict[str, Any], datasets: list[str], kernels: list[str]
) -> dict[str, Any]:
    """A record of accuracies, less the lines of these datasets and kernels."""
    methods = ("linear", *kernels)
    return {
        name: {
            what: line
            for what, line in rows.items()
            if name not in datasets or what.split(",")[0] not in methods
        }
        for name, rows in record.items()
    }


def accuracy(
    folder: str, record: dict[str, Any], keep: Keep, datasets: list[str], kernels: list[str]
) -> None:
    """Test accuracy of linear SVMs on designed maps and of SVMs on the exact kernels.

    Both are trained by the same solver on their Gram matrices, which for a map is φφᵀ, so that the
    kernel is all that differs. C is chosen from the same three values by cross-validation of the
    training rows. Lines that the record has already are not computed again.
    """
    for name in datasets:
        data = load_dataset(name, folder=folder)
        train, test = (pyramid(X, *DATASETS[name]) for X in (data.X_train, data.X_test))
        rows = record.setdefault(name, {})
        for label, grams in competitors(train, test, kernels):
            if label not in rows:
                start = perf_counter()
                rows[label] = best_svm(*grams(), data.y_train, data.y_test)
                print(name, label, rows[label], f"{perf_counter() - start:.0f} s", flush=True)
                keep(record)


def competitors(train: Any, test: Any, kernels: list[str]) -> Iterator[tuple[str, Callable]]:
    """Names, and functions that make the Gram matrices of training rows and of test rows."""
    yield "linear", lambda: products(train, test)
    for kernel in kernels:
        exact = km.kernels.get(kernel)
        yield f"{kernel}, exact", lambda exact=exact: (exact(train), exact(test, train))
        for columns, method in product((1, 2, 3, 5), ("refined", "minimax")):
            feature_map = km.DesignedMap(kernel, columns, method=method)
            yield (
                f"{kernel}, {columns} columns, {method}",
                lambda m=feature_map: products(m.fit_transform(train), m.transform(test)),
            )


def products(train: sparse.csr_matrix, test: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrices of rows of features, by dense products: they are faster than sparse ones."""
    dense = train.toarray()
    blocks = [test[i : i + 1000].toarray() @ dense.T for i in range(0, test.shape[0], 1000)]
    return dense @ dense.T, np.vstack(blocks)


def best_svm(gram: Any, cross: Any, y: Any, y_test: Any) -> dict[str, float]:
    """Accuracy with the C that cross-validation prefers, in units of the mean of k(x, x)."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    size = float(np.mean(np.diag(gram)))
    search = GridSearchCV(
        SVC(kernel="precomputed"), {"C": (1.0, 10.0, 100.0)}, refit=True, n_jobs=2,
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
    ).fit(gram / size, y)  # fmt: skip
    found = float(np.mean(search.predict(cross / size) == y_test))
    return {"accuracy": found, "C": search.best_params_["C"]}


def main(given: Sequence[str] | None = None) -> None:
    parts = ("table1", "table2", "figures", "accuracy")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs="*", choices=parts, default=parts[:3])
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA"))
    parser.add_argument("--images", type=Path, default=OUTPUT / "images")
    parser.add_argument("--sizes", nargs="*", type=int, default=[31, 73, 101])
    parser.add_argument("--methods", nargs="*", choices=list(METHODS_2), default=list(METHODS_2))
    parser.add_argument("--datasets", nargs="*", choices=list(DATASETS), default=list(DATASETS))
    parser.add_argument("--kernels", nargs="*", choices=list(KERNELS), default=list(KERNELS))
    parser.add_argument("--resume", action="store_true", help="keep the accuracies that are there")
    arguments = parser.parse_args(given)
    if "accuracy" in arguments.part and not arguments.data:
        raise SystemExit("name the folder of the datasets with --data or KERNELMAPS_DATA")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for part in arguments.part:
        path = OUTPUT / f"low_dim_maps_{part}.json"

        def keep(record: dict[str, Any], path: Path = path) -> None:
            text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
            storage.write_file(path, text.encode())

        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if part == "table1":
            keep(table_1())
        elif part == "table2":
            table_2(before, keep, arguments.sizes, arguments.methods)
        elif part == "figures":
            keep(figures(arguments.images))
        else:
            if not arguments.resume:
                before = without_lines(before, arguments.datasets, arguments.kernels)
                keep(before)
            accuracy(arguments.data, before, keep, arguments.datasets, arguments.kernels)


if __name__ == "__main__":
    main()
