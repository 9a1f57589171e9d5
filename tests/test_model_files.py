"""Model files: what comes back is what was saved; everything else is refused with its reason."""

import json
import pickle
from pathlib import Path

import joblib
import numpy as np
import pytest
from every_model import MAPS, MODELS, fitted_map, fitted_model, output, rows
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC

import kernelmaps as km
from kernelmaps import storage
from kernelmaps.exceptions import FileFormatError
from kernelmaps.model_files import FORMAT_VERSION, open_info

DATA = Path(__file__).parent / "data"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.kmap"


def saved(model, path, **options):
    km.save(model, path, **options)
    return km.load(path)


def rewritten(path, change):
    """The file with a changed header and a valid checksum."""
    header, arrays = storage.read(path)
    kind = header.pop("kind")
    change(header)
    storage.write(path, kind, header, arrays)


@pytest.mark.parametrize("name", MAPS)
def test_a_map_comes_back_as_it_was(name, path):
    feature_map, X = fitted_map(name), rows(15, seed=1)
    again = saved(feature_map, path)
    assert type(again) is type(feature_map)
    assert repr(again) == repr(feature_map)
    assert again.spec_ == feature_map.spec_
    np.testing.assert_array_equal(output(again, X), output(feature_map, X))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_as_it_was(name, path):
    model, X = fitted_model(name), rows(15, seed=1)
    again = saved(model, path)
    assert type(again) is type(model)
    np.testing.assert_array_equal(output(again, X), output(model, X))


