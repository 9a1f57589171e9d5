"""Dates: the formats that people write, validity, time zones, and dates as numbers."""

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from kernelmaps.data.dates import DATE_FORMS, date_columns, parse_dates, varying_parts
from kernelmaps.data.text_cells import Text, find_date_format


def found(*cells):
    return find_date_format(Text(pa.array(cells)))


@pytest.mark.parametrize(
    ("cells", "form", "first"),
    [
        (["2024-02-29", "2023-01-05"], "ISO 8601", "2024-02-29T00:00:00"),
        (["2024-02-29 17:05", "2023-01-05 00:00"], "ISO 8601", "2024-02-29T17:05:00"),
        (["2024-02-29T17:05:09+02:00"], "ISO 8601", "2024-02-29T17:05:09"),
        (["2024-02-29T17:05:09-0530"], "ISO 8601", "2024-02-29T17:05:09"),
        (["2024-02-29T17:05:09.250Z"], "ISO 8601", "2024-02-29T17:05:09"),
        (["29.02.2024", "5.1.2023"], "%d.%m.%Y", "2024-02-29T00:00:00"),
        (["29.02.24", "5.1.23"], "%d.%m.%y", "2024-02-29T00:00:00"),
        (["2024/2/29"], "%Y/%m/%d", "2024-02-29T00:00:00"),
        (["3/4/2025", "12/31/2024"], "%m/%d/%Y", "2025-03-04T00:00:00"),
        (["3/4/2025", "31/12/2024"], "%d/%m/%Y", "2025-04-03T00:00:00"),
        (["3/4/68", "12/31/69"], "%m/%d/%y", "2068-03-04T00:00:00"),
        (["12/31/69"], "%m/%d/%y", "1969-12-31T00:00:00"),
        (["12/31/2024 12:05 AM"], "%m/%d/%Y", "2024-12-31T00:05:00"),
        (["12/31/2024 12:05:30 pm"], "%m/%d/%Y", "2024-12-31T12:05:30"),
        (["29-Feb-24", "05-Jan-23"], "%d-%b-%y", "2024-02-29T00:00:00"),
        (["29 February 2024", "1 may 2023"], "%d %b %Y", "2024-02-29T00:00:00"),
        (["Feb 29, 2024"], "%b %d, %Y", "2024-02-29T00:00:00"),
        (["29FEB2024", "05JAN2023"], "%d %b %Y", "2024-02-29T00:00:00"),  # SAS
        (["29FEB2024:17:05:09"], "%d %b %Y", "2024-02-29T17:05:09"),
        (["29-FEB-24 05.05.09.000000 PM"], "%d-%b-%y", "2024-02-29T17:05:09"),  # Oracle
        (["2024-02-29 17:05:09 UTC"], "ISO 8601", "2024-02-29T17:05:09"),  # BigQuery
        (["Thu, 29 Feb 2024 17:05:09 +0000"], "%d %b %Y", "2024-02-29T17:05:09"),  # RFC 2822
        (["Thu Feb 29 2024 17:05:09 GMT+0100"], "%b %d, %Y", "2024-02-29T17:05:09"),  # JavaScript
        (["29/Feb/2024:17:05:09 +0100"], "%d %b %Y", "2024-02-29T17:05:09"),  # Apache
        (["2024Q2", "2023-Q1"], "%YQ%q", "2024-04-01T00:00:00"),
        (["2024-02", "2023-11"], "%Y-%m", "2024-02-01T00:00:00"),
        (["2/2024", "11/2023"], "%m/%Y", "2024-02-01T00:00:00"),
        (["February 2024", "Nov 2023"], "%b %Y", "2024-02-01T00:00:00"),
    ],
)
def test_dates_are_read_in_the_usual_formats(cells, form, first):
    assert found(*cells)[0] == form
    assert str(parse_dates(pa.array(cells), form)[0]) == first


@pytest.mark.parametrize(
    "cells",
    [
        ["12:30"], ["2024-13-01"], ["May"], ["2024-01-01", "soon"], ["2023-02-29"], ["1/2"],
        ["2024-01-01 24:00"], ["2024-01-01 13:00 PM"], ["2024-01-01 10:61"], ["31.4.2024"],
        ["1 Fev 2024"], [""],
    ],
)  # fmt: skip
def test_other_text_is_not_a_date(cells):
    assert found(*cells) is None


def test_a_few_words_among_many_dates_are_gaps():
    days = [f"{d}.{m}.2024" for m in (1, 2) for d in range(1, 28)]
    assert found(*days, "unknown") == ("%d.%m.%Y", False)
    assert found(*days, *["unknown"] * 10) is None


