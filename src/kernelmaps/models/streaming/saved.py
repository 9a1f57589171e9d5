"""What a saved streaming model predicts with, without its estimator and its statistics.

Neither scikit-learn nor a compiler is imported; see :mod:`kernelmaps.models.svm.saved`, whose maps
these are. Models of several kernels, of labels that are not one per row, and of other maps than
additive ones are for the estimator.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...engine.apply import sums_array_api
from ...engine.tabulated import has_table
from ...schema import (
    State,
    array,
    boolean,
    instance,
    integer,
    labels,
    many,
    nothing,
    optional,
)
from ..one_against_one import decided
from ..rows.map_bands import bands_of
from ..svm.saved import MOST_VALUES, EstimatorNeeded, SavedMap, SavedPart
from ..svm.score_table import summed


class SavedKernel(SavedPart):
    """One kernel on all columns: an additive map, or the columns themselves."""

    unused = frozenset({"n_components"})
    _state: ClassVar[State] = State(
        required={
            "columns": nothing,
            "map": optional(instance((SavedMap,))),
            "width": integer(1),
        },
        allowed={"axes": nothing},
    )
    columns: None
    map: SavedMap | None
    width: int

    def _check_state(self) -> None:
        if self.map is not None and not has_table(self.map.spec_):
            raise ValueError("the map is not a sum of functions of values")


class SavedFeatures(SavedPart):
    """The features of a model of one kernel."""

    _state: ClassVar[State] = State(required={"parts": many(instance((SavedKernel,)), least=1)})
    parts: list[SavedKernel]

    def _check_state(self) -> None:
        if len(self.parts) > 1:
            raise ValueError("there are several kernels")


class SavedSolution(SavedPart):
    """Coefficients and intercepts."""

    unused = frozenset({"alpha", "n_components", "cv_results", "n_iter"})
    _state: ClassVar[State] = State(
        required={
            "coef": array("f8", "targets features"),
            "intercept": array("f8", "targets"),
        }
    )
    coef: np.ndarray
    intercept: np.ndarray


class SavedMoments(SavedPart):
    """The classes of the rows that were summed; the sums are for fitting."""

    _state: ClassVar[State] = State(
        allowed={"classes": optional(labels), "multilabel": boolean},
    )
    classes: np.ndarray | None = None
    multilabel = False

    @classmethod
    def entries_to_read(cls, entries: dict[str, Any]) -> dict[str, Any]:
        """The classes alone."""
        return {key: item for key, item in entries.items() if key in cls._state.allowed}

    @property
    def parts(self) -> list[SavedMoments]:
        """Itself, as the one part."""
        return [self]


class SavedFolds(SavedPart):
    """The classes of each fold."""

    _state: ClassVar[State] = State(required={"parts": many(instance((SavedMoments,)), least=1)})
    parts: list[SavedMoments]


class _SavedLinear(SavedPart):
    """Linear scores of the features of rows."""

    unused = frozenset(
        {
            "feature_names_in_",
            "rows_per_block",
            "zero_based",
            "n_chunks",
            "pca_stats",
            "axes",
        }
    )
    _state: ClassVar[State] = State(
        required={
            "features": instance((SavedFeatures,)),
            "n_features_in_": integer(1),
            "solution": instance((SavedSolution,)),
            "stats_": instance((SavedMoments, SavedFolds)),
            "y_ndim": integer(1, 1),
        },
        allowed={"on_codes": boolean},
    )
    features: SavedFeatures
    n_features_in_: int
    solution: SavedSolution
    stats_: SavedMoments | SavedFolds
    on_codes = False

    def _check_state(self) -> None:
        [kernel], solution = self.features.parts, self.solution
        taken = self.n_features_in_ if kernel.map is None else kernel.map.n_features_in_
        if self.on_codes or taken != self.n_features_in_:
            raise ValueError("the features are not those of rows")
        if solution.coef.shape[1] != kernel.width or kernel.width < self.n_features_in_:
            raise ValueError("solution has another number of features than the map gives")

    def scores(self, X: Any) -> np.ndarray:
        """Linear scores of rows, one column per target."""
        weights, [kernel] = self.solution.coef.T, self.features.parts
        if getattr(X, "dtype", np.dtype(float)).kind == "i":
            X = X.astype(np.float64)
        if type(X) is not np.ndarray or X.dtype != np.float64:
            raise EstimatorNeeded
        if X.shape[1:] != (self.n_features_in_,) or not 0 < X.size * len(weights.T) <= MOST_VALUES:
            raise EstimatorNeeded
        if kernel.map is None:
            if not np.isfinite(X).all():
                raise EstimatorNeeded
            return X @ weights + self.solution.intercept
        kernel.map.check(X)
        bands = bands_of(kernel.map.spec_, X, np.dtype(np.float64))
        if bands.table.width[bands.table.set_of].sum() != len(weights):
            raise EstimatorNeeded
        table = summed(bands.table, bands.band_weights(weights))
        return sums_array_api(table, X)[0] + self.solution.intercept


class SavedStreamingRegressor(_SavedLinear):
    """The predictions of a saved `StreamingRidge` or `StreamingLasso` of one target."""

    estimator = "streaming regression"

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target for an array of rows."""
        return self.scores(X)[:, 0]


class SavedStreamingClassifier(_SavedLinear):
    """The predictions of a saved streaming classifier, one class against the rest."""

    estimator = "streaming classifier"
    used_parameters = ("multi_class",)

    def __init__(self, multi_class: str = "ovr") -> None:
        self.multi_class = multi_class

    @property
    def classes_(self) -> np.ndarray:
        """Sorted labels."""
        parts = [part.classes for part in self.stats_.parts if part.classes is not None]
        return np.unique(np.concatenate([part for part in parts if len(part)] or parts))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the classes with the highest scores for an array of rows."""
        scores, classes = 2 * self.scores(X) - 1, self.classes_
        return classes[decided(scores[:, 1:] if len(classes) == 2 else scores, len(classes))]

    def _check_state(self) -> None:
        super()._check_state()
        if any(part.multilabel or part.classes is None for part in self.stats_.parts):
            raise ValueError("rows have several labels, or none")
        n_classes = len(self.classes_)
        if n_classes < 2 or (self.multi_class == "ovo" and n_classes > 2):
            raise ValueError("the outputs are not classes against the rest")
        if len(self.solution.coef) != n_classes:
            raise ValueError("solution has another number of outputs than there are classes")
