"""SplineMap: partition of unity, penalties, Ψ(0) = 0, edges of the domain, bad input."""

import numpy as np
import pytest
from scipy.interpolate import BSpline

import kernelmaps as km
from kernelmaps.engine import record_paths
from kernelmaps.exceptions import OutOfDomainWarning
from kernelmaps.maps.bases import difference_matrix

DEGREES = [1, 2, 3, 5, 8]


def data(seed, n=60):
    X = np.random.default_rng(seed).random((n, 3)) * [1, 5, 10] - [0, 2, 0]
    X[0], X[1] = [0, -2, 0], [1, 3, 10]
    return X


def basis(feature_map, X):
    """Φ back from Ψ = D^-T Φ."""
    n = feature_map.n_bases
    Z = np.asarray(feature_map.transform(X)).reshape(len(X), -1, n)
    return Z @ difference_matrix(n, feature_map.order)


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_uniform_basis_is_scipys(degree, order, seed):
    X = data(seed)
    fitted = km.SplineMap(n_bases=9, degree=degree, order=order).fit(X)
    phi = basis(fitted, X)
    low, high = fitted.domain_
    step = (high - low) / (9 - degree)
    for j in range(3):
        knots = low[j] + step[j] * np.arange(-degree, 9 + 1)
        expected = BSpline.design_matrix(X[:, j], knots, degree, extrapolate=True).toarray()
        # Differences of columns of size 9^order amplify their rounding.
        np.testing.assert_allclose(phi[:, j], expected, atol=1e-13 * 9**order)


def test_difference_matrices_of_the_paper():
    one, two = difference_matrix(5, 1), difference_matrix(5, 2)
    i, j = np.indices((5, 5))
    np.testing.assert_array_equal(np.linalg.inv(one).T, (j >= i).astype(float))
    np.testing.assert_allclose(np.linalg.inv(two).T, np.maximum(j - i + 1, 0), atol=1e-12)


def test_linear_splines_approximate_the_intersection_kernel():
    """With n intervals the largest error of the scaled kernel is exactly 1/(4n) (errata 3.7)."""
    x = np.linspace(0, 1, 401)[:, None]
    for n in (5, 10, 20):
        fitted = km.SplineMap(n_bases=n + 1, degree=1, zero_at_zero=True, domain=(0, 1)).fit(x)
        Z = fitted.transform(x)
        error = np.abs(Z @ Z.T / n - np.minimum(x, x.T)).max()
        assert error == pytest.approx(1 / (4 * n), rel=1e-2)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_zero_at_zero_has_no_dead_zone(degree):
    """Functions may have a slope at 0; those that are left when all that touch 0 are dropped have
    zeros of order p there (errata 3.8), so that |Ψ(x)|/x would vanish with x."""
    x = np.array([[0.0], [0.001], [1.0]])
    fitted = km.SplineMap(degree=degree, zero_at_zero=True, domain=(0, 1)).fit(x)
    Z = fitted.transform(x)
    assert np.abs(Z[0]).max() == 0
    assert np.linalg.norm(Z[1]) / 0.001 > np.linalg.norm(Z[2])


@pytest.mark.compiled
def test_sparse_output_stores_the_basis_alone(seed):
    X = data(seed)
    with record_paths() as paths:
        Z = km.SplineMap(order=0, degree=2, sparse_output=True).fit(X).transform(X)
    assert paths == ["table:basis"]
    assert Z.nnz == 3 * X.size
    dense = km.SplineMap(order=0, degree=2).fit_transform(X)
    np.testing.assert_array_equal(Z.toarray(), dense)


def test_beyond_the_knots():
    X = np.linspace(0, 1, 11)[:, None]
    outside = np.array([[-0.5], [1.5]])
    ends = km.SplineMap().fit(X).transform(X[[0, -1]])
    with pytest.warns(OutOfDomainWarning, match="outside the fitted domain"):
        clipped = km.SplineMap().fit(X).transform(outside)
    np.testing.assert_array_equal(clipped, ends)
    with pytest.raises(ValueError, match="outside the fitted domain"):
        km.SplineMap(out_of_domain="raise").fit(X).transform(outside)
    line = km.SplineMap(out_of_domain="extrapolate").fit(X)
    z = [line.transform([[t]])[0] for t in (0, -1e-4, -2e-4, -0.5, -1.0)]
    np.testing.assert_allclose(z[0] - z[1], z[1] - z[2], atol=1e-10)  # the same slope
    np.testing.assert_allclose(z[3] - z[4], 5000 * (z[1] - z[2]), rtol=1e-6, atol=1e-8)


def test_integers_share_ranges():
    X = np.array([[3, 200], [7, 130]], dtype=np.uint8)
    low, high = km.SplineMap().fit(X).domain_
    np.testing.assert_array_equal(low, [0, 0])
    np.testing.assert_array_equal(high, [7, 255])
    assert km.SplineMap(domain="data").fit(X).domain_[1].tolist() == [7, 200]


def test_columns_without_variety():
    """Constant, all-zero and two-valued columns are mapped like any other."""
    X = np.array([[5.0, 0, 1], [5, 0, 2], [5, 0, 1]])
    Z = km.SplineMap().fit_transform(X)
    assert np.isfinite(Z).all()
    np.testing.assert_array_equal(Z[0], Z[2])
    assert np.abs(Z[0] - Z[1]).max() > 0.1


@pytest.mark.parametrize("size", [1e-149, 1e-20, 1e30, 1e148])
def test_units_do_not_matter(size, seed):
    X = data(seed)
    for degree in (3, 12):
        small = km.SplineMap(20, degree).fit_transform(X)
        np.testing.assert_allclose(
            km.SplineMap(20, degree).fit_transform(size * X), small, atol=1e-6
        )


def test_tails_are_clipped_in_silence_and_warnings_name_the_columns(seed):
    """A test set leaves the range of the training set by a little: 10 % of it needs no warning."""
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(seed).random((200, 3))
    X[:2] = [[0.0] * 3, [1.0] * 3]
    frame = pd.DataFrame(X, columns=["age", "income", "height"])
    feature_map = km.SplineMap(6).fit(frame)
    clipped = feature_map.transform(frame)
    tail = frame.replace(1.0, 1.09)  # a warning is an error here
    np.testing.assert_array_equal(feature_map.transform(tail), clipped)
    words = r"2 of 3 columns .*\('income', 'height'\); column 'income' reaches \[0, 1.2\]"
    far = frame.assign(income=frame.income.replace(1.0, 1.2), height=frame.height + 0.5)
    with pytest.warns(km.exceptions.OutOfDomainWarning, match=words):
        feature_map.transform(far)
    feature_map.transform(far)  # said once
    strict = km.SplineMap(6, out_of_domain="raise").fit(frame)
    with pytest.raises(ValueError, match="column 'age' reaches"):
        strict.transform(tail)
