"""Recompute tables and figures of the papers: ``python -m benchmarks.reproduce TABLE``.

Every line has the paper's value, ours, and the difference. The computations are the scripts
``reproduce_*.py`` beside this file; each keeps its figures as JSON. An entry of
:mod:`benchmarks.reproductions` says which script a table belongs to and how its figures are read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass, replace
from datetime import date
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from kernelmaps._util import storage
from kernelmaps._util.display import text_of

from . import paper_scope
from .paper_tables import Entry, Line
from .record_tables import keep_table, markdown_table
from .reproductions import ENTRIES

RECORDS = Path(__file__).parent / "results" / "reproductions"
HEADER = ("figure", "paper", "ours", "difference", "note")

__all__ = ["Reproduction", "catalogue", "reproduce", "stored", "write_page"]


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
    seconds : float or None
    machine, day : str
    """

    name: str
    title: str
    lines: list[Line]
    protocol: str
    data: str = ""
    seconds: float | None = None
    machine: str = ""
    day: str = ""

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
            title=self.title,
            caption=f"What differs from the paper: {self.protocol}\n{self.day}, {self.machine}",
            caption_justify="left",
            box=box.SIMPLE_HEAD,
        )
        for heading in HEADER:
            numbers = heading in ("paper", "ours", "difference")
            table.add_column(heading, justify="right" if numbers else "left")
        for line in self.lines:
            table.add_row(*_cells(line))
        return table

    def section(self, page: Path) -> list[str]:
        """A section of the page, whose table is a file beside it."""
        return [
            f"## {self.title}",
            "",
            f"`python -m benchmarks.reproduce {self.name}` · {self.data} · {self.day}, "
            f"{self.machine}",
            "",
            f"What differs: {self.protocol}",
            "",
            *keep_table(page, f"reproduction-{self.name}", HEADER, [*map(_cells, self.lines)]),
            "",
        ]


@dataclass(frozen=True)
class Catalogue:
    """What can be recomputed, and of what there are results.

    Attributes
    ----------
    entries : dict of str to str
        Names and words.
    results : dict of str to str
        When those with results were computed.
    """

    entries: dict[str, str]
    results: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            name: {"what": words, "computed": self.results.get(name)}
            for name, words in self.entries.items()
        }

    def table(self) -> Any:
        """As a rich table."""
        from rich import box
        from rich.table import Table

        table = Table(title="python -m benchmarks.reproduce TABLE", box=box.SIMPLE_HEAD)
        table.add_column("TABLE", no_wrap=True)
        table.add_column("what it is")
        table.add_column("computed")
        for name, words in self.entries.items():
            table.add_row(name, words, self.results.get(name, "not run yet"))
        return table


def catalogue() -> Catalogue:
    """All tables and figures that can be recomputed here."""
    results = {}
    for name in ENTRIES:
        with suppress(FileNotFoundError):
            results[name] = stored(name).day
    return Catalogue({name: entry.words for name, entry in ENTRIES.items()}, results)


