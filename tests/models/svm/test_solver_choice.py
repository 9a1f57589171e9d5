"""The cheaper solver is predicted and taken at once."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import kernelmaps as km
from kernelmaps.models.losses import LOSSES, make_loss
from kernelmaps.models.rows.band_rows import BandRows
from kernelmaps.models.svm import training
from kernelmaps.models.svm.scale import (
    SCALED_CURVATURE_RATIO,
    MappedSample,
    curvature_ratio,
    mean_square,
)
from kernelmaps.models.svm.solver_costs import TrainingSize

SIZE = TrainingSize(2000, 100_000, 4, 1, 500, curvature_ratio=1.0, tol=1e-3, has_corners=False)


def table(seed, n=300):
    """Two columns of numbers, one constant and two of two values."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((n, 2)), np.full(n, 0.3), rng.integers(0, 2, (n, 2))])
    X[:, 4] = np.where(X[:, 4] > 0, 7.0, -2.0)
    score = np.sin(5 * X[:, 0]) + X[:, 3] - 0.1 * X[:, 4] + 0.3 * rng.normal(size=n)
    return X, score


@pytest.mark.parametrize("feature_map", [km.SplineMap(), km.SplineMap(order=0)])
@pytest.mark.parametrize("solver", ["primal", "dual", "auto"])
def test_no_other_intercept_is_better(seed, feature_map, solver):
    """The intercept is that of ψ, whatever columns a solver works with."""
    X, score = table(seed)
    rng = np.random.default_rng(seed)
    X = np.hstack([X, rng.integers(0, 2, (len(X), 40))])
    score = score + X[:, 5:].sum(axis=1) / 4
    y = np.where(score > np.median(score), 1, -1)
    model = km.AdditiveSVC(feature_map, 0.3, solver=solver, tol=1e-6).fit(X, y)
    residual = np.maximum(0, 1 - y * model.decision_function(X))
    # A gap of 1e-6 P moves scores by about a thousandth of their size.
    assert abs(np.sum(y * residual)) < 1e-2 * np.sum(residual)


