"""Cells that mean something else than they seem to: read right, refused, or warned of by name."""

import os
import warnings
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from table_columns import learn

import kernelmaps as km
from kernelmaps.data.reading import read_rows
from kernelmaps.data.table_files import CsvFile
from kernelmaps.data.table_reader import ColumnKindError, TableReader
from kernelmaps.data.targets import target_values
from kernelmaps.data.text_cells import Text
from kernelmaps.exceptions import SuspectColumnWarning


def learned(cells):
    """The reader of one column, what it reads, and what it warns of."""
    frame = pd.DataFrame({"v": cells, "x": np.arange(len(cells)) * 1.5})
    reader, columns = TableReader.learn_and_read([frame], "Model")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        reader.warn("Model")
    return reader, columns[0], " ".join(str(item.message) for item in warned)


def target(cells):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        cells = cells if isinstance(cells, np.ndarray) else Text(pa.array(cells))
        values, _ = target_values(cells, "v", lambda row: f"row {row}")
    return values, " ".join(str(item.message) for item in warned)


CERTAIN = [
    (["0,125", "1,250", "12,375", "3"], [0.125, 1.25, 12.375, 3]),
    (["-0,125", "1,250", "1.250,5", "3"], [-0.125, 1.25, 1250.5, 3]),
    (["1,250", "1,250.5", "3", "4"], [1250, 1250.5, 3, 4]),
    (["1,5e3", "2,5", "3", "1,25E-1"], [1500, 2.5, 3, 0.125]),
    (["2e3", "1,250", "3,000.5", "7"], [2000, 1250, 3000.5, 7]),
    (["1 234,567", "2", "3", "4"], [1234.567, 2, 3, 4]),
    (["12,34,567", "1,23,456", "7", "8"], [1234567, 123456, 7, 8]),
    (["934", "15.161", "1.02", "0"], [934, 15.161, 1.02, 0]),
    (["34", "15.161", "-0.020", "0"], [34, 15.161, -0.02, 0]),
]
DOUBTFUL = [
    (["1,250", "2,500", "3", "4"], [1250, 2500, 3, 4], "whose comma is read as separating"),
    (["1.250", "2.500", "3", "4"], [1.25, 2.5, 3, 4], "whose dot is read as a decimal mark"),
    (["950", "1.2K", "3K", "1.1M"], [950, 1200, 3000, 1.1e6], "'1.2K', read as 1200"),
    (["1,2 Mio", "800", "1 Mrd.", "7"], [1.2e6, 800, 1e9, 7], "'1,2 Mio', read as 1200000"),
    (["$1.5m", "$800k", "$2 bn", "$7"], [1.5e6, 8e5, 2e9, 7], "'$1.5m', read as 1500000"),
    (["5%", "0.05", "3%", "0"], [5, 0.05, 3, 0], "'0.05' without the unit '%'"),
    (["12a", "12", "14a", "0"], [12, 12, 14, 0], "'12' without the unit 'a'"),
    (["01.2024", "12.2023", "02.2024", "03.2024"], None, "write 2024-01 for a date"),
    (["20240131", "20231231", "20240229", "19991231"], None, "write 2024-01-31 for a date"),
    (["202401", "202312", "202402", "199912"], None, "write 2024-01 for a date"),
    (["31.12", "01.05", "15.06", "3.10"], None, "write a date with its year"),
    (["2024.01", "2023.12", "2024.1"], None, "write 2024-01 for a date"),
    (["20240131.0", "20231231.0", "20240229"], None, "write 2024-01-31 for a date"),
    (["20240131 ", " 20231231", "20240229"], None, "write 2024-01-31 for a date"),
    (["8:30", "9:15", "10:45"], [8.5, 9.25, 10.75], "holds times, read as hours"),
]


@pytest.mark.parametrize(("cells", "values"), CERTAIN)
def test_numbers_that_one_cell_decides(cells, values):
    _, column, warned = learned(cells)
    np.testing.assert_array_equal(column.values, values)
    assert warned == ""
    actual, warned = target(cells)
    np.testing.assert_array_equal(actual, values)
    assert warned == ""


@pytest.mark.parametrize(("cells", "values", "doubt"), DOUBTFUL)
def test_numbers_that_nothing_decides_are_warned_of(cells, values, doubt):
    """Features and targets alike; what was decided in fit holds for other cells."""
    values = list(map(float, cells)) if values is None else values
    reader, column, warned = learned(cells)
    np.testing.assert_array_equal(column.values, values)
    assert "column 'v' holds " in warned
    assert doubt in warned
    actual, warned = target(cells)
    np.testing.assert_array_equal(actual, values)
    assert "the target 'v' holds" in warned
    assert doubt in warned
    for k, value in enumerate(values):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = reader.read(pd.DataFrame({"v": [cells[k]], "x": [0.0]}), "Model")
        assert alone[0].values == value


