"""Compare our figures in two checkouts of the library, in one run and in turns.

    python -m benchmarks.compare_checkouts OLD NEW --rooms tables wide:sizes [--data FOLDER]

Each checkout runs its own benchmarks on its own library; peers are left out. Of two rounds the
better figure counts. A line that begins with >> is more than 1.3 times the old figure.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

SLOWER = 1.3
_LIMITS = dict.fromkeys(("sgemm", "dgemm", "fresh_write", "write"), 1e10)  # not looked at here


class LeftOut:
    """A peer that takes no part."""

    def fit(self, *_: Any) -> None:
        raise RuntimeError("left out")


def run_room(room: str, part: str, data: str, out: str) -> None:
    """Run a room of the checkout in the current folder, and write its rows."""
    warnings.simplefilter("ignore")
    harness = importlib.import_module("benchmarks.harness")
    machine = importlib.import_module("benchmarks.machine")

    def race(
        self: Any, what: str, ours: Any, theirs: Any, *, peer: str = "", **options: Any
    ) -> Any:
        ours()
        best, start, calls = float("inf"), perf_counter(), options.get("calls", 1)
        for _ in range(options.get("repeats", 5)):
            best = min(best, machine.best_seconds(ours, calls))
            if perf_counter() - start > 20:
                break
        return self._add(harness.Row(what, peer, "s", best, best, 1.0))

    harness.Bench.race = race
    module: Any = importlib.import_module(f"benchmarks.bench_{room}")
    if room == "ordinary":
        module.peer_seconds = lambda *_, **__: (1.0, 0.0)
    if room == "tables":
        module.boosting = module.splines = lambda table: LeftOut()
        module.find_spec = lambda name: None
        module.BOOSTING = "print(1.0)"
    bench = harness.Bench(room, data or None, limits=_LIMITS)
    try:
        for one in [part] if part else getattr(module, "PARTS", [""]):
            try:
                module.run(bench, [one]) if one else module.run(bench)
            except KeyError as missing:  # a figure of the peer, which took no part
                print(f"{room}: {one} ends where it asks for {missing}", file=sys.stderr)
    finally:
        Path(out).write_text(json.dumps([asdict(row) for row in bench.rows]), encoding="utf-8")


def figures(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Our figure of each row; of additive SVMs, the seconds for each C."""
    found = {}
    for row in rows:
        name = f"{row['what']} | {row['peer']} [{row['unit']}]"
        if row["unit"] == "× its time":
            found |= {f"{row['what']}, {C} [s]": d["ours"] for C, d in row["details"].items()}
        elif row["ours"] is not None:
            found[name] = row["ours"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs=2, type=Path, metavar="CHECKOUT")
    parser.add_argument("--rooms", nargs="+", required=True)
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA", ""))
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    trees = [path.resolve() for path in given.checkouts]
    for item in given.rooms:
        room, _, part = item.partition(":")
        best: list[dict[str, float]] = [{}, {}]
        for k in range(given.rounds):
            for side in (0, 1) if k % 2 == 0 else (1, 0):
                with tempfile.TemporaryDirectory() as folder:
                    out = os.path.join(folder, "rows.json")
                    words = [sys.executable, str(Path(__file__).resolve()), "--child"]
                    path = os.pathsep.join([str(trees[side] / "src"), str(trees[side])])
                    subprocess.run(
                        [*words, room, part, given.data, out], cwd=trees[side],
                        env=os.environ | {"PYTHONPATH": path}, check=False,
                    )  # fmt: skip
                    rows = json.loads(Path(out).read_text("utf-8")) if Path(out).exists() else []
                for name, value in figures(rows).items():
                    best[side][name] = min(value, best[side].get(name, value))
        for name, old in best[0].items():
            if name in best[1] and old:
                ratio = best[1][name] / old
                mark = ">>" if ratio > SLOWER else "  "
                print(f"{mark} {ratio:5.2f}  {old:.4g} {best[1][name]:.4g}  {room}: {name}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.path.remove(str(Path(__file__).resolve().parent))  # its own modules hide others
        run_room(*sys.argv[2:])
    else:
        main()
