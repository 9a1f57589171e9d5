"""A second fit forgets the first: the same as that of a model which was never fitted."""

import numpy as np
import pytest
from fitted_examples import MAP_SETTINGS, MAPS, MODELS, labels, model_of, rows
from sklearn.base import clone, is_classifier

import kernelmaps as km

METHODS = ("transform", "decision_function", "predict", "predict_proba")


def targets(model, n):
    return labels(n) if is_classifier(model) else rows(n, 1, seed=5).sum(axis=1) + np.arange(n) % 4


def assert_forgets(model, change=None):
    """Fit to rows with other features and labels, then as if for the first time."""
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    first, second = 3 * rows(30, 4, seed=1), rows(40, 6, seed=2)
    other = targets(model, 30)
    model.fit(first, np.where(other == "third", "fourth", other) if other.dtype != float else other)
    model.set_params(**(change or {}))
    fresh = clone(model).fit(second, targets(model, 40))
    model.fit(second, targets(model, 40))
    assert set(vars(fresh)) == set(vars(model))
    compared = [name for name in METHODS if hasattr(fresh, name)]
    assert compared
    for name in compared:
        found, wanted = (getattr(one, name)(second) for one in (model, fresh))
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.usefixtures("readable")
@pytest.mark.filterwarnings("ignore")  # what rows so few and small give rise to, in both fits
@pytest.mark.parametrize("name", MAPS)
def test_maps(name):
    assert_forgets(getattr(km, name)(**MAP_SETTINGS[name]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    assert_forgets(model_of(name))


@pytest.mark.usefixtures("readable")
@pytest.mark.filterwarnings("ignore")
def test_parameters_between_fits():
    assert_forgets(km.StreamingPCA(n_components=2), {"n_components": 4})
    settings = MAP_SETTINGS["DesignedMap"] | {"domain": (0.1, 3)}
    assert_forgets(km.DesignedMap("gaussian", **settings), {"kernel": lambda t: np.exp(-(t**2))})
    assert_forgets(km.DesignedMap("chi2", **settings), {"kernel": "gaussian"})
