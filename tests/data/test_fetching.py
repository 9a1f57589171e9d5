"""Downloads: local folder first, then scikit-learn's cache or the network (here: a stand-in)."""

import numpy as np
import pytest

from kernelmaps.data import datasets as fetching


@pytest.fixture(autouse=True)
def network(monkeypatch):
    """A stand-in for OpenML that counts how often it is asked."""
    calls = []

    def download(data_id, **options):
        calls.append(data_id)
        rng = np.random.default_rng(data_id)
        y = ["A", "B"] * 8005 if data_id == 6 else ["3", "7"] * 8005
        return rng.integers(0, 16, size=(16_010, 3)).astype(float), np.array(y, dtype=object)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", download)
    monkeypatch.delenv("KERNELMAPS_DATA", raising=False)
    return calls


def test_a_download_is_split_and_typed(network):
    data = fetching.fetch_letter()
    assert network == [6]
    assert (len(data.y_train), len(data.y_test)) == (16_000, 10)
    assert data.X_train.dtype == np.uint8
    assert set(data.y_test) == {"A", "B"}
    assert set(fetching.fetch("pendigits").y_train) == {3, 7}  # numbers as classes are integers


def test_a_local_folder_comes_first(network, tmp_path, monkeypatch):
    X = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "letter.npz", X_train=X, y_train=[0, 1, 0])
    monkeypatch.setenv("KERNELMAPS_DATA", str(tmp_path))
    np.testing.assert_array_equal(fetching.fetch("letter").X_train, X)
    assert network == []


def test_no_network_is_said_with_a_way_out(monkeypatch):
    def offline(**options):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(OSError, match="KERNELMAPS_DATA"):
        fetching.fetch_spambase()


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="there are mnist, letter"):
        fetching.fetch("imagenet")
