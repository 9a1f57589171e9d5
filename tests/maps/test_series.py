"""The elementary series of chi2: an exact error, a certificate in closed form, a scale."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.engine import record_paths
from kernelmaps.kernels import chi2

VALUES = np.geomspace(1e-6, 1e3, 37)[:, None]
BYTES = np.arange(1, 256)[:, None] / 255


@pytest.mark.compiled
@pytest.mark.parametrize("n", [1, 4, 1000])
@pytest.mark.parametrize("scale", [1.0, 40.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_relative_error_is_exactly_the_geometric_tail(n, scale, dtype):
    """1 - <c(x), c(y)>/k(x, y) = (t_x t_y)^m over nine decades, to rounding."""
    x = VALUES.astype(dtype)
    with record_paths() as paths:
        Z = km.SeriesMap(n, scale=scale).fit(x).transform(x).astype(np.float64)
    assert paths == ["formula:dense" if n == 1000 else "table:log2:dense"]
    x = x.astype(np.float64)
    t = (scale * x - 1) / (scale * x + 1)
    exact = chi2(x) * (1 - (t @ t.T) ** n)
    # A term is sqrt(x) sech(L/2) T^k; its relative error is that of T, k times.
    tolerance = np.finfo(dtype).eps * min(n, 40) * 40
    np.testing.assert_allclose(Z @ Z.T / np.sqrt(x * x.T), exact / np.sqrt(x * x.T), atol=tolerance)


def test_converges_geometrically_at_the_fitted_rate():
    errors, sizes = [], (2, 4, 8, 16)
    for n in sizes:
        fitted = km.SeriesMap(n, scale=16.0).fit(BYTES)
        Z = fitted.transform(BYTES)
        errors.append(np.max(np.abs(Z @ Z.T / chi2(BYTES) - 1)))
        np.testing.assert_allclose(errors[-1], fitted.rate_**n, rtol=1e-9)
    np.testing.assert_allclose(np.diff(np.log(errors)), np.diff(sizes) * np.log(fitted.rate_))


@pytest.mark.parametrize(("n", "scale"), [(1, "auto"), (5, "minimax"), (20, 1.0), (20, 100.0)])
def test_certificate_holds_and_is_attained(n, scale):
    x = np.append(0.0, np.geomspace(1e-9, 2, 1000))[:, None]
    fitted = km.SeriesMap(n, scale=scale).fit(x)
    Z = fitted.transform(x)
    worst = np.abs(Z @ Z.T - chi2(x)).max()
    assert worst <= fitted.certificate_.bound * (1 + 1e-9)
    assert fitted.certificate_.bound <= 1.001 * worst
    assert "0 <= x, y <= 2" in str(fitted.certificate_)


@pytest.mark.parametrize(("n", "scale"), [(3, 2.78), (5, 3.83), (7, 4.81), (10, 6.2), (20, 9.4)])
def test_minimax_scale_of_the_errata(n, scale):
    """Errata 2.13, range [1/255, 1]; sizes are binned by 2 %, which moves the scale as much."""
    fitted = km.SeriesMap(n, scale="minimax").fit(BYTES)
    np.testing.assert_allclose(fitted.scale_, scale, rtol=0.025)
    if n == 5:
        np.testing.assert_allclose(km.kernel_error(fitted, BYTES).max, 4.79e-3, rtol=0.02)


def test_auto_scale_repairs_histograms(seed):
    """Errata 2.12: unscaled, ten terms find 11 % of the distance in 1700 bins; scaled, 99 %."""
    X = np.random.default_rng(seed).dirichlet(np.full(1700, 0.3), size=40)
    exact = chi2.squared_distance(X)
    pairs = np.triu_indices(40, 1)
    shares = {}
    for scale in (1.0, "auto"):
        Z = km.SeriesMap(10, scale=scale).fit_transform(X)
        actual = np.sum(Z**2, 1)[:, None] + np.sum(Z**2, 1) - 2 * Z @ Z.T
        shares[scale] = np.mean(actual[pairs] / exact[pairs])
    np.testing.assert_allclose(shares[1.0], 0.11, atol=0.01)
    assert shares["auto"] > 0.99


@pytest.mark.parametrize("n", [1, 10])
def test_exact_at_the_inverse_scale_and_zero_at_zero(n):
    Z = km.SeriesMap(n, scale=4.0).fit([[1.0]]).transform([[0.25], [0.0]])
    np.testing.assert_allclose(Z[0], 0.5 * np.eye(1, n)[0], atol=1e-15)
    assert not Z[1].any()


@pytest.mark.parametrize("x", [1e-37, 1e-20, 1e20, 3e38])
def test_extreme_values_stay_finite(x):
    for dtype in (np.float32, np.float64):
        Z = km.SeriesMap(5, scale=100.0).fit([[1.0]]).transform(np.array([[x]], dtype=dtype))
        t = np.tanh(0.5 * np.log(100 * x))
        exact = np.sqrt(x) / np.cosh(0.5 * np.log(100 * x)) * t ** np.arange(5)
        np.testing.assert_allclose(Z[0], exact, rtol=1e3 * np.finfo(dtype).eps)
