"""Shape functions as a picture: one small panel per feature."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..printing import printable
from .shapes import Shape


def draw(title: str, shapes: Sequence[Shape], path: Path) -> Path:
    """Panels in rows of four, all with the same scale of scores.

    Names come from files: a dollar sign in them is no mathematics.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(4, len(shapes))
    down = -(-len(shapes) // across)
    figure = Figure(figsize=(3 * across, 2.2 * down + 0.8), layout="constrained", dpi=130)
    FigureCanvasAgg(figure)
    panels = np.atleast_1d(figure.subplots(down, across, sharey=True)).ravel()
    for axes, shape in zip(panels, shapes):
        axes.axhline(0, color="0.85", linewidth=1)
        for values, output in zip(shape.values.T, shape.outputs):
            axes.plot(shape.grid, values, linewidth=1.6, label=output)
        axes.set_title(printable(shape.name), fontsize=9, parse_math=False)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(shapes) :]:
        axes.set_visible(False)
    outputs = [printable(output) for output in shapes[0].outputs]
    if 1 < len(outputs) <= 12:
        handles = panels[0].get_lines()[1:]
        legend = figure.legend(handles, outputs, loc="outside lower center", ncols=6, frameon=False)
        for text in legend.get_texts():
            text.set_parse_math(False)
    towards = f" ({outputs[0]})" if len(outputs) == 1 and outputs[0] != "score" else ""
    figure.supylabel(f"adds to the score{towards}", fontsize=9, parse_math=False)
    figure.suptitle(printable(title), fontsize=10, parse_math=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path
