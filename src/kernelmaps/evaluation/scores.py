"""Scores of predictions: what fit says about held-out rows, and evaluate about a file."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..data.sources import stack_rows, take_rows
from ..exceptions import OutOfDomainWarning
from ..models.gam.training_rows import one_against_rest
from ..models.losses import LINKS
from ..models.risk_sets import concordance
from ..models.shapes import predictor_of

METRICS = {
    "concordance": "concordance index", "d2": "deviance explained", "r2": "R²", "rmse": "RMSE",
    "mean_absolute_error": "mean absolute error", "accuracy": "accuracy",
    "most_frequent_class": "share of the most frequent class",
    "balanced_accuracy": "balanced accuracy", "log_loss": "log loss", "roc_auc": "AUC",
    "average_precision": "average precision of the rarer class",
    "rarer_class": "share of the rarer class",
}  # fmt: skip
"""Scores in words, by their names in `PredictionScores.scores` and in JSON."""

CHECKED_ROWS = 20_000  # that a model is checked on: memory for all their columns


class PredictionScores:
    """A model's predictions beside the targets of rows that come block by block.

    Some numbers are kept for each row, and none of the rows' features.

    Parameters
    ----------
    model : fitted estimator
    name : str
        The data, for messages.
    refuse : bool
        Whether to refuse classes that the model does not know. Else their rows count as wrong
        predictions, and probabilities are judged on the others.
    """

    def __init__(self, model: Any, name: str = "the data", *, refuse: bool = True) -> None:
        self.model, self.name, self.refuse = model, name, refuse
        self.classes = getattr(model, "classes_", None)
        self._strange: dict[Any, int] = {}  # codes of classes that the model does not know
        self._truth: list[np.ndarray] = []  # targets, or codes of classes
        self._predicted: list[np.ndarray] = []
        self._exposure: list[np.ndarray] = []
        self._probabilities: list[np.ndarray] = []  # of the second of two classes
        self._log_loss_sum = 0.0  # sum of the logarithmic losses

    def add(self, X: Any, y: Any, exposure: Any = None) -> PredictionScores:
        """Predict some more rows."""
        options = {} if exposure is None else {"exposure": exposure}
        # Some rows lie beyond those of the fit: no need to warn.
        with warnings.catch_warnings(action="ignore", category=OutOfDomainWarning):
            predicted = np.asarray(self.model.predict(X, **options))
            if getattr(self.model, "_is_survival", False):
                truth = self.model._targets_as_columns(y)
            elif self.classes is None:
                truth = np.asarray(y).astype(np.float64)
            else:
                truth, predicted = self._codes(np.asarray(y), predicted)
                if hasattr(self.model, "predict_proba"):
                    self._add_probabilities(
                        truth, np.asarray(self.model.predict_proba(X), np.float64)
                    )
        self._truth.append(truth)
        self._predicted.append(predicted)
        self._exposure.append(np.ones(len(truth)) if exposure is None else np.asarray(exposure))
        return self

    def _add_probabilities(self, codes: np.ndarray, probabilities: np.ndarray) -> None:
        from sklearn.metrics import log_loss

        codes, probabilities = codes[codes >= 0], probabilities[codes >= 0]
        if len(codes):
            places = range(probabilities.shape[1])
            self._log_loss_sum += float(
                log_loss(codes, probabilities, labels=places, normalize=False)
            )
            self._probabilities.append(
                probabilities[:, 1] if len(places) == 2 else probabilities[:0, 0]
            )

    def _codes(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of labels among the classes; a number below zero for each that is not known."""
        classes = np.asarray(self.classes)
        if truth.dtype.kind != classes.dtype.kind:
            truth, predicted, classes = (
                truth.astype(str),
                predicted.astype(str),
                classes.astype(str),
            )
        strange = np.setdiff1d(truth, classes)
        if strange.size and self.refuse:
            raise ValueError(
                f"{self.name}: the target has the classes {strange[:5].tolist()}, which the model "
                "was not fitted on."
            )
        order = np.argsort(classes)  # "10" comes before "2"
        places = (np.searchsorted(classes, labels, sorter=order) for labels in (truth, predicted))
        codes, predicted = (np.append(order, -1)[place] for place in places)
        unknown = np.isin(truth, strange)
        codes[unknown] = [
            self._strange.setdefault(label, -1 - len(self._strange))
            for label in truth[unknown].tolist()
        ]
        return codes, predicted

    @property
    def rows(self) -> int:
        """How many rows were predicted."""
        return sum(map(len, self._truth))

    @property
    def truth(self) -> np.ndarray:
        """Targets, or codes of the classes; of survival models times and events, two columns."""
        return np.concatenate(self._truth)

    @property
    def predicted(self) -> np.ndarray:
        """Predictions, or codes of the classes that are predicted."""
        return np.concatenate(self._predicted)

    @property
    def probabilities(self) -> np.ndarray | None:
        """Probabilities of the second of two classes."""
        two = self.classes is not None and len(self.classes) == 2
        return np.concatenate(self._probabilities) if two and self._probabilities else None

    def scores(self) -> dict[str, float]:
        """Scores of all rows, the main one first.

        R² or accuracy; of models with another link than the identity the share of the deviance
        that they explain, of survival models the concordance index.
        """
        truth, predicted = self.truth, self.predicted
        if truth.ndim == 2:
            return {"concordance": concordance(truth[:, 0], truth[:, 1], predicted)}
        if self.classes is None:
            from sklearn.metrics import mean_absolute_error, r2_score

            return self._deviance_explained() | {
                "r2": float(r2_score(truth, predicted)) if len(truth) > 1 else float("nan"),
                "rmse": float(np.sqrt(np.mean((truth - predicted) ** 2))),
                "mean_absolute_error": float(mean_absolute_error(truth, predicted)),
            }
        classes, codes, counts = np.unique(truth, return_inverse=True, return_counts=True)
        right = truth == predicted
        scores = {
            "accuracy": float(right.mean()),
            "most_frequent_class": float(counts.max() / len(truth)),
            "balanced_accuracy": float((np.bincount(codes, right, len(classes)) / counts).mean()),
        }
        truth = truth[truth >= 0]
        if self._probabilities:
            from sklearn.metrics import average_precision_score, roc_auc_score

            scores["log_loss"] = self._log_loss_sum / len(truth)
            if len(self.classes) == 2 == len(np.unique(truth)):
                scores["roc_auc"] = float(roc_auc_score(truth, self.probabilities))
                # Of the rarer class, which the AUC says little about.
                rare, probabilities = truth, np.concatenate(self._probabilities)
                if truth.mean() > 0.5:
                    rare, probabilities = 1 - truth, 1 - probabilities
                scores["average_precision"] = float(average_precision_score(rare, probabilities))
                scores["rarer_class"] = float(rare.mean())
        return scores

    def _deviance_explained(self) -> dict[str, float]:
        """Share of the deviance that predictions explain, of models with a link."""
        predictor = predictor_of(self.model)
        if getattr(predictor, "_link", "identity") == "identity":
            return {}
        loss, exposure = predictor.fitted_loss, np.concatenate(self._exposure)
        y, weight, offset = loss.with_exposure(self.truth, np.ones(self.rows), exposure)
        eta = LINKS[loss.link].function(self.predicted / exposure) + offset
        return {"d2": loss.deviance_explained(y, eta, weight, offset)}

    def check(self, blocks: Iterable[Any]) -> Any:
        """The `check` of a generalised additive model on the first rows, which are read again.

        None for other models and predictors, which know no dispersion, for classes of which one is
        fitted against the others, and where some targets are of a class that the model does not
        know.
        """
        if not hasattr(self.model, "edf_"):
            return None
        if self.classes is not None and len(self.model.edf_) > 1:
            return None
        if getattr(getattr(self.model, "baseline_", None), "strata", None) is not None:
            return None  # of which the rows would have to be known
        parts, n_rows = [], 0
        for X in blocks:
            parts.append(take_rows(X, np.arange(min(CHECKED_ROWS - n_rows, X.shape[0]))))
            n_rows += X.shape[0]
            if n_rows >= CHECKED_ROWS:
                break
        columns = self.model._columns(stack_rows(parts))
        y = self.truth[: len(columns[0])]
        if self.classes is not None:
            if (y < 0).any():
                return None
            (y,) = one_against_rest(y, self.model.loss_.positive_codes(len(self.classes)))
        loss, exposure = self.model.loss_, np.concatenate(self._exposure)[: len(y)]
        offset = loss.with_exposure(y, np.ones(len(y)), exposure)[2]
        trials = exposure if loss.counts_trials else None
        return self.model._check_rows(columns, y, None, offset, trials=trials)

    def class_scores(self) -> dict[str, dict[str, float]]:
        """Rows, recall and precision of each class."""
        from sklearn.metrics import precision_recall_fscore_support

        classes = np.asarray(self.classes)
        precision, recall, _, support = precision_recall_fscore_support(
            self.truth, self.predicted, labels=np.arange(len(classes)), zero_division=0
        )
        return {
            str(label): {"rows": int(n), "recall": float(r), "precision": float(p)}
            for label, n, r, p in zip(classes, support, recall, precision)
        }
