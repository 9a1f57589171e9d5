"""Additive SVMs and scikit-learn's checks."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import (
    check_dict_unchanged,
    check_estimators_overwrite_params,
    check_estimators_pickle,
    check_fit_idempotent,
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)
from sklearn_checks import broken

import kernelmaps as km

# The checks predict beyond the rows that they fit, and weigh classes 10 000 000 to 1.
pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
DENSE = check_sample_weight_equivalence_on_dense_data
SPARSE = check_sample_weight_equivalence_on_sparse_data


@pytest.mark.parametrize(
    "estimator",
    [km.AdditiveSVC(C=1.0, loss="log_loss", solver="primal", n_jobs=1), km.AdditiveSVR(n_jobs=1)],
    ids=repr,
)
def test_estimator_checks(estimator):
    def settings(check):
        # To seven digits; conventions do not depend on the last ones.
        return {"tol": 2e-16 if "weight_equivalence" in check else 0.1}

    assert broken(estimator, settings) == {}


@pytest.mark.parametrize(
    "check",
    [
        check_dict_unchanged,
        check_estimators_overwrite_params,
        check_estimators_pickle,
        check_fit_idempotent,
        DENSE,
    ],
)
def test_checks_of_what_is_done_with_several_C(check):
    model = km.AdditiveSVC(C=[0.1, 1.0], loss="log_loss", cv=2, n_jobs=1, tol=1e-15)
    check(type(model).__name__, model)


@pytest.mark.parametrize(
    ("loss", "check"), [("hinge", DENSE), ("squared_hinge", SPARSE), ("epsilon_insensitive", DENSE)]
)
def test_weights_of_losses_with_corners(loss, check):
    kind = km.AdditiveSVR if loss == "epsilon_insensitive" else km.AdditiveSVC
    options = {"tol": 1e-12, "solver": "dual"}  # which ends at vertices
    if loss == "hinge":
        options["multi_class"] = "ovo"  # the loops of one output, which other tests have, too
    if loss == "squared_hinge":  # smooth: Newton's method goes to the last digits
        options = {"tol": 1e-15, "solver": "primal"}
    model = kind(loss=loss, n_jobs=1, **options)
    check(type(model).__name__, model)


@pytest.mark.parametrize(
    "model",
    [
        km.AdditiveSVC(),
        km.AdditiveSVR(),
        km.AdditiveSVC(C=[0.1, 1.0], cv=3),
        km.AdditiveSVR(C=[0.1, 1.0], cv=3),
    ],
    ids=["SVC", "SVR", "SVC of several C", "SVR of several C"],
)
def test_rows_of_weight_zero_are_absent(model, seed):
    """Far beyond the range of the others, they move neither knots, folds nor scores of folds."""
    rng = np.random.default_rng(seed)
    X = rng.random((90, 2))
    y = np.digitize(X.sum(axis=1), [1.0]) if hasattr(model, "class_weight") else X.sum(axis=1)
    absent = rng.permutation(90)[:30]
    X[absent] += 50
    weight = np.ones(90)
    weight[absent] = 0
    kept = np.flatnonzero(weight)
    model.set_params(n_jobs=1, random_state=0, tol=1e-6)
    whole = model.fit(X, y, weight)
    found = whole.predict(X[kept]), getattr(whole, "cv_scores_", 0.0)
    alone = model.fit(X[kept], y[kept])
    np.testing.assert_allclose(found[0], alone.predict(X[kept]), atol=1e-2)
    np.testing.assert_allclose(found[1], getattr(alone, "cv_scores_", 0.0), atol=1e-2)
