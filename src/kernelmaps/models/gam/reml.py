r"""Strengths of penalties by restricted maximum likelihood, from sums alone.

For :math:`y ∼ N(Zβ, φW^{-1})` with prior precisions :math:`d/φ` of the weights,
:math:`d_i = λ_{g(i)} s_i` (zero for the intercept), the sums :math:`G = Z^\top WZ`,
:math:`r = Z^\top Wy` and :math:`q = y^\top Wy` are all that the criterion needs:

.. math:: 2ℓ(ρ) = \frac{D}{φ} + (n - 1)\log φ + \log|G + \mathrm{diag}(d)| - \sum_j r_j ρ_j,
          \qquad D = q - r^\top β, \quad ρ = \log λ,

:math:`r_j` being the number of weights with strength j. φ is known (log loss, Poisson) or profiled
out, :math:`φ = D/(n-1)`. With :math:`V = (G + \mathrm{diag}(d))^{-1}` and sums over the weights of
a strength,

.. math:: 2ℓ_j = b_j/φ + t_j - r_j, \qquad b_j = \sum_i d_i β_i^2, \quad t_j = \sum_i d_i V_{ii},

and the second derivatives need :math:`\sum d_i V_{il}^2 d_l` only: Newton's method on ρ costs one
inverse a step. (Wood 2011; Li and Wood 2020 call the same from tables fREML.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

LOWEST = np.log(1e-2)  # of ρ: a hundredth of a row against the data
HIGHEST = 20.0  # of ρ − log n: nothing is left of the function
_STEP = 2.0  # that a strength moves at most at a time: each for itself, as some go to infinity
COARSE = 3  # functions of each strength in the first step, and in a model that says where to start
_ROUGHLY = 1.0  # derivative of ℓ by ρ that is small enough there
_REACH = 100  # times the rows: the strength beyond which functions are left out
_ALWAYS = 1  # functions of each strength that are never left out
_PRIOR = 1 / 9.0  # curvature of a prior on ρ, for its uncertainty alone
_RIDGES = 1e-10, 1e-7, 1e-4  # of G's mean diagonal: positive factors where data say nothing


@dataclass(frozen=True)
class Penalties:
    """Diagonal penalties: weight i has the strength ``group[i]`` (−1: none) times ``scale[i]``.

    Groups do not decrease: the weights of a strength lie together.
    """

    scale: np.ndarray
    group: np.ndarray
    count: int

    def diagonal(self, rho: np.ndarray) -> np.ndarray:
        strength = np.zeros(self.count + 1)  # the last for group −1
        np.exp(rho, out=strength[:-1])
        return self.scale * strength[self.group]

    @cached_property
    def ranks(self) -> np.ndarray:
        """Number of weights of each strength."""
        return np.bincount(self._place, minlength=self.count + 1)[1:].astype(float)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sums over the weights of each strength."""
        return np.bincount(self._place, values, self.count + 1)[1:]

    @cached_property
    def _place(self) -> np.ndarray:
        return self.group + 1

    @cached_property
    def ends(self) -> np.ndarray:
        """Where the weights of each strength begin, and where the last ones end."""
        return np.searchsorted(self.group, np.arange(self.count + 1))

    def only(self, kept: np.ndarray) -> Penalties:
        """Those of some weights; strengths stay as they are, even if none of their weights do."""
        return Penalties(self.scale[kept], self.group[kept], self.count)

    @cached_property
    def order_within(self) -> np.ndarray:
        """Place of each weight among those of its strength, the least penalised first."""
        out = np.zeros(len(self.scale), np.int64)
        order = np.lexsort((self.scale, self.group))
        out[order] = np.arange(len(order)) - np.searchsorted(self.group, self.group[order])
        return out

    def within_reach(self, rho: np.ndarray, total: float) -> np.ndarray:
        """Weights of which penalties leave something, and the smoothest ones of each strength.

        Functions of natural bases have a mean square of one, hence about `total` in the diagonal
        of ZᵀWZ. From 100 times that on, less than a hundredth is left of what they would be
        without a penalty, which is far below their errors. The smoothest ones stay, as they would
        be the first to come back.
        """
        alive = self.diagonal(rho) <= _REACH * total
        return np.flatnonzero(alive | (self.order_within < _ALWAYS))

    def indicator(self) -> np.ndarray:
        """Which weights have each strength."""
        return np.eye(self.count + 1)[self.group, : self.count]


