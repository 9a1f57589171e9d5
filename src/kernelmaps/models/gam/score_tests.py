r"""Score tests of pairs: does the restricted likelihood rise with a pair's variance?

A pair's function has coefficients with the prior variances :math:`τ/(s_a + s_b)` (:mod:`.bases`).
At τ = 0, the model without the pair, the derivative of the restricted likelihood by τ is, up to a
constant, half of

.. math:: Q = \sum_{ab} \frac{T_{ab}^2}{s_a + s_b}, \qquad T = A^\top R,

R the sums of the losses' gradients over the pairs of coarse codes, and A the products of the
functions of the two columns. Rows and columns of R are free nuisance effects, which A is made
orthogonal to in the metric of the curvatures W: what the main effects have left over, or fitted
to chance, is no evidence for the pair. Without an effect of the pair, Q is a sum of squares of
normal variables, :math:`\sum_i λ_i χ^2_1` with λ the eigenvalues of :math:`A^\top VA`, V the sums
of *squared* gradients: these hold where the variance changes from row to row, or is larger than the
likelihood has it. (Lin 1997 has this test of a variance component, and White 1980 V.)

The pair needs no fit, and all rows take part, so that weaker effects are detected than by a quarter
of the rows that are held out from a fit to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from ..losses import Loss, Squared
from .bases import Margin
from .purification import main_effects, subtract_main_effects


@dataclass(frozen=True)
class ScoreTestOptions:
    """Constants of the score tests."""

    level: float = 0.01  # chance that a table without pairs gets one, all its tests together
    # Products of the functions of two columns in Q: those with the largest variances. The others,
    # of the roughest functions, add little to Q and much to the eigenvalue problem.
    n_products: int = 40
    # Standard deviations by which Q must exceed its mean, both computed as if A were orthogonal,
    # for the test proper: at the level above, that is far beyond three.
    screening_z: float = 3.0
    batch: int = 512  # pairs that are screened at a time, within some MB


SCORE_TEST = ScoreTestOptions()


@dataclass(frozen=True)
class SquaredGradients(Loss):
    """A loss with its squared gradients in the place of curvatures."""

    base: Loss = field(default_factory=Squared)

    def derivatives(self, y, eta):
        gradient, _ = self.base.derivatives(y, eta)
        return gradient, gradient**2


def screened_pairs(
    pairs: Sequence[tuple[int, int]], tables: Sequence[tuple[np.ndarray, np.ndarray]],
    margins: dict[int, Margin], dispersion: float,
) -> list[tuple[int, int]]:  # fmt: skip
    """Pairs with a high Q, by a variance that is quick to compute: as if A were orthogonal.

    `tables` hold the sums of curvatures and of gradients of each pair.
    """
    passed = []
    for begin in range(0, len(pairs), SCORE_TEST.batch):
        batch = pairs[begin : begin + SCORE_TEST.batch]
        curvature, gradient = map(
            _stack, zip(*tables[begin : begin + SCORE_TEST.batch], strict=True)
        )
        (first, s), (second, t) = (
            _stack_margins([margins[pair[side]] for pair in batch]) for side in (0, 1)
        )
        scale = 1 / (s[:, :, None] + t[:, None, :])  # zero where there is no function
        variances = scale * (first.transpose(0, 2, 1) ** 2 @ curvature @ second**2)
        q = np.sum(scale * (first.transpose(0, 2, 1) @ gradient @ second) ** 2, axis=(1, 2))
        deviation = np.sqrt(2 * np.sum(variances**2, axis=(1, 2)))
        bound = variances.sum(axis=(1, 2)) + SCORE_TEST.screening_z * deviation
        passed += [batch[k] for k in np.flatnonzero(q > dispersion * bound)]
    return passed


def _stack(tables: Sequence[np.ndarray], fill: float = 0.0) -> np.ndarray:
    """Arrays of different shapes in one, padded with a number."""
    shape = np.max([table.shape for table in tables], axis=0)
    stack = np.full((len(tables), *shape), fill)
    for k, table in enumerate(tables):
        stack[k, *map(slice, table.shape)] = table
    return stack


def _stack_margins(margins: Sequence[Margin]) -> tuple[np.ndarray, np.ndarray]:
    """Functions of margins in one array, and their penalties, infinite where there is none."""
    functions = _stack([margin.functions for margin in margins])
    return functions, _stack([margin.penalty for margin in margins], np.inf)


def p_value(
    curvature: np.ndarray, gradient: np.ndarray, squares: np.ndarray, first: Margin, second: Margin
) -> float:
    """The probability of a Q as high as this one without an effect of the pair.

    Parameters
    ----------
    curvature, gradient, squares : ndarray of shape (n_first, n_second)
        Sums of curvatures, gradients and squared gradients (W, R and V).
    first, second : Margin
        Functions of the two columns at these codes.
    """
    scale = 1 / np.add.outer(first.penalty, second.penalty)
    variances = scale * ((first.functions**2).T @ curvature @ second.functions**2)
    largest = np.argsort(-variances, axis=None)[: SCORE_TEST.n_products]
    a, b = np.unravel_index(largest, variances.shape)
    products = first.functions[:, None, a] * (second.functions[:, b] * np.sqrt(scale[a, b]))
    products = products.reshape(curvature.size, -1)
    products = subtract_main_effects(products, *main_effects(products, curvature))
    q = float(np.sum((gradient.ravel() @ products) ** 2))
    return mixture_tail(q, np.linalg.eigvalsh((products.T * squares.ravel()) @ products))


def mixture_tail(q: float, eigenvalues: np.ndarray, residual_df: float = np.inf) -> float:
    r"""P(Σ λ_i χ²_1 > q χ²_ν/ν), by the saddlepoint approximation (Kuonen 1999).

    ν, the `residual_df`, is infinite where q is a sum of squares in units of a known variance, and
    that of the estimate otherwise. With the cumulants of the difference of both sides,

    .. math:: K(t) = -½\sum\log(1 - 2tλ_i) - \frac{ν}{2}\log(1 + 2tq/ν), \qquad K'(t) = 0,

    the tail is that of a normal variable at :math:`w + \log(v/w)/w`, :math:`w^2 = -2K`,
    :math:`v = t\sqrt{K''}`: its relative error stays small however far out q is.
    """
    largest = float(eigenvalues.max(initial=0.0))
    if not (largest > 0 and q > 1e-12 * float(eigenvalues.sum())):
        return 1.0
    lam, q = eigenvalues[eigenvalues > 1e-9 * largest] / largest, q / largest

    def slope(t: float) -> float:
        return float(np.sum(lam / (1 - 2 * t * lam))) - q / (1 + 2 * t * q / residual_df)

    high = 0.5 * (1 - max(1 / (1 + q), 1e-15))
    if slope(high) < 0:
        return 0.0
    # The slope is negative at the lower end: there, each of its terms is bounded.
    low = -len(lam) / q if residual_df == np.inf else -0.5 * residual_df / (q + q**2 / lam.sum())
    t = brentq(slope, low, high)
    ratio = lam / (1 - 2 * t * lam)
    of_variance = q / (1 + 2 * t * q / residual_df)
    second = 2 * float(np.sum(ratio**2)) + 2 * of_variance**2 / residual_df
    v = t * np.sqrt(second)
    if abs(v) < 1e-4:  # close to the mean, where w/v is lost to rounding
        third = 8 * float(np.sum(ratio**3)) - 8 * of_variance**3 / residual_df**2
        return float(ndtr(-third / (6 * second**1.5)))
    if residual_df == np.inf:
        by_variance = t * q
    else:
        by_variance = 0.5 * residual_df * np.log1p(2 * t * q / residual_df)
    w = np.sign(t) * np.sqrt(2 * (by_variance + 0.5 * np.sum(np.log1p(-2 * t * lam))))
    return float(np.exp(log_ndtr(-(w + np.log(v / w) / w))))
