"""`kernelmaps predict` loads little, and predicts what the estimator predicts.

GAMs to the bit, additive SVMs up to rounding: their compiled loops add in another order.
"""

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from command_line import invoke

import kernelmaps as km
from kernelmaps.exceptions import FileFormatError, OutOfDomainWarning
from kernelmaps.model_files import load_with_metadata
from kernelmaps.models.svm.saved import EstimatorNeeded

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
    text, parquet = tmp_path / "new.csv", tmp_path / "new.parquet"
    pa.csv.write_csv(table, text)
    pa.parquet.write_table(table, parquet)
    commands, predictions = [], []
    for kind in ("numbers", "counts", "labels", "classes"):
        model, metadata, options, expected = model_of(kind, table, signal)
        saved = tmp_path / f"{kind}.kmap"
        km.save(model, saved, metadata=metadata)
        commands += [(saved, data, *options) for data in (text, parquet)]
        predictions += [expected.reshape(N_ROWS, -1).tolist()] * 2
    *printed, packages = predict(*commands)
    assert packages & HEAVY == set()
    assert {"numpy", "pyarrow"} <= packages  # the probe would have seen others
    for lines, rows in zip(printed, predictions, strict=True):
        assert lines == [[str(value) for value in row] for row in rows]  # as repr: all bits


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
    feature_map = km.HomogeneousMap() if kind == "curves" else None
    labels = signal > 0.5 if kind == "curves" else np.digitize(signal, [0.0, 1.0])
    model = km.AdditiveSVC(feature_map).fit(X, labels)
    if kind == "labels":
        return model, [], model.predict(X)
    return model, ["--proba"], model.predict_proba(X)


def write(X, path):
    table = pa.table({f"c{j}": column for j, column in enumerate(X.T)})
    (pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table)(table, path)
    return path


def save(model, path):
    km.save(model, path, metadata={"columns": ["c0", "c1", "c2"]})
    return path


def test_predictions_of_an_additive_svm_need_no_estimator(rows, tmp_path):
    data = {suffix: write(rows, tmp_path / f"new{suffix}") for suffix in (".csv", ".parquet")}
    commands, predictions = [], []
    for kind in ("numbers", "labels", "classes", "curves"):
        model, options, expected = svm_of(kind, rows)
        saved = save(model, tmp_path / f"{kind}.kmap")
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
    assert type(light).__name__ == "SavedSVR"
    # Values that leave the range of the fit by a little are clipped without a word.
    new = rows * 1.01 if feature_map.get_params().get("out_of_domain") == "clip" else rows
    np.testing.assert_allclose(light.predict(new), model.predict(new), rtol=0, atol=ROUNDING)


def test_whole_numbers_are_scored_as_by_the_estimator(tmp_path):
    X = np.random.default_rng(0).integers(0, 9, size=(100, 3))
    model = km.AdditiveSVR().fit(X, X[:, 0] ** 2)
    light, _ = load_with_metadata(save(model, tmp_path / "m.kmap"), to_predict=True)
    # Predictions of up to 64.
    np.testing.assert_allclose(light.predict(X), model.predict(X), rtol=0, atol=64 * ROUNDING)


