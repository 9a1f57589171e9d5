"""HTML reports: one file with everything inside, which opens without a network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import kernelmaps

from .._util import storage


def fill_template(template: str, data: dict[str, Any], path: str | Path) -> Path:
    """Fill a template of this package; an older file is replaced only by a complete one.

    Parameters
    ----------
    template : str
        Name of an HTML file with the words ``__STYLE__``, ``__TOOLS__``, ``__WHAT_IF__`` and
        ``__DATA__``, which the common style, the scripts and the data take the place of.
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
        ("__WHAT_IF__", _part("what_if.js")),
        ("__DATA__", text),  # last, so that no word in the data is replaced
    ):
        page = page.replace(word, content)
    target = Path(path)
    storage.write_file(target, page.encode())
    return target


def round_numbers(values: Any, digits: int = 4) -> Any:
    """An array as nested lists of short numbers; None for NaN."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return float(f"{array:.{digits}g}") if np.isfinite(array) else None
    return [round_numbers(item, digits) for item in array]


def _round_axis(values: Any) -> list[float]:
    """Places on an axis as short numbers that keep four digits of its extent."""
    array = np.asarray(values, dtype=np.float64)
    extent = float(np.ptp(array)) if len(array) else 0.0
    size = float(np.abs(array).max(initial=0.0))
    more = int(np.ceil(np.log10(size / extent))) if 0 < extent < size else 0
    return round_numbers(array, min(17, 5 + max(0, more)))


def plain_panels(panels: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Panels of a display as plain values."""
    plain = [dict(panel) for panel in panels]
    for panel in plain:
        for name, value in panel.items():
            if name in ("grid", "edges"):
                panel[name] = _round_axis(value)
            elif name == "range" or isinstance(value, np.ndarray):
                panel[name] = round_numbers(value)
    return plain


def _part(name: str) -> str:
    return files("kernelmaps.evaluation").joinpath(name).read_text(encoding="utf-8").rstrip("\n")


def comparison_report(result: Any, path: str | Path) -> Path:
    """Write the report of a `Comparison`: recommendation, code, plots, sortable table."""
    data, use = result.data, result.recommended()
    kind = {"classification": "classes", "regression": "a real target"}[result.task]
    sort = "sparse" if data["sparse"] else "dense"
    facts = [[f"{len(result.finished)} of {len(result)}", "methods finished and compared"]]
    if use is not None:
        facts.append([f"{result[use].score:.3f}", f"{result.score_name} of the recommended model"])
    names = {"linear": "plain linear", "gam": "GAM", "boosting": "gradient boosting"}
    facts += [
        [f"{row.score:.3f}", names[row.kind]]
        for label, row in result.finished.iterrows()
        if row.kind in names and label != use
    ]
    page = {
        **result.to_dict(),
        "score_name": result.score_name,
        "best": use or "",
        "ties": result.ties(),
        "subtitle": f"{data['rows']:,} rows, {data['columns']:,} columns, {sort}, {kind}; "
        f"{data['folds']} folds",
        "facts": facts,
        "use_this": result.use_this(),
        "front_error": list(result.pareto("columns", "error").index),
        "front_score": list(result.pareto("seconds", "score").index),
        "code": result.code(),
        "footer": f"kernelmaps {kernelmaps.__version__}, {date.today().isoformat()}; "
        f"measured in {result.seconds:.0f} s.",
    }
    return fill_template("report.html", page, path)
