"""Fast paths against the readable formulas: tables, CSR, integers, threads, other libraries."""

from functools import partial
from importlib import import_module

import array_api_compat.numpy as xp_numpy
import numpy as np
import pytest
from naive_table import phi
from scipy import sparse

import kernelmaps as km
from kernelmaps._util.sparse import find_not_finite
from kernelmaps._util.threads import row_blocks
from kernelmaps.engine import Spec, apply, evaluate, projections, record_paths
from kernelmaps.engine.extent import extent_of, extent_of_rows
from kernelmaps.engine.families import waves_arrays
from kernelmaps.engine.piecewise import spec_of, table_of
from kernelmaps.engine.reference import evaluate_table
from kernelmaps.engine.table import AFFINE, CODE, EDGES, LOG2, Table

engine_apply = import_module("kernelmaps.engine.apply")  # its name is that of a function


def log_waves(signed=False, **arrays):
    waves = waves_arrays([0.0, 0.7, 1.9], [0.5, 0.3, 0.2])
    return Spec("log_waves", waves | arrays, {"gamma": 1.0, "signed": signed})


def linear_waves(d):
    waves = waves_arrays([0.0, 2.0], [0.5, 0.3])
    rng = np.random.default_rng(0)
    return Spec("waves", waves | {"shift": rng.random(d), "scale": 1 + rng.random(d)})


def sines():
    arrays = {"amplitude": [1.0, 0.5], "frequency": [1.0, 3.0], "phase": [-np.pi / 2, -np.pi / 2]}
    return Spec("waves", arrays | {"offset": [0.0, 0.0]})


def piecewise(binning, *, signed=False, zero=False, banded=False, seed=0):
    """Two sets of random local polynomials over three features, of different widths."""
    rng = np.random.default_rng(seed)
    powers = {CODE: 1, EDGES: 2}.get(binning, 4)  # as maps have
    bins = (12, 12) if binning == LOG2 else (5, 4)
    coef = [rng.normal(size=(bins[0], powers, 2)), rng.normal(size=(bins[1], powers, 3))]
    first = [rng.integers(0, 2, bins[0]), rng.integers(0, 3, bins[1])] if banded else None
    edges = [np.sort(rng.random(6)), np.sort(rng.random(5))]
    lo, scale = ([-3.0, -3.0], [2.0, 2.0]) if binning == LOG2 else ([0.1, 0.2], [6.0, 7.0])
    return Table.build(
        binning, powers - 1, coef, [1, 0, 1], origin=lo, resolution=scale,
        edges=edges if binning == EDGES else None, first=first,
        width=[4, 6] if banded else None, clip_low=[0.05, 0.1] if binning != LOG2 else [0.125, 0.2],
        clip_high=[0.9, 0.99],
        signed=signed, zero_at_zero=zero,
    )  # fmt: skip


@pytest.fixture
def rows(seed):
    X = np.random.default_rng(seed).random((23, 3)) * 1.2
    X[X < 0.4] = 0
    return X


@pytest.mark.parametrize("binning", [AFFINE, LOG2, EDGES, CODE])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("banded", [False, True])
def test_the_readable_form_is_what_a_table_says(rows, binning, zero, banded):
    """Both signs, zeros, values outside, and features that share a set."""
    numbers = binning != CODE
    table = piecewise(binning, signed=zero and numbers, zero=zero and numbers, banded=banded)
    X = rows * np.where(rows[:, :1] > 0.5, -1, 1) if numbers else np.floor(3 * rows)
    np.testing.assert_allclose(evaluate_table(table, X, xp_numpy), phi(table, X), atol=1e-13)


