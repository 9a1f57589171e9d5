"""What a saved GAM predicts with, without its estimator: scikit-learn is not imported.

The estimators use the same state, checks and formulas. A command that predicts a few rows would
otherwise spend most of its time on imports.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..._util.arguments import argument, parameter
from ..._util.schema import (
    SchemaError,
    State,
    anything,
    array,
    boolean,
    instance,
    integer,
    labels,
    names,
    number,
)
from ...data.table_reader import TableReader
from ...engine.apply import MAX_READABLE
from ...exceptions import OutOfDomainWarning
from ..losses import GAM, LOSSES, find_loss
from ..outputs import class_probabilities, sigmoid
from .predictor import AdditivePredictor

# Values of functions, for all rows of a file, that are computed by NumPy: it takes 85 ns more for
# each than the compiled loop (20,000 rows of 60 columns), and loading that takes 1.1 s.
_MOST_READABLE = 2**23

_NAMED_COLUMNS = 5  # in a warning

STATISTICS = ("deviance_", "null_deviance_", "log_likelihood_", "aic_", "reml_", "corrected_edf")

_STATE = State(
    required={
        "reader_": instance((TableReader,)),
        "predictor_": instance((AdditivePredictor,)),
        "n_features_in_": integer(1),
        "intercept_": anything,
        "edf_": array("f8", "outputs"),
        "dispersion_": array("f8", "outputs"),
        "n_rows": integer(1),
        **dict.fromkeys(STATISTICS, number(finite=False)),
    },
    allowed={
        "feature_names_in_": names,
        "objective_": array("f8", "outputs", finite=False),
        "n_iter_": integer(),
        "exposed": boolean,
    },
    private=True,
)
REGRESSOR_STATE = _STATE.extended(
    required={"intercept_": number()}, allowed={"residual_quantiles": array("f8", "_", least=0)}
)
CLASSIFIER_STATE = _STATE.extended(
    required={"classes_": labels, "intercept_": array("f8", "outputs")},
    allowed={"counts_trials": boolean},
)


def check_fitted_parts(model: Any, n_outputs: int) -> None:
    """Raise SchemaError if the entries of a saved model do not fit together."""
    reader, predictor = model.reader_, model.predictor_
    if len(reader.columns) != model.n_features_in_:
        raise SchemaError("the reader has another number of columns")
    feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is not None and list(feature_names) != reader.names:
        raise SchemaError("feature_names_in_ are other names than those of the reader")
    if [book.name for book in predictor.books] != reader.feature_names:
        raise SchemaError("the model has other columns than its reader")
    if len(predictor.intercept) != n_outputs:
        raise SchemaError("the model has another number of outputs")


def check_classes(classes: np.ndarray) -> None:
    """Raise ValueError unless there are at least two classes, all different."""
    if len(np.unique(classes)) != max(2, len(classes)):
        raise ValueError("classes_ must have at least two entries, all different")


def log_exposures(exposure: np.ndarray, n_rows: int) -> np.ndarray:
    """Logarithms of exposures, which must be positive."""
    exposure = np.asarray(exposure, dtype=np.float64)
    if len(exposure) != n_rows or not (np.isfinite(exposure) & (exposure > 0)).all():
        raise ValueError(
            f"AdditiveRegressor: exposure must hold {n_rows} positive numbers, one for each row."
        )
    return np.log(exposure)


def link_of(owner: str, loss: str, of_labels: bool) -> str:
    """ "log" where predictions are exp(f), "logit" for classes, else "identity"."""
    return LOSSES[find_loss(owner, loss, of_labels, GAM)].link


def check_exposure_has_use(loss: str) -> None:
    """Raise ValueError if predictions of a loss are not multiples of an exposure."""
    if link_of("AdditiveRegressor", loss, of_labels=False) != "log":
        usable = [argument("loss", name) for name, cls in LOSSES.items() if cls.link == "log"]
        raise ValueError(
            f"AdditiveRegressor: {parameter('exposure')} is for {' and '.join(usable)}, not "
            f"{loss!r}."
        )


def means_of_scores(scores: np.ndarray, link: str) -> np.ndarray:
    """Predictions of a regressor: the inverse of the link."""
    with np.errstate(over="ignore"):  # far beyond the training rows
        return np.exp(scores) if link == "log" else scores


def labels_of_scores(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The most probable classes, from scores (n_samples, n_outputs)."""
    best = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return classes[best]


