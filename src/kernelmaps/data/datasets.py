"""The bundled digits, and synthetic histograms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.arguments import check_choice, generator

BUNDLED = ("digits",)


@dataclass(frozen=True)
class Dataset:
    """Rows and labels, split into training and test data.

    Attributes
    ----------
    name : str
    X_train, X_test : ndarray
    y_train, y_test : ndarray
    """

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def __repr__(self) -> str:
        rows, width = self.X_train.shape
        return f"Dataset({self.name!r}, {rows}+{len(self.X_test)} rows, {width} columns)"


def load(name: str) -> Dataset:
    """Load a bundled dataset by name.

    Parameters
    ----------
    name : {"digits"}
        Scikit-learn's 8×8 digits; ink per cell, so that every row is a histogram of where ink is.
        Neighbouring rows are alike (a linear SVM gains three points where every fourth row is a
        test row), so that the second half of the rows is the more honest test.

    Returns
    -------
    Dataset
        Training and test rows.
    """
    from sklearn.datasets import load_digits

    check_choice("load", "name", name, BUNDLED)
    counts, labels = load_digits(return_X_y=True)
    X = counts / counts.sum(axis=1, keepdims=True)
    n = 900
    return Dataset(name, X[:n], labels[:n], X[n:], labels[n:])


def make_histograms(
    n_samples: int = 1000,
    n_features: int = 64,
    n_classes: int = 4,
    *,
    n_counts: int = 200,
    concentration: float = 0.3,
    normalize: bool = True,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw dense histograms: one profile per class, counted `n_counts` times per row.

    The profile of a class is one draw of a symmetric Dirichlet distribution, and a row is a
    multinomial sample of it. The variance of a count is about its mean, which is the noise that
    χ² is made for: its distance weighs (x − y)² by 1/(x + y).

    Parameters
    ----------
    n_samples, n_features, n_classes : int
    n_counts : int
        Counts per row; fewer make the classes harder to tell apart.
    concentration : float
        Dirichlet parameter; small values give peaked profiles.
    normalize : bool
        Whether rows sum to 1 (otherwise to `n_counts`).
    random_state : int, RandomState, Generator or None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Histograms.
    y : ndarray of shape (n_samples,)
        Classes.
    """
    rng = generator(random_state)
    profiles = rng.dirichlet(np.full(n_features, concentration), size=n_classes)
    labels = rng.integers(n_classes, size=n_samples)
    counts = rng.multinomial(n_counts, profiles[labels]).astype(np.float64)
    return (counts / n_counts if normalize else counts), labels
