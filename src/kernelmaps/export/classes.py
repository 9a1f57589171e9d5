"""Classes that a model file may hold, by the names that files use.

Among them are the parts of scikit-learn that stand before our maps in a pipeline.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import kernelmaps

from .._util import schema

SPEC_ENTRIES = ("family", "arrays", "numbers", "parts")
NAMED_KERNELS = ("HomogeneousKernel", "Additive")

_LOSSES = "kernelmaps.models.losses"
# Short names that files use, and where the class is today: files outlive a move of the code.
_RECORDS = {
    "Spec": "kernelmaps.engine.spec",
    "SavedMap": "kernelmaps.engine.saved_map",
    "Certificate": "kernelmaps.certificate",
    "AnchorCertificate": "kernelmaps.maps.anchor",
    "Moments": "kernelmaps.stats.moments",
    "FoldMoments": "kernelmaps.stats.moments",
    "KernelMoments": "kernelmaps.stats.moments",
    "Features": "kernelmaps.models.streaming.predictor",
    "Part": "kernelmaps.models.streaming.predictor",
    "LinearSolution": "kernelmaps.models.streaming.predictor",
    "LinearPredictor": "kernelmaps.models.streaming.predictor",
    "PrincipalAxes": "kernelmaps.models.streaming.pca",
    "AdditiveMachine": "kernelmaps.models.svm.fitted",
    "Summary": "kernelmaps.models.svm.fitted",
    "ColumnFormat": "kernelmaps.data.table_reader",
    "TableReader": "kernelmaps.data.table_reader",
    "Codebook": "kernelmaps.models.gam.codebooks",
    "FittedTerm": "kernelmaps.models.gam.predictor",
    "AdditivePredictor": "kernelmaps.models.gam.predictor",
    "LevelPosterior": "kernelmaps.models.gam.predictor",
    "Posterior": "kernelmaps.models.gam.predictor",
    "BaselineHazard": "kernelmaps.models.gam.baseline",
    "Term": "kernelmaps.models.gam.terms",
    # Kernels without a name of their own; the others are those of `kernelmaps.kernels.register`.
    # They check their parameters when they are made.
    "MapKernel": "kernelmaps.maps.fourier",
    "Linear": "kernelmaps.kernels.additive",
    "PerFeature": "kernelmaps.kernels.additive",
    # Losses, which are their parameters, too.
    **dict.fromkeys(("SquaredError", "LogLoss", "Poisson", "Gamma", "Quantile"), _LOSSES),
    **dict.fromkeys(("NegativeBinomial", "Tweedie", "Binomial", "Beta", "Ordinal"), _LOSSES),
    **dict.fromkeys(("LocationScale", "Multinomial"), _LOSSES),
    # Steps in front of maps, and behind them, in pipelines that `compare` and `choose` make.
    "MeanNormScaler": "kernelmaps.evaluation.methods",
    "TableEncoder": "kernelmaps.evaluation.methods",
}
# Entries of estimators that predict by themselves: these would import scikit-learn. Some entries
# of streaming models are those of their predictor.
PREDICTORS = {
    **dict.fromkeys(("AdditiveRegressor", "AdditiveClassifier", "AdditiveSurvival"), "predictor_"),
    **dict.fromkeys(("AdditiveSVC", "AdditiveSVR"), "predictor_"),
    **dict.fromkeys(("StreamingRidge", "StreamingRidgeClassifier"), "LinearPredictor"),
    **dict.fromkeys(("StreamingLasso", "StreamingLassoClassifier"), "LinearPredictor"),
}
_ESTIMATOR_PACKAGES = ("kernelmaps.maps.", "kernelmaps.models.")

_FEATURES = {"n_features_in_": schema.size("features")}
_NAMES = {"feature_names_in_": schema.names}
# Beyond these sizes, products with values of rows leave the floating-point numbers.
_SHIFT = schema.array("f8 f4", "features", low=-1e150, high=1e150)
_FACTOR = schema.array("f8 f4", "features", low=1e-150, high=1e150)
_RANGE = schema.array("f8 f4", "features", finite=False)


def _scaler(**arrays: schema.Check) -> schema.State:
    """What a scaler saves: its arrays, and what it has seen."""
    return schema.State({**_FEATURES, "n_samples_seen_": schema.anything, **arrays}, _NAMES)


_MATRIX = schema.array("f8 f4", "outputs features", low=-1e150, high=1e150)
_INTERCEPT = [schema.array("f8 f4", shape) for shape in ("outputs", "1")]
_LINEAR = schema.State(
    {
        **_FEATURES,
        "coef_": schema.either((_MATRIX, _SHIFT)),
        "intercept_": schema.either((*_INTERCEPT, schema.number())),
    },
    {**_NAMES, "n_iter_": schema.anything, "solver_": schema.text()},
)
_CLASSIFIER = _LINEAR.extended({"classes_": schema.labels})
_SCALERS = "sklearn.preprocessing"
SKLEARN = {
    "Pipeline": ("sklearn.pipeline", schema.State()),
    "Normalizer": (_SCALERS, schema.State(_FEATURES, _NAMES)),
    "StandardScaler": (
        _SCALERS,
        _scaler(
            mean_=schema.optional(_SHIFT),
            var_=schema.optional(_SHIFT),
            scale_=schema.optional(_FACTOR),
        ),
    ),
    "MinMaxScaler": (
        _SCALERS,
        _scaler(
            min_=_SHIFT, scale_=_FACTOR, data_min_=_RANGE, data_max_=_RANGE, data_range_=_RANGE
        ),
    ),
    "MaxAbsScaler": (_SCALERS, _scaler(max_abs_=_SHIFT, scale_=_FACTOR)),
    "LinearSVC": ("sklearn.svm", _CLASSIFIER),
    "Ridge": ("sklearn.linear_model", _LINEAR),
    "LogisticRegression": ("sklearn.linear_model", _CLASSIFIER),
}
"""Parts of scikit-learn: where they are, and what they save, which their predictions need."""


def listed_class(name: str) -> type | None:
    """The class that a file may mean by `name`, or None."""
    if name in _RECORDS or name in SKLEARN:
        return getattr(import_module(_RECORDS.get(name) or SKLEARN[name][0]), name)
    from ..kernels.registry import KNOWN  # with scikit-learn, which few files need
    from ..maps.base import PLUGINS

    kernels = {maker.__name__: maker for maker in KNOWN.values() if isinstance(maker, type)}
    if registered := PLUGINS.get(name) or kernels.get(name):
        return registered
    module = kernelmaps._MODULE_OF.get(name, "")
    public = getattr(kernelmaps, name, None) if module.startswith(_ESTIMATOR_PACKAGES) else None
    return public if hasattr(public, "_state") else None


def is_map(name: str) -> bool:
    """Whether a name is that of a map, which a `SavedMap` stands for in a file read to predict."""
    return kernelmaps._MODULE_OF.get(name, "").startswith("kernelmaps.maps.")


def state_of(cls: Any) -> schema.State | None:
    """What the instances of a class save; None for kernels, which are their parameters."""
    if cls.__name__ in SKLEARN:
        return SKLEARN[cls.__name__][1]
    return getattr(cls, "_state", None)


def check_sklearn(value: Any) -> None:
    """Raise ValueError or TypeError if the parts of a scikit-learn estimator do not fit."""
    value._validate_params()  # as its own fit does
    if type(value).__name__ == "Pipeline":
        _check_steps(value)
        return
    for option, name in (("with_mean", "mean_"), ("with_std", "scale_")):
        if getattr(value, option, False) and getattr(value, name, ...) is None:
            raise ValueError(f"{name} is missing, but {option} is true")
    if hasattr(value, "classes_"):
        outputs = 1 if len(value.classes_) == 2 else len(value.classes_)
        if len(value.classes_) < 2 or value.coef_.shape[:-1] != (outputs,):
            raise ValueError("coef_ does not fit the classes")


def _check_steps(pipeline: Any) -> None:
    """Steps are those of a pipeline, and each takes what the one before gives."""
    pipeline._validate_steps()  # as its own fit does
    width = None
    for _, step in pipeline.steps:
        n_features = getattr(step, "n_features_in_", None)
        if None not in (width, n_features) and width != n_features:
            raise ValueError(
                f"a step takes {n_features} features, but the one before gives {width}"
            )
        # A pipeline within this one has been checked, and does not say how many columns it gives.
        width = None if hasattr(step, "steps") else getattr(step, "_n_features_out", n_features)
