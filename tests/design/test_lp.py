"""Pools and the two linear programs of section 2.1."""

import numpy as np
import pytest

from kernelmaps.design import lp
from kernelmaps.design.lp import (
    bounded_lp,
    columns,
    fit_pool,
    frequency_pool,
    harmonic_design,
    lp_design,
    merge_clusters,
    refitted,
    tradeoff_lp,
    truncate,
)
from kernelmaps.design.problem import build_problem
from kernelmaps.exceptions import DesignError


def test_pools_are_nested_and_even_sizes_have_no_zero_frequency():
    problem = build_problem("chi2", (1, 255))
    coarse, fine = frequency_pool(problem, 5, halvings=1), frequency_pool(problem, 5, halvings=2)
    assert np.all(np.min(np.abs(coarse[:, None] - fine), axis=1) < 1e-12)  # Ω_j ⊂ Ω_{j+1}
    np.testing.assert_allclose(fine[1], np.pi / (4 * np.log(255)))
    assert 0 in fine
    assert 0 not in frequency_pool(problem, 6)


def test_trade_off_moves_from_sparse_to_exact_with_gamma():
    problem = build_problem("chi2", (1, 255))
    pool = frequency_pool(problem, 9)
    errors = [problem.max_error((pool, tradeoff_lp(problem, pool, g))) for g in (1.0, 10.0, 1e4)]
    assert errors[0] > errors[1] > errors[2]


def test_bounded_program_meets_its_bound_or_says_no():
    problem = build_problem("chi2", (1, 255))
    pool = frequency_pool(problem, 9)
    weights = bounded_lp(problem, pool, 0.5)
    assert problem.max_error((pool, weights)) <= 0.5 * (1 + 1e-3)
    assert columns(pool[weights > 1e-9]) < columns(pool)
    coarse = pool[:4]
    assert bounded_lp(problem, coarse, 0.5 * refitted(problem, coarse)[0]) is None


def test_pool_fit_is_no_worse_than_any_other_weights(seed):
    problem = build_problem("js", (1, 50))
    pool = frequency_pool(problem, 5, halvings=1)[:6]
    best = fit_pool(problem, pool)
    rng = np.random.default_rng(seed)
    for _ in range(50):
        other = np.maximum(best + 0.05 * rng.standard_normal(best.size), 0)
        assert problem.max_error((pool, best)) <= problem.max_error((pool, other)) * (1 + 1e-3)


def test_truncation_counts_columns_and_merging_keeps_mass():
    pool, weights = np.array([0.0, 1.0, 1.1, 3.0]), np.array([0.2, 0.3, 0.1, 0.4])
    np.testing.assert_array_equal(truncate(pool, weights, 3), [0.0, 3.0])
    np.testing.assert_array_equal(truncate(pool, weights, 4), [1.0, 3.0])
    merged, mass = merge_clusters(pool, weights, gap=0.2)
    np.testing.assert_allclose(merged, [0.0, 1.025, 3.0])
    np.testing.assert_allclose(mass, [0.2, 0.4, 0.4])


def test_pool_design_beats_the_projection_and_loses_to_refinement():
    """Section 4.1 against harmonics; the 5-D optimum is 0.1634, the projection has 4.5."""
    problem = build_problem("chi2", (1, 255))
    pooled = problem.max_error(lp_design(problem, 5, halvings=3))
    projected = problem.max_error(harmonic_design(problem, 5))
    assert 0.1634 < pooled < 0.6
    assert projected > 5 * pooled


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
    arguments = model, target, weights, np.array([0, 2]), "max"
    *plain, error = lp.least_error_step(*arguments)
    assert np.min(plain[0] + weights) < 1e-9  # a weight may not become negative
    monkeypatch.setattr(lp, "milp", refuse)
    simplex = lp.linprog

    def interior(*args, method, **kwargs):
        return Refusal if method == "highs" else simplex(*args, method=method, **kwargs)

    for solver in (simplex, interior):
        monkeypatch.setattr(lp, "linprog", solver)
        *others, again = lp.least_error_step(*arguments)
        assert again == pytest.approx(error, rel=1e-6)
        np.testing.assert_allclose(np.concatenate(others), np.concatenate(plain), atol=1e-5)


def test_solver_failure_names_status_and_remedy(monkeypatch):
    monkeypatch.setattr(lp, "milp", refuse)
    monkeypatch.setattr(lp, "linprog", refuse)
    problem = build_problem("chi2", (1, 255))
    with pytest.raises(DesignError, match=r"numerical trouble.*status 4.*shorter domain"):
        fit_pool(problem, frequency_pool(problem, 3))
