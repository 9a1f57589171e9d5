"""A table of a paper, and one figure of it: paper value, our value, difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Entry", "Line"]


@dataclass(frozen=True)
class Entry:
    """A table of a paper.

    Attributes
    ----------
    words : str
        What it is.
    module : str
        Script of the folder ``benchmarks``.
    arguments, quick : tuple of str
        Of the script: for the whole table, and for a first look.
    record : str
        Name of the JSON file that the script leaves.
    lines : callable
        From the record to the lines.
    protocol : str
        What differs from the paper.
    data : str
        Datasets that it needs; none if empty.
    headlines : tuple of str
        Lines that stand at the top of the page.
    resumable : bool
        Whether the script begins by removing its lines unless it is given ``--resume``.
    """

    words: str
    module: str
    record: str
    lines: Callable[[Any], list[Line]]
    protocol: str
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    data: str = ""
    headlines: tuple[str, ...] = ()
    resumable: bool = False


@dataclass(frozen=True)
class Line:
    """One figure: what it is of, what the paper says, what we found.

    Attributes
    ----------
    what : str
    paper, ours : float or None
        None where the paper has no such figure, or the data are others.
    unit : str
    note, processor : str
        `processor` is empty where the record does not say it for each line.
    """

    what: str
    paper: float | None
    ours: float | None
    unit: str = ""
    note: str = ""
    processor: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None or self.ours is None else self.ours - self.paper
