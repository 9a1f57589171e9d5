"""Packed arguments: compiled loops see what Python has."""

import ast
import pickle
from pathlib import Path
from typing import NamedTuple

import numba as nb
import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps._util.static_int import StaticInt
from kernelmaps.engine.table import entry as entries
from kernelmaps.engine.table import packing
from kernelmaps.engine.table.encode import encode_dense
from kernelmaps.engine.table.entry import Entry, Routine, bind, call, entry
from kernelmaps.engine.table.locate import stored_rows
from kernelmaps.engine.table.packing import Packed, packed
from kernelmaps.engine.table.transform import transform_dense, transform_plan

NOT_KEPT = {**entries.OPTIONS, "cache": False}
HOME = Path(km.__file__).parent
LOOPS = [
    *(
        HOME / "engine" / "table" / f"{n}.py"
        for n in ("locate", "transform", "dot", "update", "encode")
    ),
    HOME / "models" / "solvers" / "_dual_loops.py",
]


class Inner(NamedTuple):
    table: np.ndarray
    static: StaticInt
    share: float


class Outer(NamedTuple):
    inner: Inner
    flag: bool
    count: int
    square: np.ndarray


def _value(static=3, flag=True):
    table = np.array([1.5, -2.0, 4.0], np.float32)
    square = np.arange(6, dtype=np.int64).reshape(2, 3)
    return Outer(Inner(table, StaticInt(static), -0.25), flag, -7, square)


def _seen(outer, x, step):
    """Everything that a loop can ask of its arguments."""
    inner, flag, count, square = outer.inner, outer.flag, outer.count, outer.square
    x[0] = inner.table[1] * inner.share
    x[1] = inner.static + 10 * flag
    x[2] = count + step
    x[3] = square[1, 2] + 100 * square.shape[0] + 1000 * square.shape[1] + 10000 * square.size
    x[4] = square.strides[0] + square.itemsize + inner.table.size
    return inner.share


_loop = Entry(nb.njit(_seen, **NOT_KEPT))


def test_a_loop_sees_the_fields_of_a_tuple():
    for static, flag in ((3, True), (1, False), (0, True)):
        expected, found = np.zeros(5), np.zeros(5)
        assert _seen(_value(static, flag), expected, 9) == _loop(_value(static, flag), found, 9)
        np.testing.assert_array_equal(found, expected)


def test_static_integers_and_types_are_variants_but_writable_or_not_is_none():
    value = _value()
    locked = value.square.copy()
    locked.flags.writeable = False
    kind = Packed(value)._numba_type_
    assert Packed(value._replace(square=locked))._numba_type_ == kind
    assert Packed(value._replace(count=12, flag=np.False_))._numba_type_ == kind
    others = [
        _value(static=2),
        value._replace(square=value.square.astype(np.int32)),
        value._replace(square=value.square[0]),
        value._replace(count=1.0),
    ]
    kinds = [Packed(other)._numba_type_ for other in others]
    assert len({kind, *kinds}) == 5
    assert len({kind.name, *(other.name for other in kinds)}) == 5


def test_rows_that_may_not_be_written_need_no_other_variant():
    loop = Entry(nb.njit(lambda x, out: out.size + x.size))
    locked = np.zeros(3)
    locked.flags.writeable = False
    assert [loop(x, np.zeros(2)) for x in (np.zeros(3), locked)] == [5, 5]
    assert len(loop.loop.signatures) == 1


def test_strides_are_refused_not_misread():
    with pytest.raises(TypeError, match=r"contiguous arrays, not strides \(16,\)"):
        Packed(np.zeros(6)[::2])
    with pytest.raises(TypeError, match="contiguous"):
        Packed(_value()._replace(square=np.zeros((3, 2)).T))


