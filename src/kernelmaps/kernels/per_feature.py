"""Additive kernels with a scalar kernel of its own for each feature (Wang et al. 2015, eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.devices import is_foreign, namespace_of
from .additive import AdditiveKernel
from .base import Rows


@dataclass(frozen=True)
class PerFeature(AdditiveKernel):
    """The kernel k(x, y) = Σ_d c_d(x_d, y_d), with a scalar kernel for each feature.

    Parameters
    ----------
    kernels : sequence of AdditiveKernel
        The kernel of each feature. ``kernels.get(["chi2", "intersection"])`` makes it from names
        and functions.

    Examples
    --------
    >>> from kernelmaps import kernels
    >>> kernels.get(["intersection", "hellinger"])([[1.0, 4.0]], [[3.0, 9.0]])
    array([[7.]])
    """

    kernels: tuple[AdditiveKernel, ...]
    name = "per_feature"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(self.kernels))
        for d, kernel in enumerate(self.kernels):
            if not isinstance(kernel, AdditiveKernel) or isinstance(kernel, PerFeature):
                raise TypeError(
                    f"PerFeature: the kernel of feature {d} must be an additive one (chi2, "
                    f"intersection, …, or a function c(x, y) of numbers), got {kernel!r}."
                )
        if not self.kernels:
            raise ValueError("PerFeature: there must be at least one kernel, for one feature.")

    def feature(self, d: int) -> AdditiveKernel:
        return self.kernels[d]

    @property
    def non_negative(self) -> bool:
        return all(kernel.non_negative for kernel in self.kernels)

    def component(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Evaluate the scalar kernels; the last axis of x and y is that of the features.

        Parameters
        ----------
        x, y : array-like of shape (..., n_features)
            Values of all features.

        Returns
        -------
        ndarray of shape (..., n_features)
            Kernel values.
        """
        xp = namespace_of(x)
        terms = [k.component(x[..., d], y[..., d]) for d, k in enumerate(self.kernels)]
        return xp.stack(terms, axis=-1)

    def clipping_bound(self, limit: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """Bound what clipping changes, feature by feature.

        Parameters
        ----------
        limit, largest : ndarray of shape (n_features,)
            Values above `limit` are clipped to it; none is larger than `largest`.

        Returns
        -------
        ndarray of shape (n_features,)
            The bounds; 0 where nothing is clipped.
        """
        kernels: tuple[Any, ...] = self.kernels  # of which those of certified maps know a bound
        ends = zip(kernels, np.asarray(limit), np.asarray(largest), strict=True)
        return np.array([float(kernel.clipping_bound(*pair)) for kernel, *pair in ends])

    def groups(self) -> list[tuple[AdditiveKernel, np.ndarray]]:
        """Return the different kernels, each with the features that have it.

        Returns
        -------
        list of (AdditiveKernel, ndarray of int)
            In the order of their first features.
        """
        columns: dict[AdditiveKernel, list[int]] = {}
        for d, kernel in enumerate(self.kernels):
            columns.setdefault(kernel, []).append(d)
        return [(kernel, np.array(features)) for kernel, features in columns.items()]

    def check_width(self, n_features: int, owner: str) -> None:
        """Raise ValueError if there are more or fewer features than kernels.

        Parameters
        ----------
        n_features : int
            Features of the rows.
        owner : str
            Who asks, for the message.
        """
        if n_features != len(self.kernels):
            raise ValueError(
                f"{owner}: there are kernels for {len(self.kernels)} features, but X has "
                f"{n_features}. Give one kernel for each column."
            )

    def _check_values(self, X: Any, name: str) -> None:
        self.check_width(X.shape[1], "PerFeature")
        for kernel, columns in self.groups():
            kernel._check_values(_taken(X, columns), name)

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        parts = (
            kernel._gram(_taken(X, columns), None if Y is None else _taken(Y, columns), n_jobs)
            for kernel, columns in self.groups()
        )
        return sum(parts, start=np.zeros((), dtype=X.dtype))

    def _diag(self, X: Rows) -> np.ndarray:
        parts = (kernel._diag(_taken(X, columns)) for kernel, columns in self.groups())
        return sum(parts, start=np.zeros((), dtype=X.dtype))


def _taken(X: Any, columns: np.ndarray) -> Any:
    """Some columns of rows, where the rows are."""
    if is_foreign(X):
        xp = namespace_of(X)
        return xp.take(X, xp.asarray(columns, device=X.device), axis=1)
    taken = X[:, columns]
    return np.ascontiguousarray(taken) if isinstance(taken, np.ndarray) else taken
