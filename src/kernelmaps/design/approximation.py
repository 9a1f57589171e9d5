r"""The approximation problem of a design: kernel, domain and weights of the error.

A stationary kernel is fixed by its signature k(λ), λ = x − y; a homogeneous one by the signature in
λ = log y − log x (Chum 2015, eq. 14). A cosine map of D columns is a signature

.. math:: \hat k(λ) = \sum_ω α_ω \cos(ωλ), \qquad α_ω \ge 0 \quad (2)

and its weighted error w(λ)(k(λ) − k̂(λ)) on [0, M] is all that a design looks at:

==========  ==========================  ================================================
error       homogeneous kernel          stationary kernel
==========  ==========================  ================================================
absolute    b^γ e^{−γλ/2} (eq. 16)      1
relative    1/k(λ) (eq. 18)             1/k(λ)
signature   1                           1
==========  ==========================  ================================================

The factor b^γ turns the error of the signature into the error of the kernel on (0, b] (eq. 15).
Equations are those of O. Chum, Low dimensional explicit feature maps, ICCV 2015.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._util.arguments import argument, argument_error
from .._util.threads import cached_property
from ..exceptions import DesignError
from ..kernels import AdditiveKernel, HomogeneousKernel, Kernel, StationaryKernel, get

Cosines = tuple[np.ndarray, np.ndarray]  # frequencies, weights
Function = Callable[[np.ndarray], np.ndarray]
ERRORS = ("absolute", "relative", "signature")


class NotPositiveDefiniteError(DesignError, ValueError):
    """A signature is not positive-definite: no non-negative mixture of cosines fits it."""


def refuse_indefinite(owner: str, name: str, gram: np.ndarray) -> None:
    """Refuse a signature whose Gram matrix on points of the domain has a negative eigenvalue."""
    values = np.linalg.eigvalsh(gram)
    if values[0] < -1e-9 * np.max(np.abs(values)):
        raise NotPositiveDefiniteError(
            f"{owner}: the signature {name!r} is not positive definite: its Gram matrix on "
            f"{values.size} points of the domain has the eigenvalue {values[0]:.3g} (largest "
            f"{values[-1]:.3g}). No non-negative mixture of cosines fits it. Check the formula."
        )


def cosine_sum(lags: np.ndarray, cosines: Cosines) -> np.ndarray:
    """k̂(λ) = Σ α cos(ωλ), eq. (2)."""
    return np.cos(np.multiply.outer(lags, cosines[0])) @ cosines[1]


def has_kink(signature: Callable, span: float) -> bool:
    """Whether k(0) − k(h) grows like h rather than like h²."""
    step = 1e-4 * span
    peak, middle, far = signature(np.array([0.0, step, 2 * step]))
    return bool(0 < peak - far < 3 * (peak - middle))


class FeatureKernel(NamedTuple):
    """What designs ask of the kernel of one feature.

    Attributes
    ----------
    name : str
    signature : callable or None
        k(λ) of a stationary or homogeneous kernel; None if it has none.
    component : callable
        k(x, y), elementwise.
    homogeneous : bool
    gamma : float
        Degree of a homogeneous kernel.
    grows : bool
        Whether k is known to grow in both arguments.
    """

    name: str
    signature: Any
    component: Callable[[np.ndarray, np.ndarray], np.ndarray]
    homogeneous: bool = False
    gamma: float = 1.0
    grows: bool = False


def feature_kernel(
    kernel: Any, homogeneous: bool | None = None, for_cosines: bool = False
) -> FeatureKernel:
    """The kernel of one feature, from a kernel, its name, or a signature (see `design_map`).

    Cosines need a signature, tables do not.
    """
    if callable(kernel) and not isinstance(kernel, Kernel | str | type):
        name, signature = getattr(kernel, "__name__", "signature"), partial(_call_signature, kernel)
        if not homogeneous:
            return lag_kernel(name, signature)
        kernel = HomogeneousKernel(name, signature)
    kernel = get(kernel)
    if isinstance(kernel, HomogeneousKernel):
        if homogeneous is False:
            raise ValueError(f"design_map: {kernel!r} is homogeneous; leave homogeneous out.")
        gamma = float(kernel.gamma)
        return FeatureKernel(
            kernel.name, kernel.signature, kernel.component, True, gamma, kernel.grows
        )
    if isinstance(kernel, StationaryKernel):
        if homogeneous:
            raise ValueError(f"design_map: {kernel!r} is stationary; leave homogeneous out.")
        return lag_kernel(kernel.name, kernel.signature)
    if isinstance(kernel, AdditiveKernel) and not for_cosines:
        return FeatureKernel(getattr(kernel, "name", "kernel"), None, kernel.component)
    designed = "tables (method='minimax')" if isinstance(kernel, AdditiveKernel) else "maps"
    raise TypeError(
        f"design_map: {kernel!r} has no one-dimensional signature k(λ); cosine designs need one. "
        f"Give a homogeneous or stationary kernel or a function of the lag, or use {designed}."
    )


def lag_kernel(name: str, signature: Function) -> FeatureKernel:
    """The kernel k(x − y)."""
    return FeatureKernel(name, signature, partial(_evaluate_difference, signature))


# Module-level functions, not closures: tables travel in pickled maps.
def _evaluate_difference(signature: Function, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return signature(np.abs(y - x))


def _call_signature(function: Function, lag: np.ndarray) -> np.ndarray:
    """A user's signature, of |λ|."""
    values = np.asarray(function(np.abs(lag)), dtype=np.float64)
    if values.shape != np.shape(lag) or not np.all(np.isfinite(values)):
        raise ValueError(
            "design_map: a user's signature must map an array of lags to finite values of "
            f"the same shape; it gave shape {values.shape} for {np.shape(lag)}."
        )
    return values


