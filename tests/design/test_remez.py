"""Gauss starts interpolate; levelling equioscillates."""

import numpy as np
import pytest

from kernelmaps.design.cosines import alternation, gauss_start, interpolate, remez_design
from kernelmaps.design.problem import build_problem, cosine_sum
from kernelmaps.kernels import Gaussian


@pytest.mark.parametrize("n_columns", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("kernel", ["chi2", "js", "intersection"])
def test_gauss_start_interpolates_with_positive_weights(kernel, n_columns):
    problem = build_problem(kernel, (1, 255))
    frequencies, weights = gauss_start(problem, n_columns, problem.span)
    nodes = (np.arange(n_columns) + 0.5) * problem.span / (n_columns - 0.5)
    np.testing.assert_allclose(
        cosine_sum(nodes, (frequencies, weights)), problem.signature(nodes), atol=1e-11
    )
    assert np.all(weights > 0)
    assert frequencies.size == (n_columns + 1) // 2
    assert (frequencies[0] == 0) == bool(n_columns % 2)


def test_gauss_start_recovers_a_mixture_of_cosines():
    """A two-cosine signature is its own Gauss rule with four columns."""
    problem = build_problem(lambda lag: 0.3 * np.cos(0.7 * lag) + 0.7 * np.cos(2.1 * lag), (0, 3))
    frequencies, weights = gauss_start(problem, 4, 3.0)
    np.testing.assert_allclose(frequencies, [0.7, 2.1], rtol=1e-8)
    np.testing.assert_allclose(weights, [0.3, 0.7], rtol=1e-8)


def test_gauss_start_declines_indefinite_signatures():
    problem = build_problem(lambda lag: 1 - 3 * lag**2, (0, 2))
    assert gauss_start(problem, 6, 2.0) is None


def test_interpolation_moves_with_its_nodes():
    problem = build_problem("chi2", (1, 255))
    start = gauss_start(problem, 5, problem.span)
    nodes = (np.arange(5) + 0.5) * problem.span / 4.5 * 0.97
    frequencies, weights = interpolate(problem, start, nodes)
    np.testing.assert_allclose(
        cosine_sum(nodes, (frequencies, weights)), problem.signature(nodes), atol=1e-12
    )


CASES = [
    ("chi2", (1, 10), "absolute"),
    ("chi2", (1, 1e4), "relative"),
    ("js", (1, 255), "relative"),
    ("js", (1, 1e4), "absolute"),
    ("intersection", (1, 255), "relative"),
    (Gaussian(np.sqrt(0.1)), (0, np.pi), "absolute"),
]


@pytest.mark.parametrize(("kernel", "domain", "error"), CASES, ids=str)
@pytest.mark.parametrize("n_columns", [1, 4, 5, 8])
def test_levelled_designs_equioscillate(kernel, domain, error, n_columns):
    """D + 1 alternations at one height: the certificate of local optimality."""
    problem = build_problem(kernel, domain, error)
    cosines = remez_design(problem, n_columns)
    assert alternation(problem, cosines, slack=1e-4).size == n_columns + 1


def test_errors_near_rounding_are_reached_over_longer_spans():
    """10:1 with 11 columns is best to 7e-13: its moments are lost in rounding on that span."""
    problem = build_problem("chi2", (1, 10))
    assert problem.max_error(remez_design(problem, 11)) < 8e-12
