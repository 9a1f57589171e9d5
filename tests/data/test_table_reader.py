"""The reader of tables: one reading of the same data, whatever holds it, then and later."""

import io
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from table_columns import columns_of, learn

import kernelmaps as km
from kernelmaps._util.schema import SchemaError
from kernelmaps.data.table_files import CsvFile
from kernelmaps.data.table_reader import ColumnFormat, ReadingNotes, TableReader
from kernelmaps.exceptions import SuspectColumnWarning, UnreadableCellWarning

N = 200


def frame(seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "ride_id": [f"R{k}" for k in range(N)],
            "row": np.arange(N) + 1,
            "when": pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 10**6, N), "min"),
            "city": rng.choice(["Bern", "Köln", "New York, NY"], N),
            "area": rng.gamma(5, 20, N),
            "rooms": rng.integers(1, 7, N),
            "source": "app",
            "member": rng.random(N) > 0.5,
        }
    )
    X.loc[::10, "area"] = np.nan
    X["area"] = X["area"].round(3)  # pandas reads long decimals with an error in the last digit
    X.loc[[3, 5], "city"] = None
    return X


def csv_table(X, tmp_path):
    path = tmp_path / "rows.csv"
    X.to_csv(path, index=False)
    return CsvFile(path).table()


def parquet_table(X, tmp_path):
    X.to_parquet(tmp_path / "rows.parquet")
    return pa.parquet.read_table(tmp_path / "rows.parquet")


HOLDERS = {
    "pandas": lambda X, _: X,
    "nullable": lambda X, _: X.convert_dtypes(),
    "objects": lambda X, _: X.astype(object).where(X.notna(), None),
    "categories": lambda X, _: X.astype({"city": "category"}),
    "csv": csv_table,
    "csv by pandas": lambda X, _: pd.read_csv(io.StringIO(X.to_csv(index=False))),
    "parquet": parquet_table,
    "parquet with categories": lambda X, p: parquet_table(X.astype({"city": "category"}), p),
    "polars": lambda X, _: pytest.importorskip("polars").from_pandas(X),
}


def assert_equal(found, expected):
    assert [column.name for column in found] == [column.name for column in expected]
    for column, other in zip(found, expected, strict=True):
        assert column.levels == other.levels, column.name
        np.testing.assert_array_equal(column.codes, other.codes)
        np.testing.assert_array_equal(column.values, other.values)
        assert getattr(column.values, "dtype", None) == getattr(other.values, "dtype", None)


@pytest.mark.parametrize("holder", HOLDERS)
def test_the_same_data_are_the_same_columns_bit_for_bit(holder, tmp_path, seed):
    X = frame(seed)
    reader, columns = TableReader.learn_and_read([X], "Model")
    other, actual = TableReader.learn_and_read([HOLDERS[holder](X, tmp_path)], "Model")
    assert_equal(actual, columns)
    assert other.feature_names == reader.feature_names
    assert other.left_out == reader.left_out == ["ride_id", "row", "source"]
    later = frame(seed + 1)
    assert_equal(reader.read(HOLDERS[holder](later, tmp_path), "Model"), other.read(later, "Model"))


def test_what_is_read():
    X = frame()
    reader, columns = TableReader.learn_and_read([X], "Model")
    parts = ["when", "when (month)", "when (weekday)", "when (hour)"]
    names = [*parts, "city", "area", "rooms", "member"]
    assert reader.feature_names == [column.name for column in columns] == names
    assert reader.periods == {parts[1]: 12.0, parts[3]: 24.0}
    assert reader.trends == {"when"}
    actual = {column.name: column for column in columns}
    np.testing.assert_array_equal(actual["area"].values, X["area"])
    np.testing.assert_array_equal(actual["when (weekday)"].codes, X["when"].dt.day_of_week)
    assert actual["when (weekday)"].levels == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    city = actual["city"]
    named = [city.levels[k] if k >= 0 else None for k in city.codes]
    assert named == [None if pd.isna(item) else item for item in X["city"]]
    assert city.levels == list(dict.fromkeys(item for item in named if item))
    assert set(actual["member"].levels) == {"True", "False"}
    assert reader.remarks == [
        "column 'ride_id' left out: its values are all different",
        "column 'row' left out: its values are all different, and its name is that of an ID",
        "column 'source' left out: all its values are the same",
    ]
    with pytest.warns(SuspectColumnWarning, match="Model: column 'ride_id' left out.*terms="):
        reader.warn("Model")