def reproduce(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    quick: bool = False,
    jobs: int | None = None,
    resume: bool = False,
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
    jobs : int, optional
        Processes, for tables whose parts are independent jobs.
    resume : bool
        Keep the lines that the record has, and compute the others. Tables of independent jobs
        always run those jobs alone that have no file in the folder ``jobs`` beside the records.
    """
    entry = _entry(name)
    if jobs is not None and not hasattr(_script(entry.module), "jobs"):
        raise ValueError(f"{name} is one computation, without independent jobs: leave out --jobs.")
    if resume and not entry.resumable:
        raise ValueError(f"{name} does not go on from a record: leave out --resume.")
    where = os.fspath(folder) if folder else os.environ.get("KERNELMAPS_DATA")
    if entry.data and not where:
        raise FileNotFoundError(
            f"{name} needs the datasets {entry.data}: name their folder by --data or by the "
            "environment variable KERNELMAPS_DATA."
        )
    arguments = entry.quick if quick and entry.quick else entry.arguments
    start = perf_counter()
    given = ["--data", where] if entry.data and where else []
    given += [] if jobs is None else ["--jobs", str(jobs)]
    given += ["--resume"] * resume
    _run_script(entry.module, [*arguments, *given])
    _stamp(entry, None)
    return _told(name, entry, perf_counter() - start)


def stored(name: str) -> Reproduction:
    """The figures of the last run, without computing anything."""
    return _told(name, _entry(name), None)


def write_page(path: str | os.PathLike[str], *, machine: str | None = None) -> Path:
    """Write all stored results as one page of the documentation.

    `machine` says where records were made that are new since the last page and do not say it
    themselves; by default here.
    """
    page, headlines, sections = Path(path), [], []
    for name, entry in ENTRIES.items():
        if not _record_path(entry).exists():
            sections += [
                f"## {entry.words}",
                "",
                f"Not run yet: `python -m benchmarks.reproduce {name}` runs it"
                f"{f' (data: {entry.data})' if entry.data else ''}.",
                "",
            ]
            continue
        _stamp(entry, machine)
        table = stored(name)
        sections += table.section(page)
        headlines += [
            (*_cells(line)[:4], f"`{name}`") for line in table.lines if line.what in entry.headlines
        ]
    header = (*HEADER[:4], "python -m benchmarks.reproduce …")
    lines = [*_PAGE.splitlines(), "", *markdown_table(header, headlines), "", *_SCOPE.splitlines()]
    text = "\n".join([*lines, "", paper_scope.markdown(), *sections])
    storage.write_file(page, (text.rstrip("\n") + "\n").encode())
    return page


_PAGE = """# Reproductions

<!-- Made by `python -m benchmarks.reproduce --page docs/reproduction.md`: do not edit. -->

Tables and figures of the five papers that this library implements, recomputed. Every line has the
paper's value, ours, and the difference. Where the paper's data cannot be had, the same comparison
is made on other data, and the paper's figure is left out or marked: what is then compared is the
shape of the table, not its numbers. These lines stand for the tables:
"""
_SCOPE = """\
The main algorithms of the papers are the maps and models of this library. The next table is what
else they describe. The sections follow, each with its command, what differs from the paper, and all
lines.

A command computes all lines of its table anew. After an interruption, `--resume` goes on with
`additive-classifiers-tables-2-5` and `low-dim-maps-accuracy`. The tables `annfm-…` and
`compressive-rf-…` keep a file for each job in `benchmarks/results/reproductions/jobs`, and run the
jobs that have none. Notes say where a line has fewer seeds than its command runs, or was not run.
"""


def _entry(name: str) -> Entry:
    if name not in ENTRIES:
        raise ValueError(f"there is no table {name!r}; there are {', '.join(ENTRIES)}.")
    return ENTRIES[name]


def _run_script(module: str, arguments: Sequence[str]) -> None:
    """Run a script's `main`; what it prints goes to standard error."""
    with redirect_stdout(sys.stderr):
        _script(module).main(arguments)


def _script(module: str) -> Any:
    return import_module(f"benchmarks.{module}")


def _record_path(entry: Entry) -> Path:
    return RECORDS / entry.record


def _told(name: str, entry: Entry, seconds: float | None) -> Reproduction:
    path = _record_path(entry)
    if not path.exists():
        raise FileNotFoundError(
            f"{name} has not been run yet: python -m benchmarks.reproduce {name}"
        )
    record = json.loads(path.read_text(encoding="utf-8"))
    said, stamp = {}, _stamps().get(entry.record, {})
    if isinstance(record, dict):
        said = {key: record.pop(key) for key in ("date", "machine") if key in record}
    lines, machine = _with_processors(entry.lines(record))
    return Reproduction(
        name=name,
        title=entry.words,
        lines=lines,
        protocol=entry.protocol,
        data=entry.data or "no data",
        seconds=seconds,
        machine=machine
        or _kind(said.get("machine"))
        or stamp.get("machine", "machine not recorded"),
        day=said.get("date") or stamp.get("day", "day not recorded"),
    )


def _with_processors(lines: list[Line]) -> tuple[list[Line], str]:
    """Lines whose notes name the processor where it is not that of most, which is named, too."""
    processors = [line.processor for line in lines if line.processor]
    if not processors:
        return lines, ""
    most = max(processors, key=processors.count)
    lines = [
        replace(line, note=f"{line.note}{'; ' * bool(line.note)}on {line.processor}")
        if line.processor not in ("", most)
        else line
        for line in lines
    ]
    others = " unless a note names another" if len(set(processors)) > 1 else ""
    return lines, f"1 thread of {most}{others}"


def _kind(machine: Any) -> str:
    """A machine in words, from what a record says about it."""
    if isinstance(machine, dict):
        count = machine["threads"]
        return f"{count} thread{'s' * (count > 1)} of {machine['processor']}"
    return str(machine or "")


# A script's record need not say when and where it was made: the first to see it notes that down,
# with the record's hash, so that an older note is not taken for that of a newer record.


def _stamps() -> dict[str, Any]:
    path = RECORDS / "made.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _stamp(entry: Entry, machine: str | None) -> None:
    path, stamps = _record_path(entry), _stamps()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    if stamps.get(entry.record, {}).get("digest") == digest:
        return
    stamps[entry.record] = {
        "digest": digest,
        "day": date.today().isoformat(),
        "machine": machine or f"{os.cpu_count()} cores, {platform.machine()}",
    }
    text = json.dumps(stamps, indent=1, sort_keys=True) + "\n"
    (path.parent / "made.json").write_text(text, encoding="utf-8")


def _cells(line: Line) -> tuple[str, ...]:
    values = ("–" if value is None else f"{value:.4g}" for value in (line.paper, line.ours))
    difference = "–" if line.difference is None else f"{line.difference:+.3g}"
    return (f"{line.what} {line.unit}".strip(), *values, difference, line.note)


def main(given: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduce", description=__doc__)
    parser.add_argument("table", nargs="?", help="what to recompute; none: list them")
    parser.add_argument("--data", help="folder of the datasets; default: KERNELMAPS_DATA")
    parser.add_argument("--quick", action="store_true", help="fewer rows, for a first look")
    parser.add_argument("--jobs", type=int, help="processes, for tables of independent jobs")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted table")
    parser.add_argument("--stored", action="store_true", help="show the last result")
    parser.add_argument("--page", help="write all stored results as a page (Markdown)")
    parser.add_argument("--machine", help="with --page: where new results were computed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(given)
    if options.page:
        print(write_page(options.page, machine=options.machine))
        return
    found: Any
    try:
        if options.table is None:
            found = catalogue()
        elif options.stored:
            found = stored(options.table)
        else:
            found = reproduce(
                options.table,
                folder=options.data,
                quick=options.quick,
                jobs=options.jobs,
                resume=options.resume,
            )
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))
    if options.json:
        print(json.dumps(found.to_dict(), indent=1, ensure_ascii=False))
    else:
        print(text_of(found.table()))


if __name__ == "__main__":
    main()
