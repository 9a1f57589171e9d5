"""Kernels for a GPU, run without one: their own source on NumPy arrays (`triton_stand_in`)."""

import sys

import numpy as np
import pytest
import triton_stand_in
from fitted_examples import structured_projection
from gpu_cases import FORMULAS, MAPS, histograms

import kernelmaps as km
from kernelmaps.engine import apply
from kernelmaps.engine.piecewise import spec_of
from kernelmaps.engine.projections import project
from kernelmaps.engine.table import AFFINE, Table

# Coefficients and positions are rounded once each, and the sums of a polynomial a few times; the
# angles of Fourier features lose the digits that they have before the point.
TOLERANCE = {np.float32: 4e-6, np.float64: 1e-14}


PRODUCTS = ("fourier", "fourier, pairs", "fourier, structured", "compressive")


@pytest.fixture
def gpu(monkeypatch):
    """The modules of the GPU kernels, with the stand-in underneath."""
    monkeypatch.delitem(sys.modules, "kernelmaps.engine.gpu.kernels", raising=False)
    for name, module in triton_stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    from kernelmaps.engine import gpu

    yield gpu
    sys.modules.pop("kernelmaps.engine.gpu.kernels", None)
    if hasattr(gpu, "kernels"):
        del gpu.kernels
    gpu.dispatch._put_table.cache_clear()


@pytest.fixture
def launched(monkeypatch):
    """Names of the kernels that were launched."""
    names = []
    monkeypatch.setattr(
        triton_stand_in.Kernel, "launched", lambda self: names.append(self.function.__name__)
    )
    return names


# Cosines are tabulated, on a GPU as in compiled loops. Other maps have their readable form.
TABULATED = pytest.param("homogeneous", marks=pytest.mark.compiled)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [TABULATED, *sorted({*MAPS, *FORMULAS} - {"homogeneous"})])
def test_kernels_say_what_a_processor_does(gpu, launched, name, dtype, seed):
    X = histograms(seed).astype(dtype)
    spec = (MAPS | FORMULAS)[name].fit(X).spec_
    Z, refused = gpu.apply(spec, X, check=gpu.FINITE)
    # The kernels ran, and not the readable form, but for products and exact kernels of rows.
    assert bool(launched) == (name not in PRODUCTS and name not in FORMULAS)
    wanted = apply(spec, X)
    assert Z.dtype == wanted.dtype
    assert not refused
    assert np.abs(Z - wanted).max() <= TOLERANCE[dtype] * np.abs(wanted).max()


