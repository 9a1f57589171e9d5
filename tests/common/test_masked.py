"""Masked entries are refused by everything that takes rows, targets or weights: never read."""

import inspect

import numpy as np
import pytest
from fitted_examples import MAPS, MODELS, fitted_map, fitted_model, labels, model_of, rows

import kernelmaps as km

REFUSED = r"masked array with 1 masked\s+entries"


def masked(values):
    """The same values, the first of them masked."""
    values = np.asarray(values)
    return np.ma.MaskedArray(values, mask=np.arange(values.size).reshape(values.shape) == 0)


def calls_with_rows(model):
    """Names of the public methods of an estimator whose first argument is X."""
    for name, method in inspect.getmembers(type(model), inspect.isfunction):
        if not name.startswith("_") and list(inspect.signature(method).parameters)[1:2] == ["X"]:
            yield name


def arguments_of(method, **given):
    """Those that a method takes."""
    known = inspect.signature(method).parameters
    return {name: value for name, value in given.items() if name in known}


def targets(name):
    regression = name.endswith(("Survival", "Regressor", "RegressorCV", "Ridge", "Lasso", "Net"))
    return np.arange(40.0) if regression else labels()


@pytest.mark.parametrize("name", [*MAPS, *MODELS])
def test_masked_rows_are_refused_by_every_method(name):
    fitted = fitted_map(name) if name in MAPS else fitted_model(name)
    tried = 0
    for call in calls_with_rows(fitted):
        method = getattr(fitted, call, None)
        if method is None or (call == "row_certificate" and fitted.certificate_ is None):
            continue  # of another loss, or of a map with a proved bound
        tried += 1
        with pytest.raises(ValueError, match=REFUSED):
            method(masked(rows()), **arguments_of(method, y=targets(name), times=[1.0]))
    assert tried > 1


@pytest.mark.parametrize("name", MODELS)
def test_masked_targets_and_weights_are_refused(name):
    model, y = model_of(name), np.arange(40) % 3
    given = {"y": y, "sample_weight": np.ones(40), "classes": np.arange(3)}
    for call in ("fit", "partial_fit"):
        method = getattr(model, call, None)
        parameters = {} if method is None else arguments_of(method, **given)
        ignored = {"classes"} | ({"y"} if name == "StreamingPCA" else set())
        for argument in parameters.keys() - ignored:
            with pytest.raises(ValueError, match=rf"{argument} is a {REFUSED}"):
                method(rows(), **parameters | {argument: masked(given[argument])})


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: km.kernels.chi2(X),
        lambda X, y: km.kernels.Gaussian().diag(X),
        lambda X, y: km.kernel_error(fitted_map("SeriesMap"), X),
        lambda X, y: km.compare(X, y, budget=1),
        lambda X, y: km.choose(X, max_error=0.1),
        lambda X, y: km.effective_sparsity(X),
        lambda X, y: km.StreamingRidge().fit(iter([(X, y)])),
        lambda X, y: km.engine.apply(fitted_map("SeriesMap").spec_, X),
    ],
)
def test_functions_refuse_them(call):
    with pytest.raises(ValueError, match=REFUSED):
        call(masked(rows()), np.arange(40) % 2)


def test_an_array_without_masked_entries_is_an_ordinary_one():
    X = np.ma.MaskedArray(rows(), mask=False)
    fitted = fitted_map("SeriesMap")
    np.testing.assert_array_equal(fitted.transform(X), fitted.transform(rows()))


@pytest.mark.parametrize("name", [n for n in MODELS if n != "StreamingPCA"])
@pytest.mark.parametrize("argument", ["y", "sample_weight"])
def test_scores_refuse_masked_targets_and_weights(name, argument):
    model = fitted_model(name)
    if not hasattr(model, "score"):
        pytest.skip("has no score")
    given = {"y": targets(name), "sample_weight": np.ones(40)}
    given[argument] = masked(given[argument])
    with pytest.raises(ValueError, match=REFUSED):
        model.score(rows(), **given)


def test_offsets_and_exposures_are_refused():
    y = np.arange(40) % 5
    model = km.AdditiveRegressor("poisson").fit(rows(), y)
    for call in (model.fit, model.score, model.check):
        for argument in ("offset", "exposure"):
            with pytest.raises(ValueError, match=REFUSED):
                call(rows(), y, **{argument: masked(np.ones(40))})
    with pytest.raises(ValueError, match=REFUSED):
        model.predict(rows(), offset=masked(np.ones(40)))
    with pytest.raises(ValueError, match=REFUSED):
        km.AdditiveRegressor().fit([*masked(rows())], y)
