"""Model files: what comes back is what was saved; everything else is refused with its reason."""

import pickle
from functools import cache

import joblib
import numpy as np
import pytest
from fitted_examples import (
    MAP_SETTINGS,
    MAPS,
    MODELS,
    fitted_map,
    fitted_model,
    labels,
    model_of,
    output,
    rows,
)
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC

import kernelmaps as km
from kernelmaps._util import storage
from kernelmaps.exceptions import FileFormatError
from kernelmaps.export.files import FORMAT_VERSION, open_info


@cache
def fitted(name):
    """An example that tests leave alone."""
    return (fitted_map if name in MAPS else fitted_model)(name)


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
    feature_map, X = fitted(name), rows(15, seed=1)
    again = saved(feature_map, path)
    assert type(again) is type(feature_map)
    assert repr(again) == repr(feature_map)
    assert again.spec_ == feature_map.spec_
    np.testing.assert_array_equal(output(again, X), output(feature_map, X))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_as_it_was(name, path):
    model, X = fitted(name), rows(15, seed=1)
    again = saved(model, path)
    assert type(again) is type(model)
    np.testing.assert_array_equal(output(again, X), output(model, X))


@pytest.mark.parametrize("name", [*MAPS, *MODELS])
def test_joblib_and_skops_carry_the_same(name, tmp_path):
    skops = pytest.importorskip("skops.io")
    model, X = fitted(name), rows(15, seed=1)
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
        "signed": False,
        "n_jobs": None,
    }
    assert not hasattr(again, "spec_")


def test_certificates_come_back_with_their_maps(path):
    """Also one that is computed when it is first asked for, of a class of its own."""
    fitted = km.AnchorMap(n_anchors=5).fit(rows())
    known = fitted.certificate_
    km.save(fitted, path)
    loaded = km.load(path)
    assert loaded._certificate == known  # not computed again


def test_a_spec_comes_back_equal(path):
    spec = fitted_map("HomogeneousMap").spec_
    assert saved(spec, path) == spec


def test_a_pipeline_within_a_pipeline_comes_back(path):
    X = rows()
    features = make_pipeline(Normalizer("l1"), km.HomogeneousMap(n_components=3))
    model = make_pipeline(features, LinearSVC()).fit(X, labels())
    np.testing.assert_array_equal(saved(model, path).predict(X), model.predict(X))


def test_values_of_every_sort_come_back(path):
    values = {
        "tuple": (1, "two", None),
        "slice": slice(1, None, 2),
        "by number": {1: "one", 2: 2.5},
        "strings": np.array([["a"], ["b"]]),
        "not a number": float("nan"),
        "scalar": np.float32(1.5),
        "big": 2**80,
    }
    # A parameter may hold anything that a file can.
    actual = saved(km.AnchorMap(anchors=values), path).anchors
    assert np.isnan(actual.pop("not a number"))
    values.pop("not a number")
    strings, expected = actual.pop("strings"), values.pop("strings")
    np.testing.assert_array_equal(strings, expected)
    assert strings.dtype == expected.dtype
    assert actual == values
    assert type(actual["scalar"]) is np.float32


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
    feature_map = km.AnchorMap(anchors={"inside": np.random.default_rng(0)})
    with pytest.raises(TypeError, match=r"AnchorMap.anchors\['inside'\] is a .*Generator"):
        km.save(feature_map, path)
    with pytest.raises(TypeError, match="anchors is an array of object"):
        km.save(km.AnchorMap(anchors=np.array([object()])), path)
    assert not path.exists()
    with pytest.raises(ValueError, match="in spite of its name; the command `kernelmaps export`"):
        km.save(km.HomogeneousMap(), path.with_suffix(".onnx"))


def test_info_tells_what_is_inside(path):
    km.save(fitted_map("HomogeneousMap"), path, metadata={"columns": ["a", "b"]})
    info = open_info(path)
    assert (info.kind, info.title) == ("model", "HomogeneousMap")
    assert info.version == km.__version__
    assert info.details["n_components"] == 3
    assert info.metadata == {"columns": ["a", "b"]}
    assert info.size == path.stat().st_size
    assert len(info.digest) == 64
    fitted_map("HomogeneousMap").spec_.save(path)
    info = open_info(path)
    assert (info.kind, info.title) == ("spec", "log_waves")
    assert info.digest == fitted_map("HomogeneousMap").spec_.hash


