"""The report: one HTML file with everything inside, which opens without a network."""

from __future__ import annotations

import json
import warnings
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import kernelmaps

from .. import storage
from ..inspection.kernel_error import KernelErrorDisplay
from ..maps.base import AdditiveMap
from .contenders import Row
from .shapes import shapes_of_linear

if TYPE_CHECKING:
    from .comparison import Comparison

__all__ = ["report_data", "write_report"]

_POINTS = 28  # of a heat map's side
_SHAPES = 12
_ROWS = 1500  # for the shape functions


def write_report(result: Comparison, path: str | Path) -> Path:
    """Write the report of a comparison; an older file is replaced only by a complete one."""
    data = json.dumps(report_data(result), ensure_ascii=False, allow_nan=False, default=float)
    # Nothing in the data may end the script element that holds it.
    data = data.replace("<", "\\u003c")
    template = files("kernelmaps.evaluation").joinpath("report.html").read_text(encoding="utf-8")
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    storage.write_file(target, template.replace("__DATA__", data).encode())
    return target


def report_data(result: Comparison) -> dict[str, Any]:
    """Everything that the page shows, as plain values."""
    plain = result.to_dict()
    best = result.best("map") or result.best()
    data = result.data
    kind = {"none": "no targets", "classification": "classes", "regression": "a real target"}
    storage_words = "sparse" if data["sparse"] else "dense"
    return {
        **plain,
        "score_name": result.score_name,
        "best": best.label if best else "",
        "subtitle": f"{data['rows']:,} rows, {data['columns']:,} columns, {storage_words}, "
        f"{kind[result.task]}; {data['folds']} folds",
        "facts": _facts(result, best),
        "summary": summary(result),
        "front_error": [row.label for row in result.pareto("columns", "error")],
        "front_score": [row.label for row in result.pareto("seconds", "score")],
        "heatmaps": _heatmaps(result),
        "shapes": _shapes(result),
        "code": _code(result, best),
        "footer": f"kernelmaps {kernelmaps.__version__}, {date.today().isoformat()}; "
        f"measured in {result.seconds:.0f} s.",
    }


def summary(result: Comparison) -> list[str]:
    """The findings in sentences; a difference within two standard errors is called none."""
    lines = []
    best = result.best("map")
    linear, exact = result.best("linear"), result.best("exact")
    boosting = result.best("boosting")
    if best is not None and best.score is not None:
        lines.append(
            f"The best map is {_named(best)}: {result.score_name} {best.score:.3f} "
            f"± {best.score_std:.3f} with {best.columns:,} columns."
        )
        for other, words in ((linear, "A plain linear model"), (boosting, "Gradient boosting")):
            if other is not None:
                lines.append(f"{words} has {other.score:.3f}: {_against(best, other)}.")
        if exact is not None:
            lines.append(
                f"The best exact kernel machine ({exact.kernel}) has {exact.score:.3f}, "
                f"{_against(best, exact)}; it {_times(exact.seconds, best.seconds)} on "
                f"{exact.rows:,} rows."
            )
        lines += _cheapest(result, best)
    maps = [row for row in result.rows if row.error is not None and row.error.max > 1e-12]
    if maps:
        close = min(maps, key=lambda row: row.error.max)
        lines.append(
            f"Nearest to its kernel is {_named(close)}, with an error of at most "
            f"{close.error.max:.2g} on {close.error.n_pairs:,} pairs."
        )
    return lines


def _cheapest(result: Comparison, best: Row) -> list[str]:
    """The quickest map that is as good as the best, within two standard errors."""
    maps = [row for row in result.rows if row.kind == "map" and row.score is not None]
    good = [row for row in maps if row.score >= best.score - 2 * (best.score_std or 0)]
    quick = min(good, key=lambda row: row.seconds)
    if quick is best:
        return ["No other map is as good in less time."]
    return [
        f"As good within the noise, and quickest to train, is {_named(quick)}: "
        f"{quick.score:.3f} in {quick.seconds:.2g} s, "
        f"where {best.label} takes {best.seconds:.2g} s."
    ]


def _named(row: Row) -> str:
    return row.label if row.kernel in (*row.label.split(), "own") else f"{row.label} ({row.kernel})"


def _against(best: Row, other: Row) -> str:
    difference = best.score - other.score
    noise = 2 * np.hypot(best.score_std or 0, other.score_std or 0)
    if abs(difference) <= noise:
        return "no difference beyond the noise"
    return f"the map is {abs(difference):.3f} {'above' if difference > 0 else 'below'} it"


def _times(slow: float, fast: float) -> str:
    ratio = slow / max(fast, 1e-9)
    if ratio >= 1:
        return f"took {ratio:.1f} times as long to train"
    return f"trained {1 / ratio:.1f} times as fast"


