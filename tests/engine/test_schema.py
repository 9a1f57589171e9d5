"""Specs that contradict themselves are refused when they are made, wherever they come from."""

import pickle

import numpy as np
import pytest
from fitted_examples import map_of_the_plane, rows, structured_projection

import kernelmaps as km
from kernelmaps._util import storage
from kernelmaps._util.schema import SchemaError, array, boolean, check_entries, integer, number
from kernelmaps.engine import FamilySchema, Spec, apply, code_spec, register_schema
from kernelmaps.engine.extent import Extent
from kernelmaps.engine.piecewise import spec_of
from kernelmaps.engine.spec import SCHEMAS
from kernelmaps.engine.tabulated import make_table
from kernelmaps.exceptions import FileFormatError

FITTED = {
    "hermite": km.HermiteMap(n_bases=2),
    "spline": km.SplineMap(n_bases=6),
    "sparse spline": km.SplineMap(n_bases=6, order=0),
    "anchor": km.AnchorMap(n_anchors=8, anchors="kmeans"),
    "dct": km.RandomOrthoprojector(n_components=4, method="dct"),
    "fourier": km.RandomFourierMap(n_components=8, form="cosine"),
    "paired": km.RandomFourierMap(n_components=8, form="paired"),
    "joint": map_of_the_plane(),
    "trigonometric": km.TrigonometricMap(n_bases=2),
    "homogeneous": km.HomogeneousMap(),
    "chebyshev": km.ChebyshevMap(n_components=3),
    "nystroem": km.NystroemMap("exp_chi2", 4),
}


@pytest.fixture(scope="module")
def specs():
    found = {name: m.fit(rows(d=2 if name == "joint" else 6)).spec_ for name, m in FITTED.items()}
    table = make_table(found["homogeneous"], np.dtype(np.float64), 6, Extent(0.0, 1.0, 1e-3))
    return found | {"octaves": spec_of(table), "hadamard": structured_projection(6, 4)}


def remade(spec, arrays=None, numbers=None):
    """The spec with some entries changed; None takes one out."""
    entries = [{**spec.arrays, **(arrays or {})}, {**spec.numbers, **(numbers or {})}]
    entries = [{k: v for k, v in one.items() if v is not None} for one in entries]
    return Spec(spec.family, *entries, spec.parts)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def test_every_spec_passes_its_own_schema(specs):
    for spec in specs.values():
        assert spec.family in SCHEMAS
        assert remade(spec) == spec


@pytest.mark.parametrize("name", ["hermite", "spline", "sparse spline", "anchor"])
@pytest.mark.parametrize(
    ("entry", "place", "value", "words"),
    [
        ("set_of", 0, 10**6, "a set that does not exist"),
        ("set_of", 0, -1, "at least 0"),
        ("bins", 0, 10**6, "fill|in part only"),
        ("bins", 0, 0, "at least 1"),
        ("band", 0, 10**6, "fill|in part only"),
        ("coef_start", 0, 10**12, "fill|in part only"),
        ("coef_start", 0, -8, "at least 0"),
        ("first", 0, 10**9, "beyond 'width'"),
        ("first_start", 0, 10**9, "fill|in part only"),
        ("column", -1, 10**9, "sum of the widths"),
        ("width", 0, 10**9, "more than the columns"),
        ("coef", 0, np.nan, "contains NaN"),
        ("origin", 0, np.inf, "must be finite"),
        ("clip_low", 0, np.inf, "'clip_low'"),
    ],
)
def test_indices_of_a_table_lie_inside_their_targets(specs, name, entry, place, value, words):
    spec = specs[name]
    with pytest.raises(SchemaError, match=words):
        remade(spec, {entry: changed(spec.arrays[entry], place, value)})


def test_a_hermite_map_that_writes_elsewhere_is_refused():
    """A file like this once wrote to an address of its own choice."""
    spec = km.HermiteMap(n_bases=2).fit([[0.0], [1.0]]).spec_
    arrays = {"width": [2], "column": [0, 2], "first": [10**9], "coef": spec.arrays["coef"][:2]}
    dtypes = {name: spec.arrays[name].dtype for name in arrays}
    with pytest.raises(SchemaError):
        remade(spec, {name: np.array(value, dtypes[name]) for name, value in arrays.items()})