def test_newton_goes_on_where_epochs_are_not_enough(recwarn):
    """Coordinate descent was predicted to be cheaper, and would end at `max_iter`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=400) > 0
    options = {"C": 1.0, "loss": "hinge", "max_iter": 3, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="max_iter=3 epochs"):
        km.AdditiveSVC(solver="dual", **options).fit(X, y)
    recwarn.clear()
    model = km.AdditiveSVC(**options).fit(X, y)
    assert not recwarn.list
    assert model.solver_ == "primal"
    assert model.duality_gap_[0] <= model.tol * model.objective_[0]


def test_costs_grow_with_what_they_depend_on():
    for name in ("n_rows", "n_values", "band", "n_outputs", "curvature_ratio"):
        larger = replace(SIZE, **{name: 4 * getattr(SIZE, name)})
        assert larger.primal_seconds > SIZE.primal_seconds
    for name in ("n_values", "band", "n_outputs", "curvature_ratio"):
        larger = replace(SIZE, **{name: 4 * getattr(SIZE, name)})
        assert larger.dual_seconds > SIZE.dual_seconds
    assert replace(SIZE, tol=1e-6).dual_seconds > SIZE.dual_seconds
    assert replace(SIZE, of_codes=True).dual_seconds < SIZE.dual_seconds
    corners = replace(SIZE, has_corners=True, bound_ratio=1.0)
    assert corners.primal_seconds > SIZE.primal_seconds
    assert replace(corners, n_weights=1000).visits > corners.visits
    # Classes that differ more have fewer active examples.
    assert replace(corners, bound_ratio=1e3).visits < corners.visits


def test_a_factor_limits_the_products_of_a_step():
    """Where κ grows a thousandfold, steps do not take longer than those with a factor."""
    sizes = [replace(SIZE, has_corners=True, n_weights=n, curvature_ratio=1e6) for n in (20, 500)]
    few, many = (size.primal_seconds for size in sizes)
    assert few < many < replace(sizes[1], n_weights=3000).primal_seconds
    without = replace(sizes[0], curvature_ratio=1.0).primal_seconds
    # 1.5 steps for each of six digits, beside eleven. With products alone it is ten times as long.
    assert few < 2.5 * without


def test_coordinate_descent_is_for_strong_regularisation_and_newton_for_weak():
    """One crossing: the dual's cost grows with κ, the primal's with its logarithm."""
    size = replace(SIZE, has_corners=True)
    solvers = [replace(size, curvature_ratio=k).cheaper for k in np.geomspace(1e-3, 1e4, 50)]
    assert solvers[0] == "dual"
    assert solvers[-1] == "primal"
    assert sorted(solvers) == solvers


@pytest.mark.parametrize("curvature_ratio", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("has_corners", [False, True])
def test_coordinate_descent_may_take_as_long_as_the_other_solver(curvature_ratio, has_corners):
    """Or twice as long as predicted; no longer, so that both take at most twice the better one."""
    size = replace(SIZE, curvature_ratio=curvature_ratio, has_corners=has_corners)
    longest = size.max_visits * size.dual_seconds / size.visits
    assert longest == pytest.approx(max(size.primal_seconds, 2 * size.dual_seconds))


@pytest.mark.parametrize("n", [200, 400])
def test_small_tables_do_not_run_epochs_in_vain(seed, monkeypatch, n):
    """Epochs of few rows take as long as what they do beside visits."""
    monkeypatch.setattr(training, "_solve_dual", None)
    X, score = table(seed, n)
    assert km.AdditiveSVC(C=30.0, loss="hinge").fit(X, score > 0).solver_ == "primal"


def test_epochs_end_after_so_many_visits(seed, monkeypatch):
    monkeypatch.setattr(TrainingSize, "cheaper", "dual")
    monkeypatch.setattr(TrainingSize, "max_visits", 5)
    visits, solve = [], training.solve

    def recorded(*arguments):
        solution = solve(*arguments)
        visits.append(solution.n_visits)
        return solution

    monkeypatch.setattr(training, "solve", recorded)
    X, score = table(seed)
    model = km.AdditiveSVC(C=100.0, loss="hinge", random_state=0).fit(X, score > 0)
    assert model.solver_ == "primal"
    # One more epoch than fits, and a certificate.
    assert 5 * len(X) < visits[0] <= 7 * len(X)


def test_newton_is_for_smooth_losses_and_outputs_share_visits_alone():
    one = replace(SIZE, curvature_ratio=1e-3)
    many = replace(one, n_outputs=16)
    assert one.cheaper == "primal"
    assert many.dual_seconds / one.dual_seconds < 8 < many.primal_seconds / one.primal_seconds


def test_the_mean_square_is_the_trace_of_the_covariance(seed):
    X, _ = table(seed)
    fitted, weight = km.SplineMap().fit(X), np.random.default_rng(seed).integers(0, 3, len(X))
    repeated = fitted.transform(np.repeat(X, weight, axis=0))
    trace = np.trace(np.cov(repeated.T, bias=True))
    assert mean_square(fitted.spec_, X, weight.astype(float)) == pytest.approx(trace)
    signed = km.HomogeneousMap().fit(X + 2)
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
    model = km.AdditiveSVC(loss=loss, tol=1e-6).fit(X, y)
    assert model.C_ == 1.0
    best = {"squared_hinge": 0.4, "hinge": 1.0, "log_loss": np.log(7 / 3)}[loss]
    # A gap of 1e-6 P moves a mean of 400 rows by about a thousandth; that of the hinge, by less.
    np.testing.assert_allclose(model.decision_function(X), best, atol=5e-3)


def test_scaled_C_in_chunks_is_that_of_the_first(seed):
    X, score = table(seed)
    y = score > 0
    chunks = km.AdditiveSVC(km.SplineMap(domain=(-2, 7))).partial_fit(X[:200], y[:200], [0, 1])
    first = chunks.C_
    assert first == km.AdditiveSVC(km.SplineMap(domain=(-2, 7))).fit(X[:200], y[:200]).C_
    assert first == chunks.partial_fit(X[200:], y[200:]).C_
    streamed = km.AdditiveSVC(km.SplineMap(domain=(-2, 7))).fit(lambda: iter([(X, y)]))
    assert streamed.C_ == km.AdditiveSVC(km.SplineMap(domain=(-2, 7))).fit(X, y).C_


def test_C_is_a_number_several_or_scale():
    X, score = table(0)
    with pytest.raises(ValueError, match="a positive number, several of them or 'scale', got 'x'"):
        km.AdditiveSVC(C="x").fit(X, score > 0)


@pytest.mark.parametrize(("C", "solver"), [(1e-3, "dual"), (1e3, "primal")])
def test_only_one_solver_runs(seed, monkeypatch, C, solver):
    def refuse(*arguments):
        raise AssertionError("the other solver ran")

    other = {"dual": "_solve_primal", "primal": "_solve_dual"}[solver]
    monkeypatch.setattr(training, other, refuse)
    X, score = table(seed, 1000)
    assert km.AdditiveSVC(C=C, loss="hinge").fit(X, score > 0).solver_ == solver


def test_newton_starts_where_slow_coordinate_descent_ends(seed, monkeypatch):
    monkeypatch.setattr(TrainingSize, "cheaper", "dual")
    monkeypatch.setattr(TrainingSize, "max_visits", 100)
    X, score = table(seed)
    options = {"C": 100.0, "loss": "log_loss", "random_state": 0}
    both = km.AdditiveSVC(**options).fit(X, score > 0)
    alone = km.AdditiveSVC(solver="primal", **options).fit(X, score > 0)
    assert both.solver_ == "primal"
    assert both.n_iter_ < alone.n_iter_
    np.testing.assert_allclose(both.objective_, alone.objective_, rtol=1e-3)


def test_lines_read_no_rows(seed, monkeypatch):
    """Scores on the line between two points are those of the points."""
    passes, scores = [], BandRows.scores

    def counted(rows, weights):
        passes.append(1)
        return scores(rows, weights)

    monkeypatch.setattr(BandRows, "scores", counted)
    X, score = table(seed)
    model = km.AdditiveSVC(C=10.0, solver="primal").fit(X, score > 0)
    assert len(passes) == model.n_iter_


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if loss.dual_rules])
def test_conjugates_of_arrays_are_those_of_numbers(name):
    conjugate, c = LOSSES[name].dual_rules.conjugate, np.array([0.5, 1.0, 2.0])
    for y in (1.0, -1.0):
        alpha = y * np.array([0.0, 1.0, 0.7])  # at both bounds, and between them
        each = [conjugate(y, *pair, 0.1) for pair in zip(alpha, c, strict=True)]
        np.testing.assert_allclose(conjugate(y, alpha, c, 0.1), each)
        assert np.isfinite(each).all()


def recorded_steps(monkeypatch):
    """Solutions of the conditional gradient method, as fits compute them."""
    solutions, solve = [], training.solve_by_conditional_gradient

    def recorded(*arguments):
        solutions.append(solve(*arguments))
        return solutions[-1]

    monkeypatch.setattr(training, "solve_by_conditional_gradient", recorded)
    return solutions


@pytest.mark.parametrize("feature_map", [km.SplineMap(), km.TrigonometricMap()])
def test_a_small_C_takes_conditional_gradient_steps_alone(seed, monkeypatch, feature_map):
    solutions = recorded_steps(monkeypatch)
    monkeypatch.setattr(training, "solve", None)  # coordinate descent
    X, score = table(seed, 1000)
    y = score > 0.2
    model = km.AdditiveSVC(feature_map, 1e-4, loss="hinge").fit(X, y)
    assert [solution.converged for solution in solutions] == [True]
    assert model.solver_ == "dual"
    exact = km.AdditiveSVC(feature_map, 1e-4, loss="hinge", solver="primal", tol=1e-6).fit(X, y)
    assert exact.objective_ <= model.objective_ <= exact.objective_ + model.duality_gap_ * 1.01
    # Weights are those of the dual variables.
    psi = model.feature_map_.transform(X)
    scores = psi @ (psi.T @ model.dual_coef_[:, 0]) + model.machine_.offset
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-8)


def test_other_solvers_start_where_conditional_gradient_steps_end(seed, monkeypatch):
    solutions = recorded_steps(monkeypatch)
    monkeypatch.setattr(TrainingSize, "max_gradient_steps", 1)
    X, score = table(seed, 600)
    options = {"C": 0.05, "loss": "hinge", "random_state": 0}
    model = km.AdditiveSVC(**options).fit(X, score > 0)
    assert [solution.converged for solution in solutions] == [False]
    alone = km.AdditiveSVC(solver="dual", **options).fit(X, score > 0)
    np.testing.assert_allclose(model.objective_, alone.objective_, rtol=1e-3)
    # The dual variables of a fit before are a better start.
    model.set_params(warm_start=True, C=0.06).fit(X, score > 0)
    assert len(solutions) == 1


def test_conditional_gradient_steps_are_for_small_ratios_and_large_tolerances():
    size = replace(SIZE, has_corners=True, curvature_ratio=0.01)
    steps = [replace(size, bound_ratio=r).max_gradient_steps for r in (0.1, 0.3, 3.0, np.inf)]
    assert 0 < steps[0] < steps[1]
    assert steps[2] == steps[3] == 0
    assert replace(size, bound_ratio=0.3, tol=1e-6).max_gradient_steps == 0


def test_the_ratio_of_bounds_is_that_of_the_dual_along_them(seed):
    """All rows give it exactly; some of them, without bias."""
    X, score = table(seed, 2000)
    y, cost = np.where(score > 0.2, 1.0, -1.0), np.full(2000, 0.01)
    spec, n_positive = km.SplineMap().fit(X).spec_, int(np.sum(y > 0))
    psi = MappedSample.of(spec, X, cost, len(X)).psi
    smaller = min(n_positive, len(y) - n_positive)
    alpha = 0.01 * np.where(y > 0, smaller / n_positive, -smaller / (len(y) - n_positive))
    exact = np.sum((alpha @ psi) ** 2) / np.abs(alpha).sum()
    hinges, ratios = make_loss("hinge", y).hinges(y), []
    for n_rows in (2000, 200):
        sample = MappedSample.of(spec, X, cost, n_rows)
        ratios.append(sample.bound_ratio([values[:, sample.rows] for values in hinges], cost))
    assert ratios[0] == pytest.approx(exact)
    # 200 rows: a mean of each class, to a tenth of the columns' spread; the ratio is of squares.
    assert ratios[1] == pytest.approx(exact, rel=0.6)
