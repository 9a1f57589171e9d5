"""A model that was fitted on a file: its scores, its metadata, and how both are printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.display import two_columns
from .._util.storage import AnyPath
from ..evaluation.candidates import expression
from .export import write_model

_RARE_CLASS = 0.1  # share of a class below which its average precision is shown
_SHOWN_NAMES = 12  # names of columns that a line shows


@dataclass(frozen=True)
class FittedModel:
    """A fitted model with what is needed to use it on other files.

    Attributes
    ----------
    model : estimator
    metadata : dict
        Names of columns and target, normalisation, task, rows, scores.
    scores : dict of str to float
        Accuracy, R² or the share of the deviance explained first, then others.
    scored_rows : int
        Number of held-out rows that the scores are of; 0: they are of the training rows.
    reason : str
        Why the task was taken to be what it is.
    streamed : bool
        Whether the rows were read block by block, never all at once.
    """

    model: Any
    metadata: dict[str, Any]
    scores: dict[str, float]
    scored_rows: int = 0
    reason: str = ""
    streamed: bool = False

    @property
    def score(self) -> float:
        """The main score: accuracy, R² or the share of the deviance explained."""
        return next(iter(self.scores.values()))

    def _has_numeric_target(self) -> bool:
        """Whether the target holds numbers, so that either task is possible."""
        return np.asarray(getattr(self.model, "classes_", 0)).dtype.kind in "iuf"

    def save(self, path: AnyPath) -> None:
        """Write the model in the format that the suffix names; see :func:`write_model`."""
        write_model(self.model, path, self.metadata)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        hidden = ("range", "held_out", "unused")
        shown = {k: v for k, v in self.metadata.items() if k not in hidden and v is not None}
        reader = getattr(self.model, "reader_", None)
        if reader is not None:
            shown["kinds"] = {column.name: column.kind for column in reader.columns}
        return {
            "model": expression(self.model),
            "score": self.score,
            "scores": self.scores,
            "scored_on": "held-out rows" if self.scored_rows else "training rows",
            "scored_rows": self.scored_rows or self.metadata["rows"],
            "held_out": self.metadata["held_out"]["which"] if self.scored_rows else None,
            "streamed": self.streamed,
            **shown,
        }

    def table(self) -> Any:
        """What was fitted, as a rich table."""
        shown = self.to_dict()
        where = f"{shown.pop('scored_rows'):,} {shown.pop('scored_on')}"
        lines = _score_lines(shown.pop("scores"), shown.pop("score"), shown["task"], where)
        lines["held out"] = shown.pop("held_out")
        shown["read"] = "block by block" if shown.pop("streamed") else "into memory"
        if shown["normalize"] == "none":
            del shown["normalize"]
        if shown.pop("kinds", None):
            shown |= {
                "model": _gam_in_words(self.model),
                "columns": _columns_by_kind(self.model.reader_),
            }
        if self.reason:
            other = "regression" if shown["task"] == "classification" else "classification"
            change = f"; otherwise: --task {other}" if self._has_numeric_target() else ""
            shown["task"] += f" ({self.reason}{change})"
        return two_columns(lines | shown, type(self.model).__name__)


def _gam_in_words(model: Any) -> str:
    """A GAM: its terms and its loss."""
    names = model.term_names_
    pairs = len(model.pair_functions_)
    terms = f"{len(names) - pairs} terms" + (f" and {pairs} pairs" if pairs else "")
    return f"{terms}, {model.loss}, {float(model.edf_.sum()):.1f} degrees of freedom"


def _score_lines(scores: dict[str, float], score: float, task: str, where: str) -> dict[str, Any]:
    """The scores, in words, that stand at the top of the table."""
    if task == "regression":
        r2 = scores["r2"]
        worse = f"{r2:.4g} (worse than always predicting their mean)"
        shown = {f"deviance explained on {where}": scores["d2"]} if "d2" in scores else {}
        return shown | {
            f"R² on {where}": worse if r2 < 0 else r2,
            "root mean square error": scores["rmse"],
        }
    words = f"{score:.4g} (most frequent class: {scores['most_frequent_class']:.4g})"
    lines: dict[str, Any] = {f"accuracy on {where}": words, "area under ROC": scores.get("roc_auc")}
    if scores.get("rarer_class", 1.0) < _RARE_CLASS:
        rare = f"{scores['average_precision']:.4g} (its share: {scores['rarer_class']:.3g})"
        lines["average precision of the rarer class"] = rare
    return lines


def _columns_by_kind(reader: Any) -> str:
    """Names of the columns, one line for each kind."""
    lines = []
    for kind, plural in (("number", "numbers"), ("category", "categories"), ("date", "dates")):
        columns = [column for column in reader.columns if column.kind == kind]
        names = [column.name for column in columns]
        if kind == "date":
            names = [f"{date.name} ({', '.join(['trend', *date.parts])})" for date in columns]
        if names:
            more = f", … ({len(names)})" if len(names) > _SHOWN_NAMES else ""
            lines.append(f"{plural}: {', '.join(names[:_SHOWN_NAMES])}{more}")
    return "\n".join(lines)
