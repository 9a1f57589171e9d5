"""Tests of terms, standard errors of predictions, and intervals of new observations."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import kernelmaps as km
from kernelmaps.models.gam.inference import random_effects_test, wald_test

# -- tests of terms -------------------------------------------------------------------------------


def groups(rng, n_rows, n_levels, sd):
    level = np.arange(n_rows) % n_levels
    y = sd * rng.normal(size=n_levels)[level] + rng.normal(size=n_rows)
    return level, pd.DataFrame({"level": [f"l{k}" for k in level]}), y


def test_levels_of_as_many_rows_have_the_f_test(seed):
    """The REML estimates of a balanced design are those of the analysis of variance."""
    rng = np.random.default_rng(seed)
    level, X, y = groups(rng, 240, 8, sd=0.6)
    term = km.AdditiveRegressor().fit(X, y).predictor_.terms[0]
    exact = stats.f_oneway(*(y[level == k] for k in range(8)))
    assert term.edf[0] > 0.5
    assert term.reference_df[0] == pytest.approx(7)
    assert term.statistic[0] == pytest.approx(exact.statistic, rel=0.01)
    # The residual degrees of freedom are n − edf instead of n − 8.
    assert np.log(term.p_value[0]) == pytest.approx(np.log(exact.pvalue), rel=0.05)


@pytest.mark.parametrize(
    ("sd", "low", "high"),
    [(0.0, 0.015, 0.1), (0.45, 0.7, 1.0)],  # nominally 0.05; the F test has a power of 0.8
)
def test_error_rate_and_power_for_categories(sd, low, high):
    rng = np.random.default_rng(0)
    significant, of_f = [], []
    for _ in range(150):
        level, X, y = groups(rng, 96, 8, sd)
        model = km.AdditiveRegressor(n_jobs=1).fit(X, y)
        significant.append(model.predictor_.terms[0].p_value[0] < 0.05)
        of_f.append(stats.f_oneway(*(y[level == k] for k in range(8))).pvalue < 0.05)
    assert low < np.mean(significant) < high
    assert np.mean(significant) > np.mean(of_f) - 0.05


def test_a_line_of_few_rows_has_an_f_test():
    """With χ², 8 % of the p-values of 15 rows would be below 0.05."""
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(400):
        x, y = rng.random((15, 1)), rng.normal(size=15)
        model = km.AdditiveRegressor(terms={0: "linear"}, smoothing=1e-6, n_jobs=1).fit(x, y)
        p_values.append(model.predictor_.terms[0].p_value[0])
    assert 0.03 < np.mean(np.array(p_values) < 0.05) < 0.075


def test_wald_statistics_are_those_of_linear_models(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 4))
    covariance, beta = root @ root.T, rng.normal(size=4)
    exact = beta @ np.linalg.solve(covariance, beta)
    known, estimated = wald_test(beta, covariance, 4.0), wald_test(beta, covariance, 4.0, 20.0)
    assert known.statistic == pytest.approx(exact)
    assert known.p_value == pytest.approx(stats.chi2.sf(exact, 4))
    assert estimated.p_value == pytest.approx(stats.f.sf(exact / 4, 4, 20))


def test_random_effects_with_a_known_variance_have_a_mixture(seed):
    """Against simulated coefficients of the null distribution."""
    rng = np.random.default_rng(seed)
    root, penalty = rng.normal(size=(5, 3)), rng.gamma(2.0, size=3)
    gram = root.T @ root
    covariance = np.linalg.inv(gram + np.diag(penalty))
    scores = rng.normal(size=(20_000, 5)) @ root  # without an effect
    null = np.einsum("ij,jk,ik->i", scores @ covariance, gram, scores @ covariance)
    beta = covariance @ scores[np.argsort(null)[-1000]]
    test = random_effects_test(beta, covariance, penalty)
    assert test.p_value == pytest.approx(0.05, abs=0.006)


def test_a_category_that_is_shrunk_to_nothing_is_not_significant():
    X = pd.DataFrame({"level": ["a", "b"] * 40, "x": np.repeat(np.arange(40.0), 2)})
    y = np.where(np.arange(80) // 2 % 2 == 0, 1.0, -1.0)  # the same in both levels
    term = km.AdditiveRegressor().fit(X, y).predictor_.terms[0]
    assert term.edf[0] < 0.05
    assert term.p_value[0] > 0.4
