"""A race between us and a named peer: interleaved, best of several, both raw figures kept.

Interleaving matters more than the number of repeats: a machine that slows down for a second slows
both sides. The best time is taken, since noise only ever adds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple

from . import machine, memory

RESULTS = Path(__file__).parent / "results"
REST = 0.05
"""Seconds before each timed call: BLAS' threads spin for a while after their last product, and
would take a processor from the other side."""


class Goal(NamedTuple):
    """The ratio to be reached: as the machine is, and with our code held to 128-bit vectors."""

    as_it_is: float
    plain: float


@dataclass
class Row:
    """One line of a table: a figure of ours, the peer's, and what the machine could do.

    Attributes
    ----------
    what : str
        What is measured.
    peer : str
        Whom we are compared with; empty where a figure stands alone.
    ours, theirs : float or None
        Raw figures, in `unit`.
    ratio : float or None
        How many times better we are: theirs / ours.
    target : str
        What was to be reached, in words; `reached` says whether it was.
    date : str
        When it was measured: the rows of one record may be of several runs.
    limit : float or None
        The same figure if the machine's own limit were the only one.
    of_limit : float or None
        ours / limit; 1 is the hardware limit.
    """

    what: str
    peer: str = ""
    unit: str = "s"
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    target: str = ""
    reached: bool | None = None
    limit: float | None = None
    limit_of: str = ""
    of_limit: float | None = None
    repeats: int = 0
    note: str = ""
    date: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class Bench:
    """Collects the rows of one room.

    Attributes
    ----------
    name : str
    data : path or None
        Folder of real datasets, for benchmarks that need them.
    quick : bool
        Fewer repeats, to see that everything runs.
    with_ebm : bool
        Record EBM's figures anew, which takes an hour.
    """

    name: str
    data: str | None = None
    quick: bool = False
    with_ebm: bool = False
    limits: dict[str, float] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def race(
        self,
        what: str,
        ours: Callable[[], Any],
        theirs: Callable[[], Any],
        *,
        peer: str,
        at_least: float | Goal | None = None,
        repeats: int = 5,
        calls: int = 1,
        budget: float = 40.0,
        bytes_written: int = 0,
        flops: tuple[str, float] | None = None,
        note: str = "",
    ) -> Row:
        """Time two calls that do the same job.

        Parameters
        ----------
        what, peer, note : str
            The words of the table.
        ours, theirs : callable
            Each is called once to warm up (compilation, caches, page tables), then in turns.
        at_least : float or Goal, optional
            The ratio theirs / ours to be reached. A number is for the machine as it is; at 128
            bits, such a row is compared with its ratio there when both are shown.
        repeats : int
            Rounds; fewer if `budget` seconds are spent before (never fewer than two).
        calls : int
            Calls in a row of each turn, of which the best counts: calls of milliseconds are slower
            after a rest.
        bytes_written : int
            Size of the result: the limit is the time to write it into fresh memory.
        flops : (str, float), optional
            Instead: name of a rate of `machine.limits` (``"sgemm"``) and operations needed.
        """
        repeats = 2 if self.quick else repeats
        sides = {"ours": ours, "theirs": theirs}
        best = dict.fromkeys(sides, float("inf"))
        for call in sides.values():
            call()
        start, done = perf_counter(), 0
        while done < repeats and (done < 2 or perf_counter() - start < budget):
            # Who goes first changes from round to round, so that neither profits from the other.
            for side in sorted(sides, reverse=bool(done % 2)):
                sleep(REST)
                best[side] = min(best[side], machine.best_seconds(sides[side], calls))
            done += 1
        row = Row(what, peer, "s", best["ours"], best["theirs"], repeats=done, note=note)
        row.ratio = best["theirs"] / best["ours"]
        wanted = _wanted(at_least)
        if wanted is not None:
            row.target, row.reached = f"≥ {ratio_text(wanted)}", row.ratio >= wanted
        if flops is not None:
            row.limit_of, row.limit = flops[0], flops[1] / self.limits[flops[0]]
        elif bytes_written:
            row.limit_of = "fresh_write"
            row.limit = bytes_written / self.limits["fresh_write"]
            row.details["of_write_limit"] = best["ours"] * self.limits["write"] / bytes_written
        if row.limit:
            row.of_limit = best["ours"] / row.limit
        return self._add(row)

    def measure(
        self, what: str, value: float, unit: str, *, at_most: float | None = None, **words: Any
    ) -> Row:
        """Record a figure that stands alone, with what it must not exceed."""
        row = Row(what, unit=unit, ours=value, **words)
        if at_most is not None:
            row.target, row.reached = f"≤ {at_most:g} {unit}", value <= at_most
        return self._add(row)

    def peak(
        self, what: str, ours: str, theirs: str | None = None, *, peer: str = "", of_output: float
    ) -> Row:
        """Measure memory beyond the result, each side ("module:function") in its own process.

        `of_output` is the largest allowed share of the result's own size.
        """
        mine = memory.in_subprocess(ours)
        other = memory.in_subprocess(theirs) if theirs else None
        share = mine["temporary"] / mine["output"]
        row = Row(
            what,
            peer,
            "MB beyond the result",
            mine["temporary"] / 1e6,
            other["temporary"] / 1e6 if other else None,
            target=f"≤ {of_output:.0%} of the result",
            reached=share <= of_output,
            note=f"{share:.1%} of the result's {mine['output'] / 1e6:.0f} MB",
            details={"ours": mine, "theirs": other},
        )
        return self._add(row)

    def _add(self, row: Row) -> Row:
        row.date = _today()
        self.rows.append(row)
        print(line(row), flush=True)
        return row

    def save(self, folder: Path = RESULTS, *, partly: bool = False) -> Path:
        """Write the rows, the limits and the kind of machine as JSON.

        Runs on ARM, and runs that are held to plain instructions, have folders of their own. After
        a part of the races (`partly`), the rows of the others stay as they were.
        """
        folder = folder / "arm" if machine.is_arm() else folder
        folder = folder / "plain" if machine.is_plain() else folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        record = {
            "name": self.name,
            "date": _today(),
            "machine": machine.description(),
            "limits": self.limits,
            "rows": (self._others(path) if partly else []) + [asdict(row) for row in self.rows],
        }
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path

    def _others(self, path: Path) -> list[dict[str, Any]]:
        """Rows of a record that this run did not measure, with their own date."""
        if not path.exists():
            return []
        record = json.loads(path.read_text(encoding="utf-8"))
        new = {(row.what, row.peer) for row in self.rows}
        return [
            row | {"date": row.get("date") or record["date"]}
            for row in record["rows"]
            if (row["what"], row["peer"]) not in new
        ]


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _wanted(at_least: float | Goal | None) -> float | None:
    """The ratio to be reached in this process."""
    if isinstance(at_least, Goal):
        narrow = machine.is_plain() or machine.is_arm()
        return at_least.plain if narrow else at_least.as_it_is
    return None if machine.is_plain() else at_least


def figure(value: float | None) -> str:
    """Three significant digits, without exponents where they hide the size."""
    if value is None:
        return "–"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def ratio_text(ratio: float) -> str:
    """A ratio in two significant digits, or in whole numbers: 0.33×, 1.7×, 13×, 1,653×."""
    return f"{ratio:,.0f}×" if ratio >= 9.95 else f"{float(f'{ratio:.2g}')}×".replace(".0×", "×")


def line(row: Row) -> str:
    """A row as one line of text for the terminal."""
    mark = {True: "✓", False: "✗", None: " "}[row.reached]
    text = f"{mark} {row.what}: {figure(row.ours)} {row.unit}"
    if row.peer:
        text += f" | {row.peer}: {figure(row.theirs)}"
    if row.ratio is not None:
        text += f" | {row.ratio:.2f}×"
    if row.target:
        text += f" (wanted {row.target})"
    if row.of_limit is not None:
        text += f" | {row.of_limit:.2f}× the {row.limit_of} limit"
    return text + (f" | {row.note}" if row.note else "")
