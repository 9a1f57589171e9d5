"""Commands print what the library returns, and nothing else; errors are a sentence and a number."""

import json
import os
import re
import shlex
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from command_line import assert_refused, invoke, run
from sklearn.base import clone

import kernelmaps
from kernelmaps.cli import fit as fitting
from kernelmaps.cli import saved_model
from kernelmaps.cli.settings import parse_map
from kernelmaps.evaluation import comparison
from kernelmaps.export.files import open_info
from kernelmaps.models.svm import fitted as svm_fitted

pytestmark = pytest.mark.usefixtures("quick_baselines", "without_gams")

COMMANDS = ["demo", "compare", "choose", "fit", "predict", "evaluate", "export", "explain"]


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    """A user's own table: histograms of three classes by name."""
    X, y = kernelmaps.datasets.make_histograms(120, 4, 3, n_counts=40, random_state=0)
    lines = ["a,b,c,d,label"]
    lines += [",".join([*map(str, row), f"class {label}"]) for row, label in zip(X, y)]
    path = tmp_path_factory.mktemp("data") / "mine.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def ridge(csv, tmp_path_factory):
    """A model that is quick to fit."""
    path = tmp_path_factory.mktemp("model") / "ridge.kmap"
    text = "HomogeneousMap(kernel=chi2, n_components=3)"
    run("fit", csv, "--target", "label", "--model", "ridge", "--map", text, "--out", path)
    return path


def test_version():
    assert run("--version").strip() == f"kernelmaps {kernelmaps.__version__}"


def test_help_names_the_commands_and_the_first_steps():
    text = run("--help")
    assert all(name in text for name in COMMANDS)
    assert "Exit codes" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_and_speaks_json(name):
    text = run(name, "--help")
    assert f"kernelmaps {name}" in text
    assert "--json" in text


# ---- demo ---------------------------------------------------------------------------------------


