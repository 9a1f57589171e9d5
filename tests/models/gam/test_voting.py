"""Score tests of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import kernelmaps as km
from kernelmaps.data.frames import read_columns
from kernelmaps.models.gam import fitting, voting
from kernelmaps.models.gam.bases import side_of
from kernelmaps.models.gam.fitting import Request, hold_rows
from kernelmaps.models.gam.pairs import coarse_for_ranking, residual_tables
from kernelmaps.models.gam.terms import Term


def coded(X, y=None, weight=None):
    """Rows of numbers, the coarse codes of their columns, and the functions of these."""
    n = len(X)
    request = Request({j: Term(f"x{j}") for j in range(X.shape[1])}, [])
    weight = np.ones(n) if weight is None else weight
    rows = hold_rows(read_columns(X, "test"), [y], weight, np.zeros(n), request)
    counts = [
        np.bincount(c, weight, b.n_codes) for c, b in zip(rows.codes, rows.books, strict=True)
    ]
    coarse = coarse_for_ranking(rows.books, counts, range(X.shape[1]))
    sides = {j: side_of(own.summed(counts[j]), category=False) for j, own in coarse.items()}
    return rows, coarse, sides


def p_value(rows, coarse, sides, slope, bend, pair=(0, 1)):
    first = residual_tables([pair], coarse, rows.codes, slope, bend)[0]
    square = residual_tables([pair], coarse, rows.codes, slope, slope**2)[0][0]
    return voting.significance(*first, square, sides[pair[0]], sides[pair[1]])


@pytest.mark.parametrize("count", [1, 2, 5, 30])
@pytest.mark.parametrize("p", [0.05, 1e-3, 1e-8, 1e-14])
def test_the_tail_of_equal_weights_is_that_of_chi_square(count, p):
    """Saddlepoints are that of a gamma variable with Stirling's formula in the place of Γ."""
    found = voting.mixture_tail(3 * stats.chi2.isf(p, count), np.full(count, 3.0))
    assert found == pytest.approx(p, rel=0.15)


@pytest.mark.parametrize("q", [8.0, 20.0, 80.0])
def test_the_tail_of_different_weights(q):
    """Pairs of equal weights: two exponential variables, whose sum has a known tail."""
    a, b = 2.0, 0.7
    exact = (a * np.exp(-q / (2 * a)) - b * np.exp(-q / (2 * b))) / (a - b)
    assert voting.mixture_tail(q, np.array([a, b, a, b, 0.0])) == pytest.approx(exact, rel=0.1)
    assert voting.mixture_tail(0.0, np.array([a, b])) == 1.0
    assert voting.mixture_tail(q, np.zeros(3)) == 1.0


def test_p_values_are_uniform_where_the_variance_is_not_constant(seed):
    """Noise that grows with one column, and columns that depend on each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 2))
    X[:, 1] += X[:, 0]
    rows, coarse, sides = coded(X, np.zeros(1500))
    scale = 0.2 + X[:, 0] ** 2
    found = [
        p_value(rows, coarse, sides, scale * rng.normal(size=1500), np.ones(1500))
        for _ in range(400)
    ]
    for level in (0.05, 0.01):
        few, many = stats.binom.ppf([1e-5, 1 - 1e-5], 400, [0.3 * level, 1.2 * level])
        assert few <= np.sum(np.array(found) < level) <= many


def test_main_effects_are_no_evidence(seed):
    """Effects of rows and columns of the table, in the metric of the curvatures, change nothing."""
    rng = np.random.default_rng(seed)
    X = rng.random((800, 2))
    X[:, 1] += X[:, 0]
    rows, coarse, sides = coded(X, np.zeros(800))
    bend = rng.random(800) + 0.1
    tables = residual_tables([(0, 1)], coarse, rows.codes, rng.normal(size=800), bend)[0]
    square = np.ones_like(tables[0])
    shift = rng.normal(size=(tables[0].shape[0], 1)) + rng.normal(size=tables[0].shape[1])
    plain, shifted = (
        voting.significance(tables[0], slope, square, sides[0], sides[1])
        for slope in (tables[1], tables[1] + tables[0] * shift)
    )
    assert shifted == pytest.approx(plain, rel=1e-4)


def test_a_weight_of_two_is_a_row_twice(seed):
    rng = np.random.default_rng(seed)
    X, slope = rng.random((300, 2)), rng.normal(size=300)
    weight = rng.integers(1, 3, 300)
    twice = np.repeat(np.arange(300), weight)
    loss = voting.SquaredSlopes()
    found = []
    for own, own_weight in ((np.arange(300), weight.astype(float)), (twice, np.ones(len(twice)))):
        rows, coarse, sides = coded(X[own], slope[own], own_weight)
        parts = (), np.zeros(1)
        tables = rows.residuals(*parts, loss.of, 0, [(0, 1)], coarse)[0][0]
        square = rows.residuals(*parts, loss, 0, [(0, 1)], coarse)[0][0][0]
        found.append(voting.significance(*tables, square, sides[0], sides[1]))
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_a_rough_look_finds_what_is_significant(seed, monkeypatch):
    """In batches, with columns of different numbers of codes."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((2000, 3)), rng.integers(0, 3, 2000)])
    y = 3 * (X[:, 1] - 0.5) * (X[:, 3] - 1) + rng.normal(size=2000)
    rows, coarse, sides = coded(X, y)
    places = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    y = y - y.mean()
    tables = residual_tables(places, coarse, rows.codes, -y, np.ones(2000))
    found = voting.suspects(places, tables, sides, float(y.var()))
    assert (1, 3) in found
    monkeypatch.setattr(voting, "_BATCH", 1)
    assert voting.suspects(places, tables, sides, float(y.var())) == found


@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "poisson"])
def test_a_pair_that_held_out_rows_refuse_is_kept(seed, loss, monkeypatch):
    """All rows show what a quarter of them is too small to judge."""
    monkeypatch.setattr(fitting, "_SURE", (np.inf, np.inf))  # held-out rows want nothing
    rng = np.random.default_rng(seed)
    X = rng.random((2000, 4))
    eta = np.sin(4 * X[:, 0]) + 6 * (X[:, 1] - 0.5) * (X[:, 2] - 0.5)
    if loss == "log_loss":
        model = km.AdditiveClassifier(loss=loss, interactions="auto")
        y = rng.random(2000) < 1 / (1 + np.exp(-2 * eta))
    else:
        model = km.AdditiveRegressor(loss=loss, interactions="auto")
        y = rng.poisson(np.exp(eta)) if loss == "poisson" else eta + rng.normal(size=2000)
    assert "x1 × x2" in model.fit(X, y).term_names_
    monkeypatch.setattr(fitting, "LEVEL", 0.0)
    assert model.fit(X, y).pair_functions_ == []


def test_pairs_that_owe_their_evidence_to_another_are_not_added(seed):
    """A column that nearly repeats another: the best pair explains most of the others."""
    rng = np.random.default_rng(seed)
    X = rng.random((3000, 4))
    X[:, 2] = X[:, 1] + 0.03 * rng.normal(size=3000)
    y = 6 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + rng.normal(size=3000)
    found = km.AdditiveRegressor(interactions="auto").fit(X, y).term_names_[4:]
    assert len(found) in (1, 2)
    assert {"x0 × x1", "x0 × x2"} & set(found)


def test_constrained_columns_have_no_pairs(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((1500, 2))
    y = 6 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + X[:, 0] + 0.3 * rng.normal(size=1500)
    model = km.AdditiveRegressor(interactions="auto", constraints={0: "increasing"}).fit(X, y)
    assert model.pair_functions_ == []
