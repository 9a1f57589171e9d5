"""Downloads: local folder first, then a checked cache, then the network (here: a stand-in)."""

import numpy as np
import pytest

from kernelmaps.data import fetching
from kernelmaps.exceptions import FileFormatError


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELMAPS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KERNELMAPS_DATA", raising=False)


@pytest.fixture
def network():
    """A stand-in for OpenML that counts how often it is asked."""
    calls = []

    def download(data_id):
        calls.append(data_id)
        rng = np.random.default_rng(data_id)
        return rng.integers(0, 16, size=(16_010, 3)).astype(float), np.array(["A", "B"] * 8005)

    download.calls = calls
    return download


def test_a_download_is_kept_and_read_again(network, tmp_path):
    first = fetching.fetch("letter", download=network)
    again = fetching.fetch_letter(download=network)
    assert network.calls == [6]
    assert (len(first.y_train), len(first.y_test)) == (16_000, 10)
    assert first.X_train.dtype == np.uint8
    np.testing.assert_array_equal(first.X_train, again.X_train)
    assert set(again.y_test) == {"A", "B"}
    assert sorted(p.name for p in (tmp_path / "cache").iterdir()) == ["letter.json", "letter.kmap"]


def test_a_local_folder_comes_first(network, tmp_path, monkeypatch):
    X = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "letter.npz", X_train=X, y_train=[0, 1, 0])
    monkeypatch.setenv("KERNELMAPS_DATA", str(tmp_path))
    np.testing.assert_array_equal(fetching.fetch("letter", download=network).X_train, X)
    assert network.calls == []


def test_a_damaged_cache_is_refused(network, tmp_path):
    fetching.fetch("letter", download=network)
    path = tmp_path / "cache" / "letter.kmap"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match="damaged"):
        fetching.fetch("letter", download=network)


def test_a_checksum_that_does_not_fit_is_refused_and_nothing_kept(network, tmp_path):
    with pytest.raises(FileFormatError, match=r"expected abc.*Nothing was kept"):
        fetching.fetch("letter", download=network, checksum="abc")
    assert not (tmp_path / "cache").exists()
    known = fetching.fetch("letter", download=network).extra["sha256"]
    assert fetching.fetch("letter", download=network, checksum=known).name == "letter"
    with pytest.raises(FileFormatError, match="Delete it to download again"):
        fetching.fetch("letter", download=network, checksum="abc")


def test_numbers_as_classes_become_integers(tmp_path):
    def download(data_id):
        return np.zeros((60_002, 4)), np.array(["3", "7"] * 30_001)

    data = fetching.fetch_mnist(download=download)
    assert data.y_train.dtype == np.int64
    assert set(data.y_train) == {3, 7}


def test_no_network_is_said_with_a_way_out(monkeypatch):
    def offline(**options):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(OSError, match="KERNELMAPS_DATA"):
        fetching.fetch_spambase()


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="there are mnist, letter"):
        fetching.fetch("imagenet")
