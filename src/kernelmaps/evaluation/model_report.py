"""The page of a model: one HTML file with its functions, pairs, rows and scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import kernelmaps

from ..exceptions import OutOfDomainWarning
from ..inspection.shapes import importance, output_names, shape_functions
from .page import most_important, rounded, write_page
from .scoring import scores_of

_WORDS = {"r2": "R²", "roc_auc": "area under ROC", "rmse": "RMSE"}
_TERMS = 60  # functions, and as many pairs, that are drawn
_BARS = 25
_POINTS = 300  # of a plot of predictions against targets
_CHANCES = 10  # groups of a plot of probabilities
_CLASSES = 15  # of a table of predicted and true classes
_QUANTILES = {"lowest": 0.0, "lower quarter": 0.25, "median": 0.5, "upper quarter": 0.75,
              "highest": 1.0}  # fmt: skip


def model_report(
    model: Any,
    path: str | Path,
    *,
    X: Any = None,
    y: Any = None,
    rows: Sequence[int] | None = None,
    title: str | None = None,
    target: str = "the target",
    feature_names: Sequence[str] | None = None,
    domain: Any = None,
    held_out: dict[str, Any] | None = None,
) -> Path:
    """Write a page about an additive model: an HTML file that opens without a network.

    It shows what each feature and each pair adds to the score, with bands of 95 % and the density
    of the data, how much each term matters, the contributions to single rows, scores, and the
    table of `summary()`.

    Parameters
    ----------
    model : fitted estimator
        AdditiveClassifier, AdditiveRegressor, their CV forms, or a ridge model on an additive map,
        which has no rows explained.
    path : path
        File to write.
    X : frame or array, optional
        Rows to explain and to score, best ones that the model was not fitted on.
    y : array-like, optional
        Their targets.
    rows : sequence of int, optional
        Positions in X of the rows to explain; by default the rows with the lowest, the median and
        the highest score, and those in between. The first is shown at once, by default the median.
    title : str, optional
        Of the page.
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
    >>> page = os.path.join(tempfile.mkdtemp(), "model.html")
    >>> km.model_report(model, page, X=X[200:], y=y[200:]).name
    'model.html'
    """
    check_is_fitted(model)
    own = getattr(model, "estimator_", model)  # of a search over C
    _check_rows(X, y, rows)
    shapes = shape_functions(own, names=feature_names, domain=domain)
    names = [shape.name for shape in shapes]
    outputs = output_names(own) or [_output(own)]
    data = {
        "title": title or f"{type(own).__name__}: {target}",
        "subtitle": _subtitle(own),
        "scale": _scale(own, target),
        "outputs": outputs,
        "facts": _facts(own, X, y, held_out),
        "shapes": most_important(shapes, _TERMS),
        "pairs": [_pair(pair) for pair in getattr(own, "pair_functions_", [])[:_TERMS]],
        "bars": _bars(own, shapes),
        "rows": _rows(own, X, y, rows, names if feature_names is not None else None),
        "scores": _scores(own, X, y, target),
        "summary": _summary(own),
        "footer": f"kernelmaps {kernelmaps.__version__}, {date.today().isoformat()}.",
    }
    return write_page("model_report.html", data, path)


def _check_rows(X: Any, y: Any, rows: Sequence[int] | None) -> None:
    """Refuse targets and positions that are not of these rows."""
    if X is None:
        if y is not None or rows is not None:
            raise ValueError("model_report: y and rows are those of X; pass X=, too.")
        return
    n = X.shape[0]
    if y is not None and len(y) != n:
        raise ValueError(f"model_report: X has {n} rows, y has {len(y)} values.")
    for row in () if rows is None else rows:
        if not 0 <= row < n:
            raise ValueError(f"model_report: rows holds {row}, but X has the rows 0 to {n - 1}.")


# ---- the model ----------------------------------------------------------------------------------


def _output(model: Any) -> str:
    classes = getattr(model, "classes_", None)
    return "score" if classes is None else str(classes[-1])


def _subtitle(model: Any) -> str:
    facts = [type(model).__name__]
    if getattr(model, "loss", None):
        facts.append(f"loss {model.loss}")
    if getattr(model, "_n_rows", None):
        facts.append(f"fitted on {model._n_rows:,} rows")
    if getattr(model, "feature_map_", None) is not None:
        facts.append(f"on {type(model.feature_map_).__name__}")
    return ", ".join(facts)


def _scale(model: Any, target: str) -> str:
    """What the functions are measured in."""
    classes = getattr(model, "classes_", None)
    loss = getattr(model, "loss", "")
    if classes is not None:
        what = "the log-odds" if loss == "log_loss" else "the score"
        which = f"class {classes[1]}" if len(classes) == 2 else "each class against the others"
        return f"{what} of {which}"
    return f"the logarithm of {target}" if loss in ("poisson", "gamma") else target


def _facts(model: Any, X: Any, y: Any, held_out: dict[str, Any] | None) -> list[list[str]]:
    """A few numbers for the head of the page."""
    facts = []
    if X is not None and y is not None:
        held_out = {"rows": len(y), "scores": scores_of(model, X, y)}
        where = f"on the {len(y):,} rows given"
    elif held_out:
        where = f"on {held_out['rows']:,} held-out rows"
    if held_out:
        for name in ("accuracy", "r2", "roc_auc", "rmse"):
            if name in held_out["scores"]:
                words = _WORDS.get(name, name)
                facts.append([f"{held_out['scores'][name]:.4g}", f"{words} {where}"])
    pairs = len(getattr(model, "pair_functions_", []))
    features = int(model.n_features_in_)
    words = f"and {pairs} pair{'s' if pairs > 1 else ''}" if pairs else ""
    facts.append([str(features), f"features {words}".strip()])
    if getattr(model, "edf_", None) is not None:
        facts.append([f"{float(np.sum(model.edf_)):.1f}", "effective degrees of freedom"])
    return facts


def _pair(pair: Any) -> dict[str, Any]:
    values = pair.values if pair.values.ndim == 3 else pair.values[..., None]
    return {
        "name": pair.name,
        "first": list(pair.first),
        "second": list(pair.second),
        "values": rounded(values, 3),
        "density": rounded(pair.density, 2),
    }


def _bars(model: Any, shapes: list[Any]) -> list[list[Any]]:
    """Names of the terms and standard deviations of what they add."""
    found = {shape.name: importance(shape) for shape in shapes}
    if getattr(model, "table_", None) is not None:
        found = {term.name: term.importance for term in model.table_.terms}
    order = sorted(found, key=lambda name: -found[name])[:_BARS]
    return [[name, rounded(found[name])] for name in order]


def _summary(model: Any) -> dict[str, Any] | None:
    if getattr(model, "table_", None) is None:
        return None
    summary = model.summary()
    return {
        "columns": list(summary.columns),
        "rows": [list(row) for row in summary.rows],
        "facts": [[key, value] for key, value in summary.facts.items()],
    }


# ---- rows ---------------------------------------------------------------------------------------


def _rows(
    model: Any, X: Any, y: Any, rows: Sequence[int] | None, names: list[str] | None
) -> list[dict[str, Any]]:
    """Contributions of the terms to some rows."""
    if X is None or not hasattr(model, "explain"):
        return []
    chosen = {f"row {k}": int(k) for k in rows} if rows is not None else _typical(model, X)
    found = []
    for label, k in chosen.items():
        one = _take(X, [k])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutOfDomainWarning)
            guess = np.asarray(model.predict(one))[0]
            own = model.explain(one)
        order = np.argsort(-np.abs(own.values), kind="stable").tolist()
        named = own.names if names is None else names
        bands = [None if own.errors is None else rounded(2 * own.errors[t], 2) for t in order]
        terms = [
            [named[t], own.shown[t], rounded(own.values[t]), band]
            for t, band in zip(order, bands, strict=True)
        ]
        found.append(
            {
                "label": label,
                "prediction": _shown(guess),
                "truth": None if y is None else _shown(np.asarray(y)[k]),
                "output": own.output,
                "intercept": rounded(own.intercept),
                "score": rounded(own.score),
                "terms": terms,
            }
        )
    return found


def _typical(model: Any, X: Any) -> dict[str, int]:
    """The median row by its score, then others from the lowest to the highest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfDomainWarning)
        score = model.decision_function if hasattr(model, "decision_function") else model.predict
        scores = score(X)
    scores = np.asarray(scores, dtype=np.float64)
    scores = scores if scores.ndim == 1 else scores.max(axis=1)
    order = np.argsort(scores, kind="stable")
    found: dict[str, int] = {}
    for name in sorted(_QUANTILES, key=lambda name: (name != "median", _QUANTILES[name])):
        k = int(order[round(_QUANTILES[name] * (len(order) - 1))])
        if k not in found.values():
            found[f"row {k}, {name} score"] = k
    return found


