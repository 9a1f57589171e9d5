"""Anchors, ranges and codes as users pass them, and what is said of those that make no sense."""

import warnings

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

import kernelmaps as km
from kernelmaps.exceptions import OutOfDomainWarning


def rows(seed):
    return np.random.default_rng(seed).random((50, 4))


def test_given_anchors_may_differ_in_number(seed):
    """What a fitted map has in `anchors_` can be given to another."""
    X = rows(seed)
    X[:, 1] = np.round(3 * X[:, 1])  # four distinct values
    first = km.AnchorMap(n_anchors=10, anchors="kmeans").fit(X)
    assert [len(anchors) for anchors in first.anchors_] == [10, 4, 10, 10]
    again = km.AnchorMap(anchors=first.anchors_).fit(X)
    np.testing.assert_array_equal(again.transform(X), first.transform(X))


def test_more_neighbours_than_a_feature_has_anchors_take_them_all():
    X = np.array([[0.0, 0.1], [1.0, 0.5], [1.0, 0.9]])
    Z = km.AnchorMap(lambda x, y: 1 + x * y, anchors="kmeans", n_neighbors=3).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, np.full((3, 3), 2 + 0.5**2 + 0.5**2), rtol=1e-2)


def test_searches_take_codes_with_a_frozen_map(seed):
    """A search clones the model, and clones of a map are not fitted, unless it is frozen."""
    X = rows(seed)
    y = X[:, 0] > X[:, 1]
    feature_map = km.AnchorMap(n_anchors=10, rank=1).fit(X)
    codes = feature_map.encode(X)
    grid = {"C": [1.0]}
    with pytest.raises(ValueError, match=r"pass sklearn.frozen.FrozenEstimator\(feature_map\)"):
        GridSearchCV(km.AdditiveSVC(feature_map), grid, cv=2).fit(codes, y)
    frozen = km.AdditiveSVC(FrozenEstimator(feature_map), random_state=0)
    search = GridSearchCV(frozen, grid, cv=2).fit(codes, y)
    plain = km.AdditiveSVC(feature_map, **search.best_params_, random_state=0).fit(codes, y)
    np.testing.assert_array_equal(search.predict(codes), plain.predict(codes))
    assert search.best_estimator_.feature_map_ is feature_map


@pytest.mark.parametrize(("n_neighbors", "out_of_domain"), [(1, "clip"), (2, "extrapolate")])
@pytest.mark.usefixtures("drawn_weights")
def test_features_with_unlike_numbers_of_anchors_predict_as_trained(
    n_neighbors, out_of_domain, seed
):
    """Beyond the last bin of the feature that has fewer there is not nothing."""
    X = np.random.default_rng(seed).random((300, 2))
    X[:20] = 1
    y = (X.sum(axis=1) > 1).astype(int)
    tests = np.vstack([X, 1.3 * X, np.ones((1, 2)), np.full((1, 2), 1 - 1e-9)])
    for counts in ((5, 9), (9, 5)):
        anchors = [np.linspace(0, 1, n) for n in counts]
        feature_map = km.AnchorMap(
            "intersection", anchors=anchors, n_neighbors=n_neighbors, out_of_domain=out_of_domain
        ).fit(X)
        model = km.AdditiveSVC(feature_map, n_jobs=1).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutOfDomainWarning)
            terms = model.eval_terms(tests).sum(axis=1) + model.intercept_
            np.testing.assert_allclose(model.decision_function(tests), terms, atol=1e-12)


@pytest.mark.parametrize("anchors", ["uniform", "sqrt"])
def test_a_nearly_constant_column_is_finite(anchors, seed):
    H = np.random.default_rng(seed).dirichlet(np.ones(20), size=50)
    X = np.column_stack([H, H.sum(axis=1)])  # 1, but for rounding
    Z = km.AnchorMap("chi2", 40, anchors=anchors, n_neighbors=2).fit_transform(X)
    assert np.isfinite(Z).all()


def test_anchors_far_from_zero_are_not_taken_for_even_ones():
    anchors = 1.7e9 + np.array([0, 1e-6, 5e-6, 1.5e-5])
    fitted = km.AnchorMap(lambda x, y: np.exp(-(((x - y) * 1e5) ** 2)), anchors=anchors, energy=1)
    codes = fitted.fit(anchors[:, None]).encode(anchors[:, None])
    np.testing.assert_array_equal(codes.values[:, 0], [0, 1, 2, 3])
