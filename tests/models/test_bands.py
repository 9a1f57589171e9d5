"""Critical values of bands, for single points and for all of them at once."""

import numpy as np
import pytest
from scipy import stats

from kernelmaps.models.shapes import (
    path_length,
    pointwise_critical_value,
    simultaneous_critical_value,
)


def curve(n_points=200, n_functions=6):
    """Errors of a curve: cosines with independent coefficients."""
    x = np.linspace(0, 1, n_points)[:, None]
    return np.cos(np.pi * x * np.arange(n_functions))


@pytest.mark.parametrize("df", [np.inf, 12.0])
def test_a_band_covers_the_whole_curve_as_often_as_stated(seed, df):
    """Against the maximum of simulated errors (Ruppert, Wand and Carroll 2003)."""
    rng, basis = np.random.default_rng(seed), curve()
    errors = np.linalg.norm(basis, axis=1)
    length = path_length(errors, np.linalg.norm(np.diff(basis, axis=0), axis=1))
    draws = np.abs(basis @ rng.normal(size=(basis.shape[1], 20_000)))
    if df < np.inf:
        draws /= np.sqrt(rng.chisquare(df, 20_000) / df)
    largest = (draws / errors[:, None]).max(axis=0)
    for level in (0.8, 0.95):
        value = simultaneous_critical_value(level, length, len(basis), df)
        # Four standard deviations of 20,000 draws. The formula counts a curve that leaves the band
        # twice as two, which is of second order.
        noise = 4 * np.sqrt(level * (1 - level) / 20_000)
        assert level - noise < np.mean(largest < value) < level + (1 - level) ** 2 + noise


def test_the_path_of_a_circle_has_its_length():
    angle = np.linspace(0, 2.5, 400)
    basis = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (1 + angle[:, None])
    errors, increments = (np.linalg.norm(b, axis=1) for b in (basis, np.diff(basis, axis=0)))
    assert path_length(errors, increments) == pytest.approx(2.5)


def test_single_points_and_points_without_an_order():
    assert pointwise_critical_value(0.95, np.inf) == pytest.approx(1.959964)
    assert pointwise_critical_value(0.95, 7.0) == pytest.approx(stats.t.ppf(0.975, 7))
    assert simultaneous_critical_value(0.95, 0.0, 1, np.inf) == pytest.approx(1.959964)
    levels = simultaneous_critical_value(0.95, np.inf, 5, 20.0)
    assert levels == pytest.approx(stats.t.ppf(1 - 0.025 / 5, 20))
    # A path through few points is not longer than these points.
    assert simultaneous_critical_value(0.95, 1e3, 5, 20.0) == pytest.approx(levels)