@pytest.mark.parametrize("binning", [AFFINE, EDGES])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("banded", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tables_dense(rows, binning, signed, banded, dtype):
    table = piecewise(binning, signed=signed, banded=banded)
    X = (rows - 0.3 * signed).astype(dtype)
    with record_paths() as paths:
        Z = apply(spec_of(table), X)
    wanted = phi(table, X)
    assert paths == [f"table:{'affine' if binning == AFFINE else 'edges'}:dense"]
    assert Z.dtype == dtype
    # one bin's polynomial: values up to ~10, slopes up to 7 bins a unit
    np.testing.assert_allclose(Z, wanted, atol=500 * np.finfo(dtype).eps)


@pytest.mark.parametrize("binning", [AFFINE, EDGES])
@pytest.mark.parametrize("banded", [False, True])
def test_tables_csr_with_uneven_widths(rows, binning, banded):
    table = piecewise(binning, zero=True, banded=banded)
    with record_paths() as paths:
        Z = apply(spec_of(table), sparse.csr_matrix(rows))
    assert paths == [f"table:{'affine' if binning == AFFINE else 'edges'}:csr"]
    assert sparse.issparse(Z)
    np.testing.assert_allclose(Z.toarray(), phi(table, rows), atol=1e-13)
    stored = table.band[table.set_of]
    assert Z.nnz == sum(stored[d] * np.count_nonzero(rows[:, d]) for d in range(3))


def test_map_that_is_not_zero_at_zero_gives_dense_rows(rows):
    table = piecewise(AFFINE)
    with record_paths() as paths:
        Z = apply(spec_of(table), sparse.csr_matrix(rows))
    assert "table:csr-to-dense" in paths
    assert isinstance(Z, np.ndarray)
    np.testing.assert_allclose(Z, phi(table, rows), atol=1e-13)


def test_table_survives_its_spec():
    table = piecewise(EDGES, banded=True)
    again = table_of(Spec.from_bytes(spec_of(table).to_bytes()))
    for one, other in zip(table.values(), again.values(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("signed", [False, True])
def test_log_curve_over_many_octaves(dtype, signed, seed):
    rng = np.random.default_rng(seed)
    X = np.exp(rng.uniform(-60, 60, size=(50, 4))).astype(dtype)
    X[0] = 0
    if signed:
        X *= rng.choice([-1, 1], X.shape).astype(dtype)
    spec = log_waves(signed)
    with record_paths() as paths:
        Z = apply(spec, X)
    assert paths == ["table:log2:dense"]
    wanted = evaluate(spec, X.astype(np.float64))
    size = np.sqrt(np.abs(X.astype(np.float64))).repeat(5, axis=1)
    tolerance = {np.float32: 1e-6, np.float64: 1e-13}[dtype]
    assert np.all(np.abs(Z - wanted) <= tolerance * np.maximum(size, 1e-300))


def test_clipped_log_curve(rows):
    spec = log_waves(lower=[0.5], upper=[0.8])
    inside = np.where(rows > 0, np.clip(rows, 0.5, 0.8), 0)
    np.testing.assert_allclose(apply(spec, rows), apply(log_waves(), inside), atol=1e-13)
    np.testing.assert_allclose(apply(spec, rows), evaluate(spec, rows), atol=1e-13)


def test_results_do_not_depend_on_the_company_of_a_value(seed):
    """Wide batches need larger tables; every value must still get the same bits."""
    rng = np.random.default_rng(seed)
    X = rng.random((8, 3))
    wide = np.vstack([X, np.full((1, 3), 1e12), np.full((1, 3), 1e-12)])
    for spec in (log_waves(), linear_waves(3)):
        far = wide if spec.family == "log_waves" else np.vstack([X, np.full((1, 3), 40.0)])
        np.testing.assert_array_equal(apply(spec, far)[:8], apply(spec, X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_curve_with_shift_and_scale_per_feature(rows, dtype):
    spec = linear_waves(3)
    with record_paths() as paths:
        Z = apply(spec, rows.astype(dtype))
    assert paths == ["table:affine:dense"]
    np.testing.assert_allclose(Z, evaluate(spec, rows), atol=20 * np.finfo(dtype).eps)


def test_linear_curve_that_is_zero_at_zero_keeps_sparsity(rows):
    Z = apply(sines(), sparse.csr_matrix(rows))
    assert sparse.issparse(Z)
    np.testing.assert_allclose(Z.toarray(), evaluate(sines(), rows), atol=1e-13)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("make", [log_waves, lambda: linear_waves(4)])
def test_small_integers_are_looked_up(dtype, make, seed):
    X = np.random.default_rng(seed).integers(0, 256, (30, 4)).astype(dtype)
    spec = make()
    with record_paths() as paths:
        Z = apply(spec, X)
    assert paths == ["table:code:dense"]
    assert Z.dtype == np.float32
    wanted = evaluate(spec, X.astype(np.float64))
    np.testing.assert_allclose(Z, wanted, atol=1e-6 * np.abs(wanted).max())


def test_integers_of_a_piecewise_map(seed):
    X = np.random.default_rng(seed).integers(0, 3, (30, 3)).astype(np.uint8)
    table = piecewise(EDGES, banded=True)
    wanted = phi(table, X)
    np.testing.assert_allclose(apply(spec_of(table), X), wanted, atol=1e-5)


def test_wide_curves_use_the_formula_in_blocks(rows, monkeypatch):
    """A table of thousands of columns would be larger than it is worth."""
    n = 4000
    spec = Spec(
        "log_waves",
        {"amplitude": np.ones(n), "frequency": np.linspace(0, 3, n), "phase": np.zeros(n)},
        {"gamma": 1.0},
    )
    monkeypatch.setattr(engine_apply, "row_blocks", partial(row_blocks, budget=2**16))
    with record_paths() as paths:
        Z = apply(spec, rows)
        compressed = apply(spec, sparse.csr_matrix(rows))
    assert paths == ["formula:dense", "formula:csr"]
    np.testing.assert_allclose(Z, evaluate(spec, rows), atol=1e-13)
    np.testing.assert_allclose(compressed.toarray(), Z, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stored_values_have_the_ranges_of_their_features_in_the_formula(dtype, seed):
    rng = np.random.default_rng(seed)
    waves = {"amplitude": np.ones(3), "frequency": np.array([0, 5e4, 9e4]), "phase": np.zeros(3)}
    ends = {"lower": 0.2 * rng.random(6), "upper": 0.6 + 0.2 * rng.random(6)}
    spec = Spec("log_waves", waves | ends, {"gamma": 1.0})  # too fast for a table
    X = sparse.random(30, 6, 0.4, format="csr", dtype=dtype, random_state=seed)
    with record_paths() as paths:
        found, none = apply(spec, X), apply(spec, X[:0])
    assert paths == ["formula:csr"] * 2
    np.testing.assert_array_equal(found.toarray(), evaluate(spec, X.toarray()))
    assert (found.dtype, none.dtype, none.shape) == (dtype, dtype, (0, 18))


def test_out_is_used_or_refused(rows):
    spec = log_waves()
    out = np.empty((len(rows), 15))
    assert apply(spec, rows, out=out) is out
    np.testing.assert_array_equal(out, apply(spec, rows))
    with pytest.raises(ValueError, match="out must be an array of shape"):
        apply(spec, rows, out=np.empty((3, 3)))
    with pytest.raises(ValueError, match="out must be an array of shape"):
        apply(spec, rows, out=np.empty((len(rows), 15), np.float32))
    with pytest.raises(ValueError, match="C-contiguous"):
        apply(spec, rows, out=np.empty((15, len(rows))).T)
    with pytest.raises(ValueError, match="out= cannot be used"):
        apply(spec, sparse.csr_matrix(rows), out=out)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_out_may_overlap_the_rows_or_their_stored_values(rows, form, monkeypatch):
    """In blocks of few rows, so that results of the first would change values of the next."""
    spec = km.RandomFourierMap(n_components=4, random_state=0).fit(rows).spec_
    memory, X = np.empty(96 + 4), form(rows + 1)
    expected = apply(spec, X)
    memory[4 : 4 + 69] = (rows + 1).ravel()
    if sparse.issparse(X):
        X.data = memory[4 : 4 + 69]
    else:
        X = memory[4 : 4 + 69].reshape(23, 3)
    monkeypatch.setattr(projections, "BLOCK_BYTES", 1)
    found = apply(spec, X, out=memory[8:].reshape(23, 4))
    np.testing.assert_array_equal(found, expected)


def test_no_large_temporary(seed):
    """Beside input and output, the dense path needs a few numbers per feature and thread."""
    import tracemalloc

    X = np.random.default_rng(seed).random((4000, 50), dtype=np.float32)
    spec = log_waves()
    out = apply(spec, X)
    tracemalloc.start()
    apply(spec, X, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * out.nbytes


def test_unknown_family_is_refused(rows):
    with pytest.raises(ValueError, match="unknown map family 'telepathy'"):
        apply(Spec("telepathy"), rows)


@pytest.mark.parametrize(
    ("columns", "kind"),
    [*((n, np.float32) for n in (2, 3, 5, 7, 9)), (3, np.float64), (9, np.float64), (3, np.uint8)],
)
def test_whole_vectors_stay_within_their_rows(columns, kind):
    """Vectors are wider than a value's columns: none may reach beyond the row that it is in."""
    for features in (1, 2, 3, 8):
        X = np.arange(1, 4 * features + 1).reshape(4, features).astype(kind)
        feature_map = km.HomogeneousMap("chi2", columns).fit(X)
        whole = feature_map.transform(X)
        guarded = np.full((6, features * columns), -7.0, whole.dtype)
        for rows in (slice(0, 1), slice(1, 3), slice(3, 4)):
            feature_map.transform(X[rows], out=guarded[1:5][rows])
            assert (guarded[0] == -7).all()
            assert (guarded[1 + rows.stop :] == -7).all()
        np.testing.assert_array_equal(guarded[1:5], whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extent_is_that_of_numpy(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 9)).astype(dtype)
    X[X < -1] = 0
    tiny = np.finfo(dtype).smallest_subnormal
    long = np.zeros((300, 500), dtype)  # more than one block
    long[[0, 299], [0, 499]] = 2, -tiny
    narrow = rng.normal(size=(2003, 3)).astype(dtype)  # rows that are compared side by side
    views = X[::3, ::2], np.asfortranarray(X), long[:, ::-1], narrow
    for rows in (X, -abs(X), abs(X), 1 + abs(X), long, *views, np.array([[tiny, 0, -1]], dtype)):
        extent = extent_of(rows)
        sizes = abs(rows[rows != 0])
        assert (extent.minimum, extent.maximum) == (rows.min(), rows.max())
        assert extent.tiny == sizes.min()
        assert extent.is_finite
        of_rows = extent_of_rows(rows)
        assert (of_rows.minimum, of_rows.maximum) == (rows.min(), rows.max())
        assert of_rows.tiny == sizes.min()
        np.testing.assert_array_equal(of_rows.columns, [rows.min(axis=0), rows.max(axis=0)])
    zeros = extent_of(np.full((3, 2), -0.0, dtype))
    assert (zeros.minimum, zeros.maximum, zeros.tiny) == (0, 0, np.inf)


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_first_value_that_is_not_finite_is_found(value):
    X = np.random.default_rng(0).random((400, 300))
    X[77, 11] = X[390, 2] = value
    for rows in (X, X.astype(np.float32)):
        assert not extent_of(rows).is_finite
        assert not extent_of_rows(rows).is_finite
        assert find_not_finite(rows) == (77, 11)
        assert find_not_finite(sparse.csr_matrix(rows)) == (77, 11)
