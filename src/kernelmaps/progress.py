"""Progress bars: one function, silent wherever a bar would be noise."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")


def track(
    iterable: Iterable[Item],
    description: str,
    total: int | None = None,
    enabled: bool | None = None,
) -> Iterator[Item]:
    """Iterate over `iterable`, showing a bar on standard error.

    Parameters
    ----------
    iterable : iterable
        What to go through; its items are passed on unchanged and lazily.
    description : str
        The words beside the bar.
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
    if enabled is None:
        enabled = sys.stderr.isatty()
    if not enabled:
        yield from iterable
        return

    # rich costs tens of milliseconds: only those pay who see the bar.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    if total is None:
        total = len(iterable) if isinstance(iterable, Sized) else None
    columns = (
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(iterable, total=total, description=description)
