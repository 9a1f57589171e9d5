"""Anchors, ranges and codes as users pass them, and what is said of those that make no sense."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

import kernelmaps as km


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


def test_quantiles_of_sparse_features_are_those_of_their_values(seed):
    """With 19 of 20 values 0, all but one or two of 20 plain quantiles are 0."""
    rng = np.random.default_rng(seed)
    X = rng.random((2000, 2)) * (rng.random((2000, 2)) < 0.05)
    plain = km.AnchorMap(n_anchors=20, anchors="quantile").fit(X)
    assert max(len(anchors) for anchors in plain.anchors_) <= 3
    fitted = km.AnchorMap(n_anchors=20, anchors="quantile", anchor_zero=True)
    for anchors, column in zip(fitted.fit(sparse.csr_matrix(X)).anchors_, X.T, strict=True):
        values = np.sort(column[column > 0])
        ranks = np.floor(np.linspace(0, 1, 19) * (len(values) - 1)).astype(int)
        np.testing.assert_array_equal(anchors, np.append(0, values[ranks]))


@pytest.mark.parametrize("anchors", ["kmeans", "quantile", "uniform", "sqrt", "log"])
def test_a_single_anchor_at_zero_is_zero(anchors):
    fitted = km.AnchorMap(n_anchors=1, anchors=anchors, anchor_zero=True).fit(rows(0))
    assert [list(anchors) for anchors in fitted.anchors_] == [[0.0]] * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"anchors": []}, "finite numbers of shape"),
        ({"anchors": [[0.1, 0.2], 0.3]}, "finite numbers of shape"),
        ({"anchors": [[0.1, 0.2], [0.3], [0.4]]}, "anchors has 3 rows, but X has 4 features"),
        ({"anchors": np.linspace(0, 1, 65537)}, "at most 65536 anchors, got 65537"),
        ({"anchors": [-1.0, 0.0, 1.0]}, "anchors go down to -1, but the kernel is defined for"),
        ({"feature_range": (-1, 1)}, "feature_range goes down to -1, but the kernel is defined"),
        ({"feature_range": (0,)}, r"feature_range must be \(low, high\)"),
        ({"feature_range": 3}, r"feature_range must be \(low, high\)"),
        ({"feature_range": (0, [1, 2, 3])}, r"an array of 4 numbers"),
        ({"feature_range": ("low", 1)}, r"feature_range must be \(low, high\)"),
        ({"energy": "all"}, r"energy must be in \(0, 1\], got 'all'"),
        ({"energy": None}, r"energy must be in \(0, 1\], got None"),
        ({"anchors": "epsilon", "epsilon": "small"}, "needs a positive epsilon, got 'small'"),
        ({"anchors": "epsilon", "epsilon": np.inf}, "needs a positive epsilon, got inf"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        km.AnchorMap(**options).fit(rows(0))


@pytest.mark.parametrize("other", [km.AnchorMap(), km.ChebyshevMap()], ids=repr)
def test_codes_are_not_taken_for_values(other):
    X = rows(0)
    codes = km.AnchorMap().fit(X).encode(X)
    with pytest.raises(TypeError, match=r"X holds codes of an AnchorMap, not values.*decode"):
        other.fit(X).transform(codes)


def test_searches_take_codes_with_a_frozen_map(seed):
    """A search clones the model, and clones of a map are not fitted, unless it is frozen."""
    X = rows(seed)
    y = X[:, 0] > X[:, 1]
    feature_map = km.AnchorMap(n_anchors=10, rank=1).fit(X)
    codes = feature_map.encode(X)
    grid = {"C": [0.1, 1.0]}
    with pytest.raises(ValueError, match=r"pass sklearn.frozen.FrozenEstimator\(feature_map\)"):
        GridSearchCV(km.AdditiveClassifier(feature_map), grid, cv=3).fit(codes, y)
    frozen = km.AdditiveClassifier(FrozenEstimator(feature_map), random_state=0)
    search = GridSearchCV(frozen, grid, cv=3).fit(codes, y)
    plain = km.AdditiveClassifier(feature_map, **search.best_params_, random_state=0).fit(codes, y)
    np.testing.assert_array_equal(search.predict(codes), plain.predict(codes))
    assert search.best_estimator_.feature_map_ is feature_map
