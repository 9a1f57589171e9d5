"""Files that declare more than they hold, or index outside of themselves, are refused."""

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km
from kernelmaps.data import open_source
from kernelmaps.data.loader import read_npz
from kernelmaps.data.sources import Source
from kernelmaps.exceptions import FileFormatError


def npy(shape, data=b"", order=False):
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": order, "shape": shape}
    np.lib.format.write_array_header_2_0(stream, header)
    return stream.getvalue() + data


def npz(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


SHORT = {
    "60 of 600 rows": npy((600, 4), np.ones((60, 4)).tobytes()),
    "60 of 600 rows, Fortran": npy((600, 4), np.ones((60, 4)).tobytes(), order=True),
    "100,000,000,000 rows": npy((10**11, 4)),
    "rows without columns": npy((10**11, 0)),
    "beyond all numbers": npy((2**62, 2**62)),
}


@pytest.mark.parametrize("what", SHORT)
def test_arrays_that_are_not_there_are_refused_at_once(what, tmp_path):
    path = npz(tmp_path / "data.npz", X=SHORT[what])
    words = "ends early|has no columns"
    with pytest.raises(ValueError, match=words):
        km.StreamingPCA().fit(path)
    with pytest.raises(FileFormatError, match=words):
        read_npz(path)
    (tmp_path / "data.npy").write_bytes(SHORT[what])
    if "Fortran" not in what:
        with pytest.raises(ValueError, match=words):
            open_source(tmp_path / "data.npy")


def test_targets_that_are_not_there_are_refused(tmp_path):
    whole = npy((3, 2), np.ones((3, 2)).tobytes())
    path = npz(tmp_path / "data.npz", X=whole, y=npy((10**12,)))
    with pytest.raises(ValueError, match="array 'y', ends early"):
        open_source(path)


def test_a_member_that_ends_while_it_is_read_is_refused(tmp_path, monkeypatch):
    """The directory of an archive may lie about the length of a member, too."""
    path = npz(tmp_path / "data.npz", X=SHORT["60 of 600 rows"])
    monkeypatch.setattr("kernelmaps.data.opening.check_members", lambda path: None)
    source = open_source(path)
    assert isinstance(source, Source)
    with pytest.raises(ValueError, match="the rows from 50 on are declared"):
        list(source.blocks(50))


@pytest.mark.parametrize("part", ["indices", "indptr"])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_scipy_files_with_wild_indices_are_refused(part, form, tmp_path):
    X = sparse.csr_matrix(np.eye(20)).asformat(form)
    getattr(X, part)[7] = 10**8
    arrays = {"format": np.array(form.encode()), "shape": np.array([20, 20]), "data": X.data}
    np.savez(tmp_path / "X.npz", **arrays, indices=X.indices, indptr=X.indptr)
    with pytest.raises(ValueError, match="is damaged"):
        km.StreamingPCA().fit(tmp_path / "X.npz")


@pytest.mark.parametrize(("part", "value"), [("indices", 10**8), ("indptr", 10**8),
                                             ("indices", 2**32 + 1), ("indices", -3)])  # fmt: skip
def test_our_own_files_with_wild_indices_are_refused(part, value, tmp_path):
    X = sparse.csr_matrix(np.eye(20))
    arrays = {name: getattr(X, name).astype(np.int64) for name in ("indices", "indptr")}
    arrays[part][7] = value
    arrays = {f"X_{name}": array for name, array in arrays.items()}
    np.savez(tmp_path / "X.npz", X_data=X.data, X_shape=[20, 20], **arrays)
    with pytest.raises(FileFormatError, match="is damaged"):
        read_npz(tmp_path / "X.npz")