@dataclass(frozen=True, eq=False)
class CosineProblem:
    """A weighted Chebyshev problem on lags.

    Parameters
    ----------
    kernel : FeatureKernel
        With a signature k(λ).
    span : float
        M: lags in [0, M] count.
    unit : float
        Largest error of the kernel per unit of weighted error at λ = 0 (b^γ for absolute errors).
    points : ndarray, optional
        The discrete evaluation set Z; without it all of [0, M] counts.
    tail : bool
        Universal design: [0, M] must be long enough for the tail beyond it to be harmless.
    error : str
        What is minimised; "weighted" stands for the weight of a `user`, a function of lags.
    """

    kernel: FeatureKernel
    span: float
    unit: float = 1.0
    points: np.ndarray | None = None
    tail: bool = False
    domain: Any = None
    error: str = "absolute"
    user: Function | None = None

    @property
    def signature(self) -> Function:
        """k(λ)."""
        return self.kernel.signature

    def weight(self, lag: np.ndarray) -> np.ndarray:
        """w(λ) for λ >= 0, the factor `unit` included (eqs. 16, 18)."""
        if self.user is not None:
            values = np.broadcast_to(np.asarray(self.user(lag), dtype=np.float64), np.shape(lag))
            if not np.all(np.isfinite(values)) or np.any(values < 0):
                raise ValueError("design_map: a user's weight w(λ) must be finite and >= 0.")
            return values
        if self.error == "relative":
            return 1 / self.signature(lag)
        if self.error == "absolute" and self.kernel.homogeneous:
            return self.unit * np.exp(-0.5 * self.kernel.gamma * lag)
        return np.ones(np.shape(lag))

    @cached_property
    def lags(self) -> np.ndarray:
        """Z itself, or an even grid of [0, M]."""
        if self.points is not None:
            return self.points
        return np.linspace(0.0, self.span, 2001)

    @cached_property
    def _target(self) -> np.ndarray:
        return self.signature(self.lags)

    @cached_property
    def _weight(self) -> np.ndarray:
        return self.weight(self.lags)

    @property
    def scale(self) -> float:
        """Largest weighted value of the signature: the error of the zero map."""
        return float(np.max(np.abs(self._weight * self._target)))

    def sample_lags(self, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """About `size` lags with k and w there, for least squares and coarse constraints."""
        step = max(1, self.lags.size // size)
        index = np.unique(np.r_[np.arange(0, self.lags.size, step), self.lags.size - 1])
        return self.lags[index], self._target[index], self._weight[index]

    def residual(self, lags: np.ndarray, cosines: Cosines) -> np.ndarray:
        """w(λ) (k(λ) − k̂(λ)) at any lags."""
        return self.weight(lags) * (self.signature(lags) - cosine_sum(lags, cosines))

    def grid_residual(self, cosines: Cosines) -> np.ndarray:
        """The same on `lags`, where k and w are stored."""
        return self._weight * (self._target - cosine_sum(self.lags, cosines))

    def extrema(self, cosines: Cosines) -> tuple[np.ndarray, np.ndarray]:
        """Lags of the local maxima of |error|, and the signed errors there.

        On a continuous domain a parabola through three grid points places each maximum.
        """
        size = np.abs(self.grid_residual(cosines))
        peak = np.ones(size.size, bool)
        peak[1:] = size[1:] >= size[:-1]
        peak[:-1] &= size[:-1] > size[1:]
        top = np.flatnonzero(peak)
        lags = self.lags[top]
        if self.points is None:
            inner = (top > 0) & (top < size.size - 1)
            i = top[inner]
            lags[inner] += parabola_top(size[i - 1], size[i], size[i + 1]) * self.lags[1]
        return lags, self.residual(lags, cosines)

    def max_error(self, cosines: Cosines) -> float:
        """C∞ (eq. 5) with maxima placed between grid points."""
        return float(np.max(np.abs(self.extrema(cosines)[1]), initial=0.0))

    def peaks(self, cosines: Cosines) -> np.ndarray:
        """Lags that no program may leave out."""
        return self.extrema(cosines)[0]

    def coarse_lags(self, n_frequencies: int) -> np.ndarray:
        """Lags of every program."""
        return self.sample_lags(max(60, 8 * n_frequencies))[0]

    def free(self, frequencies: np.ndarray) -> np.ndarray:
        """Frequencies that may move: zero stays, as moving it costs a column."""
        return frequencies != 0

    def atoms(self, lags: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """cos(ωλ), shape (N, m)."""
        return np.cos(np.outer(lags, frequencies))

    def derivatives(self, lags: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """Derivatives of the atoms in ω."""
        return -lags[:, None] * np.sin(np.outer(lags, frequencies))


def parabola_top(left: np.ndarray, centre: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Where a parabola through three even points is largest, in steps from the middle one."""
    curve = left - 2 * centre + right
    return np.clip(0.5 * (left - right) / np.where(curve < 0, curve, -1.0), -1, 1)


def build_problem(
    kernel: Any,
    domain: Any = (1, 255),
    error: Any = "absolute",
    *,
    homogeneous: bool | None = None,
) -> CosineProblem:
    """Check the arguments of :func:`kernelmaps.design_map` and build the problem they state."""
    feature = feature_kernel(kernel, homogeneous, for_cosines=True)
    values, points = check_domain(domain, feature.homogeneous)
    universal = isinstance(domain, str)
    low, high = (np.nan, 1.0) if values is None else (float(values[0]), float(values[-1]))
    if universal:
        span = 12.0
    elif points is not None:
        span = float(points[-1])
    else:
        span = float(np.log(high / low)) if feature.homogeneous else high - low
    if universal and error != "absolute":
        raise ValueError(
            f"design_map: domain='universal' needs {argument('error', 'absolute')}: only its "
            f"weight e^(-λ/2) makes the tail beyond every range harmless (error={error!r})."
        )
    is_function = callable(error)
    if not is_function and error not in ERRORS:
        raise argument_error("design_map", "error", error, f"one of {ERRORS} or a function")
    if error == "relative":
        smallest = float(np.min(feature.signature(np.linspace(0, span, 501))))
        if smallest <= 0:
            raise ValueError(
                f"design_map: {argument('error', 'relative')} divides by the signature, which "
                f"falls to {smallest:.3g} on [0, {span:.3g}]; it must stay positive there."
            )
    return CosineProblem(
        feature,
        span,
        high**feature.gamma if error == "absolute" and feature.homogeneous else 1.0,
        points,
        tail=universal,
        domain="universal" if universal else values,
        error="weighted" if is_function else error,
        user=error if is_function else None,
    )


def check_domain(domain: Any, homogeneous: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Input values (two for an interval, more for a set) and the lags Z of a discrete design."""
    points = None
    if isinstance(domain, str):
        if domain != "universal" or not homogeneous:
            words = "a pair (m, b), a set of values or, for homogeneous kernels, 'universal'"
            raise argument_error("design_map", "domain", domain, words)
        return None, None
    values = np.unique(np.asarray(domain, dtype=np.float64).ravel())
    if not np.all(np.isfinite(values)):
        raise argument_error("design_map", "domain", domain, "finite")
    if homogeneous and values.size > 2:
        values = values[values > 0]  # φ(0) = 0 is exact and needs no design
    if np.size(domain) == 2 and not np.all(np.diff(np.asarray(domain, dtype=float)) > 0):
        raise argument_error("design_map", "domain", domain, "(m, b) with m < b")
    if values.size < 2 or (homogeneous and values[0] <= 0):
        words = "of two different values at least"
        if homogeneous:  # zero itself is mapped to zero exactly
            words = "0 < m < b for a homogeneous kernel, with m the smallest value that is not 0"
        raise argument_error("design_map", "domain", domain, words)
    if values.size > 2:
        place = np.log(values) if homogeneous else values
        difference = np.abs(place[:, None] - place[None, :]).ravel()
        points = np.unique(np.round(difference, 12))
    return values, points
