r"""The skewed χ² kernel of Li, Ionescu and Sminchisescu (2010), and the sech kernel behind it.

.. math:: k(x, y) = \prod_d \frac{2\sqrt{(x_d + c)(y_d + c)}}{x_d + y_d + 2c}
          = \prod_d \operatorname{sech}\frac{\log(x_d + c) - \log(y_d + c)}{2}

is stationary in log(x + c), and its spectrum has the density sech(πω) in each coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._util.arguments import check_positive
from .._util.sparse import dense
from .base import Rows, UnitDiagonal
from .homogeneous import chi2
from .stationary import StationaryKernel, float_differences


@dataclass(frozen=True)
class Sech(StationaryKernel):
    """Hyperbolic secant kernel Π_d sech((x_d − y_d) / (2 s)).

    Each ω_d has the density s sech(π s ω). On logarithms it is the product of χ² kernels of ratios:
    see `SkewedChi2`.

    Parameters
    ----------
    scale : float
        Length scale s > 0.
    """

    scale: float = 1.0
    name = "sech"

    def signature(self, delta: np.ndarray) -> np.ndarray:
        xp, delta = float_differences(delta)
        small = xp.exp(-xp.abs(delta) / (2 * self.scale))  # the half that does not overflow
        return 2 * small / (1 + small * small)

    def frequencies(self, uniforms: np.ndarray, d: int) -> np.ndarray:
        return np.log(np.tan(np.pi / 2 * uniforms)) / (np.pi * self.scale)

    def length_at(self, distance: float) -> float:
        return distance / 2  # the Gaussian of the same curvature at 0 has σ = 2 s

    def length_of_variance(self, variance: float, d: int) -> float:
        return self.length_at(super().length_of_variance(variance, d))

    def second_moment(self, d: int) -> float:
        return d / (4 * self.scale**2)


@dataclass(frozen=True)
class SkewedChi2(UnitDiagonal):
    """Skewed χ² kernel Π_d 2 √((x_d + c)(y_d + c)) / (x_d + y_d + 2c), for values >= 0.

    Parameters
    ----------
    skewedness : float
        c > 0, as in scikit-learn's `SkewedChi2Sampler`.
    """

    skewedness: float = 1.0
    name = "skewed_chi2"
    isotropic = False
    non_negative = True

    def __post_init__(self) -> None:
        check_positive(self, "skewedness", self.skewedness)

    def with_parameter(self, value: float) -> Self:
        return replace(self, skewedness=value)

    def frequencies(self, uniforms: np.ndarray, d: int) -> np.ndarray:
        """Transform uniform numbers into frequencies of log(x + c).

        Parameters
        ----------
        uniforms : ndarray of shape (n, d)
            Numbers in (0, 1).
        d : int
            Number of features.

        Returns
        -------
        ndarray of shape (n, d)
            Frequencies.
        """
        return Sech().frequencies(uniforms, d)

    def sample_frequencies(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent frequencies of log(x + c).

        Parameters
        ----------
        n : int
            Number of frequencies.
        d : int
            Number of features.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        ndarray of shape (n, d)
            Frequencies.
        """
        return Sech().sample_frequencies(n, d, rng)

    def _check_values(self, X: Any, name: str) -> None:
        chi2._check_values(X, name)

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        left, right = (None if rows is None else self._logarithms(rows) for rows in (X, Y))
        return Sech()._gram(left, right, n_jobs).astype(X.dtype, copy=False)

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        c = self.skewedness
        return Sech()._gram_array_api(xp, xp.log(X + c), xp.log(Y + c))

    def _logarithms(self, X: Rows) -> np.ndarray:
        return np.log(dense(X).astype(np.float64) + self.skewedness)
