"""Displays of several panels: the shape functions of an additive model, and its pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from io import BytesIO
from itertools import cycle
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .._util import storage
from .._util.arguments import check_count, is_number
from .._util.display import plain_number, printable, shorten, write_numbers
from .._util.threads import evenly_spaced
from ..models.shapes import (
    PairFunction,
    ShapeFunction,
    estimator_name,
    require_fitted,
    score_name,
)
from .shapes import output_names, pair_functions, shape_functions, sort_by_importance

_COLORS = ("#2a6f97", "#d1495b", "#66a182", "#edae49", "#7d5ba6", "#8d6e63", "#00798c", "#b5651d",
           "#6b7a8f", "#c06c84")  # fmt: skip


@dataclass(frozen=True)
class PanelStyle:
    """What a panel shows, and how much fits into it; set by looking at pages of the gallery."""

    max_levels: int = 14  # of a category
    max_bands: int = 3  # curves with bands: those of more hide each other
    margin: float = 0.06  # above and below the curves, as a share of their range
    letters: int = 34  # that fit below or above a panel
    max_ticks: int = 8  # of an axis of a pair
    max_numbers: int = 4  # intervals between numbers below a panel
    max_points: int = 1500  # partial residuals
    points_within: int = 99  # percent of them that the vertical scale has room for, on either side
    upright_names: int = 7  # of values, that fit next to each other below a panel
    cells_within: int = 98  # percent of the cells whose colours differ

    def label_levels(self, ax: Any, places: Any, names: Sequence[str]) -> None:
        """Write the names of levels below a panel, upright if they do not fit."""
        wide = sum(map(len, names)) + 2 * len(names) > self.letters
        ax.set_xticks(places, names, rotation=90 if wide else 0, parse_math=False)


STYLE = PanelStyle()


def write_figure(figure: Any, path: str | Path) -> Path:
    """Write a figure in the format of the suffix, as `storage.write_file` does; the file.

    A name without a suffix gets matplotlib's default one, unless it is that of a pipe or a device.
    """
    target = Path(path)
    is_special = target.exists() and not target.is_file() and not target.is_dir()
    kind = target.suffix[1:] or figure.canvas.get_default_filetype()
    if not target.suffix and not is_special:
        target = target.with_name(f"{target.name}.{kind}")
    picture = BytesIO()
    figure.savefig(picture, format=kind)
    storage.write_file(target, picture.getvalue())
    return target


class PanelDisplay(ABC):
    """A display that draws itself on axes, a panel for each item; subclasses have `plot`."""

    title: str
    _panel: ClassVar[tuple[float, float]]  # inches
    _border: ClassVar[tuple[float, float]]  # inches: least width of a figure, height of the rest
    _share_y = False  # whether all panels have one vertical scale
    _saved_columns = 4  # panels side by side in a file

    def save(self, path: str | Path) -> Path:
        """Draw on a new figure without a window and write it to a file.

        Parameters
        ----------
        path : path
            File to write; its suffix (png, svg or pdf) is the format. A name without one gets
            the suffix png.

        Returns
        -------
        Path
            The file.
        """
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained", dpi=130)
        self.plot(self._panels(figure, self._saved_columns))
        return write_figure(figure, path)

    @property
    @abstractmethod
    def panels(self) -> list[dict[str, Any]]:
        """All that is drawn of each function, as numbers and words."""

    @abstractmethod
    def plot(self, axes: Any = None) -> Any:
        """Draw the panels on axes, or on a new figure."""

    def _set_axes(self, axes: Any, columns: int) -> None:
        """One of `axes` for each panel; those of a new figure if there are none."""
        if axes is None:
            import matplotlib.pyplot as plt

            axes = self._panels(plt.figure(layout="constrained"), columns)
        self.axes_ = np.ravel(axes)[: len(self.panels)]
        self.figure_ = self.axes_[0].figure

    def _panels(self, figure: Any, columns: int) -> np.ndarray:
        """Axes of a figure, in rows of `columns`, and its title."""
        count = len(self.panels)
        columns = min(columns, count)
        rows = -(-count // columns)
        least, more = self._border
        figure.set_size_inches(max(least, self._panel[0] * columns), self._panel[1] * rows + more)
        axes = figure.subplots(rows, columns, sharey=self._share_y, squeeze=False).ravel()
        for ax in axes[count:]:
            ax.remove()
        figure.suptitle(printable(self.title), fontsize=11, parse_math=False)
        return axes[:count]


# ---- functions of one feature --------------------------------------------------------------------


def _require(holds: bool, name: str, value: Any) -> None:
    if not holds:
        raise ValueError(f"ShapeFunctionDisplay: {name} cannot be {value!r}.")


def _shape_of(shapes: list[ShapeFunction], feature: int | str) -> ShapeFunction:
    """The shape function of a feature, by number or by name."""
    if isinstance(feature, str):
        matches = [shape for shape in shapes if shape.name == feature]
        names = ", ".join(shape.name for shape in shapes[:20])
        if not matches:
            raise ValueError(f"ShapeFunctionDisplay: no feature {feature!r} among {names}.")
        return matches[0]
    number = is_number(feature, Integral) and -1 < int(feature) < len(shapes)
    _require(number, f"feature (of {len(shapes)}, from 0 on)", feature)
    return shapes[int(feature)]


def _shape_panel(
    shape: ShapeFunction, simultaneous: bool = False, check: Any = None
) -> dict[str, Any]:
    """What is drawn of a function, as numbers that are ready for it.

    Entries are its name, grid, values (m, n_outputs) and the ends of their band, of two standard
    errors or simultaneous; edges and heights
    of the bars of the density, square roots so that rare values stay visible, and the shares of the
    data; of a category the levels that are drawn, and how many have smaller effects; for a missing
    value (n_outputs, 3) value and ends of its band; ticks, values of the feature that have a name,
    with it; points (n, 2), the partial residuals of a check of the model; and the range of the
    values and of zero (and of most points), with a margin, which a missing value does not decide,
    as it may be rare and uncertain.
    """
    shape = shape.two_values_as_levels()
    count = len(shape.grid)
    values, shown = shape.values.reshape(count, -1), np.arange(count)
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    if shape.levels is not None:  # those with the largest effects
        size = np.abs(values).max(axis=1)
        largest = np.argsort(-size, kind="stable")[: STYLE.max_levels]
        shown = (order := shape.level_order())[np.isin(order, largest)]
    points = None if check is None else _partial_residuals(shape, shown, check)
    if points is not None and len(points):
        ends = np.percentile(points[:, 1], [100 - STYLE.points_within, STYLE.points_within])
        low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    margin = STYLE.margin * (high - low) or 1.0
    lower = upper = missing = None
    if shape.errors is not None and values.shape[1] <= STYLE.max_bands:
        band = 2 * shape.errors
        if simultaneous:
            band = shape.band(simultaneous=True)[1] - shape.values
        band = band.reshape(values.shape)
        lower, upper = (values - band)[shown], (values + band)[shown]
    if shape.missing is not None:
        value, error = shape.missing.reshape(2, -1)
        missing = np.stack([value, value - 2 * error, value + 2 * error], axis=1)
    shares = shape.density if shape.levels is None else shape.density[shown]
    left, right = float(shape.grid[0]), float(shape.grid[-1])
    return {
        "name": shape.name,
        "grid": shape.grid[: len(shown)],
        "values": values[shown],
        "lower": lower,
        "upper": upper,
        "edges": shape.edges[: len(shares) + 1],
        "heights": np.sqrt(shares / (float(shares.max()) or 1.0)),
        "shares": shares,
        "levels": None if shape.levels is None else [shape.levels[k] for k in shown],
        "left_out": count - len(shown),
        "missing": missing,
        "points": points,
        "ticks": None if shape.ticks is None else [t for t in shape.ticks if left <= t[0] <= right],
        "range": (low - margin, high + margin),
    }


def _partial_residuals(shape: ShapeFunction, shown: np.ndarray, check: Any) -> np.ndarray | None:
    """Partial residuals of some rows against the column, levels by their place in the panel."""
    if shape.name not in check.partial_residuals:
        return None
    column, residuals = check.columns[shape.name], check.partial_residuals[shape.name]
    if shape.levels is not None:
        place = {shape.levels[level]: k for k, level in enumerate(shown)}
        names = [name if isinstance(name, str) else plain_number(name) for name in column.tolist()]
        column = np.array([place.get(name, np.nan) for name in names], float)
    rows = np.flatnonzero(np.isfinite(column))
    rows = rows[evenly_spaced(len(rows), STYLE.max_points)]
    return np.column_stack([column[rows], residuals[rows]])


@dataclass(eq=False, repr=False)
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
    score : str
        What the functions add to, the name of the vertical axes: "log-odds of class Yes", say.
    simultaneous : bool
        Whether bands of 95 % cover whole functions at once, or each point (two standard errors).
    check : GamCheck, optional
        Check of the model on rows, whose partial residuals are drawn as points.

    See Also
    --------
    ShapeFunctionDisplay.from_estimator : draws the most important functions of a fitted model.
    """

    shapes: Sequence[ShapeFunction]
    classes: Sequence[Any] | None = None
    _: KW_ONLY
    title: str = ""
    score: str = "score"
    simultaneous: bool = False
    check: Any = None

    _panel, _border, _share_y = (2.6, 2.0), (4.0, 0.6), True

    @property
    def panels(self) -> list[dict[str, Any]]:
        """All that is drawn of each function, as numbers and words."""
        return [_shape_panel(shape, self.simultaneous, self.check) for shape in self.shapes]

    @property
    def limits(self) -> tuple[float, float]:
        """The common range of all panels."""
        low, high = zip(*(panel["range"] for panel in self.panels), strict=True)
        return min(low), max(high)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, axes: Any = None, columns: int = 4, **options: Any
    ) -> ShapeFunctionDisplay:
        """Draw the shape functions of a fitted model.

        Parameters
        ----------
        estimator : additive model, a ridge model on an additive map, or the predictor of one
            Fitted.
        axes : sequence of matplotlib axes, optional
            One for each function; a new figure by default.
        columns : int
            Panels in a row of a new figure.
        **options : dict
            Which functions, and how: see :meth:`from_model`.

        Returns
        -------
        ShapeFunctionDisplay
            Drawn, with `axes_` and `figure_`.
        """
        return cls.from_model(estimator, **options).plot(axes, columns=columns)

    @classmethod
    def from_model(
        cls,
        estimator: Any,
        *,
        features: Sequence[int | str] | None = None,
        n_features: int = 12,
        names: Sequence[str] | None = None,
        domain: Any = None,
        simultaneous: bool = False,
        derivative: bool = False,
        check: Any = None,
    ) -> ShapeFunctionDisplay:
        """Make the display without drawing it; this needs no matplotlib.

        Parameters
        ----------
        estimator : additive model, a ridge model on an additive map, or the predictor of one
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
        simultaneous : bool
            Whether bands of 95 % cover whole functions at once, or each point (two standard
            errors).
        derivative : bool
            Whether the slopes of the curves are drawn in place of the curves.
        check : GamCheck, optional
            Result of ``estimator.check(X, y)``, whose partial residuals are drawn as points.

        Returns
        -------
        ShapeFunctionDisplay
            The display; call `plot`.
        """
        require_fitted(estimator)
        if names is not None:
            count = getattr(estimator, "n_features_in_", None)
            _require(len(names) == count, f"names (of all {count} features)", names)
        check_count("ShapeFunctionDisplay", "n_features", n_features)
        shapes = shape_functions(estimator, names=names, domain=domain)
        selected = sort_by_importance(shapes)[:n_features]
        if features is not None:
            _require(len(features) > 0, f"features (of {len(shapes)})", features)
            selected = [_shape_of(shapes, feature) for feature in features]
        if derivative:
            selected = [shape.derivative() for shape in selected if shape.has_derivative]
            _require(len(selected) > 0, "derivative (of functions without a slope)", derivative)
        return cls(
            selected, output_names(estimator), title=estimator_name(estimator),
            score=score_name(estimator), simultaneous=simultaneous, check=check,
        )  # fmt: skip

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
        check_count("ShapeFunctionDisplay", "columns", columns)
        enough = axes is None or np.size(axes) >= len(self.shapes)
        _require(enough, f"axes (one for each of {len(self.shapes)} functions)", axes)
        self._set_axes(axes, columns)
        low, high = self.limits
        floor = low - 0.18 * (high - low)  # room for the density
        for index, (ax, panel) in enumerate(zip(self.axes_, self.panels, strict=True)):
            self._draw(ax, panel, floor, low, high)
            spec = ax.get_subplotspec()
            if spec is None or spec.is_first_col() or index == 0:
                ax.set_ylabel(shorten(printable(self.score), STYLE.letters), fontsize=7)
        if self.classes is not None:
            labels = [printable(str(label)) for label in self.classes]
            # As many names next to each other as the figure is wide, in inches of 8 points.
            fit = self.figure_.get_size_inches()[0] / (0.075 * max(map(len, labels)) + 0.5)
            legend = self.figure_.legend(
                self.axes_[0].get_lines()[: len(labels)], labels, loc="outside lower center",
                ncols=max(1, min(10, int(fit), len(labels))), frameon=False, fontsize=8,
            )  # fmt: skip
            for text in legend.get_texts():
                text.set_parse_math(False)
        return self

    def _draw(self, ax: Any, panel: dict[str, Any], floor: float, low: float, high: float) -> None:
        from matplotlib.ticker import MaxNLocator

        grid, levels = panel["grid"], panel["levels"]
        for k, (color, values) in enumerate(zip(cycle(_COLORS), panel["values"].T)):
            ends = None if panel["lower"] is None else (panel["lower"][:, k], panel["upper"][:, k])
            if levels is not None:
                whiskers = None if ends is None else np.abs(ends - values)
                ax.errorbar(grid, values, yerr=whiskers, fmt="o", color=color, ms=4, lw=1.2)
                continue
            ax.plot(grid, values, color=color, lw=1.6, solid_capstyle="round")
            if ends is not None:
                ax.fill_between(grid, *ends, color=color, alpha=0.2, lw=0)
            elif panel["values"].shape[1] == 1:
                ax.fill_between(grid, values, 0, color=color, alpha=0.12, lw=0)
        if panel["points"] is not None:
            ax.plot(*panel["points"].T, ".", color="0.45", ms=2, alpha=0.5, zorder=0)
        name = printable(panel["name"])
        if levels is not None:
            names = [shorten(printable(level), 18) for level in levels]
            STYLE.label_levels(ax, grid, names)
            if panel["left_out"]:
                count = f" ({len(names)} of {len(names) + panel['left_out']} levels)"
                name = shorten(name, STYLE.letters - 14) + count
        write_numbers(ax.yaxis)
        if levels is None:
            is_whole = bool((grid % 1 == 0).all())
            ax.xaxis.set_major_locator(
                MaxNLocator(STYLE.max_numbers, steps=[1, 2, 2.5, 5, 10], integer=is_whole)
            )
            write_numbers(ax.xaxis)
        if panel["ticks"]:
            places, words = zip(*panel["ticks"], strict=True)
            ax.set_xticks(places, words, rotation=90 if len(words) > STYLE.upright_names else 0)
        if panel["missing"] is not None:
            _draw_missing(ax, panel, (floor + high) / 2)
        ax.axhline(0, color="0.55", lw=0.7, zorder=0)
        ax.bar(
            panel["edges"][:-1], 0.9 * (low - floor) * panel["heights"], bottom=floor,
            width=np.diff(panel["edges"]), align="edge", color="0.72", lw=0,
        )  # fmt: skip
        ax.set_ylim(floor, high)
        ax.margins(x=0.01)
        ax.set_title(shorten(name, STYLE.letters), fontsize=9, pad=3, parse_math=False)
        ax.tick_params(labelsize=7, length=2)
        ax.spines[["top", "right"]].set_visible(False)


