"""The baseline map: published errors, closed forms, and what it refuses."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.kernels import HomogeneousKernel, chi2
from kernelmaps.maps.homogeneous import check_columns

GRID = np.arange(256.0)[:, None]


def test_hellinger_is_exact_with_one_column():
    Z = km.HomogeneousMap("hellinger", 1).fit_transform(GRID)
    np.testing.assert_allclose(Z, np.sqrt(GRID), rtol=1e-13)
    wide = km.HomogeneousMap("hellinger", 3).fit_transform(GRID)
    assert wide.shape[1] == 3
    np.testing.assert_allclose(wide @ wide.T, np.sqrt(GRID * GRID.T), atol=1e-10)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_hellingers_certificate_is_rounding(gamma):
    fitted = km.HomogeneousMap("hellinger", 3, gamma=gamma).fit(GRID / 255)
    Z = fitted.transform(GRID / 255)
    assert np.abs(Z @ Z.T - fitted.kernel_(GRID / 255)).max() <= fitted.certificate_.bound < 1e-12
    rows = np.random.default_rng(0).random((200, 5)) * 170
    assert fitted.fit(rows).row_certificate(rows, largest=170.0).bound < 1e-12 * 5 * 170**gamma


def test_weights_are_fourier_coefficients():
    """For kappa = cos(omega lambda) with omega on the lattice, the series is that one term."""
    spacing = 2 * np.pi / 10.0
    kernel = HomogeneousKernel("wave", lambda lam: np.cos(2 * spacing * lam))
    fitted = km.HomogeneousMap(kernel, 7, period=10.0).fit(GRID)
    np.testing.assert_allclose(fitted.frequencies_, spacing * np.arange(4))
    np.testing.assert_allclose(fitted.weights_, [0, 0, 1, 0], atol=1e-13)


def test_even_sizes_leave_out_the_constant():
    fitted = km.HomogeneousMap("chi2", 4, period=8.0).fit(GRID)
    np.testing.assert_allclose(fitted.frequencies_, 2 * np.pi / 8 * np.array([0.5, 1.5]))
    assert fitted.transform(GRID).shape[1] == 4


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "jensen_shannon"])
def test_error_on_the_digits_falls_and_stays_below_that_of_other_periods(kernel):
    """On rows that the period was not chosen on, hence the tolerance."""
    X = km.datasets.load("digits").X_train[:250]
    sizes = (1, 2, 3, 6, 11)
    errors = {
        period: np.array([
            km.kernel_error(km.HomogeneousMap(kernel, n, period=period).fit(X), X).max
            for n in sizes
        ])
        for period in ("auto", 5.0, 10.0, 20.0)
    }  # fmt: skip
    best = errors.pop("auto")
    assert np.all(best[1:] <= 1.02 * best[:-1])
    assert best[[0, 2, 3, 4]] == pytest.approx(sorted(best[[0, 2, 3, 4]])[::-1])
    for others in errors.values():
        assert np.all(best <= 1.05 * others)


def test_period_suits_sparse_signed_and_constant_rows(seed):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((90, 40)) < 0.3, rng.random((90, 40)), 0.0)
    plain = km.HomogeneousMap("chi2", 5).fit(dense)
    assert km.HomogeneousMap("chi2", 5).fit(sparse.csr_matrix(dense)).period_ == plain.period_
    large = km.HomogeneousMap("chi2", 5).fit(1e100 * dense)
    assert large.period_ == pytest.approx(plain.period_, rel=1e-3)
    assert km.HomogeneousMap("chi2", 5, signed=True).fit(dense).period_ == plain.period_
    for rows in (np.zeros((3, 1)), np.ones((3, 1))):  # no ratio: that of 8-bit numbers
        fitted = km.HomogeneousMap("chi2", 7).fit(rows)
        assert km.kernel_error(fitted, np.geomspace(1 / 256, 1, 99)[:, None]).max < 1e-3


def test_period_does_not_depend_on_the_order_of_rows_whatever_columns_they_use(seed):
    rng = np.random.default_rng(seed)
    for used in (slice(0, 300), slice(30, 80)):  # few columns are looked at first, not these
        rows = np.zeros((200, 300))
        rows[:, used] = rng.gamma(0.3, size=rows[:, used].shape)
        fitted = km.HomogeneousMap("chi2", 5).fit(rows)
        moved = km.HomogeneousMap("chi2", 5).fit(rng.permutation(rows))
        assert moved.period_ == fitted.period_


def test_auto_period_of_an_own_kernel_is_that_of_its_signature():
    own = HomogeneousKernel("own", lambda lam: 1 / np.cosh(lam / 2))
    searched = km.HomogeneousMap(own, 5).fit(GRID)
    named = km.HomogeneousMap("chi2", 5).fit(GRID)
    assert searched.period_ == pytest.approx(named.period_, rel=1e-6)


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "jensen_shannon"])
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_certificate_holds_and_is_tight(kernel, n):
    fitted = km.HomogeneousMap(kernel, n).fit(GRID)
    x = np.exp(np.linspace(-14, 0, 1500))[:, None]
    actual = km.kernel_error(fitted, x, np.ones((1, 1))).max
    assert actual <= fitted.certificate_.bound <= 1.02 * actual + 1e-3
    assert "absolute error at most" in str(fitted.certificate_)


def test_gamma_and_sign_of_a_kernel_object_count(seed):
    X = np.random.default_rng(seed).normal(size=(20, 3))
    kernel = chi2.replace(gamma=0.5, signed=True)
    by_kernel = km.HomogeneousMap(kernel, 9).fit(X)
    assert by_kernel.kernel_ == kernel
    assert by_kernel.spec_ == km.HomogeneousMap("chi2", 9, gamma=0.5, signed=True).fit(X).spec_


def test_entries_stored_twice_are_added_before_they_are_mapped():
    twice = sparse.csr_matrix(([1.0, 2.0, 3.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    actual = km.HomogeneousMap().fit_transform(twice).toarray()
    np.testing.assert_allclose(actual, km.HomogeneousMap().fit_transform(twice.toarray()))
    assert twice.nnz == 3  # the user's matrix is as it was


def test_kernels_with_a_kink_have_more_columns_by_default(seed):
    X = np.random.default_rng(seed).uniform(0.2, 1, (60, 1))
    sizes = {"chi2": 5, "jensen_shannon": 5, "intersection": 15}
    for name, size in sizes.items():
        assert km.HomogeneousMap(name).fit_transform(X).shape[1] == size
        assert check_columns(km.DesignedMap(name), km.kernels.get(name).signature) == size
