"""Printable summary of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ...display import html_of, table_of
from .predictor import AdditivePredictor, FittedTerm


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
        One for each term and output.
    """

    title: str
    facts: dict[str, str]
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]

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
    columns: tuple[str, ...] = (
        "term", "kind", "edf", "range", "importance", "ref df", statistic, "p",
    )  # fmt: skip
    if len(outputs) > 1:
        columns = (*columns, "class")
    rows = []
    for term in sorted(model.pure_terms, key=lambda term: -term.importance):
        for k, output in enumerate(outputs):
            row = _row(term, k)
            rows.append((*row, output) if len(outputs) > 1 else row)
    return GamSummary(title, {key: str(value) for key, value in facts.items()}, columns, rows)


def _row(term: FittedTerm, k: int) -> tuple[str, ...]:
    values = term.values[..., k][term.counts > 0]
    extent = f"{values.min():.3g} … {values.max():.3g}" if values.size else "0"
    p = term.p_value[k]
    return (
        term.name, term.kind, f"{term.edf[k]:.2f}", extent, f"{term.importance:.3g}",
        "" if term.reference_df is None else f"{term.reference_df[k]:.2f}",
        f"{term.statistic[k]:.1f}", "<1e-16" if p < 1e-16 else f"{p:.2g}",
    )  # fmt: skip
