r"""A prior on smoothing parameters, which keeps many terms from fitting the noise of few rows.

Each smoothing parameter stands for a variance that is estimated. With nearly as many of them as
rows, many small functions explain noise as well as noise does: the dispersion goes to zero. The
prior prefers the simpler explanation. With :math:`σ_j` the standard deviation of a term's function
relative to the noise of a row, it is exponential (Simpson et al. 2017, *Penalising model component
complexity*), with a rate that grows with the number m of smoothing parameters:

.. math:: -\log p = \log(1 + κσ_c) + κ\sum_{\text{lines}} (σ_j - σ_c) + κ\sum_{\text{curves}} σ_j,
          \qquad κ = \frac{2m}{\sqrt n}, \qquad σ_j ≥ σ_c \text{ for lines}.

In units of the standard error of a line, :math:`1/\sqrt n`, the rate is 2m/n: next to nothing where
there are many rows for each smoothing parameter. Straight lines share the variance
:math:`σ_c^2`, which is nearly free, also if it is large, as it is for collinear columns: a model
without curves is a ridge regression, and the linear part of a term is the last to vanish.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class PriorOptions:
    """Constants of the prior, chosen by the errors of predictions in simulations.

    These had no effects, one, three curved ones and a hundred linear ones, with one to ten rows for
    each column (`benchmarks/bench_wide.py`).
    """

    # Rate in units of the standard error of a line, for each smoothing parameter per row: of 0.5, 1
    # and 2, the one with the lowest errors of tables with few rows; with many, all are the same.
    rate: float = 2.0
    # Largest rate. A line with a t-statistic of about twice that survives: with a rate of 2, terms
    # fit noise where columns are four times the rows; with 8, effects as large as the noise vanish.
    max_rate: float = 3.0


PRIOR = PriorOptions()


@dataclass(frozen=True)
class SmoothingPrior:
    """The prior of some smoothing parameters.

    Attributes
    ----------
    variance : ndarray
        Variance of the functions of each smoothing parameter λ = 1, relative to the noise's.
    shared : ndarray of bool
        Which of them are those of straight lines.
    total : int
        Smoothing parameters of the whole model.
    curvature : float, optional
        Sum of the working weights, if problems do not have it as the square of the intercept.
    """

    variance: np.ndarray
    shared: np.ndarray
    total: int
    curvature: float | None = None

    def restricted(self, groups: np.ndarray) -> SmoothingPrior:
        """The prior of some of the smoothing parameters, in the same model."""
        return replace(self, variance=self.variance[groups], shared=self.shared[groups])

    def rate(self, n_rows: float, curvature: float) -> float:
        """Rate of the exponential distribution of σ.

        `curvature` is the sum of the working weights, which is n for squared loss.
        """
        curvature = self.curvature or curvature
        return min(PRIOR.rate * self.total / n_rows, PRIOR.max_rate) * float(np.sqrt(curvature))

    def coordinates(
        self, free: np.ndarray, n_rows: float, curvature: float
    ) -> SmoothingCoordinates:
        """Coordinates for the smoothing parameters that are estimated."""
        return SmoothingCoordinates(self.offset, self.shared & free, self.rate(n_rows, curvature))

    @property
    def offset(self) -> np.ndarray:
        """ρ of a function whose standard deviation is one."""
        return np.log(np.maximum(self.variance, 1e-300))


@dataclass(frozen=True)
class SmoothingCoordinates:
    r"""Smoothing parameters as :math:`ρ_j = o_j + θ_j + θ_c [j \text{ is shared}]`.

    :math:`θ_j ≤ 0` for those that share :math:`θ_c`, the last coordinate: none of their functions
    varies less than the shared variance allows.

    Attributes
    ----------
    offset : ndarray
        o, for which σ = exp(−(ρ − o) / 2).
    shared : ndarray of bool
    rate : float
    """

    offset: np.ndarray
    shared: np.ndarray
    rate: float

    def of_rho(self, rho: np.ndarray) -> np.ndarray:
        """θ for some ρ."""
        theta = rho - self.offset
        common = theta[self.shared].max(initial=-np.inf)
        theta[self.shared] -= common
        return np.append(theta, common) if self.shared.any() else theta

    def to_rho(self, theta: np.ndarray) -> np.ndarray:
        """ρ for some θ."""
        rho = self.offset + theta[: len(self.offset)]
        if self.shared.any():
            rho[self.shared] += theta[-1]
        return rho

    def extended(self, free: np.ndarray) -> np.ndarray:
        """Which coordinates move if these smoothing parameters are estimated."""
        return np.append(free, True) if self.shared.any() else free

    def bounds(self, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of θ that are those of ρ."""
        lowest, highest = low - self.offset, high - self.offset
        if not self.shared.any():
            return lowest, highest
        offsets = self.offset[self.shared]
        common = low - offsets.min(), high - offsets.max()
        lowest[self.shared], highest[self.shared] = common[0] - common[1], 0.0
        return np.append(lowest, common[0]), np.append(highest, common[1])

    def _costs(self, rho: np.ndarray) -> tuple[np.ndarray, float]:
        """rate · σ of each smoothing parameter, and rate · σ_c."""
        costs = self.rate * np.exp(-0.5 * (rho - self.offset))
        return costs, float(costs[self.shared].min(initial=np.inf)) if self.shared.any() else 0.0

    def cost(self, rho: np.ndarray) -> float:
        """−log p."""
        costs, common = self._costs(rho)
        return float(costs.sum() - self.shared.sum() * common + np.log1p(common))

    def curvature(self, rho: np.ndarray) -> np.ndarray:
        """Second derivatives of −log p by each ρ, for a shared variance that stays."""
        return 0.25 * self._costs(rho)[0]

    def gradient(self, rho: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Derivatives by θ of −log p plus a function with this gradient by ρ."""
        costs, common = self._costs(rho)
        out = gradient - 0.5 * costs
        if not self.shared.any():
            return out
        by_common = self.shared.sum() * common - common / (1 + common)
        return np.append(out, out[self.shared].sum() + 0.5 * by_common)

    def hessian(self, rho: np.ndarray, hessian: np.ndarray) -> np.ndarray:
        """Second derivatives by θ of −log p plus a function with these ones by ρ."""
        costs, common = self._costs(rho)
        out = hessian + np.diag(0.25 * costs)
        if not self.shared.any():
            return out
        border = out[:, self.shared].sum(axis=1)
        by_common = self.shared.sum() * common - common / (1 + common) ** 2
        corner = float(border[self.shared].sum()) - 0.25 * by_common
        return np.block([[out, border[:, None]], [border, np.array([[corner]])]])
