"""Additive SVMs against references: primal solutions by L-BFGS, stored features, laws."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import kernelmaps as km
from kernelmaps.exceptions import SuspectColumnWarning
from kernelmaps.models.inputs import coded_labels
from kernelmaps.models.rows.map_basis import make_basis
from kernelmaps.models.rows.map_tables import make_tables, rows_of
from kernelmaps.models.solvers import dual
from kernelmaps.models.solvers._dual_loops import SVMProblem
from kernelmaps.models.svm.problem import Options

ONE = {"n_jobs": 1}


def data(seed, n=150, d=4):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    score = np.sin(7 * X[:, 0]) + 2 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    return X, score


def labels(score, classes=2):
    return np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def objective(loss, epsilon):
    """Loss and derivative in f, for signs or targets y."""

    def value(y, f):
        if loss == "squared_hinge":
            slack = np.maximum(1 - y * f, 0)
            return slack**2, -2 * slack * y
        if loss == "log_loss":
            return np.logaddexp(0, -y * f), -y / (1 + np.exp(y * f))
        if loss == "squared_error":
            return (y - f) ** 2, 2 * (f - y)

        # Kinks rounded off over a width of 1e-4: off by less than that per example.
        def soft(t):
            return 1e-4 * np.logaddexp(0, t / 1e-4), 1 / (1 + np.exp(-t / 1e-4))

        if loss == "hinge":
            v, g = soft(1 - y * f)
            return v, -y * g
        (v1, g1), (v2, g2) = soft(f - y - epsilon), soft(y - f - epsilon)
        return v1 + v2, g1 - g2

    return value


def primal_minimum(Z, y, C, loss, epsilon=0.1):
    """P at its minimum over weights and intercept."""
    value = objective(loss, epsilon)

    def cost(theta):
        v, g = value(y, Z @ theta[:-1] + theta[-1])
        gradient = np.append(theta[:-1] + Z.T @ (C * g), (C * g).sum())
        return 0.5 * theta[:-1] @ theta[:-1] + (C * v).sum(), gradient

    start = np.zeros(Z.shape[1] + 1)
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-14, "gtol": 1e-9}
    with np.errstate(over="ignore"):
        return minimize(cost, start, jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "log_loss"])
def test_classifier_reaches_the_primal_minimum(loss, seed):
    X, score = data(seed)
    y = labels(score)
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(y))
    model = km.AdditiveSVC(C=0.7, loss=loss, tol=1e-5, max_iter=20000, **ONE)
    model.fit(X, y, sample_weight=weight)
    Z = model.feature_map_.transform(X)
    least = primal_minimum(Z, 2.0 * y - 1, 0.7 * weight, loss)
    assert model.objective_[0] == pytest.approx(least, rel=2e-4 if loss == "hinge" else 3e-5)
    assert -1e-12 <= model.duality_gap_[0] <= 1e-5 * model.objective_[0]
    assert abs(model.dual_coef_.sum()) < 1e-9  # the intercept is free


@pytest.mark.parametrize("loss", ["squared_error", "epsilon_insensitive"])
def test_regressor_reaches_the_primal_minimum(loss, seed):
    X, y = data(seed)
    model = km.AdditiveSVR(C=0.7, loss=loss, epsilon=0.1, tol=1e-5, max_iter=20000, **ONE).fit(X, y)
    least = primal_minimum(model.feature_map_.transform(X), y, 0.7, loss)
    rel = 2e-3 if loss == "epsilon_insensitive" else 3e-5  # the rounded kinks
    assert model.objective_[0] == pytest.approx(least, rel=rel)


def spread(X):
    return (X * 255).astype(np.uint8)


@pytest.mark.parametrize(
    ("feature_map", "convert"),
    [
        (km.SplineMap(order=0), spread),
        (km.SplineMap(order=2, degree=3), None),
        (km.AnchorMap("chi2", 12, anchors="kmeans", n_neighbors=2), None),
        (km.HomogeneousMap("chi2", 3), sparse.csr_matrix),
        (km.AnchorMap("intersection", n_anchors=12, rank=1), None),
    ],
    ids=["bytes", "second-order", "edges", "octaves-csr", "anchors"],
)
def test_weights_and_scores_are_those_of_stored_features(feature_map, convert, seed):
    """w = Σ α_i ψ(x_i), f = Ψw + b, and the certified objective, all recomputed in float64."""
    X, score = data(seed)
    y = labels(score)
    X = np.where(X < 0.3, 0, X)
    X = X if convert is None else convert(X)
    model = km.AdditiveSVC(feature_map, solver="dual", tol=1e-3, max_iter=5000, **ONE).fit(X, y)
    Z = model.feature_map_.transform(X)
    Z = (Z.toarray() if sparse.issparse(Z) else Z).astype(np.float64)
    w = Z.T @ model.dual_coef_[:, 0]
    f = Z @ w + model.predictor_.offset[0]
    single = model.predictor_.precision(X) is np.float32
    atol = 1e-3 if single else 1e-8
    np.testing.assert_allclose(model.decision_function(X), f, atol=atol)
    slack = np.maximum(1 - (2 * y - 1) * f, 0)
    assert model.objective_[0] == pytest.approx(0.5 * w @ w + model.C_ * slack @ slack, rel=1e-4)
    terms = model.eval_terms(X).sum(axis=1) + model.intercept_
    np.testing.assert_allclose(terms, model.decision_function(X), atol=1e-4 if single else 1e-9)


def test_classes_together_are_classes_apart(seed, monkeypatch):
    """Lanes are independent problems: each one-vs-rest column equals a binary fit."""
    X, score = data(seed)
    y = labels(score, 3)
    settings = {"tol": 1e-6, "max_iter": 20000, "random_state": 0, "solver": "dual"}
    together = km.AdditiveSVC(**settings, **ONE).fit(X, y)
    assert together.decision_function(X).shape == (len(y), 3)
    for k in range(3):
        apart = km.AdditiveSVC(tol=1e-6, max_iter=20000, **ONE).fit(X, y == k)
        assert together.objective_[k] == pytest.approx(apart.objective_[0], rel=3e-6)
    few = km.AdditiveSVC(**settings, n_jobs=2).fit(X, y)  # values: one group of classes
    np.testing.assert_array_equal(few.decision_function(X), together.decision_function(X))
    monkeypatch.setattr("kernelmaps.models.svm.training.SMALL", 0)
    monkeypatch.setattr("kernelmaps._util.threads.available_threads", lambda: 2)
    threads = km.AdditiveSVC(**settings, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(threads.objective_, together.objective_, rtol=3e-6)
    assert (threads.decision_function(X) != few.decision_function(X)).any()  # two groups
    terms = together.eval_terms(X)
    assert terms.shape == (len(y), 4, 3)
    np.testing.assert_allclose(
        terms.sum(axis=1) + together.intercept_, together.decision_function(X), atol=1e-9
    )


def test_convergence_is_certified_or_warned_about(seed):
    X, score = data(seed)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 epochs with a relative duality gap"):
        km.AdditiveSVC(C=100, max_iter=2, solver="dual", **ONE).fit(X, labels(score))


def test_many_classes_are_pointed_out(recwarn):
    coded_labels(np.repeat(np.arange(1000), 2))
    assert not recwarn.list
    with pytest.warns(SuspectColumnWarning, match="1001 classes.* 2 minutes.* use a regressor"):
        coded_labels(np.repeat(np.arange(1001), 3))
    with pytest.warns(SuspectColumnWarning, match="for 20000 rows about 100 minutes or more"):
        coded_labels(np.repeat(np.arange(10_000), 2))


def test_codes_of_anchors(seed):
    X, score = data(seed)
    y = labels(score)
    anchors = km.AnchorMap("intersection", n_anchors=12, rank=1).fit(X)
    coded = km.AdditiveSVC(anchors, tol=1e-4, **ONE).fit(anchors.encode(X), y)
    values = km.AdditiveSVC(anchors, tol=1e-4, **ONE).fit(X, y)
    assert coded.objective_[0] == pytest.approx(values.objective_[0], rel=3e-4)
    np.testing.assert_array_equal(coded.predict(X), coded.predict(anchors.encode(X)))


# ---- the edges --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "log_loss"])
@pytest.mark.parametrize("C", [1e-8, 1e-5, 1e-3])
def test_small_costs_leave_the_intercept(loss, C, seed):
    """With w = 0 the intercept alone minimises the loss: log-odds, or a weighted mean of ±1."""
    X, score = data(seed)
    y = (score > np.quantile(score, 0.3)).astype(int)
    model = km.AdditiveSVC(loss=loss, C=C, random_state=0).fit(X, y)
    assert model.n_iter_ < 60
    assert model.duality_gap_[0] <= 1e-3 * model.objective_[0]
    if C == 1e-8:
        share = y.mean()
        alone = {
            "log_loss": np.log(share / (1 - share)),
            "squared_hinge": 2 * share - 1,
            "hinge": 1.0,
        }
        assert model.intercept_[0] == pytest.approx(alone[loss], abs=0.05)


def test_sparse_rows_of_a_model_whose_map_does_not_vanish(seed):
    X, score = data(seed)
    X = np.where(X < 0.3, 0, X)
    model = km.AdditiveSVC().fit(X, score > np.median(score))
    rows = sparse.csr_matrix(X)
    np.testing.assert_array_equal(model.decision_function(rows), model.decision_function(X))
    np.testing.assert_array_equal(model.eval_terms(rows), model.eval_terms(X))


def test_single_precision_rows_far_from_zero(seed):
    X = 1.7e9 + 1000 * np.random.default_rng(seed).random((300, 1))
    room = km.SplineMap(domain=(1.7e9 - 200, 1.7e9 + 1200))  # for rounded rows
    model = km.AdditiveSVC(room).fit(X, X[:, 0] > 1.7e9 + 500)
    rows = X.astype(np.float32)  # in steps of 128: there are about nine different ones
    found = model.decision_function(rows)  # used to take minutes
    expected = model.decision_function(rows.astype(np.float64))
    assert np.corrcoef(found, expected)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("feature_map", "constant"),
    [
        *((km.SplineMap(), constant) for constant in (0.0, 1e17, -1e17, 1e140)),
        (km.TrigonometricMap(2), -1e17),
        (km.HermiteMap(), 1e140),
    ],
)
def test_large_constants_and_nearly_constant_columns(feature_map, constant, seed, request):
    X, score = data(seed)
    y = score > np.median(score)
    solver = "auto"
    if feature_map.get_params() != km.SplineMap().get_params():  # no loops of training for each map
        solver = "primal"
        request.getfixturevalue("readable")
    expected = km.AdditiveSVC(feature_map, solver=solver).fit(X, y).score(X, y)
    nearly = np.where(np.arange(len(X)) % 2, constant, np.nextafter(constant, np.inf))
    for own in (np.full(len(X), constant), nearly):
        model = km.AdditiveSVC(feature_map, solver=solver)
        model.fit(np.column_stack([X, own]), y)
        assert abs(model.score(np.column_stack([X, own]), y) - expected) < 0.02
        assert len(model.shape_functions_) == X.shape[1] + 1


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "log_loss"])
@pytest.mark.parametrize("C", [1e-30, 1e30])
def test_gap_at_the_ends_of_the_range_of_C_is_a_gap(loss, C):
    X, score = data(0, 120, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = km.AdditiveSVC(C=C, loss=loss, max_iter=20, **ONE).fit(X, labels(score))
    relative = float(model.duality_gap_[0] / model.objective_[0])
    assert -1e-12 <= relative <= 2
    if C < 1:
        assert relative <= model.tol


def descent_on_counts(C):
    """Coordinate descent before its first epoch, and ψ of its 2000 rows."""
    rng = np.random.default_rng(2)
    X = rng.poisson(0.3, size=(2000, 20)).astype(np.float64)
    y = (X[:, :3].sum(axis=1) + rng.standard_normal(2000) > 2.5).astype(float)
    fitted = km.SplineMap().fit(X)
    basis = make_basis(fitted.spec_, X, np.dtype(np.float64))
    tables = make_tables(basis, X, np.float64, 1)
    problem = SVMProblem(0, True, 0.0, y, np.ones(1), np.full(len(y), C))
    settings = Options("AdditiveSVC", "squared_hinge", 0.0, True, 1e-3, 100, "dual", 0, 1, None)
    examples, alpha = np.arange(len(y), dtype=np.int32), np.zeros((len(y), 1))
    state = dual.CoordinateDescent(tables, rows_of(X), problem, examples, settings, alpha, None)
    return state, fitted.transform(X)


@pytest.mark.parametrize("C", [0.001, 0.01, 0.1])
def test_certificates_leave_the_intercept_at_its_place(C):
    """An epoch and a certificate in turns converge; the intercept does not swing around its place.

    What the square of the constraint adds to the bias has to go when the sum of alpha becomes zero.
    """
    state, _ = descent_on_counts(C)
    gaps, intercepts = [], []
    for _ in range(25):
        state.run_epoch()
        primal, gap = state.balance_and_certify()
        gaps.append(gap[0] / primal[0])
        intercepts.append(state.bias[0])
    assert gaps[-1] < 1e-6 < gaps[0]
    assert np.ptp(intercepts[-5:]) < 0.01 * np.ptp(intercepts[:5])
