"""Losses: each entry holds the laws that the solver rests on, in Python and compiled."""

import numpy as np
import pytest
from loss_of_targets import make_loss

from kernelmaps._util.compiling import loop, static
from kernelmaps.models.losses import GAM, LOSSES, SVM, find_loss, list_losses
from kernelmaps.models.solvers import _dual_loops

EVERY = pytest.mark.parametrize("name", [name for name, kind in LOSSES.items() if kind.dual_rules])
EPSILON = 0.1
# exp(−t) that overflows is the right limit of a sigmoid.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in exp:RuntimeWarning")


def cases(name, seed, n=300):
    """Targets, scores, feasible dual variables, diagonals and costs of all sizes."""
    rng, loss = np.random.default_rng(seed), LOSSES[name].dual_rules
    labels = LOSSES[name].has_labels
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if labels else rng.normal(size=n)
    f, q = 2 * rng.normal(size=n), 10.0 ** rng.uniform(-2, 2, n)
    c = 10.0 ** rng.uniform(-4, 4, n)
    # A step from 0 ends at a feasible variable.
    alpha = [loss.step(*z, 0.0, 1.0, k, EPSILON)[0] for *z, k in zip(y, 3 * f, c, strict=True)]
    return np.column_stack([y, f, alpha, q, c]).tolist()


def gap(loss, y, f, alpha, c):
    """c ℓ + (cℓ)*(−α) + α f, and the size of its terms."""
    parts = c * loss.value(y, f, EPSILON), loss.conjugate(y, alpha, c, EPSILON), alpha * f
    return sum(parts), sum(map(abs, parts)) + c + abs(alpha)


@EVERY
def test_fenchel_holds_for_every_score_and_variable(name, seed):
    loss = LOSSES[name].dual_rules
    for y, f, alpha, _, c in cases(name, seed):
        value, size = gap(loss, y, f, alpha, c)
        assert value >= -1e-14 * size


@EVERY
def test_gap_is_zero_after_a_step(name, seed):
    loss = LOSSES[name].dual_rules
    # The step solves α = −c ℓ'(f + q (α − α_old)), where Fenchel's inequality is an equality. The
    # logistic step ends at 1e-9 of t; a gap grows with the square of the distance.
    for y, f, old, q, c in cases(name, seed):
        new, _ = loss.step(y, f, old, q, c, EPSILON)
        value, size = gap(loss, y, f + q * (new - old), new, c)
        assert abs(value) <= 1e-12 * (size + q * abs(new) * abs(new - old))


@EVERY
def test_step_that_moves_nothing_says_how_firmly_it_rests(name, seed):
    loss = LOSSES[name].dual_rules
    for y, f, old, q, c in cases(name, seed):
        new, _ = loss.step(y, f, old, q, c, EPSILON)
        again, rest = loss.step(y, f + q * (new - old), new, q, c, EPSILON)
        assert again == pytest.approx(new, rel=1e-7, abs=1e-9 * c)
        if rest > 1e-6:  # at a bound: a score that changes by less does not move it
            moved, _ = loss.step(y, f + q * (new - old) + 0.4 * rest, new, q, c, EPSILON)
            assert moved == new


@EVERY
def test_derivatives_are_those_of_the_value(name, seed):
    y, f = np.array(cases(name, seed)).T[:2]
    loss = make_loss(name, y, epsilon=EPSILON)
    by_rule = [loss.dual_rules.value(*z, EPSILON) for z in zip(y, f, strict=True)]
    np.testing.assert_allclose(loss.svm_factor * loss.value(y, f), by_rule, atol=1e-12)
    if loss.has_kinks:  # a sum of hinges, by which its value is computed
        sign, margin = loss.hinges(y)
        assert sign.shape == margin.shape == (1 if loss.has_labels else 2, len(y))
        assert (np.abs(sign) == 1).all()
        return
    # Away from corners of the derivative, differences of the fourth order are exact to h⁴ and
    # rounding.
    h = 1e-3
    gradient, curvature = loss.derivatives(y, f)
    around = [(loss.value(y, f + k * h), loss.derivatives(y, f + k * h)[0]) for k in (-2, -1, 1, 2)]
    away = abs(1 - y * f) > 2 * h
    assert away.mean() > 0.9
    for order, derivative in ((0, gradient), (1, curvature)):
        a, b, c, d = (values[order] for values in around)
        np.testing.assert_allclose(
            ((a - 8 * b + 8 * c - d) / (12 * h))[away], derivative[away], atol=1e-8
        )
    assert loss.is_quadratic == (np.ptp(curvature) == 0)


@loop(fastmath=True, _nrt=False)
def compiled_rules(loss, y, f, alpha, q, c, epsilon):
    """New variable, derivative at a bound, loss and gap of one example, as the loops see them."""
    new, bound_derivative = _dual_loops._step(loss, y, f, alpha, q, c, epsilon)
    value, gap = _dual_loops._loss_and_gap(loss, y, f, alpha, c, epsilon)
    return new, bound_derivative, value, gap


@EVERY
def test_compiled_rules_are_the_entries(name, seed):
    loss = LOSSES[name].dual_rules
    kind = static(list(LOSSES).index(name))
    for y, f, alpha, q, c in cases(name, seed, 50):
        found = compiled_rules(kind, y, f, alpha, q, c, EPSILON)
        value, size = gap(loss, y, f, alpha, c)
        step, slack = loss.step(y, f, alpha, q, c, EPSILON)
        np.testing.assert_allclose(found[:2], (step, slack), rtol=1e-8, atol=1e-8 * (1 + c))
        assert found[2] == pytest.approx(c * loss.value(y, f, EPSILON), rel=1e-12, abs=1e-300)
        assert found[3] == pytest.approx(value, abs=1e-13 * size)


def test_names_are_those_of_scikit_learn():
    assert list_losses(SVM, True) == ("squared_hinge", "hinge", "log_loss")
    assert list_losses(SVM, False) == ("squared_error", "epsilon_insensitive")
    assert {name for name, kind in LOSSES.items() if not kind.dual_rules} == {
        "absolute_error", "quantile", "poisson", "gamma", "negative_binomial", "tweedie",
        "binomial", "beta", "ordinal",
        "cox", "location_scale", "multinomial",
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"Owner: loss must be one of .*log_loss.*, got 'cubic'"):
        find_loss("Owner", "cubic", True, SVM)
    with pytest.raises(ValueError, match="got 'squared_error'"):
        find_loss("Owner", "squared_error", True, SVM)
    with pytest.raises(ValueError, match="got 3"):
        find_loss("Owner", 3, True, SVM)

    with pytest.raises(ValueError, match="'poisson' is a loss of AdditiveRegressor"):
        find_loss("Owner", "poisson", False, SVM)
    with pytest.raises(ValueError, match="'tweedie' is a loss of AdditiveRegressor"):
        find_loss("Owner", "tweedie", True, GAM)
    with pytest.raises(ValueError, match=r"one of 'cox', got CoxPartialLikelihood\(\)"):
        find_loss("Owner", LOSSES["cox"], False, GAM, times=True)
    with pytest.raises(ValueError, match="'hinge' is a loss of AdditiveSVC"):
        find_loss("Owner", "hinge", True, GAM)
