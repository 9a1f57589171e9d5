"""Specs: frozen, hashed by content, saved without pickle."""

import pickle

import numpy as np
import pytest

from kernelmaps._util import storage
from kernelmaps.engine import Spec
from kernelmaps.exceptions import FileFormatError


def waves(value=1.0, **changes):
    arrays = {"amplitude": [1.0, 1.0], "frequency": [0.0, value], "phase": [0.0, 0.0]}
    return Spec("log_waves", {**arrays, **changes}, {"gamma": 1.0, "signed": None})


def example(value=1.0):
    return Spec("chain", parts=(waves(value), waves(value)))


def test_arrays_and_numbers_are_frozen():
    source = np.ones(3)
    spec = Spec("f", {"a": source}, {"n": np.int64(2)})
    source[0] = 5
    assert spec.arrays["a"][0] == 1
    assert type(spec.numbers["n"]) is int
    with pytest.raises(ValueError, match="read-only"):
        spec.arrays["a"][0] = 2
    with pytest.raises(TypeError):
        spec.numbers["n"] = 3
    with pytest.raises(AttributeError):
        spec.family = "g"


def test_hash_is_of_the_content():
    assert example() == example()
    assert example().hash == example().hash
    assert example() != example(2.0)
    assert len({example(), example(), example(2.0)}) == 2


def test_hash_is_the_same_everywhere():
    """A stored value: designs, caches and workers rely on it across processes and machines."""
    spec = waves(0.5)
    assert spec.hash == "59f72d4697b552e474a34cdda58728d6f7e3088d200f58129fab3d0923dab71e"


def test_round_trips(tmp_path):
    spec = example()
    spec.save(tmp_path / "map.kmap")
    for again in (
        Spec.load(tmp_path / "map.kmap"),
        Spec.from_bytes(spec.to_bytes()),
        pickle.loads(pickle.dumps(spec)),
    ):
        assert again.hash == spec.hash
        assert again.family == "chain"
        np.testing.assert_array_equal(again.parts[1].arrays["frequency"], [0.0, 1.0])
        assert again.parts[0].numbers["signed"] is None


def test_newer_specs_are_refused(tmp_path):
    header = {"version": 99, "family": "f", "numbers": {}, "parts": []}
    storage.write(tmp_path / "map.kmap", "spec", header, {})
    with pytest.raises(FileFormatError, match=r"version 99.*Upgrade"):
        Spec.load(tmp_path / "map.kmap")


def test_only_plain_numbers():
    with pytest.raises(TypeError, match="'f' must be a plain"):
        Spec("x", {}, {"f": lambda: 0})
