"""Lasso, elastic net and group lasso from statistics: against their peers, and by their KKT."""

from importlib.util import find_spec

import fresh
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import ElasticNet, Lasso

import kernelmaps as km
from kernelmaps.models.solvers.quadratic import _one_group, group_lasso_path
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
        (km.StreamingElasticNet(alpha, l1_ratio=0.3, **tight),
         ElasticNet(alpha, l1_ratio=0.3, **tight)),
    ]:  # fmt: skip
        ours.fit(iter(chunks(X, Y)))
        theirs.fit(X, Y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)


def test_weights_are_repetitions(seed):
    X, Y = data(seed, 100)
    w = np.random.default_rng(seed).integers(0, 3, 100)
    a = km.StreamingLasso(0.1, tol=1e-10).fit(X, Y, w)
    b = km.StreamingLasso(0.1, tol=1e-10).fit(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)


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


@pytest.mark.parametrize("alpha", [1e-3, 0.05, 0.5, 100.0])
def test_group_lasso_satisfies_its_optimality_conditions(seed, alpha):
    """0 ∈ ∂: gradient −α√|g| w_g/‖w_g‖ on active groups, at most α√|g| on the others."""
    X, Y = data(seed)
    model = km.StreamingGroupLasso(alpha, groups=GROUPS, tol=1e-12).fit(X, Y)
    gradient = -(Y - model.predict(X)).T @ (X - X.mean(axis=0)) / len(X)
    for w, g in zip(model.coef_, gradient):
        for group in range(3):
            at, bound = group == GROUPS, alpha * np.sqrt(4)
            if np.any(w[at]):
                np.testing.assert_allclose(
                    g[at], -bound * w[at] / np.linalg.norm(w[at]), atol=1e-8 * max(1, bound)
                )
            else:
                assert np.linalg.norm(g[at]) <= bound * (1 + 1e-9)
    if alpha == 100.0:
        assert not model.coef_.any()


def test_group_lasso_of_single_columns_is_the_lasso(seed):
    X, Y = data(seed)
    grouped = km.StreamingGroupLasso(0.2, groups=np.arange(12), tol=1e-12).fit(X, Y)
    exact = Lasso(0.2, tol=1e-14, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(grouped.coef_, exact.coef_, atol=1e-6)


def test_without_penalty_it_is_least_squares(seed):
    X, Y = data(seed)
    model = km.StreamingGroupLasso(0.0, groups=GROUPS, tol=1e-12, max_iter=10_000).fit(X, Y)
    exact = np.linalg.lstsq(X - X.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0].T
    np.testing.assert_allclose(model.coef_, exact, atol=1e-6)


def test_group_lasso_drops_the_kernel_that_says_nothing(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 4))
    y = np.sin(2 * X[:, 0]) + np.cos(X[:, 1]) + 0.1 * rng.normal(size=1000)
    kernels = [
        (slice(0, 2), RBFSampler(gamma=0.5, n_components=30, random_state=0)),
        (slice(2, 4), RBFSampler(gamma=0.5, n_components=30, random_state=1)),
    ]
    model = km.StreamingGroupLasso(0.02, kernels, n_components=15).fit(X, y)
    assert np.linalg.norm(model.coef_[:30]) > 0.1
    assert not model.coef_[30:].any()
    assert model.score(X, y) > 0.3


def test_one_group_in_the_eigenbasis(seed):
    rng = np.random.default_rng(seed)
    values, r = rng.uniform(0.1, 2, 5), rng.normal(size=5)
    w = _one_group(values, r, 0.3)
    np.testing.assert_allclose(values * w - r + 0.3 * w / np.linalg.norm(w), 0, atol=1e-12)
    assert not _one_group(values, r, np.linalg.norm(r) * 1.001).any()


def test_too_few_sweeps_warn(seed):
    X, Y = data(seed)
    stats = Moments("real").update(X, Y)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 sweeps"):
        group_lasso_path(stats, np.arange(12), [1e-4], GROUPS, max_iter=1, tol=1e-12)


# As with NUMBA_DISABLE_JIT=1, which numba reads when it is imported.
SKGLM = """
import sys, warnings
import numba
import numpy as np

numba.config.DISABLE_JIT = 1
warnings.simplefilter("ignore")
for name in [name for name in sys.modules if name.partition(".")[0] == "skglm"]:
    del sys.modules[name]
from skglm.datafits import QuadraticGroup, QuadraticHessian
from skglm.penalties import L1, WeightedGroupL2
from skglm.solvers import AndersonCD, GroupBCD
from skglm.utils.data import grp_converter

with np.load({path!r}) as f:
    A, b, X, y = f["A"], f["b"], f["X"], f["y"]
solver = AndersonCD(tol=1e-10, fit_intercept=False, max_iter=200)
lasso = solver.solve(A, b, QuadraticHessian(), L1(0.1))[0]
indices, pointers = grp_converter(4, 12)
datafit = QuadraticGroup(pointers, indices)
penalty = WeightedGroupL2(0.1, np.full(3, 2.0), pointers, indices)
solver = GroupBCD(tol=1e-10, fit_intercept=False, max_iter=1000)
group = solver.solve(np.asfortranarray(X), y, datafit, penalty)[0]
np.savez({path!r}, lasso=lasso, group=group)
"""