def test_angles_without_digits_stay_bounded(gpu):
    X = np.array([[1e12], [-1e12], [3e37], [0.25]], np.float32)
    spec = km.RandomFourierMap(km.kernels.Gaussian(1.0), n_components=32, random_state=0)
    spec = spec.fit(X[3:]).spec_
    Z, _ = gpu.apply(spec, X)
    assert np.isfinite(Z).all()
    assert np.abs(Z).max() <= spec.numbers["scale"] * (1 + 1e-6)
    np.testing.assert_allclose(Z[3], apply(spec, X[3:])[0], rtol=0, atol=1e-6)
    X[0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        assert np.isnan(gpu.apply(spec, X)[0][0]).any()


def test_transforms_of_any_length_that_may_repeat_outputs(gpu, seed):
    from kernelmaps.engine import Spec

    X = histograms(seed, 9, 150)
    spec = structured_projection(150, 12, seed)
    rows = np.sort(np.concatenate([spec.arrays["rows"][:6], spec.arrays["rows"][:6]]))
    twice = Spec("projection", {**spec.arrays, "rows": rows}, spec.numbers)
    for operator in (spec, twice, structured_projection(13, 6)):
        d = 13 if operator is not spec and operator is not twice else 150
        found, expected = gpu.apply(operator, X[:, :d])[0], apply(operator, X[:, :d])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_positions_far_from_zero_lose_nothing(gpu, seed):
    rng = np.random.default_rng(seed)
    lo = 1000 + rng.random(3)  # no float32
    coef = [rng.normal(size=(4, 4, 2)) for _ in range(3)]
    table = Table.build(
        AFFINE,
        3,
        coef,
        np.arange(3),
        origin=lo,
        resolution=np.full(3, 0.5),
        clip_low=lo,
        clip_high=lo + 8,
    )
    X = (lo + 8 * rng.random((50, 3))).astype(np.float32)
    found, _ = gpu.apply(spec_of(table), X)
    wanted = apply(spec_of(table), X.astype(float))
    # The origin is rounded to 24 bits less than the values have: 1000 · 2^-24 without its rest.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4e-6)


def test_odd_extensions_of_a_gpu(gpu, seed):
    X = histograms(seed) * np.random.default_rng(seed).choice([-1, 1], size=(37, 13))
    spec = km.HomogeneousMap(signed=True).fit(X).spec_
    np.testing.assert_allclose(gpu.apply(spec, X)[0], apply(spec, X), rtol=0, atol=1e-14)


def test_features_with_unlike_numbers_of_columns(gpu, seed):
    rng = np.random.default_rng(seed)
    coef = [rng.normal(size=(4, 3, width)) for width in (1, 4, 2)]
    table = Table.build(
        AFFINE,
        2,
        coef,
        np.arange(3),
        origin=np.zeros(3),
        resolution=np.full(3, 4.0),
        clip_low=0.0,
        clip_high=1.0,
    )
    X = rng.random((9, 3))
    spec = spec_of(table)
    np.testing.assert_allclose(gpu.apply(spec, X)[0], apply(spec, X), rtol=0, atol=1e-13)
    X = X.astype(np.float32)
    np.testing.assert_allclose(gpu.apply(spec, X)[0], apply(spec, X), rtol=0, atol=1e-5)


def test_fourier_features_of_clipped_values(gpu, seed):
    from kernelmaps.engine import Spec

    X = histograms(seed)
    spec = km.RandomFourierMap(n_components=30, random_state=seed).fit(X).spec_
    ends = {"lower": np.full(13, 0.05), "upper": np.full(13, 0.1)}
    clipped = Spec("fourier", {**spec.arrays, **ends}, spec.numbers)
    wanted = apply(spec, np.clip(X, 0.05, 0.1))
    np.testing.assert_allclose(gpu.apply(clipped, X)[0], wanted, rtol=0, atol=1e-13)


def test_bad_values_in_any_block_of_a_chain_are_reported(gpu, monkeypatch, seed):
    X = histograms(seed, 1030, 5)  # more than one block
    spec = km.ExponentialMap(n_components=8, random_state=seed).fit(X).spec_
    monkeypatch.setattr(gpu.dispatch, "_CHAIN_BYTES", 1)
    Z, refused = gpu.apply(spec, X, check=gpu.FINITE)
    np.testing.assert_allclose(Z, apply(spec, X), rtol=0, atol=1e-13)
    assert not refused
    for row in (0, 1029):
        bad = X.copy()
        bad[row, 2] = np.nan
        with np.errstate(invalid="ignore"):
            assert gpu.apply(spec, bad, check=gpu.FINITE)[1]


@pytest.mark.compiled
def test_bytes_are_looked_up(gpu, seed):
    X = np.random.default_rng(seed).integers(0, 256, (20, 7), dtype=np.uint8)
    spec = km.HomogeneousMap().fit(X).spec_
    Z, _ = gpu.apply(spec, X)
    assert Z.dtype == np.float32
    np.testing.assert_array_equal(Z, apply(spec, X))


@pytest.mark.parametrize("name", ["homogeneous", "fourier", "exponential"])
def test_halves_stay_halves(gpu, name, seed):
    X = histograms(seed).astype(np.float16)
    spec = MAPS[name].fit(X.astype(np.float64)).spec_
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options",
    [
        {"anchors": "uniform"},
        {"anchors": "uniform", "n_neighbors": 2},
        {"anchors": "kmeans"},
        {"anchors": "kmeans", "n_neighbors": 2},
        {"anchors": "uniform", "n_anchors": 300, "n_neighbors": 2},
    ],
)
def test_codes_are_those_of_the_processor(gpu, options, dtype, seed, monkeypatch):
    from kernelmaps.engine import encode as codes_of
    from kernelmaps.engine import gpu as room
    from kernelmaps.engine.encode import _encode_array_api

    monkeypatch.setattr(room, "usable_for", lambda X: True)
    X = histograms(seed).astype(dtype)
    spec = km.AnchorMap("chi2", **{"n_anchors": 12, **options}).fit(X).spec_
    found, inside = _encode_array_api(spec, X, -np.inf, np.inf)
    wanted = codes_of(spec, X)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    assert inside
    assert not _encode_array_api(spec, X, X.min(axis=0), X.max(axis=0) / 2)[1]
    above = X[X.min(axis=1) > 0]  # zero, which stands for what is not there, is outside
    assert _encode_array_api(spec, above, above.min(axis=0), above.max(axis=0))[1]
    X[3, 4] = np.nan
    assert not _encode_array_api(spec, X, -np.inf, np.inf)[1]


