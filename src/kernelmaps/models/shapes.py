"""Shape functions and pair functions as arrays, for displays and reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def importance_of(variances: np.ndarray) -> np.ndarray:
    """How much a function matters: its standard deviation over rows, averaged over outputs.

    This is the one measure of importance. Variances (..., n_outputs) are those of its values
    over the training rows or a sample of them, where a model has these.
    """
    return np.sqrt(np.maximum(variances, 0)).mean(axis=-1)


def tabulated_importance(values: np.ndarray, weight: np.ndarray) -> float:
    """Importance of a function, from values (..., n_outputs) in cells and weights of the cells."""
    share = weight / max(float(weight.sum()), 1e-300)
    mean = np.tensordot(share, values, axes=share.ndim)
    variances = np.tensordot(share, np.square(values - mean), axes=share.ndim)
    return float(importance_of(variances))


@dataclass(frozen=True)
class ShapeFunction:
    """One feature's part of the score.

    Attributes
    ----------
    name : str
        Of the feature.
    grid : ndarray of shape (m,)
        Points from the smallest to the largest value of (a sample of) the training data; 0, 1, …
        for the levels of a category.
    values : ndarray of shape (m,) or (m, n_classes)
        g_j there, with mean zero over (the sample of) the training data.
    edges, density : ndarray
        Histogram of the feature, as shares of the data.
    errors : ndarray like `values`, optional
        Standard errors; `values` ± 2 `errors` is a band of about 95 %.
    levels : tuple of str, optional
        Names of a category's levels.
    missing : ndarray of shape (2,) or (2, n_classes), optional
        The value for rows where the feature is missing, and its standard error.
    importance : float
        Standard deviation over the training data (see `importance_of`), as in
        `feature_importances_`.
    ticks : tuple of (float, str), optional
        Values that have a name, with their names: 1 is "Mon" of weekdays.
    """

    name: str
    grid: np.ndarray
    values: np.ndarray
    edges: np.ndarray
    density: np.ndarray
    errors: np.ndarray | None = None
    levels: tuple[str, ...] | None = None
    missing: np.ndarray | None = None
    importance: float = 0.0
    ticks: tuple[tuple[float, str], ...] | None = None


@dataclass(frozen=True)
class PairFunction:
    """The part of the score that two features have beyond their own functions.

    Attributes
    ----------
    name : str
        "first × second".
    first, second : tuple of str
        Labels of the cells along both features.
    values, errors : ndarray of shape (m, k) or (m, k, n_classes)
        The function in each cell, and its standard error.
    density : ndarray of shape (m, k)
        Shares of the training data.
    importance : float
        Standard deviation over the training data.
    across : str
        Name of the first feature.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray
    density: np.ndarray
    importance: float = 0.0
    across: str = ""
