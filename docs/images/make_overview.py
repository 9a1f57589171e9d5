"""Draw ``overview.png``, the picture of the README: ``python -m docs.images.make_overview``."""

from pathlib import Path
from time import process_time

import numpy as np
from matplotlib import pyplot as plt
from sklearn.svm import SVC, LinearSVC

import kernelmaps as km

RED, BLUE, GREY = "#d1495b", "#1b4965", "0.6"


def chi2_map(n_components):
    """The map that the README's first example uses."""
    return km.DesignedMap(kernel="chi2", n_components=n_components)


def map_values(n_components, x, y):
    """⟨φ(x), φ(y)⟩ for all pairs of two vectors of values."""
    feature_map = chi2_map(n_components).fit(x[:, None])
    return feature_map.transform(x[:, None]) @ feature_map.transform(y[:, None]).T


def draw_curves(axes):
    """The kernel as a function of x for a few y, exact and by maps."""
    x, y = np.linspace(0, 1, 400), np.array([0.1, 0.3, 1.0])
    exact = km.kernels.chi2.component(x[:, None], y)
    axes.plot(x, exact, color=BLUE, linewidth=4, alpha=0.35)
    axes.plot(x, map_values(1, x, y), color=GREY, linewidth=1, linestyle="--")
    axes.plot(x, map_values(5, x, y), color=RED, linewidth=1.2)
    for value, end in zip(y, exact[-1]):
        axes.annotate(f"y = {value}", (1, end), (4, 0), textcoords="offset points", va="center")
    axes.plot([], [], color=BLUE, linewidth=4, alpha=0.35, label="exact")
    axes.plot([], [], color=GREY, linestyle="--", label="1 column")
    axes.plot([], [], color=RED, label="5 columns")
    axes.legend(frameon=False, loc="upper left")
    axes.set(title="χ² kernel 2xy/(x+y)", xlabel="x", xlim=(0, 1.18))


def draw_error(figure, axes):
    """Error of the five-column map over the unit square."""
    grid = np.linspace(0, 1, 400)
    error = map_values(5, grid, grid) - km.kernels.chi2.component(grid[:, None], grid)
    largest = np.abs(error).max()
    image = axes.imshow(
        error, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r", vmin=-largest, vmax=largest
    )
    axes.set(title=f"error of 5 columns: at most {largest:.3f}", xlabel="x", ylabel="y")
    figure.colorbar(image, ax=axes, shrink=0.8)


def processor_seconds(fit, X, y):
    """What a fit costs, whatever else the machine does."""
    start = process_time()
    fit(X, y)
    return process_time() - start


def draw_times(axes):
    """Training time against the number of rows: two classes of histograms with 128 bins."""
    X, y = km.datasets.make_histograms(32000, 128, 2, n_counts=150, random_state=0)
    chi2 = km.kernels.chi2
    chi2(X[:9])  # loads the compiled loop

    def exact(X, y):
        SVC(kernel="precomputed").fit(chi2(X), y)

    def mapped(X, y):
        LinearSVC().fit(chi2_map(5).fit_transform(X), y)

    sides = [
        ("exact χ² SVM", exact, BLUE, (500, 1000, 2000, 4000, 8000)),
        ("5-column map\n+ linear SVM", mapped, RED, (500, 1000, 2000, 4000, 8000, 16000, 32000)),
    ]
    for label, fit, color, sizes in sides:
        fit(X[:500], y[:500])
        seconds = [min(processor_seconds(fit, X[:n], y[:n]) for _ in range(2)) for n in sizes]
        axes.loglog(sizes, seconds, "o-", color=color, markersize=4)
        axes.annotate(
            label,
            (sizes[-2], seconds[-2]),
            (-10, 6),
            textcoords="offset points",
            ha="right",
            va="center",
            color=color,
        )
    axes.set(title="training, processor seconds", xlabel="rows")


def main():
    figure, (curves, error, times) = plt.subplots(
        1, 3, figsize=(13, 3.7), layout="constrained", width_ratios=[1.15, 1, 1.15], dpi=110
    )
    draw_curves(curves)
    draw_error(figure, error)
    draw_times(times)
    for axes in (curves, times):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("overview.png"))


if __name__ == "__main__":
    main()
