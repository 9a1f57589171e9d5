"""Sums over the non-zero basis functions of rows are those of ψ(X)."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.models.rows import basis_rows
from kernelmaps.models.rows.basis_rows import BasisRows
from kernelmaps.models.rows.map_basis import make_basis
from kernelmaps.models.rows.map_tables import make_tables

# ψ(X) in its readable form: the loops here are those of the rows.
pytestmark = pytest.mark.usefixtures("readable")
MAPS = {
    "splines": km.SplineMap(20),  # few of them are not zero: Gram matrices by pairs of entries
    "smooth splines": km.SplineMap(6, order=2),
    "trigonometric": km.TrigonometricMap(3),
    "of sparse rows": km.HomogeneousMap(),
}


def basis_rows_of(feature_map, X):
    """Rows by their basis functions, and the columns of ψ(X) that they stand for."""
    Z = feature_map.fit(X).transform(X)
    basis = make_basis(feature_map.spec_, X, np.dtype(np.float64))
    rows = BasisRows(make_tables(basis, X, np.float64, 1), X)
    return rows, np.asarray(Z.toarray() if sparse.issparse(Z) else Z, np.float64)


def table(rng, name, n=60):
    X = rng.random((n, 3))
    return sparse.csr_matrix(np.where(X < 0.5, 0, X)) if name == "of sparse rows" else X


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("in_memory", [True, False])
def test_sums_are_those_of_the_columns(monkeypatch, seed, name, in_memory):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(basis_rows, "BLOCK_VALUES", 150)  # several blocks
    if not in_memory:
        monkeypatch.setattr(basis_rows, "MEMORY_LIMIT", 0)
    rows, Z = basis_rows_of(MAPS[name], table(rng, name))
    assert rows.n_weights == Z.shape[1]
    assert len(list(rows)) > 1
    w, values = rng.normal(size=Z.shape[1]), rng.normal(size=len(Z))
    weight = rng.random(len(Z)) * (rng.random(len(Z)) < 0.5)  # half of the rows have none
    gram = Z.T @ (weight[:, None] * Z)
    # Rounding errors of sums of that many terms; curves of trigonometric functions are tabulated.
    atol = 1e-12 * max(1.0, float(np.abs(gram).max()) * np.abs(w).sum())
    np.testing.assert_allclose(rows.scores(w), Z @ w, atol=atol)
    np.testing.assert_allclose(rows.adjoint(values), Z.T @ values, atol=atol)
    np.testing.assert_allclose(rows.product(weight, w), gram @ w, atol=atol)
    shifted = rows.product(weight, w, 0.7)
    np.testing.assert_allclose(shifted, gram @ w - 0.7 * Z.T @ weight, atol=atol)
    np.testing.assert_allclose(rows.gram(weight), gram, atol=atol)
    blocks = gram.reshape(3, rows.width, 3, rows.width)[range(3), :, range(3)]
    np.testing.assert_allclose(rows.blocks(weight), blocks, atol=atol)


def test_weights_of_the_basis_have_the_scores_of_the_map(seed):
    rng = np.random.default_rng(seed)
    rows, _ = basis_rows_of(MAPS["smooth splines"], table(rng, "smooth splines"))
    w = rng.normal(size=rows.n_weights)
    basis = rows.tables.map_basis
    expected = basis.transform_weights(w[:, None])[:, :, 0]
    np.testing.assert_allclose(
        rows.transform_weights(w), expected, atol=1e-12 * np.abs(expected).max()
    )


def test_rows_are_located_once(monkeypatch, seed):
    located, write = [], basis_rows.write_entries
    monkeypatch.setattr(basis_rows, "write_entries", lambda *a: (located.append(a), write(*a))[1])
    rng = np.random.default_rng(seed)
    rows, _ = basis_rows_of(MAPS["splines"], table(rng, "splines"))
    for _ in range(3):
        rows.scores(np.zeros(rows.n_weights))
    assert len(located) == 1
