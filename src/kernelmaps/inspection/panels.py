"""Displays of several panels, written to a file without a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["PanelDisplay"]


class PanelDisplay:
    """A display that draws itself on axes; subclasses have `plot` and `_panels`."""

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

    def _panels(self, figure: Any, columns: int) -> Any:
        """Axes of a figure, in rows of `columns`."""
        raise NotImplementedError
