"""Damaged sparse matrices are refused on entry of every path, before any loop follows them."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps._util.sparse import check_sparse
from kernelmaps.data import open_source

SHAPE = (40, 5)


def rows(form="csr"):
    X = np.random.default_rng(0).random(SHAPE)
    return sparse.csr_matrix(np.where(X < 0.4, 0, X)).asformat(form)


def damaged(part, place, value, form="csr"):
    X = rows(form)
    getattr(X, part)[place] = value
    return X


DAMAGE = {
    "index too large": ("indices", 3, 10**9),
    "index negative": ("indices", 3, -7),
    "indptr beyond the end": ("indptr", -1, 10**6),
    "indptr descends": ("indptr", 5, 10**6),
    "indptr does not begin at 0": ("indptr", 0, 3),
}
LABELS = np.arange(SHAPE[0]) % 2
PATHS = {
    "map.fit": lambda X: km.HomogeneousMap().fit(X),
    "map.transform": lambda X: km.HomogeneousMap().fit(rows()).transform(X),
    "joint map": lambda X: km.RandomFourierMap(n_components=8).fit(rows().toarray()).transform(X),
    "encode": lambda X: km.AnchorMap(n_anchors=4, feature_range=(0, None)).fit(rows()).encode(X),
    "kernel": lambda X: km.kernels.chi2(X),
    "second rows of a kernel": lambda X: km.kernels.chi2(rows(), X),
    "AdditiveSVC.fit": lambda X: km.AdditiveSVC().fit(X, LABELS),
    "AdditiveSVR, chunks": lambda X: km.AdditiveSVR().fit([(X, LABELS), (X, LABELS)]),
    "StreamingRidge.fit": lambda X: km.StreamingRidge().fit(X, LABELS),
    "StreamingPCA, chunks": lambda X: km.StreamingPCA().fit([X, X]),
    "StreamingPCA.partial_fit": lambda X: km.StreamingPCA().partial_fit(X),
    "open_source": lambda X: open_source(X),
    "choose": lambda X: km.choose(X, "chi2", max_error=0.1),
    "compare": lambda X: km.compare(X, LABELS),
    "kernel_error": lambda X: km.kernel_error(km.HomogeneousMap().fit(rows()), X),
    "effective_sparsity": lambda X: km.effective_sparsity(X),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("damage", ["index too large", "indptr descends"])
def test_every_path_refuses_a_damaged_matrix(path, damage):
    with pytest.raises(ValueError, match="is damaged"):
        PATHS[path](damaged(*DAMAGE[damage]))


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_each_kind_of_damage_is_found(damage, form):
    with pytest.raises(ValueError, match=r"somebody: the sparse matrix Y of shape .* is damaged: "):
        check_sparse(damaged(*DAMAGE[damage], form), "somebody", "Y")


def test_rows_that_reach_beyond_the_values_are_found_though_the_last_is_empty():
    X = sparse.csr_matrix((3, 4))
    X.indptr = np.array([0, 10**6, 10**6, 0], dtype=X.indptr.dtype)
    with pytest.raises(ValueError, match="is damaged: indptr must not descend"):
        check_sparse(X, "somebody")


def test_other_formats_are_checked_before_they_are_converted():
    coo, bsr = rows("coo"), sparse.bsr_matrix(rows().toarray(), blocksize=(2, 1))
    coo.row[2], bsr.indices[1] = 10**9, 5
    for X, message in ((coo, "axis 0 index 1000000000"), (bsr, "index values must be < 5")):
        with pytest.raises(ValueError, match=f"is damaged: .*{message}"):
            km.HomogeneousMap().fit(X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_whole_matrices_pass(form):
    check_sparse(rows(form), "somebody")
    check_sparse(sparse.csr_matrix(SHAPE).asformat(form), "somebody")
    Z = km.HomogeneousMap().fit_transform(rows(form))
    np.testing.assert_array_equal(Z.toarray(), km.HomogeneousMap().fit_transform(rows()).toarray())


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_lengths_that_do_not_belong_together_are_refused(part):
    X = rows()
    setattr(X, part, getattr(X, part)[:-1])
    with pytest.raises(ValueError, match="is damaged"):
        check_sparse(X, "somebody")


def test_engine_sums_and_scaler_refuse_indices_out_of_range():
    """Those that take rows without a map or a model in front of them."""
    X = sparse.random(60, 6, 0.5, format="csr", random_state=0)
    spec = km.SplineMap(6).fit(X).spec_
    damaged = X.copy()
    damaged.indices[3] = 10**8
    scaler = km.MeanNormScaler().fit(X)
    moments = km.stats.Moments("real").update(X, np.arange(60.0))
    for call in (
        lambda: km.engine.apply(spec, damaged),
        lambda: km.stats.Moments("real").update(damaged, np.arange(60.0)),
        lambda: moments.partial(damaged, np.arange(60.0)),
        lambda: scaler.transform(damaged),
    ):
        with pytest.raises(ValueError, match="is damaged: indices must be < 6"):
            call()
