"""Models of tables in C and ONNX: the same as Python, on unseen levels and missing values, too."""

import json

import numpy as np
import pandas as pd
import pytest
from c_programs import compile_and_run, needs_compiler, run_in_c

import kernelmaps as km
from kernelmaps.evaluation.model_report import model_report
from kernelmaps.exceptions import SuspectColumnWarning
from kernelmaps.export.c import to_c
from kernelmaps.models.losses import LOSSES, Loss

PROBABILITIES = """exported_probabilities(x, out);
    for (d = 0; d < CLASSES; ++d) printf("%.17g\\n", out[d]);"""


def table(seed, n=800):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.gamma(3.0, 2.0, n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 60, n)),
            "shop": rng.choice(["north", 'so"uth', "été"], n),
            "flat": np.ones(n),
            "void": np.full(n, np.nan),
        }
    )
    X.loc[rng.random(n) < 0.05, "shop"] = None
    y = 0.1 * X["size"] + np.where(X["shop"] == "été", 0.2 * X["size"], 0) + X["age"].isna()
    return X, y.to_numpy() + 0.1 * rng.normal(size=n), rng


def unusual(X):
    """Rows with everything that training rows need not have."""
    rows = X.head(40).copy()
    rows.loc[0, "shop"], rows.loc[1, "size"], rows.loc[2, "size"] = "unseen", 1e9, -5.0
    rows.loc[3, "size"], rows.loc[4, "flat"], rows.loc[5, "flat"] = np.nan, 7.0, np.nan
    rows.loc[6, "void"], rows.loc[7, "shop"] = 3.0, None
    return rows


def models(seed):
    """Of columns without an effect, too: "flat" and "void" are used all the same."""
    X, y, rng = table(seed)
    every = {"terms": {"flat": "auto", "void": "auto"}}
    counts = rng.poisson(np.exp(y / 3)).astype(float)
    classes = np.where(y > np.median(y), "late", "early")
    three = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    pairs = km.AdditiveRegressor(interactions=[("size", "shop"), ("size", "age")], **every)
    pairs.fit(X, y)
    return {
        "pairs": pairs,
        "edited": pairs.edit("age", 0.5, between=(20, 40)).edit("size", -1.0, between=(3.3, None)),
        "poisson": km.AdditiveRegressor(loss="poisson", **every).fit(X, counts),
        "shares": km.AdditiveRegressor(loss="binomial", **every).fit(
            X, np.minimum(counts, 9), exposure=np.full(len(X), 9)
        ),
        "straight": km.AdditiveClassifier(
            terms={"size": "linear", "age": "linear", **every["terms"]},
            interactions=[
                ("shop", km.Term("size", "linear")),
                (km.Term("age", "linear"), km.Term("size", "linear")),
            ],
        ).fit(X, three),
        "ordered": km.AdditiveClassifier("ordinal", **every).fit(X, three),
        "two classes": km.AdditiveClassifier(**every).fit(X, classes),
        "three classes": km.AdditiveClassifier(interactions=1, **every).fit(X, three),
    }


KINDS = ["pairs", "edited", "poisson", "shares", "straight", "ordered"]
KINDS += ["two classes", "three classes"]


@pytest.fixture(scope="module")
def fitted():
    return models(0)


def expected(model, X):
    """Scores and probabilities of a classifier, predictions of a regressor."""
    if not hasattr(model, "classes_"):
        return model.predict(X)[:, None]
    scores = model.decision_function(X).reshape(len(X), -1)
    return np.hstack([scores, model.predict_proba(X)])


def run_model(model, codes, folder):
    classes = len(getattr(model, "classes_", ()))
    more = PROBABILITIES.replace("CLASSES", str(classes)) if classes else ""
    return run_in_c(model, codes, folder, more)


