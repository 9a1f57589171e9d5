"""One small fitted example of every map and model: what files and exports must carry."""

from typing import Any

import numpy as np

import kernelmaps as km

# Settings that keep the examples small; every public map of this version is in the list.
MAP_SETTINGS: dict[str, dict[str, Any]] = {
    "HomogeneousMap": {"n_components": 5},
    "DesignedMap": {"n_components": 3, "out_of_domain": "extrapolate"},
    "AnchorMap": {"n_anchors": 8, "out_of_domain": "extrapolate"},
    "ChebyshevMap": {"n_components": 4},
    "SeriesMap": {"n_components": 4},
    "SplineMap": {"n_bases": 6, "out_of_domain": "extrapolate"},
    "TrigonometricMap": {"n_bases": 3, "out_of_domain": "extrapolate"},
    "HermiteMap": {"n_bases": 3, "out_of_domain": "extrapolate"},
    "RandomFourierMap": {"n_components": 16, "random_state": 0},
    "RandomOrthoprojector": {"n_components": 4, "random_state": 0},
    "CompressiveFourierMap": {"n_measurements": 4, "n_components": 16, "random_state": 0},
    "ExponentialMap": {"n_components": 16, "random_state": 0},
    "SignCauchyMap": {"n_components": 16, "random_state": 0},
}
MAPS = sorted(name for name in MAP_SETTINGS if hasattr(km, name))
MODELS = sorted(
    name
    for name, module in km._MODULE_OF.items()
    if module.startswith("kernelmaps.models.") and hasattr(getattr(km, name, None), "fit")
)


def rows(n: int = 40, d: int = 6, seed: int = 0, dtype: Any = np.float64) -> np.ndarray:
    """Histograms with some empty cells, as all maps accept."""
    X = np.random.default_rng(seed).dirichlet(np.full(d, 0.8), size=n)
    return np.where(X < 0.03, 0, X).astype(dtype)


def labels(n: int = 40) -> np.ndarray:
    return np.array(["first", "second", "third"])[np.arange(n) % 3]


def fitted_map(name: str) -> Any:
    return getattr(km, name)(**MAP_SETTINGS[name]).fit(rows())


def fitted_model(name: str) -> Any:
    X = rows()
    settings = {"StreamingPCA": {"n_components": 3}, "AdditiveClassifierCV": {"Cs": [0.1, 1]}}
    settings["AdditiveRegressorCV"] = {"Cs": [0.1, 1]}
    settings = settings.get(name, {})
    model = getattr(km, name)(feature_map=km.HomogeneousMap(n_components=3), **settings)
    regression = name.endswith(("Regressor", "RegressorCV", "Ridge", "Lasso", "Net"))
    return model.fit(X, X @ np.arange(6.0) if regression else labels())


def output(model: Any, X: np.ndarray) -> np.ndarray:
    """What a model says about rows, as one array."""
    return np.asarray(model.predict(X) if hasattr(model, "predict") else model.transform(X))
