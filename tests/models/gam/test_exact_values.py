"""Fits of few rows take functions at the values of the rows, not at the means of their bins."""

from dataclasses import replace

import numpy as np
import pandas as pd
from table_columns import columns_of

import kernelmaps as km
from kernelmaps.models.gam import base, design
from kernelmaps.models.gam.design import build_design, encode_rows
from kernelmaps.models.gam.terms import GamSettings, Term
from kernelmaps.models.losses import SquaredError
from kernelmaps.models.rows.basis import LevelBasis
from kernelmaps.models.rows.term_rows import TermRows


def design_of(X, y, kinds):
    """The design of columns of numbers with terms of these kinds."""
    n = len(X)
    settings = GamSettings({j: Term(f"x{j}", kind) for j, kind in enumerate(kinds)}, {})
    rows = encode_rows(columns_of(X), [y], np.ones(n), np.zeros(n), settings)
    return build_design(rows, [SquaredError()], settings)


def test_small_differences_of_columns_are_seen(seed, monkeypatch):
    """Bins of six rows are wider than the difference of two columns, which is the effect."""
    rng, n = np.random.default_rng(seed), 1500
    common, difference = rng.normal(size=2 * n), rng.normal(size=2 * n)
    X = np.column_stack([common, common + 0.004 * difference])
    y = difference + 0.1 * rng.normal(size=2 * n)
    exact = km.AdditiveRegressor().fit(X[:n], y[:n])
    assert exact.score(X[n:], y[n:]) > 0.9
    monkeypatch.setattr(design, "MAX_EXACT_ROWS", n - 1)
    binned = km.AdditiveRegressor().fit(X[:n], y[:n])
    assert binned.score(X[n:], y[n:]) < 0.8


def test_functions_at_values_are_those_of_predictions(seed):
    """Curves, lines and missing values; beyond the means of the outer bins, too."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(size=(400, 3))
    X[:20, 0] = np.nan
    y = np.sin(3 * X[:, 1]) + X[:, 2] + np.where(np.isnan(X[:, 0]), 1.0, X[:, 0])
    kinds = ("spline", "spline", "linear")
    model = km.AdditiveRegressor(terms=[Term(j, kind) for j, kind in enumerate(kinds)]).fit(X, y)
    terms = design_of(X, y, kinds).terms
    contributions = model.eval_terms(X)
    for j, term in enumerate(terms):
        assert term.basis.at_rows.shape == (400, term.basis.n_functions)
        # The values of a fitted term at its codes are these of the same functions.
        fitted = model.predictor_.terms[j].values[:, 0]
        beta = np.linalg.lstsq(term.basis.values, fitted, rcond=None)[0]
        np.testing.assert_allclose(term.basis.at_rows @ beta, contributions[:, j], atol=1e-6)
        np.testing.assert_allclose(term.basis.at_rows.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(contributions.mean(axis=0), 0, atol=1e-6)


def test_a_dense_matrix_has_the_sums_of_codes(seed):
    """If the functions at the rows are those at their codes, a large factor among the terms."""
    rng = np.random.default_rng(seed)
    X, n = rng.integers(0, 30, (500, 2)).astype(float), 500
    terms = design_of(X, X[:, 0], ("spline", "linear")).terms
    assert all(term.basis.at_rows is None for term in terms)  # a code for each value
    levels = rng.integers(0, 300, n).astype(np.uint16)
    codes = [1 + X[:, j].astype(np.uint8) for j in (0, 1)]
    factor = LevelBasis(np.bincount(levels, minlength=300).astype(float))
    bases = [term.basis for term in terms]
    y, weight, offset = rng.normal(size=(3, n))
    coded = TermRows([*codes, levels], [*bases, factor], y, weight**2, offset)
    at_rows = [
        replace(basis, at_rows=basis.values[code]) for basis, code in zip(bases, codes, strict=True)
    ]
    dense = replace(coded, bases=[at_rows[0], bases[1], factor])
    beta = rng.normal(size=1 + sum(basis.n_functions for basis in [*bases, factor]))
    np.testing.assert_allclose(dense.scores(beta), coded.scores(beta), atol=1e-10)
    np.testing.assert_allclose(dense.adjoint(y), coded.adjoint(y), atol=1e-10)
    for ours, theirs in zip(
        dense.gram_and_rhs(weight**2, y), coded.gram_and_rhs(weight**2, y), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    border, expected = dense.level_sums(weight**2), coded.level_sums(weight**2)
    np.testing.assert_allclose(border.border, expected.border, atol=1e-10)
    np.testing.assert_allclose(border.weight, expected.weight, atol=1e-10)
    active = np.array([0, 2, 3, *range(len(beta) - 300, len(beta))])
    ours, theirs = dense.restrict(active), coded.restrict(active)
    np.testing.assert_allclose(ours.scores(beta[active]), theirs.scores(beta[active]), atol=1e-10)


def test_many_rows_are_taken_at_their_bins(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(301, 2)), rng.normal(size=301)
    kinds = ("spline", "linear")
    assert all(term.basis.at_rows is not None for term in design_of(X, y, kinds).terms)
    monkeypatch.setattr(design, "MAX_EXACT_ROWS", 300)
    assert all(term.basis.at_rows is None for term in design_of(X, y, kinds).terms)


def test_few_rows_of_a_stream_are_fitted_as_in_memory(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.lognormal(size=300), "b": rng.normal(size=300)})
    y = np.sin(X["a"]) + rng.normal(size=300)
    chunks = [(X[:200], y[:200]), (X[200:], y[200:])]
    in_memory = km.AdditiveRegressor().fit(X, y).predict(X)
    np.testing.assert_allclose(km.AdditiveRegressor().fit(chunks).predict(X), in_memory, rtol=1e-9)
    monkeypatch.setattr(base, "MAX_EXACT_ROWS", 299)
    streamed = km.AdditiveRegressor().fit(chunks).predict(X)
    assert np.abs(streamed - in_memory).max() > 1e-6
