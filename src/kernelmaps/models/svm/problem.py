"""What additive support vector machines are trained on, and how: plain arguments of solvers.

Nothing here loads a compiler: estimators are imported, and refuse bad arguments, without one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._util.arguments import argument, parameter

MOST_LANES = 16  # classes whose weights are the lanes of one vector
SMALL = 2_000_000  # values to look up below which threads do not pay
_EXACT = 1e-5  # tolerances below which float32 is not exact enough
_COSTS = (1e-30, 1e30)  # of one example; beyond, weights in float32 may overflow
# Of targets: beyond, their squares, or weights in single precision, may overflow.
LARGEST_TARGET = {np.float64: 1e150, np.float32: 1e30}


class Targets(NamedTuple):
    """Targets of rows as solvers take them.

    Attributes
    ----------
    y : ndarray of shape (n,) or (n, n_outputs)
        Codes of the labels, or numbers minus `centre`; of rows with several labels, indicators.
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

    @property
    def multilabel(self) -> bool:
        """Whether rows have any number of labels."""
        return self.y.ndim == 2

    def at(self, rows: np.ndarray) -> Targets:
        """Targets of some rows."""
        return self._replace(y=self.y[rows], weight=self.weight[rows])


@dataclass(frozen=True)
class Options:
    """How to train: parameters of the estimator, apart from its map and C."""

    owner: str  # name of the estimator, for messages
    loss: str
    epsilon: float
    fit_intercept: bool
    tol: float
    max_iter: int
    solver: str
    seed: int
    n_jobs: int | None
    progress: bool | None


def precision_of(X: Any, tol: float) -> type:
    """float32 where the data are no finer and the tolerance does not ask for more."""
    return np.float64 if X.dtype == np.float64 or tol < _EXACT else np.float32


def costs_of(owner: str, C: float, weight: np.ndarray) -> np.ndarray:
    """C times the weights, which has to lie where the solver's numbers are exact."""
    cost = C * weight
    wrong = (weight > 0) & ~((cost >= _COSTS[0]) & (cost <= _COSTS[1]))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"{owner}: C times the weight of row {at} is {cost[at]:g} (C = {C:g}, weight "
            f"{weight[at]:g}), and must lie between {_COSTS[0]:g} and {_COSTS[1]:g}. Change C, "
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
    most = LARGEST_TARGET[precision_of(rows, options.tol)]
    if np.abs(targets.y).max(initial=0.0) > most:
        at = int(np.argmax(np.abs(targets.y)))
        raise ValueError(
            f"{options.owner}: y is {targets.y[at] + targets.centre:g} in row {at}; for rows of "
            f"{rows.dtype} targets beyond ±{most:g} may overflow: scale y."
        )
