"""Files that declare more than they hold are refused."""

import io

import numpy as np
import pytest

from kernelmaps.data import open_source


def npy(shape, data=b"", order=False):
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": order, "shape": shape}
    np.lib.format.write_array_header_2_0(stream, header)
    return stream.getvalue() + data


SHORT = {
    "60 of 600 rows": npy((600, 4), np.ones((60, 4)).tobytes()),
    "60 of 600 rows, Fortran": npy((600, 4), np.ones((60, 4)).tobytes(), order=True),
    "100,000,000,000 rows": npy((10**11, 4)),
}


@pytest.mark.parametrize("what", SHORT)
def test_arrays_that_are_not_there_are_refused(what, tmp_path):
    (tmp_path / "data.npy").write_bytes(SHORT[what])
    with pytest.raises(ValueError, match="is not a readable"):
        open_source(tmp_path / "data.npy")
