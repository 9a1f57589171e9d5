"""Known answers of the exact kernels, and what they refuse."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import Matern as GaussianProcessMatern
from sklearn.metrics.pairwise import additive_chi2_kernel, laplacian_kernel, rbf_kernel

from kernelmaps import kernels
from kernelmaps.kernels import (
    Additive,
    Cauchy,
    Exponential,
    Gaussian,
    HomogeneousKernel,
    Laplacian,
    Matern,
    Polynomial,
    chi2,
    hellinger,
    intersection,
    jensen_shannon,
)

HOMOGENEOUS = [chi2, intersection, hellinger, jensen_shannon]
STATIONARY = [Gaussian(0.8), Laplacian(1.5), Cauchy(0.7), Matern(1.5, 0.6), Matern(0.7)]


@pytest.fixture
def rows(seed):
    X = np.random.default_rng(seed).random((30, 9))
    X[X < 0.3] = 0
    return X


@pytest.mark.parametrize("kernel", HOMOGENEOUS, ids=repr)
def test_normalised_to_the_value_itself(kernel):
    x = np.array([0.0, 1e-6, 0.5, 1.0, 300.0])
    np.testing.assert_allclose(kernel.component(x, x), x, rtol=1e-14)


def test_components_by_hand():
    assert chi2.component(1.0, 3.0) == 1.5
    assert intersection.component(1.0, 3.0) == 1.0
    np.testing.assert_allclose(hellinger.component(1.0, 4.0), 2.0)
    by_hand = 0.5 * np.log2(4 / 1) + 1.5 * np.log2(4 / 3)
    np.testing.assert_allclose(jensen_shannon.component(1.0, 3.0), by_hand, rtol=1e-15)


def test_hellinger_spectrum_is_an_atom():
    assert hellinger.point_mass == 1
    assert hellinger.spectrum(0.4) == 0


@pytest.mark.parametrize("kernel", [chi2, intersection, jensen_shannon], ids=repr)
def test_extreme_ratios_neither_overflow_nor_vanish_too_early(kernel):
    value = kernel.component(1e-300, 1e300)
    assert np.isfinite(value)
    assert 0 <= value <= 1.0
    assert np.isfinite(kernel.signature(np.array([-2000.0, 2000.0]))).all()


def test_chi2_distance_is_scikit_learns(rows):
    np.testing.assert_allclose(chi2.squared_distance(rows), -additive_chi2_kernel(rows), atol=1e-13)


def test_stationary_kernels_are_scikit_learns(rows):
    np.testing.assert_allclose(Gaussian(2.0)(rows), rbf_kernel(rows, gamma=1 / 8), rtol=1e-13)
    np.testing.assert_allclose(Laplacian(3.0)(rows), laplacian_kernel(rows, gamma=1 / 3))
    for nu in (0.5, 1.2, 1.5, 2.5):
        expected = GaussianProcessMatern(length_scale=0.9, nu=nu)(rows)
        np.testing.assert_allclose(Matern(nu, 0.9)(rows), expected, rtol=1e-9)


def test_cauchy_is_a_product_over_features(rows):
    difference = rows[:, None, :] - rows[None, :, :]
    expected = np.prod(1 / (1 + (difference / 0.5) ** 2), axis=2)
    np.testing.assert_allclose(Cauchy(0.5)(rows), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_frequencies_have_the_signature_as_characteristic_function(kernel, seed):
    n, delta = 40_000, np.array([0.1, 0.5, 1.0, 2.0])
    omega = kernel.sample_frequencies(n, 3, np.random.default_rng(seed))
    assert omega.shape == (n, 3)
    mean = np.cos(omega[:, :1] * delta).mean(axis=0)
    # cos has variance at most 1/2 + 1/2: five standard errors
    np.testing.assert_allclose(mean, kernel.signature(delta), atol=5 / np.sqrt(n))


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Matern(1.5, 0.6)], ids=repr)
def test_radius_quantile_is_the_law_of_the_norm(kernel, seed):
    n = 20_000
    radius = np.linalg.norm(kernel.sample_frequencies(n, 4, np.random.default_rng(seed)), axis=1)
    for probability in (0.1, 0.5, 0.9):
        below = np.mean(radius <= kernel.radius_quantile(probability, 4))
        assert abs(below - probability) < 5 * np.sqrt(probability * (1 - probability) / n)


def test_exponential_of_chi2_has_no_factor_half(rows):
    x, y = rows[:1], rows[1:2]
    total = x + y
    distance = np.sum((x - y) ** 2 / np.where(total > 0, total, 1))
    np.testing.assert_allclose(Exponential(chi2, 0.4)(x, y)[0, 0], np.exp(-0.4 * distance))


def test_equal_rows_have_distance_zero_despite_rounding(rows):
    """The product formula leaves 1e-16, whose root a kernel with a kink would show as 1e-8."""
    Y = rows[::-1].copy() * (1 + 1e-16)
    same = Matern(0.5)(rows, Y)[np.arange(30), np.arange(30)[::-1]]
    np.testing.assert_array_equal(same, 1.0)


def test_signed_extension_is_odd():
    kernel = chi2.replace(signed=True)
    np.testing.assert_allclose(kernel.component(-1.0, 3.0), -1.5)
    np.testing.assert_allclose(kernel.component(-1.0, -3.0), 1.5)
    np.testing.assert_allclose(kernel([[-1.0, 2.0]], [[3.0, 2.0]]), [[0.5]])


def test_csr_is_never_densified(seed):
    """10^6 columns: a dense row block alone would need gigabytes."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 40, 400), rng.integers(0, 1_000_000, 400)
    X = sparse.csr_matrix((rng.random(400), places), shape=(40, 1_000_000))
    dense_columns = np.unique(X.indices)
    small = X[:, dense_columns].toarray()
    for kernel in (chi2, jensen_shannon, Gaussian(2.0), Laplacian(5.0), Cauchy(2.0)):
        np.testing.assert_allclose(kernel(X), kernel(small), atol=1e-12)


