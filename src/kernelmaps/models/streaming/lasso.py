"""The lasso from the statistics of one pass, for numbers and classes; elastic net and groups.

"This applies not only to traditional least squares regression, but also to the LASSO, group LASSO,
and other composite regularization approaches", says the Chebyshev paper (section 6), as the loss
enters through ZᵀZ and Zᵀy alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from ..._util.arguments import check_count, check_number
from ...stats import Moments
from ..solvers.lasso import lasso_path
from .linear import LinearProblem, StreamingClassification, StreamingRegression


@dataclass(eq=False, repr=False)
class LassoModel:
    """The lasso and its relatives on statistics, each target for itself."""

    _: KW_ONLY
    l1_ratio: float = 1.0
    groups: Sequence[int] | np.ndarray | str | None = None
    max_iter: int = 10_000
    tol: float = 1e-6

    @property
    def n_iter_(self) -> int:
        """Iterations that the solution took."""
        return self._find_solution().n_iter  # type: ignore[attr-defined]

    # Factor by which the targets of the penalised problem are larger than those of the statistics.
    _target_scale: ClassVar[float] = 1.0

    def _check_penalty(self) -> None:
        name = type(self).__name__
        if self.groups is None:
            expected = "in (0, 1] without groups (for 0, use a ridge model)"
            check_number(self, "l1_ratio", self.l1_ratio, expected, lambda v: 0 < v <= 1)
        else:
            check_number(self, "l1_ratio", self.l1_ratio, "in [0, 1]", lambda v: 0 <= v <= 1)
        check_count(self, "max_iter", self.max_iter)
        check_number(self, "tol", self.tol, ">= 0", lambda v: v >= 0)
        if isinstance(self.groups, str) and self.groups != "kernels":
            raise ValueError(
                f"{name}: groups must be None, 'kernels' or the group of each feature, got "
                f"{self.groups!r}"
            )
        if self.groups is not None and self.l1_ratio == 1:
            warnings.warn(
                f"{name}: with l1_ratio=1 groups have no effect. Use l1_ratio=0 for the group "
                "lasso, or a number between for the sparse group lasso",
                UserWarning,
                stacklevel=5,
            )

    def _check_features(self, kernel: np.ndarray, pca: bool) -> None:
        if self.groups is None or isinstance(self.groups, str):
            return
        groups = np.asarray(self.groups)
        if pca or groups.shape != kernel.shape or groups.dtype.kind not in "iu":
            raise ValueError(
                f"{type(self).__name__}: groups must have one integer for each of the "
                f"{len(kernel)} features, without PCA; got shape {groups.shape} of type "
                f"{groups.dtype}{' with PCA' * pca}"
            )

    def _solve_path(
        self, base: LinearProblem, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Weights of all α.

        Targets s times as large have weights s times as large, and a loss s² times as large: a
        norm of them has to be weighted 1/s, a square 1.
        """
        self._check_features(base.kernel, base.back is not None)
        groups = None
        if self.groups is not None:
            groups = base.kernel if isinstance(self.groups, str) else np.asarray(self.groups)
            groups = groups[columns]
        l1, other = self.l1_ratio / self._target_scale, 1.0 - self.l1_ratio
        other = other if groups is None else other / self._target_scale
        factor = l1 + other
        limits = {"max_iter": self.max_iter, "tol": self.tol}
        return lasso_path(stats, columns, alphas * factor, l1 / factor, groups, **limits)


