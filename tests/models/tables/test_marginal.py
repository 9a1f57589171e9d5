"""Fits of one column alone, and what is decided by them."""

from __future__ import annotations

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.models.tables.bases import number_basis
from kernelmaps.models.tables.marginal import _STRENGTHS, Signal, fit_margin
from kernelmaps.models.tables.newton import penalties_of
from kernelmaps.models.tables.reml import Penalties, Sums, coarse_strengths, solve_with


def one_column(seed, n=3000, bins=60):
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, bins + 1, n)
    place = (np.arange(bins) + 0.5) / bins
    y = np.sin(9 * place[codes - 1]) + rng.normal(size=n)
    y -= y.mean()
    counts = np.bincount(codes, minlength=bins + 1).astype(float)
    basis = number_basis(place, counts, n_bases=20, degree=3, order=2)
    return basis, Signal(counts, np.bincount(codes, y, bins + 1), float(y @ y)), codes, y


def test_the_sum_over_weights_is_the_restricted_likelihood(seed):
    """Of all strengths that are tried, the best one of the full criterion is found."""
    basis, signal, codes, y = one_column(seed)
    n = len(y)
    Z = np.column_stack([np.ones(n), basis.values[codes]])
    penalties = penalties_of([basis])
    sums = Sums(Z.T @ Z, Z.T @ y, float(y @ y), float(n))
    fits = [
        solve_with(sums, penalties, np.array([np.log(n * strength), 0.0]))
        for strength in _STRENGTHS
    ]
    best = min(fits, key=lambda fit: fit.criterion)
    margin = fit_margin(basis, [signal])
    edf = np.sum(1 - penalties.diagonal(best.rho) * np.diag(best.inverse)) - 1
    # The basis is orthonormal up to the ridge for codes without rows, 1e-7 of its mean diagonal.
    assert margin.edf == pytest.approx(edf, rel=1e-5)
    others = fit_margin(basis, [signal, signal])
    assert others.evidence == pytest.approx(2 * margin.evidence)
    assert others.edf == margin.edf


@pytest.mark.parametrize(
    ("truth", "worse"), [(np.sin, "quantile"), (lambda x: np.exp(-3 * x), "even")]
)
def test_a_skewed_column_gets_the_axis_on_which_it_is_smooth(seed, truth, worse):
    rng = np.random.default_rng(seed)
    x, fresh = rng.lognormal(0, 1, (2, 3000, 1))
    y = truth(x[:, 0]) + 0.3 * rng.normal(size=3000)
    wanted = truth(fresh[:, 0])

    def error(**options):
        model = km.AdditiveRegressor(terms=[km.Term(0, **options)]).fit(x, y)
        return np.sqrt(np.mean((model.predict(fresh) - wanted) ** 2))

    assert error() < error(knots=worse)


def test_straight_parts_are_never_left_out(seed):
    basis, _, _, _ = one_column(seed)
    for most in (2, 5):
        small = basis.smoothest(most)
        assert small.n_functions == most
        assert (small.group == 1).sum() == (basis.group == 1).sum() == 1
        assert small.penalty[small.group == 0].max() <= np.sort(basis.penalty)[most]


def test_coarse_strengths_are_close_to_those_of_all_functions(seed):
    """They start a search: from there the criterion has almost nothing left to gain."""
    rng = np.random.default_rng(seed)
    n, sizes = 2000, (40, 40)
    Z = np.column_stack([np.ones(n), rng.normal(size=(n, sum(sizes)))])
    scale = np.concatenate([[0.0], *(np.arange(1, size + 1.0) ** 4 / 1e4 for size in sizes)])
    group = np.concatenate([[-1], np.repeat([0, 1], sizes)])
    beta = np.where(group == 0, 2 / np.arange(len(group)).clip(1) ** 2, 0)
    y = Z @ beta + rng.normal(size=n)
    y -= y.mean()
    sums = Sums(Z.T @ Z, Z.T @ y, float(y @ y), float(n))
    penalties = Penalties(scale, group, 2)
    start = np.full(2, np.log(n))
    rho = coarse_strengths(sums, penalties, start)
    at = [solve_with(sums, penalties, own).criterion for own in (start, rho)]
    assert at[1] < at[0]
    fixed = coarse_strengths(sums, penalties, start, None, np.array([True, False]))
    assert fixed[0] == start[0]
