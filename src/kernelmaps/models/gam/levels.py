r"""Levels of factors of a fitted GAM: those of large factors, and new levels of any factor.

A solver fits the effects θ of the levels as deviations from an intercept :math:`β_0`
(:mod:`..solvers.levels`). Terms are shown centred over the training rows: with p the shares of the
levels, the intercept becomes :math:`β_0 + p^\top θ`, and the effects :math:`θ - p^\top θ`. Their
covariances follow from those of β and from

.. math:: \operatorname{Cov}(θ, β) = -RV_{ββ}, \qquad
          \operatorname{Cov}(θ, p^\top θ) = φD^{-1} p + RV_{ββ}R^\top p.

A level that no row has is a new draw from the distribution of the levels: their variance, which the
smoothing parameter estimates, is a part of the variance of its prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from ..rows.basis import LevelBasis
from ..solvers.levels import BlockCovariance, IndexBlocks
from ..solvers.pirls import PenalisedFit
from .codebooks import MISSING, OTHER
from .fitting import FittedDesign
from .pairs import new_level_variances as pair_level_variances
from .training_rows import DesignTerm

# Degrees of freedom of the variance of levels, at least: with fewer, the variance of a t
# distribution grows beyond twice that of a normal one, and is infinite for two.
_FEWEST_DF = 4.0
# Logarithms of variances that intervals look at, in units of the estimate, which may be next to
# nothing.
_VARIANCE_GRID = np.linspace(-30.0, 60.0, 2001)


@dataclass(frozen=True)
class LevelEffects:
    """Effects of the levels of a large factor, centred, and their covariances.

    Attributes
    ----------
    values : ndarray of shape (n_codes,)
    covariance : ndarray of shape (n_codes, n_active)
        With the coefficients of the active set, the intercept first.
    variances : ndarray of shape (n_codes,)
    deviations : ndarray of shape (n_codes, n_smoothing)
        C of the levels, as in `PenalisedFit`: its squares add to the variances.
    shares : ndarray of shape (n_codes,)
        Of the training rows.
    statistic, null_weights : float, ndarray of shape (n_codes,)
        Of the test of their variance, as in `variance_test`.
    """

    values: np.ndarray
    covariance: np.ndarray
    variances: np.ndarray
    deviations: np.ndarray
    shares: np.ndarray
    statistic: float
    null_weights: np.ndarray

    def standard_errors(
        self, functions: np.ndarray, fit: PenalisedFit, index: np.ndarray
    ) -> np.ndarray:
        """Standard errors of effects plus functions of other coefficients plus the intercept.

        `functions` are values at the codes, of coefficients whose positions in the active set of
        `fit` are `index`. The intercept counts without uncertain smoothing parameters, as for other
        terms.
        """
        rows = np.column_stack([np.ones(len(self.values)), functions])
        index = np.concatenate([[0], index])
        covariance = fit.covariance[np.ix_(index, index)]
        variances = self.variances + np.sum((rows @ covariance) * rows, axis=1)
        variances += 2 * np.sum(rows * self.covariance[:, index], axis=1)
        deviations = self.deviations + functions @ fit.smoothing_deviations[index[1:]]
        return np.sqrt(np.maximum(variances + np.sum(deviations**2, axis=1), 0.0))

    def joint(self, fit: PenalisedFit, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Covariances with active coefficients, and variances, with uncertain smoothing."""
        covariance = self.covariance[:, index] + self.deviations @ fit.smoothing_deviations[index].T
        return covariance, self.variances + np.sum(self.deviations**2, axis=1)


def separate_levels(model: FittedDesign) -> tuple[list[PenalisedFit], list[LevelEffects]]:
    """The fits without the levels of a large factor, and their effects if there is one."""
    for term, _, _ in model.design.slices():
        if isinstance(term.basis, LevelBasis):
            both = [centre_levels(fit, term.counts) for fit in model.fits]
            return [fit for fit, _ in both], [effects for _, effects in both]
    return model.fits, []


