"""Nyström maps: a projection in feature space, exact at landmarks, its error known row by row."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.kernel_approximation import Nystroem

import kernelmaps as km
from kernelmaps.engine import landmarks as landmarks_module
from kernelmaps.kernels.registry import kernel_of_text, kernel_text
from kernelmaps.maps.nystroem import draw_pivots

KERNELS = ("gaussian", "laplacian", "cauchy", "matern", "chi2", "intersection", "js", "exp_chi2")
CHOICES = ("uniform", "kmeans", "rpcholesky")


def histograms(seed, n=120, d=8):
    return np.random.default_rng(seed).dirichlet(np.full(d, 0.5), n)


def missing(fitted, X):
    """k − ⟨φ, φ⟩ of all pairs."""
    Z = fitted.transform(X)
    return fitted.kernel_(X) - Z @ Z.T


@pytest.mark.parametrize("landmarks", CHOICES)
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_left_out_is_a_kernel_that_its_diagonal_bounds(name, landmarks, seed):
    X = histograms(seed)
    fitted = km.NystroemMap(name, 20, landmarks=landmarks, random_state=seed).fit(X[:100])
    rest, size = missing(fitted, X), float(fitted.kernel_.diag(X).max())
    assert np.linalg.eigvalsh(rest).min() >= -1e-9 * size * len(X)
    bound = fitted.residuals(X)
    np.testing.assert_allclose(bound, np.diagonal(rest), atol=1e-12 * size)
    assert np.all(np.abs(rest) <= np.sqrt(np.outer(bound, bound)) + 1e-9 * size)
    assert fitted.residual_ == pytest.approx(
        np.mean(bound[:100]) / np.mean(fitted.kernel_.diag(X[:100]))
    )


def test_residuals_of_float32_rows_are_those_of_their_values(seed):
    """Computed in float32, they would be lost to its rounding where they are small."""
    X = histograms(seed).astype(np.float32)
    fitted = km.NystroemMap("gaussian", 20, random_state=seed).fit(X[:100])
    np.testing.assert_array_equal(fitted.residuals(X), fitted.residuals(X.astype(np.float64)))


@pytest.mark.parametrize("landmarks", ["uniform", "rpcholesky"])
def test_pairs_with_a_landmark_are_exact(landmarks, seed):
    """Up to eigenvalues of 1e-12, whose directions are left out: √1e-12 of the kernel."""
    X = histograms(seed)
    fitted = km.NystroemMap("exp_chi2", 15, landmarks=landmarks, random_state=seed).fit(X)
    Z, L = fitted.transform(X), fitted.transform(fitted.landmarks_)
    exact = fitted.kernel_(X, fitted.landmarks_)
    np.testing.assert_allclose(Z @ L.T, exact, atol=1e-6)
    rows = {row.tobytes() for row in X}
    assert all(row.tobytes() in rows for row in np.ascontiguousarray(fitted.landmarks_))


def test_it_is_scikit_learns_for_the_same_landmarks(seed):
    X = histograms(seed)
    fitted = km.NystroemMap(
        km.kernels.Gaussian(0.5), 30, landmarks="uniform", random_state=seed
    ).fit(X)
    peer = Nystroem(kernel="rbf", gamma=2.0, n_components=30, random_state=0)
    theirs = peer.fit(fitted.landmarks_).transform(X)
    ours = fitted.transform(X)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-6)


def test_more_landmarks_than_columns_leave_out_less(seed):
    X = histograms(seed, 300)
    few, many = (
        km.NystroemMap("exp_chi2", 20, n_landmarks=count, landmarks="uniform", random_state=0)
        .fit(X)
        .residual_
        for count in (20, 200)
    )
    assert many < 0.97 * few
    values = np.linalg.eigvalsh(km.NystroemMap("exp_chi2", 20).fit(X).kernel_(X))[::-1]
    best = 1 - values[:20].sum() / values.sum()  # of all maps of 20 columns (Eckart-Young)
    assert best <= many <= 1.2 * best


@pytest.mark.parametrize(
    "kernel", [km.kernels.Polynomial(2, 1.0, 0.0), km.kernels.Gaussian(0.3)], ids=repr
)
def test_random_pivots_are_exact_at_the_rank_of_the_kernel(kernel, seed):
    """x ⊗ x of three features has six coordinates; six different rows have a Gram matrix of six."""
    X = histograms(seed, 90, 3)
    if isinstance(kernel, km.kernels.Gaussian):
        X = np.repeat(X[:6], 15, axis=0)
    for count in (6, 20):
        fitted = km.NystroemMap(kernel, count, landmarks="rpcholesky", random_state=seed).fit(X)
        assert len(fitted.landmarks_) == 6
        np.testing.assert_allclose(missing(fitted, X), 0, atol=1e-9)


def test_random_pivots_come_near_to_the_best_error(seed):
    """E trace ≤ (1 + ε) · best of r columns for m ≥ r/ε + r log(1/εη) pivots; here ε = 1."""
    X = histograms(seed, 200, 4)
    kernel = km.kernels.Exponential(km.kernels.chi2, 2.0)
    values = np.linalg.eigvalsh(kernel(X))[::-1]
    best = 1 - np.cumsum(values) / values.sum()
    r = np.arange(1, 60)
    count = 40
    r = r[r + r * np.log(1 / best[r - 1]) <= count].max()
    assert r >= 5
    drawn = [draw_pivots(kernel, X, count, np.random.default_rng(seed + i)) for i in range(10)]
    assert all(len(np.unique(one)) == count for one in drawn)
    maps = [
        km.NystroemMap(kernel, count, landmarks=landmarks, random_state=seed + i).fit(X)
        for landmarks in ("rpcholesky", "uniform")
        for i in range(10)
    ]
    shares = np.array([fitted.residual_ for fitted in maps]).reshape(2, 10).mean(axis=1)
    assert best[count - 1] <= shares[0] <= 2 * best[r - 1]
    assert shares[0] < shares[1]


def test_blocks_of_random_pivots_are_draws_one_after_another(seed):
    """Each pair has the probability Σ p_i p_(j | i) over both orders, by Pearson's test."""
    rng = np.random.default_rng(seed)
    X = np.array([[0.0], [0.3], [0.5], [2.0]])
    gram = km.kernels.Gaussian(0.5)(X)
    first = np.full(4, 0.25)
    rest = 1 - gram**2  # the residual of j after the pivot i
    probability = first[:, None] * rest / rest.sum(axis=1, keepdims=True)
    draws = [draw_pivots(km.kernels.Gaussian(0.5), X, 2, rng) for _ in range(1000)]
    pairs = np.triu_indices(4, 1)
    count = [sum(list(pair) == [i, j] for pair in draws) for i, j in zip(*pairs, strict=True)]
    expected = 1000 * (probability + probability.T)[pairs]
    # 1000 pairs tell 1 − k from 1 − k² half of the time, as shares within 5 standard errors do.
    assert np.sum((count - expected) ** 2 / expected) < stats.chi2.isf(1e-6, 5)


