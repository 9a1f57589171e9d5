"""The file container: equal content, equal bytes; anything else is refused with its reason."""

import numpy as np
import pytest

from kernelmaps import storage
from kernelmaps.exceptions import FileFormatError

ARRAYS = {
    "b": np.arange(6, dtype=np.int32).reshape(2, 3),
    "a": np.linspace(0, 1, 5),
    "empty": np.zeros((0, 4), np.float32),
    "flags": np.array([True, False]),
    "scalar": np.float64(2.5),
}


def test_round_trip_keeps_values_types_and_shapes(tmp_path):
    path = tmp_path / "x.kmap"
    storage.write(path, "thing", {"n": 3, "name": "χ²"}, ARRAYS)
    header, arrays = storage.read(path, "thing")
    assert header == {"kind": "thing", "n": 3, "name": "χ²"}
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == np.asarray(array).dtype
        assert arrays[name].shape == np.shape(array)


def test_equal_content_gives_equal_bytes_whatever_the_order():
    backwards = dict(reversed(ARRAYS.items()))
    first = storage.to_bytes("t", {"x": 1, "y": 2}, ARRAYS)
    assert first == storage.to_bytes("t", {"y": 2, "x": 1}, backwards)
    assert storage.digest("t", {}, ARRAYS) != storage.digest("t", {"x": 1}, ARRAYS)


def test_every_truncation_is_refused():
    data = storage.to_bytes("t", {"n": 1}, ARRAYS)
    reasons = {0: "not a kernelmaps file", 5: "not a kernelmaps file", 40: "truncated"}
    for length in {0, 5, 40, 60, len(data) // 2, len(data) - 1}:
        with pytest.raises(FileFormatError, match=reasons.get(length, "damaged")):
            storage.from_bytes(data[:length])


def test_every_flipped_byte_is_noticed():
    data = storage.to_bytes("t", {"n": 1}, {"a": np.arange(3.0)})
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 0xFF
        with pytest.raises(FileFormatError):
            storage.from_bytes(bytes(changed))


def test_foreign_and_newer_files_are_refused(tmp_path):
    foreign = tmp_path / "x.pkl"
    foreign.write_bytes(b"\x80\x04" + b"0" * 100)
    with pytest.raises(FileFormatError, match="not a kernelmaps file"):
        storage.read(foreign)
    data = bytearray(storage.to_bytes("t", {}, {}))
    data[8] = storage.VERSION + 1
    with pytest.raises(FileFormatError, match="Upgrade kernelmaps"):
        storage.from_bytes(bytes(data))
    with pytest.raises(FileFormatError, match="holds a 't', not a 'spec'"):
        storage.from_bytes(storage.to_bytes("t", {}, {}), "spec")


def test_objects_cannot_be_stored():
    with pytest.raises(TypeError, match="only bool, integer and float"):
        storage.to_bytes("t", {}, {"x": np.array([{}], dtype=object)})


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.kmap"
    storage.write(path, "t", {"n": 1}, {})

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        storage.write(path, "t", {"n": 2}, ARRAYS)
    assert storage.read(path)[0]["n"] == 1
    assert [item.name for item in tmp_path.iterdir()] == ["x.kmap"]