def test_skglm_agrees(seed, tmp_path):
    """Its Hessian datafit (lasso) and its group datafit: other code for the same minima.

    The Hessian datafit has no group gradient, so that groups are compared on centred rows. In a
    process of its own, uncompiled: compiling skglm's solvers takes longer than all our tests.
    """
    if find_spec("skglm") is None:  # importing it here would compile some of it
        pytest.skip("skglm is not installed")
    X, Y = data(seed, 200)
    y = Y[:, 0]
    stats = Moments("real").update(X, y)
    problem = {"A": stats.scatter() / stats.weight, "b": -stats.cross()[0] / stats.weight}
    path = tmp_path / "problem.npz"
    np.savez(path, X=X - X.mean(axis=0), y=y - y.mean(), **problem)
    done = fresh.run(SKGLM.format(path=str(path)))
    assert done.status == 0, done.stderr
    theirs = np.load(path)
    lasso = km.StreamingLasso(0.1, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(lasso.coef_, theirs["lasso"], atol=1e-5)
    group = km.StreamingGroupLasso(0.1, groups=GROUPS, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(group.coef_, theirs["group"], atol=1e-5)


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
def test_group_lasso_for_classes_satisfies_its_optimality_conditions(seed, multi_class):
    X, y = labels(seed)
    alpha = 0.05
    model = km.StreamingGroupLassoClassifier(
        alpha, groups=GROUPS, tol=1e-12, multi_class=multi_class
    ).fit(X, y)
    dropped = 0
    for k, (w, b) in enumerate(zip(model.coef_, model.intercept_)):
        pair = [("a", "b"), ("a", "c"), ("b", "c")][k]
        rows = np.isin(y, pair) if multi_class == "ovo" else np.ones(len(y), dtype=bool)
        target = signed(y[rows], pair[1] if multi_class == "ovo" else "abc"[k])
        gradient = -(target - X[rows] @ w - b) @ (X[rows] - X[rows].mean(axis=0)) / rows.sum()
        for group in range(3):
            at, bound = group == GROUPS, alpha * np.sqrt(4)
            if np.any(w[at]):
                np.testing.assert_allclose(
                    gradient[at], -bound * w[at] / np.linalg.norm(w[at]), atol=1e-8
                )
            else:
                dropped += 1
                assert np.linalg.norm(gradient[at]) <= bound * (1 + 1e-9)
    assert dropped


def test_group_lasso_for_classes_drops_the_kernel_that_says_nothing(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(900, 4))
    y = np.digitize(np.sin(2 * X[:, 0]) + np.cos(X[:, 1]), [0.0, 1.0])
    kernels = [
        (slice(0, 2), RBFSampler(gamma=0.5, n_components=30, random_state=0)),
        (slice(2, 4), RBFSampler(gamma=0.5, n_components=30, random_state=1)),
    ]
    model = km.StreamingGroupLassoClassifier(0.02, kernels, n_components=15).fit(X, y)
    assert not model.coef_[:, 30:].any()
    assert np.all(np.linalg.norm(model.coef_[:, :30], axis=1) > 0.1)
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize(
    "kind",
    [km.StreamingLassoClassifier, km.StreamingGroupLassoClassifier],
    ids=lambda k: k.__name__,
)
def test_sparse_classifiers_merge_and_go_through_files(seed, tmp_path, kind, multi_class):
    X, y = labels(seed)
    make = lambda: kind(0.02, multi_class=multi_class, tol=1e-10)  # noqa: E731
    whole = make().fit(X, y)
    first = make().partial_fit(X[:140], y[:140], classes=list("abc"))
    km.save(first, tmp_path / "first.kmap")
    loaded = km.load(tmp_path / "first.kmap")
    np.testing.assert_array_equal(loaded.predict(X), first.predict(X))
    loaded.merge(make().partial_fit(X[140:], y[140:], classes=list("abc")))
    np.testing.assert_allclose(loaded.coef_, whole.coef_, atol=1e-7)
    assert loaded.n_iter_ >= 1


def test_alpha_for_classes_is_chosen_on_folds(seed):
    X, y = labels(seed)
    alphas = [1.0, 0.05, 1e-3]
    model = km.StreamingLassoClassifier(alphas, validation=4).fit(X, y)
    errors = model.cv_results_["mean_squared_error"][0]
    assert model.alpha_ == alphas[int(np.argmin(errors))] != 1.0
    single = km.StreamingLassoClassifier(model.alpha_).fit(X, y)
    np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-5)


def test_sparse_classifiers_refuse_what_they_cannot_do(seed):
    X, y = labels(seed)
    with pytest.raises(ValueError, match="StreamingLassoClassifier: multi_class must be"):
        km.StreamingLassoClassifier(multi_class="all").fit(X, y)
    with pytest.raises(ValueError, match="StreamingLassoClassifier: validation must be a number"):
        km.StreamingLassoClassifier([0.1, 1.0], validation="gcv").fit(X, y)
    with pytest.raises(ValueError, match="StreamingGroupLassoClassifier: groups must have one"):
        km.StreamingGroupLassoClassifier(groups=[0, 1]).fit(X, y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        km.StreamingLassoClassifier().fit(X, np.zeros(len(X), dtype=int))