def warn_without_exposure(model: Any, call: str, *given: Any) -> None:
    """Warn if a model was fitted with exposures or offsets, and a call has none."""
    if getattr(model, "_exposed", False) and all(item is None for item in given):
        had, instead, pass_it = (
            ("an offset", "it counts as 0", "offset=")
            if model._of_labels
            else ("an exposure or an offset", "each row counts as one unit", "exposure= or offset=")
        )
        warnings.warn(
            f"{call}: the model was fitted with {had}, and none is given: {instead}. Pass "
            f"{pass_it} where there is one.",
            UserWarning,
            stacklevel=3,
        )


def warn_beyond(owner: str, counts: Mapping[str, int], stacklevel: int) -> None:
    """Warn of values beyond the range of the training rows; `counts` are rows by column."""
    if not counts:
        return
    columns = [f"{name!r} in {n} row{'s' * (n > 1)}" for name, n in counts.items()]
    if len(columns) > _NAMED_COLUMNS:
        columns[_NAMED_COLUMNS:] = [f"{len(columns) - _NAMED_COLUMNS} other columns"]
    warnings.warn(
        f"{owner}: values beyond the range of the training rows: {', '.join(columns)}. Curves are "
        "constant there, or go on as straight lines, and standard errors grow with the distance.",
        OutOfDomainWarning,
        stacklevel=stacklevel + 1,
    )


class _FittedGam:
    """A saved GAM that predicts the rows of tables; its attributes are those of the estimator."""

    estimator: ClassVar[str]  # its name, for messages
    used_parameters = ("loss",)
    reader_: TableReader
    predictor_: AdditivePredictor
    n_features_in_: int

    def __init__(self, loss: str) -> None:
        self.loss = loss
        self._n_values = 0  # of functions, for all rows so far
        self.rows_beyond: Counter[str] = Counter()  # of all rows so far, see `warn_beyond`

    def _scores(self, X: Any) -> np.ndarray:
        columns = self.reader_.read(X, self.estimator)
        self.rows_beyond += self.predictor_.count_beyond(columns)
        self._n_values += len(columns[0]) * self.predictor_.functions.table.n_columns
        limit = self._n_values if self._n_values <= _MOST_READABLE else MAX_READABLE
        return self.predictor_.scores(columns, self.estimator, limit)


class FittedRegressor(_FittedGam):
    """The predictions of a saved `AdditiveRegressor`."""

    estimator = "AdditiveRegressor"
    _state: ClassVar[State] = REGRESSOR_STATE

    def predict(self, X: Any, *, exposure: Any = None) -> np.ndarray:
        """Predict f(x), or the exposure times exp(f(x)), for the rows of a table."""
        scores = self._scores(X)[:, 0]
        if exposure is not None:
            check_exposure_has_use(self.loss)
            scores = scores + log_exposures(exposure, len(scores))
        return means_of_scores(scores, link_of(self.estimator, self.loss, of_labels=False))

    def _check_state(self) -> None:
        link_of(self.estimator, self.loss, of_labels=False)  # an unknown loss is refused
        check_fitted_parts(self, n_outputs=1)


class FittedClassifier(_FittedGam):
    """The predictions of a saved `AdditiveClassifier`."""

    estimator = "AdditiveClassifier"
    _state: ClassVar[State] = CLASSIFIER_STATE
    classes_: np.ndarray

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable classes of the rows of a table."""
        return labels_of_scores(self._scores(X), self.classes_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities of the classes, in the order of `classes_`."""
        return class_probabilities(sigmoid(self._scores(X)))

    def _check_state(self) -> None:
        link_of(self.estimator, self.loss, of_labels=True)  # an unknown loss is refused
        check_classes(self.classes_)
        check_fitted_parts(self, n_outputs=1 if len(self.classes_) == 2 else len(self.classes_))
