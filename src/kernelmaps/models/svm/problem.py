"""What additive support vector machines are trained on, and how: plain arguments of solvers.

Nothing here loads a compiler: estimators are imported, and refuse bad arguments, without one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv

from ..._util.arguments import argument, check_positive, parameter
from ..._util.sparse import dense
from ...engine import Spec, apply
from ..losses import Loss
from .fitted import precision_of

_COSTS = (1e-30, 1e30)  # of one example; beyond, weights in float32 may overflow
# Of targets: beyond, their squares, or weights in single precision, may overflow.
LARGEST_TARGET = {np.float64: 1e150, np.float32: 1e30}


class Targets(NamedTuple):
    """Targets of rows as solvers take them.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Codes of the labels, or numbers minus `centre`.
    positive : ndarray of shape (n_outputs,) or (n_outputs, 2)
        The code that each output calls +1; of pairs of classes, the codes of −1 and of +1.
    weight : ndarray of shape (n,)
        Sample weights, those of classes included.
    centre : float
        Taken off the targets of a regressor.
    """

    y: np.ndarray
    positive: np.ndarray
    weight: np.ndarray
    centre: float = 0.0

    @property
    def pairwise(self) -> bool:
        """Whether the outputs are pairs of classes."""
        return self.positive.ndim == 2

    def select(self, rows: np.ndarray) -> Targets:
        """Targets of some rows."""
        return self._replace(y=self.y[rows], weight=self.weight[rows])


@dataclass(frozen=True)
class Options:
    """How to train: parameters of the estimator, checked, apart from its map and C."""

    owner: str  # name of the estimator, for messages
    loss: str
    epsilon: float
    fit_intercept: bool
    tol: float
    max_iter: int
    solver: str
    seed: int
    n_threads: int
    progress: bool | None


def weigh_costs(owner: str, C: float, weight: np.ndarray) -> np.ndarray:
    """C times the weights, which has to lie where the solver's numbers are exact."""
    cost = C * weight
    wrong = (weight > 0) & ~((cost >= _COSTS[0]) & (cost <= _COSTS[1]))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{owner}: C times the weight of row {row} is {cost[row]:g} (C = {C:g}, weight "
            f"{weight[row]:g}), and must lie between {_COSTS[0]:g} and {_COSTS[1]:g}. Change C, "
            "scale the weights, or give rows that do not count the weight 0."
        )
    return cost


def warn_unless_converged(solution: Any, options: Options) -> None:
    """Warn, in the name of the line that called `fit`, of a duality gap above the tolerance."""
    if solution.converged:
        return
    worst = float(np.max(solution.gap / np.maximum(solution.primal, 1e-300)))
    # Newton's method ends where rounding errors do not let it go on, not at max_iter.
    if solution.solver == "primal":
        ended, advice = f"{solution.n_iter} Newton steps", f"raise {argument('tol')}"
    else:
        ended = f"{argument('max_iter', options.max_iter)} epochs"
        advice = f"raise {argument('max_iter')} or {argument('tol')}"
        if not parameter("tol").startswith("--"):  # of a command, which has no option for a solver
            advice += ", use solver='primal'"
    warnings.warn(
        f"{options.owner} stopped after {ended} with a relative duality gap of {worst:.2g} > "
        f"{argument('tol', options.tol)}: {advice}, or lower a large {argument('C')}.",
        ConvergenceWarning,
        stacklevel=6,  # this function, two of the base class, fit and its decorator
    )


def check_size(rows: Any, targets: Targets, options: Options) -> None:
    """Refuse targets so large that weights may overflow."""
    largest = LARGEST_TARGET[precision_of(rows, options.tol)]
    if np.abs(targets.y).max(initial=0.0) > largest:
        row = int(np.argmax(np.abs(targets.y)))
        raise ValueError(
            f"{options.owner}: y is {targets.y[row] + targets.centre:g} in row {row}; for rows of "
            f"{rows.dtype} targets beyond ±{largest:g} may overflow: scale y."
        )


