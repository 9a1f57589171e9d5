"""What compiled loops take: rows of any strides, also read-only ones, and indices of any width."""

from functools import partial

import numba
import numpy as np
from scipy import sparse

import kernelmaps as km
from kernelmaps.engine.table import dot, encode, transform
from kernelmaps.engine.table.locate import stored_rows
from kernelmaps.kernels import _loops
from kernelmaps.models.solvers import _dual_loops


def test_csr_rows_with_gaps_between_their_numbers_are_rows_like_others(seed):
    rng = np.random.default_rng(seed)
    X = sparse.random(30, 6, 0.5, format="csr", random_state=seed)
    y = rng.integers(0, 2, 30)
    gaps = X.copy()
    gaps.data, gaps.indices, gaps.indptr = (
        np.repeat(part, 2)[::2] for part in (X.data, X.indices, X.indptr)
    )
    assert not gaps.data.flags.contiguous
    chi2 = km.HomogeneousMap().fit(X)
    assert (chi2.transform(gaps) != chi2.transform(X)).nnz == 0
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
        (_dual_loops, "update_examples"), (_loops, "dense_sums"),
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
