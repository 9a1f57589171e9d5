"""Fits of one column alone, and what is decided by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.models.gam import single_column, terms
from kernelmaps.models.gam.bases import (
    banded_normal_equations,
    difference_penalty,
    number_basis,
    splines,
)
from kernelmaps.models.gam.single_column import (
    SMOOTHING_GRID,
    ColumnTargets,
    curve_likelihoods,
    fit_alone,
)
from kernelmaps.models.rows.normal_equations import NormalEquations
from kernelmaps.models.solvers.reml import (
    Penalties,
    coarse_smoothing,
    estimate_smoothing,
    penalised_fit,
)


def targets_of(codes, bins, *outputs):
    counts = np.bincount(codes, minlength=bins + 1).astype(float)
    targets = np.stack([np.bincount(codes, y, bins + 1) for y in outputs])
    return ColumnTargets(counts, targets, np.array([y @ y for y in outputs]))


def equations_of(column, position, **options):
    """Banded normal equations of one column on some axes."""
    targets = [column] * len(position)
    return terms._normal_equations(np.stack(position), targets, options), targets


def one_column(seed, n=3000, bins=60):
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, bins + 1, n)
    place = (np.arange(bins) + 0.5) / bins
    y = np.sin(9 * place[codes - 1]) + rng.normal(size=n)
    y -= y.mean()
    counts = np.bincount(codes, minlength=bins + 1).astype(float)
    basis = number_basis(place, counts, n_bases=20, degree=3, order=2)
    return basis, targets_of(codes, bins, y), codes, y


def test_the_sum_over_coefficients_is_the_restricted_likelihood(seed):
    """The best smoothing parameter of the grid is that of the full criterion."""
    basis, signal, codes, y = one_column(seed)
    n = len(y)
    Z = np.column_stack([np.ones(n), basis.values[codes]])
    penalties = Penalties.of_bases([basis])
    problem = NormalEquations(Z.T @ Z, Z.T @ y, float(y @ y), float(n))
    fits = [
        penalised_fit(problem, penalties, np.array([np.log(n * smoothing), 0.0]))
        for smoothing in SMOOTHING_GRID
    ]
    best = min(fits, key=lambda fit: fit.criterion)
    likelihood, edf = fit_alone(basis, signal)
    exact = np.sum(1 - penalties.diagonal(best.rho) * best.inverse.diagonal()) - 1
    # The basis is orthonormal up to the ridge for codes without rows, 1e-7 of its mean diagonal.
    assert edf == pytest.approx(exact, rel=1e-5)
    twice = targets_of(codes, 60, y, y)
    assert fit_alone(basis, twice) == (pytest.approx(2 * likelihood), pytest.approx(edf))


@pytest.mark.parametrize("missing", [False, True])
def test_axes_are_compared_by_their_restricted_likelihoods(seed, missing, monkeypatch):
    """Differences between axes are those of full fits, up to the steps of the grid."""
    monkeypatch.setattr(single_column, "SMOOTHING_GRID", np.geomspace(1e-7, 1e3, 601))
    rng = np.random.default_rng(seed)
    n, bins, size = 2000, 50, 15
    codes = rng.integers(0 if missing else 1, bins + 1, n)
    place = (np.arange(bins) + 0.5) / bins
    axes = [place, place**2, 0.5 * (place + place**2)]
    y = np.sin(9 * np.append(0, place)[codes] ** 2) + 0.5 * rng.normal(size=n)
    y -= y.mean()
    counts = np.bincount(codes, minlength=bins + 1).astype(float)
    signal = targets_of(codes, bins, y)
    options = {"n_bases": size, "degree": 3, "order": 2}
    exact, likelihoods = [], curve_likelihoods(*equations_of(signal, axes, **options))
    for axis in axes:
        basis = number_basis(axis, counts, **options)
        Z = np.column_stack([np.ones(n), basis.values[codes]])
        problem = NormalEquations(Z.T @ Z, Z.T @ y, float(y @ y), float(n))
        start = np.array([np.log(n), -9.0])  # straight parts are free
        fit = estimate_smoothing(problem, Penalties.of_bases([basis]), start, fixed=start < 0)
        # The criterion leaves out the determinant of the penalty, which differs between axes.
        exact.append(0.5 * np.sum(np.log(basis.penalty)) - fit.criterion)
    assert np.ptp(exact) > 1
    np.testing.assert_allclose(np.diff(likelihoods), np.diff(exact), atol=0.01)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("size", [12, 60])  # splines, and a coefficient for each of 40 bins
@pytest.mark.parametrize(("order", "keep_line"), [(2, False), (1, False), (1, True)])
def test_banded_likelihoods_are_those_of_natural_bases(seed, missing, size, order, keep_line):
    rng = np.random.default_rng(seed)
    n, bins = 1000, 40
    codes = rng.integers(0 if missing else 1, bins + 1, n)
    place = np.cumsum(rng.uniform(0.2, 1, bins))
    place = (place - place[0]) / np.ptp(place)
    counts = np.bincount(codes, minlength=bins + 1).astype(float)
    outputs = []
    for effect in (np.sin(9 * place) + place, place > 0.5):
        y = np.append(1, effect)[codes] + rng.normal(size=n)
        outputs.append(y - y.mean())
    column = targets_of(codes, bins, *outputs)
    options = {"n_bases": size, "degree": 3, "order": order}
    basis = number_basis(place, counts, keep_line=keep_line, **options)
    if keep_line:  # the line is in the range space as well: one function is zero
        basis = basis.smoothest(basis.n_functions - 1)
    likelihood = curve_likelihoods(*equations_of(column, [place], **options), keep_line)
    # The ridge for splines without rows is 1e-10 of the rows; the natural basis has none.
    np.testing.assert_allclose(likelihood, fit_alone(basis, column)[0], rtol=0, atol=1e-10 * n)


def test_a_curve_for_steps_has_its_basis_only_if_it_is_taken(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    built, rough_basis = [], terms._rough_basis

    def recorded(curve, position):
        built.append(curve.column.book.name)
        return rough_basis(curve, position)

    monkeypatch.setattr(terms, "_rough_basis", recorded)
    X = rng.random((3000, 2))
    y = np.floor(4 * X[:, 0]) % 2 + X[:, 1] + 0.3 * rng.normal(size=3000)
    km.AdditiveRegressor().fit(X, y)
    assert built == ["x0"]


def test_curves_are_decided_on_together_as_each_by_itself(seed, monkeypatch):
    """Columns of several numbers of values, steps and missing values among them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.lognormal(size=(900, 3)), rng.integers(0, 30, (900, 2)) ** 2, rng.random((900, 2))]
    )
    X[rng.random(X.shape) < 0.02] = np.nan
    y = np.floor(3 * np.nan_to_num(X[:, 6])) + np.log1p(np.nan_to_num(X[:, 0])) + rng.random(900)
    together = km.AdditiveRegressor().fit(X, y)
    monkeypatch.setattr(terms, "CURVES", replace(terms.CURVES, curves_at_a_time=1))
    apart = km.AdditiveRegressor().fit(X, y)
    np.testing.assert_array_equal(together.eval_terms(X), apart.eval_terms(X))


