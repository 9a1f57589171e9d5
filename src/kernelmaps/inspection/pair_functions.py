"""Display of the pairs of an additive model as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..models.shapes import PairFunction
from ..printing import printable
from .panels import PanelDisplay

_TICKS = 8


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
        """Draw the heat maps, all on the same colour scale.

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
        shown = [_last(pair) for pair in self.pairs]
        most = max(float(np.nanmax(np.abs(values))) for values in shown) or 1.0
        for ax, pair, values in zip(self.axes_, self.pairs, shown, strict=True):
            image = ax.imshow(
                values.T, cmap="RdBu", vmin=-most, vmax=most, aspect="auto", origin="lower"
            )
            ax.set_title(printable(pair.name), fontsize=9, parse_math=False)
            _label(ax.xaxis, pair.first)
            _label(ax.yaxis, pair.second)
        self.figure_.colorbar(image, ax=list(self.axes_), shrink=0.7, label="score")
        return self


def _last(pair: PairFunction) -> np.ndarray:
    """Values of the (last) output, NaN in cells that no training row was in."""
    values = pair.values if pair.values.ndim == 2 else pair.values[..., -1]
    return np.where(pair.density > 0, values, np.nan)


def _label(axis: Any, names: tuple[str, ...]) -> None:
    ticks = np.unique(np.linspace(0, len(names) - 1, min(_TICKS, len(names))).astype(int))
    texts = [printable(names[k].split(" … ")[0]) for k in ticks]
    axis.set_ticks(ticks, texts, fontsize=7, parse_math=False)
    if axis.axis_name == "x":
        axis.set_tick_params(rotation=90)
