r"""Exact kernel of the signs of Cauchy projections.

For r with iid standard Cauchy entries, the pair (⟨r, x⟩, ⟨r, y⟩) has the characteristic function
exp(−g(s, t)), g(s, t) = Σ_i |s x_i + t y_i|. With sign a = (1/π) PV∫ sin(sa) ds/s for both factors,

.. math:: k(x, y) = E\, \mathrm{sign}⟨r, x⟩\, \mathrm{sign}⟨r, y⟩
          = \frac{-1}{π^2}\, PV\!\!\iint \frac{e^{-g(s, t)}}{s\,t}\, ds\, dt
          = \frac{2}{π^2} \int_0^∞ \log \frac{\sum_i |x_i + τ y_i|}{\sum_i |x_i - τ y_i|}\,
            \frac{dτ}{τ},

the last step in polar coordinates with τ = t/s and Frullani's ∫(e^{−aρ} − e^{−bρ}) dρ/ρ =
log(b/a). It is one minus twice the probability that the signs differ, does not depend on the
lengths of x and y, and is 1 for y = x.

Both sums are linear in τ between the kinks τ_i = |x_i/y_i|, where a term changes its sign, and so
the integral is one of dilogarithms: with Σ|x| = Σ|y| = 1, F(τ) = Σ_i |x_i − τ y_i| and, from the
k-th kink on, F = a_k + b_k τ,

.. math:: J = \int_0^∞ \log \frac{F(τ)}{1 + τ} \frac{dτ}{τ} = -\mathrm{Li}_2(-b_0 τ_1)
              + \sum_{k=1}^{n-1} \int_{τ_k}^{τ_{k+1}} \log(a_k + b_k τ) \frac{dτ}{τ}
              - \mathrm{Li}_2(-a_n/τ_n) - \frac{π^2}{6} - \frac{\log^2 τ_n}{2},

.. math:: \int \log(a + bτ) \frac{dτ}{τ} = \log a \log τ - \mathrm{Li}_2(-bτ/a) \;(a > 0), \quad
              \tfrac12 \log^2 bτ + \mathrm{Li}_2(-a/bτ) \;(a ≤ 0),

and k(x, y) = 2/π² (J(x, −y) − J(x, y)).

For non-negative rows with Σx = Σy = 1 it is close to a function of the χ² similarity
ρ = Σ 2 x_i y_i/(x_i + y_i), namely 1 − (2/π) arccos ρ (Li, Samorodnitsky and Hopcroft, *Sign
stable projections, sign Cauchy projections and chi-square kernels*): a good approximation, not an
identity.
"""

from __future__ import annotations

import numpy as np
from scipy.special import spence

from .._util.sparse import dense
from .._util.threads import row_blocks
from .base import Kernel, Rows


class SignCauchy(Kernel):
    """k(x, y) = E sign⟨r, x⟩ sign⟨r, y⟩ for r of iid Cauchy entries; zero if x or y is zero.

    Exact, by dilogarithms: a pair costs a sort of its features and four dilogarithms for each.
    """

    name = "sign_cauchy"

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        x = _normalised(X)
        y = x if Y is None else _normalised(Y)
        gram = np.empty((len(x), len(y)))
        for rows in row_blocks(len(x), 200 * len(y) * x.shape[1]):
            x_block = x[rows, None]
            gram[rows] = 2 / np.pi**2 * (_integral(x_block, -y) - _integral(x_block, y))
        gram[~x.any(axis=1), :] = 0
        gram[:, ~y.any(axis=1)] = 0
        gram = np.clip(gram, -1, 1)
        if Y is None:
            gram = (gram + gram.T) / 2
        return gram.astype(X.dtype, copy=False)

    def _diag(self, X: Rows) -> np.ndarray:
        values = abs(X).sum(axis=1)
        return (np.asarray(values).ravel() > 0).astype(X.dtype)


def _integral(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """J of the module's text, over the last axis."""
    kink = x * y > 0
    if not kink.any():  # rows without negative values, and their negatives
        return np.zeros(kink.shape[:-1])
    ratio = np.divide(np.abs(x), np.abs(y), out=np.zeros(kink.shape), where=kink)
    last = ratio.max(axis=-1, keepdims=True)
    # Features without a kink are put behind the last one, where they change nothing.
    tau = np.where(kink, ratio, last)
    order = np.argsort(tau, axis=-1)
    tau = np.take_along_axis(tau, order, axis=-1)
    passed = [
        np.cumsum(np.take_along_axis(np.where(kink, np.abs(z), 0), order, axis=-1), axis=-1)
        for z in (x, y)
    ]
    a, b = 1 - 2 * passed[0], 1 - 2 * passed[1][..., -1:] + 2 * passed[1]
    first, final = tau[..., 0], np.where(last[..., 0] > 0, last[..., 0], 1)
    ends = -_dilogarithm(-(1 - 2 * passed[1][..., -1]) * first)
    ends -= _dilogarithm(-a[..., -1] / final) + np.pi**2 / 6 + np.log(final) ** 2 / 2
    between = _segment(a[..., :-1], b[..., :-1], tau[..., :-1], tau[..., 1:]).sum(axis=-1)
    return np.where(last[..., 0] > 0, ends + between, 0)


def _segment(a: np.ndarray, b: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """∫ log(a + bτ) dτ/τ from start to stop, where that is not empty."""
    value, some = np.zeros(a.shape), stop > start
    for where, integral in ((some & (a > 0), _growing), (some & (a <= 0), _falling)):
        value[where] = integral(a[where], b[where], start[where], stop[where])
    return value


def _growing(a: np.ndarray, b: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """The integral of a segment for a > 0."""
    slope = -b / a
    ends = _dilogarithm(slope * start) - _dilogarithm(slope * stop)
    return np.log(a) * np.log(stop / start) + ends


def _falling(a: np.ndarray, b: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """The integral of a segment for a ≤ 0; b is positive there but for rounding."""
    b = np.where(b > 0, b, 1)
    middle = np.log(b) + 0.5 * (np.log(stop) + np.log(start))
    slope = -a / b
    return np.log(stop / start) * middle + _dilogarithm(slope / stop) - _dilogarithm(slope / start)


def _dilogarithm(z: np.ndarray) -> np.ndarray:
    """Li₂(z) for z ≤ 1 (beyond by rounding only)."""
    return spence(np.maximum(1 - z, 0))


def _normalised(X: Rows) -> np.ndarray:
    """Dense rows with Σ|x_i| = 1 (or zero)."""
    X = dense(X).astype(np.float64)
    size = np.abs(X).sum(axis=1, keepdims=True)
    return X / np.where(size > 0, size, 1)
