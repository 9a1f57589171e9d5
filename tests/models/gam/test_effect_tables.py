"""Tables of effects: a tariff that is added up by hand is the prediction of rounded rows."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km
from kernelmaps.export.tables import write_tables
from kernelmaps.models.gam.effect_tables import MAX_BANDS, N_BANDS

PAIRS = [("age", "power"), ("age", "town"), ("town", km.Term("power", "linear"))]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 1200
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "power": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(4, 20, n)),
            "town": rng.choice(["missing", "=Ulm", "Bonn\x07", "other"], n),
            "years": rng.uniform(0.2, 1, n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    log_rate = 0.02 * np.abs(X["age"] - 45) + 0.004 * X["power"].fillna(0) * (X["town"] == "=Ulm")
    X["claims"] = rng.poisson(X["years"] * np.exp(log_rate))
    return X


@pytest.fixture(scope="module")
def models(rows):
    X = rows[["age", "power", "town", "day"]]
    rate = km.AdditiveRegressor("poisson", terms={"day": "linear"}, interactions=PAIRS)
    three = np.minimum(rows["claims"], 2)
    return {
        "rates": rate.fit(X, rows["claims"], exposure=rows["years"]),
        "plain": km.AdditiveRegressor().fit(X[["age", "power"]], rows["claims"].astype(float)),
        "classes": km.AdditiveClassifier(interactions=PAIRS[:1]).fit(X, three),
    }


def tariff(model, tables, cells):
    """Sums of effects that rows, as cells of the model's columns, find in the tables."""
    total = np.tile(np.atleast_1d(model.predictor_.intercept), (len(cells), 1))
    for table in tables.values():
        heads = [head for head in table.columns if head.startswith(("band", "level"))]
        names = [head.partition(" of ")[2] or next(iter(tables)) for head in heads]
        by_cell = table.groupby(heads, sort=False)["effect"].apply(np.array).to_dict()
        for k, row in enumerate(cells[names].itertuples(index=False)):
            total[k] += by_cell[tuple(row) if len(heads) > 1 else row[0]]
    return total


def cells_and_rounded(model, tables, columns):
    """Bands and levels of rows, and the rows with the value of each band, by hand."""
    cells, rounded = {}, []
    books = {book.name: book for book in model.predictor_.books}
    for column in columns:
        table = tables[column.name]
        if column.is_category:
            known = set(books[column.name].levels)
            names = [*column.levels, None]
            special = [f"({w})" if w in known else w for w in ("missing", "other")]
            cells[column.name] = [
                special[0] if name is None else name if name in known else special[1]
                for name in (names[code] for code in column.codes)
            ]
            rounded.append(column)
            continue
        bands = list(dict.fromkeys(table["band"]))
        value = table.groupby("band", sort=False)["value"].first().to_dict()
        cells[column.name] = [
            "missing" if np.isnan(x) else next(b for b in bands if b != "missing" and x in b)
            for x in column.values
        ]
        numbers = np.array([value[cell] for cell in cells[column.name]])
        rounded.append(replace(column, values=numbers))
    return pd.DataFrame(cells), rounded


def unusual(rows):
    X = rows[["age", "power", "town", "day"]].head(200).copy()
    X.loc[:3, "age"], X.loc[4, "town"], X.loc[5, "town"] = [-5.0, 200, np.nan, 17.99], "new", None
    X.loc[6, "day"] = pd.NaT
    return X


def by_name(tables):
    """Single columns first name their table, as heads of pairs name theirs."""
    return {
        name: table.rename(columns={h: f"{h} of {name}" for h in ("band", "level")})
        for name, table in tables.items()
    }


STEPS = {"age": 5, "power": [20.0, 50, 100], "day": 0.25}


@pytest.mark.parametrize(
    ("kind", "step"), [("rates", None), ("rates", STEPS), ("classes", {"age": 5, "power": 20})]
)
def test_a_tariff_by_hand_is_the_prediction_of_rounded_rows(models, rows, kind, step):
    model, X = models[kind], unusual(rows)
    tables = model.to_tables(step)
    assert list(tables) == model.term_names_
    columns = model.reader_.read(X, "test")
    cells, rounded = cells_and_rounded(model, tables, columns)
    by_hand = tariff(model, by_name(tables), cells)
    # Sums of up to 12 effects in another order.
    np.testing.assert_allclose(by_hand, model.predictor_.scores(rounded), atol=1e-12)


