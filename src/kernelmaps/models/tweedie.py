r"""The Tweedie distribution with a power in (1, 2): a Poisson number of gamma amounts, and zeros.

With mean μ, dispersion φ and power p, the variance is :math:`φμ^p`. The number of amounts has the
mean :math:`λ = μ^{2-p}/(φ(2-p))`, each has the shape :math:`a = (2-p)/(p-1)` and the scale
:math:`φ(p-1)μ^{p-1}`. The density at y > 0 is

.. math:: \frac1y \exp\Big(\frac{1}{φ}\Big(\frac{yμ^{1-p}}{1-p} - \frac{μ^{2-p}}{2-p}\Big)\Big)
          \sum_{j ≥ 1} \frac{e^{jt}}{j!\,Γ(ja)}, \qquad
          t = a\log\frac{y}{p-1} - (1+a)\log φ - \log(2-p)

(Dunn and Smyth 2005). By Stirling's formula, the sum is about
:math:`\exp(j(1+a))\sqrt{ja/(2π(1+a))}` for the largest term, :math:`\log j = (t - a\log a)/(1+a)`.
What this leaves is a smooth function of t alone, of the size 1/j: it is computed on a grid.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._util.lazy import scipy

# The largest j whose sum is computed, and terms of it: those beyond are below e⁻³⁷ of the largest.
# The correction of Stirling's formula is 10⁻³ there, and falls with 1/j.
_LARGEST, _TERMS = 100, 250
_STEP = 0.25  # of t, on the grid: the spline is off by 10⁻⁶
_ROUNDING = -37.0  # logarithm of a term, relative to another one, that rounding hides
_STANDARD_DEVIATIONS = 8.0  # of the number of amounts around its mean, that sums over it take
_BLOCK = 1 << 20  # numbers that are in memory at a time


def log_normalizer(y: np.ndarray, dispersion: Any, power: float) -> np.ndarray:
    """Logarithm of the factor of the density that the mean is not in; 0 at y = 0."""
    result = np.zeros(len(y))
    positive = y > 0
    y, dispersion = y[positive], np.broadcast_to(dispersion, result.shape)[positive]
    a = (2 - power) / (power - 1)
    t = a * np.log(y / (power - 1)) - (1 + a) * np.log(dispersion) - np.log(2 - power)
    result[positive] = _log_series(t, a) - np.log(y)
    return result


def _log_series(t: np.ndarray, a: float) -> np.ndarray:
    """The logarithm of the sum over j."""
    gammaln = scipy.special.gammaln
    log_terms = t - gammaln(a)
    # Below the first of these, one term is all; beyond the last, Stirling's formula is nearly.
    begin = gammaln(2 * a) - gammaln(a) + np.log(2) + _ROUNDING
    end = max((1 + a) * np.log(_LARGEST) + a * np.log(a), begin + _STEP)
    nodes = np.linspace(begin, end, max(int((end - begin) / _STEP), 4))
    j = np.arange(1, _TERMS + 1)
    exponents = nodes[:, None] * j - gammaln(j + 1) - gammaln(j * a)
    exact = scipy.special.logsumexp(exponents, axis=1)
    correction = scipy.interpolate.CubicSpline(nodes, exact - _stirling(nodes, a))
    inside = np.clip(t, begin, end)
    many = _stirling(t, a) + correction(inside) * np.exp((inside - t) / (1 + a))
    return np.where(t < begin, log_terms, many)


def _stirling(t: np.ndarray, a: float) -> np.ndarray:
    log_j = (t - a * np.log(a)) / (1 + a)
    return np.exp(log_j) * (1 + a) + 0.5 * (log_j + np.log(a / (2 * np.pi * (1 + a))))


class TweedieDistribution(NamedTuple):
    """The distribution of rows with these means and dispersions.

    The methods are those of distributions of scipy.stats.
    """

    mean: np.ndarray
    dispersion: np.ndarray
    power: float

    @property
    def rate(self) -> np.ndarray:
        """Mean number of amounts."""
        return self.mean ** (2 - self.power) / (self.dispersion * (2 - self.power))

    @property
    def shape(self) -> float:
        """Shape of the gamma distribution of an amount."""
        return (2 - self.power) / (self.power - 1)

    @property
    def scale(self) -> np.ndarray:
        """Scale of the gamma distribution of an amount."""
        return self.dispersion * (self.power - 1) * self.mean ** (self.power - 1)

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        """Logarithm of the density, and of the probability of 0."""
        p, mean = self.power, self.mean
        kernel = y * mean ** (1 - p) / (1 - p) - mean ** (2 - p) / (2 - p)
        return kernel / self.dispersion + log_normalizer(y, self.dispersion, p)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Probability of at most y."""
        return _cdf(np.asarray(y) / self.scale, self.rate, self.shape)

    @property
    def zeros(self) -> np.ndarray:
        """Probability of 0."""
        return np.exp(-self.rate)

    def ppf(self, q: Any) -> np.ndarray:
        """Quantiles."""
        from scipy.optimize import elementwise

        rate, shape = self.rate, self.shape
        q = np.broadcast_to(q, rate.shape)
        above = np.flatnonzero(np.exp(-rate) < q)
        quantiles = np.zeros(len(rate))
        rate, q = rate[above], q[above]
        # The logarithm is sought: its bounds are far beyond all quantiles.
        middle = np.log(rate * shape) + 0 * q
        root = elementwise.find_root(
            lambda u, rate, q: _cdf(np.exp(u), rate, shape) - q,
            (middle - 60.0 / min(shape, 1.0), middle + 10.0 + np.log1p(1 / rate)),
            args=(rate, q), tolerances={"xatol": 1e-6},
        )  # fmt: skip
        quantiles[above] = np.exp(root.x)
        return quantiles * self.scale

    def rvs(self, random_state: np.random.Generator) -> np.ndarray:
        """Draw an observation of each row."""
        number = random_state.poisson(self.rate)
        return (
            self.scale * random_state.gamma(np.maximum(number * self.shape, 1e-300)) * (number > 0)
        )


def _cdf(z: np.ndarray, rate: np.ndarray, shape: float) -> np.ndarray:
    """Of amounts with scale 1: a sum over their number."""
    result, order = np.empty(len(rate)), np.argsort(rate)
    n_terms = 2 * _STANDARD_DEVIATIONS * np.sqrt(rate[order]) + 20
    ends = np.floor(np.cumsum(n_terms) / _BLOCK)
    for rows in np.split(order, np.flatnonzero(np.diff(ends)) + 1):
        spread = _STANDARD_DEVIATIONS * np.sqrt(rate[rows])
        begin = np.maximum(np.floor(rate[rows] - spread), 1.0)
        j = begin[:, None] + np.arange(int(2 * spread.max(initial=0.0)) + 20)
        means = rate[rows][:, None]
        number = np.exp(j * np.log(means) - means - scipy.special.gammaln(j + 1))
        amounts = scipy.special.gammainc(j * shape, z[rows][:, None])
        result[rows] = np.exp(-rate[rows]) + np.sum(number * amounts, axis=1)
    return np.minimum(result, 1.0)
