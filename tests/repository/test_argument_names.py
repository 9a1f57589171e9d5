"""One set of words in the API: an argument has the same name, order and meaning everywhere."""

import inspect
import warnings

import numpy as np
import pytest
from public_api import callables, is_result, members, parameters
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold

import kernelmaps as km
from kernelmaps.kernels import Gaussian

ESTIMATORS = sorted(
    name
    for name in km._MODULE_OF
    if isinstance(getattr(km, name), type) and issubclass(getattr(km, name), BaseEstimator)
)
CALLABLES = callables()
# More than two arguments may be given by position, and why.
POSITIONAL = {
    "fit": (["X", "y", "sample_weight"], "as in scikit-learn"),
    "partial_fit": (["X", "y", "classes", "sample_weight"], "as in scikit-learn"),
    "score": (["X", "y", "sample_weight"], "as in scikit-learn"),
    "check": (["X", "y", "sample_weight"], "as in scikit-learn's score"),
    "from_estimator": (["estimator", "X", "y"], "as in scikit-learn's displays"),
    "sample_frequencies": (["n", "d", "rng"], "what a kernel of the user defines"),
    "kernel_error": (["map", "X", "Y"], "X and Y are rows, as in kernel(X, Y)"),
    "make_histograms": (["n_samples", "n_features", "n_classes"], "three counts, as in a shape"),
    "open_source": (["X", "y", "sample_weight"], "as in scikit-learn's fit"),
    "centre_on": (["Z", "y", "sample_weight"], "as in scikit-learn's fit"),
    "update": (["Z", "codes", "y", "sample_weight", "weight", "start"], "as centre_on; the place"),
    "partial": (["Z", "y", "sample_weight", "start"], "as update"),
    "fold": (["source", "stats", "transform"], "what is read, added to and applied"),
    "to_sql": (["model", "table", "dialect"], "what, where, for which database"),
    "choose_block_rows": (["n_features", "n_outputs", "itemsize"], "three counts, as in a shape"),
}
SYNONYMS = {
    "verbose": "progress", "show_progress": "progress", "seed": "random_state",
    "n_threads": "n_jobs", "n_workers": "n_jobs", "timeout": "budget", "max_seconds": "budget",
    "folds": "cv", "n_folds": "cv", "weights": "sample_weight", "labels": "classes",
}  # fmt: skip
# The same word in another sense.
OTHER_SENSE = {
    ("AnchorMap", "weights"): "weights of the neighbours of a value, not of rows",
    ("RandomFourierMap", "weights"): "weights of the frequencies, not of rows",
    ("AdditiveRegressor", "weights"): "what sample_weight means, not the weights",
    ("AdditiveSurvival", "weights"): "what sample_weight means, not the weights",
    ("AdditiveClassifier", "weights"): "what sample_weight means, not the weights",
    ("empty", "n_folds"): "how many sums are kept; nothing is split by a splitter",
}


# Results are read by users, not made.
CALLED = {name: function for name, function in CALLABLES.items() if not is_result(function)}


def test_arguments_after_the_second_are_keywords():
    free = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    wrong = {}
    for name, function in CALLED.items():
        positional = [p.name for p in parameters(function).values() if p.kind not in free]
        allowed = POSITIONAL.get(name.rpartition(".")[2], ([], ""))[0]
        if len(positional) > 2 and [word for word in allowed if word in positional] != positional:
            wrong[name] = positional
    assert wrong == {}


def test_one_word_for_one_thing():
    wrong = {
        (name, word): SYNONYMS[word]
        for name, function in CALLED.items()
        for word in parameters(function)
        if word in SYNONYMS and (name.rpartition(".")[2], word) not in OTHER_SENSE
    }
    assert wrong == {}


def test_every_public_name_is_in_the_reference():
    listed = {name.rpartition(".")[2] for name in members()}
    assert set(km._MODULE_OF) <= listed


def test_cv_takes_splitters_and_validation_does_not():
    """What is called `cv` takes all that scikit-learn's takes; one pass over the rows cannot."""
    X, y = np.random.default_rng(0).random((40, 2)), np.arange(40) % 2
    folds = KFold(2, shuffle=True, random_state=0)
    model = km.AdditiveSVC(km.SplineMap(domain=(0, 1)), [1.0], cv=folds, tol=0.1)
    assert model.fit(X, y).C_ == 1.0
    with pytest.raises(ValueError, match="validation must be a number of folds"):
        km.StreamingRidge([0.1, 1.0], validation=folds).fit(X, y)


def test_the_automatic_form_is_paired_where_it_can_be():
    X = np.random.default_rng(0).normal(size=(20, 3))
    for columns, form in ((8, "paired"), (7, "cosine")):
        maps = [
            km.RandomFourierMap(Gaussian(), columns, form=given, random_state=0).fit(X)
            for given in ("auto", form)
        ]
        assert maps[0].spec_ == maps[1].spec_


STATES = [0, np.random.RandomState(0), np.random.default_rng(0), None]


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
def test_random_state_takes_what_scikit_learn_takes(state):
    X, y = km.datasets.make_histograms(60, 4, 2, random_state=state)
    assert km.design_map("chi2", 1, random_state=state).n_columns == 1
    for name in ESTIMATORS:
        if "random_state" not in inspect.signature(getattr(km, name)).parameters:
            continue
        model = getattr(km, name)(random_state=state)
        small = {"n_components": 4, "n_measurements": 2, "Cs": 2, "cv": 2, "tol": 0.1}
        known = {key: value for key, value in small.items() if key in model.get_params()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.set_params(**known).fit(X, y)


@pytest.mark.parametrize("state", ["zero", 1.5, True])
def test_other_states_are_refused(state):
    with pytest.raises(ValueError, match="random_state must be None, an integer"):
        km.datasets.make_histograms(random_state=state)
