"""GAMs as SQL: SQLite and DuckDB compute the predictions of Python, on hostile rows, too."""

import math
import sqlite3

import numpy as np
import pandas as pd
import pytest
from fitted_examples import fitted_map, fitted_model

import kernelmaps as km
from kernelmaps.models.gam.predictor import AdditivePredictor

duckdb = pytest.importorskip("duckdb", reason="statements are run in DuckDB, too")
TABLE = 'po"li cies'
TOLERANCE = 1e-9  # promised; rounding errors of the sums are near 1e-15


def training_rows(n=900):
    """Columns of all kinds, under names that need their quotes."""
    rng = np.random.default_rng(0)
    seconds = pd.to_timedelta(rng.integers(0, 3 * 365 * 86400, n), unit="s")
    X = pd.DataFrame(
        {
            "select": rng.integers(18, 50, n).astype(float),
            'power "kW"': rng.gamma(4, 20, n).round(-1),
            "région": rng.choice(["Ulm", "O'Hara", "été ×", "x;--y"], n),
            "code": rng.choice([3, 5, 10], n),
            "prediction": rng.random(n) < 0.4,
            "town": [f"town {k % 300}" for k in range(n)],
            "key": rng.choice(["12", "b12", "7"], n),
            "day": pd.Timestamp("2019-01-01") + seconds,
            "Größe": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    age, day = X["select"], X["day"].dt
    score = 0.001 * (age - 50) ** 2 + 0.3 * np.log(X['power "kW"']) * (X["région"] == "Ulm")
    score += 0.2 * (X["code"] == 5) + 0.02 * age * X["prediction"] + X["Größe"].isna()
    score += np.sin(day.day_of_year / 58) + 0.3 * (day.day_of_week == 2) + np.cos(day.hour / 4)
    score += rng.normal(size=300)[np.arange(n) % 300] + 0.3 * rng.normal(size=n)
    X.loc[rng.random(n) < 0.03, "région"] = None
    return X, score.to_numpy()


PAIRS = [
    ("select", 'power "kW"'),
    ("région", "select"),
    ("région", "code"),
    ("prediction", km.Term("select", "linear")),
    (km.Term('power "kW"', "linear"), km.Term("Größe", "linear")),
]
KINDS = ["pairs", "edited", "log link", "logit link", "two classes", "ordered", "three classes"]


@pytest.fixture(scope="module")
def models():
    X, score = training_rows()
    coded, rng = {"categorical_features": ["code"]}, np.random.default_rng(1)
    thirds = np.digitize(score, np.quantile(score, [0.3, 0.7]))
    few = X[["select", "région", "Größe"]]
    plain = km.AdditiveRegressor(interactions=[("région", "select")]).fit(few, score)
    return {
        "pairs": km.AdditiveRegressor(interactions=PAIRS, **coded).fit(X, score),
        "edited": plain.edit("select", 0.5, between=(18, 25)).edit("Größe", 0.0, between=(0, 0.5)),
        "log link": km.AdditiveRegressor("poisson", **coded).fit(
            X, rng.poisson(np.exp(score / 4)), exposure=rng.uniform(0.5, 1, len(X))
        ),
        "logit link": km.AdditiveRegressor("binomial").fit(few, score > 2),
        "two classes": km.AdditiveClassifier().fit(few, np.where(score > 2, "late", "ear'ly")),
        "ordered": km.AdditiveClassifier("ordinal").fit(few, thirds),
        "three classes": km.AdditiveClassifier(
            terms={"Größe": km.Term("Größe", extrapolation="linear")},
            interactions=[("région", "select")],
        ).fit(few, thirds),
    }


def hostile_rows(n=400):
    """NULL, unseen levels, odd blanks, values far out of range, dates of other centuries."""
    X, rng = training_rows()[0].head(n), np.random.default_rng(2)
    numbers = [np.nan, -1e9, 1e9, 1e13, 0.0, -0.0, 1e-310, 17.5, 18.0, 89.0, 90.5]
    words = ["", "  ", "NA", "n/A", "?", "None", "nowhere", None]
    cells = {
        "select": numbers, 'power "kW"': numbers, "Größe": numbers,
        "région": [*words, "Ulm ", "\tUlm\n", "\u00a0Ulm", "\u3000Ulm\u2009", "ulm", "'; DROP --"],
        "code": [3.0, 5.0, 7.0, -1.0, np.nan], "prediction": [True, False, pd.NA],
        "town": [*words, "town 3 ", " town 5"], "key": [*words, "12", "12.0", "b12 ", "012"],
        "day": [
            pd.NaT, *map(pd.Timestamp, (
                "1899-12-31 23:59:59", "2020-02-29 12:00", "2100-03-01", "2000-01-01",
                "2024-12-31 23:59:59",
            )),
        ],
    }  # fmt: skip
    X = X.astype({"code": float, "prediction": "boolean"})
    for name, values in cells.items():
        rows = np.flatnonzero(rng.random(n) < 0.3)
        picked = pd.Series(values, dtype=X[name].dtype).iloc[
            rng.integers(0, len(values), len(rows))
        ]
        X.loc[rows, name] = picked.to_numpy()
    return X


def in_sqlite(X, types=None):
    """A table in memory; EXP and FLOOR, which some builds lack, as Python's."""
    database = sqlite3.connect(":memory:")
    for name, function in (("exp", math.exp), ("floor", math.floor)):
        try:
            database.execute(f"SELECT {name}(1.5)")
        except sqlite3.OperationalError:
            database.create_function(name, 1, lambda x, f=function: None if x is None else f(x))
    kinds = {"f": "REAL", "i": "INTEGER", "b": "INTEGER"}
    heads = [
        f"{quoted(name)} {types or kinds.get(X[name].dtype.kind, 'TEXT')}" for name in X.columns
    ]
    database.execute(f"CREATE TABLE {quoted(TABLE)} (id INTEGER, {', '.join(heads)})")
    columns = [X[name] for name in X.columns]
    columns = [c.astype(str).where(c.notna()) if c.dtype.kind == "M" else c for c in columns]
    cells = [c.astype(object).where(c.notna(), None).tolist() for c in columns]
    marks = ", ".join("?" * (len(cells) + 1))
    rows = zip(range(len(X)), *cells)
    database.executemany(f"INSERT INTO {quoted(TABLE)} VALUES ({marks})", rows)
    return database


def in_duckdb(X):
    database = duckdb.connect()
    frame = X.assign(id=range(len(X)))
    database.register("frame", frame)
    database.execute(f"CREATE TABLE {quoted(TABLE)} AS SELECT * FROM frame")
    return database


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def computed(database, statement):
    """Columns that a statement adds to `id`, in its order, and their names."""
    cursor = database.execute(statement)
    names = [column[0] for column in cursor.description]
    assert names[0] == "id"
    rows = np.array(sorted(cursor.fetchall()), dtype=float)
    return rows[:, 1:], names[1:]


def expected(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)[:, None]


@pytest.fixture(scope="module")
def rows():
    return hostile_rows()


@pytest.fixture(scope="module", params=["sqlite", "duckdb"])
def database(request, rows):
    return request.param, (in_sqlite if request.param == "sqlite" else in_duckdb)(rows)


@pytest.mark.filterwarnings("ignore:AdditiveRegressor.predict")
@pytest.mark.parametrize("kind", KINDS)
def test_a_database_says_the_same(models, kind, database, rows):
    """Contributions, too: pairs without what they hold of single columns, as `eval_terms`."""
    model, (dialect, connection) = models[kind], database
    X = rows[model.feature_names_in_]
    with_terms = bool(model.pair_functions_)
    statement = km.to_sql(model, TABLE, dialect, columns="id", terms=with_terms)
    values, names = computed(connection, statement)
    wanted, classes = expected(model, X), getattr(model, "classes_", None)
    n_last = wanted.shape[1]
    np.testing.assert_allclose(values[:, -n_last:], wanted, rtol=TOLERANCE, atol=TOLERANCE)
    # A column of two models is named "prediction", too.
    made = ["prediction 2" if "prediction" in model.feature_names_in_ else "prediction"]
    if classes is not None:
        made = [f"probability_{label}" for label in classes]
    assert names[-n_last:] == made
    if not with_terms:
        assert len(names) == n_last
        return
    terms, wanted = values[:, :-n_last], model.eval_terms(X).reshape(len(X), -1)
    # Far out of range, a line and what moves from a pair to it are up to 1e13, and cancel.
    near = (X.select_dtypes(float).abs().fillna(0) < 1e6).all(axis=1)
    np.testing.assert_allclose(terms[near], wanted[near], atol=TOLERANCE)
    np.testing.assert_allclose(terms, wanted, rtol=TOLERANCE, atol=1e-2)
    first = model.term_names_[0]
    assert names[0] == (f"f({first})" if classes is None else f"f({first}) {classes[0]}")


def test_columns_keep_their_order_and_come_before_the_prediction(models, rows):
    model = models["two classes"]
    statement = km.to_sql(model, TABLE, "sqlite")
    cursor = in_sqlite(rows).execute(statement)
    names = [column[0] for column in cursor.description]
    labels = ["probability_ear'ly", "probability_late"]
    assert names == [*model.feature_names_in_, *labels]
    assert in_sqlite(rows).execute(f"CREATE VIEW later AS {statement}") is not None


def test_a_table_of_text_is_read_as_numbers(models, rows):
    """As SQLite's import of a CSV file makes it."""
    model = models["two classes"]
    X = rows[model.feature_names_in_]
    text = X.apply(lambda column: column.map(repr, na_action="ignore").astype(object)
                   if column.dtype.kind == "f" else column)  # fmt: skip
    text = text.replace({"select": {"18.0": " 18 "}})
    text.loc[5, "select"] = "twenty"
    statement = km.to_sql(model, TABLE, "sqlite", columns=["id"])
    values, _ = computed(in_sqlite(text, types="TEXT"), statement)
    X.loc[5, "select"] = np.nan
    np.testing.assert_allclose(values, expected(model, X), rtol=TOLERANCE)


def test_infinite_numbers_have_no_prediction(models, rows):
    model, X = models["two classes"], rows.head(4).copy()
    X["select"], X["Größe"] = [np.inf, -np.inf, 30.0, 30.0], [0.0, 0.0, np.inf, 0.0]
    with pytest.raises(ValueError, match="infinity"):
        model.predict(X[model.feature_names_in_])
    for dialect, database in (("sqlite", in_sqlite(X)), ("duckdb", in_duckdb(X))):
        values, _ = computed(database, km.to_sql(model, TABLE, dialect, columns=["id"]))
        assert np.isnan(values).all(axis=1).tolist() == [True, True, True, False]


@pytest.fixture(scope="module")
def dated():
    """A model of dates of two centuries, whose parts have straight lines."""
    rng = np.random.default_rng(3)
    days, seconds = rng.integers(0, 77_000, 900), rng.integers(0, 86_400, 900)
    day = pd.Timestamp("1890-01-01") + pd.to_timedelta(days, "D") + pd.to_timedelta(seconds, "s")
    X = pd.DataFrame({"day": day})
    kinds = {"day": "linear", "day (month)": "linear", "day (hour)": "linear"}
    return km.AdditiveRegressor(terms=kinds).fit(X, rng.normal(size=900)), X


def test_calendars_agree_over_two_centuries(dated):
    """Leap years, and the days and seconds of all months."""
    model, X = dated
    later = pd.DataFrame({"day": X["day"] + pd.Timedelta(days=9000, seconds=5000)})
    for dialect, database in (("sqlite", in_sqlite(later)), ("duckdb", in_duckdb(later))):
        statement = km.to_sql(model, TABLE, dialect, columns=["id"], terms=True)
        values, names = computed(database, statement)
        assert names[:2] == ["f(day)", "f(day (month))"]
        np.testing.assert_allclose(values[:, :-1], model.eval_terms(later), atol=TOLERANCE)


@pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.UnreadableCellWarning")
def test_dates_as_text(dated):
    days = [
        "2020-02-29", "2021-07-01T10:30:00", "2021-07-01 10:30:59.9", "2021-07-01 10:30:00+05:00",
        " 2019-12-31 23:59:59 ", "2021-02-29", "2021-13-01", "1600-01-01", "", "NA", None,
        *["2020-05-05"] * 20,
    ]  # fmt: skip
    model, X = dated[0], pd.DataFrame({"day": pd.Series(days, dtype=object)})
    for dialect, database in (("sqlite", in_sqlite(X)), ("duckdb", in_duckdb(X))):
        values, _ = computed(database, km.to_sql(model, TABLE, dialect, columns=["id"]))
        np.testing.assert_allclose(values, expected(model, X), rtol=TOLERANCE, atol=TOLERANCE)


def test_a_model_of_an_array_reads_numbered_columns():
    X = np.column_stack([np.linspace(0, 1, 90), np.arange(90) % 3])
    model = km.AdditiveRegressor(categorical_features=[1]).fit(X, X[:, 0] + (X[:, 1] == 2))
    frame = pd.DataFrame({"x0": X[:, 0], "x1": [*X[:88, 1], 2.5, np.nan]})
    # The dialect of the standard runs in both.
    for dialect, database in (
        ("sqlite", in_sqlite(frame)), ("ansi", in_sqlite(frame)), ("ansi", in_duckdb(frame)),
    ):  # fmt: skip
        values, _ = computed(database, km.to_sql(model, TABLE, dialect, columns=["id"]))
        np.testing.assert_allclose(values[:, 0], model.predict(frame.to_numpy()), atol=TOLERANCE)


def test_names_that_are_made_are_those_of_nothing_else():
    """Names of steps and columns of the statement, in capitals, and longer than databases take."""
    long = "ü" * 80
    names = ["cells", "TERMS", "score", "age (number)", "age", "f(age)", long, f"{long}!", "l", "s"]
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.integers(0, 9, (300, len(names))) / 8, columns=names)
    model = km.AdditiveRegressor(interactions=[(long, f"{long}!")]).fit(X, X.sum(axis=1))
    for dialect, database in (("sqlite", in_sqlite(X)), ("duckdb", in_duckdb(X))):
        statement = km.to_sql(model, TABLE, dialect, columns=["id"], terms=True)
        values, made = computed(database, statement)
        assert len({name.casefold() for name in (*names, *made)}) == len(names) + len(made)
        assert max(len(name.encode()) for name in made) < 64
        np.testing.assert_allclose(values[:, -1], model.predict(X), atol=TOLERANCE)
    # A table that has the name of a step is not taken for it.
    database.execute(f"ALTER TABLE {quoted(TABLE)} RENAME TO terms")
    values, _ = computed(database, km.to_sql(model, ("main", "terms"), "duckdb", columns=["id"]))
    np.testing.assert_allclose(values[:, -1], model.predict(X), atol=TOLERANCE)


def test_levels_that_are_large_numbers_are_told_apart():
    """Beyond 2**53 two whole numbers may be the same float."""
    levels = np.array([2**53, 2**53 + 1, 2**53 + 2])
    X = pd.DataFrame({"key": np.tile(levels, 30), "x": np.linspace(0, 1, 90)})
    model = km.AdditiveRegressor(categorical_features=["key"]).fit(X, np.tile([0.0, 3.0, 9.0], 30))
    for dialect, database in (("sqlite", in_sqlite(X)), ("duckdb", in_duckdb(X))):
        values, _ = computed(database, km.to_sql(model, TABLE, dialect, columns=["id"]))
        np.testing.assert_allclose(values[:, 0], model.predict(X), atol=TOLERANCE)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"dialect": "oracle"}, "dialect must be one of 'ansi', 'sqlite', 'duckdb', 'postgres'"),
        ({"table": ""}, "table must hold names"),
        ({"table": ()}, "table must hold names"),
        ({"columns": []}, "columns must hold names"),
        ({"columns": [3]}, "columns must hold names"),
        ({"columns": ["a\0b"]}, "columns must hold names"),
        ({"terms": "age"}, "terms must be True or False"),
    ],
)
def test_other_arguments_are_refused(models, arguments, problem):
    with pytest.raises(ValueError, match=problem):
        km.to_sql(models["two classes"], **{"table": TABLE, **arguments})


def test_what_is_no_gam_is_refused(models):
    for what in (fitted_map("SplineMap"), fitted_model("StreamingRidge"), "model.kmap"):
        with pytest.raises(TypeError, match=f"is for GAMs .*: {type(what).__name__} has no tables"):
            km.to_sql(what, TABLE)
    with pytest.raises(ValueError, match="This AdditiveRegressor instance is not fitted yet"):
        km.to_sql(km.AdditiveRegressor(), TABLE)
    predictor = models["two classes"].predictor_
    assert km.to_sql(predictor, TABLE) == km.to_sql(models["two classes"], TABLE)
    assert isinstance(predictor, AdditivePredictor)
    surface = predictor.terms[0]
    object.__setattr__(surface, "kind", "surface")
    try:
        with pytest.raises(ValueError, match=r"the term 'select' \(surface\) is no piecewise"):
            km.to_sql(predictor, TABLE)
    finally:
        object.__setattr__(surface, "kind", "spline")
