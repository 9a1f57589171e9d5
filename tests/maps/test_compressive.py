"""Orthoprojectors, compressive features, and the theorems that say how large they must be."""

import numpy as np
import pytest
from scipy import fft, sparse, stats
from scipy.linalg import hadamard

import kernelmaps as km
from kernelmaps._util.compiling import make_read_only
from kernelmaps.design.random_features import haar
from kernelmaps.engine import apply, evaluate, record_paths
from kernelmaps.kernels import Cauchy, Gaussian, Matern

WAYS = [("dense", "gaussian"), ("dense", "bernoulli"), ("dct", "gaussian")]


def matrix_of(fitted):
    return fitted.transform(np.eye(fitted.n_features_in_)).T


@pytest.mark.parametrize(("method", "entries"), WAYS)
@pytest.mark.parametrize("m", [1, 5, 16])
def test_rows_are_orthonormal_times_root_d_over_m(method, entries, m, seed):
    d = 16  # a power of two: nothing is padded
    fitted = km.RandomOrthoprojector(m, entries, method=method, random_state=seed).fit(
        np.zeros((1, d))
    )
    P = matrix_of(fitted)
    np.testing.assert_allclose(P @ P.T, d / m * np.eye(m), atol=1e-12)


@pytest.mark.parametrize("entries", ["gaussian", "bernoulli"])
def test_independent_entries_keep_lengths_on_average(entries, seed):
    """E r = 1 and Var r = 2/m, less (2/m) Σ x⁴/‖x‖⁴ for ±1/√m: five standard errors."""
    d, m, draws = 30, 8, 500
    x = np.random.default_rng(seed).normal(size=(1, d)) ** 3
    ratios = []
    for i in range(draws):
        P = km.RandomOrthoprojector(m, entries, method="independent", random_state=seed + i).fit(x)
        ratios.append(np.sum(P.transform(x) ** 2) / np.sum(x**2))
    fourth = 0.0 if entries == "gaussian" else np.sum(x**4) / np.sum(x**2) ** 2
    variance = 2 / m * (1 - fourth)
    assert abs(np.mean(ratios) - 1) < 5 * np.sqrt(variance / draws)
    # The kurtosis of r is at most 3 + 12/m: the variance of the sample variance follows.
    assert abs(np.var(ratios) / variance - 1) < 5 * np.sqrt((2 + 12 / m) / draws)
    P = matrix_of(P)
    assert np.abs(P @ P.T - d / m * np.eye(m)).max() > 0.1  # not orthonormal
    if entries == "bernoulli":
        np.testing.assert_allclose(np.abs(P), 1 / np.sqrt(m))


@pytest.mark.parametrize(("method", "entries"), [*WAYS, ("independent", "gaussian")])
def test_distances_of_sparse_vectors_are_kept(method, entries, seed):
    """Restricted isometry, at 200 pairs of 5-sparse vectors.

    For one fixed pair and a uniform P the ratio of squared distances is d/m · Beta(m/2, (d−m)/2);
    quantiles at 1e-8/200 hold for all pairs with confidence 1 − 1e-8. (Theorem 3, which covers all
    sparse vectors at once, would ask for m > d here, errata 4.8.)
    """
    d, m, k, pairs = 512, 128, 5, 200
    rng = np.random.default_rng(seed)
    X = np.zeros((2 * pairs, d))
    for row in X:
        row[rng.permutation(d)[:k]] = rng.normal(size=k)
    P = km.RandomOrthoprojector(m, entries, method=method, random_state=seed).fit(X)
    differences = X[:pairs] - X[pairs:]
    ratios = (P.transform(differences) ** 2).sum(axis=1) / (differences**2).sum(axis=1)
    level = 1e-8 / pairs / 2
    low, high = d / m * stats.beta(m / 2, (d - m) / 2).ppf([level, 1 - level])
    assert 0.3 < low < high < 2  # far inside of the trivial [0, d/m] = [0, 4]
    assert low < ratios.min()
    assert ratios.max() < high


@pytest.mark.compiled
@pytest.mark.parametrize("method", ["dense", "dct"])
def test_projection_of_csr_is_never_dense(method, seed):
    rng = np.random.default_rng(seed)
    S = sparse.random(900, 37, density=0.1, format="csr", random_state=rng)
    fitted = km.RandomOrthoprojector(9, method=method, random_state=seed).fit(S)
    with record_paths() as paths:
        Y = fitted.transform(S)
    operator = "matrix" if method == "dense" else method
    assert paths == ["joint:projection", f"{operator}:csr"]
    np.testing.assert_allclose(Y, fitted.transform(S.toarray()), atol=1e-13)
    np.testing.assert_allclose(Y, evaluate(fitted.spec_, S.toarray()), atol=1e-13)


