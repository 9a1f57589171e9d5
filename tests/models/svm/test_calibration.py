"""Probabilities rest on scores of rows that the scoring model has not seen."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import log_loss

import kernelmaps as km
from kernelmaps.models.svm import calibration
from kernelmaps.models.svm.calibration import folds_by_content, some_of_all


def noisy(seed, n=300, d=12):
    """Labels that few of the columns say something about: a weak penalty overfits."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(n) > 0.5).astype(int)


def test_they_are_honest_where_the_model_overfits(monkeypatch, seed):
    X, y = noisy(seed)
    X_test, y_test = noisy(seed + 1000, 2000)
    model = km.AdditiveSVC(C=100.0, random_state=0)
    out_of_fold = log_loss(y_test, model.fit(X, y).predict_proba(X_test))
    monkeypatch.setattr(calibration, "_MOST_VALUES", 0)
    own_scores = log_loss(y_test, model.fit(X, y).predict_proba(X_test))
    assert out_of_fold < 0.9 * own_scores
    assert out_of_fold < 1.05 * np.log(2)  # hardly worse than saying nothing


def test_scores_are_those_of_models_without_the_rows(monkeypatch, seed):
    """Brute force: a fresh fit without each fold gives the scores that the sigmoid is fitted to."""
    X, y = noisy(seed, 120, 3)
    seen = {}

    def keep(scores, positive, weight):
        seen.setdefault("scores", scores)
        return 1.0, 0.0

    monkeypatch.setattr(calibration, "platt", keep)
    options = {"C": 1.0, "tol": 1e-8, "random_state": 0}
    model = km.AdditiveSVC(**options).fit(X, y)
    model.predict_proba(X)
    fold = folds_by_content(X, y, np.ones(len(y)))
    for k in range(3):
        others = fold != k
        fresh = km.AdditiveSVC(model.feature_map_, **options).fit(X[others], y[others])
        # Strong convexity: ½|w − w*|² is at most the gap, and a score moves by |w − w*||ψ|.
        room = np.sqrt(2 * 1e-7 * fresh.objective_[0]) * 2 * np.sqrt(3.0) + 1e-9
        own = fold == k
        gap = np.abs(seen["scores"][own] - fresh.decision_function(X[own]))
        assert gap.max() < 10 * room


