"""Score tests of pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from table_columns import columns_of

import kernelmaps as km
from kernelmaps.models.gam import interactions, score_tests
from kernelmaps.models.gam.design import encode_rows
from kernelmaps.models.gam.pairs import PAIRS, coarse_codes, marginal_basis, sums_by_pair
from kernelmaps.models.gam.score_tests import SCORE_TEST
from kernelmaps.models.gam.terms import GamSettings, Term
from kernelmaps.models.losses import SquaredError


def coded(X, y=None, weight=None):
    """Rows of numbers, the coarse codes of their columns, and the functions of these."""
    n = len(X)
    terms = {j: Term(f"x{j}") for j in range(X.shape[1])}
    settings = GamSettings(terms, [], weights="frequency")
    weight = np.ones(n) if weight is None else weight
    rows = encode_rows(columns_of(X), [y], weight, np.zeros(n), settings)
    counts = [
        np.bincount(c, weight, b.n_codes) for c, b in zip(rows.codes, rows.books, strict=True)
    ]
    coarse = {
        j: coarse_codes(rows.books[j], counts[j], PAIRS.test_codes) for j in range(X.shape[1])
    }
    bases = {j: marginal_basis(c.sum_rows(counts[j]), category=False) for j, c in coarse.items()}
    return rows, coarse, bases


def p_value(rows, coarse, bases, gradient, curvature, pair=(0, 1)):
    tables = sums_by_pair([pair], coarse, rows.codes, [curvature, gradient, gradient**2])[0]
    return score_tests.p_value(tables, bases[pair[0]], bases[pair[1]])


@pytest.mark.parametrize("q", [8.0, 20.0, 80.0])
def test_the_tail_of_different_eigenvalues(q):
    """Pairs of equal eigenvalues: two exponential variables, whose sum has a known tail."""
    a, b = 2.0, 0.7
    exact = (a * np.exp(-q / (2 * a)) - b * np.exp(-q / (2 * b))) / (a - b)
    assert score_tests.mixture_tail(q, np.array([a, b, a, b, 0.0])) == pytest.approx(exact, rel=0.1)
    assert score_tests.mixture_tail(0.0, np.array([a, b])) == 1.0
    assert score_tests.mixture_tail(q, np.zeros(3)) == 1.0


@pytest.mark.parametrize("residual_df", [5.0, 50.0, np.inf])
@pytest.mark.parametrize("p", [0.99, 0.5, 0.05, 1e-6, 1e-14])
def test_the_tail_of_equal_eigenvalues_is_that_of_f_or_chi_square(residual_df, p):
    """Saddlepoints are that of a gamma variable with Stirling's formula in the place of Γ."""
    for count in (1, 4, 30):
        exact = stats.chi2.isf(p, count)
        if residual_df < np.inf:
            exact = count * stats.f.isf(p, count, residual_df)
        tail = score_tests.mixture_tail(3 * exact, np.full(count, 3.0), residual_df)
        assert tail == pytest.approx(p, rel=0.15)


def test_p_values_are_uniform_where_the_variance_is_not_constant(seed):
    """Noise that grows with one column, and columns that depend on each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 2))
    X[:, 1] += X[:, 0]
    rows, coarse, bases = coded(X, np.zeros(1500))
    scale = 0.2 + X[:, 0] ** 2
    p_values = [
        p_value(rows, coarse, bases, scale * rng.normal(size=1500), np.ones(1500))
        for _ in range(400)
    ]
    for level in (0.05, 0.01):
        few, many = stats.binom.ppf([1e-5, 1 - 1e-5], 400, [0.3 * level, 1.2 * level])
        assert few <= np.sum(np.array(p_values) < level) <= many


def test_main_effects_are_no_evidence(seed):
    """Effects of rows and columns of the table, in the metric of the curvatures, change nothing."""
    rng = np.random.default_rng(seed)
    X = rng.random((800, 2))
    X[:, 1] += X[:, 0]
    rows, coarse, bases = coded(X, np.zeros(800))
    weights = rng.random(800) + 0.1
    tables = sums_by_pair([(0, 1)], coarse, rows.codes, [weights, rng.normal(size=800)])
    curvature, gradient = tables[0]
    squares = np.ones_like(curvature)
    shift = rng.normal(size=(curvature.shape[0], 1)) + rng.normal(size=curvature.shape[1])
    plain, shifted = (
        score_tests.p_value(np.stack([curvature, table, squares]), bases[0], bases[1])
        for table in (gradient, gradient + curvature * shift)
    )
    assert shifted == pytest.approx(plain, rel=1e-4)


def test_a_weight_of_two_is_a_row_twice(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((300, 2)), rng.normal(size=300)
    weight = rng.integers(1, 3, 300)
    twice = np.repeat(np.arange(300), weight)
    p_values = []
    for index, weights in ((np.arange(300), weight.astype(float)), (twice, np.ones(len(twice)))):
        rows, coarse, bases = coded(X[index], y[index], weights)
        tables = rows.derivative_tables((), np.zeros(1), SquaredError(), 0, [(0, 1)], coarse)[0]
        p_values.append(score_tests.p_value(tables, bases[0], bases[1]))
    assert p_values[0] == pytest.approx(p_values[1], rel=1e-6)


def test_screening_passes_what_is_significant(seed, monkeypatch):
    """In batches, with columns of different numbers of codes."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((2000, 3)), rng.integers(0, 3, 2000)])
    y = 3 * (X[:, 1] - 0.5) * (X[:, 3] - 1) + rng.normal(size=2000)
    rows, coarse, bases = coded(X, y)
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    y = y - y.mean()
    tables = sums_by_pair(pairs, coarse, rows.codes, [np.ones(2000), -y])
    passed = score_tests.screen_pairs(pairs, tables, bases, float(y.var()))
    assert (1, 3) in passed
    monkeypatch.setattr(score_tests, "SCORE_TEST", replace(SCORE_TEST, batch=1))
    one_by_one = score_tests.screen_pairs(pairs, tables, bases, float(y.var()))
    assert one_by_one == pytest.approx(passed)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "poisson"])
