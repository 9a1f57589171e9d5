"""The choice of C for a regressor."""

import numpy as np
import pytest
from conventions import broken
from sklearn.model_selection import KFold, cross_val_score

import kernelmaps as km


def rows(seed, n=240):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, 5 + np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def test_path_scores_are_those_of_single_fits(seed):
    X, y = rows(seed)
    fitted = km.SplineMap().fit(X)  # one map for all folds
    Cs, cv = [0.01, 1.0], KFold(3, shuffle=True, random_state=0)
    found = km.AdditiveRegressorCV(fitted, Cs, cv=cv, tol=1e-7).fit(X, y)
    for k, C in enumerate(Cs):
        for fold, (train, test) in enumerate(cv.split(X)):
            single = km.AdditiveRegressor(fitted, C=C, tol=1e-7).fit(X[train], y[train])
            assert found.scores_[fold, k] == pytest.approx(single.score(X[test], y[test]), abs=1e-3)
    assert Cs[int(np.argmax(found.scores_.mean(axis=0)))] == found.C_
    np.testing.assert_array_equal(found.predict(X), found.estimator_.predict(X))


def test_chosen_strength_is_better_than_the_ends(seed):
    X, y = rows(seed, 400)
    found = km.AdditiveRegressorCV(random_state=0).fit(X, y)
    chosen = km.AdditiveRegressor(C=found.C_)
    for C in (found.Cs_[0], 1e-3):
        worse = cross_val_score(km.AdditiveRegressor(C=C), X, y).mean()
        assert cross_val_score(chosen, X, y).mean() >= worse - 1e-3


@pytest.mark.parametrize("Cs", [0, -1, [], [1, -1], "many"])
def test_values_of_c_are_checked(Cs):
    with pytest.raises(ValueError, match="AdditiveRegressorCV: Cs must be"):
        km.AdditiveRegressorCV(Cs=Cs).fit(np.zeros((10, 1)), np.arange(10.0))


# The checks predict rows that were not fitted.
@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimator_checks():
    def settings(check):  # to seven digits; other conventions do not depend on them
        return {"tol": 1e-15 if "weight_equivalence" in check else 0.1}

    assert broken(km.AdditiveRegressorCV(Cs=[0.01, 0.1], cv=2, n_jobs=1), settings) == {}


@pytest.mark.parametrize("cls", [km.AdditiveRegressorCV, km.AdditiveClassifierCV])
def test_the_terms_of_the_chosen_model_add_up(cls):
    X = np.random.default_rng(0).random((120, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    y = y if cls is km.AdditiveRegressorCV else y > np.median(y)
    model = cls(Cs=[0.1, 1.0], cv=2).fit(X, y)
    score = model.predict if cls is km.AdditiveRegressorCV else model.decision_function
    total = model.eval_terms(X).sum(axis=1) + model.intercept_
    np.testing.assert_allclose(total, score(X), rtol=1e-10)
    said = model.explain(X[:1])
    np.testing.assert_allclose(said.score, score(X[:1])[0], rtol=1e-10)
    assert [shape.name for shape in model.shape_functions_] == said.names == ["x0", "x1"]
