"""Coefficients of several linear predictors of a row, which have the same functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Predictors:
    """Several linear predictors: scores of classes, say, or a mean and a log scale.

    Of m predictors, function i has the coefficients im, …, im + m − 1; the intercepts are the first
    m. Smoothing parameters are shared by the predictors, or the j-th one of the functions becomes
    jm, …, jm + m − 1.

    Attributes
    ----------
    count : int
        m.
    shares_smoothing : bool
    places : ndarray of int, optional
        The coefficients that there are, if not all; each function has one at least.
    """

    count: int
    shares_smoothing: bool
    places: np.ndarray | None = None

    def matrix(self, beta: np.ndarray, n_functions: int) -> np.ndarray:
        """Coefficients as a matrix with a row for each function and a column for each predictor."""
        if self.places is None:
            return beta.reshape(n_functions, self.count)
        matrix = np.zeros((n_functions, self.count))
        matrix.flat[self.places] = beta
        return matrix

    def vector(self, matrix: np.ndarray) -> np.ndarray:
        """The coefficients of such a matrix."""
        return matrix.ravel() if self.places is None else matrix.ravel()[self.places]

    def functions_of(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Functions and predictors of some of the coefficients."""
        places = coefficients if self.places is None else self.places[coefficients]
        return np.divmod(places, self.count)

    def restrict(self, active: np.ndarray) -> tuple[np.ndarray, Predictors]:
        """The functions of some of the coefficients, and the predictors with these alone."""
        all_functions, predictor = self.functions_of(active)
        functions, rows = np.unique(all_functions, return_inverse=True)
        places = rows * self.count + predictor
        is_complete = len(places) == len(functions) * self.count
        return functions, replace(self, places=None if is_complete else places)

    def split(self, n_functions: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each predictor, positions of its coefficients and which functions they are of."""
        n = n_functions * self.count if self.places is None else len(self.places)
        functions, predictor = self.functions_of(np.arange(n))
        return [
            (place, functions[place])
            for place in (np.flatnonzero(predictor == k) for k in range(self.count))
        ]
