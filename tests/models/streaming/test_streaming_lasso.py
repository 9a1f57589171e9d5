"""Lasso, elastic net and group lasso from statistics: against their peers, and their KKT."""

from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso

import kernelmaps as km
from kernelmaps.models.solvers.lasso import (
    lasso_path,
)
from kernelmaps.stats import Moments


def data(seed, n=400, d=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.1 * rng.normal(size=(d, d))) + 5
    Y = X[:, :4] @ rng.normal(size=(4, 2)) + rng.normal(size=(n, 2))
    return X, Y


def chunks(X, Y):
    return [(X[a : a + 90], Y[a : a + 90]) for a in range(0, len(X), 90)]


@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_lasso_and_elastic_net_are_those_of_scikit_learn(seed, alpha):
    X, Y = data(seed)
    tight = {"tol": 1e-12, "max_iter": 100_000}
    for ours, theirs in [
        (km.StreamingLasso(alpha, **tight), Lasso(alpha, **tight)),
        (km.StreamingLasso(alpha, l1_ratio=0.3, **tight), ElasticNet(alpha, l1_ratio=0.3, **tight)),
    ]:  # fmt: skip
        ours.fit(iter(chunks(X, Y)))
        theirs.fit(X, Y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)


def test_deficient_statistics(seed):
    X, Y = data(seed)
    twice = np.hstack([X, X])
    once = Lasso(0.1, tol=1e-12, max_iter=100_000).fit(X, Y)
    model = km.StreamingLasso(0.1, tol=1e-10).fit(twice, Y)
    np.testing.assert_allclose(model.coef_[:, :12] + model.coef_[:, 12:], once.coef_, atol=1e-5)


def test_components_are_the_sparse_ones_with_pca(seed):
    X, Y = data(seed)
    model = km.StreamingLasso(1.0, None, n_components=6, tol=1e-12).fit(X, Y)
    pca = km.StreamingPCA(6).fit(X)
    exact = Lasso(1.0, tol=1e-12).fit(pca.transform(X), Y)
    assert np.any(exact.coef_ == 0)
    np.testing.assert_allclose(model.coef_, exact.coef_ @ pca.components_, atol=1e-6)


def test_alpha_is_chosen_on_folds(seed):
    X, Y = data(seed)
    model = km.StreamingLasso([10.0, 0.05, 1e-3], validation=4).fit(iter(chunks(X, Y)))
    errors = model.cv_results_["mean_squared_error"][0]
    assert errors[0] > 2 * errors.min()
    assert model.alpha_ == [10.0, 0.05, 1e-3][int(np.argmin(errors))]


GROUPS = np.repeat([0, 1, 2], 4)
PRECISE = {"tol": 1e-14, "max_iter": 100_000}


def check_optimal(w, gradient, alpha, ratio, atol):
    """0 ∈ gradient + α ∂Ω(w): the subgradients of Simon et al. (2013), equations (3) and (4).

    Columns with a weight: the gradient is −α(ρ sign(w_j) + (1 − ρ)√p_g w_j/‖w_g‖). Others of a
    group with weights: within αρ. A group without any: ‖S(gradient, αρ)‖ ≤ α(1 − ρ)√p_g.
    """
    for group in np.unique(GROUPS):
        at = group == GROUPS
        v, g, bound = w[at], gradient[at], alpha * (1 - ratio) * np.sqrt(at.sum())
        outside = np.maximum(np.abs(g) - alpha * ratio, 0)
        if not v.any():
            assert np.linalg.norm(outside) <= bound + atol
            continue
        smooth = g + bound * v / np.linalg.norm(v)
        np.testing.assert_allclose(smooth[v != 0], -alpha * ratio * np.sign(v[v != 0]), atol=atol)
        assert np.all(np.abs(smooth[v == 0]) <= alpha * ratio + atol)


def gradient_error(X, y, tol):
    """Largest error of the gradient at a point whose objective is `tol`·variance too large.

    With curvature at most L, ‖∇F(w) − ∇F(w*)‖² ≤ 2L (objective(w) − minimum).
    """
    curvature = np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1]
    return np.sqrt(2 * curvature * tol * np.var(y, axis=0).max())


@pytest.mark.parametrize("ratio", [0, 0.3, 0.9])
@pytest.mark.parametrize("alpha", [1e-3, 0.05, 0.5, 100.0])
def test_group_penalties_satisfy_their_optimality_conditions(seed, alpha, ratio):
    X, Y = data(seed)
    model = km.StreamingLasso(alpha, l1_ratio=ratio, groups=GROUPS, **PRECISE).fit(X, Y)
    gradient = -(Y - model.predict(X)).T @ (X - X.mean(axis=0)) / len(X)
    for w, g in zip(model.coef_, gradient):
        check_optimal(w, g, alpha, ratio, gradient_error(X, Y, PRECISE["tol"]))
    assert model.coef_.any() == (alpha < 100)


def test_sparse_group_lasso_drops_groups_and_columns_of_the_others(seed):
    X, Y = data(seed)
    one = Y[:, 0] + 3 * X[:, 0]  # of the first group, the first column most of all
    model = km.StreamingLasso(0.8, l1_ratio=0.8, groups=GROUPS, **PRECISE).fit(X, one)
    counts = [np.count_nonzero(model.coef_[group == GROUPS]) for group in range(3)]
    assert 0 < counts[0] < 4
    assert 0 in counts[1:]


def test_l1_ratio_1_is_the_lasso_with_a_warning(seed):
    X, Y = data(seed)
    with pytest.warns(UserWarning, match="with l1_ratio=1 groups have no effect"):
        model = km.StreamingLasso(0.2, groups=GROUPS).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, km.StreamingLasso(0.2).fit(X, Y).coef_)


