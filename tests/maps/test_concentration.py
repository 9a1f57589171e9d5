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


def test_maps_without_a_bound_are_named(seed):
    X = np.random.default_rng(seed).random((20, 2))
    with pytest.raises(ValueError, match=r"SplineMap\.row_certificate needs a proved"):
        km.SplineMap().fit(X).row_certificate(X)
    with pytest.raises(ValueError, match="HomogeneousMap: probability must be between 0 and 1"):
        km.HomogeneousMap().fit(X).row_certificate(X, probability=1.0)
