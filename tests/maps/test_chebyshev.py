"""The analytic series of chi2: its coefficients, its rate with the exact constant, its scale."""

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad

import kernelmaps as km
from kernelmaps.engine import record_paths
from kernelmaps.kernels import chi2
from kernelmaps.maps.chebyshev import lemma_constant

VALUES = np.geomspace(1e-6, 1e3, 37)[:, None]
PI = np.arctan(np.longdouble(1)) * 4
# Where a recurrence breaks: tiny, near and at 1, large, and beyond the range of 1/x.
HARD = np.array([1e-37, 1e-20, 1e-6, 0.5, 1 - 1e-6, 1.0, 1 + 1e-6, 7.0, 1e3, 1e20, 3e38])


def paper(n, **options):
    """The map as printed, without a scale."""
    return km.ChebyshevMap(n, scale=1.0, **options).fit(VALUES)


def tail(x, n):
    """x - |c(x)|^2 relative to x, by the fitted map itself."""
    x = np.atleast_2d(x).T
    return 1 - np.sum(paper(n).transform(x) ** 2, axis=1) / x[:, 0]


def coefficient(k, x):
    """c_k(x) by quadrature of eq. (11): a_k for even k, b_k for odd k, times sqrt(x/2)."""
    wave = np.cos if k % 2 == 0 else np.sin

    def integrand(omega):  # z = 2 arctan e^{pi omega}, dz = pi sech(pi omega) d omega
        z = 2 * np.arctan(np.exp(np.pi * omega))
        return wave(omega * np.log(x)) * np.cos(k * z) / np.cosh(np.pi * omega)

    value = 2 * quad(integrand, -12, 12, limit=400, epsabs=1e-13)[0]
    return np.sqrt(x / 2) * value / (np.sqrt(2) if k == 0 else 1)


@pytest.mark.parametrize("x", [1e-4, 0.2, 0.9, 3.0])
def test_recurrence_is_the_fourier_series_it_stands_for(x):
    actual = paper(12).transform([[x]])[0]
    np.testing.assert_allclose(actual, [coefficient(k, x) for k in range(12)], atol=1e-12)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_thousand_terms_lose_no_accuracy(dtype):
    """Against eq. (12) as printed, in extended precision, over 75 decades."""
    n = 1000
    x = HARD.astype(dtype)[:, None]
    with record_paths() as paths:
        actual = paper(n).transform(x)
    assert paths == ["formula:dense"]
    v = x[:, 0].astype(np.longdouble)
    L = np.log(v)
    exact = [2 * v / (v + 1), -np.sqrt(np.longdouble(2)) * L / PI * (2 * v / (v + 1))]
    for k in range(2, n):
        exact.append(((-1) ** k * 2 * L / PI * exact[k - 1] + (k - 2) * exact[k - 2]) / k)
    miss = np.max(np.abs(actual - np.stack(exact, axis=1)) / np.sqrt(v)[:, None], axis=1)
    # The norm of d g/d log x is 1/2 and log x is known to eps |log x|; a step rounds a few times.
    assert np.all(miss <= np.finfo(dtype).eps * (8 + 2 * np.abs(L)))


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_is_one_and_zero_is_zero(n, dtype):
    Z = paper(n).transform(np.array([[1.0], [0.0]], dtype=dtype))
    assert Z.dtype == dtype
    np.testing.assert_allclose(Z[0], np.eye(1, n)[0], atol=2 * np.finfo(dtype).eps)
    assert not Z[1].any()


@pytest.mark.parametrize("x", [1e-6, 1e-3, 0.1, 0.5, 3.0, 1e3])
def test_diagonal_error_has_the_exact_constant(x):
    """m * relative error -> 2 |ln x| tanh(|ln x|/2) / pi^2, the constant of Lemma 2."""
    np.testing.assert_allclose(1000 * tail(x, 1000)[0], lemma_constant(np.log(x)), rtol=2e-3)


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_lemma_2_over_nine_decades(n):
    """|error| <= (C/m) sqrt(xy) for all pairs, with the fitted constant; C itself is bounded."""
    fitted = paper(n)
    Z = fitted.transform(VALUES)
    error = np.abs(Z @ Z.T - chi2(VALUES))
    assert np.all(error <= fitted.constant_ / n * np.sqrt(VALUES * VALUES.T) * (1 + 1e-9))
    assert fitted.constant_ <= 1.1 * lemma_constant(np.log(1e-6))  # O(1/m), no worse


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_distances_tend_to_chi2_from_below(n):
    """|c(x) - c(y)|^2 misses chi2 by the squared norm of a tail: between 0 and Lemma 2's bound."""
    fitted = paper(n)
    Z = fitted.transform(VALUES)
    actual = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
    missing = (VALUES - VALUES.T) ** 2 / (VALUES + VALUES.T) - actual
    root = np.sqrt(fitted.constant_ / n) * (np.sqrt(VALUES) + np.sqrt(VALUES.T))
    assert np.all(missing >= -1e-9 * (VALUES + VALUES.T))
    assert np.all(missing <= root**2)


@pytest.mark.parametrize(
    ("n", "scale"), [(1, "auto"), (2, 1.0), (5, "minimax"), (10, 100.0), (300, "auto")]
)
def test_certificate_holds_and_is_nearly_attained(n, scale):
    x = np.append(0.0, np.geomspace(1e-9, 1, 1000))[:, None]
    fitted = km.ChebyshevMap(n, scale=scale).fit(x)
    Z = fitted.transform(x)
    worst = np.abs(Z @ Z.T - chi2(x)).max()
    assert worst <= fitted.certificate_.bound
    assert fitted.certificate_.bound <= 1.02 * worst
    assert fitted.certificate_.error == "absolute"


def test_scale_is_homogeneity():
    """c(sx)/sqrt(s): data times 1/s with the scale s is the paper's map times 1/sqrt(s)."""
    scaled = km.ChebyshevMap(7, scale=50.0).fit(VALUES).transform(VALUES / 50)
    np.testing.assert_allclose(
        scaled * np.sqrt(50), paper(7).transform(VALUES), rtol=1e-9, atol=1e-14
    )


def test_learned_scale_moves_with_the_data(seed):
    X = np.random.default_rng(seed).dirichlet(np.full(100, 0.5), size=200)
    near, far = km.ChebyshevMap(10).fit(X), km.ChebyshevMap(10).fit(1000 * X)
    np.testing.assert_allclose(near.scale_, 1000 * far.scale_, rtol=0.02)
    csr = km.ChebyshevMap(10).fit(sparse.csr_matrix(X))
    assert csr.scale_ == near.scale_


def test_learned_scale_is_the_perplexity_to_second_order(seed):
    """For narrow values tau^2 is quadratic in log(sx), and the best s is exp(entropy)."""
    X = np.random.default_rng(seed).dirichlet(np.full(100, 50.0), size=200)
    perplexity = np.exp(-np.mean(np.sum(X * np.log(X), axis=1)))
    np.testing.assert_allclose(km.ChebyshevMap(10).fit(X).scale_, perplexity, rtol=0.03)


def test_minimax_scale_of_the_errata():
    x = np.arange(1, 256)[:, None] / 255
    fitted = km.ChebyshevMap(5, scale="minimax").fit(x)
    assert 1.5 < fitted.scale_ < 1.8
    np.testing.assert_allclose(km.kernel_error(fitted, x).max, 5.38e-3, rtol=0.02)
    worse = [km.kernel_error(km.ChebyshevMap(5, scale=s), x).max for s in (0.8, 1.0, 2.5)]
    assert min(worse) > km.kernel_error(fitted, x).max