@dataclass(frozen=True)
class Sums:
    """ZᵀWZ, ZᵀWy, yᵀWy and the number of rows."""

    gram: np.ndarray
    right: np.ndarray
    square: float
    rows: float

    def only(self, kept: np.ndarray) -> Sums:
        """Those of some weights."""
        return Sums(self.gram[np.ix_(kept, kept)], self.right[kept], self.square, self.rows)


@dataclass(frozen=True)
class WorkingFit:
    """A penalised least-squares fit with its strengths.

    Attributes
    ----------
    weights : ndarray
        β, the intercept first.
    inverse : ndarray
        V = (G + diag(d))⁻¹; φV is the posterior covariance of β.
    rho : ndarray
        Logarithms of the strengths.
    dispersion : float
        φ.
    criterion, gradient : float, ndarray
        ℓ and its derivatives by ρ.
    """

    weights: np.ndarray
    inverse: np.ndarray
    rho: np.ndarray
    dispersion: float
    criterion: float
    gradient: np.ndarray

    def edf(self, penalties: Penalties) -> np.ndarray:
        """Effective degrees of freedom of each weight."""
        return 1 - penalties.diagonal(self.rho) * np.diag(self.inverse)

    def among(self, kept: np.ndarray, penalties: Penalties, total: float) -> WorkingFit:
        """The same fit among all weights, where only some of them were within reach."""
        if len(kept) == len(penalties.scale):
            return self
        weights = np.zeros(len(penalties.scale))
        weights[kept] = self.weights
        inverse = np.diag(1 / (penalties.diagonal(self.rho) + total))
        inverse[np.ix_(kept, kept)] = self.inverse
        return replace(self, weights=weights, inverse=inverse)


def solve_with(
    sums: Sums, penalties: Penalties, rho: np.ndarray, dispersion: float | None = None
) -> WorkingFit:
    """Fit with given strengths; a `dispersion` of None is estimated."""
    from . import _loops

    diagonal = penalties.diagonal(rho)
    factor = factor_of(sums.gram, diagonal)
    weights, _ = lapack.dpotrs(factor, sums.right, lower=1)
    logdet = 2 * np.log(factor.diagonal()).sum()
    inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0].T
    _loops.mirror(inverse)
    deviance = max(sums.square - sums.right @ weights, 1e-300 + 1e-14 * sums.square)
    free = max(sums.rows - 1.0, 1.0)
    phi = deviance / free if dispersion is None else dispersion
    ranks = penalties.ranks
    value = 0.5 * (deviance / phi + free * np.log(phi) + logdet - ranks @ rho)
    shares = penalties.total(diagonal * weights**2) / phi
    traces = penalties.total(diagonal * inverse.diagonal())
    return WorkingFit(weights, inverse, rho, phi, value, 0.5 * (shares + traces - ranks))


