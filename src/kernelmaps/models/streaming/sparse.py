"""Lasso, elastic net and group lasso from the statistics of one pass, for numbers and classes.

"This applies not only to traditional least squares regression, but also to the LASSO, group LASSO,
and other composite regularization approaches", says the Chebyshev paper (section 6), as the loss
enters through ZᵀZ and Zᵀy alone. Everything but the solver is inherited: sources, maps, PCA,
several kernels, unlabelled rows, held-out choice, Dask.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ...stats import Moments
from ..solvers.quadratic import elastic_net_path, group_lasso_path
from .classification import StreamingClassification
from .linear import Coordinates, StreamingLinear, StreamingRegression


@dataclass(eq=False, repr=False)
class _Lasso(StreamingLinear):
    """The lasso on statistics, each target for itself; the elastic net where ρ is below 1."""

    _: KW_ONLY
    max_iter: int = 10_000
    tol: float = 1e-6

    def _l1_ratio(self) -> float:
        return 1.0

    def _solutions(
        self, at: Coordinates, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> np.ndarray:
        options: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        W, self.n_iter_ = elastic_net_path(stats, columns, alphas, self._l1_ratio(), **options)
        return W


@dataclass(eq=False, repr=False)
class _GroupLasso(_Lasso):
    """The group lasso on statistics, each target for itself."""

    _: KW_ONLY
    groups: Any = None
    max_iter: int = 1000
    tol: float = 1e-8

    def _solutions(
        self, at: Coordinates, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> np.ndarray:
        groups = at.kernel
        if self.groups is not None:
            groups = np.asarray(self.groups)
            if at.back is not None or groups.shape != at.kernel.shape:
                raise ValueError(
                    f"{type(self).__name__}: groups must have one entry for each of the "
                    f"{len(at.kernel)} features, without PCA; got shape {groups.shape}"
                )
        options: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        W, self.n_iter_ = group_lasso_path(stats, columns, alphas, groups[columns], **options)
        return W


class _SparseClassification(StreamingClassification):
    """Labels for the two above."""

    def _solutions(
        self, at: Coordinates, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> np.ndarray:
        # Targets 0 and 1 instead of −1 and 1: half the weights, a quarter of the squared error.
        return super()._solutions(at, stats, columns, alphas / 2)


@dataclass(eq=False, repr=False)
class StreamingElasticNet(StreamingRegression, _Lasso):
    """Elastic net on data larger than memory, by scikit-learn's path on the Gram matrix.

    Minimises Σ w (y − f(x))²/(2W) + α ρ ‖w‖₁ + α (1 − ρ) ‖w‖²/2, each target for itself.

    Parameters
    ----------
    alpha : float or sequence of float
        α; of several, the best is chosen by `validation`.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        See `StreamingRidge`. With PCA, the weights of the components are the sparse ones.
    n_components : int, float, sequence of int, or None
        See `StreamingRidge`.
    l1_ratio : float
        ρ.
    max_iter, tol : int, float
        Of the coordinate descent.
    validation : int
        Number of folds.
    n_jobs, block_rows : int, optional
        See `StreamingPCA`.
    progress : bool, optional
        See `StreamingPCA`.

    Attributes
    ----------
    coef_ : ndarray
        See `StreamingRidge`.
    intercept_ : float or ndarray
        See `StreamingRidge`.
    alpha_ : float
        See `StreamingRidge`.
    n_components_ : int, list of int, or None
        See `StreamingRidge`.
    cv_results_ : dict
        See `StreamingRidge`.
    stats_ : Moments or FoldMoments
        See `StreamingRidge`.
    feature_map_ : transformer, list or None
        See `StreamingRidge`.
    n_iter_ : int
        Sweeps that the last solution took.
    """

    _: KW_ONLY
    l1_ratio: float = 0.5

    def _l1_ratio(self) -> float:
        if not 0 < self.l1_ratio <= 1:
            raise ValueError(
                f"{type(self).__name__}: l1_ratio must be in (0, 1], got {self.l1_ratio!r}; for 0 "
                "use StreamingRidge"
            )
        return self.l1_ratio


class StreamingLasso(StreamingRegression, _Lasso):
    """Lasso on data larger than memory: `StreamingElasticNet` with ρ = 1.

    Parameters
    ----------
    alpha : float or sequence of float
        See `StreamingElasticNet`.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        See `StreamingElasticNet`.
    n_components : int, float, sequence of int, or None
        See `StreamingElasticNet`.
    max_iter, validation : int
        See `StreamingElasticNet`.
    tol : float
        See `StreamingElasticNet`.
    n_jobs, block_rows : int, optional
        See `StreamingElasticNet`.
    progress : bool, optional
        See `StreamingElasticNet`.
    """


class StreamingGroupLasso(StreamingRegression, _GroupLasso):
    """Group lasso over kernels: whole kernels are kept or dropped.

    Minimises Σ w (y − f(x))²/(2W) + α Σ_g √|g| ‖w_g‖, each target for itself, with one group per
    kernel of `feature_map` (or as `groups` says).

    Parameters
    ----------
    alpha : float or sequence of float
        α; of several, the best is chosen by `validation`.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        See `StreamingRidge`.
    n_components : int, float, sequence of int, or None
        See `StreamingRidge`.
    groups : array-like of int of shape (D,), optional
        Group of each feature, instead of the kernels; only without PCA.
    max_iter, tol : int, float
        Sweeps over the groups, and the relative change of the correlations that ends them.
    validation : int
        Number of folds.
    n_jobs, block_rows : int, optional
        See `StreamingPCA`.
    progress : bool, optional
        See `StreamingPCA`.

    Attributes
    ----------
    coef_ : ndarray
        See `StreamingRidge`.
    intercept_ : float or ndarray
        See `StreamingRidge`.
    alpha_ : float
        See `StreamingRidge`.
    n_components_ : int, list of int, or None
        See `StreamingRidge`.
    cv_results_ : dict
        See `StreamingRidge`.
    stats_ : Moments or FoldMoments
        See `StreamingRidge`.
    feature_map_ : transformer, list or None
        See `StreamingRidge`.
    n_iter_ : int
        Sweeps that the last solution took.
    """


@dataclass(eq=False, repr=False)
class StreamingLassoClassifier(_SparseClassification, _Lasso):
    """Lasso for classes on data larger than memory: least squares on ±1 targets, few weights.

    Minimises Σ w (y − f(x))²/(2W) + α ‖w‖₁ with y = ±1, each class against the rest (or each pair
    of classes) for itself, from the sums that `StreamingRidgeClassifier` adds up.

    Parameters
    ----------
    alpha : float or sequence of float
        α; of several, the best is chosen by `validation`. From the largest modulus of
        Σ w y (φ − φ̄)/W on, all weights are 0.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        See `StreamingRidge`. With PCA, the weights of the components are the sparse ones.
    n_components : int, float, sequence of int, or None
        See `StreamingRidge`.
    max_iter, tol : int, float
        Of the coordinate descent.
    validation : int
        Number of folds.
    n_jobs, block_rows : int, optional
        See `StreamingPCA`.
    progress : bool, optional
        See `StreamingPCA`.
    multi_class : {"ovr", "ovo"}, default="ovr"
        See `StreamingRidgeClassifier`.

    Attributes
    ----------
    classes_, coef_ : ndarray
        See `StreamingRidgeClassifier`.
    intercept_ : float or ndarray
        See `StreamingRidgeClassifier`.
    alpha_ : float
        See `StreamingRidgeClassifier`.
    n_components_ : int, list of int, or None
        See `StreamingRidgeClassifier`.
    cv_results_ : dict
        See `StreamingRidgeClassifier`.
    stats_ : Moments or FoldMoments
        See `StreamingRidgeClassifier`.
    feature_map_ : transformer, list or None
        See `StreamingRidgeClassifier`.
    n_iter_ : int
        Sweeps that the last solution took; one against one, that of the last pair.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmaps import StreamingLassoClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 5))
    >>> y = np.where(X[:, 1] > 0, "high", "low")
    >>> model = StreamingLassoClassifier(alpha=0.2).fit([(X[:300], y[:300]), (X[300:], y[300:])])
    >>> np.flatnonzero(model.coef_)
    array([1])
    """

    alpha: Any = 0.01


@dataclass(eq=False, repr=False)
class StreamingGroupLassoClassifier(_SparseClassification, _GroupLasso):
    """Group lasso for classes: each class keeps or drops whole kernels.

    Minimises Σ w (y − f(x))²/(2W) + α Σ_g √|g| ‖w_g‖ with y = ±1, each class against the rest (or
    each pair of classes) for itself, with one group per kernel of `feature_map` (or as `groups`
    says). A kernel whose weights are 0 for all classes need not be computed.

    Parameters
    ----------
    alpha : float or sequence of float
        α; of several, the best is chosen by `validation`.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        See `StreamingRidge`.
    n_components : int, float, sequence of int, or None
        See `StreamingRidge`.
    groups : array-like of int of shape (D,), optional
        See `StreamingGroupLasso`.
    max_iter : int
        See `StreamingGroupLasso`.
    tol : float
        See `StreamingGroupLasso`.
    validation : int
        Number of folds.
    n_jobs, block_rows : int, optional
        See `StreamingPCA`.
    progress : bool, optional
        See `StreamingPCA`.
    multi_class : {"ovr", "ovo"}, default="ovr"
        See `StreamingRidgeClassifier`.

    Attributes
    ----------
    classes_, coef_ : ndarray
        See `StreamingRidgeClassifier`.
    intercept_ : float or ndarray
        See `StreamingRidgeClassifier`.
    alpha_ : float
        See `StreamingRidgeClassifier`.
    n_components_ : int, list of int, or None
        See `StreamingRidgeClassifier`.
    cv_results_ : dict
        See `StreamingRidgeClassifier`.
    stats_ : Moments or FoldMoments
        See `StreamingRidgeClassifier`.
    feature_map_ : transformer, list or None
        See `StreamingRidgeClassifier`.
    n_iter_ : int
        Sweeps that the last solution took; one against one, that of the last pair.
    """

    alpha: Any = 0.01
