"""Random Fourier features: the estimate's law, four ways to draw frequencies, every path alike."""

import numpy as np
import pytest
from scipy import sparse, stats

import kernelmaps as km
from kernelmaps.engine import apply, evaluate, projections, record_paths
from kernelmaps.kernels import Cauchy, Gaussian, Kernel, Laplacian, Matern
from kernelmaps.maps import fourier
from kernelmaps.maps.fourier import FrequencySampler

pytestmark = pytest.mark.compiled

KERNELS = [Gaussian(2.0), Matern(1.5, 3.0), Laplacian(8.0), Cauchy(4.0)]
FORMS = ("cosine", "paired")
SAMPLINGS = ("iid", "orthogonal", "structured")


@pytest.fixture
def X(seed):
    return np.random.default_rng(seed).normal(size=(30, 6))


def gram_error(spec, X, kernel):
    Z = apply(spec, X)
    return Z @ Z.T - kernel(X)


def draw_fourier(kernel, D, d, *, sampling="iid", form="cosine", random_state):
    """The spec of a map, which knows of its rows no more than how many columns they have."""
    how = {"sampling": sampling, "form": form, "random_state": random_state}
    return km.RandomFourierMap(kernel, D, **how).fit(np.zeros((1, d))).spec_


# The largest of several hundred deviations of a mean of D terms in [−2, 2]: Hoeffding with a union
# bound over all pairs, and a failure probability of 1e-6.
def hoeffding(n_pairs, terms, spread):
    return np.sqrt(spread**2 * np.log(2 * n_pairs / 1e-6) / (2 * terms))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inner_products_are_the_kernel(kernel, form, X, seed):
    D = 4000
    spec = draw_fourier(kernel, D, X.shape[1], form=form, random_state=seed)
    terms, spread = (D // 2, 2.0) if form == "paired" else (D, 4.0)
    bound = hoeffding(X.shape[0] ** 2, terms, spread)
    assert np.abs(gram_error(spec, X, kernel)).max() < bound


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Matern(2.5, 2.0)], ids=repr)
def test_orthogonal_frequencies_are_orthogonal_with_the_right_radii(kernel, seed):
    d, n = 7, 21
    frequencies = FrequencySampler(kernel, np.random.default_rng(seed), "a test").orthogonal(n, d)
    radii = np.linalg.norm(frequencies, axis=1)
    directions = frequencies / radii[:, None]
    for block in np.split(directions, 3):
        np.testing.assert_allclose(block @ block.T, np.eye(d), atol=1e-12)
    many = FrequencySampler(kernel, np.random.default_rng(seed), "a test").orthogonal(4200, d)
    iid = kernel.sample_frequencies(4200, d, np.random.default_rng(seed + 1))
    radii = [np.linalg.norm(sample, axis=1) for sample in (many, iid)]
    assert stats.ks_2samp(*radii).pvalue > 1e-6
    assert stats.ks_2samp(many[:, 0], iid[:, 0]).pvalue > 1e-6


def test_structured_form_is_signed_hadamard_matrices(seed):
    """The spec stores signs and radii; its rows within a block are orthogonal (d a power of 2)."""
    d, D = 64, 160
    spec = draw_fourier(Gaussian(1.0), D, d, sampling="structured", random_state=seed)
    assert "matrix" not in spec.arrays
    assert spec.nbytes < 8 * D * d / 2
    arrays = {name: spec.arrays[name] for name in ("signs", "rows", "gains")}
    linear = type(spec)("projection", arrays, {"operator": "hadamard"})
    rows = apply(linear, np.eye(d)).T
    radii = spec.arrays["gains"] * d**1.5
    for start in (0, 64):
        block = rows[start : start + d] / radii[start : start + d, None]
        np.testing.assert_allclose(block @ block.T, np.eye(d), atol=1e-12)


# Lags at which frequencies with few directions are seen: one axis, two of them, all, and any.
def lags(d, rng):
    axes = np.eye(d)
    directions = [axes[0], axes[0] + axes[-1], np.ones(d), rng.choice([-1.0, 1.0], d)]
    directions = np.stack([*directions, *rng.normal(size=(2, d))])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.concatenate([1.5 * directions, 3.0 * directions])


