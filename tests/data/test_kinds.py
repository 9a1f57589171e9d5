"""Kinds of columns: told from the cells as a person would, and read the same way again."""

import numpy as np
import pytest

from kernelmaps.data.kinds import Kind, cells_as, date_form, kind_of, names_rows, parse_dates
from kernelmaps.exceptions import FileFormatError


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", "", "-3e4"], Kind("number")),
        (["1", "NA", "none", "-"], Kind("number")),
        (["", "", "nan"], Kind("number")),
        (["$1,200", "950", "12%"], Kind("number", "1,234.5")),
        (["1,5", "2,25", "3"], Kind("number", "1.234,5")),
        (["1.200,5", "950"], Kind("number", "1.234,5")),
        (["red", "green", ""], Kind("category")),
        (["none", "some", "none"], Kind("category")),
        (["True", "False"], Kind("category")),
        (["1", "2", "many"], Kind("category")),
        (["2024-01-01", "2024-01-02"], Kind("date", "ISO 8601")),
        (["1_2", "3_4"], Kind("category")),
    ],
)
def test_cells_are_told_apart(cells, kind):
    assert kind_of(cells) == kind


def test_a_few_words_among_many_numbers_are_gaps_and_are_named():
    cells = [str(k) for k in range(60)] + ["unknown"]
    kind = kind_of(cells)
    assert kind == Kind("number")
    values, unread = cells_as(cells, kind)
    assert unread == ["unknown"]
    assert np.isnan(values[-1])
    np.testing.assert_array_equal(values[:-1], np.arange(60))
    assert kind_of([str(k) for k in range(60)] + ["unknown"] * 10) == Kind("category")


def test_numbers_are_read_as_they_are_written():
    np.testing.assert_array_equal(
        cells_as(["$1,200.5", "-7", "", "50 %"], Kind("number", "1,234.5"))[0],
        [1200.5, -7, np.nan, 50],
    )
    np.testing.assert_array_equal(
        cells_as(["1.200,5", "7"], Kind("number", "1.234,5"))[0], [1200.5, 7]
    )


def test_levels_are_the_same_with_and_without_gaps_in_the_file():
    """A file with gaps writes whole numbers as 3.0; Parquet has them as floats."""
    kind = Kind("category")
    text = cells_as(["3", "4", ""], kind)[0]
    assert text.tolist() == ["3", "4", None]
    assert cells_as(["3.0", "4.0", "NA"], kind)[0].tolist() == text.tolist()
    assert cells_as(np.array([3.0, 4.0, np.nan]), kind)[0].tolist() == text.tolist()


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["2024-02-29", "2023-01-05"], "2024-02-29T00:00:00"),
        (["2024-02-29 17:05", "2023-01-05 00:00"], "2024-02-29T17:05:00"),
        (["2024-02-29T17:05:09+02:00"], "2024-02-29T15:05:09"),
        (["29.02.2024", "5.1.2023"], "2024-02-29T00:00:00"),
        (["3/4/2025", "12/31/2024"], "2025-03-04T00:00:00"),
        (["3/4/2025", "31/12/2024"], "2025-04-03T00:00:00"),
        (["29-Feb-24", "05-Jan-23"], "2024-02-29T00:00:00"),
        (["Feb 29, 2024"], "2024-02-29T00:00:00"),
    ],
)
def test_dates_are_read_in_the_usual_formats(cells, first):
    form = date_form(cells)
    assert str(parse_dates(cells, form)[0]) == first


@pytest.mark.parametrize(
    "cells", [["12:30"], ["2024-13-01"], ["May"], ["2024-01-01", "soon"], ["2023-02-29"]]
)
def test_other_text_is_not_a_date(cells):
    assert date_form(cells) is None


def test_columns_that_name_the_rows():
    rng = np.random.default_rng(0)
    words = np.array([f"r{k}" for k in range(50)], dtype=object)
    assert names_rows("x", words) == "its values are all different"
    assert "30 levels in 50 rows" in names_rows("x", words[np.arange(50) % 30])
    assert names_rows("x", words[np.arange(50) % 20]) is None
    assert names_rows("x", words[:15]) is None  # so few may be chance
    count = rng.permutation(50).astype(float)
    assert names_rows("x", count) == "it counts the rows"
    assert names_rows("x", count + 1) == "it counts the rows"
    assert names_rows("year", count + 1950) is None
    for name in ("id", "ID", "customer_id", "PassengerId", "userID", "rownames", "row"):
        assert "its name" in names_rows(name, 7 * count), name
    for name in ("humid", "paid", "price", "notes", "grid"):
        assert names_rows(name, 7 * count) is None, name
    assert names_rows("id", count + 0.5) is None


def test_a_kind_survives_its_dictionary_and_others_are_refused():
    for kind in (Kind("number", "1,234.5"), Kind("date", "%d.%m.%Y", ("month",))):
        assert Kind.of_dict(kind.to_dict()) == kind
    for bad in (
        {"name": "number", "form": "plain"},
        {"name": "word", "form": "plain", "parts": []},
        {"name": "date", "form": 3, "parts": []},
        {"name": "date", "form": "%Y", "parts": ["second"]},
    ):
        with pytest.raises(FileFormatError, match="describes a column"):
            Kind.of_dict(bad)