def _facts(result: Comparison, best: Row | None) -> list[list[str]]:
    facts = [[str(len(result.rows)), "methods measured"]]
    if best is not None and best.score is not None:
        facts.append([f"{best.score:.3f}", f"{result.score_name} of the best map"])
    linear = result.best("linear")
    if linear is not None:
        facts.append([f"{linear.score:.3f}", "plain linear"])
    exact = result.best("exact")
    if exact is not None:
        facts.append([f"{exact.score:.3f}", f"exact {exact.kernel}"])
    return facts


def _heatmaps(result: Comparison) -> list[dict[str, Any]]:
    X = result.sample[0]
    tops = np.ravel(_dense(X.max(axis=0))).astype(np.float64)
    widest = int(np.argmax(tops))  # a feature that is always zero would show nothing
    found = []
    for row in result.rows:
        feature_map = result.maps.get(row.label)
        if feature_map is None or not hasattr(feature_map, "n_jobs"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = clone(feature_map).fit(X)
            if getattr(fitted, "kernel_", None) is None:
                continue
            additive = isinstance(fitted, AdditiveMap)
            try:
                drawn = KernelErrorDisplay.from_estimator(
                    fitted,
                    X,
                    domain=(0.0, float(tops[widest])) if additive and tops[widest] > 0 else None,
                    feature=widest,
                    n_points=_POINTS,
                )
            except (ValueError, TypeError):
                continue  # a kernel whose values are not pairs of one feature
        error = [[float(f"{value:.3g}") for value in line] for line in np.nan_to_num(drawn.error)]
        found.append({"label": row.label, "additive": additive, "error": error})
    return found


def _shapes(result: Comparison) -> dict[str, Any] | None:
    """Shape functions of the best additive model, refitted on some of the rows."""
    rows = sorted(
        (row for row in result.rows if row.kind == "map" and row.score is not None),
        key=lambda row: -row.score,
    )
    additive = [r for r in rows if isinstance(result.maps.get(r.label), AdditiveMap)]
    if not additive:
        return None
    from .contenders import linear_model

    row, (X, y) = additive[0], result.sample
    X, y = X[:_ROWS], y[:_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(result.maps[row.label]).fit(X)
        Z = fitted.transform(X)
        scale = np.sqrt(
            (Z.multiply(Z).sum() if sparse.issparse(Z) else np.square(Z).sum()) / len(y)
        )
        model = linear_model(result.task, result.data["C"]).fit(Z / scale, y)
    coef = np.atleast_2d(model.coef_) / scale
    classes = [str(item) for item in getattr(model, "classes_", [])]
    outputs = classes if len(classes) == len(coef) else ["score"]
    low, high = (np.ravel(_dense(end)) for end in (X.min(axis=0), X.max(axis=0)))
    shapes = shapes_of_linear(
        fitted, coef, outputs, names=result.data.get("names"), domain=(low, high)
    )
    shapes.sort(key=lambda shape: -shape.importance)
    towards = f", towards class {classes[1]}" if len(classes) == 2 else ""
    words = (
        f"A linear model on {row.label} is a sum of functions of one feature each; here are the "
        f"{min(_SHAPES, len(shapes))} of {len(shapes)} that move the score most{towards}."
    )
    features = [
        {
            "name": shape.name,
            "outputs": shape.outputs,
            "grid": [float(f"{v:.4g}") for v in shape.grid],
            "values": [[float(f"{v:.4g}") for v in line] for line in shape.values],
        }
        for shape in shapes[:_SHAPES]
    ]
    return {"words": words, "features": features}


def _code(result: Comparison, best: Row | None) -> str:
    made = best.code if best and best.kind == "map" else "km.HomogeneousMap()"
    model = "Ridge(alpha={})" if result.task == "regression" else "LinearSVC(C={})"
    penalty = 1 / result.data["C"] if result.task == "regression" else result.data["C"]
    room = "linear_model import Ridge" if result.task == "regression" else "svm import LinearSVC"
    return "\n".join(
        [
            "import kernelmaps as km",
            f"from sklearn.{room}",
            "from sklearn.pipeline import make_pipeline",
            "",
            "# the comparison: X, y are the rows and targets",
            f"result = km.compare(X, y, cv={result.data['folds']}, C={result.data['C']:g})",
            'result.report("report.html")',
            "",
            f"# the best map under a linear model{'' if best is None else f': {best.label}'}",
            f"model = make_pipeline({made}, {model.format(f'{penalty:g}')})",
            "model.fit(X, y)",
        ]
    )


def _dense(values: Any) -> np.ndarray:
    return values.toarray() if sparse.issparse(values) else np.asarray(values)
