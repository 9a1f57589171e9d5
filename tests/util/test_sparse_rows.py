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
    "AdditiveSVR.partial_fit": lambda X: km.AdditiveSVR().partial_fit(X, LABELS),
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
def test_each_kind_of_damage_is_named(damage, form):
    part = DAMAGE[damage][0]
    with pytest.raises(ValueError, match=rf"somebody: the sparse matrix Y .*damaged: {part}"):
        check_sparse(damaged(*DAMAGE[damage], form), "somebody", "Y")


def test_other_formats_are_checked_before_they_are_converted():
    X = rows("coo")
    X.row[2] = 10**9
    with pytest.raises(ValueError, match="coordinates must be from 0 to 39, found 1000000000"):
        km.HomogeneousMap().fit(X)
    X = sparse.bsr_matrix(rows().toarray(), blocksize=(2, 1))
    X.indices[1] = 5
    with pytest.raises(ValueError, match="indices must be from 0 to 4, found 5"):
        km.HomogeneousMap().fit(X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_whole_matrices_pass(form):
    check_sparse(rows(form), "somebody")
    check_sparse(sparse.csr_matrix(SHAPE).asformat(form), "somebody")
    Z = km.HomogeneousMap().fit_transform(rows(form))
    np.testing.assert_array_equal(Z.toarray(), km.HomogeneousMap().fit_transform(rows()).toarray())


def test_lengths_that_do_not_belong_together_are_refused():
    X = rows()
    X.data = X.data[:-1]
    with pytest.raises(ValueError, match="indices and"):
        check_sparse(X, "somebody")
    X = rows()
    X.indptr = X.indptr[:-1]
    with pytest.raises(ValueError, match="indptr must have 41 entries, found 40"):
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
        lambda: km.engine.encode(spec, damaged),
        lambda: km.stats.Moments("real").update(damaged, np.arange(60.0)),
        lambda: moments.partial(damaged, np.arange(60.0)),
        lambda: scaler.transform(damaged),
    ):
        with pytest.raises(ValueError, match="is damaged: indices must be from 0 to 5"):
            call()
