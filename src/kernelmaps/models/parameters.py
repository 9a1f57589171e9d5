"""Parameters of the additive estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.base import BaseEstimator

from ..default_parts import DefaultParts
from ..maps.base import AdditiveMap


@dataclass(eq=False, repr=False)
class AdditiveParameters(DefaultParts, BaseEstimator):
    """What `AdditiveClassifier`, which documents it, and `AdditiveRegressor` both take."""

    feature_map: AdditiveMap | None = None
    C: Any = 1.0
    _: KW_ONLY
    loss: str = "squared_hinge"
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool | None = None
    terms: Any = None
    interactions: Any = None
    constraints: Any = None
    smoothing: Any = None
    categorical_features: Any = None
    solver: str = "auto"
    compact: bool = True
