"""Displays of several panels, written to a file without a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..display import printable


class PanelDisplay:
    """A display that draws itself on axes, a panel for each item; subclasses have `plot`."""

    title: str
    _panel: tuple[float, float]  # inches
    _border: tuple[float, float]  # inches: least width of a figure, and height beside the panels
    _share_y = False  # whether all panels have one vertical scale
    _saved_columns = 4  # panels side by side in a file

    def save(self, path: str | Path) -> Path:
        """Draw on a new figure without a window and write it to a file.

        Parameters
        ----------
        path : path
            File to write; its suffix (png, svg or pdf) is the format.

        Returns
        -------
        Path
            The file.
        """
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained", dpi=130)
        FigureCanvasAgg(figure)
        self.plot(self._panels(figure, self._saved_columns))
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target)
        return target

    def plot(self, axes: Any = None) -> Any:
        """Draw the panels on axes, or on a new figure."""
        raise NotImplementedError

    def _count(self) -> int:
        """Number of panels."""
        raise NotImplementedError

    def _axes(self, axes: Any, columns: int) -> np.ndarray:
        """One of `axes` for each panel; those of a new figure if there are none."""
        if axes is None:
            import matplotlib.pyplot as plt

            axes = self._panels(plt.figure(layout="constrained"), columns)
        return np.ravel(axes)[: self._count()]

    def _panels(self, figure: Any, columns: int) -> np.ndarray:
        """Axes of a figure, in rows of `columns`, and its title."""
        count = self._count()
        columns = min(columns, count)
        rows = -(-count // columns)
        least, more = self._border
        figure.set_size_inches(max(least, self._panel[0] * columns), self._panel[1] * rows + more)
        axes = figure.subplots(rows, columns, sharey=self._share_y, squeeze=False).ravel()
        for ax in axes[count:]:
            ax.remove()
        figure.suptitle(printable(self.title), fontsize=11, parse_math=False)
        return axes[:count]
