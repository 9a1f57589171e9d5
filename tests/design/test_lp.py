"""Linear programs, and what is done where one fails."""

import numpy as np
import pytest

from kernelmaps.design import cosines as lp
from kernelmaps.design.cosines import harmonic_design
from kernelmaps.design.problem import build_problem
from kernelmaps.exceptions import DesignError


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
    *plain, error = lp.least_error_step(*arguments)
    assert np.min(plain[0] + weights) < 1e-9  # a weight may not become negative
    monkeypatch.setattr(lp, "milp", refuse)
    *others, again = lp.least_error_step(*arguments)
    assert again == pytest.approx(error, rel=1e-6)
    np.testing.assert_allclose(np.concatenate(others), np.concatenate(plain), atol=1e-5)


def test_solver_failure_names_status_and_remedy(monkeypatch):
    monkeypatch.setattr(lp, "milp", refuse)
    monkeypatch.setattr(lp, "linprog", refuse)
    with pytest.raises(DesignError, match=r"numerical trouble.*status 4.*shorter domain"):
        lp.least_error(np.eye(3), np.ones(3))
