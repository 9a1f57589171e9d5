r"""The analytic series of the χ² kernel by Li, Lebanon and Sminchisescu (2012).

The spectrum of χ² is sech(πω) (their eqs. 5-6). The change of variable z = 2 arctan e^{πω} turns
the integral over all frequencies into one over [0, π], where

.. math:: \frac{2xy}{x+y} = \frac{\sqrt{xy}}{π} \int_0^π \cos(u_x(z) - u_y(z))\, dz, \qquad
          u_x(z) = \tfrac1π \log x \, \log\tan\tfrac z2,

and the cosine series of cos u_x and sin u_x, taken together, have coefficients that follow a
three-term recurrence (eq. 12):

.. math:: c_0 = \frac{2x}{x+1}, \quad c_1 = -\frac{\sqrt2 \log x}{π} c_0, \quad
          k\,c_k = (-1)^k \frac{2\log x}{π} c_{k-1} + (k-2)\,c_{k-2}.

No period has to be chosen, unlike for the Vedaldi-Zisserman map.

The error. By Parseval, with L = log x, the sum of all c_k² is x, and what m terms leave out is
x τ_m²(L), where τ_m is the norm of the tail of a unit vector g(L). Lemma 2 (sums from k = 0) is

.. math:: |T(x, y)| \le τ_m(\log x)\, τ_m(\log y) \sqrt{xy}, \qquad
          m\,τ_m²(L) \to \frac{2|L|}{π²} \tanh\frac{|L|}{2},

so the rate is exactly 1/m and the constant grows with |log x|: that is what `scale` is for.
"""

from __future__ import annotations

import numpy as np

from ..certificate import Certificate
from ..engine import Spec
from ..engine.families import CURVES
from ..schema import number
from ._scaled import ScaledMap

_DEPTH = 25.0  # a certificate's grid in log x reaches down to e^-25 of the largest value


class ChebyshevMap(ScaledMap):
    r"""Chebyshev series of the χ² kernel.

    Parameters
    ----------
    n_components : int, default=10
        Terms m of the series: output columns per input feature.
    scale : float, "auto" or "minimax", default="auto"
        The map is c(s x)/√s, most accurate around x = 1/s. "auto" takes the s of least error on
        the fitted rows in the mean square, about the perplexity exp(entropy) of L1-normalised
        histograms; "minimax" the s whose worst row is best; 1 is the paper's map.
    signed : bool, default=False
        Accept negative values by the odd extension φ(−x) = −φ(x).
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    scale_ : float
        The scale in use.
    constant_ : float
        C of Lemma 2 and Theorem 1: for all x, y between the smallest non-zero and the largest
        fitted value, |⟨φ(x), φ(y)⟩ − k(x, y)| ≤ (C/m) √(xy), and so at most C/m in total for
        L1-normalised histograms.
    certificate_ : Certificate
        Absolute error over all x, y from 0 to the largest fitted value.

    Notes
    -----
    m τ²(log sx) tends to :func:`lemma_constant`. The tail norm τ is ½-Lipschitz in log x: its
    derivative is at most that of the unit vector g, whose squared norm is the spectrum's second
    moment ∫ ω² sech(πω) dω = ¼. Between grid points a distance h apart τ therefore exceeds the
    mean of its ends by at most h/4, and the certificate holds everywhere, not on a grid alone.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.random.default_rng(0).dirichlet(np.full(300, 0.3), size=50)
    >>> feature_map = km.ChebyshevMap(n_components=10).fit(X)
    >>> Z = feature_map.transform(X)
    >>> bool(abs(Z @ Z.T - km.kernels.chi2(X)).max() <= feature_map.constant_ / 10)
    True
    """

    _family = "chebyshev"

    _state = ScaledMap._state.extended({"constant_": number(finite=False)})

    def _tail(self, L: np.ndarray) -> np.ndarray:
        return _tail(L, self.n_components)

    def _certify(self, low: float, high: float) -> Certificate:
        ends = np.log(np.array([low, high]) * self.scale_)
        self.constant_ = self.n_components * self._worst(ends[0], ends[1], growth=0.0)
        # Below e^-25 of the largest value x itself is the bound, since τ ≤ 1.
        worst = max(self._worst(ends[1] - _DEPTH, ends[1], growth=1.0), float(np.exp(-_DEPTH)))
        return Certificate(
            high * worst,
            "absolute",
            f"0 <= x, y <= {high:g}",
            "diagonal of the tail on a grid, its Lipschitz constant between",
        )

    def _worst(self, low: float, high: float, growth: float) -> float:
        """Bound of max e^{growth·(L − high)} τ²(L) on [low, high], 1 % above the maximum.

        Cells that may hide more than a grid point attains are split in eight until none does.
        """
        width = (high - low) / 200
        left, attained = low + width * np.arange(200), 0.0
        while True:
            width /= 8
            edges = left[:, None] + width * np.arange(9)
            tau = np.sqrt(self._tail(edges.ravel())).reshape(edges.shape)
            weight = np.exp(growth * (edges - high))
            attained = max(attained, float(np.max(weight * tau**2)))
            within = np.minimum(0.5 * (tau[:, 1:] + tau[:, :-1]) + width / 4, 1.0)
            bounds = weight[:, 1:] * within**2
            worst = float(bounds.max())
            if worst <= 1.01 * attained or width < 1e-7:
                return worst
            left = edges[:, :-1][bounds > attained]


def lemma_constant(log_x: np.ndarray | float) -> np.ndarray:
    """Limit of m τ_m²(log x) for m → ∞: the constant of Lemma 2 on the diagonal."""
    size = np.abs(np.asarray(log_x, dtype=np.float64))
    return 2 * size / np.pi**2 * np.tanh(size / 2)


def _tail(L: np.ndarray, terms: int) -> np.ndarray:
    """τ²(L) = 1 − Σ_{k<m} g_k²(L), on blocks that keep temporaries small."""
    spec = Spec("chebyshev", {}, {"n_components": terms, "scale": 1.0})
    kept = np.empty(len(L))
    step = max(1, 2**20 // terms)
    for start in range(0, len(L), step):
        t = np.exp(L[start : start + step])
        kept[start : start + step] = np.sum(CURVES["chebyshev"].curve(np, spec, t) ** 2, -1) / t
    return np.maximum(1.0 - kept, 0.0)