@pytest.mark.parametrize(
    ("sampling", "dimensions"),
    [
        # Up to 32 features it is "orthogonal"; beyond, they are padded to a power of two.
        ("structured", (7, 32, 33, 48, 63, 64)),
        ("orthogonal", (1, 2, 3, 5, 8, 17, 33)),
        ("iid", (1, 8, 64)),
    ],
)
def test_no_sampling_is_biased_in_any_dimension(sampling, dimensions, seed):
    """Mean of cos ωᵀδ over 2¹⁶ frequencies against the kernel, in standard errors of iid ones.

    The 12 lags of 40 dimensions exceed 5.5 standard errors once in 50,000 runs; that is an error of
    0.015, less than four standard errors of 12 maps of 4096 columns.
    """
    draws, frequencies = 8, 8192
    for d in dimensions:
        at = lags(d, np.random.default_rng(seed))
        kernel, nothing = Gaussian(1.0), np.zeros((1, d))
        actual = 0.0
        for draw in range(draws):
            how = {"sampling": sampling, "form": "paired", "random_state": seed + draw}
            spec = draw_fourier(kernel, 2 * frequencies, d, **how)
            actual = actual + apply(spec, at) @ apply(spec, nothing)[0] / draws
        exact, doubled = kernel(at, nothing)[:, 0], kernel(2 * at, nothing)[:, 0]
        error = np.sqrt((1 + doubled - 2 * exact**2) / (2 * draws * frequencies))
        assert np.abs((actual - exact) / error).max() < 5.5, d


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("form", FORMS)
def test_every_path_gives_the_formula(sampling, form, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1100, 40)) * (rng.random((1100, 40)) < 0.4)
    spec = draw_fourier(Gaussian(4.0), 50, 40, sampling=sampling, form=form, random_state=seed)
    truth = evaluate(spec, X)
    operator = "hadamard" if sampling == "structured" else "matrix"
    for rows, where in [(X, "dense"), (sparse.csr_matrix(X), "csr")]:
        for dtype, tolerance in [(np.float64, 1e-14), (np.float32, 2e-6)]:
            with record_paths() as paths:
                Z = apply(spec, rows.astype(dtype))
            assert paths == ["joint:fourier", f"{operator}:{where}"]
            assert Z.dtype == dtype
            np.testing.assert_allclose(Z, truth, rtol=0, atol=tolerance)
            one = apply(spec, rows.astype(dtype), n_jobs=1)
            np.testing.assert_allclose(one, Z, rtol=0, atol=tolerance)


def test_cosines_hold_their_precision_for_large_arguments(seed):
    """|error| ≤ (|x| + 4) ε: rounding of the turns, then a polynomial of a few ε."""
    from kernelmaps.engine import _joint_loops

    for dtype in (np.float32, np.float64):
        eps = np.finfo(dtype).eps
        x = np.random.default_rng(seed).uniform(-1000, 1000, size=(1, 20_000)).astype(dtype)
        z = x.copy()
        piece, none = _joint_loops.Tile(0, 1, 0, z.shape[1]), np.zeros(z.shape[1], dtype)
        assert not _joint_loops.cosines(z, piece, none, _joint_loops.wave(1.0, np.dtype(dtype)))
        assert np.all(np.abs(z - np.cos(x.astype(np.longdouble))) < (np.abs(x) + 4) * eps)


def test_no_temporary_is_larger_than_a_block(seed, monkeypatch):
    """float64 frequencies, float32 rows: turned into float32 tile by tile."""
    import tracemalloc

    X = np.random.default_rng(seed).random((600, 300), dtype=np.float32)
    spec = draw_fourier(Gaussian(5.0), 4000, 300, random_state=seed)
    out = np.empty((600, 4000), dtype=np.float32)
    apply(spec, X, out=out)
    monkeypatch.setattr(projections, "BLOCK_BYTES", 2**20)
    tracemalloc.start()
    apply(spec, X, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * 2**20 < spec.arrays["matrix"].nbytes / 2


# Length scales -----------------------------------------------------------------------------------


def test_the_default_is_the_median_distance(seed):
    from scipy.spatial.distance import pdist

    X = np.random.default_rng(seed).normal(size=(40, 7))
    for kernel, metric, factor in [
        ("gaussian", "euclidean", 1), ("laplacian", "cityblock", 1), ("cauchy", "euclidean", 2**0.5)
    ]:  # fmt: skip
        actual = km.RandomFourierMap(kernel, 8, random_state=0).fit(X).kernel_
        length = getattr(actual, "sigma", None) or actual.scale
        assert length == pytest.approx(factor * np.median(pdist(X, metric)))


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "cauchy", "matern"])
def test_the_default_follows_the_data(kernel, seed):
    X = np.random.default_rng(seed).normal(size=(40, 7))
    median = km.RandomFourierMap(kernel, 8, random_state=0).fit(X).kernel_
    for factor in (1.0, 1000.0):
        actual = km.RandomFourierMap(kernel, 8, random_state=0).fit(factor * X).kernel_
        assert actual.length == pytest.approx(factor * median.length)
    # Equal rows, or a single one, have no distance: the kernel stays as it is.
    assert km.RandomFourierMap(kernel, 8).fit(np.ones((4, 7))).kernel_.length == 1.0


def test_a_kernel_object_keeps_its_scale(seed):
    X = 1e3 * np.random.default_rng(seed).normal(size=(5, 7))
    assert km.RandomFourierMap(Gaussian(3.0), 8).fit(X).kernel_ == Gaussian(3.0)


@pytest.mark.parametrize(
    ("sigma", "words"), [(1e-3, "0 for nearly all pairs.*too narrow"), (1e3, "1 for.*too wide")]
)
def test_a_kernel_that_is_constant_or_diagonal_on_the_rows_warns(sigma, words, seed):
    X = np.random.default_rng(seed).normal(size=(60, 7))
    for feature_map in (
        km.RandomFourierMap(sigma=sigma),
        km.RandomFourierMap(Gaussian(sigma)),
        km.CompressiveFourierMap(3, sigma=sigma),
        km.ExponentialMap(km.SplineMap(), gamma=sigma**-2),
    ):
        with pytest.warns(km.exceptions.KernelScaleWarning, match=words):
            feature_map.fit(X)


