r"""Random Fourier features: any stationary kernel as an inner product of cosines.

Bochner's theorem says that a stationary kernel with k(x, x) = 1 is an expectation over its spectral
distribution p (Chang et al. 2016, eq. 1),

.. math:: k(x, y) = E_{ω∼p} \cos ω^\top (x - y),

and random Fourier features are its Monte Carlo estimate from ω_1, …, ω_n. Two forms:

.. math:: \text{paired: } φ(x) = \sqrt{2/D}\,[\cos ω_j^\top x, \sin ω_j^\top x]_{j ≤ D/2}, \qquad
          \text{cosine: } φ(x) = \sqrt{2/D}\,[\cos(ω_j^\top x + b_j)]_{j ≤ D}.

The first gives ⟨φ(x), φ(y)⟩ = (2/D) Σ_j cos ω_jᵀ(x − y) exactly. The second (eq. 2) adds
(1/D) Σ_j cos(ω_jᵀ(x + y) + 2b_j), which vanishes in the mean because each b_j is uniform on
[0, 2π] *on its own*. The paper prints one b shared by all features: that converges to
k(x, y) + cos(2b) k(x, −y) instead, whatever D.

With κ = k(x, y), κ₂ = k(2x, 2y) and iid frequencies, the variances for D columns are

.. math:: \text{paired: } \frac{1 + κ_2 - 2κ^2}{D}, \qquad
          \text{cosine: } \frac{1 + κ_2/2 - κ^2}{D},

so that the paired form is better wherever 2κ² > κ₂: everywhere for the Gaussian (κ₂ = κ⁴). It also
takes half as many products.

**Sampling.** :func:`draw_fourier` gives the spec of φ for any kernel that can sample its spectrum,
to all maps with random Fourier features. Three ways to draw the frequencies ω_1, …, ω_n:

``"iid"``
    Independently from the spectral distribution.
``"orthogonal"``
    In blocks of d: the rows of a Haar-distributed orthogonal matrix, times independent radii with
    the distribution of ‖ω‖ (χ(d)/σ for the Gaussian). Each ω alone has exactly the spectral
    distribution, so that the estimate stays unbiased; within a block all are orthogonal, which
    lowers its variance. It needs an isotropic kernel: of a product kernel (Laplacian, Cauchy) the
    spectrum is not invariant under rotations, and rotated frequencies would be those of another
    kernel.
``"structured"``
    Orthogonal blocks H D₃ H D₂ H D₁ / p^{3/2} of random signs D and Walsh-Hadamard matrices H,
    times radii: p log p operations for p features, and no matrix is stored. p is the next power of
    two ≥ d and rows are padded with zeros, which leaves distances, and so isotropic kernels,
    as they are; radii have the distribution of ‖ω‖ in p dimensions. The directions are not
    exactly uniform. The largest bias of the Gaussian kernel that 3·10⁶ frequencies show is 0.31
    for p = 8, 0.049 for p = 16 and 0.002 for p = 32; from p = 64 on it is below their standard
    error of 0.0004. So up to 32 features, where a product with a matrix is as fast, "structured"
    is "orthogonal".

**Fitted weights.** Of a pool of four times as many frequencies, weights w_j ≥ 0 are chosen by least
squares so that Σ_j w_j cos ω_jᵀδ meets the kernel on differences δ of pairs of rows (equation 2 of
the low-dimensional maps with α ≥ 0, on a random pool in the place of a grid). The largest are kept
and fitted again; then some L-BFGS steps move frequencies and weights. The features
√w_j [cos ω_jᵀx, sin ω_jᵀx] follow the distances of the rows: the error on rows like these is
smaller, and the estimate is no longer unbiased.

**Compressive random features** are those of random measurements: φ(x) = Φ(Px) with an
orthoprojector P from d to m dimensions and random Fourier features Φ of m (Chang et al. 2016,
section 4). An isotropic kernel k(x, y) = f(‖x − y‖) sees distances alone, and P nearly keeps those
of sparse vectors; so φ approximates k at a cost of d m + m D products a row instead of d D
(Theorem 2). The same holds for vectors that are sparse in some orthonormal basis B, without knowing
B: a random P composed with a rotation is again random (Corollary 1).

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

**Exponential kernels** exp(−γ D²) in two stages: an additive map, then random Fourier features.

An additive map turns its kernel's squared distance into a Euclidean one,
D²(x, y) = k(x, x) + k(y, y) − 2k(x, y) ≈ ‖c(x) − c(y)‖², and the Gaussian kernel of c(x) is then
exp(−γ D²), whose random Fourier features are known (Sreekanth et al. 2010; chebyshev Algorithm 1):

.. math:: φ(x) = \sqrt{2/D}\,\cos(Ω^\top c(x) + b), \qquad Ω_{ij} \sim N(0, 2γ).

2γ is the *variance* of the frequencies, the factor √(2/D) is missing in the printed algorithm, and
for χ² the distance is Σ (x − y)²/(x + y), without a ½ (errata 2.14-2.16). Nothing binds the second
stage to χ²: every additive map has a distance.

The error has two parts (:func:`kernelmaps.kernel_error` tells them apart): that of c, which no
number of random features repairs, and that of the random features, which falls like 1/√D.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls
from sklearn.base import clone

from .. import kernels
from .._util.arguments import (
    argument_error,
    check_choice,
    check_count,
    check_positive,
    generator,
)
from .._util.schema import instance, number
from .._util.sparse import dense
from .._util.threads import limit_blas, power_of_two
from ..engine import Spec, apply
from ..engine.extent import ColumnRange
from ..engine.fourier import fourier_spec
from ..engine.outputs import output_dtype
from ..kernels import Exponential, Gaussian, Kernel
from ..kernels.additive import Linear
from ..kernels.stationary import fit_length, warn_if_degenerate
from .base import AdditiveMap, JointMap
from .designed import DesignedMap

SAMPLINGS = ("iid", "orthogonal", "structured")
FORMS = ("cosine", "paired")
WEIGHTS = ("equal", "fitted")
POOL = 4  # frequencies drawn for each that is kept
_PAIRS, _DIAGONAL = 8000, 70.0
_STEPS, _LEAST_AMPLITUDE = 80, 1e-3  # of descent, which never leaves an amplitude of 0
_BIASED_LENGTH = 32  # of Hadamard transforms: up to here the bias can be measured (see above)


def draw_fourier(
    owner: Any,
    kernel: kernels.StationaryKernel,
    n_components: int,
    n_features: int,
    rng: np.random.Generator,
    dtype: Any,
    sampling: str,
) -> Spec:
    """Spec of random Fourier features.

    Parameters
    ----------
    owner : estimator
        A map with the setting `form`, {"auto", "cosine", "paired"}: √(2/D) cos(ω_jᵀx + b_j) with a
        uniform phase for each feature, or √(2/D) [cos ω_jᵀx, …, sin ω_jᵀx, …]; "auto" is the latter
        where D is even.
    kernel : StationaryKernel
        Any kernel with ``sample_frequencies(n, d, rng)``.
    n_components : int
        Output columns D. The paired form takes D/2 frequencies, the cosine form D.
    n_features : int
        Input columns d.
    rng : Generator
    dtype : float32 or float64
        Precision of stored frequencies: that of the data to come saves a conversion per call.
        Rounded frequencies are a sample like any other.
    sampling : {"iid", "orthogonal", "structured"}
        How frequencies are drawn.
    """
    form, name = owner.form, type(owner).__name__
    if form == "auto":
        form = "cosine" if n_components % 2 else "paired"
    _check_choices(name, kernel, n_components, sampling, form)
    spectrum = FrequencySampler(kernel, rng, name)
    n, phases = n_components // 2, None
    if form == "cosine":
        n, phases = n_components, 2 * np.pi * rng.random(n_components)
    if sampling == "structured" and n_features <= _BIASED_LENGTH:
        sampling = "orthogonal"
    if sampling == "structured":
        operator = spectrum.draw_structured(n, n_features)
        spectrum.check_fits(operator.arrays["gains"], dtype)
        return fourier_spec(operator, phases)
    frequencies = getattr(spectrum, sampling)(n, n_features)
    spectrum.check_fits(frequencies, dtype)
    matrix = frequencies.T.astype(dtype)
    operator = Spec("projection", {"matrix": matrix}, {"operator": "matrix"})
    return fourier_spec(operator, phases)


@dataclass(frozen=True)
class FrequencySampler:
    """Frequencies of a kernel, drawn in several ways; errors begin with the owner's name."""

    kernel: Any
    rng: np.random.Generator
    owner: str

    def iid(self, n: int, d: int) -> np.ndarray:
        """n frequencies in d dimensions as rows."""
        frequencies = self.kernel.sample_frequencies(n, d, self.rng)
        return self._check_values("sample_frequencies", frequencies, (n, d))

    def orthogonal(self, n: int, d: int) -> np.ndarray:
        """The same, orthogonal in blocks of d."""
        full, remainder = divmod(n, d)
        # Gram-Schmidt of Gaussian vectors is uniformly distributed among orthonormal systems.
        bases = gram_schmidt(self.rng.standard_normal((full, d, d)))[0]
        last = gram_schmidt(self.rng.standard_normal((d, remainder)))[0].T
        rows = np.concatenate([np.swapaxes(bases, 1, 2).reshape(-1, d), last])
        return rows * self._radii(n, d)[:, None]

    def draw_structured(self, n: int, d: int) -> Spec:
        """The same as products of signs and Hadamard matrices."""
        p = power_of_two(d)
        blocks = -(-n // p)
        arrays = {
            "signs": self.rng.choice(np.array([-1, 1], dtype=np.int8), size=(blocks, 3, p)),
            "gains": self._radii(n, p) * float(p) ** -1.5,
            "rows": np.arange(n),
        }
        return Spec("projection", arrays, {"operator": "hadamard"})

    def _radii(self, n: int, d: int) -> np.ndarray:
        """n independent values of ‖ω‖ in d dimensions."""
        quantile = getattr(type(self.kernel), "radius_quantile", None)
        if quantile in (None, kernels.StationaryKernel.radius_quantile):
            return np.linalg.norm(self.iid(n, d), axis=1)
        radii = self.kernel.radius_quantile(np.maximum(self.rng.random(n), 2.0**-54), d)
        return self._check_values("radius_quantile", radii, (n,))

    def _check_values(self, method: str, numbers: Any, shape: tuple[int, ...]) -> np.ndarray:
        """What a kernel's method returned, if it is finite numbers of this shape."""
        numbers = np.asarray(numbers, dtype=np.float64)
        if numbers.shape != shape or not np.isfinite(numbers).all():
            raise ValueError(
                f"{self.owner}: {method} of {self.kernel!r} must return finite numbers of shape "
                f"{shape}; it returned shape {numbers.shape}, or NaN or infinity."
            )
        return numbers

    def check_fits(self, numbers: np.ndarray, dtype: Any) -> None:
        """Refuse frequencies that a type cannot hold."""
        largest = np.abs(numbers).max(initial=0)
        if largest > np.finfo(dtype).max:
            raise ValueError(
                f"{self.owner}: some frequencies of {self.kernel!r} are larger than "
                f"{np.dtype(dtype)} holds ({largest:.3g}): its spectrum has heavy tails. Use "
                "float64 data, or another kernel."
            )


def gram_schmidt(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal columns, and the lengths that were left of the given ones after projection.

    A stack of matrices gives a stack of results. LAPACK's QR leaves the signs of R's diagonal open:
    making them positive makes Q unique, and of Gaussian columns invariant under rotations.

    One thread: LAPACK's threads meet so often that they are slower as soon as others use a core.
    """
    with limit_blas(1):
        q, r = np.linalg.qr(columns)
    lengths = np.diagonal(r, axis1=-2, axis2=-1)
    return q * np.where(lengths < 0, -1.0, 1.0)[..., None, :], np.abs(lengths)


def _check_choices(owner: str, kernel: Any, n_components: int, sampling: str, form: str) -> None:
    if isinstance(kernel, type):
        raise TypeError(f"{owner}: {kernel!r} is a class; give a kernel, {kernel.__name__}().")
    if not hasattr(kernel, "sample_frequencies"):
        raise ValueError(
            f"{owner}: {kernel!r} cannot sample its spectrum: it has no "
            "sample_frequencies(n, d, rng). Use a stationary kernel (gaussian, laplacian, cauchy, "
            "matern) or a subclass of StationaryKernel."
        )
    check_choice(owner, "sampling", sampling, SAMPLINGS)
    check_choice(owner, "form", form, FORMS)
    if form == "paired" and n_components % 2:
        words = "even for form='paired', which has a sine for every cosine"
        raise argument_error(owner, "n_components", n_components, words)
    if sampling in ("orthogonal", "structured") and not getattr(kernel, "isotropic", False):
        raise ValueError(
            f"{owner}: sampling={sampling!r} rotates frequencies, which only isotropic kernels "
            "(Gaussian, Matern: functions of the distance ‖x − y‖₂) allow; "
            f"{kernel!r} is not. Use sampling='iid'."
        )


SCALE_ADVICE = (
    "Standardise the columns (StandardScaler), or give the kernel by name and let its width follow "
    "the data (sigma='auto')."
)


@dataclass(eq=False, repr=False)
class RandomFourierMap(JointMap):
    """Random Fourier features of a stationary kernel.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        "gaussian", "laplacian", "cauchy", "matern", or any kernel that can sample its spectrum (a
        method ``sample_frequencies(n, d, rng)``).
    n_components : int, default=1000
        Output columns D.
    sampling : {"iid", "orthogonal", "structured"}, default="iid"
        How frequencies are drawn: see :mod:`kernelmaps.maps.fourier`. "orthogonal" has the
        smallest error for isotropic kernels; "structured" comes close, stores no matrix, and
        is the fastest for many features (lengths are padded to the next power of two). Up to 32
        features it is the same as "orthogonal".
    form : {"auto", "cosine", "paired"}, default="auto"
        √(2/D) cos(ωᵀx + b), or cosines followed by sines of D/2 frequencies, which is more
        accurate for most kernels and takes half as many products, but needs an even D. "auto" is
        paired where D is even.
    weights : {"equal", "fitted"}, default="equal"
        Equal weights of all frequencies, or frequencies and weights of least squares on 8000 pairs
        of rows, from four times as many: smaller errors on rows of few directions, for a `fit` of
        20 s and more for 1000 columns. It takes an even D, and "iid" or "orthogonal" frequencies.
    sigma : float, "auto" or None, default="auto"
        Length scale of a kernel given by name. "auto" is the median distance of (at most 1000)
        rows; :func:`kernelmaps.kernels.stationary.fit_length` says what it is for other kernels
        than the Gaussian. None means 1. A kernel object keeps its own scale.
    random_state : int, RandomState, Generator or None
        An int gives the same map in every run.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, with its scale.
    spec_ : Spec
        Frequencies (or signs and radii) and phases.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> feature_map = km.RandomFourierMap("gaussian", 2000, sigma=2.0, random_state=0).fit(X)
    >>> bool(km.kernel_error(feature_map, X).rms < 2 / 2000**0.5)
    True
    """

    kernel: Any = "gaussian"
    n_components: int = 1000
    _: KW_ONLY
    sampling: str = "iid"
    form: str = "auto"
    weights: str = "equal"
    sigma: float | str | None = "auto"
    random_state: Any = None
    n_jobs: int | None = None

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        check_choice(self, "weights", self.weights, WEIGHTS)
        rng = generator(self.random_state)
        self.kernel_ = resolve_kernel("RandomFourierMap", self.kernel, self.sigma, X, rng)
        drawing = rng, output_dtype(X.dtype), self.sampling
        is_fitted = self.weights == "fitted"
        if is_fitted and (columns % 2 or self.form == "cosine" or self.sampling == "structured"):
            words = "'equal' for odd n_components, form='cosine' or sampling='structured'"
            raise argument_error(self, "weights", self.weights, words)
        pool = POOL * columns if is_fitted else columns
        spec = draw_fourier(self, self.kernel_, pool, X.shape[1], *drawing)
        if is_fitted:
            spec = fit_weights(spec, self.kernel_, X, columns // 2, rng)
        warn_if_degenerate("RandomFourierMap", self.kernel_, X, SCALE_ADVICE)
        return spec


def fit_weights(pool: Spec, kernel: Any, X: Any, n: int, rng: np.random.Generator) -> Spec:
    """The n frequencies of a pool, paired, and their weights that fit the kernel best on rows."""
    pairs = rng.integers(0, X.shape[0], (2, _PAIRS))
    left, right = (dense(X[index]).astype(np.float64) for index in pairs)
    apart, matrix = left - right, pool.arrays["matrix"]
    # One more equation, of as much weight as 4900 pairs: Σ w_j = k(x, x) = 1.
    cosines = np.vstack([np.cos(apart @ matrix), np.full(matrix.shape[1], _DIAGONAL)])
    exact = np.append(kernel(apart, np.zeros((1, X.shape[1])))[:, 0], _DIAGONAL)
    # Least squares see the triangular factor alone, which has fewer rows than there are pairs.
    triangle = np.linalg.qr(np.column_stack([cosines, exact]), mode="r")
    max_iter = 10 * cosines.shape[1]
    pool_weights, _ = nnls(triangle[:, :-1], triangle[:, -1], maxiter=max_iter)
    largest = np.sort(np.argsort(pool_weights)[-n:])
    weights, _ = nnls(triangle[:, largest], triangle[:, -1], maxiter=max_iter)
    fitted, amplitudes = _descend(matrix[:, largest], np.sqrt(weights), apart, exact[:-1])
    arrays = {"matrix": fitted.astype(matrix.dtype), "amplitudes": np.tile(amplitudes, 2)}
    return Spec("fourier", arrays, {**pool.numbers, "scale": 1.0})


def _descend(
    matrix: np.ndarray, amplitudes: np.ndarray, apart: np.ndarray, exact: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies and amplitudes after some L-BFGS steps on the equations of `fit_weights`."""
    (d, n), scale = matrix.shape, float(np.abs(matrix).mean())
    # Single precision, whose cosines take a quarter of the time, is enough to descend.
    apart, exact = apart.astype(np.float32), exact.astype(np.float32)

    def error(x: np.ndarray) -> tuple[float, np.ndarray]:
        x = x.astype(np.float32)
        frequencies, a = np.float32(scale) * x[:-n].reshape(d, n), x[-n:]
        angles = apart @ frequencies
        cosines, residual = np.cos(angles), -exact
        residual += cosines @ a**2
        excess = _DIAGONAL**2 * (np.sum(a**2) - 1)
        value = float(residual @ residual + excess * (np.sum(a**2) - 1))
        frequency_gradient = -scale * (apart.T @ (residual[:, None] * np.sin(angles))) * a**2
        gradient = [frequency_gradient.ravel(), 2 * a * (residual @ cosines + excess)]
        return value / 2, np.concatenate(gradient).astype(np.float64)

    start = np.append(matrix / scale, np.maximum(amplitudes, _LEAST_AMPLITUDE))
    optimum = minimize(error, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return scale * optimum.x[:-n].reshape(d, n), np.abs(optimum.x[-n:])


def resolve_kernel(
    owner: str, kernel: Any, sigma: float | str | None, X: Any, rng: np.random.Generator
) -> Any:
    """A kernel with its length scale, from a name and a number or a rule (`fit_length`)."""
    named = isinstance(kernel, str)
    if sigma is None or (sigma == "auto" and not named):
        return kernel if hasattr(kernel, "sample_frequencies") else kernels.get(kernel)
    if not named:
        raise ValueError(
            f"{owner}: sigma={sigma!r} goes with a kernel given by name; {kernel!r} carries its "
            "own scale. Leave sigma='auto', or name the kernel."
        )
    resolved: Any = kernels.get(kernel)
    can_sample = hasattr(resolved, "sample_frequencies")
    if sigma == "auto" and can_sample and not hasattr(resolved, "length"):
        return resolved  # it has no width that rows could tell
    if not isinstance(resolved, kernels.StationaryKernel):
        raise ValueError(
            f"{owner}: the kernel {kernel!r} has no length scale sigma. Leave sigma='auto', or use "
            "a stationary kernel such as 'gaussian', 'laplacian', 'cauchy' or 'matern'."
        )
    return fit_length(owner, resolved, sigma, X, rng)


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
            words = f"at most {X.shape[1]}, the number of features of X"
            raise argument_error(self, "n_components", m, words)
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
        Measurements m, at most the number of features. Of rows that already are measurements
        y = Ax, of a compressive camera say, the features are those of :class:`RandomFourierMap`
        on y √d / ‖A‖_F, which has the lengths of the data on average.
    n_components : int, default=1000
        Output columns.
    kernel : str or Kernel, default="gaussian"
        An isotropic kernel: "gaussian", "matern" or an object with ``isotropic = True``.
    sampling : {"iid", "orthogonal", "structured"}, default="iid"
        As in :class:`RandomFourierMap`.
    sigma : float, "auto" or None, default="auto"
        As in :class:`RandomFourierMap`; "auto" uses the measurements, whose distances are nearly
        those of the data.
    form : {"auto", "paired", "cosine"}, default="auto"
        "cosine" is the paper's, with random phases; "paired", cosines and sines of half as many
        frequencies, has a smaller error for the Gaussian and half the products, which are most
        of the cost here. "auto" is paired if n_components is even.
    projection : {"dense", "independent", "dct"}, default="dense"
        As `method` of :class:`RandomOrthoprojector`: a stored matrix, or a fast transform.
    random_state : int, RandomState, Generator or None
        An int gives the same map in every run.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    spec_ : Spec
        A chain of two stages: projection and Fourier features.
    kernel_ : Kernel
        The exact kernel of the rows of X.

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
    random_state: Any = None
    n_jobs: int | None = None

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        m, d = check_count(self, "n_measurements", self.n_measurements), X.shape[1]
        if m > d:
            words = f"at most {d}, the number of features of X"
            raise argument_error(self, "n_measurements", m, words)
        check_choice(self, "projection", self.projection, METHODS)
        rng, dtype = generator(self.random_state), output_dtype(X.dtype)
        projection = draw_orthoprojector(self.projection, m, d, rng, dtype)
        has_rule = isinstance(self.sigma, str) and isinstance(self.kernel, str)
        rows = apply(projection, X, n_jobs=self.n_jobs) if has_rule else X
        self.kernel_ = resolve_kernel("CompressiveFourierMap", self.kernel, self.sigma, rows, rng)
        if not getattr(self.kernel_, "isotropic", False):
            raise ValueError(
                f"CompressiveFourierMap: {self.kernel_!r} is not isotropic. A projection keeps "
                "distances ‖x − y‖₂ and nothing else, so that the kernel must be a function of "
                "them (Theorem 2): use Gaussian or Matern, or RandomFourierMap without projection."
            )
        features = draw_fourier(self, self.kernel_, columns, m, rng, dtype, self.sampling)
        warn_if_degenerate("CompressiveFourierMap", self.kernel_, X, SCALE_ADVICE)
        return Spec("chain", parts=(projection, features))


def local_distance(distances: np.ndarray) -> float:
    """The 10 % quantile of squared distances, or half of their mean if that is larger.

    Neighbours, which decide a classification, are closer than the mean, most of all in few
    dimensions. Where rows repeat, the quantile may be next to nothing: half of the mean bounds γ.
    """
    return float(max(np.quantile(distances, 0.1), np.mean(distances) / 2))


_RULES = {"local": local_distance, "scale": np.mean}
_MAX_ROWS = 1000  # rows whose distances say what gamma="local" and "scale" are
_ROUNDING = 2e-14  # of k(x, x): distances below it say nothing


@dataclass(frozen=True)
class MapKernel(Kernel):
    """The kernel that an additive map has exactly: the inner product of its columns."""

    spec: Spec
    name = "map"

    def _gram(self, X: Any, Y: Any, n_jobs: int | None) -> np.ndarray:
        left = apply(self.spec, X, n_jobs=n_jobs)
        right = left if Y is None else apply(self.spec, Y, n_jobs=n_jobs)
        return dense(left @ right.T)

    def _diag(self, X: Any) -> np.ndarray:
        Z = apply(self.spec, X)
        squares = Z.multiply(Z) if hasattr(Z, "multiply") else Z * Z
        return np.asarray(squares.sum(axis=1)).ravel()

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        left = apply(self.spec, X)
        return left @ (left if Y is X else apply(self.spec, Y)).T

    def _diag_array_api(self, xp: Any, X: Any) -> Any:
        return xp.sum(apply(self.spec, X) ** 2, axis=1)


@dataclass(eq=False, repr=False)
class ExponentialMap(JointMap):
    """Random Fourier features of exp(−γ D²) for the distance D of any additive map.

    Parameters
    ----------
    additive_map : AdditiveMap, optional
        First stage, whose kernel gives the distance; fitted here, on a copy. None means
        ``DesignedMap("chi2", 5, domain="universal")``: exp-χ², with half the columns of
        the paper's ``ChebyshevMap(10)`` and an error as small.
    n_components : int, default=5000
        Output columns D.
    gamma : float, "local" or "scale", default="local"
        γ. "scale" is 1/(mean squared distance) of the fitted rows (of at most 1000 of them), by
        the exact kernel; "local" is 1/(the 10 % quantile of the squared distances), but at most
        twice "scale".
    sampling : {"auto", "iid", "orthogonal", "structured"}, default="auto"
        How frequencies are drawn: see :mod:`kernelmaps.maps.fourier`. "orthogonal" has less
        error than "iid" (the paper's); "structured" has as little, stores no matrix and takes
        p log p operations for p > 32 columns of c, and is "orthogonal" for fewer. "auto" is
        "structured".
    form : {"auto", "paired", "cosine"}, default="auto"
        "paired": cosines and sines of D/2 frequencies; "cosine": cosines of D frequencies with
        random phases. The first has a smaller error, half the cost, and ‖φ(x)‖ = 1 exactly:
        "auto" is paired if D is even.
    random_state : int, RandomState, Generator or None
        An int gives the same map in every run.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    additive_map_ : AdditiveMap
        The fitted first stage.
    gamma_ : float
        The γ in use.
    kernel_ : Exponential
        The exact kernel.
    stage_kernel_ : Exponential
        exp(−γ ‖c(x) − c(y)‖²): what the random features estimate.

    Notes
    -----
    Rows of zeros need no special case: c(0) = 0, and for χ² the exact kernel between such a row and
    y is exp(−γ Σ y).

    For a map without a named kernel (splines), the kernel is its inner product. Frequencies are
    kept in the precision of the fitted rows.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.random.default_rng(0).dirichlet(np.full(50, 0.3), size=40)
    >>> feature_map = km.ExponentialMap(n_components=4000, gamma="scale", random_state=0).fit(X)
    >>> bool(km.kernel_error(feature_map, X).rms < 2 / 4000**0.5)
    True
    """

    additive_map: AdditiveMap | None = None
    n_components: int = 5000
    _: KW_ONLY
    gamma: float | str = "local"
    sampling: str = "auto"
    form: str = "auto"
    random_state: Any = None
    n_jobs: int | None = None

    _state = JointMap._state.extended(
        {
            "additive_map_": instance((AdditiveMap,)),
            "gamma_": number(above=0),
            "stage_kernel_": instance((Exponential,)),
        }
    )

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        rng = generator(self.random_state)
        self.additive_map_ = clone(self._first_stage()).fit(X)
        base_spec = self.additive_map_.spec_
        base = getattr(self.additive_map_, "kernel_", None) or MapKernel(base_spec)
        self.gamma_ = self._resolve_gamma(base, X, rng)
        self.kernel_ = Exponential(base, self.gamma_)
        advice = "Let gamma follow the data: gamma='local'."
        warn_if_degenerate("ExponentialMap", self.kernel_, X, advice)
        self.stage_kernel_ = Exponential(MapKernel(base_spec), self.gamma_)
        gaussian = Gaussian(sigma=float(np.sqrt(0.5 / self.gamma_)))  # ω ~ N(0, 2γ)
        sampling = "structured" if self.sampling == "auto" else self.sampling
        width, dtype = self.additive_map_._n_features_out, output_dtype(X.dtype)
        random = draw_fourier(self, gaussian, columns, width, rng, dtype, sampling)
        return Spec("chain", parts=(base_spec, random))

    def _first_stage(self) -> AdditiveMap:
        if self.additive_map is None:
            return DesignedMap("chi2", 5, domain="universal")
        if isinstance(self.additive_map, AdditiveMap):
            return self.additive_map
        raise TypeError(
            "ExponentialMap: additive_map must be an additive map, whose columns have the distance "
            "of a kernel (ChebyshevMap, DesignedMap, HomogeneousMap, AnchorMap, SplineMap, …); "
            f"the columns of {self.additive_map!r} do not. Put RandomFourierMap after other "
            "features in a Pipeline."
        )

    def _resolve_gamma(self, base: Kernel, X: Any, rng: np.random.Generator) -> float:
        if isinstance(self.gamma, str) and self.gamma in _RULES:
            distance = typical_distance(base, X, _RULES[self.gamma], rng)
            if distance > 0:
                return 1 / distance
            raise ValueError(
                f"ExponentialMap: gamma={self.gamma!r} is 1/(typical squared distance of rows), "
                "but that distance is 0: the rows are all alike (to rounding), or there is only "
                "one sample. Give gamma as a number."
            )
        check_positive(self, "gamma", self.gamma, "a positive number, 'local' or 'scale'")
        return float(self.gamma)

    def _check_domain(self, X: Any, columns: ColumnRange | None = None) -> None:
        self.additive_map_._check_domain(X, columns)

    @property
    def _non_negative(self) -> bool:  # type: ignore[override]
        if self.additive_map is None:
            return True
        # What is no map is said by fit; here it only must not get in the way of a repr.
        return isinstance(self.additive_map, AdditiveMap) and self.additive_map._non_negative


def typical_distance(base: Kernel, X: Any, rule: Any, rng: np.random.Generator) -> float:
    """Mean, median or another rule of the exact squared distances among (some of) the rows."""
    rows = np.sort(rng.permutation(X.shape[0])[:_MAX_ROWS])
    sample = X[rows].astype(np.float64)
    pairs = base.squared_distance(sample)[np.triu_indices(len(rows), 1)]
    typical = float(rule(pairs)) if pairs.size else 0.0
    # k(x, x) + k(y, y) − 2 k(x, y) of equal rows is not 0, but rounding.
    return typical if typical > _ROUNDING * float(np.mean(base.diag(sample))) else 0.0
