r"""Cosines of several coordinates on grids of lags, for joint designs.

On a product grid of lags a sum of cosines needs no cosine per grid point: with E_i[a, j] =
exp(iω_j^i λ_a^i) a projection (Chum 2015, eq. 19) is Re Π_i E_i, a modulation (eq. 20) is
Π_i Re E_i, and the sum over j is a product of two matrices. So are all its derivatives: a step of
a descent costs N·m multiplications on N lags and m frequencies, and 4 Σ N_i m sines and cosines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.ndimage import maximum_filter

from .._util.threads import cached_property
from .problem import Cosines

Axes = tuple[np.ndarray, ...]
Periods = tuple[float | None, ...]  # of each axis


def lag_axes(spans: np.ndarray, steps: np.ndarray | int, form: str) -> Axes:
    """Axes of Π[0, M_i] for modulations, of Π[−M_i, M_i] × [0, M_n] for projections.

    `steps` points lie on [0, M_i], zero among them: a signature may have a kink there.
    """
    axes = [np.linspace(0, span, int(n)) for span, n in np.broadcast(spans, steps)]
    if form == "projection":
        axes[:-1] = [np.linspace(-axis[-1], axis[-1], 2 * axis.size - 1) for axis in axes[:-1]]
    return tuple(axes)


def product_grid(axes: Axes) -> np.ndarray:
    """All points of a product of axes, the last one running fastest, shape (N, n)."""
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)


class BoxWaves:
    """Σ_j α_j atom_j on a product grid, and its derivatives.

    Parameters
    ----------
    axes : tuple of ndarray
        The grid.
    frequencies : ndarray of shape (m, n)
    form : {"projection", "modulation"}
    """

    def __init__(self, axes: Axes, frequencies: np.ndarray, form: str) -> None:
        self.factors, self.derivatives = [], []
        for axis, omega in zip(axes, frequencies.T, strict=True):
            angle = np.multiply.outer(axis, omega)
            if form == "projection":
                wave = np.empty(angle.shape, complex)
                np.cos(angle, out=wave.real)
                np.sin(angle, out=wave.imag)
                derivative = (1j * axis)[:, None] * wave
            else:
                wave, derivative = np.cos(angle), -axis[:, None] * np.sin(angle)
            self.factors.append(wave)
            self.derivatives.append(derivative)

    def _lead(self, moved: int = -1) -> np.ndarray:
        """Products over all axes but the last, one of them differentiated, shape (N', m)."""
        factors = [
            self.derivatives[i] if i == moved else f for i, f in enumerate(self.factors[:-1])
        ]
        return reduce(lambda a, b: (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1]), factors)

    def sum(self, weights: np.ndarray) -> np.ndarray:
        """Values on the grid, flat."""
        lead, last = self._lead() * weights, self.factors[-1]
        # Of complex waves the real part, from parts side by side: one product of real matrices.
        return (lead.view(float) @ last.conj().view(float).T).ravel()

    def weighted_sums(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ_λ values(λ) atom_j(λ), and its derivatives in ω_j, shapes (m,) and (m, n)."""
        table = values.reshape(-1, self.factors[-1].shape[0])
        lead, far = self._lead(), _times(table, self.factors[-1])
        sums = np.sum(lead * far, axis=0).real
        moved = [
            np.sum(self._lead(axis) * far, axis=0).real for axis in range(len(self.factors) - 1)
        ]
        moved.append(np.sum(lead * _times(table, self.derivatives[-1]), axis=0).real)
        return sums, np.stack(moved, axis=1)


def _times(table: np.ndarray, waves: np.ndarray) -> np.ndarray:
    """The product of a real matrix with waves that may be complex, which stays real inside."""
    return (table @ waves.view(float)).view(waves.dtype)


class LagGrid(NamedTuple):
    """A product grid of lags, and the signature on it."""

    axes: Axes
    lags: np.ndarray
    target: np.ndarray


@dataclass(frozen=True, eq=False)
class JointProblem:
    """A signature on Π[−M_i, M_i], its form of approximation and its evaluation sets.

    Parameters
    ----------
    signature : callable
        k(λ) of lags (..., n).
    spans : ndarray of shape (n,)
        M_i; half a period on periodic axes.
    periods : tuple of float or None
        Period of each axis.
    form : {"projection", "modulation"}
        Eq. (19) or (20).
    steps : int
        Points on [0, M_i] for descents; `fine` has four times as many.
    """

    signature: Callable[[np.ndarray], np.ndarray]
    spans: np.ndarray
    periods: Periods
    form: str
    steps: int
    norm = "max"

    @property
    def span(self) -> float:
        """What frequencies are measured by: the largest M_i."""
        return float(np.max(self.spans))

    @property
    def scale(self) -> float:
        """The error of the zero map."""
        return float(np.max(np.abs(self.coarse.target)))

    @cached_property
    def coarse(self) -> LagGrid:
        """Lags for optimisation."""
        return self._grid(self.steps)

    @cached_property
    def fine(self) -> LagGrid:
        """Lags on which designs are compared."""
        return self._grid(4 * self.steps + 1)

    def _grid(self, steps: int) -> LagGrid:
        axes = lag_axes(self.spans, steps, self.form)
        lags = product_grid(axes)
        return LagGrid(axes, lags, self.signature(lags))

    @property
    def moving(self) -> np.ndarray:
        """Axes whose frequencies may move."""
        return np.array([period is None for period in self.periods])

    def atoms(self, lags: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """cos(ωᵀλ) or Π cos(ω^i λ^i), shape (N, m)."""
        if self.form == "projection":
            return np.cos(lags @ frequencies.T)
        return np.prod(np.cos(lags[:, None, :] * frequencies), axis=2)

    def derivatives(self, lags: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """Derivatives of the atoms in each coordinate of ω, shape (N, m, n)."""
        if self.form == "projection":
            return -np.sin(lags @ frequencies.T)[:, :, None] * lags[:, None, :]
        angles = lags[:, None, :] * frequencies
        cosines, sines = np.cos(angles), np.sin(angles)
        out = np.empty(angles.shape)
        for axis in range(angles.shape[2]):
            other_cosines = np.prod(np.delete(cosines, axis, axis=2), axis=2)
            out[:, :, axis] = -lags[:, None, axis] * sines[:, :, axis] * other_cosines
        return out

    def columns(self, frequencies: np.ndarray) -> np.ndarray:
        """D_ω of each frequency vector (eq. 21)."""
        nonzero = np.sum(frequencies != 0, axis=1)
        return np.where(nonzero > 0, 2, 1) if self.form == "projection" else 2**nonzero

    def weight(self, lags: np.ndarray) -> np.ndarray:
        """Every lag counts alike."""
        return np.ones(len(lags))

    def residual(self, lags: np.ndarray, cosines: Cosines) -> np.ndarray:
        """k − k̂ at any lags."""
        return self.signature(lags) - self.atoms(lags, cosines[0]) @ cosines[1]

    def fine_residual(self, cosines: Cosines) -> np.ndarray:
        """k − k̂ on the fine grid."""
        waves = BoxWaves(self.fine.axes, cosines[0], self.form)
        return self.fine.target - waves.sum(cosines[1])

    def peaks(self, cosines: Cosines) -> np.ndarray:
        """Lags of the fine grid where |error| is not below that of any neighbour."""
        size = np.abs(self.fine_residual(cosines))
        table = size.reshape([axis.size for axis in self.fine.axes])
        return self.fine.lags[(maximum_filter(table, 3, mode="nearest") == table).ravel()]

    def max_error(self, cosines: Cosines) -> float:
        """Largest error on the fine grid."""
        return float(np.max(np.abs(self.fine_residual(cosines))))

    def coarse_lags(self, n_frequencies: int) -> np.ndarray:
        """Lags of every linear program."""
        return self.coarse.lags[:: max(1, len(self.coarse.lags) // 200)]

    def free(self, frequencies: np.ndarray) -> np.ndarray:
        """Coordinates that may move: a zero one stays, as moving it costs columns."""
        return (frequencies != 0) & self.moving