@pytest.mark.parametrize("ratio", [0, 0.4])
def test_groups_of_single_columns_are_the_lasso(seed, ratio):
    X, Y = data(seed)
    model = km.StreamingLasso(0.2, l1_ratio=ratio, groups=np.arange(12), **PRECISE).fit(X, Y)
    exact = Lasso(0.2, tol=1e-14, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-6)


def test_names_and_order_of_groups_do_not_matter(seed):
    X, Y = data(seed)
    order = np.random.default_rng(seed).permutation(12)
    settings = {"l1_ratio": 0.3, **PRECISE}
    a = km.StreamingLasso(0.2, groups=GROUPS, **settings).fit(X, Y)
    b = km.StreamingLasso(0.2, groups=7 - 3 * GROUPS[order], **settings).fit(X[:, order], Y)
    np.testing.assert_allclose(b.coef_, a.coef_[:, order], atol=1e-6)


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_without_penalty_it_is_least_squares(seed, groups):
    X, Y = data(seed)
    model = km.StreamingLasso(0.0, l1_ratio=0.5, groups=groups).fit(X, Y)
    exact = np.linalg.lstsq(X - X.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0].T
    np.testing.assert_allclose(model.coef_, exact, atol=1e-6)


def test_too_few_sweeps_warn(seed):
    X, Y = data(seed)
    stats = Moments("real").update(X, Y)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 sweeps"):
        lasso_path(stats, np.arange(12), np.array([1e-4]), 0.0, GROUPS, max_iter=1, tol=1e-12)


def test_equal_rows_have_no_weights():
    model = km.StreamingLasso(0.1, l1_ratio=0, groups=[0, 1]).fit(np.ones((5, 2)), np.arange(5.0))
    np.testing.assert_array_equal(model.coef_, 0)
    assert model.intercept_ == 2


# As with NUMBA_DISABLE_JIT=1, which numba reads when it is imported.
# ---- classes ------------------------------------------------------------------------------------


def labels(seed, n=300):
    """Three unbalanced classes that depend on the first four of twelve columns."""
    X, Y = data(seed, n)
    return X, np.array(list("abc"))[np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.5, 0.85]))]


def signed(y, label):
    return np.where(y == label, 1.0, -1.0)


TIGHT = {"tol": 1e-12, "max_iter": 100_000}


def test_lasso_for_classes_is_the_lasso_of_signs(seed):
    X, y = labels(seed)
    model = km.StreamingLassoClassifier(0.1, **TIGHT).fit(iter(chunks(X, y)))
    each = [Lasso(0.1, **TIGHT).fit(X, signed(y, label)) for label in "abc"]
    assert any(np.any(lasso.coef_ == 0) for lasso in each)
    np.testing.assert_allclose(model.coef_, [lasso.coef_ for lasso in each], atol=1e-6)
    np.testing.assert_allclose(model.intercept_, [lasso.intercept_ for lasso in each], atol=1e-5)
    scores = np.column_stack([lasso.predict(X) for lasso in each])
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(scores, axis=1)])


def test_two_classes_have_one_row_of_weights(seed):
    X, y = labels(seed)
    y = np.where(y == "a", "a", "b")
    model = km.StreamingLassoClassifier(0.05, **TIGHT).fit(X, y)
    exact = Lasso(0.05, **TIGHT).fit(X, signed(y, "b"))
    assert model.coef_.shape == (1, 12)
    np.testing.assert_allclose(model.coef_[0], exact.coef_, atol=1e-6)


def test_lasso_for_classes_one_against_one(seed):
    X, y = labels(seed)
    model = km.StreamingLassoClassifier(0.1, multi_class="ovo", **TIGHT).fit(X, y)
    for k, (a, b) in enumerate([("a", "b"), ("a", "c"), ("b", "c")]):
        rows = np.isin(y, [a, b])
        exact = Lasso(0.1, **TIGHT).fit(X[rows], signed(y[rows], b))
        np.testing.assert_allclose(model.coef_[k], exact.coef_, atol=1e-6)
        np.testing.assert_allclose(model.intercept_[k], exact.intercept_, atol=1e-5)


def test_the_largest_useful_alpha_is_the_documented_one(seed):
    X, y = labels(seed)
    largest = max(np.abs((X - X.mean(axis=0)).T @ signed(y, label)).max() for label in "abc")
    largest /= len(X)
    model = km.StreamingLassoClassifier(largest * (1 + 1e-9)).fit(X, y)
    assert not model.coef_.any()
    assert model.refit(alpha=largest * 0.99).coef_.any()


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("settings", [{}, {"l1_ratio": 0.4, "groups": GROUPS}])
def test_sparse_classifiers_merge_and_go_through_files(seed, tmp_path, settings, multi_class):
    X, y = labels(seed)
    make = partial(
        km.StreamingLassoClassifier, 0.02, multi_class=multi_class, tol=1e-10, **settings
    )
    whole = make().fit(X, y)
    first = make().partial_fit(X[:140], y[:140], classes=list("abc"))
    km.save(first, tmp_path / "first.kmap")
    loaded = km.load(tmp_path / "first.kmap")
    np.testing.assert_array_equal(loaded.predict(X), first.predict(X))
    loaded.merge(make().partial_fit(X[140:], y[140:], classes=list("abc")))
    np.testing.assert_allclose(loaded.coef_, whole.coef_, atol=1e-7)
    assert loaded.n_iter_ >= 1
