r"""Fits of one column alone: which axis suits it, and how many functions it can use.

A natural basis is orthonormal over the rows, :math:`B^\top \mathrm{diag}(n_c) B = nI`, and its
penalty is diagonal: the restricted likelihood of a least-squares fit to one column's function
(:mod:`..solvers.reml`) is a sum over its coefficients, for any number of smoothing parameters,
without a matrix:

.. math:: 2ℓ(λ) = (n - 1)\log D + \sum_i \log\Big(1 + \frac{n}{λ s_i}\Big),
          \qquad D = q - \sum_i \frac{r_i^2}{n + λ s_i}, \quad r = B^\top t,

t the sums of the centred targets by code, and q the sum of their squares. Other losses have the
negative gradients at the intercept in the place of the targets. The effects of all other columns
count as noise, so that the choice is a cautious one.

Not even a natural basis is needed for ℓ. With G and S the banded matrices of splines, whose penalty
has the null space L (constants and straight lines) and the rank k,

.. math:: \sum_i \log\Big(1 + \frac{n}{λ s_i}\Big) = \log|G + λS| - k \log λ - \log|L^\top GL|
          - \log\frac{|S|_+}{|L^\top L|},

:math:`|S|_+` the product of the eigenvalues that are not zero, and the targets explain
:math:`r^\top (G + λS)^{-1} r`, the part of the mean and of the straight line included. For
differences of coefficients that are :math:`ℓ_i` apart, the last fraction is
:math:`1/\prod ℓ_i` if their order is one, and :math:`1/(\prod h_i \prod ℓ_i^2)` with
:math:`h_i = (ℓ_i + ℓ_{i+1})/2` if it is two.

A curve that follows steps has a penalty of order one, which straight lines are not in the null
space of. They get a smoothing parameter of their own, which leaves the penalty of what differs from
a line,

.. math:: S' = S - ee^\top / \textstyle\sum ℓ_i, \qquad e = (-1, 0, …, 0, 1)^\top,

with the fraction :math:`1/(\sum ℓ_i \prod ℓ_i)`; its inverse and determinant follow from those of S
and from :math:`e^\top (G + λS)^{-1} e`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...stats import CodeSums
from ..rows.basis import TermBasis
from .bases import BandedNormalEquations

# Smoothing parameters that are tried, per row and in units of the median penalty of a natural
# basis: three in each power of ten, from a free curve to a straight line.
SMOOTHING_GRID = np.geomspace(1e-7, 1e3, 31)


@dataclass(frozen=True)
class ColumnTargets:
    """Targets of all outputs by the codes of one column.

    Attributes
    ----------
    counts : ndarray of shape (n_codes,)
        Sums of the weights.
    targets : ndarray of shape (n_outputs, n_codes)
        Sums of the weighted targets around their mean.
    squares : ndarray of shape (n_outputs,)
        Sums of the weighted squares of the targets around their mean.
    """

    counts: np.ndarray
    targets: np.ndarray
    squares: np.ndarray

    def with_bins(self, n_bins: int) -> ColumnTargets:
        """The same with more bins, which have no rows."""
        more = np.zeros(1 + n_bins - len(self.counts))
        in_outputs = np.zeros((len(self.targets), len(more)))
        targets = np.concatenate([self.targets, in_outputs], axis=1)
        return ColumnTargets(np.concatenate([self.counts, more]), targets, self.squares)


def column_targets(sums: Sequence[CodeSums], column: int) -> ColumnTargets:
    """Targets of all outputs by the codes of one column."""
    counts, targets, squares = sums[0].singles[column], [], []
    for output in sums:
        mean = output.target / max(output.weight, 1e-300)
        targets.append(output.targets[column] - mean * counts)
        squares.append(output.square - mean * output.target)
    return ColumnTargets(counts, np.stack(targets), np.array(squares))


def _positive(deviance: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """D, above its rounding errors."""
    return np.maximum(deviance, 1e-14 * squares + 1e-300)


def fit_alone(basis: TermBasis, column: ColumnTargets) -> tuple[float, float]:
    """Estimate the smoothing parameter of a column's curve by REML, with no other term.

    Returns the log-likelihood −ℓ at the best smoothing parameter and the degrees of freedom there:
    for several outputs, the sum of the first and the maximum of the second.
    """
    n, rhs = max(float(column.counts.sum()), 1e-300), column.targets @ basis.values
    in_range_space = basis.smoothing_index == 0
    # The null space has the smoothing parameter of one row: it costs each axis the same.
    penalty = np.where(in_range_space, n * SMOOTHING_GRID[:, None] * basis.penalty, 1.0)
    squares = column.squares[:, None]
    deviance = _positive(squares - rhs**2 @ (1 / (n + penalty)).T, squares)
    criterion = (n - 1) * np.log(deviance) + np.sum(np.log1p(n / penalty), axis=1)
    best = np.argmin(criterion, axis=1)
    edf = np.sum(n / (n + penalty[best]), axis=1)
    return -0.5 * float(criterion.min(axis=1).sum()), float(edf.max())


def curve_likelihoods(
    equations: BandedNormalEquations, columns: Sequence[ColumnTargets], keep_line: bool = False
) -> np.ndarray:
    """−ℓ of curves at their best smoothing parameters, as `fit_alone` has it.

    Parameters
    ----------
    equations : BandedNormalEquations
        Of the curves.
    columns : sequence of ColumnTargets
        Of the column of each curve.
    keep_line : bool
        Whether straight lines have a smoothing parameter of their own also if first differences
        are penalised.
    """
    with_line = keep_line or equations.order == 2
    counts = np.stack([column.counts for column in columns])
    targets = np.stack([column.targets for column in columns])
    squares = np.stack([column.squares for column in columns])[:, :, None]
    line, present = equations.line, counts[:, 1:]
    n = np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    n_present = np.maximum(present.sum(axis=1, keepdims=True), 1e-300)
    centred = line - np.sum(line * present, axis=1, keepdims=True) / n_present
    spread = np.maximum(np.sum(centred**2 * present, axis=1, keepdims=True), 1e-300)
    smoothing = np.outer(equations.unit, SMOOTHING_GRID)
    explained, logdet = _profiles(equations, smoothing, keep_line)
    rank = equations.gram.shape[2] - (2 if with_line else 1)
    logdet = logdet - rank * np.log(smoothing) - np.log(n_present)
    logdet -= _log_fraction(equations, keep_line)[:, None]
    logdet += np.log1p(n) * (counts[:, :1] > 0)
    if with_line:
        logdet += np.log1p(n) - np.log(spread)
    # Sums of squares that the mean, the missing value and the line explain, of each output.
    by_mean = targets[:, :, 1:].sum(axis=2) ** 2 / n_present
    by_missing = targets[:, :, 0] ** 2 / np.maximum(counts[:, :1], 1e-300)
    by_line = (targets[:, :, 1:] @ centred[:, :, None])[:, :, 0] ** 2 / spread * with_line
    by_null_space = (by_mean + by_missing + by_line) * (n / (n + 1))
    by_curve = explained - (by_mean + by_line)[:, :, None]
    deviance = _positive(squares - by_null_space[:, :, None] - by_curve, squares)
    criterion = (n - 1)[:, :, None] * np.log(deviance) + logdet[:, None]
    return -0.5 * criterion.min(axis=2).sum(axis=1)


def _profiles(
    equations: BandedNormalEquations, smoothing: np.ndarray, keep_line: bool
) -> tuple[np.ndarray, np.ndarray]:
    """rᵀ(G + λS)⁻¹r by curve, output and λ, and log|G + λS| by curve and λ."""
    from . import _loops

    n_curves, n_bands, size = equations.gram.shape
    n_outputs, n_smoothing = equations.rhs.shape[1], smoothing.shape[1]
    system = np.zeros((n_curves, size, n_bands + n_outputs + keep_line, n_smoothing))
    gram, penalty, rhs = (
        bands.transpose(0, 2, 1)[..., None]
        for bands in (equations.gram, equations.penalty, equations.rhs)
    )
    np.multiply(penalty, smoothing[:, None, None], out=system[:, :, :n_bands])
    system[:, :, :n_bands] += gram
    system[:, :, n_bands : n_bands + n_outputs] = rhs
    if keep_line:
        system[:, 0, -1], system[:, -1, -1] = -1.0, 1.0
    _loops.eliminate(system, n_bands)
    logdet, solution = 2 * np.log(system[:, :, 0]).sum(axis=1), system[:, :, n_bands:]
    squares = np.sum(solution**2, axis=1)
    if not keep_line:
        return squares, logdet
    cross = np.sum(solution[:, :, :-1] * solution[:, :, -1:], axis=1)
    share = smoothing / equations.steps.sum(axis=1, keepdims=True)
    remaining = 1 - share * squares[:, -1]
    by_line = cross**2 * (share / remaining)[:, None]
    return squares[:, :-1] + by_line, logdet + np.log(remaining)


def _log_fraction(equations: BandedNormalEquations, keep_line: bool) -> np.ndarray:
    """The logarithm of |S|₊/|LᵀL|, by curve."""
    steps = equations.steps
    logs = np.log(steps).sum(axis=1)
    if equations.order == 2:
        return -2 * logs - np.log((steps[:, 1:] + steps[:, :-1]) / 2).sum(axis=1)
    return -logs - np.log(steps.sum(axis=1)) if keep_line else -logs