def test_codes_of_many_values_between_uneven_anchors(gpu, monkeypatch, seed):
    from kernelmaps.engine import encode as codes_of
    from kernelmaps.engine import gpu as room
    from kernelmaps.engine.encode import _encode_array_api

    monkeypatch.setattr(room, "usable_for", lambda X: True)
    # One of 10,000 values would have another code if its position were found by a multiplication.
    X = np.random.default_rng(seed).gamma(0.5, size=(20_000, 5)).astype(np.float32)
    spec = km.AnchorMap("chi2", 12, anchors="kmeans", n_neighbors=2).fit(X[:2000]).spec_
    found, _ = _encode_array_api(spec, X, -np.inf, np.inf)
    np.testing.assert_array_equal(found, codes_of(spec, X))


def test_products_without_a_kernel_of_their_own(gpu, seed):
    X = histograms(seed)
    spec = km.RandomOrthoprojector(6, random_state=0).fit(X).spec_
    np.testing.assert_allclose(gpu.apply(spec, X)[0], apply(spec, X), rtol=0, atol=1e-13)


def test_the_matrix_of_a_fast_transform_is_made_once(gpu, monkeypatch, seed):
    X = histograms(seed, 9, 150)
    spec, made = structured_projection(150, 12, seed + 100), []
    monkeypatch.setattr(
        gpu.dispatch, "project", lambda *given: made.append(given) or project(*given)
    )
    for rows in (X, X[:4]):
        Z = gpu.apply(spec, rows)[0]
        np.testing.assert_allclose(Z, apply(spec, rows), rtol=0, atol=1e-13)
    assert len(made) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outputs", [1, 3, 10, 40])
def test_sums_over_the_features(gpu, outputs, dtype, seed):
    rng = np.random.default_rng(seed)
    d = 43  # not a whole number of tiles
    coef = [rng.normal(size=(6, 4, outputs)) for _ in range(d)]
    lo, scale = np.zeros(d), np.full(d, 6.0)
    table = Table.build(
        AFFINE, 3, coef, np.arange(d), origin=lo, resolution=scale, clip_low=0.0, clip_high=1.0
    )
    X = rng.random((50, d)).astype(dtype)
    found, outside = gpu.sums(table, X, gpu.FINITE)
    wanted = apply(spec_of(table), X.astype(float)).reshape(50, d, outputs).sum(axis=1)
    # So many cubics with coefficients of size one; positions in bins of 1/6 have 3 bits fewer.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=d * 8 * 8 * np.finfo(dtype).eps)
    assert not outside
    X[7, 8] = 1.5
    assert gpu.sums(table, X, gpu.FINITE)[1]


def test_arrays_in_ordinary_memory_are_not_for_a_gpu():
    from kernelmaps.engine import gpu

    assert not gpu.usable_for(np.zeros((2, 2)))


def test_without_a_triton_that_takes_tuples_the_kernels_are_left_alone(monkeypatch):
    from kernelmaps.engine.gpu import dispatch

    rows = type("Tensor", (), {"__module__": "torch", "is_cuda": True})()

    def usable(found):
        monkeypatch.setattr(dispatch, "find_spec", found)
        dispatch._has_triton.cache_clear()
        return dispatch.usable_for(rows)

    def absent(name):
        raise ModuleNotFoundError(name)

    assert usable(lambda name: name)
    assert not usable(lambda name: None if name.startswith("triton.") else name)  # before 3.4
    assert not usable(lambda name: absent(name) if name.startswith("triton") else name)
    assert not usable(lambda name: None if name == "torch" else name)
    dispatch._has_triton.cache_clear()
