"""Standard deviations, intervals and bounds of StreamingRidge, against exact models in memory."""

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.stats import binom
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import BayesianRidge

import kernelmaps as km

MAP = RBFSampler(gamma=0.1, n_components=25, random_state=0)
CHANCE = 1e-9  # probability that a test of coverage fails although the statement is true


def regression(seed, n=300, d=4, t=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1
    Y = np.sin(X @ rng.normal(size=(d, t))) + 0.4 * rng.normal(size=(n, t)) + 7
    return X, Y[:, 0] if t == 1 else Y


def contrasts(Z, y):
    """The n − 1 orthonormal contrasts of the rows: what a flat prior of the intercept leaves."""
    H = helmert(len(Z))
    return H @ Z, H @ y


# ---- the evidence -------------------------------------------------------------------------------


def test_evidence_is_the_marginal_likelihood_of_a_gaussian_process(seed):
    X, y = regression(seed)
    Z, u = contrasts(MAP.fit_transform(X), y)
    model = km.StreamingRidge("evidence", MAP).fit(X, y)
    noise = model.noise_variance_
    kernel = ConstantKernel(noise / model.alpha_) * DotProduct(0, "fixed") + WhiteKernel(noise)
    exact = GaussianProcessRegressor(kernel, optimizer=None, alpha=0).fit(Z, u)
    value, gradient = exact.log_marginal_likelihood(exact.kernel_.theta, eval_gradient=True)
    assert model.cv_results_["log_evidence"] == pytest.approx([value], abs=1e-7)
    # A maximum over the prior σ²/α and the noise σ².
    np.testing.assert_allclose(gradient, 0, atol=1e-4)


def test_alpha_and_noise_are_those_of_bayesian_ridge(seed):
    X, y = regression(seed)
    Z, u = contrasts(MAP.fit_transform(X), y)
    flat = dict.fromkeys(("alpha_1", "alpha_2", "lambda_1", "lambda_2"), 0.0)
    exact = BayesianRidge(fit_intercept=False, max_iter=100_000, tol=1e-13, **flat).fit(Z, u)
    model = km.StreamingRidge("evidence", MAP).fit([(X[:170], y[:170]), (X[170:], y[170:])])
    assert model.alpha_ == pytest.approx(exact.lambda_ / exact.alpha_, rel=1e-4)
    assert model.noise_variance_ == pytest.approx(1 / exact.alpha_, rel=1e-5)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-4)
    centred = MAP.transform(X) - MAP.transform(X).mean(axis=0)
    _, std = exact.predict(centred, return_std=True)  # of an observation, without an intercept
    _, own = model.predict(X, return_std=True)
    noise = model.noise_variance_
    np.testing.assert_allclose(own**2 + noise - noise / len(X), std**2, rtol=1e-4)


def test_evidence_chooses_the_size_of_the_pca(seed):
    X, y = regression(seed)
    model = km.StreamingRidge("evidence", MAP, n_components=[2, 5, 20]).fit(X, y)
    values = model.cv_results_["log_evidence"]
    assert values.shape == (3,)
    assert model.n_components_ == [2, 5, 20][np.argmax(values)]
    single = [km.StreamingRidge("evidence", MAP, n_components=k).fit(X, y) for k in (2, 5, 20)]
    np.testing.assert_allclose([m.alpha_ for m in single], model.cv_results_["alpha"], rtol=1e-5)


def test_targets_without_signal_leave_the_mean(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3))
    flat = km.StreamingRidge("evidence").fit(X, np.full(50, 3.0))
    assert flat.predict(X) == pytest.approx(np.full(50, 3.0))
    assert flat.noise_variance_ == 0
    constant = km.StreamingRidge("evidence").fit(np.ones((50, 3)), X[:, 0])
    np.testing.assert_allclose(constant.predict(np.ones((2, 3))), X[:, 0].mean())
    assert constant.noise_variance_ == pytest.approx(X[:, 0].var(ddof=1))


def test_evidence_follows_chunks_merges_and_weights(seed):
    X, y = regression(seed, 200)
    feature_map = MAP.fit(X)
    whole = km.StreamingRidge("evidence", feature_map).fit(X, y)
    grown = km.StreamingRidge("evidence", feature_map).partial_fit(X[:50], y[:50])
    first = grown.noise_variance_
    grown.partial_fit(X[50:120], y[50:120])
    grown.merge(km.StreamingRidge("evidence", feature_map).fit(X[120:], y[120:]))
    assert grown.alpha_ == pytest.approx(whole.alpha_, rel=1e-4)
    assert grown.noise_variance_ == pytest.approx(whole.noise_variance_, rel=1e-6)
    assert first != grown.noise_variance_
    w = np.random.default_rng(seed).integers(1, 4, 200)
    weighted = km.StreamingRidge("evidence", feature_map).fit(X, y, w)
    repeated = km.StreamingRidge("evidence", feature_map).fit(X.repeat(w, 0), y.repeat(w))
    for model in (weighted, repeated):
        model.predict(X[:5], return_std=True)
    np.testing.assert_allclose(
        weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), rtol=1e-5
    )