@dataclass(eq=False, repr=False)
class StreamingLasso(LassoModel, StreamingRegression):
    """Lasso, elastic net, group lasso or sparse group lasso on data larger than memory.

    Minimises, each target for itself, over the weights w and the intercept b

        Σ w_i (y_i − wᵀφ(x_i) − b)² / (2 Σ w_i) + α Ω(w)

    with the sample weights w_i and one of two penalties. Without `groups` it is that of
    scikit-learn's ElasticNet, and of its Lasso for ρ = 1:

        Ω(w) = ρ ‖w‖₁ + (1 − ρ) ‖w‖²/2.

    With `groups` of p_g features each it is that of the sparse group lasso (Simon, Friedman, Hastie
    and Tibshirani, 2013), which is the group lasso for ρ = 0: whole groups are kept or dropped, and
    for ρ > 0 single features of those that are kept, too:

        Ω(w) = ρ ‖w‖₁ + (1 − ρ) Σ_g √p_g ‖w_g‖₂.

    As only ZᵀZ, Zᵀ1 and Zᵀy are needed, one pass gives the models of all α, all targets and all PCA
    sizes.

    Parameters
    ----------
    alpha : float or sequence of float
        α; of several, the best is chosen by `validation`. 0 gives least squares.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        φ. A fitted transformer is used as it is; an unfitted one is cloned and fitted on a sample
        of rows (4096 random ones and the ends of each column). A list
        makes a joint model of several kernels, each with a PCA of its own (Algorithm 4), for
        which the data are read twice; `columns` is a slice, integers, a mask, or None for all.
    l1_ratio : float
        ρ. Without groups in (0, 1]: 1 is the lasso, less the elastic net. With groups in [0, 1]: 0
        is the group lasso, a number between the sparse group lasso; with 1, groups have no effect,
        and a warning says so.
    groups : array-like of int of shape (D,), "kernels" or None
        The group of each feature φ_j, without PCA; or "kernels", one group for each kernel of
        `feature_map`, also with PCA.
    n_components : int, float, sequence of int, or None
        PCA size, of each kernel if there are several; a fraction in (0, 1) of the variance; of a
        sequence, the best is chosen by `validation`; None for no PCA. With PCA, w are the weights
        of the components, and `coef_` is in general not sparse.
    validation : int
        Number of folds of rows, whose sums are kept apart in the same pass and whose held-out
        squared errors follow from them exactly. The PCA, which does not see targets, is made once,
        of all rows.
    max_iter : int
        The most iterations for each α.
    tol : float
        Iterations end when the objective is proved to be within `tol` times the variance of the
        targets of its minimum (by the duality gap, as in scikit-learn's Lasso).
    n_jobs : int, optional
        Threads; None means all.
    block_rows : int, optional
        Rows per block; by default such that a block takes about 64 MiB.
    progress : bool, optional
        Whether to show a bar; by default if there is a terminal.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (n_targets, D)
        Weights of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        b.
    alpha_ : float
        α in use.
    n_components_ : int, list of int (one per kernel), or None
        PCA size in use.
    n_iter_ : int
        Iterations that the solution took; of several targets, the most.
    cv_results_ : dict
        "alpha", "n_components" and "mean_squared_error" of shape (n_sizes, n_alphas).
    stats_ : Moments or FoldMoments
        The sums; they can be saved and merged.
    feature_map_ : transformer, list or None
        Fitted.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of the columns of X, and their names where X had any. Later files and Dask dataframes
        are read by them, in whatever order their columns are.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmaps import StreamingLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 6))
    >>> y = 2 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=1000)
    >>> chunks = [(X[:400], y[:400]), (X[400:], y[400:])]
    >>> model = StreamingLasso(alpha=0.1).fit(chunks)
    >>> np.flatnonzero(model.coef_)
    array([0, 1])

    Of three groups of two columns, the first is kept:

    >>> grouped = StreamingLasso(0.1, l1_ratio=0, groups=[0, 0, 1, 1, 2, 2]).fit(chunks)
    >>> np.flatnonzero(grouped.coef_)
    array([0, 1])

    Frames keep the names of their columns:

    >>> import pandas as pd
    >>> model = StreamingLasso(alpha=0.1).fit(pd.DataFrame(X, columns=list("abcdef")), y)
    >>> model.feature_names_in_[model.coef_ != 0].tolist()
    ['a', 'b']
    """