def test_fast_transform_is_sylvesters_matrix(seed):
    from kernelmaps.engine import _joint_loops

    for p in (1, 2, 4, 8, 32, 256):
        x, out = np.random.default_rng(seed).normal(size=(1, p)), np.empty((1, p))
        signs, rows = make_read_only(np.ones((1, 1, p), np.int8)), make_read_only(np.arange(p))
        plain = _joint_loops.Transform(signs, np.array([0, p]), rows, np.ones(p))
        _joint_loops.transform_rows(x, plain, _joint_loops.make_workspace(plain, x.dtype), 0, out)
        np.testing.assert_allclose(out[0], hadamard(p) @ x[0], atol=1e-12 * p)


# Compressive features ----------------------------------------------------------------------------


@pytest.mark.parametrize("projection", ["dense", "dct"])
@pytest.mark.parametrize("sampling", ["iid", "orthogonal", "structured"])
def test_compressive_features_are_features_of_measurements(projection, sampling, seed):
    X = np.random.default_rng(seed).normal(size=(40, 20))
    fitted = km.CompressiveFourierMap(
        8, 30, sampling=sampling, projection=projection, random_state=seed
    ).fit(X)
    first, second = fitted.spec_.parts
    np.testing.assert_allclose(fitted.transform(X), apply(second, apply(first, X)), atol=1e-14)
    np.testing.assert_allclose(fitted.transform(X), evaluate(fitted.spec_, X), atol=1e-13)
    S = sparse.csr_matrix(X)
    np.testing.assert_allclose(fitted.transform(S), fitted.transform(X), atol=1e-13)


def test_compressive_error_is_features_plus_projection(seed):
    """With s = r²/2σ², 1 ± δ in r² moves e^{−s} by at most δ s e^{−(1−δ)s} ≤ δ/(e(1−δ))."""
    rng = np.random.default_rng(seed)
    X = np.zeros((40, 400))
    for row in X:
        row[rng.permutation(400)[:6]] = rng.normal(size=6)
    fitted = km.CompressiveFourierMap(
        200, 2000, kernel=Gaussian(2.0), form="paired", random_state=seed
    ).fit(X)
    Y = apply(fitted.spec_.parts[0], X)
    pairs = [(i, j) for i in range(40) for j in range(i)]
    ratios = [np.sum((Y[i] - Y[j]) ** 2) / np.sum((X[i] - X[j]) ** 2) for i, j in pairs]
    delta = np.abs(np.array(ratios) - 1).max()
    features = np.sqrt(4 * np.log(2 * 1600 / 1e-6) / (2 * 1000))  # Hoeffding, 1000 terms in [−1, 1]
    assert km.kernel_error(fitted, X).max < features + delta / (np.e * (1 - delta))


def test_the_rule_for_sigma_sees_the_measurements(seed):
    """√(d/m)-scaled measurements have the distances of the data, nearly: so has σ.

    Each squared distance has a deviation of √(2(d−m)/(m(d+2))); of σ half of six of these.
    """
    X = np.random.default_rng(seed).normal(size=(100, 100))
    typical = km.RandomFourierMap(n_components=2, random_state=0).fit(X)
    compressive = km.CompressiveFourierMap(50, 2, random_state=0).fit(X)
    ratio = compressive.kernel_.sigma / typical.kernel_.sigma
    assert abs(ratio - 1) < 3 * np.sqrt(2 * 50 / (50 * 102))


# The theorems ------------------------------------------------------------------------------------


def required(epsilon, probability, sparsity, dim, diameter, kernel):
    """`required_features` with its numbers in the order of the theorems."""
    return km.required_features(
        epsilon, probability, sparsity=sparsity, dim=dim, diameter=diameter, kernel=kernel
    )


def test_theorem_one_solves_its_inequality():
    """At M the bound is at most q, at M − 1 it is not; the constant is 2c = 6."""
    epsilon, q, k, d, diameter = 0.1, 0.1, 10, 784, 20.0
    M = required(epsilon, q, k, d, diameter, Gaussian(10.0)).M
    z, sigma_p = 2 * k, np.sqrt(d) / 10

    def bound(M):
        base = 6 * np.e * d * sigma_p * diameter / (z * epsilon)
        return 3 * base ** (2 * z / (z + 2)) * np.exp(-M * epsilon**2 / (4 * (z + 2)))

    assert bound(M) <= q < bound(M - 1)
    # The minimum over r of 2α r^−z + β r², from which the bound comes, is no larger.
    alpha = (3 * np.e * d * diameter / z) ** z * np.exp(-M * epsilon**2 / 8)
    radii = np.geomspace(1e-6, 10, 200_001)
    exact = (2 * alpha * radii**-z + (2 * sigma_p / epsilon) ** 2 * radii**2).min()
    assert 0.3 * bound(M) < exact <= bound(M)


