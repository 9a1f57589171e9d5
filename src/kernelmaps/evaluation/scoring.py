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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfDomainWarning)
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
    found = predicted(model, X)
    if not hasattr(model, "classes_"):
        return prediction_scores("regression", y, found)
    from sklearn.metrics import log_loss, roc_auc_score

    truth, found, known = _comparable(model, y, found, name)
    scores = prediction_scores("classification", truth, found)
    if hasattr(model, "predict_proba"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutOfDomainWarning)
            chances = np.asarray(model.predict_proba(X), dtype=np.float64)
        scores["log_loss"] = float(log_loss(truth, chances, labels=known))
        if len(known) == 2 == len(np.unique(truth)):
            scores["roc_auc"] = float(roc_auc_score(truth == known[1], chances[:, 1]))
    return scores


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


def class_scores(model: Any, X: Any, y: Any, name: str = "the data") -> dict[str, dict[str, float]]:
    """Rows, recall and precision of each class."""
    from sklearn.metrics import precision_recall_fscore_support

    truth, found, known = _comparable(model, y, predicted(model, X), name)
    precision, recall, _, support = precision_recall_fscore_support(
        truth, found, labels=known, zero_division=0
    )
    return {
        str(label): {"rows": int(n), "recall": float(r), "precision": float(p)}
        for label, n, r, p in zip(known, support, recall, precision)
    }


def _comparable(model: Any, y: Any, found: np.ndarray, name: str) -> tuple[Any, Any, Any]:
    """True labels, predicted ones and classes, of one type."""
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