@dataclass(eq=False, repr=False)
class StreamingLassoClassifier(LassoModel, StreamingClassification):
    """Lasso, elastic net or (sparse) group lasso for classes, on data larger than memory.

    Least squares on targets y = ±1, with few weights: minimises, each class against the rest (or
    each pair of classes) for itself, over the weights w and the intercept b

        Σ w_i (y_i − wᵀφ(x_i) − b)² / (2 Σ w_i) + α Ω(w)

    with the sample weights w_i and one of two penalties. Without `groups` it is that of
    scikit-learn's ElasticNet, and of its Lasso for ρ = 1:

        Ω(w) = ρ ‖w‖₁ + (1 − ρ) ‖w‖²/2.

    With `groups` of p_g features each it is that of the sparse group lasso (Simon, Friedman, Hastie
    and Tibshirani, 2013), which is the group lasso for ρ = 0: each class keeps or drops whole
    groups and, for ρ > 0, single features of those that are kept, too:

        Ω(w) = ρ ‖w‖₁ + (1 − ρ) Σ_g √p_g ‖w_g‖₂.

    A kernel whose weights are 0 for all classes need not be computed.

    Parameters
    ----------
    alpha : float or sequence of float
        α; of several, the best is chosen by `validation`. 0 gives least squares. For the
        lasso, all weights are 0 from the largest modulus of Σ w_i y_i (φ(x_i) − φ̄)/Σ w_i on.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        φ. A fitted transformer is used as it is; an unfitted one is cloned and fitted on a sample
        of rows (4096 random ones and the ends of each column). A list
        makes a joint model of several kernels, each with a PCA of its own (Algorithm 4), for
        which the data are read twice; `columns` is a slice, integers, a mask, or None for all.
    l1_ratio : float
        ρ. Without groups in (0, 1]: 1 is the lasso, less the elastic net. With groups in [0, 1]: 0
        is the group lasso, a number between the sparse group lasso; with 1, groups have no effect,
        and a warning says so.
    groups : array-like of int of shape (D,), "kernels" or None
        The group of each feature φ_j, without PCA; or "kernels", one group for each kernel of
        `feature_map`, also with PCA.
    n_components : int, float, sequence of int, or None
        PCA size, of each kernel if there are several; a fraction in (0, 1) of the variance; of a
        sequence, the best is chosen by `validation`; None for no PCA. With PCA, w are the weights
        of the components, and `coef_` is in general not sparse.
    validation : int
        Number of folds of rows, whose sums are kept apart in the same pass and whose held-out
        squared errors follow from them exactly. The PCA, which does not see targets, is made once,
        of all rows.
    max_iter : int
        The most iterations for each α.
    tol : float
        Iterations end when the objective is proved to be within `tol` times the variance of the
        targets of its minimum (by the duality gap, as in scikit-learn's Lasso).
    n_jobs : int, optional
        Threads; None means all.
    block_rows : int, optional
        Rows per block; by default such that a block takes about 64 MiB.
    progress : bool, optional
        Whether to show a bar; by default if there is a terminal.
    multi_class : {"ovr", "ovo"}, default="ovr"
        Many classes one against the rest, or one against one, in the same pass: ZᵀZ of every class
        is kept apart, and the sums of a pair are those of its two classes. Votes decide, as in
        scikit-learn's `OneVsOneClassifier`. It takes D² numbers for every class.

    Attributes
    ----------
    classes_ : ndarray
        Sorted labels.
    coef_, intercept_ : ndarray of shape (c, D) and (c,); (1, D) and (1,) for two classes
        On the features; one against one, of the pairs of classes (0, 1), (0, 2), …
    alpha_ : float
        α in use.
    n_components_ : int, list of int (one per kernel), or None
        PCA size in use.
    n_iter_ : int
        Iterations that the solution took; of several classes or pairs, the most.
    cv_results_ : dict
        "alpha", "n_components" and "mean_squared_error" of shape (n_sizes, n_alphas).
    stats_ : Moments or FoldMoments
        The sums; they can be saved and merged.
    feature_map_ : transformer, list or None
        Fitted.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of the columns of X, and their names where X had any. Later files and Dask dataframes
        are read by them, in whatever order their columns are.

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

    Frames keep the names of their columns:

    >>> import pandas as pd
    >>> frame = pd.DataFrame(X, columns=list("abcde"))
    >>> model = StreamingLassoClassifier(alpha=0.2).fit(frame, y)
    >>> model.feature_names_in_[np.flatnonzero(model.coef_)].tolist()
    ['b']
    """

    alpha: Any = 0.01
    # The statistics have targets 0 and 1, half as far apart as −1 and 1.
    _target_scale = 2.0
