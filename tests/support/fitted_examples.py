"""One small fitted example of every map and model: what files and exports must carry."""

from typing import Any

import numpy as np

import kernelmaps as km
from kernelmaps.engine import Spec
from kernelmaps.maps.base import AdditiveMap, FeatureMap

# Settings that keep the examples small; maps that are not in the list have those of `_small`.
MAP_SETTINGS: dict[str, dict[str, Any]] = {
    "HomogeneousMap": {"n_components": 3},
    "DesignedMap": {"n_components": 3, "out_of_domain": "extrapolate"},
    "AnchorMap": {"n_anchors": 8, "out_of_domain": "extrapolate"},
    "ChebyshevMap": {"n_components": 4},
    "SeriesMap": {"n_components": 4},
    "SplineMap": {"n_bases": 10, "out_of_domain": "extrapolate"},
    "TrigonometricMap": {"n_bases": 2, "out_of_domain": "extrapolate"},
    "HermiteMap": {"n_bases": 3, "out_of_domain": "extrapolate"},
    "RandomFourierMap": {"n_components": 16, "random_state": 0},
    "RandomOrthoprojector": {"n_components": 4, "random_state": 0},
    "CompressiveFourierMap": {"n_measurements": 4, "n_components": 16, "random_state": 0},
    "ExponentialMap": {"n_components": 16, "random_state": 0},
}


def _small(cls: type) -> dict[str, Any]:
    """Few columns, reproducible, and defined everywhere: for a map that was added later."""
    wanted = {"n_components": 16, "n_bases": 3, "n_anchors": 8, "random_state": 0}
    if issubclass(cls, AdditiveMap):
        wanted |= {"n_components": 4, "out_of_domain": "extrapolate"}
    return {name: value for name, value in wanted.items() if name in cls._get_param_names()}


def public_maps() -> dict[str, type]:
    """Classes of all public maps by name, but for those of points in the plane."""
    own = [name for name, home in km._MODULE_OF.items() if home.startswith("kernelmaps.maps.")]
    found = {name: getattr(km, name) for name in own if name != "JointDesignedMap"}
    return {name: cls for name, cls in found.items() if issubclass(cls, FeatureMap)}


MAP_SETTINGS = {name: MAP_SETTINGS.get(name, _small(cls)) for name, cls in public_maps().items()}
MAPS = sorted(MAP_SETTINGS)
MODELS = sorted(
    name
    for name, module in km._MODULE_OF.items()
    if module.startswith("kernelmaps.models.") and hasattr(getattr(km, name, None), "fit")
)


def rows(n: int = 40, d: int = 6, seed: int = 0, dtype: Any = np.float64) -> np.ndarray:
    """Histograms with some empty cells, as all maps accept."""
    X = np.random.default_rng(seed).dirichlet(np.full(d, 0.8), size=n)
    return np.where(X < 0.03, 0, X).astype(dtype)


def structured_projection(n_features: int, n_components: int, seed: int = 0) -> Spec:
    """Signs, a Hadamard transform and some of its coefficients: a stage of structured features."""
    length = 1 << (n_features - 1).bit_length()
    rng = np.random.default_rng(seed)
    arrays = {
        "signs": rng.choice(np.array([-1, 1], np.int8), size=(1, 1, length)),
        "rows": np.sort(rng.permutation(length)[:n_components]),
        "gains": np.full(n_components, n_components**-0.5),
    }
    return Spec("projection", arrays, {"operator": "hadamard"})


def labels(n: int = 40) -> np.ndarray:
    return np.array(["first", "second", "third"])[np.arange(n) % 3]


def fitted_map(name: str) -> Any:
    return getattr(km, name)(**MAP_SETTINGS[name]).fit(rows())


def map_of_the_plane() -> Any:
    """The joint map of tests that need any: its design is solved once and then found on disk."""
    return km.JointDesignedMap(km.kernels.Gaussian(1.0), 9, domain=[(0, 1), (0, 1)])


def fitted_map_of_the_plane() -> Any:
    return map_of_the_plane().fit(rows()[:, :2])


def model_of(name: str) -> Any:
    """A model that is not fitted yet."""
    if name in ("AdditiveClassifier", "AdditiveRegressor", "AdditiveSurvival"):  # without a map
        return getattr(km, name)()
    # A penalty that leaves some weights, and not all.
    sparse = {"alpha": 1e-3, "l1_ratio": 0.5, "groups": "kernels"}
    settings = {
        "StreamingPCA": {"n_components": 3},
        "StreamingLasso": sparse,
        "StreamingLassoClassifier": sparse,
    }.get(name, {})
    # Loops of training are those of others.
    spline, homogeneous = km.SplineMap(domain=(0, 1.5)), km.HomogeneousMap(n_components=3)
    return getattr(km, name)(feature_map=spline if "SV" in name else homogeneous, **settings)


def fitted_model(name: str) -> Any:
    X, model = rows(), model_of(name)
    if name == "AdditiveSurvival":
        return model.fit(X, np.column_stack([X @ np.arange(6.0), np.arange(len(X)) % 3 > 0]))
    regression = name.endswith(("Regressor", "SVR", "Ridge", "Lasso"))
    return model.fit(X, X @ np.arange(6.0) if regression else labels())


def output(model: Any, X: np.ndarray) -> np.ndarray:
    """What a model says about rows, as one array."""
    return np.asarray(model.predict(X) if hasattr(model, "predict") else model.transform(X))
