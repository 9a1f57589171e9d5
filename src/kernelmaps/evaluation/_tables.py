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
    """One line per method, kernel by kernel; what a terminal has no room for is in the report."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    front = {row.label for row in result.pareto()}
    caption = [f"* on the front of {result.score_name} against training time"] if front else []
    caption += result.notes
    seen = sorted({row.rows for row in result.rows})
    shape = f"{result.data['rows']:,} × {result.data['columns']:,}"
    table = Table(
        title=f"{result.data['name']} ({shape})",
        caption="\n".join(caption),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("method", overflow="fold")
    widths = {"cols": 4, "max\nerror": 7, result.score_name: 11}
    widths |= {"map\nms": 4, "fit\nms": 4, "test\nms": 4}
    if len(seen) > 1:
        widths |= {"rows": 5}
    for heading, width in widths.items():
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for before, row in zip([None, *_by_kernel(result.rows)], _by_kernel(result.rows)):
        if before is not None and before.kernel != row.kernel:
            table.add_section()
            heading = "own kernels" if row.kernel == "own" else row.kernel
            table.add_row(Text(heading, style="italic"))
        cells = _cells(row, row.label in front, "rows" in widths)
        table.add_row(*cells, style=STYLES.get(row.kind, ""))
    return table


def _by_kernel(rows: list[Any]) -> list[Any]:
    """Methods without a kernel first; of each kernel, the yardsticks before the maps."""
    order = list(dict.fromkeys(row.kernel for row in rows if row.kernel not in ("–", "own")))
    places = {kernel: place for place, kernel in enumerate(["–", *order, "own"])}
    return sorted(rows, key=lambda row: (places[row.kernel], row.kind == "map"))


def _cells(row: Any, on_front: bool, with_rows: bool) -> list[str]:
    score = (
        "–" if row.score is None else f"{row.score:.3f} ±{row.score_std:.3f}".replace("±0.", "±.")
    )
    label = row.label.removesuffix(f", {row.kernel}")
    label = label.replace("sklearn ", "sk. ").replace("AdditiveChi2Sampler", "AdditiveChi2")
    return [
        f"{'*' if on_front else ' '} {label.replace(' orthogonal', '')}",
        number(row.columns, "d"),
        number(row.error and row.error.max),
        score,
        number(1e3 * row.map_seconds, ".0f"),
        number(1e3 * row.fit_seconds, ".0f"),
        number(1e3 * row.predict_seconds, ".0f"),
        *([str(row.rows)] if with_rows else []),
    ]


def choice_table(choice: Choice) -> Any:
    """The chosen map, then of each other family the last size that was looked at, with why not."""
    from rich import box
    from rich.table import Table

    last: dict[tuple[str, str], Any] = {}
    for item in sorted(choice.others, key=lambda item: item.candidate.size):
        last[item.candidate.name, item.candidate.variant] = item
    n_measured = 1 + len(choice.others)
    notes = [f"{n_measured} candidates were measured; to_pandas() and --json have all of them."]
    table = Table(
        title=str(choice),
        title_justify="left",
        caption="\n".join([*notes, *choice.notes]),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("map", overflow="fold")
    for heading in ("columns", "max\nerror", "bound", "ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", min_width=16)
    others = sorted(last.values(), key=lambda item: (item.columns, item.bound))
    for item in (choice.evidence, *others):
        table.add_row(
            item.label,
            str(item.columns),
            number(item.max),
            number(item.bound),
            number(1e3 * item.seconds, ".1f"),
            item.verdict,
            style="bold" if item is choice.evidence else "",
        )
    return table
