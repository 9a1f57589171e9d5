r"""Compressive random features: random Fourier features of random measurements.

φ(x) = Φ(Px) with an orthoprojector P from d to m dimensions and random Fourier features Φ of m
(Chang et al. 2016, section 4). An isotropic kernel k(x, y) = f(‖x − y‖) sees distances alone, and P
nearly keeps those of sparse vectors; so φ approximates k at a cost of d m + m D products a row
instead of d D (Theorem 2). The same holds for vectors that are sparse in some orthonormal basis B,
without knowing B: a random P composed with a rotation is again random (Corollary 1).

**Orthoprojectors** are measurements of a vector that nearly keep its length. The rows of P are
orthonormal, times √(d/m) (Chang et al. 2016, section 2.2). P Pᵀ = (d/m) I, so that
‖Px‖² ≤ (d/m) ‖x‖², and for uniformly distributed rows the ratio r = ‖Px‖²/‖x‖² is (d/m) times a
Beta(m/2, (d − m)/2) variable:

.. math:: E\,r = 1, \qquad \operatorname{Var} r = \frac{2 (d - m)}{m (d + 2)},

less than the 2/m of independent Gaussian entries; for m = d, P is a rotation. Over all k-sparse x
at once, r stays within 1 ± δ with high probability for m of the order of (k/δ²) log(d/k): the
restricted isometry property (Theorem 3), see :func:`kernelmaps.required_features`. Theorem 3 is
about any matrix with independent sub-Gaussian entries of variance 1/m; ``method="independent"``
draws it, Gaussian or ±1/√m, without making its rows orthonormal: Var r is 2/m for Gaussian entries
and (2/m)(1 − Σ x_j⁴/‖x‖⁴) for ±1/√m.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .._util.arguments import check_choice, check_count, generator
from .._util.schema import integer
from .._util.sparse import dense
from ..engine import Spec, apply
from ..engine.linear import n_outputs
from ..engine.outputs import output_dtype
from ..kernels import StationaryKernel
from ..kernels.additive import Linear
from ..kernels.bandwidth import warn_if_degenerate
from .base import JointMap
from .fourier import SCALE_ADVICE, draw_fourier, gram_schmidt, resolve_kernel

ENTRIES = ("gaussian", "bernoulli")
METHODS = ("dense", "independent", "dct")


@dataclass(eq=False, repr=False)
class RandomOrthoprojector(JointMap):
    """Projection on random orthonormal rows, scaled to keep lengths: ⟨Px, Py⟩ ≈ ⟨x, y⟩.

    Parameters
    ----------
    n_components : int, default=100
        Measurements m, at most the number of features d.
    entries : {"gaussian", "bernoulli"}, default="gaussian"
        Distribution of the entries, before the rows are made orthonormal (method="dense") or as
        they are (method="independent").
    method : {"dense", "independent", "dct"}, default="dense"
        "dense" stores P and takes m·d products a row. "independent" does, too, without making the
        rows orthonormal: the sub-Gaussian matrices of Theorem 3, whose lengths vary more. "dct"
        flips signs at random, transforms, and keeps m random coefficients: d log d operations, d
        signs and m indices to store, and exactly orthonormal rows for any d.
    random_state : int, RandomState, Generator or None
        An int gives the same projection in every run.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    spec_ : Spec
        The matrix, or signs and indices.
    kernel_ : Kernel
        The inner product ⟨x, y⟩.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.random.default_rng(0).normal(size=(20, 500))
    >>> Y = km.RandomOrthoprojector(200, random_state=0).fit_transform(X)
    >>> ratios = (Y**2).sum(axis=1) / (X**2).sum(axis=1)
    >>> bool(abs(ratios - 1).max() < 6 * (2 * 300 / (200 * 502)) ** 0.5)
    True
    """

    n_components: int = 100
    entries: str = "gaussian"
    _: KW_ONLY
    method: str = "dense"
    random_state: Any = None
    n_jobs: int | None = None

    def _learn(self, X: Any) -> Spec:
        m = check_count(self, "n_components", self.n_components)
        if m > X.shape[1]:
            raise ValueError(
                f"RandomOrthoprojector: n_components={m} is more than the {X.shape[1]} features of "
                f"X, which a projection reduces. Use at most {X.shape[1]}."
            )
        self.kernel_ = Linear()
        rng, dtype = generator(self.random_state), output_dtype(X.dtype)
        check_choice(self, "method", self.method, METHODS)
        check_choice(self, "entries", self.entries, ENTRIES)
        return draw_orthoprojector(self.method, m, X.shape[1], rng, dtype, self.entries)


def draw_orthoprojector(
    method: str, m: int, d: int, rng: np.random.Generator, dtype: Any, entries: str = "gaussian"
) -> Spec:
    """Spec of a random projection from d to m ≤ d dimensions."""
    if method in ("dense", "independent"):
        if method == "dense":
            matrix = np.sqrt(d / m) * orthonormal_columns(d, m, entries, rng)
        else:
            matrix = _random_vectors(d, m, entries, rng) / np.sqrt(m)
        return Spec("projection", {"matrix": matrix.astype(dtype)}, {"operator": "matrix"})
    arrays = {
        "signs": rng.choice(np.array([-1, 1], dtype=np.int8), size=d),
        "rows": np.sort(rng.permutation(d)[:m]),
        "gains": np.full(m, np.sqrt(d / m)),
    }
    return Spec("projection", arrays, {"operator": method})


def orthonormal_columns(d: int, m: int, entries: str, rng: np.random.Generator) -> np.ndarray:
    """Gram-Schmidt of m random vectors in d dimensions, drawn again while they are dependent.

    Gaussian vectors never are; of ±1 vectors in few dimensions, two are often equal.
    """
    while True:
        columns, lengths = gram_schmidt(_random_vectors(d, m, entries, rng))
        if lengths.min() > 1e-9 * np.sqrt(d):
            return columns


def _random_vectors(d: int, m: int, entries: str, rng: np.random.Generator) -> np.ndarray:
    """m vectors in d dimensions as columns, with independent entries of variance 1."""
    if entries == "gaussian":
        return rng.standard_normal((d, m))
    return rng.choice([-1.0, 1.0], size=(d, m))


@dataclass(eq=False, repr=False)
class CompressiveFourierMap(JointMap):
    """Orthoprojection to m measurements, then random Fourier features, fused per block of rows.

    Parameters
    ----------
    n_measurements : int, default=100
        Measurements m, at most the number of features; with `measured`, X's columns count.
    n_components : int, default=1000
        Output columns.
    kernel : str or Kernel, default="gaussian"
        An isotropic kernel: "gaussian", "matern" or an object with ``isotropic = True``.
    sampling : {"iid", "orthogonal", "structured"}, default="iid"
        As in :class:`RandomFourierMap`. "scale" and "median" use the measurements, whose
        distances are nearly those of the data.
    sigma : float, {"auto", "scale", "median"} or None, default="auto"
        As in :class:`RandomFourierMap`.
    form : {"auto", "paired", "cosine"}, default="auto"
        "cosine" is the paper's, with random phases; "paired", cosines and sines of half as many
        frequencies, has a smaller error for the Gaussian and half the products, which are most
        of the cost here. "auto" is paired if n_components is even.
    projection : {"dense", "independent", "dct"}, default="dense"
        As `method` of :class:`RandomOrthoprojector`: a stored matrix, or a fast transform.
    measured : bool, default=False
        X already are measurements y = Ax of a compressive camera, and no projection is drawn.
    measurement_matrix : array or sparse matrix of shape (m, d), optional
        The camera's matrix A. The measurements are scaled by √d / ‖A‖_F, so that they have the
        lengths of the data on average (√(d/m) for orthonormal rows; 1 for an orthoprojector that
        is scaled already). With measured=False, A itself takes the place of the random
        projection. None with measured=True: the measurements are scaled already.
    random_state : int, RandomState, Generator or None
        An int gives the same map in every run.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    spec_ : Spec
        A chain of two stages: projection and Fourier features (with `measured`, only these).
    kernel_ : Kernel
        The exact kernel of the rows of X (with `measured`, the camera's scale is in its length).
    n_measurements_ : int
        m.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.random.default_rng(0).normal(size=(50, 300))
    >>> X[:, 10:] = 0
    >>> feature_map = km.CompressiveFourierMap(100, 2000, sigma=5.0, random_state=0).fit(X)
    >>> bool(km.kernel_error(feature_map, X).rms < 0.1)
    True
    """

    n_measurements: int = 100
    n_components: int = 1000
    _: KW_ONLY
    kernel: Any = "gaussian"
    sampling: str = "iid"
    form: str = "auto"
    sigma: float | str | None = "auto"
    projection: str = "dense"
    measured: bool = False
    measurement_matrix: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    _state = JointMap._state.extended({"n_measurements_": integer(1)})

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        rng = generator(self.random_state)
        projection, scale = self._measurement_stage(X, rng)
        self.n_measurements_ = X.shape[1] if projection is None else n_outputs(projection)
        self.kernel_ = self._resolved_kernel(X, projection, scale, rng)
        warn_if_degenerate("CompressiveFourierMap", self.kernel_, X, SCALE_ADVICE)
        how = rng, output_dtype(X.dtype), self.sampling
        features = draw_fourier(self, self.kernel_, columns, self.n_measurements_, *how)
        return features if projection is None else Spec("chain", parts=(projection, features))

    def _resolved_kernel(
        self, X: Any, projection: Spec | None, scale: float, rng: np.random.Generator
    ) -> Any:
        """The kernel of the rows of X: of measurements s·y it is k(s·y), of length σ/s."""
        rows, by_rule = X, isinstance(self.sigma, str) and isinstance(self.kernel, str)
        if projection is not None and by_rule:
            rows = apply(projection, X, n_jobs=self.n_jobs)
        kernel = resolve_kernel("CompressiveFourierMap", self.kernel, self.sigma, rows, rng)
        if not getattr(kernel, "isotropic", False):
            raise ValueError(
                f"CompressiveFourierMap: {kernel!r} is not isotropic. A projection keeps distances "
                "‖x − y‖₂ and nothing else, so that the kernel must be a function of them "
                "(Theorem 2): use Gaussian or Matern, or RandomFourierMap without projection."
            )
        if projection is not None or scale == 1 or by_rule:
            return kernel
        if not isinstance(kernel, StationaryKernel):
            raise ValueError(
                f"CompressiveFourierMap: the length scale of {kernel!r} is not known, so that it "
                f"cannot be changed by {1 / scale:g}. Scale the data instead."
            )
        return kernel.with_length(1 / scale * kernel.length)

    def _measurement_stage(self, X: Any, rng: np.random.Generator) -> tuple[Spec | None, float]:
        """A drawn projection or the camera's; for measurements, none, and the camera's scale."""
        d, dtype = X.shape[1], output_dtype(X.dtype)
        if self.measurement_matrix is not None:
            matrix, scale = self._checked_measurement_matrix(d)
            if self.measured:
                return None, scale
            arrays = {"matrix": (scale * matrix.T).astype(dtype)}
            return Spec("projection", arrays, {"operator": "matrix"}), scale
        if self.measured:
            return None, 1.0
        m = check_count(self, "n_measurements", self.n_measurements)
        if m > d:
            raise ValueError(
                f"CompressiveFourierMap: n_measurements={m} is more than the {d} features of X; "
                f"compress to at most {d}, or use RandomFourierMap. If X already are measurements, "
                "say measured=True."
            )
        check_choice(self, "projection", self.projection, METHODS)
        return draw_orthoprojector(self.projection, m, d, rng, dtype), 1.0

    def _checked_measurement_matrix(self, n_columns: int) -> tuple[np.ndarray, float]:
        """The measurement matrix A (m, d), checked, and the scale √d / ‖A‖_F."""
        given = self.measurement_matrix
        try:
            matrix = dense(given)
            if matrix.dtype.kind == "c":
                raise TypeError
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"CompressiveFourierMap: measurement_matrix must be a matrix of numbers; "
                f"got {given!r}."
            ) from None
        side = 0 if self.measured else 1
        what = "measurements" if self.measured else "features"
        shape = f"({n_columns}, d)" if self.measured else f"(m, {n_columns})"
        if matrix.ndim != 2 or matrix.shape[side] != n_columns or matrix.shape[0] > matrix.shape[1]:
            raise ValueError(
                f"CompressiveFourierMap: measurement_matrix must have shape {shape} with m <= d, "
                f"since X has {n_columns} columns of {what}; got {matrix.shape}."
            )
        norm = np.linalg.norm(matrix)
        if not 0 < norm < np.inf:
            raise ValueError(
                "CompressiveFourierMap: measurement_matrix must be finite and not all zero."
            )
        return matrix, float(np.sqrt(matrix.shape[1]) / norm)
