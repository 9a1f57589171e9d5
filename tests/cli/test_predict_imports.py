"""`kernelmaps predict` loads little, and predicts what the estimator predicts, to the bit."""

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

import kernelmaps as km
from kernelmaps.model_files import load_with_metadata

# A command in a process of its own: what it prints, and the packages that are loaded at its end.
PROBE = """
import json, sys
from kernelmaps.cli import run
sys.argv = ["kernelmaps", *sys.argv[1:]]
try:
    run()
finally:
    print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr)
"""
HEAVY = {"sklearn", "pandas", "numba", "matplotlib", "dask"}
N_ROWS = 400


def predict(*arguments):
    """The lines that the command prints, without the header, and the packages that it loads."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, "predict", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return list(csv.reader(io.StringIO(done.stdout)))[1:], set(json.loads(done.stderr))


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


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", ["numbers", "counts", "labels", "classes"])
def test_predictions_of_a_gam_need_no_estimator(kind, suffix, table, signal, tmp_path):
    model, metadata, options, expected = model_of(kind, table, signal)
    saved, data = tmp_path / "model.kmap", tmp_path / f"new{suffix}"
    km.save(model, saved, metadata=metadata)
    if suffix == ".csv":
        pa.csv.write_csv(table, data)
    else:
        pa.parquet.write_table(table, data)
    lines, packages = predict(saved, data, *options)
    assert packages & HEAVY == set()
    assert {"numpy", "pyarrow"} <= packages  # the probe would have seen others
    rows = expected.reshape(N_ROWS, -1).tolist()
    assert lines == [[str(value) for value in row] for row in rows]  # as repr: all bits


def test_models_that_need_their_estimator_are_predicted_with_it(tmp_path):
    X = np.random.default_rng(0).uniform(size=(50, 2))
    model = km.AdditiveSVR().fit(X, X[:, 0])
    km.save(model, tmp_path / "model.kmap", metadata={"columns": ["a", "b"]})
    pa.csv.write_csv(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "new.csv")
    lines, packages = predict(tmp_path / "model.kmap", tmp_path / "new.csv")
    assert "sklearn" in packages
    assert lines == [[str(value)] for value in model.predict(X).tolist()]


@pytest.mark.parametrize("nanoseconds", [0, 1])
def test_times_are_carried_along_without_pandas(nanoseconds, table, signal, tmp_path):
    model, _, _, _ = model_of("numbers", table, signal)
    km.save(model, tmp_path / "model.kmap")
    moved = table["day"].cast(pa.int64()).to_numpy() + nanoseconds
    at = table.append_column("at", pa.array(moved).cast(pa.timestamp("ns")))
    pa.parquet.write_table(at.slice(0, 2), tmp_path / "new.parquet")
    lines, packages = predict(tmp_path / "model.kmap", tmp_path / "new.parquet", "--keep", "at")
    assert "pandas" not in packages
    shown = [np.datetime64(line[0]).astype("datetime64[ns]").astype(int) for line in lines]
    assert shown == moved[:2].tolist()


def test_a_model_to_predict_is_checked_as_an_estimator_is(table, signal, tmp_path):
    from kernelmaps import storage
    from kernelmaps.exceptions import FileFormatError

    km.save(model_of("labels", table, signal)[0], tmp_path / "model.kmap")
    header, arrays = storage.read(tmp_path / "model.kmap")
    header.pop("kind")

    def refused(to_predict):
        storage.write(tmp_path / "bad.kmap", "model", header, arrays)
        with pytest.raises(FileFormatError) as error:
            load_with_metadata(tmp_path / "bad.kmap", to_predict=to_predict)
        return str(error.value)

    node = header["model"]
    loss = node["params"].pop("loss")
    assert "loss" in refused(True)
    node["params"]["loss"] = "hinge"
    assert refused(True) == refused(False)
    node["params"]["loss"], node["state"]["n_features_in_"] = loss, 7
    assert refused(True) == refused(False)
    del node["state"]["reader_"]
    assert refused(True).replace("FittedClassifier", "AdditiveClassifier") == refused(False)
