"""Kinds of columns in files: numbers, categories and dates, told from the cells.

A raw column is a list of text cells (CSV), or an array of float64 or datetime64 (Parquet, whose
columns have types). `kind_of` says what it holds, `cells_as` reads it as that kind, also in a later
file whose cells differ.

Dates become numbers: a trend in years, and parts that repeat.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np

from ..exceptions import FileFormatError
from .csv_text import GAPS, is_number, number_in, numbers_in
from .dates import PERIODS, varying_parts
from .frames import level_name

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


def date_form(cells: Sequence[str]) -> str | None:
    """How all of these cells write a date: a format, or None if one is not a date.

    Of 3/4/2025 the month comes first, unless a cell has a first number above 12.
    """
    distinct = list(dict.fromkeys(cells))
    if not distinct or min(map(len, distinct[:20])) < _SHORTEST:
        return None
    fitting = (f for f in _FORMS if all(_parsed(cell, f) is not None for cell in distinct))
    return next(fitting, None)


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


RawColumn: TypeAlias = "list[str] | np.ndarray"

_NUMBER_GAPS = GAPS | {"none", "-", "."}
_WHOLE = re.compile(r"[+-]?\d+\.0+")
_GROUPED = re.compile(r"[+-]?[$€£]?[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d*)?\s*%?")
_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d*)?\s*[%€]?")
_FEW_WORDS = 0.05  # share of words up to which a column of many numbers is one with gaps
_MANY_NUMBERS = 20  # different numbers that such a column has at least
_FEW_ROWS = 20  # rows below which nothing is taken for an ID
_ID = re.compile(r"(?i:(?:^|[_\s.-])(?:id|uuid|guid|key|index|rownames?|row|no|nr)$)|[a-z]I[dD]$")


@dataclass(frozen=True)
class Kind:
    """What a column holds.

    Attributes
    ----------
    name : {"number", "category", "date"}
    form : str
        How it is written: for numbers "plain", "1,234.5" or "1.234,5"; for dates their format.
    parts : tuple of str
        For dates: the parts that repeat and are features of their own; see `PERIODS`.
    """

    name: str
    form: str = "plain"
    parts: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def of_dict(cls, values: dict[str, Any]) -> Kind:
        """The kind that `to_dict` wrote; a file that says anything else is refused."""
        name, form, parts = (values.get(key) for key in ("name", "form", "parts"))
        known = isinstance(parts, list | tuple) and all(part in PERIODS for part in parts)
        if name not in ("number", "category", "date") or not isinstance(form, str) or not known:
            raise FileFormatError(f"the file describes a column as {values!r}, which is unknown.")
        return cls(name, form, tuple(parts or ()))


def kind_of(raw: RawColumn) -> Kind:
    """Tell numbers, dates and categories apart."""
    if isinstance(raw, np.ndarray):
        return Kind("date", "", varying_parts(raw)) if raw.dtype.kind == "M" else Kind("number")
    if _plain_numbers(raw) is not None:
        return Kind("number")
    known = [cell for cell in dict.fromkeys(raw) if cell.strip().lower() not in _NUMBER_GAPS]
    form = _number_form(known, raw)
    if form is not None:
        return Kind("number", form)
    form = date_form([cell.strip() for cell in known])
    if form is not None:
        return Kind("date", form, varying_parts(parse_dates(known, form)))
    return Kind("category")


def _plain_numbers(cells: Sequence[str]) -> np.ndarray | None:
    """Numbers where all cells are such or missing, read at once; None otherwise."""
    found = numbers_in(cells)
    if found is None:
        gaps = (cell.strip().lower() in _NUMBER_GAPS for cell in cells)
        return numbers_in(["nan" if gap else cell for cell, gap in zip(cells, gaps)])
    return found


def _number_form(known: list[str], raw: Sequence[str]) -> str | None:
    """How numbers are written in a column; None if it does not hold numbers."""
    words = {cell for cell in known if not is_number(cell)}
    for form in ("1,234.5", "1.234,5"):
        if all(_number(cell, form) is not None for cell in known):
            return form
    if len(known) - len(words) < _MANY_NUMBERS:
        return None
    return "plain" if sum(cell in words for cell in raw) <= _FEW_WORDS * len(raw) else None


def _number(cell: str, form: str) -> float | None:
    cell = cell.strip()
    if form != "plain":
        if not (_GROUPED if form == "1,234.5" else _COMMA).fullmatch(cell):
            return None
        cell = re.sub(r"[$€£%\s]", "", cell)
        cell = cell.replace(form[1], "").replace(form[5], ".")
    return number_in(cell)


def cells_as(raw: RawColumn, kind: Kind) -> tuple[np.ndarray, list[str]]:
    """Read a column as a kind.

    Returns
    -------
    values : ndarray
        float64 with NaN, objects with None, or datetime64[s] with NaT where a cell is missing.
    unreadable : list of str
        Different cells that are neither empty nor of this kind; they count as missing.
    """
    if kind.name == "category":
        return _levels(raw), []
    wanted = "M" if kind.name == "date" else "f"
    if isinstance(raw, np.ndarray) and raw.dtype.kind == wanted:
        return raw, []
    cells = [str(cell) for cell in raw.tolist()] if isinstance(raw, np.ndarray) else raw
    if kind.name == "date":
        values = parse_dates(cells, kind.form or "ISO 8601")
        unread = np.isnat(values)
    else:
        plain = _plain_numbers(cells) if kind.form == "plain" else None
        if plain is not None:
            return plain, []
        known = {cell: _number(cell, kind.form) for cell in dict.fromkeys(cells)}
        values = np.array([known[cell] for cell in cells], dtype=np.float64)  # None becomes NaN
        unread = np.isnan(values)
    bad = dict.fromkeys(cells[i] for i in np.flatnonzero(unread).tolist())
    return values, [cell for cell in bad if cell.strip().lower() not in _NUMBER_GAPS | {"nat"}]


def _levels(raw: RawColumn) -> np.ndarray:
    """Names of levels: 3 for 3.0, which is how files with gaps write whole numbers."""
    if isinstance(raw, np.ndarray):
        gaps = np.isnat(raw) if raw.dtype.kind == "M" else np.isnan(raw)
        found = [None if gap else level_name(value) for value, gap in zip(raw.tolist(), gaps)]
        return np.array(found, dtype=object)
    known = {cell: _level(cell.strip()) for cell in dict.fromkeys(raw)}
    return np.array([known[cell] for cell in raw], dtype=object)


def _level(cell: str) -> str | None:
    if cell.lower() in GAPS:
        return None
    return cell.split(".")[0] if _WHOLE.fullmatch(cell) else cell


def names_rows(name: str, values: np.ndarray) -> str | None:
    """Why a column names the rows instead of saying something about them; None if it does not.

    Text of which most rows have a level of their own; whole numbers, all different, that count the
    rows (from 0 or 1) or are called an ID.
    """
    n = len(values)
    if n < _FEW_ROWS:
        return None
    if values.dtype.kind == "O":
        known = [value for value in values.tolist() if value is not None]
        levels = len(set(known))
        if levels == len(known) > _FEW_ROWS:
            return "its values are all different"
        return f"it has {levels:,} levels in {n:,} rows" if 2 * levels > n else None
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        return None
    if (values != np.round(values)).any() or len(np.unique(values)) < n:
        return None
    if values.min() in (0, 1) and values.max() == values.min() + n - 1:
        return "it counts the rows"
    if _ID.search(name):
        return "its values are all different, and its name is that of an ID"
    return None
