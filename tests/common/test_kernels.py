"""Every kernel is held to the same laws; a new one adds one line here."""

import numpy as np
import pytest
from contracts import check_kernel

from kernelmaps.kernels import (
    Additive,
    Cauchy,
    Exponential,
    Gaussian,
    HomogeneousKernel,
    Laplacian,
    Matern,
    PerFeature,
    Polynomial,
    chi2,
    hellinger,
    intersection,
    jensen_shannon,
)

KERNELS = [
    chi2,
    intersection,
    hellinger,
    jensen_shannon,
    chi2.replace(gamma=0.7),
    jensen_shannon.replace(gamma=2.0),
    HomogeneousKernel("harmonic", lambda lam: 1 / np.cosh(lam / 2)),  # chi2 by signature alone
    Additive(lambda x, y: np.exp(-np.abs(x - y)), name="laplace"),
    Gaussian(0.7),
    Laplacian(2.0),
    Cauchy(0.5),
    Matern(0.5),
    Matern(1.5, 0.3),
    Matern(2.5),
    Matern(0.8, 2.0),
    Polynomial(3, 0.5, 0.25),
    PerFeature((chi2, intersection, Additive(lambda x, y: np.exp(-np.abs(x - y)))) * 4),
    Exponential(chi2, 0.5),
    Exponential(intersection, 2.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernel_laws(kernel, seed):
    check_kernel(kernel, random_state=seed)