@pytest.mark.parametrize(
    ("name", "arrays", "numbers", "words"),
    [
        ("spline", {"resolution": lambda a: -a}, {}, "must be positive"),
        ("spline", {"coef": lambda a: a[:-1]}, {}, "do not fill it"),
        ("spline", {"coef": lambda a: a.astype(np.float16)}, {}, "must be of type f8 f4"),
        ("spline", {"set_of": lambda a: a.astype(np.int64)}, {}, "must be of type i4"),
        ("spline", {"origin": lambda a: a[:-1]}, {}, "shape"),
        ("spline", {"mix": None}, {}, "lacks 'mix'"),
        ("spline", {"mix_of": lambda a: a + 1}, {}, "'mix_of' is out of range"),
        ("spline", {"band_of": lambda a: a + 9}, {}, "'band_of' is out of range"),
        ("spline", {"band_first": lambda a: a + 9}, {}, "beyond the last column"),
        ("spline", {"secret": lambda a: np.zeros(1)}, {}, "unknown entries 'secret'"),
        ("spline", {"edges": lambda a: np.zeros(3)}, {}, "only bins between edges have 'edges'"),
        ("spline", {}, {"degree": 7}, "fill"),
        ("spline", {}, {"degree": True}, "whole number"),
        ("spline", {}, {"binning": 4}, "at most 3"),
        ("spline", {}, {"binning": 1}, "shared by all features"),
        ("spline", {}, {"binning": 2}, "fill"),
        ("spline", {}, {"signed": 1}, "true or false"),
        ("spline", {}, {"colour": 1}, "unknown entries 'colour'"),
        ("anchor", {"edges": lambda a: a[::-1].copy()}, {}, "must ascend"),
        ("anchor", {"edges": lambda a: np.sign(a - np.median(a)) * 1.7e308}, {}, "too far apart"),
        ("anchor", {"edge_start": lambda a: a + 1}, {}, "fill"),
        ("octaves", {"resolution": lambda a: a + 0.5}, {}, "number of bits"),
        ("octaves", {"origin": lambda a: a * 1e6}, {}, "exponent"),
        ("hadamard", {"rows": lambda a: a + 8}, {}, "less than 8"),
        ("hadamard", {"rows": lambda a: a[::-1].copy()}, {}, "must ascend"),
        ("hadamard", {"signs": lambda a: a[:, :, :6].copy()}, {}, "power of two"),
        ("hadamard", {"gains": lambda a: a[:-1]}, {}, "shape"),
        ("hadamard", {}, {"operator": "matrix"}, "needs"),
        ("dct", {"rows": lambda a: a + 6}, {}, "less than 6"),
        ("dct", {}, {"operator": "hadamard"}, "wrong shape"),
        ("fourier", {"phases": lambda a: a[:-1]}, {}, "'phases' must have 8 entries"),
        ("fourier", {"phases": None}, {}, "either 'phases' or pairs"),
        ("paired", {}, {"paired": False}, "either 'phases' or pairs"),
        ("paired", {"matrix": lambda a: a[:, :0]}, {}, "empty"),
        ("joint", {"amplitudes": lambda a: a[:-1]}, {}, "'amplitudes' must have"),
        ("joint", {"lower": lambda a: a[:-1]}, {}, "shape"),
        ("joint", {"lower": None}, {}, "lacks 'lower'"),
        ("joint", {"lower": lambda a: a + 1e9}, {}, "'lower' is above 'upper'"),
        ("trigonometric", {"scale": lambda a: -a}, {}, "must be positive"),
        ("trigonometric", {"shift": None}, {}, "lacks 'shift'"),
        ("trigonometric", {"shift": lambda a: a + 1e30}, {}, "too far from zero"),
        ("homogeneous", {"phase": lambda a: a[:-1]}, {}, "shape"),
        ("homogeneous", {}, {"gamma": float("nan")}, "finite number"),
        ("homogeneous", {}, {"gamma": "1"}, "must be a number"),
        ("chebyshev", {}, {"n_components": 10**9}, "at most"),
        ("chebyshev", {}, {"scale": 0.0}, "above 0"),
        ("nystroem", {}, {"gamma": 1.0}, "unknown entries 'gamma'"),
    ],
)
def test_entries_that_contradict_each_other_are_refused(specs, name, arrays, numbers, words):
    spec = specs[name]
    made = {k: f and f(spec.arrays.get(k)) for k, f in arrays.items()}
    with pytest.raises(SchemaError, match=words):
        remade(spec, made, numbers)


def test_pickles_and_files_are_held_to_the_schema(specs, tmp_path):
    spec = specs["spline"]
    arrays = {**spec.arrays, "first": changed(spec.arrays["first"], 0, 10**9)}
    header, _ = spec._content()
    storage.write(tmp_path / "spec.kmap", "spec", header, arrays)
    for read in (Spec.load, km.load):
        with pytest.raises(FileFormatError, match="'first' and 'band' reach beyond 'width'"):
            read(tmp_path / "spec.kmap")

    class Forged:
        def __reduce__(self):
            return Spec, (spec.family, arrays, dict(spec.numbers))

    with pytest.raises(SchemaError):
        pickle.loads(pickle.dumps(Forged()))


