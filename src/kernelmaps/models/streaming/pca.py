"""PCA on data larger than memory, from mergeable statistics.

Algorithm 2 of Li, Lebanon and Sminchisescu, *Chebyshev approximations to the histogram χ² kernel*,
section 6, with the corrections of the errata (2.17 to 2.24).
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self, cast

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..._util.devices import refuse_container
from ..._util.schema import array, instance, optional, record, saved
from ..._util.storage import all_or_nothing
from ...stats import Moments
from ..solvers.quadratic import check_rows, component_count, principal_axes, significant
from . import rows
from .predictor import multiply_rows


@record
class PrincipalAxes:
    """All eigenvalues of a scatter, and the eigenvectors that are kept."""

    values: np.ndarray = saved(array("f8", "columns"))
    vectors: np.ndarray = saved(array("f8", "columns _"))


@dataclass(eq=False, repr=False)
class StreamingPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal component analysis on data larger than memory (Algorithm 2).

    H = Σ z zᵀ and m = Σ z are summed block by block; the components are the leading eigenvectors
    of H − m mᵀ/n (computed about a shift, see `kernelmaps.stats.Moments`), and a row is projected
    to Ūᵀ(z − z̄), equation (17).

    Parameters
    ----------
    n_components : int, float or None
        Components to keep; a fraction in (0, 1) keeps as many as explain that share of the
        variance; None keeps all that carry variance (the numerical rank).
    feature_map : transformer, list of (columns, transformer), or None
        φ. A fitted transformer is used as it is; an unfitted one is cloned and fitted on a sample
        of rows (4096 random ones and the ends of each column). Several
        are applied side by side.
    n_jobs : int, optional
        Threads; None means all.
    block_rows : int, optional
        Rows per block; by default such that a block takes about 64 MiB.
    progress : bool, optional
        Whether to show a bar; by default if there is a terminal.
    device : str or torch.device, optional
        Where features are made, multiplied and decomposed: "cuda" or "cuda:1" for a GPU (needs
        torch and a `feature_map` of kernelmaps), "cpu" for torch on the processor. Rows come from
        wherever they are, block by block, and sums stay on the GPU in float64. Torch tensors on a
        GPU are folded there by default, and give tensors.
    precision : {"float64", "float32", "tf32"}, optional
        Precision of features and products on the device; by default that of the rows. "tf32"
        multiplies with 10 bits of each factor, at several times the speed: see
        `kernelmaps.stats.Moments` for what that does to the sums.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, D)
        Ūᵀ, with scikit-learn's choice of signs.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarray
        As in scikit-learn's PCA (n − 1 in the denominator; the sum of weights for n).
    mean_ : ndarray of shape (D,)
        z̄.
    stats_ : Moments
        The sums; they can be saved and merged.
    feature_map_ : transformer, list or None
        Fitted.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of the columns of X, and their names where X had any. Later files and Dask dataframes
        are read by them, in whatever order their columns are.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmaps import StreamingPCA
    >>> X = np.random.default_rng(0).normal(size=(500, 5))
    >>> chunks = (X[a : a + 100] for a in range(0, 500, 100))
    >>> StreamingPCA(n_components=2).fit(chunks).components_.shape
    (2, 5)

    Frames keep the names of their columns:

    >>> import pandas as pd
    >>> frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
    >>> StreamingPCA(n_components=2).fit(frame).feature_names_in_.tolist()
    ['a', 'b', 'c', 'd', 'e']
    """

    n_components: int | float | None = None
    feature_map: Any = None
    _: KW_ONLY
    n_jobs: int | None = None
    block_rows: int | None = None
    progress: bool | None = None
    device: Any = None
    precision: str | None = None

    _state = rows.STATE.extended(allowed={"axes": optional(instance((PrincipalAxes,)))})
    feature_map_ = property(rows.fitted_maps)
    n_samples_seen_ = property(rows.count_rows_seen)
    __getstate__ = rows.portable_state
    # Without annotations, which would make parameters of them: maps and rows of the fit.
    _fitted_maps = cast("rows.Features", None)
    _rows_on = cast("str | None", None)  # device of the tensor that was fitted
    _axes = cast("PrincipalAxes | None", None)  # None until they are asked for

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Read all rows once and compute their components.

        Parameters
        ----------
        X : array, sparse matrix, path, iterable of chunks, Dask collection, …
            Whatever `kernelmaps.data.open_source` opens.
        y : ignored
        sample_weight : array-like, optional
            A weight of 2 is a row that occurs twice.

        Returns
        -------
        self
            The fitted model.
        """
        source = rows.open_rows(self, X, None, sample_weight, reset=True, supervised=False)
        rows.begin_fit(self, source)
        features = self._fitted_maps
        self.stats_ = rows.fold_rows(self, source, self._empty(features), features)
        self._discard_solution()
        self._decompose()
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add one chunk of rows.

        Parameters
        ----------
        X : array-like or sparse matrix
            Rows of the chunk.
        y : ignored
        sample_weight : array-like, optional
            Weights of the rows.

        Returns
        -------
        self : StreamingPCA
            The PCA of all rows so far.
        """
        rows.add_chunk(self, X, None, sample_weight, supervised=False)
        return self

    def merge(self, other: StreamingPCA) -> Self:
        """Add the rows of another fitted PCA with the same map.

        Parameters
        ----------
        other : StreamingPCA
            The other PCA; it is not changed.

        Returns
        -------
        self : StreamingPCA
            The PCA of the rows of both.
        """
        rows.check_mergeable(self, other)
        self.stats_.merge(other.stats_)
        self._discard_solution()
        return self

    def _empty(self, features: rows.Features, classes: None = None) -> Moments:
        return Moments(tag=features.tag)

    def _begin(self, source: Any) -> None:
        rows.begin_fit(self, source)

    def _check_one_pass(self) -> None:
        """One pass is enough."""

    def _discard_solution(self, added: Any = None) -> None:
        self._axes = None

    def _decompose(self) -> PrincipalAxes:
        """The axes; found when they are first asked for."""
        if self._axes is None:
            name = type(self).__name__
            check_is_fitted(self, "stats_")
            check_rows(self, self.stats_)
            with rows.solve_on_device(self):
                values, vectors = principal_axes(self.stats_.scatter())
            keep = component_count(name, self.n_components, values, self.stats_.n)
            rank = np.count_nonzero(significant(values))
            if self.n_components is not None and keep > rank:
                warnings.warn(
                    f"{name}: the statistics have rank {rank}, so that {keep - rank} of the {keep} "
                    "components carry no variance and are arbitrary",
                    LinAlgWarning,
                    stacklevel=3,
                )
            self._axes = PrincipalAxes(values, np.ascontiguousarray(vectors[:, :keep]))
        return self._axes

    @property
    def components_(self) -> np.ndarray:
        """Ūᵀ, one component per row."""
        return self._decompose().vectors.T

    @property
    def explained_variance_(self) -> np.ndarray:
        """Eigenvalues of the covariance."""
        values = self._decompose().values[: self.n_components_]
        return values / max(self.stats_.weight - 1.0, np.finfo(float).tiny)

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        """Shares of the whole variance."""
        values = self._decompose().values
        total = max(values.sum(), np.finfo(float).tiny)  # of equal rows: 0
        return values[: self.n_components_] / total

    @property
    def singular_values_(self) -> np.ndarray:
        """Singular values of the centred features."""
        return np.sqrt(self._decompose().values[: self.n_components_])

    @property
    def n_components_(self) -> int:
        """Number of components."""
        return self._decompose().vectors.shape[1]

    @property
    def mean_(self) -> np.ndarray:
        """Mean of the features."""
        check_is_fitted(self, "stats_")
        return self.stats_.mean

    _n_features_out = n_components_

    def transform(self, X: Any) -> np.ndarray:
        """Project rows: (φ(X) − z̄) Ū, equation (17); float32 features give float32.

        Parameters
        ----------
        X : array-like, sparse matrix, or another source of rows
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Projected rows.
        """
        refuse_container(self, X)
        U = self.components_.T
        return rows.map_blocks(self, X, partial(multiply_rows, matrix=U, offset=-(self.mean_ @ U)))

    def __sklearn_tags__(self) -> Tags:
        tags = rows.input_tags(self, super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
