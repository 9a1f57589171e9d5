"""DesignedMap: the range it learns, the error it promises, what it does beyond its domain."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.exceptions import OutOfDomainWarning
from kernelmaps.kernels import Gaussian
from kernelmaps.maps.designed import positive_range


def histograms(seed, rows=60, columns=12):
    return np.random.default_rng(seed).dirichlet(np.full(columns, 0.4), rows)


def test_the_default_holds_its_certificate_on_unseen_rows():
    """Digits as histograms: test rows have smaller and larger values than those of the fit."""
    digits = km.datasets.load("digits")
    fitted = km.DesignedMap().fit(digits.X_train)
    unseen = digits.X_test[np.argsort(-digits.X_test.max(axis=1))[:300]]
    assert unseen.max() > fitted.range_[1]
    actual = km.kernel_error(fitted, unseen)
    sure, most = fitted.certificate_, unseen.max() / fitted.range_[1]
    assert sure.inner.bound < 0.01 * sure.bound
    assert actual.max <= 64 * sure.inner.bound * most  # few values leave the range, and not by much
    baseline = km.HomogeneousMap().fit(digits.X_train)
    assert actual.max < 0.05 * km.kernel_error(baseline, unseen).max
    table = km.DesignedMap(n_components=3, method="minimax").fit(digits.X_train)
    assert table.domain_[1] > 1.2 * digits.X_train.max()  # a table ends somewhere: with a margin
    assert km.kernel_error(table, unseen).max <= 64 * table.certificate_.bound


def test_tiny_values_vanish_with_their_root(seed):
    """Below the fitted range cosines continue: φ(x) falls like √x, and tables like x."""
    X = histograms(seed)
    X[X < 0.01] = 0
    tiny = np.zeros((3, X.shape[1]))
    tiny[:, 0] = [1e-4, 1e-6, 1e-30]
    size = np.linalg.norm(km.DesignedMap().fit(X).transform(tiny), axis=1)
    np.testing.assert_allclose(size, np.sqrt(tiny[:, 0]), rtol=1e-2)
    table = km.DesignedMap(n_components=2, method="minimax").fit(X)
    size = np.linalg.norm(table.transform(tiny), axis=1)
    np.testing.assert_allclose(size / size[0], tiny[:, 0] / tiny[0, 0], rtol=1e-9)


def test_designed_beats_homogeneous_and_minimax_beats_designed():
    values = np.arange(256.0)[:, None]
    errors = {}
    for name, feature_map in {
        "homogeneous": km.HomogeneousMap("chi2", 5),
        "designed": km.DesignedMap("chi2", 5, domain=(1, 255)),
        "minimax": km.DesignedMap("chi2", 5, domain=(1, 255), method="minimax"),
    }.items():
        phi = feature_map.fit(values).transform(values)
        errors[name] = np.max(np.abs(phi @ phi.T - km.kernels.chi2(values)))
    assert errors["homogeneous"] > 15 * errors["designed"]
    assert errors["designed"] <= 0.1634 * 1.001
    assert errors["minimax"] <= 0.033


def test_range_is_robust_to_a_tiny_outlier():
    values = np.linspace(0.01, 1, 5000).reshape(-1, 5)
    values[0, 0] = 1e-12
    low, high = positive_range(values)
    assert 0.01 <= low < 0.02
    assert high == 1
    fitted = km.DesignedMap().fit(values)
    assert fitted.range_[0] >= 1 / 128
    assert positive_range(np.zeros((3, 2))) == (1 / 255, 1.0)


@pytest.mark.parametrize("kernel", ["chi2", "intersection"])
def test_one_column_is_enough_for_columns_of_0_and_1(kernel, seed):
    """Its error is that of one value, not of a range; columns of zeros in `fit` are mapped, too."""
    X = (np.random.default_rng(seed).random((200, 40)) < 0.2).astype(float)
    X[:100, 0] = 0
    fitted = km.DesignedMap(kernel, 1).fit(X[:100])
    assert km.kernel_error(fitted, X).max < 1e-3 * 40


def test_range_of_many_values_is_that_of_a_full_sort(seed):
    rng = np.random.default_rng(seed)
    plain = rng.lognormal(0, 3, 300_000).astype(np.float32)
    signed = plain * rng.choice([-1, 0, 1], plain.size)
    # Every value that the sample looks at is large, so that it suggests no small level.
    misleading = plain.copy()
    misleading[:: misleading.size // (1 << 15)] = 1e6
    flattering = np.ones(300_000)
    flattering[:: flattering.size // (1 << 15)] = 1e-3
    counts = rng.poisson(0.2, 300_000)
    for values in (plain, signed, misleading, flattering, counts, counts.astype(np.uint8)):
        sizes = np.sort(np.abs(values[values != 0]).astype(float))
        expected = sizes[int(0.001 * (sizes.size - 1))], sizes[-1]
        assert positive_range(values.reshape(-1, 3)) == expected
        assert positive_range(np.asfortranarray(values.reshape(-1, 3))) == expected
        assert positive_range(sparse.csr_matrix(values.reshape(-1, 3))) == expected


def test_similar_data_share_one_design(seed):
    X = histograms(seed)
    first, second = km.DesignedMap().fit(X), km.DesignedMap().fit(3.7 * X)
    np.testing.assert_array_equal(first.design_.frequencies, second.design_.frequencies)
    for one, other in (
        (first.certificate_, second.certificate_),
        (first.certificate_.inner, second.certificate_.inner),
    ):
        np.testing.assert_allclose(other.bound, 3.7 * one.bound, rtol=1e-9)


def test_zero_is_exact_and_sparse_rows_stay_sparse(seed):
    X = 255 * histograms(seed)
    X[X < 5] = 0
    table = {"method": "minimax", "domain": (1, 255)}  # shipped
    for arguments in ({}, table):
        fitted = km.DesignedMap(**arguments).fit(X)
        mapped = fitted.transform(sparse.csr_matrix(X))
        assert sparse.issparse(mapped)
        np.testing.assert_allclose(mapped.toarray(), fitted.transform(X), atol=1e-12)
        assert not np.any(fitted.transform(np.zeros((1, X.shape[1]))))


def test_stationary_kernels_use_each_features_own_range(seed):
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(0, 1, 50), rng.uniform(100, 100.5, 50)]
    fitted = km.DesignedMap(Gaussian(0.4), n_components=6).fit(X)
    phi = fitted.transform(X)
    exact = sum(Gaussian(0.4).signature(np.subtract.outer(x, x)) for x in X.T)
    assert np.max(np.abs(phi @ phi.T - exact)) <= 2 * fitted.certificate_.bound * 1.001
    assert fitted.certificate_.bound < 1e-3


def test_signature_of_a_users_own(seed):
    X = np.random.default_rng(seed).uniform(0, 2, (40, 2))
    fitted = km.DesignedMap(lambda lag: 1 / (1 + lag**2), n_components=7).fit(X)
    phi = fitted.transform(X)
    exact = sum(1 / (1 + np.subtract.outer(x, x) ** 2) for x in X.T)
    assert np.max(np.abs(phi @ phi.T - exact)) <= 2 * fitted.certificate_.bound * 1.001


def test_a_kernel_that_is_signed_itself_counts():
    rows = np.array([[-1.0, 2.0], [3.0, -4.0]])
    by_kernel = km.DesignedMap(km.kernels.chi2.replace(signed=True), 3, domain=(1, 4))
    by_argument = km.DesignedMap("chi2", 3, domain=(1, 4), signed=True)
    np.testing.assert_array_equal(by_kernel.fit_transform(rows), by_argument.fit_transform(rows))
    assert by_kernel.kernel_ == by_argument.kernel_


@pytest.mark.parametrize("method", ["refined", "minimax"])
@pytest.mark.parametrize("low", [100.0, -3.0])
def test_the_domain_of_a_stationary_kernel_is_one_of_values_not_differences(low, method, seed):
    x = low + np.random.default_rng(seed).random((80, 1))
    x[:2, 0] = low, low + 1
    fitted = km.DesignedMap(Gaussian(1.0), 4, method=method).fit(x)
    assert f"values in [{low:g}, {low + 1:g}]" in str(fitted.certificate_)
    phi = fitted.transform(x)
    assert np.max(np.abs(phi @ phi.T - Gaussian(1.0)(x))) <= fitted.certificate_.bound
    with pytest.warns(OutOfDomainWarning):
        fitted.transform(x - 2)


def test_several_features_of_a_stationary_kernel_have_a_range_each():
    x = np.array([[0.0, 100.0], [1.0, 100.5]])
    assert "fitted range" in km.DesignedMap(Gaussian(1.0), 4).fit(x).certificate_.domain


@pytest.mark.parametrize("policy", ["auto", "clip", "raise"])
def test_relative_errors_hold_where_the_certificate_says(policy):
    """Of cosines that continue at all sizes; otherwise up to the end of the domain."""
    fitted = km.DesignedMap("chi2", 5, error="relative", domain=(0.01, 2), out_of_domain=policy)
    fitted.fit([[1.0]])
    sizes = np.geomspace(1e-4, 1.0, 5)
    if policy == "auto":
        sizes = np.r_[sizes, 50.0]
    else:
        assert "values up to 2 that" in fitted.certificate_.domain
    for size in sizes:
        x = size * np.geomspace(0.01, 2, 60)[:, None]
        phi, exact = fitted.transform(x), km.kernels.chi2(x)
        assert np.max(np.abs(phi @ phi.T / exact - 1)) <= fitted.certificate_.bound