def test_a_classifier_may_choose_alpha_by_the_evidence(seed):
    X, y = regression(seed)
    labels = np.digitize(y, [6.7, 7.2])
    model = km.StreamingRidgeClassifier("evidence", MAP).fit(X, labels)
    one_hot = np.equal.outer(labels, np.arange(3)).astype(float)
    ridge = km.StreamingRidge("evidence", MAP).fit(X, one_hot)
    assert model.alpha_ == pytest.approx(ridge.alpha_, rel=1e-4)  # the maximum is flat
    pairs = km.StreamingRidgeClassifier("evidence", MAP, multi_class="ovo").fit(X, labels)
    assert pairs.alpha_ > 0


# ---- standard deviations ------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [None, 6])
@pytest.mark.parametrize("t", [1, 2])
def test_standard_deviations_are_those_of_a_gaussian_process(seed, n_components, t):
    X, y = regression(seed, t=t)
    model = km.StreamingRidge(0.3, MAP, n_components=n_components).fit(X, y)
    Z = MAP.fit_transform(X)
    Z = Z - Z.mean(axis=0)
    if n_components is not None:
        Z = Z @ np.linalg.svd(Z, full_matrices=False)[2][:n_components].T
    means, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(means, model.predict(X))
    for mean, own, target, noise in zip(
        means.reshape(300, -1).T, std.reshape(300, -1).T, y.reshape(300, -1).T,
        np.atleast_1d(model.noise_variance_), strict=True,
    ):  # fmt: skip
        kernel = ConstantKernel(noise / 0.3) * DotProduct(0, "fixed")
        rows, u = contrasts(Z, target)
        exact = GaussianProcessRegressor(kernel, optimizer=None, alpha=noise).fit(rows, u)
        f, latent = exact.predict(Z, return_std=True)
        np.testing.assert_allclose(mean - target.mean(), f, atol=1e-7)
        np.testing.assert_allclose(own**2, latent**2 + noise / 300, rtol=1e-6)


def test_it_is_gaussian_process_regression_with_the_kernel_of_the_map(seed):
    rng = np.random.default_rng(seed)
    X, alpha = rng.uniform(0, 3, (120, 1)), 1.0
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=120)
    y -= y.mean()
    feature_map = km.RandomFourierMap(n_components=1024, sigma=1.0, random_state=0).fit(X)
    model = km.StreamingRidge(alpha, feature_map).fit(X, y)
    noise, grid = model.noise_variance_, np.linspace(-2, 5, 50)[:, None]
    # The flat prior of the intercept is one of a large variance.
    kernel = ConstantKernel(noise / alpha) * RBF(1.0) + ConstantKernel(1e6 * noise)
    exact = GaussianProcessRegressor(kernel, optimizer=None, alpha=noise).fit(X, y)
    mean, std = model.predict(grid, return_std=True)
    f, latent = exact.predict(grid, return_std=True)
    both = np.vstack([X, grid])
    error = np.abs(feature_map.transform(both) @ feature_map.transform(both).T - RBF(1.0)(both))
    eps = error.max()
    # After Cortes, Mohri and Talwalkar (2010): u' are the residuals over α.
    u = np.linalg.norm(y - model.predict(X)) / alpha
    assert np.all(np.abs(mean - f) <= u * eps * (2 * np.sqrt(120) + 60 * np.sqrt(2 / alpha)) + 1e-6)
    # As there: the variance is k̃(x, x) − k̃ᵀ(K̃ + α)⁻¹k̃ in units of the prior's, with κ̃ <= 2.
    bound = eps * (4 + 2 * np.sqrt(240 / alpha) + 240 / (4 * alpha))
    assert np.all(np.abs(std**2 - latent**2) <= bound * noise / alpha)
    assert std[0] > 3 * std[25]  # far from the rows much less is known


def test_noise_is_the_usual_estimate_without_a_penalty(seed):
    X, y = regression(seed)
    model = km.StreamingRidge(0.0).fit(X, y)
    A = np.column_stack([np.ones(300), X])
    rss = np.linalg.lstsq(A, y)[1][0]
    assert model.noise_variance_ == pytest.approx(rss / (300 - 5), rel=1e-9)
    _, std = model.predict(X, return_std=True)
    leverage = np.einsum("ij,jk,ik->i", A, np.linalg.inv(A.T @ A), A)
    np.testing.assert_allclose(std**2, leverage * rss / 295, rtol=1e-8)


