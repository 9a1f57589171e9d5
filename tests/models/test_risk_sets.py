"""Risk sets: Efron's partial likelihood by its definition, its derivatives, and concordance."""

import numpy as np
import pytest

from kernelmaps.models.risk_sets import RiskSets, SurvivalTimes


def drawn_times(seed, n=60, ties=8, n_strata=3):
    """Rows with ties, censoring, late entries, strata and weights, some of them zero."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, ties + 1, n).astype(float)
    event = (rng.random(n) < 0.6).astype(float)
    event[0] = 1.0
    entry = np.where(rng.random(n) < 0.5, -1.0, time - rng.integers(1, ties, n))
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], n, p=[0.1, 0.3, 0.3, 0.3])
    weight[0] = 1.0
    times = SurvivalTimes(time, event, entry, rng.integers(0, n_strata, n))
    return times, weight, rng.normal(size=n), rng


def sets_by_definition(times, weight):
    """Of each time of an event in a stratum: the rows at risk, and those with an event."""
    time, event, entry, stratum = times
    happened = (event == 1) & (weight > 0)
    for s, t in sorted(set(zip(stratum[happened], time[happened], strict=True))):
        at_risk = (stratum == s) & (entry < t) & (time >= t) & (weight > 0)
        yield at_risk, at_risk & happened & (time == t)


def loss_by_definition(times, weight, eta):
    total, risk = 0.0, weight * np.exp(eta)
    for at_risk, events in sets_by_definition(times, weight):
        d = events.sum()
        sizes = risk[at_risk].sum() - np.arange(d) / d * risk[events].sum()
        total += weight[events].mean() * np.log(sizes).sum() - weight[events] @ eta[events]
    return total


def test_the_loss_is_that_of_the_definition(seed):
    times, weight, eta, _ = drawn_times(seed)
    sets = RiskSets.from_times(times, weight)
    expected = loss_by_definition(times, weight, eta)
    assert weight @ sets.losses(eta) == pytest.approx(expected, rel=1e-12)


def gradient(sets, times, weight, eta):
    return weight * (sets.relative_risks(eta) - times.event)


def test_derivatives_are_those_of_differences(seed):
    times, weight, eta, _ = drawn_times(seed)
    sets, n, step = RiskSets.from_times(times, weight), len(eta), 1e-5
    at = gradient(sets, times, weight, eta)
    # All z_j are unit vectors: the Gram matrix is that of the scores themselves.
    hessian = np.diag(weight * sets.relative_risks(eta))
    hessian -= sets.gram_of_means(eta, lambda rows: np.eye(n)[rows], n)
    for i in range(n):
        ends = [eta + sign * step * np.eye(n)[i] for sign in (1, -1)]
        value = np.subtract(*(loss_by_definition(times, weight, end) for end in ends))
        assert at[i] == pytest.approx(value / (2 * step), abs=1e-7)
        slopes = np.subtract(*(gradient(sets, times, weight, end) for end in ends))
        np.testing.assert_allclose(hessian[i], slopes / (2 * step), atol=1e-7)
    # A constant in the scores of a stratum changes nothing.
    constants = np.eye(3)[times.stratum]
    np.testing.assert_allclose(hessian @ constants, 0.0, atol=1e-12)
    np.testing.assert_allclose(at @ constants, 0.0, atol=1e-12)


def test_risk_sets_are_summed_up_in_blocks_as_at_once(seed, monkeypatch):
    times, weight, eta, rng = drawn_times(seed)
    sets, matrix = RiskSets.from_times(times, weight), rng.normal(size=(len(eta), 4))
    at_once = sets.gram_of_means(eta, matrix.__getitem__, 4)
    monkeypatch.setattr("kernelmaps.models.risk_sets._BLOCK_VALUES", 4 * 7)
    np.testing.assert_allclose(sets.gram_of_means(eta, matrix.__getitem__, 4), at_once, rtol=1e-12)


def test_concordance_counts_pairs(seed):
    times, weight, eta, _ = drawn_times(seed, n=80)
    eta = eta.round(1)  # with ties
    concordant = pairs = 0.0
    for at_risk, events in sets_by_definition(times, weight):
        for i in np.flatnonzero(events):
            for j in np.flatnonzero(at_risk & ~events):
                pairs += weight[i] * weight[j]
                concordant += weight[i] * weight[j] * ((eta[i] > eta[j]) + 0.5 * (eta[i] == eta[j]))
    sets = RiskSets.from_times(times, weight)
    assert sets.concordance(eta) == pytest.approx(concordant / pairs, rel=1e-12)


def test_rows_without_weight_are_in_no_risk_set(seed):
    times, weight, eta, _ = drawn_times(seed)
    kept = weight > 0
    fewer = SurvivalTimes(*(values[kept] for values in times))
    sets, of_fewer = RiskSets.from_times(times, weight), RiskSets.from_times(fewer, weight[kept])
    np.testing.assert_allclose(sets.losses(eta)[kept], of_fewer.losses(eta[kept]), rtol=1e-12)
    risks = of_fewer.relative_risks(eta[kept])
    np.testing.assert_allclose(sets.relative_risks(eta)[kept], risks, rtol=1e-12)


def test_strata_of_one_row_say_nothing():
    n = 9
    times = SurvivalTimes(np.ones(n), np.arange(n) % 2.0, np.zeros(n), np.arange(n))
    sets, eta = RiskSets.from_times(times, np.ones(n)), np.random.default_rng(0).normal(size=n)
    np.testing.assert_allclose(sets.losses(eta), 0, atol=1e-15)
    np.testing.assert_allclose(sets.relative_risks(eta), times.event, rtol=1e-14)
    assert np.isnan(sets.concordance(eta))


def test_large_scores_are_no_overflow():
    times = SurvivalTimes(np.array([1.0, 2.0, 3.0]), np.ones(3), -np.ones(3), np.zeros(3, int))
    sets = RiskSets.from_times(times, np.ones(3))
    for eta in ([9600.0, 9000.0, 9000.0], [9000.0, 9600.0, 9000.0]):
        losses = sets.losses(np.array(eta))
        np.testing.assert_allclose(losses, [max(eta) - eta[0], eta[1] == 9e3 and np.log(2), 0])
