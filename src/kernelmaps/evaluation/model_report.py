"""The HTML report of a model: one file with its functions, pairs, rows and scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import kernelmaps

from .._util.arguments import refuse_masked
from .._util.display import plain_number
from .._util.threads import evenly_spaced
from ..data.sources import take_rows
from ..exceptions import OutOfDomainWarning
from ..models.gam.predictor import AdditivePredictor, warn_without_exposure
from ..models.shapes import estimator_name, predictor_of, require_fitted, score_name
from ..plots.panels import PairFunctionDisplay, ShapeFunctionDisplay
from ..plots.shapes import (
    importance,
    n_features_used,
    output_names,
    pair_functions,
    shape_functions,
    sort_by_importance,
)
from .reports import fill_template, plain_panels, round_numbers
from .scores import METRICS, PredictionScores
from .what_if import form_data

_TERMS = 60  # functions, and as many pairs, that are drawn
_BARS = 25
_LINES = 20  # terms of a row that is explained
_POINTS = 300  # of a plot of predictions against targets
_CHANCES = 10  # groups of a plot of probabilities
_CLASSES = 15  # of a table of predicted and true classes
_QUANTILES = {"median": 0.5, "lowest": 0.0, "lower quarter": 0.25, "upper quarter": 0.75,
              "highest": 1.0}  # fmt: skip


def model_report(
    model: Any,
    path: str | Path,
    *,
    X: Any = None,
    y: Any = None,
    exposure: Any = None,
    rows: Sequence[int] | None = None,
    title: str | None = None,
    target: str = "the target",
    feature_names: Sequence[str] | None = None,
    domain: Any = None,
    held_out: dict[str, Any] | None = None,
) -> Path:
    """Write an HTML report about an additive model: one file, which opens without a network.

    It shows what each feature and each pair adds to the score, with bands of 95 % and the density
    of the data, how much each term matters, the contributions to single rows, scores, the checks of
    `check()` for generalised additive models, and the table of `summary()`. A form computes
    predictions of these models for values that a reader chooses.

    Parameters
    ----------
    model : fitted estimator, or the predictor of one
        AdditiveClassifier, AdditiveRegressor, AdditiveSVC, AdditiveSVR, or a ridge model on an
        additive map, which has no rows explained. A predictor (`predictor_`) has no statistics of
        the fit: its report is without degrees of freedom, `check()` and `summary()`.
    path : path
        File to write.
    X : frame, array or callable, optional
        Rows to explain and to score, best ones that the model was not fitted on. A callable returns
        blocks of rows, of their targets and of their exposures (None: unknown, or none), each time
        anew.
    y : array-like, optional
        Their targets.
    exposure : array-like, optional
        What each row was exposed to, as in `AdditiveRegressor.fit`; 1 by default.
    rows : sequence of int, optional
        Positions in X of the rows to explain; by default the rows with the lowest, the median and
        the highest score, and those in between. The first is shown at once, by default the median.
    title : str, optional
        Of the report.
    target : str
        Name of what is predicted.
    feature_names : sequence of str, optional
        Of all features; by default those seen in `fit`.
    domain : (low, high), optional
        Range of each feature, for models that have not kept it.
    held_out : dict, optional
        Scores from elsewhere, as ``{"rows": 100, "scores": {"r2": 0.9}}``; shown where no X and y
        are given.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1]
    >>> model = km.AdditiveRegressor(smoothing="auto").fit(X[:200], y[:200])
    >>> report = os.path.join(tempfile.mkdtemp(), "model.html")
    >>> km.model_report(model, report, X=X[200:], y=y[200:]).name
    'model.html'
    """
    require_fitted(model)
    if X is None and (y is not None or rows is not None):
        stated = "y" if y is not None else "rows"
        raise ValueError(f"model_report: {stated}= is of the rows of X; pass X=, too.")
    blocks = X if X is None or callable(X) else _one_block(model, X, y, exposure)
    report_rows = ReportRows(model, blocks)
    for row in () if rows is None else rows:
        if not 0 <= row < report_rows.n:
            raise ValueError(
                f"model_report: rows holds {row}, but X has the rows 0 to {report_rows.n - 1}."
            )
    shapes = shape_functions(model, names=feature_names, domain=domain)
    names = None if feature_names is None else [shape.name for shape in shapes]
    data = _describe(report_rows, shapes, target, held_out)
    selected = _select_rows(report_rows, rows)
    data |= {"title": title or data["title"], "rows": _rows(report_rows, selected, names)}
    data["form"] = None  # but of generalised additive models
    if isinstance(predictor := predictor_of(model), AdditivePredictor):
        starts = {k: predictor.reader.read(one, "model_report") for k, (one, _) in selected.items()}
        data["form"] = form_data(predictor, starts)
    return fill_template("model_report.html", data, path)


def _describe(
    report_rows: ReportRows, shapes: list[Any], target: str, held_out: dict[str, Any] | None
) -> dict[str, Any]:
    """What a report says of a model, and of all rows."""
    model, judged = report_rows.model, report_rows.judged
    functions = ShapeFunctionDisplay(sort_by_importance(shapes)[:_TERMS])
    pairs = PairFunctionDisplay(sort_by_importance(pair_functions(model))[:_TERMS])
    terms = sort_by_importance([*shapes, *pairs.pairs])
    scale = score_name(model, target)
    if judged is not None:
        held_out = {"rows": report_rows.n, "scores": judged.scores()}
    return {
        "title": f"{estimator_name(model)}: {target}",
        "subtitle": _subtitle(model),
        "scale": scale if scale == target else f"the {scale}",
        "outputs": output_names(model) or [str(getattr(model, "classes_", ["score"])[-1])],
        "facts": _facts(model, held_out, is_given=judged is not None),
        "shapes": plain_panels(functions.panels),
        "range": round_numbers(functions.limits) if shapes else [],
        "pairs": plain_panels(pairs.panels),
        "limits": round_numbers(pairs.limits, 3) if pairs.pairs else [],
        "bars": [[term.name, round_numbers(importance(term))] for term in terms[:_BARS]],
        "scores": _scores(model, judged, target),
        "check": _check(report_rows),
        "summary": _summary(model),
        "footer": f"kernelmaps {kernelmaps.__version__}, {date.today().isoformat()}.",
    }


def _one_block(model: Any, X: Any, y: Any, exposure: Any) -> Blocks:
    """Rows in memory as one block, after what contradicts them was refused."""
    refuse_masked("model_report", "y", y)
    if y is not None and len(y) != X.shape[0]:
        raise ValueError(f"model_report: X has {X.shape[0]} rows, y has {len(y)} values.")
    name = estimator_name(model)
    if exposure is not None and not isinstance(predictor_of(model), AdditivePredictor):
        raise ValueError(f"model_report: {name} has no exposures; leave it out.")
    if y is not None:
        warn_without_exposure(model, "model_report", exposure)
    exposure = None if exposure is None else np.asarray(exposure, dtype=np.float64)
    if y is not None and name == "AdditiveSurvival":
        if not hasattr(model, "_targets_as_columns"):
            raise ValueError(f"model_report: y of {name} is for the estimator, which reads times.")
        y = model._targets_as_columns(y)
    return lambda: [(X, y, exposure)]


Blocks = Callable[[], Iterable[tuple[Any, Any, Any]]]


class ReportRows:
    """What a report says of rows: some numbers for each row, and single rows, read again.

    Parameters
    ----------
    model : fitted estimator or predictor
    blocks : callable, optional
        Returns blocks of rows, of their targets and of their exposures (None: unknown, or none),
        each time anew.

    Attributes
    ----------
    model : estimator
        The additive model itself.
    n : int
        Number of rows.
    row_scores : ndarray
        Scores of the rows; of several classes, the highest.
    judged : PredictionScores or None
        Predictions beside targets, where these are known.
    """

    def __init__(self, model: Any, blocks: Blocks | None = None) -> None:
        self.model, self.blocks = model, blocks
        row_scores, judged, scored = [], PredictionScores(self.model), blocks is not None
        score = getattr(model, "decision_function", model.predict)
        for X, y, exposure in () if blocks is None else blocks():
            with warnings.catch_warnings(action="ignore", category=OutOfDomainWarning):
                values = np.asarray(score(X), dtype=np.float64)
            row_scores.append(values if values.ndim == 1 else values.max(axis=1))
            scored = scored and y is not None
            if scored:
                judged.add(X, y, exposure)
        self.row_scores = np.concatenate(row_scores) if row_scores else np.zeros(0)
        self.n = len(self.row_scores)
        self.judged = judged if scored and self.n else None

    def some(self, rows: Iterable[int]) -> dict[int, tuple[Any, Any]]:
        """Single rows and their targets, by the number of the row."""
        by_number, before, numbers = {}, 0, sorted(set(rows))
        for X, y, _ in () if self.blocks is None or not numbers else self.blocks():
            for k in numbers:
                if 0 <= k - before < X.shape[0]:
                    at = k - before
                    by_number[k] = take_rows(X, [at]), None if y is None else np.asarray(y)[at]
            before += X.shape[0]
        return by_number


# ---- the model ----------------------------------------------------------------------------------


def _subtitle(model: Any) -> str:
    predictor, facts = predictor_of(model), [estimator_name(model)]
    if getattr(model, "loss", None):
        facts.append(f"loss {model.loss}")
    if getattr(model, "_n_rows", None):
        facts.append(f"fitted on {model._n_rows:,} rows")
    if (feature_map := getattr(predictor, "feature_map_", None)) is not None:
        facts.append(f"on {type(feature_map).__name__}")
    if edits := getattr(predictor, "edits", ()):
        facts.append(f"edited after the fit: {'; '.join(edits)}")
    return ", ".join(facts)


def _facts(model: Any, held_out: dict[str, Any] | None, is_given: bool) -> list[list[str]]:
    """A few numbers for the head of the report."""
    facts = []
    if held_out:
        count = f"{held_out['rows']:,}"
        where = f"on the {count} rows given" if is_given else f"on {count} held-out rows"
        for name in ("concordance", "accuracy", "d2", "r2", "roc_auc", "rmse"):
            if name in held_out["scores"]:
                words = METRICS.get(name, name)
                facts.append([plain_number(held_out["scores"][name], 4), f"{words} {where}"])
    pairs = len(pair_functions(model))
    features = n_features_used(model)
    words = f"and {pairs} pair{'s' if pairs > 1 else ''}" if pairs else ""
    facts.append([str(features), f"features {words}".strip()])
    if getattr(model, "edf_", None) is not None:
        facts.append([f"{float(np.sum(model.edf_)):.1f}", "effective degrees of freedom"])
    return facts


def _summary(model: Any) -> dict[str, Any] | None:
    if not hasattr(model, "edf_"):  # no GAM, or the predictor of one
        return None
    summary = model.summary()
    return {
        "columns": list(summary.columns),
        "rows": [list(row) for row in summary.rows],
        "facts": [[key, value] for key, value in summary.facts.items()],
    }


# ---- rows ---------------------------------------------------------------------------------------


def _select_rows(report_rows: ReportRows, rows: Sequence[int] | None) -> dict[str, Any]:
    """Rows to explain and their targets, by their names."""
    if not report_rows.n:
        return {}
    selected = (
        {f"row {k}": int(k) for k in rows} if rows is not None else _typical(report_rows.row_scores)
    )
    data = report_rows.some(selected.values())
    return {label: data[k] for label, k in selected.items()}


def _rows(
    report_rows: ReportRows, selected: Mapping[str, Any], names: list[str] | None
) -> list[dict[str, Any]]:
    """Contributions of the terms to some rows."""
    model, explained = report_rows.model, []
    if not hasattr(model, "explain"):
        return []
    for label, (one, truth) in selected.items():
        with warnings.catch_warnings(action="ignore", category=OutOfDomainWarning):
            guess = np.asarray(model.predict(one))[0]
            explanation = model.explain(one)
        explanation = explanation if names is None else replace(explanation, names=names)
        terms = [
            [label_of_term, round_numbers(v), round_numbers(band, 2)]
            for label_of_term, v, band in explanation.largest(_LINES)
        ]
        explained.append(
            {
                "label": label,
                "prediction": _shown(guess),
                "truth": None if truth is None else _shown(truth),
                "summary": explanation.summary,
                "intercept": round_numbers(explanation.intercept),
                "terms": terms,
            }
        )
    return explained


def _typical(scores: np.ndarray) -> dict[str, int]:
    """The median row by its score, then others from the lowest to the highest."""
    order = np.argsort(scores, kind="stable")
    positions: dict[str, int] = {}
    for name, share in _QUANTILES.items():
        k = int(order[round(share * (len(order) - 1))])
        if k not in positions.values():
            positions[f"row {k}, {name} score"] = k
    return positions


def _shown(value: Any) -> str:
    if np.ndim(value) == 1:  # a time, and whether an event ended it
        return f"{value[0]:.6g}" + ("" if value[1] else " (censored)")
    number = isinstance(value, float | np.floating)
    return plain_number(value) if number else str(value)


# ---- scores -------------------------------------------------------------------------------------


def _scores(model: Any, judged: PredictionScores | None, target: str) -> dict[str, Any] | None:
    """Scores of the rows, and a picture of predictions beside the truth."""
    if judged is None:
        return None
    panel: dict[str, Any] = {
        "rows": judged.rows,
        "target": target,
        "scores": [
            [METRICS[name], round_numbers(value)] for name, value in judged.scores().items()
        ],
    }
    if judged.truth.ndim == 2:  # times, not all of which are known
        return panel
    if not hasattr(model, "classes_"):
        panel["points"] = _points(judged.truth, judged.predicted)
        return panel
    if judged.probabilities is not None:
        # Predicted and observed shares of the second class, in groups of about as many rows.
        chance, hit = judged.probabilities, judged.truth == 1
        groups = np.array_split(np.argsort(chance, kind="stable"), min(_CHANCES, len(chance)))
        panel["chances"] = [
            [*round_numbers([chance[g].mean(), hit[g].mean()]), len(g)] for g in groups
        ]
    if len(model.classes_) <= _CLASSES:  # rows by their true (down) and predicted (across) class
        from sklearn.metrics import confusion_matrix

        codes = np.arange(len(model.classes_))
        counts = confusion_matrix(judged.truth, judged.predicted, labels=codes)
        labels = [str(label) for label in model.classes_]
        panel["confusion"] = {"classes": labels, "counts": counts.tolist()}
    return panel


def _check(report_rows: ReportRows) -> dict[str, Any] | None:
    """The checks of a generalised additive model on the first rows."""
    judged, blocks = report_rows.judged, report_rows.blocks
    check = None if judged is None or blocks is None else judged.check(b[0] for b in blocks())
    if check is None:
        return None
    theoretical, observed = check.qq()
    return {
        "rows": len(check.fitted),
        "facts": check.residual_facts(),
        "findings": check.findings,
        "tables": [[title, list(heads), rows] for title, (heads, rows) in check.tables().items()],
        "qq": _points(observed, theoretical),
    }


def _points(truth: np.ndarray, guess: np.ndarray) -> list[list[float]]:
    """Predictions and targets of at most `_POINTS` rows, evenly among them."""
    shown = evenly_spaced(len(truth), _POINTS)
    return round_numbers(np.column_stack([guess[shown], truth[shown]]), 5)