def test_rows_that_something_has_to_be_said_about_are_the_estimators(rows, tmp_path):
    """Values outside the domain, negative ones, NaN, and the other types of rows."""
    signal = np.sin(5 * rows[:, 0]) + rows[:, 1]
    spline, chi2 = (km.AdditiveSVR(m).fit(rows, signal) for m in (None, km.HomogeneousMap()))
    strict = km.AdditiveSVR(km.SplineMap(out_of_domain="raise")).fit(rows, signal)
    far, negative, missing, beyond = (rows[:5].copy() for _ in range(4))
    far[0, 0], negative[0, 0], missing[0, 0] = 2.0, -0.1, np.nan
    beyond[0, 0] = rows[:, 0].max() + 1e-6
    huge = np.full((1, 3), 1e200)
    for model, new in (
        (spline, far),
        (spline, missing),
        (spline, rows.astype(np.float32)),
        (spline, rows[:0]),
        (spline, np.ones((2**24 // 3 + 1, 3))),
        (chi2, negative),
        (chi2, huge),
        (strict, beyond),
    ):
        light, _ = load_with_metadata(save(model, tmp_path / "m.kmap"), to_predict=True)
        with pytest.raises(EstimatorNeeded):
            light.predict(new)
    light.predict(rows)


def test_the_command_says_what_the_estimator_says(rows, tmp_path):
    model = km.AdditiveSVR().fit(rows, rows[:, 0])
    far = rows[:5].copy()
    far[0, 1] = 2.0
    saved, data = save(model, tmp_path / "m.kmap"), write(far, tmp_path / "new.csv")
    done = invoke("predict", saved, data)
    said = " ".join(done.stderr.split())
    assert "column 'c1' reaches [0" in said
    assert "They are clipped to it." in said
    with pytest.warns(OutOfDomainWarning):
        expected = model.predict(far).tolist()
    assert done.stdout.split()[1:] == [str(value) for value in expected]


def test_machines_of_pairs_and_of_several_labels_are_read_with_their_estimator(rows, tmp_path):
    labels = np.digitize(rows[:, 0], [0.4, 0.7])
    pairs = km.AdditiveSVC(multi_class="ovo").fit(rows, labels)
    several = km.AdditiveSVC().fit(rows, np.eye(3, dtype=int)[labels])
    for model in (pairs, several):
        loaded, _ = load_with_metadata(save(model, tmp_path / "m.kmap"), to_predict=True)
        assert type(loaded) is km.AdditiveSVC
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))


def test_a_damaged_machine_is_refused_as_by_its_estimator(rows, tmp_path):
    from kernelmaps import storage

    save(km.AdditiveSVR().fit(rows, rows[:, 0]), tmp_path / "m.kmap")
    header, arrays = storage.read(tmp_path / "m.kmap")
    header.pop("kind")
    state = header["model"]["state"]["machine_"]["state"]
    for entry, value in (("unknown", 1.0), ("on_codes", 3), ("offset", [1.0])):
        before = state.get(entry)
        state[entry] = value
        storage.write(tmp_path / "bad.kmap", "model", header, arrays)
        messages = []
        for to_predict in (True, False):
            with pytest.raises(FileFormatError) as error:
                load_with_metadata(tmp_path / "bad.kmap", to_predict=to_predict)
            messages.append(str(error.value))
        assert messages[0] == messages[1]
        if before is None:
            del state[entry]
        else:
            state[entry] = before


def streaming_of(kind, X, feature_map=None):
    """A fitted streaming model."""
    signal = np.sin(5 * X[:, 0]) + X[:, 1]
    feature_map = km.HomogeneousMap() if feature_map is None else feature_map
    if kind == "ridge":
        return km.StreamingRidge(feature_map=feature_map).fit(X, signal)
    if kind == "lasso":
        return km.StreamingLasso(1e-3, feature_map=feature_map).fit(X, signal)
    classes = np.digitize(signal, [0.0, 1.0]) if kind == "classes" else signal > 0.5
    labels = np.array(["a", "b", "c"])[classes.astype(int)]
    return km.StreamingRidgeClassifier([0.1, 1.0], feature_map=feature_map).fit(X, labels)


def test_predictions_of_a_streaming_model_need_no_estimator(rows, tmp_path):
    data, kinds = write(rows, tmp_path / "new.csv"), ("ridge", "lasso", "labels", "classes")
    models = [streaming_of(kind, rows) for kind in kinds]
    saved = [save(m, tmp_path / f"{kind}.kmap") for kind, m in zip(kinds, models, strict=True)]
    *printed, packages = predict(*((path, data) for path in saved))
    assert packages & HEAVY == set()
    for kind, model, lines in zip(kinds, models, printed, strict=True):
        expected = model.predict(rows)
        if kind in ("labels", "classes"):
            assert [label for (label,) in lines] == expected.tolist()
        else:
            predicted = np.array(lines, dtype=float)[:, 0]
            np.testing.assert_allclose(predicted, expected, rtol=0, atol=100 * ROUNDING)


@pytest.mark.parametrize("feature_map", [*MAPS, None], ids=repr)
def test_a_saved_streaming_model_scores_as_its_estimator_does(feature_map, rows, tmp_path):
    model = km.StreamingRidge(feature_map=feature_map).fit(rows, np.sin(5 * rows[:, 0]))
    light, _ = load_with_metadata(save(model, tmp_path / "m.kmap"), to_predict=True)
    assert type(light).__name__ == "SavedStreamingRegressor"
    # Coefficients of size 100 at most.
    np.testing.assert_allclose(light.predict(rows), model.predict(rows), rtol=0, atol=1e-12)
    with pytest.raises(EstimatorNeeded):
        light.predict(np.full((1, 3), np.nan))
    with pytest.raises(EstimatorNeeded):
        light.predict(rows.astype(np.float32))


def test_other_streaming_models_are_read_with_their_estimator(rows, tmp_path):
    """Several kernels, several targets, pairs of classes, joint maps."""
    several = [(slice(0, 2), km.HomogeneousMap()), ([2], None)]
    joint = km.RandomFourierMap(n_components=8, random_state=0)
    classes = np.digitize(rows[:, 0], [0.4, 0.7])
    for model in (
        km.StreamingRidge(feature_map=several).fit(rows, rows[:, 0]),
        km.StreamingRidge(feature_map=km.HomogeneousMap()).fit(rows, rows[:, :2]),
        km.StreamingRidge(feature_map=joint).fit(rows, rows[:, 0]),
        km.StreamingRidgeClassifier(multi_class="ovo").fit(rows, classes),
        km.StreamingRidgeClassifier().fit(rows, np.eye(3, dtype=int)[classes]),
    ):
        loaded, _ = load_with_metadata(save(model, tmp_path / "m.kmap"), to_predict=True)
        assert type(loaded) is type(model)
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))


