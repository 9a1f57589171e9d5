"""Write an HTML page with everything inside, which opens without a network."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from .. import storage
from ..inspection import importance
from ..models.shapes import ShapeFunction


def write_page(template: str, data: dict[str, Any], path: str | Path) -> Path:
    """Fill a template of this package; an older file is replaced only by a complete one.

    Parameters
    ----------
    template : str
        Name of an HTML file with the words ``__STYLE__``, ``__TOOLS__`` and ``__DATA__``, which the
        common style, the common script and the data take the place of.
    data : dict
        Plain values; no NaN.
    path : path
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, default=float)
    # Nothing in the data may end the script element that holds it.
    text = text.replace("<", "\\u003c")
    page = _part(template)
    for word, content in (
        ("__STYLE__", _part("page.css")),
        ("__TOOLS__", _part("page.js")),
        ("__DATA__", text),  # last, so that no word in the data is replaced
    ):
        page = page.replace(word, content)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    storage.write_file(target, page.encode())
    return target


def rounded(values: Any, digits: int = 4) -> Any:
    """An array as nested lists of short numbers; None for NaN."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return float(f"{array:.{digits}g}") if np.isfinite(array) else None
    return [rounded(item, digits) for item in array]


def rounded_axis(values: Any) -> list[float]:
    """Places on an axis as short numbers that keep four digits of its extent."""
    array = np.asarray(values, dtype=np.float64)
    extent = float(np.ptp(array)) if len(array) else 0.0
    size = float(np.abs(array).max(initial=0.0))
    more = int(np.ceil(np.log10(size / extent))) if 0 < extent < size else 0
    return rounded(array, min(17, 5 + max(0, more)))


def most_important(shapes: list[ShapeFunction], count: int) -> list[dict[str, Any]]:
    """Functions of single features as plain values, the most important first."""
    chosen = sorted(shapes, key=lambda shape: -importance(shape))[:count]
    return [_plain_values(shape) for shape in chosen]


def _plain_values(shape: ShapeFunction) -> dict[str, Any]:
    n = len(shape.grid)
    # Value and error of a missing value, a line for each output.
    missing = None if shape.missing is None else shape.missing.reshape(2, -1).T
    return {
        "name": shape.name,
        "grid": rounded_axis(shape.grid),
        "values": rounded(shape.values.reshape(n, -1)),
        "errors": None if shape.errors is None else rounded(shape.errors.reshape(n, -1), 3),
        "edges": rounded_axis(shape.edges),
        "density": rounded(shape.density, 3),
        "levels": None if shape.levels is None else list(shape.levels),
        "missing": None if missing is None else rounded(missing),
    }


def _part(name: str) -> str:
    return files("kernelmaps.evaluation").joinpath(name).read_text(encoding="utf-8").rstrip("\n")
