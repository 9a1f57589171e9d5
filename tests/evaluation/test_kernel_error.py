"""kernel_error against a direct computation."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_approximation import AdditiveChi2Sampler

import kernelmaps as km


@pytest.fixture
def rows(seed):
    return np.random.default_rng(seed).dirichlet(np.ones(8), size=30)


def test_figures_by_hand(rows):
    fitted = km.HomogeneousMap("chi2", 3).fit(rows)
    Z = fitted.transform(rows)
    exact = km.kernels.chi2(rows, rows[:10])
    E = Z @ Z[:10].T - exact
    error = km.kernel_error(fitted, rows, rows[:10])
    np.testing.assert_allclose(error.max, np.abs(E).max())
    np.testing.assert_allclose(error.rms, np.sqrt(np.mean(E**2)))
    np.testing.assert_allclose(error.relative, np.linalg.norm(E) / np.linalg.norm(exact))
    np.testing.assert_allclose(error.bias, E.mean())
    assert error.n_pairs == 300
    assert "over 300 pairs" in str(error)


@pytest.mark.parametrize("feature_map", [km.HomogeneousMap("chi2", 3), km.ExponentialMap()])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_all_pairs_of_rows_by_blocks(rows, monkeypatch, feature_map, container):
    """Blocks of both orders of two rows are computed once and count twice."""
    X = container(rows)
    fitted = feature_map.fit(X)
    expected = km.kernel_error(fitted, X, X)
    for size in (30, 7):
        blocks = [slice(k, min(k + size, 30)) for k in range(0, 30, size)]
        monkeypatch.setattr("kernelmaps.evaluation.kernel_error.row_blocks", lambda *_, b=blocks: b)
        found = km.kernel_error(fitted, X)
        assert found.n_pairs == 900
        for ours, theirs in zip(
            [found, *found.parts.values()], [expected, *expected.parts.values()], strict=True
        ):
            np.testing.assert_allclose(
                [ours.max, ours.rms, ours.relative, ours.bias, ours.size],
                [theirs.max, theirs.rms, theirs.relative, theirs.bias, theirs.size],
                rtol=1e-9,
                atol=1e-12,
            )


def test_unfitted_maps_are_fitted_on_a_copy(rows):
    unfitted = km.HomogeneousMap("chi2", 3)
    error = km.kernel_error(unfitted, rows)
    assert not hasattr(unfitted, "spec_")
    assert error == km.kernel_error(km.HomogeneousMap("chi2", 3).fit(rows), rows)


def test_csr_and_foreign_transformers(rows):
    sampler = AdditiveChi2Sampler(sample_steps=3).fit(rows)
    dense = km.kernel_error(sampler, rows, kernel="chi2")
    compressed = km.kernel_error(sampler, sparse.csr_matrix(rows), kernel="chi2")
    np.testing.assert_allclose(compressed.rms, dense.rms, rtol=1e-9)
    with pytest.raises(TypeError, match="pass kernel="):
        km.kernel_error(sampler, rows)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_give_the_same_figures(rows, library):
    frames = pytest.importorskip(library)
    X = frames.DataFrame({f"x{j}": rows[:, j] for j in range(rows.shape[1])})
    found = km.kernel_error(km.HomogeneousMap().set_output(transform=library), X)
    expected = km.kernel_error(km.HomogeneousMap(), rows)
    np.testing.assert_allclose([found.max, found.rms], [expected.max, expected.rms], rtol=1e-9)
