r"""Nyström maps: exact kernel values with landmarks.

Take landmarks l_1, …, l_m among the rows, and their Gram matrix K = U Λ Uᵀ. The map

.. math:: φ(x) = [k(x, l_1), …, k(x, l_m)]\, U Λ^{-1/2}

is the orthogonal projection of x, in the feature space of k, onto the span of the landmarks: pairs
with a landmark in them are exact (if no eigenvalue is left out), and what is left out is again a
kernel,

.. math:: r(x, y) = k(x, y) - ⟨φ(x), φ(y)⟩, \qquad |r(x, y)| ≤ \sqrt{r(x, x)\, r(y, y)}.

So r(x, x) = k(x, x) − ‖φ(x)‖² bounds the error of every pair, and is known for every row
(:meth:`NystroemMap.residuals`).

**Landmarks.** ``"kmeans"`` takes the centres of clusters, of the square roots of rows for kernels
of histograms (their distances are close to those of the kernel); of additive maps, for each feature
by itself, with its extreme values. ``"uniform"`` draws rows.
``"rpcholesky"`` draws rows one after another by what the landmarks before leave out of them,
P(i) ∝ r(x_i, x_i), as in a Cholesky factorisation with random pivots (Chen, Epperly, Tropp and
Webber 2024; here in blocks, with the same distribution): with η the share of the trace that the
best r columns leave out, m ≥ r/ε + r log(1/εη) landmarks leave out at most 1 + ε times that, in
expectation.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.validation import check_is_fitted

from .. import kernels
from .._util.arguments import (
    argument_error,
    check_choice,
    check_count,
    check_flag,
    generator,
)
from .._util.devices import refuse_gpu_array
from .._util.schema import number
from .._util.sparse import dense
from ..design.anchors import kmeans
from ..engine import Spec, apply
from ..kernels.homogeneous import Exponential
from ..kernels.registry import kernel_text
from ..kernels.stationary import warn_if_degenerate
from .base import JointMap, additive_names
from .fourier import SCALE_ADVICE, resolve_kernel, typical_distance

LANDMARKS = ("kmeans", "uniform", "rpcholesky")
_LEAST_EIGENVALUE = 1e-12  # of the largest: rounding of kernel values decides about smaller ones
_ADDITIVE_LANDMARKS = 40  # of a feature: as many as AnchorMap has anchors
_CANDIDATES = 20_000  # of pivots: their kernel values are computed
_LEAST_PROPOSALS = 10  # of pivots at a time, or a tenth of all
# Of k-means: landmarks need not be the best centres.
_ROWS_OF_CENTRE, _LEAST_ROWS, _ITERATIONS = 20, 2000, 20
_TESTED_ROWS = 250  # on which the share that is left out is measured


@dataclass(eq=False, repr=False)
class NystroemMap(JointMap):
    """Nyström map of any kernel: exact for pairs with a landmark.

    Parameters
    ----------
    kernel : str, Kernel, or list of these, default="gaussian"
        Any kernel of the library (homogeneous, stationary, exponential), by name or as an object,
        or one of a class that was registered. A list has an additive kernel for each feature; a
        function has no name that a file could hold, and is refused.
    n_components : int, default=500
        Output columns, at most as many as rows; those of each feature if `additive`.
    landmarks : {"kmeans", "uniform", "rpcholesky"}, default="kmeans"
        How landmarks are chosen: centres of clusters (of each feature if `additive`), rows at
        random, or rows by randomly pivoted Cholesky; see :mod:`kernelmaps.maps.nystroem`. The
        latter two are rows of the training data, which the map and its files then hold.
    n_landmarks : int, optional
        Number of landmarks, at least `n_components`: with more, the columns are those of the
        largest eigenvalues. None: as many as columns; of an additive map at least 40. There are
        never more than rows.
    additive : bool, default=False
        Map each feature by itself, by the values that the landmarks have there: a sum of
        one-dimensional kernels then has `n_components` columns for each feature.
    sigma : float, "auto" or None, default="auto"
        Length scale of a stationary kernel given by name, as in `RandomFourierMap`. Other kernels
        have none: of "exp_chi2", "auto" is γ = 1/(mean squared distance) and None is γ = 1.
    random_state : int, RandomState, Generator or None
        An int gives the same map in every run.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, with its scale.
    landmarks_ : ndarray of shape (n_landmarks, n_features)
        The landmarks.
    residual_ : float
        Mean of `residuals` over (at most 250) fitted rows, relative to the mean of k(x, x): the
        share of the kernel that the map leaves out.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.random.default_rng(0).dirichlet(np.full(20, 0.5), size=200)
    >>> feature_map = km.NystroemMap("exp_chi2", 50, random_state=0).fit(X)
    >>> r = feature_map.residuals(X)
    >>> error = abs(feature_map.transform(X) @ feature_map.transform(X).T - feature_map.kernel_(X))
    >>> bool((error <= np.sqrt(np.outer(r, r)) + 1e-9).all())
    True
    """

    kernel: Any = "gaussian"
    n_components: int = 500
    _: KW_ONLY
    landmarks: str = "kmeans"
    n_landmarks: int | None = None
    additive: bool = False
    sigma: float | str | None = "auto"
    random_state: Any = None
    n_jobs: int | None = None

    _state = JointMap._state.extended({"residual_": number()})

    @property
    def landmarks_(self) -> np.ndarray:
        """The landmarks, one in each row."""
        check_is_fitted(self)
        return self.spec_.arrays["landmarks"]

    def residuals(self, X: Any) -> np.ndarray:
        """Compute r(x, x) = k(x, x) − ‖φ(x)‖², the squared distances to the landmarks' span.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            r(x, x) of each row, never negative. Up to rounding, the error of a pair of rows is at
            most √(r(x, x) r(y, y)).
        """
        check_is_fitted(self)
        refuse_gpu_array(X, "NystroemMap.residuals", "Pass a sample of rows as NumPy.")
        return self._residuals(self._check_rows(X, reset=False)[0])

    def _residuals(self, X: Any) -> np.ndarray:
        """`residuals` of checked rows, in float64: float32 would lose residuals below its ε."""
        X = X.astype(np.float64)
        squares = np.sum(apply(self.spec_, X, n_jobs=self.n_jobs) ** 2, axis=1)
        return np.maximum(self.kernel_.diag(X) - squares, 0.0)

    def _names_out(self, names: np.ndarray) -> list[str]:
        if not self.additive:
            return super()._names_out(names)
        columns = self.spec_.arrays["whitening"].shape[-1]
        return additive_names(names, self.kernel_, np.full(len(names), columns))

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        if columns > X.shape[0]:
            if columns != NystroemMap.n_components:  # somebody asked for so many
                warnings.warn(
                    f"NystroemMap: n_components={columns}, but there are no more landmarks, and so "
                    f"columns{' of a feature' * self.additive}, than the {X.shape[0]} rows.",
                    UserWarning,
                    stacklevel=6,
                )
            columns = X.shape[0]
        check_choice(self, "landmarks", self.landmarks, LANDMARKS)
        check_flag(self, "additive", self.additive)
        rng = generator(self.random_state)
        self.kernel_ = self._resolve_kernel(X, rng)
        count = self._landmark_count(columns, X.shape[0])
        points = self._draw_landmarks(X, count, rng)
        if self.additive:
            scalar = [(self.kernel_.feature(d), x) for d, x in enumerate(points.T)]
            grams = [kernel.component(x[:, None], x[None, :]) for kernel, x in scalar]
            whitening = np.stack([_whitening(gram, columns) for gram in grams])
        else:
            whitening = _whitening(self.kernel_(points), columns)
        arrays = {"landmarks": points, "whitening": whitening}
        self.spec_ = Spec("nystroem", arrays, {"kernel": kernel_text(self.kernel_)})
        sample = X[np.sort(rng.permutation(X.shape[0])[:_TESTED_ROWS])]
        size = float(np.mean(self.kernel_.diag(sample.astype(np.float64))))
        self.residual_ = float(np.mean(self._residuals(sample))) / size if size > 0 else 0.0
        return self.spec_

    def _resolve_kernel(self, X: Any, rng: np.random.Generator) -> Any:
        kernel = kernels.get(self.kernel)
        kernel_text(kernel)  # refuses what no file could name
        if self.additive and not isinstance(kernel, kernels.AdditiveKernel):
            raise ValueError(
                f"NystroemMap: additive=True needs a kernel that is a sum over features; "
                f"{kernel!r} is not. Use chi2, intersection, jensen_shannon or hellinger."
            )
        if not isinstance(kernel, kernels.StationaryKernel):
            return self._resolve_gamma(kernel, X, rng)
        resolved = resolve_kernel("NystroemMap", self.kernel, self.sigma, X, rng)
        warn_if_degenerate("NystroemMap", resolved, X, SCALE_ADVICE)
        return resolved

    def _resolve_gamma(self, kernel: Any, X: Any, rng: np.random.Generator) -> Any:
        """A kernel that has no length scale; that of "exp_chi2" takes its γ from the rows."""
        is_exponential = isinstance(kernel, Exponential)
        if self.sigma not in ("auto", None):
            width = " Its width is gamma: give kernels.Exponential(base, gamma)."
            raise ValueError(
                f"NystroemMap: sigma={self.sigma!r}, but this kernel has no length scale: "
                f"{kernel!r}. Leave sigma='auto'.{width if is_exponential else ''}"
            )
        if not is_exponential or not isinstance(self.kernel, str) or self.sigma is None:
            return kernel
        distance = typical_distance(kernel.base, X, np.mean, rng)
        return Exponential(kernel.base, 1 / distance if distance > 0 else 1.0)

    def _landmark_count(self, columns: int, n_rows: int) -> int:
        if self.n_landmarks is None:
            return min(max(columns, _ADDITIVE_LANDMARKS) if self.additive else columns, n_rows)
        count = check_count(self, "n_landmarks", self.n_landmarks)
        if count < columns:
            raise argument_error(self, "n_landmarks", count, f"at least n_components={columns}")
        return min(count, n_rows)

    def _draw_landmarks(self, X: Any, count: int, rng: np.random.Generator) -> np.ndarray:
        """Landmarks as rows, in float64."""
        n = X.shape[0]
        if count == n or self.landmarks == "uniform":
            return _rows(X, np.sort(rng.permutation(n)[:count]))
        if self.landmarks == "rpcholesky":
            candidates = X[np.sort(rng.permutation(n)[:_CANDIDATES])].astype(np.float64)
            return _rows(candidates, draw_pivots(self.kernel_, candidates, count, rng))
        return self._centres(X, count, rng)

    def _centres(self, X: Any, count: int, rng: np.random.Generator) -> np.ndarray:
        from sklearn.cluster import KMeans

        n_rows = max(_LEAST_ROWS, _ROWS_OF_CENTRE * count)
        sample = np.unique(_rows(X, rng.permutation(X.shape[0])[:n_rows]), axis=0)
        if len(sample) <= count:
            return sample
        if self.additive:
            ends = dense(X.min(axis=0)), dense(X.max(axis=0))
            return self._feature_centres(np.vstack([sample, *ends]), count)
        base = self.kernel_.base if isinstance(self.kernel_, Exponential) else self.kernel_
        roots = isinstance(base, kernels.HomogeneousKernel)
        sample = _signed_root(sample) if roots else sample
        size = float(np.abs(sample).max()) or 1.0  # squares of large numbers would overflow
        seed = int(rng.integers(2**31))
        clusters = KMeans(count, n_init=1, max_iter=_ITERATIONS, random_state=seed).fit(
            sample / size
        )
        centres = size * clusters.cluster_centers_.astype(np.float64)
        centres = np.clip(centres, sample.min(axis=0), sample.max(axis=0))  # rounding leaves them
        return centres * np.abs(centres) if roots else centres

    def _feature_centres(self, sample: np.ndarray, count: int) -> np.ndarray:
        """Centres of each feature's values by themselves, and its extreme values."""
        columns = []
        for d, values in enumerate(sample.T):
            roots = isinstance(self.kernel_.feature(d), kernels.HomogeneousKernel)
            values = _signed_root(values) if roots else values
            points, counts = np.unique(values, return_counts=True)
            centres = kmeans(points, counts, count)
            centres[[0, -1]] = points[[0, -1]]
            centres = np.pad(centres, (0, count - len(centres)), "edge")
            columns.append(centres * np.abs(centres) if roots else centres)
        return np.stack(columns, axis=1)

    @property
    def _non_negative(self) -> bool:  # type: ignore[override]
        kernel = kernels.get(self.kernel)
        while isinstance(kernel, Exponential):
            kernel = kernel.base
        return isinstance(kernel, kernels.HomogeneousKernel) and not kernel.signed