def test_equal_rows_do_not_hide_a_narrow_kernel_and_clusters_do_not_warn(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 7))
    X[1] = X[0]
    with pytest.warns(km.exceptions.KernelScaleWarning, match="too narrow"):
        km.RandomFourierMap(sigma=1e-3).fit(X)
    clusters = 1e4 * rng.integers(10, size=(100, 1)) + rng.normal(size=(100, 7))
    km.RandomFourierMap(sigma=3.0).fit(clusters)  # a warning is an error here


# Kernels of a user -------------------------------------------------------------------------------


class SampleOnly(Kernel):
    """A Gaussian that can do nothing but sample its spectrum."""

    name = "sample-only"
    isotropic = True

    def sample_frequencies(self, n, d, rng):
        return rng.standard_normal((n, d))

    def _gram(self, X, Y, n_jobs):
        return Gaussian(1.0)(X, Y)

    def _diag(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize("sampling", ["iid", "orthogonal", "structured"])
def test_user_kernel_that_only_samples(sampling, X, seed):
    fitted = km.RandomFourierMap(SampleOnly(), 4000, sampling=sampling, random_state=seed).fit(X)
    assert km.kernel_error(fitted, X).max < 2 * hoeffding(900, 4000, 4.0)


# Angles that have no digits ----------------------------------------------------------------------


@pytest.mark.parametrize("form", ["cosine", "paired"])
@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e8), (np.float64, 1.7e18)])
def test_angles_without_digits_are_noise_of_the_right_size(form, dtype, size, seed):
    X = (size * (1 + np.random.default_rng(seed).random((6, 3)))).astype(dtype)
    feature_map = km.RandomFourierMap(Gaussian(), 4000, form=form, random_state=seed)
    Z = feature_map.fit_transform(X)
    # Means of 4000 (2000) squares and products of cosines: six standard deviations.
    np.testing.assert_allclose(Z @ Z.T, np.eye(6), atol=6 / 2000**0.5)


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_angles_that_overflow_are_refused(seed):
    X = np.float32(1e38) * np.random.default_rng(seed).random((5, 40), dtype=np.float32)
    for sampling in ("iid", "structured"):
        fitted = km.RandomFourierMap(Gaussian(), sampling=sampling, random_state=seed).fit(X)
        with pytest.raises(ValueError, match="overflow float32"):
            fitted.transform(X)


def test_frequencies_that_float32_cannot_hold_are_refused(seed):
    X = np.random.default_rng(seed).random((9, 4))
    # In double precision one of 700000 such frequencies overflows, in single precision one of 35.
    fitted = km.RandomFourierMap(Matern(0.02), 1000, random_state=seed)
    assert np.isfinite(fitted.fit_transform(X)).all()
    with pytest.raises(ValueError, match="larger than float32 holds"):
        fitted.fit(X.astype(np.float32))


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplacian(4.0)])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_fitted_weights_follow_the_rows(kernel, make, seed):
    """In three dimensions, less than half of the error that equal weights have in the mean."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(700, 3))
    given, fresh = make(X[:500]), X[500:]
    fitted = km.RandomFourierMap(kernel, 100, weights="fitted", random_state=seed).fit(given)
    Z, exact = fitted.transform(fresh), kernel(fresh)
    assert Z.shape == (200, 100)
    # The variance of paired features of 100 columns, with k(2x, 2y) for the second term.
    variance = (1 + kernel(2 * fresh) - 2 * exact**2) / 100
    assert np.mean((Z @ Z.T - exact) ** 2) <= np.mean(variance) / 4
    amplitudes = fitted.spec_.arrays["amplitudes"]
    np.testing.assert_allclose((Z**2).sum(axis=1), (amplitudes[:50] ** 2).sum(), rtol=1e-6)
    assert (amplitudes >= 0).all()


def test_descent_finds_the_frequencies_and_weights_of_a_sum_of_cosines(seed):
    rng = np.random.default_rng(seed)
    frequencies = 2 * np.column_stack([np.eye(3), np.ones(3)])  # far from each other
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    apart = rng.normal(size=(2000, 3))
    exact = np.cos(apart @ frequencies) @ weights
    start = frequencies + 0.03 * rng.normal(size=(3, 4)), np.sqrt(np.full(4, 0.25))
    found, amplitudes = fourier._descend(*start, apart, exact)
    np.testing.assert_allclose(found, frequencies, atol=0.01)
    np.testing.assert_allclose(amplitudes**2, weights, atol=0.01)


@pytest.mark.parametrize(
    "settings", [{"form": "cosine"}, {"sampling": "structured"}, {"n_components": 101}]
)
def test_fitted_weights_need_pairs_of_stored_frequencies(settings, X):
    with pytest.raises(ValueError, match="weights must be 'equal' for odd n_components"):
        km.RandomFourierMap(weights="fitted").set_params(**settings).fit(X)
