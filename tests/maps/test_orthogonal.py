"""TrigonometricMap and HermiteMap: orthogonal derivatives by quadrature, Ψ(0) = 0, bad input."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.engine import evaluate


def derivatives(feature_map, t, order, step=1e-3):
    """Central differences of the columns, to fourth order."""
    if order == 1:
        offsets, weights, scale = (-2, -1, 1, 2), (1, -8, 8, -1), 12 * step
    else:
        offsets, weights, scale = (-2, -1, 0, 1, 2), (-1, 16, -30, 16, -1), 12 * step**2
    return (
        sum(c * feature_map.transform(t[:, None] + k * step) for k, c in zip(offsets, weights))
        / scale
    )


@pytest.mark.parametrize("order", [1, 2])
def test_trigonometric_derivatives_are_orthogonal(order):
    """∫ f^(d)² = π^(2d) |w|² on [−1, 1] (Table 1)."""
    settings = {"domain": (-1, 1), "out_of_domain": "extrapolate"}
    fitted = km.TrigonometricMap(n_bases=4, order=order, **settings).fit(np.zeros((1, 1)))
    t, weight = np.polynomial.legendre.leggauss(60)
    D = derivatives(fitted, t, order)
    gram = D.T @ (D * weight[:, None])
    np.testing.assert_allclose(gram, np.pi ** (2 * order) * np.eye(8), atol=1e-5 * 4**order)


def test_half_integer_sines_are_free_at_the_end(seed):
    x = np.linspace(0, 1, 200)[:, None]
    fitted = km.TrigonometricMap(n_bases=8, zero_at_zero=True).fit(x)
    Z = fitted.transform(x)
    assert np.abs(Z[0]).max() < 1e-15
    w = np.linalg.lstsq(Z, x[:, 0], rcond=None)[0]
    assert np.abs(Z @ w - x[:, 0]).max() < 0.03  # sines of whole numbers: 0.9996 (errata 3.10)
    t, weight = np.polynomial.legendre.leggauss(60)
    t = 0.5 * (t + 1)
    inside = km.TrigonometricMap(8, zero_at_zero=True, out_of_domain="extrapolate").fit(x)
    D = derivatives(inside, t, 1)
    np.testing.assert_allclose(D.T @ (D * weight[:, None]) / 2, np.pi**2 / 2 * np.eye(8), atol=1e-3)


@pytest.mark.parametrize("order", [1, 2])
def test_hermite_derivatives_are_orthonormal(order):
    """Under the standard normal density, from n = order on (Table 1, errata 3.11)."""
    nodes, weight = np.polynomial.hermite_e.hermegauss(30)
    weight /= weight.sum()
    X = np.array([[-1.0], [1.0]])  # mean 0, deviation 1
    fitted = km.HermiteMap(n_bases=5, order=order, out_of_domain="extrapolate").fit(X)
    D = derivatives(fitted, nodes, order)
    gram = (D.T @ (D * weight[:, None]))[order - 1 :, order - 1 :]
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-6)


@pytest.mark.parametrize(
    "feature_map",
    [km.TrigonometricMap(), km.TrigonometricMap(zero_at_zero=True), km.HermiteMap(order=2)],
    ids=repr,
)
def test_paths_agree(feature_map, seed):
    X = np.random.default_rng(seed).normal(size=(50, 3)) * [1, 10, 0.1] + [0, 5, 1]
    Z = feature_map.fit(X).transform(X)
    np.testing.assert_allclose(Z, evaluate(feature_map.spec_, X), atol=1e-11)
    assert Z.shape[1] == len(feature_map.get_feature_names_out())


@pytest.mark.parametrize("make", [km.TrigonometricMap, km.HermiteMap])
def test_sparse_rows_stay_sparse(make, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((40, 4)) * (rng.random((40, 4)) < 0.5)
    fitted = make().fit(sparse.csr_matrix(X))
    Z = fitted.transform(sparse.csr_matrix(X))
    assert sparse.issparse(Z)
    np.testing.assert_allclose(Z.toarray(), fitted.transform(X), atol=1e-12)


def test_hermite_standardises_constant_columns():
    X = np.array([[3.0, 1], [3, 2], [3, 4]])
    fitted = km.HermiteMap().fit(X)
    np.testing.assert_allclose(fitted.scale_, [1, X[:, 1].std()])
    assert np.isfinite(fitted.transform(X)).all()


@pytest.mark.parametrize(
    ("feature_map", "message"),
    [
        (km.TrigonometricMap(order=0), "order must be 1 or 2"),
        (km.TrigonometricMap(n_bases=0), "n_bases must be an integer >= 1"),
        (km.HermiteMap(order=3), "order must be 1 or 2"),
        (km.HermiteMap(n_bases=13), "n_bases must be at most 12"),
    ],
    ids=repr,
)
def test_bad_settings(feature_map, message):
    with pytest.raises(ValueError, match=message):
        feature_map.fit(np.eye(3))
