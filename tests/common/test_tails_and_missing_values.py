"""Tails, borders of bins and NaN are the same on all paths: compiled, reference, codes, C, ONNX."""

import numpy as np
import pytest
from c_programs import needs_compiler, run_in_c
from naive_table import phi

import kernelmaps as km
from kernelmaps.engine import code_spec, encode, evaluate
from kernelmaps.engine.piecewise import spec_of, table_of
from kernelmaps.engine.table import AFFINE, CODE, EDGES, LOG2, Table

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

# Sampled up to 2, asked far beyond; outside 2^±20 both ways; borders of bins.
POINTS = np.array([0.0, 1e-30, 1e-7, 0.1, 0.25, 0.3, 0.5, 1.0, 1.7, 2.0, 2.5, 33.0, 1e3, 1e7, 1e30])
CURVES = {
    "homogeneous": lambda: km.HomogeneousMap(n_components=3),
    "chebyshev": lambda: km.ChebyshevMap(4),
    "series": lambda: km.SeriesMap(4),
    "signed": lambda: km.ChebyshevMap(4, signed=True),
}
TABLES = {
    "spline": lambda: km.SplineMap(),
    "anchors": lambda: km.AnchorMap(n_anchors=7, rank=1),
    "neighbours": lambda: km.AnchorMap(n_anchors=7, n_neighbors=2, rank=1),
}
MAPS = CURVES | TABLES


def fitted(name):
    rng = np.random.default_rng(0)
    return MAPS[name]().fit(np.append(2 * rng.random(60), [0.0, 2.0])[:, None])


def borders(spec):
    """Points on and beside the borders of a map's bins, as float32 holds them, too."""
    if spec.family != "piecewise":
        return np.zeros(0)
    table = table_of(spec)
    edges = (
        table.edges if table.binning == EDGES else table.origin + np.arange(9) / table.resolution
    )
    near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    near = near[(near >= 0) & (near <= 2)]
    return np.concatenate([near, near.astype(np.float32).astype(np.float64)])


def onnx_values(what, X):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    from kernelmaps.export.onnx import to_onnx

    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        to_onnx(what, X).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    outputs = session.run(None, {session.get_inputs()[0].name: X})
    return outputs[1] if len(outputs) > 1 else outputs[0]


def sizes(Z):
    return np.maximum(np.abs(Z).max(axis=1, keepdims=True), 1e-300)


@needs_compiler
@pytest.mark.parametrize("name", MAPS)
def test_every_path_of_a_map_gives_the_same_columns(name, tmp_path):
    feature_map = fitted(name)
    X = np.concatenate([POINTS, borders(feature_map.spec_)])[:, None]
    expected = feature_map.transform(X)
    # cos(ω log x) turns the rounding of log x, |log x| < 70, into some units more
    tolerance = 1e-11 * sizes(expected)
    assert (np.abs(evaluate(feature_map.spec_, X) - expected) <= tolerance).all()
    assert (np.abs(run_in_c(feature_map, X, tmp_path) - expected) <= tolerance).all()
    assert (np.abs(onnx_values(feature_map, X) - expected) <= tolerance).all()


@pytest.mark.parametrize("name", TABLES)
def test_the_bin_depends_on_the_number_not_on_its_type(name):
    """float32 rows fall where float64 rows of the same numbers do, at borders above all."""
    spec = fitted(name).spec_
    X = np.concatenate([POINTS, borders(spec)]).astype(np.float32)[:, None]
    wide = km.engine.apply(spec, X.astype(np.float64))
    # a jump of a look-up is larger than that by far
    tolerance = 2e-5 * np.abs(wide).max()
    assert np.abs(km.engine.apply(spec, X) - wide).max() <= tolerance
    assert np.abs(evaluate(spec, X) - wide).max() <= tolerance
    if name in ("anchors", "neighbours"):
        assert (encode(spec, X) == encode(spec, X.astype(np.float64))).all()
        codes = encode(spec, X)
        decoded = km.engine.apply(code_spec(spec), codes)
        step = 0.0 if table_of(spec).degree == 0 else 2.0**-8
        inside = (X[:, 0] >= 0) & (X[:, 0] <= 2)
        assert np.abs(decoded - wide)[inside].max() <= tolerance + step


