"""Systems of few rows: in the space of the rows they are those of the coefficients."""

from dataclasses import replace

import numpy as np
import pytest
from loss_of_targets import make_loss

from kernelmaps.models.rows import term_rows
from kernelmaps.models.rows.basis import TermBasis
from kernelmaps.models.rows.normal_equations import NormalEquations
from kernelmaps.models.rows.term_rows import TermRows
from kernelmaps.models.solvers.levels import IndexBlocks, block_sums
from kernelmaps.models.solvers.linear_systems import (
    LEAST_PENALTY,
    LowRankCovariance,
    invert_by_rows,
    penalised_system,
)
from kernelmaps.models.solvers.pirls import fit_penalised

# Digits that LEAST_PENALTY loses, of the 16 that there are.
TOL = 1e-16 / LEAST_PENALTY**2


def system_of(seed, least=0.0, n=15, p=60):
    """X, penalties of which some are `least`, the system, and its inverse."""
    rng = np.random.default_rng(seed)
    root = np.hstack([np.ones((n, 1)), rng.normal(size=(n, p - 1))])
    diagonal = n * np.exp(rng.normal(2, 2, p))
    diagonal[: 1 + 4 * bool(least)] = least
    diagonal += 1e-10 * n
    inverse = np.linalg.inv(root.T @ root + np.diag(diagonal))
    return invert_by_rows(root, diagonal, float(n)), inverse


@pytest.mark.parametrize("least", [0.0, 1e-7, 1e-3])
def test_the_inverse_is_that_of_the_coefficients(seed, least):
    """An intercept without a penalty, and coefficients with next to none, included."""
    system, inverse = system_of(seed, least)
    covariance, scale = system.inverse(), np.abs(inverse).max()
    x = np.random.default_rng(seed).normal(size=len(inverse))
    np.testing.assert_allclose(covariance.dense, inverse, atol=TOL * scale)
    np.testing.assert_allclose(covariance.diagonal(), inverse.diagonal(), atol=TOL * scale)
    np.testing.assert_allclose(system.solve(x), inverse @ x, atol=TOL * np.abs(inverse @ x).max())
    assert covariance.logdet() == pytest.approx(np.linalg.slogdet(inverse)[1], abs=1e-6)
    scaled = covariance.scaled(3.0)
    np.testing.assert_allclose(scaled.dense, 3 * inverse, atol=TOL * scale)
    assert scaled.logdet() == pytest.approx(np.linalg.slogdet(3 * inverse)[1], abs=1e-6)


def test_sums_over_blocks_are_those_of_the_matrix(seed):
    """Over blocks of few coefficients, and of more than there are rows."""
    rng = np.random.default_rng(seed)
    system, inverse = system_of(seed)
    blocks = IndexBlocks(np.repeat([-1, 0, 1, 2, 4, 3], [1, 2, 20, 5, 1, 31]), 5)
    d, u = rng.random(60), rng.normal(size=60)
    ours, exact = system.inverse().block_sums(d, u, blocks), block_sums(inverse, d, u, blocks)
    for sums, expected in zip(ours, exact, strict=True):
        np.testing.assert_allclose(sums, expected, atol=1e-7 * np.abs(expected).max())
    columns = system.inverse().columns(u, blocks)
    np.testing.assert_allclose(columns, inverse @ blocks.rows(u).toarray().T, atol=1e-8)


def test_a_system_that_is_not_smaller_stays_in_the_space_of_the_coefficients(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(15, 60))
    problem = NormalEquations(root.T @ root, root[0], 1.0, 15.0, root=root)
    for n_free, in_rows in ((0, True), (15, True), (16, False)):
        diagonal = np.where(np.arange(60) < n_free, 1e-9, 15.0)
        system = penalised_system(problem, diagonal)
        assert isinstance(system, LowRankCovariance) == in_rows
        plain = penalised_system(replace(problem, root=None), diagonal)
        np.testing.assert_allclose(system.solve(root[0]), plain.solve(root[0]), atol=TOL)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_a_fit_of_few_rows_is_that_of_its_gram_matrix(seed, loss, monkeypatch):
    rng = np.random.default_rng(seed)
    n, bases = 60, []
    codes = [rng.integers(0, 20, n).astype(np.uint8) for _ in range(100)]
    for _ in codes:
        values = np.linalg.qr(rng.normal(size=(20, 4)))[0] * np.sqrt(20)
        bases.append(TermBasis(values, np.array([1, 4, 16, 0.5]), np.array([0, 0, 0, 1]), True))
    score = 2 * bases[0].values[codes[0], 3] + rng.normal(size=n)
    y = np.where(score > 0, 1.0, -1.0) if loss == "log_loss" else score
    rows = TermRows(codes, bases, y, rng.random(n) + 0.5, np.zeros(n))
    assert rows.are_few
    kind, rho = make_loss(loss, y, rows.weight), np.full(200, np.log(n))
    fits = []
    for share in (term_rows.FEW_ROWS, 0.0):
        monkeypatch.setattr(term_rows, "FEW_ROWS", share)
        fits.append(fit_penalised(rows, kind, rho))
    in_rows, in_coefficients = fits
    assert isinstance(in_rows.posterior, LowRankCovariance)
    assert not isinstance(in_coefficients.posterior, LowRankCovariance)
    np.testing.assert_allclose(in_rows.rho, in_coefficients.rho, atol=1e-4)
    for ours, expected in (
        (in_rows.beta, in_coefficients.beta),
        (in_rows.edf, in_coefficients.edf),
        (in_rows.covariance, in_coefficients.covariance),
        (in_rows.smoothing_edf, in_coefficients.smoothing_edf),
    ):
        np.testing.assert_allclose(ours, expected, atol=1e-4 * np.abs(expected).max())
    determinants = (fit.posterior.logdet() for fit in fits)
    assert next(determinants) == pytest.approx(next(determinants), abs=1e-2)
