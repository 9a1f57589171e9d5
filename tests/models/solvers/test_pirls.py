"""Fits of coded rows end at the minimum of their penalised loss."""

from dataclasses import replace

import numpy as np
import pytest
from loss_of_targets import make_loss

from kernelmaps.models.gam.bases import category_basis, number_bases
from kernelmaps.models.losses import GAM, list_losses
from kernelmaps.models.rows.term_rows import TermRows
from kernelmaps.models.solvers import pirls, reml
from kernelmaps.models.solvers.pirls import fit_penalised
from kernelmaps.models.solvers.reml import Penalties

# Those of several predictors have tests of their own.
SEVERAL = "multinomial", "location_scale"
GAM_LOSSES = [name for kind in (True, False) for name in list_losses(GAM, kind)]
GAM_LOSSES = [name for name in GAM_LOSSES if name not in SEVERAL]


def rows_for(loss, seed, n=800):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(1, 31, n).astype(np.uint8), rng.integers(2, 6, n).astype(np.uint8)]
    counts = [np.bincount(c, minlength=m).astype(float) for c, m in zip(codes, (31, 6))]
    place = (np.arange(30) + 0.5) / 30
    bases = [
        number_bases(place[None], counts[0], n_bases=8, degree=3, order=2)[0],
        category_basis(counts[1]),
    ]
    eta = np.sin(codes[0] / 5) + 0.3 * (codes[1] == 3)
    if loss in ("log_loss", "binomial"):
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * eta)), 1.0, -1.0)
    elif loss in ("poisson", "negative_binomial", "tweedie"):
        y = rng.poisson(np.exp(eta)).astype(float)
    elif loss == "ordinal":
        y = np.digitize(eta + rng.logistic(size=n), [-1.0, 0.5, 2.0]).astype(float)
    elif loss == "beta":
        y = rng.beta(4 / (1 + np.exp(-eta)), 4 / (1 + np.exp(eta)))
    elif loss == "gamma":
        y = rng.gamma(2.0, np.exp(eta) / 2)
    else:
        y = eta + 0.3 * rng.normal(size=n)
    weight = rng.integers(0, 3, n).astype(float)
    offset = 0.1 * rng.normal(size=n)
    return TermRows(codes, bases, y, weight, offset)


@pytest.mark.parametrize("loss", GAM_LOSSES)
def test_gradient_vanishes_at_the_end(loss, seed):
    rows = rows_for(loss, seed)
    kind = make_loss(loss, rows.y)
    penalties = Penalties.from_bases(rows.bases)
    rho = np.log(np.array([5.0, 2.0, 3.0]))[: penalties.count]
    fixed = np.ones(penalties.count, bool)
    fit = fit_penalised(rows, kind, rho, fixed, max_iter=3000)
    assert fit.converged
    Z = np.hstack(
        [np.ones((len(rows.y), 1))] + [b.values[c] for b, c in zip(rows.bases, rows.codes)]
    )
    eta = rows.offset + Z @ fit.beta
    np.testing.assert_allclose(eta, rows.scores(fit.beta), atol=1e-10)
    by_eta, _ = kind.derivatives(rows.y, eta)
    gradient = Z.T @ (rows.weight * by_eta) + penalties.diagonal(rho) * fit.beta
    size = np.abs(Z).T @ (rows.weight * np.abs(by_eta))
    assert np.max(np.abs(gradient) / size) < 1e-4
    penalised = rows.weight @ kind.value(rows.y, eta) + 0.5 * penalties.diagonal(rho) @ fit.beta**2
    assert fit.objective == pytest.approx(penalised, rel=1e-9)


def test_repeated_rows_are_weights(seed):
    rows = rows_for("log_loss", seed)
    twice = [np.repeat(c, rows.weight.astype(int)) for c in rows.codes]
    y, offset = (np.repeat(v, rows.weight.astype(int)) for v in (rows.y, rows.offset))
    copies = TermRows(twice, rows.bases, y, np.ones(len(y)), offset)
    start = np.zeros(Penalties.from_bases(rows.bases).count)
    first = fit_penalised(rows, make_loss("log_loss", rows.y), start)
    second = fit_penalised(copies, make_loss("log_loss", y), start)
    np.testing.assert_allclose(first.beta, second.beta, rtol=1e-5, atol=1e-6)