def test_random_pivots_find_the_rows_that_uniform_draws_miss(seed):
    """990 rows alike and 10 far away from all others, which have all that is left of the trace."""
    rng = np.random.default_rng(seed)
    X = np.concatenate(
        [0.01 * rng.normal(size=(990, 3)), 100 * np.arange(1, 11)[:, None] + np.zeros(3)]
    )
    kernel = km.kernels.Gaussian(1.0)
    assert np.sum(draw_pivots(kernel, X, 60, rng) >= 990) >= 8
    uniform = km.NystroemMap(kernel, 60, landmarks="uniform", random_state=seed).fit(X)
    pivots = km.NystroemMap(kernel, 60, landmarks="rpcholesky", random_state=seed).fit(X)
    assert pivots.residuals(X[990:]).sum() <= 2 + 1e-6 < uniform.residuals(X[990:]).sum()


def test_an_additive_map_has_columns_of_each_feature(seed):
    X = histograms(seed, 200, 5)
    fitted = km.NystroemMap("chi2", 4, additive=True, random_state=seed).fit(X)
    Z = fitted.transform(X)
    assert Z.shape == (200, 20)
    for j in range(5):
        own = Z[:, 4 * j : 4 * j + 4]
        exact = km.kernels.chi2(X[:, [j]])
        values = np.linalg.eigvalsh(exact)[::-1]
        # close to the best map of four columns for these values
        assert np.trace(exact - own @ own.T) <= 5 * values[4:].sum() + 1e-9


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_landmarks_of_an_additive_map_are_those_of_each_feature(make, seed):
    """Few values are landmarks, so that the map is exact; of many, the extremes are."""
    rng = np.random.default_rng(seed)
    binary = (rng.random((500, 30)) < 0.5).astype(float)
    X = np.column_stack([binary, rng.random((500, 1))])
    fitted = km.NystroemMap("intersection", 2, additive=True, random_state=seed).fit(make(X))
    Z = fitted.transform(X)[:, :60]
    np.testing.assert_allclose(Z @ Z.T, binary @ binary.T, atol=1e-9)
    ends = [fitted.landmarks_.min(axis=0), fitted.landmarks_.max(axis=0)]
    np.testing.assert_allclose(ends, [X.min(axis=0), X.max(axis=0)], rtol=1e-15)


