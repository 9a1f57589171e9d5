"""A model that was changed behind its back refuses rows: compiled loops do not follow it."""

import numpy as np
import pytest
from fitted_examples import MAPS, fitted_map, fitted_model, rows
from scipy import sparse

from kernelmaps.engine.outputs import check_loop


def test_the_check_beside_a_loop():
    X, out = np.zeros((4, 3)), np.zeros((4, 2))
    check_loop(X, 3, out, (4, 2))
    for wrong in ((X, 4, out, (4, 2)), (X, 3, out, (4, 1)), (X, 2, out, (4, 2))):
        with pytest.raises(ValueError, match="another thread fitted it meanwhile"):
            check_loop(*wrong)


# Their tables have the loops of splines.
READABLE = {"HermiteMap", "TrigonometricMap"}


@pytest.mark.parametrize("name", MAPS)
def test_a_map_whose_number_of_features_was_changed(name, request):
    if name in READABLE:
        request.getfixturevalue("readable")
    fitted, X = fitted_map(name), rows()[:, :3]
    whole = fitted.transform(rows())
    fitted.n_features_in_ = 3
    for narrow in (X, np.ascontiguousarray(X), sparse.csr_matrix(X)):
        try:
            narrowed = fitted.transform(narrow)
        except ValueError:
            continue
        # A map without numbers for each feature is one of any number of features.
        narrowed = narrowed.toarray() if sparse.issparse(narrowed) else narrowed
        np.testing.assert_allclose(narrowed, whole[:, : narrowed.shape[1]])


@pytest.mark.usefixtures("drawn_weights")
@pytest.mark.parametrize("name", ["AdditiveSVC", "AdditiveSVR"])
def test_an_svm_whose_number_of_features_was_changed(name):
    """What is scored and what is checked belong to one machine, whatever the estimator says."""
    model = fitted_model(name)
    model.n_features_in_ = 3
    for form in (np.ascontiguousarray, sparse.csr_matrix):
        for call in (model.predict, model.eval_terms):
            with pytest.raises(ValueError, match="features"):
                call(form(rows()[:, :3]))
    for loop in (model.predictor_.scores, model.predictor_.terms):
        with pytest.raises(ValueError, match="features"):
            loop(np.ascontiguousarray(rows()[:, :3]))


@pytest.mark.parametrize("name", ["AdditiveClassifier", "AdditiveRegressor"])
def test_a_gam_whose_number_of_features_was_changed(name):
    model = fitted_model(name)
    model.n_features_in_ = 3
    for call in (model.predict, model.eval_terms):
        with pytest.raises(ValueError, match="expecting 6 features"):
            call(rows()[:, :3])
