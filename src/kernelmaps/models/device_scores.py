"""Labels, accuracy and R² of models, wherever the rows and the targets are."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace
from sklearn.base import is_classifier

from .._util.arguments import refuse_masked
from .._util.devices import is_foreign, to_host
from .one_against_one import decided


def best_labels(model: Any, scores: Any) -> Any:
    """The classes of the highest scores, where the scores are.

    Parameters
    ----------
    model : classifier
        Has `classes_`.
    found : array of shape (n, outputs)
        Scores; one output is that of the second of two classes.
    """
    classes = model.classes_
    if not is_foreign(scores):
        return classes[decided(scores, len(classes))]
    xp = array_namespace(scores)
    if classes.dtype.kind not in "biuf":
        raise TypeError(
            f"{type(model).__name__}.predict: labels of type {classes.dtype} have no form on "
            f"{scores.device}. Take classes_[k] of the k with the highest decision_function(X)."
        )
    two = scores.shape[1] == 1
    best = xp.astype(scores[:, 0] > 0, xp.int64) if two else xp.argmax(scores, axis=1)
    return xp.take(xp.asarray(classes, device=scores.device), best, axis=0)


def indicators(scores: Any) -> Any:
    """Indicator matrix of the labels with positive scores, where the scores are."""
    if not is_foreign(scores):
        return (scores > 0).astype(int)
    xp = array_namespace(scores)
    return xp.astype(scores > 0, xp.int64)


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
        from sklearn.metrics import accuracy_score, r2_score

        measure = accuracy_score if is_classifier(self) else r2_score
        predicted = to_host(self.predict(X))  # type: ignore[attr-defined]
        weight = None if sample_weight is None else to_host(sample_weight)
        return float(measure(to_host(y), predicted, sample_weight=weight))