def test_folds_go_by_content(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((60, 4)), np.arange(60) % 3
    twice = np.concatenate([X, X[:20]]), np.concatenate([y, y[:20]])
    one, two = folds_by_content(X, y, np.ones(60)), folds_by_content(*twice, np.ones(80))
    np.testing.assert_array_equal(two[:60], one)
    np.testing.assert_array_equal(two[60:], one[:20])
    for code in range(3):  # the classes have their shares in every fold
        assert np.ptp(np.bincount(one[y == code], minlength=3)) <= 1
    weight = np.where(np.arange(60) < 30, 1.0, 0.0)
    np.testing.assert_array_equal(folds_by_content(X, y, weight) < 0, weight == 0)
    assert folds_by_content(X[:4], np.array([0, 0, 1, 2]), np.ones(4)) is None


@pytest.mark.parametrize("short", [False, True])
def test_equal_values_have_equal_folds(seed, short):
    """However they are stored, and in whatever order a processor would add them up."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((90, 40)).astype(np.float32), np.arange(90) % 2
    X = np.floor(4 * X) if short else X
    X[rng.random(X.shape) < 0.5] = 0.0
    expected = folds_by_content(X, y, np.ones(90))
    same = [sparse.csr_matrix(X), sparse.csr_array(X.astype(np.float64)), X.astype(np.float64)]
    same += [np.asfortranarray(X), np.where(X == 0, -0.0, X)] + [X.astype(np.uint8)] * short
    row, column = np.nonzero(X)
    halves = np.tile(X[row, column] / 2, 2), (np.tile(row, 2), np.tile(column, 2))
    twice = sparse.csr_matrix(halves, shape=X.shape)
    same.append(sparse.csr_matrix((twice.data, twice.indices, twice.indptr), shape=X.shape))
    for rows in same:
        np.testing.assert_array_equal(folds_by_content(rows, y, np.ones(90)), expected)
    assert len(np.unique(calibration._content(X))) == 90
    swapped = calibration._content(X[:, ::-1])
    assert not np.isin(swapped, calibration._content(X)).any()


def test_many_rows_are_sampled_with_some_of_every_class():
    codes = np.zeros(60_000, int)
    codes[:30] = 1
    taken = some_of_all(codes, np.ones(60_000))
    assert 2_500 <= len(taken) <= 2_550
    assert np.count_nonzero(codes[taken] == 1) == 30
    assert len(np.unique(taken)) == len(taken)
    few = some_of_all(codes, np.arange(60_000) < 100)
    np.testing.assert_array_equal(few, np.arange(100))


@pytest.fixture
def trained_again(monkeypatch):
    """One entry for each time that rows were trained on in folds."""
    calls, inner = [], calibration.out_of_fold_scores
    monkeypatch.setattr(calibration, "out_of_fold_scores", lambda *a: calls.append(1) or inner(*a))
    return calls


def test_rows_are_trained_on_again_when_probabilities_are_asked_for(trained_again, seed):
    X, y = noisy(seed)
    model = km.AdditiveSVC().fit(X, y)
    model.predict(X)
    assert trained_again == []
    first = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X), first)
    assert trained_again == [1]


def test_large_data_and_logistic_losses_are_not_trained_again(trained_again, monkeypatch, seed):
    X, y = noisy(seed)
    km.AdditiveSVC(loss="log_loss").fit(X, y).predict_proba(X)
    monkeypatch.setattr(calibration, "_MOST_VALUES", X.size - 1)
    km.AdditiveSVC().fit(X, y).predict_proba(X)
    km.AdditiveSVC().fit(lambda: iter([(X, y)])).predict_proba(X)
    assert trained_again == []


def test_what_happens_after_fit_does_not_matter(seed):
    """Neither to X nor to the parameters; and rows of any kind are copied."""
    X, y = noisy(seed, d=4)
    for rows in (X, sparse.csr_matrix(X), (255 * X).astype(np.uint8)):
        options = {"feature_map": km.SplineMap(zero_at_zero=True), "random_state": 0}
        expected = km.AdditiveSVC(**options).fit(rows, y).predict_proba(rows)
        changed, labels = rows.copy(), y.copy()
        model = km.AdditiveSVC(**options).fit(changed, labels)
        values = changed.data if sparse.issparse(changed) else changed
        values[:] = 0
        labels[:] = 0
        model.set_params(C=1e-3, tol=0.5, loss="hinge")
        np.testing.assert_array_equal(model.predict_proba(rows), expected)


@pytest.mark.parametrize("how", ["pickle", "file", "copy"])
def test_copies_have_the_probabilities_and_no_rows(how, trained_again, seed, tmp_path):
    X, y = noisy(seed, n=2000)
    model = km.AdditiveSVC(random_state=0).fit(X, y)
    if how == "file":
        km.save(model, tmp_path / "model.kmap")
        loaded, size = km.load(tmp_path / "model.kmap"), (tmp_path / "model.kmap").stat().st_size
    elif how == "copy":
        loaded, size = copy.deepcopy(model), 0
    else:
        text = pickle.dumps(model)
        loaded, size = pickle.loads(text), len(text)
    assert trained_again == [1]
    assert size < X.nbytes / 2
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert trained_again == [1]
    assert model._calibration._pending is None  # its rows are free


def test_chunks_after_a_fit_go_on_from_its_probabilities(trained_again, seed):
    X, y = noisy(seed, d=3)
    model = km.AdditiveSVC(km.SplineMap(domain=(0, 1)), random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="belong to one class"):
        model.partial_fit(X[y == 1][:20], y[y == 1][:20])
    assert trained_again == [1]
    fresh = km.AdditiveSVC(km.SplineMap(domain=(0, 1)), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model._sigmoid, fresh._sigmoid)


def test_training_and_calibration_copy_few_rows():
    """A fit by coordinate descent holds one copy of the rows for probabilities, and little else."""
    import tracemalloc

    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (2000, 2000), dtype=np.uint8)
    y = X[:, 0] > X[:, 1]
    options = {"C": 0.01, "max_iter": 5, "tol": 0.5, "solver": "dual"}
    model = km.AdditiveSVC(km.SplineMap(order=0), **options)
    assert model.fit(X, y)._sigmoid.shape == (1, 2)  # compiles
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    own = model.machine_.weights.nbytes + model.dual_coef_.nbytes
    assert peak - own < 1.5 * X.nbytes
    tracemalloc.reset_peak()
    assert model._sigmoid.shape == (1, 2)  # as `predict_proba` does first
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - own < 1.5 * X.nbytes
    assert held - own < 0.5 * X.nbytes  # the copy is gone
