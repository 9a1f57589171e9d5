"""HTML reports: one file with everything inside, which opens without a network."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import kernelmaps

from .._util import storage
from .._util.sparse import dense
from ..inspection import ShapeFunctionDisplay, kernel_error_grid
from ..inspection.shapes import by_importance, linear_shape_functions, output_names
from ..maps.base import AdditiveMap, FeatureMap

_POINTS = 28  # of a heat map's side
_SHAPES = 12
_ROWS = 1500  # for the shape functions


def fill_template(template: str, data: dict[str, Any], path: str | Path) -> Path:
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
    return [{name: _round_part(name, value) for name, value in panel.items()} for panel in panels]


def _round_part(name: str, value: Any) -> Any:
    """A part of a panel, by its name: numbers are rounded as an axis or as values of a curve."""
    if name in ("grid", "edges"):
        return _round_axis(value)
    return round_numbers(value) if name == "range" or isinstance(value, np.ndarray) else value


def _part(name: str) -> str:
    return files("kernelmaps.evaluation").joinpath(name).read_text(encoding="utf-8").rstrip("\n")


# ---- the report of a comparison ------------------------------------------------------------------


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
        "heatmaps": _heatmaps(result),
        "shapes": _shapes(result),
        "code": result.code(),
        "footer": f"kernelmaps {kernelmaps.__version__}, {date.today().isoformat()}; "
        f"measured in {result.seconds:.0f} s.",
    }
    return fill_template("report.html", page, path)


def _heatmaps(result: Any) -> list[dict[str, Any]]:
    """Errors over pairs of values of one feature, within its data, or over pairs of rows."""
    heatmaps = []
    for label in result.frame.index[result.frame["kind"] == "map"]:
        # Some kernels have values that are not pairs of one feature.
        with warnings.catch_warnings(action="ignore"), suppress(ValueError, TypeError, KeyError):
            X = result.sample[0]
            for _, step in clone(result.models[label]).steps[:-1]:
                step.fit(X)
                if isinstance(step, FeatureMap):
                    heatmaps.append({"label": label, **_heatmap(result.data["names"], step, X)})
                X = step.transform(X)
    return heatmaps


def _heatmap(names: Any, fitted: FeatureMap, X: Any) -> dict[str, Any]:
    # The feature of the widest range: one that is constant would show nothing.
    lowest, highest = (np.ravel(dense(end)).astype(float) for end in (X.min(axis=0), X.max(axis=0)))
    feature = int(np.argmax(highest - lowest))
    low, high = float(lowest[feature]), float(highest[feature])
    additive = isinstance(fitted, AdditiveMap)
    domain = (low, high) if additive else None
    drawn = kernel_error_grid(fitted, X, domain=domain, feature=feature, n_points=_POINTS)
    size = float(np.sqrt(np.mean(np.square(drawn.exact)))) or 1.0
    name = names[feature] if names else f"x{feature}"
    over = f"{name}: {low:.3g} to {high:.3g}" if additive else "rows"
    error = round_numbers(np.nan_to_num(drawn.error) / size, 3)
    return {"additive": additive, "over": over, "error": error}


def _shapes(result: Any) -> dict[str, Any] | None:
    """Shape functions of the best method whose map is additive, refitted on some of the rows.

    Behind a scaler the features are not in their own units.
    """
    rows = result.finished
    labels = rows.index[rows["kind"] == "map"]
    label = next((k for k in labels if isinstance(result.models[k][0], AdditiveMap)), None)
    if label is None:
        return None
    X, y = (values[:_ROWS] for values in result.sample)
    with warnings.catch_warnings(action="ignore"):
        model = clone(result.models[label]).fit(X, y)
    scale = float(np.prod([getattr(step, "scale_", 1.0) for step in model[1:-1]]))
    coef = scale * np.atleast_2d(model[-1].coef_)
    shapes = linear_shape_functions(model[0], coef, names=result.data.get("names"), X=X)
    classes = [str(item) for item in getattr(model, "classes_", [])]
    towards = f", towards class {classes[1]}" if len(classes) == 2 else ""
    words = (
        f"A linear model on {label} is a sum of functions of one feature each; here are the "
        f"{min(_SHAPES, len(shapes))} most important of {len(shapes)}{towards}."
    )
    display = ShapeFunctionDisplay(by_importance(shapes)[:_SHAPES])
    return {
        "words": words,
        "outputs": output_names(model) or ["score"],
        "features": plain_panels(display.panels),
        "range": round_numbers(display.limits),
    }
