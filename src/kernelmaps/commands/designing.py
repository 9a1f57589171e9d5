"""Print a design, and write it to a file in the format that its suffix names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .. import storage
from .exporting import write_model


def write_design(design: Any, path: str | os.PathLike[str]) -> None:
    """Write a design as its suffix says: ``.kmap`` (spec), ``.h`` (C) or ``.json`` (report)."""
    if Path(path).suffix.lower() == ".json":
        text = json.dumps(design.to_dict(), indent=1, ensure_ascii=False)
        storage.write_file(path, (text + "\n").encode())
    else:
        write_model(design, path)
