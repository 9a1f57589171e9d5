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
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .. import kernels
from .._util.arguments import check_choice, check_count, generator
from .._util.threads import limit_blas, power_of_two
from ..engine import Spec
from ..engine.fourier import fourier_spec
from ..engine.outputs import output_dtype
from ..kernels.bandwidth import fit_length, warn_if_degenerate
from .base import JointMap

SAMPLINGS = ("iid", "orthogonal", "structured")
FORMS = ("cosine", "paired")
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
        operator = spectrum.structured(n, n_features)
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
        return self._checked("sample_frequencies", frequencies, (n, d))

    def orthogonal(self, n: int, d: int) -> np.ndarray:
        """The same, orthogonal in blocks of d."""
        full, remainder = divmod(n, d)
        bases = gram_schmidt(self.rng.standard_normal((full, d, d)))[0]
        rows = np.concatenate(
            [np.swapaxes(bases, 1, 2).reshape(-1, d), haar_rows(remainder, d, self.rng)]
        )
        return rows * self._radii(n, d)[:, None]

    def structured(self, n: int, d: int) -> Spec:
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
        return self._checked("radius_quantile", radii, (n,))

    def _checked(self, method: str, numbers: Any, shape: tuple[int, ...]) -> np.ndarray:
        """What a kernel's method returned, if it is finite numbers of this shape."""
        numbers = np.asarray(numbers, dtype=np.float64)
        if numbers.shape != shape or not np.isfinite(numbers).all():
            raise ValueError(
                f"{self.owner}: {method} of {self.kernel!r} must return finite numbers of shape "
                f"{shape}; got shape {numbers.shape}"
                f"{'' if numbers.shape != shape else ' with NaN or infinity'}."
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


def haar_rows(m: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """m ≤ d orthonormal rows, uniformly distributed among all such systems.

    Gram-Schmidt of Gaussian vectors; LAPACK's QR leaves the signs of R's diagonal open, and making
    them positive makes Q unique and its distribution invariant under rotations.
    """
    return gram_schmidt(rng.standard_normal((d, m)))[0].T


def gram_schmidt(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal columns, and the lengths that were left of the given ones after projection.

    A stack of matrices gives a stack of results.

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
        raise ValueError(
            f"{owner}: the paired form has a sine for every cosine, so n_components must be even; "
            f"got {n_components}. Use {n_components + 1}, or form='cosine'."
        )
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
    sigma : float, "auto", "scale", "median" or None, default="auto"
        Length scale of a kernel given by name. "median" is the median distance of (at most 1000)
        rows, "auto" half of it, "scale" scikit-learn's γ = 1/(d Var X), that is σ² = d Var(X)/2.
        :func:`kernelmaps.kernels.bandwidth.fit_length` has the rules for other kernels than the
        Gaussian. None means 1. A kernel object keeps its own scale.
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
    sigma: float | str | None = "auto"
    random_state: Any = None
    n_jobs: int | None = None

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        rng = generator(self.random_state)
        self.kernel_ = resolve_kernel("RandomFourierMap", self.kernel, self.sigma, X, rng)
        warn_if_degenerate("RandomFourierMap", self.kernel_, X, SCALE_ADVICE)
        how = rng, output_dtype(X.dtype), self.sampling
        return draw_fourier(self, self.kernel_, columns, X.shape[1], *how)


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
    if (
        sigma == "auto"
        and hasattr(resolved, "sample_frequencies")
        and not hasattr(resolved, "length")
    ):
        return resolved  # it has no width that rows could tell
    if not isinstance(resolved, kernels.StationaryKernel):
        remedy = "Leave sigma='auto'."
        if not hasattr(resolved, "sample_frequencies"):
            remedy = (
                "It cannot sample its spectrum, either: use a stationary kernel such as "
                "'gaussian', 'laplacian', 'cauchy' or 'matern'."
            )
        raise ValueError(f"{owner}: the kernel {kernel!r} has no length scale sigma. {remedy}")
    return fit_length(owner, resolved, sigma, X, rng)
