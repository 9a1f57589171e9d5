"""Tables and figures of the papers, recomputed: paper value, our value, difference.

Each entry of `CATALOGUE` is a module of :mod:`kernelmaps.evaluation.reproductions` with a function
``run(folder, quick) -> Reproduction``.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib import import_module
from time import perf_counter
from typing import Any

__all__ = ["CATALOGUE", "Line", "Reproduction", "catalogue", "reproduce"]

# name -> (module, function, what it is)
CATALOGUE: dict[str, tuple[str, str, str]] = {}


@dataclass(frozen=True)
class Line:
    """One figure: what it is of, what the paper says, what we found.

    Attributes
    ----------
    what : str
    paper, ours : float or None
        None where the paper has no such figure, or the data are others.
    unit : str
    note : str
    """

    what: str
    paper: float | None
    ours: float | None
    unit: str = ""
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None or self.ours is None else self.ours - self.paper


@dataclass(frozen=True)
class Reproduction:
    """A recomputed table.

    Attributes
    ----------
    name, title : str
    lines : list of Line
    protocol : str
        What differs from the paper.
    data : str
    seconds : float
    machine, day : str
    """

    name: str
    title: str
    lines: list[Line]
    protocol: str
    data: str = ""
    seconds: float = 0.0
    machine: str = field(default_factory=lambda: f"{platform.machine()}, {os.cpu_count()} cores")
    day: str = field(default_factory=lambda: date.today().isoformat())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = asdict(self)
        for entry, line in zip(plain["lines"], self.lines):
            entry["difference"] = line.difference
        return plain

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"

    def table(self) -> Any:
        """Side by side, as a rich table."""
        from rich import box
        from rich.table import Table

        table = Table(
            title=self.title, caption=self.protocol, caption_justify="left", box=box.SIMPLE_HEAD
        )
        table.add_column("figure")
        for heading in ("paper", "ours", "difference"):
            table.add_column(heading, justify="right")
        table.add_column("note")
        for line in self.lines:
            cells = [_cell(value) for value in (line.paper, line.ours)]
            difference = "–" if line.difference is None else f"{line.difference:+.3g}"
            table.add_row(f"{line.what} {line.unit}".strip(), *cells, difference, line.note)
        return table

    def markdown(self) -> str:
        """A section for the documentation."""
        rows = [
            f"## {self.title}",
            "",
            f"`kernelmaps reproduce {self.name}` · {self.data} · {self.day}, {self.machine}, "
            f"{self.seconds:.0f} s",
            "",
            f"What differs: {self.protocol}",
            "",
            "| figure | paper | ours | difference | note |",
            "|---|---:|---:|---:|---|",
        ]
        for line in self.lines:
            difference = "–" if line.difference is None else f"{line.difference:+.3g}"
            rows.append(
                f"| {line.what} {line.unit} | {_cell(line.paper)} | {_cell(line.ours)} | "
                f"{difference} | {line.note} |"
            )
        return "\n".join(rows) + "\n"


@dataclass(frozen=True)
class Catalogue:
    """What can be recomputed."""

    entries: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dict(self.entries)

    def table(self) -> Any:
        """As a rich table."""
        from rich import box
        from rich.table import Table

        table = Table(title="kernelmaps reproduce TABLE", box=box.SIMPLE_HEAD)
        table.add_column("TABLE", no_wrap=True)
        table.add_column("what it is")
        for name, words in self.entries.items():
            table.add_row(name, words)
        return table


def catalogue() -> Catalogue:
    """All tables and figures that can be recomputed here."""
    return Catalogue({name: words for name, (_, _, words) in CATALOGUE.items()})


def reproduce(
    name: str, *, folder: str | os.PathLike[str] | None = None, quick: bool = False
) -> Reproduction:
    """Recompute one table.

    Parameters
    ----------
    name : str
        One of :func:`catalogue`.
    folder : path, optional
        Where the datasets lie; default: the environment variable ``KERNELMAPS_DATA``.
    quick : bool
        Fewer rows and seeds, for a first look.
    """
    from dataclasses import replace

    if name not in CATALOGUE:
        raise ValueError(f"there is no table {name!r}; there are {', '.join(CATALOGUE)}.")
    module, function, words = CATALOGUE[name]
    run = getattr(import_module(f"kernelmaps.evaluation.reproductions.{module}"), function)
    start = perf_counter()
    found = run(folder, quick)
    return replace(found, name=name, title=words, seconds=perf_counter() - start)


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
