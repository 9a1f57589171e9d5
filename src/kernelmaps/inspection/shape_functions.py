"""Display of the shape functions of an additive model, one panel for each feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..models.shapes import ShapeFunction
from ..printing import printable
from .panels import PanelDisplay
from .shapes import importance, output_names, shape_functions

_LEVELS = 14  # of a category that are drawn
_LETTERS = 34  # that fit below (or above) a panel
_COLORS = ("#2a6f97", "#d1495b", "#66a182", "#edae49", "#7d5ba6", "#8d6e63", "#00798c", "#b5651d",
           "#6b7a8f", "#c06c84")  # fmt: skip


def _require(holds: bool, name: str, value: Any) -> None:
    if not holds:
        raise ValueError(f"ShapeFunctionDisplay: {name} cannot be {value!r}.")


def _chosen(shapes: list[ShapeFunction], feature: int | str) -> ShapeFunction:
    """The shape function of a feature, by number or by name."""
    if isinstance(feature, str):
        found = [shape for shape in shapes if shape.name == feature]
        known = ", ".join(shape.name for shape in shapes[:20])
        if not found:
            raise ValueError(f"ShapeFunctionDisplay: no feature {feature!r} among {known}.")
        return found[0]
    number = isinstance(feature, Integral) and -1 < int(feature) < len(shapes)
    _require(number, f"feature (of {len(shapes)}, from 0 on)", feature)
    return shapes[int(feature)]


class ShapeFunctionDisplay(PanelDisplay):
    """Display of shape functions, with the density of the data below each.

    Parameters
    ----------
    shapes : sequence of ShapeFunction
        What to draw, in order.
    classes : sequence, optional
        Names of the curves in a panel, for more than two classes.
    title : str
        Of the whole figure.

    See Also
    --------
    ShapeFunctionDisplay.from_estimator : draws the most important functions of a fitted model.
    """

    _panel = (2.6, 2.0)
    _border = (4.0, 0.6)
    _share_y = True

    def __init__(
        self,
        shapes: Sequence[ShapeFunction],
        classes: Sequence[Any] | None = None,
        *,
        title: str = "",
    ) -> None:
        self.shapes = list(shapes)
        self.classes = classes
        self.title = title

    def _count(self) -> int:
        return len(self.shapes)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        features: Sequence[int | str] | None = None,
        n_features: int = 12,
        names: Sequence[str] | None = None,
        domain: Any = None,
        axes: Any = None,
        columns: int = 4,
    ) -> ShapeFunctionDisplay:
        """Draw the shape functions of a fitted model.

        Parameters
        ----------
        estimator : AdditiveClassifier, AdditiveRegressor, or a ridge model on an additive map
            Fitted.
        features : sequence of int or str, optional
            Which ones, by number or by name; by default the `n_features` most important, in that
            order (:func:`kernelmaps.inspection.importance`).
        n_features : int
            How many, if `features` is not given.
        names : sequence of str, optional
            Of all features of the model; by default those seen in `fit`.
        domain : (low, high), optional
            Range of each feature, for models that have not kept it.
        axes : sequence of matplotlib axes, optional
            One for each function; a new figure by default.
        columns : int
            Panels in a row of a new figure.

        Returns
        -------
        ShapeFunctionDisplay
            Drawn, with `axes_` and `figure_`.
        """
        display = cls.of_model(
            estimator, features=features, n_features=n_features, names=names, domain=domain
        )
        return display.plot(axes, columns=columns)

    @classmethod
    def of_model(
        cls,
        estimator: Any,
        *,
        features: Sequence[int | str] | None = None,
        n_features: int = 12,
        names: Sequence[str] | None = None,
        domain: Any = None,
    ) -> ShapeFunctionDisplay:
        """Make the display without drawing it; this needs no matplotlib.

        Parameters
        ----------
        estimator : fitted model
            As for :meth:`from_estimator`.
        features : sequence of int or str, optional
            As for :meth:`from_estimator`.
        n_features : int
            As for :meth:`from_estimator`.
        names : sequence of str, optional
            As for :meth:`from_estimator`.
        domain : (low, high), optional
            As for :meth:`from_estimator`.

        Returns
        -------
        ShapeFunctionDisplay
            The display; call `plot`.
        """
        check_is_fitted(estimator)
        if names is not None:
            count = getattr(estimator, "n_features_in_", None)
            _require(len(names) == count, f"names (of all {count} features)", names)
        shapes = shape_functions(estimator, names=names, domain=domain)
        if features is None:
            count = isinstance(n_features, Integral) and int(n_features) >= 1
            _require(count, "n_features", n_features)
            by_importance = sorted(shapes, key=lambda shape: -importance(shape))
            chosen = by_importance[:n_features]
        else:
            _require(len(features) > 0, f"features (of {len(shapes)})", features)
            chosen = [_chosen(shapes, feature) for feature in features]
        title = type(getattr(estimator, "estimator_", estimator)).__name__
        return cls(chosen, output_names(estimator), title=title)

    def plot(self, axes: Any = None, *, columns: int = 4) -> ShapeFunctionDisplay:
        """Draw the panels, all on the same vertical scale, so that tall curves are important ones.

        Parameters
        ----------
        axes : sequence of matplotlib axes, optional
            One for each function; a new figure by default.
        columns : int
            Panels in a row of a new figure.

        Returns
        -------
        self : ShapeFunctionDisplay
            The display.
        """
        _require(isinstance(columns, Integral) and int(columns) >= 1, "columns", columns)
        enough = axes is None or np.size(axes) >= len(self.shapes)
        _require(enough, f"axes (one for each of {len(self.shapes)} functions)", axes)
        self.axes_ = self._axes(axes, columns)
        self.figure_ = self.axes_[0].figure
        low = min(float(s.values.min()) for s in self.shapes)
        high = max(float(s.values.max()) for s in self.shapes)
        margin = 0.06 * (high - low) or 1.0
        floor = low - 4 * margin  # room for the density
        for index, (ax, shape) in enumerate(zip(self.axes_, self.shapes, strict=True)):
            self._draw(ax, _fewer_levels(shape), floor, low - margin, high + margin)
            spec = ax.get_subplotspec()
            if spec is None or spec.is_first_col() or index == 0:
                ax.set_ylabel("score", fontsize=8)
        if self.classes is not None:
            handles = self.axes_[0].get_lines()[: len(self.classes)]
            legend = self.figure_.legend(
                handles, [printable(str(c)) for c in self.classes], loc="outside lower center",
                ncols=self._legend_columns(), frameon=False, fontsize=8,
            )  # fmt: skip
            for text in legend.get_texts():
                text.set_parse_math(False)
        return self

    def _legend_columns(self) -> int:
        """As many names beside each other as the figure is wide."""
        longest = max(len(printable(str(label))) for label in self.classes or [""])
        room = self.figure_.get_size_inches()[0] / (0.075 * longest + 0.5)  # inches of 8 points
        return max(1, min(10, int(room), len(self.classes or [""])))

    def _draw(self, ax: Any, shape: ShapeFunction, floor: float, low: float, high: float) -> None:
        values = shape.values[:, None] if shape.values.ndim == 1 else shape.values
        errors = None if shape.errors is None else shape.errors.reshape(values.shape)
        for k in range(values.shape[1]):
            band = None if errors is None else 2 * errors[:, k]
            color = _COLORS[k % len(_COLORS)]
            if shape.levels is not None:
                ax.errorbar(shape.grid, values[:, k], yerr=band, fmt="o", color=color, ms=4, lw=1.2)
                continue
            ax.plot(shape.grid, values[:, k], color=color, lw=1.6, solid_capstyle="round")
            if band is not None:
                low_band, high_band = values[:, k] - band, values[:, k] + band
                ax.fill_between(shape.grid, low_band, high_band, color=color, alpha=0.2, lw=0)
            elif values.shape[1] == 1:
                ax.fill_between(shape.grid, values[:, k], 0, color=color, alpha=0.12, lw=0)
        if shape.levels is not None:
            names = [_short(printable(level)) for level in shape.levels]
            wide = sum(map(len, names)) + 2 * len(names) > _LETTERS
            ax.set_xticks(shape.grid, names, rotation=90 if wide else 0, parse_math=False)
        if shape.missing is not None:
            _draw_missing(ax, shape, shape.missing, (floor + high) / 2)
        ax.axhline(0, color="0.55", lw=0.7, zorder=0)
        peak = float(shape.density.max()) or 1.0
        height = 0.9 * (low - floor) * np.sqrt(shape.density / peak)  # √: rare values stay visible
        ax.bar(
            shape.edges[:-1], height, width=np.diff(shape.edges), bottom=floor, align="edge",
            color="0.72", lw=0,
        )  # fmt: skip
        ax.set_ylim(floor, high)
        ax.margins(x=0.01)
        ax.set_title(_short(printable(shape.name), _LETTERS), fontsize=9, pad=3, parse_math=False)
        ax.tick_params(labelsize=7, length=2)
        ax.spines[["top", "right"]].set_visible(False)


def _fewer_levels(shape: ShapeFunction) -> ShapeFunction:
    """Of many levels those with the largest effects, whose names have room."""
    if shape.levels is None or len(shape.levels) <= _LEVELS:
        return shape
    size = np.abs(shape.values.reshape(len(shape.levels), -1)).max(axis=1)
    kept = np.sort(np.argsort(-size, kind="stable")[:_LEVELS])
    return replace(
        shape,
        name=f"{_short(shape.name, _LETTERS - 14)} ({_LEVELS} of {len(shape.levels)} levels)",
        grid=np.arange(float(_LEVELS)),
        edges=np.arange(_LEVELS + 1) - 0.5,
        values=shape.values[kept],
        errors=None if shape.errors is None else shape.errors[kept],
        density=shape.density[kept],
        levels=tuple(shape.levels[k] for k in kept),
    )


def _short(name: str, longest: int = 18) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _draw_missing(ax: Any, shape: ShapeFunction, missing: np.ndarray, middle: float) -> None:
    """The value of rows where the feature is missing, to the right of all others."""
    low, high = float(shape.edges[0]), float(shape.edges[-1])
    place = high + 0.09 * (high - low) if shape.levels is None else high + 0.5
    values, errors = missing.reshape(2, -1)
    for k, (value, error) in enumerate(zip(values, errors, strict=True)):
        ax.errorbar(
            place, value, yerr=2 * error, fmt="D", color=_COLORS[k % len(_COLORS)], ms=3, lw=1
        )
    end, side = (0.02, "bottom") if values[0] > middle else (0.98, "top")  # away from the value
    ax.text(
        place, end, "missing", transform=ax.get_xaxis_transform(), rotation=90, ha="center",
        va=side, fontsize=6, color="0.4",
    )  # fmt: skip