def test_demo_compares_all_digits_and_writes_a_report(tmp_path, monkeypatch):
    """Not run here with all its methods."""
    given, compare = {}, kernelmaps.compare

    def quick(X, y, **options):
        given.update(options, shape=X.shape)
        few = {"maps": ["HomogeneousMap"], "kernels": ["chi2"], "sizes": [3], "cv": 2}
        return compare(X[:90], y[:90] < 5, **few)

    monkeypatch.setattr("kernelmaps.cli.compare.compare_methods", quick)
    printed = json.loads(run("demo", "--out", tmp_path / "new", "--json"))
    assert {"linear", "exact", "map"} <= {row["kind"] for row in printed["rows"]}
    page = (tmp_path / "new" / "demo.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert given["shape"] == (1797, 64)
    scope = {"km": kernelmaps}
    exec(given["loading_code"], scope)
    assert scope["X"].shape == given["shape"]


# ---- judging ------------------------------------------------------------------------------------

SMALL_MAP = ["--map", "HomogeneousMap(n_components=3)"]  # one that is compiled anyway
QUICK = ["--maps", "HomogeneousMap", "--kernels", "chi2", "--C", "10"]


def test_compare_prints_a_table_and_writes_a_report(csv, tmp_path):
    report = tmp_path / "out.html"
    text = run("compare", csv, "--target", "label", *QUICK, "--report", report)
    assert "HomogeneousMap 3" in text
    assert "plain linear" in text
    assert "mine.csv (120 × 4)" in text
    assert "Use " in text
    page = report.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "rows = km.datasets.read_rows(" in page
    assert "target='label', numeric=False)" in page


def test_ctrl_c_keeps_and_prints_what_is_done(csv, monkeypatch):
    done = []

    def interrupted(method, problem):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(method.label)
        return measure(method, problem)

    measure = comparison.measure
    monkeypatch.setattr(comparison, "measure", interrupted)
    result = invoke("compare", csv, "--target", "label", *QUICK)
    assert result.exit_code == 130
    assert all(label in result.stdout for label in done)
    assert "Interrupted: 2 of" in result.stdout
    assert "Subsampled: 0" not in result.stdout


def test_choose_prints_evidence_and_saves_the_map(csv, tmp_path):
    out = tmp_path / "chosen.kmap"
    arguments = ["choose", csv, "--target", "label", "--max-error", "0.05", "--out", out]
    printed = json.loads(run(*arguments, "--json"))
    assert printed["chosen"]["bound"] <= 0.05
    assert printed["code"].startswith("km.")
    assert kernelmaps.load(out).transform(np.ones((1, 4))).shape == (
        1,
        printed["chosen"]["columns"],
    )


@pytest.fixture
def wider(csv, tmp_path):
    """The file with an ID and a column of one value."""
    head, *lines = csv.read_text(encoding="utf-8").splitlines()
    wider = [f"row,one,{head}", *(f"{k},7,{line}" for k, line in enumerate(lines))]
    path = tmp_path / "wider.csv"
    path.write_text("\n".join(wider), encoding="utf-8")
    return path


def test_compare_leaves_out_what_fit_leaves_out(wider):
    """The program that is printed does, too; columns that are named are used."""
    arguments = ["compare", wider, "-t", "label", *QUICK, "--json"]
    result = json.loads(run(*arguments, "--drop", "d"))
    left_out = "column 'row' left out: its values are all different, and its name is that of an ID."
    assert left_out in result["notes"]
    assert result["data"]["names"] == ["a", "b", "c"]
    namespace = {"km": kernelmaps}
    exec(result["data"]["loading_code"], namespace)
    assert list(namespace["X"]) == ["row", "one", "a", "b", "c"]
    assert all("TableEncoder" in row["code"] for row in result["rows"] if row["kind"] == "map")
    named = json.loads(run(*arguments, "--columns", "one,a,b"))
    assert named["data"]["names"] == ["one", "a", "b"]


def test_choose_that_nothing_holds_is_an_exit_code_and_proposes_relative_errors(csv):
    arguments = ("-t", "label", "--max-error", "1e-9", "-k", "intersection", "--budget", "0.1")
    scaled = csv.with_name("scaled.csv")
    head, *lines = csv.read_text(encoding="utf-8").splitlines()
    cells = [line.split(",") for line in lines]
    place = head.split(",").index("label")
    big = [[c if k == place else str(1e6 * float(c)) for k, c in enumerate(row)] for row in cells]
    scaled.write_text("\n".join([head, *map(",".join, big)]), encoding="utf-8")
    told = assert_refused(1, "no map of intersection meets", "choose", scaled, *arguments).stderr
    assert "pass --relative" in " ".join(told.split())


# ---- models -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_fit_predict_and_info_on_a_table_of_ones_own(csv, ridge, tmp_path):
    out = tmp_path / "predictions.csv"
    run("predict", ridge, csv, "--out", out)
    lines = out.read_text().split("\n")[:-1]
    truth = [line.rsplit(",", 1)[1] for line in csv.read_text().split("\n")[1:]]
    assert lines[0] == "label"
    assert np.mean([a == b for a, b in zip(lines[1:], truth)]) > 0.9
    assert run("predict", ridge, csv) == out.read_text()
    printed = json.loads(run("predict", ridge, csv, "--json"))
    assert [row[0] for row in printed["values"]] == lines[1:]
    info = json.loads(run("explain", ridge, "--json"))["file"]
    assert info["title"] == "StreamingRidgeClassifier"
    assert info["metadata"]["columns"] == ["a", "b", "c", "d"]
    assert info["digest"][:12] in run("explain", ridge, "-o", tmp_path / "s.png")


def test_a_column_that_looks_like_an_id_is_pointed_out(tmp_path):
    values = np.random.default_rng(0).random((60, 2))
    lines = [f"{i},{a},{b},{1000 * a}" for i, (a, b) in enumerate(values)]
    path = tmp_path / "houses.csv"
    path.write_text("\n".join(["house_id,age,size,price", *lines]))
    told = invoke("fit", path, "-t", "price", "--model", "ridge").stderr
    assert "column 'house_id' may be no feature: its values are all different" in told


@pytest.mark.parametrize(
    "model", [kernelmaps.AdditiveSVR(), kernelmaps.StreamingRidge()], ids=["svm", "ridge"]
)
@pytest.mark.parametrize("max_values", [2**24, 0], ids=["by NumPy", "by loops"])
def test_columns_of_a_model_of_a_frame_are_found_by_name(model, max_values, tmp_path, monkeypatch):
    """A model that was saved in Python, and a file whose columns have another order."""
    monkeypatch.setattr(svm_fitted, "MOST_READABLE", max_values)
    rows = pd.DataFrame(np.random.default_rng(0).random((80, 3)), columns=["a", "b", "c"])
    y = (10 * rows["a"]).to_numpy()
    path, csv = tmp_path / "model.kmap", tmp_path / "new.csv"
    model = clone(model).fit(rows, y)
    kernelmaps.save(model, path)
    table = rows[["c", "b", "a"]].assign(y=y, other="text")
    table.to_csv(csv, index=False)
    predicted, evaluated = (
        invoke(command, path, csv, "--json") for command in ("predict", "evaluate")
    )
    values = np.ravel(json.loads(predicted.stdout)["values"])
    np.testing.assert_allclose(values, model.predict(rows), rtol=1e-9)
    assert json.loads(evaluated.stdout)["rows"] == len(rows)
    assert "feature names" not in predicted.stderr + evaluated.stderr
    table.drop(columns="b").to_csv(csv, index=False)
    assert_refused(2, "'b'", "predict", path, csv)


def test_explain_draws_the_shapes(ridge, tmp_path):
    picture = tmp_path / "shapes.png"
    text = run("explain", ridge, "--out", picture)
    assert all(name in text for name in "abcd")
    assert picture.read_bytes().startswith(b"\x89PNG")
    printed = json.loads(run("explain", ridge, "--json", "--features", "2"))
    assert len(printed["features"]) == 2
    first = printed["features"][0]
    assert len(first["grid"]) == len(first["values"])
    assert first["outputs"] == ["class 0", "class 1", "class 2"]


def test_settings_of_a_map_without_names_are_its_first_ones(csv, tmp_path):
    out = tmp_path / "m.kmap"
    fit = ("fit", csv, "-t", "label", "--model", "ridge", "--map")
    run(*fit, "SplineMap(8, 1)", "--out", out, "--holdout", "none")
    feature_map = kernelmaps.load(out).feature_map
    assert (feature_map.n_bases, feature_map.degree) == (8, 1)
    saved = tmp_path / "map.kmap"
    kernelmaps.save(kernelmaps.SplineMap(6, 1).fit(np.random.default_rng(0).random((50, 2))), saved)
    assert parse_map(str(saved)).get_params() == kernelmaps.SplineMap(6, 1).get_params()
    assert_refused(2, "holds no map but", *fit, out)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("NoSuchMap", "there is no map 'NoSuchMap'; there are HomogeneousMap"),
        ("HomogeneousMap(size=3)", "keyword argument 'size'. It has the settings gamma"),
        ("HomogeneousMap(3)", "a kernel is a name, a kernel object or a function"),
        ("SplineMap(8, 1, 2)", "positional arguments but 4 were given. It has the settings"),
        ("SplineMap(8, n_bases=3)", "multiple values for argument 'n_bases'"),
        ("SplineMap(*[8])", "is not a map: write Name"),
        ("HomogeneousMap(", "is not a map: write Name"),
        ("HomogeneousMap(gamma=open('x'))", "is not a map: write Name"),
        ("nowhere.kmap", "No such file"),
        ("ExponentialMap(additive_map=" * 3000 + "ChebyshevMap" + ")" * 3000, "is not a map"),
        (f"SplineMap(n_bases={'-' * 30_000}1)", "is not a map"),
        (f"SplineMap(n_bases={'[' * 3000})", "is not a map"),
        ("SplineMap(**3)", "keyword argument 'None'"),
        ("SplineMap\0", "is not a map"),
        ("HomogeneousMap(gamma=1+2j)", "gamma"),
    ],
)
def test_a_map_that_is_not_understood_is_refused(csv, tmp_path, text, match):
    arguments = ["fit", csv, "-t", "label", "--model", "ridge", "-o", tmp_path / "m.kmap"]
    assert len(assert_refused(2, match, *arguments, "--map", text).stderr) < 1000


