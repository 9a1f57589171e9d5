"""Plot of a comparison: error against columns, score against training time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .results import Results

COLORS = {
    "map": "#c8553d",
    "exact": "#1b4965",
    "linear": "#8a94a1",
    "sklearn": "#2a9d8f",
    "boosting": "#8f6bb3",
}


def draw(result: Results, path: str | Path | None) -> Any:
    """Two panels with their Pareto fronts; the figure is returned, and saved if there is a path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained", dpi=130)
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    errors = [row for row in result.rows if row.error is not None and row.error.max > 0]
    _scatter(left, errors, lambda row: row.columns, lambda row: row.error.max_relative)
    front = result.pareto("columns", "error")
    _front(left, front, lambda r: r.columns, lambda r: r.error.max_relative)
    left.set(
        xscale="log", yscale="log", xlabel="columns", ylabel="largest error / size of the kernel"
    )
    scored = [row for row in result.finished() if row.score is not None]
    _scatter(right, scored, lambda row: max(row.seconds, 1e-4), lambda row: row.score)
    _front(right, result.pareto(), lambda r: max(r.seconds, 1e-4), lambda r: r.score)
    right.set(xscale="log", xlabel="seconds to train", ylabel=result.score_name)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="0.93")
        axes.set_axisbelow(True)
    kinds = dict.fromkeys(row.kind for row in result.rows)
    handles = [right.plot([], [], "o", color=COLORS[kind], label=kind)[0] for kind in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(f"{result.data['name']}: {result.data['rows']} rows", fontweight="bold")
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    return figure


def _scatter(axes: Any, rows: list[Any], x: Any, y: Any) -> None:
    if rows:
        axes.scatter([x(r) for r in rows], [y(r) for r in rows], c=[COLORS[r.kind] for r in rows])


def _front(axes: Any, rows: list[Any], x: Any, y: Any) -> None:
    axes.plot([x(r) for r in rows], [y(r) for r in rows], color="0.7", dashes=(4, 3), zorder=0)
    for row in rows:
        axes.annotate(
            row.label,
            (x(row), y(row)),
            (6, 3),
            textcoords="offset points",
            size=7,
            parse_math=False,
        )
