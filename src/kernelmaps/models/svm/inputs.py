"""What additive models are given: the map, rows, targets and weights, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from ...device import refuse_card
from ...maps.base import JointMap
from ...maps.codes import Codes
from ...maps.spline import SplineMap
from ...sparse_rows import check_sparse

_FEW_LABELS = 20  # of so many, scikit-learn has nothing to warn of


def map_of(feature_map: Any) -> Any:
    """The map that was meant: splines by default, and what is in a FrozenEstimator."""
    if feature_map is None:
        return SplineMap()
    return feature_map.estimator if isinstance(feature_map, FrozenEstimator) else feature_map


def not_additive(owner: str, given: Any) -> str:
    what = f"{type(given).__name__} acts on whole rows" if isinstance(given, JointMap) else (
        f"{given!r} is none"
    )  # fmt: skip
    return (
        f"{owner}: feature_map must be an additive map, one that acts on each feature alone; "
        f"{what}. Use one such as SplineMap or HomogeneousMap. For other maps put a linear model "
        "behind them: make_pipeline(feature_map, LinearSVC())."
    )


def refuse_training_on_card(owner: Any, call: str, X: Any, y: Any, weights: Any = None) -> None:
    """Training is for the processor; nothing is copied there unasked."""
    what = f"{type(owner).__name__}.{call}"
    refuse_card(
        X,
        what,
        "Train on rows in ordinary memory (X.cpu().numpy() of a torch tensor); "
        "decision_function and predict take rows where they are.",
    )
    refuse_card(y, what, "Pass y.cpu().numpy() of a torch tensor.", "y")
    refuse_card(weights, what, "Pass them as NumPy.", "sample_weight")


def checked(owner: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """X untouched (its map checks the values), y one-dimensional and of its length."""
    if isinstance(X, Codes):
        y = column_or_1d(y, warn=True)
    else:
        numeric = isinstance(owner, RegressorMixin)
        check_sparse(X, type(owner).__name__)
        X, y = validate_data(
            owner, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False,
            y_numeric=numeric, multi_output=False,
        )  # fmt: skip
    if X.shape[0] != len(y):
        raise ValueError(f"{type(owner).__name__}: X has {X.shape[0]} rows, y has {len(y)}.")
    return X, y


def targets_of(owner: Any, y: Any, n: int) -> np.ndarray:
    """Targets of the rows of a table."""
    name = type(owner).__name__
    if y is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None: pass a value for each row."
        )
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        try:
            assert_all_finite(y, input_name="y")
        except ValueError as error:
            at = int(np.argmin(np.isfinite(y)))
            raise ValueError(f"{name}: {error} (row {at}). Leave such rows out.") from None
    if len(y) != n:
        raise ValueError(
            f"{name}: found input variables with inconsistent numbers of samples: X has {n} rows, "
            f"y has {len(y)}."
        )
    return y


def coded_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels in order, and the place of each row's label among them.

    Text is looked up by its hash: sorting the labels of all rows takes ten times as long.
    """
    if y.dtype.kind == "U" or (y.dtype == object and set(map(type, y.tolist())) == {str}):
        labels = y.tolist()
        names = sorted(set(labels))
        if len(names) <= _FEW_LABELS:
            place = {name: k for k, name in enumerate(names)}
            codes = np.fromiter(map(place.__getitem__, labels), np.int64, len(labels))
            return np.array(names, dtype=y.dtype), codes
    check_classification_targets(y)
    classes = np.unique(y)
    return classes, np.searchsorted(classes, y)


def weights_of(owner: Any, sample_weight: Any, n: int) -> np.ndarray:
    """Weights of rows, checked; ones where there are none."""
    like = np.empty((n, 1))
    try:
        weight = _check_sample_weight(
            sample_weight, like, dtype=np.float64, ensure_non_negative=True
        )
    except (ValueError, TypeError) as error:
        raise type(error)(
            f"{type(owner).__name__}: sample_weight must hold {n} finite numbers >= 0, one for "
            f"each row: {error}"
        ) from None
    if not weight.any():
        raise ValueError(f"{type(owner).__name__}: all sample weights are zero.")
    return weight