def _rows(X: Any, index: np.ndarray) -> np.ndarray:
    """Some rows, dense and in float64."""
    return dense(X[index]).astype(np.float64)


def _signed_root(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.sqrt(np.abs(values))


def _whitening(gram: np.ndarray, columns: int) -> np.ndarray:
    """T = U Λ^{−1/2} for the largest eigenvalues; columns that rounding decides about are zero."""
    size = float(np.max(np.diagonal(gram), initial=0.0))
    if size == 0:
        return np.zeros((len(gram), columns))
    values, vectors = np.linalg.eigh(gram / size)
    values, vectors = values[::-1][:columns], vectors[:, ::-1][:, :columns]
    is_large = values > _LEAST_EIGENVALUE * values[0]
    scales = np.where(is_large, 1 / np.sqrt(np.where(is_large, values, 1.0)), 0.0)
    missing = columns - len(values)
    return np.pad(vectors * scales, ((0, 0), (0, missing))) / np.sqrt(size)


def draw_pivots(kernel: Any, X: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of at most `count` rows, by randomly pivoted Cholesky; fewer if the rank is less.

    Pivots are proposed in blocks, of the residuals before the block, and accepted with the share
    that the pivots accepted before them leave: these are draws one after another (Epperly, Tropp
    and Webber 2024, Algorithm 2), but the factor is made by products of matrices.
    """
    residual = kernel.diag(X).astype(np.float64)
    floor = _LEAST_EIGENVALUE * float(residual.max(initial=0.0))
    factor, pivots = np.zeros((X.shape[0], count)), np.zeros(0, dtype=np.intp)
    block = max(_LEAST_PROPOSALS, count // 10)
    while len(pivots) < count:
        residual[residual <= floor] = 0.0
        if not residual.any():
            break
        k, left = len(pivots), count - len(pivots)
        proposed = rng.choice(len(residual), block, p=residual / residual.sum())
        factor_rows = factor[proposed, :k]
        gram = kernel(X[proposed]) - factor_rows @ factor_rows.T
        accepted, root = _accept(gram, rng.random(block) * residual[proposed], left)
        rows = proposed[accepted]
        columns = kernel(X, X[rows]) - factor[:, :k] @ factor_rows[accepted].T
        columns = solve_triangular(root, columns.T, lower=True).T
        factor[:, k : k + len(rows)] = columns
        residual -= np.sum(columns**2, axis=1)
        residual[rows] = 0.0
        pivots = np.append(pivots, rows)
    return np.sort(pivots) if len(pivots) else np.zeros(1, dtype=np.intp)


def _accept(gram: np.ndarray, bars: np.ndarray, max_landmarks: int) -> tuple[list[int], np.ndarray]:
    """Proposals whose residual is above their bar, and the Cholesky factor of their Gram matrix."""
    accepted, columns = [0], [gram[:, 0] / np.sqrt(gram[0, 0])]  # the first one always is
    for j in range(1, len(gram)):
        column = gram[:, j] - sum(c * c[j] for c in columns)
        if len(accepted) < max_landmarks and column[j] > bars[j]:
            accepted.append(j)
            columns.append(column / np.sqrt(column[j]))
    return accepted, np.stack(columns, axis=1)[accepted]
