"""Cache of designs on disk, keyed by the arguments of the request.

A key is the digest of everything that determines a design: the signature and the weight (sampled),
the domain, the size, the method, the seed and the version of the solver. Files are written to a
temporary name and moved into place, so that an interrupted design leaves nothing behind; a damaged
one is designed again. Beside the user's cache there is a read-only file of ready designs that is
shipped with the package (``tools/make_ready_designs.py`` makes it).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .._util import storage
from ..exceptions import FileFormatError

READY = Path(__file__).with_name("ready.kmap")
_KIND = "design"
READY_KIND = "ready-designs"

Entry = tuple[dict[str, Any], dict[str, np.ndarray]]


def stored(key: str, solve: Callable[[], Entry], use: bool) -> Entry:
    """The design of a key, shipped or in the user's cache, or a new one, which is then stored.

    Without `use`, it is always new.
    """
    if not use:
        return solve()
    ready = load_ready().get(key)
    if ready is not None:
        return ready
    path = storage.cache_folder() / f"{key}.kmap"
    try:
        return storage.read(path, _KIND)
    except (OSError, FileFormatError):
        entry = solve()
    with suppress(OSError):  # a read-only home is no reason to fail
        path.parent.mkdir(parents=True, exist_ok=True)
        storage.write(path, _KIND, *entry)
    return entry


@lru_cache(maxsize=1)
def load_ready() -> dict[str, Entry]:
    """The shipped designs by key; none if the file is missing."""
    if not READY.exists():
        return {}
    header, arrays = storage.read(READY, READY_KIND)
    entries: dict[str, Entry] = {key: (design, {}) for key, design in header["designs"].items()}
    for path, values in arrays.items():
        key, _, name = path.partition("/")
        entries[key][1][name] = values
    return entries
