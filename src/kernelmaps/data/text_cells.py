"""Cells of text: what stands for a missing value, numbers as people write them, dates, levels.

A column is encoded first (`Cells`): each rule looks at the different cells only. pyarrow applies
patterns to all of them at once; words are compared by Python, which takes less time than a call of
pyarrow where a column has few levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._util.threads import cached_property
from .dates import DATE_FORMS, DATE_MARK, ISO, hours_in, parse_dates

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
_GROUP = r"'’\s\x{A0}\x{2009}\x{202F}"  # beside the comma or the point, between three digits each
_DIGITS = {
    "plain": r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?",
    "1,234.5": rf"(?:\d{{1,3}}(?:[,{_GROUP}]\d{{3}})+|\d+)(?:\.\d*)?",
    "1.234,5": rf"(?:\d{{1,3}}(?:[.{_GROUP}]\d{{3}})+|\d+)(?:,\d*)?",
}
# Classes of few ranges: those of all letters take pyarrow 40 ms to compile, at every call.
_LETTER = r"A-Za-z[:^ascii:]"
_BEFORE = rf"[A-Za-z]{{0,3}}\p{{Sc}}|{_CURRENCY_CODES}|Rs\.?|kr\.?|Fr\.?"
_AFTER = rf"[{_LETTER}%$'\"][{_LETTER}%$/^.]*[23]?(?: [{_LETTER}]+)?"
_ACCOUNTING = r"^([^()\d]*)\(([^()+\-−]*\d[^()+\-−]*)\)$"  # (12.50) and $(12.50) are negative
NUMBER_MARK = r"\d"  # what numbers of all forms have
_DIGIT = re.compile(NUMBER_MARK, re.ASCII)
_ORDINALS = {"st", "nd", "rd", "th"}
_LEADING_ZERO = r"^[+-]?0\d+$"
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

    def _numbers_and_units(self, form: str) -> tuple[np.ndarray, pa.Array]:
        if form not in self._remembered:
            self._remembered[form] = numbers_in(self.cells.distinct, form)
        return self._remembered[form]

    def numbers(self, how: NumberFormat) -> np.ndarray:
        """The different cells as numbers of one format and unit; NaN where they are not such."""
        return _of_unit(*self._numbers_and_units(how.form), how.unit)

    def units(self, form: str) -> pa.Array:
        """Units beside the numbers of the different cells."""
        return self._numbers_and_units(form)[1]

    def dates(self, form: str) -> np.ndarray:
        """The different cells as dates of one format, or of ISO 8601; NaT where they are not."""
        if form not in self._remembered:
            dates = parse_dates(self.cells.distinct, form)
            if form != ISO and np.isnat(dates).any():
                dates = np.where(np.isnat(dates), parse_dates(self.cells.distinct, ISO), dates)
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


def _of_unit(values: np.ndarray, units: pa.Array, unit: str) -> np.ndarray:
    right = pc.is_in(units, pa.array(["", unit])).to_numpy(zero_copy_only=False)
    return np.where(right, values, np.nan)


def _cast(text: pa.Array) -> np.ndarray | None:
    try:
        return text.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None


def _have_leading_zeros(text: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, _LEADING_ZERO)).as_py())


def numbers_in(cells: pa.Array, form: str) -> tuple[np.ndarray, pa.Array]:
    """Cells as numbers, NaN where they are not written so, and their units."""
    if form == CLOCK:
        hours = hours_in(cells)
        return hours, pa.array(np.where(np.isnan(hours), "", "hours"), pa.string())
    cells = pc.replace_substring_regex(cells, _ACCOUNTING, r"-\1\2")
    sign, blank = r"[+\-−]?", f"{_BLANK}*"
    pattern = (
        rf"^(?P<sign>{sign}){blank}(?P<before>{_BEFORE})?{blank}(?P<second>{sign}){blank}"
        rf"(?P<digits>{_DIGITS[form]}){blank}(?P<after>{_AFTER})?$"
    )
    groups = pc.extract_regex(cells, pattern)
    if groups.null_count == len(cells):
        return np.full(len(cells), np.nan), pa.nulls(len(cells), pa.string())
    parts = dict(zip((field.name for field in groups.type), groups.flatten(), strict=True))
    digits = parts["digits"]
    if form != "plain":
        comma = form == "1.234,5"
        digits = pc.replace_substring_regex(digits, rf"[{'.' if comma else ','}{_GROUP}]", "")
        digits = pc.replace_substring(digits, ",", ".") if comma else digits
    values = digits.cast(pa.float64()).to_numpy(zero_copy_only=False)
    signs = [pc.fill_null(pc.is_in(parts[key], pa.array(["-", "−"])), False) for key in
             ("sign", "second")]  # fmt: skip
    negative = pc.xor(*signs).to_numpy(zero_copy_only=False)
    units = pc.binary_join_element_wise(parts["before"], parts["after"], "")
    return np.where(negative, -values, values), units


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
    forms = [form for bad, form in candidates if bad == least]
    return forms[0], len(forms) > 1


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
        values, units = column._numbers_and_units(form)
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
