"""The choice of C among several values: the folds, their scores, and the model that is trained."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

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


def test_a_grid_search_finds_the_same_scores(seed):
    X, y = rows(seed, 200)
    y = targets(km.AdditiveSVC, y)
    Cs, unit = [1e-4, 1e-2, 1], km.SplineMap(domain=(0, 1))
    # A small C leaves scores that are small beside the intercept: it must be right to more digits.
    settings = {"tol": 1e-6, "max_iter": 5000, "n_jobs": 1}
    path = km.AdditiveSVC(unit, Cs, cv=3, **settings).fit(X, y)
    grid = GridSearchCV(km.AdditiveSVC(unit, **settings), {"C": Cs}, cv=3).fit(X, y)
    expected = grid.cv_results_["mean_test_score"]
    np.testing.assert_allclose(path.cv_scores_.mean(axis=0), expected, atol=0.03)


def test_the_chosen_C_is_better_than_the_ends(seed):
    X, y = rows(seed, 400)
    model = km.AdditiveSVR(C=np.logspace(-4, 3, 8), random_state=0).fit(X, y)
    chosen = km.AdditiveSVR(C=model.C_)
    for C in (model.Cs_[0], 1e-3):
        worse = cross_val_score(km.AdditiveSVR(C=C), X, y).mean()
        assert cross_val_score(chosen, X, y).mean() >= worse - 1e-3


@BOTH
@pytest.mark.parametrize(
    "C", [[], [1, -1], [0.0, 1.0], [1, np.inf], ["a"], "many", None, np.nan, True]
)
def test_values_of_C_are_checked(cls, C):
    with pytest.raises(ValueError, match=f"{cls.__name__}: C must be a positive number, several"):
        cls(C=C).fit(np.zeros((10, 1)), np.arange(10) % 2)


@BOTH
def test_values_of_C_of_any_sequence(cls, seed):
    X, y = rows(seed, 60)
    y = targets(cls, y)
    found = [
        cls(C=kind([0.1, 1.0]), cv=2, random_state=0).fit(X, y).cv_scores_
        for kind in (list, tuple, np.array)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert cls(C=np.float32(0.5)).fit(X, y).C_ == 0.5
    assert clone(cls(C=[0.1, 1.0])).C == [0.1, 1.0]


@BOTH
def test_a_file_and_a_chunk_take_one_C(cls, seed):
    X, y = rows(seed, 60)
    y = targets(cls, y)
    model = cls(C=[0.1, 1.0])
    with pytest.raises(ValueError, match="for rows in memory only, not for files and streams"):
        model.fit(lambda: iter([(X, y)]))
    classes = {"classes": [False, True]} if cls is km.AdditiveSVC else {}
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as raised:
        model.partial_fit(X, y, **classes)
    assert f"{cls.__name__}.partial_fit takes one C" in str(raised.value.__cause__)


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


def test_a_fold_without_weight_is_refused():
    X, y = np.random.default_rng(0).random((20, 1)), np.arange(20.0)
    splits = [(np.arange(10), np.arange(10, 20)), (np.arange(10, 20), np.arange(10))]
    with pytest.raises(ValueError, match="AdditiveSVR: all rows that fold 1 of cv"):
        km.AdditiveSVR(C=[0.1, 1.0], cv=splits).fit(X, y, (np.arange(20) >= 10).astype(float))


def test_folds_that_do_not_converge_are_warned_of(seed):
    X, y = rows(seed)
    model = km.AdditiveSVR(C=[1.0, 1e3], cv=2, max_iter=1, solver="dual")
    with (
        pytest.warns(ConvergenceWarning, match="AdditiveSVR: 4 of 4 fits to folds stopped"),
        pytest.warns(ConvergenceWarning, match="AdditiveSVR stopped after max_iter=1 epochs"),
    ):
        model.fit(X, y)


@BOTH
def test_terms_add_up(cls):
    X = np.random.default_rng(0).random((120, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    y = y if cls is km.AdditiveSVR else y > np.median(y)
    model = cls(C=[0.1, 1.0], cv=2).fit(X, y)
    score = model.predict if cls is km.AdditiveSVR else model.decision_function
    total = model.eval_terms(X).sum(axis=1) + model.intercept_
    np.testing.assert_allclose(total, score(X), rtol=1e-10)
    said = model.explain(X[:1])
    np.testing.assert_allclose(said.score, score(X[:1])[0], rtol=1e-10)
    assert [shape.name for shape in model.shape_functions_] == said.names == ["x0", "x1"]


@BOTH
def test_it_goes_through_files(cls, seed, tmp_path):
    X, y = rows(seed, 60)
    y = targets(cls, y)
    model = cls(C=[0.1, 1.0], cv=2).fit(X, y)
    km.save(model, tmp_path / "model.kmap")
    loaded = km.load(tmp_path / "model.kmap")
    assert loaded.C == [0.1, 1.0]
    assert loaded.C_ == model.C_
    np.testing.assert_array_equal(loaded.cv_scores_, model.cv_scores_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
