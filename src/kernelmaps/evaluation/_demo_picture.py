"""The picture of the demonstration: accuracy and kernel error of every map, side by side."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .demo import DemoRow

_COLORS = {"linear": "0.55", "exact": "#1b4965", "map": "#d1495b"}
_NAMES = {"linear": "plain linear", "exact": "exact kernel", "map": "explicit map"}


def draw(rows: list[DemoRow], title: str, path: Path) -> Path:
    """Draw one line per row: left the accuracy, right the largest and the rms kernel error."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.5 + 0.34 * len(rows)), layout="constrained", dpi=130)
    FigureCanvasAgg(figure)  # no window, no global state: safe to call from anywhere
    accuracy, error = figure.subplots(1, 2, sharey=True, width_ratios=[1, 1])
    heights = _heights(rows)
    _draw_accuracy(accuracy, rows, heights)
    _draw_error(error, rows, heights)

    accuracy.set_yticks(heights, [_label(row) for row in rows])
    for tick, row in zip(accuracy.get_yticklabels(), rows):
        tick.set_color(_COLORS[row.kind] if row.kind != "map" else "black")
    accuracy.invert_yaxis()
    for axes in (accuracy, error):
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
    for kind in dict.fromkeys(row.kind for row in rows):
        accuracy.scatter([], [], color=_COLORS[kind], s=45, label=_NAMES[kind])
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"Linear SVMs on explicit feature maps: {title}", fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def _heights(rows: list[DemoRow]) -> np.ndarray:
    """Positions from top to bottom, with a gap between kernels."""
    changes = [row.kernel != before.kernel for before, row in pairwise(rows)]
    return np.arange(len(rows)) + 0.6 * np.concatenate([[0], np.cumsum(changes)])


def _label(row: DemoRow) -> str:
    return f"{row.kernel}: {row.method}" if row.kind == "exact" else row.method


def _draw_accuracy(axes, rows: list[DemoRow], heights: np.ndarray) -> None:
    values = np.array([100 * row.accuracy for row in rows])
    linear = values[[row.kind == "linear" for row in rows]]
    axes.hlines(heights, linear.max(), values, color="0.85", linewidth=2)
    axes.axvline(linear.max(), color=_COLORS["linear"], linewidth=1, linestyle=":")
    axes.scatter(values, heights, color=[_COLORS[row.kind] for row in rows], s=45, zorder=3)
    for value, height in zip(values, heights):
        axes.annotate(
            f"{value:.1f}", (value, height), (7, 0), textcoords="offset points", va="center", size=8
        )
    axes.set_xlabel("accuracy on test rows, %")
    axes.margins(x=0.12)


def _draw_error(axes, rows: list[DemoRow], heights: np.ndarray) -> None:
    maps = [(row, height) for row, height in zip(rows, heights) if row.error_max]
    for row, height in maps:
        axes.plot([row.error_rms, row.error_max], [height] * 2, color=_COLORS["map"], alpha=0.35)
    at = [height for _, height in maps]
    color = _COLORS["map"]
    axes.scatter([r.error_max for r, _ in maps], at, color=color, s=45, zorder=3, label="largest")
    axes.scatter(
        [r.error_rms for r, _ in maps],
        at,
        color="white",
        edgecolor=color,
        s=35,
        zorder=3,
        label="rms",
    )
    axes.set_xscale("log")
    axes.set_xlabel("error of kernel values on test pairs, k(x, x) = 1")
    axes.legend(loc="upper right", frameon=False)
