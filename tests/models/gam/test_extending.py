"""Terms that join a fit: strengths given those before them, and steps with a known curvature."""

import numpy as np
import pytest

from kernelmaps.models.gam import held
from kernelmaps.models.gam.bases import number_basis
from kernelmaps.models.gam.extending import Start, approach, extend_rows, joined
from kernelmaps.models.gam.held import CodedRows
from kernelmaps.models.gam.newton import Bends, fit_rows, penalties_of
from kernelmaps.models.gam.reml import choose_strengths
from kernelmaps.models.losses import make_loss


def three_columns(seed, loss, n=3000):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(1, 61, n).astype(np.uint8) for _ in range(3)]
    place = (np.arange(60) + 0.5) / 60
    bases = [
        number_basis(place, np.bincount(c, minlength=61) * 1.0, n_bases=20, degree=3, order=2)
        for c in codes
    ]
    eta = np.sin(codes[0] / 9) + np.cos(codes[1] / 5) * (codes[2] > 20) + 2 * np.sin(codes[2] / 7)
    if loss == "squared_error":
        y = eta + 0.5 * rng.normal(size=n)
    else:
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * eta)), 1.0, -1.0)
    return CodedRows(codes, bases, y, np.ones(n), np.zeros(n))


@pytest.mark.parametrize("dispersion", [None, 0.3])
def test_new_strengths_are_those_of_the_whole_problem_with_the_others_held(seed, dispersion):
    rows = three_columns(seed, "squared_error")
    sums, penalties = rows.squared()[0], penalties_of(rows.bases)
    rho = np.full(penalties.count, 1.0)
    held = np.arange(penalties.count) < 4  # a curve and a straight part for each of two columns
    wanted = choose_strengths(sums, penalties, rho, dispersion, held, tol=1.0)
    found = joined(sums, penalties, rho, held, dispersion)
    np.testing.assert_allclose(found.rho, wanted.rho, rtol=1e-6)
    np.testing.assert_array_equal(found.rho[held], rho[held])
    assert (found.rho[~held] != rho[~held]).any()
    # So are weights, solutions, and degrees of freedom, from a factor and a small inverse.
    new = found.border.new
    assert 0 < len(new) < len(found.weights)
    np.testing.assert_allclose(found.weights, wanted.weights, atol=1e-6)
    right = np.random.default_rng(seed).normal(size=len(found.weights))
    np.testing.assert_allclose(found.solve(right), wanted.inverse @ right, atol=1e-6)
    edf = 1 - penalties.diagonal(wanted.rho) * np.diag(wanted.inverse)
    np.testing.assert_allclose(found.edf(penalties), edf[new], atol=1e-6)
    whole = joined(sums, penalties, rho, held, dispersion, cone=np.zeros((0, len(sums.right))))
    assert len(whole.border.old) == 0
    np.testing.assert_allclose(whole.weights, wanted.weights, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_a_fit_that_is_extended_is_nearly_the_whole_one(seed, loss):
    """For squared loss all but what is out of reach; else nine tenths of what new terms bring."""
    rows = three_columns(seed, loss)
    kind, penalties = make_loss(loss, rows.y), penalties_of(rows.bases)
    none = np.zeros(penalties.count, bool)
    few = CodedRows(rows.codes[:2], rows.bases[:2], rows.y, rows.weight, rows.offset)
    count = penalties_of(few.bases).count
    before = fit_rows(few, kind, np.full(count, 8.0))
    rho = np.concatenate([before.rho, np.full(penalties.count - count, 8.0)])
    beta = np.concatenate([before.weights, np.zeros(len(penalties.scale) - len(before.weights))])
    start = Start(rho, np.arange(len(rho)) < count, beta, np.zeros(len(beta)))
    found = extend_rows(rows, kind, start)
    least = fit_rows(rows, kind, found.rho, ~none)

    def objective(weights):
        losses = rows.weight @ kind.value(rows.y, rows.scores(weights))
        return losses + 0.5 * penalties.diagonal(found.rho) @ weights**2

    gap, gain = objective(found.weights) - least.objective, objective(beta) - least.objective
    share = 1e-5 if loss == "squared_error" else 0.1
    assert -1e-9 * least.objective < gap < share * gain


def test_last_steps_have_exact_derivatives_and_the_curvature_before(seed, monkeypatch):
    rows = three_columns(seed, "log_loss")
    curvatures = []

    def counted(*arguments):
        curvatures.append(1)
        return products(*arguments)

    products = held.cross_products
    monkeypatch.setattr(held, "cross_products", counted)
    penalties = penalties_of(rows.bases)
    kind = make_loss("log_loss", rows.y)
    fit = fit_rows(rows, kind, np.full(penalties.count, 8.0))
    assert fit.converged
    assert len(curvatures) < fit.n_iter
    slope = rows.at(kind, fit.weights).gradient() + penalties.diagonal(fit.rho) * fit.weights
    used = np.flatnonzero(fit.weights)  # functions out of reach are left out
    own = fit.covariance[np.ix_(used, used)]
    assert 0.5 * slope[used] @ own @ slope[used] < 1e-12 * fit.objective


def test_steps_remember_the_curvature_that_they_have_seen(seed):
    """The secant equation holds for the last step; in as many steps as weights, for all of them."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 6))
    matrix, seen = root @ root.T + np.eye(6), Bends()
    for _ in range(9):
        step = rng.normal(size=6)
        seen.add(step, matrix @ step)
        np.testing.assert_allclose(seen.solve(np.copy, matrix @ step), step, atol=1e-9)
    before = len(seen.steps)
    seen.add(step, -step)  # of no curvature at all
    assert len(seen.steps) == before


def test_weights_come_near_the_minimum_with_a_curvature_of_other_rows(seed):
    rows, kind = three_columns(seed, "log_loss"), make_loss("log_loss", np.ones(2))
    penalties = penalties_of(rows.bases)
    rho, none = np.full(penalties.count, 3.0), np.zeros(len(penalties.scale))
    least = fit_rows(rows, kind, rho, np.ones(len(rho), bool))
    gram = rows.sums(rows.weight, rows.weight)[0]  # four times the curvature at zero, or more
    found = approach(rows, kind, rho, none, gram)

    def objective(weights):
        return rows.at(kind, weights).value + 0.5 * penalties.diagonal(rho) @ weights**2

    assert objective(none) - least.objective > 0.1 * least.objective
    assert 0 <= objective(found) - least.objective + 1e-9 < 1e-4 * least.objective


def test_a_large_fit_ends_with_the_curvature_that_its_strengths_were_chosen_by(seed, monkeypatch):
    """From where a fit ended, one curvature is enough, and the end is a minimum."""
    rows, kind = three_columns(seed, "log_loss"), make_loss("log_loss", np.ones(2))
    before = fit_rows(rows, kind, np.full(penalties_of(rows.bases).count, 8.0))
    curvatures, products = [], held.cross_products
    monkeypatch.setattr(held, "cross_products", lambda *a: curvatures.append(1) or products(*a))
    fit = fit_rows(rows, kind, before.rho, beta=before.weights + 0.01)
    assert fit.converged
    assert len(curvatures) == 1
    np.testing.assert_allclose(fit.objective, before.objective, rtol=1e-3)
    again = fit_rows(rows, kind, fit.rho, np.ones(len(fit.rho), bool))
    # All but what functions out of reach would bring.
    assert -1e-9 < fit.objective / again.objective - 1 < 1e-5
