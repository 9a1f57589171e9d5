r"""The scale of a map's columns: their mean squared distance from their mean.

A penalty ½‖w‖² beside C times losses means the same for two maps if :math:`C\,\overline{\|ψ -
m\|^2}` is the same. ``C="scale"`` sets

.. math:: κ = C\,ℓ''\, \overline{\|ψ - m\|^2}

to a constant, with the largest second derivative ℓ'' of the loss. κ is the ratio of two
curvatures, of the losses and of the penalty, along the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..._util.threads import cached_property
from ...engine import Spec, apply
from ..losses import Loss
from ..solvers.conditional_gradient import bounded_duals

# κ of ``C="scale"``. Cross-validated accuracy on 1500 rows of six tables (0/1 columns like those of
# DNA, spambase, magic, adult one-hot, pendigits, usps), cubic splines, squared hinge loss: it is
# 0.3 points below that of the best C in the mean, 0.7 at most; with κ = 2, 0.6 and 1.5; with C = 1,
# 1.7 and 4.3.
SCALED_CURVATURE_RATIO = 6.0
_MOST_ROWS = 1024  # whose squared distances are averaged: the mean is exact to some percent
# Variances, relative to mean squares, that are rounding errors of the means of so many rows.
_ROUNDING = _MOST_ROWS * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class MappedSample:
    """ψ of some rows of positive weight, at equal distances: what the scale of a map is read off.

    Attributes
    ----------
    rows : ndarray of int
        Which of all rows.
    psi : array or CSR
    share : ndarray
        Weights of the rows, which sum to one.
    """

    rows: np.ndarray
    psi: Any
    share: np.ndarray

    @classmethod
    def of(cls, spec: Spec, X: Any, weight: np.ndarray, n_rows: int = _MOST_ROWS) -> MappedSample:
        rows = np.flatnonzero(weight > 0)
        rows = rows[:: -(-len(rows) // n_rows)]
        return cls(rows, apply(spec, X[rows], n_jobs=1), weight[rows] / weight[rows].sum())

    @cached_property
    def mean(self) -> np.ndarray:
        """m."""
        return np.asarray(self.share @ self.psi, np.float64)

    @cached_property
    def squares(self) -> np.ndarray:
        """‖ψ‖² of each row."""
        if sparse.issparse(self.psi):
            return np.ravel(self.psi.multiply(self.psi).sum(axis=1))
        return np.square(self.psi, dtype=np.float64).sum(axis=1)

    @property
    def mean_square(self) -> float:
        """The weighted mean of ‖ψ − m‖²: zero, not a rounding error, where rows are alike."""
        square = float(self.share @ self.squares)
        variance = square - float(self.mean @ self.mean)
        return variance if variance > _ROUNDING * square else 0.0

    def bound_ratio(self, hinges: tuple[np.ndarray, np.ndarray], cost: np.ndarray) -> float:
        """‖Σ α_i ψ_i‖² over Σ m a for dual variables a at their bounds, balanced.

        Along a the dual has the first derivative Σ m a and the second one −‖Σ α_i ψ_i‖²: below 1 it
        rises up to the bounds. Products of a row with itself are counted once, as in the sum over
        all rows, not as often as rows are left out. `hinges` are those of the rows of the sample,
        `cost` is that of all rows.
        """
        sign, margin = hinges
        dual = bounded_duals(sign, margin, cost[self.rows], True)
        alpha, value = np.sum(sign * dual, axis=0), float(np.vdot(margin, dual))
        if not value > 0:
            return np.inf
        weights = np.ravel(alpha @ self.psi)  # α sums to zero: centred rows have the same
        norms = self.squares - 2 * np.ravel(self.psi @ self.mean) + float(self.mean @ self.mean)
        same, factor = float(alpha**2 @ norms), len(cost) / len(alpha)
        square = factor * (float(weights @ weights) - same) + same
        return max(square, 0.0) / value


def mean_square(spec: Spec, X: Any, weight: np.ndarray, n_rows: int = _MOST_ROWS) -> float:
    """The weighted mean of ‖ψ − m‖² over rows of positive weight, or some of them."""
    return MappedSample.of(spec, X, weight, n_rows).mean_square


def max_curvature(loss: Loss, y: np.ndarray, weight: np.ndarray) -> float:
    """The largest ℓ''; of a loss with corners, whose derivative jumps, one over a length.

    The length is 1 for labels, and the mean absolute deviation of the targets of a regression.
    """
    length = 1.0
    if loss.has_corners and not loss.of_labels:
        deviations = np.abs(y - np.average(y, weights=weight))
        length = float(np.average(deviations, weights=weight)) or 1.0
    return loss.svm_factor * loss.max_curvature / length


def curvature_ratio(loss: Loss, y: np.ndarray, cost: np.ndarray, square: float) -> float:
    """κ for the mean cost of the rows, with `mean_square` of their columns."""
    return float(np.mean(cost)) * max_curvature(loss, y, cost) * square


def scaled_C(spec: Spec, X: Any, loss: Loss, y: np.ndarray, weight: np.ndarray) -> float:
    """The C of ``C="scale"``; 1 where all rows are mapped alike."""
    square = mean_square(spec, X, weight)
    if not square:
        return 1.0
    return SCALED_CURVATURE_RATIO / (max_curvature(loss, y, weight) * square)