def centre_levels(fit: PenalisedFit, counts: np.ndarray) -> tuple[PenalisedFit, LevelEffects]:
    """A fit without its levels, whose mean effect is part of the intercept, and their effects.

    `counts` are the weights of the levels.
    """
    dense, levels = fit.covariance, fit.posterior.levels
    assert levels is not None
    n, n_others = len(dense), len(fit.beta) - len(counts)
    shares = counts / max(float(counts.sum()), 1e-300)
    theta, mean = fit.beta[n_others:], float(shares @ fit.beta[n_others:])
    covariance = -levels.means(dense)  # V_θβ
    mean_covariance = shares * levels.variances - covariance @ levels.adjoint(shares)
    variances = levels.marginal_variances(dense) - 2 * mean_covariance + shares @ mean_covariance
    intercept_row = shares @ covariance
    dense = dense.copy()
    dense[0] += intercept_row
    dense[:, 0] += intercept_row
    dense[0, 0] += shares @ mean_covariance
    covariance[:, 0] += mean_covariance
    covariance -= shares @ covariance
    deviations, level_part = fit.smoothing_deviations[:n].copy(), fit.smoothing_deviations[n:]
    mean_deviation = shares @ level_part
    if n:
        deviations[0] += mean_deviation
    beta = fit.beta[:n_others].copy()
    beta[0] += mean
    centred = replace(
        fit, beta=beta, active=fit.active[:n], posterior=BlockCovariance(dense),
        smoothing_deviations=deviations,
    )  # fmt: skip
    effects = LevelEffects(
        theta - mean, covariance, variances, level_part - mean_deviation, shares,
        *variance_test(fit),
    )  # fmt: skip
    return centred, effects


class NewLevels(NamedTuple):
    """What no row of a fit shows of levels, as functions with coefficients of their own.

    Attributes
    ----------
    functions : ndarray of shape (n_codes, n_functions)
        At the codes of a term.
    variances : ndarray of shape (n_outputs, n_functions)
        Of their coefficients, which are independent of all others.
    """

    functions: np.ndarray
    variances: np.ndarray


def new_levels(
    term: DesignTerm, is_category: Sequence[bool], fits: Sequence[PenalisedFit], span: slice,
    smoothing: slice,
) -> NewLevels:  # fmt: skip
    r"""What the fits do not show of the levels of a term; `is_category` is of its columns.

    `span` and `smoothing` are where its coefficients and λ are.

    With :math:`σ^2` the variance of the levels, that of an effect is

    * :math:`σ^2` for a level without a code of its own, if the fit has the mean of several such
      levels: a level differs from their mean;
    * :math:`σ^2 (1 + \sum_c p_c^2)` for one (or a missing value) that no row has, with p the shares
      of the levels: it differs from the mean of all levels, and that of the rows, which the
      prediction has, differs from this mean. Effects of a large factor have this variance already.

    A pair has the same for the slope or the curve of a level. The variance of the levels is
    estimated with few degrees of freedom, ν: new levels have a t distribution, with the variance
    :math:`σ^2 ν/(ν - 2)`. The REML estimate of log λ has the variance 2/ν with ν the sum of the
    squared degrees of freedom of the coefficients, m − 1 for m levels of very many rows.
    """
    functions, variances = [np.zeros((term.counts.size, 0))], [np.zeros((len(fits), 0))]
    for axis in np.flatnonzero(is_category).tolist() if term.basis.n_functions else ():
        counts = term.counts.sum(axis=1 - axis) if term.pair is not None else term.counts
        deviation = _level_deviation(term, axis)
        df = np.array([max(float(np.sum(fit.edf[span] ** 2)), _FEWEST_DF) for fit in fits])
        scale = np.array([fit.dispersion / np.exp(fit.rho[smoothing][0]) for fit in fits])
        scale *= df / (df - 2)
        for code in (MISSING, OTHER):
            tabulate_codes = np.zeros((len(counts), len(deviation)))
            tabulate_codes[code] = deviation
            functions.append((tabulate_codes if axis == 0 else tabulate_codes.T).reshape(-1, 1))
            share = _new_share(counts, code, isinstance(term.basis, LevelBasis))
            variances.append(share * scale[:, None])
    all_variances = np.hstack(variances)
    used = all_variances.any(axis=0)
    return NewLevels(np.hstack(functions)[:, used], all_variances[:, used])


def level_deviation(term: DesignTerm, is_category: Sequence[bool]) -> float:
    """Standard deviation of levels for a smoothing parameter and a dispersion of one.

    It is that of the effects of levels, of their slopes, or of their curves (mean square over the
    rows). It is 0 for terms without levels, pairs of two categories, and a category of two levels,
    whose contrast shares its variance with the straight lines.
    """
    is_contrast = term.pair is None and np.count_nonzero(term.counts) < 3
    if sum(is_category) != 1 or is_contrast or not term.basis.n_functions:
        return 0.0
    axis = int(np.flatnonzero(is_category)[0])
    deviation = _level_deviation(term, axis)
    if term.pair is None:
        return float(deviation[0])
    positions = term.pair.positions[1 - axis]
    if term.pair.linear[1 - axis] and len(positions) > 1:
        return float(abs(deviation[-1] - deviation[1]) / (positions[-1] - positions[0]))
    counts = term.counts.sum(axis=axis)
    return float(np.sqrt(counts @ deviation**2 / counts.sum()))


