"""Run benchmarks: ``python -m benchmarks [room ...] [--data FOLDER] [--quick] [--as-it-is]``.

Every race is run twice: as the machine is, and with the compiler held to its plainest instructions
(128-bit vectors), as a machine without wide ones would run it.
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("rooms", nargs="*", help=f"which to run; default: all of {ROOMS}")
    parser.add_argument("--data", default=os.environ.get("KERNELMAPS_DATA") or None)
    parser.add_argument("--quick", action="store_true", help="few repeats, results not kept")
    parser.add_argument("--as-it-is", action="store_true", help="not again at 128 bits")
    parser.add_argument("--with-ebm", action="store_true", help="record EBM's tables anew: an hour")
    arguments = parser.parse_args()
    if unknown := set(arguments.rooms) - set(ROOMS):
        parser.error(f"no benchmark named {sorted(unknown)}; there are {ROOMS}")

    for room in arguments.rooms or ROOMS:
        limits = machine.limits()
        print(f"\n{room}: the machine's limits are")
        print("  " + ", ".join(f"{name} {rate / 1e9:.1f} G/s" for name, rate in limits.items()))
        bench = Bench(room, arguments.data, arguments.quick, arguments.with_ebm, limits)
        importlib.import_module(f"benchmarks.bench_{room}").run(bench)
        if not arguments.quick:
            print(bench.save().relative_to(HERE.parent))
    if not (arguments.as_it_is or machine.is_plain()):
        print("\nThe same with plain 128-bit vectors:", flush=True)
        again = [sys.executable, "-m", "benchmarks", *sys.argv[1:], "--as-it-is"]
        subprocess.run(again, env=os.environ | machine.PLAIN, check=True)
    if not arguments.quick:
        print(*(path.relative_to(HERE.parent) for path in render.write_all()), sep="\n")


if __name__ == "__main__":
    main()
