"""Make the file of ready designs that is shipped with the package.

Usage: ``python tools/make_ready_designs.py [--check]``. The designs are those that
``DesignedMap(domain="data")`` asks for with common histograms, and those of the documentation: the
range 255:1, universal maps, and ranges of a power of two. ``--check`` only lists what is missing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from kernelmaps.design import api, cache
from kernelmaps.progress import track

KERNELS = ("chi2", "jensen_shannon", "intersection")


def wanted() -> Iterator[dict[str, Any]]:
    """Arguments of ``design_map`` for every shipped design."""
    for kernel in KERNELS:
        for columns in range(1, 12):
            for domain in ((1.0, 255.0), "universal"):
                yield {"kernel": kernel, "n_components": columns, "domain": domain}
        for columns in range(1, 9):
            for octaves in range(4, 15):
                yield {"kernel": kernel, "n_components": columns, "domain": (1.0, 2.0**octaves)}
        for columns in range(1, 8):
            for error in ("absolute", "relative", "signature"):
                yield {
                    "kernel": kernel,
                    "n_components": columns,
                    "domain": (1.0, 255.0),
                    "error": error,
                    "method": "minimax",
                }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="list missing designs, make none")
    arguments = parser.parse_args()
    keys = {api.design_key(**item): item for item in wanted()}
    entries = {key: entry for key, entry in cache.load_ready().items() if key in keys}
    missing = [item for key, item in keys.items() if key not in entries]
    print(f"{len(entries)} designs are ready, {len(missing)} are missing")
    if arguments.check:
        return
    for count, item in enumerate(track(missing, "ready designs")):
        solver = api.make_solver(**item)
        entries[api.design_key(**item)] = solver.entry(item["n_components"])
        if count % 20 == 19:
            cache.save_ready(entries)
    cache.save_ready(entries)


if __name__ == "__main__":
    main()