def coded(model, X):
    """Rows as the C function takes them: levels by number."""
    out = np.empty(X.shape)
    for j, book in enumerate(model.predictor_.books):
        own = X.iloc[:, j]
        if book.kind == "number":
            out[:, j] = own
            continue
        place = {level: k for k, level in enumerate(book.levels)}
        out[:, j] = [np.nan if pd.isna(level) else place.get(level, 99) for level in own]
    return out


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_c_says_the_same(fitted, kind, tmp_path):
    model, X = fitted[kind], unusual(table(0)[0])
    wanted = expected(model, X)
    got = run_model(model, coded(model, X), tmp_path)
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_c_takes_predictors(fitted, kind):
    """The header is that of the estimator, but for its first line and the note of an exposure."""
    model = fitted[kind]
    predictor = model.predictor_
    header, of_estimator = (to_c(what, "exported").split("#ifndef") for what in (predictor, model))
    assert header[1:] == of_estimator[1:]
    assert header[0].startswith(f"/* exported: {type(model).__name__}\n")


@needs_compiler
def test_c_finds_levels_by_name(fitted, tmp_path):
    (tmp_path / "exported.h").write_text(to_c(fitted["pairs"], "exported"), encoding="utf-8")
    calls = ['"north"', r'"so\"uth"', r'"\303\251t\303\251"', r'" \t north  "']
    calls += ['"nor"', '"norths"', '"NORTH"', '""', "0", '" "', '" Na"', '"NaN"', '"?"']
    lines = "".join(f'  printf("%.17g\\n", exported_level(2, {call}));\n' for call in calls)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "exported.h"\n'
        "int main(void)\n{\n  double x[5] = {0, 0, 0, 0, 0}, out[1];\n  exported(x, out);\n"
        f"{lines}  return 0;\n}}\n"
    )
    levels = fitted["pairs"].predictor_.books[2].levels
    unseen = float(len(levels))
    named = [float(levels.index(level)) for level in ("north", 'so"uth', "été", "north")]
    numbers = [*named, *[unseen] * 3, *[np.nan] * 6]
    np.testing.assert_array_equal(compile_and_run(tmp_path, ""), numbers)


def run_in_onnx(model, X, feed):
    pytest.importorskip("skl2onnx", reason="the ONNX export needs skl2onnx")
    runtime = pytest.importorskip("onnxruntime", reason="graphs are run by onnxruntime")
    from kernelmaps.export.onnx import to_onnx

    graph = to_onnx(model, X)
    session = runtime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed(session))


def by_column(X):
    """An input for each column: strings, "" where missing, and float64."""

    def feed(session):
        out = {}
        for item in session.get_inputs():
            own = X[item.name]
            if item.type == "tensor(string)":
                out[item.name] = own.fillna("").to_numpy(dtype=object)[:, None]
            else:
                out[item.name] = own.to_numpy(np.float64)[:, None]
        return out

    return feed


def assert_same(model, X, got, tol):
    wanted = expected(model, X)
    if not hasattr(model, "classes_"):
        np.testing.assert_allclose(got[0].reshape(wanted.shape), wanted, rtol=tol, atol=tol)
        return
    assert got[0].tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(np.hstack(got[1:]), wanted, rtol=tol, atol=tol)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_onnx_says_the_same(fitted, kind):
    model, X = fitted[kind], unusual(table(0)[0])
    assert_same(model, X, run_in_onnx(model.predictor_, X, by_column(X)), 1e-12)


