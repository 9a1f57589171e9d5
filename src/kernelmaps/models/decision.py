"""From the scores of outputs to classes, votes and probabilities, wherever the scores are.

NumPy alone is imported: fitted models of files predict with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._util.arguments import refuse_masked
from .._util.devices import is_foreign, namespace_of, to_host
from ..data.columns import reorder_columns


def sigmoid(scores: Any) -> Any:
    """1/(1 + exp(−z)) in float64, without overflow."""
    xp = namespace_of(scores)
    z = xp.astype(scores, xp.float64)
    small = xp.exp(-xp.abs(z))  # the half that does not overflow
    return xp.where(z >= 0, 1 / (1 + small), small / (1 + small))


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities proportional to the exponentials of scores (n, n_classes)."""
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def class_probabilities(p: Any) -> Any:
    """Probabilities of all classes from those of the outputs, scaled to sum to one."""
    xp = namespace_of(p)
    if p.shape[1] == 1:
        return xp.concat([1 - p, p], axis=1)
    total = xp.sum(p, axis=1, keepdims=True)
    positive = total > 0
    uniform = xp.full_like(p, 1 / p.shape[1])
    return xp.where(positive, p / xp.where(positive, total, xp.ones_like(total)), uniform)


def class_pairs(n_classes: int) -> np.ndarray:
    """All pairs of class codes (a, b), a < b, in scikit-learn's order; b is called +1."""
    return np.stack(np.triu_indices(n_classes, 1), axis=1)


def count_votes(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Votes of the pairs for each class, ties broken by the sums of their scores.

    The sums are squashed to less than half a vote: these are the values of scikit-learn's
    `OneVsOneClassifier` and, by default, of its `SVC`.

    Parameters
    ----------
    scores : ndarray of shape (n, n_pairs)
        In the order of `class_pairs`; positive for the second class.
    n_classes : int
    """
    from sklearn.utils.multiclass import _ovr_decision_function

    return _ovr_decision_function((scores > 0).astype(int), scores, n_classes)


def best_codes(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Codes of the classes that scores of outputs (one, one per class, or one per pair) stand for.

    Parameters
    ----------
    scores : ndarray of shape (n, 1), (n, n_classes) or (n, n_pairs)
    n_classes : int
        Three classes have three pairs: scores of pairs are turned into votes before.
    """
    if n_classes == 2:
        return (scores[:, 0] > 0).astype(int)
    return scores.argmax(axis=1)


def best_labels(model: Any, scores: Any) -> Any:
    """The classes of the highest scores, where the scores are.

    Parameters
    ----------
    model : classifier
        Has `classes_`.
    scores : array of shape (n, outputs)
        One output is that of the second of two classes.
    """
    classes = model.classes_
    if not is_foreign(scores):
        return classes[best_codes(scores, len(classes))]
    xp = namespace_of(scores)
    if classes.dtype.kind not in "biuf":
        raise TypeError(
            f"{type(model).__name__}.predict: labels of type {classes.dtype} have no form on "
            f"{scores.device}. Take classes_[k] of the k with the highest decision_function(X)."
        )
    two = scores.shape[1] == 1
    best = xp.astype(scores[:, 0] > 0, xp.int64) if two else xp.argmax(scores, axis=1)
    return xp.take(xp.asarray(classes, device=scores.device), best, axis=0)


class PredictsRows:
    """What fitted objects have that predict without their estimator, whose name they know."""

    estimator: Any

    @property
    def classes_(self: Any) -> np.ndarray:
        """Labels, of a classifier."""
        if self.classes is None:
            raise AttributeError(f"{self.estimator} has no classes")
        return self.classes

    @property
    def output_names(self: Any) -> list[str]:
        """What scores are of: the prediction, classes, or pairs of classes."""
        names = ["prediction"] if self.classes is None else [str(item) for item in self.classes]
        if self._pairwise:
            return [f"{names[b]}, not {names[a]}" for a, b in class_pairs(len(names))]
        return names[1:] if len(names) == 2 else names

    @property
    def decision_function(self: Any) -> Callable[[Any], np.ndarray]:
        """Scores of the classes for rows as `predict` takes them; of two classes one column."""
        _ = self.classes_  # others have no classes to decide for

        def compute_scores(X: Any) -> np.ndarray:
            scores = self._scores_of_rows(X)
            return scores[:, 0] if scores.shape[1] == 1 else scores

        return compute_scores

    def _native_rows(self: Any, X: Any) -> np.ndarray:
        """Rows as numbers, columns of a frame found by name, after their shape was checked."""
        X = np.ascontiguousarray(reorder_columns(self, X), np.float64)
        if X.shape[1:] != (self.n_features_in_,):
            raise ValueError(
                f"{self.estimator} is expecting {self.n_features_in_} features, X is {X.shape}."
            )
        return X


class ScoresAnywhere:
    """`score` of scikit-learn's mixins, also for rows and targets of other array libraries."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or R² of a regressor.

        Parameters
        ----------
        X : array-like, sparse matrix, device array, …
            Rows, as for `predict`. They stay where they are; their predictions are copied.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            True labels or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            Accuracy, or R².
        """
        refuse_masked(self, "y", y)
        refuse_masked(self, "sample_weight", sample_weight)
        if not (is_foreign(X) or is_foreign(y)):
            return super().score(X, y, sample_weight)  # type: ignore[misc]
        from sklearn.base import is_classifier
        from sklearn.metrics import accuracy_score, r2_score

        measure = accuracy_score if is_classifier(self) else r2_score
        predicted = to_host(self.predict(X))  # type: ignore[attr-defined]
        weight = None if sample_weight is None else to_host(sample_weight)
        return float(measure(to_host(y), predicted, sample_weight=weight))