@pytest.mark.parametrize(
    "cells",
    [["--5", "3"], ["+-5", "3"], ["005 880 596", "123 456"], ["5½", "6½"], ["9am", "12am"],
     ["3万", "4"], ["5±", "6±"], ["1e3K", "2K"], ["5²", "6²"]],
)  # fmt: skip
def test_what_is_no_number_stays_text(cells):
    reader, column, _ = learned(cells)
    assert reader.columns[0].kind == "category"
    assert column.levels == cells
    assert target(cells)[0].tolist() == cells


def test_numbers_without_a_unit_are_warned_of_in_later_tables():
    reader, _, warned = learned(["5 kg", "7 kg", "8kg"])
    assert warned == ""
    later = pd.DataFrame({"v": ["5 kg", "3"], "x": [1.0, 2.0]})
    with pytest.warns(SuspectColumnWarning, match="column 'v' holds '3' without the unit 'kg'"):
        reader.read(later, "Model")


@pytest.mark.parametrize(
    ("values", "doubt"),
    [
        ([20240131, 20231231], "write 2024-01-31 for a date"),
        ([202401.0, np.nan, 202312.0], "write 2024-01 for a date"),
        ([1.2024, 12.2023], "write 2024-01 for a date"),
        ([2024.1, 2023.12], "write 2024-01 for a date"),
        ([31.12, 1.05, 3.1], "write a date with its year"),
        ([20240131, 20231232], ""),
        ([1.1, 2.1, 3.1], ""),
        ([2023, 2024], ""),
    ],
)
def test_numbers_with_a_type_that_look_like_dates_are_warned_of(values, doubt):
    """Features and targets alike."""
    for warned in (learned(values)[2], target(np.array(values, float))[1]):
        assert doubt in warned
        assert bool(doubt) == bool(warned)


@pytest.mark.parametrize("gap", ["-", "?", "n/a", "", "soon"])
@pytest.mark.parametrize(
    "cells", [[f"2024{m:02}{d:02}" for m in (1, 12) for d in range(1, 28)],
              [f"{d}.{m:02}" for m in (1, 12) for d in range(1, 28)]]
)  # fmt: skip
def test_gaps_do_not_hide_that_numbers_look_like_dates(cells, gap):
    assert "for a date" in learned([*cells, gap])[2]


@pytest.mark.parametrize(
    ("cells", "later", "doubt"),
    [
        (["5%", "7%"], [0.05, 0.07], "held numbers in % in fit, and now holds numbers without"),
        (["8:30", "9:15"], [830.0, 915.0], "held numbers in hours in fit, and now holds numbers"),
        ([290.0, 310.0], ["300K", "310K"], "holds cells such as '300K', read as 300000"),
        ([290.0, 310.0], ["300", "310"], ""),
    ],
)
def test_later_tables_in_another_unit_are_warned_of(cells, later, doubt):
    reader, _, _ = learned(cells)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        reader.read(pd.DataFrame({"v": later, "x": 0.0}), "Model")
    assert [doubt in str(item.message) for item in warned] == [True] * bool(doubt)


def test_features_of_linear_models_follow_the_same_rule(tmp_path):
    for cells, match in (
        (("1.250", "2.500"), "column 'a' holds cells such as '1.250', whose dot"),
        (("20240131", "20240201"), "column 'a' holds cells such as '20240131'"),
        (("01067", "10115"), "column 'a' holds codes with leading zeros"),
    ):
        (tmp_path / "rows.csv").write_text("a,y\n" + "".join(f"{cell},1\n" for cell in cells))
        with pytest.warns(SuspectColumnWarning, match=match):
            read_rows(tmp_path / "rows.csv")


# ---- dates --------------------------------------------------------------------------------------


def test_text_given_to_a_model_of_typed_dates_is_read_cell_by_cell():
    """What 05/04/2024 means must not depend on the rows that come with it: it is refused."""
    days = pd.date_range("2020-01-01", periods=800)
    reader = learn(pd.DataFrame({"d": days}), "Model")
    for text in ("2024-04-05", "2024/4/5", "2024.04.05", "5.4.2024", "5 April 2024", "Apr 5, 2024"):
        expected = reader.read(pd.DataFrame({"d": [pd.Timestamp("2024-04-05")]}), "Model")
        actual = reader.read(pd.DataFrame({"d": [text]}), "Model")
        for column, other in zip(actual, expected, strict=True):
            values, others = (c.codes if c.is_category else c.values for c in (column, other))
            np.testing.assert_array_equal(values, others)
    for cells in (["05/04/2024"], ["05/04/2024", "13/04/2024"], ["05-04-2024"], ["05/04/24"]):
        with pytest.raises(ColumnKindError, match=f"'{cells[0]}'.*not dates written as ISO 8601"):
            reader.read(pd.DataFrame({"d": cells}), "Model")


