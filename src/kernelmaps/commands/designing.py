"""Print a design, and write it to a file in the format that its suffix names."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import storage
from .exporting import write_model


@dataclass(frozen=True)
class DesignReport:
    """A :class:`kernelmaps.Design` with the names that every printable result has."""

    design: Any

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return self.design.to_dict()

    def table(self) -> Any:
        """As a rich table; a design's own `table` is its curve."""
        return self.design.as_table()


def write_design(design: Any, path: str | os.PathLike[str]) -> None:
    """Write a design as its suffix says: ``.kmap`` (spec), ``.h`` (C) or ``.json`` (report)."""
    if Path(path).suffix.lower() == ".json":
        text = json.dumps(design.to_dict(), indent=1, ensure_ascii=False)
        storage.write_file(path, (text + "\n").encode())
    else:
        write_model(design, path)