def factor_of(gram: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """L with LLᵀ = G + diag(d), below the diagonal, and a ridge as small as rounding allows."""
    size = float(gram.diagonal().sum()) / len(diagonal)
    for ridge in _RIDGES:
        system = gram.copy()
        system.flat[:: len(system) + 1] += diagonal + ridge * size
        # Symmetric: its transpose, which lies as LAPACK wants it, is the same matrix.
        factor, info = lapack.dpotrf(system.T, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return factor
    raise FloatingPointError("the penalised normal equations are not positive definite")


def _curvature(fit: WorkingFit, penalties: Penalties, rows: float, profiled: bool) -> np.ndarray:
    """Second derivatives of ℓ by ρ."""
    from . import _loops

    diagonal = penalties.diagonal(fit.rho)
    product = diagonal * fit.weights
    shares = penalties.total(product * fit.weights) / fit.dispersion
    traces = penalties.total(diagonal * fit.inverse.diagonal())
    cross, mixed = np.zeros((2, penalties.count, penalties.count))
    _loops.block_sums(fit.inverse, diagonal, product, penalties.ends, cross, mixed)
    out = np.diag(shares + traces) - 2 / fit.dispersion * mixed - cross
    if profiled:
        out -= np.outer(shares, shares) / max(rows - 1.0, 1.0)
    return 0.5 * out


def widening(
    fit: WorkingFit, penalties: Penalties, rows: float, free: np.ndarray, profiled: bool
) -> np.ndarray:
    r"""What the uncertainty of the strengths adds to the covariance of the weights.

    To first order :math:`J H^{-1} J^\top` with :math:`J = ∂β/∂ρ = -V \mathrm{diag}(d) β` by the
    weights of each strength, and H the curvature of ℓ (Wood, Pya and Säfken 2016). The curvature
    of a prior with a standard deviation of three bounds the uncertainty where the data have none
    to offer: for a function that has vanished, say.
    """
    if not free.any():
        return np.zeros_like(fit.inverse)
    pull = (penalties.diagonal(fit.rho) * fit.weights)[:, None] * penalties.indicator()[:, free]
    slope = fit.inverse @ pull
    hessian = _curvature(fit, penalties, rows, profiled)[np.ix_(free, free)]
    values, vectors = np.linalg.eigh(hessian)
    half = slope @ (vectors / np.sqrt(np.maximum(values, 0.0) + _PRIOR))
    return half @ half.T


def coarse_strengths(
    sums: Sums, penalties: Penalties, rho: np.ndarray, dispersion: float | None = None,
    fixed: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Strengths of a model with the smoothest functions of each term only: where to start from.

    They cost a fraction of those of the whole model, which are mostly not far from there.
    """
    kept = np.flatnonzero(penalties.order_within < COARSE)
    if 2 * len(kept) > len(penalties.scale):
        return rho
    small, few = sums.only(kept), penalties.only(kept)
    return choose_strengths(small, few, rho, dispersion, fixed, tol=_ROUGHLY).rho


def choose_strengths(
    sums: Sums,
    penalties: Penalties,
    rho: np.ndarray,
    dispersion: float | None = None,
    fixed: np.ndarray | None = None,
    max_iter: int = 60,
    tol: float = 5e-3,
) -> WorkingFit:
    """Minimise ℓ over ρ by Newton's method.

    Parameters
    ----------
    sums, penalties
        The problem.
    rho : ndarray
        Where to start.
    dispersion : float, optional
        φ where it is known.
    fixed : ndarray of bool, optional
        Strengths that stay as they are.
    max_iter, tol
        Most steps, and the largest derivative of ℓ at the end (ℓ is a log-likelihood: differences
        below a hundredth mean nothing).
    """
    bounds = LOWEST, HIGHEST + np.log(max(sums.rows, 1.0))
    free = np.ones(len(rho), bool) if fixed is None else ~fixed
    rho = np.where(free, np.clip(rho, *bounds), rho)
    fit = solve_with(sums, penalties, rho, dispersion)
    for _ in range(max_iter):
        at_end = (fit.rho <= bounds[0]) & (fit.gradient > 0)
        at_end |= (fit.rho >= bounds[1]) & (fit.gradient < 0)
        active = free & ~at_end & (np.abs(fit.gradient) > 0.1 * tol)
        if not (np.abs(fit.gradient[active]) > tol).any():
            break
        step = np.zeros(len(rho))
        hessian = _curvature(fit, penalties, sums.rows, dispersion is None)
        step[active] = _descent(hessian[np.ix_(active, active)], fit.gradient[active])
        better = _line_search(sums, penalties, fit, step, dispersion, bounds)
        if better is None:
            break
        fit = better
    return fit


def _descent(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """A Newton step with the curvature made positive, none of its entries beyond `_STEP`."""
    factor, info = lapack.dpotrf(hessian, lower=1, clean=0)
    size = np.abs(hessian.diagonal()).max(initial=0.0)
    if info == 0 and factor.diagonal().min(initial=np.inf) ** 2 > max(1e-3 * size, 1e-8):
        step = -lapack.dpotrs(factor, gradient, lower=1)[0]
    else:
        values, vectors = np.linalg.eigh(hessian)
        floor = max(1e-3 * np.abs(values).max(initial=0.0), 1e-8)
        step = -vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), floor))
    return np.clip(step, -_STEP, _STEP)


def _line_search(
    sums: Sums, penalties: Penalties, fit: WorkingFit, step: np.ndarray,
    dispersion: float | None, bounds: tuple[float, float],
) -> WorkingFit | None:  # fmt: skip
    """The first of ever shorter steps that does not raise ℓ."""
    for _ in range(8):
        rho = np.where(step != 0, np.clip(fit.rho + step, *bounds), fit.rho)
        found = solve_with(sums, penalties, rho, dispersion)
        if found.criterion <= fit.criterion + 1e-10 * abs(fit.criterion):
            return found
        step = step / 3
    return None
