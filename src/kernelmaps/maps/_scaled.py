r"""Input scale of the two χ² series, learned or given.

Both series are exact and start from x = 1: there one term is enough, and the further log x is from
0, the more are needed. The kernel is homogeneous, k(sx, sy) = s k(x, y), so φ(x) = c(sx)/√s is a
map of the same kernel for every s > 0, and s says where on the axis the map is best.

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
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from .. import kernels
from ..arguments import check_count
from ..certificate import Certificate
from ..engine import Spec
from ..schema import number
from .base import AdditiveMap

_RULES = ("auto", "minimax")
_MAX_ROWS = 2048  # rows that the search for a scale looks at, taken at even distances
_BINS_PER_OCTAVE = 32


@dataclass(eq=False, repr=False)
class ScaledMap(AdditiveMap):
    """A series of the χ² kernel around x = 1/scale."""

    n_components: int = 10
    scale: float | str = "auto"
    _: KW_ONLY
    signed: bool = False
    n_jobs: int | None = None

    _state = AdditiveMap._state.extended({"scale_": number(above=0)})

    _family: ClassVar[str]

    @abstractmethod
    def _tail(self, L: np.ndarray) -> np.ndarray:
        """τ²(L) = T(x, x)/x at log(sx) = L: even in L, at most 1."""

    @abstractmethod
    def _certify(self, low: float, high: float) -> Certificate:
        """The bound for values up to `high`; `low` is the smallest that is not zero."""

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        self.kernel_ = kernels.chi2.replace(signed=bool(self.signed))
        values = np.abs(X.data if sparse.issparse(X) else X)
        positive = values[values > 0].astype(np.float64, copy=False)
        low, high = (positive.min(), positive.max()) if positive.size else (1.0, 1.0)
        self.scale_ = self._resolved_scale(X, float(low), float(high))
        self.certificate_ = self._certify(float(low), float(high))
        numbers = {"n_components": columns, "scale": self.scale_, "signed": bool(self.signed)}
        return Spec(self._family, {}, numbers)

    def _resolved_scale(self, X: Any, low: float, high: float) -> float:
        if isinstance(self.scale, str):
            if self.scale in _RULES:
                return _least_error_scale(X, low, high, self._tail, self.scale)
        elif np.isscalar(self.scale) and np.isfinite(self.scale) and self.scale > 0:
            return float(self.scale)
        raise ValueError(
            f"{type(self).__name__}: scale must be a positive number or one of {_RULES}, "
            f"got {self.scale!r}."
        )

    @property
    def _non_negative(self) -> bool:  # type: ignore[override]
        return not self.signed


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
    found = minimize_scalar(
        error, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-4}
    )
    return float(np.exp(found.x))


def _mass_by_size(X: Any, low: float, high: float) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Σ_j x_ij over the values of each size: rows by bins of log x, with the bins' centres."""
    rows = np.unique(np.linspace(0, X.shape[0] - 1, _MAX_ROWS).astype(np.int64))
    chosen = sparse.csr_matrix(X[rows], dtype=np.float64)
    chosen.eliminate_zeros()
    masses = np.abs(chosen.data)
    width = np.log(2) / _BINS_PER_OCTAVE
    first = np.floor(np.log(low) / width)
    bins = (np.floor(np.log(masses) / width) - first).astype(np.int64)
    count = int(np.floor(np.log(high) / width) - first) + 1
    # The best scale does not depend on the unit: sums and squares of masses shall not overflow.
    profile = sparse.csr_matrix((masses / high, bins, chosen.indptr), shape=(len(rows), count))
    return profile, (first + np.arange(count) + 0.5) * width
