"""`kernelmaps predict` loads little, and predicts what the estimator predicts.

GAMs to the bit, additive SVMs up to rounding: their compiled loops add in another order.
"""

import csv
import io
import json
import subprocess
import sys
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from command_line import invoke

import kernelmaps as km
from kernelmaps.engine.apply import MAX_READABLE
from kernelmaps.engine.outputs import record_paths
from kernelmaps.exceptions import FileFormatError
from kernelmaps.export.files import load_with_metadata
from kernelmaps.models.gam import predictor
from kernelmaps.models.svm import fitted as machines

# Machines need no good weights: what they predict is compared with their estimator.
pytestmark = pytest.mark.usefixtures("drawn_weights")

# Commands in a process of their own: what they print, and the packages that are loaded at the end.
PROBE = """
import json, sys
from kernelmaps.cli import run
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["kernelmaps", *arguments]
    try:
        run()
    except SystemExit as end:
        assert not end.code
    print("end of the command")
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr)
"""
HEAVY = {"sklearn", "pandas", "numba", "matplotlib", "dask"}
N_ROWS = 400


def predict(*commands):
    """The lines that each command prints, without the header, and the packages that all load."""
    words = [["predict", *map(str, command)] for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(words)], capture_output=True, text=True, check=True
    )
    printed = done.stdout.split("end of the command\n")[:-1]
    assert len(printed) == len(commands)
    lines = [list(csv.reader(io.StringIO(text)))[1:] for text in printed]
    return *lines, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    hours = rng.integers(0, 20_000, N_ROWS).astype("timedelta64[h]")
    return pa.table(
        {
            "x": np.where(rng.random(N_ROWS) < 0.1, np.nan, rng.normal(size=N_ROWS)),
            "z": rng.uniform(-1, 1, N_ROWS),
            "level": rng.choice(["a", "b", "c"], N_ROWS),
            "day": np.datetime64("2024-01-01", "ns") + hours,
            "exposure": rng.uniform(1, 2, N_ROWS),
        }
    )


@pytest.fixture(scope="module")
def signal(table):
    x, z = (np.nan_to_num(table[name].to_numpy()) for name in ("x", "z"))
    return np.sin(2 * x) + x * z + (table["level"].to_numpy(zero_copy_only=False) == "a")


def model_of(kind, table, signal):
    """A fitted model, its options, and what it predicts for the table."""
    X, rng = table.drop_columns(["exposure"]), np.random.default_rng(1)
    noisy, exposure = signal + 0.3 * rng.normal(size=N_ROWS), table["exposure"].to_numpy()
    if kind == "numbers":
        model = km.AdditiveRegressor(interactions=[("x", "z")]).fit(X, noisy)
        return model, {}, [], model.predict(X)
    if kind == "counts":
        model = km.AdditiveRegressor(loss="poisson")
        model.fit(X, rng.poisson(exposure * np.exp(0.3 * signal)), exposure=exposure)
        return model, {"exposure": "exposure"}, [], model.predict(X, exposure=exposure)
    labels = np.digitize(noisy, [0.0, 1.0]) if kind == "classes" else noisy > 0.5
    model = km.AdditiveClassifier().fit(X, labels)
    if kind == "labels":
        return model, {}, [], model.predict(X)
    return model, {}, ["--proba"], model.predict_proba(X)