def test_headers_and_graphs_say_what_was_edited(fitted):
    model = fitted["edited"]
    from kernelmaps.export.onnx import to_onnx

    header = to_c(model, "exported")
    assert " * Edited after the fit: age in [20, 40] = 0.5.\n" in header
    graph = to_onnx(model, unusual(table(0)[0]))
    (entry,) = [item for item in graph.metadata_props if item.key == "edits"]
    assert json.loads(entry.value) == model.edits_


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_onnx_ignores_spaces_around_levels_and_knows_words_for_missing_values(fitted):
    cells = ["north", "north   ", " north", 'so"uth ', "nor th"]
    cells += ["", "  ", "NA", " nan ", "N/A", "?"]
    X = table(0)[0].iloc[: len(cells)].assign(shop=cells)
    for rows in (X, X.iloc[5:7]):  # cells of spaces alone, too
        assert_same(
            fitted["pairs"], rows, run_in_onnx(fitted["pairs"], rows, by_column(rows)), 1e-12
        )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_onnx_of_arrays_takes_one_matrix(seed, dtype):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=500), rng.integers(0, 4, 500)]).astype(dtype)
    y = X[:, 0] + (X[:, 1] == 2)
    model = km.AdditiveRegressor(categorical_features=[1]).fit(X, y)
    rows = np.array([[0.5, 1], [9.0, 7], [np.nan, 2], [-0.3, np.nan]], dtype)
    got = run_in_onnx(model, rows, lambda session: {session.get_inputs()[0].name: rows})
    assert got[0].dtype == dtype
    assert_same(model, rows, got, 1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_columns_that_fit_leaves_out(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(200), rng.random(200), rng.random(200)])
    with pytest.warns(SuspectColumnWarning, match="'x0' left out"):
        model = km.AdditiveRegressor().fit(X, X[:, 1] - X[:, 2])
    got = run_in_onnx(model, X, lambda session: {session.get_inputs()[0].name: X})
    assert_same(model, X, got, 1e-12)


@pytest.fixture(scope="module")
def dated():
    """A model of hourly rows, and later ones: with trends that go on, and times between those."""
    rng = np.random.default_rng(0)
    day = pd.date_range("2023-01-01", periods=2000, freq="7h")
    X = pd.DataFrame({"day": day.floor("3h"), "x": rng.random(2000)})
    y = X["x"] + np.sin(day.hour / 4) + day.day_of_year / 100 + (day.day_of_week == 2)
    model = km.AdditiveRegressor().fit(X, y.to_numpy() + rng.normal(size=2000))
    late = X.assign(day=day + pd.Timedelta(days=700, minutes=50))[::10].reset_index(drop=True)
    late.loc[3, "day"] = pd.NaT
    columns = model.reader_.read(late, "test")
    numbers = pd.DataFrame(
        {c.name: np.array([*c.levels, None], object)[c.codes] if c.is_category else c.values
         for c in columns}
    )  # fmt: skip
    return model, late, numbers


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
def test_parts_of_dates_in_onnx(dated):
    model, late, numbers = dated
    assert_same(model, late, run_in_onnx(model, late, by_column(numbers)), 1e-9)


@needs_compiler
@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.OutOfDomainWarning")
def test_parts_of_dates_in_c(dated, tmp_path):
    model, late, numbers = dated
    names = ["day", "day (month)", "day (weekday)", "day (hour)", "x"]
    assert all(f'"{name}"' in to_c(model, "exported") for name in names)
    got = run_model(model, coded(model, numbers), tmp_path)[:, 0]
    np.testing.assert_allclose(got, model.predict(late), rtol=1e-10)