def test_effects_are_within_the_variation_of_the_curve_in_their_band(models):
    """So that a tariff is as close as the bands are narrow; here, of curves without steps."""
    model = models["plain"]
    for name, table in model.to_tables({"age": 4, "power": 10}).items():
        lookup = dict(zip(table["band"], table["effect"], strict=True))
        for band in list(table["band"])[1:-2]:
            inside = np.linspace(band.left, np.nextafter(band.right, -np.inf), 200)
            X = pd.DataFrame({"age": 40.0, "power": 50.0, name: inside}, index=range(200))
            curve = model.eval_terms(X)[:, model.term_names_.index(name)]
            assert curve.min() - 1e-12 <= lookup[band] <= curve.max() + 1e-12


def test_tables_of_steps_are_exact(models, rows):
    """Of whole numbers with bands of one, and of levels."""
    model = models["rates"]
    X = rows[["age", "power", "town", "day"]]
    tables = model.to_tables({"age": 1})
    terms = pd.DataFrame(model.eval_terms(X), columns=model.term_names_)
    age = {band.left: effect for band, effect in zip(*_columns(tables["age"], "band"))
           if band != "missing" and np.isfinite(band.left)}  # fmt: skip
    inside = X["age"] >= 19
    np.testing.assert_allclose(X["age"][inside].map(age), terms["age"][inside], atol=1e-12)
    town = dict(zip(*_columns(tables["town"], "level")))
    np.testing.assert_allclose(rows["town"].map(town), terms["town"], atol=1e-12)
    relativity = tables["town"]["relativity"]
    np.testing.assert_allclose(np.log(relativity), tables["town"]["effect"], atol=1e-12)


def _columns(table, head):
    return table[head], table["effect"]


def test_what_a_table_holds(models, rows):
    tables = models["rates"].to_tables()
    heads = ["effect", "relativity", "standard_error", "exposure"]
    assert list(tables["age"].columns) == ["band", *heads, "value"]
    assert list(tables["town"].columns) == ["level", *heads]
    pair = tables["age × town"]
    assert list(pair.columns) == ["band of age", "level of town", *heads, "value of age"]
    assert len(pair) == len(tables["age"]) * len(tables["town"])
    # Levels have these names, so that others are told apart.
    assert list(tables["town"]["level"])[-2:] == ["(missing)", "(other)"]
    assert {"missing", "other"} <= set(tables["town"]["level"][:-2])
    assert tables["age"]["band"].iloc[-1] == "missing"
    bands = list(tables["age"]["band"])[:-1]
    assert bands[0].left == -np.inf
    assert bands[-1].right == np.inf
    assert all(a.right == b.left for a, b in pairwise(bands))
    assert N_BANDS / 3 < len(bands) <= N_BANDS + 2  # of a round width up to 2.5 times as wide
    plain = models["plain"].to_tables()["age"]
    assert list(plain.columns) == ["band", "effect", "standard_error", "exposure", "value"]
    classes = models["classes"].to_tables()["town"]
    assert list(classes.columns) == ["level", "class", *heads]
    assert classes["class"].tolist()[:3] == ["0", "1", "2"]


def test_standard_errors_are_those_of_the_shape_functions(models):
    model = models["rates"]
    shape = next(s for s in model.shape_functions_ if s.name == "town")
    table = model.to_tables()["town"].set_index("level")
    np.testing.assert_allclose(table.loc[list(shape.levels), "effect"], shape.values, atol=1e-12)
    # The posterior keeps single precision.
    errors = table.loc[list(shape.levels), "standard_error"]
    np.testing.assert_allclose(errors, shape.errors, rtol=1e-4)


