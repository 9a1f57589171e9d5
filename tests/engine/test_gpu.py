"""Kernels for a card, run without one: their own source on NumPy arrays (`triton_stand_in`)."""

import sys

import numpy as np
import pytest
import triton_stand_in

import kernelmaps as km
from kernelmaps.engine import apply
from kernelmaps.engine.piecewise import spec_of
from kernelmaps.engine.table import AFFINE, Table

# Coefficients and positions are rounded once each, and the sums of a polynomial a few times; the
# angles of Fourier features lose the digits that they have before the point.
TOLERANCE = {np.float32: 4e-6, np.float64: 1e-14}


@pytest.fixture
def gpu(monkeypatch):
    """The room of the card's kernels, with the stand-in underneath."""
    monkeypatch.delitem(sys.modules, "kernelmaps.engine.gpu.kernels", raising=False)
    for name, module in triton_stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    from kernelmaps.engine import gpu

    yield gpu
    sys.modules.pop("kernelmaps.engine.gpu.kernels", None)
    if hasattr(gpu, "kernels"):
        del gpu.kernels
    gpu.dispatch._table_on.cache_clear()


def histograms(seed, rows=37, features=13):
    X = np.random.default_rng(seed).gamma(0.5, size=(rows, features))
    X /= X.sum(axis=1, keepdims=True)
    X[3, 4] = 0
    return X


MAPS = {
    "homogeneous": km.HomogeneousMap(),
    "designed": km.DesignedMap("chi2", 5),
    "anchor, even": km.AnchorMap("chi2", 12, anchors="uniform", n_neighbors=2),
    "anchor, look-up": km.AnchorMap("chi2", 12, anchors="uniform"),
    "anchor, quantile": km.AnchorMap("chi2", 12, anchors="quantile", n_neighbors=1),
    "anchor, k-means": km.AnchorMap("chi2", 12, anchors="kmeans", n_neighbors=2),
    "chebyshev": km.ChebyshevMap(10),
    "spline": km.SplineMap(),
    "spline, banded": km.SplineMap(order=0),
    "trigonometric": km.TrigonometricMap(),
    "hermite": km.HermiteMap(),
    "fourier": km.RandomFourierMap(n_components=30, random_state=0),
    "fourier, pairs": km.RandomFourierMap(n_components=30, form="paired", random_state=0),
    "fourier, structured": km.RandomFourierMap(
        n_components=40, sampling="structured", random_state=0
    ),
    "exponential": km.ExponentialMap(n_components=40, random_state=0),
    "compressive": km.CompressiveFourierMap(5, 20, random_state=0),
    "landmarks": km.ExponentialMap(n_components=40, n_landmarks=8, random_state=0),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MAPS)
def test_kernels_agree_with_the_compiled_loops(gpu, name, dtype, seed, monkeypatch):
    X = histograms(seed).astype(dtype)
    spec = MAPS[name].fit(X).spec_
    launched = []
    monkeypatch.setattr(
        triton_stand_in.Kernel, "launched", lambda self: launched.append(self.function.__name__)
    )
    Z, refused = gpu.apply(spec, X, check=gpu.FINITE)
    assert launched  # the kernels ran, not the readable form
    wanted = apply(spec, X)
    assert Z.dtype == wanted.dtype
    assert not refused
    assert np.abs(Z - wanted).max() <= TOLERANCE[dtype] * np.abs(wanted).max()


def test_odd_extensions_of_a_card(gpu, seed):
    X = histograms(seed) * np.random.default_rng(seed).choice([-1, 1], size=(37, 13))
    spec = km.HomogeneousMap(signed=True).fit(X).spec_
    np.testing.assert_allclose(gpu.apply(spec, X)[0], apply(spec, X), rtol=0, atol=1e-14)


def test_features_with_unlike_numbers_of_columns(gpu, seed):
    rng = np.random.default_rng(seed)
    coef = [rng.normal(size=(4, 3, width)) for width in (1, 4, 2)]
    table = Table.build(
        AFFINE, 2, coef, np.arange(3), lo=np.zeros(3), scale=np.full(3, 4.0), low=0.0, high=1.0
    )
    X = rng.random((9, 3))
    spec = spec_of(table)
    np.testing.assert_allclose(gpu.apply(spec, X)[0], apply(spec, X), rtol=0, atol=1e-13)


def test_bytes_are_looked_up(gpu, seed):
    X = np.random.default_rng(seed).integers(0, 256, (20, 7), dtype=np.uint8)
    spec = km.HomogeneousMap().fit(X).spec_
    Z, _ = gpu.apply(spec, X)
    assert Z.dtype == np.float32
    np.testing.assert_array_equal(Z, apply(spec, X))


def test_halves_stay_halves(gpu, seed):
    X = histograms(seed).astype(np.float16)
    spec = km.HomogeneousMap().fit(X.astype(np.float64)).spec_
    Z, _ = gpu.apply(spec, X)
    assert Z.dtype == np.float16
    wanted = apply(spec, X.astype(np.float32))
    assert np.abs(Z - wanted).max() <= 2.0**-11 * np.abs(wanted).max()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.5])
@pytest.mark.parametrize("kind", ["uniform", "kmeans"])
def test_bad_values_are_reported_and_read_nothing_outside(gpu, kind, value, seed):
    X = histograms(seed)
    spec = km.AnchorMap("chi2", 12, anchors=kind, n_neighbors=2).fit(X).spec_
    X[5, 6] = value
    assert gpu.apply(spec, X, check=gpu.NON_NEGATIVE)[1]
    assert gpu.apply(spec, X, check=gpu.FINITE)[1] == (not np.isfinite(value))
    assert not gpu.apply(spec, X)[1]