class InverseGaussian(Loss):
    """½y·exp(−2η) − exp(−η), logarithmic link."""

    link = "log"

    def value(self, y, eta):
        return 0.5 * y * np.exp(-2 * eta) - np.exp(-eta)

    def derivatives(self, y, eta):
        return np.exp(-eta) - y * np.exp(-2 * eta), np.exp(-eta)  # Fisher's curvature

    def initial_intercept(self, y, weight, offset):
        return float(np.log(np.average(y * np.exp(-offset), weights=weight)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_loss_with_a_logarithmic_link_is_one_entry(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(600), "b": rng.random(600)})
    exposure = rng.gamma(4.0, 0.5, 600)
    y = rng.wald(exposure * np.exp(X["a"]), 20.0)
    model = km.AdditiveRegressor(loss="inverse_gaussian")
    with pytest.raises(ValueError, match=r"one of .*'gamma'.*, got 'inverse_gaussian'"):
        model.fit(X, y)
    monkeypatch.setitem(LOSSES, "inverse_gaussian", InverseGaussian())
    model.fit(X, y, exposure=exposure)
    rate = model.predict(X)
    scores = model.intercept_ + model.eval_terms(X).sum(axis=1)
    np.testing.assert_allclose(rate, np.exp(np.ravel(scores)), rtol=1e-12)
    np.testing.assert_allclose(model.predict(X, exposure=exposure), exposure * rate, rtol=1e-12)
    # Logarithms spread by √(mean / 20) ≈ 0.4, curves of about 8 degrees of freedom: 0.05 is usual.
    assert np.sqrt(np.mean((np.log(rate) - X["a"]) ** 2)) < 0.1
    header = to_c(model, "exported")
    assert "out[0] = exp(out[0]); /* inverse_gaussian: a logarithmic" in header
    assert "Predictions are for one unit of exposure" in header
    page = model_report(model, tmp_path / "page.html", target="price").read_text(encoding="utf-8")
    assert "the logarithm of price" in page
    assert_same(model, X, run_in_onnx(model, X, by_column(X)), 1e-12)
    with pytest.raises(ValueError, match="for loss='poisson', loss='gamma'"):
        km.AdditiveRegressor().fit(X, y, exposure=exposure)
    assert not hasattr(model, "partial_fit")  # it is of tables alone


def test_a_surface_is_part_of_a_graph():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((200, 2)), columns=["east", "north"])
    y = np.sin(6 * X["east"]) * X["north"]
    X.iloc[:20, 1] = np.nan
    model = km.AdditiveRegressor(terms=[km.Term(("east", "north"), "surface")]).fit(X, y)
    (actual,) = run_in_onnx(model, X, by_column(X))
    np.testing.assert_allclose(actual.ravel(), model.predict(X), rtol=1e-9, atol=1e-12)


def test_inputs_of_a_graph_have_the_names_of_the_columns():
    """Whatever these are; skl2onnx replaces all but letters and digits."""
    names = ["a b", "a_b", "c/d", "été", "1", "x", "<b>"]
    X = pd.DataFrame(np.random.default_rng(0).random((120, len(names))), columns=names)
    model = km.AdditiveRegressor().fit(X, X @ np.arange(1.0, 8.0))
    (actual,) = run_in_onnx(model, X, by_column(X))
    np.testing.assert_allclose(actual.ravel(), model.predict(X), rtol=1e-9)


def test_a_column_that_is_named_as_an_output_is_pointed_out():
    X = pd.DataFrame({"variable": np.linspace(0, 1, 60), "x": np.arange(60.0) % 7})
    model = km.AdditiveRegressor().fit(X, X["x"] + X["variable"])
    inputs = []

    def feed(session):
        inputs.extend(item.name for item in session.get_inputs())
        return {name: X[[column]].to_numpy() for name, column in zip(inputs, X, strict=True)}

    with pytest.warns(UserWarning, match="column 'variable' is the input 'variable1'"):
        (actual,) = run_in_onnx(model, X, feed)
    assert inputs == ["variable1", "x"]
    np.testing.assert_allclose(actual.ravel(), model.predict(X), rtol=1e-9)


@pytest.fixture(scope="module")
def many_levels():
    """A model of 300 levels, and rows with an unseen and a missing one."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 300, 3000)
    X = pd.DataFrame({"x": rng.random(3000), "town": [f"t{k}" for k in code]})
    y = X["x"] + rng.normal(size=300)[code] + 0.1 * rng.normal(size=3000)
    rows = X.head(50).copy()
    rows.loc[0, "town"], rows.loc[1, "town"] = "unseen", None
    return km.AdditiveRegressor().fit(X, y), rows


@needs_compiler
def test_c_of_a_factor_with_many_levels(many_levels, tmp_path):
    model, rows = many_levels
    levels = {level: k for k, level in enumerate(model.predictor_.books[1].levels)}
    codes = [np.nan if pd.isna(t) else levels.get(t, len(levels)) for t in rows["town"]]
    got = run_model(model, np.column_stack([rows["x"], codes]), tmp_path)[:, 0]
    np.testing.assert_allclose(got, model.predict(rows), rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_onnx_of_a_factor_with_many_levels(many_levels):
    model, rows = many_levels
    assert_same(model, rows, run_in_onnx(model, rows, by_column(rows)), 1e-6)
