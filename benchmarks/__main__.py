"""Run benchmarks: ``python -m benchmarks [room[:part] ...] [--data FOLDER] [--goals]``.

Every race is run twice: as the machine is, and with the compiler held to its plainest instructions
(128-bit vectors), as a machine without wide ones would run it. On ARM, whose vectors have 128 bits,
it is run once.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from pathlib import Path

from . import machine, render
from .harness import Bench

HERE = Path(__file__).parent
ROOMS = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
GOALS = [
    "foundation:maps",
    "additive:inria",
    "additive:cifar",
    "additive:predict",
    "anchor:encode",
]
"""Races that have a goal for either kind of vectors."""


def races(names: list[str]) -> list[tuple[str, str]]:
    """Rooms and their parts (empty: all), as they were asked for; ValueError for an unknown one."""
    found = []
    for name in names or ROOMS:
        room, _, part = name.partition(":")
        if room not in ROOMS:
            raise ValueError(f"no benchmark named {room!r}; there are {', '.join(ROOMS)}")
        parts = getattr(importlib.import_module(f"benchmarks.bench_{room}"), "PARTS", {})
        if part and part not in parts:
            raise ValueError(f"no part {part!r} of {room}; there are {list(parts)}")
        found.append((room, part))
    return found


def race(room: str, part: str, bench: Bench) -> None:
    """Run a room or a part of it, and keep the results unless it was a quick try."""
    module = importlib.import_module(f"benchmarks.bench_{room}")
    module.run(bench, [part]) if part else module.run(bench)
    if not bench.quick:
        print(bench.save(partly=bool(part)).relative_to(HERE.parent))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("rooms", nargs="*", help=f"room or room:part; default: all of {ROOMS}")
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA") or None)
    parser.add_argument("--goals", action="store_true", help=f"only {' '.join(GOALS)}")
    parser.add_argument("--quick", action="store_true", help="few repeats, results not kept")
    parser.add_argument("--as-it-is", action="store_true", help="not again at 128 bits")
    parser.add_argument("--with-ebm", action="store_true", help="record EBM's tables anew: an hour")
    arguments = parser.parse_args()
    try:
        wanted = races(arguments.rooms + GOALS * arguments.goals)
    except ValueError as error:
        parser.error(str(error))

    held = machine.held_to_fewer_threads()
    if held and not arguments.quick:
        parser.error(f"{', '.join(held)} would slow down the peers: unset, or use --quick")

    for room, part in wanted:
        limits = machine.limits()
        print(f"\n{room} {part}: the machine's limits are")
        print("  " + ", ".join(f"{name} {rate / 1e9:.1f} G/s" for name, rate in limits.items()))
        race(room, part, Bench(room, arguments.data, arguments.quick, arguments.with_ebm, limits))
    if not (arguments.as_it_is or machine.is_plain() or machine.is_arm()):
        print("\nThe same with plain 128-bit vectors:", flush=True)
        again = [sys.executable, "-m", "benchmarks", *sys.argv[1:], "--as-it-is"]
        subprocess.run(again, env=os.environ | machine.PLAIN, check=True)
    if not arguments.quick:
        print(*(path.relative_to(HERE.parent) for path in render.write_all()), sep="\n")


if __name__ == "__main__":
    main()
