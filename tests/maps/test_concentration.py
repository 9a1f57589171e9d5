"""The error of a sum of features concentrates: annfm, Theorem 1(b), by simulation."""

import numpy as np
import pytest

import kernelmaps as km

MAPS = {
    "anchors": lambda: km.AnchorMap("chi2", 20),
    "designed": lambda: km.DesignedMap("chi2", 3, domain="universal"),
    "homogeneous": lambda: km.HomogeneousMap("intersection", 5),
    "chebyshev": lambda: km.ChebyshevMap(4),
}


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_it_holds_for_fresh_rows_as_often_as_it_says(make, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (800, 64))
    X[0], X[1] = 0, 1
    fitted = make().fit(X)
    likely = fitted.row_certificate(X, probability=0.9)
    fresh = rng.uniform(0, 1, (1000, 64))
    Z = fitted.transform(fresh)
    exact = np.sum(fitted.kernel_.component(fresh[:500], fresh[500:]), axis=1)
    errors = np.abs(np.sum(Z[:500] * Z[500:], axis=1) - exact)
    assert np.mean(errors <= likely.bound) >= 0.9 - 3 * np.sqrt(0.09 / 500)
    assert likely.bound <= 64 * fitted.certificate_.bound
    assert likely.probability == 0.9
    tenfold = make().fit(10 * X).row_certificate(10 * X, probability=0.9)
    np.testing.assert_allclose(tenfold.bound, 10 * likely.bound, rtol=1e-3)
    assert "features are independent" in str(likely)


def test_it_grows_like_the_root_of_the_number_of_features(seed):
    """Errors without a bias: the worst case grows 16-fold, the likely one fourfold."""
    from kernelmaps.maps.base import sum_bound

    rng = np.random.default_rng(seed)
    few, many = (sum_bound(rng.uniform(-1, 1, (2000, d)), 1.0, 0.99) for d in (100, 1600))
    assert few < 0.6 * 100
    assert 3 < many / few < 5
    biased = sum_bound(np.full((2000, 100), 0.5), 1.0, 0.99)
    assert biased > 50


def row_errors(fitted, X):
    """Largest error of rows over disjoint pairs."""
    half = len(X) // 2
    Z = fitted.transform(X)
    exact = np.sum(fitted.kernel_.component(X[:half], X[half:]), axis=1)
    return np.abs(np.sum(Z[:half] * Z[half:], axis=1) - exact)


BEYOND = MAPS | {
    "series": lambda: km.SeriesMap(4),
    "table": lambda: km.DesignedMap("chi2", 3, method="minimax"),
    "clipped": lambda: km.DesignedMap("intersection", 3, out_of_domain="clip"),
    "degree 1/2": lambda: km.HomogeneousMap("chi2", 3, gamma=0.5),
}


@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
@pytest.mark.parametrize("make", BEYOND.values(), ids=BEYOND)
def test_rows_beyond_the_fitted_range_are_covered(make, seed):
    """Rows three times as large as the fitted ones, and a range that is stated."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (800, 16))
    fitted = make().fit(X)
    likely = fitted.row_certificate(3 * X, probability=0.9)
    errors = row_errors(fitted, 3 * rng.uniform(0, 1, (2000, 16)))
    assert likely.proved
    assert np.mean(errors <= likely.bound) >= 0.9 - 3 * np.sqrt(0.09 / 1000)
    stated = fitted.row_certificate(X[:20], largest=3.0)
    assert errors.max() <= stated.bound  # few rows: the worst case, nearly
    with pytest.raises(ValueError, match="largest=1 says that no value is larger, but X has"):
        fitted.row_certificate(3 * X, largest=1.0)


def test_few_rows_do_not_tell_how_large_values_get(seed):
    X = np.random.default_rng(seed).lognormal(size=(20, 6))
    fitted = km.HomogeneousMap("chi2", 3).fit(X)
    unknown = fitted.row_certificate(X, probability=0.99)
    assert not unknown.proved
    assert "too few rows" in str(unknown)
    assert fitted.row_certificate(X, probability=0.99, largest=X.max()).proved
    assert fitted.row_certificate(X[:1], largest=X.max()).bound == pytest.approx(
        6 * X.max() * fitted.certificate_.bound
    )


@pytest.mark.parametrize("make", [MAPS["homogeneous"], MAPS["anchors"]], ids=["cosines", "anchors"])
@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
def test_values_without_a_limit(make, seed):
    """Lognormal rows: the statement fails no more often than it says, over rows and a new pair.

    400 rows leave 2/201 of 0.1 to values beyond all that were seen.
    """
    rng = np.random.default_rng(seed)
    fitted = make().fit(rng.lognormal(sigma=1.5, size=(50, 3)))
    failures, trials = 0, 60
    for _ in range(trials):
        bound = fitted.row_certificate(
            rng.lognormal(sigma=1.5, size=(400, 3)), probability=0.9
        ).bound
        failures += np.mean(row_errors(fitted, rng.lognormal(sigma=1.5, size=(400, 3))) > bound)
    assert np.isfinite(bound)
    assert failures / trials <= 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-3, 1e6])
def test_bounds_of_exact_maps_include_rounding(dtype, size, seed):
    """The Hellinger kernel has an exact map: all that is left is rounding."""
    X = (size * np.random.default_rng(seed).uniform(0, 1, (4000, 8))).astype(dtype)
    fitted = km.DesignedMap("hellinger", 1).fit(X)
    likely = fitted.row_certificate(X, largest=size)
    assert likely.found <= likely.bound <= 8 * size * 1e-4
    if dtype == np.float64:
        assert likely.found <= 8 * fitted.certificate_.bound <= 8 * size * 1e-12
