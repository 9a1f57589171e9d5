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

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics import pairwise_distances

from .. import kernels
from ..engine import Spec
from ..engine.apply import output_dtype
from .base import JointMap, check_count
from .sampling import draw_fourier, generator

__all__ = ["RandomFourierMap", "resolve_kernel", "scaled_kernel"]

_SCALE_OF = {"gaussian": "sigma", "matern": "scale", "laplacian": "scale", "cauchy": "scale"}
_MEDIAN_ROWS = 1000


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
        least error for isotropic kernels; "structured" comes close, stores no matrix, and
        is the fastest for many features (lengths are padded to the next power of two).
    form : {"cosine", "paired"}, default="cosine"
        √(2/D) cos(ωᵀx + b), or cosines followed by sines of D/2 frequencies, which is more
        accurate for most kernels and takes half as many products, but needs an even D.
    sigma : float, "scale", "median" or None, default=None
        Length scale of a kernel given by name. "scale" is scikit-learn's γ = 1/(d Var X), that is
        σ² = d Var(X)/2; "median" the median distance of (at most 1000) rows. For other kernels
        than the Gaussian see `resolve_kernel`. None means 1, or the scale of the kernel object.
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

    kernel_: kernels.StationaryKernel

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int = 1000,
        sampling: str = "iid",
        form: str = "cosine",
        sigma: float | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.sampling = sampling
        self.form = form
        self.sigma = sigma
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        rng = generator(self.random_state)
        self.kernel_ = resolve_kernel("RandomFourierMap", self.kernel, self.sigma, X, rng)
        return draw_fourier(
            self.kernel_,
            columns,
            X.shape[1],
            sampling=self.sampling,
            form=self.form,
            random_state=rng,
            dtype=output_dtype(X.dtype),
        )


def resolve_kernel(
    owner: str, kernel: Any, sigma: float | str | None, X: Any, rng: np.random.Generator
) -> Any:
    """A kernel with its length scale, from a name and a number or a rule.

    With v = Var(X) over all entries and "median" the median distance of rows:

    =================  ======================  ==========================
    kernel             sigma="scale"           sigma="median"
    =================  ======================  ==========================
    gaussian, matern   σ = √(d v / 2)          σ = median ‖x − y‖₂
    cauchy             s = √(d v)              s = √2 median ‖x − y‖₂
    laplacian          s = d √v                s = median ‖x − y‖₁
    =================  ======================  ==========================

    The Cauchy kernel of many features is close to exp(−‖x − y‖²/s²): hence its √2.
    """
    if sigma is None:
        return kernel if hasattr(kernel, "sample_frequencies") else kernels.get(kernel)
    if not isinstance(kernel, str):
        raise ValueError(
            f"{owner}: sigma={sigma!r} goes with a kernel given by name; {kernel!r} carries its "
            "own scale. Leave sigma=None, or name the kernel."
        )
    named: Any = kernels.get(kernel)
    if named.name not in _SCALE_OF:
        raise ValueError(
            f"{owner}: the kernel {kernel!r} has no length scale sigma and cannot sample a "
            f"spectrum; use one of {', '.join(_SCALE_OF)}."
        )
    return replace(named, **{_SCALE_OF[named.name]: _length(owner, named.name, sigma, X, rng)})


def scaled_kernel(owner: str, kernel: Any, factor: float) -> Any:
    """The same kernel with its length scale multiplied: k(x/factor, y/factor)."""
    field = _SCALE_OF.get(getattr(kernel, "name", ""))
    if field is None:
        raise ValueError(
            f"{owner}: the length scale of {kernel!r} is not known, so that it cannot be changed "
            f"by {factor:g}. Scale the data instead."
        )
    return replace(kernel, **{field: factor * getattr(kernel, field)})


def _length(owner: str, name: str, sigma: Any, X: Any, rng: np.random.Generator) -> float:
    rule = sigma if isinstance(sigma, str) else None
    if rule == "scale":
        spread = X.shape[1] * _variance(X)
        return _positive(
            owner,
            sigma,
            {"laplacian": np.sqrt(spread * X.shape[1]), "cauchy": np.sqrt(spread)}.get(
                name, np.sqrt(spread / 2)
            ),
        )
    if rule == "median":
        distance = _median_distance(X, "l1" if name == "laplacian" else "l2", rng)
        return _positive(owner, sigma, np.sqrt(2) * distance if name == "cauchy" else distance)
    if isinstance(sigma, bool) or not isinstance(sigma, Real) or not 0 < float(sigma) < np.inf:
        raise ValueError(
            f"{owner}: sigma must be a positive number, 'scale' or 'median'; got {sigma!r}."
        )
    return float(sigma)


def _positive(owner: str, rule: str, length: float) -> float:
    if not 0 < length < np.inf:
        what = "the variance of X" if rule == "scale" else "the median distance of rows"
        found = "0" if length == 0 else "not finite"
        raise ValueError(
            f"{owner}: sigma={rule!r} finds {what} to be {found}, which gives no scale. "
            "Give sigma as a number."
        )
    return float(length)


def _variance(X: Any) -> float:
    """Variance over all entries, those that CSR does not store included; 0 if it is rounding."""
    values, size = X.data if sparse.issparse(X) else X, X.shape[0] * X.shape[1]
    mean = values.sum(dtype=np.float64) / size
    stored = np.square(values - mean, dtype=np.float64).sum()
    variance = float(stored + (size - values.size) * mean**2) / size
    return variance if variance > (4 * np.finfo(np.float64).eps * mean) ** 2 else 0.0


def _median_distance(X: Any, metric: str, rng: np.random.Generator) -> float:
    n = X.shape[0]
    rows = np.sort(rng.permutation(n)[:_MEDIAN_ROWS])
    if n < 2:
        return 0.0
    sample = X[rows].astype(np.float64)
    if not sparse.issparse(sample):  # by differences: those of equal rows are 0
        return float(np.median(pdist(sample, "cityblock" if metric == "l1" else "euclidean")))
    distances = pairwise_distances(sample, metric=metric)
    if metric == "l2":  # from products: what is left of equal rows is rounding
        lengths = np.sqrt(np.asarray(sample.multiply(sample).sum(axis=1)).ravel())
        distances[distances < 1e-7 * np.maximum(lengths, lengths[:, None])] = 0
    return float(np.median(distances[np.triu_indices(len(rows), 1)]))
