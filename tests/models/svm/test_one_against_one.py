"""One against one: equal to scikit-learn's wrapper, on one map, in files, with probabilities."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsOneClassifier

import kernelmaps as km
from kernelmaps.models.decision import class_pairs, count_votes
from kernelmaps.plots.shapes import output_names


@pytest.fixture
def flowers():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def four_classes(seed, n=200):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, (X[:, 0] > 0.5) + 2 * (X[:, 1] > 0.4) + 10


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "log_loss"])
def test_it_is_scikit_learns_wrapper_on_the_same_map(loss, seed):
    """The problems are the same, so that the values differ by rounding alone."""
    X, y = four_classes(seed)
    shared = km.SplineMap().fit(X)
    options = {"C": 1.0, "loss": loss, "random_state": 0, "n_jobs": 1}
    own = km.AdditiveSVC(shared, multi_class="ovo", **options).fit(X, y)
    each = km.AdditiveSVC(FrozenEstimator(shared), **options)
    theirs = OneVsOneClassifier(each).fit(X, y)
    np.testing.assert_allclose(
        own.decision_function(X), theirs.decision_function(X), rtol=0, atol=1e-10
    )
    np.testing.assert_array_equal(own.predict(X), theirs.predict(X))
    assert own.decision_function(X).shape == (len(X), 4)
    assert own.duality_gap_.shape == (6,)
    assert np.all(own.duality_gap_ <= own.tol * own.objective_)


def test_terms_are_those_of_the_pairs(flowers):
    X, y = flowers
    model = km.AdditiveSVC(multi_class="ovo", random_state=0).fit(X, y)
    scores = model.eval_terms(X).sum(axis=1) + model.intercept_
    np.testing.assert_allclose(count_votes(scores, 3), model.decision_function(X), atol=1e-9)
    assert model.predictor_.output_names[0] == "versicolor, not setosa"
    assert output_names(model) == model.predictor_.output_names
    assert len(model.shape_functions_) == 4
    assert model.shape_functions_[0].values.shape[1] == 3


def test_rows_of_other_classes_have_no_duals(flowers):
    X, y = flowers
    model = km.AdditiveSVC(multi_class="ovo", random_state=0).fit(X, y)
    for column, (a, b) in zip(model.dual_coef_.T, class_pairs(3)):
        outside = ~np.isin(y, model.classes_[[a, b]])
        assert not column[outside].any()
        assert column[~outside].any()
        assert abs(column.sum()) < 1e-9 * np.abs(column).sum()  # the intercept's condition


def test_a_pair_without_rows_has_no_weights(seed):
    X, y = four_classes(seed)
    weight = (y < 12).astype(float)  # two of the classes do not count
    model = km.AdditiveSVC(multi_class="ovo", random_state=0).fit(X, y, weight)
    assert not model.predictor_.weights[:, :, -1].any()
    assert np.mean(model.predict(X[weight > 0]) == y[weight > 0]) > 0.9
