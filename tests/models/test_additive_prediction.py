"""Prediction compiled to per-feature polynomials: equal to the form of the training."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.exceptions import OutOfDomainWarning
from kernelmaps.models import _prediction_loops as loops

ONE = {"n_jobs": 1, "tol": 1e-3, "random_state": 0}


def data(seed, classes=2, n=120, d=5):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    score = np.sin(7 * X[:, 0]) + 2 * X[:, 1] ** 2
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def to_bytes(X):
    return (255 * X).astype(np.uint8)


CASES = {
    "cubic": (km.SplineMap(), None, 2, loops.AFFINE),
    "many-bases": (km.SplineMap(16), None, 2, loops.AFFINE),
    "classes": (km.SplineMap(), None, 3, loops.AFFINE),
    "single": (km.SplineMap(), np.float32, 2, loops.AFFINE),
    "quantile": (km.SplineMap(knots="quantile"), None, 2, loops.EDGES),
    "bytes": (km.SplineMap(order=0), to_bytes, 2, loops.CODES),
    "sparse": (km.SplineMap(), sparse.csr_matrix, 2, loops.AFFINE),
    "extrapolated": (km.SplineMap(out_of_domain="extrapolate"), None, 2, loops.AFFINE),
}


@pytest.mark.parametrize("case", CASES)
def test_compiled_prediction_is_that_of_the_training(case, seed):
    feature_map, convert, classes, binning = CASES[case]
    X, y = data(seed, classes, d=67)  # four groups of up to sixteen values, and some left over
    X = np.where(X < 0.2, 0, X)
    if convert is not None:
        X = X.astype(convert) if isinstance(convert, type) and convert is np.float32 else convert(X)
    model = km.AdditiveClassifier(feature_map, **ONE).fit(X, y)
    forms = model._forms(X)
    assert {len(form.binning) for _, form in forms} == {binning}  # the fast path is taken
    assert all(4 * len(form.group) <= 64 for _, form in forms)
    if classes == 2:
        assert all(len(form.group) > 1 for _, form in forms)
    found = model._scores(X)
    expected = model._trained_scores(X)
    single = model._precision(X) is np.float32
    np.testing.assert_allclose(found, expected, atol=2e-5 if single else 1e-11)
    if not sparse.issparse(X):
        terms = model.eval_terms(X).reshape(*X.shape, -1).sum(axis=1) + model.intercept_
        np.testing.assert_allclose(found, terms, atol=2e-4 if single else 1e-9)


def test_cost_does_not_depend_on_the_number_of_bases(seed):
    """A value reads one block of degree + 1 coefficients per output, whatever the basis."""
    X, y = data(seed)
    blocks = []
    for bases in (10, 16):
        model = km.AdditiveClassifier(km.SplineMap(bases), **ONE).fit(X, y)
        (_, form), = model._forms(X)  # fmt: skip
        blocks.append(len(form.block))
        assert form.bins == bases - 3
    assert blocks == [4, 4]


def test_values_are_looked_at_on_the_way(seed):
    X, y = data(seed)
    model = km.AdditiveClassifier(**ONE).fit(X, y)
    ends = np.stack([X.min(axis=0), X.max(axis=0)])
    model.decision_function(ends)  # the ends belong to the domain: no warning
    with pytest.warns(OutOfDomainWarning, match="column 2 reaches"):
        beyond = model.decision_function(ends + np.array([0, 0, 0.1, 0, 0]))
    clipped = np.minimum(ends + np.array([0, 0, 0.1, 0, 0]), ends[1])
    np.testing.assert_allclose(beyond, model.decision_function(clipped), atol=1e-10)
    for wrong in (np.nan, np.inf, -np.inf):  # said although the warning is over
        bad = X.copy()
        bad[7, 3] = wrong
        with pytest.raises(ValueError, match=r"\(row 7, column 3\)"):
            model.decision_function(bad)
    strict = km.SplineMap(out_of_domain="raise")
    with pytest.raises(ValueError, match="outside the fitted domain"):
        km.AdditiveClassifier(strict, **ONE).fit(X, y).decision_function(X + 0.01)


def test_bytes_outside_the_domain_are_seen(seed):
    X, y = data(seed)
    low = to_bytes(X / 4)  # domain 0 … 63
    model = km.AdditiveClassifier(km.SplineMap(order=0), **ONE).fit(low, y)
    model.decision_function(low)
    with pytest.warns(OutOfDomainWarning):
        model.decision_function(low + 100)


def test_row_as_one_dimension(seed):
    X, y = data(seed)
    with pytest.raises(ValueError, match="Reshape your data"):
        km.AdditiveClassifier(**ONE).fit(X, y).predict(X[0])