def test_bases_that_are_not_taken_are_not_computed(seed, monkeypatch):
    """One for each curve: its likelihoods on all axes, and with steps, are known without them."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(size=(3000, 2))
    y = np.floor(4 * np.minimum(X[:, 0], 2.0)) + np.sin(X[:, 1]) + 0.3 * rng.normal(size=3000)
    built, number_basis = [], terms.number_basis

    def counted(*arguments, **options):
        built.append(options["n_bases"])
        return number_basis(*arguments, **options)

    monkeypatch.setattr(terms, "number_basis", counted)
    km.AdditiveRegressor().fit(X, y)
    assert built[0] == terms.CURVES.n_bases_rough
    assert len(built) == 2


def test_bands_are_those_of_the_matrices(seed):
    rng = np.random.default_rng(seed)
    place, size = (np.arange(60) + 0.5) / 60, 12
    counts, target = rng.integers(1, 9, 60).astype(float), rng.normal(size=60)
    sums, options = (counts[None], target[None, None]), {"n_bases": size, "degree": 3, "order": 2}
    bands = banded_normal_equations(place[None], *sums, **options)
    basis = splines(place, size, 3)
    np.testing.assert_allclose(bands.rhs[0, 0], basis.T @ target, atol=1e-12)
    gram = basis.T @ (counts[:, None] * basis)
    gram += 1e-10 * np.diag(gram).mean() * np.eye(size)  # for splines without rows
    for b in range(4):
        band = bands.gram[0, b, : size - b]
        np.testing.assert_allclose(band, np.diagonal(gram, -b), rtol=1e-12, atol=1e-12)
        of_penalty = np.diagonal(difference_penalty(size, 2), -b)
        np.testing.assert_array_equal(bands.penalty[0, b, : size - b], of_penalty)
    few = banded_normal_equations(place[None] ** 40, *sums, **options)
    assert bands.empty_share[0] < few.empty_share[0] < 1


@pytest.mark.parametrize(
    ("truth", "worse"), [(np.sin, "quantile"), (lambda x: np.exp(-3 * x), "even")]
)
def test_a_skewed_column_gets_the_axis_on_which_it_is_smooth(seed, truth, worse):
    rng = np.random.default_rng(seed)
    x, x_test = rng.lognormal(0, 1, (2, 3000, 1))
    y = truth(x[:, 0]) + 0.3 * rng.normal(size=3000)
    expected = truth(x_test[:, 0])

    def error(**options):
        model = km.AdditiveRegressor(terms=[km.Term(0, **options)]).fit(x, y)
        return np.sqrt(np.mean((model.predict(x_test) - expected) ** 2))

    assert error() < error(knots=worse)


@pytest.mark.parametrize("size", [1000, 12_000])
def test_a_straight_effect_of_a_skewed_column_is_a_straight_line(seed, size):
    """Its error is that of a line: of three numbers (two slopes, an intercept), and some curve.

    A curve of six more degrees of freedom would have twice this error.
    """
    rng = np.random.default_rng(seed)
    errors, used = [], []
    for _ in range(5):
        X = np.column_stack([rng.lognormal(0, 1, size), rng.random(size)])
        truth = X.sum(axis=1)
        noise = X[:, 0].std()
        model = km.AdditiveRegressor().fit(X, truth + noise * rng.normal(size=size))
        errors.append(np.sqrt(np.mean((model.predict(X) - truth) ** 2)) / noise)
        used.append(model.predictor_.terms[0].edf[0])
    assert np.median(errors) < 1.5 * np.sqrt(3 / size)
    assert np.median(used) < 4


def test_the_choice_of_an_axis_does_not_bend_a_straight_effect(seed):
    """Without noise, any other axis than that of the values would need a curve for x0."""
    X = np.random.default_rng(seed).random((300, 2))
    model = km.AdditiveRegressor().fit(X, X[:, 0] + X[:, 1] ** 2)
    straight, curved = (term.edf[0] for term in model.predictor_.terms)
    assert straight == pytest.approx(1, abs=0.1)
    assert curved > 2


UNEVEN = {
    "outlier": np.array([0.0, 1, 2, 3, 10]),
    "price list": np.array([1.0, 2, 5, 10, 20, 50, 100]),
    "lognormal": np.exp(2 * np.sin(np.arange(25.0))),
    "close pair": np.array([0.0, 1e-9, 1, 2, 4, 8]),
}


@pytest.mark.parametrize("knots", ["auto", "even"])
@pytest.mark.parametrize("values", UNEVEN)
def test_a_straight_effect_of_a_few_uneven_values_is_straight(seed, values, knots):
    """Its error is that of least squares, of two numbers; a value for each level would have more.

    With one coefficient for each of m values it would be sqrt(m / 2) times as large.
    """
    rng, errors, used = np.random.default_rng(seed), [], []
    for _ in range(15):
        x = rng.choice(UNEVEN[values], 1000)
        truth = x / x.std()
        model = km.AdditiveRegressor(terms=[km.Term(0, knots=knots)])
        model.fit(x[:, None], truth + 0.1 * rng.normal(size=1000))
        errors.append(np.mean((model.predict(x[:, None]) - truth) ** 2))
        used.append(model.predictor_.terms[0].edf[0])
    assert np.median(used) < 2
    # The mean of 15 χ² with two degrees of freedom, and some curve: it is below 2.5 times that of
    # two degrees by four standard deviations.
    assert np.mean(errors) < 2.5 * 2 * 0.1**2 / 1000


@pytest.mark.parametrize("n", [20, 30, 100])
def test_a_straight_effect_of_few_rows_is_straight(seed, n):
    """REML bends one line in five or so."""
    rng, used = np.random.default_rng(seed), []
    for _ in range(15):
        x = rng.normal(size=n)
        model = km.AdditiveRegressor().fit(x[:, None], x + 0.1 * rng.normal(size=n))
        used.append(model.predictor_.terms[0].edf[0])
    assert np.median(used) < 2


@pytest.mark.parametrize("knots", ["auto", "even", "quantile"])
@pytest.mark.parametrize("values", ["outlier", "price list", "lognormal"])
def test_effects_of_a_few_uneven_values_are_followed(seed, values, knots):
    """They are the means of the levels if these differ by far more than their errors."""
    rng, levels = np.random.default_rng(seed), UNEVEN[values]
    effects = rng.permutation(np.linspace(-2, 2, len(levels)))
    codes = rng.integers(0, len(levels), 3000)
    y = effects[codes] + 0.1 * rng.normal(size=3000)
    model = km.AdditiveRegressor(terms=[km.Term(0, knots=knots)]).fit(levels[codes][:, None], y)
    means = np.bincount(codes, y) / np.bincount(codes)
    error = model.predict(levels[:, None]) - means
    assert np.sqrt(np.mean(error**2)) < 0.1 * np.sqrt(len(levels) / 3000)


@pytest.mark.parametrize("truth", [np.log1p, np.square, np.sign])
@pytest.mark.parametrize("values", ["outlier", "price list", "lognormal"])
def test_the_sign_of_a_few_uneven_values_does_not_matter(seed, values, truth):
    rng = np.random.default_rng(seed)
    x = rng.choice(UNEVEN[values], (500, 1))
    y = truth(x[:, 0]) + rng.normal(size=500)
    model, mirrored = (km.AdditiveRegressor().fit(s * x, y) for s in (1, -1))
    np.testing.assert_allclose(model.predict(x), mirrored.predict(-x), rtol=1e-4, atol=1e-3)


def test_straight_lines_are_never_left_out(seed):
    basis, _, _, _ = one_column(seed)
    for most in (2, 5):
        small = basis.smoothest(most)
        assert small.n_functions == most
        assert (small.smoothing_index == 1).sum() == (basis.smoothing_index == 1).sum() == 1
        assert small.penalty[small.smoothing_index == 0].max() <= np.sort(basis.penalty)[most]


def test_coarse_smoothing_is_close_to_that_of_all_functions(seed):
    """They start a search: from there the criterion has almost nothing left to gain."""
    rng = np.random.default_rng(seed)
    n, sizes = 2000, (40, 40)
    Z = np.column_stack([np.ones(n), rng.normal(size=(n, sum(sizes)))])
    scale = np.concatenate([[0.0], *(np.arange(1, size + 1.0) ** 4 / 1e4 for size in sizes)])
    group = np.concatenate([[-1], np.repeat([0, 1], sizes)])
    beta = np.where(group == 0, 2 / np.arange(len(group)).clip(1) ** 2, 0)
    y = Z @ beta + rng.normal(size=n)
    y -= y.mean()
    problem = NormalEquations(Z.T @ Z, Z.T @ y, float(y @ y), float(n))
    penalties = Penalties(scale, group, 2)
    start = np.full(2, np.log(n))
    rho = coarse_smoothing(problem, penalties, start)
    criteria = [penalised_fit(problem, penalties, r).criterion for r in (start, rho)]
    assert criteria[1] < criteria[0]
    fixed = coarse_smoothing(problem, penalties, start, None, np.array([True, False]))
    assert fixed[0] == start[0]


@pytest.mark.parametrize("jump", [0.0, 1.5])
def test_a_value_that_many_rows_share_may_lie_off_the_curve(seed, jump):
    """Half of the rows hold zero, and the values begin right beside it."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(4000) < 0.5, 0.0, 0.01 + rng.gamma(2.0, 1.0, 4000))
    y = np.sin(x) + jump * (x == 0) + 0.5 * rng.normal(size=4000)
    model = km.AdditiveRegressor().fit(x[:, None], y)
    first = model.predictor_.books[0].nodes[1]  # zero's own bin is the first
    beside, zero = model.predict([[first], [0.0]])
    # Beside zero some hundred rows with a standard deviation of one half determine the curve.
    assert abs((zero - beside) - (jump - np.sin(first))) < 0.3


