r"""Score tests of pairs: does the likelihood rise with a pair's variance?

A pair's function has coefficients with the prior variances :math:`τ/(s_a + s_b)` (:mod:`.bases`).
Over the cells of the table of the two columns' coarse codes, let r be the sums of the losses'
gradients, W the diagonal matrix of the sums of their curvatures, and A the products of functions of
the two columns, those of penalties :math:`s_a, s_b` multiplied by :math:`(s_a + s_b)^{-1/2}`.
Effects of rows and of columns of the table are nuisance parameters: A is made orthogonal to them in
the metric W, since what the main effects have left over, or fitted to chance, is no evidence for
the pair. At τ = 0, the model without the pair, its score is

.. math:: T = A^\top r, \qquad T \sim N(0, A^\top VA)

without an effect of the pair, V the diagonal matrix of the variances of r: the sums of *squared*
gradients (White 1980), which hold where the variance changes from row to row, or is larger than the
likelihood has it. The test is that of a variance component (Lin 1997): the derivative of the
restricted likelihood by τ is half of :math:`Q = |T|^2`, up to a constant, and Q is
:math:`\sum_i λ_i χ^2_1`, λ the eigenvalues of :math:`A^\top VA`.

Rao's test, :math:`T^\top (A^\top VA)^{-1} T`, gives each direction the same weight, and found as
many pairs, also in rare cells. Of 100 binomial tables with cells of few positive rows (2000 and
5000 rows, two factors, or a factor and a number), 1 to 8 % of the p-values without an effect were
below 0.05.

The pair needs no fit, and all rows take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from .pairs import MarginalBasis
from .purification import subtract_main_effects


@dataclass(frozen=True)
class ScoreTestOptions:
    """Constants of the score tests."""

    # Chance that a table gets a pair without an effect, all tests of a round together. Over all
    # rounds, with and without true pairs, 0 to 5 % of simulated tables had one in each of 36
    # settings (`benchmarks/gam_inference.py`).
    level: float = 0.01
    # Products of the functions of two columns: those with the largest variances. The others, of the
    # roughest functions, add little to Q and much to the eigenvalue problem.
    n_products: int = 40
    # Standard deviations by which Q, or the sum of squared cells, must exceed its mean for the test
    # proper, both computed as if A were orthogonal; at the level above, p-values are far smaller.
    screening_z: float = 1.5
    max_screened: int = 1000  # those with the highest excess are tested
    batch: int = 512  # pairs that are screened at a time, within some MB
    prior_rows: float = 10.0  # in units of the dispersion, that shrink squared cells when screening


SCORE_TEST = ScoreTestOptions()
_RIDGE = 1e-9  # in units of the mean weight: rows and columns of a table both have its constant


def screen_pairs(
    pairs: Sequence[tuple[int, int]], tables: np.ndarray,
    marginal_bases: dict[int, MarginalBasis], dispersion: float,
) -> dict[tuple[int, int], float]:  # fmt: skip
    """Pairs that are worth a test, with their excess over the mean in standard deviations.

    `tables`, of shape (n_pairs, 2, n_codes, n_codes), hold the sums of curvatures and of gradients
    of each pair.
    """
    columns = sorted(marginal_bases)
    functions, penalty = _stacked_bases([marginal_bases[j] for j in columns], tables.shape[-1])
    places, excess = np.searchsorted(columns, np.array(pairs)), np.empty(len(pairs))
    for begin in range(0, len(pairs), SCORE_TEST.batch):
        batch = slice(begin, begin + SCORE_TEST.batch)
        a, b = places[batch].T
        curvature, gradient = dispersion * tables[batch, 0], tables[batch, 1]
        left, right = functions[a].transpose(0, 2, 1), functions[b]
        scale = 1 / (penalty[a][:, :, None] + penalty[b][:, None, :])  # zero: no function
        variances = scale * (left**2 @ curvature @ right**2)
        scores = scale * (left @ gradient @ right) ** 2
        smooth = _excess(scores, variances, 2 * variances**2)
        # A sum of few gradients has a fourth moment of about 3V² + φV.
        shrunk = 1 / (curvature + SCORE_TEST.prior_rows * dispersion)
        fourth = (2 * curvature**2 + dispersion * curvature) * shrunk**2
        cell_excess = _excess(gradient**2 * shrunk, curvature * shrunk, fourth)
        excess[batch] = np.maximum(smooth, cell_excess)
    passed = np.flatnonzero(excess > SCORE_TEST.screening_z)
    passed = passed[np.argsort(-excess[passed], kind="stable")][: SCORE_TEST.max_screened]
    return {pairs[k]: float(excess[k]) for k in passed}


def _excess(values: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Sums of independent values over tables, minus their means, in standard deviations."""
    deviation = np.sqrt(np.maximum(np.sum(variances, axis=(1, 2)), 1e-300))
    return np.sum(values - means, axis=(1, 2)) / deviation


