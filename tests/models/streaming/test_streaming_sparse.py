"""Lasso, elastic net and group lasso from statistics: against their peers, and by their KKT."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import ElasticNet, Lasso

import kernelmaps as km
from kernelmaps.models.streaming.quadratic import _one_group, group_lasso_path
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


SKGLM = """
import sys
import numpy as np
from skglm.datafits import QuadraticGroup, QuadraticHessian
from skglm.penalties import L1, WeightedGroupL2
from skglm.solvers import AndersonCD, GroupBCD
from skglm.utils.data import grp_converter

with np.load(sys.argv[1]) as f:
    A, b, X, y = f["A"], f["b"], f["X"], f["y"]
solver = AndersonCD(tol=1e-10, fit_intercept=False, max_iter=200)
lasso = solver.solve(A, b, QuadraticHessian(), L1(0.1))[0]
indices, pointers = grp_converter(4, 12)
datafit = QuadraticGroup(pointers, indices)
penalty = WeightedGroupL2(0.1, np.full(3, 2.0), pointers, indices)
solver = GroupBCD(tol=1e-10, fit_intercept=False, max_iter=1000)
group = solver.solve(np.asfortranarray(X), y, datafit, penalty)[0]
np.savez(sys.argv[1], lasso=lasso, group=group)
"""


def test_skglm_agrees(seed, tmp_path):
    """Its Hessian datafit (lasso) and its group datafit: other code for the same minima.

    The Hessian datafit has no group gradient, so that groups are compared on centred rows. In a
    process of its own, uncompiled: compiling skglm's solvers takes longer than all our tests.
    """
    pytest.importorskip("skglm")
    X, Y = data(seed, 200)
    y = Y[:, 0]
    stats = Moments("real").update(X, y)
    problem = {"A": stats.scatter() / stats.weight, "b": -stats.cross()[0] / stats.weight}
    path = tmp_path / "problem.npz"
    np.savez(path, X=X - X.mean(axis=0), y=y - y.mean(), **problem)
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", SKGLM, path], check=True, env=environment)
    theirs = np.load(path)
    lasso = km.StreamingLasso(0.1, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(lasso.coef_, theirs["lasso"], atol=1e-5)
    group = km.StreamingGroupLasso(0.1, groups=GROUPS, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(group.coef_, theirs["group"], atol=1e-5)
