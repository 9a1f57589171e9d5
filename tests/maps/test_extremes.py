"""Sizes for which additive maps are exact: 1e-150 to 1e150, or the normal numbers of float32."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.engine import evaluate, record_paths

HOMOGENEOUS = {
    "chi2": lambda: km.HomogeneousMap("chi2", n_components=5),
    "intersection": lambda: km.HomogeneousMap("intersection", n_components=7),
    "signed": lambda: km.HomogeneousMap(signed=True),
    "designed": lambda: km.DesignedMap(n_components=5, domain=(0.01, 1.0)),
    "chebyshev": lambda: km.ChebyshevMap(8, scale=1.0),
    "series": lambda: km.SeriesMap(8, scale=1.0),
}
LINEAR = {
    "spline": lambda: km.SplineMap(),
    "trigonometric": lambda: km.TrigonometricMap(),
    "hermite": lambda: km.HermiteMap(),
    "anchors": lambda: km.AnchorMap(n_anchors=5),
}


def relative(found, wanted):
    size = np.abs(wanted).max(axis=1)
    return (np.abs(found - wanted).max(axis=1) / np.where(size > 0, size, 1)).max()


@pytest.mark.parametrize("name", sorted(set(HOMOGENEOUS) - {"designed"}))
def test_curves_hold_for_every_normal_number(name):
    """By the formula where no table reaches: no size is sent to zero, on any path."""
    feature_map = HOMOGENEOUS[name]().fit([[0.5], [1.0]])
    for dtype, ends, rounding in ((np.float64, 150, 1e-11), (np.float32, 37, 2e-5)):
        sizes = np.concatenate([[0.0], np.logspace(-ends, ends, 41)])
        X = sizes.astype(dtype)[:, None]
        # The oracle: every size by itself, in float64. A column of float32 may itself underflow.
        wanted = evaluate(feature_map.spec_, X.astype(np.float64))
        tiny = np.abs(wanted).max(axis=1) < np.finfo(dtype).tiny / rounding
        for rows in (X, sparse.csr_matrix(X), np.asfortranarray(np.tile(X, 3))):
            Z, expected = None, wanted
            if rows.shape[1] == 1:
                Z = feature_map.transform(rows)
            else:  # a map of its own, fitted to these sizes
                other = type(feature_map)(**feature_map.get_params()).fit(rows)
                Z = other.transform(rows)[:, : wanted.shape[1]]
                expected = evaluate(other.spec_, X.astype(np.float64))
            Z = Z.toarray() if sparse.issparse(Z) else Z
            assert relative(Z[~tiny], expected[~tiny]) <= rounding
            assert (Z[0] == 0).all()
            assert (np.abs(Z[1:]).max(axis=1) > 0)[~tiny[1:]].all()


@pytest.mark.compiled
def test_small_numbers_are_not_zero():
    """Sizes below the least normal float32 used to become zero in float64."""
    X = np.array([[1e-45], [1e-30], [2.0]])
    with record_paths() as paths:
        Z = km.HomogeneousMap(period=9.0).fit(X).transform(X)
    assert (Z**2).sum(axis=1) == pytest.approx(X[:, 0], rel=0.1)  # |φ(x)|² ≈ k(x, x) = x
    assert paths == ["table:log2:dense"]


@pytest.mark.parametrize("name", HOMOGENEOUS)
@pytest.mark.parametrize("factor", [1e-140, 1e140])
def test_homogeneity_at_the_ends_of_the_range(name, factor):
    """k(cx, cy) = c k(x, y), of the map fitted there."""
    X = np.linspace(0.01, 1, 30)[:, None]
    feature_map = HOMOGENEOUS[name]()
    if name in ("chebyshev", "series"):  # their scale has the unit 1/x
        feature_map.set_params(scale=1 / factor)
    near = HOMOGENEOUS[name]().fit(X).transform(X)
    if name == "designed":
        feature_map.set_params(domain=(0.01 * factor, 1.0 * factor))
    far = feature_map.fit(factor * X).transform(factor * X)
    np.testing.assert_allclose(far @ far.T / factor, near @ near.T, rtol=0, atol=1e-2)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("factor", [1e-149, 1e-30, 1e30, 1e149])
def test_maps_of_learned_ranges_do_not_depend_on_the_unit(name, factor):
    X = np.random.default_rng(0).random((50, 2))
    near = LINEAR[name]().fit(X).transform(X)
    far = LINEAR[name]().fit(factor * X).transform(factor * X)
    unit = np.sqrt(factor) if name == "anchors" else 1.0  # χ² grows with x, the others do not
    np.testing.assert_allclose(far / unit, near, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", HOMOGENEOUS | LINEAR)
def test_beyond_the_range_one_error_says_what_to_do(name):
    feature_map = (HOMOGENEOUS | LINEAR)[name]()
    for rows in ([[1e308], [1e-30]], [[9e307]], [[2e150], [1.0]]):
        with pytest.raises(ValueError, match=r"reach the size .* Divide X by a constant"):
            feature_map.fit(rows)
    with pytest.raises(ValueError, match="larger in size than 1e-200"):
        feature_map.fit([[1e-200], [0.0]])
    fitted = feature_map.fit([[0.5], [1.0], [0.2]])
    with pytest.raises(ValueError, match=type(feature_map).__name__):
        fitted.transform([[1e151]])
