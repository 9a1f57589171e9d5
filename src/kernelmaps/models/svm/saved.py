"""What a saved additive SVM predicts with, without its estimator and its map.

Neither scikit-learn nor a compiler is imported: the scores of a few rows are sums of polynomials,
computed by NumPy. Whatever has to be said about rows (values that are not finite, negative, or
outside the domain of the map), and more rows than NumPy should take, are for the estimator:
`EstimatorNeeded` is raised.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...engine.apply import sums_array_api
from ...engine.extent import EXACT_SIZES, extent_of, leaves_domain
from ...engine.spec import Spec
from ...engine.tabulated import has_table
from ...schema import State, array, boolean, instance, integer, labels, optional, pair
from ..one_against_one import decided
from ..probabilities import calibrated, class_probabilities
from ..rows.map_bands import bands_of
from .score_table import summed

# Rows times features times outputs, for which NumPy takes about 2 seconds (0.11 µs each); the
# imports of the estimator and its compiled loops take 3.
MOST_VALUES = 2**24

_OF_TRAINING = frozenset(
    [
        "feature_names_in_",
        "C_",
        "n_rows",
        "Cs_",
        "cv_scores_",
        "objective_",
        "duality_gap_",
        "n_iter_",
        "solver_",
        "n_visits_",
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
    unused: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def entries_to_read(cls, entries: dict[str, Any]) -> dict[str, Any]:
        """The entries of a file without those that predictions do not need."""
        return {key: item for key, item in entries.items() if key not in cls.unused}


class SavedMap(SavedPart):
    """The spec of a fitted additive map, and the values that nothing has to be said about."""

    used_parameters = ("out_of_domain",)
    _state: ClassVar[State] = State(
        required={"spec_": instance((Spec,)), "n_features_in_": integer(1)},
        allowed={"domain_": optional(pair(array("f8 f4", "domain", finite=False)))},
    )
    spec_: Spec
    n_features_in_: int
    domain_: tuple[np.ndarray, np.ndarray] | None = None

    def __init__(self, out_of_domain: str = "clip") -> None:
        self.out_of_domain = out_of_domain

    @classmethod
    def entries_to_read(cls, entries: dict[str, Any]) -> dict[str, Any]:
        """The spec, which alone determines the map, and its domain."""
        stated = {**cls._state.required, **cls._state.allowed}
        return {key: item for key, item in entries.items() if key in stated}

    def check(self, X: np.ndarray) -> None:
        """Raise EstimatorNeeded if the map may refuse values of rows, or warn of them."""
        extent = extent_of(X)
        if not extent.is_finite or max(-extent.minimum, extent.maximum) > EXACT_SIZES[1]:
            raise EstimatorNeeded
        low, high = X.min(axis=0), X.max(axis=0)
        lower, upper = (-np.inf, np.inf) if self.domain_ is None else self.domain_
        # A map of a domain from 0 on may be one of a kernel that is defined for x >= 0.
        refused = (low < 0) & (self.domain_ is None or np.asarray(lower) >= 0)
        if not self.spec_.numbers.get("signed", False) and refused.any():
            raise EstimatorNeeded
        if self.domain_ is None or self.out_of_domain == "extrapolate":
            return
        strict = "raise" if self.out_of_domain != "clip" else "clip"  # "auto" is the map's to say
        if leaves_domain((low, high), (lower, upper), strict).any():
            raise EstimatorNeeded


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


class SavedSigmoids(SavedPart):
    """The fitted `Calibration` of a classifier."""

    unused = frozenset({"on_rows"})
    _state: ClassVar[State] = State(required={"sigmoid": array("f8", "outputs 2")})
    sigmoid: np.ndarray


class SavedSVR(SavedPart):
    """The predictions of a saved `AdditiveSVR`."""

    estimator = "AdditiveSVR"
    unused = _OF_TRAINING | {"centre"}
    _state: ClassVar[State] = State(
        required={"machine_": instance((SavedMachine,)), "n_features_in_": integer(1)}
    )
    machine_: SavedMachine
    n_features_in_: int

    def predict(self, X: Any) -> np.ndarray:
        """Predict f(x) for an array of rows."""
        return self.machine_.scores(X)[:, 0]

    def _check_state(self) -> None:
        if self.machine_.weights.shape[::2] != (self.n_features_in_, 1):
            raise ValueError("machine_ has another number of features or outputs")


class SavedSVC(SavedPart):
    """The predictions of a saved `AdditiveSVC`, one class against the rest."""

    estimator = "AdditiveSVC"
    used_parameters = ("multi_class",)
    unused = _OF_TRAINING
    _state: ClassVar[State] = SavedSVR._state.extended(
        required={"classes_": labels, "calibration": instance((SavedSigmoids,))},
        allowed={"multilabel": boolean},
    )
    machine_: SavedMachine
    calibration: SavedSigmoids
    classes_: np.ndarray
    n_features_in_: int
    multilabel = False

    def __init__(self, multi_class: str) -> None:
        self.multi_class = multi_class

    def predict(self, X: Any) -> np.ndarray:
        """Predict the classes with the highest scores for an array of rows."""
        return self.classes_[decided(self.machine_.scores(X), len(self.classes_))]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities of the classes, in the order of `classes_`."""
        scores = self.machine_.scores(X)
        return class_probabilities(calibrated(scores, self.calibration.sigmoid))

    def _check_state(self) -> None:
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        if self.multilabel or (self.multi_class == "ovo" and n_outputs > 1):
            raise ValueError("the outputs are not classes against the rest")
        if len(self.classes_) < 2:
            raise ValueError("classes_ must have at least two entries")
        if self.machine_.weights.shape[::2] != (self.n_features_in_, n_outputs):
            raise ValueError("machine_ has another number of features or outputs")
        if len(self.calibration.sigmoid) != n_outputs:
            raise ValueError("calibration has another number of outputs")
