"""Exact kernels and their errors on rows of other array libraries, on the rows' own device."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps import kernels


@pytest.fixture(params=["array_api_strict", "torch"])
def xp(request):
    return pytest.importorskip(request.param)


def host(array):
    return np.asarray(array.cpu().numpy() if hasattr(array, "cpu") else array)


KERNELS = [
    kernels.chi2,
    kernels.intersection,
    kernels.hellinger,
    kernels.jensen_shannon,
    kernels.chi2.replace(gamma=0.5, signed=True),
    kernels.Gaussian(0.7),
    kernels.Laplacian(2.0),
    kernels.Cauchy(1.5),
    kernels.Matern(1.5, 0.8),
    kernels.Exponential(kernels.chi2, 0.5),
    kernels.Polynomial(degree=3, gamma=0.05),
    kernels.Additive(lambda x, y: x * y + (x * y) ** 2, name="quadratic"),
]


def rows(seed, n, signed=False):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.7, size=(n, 6))
    X[1, 2] = 0
    return X * rng.choice([-1, 1], size=X.shape) if signed else X


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_are_those_of_the_processor(xp, kernel, seed):
    signed = getattr(kernel, "signed", False)
    X, Y = rows(seed, 13, signed), rows(seed + 1, 7, signed)
    for other in (None, Y):
        theirs = None if other is None else xp.asarray(other)
        actual = kernel(xp.asarray(X), theirs)
        assert type(actual) is type(xp.asarray(X))
        # Six terms of size one, each with some roundings.
        np.testing.assert_allclose(host(actual), kernel(X, other), rtol=0, atol=1e-13)
        distance = kernel.squared_distance(xp.asarray(X), theirs)
        expected = kernel.squared_distance(X, other)
        np.testing.assert_allclose(host(distance), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(host(kernel.diag(xp.asarray(X))), kernel.diag(X), atol=1e-13)
    narrow = kernel(xp.asarray(X.astype(np.float32)))
    assert "float32" in str(narrow.dtype)


@pytest.mark.parametrize(
    "feature_map", [km.HomogeneousMap("chi2", 5), km.ExponentialMap(n_components=60)]
)
def test_errors_of_maps_are_those_of_the_processor(xp, feature_map, seed):
    X = rows(seed, 30)
    if "random_state" in feature_map.get_params():
        feature_map.set_params(random_state=0)
    fitted = feature_map.fit(X)
    actual, expected = km.kernel_error(fitted, xp.asarray(X)), km.kernel_error(fitted, X)
    assert actual.n_pairs == expected.n_pairs
    assert actual.max == pytest.approx(expected.max, abs=1e-12)
    assert actual.rms == pytest.approx(expected.rms, abs=1e-12)
    assert actual.bias == pytest.approx(expected.bias, abs=1e-12)
    assert actual.parts.keys() == expected.parts.keys()


def test_bad_rows_are_named(xp):
    X = rows(0, 5)
    with pytest.raises(ValueError, match="chi2 kernel needs non-negative values, but there is"):
        kernels.chi2(xp.asarray(X), xp.asarray(-X))
    X[2, 3] = np.nan
    with pytest.raises(ValueError, match="the chi2 kernel: X contains NaN or infinity"):
        kernels.chi2(xp.asarray(X))
    with pytest.raises(ValueError, match="X has 6 features but Y has 5"):
        kernels.chi2(xp.asarray(rows(0, 5)), xp.asarray(rows(0, 5)[:, :5]))
    with pytest.raises(ValueError, match="X must have two dimensions"):
        kernels.chi2(xp.asarray(rows(0, 5)[0]))


def test_both_sides_have_to_be_on_one_device():
    strict = pytest.importorskip("array_api_strict")
    X = rows(0, 5)
    one, two = strict.asarray(X), strict.asarray(X, device=strict.Device("device1"))
    with pytest.raises(ValueError, match=r"X is on .*CPU_DEVICE.*Y is in or on .*device1"):
        kernels.chi2(one, two)
    with pytest.raises(ValueError, match=r"X is on .*device1.*ordinary memory"):
        kernels.chi2(two, X)
    assert kernels.chi2(two).device == two.device


def test_kernels_without_a_form_say_where_they_run(xp):
    X = xp.asarray(rows(0, 5))
    with pytest.raises(TypeError, match=r"nu can be 0\.5, 1\.5 or 2\.5"):
        kernels.Matern(0.8)(X)


class OutOfMemoryError(RuntimeError):
    """As torch and CuPy call theirs."""


def test_sums_in_smaller_blocks_where_memory_runs_out(xp, seed):
    from kernelmaps.kernels.base import sums_over_features

    X, Y = (xp.asarray(rows(seed, n)) for n in (13, 7))
    longest = []

    def term(x, y):
        if x.shape[0] > 3:
            raise OutOfMemoryError("CUDA out of memory")
        longest.append(x.shape[0])
        return x * y

    import array_api_compat

    space = array_api_compat.array_namespace(X)
    actual = sums_over_features(space, X, Y, term)
    np.testing.assert_allclose(host(actual), host(X) @ host(Y).T, rtol=0, atol=1e-13)
    assert max(longest) == 3
    assert sum(longest) == 13
