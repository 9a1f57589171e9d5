"""Losses of a score η as a Newton method needs them: value, derivative and curvature.

A curvature may be an upper bound of the second derivative (the smoothed absolute losses): the
step then minimises a majorant, and cannot raise the objective. Close to the minimum less and less
of the bound is taken, and steps become Newton's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

_WIDTH = 0.003  # of the scale of the targets: where absolute losses are rounded off
_LEAST = 0.05  # dispersion of margins, at least
_MOST = 30.0  # |η| beyond which exp is not followed


@dataclass(frozen=True)
class Likelihood:
    """A loss ℓ(y, η); `dispersion` is φ of exp(−ℓ/φ) where that is known.

    Classifiers have y = ±1, the others numbers.
    """

    dispersion: float | None = None
    of_labels = False  # whether y is ±1
    link = "identity"  # "log": predictions are exp(η), and rows may have an exposure
    caution = 0.0  # share of an upper bound in the curvature; the rest is the second derivative
    # Of an estimated φ: losses of margins can all be zero, where curves separate few rows, or rows
    # of little weight. An estimate of zero would then take every wiggle for an effect.
    least_dispersion = 0.0

    def value(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """ℓ(y, η)."""
        raise NotImplementedError

    def derivatives(self, y: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First derivative by η, and the curvature."""
        raise NotImplementedError

    def start(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray) -> float:
        """An intercept to start from."""
        return float(np.average(y - offset, weights=weight))

    def after(self, whole: bool) -> Likelihood:
        """With the curvature for the next step, after a whole step or a shorter one."""
        return self

    def for_errors(self, total: float, value: float) -> Likelihood:
        """With the curvature that standard errors are told by, for so many rows and this loss."""
        return self

    def known_dispersion(self, total: float, bend: float) -> float | None:
        """φ from the number of rows and the sum of their curvatures; None: estimated."""
        return None

    def fault(self, y: np.ndarray) -> str | None:
        """What is wrong with targets, in words."""
        return None


@dataclass(frozen=True)
class Squared(Likelihood):
    """½(y − η)²."""

    def value(self, y, eta):
        return 0.5 * (y - eta) ** 2

    def derivatives(self, y, eta):
        return eta - y, np.ones_like(eta)


@dataclass(frozen=True)
class Logistic(Likelihood):
    """log(1 + exp(−yη))."""

    dispersion: float | None = 1.0
    of_labels = True

    def value(self, y, eta):
        margin = y * eta
        return np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)

    def derivatives(self, y, eta):
        wrong = expit(-y * eta)
        return -y * wrong, np.maximum(wrong * (1 - wrong), 1e-12)

    def start(self, y, weight, offset):
        share = np.clip(np.average(y > 0, weights=weight), 1e-6, 1 - 1e-6)
        return float(np.log(share / (1 - share)) - np.average(offset, weights=weight))


@dataclass(frozen=True)
class SquaredHinge(Likelihood):
    """max(0, 1 − yη)²."""

    of_labels = True
    least_dispersion = _LEAST

    def value(self, y, eta):
        return np.maximum(0.0, 1 - y * eta) ** 2

    def derivatives(self, y, eta):
        slack = 1 - y * eta
        return -2 * y * np.maximum(slack, 0.0), np.where(slack > 0, 2.0, 0.0)


@dataclass(frozen=True)
class Poisson(Likelihood):
    """exp(η) − yη: counts with a logarithmic link.

    Real counts vary more than Poisson's, and strengths chosen as if they did not follow the noise:
    the dispersion is estimated.
    """

    link = "log"

    def value(self, y, eta):
        return np.exp(np.clip(eta, -_MOST, _MOST)) - y * eta

    def derivatives(self, y, eta):
        mean = np.exp(np.clip(eta, -_MOST, _MOST))
        return mean - y, np.maximum(mean, 1e-12)

    def start(self, y, weight, offset):
        rate = np.average(y, weights=weight) / np.average(np.exp(offset), weights=weight)
        return float(np.log(max(rate, 1e-12)))

    def fault(self, y):
        if y.min(initial=0.0) < 0:
            return "loss='poisson' needs y >= 0"
        return None if y.any() else "loss='poisson' needs some y > 0"


@dataclass(frozen=True)
class Gamma(Likelihood):
    """y·exp(−η) + η: positive targets whose spread grows with their mean, logarithmic link."""

    link = "log"

    def value(self, y, eta):
        return y * np.exp(-np.clip(eta, -_MOST, _MOST)) + eta

    def derivatives(self, y, eta):
        ratio = y * np.exp(-np.clip(eta, -_MOST, _MOST))
        # Fisher's expected curvature, 1: the observed one vanishes where y is small.
        return 1 - ratio, np.ones_like(eta)

    def start(self, y, weight, offset):
        return float(np.log(np.average(y * np.exp(-offset), weights=weight)))

    def fault(self, y):
        return None if (y > 0).all() else "loss='gamma' needs y > 0"


@dataclass(frozen=True)
class Rounded(Likelihood):
    """Losses made of ½√(t² + ε²), whose second derivative nearly vanishes for |t| > ε.

    Attributes
    ----------
    width : float
        ε.
    caution : float
        Share of the upper bound in the curvature; the rest is the second derivative itself.
    """

    width: float = 1.0
    caution: float = 1.0

    def after(self, whole):
        return replace(self, caution=self.caution / 10 if whole else min(1.0, 100 * self.caution))

    def for_errors(self, total, value):
        return replace(self, caution=1.0)

    def bend(self, size: np.ndarray) -> np.ndarray:
        """Curvature of ½√(t² + ε²), from the square root."""
        bound = 0.5 / size
        if self.caution == 1.0:
            return bound
        return bound * (self.caution + (1 - self.caution) * (self.width / size) ** 2)