@pytest.mark.parametrize(
    "header",
    [
        {"version": 1, "family": "nobody", "numbers": {}, "parts": []},
        {"version": 1, "family": None, "numbers": {}, "parts": []},
        {"version": True, "family": "chain", "numbers": {}, "parts": []},
        {"version": 1, "family": "chain", "numbers": [], "parts": []},
        {"version": 1, "family": "chain", "numbers": {}, "parts": [1, 2]},
        {"version": 1, "family": "chain", "numbers": {"x": []}, "parts": []},
        {"version": 1, "family": "chain", "numbers": {}},
        {},
    ],
)
def test_malformed_headers_of_specs_are_refused(header, tmp_path):
    storage.write(tmp_path / "spec.kmap", "spec", header, {})
    with pytest.raises(FileFormatError):
        km.load(tmp_path / "spec.kmap")


def test_parts_within_parts_end_somewhere(tmp_path):
    header = {"version": 1, "family": "chain", "numbers": {}, "parts": []}
    deep = header
    for _ in range(storage.DEEPEST):
        deep = {**header, "parts": [deep]}
    storage.write(tmp_path / "spec.kmap", "spec", deep, {})
    with pytest.raises(FileFormatError, match="levels deep"):
        km.load(tmp_path / "spec.kmap")


def test_rows_of_another_width_are_refused(specs):
    for name, spec in specs.items():
        if name in ("homogeneous", "chebyshev"):  # curves that all features share
            continue
        with pytest.raises(ValueError, match=r"rows of (9|45) features do not fit"):
            apply(spec, rows(d=9))


def test_codes_beyond_the_table_are_refused(specs):
    spec = code_spec(specs["anchor"])
    last = spec.arrays["bins"].min()
    assert apply(spec, np.full((2, 6), last - 1, np.uint8)).shape[0] == 2
    with pytest.raises(ValueError, match="beyond the last bin"):
        apply(spec, np.full((2, 6), 255, np.uint8))
    with pytest.raises(ValueError, match="must be a dense array of unsigned integers"):
        apply(spec, rows())


def test_a_plug_in_registers_its_schema(tmp_path):
    schema = FamilySchema(arrays={"slope": array("f8", "columns", low=0)}, numbers={})
    spec = Spec("test-ramp", {"slope": [-1.0]})  # not known yet: nothing is asked for
    spec.save(tmp_path / "ramp.kmap")
    with pytest.raises(FileFormatError, match="import the plug-in that registers it"):
        km.load(tmp_path / "ramp.kmap")
    register_schema("test-ramp", schema)
    try:
        with pytest.raises(SchemaError, match="must be at least 0"):
            Spec("test-ramp", {"slope": [-1.0]})
        with pytest.raises(FileFormatError, match="must be at least 0"):
            km.load(tmp_path / "ramp.kmap")
        with pytest.raises(ValueError, match="has a schema already"):
            register_schema("test-ramp", schema)
    finally:
        del SCHEMAS["test-ramp"]


def test_shapes_that_share_a_name_must_agree():
    schema = {"a": array("f8", "n"), "b": array("f8", "n 2"), "c": integer(1), "d": boolean}
    good = {"a": np.zeros(3), "b": np.zeros((3, 2)), "c": 1, "d": True}
    assert check_entries(good, schema, {}, "it") == {"n": 3}
    for bad in (
        {"b": np.zeros((4, 2))},
        {"b": np.zeros((3, 3))},
        {"a": np.zeros(0)},
        {"a": [0.0]},
        {"c": 0},
        {"c": 1.0},
        {"d": 1},
        {"e": 1},
    ):
        with pytest.raises(SchemaError):
            check_entries({**good, **bad}, schema, {}, "it")
    with pytest.raises(SchemaError, match="it lacks 'd'"):
        check_entries({k: good[k] for k in "abc"}, schema, {}, "it")
    with pytest.raises(SchemaError, match="finite"):
        number()(2.0**1023 * 4, "it", {})


def test_arrays_that_nobody_can_change_are_not_copied(specs):
    spec = specs["spline"]
    assert remade(spec).arrays["coef"] is spec.arrays["coef"]
    mine = np.array([1.0, 2.0])
    seen = mine.view()
    seen.setflags(write=False)  # but `mine` is still writeable
    spec = Spec("waves", {"amplitude": seen, "frequency": seen, "phase": seen})
    mine[0] = 7.0
    assert spec.arrays["amplitude"][0] == 1.0
