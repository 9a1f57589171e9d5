"""What a fitted model says of its terms: a summary, shape functions and heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, ClassVar

import numpy as np

from ..._util.display import html_of, plain_number, table_of
from ..shapes import PairFunction, ShapeFunction, tabulated_importance
from .codebooks import MISSING, OTHER, Codebook
from .predictor import AdditivePredictor, FittedTerm

SHRUNK_EDF = 0.1  # a term with less is said to be shrunk to nothing
PAIRS_NOTE = (
    "what they hold of one column alone is counted to the term of that column, in edf and range "
    "as in plots; p of a column is that of the column together with its pairs"
)
_DENSITY_BINS = 24  # of the histogram below a curve
_SURFACE_SIDE = 40  # points of the grid of a surface along each column


def align_cells(lines: Sequence[Sequence[str]], n_left: int) -> list[str]:
    """Lines of text from cells, the first columns at the left and the others at the right."""
    width = [max(map(len, column)) for column in zip(*lines, strict=True)]
    justify = [str.ljust if k < n_left else str.rjust for k in range(len(width))]
    return [
        "  ".join(place(*cell) for place, cell in zip(justify, zip(line, width))).rstrip()
        for line in lines
    ]


def format_p_value(p: float) -> str:
    return "<1e-16" if p < 1e-16 else f"{p:.2g}"


@dataclass(frozen=True)
class FactsTable:
    """Facts and a table, as text, in a notebook and as a frame."""

    title: str
    facts: dict[str, str]
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    records: list[dict[str, Any]]
    n_left: ClassVar[int] = 0  # columns of names

    def to_frame(self) -> Any:
        """Return the numbers as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            The columns are the entries of `records`.
        """
        import pandas as pd

        return pd.DataFrame(self.records)

    def __str__(self) -> str:
        facts = (f"  {key}: {value}" for key, value in self.facts.items())
        table = align_cells([self.columns, *self.rows], self.n_left)
        return "\n".join([self.title, *facts, "", *table])

    def _repr_html_(self) -> str:
        facts = "".join(f"<li>{escape(k)}: {escape(v)}</li>" for k, v in self.facts.items())
        return f"<ul>{facts}</ul>{html_of(table_of(self.columns, self.rows, self.title))}"


@dataclass(frozen=True)
class GamSummary(FactsTable):
    """A table of the terms: print it, or show it in a notebook.

    Attributes
    ----------
    title : str
    facts : dict of str to str
        Loss, rows, degrees of freedom and so on.
    columns : tuple of str
        Heads of the table.
    rows : list of tuple
        One for each term and output, as text.
    records : list of dict
        The same as numbers: ``term``, ``kind``, ``edf``, ``ref_df``, ``statistic`` (F or χ²),
        ``p_value``, ``importance``, the range ``low`` to ``high`` of the function and, for more
        than two classes, ``class``.
    variance_components : list of dict
        Standard deviations of the effects of levels, of their slopes, or of their curves, and the
        root of the dispersion where that is estimated: ``component`` (a category, a pair with one,
        or ``"noise"``), ``sd``, the ends ``low`` and ``high`` of its interval of 95 % and, for more
        than two classes, ``class``.
    """

    variance_components: list[dict[str, Any]] = field(default_factory=list)
    n_left = 2


def summarise(
    title: str, model: AdditivePredictor, facts: dict[str, Any], outputs: Sequence[str],
    statistic: str, noise: np.ndarray | None = None,
) -> GamSummary:  # fmt: skip
    """Degrees of freedom, range and significance of every term; `statistic` is "F" or "chi²".

    `noise` is the root of the dispersion and the ends of its interval, by output.
    """
    records = []
    if model.fitted_loss.link == "softmax":
        outputs = outputs[:1]
    several, head = len(outputs) > 1, model.output_head
    for term in sorted(model.pure_terms, key=lambda term: -term.importance):
        for k, output in enumerate(outputs):
            row_outputs = slice(k, k + 1) if several else slice(None)  # outputs of the row
            values = term.values[term.counts > 0][:, row_outputs]
            low, high = (values.min(), values.max()) if values.size else (0.0, 0.0)
            records.append({
                "term": term.name, "kind": term.kind, "edf": float(term.edf[row_outputs].sum()),
                "ref_df": float(term.reference_df[k]), "statistic": float(term.statistic[k]),
                "p_value": float(term.p_value[k]),
                "importance": tabulated_importance(term.values[..., row_outputs], term.counts),
                "low": float(low), "high": float(high),
            } | ({head: output} if several else {}))  # fmt: skip
    shrunk = [term.name for term in model.pure_terms if term.edf.max() < SHRUNK_EDF]
    if shrunk:
        facts = {**facts, "shrunk to nothing": ", ".join(shrunk)}
    if any(term.coarse for term in model.terms):
        facts = {**facts, "pairs": PAIRS_NOTE}
    components = [
        {"component": name, "sd": float(sd[0]), "low": float(sd[1]), "high": float(sd[2])}
        | ({head: output} if several else {})
        for name, output_sds in [*_level_sds(model), *([] if noise is None else [("noise", noise)])]
        for output, sd in zip(outputs, output_sds.T)
    ]

    def format_numbers(item: dict[str, Any], *names: str) -> list[str]:
        return [plain_number(item[name], 3) for name in names]

    if _level_sds(model):
        texts = [
            "{} {} ({} … {})".format(item["component"], *format_numbers(item, "sd", "low", "high"))
            + (f" for {item[head]}" if several else "")
            for item in components
        ]
        facts = {**facts, "standard deviations (95 %)": ", ".join(texts)}
    last = (head,) if several else ()
    columns = ("term", "kind", "edf", "range", "importance", "ref df", statistic, "p", *last)
    rows = [
        (
            item["term"], item["kind"], f"{item['edf']:.2f}",
            "{} … {}".format(*format_numbers(item, "low", "high")),
            plain_number(item["importance"], 3),
            f"{item['ref_df']:.2f}", f"{item['statistic']:.1f}", format_p_value(item["p_value"]),
            *(item[name] for name in last),
        )
        for item in records
    ]  # fmt: skip
    plain = {key: str(value) for key, value in facts.items()}
    return GamSummary(title, plain, columns, rows, records, components)


def _level_sds(model: AdditivePredictor) -> list[tuple[str, np.ndarray]]:
    """Names of the terms with levels, and what `FittedTerm.level_sd` has of them."""
    return [(term.name, term.level_sd) for term in model.terms if term.level_sd is not None]


def shape_functions(model: AdditivePredictor) -> list[ShapeFunction]:
    """The functions of single columns."""
    books = [
        (term, model.books[term.columns[0]]) for term in model.pure_terms if len(term.columns) == 1
    ]
    names, ordered = model.reader.value_names, model.reader.ordered
    return [
        _shape(term, book, names.get(book.name, {}), model.residual_df, book.name in ordered)
        for term, book in books
    ]


def pair_functions(model: AdditivePredictor) -> list[PairFunction]:
    """The functions of pairs, and surfaces on a grid."""
    return [
        _pair(term, model) if term.coarse else _surface(t, model)
        for t, term in enumerate(model.pure_terms)
        if len(term.columns) == 2
    ]


def _shape(
    term: FittedTerm, book: Codebook, names: Mapping[float, str], residual_df: float,
    is_ordered: bool,
) -> ShapeFunction:  # fmt: skip
    values, errors = _drop_output_axis(term.values), _drop_output_axis(term.errors)
    counts = term.counts / max(float(term.counts.sum()), 1e-300)
    missing = np.stack([values[MISSING], errors[MISSING]]) if counts[MISSING] > 0 else None
    increments = None if term.increment_errors is None else _drop_output_axis(term.increment_errors)
    codes: Any
    labels = None
    if book.kind == "number":
        grid = book.nodes if len(book.nodes) else np.zeros(1)
        codes = slice(1, None) if len(book.nodes) else slice(0, 1)
        low, high = float(grid[0]), float(grid[-1])
        edges = np.linspace(low, high if high > low else low + 1.0, _DENSITY_BINS + 1)
        density = np.histogram(grid, edges, weights=counts[codes])[0]
    else:
        codes = np.arange(OTHER if counts[OTHER] > 0 else OTHER + 1, book.n_codes)
        labels = tuple(book.label(code) for code in codes.tolist())
        grid, edges = np.arange(len(codes), dtype=float), np.arange(len(codes) + 1) - 0.5
        density = counts[codes]
    return ShapeFunction(
        term.name, grid, values[codes], edges, density, errors[codes], labels, missing,
        term.importance, tuple(names.items()) or None, increments, residual_df, is_ordered,
    )  # fmt: skip


def _pair(term: FittedTerm, model: AdditivePredictor) -> PairFunction:
    names, labels, used = model.reader.value_names, [], []
    for axis, (coarse, column) in enumerate(zip(term.coarse, term.columns, strict=True)):
        with_rows = np.flatnonzero(term.counts.sum(axis=1 - axis) > 0)
        used.append(with_rows)
        book = model.books[column]
        value_names = names.get(book.name, {})
        labels.append(tuple(_cell_label(book, coarse, int(k), value_names) for k in with_rows))
    cells = np.ix_(*used)
    density = term.counts[cells] / max(float(term.counts.sum()), 1e-300)
    values, errors = _drop_output_axis(term.values)[cells], _drop_output_axis(term.errors)[cells]
    rows, columns = labels
    across = model.books[term.columns[0]].name
    return PairFunction(term.name, rows, columns, values, errors, density, term.importance, across)


def _surface(t: int, model: AdditivePredictor) -> PairFunction:
    """A surface on a grid; places that are far from its knots count as having no rows."""
    term = model.terms[t]
    knots = term.positions[0]
    sides = [np.linspace(*ends, _SURFACE_SIDE) for ends in zip(knots.min(0), knots.max(0))]
    points = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
    values, errors = (part.reshape(*map(len, sides), -1) for part in model.surface_at(t, points))
    to_knots = np.linalg.norm(points[:, None] - knots, axis=2)
    between = np.linalg.norm(knots[:, None] - knots, axis=2) + np.diag(np.full(len(knots), np.inf))
    nearest, reach = to_knots.argmin(axis=1), 2 * between.min(axis=1)
    is_near = to_knots.min(axis=1) <= np.maximum(reach[nearest], np.diff(sides, axis=1).max())
    shares = term.counts[1:] / max(float(term.counts.sum()), 1e-300)
    cells = np.bincount(nearest[is_near], minlength=len(knots))
    density = np.where(is_near, (shares / np.maximum(cells, 1))[nearest], 0.0)
    rows, columns = (tuple(plain_number(value, 4) for value in side) for side in sides)
    return PairFunction(
        term.name, rows, columns, _drop_output_axis(values), _drop_output_axis(errors),
        density.reshape(values.shape[:2]), term.importance, model.books[term.columns[0]].name,
    )  # fmt: skip


def _cell_label(book: Codebook, coarse: np.ndarray, cell: int, names: Mapping[float, str]) -> str:
    codes = np.flatnonzero(coarse == cell)
    if book.kind == "category" or codes[0] == MISSING:
        return book.label(int(codes[0])) if len(codes) == 1 else "other"
    ends = [float(book.nodes[code - 1]) for code in (codes[0], codes[-1])]
    if len(codes) == 1:
        return names.get(ends[0] // 1, book.label(int(codes[0])))
    return " … ".join(names.get(end // 1, plain_number(end, 4)) for end in ends)


def _drop_output_axis(values: np.ndarray) -> np.ndarray:
    """Without the axis of outputs where there is one output only."""
    return values[..., 0] if values.shape[-1] == 1 else values
