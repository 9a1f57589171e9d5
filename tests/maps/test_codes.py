"""Codes are compared with their map before anything looks them up."""

import numpy as np
import pytest
from fitted_examples import labels, rows
from scipy import sparse

import kernelmaps as km
from kernelmaps.maps.codes import Codes


@pytest.fixture
def anchors():
    return km.AnchorMap(n_anchors=10, feature_range=(0, None), rank=1).fit(rows())


def wrong(anchors, n=40):
    return Codes(np.full((n, 6), 255, np.uint8), anchors.spec_.hash)


def test_codes_out_of_range_are_refused_by_every_user(anchors):
    """These once ended the process in `fit`, and read stray memory in `decision_function`."""
    y = labels() == "first"
    model = km.AdditiveSVC(anchors).fit(anchors.encode(rows()), y)
    for use in (
        anchors.decode,
        anchors.check_codes,
        lambda codes: km.AdditiveSVC(anchors).fit(codes, y),
        lambda codes: km.AdditiveSVR(anchors).fit(codes, np.arange(40.0)),
        model.decision_function,
        model.eval_terms,
    ):
        with pytest.raises(ValueError, match="has the code 255, but this map's codes there end at"):
            use(wrong(anchors))


def test_codes_that_were_replaced_are_compared_with_the_map_again(anchors):
    codes = anchors.encode(rows())
    anchors.decode(codes)
    codes.values = np.full_like(codes.values, 255)
    with pytest.raises(ValueError, match="has the code 255, but this map's codes there end at"):
        anchors.decode(codes)


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((2, 3)), np.zeros((2, 3), np.int8), np.zeros(3, np.uint8), [[1, 2]], None,
        sparse.csr_matrix(np.eye(3, dtype=np.uint8)),
    ],
)  # fmt: skip
def test_codes_are_matrices_of_unsigned_integers(values):
    with pytest.raises(ValueError, match="values must be a dense matrix of unsigned integers"):
        Codes(values, "hash")


def test_a_map_is_named_by_its_hash():
    with pytest.raises(TypeError, match="map_hash must be the hash of a spec"):
        Codes(np.zeros((2, 3), np.uint8), None)


def test_codes_of_other_columns_are_refused(anchors):
    with pytest.raises(ValueError, match=r"codes must be unsigned integers of shape \(n, 6\)"):
        anchors.decode(Codes(np.zeros((2, 3), np.uint8), anchors.spec_.hash))


@pytest.mark.parametrize("neighbors", [1, 2])
@pytest.mark.parametrize("kind", ["u1", "<u2", ">u2", "<u4", ">u4", "<u8", ">u8"])
def test_codes_of_any_unsigned_type_are_decoded_alike_each_time(neighbors, kind):
    anchors = km.AnchorMap(n_anchors=10, feature_range=(0, None), n_neighbors=neighbors).fit(rows())
    codes = anchors.encode(rows())
    if np.dtype(kind).itemsize < codes.dtype.itemsize:
        pytest.skip("codes of an interpolating map take two bytes")
    wide = Codes(codes.values.astype(kind), codes.map_hash)
    expected = anchors.decode(codes)
    for _ in range(2):
        decoded = anchors.decode(wide)
        assert decoded.dtype == expected.dtype
        np.testing.assert_array_equal(decoded, expected)
