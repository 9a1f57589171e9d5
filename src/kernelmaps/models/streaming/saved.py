"""What a saved streaming model predicts with, without its estimator and its statistics.

Neither scikit-learn nor a compiler is imported; see :mod:`kernelmaps.models.svm.saved`, whose maps
these are. Models of several kernels, and of labels that are not one per row, are for the estimator.
So are rows that it refuses: its message says where they are.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._util.schema import (
    State,
    array,
    boolean,
    instance,
    integer,
    labels,
    many,
    names,
    nothing,
    optional,
)
from ..._util.threads import row_blocks
from ...engine.apply import stage_columns, sums_array_api
from ...engine.extent import EXACT_SIZES
from ...engine.reference import evaluate
from ...engine.tabulated import has_table
from ..one_against_one import decided
from ..rows.map_bands import bands_of
from ..svm.saved import MOST_VALUES, EstimatorNeeded, SavedMap, SavedPart
from ..svm.score_table import summed


class SavedScaler(SavedPart):
    """A fitted `StandardScaler`."""

    used_parameters = ("with_mean", "with_std")
    unused = frozenset({"var_", "n_samples_seen_", "feature_names_in_"})
    _state: ClassVar[State] = State(
        required={
            "n_features_in_": integer(1),
            **dict.fromkeys(("mean_", "scale_"), optional(array("f8", "features"))),
        }
    )
    n_features_in_: int
    mean_: np.ndarray | None
    scale_: np.ndarray | None

    def __init__(self, with_mean: bool = True, with_std: bool = True) -> None:
        self.with_mean, self.with_std = with_mean, with_std

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Rows less the mean, over the standard deviation, where these are asked for."""
        X = X - self.mean_ if self.with_mean else X
        return X / self.scale_ if self.with_std else X

    def _check_state(self) -> None:
        for option, fitted in ((self.with_mean, self.mean_), (self.with_std, self.scale_)):
            if option not in (True, False) or (option and fitted is None):
                raise ValueError("the scaler lacks its mean or its scale")
        for values in (self.mean_, self.scale_):
            if values is not None and len(values) != self.n_features_in_:
                raise ValueError("the scaler has another number of features")
        if self.scale_ is not None and (np.abs(self.scale_) < EXACT_SIZES[0]).any():
            raise ValueError("the scale is too small")


class SavedPipeline(SavedPart):
    """A map behind a scaler of the columns."""

    used_parameters = ("steps",)
    _state: ClassVar[State] = State()

    def __init__(self, steps: Any) -> None:
        self.steps = steps

    def _check_state(self) -> None:
        kinds = [type(step) for _, step in self.steps]
        if kinds != [SavedScaler, SavedMap]:
            raise ValueError("the pipeline is not a scaler and a map")
        if len({step.n_features_in_ for _, step in self.steps}) > 1:
            raise ValueError("the map takes another number of features than the scaler gives")


class SavedKernel(SavedPart):
    """One kernel on all columns: a map, maybe behind a scaler, or the columns themselves."""

    unused = frozenset({"n_components"})
    _state: ClassVar[State] = State(
        required={
            "columns": nothing,
            "map": optional(instance((SavedMap, SavedPipeline))),
            "width": integer(1),
        },
        allowed={"axes": nothing},
    )
    columns: None
    map: SavedMap | SavedPipeline | None
    width: int

    @property
    def scaler(self) -> SavedScaler | None:
        """What stands in front of the map."""
        return self.map.steps[0][1] if isinstance(self.map, SavedPipeline) else None

    @property
    def feature_map(self) -> SavedMap | None:
        """The map itself; None for the columns themselves."""
        return self.map.steps[1][1] if isinstance(self.map, SavedPipeline) else self.map

    def scores(self, X: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Features of rows times weights, [column][output]."""
        if self.scaler is not None:
            X = self.scaler.transform(X)
        feature_map = self.feature_map
        if feature_map is None:
            if not np.isfinite(X).all():
                raise EstimatorNeeded
            return X @ weights
        try:
            feature_map.check(X)
        except ValueError:
            raise EstimatorNeeded from None
        if feature_map.is_additive:
            bands = bands_of(feature_map.spec_, X, np.dtype(np.float64))
            return sums_array_api(summed(bands.table, bands.band_weights(weights)), X)[0]
        blocks = row_blocks(len(X), 8 * self.width)
        return np.concatenate([evaluate(feature_map.spec_, X[rows]) @ weights for rows in blocks])

    def _check_state(self) -> None:
        feature_map = self.feature_map
        if feature_map is None:
            return
        if feature_map.is_additive and not has_table(feature_map.spec_):
            raise ValueError("the map is not a sum of functions of values")
        if stage_columns(feature_map.spec_, feature_map.n_features_in_) != self.width:
            raise ValueError("the map gives another number of columns")


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
        allowed={"on_codes": boolean, "feature_names_in_": names},
    )
    features: SavedFeatures
    n_features_in_: int
    solution: SavedSolution
    stats_: SavedMoments | SavedFolds
    on_codes = False

    @property
    def saved_maps(self) -> list[SavedMap]:
        """The map, if there is one."""
        return [kernel.feature_map for kernel in self.features.parts if kernel.feature_map]

    def _check_state(self) -> None:
        [kernel], solution = self.features.parts, self.solution
        taken = [feature_map.n_features_in_ for feature_map in self.saved_maps] or [kernel.width]
        if self.on_codes or taken != [self.n_features_in_]:
            raise ValueError("the features are not those of rows")
        if solution.coef.shape[1] != kernel.width:
            raise ValueError("solution has another number of features than the map gives")

    def scores(self, X: Any) -> np.ndarray:
        """Linear scores of rows, one column per target."""
        weights, [kernel] = self.solution.coef.T, self.features.parts
        if getattr(X, "dtype", np.dtype(float)).kind == "i":
            X = X.astype(np.float64)
        if type(X) is not np.ndarray or X.dtype != np.float64:
            raise EstimatorNeeded
        n_rows, n_features = X.shape
        if n_features != self.n_features_in_:
            raise EstimatorNeeded
        if not 0 < n_rows * max(n_features * len(weights.T), kernel.width) <= MOST_VALUES:
            raise EstimatorNeeded
        return kernel.scores(X, weights) + self.solution.intercept


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
