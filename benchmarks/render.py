"""Turn the results (JSON) into ``docs/performance.md``: ``python -m benchmarks.render``."""

from __future__ import annotations

import json
from pathlib import Path

from .harness import RESULTS, Row, figure

PAGE = RESULTS.parent.parent / "docs" / "performance.md"

INTRODUCTION = """# Performance

<!-- Made by `make bench` from benchmarks/results/*.json: do not edit. -->

Every line is a race in one process on one machine: both sides in turns on the same data, the best
of several rounds each, after one round to warm up. *Ratio* says how many times better we are than
the peer. *Of the limit* divides our time by the time that the machine's own limit would take: for
maps, writing the result into fresh memory (bytes over measured bandwidth); for products, the
measured GEMM rate. 1.0 would be the end of the road. Memory is what a process of its own needs
beyond the result. *At 128 bits* is the ratio of a second run, in which the compiler is held to the
plainest instructions of the processor, as on machines without wide vectors; the peers keep theirs.

Run it yourself with `make bench`.
"""


def section(record: dict, plain: dict | None = None) -> str:
    """One room: its machine and its table, with the ratios of a run at 128 bits beside."""
    narrow = {row["what"]: row["ratio"] for row in (plain or {}).get("rows", [])}
    machine, limits = record["machine"], record["limits"]
    # Our own threads make a load of their number; much more is other people's work.
    busy = machine.get("load", 0) > 2 * machine["threads"]
    warning = f" **The machine was busy with other work (load {machine['load']}).**" if busy else ""
    lines = [
        f"## {record['name'].replace('_', ' ').capitalize()}",
        "",
        f"{record['date']}, {machine['threads']} threads of {machine['processor']}; memory copy "
        f"{limits['copy'] / 1e9:.1f} GB/s, write {limits['write'] / 1e9:.1f} GB/s, write into "
        f"fresh memory {limits['fresh_write'] / 1e9:.1f} GB/s; SGEMM {limits['sgemm'] / 1e9:.0f}, "
        f"DGEMM {limits['dgemm'] / 1e9:.0f} Gflop/s; "
        f"NumPy {machine['numpy']}, scikit-learn {machine['scikit-learn']}, "
        f"numba {machine['numba']}.{warning}",
        "",
        "| what | ours | peer | theirs | ratio | at 128 bits | wanted | of the limit | note |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [table_row(Row(**row), narrow.get(row["what"])) for row in record["rows"]]
    return "\n".join(lines) + "\n"


def table_row(row: Row, narrow: float | None = None) -> str:
    """One Markdown line of the table; `narrow`: the ratio at 128 bits."""
    mark = {True: " ✓", False: " ✗", None: ""}[row.reached]
    cells = [
        row.what,
        f"{figure(row.ours)} {row.unit}",
        row.peer or "–",
        figure(row.theirs),
        *(f"{ratio:.1f}×" if ratio is not None else "–" for ratio in (row.ratio, narrow)),
        (row.target or "–") + mark,
        f"{row.of_limit:.1f}× ({row.limit_of})" if row.of_limit is not None else "–",
        row.note or "–",
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def write(results: Path = RESULTS, page: Path = PAGE) -> Path:
    """Write the page from all results there are."""
    found = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(results.glob("*.json"))]
    # Other scripts keep results here, too: those of a race have the machine's limits with them.
    records = [record for record in found if isinstance(record, dict) and "limits" in record]
    plain = {p.stem: json.loads(p.read_text("utf-8")) for p in (results / "plain").glob("*.json")}
    parts = [INTRODUCTION, *(section(record, plain.get(record["name"])) for record in records)]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


if __name__ == "__main__":
    print(write())
