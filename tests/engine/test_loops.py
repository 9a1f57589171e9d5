"""What compiled loops take: rows of any strides, also read-only ones, and indices of any width."""

import numpy as np
from scipy import sparse

import kernelmaps as km
from kernelmaps.engine.table.locate import stored_rows
from kernelmaps.engine.table.stored import flatten


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


def test_rows_that_may_not_be_written_to_share_the_loops_of_others():
    rows = np.arange(6.0).reshape(2, 3)
    rows.flags.writeable = False
    flat = flatten(rows)
    assert flat.flags.writeable
    assert np.shares_memory(flat, rows)
    np.testing.assert_array_equal(flat, rows.ravel())
