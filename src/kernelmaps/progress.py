"""Progress bars, shown only on terminals unless asked for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
_FIRST_LINE, _NEXT_LINE = 2.0, 10.0  # seconds until the first line, and between later ones
_write_line: ContextVar[Callable[[str], None] | None] = ContextVar("write_line", default=None)


@contextmanager
def lines_to(write: Callable[[str], None]) -> Iterator[None]:
    """Within this block, progress that has no terminal for a bar is written as lines of text.

    The command line does so, for logs; the library itself stays silent without a terminal.
    """
    token = _write_line.set(write)
    try:
        yield
    finally:
        _write_line.reset(token)


def announce(line: str) -> None:
    """Write a line of text about a long work within `lines_to`; elsewhere nothing."""
    write = _write_line.get()
    if write is not None:
        write(line)


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
        The words beside the bar, or a function that makes them of an item.
    total : int, optional
        Number of items, where `iterable` has no length. Without either, the bar pulses.
    enabled : bool, optional
        True and False mean what they say. None shows a bar only to a person, that is if standard
        error is a terminal, so that logs, pipes and tests stay clean; within `lines_to` they get a
        line now and then.

    Yields
    ------
    item
        The items of `iterable`.
    """
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    write = _write_line.get()
    words_of = description if callable(description) else lambda item: description
    if enabled is None:
        enabled = sys.stderr.isatty()
        if not enabled and write is not None:
            yield from _with_lines(iterable, words_of, total, write)
            return
    if not enabled:
        yield from iterable
        return

    # rich costs tens of milliseconds: only those pay who see the bar.
    from rich import console, progress

    words = progress.TextColumn("[progress.description]{task.description}")
    clocks = progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
    columns = words, progress.BarColumn(), progress.MofNCompleteColumn(), *clocks
    with progress.Progress(*columns, console=console.Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=total)
        for item in iterable:
            shown.update(task, description=words_of(item))
            yield item
            shown.advance(task)


def _with_lines(
    iterable: Iterable[Item],
    words_of: Callable[[Item], str],
    total: int | None,
    write: Callable[[str], None],
) -> Iterator[Item]:
    """Pass items on, and write a line when some seconds have gone by."""
    begin = time.monotonic()
    due = begin + _FIRST_LINE
    for done, item in enumerate(iterable):
        now = time.monotonic()
        if now >= due:
            of_total = "" if total is None else f" of {total}"
            write(f"{words_of(item)}: {done}{of_total} after {now - begin:.0f} s")
            due = now + _NEXT_LINE
        yield item
