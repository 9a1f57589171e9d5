"""Dates: reading them from text, and turning them into numbers.

A date becomes a trend in years, and parts that repeat: the time of the year, the weekday, the time
of the day.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._util.lazy import pa, pc

PARTS = ("month", "weekday", "hour")
"""Parts of a date: months with their fraction, 1 … 13, weekdays, and hours with theirs, 0 … 24."""
PERIODS = {"month": 12.0, "hour": 24.0}
"""Length of the circle of each part that is a number: the effect of a weekday is not smooth."""
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

ISO = "ISO 8601"
_DAY, _MONTH, _YEAR = r"(?P<d>\d{1,2})", r"(?P<m>\d{1,2})", r"(?P<Y>\d{4})"
_SHORT_YEAR, _MONTH_NAME = r"(?P<y>\d{2})", r"(?P<b>[A-Za-z]+)\.?"
_LAYOUTS = {
    ISO: f"{_YEAR}-{_MONTH}-{_DAY}",
    "%Y/%m/%d": f"{_YEAR}/{_MONTH}/{_DAY}",
    "%Y.%m.%d": rf"{_YEAR}\.{_MONTH}\.{_DAY}",
    "%d.%m.%Y": rf"{_DAY}\.{_MONTH}\.{_YEAR}",
    "%m.%d.%Y": rf"{_MONTH}\.{_DAY}\.{_YEAR}",
    "%m/%d/%Y": f"{_MONTH}/{_DAY}/{_YEAR}",
    "%d/%m/%Y": f"{_DAY}/{_MONTH}/{_YEAR}",
    "%d-%m-%Y": f"{_DAY}-{_MONTH}-{_YEAR}",
    "%m-%d-%Y": f"{_MONTH}-{_DAY}-{_YEAR}",
    "%d.%m.%y": rf"{_DAY}\.{_MONTH}\.{_SHORT_YEAR}",
    "%m/%d/%y": f"{_MONTH}/{_DAY}/{_SHORT_YEAR}",
    "%d/%m/%y": f"{_DAY}/{_MONTH}/{_SHORT_YEAR}",
    "%y/%m/%d": f"{_SHORT_YEAR}/{_MONTH}/{_DAY}",
    "%d-%m-%y": f"{_DAY}-{_MONTH}-{_SHORT_YEAR}",
    "%m-%d-%y": f"{_MONTH}-{_DAY}-{_SHORT_YEAR}",
    "%y-%m-%d": f"{_SHORT_YEAR}-{_MONTH}-{_DAY}",
    "%d %b %Y": f"{_DAY}[-/ ]?{_MONTH_NAME}[-/ ]?{_YEAR}",
    "%d-%b-%y": f"{_DAY}-{_MONTH_NAME}-{_SHORT_YEAR}",
    "%b %d, %Y": f"{_MONTH_NAME} {_DAY}(?:, ?| ){_YEAR}",
    "%Y-%m": r"(?P<Y>\d{4})-(?P<m>\d{2})",
    "%m/%Y": f"{_MONTH}/{_YEAR}",
    "%m-%Y": f"{_MONTH}-{_YEAR}",
    "%b %Y": f"{_MONTH_NAME} {_YEAR}",
    "%YQ%q": r"(?P<Y>\d{4})-?Q(?P<q>[1-4])",
}
DATE_FORMS = tuple(_LAYOUTS)
"""How dates may be written; of 3/4/2025 the month comes first, unless it can only be the day. A
month or quarter without a day stands for its first day, and a weekday in front says nothing."""
TYPED = "typed"
"""The form of dates that come with a type, and of a column that mixes `CERTAIN_FORMS`."""
CERTAIN_FORMS = (
    ISO, "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d %b %Y", "%b %d, %Y", "%Y-%m", "%b %Y", "%YQ%q"
)  # fmt: skip
"""Those whose order of day and month is certain; with dots, the day comes first everywhere."""
UNUSUAL_FORM = "%m.%d.%Y"
"""Is read where the day cannot come first, and no reason for doubt where it can."""
_CLOCK = r"(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,](?P<f>\d+))?)?"
_ZONE = r"\s?(?:Z|z|UTC|GMT)?(?:[+-]\d{2}(?::?\d{2})?)?"
_WEEKDAY = "(?:[A-Z][a-z]{2,8},? )?"
_CLOCK_TIME = _CLOCK.replace(":(?P<", "[:.](?P<")
_TIME = rf"(?:[T :]\s?{_CLOCK_TIME}\s?(?P<p>[AaPp][Mm])?{_ZONE})?"
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_MONTH_NAMES = [*_MONTHS, *(name[:3] for name in _MONTHS)]
_NO_HOUR = 99  # stands for an impossible hour: hours of durations have two digits at most
_CENTURY = 69  # two digits of a year from here on are of the twentieth century, as in POSIX
# Seconds that dates must extend over before a part can be told from the trend.
_SPANS = {"month": 366 * 86400, "weekday": 7 * 86400, "hour": 86400}


def extract_parts(cells: pa.Array, pattern: str) -> tuple[dict[str, pa.Array], np.ndarray]:
    """The named parts of a pattern, and which cells match it."""
    groups = pc.extract_regex(cells, pattern)
    names = (part.name for part in groups.type)
    return dict(zip(names, groups.flatten(), strict=True)), np.asarray(groups.is_valid())


def parse_dates(cells: pa.Array, form: str) -> np.ndarray:
    """Cells as ``datetime64[s]``, as the clock shows them where they name a time zone.

    NaT if unreadable.
    """
    parts, matched = extract_parts(cells, f"^{_WEEKDAY}{_LAYOUTS[form]}{_TIME}$")
    if not matched.any():
        return np.full(len(cells), np.datetime64("NaT", "s"))
    year = _integers(parts.get("Y", parts.get("y")))
    if "y" in parts:
        year = year + np.where(year < _CENTURY, 2000, 1900)
    if "q" in parts:
        month = 3 * _integers(parts["q"]) - 2
    elif "b" in parts:
        place = pc.index_in(pc.utf8_lower(parts["b"]), pa.array(_MONTH_NAMES))
        place = np.asarray(pc.fill_null(place, -1))
        month = np.where(place < 0, 0, place % 12 + 1)
    else:
        month = _integers(parts["m"])
    day = _integers(parts["d"]) if "d" in parts else np.ones(len(cells), np.int64)
    hour, minute, second = _hour(parts), _integers(parts["M"]), _integers(parts["S"])
    possible = matched & (month >= 1) & (month <= 12) & (day >= 1)
    possible &= (hour < 24) & (minute < 60) & (second < 60)
    months = np.where(possible, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
    possible &= days.astype("datetime64[M]") == months
    seconds = (hour * 3600 + minute * 60 + second).astype("timedelta64[s]")
    return np.where(possible, days.astype("datetime64[s]") + seconds, np.datetime64("NaT", "s"))


def date_doubts(form: str, ambiguous: bool) -> list[str]:
    """What else dates of a form may mean, as ends of sentences about their column."""
    doubts = []
    if ambiguous:
        part = {"m": "month", "d": "day", "y": "year"}[form[1].lower()]
        doubts.append(f"holds dates, in which the {part} comes first: write 2024-01-31 otherwise")
    if "%y" in form:
        doubts.append(
            "holds years of two digits, read as 1969 to 2068: write four digits for others"
        )
    return doubts


def hours_in(cells: pa.Array) -> np.ndarray:
    """Times such as 8:30, 17:05:30 or 5:15 pm as hours, and durations; NaN if unreadable.

    Durations are those that pandas and Python write: 2 days 03:00:00, -1 days +23:00:00.
    """
    clock = rf"{_CLOCK}\s?(?P<p>[AaPp][Mm])?"
    pattern = rf"^(?:(?P<D>-?\d{{1,7}}) days?,? ?\+?)?(?:{clock})?$"
    parts, matched = extract_parts(cells, pattern)
    if not matched.any():
        return np.full(len(cells), np.nan)
    day, hour, minute, second = (
        _integers(parts["D"]), _hour(parts), _integers(parts["M"]), _integers(parts["S"])
    )  # fmt: skip
    fraction = pc.binary_join_element_wise("0.", pc.fill_null(parts["f"], ""), "0", "")
    second = second + np.asarray(fraction.cast(pa.float64()))
    is_empty = np.asarray(pc.fill_null(pc.equal(cells, ""), True))
    possible = matched & ~is_empty & (hour < _NO_HOUR) & (minute < 60) & (second < 60)
    return np.where(possible, 24 * day + hour + minute / 60 + second / 3600, np.nan)


def _integers(digits: pa.Array) -> np.ndarray:
    """Digits as numbers; 0 where there are none."""
    digits = pc.fill_null(pc.if_else(pc.equal(digits, ""), "0", digits), "0")
    return np.asarray(digits.cast(pa.int64()))


def _hour(parts: dict[str, pa.Array]) -> np.ndarray:
    """Hour of the day, of a clock with twelve hours where a half of the day is named."""
    hour = _integers(parts["H"])
    half = np.asarray(pc.fill_null(pc.utf8_lower(parts["p"]), ""))
    twelve = half != ""
    possible = ~twelve | ((hour >= 1) & (hour <= 12))
    of_day = np.where(twelve, hour % 12 + np.where(half == "pm", 12, 0), hour)
    return np.where(possible, of_day, _NO_HOUR)


def varying_parts(dates: np.ndarray) -> tuple[str, ...]:
    """Parts that say more than the trend: they vary, and the dates extend over a whole period."""
    present = dates[~np.isnat(dates)].astype("datetime64[s]")
    if not len(present):
        return ()
    span = int((present.max() - present.min()).astype(np.int64))
    months = present.astype("datetime64[M]")
    days = present.astype("datetime64[D]") - months.astype("datetime64[D]")
    monthly = (days == days[0]).all()  # the firsts of months stand for the months
    parts = [date_part for date_part in PARTS if date_part != "weekday" or not monthly]
    long = [date_part for date_part in parts if span > _SPANS[date_part]]
    # Dates at the end of December, of many years, show no yearly cycle.
    return tuple(part for part in long if len(np.unique(np.floor(_part(present, part)))) > 1)


def part_name(column: str, date_part: str) -> str:
    """Name of the feature that holds a part of a date."""
    return f"{column} ({date_part})"


def date_columns(dates: np.ndarray, name: str, parts: Sequence[str]) -> dict[str, np.ndarray]:
    """A date as numbers: years with their fraction, and the parts; NaN where it is missing.

    Monday is 0.
    """
    dates = dates.astype("datetime64[s]")
    gaps = np.isnat(dates)
    filled = np.where(gaps, np.datetime64(0, "s"), dates)
    numbers: dict[str, Any] = {name: _years(filled)}
    numbers |= {part_name(name, date_part): _part(filled, date_part) for date_part in parts}
    return {key: np.where(gaps, np.nan, values) for key, values in numbers.items()}


def _years(dates: np.ndarray) -> np.ndarray:
    """2025.5 for the middle of 2025."""
    year = dates.astype("datetime64[Y]")
    next_year = year + np.timedelta64(1, "Y")
    begin, end = year.astype("datetime64[s]"), next_year.astype("datetime64[s]")
    return 1970 + year.astype(np.int64) + (dates - begin) / (end - begin)


def date_of(years: float) -> str:
    """The day of a number of `_years`, as text; seconds that were rounded off aside."""
    begin = np.array(years // 1 - 1970).astype("datetime64[Y]")
    length = (begin + np.timedelta64(1, "Y")).astype("datetime64[s]") - begin
    return str((begin + length * (years % 1) + np.timedelta64(1, "s")).astype("datetime64[D]"))


def _part(dates: np.ndarray, date_part: str) -> np.ndarray:
    days = dates.astype("datetime64[D]")
    if date_part == "month":  # a day has its place in all years, and a month begins at its number
        month = dates.astype("datetime64[M]")
        next_month = month + np.timedelta64(1, "M")
        begin, end = month.astype("datetime64[D]"), next_month.astype("datetime64[D]")
        return month.astype(np.int64) % 12 + 1 + (days - begin) / (end - begin)
    if date_part == "weekday":  # the first of January 1970 was a Thursday
        return (days.astype(np.int64) + 3) % 7 * 1.0
    return (dates - days.astype("datetime64[s]")).astype(np.int64) / 3600.0
