"""Fit a model on a file of rows, score it on rows that it has not seen, and save it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import kernelmaps

from ..data import Block, Rows, read_rows
from ..data.columns import no_target
from ..data.holdout import PartOfSource, held_out
from ..data.prepared import PreparedSource, open_rows
from ..data.reading import read_columns
from ..data.suffixes import is_csv, is_parquet
from ..display import two_columns
from ..evaluation.task import Task, decide_task
from ..exceptions import OutOfDomainWarning
from ..maps.base import AdditiveMap, FeatureMap
from .exporting import write_model
from .parsing import parse_map

__all__ = ["FitSettings", "FittedModel", "fit_file", "fit_rows", "fit_source"]

MODELS = ("additive", "ridge")
_LOOK = 16384  # rows that are looked at together
_FEWEST = 20  # rows below which none are held out


def _silent(line: str) -> None:
    """What a long work says about its progress, to nobody."""


@dataclass(frozen=True)
class FitSettings:
    """What to fit.

    Attributes
    ----------
    model : {"additive", "ridge"}
    feature_map : str, map or None
        See :func:`parse_map`; None takes the model's own default.
    task : {"auto", "classification", "regression"}
        "auto" looks at the target, see :func:`decide_task`.
    C : float
        Inverse strength of the regularisation.
    normalize : str
        How the rows were scaled, to be repeated when predicting.
    holdout : bool
        Whether to score on one in five rows, held out from a first fit; the model that is kept is
        fitted on all rows. False scores on the training rows.
    say : callable
        Called with a line of text when a long step begins.
    """

    model: str = "additive"
    feature_map: str | FeatureMap | None = None
    task: str = "auto"
    C: float = 1.0
    normalize: str = "none"
    holdout: bool = True
    say: Callable[[str], None] = field(default=_silent, compare=False)


@dataclass(frozen=True)
class FittedModel:
    """A fitted model with what is needed to use it on other files.

    Attributes
    ----------
    model : estimator
    metadata : dict
        Names of columns and target, normalisation, task, rows.
    score : float
        Accuracy or R².
    scored_rows : int
        Number of held-out rows that the score is of; 0: it is of the training rows.
    reason : str
        Why the task was taken to be what it is.
    streamed : bool
        Whether the rows were read block by block, never all at once.
    """

    model: Any
    metadata: dict[str, Any]
    score: float
    scored_rows: int = 0
    reason: str = ""
    streamed: bool = False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model in the format that the suffix names; see :func:`write_model`."""
        write_model(self.model, path, self.metadata)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        known = {key: value for key, value in self.metadata.items() if key != "range"}
        return {
            "model": repr(self.model),
            "score": self.score,
            "scored_on": "held-out rows" if self.scored_rows else "training rows",
            "scored_rows": self.scored_rows or self.metadata["rows"],
            "streamed": self.streamed,
            **known,
        }

    def table(self) -> Any:
        """What was fitted, as a rich table."""
        shown = self.to_dict()
        name = "R²" if self.metadata["task"] == "regression" else "accuracy"
        where = f"{shown.pop('scored_rows'):,} {shown.pop('scored_on')}"
        first = {f"{name} on {where}": shown.pop("score")}
        shown["read"] = "block by block" if shown.pop("streamed") else "into memory"
        if self.reason:
            other = "regression" if shown["task"] == "classification" else "classification"
            shown["task"] += f" ({self.reason}; otherwise: --task {other})"
        return two_columns(first | shown, f"{type(self.model).__name__}")


