"""Make the file of ready designs that is shipped with the package.

Usage: ``python tools/make_ready_designs.py [--check]``. The designs are those that
``DesignedMap(domain="data")`` asks for with common histograms, and those of the documentation: the
range 255:1, universal maps, and ranges of a power of two. ``--check`` only lists what is missing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from kernelmaps._util import storage
from kernelmaps._util.display import track
from kernelmaps.design import api
from kernelmaps.design import result as cache

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


def key_of(n_components: int, **arguments: Any) -> str:
    """The key under which the design of some arguments is stored."""
    return api.make_solver(**arguments).key(n_components)


def entry_of(n_components: int, **arguments: Any) -> cache.Entry:
    """The design of some arguments, solved anew."""
    return api.make_solver(**arguments).entry(n_components)


def save(entries: dict[str, cache.Entry]) -> None:
    """Write the file."""
    arrays = {f"{key}/{name}": a for key, (_, own) in entries.items() for name, a in own.items()}
    header = {"designs": {key: own for key, (own, _) in entries.items()}}
    storage.write(cache.READY, cache.READY_KIND, header, arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="list missing designs, make none")
    arguments = parser.parse_args()
    keys = {key_of(**item): item for item in wanted()}
    entries = {key: entry for key, entry in cache.load_ready().items() if key in keys}
    missing = [item for key, item in keys.items() if key not in entries]
    print(f"{len(entries)} designs are ready, {len(missing)} are missing")
    if arguments.check:
        return
    for count, item in enumerate(track(missing, "ready designs")):
        entries[key_of(**item)] = entry_of(**item)
        if count % 20 == 19:
            save(entries)
    save(entries)


if __name__ == "__main__":
    main()
