"""Numbers as people write them: formats are found, and read with correct rounding."""

import numpy as np
import pyarrow as pa
import pytest

from kernelmaps.data.text_cells import (
    DistinctCells,
    NumberFormat,
    Text,
    find_number_format,
    why_category,
)


def found(*cells):
    return find_number_format(Text(pa.array(cells, pa.string())))


@pytest.mark.parametrize(
    ("cells", "how"),
    [
        (["1", "2.5", "", "-3e4"], NumberFormat()),
        (["1", "NA", "none", "-", ".", "n/a", "#N/A", None], NumberFormat()),
        (["", "", "nan"], NumberFormat()),
        ([" 1", "2.5 "], NumberFormat()),
        (["$1,200", "950"], NumberFormat("1,234.5", "$")),
        (["$ 1,234.50", "-$ 3"], NumberFormat("1,234.5", "$")),
        (["USD 12.00", "3.5 USD"], NumberFormat("plain", "USD")),
        (["US$ 12.00", "US$3"], NumberFormat("plain", "US$")),
        (["12%", "3.5 %"], NumberFormat("plain", "%")),
        (["12.3 kg", "1,000 kg"], NumberFormat("1,234.5", "kg")),
        (["12.3 km/h", "7km/h", "5"], NumberFormat("plain", "km/h")),
        (["20 °C", "-3°C"], NumberFormat("plain", "°C")),
        (["4 m²", "5 m²"], NumberFormat("plain", "m²")),
        (["850 sq ft", "1000 sq ft"], NumberFormat("plain", "sq ft")),
        (["1,5", "2,25", "3"], NumberFormat("1.234,5")),
        (["1.200,5", "950"], NumberFormat("1.234,5")),
        (["1 234,50 €", "7 €"], NumberFormat("1.234,5", "€")),
        (["1'234.50", "7"], NumberFormat("1,234.5")),
        (["1\u00a0234", "7"], NumberFormat("1,234.5")),
        (["(12.50)", "3"], NumberFormat()),
        (["$(1,200.50)", "($3)", "$7"], NumberFormat("1,234.5", "$")),
        (["12:30", "9:05", "-"], NumberFormat("hh:mm", "hours")),
        (["12:30:15", "9:05 pm"], NumberFormat("hh:mm", "hours")),
    ],
)
def test_formats_of_numbers(cells, how):
    assert found(*cells) == how


@pytest.mark.parametrize(
    "cells",
    [
        ["red", "green", ""],
        ["1", "2", "many"],
        ["True", "False"],
        ["1_2", "3_4"],
        ["01067", "10115"],  # codes
        ["007"],
        ["12 kg", "3 lb"],  # two units
        ["$5", "5%"],
        ["A12", "A13"],
        ["BMW 320", "BMW 525"],
        ["16:9", "4:3"],
        ["12:60", "12:45"],
        ["(1)", "(2)"],  # negative, or numbers of a list
        ["1-2", "3-4"],
        ["1,23,4"],
        ["12 Main Street 7"],
    ],
)
def test_other_text_is_no_number(cells):
    assert found(*cells) is None


def test_brackets_are_negative_numbers_and_times_are_hours():
    column = Text(pa.array(["(12.50)", "$(1,200)", "($3)", "7", "(-2)", "(x)", "()"]))
    values, nan = column.numbers(NumberFormat("1,234.5", "$")), np.nan
    np.testing.assert_array_equal(values, [-12.5, -1200, -3, 7, nan, nan, nan])
    column = Text(
        pa.array(["0:00", "12:00 am", "12:30 PM", "23:59:60", "17:30:36", "1:5", "13:00 pm"])
    )
    values = column.numbers(NumberFormat("hh:mm", "hours"))
    np.testing.assert_allclose(values, [0, 0, 12.5, nan, 17.51, nan, nan])


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["12 kg", "3 lb", ""], "numbers in several units ('kg', 'lb')"),
        (["(1)", "(2)"], "numbers in brackets alone, whose sign is not clear"),
        ([*map(str, range(30)), *["big"] * 10], "numbers, and 'big' in 10 rows (to name a "),
        ([*(f"{d}.1.2024" for d in range(1, 30)), *["soon"] * 10], "dates, and 'soon' in 10 rows"),
        ([*"12345", "k.A."], "numbers, and 'k.A.' in 1 row (to name a missing value: na_values="),
        (["red", "green"], ""),
        (["1st", "2nd", "3rd"], ""),  # no units
        (["01067", "10115"], ""),
        (["1", "2", "many"], ""),
        (["", "NA"], ""),
    ],
)
def test_what_a_category_could_be_taken_for(cells, why):
    said = why_category(Text(pa.array(cells)))
    assert said.startswith(why)
    assert bool(said) == bool(why)


def test_codes_are_numbers_where_that_is_asked_for():
    assert find_number_format(Text(pa.array(["01067", "1"])), codes_too=True) == NumberFormat()
    assert find_number_format(Text(pa.array(["0", "0.5", "-0.25"]))) == NumberFormat()


def test_a_few_words_among_many_numbers_are_gaps():
    assert found(*map(str, range(60)), "unknown") == NumberFormat()
    assert found(*(f"{k} kg" for k in range(60)), "3 lb") == NumberFormat("plain", "kg")
    assert found(*map(str, range(60)), *["unknown"] * 10) is None
    assert found("1", "2", "3", "unknown") is None


def test_a_number_of_another_format_or_unit_is_not_read():
    column, nan = Text(pa.array(["5", "5 kg", "5 lb", "1,5", "1,500", "x"])), np.nan
    for how, values in (
        (NumberFormat(), [5, nan, nan, nan, nan, nan]),
        (NumberFormat("1,234.5", "kg"), [5, 5, nan, nan, 1500, nan]),
        (NumberFormat("1.234,5", "lb"), [5, nan, 5, 1.5, 1.5, nan]),
    ):
        np.testing.assert_array_equal(column.numbers(how), values)


def test_cells_are_encoded_without_the_blanks_around_them():
    cells = DistinctCells.encode(pa.array(["b", " a", None, "a ", "b"]))
    assert cells.distinct.to_pylist() == ["b", "a"]
    assert cells.codes.tolist() == [0, 1, -1, 1, 0]
    assert cells.counts.tolist() == [2, 2]