def _draw_missing(ax: Any, panel: dict[str, Any], middle: float) -> None:
    """The value of rows where the feature is missing, to the right of all others."""
    low, high = float(panel["edges"][0]), float(panel["edges"][-1])
    place = high + 0.09 * (high - low) if panel["levels"] is None else high + 0.5
    for color, (value, lower, upper) in zip(cycle(_COLORS), panel["missing"]):
        whisker = [[value - lower], [upper - value]]
        ax.errorbar(place, value, yerr=whisker, fmt="D", color=color, ms=3, lw=1)
    end, side = (0.02, "bottom") if panel["missing"][0, 0] > middle else (0.98, "top")  # away
    ax.text(
        place, end, "missing", transform=ax.get_xaxis_transform(), rotation=90, ha="right",
        va=side, fontsize=6, color="0.4",
    )  # fmt: skip


# ---- pairs ---------------------------------------------------------------------------------------


def _pair_panel(pair: PairFunction) -> dict[str, Any]:
    """What is drawn of a pair: values (m, k, n_outputs), NaN where no training row was, and words.

    These are its name, that of the first feature, which is drawn across, the labels of the cells
    along both features, and the same in short as ticks: where a bin begins.
    """
    labels = pair.first, pair.second
    values = pair.values if pair.values.ndim == 3 else pair.values[..., None]
    values = np.where(pair.density[..., None] > 0, values, np.nan)
    ticks = [[label.split(" … ")[0] for label in axis_labels] for axis_labels in labels]
    words = {"name": pair.name, "across": pair.across, "labels": labels, "ticks": ticks}
    return {**words, "values": values}


