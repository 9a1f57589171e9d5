"""The choice of C among several values: the folds, their scores, and the model that is trained."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

import kernelmaps as km

BOTH = pytest.mark.parametrize("cls", [km.AdditiveSVC, km.AdditiveSVR])


def rows(seed, n=240):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, 5 + np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def targets(cls, y):
    return y > np.median(y) if cls is km.AdditiveSVC else y


@BOTH
def test_scores_of_folds_are_those_of_single_fits(cls, seed):
    X, y = rows(seed)
    y = targets(cls, y)
    fitted = km.SplineMap().fit(X)  # one map for all folds
    Cs, cv = [1.0, 0.01], KFold(3, shuffle=True, random_state=0)
    model = cls(fitted, Cs, cv=cv, tol=1e-7, max_iter=5000).fit(X, y)
    np.testing.assert_array_equal(model.Cs_, [0.01, 1.0])
    for k, C in enumerate(model.Cs_):
        for fold, (train, test) in enumerate(cv.split(X)):
            single = cls(fitted, C, tol=1e-7, max_iter=5000).fit(X[train], y[train])
            expected = single.score(X[test], y[test])
            assert model.cv_scores_[fold, k] == pytest.approx(expected, abs=1e-3)


@BOTH
def test_the_model_is_that_of_the_best_C(cls, seed):
    X, y = rows(seed)
    y = targets(cls, y)
    model = cls(C=[0.01, 1.0, 100.0], cv=3, random_state=0).fit(X, y)
    assert model.cv_scores_.shape == (3, 3)
    assert model.Cs_[np.argmax(model.cv_scores_.mean(axis=0))] == model.C_
    alone = cls(C=model.C_, random_state=0).fit(X, y)
    assert alone.C_ == model.C_
    assert not hasattr(alone, "Cs_")
    assert not hasattr(alone, "cv_scores_")
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    np.testing.assert_array_equal(model.objective_, alone.objective_)
    one = model.set_params(C=1.0).fit(X, y)  # a fit without folds forgets them
    assert one.C_ == 1.0
    assert not hasattr(one, "Cs_")


@BOTH
def test_scores_of_folds_are_weighted(cls, seed):
    """A weight of two is a row twice, in the same fold."""
    rng = np.random.default_rng(seed)
    X = rng.random((60, 1))
    y = X[:, 0] + rng.normal(size=60)
    y = y if cls is km.AdditiveSVR else y > 0.5
    weight = rng.integers(1, 3, 60)
    twice = np.repeat(np.arange(60), weight)
    fold = rng.permutation(60) % 3
    found = []
    for taken, own in ((np.arange(60), weight), (twice, None)):
        splits = [
            (np.flatnonzero(fold[taken] != k), np.flatnonzero(fold[taken] == k)) for k in (0, 1)
        ]
        model = cls(C=[0.1, 1.0], cv=splits, tol=1e-12, n_jobs=1).fit(X[taken], y[taken], own)
        found.append(model.cv_scores_)
    np.testing.assert_allclose(*found, atol=1e-4)


def test_folds_that_do_not_converge_are_warned_of(seed):
    X, y = rows(seed)
    model = km.AdditiveSVR(C=[1.0, 1e3], cv=2, max_iter=1, solver="dual")
    with (
        pytest.warns(ConvergenceWarning, match="AdditiveSVR: 4 of 4 fits to folds stopped"),
        pytest.warns(ConvergenceWarning, match="AdditiveSVR stopped after max_iter=1 epochs"),
    ):
        model.fit(X, y)