# ---- bad input ----------------------------------------------------------------------------------

FIT = ("fit", "DATA", "-t", "label", "-o", "OUT")
CHOOSE = ("choose", "DATA", "-t", "label", "--max-error")
REFUSED = [
    (2, "no target 'lable'; it has 'a', 'b'", ("fit", "DATA", "-t", "lable", "-o", "OUT")),
    (2, "no column 'e'", (*FIT, "--columns", "a,e")),
    (2, "has no target", ("fit", "DATA", "--columns", "a,b", "-o", "OUT")),
    (2, "use --model ridge", (*FIT, "--map", "RandomFourierMap")),
    (2, "C must be a positive number", (*FIT, "--model", "svm", "--C", "nan")),
    (2, "C must be a positive number", ("compare", "DATA", "-t", "label", "--C", "-1")),
    (2, "line 3, column 'a': the cell holds 'many'", ("fit", "BAD", "--model", "ridge")),
    (2, "cannot be split into cells", ("fit", "LONG", "-t", "y", "-o", "OUT")),
    (2, "no column 'b'", ("predict", "MODEL", "BAD")),
    (2, "which does not predict", ("predict", "MAP", "DATA")),
    (3, "not a kernelmaps file", ("explain", "DATA")),
    (2, "error: No such file", ("explain", "nowhere.kmap")),
    (2, "no file 'nowhere.csv', nor a dataset", ("compare", "nowhere.csv")),
    (2, "--C must be numbers", ("compare", "DATA", "-t", "label", "--C", "3,x")),
    (2, "--normalize must be one of", ("compare", "DATA", "--normalize", "l7")),
    (2, "--budget must be a positive number", ("compare", "digits", "--budget", "-1")),
    (2, "is not a number", (*CHOOSE, "0.1", "-k", "gaussian:wide")),
    (2, "unknown kernel 'chi3'", (*CHOOSE, "0.1", "-k", "chi3")),
    (2, "error: --max-error must be a positive number, got -1", (*CHOOSE, "-1")),
    (2, "Missing option '--max-error'", ("choose", "digits")),
]