# ---- what is refused ----------------------------------------------------------------------------

LONG = {"$": "strings", "items": ["x" * 10**6, *(["y"] * 5000)], "shape": [5001], "form": "str"}
NEWER = {"format": FORMAT_VERSION + 1, "kernelmaps": "9.0"}
HEADERS = [
    (lambda header: header.update(NEWER), r"format 3, written by kernelmaps 9\.0"),
    (lambda header: header.update(format=1), r"no released version has written\. Fit and save"),
    *((lambda header, name=name: header["model"].update({"class": name}), "does not know")
      for name in ("NewMap", "os.system", "RandomState", "Pipeline.__init__")),
    (lambda header: header["model"]["params"].update(colour="red"), r"parameters \['colour'\]"),
    (lambda header: header["model"]["state"].update(new_={"$": "quaternion"}), "'quaternion'"),
    (lambda header: header["model"]["state"].update(x_={"$": "array"}), "malformed 'array'"),
    (lambda header: header["model"]["state"].update(classes_=LONG), "very different lengths"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), HEADERS)
def test_headers_that_no_version_writes_are_refused(change, words, path):
    km.save(fitted_model("AdditiveSVC"), path)
    rewritten(path, change)
    with pytest.raises(FileFormatError, match=words):
        km.load(path)
    if "format 3" in words:  # which the header alone tells
        with pytest.raises(FileFormatError, match=words):
            open_info(path)


def test_another_kind_of_container_is_refused(path):
    storage.write(path, "checkpoint", {}, {})
    with pytest.raises(FileFormatError, match="neither a model nor a spec"):
        km.load(path)


# ---- files of other versions -------------------------------------------------------------


def test_a_later_file_may_say_more_about_itself(path):
    """Entries that are new in the header do not change the meaning of the model."""
    km.save(fitted_map("HomogeneousMap"), path)
    rewritten(path, lambda header: header.update(signature="abc", licence="BSD"))
    assert km.load(path).spec_ == fitted_map("HomogeneousMap").spec_


def test_a_parameter_that_came_later_keeps_its_default(path):
    km.save(fitted_map("HomogeneousMap"), path)
    rewritten(path, lambda header: header["model"]["params"].pop("signed"))
    assert km.load(path).signed is False


# ---- what leaves the process --------------------------------------------------------------------

# Attributes of fitted models that say something about single training rows, or that only `fit`
# needs: they stay in the process.
NOT_SAVED = {
    "dual_coef_": "one number per row",
    "design_": "how the map was found; the map itself is its spec",
}


@pytest.mark.parametrize("name", [*MAPS, *MODELS])
def test_every_fitted_attribute_is_stated_or_left_out_on_purpose(name, path):
    model = fitted(name)
    public = {k for k in vars(model) if k.endswith("_") and not k.startswith("_")}
    stated = {model._state.attribute(k) for k in (*model._state.required, *model._state.allowed)}
    if "predictor_" in stated:  # the fitted object of a GAM has them
        stated |= {"reader_", "classes_", "feature_names_in_", "n_features_in_"}
    assert public - stated - set(NOT_SAVED) == set()
    again = saved(model, path)
    assert set(model._state.required) <= set(model._state.entries_of(again))
    for k in public & stated:
        one, other = getattr(model, k), getattr(again, k)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(other, one)
        elif isinstance(one, int | float | str):
            assert other == one


