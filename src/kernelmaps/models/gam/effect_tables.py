"""Tables of effects that people read: one row for each band of a number, or for each level.

The effect of a band is that of one value, the mean of the training rows in the band. So the sum of
the effects that a row finds in the tables, and the intercept, is the score of the row whose numbers
are replaced by these values: predictions by tables are those of numbers that are rounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..._util.arguments import is_number, parameter
from ...data.columns import Column
from .codebooks import Codebook
from .predictor import AdditivePredictor

N_BANDS = 20  # of a column by default, between its first and its last percentile
MAX_BANDS = 1000


@dataclass(frozen=True)
class Axis:
    """Rows of a table along one column of the model: "missing", then its bands, or its levels.

    Attributes
    ----------
    book : Codebook
    labels : list
        Intervals or names of levels.
    edges : ndarray
        Where bands begin, the first one excepted; of levels, their positions.
    cells : Column
        A value of the column for each row.
    """

    book: Codebook
    labels: list[Any]
    edges: np.ndarray
    cells: Column

    @property
    def head(self) -> str:
        return "level" if self.book.kind == "category" else "band"

    @property
    def order(self) -> np.ndarray:
        """The rows as they are shown: those of missing values and of other levels at the end."""
        return np.roll(np.arange(len(self.labels)), -2 if self.head == "level" else -1)

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        """The row of the table for each value of the column, as `Codebook.numbers` has them."""
        return np.where(np.isnan(numbers), 0, np.searchsorted(self.edges, numbers, "right") + 1)


def make_axis(book: Codebook, weight: np.ndarray, step: Any, owner: str) -> Axis:
    """The bands or levels of a column, whose codes have these weights of training rows."""
    import pandas as pd

    if book.kind == "category":
        if step is not None:
            raise ValueError(f"{owner}: {parameter('step')} names {book.name!r}, a category.")
        names = [f"({n})" if n in book.levels else n for n in ("missing", "other")]
        levels = [*book.levels, max(book.levels, default="") + "."]  # the last one is unseen
        codes = np.array([-1, len(book.levels), *range(len(book.levels))])
        cells = Column(book.name, None, codes, levels)
        return Axis(book, [*names, *book.levels], np.arange(len(book.levels)), cells)
    edges = _band_edges(book, weight, step, owner)
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    bands = [pd.Interval(*band, closed="left") for band in pairwise(ends.tolist())]
    # The mean of the training rows in a band; of one without rows its middle, or its end.
    inside = np.clip(ends, *(edges[[0, -1]] if len(edges) else (0.0, 0.0)))
    band = np.searchsorted(edges, book.nodes, "right")
    total = np.bincount(band, weight[1:], len(bands))
    means = np.bincount(band, weight[1:] * book.nodes, len(bands)) / np.maximum(total, 1e-300)
    values = np.where(total > 0, means, (inside[1:] + inside[:-1]) / 2)
    cells = Column(book.name, np.append(np.nan, values), None, [])
    return Axis(book, ["missing", *bands], edges, cells)


def _band_edges(book: Codebook, weight: np.ndarray, step: Any, owner: str) -> np.ndarray:
    """Where bands begin, the first one excepted: multiples of a width, or what was asked for."""
    nodes, problem = book.nodes, f"{owner}: {parameter('step')} of column {book.name!r}"
    if step is not None and not (is_number(step) and 0 < step < np.inf):
        edges = np.unique(np.asarray(step)) if isinstance(step, list | tuple | np.ndarray) else None
        if edges is None or edges.dtype.kind not in "fiu" or not np.isfinite(edges).all():
            raise ValueError(
                f"{problem} must be a positive width or a list of numbers where bands begin, got "
                f"{step!r}."
            )
        return edges.astype(np.float64)
    if len(nodes) < 2:
        return np.zeros(0)
    low, high = nodes[0], nodes[-1]
    if step is None:
        low, high = book.quantiles(weight, (0.01, 0.99))
        width = max((high - low) / N_BANDS, np.diff(nodes).min())
        power = 10.0 ** np.floor(np.log10(width))
        step = power * next(m for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-9))
    n_bands = (high - low) / step
    if n_bands > MAX_BANDS:
        raise ValueError(f"{problem} is {step:g}, which makes {n_bands:.0f} bands: raise it.")
    multiples = np.arange(np.floor(low / step) + 1, np.floor(high / step) + 1)
    return np.array([float(f"{edge:.12g}") for edge in multiples * step])  # .3, not .30000000000004


def effect_tables(
    model: AdditivePredictor,
    step: Any,
    rows: Sequence[Column] | None = None,
    exposure: np.ndarray | None = None,
) -> dict[str, Any]:
    """A frame for each term; exposures are summed over `rows`, or are weights of training rows."""
    owner, books = f"{model.estimator}.to_tables", model.books
    if isinstance(step, Mapping):
        steps = {model.reader.position(key, owner, "step"): step[key] for key in step}
    else:
        steps = {j: step for j, book in enumerate(books) if book.kind == "number"}
    weights, tables = model.column_counts, {}
    for t, term in enumerate(model.terms):
        if term.values.ndim != 1 + len(term.columns):
            raise ValueError(
                f"{owner}: the term {term.name!r} is a surface, which has no table of bands or "
                "levels. pair_functions_ has it on a grid, eval_terms(X) at places; with the pair "
                "of its columns in its place, all terms have tables."
            )
        axes = [make_axis(books[j], weights[j], steps.get(j), owner) for j in term.columns]
        if rows is None:
            total = term.counts
            bands = [axis.rows_of(axis.book.numbers_of_codes) for axis in axes]
            if not term.coarse:
                total = np.bincount(bands[0], total, len(axes[0].labels))
            for axis, j, places, coarse in zip(axes, term.columns, bands, term.coarse):
                # Cells of a pair are divided among the bands.
                shares = np.zeros((total.shape[0], len(axis.labels)))
                np.add.at(shares, (coarse, places), weights[j] + 1e-300)
                shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
                total = np.tensordot(total, shares, axes=(0, 0))
        else:
            total = np.zeros([len(axis.labels) for axis in axes])
            numbers = [books[j].numbers(rows[j], owner) for j in term.columns]
            bands = [axis.rows_of(values) for axis, values in zip(axes, numbers)]
            np.add.at(total, tuple(bands), exposure)
        tables[term.name] = _frame(model, t, axes, total)
    return tables


def _frame(model: AdditivePredictor, t: int, axes: Sequence[Axis], total: np.ndarray) -> Any:
    """The table of a term, one row for each cell of its axes (and each output)."""
    import pandas as pd

    grid = np.meshgrid(*(axis.order for axis in axes), indexing="ij")
    places = [place.ravel() for place in grid]
    n, n_outputs = len(places[0]), len(model.intercept)
    columns = [Column(book.name, None, np.full(n, -1), []) for book in model.books]  # all missing
    labels, values = {}, {}
    for axis, j, place in zip(axes, model.terms[t].columns, places, strict=True):
        columns[j] = axis.cells.take(place)
        end = f" of {axis.book.name}" if len(axes) > 1 else ""
        names = pd.Series([axis.labels[k] for k in place], dtype=object)
        labels[axis.head + end] = names.repeat(n_outputs).array
        if axis.head == "band":
            values["value" + end] = columns[j].values.repeat(n_outputs)
    if n_outputs > 1:
        labels[model.output_head] = np.tile(model.output_names, n)
    effect = model.contributions(columns)[:, t].ravel()
    return pd.DataFrame({
        **labels,
        "effect": effect,
        **({"relativity": np.exp(effect)} if model.fitted_loss.has_ratios else {}),
        "standard_error": model.errors(columns)[:, t].ravel(),
        "exposure": total[tuple(places)].repeat(n_outputs),
        **values,
    })  # fmt: skip
