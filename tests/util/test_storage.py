"""The file container: equal content, equal bytes; anything else is refused with its reason."""

import hashlib
import json
import os
import socket
import stat
import struct
import subprocess
import sys

import numpy as np
import pytest

from kernelmaps._util import storage
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


# ---- what a file declares -----------------------------------------------------------------------


def container(head, body=b""):
    """A container with a right checksum around any header."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    body = text + b" " * (-len(text) % 64) + body
    prefix = struct.pack("<8sIQ32s", storage.MAGIC, 1, len(text), hashlib.sha256(body).digest())
    return prefix + body


def one_array(**changes):
    item = {"name": "a", "dtype": "<f8", "shape": [2], "offset": 0, **changes}
    return {"kind": "t", "header": {}, "arrays": [item]}


def test_the_example_is_read():
    header, arrays = storage.from_bytes(container(one_array(), np.arange(2.0).tobytes()))
    assert header == {"kind": "t"}
    np.testing.assert_array_equal(arrays["a"], [0.0, 1.0])


WRONG_SHAPES = [[10**15], [-1], [2.0], [True, 2], [2**40, 2**40], [0, 2**70], "2", [1] * 40]


@pytest.mark.parametrize(
    "head",
    [
        *(one_array(shape=shape) for shape in WRONG_SHAPES),
        *(one_array(offset=offset) for offset in (8, -8, 10**30)),
        *(one_array(dtype=dtype) for dtype in (">f8", "<f16", "<U2", "|O", "<f8,<f8", ["<f8"])),
        one_array(name=None),
        {"kind": "t", "header": {}, "arrays": [1]},
        {"kind": "t", "header": {}, "arrays": {}},
        {"kind": "t", "header": [], "arrays": []},
        {"kind": None, "header": {}, "arrays": []},
        {"kind": "t", "header": {}},
        [],
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 10_000,
        b"\xff\xfe",
        b'{"kind": "t", "arrays": [], "header": {"x": ' + b"[" * 80 + b"]" * 80 + b"}}",
    ],
)
def test_what_does_not_fit_the_file_is_refused_before_it_is_made(head):
    with pytest.raises(FileFormatError, match="unreadable header"):
        storage.from_bytes(container(head, np.arange(2.0).tobytes()))


def test_a_header_longer_than_the_file_is_refused():
    data = bytearray(container(one_array(), np.arange(2.0).tobytes()))
    data[12:20] = struct.pack("<Q", 2**60)
    with pytest.raises(FileFormatError, match="unreadable header"):
        storage.from_bytes(bytes(data))


def test_arrays_have_bytes_of_their_own():
    item = one_array()["arrays"][0]
    for second in ({"name": "b"}, {"name": "b", "offset": 8, "shape": [1]}, {"offset": 64}):
        head = {"kind": "t", "header": {}, "arrays": [item, {**item, **second}]}
        with pytest.raises(FileFormatError, match=r"overlaps|same name"):
            storage.from_bytes(container(head, np.arange(16.0).tobytes()))


def test_arrays_of_a_file_are_aligned_and_read_only(tmp_path):
    storage.write(tmp_path / "x.kmap", "t", {}, ARRAYS)
    for array in storage.read(tmp_path / "x.kmap")[1].values():
        assert array.flags.aligned
        assert array.ctypes.data % 64 == 0 or array.size == 0
        assert not array.flags.writeable


# ---- the file that is replaced ------------------------------------------------------------------


def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "x.kmap"
    storage.write(path, "t", {"n": 1}, {})
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o600)
    storage.write(path, "t", {"n": 2}, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert storage.read(path)[0]["n"] == 2


def test_names_in_any_script_may_be_as_long_as_the_system_lets_them(tmp_path):
    path = tmp_path / f"{'図' * 80}.kmap"  # 245 of 255 bytes
    storage.write(path, "t", {"n": 1}, {})
    assert storage.read(path)[0]["n"] == 1


def test_a_symbolic_link_keeps_its_target(tmp_path):
    (tmp_path / "models").mkdir()
    target, link = tmp_path / "models" / "x-7.kmap", tmp_path / "x.kmap"
    link.symlink_to(target)
    for n in (1, 2):  # a link that leads nowhere yet, then one to a file
        storage.write(link, "t", {"n": n}, {})
        assert link.is_symlink()
        assert storage.read(target)[0]["n"] == n
    assert sorted(item.name for item in tmp_path.iterdir()) == ["models", "x.kmap"]


# ---- targets that are not regular files ---------------------------------------------------------


@pytest.fixture
def pipe(tmp_path):
    """A named pipe, and its reading end."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, end
    os.close(end)


def test_a_pipe_is_written_to_and_stays(pipe):
    path, end = pipe
    storage.write_file(path, [b"some ", b"bytes"])
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.read(end, 100) == b"some bytes"


def test_standard_output_may_be_a_pipe_without_a_name():
    script = "from kernelmaps._util import storage; storage.write_file('/dev/stdout', b'bytes')"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert result.stdout == b"bytes"


def test_folders_and_sockets_are_refused(tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        storage.write_file(tmp_path, b"bytes")
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        with pytest.raises(OSError, match="'socket' is a socket or a disk"):
            storage.write_file("socket", b"bytes")
        assert stat.S_ISSOCK(os.stat("socket").st_mode)


def test_missing_folders_are_named_and_not_created(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone" / "x.kmap")
    for path in (tmp_path / "gone" / "x.kmap", tmp_path / "link"):
        with pytest.raises(FileNotFoundError, match=r"no folder '.*gone'. Create it first"):
            storage.write_file(path, b"bytes")
    assert [item.name for item in tmp_path.iterdir()] == ["link"]