def everything(value, seen=None):
    """All arrays within a value, through attributes, lists and dictionaries."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, str | type):
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
    elif sparse.issparse(value):
        yield from (value.data, value.indices, value.indptr)
    elif isinstance(value, dict):
        for item in value.values():
            yield from everything(item, seen)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from everything(item, seen)
    elif hasattr(value, "__dict__"):
        yield from everything(vars(value), seen)


N_ROWS = 997  # a length that nothing else has


@cache
def large(name):
    """A model of many rows, and these; it is handed on in several ways, which leave it alone."""
    X = np.random.default_rng(3).dirichlet(np.full(6, 0.8), size=N_ROWS)
    X = X.astype(np.float64) + 1e-3
    if name in MAPS:
        return getattr(km, name)(**MAP_SETTINGS[name]).fit(X), X
    model = model_of(name)
    labels = (np.arange(N_ROWS) % 3).astype(str)
    numbers = X @ np.arange(6.0) + np.random.default_rng(4).exponential(size=N_ROWS)
    return model.fit(X, labels if is_classifier(model) else numbers), X


def handed_on(model, way, path):
    """A copy of a model as others would get it, and the bytes that they would get."""
    if way == "file":
        return saved(model, path), path.read_bytes()
    data = pickle.dumps(model)
    return pickle.loads(data), data


@pytest.mark.parametrize("name", [*MAPS, *MODELS])
@pytest.mark.parametrize("way", ["file", "pickle"])
def test_no_training_row_leaves_the_process(name, way, path):
    """Neither a row, nor a number per row: nothing is as long, and no row's bytes are in it."""
    model, X = large(name)
    again, data = handed_on(model, way, path)
    np.testing.assert_array_equal(output(again, X[:9]), output(model, X[:9]))
    # A baseline hazard is a function of all times of events.
    arrays = list(everything(again, {id(getattr(again, "baseline_", None))}))
    assert all(N_ROWS not in array.shape for array in arrays)
    assert not any(row.tobytes() in data for row in X)
    # The bins of a GAM are values, and an SVM keeps ranges of a sample.
    if name in MODELS and "predictor_" not in vars(model):
        assert not values_among(arrays, X)


def values_among(arrays, X):
    """Values of rows that arrays hold, but for the ends of the ranges of columns."""
    low, high = X.min(axis=0), X.max(axis=0)
    inner = X[(low < X) & (high > X)]
    return [v for a in arrays if a.dtype.kind == "f" for v in a.ravel()[np.isin(a.ravel(), inner)]]