def test_a_significant_pair_is_added(seed, loss, monkeypatch):
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
    monkeypatch.setattr(interactions, "SCORE_TEST", replace(SCORE_TEST, level=0.0))
    assert model.fit(X, y).pair_functions_ == []


def two_factors(rng, missing_share):
    """Cells of two factors, 5 × 2 levels, whose few positive rows one cell may lack."""
    first, second = rng.choice(5, 26_000, p=[0.5, 0.3, 0.15, 0.04, 0.01]), rng.random(26_000) < 0.05
    odds = np.exp(-3.3 + 0.5 * (first == 1) + 0.8 * second)
    odds *= np.where((first == 1) & second, 1 - missing_share, 1.0)
    return pd.DataFrame({"a": first, "b": second}).astype("category"), (
        rng.random(26_000) < odds / (1 + odds)
    )


def test_a_pair_of_two_factors_in_a_cell_of_little_information_is_added(seed):
    """One cell of ten, with a hundredth of the rows, has few of its 30 positive rows."""
    X, y = two_factors(np.random.default_rng(seed), 0.9)
    model = km.AdditiveClassifier(interactions="auto").fit(X, y)
    assert model.term_names_[2:] == ["a × b"]


def test_cells_without_positive_rows_are_no_evidence(seed):
    """Squared gradients of such cells are next to nothing."""
    rng, p_values = np.random.default_rng(seed), []
    shares = np.arange(16, 0, -1.0) ** 2
    for _ in range(150):
        codes = [rng.choice(16, 3000, p=shares / shares.sum()) + 2 for _ in range(2)]
        gradient = 0.03 - (rng.random(3000) < 0.03)
        index = codes[0] * 18 + codes[1]
        tables = [
            np.bincount(index, values, 324).reshape(18, 18)
            for values in (np.full(3000, 0.03 * 0.97), gradient, gradient**2)
        ]
        bases = [marginal_basis(np.bincount(c, minlength=18).astype(float), True) for c in codes]
        p_values.append(score_tests.p_value(np.stack(tables), *bases))
    # Twice the nominal level, and five standard deviations of a count.
    assert np.sum(np.array(p_values) < 0.05) <= stats.binom.ppf(1 - 1e-6, 150, 0.1)


@pytest.mark.parametrize("kind", ["numbers", "few cells"])
def test_a_search_without_pairs_leaves_the_model_as_it_is(seed, kind, monkeypatch):
    monkeypatch.setattr(interactions, "SCORE_TEST", replace(SCORE_TEST, level=0.0))
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((800, 4)) if kind == "numbers" else rng.integers(0, 3, (800, 4)))
    y = np.sin(6 * X[0]) + 2 * rng.normal(size=800)
    X.columns = list("abcd")
    alone = km.AdditiveRegressor().fit(X, y).predict(X)
    searched = km.AdditiveRegressor(interactions="auto").fit(X, y).predict(X)
    np.testing.assert_array_equal(searched, alone)


def test_few_rows_are_not_searched(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((99, 2))
    y = np.sign((X[:, 0] - 0.5) * (X[:, 1] - 0.5))
    assert km.AdditiveRegressor(interactions="auto").fit(X, y).pair_functions_ == []
    listed = km.AdditiveRegressor(interactions=[(0, 1)]).fit(X, y)
    assert len(listed.pair_functions_) == 1


def test_pairs_that_owe_their_significance_to_another_are_not_added(seed):
    """A column that nearly repeats another: the best pair explains most of the others."""
    rng = np.random.default_rng(seed)
    X = rng.random((3000, 4))
    X[:, 2] = X[:, 1] + 0.03 * rng.normal(size=3000)
    y = 6 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + rng.normal(size=3000)
    pairs = km.AdditiveRegressor(interactions="auto").fit(X, y).term_names_[4:]
    assert len(pairs) in (1, 2)
    assert {"x0 × x1", "x0 × x2"} & set(pairs)


def test_constrained_columns_have_no_pairs(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((1500, 2))
    y = 6 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + X[:, 0] + 0.3 * rng.normal(size=1500)
    model = km.AdditiveRegressor(interactions="auto", constraints={0: "increasing"}).fit(X, y)
    assert model.pair_functions_ == []