def test_a_straight_truth_gets_a_straight_function(seed):
    """The smoothing parameter of the curvature rises until little but the line is left."""
    rows = rows_for("squared_error", seed)
    rng = np.random.default_rng([seed, 1])
    y = rows.codes[0] / 10.0 + 0.2 * rng.normal(size=len(rows.y))
    straight = TermRows(rows.codes, rows.bases, y, np.ones(len(y)), np.zeros(len(y)))
    fit = fit_penalised(straight, make_loss("squared_error", y), np.zeros(3))
    first = fit.edf[1 : 1 + rows.bases[0].n_functions].sum()
    assert first < 4.0
    values = rows.bases[0].values[1:] @ fit.beta[1 : 1 + rows.bases[0].n_functions]
    assert np.max(np.abs(np.diff(values) - 0.1)) < 0.05


@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "poisson"])
def test_coefficients_outside_of_the_active_set_are_negligible(loss, seed, monkeypatch):
    """Functions of which a hundredth would be left change scores by far less than errors do."""
    rng = np.random.default_rng(seed)
    n, bins = 3000, 100
    codes = [rng.integers(1, bins + 1, n).astype(np.uint8) for _ in range(3)]
    place = (np.arange(bins) + 0.5) / bins
    counts = [np.bincount(c, minlength=bins + 1).astype(float) for c in codes]
    bases = [number_bases(place[None], c, n_bases=40, degree=3, order=2)[0] for c in counts]
    eta = np.sin(6 * place[codes[0] - 1]) + place[codes[1] - 1]
    y = {
        "squared_error": lambda: eta + rng.normal(size=n),
        "log_loss": lambda: np.where(rng.random(n) < 1 / (1 + np.exp(-eta)), 1.0, -1.0),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
    }[loss]()
    rows = TermRows(codes, bases, y, np.ones(n), np.zeros(n))
    kind, start = make_loss(loss, y), np.full(6, np.log(n))
    sizes, plain = [], pirls.estimate_smoothing

    def recorded(problem, *arguments, **options):
        sizes.append(len(problem.gram))
        return plain(problem, *arguments, **options)

    monkeypatch.setattr(pirls, "estimate_smoothing", recorded)
    active = fit_penalised(rows, kind, start)
    assert max(sizes) < 0.8 * len(active.beta)
    assert np.count_nonzero(active.beta) <= sizes[-1] < len(active.beta)
    monkeypatch.setattr(reml, "REML", replace(reml.REML, negligible_penalty=np.inf))
    full = fit_penalised(rows, kind, start)
    assert sizes[-1] == len(full.beta)
    errors = np.sqrt(np.diag(full.covariance).sum())
    gap = rows.scores(active.beta) - rows.scores(full.beta)
    # REML ends where a derivative of the log-likelihood is small, not at its exact maximum.
    assert np.sqrt(np.mean(gap**2)) < 0.05 * errors
    assert active.edf.sum() == pytest.approx(full.edf.sum(), abs=0.3)
    assert (np.diag(active.covariance) > 0).all()


@pytest.mark.parametrize("loss", ["log_loss", "poisson", "gamma"])
def test_the_covariance_is_that_of_the_minimum(loss, seed):
    """Also where smoothing parameters are given, and quasi-Newton steps need one Hessian only."""
    rows = rows_for(loss, seed)
    kind = make_loss(loss, rows.y)
    penalties = Penalties.from_bases(rows.bases)
    rho = np.log(np.array([5.0, 2.0, 3.0]))[: penalties.count]
    fit = fit_penalised(rows, kind, rho, np.ones(penalties.count, bool))
    problem = rows.evaluate(kind, fit.beta).working_problem()
    precision = problem.gram + np.diag(penalties.diagonal(rho))
    expected = fit.dispersion * np.linalg.inv(precision)
    np.testing.assert_allclose(fit.covariance, expected, atol=1e-5 * np.abs(expected).max())
