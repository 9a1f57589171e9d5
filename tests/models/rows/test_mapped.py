"""Rows through a map have the sums of their model matrix, stored or computed block by block."""

import numpy as np
import pytest
from scipy import sparse

from kernelmaps.models.losses import make_loss
from kernelmaps.models.rows import mapped
from kernelmaps.models.rows.mapped import MapColumns, MappedRows


class CountedMap:
    """Two columns for each feature, and how many rows it was applied to."""

    n_rows = 0

    def transform(self, X):
        self.n_rows += X.shape[0]
        return sparse.hstack([X, X.multiply(X)]) if sparse.issparse(X) else np.hstack([X, X**2])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_sums_are_those_of_the_matrix(monkeypatch, seed, fit_intercept, in_memory, form):
    monkeypatch.setattr(mapped, "BLOCK_VALUES", 70)  # blocks of 11 rows
    if not in_memory:
        monkeypatch.setattr(mapped, "MEMORY_LIMIT", 0)
    rng = np.random.default_rng(seed)
    X, feature_map = rng.normal(size=(40, 3)), CountedMap()
    Z = np.hstack([X, X**2, np.ones((40, int(fit_intercept)))])
    y, cost = np.sign(rng.normal(size=40)), rng.random(40)
    columns = MapColumns(feature_map.transform, form(X), 6, fit_intercept)
    rows, loss = MappedRows(columns, y, cost), make_loss("squared_hinge", y)
    point = rows.at(loss, rng.normal(size=Z.shape[1]))
    problem = point.working_problem()

    f = Z @ point.beta
    slope, curvature = loss.derivatives(y, f)
    assert 0 < np.count_nonzero(curvature) < 40  # rows without curvature are left out
    np.testing.assert_allclose(point.value, cost @ np.maximum(0, 1 - y * f) ** 2)
    np.testing.assert_allclose(point.gradient(), Z.T @ (cost * slope))
    np.testing.assert_allclose(problem.gram, Z.T @ ((cost * curvature)[:, None] * Z))
    # The minimum of the working problem is where a Newton step goes.
    np.testing.assert_allclose(problem.gram @ point.beta - problem.rhs, point.gradient())
    passes = 5  # scores, the two sums of the working problem, the gradient twice
    assert feature_map.n_rows == (40 if in_memory else 40 * passes)


def test_gram_updates_are_exact_and_take_the_changed_rows_alone(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    X, counted = rng.normal(size=(200, 4)), []
    columns = MapColumns(lambda X: X, X, 4, True)
    products = MapColumns._products

    def counting(self, weight):
        counted.append(np.count_nonzero(weight))
        return products(self, weight)

    monkeypatch.setattr(MapColumns, "_products", counting)
    Z, cost = np.hstack([X, np.ones((200, 1))]), rng.uniform(1, 2, size=200)
    first = cost * (np.arange(200) < 150)
    few_more = cost * (np.arange(200) < 160)
    few_others = 10 * cost * ((np.arange(200) >= 5) & (np.arange(200) < 155))
    for weight in (first, few_more, few_others, first, rng.random(200)):
        expected = Z.T @ (weight[:, None] * Z)
        np.testing.assert_allclose(columns.gram(weight), expected, rtol=1e-10, atol=1e-9)
    # All rows; 10 more; 5 more and 5 fewer than at first; the first again; other weights.
    assert counted == [150, 10, 5, 5, 200]
