"""The polynomial kernel is scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import polynomial_kernel

from kernelmaps.evaluation.candidates import fit_kernel
from kernelmaps.kernels import Polynomial, get


def test_it_is_scikit_learns(seed):
    X = np.random.default_rng(seed).normal(size=(30, 4))
    exact = polynomial_kernel(X, X[:7], degree=3, gamma=0.4, coef0=0.2)
    kernel = Polynomial(3, 0.4, 0.2)
    np.testing.assert_allclose(kernel(X, X[:7]), exact, rtol=1e-12)
    np.testing.assert_allclose(kernel(sp.csr_matrix(X), sp.csr_matrix(X[:7])), exact, rtol=1e-12)
    assert get("poly") == Polynomial()


def test_its_width_brings_the_diagonal_to_one(seed):
    X = 100 * np.random.default_rng(seed).normal(size=(300, 20))
    diagonal = fit_kernel("polynomial", X).diag(X)
    # γ‖x‖² is ½ on average, and rounded to three digits; squares of 20 features vary by a third.
    assert np.mean(diagonal) == pytest.approx(1, abs=0.1)
