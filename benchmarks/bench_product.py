"""Comparing within a budget on 10⁵ rows; the time of `choose`, and its coverage as last counted.

The coverage is counted by ``python -m benchmarks.choose_coverage``, which takes long.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from time import perf_counter

import kernelmaps as km

from . import choose_coverage
from .harness import Bench

ROWS, COLUMNS = 100_000, 32
BUDGET, QUICK_BUDGET = 90.0, 15.0
TOLERANCE = 0.01  # of the map that is chosen
LONGEST = 6.0  # seconds of that choice on two cores


def compare_within_budget(bench: Bench) -> None:
    """All maps and yardsticks of `km.compare` on many rows: seconds used, and what it says."""
    budget = QUICK_BUDGET if bench.quick else BUDGET
    X, y = km.datasets.make_histograms(ROWS, COLUMNS, random_state=0)
    start = perf_counter()
    result = km.compare(X, y, budget=budget, progress=False)
    used = perf_counter() - start
    rows = [n for n in result.frame["rows"].tolist() if n]  # none of methods that were not started
    bench.measure(
        f"`compare` on {ROWS:,} × {COLUMNS} with a budget of {budget:g} s",
        used,
        "s",
        at_most=budget,
        note=f"{len(rows)} methods on {min(rows):,} to {max(rows):,} rows; it says: "
        + " ".join(result.notes),
        details={"budget": budget, "methods": len(rows), "rows": rows, "notes": result.notes},
    )


def choose_seconds(bench: Bench) -> None:
    """Seconds of `choose` with a tolerance."""
    X, _ = km.datasets.make_histograms(400, 30, random_state=0)
    start = perf_counter()
    choice = km.choose(X, "chi2", max_error=TOLERANCE, progress=False)
    bench.measure(
        f"`choose` of χ², error ≤ {TOLERANCE:g}, 400 × 30: seconds",
        perf_counter() - start,
        "s",
        at_most=LONGEST,
        note=f"{1 + len(choice.rejected)} candidates; it chooses {choice.evidence.label}",
    )


def coverage(bench: Bench) -> None:
    """The stored count of cases in which the chosen map held its tolerance on fresh pairs."""
    if not choose_coverage.SUMMARY.exists():
        print("no count of the coverage of choose: python -m benchmarks.choose_coverage")
        return
    found = json.loads(choose_coverage.SUMMARY.read_text(encoding="utf-8"))
    share = 100 * found["held"] / found["of"]
    names = {case["data"] for case in found["cases"]}
    row = bench.measure(
        "`choose`: tolerance held on fresh pairs",
        share,
        "% of cases",
        note=f"{found['held']} of {found['of']} cases: {len(names)} datasets, kernels "
        f"{', '.join(found['tolerances'])}; counted on {found['date']}; nothing chosen in "
        f"{found['nothing_chosen']} more",
    )
    row.target, row.reached = "≥ 95 %", share >= 95


PARTS = {"compare": compare_within_budget, "choose": choose_seconds, "coverage": coverage}


def run(bench: Bench, parts: Sequence[str] = tuple(PARTS)) -> None:
    for name in parts:
        PARTS[name](bench)