@pytest.mark.parametrize(
    ("cells", "first", "doubt"),
    [
        (["04-05-2024", "05-13-2024"], "2024-04-05", ""),
        (["04-05-2024", "13-05-2024"], "2024-05-04", ""),
        (["04-05-2024", "06-05-2024"], "2024-05-04", "the day comes first: write 2024-01-31"),
        (["04/05/2024", "06/05/2024"], "2024-04-05", "the month comes first"),
        (["05/05/2024", "06/06/2024"], "2024-05-05", ""),
        (["04.13.2024", "05.01.2024"], "2024-04-13", ""),
        (["24/01/31", "23/12/15"], "2031-01-24", "the day comes first"),
        (["24-01-31", "23-12-15"], "2031-01-24", "the day comes first"),
        (["24-01-31", "00-12-15"], "2024-01-31", "years of two digits"),
        (["2024-1-5", "2024-12-15"], "2024-01-05", ""),
        (["01-2024", "12-2023"], "2024-01-01", ""),
        (["12/31/45", "01/02/50"], "2045-12-31", "years of two digits, read as 1969 to 2068"),
        (["2024-01-31 12:00+01", "2024-02-01 12:00+01"], "2024-01-31T12", ""),
    ],
)
def test_the_order_of_dates_is_decided_or_warned_of(cells, first, doubt):
    reader, column, warned = learned(cells)
    typed = pd.DataFrame({"v": [pd.Timestamp(first)], "x": [0.0]})
    np.testing.assert_array_equal(column.values[0], reader.read(typed, "Model")[0].values[0])
    assert doubt in warned
    assert bool(doubt) == bool(warned)


def test_a_time_is_that_of_its_own_zone_whatever_comes_first():
    zones = [UTC, timezone(timedelta(hours=5)), None]
    times = [datetime(2024, 1, 1 + k, 12, tzinfo=zone) for k, zone in enumerate(zones)]
    times += [date(2024, 2, 1), None, pd.Timestamp("2024-02-02 06:00", tz="Europe/Berlin")]
    expected = np.array(
        ["2024-01-01T12", "2024-01-02T12", "2024-01-03T12", "2024-02-01", "NaT", "2024-02-02T06"],
        "datetime64[s]",
    )
    for order in (np.arange(6), np.arange(6)[::-1], np.roll(np.arange(6), 3)):
        frame = pd.DataFrame({"t": pd.Series([times[k] for k in order], dtype=object)})
        reader = learn(frame, "Model")
        np.testing.assert_array_equal(reader.dates(frame, "Model")["t"], expected[order])


# ---- files --------------------------------------------------------------------------------------


def test_delimiters_within_quotes_do_not_count(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('"a, in m, s, or kg";b\n1;2\n')
    assert CsvFile(path).table().to_pydict() == {"a, in m, s, or kg": ["1"], "b": ["2"]}
    path.write_text('5" pipe;b\n1;2\n')
    assert CsvFile(path).table().to_pydict() == {'5" pipe': ["1"], "b": ["2"]}


@pytest.mark.parametrize("rows", [1, 50_000])
def test_a_quote_left_open_in_the_header_is_named(tmp_path, rows):
    path = tmp_path / "rows.csv"
    path.write_text('a,"b\n' + "1,2\n" * rows)
    with pytest.raises(ValueError, match="the header has a quotation mark that is not closed"):
        _ = CsvFile(path).names


def test_half_of_a_surrogate_pair_is_named_with_its_column():
    text, mixed = (pd.Index([first, "\ud800"], dtype=object) for first in ("a", 1.5))
    for column in (text, mixed, pd.Categorical.from_codes([0, 1], text)):
        frame = pd.DataFrame({"v": column})
        with pytest.raises(ValueError, match=r"column 'v' holds '\\ud800' .*no valid text"):
            learn(frame, "Model")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet", "rows.npy"])
def test_a_pipe_is_refused_by_name(name, tmp_path):
    os.mkfifo(tmp_path / name)
    for model in (km.AdditiveRegressor(), km.StreamingRidge()):
        with pytest.raises(ValueError, match=rf"{name}.* is a pipe"):
            model.fit(tmp_path / name, "y")


def test_a_model_is_not_saved_without_a_name():
    with pytest.raises(FileNotFoundError, match="the path is empty"):
        km.save(km.HomogeneousMap().fit([[0.2, 0.8]]), "")


@pytest.mark.parametrize(
    ("cells", "content"),
    [
        (["3.1 kg", "3185 g", "2.9 kg", "3000 g"], "it holds numbers"),
        (["2024-01-31", "2024-02-28", "2023-12-01"], "it holds dates"),
    ],
)
def test_targets_that_could_be_numbers_or_dates_are_warned_of(cells, content):
    with pytest.warns(SuspectColumnWarning, match=f"read as labels of classes: {content}"):
        labels, _ = target_values(Text(pa.array(cells)), "y", str)
    assert labels.tolist() == cells