def test_addresses_of_arrays_are_those_that_numpy_tells(tmp_path):
    plain = np.arange(12.0).reshape(3, 4)
    locked = plain[1:].copy()
    locked.flags.writeable = False
    mapped = np.memmap(tmp_path / "numbers", np.uint8, "w+", shape=64)
    kinds = [plain, plain[2:], locked, mapped, mapped[3:9], np.zeros(0), np.array(1.0)]
    for numbers in [*kinds, plain.view(np.recarray), np.ma.masked_array(plain)]:
        known = numbers.__array_interface__["data"][0]
        assert Packed(numbers).words[0] == packing._address(numbers) == known


def test_numbers_that_compiled_code_cannot_hold_are_refused():
    with pytest.raises(TypeError, match="str"):
        Packed(_value()._replace(count="7"))


def test_tuples_travel_to_other_processes_as_what_they_are():
    value = _value()
    found = pickle.loads(pickle.dumps(Packed(value)))
    assert found.address != Packed(value).address
    numbers = np.zeros(5), np.zeros(5)
    assert _loop(found, numbers[0], 9) == _loop(value, numbers[1], 9)
    np.testing.assert_array_equal(*numbers)


def test_other_versions_of_numba_take_tuples_as_they_are(monkeypatch, seed):
    """The same numbers; a version that nothing is known of may lay out its types in another way."""
    X = np.random.default_rng(seed).random((40, 3))
    expected = km.SplineMap(4).fit(X).transform(X)
    monkeypatch.setattr(packing, "TESTED_VERSIONS", ("0.1",))
    assert packed(X) is X
    transform_plan.cache_clear()
    compiled = len(transform_dense.loop.signatures)
    found = km.SplineMap(4).fit(X).transform(X)
    transform_plan.cache_clear()
    assert len(transform_dense.loop.signatures) == compiled + 1
    np.testing.assert_array_equal(found, expected)


def test_columns_of_any_table_are_written_by_one_loop(seed):
    X = np.random.default_rng(seed).random((40, 3))
    km.SplineMap(4).fit(X).transform(X)
    compiled = len(transform_dense.loop.signatures)
    km.SplineMap(12, degree=1).fit(X).transform(X)
    assert len(transform_dense.loop.signatures) == compiled


def test_codes_of_any_size_and_any_number_of_features_take_one_loop(seed):
    X = np.random.default_rng(seed).random((40, 20))
    km.AnchorMap(n_anchors=5).fit(X).encode(X)
    compiled = len(encode_dense.loop.signatures)
    one = km.AnchorMap(n_anchors=5).fit(X[:, :1]).encode(X[:, :1])
    many = km.AnchorMap(n_anchors=500).fit(X).encode(X)
    assert (one.values.dtype, many.values.dtype) == (np.uint8, np.uint16)
    assert len(encode_dense.loop.signatures) == compiled


class Known(NamedTuple):
    numbers: np.ndarray
    factor: StaticInt


class Result(NamedTuple):
    values: np.ndarray


class Use(NamedTuple):
    routine: object
    known: object


def _times(known, result, i):
    result.values[i] = known.numbers[i] * known.factor


def _each(use, result, n):
    for i in range(n):
        call(use, result, i)


@pytest.mark.parametrize("known_version", [True, False])
def test_a_loop_is_compiled_once_for_all_kinds_of_a_routine(known_version, monkeypatch):
    """Versions of numba that nothing is known of compile it for each, with the same results."""
    if not known_version:
        monkeypatch.setattr(packing, "TESTED_VERSIONS", ("0.1",))
    made, loop = Routine(nb.njit(_times, **NOT_KEPT)), Entry(nb.njit(_each, **NOT_KEPT))
    kinds = [(factor, dtype) for factor in (1, 3) for dtype in (float, np.float32)]
    for factor, dtype in kinds:
        known, result = Known(np.arange(4, dtype=dtype), StaticInt(factor)), Result(np.zeros(4))
        loop(Use(*bind(made, (known,), (result,), 1)), result, 4)
        np.testing.assert_array_equal(result.values, factor * np.arange(4))
    assert len(made.loop.signatures) == 4
    assert len(loop.loop.signatures) == (1 if known_version else 4)


