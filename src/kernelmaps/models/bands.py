r"""Critical values of bands around an estimated function, for single points or all at once.

An estimate :math:`\hat f(x)` with normal errors and the standard errors s(x) has the band
:math:`\hat f ± c s`. The t distribution gives c for single points. For all points at once c is that
of Weyl's tube formula (Sun and Loader 1994; of penalised splines, Krivobokova, Kneib and Claeskens
2010): with :math:`κ` the length of the path that the errors, scaled to unit variance, take along x,
and ν residual degrees of freedom,

.. math:: P(\max_x |\hat f - f|/s > c) ≈ \frac{κ}{π} (1 + c^2/ν)^{-ν/2} + P(|t_ν| > c) .

The angle between neighbours on that path is the arc cosine of the correlation of their errors. A
function that is given at m points needs no more than Bonferroni's c, of level (1 − p)/m.
"""

from __future__ import annotations

import numpy as np
import scipy  # whose parts are loaded when they are used

_LARGEST = 1e3  # critical value that is searched up to: that of few rows and many points


def pointwise_critical_value(level: float, residual_df: float) -> float:
    """c of a band that covers each point with a probability."""
    p = (1 + level) / 2
    return float(
        scipy.special.ndtri(p) if residual_df == np.inf else scipy.special.stdtrit(residual_df, p)
    )


def simultaneous_critical_value(
    level: float, path_length: float, n_points: int, residual_df: float
) -> float:
    """c of a band that covers all points with a probability.

    `path_length` is κ; infinity for points without an order, whose c is Bonferroni's.
    """
    bonferroni = pointwise_critical_value(1 - (1 - level) / max(n_points, 1), residual_df)
    if path_length == np.inf:
        return bonferroni

    def excess(c: float) -> float:
        one_sided, decay = scipy.special.ndtr(-c), -0.5 * c**2
        if residual_df < np.inf:
            one_sided = scipy.special.stdtr(residual_df, -c)
            decay = -0.5 * residual_df * np.log1p(c**2 / residual_df)
        return float(path_length / np.pi * np.exp(decay) + 2 * one_sided - (1 - level))

    single = pointwise_critical_value(level, residual_df)
    if path_length <= 0:
        return single
    return min(bonferroni, float(scipy.optimize.brentq(excess, single, max(_LARGEST, 2 * single))))


def path_length(errors: np.ndarray, increment_errors: np.ndarray) -> float:
    """κ, from the standard errors at points and those of the increments from point to point."""
    before, after = errors[:-1], errors[1:]
    covariance = 0.5 * (before**2 + after**2 - increment_errors**2)
    product = before * after
    positive = product > 0
    correlation = covariance[positive] / product[positive]
    return float(np.arccos(np.clip(correlation, -1.0, 1.0)).sum())