def test_models_that_need_their_estimator_are_predicted_with_it(rows, tmp_path):
    joint = km.RandomFourierMap(n_components=8, random_state=0)
    model = km.StreamingRidge(feature_map=joint).fit(rows, rows[:, 0])
    saved, data = save(model, tmp_path / "model.kmap"), write(rows, tmp_path / "new.csv")
    lines, packages = predict((saved, data))
    assert "sklearn" in packages
    assert lines == [[str(value)] for value in model.predict(rows).tolist()]


def test_times_are_carried_along_without_pandas(table, signal, tmp_path):
    km.save(model_of("labels", table, signal)[0], tmp_path / "model.kmap")
    commands, times = [], []
    for nanoseconds in (0, 1):
        times.append(table["day"].cast(pa.int64()).to_numpy() + nanoseconds)
        at = table.append_column("at", pa.array(times[-1]).cast(pa.timestamp("ns")))
        data = tmp_path / f"new{nanoseconds}.parquet"
        pa.parquet.write_table(at.slice(0, 2), data)
        commands.append((tmp_path / "model.kmap", data, "--keep", "at"))
    *printed, packages = predict(*commands)
    assert "pandas" not in packages
    for lines, expected in zip(printed, times, strict=True):
        shown = [np.datetime64(line[0]).astype("datetime64[ns]").astype(int) for line in lines]
        assert shown == expected[:2].tolist()


def test_a_model_to_predict_is_checked_as_an_estimator_is(table, signal, tmp_path):
    from kernelmaps import storage

    km.save(model_of("labels", table, signal)[0], tmp_path / "model.kmap")
    header, arrays = storage.read(tmp_path / "model.kmap")
    header.pop("kind")

    def refused(to_predict):
        storage.write(tmp_path / "bad.kmap", "model", header, arrays)
        with pytest.raises(FileFormatError) as error:
            load_with_metadata(tmp_path / "bad.kmap", to_predict=to_predict)
        return str(error.value)

    node = header["model"]
    loss, node["params"]["loss"] = node["params"]["loss"], "hinge"
    assert refused(True) == refused(False)
    node["params"]["loss"], node["state"]["n_features_in_"] = loss, 7
    assert refused(True) == refused(False)
    del node["state"]["reader_"]
    assert refused(True) == refused(False)
