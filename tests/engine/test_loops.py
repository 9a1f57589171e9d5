"""What compiled loops take: rows of any strides, indices of any width, numbers by their type."""

import ast
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.engine.table import dot, encode, transform
from kernelmaps.engine.table.locate import stored_rows
from kernelmaps.kernels import _loops
from kernelmaps.models.solvers import _dual_loops

PACKAGE = Path(km.__file__).parent
LOOPS = [
    *(PACKAGE / "engine" / "table").glob("*.py"),
    PACKAGE / "models" / "solvers" / "_dual_loops.py",
    PACKAGE / "models" / "rows" / "band_rows.py",
]


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


def test_rows_that_are_read_only_share_the_loops_of_others(seed, monkeypatch):
    """Those of pandas are, and arrays of both kinds are of different types to numba."""
    rng, types = np.random.default_rng(seed), []
    rows, y = rng.random((300, 10)), rng.integers(0, 2, 300)
    read_only = rows.copy()
    read_only.flags.writeable = False

    def record(loop, *args):
        types[-1].add(tuple(map(numba.typeof, args)))
        return loop(*args)

    for module, name in (
        (transform, "transform_dense"), (encode, "encode_dense"), (dot, "dot_dense"),
        (_dual_loops, "visit_examples"), (_loops, "dense_sums"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, partial(record, getattr(module, name)))
    model, codes = (
        km.AdditiveSVC(km.SplineMap(), 1.0, solver="dual"),
        km.AnchorMap(anchors="uniform").fit(rows),
    )
    for X in (rows, read_only):
        types.append(set())
        model.fit(X, y).decision_function(X)
        model.feature_map_.transform(X)
        km.engine.encode(codes.spec_, X)
        km.kernels.chi2(X)
    assert len(types[0]) > 4
    assert types[0] == types[1]
    assert rows.flags.writeable


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
    assert {"locate_values", "_write", "locate_row", "score", "_add_term"} <= helpers
    wrong = [call for one in functions[file] for call in _written_out(one, helpers)]
    assert wrong == []


def test_integers_that_are_written_out_are_found():
    loop = ast.parse("def loop(x):\n    a = 0\n    add(x, a)\n    add(x, 1)\n    add(x, x)")
    found = list(_written_out(loop.body[0], {"add"}))
    assert found == ["loop: add(x, a)", "loop: add(x, 1)"]
