r"""The two series of the χ² kernel by Li, Lebanon and Sminchisescu (2012).

**Analytic series.** The spectrum of χ² is sech(πω) (their eqs. 5-6). The change of variable z = 2
arctan e^{πω} turns the integral over all frequencies into one over [0, π], where

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

**Input scale**, learned or given. Both series are exact and start from x = 1: there one term is
enough, and the further log x is from 0, the more are needed. The kernel is homogeneous, k(sx, sy) =
s k(x, y), so φ(x) = c(sx)/√s is a map of the same kernel for every s > 0, and s says where on the
axis the map is best.

What is left out after m terms is again a positive-definite kernel, the tail
T(x, y) = Σ_{k≥m} φ_k(x) φ_k(y). Its diagonal T(x, x) = x τ²(log sx) bounds everything:
Cauchy-Schwarz gives |T(x, y)| ≤ √(T(x, x) T(y, y)), for single values and, summed, for whole rows.
So the scale is chosen by the diagonal alone, the error e_i(s) = Σ_j x_ij τ²(log s x_ij) of each row
with itself:

``"auto"``
    least root mean square of e_i(s) over the rows. To second order in log(sx) the mean of e_i is
    least where s = exp(−Σ x log x / Σ x), the perplexity exp(entropy) of L1-normalised histograms
    (errata of the method, 2.10); the exact criterion costs no more.
``"minimax"``
    least max_i e_i(s), which bounds the error of every pair of fitted rows. For one column this is
    the least worst absolute error over the data's range.

**Elementary series** (their section 5). A geometric series (their eqs. 15-16): with t = (x − 1)/(x
+ 1) = tanh(½ log x),

.. math:: \frac{2xy}{x+y} = \frac{2x}{x+1}\,\frac{2y}{y+1}\, \frac{1}{1 - t_x t_y}
          = \sum_{k \ge 0} c_k(x)\,c_k(y), \qquad c_k(x) = \frac{2x}{x+1}\, t_x^k.

Cut after m terms, the relative error is exactly (t_x t_y)^m: geometric, but with a rate that tends
to 1 as x → 0 or ∞. Without a scale the series is useless on histograms, whose values are far below
1; with c(sx)/√s it is better than the Chebyshev series where the values span a narrow range, and
worse where they span a wide one.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from .. import kernels
from .._util.arguments import check_count, check_positive
from .._util.schema import number
from .._util.threads import evenly_spaced, row_blocks
from ..certificate import Certificate, rounding_error
from ..engine import Spec
from ..engine.families import CURVES
from .base import AdditiveMap

_RULES = ("auto", "minimax")
_MAX_ROWS = 2048  # rows that the search for a scale looks at, taken at even distances
_BINS_PER_OCTAVE = 32  # of the histogram of values that a scale is chosen for


@dataclass(eq=False, repr=False)
class ScaledMap(AdditiveMap):
    """A series of the χ² kernel around x = 1/scale."""

    n_components: int = 10
    scale: float | str = "auto"
    _: KW_ONLY
    signed: bool = False
    n_jobs: int | None = None

    _state = AdditiveMap._state.extended({"scale_": number(above=0)})
    _homogeneous = True
    _family: ClassVar[str]

    @abstractmethod
    def _tail(self, L: np.ndarray) -> np.ndarray:
        """τ²(L) = T(x, x)/x at log(sx) = L: even in L, at most 1."""

    @abstractmethod
    def _bound(self, high: float) -> float:
        """Bound on the error for values up to `high`."""

    @abstractmethod
    def _describe(self, low: float, high: float) -> str:
        """How the bound was obtained; sets what describes the error from `low` to `high`."""

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        self.kernel_ = kernels.chi2.replace(signed=self._signed)
        values = np.abs(X.data if sparse.issparse(X) else X)
        positive = values[values > 0].astype(np.float64, copy=False)
        low, high = (positive.min(), positive.max()) if positive.size else (1.0, 1.0)
        if isinstance(self.scale, str) and self.scale in _RULES:
            self.scale_ = _least_error_scale(X, float(low), float(high), self._tail, self.scale)
        else:
            check_positive(self, "scale", self.scale, f"a positive number or one of {_RULES}")
            self.scale_ = float(self.scale)
        words = self._describe(float(low), float(high))
        certificate = Certificate(
            self._bound(float(high)), "absolute", f"0 <= x, y <= {high:g}", words
        )
        self.certificate_ = certificate.with_rounding(float(high), columns)
        numbers = {"n_components": columns, "scale": self.scale_, "signed": self._signed}
        return Spec(self._family, {}, numbers)

    def _feature_bound(self, limits: np.ndarray) -> float:
        high = float(np.max(limits))
        if high == 0:
            return 0.0
        return self._bound(high) + high * rounding_error(np.float64, self.n_components)


def _least_error_scale(X: Any, low: float, high: float, tail: Any, rule: str) -> float:
    """The scale of least error by one of the two rules."""
    profile, centres = _mass_by_size(X, low, high)
    places = np.linspace(0.0, 64.0, 2049)  # τ² is even: computed once, and interpolated
    values = tail(places)

    def error(log_scale: float) -> float:
        rows = profile @ np.interp(np.abs(centres + log_scale), places, values)
        return float(rows.max() if rule == "minimax" else np.sqrt(np.mean(rows**2)))

    # The best scale puts 1/s within the range of the values: nothing outside it can be better.
    grid = np.linspace(-np.log(high) - 0.5, -np.log(low) + 0.5, 81)
    best = grid[int(np.argmin([error(value) for value in grid]))]
    step = grid[1] - grid[0]
    optimum = minimize_scalar(
        error, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-4}
    )
    return float(np.exp(optimum.x))


def _mass_by_size(X: Any, low: float, high: float) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Σ_j x_ij over the values of each size: rows by bins of log x, with the bins' centres."""
    rows = evenly_spaced(X.shape[0], _MAX_ROWS)
    sample = sparse.csr_matrix(X[rows], dtype=np.float64)
    sample.eliminate_zeros()
    masses = np.abs(sample.data)
    width = np.log(2) / _BINS_PER_OCTAVE
    lowest = np.floor(np.log(low) / width)
    bins = (np.floor(np.log(masses) / width) - lowest).astype(np.int64)
    count = int(np.floor(np.log(high) / width) - lowest) + 1
    # The best scale does not depend on the unit: sums and squares of masses shall not overflow.
    profile = sparse.csr_matrix((masses / high, bins, sample.indptr), shape=(len(rows), count))
    return profile, (lowest + np.arange(count) + 0.5) * width


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
        """τ²(L) = 1 − Σ_{k<m} g_k²(L), on blocks that keep temporaries small."""
        spec = Spec(self._family, {}, {"n_components": int(self.n_components), "scale": 1.0})
        norms = np.empty(len(L))
        for block in row_blocks(len(L), int(self.n_components), 2**20):
            t = np.exp(L[block])
            norms[block] = np.sum(CURVES[self._family].curve(np, spec, t) ** 2, -1) / t
        return np.maximum(1.0 - norms, 0.0)

    def _describe(self, low: float, high: float) -> str:
        ends = np.log(np.array([low, high]) * self.scale_)
        self.constant_ = int(self.n_components) * self._worst(ends[0], ends[1], growth=0.0)
        return "diagonal of the tail on a grid, its Lipschitz constant between"

    def _bound(self, high: float) -> float:
        end = float(np.log(high * self.scale_))
        # Below e^-25 of the largest value x itself is the bound, since τ ≤ 1.
        return high * max(self._worst(end - _DEPTH, end, growth=1.0), float(np.exp(-_DEPTH)))

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
        return np.tanh(0.5 * np.asarray(L)) ** (2 * int(self.n_components))

    def _describe(self, low: float, high: float) -> str:
        ends = np.log(np.array([low, high]) * self.scale_)
        self.rate_ = float(np.max(np.tanh(0.5 * ends) ** 2))
        return "closed form: relative error exactly (t_x t_y)^m"

    def _bound(self, high: float) -> float:
        peak = min(float(np.exp(-np.arcsinh(2 * int(self.n_components))) / self.scale_), high)
        x = np.array([peak, high])
        return float(np.max(x * self._tail(np.log(x * self.scale_))))
