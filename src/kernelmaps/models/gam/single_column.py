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

To compare axes not even a natural basis is needed. With G and S the banded matrices of splines,
whose penalty has the null space N (straight lines) and the rank k,

.. math:: \sum_i \log\Big(1 + \frac{n}{λ s_i}\Big) = \log|G + λS| - k \log λ - \log|N^\top G N|

up to what depends on neither λ nor the axis, and :math:`D = q - t^\top B (G + λS)^{-1} B^\top t`.
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
    """Targets of one output by the codes of one column.

    Attributes
    ----------
    counts, targets : ndarray of shape (n_codes,)
        Sums of the weights, and of the weighted targets around their mean.
    square : float
        Sum of the weighted squares of the targets around their mean.
    """

    counts: np.ndarray
    targets: np.ndarray
    square: float

    @property
    def n(self) -> float:
        return max(float(self.counts.sum()), 1e-300)

    def positive(self, deviance: np.ndarray) -> np.ndarray:
        """D, above its rounding errors."""
        return np.maximum(deviance, 1e-14 * self.square + 1e-300)


def column_targets(sums: Sequence[CodeSums], column: int) -> list[ColumnTargets]:
    """Targets of all outputs by the codes of one column."""
    by_output = []
    for output in sums:
        mean = output.target / max(output.weight, 1e-300)
        counts = output.singles[column]
        targets = output.targets[column] - mean * counts
        by_output.append(ColumnTargets(counts, targets, output.square - mean * output.target))
    return by_output


def fit_alone(basis: TermBasis, outputs: Sequence[ColumnTargets]) -> tuple[float, float]:
    """Estimate the smoothing parameter of a column's curve by REML, with no other term.

    Returns the log-likelihood −ℓ at the best smoothing parameter and the degrees of freedom there:
    for several outputs, the sum of the first and the maximum of the second.
    """
    likelihood = edf = 0.0
    for output in outputs:
        n, rhs = output.n, output.targets @ basis.values
        in_range_space = basis.smoothing_index == 0
        # The null space has the smoothing parameter of one row: it costs each axis the same.
        penalty = np.where(in_range_space, n * SMOOTHING_GRID[:, None] * basis.penalty, 1.0)
        deviance = output.positive(output.square - np.sum(rhs**2 / (n + penalty), axis=1))
        criterion = (n - 1) * np.log(deviance) + np.sum(np.log1p(n / penalty), axis=1)
        best = int(np.argmin(criterion))
        likelihood -= 0.5 * float(criterion[best])
        edf = max(edf, float(np.sum(n / (n + penalty[best]))))
    return likelihood, edf


def axis_likelihoods(
    equations: BandedNormalEquations, position: np.ndarray, order: int,
    outputs: Sequence[ColumnTargets],
) -> np.ndarray:  # fmt: skip
    """−ℓ of a curve on some axes at its best smoothing parameter, up to a common constant.

    `position` are the positions of the bins on each of the axes of the `equations`.
    """
    from . import _loops

    # tr(G)/tr(S) is of the order of n over the median penalty of a natural basis.
    unit = equations.gram[:, 0].sum(axis=1) / equations.penalty[0].sum()
    smoothing = np.outer(unit, SMOOTHING_GRID)
    n_axes, n_bands, size = equations.gram.shape
    system = np.empty((n_axes, len(outputs), n_bands + 1, size))
    system[:, :, :-1], system[:, :, -1] = equations.gram[:, None], equations.rhs
    penalty = np.zeros((n_bands + 1, size))
    penalty[:-1] = equations.penalty
    explained, logdet = np.empty((2, n_axes * len(outputs), smoothing.shape[1]))
    _loops.profiles(
        system.reshape(len(explained), n_bands + 1, size), penalty,
        np.repeat(smoothing, len(outputs), axis=0),
        np.empty((n_bands + 1, n_bands + 1, smoothing.shape[1])), explained, logdet,
    )  # fmt: skip
    explained, logdet = explained.reshape(n_axes, len(outputs), -1), logdet[:: len(outputs)]
    likelihood, rank = np.zeros(len(position)), size - order
    for k, output in enumerate(outputs):
        counts = output.counts[1:]
        by_missing = output.targets[0] ** 2 / max(output.counts[0], 1e-300)
        deviance = output.positive(output.square - by_missing - explained[:, k])
        criterion = (output.n - 1) * np.log(deviance) + logdet - rank * np.log(smoothing)
        likelihood -= 0.5 * criterion.min(axis=1)
        if order > 1:
            centred = position - (position @ counts / max(counts.sum(), 1e-300))[:, None]
            likelihood += 0.5 * np.log(np.maximum(centred**2 @ counts, 1e-300))
    return likelihood
