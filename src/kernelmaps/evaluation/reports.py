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
    use, data = result.recommended(), result.data
    kind = {"none": "no targets", "classification": "classes", "regression": "a real target"}
    storage_words = "sparse" if data["sparse"] else "dense"
    page = {
        **result.to_dict(),
        "score_name": result.score_name,
        "best": use.label if use else "",
        "ties": [row.label for row in result.ties()],
        "subtitle": f"{data['rows']:,} rows, {data['columns']:,} columns, {storage_words}, "
        f"{kind[result.task]}; {data['folds']} folds",
        "facts": _facts(result, use),
        "use_this": result.use_this(),
        "front_error": [row.label for row in result.pareto("columns", "error")],
        "front_score": [row.label for row in result.pareto("seconds", "score")],
        "sizes": {row.label: row.error.max_relative for row in result.rows if row.error},
        "heatmaps": _heatmaps(result),
        "shapes": _shapes(result),
        "code": result.code(),
        "footer": f"kernelmaps {kernelmaps.__version__}, {date.today().isoformat()}; "
        f"measured in {result.seconds:.0f} s.",
    }
    return fill_template("report.html", page, path)


def _facts(result: Any, use: Any) -> list[list[str]]:
    finished = len(result.finished())
    facts = [[f"{finished} of {len(result.rows)}", "methods finished and compared"]]
    if use is not None and use.score is not None:
        facts.append([f"{use.score:.3f}", f"{result.score_name} of the recommended model"])
    words_of = {"linear": "plain linear", "gam": "GAM", "boosting": "gradient boosting"}
    for kind, words in words_of.items():
        row = result.best(kind)
        if row is not None and row.score is not None and row is not use:
            facts.append([f"{row.score:.3f}", words])
    return facts


def _steps(result: Any, label: str) -> list[Any]:
    """The steps of a row's model; of a comparison without targets, its map alone."""
    made: Any = result.estimators.get(label)
    return [step for _, step in made.steps] if hasattr(made, "steps") else [made]


def _fitted_map(result: Any, label: str) -> tuple[Any, Any]:
    """The map of a row, fitted on the sample, or None, and the rows as they reach it."""
    X = result.sample[0]
    for step in _steps(result, label):
        fitted: Any = clone(step).fit(X) if step is not None else None
        if isinstance(fitted, FeatureMap):
            return fitted, X
        if not hasattr(fitted, "transform"):
            break
        X = fitted.transform(X)
    return None, X


def _heatmaps(result: Any) -> list[dict[str, Any]]:
    """Errors over pairs of values of one feature, within its data, or over pairs of rows."""
    heatmaps = []
    for row in result.rows:
        if row.kind == "map" and row.rows:
            # Some kernels have values that are not pairs of one feature.
            with warnings.catch_warnings(action="ignore"), suppress(ValueError, TypeError):
                fitted, X = _fitted_map(result, row.label)
                if getattr(fitted, "kernel_", None) is not None:
                    heatmaps.append({"label": row.label, **_heatmap(result, fitted, X)})
    return heatmaps


def _heatmap(result: Any, fitted: FeatureMap, X: Any) -> dict[str, Any]:
    feature, low, high = _widest(X)
    additive = isinstance(fitted, AdditiveMap)
    domain = (low, high) if additive else None
    drawn = kernel_error_grid(fitted, X, domain=domain, feature=feature, n_points=_POINTS)
    size = float(np.sqrt(np.mean(np.square(drawn.exact)))) or 1.0
    names = result.data.get("names")
    name = names[feature] if names else f"x{feature}"
    over = f"{name}: {low:.3g} to {high:.3g}" if additive else "rows"
    error = round_numbers(np.nan_to_num(drawn.error) / size, 3)
    return {"additive": additive, "over": over, "error": error}


def _widest(X: Any) -> tuple[int, float, float]:
    """The feature of the widest range, and the range: one that is constant would show nothing."""
    low, high = (np.ravel(dense(end)).astype(float) for end in (X.min(axis=0), X.max(axis=0)))
    feature = int(np.argmax(high - low))
    return feature, float(low[feature]), float(high[feature])


def _shapes(result: Any) -> dict[str, Any] | None:
    """Shape functions of the best additive model, refitted on some of the rows."""
    additive = [
        row
        for row in result.finished("map")
        if row.score is not None
        and any(isinstance(step, AdditiveMap) for step in _steps(result, row.label))
    ]
    if not additive:
        return None
    row, (X, y) = additive[0], result.sample
    X, y = X[:_ROWS], y[:_ROWS]
    with warnings.catch_warnings(action="ignore"):
        model = clone(result.estimators[row.label]).fit(X, y)
    steps = [step for _, step in model.steps]
    if not isinstance(steps[0], AdditiveMap):
        return None  # behind a scaler the features are not in their own units
    scale = float(np.prod([getattr(step, "scale_", 1.0) for step in steps[1:-1]]))
    coef = scale * np.atleast_2d(steps[-1].coef_)
    shapes = linear_shape_functions(steps[0], coef, names=result.data.get("names"), X=X)
    classes = [str(item) for item in getattr(model, "classes_", [])]
    towards = f", towards class {classes[1]}" if len(classes) == 2 else ""
    words = (
        f"A linear model on {row.label} is a sum of functions of one feature each; here are the "
        f"{min(_SHAPES, len(shapes))} most important of {len(shapes)}{towards}."
    )
    display = ShapeFunctionDisplay(by_importance(shapes)[:_SHAPES])
    return {
        "words": words,
        "outputs": output_names(model) or ["score"],
        "features": plain_panels(display.panels),
        "range": round_numbers(display.limits),
    }