def _take(X: Any, places: Any) -> Any:
    """Rows of a frame or an array."""
    if hasattr(X, "iloc"):
        return X.iloc[places]
    return X.take(places) if hasattr(X, "take") and hasattr(X, "schema") else X[places]


def _shown(value: Any) -> str:
    number = isinstance(value, float | np.floating)
    return f"{value:.6g}" if number else str(value)


# ---- scores -------------------------------------------------------------------------------------


def _scores(model: Any, X: Any, y: Any, target: str) -> dict[str, Any] | None:
    """Scores of the rows, and a picture of predictions beside the truth."""
    if X is None or y is None:
        return None
    scores = scores_of(model, X, y)
    found: dict[str, Any] = {
        "rows": len(y),
        "target": target,
        "scores": [[_WORDS.get(n, n.replace("_", " ")), rounded(v)] for n, v in scores.items()],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfDomainWarning)
        guess = np.asarray(model.predict(X))
        if not hasattr(model, "classes_"):
            found["points"] = _points(np.asarray(y, dtype=np.float64), guess)
            return found
        if hasattr(model, "predict_proba") and len(model.classes_) == 2:
            found["chances"] = _chances(model, X, y)
    if len(model.classes_) <= _CLASSES:
        found["confusion"] = _confusion(model, np.asarray(y), guess)
    return found


def _points(truth: np.ndarray, guess: np.ndarray) -> list[list[float]]:
    """Predictions and targets of at most `_POINTS` rows, evenly among them."""
    taken = np.unique(np.linspace(0, len(truth) - 1, min(_POINTS, len(truth))).astype(int))
    return rounded(np.column_stack([guess[taken], truth[taken]]), 5)


def _chances(model: Any, X: Any, y: Any) -> list[list[float]]:
    """Predicted and observed shares of the second class, in groups of about as many rows."""
    chance = np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1]
    hit = np.asarray(y).astype(str) == str(model.classes_[1])
    parts = np.array_split(np.argsort(chance, kind="stable"), min(_CHANCES, len(chance)))
    return [[rounded(chance[p].mean()), rounded(hit[p].mean()), len(p)] for p in parts]


def _confusion(model: Any, truth: np.ndarray, guess: np.ndarray) -> dict[str, Any]:
    """Rows by their true (down) and predicted (across) class."""
    from sklearn.metrics import confusion_matrix

    names = [str(label) for label in model.classes_]
    counts = confusion_matrix(truth.astype(str), guess.astype(str), labels=names)
    return {"classes": names, "counts": counts.tolist()}
