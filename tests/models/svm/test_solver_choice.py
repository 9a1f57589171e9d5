"""Which solver a fit takes, and the scale of C."""

import warnings

import numpy as np
import pytest
from loss_of_targets import make_loss
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import kernelmaps as km
from kernelmaps.models.svm import training
from kernelmaps.models.svm.problem import (
    SCALED_CURVATURE_RATIO,
    curvature_ratio,
    mean_square,
)


def table(seed, n=300):
    """Two columns of numbers, one constant and two of two values."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((n, 2)), np.full(n, 0.3), rng.integers(0, 2, (n, 2))])
    X[:, 4] = np.where(X[:, 4] > 0, 7.0, -2.0)
    score = np.sin(5 * X[:, 0]) + X[:, 3] - 0.1 * X[:, 4] + 0.3 * rng.normal(size=n)
    return X, score


@pytest.mark.parametrize(
    ("solver", "order"), [("primal", 1), ("dual", 1), ("auto", 1), ("auto", 0)]
)
def test_no_other_intercept_is_better(seed, solver, order):
    """The intercept is that of ψ, whatever columns a solver works with."""
    X, score = table(seed)
    rng = np.random.default_rng(seed)
    X = np.hstack([X, rng.integers(0, 2, (len(X), 40))])
    score = score + X[:, 5:].sum(axis=1) / 4
    y = np.where(score > np.median(score), 1, -1)
    model = km.AdditiveSVC(km.SplineMap(order=order), 0.3, solver=solver, tol=1e-6).fit(X, y)
    residual = np.maximum(0, 1 - y * model.decision_function(X))
    # A gap of 1e-6 P moves scores by about a thousandth of their size.
    assert abs(np.sum(y * residual)) < 1e-2 * np.sum(residual)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "log_loss"])
@pytest.mark.parametrize("C", [1e-3, 1e3])
def test_newton_steps_are_for_few_weights_and_kinks_for_large_C(seed, monkeypatch, loss, C):
    X, score = table(seed)
    expected = "dual" if loss == "hinge" and C < 1 else "primal"
    assert km.AdditiveSVC(C=C, loss=loss).fit(X, score > 0).solver_ == expected
    monkeypatch.setattr(training, "MOST_WEIGHTS", 20)
    warnings.simplefilter("ignore", ConvergenceWarning)
    few = {"C": C, "loss": loss, "max_iter": 5}
    assert km.AdditiveSVC(**few).fit(X[:, :2], score > 0).solver_ == expected
    assert km.AdditiveSVC(**few).fit(X[:, :3], score > 0).solver_ == "dual"


def test_the_mean_square_is_the_trace_of_the_covariance(seed):
    X, _ = table(seed)
    fitted, weight = km.SplineMap().fit(X), np.random.default_rng(seed).integers(0, 3, len(X))
    repeated = fitted.transform(np.repeat(X, weight, axis=0))
    trace = np.trace(np.cov(repeated.T, bias=True))
    assert mean_square(fitted.spec_, X, weight.astype(float)) == pytest.approx(trace)
    signed = km.HomogeneousMap(n_components=3).fit(X + 2)
    rows = np.where(X < 0.3, 0, X + 2)
    dense, csr = (
        mean_square(signed.spec_, kind(rows), np.ones(len(X)))
        for kind in (np.asarray, sparse.csr_matrix)
    )
    assert dense == pytest.approx(csr)


def test_the_curvature_ratio_is_proportional_to_cost_and_curvature(seed):
    X, score = table(seed)
    y, cost = np.sign(score), np.ones(len(X))
    kappa = {
        name: curvature_ratio(make_loss(name, y), y, cost, 2.0)
        for name in ("squared_hinge", "log_loss", "squared_error", "hinge")
    }
    assert kappa == {"squared_hinge": 4.0, "log_loss": 0.5, "squared_error": 4.0, "hinge": 2.0}
    assert curvature_ratio(make_loss("hinge", y), y, 10 * cost, 2.0) == pytest.approx(20.0)
    # Targets in other units, with costs to match, are the same problem.
    units = [
        curvature_ratio(make_loss("epsilon_insensitive", u * score), u * score, u * cost, 2.0)
        for u in (1.0, 1000.0)
    ]
    assert units[0] == pytest.approx(units[1])


@pytest.mark.parametrize("feature_map", [km.SplineMap(), km.SplineMap(8, order=2)])
def test_the_scale_of_C_is_that_of_the_map(seed, feature_map):
    X, score = table(seed)
    model = km.AdditiveSVC(feature_map).fit(X, score > 0)
    trace = np.trace(np.cov(model.feature_map_.transform(X).T, bias=True))
    assert pytest.approx(SCALED_CURVATURE_RATIO / (2 * trace)) == model.C_
    smoother = km.AdditiveSVC(feature_map, loss="log_loss").fit(X, score > 0)
    assert pytest.approx(8 * model.C_) == smoother.C_


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "log_loss"])
def test_a_table_of_constants_gives_the_best_intercept(loss):
    X, y = np.full((400, 2), [1.0, 0.3]), np.arange(400) % 10 < 7
    model = km.AdditiveSVC(loss=loss, solver="primal", tol=1e-6).fit(X, y)
    assert model.C_ == 1.0
    best = {"squared_hinge": 0.4, "hinge": 1.0, "log_loss": np.log(7 / 3)}[loss]
    # A gap of 1e-6 P moves a mean of 400 rows by about a thousandth; that of the hinge, by less.
    np.testing.assert_allclose(model.decision_function(X), best, atol=5e-3)


def test_scaled_C_in_chunks_is_that_of_all_rows(seed):
    X, score = table(seed)
    y = score > 0
    streamed = km.AdditiveSVC(km.SplineMap(domain=(-2, 7))).fit(lambda: iter([(X, y)]))
    assert streamed.C_ == km.AdditiveSVC(km.SplineMap(domain=(-2, 7))).fit(X, y).C_