def test_predictions_of_a_gam_need_no_estimator(table, signal, tmp_path):
    """Times are carried along without pandas, too."""
    text, parquet = tmp_path / "new.csv", tmp_path / "new.parquet"
    pa.csv.write_csv(table, text)
    pa.parquet.write_table(table, parquet)
    commands, predictions, times = [], [], []
    for kind in ("numbers", "counts", "labels", "classes"):
        model, metadata, options, expected = model_of(kind, table, signal)
        saved = tmp_path / f"{kind}.kmap"
        km.save(model, saved, metadata=metadata)
        commands += [(saved, data, *options) for data in (text, parquet)]
        predictions += [expected.reshape(N_ROWS, -1).tolist()] * 2
    for nanoseconds in (0, 1):
        times.append(table["day"].cast(pa.int64()).to_numpy() + nanoseconds)
        at = table.append_column("at", pa.array(times[-1]).cast(pa.timestamp("ns")))
        data = tmp_path / f"new{nanoseconds}.parquet"
        pa.parquet.write_table(at.slice(0, 2), data)
        commands.append((tmp_path / "labels.kmap", data, "--keep", "at"))
    *printed, packages = predict(*commands)
    assert packages & HEAVY == set()
    assert {"numpy", "pyarrow"} <= packages  # the probe would have seen others
    for lines, rows in zip(printed[:-2], predictions, strict=True):
        assert lines == [[str(value) for value in row] for row in rows]  # as repr: all bits
    for lines, expected in zip(printed[-2:], times, strict=True):
        shown = [np.datetime64(line[0]).astype("datetime64[ns]").astype(int) for line in lines]
        assert shown == expected[:2].tolist()


# Loads models, and scores two rows, where nothing but NumPy can be imported.
NUMPY_ALONE = """
import json, sys
import numpy
sys.modules |= dict.fromkeys(("pyarrow", "scipy", "sklearn", "numba", "pandas", "joblib"))
from kernelmaps.export.files import load_with_metadata
rows = numpy.array([[0.2, 0.4, 0.6], [0.9, 0.5, 0.3]])
models = [load_with_metadata(path, to_predict=True)[0] for path in sys.argv[1:]]
print(json.dumps([model.predict(rows).tolist() for model in models]))
"""


