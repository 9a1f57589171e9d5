"""Results as rich tables for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .advice import use_this
from .results import Results, Row

STYLES = {"linear": "dim", "exact": "bold", "map": "", "sklearn": "cyan", "boosting": "dim"}


def number(value: float | None, form: str = ".1e") -> str:
    """A cell, with a dash for what does not exist."""
    return "–" if value is None else format(value, form)


def _table(
    title: str, caption: Sequence[str], first: str, numbers: Sequence[str], **style: Any
) -> Any:
    """A table with a column of names and columns of numbers, and sentences below."""
    from rich import box
    from rich.table import Table

    style |= {"caption_justify": "left", "box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0)}
    table = Table(title=title, caption="\n".join(caption), **style)
    table.add_column(first, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def comparison_table(result: Results) -> Any:
    """One line per method, best first, then those that cannot be compared."""
    from rich.text import Text

    use, ties = result.recommended(), [row.label for row in result.ties()]
    marks = dict.fromkeys(ties, "=") | ({use.label: "*"} if use is not None else {})
    caption = [use_this(result)[0]]
    if len(ties) > 1:
        caption.append("= statistically tied with the best; * the fastest of these.")
    shape = f"{result.data['rows']:,} × {result.data['columns']:,}"
    title, caption = f"{result.data['name']} ({shape})", [*caption, *result.notes]
    numbers = ("cols", "max rel.\nerror", result.score_name, "map\nms", "fit\nms", "test\nms")
    table = _table(title, caption, "method", numbers)
    finished = result.finished()
    for row in finished:
        table.add_row(*_cells(row, marks.get(row.label, " ")), style=STYLES.get(row.kind, ""))
    others = sorted((r for r in result.rows if r not in finished), key=lambda r: -r.rows)
    if others:
        table.add_section()
        table.add_row(Text("not compared: on other rows, or not finished", style="italic"))
    for row in others:
        table.add_row(*_cells(row, " ", with_status=True), style="dim")
    return table


def _cells(row: Row, mark: str, with_status: bool = False) -> list[str]:
    score = (
        "–" if row.score is None else f"{row.score:.3f} ±{row.score_std:.3f}".replace("±0.", "±.")
    )
    label = row.label.replace("sklearn ", "sk. ").replace("AdditiveChi2Sampler", "AdditiveChi2")
    if with_status:
        on_fewer = row.status in ("stopped", "limited")
        label += f" ({row.rows:,} rows)" if on_fewer else f" ({row.status})"
    return [
        f"{mark} {label.replace(' orthogonal', '')}",
        number(row.columns, "d"),
        number(row.error.max_relative if row.error else None),
        score,
        *(
            number(1e3 * seconds if row.rows else None, ".0f")
            for seconds in (row.map_seconds, row.fit_seconds, row.predict_seconds)
        ),
    ]


def choice_table(choice: Any, relative: bool, source: str) -> Any:
    """The chosen map, then of each other family the last size that was looked at, with why not.

    `relative` says what errors are, and `source` what gives all candidates.
    """
    chosen, others = choice.evidence, choice.others
    last: dict[tuple[str, str], Any] = {}
    for item in sorted(others, key=lambda item: item.candidate.size):
        last[item.candidate.name, item.candidate.variant] = item
    measured = f"{1 + len(others)} candidates were measured; {source} has all of them."
    numbers = ("columns", "max rel.\nerror" if relative else "max\nerror", "bound", "ms")
    sentences = [measured, *choice.notes]
    table = _table(choice.summary(), sentences, "map", numbers, title_justify="left")
    table.add_column("verdict", min_width=16)
    shown = sorted(last.values(), key=lambda item: (item.columns, item.bound))
    for item in (chosen, *shown):
        table.add_row(
            item.label,
            str(item.columns),
            number(item.max),
            number(item.bound),
            number(1e3 * item.seconds, ".1f"),
            item.verdict,
            style="bold" if item is chosen else "",
        )
    return table
