r"""Random Fourier features: any stationary kernel as an inner product of cosines.

Bochner's theorem says that a stationary kernel with k(x, x) = 1 is an expectation over its spectral
distribution p (compressive-rf eq. 1),

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
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from .. import kernels
from ..arguments import check_count
from ..engine import Spec
from ..engine.outputs import output_dtype
from ..kernels.bandwidth import fit_length, warn_if_degenerate
from ..seeding import generator
from .base import JointMap
from .sampling import features_of

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
        "gaussian", "laplacian", "cauchy", "matern", or any kernel that can sample its spectrum
        (a method ``sample_frequencies(n, d, rng)``).
    n_components : int, default=1000
        Output columns D.
    sampling : {"iid", "orthogonal", "structured", "sobol"}, default="iid"
        How frequencies are drawn: see :mod:`kernelmaps.maps.sampling`. "orthogonal" has the
        smallest error for isotropic kernels; "structured" comes close, stores no matrix, and
        is the fastest for many features (lengths are padded to the next power of two).
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

    kernel_: kernels.StationaryKernel = field(init=False)

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        rng = generator(self.random_state)
        self.kernel_ = resolve_kernel("RandomFourierMap", self.kernel, self.sigma, X, rng)
        warn_if_degenerate("RandomFourierMap", self.kernel_, X, SCALE_ADVICE)
        return features_of(self, self.kernel_, columns, X.shape[1], rng, output_dtype(X.dtype))


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
    found: Any = kernels.get(kernel)
    if not isinstance(found, kernels.StationaryKernel):
        raise ValueError(
            f"{owner}: the kernel {kernel!r} has no length scale sigma and cannot sample its "
            "spectrum; use a stationary kernel such as 'gaussian', 'laplacian', 'cauchy' or "
            "'matern'."
        )
    return fit_length(owner, found, sigma, X, rng)


def scaled_kernel(owner: str, kernel: Any, factor: float) -> Any:
    """The same kernel with its length scale multiplied: k(x/factor, y/factor)."""
    if not isinstance(kernel, kernels.StationaryKernel):
        raise ValueError(
            f"{owner}: the length scale of {kernel!r} is not known, so that it cannot be changed "
            f"by {factor:g}. Scale the data instead."
        )
    return kernel.with_length(factor * kernel.length)
