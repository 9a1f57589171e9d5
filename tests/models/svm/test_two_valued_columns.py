"""Machines with one weight for each column of two values are those with all functions of ψ."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import kernelmaps as km
from kernelmaps.models.rows.map_basis import TwoValuedColumns
from kernelmaps.models.svm import training

TOL = 1e-6
OPTIONS = {"tol": TOL, "max_iter": 20000, "random_state": 0, "n_jobs": 1}


def table(seed, n=300):
    """One-hot columns, one of them constant, around two of numbers; a score."""
    rng = np.random.default_rng(seed)
    level, numbers = rng.integers(0, 5, n), rng.random((n, 2))
    two_valued = np.column_stack([np.eye(6)[level], np.where(rng.random((n, 2)) < 0.3, 7.0, -2.0)])
    score = np.sin(5 * numbers[:, 0]) + 0.5 * level - 0.2 * two_valued[:, 6]
    X = np.insert(two_valued, [3, 7], numbers, axis=1)
    return X, score + 0.3 * rng.normal(size=n)


@pytest.fixture
def coded(monkeypatch):
    """Columns that were coded."""
    calls, code = [], TwoValuedColumns.encode

    def counted(columns, X):
        calls.append(columns.is_two_valued)
        return code(columns, X)

    monkeypatch.setattr(TwoValuedColumns, "encode", counted)
    return calls


def assert_same_minimum(model, reference, X):
    """P is strongly convex: a gap of tol·P bounds the distance of the weights by √(2 tol P)."""
    np.testing.assert_allclose(model.objective_, reference.objective_, rtol=2 * model.tol)
    Z = model.feature_map_.transform(X)
    largest = np.sqrt((Z.multiply(Z) if sparse.issparse(Z) else Z**2).sum(axis=1).max())
    error = 4 * largest * np.sqrt(2 * model.tol * np.max(model.objective_))
    scores = [
        m.decision_function(X) if hasattr(m, "decision_function") else m.predict(X)
        for m in (model, reference)
    ]
    np.testing.assert_allclose(*scores, atol=error)
    # The bound says something, unless coordinate descent on corners ends early.
    assert np.ptp(scores[1]) > 5 * error or model.tol > TOL


@pytest.mark.parametrize(
    ("loss", "n_classes", "others"),
    [
        ("hinge", 2, True),
        ("log_loss", 3, True),
        ("squared_hinge", 3, False),
    ],
)
def test_machines_have_the_same_minimum(monkeypatch, coded, seed, loss, n_classes, others):
    """By both solvers, with other columns and without.

    Coordinate descent has loops of its own for each loss and number of classes: two of them here.
    """
    monkeypatch.setattr(training, "choose_solver", lambda *arguments: "dual")
    X, score = table(seed)
    if not others:
        X = np.delete(X, [3, 8], axis=1)
    y = np.digitize(score, np.quantile(score, [0.45, 0.7][: n_classes - 1]))
    weight = np.random.default_rng(seed).integers(0, 3, len(X))

    def fitted(solver, tol=TOL):
        options = OPTIONS | {"loss": loss, "solver": solver, "tol": tol}
        return km.AdditiveSVC(km.SplineMap(), 0.02, **options).fit(X, y, weight)

    models = [fitted("primal")]
    if loss != "log_loss":
        models.append(fitted("auto", 1e-3 if loss == "hinge" else TOL))
    monkeypatch.setattr(TwoValuedColumns, "detect", lambda *arguments: None)
    reference = fitted("primal")
    assert len(coded) == len(models)
    assert np.count_nonzero(coded[0]) == 8
    assert [model.solver_ for model in models] == ["primal", "dual"][: len(models)]
    for model in models:
        assert_same_minimum(model, reference, X)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dense_rows_are_coded_if_an_intercept_absorbs_constants(coded, seed, fit_intercept):
    X, score = table(seed)
    options = OPTIONS | {"fit_intercept": fit_intercept}
    primal, dual = (
        km.AdditiveSVR(km.SplineMap(), 0.1, solver=solver, **options).fit(X, score)
        for solver in ("primal", "dual")
    )
    # Not where the dual itself was requested: it takes rows as they are.
    assert len(coded) == fit_intercept
    assert_same_minimum(primal, dual, X)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_rows_are_coded_if_weights_are_many(monkeypatch, coded, seed, fit_intercept):
    """With an intercept or without: ψ(0) is zero."""
    X, score = table(seed)
    X[:, 6:] = np.where(X[:, 6:] < 0, 0, X[:, 6:])
    rows = sparse.csr_matrix(X)
    options = OPTIONS | {"fit_intercept": fit_intercept, "solver": "primal"}
    machine = km.AdditiveSVR(km.SplineMap(), 0.1, **options)
    reference = clone(machine).fit(rows, score)
    assert not coded
    monkeypatch.setattr(training, "MOST_WEIGHTS", 50)  # of 100 with all functions, 28 without
    model = machine.fit(rows, score)
    assert len(coded) == 1
    assert_same_minimum(model, reference, rows)
    monkeypatch.setattr(training, "MOST_WEIGHTS", 20)
    machine.fit(rows, score)
    assert len(coded) == 1


def test_further_values_have_the_scores_of_the_map(coded, seed):
    """A column that had two values in training is still mapped by ψ."""
    X, score = table(seed)
    auto, dual = (
        km.AdditiveSVR(km.SplineMap(), 0.1, solver=solver, **OPTIONS).fit(X, score)
        for solver in ("auto", "dual")
    )
    assert len(coded) == 1
    rng = np.random.default_rng(seed)
    between = np.where(rng.random(X.shape) < 0.5, X, rng.uniform(X.min(0), X.max(0), X.shape))
    assert_same_minimum(auto, dual, between)
