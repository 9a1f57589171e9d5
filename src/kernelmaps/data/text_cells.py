"""Cells of text: what stands for a missing value, numbers as people write them, dates, levels.

A column is encoded first (`Cells`): each rule looks at the different cells only. pyarrow applies
patterns to all of them at once; words are compared by Python, which takes less time than a call of
pyarrow where a column has few levels.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._util.threads import cached_property
from .dates import (
    CERTAIN_FORMS,
    DATE_FORMS,
    DATE_MARK,
    ISO,
    TYPED,
    UNUSUAL_FORM,
    hours_in,
    parse_dates,
)

LABEL_GAPS = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "?")
"""What stands for a missing label, in small letters; "none" may be the name of a class."""
GAPS = (*LABEL_GAPS, "none", "#na", "#n/a n/a", "-nan", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan")
"""What stands for a missing value; all that `pandas.read_csv` takes for one."""
NUMBER_GAPS = (*GAPS, "-", ".", "nat")
"""What does in a column of numbers or dates."""
INFINITE = tuple(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))
"""Plain numbers without a digit, in small letters."""
CLOCK = "hh:mm"
NUMBER_FORMS = ("plain", "1,234.5", "1.234,5", CLOCK)
"""How numbers may be written: as Python does, with grouped digits, with a decimal comma, as hours
and minutes (a duration may have days before them)."""

_CURRENCY_CODES = (  # of ISO 4217: those of the larger economies
    "AED|ARS|AUD|BDT|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|JPY|KES|"
    "KRW|MXN|MYR|NGN|NOK|NZD|PEN|PHP|PKR|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR"
)
_BLANK = r"[\s\x{A0}\x{2009}\x{202F}]"
_GROUP = r"'’\s\x{A0}\x{2009}\x{202F}"  # between three digits each, as the comma or the point
_EXPONENT = r"(?:[eE][+-]?\d+)?"


def _grouped(mark: str) -> str:
    """Pattern of whole numbers, whose digits one mark may group; no group begins with a zero."""
    marks = (mark, "['’]", _BLANK)
    groups = [rf"[1-9]\d{{0,2}}(?:{separator}\d{{3}})+" for separator in marks]
    return "|".join([*groups, rf"[1-9]\d?(?:{mark}\d{{2}})+{mark}\d{{3}}", r"\d+"])


_DIGITS = {
    "plain": rf"(?:\d+\.?\d*|\.\d+){_EXPONENT}",
    "1,234.5": rf"(?:(?:{_grouped(',')})(?:\.\d*)?|\.\d+){_EXPONENT}",
    "1.234,5": rf"(?:(?:{_grouped('[.]')})(?:,\d*)?|,\d+){_EXPONENT}",
}
_POWERS = {
    "k": 3, "tsd": 3, "thousand": 3, "tausend": 3, "lakh": 5, "lakhs": 5, "mio": 6, "mln": 6,
    "mn": 6, "million": 6, "millions": 6, "millionen": 6, "crore": 7, "crores": 7, "mrd": 9,
    "bn": 9, "bln": 9, "billion": 9, "billions": 9, "milliarden": 9, "tn": 12, "trillion": 12,
}  # fmt: skip
"""Powers of ten that words after a number stand for, in small letters."""
_LETTER_POWERS = {"M": 6, "B": 9}
_CURRENCY_POWERS = {"m": 6, "b": 9}  # metres and bytes, unless a currency stands before the number
_UNIT_MARKS = "%‰°$'\"′″/^.·² ³"
# Classes of few ranges: those of all letters take pyarrow 40 ms to compile, at every call.
_LETTER = r"A-Za-z[:^ascii:]"
_BEFORE = rf"[A-Za-z]{{0,3}}\p{{Sc}}|{_CURRENCY_CODES}|Rs\.?|kr\.?|Fr\.?"
_AFTER = rf"[{_LETTER}%$'\"][{_LETTER}%$/^.]*[23]?(?: [{_LETTER}$]+)?"
_ACCOUNTING = r"^([^()\d]*)\(([^()+\-−]*\d[^()+\-−]*)\)$"  # (12.50) and $(12.50) are negative
NUMBER_MARK = r"\d"  # what numbers of all forms have
_DIGIT = re.compile(NUMBER_MARK, re.ASCII)
_ORDINALS = {"st", "nd", "rd", "th"}
_LEADING_ZERO = rf"^[+-]?0[{_GROUP}\d]*\d$"
_MAYBE_GROUPED = r"^\s*(?:[+-]?[1-9](?:\d*|\d{0,2}\.\d{3})|0|\D*)\s*$"
_D, _M, _Y = r"(?:0[1-9]|[12]\d|3[01])", "(?:0[1-9]|1[0-2])", r"(?:19|20)\d\d"
_HOURS = r"(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?"
_DATE_LIKE = {
    "2024-01-31": rf"^(?:{_Y}{_M}{_D}(?:{_HOURS})?|(?:{_D}|[1-9]){_M}{_Y}|(?:{_M}|[1-9]){_D}{_Y}"
    rf"|\d{{1,2}}{_M}{_D})$",
    "2024-01": rf"^(?:{_Y}{_M}|{_Y}\.(?:{_M}|1)|(?:{_M}|[1-9])\.{_Y})$",
    "a date with its year": rf"^(?:{_D}|[1-9])\.(?:{_M}|1)$",
}
"""Numbers that may be dates, and what to write for a date. The float of 01.10 is 1.1."""
_LONG_ENOUGH = r"\d{5}|\.\d\d"  # 1.1 and 2.1 alone are no dates
_WHOLE = r"^([+-]?\d+)\.0+$"
_CELLS_TRIED = 100  # different cells that a rule is tried on before it is applied to all
# A column of numbers or dates may have a few other cells, which are taken for missing values: up to
# this share of its rows, if it has so many different numbers or dates.
_MAX_UNREADABLE_SHARE = 0.05
_MIN_READABLE_CELLS = 20


@lru_cache(maxsize=8)
def _as_array(words: tuple[str, ...]) -> pa.Array:
    return pa.array(words)


@dataclass(frozen=True)
class Cells:
    """A column of text.

    Attributes
    ----------
    distinct : pyarrow array of strings
        The different cells, without blanks around them, in order of appearance.
    codes : ndarray of int64
        Which of them each row holds; −1 for a null.
    """

    distinct: pa.Array
    codes: np.ndarray

    @classmethod
    def of(cls, text: pa.Array) -> Cells:
        """Encode a column of strings."""
        encoded = text.dictionary_encode()
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        trimmed = pc.utf8_trim_whitespace(encoded.dictionary)
        if trimmed.equals(encoded.dictionary):
            return cls(trimmed, codes)
        again = trimmed.dictionary_encode()
        place = np.append(again.indices.to_numpy(zero_copy_only=False), -1).astype(np.int64)
        return cls(again.dictionary, place[codes])

    @cached_property
    def counts(self) -> np.ndarray:
        """Rows of each of the different cells."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.distinct))

    @cached_property
    def texts(self) -> list[str]:
        """The different cells as strings of Python."""
        return self.distinct.to_pylist()

    @cached_property
    def _lower(self) -> list[str]:
        return [text.lower() for text in self.texts]

    @cached_property
    def _word_masks(self) -> dict[tuple[str, ...], np.ndarray]:
        return {}

    def are_words(self, words: tuple[str, ...]) -> np.ndarray:
        """Which of the different cells are one of some words, which are in small letters."""
        if words not in self._word_masks:
            searched = frozenset(words)
            self._word_masks[words] = np.array([text in searched for text in self._lower], bool)
        return self._word_masks[words]

    def present(self, gaps: tuple[str, ...]) -> np.ndarray:
        """Which of the different cells are not missing."""
        return ~self.are_words(gaps)

    @cached_property
    def have_digits(self) -> np.ndarray:
        """Which of the different cells have a digit, as all finite numbers do."""
        return np.array([_DIGIT.search(text) is not None for text in self.texts], bool)

    def rows(self, values: np.ndarray) -> np.ndarray:
        """Values of the different cells, and one more for nulls, as those of the rows."""
        return values[self.codes]


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written: see `NUMBER_FORMS`; and their unit."""

    form: str = "plain"
    unit: str = ""


@dataclass(frozen=True)
class Text:
    """A column of strings, and how it reads: computed when asked for, and once."""

    array: pa.Array

    @cached_property
    def cells(self) -> Cells:
        """The different cells."""
        return Cells.of(self.array)

    @cached_property
    def plain(self) -> np.ndarray | None:
        """All cells as numbers; None unless all are plain numbers or missing."""
        numbers = _cast(self.array)
        if numbers is None:
            gaps = pc.is_in(self.array, _as_array(("", "NA", "NaN")))  # the most frequent ones
            numbers = _cast(pc.if_else(gaps, None, self.array)) if gaps.true_count else None
        return numbers

    @cached_property
    def has_codes(self) -> bool:
        """Whether a cell is a code such as 01067, whose zeros a number would not keep."""
        if self.plain is None:
            return _have_leading_zeros(self.cells.distinct)
        zero = pc.fill_null(pc.starts_with(self.array, "0"), False).to_numpy(zero_copy_only=False)
        places = np.flatnonzero(zero & (self.plain == np.floor(self.plain)))
        return _have_leading_zeros(self.array.take(pa.array(places)))

    @cached_property
    def _remembered(self) -> dict[str, Any]:
        return {}

    def _parsed(self, form: str) -> tuple[np.ndarray, pa.Array, np.ndarray]:
        if form not in self._remembered:
            self._remembered[form] = numbers_in(self.cells.distinct, form)
        return self._remembered[form]

    def numbers(self, how: NumberFormat) -> np.ndarray:
        """The different cells as numbers of one format and unit; NaN where they are not such."""
        values, units, _ = self._parsed(how.form)
        right = pc.is_in(units, pa.array(["", how.unit])).to_numpy(zero_copy_only=False)
        return np.where(right, values, np.nan)

    def units(self, form: str) -> pa.Array:
        """Units beside the numbers of the different cells."""
        return self._parsed(form)[1]

    def dates(self, form: str) -> np.ndarray:
        """The different cells as dates of one format, or of ISO 8601; NaT where they are not.

        Text that comes where dates had a type is read in the formats that leave no doubt, each
        cell by itself: what a cell means must not depend on the others that come with it.
        """
        if form not in self._remembered:
            forms = CERTAIN_FORMS if form == TYPED else dict.fromkeys((form, ISO))
            dates = np.full(len(self.cells.distinct), np.datetime64("NaT", "s"))
            for one in forms:
                if np.isnat(dates).any():
                    dates = np.where(np.isnat(dates), parse_dates(self.cells.distinct, one), dates)
            self._remembered[form] = dates
        return self._remembered[form]

    @cached_property
    def _first_cells(self) -> pa.Array:
        """The first different cells that are not missing."""
        places = np.flatnonzero(self.cells.present(NUMBER_GAPS))[:_CELLS_TRIED]
        return self.cells.distinct.take(pa.array(places))

    @cached_property
    def _half_match(self) -> dict[str, bool]:
        return {}

    def _matches_half(self, form: str) -> bool:
        """Whether half of the first different cells have a form, or match a pattern."""
        if form not in self._half_match:
            cells = self._first_cells
            if form in NUMBER_FORMS:
                matched = ~np.isnan(numbers_in(cells, form)[0])
            elif form in DATE_FORMS:
                matched = ~np.isnat(parse_dates(cells, form))
            else:
                matched = pc.match_substring_regex(cells, form).to_numpy(zero_copy_only=False)
            self._half_match[form] = bool(2 * matched.sum() >= len(cells))
        return self._half_match[form]

    def is_promising(self, form: str) -> bool:
        """Whether half of the first different cells are written in a form of numbers or dates.

        What all of these have is looked for first, which is cheaper than the form itself.
        """
        mark = DATE_MARK if form in DATE_FORMS else NUMBER_MARK
        return self._matches_half(mark) and self._matches_half(form)

    def __len__(self) -> int:
        return len(self.array)


def _cast(text: pa.Array) -> np.ndarray | None:
    try:
        return text.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None


def _have_leading_zeros(text: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, _LEADING_ZERO)).as_py())


def numbers_in(cells: pa.Array, form: str) -> tuple[np.ndarray, pa.Array, np.ndarray]:
    """Cells as numbers, NaN where they are not written so; their units, and powers of ten."""
    no_powers = np.zeros(len(cells), np.int64)
    if form == CLOCK:
        hours = hours_in(cells)
        return hours, pa.array(np.where(np.isnan(hours), "", "hours"), pa.string()), no_powers
    cells = pc.replace_substring_regex(cells, _ACCOUNTING, r"-\1\2")
    sign, blank = r"[+\-−]?", f"{_BLANK}*"
    pattern = (
        rf"^(?P<sign>{sign}){blank}(?P<before>{_BEFORE})?{blank}(?P<second>{sign}){blank}"
        rf"(?P<digits>{_DIGITS[form]}){blank}(?P<after>{_AFTER})?$"
    )
    groups = pc.extract_regex(cells, pattern)
    if groups.null_count == len(cells):
        return np.full(len(cells), np.nan), pa.nulls(len(cells), pa.string()), no_powers
    parts = dict(zip((field.name for field in groups.type), groups.flatten(), strict=True))
    written = pc.binary_join_element_wise(parts["before"], parts["after"], "\t")
    encoded = written.dictionary_encode()
    names = [split_unit(*name.split("\t")) for name in encoded.dictionary.to_pylist()]
    places = pc.fill_null(encoded.indices, len(names)).to_numpy(zero_copy_only=False)
    units = pa.array([*(name and name[0] for name in names), None], pa.string()).take(places)
    powers = np.array([*(name[1] if name else 0 for name in names), 0])[places]
    digits = parts["digits"]
    if form != "plain":
        comma = form == "1.234,5"
        digits = pc.replace_substring_regex(digits, rf"[{'.' if comma else ','}{_GROUP}]", "")
        digits = pc.replace_substring(digits, ",", ".") if comma else digits
    signs = pc.binary_join_element_wise(parts["sign"], parts["second"], "")
    wrong = pc.or_(pc.is_null(units), pc.equal(pc.utf8_length(signs), 2))  # --5 is no number
    if powers.any():  # written behind the digits, so that 1.1M is rounded as 1.1e6 is
        scaled = pc.binary_join_element_wise(digits, "e", pa.array(powers).cast(pa.string()), "")
        digits = pc.if_else(pa.array(powers > 0), scaled, digits)
        wrong = pc.or_kleene(wrong, pc.match_substring_regex(digits, "[eE].*e"))
    digits = pc.if_else(wrong, None, digits)
    values = digits.cast(pa.float64()).to_numpy(zero_copy_only=False)
    negative = pc.fill_null(pc.is_in(signs, pa.array(["-", "−"])), False)
    return np.where(negative.to_numpy(zero_copy_only=False), -values, values), units, powers


@lru_cache(maxsize=1024)
def split_unit(before: str, after: str) -> tuple[str, int] | None:
    """The unit of what stands before and after a number, and a power of ten; None if neither.

    ("€", "Mio.") is ("€", 6), ("", "kg") is ("kg", 0); "½" and "am" are parts of the number.
    """
    first, _, rest = after.partition(" ")
    word = first.rstrip(".")
    power = _POWERS.get(word.lower(), 0) or _LETTER_POWERS.get(word, 0)
    if not power and before:
        power = _CURRENCY_POWERS.get(word, 0)
    unit = before + (rest if power else after)
    if word.lower().replace(".", "") in ("am", "pm") or not all(map(_in_units, unit[:-1])):
        return None
    if unit[-1:] in tuple("23²³"):  # m2
        return (unit, power) if unit[-2:-1].isalpha() else None
    return (unit.rstrip("."), power) if not unit or _in_units(unit[-1]) else None


def _in_units(mark: str) -> bool:
    if mark.isnumeric():
        return mark in "²³"
    return mark.isalpha() or mark in _UNIT_MARKS or unicodedata.category(mark) == "Sc"


def find_number_format(column: Text, *, codes_too: bool = False) -> NumberFormat | None:
    """How a column writes its numbers; None if it does not hold numbers.

    A few other cells among many numbers are taken for missing values. Codes with leading zeros are
    not numbers, unless `codes_too`, and neither are cells that all stand in brackets.
    """
    if column.has_codes and not codes_too:
        return None
    if column.plain is not None:
        return NumberFormat()
    present, best = column.cells.present(NUMBER_GAPS), None
    counts = column.cells.counts * present
    if _all_in_brackets(column, present):
        return None
    for form in NUMBER_FORMS:
        if not column.is_promising(form):
            continue
        how = NumberFormat(form, _most_frequent(column.units(form), counts))
        readable = present & ~np.isnan(column.numbers(how))
        bad = int(counts[~readable].sum())
        if best is None or bad < best[0]:
            best = bad, int(readable.sum()), how
        if bad == 0:
            break
    return best[2] if best is not None and _accepted(*best[:2], int(counts.sum())) else None


def _all_in_brackets(column: Text, present: np.ndarray) -> bool:
    bracketed = pc.match_substring_regex(column.cells.distinct, _ACCOUNTING)
    return bool(present.any() and bracketed.to_numpy(zero_copy_only=False)[present].all())


def _accepted(bad: int, good: int, rows: int) -> bool:
    """Whether so few rows cannot be read that they are gaps; `good` counts different cells."""
    return bad == 0 or (good >= _MIN_READABLE_CELLS and bad <= _MAX_UNREADABLE_SHARE * rows)


def _most_frequent(units: pa.Array, counts: np.ndarray) -> str:
    """The unit that most rows have; empty if none has any."""
    encoded = pc.fill_null(units, "").dictionary_encode()
    names = encoded.dictionary.to_pylist()
    rows = np.bincount(encoded.indices.to_numpy(), counts, len(names))
    named = [(count, name) for count, name in zip(rows.tolist(), names) if name]
    return max(named)[1] if named else ""


def number_doubts(column: Text, how: NumberFormat) -> list[str]:
    """What else the numbers of a column may mean, as ends of sentences about the column.

    Marks that may be those of decimals or of thousands, multipliers, dates without separators.
    """
    doubts = []
    some = Text(column.array.slice(0, _CELLS_TRIED))
    for form in () if _marks_are_certain(some, how) else ("1,234.5", "1.234,5"):
        other = NumberFormat(form, how.unit)
        if form == how.form or _differing(some, how, other) is None:
            continue
        place = _differing(column, how, other)
        if place is None or place < 0:
            continue
        cell = column.cells.texts[place]
        value, other_value = column.numbers(how)[place], column.numbers(other)[place]
        mark = "dot" if "." in cell else "comma"
        doubts.append(
            f"holds cells such as {cell!r}, whose {mark} is read as a decimal mark: if it "
            "separates thousands, remove it"
            if abs(value) < abs(other_value)
            else f"holds cells such as {cell!r}, whose {mark} is read as separating thousands: if "
            "it is a decimal comma, write a dot"
        )
        break
    if how.form == CLOCK and not has_durations(column):
        doubts.append("holds times, read as hours: give a time of day a periodic term of period 24")
    return [*doubts, *(date_like_doubts(column) if how == NumberFormat() else [])]


def multiplier_doubts(column: Text, how: NumberFormat) -> list[str]:
    """What is doubtful about numbers with a multiplier, such as 1.2K: the end of a sentence."""
    if column.plain is not None:
        return []
    values, powers = column.numbers(how), column._parsed(how.form)[2]
    scaled = (powers > 0) & ~np.isnan(values)
    if not scaled.any():
        return []
    place = int(np.argmax(scaled))
    return [
        f"holds cells such as {column.cells.texts[place]!r}, read as {values[place]:.15g}, and "
        "numbers without a multiplier as they are: write numbers out if that is wrong"
    ]


def _marks_are_certain(some: Text, how: NumberFormat) -> bool:
    """Whether plain cells show that a dot is a decimal point; hours have no such marks."""
    if some.plain is None or how.form == CLOCK:
        return how.form == CLOCK
    return pc.all(pc.match_substring_regex(some.array, _MAYBE_GROUPED)).as_py() is False


def _differing(column: Text, how: NumberFormat, other: NumberFormat) -> int | None:
    """The first cell that another format reads as another number; −1 if there is none.

    None if the other format does not read all cells.
    """
    values, others = column.numbers(how), column.numbers(other)
    readable = column.cells.present(NUMBER_GAPS) & ~np.isnan(values)
    if np.isnan(others[readable]).any():
        return None
    differ = readable & (others != values)
    return int(np.argmax(differ)) if differ.any() else -1


def date_like_doubts(column: Text) -> list[str]:
    """Of numbers that may all be dates, what to write for a date: the end of a sentence."""
    dates = list(_DATE_LIKE)
    for part in (Text(column.array.slice(0, _CELLS_TRIED)), column):
        numbers = ~np.isnan(part.numbers(NumberFormat()))
        cells = part.cells.distinct.filter(pa.array(numbers))
        cells = pc.replace_substring_regex(cells, _WHOLE, r"\1")
        dates = [date for date in dates if len(cells) and _all_match(cells, _DATE_LIKE[date])]
        if not dates:
            return []
    if not pc.any(pc.match_substring_regex(cells, _LONG_ENOUGH)).as_py():
        return []
    cell = cells[0].as_py()
    return [f"holds cells such as {cell!r}, read as numbers: write {dates[0]} for a date"]


def _all_match(cells: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells, pattern)).as_py())


def bare_numbers(column: Text, how: NumberFormat) -> list[str]:
    """What is doubtful about numbers without the unit that others have: the end of a sentence."""
    if not how.unit or how.form == CLOCK or column.plain is not None:
        return []
    values = column.numbers(how)
    bare = pc.fill_null(pc.equal(column.units(how.form), ""), False)
    bare = bare.to_numpy(zero_copy_only=False) & ~np.isnan(values) & (values != 0)
    if not bare.any():
        return []
    return [
        f"holds {_others(column, bare)} without the unit {how.unit!r} that other cells have: write "
        "the unit, or convert these numbers"
    ]


def find_date_format(column: Text) -> tuple[str, bool] | None:
    """How a column writes its dates, and whether 3/4/2025 may be meant either way; None if not."""
    present = column.cells.present(NUMBER_GAPS)
    counts = column.cells.counts * present
    if not present.any():
        return None
    candidates = []
    for form in DATE_FORMS:
        if not column.is_promising(form):
            continue
        readable = present & ~np.isnat(column.dates(form))
        bad = int(counts[~readable].sum())
        if _accepted(bad, int(readable.sum()), int(counts.sum())):
            candidates.append((bad, form))
    if not candidates:
        return None
    least = min(bad for bad, _ in candidates)
    first, *others = [form for bad, form in candidates if bad == least]
    # Of two NaT, none equals the other.
    differ = [(column.dates(form) != column.dates(first))[present].any() for form in others]
    return first, any(d for d, form in zip(differ, others) if form != UNUSUAL_FORM)


def why_category(column: Text) -> str:
    """What a column that is read as a category could be taken for: numbers or dates, and others.

    Empty where nothing is worth saying.
    """
    present = column.cells.present(NUMBER_GAPS)
    counts = column.cells.counts * present
    if column.has_codes or not present.any():
        return ""
    if _all_in_brackets(column, present):
        return "numbers in brackets alone, whose sign is not clear"
    for form in NUMBER_FORMS:
        if not column.is_promising(form):
            continue
        values, units = column._parsed(form)[:2]
        readable = present & ~np.isnan(values)
        if readable.sum() == present.sum():
            named = set(units.filter(pa.array(readable)).to_pylist()) - {""}
            several = len(named) > 1 and not named <= _ORDINALS
            return f"numbers in several units ({quoted(sorted(named))})" if several else ""
        if _mostly(readable, counts):
            return f"numbers, and {_others(column, present & ~readable)} beside them"
    for form in DATE_FORMS:
        if not column.is_promising(form):
            continue
        readable = present & ~np.isnat(column.dates(form))
        if _mostly(readable, counts):
            return f"dates, and {_others(column, present & ~readable)} beside them"
    return ""


def _mostly(readable: np.ndarray, counts: np.ndarray) -> bool:
    """Whether half of the rows, and many different cells, can be read."""
    return bool(
        readable.sum() >= _MIN_READABLE_CELLS and 2 * counts[readable].sum() >= counts.sum()
    )


def _others(column: Text, cells: np.ndarray) -> str:
    return quoted(column.cells.distinct.filter(pa.array(cells)).slice(0, 10).to_pylist())


def is_text(column: Text) -> bool:
    """Whether a column has a cell that is neither a plain number nor missing."""
    if column.plain is not None:
        return False
    unreadable = np.isnan(column.numbers(NumberFormat()))
    return bool((unreadable & column.cells.present(NUMBER_GAPS)).any())


def has_durations(column: Text) -> bool:
    """Whether a column of times holds durations, such as 0 days 00:01:00, not times of a day."""
    return bool(pc.any(pc.match_substring(column.cells.distinct, "day")).as_py())


def level_names(cells: Cells) -> list[str]:
    """Names of levels: 3 for 3.0, which is how files with gaps write whole numbers."""
    if not cells.have_digits.any():
        return cells.texts
    return pc.replace_substring_regex(cells.distinct, _WHOLE, r"\1").to_pylist()


def quoted(cells: Iterable[str], most: int = 3) -> str:
    """Some cells, for a message."""
    cells = list(cells)
    shown = ", ".join(repr(re.sub(r"\s+", " ", cell)[:30]) for cell in cells[:most])
    return f"{shown}, …" if len(cells) > most else shown
