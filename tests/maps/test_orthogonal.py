"""TrigonometricMap and HermiteMap: orthogonal derivatives by quadrature, Ψ(0) = 0, bad input."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.engine.extent import Extent
from kernelmaps.engine.tabulated import make_table
from kernelmaps.maps.bases import half_width


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


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_trigonometric_derivatives_are_orthogonal(order, periodic):
    """∫ f^(d)² = π^(2d) |w|² on [−1, 1] (Table 1)."""
    settings = {"domain": (-1, 1), "out_of_domain": "extrapolate", "periodic": periodic}
    fitted = km.TrigonometricMap(n_bases=4, order=order, **settings).fit(np.zeros((1, 1)))
    t, weight = np.polynomial.legendre.leggauss(60)
    D = derivatives(fitted, t, order)
    gram = D.T @ (D * weight[:, None])
    np.testing.assert_allclose(gram, np.pi ** (2 * order) * np.eye(8), atol=1e-5 * 4**order)


def test_a_period_ties_the_ends_together_and_the_default_does_not():
    """Coefficients of f(x) = x are ±2/(π²(k − ½)²) without a period: those from k = 9 on sum up
    to 2/(8π²) = 0.025, the error of the truncated series. With a period f jumps."""
    x = np.linspace(0, 1, 200)[:, None]
    for periodic, least, most in ((False, 0.0, 0.03), (True, 0.4, 1.0)):
        Z = km.TrigonometricMap(4, periodic=periodic).fit_transform(x)
        assert Z.shape[1] == 8
        assert (np.abs(Z[0] - Z[-1]).max() < 1e-12) == periodic
        Z = np.hstack([Z, np.ones((200, 1))])
        miss = np.abs(Z @ np.linalg.lstsq(Z, x[:, 0], rcond=None)[0] - x[:, 0]).max()
        assert least < miss < most


@pytest.mark.parametrize("options", [{}, {"periodic": True}, {"zero_at_zero": True}], ids=repr)
def test_tables_follow_every_basis_to_the_last_digit(options, seed):
    """Without a table float64 rows take the formula, at ten times the cost."""
    X = np.random.default_rng(seed).normal(size=(30, 2))
    fitted = km.TrigonometricMap(**options).fit(X)
    extent = Extent(float(X.min()), float(X.max()), 1e-3)
    table = make_table(fitted.spec_, np.dtype(float), 2, extent)
    assert table is not None


def test_a_periodic_basis_of_sparse_rows_is_dense(seed):
    X = sparse.random(30, 3, 0.4, format="csr", rng=seed)
    Z = km.TrigonometricMap(periodic=True).fit_transform(X)
    Z = Z.toarray() if sparse.issparse(Z) else Z
    np.testing.assert_array_equal(Z, km.TrigonometricMap(periodic=True).fit_transform(X.toarray()))


def test_half_integer_sines_are_free_at_the_end(seed):
    x = np.linspace(0, 1, 200)[:, None]
    fitted = km.TrigonometricMap(n_bases=8, zero_at_zero=True).fit(x)
    Z = fitted.transform(x)
    assert not Z[0].any()
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
    X = np.array([[-1.0], [1.0]]) * half_width(5)  # not shifted, not scaled
    fitted = km.HermiteMap(n_bases=5, order=order, out_of_domain="extrapolate").fit(X)
    D = derivatives(fitted, nodes, order)
    gram = (D.T @ (D * weight[:, None]))[order - 1 :, order - 1 :]
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 4, 12])
def test_hermite_range_is_that_of_the_gauss_nodes(n):
    """At the nodes, laid over any range, the functions are orthogonal with squares 1/m."""
    nodes, weight = np.polynomial.hermite_e.hermegauss(n + 1)
    x = 5 + 0.01 * nodes[:, None]
    Z = km.HermiteMap(n_bases=n).fit_transform(x)
    gram = Z.T @ (Z * weight[:, None]) / weight.sum()
    np.testing.assert_allclose(gram, np.diag(1 / np.arange(1, n + 1)), atol=1e-10)


@pytest.mark.parametrize("zero", [False, True])
def test_hermite_is_bounded_on_heavy_tails(zero, seed):
    """One value a million times the others is at the end of the domain, not at its power n."""
    X = np.random.default_rng(seed).normal(size=(100, 2))
    X[0] = [1e6, -1e6]
    Z = km.HermiteMap(n_bases=4, zero_at_zero=zero).fit_transform(X)
    end = half_width(4) * np.array([[-1.0], [1.0]])
    at_end = km.HermiteMap(n_bases=4, zero_at_zero=zero).fit(end).transform(end)
    assert np.abs(Z).max() <= np.abs(at_end).max() + 1e-12 < 5


def test_hermite_functions_are_not_parallel():
    """Of uniform data, at most 0.67 correlated; on [-1, 1] it would be 0.999 (errata 3.12)."""
    Z = km.HermiteMap(n_bases=4).fit_transform(np.linspace(3, 7, 1001)[:, None])
    correlation = np.corrcoef(Z.T) - np.eye(4)
    assert np.abs(correlation).max() < 0.67


def test_hermite_scales_ranges():
    X = np.array([[3.0, 1, -1], [3, 2, 0], [3, 4, 9]])
    fitted = km.HermiteMap(n_bases=3).fit(X)
    L = half_width(3)
    np.testing.assert_allclose(fitted.center_, [3, 2.5, 4])
    np.testing.assert_allclose(fitted.scale_, [1, 1.5 / L, 5 / L])
    assert np.isfinite(fitted.transform(X)).all()
    fitted = km.HermiteMap(n_bases=3, zero_at_zero=True).fit(X)
    np.testing.assert_array_equal(fitted.center_, 0)
    np.testing.assert_allclose(fitted.scale_, np.array([3, 4, 9]) / L)