@pytest.mark.parametrize(("code", "match", "arguments"), REFUSED)
def test_bad_input_is_refused(code, match, arguments, csv, ridge, tmp_path):
    files = {"DATA": csv, "MODEL": ridge, "OUT": tmp_path / "m.kmap", "MAP": tmp_path / "map.kmap"}
    files |= {"BAD": tmp_path / "bad.csv", "LONG": tmp_path / "long.csv"}
    files["BAD"].write_text("a,y\n1,0\nmany,1\n")
    files["LONG"].write_text(f"a,y\n1,{'z' * 200_000}\n", encoding="utf-8")
    kernelmaps.save(kernelmaps.HomogeneousMap().fit(np.ones((2, 4))), files["MAP"])
    assert_refused(code, match, *(files.get(item, item) for item in arguments))
    assert not files["OUT"].exists()


# ---- data larger than memory, columns to leave out, folders that are not there ------------------


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(300, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.insert(0, "id", [f"r{i}" for i in range(len(frame))])
    frame["label"] = np.where(X[:, 0] > X[:, 1], "left", "right")
    frame["price"] = X @ [1.0, -2.0, 0.5]
    return frame


@pytest.mark.parametrize(("target", "other"), [("label", "price"), ("price", "label")])
def test_ridge_streams_parquet_and_agrees_with_csv(frame, target, other, tmp_path, monkeypatch):
    frame.to_csv(tmp_path / "mine.csv", index=False)
    frame.to_parquet(tmp_path / "mine.parquet", row_group_size=70)
    options = ["-t", target, "--drop", f"id,{other}", "--model", "ridge", "--normalize", "l1"]
    told = {}
    for suffix in ("csv", "parquet"):
        if suffix == "parquet":
            monkeypatch.setattr(fitting, "read_rows", None)  # all rows at once are never asked for
        out = tmp_path / f"{suffix}.kmap"
        told[suffix] = json.loads(
            run("fit", tmp_path / f"mine.{suffix}", *options, "-o", out, "--json")
        )
    assert told["parquet"].pop("streamed") is True
    assert told["csv"].pop("streamed") is False
    assert told["csv"]["scored_on"] == "held-out rows"
    for name in ("score", "scores"):
        scores = [told[suffix].pop(name) for suffix in told]
        assert scores[0] == pytest.approx(scores[1], abs=1e-12)
    assert told["parquet"] == told["csv"]
    monkeypatch.undo()
    # New rows, with columns in between that are no features and without the target.
    frame.drop(columns=target).to_parquet(tmp_path / "new.parquet")
    printed = [
        run("predict", tmp_path / f"{suffix}.kmap", tmp_path / "new.parquet", "--keep", "id")
        for suffix in told
    ]
    assert printed[0].splitlines()[0] == f"id,{target}"  # the ID is carried along
    assert [line.split(",")[0] for line in printed[0].splitlines()[1:]] == frame["id"].tolist()
    if target == "label":
        assert printed[0] == printed[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "DATA", "-t", "label", "-o"],
        ["choose", "DATA", "-t", "label", "--max-error", "0.1", "--out"],
        ["compare", "DATA", "-t", "label", "--report"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_missing_folder_is_said_before_the_work(arguments, csv, tmp_path):
    given = [csv if item == "DATA" else item for item in arguments]
    result = invoke(*given, tmp_path / "nowhere" / "out.kmap")
    assert result.exit_code == 2
    assert "there is no folder" in result.stderr


# ---- hostile and damaged input ------------------------------------------------------------------


def test_names_from_files_are_neither_markup_nor_commands_to_the_terminal(tmp_path):
    """Rich reads [/b] as markup, a terminal obeys ESC, matplotlib sets $ as mathematics."""
    names = ["[/b]", "a\x1b[31m", "$x_{$", "[bold]b", "\x9b31m"]
    X, y = kernelmaps.datasets.make_histograms(60, 5, 2, n_counts=40, random_state=0)
    labels = [f"[/i]\x1b]0;{int(label)}\x07" for label in y]
    lines = [",".join([*names, "label"])]
    lines += [",".join([*map(str, row), label]) for row, label in zip(X, labels)]
    path, model = tmp_path / "[b]\x1b.csv", tmp_path / "m.kmap"
    path.write_text("\n".join(lines), encoding="utf-8")
    fit = run("fit", path, "-t", "label", "-o", model)
    told = [fit, run("explain", model, "-o", tmp_path / "s.png")]
    told.append(run("compare", path, "-t", "label", *QUICK))
    for text in told:
        assert not set(text) & {"\x1b", "\x9b", "\x07"}
    assert all(text in told[0] for text in ("[/b]", r"a\x1b[31m", "[bold]b"))
    shown = run("explain", model, "--json")
    assert "\x9b" not in shown
    assert json.loads(shown)["file"]["metadata"]["columns"] == names
    refused = assert_refused(2, r"a\x1b[31m", "fit", path, "-t", "nothing", "-o", model)
    assert "\x1b" not in refused.stderr
    # A pipe gets the labels as they are.
    assert set(run("predict", model, path).splitlines()[1:]) <= set(labels)


# ---- formats, by suffix -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def additive(csv, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "additive.kmap"
    run("fit", csv, "-t", "label", "--out", path, *SMALL_MAP, "--normalize", "l1")
    return path


def rows_of(csv):
    return np.array([line.split(",")[:4] for line in csv.read_text().splitlines()[1:]], np.float64)


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["fit", "DATA", "-t", "label", "-o", "m.pkl"], ".kmap, .onnx, .h"),
        (["fit", "DATA", "-t", "label", "-o", "model"], "it has no suffix"),
        (["choose", "DATA", "--max-error", "0.1", "--out", "x.txt"], ".kmap, .onnx, .h"),
        (["compare", "DATA", "-t", "label", "--report", "out.pdf"], ".html"),
        (["predict", "MODEL", "DATA", "-o", "out.xlsx"], ".csv, .tsv, .json"),
        (["export", "MODEL", "model.json"], ".kmap, .onnx, .h, .sql, .csv, .xlsx"),
        (["explain", "MODEL", "-o", "shapes.bmp"], ".png, .svg, .pdf"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_other_suffixes_are_refused_before_the_work(arguments, allowed, csv, ridge, tmp_path):
    given = [{"DATA": csv, "MODEL": ridge}.get(item, item) for item in arguments[:-1]]
    out = tmp_path / arguments[-1]
    assert_refused(2, allowed, *given, out)
    assert not out.exists()


def test_export_to_onnx_predicts_the_same_and_names_classes_and_features(csv, additive, tmp_path):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    out = tmp_path / "model.onnx"
    assert "AdditiveSVC" in run("export", additive, "-o", out)
    found = {entry.key: entry.value for entry in onnx.load(out).metadata_props}
    assert json.loads(found["feature_names"]) == ["a", "b", "c", "d"]
    assert json.loads(found["classes"]) == ["class 0", "class 1", "class 2"]
    assert (found["task"], found["target"]) == ("classification", "label")
    session = runtime.InferenceSession(out, providers=["CPUExecutionProvider"])
    X = 3 * rows_of(csv).astype(np.float32)  # the file scales rows to norm 1: the graph must, too
    labels = session.run(["label"], {session.get_inputs()[0].name: X})[0]
    assert run("predict", additive, csv).splitlines()[1:] == labels.tolist()


def test_export_to_c_names_classes_and_features(additive, tmp_path):
    out = tmp_path / "my model.h"
    printed = json.loads(run("export", additive, out, "--json"))
    text = out.read_text()
    assert '#define MY_MODEL_FEATURE_NAMES {"a", "b", "c", "d"}' in text
    assert '#define MY_MODEL_CLASS_NAMES {"class 0", "class 1", "class 2"}' in text
    assert "static inline void my_model(const double *x, double *out)" in text
    assert printed["note"] == "Rows must be scaled to l1 norm 1 before the call."
    assert printed["note"] in text


def test_export_refuses_what_a_format_cannot_hold(ridge, tmp_path):
    assert_refused(2, "StreamingRidgeClassifier", "export", ridge, tmp_path / "m.sql")
    kernelmaps.save(
        kernelmaps.design_map("chi2", n_components=3, domain=(1, 255)), tmp_path / "d.kmap"
    )
    assert_refused(2, "ONNX has no use for", "export", tmp_path / "d.kmap", tmp_path / "d.onnx")


@pytest.mark.parametrize("suffix", ["csv.gz", "csv.zst", "tsv", "json"])
def test_predictions_are_written_as_the_suffix_says(suffix, csv, ridge, tmp_path):
    out = tmp_path / f"predictions.{suffix}"
    run("predict", ridge, csv, "-o", out)
    expected = run("predict", ridge, csv).splitlines()
    if suffix == "json":
        printed = json.loads(out.read_text())
        assert [row[0] for row in printed["values"]] == expected[1:]
        return
    from kernelmaps.data.reading import read_columns

    assert read_columns(out, ["label"])["label"] == expected[1:]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_predictions_that_fail_leave_the_file_as_it_was(suffix, csv, ridge, tmp_path, monkeypatch):
    def blocks(self, *arguments, **options):
        yield saved_model.NewRows(rows_of(csv))
        raise ValueError("the disk is gone")

    monkeypatch.setattr(saved_model.SavedModel, "blocks", blocks)
    path = tmp_path / f"old.csv{suffix}"
    path.write_bytes(b"old")
    assert_refused(2, "the disk is gone", "predict", ridge, csv, "-o", path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


# ---- scores -------------------------------------------------------------------------------------


def noise(path, rows=200):
    """Labels that have nothing to do with the features, of which there are many."""
    rng = np.random.default_rng(0)
    X, y = rng.random((rows, 30)), rng.integers(0, 2, rows)
    lines = [",".join([*(f"x{j}" for j in range(30)), "label"])]
    lines += [",".join([*map(str, row), f"c{label}"]) for row, label in zip(X, y)]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("model", ["svm", "ridge"])
def test_fit_reports_the_score_of_rows_that_it_has_not_seen(model, tmp_path):
    """Of pure noise a model learns its training rows by heart, and nothing else."""
    data, out = noise(tmp_path / "noise.csv"), tmp_path / "m.kmap"
    options = ["-t", "label", "--model", model, "--C", "10", "-o", out, "--json"]
    if model == "ridge":
        options += ["--map", "SplineMap"]
    held = json.loads(run("fit", data, *options))
    trained = json.loads(run("fit", data, *options, "--holdout", "none"))
    assert held["scored_on"] == "held-out rows"
    assert trained["scored_on"] == "training rows"
    assert trained["score"] > 0.9
    # 4 standard deviations of a coin thrown for each held-out row
    assert abs(held["score"] - 0.5) < 2 / np.sqrt(held["scored_rows"])
    assert held["rows"] == trained["rows"] == 200


def test_the_saved_model_is_fitted_on_all_rows(csv, tmp_path):
    files = [tmp_path / "one.kmap", tmp_path / "two.kmap"]
    for out, more in zip(files, ([], ["--holdout", "none"])):
        run("fit", csv, "-t", "label", "--model", "ridge", "-o", out, *more)
    one, two = (kernelmaps.load(path) for path in files)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    told = [open_info(path).metadata for path in files]
    assert told[0].pop("held_out")["rows"] > 0
    assert told[1].pop("held_out") is None
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("model", "suffix"), [("gam", "csv"), ("svm", "csv"), ("ridge", "parquet")]
)
def test_one_class_is_refused_before_any_fit(model, suffix, tmp_path):
    a, b = np.arange(60) % 7 / 7, np.arange(60) % 5 / 5
    frame = pd.DataFrame({"a": a, "b": b, "y": ["one"] * 60})
    path = tmp_path / f"one.{suffix}"
    frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path, index=False)
    match = "error: all 60 rows have the same class 'one', so that there is nothing to predict"
    found = assert_refused(2, match, "fit", path, "--model", model, "-o", tmp_path / "m.kmap")
    assert "fitting" not in found.stderr


def test_evaluate_scores_a_model_on_other_rows(csv, ridge, tmp_path):
    printed = json.loads(run("evaluate", ridge, csv, "--json"))
    truth = [line.rsplit(",", 1)[1] for line in csv.read_text().splitlines()[1:]]
    found = run("predict", ridge, csv).splitlines()[1:]
    assert printed["rows"] == 120
    assert printed["scores"]["accuracy"] == pytest.approx(np.mean(np.equal(truth, found)))
    assert {name: c["rows"] for name, c in printed["classes"].items()} == {
        name: truth.count(name) for name in sorted(set(truth))
    }
    assert "accuracy" in run("evaluate", ridge, csv)
    assert_refused(2, "the checks are of generalised additive", "evaluate", ridge, csv, "--check")
    other = tmp_path / "other.csv"
    other.write_text(csv.read_text().replace("class 2", "class 9"))
    assert_refused(2, "the classes ['class 9'], which the model was not", "evaluate", ridge, other)
    bare = tmp_path / "bare.csv"
    bare.write_text("a,b,c,d\n0.1,0.2,0.3,0.4\n")
    assert_refused(2, "no target 'label'", "evaluate", ridge, bare)


# ---- words --------------------------------------------------------------------------------------


def test_messages_speak_of_options(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("id,city,size,label\nr1,Bonn,2,x\nr2,Ulm,3,z\n")
    out = ("-o", tmp_path / "m.kmap")
    match, model = "the columns 'id', 'city' hold text", ("--model", "ridge")
    told = assert_refused(2, match, "fit", path, "-t", "label", *model, *out)
    assert "--drop" in told.stderr
    assert "drop=" not in told.stderr
    assert_refused(2, "Did you mean 'id'?", "fit", path, "-t", "label", "--drop", "ID", *out)
    assert_refused(2, "to predict with --target.", "fit", path, *out)
    text = tmp_path / "mine.ods"
    text.write_text("")
    wanted = ".csv, .tsv (also compressed: .gz, .zst), .xlsx, .xlsm, .parquet, .pq and"
    assert_refused(2, wanted, "fit", text, "-t", "label", *out)
    assert_refused(2, "--task classification", "fit", path, "-t", "label", "--drop", "id,city",
                   "--task", "regression", *out)  # fmt: skip


def test_explain_without_matplotlib_prints_the_table_and_one_hint(ridge, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = run("explain", ridge, "-o", tmp_path / "s.png")
    assert all(name in shown for name in "abcd")
    assert shown.count("pip install 'kernelmaps[plot]'") == 1
    assert not (tmp_path / "s.png").exists()


# ---- stationary kernels in a ridge model --------------------------------------------------------


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """Columns whose units differ by a factor of a million."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) * [1.0, 1e3, 1e6]
    y = np.sin(2 * X[:, 0]) + np.cos(X[:, 1] / 1e3)
    path = tmp_path_factory.mktemp("uneven") / "uneven.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="")
    return path


def test_ridge_standardises_columns_in_front_of_a_stationary_kernel(uneven, tmp_path):
    model = tmp_path / "m.kmap"
    fit = ("fit", uneven, "-t", "y", "--model", "ridge", "--C", "100", "-o", model, "--map")
    result = invoke(*fit, "RandomFourierMap(n_components=400)")
    assert "columns are standardised in front of RandomFourierMap" in result.stderr
    assert "StandardScaler" in result.stdout  # a step, shown
    assert json.loads(run("evaluate", model, uneven, "--json"))["scores"]["r2"] > 0.9
    given = run(*fit, "RandomFourierMap(n_components=400, sigma=1.0)")  # a width of these columns
    assert "StandardScaler" not in given
    pd.read_csv(uneven).to_parquet(tmp_path / "uneven.parquet")
    streamed = ("fit", tmp_path / "uneven.parquet", *fit[2:])
    printed = json.loads(run(*streamed, "RandomFourierMap(n_components=400)", "--json"))
    assert printed["streamed"]
    assert printed["score"] > 0.8


def documented_examples(command):
    """Command lines in the help of a command, without its name."""
    function = getattr(import_module(f"kernelmaps.cli.{command}"), command)
    found = re.findall(r"`kernelmaps (.+?)`", function.__doc__, flags=re.DOTALL)
    return [shlex.split(" ".join(line.split()))[1:] for line in found]


@pytest.mark.usefixtures("undrawn")
def test_documented_examples_run(frame, tmp_path, monkeypatch):
    """With the names of files that they use; an additive model stands for the model."""
    monkeypatch.chdir(tmp_path)
    X = frame.drop(columns="price")
    X.to_csv("mine.csv", index=False)
    frame.drop(columns=["label", "id"]).to_parquet("mine.parquet")
    X.to_csv("test.csv", index=False)
    for name in ("new.csv", "new.csv.gz"):
        X.drop(columns="label").to_csv(name, index=False)
    flats = frame.rename(columns={"a": "area", "price": "rent"}).drop(columns="id")
    flats.to_csv("flats.csv", index=False)
    claims = frame[["a", "b"]].assign(years=1.0, claims=np.arange(len(frame)) % 3)
    claims.to_csv("claims.csv", index=False)
    quick = [*SMALL_MAP, "--loss", "log_loss"]  # which has probabilities
    run("fit", "mine.csv", "-t", "label", "--drop", "id", "-o", "model.kmap", *quick)
    run("fit", "claims.csv", "-t", "claims", "--loss", "poisson", "-o", "claims.kmap")
    for command in ("predict", "evaluate", "export", "explain", "fit"):  # which writes the model
        examples = documented_examples(command)
        assert examples
        for arguments in examples:
            run(command, *arguments)