def variance_interval(
    beta: np.ndarray, covariance: np.ndarray, prior: np.ndarray, residual_df: float
) -> tuple[float, float]:
    r"""Factors of the estimated variance of some coefficients, the ends of a 95 % interval.

    They are the variances whose restricted likelihood, all else as it is, has at least
    :math:`e^{-χ^2_{.95}/2}` times its maximum. With 1 + c times the penalties it changes by sums
    over the eigenvalues of the covariance in units of the variances `prior`, see
    :func:`..solvers.reml.covariance_deviations`. The lower end may be zero. With a known
    dispersion, `residual_df` is infinite.
    """
    root = np.sqrt(prior)
    shares, vectors = np.linalg.eigh(covariance / np.outer(root, root))
    shares = np.clip(shares, 1e-12, 1.0)
    times = np.expm1(-_VARIANCE_GRID)[:, None]
    squares = (times / (1 + times * shares)) @ (vectors.T @ (beta / root)) ** 2
    if np.isfinite(residual_df):
        squares = residual_df * np.log(np.maximum(1 + squares / residual_df, 1e-14))
    deviance = squares + np.log1p(times * shares).sum(axis=1) + len(beta) * _VARIANCE_GRID
    inside = np.flatnonzero(deviance <= deviance.min() + special.chdtri(1, 0.05))
    low, high = np.exp(_VARIANCE_GRID[inside[[0, -1]]])
    return float(low) if inside[0] else 0.0, float(high)


def _new_share(counts: np.ndarray, code: int, is_large: bool) -> float:
    """Variance of a level with this code beyond what the fit has, in units of that of the levels.

    `counts` are the weights of the codes.
    """
    if counts[code] > 0:
        return float(code == OTHER)
    shares = counts / max(float(counts.sum()), 1e-300)
    return 0.0 if is_large else float(1 + shares @ shares)


def _level_deviation(term: DesignTerm, axis: int) -> np.ndarray:
    """How a level deviates, for a smoothing parameter and a dispersion of one.

    It is the standard deviation of the levels or, in a pair, a function of the other column: that
    of the slopes times the line; of curves, standard deviations at each code with the signs of
    their first principal component. So variances are exact, and a curve is one more function only.
    """
    if term.pair is not None:
        levels, other = term.pair.marginal_bases[axis], term.pair.marginal_bases[1 - axis]
        counts = term.counts if axis == 0 else term.counts.T
        curves = other.functions * np.sqrt(pair_level_variances(levels, other, counts))
        signs = np.linalg.svd(curves, full_matrices=False)[0][:, 0]
        return np.copysign(np.linalg.norm(curves, axis=1), signs)
    if isinstance(term.basis, LevelBasis):
        return np.sqrt(1 / term.basis.penalty[:1])
    # Effects are centred over the rows: their prior variances sum to that of one level less.
    present = term.counts > 0
    total = np.sum(term.basis.values[present] ** 2 / term.basis.penalty)
    return np.sqrt([total / max(np.count_nonzero(present) - 1, 1)])


def variance_test(fit: PenalisedFit) -> tuple[float, np.ndarray]:
    r"""The statistic of the test of a variance, and its weights under "no effect".

    :math:`θ^\top Mθ/φ` with :math:`M = \mathrm{diag}(s) - BA^{-1}B^\top` is exact, with s the
    weights of the levels. Its weights :math:`κ^2` are those of the levels alone,
    :math:`κ_c = s_c/D_c`, scaled to the exact mean
    :math:`\operatorname{tr}((I - \mathrm{diag}(d) V_{θθ})^2)`: what the other coefficients, few
    beside the levels, change of their proportions is left out.
    """
    levels = fit.posterior.levels
    assert levels is not None
    inverse = BlockCovariance(fit.covariance / fit.dispersion, replace(levels, dispersion=1.0))
    n, m = len(inverse.dense), len(levels.weight)
    theta = fit.beta[-m:]
    gram = np.linalg.inv(inverse.dense) + levels.ratio_gram(levels.precision)
    pulled = levels.border.T @ theta
    statistic_part = levels.weight @ theta**2
    statistic = float(statistic_part - pulled @ np.linalg.solve(gram, pulled)) / fit.dispersion
    diagonal = np.repeat([0.0, levels.penalty], [n, m])
    blocks = IndexBlocks(np.repeat([-1, 0], [n, m]), 1)
    squares, _ = inverse.block_sums(diagonal, diagonal, blocks)
    kappa = levels.weight / levels.precision
    mean = m - 2 * inverse.penalised_diagonal(diagonal)[1] + float(squares[0, 0])
    return statistic, kappa**2 * mean / max(float(np.sum(kappa**2)), 1e-300)