def test_a_bin_with_a_coefficient_of_its_own_is_fitted_by_it(seed):
    basis, _, codes, _ = one_column(seed)
    counts = np.bincount(codes, minlength=61).astype(float)
    place = (np.arange(60) + 0.5) / 60
    options = {"n_bases": 20, "degree": 3, "order": 2}
    apart = number_basis(place, counts, jumps=[0], **options)
    assert apart.n_functions == basis.n_functions + 1
    target = (np.arange(61) == 1) - counts[1] / counts.sum()  # centred, as all terms are
    with_rows = counts > 0
    for functions, close in ((apart, True), (basis, False)):
        values = functions.values[with_rows]
        residual = target[with_rows] - values @ np.linalg.lstsq(values, target[with_rows])[0]
        assert (np.abs(residual).max() < 1e-8) == close
    few = number_basis(place, counts, n_bases=60, degree=3, order=2, jumps=[0])
    assert few.n_functions == 59  # a coefficient for each bin already


def test_steps_are_followed_and_smooth_effects_stay_smooth(seed, monkeypatch):
    """The error at steps is lower than without a curve for them; a wave and a line stay."""
    rng = np.random.default_rng(seed)
    X, new = rng.random((2, 3000, 3))
    y = np.floor(4 * X[:, 0]) % 2 + np.sin(6 * X[:, 1]) + X[:, 2] + 0.3 * rng.normal(size=3000)
    model = km.AdditiveRegressor().fit(X, y)
    monkeypatch.setattr(terms, "CURVES", replace(terms.CURVES, rough_cost=np.inf))
    smooth = km.AdditiveRegressor().fit(X, y)
    true = np.floor(4 * new[:, 0]) % 2
    errors = [np.std(fit.eval_terms(new)[:, 0] - true) for fit in (model, smooth)]
    assert errors[0] < 0.85 * errors[1]
    after, before = (fit.predictor_.terms for fit in (model, smooth))
    assert after[0].edf[0] > before[0].edf[0] + 5
    for j in (1, 2):
        assert after[j].edf[0] == pytest.approx(before[j].edf[0], abs=0.5)
