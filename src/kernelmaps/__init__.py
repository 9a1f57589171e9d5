"""Explicit feature maps for kernels.

A positive-definite kernel k(x, y) is an inner product in a feature space. An explicit map φ with
⟨φ(x), φ(y)⟩ ≈ k(x, y) computes approximate coordinates in it, and a linear model on φ(x) then does
what a kernel machine would, in linear time.

Names are loaded on first use (PEP 562): ``import kernelmaps`` imports almost nothing, and numba and
scikit-learn are loaded when they are needed.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Where each public name lives. A new map is one new entry here.
_EXPORTS = {
    "kernelmaps.maps.homogeneous": ["HomogeneousMap"],
    "kernelmaps.maps.designed": ["DesignedMap", "JointDesignedMap"],
    "kernelmaps.maps.anchor": ["AnchorMap"],
    "kernelmaps.maps.chebyshev": ["ChebyshevMap", "SeriesMap"],
    "kernelmaps.maps.bases": ["SplineMap", "TrigonometricMap", "HermiteMap"],
    "kernelmaps.maps.fourier": [
        "RandomFourierMap",
        "RandomOrthoprojector",
        "CompressiveFourierMap",
        "ExponentialMap",
    ],
    "kernelmaps.maps.nystroem": ["NystroemMap"],
    "kernelmaps.maps.codes": ["Codes"],
    "kernelmaps.certificate": ["Certificate"],
    "kernelmaps.models.gam.classifier": ["AdditiveClassifier"],
    "kernelmaps.models.gam.regressor": ["AdditiveRegressor"],
    "kernelmaps.models.gam.survival": ["AdditiveSurvival"],
    "kernelmaps.models.gam.terms": ["Term"],
    "kernelmaps.models.gam.anova": ["AnovaTable", "anova"],
    "kernelmaps.models.gam.model_check": ["GamCheck"],
    "kernelmaps.models.svm.estimators": ["AdditiveSVC", "AdditiveSVR"],
    "kernelmaps.models.streaming.pca": ["StreamingPCA"],
    "kernelmaps.models.streaming.ridge": ["StreamingRidge", "StreamingRidgeClassifier"],
    "kernelmaps.models.streaming.lasso": ["StreamingLasso", "StreamingLassoClassifier"],
    "kernelmaps.models.merging": ["merge"],
    "kernelmaps.design.api": ["Design", "design_map"],
    "kernelmaps.design.joint": ["JointDesign"],
    "kernelmaps.design.random_features": [
        "RequiredFeatures",
        "required_features",
        "Sparsity",
        "effective_sparsity",
    ],
    "kernelmaps.evaluation.kernel_error": ["KernelError", "kernel_error"],
    "kernelmaps.evaluation.comparison": ["compare"],
    "kernelmaps.evaluation.choice": ["choose"],
    "kernelmaps.evaluation.model_report": ["model_report"],
    "kernelmaps.evaluation.methods": ["MeanNormScaler", "TableEncoder"],
    "kernelmaps.export.files": ["load", "save"],
    "kernelmaps.export.sql": ["to_sql"],
}
_SUBMODULES = [
    "data",
    "datasets",
    "design",
    "engine",
    "evaluation",
    "exceptions",
    "inspection",
    "kernels",
    "losses",
    "maps",
    "models",
    "stats",
]
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = [*_MODULE_OF, *_SUBMODULES, "__version__"]  # noqa: PLE0604 - names of the table


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        value = import_module(f"{__name__}.{name}")
    elif name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    else:
        raise AttributeError(f"module 'kernelmaps' has no attribute {name!r}")
    globals()[name] = value  # the next access is a plain attribute
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
