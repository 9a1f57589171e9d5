"""Lasso, elastic net and group lasso from the statistics of one pass.

"This applies not only to traditional least squares regression, but also to the LASSO, group LASSO,
and other composite regularization approaches", says the Chebyshev paper (section 6), as the loss
enters through ZᵀZ and Zᵀy alone. Everything but the solver is inherited: sources, maps, PCA,
several kernels, unlabelled rows, held-out choice, Dask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...stats import Moments
from .projection import Coordinates
from .quadratic import elastic_net_path, group_lasso_path
from .regression import StreamingRegression

__all__ = ["StreamingElasticNet", "StreamingGroupLasso", "StreamingLasso"]


class StreamingElasticNet(StreamingRegression):
    """Elastic net on data larger than memory, by scikit-learn's path on the Gram matrix.

    Minimises Σ w (y − f(x))²/(2W) + α ρ ‖w‖₁ + α (1 − ρ) ‖w‖²/2, each target for itself.

    Parameters
    ----------
    alpha : float or sequence of float
        α; of several, the best is chosen by `validation`.
    feature_map, n_components
        See `StreamingRidge`. With PCA, the weights of the components are the sparse ones.
    l1_ratio : float
        ρ.
    max_iter, tol : int, float
        Of the coordinate descent.
    validation : int
        Number of folds.
    n_jobs, block_rows, progress
        See `StreamingPCA`.

    Attributes
    ----------
    coef_, intercept_, alpha_, n_components_, cv_results_, stats_, feature_map_
        See `StreamingRidge`.
    n_iter_ : int
        Sweeps that the last solution took.
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        feature_map: Any = None,
        *,
        n_components: Any = None,
        l1_ratio: float = 0.5,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        validation: int = 5,
        n_jobs: int | None = None,
        block_rows: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.alpha = alpha
        self.feature_map = feature_map
        self.n_components = n_components
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.validation = validation
        self.n_jobs = n_jobs
        self.block_rows = block_rows
        self.progress = progress

    def _solutions(
        self, at: Coordinates, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> np.ndarray:
        options: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        W, self.n_iter_ = elastic_net_path(stats, columns, alphas, self._l1_ratio(), **options)
        return W

    def _l1_ratio(self) -> float:
        if not 0 < self.l1_ratio <= 1:
            raise ValueError(
                f"{type(self).__name__}: l1_ratio must be in (0, 1], got {self.l1_ratio!r}; for 0 "
                "use StreamingRidge"
            )
        return self.l1_ratio


class StreamingLasso(StreamingElasticNet):
    """Lasso on data larger than memory: `StreamingElasticNet` with ρ = 1.

    Parameters
    ----------
    alpha, feature_map, n_components, max_iter, tol, validation, n_jobs, block_rows, progress
        See `StreamingElasticNet`.
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        feature_map: Any = None,
        *,
        n_components: Any = None,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        validation: int = 5,
        n_jobs: int | None = None,
        block_rows: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.alpha = alpha
        self.feature_map = feature_map
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.validation = validation
        self.n_jobs = n_jobs
        self.block_rows = block_rows
        self.progress = progress

    def _l1_ratio(self) -> float:
        return 1.0


class StreamingGroupLasso(StreamingRegression):
    """Group lasso over kernels: whole kernels are kept or dropped.

    Minimises Σ w (y − f(x))²/(2W) + α Σ_g √|g| ‖w_g‖, each target for itself, with one group per
    kernel of `feature_map` (or as `groups` says).

    Parameters
    ----------
    alpha : float or sequence of float
        α; of several, the best is chosen by `validation`.
    feature_map, n_components
        See `StreamingRidge`.
    groups : array-like of int of shape (D,), optional
        Group of each feature, instead of the kernels; only without PCA.
    max_iter, tol : int, float
        Sweeps over the groups, and the relative change of the correlations that ends them.
    validation : int
        Number of folds.
    n_jobs, block_rows, progress
        See `StreamingPCA`.

    Attributes
    ----------
    coef_, intercept_, alpha_, n_components_, cv_results_, stats_, feature_map_
        See `StreamingRidge`.
    n_iter_ : int
        Sweeps that the last solution took.
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        feature_map: Any = None,
        *,
        n_components: Any = None,
        groups: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-8,
        validation: int = 5,
        n_jobs: int | None = None,
        block_rows: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.alpha = alpha
        self.feature_map = feature_map
        self.n_components = n_components
        self.groups = groups
        self.max_iter = max_iter
        self.tol = tol
        self.validation = validation
        self.n_jobs = n_jobs
        self.block_rows = block_rows
        self.progress = progress

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