# κ of ``C="scale"``. Cross-validated accuracy on 1500 rows of six tables (0/1 columns like those of
# DNA, spambase, magic, adult one-hot, pendigits, usps), cubic splines, squared hinge loss: it is
# 0.3 points below that of the best C in the mean, 0.7 at most; with κ = 2, 0.6 and 1.5; with C = 1,
# 1.7 and 4.3.
SCALED_CURVATURE_RATIO = 6.0
_MOST_ROWS = 1024  # whose squared distances are averaged: the mean is exact to some percent
# Variances, relative to mean squares, that are rounding errors of the means of so many rows.
_ROUNDING = _MOST_ROWS * float(np.finfo(np.float64).eps)


def mean_square(spec: Spec, X: Any, weight: np.ndarray, n_rows: int = _MOST_ROWS) -> float:
    """The weighted mean of ‖ψ − m‖² over rows of positive weight, or some at equal distances.

    It is zero, not a rounding error, where rows are alike.
    """
    rows = np.flatnonzero(weight > 0)
    rows = rows[:: -(-len(rows) // n_rows)]
    shares, mean, square = weight[rows] / weight[rows].sum(), 0.0, 0.0
    for row, share in zip(rows, shares, strict=True):  # ψ of 1000 features is 100 kB a row
        psi = dense(apply(spec, X[[row]], n_jobs=1))[0].astype(np.float64)
        mean += share * psi
        square += float(share * (psi @ psi))
    variance = square - float(np.dot(mean, mean))
    return variance if variance > _ROUNDING * square else 0.0


def max_curvature(loss: Loss, y: np.ndarray, weight: np.ndarray) -> float:
    """The largest ℓ''; of a loss with kinks, whose derivative jumps, one over a length.

    The length is 1 for labels, and the mean absolute deviation of the targets of a regression.
    """
    length = 1.0
    if loss.has_kinks and not loss.has_labels:
        deviations = np.abs(y - np.average(y, weights=weight))
        length = float(np.average(deviations, weights=weight)) or 1.0
    return loss.svm_factor * loss.max_curvature / length


def curvature_ratio(loss: Loss, y: np.ndarray, cost: np.ndarray, square: float) -> float:
    """κ = c ℓ'' mean ‖ψ − m‖² for the mean cost c, with `mean_square` of the columns.

    It is the ratio of two curvatures, of the losses and of the penalty ½‖w‖², along the columns,
    and does not depend on the units of a map.
    """
    return float(np.mean(cost)) * max_curvature(loss, y, cost) * square


def check_C(owner: str, C: Any) -> np.ndarray | None:
    """Several values of C in increasing order, checked; None for a single number or "scale"."""
    if isinstance(C, str) and C == "scale":
        return None
    expected = "a positive number, several of them or 'scale'"
    if isinstance(C, Real | str | bytes | None) or np.ndim(C) == 0:
        check_positive(owner, "C", C.item() if isinstance(C, np.ndarray) else C, expected)
        return None
    try:
        values = np.sort(np.ravel(np.asarray(C, dtype=np.float64)))
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.size == 0 or not ((values > 0) & np.isfinite(values)).all():
        raise ValueError(f"{owner}: C must be {expected}, got {C!r}.")
    return values


def held_out_folds(
    owner: str, cv: Any, y: np.ndarray, counts: np.ndarray, classifier: bool
) -> list[np.ndarray]:
    """Held-out rows of each fold; rows of weight 0 are not divided, unless splits are given.

    Parameters
    ----------
    owner : str
        The estimator, for messages.
    cv : int, splitter or iterable
        As in scikit-learn.
    y : ndarray
        Targets, for folds with the classes in their shares.
    counts : ndarray
        Sample weights.
    classifier : bool
        Whether `y` are codes of labels.
    """
    has_splits = not isinstance(cv, Integral | None) and not hasattr(cv, "split")
    divided = np.arange(len(y)) if has_splits else np.flatnonzero(counts > 0)
    try:
        splits = check_cv(cv, y[divided], classifier=classifier).split(divided, y[divided])
        folds = [divided[test] for _, test in splits]
        if not all(counts[test].any() for test in folds):
            raise ValueError("all rows of a fold have the weight 0")
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{owner}: cv={cv!r} gives no folds: {error}") from None
    return folds
