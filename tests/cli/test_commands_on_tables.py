"""The command line on tables of text, dates, IDs and gaps."""

import csv
import json
import re
import shlex
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import assert_refused, invoke, run

import kernelmaps as km
from kernelmaps.data import table_files, tables
from kernelmaps.data.table_files import CsvFile, ParquetFile
from kernelmaps.exceptions import SuspectColumnWarning
from kernelmaps.export.files import open_info

N = 400


def cells(seed=0):
    """Columns of a table of rides: an ID, a date, a city, an area with gaps, and the fare."""
    rng = np.random.default_rng(seed)
    minutes = rng.integers(0, 900 * 24 * 60, N).astype("timedelta64[m]")
    when = np.datetime64("2021-03-01T00:00") + minutes
    hour = (when - when.astype("datetime64[D]")).astype(int) / 60
    city = rng.choice(["Bern", "Köln [/b]", "New York, NY"], N)
    area = rng.gamma(5, 20, N)
    fare = 20 + 3 * np.cos(2 * np.pi * hour / 24) + 4.0 * (city == "Bern") + 0.05 * area
    fare += 0.3 * rng.normal(size=N)
    return {
        "ride_id": [f"R{k}" for k in range(N)],
        "when": [str(moment).replace("T", " ") for moment in when],
        "city": city.tolist(),
        "area": ["" if k % 10 == 0 else f"{value:.2f}" for k, value in enumerate(area)],
        "source": ["app"] * N,
        "fare": [f"{value:.3f}" for value in fare],
        "tip": np.where(fare > np.median(fare), "yes", "no").tolist(),
    }


def write(path, columns):
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values()))
    return path


def test_a_survival_model_of_a_file(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"load": rng.random(N), "maker": rng.choice(["A", "B"], N)})
    time = rng.exponential(np.exp(-3 * X["load"]))
    rows, model = tmp_path / "rows.csv", tmp_path / "model.kmap"
    X.assign(time=np.minimum(time, 0.5), failed=(time < 0.5).astype(int)).to_csv(rows, index=False)
    fit = "fit", rows, "-t", "time", "--event", "failed"
    fitted = json.loads(run(*fit, "-o", model, "--json"))
    assert fitted["task"] == "survival"
    assert fitted["scores"]["concordance"] > 0.6
    assert set(fitted["columns"]) == {"load", "maker"}
    scored = json.loads(run("evaluate", model, rows, "--json", "--check"))
    again = km.load(model)
    assert again.concordance_ == pytest.approx(scored["scores"]["concordance"])
    assert scored["check"]["rows"] == N
    in_python = km.AdditiveSurvival().fit(rows, ("time", "failed"))
    run("predict", model, rows, "-o", tmp_path / "new.csv")
    written = pd.read_csv(tmp_path / "new.csv")["log_hazard"]
    np.testing.assert_allclose(written, in_python.predict(rows), rtol=1e-6, atol=1e-9)
    page = tmp_path / "page.html"
    run("explain", model, "--report", page, "--data", rows)
    assert "(censored)" in page.read_text()
    for options, words in (
        (["--exposure", "load"], "leave out --exposure"),
        (["--stream"], "need all rows in memory"),
        (["--model", "ridge"], "--event means nothing"),
    ):
        assert_refused(2, words, *fit, *options)


@pytest.fixture(scope="module")
def rides(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "rides.csv", cells())


