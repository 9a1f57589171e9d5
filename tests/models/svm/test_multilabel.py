"""Additive support vector machines for rows with any number of labels."""

import numpy as np
import pytest
import scipy.sparse as sp

import kernelmaps as km


def labelled(seed, n=200, labels=3):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    score = np.abs(X[:, :labels] - 0.5) + 0.1 * rng.normal(size=(n, labels))
    return X, (score > 0.25).astype(int)


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("loss", ["squared_hinge", "log_loss"])
def test_each_label_is_a_problem_of_its_own(seed, labels, loss):
    X, Y = labelled(seed, labels=labels)
    options = {"loss": loss, "tol": 1e-7, "random_state": 0}
    model = km.AdditiveSVC(km.SplineMap(6), C=2.0, **options).fit(X, Y)
    assert model.classes_.tolist() == list(range(labels))
    assert model.decision_function(X).shape == Y.shape
    for k in range(labels):
        alone = km.AdditiveSVC(model.feature_map_, C=2.0, **options).fit(X, Y[:, k])
        np.testing.assert_allclose(
            model.decision_function(X)[:, k], alone.decision_function(X), atol=2e-2
        )
        assert model.objective_[k] == pytest.approx(alone.objective_[0], rel=1e-5)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
    assert model.score(X, Y) == np.mean((model.predict(X) == Y).all(axis=1))


def test_probabilities_are_those_of_labels_by_themselves(seed):
    X, Y = labelled(seed)
    model = km.AdditiveSVC(km.SplineMap(6), loss="log_loss", tol=1e-9, random_state=0).fit(X, Y)
    p = model.predict_proba(X)
    assert p.shape == Y.shape
    assert np.ptp(p.sum(axis=1)) > 0.5  # they do not sum to one
    # The derivative by the intercept is zero at the minimum.
    np.testing.assert_allclose(p.mean(axis=0), Y.mean(axis=0), atol=1e-4)


def test_files_weights_and_sparse_indicators(seed, tmp_path):
    X, Y = labelled(seed)
    w = np.random.default_rng(seed).integers(0, 3, len(X))
    options = {"tol": 1e-6, "random_state": 0}
    feature_map = km.SplineMap(6).fit(X)
    weighted = km.AdditiveSVC(feature_map, **options).fit(X, sp.csr_array(Y), w)
    repeated = km.AdditiveSVC(feature_map, **options).fit(X.repeat(w, 0), Y.repeat(w, 0))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=2e-2
    )
    km.save(weighted, tmp_path / "model.kmap")
    again = km.load(tmp_path / "model.kmap")
    np.testing.assert_array_equal(again.predict(X), weighted.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), weighted.decision_function(X))
