"""HTML report of a comparison: one file that opens offline."""

from __future__ import annotations

import warnings
from contextlib import suppress
from datetime import date
from typing import Any

import numpy as np
from sklearn.base import clone

import kernelmaps

from .._util.sparse import dense
from ..inspection import ShapeFunctionDisplay, kernel_error_grid
from ..inspection.shapes import by_importance, linear_shape_functions, output_names
from ..maps.base import AdditiveMap, FeatureMap
from .page import plain_panels, rounded
from .presentation import program, use_this
from .results import Results, Row

_POINTS = 28  # of a heat map's side
_SHAPES = 12
_ROWS = 1500  # for the shape functions


def report_data(result: Results) -> dict[str, Any]:
    """Everything that the page shows, as plain values."""
    plain = result.to_dict()
    use, data = result.recommended(), result.data
    kind = {"none": "no targets", "classification": "classes", "regression": "a real target"}
    storage_words = "sparse" if data["sparse"] else "dense"
    return {
        **plain,
        "score_name": result.score_name,
        "best": use.label if use else "",
        "ties": [row.label for row in result.ties()],
        "subtitle": f"{data['rows']:,} rows, {data['columns']:,} columns, {storage_words}, "
        f"{kind[result.task]}; {data['folds']} folds",
        "facts": _facts(result, use),
        "use_this": use_this(result),
        "front_error": [row.label for row in result.pareto("columns", "error")],
        "front_score": [row.label for row in result.pareto("seconds", "score")],
        "sizes": {row.label: row.error.max_relative for row in result.rows if row.error},
        "heatmaps": _heatmaps(result),
        "shapes": _shapes(result),
        "code": program(result, use),
        "footer": f"kernelmaps {kernelmaps.__version__}, {date.today().isoformat()}; "
        f"measured in {result.seconds:.0f} s.",
    }


def _facts(result: Results, use: Row | None) -> list[list[str]]:
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


def _steps(result: Results, label: str) -> list[Any]:
    """The steps of a row's model; of a comparison without targets, its map alone."""
    made: Any = result.estimators.get(label)
    return [step for _, step in made.steps] if hasattr(made, "steps") else [made]


def _fitted_map(result: Results, label: str) -> tuple[Any, Any]:
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


def _heatmaps(result: Results) -> list[dict[str, Any]]:
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


def _heatmap(result: Results, fitted: FeatureMap, X: Any) -> dict[str, Any]:
    feature, low, high = _widest(X)
    additive = isinstance(fitted, AdditiveMap)
    domain = (low, high) if additive else None
    drawn = kernel_error_grid(fitted, X, domain=domain, feature=feature, n_points=_POINTS)
    size = float(np.sqrt(np.mean(np.square(drawn.exact)))) or 1.0
    names = result.data.get("names")
    name = names[feature] if names else f"x{feature}"
    over = f"{name}: {low:.3g} to {high:.3g}" if additive else "rows"
    error = rounded(np.nan_to_num(drawn.error) / size, 3)
    return {"additive": additive, "over": over, "error": error}


def _widest(X: Any) -> tuple[int, float, float]:
    """The feature of the widest range, and the range: one that is constant would show nothing."""
    low, high = (np.ravel(dense(end)).astype(float) for end in (X.min(axis=0), X.max(axis=0)))
    feature = int(np.argmax(high - low))
    return feature, float(low[feature]), float(high[feature])


def _shapes(result: Results) -> dict[str, Any] | None:
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
        "range": rounded(display.limits),
    }
