r"""The approximation problem of a design: kernel, domain and weights of the error.

A stationary kernel is fixed by its signature k(λ), λ = x − y; a homogeneous one by the signature in
λ = log y − log x (low-dim-maps eq. 14). A cosine map of D columns is a signature

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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..exceptions import DesignError
from ..kernels import AdditiveKernel, HomogeneousKernel, Kernel, StationaryKernel, get

Cosines = tuple[np.ndarray, np.ndarray]  # frequencies, weights
Function = Callable[[np.ndarray], np.ndarray]
ERRORS = ("absolute", "relative", "signature")


class NotPositiveDefiniteError(DesignError, ValueError):
    """A signature is not positive-definite: no non-negative mixture of cosines fits it."""


def cosine_sum(lags: np.ndarray, frequencies: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """k̂(λ) = Σ α cos(ωλ), eq. (2)."""
    return np.cos(np.multiply.outer(lags, frequencies)) @ weights


def has_kink(signature: Callable, span: float) -> bool:
    """Whether k(0) − k(h) grows like h rather than like h²."""
    step = 1e-4 * span
    peak, near, far = signature(np.array([0.0, step, 2 * step]))
    return bool(0 < peak - far < 3 * (peak - near))


@dataclass(frozen=True, eq=False)
class Problem:
    """A weighted Chebyshev problem on lags.

    Parameters
    ----------
    signature, weight : callable
        k(λ) and w(λ) for λ >= 0, vectorised. `weight` includes the factor `unit`.
    span : float
        M: lags in [0, M] count.
    unit : float
        Largest error of the kernel per unit of weighted error at λ = 0 (b^γ for absolute errors).
    points : ndarray, optional
        The discrete evaluation set Z; without it all of [0, M] counts.
    tail : bool
        Universal design: [0, M] must be long enough for the tail beyond it to be harmless.
    period : float, optional
        Period of the signature (section 3): only harmonics 2πi/period are allowed.
    """

    signature: Function
    weight: Function
    span: float
    unit: float = 1.0
    points: np.ndarray | None = None
    tail: bool = False
    period: float | None = None
    homogeneous: bool = False
    gamma: float = 1.0
    domain: Any = None
    error: str = "absolute"
    name: str = "kernel"
    resolution: int = field(default=2000)

    @cached_property
    def lags(self) -> np.ndarray:
        """Z itself, or an even grid of [0, M]."""
        if self.points is not None:
            return self.points
        return np.linspace(0.0, self.span, self.resolution + 1)

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

    @cached_property
    def has_kink(self) -> bool:
        """Whether k has a kink at 0; see :func:`has_kink`."""
        return has_kink(self.signature, self.span)

    def sampled(self, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """About `size` lags with k and w there, for least squares and coarse constraints."""
        step = max(1, self.lags.size // size)
        chosen = np.unique(np.r_[np.arange(0, self.lags.size, step), self.lags.size - 1])
        return self.lags[chosen], self._target[chosen], self._weight[chosen]

    def residual(
        self, lags: np.ndarray, frequencies: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """w(λ) (k(λ) − k̂(λ)) at any lags."""
        return self.weight(lags) * (self.signature(lags) - cosine_sum(lags, frequencies, weights))

    def grid_residual(self, frequencies: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The same on `lags`, where k and w are stored."""
        return self._weight * (self._target - cosine_sum(self.lags, frequencies, weights))

    def extrema(
        self, frequencies: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lags of the local maxima of |error|, and the signed errors there.

        On a continuous domain a parabola through three grid points places each maximum.
        """
        size = np.abs(self.grid_residual(frequencies, weights))
        padded = np.r_[-np.inf, size, -np.inf]
        top = np.flatnonzero((padded[1:-1] >= padded[:-2]) & (padded[1:-1] > padded[2:]))
        lags = self.lags[top]
        if self.points is None:
            inner = (top > 0) & (top < size.size - 1)
            i = top[inner]
            curve = size[i - 1] - 2 * size[i] + size[i + 1]
            shift = 0.5 * (size[i - 1] - size[i + 1]) / np.where(curve < 0, curve, -1.0)
            lags = lags.copy()
            lags[inner] += np.clip(shift, -1, 1) * (self.lags[1] - self.lags[0])
        return lags, self.residual(lags, frequencies, weights)

    def max_error(self, frequencies: np.ndarray, weights: np.ndarray) -> float:
        """C∞ (eq. 5) with maxima placed between grid points."""
        return float(np.max(np.abs(self.extrema(frequencies, weights)[1]), initial=0.0))

    def sum_error(self, frequencies: np.ndarray, weights: np.ndarray) -> float:
        """C₁ (eq. 4): the sum over Z of the weighted errors."""
        return float(np.sum(np.abs(self.grid_residual(frequencies, weights))))

    def with_span(self, span: float) -> Problem:
        """The same problem on [0, span]."""
        return replace(self, span=span)


def build_problem(
    kernel: Any,
    domain: Any = (1, 255),
    error: str | Function = "absolute",
    *,
    lags: np.ndarray | None = None,
    period: float | None = None,
    homogeneous: bool | None = None,
) -> Problem:
    """Check the arguments of :func:`kernelmaps.design_map` and build the problem they state."""
    name, signature, homogeneous, gamma = _resolve_kernel(kernel, homogeneous)
    values, points = _resolve_domain(domain, homogeneous, lags, period)
    universal = isinstance(domain, str)
    low, high = (np.nan, 1.0) if values is None else (float(values[0]), float(values[-1]))
    if period is not None:
        span = float(period) / 2
    elif universal:
        span = 12.0
    elif points is not None:
        span = float(points[-1])
    else:
        span = float(np.log(high / low)) if homogeneous else high - low
    if universal and error != "absolute":
        raise ValueError(
            "design_map: domain='universal' needs error='absolute': only its weight e^(-λ/2) makes "
            f"the tail beyond every range harmless (error={error!r})."
        )
    weight, unit, label = _resolve_weight(error, signature, homogeneous, gamma, high, span)
    return Problem(
        signature=signature,
        weight=weight,
        span=span,
        unit=unit,
        points=points,
        tail=universal,
        period=None if period is None else float(period),
        homogeneous=homogeneous,
        gamma=gamma,
        domain="universal" if universal else values,
        error=label,
        name=name,
    )


def _resolve_kernel(kernel: Any, homogeneous: bool | None) -> tuple[str, Function, bool, float]:
    """Name, signature of |λ|, whether it is homogeneous, and its degree."""
    if callable(kernel) and not isinstance(kernel, Kernel | str):
        function = kernel

        def signature(lag: np.ndarray) -> np.ndarray:
            values = np.asarray(function(np.abs(lag)), dtype=np.float64)
            if values.shape != np.shape(lag) or not np.all(np.isfinite(values)):
                raise ValueError(
                    "design_map: a user's signature must map an array of lags to finite values of "
                    f"the same shape; it gave shape {values.shape} for {np.shape(lag)}."
                )
            return values

        return getattr(function, "__name__", "signature"), signature, bool(homogeneous), 1.0
    kernel = get(kernel)
    if isinstance(kernel, HomogeneousKernel):
        if homogeneous is False:
            raise ValueError(f"design_map: {kernel!r} is homogeneous; leave homogeneous out.")
        return kernel.name, kernel.signature, True, float(kernel.gamma)
    if isinstance(kernel, StationaryKernel):
        if homogeneous:
            raise ValueError(f"design_map: {kernel!r} is stationary; leave homogeneous out.")
        return kernel.name, kernel.signature, False, 1.0
    known = "tables (method='eigen' or 'minimax')" if isinstance(kernel, AdditiveKernel) else "maps"
    raise TypeError(
        f"design_map: {kernel!r} has no one-dimensional signature k(λ); cosine designs need one. "
        f"Give a homogeneous or stationary kernel or a function of the lag, or use {known}."
    )


def _resolve_domain(
    domain: Any, homogeneous: bool, lags: np.ndarray | None, period: float | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Input values (two for an interval, more for a set) and the lags Z of a discrete design."""
    points = None
    if lags is not None:
        points = np.unique(np.abs(np.asarray(lags, dtype=np.float64)))
        if points.size < 2 or not np.all(np.isfinite(points)):
            raise ValueError("design_map: lags must hold at least two different finite lags.")
    if isinstance(domain, str):
        if domain != "universal" or not homogeneous or lags is not None or period is not None:
            raise ValueError(
                "design_map: domain must be a pair (m, b), a set of values or, for homogeneous "
                f"kernels without lags or period, 'universal'; got {domain!r}."
            )
        return None, None
    values = np.unique(np.asarray(domain, dtype=np.float64).ravel())
    if not np.all(np.isfinite(values)):
        raise ValueError(f"design_map: the domain must be finite, got {domain!r}.")
    if homogeneous and values.size > 2:
        values = values[values > 0]  # φ(0) = 0 is exact and needs no design
    if np.size(domain) == 2 and not np.all(np.diff(np.asarray(domain, dtype=float)) > 0):
        raise ValueError(f"design_map: the domain (m, b) needs m < b, got {domain!r}.")
    if values.size < 2 or (homogeneous and values[0] <= 0):
        raise ValueError(
            f"design_map: the domain of a homogeneous kernel needs 0 < m < b, got {domain!r}: m is "
            "the smallest non-zero value, since zero itself is mapped to zero exactly."
            if homogeneous
            else f"design_map: the domain needs two different values, got {domain!r}."
        )
    if period is not None and not (np.isfinite(period) and period > 0):
        raise ValueError(f"design_map: period must be positive, got {period!r}.")
    if points is None and values.size > 2:
        place = np.log(values) if homogeneous else values
        difference = np.abs(place[:, None] - place[None, :]).ravel()
        points = np.unique(np.round(difference, 12))
    return values, points


def _resolve_weight(
    error: str | Function,
    signature: Function,
    homogeneous: bool,
    gamma: float,
    high: float,
    span: float,
) -> tuple[Function, float, str]:
    """Weight function w(λ), its unit and its name (eqs. 16, 18)."""
    if callable(error):
        given = error

        def user(lag: np.ndarray) -> np.ndarray:
            values = np.broadcast_to(np.asarray(given(lag), dtype=np.float64), np.shape(lag))
            if not np.all(np.isfinite(values)) or np.any(values < 0):
                raise ValueError("design_map: a user's weight w(λ) must be finite and >= 0.")
            return values

        return user, 1.0, "weighted"
    if error not in ERRORS:
        raise ValueError(f"design_map: error must be one of {ERRORS} or a function, got {error!r}.")
    if error == "relative":
        smallest = float(np.min(signature(np.linspace(0, span, 501))))
        if smallest <= 0:
            raise ValueError(
                "design_map: error='relative' divides by the signature, which falls to "
                f"{smallest:.3g} on [0, {span:.3g}]; it must stay positive there."
            )
        return lambda lag: 1 / signature(lag), 1.0, error
    if error == "absolute" and homogeneous:
        unit = high**gamma
        return lambda lag: unit * np.exp(-0.5 * gamma * lag), unit, error
    return lambda lag: np.ones(np.shape(lag)), 1.0, error