@needs_compiler
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.usefixtures("drawn_weights", "readable")
def test_a_model_says_the_same_far_beyond_its_rows(name, tmp_path):
    """x = 1000 is beyond 16 times the sampled range, where tables of curves used to end."""
    rng = np.random.default_rng(1)
    X = 2 * rng.random((80, 2))
    model = km.AdditiveSVC(MAPS[name](), C=1.0).fit(X, X[:, 0] ** 2 > X[:, 1])
    far = np.array([[0.5, 1e3], [1e3, 1e3], [1e5, 1e-9], [0.0, 1.0], [2.0, 0.1]])
    expected = model.decision_function(far)[:, None]
    tolerance = 1e-7 * (1 + np.abs(expected))  # trained and predicted on tables of rounding size
    assert (np.abs(run_in_c(model, far, tmp_path) - expected) <= tolerance).all()
    assert (np.abs(onnx_values(model, far) - expected) <= tolerance).all()


@needs_compiler
@pytest.mark.parametrize("name", MAPS)
def test_nan_is_refused_here_and_nan_elsewhere(name, tmp_path):
    """Exports have no errors to raise: every column of a NaN is NaN, and no other one."""
    feature_map = fitted(name)
    two = type(feature_map)(**feature_map.get_params()).fit(
        np.tile(2 * np.random.default_rng(0).random((60, 1)), 2)
    )
    X = np.array([[np.nan, 0.7]])
    with pytest.raises(ValueError, match="NaN"):
        two.transform(X)
    width = len(two._names_out(np.array(["a", "b"]))) // 2
    for found in (evaluate(two.spec_, X), run_in_c(two, X, tmp_path), onnx_values(two, X)):
        assert np.isnan(found[0, :width]).all()
        assert np.isfinite(found[0, width:]).all()


def test_octaves_end_where_the_table_ends():
    """Values beyond the octaves of a table are clipped to them, compiled and readable."""
    coef = np.random.default_rng(0).standard_normal((4 * 8, 6, 3))
    table = Table.build(
        LOG2, 5, [coef], [0], origin=[-2.0], resolution=[3.0], clip_high=np.array([4.0])
    )
    X = np.array([1e-3, 0.25, 0.3, 1.0, 3.9, 4.0, 5.0, 1e9])[:, None]
    found = km.engine.apply(spec_of(table), X)
    np.testing.assert_allclose(found, evaluate(spec_of(table), X), rtol=1e-12)
    np.testing.assert_allclose(found, phi(table, X), rtol=1e-12)
    np.testing.assert_allclose(found[0], found[1])
    np.testing.assert_allclose(found[-1], found[-2])
    assert table.binning != AFFINE


@needs_compiler
@pytest.mark.parametrize("binning", [AFFINE, LOG2, EDGES, CODE])
@pytest.mark.parametrize("odd", [False, True])
def test_any_table_in_c_is_what_it_says(binning, odd, tmp_path):
    """Bins of every kind, odd extensions, zeros, bands, and a set that two features share."""
    rng = np.random.default_rng(0)
    numbers = binning != CODE
    count, powers = 12, 3 if numbers else 1
    table = Table.build(
        binning,
        powers - 1,
        [rng.normal(size=(count, powers, r)) for r in (2, 3)],
        [1, 0, 1],
        origin=[-3.0, -3.0] if binning == LOG2 else [0.1, 0.2],
        resolution=[2.0, 2.0] if binning == LOG2 else [6.0, 7.0],
        first=[rng.integers(0, 3, count) for _ in range(2)],
        width=[4, 5],
        edges=[np.sort(rng.random(count + 1)) for _ in range(2)] if binning == EDGES else None,
        clip_low=[0.15, 0.2] if numbers else None,
        clip_high=[0.9, 0.99] if numbers else None,
        signed=odd and numbers,
        zero_at_zero=odd and numbers,
    )
    X = (
        1.5 * rng.random((40, 3)) - 0.5
        if numbers
        else rng.integers(0, count, (40, 3)).astype(float)
    )
    X[::5, 1] = 0
    wanted = phi(table, X)
    np.testing.assert_allclose(run_in_c(spec_of(table), X, tmp_path), wanted, atol=1e-12)
    np.testing.assert_allclose(evaluate(spec_of(table), X), wanted, atol=1e-12)
