"""The picture of the demonstration: accuracy and kernel error of every map, side by side."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .demo import DemoResult, DemoRow

_COLORS = {"linear": "0.55", "exact": "#1b4965", "map": "#d1495b"}
_ROUNDING = 1e-12
_NAMES = {"linear": "plain linear", "exact": "exact kernel", "map": "explicit map"}


def draw(result: DemoResult, path: Path) -> Path:
    """Draw one line per row: left the accuracy, right the largest and the rms kernel error."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = result.rows
    figure = Figure(figsize=(11, 1.5 + 0.34 * len(rows)), layout="constrained", dpi=130)
    FigureCanvasAgg(figure)  # no window, no global state: safe to call from anywhere
    accuracy, error = figure.subplots(1, 2, sharey=True)
    heights = _heights(rows)
    _draw_accuracy(accuracy, rows, heights, result.test_rows)
    _draw_error(error, rows, heights)

    accuracy.set_yticks(heights, [row.method for row in rows])
    for tick, row in zip(accuracy.get_yticklabels(), rows):
        tick.set_color(_COLORS[row.kind] if row.kind != "map" else "black")
    accuracy.invert_yaxis()
    for axes in (accuracy, error):
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
    kinds = dict.fromkeys(row.kind for row in rows)
    handles = [accuracy.scatter([], [], color=_COLORS[k], s=45, label=_NAMES[k]) for k in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"Linear SVMs on explicit feature maps: {result.dataset}", fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def _heights(rows: list[DemoRow]) -> np.ndarray:
    """Positions from top to bottom, with a gap between kernels."""
    changes = [row.kernel != before.kernel for before, row in pairwise(rows)]
    return np.arange(len(rows)) + 0.6 * np.concatenate([[0], np.cumsum(changes)])


def _draw_accuracy(axes: Any, rows: list[DemoRow], heights: np.ndarray, test_rows: int) -> None:
    values = np.array([100 * row.accuracy for row in rows])
    linear = values[[row.kind == "linear" for row in rows]].max()
    spread = np.sqrt(linear * (100 - linear) / test_rows)
    axes.axvspan(linear - spread, linear + spread, color="0.95")
    axes.axvline(linear, color=_COLORS["linear"], linewidth=1, linestyle=":")
    axes.hlines(heights, linear, values, color="0.8", linewidth=2)
    axes.scatter(values, heights, color=[_COLORS[row.kind] for row in rows], s=45, zorder=3)
    for value, height in zip(values, heights):
        axes.annotate(
            f"{value:.1f}", (value, height), (7, 0), textcoords="offset points", va="center", size=8
        )
    axes.set_xlabel(f"accuracy on {test_rows} test rows, % (shaded: ± one standard error)")
    axes.margins(x=0.12)


def _draw_error(axes: Any, rows: list[DemoRow], heights: np.ndarray) -> None:
    """Rounding errors, below the axis, are drawn at its left end and called exact."""
    color = _COLORS["map"]
    maps = [(row, height) for row, height in zip(rows, heights) if row.error_max is not None]
    inexact = [(row, height) for row, height in maps if row.error_max > _ROUNDING]
    largest = np.array([row.error_max for row, _ in inexact])
    rms = np.array([row.error_rms for row, _ in inexact])
    at = np.array([height for _, height in inexact])
    axes.set_xscale("log")
    axes.hlines(at, rms, largest, color=color, alpha=0.35)
    axes.scatter(largest, at, color=color, s=45, zorder=3, label="largest")
    axes.scatter(rms, at, color="white", edgecolor=color, s=35, zorder=3, label="rms")
    for _, height in (pair for pair in maps if pair not in inexact):
        axes.text(
            0.02, height, "exact", color=color, va="center", transform=axes.get_yaxis_transform()
        )
    axes.set_xlabel("error of kernel values on test pairs, k(x, x) = 1")
    axes.legend(loc="upper right", frameon=False, ncols=2)
