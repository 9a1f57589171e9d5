r"""The elementary series of the χ² kernel (Li, Lebanon and Sminchisescu 2012, section 5).

A geometric series (their eqs. 15-16): with t = (x − 1)/(x + 1) = tanh(½ log x),

.. math:: \frac{2xy}{x+y} = \frac{2x}{x+1}\,\frac{2y}{y+1}\, \frac{1}{1 - t_x t_y}
          = \sum_{k \ge 0} c_k(x)\,c_k(y), \qquad c_k(x) = \frac{2x}{x+1}\, t_x^k.

Cut after m terms, the relative error is exactly (t_x t_y)^m: geometric, but with a rate that tends
to 1 as x → 0 or ∞. Without a scale the series is useless on histograms, whose values are far below
1; with c(sx)/√s it is better than the Chebyshev series where the values span a narrow range, and
worse where they span a wide one.
"""

from __future__ import annotations

import numpy as np

from ..certificate import Certificate
from ..schema import number
from ._scaled import ScaledMap


class SeriesMap(ScaledMap):
    r"""Elementary (geometric) series of the χ² kernel.

    Parameters
    ----------
    n_components : int, default=10
        Terms m of the series: output columns per input feature.
    scale : float, "auto" or "minimax", default="auto"
        The map is c(s x)/√s, exact at x = 1/s. "auto" takes the s of least error on the fitted
        rows in the mean square; "minimax" the s whose worst row is best, for a single column the
        least worst error over the data's range; 1 is the paper's map.
    signed : bool, default=False
        Accept negative values by the odd extension φ(−x) = −φ(x).
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    scale_ : float
        The scale in use.
    rate_ : float
        Largest t² between the smallest non-zero and the largest fitted value: there the relative
        error is at most ``rate_ ** n_components``.
    certificate_ : Certificate
        Absolute error over all x, y from 0 to the largest fitted value.

    Notes
    -----
    The worst absolute error is that of the diagonal, x t^{2m}. Its logarithm has the slope
    1 + 2m/sinh L in L = log sx, so its maxima are at sinh L = −2m and at the largest x: the
    certificate is in closed form, and attained.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> x = np.linspace(0.2, 1, 50)[:, None]
    >>> feature_map = km.SeriesMap(n_components=5).fit(x)
    >>> Z = feature_map.transform(x)
    >>> bool(abs(Z @ Z.T - km.kernels.chi2(x)).max() <= feature_map.certificate_.bound)
    True
    """

    _family = "series"

    _state = ScaledMap._state.extended({"rate_": number()})

    def _tail(self, L: np.ndarray) -> np.ndarray:
        return np.tanh(0.5 * np.asarray(L)) ** (2 * self.n_components)

    def _certify(self, low: float, high: float) -> Certificate:
        ends = np.log(np.array([low, high]) * self.scale_)
        self.rate_ = float(np.max(np.tanh(0.5 * ends) ** 2))
        peak = min(float(np.exp(-np.arcsinh(2 * self.n_components)) / self.scale_), high)
        x = np.array([peak, high])
        return Certificate(
            float(np.max(x * self._tail(np.log(x * self.scale_)))),
            "absolute",
            f"0 <= x, y <= {high:g}",
            "closed form: relative error exactly (t_x t_y)^m",
        )
