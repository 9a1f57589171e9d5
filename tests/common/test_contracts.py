"""The checks for plug-ins find what they are made to find."""

import numpy as np
import pytest
from contracts import check_feature_map, check_kernel
from scipy import sparse

import kernelmaps as km
from kernelmaps.engine import Spec
from kernelmaps.kernels import Additive


@pytest.mark.parametrize(
    ("component", "message"),
    [
        (lambda x, y: np.minimum(x, y) - x * y**2, "part of k|symmetric|diagonal|components"),
        (lambda x, y: np.maximum(x, y), "not positive semi-definite"),
    ],
)
def test_check_kernel_finds_a_bad_kernel(component, message):
    with pytest.raises(AssertionError, match=message):
        check_kernel(Additive(component))


@pytest.mark.usefixtures("readable")
def test_check_feature_map_runs_scikit_learns_checks():
    check_feature_map(lambda n: km.HomogeneousMap("chi2", n), (3, 9), rate=1)


class Biased(km.HomogeneousMap):
    """A map that does not converge: its weights are ten per cent too large."""

    def _learn(self, X):
        spec = super()._learn(X)
        arrays = {**spec.arrays, "amplitude": 1.05 * spec.arrays["amplitude"]}
        return Spec(spec.family, arrays, spec.numbers)


class Forgetful(km.HomogeneousMap):
    """A map whose spec depends on more than parameters and data."""

    count = 0

    def _learn(self, X):
        Forgetful.count += 1
        spec = super()._learn(X)
        domain = {"lower": [0.0], "upper": [1e30 * Forgetful.count]}  # far beyond all values
        return Spec(spec.family, {**spec.arrays, **domain}, spec.numbers)


class Filling(km.HomogeneousMap):
    """A map with φ(0) = 0 that fills the zeros of CSR rows."""

    def transform(self, X, *, out=None):
        Z = super().transform(X, out=out)
        return Z.toarray() if sparse.issparse(Z) else Z


class Landing(km.HomogeneousMap):
    """Copies rows of other libraries to NumPy."""

    def transform(self, X, *, out=None):
        return super().transform(X if sparse.issparse(X) else np.asarray(X), out=out)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Biased, "the stated rate"),
        (Forgetful, "two different specs"),
        (Filling, "CSR rows gave a dense result"),
        (Landing, "rows of array_api_strict gave a ndarray"),
    ],
)
@pytest.mark.usefixtures("readable")
def test_check_feature_map_finds_a_bad_map(kind, message):
    with pytest.raises(AssertionError, match=message):
        check_feature_map(lambda n: kind("chi2", n), (5, 21), rate=2, estimator_checks=False)
