"""What a saved additive SVM predicts with, without its estimator and its map.

Neither scikit-learn nor a compiler is imported: the scores of a few rows are sums of polynomials,
computed by NumPy. Values that the map refuses, or that are outside its domain, are spoken of in its
words. Values beyond the usual sizes, and more rows than NumPy should take, are for the estimator:
`EstimatorNeeded` is raised.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..._util.schema import (
    Lengths,
    State,
    array,
    boolean,
    instance,
    integer,
    labels,
    names,
    optional,
    pair,
)
from ...engine.apply import sums_array_api
from ...engine.extent import EXACT_SIZES, column_range, first_not_finite
from ...engine.families import CURVES
from ...engine.row_checks import (
    OUT_OF_DOMAIN,
    negative_message,
    not_finite_message,
    outside_domain,
)
from ...engine.schema import check_width
from ...engine.spec import Spec
from ...engine.tabulated import has_table
from ...exceptions import OutOfDomainWarning
from ..one_against_one import decided
from ..probabilities import class_probabilities, sigmoid
from ..rows.map_bands import bands_of
from .score_table import summed

# Rows times features times outputs, for which NumPy takes about 2 seconds (0.11 µs each); the
# imports of the estimator and its compiled loops take 3.
MOST_VALUES = 2**24

_OF_TRAINING = frozenset(
    [
        "C_",
        "n_rows",
        "Cs_",
        "cv_scores_",
        "objective_",
        "duality_gap_",
        "n_iter_",
        "solver_",
        "n_samples_seen_",
        "progress",
    ]
)


class EstimatorNeeded(Exception):
    """The estimator of a saved model has to be loaded, to predict these rows or to refuse them."""


class SavedPart:
    """A part of a file that is read to predict.

    Entries that are neither stated nor `unused` are refused, as the estimator refuses them.
    """

    used_parameters: tuple[str, ...] = ()
    saved_class: str  # name of the class that was saved, for messages
    saved_parameters: frozenset[str]  # names of its parameters
    unused: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def entries_to_read(cls, entries: dict[str, Any]) -> dict[str, Any]:
        """The entries of a file without those that predictions do not need."""
        return {key: item for key, item in entries.items() if key not in cls.unused}


def _saved_map(value: Any, where: str, lengths: Lengths) -> None:
    """The check of a map that stands in front of another one."""
    instance((SavedMap,))(value, where, lengths)


class SavedMap(SavedPart):
    """The spec of a fitted map, and what the map says of the values of rows."""

    used_parameters = ("out_of_domain",)
    _state: ClassVar[State] = State(
        required={"spec_": instance((Spec,)), "n_features_in_": integer(1)},
        allowed={
            "domain_": optional(pair(array("f8 f4", "domain", finite=False))),
            "feature_names_in_": names,
            "refuses_negative": optional(boolean),
            "additive_map_": _saved_map,
        },
    )
    spec_: Spec
    n_features_in_: int
    domain_: tuple[np.ndarray, np.ndarray] | None = None
    feature_names_in_: np.ndarray | None = None
    refuses_negative: bool | None = None
    additive_map_: SavedMap | None = None  # the first stage of an exponential map
    column_names: Sequence[str] | None = None  # of a file or a model, if the map has none itself
    _warned = False

    def __init__(self, out_of_domain: str = "clip") -> None:
        self.out_of_domain = out_of_domain

    @classmethod
    def entries_to_read(cls, entries: dict[str, Any]) -> dict[str, Any]:
        """The spec, which alone determines the map, and what concerns the values of rows."""
        stated = {**cls._state.required, **cls._state.allowed}
        return {key: item for key, item in entries.items() if key in stated}

    @property
    def is_additive(self) -> bool:
        """Whether the map acts on each feature alone."""
        return self.spec_.family == "piecewise" or self.spec_.family in CURVES

    def check(self, X: np.ndarray) -> None:
        """Refuse values of float64 rows, or warn of them, in the words of the map."""
        low, high = column_range(X)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            row, column = first_not_finite(X)
            raise ValueError(not_finite_message(self.saved_class, X[row, column], row, column))
        self._check_sign(low)
        if max(-low.min(), high.max()) > EXACT_SIZES[1]:  # some maps take such values
            raise EstimatorNeeded
        for stage in filter(None, (self, self.additive_map_)):
            stage._check_domain(low, high)

    def _check_domain(self, low: np.ndarray, high: np.ndarray) -> None:
        if self.domain_ is None or self.out_of_domain == "extrapolate":
            return
        lower, upper = (np.asarray(end, np.float64) for end in self.domain_)
        names = self.column_names if self.feature_names_in_ is None else self.feature_names_in_
        message = outside_domain(
            self.saved_class, (low, high), (lower, upper), self.out_of_domain, names
        )
        if message is not None and not self._warned:
            self._warned = True
            warnings.warn(message, OutOfDomainWarning, stacklevel=2)

    def _check_state(self) -> None:
        if self.out_of_domain not in ("auto", *OUT_OF_DOMAIN):
            raise ValueError("out_of_domain is unknown")
        if self.domain_ is not None and len(self.domain_[0]) not in (1, self.n_features_in_):
            raise ValueError("domain_ must have one range, or one for each feature")
        named = self.feature_names_in_
        if named is not None and len(named) != self.n_features_in_:
            raise ValueError("feature_names_in_ must have one name for each feature")
        check_width(self.spec_, self.n_features_in_)

    def _check_sign(self, low: np.ndarray) -> None:
        """Refuse negative values of a map for x >= 0; a file may not say whether it is one."""
        if self.refuses_negative is None and (low < 0).any():
            raise EstimatorNeeded
        if self.refuses_negative and (low < 0).any():
            has_signed = "signed" in self.saved_parameters
            raise ValueError(negative_message(self.saved_class, float(low.min()), has_signed))


class SavedMachine(SavedPart):
    """The scores of an `AdditiveMachine`: an offset and a sum of functions of single columns."""

    unused = frozenset({"tol", "term_means", "summary"})
    _state: ClassVar[State] = State(
        required={
            "feature_map": instance((SavedMap,)),
            "on_codes": boolean,
            "weights": array("f8 f4", "features bases outputs"),
            "offset": array("f8", "outputs"),
        },
    )
    feature_map: SavedMap
    on_codes: bool
    weights: np.ndarray
    offset: np.ndarray

    def _check_state(self) -> None:
        if self.on_codes or not has_table(self.feature_map.spec_):
            raise ValueError("the scores are not sums of functions of values")
        if self.feature_map.n_features_in_ != len(self.weights):
            raise ValueError("feature_map has another number of features than weights")

    def scores(self, X: Any) -> np.ndarray:
        """Scores of rows, one column per output."""
        d, _, outputs = self.weights.shape
        if getattr(X, "dtype", np.dtype(float)).kind == "i":
            X = X.astype(np.float64)  # as maps do
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.shape[1:] != (d,):
            raise EstimatorNeeded
        if not 0 < X.size * outputs <= MOST_VALUES:
            raise EstimatorNeeded
        self.feature_map.check(X)
        bands = bands_of(self.feature_map.spec_, X, np.dtype(np.float64)).table
        return sums_array_api(summed(bands, self.weights), X)[0] + self.offset


class _SavedAdditiveSVM(SavedPart):
    """A machine on all columns."""

    unused = _OF_TRAINING
    _state: ClassVar[State] = State(
        required={"machine_": instance((SavedMachine,)), "n_features_in_": integer(1)},
        allowed={"feature_names_in_": names},
    )
    machine_: SavedMachine
    n_features_in_: int

    @property
    def saved_maps(self) -> list[SavedMap]:
        """The map."""
        return [self.machine_.feature_map]


class SavedSVR(_SavedAdditiveSVM):
    """The predictions of a saved `AdditiveSVR`."""

    estimator = "AdditiveSVR"
    unused = _OF_TRAINING | {"centre"}

    def predict(self, X: Any) -> np.ndarray:
        """Predict f(x) for an array of rows."""
        return self.machine_.scores(X)[:, 0]

    def _check_state(self) -> None:
        if self.machine_.weights.shape[::2] != (self.n_features_in_, 1):
            raise ValueError("machine_ has another number of features or outputs")


class SavedSVC(_SavedAdditiveSVM):
    """The predictions of a saved `AdditiveSVC`, one class against the rest."""

    estimator = "AdditiveSVC"
    used_parameters = ("multi_class", "loss")
    _state: ClassVar[State] = _SavedAdditiveSVM._state.extended(
        required={"classes_": labels},
        allowed={"multilabel": boolean},
    )
    classes_: np.ndarray
    multilabel = False

    def __init__(self, multi_class: str, loss: str) -> None:
        self.multi_class, self.loss = multi_class, loss

    def predict(self, X: Any) -> np.ndarray:
        """Predict the classes with the highest scores for an array of rows."""
        return self.classes_[decided(self.machine_.scores(X), len(self.classes_))]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities of the classes, in the order of `classes_`."""
        return class_probabilities(sigmoid(self.machine_.scores(X)))

    def _check_state(self) -> None:
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        if self.multilabel or (self.multi_class == "ovo" and n_outputs > 1):
            raise ValueError("the outputs are not classes against the rest")
        if len(self.classes_) < 2:
            raise ValueError("classes_ must have at least two entries")
        if self.machine_.weights.shape[::2] != (self.n_features_in_, n_outputs):
            raise ValueError("machine_ has another number of features or outputs")