def test_arrays_have_no_names_that_could_tell_an_id(seed):
    X = np.random.default_rng(seed).normal(size=(50, 3))
    X[:, 1] = np.arange(50)
    X[3, 0] = np.nan
    reader, columns = TableReader.learn_and_read([X], "Model")
    assert reader.feature_names == ["x0", "x1", "x2"]
    for j, column in enumerate(columns):
        np.testing.assert_array_equal(column.values, X[:, j])
    X[:, 2] = 7.0
    assert learn(X, "Model").left_out == ["x2"]
    objects = np.array([[1.5, "a"], [None, "b"], [2, "a"]], dtype=object)
    number, text = TableReader.learn_and_read([objects], "Model")[1]
    np.testing.assert_array_equal(number.values, [1.5, np.nan, 2])
    assert (text.levels, text.codes.tolist()) == (["a", "b"], [0, 1, 0])


@pytest.mark.parametrize("terms", [{"t": "category"}, {"t": "spline"}])
def test_terms_settle_what_a_doubtful_column_is(terms):
    X = pd.DataFrame({"t": ["12:30", "9:05"], "other": [1.5, 2.5]})
    assert not [said for said in learn(X, "M", None, terms).remarks if "read as" in said]


def test_columns_without_a_name_that_number_the_rows_are_left_out(tmp_path, seed):
    """A file, pandas and pyarrow name them alike; an index in Parquet is none of the features."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"area": rng.normal(size=N)}, index=rng.permutation(10 * N)[:N])
    path = tmp_path / "rows.csv"
    X.to_csv(path)
    for table in (CsvFile(path).table(), pd.read_csv(path), pyarrow.csv.read_csv(path)):
        reader = learn(table, "Model")
        assert (reader.names, reader.left_out) == (["Unnamed: 0", "area"], ["Unnamed: 0"])
    assert learn(parquet_table(X, tmp_path), "M").left_out == ["__index_level_0__"]


@pytest.mark.parametrize("holder", HOLDERS)
def test_none_is_a_missing_level_whatever_holds_it(holder, tmp_path):
    for cells in (["None", "a", "b"], ["none", "a", "b"], [None, "a", "b"]):
        X = HOLDERS[holder](pd.DataFrame({"city": cells}), tmp_path)
        (column,) = TableReader.learn_and_read([X], "Model")[1]
        assert (column.levels, column.codes.tolist()) == (["a", "b"], [-1, 0, 1])


def test_levels_have_one_name_however_they_are_written():
    """3 and 3.0, 2.50 and 2.5, TRUE and True; whole numbers beyond the floats stay apart."""
    cases = [
        ([3, 4, 3], [3.0, 4.0, 3.0], ["3", "4", "3"], ["3.0", "4", "3.00"]),
        ([2.5, 0.1, 2.5], ["2.50", "0.1", "2.5"]),
        ([True, False, True], ["TRUE", "false", "True"]),
        ([2**60 + 1, 2**60 + 2, 2**60 + 1], [str(2**60 + 1), str(2**60 + 2), str(2**60 + 1)]),
    ]
    for first, *others in cases:
        reader, expected = TableReader.learn_and_read([pd.DataFrame({"a": first})], "M", ["a"])
        assert len(expected[0].levels) == 2
        for other in others:
            assert_equal(reader.read(pd.DataFrame({"a": other}), "M"), expected)
            assert_equal(
                TableReader.learn_and_read([pa.table({"a": other})], "M", [0])[1], expected
            )


def test_ordered_categories_keep_their_order():
    sizes = pd.Categorical(["mid", "low", None, "top"], ["low", "mid", "top", "huge"], ordered=True)
    (column,) = TableReader.learn_and_read([pd.DataFrame({"a": sizes})], "Model")[1]
    assert (column.levels, column.codes.tolist()) == (["low", "mid", "top"], [1, 0, -1, 2])


@pytest.mark.parametrize("kind", ["timedelta", "decimal", "time", "period"])
def test_other_types_of_pandas_and_arrow(kind):
    if kind == "timedelta":
        X, expected = pd.DataFrame({"a": pd.to_timedelta([30, 90], "min")}), [0.5, 1.5]
    elif kind == "decimal":
        X = pa.table({"a": pa.array([1.5, 2.25]).cast(pa.decimal128(5, 2))})
        expected = [1.5, 2.25]
    elif kind == "time":
        X, expected = pa.table({"a": pa.array([1800, 36000], pa.time32("s"))}), [0.5, 10.0]
    else:
        X, expected = (
            pd.DataFrame({"a": pd.period_range("2020", periods=2, freq="Y")}),
            [2020, 2021],
        )
    np.testing.assert_array_equal(TableReader.learn_and_read([X], "M")[1][0].values, expected)


def test_durations_of_a_file_are_those_of_the_frame(tmp_path, seed):
    """Negative ones and parts of a second included; neither is called a time of day."""
    seconds = np.random.default_rng(seed).integers(-300_000, 300_000, 200) + 0.25
    X = pd.DataFrame({"a": pd.to_timedelta(seconds, "s")})
    (typed,) = TableReader.learn_and_read([X], "Model")[1]
    hours = X["a"].dt.total_seconds() / 3600
    np.testing.assert_allclose(typed.values, hours, rtol=0, atol=1e-12)
    reader, text = TableReader.learn_and_read([csv_table(X, tmp_path)], "Model")
    assert_equal(text, [typed])
    assert reader.remarks == ["column 'a' holds numbers in hours"]
    (days,) = reader.read(pd.DataFrame({"a": ["2 days", "-1 day, 23:00:00", ""]}), "Model")
    np.testing.assert_array_equal(days.values, [48.0, -1.0, np.nan])


def test_numbers_among_the_levels_of_text_are_found_by_their_text():
    """A chunk that holds numbers alone has another type, and the same levels."""
    X = pd.DataFrame({"a": ["1", "2.5", "x", "x"]})
    reader = learn(X, "Model")
    for numbers in ([1, 1], [1.0, np.nan], [2.5, 1.0]):
        for kind in (None, object, str):
            (column,) = reader.read(pd.DataFrame({"a": pd.Series(numbers, dtype=kind)}), "Model")
            expected = [None if value != value else f"{value:g}" for value in numbers]
            assert named(column) == expected
    for levels in (["01", "10", "x"], ["w", "x", "y"]):  # numbers cannot be meant
        reader = learn(pd.DataFrame({"a": levels}), "Model")
        with pytest.raises(ValueError, match="'a' held categories in fit, and now holds numbers"):
            reader.read(pd.DataFrame({"a": [1, 10]}), "Model")


def test_chunks_are_read_as_one_table(seed):
    """Types may differ between chunks, as those of a file that pandas reads in pieces."""
    X = frame(seed)
    reader, columns = TableReader.learn_and_read([X], "Model")
    chunks = [
        X.iloc[:50],
        X.iloc[50:130].astype({"city": "category", "rooms": float}),
        X.iloc[130:],
    ]
    other, actual = TableReader.learn_and_read(chunks, "Model")
    assert other == reader
    assert_equal(actual, columns)
    mixed = [pd.DataFrame({"a": [1, 2.5]}), pd.DataFrame({"a": ["3", "x"]})]
    assert TableReader.learn_and_read(mixed, "Model")[1][0].levels == ["1", "2.5", "3", "x"]
    with pytest.raises(ValueError, match="the chunks of X have different columns"):
        TableReader.learn_and_read([X, X.iloc[:, ::-1]], "Model")


# ---- what terms ask for -------------------------------------------------------------------------


def names_of(terms, categorical=None, X=None):
    return learn(frame() if X is None else X, "Model", categorical, terms).feature_names


def test_columns_that_terms_name_are_not_left_out():
    assert "row" in names_of({"row": "auto"})
    assert "row" in names_of([("row", "area")])
    assert "row" in names_of([1])
    assert "ride_id" in names_of({"ride_id": "category"})
    assert "ride_id" not in names_of({"ride_id": None})
    term = SimpleNamespace(column="row", kind="linear")
    assert "row" in names_of([term])
    assert "row" in names_of({"row": term})


@pytest.mark.parametrize(
    ("terms", "parts"),
    [
        (None, ["when", "when (month)", "when (weekday)", "when (hour)"]),
        ({"when": "auto"}, ["when", "when (month)", "when (weekday)", "when (hour)"]),
        ({"when": "trend"}, ["when"]),
        ({"when": "linear"}, ["when", "when (month)", "when (weekday)", "when (hour)"]),
        (
            {"when": SimpleNamespace(column="when", kind="linear")},
            ["when", "when (month)", "when (weekday)", "when (hour)"],
        ),
        ({"when": "trend", "when (month)": "auto"}, ["when", "when (month)"]),
        ({"when": None}, ["when"]),
        ({"when": "trend", "when (hour)": "periodic"}, ["when", "when (hour)"]),
        (["when (weekday)", "area"], ["when", "when (weekday)"]),
        (["when", "area"], ["when"]),
    ],
)
def test_parts_of_dates_are_chosen_by_terms(terms, parts):
    assert [name for name in names_of(terms) if name.startswith("when")] == parts


def test_a_part_that_does_not_vary_enough_can_be_asked_for():
    X = pd.DataFrame({"d": pd.date_range("2024-01-01", periods=40)})
    assert names_of(None, X=X) == ["d", "d (weekday)"]
    assert names_of({"d (month)": "periodic"}, X=X) == ["d", "d (month)", "d (weekday)"]


def test_terms_decide_what_a_column_holds():
    X = pd.DataFrame({"zip": ["01067", "10115", "01067"], "k": [1, 2, 1]})
    zip_, k = TableReader.learn_and_read([X], "Model", None, {"zip": "linear", "k": "category"})[1]
    np.testing.assert_array_equal(zip_.values, [1067, 10115, 1067])
    assert k.levels == ["1", "2"]


def test_positions_are_those_of_the_table():
    reader = learn(frame(), "Model")
    assert reader.position("when (hour)", "Model", "smoothing") == 3
    assert reader.position(3, "Model", "smoothing") == reader.position("city", "Model", "") == 4
    with pytest.raises(ValueError, match="smoothing names the column 'row', which is left out"):
        reader.position("row", "Model", "smoothing")
    with pytest.raises(ValueError, match="Model: smoothing names the column 'town'"):
        reader.position("town", "Model", "smoothing")
    with pytest.raises(ValueError, match="Model: terms names the column 'town'"):
        names_of({"town": "linear"})


# ---- later tables -------------------------------------------------------------------------------


@pytest.fixture
def reader():
    return learn(frame(), "Model")


def test_columns_that_were_left_out_need_not_be_there(reader):
    later = frame(1)
    expected = reader.read(later, "Model")
    assert_equal(reader.read(later.drop(columns=reader.left_out), "Model"), expected)


def test_new_columns_are_ignored_with_one_warning(reader):
    later = frame(1)
    with pytest.warns(UserWarning, match="columns that were not there in fit.*'new', 'other'") as w:
        actual = reader.read(later.assign(new=1, other="x"), "Model")
    assert len(w) == 1
    assert_equal(actual, reader.read(later, "Model"))


def test_columns_are_found_by_name_and_missing_ones_are_named_as_in_scikit_learn(reader):
    later = frame(1)
    begin = "The feature names should match those that were passed during fit.\n"
    match = f"{begin}Feature names seen at fit time, yet now missing:\n- area\n- city\n"
    with pytest.raises(ValueError, match=match):
        reader.read(later.drop(columns=["city", "area"]), "Model")
    unseen = f"{begin}Feature names unseen at fit time:\n- town\nFeature names seen at fit time"
    with pytest.raises(ValueError, match=unseen):
        reader.read(later.rename(columns={"city": "town"}), "Model")
    assert_equal(reader.read(later.iloc[:, ::-1], "Model"), reader.read(later, "Model"))


def test_arrays_and_frames_are_told_apart_as_scikit_learn_does(seed):
    X = np.random.default_rng(seed).normal(size=(30, 2))
    named = pd.DataFrame(X, columns=["a", "b"])
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Model was fitt"):
        learn(named, "Model").read(X, "Model")
    with pytest.warns(UserWarning, match="X has feature names, but Model was fitted without"):
        learn(X, "Model").read(named, "Model")
    with pytest.raises(ValueError, match="X has 1 features, but Model is expecting 2 features"):
        learn(X, "Model").read(X[:, :1], "Model")
    learn(pd.DataFrame(X), "Model").read(X, "Model")  # its names are not strings


@pytest.mark.parametrize(
    ("column", "cells", "match"),
    [
        ("area", "large", "'area' held numbers in fit, and now holds cells such as 'large'"),
        ("area", "1,5", "'area' held numbers in fit, and now holds cells such as '1,5'"),
        ("when", "soon", "'when' held dates in fit, and now holds cells such as 'soon'"),
        ("when", 3.5, "'when' held dates in fit, and now holds numbers"),
        ("rooms", pd.Timestamp("2024-01-01"), "'rooms' held numbers in fit, and now holds dates"),
    ],
)
def test_a_column_of_another_kind_is_refused_by_name(reader, column, cells, match):
    later = frame(1).astype({column: object})
    later[column] = cells
    with pytest.raises(ValueError, match=f"Model: column {match}"):
        reader.read(later, "Model")


def test_text_that_reads_as_learned_is_welcome(reader):
    later = frame(1)
    expected = reader.read(later, "Model")
    text = later.astype(str).where(later.notna(), None)
    assert_equal(reader.read(text, "Model"), expected)


def test_a_few_cells_that_cannot_be_read_are_missing_and_named(reader):
    later = frame(1).astype({"area": object})
    later.loc[2, "area"] = "huge"
    with pytest.warns(
        UnreadableCellWarning, match="'area' holds numbers: 'huge' in 1 row counted as missing"
    ):
        actual = {column.name: column for column in reader.read(later, "Model")}
    assert np.isnan(actual["area"].values[2])
    assert actual["area"].values[1] == later["area"][1]
    learned = learn(later, "Model")
    remark = "column 'area' holds numbers: 'huge' in 1 row counted as missing"
    assert f"{remark} (to name a missing value: na_values='huge')" in learned.remarks
    with (
        pytest.warns(SuspectColumnWarning, match="'ride_id' left out"),
        pytest.warns(UnreadableCellWarning, match="'huge' in 1 row counted as missing"),
    ):
        learned.warn("Model")


def named(column):
    return [column.levels[k] if k >= 0 else None for k in column.codes]


def test_blocks_are_read_as_the_whole_table_is(reader, tmp_path, seed):
    later = frame(seed).astype({"area": object})
    later.loc[[150, 151], "area"] = "huge"
    later["new"] = 1
    table = csv_table(later, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = reader.read(table, "Model")
    notes = ReadingNotes()
    for begin in range(0, N, 30):
        part = reader.read(table.slice(begin, 30), "Model", notes=notes)
        for column, all_rows in zip(part, whole, strict=True):
            if column.codes is None:
                np.testing.assert_array_equal(column.values, all_rows.values[begin : begin + 30])
            else:
                names = [
                    [c.levels[k] if k >= 0 else "" for k in c.codes] for c in (column, all_rows)
                ]
                assert names[0] == names[1][begin : begin + 30]
    assert notes.unexpected == ["new"]
    (remark,) = notes.remarks
    assert remark.startswith("column 'area' holds numbers: 'huge' in 2 rows counted as missing")
    with pytest.warns() as warned:
        notes.warn("Model")
    assert [item.category for item in warned] == [UserWarning, UnreadableCellWarning]


def test_columns_of_gaps_alone_may_come_later(reader):
    for gap in (None, np.nan, pd.NaT, ""):
        later = frame(1).astype(object)
        later[["when", "area", "city"]] = gap
        actual = {column.name: column for column in reader.read(later, "Model")}
        assert np.isnan(actual["when"].values).all()
        assert np.isnan(actual["when (hour)"].values).all()
        assert np.isnan(actual["area"].values).all()
        assert (actual["city"].codes == -1).all()


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        (pd.DataFrame({"a": [[1], [2]]}), TypeError, "'a' holds values that are neither numbers"),
        (pd.DataFrame({"a": [{"b": 1}, "x"]}), TypeError, "'a' holds values that are neither"),
        (pd.DataFrame({"a": [1j, 2j]}), ValueError, "'a' holds complex numbers"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "2 columns named 'a'"),
        (pd.DataFrame({"a": [1, 1]}), ValueError, "no column to learn from: column 'a' left out"),
        (np.zeros(3), ValueError, "two dimensions"),
        (pd.DataFrame({"a": [0.0, np.inf]}), ValueError, r"'a' of .* contains infinity \(row 1\)"),
        (pd.DataFrame({"a": ["0.5", "1e999"]}), ValueError, r"'a' of .* infinity \(row 1\)"),
        (
            frame().assign(**{"when (hour)": np.arange(N) % 7}),
            ValueError,
            r"'when \(hour\)' has the name of a part of a date",
        ),
    ],
)
def test_tables_that_cannot_be_read(X, error, match):
    with pytest.raises(error, match=match):
        learn(X, "Model")


# ---- what is saved ------------------------------------------------------------------------------


def test_ids_beyond_the_integers_of_a_float_and_empty_columns_are_left_out():
    """Of numbers near 10¹⁸ a float keeps one in 128, so that they no longer differ."""
    X = frame().assign(tweet_id=10**18 + 7 * np.arange(len(frame())), comment=np.nan)
    remarks = learn(X, "Model").remarks
    assert "column 'tweet_id' left out: its values are all different, and its name" in str(remarks)
    assert "column 'comment' left out: all its values are missing" in remarks


def test_infinity_in_text_says_how_to_call_it_missing():
    X = frame().assign(area=["Inf", *map(str, frame()["area"][1:])])
    with pytest.raises(ValueError, match=r"infinity \(row 0\).*a missing value: na_values='Inf'"):
        learn(X, "Model")


def test_a_reader_survives_pickling_and_says_nothing_of_the_rows(reader):
    X = frame().astype({"area": object})
    X.loc[2, "area"] = "huge"
    learned = learn(X, "Model")
    again = pickle.loads(pickle.dumps(learned))
    assert again == learned
    assert again.remarks == learned.remarks[:-1]
    assert b"huge" not in pickle.dumps(learned)
    assert_equal(again.read(frame(1), "Model"), learned.read(frame(1), "Model"))


@pytest.mark.parametrize(
    ("entries", "match"),
    [
        ({"kind": "word"}, "'kind' must be one of"),
        ({"form": "1;234"}, "unknown format '1;234'"),
        ({"kind": "date"}, "unknown format"),
        ({"parts": ("second",)}, r"parts.*must be one of"),
        ({"parts": ["hour"]}, r"parts.*must be a tuple"),
        ({"unit": 3}, "'unit' must be a string"),
    ],
)
def test_formats_of_a_file_are_checked(entries, match):
    values = {"name": "a", "kind": "number", "form": "plain", **entries}

    def restore():
        ColumnFormat._state.check(values, "file")
        ColumnFormat(**values)._check_state()

    with pytest.raises(SchemaError, match=match):
        restore()


def test_readers_of_a_file_are_checked():
    a = ColumnFormat("a", "number", "plain")
    for columns, match in (([a, a], "same name"), ([ColumnFormat("a", "left out")], "no column")):
        with pytest.raises(SchemaError, match=match):
            TableReader(columns, True)._check_state()


def test_numbers_that_count_the_rows_are_an_id_by_their_name_alone(seed):
    """Under another name they may be a time."""
    t = np.arange(60)
    frame = pd.DataFrame({"t": t, "year": t + 1, "row_id": t, "x": t % 7})
    reader, _ = TableReader.learn_and_read([frame], "Model")
    assert reader.feature_names == ["t", "year", "x"]


@pytest.mark.parametrize("cells", [[1, 0, 1], [1.0, 0.0, 1.0], ["1", "0", "1"]])
def test_booleans_may_come_as_numbers(cells):
    frame = pd.DataFrame({"b": [True, False, True] * 9, "x": np.arange(27.0) % 5})
    reader, _ = TableReader.learn_and_read([frame], "Model")
    later = reader.read(pd.DataFrame({"b": cells, "x": [1.0, 2.0, 3.0]}), "Model")[0]
    named = [later.levels[k] for k in later.codes]
    assert named == ["True", "False", "True"]
    with pytest.raises(ValueError, match="'b' held categories in fit, and now holds numbers other"):
        reader.read(pd.DataFrame({"b": [2, 1, 0], "x": [1.0, 2.0, 3.0]}), "Model")


def test_why_cells_are_no_numbers_is_said_of_columns_that_are_left_out():
    cells = [f"{k}.5 {'kg' if k % 2 else 'lb'}" for k in range(60)]
    frame = pd.DataFrame({"v": cells, "x": np.arange(60.0) % 7})
    reader, _ = TableReader.learn_and_read([frame], "Model")
    assert reader.left_out == ["v"]
    assert any("numbers in several units" in remark for remark in reader.remarks)


def test_a_null_among_declared_levels_is_a_missing_value():
    indices, levels = pa.array([0, 1, 2, None, 2, 0]), pa.array(["b", None, "a"])
    table = pa.table({"c": pa.DictionaryArray.from_arrays(indices, levels), "x": np.arange(6.0)})
    (column, _) = TableReader.learn_and_read([table], "T")[1]
    assert column.levels == ["b", "a"]
    assert column.codes.tolist() == [0, -1, 1, -1, 1, 0]


@pytest.mark.parametrize(
    ("levels", "form"),
    [
        (["-inf", "Infinity"], "number"),
        (["inf", "none", "low"], "text"),
        (["TRUE", "false", "NA"], "boolean"),
        (["1", "2.0", "?"], "number"),
        (["01", "2"], "text"),
        (["1", "many"], "mixed"),
        (["low", "high"], "text"),
        (["?", "NA"], "text"),
    ],
)
def test_how_levels_are_written(levels, form):
    X = pd.DataFrame({"c": pd.Categorical(levels * 5), "x": np.arange(5.0 * len(levels))})
    columns = learn(X, "T", terms={"c": "category"}).columns
    assert (columns[0].kind, columns[0].form) == ("category", form)


# ---- frames and arrays --------------------------------------------------------------------------


@pytest.mark.parametrize("chosen", [["b"], [1], [-1], [False, True]])
def test_numbers_can_be_categories(chosen):
    a, b = columns_of(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 2.5]}), chosen)
    assert not a.is_category
    assert named(b) == ["3", "2.5"]


@pytest.mark.parametrize("chosen", [["nothing"], [7], "b", 3])
def test_unknown_categorical_columns_are_refused(chosen):
    with pytest.raises(ValueError, match="Model: categorical_features"):
        columns_of(np.zeros((2, 2)), chosen)


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_levels_of_float32_have_the_name_that_they_print_as(make):
    numbers = np.array([0.1, 2.5, 0.1], dtype=np.float32)
    assert named(columns_of(make({"a": numbers}), ["a"])[0]) == ["0.1", "2.5", "0.1"]
    categories = pd.DataFrame({"a": pd.Categorical(numbers)})
    assert named(columns_of(categories)[0]) == ["0.1", "2.5", "0.1"]


def test_dictionaries_may_have_unsigned_indices_and_levels_of_one_name():
    indices = pa.array([0, None, 1, 2], type=pa.uint32())
    table = pa.table({"color": pa.DictionaryArray.from_arrays(indices, ["red", "blue", " red"])})
    (column,) = columns_of(table)
    assert (named(column), column.levels) == (["red", None, "blue", "red"], ["red", "blue"])
    values = pd.Categorical(["1", 1, None, "2"], categories=["1", 1, "2"])
    assert named(columns_of(pd.DataFrame({"a": values}))[0]) == ["1", "1", None, "2"]


def test_chunks_of_ordered_categories_keep_the_order():
    sizes = pd.Categorical(["top", "mid", None, "low"], ["low", "mid", "top"], ordered=True)
    chunks = [pd.DataFrame({"a": sizes[:2]}), pd.DataFrame({"a": sizes[2:]})]
    (column,) = TableReader.learn_and_read(chunks, "Model")[1]
    assert (column.levels, column.codes.tolist()) == (["low", "mid", "top"], [2, 1, -1, 0])


@pytest.mark.parametrize("n", [60, 6000])  # all rows, and more than a sample
def test_collinear_columns_are_named(seed, n):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    g = rng.choice(["u", "v", "w"], n)
    almost = np.where(np.arange(n) == 1, a + 1, a)  # in all rows but one
    X = pd.DataFrame(
        {"a": a, "b": b, "falling": np.exp(-a), "sum": a + 2 * b + 3, "almost": almost}
    )
    X = X.assign(
        g=g,
        same=pd.Series(g).map({"u": "z", "v": "x", "w": "y"}),
        flag=(g == "u") * 1.0,
        no=g != "u",
    )
    X = X.assign(v=(g == "v") * 1.0, w=(g == "w") * 1.0)
    doubts = learn(X, terms={"b": None}).notes.doubts
    assert set(doubts) == {"falling", "same", "no", "w"}  # b has no term
    assert doubts["falling"][0].startswith("repeats 'a'")
    assert doubts["w"][0].startswith("is linear in 'flag', 'v',")
    assert learn(X).notes.doubts["sum"][0].startswith("is linear in 'a', 'b',")


def test_a_number_of_the_rows_without_an_effect_is_an_id(seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=200)
    X = pd.DataFrame({"case": rng.permutation(200) + 1000, "x": y + rng.normal(size=200)})
    with pytest.warns(SuspectColumnWarning, match="'case' left out: its values number the rows"):
        model = km.AdditiveRegressor().fit(X, y)
    assert model.term_names_ == ["x"]
    assert [column.name for column in model.reader_.columns if column.is_id] == ["case"]
    np.testing.assert_array_equal(model.predict(X), model.predict(X[["x"]]))
    asked = km.AdditiveRegressor(terms={"case": "spline"}).fit(X, y)
    in_time = km.AdditiveRegressor().fit(X, y + 0.05 * X["case"])
    assert asked.term_names_ == in_time.term_names_ == ["case", "x"]
