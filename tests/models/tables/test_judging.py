"""Held-out rows that judge pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.models.tables.judging import Gain, contents, held_out, mostly_different


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


def test_a_gain_is_sure_beyond_one_standard_error(seed):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=1000)
    noise -= noise.mean()
    error = noise.std() / np.sqrt(1000)
    for shift, sure in ((1.1, True), (0.9, False), (-5.0, False)):
        whole, parts = Gain(), Gain()
        whole.add(noise + shift * error, np.ones(1000))
        parts.add(noise[:300] + shift * error, np.ones(300))
        parts.add(noise[300:] + shift * error, np.ones(700))
        assert whole.sure == parts.sure == sure
        scaled = Gain()
        scaled.add(noise + shift * error, np.full(1000, 1e-6))  # the unit of weights means nothing
        assert scaled.sure == sure
    assert not Gain().sure
    broken = Gain()
    broken.add(np.full(3, np.nan), np.ones(3))
    assert not broken.sure


@pytest.mark.parametrize("kind", ["numbers", "few cells"])
def test_pairs_of_noise_leave_the_model_without_pairs(seed, kind):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((800, 4)) if kind == "numbers" else rng.integers(0, 3, (800, 4)))
    X.columns = list("abcd")
    y = np.sin(6 * X["a"]) + 2 * rng.normal(size=800)
    alone = km.AdditiveRegressor(smoothing="auto").fit(X, y)
    pairs = km.AdditiveRegressor(interactions="auto").fit(X, y)
    if not pairs.pair_functions_:
        np.testing.assert_array_equal(pairs.predict(X), alone.predict(X))
    truth = np.sin(6 * X["a"])
    loss = [np.mean((model.predict(X) - truth) ** 2) for model in (alone, pairs)]
    # Chance lets a go pass with one standard error in about a sixth of all tables: it does no harm.
    assert loss[1] < loss[0] + 0.1


def test_a_pair_of_few_cells_is_found(seed):
    """Cells are never held out as a whole."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 3, (1500, 3)), columns=list("abc")).astype("category")
    y = np.where(X["a"] == X["b"], 1.0, 0.0) + 0.3 * rng.normal(size=1500)
    model = km.AdditiveRegressor(interactions="auto").fit(X, y)
    assert model.term_names_[3:] == ["a × b"]


def test_few_rows_are_not_searched(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((99, 2))
    y = np.sign((X[:, 0] - 0.5) * (X[:, 1] - 0.5))
    assert km.AdditiveRegressor(interactions="auto").fit(X, y).pair_functions_ == []
    listed = km.AdditiveRegressor(interactions=[(0, 1)]).fit(X, y)
    assert len(listed.pair_functions_) == 1
