"""Text without control characters, and tables as text and HTML."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Sized
from functools import partial
from html import escape
from typing import Any, TypeVar

# The control characters of ASCII and Latin-1, except line ends and tabs.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}


def printable(text: str) -> str:
    r"""Write control characters as ``\x1b``: a terminal would obey them, and no font has them."""
    return text.translate(_CONTROLS)


def shorten(text: str, longest: int = 24) -> str:
    """Text of at most so many characters; the last is an ellipsis where some are left out."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


_WIDTH = 100


def plain_console(**options: Any) -> Any:
    """A rich console that shows text as it is.

    Names of columns and labels come from files: rich would otherwise read ``[/b]`` as markup, and
    the terminal would obey the escape sequences in them.
    """
    from rich.console import Console

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Any:
            return super().render_str(printable(text), **{**options, "markup": False})

    return PlainConsole(emoji=False, **options)


class Tabled:
    """A result that prints as its rich table."""

    def table(self) -> Any:
        """The rich table."""
        raise NotImplementedError

    def __str__(self) -> str:
        return text_of(self.table())

    def _repr_html_(self) -> str:
        return html_of(self.table())


def text_of(table: Any) -> str:
    """A rich table as plain text."""
    from io import StringIO

    stream = StringIO()
    plain_console(width=_WIDTH, file=stream, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().split("\n"))


def html_of(table: Any) -> str:
    """A rich table as an HTML table, with its title above and its notes below."""
    import pandas as pd

    heads = [_cell_text(column.header) for column in table.columns]
    cells = (map(_cell_text, column.cells) for column in table.columns)
    rows = pd.DataFrame(zip(*cells, strict=True), columns=heads)
    with pd.option_context("display.max_colwidth", None):
        page = rows.to_html(index=False, header=table.show_header, border=0, escape=False)
    title = f"<p><b>{_cell_text(table.title)}</b></p>" if table.title else ""
    notes = f"<p><small>{_cell_text(table.caption)}</small></p>" if table.caption else ""
    return f"{title}{page}{notes}"


def _cell_text(cell: Any) -> str:
    """The text of a cell, safe to be put into a page."""
    text = getattr(cell, "plain", None)
    return escape(printable(str(cell) if text is None else text)).replace("\n", "<br>")


def table_of(
    heads: Sequence[str], rows: Iterable[Sequence[str]], title: str, right: Container[str] = (),
    **style: Any,
) -> Any:  # fmt: skip
    """Lines below their heads, as a rich table; those of `right` stand at the right."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, **{"box": box.SIMPLE_HEAD, "caption_justify": "left"} | style)
    for head in heads:
        is_number = head in right
        table.add_column(head, justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        table.add_row(*row)
    return table


def plain_number(value: float, digits: int = 6, sign: str = "") -> str:
    """A number with so many digits, and without an exponent if it is large."""
    form = ".0f" if 10**digits <= abs(value) < 1e15 else f".{digits}g"
    return format(value, sign + form)


signed_number = partial(plain_number, digits=4, sign="+")


def write_numbers(*axes: Any) -> None:
    """Let axes of matplotlib write numbers as 0.5, 2000 or 3M, without an offset next to them."""
    for axis in axes:
        axis.set_major_formatter(lambda v, _: f"{v:.6g}" if abs(v) < 1e6 else f"{v / 1e6:.6g}M")


def number(value: float | None, form: str = ".1e") -> str:
    """A cell, with a dash for what does not exist."""
    return "–" if value is None else format(value, form)


def two_columns(values: dict[str, Any], title: str) -> Any:
    """Names and values, as a rich table; what is empty is left out."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in values.items():
        if value not in (None, {}, "", []):
            table.add_row(key.replace("_", " "), _format_value(value))
    return table


def _format_value(value: Any) -> str:
    """A value as a person reads it: four digits, no brackets, no more than twenty items."""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
    if isinstance(value, dict):
        return "\n".join(f"{key} = {_format_value(item)}" for key, item in value.items())
    if isinstance(value, list):
        more = f", … ({len(value)} in all)" if len(value) > 20 else ""
        return ", ".join(map(_format_value, value[:20])) + more
    return str(value)


Item = TypeVar("Item")


def track(
    iterable: Iterable[Item],
    description: str | Callable[[Item], str],
    total: int | None = None,
    enabled: bool | None = None,
) -> Iterator[Item]:
    """Iterate over `iterable`, showing a bar on standard error.

    Parameters
    ----------
    iterable : iterable
        What to go through; its items are passed on unchanged and lazily.
    description : str or callable
        The words next to the bar, or a function that makes them of an item.
    total : int, optional
        Number of items, where `iterable` has no length. Without either, the bar pulses.
    enabled : bool, optional
        True and False mean what they say. None shows a bar only to a person, that is if standard
        error is a terminal, so that logs, pipes and tests stay clean.

    Yields
    ------
    item
        The items of `iterable`.
    """
    if not (sys.stderr.isatty() if enabled is None else enabled):
        yield from iterable
        return
    # rich costs tens of milliseconds: only those pay who see the bar.
    from rich import console, progress

    words = progress.TextColumn("[progress.description]{task.description}")
    clocks = progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
    columns = words, progress.BarColumn(), progress.MofNCompleteColumn(), *clocks
    with progress.Progress(*columns, console=console.Console(stderr=True), transient=True) as shown:
        total = len(iterable) if total is None and isinstance(iterable, Sized) else total
        task = shown.add_task("", total=total)
        for item in iterable:
            named = description(item) if callable(description) else description
            shown.update(task, description=named)
            yield item
            shown.advance(task)