@dataclass(frozen=True)
class Quantile(Rounded):
    """½√(r² + ε²) + (q − ½)r of r = y − η: the pinball loss, rounded off within ε of zero.

    Its estimates have the variance q(1 − q)/nf² for a density f of the residuals at zero, which
    the mean curvature estimates, if it is rounded off more widely (Powell 1991): so much that the
    estimate is as variable as the share of rows between the quantiles q ± h of the residuals. h is
    the bandwidth of Hall and Sheather (1988) for 95 % intervals, and the distance of the quantiles
    that of a normal variable with the same mean loss, σφ(z_q).
    """

    quantile: float = 0.5

    def for_errors(self, total, value):
        q, total = self.quantile, max(total, 1.0)
        z = float(ndtri(q))
        height = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        h = (1.5 * (ndtri(0.975) * height) ** 2 / (2 * z**2 + 1) / total) ** (1 / 3)
        h = min(h, 0.5 * q, 0.5 * (1 - q))
        between = float(ndtri(q + h) - ndtri(q - h)) * value / total / height
        # ∫K² of the curvature is 3π/32 over its width, that of a share is one over the distance.
        return replace(self, caution=0.0, width=max(3 * np.pi / 32 * between, self.width))

    def known_dispersion(self, total, bend):
        return self.quantile * (1 - self.quantile) * total / bend

    def value(self, y, eta):
        r = y - eta
        return 0.5 * np.hypot(r, self.width) + (self.quantile - 0.5) * r

    def derivatives(self, y, eta):
        r = y - eta
        size = np.hypot(r, self.width)
        return -(0.5 * r / size + self.quantile - 0.5), self.bend(size)

    def start(self, y, weight, offset):
        return float(_quantiles(y - offset, weight, self.quantile)[0])


@dataclass(frozen=True)
class EpsilonInsensitive(Rounded):
    """max(0, |r| − e) = ½|r − e| + ½|r + e| − e, both rounded off."""

    epsilon: float = 0.1

    def _sizes(self, r):
        return np.hypot(r - self.epsilon, self.width), np.hypot(r + self.epsilon, self.width)

    def value(self, y, eta):
        r = y - eta
        above, below = self._sizes(r)
        return 0.5 * (above + below) - self.epsilon

    def derivatives(self, y, eta):
        r = y - eta
        above, below = self._sizes(r)
        slope = 0.5 * ((r - self.epsilon) / above + (r + self.epsilon) / below)
        return -slope, self.bend(above) + self.bend(below)


@dataclass(frozen=True)
class Hinge(Rounded):
    """max(0, 1 − yη), rounded off: ½√(s² + ε²) + ½s of s = 1 − yη."""

    width: float = _WIDTH
    of_labels = True
    least_dispersion = _LEAST

    def value(self, y, eta):
        slack = 1 - y * eta
        return 0.5 * np.hypot(slack, self.width) + 0.5 * slack

    def derivatives(self, y, eta):
        slack = 1 - y * eta
        size = np.hypot(slack, self.width)
        return -y * (0.5 * slack / size + 0.5), self.bend(size)


LOSSES: dict[str, type[Likelihood]] = {
    "squared_error": Squared, "log_loss": Logistic, "squared_hinge": SquaredHinge, "hinge": Hinge,
    "epsilon_insensitive": EpsilonInsensitive, "absolute_error": Quantile, "quantile": Quantile,
    "poisson": Poisson, "gamma": Gamma,
}  # fmt: skip
"""All losses of tables by name; estimators, exports and messages find a loss and its link here."""


def likelihood(
    loss: str, y: np.ndarray, weight: np.ndarray | None = None, *,
    quantile: float = 0.5, epsilon: float = 0.1,
) -> Likelihood:  # fmt: skip
    """The loss of a name, with its widths set by the spread of the targets."""
    kind = LOSSES[loss]
    if kind not in (Quantile, EpsilonInsensitive):
        return kind()
    width = _WIDTH * _spread(y, np.ones(len(y)) if weight is None else weight)
    if kind is EpsilonInsensitive:
        return EpsilonInsensitive(epsilon=epsilon, width=width)
    level = 0.5 if loss == "absolute_error" else quantile
    return Quantile(quantile=level, width=width)


def _spread(y: np.ndarray, weight: np.ndarray) -> float:
    """Distance of the quartiles, else the mean distance from the median; next to none for a single
    value, so that it is predicted.
    """
    (low, middle, high), total = _quantiles(y, weight, np.array([0.25, 0.5, 0.75]))
    distance = weight @ np.abs(y - middle) / max(total, 1e-300)
    return float((high - low) or distance or 1e-6 * (abs(middle) or 1.0))


def _quantiles(y: np.ndarray, weight: np.ndarray, shares: Any) -> tuple[Any, float]:
    """Numbers that these shares of the weight lie below, or at, and the sum of the weights."""
    order = np.argsort(y, kind="stable")
    reached = np.cumsum(weight[order])
    place = np.searchsorted(reached, shares * reached[-1])
    return y[order[np.minimum(place, len(y) - 1)]], reached[-1]
