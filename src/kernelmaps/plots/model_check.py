"""Display of the check of a model: QQ plot, and residuals against fitted values and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .._util.display import printable, shorten, write_numbers
from .._util.threads import evenly_spaced
from .panels import STYLE, PanelDisplay

_MAX_POINTS = 3000  # of a panel; more are a black area, and slow
_TREND_GROUPS = 12  # of rows with about the same value, whose mean residuals are joined


@dataclass(eq=False, repr=False)
class CheckDisplay(PanelDisplay):
    """Display of residuals: QQ plot, residuals against fitted values and against columns.

    A line joins the mean residuals of groups of rows: it stays near zero if the model is right.

    Parameters
    ----------
    qq : pair of ndarray of shape (n_samples,)
        Normal quantiles and sorted residuals.
    residuals, fitted : ndarray of shape (n_samples,)
        Residuals (quantile residuals, best) and scores of rows.
    columns : mapping of str to ndarray
        Columns to draw residuals against: numbers, or names of levels.
    title : str
        Of the whole figure.

    See Also
    --------
    CheckDisplay.from_estimator : checks a fitted model on rows.
    """

    qq: tuple[np.ndarray, np.ndarray]
    residuals: np.ndarray
    _: KW_ONLY
    fitted: np.ndarray
    columns: Mapping[str, np.ndarray]
    title: str = ""

    _panel, _border = (2.8, 2.3), (4.0, 0.5)

    @classmethod
    def from_check(cls, check: Any, features: Sequence[str] | None = None) -> CheckDisplay:
        """Make the display of a result of `check`, and draw nothing yet.

        Parameters
        ----------
        check : GamCheck
            What `AdditiveRegressor.check` or `AdditiveClassifier.check` returned.
        features : sequence of str, optional
            Columns to draw residuals against; by default all with a term.

        Returns
        -------
        CheckDisplay
            The display; call `plot`.
        """
        unknown = [name for name in features or () if name not in check.columns]
        if unknown:
            available = ", ".join(list(check.columns)[:20])
            raise ValueError(f"CheckDisplay: no column {unknown[0]!r} among {available}.")
        names = check.columns if features is None else features
        residuals = check.quantile_residuals
        return cls(
            check.qq(), check.deviance_residuals if residuals is None else residuals,
            fitted=check.fitted, columns={name: check.columns[name] for name in names},
            title=check.name,
        )  # fmt: skip

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, features: Sequence[str] | None = None,
        axes: Any = None, columns: int = 4,
    ) -> CheckDisplay:  # fmt: skip
        """Check a fitted model on rows, and draw the result.

        Parameters
        ----------
        estimator : AdditiveRegressor or AdditiveClassifier
            Fitted.
        X : frame or array-like of shape (n_samples, n_features)
            Rows, best those that the model was fitted on.
        y : array-like of shape (n_samples,)
            Their targets.
        features : sequence of str, optional
            Columns to draw residuals against; by default all with a term.
        axes : sequence of matplotlib axes, optional
            One for each panel; a new figure by default.
        columns : int
            Panels in a row of a new figure.

        Returns
        -------
        CheckDisplay
            The display, drawn.
        """
        return cls.from_check(estimator.check(X, y), features).plot(axes, columns=columns)

    @property
    def panels(self) -> list[dict[str, Any]]:
        """All that is drawn, as numbers and words."""
        theoretical, observed = self.qq
        shown = evenly_spaced(len(observed), _MAX_POINTS)
        panels = [
            {
                "name": "QQ plot", "x": theoretical[shown], "y": observed[shown], "levels": None,
                "trend": (theoretical[[0, -1]], theoretical[[0, -1]]),
                "labels": ("normal quantile", "residual"),
            }
        ]  # fmt: skip
        for name, values in {"fitted": self.fitted, **self.columns}.items():
            panels.append(self._make_panel(name, values))
        return panels

    def _make_panel(self, name: str, values: np.ndarray) -> dict[str, Any]:
        """Residuals against the values of a column."""
        levels, residuals = None, self.residuals
        if values.dtype == object:
            names, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
            shown = np.sort(np.argsort(-counts, kind="stable")[: STYLE.max_levels])
            rows = np.isin(codes, shown)
            levels = [str(names[k]) for k in shown]
            values, residuals = np.searchsorted(shown, codes[rows]), residuals[rows]
        rows = np.flatnonzero(np.isfinite(values))
        values, residuals = values[rows], residuals[rows]
        shown = evenly_spaced(len(values), _MAX_POINTS)
        return {
            "name": name, "x": values[shown], "y": residuals[shown], "levels": levels,
            "trend": _means(values, residuals, levels), "labels": ("", "residual"),
        }  # fmt: skip

    def plot(self, axes: Any = None, *, columns: int = 4) -> CheckDisplay:
        """Draw the panels.

        Parameters
        ----------
        axes : sequence of matplotlib axes, optional
            One for each panel; a new figure by default.
        columns : int
            Panels in a row of a new figure.

        Returns
        -------
        self : CheckDisplay
            The display.
        """
        self._set_axes(axes, columns)
        for ax, panel in zip(self.axes_, self.panels, strict=False):
            ax.plot(panel["x"], panel["y"], ".", color="#2a6f97", ms=3, alpha=0.5, zorder=1)
            ax.plot(*panel["trend"], color="#d1495b", lw=1.2, zorder=2)
            ax.axhline(0, color="0.55", lw=0.7, zorder=0)
            write_numbers(ax.xaxis, ax.yaxis)
            if panel["levels"] is not None:
                names = [shorten(printable(level), 14) for level in panel["levels"]]
                STYLE.label_levels(ax, range(len(names)), names)
            name = shorten(printable(panel["name"]), STYLE.letters)
            ax.set_title(name, fontsize=9, pad=3, parse_math=False)
            ax.set_xlabel(panel["labels"][0], fontsize=8)
            ax.set_ylabel(panel["labels"][1], fontsize=8)
            ax.tick_params(labelsize=7, length=2)
            ax.spines[["top", "right"]].set_visible(False)
        return self


def _means(
    values: np.ndarray, residuals: np.ndarray, levels: list[str] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean values and residuals of groups of rows: levels, or about as many rows each."""
    if levels is not None:
        groups = [np.flatnonzero(values == k) for k in range(len(levels))]
    else:
        order = np.argsort(values, kind="stable")
        groups = np.array_split(order, min(_TREND_GROUPS, len(order)))
    means = [(values[rows].mean(), residuals[rows].mean()) for rows in groups if len(rows)]
    first, second = np.array(means).reshape(-1, 2).T
    return first, second