@dataclass(eq=False, repr=False)
class PairFunctionDisplay(PanelDisplay):
    """Display of pairs as heat maps; cells without training rows are blank.

    Parameters
    ----------
    pairs : sequence of PairFunction
        What to draw, in order; for several classes the last one's.
    title : str
        Of the whole figure.
    score : str
        What the functions add to, the name of the colours.

    See Also
    --------
    PairFunctionDisplay.from_estimator : takes the pairs of a fitted model.
    """

    pairs: Sequence[PairFunction]
    title: str = ""
    score: str = "score"

    _panel, _border, _saved_columns = (3.4, 2.8), (4.5, 0.4), 3

    @property
    def panels(self) -> list[dict[str, Any]]:
        """All that is drawn of each pair, as numbers and words."""
        return [_pair_panel(pair) for pair in self.pairs]

    @property
    def limits(self) -> np.ndarray:
        """Where the colours end, for each output: most cells are within.

        A single cell with few rows would wash out all others.
        """
        values = [panel["values"] for panel in self.panels]
        sizes = [np.abs(cells).reshape(-1, cells.shape[-1]) for cells in values]
        limits = np.nanpercentile(np.concatenate(sizes), STYLE.cells_within, axis=0, method="lower")
        return np.where(limits > 0, limits, 1.0)

    @classmethod
    def from_estimator(cls, estimator: Any) -> PairFunctionDisplay:
        """Take the pairs of a fitted model, and draw nothing yet.

        Parameters
        ----------
        estimator : AdditiveClassifier or AdditiveRegressor, or the predictor of one
            Fitted with `interactions`.

        Returns
        -------
        PairFunctionDisplay
            The display; call `plot`.
        """
        require_fitted(estimator)
        pairs = pair_functions(estimator)
        if not pairs:
            raise ValueError(
                f"PairFunctionDisplay: this {estimator_name(estimator)} has no pairs; fit it with "
                "interactions='auto' or a list of pairs."
            )
        names = output_names(estimator)  # the last one's is drawn
        score = score_name(estimator, output=len(names) - 1 if names else None)
        return cls(pairs, estimator_name(estimator), score)

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
        self._set_axes(axes, columns)
        largest = float(self.limits[-1])
        for ax, panel in zip(self.axes_, self.panels, strict=True):
            image = ax.imshow(
                panel["values"][..., -1].T, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto",
                origin="lower",
            )  # fmt: skip
            ax.set_title(printable(panel["name"]), fontsize=9, parse_math=False)
            for axis, names in zip((ax.xaxis, ax.yaxis), panel["ticks"], strict=True):
                ticks = evenly_spaced(len(names), STYLE.max_ticks)
                shown = [printable(names[k]) for k in ticks]
                axis.set_ticks(ticks, shown, fontsize=7, parse_math=False)
            ax.xaxis.set_tick_params(rotation=90)
        label = printable(self.score)
        bar = self.figure_.colorbar(
            image, ax=list(self.axes_), shrink=0.7, label=label, extend="both"
        )
        write_numbers(bar.ax.yaxis)
        return self
