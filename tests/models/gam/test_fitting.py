"""Terms added to a fit: smoothing parameters given those before them, and rough fits."""

import numpy as np
import pytest

from kernelmaps.models.gam.bases import number_bases
from kernelmaps.models.gam.fitting import ADDING, WarmStart, fit_bordered
from kernelmaps.models.rows.term_rows import TermRows
from kernelmaps.models.solvers.reml import Penalties, estimate_smoothing


def three_columns(seed, loss, n=3000):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(1, 61, n).astype(np.uint8) for _ in range(3)]
    position = (np.arange(60) + 0.5) / 60
    counts = [np.bincount(c, minlength=61) * 1.0 for c in codes]
    bases = [number_bases(position[None], c, n_bases=20, degree=3, order=2)[0] for c in counts]
    eta = np.sin(codes[0] / 9) + np.cos(codes[1] / 5) * (codes[2] > 20) + 2 * np.sin(codes[2] / 7)
    if loss == "squared_error":
        y = eta + 0.5 * rng.normal(size=n)
    else:
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * eta)), 1.0, -1.0)
    return TermRows(codes, bases, y, np.ones(n), np.zeros(n))


@pytest.mark.parametrize("dispersion", [None, 0.3])
def test_new_smoothing_parameters_are_those_of_the_full_problem(seed, dispersion):
    """With the others fixed; so are coefficients, solutions and degrees of freedom."""
    rows = three_columns(seed, "squared_error")
    problem, penalties = rows.squared_problem()[0], Penalties.from_bases(rows.bases)
    rho = np.full(penalties.count, 1.0)
    fixed = np.arange(penalties.count) < 4  # a curve and a straight line for each of two columns
    full = estimate_smoothing(problem, penalties, rho, dispersion, fixed, tol=ADDING.reml_tol)
    start = WarmStart(rho, fixed, full.beta, full.beta)
    fit = fit_bordered(problem, penalties, start, dispersion)
    np.testing.assert_allclose(fit.rho, full.rho, rtol=1e-6)
    np.testing.assert_array_equal(fit.rho[fixed], rho[fixed])
    assert (fit.rho[~fixed] != rho[~fixed]).any()
    assert 0 < len(fit.new) < len(fit.beta)
    np.testing.assert_allclose(fit.beta, full.beta, atol=1e-6)
    rhs = np.random.default_rng(seed).normal(size=len(fit.beta))
    np.testing.assert_allclose(fit.solve(rhs), full.inverse.dot(rhs), atol=1e-6)
    np.testing.assert_allclose(fit.new_edf, full.edf()[fit.new], atol=1e-6)
    no_constraints = np.zeros((0, len(problem.rhs)))
    all_new = fit_bordered(problem, penalties, start, dispersion, constraints=no_constraints)
    assert len(all_new.new) == len(fit.beta)
    np.testing.assert_allclose(all_new.beta, full.beta, atol=1e-6)