def test_there_are_at_most_as_many_columns_as_rows():
    X = np.random.default_rng(0).random((30, 4))
    with pytest.warns(UserWarning, match="n_components=100000, but .* than the 30 rows"):
        fitted = km.NystroemMap("gaussian", 10**5, random_state=0).fit(X)
    assert fitted.transform(X).shape == (30, 30) == fitted.landmarks_.shape[:1] * 2
    np.testing.assert_allclose(fitted.transform(X) @ fitted.transform(X).T, fitted.kernel_(X))


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.KernelScaleWarning")
@pytest.mark.parametrize(("sigma", "is_direct"), [(2.0, True), (0.01, False)])
def test_gaussian_columns_are_those_of_the_kernel(sigma, is_direct, seed, monkeypatch):
    """By one product where rows are a few σ long, far from zero too, else by the kernel itself."""
    X = 1e4 + np.random.default_rng(seed).normal(size=(60, 5))
    fitted = km.NystroemMap(km.kernels.Gaussian(sigma), 20, random_state=seed).fit(X)
    expected = km.kernels.Gaussian(sigma)(X, fitted.landmarks_) @ fitted.spec_.arrays["whitening"]
    direct, grams = landmarks_module._gaussian_gram, []
    monkeypatch.setattr(
        landmarks_module, "_gaussian_gram", lambda *rows: grams.append(direct(*rows)) or grams[-1]
    )
    np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-9)
    assert [gram is not None for gram in grams] == [is_direct]


def test_an_additive_map_has_at_most_as_many_columns_of_a_feature_as_rows():
    X = np.random.default_rng(0).random((30, 2))
    with pytest.warns(UserWarning, match="columns of a feature, than the 30 rows"):
        fitted = km.NystroemMap("chi2", 10**4, additive=True, random_state=0).fit(X)
    Z = fitted.transform(X)
    assert Z.shape == (30, 60) == (30, len(fitted.get_feature_names_out()))
    np.testing.assert_allclose(Z @ Z.T, km.kernels.chi2(X), atol=1e-9)


def test_columns_that_the_landmarks_do_not_have_are_zero(seed):
    X = np.repeat(histograms(seed, 3), 20, axis=0)
    Z = km.NystroemMap("exp_chi2", 10, random_state=seed).fit_transform(X)
    assert Z.shape == (60, 10)
    assert np.linalg.matrix_rank(Z) <= 3
    fitted = km.NystroemMap("chi2", 3).fit(np.zeros((4, 2)))
    assert not fitted.transform(np.ones((1, 2))).any()
    assert fitted.residual_ == 0


@pytest.mark.parametrize(
    "kernel",
    [
        km.kernels.chi2.replace(gamma=0.5, signed=True),
        km.kernels.Matern(0.7, 2.0),
        km.kernels.Exponential(km.kernels.jensen_shannon, 3.0),
        km.kernels.Exponential(km.kernels.Laplacian(2.0), 0.5),
    ],
    ids=repr,
)
def test_kernels_travel_as_text(kernel):
    assert kernel_of_text(kernel_text(kernel)) == kernel
