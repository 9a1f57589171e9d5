"""Checks of the rows and targets that additive support vector machines are given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ..._util.arguments import refuse_masked
from ..._util.sparse import check_sparse, naming_text
from ...data.columns import reorder_columns, without_named
from ...data.table_files import is_csv
from ...engine.tabulated import zero_at_zero
from ...maps.base import AdditiveMap, JointMap
from ...maps.bases import SplineMap
from ...maps.codes import Codes, codes_of, refuse_plain_codes
from .fitted import AdditiveMachine, FittedMap

USE_A_GAM = (
    "AdditiveClassifier and AdditiveRegressor take text, categories and missing values as they are."
)


def refuse_table(owner: str, X: Any) -> None:
    """Refuse CSV files, and frames with text, categories or dates."""
    if isinstance(X, str | os.PathLike) and is_csv(X) and Path(X).exists():
        raise ValueError(
            f"{owner} takes complete numbers and does not read CSV files: pass "
            "pandas.read_csv(path) without the target, or a file with types (.parquet, .npy). "
            f"{USE_A_GAM}"
        )
    kinds = zip(X.columns, X.dtypes) if hasattr(X, "iloc") and hasattr(X, "dtypes") else ()
    # True and false are the numbers 1 and 0, as `pandas.get_dummies` writes them.
    words = [str(name) for name, kind in kinds if kind.kind not in "fiub"]
    if words:
        raise ValueError(
            f"{owner} takes complete numbers, and column {words[0]!r} holds text, categories or "
            f"dates. {USE_A_GAM}"
        )


@contextmanager
def naming_gams() -> Iterator[None]:
    """Add to an error about NaN which estimators take such rows; one about text says it."""
    try:
        yield
    except ValueError as error:
        if "contains NaN" in str(error):
            raise type(error)(f"{error} {USE_A_GAM}") from None
        raise


def check_rows_and_targets(owner: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """X untouched (its map checks the values), y of its length; names and columns are learned."""
    name = type(owner).__name__
    refuse_masked(owner, "y", y)
    if isinstance(X, Codes):
        y = column_or_1d(y, warn=True)
        owner.n_features_in_ = X.shape[1]
        owner.__dict__.pop("feature_names_in_", None)
    else:
        check_sparse(X, name)
        with naming_text(name, X):
            X, y = validate_data(
                owner, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False,
                y_numeric=isinstance(owner, RegressorMixin),
            )  # fmt: skip
    if X.shape[0] != len(y):
        raise ValueError(f"{name}: X has {X.shape[0]} rows, y has {len(y)}.")
    return X, y


def native_rows(owner: Any, machine: AdditiveMachine, X: Any) -> Any:
    """Rows to predict for, as the machine takes them; their values are still to be checked."""
    name = type(owner).__name__
    X = reorder_columns(owner, *without_named(name, X))
    if isinstance(X, Codes):
        if not machine.on_codes:
            raise ValueError(f"{name} was fitted on values, but X holds codes: decode them.")
        return machine.feature_map.check_codes(X)
    if machine.on_codes:
        refuse_plain_codes(X, name)
        return machine.feature_map.encode(X).values
    if not hasattr(X, "shape"):
        check_sparse(X, name)
        X = np.asarray(X)
    shape = X.shape
    if len(shape) != 2:
        raise ValueError(
            f"{name}: X must have two dimensions, found shape {tuple(shape)}. Reshape your data: "
            "X.reshape(1, -1) for one row, X.reshape(-1, 1) for one column."
        )
    validate_data(owner, X, reset=False, skip_check_array=True)
    with naming_text(name, X):
        if hasattr(X, "columns") and not hasattr(machine.feature_map, "feature_names_in_"):
            X = np.asarray(X)  # the names are checked; the map was fitted without them
        rows = machine.feature_map._native_rows(X, reset=False)
    return machine.fitted.dense_unless_sparse_helps(rows)


def unwrap_map(feature_map: Any) -> Any:
    """The map that a parameter stands for: splines by default, the content of a frozen one."""
    if feature_map is None:
        return SplineMap()
    return feature_map.estimator if isinstance(feature_map, FrozenEstimator) else feature_map


def fit_map(
    owner: str, feature_map: Any, X: Any, weight: np.ndarray | None, n_jobs: int | None
) -> tuple[Any, FittedMap]:
    """Fit a map that is not fitted yet; the rows as loops take them, and the map.

    Rows of weight 0 count as absent: the map's domain is neither learned from them nor checked
    against them.
    """
    phi = unwrap_map(feature_map)
    if not isinstance(phi, AdditiveMap):
        reason = f"{phi!r} is none"
        if isinstance(phi, JointMap):
            reason = f"{type(phi).__name__} acts on whole rows"
        raise TypeError(
            f"{owner}: feature_map must be an additive map, one that acts on each feature alone; "
            f"{reason}. Use one such as SplineMap or HomogeneousMap. For other maps put a linear "
            "model behind them: make_pipeline(feature_map, LinearSVC())."
        )
    if isinstance(X, Codes):
        rows, fitted = codes_of(phi, X, owner), FittedMap(phi, on_codes=True)
    else:
        rows, fitted = _fit_to_values(phi, X, weight, n_jobs)
    if sparse.issparse(rows) and not zero_at_zero(fitted.spec):
        raise ValueError(
            f"{owner}: X is sparse, but {type(phi).__name__} as given does not map 0 to 0, so "
            "that its rows are not sparse. Use a map with zero_at_zero=True (SplineMap, "
            "TrigonometricMap, HermiteMap), a homogeneous map, "
            "AnchorMap(feature_range=(0, None)), or pass dense rows, X.toarray()."
        )
    return rows, fitted


def _fit_to_values(
    phi: AdditiveMap, X: Any, weight: np.ndarray | None, n_jobs: int | None
) -> tuple[Any, FittedMap]:
    counted = slice(None)
    if weight is not None and weight.any() and not weight.all():
        counted = np.flatnonzero(weight > 0)
    try:
        check_is_fitted(phi)
    except NotFittedError:
        phi = clone(phi).set_params(n_jobs=n_jobs).fit(X[counted])
    rows, extent = phi._check_rows(X, reset=False)
    phi._check_domain(rows[counted], extent.columns if isinstance(counted, slice) else None)
    return rows, FittedMap(phi)
