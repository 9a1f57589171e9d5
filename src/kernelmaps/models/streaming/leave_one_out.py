"""Exact leave-one-out errors of ridge regression, by a second pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ...device import is_tensor, to_host
from ...stats import Moments
from ...stats.products import as_columns
from .quadratic import Spectrum


class LeaveOneOut:
    """Σ w (y − f₋ᵢ(x))² for every size and every α, as statistics that can be folded.

    The fit without row i is never made: with the leverage of a weighted row

        h_i(α) = w_i (1/W + Σ_j p_ij² / (λ_j + α)),   p_i = axesᵀ (z_i − z̄),

    where 1/W is the intercept's share, y_i − f₋ᵢ(x_i) = (y_i − f(x_i)) / (1 − h_i). The PCA, which
    has not seen the targets, is held fixed. Leverages are not sums over rows, hence the second
    pass; all α and targets share it.

    Parameters
    ----------
    stats : Moments
        In the coordinates in which `spectra` are (the projected ones).
    spectra : sequence of (columns, Spectrum)
        One for each size.
    alphas : sequence of float
    projection : ndarray of shape (D, r) or None
        From features to coordinates.
    """

    shift = ()  # nothing to be centred on: see `fold`

    def __init__(
        self,
        stats: Moments,
        spectra: Sequence[tuple[np.ndarray, Spectrum]],
        alphas: Sequence[float],
        projection: np.ndarray | None,
    ) -> None:
        self.tag = stats.tag
        self.mean, self.y_mean, self.weight = stats.mean, stats.y_mean, stats.weight
        self.classes = stats.classes
        self.spectra, self.alphas, self.projection = list(spectra), list(alphas), projection
        self.errors = np.zeros((len(self.spectra), len(self.alphas)))

    def zero(self) -> Self:
        """Return the same question without an answer."""
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out.errors = np.zeros_like(self.errors)
        return out

    def merge(self, other: Self) -> Self:
        """Add the errors of other rows."""
        self.errors += other.errors
        return self

    def on_host(self) -> Self:
        """Errors are numbers of the host already."""
        return self

    def partial(self, Z: Any, y: Any, w: Any = None, start: int = 0, *, own: bool = False) -> Self:
        """Errors of one block."""
        out, Z = self.zero(), to_host(Z) if is_tensor(Z) else Z
        kind = np.float32 if Z.dtype == np.float32 else np.float64
        w = np.ones(Z.shape[0]) if w is None else np.asarray(w, dtype=np.float64)
        coordinates = Z if self.projection is None else Z @ self.projection.astype(kind)
        if hasattr(coordinates, "toarray"):
            coordinates = coordinates.toarray()
        C = coordinates - self.mean.astype(kind)
        for s, (columns, spectrum) in enumerate(self.spectra):
            P = (
                C[:, columns]
                if spectrum.axes is None
                else C[:, columns] @ spectrum.axes.astype(kind)
            )
            inverse = np.array([spectrum._inverse(alpha) for alpha in self.alphas])
            leverage = w[:, None] * (1 / self.weight + (P * P) @ inverse.T.astype(kind))
            for a in range(len(self.alphas)):
                fitted = P @ (spectrum.c * inverse[a]).T.astype(kind)
                residual = self._targets(y) - fitted
                # A row that alone determines its fit has h = 1 and says nothing about α.
                factor = w / np.maximum(1.0 - leverage[:, a], np.finfo(float).eps) ** 2
                out.errors[s, a] = float((factor[:, None] * residual**2).sum())
        return out

    def _targets(self, y: Any) -> np.ndarray:
        if self.classes is None:
            return as_columns(y) - self.y_mean
        return (np.asarray(y)[:, None] == self.classes) - self.y_mean
