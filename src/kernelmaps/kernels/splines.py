r"""The B-spline kernel: a product over features of B-splines, zero beyond a distance.

B_n is the n-fold convolution of the indicator of [−½, ½] with itself, a piecewise polynomial with
the Fourier transform :math:`(\sin(ω/2)/(ω/2))^{n+1}`. For odd n that is a density, and
κ(δ) = B_n(δ)/B_n(0) is positive definite. In several dimensions the kernel is the product over
features. (Chang et al. 2016 name the B-spline kernel as an isotropic example. B_n(‖x − y‖) is not
positive definite in three or more dimensions: in three, its spectrum at ω is −F'(ω)/(2πω) with the
transform F above, which is negative wherever F rises, and a kernel of more dimensions is one of
three. In two, the spectrum of n = 3 and 5 is negative in places, too, by numerical integration.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb, factorial

import numpy as np

from .._util.arguments import check_count
from .stationary import StationaryKernel, float_differences

_MOST = 15  # degrees: the sum of truncated powers loses digits beyond
# Of the table of the spectrum's distribution: periods of its zeros, and points in each. Beyond,
# less than 1e-7 of the mass is left (degree 3); between points the density is taken as constant,
# which changes κ by less than (2π/256)²/12.
_PERIODS, _POINTS = 64, 256


@dataclass(frozen=True)
class BSpline(StationaryKernel):
    """B-spline kernel Π_d B_n((x_d − y_d)/s) / B_n(0) of odd degree n, with compact support.

    Parameters
    ----------
    degree : int
        n, an odd number from 3 to 15. The kernel has n − 1 continuous derivatives, and is zero
        where features differ by (n + 1)/2 · s or more.
    scale : float
        Length scale s > 0, the distance of the knots.
    """

    degree: int = 3
    scale: float = 1.0
    name = "bspline"

    def __post_init__(self) -> None:
        super().__post_init__()
        degree = check_count(self, "degree", self.degree, 3)
        if degree % 2 == 0 or degree > _MOST:
            reason = "the spectrum of even degrees has negative parts"
            if degree > _MOST:
                reason = f"values of degrees above {_MOST} lose too many digits"
            raise ValueError(
                f"BSpline: degree must be an odd number from 3 to {_MOST}, got {degree}: {reason}."
            )

    def signature(self, delta: np.ndarray) -> np.ndarray:
        _, delta = float_differences(delta)
        return _spline(self.degree, delta / self.scale) / _peak(self.degree)

    def frequencies(self, uniforms: np.ndarray, d: int) -> np.ndarray:
        omega, share = _distribution(self.degree)
        centred = 2 * uniforms - 1
        return np.sign(centred) * np.interp(np.abs(centred), share, omega) / self.scale

    def length_at(self, distance: float) -> float:
        # That of the Gaussian with the same curvature at 0.
        return float(distance * np.sqrt(self._curvature))

    def length_of_variance(self, variance: float, d: int) -> float:
        return self.length_at(super().length_of_variance(variance, d))

    def second_moment(self, d: int) -> float:
        return d * self._curvature / self.scale**2

    @property
    def _curvature(self) -> float:
        """−κ''(0) for s = 1; the second derivative of B_n is a second difference of B_{n−2}."""
        differences = _spline(self.degree - 2, np.array([-1.0, 0.0, 1.0])) @ [1, -2, 1]
        return float(-differences / _peak(self.degree))


def _spline(degree: int, x: np.ndarray) -> np.ndarray:
    """B_n(x): truncated powers from the nearer end, of which the last ones vanish."""
    end = (degree + 1) / 2 - abs(x)
    total = 0.0 * x
    for k in range((degree + 1) // 2 + 1):
        part = end - k
        truncated = (part + abs(part)) / 2
        total = total + (-1) ** k * comb(degree + 1, k) * truncated**degree
    return total / factorial(degree)


@lru_cache
def _peak(degree: int) -> float:
    return float(_spline(degree, np.zeros(1))[0])


@lru_cache
def _distribution(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies, and the share of the spectrum with a smaller modulus, for s = 1."""
    omega = np.linspace(0, 2 * np.pi * _PERIODS, _PERIODS * _POINTS + 1)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    step = omega[1]
    at = omega[:-1, None] + step * (nodes + 1) / 2
    mass = (np.sinc(at / (2 * np.pi)) ** (degree + 1)) @ weights
    share = np.concatenate([[0.0], np.cumsum(mass)])
    return omega, share / share[-1]
