"""The choice of C by cross-validation, along a path of warm starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv

from ..._util.arguments import check_positive
from ..._util.display import track
from .fitted_map import FittedMap
from .model import AdditiveMachine
from .problem import Options, Targets

SCALE = "scale"  # C from the scale of the map's columns
_TIE = 1e-12  # mean scores that differ by less are equal: the smaller C is taken

# Of scores [row][output], targets and weights of the rows that a fold holds out: the higher, the
# better.
Score = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def values_of_C(owner: str, C: Any) -> np.ndarray | None:
    """Several values of C in increasing order, checked; None for a single number or "scale"."""
    if isinstance(C, str) and C == SCALE:
        return None
    expected = f"a positive number, several of them or {SCALE!r}"
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


def folds_of(
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
    given = not isinstance(cv, Integral | None) and not hasattr(cv, "split")
    divided = np.arange(len(y)) if given else np.flatnonzero(counts > 0)
    try:
        splitter = check_cv(cv, y[divided], classifier=classifier)
        splits = splitter.split(np.zeros(len(divided)), y[divided])
        folds = [divided[test] for _, test in splits]
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{owner}: cv={cv!r} gives no folds: {error}") from None
    empty = [k for k, test in enumerate(folds) if not counts[test].any()]
    if empty:
        raise ValueError(
            f"{owner}: all rows that fold {empty[0]} of cv holds out have the weight 0. Leave that "
            "fold out, or give some of its rows a weight."
        )
    return folds


def cross_validate(
    Cs: np.ndarray,
    folds: list[np.ndarray],
    rows: Any,
    targets: Targets,
    counts: np.ndarray,
    score: Score,
    fitted: FittedMap,
    options: Options,
) -> tuple[np.ndarray, int]:
    """Held-out scores of shape (n_folds, n_Cs), and the number of fits that did not converge.

    The map is fitted already (it learns ranges, nothing of the targets), no rows are copied for
    the training (those held out have cost 0), and each C starts from the duals of the one before.
    """
    quiet, not_converged = replace(options, progress=None), 0
    scores = np.empty((len(folds), len(Cs)))
    for k in track(range(len(folds)), "folds", enabled=options.progress):
        start, test = None, counts[folds[k]] > 0
        y, weight = targets.y[folds[k]][test], counts[folds[k]][test]
        for i, C in enumerate(Cs):
            outputs, solution = held_out_scores(
                rows, targets, folds[k], float(C), fitted, quiet, start
            )
            start = solution.alpha, solution.intercept
            scores[k, i] = score(outputs[test], y, weight)
            not_converged += not solution.converged
    return scores, not_converged


def held_out_scores(
    rows: Any, targets: Targets, held_out: np.ndarray, C: float, fitted: FittedMap,
    options: Options, start: tuple[np.ndarray, np.ndarray] | None,
) -> tuple[np.ndarray, Any]:  # fmt: skip
    """Scores of rows by a machine that was trained without them, and its solution."""
    from .training import train

    weight = targets.weight.copy()
    weight[held_out] = 0.0
    solution = train(rows, targets._replace(weight=weight), C, fitted, options, start)
    machine = AdditiveMachine(fitted, solution.weights, solution.intercept, options.tol)
    return machine.trained_scores(rows, held_out, options.n_jobs), solution


def warn_unless_folds_converged(not_converged: int, n_fits: int, options: Options) -> None:
    """Warn, in the name of the line that called `fit`, of fits that did not converge."""
    if not_converged:
        warnings.warn(
            f"{options.owner}: {not_converged} of {n_fits} fits to folds stopped with a duality "
            f"gap above tol={options.tol:g}, so that their scores are approximate: raise max_iter= "
            "or tol=, or leave out large values of C=.",
            ConvergenceWarning,
            stacklevel=6,  # this function, two of the base class, fit and its decorator
        )


def best_of(Cs: np.ndarray, scores: np.ndarray) -> float:
    """The smallest C of the highest mean score."""
    means = scores.mean(axis=0)
    return float(Cs[int(np.argmax(means > means.max() - _TIE))])
