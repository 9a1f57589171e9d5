"""A fitted additive map, and rows in the form that compiled loops take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ..._util.threads import cached_property
from ...engine import Spec, code_spec
from ...engine.tabulated import zero_at_zero
from ...maps.base import AdditiveMap, JointMap
from ...maps.codes import Codes, codes_of
from ...maps.spline import SplineMap


@dataclass(frozen=True)
class FittedMap:
    """A fitted map, and whether rows are its codes instead of values."""

    feature_map: AdditiveMap
    on_codes: bool = False

    @cached_property
    def spec(self) -> Spec:
        """The map of the rows: of values, or of codes."""
        spec = self.feature_map.spec_
        return code_spec(spec) if self.on_codes else spec

    @property
    def n_columns(self) -> int:
        """Columns of ψ, of all features together."""
        return sum(self.feature_map._columns_per_feature())

    @property
    def n_bases(self) -> int:
        """Columns of the feature that has the most."""
        return max(self.feature_map._columns_per_feature())

    @property
    def has_fixed_table(self) -> bool:
        """Whether one table serves all rows (splines, look-ups); tables of curves go by ranges."""
        return "mix" in self.spec.arrays or self.spec.family == "piecewise"

    def dense_unless_sparse_helps(self, rows: Any) -> Any:
        """Sparse rows as dense ones, where the map does not take 0 to 0."""
        return rows.toarray() if sparse.issparse(rows) and not zero_at_zero(self.spec) else rows

    def check(self, rows: Any) -> None:
        """Refuse values that the map is not defined for, warn of those outside its domain."""
        if not self.on_codes:
            self._checked(rows)

    def block(self, X: Any) -> Any:
        """One block of values, checked."""
        return self.dense_unless_sparse_helps(self._checked(X))

    def _checked(self, X: Any) -> Any:
        rows, extent = self.feature_map._check_rows(X, reset=False)
        self.feature_map._check_domain(rows, extent.columns)
        return rows


def map_of(feature_map: Any) -> Any:
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
    given = map_of(feature_map)
    if not isinstance(given, AdditiveMap):
        raise TypeError(_not_additive(owner, given))
    if isinstance(X, Codes):
        rows, fitted = codes_of(given, X, owner), FittedMap(given, on_codes=True)
    else:
        rows, fitted = _fit_to_values(given, X, weight, n_jobs)
    if sparse.issparse(rows) and not zero_at_zero(fitted.spec):
        raise ValueError(
            f"{owner}: X is sparse, but {type(given).__name__} as given does not map 0 to 0, so "
            "that its rows are not sparse. Use a map with zero_at_zero=True (SplineMap, "
            "TrigonometricMap, HermiteMap), a homogeneous map, "
            "AnchorMap(feature_range=(0, None)), or pass dense rows, X.toarray() "
            "(for codes: encode(X.toarray()))."
        )
    return rows, fitted


def _fit_to_values(
    given: AdditiveMap, X: Any, weight: np.ndarray | None, n_jobs: int | None
) -> tuple[Any, FittedMap]:
    counted = columns = None
    if weight is not None and weight.any() and not weight.all():
        counted = np.flatnonzero(weight > 0)
    try:
        check_is_fitted(given)
        rows, extent = given._check_rows(X, reset=False)
        columns = extent.columns
    except NotFittedError:
        unfitted = clone(given).set_params(n_jobs=n_jobs)
        given = unfitted.fit(X if counted is None else X[counted])
        if counted is None:  # the fit has checked the values
            rows = given._native_rows(X, reset=False)
        else:
            rows, _ = given._check_rows(X, reset=False)
    if counted is None:
        given._check_domain(rows, columns)
    else:
        given._check_domain(rows[counted])
    return rows, FittedMap(given)


def _not_additive(owner: str, given: Any) -> str:
    what = f"{type(given).__name__} acts on whole rows" if isinstance(given, JointMap) else (
        f"{given!r} is none"
    )  # fmt: skip
    return (
        f"{owner}: feature_map must be an additive map, one that acts on each feature alone; "
        f"{what}. Use one such as SplineMap or HomogeneousMap. For other maps put a linear model "
        "behind them: make_pipeline(feature_map, LinearSVC())."
    )