def test_several_kernels_with_a_pca_each_have_deviations(seed):
    X, y = regression(seed)
    maps = [clone(MAP).fit(X[:, :2]), clone(MAP).fit(X[:, 2:])]
    kernels = [(slice(0, 2), maps[0]), (slice(2, 4), maps[1], 5)]
    model = km.StreamingRidge(0.3, kernels, n_components=8).fit(X, y)
    parts = [maps[0].transform(X[:, :2]), maps[1].transform(X[:, 2:])]
    Z = [P - P.mean(axis=0) for P in parts]
    U = [np.linalg.svd(P, full_matrices=False)[2][:k].T for P, k in zip(Z, (8, 5), strict=True)]
    P = np.hstack([z @ u for z, u in zip(Z, U, strict=True)])
    spread = 1 / 300 + (P @ np.linalg.inv(P.T @ P + 0.3 * np.eye(13)) * P).sum(axis=1)
    _, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(std**2, spread * model.noise_variance_, rtol=1e-7)


def test_intervals_of_tiny_tables_are_refused_or_of_the_size_of_the_targets(seed):
    """With |y − f|² ≤ S and the leverage of a row ≤ 1, σ² (1 + g) ≤ 2 S / (least degrees)."""
    refused, level = 0, 0.9
    for draw in range(40):
        rng = np.random.default_rng([seed, draw])
        X, y = rng.normal(size=(4, 6)), rng.normal(size=4)
        model = km.StreamingRidge("evidence").fit(X, y)
        widest = student_t.ppf((1 + level) / 2, 0.5) * np.sqrt(
            2 * np.sum((y - y.mean()) ** 2) / 0.5
        )
        if model._posterior().residual_df > 0.5:
            ends = model.predict_interval(X, level)
            assert np.max(ends[:, 1] - ends[:, 0]) <= 2 * widest
            continue
        refused += 1
        with pytest.raises(ValueError, match="as many degrees of freedom as rows"):
            model.predict_interval(X, level)
    assert 0 < refused < 40


# ---- intervals ----------------------------------------------------------------------------------


def test_bayesian_intervals_cover_what_the_model_draws(seed):
    """Targets of the prior: coverage is nominal on average over draws (few rows, estimated σ)."""
    rng = np.random.default_rng(seed)
    feature_map = km.RandomFourierMap(n_components=30, sigma=1.0, random_state=0)
    X = rng.uniform(-2, 2, (60, 2))
    Z = feature_map.fit(X).transform(X)
    inside = 0
    for _ in range(100):
        f = Z @ rng.normal(size=Z.shape[1]) + 5
        y = f + 0.5 * rng.normal(size=60)
        model = km.StreamingRidge(0.25, feature_map).fit(X[:40], y[:40])
        low, high = model.predict_interval(X[40:], level=0.8).T
        inside += np.count_nonzero((low <= y[40:]) & (y[40:] <= high))
    # Rows of one draw share their model: at most 20 rows in unison, hence 100 independent ones.
    assert binom.ppf(CHANCE, 100, 0.8) / 100 < inside / 2000 < binom.isf(CHANCE, 100, 0.8) / 100
    # Far tighter in practice; this is the bound that a wrong factor of two would break.
    assert abs(inside / 2000 - 0.8) < 0.05


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_conformal_intervals_cover_any_noise(seed, level):
    """Skewed noise that grows with x, and a model that misses the shape: coverage all the same."""
    rng = np.random.default_rng(seed)
    inside = total = 0
    for _ in range(40):
        X = rng.uniform(0, 2, (500, 1))
        y = X[:, 0] ** 3 + X[:, 0] * rng.exponential(size=500) ** 2
        model = km.StreamingRidge(1.0).fit(X[:100], y[:100])
        scores = model.conformity_scores(X[100:400], y[100:400])
        low, high = model.predict_interval(X[400:], level, conformity_scores=scores).T
        inside += np.count_nonzero((low <= y[400:]) & (y[400:] <= high))
        total += 100
    # Given the calibration rows, coverage is a beta variable of deviation below √(1/4/300).
    deviation = np.sqrt(0.25 / 300 / 40 + 0.25 / total)
    assert abs(inside / total - level) < 6 * deviation + 1 / 301


def test_intervals_of_several_targets(seed):
    X, Y = regression(seed, 600, t=2)
    model = km.StreamingRidge(0.5, MAP).fit(X[:300], Y[:300])
    scores = model.conformity_scores(X[300:], Y[300:])
    X = X[:300]
    ends = model.predict_interval(X, 0.9)
    assert ends.shape == (300, 2, 2)
    np.testing.assert_allclose(ends.mean(axis=2), model.predict(X))
    again = model.predict_interval(X, 0.9, conformity_scores=scores)
    fewest = np.ones((19, 2))  # for the usual level
    assert model.predict_interval(X, conformity_scores=fewest).shape == (300, 2, 2)
    # Quantiles of a few hundred normal scores and of Student's t differ by some percent.
    widths = (again[..., 1] - again[..., 0]) / (ends[..., 1] - ends[..., 0])
    assert np.all((widths > 0.7) & (widths < 1.4))
