"""Synthetic histograms with known structure, for examples, tests and timing."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.arguments import generator


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


def make_bag_of_words(
    n_samples: int = 1000,
    n_features: int = 5000,
    n_classes: int = 4,
    *,
    n_words: int = 100,
    random_state: Any = None,
):
    """Draw sparse word counts with Zipf's law: the k-th most frequent word has weight 1/k.

    Each class has its own order of the words beyond the most frequent hundredth, which all share
    (the "stop words").

    Parameters
    ----------
    n_samples, n_features, n_classes : int
    n_words : int
        Mean number of words of a row (Poisson).
    random_state : int, RandomState, Generator or None

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features)
        Counts of words, as float64.
    y : ndarray of shape (n_samples,)
        Classes.
    """
    from scipy.sparse import csr_matrix

    rng = generator(random_state)
    zipf = 1.0 / np.arange(1, n_features + 1)
    cumulative = np.cumsum(zipf / zipf.sum())
    shared = max(1, n_features // 100)
    order = np.tile(np.arange(n_features), (n_classes, 1))
    order[:, shared:] = rng.permuted(order[:, shared:], axis=1)

    labels = rng.integers(n_classes, size=n_samples)
    lengths = rng.poisson(n_words, size=n_samples)
    rows = np.repeat(np.arange(n_samples), lengths)
    # The last cumulative weight may round below 1: a word index must stay inside.
    ranks = np.searchsorted(cumulative, rng.random(rows.size)).clip(max=n_features - 1)
    words = order[labels[rows], ranks]
    X = csr_matrix((np.ones(rows.size), (rows, words)), shape=(n_samples, n_features))
    X.sum_duplicates()
    return X, labels