def test_exposures_add_up(models, rows):
    model, X = models["rates"], rows[["age", "power", "town", "day"]]
    for table in model.to_tables().values():
        np.testing.assert_allclose(table["exposure"].sum(), len(X), rtol=1e-9)
    tables = model.to_tables(10, X, exposure=rows["years"])
    bands = np.floor(X["age"] / 10)
    expected = rows["years"].groupby(bands).sum()
    np.testing.assert_allclose(tables["age"]["exposure"][:-1], expected, rtol=1e-12)
    by_town = rows["years"].groupby(X["town"]).sum()
    levels = tables["town"].set_index("level")["exposure"]
    np.testing.assert_allclose(levels[by_town.index], by_town, rtol=1e-12)
    np.testing.assert_allclose(levels[["(missing)", "(other)"]], 0)
    pair = tables["age × town"].pivot(index="band of age", columns="level of town")["exposure"]
    crossed = pd.crosstab(bands, X["town"], rows["years"], aggfunc="sum").fillna(0)
    np.testing.assert_allclose(pair[list(crossed)].to_numpy()[:-1], crossed, rtol=1e-12)
    # Training rows are known by bins of one value: ages in bands of ten are exact, too.
    known = model.to_tables(10)["age"]["exposure"][:-1]
    np.testing.assert_allclose(known, bands.value_counts().sort_index(), rtol=1e-12)


def test_a_large_factor_has_a_row_for_each_level():
    X = pd.DataFrame({"key": [f"k{k % 300}" for k in range(1500)], "x": np.linspace(0, 1, 1500)})
    model = km.AdditiveRegressor().fit(X, np.arange(1500) % 300 / 100)
    table = model.to_tables()["key"].set_index("level")
    assert len(table) == 302
    assert set(table["exposure"]) == {5.0, 0.0}
    single = pd.DataFrame({"key": ["k7"], "x": [0.5]})
    np.testing.assert_allclose(table.loc["k7", "effect"], model.eval_terms(single)[0, 0])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"step": 0}, r"step of column 'age' must be a positive width or a list of numbers"),
        ({"step": {"age": [1, np.nan]}}, "step of column 'age' must be a positive width"),
        ({"step": {"power": "wide"}}, "step of column 'power' must be a positive width"),
        ({"step": {"age": 1e-4}}, "is 0.0001, which makes 710000 bands: raise it"),
        ({"step": {"height": 1}}, "step names the column 'height'"),
        ({"step": {"town": 1}}, "step names 'town', a category"),
        ({"exposure": [1.0]}, "exposure= is that of rows: pass them as X="),
    ],
)
def test_other_arguments_are_refused(models, arguments, problem):
    assert MAX_BANDS < 710000
    with pytest.raises(ValueError, match=problem):
        models["rates"].to_tables(**arguments)


def test_what_has_no_tables_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        km.AdditiveRegressor().to_tables()
    with pytest.raises(ValueError, match="AdditiveRegressor instance is not fitted"):
        write_tables(km.AdditiveRegressor(), tmp_path / "tables.csv")
    with pytest.raises(TypeError, match="SplineMap has no tables of terms"):
        write_tables(km.SplineMap(), tmp_path / "tables.csv")


def test_a_csv_file_has_all_terms(models, tmp_path):
    model = models["rates"]
    write_tables(model, tmp_path / "tables.csv", step={"age": 10})
    reading = {"keep_default_na": False, "float_precision": "round_trip"}
    written = pd.read_csv(tmp_path / "tables.csv", **reading)
    terms = [name for name, _ in written.groupby("term", sort=False)]
    assert terms == ["(intercept)", *model.term_names_]
    assert float(written["effect"][0]) == pytest.approx(model.intercept_, rel=1e-15)
    tables = model.to_tables({"age": 10})
    for name in model.term_names_:
        part = written[written["term"] == name]
        np.testing.assert_allclose(part["effect"].astype(float), tables[name]["effect"], rtol=1e-15)
    pair = written[written["term"] == "age × town"]
    assert pair["band or level"].iloc[0] == "[-inf, 20.0)"
    assert r"Bonn\x07" in set(pair["second band or level"])


def test_an_excel_file_has_a_sheet_for_each_term(models, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    write_tables(models["rates"], tmp_path / "tables.XLSX")
    book = openpyxl.load_workbook(tmp_path / "tables.XLSX")
    assert book.sheetnames[:3] == ["0 (intercept)", "1 age", "2 power"]
    assert max(map(len, book.sheetnames)) <= 31
    cells = {cell.value: cell for row in book["3 town"].rows for cell in row[:1]}
    assert cells["=Ulm"].data_type == "s"  # text, no formula
    table = models["rates"].to_tables()["town"]
    effects = [row[1].value for row in book["3 town"].rows][1:]
    np.testing.assert_allclose(effects, table["effect"], rtol=1e-15)