def test_arrays_are_refused_by_routines_which_would_misread_them():
    with pytest.raises(TypeError, match="takes NamedTuples and whole numbers, not arrays"):
        bind(None, (np.zeros(3),), (), 1)


def test_entries_are_compiled_functions_with_their_names():
    def loop(x):
        """What it does."""
        return x.size

    made = entry(fastmath=True)(loop)
    assert made.__name__ == "loop"
    assert made.__doc__ == "What it does."
    assert made(np.zeros(4)) == 4


def test_csr_rows_with_gaps_between_their_numbers_are_rows_like_others(seed):
    rng = np.random.default_rng(seed)
    X = sparse.random(30, 6, 0.5, format="csr", random_state=seed)
    y = rng.integers(0, 2, 30)
    gaps = X.copy()
    gaps.data, gaps.indices, gaps.indptr = (
        np.repeat(part, 2)[::2] for part in (X.data, X.indices, X.indptr)
    )
    assert not gaps.data.flags.contiguous
    chi2, anchors = (made.fit(X) for made in (km.HomogeneousMap(), km.AnchorMap(anchors="uniform")))
    assert (chi2.transform(gaps) != chi2.transform(X)).nnz == 0
    codes = [km.engine.encode(anchors.spec_, rows) for rows in (gaps, X)]
    np.testing.assert_array_equal(codes[0].data, codes[1].data)
    models = [km.AdditiveSVC(random_state=0).fit(rows, y) for rows in (gaps, X)]
    scores = [model.decision_function(rows) for model, rows in zip(models, (gaps, X), strict=True)]
    np.testing.assert_array_equal(*scores)


def test_indices_of_64_bits_share_the_loops_of_others():
    """Unless 32 bits do not hold them."""
    wide = [np.array(part, np.int64) for part in ([2, 0], [0, 1, 2])]
    found = stored_rows(np.ones(2), *wide)
    assert found.indices.dtype == found.indptr.dtype == np.int32
    np.testing.assert_array_equal(found.indices, [2, 0])
    for indices, end in (([2**31], 1), ([0], 2**31)):
        kept = stored_rows(np.ones(1), np.array(indices), np.array([0, end]))
        assert kept.indices.dtype == kept.indptr.dtype == np.int64
        assert (kept.indices.tolist(), kept.indptr[-1]) == (indices, end)


def _written_out(function, helpers):
    """Calls of helpers with integers that are written out, or with names that stand for one."""
    number = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_integer(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in helpers:
            names = {getattr(argument, "id", None) for argument in node.args}
            if number & names or any(_is_integer(argument) for argument in node.args):
                yield f"{function.name}: {ast.unparse(node)}"


def _is_integer(node):
    return isinstance(node, ast.Constant) and type(node.value) is int


@pytest.mark.parametrize("file", LOOPS, ids=lambda file: file.stem)
def test_no_helper_is_compiled_again_for_an_integer_that_is_written_out(file):
    """numba takes 0 for a type of its own, so that a loop would be compiled twice."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in LOOPS}
    functions = {path: [n for n in tree.body if isinstance(n, ast.FunctionDef)]
                 for path, tree in trees.items()}  # fmt: skip
    helpers = {one.name for found in functions.values() for one in found}
    assert {"affine_position", "_write", "locate_row", "score", "_add_term"} <= helpers
    wrong = [call for one in functions[file] for call in _written_out(one, helpers)]
    assert wrong == []


def test_integers_that_are_written_out_are_found():
    loop = ast.parse("def loop(x):\n    a = 0\n    add(x, a)\n    add(x, 1)\n    add(x, x)")
    found = list(_written_out(loop.body[0], {"add"}))
    assert found == ["loop: add(x, a)", "loop: add(x, 1)"]
