"""Fit a model on a file of rows, and what there is to say about it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import kernelmaps

from ..data import Block, Rows, read_rows
from ..data.columns import no_target
from ..data.prepared import PreparedSource, open_rows
from ..data.reading import CSV
from ..evaluation.comparison import _checked as checked_targets
from ..maps.base import AdditiveMap, FeatureMap
from ..model_files import save
from .parsing import parse_map
from .tables import two_columns

__all__ = ["FittedModel", "fit_file", "fit_rows", "fit_source"]

MODELS = ("additive", "ridge")
_LOOK = 16384  # rows that are looked at together


@dataclass(frozen=True)
class FittedModel:
    """A fitted model with what is needed to use it on other files.

    Attributes
    ----------
    model : estimator
    metadata : dict
        Names of columns and target, normalisation, task, rows.
    score : float
        Accuracy or R² on the training rows.
    streamed : bool
        Whether the rows were read block by block, never all at once.
    """

    model: Any
    metadata: dict[str, Any]
    score: float
    streamed: bool = False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file."""
        save(self.model, path, metadata=self.metadata)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        known = {key: value for key, value in self.metadata.items() if key != "range"}
        return {
            "model": repr(self.model),
            "training_score": self.score,
            "streamed": self.streamed,
            **known,
        }

    def table(self) -> Any:
        """What was fitted, as a rich table."""
        shown = self.to_dict()
        name = "R²" if self.metadata["task"] == "regression" else "accuracy"
        shown[f"{name} on the training rows"] = shown.pop("training_score")
        shown["read"] = "block by block" if shown.pop("streamed") else "into memory"
        return two_columns(shown, f"{type(self.model).__name__}")


def fit_rows(
    rows: Rows,
    *,
    model: str = "additive",
    feature_map: str | FeatureMap | None = None,
    task: str = "auto",
    C: float = 1.0,
    normalize: str = "none",
) -> FittedModel:
    """Fit an additive or a ridge model on rows with a target.

    Parameters
    ----------
    rows : Rows
    model : {"additive", "ridge"}
    feature_map : str, map or None
        See :func:`parse_map`; None takes the model's own default.
    task : {"auto", "classification", "regression"}
        "auto" looks at the target: classes if it has few values or strings.
    C : float
        Inverse strength of the regularisation.
    normalize : str
        How the rows were scaled, to be repeated when predicting.
    """
    chosen = _checked_wishes(model, feature_map, task)
    X, y, found = checked_targets(rows.X, rows.y)
    task = found if task == "auto" else task
    target = rows.y if task == "classification" else np.asarray(y, dtype=np.float64)
    fitted = _estimator(model, task, chosen, C).fit(X, target)
    metadata = {
        "task": task,
        "target": rows.target,
        "columns": rows.columns,
        "normalize": normalize,
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "range": _range(X),
    }
    return FittedModel(fitted, metadata, float(fitted.score(X, target)))


def fit_file(
    data: str | os.PathLike[str],
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    normalize: str = "none",
    model: str = "additive",
    **options: Any,
) -> FittedModel:
    """Fit a model on a file: a ridge model block by block, so that memory does not limit it.

    CSV, npz, and the data of additive models, whose solver goes over the rows many times, are read
    into memory. `options` are those of :func:`fit_rows`.
    """
    path = Path(data)
    if model == "ridge" and path.exists() and path.suffix.lower() not in (*CSV, ".npz"):
        source = open_rows(path, target=target, columns=columns, drop=drop, normalize=normalize)
        return fit_source(source, normalize=normalize, **options)
    rows = read_rows(data, target=target, columns=columns, drop=drop, need_target=True)
    return fit_rows(rows.normalized(normalize), model=model, normalize=normalize, **options)


