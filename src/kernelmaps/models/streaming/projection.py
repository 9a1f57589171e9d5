"""Coordinates in which a quadratic problem is solved, and its solution."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from ...schema import anything, array, number, optional, record, saved
from ...stats import Moments
from .quadratic import numerical_rank


@dataclass(frozen=True)
class Path:
    """Models for every PCA size and every regularisation, from the same statistics.

    For classes the targets are one-hot, 0 and 1.

    Attributes
    ----------
    n_components : list
        Sizes (None: no PCA).
    alphas : ndarray
    coef : ndarray of shape (n_sizes, n_alphas, n_targets, D)
    intercept : ndarray of shape (n_sizes, n_alphas, n_targets)
    """

    n_components: list[Any]
    alphas: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray


@record
class _Solution:
    coef: np.ndarray = saved(array("f8", "targets features"))
    intercept: np.ndarray = saved(array("f8", "targets"))
    alpha: float = saved(number(low=0))
    n_components: Any = saved(anything, default=None)
    cv_results: dict[str, Any] | None = saved(optional(anything), default=None)


@dataclass(frozen=True)
class Coordinates:
    """The statistics in the coordinates in which the model is solved.

    Attributes
    ----------
    total, folds : Moments, list of Moments
        Projected sums.
    projection : ndarray of shape (D, r) or None
        From the features that were folded to the coordinates.
    back : ndarray of shape (D, r) or None
        U, block-diagonal for several kernels; β = U w (errata 2.20: not Uᵀw).
    rank, kernel : ndarray of shape (r,)
        Place of each coordinate within the PCA of its kernel, and that kernel.
    diagonal : bool
        Whether the scatter is diagonal: a PCA of these very rows.
    """

    total: Moments
    folds: list[Moments]
    projection: np.ndarray | None
    back: np.ndarray | None
    rank: np.ndarray
    kernel: np.ndarray
    diagonal: bool


def component_count(name: str, size: Any, values: np.ndarray, n: int) -> int:
    """Number of components for None (all with variance), an int, or a fraction of variance."""
    most = min(n, len(values))
    if size is None:
        return max(numerical_rank(values), 1)
    if isinstance(size, Integral) and not isinstance(size, bool):
        if not 1 <= int(size) <= most:
            raise ValueError(
                f"{name}: n_components={size} must be between 1 and min(n_samples, "
                f"n_features)={most}, with {n} rows and {len(values)} features"
            )
        return int(size)
    if isinstance(size, Real) and 0 < float(size) < 1:
        share = np.cumsum(values) / max(values.sum(), np.finfo(float).tiny)
        return min(int(np.searchsorted(share, size, side="left")) + 1, most)
    raise ValueError(
        f"{name}: n_components must be None, a positive integer, or a fraction of variance in "
        f"(0, 1), got {size!r}"
    )


def check_rows(owner: Any, stats: Moments) -> None:
    if stats.H is None or not stats.weight > 0:
        raise ValueError(f"{type(owner).__name__}: no rows of positive weight were found")
