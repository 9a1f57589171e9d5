"""Printable summary of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ..._util.display import html_of, table_of
from .predictor import AdditivePredictor, FittedTerm

SHRUNK_EDF = 0.1  # a term with less is said to be shrunk to nothing
PAIRS_NOTE = (
    "what they hold of one column alone is counted to the term of that column, in edf, range and "
    "test as in plots"
)


@dataclass(frozen=True)
class GamSummary:
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
        The same as numbers.
    """

    title: str
    facts: dict[str, str]
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    records: list[dict[str, Any]]

    def to_frame(self) -> Any:
        """Return the table as a pandas frame, one row for each term (and class).

        Returns
        -------
        pandas.DataFrame
            Columns ``term``, ``kind``, ``edf``, ``ref_df``, ``statistic`` (F or χ²), ``p_value``,
            ``importance``, the range ``low`` to ``high`` of the function and, for more than two
            classes, ``class``.
        """
        import pandas as pd

        return pd.DataFrame(self.records)

    def __str__(self) -> str:
        shown = range(len(self.columns))
        width = [max(len(row[k]) for row in [self.columns, *self.rows]) for k in shown]
        lines = [self.title, *(f"  {key}: {value}" for key, value in self.facts.items()), ""]
        for row in [self.columns, *self.rows]:
            cells = [row[k].ljust(width[k]) if k < 2 else row[k].rjust(width[k]) for k in shown]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = "".join(f"<li>{escape(k)}: {escape(v)}</li>" for k, v in self.facts.items())
        return f"<ul>{facts}</ul>{html_of(table_of(self.columns, self.rows, self.title))}"


def summarise(
    title: str, model: AdditivePredictor, facts: dict[str, Any], outputs: Sequence[str],
    statistic: str,
) -> GamSummary:  # fmt: skip
    """Degrees of freedom, range and significance of every term; `statistic` is "F" or "chi²"."""
    records = [
        _record(term, k) | ({"class": output} if len(outputs) > 1 else {})
        for term in sorted(model.pure_terms, key=lambda term: -term.importance)
        for k, output in enumerate(outputs)
    ]
    shrunk = [term.name for term in model.pure_terms if term.edf.max() < SHRUNK_EDF]
    if shrunk:
        facts = {**facts, "shrunk to nothing": ", ".join(shrunk)}
    if any(term.coarse for term in model.terms):
        facts = {**facts, "pairs": PAIRS_NOTE}
    columns: tuple[str, ...] = (
        "term", "kind", "edf", "range", "importance", "ref df", statistic, "p",
    )  # fmt: skip
    rows = [_cells(item) for item in records]
    if len(outputs) > 1:
        columns = (*columns, "class")
    texts = {key: str(value) for key, value in facts.items()}
    return GamSummary(title, texts, columns, rows, records)


def _record(term: FittedTerm, k: int) -> dict[str, Any]:
    """The numbers of a term in one output."""
    values = term.values[..., k][term.counts > 0]
    return {
        "term": term.name,
        "kind": term.kind,
        "edf": float(term.edf[k]),
        "ref_df": np.nan if term.reference_df is None else float(term.reference_df[k]),
        "statistic": float(term.statistic[k]),
        "p_value": float(term.p_value[k]),
        "importance": term.importance,
        "low": float(values.min(initial=np.inf)) if values.size else 0.0,
        "high": float(values.max(initial=-np.inf)) if values.size else 0.0,
    }


def _cells(record: dict[str, Any]) -> tuple[str, ...]:
    """A record as text."""
    p = record["p_value"]
    return (
        record["term"], record["kind"], f"{record['edf']:.2f}",
        f"{record['low']:.3g} … {record['high']:.3g}", f"{record['importance']:.3g}",
        f"{record['ref_df']:.2f}", f"{record['statistic']:.1f}",
        "<1e-16" if p < 1e-16 else f"{p:.2g}", *([record["class"]] if "class" in record else []),
    )  # fmt: skip