@pytest.fixture(scope="module")
def model(rides, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "rides.kmap"
    run("fit", rides, "-t", "fare", "--drop", "tip", "-o", path)
    return path


@pytest.fixture(scope="module")
def tips(rides, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tips.kmap"
    run("fit", rides, "-t", "tip", "--drop", "fare", "-o", path, "--holdout", "none")
    return path


def test_any_csv_is_fitted_and_what_was_decided_is_said(rides, tmp_path):
    out = tmp_path / "m.kmap"
    result = invoke("fit", rides, "-t", "fare", "--drop", "tip", "-o", out)
    assert result.exit_code == 0, result.output
    told = " ".join(result.stderr.split())
    assert "column 'ride_id' left out: its values are all different" in told
    assert "column 'source' left out: all its values are the same" in told
    shown = " ".join(result.stdout.split())
    assert "R² on" in shown
    assert "held-out rows" in shown
    assert "dates: when (trend, month, weekday, hour)" in shown
    assert "regression (the target has values with fractions; otherwise: --task" in shown
    fitted = km.load(out)
    parts = ["when", "when (month)", "when (weekday)", "when (hour)"]
    assert fitted.reader_.feature_names == [*parts, "city", "area"]
    kinds = {term.name: term.kind for term in fitted.predictor_.terms}
    assert kinds["when (hour)"] == "periodic"
    assert kinds["city"] == "category"


def test_new_rows_may_have_unseen_levels_gaps_and_words_for_numbers(model, rides, tmp_path):
    columns = {name: values[:4] for name, values in cells().items()}
    del columns["fare"], columns["tip"], columns["source"]
    columns["city"][0] = "Atlantis"
    columns["when"][1] = ""
    columns["area"][2] = "huge"
    result = invoke("predict", model, write(tmp_path / "new.csv", columns))
    assert result.exit_code == 0, result.output
    assert "column 'area' holds numbers: 'huge' in 1 row counted as missing" in " ".join(
        result.stderr.split()
    )
    lines = [line.split(",") for line in result.stdout.splitlines()]
    assert lines[0] == ["ride_id", "fare"]
    assert [line[0] for line in lines[1:]] == columns["ride_id"]
    usual = [line.split(",") for line in run("predict", model, rides).splitlines()[1:5]]
    assert lines[4][1] == usual[3][1]  # the row that was not changed
    assert all(np.isfinite(float(line[1])) for line in lines[1:])
    assert all(lines[k][1] != usual[k - 1][1] for k in (1, 2, 3))


def test_explain_shows_curves_levels_and_pairs(tmp_path):
    out, columns = tmp_path / "m.kmap", cells()
    for k, area in enumerate(columns["area"]):
        if area and columns["city"][k] == "Bern":
            columns["fare"][k] = str(float(columns["fare"][k]) + 0.1 * float(area))
    rides = write(tmp_path / "rides.csv", columns)
    run("fit", rides, "-t", "fare", "--drop", "tip,when", "--interactions", "city:area", "-o", out,
        "--holdout", "none")  # fmt: skip
    shown = run("explain", out, "-o", tmp_path / "s.png")
    assert "Bern +" in shown
    assert "▁" in shown
    assert "city × area" in shown
    assert "missing" in shown
    assert (tmp_path / "s.png").stat().st_size > 1000
    assert (tmp_path / "s-pairs.png").stat().st_size > 1000
    told = json.loads(run("explain", out, "--json"))
    names = {feature["name"]: feature for feature in told["features"]}
    assert set(names["city"]["levels"]) == {"Bern", "Köln [/b]", "New York, NY"}
    assert told["pairs"][0]["name"] == "city × area"
    assert {term["term"] for term in told["summary"]["terms"]} == {"city", "area", "city × area"}


def test_explain_of_one_row_adds_up_to_its_prediction(model, rides):
    told = json.loads(run("explain", model, "--data", rides, "--row", "3", "--json"))
    total = told["intercept"] + sum(term["adds"] for term in told["terms"])
    assert total == pytest.approx(told["score"])
    printed = run("predict", model, rides).splitlines()[4]
    assert float(printed.split(",")[-1]) == pytest.approx(told["score"])
    shown = run("explain", model, "--data", rides, "--row", "3")
    assert "intercept" in shown
    assert_refused(2, "--row 400", "explain", model, "--data", rides, "--row", "400")
    assert_refused(2, "--row is a row of --data", "explain", model, "--row", "1")
    assert_refused(2, "--data is for --row", "explain", model, "--data", rides)


def test_explain_writes_the_page_of_a_model(model, rides, tmp_path):
    page = tmp_path / "page.html"
    assert f"report: {page}" in run("explain", model, "--report", page).replace("\n", "")
    data = json.loads(page.read_text("utf-8").split('id="data">')[1].split("</script>")[0])
    assert data["title"] == "AdditiveRegressor: fare"
    assert "held-out rows" in data["facts"][0][1]
    assert data["rows"] == []
    told = json.loads(run("explain", model, "--report", page, "--data", rides, "--json"))
    assert told == {"path": str(page)}
    data = json.loads(page.read_text("utf-8").split('id="data">')[1].split("</script>")[0])
    assert data["scores"]["rows"] == N
    columns = {name: values for name, values in cells().items() if name not in ("fare", "tip")}
    new = write(tmp_path / "new.csv", columns)
    options = ["--report", page, "--data", new, "--row", "2", "--json"]
    run("explain", model, *options)
    data = json.loads(page.read_text("utf-8").split('id="data">')[1].split("</script>")[0])
    assert data["scores"] is None
    assert [row["label"] for row in data["rows"]] == ["row 2"]
    assert_refused(2, ".html", "explain", model, "--report", tmp_path / "page.txt")


def test_a_scale_is_a_second_column(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(N), "z": rng.random(N)})
    y = np.sin(6 * X["x"]) + np.exp(X["z"] - 1) * rng.normal(size=N)
    rows, model = tmp_path / "rows.csv", tmp_path / "model.kmap"
    X.assign(y=y).to_csv(rows, index=False)
    run("fit", rows, "-t", "y", "--loss", "location_scale:z", "-o", model)
    run("predict", model, rows, "-o", tmp_path / "new.csv")
    written, fitted = pd.read_csv(tmp_path / "new.csv"), km.load(model)
    assert written.columns.tolist() == ["y", "standard_deviation"]
    expected = np.column_stack([fitted.predict(X), fitted.predict_scale(X)])
    np.testing.assert_allclose(written, expected, rtol=1e-9)
    assert fitted.loss_.scale_terms == ("z",)
    assert "no probabilities" in invoke("predict", model, rows, "--proba").output


def test_options_reach_the_model(rides, tmp_path):
    out = tmp_path / "m.kmap"
    run(
        "fit", rides, "-t", "fare", "--drop", "tip", "-o", out,
        "--terms", "city=none,when (hour)=periodic:12",
        "--constraints", "area=increasing+concave", "--loss", "absolute_error",
        "--holdout", "none",
    )  # fmt: skip
    fitted = km.load(out)
    assert "city" not in fitted.term_names_
    assert fitted.terms["when (hour)"].period == 12
    assert fitted.constraints == {"area": ("increasing", "concave")}
    assert fitted.loss == "absolute_error"
    area = {shape.name: shape for shape in fitted.shape_functions_}["area"]
    assert (np.diff(area.values) >= 0).all()
    pair = ["--interactions", "city:area", "--constraints", "city:area=decreasing in area"]
    pair += ["--holdout", "none"]
    run("fit", rides, "-t", "fare", "--drop", "tip,when", "-o", out, *pair)
    assert km.load(out).constraints == {("city", "area"): ("decreasing in area",)}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--interactions", "city:area:when"], "--interactions must be auto"),
        (["--interactions", "city:aera"], "names the column 'aera'"),
        (["--constraints", "area"], "--constraints must be COLUMN=VALUE"),
        (["--constraints", "area=up"], "must be one of increasing"),
        (["--constraints", "area:city=convex in when"], "must say along which of them"),
        (["--terms", "when (hour)=periodic:day"], "is not a number: 'day'"),
        (["--terms", "town=category"], "terms names the column 'town'; X has 'ride_id', 'when'"),
        (["--C", "10"], "hold text, not numbers. Name it with --target"),
        (["--C", "10", "--model", "gam"], "--C means nothing for --model gam."),
        (["--normalize", "l1"], "--normalize l1 scales rows of numbers"),
        (["--map", "SplineMap", "--interactions", "auto"], "--interactions means nothing for"),
        (["--exposure", "area", "--model", "svm"], "--exposure means nothing for --model svm"),
        (["--exposure", "area"], "--exposure is for --loss poisson, --loss gamma"),
        (["--loss", "quantile:2"], "--loss quantile:2: Quantile: quantile must be between 0 and 1"),
        (["--loss", "poisson:one"], "dispersion must be a positive number"),
        (["--loss", "poissn"], "location_scale for numbers, or log_loss, ordinal, multinomial for"),
        (["--loss", "log_loss"], "if not, add --task classification"),
        (["--loss", "cox"], "name the column of events with --event"),
        (["--event", "died"], "has no column for --event 'died'"),
        (["--loss", "epsilon_insensitive"], "'epsilon_insensitive' is a loss of AdditiveSVR"),
        (["--loss", "poisson", "--model", "ridge"], "--loss means nothing for --model ridge"),
        (["--holdout", "first"], "--holdout must be one of"),
        (["--model", "forest"], "--model must be one of"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, match, rides, tmp_path):
    out = tmp_path / "m.kmap"
    assert_refused(2, match, "fit", rides, "-t", "fare", "--drop", "tip", "-o", out, *options)
    assert not out.exists()


def test_numbers_alone_are_fitted_by_a_gam_unless_a_map_is_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((120, 2))
    path = tmp_path / "plain.csv"
    lines = [f"{k},{a},{b},{a + b * b}" for k, (a, b) in enumerate(X)]
    path.write_text("\n".join(["row,a,b,y", *lines]))
    result = invoke("fit", path, "-o", tmp_path / "gam.kmap")
    assert "column 'row' left out: its values are all different" in result.stderr
    assert km.load(tmp_path / "gam.kmap").term_names_ == ["a", "b"]
    run("fit", path, "--drop", "row", "--C", "2", "-o", tmp_path / "svm.kmap")
    assert isinstance(km.load(tmp_path / "svm.kmap"), km.AdditiveSVR)
    run("fit", path, "--columns", "row,a", "-o", tmp_path / "row.kmap")
    assert open_info(tmp_path / "row.kmap").metadata["columns"] == ["row", "a"]
    assert run("predict", tmp_path / "gam.kmap", path).startswith("row,y\n0,")


def test_arrays_are_fitted_by_a_gam(tmp_path):
    rng = np.random.default_rng(0)
    X, out = rng.poisson(0.6, (150, 3)).astype(float), tmp_path / "m.kmap"
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", X[:, 0] - X[:, 1] ** 2)
    options = ("--target", tmp_path / "y.npy", "-o", out, "--task", "regression")
    result = invoke("fit", tmp_path / "X.npy", *options)
    assert "--model chooses another one" in result.stderr
    assert isinstance(km.load(out), km.AdditiveRegressor)
    assert len(run("predict", out, tmp_path / "X.npy").splitlines()) == 151


def test_tables_that_cannot_be_learned_from_are_refused(model, tmp_path):
    out, path = tmp_path / "m.kmap", tmp_path / "d.csv"
    np.save(tmp_path / "rows.npy", np.ones((3, 6)))
    assert_refused(2, "use CSV or Parquet", "predict", model, tmp_path / "rows.npy")
    path.write_text("id,y\n" + "\n".join(f"u{k},{k % 3}" for k in range(40)))
    match = "no column to learn from: column 'id' left out: its values are all different."
    assert_refused(2, match, "fit", path, "-o", out)
    labelled(path, lambda n: [f"name {k}" for k in range(n)])
    assert_refused(2, "90 different texts in 90 rows", "fit", path, "-t", "t", "-o", out)
    write(path, {**cells(), "when (hour)": [str(k % 7) for k in range(N)]})
    match = "'when (hour)' has the name of a part of a date: rename it"
    assert_refused(2, match, "fit", path, "-t", "fare", "-o", out)


def labelled(path, labels, n=90):
    """A table of one number and one category, with a column of labels to predict."""
    a = [str(k % 13) for k in range(n)]
    return write(path, {"a": a, "b": ["xyz"[k % 3] for k in range(n)], "t": labels(n)})


@pytest.mark.usefixtures("undrawn")
def test_explain_of_many_classes_names_the_one_that_it_shows(tmp_path):
    path = labelled(tmp_path / "d.csv", lambda n: [f"c{k % 13 // 2}" for k in range(n)])
    run("fit", path, "-t", "t", "-o", tmp_path / "m.kmap", "--holdout", "none")
    explain = ["explain", tmp_path / "m.kmap", "-o", tmp_path / "s.png"]
    shown = run(*explain)
    assert "effect on c0" in shown
    told = "Effects on 'c0', one of 7 classes; --class NAME shows those on another."
    assert told in " ".join(shown.split())
    [high], [low] = (
        [line for line in run(*explain, "--class", name).splitlines() if line.split()[:1] == ["a"]]
        for name in ("c6", "c0")
    )
    assert low in shown
    assert high.index("█") > high.index("▁")  # c6 where a is large
    assert low.index("█") < low.index("▁")
    row = ["explain", tmp_path / "m.kmap", "--data", path, "--row", "0"]
    assert json.loads(run(*row, "--class", "c2", "--json"))["output"] == "c2"
    assert_refused(2, "--class 'd' is not one of the 7 classes: c0, c1,", *explain, "--class", "d")
    page = ["--report", tmp_path / "p.html", "--class", "c1"]
    assert_refused(2, "--class does not change a --report", *explain, *page)


@pytest.mark.usefixtures("undrawn")
def test_explain_of_a_regression_has_no_classes(model, tmp_path):
    explain = ["explain", model, "-o", tmp_path / "s.png"]
    assert_refused(2, "--class 'x' is for models of more than two", *explain, "--class", "x")
    assert "--class" not in run(*explain)


def test_a_table_is_exported_with_its_features_and_a_word_on_dates(model, rides, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    said = run("export", model, tmp_path / "m.onnx")
    assert "Dates (when) must be given as numbers" in " ".join(said.split())
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    names = json.loads(session.get_modelmeta().custom_metadata_map["feature_names"])
    fitted = km.load(model)
    X = pd.read_csv(rides).iloc[:5].drop(columns=["fare", "tip"])
    columns = fitted.reader_.read(X, "test")
    assert names == [column.name for column in columns]
    feed = {
        item.name: np.array(column.levels, object)[column.codes][:, None]
        if column.is_category
        else column.values[:, None]
        for item, column in zip(session.get_inputs(), columns, strict=True)
    }
    found = session.run(None, feed)[0].ravel()
    np.testing.assert_allclose(found, fitted.predict(X), rtol=1e-6)
    run("export", model, tmp_path / "m.h")
    header = (tmp_path / "m.h").read_text("utf-8")
    assert "Dates (when) must be given as numbers" in header
    assert '"when (hour)"' in header


def test_a_table_is_exported_as_sql(model, rides, tmp_path):
    out = tmp_path / "m.kmap"
    out.write_bytes(model.read_bytes())
    options = ["--format", "sql", "--dialect", "sqlite", "--table", "main.rides", "--columns", "id"]
    assert "m.sql" in run("export", out, *options, "--terms")
    statement = (tmp_path / "m.sql").read_text("utf-8")
    fitted = km.load(model)
    expected = km.to_sql(fitted, ("main", "rides"), "sqlite", columns=["id"], terms=True)
    assert statement == f"{expected};\n"
    X = pd.read_csv(rides).drop(columns=["fare", "tip"])
    with sqlite3.connect(":memory:") as database:
        X.assign(id=range(len(X))).to_sql("rides", database, index=False)
        result = pd.read_sql(statement, database).sort_values("id")
    np.testing.assert_allclose(result["prediction"], fitted.predict(X), rtol=1e-9)
    assert_refused(
        2, "--dialect must be one of 'ansi'", "export", out, "-f", "sql", "--dialect", "x"
    )
    assert_refused(2, "--format must be one of 'kmap'", "export", out, "--format", "pdf")
    assert_refused(2, "that is written as .sql", "export", out, tmp_path / "m.h", "-f", "sql")


def test_a_table_is_exported_as_tables_of_effects(model, rides, tmp_path):
    out = tmp_path / "effects.csv"
    few = pd.read_csv(rides).head(30)
    few.to_csv(tmp_path / "few.csv", index=False)
    run("export", model, out, "--step", "area=2.5", "--data", tmp_path / "few.csv")
    expected = km.load(model).to_tables({"area": 2.5}, few.drop(columns=["fare", "tip"]))["area"]
    written = pd.read_csv(out)
    written = written[written["term"] == "area"]
    assert written["band or level"].tolist() == expected["band"].astype(str).tolist()
    np.testing.assert_allclose(written["effect"], expected["effect"], rtol=1e-12)
    assert written["exposure"].tolist() == expected["exposure"].tolist()
    assert expected["exposure"].sum() == 30
    for step in ("wide", "area=wide"):
        assert_refused(2, "--step must be a number, or NAME=NUMBER", "export", model, out,
                       "--step", step)  # fmt: skip


@pytest.mark.usefixtures("undrawn")
def test_a_table_is_edited(model, rides, tmp_path):
    out = tmp_path / "edited.kmap"
    options = ["--term", "area", "--effect", "0", "--between", "60,80"]
    run("edit", model, out, *options)
    expected = km.load(model).edit("area", 0.0, between=(60, 80))
    edited, X = km.load(out), pd.read_csv(rides).drop(columns=["fare", "tip"])
    shown = run("explain", out, "--out", tmp_path / "shapes.png").split()
    assert "edited since: area in [60, 80] = 0" in " ".join(shown)
    np.testing.assert_array_equal(edited.predict(X), expected.predict(X))
    plain = json.loads(run("edit", out, out, "--term", "city", "--effect", "Bern=0.5", "--json"))
    assert plain["edits"] == km.load(out).edits_
    assert plain["edits"][1] == "city: Bern = 0.5"
    predictions = run("predict", out, rides)
    first = float(predictions.splitlines()[1].split(",")[1])
    assert first == pytest.approx(km.load(out).predict(X)[0])
    for option, words in (("x", "--effect must be a number, or NAME=NUMBER"),
                          ("Rome=1", "column 'city' has no level 'Rome'")):  # fmt: skip
        assert_refused(2, words, "edit", model, out, "--term", "city", "--effect", option)
    ends = ["--term", "area", "--effect", "0", "--between", "a,b"]
    assert_refused(2, "--between must be numbers with commas", "edit", model, out, *ends)


@pytest.mark.usefixtures("undrawn")
def test_the_commands_of_the_tutorial_run(tmp_path, monkeypatch):
    """On the files that its first block of Python writes."""
    folder = Path(__file__).parents[2] / "docs" / "tutorials"
    page = (folder / "table.md").read_text("utf-8")
    shutil.copy(folder / "rides.csv.gz", tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile(page.split("```python\n")[1].split("```")[0], "table.md", "exec"), {})
    commands = re.findall(r"^kernelmaps ([^#\n]+)", page, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        run(*shlex.split(command))
    assert {"rides.html", "predictions.csv", "shapes.png"} <= {p.name for p in tmp_path.iterdir()}


# ---- files that are larger than memory ----------------------------------------------------------


def streamed(*arguments):
    result = invoke("fit", *arguments, "--stream", "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("suffix", "target"), [("csv", "fare"), ("csv.gz", "tip"), ("parquet", "fare")]
)
def test_a_file_read_block_by_block_gives_the_model_of_memory(
    rides, tmp_path, monkeypatch, suffix, target
):
    """Of fewer than 200,000 rows both have the same codes, and the sums differ by rounding."""
    monkeypatch.setattr(table_files, "BLOCK_ROWS", 90)
    columns = pd.read_csv(rides)
    path = tmp_path / f"rides.{suffix}"
    columns.to_parquet(path) if suffix == "parquet" else columns.to_csv(path, index=False)
    models = tmp_path / "memory.kmap", tmp_path / "blocks.kmap"
    other = "tip" if target == "fare" else "fare"
    told = json.loads(run("fit", path, "-t", target, "--drop", other, "-o", models[0], "--json"))
    again, said = streamed(path, "-t", target, "--drop", other, "-o", models[1])
    assert again["streamed"]
    assert "block by block" in said
    assert "column 'ride_id' left out: its values are all different" in said
    assert "column 'source' left out: all its values are the same" in said
    assert again["columns"] == told["columns"]
    assert again["rows"] == told["rows"] == N
    assert again["scored_rows"] == told["scored_rows"]
    assert again["score"] == pytest.approx(told["score"], abs=1e-6)
    held, blocks = (
        [line.split(",") for line in run("predict", model, rides).splitlines()] for model in models
    )
    assert held[0] == blocks[0] == ["ride_id", target]
    if target == "tip":
        assert held == blocks
    else:
        found = [[float(line[1]) for line in lines[1:]] for lines in (held, blocks)]
        np.testing.assert_allclose(*found, rtol=1e-6)


def test_whole_numbers_stay_classes_and_large_files_stream_by_themselves(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "IN_MEMORY_BYTES", 100)
    path = labelled(tmp_path / "d.csv", lambda n: [str(k % 13 // 7) for k in range(n)])
    result = invoke("fit", path, "-t", "t", "--task", "classification", "-o", tmp_path / "m.kmap")
    assert "read block by block" in " ".join(result.stdout.split())
    assert km.load(tmp_path / "m.kmap").classes_.tolist() == [0, 1]
    assert km.load(tmp_path / "m.kmap").classes_.dtype.kind == "i"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_new_rows_are_read_block_by_block(rides, model, tips, tmp_path, monkeypatch, suffix):
    """Predictions, scores and explanations are those of all rows at once, of any block's size."""
    columns = pd.read_csv(rides, keep_default_na=False, dtype=str)
    columns.loc[250, "area"] = "huge"
    columns.loc[120, "fare"] = ""
    columns.loc[350, "city"] = "Oslo"
    path = tmp_path / f"new.{suffix}"
    if suffix == "parquet":
        columns = columns.assign(fare=pd.to_numeric(columns["fare"]), ride_id=np.arange(N))
        columns.to_parquet(path)
    else:
        columns.to_csv(path, index=False)
    asked = [
        ["predict", model, path], ["predict", tips, path, "--proba"],
        ["predict", model, path, "--json"],
        ["evaluate", model, path, "--json"], ["evaluate", tips, path, "--json"],
        ["explain", model, "--data", path, "--row", 333, "--json"],
    ]  # fmt: skip
    whole = [invoke(*words) for words in asked]
    assert not any(result.exit_code for result in whole), [result.output for result in whole]
    assert "'huge' in 1 row counted as missing" in " ".join(whole[0].stderr.split())
    assert "1 row without 'fare' left out" in " ".join(whole[3].stderr.split())
    assert json.loads(whole[3].stdout)["rows"] == N - 1
    report = ["explain", model, "--data", path, "--report"]
    run(*report, tmp_path / "whole.html")
    sizes = []

    def measured(blocks):
        def measured_blocks(*arguments):
            for table in blocks(*arguments):
                sizes.append(table.num_rows if table.num_columns > 1 else 0)  # 1: targets
                yield table

        return measured_blocks

    monkeypatch.setattr(table_files, "BLOCK_ROWS", 90)
    for file in (CsvFile, ParquetFile):
        monkeypatch.setattr(file, "blocks", measured(file.blocks))
    for words, before in zip(asked, whole, strict=True):
        again = invoke(*words)
        assert again.stderr == before.stderr
        assert_alike(again.stdout, before.stdout)
    assert max(sizes) == 90
    sizes.clear()
    assert "Oslo" in run("explain", model, "--data", path, "--row", 350)
    assert sum(sizes) == 360  # the file is read up to the row
    for name in ("a.csv", "a.csv.gz", "a.json"):
        run("predict", model, path, "-o", tmp_path / name)
    assert pd.read_csv(tmp_path / "a.csv").equals(pd.read_csv(tmp_path / "a.csv.gz"))
    assert len(json.loads((tmp_path / "a.json").read_text())["values"]) == N
    assert_refused(2, "rows are 0 to 399", "explain", model, "--data", path, "--row", 400)
    run(*report, tmp_path / "blocks.html")
    whole, blocks = ((tmp_path / f"{name}.html").read_text() for name in ("whole", "blocks"))
    assert blocks == whole
    assert max(sizes) == 90


def assert_alike(text, other):
    """Equal but for the last digits of numbers: sums of scores are added in another order."""
    for own, wanted in zip(re.split(r"[\s,]+", text), re.split(r"[\s,]+", other), strict=True):
        if own != wanted:
            assert float(own) == pytest.approx(float(wanted), rel=1e-12)


def test_a_fit_without_a_file_to_write_tells_the_score(rides, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run("fit", rides, "-t", "fare")
    assert "held-out rows" in said
    assert "not saved: name a file, --out model.kmap" in " ".join(said.split())
    assert list(tmp_path.iterdir()) == []


# ---- Python and the command line ----------------------------------------------------------------


def daily(n=500):
    """Days in order, an amount of money, a shop; what is sold depends on all and on the weekday."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2022-01-01") + np.arange(n)
    weekday = (days.astype(int) + 3) % 7
    budget, shop = rng.gamma(3, 400, n), rng.choice(["north", "south"], n)
    sold = 5 + np.sin(2 * np.pi * weekday / 7) + np.log(budget) + (shop == "north")
    return {
        "day": [f"{str(d)[8:]}.{str(d)[5:7]}.{str(d)[:4]}" for d in days],
        "budget": [f"$ {value:,.2f}" for value in budget],
        "shop": shop.tolist(),
        "sold": [f"{value:.5f}" for value in sold + 0.1 * rng.normal(size=n)],
    }


@pytest.fixture(scope="module")
def sales(tmp_path_factory):
    return write(tmp_path_factory.mktemp("sales") / "sales.csv", daily())


@pytest.mark.parametrize("how", ["frame", "csv", "parquet"])
def test_python_and_the_command_line_fit_the_same_model(how, sales, tmp_path):
    """Bit for bit; each side's saved model predicts raw frames on the other."""
    frame = pd.read_csv(sales)
    path = sales
    if how == "parquet":
        path = tmp_path / "sales.parquet"
        frame.assign(day=pd.to_datetime(frame["day"], format="%d.%m.%Y")).to_parquet(path)
    run("fit", path, "-t", "sold", "-o", tmp_path / "line.kmap")
    X, y = frame.drop(columns="sold"), frame["sold"]
    fitted = km.AdditiveRegressor()
    fitted.fit(X, y) if how == "frame" else fitted.fit(path, "sold")
    loaded = km.load(tmp_path / "line.kmap")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert {"day (weekday)", "budget"} <= set(loaded.term_names_)
    km.save(fitted, tmp_path / "python.kmap")  # without any metadata
    lines = run("predict", tmp_path / "python.kmap", sales).splitlines()
    assert lines[0] == "prediction"
    printed = np.array(lines[1:], float)
    np.testing.assert_array_equal(printed, loaded.predict(X))


def test_the_latest_rows_are_held_out_where_a_date_orders_them(sales, tmp_path):
    frame = pd.read_csv(sales)
    table = " ".join(run("fit", sales, "-t", "sold").split())
    assert "100 held-out rows" in table
    assert "held out the latest rows by 'day'" in table
    last = json.loads(run("fit", sales, "-t", "sold", "--json"))
    X, y = frame.drop(columns="sold"), frame["sold"]
    score = km.AdditiveRegressor().fit(X[:400], y[:400]).score(X[400:], y[400:])
    assert last["score"] == pytest.approx(score, abs=1e-12)
    backwards = frame.iloc[::-1]
    backwards.to_csv(tmp_path / "back.csv", index=False)
    again = json.loads(run("fit", tmp_path / "back.csv", "-t", "sold", "--json"))
    assert again["score"] == pytest.approx(score, abs=1e-6)
    shuffled = frame.sample(frac=1, random_state=0)
    shuffled.to_csv(tmp_path / "mixed.csv", index=False)
    assert "random rows" in run("fit", tmp_path / "mixed.csv", "-t", "sold")
    assert "random rows" in run("fit", sales, "-t", "sold", "--holdout", "random")
    said = run("fit", tmp_path / "mixed.csv", "-t", "sold", "--holdout", "last")
    assert "held out" in said
    assert "the last rows" in said


def test_weekdays_and_months_have_names(sales, tmp_path):
    out, page = tmp_path / "m.kmap", tmp_path / "p.html"
    run("fit", sales, "-t", "sold", "-o", out, "--holdout", "none")
    shown = run("explain", out, "-o", tmp_path / "s.svg")
    line = next(line for line in shown.splitlines() if line.split()[:2] == ["day", "(weekday)"])
    assert all(f"{day} " in line for day in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))
    line = next(line for line in shown.splitlines() if line.split()[:2] == ["day", "(month)"])
    assert " Jan " in line
    assert " Dec, " in line
    picture = (tmp_path / "s.svg").read_text("utf-8")
    assert "Wed" in picture
    row = run("explain", out, "--data", sales, "--row", "0")
    assert ["day", "(weekday)", "Sat"] in [line.split()[:3] for line in row.splitlines()]
    run("explain", out, "--report", page)
    data = json.loads(page.read_text("utf-8").split('id="data">')[1].split("</script>")[0])
    panel = next(panel for panel in data["shapes"] if panel["name"] == "day (month)")
    assert [panel["ticks"][0], panel["ticks"][-1]] == [[1, "Jan"], [12, "Dec"]]
    assert "units: budget in $" in str(km.load(out).summary())


def test_exposures_are_remembered(tmp_path):
    """log E[y] = log years + f(x); rows of two years have twice the claims."""
    rng = np.random.default_rng(0)
    n = 2000
    age, years = rng.uniform(18, 80, n), rng.choice([0.5, 1.0, 2.0], n)
    claims = rng.poisson(years * np.exp(-1 + 0.03 * (age - 50)))
    frame = pd.DataFrame({"age": age, "years": years, "claims": claims})
    path, out = tmp_path / "claims.csv", tmp_path / "m.kmap"
    frame.to_csv(path, index=False)
    fit = ["fit", path, "-t", "claims", "--loss", "poisson", "--exposure", "years"]
    told = json.loads(run(*fit, "-o", out, "--json"))
    assert (told["task"], told["exposure"]) == ("regression", "years")
    assert next(iter(told["scores"])) == "d2"
    assert "deviance explained on" in run(*fit)
    X = frame[["age"]]
    model = km.AdditiveRegressor(loss="poisson").fit(X, claims, exposure=years)
    expected = model.predict(X, exposure=years)
    np.testing.assert_array_equal(np.array(run("predict", out, path).split()[1:], float), expected)
    scores = json.loads(run("evaluate", out, path, "--json"))["scores"]
    assert scores["d2"] == pytest.approx(model.score(X, claims, exposure=years), abs=1e-12)
    again, _ = streamed(*fit[1:])
    assert again["score"] == pytest.approx(told["score"], abs=1e-6)
    X.to_csv(tmp_path / "bare.csv", index=False)
    refused = assert_refused(2, "has no column 'years' with the exposures", "predict", out,
                             tmp_path / "bare.csv")  # fmt: skip
    assert not refused.stdout  # no header without rows
    rates = run("predict", out, tmp_path / "bare.csv", "--exposure", "none").split()[1:]
    np.testing.assert_array_equal(np.array(rates, float), model.predict(X))


def test_a_surface_is_named_by_its_columns(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((200, 3)), columns=["east", "north", "age"])
    frame["y"] = np.sin(6 * frame["east"]) * frame["north"] + frame["age"]
    path, out = tmp_path / "d.csv", tmp_path / "m.kmap"
    frame.to_csv(path, index=False)
    run("fit", path, "-t", "y", "--terms", "east:north=surface,age=linear", "-o", out)
    assert km.load(out).term_names_ == ["age", "east × north"]


def test_losses_have_their_parameter_behind_a_colon(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(300)})
    frame["y"] = rng.poisson(np.exp(frame["a"]))
    path, out = tmp_path / "d.csv", tmp_path / "m.kmap"
    frame.to_csv(path, index=False)
    for text, loss in (
        ("quantile:0.9", km.losses.Quantile(0.9)),
        ("poisson:1", km.losses.Poisson(1)),
        ("negative_binomial", "negative_binomial"),
        ("tweedie:1.5", km.losses.Tweedie(1.5)),
    ):
        told = json.loads(run("fit", path, "-t", "y", "--loss", text, "-o", out, "--json"))
        assert told["task"] == "regression"
        model = km.load(out)
        assert model.loss == loss
        predicted = np.array(run("predict", out, path).split()[1:], float)
        np.testing.assert_array_equal(predicted, model.predict(frame[["a"]]))


def test_weights_are_a_column_only_where_they_are_named(tmp_path):
    """A column "sample_weight" of a file is a feature, as in a frame, and that is said."""
    rng = np.random.default_rng(0)
    a, weight = rng.normal(size=200), rng.uniform(0.5, 2, 200)
    frame = pd.DataFrame({"a": a, "sample_weight": weight, "y": np.sin(a) + weight})
    path, out, X = tmp_path / "d.csv", tmp_path / "m.kmap", frame.drop(columns="y")
    frame.to_csv(path, index=False)
    result = invoke("fit", path, "-o", out)
    assert "column 'sample_weight' is a feature: if it holds weights" in result.stderr
    with pytest.warns(SuspectColumnWarning, match="column 'sample_weight' is a feature"):
        model = km.AdditiveRegressor().fit(X, frame["y"])
    np.testing.assert_array_equal(km.load(out).predict(X), model.predict(X))
    for stream in ("--in-memory", "--stream"):
        run("fit", path, "--sample-weight", "sample_weight", stream, "-o", out)
        model = km.AdditiveRegressor().fit(X[["a"]], frame["y"], weight)
        expected = model.predict(X[["a"]])
        np.testing.assert_allclose(km.load(out).predict(X[["a"]]), expected, rtol=1e-6)
        assert not invoke("predict", out, path).stderr  # the column is not a new one
    options = ["--model", "svm", "--sample-weight", "a"]
    assert_refused(2, "--sample-weight means nothing for --model svm", "fit", path, *options)


def test_scores_and_exports_are_written_with_the_same_option(sales, tmp_path):
    out, scores = tmp_path / "m.kmap", tmp_path / "scores.json"
    run("fit", sales, "-t", "sold", "-o", out)
    run("evaluate", out, sales, "-o", scores)
    assert json.loads(scores.read_text())["scores"]["r2"] > 0.9
    assert_refused(2, "name one file to write", "export", out)
    assert_refused(2, "name one file to write", "export", out, "a.h", "-o", "b.h")
