"""Datasets of a folder keep their dtype and sparsity."""

import numpy as np
import pytest
from scipy import sparse

from benchmarks import datasets


def save_csr(name, matrix):
    return {
        f"{name}_data": matrix.data,
        f"{name}_indices": matrix.indices.astype(np.uint16),
        f"{name}_indptr": matrix.indptr,
        f"{name}_shape": np.array(matrix.shape),
    }


@pytest.fixture
def counts(seed):
    dense = np.random.default_rng(seed).poisson(0.5, size=(12, 7)).astype(np.uint8)
    return sparse.csr_matrix(dense)


def test_dense_file_keeps_dtypes(tmp_path):
    arrays = {
        "X_train": np.arange(6, dtype=np.uint8).reshape(3, 2),
        "y_train": np.array([0, 1, 0]),
        "X_test": np.ones((1, 2), np.uint8),
        "y_test": np.array([1]),
        "names": np.array(["a", "b"]),
    }
    np.savez(tmp_path / "small.npz", **arrays)
    data = datasets.load("small", folder=tmp_path)
    assert data.X_train.dtype == np.uint8
    np.testing.assert_array_equal(data.X_train, arrays["X_train"])
    np.testing.assert_array_equal(data.y_test, [1])
    assert list(data.extra) == ["names"]
    assert data.columns == {"X": slice(0, 2)}


def test_sparse_file_stays_sparse(tmp_path, counts):
    np.savez(
        tmp_path / "words.npz",
        **save_csr("X_train", counts),
        **save_csr("X_test", counts[:3]),
        y_train=np.arange(12),
        y_test=np.arange(3),
    )
    data = datasets.load("words", folder=tmp_path)
    assert sparse.issparse(data.X_train)
    assert data.X_train.indices.dtype == np.int32
    assert (data.X_train != counts).nnz == 0
    assert (data.X_test != counts[:3]).nnz == 0
    assert data.extra == {}


@pytest.mark.parametrize("as_csr", [False, True])
def test_several_descriptors_are_set_side_by_side(tmp_path, counts, as_csr):
    color = np.full((12, 2), 300, np.uint16)
    hog = save_csr("hog_train", counts) if as_csr else {"hog_train": counts.toarray()}
    np.savez(tmp_path / "two.npz", **hog, color_train=color, y_train=np.arange(12))
    data = datasets.load("two", folder=tmp_path)
    assert sparse.issparse(data.X_train) == as_csr
    parts = {k: sparse.csr_matrix(data.X_train)[:, s].toarray() for k, s in data.columns.items()}
    np.testing.assert_array_equal(parts["hog"], counts.toarray())
    np.testing.assert_array_equal(parts["color"], color)
    assert data.X_test is None


def test_names_lists_bundled_and_found(tmp_path, monkeypatch):
    np.savez(tmp_path / "mine.npz", X=np.ones((2, 2)))
    monkeypatch.setenv("KERNELMAPS_DATA", str(tmp_path))
    assert datasets.names(tmp_path) == ["digits", "mine"]
    assert datasets.load("mine").X_train.shape == (2, 2)


def test_without_a_folder_the_message_says_what_to_do(monkeypatch):
    monkeypatch.delenv("KERNELMAPS_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"mnist\.npz.*KERNELMAPS_DATA"):
        datasets.load("mnist")


def test_unknown_name_lists_what_is_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="Datasets: digits"):
        datasets.load("mnist", folder=tmp_path)


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "objects.npz", X=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        datasets.load("objects", folder=tmp_path)


def test_file_without_rows_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", weights=np.ones(3))
    with pytest.raises(ValueError, match=r"neither X nor X_train: it has \['weights'\]"):
        datasets.load("other", folder=tmp_path)
