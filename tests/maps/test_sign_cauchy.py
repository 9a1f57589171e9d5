"""Signs of Cauchy projections: which kernel they estimate, how well, and from no stored matrix."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad

import kernelmaps as km
from kernelmaps.engine import apply, record_paths, signs
from kernelmaps.kernels.signs import SignCauchy


def histograms(seed, n=12, d=15):
    rng = np.random.default_rng(seed)
    X = rng.dirichlet(np.full(d, 0.5), n) * (rng.random((n, d)) < 0.8)
    return X / X.sum(axis=1, keepdims=True)


def test_inner_products_estimate_the_exact_kernel(seed):
    """A mean of D signs has variance (1 − k²)/D: five standard deviations hold for 66 pairs."""
    rng = np.random.default_rng(seed)
    for X in (histograms(seed), rng.standard_normal((12, 6))):  # of both signs, too
        fitted = km.SignCauchyMap(20000, random_state=seed).fit(X)
        Z = fitted.transform(X)
        exact = fitted.kernel_(X)
        sigma = np.sqrt((1 - np.minimum(exact**2, 1)) / 20000)
        assert (np.abs(Z @ Z.T - exact) < 5 * sigma + 1e-3).all()
        assert np.abs(Z @ Z.T - exact).max() < fitted.certificate_.bound * 1.5


def test_exact_kernel_on_binary_rows(seed):
    """Rows with a share of common ones: conditioning on the common sum gives one integral.

    ⟨r, x⟩ = ρ C₀ + (1 − ρ) C₁, and likewise for y with C₂: P(same sign) = ½ + 2 E a²,
    a = arctan(ρ/(1 − ρ) C₀)/π, with C₀ = tan t; ρ is the χ² similarity.
    """
    for common in (1, 4, 7):
        X = np.zeros((2, 16 - common))
        X[0, :8] = 1 / 8
        X[1, 8 - common :] = 1 / 8
        rho = common / 8
        mean, _ = quad(lambda t, q: np.arctan(q * np.tan(t)) ** 2, 0, np.pi / 2, (rho / (1 - rho),))
        expected = 4 * (2 / np.pi) * mean / np.pi**2
        assert SignCauchy()(X)[0, 1] == pytest.approx(expected, abs=1e-9)
        assert km.kernels.chi2(X)[0, 1] == pytest.approx(rho)


def test_exact_kernel_is_a_kernel(seed):
    X = histograms(seed)
    X[3] = 0
    k = SignCauchy()
    gram = k(X)
    assert (gram == gram.T).all()
    np.testing.assert_allclose(np.diag(gram), k.diag(X), atol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] > -1e-12
    np.testing.assert_allclose(k(X, X[:4]), gram[:, :4], atol=1e-12)
    np.testing.assert_allclose(k(7 * X), gram, atol=1e-9)  # lengths do not matter
    np.testing.assert_allclose(k(sparse.csr_matrix(X)), gram, atol=1e-12)


def test_exact_kernel_of_rows_that_are_nearly_equal():
    """Half of the log of the ratio is within a thousandth of log τ = 0: no grid sees that."""
    x, y = np.array([0.005, 0.995]), np.array([0.009, 0.991])

    def integrand(u):
        return np.log(np.abs(x + np.exp(u) * y).sum() / np.abs(x - np.exp(u) * y).sum())

    ends = [-40, *np.sort(np.log(x / y)), 40]
    parts = [quad(integrand, a, b, limit=200)[0] for a, b in pairwise(ends)]
    expected = 2 / np.pi**2 * sum(parts)
    assert SignCauchy()(x[None], y[None])[0, 0] == pytest.approx(expected, abs=1e-9)


def close_to(similarity):
    """1 − (2/π) arccos ρ: what k is close to for histograms with the χ² similarity ρ."""
    return 1 - 2 / np.pi * np.arccos(np.clip(similarity, -1, 1))


def test_close_to_the_chi2_similarity(seed):
    """1 − (2/π) arccos ρ is an approximation: within 0.06 here, and more than rounding off."""
    X = histograms(seed)
    gap = SignCauchy()(X) - close_to(km.kernels.chi2(X))
    assert 0.005 < np.abs(gap).max() < 0.06
    fitted = km.SignCauchyMap(20000, random_state=seed).fit(X)
    actual = fitted.chi2_similarity(fitted.transform(X))
    assert np.abs(actual - km.kernels.chi2(X)).max() < 0.1


def test_streams_what_it_does_not_keep(monkeypatch, seed):
    """The same signs from a kept matrix, from tiles, from CSR rows and from the formula."""
    X = histograms(seed, 30, 15)
    fitted = km.SignCauchyMap(500, random_state=seed).fit(X)
    with record_paths() as paths:
        Z = fitted.transform(X)
    monkeypatch.setattr(signs, "KEPT_BYTES", 0)
    with record_paths() as streamed:
        tiles = apply(fitted.spec_, X, block_bytes=16 * 15 * 64)
        csr = apply(fitted.spec_, sparse.csr_matrix(X))
    assert paths[-1] == "signs:kept:dense"
    assert [p for p in streamed if p.startswith("signs")] == [
        "signs:streamed:dense",
        "signs:streamed:csr",
    ]
    assert (tiles == Z).all()
    assert (csr == Z).all()
    assert (signs.FAMILIES["signs"].formula(np, fitted.spec_, X) == Z).all()
    assert fitted.spec_.nbytes == 0


def test_seeds(seed):
    X = histograms(seed)
    make = lambda state: km.SignCauchyMap(100, random_state=state).fit_transform(X)  # noqa: E731
    assert (make(seed) == make(seed)).all()
    assert (make(seed) != make(seed + 1)).any()
    # A longer map begins with the shorter one, but for the scale.
    longer = km.SignCauchyMap(200, random_state=seed).fit_transform(X)
    assert (np.sign(longer[:, :100]) == np.sign(make(seed))).all()


def test_zero_rows_and_precision():
    X = histograms(0).astype(np.float32)
    X[2] = 0
    Z = km.SignCauchyMap(64, random_state=0).fit_transform(X)
    assert Z.dtype == np.float32
    assert not Z[2].any()
    assert set(np.unique(np.abs(Z[np.arange(12) != 2])).tolist()) == {0.125}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer >= 1"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        km.SignCauchyMap(**options).fit(histograms(0))
