"""Cosine designs: published optima, nesting, an independent global search; starts and programs."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kernelmaps.design import cosines
from kernelmaps.design.approximation import build_problem, cosine_sum
from kernelmaps.design.cosines import (
    alternation,
    gauss_start,
    harmonic_design,
    refined_design,
    remez_design,
)
from kernelmaps.exceptions import DesignError
from kernelmaps.kernels import Cauchy, Gaussian, Laplacian, Matern


@cache
def error_of(kernel, n_columns, domain=(1, 255), error="absolute"):
    problem = build_problem(kernel, domain, error)
    return problem.max_error(refined_design(problem, n_columns))


# Best known, to be met within 1 %: largest absolute error on [1, 255].
BEST_KNOWN = {
    ("chi2", 5): 0.1634,
    ("chi2", 7): 0.010555,
    ("js", 5): 0.01856,
    ("js", 7): 6.734e-4,
    ("intersection", 5): 9.675,
    ("intersection", 9): 4.737,
}


@pytest.mark.parametrize(("kernel", "n_columns"), BEST_KNOWN, ids=str)
def test_best_known_cosine_maps(kernel, n_columns):
    assert error_of(kernel, n_columns) <= 1.01 * BEST_KNOWN[kernel, n_columns]


@pytest.mark.parametrize(("n_columns", "best"), [(3, 1.257e-2), (5, 2.8e-3), (7, 7.94e-4)])
def test_universal_maps_hold_for_all_ratios(n_columns, best):
    problem = build_problem("chi2", "universal")
    pair = refined_design(problem, n_columns)
    far = replace(problem, span=60.0)  # e^{-30}: beyond it nothing is left
    assert far.max_error(pair) <= 1.01 * best


@pytest.mark.parametrize(("n_columns", "best"), [(7, 5.211e-2), (11, 3.36e-3), (15, 8.97e-5)])
def test_gaussian_on_0_pi(n_columns, best):
    assert error_of(Gaussian(np.sqrt(0.1)), n_columns, (0, np.pi)) <= 1.01 * best


@pytest.mark.parametrize(
    ("kernel", "domain", "error"),
    [
        ("chi2", (1, 10), "absolute"),
        ("chi2", (1, 1e4), "relative"),
        ("js", (1, 1e4), "absolute"),
        ("js", (1, 10), "signature"),
    ],
)
def test_more_columns_are_never_worse(kernel, domain, error):
    errors = [error_of(kernel, size, domain, error) for size in range(1, 12)]
    # below 1e-12 the rounding of k itself decides
    assert all(b <= a + 1e-12 * domain[1] for a, b in itertools.pairwise(errors))
    assert errors[0] > 3 * errors[4]


@pytest.mark.parametrize("kernel", ["intersection", Laplacian(0.5), Matern(1.5, 0.5), Cauchy(0.5)])
def test_rough_kernels_improve_with_every_column(kernel):
    domain = (1, 255) if kernel == "intersection" else (0, 3)
    errors = [error_of(kernel, size, domain) for size in (2, 3, 5)]
    assert all(b < a for a, b in itertools.pairwise(errors))


def test_designs_are_deterministic_and_exact_where_they_can_be():
    problem = build_problem("intersection", (1, 50))
    first, second = (refined_design(problem, 3, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    single = build_problem(lambda lag: np.cos(0.6 * lag), (0, np.pi))  # Figure 1 of the paper
    frequencies, weights = refined_design(single, 2)
    np.testing.assert_allclose(frequencies, [0.6], rtol=1e-10)
    np.testing.assert_allclose(weights, [1.0], rtol=1e-10)


def test_discrete_set_is_no_worse_than_the_interval_and_alternates():
    interval = build_problem("chi2", (1, 15))
    discrete = build_problem("chi2", np.arange(16))
    pair = refined_design(discrete, 4)
    continuous = refined_design(interval, 4)
    assert discrete.max_error(pair) <= discrete.max_error(continuous) * (1 + 1e-9)
    assert discrete.max_error(pair) < interval.max_error(continuous)
    assert alternation(discrete, pair, slack=1e-2).size == 5


def test_user_weight_moves_the_error_where_it_does_not_count():
    def late(lag):
        return np.where(lag > 2, 1.0, 0.01)

    problem = build_problem("chi2", (1, 255), late)
    plain = build_problem("chi2", (1, 255), "signature")
    lags = np.linspace(2.1, problem.span, 200)

    def miss(pair):
        return np.max(np.abs(plain.signature(lags) - cosine_sum(lags, pair)))

    assert miss(refined_design(problem, 4)) < 0.5 * miss(refined_design(plain, 4))


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


def test_gauss_start_declines_indefinite_signatures():
    problem = build_problem(lambda lag: 1 - 3 * lag**2, (0, 2))
    assert gauss_start(problem, 6, 2.0) is None


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
    pair = remez_design(problem, n_columns)
    assert alternation(problem, pair, slack=1e-4).size == n_columns + 1


def test_errors_near_rounding_are_reached_over_longer_spans():
    """10:1 with 11 columns is best to 7e-13: its moments are lost in rounding on that span."""
    problem = build_problem("chi2", (1, 10))
    assert problem.max_error(remez_design(problem, 11)) < 8e-12


def test_projection_of_a_periodic_signature_is_its_fourier_series():
    problem = build_problem(lambda lag: 0.5 + 0.3 * np.cos(lag) + 0.2 * np.cos(4 * lag), (0, np.pi))
    frequencies, weights = harmonic_design(problem, 5)
    np.testing.assert_allclose(frequencies, [0, 1, 4])
    np.testing.assert_allclose(weights, [0.5, 0.3, 0.2], atol=1e-12)


class Refusal:
    """What HiGHS says of a program that it cannot solve."""

    x, status, message = None, 4, "numerical trouble"


def refuse(*args, **kwargs):
    return Refusal


def test_a_program_that_fails_is_solved_another_way(monkeypatch):
    rng = np.random.default_rng(0)
    model, weights = rng.normal(size=(40, 5)), rng.uniform(size=3)
    target = 0.1 * rng.normal(size=40) - model[:, 1]
    arguments = model, target, weights, np.array([0, 2])
    *plain, error = cosines.least_error_step(*arguments)
    assert np.min(plain[0] + weights) < 1e-9  # a weight may not become negative
    monkeypatch.setattr(cosines, "milp", refuse)
    *others, again = cosines.least_error_step(*arguments)
    assert again == pytest.approx(error, rel=1e-6)
    np.testing.assert_allclose(np.concatenate(others), np.concatenate(plain), atol=1e-5)


def test_solver_failure_names_status_and_remedy(monkeypatch):
    monkeypatch.setattr(cosines, "milp", refuse)
    monkeypatch.setattr(cosines, "linprog", refuse)
    with pytest.raises(DesignError, match=r"numerical trouble.*status 4.*shorter domain"):
        cosines.least_error(np.eye(3), np.ones(3))