def fit_source(
    source: PreparedSource,
    *,
    feature_map: str | FeatureMap | None = None,
    task: str = "auto",
    C: float = 1.0,
    normalize: str = "none",
) -> FittedModel:
    """Fit a ridge model in one pass over blocks of rows; a second one takes its score.

    What the target is ("auto") is told from a sample of the rows.
    """
    chosen = _checked_wishes("ridge", feature_map, task)
    look = source.sample(_LOOK)
    if look is None:
        raise ValueError(f"{source.describe()} has no rows.")
    if look.y is None:
        raise no_target(source.describe(), source.columns)
    task = checked_targets(look.X, look.y)[2] if task == "auto" else task
    fitted = _estimator("ridge", task, chosen, C).fit(source)
    seen = _Seen()
    for block in source.blocks(_LOOK):
        seen.add(block, fitted.predict(block.X))
    metadata = {
        "task": task,
        "target": source.target,
        "columns": source.columns,
        "normalize": normalize,
        "rows": seen.rows,
        "features": int(look.X.shape[1]),
        "range": seen.range(),
    }
    return FittedModel(fitted, metadata, seen.score(task), streamed=True)


class _Seen:
    """What a pass over the rows gathers: how many, their range, targets and predictions."""

    def __init__(self) -> None:
        self.rows = 0
        self.low: Any = None  # least and largest value of each column, from the first block on
        self.high: Any = None
        self.targets: list[np.ndarray] = []
        self.predictions: list[np.ndarray] = []

    def add(self, block: Block, predictions: np.ndarray) -> None:
        self.rows += block.X.shape[0]
        self.targets.append(block.y)
        self.predictions.append(predictions)
        ends = _range(block.X)
        if ends is not None:
            self.low = ends[0] if self.low is None else np.minimum(self.low, ends[0])
            self.high = ends[1] if self.high is None else np.maximum(self.high, ends[1])

    def range(self) -> list[list[float]] | None:
        if self.low is None:
            return None
        return [np.asarray(end, dtype=float).tolist() for end in (self.low, self.high)]

    def score(self, task: str) -> float:
        from sklearn.metrics import accuracy_score, r2_score

        truth, found = np.concatenate(self.targets), np.concatenate(self.predictions)
        measure = accuracy_score if task == "classification" else r2_score
        return float(measure(truth, found))


def _checked_wishes(model: str, feature_map: Any, task: str) -> FeatureMap | None:
    """The map, after what was asked for has been looked at."""
    if model not in MODELS:
        raise ValueError(f"the model must be one of {', '.join(MODELS)}, got {model!r}.")
    if task not in ("auto", "classification", "regression"):
        raise ValueError(f"the task must be classification, regression or auto, got {task!r}.")
    chosen = parse_map(feature_map) if isinstance(feature_map, str) else feature_map
    if model == "additive" and chosen is not None and not isinstance(chosen, AdditiveMap):
        raise ValueError(
            f"an additive model needs an additive map, and {type(chosen).__name__} is a joint "
            "one: use --model ridge, or a map such as SplineMap or HomogeneousMap."
        )
    return chosen


def _estimator(model: str, task: str, feature_map: FeatureMap | None, C: float) -> Any:
    """The same file gives the same model: whatever is drawn at random is drawn from seed 0."""
    if not 0 < C < np.inf:
        raise ValueError(f"{model} model: C must be a positive number, got {C!r}.")
    if feature_map is not None and feature_map.get_params().get("random_state", 0) is None:
        feature_map.set_params(random_state=0)
    if model == "additive":
        kind = "AdditiveClassifier" if task == "classification" else "AdditiveRegressor"
        settings: dict[str, Any] = {"C": C, "random_state": 0}
    else:
        kind = "StreamingRidgeClassifier" if task == "classification" else "StreamingRidge"
        settings = {"alpha": 1 / C}
    return getattr(kernelmaps, kind)(feature_map=feature_map, **settings)


def _range(X: Any) -> list[list[float]] | None:
    """Smallest and largest value of each column, for drawing; not for very wide data."""
    if X.shape[1] > 10_000:
        return None
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(low):
        low, high = low.toarray(), high.toarray()
    return [np.ravel(end).astype(float).tolist() for end in (low, high)]
