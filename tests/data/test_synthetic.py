"""Synthetic and bundled data have the structure that their docstrings state."""

import numpy as np
import pytest

from kernelmaps.datasets import load, make_histograms


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


def test_digits_are_histograms_split_without_overlap():
    digits = load("digits")
    for X in (digits.X_train, digits.X_test):
        np.testing.assert_allclose(X.sum(axis=1), 1, rtol=1e-14)
        assert X.min() == 0
    assert len(digits.X_train) + len(digits.X_test) == 1797
    assert set(digits.y_test) == set(range(10))
    assert repr(digits) == "Dataset('digits', 900+897 rows, 64 columns)"


def test_another_name_is_refused():
    with pytest.raises(ValueError, match="name must be one of 'digits', got 'mnist'"):
        load("mnist")