@cache
def of_a_table(classes, n, seed):
    """A model of a table with names and numbers of single rows, its columns and its target."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    X = pandas.DataFrame({"a": rng.normal(size=n), "b": rng.random(n)})
    X["kind"] = rng.choice(["one", "two"], n)
    X["id"], X["name"] = rng.permutation(n), [f"person {k:03d}" for k in range(n)]
    y = X.a + X.b * (X.kind == "one")
    settings = {"interactions": 1, "terms": {"id": "auto", "name": "auto"}}  # not left out
    if classes:
        model = km.AdditiveClassifier(**settings).fit(X, y > y.median())
    else:
        model = km.AdditiveRegressor(**settings).fit(X, y)
    return model, X, y


@pytest.mark.parametrize("way", ["file", "pickle"])
@pytest.mark.parametrize("classes", [False, True])
def test_no_row_of_a_table_leaves_the_process(classes, way, path, seed):
    """No name of a single row, and no array with a number for each row."""
    model, X, y = of_a_table(classes, 997, seed)
    again, data = handed_on(model, way, path)
    np.testing.assert_array_equal(again.predict(X[:9]), model.predict(X[:9]))
    assert all(len(X) not in array.shape for array in everything(again))
    assert b"person" not in data
    numbers = np.column_stack([X[["a", "b"]], y])
    assert not any(row[:2].tobytes() in data for row in numbers)


def test_a_loaded_model_draws_and_exports_the_same(path):
    from kernelmaps.export.c import to_c

    model = km.AdditiveSVC(km.SplineMap(), loss="log_loss").fit(rows(), labels())
    for again in (saved(model, path), pickle.loads(pickle.dumps(model))):
        assert not hasattr(again, "dual_coef_")
        np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
        for one, other in zip(model.shape_functions_, again.shape_functions_, strict=True):
            for part in ("grid", "values", "edges", "density"):
                np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
        assert to_c(again) == to_c(model)
        np.testing.assert_array_equal(again.predict_proba(rows()), model.predict_proba(rows()))
        np.testing.assert_array_equal(again.eval_terms(rows()), model.eval_terms(rows()))


@pytest.mark.parametrize("way", ["file", "pickle"])
def test_partial_fit_goes_on_with_a_saved_model(way, path):
    """The next chunk is added to what the saved model had seen."""
    X = rows(300, seed=2)
    y = X[:, 0] + X[:, 1] ** 2
    model = km.StreamingRidge(feature_map=km.SplineMap(domain=(0, 1)))
    for a in (0, 100):
        model.partial_fit(X[a : a + 100], y[a : a + 100])
    if way == "file":
        again = saved(model, path)
        assert not any(row.tobytes() in path.read_bytes() for row in X)
    else:
        again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(output(again, X), output(model, X))
    assert again.n_samples_seen_ == 200
    for one in (model, again):
        one.partial_fit(X[200:], y[200:])
    assert again.n_samples_seen_ == 300
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# ---- what is refused: entries that contradict each other -----------------------------------------


def machine(model):
    """Entries of the fitted object of an additive SVM."""
    return model["state"]["predictor_"]["state"]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("SplineMap", lambda m: m["state"].update(n_features_in_=7), "features = 7, found"),
        ("SplineMap", lambda m: m["state"].update(n_features_in_="6"), "whole number"),
        ("SplineMap", lambda m: m["state"].pop("spec_"), "lacks 'spec_'"),
        ("SplineMap", lambda m: m["state"].update(_fast=1), "unknown entries '_fast'"),
        ("SplineMap", lambda m: m["state"].update(transform=1), "unknown entries 'transform'"),
        ("SplineMap", lambda m: m["state"].update(spec_=None), "must be a Spec"),
        ("SplineMap", lambda m: m["params"].update(n_jobs="all"), "n_jobs"),
        ("SplineMap", lambda m: m["params"].update(out_of_domain=3), "out_of_domain"),
        ("SplineMap", lambda m: m.update(version=99), "version 99.*Upgrade"),
        ("SplineMap", lambda m: m.pop("version"), "version None"),
        ("SplineMap", lambda m: m.update(state=[]), "malformed 'object'"),
        ("SplineMap", lambda m: m.pop("params"), "malformed 'object'"),
        ("AnchorMap", lambda m: m["state"]["anchors_"].pop(), "of 6 features, found 5"),
        ("AnchorMap", lambda m: m["params"].update(kernel="nobody"), "nobody"),
        ("AdditiveSVC", lambda m: machine(m).update(offset=machine(m)["weights"]), "twice|two"),
        ("AdditiveSVC", lambda m: machine(m).update(on_codes=True), "has no codes"),
        ("AdditiveSVC", lambda m: m["state"]["classes_"]["items"].pop(), "malformed"),
        ("AdditiveSVC", lambda m: m["params"].update(tol=-1), "tol must be"),
        ("AdditiveSVC", lambda m: m["params"].update(C=[1.0, -1.0]), "C must be"),
        ("AdditiveSVC", lambda m: m["state"].update(C_=0.0), "above 0"),
        ("AdditiveSVC", lambda m: m["state"].update(n_features_in_=9), "number of features"),
        ("AdditiveSVR", lambda m: m["state"].update(classes_=[1, 2]), "unknown entries"),
        ("StreamingRidge", lambda m: m["state"].update(y_ndim=7), "at most 2"),
        ("StreamingRidge", lambda m: m["params"].update(alpha="x"), "alpha"),
        ("StreamingRidge", lambda m: m["state"].pop("stats_"), "lacks 'stats_'"),
    ],
)
def test_entries_that_contradict_each_other_are_refused(name, change, words, path):
    km.save(fitted(name), path)
    rewritten(path, lambda header: change(header["model"]))
    with pytest.raises(FileFormatError, match=words):
        km.load(path)


def test_many_references_to_one_array_are_refused_before_they_are_copied(path):
    node = {"$": "array", "name": "big"}
    header = {"format": 2, "class": "AnchorMap", "metadata": {}}
    model = {"$": "object", "class": "AnchorMap", "version": 1, "state": {}}
    model["params"] = {"anchors": [node] * 20_000}
    storage.write(path, "model", {**header, "model": model}, {"big": np.zeros(2 * 10**5)})
    with pytest.raises(FileFormatError, match="two entries refer to the array 'big'"):
        km.load(path)


def test_a_pipeline_whose_steps_do_not_fit_is_refused(path):
    model = make_pipeline(Normalizer("l1"), km.HomogeneousMap(), LinearSVC())
    model.fit(rows(), labels())
    km.save(model, path)

    def change(header):
        steps = header["model"]["params"]["steps"]
        steps[1]["items"][1]["state"]["n_features_in_"] = 9

    rewritten(path, change)
    with pytest.raises(FileFormatError, match="a step takes 9 features"):
        km.load(path)
