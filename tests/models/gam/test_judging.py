"""Held-out rows that judge pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.data.frames import read_columns
from kernelmaps.models.gam import fitting
from kernelmaps.models.gam.fitting import Request, design_of, fit_design, hold_rows
from kernelmaps.models.gam.judging import Gain, contents, held_out, mostly_different
from kernelmaps.models.gam.terms import Term
from kernelmaps.models.losses import Squared


def some_codes(seed, n=4000):
    return list(np.random.default_rng(seed).integers(0, 200, (3, n)).astype(np.uint8))


def test_a_quarter_is_held_out_by_content_in_any_order(seed):
    codes = some_codes(seed)
    out = held_out(codes, 4000, True)
    assert abs(out.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)
    order = np.random.default_rng(seed).permutation(4000)
    assert np.array_equal(held_out([own[order] for own in codes], 4000, True), out[order])
    assert mostly_different(codes, 4000)
    assert len(np.unique(contents(codes, 4000))) > 3900


def test_few_contents_are_divided_by_place(seed):
    codes = [own % 2 for own in some_codes(seed)]
    assert not mostly_different(codes, 4000)
    out = held_out(codes, 4000, False)
    assert abs(out.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)


def test_the_certainty_of_a_gain_counts_standard_errors(seed):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=1000)
    noise -= noise.mean()
    error = noise.std() / np.sqrt(1000)
    for shift in (1.1, 0.9, -5.0):
        whole, parts, scaled = Gain(), Gain(), Gain()
        whole.add(noise + shift * error, np.ones(1000))
        parts.add(noise[:300] + shift * error, np.ones(300))
        parts.add(noise[300:] + shift * error, np.ones(700))
        scaled.add(noise + shift * error, np.full(1000, 1e-6))  # the unit of weights means nothing
        for gain in (whole, parts, scaled):
            np.testing.assert_allclose(gain.certainty, shift, rtol=1e-9)
    broken = Gain()
    broken.add(np.full(3, np.nan), np.ones(3))
    assert Gain().certainty == broken.certainty == -np.inf


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


def test_each_pair_of_a_go_is_judged_by_itself(seed):
    """One strong pair among pairs of noise: the first go adds five, and most of them leave."""
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
    request = Request({0: Term("x0"), 1: Term("x1")}, [(0, 1)])
    rows = hold_rows(read_columns(X, "test"), [y], np.ones(300), np.zeros(300), request)
    design = design_of(rows, losses, request)
    fits = [fit_design(design, losses[0], 0, request)]
    smaller, fewer = fitting._without(design, fits, {(0, 1)})
    assert [part.columns for part in smaller.parts] == [(0,), (1,)]
    (gain,) = rows.gains(losses, [fitting._scored(smaller, fewer)], fitting._scored(design, fits))
    pair = design.parts[2]
    own = pair.basis.values @ fits[0].weights[-pair.basis.n_functions :]
    added = own[pair.pair.codes(rows.codes)]
    whole = rows.coded(design.parts, None, 0).scores(fits[0].weights)
    lower = 0.5 * (y - whole + added) ** 2 - 0.5 * (y - whole) ** 2
    np.testing.assert_allclose(gain.sums[2:], [lower.sum(), (lower**2).sum()], rtol=1e-9)


def test_few_rows_are_not_searched(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((99, 2))
    y = np.sign((X[:, 0] - 0.5) * (X[:, 1] - 0.5))
    assert km.AdditiveRegressor(interactions="auto").fit(X, y).pair_functions_ == []
    listed = km.AdditiveRegressor(interactions=[(0, 1)]).fit(X, y)
    assert len(listed.pair_functions_) == 1


@pytest.mark.parametrize("first", [True, False])
def test_a_first_go_that_harms_is_not_saved_by_a_choice(seed, first):
    """Rows that refuse two pairs together say little about the better one of them."""

    class Judges:
        asked = 0

        def gains(self, losses, others, model):
            self.asked += 1
            wanted = [-1.0, 2.0, -2.0] if self.asked == 1 else [9.0]
            found = [Gain() for _ in others]
            for gain, mean in zip(found, wanted, strict=True):
                gain.add(np.array([mean - 0.1, mean + 0.1]), np.ones(2))
            return found

    rng = np.random.default_rng(seed)
    X, y = rng.random((300, 3)), rng.normal(size=300)
    trials = []
    for pairs in ([], [(0, 1), (1, 2)]):
        request = Request({j: Term(f"x{j}") for j in range(3)}, pairs)
        rows = hold_rows(read_columns(X, "test"), [y], np.ones(300), np.zeros(300), request)
        design = design_of(rows, [Squared()], request)
        trials.append((design, [fit_design(design, Squared(), 0, request)]))
    judges = Judges()
    kept = fitting._judged(judges, [Squared()], *trials, first)
    if first:
        assert kept is None
        assert judges.asked == 1
    else:
        assert [part.columns for part in kept[0].parts] == [(0,), (1,), (2,), (0, 1)]
