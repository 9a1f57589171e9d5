r"""Prediction intervals: by a distribution, and by residuals of rows that a model does not know.

With ends :math:`l(x), u(x)` of an interval, a scale w(x) and n further rows, the corrected interval
is

.. math:: [\, l - w\,Q((l_i - y_i)/w_i),\; u + w\,Q((y_i - u_i)/w_i) \,],

Q the k-th smallest of the numbers of these rows, :math:`k = ⌈(n + 1)(1 - α/2)⌉`. If new rows are
drawn as these were, it covers a new observation with a probability of at least 1 − α, whatever the
model (Romano, Patterson and Candès 2019, theorem 2). It corrects intervals that are too wide, too.
w is the width of an interval, so that rows of a large mean or exposure are corrected by more; one
where it is zero: for a quantile loss, whose interval is a prediction twice.

Without further rows, the intervals of a quantile loss take leave-one-out residuals of the training
rows (the jackknife). Without row i, a Newton step from the fit moves its prediction by

.. math:: c_iℓ'_i \, v_i / (1 - c_i b_i v_i), \qquad v_i = z_i^\top H^{-1} z_i,

with its weight c, the mean curvature b of the losses and the Hessian H of the penalised ones: no
model is fitted again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Loss

MAX_QUANTILES = 999  # of residuals that a model has: levels up to 0.998
_MAX_LEVERAGE = 0.99  # of a row that is left out: with 1, the others say nothing about it


def distribution_interval(distribution: Any, level: float) -> np.ndarray:
    """Intervals (n_samples, 2) of observations of a distribution, with equal tails.

    The ends of counts have probabilities. The end that is less probable is left out, if what
    remains has the level: the excess over the level is then at most its probability.
    """
    tail = (1 - level) / 2
    low, high = distribution.ppf(tail), distribution.ppf(1 - tail)
    if hasattr(distribution.dist, "pmf"):
        at_low, at_high = distribution.pmf(low), distribution.pmf(high)
        covered = distribution.cdf(high) - distribution.cdf(low) + at_low
        spare = (covered - np.minimum(at_low, at_high) >= level) & (high > low)
        low, high = low + (spare & (at_low <= at_high)), high - (spare & (at_low > at_high))
    return np.column_stack([low, high])


def conformal_interval(
    interval: np.ndarray, of_calibration: np.ndarray, y: np.ndarray, level: float, owner: str,
    which: str = "rows of calibration",
) -> np.ndarray:  # fmt: skip
    """Correct intervals (n_samples, 2) by those of other rows and their targets."""
    n, tail = len(y), (1 - level) / 2
    rank = int(np.ceil((n + 1) * (1 - tail) - 1e-9))
    if rank > n:
        raise ValueError(
            f"{owner}: {n} {which} are too few for a level of {level:g}: pass "
            f"{int(np.ceil(1 / tail - 1e-9)) - 1} or more."
        )
    scale, of_rows = _scale(interval), _scale(of_calibration)
    below, above = (of_calibration[:, 0] - y) / of_rows, (y - of_calibration[:, 1]) / of_rows
    lower = interval[:, 0] - scale * np.partition(below, rank - 1)[rank - 1]
    upper = interval[:, 1] + scale * np.partition(above, rank - 1)[rank - 1]
    return np.column_stack([np.minimum(lower, upper), np.maximum(lower, upper)])


def _scale(interval: np.ndarray) -> np.ndarray:
    """Widths of intervals; one where they are zero."""
    width = interval[:, 1] - interval[:, 0]
    return np.where(width > 0, width, 1.0)


def leave_one_out_residuals(
    loss: Loss, y: np.ndarray, eta: np.ndarray, errors: np.ndarray, weight: np.ndarray,
    dispersion: float,
) -> np.ndarray:  # fmt: skip
    """Residuals of the training rows, each of a model without its row, to first order.

    `errors` are the standard errors of the scores `eta`, `weight` is in units of the fit.
    """
    variance = errors**2 / dispersion
    gradient, _ = loss.derivatives(y, eta)
    leverage = weight * loss.expected_curvature(y, eta, dispersion) * variance
    moved = weight * gradient * variance / (1 - np.minimum(leverage, _MAX_LEVERAGE))
    return y - (eta + moved)


def residual_quantiles(residuals: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Quantiles k/(m + 1) of residuals, k = 1 … m, for the effective number m of rows (Kish).

    Of rows of equal weights, up to `MAX_QUANTILES` of them, these are all residuals, sorted.
    """
    order = np.argsort(residuals, kind="stable")
    reached = np.cumsum(weight[order])
    n_effective = int(reached[-1] ** 2 / np.sum(weight**2) + 1e-9)
    m = min(n_effective, MAX_QUANTILES)
    place = np.searchsorted(reached, reached[-1] * np.arange(1, m + 1) / (m + 1))
    return residuals[order[np.minimum(place, len(order) - 1)]]