def fit_rows(rows: Rows, settings: FitSettings | None = None) -> FittedModel:
    """Fit an additive or a ridge model on rows with a target."""
    settings = settings or FitSettings()
    chosen = _checked_map(settings)
    task = _task(rows.y, settings)
    X = rows.X
    y = rows.y if task.name == "classification" else _real_targets(rows.y, rows.name)
    unfitted = _estimator(settings, task.name, chosen)
    held = held_out(0, X.shape[0])
    score, scored = None, 0
    if settings.holdout and _can_hold_out(y[~held], task.name) and held.any():
        settings.say(f"fitting on {int((~held).sum()):,} rows, {int(held.sum()):,} are held out")
        first = clone(unfitted).fit(X[~held], y[~held])
        score = _score(task.name, y[held], _predicted(first, X[held]))
        scored = int(held.sum())
    settings.say(f"fitting {type(unfitted).__name__} on all {X.shape[0]:,} rows")
    fitted = unfitted.fit(X, y)
    if score is None:
        score = _score(task.name, y, fitted.predict(X))
    metadata = {
        "task": task.name,
        "target": rows.target,
        "columns": rows.columns,
        "ids": [name for name, cells in rows.kept.items() if _are_ids(cells)],
        "normalize": settings.normalize,
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "range": _range(X),
    }
    return FittedModel(fitted, metadata, score, scored, task.reason)


def fit_file(
    data: str | os.PathLike[str],
    settings: FitSettings | None = None,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
) -> FittedModel:
    """Fit a model on a file: a ridge model block by block, so that memory does not limit it.

    CSV, npz, and the data of additive models, whose solver goes over the rows many times, are read
    into memory. Excluded columns (`drop`) whose values all differ are noted as IDs, which
    predictions then carry along.
    """
    settings = settings or FitSettings()
    path = Path(data)
    named = is_csv(path) or is_parquet(path)
    streamed = settings.model == "ridge" and path.exists() and not is_csv(path)
    settings.say(f"reading {path.name}")
    if streamed and path.suffix.lower() != ".npz":
        source = open_rows(
            path, target=target, columns=columns, drop=drop, normalize=settings.normalize
        )
        kept = read_columns(path, drop, _LOOK) if drop and named else {}
        return fit_source(source, settings, kept)
    keep = drop if named else ()
    rows = read_rows(data, target=target, columns=columns, drop=drop, keep=keep, need_target=True)
    return fit_rows(rows.normalized(settings.normalize), settings)


def fit_source(
    source: PreparedSource, settings: FitSettings | None = None, kept: dict[str, Any] | None = None
) -> FittedModel:
    """Fit a ridge model on blocks of rows: a pass each for the held-out score, and for the model.

    What the target is ("auto") is told from a sample of the rows.
    """
    settings = settings or FitSettings(model="ridge")
    chosen = _checked_map(settings)
    look = source.sample(_LOOK)
    if look is None:
        raise ValueError(f"{source.describe()} has no rows.")
    if look.y is None:
        raise no_target(source.describe(), source.columns)
    task = _task(look.y, settings)
    unfitted = _estimator(settings, task.name, chosen)
    seen = _Seen()
    holdout = settings.holdout and _can_hold_out(look.y, task.name)
    if holdout:
        settings.say("first pass: fitting on four in five rows")
        first = clone(unfitted).fit(PartOfSource(source, held=False))
        for block in PartOfSource(source, held=True).blocks(_LOOK):
            seen.predicted(block, _predicted(first, block.X))
    settings.say(f"fitting {type(unfitted).__name__} on all rows")
    fitted = unfitted.fit(source)
    for block in source.blocks(_LOOK):
        seen.add(block)
        if not holdout:
            seen.predicted(block, fitted.predict(block.X))
    metadata = {
        "task": task.name,
        "target": source.target,
        "columns": source.columns,
        "ids": [name for name, cells in (kept or {}).items() if _are_ids(cells)],
        "normalize": settings.normalize,
        "rows": seen.rows,
        "features": int(look.X.shape[1]),
        "range": seen.range(),
    }
    score, scored = seen.score(task.name)
    return FittedModel(
        fitted, metadata, score, scored if holdout else 0, task.reason, streamed=True
    )


