"""Synthetic data have the structure that their docstrings state."""

import numpy as np
import pytest
from scipy import sparse

from kernelmaps.datasets import make_bag_of_words, make_histograms


def test_histograms_sum_to_one_and_repeat_with_their_seed(seed):
    X, y = make_histograms(50, 20, 3, random_state=seed)
    np.testing.assert_allclose(X.sum(axis=1), 1, rtol=1e-13)
    assert X.shape == (50, 20)
    assert set(y) <= {0, 1, 2}
    again, _ = make_histograms(50, 20, 3, random_state=seed)
    np.testing.assert_array_equal(X, again)


def test_histogram_counts_scatter_like_a_multinomial(seed):
    """One class, n counts: the mean count is n p and the variance n p (1 − p)."""
    n, rows = 400, 4000
    X, _ = make_histograms(rows, 6, 1, n_counts=n, normalize=False, random_state=seed)
    p = X.mean(axis=0) / n
    expected = n * p * (1 - p)
    # The variance of a sample variance is about 2 σ⁴ / rows; six columns at five sigma.
    np.testing.assert_allclose(X.var(axis=0), expected, rtol=5 * np.sqrt(2 / rows), atol=0.05)


def test_bag_of_words_is_sparse_counts(seed):
    X, y = make_bag_of_words(300, 1000, 2, n_words=50, random_state=seed)
    assert sparse.issparse(X)
    assert X.format == "csr"
    assert X.data.min() >= 1
    np.testing.assert_array_equal(X.data, np.round(X.data))
    assert len(y) == 300
    # Lengths are Poisson(50): their mean over 300 rows is within five standard errors.
    assert X.sum() / 300 == pytest.approx(50, abs=5 * np.sqrt(50 / 300))


def test_bag_of_words_follows_zipf(seed):
    """The most frequent word is drawn with weight 1 / H_n."""
    n_features = 200
    X, _ = make_bag_of_words(2000, n_features, 3, random_state=seed)
    share = X[:, 0].sum() / X.sum()
    harmonic = (1 / np.arange(1, n_features + 1)).sum()
    assert share == pytest.approx(1 / harmonic, abs=5 * np.sqrt(0.25 / X.sum()))
