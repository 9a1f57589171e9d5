"""Dates as text and as numbers: a trend in years, and parts that repeat."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

PERIODS = {"month": 12.0, "weekday": 7.0, "hour": 24.0}
"""Length of the circle of each part of a date: months 1 … 12, Monday 1 … 7, hours 0 … 24."""

_ISO = "ISO 8601"
_TIMES = ("", " %H:%M", " %H:%M:%S")
_DAYS = (
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
)
_FORMS = (_ISO, *(day + time for day in _DAYS for time in _TIMES))
_SHORTEST = 6  # characters of a date: 1/2/99
# Seconds that dates must extend over before a part can be told from the trend.
_SPANS = {"month": 366 * 86400, "weekday": 7 * 86400, "hour": 86400}


def date_form(cells: Sequence[str]) -> str | None:
    """How all of these cells write a date: a format, or None if one is not a date.

    Of 3/4/2025 the month comes first, unless a cell has a first number above 12.
    """
    distinct = list(dict.fromkeys(cells))
    head = distinct[:20]
    if not head or min(map(len, head)) < _SHORTEST:
        return None
    for form in _FORMS:
        if all(_parsed(cell, form) is not None for cell in head) and all(
            _parsed(cell, form) is not None for cell in distinct
        ):
            return form
    return None


def parse_dates(cells: Sequence[str], form: str) -> np.ndarray:
    """Cells as ``datetime64[s]``, in UTC where they name a time zone; NaT if unreadable."""
    known = {cell: _parsed(cell.strip(), form) for cell in dict.fromkeys(cells)}
    return np.array([known[cell] for cell in cells], dtype="datetime64[s]")


def _parsed(cell: str, form: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(cell) if form == _ISO else datetime.strptime(cell, form)
    except ValueError:
        return None
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def varying_parts(dates: np.ndarray) -> tuple[str, ...]:
    """Parts that say more than the trend: they vary, and the dates extend over a whole period."""
    known = dates[~np.isnat(dates)].astype("datetime64[s]")
    if not len(known):
        return ()
    span = int((known.max() - known.min()).astype(np.int64))
    months = known.astype("datetime64[M]")
    days = known.astype("datetime64[D]") - months.astype("datetime64[D]")
    found = []
    for part in PERIODS:
        if part == "weekday" and (days == days[0]).all():
            continue  # the firsts of months stand for the months
        if span > _SPANS[part] and len(np.unique(_part(known, part))) > 1:
            found.append(part)
    return tuple(found)


def part_name(column: str, part: str) -> str:
    """Name of the feature that holds a part of a date."""
    return f"{column} ({part})"


def date_columns(dates: np.ndarray, name: str, parts: Sequence[str]) -> dict[str, np.ndarray]:
    """A date as numbers: years with their fraction, and the parts; NaN where it is missing."""
    dates = dates.astype("datetime64[s]")
    gaps = np.isnat(dates)
    known = np.where(gaps, np.datetime64(0, "s"), dates)
    found = {name: _years(known)}
    found |= {part_name(name, part): _part(known, part) for part in parts}
    return {key: np.where(gaps, np.nan, values) for key, values in found.items()}


def _years(dates: np.ndarray) -> np.ndarray:
    """2025.5 for the middle of 2025."""
    start = dates.astype("datetime64[Y]")
    length = ((start + 1).astype("datetime64[s]") - start.astype("datetime64[s]")).astype(float)
    return (
        1970
        + start.astype(np.int64)
        + (dates - start.astype("datetime64[s]")) / length.astype("timedelta64[s]")
    )


def _part(dates: np.ndarray, part: str) -> np.ndarray:
    days = dates.astype("datetime64[D]")
    if part == "month":
        return dates.astype("datetime64[M]").astype(np.int64) % 12 + 1.0
    if part == "weekday":  # the first of January 1970 was a Thursday
        return (days.astype(np.int64) + 3) % 7 + 1.0
    return (dates - days.astype("datetime64[s]")).astype(np.int64) / 3600.0
