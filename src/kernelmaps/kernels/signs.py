r"""The kernel of signs of Cauchy projections, exactly.

For r with iid standard Cauchy entries, the pair (⟨r, x⟩, ⟨r, y⟩) has the characteristic function
exp(−g(s, t)), g(s, t) = Σ_i |s x_i + t y_i|. With sign a = (1/π) PV∫ sin(sa) ds/s for both factors,

.. math:: k(x, y) = E\, \mathrm{sign}⟨r, x⟩\, \mathrm{sign}⟨r, y⟩
          = \frac{-1}{π^2}\, PV\!\!\iint \frac{e^{-g(s, t)}}{s\,t}\, ds\, dt
          = \frac{2}{π^2} \int_0^∞ \log \frac{\sum_i |x_i + τ y_i|}{\sum_i |x_i - τ y_i|}\,
            \frac{dτ}{τ},

the last step in polar coordinates with τ = t/s and Frullani's ∫(e^{−aρ} − e^{−bρ}) dρ/ρ =
log(b/a). It is one minus twice the probability that the signs differ, does not depend on the
lengths of x and y, and is 1 for y = x.

For non-negative rows with Σx = Σy = 1 it is close to a function of the χ² similarity
ρ = Σ 2 x_i y_i/(x_i + y_i), namely 1 − (2/π) arccos ρ (Li, Samorodnitsky and Hopcroft, *Sign
stable projections, sign Cauchy projections and chi-square kernels*): a good approximation, not an
identity.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..blocks import row_blocks
from .base import Kernel, Rows

__all__ = ["SignCauchy", "chi2_collision"]

_REACH = 30.0  # of log τ: the integrand falls like e^{−|log τ|}
_STEP = 0.05
# Equal rows have the pole log(2/|log τ|) at τ = 1. The trapezoidal rule h Σ f(kh) integrates
# −log|z| exactly if its value at 0 is taken as −log(h/2π).
_MOST = float(np.log(4 * np.pi / _STEP))


class SignCauchy(Kernel):
    """k(x, y) = E sign⟨r, x⟩ sign⟨r, y⟩ for r of iid Cauchy entries; zero if x or y is zero.

    The integral over log τ is taken by the trapezoidal rule in steps of 0.05, with an error below
    1e-3 (the integrand has kinks where τ = x_i/y_i). It is meant for checking maps on some
    hundreds of rows: a pair costs 1200 operations for each feature.
    """

    name = "sign_cauchy"

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        x = _normalised(X)
        y = x if Y is None else _normalised(Y)
        nodes = round(_REACH / _STEP)
        tau = np.exp(_STEP * np.arange(-nodes, nodes + 1))
        gram = np.empty((len(x), len(y)))
        for rows in row_blocks(len(x), 16 * len(y) * x.shape[1]):
            total = np.zeros((len(x[rows]), len(y)))
            for t in tau:
                both = np.abs(x[rows, None] + t * y).sum(axis=2)
                apart = np.abs(x[rows, None] - t * y).sum(axis=2)
                ratio = both / np.maximum(apart, np.finfo(float).tiny)
                total += np.minimum(np.log(np.maximum(ratio, 1e-300)), _MOST)
            gram[rows] = 2 / np.pi**2 * _STEP * total
        gram[~x.any(axis=1), :] = 0
        gram[:, ~y.any(axis=1)] = 0
        gram = np.clip(gram, -1, 1)
        if Y is None:
            gram = (gram + gram.T) / 2
        return gram.astype(X.dtype, copy=False)

    def _diag(self, X: Rows) -> np.ndarray:
        values = abs(X).sum(axis=1)
        return (np.asarray(values).ravel() > 0).astype(X.dtype)


def _normalised(X: Rows) -> np.ndarray:
    """Dense rows with Σ|x_i| = 1 (or zero)."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    size = np.abs(X).sum(axis=1, keepdims=True)
    return X / np.where(size > 0, size, 1)


def chi2_collision(similarity: np.ndarray) -> np.ndarray:
    """1 − (2/π) arccos ρ: what k is close to for histograms with the χ² similarity ρ."""
    return 1 - 2 / np.pi * np.arccos(np.clip(similarity, -1, 1))
