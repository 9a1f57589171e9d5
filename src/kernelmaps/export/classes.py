"""Classes that a model file may hold, by the names that files use.

Among them are the parts of scikit-learn that stand before our maps in a pipeline.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import kernelmaps

from .._util import schema

SPEC_ENTRIES = ("family", "arrays", "numbers", "parts")
NAMED_KERNELS = ("HomogeneousKernel", "Additive")

# Short names that files use, and where the class is today: files outlive a move of the code.
_RECORDS = {
    "Spec": "kernelmaps.engine.spec",
    "Certificate": "kernelmaps.certificate",
    "AnchorCertificate": "kernelmaps.maps.anchor",
    "Moments": "kernelmaps.stats.moments",
    "FoldMoments": "kernelmaps.stats.moments",
    "KernelMoments": "kernelmaps.stats.moments",
    "Features": "kernelmaps.models.streaming.rows",
    "Part": "kernelmaps.models.streaming.rows",
    "LinearSolution": "kernelmaps.models.streaming.linear",
    "PrincipalAxes": "kernelmaps.models.streaming.pca",
    "AdditiveMachine": "kernelmaps.models.svm.fitted",
    "Summary": "kernelmaps.models.svm.fitted",
    "Progress": "kernelmaps.models.svm.problem",
    "ColumnFormat": "kernelmaps.data.table_reader",
    "TableReader": "kernelmaps.data.table_reader",
    "Codebook": "kernelmaps.models.gam.codebooks",
    "FittedTerm": "kernelmaps.models.gam.predictor",
    "AdditivePredictor": "kernelmaps.models.gam.predictor",
    "LevelPosterior": "kernelmaps.models.gam.predictor",
    "Posterior": "kernelmaps.models.gam.predictor",
    "Term": "kernelmaps.models.gam.terms",
    # Kernels without a name of their own; the others are those of `kernelmaps.kernels.register`.
    # They check their parameters when they are made.
    "MapKernel": "kernelmaps.maps.fourier",
    "Linear": "kernelmaps.kernels.additive",
    "PerFeature": "kernelmaps.kernels.additive",
    # Steps in front of maps, and behind them, in pipelines that `compare` and `choose` make.
    "MeanNormScaler": "kernelmaps.evaluation.methods",
    "ColumnSelector": "kernelmaps.evaluation.methods",
}
# Entries of estimators that predict by themselves: these would import scikit-learn.
PREDICTORS = {
    "AdditiveRegressor": "predictor_",
    "AdditiveClassifier": "predictor_",
    "AdditiveSVC": "machine_",
    "AdditiveSVR": "machine_",
}
_ESTIMATOR_PACKAGES = ("kernelmaps.maps.", "kernelmaps.models.")
PLUGINS: dict[str, type] = {}  # by `register_class`

_COUNT = schema.integer(1)
_PER_FEATURE = schema.array("f8 f4", "features", finite=False)
_OPTIONAL_PER_FEATURE = schema.optional(_PER_FEATURE)
_NAMES = {"feature_names_in_": schema.names}


def _scaler(*arrays: str, check: schema.Check = _PER_FEATURE) -> schema.State:
    """What a scaler saves: its arrays, and what it has seen."""
    counts: dict[str, schema.Check] = {"n_features_in_": _COUNT, "n_samples_seen_": schema.anything}
    return schema.State(counts | dict.fromkeys(arrays, check), _NAMES)


_MATRIX, _ROW = (schema.array("f8 f4", shape) for shape in ("outputs features", "features"))
_SHIFTS = [schema.array("f8 f4", shape) for shape in ("outputs", "1")]
_LINEAR = schema.State(
    {
        "coef_": schema.either((_MATRIX, _ROW)),
        "intercept_": schema.either((*_SHIFTS, schema.number())),
        "n_features_in_": _COUNT,
    },
    {**_NAMES, "n_iter_": schema.anything, "solver_": schema.text()},
)
_CLASSIFIER = _LINEAR.extended({"classes_": schema.labels})
_SCALERS = "sklearn.preprocessing"
SKLEARN = {
    "Pipeline": ("sklearn.pipeline", schema.State()),
    "Normalizer": (_SCALERS, schema.State({"n_features_in_": _COUNT}, _NAMES)),
    "StandardScaler": (_SCALERS, _scaler("mean_", "var_", "scale_", check=_OPTIONAL_PER_FEATURE)),
    "MinMaxScaler": (_SCALERS, _scaler("min_", "scale_", "data_min_", "data_max_", "data_range_")),
    "MaxAbsScaler": (_SCALERS, _scaler("max_abs_", "scale_")),
    "LinearSVC": ("sklearn.svm", _CLASSIFIER),
    "Ridge": ("sklearn.linear_model", _LINEAR),
    "LogisticRegression": ("sklearn.linear_model", _CLASSIFIER),
}
"""Parts of scikit-learn: where they are, and what they save, which their predictions need."""


def register_class(cls: type) -> None:
    """Let model files hold instances of a class from outside, such as a model of a plug-in.

    A map is made known by `kernelmaps.maps.register`, which does this, too.

    Parameters
    ----------
    cls : type
        An estimator with a `_state` that says what it saves (a subclass of `FeatureMap` inherits
        one, and extends it by what its own transform needs). Its name must be free.
    """
    if not isinstance(getattr(cls, "_state", None), schema.State):
        raise TypeError(f"{cls.__name__} has no _state that says what it saves.")
    taken = listed_class(cls.__name__)
    if taken is not None and taken is not cls:
        raise ValueError(f"the name {cls.__name__!r} is taken by {taken.__module__}.")
    PLUGINS[cls.__name__] = cls


def listed_class(name: str) -> type | None:
    """The class that a file may mean by `name`, or None."""
    if name in _RECORDS or name in SKLEARN:
        return getattr(import_module(_RECORDS.get(name) or SKLEARN[name][0]), name)
    from ..kernels.registry import kernel_class  # with scikit-learn, which few files need
    from ..maps.base import PLUGINS as MAP_PLUGINS

    if registered := PLUGINS.get(name) or MAP_PLUGINS.get(name) or kernel_class(name):
        return registered
    module = kernelmaps._MODULE_OF.get(name, "")
    public = getattr(kernelmaps, name, None) if module.startswith(_ESTIMATOR_PACKAGES) else None
    return public if hasattr(public, "_state") else None


def saved_map_class(name: str) -> type | None:
    """The class that stands for a map of this name where a file is read to predict, or None."""
    if name in PLUGINS or not kernelmaps._MODULE_OF.get(name, "").startswith("kernelmaps.maps."):
        return None
    from ..models.svm.fitted import SavedMap

    return SavedMap


def state_of(cls: Any) -> schema.State | None:
    """What the instances of a class save; None for kernels, which are their parameters."""
    if cls.__name__ in SKLEARN:
        return SKLEARN[cls.__name__][1]
    return getattr(cls, "_state", None)


def check_sklearn(value: Any) -> None:
    """Raise ValueError or TypeError if the parts of a scikit-learn estimator do not fit."""
    value._validate_params()  # as its own fit does
    if type(value).__name__ == "Pipeline":
        _check_steps(value.steps)
    if not hasattr(value, "n_features_in_") or type(value).__name__ == "Pipeline":
        return
    for option, name in (("with_mean", "mean_"), ("with_std", "scale_")):
        if getattr(value, option, False) and getattr(value, name) is None:
            raise ValueError(f"{name} is missing, but {option} is true")
    for name in ("coef_", "mean_", "var_", "scale_", "min_", "max_abs_"):
        array = getattr(value, name, None)
        if array is None:
            continue
        if array.shape[-1] != value.n_features_in_:
            raise ValueError(f"{name} has another number of features than n_features_in_")
        magnitudes = np.abs(array[np.isfinite(array)])
        if (magnitudes > 1e150).any() or (name == "scale_" and (magnitudes < 1e-150).any()):
            raise ValueError(f"{name} reaches beyond the sizes 1e-150 to 1e+150")
    if hasattr(value, "classes_"):
        outputs = 1 if len(value.classes_) == 2 else len(value.classes_)
        if value.coef_.shape != (outputs, value.n_features_in_) or len(value.classes_) < 2:
            raise ValueError("coef_ does not fit the classes")


def _check_steps(steps: Any) -> None:
    """Steps are pairs of a name and an estimator, and each takes what the one before gives."""
    if not isinstance(steps, list) or not steps:
        raise TypeError("the steps of a pipeline must be a list")
    width = None
    for step in steps:
        if not isinstance(step, tuple) or len(step) != 2 or not isinstance(step[0], str):
            raise TypeError("a step of a pipeline must be a pair of a name and an estimator")
        if step[1] in ("passthrough", None) and isinstance(step[1], str | None):
            continue
        if not hasattr(step[1], "get_params"):
            raise TypeError("a step of a pipeline must be an estimator")
        taken = getattr(step[1], "n_features_in_", None)
        if None not in (width, taken) and width != taken:
            raise ValueError(f"a step takes {taken} features, but the one before gives {width}")
        width = getattr(step[1], "_n_features_out", taken) if taken is not None else None
