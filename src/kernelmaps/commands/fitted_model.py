"""A fitted model with what is needed to use it on other files, and to print it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..display import two_columns
from ..evaluation.code import expression
from ..evaluation.scoring import MAIN_SCORE
from .exporting import write_model


@dataclass(frozen=True)
class FittedModel:
    """A fitted model with what is needed to use it on other files.

    Attributes
    ----------
    model : estimator
    metadata : dict
        Names of columns and target, normalisation, task, rows, scores.
    scores : dict of str to float
        Accuracy or R² first, then others.
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
        """Accuracy or R²."""
        return self.scores[MAIN_SCORE[self.metadata["task"]]]

    def _is_numeric(self) -> bool:
        """Whether the target holds numbers, so that it could be taken for either."""
        return np.asarray(getattr(self.model, "classes_", 0)).dtype.kind in "iuf"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model in the format that the suffix names; see :func:`write_model`."""
        write_model(self.model, path, self.metadata)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        known = {k: v for k, v in self.metadata.items() if k not in ("range", "held_out")}
        return {
            "model": expression(self.model),
            "score": self.score,
            "scores": self.scores,
            "scored_on": "held-out rows" if self.scored_rows else "training rows",
            "scored_rows": self.scored_rows or self.metadata["rows"],
            "streamed": self.streamed,
            **known,
        }

    def table(self) -> Any:
        """What was fitted, as a rich table."""
        shown = self.to_dict()
        where = f"{shown.pop('scored_rows'):,} {shown.pop('scored_on')}"
        first = _first_lines(shown.pop("scores"), shown.pop("score"), shown["task"], where)
        shown["read"] = "block by block" if shown.pop("streamed") else "into memory"
        if shown["normalize"] == "none":
            del shown["normalize"]
        kinds = shown.pop("kinds", None)
        if kinds:
            shown |= {"model": _in_words(self.model), "columns": _in_kinds(kinds)}
        if self.reason:
            other = "regression" if shown["task"] == "classification" else "classification"
            change = f"; otherwise: --task {other}" if self._is_numeric() else ""
            shown["task"] += f" ({self.reason}{change})"
        return two_columns(first | shown, f"{type(self.model).__name__}")


def _in_words(model: Any) -> str:
    """A model of a table: its terms and its loss."""
    names = model.term_names_
    pairs = len(model.pair_functions_)
    terms = f"{len(names) - pairs} terms" + (f" and {pairs} pairs" if pairs else "")
    return f"{terms}, {model.loss}, {float(model.edf_.sum()):.1f} degrees of freedom"


def _first_lines(scores: dict[str, float], score: float, task: str, where: str) -> dict[str, Any]:
    """The scores that a person asks for first."""
    if task == "regression":
        worse = f"{score:.4g} (worse than always predicting their mean)"
        found: dict[str, Any] = {f"R² on {where}": worse if score < 0 else score}
        return found | ({"root mean square error": scores["rmse"]} if "rmse" in scores else {})
    usual = scores.get("most_frequent_class")
    words = f"{score:.4g}" + (f" (most frequent class: {usual:.4g})" if usual else "")
    found = {f"accuracy on {where}": words}
    return found | ({"area under ROC": scores["roc_auc"]} if "roc_auc" in scores else {})


def _in_kinds(kinds: dict[str, dict[str, Any]]) -> str:
    """Columns by what they hold, one line for each kind."""
    lines = []
    for kind, plural in (("number", "numbers"), ("category", "categories"), ("date", "dates")):
        names = [name for name, own in kinds.items() if own["name"] == kind]
        if kind == "date":
            names = [f"{name} ({', '.join(['trend', *kinds[name]['parts']])})" for name in names]
        if names:
            more = f", … ({len(names)})" if len(names) > 12 else ""
            lines.append(f"{plural}: {', '.join(names[:12])}{more}")
    return "\n".join(lines)
