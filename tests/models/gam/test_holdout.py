"""Hold-out selection of pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from table_columns import columns_of

import kernelmaps as km
from kernelmaps.models.gam.design import GamSettings, build_design, encode_rows
from kernelmaps.models.gam.fitting import fit_outputs
from kernelmaps.models.gam.holdout import (
    HeldOutGain,
    held_out_mask,
    mostly_distinct,
    row_hashes,
)
from kernelmaps.models.gam.interactions import select_by_holdout
from kernelmaps.models.gam.terms import Term
from kernelmaps.models.losses import Squared

CURVED = (False, False)  # a pair that is linear in none of its columns


def some_codes(seed, n=4000):
    return list(np.random.default_rng(seed).integers(0, 200, (3, n)).astype(np.uint8))


def test_a_quarter_is_held_out_by_content_in_any_order(seed):
    codes = some_codes(seed)
    out = held_out_mask(codes, 4000, True)
    assert abs(out.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)
    order = np.random.default_rng(seed).permutation(4000)
    assert np.array_equal(
        held_out_mask([column[order] for column in codes], 4000, True), out[order]
    )
    assert mostly_distinct(codes, 4000)
    assert len(np.unique(row_hashes(codes, 4000))) > 3900


def test_few_contents_are_divided_by_place(seed):
    codes = [column % 2 for column in some_codes(seed)]
    assert not mostly_distinct(codes, 4000)
    out = held_out_mask(codes, 4000, False)
    assert abs(out.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)


def test_the_z_score_of_a_gain_counts_standard_errors(seed):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=1000)
    noise -= noise.mean()
    error = noise.std() / np.sqrt(1000)
    for shift in (1.1, 0.9, -5.0):
        gains, weight = noise + shift * error, np.ones(1000)
        at_once = HeldOutGain.of(gains, weight)
        in_parts = HeldOutGain.of(gains[:300], weight[:300])
        in_parts += HeldOutGain.of(gains[300:], weight[300:])
        scaled = HeldOutGain.of(gains, 1e-6 * weight)  # the unit of weights means nothing
        for gain in (at_once, in_parts, scaled):
            np.testing.assert_allclose(gain.z_score, shift, rtol=1e-9)
    broken = HeldOutGain.of(np.full(3, np.nan), np.ones(3))
    assert HeldOutGain().z_score == broken.z_score == -np.inf


@pytest.mark.parametrize("kind", ["numbers", "few cells"])
def test_pairs_of_noise_leave_the_model_without_pairs(seed, kind):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((800, 4)) if kind == "numbers" else rng.integers(0, 3, (800, 4)))
    X.columns = list("abcd")
    y = np.sin(6 * X["a"]) + 2 * rng.normal(size=800)
    alone = km.AdditiveRegressor().fit(X, y)
    pairs = km.AdditiveRegressor(interactions="auto").fit(X, y)
    if not pairs.pair_functions_:
        np.testing.assert_array_equal(pairs.predict(X), alone.predict(X))
    truth = np.sin(6 * X["a"])
    loss = [np.mean((model.predict(X) - truth) ** 2) for model in (alone, pairs)]
    # Chance lets pairs pass in a few tables of a hundred: they do no harm.
    assert loss[1] < loss[0] + 0.1


def test_a_pair_of_few_cells_is_found(seed):
    """Cells are never held out as a whole."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 3, (1500, 3)), columns=list("abc")).astype("category")
    y = np.where(X["a"] == X["b"], 1.0, 0.0) + 0.3 * rng.normal(size=1500)
    model = km.AdditiveRegressor(interactions="auto").fit(X, y)
    assert model.term_names_[3:] == ["a × b"]


def test_each_pair_of_a_round_is_judged_by_itself(seed):
    """One strong pair among pairs of noise: the first round tries five, and drops most of them."""
    rng = np.random.default_rng(seed)
    X = rng.random((3000, 6))
    y = 2 * np.sign((X[:, 0] - 0.5) * (X[:, 1] - 0.5)) + rng.normal(size=3000)
    model = km.AdditiveRegressor(interactions=5).fit(X, y)
    assert "x0 × x1" in model.term_names_[6:]
    assert len(model.term_names_[6:]) < 5


def test_gains_without_a_pair_are_those_of_the_smaller_model(seed):
    """Leaving a term out leaves the scores of the others as they are."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((300, 2)), rng.normal(size=300)
    losses = [Squared()]
    settings = GamSettings({0: Term("x0"), 1: Term("x1")}, {(0, 1): CURVED})
    rows = encode_rows(columns_of(X), [y], np.ones(300), np.zeros(300), settings)
    model = fit_outputs(build_design(rows, losses, settings), losses, settings)
    smaller = model.without({(0, 1)})
    assert [term.columns for term in smaller.design.terms] == [(0,), (1,)]
    (gain,) = rows.gains(losses, [smaller.coefficients], model.coefficients)
    pair, beta = model.design.terms[2], model.fits[0].beta
    values = pair.basis.values @ beta[-pair.basis.n_functions :]
    contribution = values[pair.pair.codes(rows.codes)]
    scores = rows.with_terms(model.design.terms, None, 0).scores(beta)
    lower = 0.5 * (y - scores + contribution) ** 2 - 0.5 * (y - scores) ** 2
    np.testing.assert_allclose(gain.sums[2:], [lower.sum(), (lower**2).sum()], rtol=1e-9)


def test_few_rows_are_not_searched(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((99, 2))
    y = np.sign((X[:, 0] - 0.5) * (X[:, 1] - 0.5))
    assert km.AdditiveRegressor(interactions="auto").fit(X, y).pair_functions_ == []
    listed = km.AdditiveRegressor(interactions=[(0, 1)]).fit(X, y)
    assert len(listed.pair_functions_) == 1


@pytest.mark.parametrize("first", [True, False])
def test_a_first_round_that_harms_is_not_saved_by_a_selection(seed, first):
    """Rows that refuse two pairs together say little about the better one of them."""

    class HeldOutRows:
        calls = 0

        def gains(self, losses, others, model):
            self.calls += 1
            means = [-1.0, 2.0, -2.0] if self.calls == 1 else [9.0]
            assert len(means) == len(others)
            return [HeldOutGain.of(np.array([m - 0.1, m + 0.1]), np.ones(2)) for m in means]

    rng = np.random.default_rng(seed)
    X, y = rng.random((300, 3)), rng.normal(size=300)
    models = []
    for pairs in ({}, {(0, 1): CURVED, (1, 2): CURVED}):
        settings = GamSettings({j: Term(f"x{j}") for j in range(3)}, pairs)
        rows = encode_rows(columns_of(X), [y], np.ones(300), np.zeros(300), settings)
        design = build_design(rows, [Squared()], settings)
        models.append(fit_outputs(design, [Squared()], settings))
    held_out = HeldOutRows()
    selected = select_by_holdout(held_out, [Squared()], *models, first)
    if first:
        assert selected is None
        assert held_out.calls == 1
    else:
        columns = [term.columns for term in selected.design.terms]
        assert columns == [(0,), (1,), (2,), (0, 1)]
