"""Scores of predictions: what fit says about held-out rows, and evaluate about a file."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..exceptions import OutOfDomainWarning

MAIN_SCORE = {"classification": "accuracy", "regression": "r2"}
"""The score of a task that is named first."""


def predicted(model: Any, X: Any) -> np.ndarray:
    """Predictions of held-out rows, some of which lie beyond the others: no need to warn."""
    with warnings.catch_warnings(action="ignore", category=OutOfDomainWarning):
        return np.asarray(model.predict(X))


def scores_of(model: Any, X: Any, y: Any, name: str = "the data") -> dict[str, float]:
    """Scores of a classifier or a regressor on rows with known targets.

    Parameters
    ----------
    model : fitted estimator
    X, y : rows and targets
    name : str
        The data, for messages.
    """
    return Judged(model, name).add(X, y).scores()


class Judged:
    """A model's predictions beside the targets of rows that come block by block.

    Some numbers are kept for each row, and none of the rows' features.
    """

    def __init__(self, model: Any, name: str = "the data") -> None:
        self.model, self.name = model, name
        self.classes = getattr(model, "classes_", None)
        self._truth: list[np.ndarray] = []  # targets, or codes of classes
        self._found: list[np.ndarray] = []
        self._chances: list[np.ndarray] = []  # of the second of two classes
        self._surprise = 0.0  # sum of the logarithmic losses

    def add(self, X: Any, y: Any) -> Judged:
        """Predict some more rows."""
        found = predicted(self.model, X)
        if self.classes is None:
            self._truth.append(np.asarray(y).astype(np.float64))
            self._found.append(found)
            return self
        truth, found, known = _comparable(self.model, y, found, self.name)
        self._truth.append(np.searchsorted(known, truth))
        self._found.append(np.searchsorted(known, found))
        if hasattr(self.model, "predict_proba"):
            from sklearn.metrics import log_loss

            with warnings.catch_warnings(action="ignore", category=OutOfDomainWarning):
                chances = np.asarray(self.model.predict_proba(X), dtype=np.float64)
            self._surprise += float(log_loss(truth, chances, labels=known, normalize=False))
            self._chances.append(chances[:, 1] if len(known) == 2 else chances[:0, 0])
        return self

    @property
    def rows(self) -> int:
        """How many rows were predicted."""
        return sum(map(len, self._truth))

    @property
    def truth(self) -> np.ndarray:
        """Targets, or codes of the classes."""
        return np.concatenate(self._truth)

    @property
    def found(self) -> np.ndarray:
        """Predictions, or codes of the classes that are predicted."""
        return np.concatenate(self._found)

    @property
    def chances(self) -> np.ndarray | None:
        """Probabilities of the second of two classes."""
        two = self.classes is not None and len(self.classes) == 2
        return np.concatenate(self._chances) if two and self._chances else None

    def scores(self) -> dict[str, float]:
        """Scores of all rows, the main one first."""
        truth, found = self.truth, self.found
        if self.classes is None:
            return prediction_scores("regression", truth, found)
        scores = prediction_scores("classification", truth, found)
        if self._chances:
            from sklearn.metrics import roc_auc_score

            scores["log_loss"] = self._surprise / len(truth)
            if len(self.classes) == 2 == len(np.unique(truth)):
                scores["roc_auc"] = float(roc_auc_score(truth, self.chances))
        return scores

    def class_scores(self) -> dict[str, dict[str, float]]:
        """Rows, recall and precision of each class."""
        from sklearn.metrics import precision_recall_fscore_support

        known = np.asarray(self.classes)
        precision, recall, _, support = precision_recall_fscore_support(
            self.truth, self.found,
            labels=np.arange(len(known)), zero_division=0,
        )  # fmt: skip
        return {
            str(label): {"rows": int(n), "recall": float(r), "precision": float(p)}
            for label, n, r, p in zip(known, support, recall, precision)
        }


def prediction_scores(task: str, y: Any, found: np.ndarray) -> dict[str, float]:
    """Scores that need predictions alone, the main one first."""
    truth = np.asarray(y)
    if task == "regression":
        return _regression_scores(truth.astype(np.float64), found)
    classes, codes, counts = np.unique(truth, return_inverse=True, return_counts=True)
    right = truth == found
    recalls = np.bincount(codes, right, len(classes)) / counts
    return {
        "accuracy": float(right.mean()),
        "most_frequent_class": float(counts.max() / len(truth)),
        "balanced_accuracy": float(recalls.mean()),
    }


def _comparable(model: Any, y: Any, found: np.ndarray, name: str) -> tuple[Any, Any, Any]:
    """True labels, predicted ones and classes, of one type; classes are in order."""
    truth, known = np.asarray(y), np.asarray(model.classes_)
    if truth.dtype.kind != known.dtype.kind:
        truth, found, known = truth.astype(str), found.astype(str), known.astype(str)
    strange = np.setdiff1d(truth, known)
    if strange.size:
        raise ValueError(
            f"{name}: the target has the classes {strange[:5].tolist()}, which the model was not "
            "fitted on."
        )
    return truth, found, known


def _regression_scores(truth: np.ndarray, found: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import mean_absolute_error, r2_score

    return {
        "r2": float(r2_score(truth, found)) if len(truth) > 1 else float("nan"),
        "rmse": float(np.sqrt(np.mean((truth - found) ** 2))),
        "mean_absolute_error": float(mean_absolute_error(truth, found)),
    }
