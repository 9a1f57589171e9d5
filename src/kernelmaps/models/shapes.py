"""Shape functions and pair functions as arrays, for displays and reports."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .bands import path_length, pointwise_critical_value, simultaneous_critical_value


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
    increment_errors : ndarray of shape (m - 1,) or (m - 1, n_classes), optional
        Standard errors of the differences between neighbours of the grid.
    residual_df : float
        Residual degrees of freedom of the standard errors; infinity where the dispersion is known.
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
    increment_errors: np.ndarray | None = None
    residual_df: float = np.inf

    def band(
        self, level: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute a band around the function.

        Parameters
        ----------
        level : float, default=0.95
            Probability that the band covers the function.
        simultaneous : bool, default=False
            Whether the band covers all points at once with that probability, or each of them.

        Returns
        -------
        lower, upper : ndarray like `values`
            Ends of the band.
        """
        if not 0 < level < 1:
            raise ValueError(f"band: level must be between 0 and 1, got {level!r}.")
        if self.errors is None:
            raise ValueError(f"band: the function of {self.name!r} has no standard errors.")
        width = self._critical_values(level, simultaneous) * self.errors
        return self.values - width, self.values + width

    def _critical_values(self, level: float, simultaneous: bool) -> np.ndarray:
        """How many standard errors wide a band is, for all outputs."""
        assert self.errors is not None
        errors = self.errors.reshape(len(self.grid), -1)
        if not simultaneous:
            return np.full(self.errors.shape[1:], pointwise_critical_value(level, self.residual_df))
        lengths = [np.inf] * errors.shape[1]
        if self.increment_errors is not None:
            increments = self.increment_errors.reshape(len(self.grid) - 1, -1)
            pairs = zip(errors.T, increments.T, strict=True)
            lengths = [path_length(*of_output) for of_output in pairs]
        values = [
            simultaneous_critical_value(level, length, len(self.grid), self.residual_df)
            for length in lengths
        ]
        return np.array(values).reshape(self.errors.shape[1:])

    @property
    def has_derivative(self) -> bool:
        """Whether the function is a curve: of numbers, with two points or more."""
        return self.levels is None and len(self.grid) > 1

    def derivative(self) -> ShapeFunction:
        """Return the slope of the function, with standard errors, as a function between the grid.

        Returns
        -------
        ShapeFunction
            Difference quotients in the middle between neighbours of the grid; a band around them
            that leaves zero out shows where the function rises or falls.
        """
        if not self.has_derivative:
            raise ValueError(
                f"derivative: {self.name!r} has levels or a single value, and no slope."
            )
        steps = np.diff(self.grid)
        steps = steps.reshape(-1, *[1] * (self.values.ndim - 1))
        errors = None if self.increment_errors is None else self.increment_errors / steps
        return replace(
            self, name=f"slope of {self.name}", grid=(self.grid[1:] + self.grid[:-1]) / 2,
            values=np.diff(self.values, axis=0) / steps, errors=errors, missing=None,
            increment_errors=None,
        )  # fmt: skip


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
