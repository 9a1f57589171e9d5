"""Tables for terminals: results as rich tables of bounded width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .choice import Choice
    from .comparison import Comparison

STYLES = {"linear": "dim", "exact": "bold", "map": "", "sklearn": "cyan", "boosting": "dim"}


def number(value: float | None, form: str = ".1e") -> str:
    """A cell, with a dash for what does not exist."""
    return "–" if value is None else format(value, form)


def comparison_table(result: Comparison) -> Any:
    """One line per method; the best of each kind of cost is not marked: see the Pareto front."""
    from rich import box
    from rich.table import Table

    front = {row.label for row in result.pareto()}
    caption = [f"* on the front of {result.score_name} against training time"] if front else []
    caption += result.notes
    shape = f"{result.data['rows']} × {result.data['columns']}"
    table = Table(
        title=f"{result.data['name']} ({shape})",
        caption="\n".join(caption),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("method", overflow="fold")
    widths = {"columns": 7, "max\nerror": 7, "rms\nerror": 7, result.score_name: 11}
    widths |= {"map\nms": 4, "fit\nms": 4, "test\nms": 4, "MB": 4, "rows": 4}
    for heading, width in widths.items():
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    order = sorted(result.rows, key=lambda row: row.kernel != "–")
    for before, row in zip([None, *order], order):
        if before is not None and before.kernel != row.kernel:
            table.add_section()
            table.add_row("own kernels" if row.kernel == "own" else row.kernel, style="italic")
        table.add_row(*_cells(row, row.label in front), style=STYLES.get(row.kind, ""))
    return table


def _cells(row: Any, on_front: bool) -> list[str]:
    score = (
        "–" if row.score is None else f"{row.score:.3f} ±{row.score_std:.3f}".replace("±0.", "±.")
    )
    return [
        f"{'*' if on_front else ' '} {row.label.removesuffix(f', {row.kernel}')}",
        number(row.columns, "d"),
        number(row.error and row.error.max),
        number(row.error and row.error.rms),
        score,
        number(1e3 * row.map_seconds, ".0f"),
        number(1e3 * row.fit_seconds, ".0f"),
        number(1e3 * row.predict_seconds, ".0f"),
        number(row.bytes / 1e6, ".1f"),
        str(row.rows),
    ]


def choice_table(choice: Choice) -> Any:
    """One line per candidate: the chosen one first, then the others with their reasons."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=str(choice),
        title_justify="left",
        caption="\n".join(choice.notes),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("map", no_wrap=True)
    for heading in ("columns", "max\nerror", "rms\nerror", "bound", "ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict")
    for item in (choice.evidence, *choice.others):
        table.add_row(
            item.label,
            str(item.columns),
            number(item.max),
            number(item.rms),
            number(item.bound),
            number(1e3 * item.seconds, ".1f"),
            item.verdict,
            style="bold" if item is choice.evidence else "",
        )
    return table
