"""Display of the pairs of an additive model as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..display import printable
from ..models.shapes import PairFunction
from .panels import PanelDisplay

_TICKS = 8
_WITHIN = 98  # percent of the cells whose colours differ


def _panel(pair: PairFunction) -> dict[str, Any]:
    """What is drawn of a pair: values (m, k, n_outputs), NaN where no training row was, and words.

    These are its name, that of the first feature, which is drawn across, the labels of the cells
    along both features, and the same in short as ticks: where a bin begins.
    """
    labels = pair.first, pair.second
    values = pair.values if pair.values.ndim == 3 else pair.values[..., None]
    values = np.where(pair.density[..., None] > 0, values, np.nan)
    ticks = [[label.split(" … ")[0] for label in own] for own in labels]
    words = {"name": pair.name, "across": pair.across, "labels": labels, "ticks": ticks}
    return {**words, "values": values}


class PairFunctionDisplay(PanelDisplay):
    """Display of pairs as heat maps; cells without training rows are blank.

    Parameters
    ----------
    pairs : sequence of PairFunction
        What to draw, in order; for several classes the last one's.
    title : str
        Of the whole figure.

    See Also
    --------
    PairFunctionDisplay.from_estimator : takes the pairs of a fitted model.
    """

    _panel = (3.4, 2.8)
    _border = (4.5, 0.4)
    _saved_columns = 3

    def __init__(self, pairs: Sequence[PairFunction], title: str = "") -> None:
        self.pairs = list(pairs)
        self.title = title

    def _count(self) -> int:
        return len(self.pairs)

    @property
    def panels(self) -> list[dict[str, Any]]:
        """All that is drawn of each pair, as numbers and words."""
        return [_panel(pair) for pair in self.pairs]

    @property
    def limits(self) -> np.ndarray:
        """Where the colours end, for each output: most cells are within.

        A single cell with few rows would wash out all others.
        """
        values = [panel["values"] for panel in self.panels]
        sizes = [np.abs(own).reshape(-1, own.shape[-1]) for own in values]
        found = np.nanpercentile(np.concatenate(sizes), _WITHIN, axis=0, method="lower")
        return np.where(found > 0, found, 1.0)

    @classmethod
    def from_estimator(cls, estimator: Any) -> PairFunctionDisplay:
        """Take the pairs of a fitted model, and draw nothing yet.

        Parameters
        ----------
        estimator : AdditiveClassifier or AdditiveRegressor
            Fitted with `interactions`.

        Returns
        -------
        PairFunctionDisplay
            The display; call `plot`.
        """
        check_is_fitted(estimator)
        if not estimator.pair_functions_:
            raise ValueError(
                f"PairFunctionDisplay: this {type(estimator).__name__} has no pairs; fit it with "
                "interactions='auto' or a list of pairs."
            )
        return cls(estimator.pair_functions_, type(estimator).__name__)

    def plot(self, axes: Any = None, *, columns: int = 3) -> PairFunctionDisplay:
        """Draw the heat maps, all on the same colour scale, which ends at `limits`.

        Parameters
        ----------
        axes : sequence of matplotlib axes, optional
            One for each pair; a new figure by default.
        columns : int
            Panels in a row of a new figure.

        Returns
        -------
        self : PairFunctionDisplay
            The display.
        """
        self.axes_ = self._axes(axes, columns)
        self.figure_ = self.axes_[0].figure
        most = float(self.limits[-1])
        for ax, panel in zip(self.axes_, self.panels, strict=True):
            image = ax.imshow(
                panel["values"][..., -1].T, cmap="RdBu", vmin=-most, vmax=most, aspect="auto",
                origin="lower",
            )  # fmt: skip
            ax.set_title(printable(panel["name"]), fontsize=9, parse_math=False)
            for axis, names in zip((ax.xaxis, ax.yaxis), panel["ticks"], strict=True):
                _label(axis, names)
        self.figure_.colorbar(image, ax=list(self.axes_), shrink=0.7, label="score", extend="both")
        return self


def _label(axis: Any, names: list[str]) -> None:
    ticks = np.unique(np.linspace(0, len(names) - 1, min(_TICKS, len(names))).astype(int))
    axis.set_ticks(ticks, [printable(names[k]) for k in ticks], fontsize=7, parse_math=False)
    if axis.axis_name == "x":
        axis.set_tick_params(rotation=90)
