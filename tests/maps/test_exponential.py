"""exp(-gamma distance) in two stages: unbiased, normalised, for every additive map."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.engine import record_paths
from kernelmaps.kernels import chi2
from kernelmaps.maps.fourier import MapKernel

SAMPLINGS = ("iid", "orthogonal", "structured")


def rows(seed, n=40, d=12):
    """L1-normalised histograms with empty cells."""
    X = np.random.default_rng(seed).dirichlet(np.full(d, 0.5), size=n)
    X = np.where(X < 0.02, 0, X)
    return X / X.sum(axis=1, keepdims=True)


def exponential(**options):
    return km.ExponentialMap(**({"n_components": 2000, "random_state": 0} | options))


def inner(Z):
    return Z @ Z.T


@pytest.mark.parametrize("form", ["paired", "cosine"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_random_stage_is_unbiased_and_normalised(sampling, form, seed):
    """Mean over maps within 5 standard errors of exp(-gamma |c(x) - c(y)|^2): this fails without
    sqrt(2/D), with 2 gamma taken as a standard deviation, and with a half in the distance."""
    X = rows(seed, n=12, d=32)
    grams = []
    options = {"n_components": 128, "sampling": sampling, "form": form}
    for k in range(24):
        fitted = exponential(**options, additive_map=km.SeriesMap(2), random_state=k).fit(X)
        grams.append(inner(fitted.transform(X)))
    truth = fitted.stage_kernel_(X)
    spread = np.std(grams, axis=0, ddof=1) / np.sqrt(len(grams))
    # Structured frequencies are uniform on spheres up to O(1/sqrt(p)) of their spread.
    assert np.all(np.abs(np.mean(grams, axis=0) - truth) <= 6 * spread + 1e-12)
    if form == "paired":
        np.testing.assert_allclose(np.einsum("kii->ki", np.array(grams)), 1, rtol=1e-12)


def test_the_kernel_is_exponential_chi2(seed):
    X = rows(seed)
    fitted = exponential(gamma=0.7).fit(X)
    total = X[:, None] + X[None]
    distance = np.sum((X[:, None] - X[None]) ** 2 / np.where(total > 0, total, 1), axis=2)
    np.testing.assert_allclose(fitted.kernel_(X), np.exp(-0.7 * distance), atol=1e-12)
    assert km.kernel_error(fitted, X).rms < 3 / np.sqrt(2000)


@pytest.mark.parametrize(
    ("additive", "base"),
    [
        (lambda: km.HomogeneousMap("intersection", 41), km.kernels.intersection),
        (lambda: km.HomogeneousMap("jensen_shannon", 9), km.kernels.jensen_shannon),
        (lambda: km.HomogeneousMap("hellinger", 1), km.kernels.hellinger),
        (lambda: km.SeriesMap(20), km.kernels.chi2),
        (lambda: km.AnchorMap("intersection", 64, n_neighbors=2), km.kernels.intersection),
        (lambda: km.SplineMap(8), None),
    ],
    ids=["intersection", "jensen-shannon", "hellinger", "series", "anchor", "spline"],
)
def test_any_additive_map_has_a_distance(additive, base, seed):
    X = rows(seed)
    fitted = exponential(additive_map=additive(), n_components=8000, gamma="scale").fit(X)
    if base is None:  # a map without a named kernel is its own
        base = MapKernel(fitted.additive_map_.spec_)
    truth = np.exp(-fitted.gamma_ * base.squared_distance(X))
    assert np.sqrt(np.mean((inner(fitted.transform(X)) - truth) ** 2)) < 3 / np.sqrt(8000)


def quantile_or_half_of_the_mean(distances):
    return max(np.quantile(distances, 0.1), distances.mean() / 2)


@pytest.mark.parametrize(
    ("rule", "typical"), [("scale", np.mean), ("local", quantile_or_half_of_the_mean)]
)
def test_gamma_from_the_data(rule, typical, seed):
    X = rows(seed)
    distances = chi2.squared_distance(X)[np.triu_indices(len(X), 1)]
    fitted = exponential(gamma=rule).fit(X)
    np.testing.assert_allclose(fitted.gamma_, 1 / typical(distances), rtol=1e-12)
    assert fitted.gamma == rule  # parameters are never rewritten
    scaled = exponential(gamma=rule).fit(1000 * X)
    np.testing.assert_allclose(scaled.gamma_, fitted.gamma_ / 1000, rtol=1e-9)


def test_split_says_where_the_error_comes_from(seed):
    X = rows(seed, n=60, d=30)
    poor = {n: km.kernel_error(exponential(additive_map=km.SeriesMap(1, scale=1.0), n_components=n,
                                           gamma="scale"), X) for n in (500, 32000)}  # fmt: skip
    for error in poor.values():
        assert set(error.parts) == {"additive", "random"}
        assert error.rms <= error.parts["additive"].rms + error.parts["random"].rms + 1e-12
        np.testing.assert_allclose(
            error.bias, error.parts["additive"].bias + error.parts["random"].bias, atol=1e-12
        )
    # More random features repair the random stage (by 1/8 = sqrt(500/32000)), not the first.
    assert poor[32000].parts["additive"].rms == poor[500].parts["additive"].rms
    assert poor[32000].parts["random"].rms < poor[500].parts["random"].rms / 4
    assert poor[32000].rms > 0.9 * poor[500].parts["additive"].rms
    good = km.kernel_error(exponential(gamma="scale"), X)
    assert good.parts["additive"].rms < poor[500].parts["additive"].rms / 10
    assert "additive stage" in str(good)
    assert not km.kernel_error(km.ChebyshevMap(), X).parts


@pytest.mark.compiled
def test_the_first_stage_is_never_stored_whole(seed):
    """3000 rows of 12 x 200 columns of c are 57 MB; blocks of them stay within a few MB."""
    import tracemalloc

    X = rows(seed, n=3000)
    fitted = exponential(additive_map=km.SeriesMap(200), n_components=8).fit(X)
    fitted.transform(X[:600])
    out = np.empty((3000, 8))
    tracemalloc.start()
    with record_paths() as paths:
        fitted.transform(X, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert paths.count("joint:fourier") > 1  # several blocks
    assert peak < 3000 * 12 * 200 * 8 / 2


def test_domain_of_the_first_stage_is_respected(seed):
    X = rows(seed)
    fitted = exponential(additive_map=km.SplineMap(8), n_components=10).fit(X)
    with pytest.warns(km.exceptions.OutOfDomainWarning):
        fitted.transform(3 * X)


def test_signed_first_stage_takes_negative_values(seed):
    X = rows(seed) - 0.05
    fitted = exponential(additive_map=km.ChebyshevMap(40, signed=True), n_components=8000).fit(X)
    assert km.kernel_error(fitted, X).rms < 3 / np.sqrt(8000)


@pytest.mark.parametrize("convert", [np.asarray, np.float32, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["jensen_shannon", "intersection", "hellinger", "chi2"])
def test_rounding_is_no_distance(convert, kernel, seed):
    P = np.random.default_rng(seed).dirichlet(np.ones(300), size=40)
    X = convert(np.repeat(P[:1], 200, axis=0))
    with pytest.raises(ValueError, match="that distance is 0"):
        km.ExponentialMap(km.HomogeneousMap(kernel), n_components=20, gamma="scale").fit(X)