class _Seen:
    """What a pass over the rows gathers: how many, their range, targets and predictions."""

    def __init__(self) -> None:
        self.rows = 0
        self.low: Any = None  # least and largest value of each column, from the first block on
        self.high: Any = None
        self.targets: list[np.ndarray] = []
        self.predictions: list[np.ndarray] = []

    def add(self, block: Block) -> None:
        self.rows += block.X.shape[0]
        ends = _range(block.X)
        if ends is not None:
            self.low = ends[0] if self.low is None else np.minimum(self.low, ends[0])
            self.high = ends[1] if self.high is None else np.maximum(self.high, ends[1])

    def predicted(self, block: Block, predictions: np.ndarray) -> None:
        self.targets.append(block.y)
        self.predictions.append(predictions)

    def range(self) -> list[list[float]] | None:
        if self.low is None:
            return None
        return [np.asarray(end, dtype=float).tolist() for end in (self.low, self.high)]

    def score(self, task: str) -> tuple[float, int]:
        truth, found = np.concatenate(self.targets), np.concatenate(self.predictions)
        return _score(task, truth, found), len(truth)


def _score(task: str, truth: np.ndarray, found: np.ndarray) -> float:
    from sklearn.metrics import accuracy_score, r2_score

    return float((accuracy_score if task == "classification" else r2_score)(truth, found))


def _predicted(model: Any, X: Any) -> np.ndarray:
    """Predictions of held-out rows, some of which lie beyond the others: no need to warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfDomainWarning)
        return model.predict(X)


def _can_hold_out(y: np.ndarray, task: str) -> bool:
    """Whether enough is left to fit on: some rows, and two classes."""
    return len(y) >= _FEWEST and (task == "regression" or len(np.unique(y)) > 1)


def _are_ids(cells: Sequence[Any]) -> bool:
    """Whether values name the rows: all different, and no measurements."""
    if len(set(cells)) < len(cells):
        return False
    return not all(isinstance(cell, float) or _is_fraction(cell) for cell in cells)


def _is_fraction(cell: Any) -> bool:
    """Whether a cell of text is a number with a fraction."""
    try:
        return isinstance(cell, str) and not float(cell).is_integer()
    except (ValueError, OverflowError):
        return False


def _task(y: Any, settings: FitSettings) -> Task:
    return decide_task(y, settings.task, owner="fit")


def _real_targets(y: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(y, dtype=np.float64)
    except ValueError:
        raise ValueError(
            f"{name}: the target holds text, which a regression cannot predict: use "
            "task=classification, or name another target."
        ) from None


def _checked_map(settings: FitSettings) -> FeatureMap | None:
    """The map, after what was asked for has been looked at."""
    model, feature_map = settings.model, settings.feature_map
    if model not in MODELS:
        raise ValueError(f"the model must be one of {', '.join(MODELS)}, got {model!r}.")
    chosen = parse_map(feature_map) if isinstance(feature_map, str) else feature_map
    if model == "additive" and chosen is not None and not isinstance(chosen, AdditiveMap):
        raise ValueError(
            f"an additive model needs an additive map, and {type(chosen).__name__} is a joint "
            "one: use model=ridge, or a map such as SplineMap or HomogeneousMap."
        )
    return chosen


def _estimator(settings: FitSettings, task: str, feature_map: FeatureMap | None) -> Any:
    """The same file gives the same model: whatever is drawn at random is drawn from seed 0."""
    model, C = settings.model, settings.C
    if not 0 < C < np.inf:
        raise ValueError(f"{model} model: C must be a positive number, got {C!r}.")
    if feature_map is not None and feature_map.get_params().get("random_state", 0) is None:
        feature_map.set_params(random_state=0)
    if model == "additive":
        kind = "AdditiveClassifier" if task == "classification" else "AdditiveRegressor"
        numbers: dict[str, Any] = {"C": C, "random_state": 0}
    else:
        kind = "StreamingRidgeClassifier" if task == "classification" else "StreamingRidge"
        numbers = {"alpha": 1 / C}
    return getattr(kernelmaps, kind)(feature_map=feature_map, **numbers)


def _range(X: Any) -> list[list[float]] | None:
    """Smallest and largest value of each column, for drawing; not for very wide data."""
    if X.shape[1] > 10_000:
        return None
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(low):
        low, high = low.toarray(), high.toarray()
    return [np.ravel(end).astype(float).tolist() for end in (low, high)]