def test_a_few_rows_of_numbers_need_numpy_alone(tmp_path):
    """None in `sys.modules` lets an import fail."""
    X, rows = np.random.default_rng(0).random((200, 3)), [[0.2, 0.4, 0.6], [0.9, 0.5, 0.3]]
    models = [
        km.AdditiveRegressor().fit(X, np.sin(4 * X[:, 0]) + X[:, 1]),
        km.AdditiveClassifier().fit(X, X.sum(axis=1) > 1.5),
        km.AdditiveSVC(km.SplineMap()).fit(X, X.sum(axis=1) > 1.5),
        km.StreamingRidge(feature_map=km.RandomFourierMap(n_components=50)).fit(X, X[:, 0]),
        km.StreamingRidgeClassifier(feature_map=km.SplineMap()).fit(X, X.sum(axis=1) > 1.5),
        km.StreamingLasso(1e-3, [([0, 1], km.HomogeneousMap()), ([2], None)]).fit(X, X[:, 1]),
    ]
    paths = [tmp_path / f"{k}.kmap" for k in range(len(models))]
    for model, path in zip(models, paths, strict=True):
        km.save(model, path)
    done = subprocess.run(
        [sys.executable, "-c", NUMPY_ALONE, *map(str, paths)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for model, predicted in zip(models, json.loads(done.stdout), strict=True):
        np.testing.assert_allclose(predicted, model.predict(rows), rtol=1e-12)


@pytest.mark.compiled
def test_many_rows_of_a_gam_are_for_the_compiled_loop(table, signal, tmp_path, monkeypatch):
    """Loading it pays for a file of many rows only; a file is read block by block."""
    model, *_, expected = model_of("numbers", table, signal)
    km.save(model, tmp_path / "model.kmap")
    long, times = pa.concat_tables([table.drop_columns(["exposure"])] * 12), 12
    assert len(long) * model.predictor_.functions.table.n_columns > MAX_READABLE
    light, _ = load_with_metadata(tmp_path / "model.kmap", to_predict=True)
    for limit, path in ((2**23, "reference:table"), (2**14, "table:edges:dense")):
        monkeypatch.setattr(predictor, "_MAX_READABLE_OF_FILE", limit)
        with record_paths() as taken:
            predicted = light.predict(long)
        assert set(taken) == {path}
        # Sums of five terms of size 1 in the same order, their polynomials in another.
        np.testing.assert_allclose(predicted, np.tile(expected, times), rtol=0, atol=ROUNDING)


# Sums of a few numbers of size 1 in another order: each rounding is at most 1.1e-16 of them.
ROUNDING = 1e-14


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).uniform(0.1, 1.0, size=(200, 3))


def svm_of(kind, X):
    """A fitted additive SVM, the options of the command, and what is predicted for the rows."""
    signal = np.sin(5 * X[:, 0]) + X[:, 1]
    if kind == "numbers":
        model = km.AdditiveSVR().fit(X, signal)
        return model, [], model.predict(X)
    if kind == "normalised":
        histograms = X / X.sum(axis=1, keepdims=True)
        model = km.AdditiveSVR(km.HomogeneousMap()).fit(histograms, X[:, 0])
        return model, [], model.predict(histograms)
    feature_map = km.HomogeneousMap() if kind == "curves" else None
    labels = signal > 0.5 if kind == "curves" else np.digitize(signal, [0.0, 1.0])
    model = km.AdditiveSVC(feature_map, loss="log_loss").fit(X, labels)
    if kind == "labels":
        return model, [], model.predict(X)
    return model, ["--proba"], model.predict_proba(X)


def write(X, path):
    table = pa.table({f"c{j}": column for j, column in enumerate(X.T)})
    (pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table)(table, path)
    return path


def save(model, path, **more):
    km.save(model, path, metadata={"columns": ["c0", "c1", "c2"], **more})
    return path


def test_predictions_of_an_additive_svm_need_no_estimator(rows, tmp_path):
    data = {suffix: write(rows, tmp_path / f"new{suffix}") for suffix in (".csv", ".parquet")}
    commands, predictions = [], []
    for kind in ("numbers", "labels", "classes", "curves", "normalised"):
        model, options, expected = svm_of(kind, rows)
        more = {"normalize": "l1"} if kind == "normalised" else {}
        saved = save(model, tmp_path / f"{kind}.kmap", **more)
        commands.append((saved, data[".parquet" if kind == "classes" else ".csv"], *options))
        predictions.append(expected)
    *printed, packages = predict(*commands)
    assert packages & HEAVY == set()
    for lines, expected in zip(printed, predictions, strict=True):
        predicted = np.array(lines, dtype=float).reshape(expected.shape)
        np.testing.assert_allclose(predicted, expected, rtol=0, atol=ROUNDING)


MAPS = [
    km.SplineMap(degree=1),
    km.SplineMap(zero_at_zero=True),
    km.TrigonometricMap(),
    km.HermiteMap(),
    km.HomogeneousMap(signed=True),
    km.DesignedMap(),
    km.AnchorMap(n_neighbors=2),
    km.ChebyshevMap(),
    km.SeriesMap(),
]


@pytest.mark.parametrize("feature_map", MAPS, ids=repr)
def test_a_saved_machine_scores_as_its_estimator_does(feature_map, rows, tmp_path):
    model = km.AdditiveSVR(feature_map).fit(rows, np.sin(5 * rows[:, 0]) + rows[:, 1])
    light, _ = load_with_metadata(save(model, tmp_path / "m.kmap"), to_predict=True)
    assert type(light).__name__ == "AdditiveMachine"
    # Values that leave the range of the fit by a little are clipped without a word.
    new = rows * 1.01 if feature_map.get_params().get("out_of_domain") == "clip" else rows
    np.testing.assert_allclose(light.predict(new), model.predict(new), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("feature_map", [km.SplineMap(), km.HomogeneousMap()], ids=repr)
def test_many_rows_are_scored_by_loops(feature_map, rows, tmp_path, monkeypatch):
    model = km.AdditiveSVR(feature_map).fit(rows, rows[:, 0])
    light, _ = load_with_metadata(save(model, tmp_path / "m.kmap"), to_predict=True)
    monkeypatch.setattr(machines, "MOST_READABLE", 0)
    np.testing.assert_array_equal(light.predict(rows), model.predict(rows))


def test_rows_that_a_saved_machine_refuses(rows, tmp_path):
    model = km.AdditiveSVR().fit(rows, rows[:, 0])
    light, _ = load_with_metadata(save(model, tmp_path / "m.kmap"), to_predict=True)
    with pytest.raises(ValueError, match="expecting 3 features"):
        light.predict(rows[:, :2])
    for estimator in (light, model):
        with pytest.raises(ValueError, match=r"results are exact\. Divide X by a constant"):
            estimator.predict(changed(rows, 0, 1e200))


def said(model, new):
    """What a model says of rows: the message of its error, or of its warning; else nothing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.predict(new)
        except ValueError as error:
            return f"error: {error}"
    return " ".join(str(item.message) for item in caught)


def changed(rows, column, value):
    """Some rows, with another value in the first."""
    new = rows[:5].copy()
    new[0, column] = value
    return new


SPEAKING_MAPS = {
    "spline": km.SplineMap(),
    "strict": km.SplineMap(out_of_domain="raise"),
    "extrapolated": km.SplineMap(out_of_domain="extrapolate"),
    "one domain": km.AnchorMap("intersection"),
    "chi2": km.HomogeneousMap(),
    "signed": km.HomogeneousMap(signed=True),
    "no setting": km.ChebyshevMap(),
    "auto": km.DesignedMap(),
}


@pytest.mark.parametrize("feature_map", SPEAKING_MAPS.values(), ids=SPEAKING_MAPS)
def test_a_saved_machine_says_what_its_estimator_says(feature_map, rows, tmp_path):
    """Of values outside the domain, negative, missing or infinite."""
    model = km.AdditiveSVR(feature_map).fit(rows, np.sin(5 * rows[:, 0]) + rows[:, 1])
    path, beyond = save(model, tmp_path / "m.kmap"), rows[:, 0].max() + 1e-6
    messages = set()
    values = [(0, 2.0), (2, -0.01), (2, -5.0), (0, beyond), (1, np.nan), (1, -np.inf)]
    for column, value in values:
        new = changed(rows, column, value)
        light, _ = load_with_metadata(path, to_predict=True)
        assert type(light).__name__ == "AdditiveMachine"
        # A model warns once: each of them is loaded anew.
        message = said(light, new)
        assert message == said(km.load(path), new)
        messages.add(message)
    assert len(messages) > 2  # NaN, infinity, and another one or none


def test_names_of_a_frame_are_those_of_the_messages(rows, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows, columns=["age", "height", "weight"])
    path = tmp_path / "m.kmap"
    km.save(km.AdditiveSVR().fit(frame, rows[:, 0]), path)
    data = tmp_path / "new.csv"
    frame.assign(height=7.0).to_csv(data, index=False)
    assert "column 'height' reaches [7, 7]" in " ".join(
        invoke("predict", path, data).stderr.split()
    )


def test_files_that_do_not_say_whether_negative_values_are_refused(rows, tmp_path):
    """Kernels of columns that differ in it, and files without the entry."""
    mixed = km.kernels.PerFeature(
        [km.kernels.chi2, km.kernels.Additive(np.multiply), km.kernels.chi2]
    )
    model = km.AdditiveSVR(km.AnchorMap(mixed)).fit(rows, rows[:, 0])
    loaded, _ = load_with_metadata(save(model, tmp_path / "m.kmap"), to_predict=True)
    assert type(loaded) is km.AdditiveSVR  # the map itself knows


def test_a_file_that_contradicts_its_kernel_is_refused(rows, tmp_path):
    from kernelmaps._util import storage

    save(km.HomogeneousMap().fit(rows), tmp_path / "map.kmap")
    header, arrays = storage.read(tmp_path / "map.kmap")
    header.pop("kind")
    assert header["model"]["state"]["refuses_negative"] is True
    header["model"]["state"]["refuses_negative"] = False
    storage.write(tmp_path / "bad.kmap", "model", header, arrays)
    with pytest.raises(FileFormatError, match="refuses_negative contradicts the kernel"):
        km.load(tmp_path / "bad.kmap")


def test_machines_of_pairs_are_read_with_their_estimator(rows, tmp_path):
    model = km.AdditiveSVC(multi_class="ovo").fit(rows, np.digitize(rows[:, 0], [0.4, 0.7]))
    loaded, _ = load_with_metadata(save(model, tmp_path / "m.kmap"), to_predict=True)
    assert type(loaded) is km.AdditiveSVC
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))


@pytest.fixture(scope="module")
def streaming_models(rows):
    signal = np.sin(5 * rows[:, 0]) + rows[:, 1]
    three = np.digitize(signal, [0.0, 1.0])
    kernels = [([0, 1], km.HomogeneousMap(), 4), (slice(2, 3), None)]
    few = km.ExponentialMap(n_components=20, random_state=0)
    return {
        "no map": km.StreamingRidge().fit(rows, signal),
        "two targets": km.StreamingLasso(1e-3, km.SplineMap()).fit(rows, np.c_[signal, rows[:, 2]]),
        "several kernels": km.StreamingRidge(1.0, kernels).fit(rows, signal),
        "two classes": km.StreamingRidgeClassifier(1.0, km.AnchorMap("intersection")).fit(
            rows, np.where(signal > 0.5, "yes", "no")
        ),
        "three classes": km.StreamingLassoClassifier(1e-3, few).fit(rows, three),
    }


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
def test_predictions_of_streaming_models_need_no_estimator(streaming_models, rows, tmp_path):
    new, commands, models = write(rows, tmp_path / "new.csv"), [], dict(streaming_models)
    for name, model in models.items():
        commands.append((save(model, tmp_path / f"{name}.kmap"), new))
    del commands[1]  # of several targets, which the command does not write
    *printed, packages = predict(*commands)
    assert packages & HEAVY == set()
    del models["two targets"]
    for lines, model in zip(printed, models.values(), strict=True):
        expected = model.predict(rows)
        if hasattr(model, "classes_"):
            assert lines == [[str(label)] for label in expected.tolist()]
        else:
            predicted = np.array(lines, dtype=float)[:, 0]
            np.testing.assert_allclose(predicted, expected, rtol=0, atol=ROUNDING)


@pytest.mark.compiled
def test_a_saved_streaming_model_says_what_its_estimator_says(streaming_models, rows, tmp_path):
    for name, model in streaming_models.items():
        path = save(model, tmp_path / f"{name}.kmap")
        light, _ = load_with_metadata(path, to_predict=True)
        assert type(light).__name__ == "LinearPredictor"
        predicted = light.predict(rows)
        if predicted.dtype.kind == "f":
            np.testing.assert_allclose(predicted, model.predict(rows), rtol=0, atol=1e-12)
        else:
            np.testing.assert_array_equal(predicted, model.predict(rows))
        for column, value in ((0, 9.0), (1, -3.0)):
            new = changed(rows, column, value)
            light, _ = load_with_metadata(path, to_predict=True)
            prefix = f"{type(model).__name__}: chunk 0: "
            assert said(light, new) == said(km.load(path), new).replace(prefix, "")
        for estimator in (light, model):
            with pytest.raises(ValueError, match="contains NaN"):
                estimator.predict(changed(rows, 2, np.nan))
            with pytest.raises(ValueError, match="expecting 3 features"):
                estimator.predict(rows[:, :2])


def test_streaming_models_that_are_read_with_their_estimator(rows, tmp_path):
    """Votes of pairs, files without classes, and models that are not solved yet."""
    labels = np.digitize(rows[:, 0], [0.4, 0.7])
    model = km.StreamingRidgeClassifier(multi_class="ovo").fit(rows, labels)
    loaded, _ = load_with_metadata(save(model, tmp_path / "pairs.kmap"), to_predict=True)
    assert type(loaded) is km.StreamingRidgeClassifier

    from kernelmaps._util import storage

    model = km.StreamingRidgeClassifier().fit(rows, labels)
    header, arrays = storage.read(save(model, tmp_path / "new.kmap"))
    header.pop("kind")
    classes = header["model"]["state"].pop("classes")
    arrays = {name: array for name, array in arrays.items() if name != classes["name"]}
    storage.write(tmp_path / "old.kmap", "model", header, arrays)
    loaded, _ = load_with_metadata(tmp_path / "old.kmap", to_predict=True)
    assert type(loaded) is km.StreamingRidgeClassifier
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))

    model = km.StreamingRidge().partial_fit(rows, rows[:, 0])
    loaded, _ = load_with_metadata(save(model, tmp_path / "sums.kmap"), to_predict=True)
    assert type(loaded) is km.StreamingRidge
