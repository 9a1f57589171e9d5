r"""Fits of one column alone: which axis suits it, and how many functions it can use.

A natural basis is orthonormal over the rows, :math:`B^\top \mathrm{diag}(n_c) B = nI`, and its
penalty is diagonal: the restricted likelihood of a least-squares fit to one column's function
(:mod:`.reml`) is a sum over its weights, for as many strengths as one likes, without a matrix:

.. math:: 2ℓ(λ) = (n - 1)\log D + \sum_i \log\Big(1 + \frac{n}{λ s_i}\Big),
          \qquad D = q - \sum_i \frac{r_i^2}{n + λ s_i}, \quad r = B^\top t,

t the sums of the centred targets by code, and q the sum of their squares. Other losses have the
slopes at the intercept in the place of the targets. What is left out of the model beside this
column counts as noise, so that the choice is a cautious one.

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
from .bases import Bands, Basis

_STRENGTHS = np.geomspace(1e-7, 1e3, 31)  # per row, of the median penalty of a natural basis


@dataclass(frozen=True)
class Signal:
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


def signals_of(sums: Sequence[CodeSums], column: int) -> list[Signal]:
    """Targets of all outputs by the codes of one column."""
    found = []
    for own in sums:
        mean = own.target / max(own.weight, 1e-300)
        targets = own.targets[column] - mean * own.singles[column]
        found.append(Signal(own.singles[column], targets, own.square - mean * own.target))
    return found


def fit_margin(basis: Basis, signals: Sequence[Signal]) -> tuple[float, float]:
    """Choose the strength of a column's curve by restricted likelihood, with nothing beside it.

    Returns the evidence, −ℓ at the best strength, and the degrees of freedom there: of several
    outputs, the sum of the first and the most of the second.
    """
    evidence = edf = 0.0
    for signal in signals:
        n = max(float(signal.counts.sum()), 1e-300)
        right, curved = signal.targets @ basis.values, basis.group == 0
        # Straight parts have the strength of one row: they cost each axis the same.
        penalty = np.where(curved, n * _STRENGTHS[:, None] * basis.penalty, 1.0)
        left = signal.square - np.sum(right**2 / (n + penalty), axis=1)
        left = np.maximum(left, 1e-14 * signal.square + 1e-300)
        twice = (n - 1) * np.log(left) + np.sum(np.log1p(n / penalty), axis=1)
        best = int(np.argmin(twice))
        evidence -= 0.5 * float(twice[best])
        edf = max(edf, float(np.sum(n / (n + penalty[best]))))
    return evidence, edf


def axis_evidence(
    bands: Bands, place: np.ndarray, order: int, signals: Sequence[Signal]
) -> np.ndarray:
    """−ℓ of a curve on some axes at its best strength, up to what all axes have in common.

    `place` are the positions of the bins on each of them, to which `bands` belong.
    """
    from . import _loops

    # tr(G)/tr(S) is of the order of n over the median penalty of a natural basis.
    strengths = np.outer(bands.gram[:, 0].sum(axis=1) / bands.penalty[0].sum(), _STRENGTHS)
    left = np.empty((len(place), len(signals), strengths.shape[1]))
    logdet = np.empty_like(strengths)
    _loops.profiles(bands.gram, bands.penalty, bands.right, strengths, left, logdet)
    evidence, rank = np.zeros(len(place)), bands.gram.shape[2] - order
    for k, signal in enumerate(signals):
        n, own = max(float(signal.counts.sum()), 1e-300), signal.counts[1:]
        missing = signal.targets[0] ** 2 / max(signal.counts[0], 1e-300)
        rest = signal.square - missing - left[:, k]
        rest = np.maximum(rest, 1e-14 * signal.square + 1e-300)
        twice = (n - 1) * np.log(rest) + logdet - rank * np.log(strengths)
        evidence -= 0.5 * twice.min(axis=1)
        if order > 1:
            spread = place - (place @ own / max(own.sum(), 1e-300))[:, None]
            evidence += 0.5 * np.log(np.maximum(spread**2 @ own, 1e-300))
    return evidence
