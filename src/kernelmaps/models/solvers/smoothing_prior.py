r"""A prior on smoothing parameters, which keeps many terms from fitting the noise of few rows.

Each smoothing parameter stands for a variance that is estimated. With nearly as many of them as
rows, many small functions explain noise as well as noise does: the dispersion goes to zero. And the
variance of a line is estimated from a single coefficient: of many small effects, those that chance
makes smaller would vanish. The prior prefers the simpler explanation. With :math:`σ_j` the standard
deviation of a term's function relative to the noise of a row, and m smoothing parameters,

.. math:: -\log p = \log(1 + κσ_c) + \sum_{\text{lines}} (g_1(σ_j) - g_1(σ_c))
          + \sum_{\text{curves}} g_w(σ_j), \qquad g_w(σ) = w\log(1 + \sqrt n σ) + κσ,

.. math:: κ = \frac{2m}{\sqrt n}, \qquad w = \min\Bigl(\frac{10m}{n}, 1\Bigr),
          \qquad σ_j ≥ σ_c \text{ for lines}.

The first part of g is uniform in σ below the standard error of a line, :math:`1/\sqrt n`, and in
log σ above: a function that the data hardly show has to earn its place, and large ones stay as they
are. The second part is exponential (Simpson et al. 2017, *Penalising model component complexity*).
In standard errors, its rate is 2m/n. For curves, both parts are next to nothing with many
rows for each smoothing parameter. Straight lines share the variance :math:`σ_c^2`, which is nearly
free, also if it is large, as it is for collinear columns. So a model without curves is a ridge
regression, a line has a larger variance if the data clearly show it, and the linear part of a term
is the last to vanish.
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
    # w for each smoothing parameter per row, up to one. Of 0, 5, 10 and 20 in simulations of
    # linear effects (100 to 400 rows, 8 columns), 10 and 20 are within about two standard errors of
    # a linear model and of each other. Errors of curves hardly differ, and with w = 1 for any
    # number of rows, bands of weak curves cover too little.
    curve_weight: float = 10.0


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
        root_weight = float(np.sqrt(self.curvature or curvature))
        rate = self.rate(n_rows, curvature)
        return SmoothingCoordinates(
            self.offset, self.shared & free, rate, root_weight, self.curve_weight(n_rows)
        )

    def curve_weight(self, n_rows: float) -> float:
        """The weight w of log(1 + √nσ) for curves."""
        return min(PRIOR.curve_weight * self.total / n_rows, 1.0)

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
        κ.
    root_weight : float
        √n; in working problems, n is the sum of the weights.
    curve_weight : float
        w.
    """

    offset: np.ndarray
    shared: np.ndarray
    rate: float
    root_weight: float = 0.0
    curve_weight: float = 0.0

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

    def _costs(self, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """g of each smoothing parameter, and its first and second derivative by ρ."""
        deviation = np.exp(-0.5 * (rho - self.offset))
        exponential, in_errors = self.rate * deviation, self.root_weight * deviation
        weight = np.where(self.shared, 1.0, self.curve_weight)
        share = weight * in_errors / (1 + in_errors)
        value = weight * np.log1p(in_errors) + exponential
        return value, -0.5 * (share + exponential), 0.25 * (share / (1 + in_errors) + exponential)

    def _common(self, rho: np.ndarray) -> tuple[int, float]:
        """A line that has the shared variance, and κσ_c."""
        shared, relative = np.flatnonzero(self.shared), rho - self.offset
        line = int(shared[np.argmax(relative[shared])])
        return line, self.rate * float(np.exp(-0.5 * relative[line]))

    def cost(self, rho: np.ndarray) -> float:
        """−log p."""
        value, _, _ = self._costs(rho)
        if not self.shared.any():
            return float(value.sum())
        line, common = self._common(rho)
        return float(value.sum() - self.shared.sum() * value[line] + np.log1p(common))

    def curvature(self, rho: np.ndarray) -> np.ndarray:
        """Second derivatives of −log p by each ρ, for a shared variance that stays."""
        return self._costs(rho)[2]

    def gradient(self, rho: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Derivatives by θ of −log p plus a function with this gradient by ρ."""
        slope = self._costs(rho)[1]
        out = gradient + slope
        if not self.shared.any():
            return out
        line, common = self._common(rho)
        by_common = self.shared.sum() * slope[line] + 0.5 * common / (1 + common)
        return np.append(out, out[self.shared].sum() - by_common)

    def hessian(self, rho: np.ndarray, hessian: np.ndarray) -> np.ndarray:
        """Second derivatives by θ of −log p plus a function with these ones by ρ."""
        curvature = self._costs(rho)[2]
        out = hessian + np.diag(curvature)
        if not self.shared.any():
            return out
        line, common = self._common(rho)
        border = out[:, self.shared].sum(axis=1)
        by_common = self.shared.sum() * curvature[line] - 0.25 * common / (1 + common) ** 2
        corner = float(border[self.shared].sum()) - by_common
        return np.block([[out, border[:, None]], [border, np.array([[corner]])]])
