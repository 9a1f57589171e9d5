"""JointDesignedMap: rows of two and three coordinates, periodic ones among them."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.engine.outputs import record_paths
from kernelmaps.exceptions import OutOfDomainWarning
from kernelmaps.kernels import Gaussian

KERNEL = Gaussian(1.0)


def small(**options):
    return km.JointDesignedMap(KERNEL, 9, **options)


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).uniform(0, 1, (60, 2))


@pytest.fixture(scope="module")
def fitted(points):
    return small(domain=[(0, 1), (0, 1)]).fit(points)


@pytest.mark.compiled
def test_error_is_within_the_certificate(fitted, points):
    with record_paths() as paths:
        phi = fitted.transform(points)
    assert "joint:fourier" in paths
    miss = np.max(np.abs(phi @ phi.T - fitted.kernel_(points)))
    assert 0.3 * fitted.design_.max_error < miss <= fitted.certificate_.bound
    assert fitted.certificate_.error == "absolute"


def test_it_needs_fewer_columns_than_random_features(fitted, points):
    phi = km.RandomFourierMap(KERNEL, 1000, random_state=0).fit_transform(points)
    random = np.max(np.abs(phi @ phi.T - KERNEL(points)))
    assert fitted.certificate_.bound < 0.1 * random


def test_the_range_of_the_data_is_rounded_up(points):
    """To two digits; the design is the one of all tests here, which was solved before."""
    fitted = small(domain="data").fit(0.991 * points / np.ptp(points, axis=0) + [3.0, -2.0])
    lower, upper = fitted.domain_
    np.testing.assert_allclose(upper - lower, 1.0, rtol=1e-9)


def test_what_lies_beyond_the_domain(points, fitted):
    outside = points + 5
    with pytest.warns(OutOfDomainWarning, match="clipped"):
        clipped = small(domain=[(0, 1), (0, 1)]).fit(points).transform(outside)
    np.testing.assert_array_equal(clipped, fitted.transform(np.ones((60, 2))))
    with pytest.raises(ValueError, match="outside the fitted domain"):
        small(domain=[(0, 1), (0, 1)], out_of_domain="raise").fit(points).transform(outside)
    free = small(domain=[(0, 1), (0, 1)], out_of_domain="extrapolate").fit(points)
    # a stationary map does not know where its domain lies, only how long it is
    np.testing.assert_allclose(
        free.transform(outside) @ free.transform(outside).T,
        free.transform(points) @ free.transform(points).T,
        atol=1e-12,
    )


def test_position_and_orientation_of_a_patch():
    def orientation(lag):
        return np.exp(2 * (np.cos(lag) - 1))

    rng = np.random.default_rng(1)
    X = np.c_[rng.uniform(0, 1, 50), rng.uniform(0, 2 * np.pi, 50)]
    fitted = km.JointDesignedMap(
        [Gaussian(0.5), orientation], 5, domain=[(0, 1), (0, 2 * np.pi)], periods=[None, 2 * np.pi]
    ).fit(X)
    phi, turned = fitted.transform(X), fitted.transform(X + np.array([0, 6 * np.pi]))
    np.testing.assert_allclose(phi, turned, atol=1e-12)
    exact = Gaussian(0.5)(X[:, :1]) * orientation(np.subtract.outer(X[:, 1], X[:, 1]))
    assert np.max(np.abs(phi @ phi.T - exact)) <= fitted.certificate_.bound


def test_the_warning_about_values_outside_names_the_column():
    X = np.concatenate([np.random.default_rng(0).random((30, 2)), np.eye(2)])
    feature_map = small(domain="data").fit(X)
    with pytest.warns(OutOfDomainWarning, match="1 of 2 columns"):
        feature_map.transform(X + np.array([0.0, 1.0]))
