"""Rows with codes for columns of two values have the inner products of the map."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.engine.reference import evaluate_table
from kernelmaps.models.rows.basis_rows import BasisRows
from kernelmaps.models.rows.map_basis import TwoValuedColumns, make_basis
from kernelmaps.models.rows.map_tables import make_tables

# ψ(X) in its readable form: the loops here are those of the rows.
pytestmark = pytest.mark.usefixtures("readable")
DOUBLE = np.dtype(np.float64)
MAPS = {
    "splines": km.SplineMap(6),
    "plain splines": km.SplineMap(5, order=0),
    "second order": km.SplineMap(5, order=2),
    "trigonometric": km.TrigonometricMap(2),
}
SPARSE_MAPS = {
    "splines": km.SplineMap(6),
    "trigonometric": km.TrigonometricMap(2),
    "anchors": km.AnchorMap(n_anchors=8, feature_range=(0, None)),
}


def table(rng, n=80, n_two_valued=9):
    """Columns of two values around two of numbers; one of them is constant."""
    low, high = np.sort(rng.normal(size=(2, n_two_valued)), axis=0)
    two_valued = np.where(rng.random((n, n_two_valued)) < 0.25, high, low)
    two_valued[:2] = low, high
    two_valued[:, 3] = 0.7
    return np.insert(two_valued, [2, 7], rng.random((n, 2)), axis=1)


def sparse_table(rng):
    """The same, with zeros, and rows that are not sorted by column."""
    X = np.abs(table(rng)) + 0.1
    X[rng.random(X.shape) < 0.5] = 0
    for j in range(X.shape[1]):
        if j not in (2, 8):
            X[X[:, j] != 0, j] = 1 + rng.random()
    rows = sparse.csr_matrix(X)
    for begin, end in zip(rows.indptr, rows.indptr[1:]):
        order = rng.permutation(np.arange(begin, end))
        rows.indices[begin:end], rows.data[begin:end] = rows.indices[order], rows.data[order]
    return sparse.csr_matrix((rows.data, rows.indices, rows.indptr), rows.shape)


def columns_of(fitted, X):
    return TwoValuedColumns.detect(fitted.spec_, X)


def coded_rows(columns, X):
    codes = columns.encode(X)
    return BasisRows(make_tables(columns.basis, codes, DOUBLE, 1), codes)


def dense(Z):
    return np.asarray(Z.toarray() if sparse.issparse(Z) else Z, np.float64)


CASES = [("dense", name) for name in MAPS] + [("sparse", name) for name in SPARSE_MAPS]


@pytest.fixture(params=[*CASES, ("all", "splines"), ("all", "trigonometric")], ids="-".join)
def case(request, seed):
    """A fitted map, and rows."""
    kind, name = request.param
    rng = np.random.default_rng(seed)
    X = sparse_table(rng) if kind == "sparse" else table(rng)
    if kind == "all":
        X = np.delete(X, [2, 8], axis=1)
    return (SPARSE_MAPS if kind == "sparse" else MAPS)[name].fit(X), X


def test_coded_rows_have_the_inner_products_of_the_map(case):
    """Up to constants, which an intercept absorbs: centred Gram matrices are equal."""
    fitted, X = case
    columns = columns_of(fitted, X)
    rows, Z = coded_rows(columns, X), dense(fitted.transform(X))
    widths = make_basis(fitted.spec_, X, DOUBLE).widths
    assert columns.n_weights == 9 + widths[~columns.is_two_valued].sum()
    # Two anchors need one column, which is the code.
    assert rows.n_weights < Z.shape[1] or (widths[columns.is_two_valued] == 1).all()
    coded = np.stack([rows.scores(unit) for unit in np.eye(rows.n_weights)], axis=1)
    grams = [A @ A.T for A in (coded - coded.mean(axis=0), Z - Z.mean(axis=0))]
    # Trigonometric functions and cosines are tabulated.
    np.testing.assert_allclose(*grams, atol=1e-10 * np.abs(grams[1]).max())


def test_weights_of_coded_rows_have_the_scores_of_weights_of_the_map(case, seed):
    fitted, X = case
    columns = columns_of(fitted, X)
    rows = coded_rows(columns, X)
    w = np.random.default_rng(seed).normal(size=rows.n_weights)
    weights = rows.transform_weights(w)[:, :, None]
    basis = make_basis(fitted.spec_, X, DOUBLE)
    phi = evaluate_table(basis.table, dense(X), np)
    expanded = columns.transform_weights(weights)[:, :, 0]
    constant = np.ptp(dense(X), axis=0) == 0
    assert not expanded[constant].any()
    used = np.arange(expanded.shape[1]) < basis.widths[:, None]
    scores = phi @ expanded[used] - columns.intercept_shift(weights)
    np.testing.assert_allclose(rows.scores(w), scores, atol=1e-10 * np.abs(scores).max())


def test_sums_over_rows_with_several_values_of_a_feature(case, seed):
    fitted, X = case
    rows = coded_rows(columns_of(fitted, X), X)
    rng = np.random.default_rng(seed)
    Z = np.stack([rows.scores(unit) for unit in np.eye(rows.n_weights)], axis=1)
    values, weight = rng.normal(size=len(Z)), rng.random(len(Z))
    gram = Z.T @ (weight[:, None] * Z)
    atol = 1e-12 * np.abs(gram).max() * len(Z)
    np.testing.assert_allclose(rows.adjoint(values), Z.T @ values, atol=atol)
    np.testing.assert_allclose(rows.gram(weight), gram, atol=atol)
    n, width = rows.n_features, rows.width
    blocks = gram.reshape(n, width, n, width)[range(n), :, range(n)]
    np.testing.assert_allclose(rows.blocks(weight), blocks, atol=atol)


def test_codes_are_for_tables_that_have_enough_such_columns(seed):
    rng = np.random.default_rng(seed)
    X = table(rng, 300)
    X[5, 0] = 0.123  # a third value, which rows that are looked at first do not have
    fitted = km.SplineMap().fit(X)
    columns = columns_of(fitted, X)
    assert np.flatnonzero(~columns.is_two_valued).tolist() == [0, 2, 8]
    few = X[:, [2, 8, 1, 2, 8]]
    balanced = np.hstack([X[:, [2]], rng.integers(0, 2, (len(X), 4))])
    for rows in (few, balanced):
        assert columns_of(km.SplineMap().fit(rows), rows) is None


def test_codes_do_not_stand_beside_octaves_or_integers(seed):
    X = np.abs(table(np.random.default_rng(seed)))
    assert columns_of(km.HomogeneousMap().fit(X), X) is None
    integers = (100 * X).astype(np.uint8)
    for rows in (integers, sparse.csr_matrix(integers)):
        assert columns_of(km.SplineMap().fit(rows), rows) is None
    two_valued = np.delete(X, [2, 8], axis=1)
    assert columns_of(km.HomogeneousMap().fit(two_valued), two_valued).is_two_valued.all()


def test_stored_zeros_are_values_like_others(seed):
    rng = np.random.default_rng(seed)
    X = sparse_table(rng)
    at = np.flatnonzero(X.indices == 0)[0]
    X.data[at] = 0.0
    fitted = km.SplineMap().fit(X)
    columns = columns_of(fitted, X)
    assert not columns.is_two_valued[0]
    rows, Z = coded_rows(columns, X), dense(fitted.transform(X))
    coded = np.stack([rows.scores(unit) for unit in np.eye(rows.n_weights)], axis=1)
    np.testing.assert_allclose(coded @ coded.T, Z @ Z.T, atol=1e-10 * np.abs(Z @ Z.T).max())
