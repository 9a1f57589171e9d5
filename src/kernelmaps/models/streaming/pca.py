"""PCA on data larger than memory, from mergeable statistics.

Algorithm 2 of Li, Lebanon and Sminchisescu, *Chebyshev approximations to the histogram χ² kernel*,
section 6, with the corrections of the errata (2.17 to 2.24).
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..._util.devices import refuse_container
from ..._util.schema import array, integer
from ..._util.storage import all_or_nothing
from ..solvers.quadratic import check_rows, component_count, principal_axes, significant
from .base import Passes, PathLike, StreamingEstimator
from .feature_maps import affine


@dataclass(eq=False, repr=False)
class StreamingPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, StreamingEstimator):
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

    _state = StreamingEstimator._state.extended(
        allowed={
            "values": array("f8", "columns"),
            "vectors": array("f8", "columns _"),
            "keep": integer(1),
        },
    )

    def _check_state(self) -> None:
        super()._check_state()
        is_saved = [hasattr(self, name) for name in ("_values", "_vectors", "_keep")]
        if any(is_saved[:2]) and not all(is_saved):
            raise ValueError("values, vectors and keep come together")
        if is_saved[0] and not self._keep <= self._vectors.shape[1] <= len(self._values):
            raise ValueError("more components are kept than there are")
        if is_saved[0] and len(self._vectors) != self._folded_width():
            raise ValueError("vectors have another number of features than the map gives")

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        client: Any = None,
        checkpoint: PathLike | None = None,
        checkpoint_every: int = 1,
        map_sample: Any = None,
    ) -> Self:
        """Read all rows once and compute their components.

        Parameters
        ----------
        X : array, sparse matrix, path, iterable of chunks, Dask collection, …, or Codes
            Whatever `kernelmaps.data.open_source` opens; or codes of an `AnchorMap`, which is
            then the fitted `feature_map`, and which decodes them block by block.
        y : ignored
        sample_weight : array-like, optional
            A weight of 2 is a row that occurs twice.
        client : distributed.Client or str, optional
            Fold on its workers; a string is the address of a scheduler.
        checkpoint, checkpoint_every : path, int
            Where and how often the state is kept; an interrupted fit continues from there.
        map_sample : array-like, optional
            Rows to fit the map on, instead of a sample of X.

        Returns
        -------
        self
            The fitted model.
        """
        source = self._open(X, None, sample_weight, reset=True, supervised=False)
        passes = Passes(client, checkpoint, checkpoint_every)
        features = self._begin(source, client, map_sample).features
        self.stats_ = self._fold(source, self._empty(features), features, passes, "moments")
        self._grown()
        self._eigen()
        passes.finished()
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add one chunk of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or Codes
            Rows of the chunk.
        y : ignored
        sample_weight : array-like, optional
            Weights of the rows.

        Returns
        -------
        self : StreamingPCA
            The PCA of all rows so far.
        """
        return self._partial_fit(X, None, sample_weight, supervised=False)

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
        self._check_other(other)
        self.stats_.merge(other.stats_)
        self._grown()
        return self

    def _grown(self, added: Any = None) -> None:
        for name in ("_values", "_vectors"):
            self.__dict__.pop(name, None)

    def _eigen(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Eigenvalues, eigenvectors, and how many are kept; found when they are first asked for."""
        if not hasattr(self, "_values"):
            name = type(self).__name__
            check_is_fitted(self, "stats_")
            check_rows(self, self.stats_)
            with self._solving():
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
            self._values, self._vectors, self._keep = values, vectors, keep
        return self._values, self._vectors, self._keep

    @property
    def components_(self) -> np.ndarray:
        """Ūᵀ, one component per row."""
        _, vectors, keep = self._eigen()
        return vectors[:, :keep].T

    @property
    def explained_variance_(self) -> np.ndarray:
        """Eigenvalues of the covariance."""
        values, _, keep = self._eigen()
        return values[:keep] / max(self.stats_.weight - 1.0, np.finfo(float).tiny)

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        """Shares of the whole variance."""
        values, _, keep = self._eigen()
        return values[:keep] / max(values.sum(), np.finfo(float).tiny)  # of equal rows: 0

    @property
    def singular_values_(self) -> np.ndarray:
        """Singular values of the centred features."""
        values, _, keep = self._eigen()
        return np.sqrt(values[:keep])

    @property
    def n_components_(self) -> int:
        """Number of components."""
        return self._eigen()[2]

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
        X : array-like, sparse matrix, Codes, or another source of rows
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Projected rows.
        """
        refuse_container(self, X)
        U = self.components_.T
        return self._by_blocks(X, partial(affine, matrix=U, offset=-(self.mean_ @ U)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
