"""Newton's method ends where coordinate descent does, and where that one does not get to."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

import kernelmaps as km
from kernelmaps.models.solvers import primal as newton


def rows(seed, n=150):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    f = np.sin(5 * X[:, 0]) + X[:, 1] - 0.5
    return X, f + 0.3 * rng.normal(size=n)


def models(loss, **options):
    classes = loss in ("squared_hinge", "hinge", "log_loss")
    kind = km.AdditiveSVC if classes else km.AdditiveSVR
    pair = [kind(loss=loss, solver=s, random_state=0, **options) for s in ("dual", "primal")]
    return classes, pair


LOSSES = ["squared_hinge", "hinge", "log_loss", "squared_error", "epsilon_insensitive"]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_both_solvers_have_one_minimum(seed, loss, fit_intercept):
    # Coordinate descent takes very long to the last digits of losses with corners.
    corners = loss in ("hinge", "epsilon_insensitive")
    X, y = rows(seed, 80 if corners else 150)
    tol = 1e-4 if corners else 5e-7
    options = {"fit_intercept": fit_intercept, "tol": tol, "max_iter": 20000}
    classes, (dual, primal) = models(loss, feature_map=km.SplineMap(), **options)
    y = y > 0 if classes else y
    dual.fit(X, y)
    primal.fit(X, y)
    assert (dual.solver_, primal.solver_) == ("dual", "primal")
    np.testing.assert_allclose(primal.objective_, dual.objective_, rtol=2 * tol)
    for model in (dual, primal):
        assert (np.abs(model.duality_gap_) <= tol * model.objective_).all()
    score = "decision_function" if classes else "predict"
    np.testing.assert_allclose(
        getattr(primal, score)(X), getattr(dual, score)(X), atol=np.sqrt(tol) * 10
    )
    assert np.abs(primal.dual_coef_.sum()) < 1e-9 or not fit_intercept


def ridge(Z, y, C):
    """Scores of the minimiser of ½|w|² + C Σ (y − Zw − b)², and that minimum; w is Zᵀa, Σa = 0."""
    gram, one = Z @ Z.T, np.ones((len(Z), 1))
    system = np.block([[gram + np.eye(len(Z)) / (2 * C), one], [one.T, np.zeros((1, 1))]])
    a, b = np.split(np.linalg.solve(system, np.append(y, 0)), [len(Z)])
    return gram @ a + b, 0.5 * a @ gram @ a + C * np.sum((y - gram @ a - b) ** 2)


@pytest.mark.parametrize(
    "feature_map",
    [
        km.SplineMap(8, order=2),
        km.HomogeneousMap(n_components=3),
        km.TrigonometricMap(2),
        km.HermiteMap(3),
    ],
)
@pytest.mark.usefixtures("readable")
def test_weights_are_those_of_the_map(seed, feature_map):
    """Scores are those of P's own minimiser, in the columns of the map."""
    X, y = rows(seed)
    model = km.AdditiveSVR(feature_map, C=10.0, solver="primal", tol=1e-9).fit(X, y)
    expected, _ = ridge(model.feature_map_.transform(X), y, 10.0)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "log_loss"])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_every_cost_has_its_certificate(loss, C):
    """Warnings are errors here: a gap that is not reached fails."""
    X, y = load_breast_cancer(return_X_y=True)
    for order in (1, 2):
        model = km.AdditiveSVC(km.SplineMap(order=order), C=C, loss=loss)
        model.fit(X[:300, :8], y[:300])
        assert (np.abs(model.duality_gap_) <= 1e-3 * model.objective_).all()


def test_a_large_cost_is_approached_through_smaller_ones(monkeypatch):
    """From zero at once the same minimum takes more steps (on spambase, more than are allowed)."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((800, 15)) < 0.6, 0, rng.gamma(0.4, 1, (800, 15)) ** 2)
    y = np.log1p(X) @ rng.normal(size=15) + 0.5 * rng.normal(size=800) > 0
    options = {"C": 1e6, "solver": "primal"}
    model = km.AdditiveSVC(km.SplineMap(16, order=2), **options).fit(X, y)
    monkeypatch.setattr(newton, "_COST_STEP", np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it may take more than are allowed
        direct = km.AdditiveSVC(km.SplineMap(16, order=2), **options).fit(X, y)
    assert model.objective_[0] <= 1.001 * direct.objective_[0]
    assert model.n_iter_ < direct.n_iter_


def test_any_number_of_columns_and_codes_have_their_minimum(seed):
    """Hessians of many columns are not formed; codes are rows of a map, too."""
    rng = np.random.default_rng(seed)
    X = rng.random((40, 400))
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    anchors = km.AnchorMap("chi2", 10, rank=1).fit(X)
    for feature_map, rows in ((km.SplineMap(10), X), (anchors, anchors.encode(X))):
        model = km.AdditiveSVR(feature_map, C=10.0, tol=1e-6, solver="primal").fit(rows, y)
        assert model.solver_ == "primal"
        _, minimum = ridge(model.feature_map_.transform(X), y, 10.0)
        np.testing.assert_allclose(model.objective_, minimum, rtol=1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 7.3, 900.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_targets_within_epsilon_cost_nothing(seed, epsilon, fit_intercept):
    """The minimum is zero: no objective is below it, and nothing is warned of."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((60, 2)), 0.99 * epsilon * rng.uniform(-1, 1, 60)
    options = {"solver": "primal", "random_state": 0, "fit_intercept": fit_intercept, "C": 100.0}
    model = km.AdditiveSVR(loss="epsilon_insensitive", epsilon=epsilon, **options).fit(X, y)
    assert 0 <= model.objective_[0] <= 1e-9 * epsilon
    assert model.n_iter_ < 50


def test_duals_of_rows_beyond_the_margin_are_zero(seed):
    X, y = rows(seed)
    options = {"loss": "hinge", "tol": 1e-5, "random_state": 0}
    model = km.AdditiveSVC(solver="primal", **options).fit(X, y > 0)
    margin = np.where(y > 0, 1, -1) * model.decision_function(X)
    assert (margin > 1.01).sum() > 10
    assert not model.dual_coef_[margin > 1.01].any()


def test_values_are_located_in_double_precision(seed):
    """In single precision, 10⁶ + x would be one of 16 numbers."""
    X, y = rows(seed)
    X += 1e6
    options = {"feature_map": km.SplineMap(), "C": 1.0, "solver": "primal"}
    model = km.AdditiveSVC(**options).fit(X, y > 0)
    exact = km.AdditiveSVC(tol=1e-7, **options).fit(X, y > 0)
    np.testing.assert_allclose(model.objective_, exact.objective_, rtol=model.tol)