def _stacked_bases(
    marginal_bases: Sequence[MarginalBasis], n_codes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Functions of bases in one array, and their penalties, infinite where there is none."""
    n_functions = max(len(basis.penalty) for basis in marginal_bases)
    functions = np.zeros((len(marginal_bases), n_codes, n_functions))
    penalty = np.full((len(marginal_bases), n_functions), np.inf)
    for k, basis in enumerate(marginal_bases):
        functions[k, *map(slice, basis.functions.shape)] = basis.functions
        penalty[k, : len(basis.penalty)] = basis.penalty
    return functions, penalty


def p_value(table: np.ndarray, left: MarginalBasis, right: MarginalBasis) -> float:
    """The probability of scores as high as these without an effect of the pair.

    Parameters
    ----------
    table : ndarray of shape (3, n_codes, n_codes)
        Sums of curvatures, gradients and squared gradients (W, r and V); codes that a column does
        not have come last.
    left, right : MarginalBasis
        Functions of the two columns at these codes.
    """
    curvature, gradient, squares = table[:, : len(left.functions), : len(right.functions)]
    products = _products(curvature, left, right)
    scores = gradient.ravel() @ products
    eigenvalues = np.linalg.eigvalsh((products.T * squares.ravel()) @ products)
    return mixture_tail(float(scores @ scores), eigenvalues)


def _products(curvature: np.ndarray, left: MarginalBasis, right: MarginalBasis) -> np.ndarray:
    """A: the scaled products of largest variance at the cells, orthogonal to main effects."""
    scale = 1 / np.add.outer(left.penalty, right.penalty)
    variances = scale * ((left.functions**2).T @ curvature @ right.functions**2)
    largest = np.argsort(-variances, axis=None)[: SCORE_TEST.n_products]
    a, b = np.unravel_index(largest, variances.shape)
    products = left.functions[:, None, a] * (right.functions[:, b] * np.sqrt(scale[a, b]))
    products = products.reshape(curvature.size, -1)
    return subtract_main_effects(products, *main_effects(products, curvature))


def main_effects(functions: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Functions of the rows and of the columns of a table that are closest to functions of cells.

    `functions` are values in the cells, (n_first * n_second, n_functions), whose weights are
    `weight`, (n_first, n_second).
    """
    cells = weight[:, :, None] * functions.reshape(*weight.shape, -1)
    rhs = np.concatenate([cells.sum(axis=1), cells.sum(axis=0)])
    row_sums, column_sums = (np.diag(weight.sum(axis=axis)) for axis in (1, 0))
    gram = np.block([[row_sums, weight], [weight.T, column_sums]])
    gram.flat[:: len(gram) + 1] += _RIDGE * float(np.trace(gram)) / len(gram)
    effects = np.linalg.solve(gram, rhs)
    return effects[: len(weight)], effects[len(weight) :]


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
    share = q / (1 + 2 * t * q / residual_df)
    second_derivative = 2 * float(np.sum(ratio**2)) + 2 * share**2 / residual_df
    v = t * np.sqrt(second_derivative)
    if abs(v) < 1e-4:  # close to the mean, where w/v is lost to rounding
        third_derivative = 8 * float(np.sum(ratio**3)) - 8 * share**3 / residual_df**2
        return float(ndtr(-third_derivative / (6 * second_derivative**1.5)))
    if residual_df == np.inf:
        variance_term = t * q
    else:
        variance_term = 0.5 * residual_df * np.log1p(2 * t * q / residual_df)
    w = np.sign(t) * np.sqrt(2 * (variance_term + 0.5 * np.sum(np.log1p(-2 * t * lam))))
    return float(np.exp(log_ndtr(-(w + np.log(v / w) / w))))
