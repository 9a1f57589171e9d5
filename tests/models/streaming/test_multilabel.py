"""Rows with any number of labels, and scores of many classes on one scale."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import RidgeClassifier

import kernelmaps as km
from kernelmaps.stats import load_stats


def labelled(seed, n=300, labels=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (X @ rng.normal(size=(5, labels)) + rng.normal(size=(n, labels)) > 0.5).astype(int)


@pytest.mark.parametrize("labels", [2, 4])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_it_is_scikit_learns_ridge_classifier(seed, labels, form):
    X, Y = labelled(seed, labels=labels)
    model = km.StreamingRidgeClassifier(0.7).fit(X, form(Y))
    exact = RidgeClassifier(0.7).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), exact.predict(X))
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-10)
    np.testing.assert_array_equal(model.classes_, np.arange(labels))
    assert model.score(X, Y) == exact.score(X, Y)


@pytest.mark.parametrize("validation", [3, "gcv", "loo"])
def test_alpha_is_chosen_as_for_numbers(seed, validation):
    X, Y = labelled(seed)
    alphas = [1e-3, 1.0, 1e3]
    model = km.StreamingRidgeClassifier(alphas, validation=validation).fit(X, Y)
    numbers = km.StreamingRidge(alphas, validation=validation).fit(X, Y.astype(float))
    np.testing.assert_allclose(
        model.cv_results_["mean_squared_error"], numbers.cv_results_["mean_squared_error"]
    )
    np.testing.assert_allclose(model.coef_, 2 * numbers.coef_, atol=1e-10)


def test_chunks_weights_merges_and_files_are_the_fit_to_all_rows(seed, tmp_path):
    X, Y = labelled(seed)
    w = np.random.default_rng(seed).integers(0, 4, 300)
    whole = km.StreamingRidgeClassifier(0.7).fit(X.repeat(w, 0), Y.repeat(w, 0))
    first = km.StreamingRidgeClassifier(0.7).partial_fit(X[:90], Y[:90], sample_weight=w[:90])
    first.partial_fit(X[90:150], Y[90:150], sample_weight=w[90:150])
    first.merge(km.StreamingRidgeClassifier(0.7).fit([(X[150:], Y[150:], w[150:])]))
    km.save(first, tmp_path / "model.kmap")
    again = km.load(tmp_path / "model.kmap")
    for model in (first, again):
        np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-8)
        np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    again.stats_.save(tmp_path / "stats.km")
    assert load_stats(tmp_path / "stats.km").multilabel


def test_the_lasso_takes_several_labels(seed):
    X, Y = labelled(seed)
    model = km.StreamingLassoClassifier(0.02).fit(X, Y)
    alone = km.StreamingLassoClassifier(0.02).fit(X, Y[:, 2])
    np.testing.assert_allclose(model.coef_[2], alone.coef_[0], atol=1e-6)
    assert model.predict(X).shape == Y.shape


def test_a_column_of_labels_is_a_vector(seed):
    X, Y = labelled(seed)
    exact = km.StreamingRidgeClassifier().fit(X, Y[:, 0])
    chunks = km.StreamingRidgeClassifier().fit([(X[:200], Y[:200, :1]), (X[200:], Y[200:, :1])])
    np.testing.assert_allclose(chunks.coef_, exact.coef_, atol=1e-10)
    assert chunks.predict(X).shape == (300,)