def test_the_last_octave_of_float32_is_left_to_the_formula(gpu):
    spec = km.HomogeneousMap().fit(histograms(0)).spec_
    X = np.ones((3, 13), np.float32)
    assert not gpu.apply(spec, X, check=gpu.FINITE)[1]
    X[1, 2] = 3e38
    assert gpu.apply(spec, X, check=gpu.FINITE)[1]


def test_no_rows(gpu):
    spec = km.HomogeneousMap().fit(histograms(0)).spec_
    assert gpu.apply(spec, np.zeros((0, 13)))[0].shape == (0, 65)


def hats(d):
    """Linear hat functions on [0, 1]: two of four columns are stored in each bin, and φ(0) = 0."""
    rng = np.random.default_rng(0)
    coef = rng.normal(size=(3, 2, 2))
    coef[0, 0] = 0
    table = Table.build(
        AFFINE, 1, [coef], np.zeros(d), lo=np.zeros(1), scale=np.full(1, 3.0), low=0.0, high=1.0,
        width=np.full(1, 4), first=[np.arange(3)], zero=True,
    )  # fmt: skip
    return spec_of(table)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("banded", [False, True])
def test_stored_values_of_sparse_rows(gpu, banded, dtype, seed):
    from scipy import sparse

    X = sparse.csr_matrix(sparse.random(30, 11, 0.3, random_state=seed, dtype=dtype))
    spec = hats(11) if banded else km.HomogeneousMap().fit(X).spec_
    wanted = apply(spec, X)
    out, to, refused = gpu.apply_stored(spec, X.data, X.indices, 11, gpu.FINITE)
    np.testing.assert_array_equal(to.ravel(), wanted.indices)
    error = np.abs(out.ravel() - wanted.data).max()
    assert error <= TOLERANCE[dtype] * np.abs(wanted.data).max()
    assert not refused
    X.data[5] = np.nan
    assert gpu.apply_stored(spec, X.data, X.indices, 11, gpu.FINITE)[2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options",
    [
        {"anchors": "uniform"},
        {"anchors": "uniform", "n_neighbors": 2},
        {"anchors": "quantile"},
        {"anchors": "kmeans", "n_neighbors": 2},
        {"anchors": "uniform", "n_anchors": 300, "n_neighbors": 2},
    ],
)
def test_codes_are_those_of_the_processor(gpu, options, dtype, seed, monkeypatch):
    from kernelmaps.engine import encode as codes_of
    from kernelmaps.engine import gpu as room
    from kernelmaps.engine.encode import _encode_elsewhere

    monkeypatch.setattr(room, "usable_for", lambda X: True)
    X = histograms(seed).astype(dtype)
    spec = km.AnchorMap("chi2", **{"n_anchors": 12, **options}).fit(X).spec_
    found, inside = _encode_elsewhere(spec, X, -np.inf, np.inf)
    wanted = codes_of(spec, X)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    assert inside
    assert not _encode_elsewhere(spec, X, X.min(axis=0), X.max(axis=0) / 2)[1]
    X[3, 4] = np.nan
    assert not _encode_elsewhere(spec, X, -np.inf, np.inf)[1]


def test_codes_next_to_half_a_code_are_those_of_the_processor(gpu, monkeypatch):
    from kernelmaps.engine import encode as codes_of
    from kernelmaps.engine import gpu as room
    from kernelmaps.engine.encode import _encode_elsewhere

    monkeypatch.setattr(room, "usable_for", lambda X: True)
    X = np.linspace(0.1, 0.7, 50, dtype=np.float32)[:, None]
    spec = km.AnchorMap("chi2", 12, anchors="uniform", n_neighbors=2).fit(X).spec_
    lo, scale = spec.arrays["lo"][0], spec.arrays["scale"][0]
    half = (lo + (np.arange(11 * 256) + 0.5) / (256 * scale)).astype(np.float32)[:, None]
    np.testing.assert_array_equal(
        _encode_elsewhere(spec, half, -np.inf, np.inf)[0], codes_of(spec, half)
    )


@pytest.mark.parametrize(
    "feature_map",
    [km.SignCauchyMap(20, random_state=0), km.RandomOrthoprojector(6, random_state=0)],
)
def test_products_without_a_kernel_of_their_own(gpu, feature_map, seed):
    X = histograms(seed)
    spec = feature_map.fit(X).spec_
    np.testing.assert_allclose(gpu.apply(spec, X)[0], apply(spec, X), rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outputs", [1, 3, 10, 40])
def test_sums_over_the_features(gpu, outputs, dtype, seed):
    from kernelmaps.engine.table.dot import summed_table

    rng = np.random.default_rng(seed)
    d = 43  # not a whole number of tiles
    coef = [rng.normal(size=(6, 4, outputs)) for _ in range(d)]
    lo, scale = np.zeros(d), np.full(d, 6.0)
    table = Table.build(AFFINE, 3, coef, np.arange(d), lo=lo, scale=scale, low=0.0, high=1.0)
    X = rng.random((50, d)).astype(dtype)
    found, outside = gpu.sums(summed_table(table, np.dtype(dtype)), X, gpu.FINITE)
    wanted = apply(spec_of(table), X.astype(float)).reshape(50, d, outputs).sum(axis=1)
    # So many cubics with coefficients of size one; positions in bins of 1/6 have 3 bits fewer.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=d * 8 * 8 * np.finfo(dtype).eps)
    assert not outside
    X[7, 8] = 1.5
    assert gpu.sums(summed_table(table, np.dtype(dtype)), X, gpu.FINITE)[1]


def test_arrays_in_ordinary_memory_are_not_for_a_card():
    from kernelmaps.engine import gpu

    assert not gpu.usable_for(np.zeros((2, 2)))