def test_mixed_storage_and_unsorted_indices(rows):
    csr = sparse.csr_matrix(rows)
    shuffled = sparse.csr_matrix(
        (csr.data[::-1], csr.indices[::-1], csr.nnz - csr.indptr[::-1]), shape=csr.shape
    )
    np.testing.assert_allclose(chi2(shuffled), chi2(rows[::-1]), atol=1e-14)
    np.testing.assert_allclose(chi2(csr, rows), chi2(rows), atol=1e-14)


def test_component_blocks_bound_the_memory(seed):
    """A user's kernel is evaluated on blocks: no temporary of the size (n, m, d)."""
    import tracemalloc

    X = np.random.default_rng(seed).random((400, 60))
    kernel = Additive(lambda x, y: np.minimum(x, y))
    tracemalloc.start()
    gram = kernel(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * gram.nbytes + 4 * 2**20
    np.testing.assert_allclose(gram, intersection(X), atol=1e-12)


@pytest.mark.parametrize("name", ["chi2", "CHI2", "js", "Jensen-Shannon", "rbf", "exp_chi2"])
def test_get_finds_kernels_by_name(name):
    assert isinstance(kernels.get(name), kernels.Kernel)


def test_get_passes_kernels_and_functions_through():
    assert kernels.get(chi2) is chi2
    custom = kernels.get(lambda x, y: x * y)
    np.testing.assert_allclose(custom([[2.0, 3.0]]), [[13.0]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0.1, -0.2]], r"non-negative values, but there is -0\.2 in X.*signed=True"),
        ([[0.1, np.nan]], "NaN"),
        ([[0.1, np.inf]], "infinity"),
        (np.empty((0, 3)), "0 sample"),
        ([["a", "b"]], "holds the text 'a'"),
        ([0.1, 0.2], "2D array"),
    ],
)
def test_bad_rows_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        chi2(X)
    with pytest.raises(ValueError, match=message):
        chi2.diag(X)
    with pytest.raises(ValueError, match=message):
        chi2.squared_distance(X)


