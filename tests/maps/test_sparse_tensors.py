"""Maps on torch's CSR tensors."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.engine import record_paths

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]


def tensor(X):
    parts = (torch.asarray(part) for part in (X.indptr, X.indices, X.data))
    return torch.sparse_csr_tensor(*parts, size=X.shape, check_invariants=True)


def problem(seed, dtype=np.float64):
    X = sparse.random(40, 9, 0.3, format="csr", random_state=seed, dtype=dtype)
    X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    return X


@pytest.mark.parametrize(
    "feature_map",
    [km.HomogeneousMap(), km.ChebyshevMap(4), km.SplineMap(n_bases=5, zero_at_zero=True)],
)
def test_csr_stays_csr_where_zero_is_mapped_to_zero(feature_map, seed):
    X = problem(seed)
    fitted = feature_map.fit(X)
    with record_paths() as paths:
        Z = fitted.transform(tensor(X))
    assert paths[0] == f"reference:{fitted.spec_.family}:csr"
    assert Z.layout == torch.sparse_csr
    expected = fitted.transform(X)
    np.testing.assert_allclose(Z.to_dense().numpy(), expected.toarray(), rtol=0, atol=1e-12)


def test_other_maps_give_dense_results(seed):
    X = problem(seed)
    for feature_map in (km.SplineMap(), km.RandomFourierMap(n_components=8, random_state=0)):
        fitted = feature_map.fit(X.toarray())
        Z = fitted.transform(tensor(X))
        assert Z.layout == torch.strided
        expected = fitted.transform(X.toarray())
        np.testing.assert_allclose(Z.numpy(), expected, rtol=0, atol=1e-12)


def test_bad_tensors_are_named(seed):
    X = problem(seed)
    fitted = km.HomogeneousMap().fit(X)
    with pytest.raises(TypeError, match=r"HomogeneousMap: X is a tensor with the layout .*coo"):
        fitted.transform(tensor(X).to_sparse_coo())
    with pytest.raises(ValueError, match="X has 8 features, but HomogeneousMap is expecting 9"):
        fitted.transform(tensor(X[:, :8]))
    with pytest.raises(ValueError, match="Negative values in data passed to HomogeneousMap"):
        fitted.transform(tensor(-X))
    stray = X.indices.copy()
    stray[3] = 90
    with pytest.raises(ValueError, match="HomogeneousMap: X is not a valid CSR tensor"):
        fitted.transform(
            torch.sparse_csr_tensor(
                torch.asarray(X.indptr), torch.asarray(stray), torch.asarray(X.data), size=X.shape,
                check_invariants=False,
            )
        )  # fmt: skip
