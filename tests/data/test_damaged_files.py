"""Files that declare more than they hold, or index outside of themselves, are refused."""

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

from kernelmaps.data import open_source
from kernelmaps.data.datasets import read_npz
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
}


@pytest.mark.parametrize("what", SHORT)
def test_arrays_that_are_not_there_are_refused(what, tmp_path):
    with pytest.raises(FileFormatError, match="is not a readable"):
        read_npz(npz(tmp_path / "data.npz", X=SHORT[what]))
    (tmp_path / "data.npy").write_bytes(SHORT[what])
    with pytest.raises(ValueError, match="is not a readable"):
        open_source(tmp_path / "data.npy")


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