@pytest.mark.parametrize("size", [1e-25, 1e-30, 1e20, 1e30])
def test_chi2_of_numbers_whose_products_leave_the_range(size):
    X = np.float32(size) * np.float32([[1, 2], [2, 1]])
    expected = size * np.array([[3, 8 / 3], [8 / 3, 3]])
    np.testing.assert_allclose(kernels.chi2(X), expected, rtol=1e-6)
    np.testing.assert_allclose(kernels.chi2(sparse.csr_matrix(X)), expected, rtol=1e-6)


def test_matern_of_large_orders_is_finite_and_tends_to_the_gaussian():
    r = np.concatenate([[0], np.geomspace(1e-12, 8, 60)])
    gaussian = np.exp(-(r**2) / 2)
    last = np.inf
    for nu in (5.0, 10.0, 20.0, 40.0):
        value = kernels.Matern(nu, 1.0).signature(r)
        gap = np.abs(value - gaussian).max()
        assert gap < min(last, 0.6 / nu)  # O(1/ν)
        last = gap


@pytest.mark.parametrize("nu", [0.3, 0.7, 2.0, 30.0, 40.0])
def test_matern_of_rows_far_apart_is_nothing(nu):
    far = kernels.Matern(nu, 1.0).signature(np.array([1e5, 1e9, 1e12, 1e200]))
    assert (far < 1e-3).all()
    assert (far >= 0).all()
    near = kernels.Matern(max(nu, 0.7), 1.0).signature(np.array([0.0, 1e-12, 1e-9]))
    np.testing.assert_allclose(near, 1, atol=1e-8)


TWO_ROWS = [[1.0, 2.0], [3.0, 4.0]]
BARE = HomogeneousKernel("bare", lambda lam: np.exp(-np.abs(lam)))
REFUSED = [
    (lambda: kernels.get("chi3"), r"unknown kernel 'chi3'.*chi2, intersection"),
    (lambda: kernels.get(3), "a kernel is a name"),
    (lambda: Gaussian("scale"), "sigma must be a positive number, got 'scale'"),
    (lambda: Gaussian(0.0), "sigma must be a positive number"),
    (lambda: Matern(nu=-1), "nu must be above 0 and at most 40"),
    (lambda: Matern(nu=41), "use Gaussian beyond"),
    (lambda: Laplacian(np.nan), "scale must be a positive number"),
    (lambda: Exponential(chi2, -1.0), "gamma must be a positive number"),
    *((lambda gamma=gamma: chi2.replace(gamma=gamma), f"gamma must be a positive number, got {of}")
      for gamma, of in ((0, 0), (np.inf, "inf"), ("1", "'1'"))),
    *((lambda name=name, value=value: Polynomial(**{name: value}), name)
      for name, value in (("degree", 0), ("gamma", 0.0), ("coef0", -1.0))),
    (lambda: chi2([[1.0, 2.0]], [[1.0, 2.0, 3.0]]), "X has 2 features but Y has 3"),
    (lambda: Exponential(chi2)([[0.1, -0.2]]), "non-negative"),
    (lambda: Exponential(Exponential(chi2))([[0.1, 0.2]], [[0.1, -0.2]]), r"there is -0\.2 in Y"),
    (lambda: Additive(3), "needs a function"),
    (lambda: Additive(lambda x, y: 1.0)(TWO_ROWS), "must work elementwise"),
    (lambda: Additive(lambda x, y: min(x, y))(TWO_ROWS), r"Additive\(custom\): .* failed .*vector"),
    (lambda: BARE.spectrum(1.0), r"'bare' has no spectrum.*DesignedMap or AnchorMap"),
    (lambda: Laplacian().radius_quantile(0.5, 3), "not isotropic"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_parameters_and_calls_are_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
