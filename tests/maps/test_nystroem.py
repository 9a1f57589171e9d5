"""Nyström maps: a projection in feature space, exact at landmarks, its error known row by row."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.kernel_approximation import Nystroem

import kernelmaps as km
from kernelmaps.engine import Spec, evaluate
from kernelmaps.kernels.registry import kernel_of_text, kernel_text
from kernelmaps.maps.nystroem import leverage_sample

KERNELS = ("gaussian", "laplacian", "cauchy", "matern", "chi2", "intersection", "js", "exp_chi2")
CHOICES = ("uniform", "kmeans", "leverage")


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


@pytest.mark.parametrize("assign", ["projection", "nearest"])
def test_residuals_of_float32_rows_are_those_of_their_values(assign, seed):
    """Computed in float32, they would be lost to its rounding where they are small."""
    X = histograms(seed).astype(np.float32)
    fitted = km.NystroemMap("gaussian", 20, assign=assign, random_state=seed).fit(X[:100])
    np.testing.assert_array_equal(fitted.residuals(X), fitted.residuals(X.astype(np.float64)))


@pytest.mark.parametrize("landmarks", ["uniform", "leverage"])
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


def test_leverage_finds_the_rows_that_uniform_draws_miss(seed):
    """990 rows alike and 10 far away from all others: each of these has a score of nearly 1."""
    rng = np.random.default_rng(seed)
    X = np.concatenate(
        [0.01 * rng.normal(size=(990, 3)), 100 * np.arange(1, 11)[:, None] + np.zeros(3)]
    )
    kernel = km.kernels.Gaussian(1.0)
    drawn = leverage_sample(kernel, X, 60, rng)
    assert len(np.unique(drawn)) == 60
    assert np.sum(drawn >= 990) >= 8
    uniform = km.NystroemMap(kernel, 60, landmarks="uniform", random_state=seed).fit(X)
    leverage = km.NystroemMap(kernel, 60, landmarks="leverage", random_state=seed).fit(X)
    assert leverage.residuals(X[990:]).sum() <= 2 + 1e-6 < uniform.residuals(X[990:]).sum()


def test_leverage_scores_are_those_of_the_definition(seed):
    """Without a recursion, from all rows with weight 1: K (K + λ)⁻¹ of the ridge in use."""
    from kernelmaps.maps.nystroem import _leverage_scores

    X = histograms(seed, 60)
    kernel = km.kernels.Exponential(km.kernels.chi2, 2.0)
    K, every, rank = kernel(X), np.arange(60), 5
    ridge = np.linalg.eigvalsh(K)[:-rank].sum() / rank
    expected = np.diagonal(K @ np.linalg.inv(K + ridge * np.eye(60)))
    actual = _leverage_scores(kernel, X, every, every, np.ones(60), rank)
    np.testing.assert_allclose(actual, expected, rtol=1e-8)


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
    with pytest.raises(ValueError, match="additive=True needs a kernel that is a sum"):
        km.NystroemMap("gaussian", additive=True).fit(X)


def nearest_rows(landmarks, X):
    return landmarks[cdist(X, landmarks).argmin(axis=1)]


@pytest.mark.parametrize("landmarks", CHOICES)
@pytest.mark.parametrize("name", KERNELS)
def test_nearest_landmarks_have_the_kernel_of_each_other(name, landmarks, seed):
    """Up to eigenvalues of 1e-12, whose directions are left out: √1e-12 of the kernel."""
    X = histograms(seed)
    settings = {"landmarks": landmarks, "assign": "nearest", "random_state": seed}
    fitted = km.NystroemMap(name, 20, **settings).fit(X[:100])
    Z, size = fitted.transform(X), float(fitted.kernel_.diag(X).max())
    exact = fitted.kernel_(nearest_rows(fitted.landmarks_, X))
    np.testing.assert_allclose(Z @ Z.T, exact, atol=1e-6 * size)


@pytest.mark.parametrize("columns", [7, 20])
@pytest.mark.parametrize("name", ["gaussian", "chi2", "exp_chi2"])
def test_distances_in_feature_space_bound_the_error_of_nearest_landmarks(name, columns, seed):
    """Triangle inequality and Cauchy-Schwarz; with fewer columns than landmarks, too."""
    X = histograms(seed)
    settings = {"n_landmarks": 20, "assign": "nearest", "random_state": seed}
    fitted = km.NystroemMap(name, columns, **settings).fit(X[:100])
    lengths = np.linalg.norm(fitted.transform(X), axis=1)
    diagonal, squares = fitted.kernel_.diag(X), fitted.residuals(X)
    delta, size = np.sqrt(squares), float(diagonal.max())
    bound = np.outer(delta, np.sqrt(diagonal)) + np.outer(lengths, delta)
    assert np.all(np.abs(missing(fitted, X)) <= bound + 1e-9 * size)
    at = nearest_rows(fitted.landmarks_, X)
    if columns == 20:
        between = np.diagonal(fitted.kernel_(X, at))
        expected = diagonal - 2 * between + fitted.kernel_.diag(at)
        np.testing.assert_allclose(squares, expected, atol=1e-6 * size)
    else:  # the distance to the landmark's projection, which the landmark itself is closer to
        projection = km.NystroemMap(name, columns, **{**settings, "assign": "projection"})
        P = projection.fit(X[:100])
        expected = diagonal - 2 * np.sum(P.transform(X) * P.transform(at), axis=1) + lengths**2
        np.testing.assert_allclose(squares, expected, atol=1e-9 * size)
    assert fitted.residual_ == pytest.approx(squares[:100].mean() / diagonal[:100].mean())


def test_distances_to_nearest_landmarks_keep_their_digits(seed):
    """Smooth kernels have tiny eigenvalues: distances are those of the kernel all the same."""
    X = np.random.default_rng(seed).dirichlet([1.0, 1.0], 60)
    fitted = km.NystroemMap("exp_chi2", 19, landmarks="uniform", assign="nearest", random_state=0)
    fitted.fit(X[:40])
    landmarks = fitted.landmarks_[cdist(X, fitted.landmarks_).argmin(axis=1)]
    exact = 2 - 2 * np.array([fitted.kernel_(x[None], y[None])[0, 0] for x, y in zip(X, landmarks)])
    np.testing.assert_allclose(fitted.residuals(X), exact, atol=1e-8)


def test_nearest_landmarks_of_one_feature_are_those_of_an_anchor_map(seed):
    x = np.random.default_rng(seed).uniform(size=(300, 1))
    fitted = km.NystroemMap("chi2", 12, assign="nearest", random_state=seed).fit(x)
    anchors = km.AnchorMap("chi2", 12, anchors=np.sort(fitted.landmarks_[:, 0]), energy=1).fit(x)
    Z, A = fitted.transform(x), anchors.transform(x)
    np.testing.assert_allclose(Z @ Z.T, A @ A.T, atol=1e-6)


def test_nearest_landmarks_need_exponentially_many_for_many_features(seed):
    """The radius of a cover by m balls is of order m^(−1/d), and so is the error."""
    rng = np.random.default_rng(seed)
    for d, counts in ((1, (10, 80)), (3, (27, 216))):
        X = rng.uniform(size=(3000, d))
        kernel, test = km.kernels.Gaussian(1.0), rng.uniform(size=(400, d))
        coarse, fine = (
            km.NystroemMap(kernel, m, assign="nearest", random_state=seed).fit(X) for m in counts
        )
        rates = [np.sqrt(np.mean(missing(one, test) ** 2)) for one in (coarse, fine)]
        # Eight times as many landmarks; borders count for more in few dimensions.
        assert rates[0] / rates[1] == pytest.approx(8 ** (1 / d), rel=0.2)


@pytest.mark.parametrize(("factor", "offset"), [(1e120, 0.0), (1e-120, 0.0), (1.0, 1e7)])
def test_nearest_landmarks_do_not_depend_on_units_and_origin(factor, offset, seed):
    """Offsets of 1e7 round values of order one by 1e-9: pairs of landmarks are not that close."""
    X = np.random.default_rng(seed).normal(size=(200, 3))
    settings = {"landmarks": "uniform", "assign": "nearest", "random_state": seed}
    plain, moved = (
        km.NystroemMap(km.kernels.Gaussian(scale), 20, **settings).fit(rows).transform(rows)
        for scale, rows in ((1.0, X), (factor, factor * X + offset))
    )
    np.testing.assert_allclose(moved @ moved.T, plain @ plain.T, atol=1e-5)


def test_columns_that_the_landmarks_do_not_have_are_zero(seed):
    X = np.repeat(histograms(seed, 3), 20, axis=0)
    Z = km.NystroemMap("exp_chi2", 10, random_state=seed).fit_transform(X)
    assert Z.shape == (60, 10)
    assert np.linalg.matrix_rank(Z) <= 3
    fitted = km.NystroemMap("chi2", 10).fit(np.zeros((4, 2)))
    assert not fitted.transform(np.ones((1, 2))).any()
    assert fitted.residual_ == 0


@pytest.mark.parametrize("options", [{}, {"additive": True}, {"assign": "nearest"}], ids=str)
def test_sparse_rows_blocks_and_the_formula_agree(options, seed):
    X = np.where(histograms(seed) < 0.05, 0, histograms(seed))
    fitted = km.NystroemMap("js", 6, **options, random_state=seed).fit(sparse.csr_matrix(X))
    expected = fitted.transform(X)
    np.testing.assert_allclose(fitted.transform(sparse.csr_matrix(X)), expected, atol=1e-9)
    np.testing.assert_allclose(evaluate(fitted.spec_, X), expected, atol=1e-9)


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


@pytest.mark.parametrize(
    "text",
    [
        '{"kernel": "os.system"}',
        '{"kernel": "chi2", "gamma": -1, "signed": false}',
        '{"kernel": "chi2", "gamma": 1.0, "signature_function": 1}',
        '{"kernel": "gaussian", "sigma": [1]}',
        '{"kernel": "gaussian", "length": 1}',
        '{"exponential": 1, "base": {"exponential": 1, "base": {"exponential": 1}}}',
        "[]",
        "chi2",
    ],
)
def test_a_damaged_kernel_is_refused(text):
    arrays = {"landmarks": np.ones((2, 3)), "whitening": np.ones((2, 2))}
    with pytest.raises(ValueError, match="nystroem"):
        Spec("nystroem", arrays, {"kernel": text})


def test_arguments_are_checked(seed):
    X = histograms(seed)
    for settings, words in (
        ({"landmarks": "corners"}, "NystroemMap: landmarks must be one of"),
        ({"n_components": 20, "n_landmarks": 10}, "n_landmarks=10 landmarks have no more columns"),
        ({"kernel": "chi2", "sigma": 2.0}, "this kernel has no length scale"),
        ({"kernel": "exp_chi2", "sigma": 2.0}, "Its width is gamma"),
        ({"kernel": "exp_chi2", "sigma": "median"}, "Its width is gamma"),
        ({"assign": "farthest"}, "NystroemMap: assign must be one of"),
        ({"kernel": "chi2", "additive": True, "assign": "nearest"}, "Use AnchorMap"),
    ):
        with pytest.raises(ValueError, match=words):
            km.NystroemMap(**settings).fit(X)
    with pytest.raises(TypeError, match="has no name that it could be found by"):
        km.NystroemMap(lambda x, y: np.minimum(x, y)).fit(X)


@pytest.mark.parametrize("options", [{"assign": "nearest"}, {"additive": True}, {}])
def test_frames_are_mapped_without_warnings(options, seed):
    pandas = pytest.importorskip("pandas")
    X = histograms(seed, d=3)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    fitted = km.NystroemMap("chi2", 4, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        residuals = fitted.fit(frame).residuals(frame)
    plain = km.NystroemMap("chi2", 4, random_state=0, **options).fit(X)
    np.testing.assert_array_equal(residuals, plain.residuals(X))
    assert fitted.residual_ == plain.residual_
    names = [f"{name}_chi2_{j}" for name in "abc" for j in range(4)]
    if options.get("additive"):
        assert fitted.get_feature_names_out().tolist() == names