@pytest.mark.parametrize("name", [*MAPS, *MODELS])
def test_joblib_and_skops_carry_the_same(name, tmp_path):
    skops = pytest.importorskip("skops.io")
    model, X = (fitted_map if name in MAPS else fitted_model)(name), rows(15, seed=1)
    expected = output(model, X)
    joblib.dump(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(output(joblib.load(tmp_path / "model.joblib"), X), expected)
    data = skops.dumps(model)
    trusted = skops.get_untrusted_types(data=data)
    assert all(item.split(".")[0] in ("kernelmaps", "sklearn", "builtins") for item in trusted)
    np.testing.assert_array_equal(output(skops.loads(data, trusted=trusted), X), expected)


def test_an_unfitted_map_keeps_its_parameters(path):
    again = saved(km.HomogeneousMap("intersection", n_components=9, gamma=0.5), path)
    assert again.get_params() == {
        "kernel": "intersection",
        "n_components": 9,
        "period": "auto",
        "gamma": 0.5,
        "window": "rectangular",
        "signed": False,
        "n_jobs": None,
    }
    assert not hasattr(again, "spec_")


def test_a_spec_comes_back_equal(path):
    spec = fitted_map("HomogeneousMap").spec_
    assert saved(spec, path) == spec


def test_a_pipeline_of_known_steps_comes_back(path):
    X = rows()
    model = make_pipeline(Normalizer("l1"), km.HomogeneousMap(), LinearSVC())
    model.fit(X, np.array(["a", "b"])[np.arange(len(X)) % 2])
    np.testing.assert_array_equal(saved(model, path).predict(X), model.predict(X))


def test_values_of_every_sort_come_back(path):
    feature_map = fitted_map("HomogeneousMap")
    values = {
        "tuple": (1, "two", None),
        "slice": slice(1, None, 2),
        "by number": {1: "one", 2: 2.5},
        "strings": np.array([["a"], ["b"]]),
        "not a number": float("nan"),
        "scalar": np.float32(1.5),
        "big": 2**80,
    }
    feature_map.values_ = values
    feature_map.matrix_ = sparse.csr_matrix(np.eye(3))
    again = saved(feature_map, path)
    assert np.isnan(again.values_.pop("not a number"))
    values.pop("not a number")
    strings, expected = again.values_.pop("strings"), values.pop("strings")
    np.testing.assert_array_equal(strings, expected)
    assert strings.dtype == expected.dtype
    assert again.values_ == values
    assert type(again.values_["scalar"]) is np.float32
    np.testing.assert_array_equal(again.matrix_.toarray(), np.eye(3))


@pytest.mark.parametrize(
    "kernel",
    [
        km.kernels.chi2.replace(gamma=0.5, signed=True),
        km.kernels.Gaussian(2.0),
        km.kernels.Matern(2.5, 3.0),
        km.kernels.Exponential(km.kernels.intersection, 0.3),
    ],
    ids=lambda kernel: kernel.name,
)
def test_kernels_come_back_with_their_parameters(kernel, path):
    feature_map = fitted_map("HomogeneousMap")
    feature_map.kernel_ = kernel
    X = rows(5)
    np.testing.assert_array_equal(saved(feature_map, path).kernel_(X), kernel(X))


def test_a_users_function_is_code_and_stays_outside(path):
    feature_map = fitted_map("HomogeneousMap")
    feature_map.kernel_ = km.kernels.Additive(lambda x, y: x * y, name="product")
    again = saved(feature_map, path)
    np.testing.assert_array_equal(again.transform(rows()), feature_map.transform(rows()))
    with pytest.raises(ValueError, match="kernel 'product' is code"):
        again.kernel_(rows())


def test_what_arrays_cannot_say_is_refused_by_name_when_saving(path):
    feature_map = fitted_map("HomogeneousMap")
    feature_map.helper_ = {"inside": np.random.default_rng(0)}
    with pytest.raises(TypeError, match=r"HomogeneousMap.helper_\['inside'\] is a .*Generator"):
        km.save(feature_map, path)
    feature_map.helper_ = np.array([object()])
    with pytest.raises(TypeError, match="helper_ is an array of object"):
        km.save(feature_map, path)
    assert not path.exists()


def test_a_class_of_the_users_own_is_refused(path):
    class Mine(km.HomogeneousMap):
        pass

    with pytest.raises(TypeError, match="Mine, which a model file cannot hold"):
        km.save(Mine(), path)


def test_equal_models_give_equal_bytes(tmp_path):
    km.save(fitted_map("HomogeneousMap"), tmp_path / "a")
    km.save(fitted_map("HomogeneousMap"), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_info_tells_what_is_inside(path):
    km.save(fitted_map("HomogeneousMap"), path, metadata={"columns": ["a", "b"]})
    info = open_info(path)
    assert (info.kind, info.title) == ("model", "HomogeneousMap")
    assert info.version == km.__version__
    assert info.details["n_components"] == 5
    assert info.metadata == {"columns": ["a", "b"]}
    assert info.size == path.stat().st_size
    assert len(info.digest) == 64
    fitted_map("HomogeneousMap").spec_.save(path)
    info = open_info(path)
    assert (info.kind, info.title) == ("spec", "log_waves")
    assert info.digest == fitted_map("HomogeneousMap").spec_.hash


# ---- what is refused ----------------------------------------------------------------------------


def test_a_file_of_a_future_format_is_refused(path):
    km.save(fitted_map("HomogeneousMap"), path)

    def future(header):
        header["format"] = FORMAT_VERSION + 1
        header["kernelmaps"] = "9.0"

    rewritten(path, future)
    for read in (km.load, open_info):
        with pytest.raises(FileFormatError, match=r"format 2, written by kernelmaps 9\.0"):
            read(path)


def test_a_container_of_a_future_version_is_refused(path):
    km.save(fitted_map("HomogeneousMap"), path)
    data = bytearray(path.read_bytes())
    data[8:12] = (storage.VERSION + 1).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match="Upgrade kernelmaps"):
        km.load(path)


@pytest.mark.parametrize("name", ["NewMap", "os.system", "RandomState", "Pipeline.__init__"])
def test_a_class_that_is_not_listed_is_refused(name, path):
    km.save(fitted_map("HomogeneousMap"), path)
    rewritten(path, lambda header: header["model"].update({"class": name}))
    with pytest.raises(FileFormatError, match="does not know"):
        km.load(path)


def test_an_unknown_parameter_and_an_unknown_value_are_refused(path):
    km.save(fitted_map("HomogeneousMap"), path)
    rewritten(path, lambda header: header["model"]["params"].update(colour="red"))
    with pytest.raises(FileFormatError, match=r"parameters \['colour'\]"):
        km.load(path)
    km.save(fitted_map("HomogeneousMap"), path)
    rewritten(path, lambda header: header["model"]["state"].update(new_={"$": "quaternion"}))
    with pytest.raises(FileFormatError, match="'quaternion' values"):
        km.load(path)


def test_a_malformed_entry_is_refused(path):
    km.save(fitted_map("HomogeneousMap"), path)
    rewritten(path, lambda header: header["model"]["state"].update(x_={"$": "array"}))
    with pytest.raises(FileFormatError, match="malformed 'array'"):
        km.load(path)


def test_damage_truncation_and_foreign_files_are_refused(path):
    km.save(fitted_map("HomogeneousMap"), path)
    whole = path.read_bytes()
    for data, words in [
        (whole[:-5], "damaged"),
        (whole[:300] + bytes([whole[300] ^ 1]) + whole[301:], "damaged"),
        (pickle.dumps({"a": 1}), "not a kernelmaps file"),
        (b"", "not a kernelmaps file"),
    ]:
        path.write_bytes(data)
        with pytest.raises(FileFormatError, match=words):
            km.load(path)


def test_another_kind_of_container_is_refused(path):
    storage.write(path, "checkpoint", {}, {})
    with pytest.raises(FileFormatError, match="neither a model nor a spec"):
        km.load(path)


def test_a_full_disk_leaves_the_old_file_intact(path, monkeypatch):
    km.save(fitted_map("HomogeneousMap"), path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        km.save(km.HomogeneousMap(n_components=7).fit(rows()), path)
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["model.kmap"]


# ---- files that were written before -------------------------------------------------------------


@pytest.mark.parametrize("name", ["map-format1", "ridge-format1"])
def test_a_stored_old_file_still_says_the_same(name):
    """Written once by 0.1.0.dev0 and never again: today's code must read it as it was meant."""
    expected = json.loads((DATA / f"{name}.json").read_text())
    model = km.load(DATA / f"{name}.kmap")
    assert type(model).__name__ == expected["class"]
    got = output(model, np.array(expected["rows"]))
    if got.dtype.kind == "f":
        np.testing.assert_allclose(got, expected["output"], rtol=1e-12, atol=1e-15)
    else:
        assert got.tolist() == expected["output"]


def test_a_later_file_may_say_more_about_itself(path):
    """Entries that are new in the header do not change the meaning of the model."""
    km.save(fitted_map("HomogeneousMap"), path)
    rewritten(path, lambda header: header.update(signature="abc", licence="BSD"))
    assert km.load(path).spec_ == fitted_map("HomogeneousMap").spec_


def test_a_parameter_that_came_later_keeps_its_default(path):
    km.save(fitted_map("HomogeneousMap"), path)
    rewritten(path, lambda header: header["model"]["params"].pop("window"))
    assert km.load(path).window == "rectangular"