def test_dates_in_several_forms_are_read_each_by_its_own():
    cells = pa.array(["2024-02-29", "5.1.2023", "Feb 29, 2024", "29FEB2024"])
    form, is_open = find_date_format(Text(cells))
    assert (form, is_open) == ("typed", False)
    days = ["2024-02-29", "2023-01-05", "2024-02-29", "2024-02-29"]
    np.testing.assert_array_equal(Text(cells).dates(form), np.array(days, "datetime64[s]"))
    assert found("2024-02-29", "3/4/24", "5/6/23") == ("%m/%d/%y", True)
    assert found("3/4/2024", "3.4.24", "soon") is None


def test_the_order_of_day_and_month_is_said_to_be_open_where_it_is():
    assert found("3/4/2025", "5/6/2025") == ("%m/%d/%Y", True)
    assert found("3/4/2025", "5/16/2025") == ("%m/%d/%Y", False)


@pytest.mark.parametrize("form", DATE_FORMS)
def test_every_format_reads_what_python_writes(form, seed):
    """The oracle is strftime, of the C library; any day of two centuries, any minute."""
    rng = np.random.default_rng(seed)
    first, last = ("1969-01-01", "2068-12-31") if "%y" in form else ("1900-01-01", "2099-12-31")
    low, high = (int(np.datetime64(day, "s").astype(np.int64)) for day in (first, last))
    moments = rng.integers(low, high, 200).astype("datetime64[s]")
    form_of_c = form.replace("ISO 8601", "%Y-%m-%d")
    dates = [m.astype(datetime) for m in moments]
    text = [d.strftime(form_of_c.replace("%q", str((d.month + 2) // 3))) for d in dates]
    unit = "D" if "%d" in form_of_c else "3M" if "%q" in form else "M"  # its first day
    days = moments.astype("datetime64[M]" if unit == "3M" else moments.dtype)
    days = days.astype(f"datetime64[{unit}]")
    np.testing.assert_array_equal(parse_dates(pa.array(text), form), days)
    assert form in Text(pa.array(text)).date_forms
    clock = [f"{day} {m.astype(datetime):%H:%M:%S}" for day, m in zip(text, moments)]
    seconds = moments - moments.astype("datetime64[D]")
    expected = days.astype("datetime64[D]") + seconds
    np.testing.assert_array_equal(parse_dates(pa.array([*clock, None, "x"]), form)[:-2], expected)
    assert np.isnat(parse_dates(pa.array([None, "x"]), form)).all()


def test_a_date_becomes_years_and_parts():
    dates = np.array(["2024-01-01T06:00", "2023-07-02T12:00", "NaT"], dtype="datetime64[s]")
    actual = date_columns(dates, "when", ("month", "weekday", "hour"))
    assert list(actual) == ["when", "when (month)", "when (weekday)", "when (hour)"]
    np.testing.assert_allclose(actual["when"], [2024 + 0.25 / 366, 2023 + 182.5 / 365, np.nan])
    np.testing.assert_array_equal(actual["when (month)"], [1, 7 + 1 / 31, np.nan])
    np.testing.assert_array_equal(actual["when (weekday)"], [0, 6, np.nan])  # Monday, Sunday
    np.testing.assert_array_equal(actual["when (hour)"], [6, 12, np.nan])


def test_days_have_their_place_in_all_years():
    """Of leap years, too; the months are as long as each other, and the year is a circle."""
    days = np.array(["2023-03-01", "2024-03-01", "2024-12-25", "2025-12-25"], "datetime64[D]")
    months = date_columns(days, "d", ("month",))["d (month)"]
    np.testing.assert_array_equal(months, [3, 3, 12 + 24 / 31, 12 + 24 / 31])
    year = np.arange("2024-01-01", "2025-01-01", dtype="datetime64[D]")
    steps = np.diff(date_columns(year, "d", ("month",))["d (month)"], append=13.0)
    assert ((steps > 1 / 31 - 1e-12) & (steps < 1 / 29 + 1e-12)).all()


def test_years_of_dates_never_fall():
    days = np.arange("1899-01-01", "2101-01-01", dtype="datetime64[D]")
    years = date_columns(days, "d", ())["d"]
    assert (np.diff(years) > 0).all()
    np.testing.assert_array_equal(np.floor(years), days.astype("datetime64[Y]").astype(int) + 1970)


@pytest.mark.parametrize(
    ("first", "last", "step", "parts"),
    [
        ("2020-01-01", "2023-01-01", "D", ("month", "weekday")),
        ("2020-01-01", "2020-06-01", "D", ("weekday",)),
        ("2020-01-01T00", "2020-06-01T00", "h", ("weekday", "hour")),
        ("2020-01-01T00", "2020-01-01T20", "h", ()),
        ("1990-01", "2020-01", "M", ("month",)),
        ("1990", "2020", "Y", ()),
        ("1990-12-27", "2020-12-27", "52W", ("month",)),
    ],
)
def test_parts_that_say_more_than_the_trend(first, last, step, parts):
    dates = np.arange(first, last, dtype=f"datetime64[{step}]").astype("datetime64[s]")
    assert varying_parts(dates) == parts