def test_theorem_two_solves_its_inequalities():
    epsilon, q, k, d, diameter, kernel = 0.5, 0.1, 1, 10_000, 1.0, Gaussian(1.0)
    sizes = required(epsilon, q, k, d, diameter, kernel)
    delta = epsilon / (2 * diameter * np.exp(-0.5))

    def isometry(m):
        chances = 2 * (12 / delta) ** (2 * k) * (np.e * d / (2 * k)) ** (2 * k)
        return chances * np.exp(-(delta**2 / 16 - delta**3 / 48) * m)

    def features(M):
        chances = 2**10 * d / sizes.m * sizes.m * (diameter / epsilon) ** 2  # σ_p² = m
        return chances * np.exp(-M * epsilon**2 / (16 * (sizes.m + 2)))

    assert isometry(sizes.m) <= q / 2 * (1 + 1e-5)
    assert isometry(sizes.m - 1) > q / 2 * (1 - 1e-5)
    assert features(sizes.M_compressive) <= q / 2 < features(sizes.M_compressive - 1)
    assert sizes.feasible


STEEPEST = [  # of exp(−r²/2σ²), at r = σ or at the end of the range; of a heavy tail, next to 0
    *((Gaussian(1.0), diameter, np.exp(-0.5)) for diameter in (10.0, 1e3, 1e6, 1e8)),
    (Gaussian(2.0), 10.0, np.exp(-0.5) / 2),
    (Gaussian(1e10), 1.0, 1e-20),
    (Matern(1.0000001), 20.0, None),
]


@pytest.mark.parametrize(("kernel", "diameter", "slope"), STEEPEST, ids=str)
def test_measurements_follow_from_the_largest_slope(kernel, diameter, slope):
    """Theorem 2 with δ = ε/(2 diam L), for data much wider and much narrower than the kernel."""
    if slope is None:
        r = np.linspace(1e-4, 3, 100_000)
        slope = np.max(np.abs(np.diff(kernel.signature(r)) / np.diff(r)))
    epsilon, q, k, d = 0.1, 0.1, 1, 10
    delta = min(epsilon / (2 * diameter * slope), 1.0)
    exponent = np.log(4 / q) + 2 * k * np.log(12 / delta * np.e * d / (2 * k))
    expected = exponent / (delta**2 / 16 - delta**3 / 48)
    assert required(epsilon, q, k, d, diameter, kernel).m == pytest.approx(expected, rel=0.05)


def test_slopes_that_have_no_limit_leave_the_measurements_open():
    assert required(0.1, 0.1, 5, 50, 1.0, Cauchy(1.0)).m is None


@pytest.mark.parametrize("basis", [None, "dct", "haar"])
def test_sparsity_of_sparse_signals_is_found(basis, seed):
    """k random coefficients in a basis: exactly k at full energy, in one and in two axes."""
    rng = np.random.default_rng(seed)
    coefficients = np.zeros((5, 16))
    for row in coefficients:
        row[rng.permutation(16)[:3]] = rng.uniform(1, 2, size=3)
    inverse = {
        None: lambda c: c,
        "dct": lambda c: fft.idct(c, norm="ortho", axis=1),
        "haar": lambda c: c @ haar(np.eye(16)).T,
    }[basis]
    actual = km.effective_sparsity(inverse(coefficients), basis, energy=1.0)
    assert actual.rows.tolist() == [3] * 5
    assert (actual.mean, actual.maximum) == (3.0, 3)
    images = np.zeros((1, 4, 4))
    images[0, :, 1] = 1  # constant along one axis
    if basis == "dct":
        assert (
            km.effective_sparsity(images.reshape(1, 16), basis, energy=0.999, shape=(4, 4)).mean
            == 4
        )


def test_haar_is_orthonormal():
    H = haar(np.eye(8))
    np.testing.assert_allclose(H @ H.T, np.eye(8), atol=1e-14)
    assert haar(np.ones((2, 5))).shape == (2, 8)


def test_sparsity_neither_overflows_nor_needs_dense_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.dirichlet(np.ones(30), size=20)
    X[X < 0.02] = 0
    expected = km.effective_sparsity(X).rows
    for same in (1e200 * X, 1e-200 * X, sparse.csr_matrix(X)):
        np.testing.assert_array_equal(km.effective_sparsity(same).rows, expected)
    places = rng.integers(0, 5, 50), rng.integers(0, 10**7, 50)
    wide = sparse.csr_matrix((rng.random(50), places), shape=(5, 10**7))
    assert km.effective_sparsity(wide).maximum <= wide.nnz  # 400 MB as dense rows


def test_sparsity_adds_up_entries_that_are_stored_twice():
    twice = sparse.csr_matrix((np.array([1.0, 2, -1]), [0, 0, 1], [0, 3, 3]), shape=(2, 4))
    assert km.effective_sparsity(twice).maximum == 2
    assert twice.nnz == 3  # the caller's own is not touched
