"""Cells of text: what stands for a missing value, numbers as people write them, dates, levels.

A column is encoded first (`DistinctCells`): each rule looks at the different cells only, and
pyarrow applies patterns to all of them at once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from .._util.arguments import argument
from .._util.lazy import pa, pc
from .._util.threads import cached_property
from .dates import (
    CERTAIN_FORMS,
    DATE_FORMS,
    ISO,
    TYPED,
    UNUSUAL_FORM,
    extract_parts,
    hours_in,
    parse_dates,
)

LABEL_GAPS = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "?", "\\n", "(null)")
"""What stands for a missing label, in small letters; "none" may be the name of a class."""
GAPS = (
    *LABEL_GAPS, "none", "#na", "#n/a n/a", "-nan", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan",
)  # fmt: skip
"""What stands for a missing value: what pandas takes for one in text, and databases write."""
NUMBER_GAPS = (*GAPS, "-", ".", "nat")
"""What does in a column of numbers or dates."""
INFINITE = tuple(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))
"""Plain numbers without a digit, in small letters."""
TRUTH = {"0": "False", "1": "True"}
"""Booleans as numbers."""
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


def _grouped_digits(mark: str) -> str:
    """Pattern of whole numbers, whose digits one mark may group; no group begins with a zero."""
    marks = (mark, "['’]", _BLANK)
    groups = [rf"[1-9]\d{{0,2}}(?:{separator}\d{{3}})+" for separator in marks]
    return "|".join([*groups, rf"[1-9]\d?(?:{mark}\d{{2}})+{mark}\d{{3}}", r"\d+"])


_DIGITS = {
    "plain": rf"(?:\d+\.?\d*|\.\d+){_EXPONENT}",
    "1,234.5": rf"(?:(?:{_grouped_digits(',')})(?:\.\d*)?|\.\d+){_EXPONENT}",
    "1.234,5": rf"(?:(?:{_grouped_digits('[.]')})(?:,\d*)?|,\d+){_EXPONENT}",
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
_ORDINALS = {"st", "nd", "rd", "th"}
_LEADING_ZERO = rf"^[+-]?0[{_GROUP}\d]*\d$"
_D, _M, _Y = r"(?:0[1-9]|[12]\d|3[01])", "(?:0[1-9]|1[0-2])", r"(?:19|20)\d\d"
_HOURS = r"(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?"
_MAYBE_GROUPED = r"\D*(?:[1-9]\d{0,2}[.,]\d{3}|\d+)\D*[23]?"
"""Numbers whose mark may be that of thousands or of decimals, and those without any."""
_DATE_LIKE = {
    "2024-01-31": rf"{_Y}{_M}{_D}(?:{_HOURS})?|(?:{_D}|[1-9]){_M}{_Y}|(?:{_M}|[1-9]){_D}{_Y}"
    rf"|\d{{1,2}}{_M}{_D}",
    "2024-01": rf"{_Y}{_M}|{_Y}\.(?:{_M}|1)|(?:{_M}|[1-9])\.{_Y}",
    "a date with its year": rf"(?:{_D}|[1-9])\.(?:{_M}|1)",
}
"""Numbers that may be dates, and what to write for a date. The float of 01.10 is 1.1."""
_LONG_ENOUGH = r"\d{5}|\.\d\d"  # 1.1 and 2.1 alone are no dates
_WHOLE = r"^([+-]?\d+)\.0+$"
_DATE_MARK = r"[-/., A-Za-z]\d"
_CELLS_TRIED = 100  # different cells that a rule is tried on before it is applied to all
# A column of numbers or dates may have a few other cells, which are taken for missing values: up to
# this share of its rows, if it has so many different numbers or dates.
_MAX_UNREADABLE_SHARE = 0.05
_MIN_READABLE_CELLS = 20
_MIN_NUMBERS_BESIDE_TOKEN = 5  # as a scale of ratings has


def _match(cells: pa.Array, pattern: str) -> np.ndarray:
    """Which cells match a pattern; a null does not."""
    return np.asarray(pc.fill_null(pc.match_substring_regex(cells, pattern), False))


@dataclass(frozen=True)
class DistinctCells:
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
    def encode(cls, text: pa.Array) -> DistinctCells:
        """Encode a column of strings."""
        encoded = pc.utf8_trim_whitespace(text).dictionary_encode()
        codes = np.asarray(pc.fill_null(encoded.indices, -1))
        return cls(encoded.dictionary, codes.astype(np.int64))

    @cached_property
    def counts(self) -> np.ndarray:
        """Rows of each of the different cells."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.distinct))

    def are_words(self, words: tuple[str, ...]) -> np.ndarray:
        """Which of the different cells are one of some words, which are in small letters."""
        return np.asarray(pc.is_in(pc.utf8_lower(self.distinct), pa.array(words)))

    def present(self, gaps: tuple[str, ...]) -> np.ndarray:
        """Which of the different cells are not missing."""
        return ~self.are_words(gaps)

    def select(self, mask: np.ndarray) -> pa.Array:
        """Some of the different cells."""
        return self.distinct.filter(pa.array(mask))

    def rows(self, values: np.ndarray) -> np.ndarray:
        """Values of the different cells as those of the rows; NaN or NaT for nulls."""
        missing = "NaT" if values.dtype.kind == "M" else "nan"
        return np.append(values, np.array(missing, values.dtype))[self.codes]


@dataclass(frozen=True)
class Categories(DistinctCells):
    """A column of declared categories: cells are its levels, of which two may have one name."""

    ordered: bool = False

    @property
    def cells(self) -> DistinctCells:
        return self

    def __len__(self) -> int:
        return len(self.codes)


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
    def cells(self) -> DistinctCells:
        """The different cells."""
        return DistinctCells.encode(self.array)

    @cached_property
    def plain(self) -> np.ndarray | None:
        """All cells as numbers; None unless all are plain numbers or missing."""
        numbers = _cast(self.array)
        if numbers is None:
            gaps = pc.is_in(self.array, pa.array(("", "NA", "NaN")))  # the most frequent ones
            numbers = _cast(pc.if_else(gaps, None, self.array)) if gaps.true_count else None
        return numbers

    @cached_property
    def has_codes(self) -> bool:
        """Whether a cell is a code such as 01067, whose zeros a number would not keep."""
        if self.plain is None:
            return bool(_match(self.cells.distinct, _LEADING_ZERO).any())
        zero = np.asarray(pc.fill_null(pc.starts_with(self.array, "0"), False))
        places = np.flatnonzero(zero & (self.plain == np.floor(self.plain)))
        return bool(_match(self.array.take(pa.array(places)), _LEADING_ZERO).any())

    @cached_property
    def _parsed_cells(self) -> dict[str, Any]:
        return {}

    def parse(self, form: str) -> tuple[np.ndarray, pa.Array, np.ndarray]:
        """The different cells as numbers of a form, their units, and powers of ten."""
        if form not in self._parsed_cells:
            self._parsed_cells[form] = numbers_in(self.cells.distinct, form)
        return self._parsed_cells[form]

    def numbers(self, fmt: NumberFormat) -> np.ndarray:
        """The different cells as numbers of one format and unit; NaN where they are not such."""
        values, units, _ = self.parse(fmt.form)
        return np.where(np.asarray(pc.is_in(units, pa.array(["", fmt.unit]))), values, np.nan)

    def dates(self, form: str) -> np.ndarray:
        """The different cells as dates of one format, or of ISO 8601; NaT where they are not.

        Text that comes where dates had a type is read in the formats that leave no doubt, each
        cell by itself: what a cell means must not depend on the others that come with it.
        """
        if form not in self._parsed_cells:
            dates = np.full(len(self.cells.distinct), np.datetime64("NaT", "s"))
            for one in CERTAIN_FORMS if form == TYPED else dict.fromkeys((form, ISO)):
                unread = np.flatnonzero(np.isnat(dates))
                dates[unread] = parse_dates(self.cells.distinct.take(pa.array(unread)), one)
            self._parsed_cells[form] = dates
        return self._parsed_cells[form]

    @cached_property
    def number_forms(self) -> list[str]:
        """Forms of numbers that half of the first different cells are written in."""
        return self._promising(NUMBER_FORMS, r"\d", lambda *cells: numbers_in(*cells)[0])

    @cached_property
    def date_forms(self) -> list[str]:
        """Forms of dates that half of the first different cells are written in."""
        forms = self._promising(DATE_FORMS, _DATE_MARK, parse_dates)
        # Several forms in one column, which leave no doubt.
        return forms + self._promising(
            [TYPED], _DATE_MARK, lambda cells, form: Text(cells).dates(form)
        )

    def _promising(
        self, forms: Sequence[str], mark: str, parse: Callable[..., np.ndarray]
    ) -> list[str]:
        places = np.flatnonzero(self.cells.present(NUMBER_GAPS))[:_CELLS_TRIED]
        cells = self.cells.distinct.take(pa.array(places))
        if 2 * _match(cells, mark).sum() < len(cells):  # cheaper than the forms, which all have it
            return []
        return [form for form in forms if 2 * (~np.isnan(parse(cells, form))).sum() >= len(cells)]

    def __len__(self) -> int:
        return len(self.array)


def _cast(text: pa.Array) -> np.ndarray | None:
    try:
        return np.asarray(text.cast(pa.float64()))
    except pa.ArrowInvalid:
        return None


def numbers_in(cells: pa.Array, form: str) -> tuple[np.ndarray, pa.Array, np.ndarray]:
    """Cells as numbers, NaN where they are not written so; their units, and powers of ten."""
    no_powers = np.zeros(len(cells), np.int64)
    unreadable = np.full(len(cells), np.nan), pa.nulls(len(cells), pa.string()), no_powers
    if form == CLOCK:
        hours = hours_in(cells)
        return hours, pa.array(np.where(np.isnan(hours), "", "hours"), pa.string()), no_powers
    if not _match(cells, r"\d").any():  # the pattern takes milliseconds to be compiled
        return unreadable
    cells = pc.replace_substring_regex(cells, _ACCOUNTING, r"-\1\2")
    sign, blank = r"[+\-−]?", f"{_BLANK}*"
    pattern = (
        rf"^(?P<sign>{sign}){blank}(?P<before>{_BEFORE})?{blank}(?P<second>{sign}){blank}"
        rf"(?P<digits>{_DIGITS[form]}){blank}(?P<after>{_AFTER})?$"
    )
    parts, matched = extract_parts(cells, pattern)
    if not matched.any():
        return unreadable
    written = pc.binary_join_element_wise(parts["before"], parts["after"], "\t")
    encoded = written.dictionary_encode()
    names = [split_unit(*name.split("\t")) for name in encoded.dictionary.to_pylist()]
    places = np.asarray(pc.fill_null(encoded.indices, len(names)))
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
    values = np.asarray(digits.cast(pa.float64()))
    negative = np.asarray(pc.fill_null(pc.is_in(signs, pa.array(["-", "−"])), False))
    return np.where(negative, -values, values), units, powers


@lru_cache(maxsize=1024)
def split_unit(before: str, after: str) -> tuple[str, int] | None:
    """The unit of what stands before and after a number, and a power of ten; None if neither.

    ("€", "Mio.") is ("€", 6), ("", "kg") is ("kg", 0); "½" and "am" are parts of the number.
    """
    head, _, tail = after.partition(" ")
    word = head.rstrip(".")
    power = _POWERS.get(word.lower(), 0) or _LETTER_POWERS.get(word, 0)
    if not power and before:
        power = _CURRENCY_POWERS.get(word, 0)
    unit = before + (tail if power else after)
    if word.lower().replace(".", "") in ("am", "pm") or not all(map(_is_unit_mark, unit[:-1])):
        return None
    if unit[-1:] in tuple("23²³"):  # m2
        return (unit, power) if unit[-2:-1].isalpha() else None
    return (unit.rstrip("."), power) if not unit or _is_unit_mark(unit[-1]) else None


def _is_unit_mark(mark: str) -> bool:
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
    candidates: list[tuple[int, bool, NumberFormat]] = []
    for form in () if _all_in_brackets(column) else column.number_forms:
        fmt = NumberFormat(form, _most_frequent_unit(column, form))
        bad, accepted, _ = _count_unreadable(column, column.numbers(fmt))
        candidates.append((bad, accepted, fmt))
        if bad == 0:
            break
    if not candidates:
        return None
    _, accepted, fmt = min(candidates, key=itemgetter(0))
    return fmt if accepted else None


def _count_unreadable(column: Text, values: np.ndarray) -> tuple[int, bool, np.ndarray]:
    """Rows that cannot be read as values, whether they may be gaps, and which cells these are."""
    cells = column.cells
    present = cells.present(NUMBER_GAPS)
    unreadable = present & np.isnan(values)
    bad, n_good = int(cells.counts[unreadable].sum()), int((present & ~unreadable).sum())
    limit = _MAX_UNREADABLE_SHARE * cells.counts[present].sum()
    return bad, bad == 0 or (n_good >= _MIN_READABLE_CELLS and bad <= limit), unreadable


def _all_in_brackets(column: Text) -> bool:
    cells = column.cells.select(column.cells.present(NUMBER_GAPS))
    return len(cells) > 0 and bool(_match(cells, _ACCOUNTING).all())


def _most_frequent_unit(column: Text, form: str) -> str:
    """The unit that most rows have; empty if none has any."""
    encoded = pc.fill_null(column.parse(form)[1], "").dictionary_encode()
    names = encoded.dictionary.to_pylist()
    rows = np.bincount(encoded.indices.to_numpy(), column.cells.counts, len(names))
    named = [(count, name) for count, name in zip(rows.tolist(), names) if name]
    return max(named)[1] if named else ""


def number_doubts(column: Text, fmt: NumberFormat) -> list[str]:
    """What else the numbers of a column may mean, as ends of sentences about the column.

    Marks that may be those of decimals or of thousands, times, dates without separators.
    """
    if fmt.form == CLOCK:
        times = "holds times, read as hours: give a time of day a periodic term of period 24"
        return [] if _match(column.cells.distinct, "day").any() else [times]
    numbers = column.numbers(fmt) if column.plain is None else column.plain
    is_plain = fmt == NumberFormat()
    patterns = _DATE_LIKE if is_plain and may_be_dates(numbers) else {}
    if column.plain is None or pc.any(pc.match_substring(column.array, ".")).as_py():
        patterns = {"": _MAYBE_GROUPED, **patterns}
    if not patterns:
        return []
    for part in (Text(column.array.slice(0, _CELLS_TRIED)), column):
        is_number = True if part.plain is not None else ~np.isnan(part.numbers(fmt))
        cells = part.cells.select(part.cells.present(NUMBER_GAPS) & is_number)
        whole_numbers = pc.replace_substring_regex(cells, _WHOLE, r"\1")
        patterns = {
            instead: pattern
            for instead, pattern in patterns.items()
            if _match(whole_numbers if instead else cells, f"^(?:{pattern})$").all()
        }
        if not patterns or not len(cells):
            return []
    doubts = []
    marked = cells.filter(pa.array(_match(cells, "[.,]")))
    if "" in patterns and len(marked):
        cell = marked[0].as_py()
        mark, decimal = "." if "." in cell else ",", "," if fmt.form == "1.234,5" else "."
        reading, instead = (
            ("a decimal mark", "separates thousands, remove it") if mark == decimal else
            ("separating thousands", "is a decimal comma, write a dot")
        )  # fmt: skip
        doubts.append(
            f"holds cells such as {cell!r}, whose {'dot' if mark == '.' else 'comma'} is read as "
            f"{reading}: if it {instead}"
        )
    dates = [instead for instead in patterns if instead]
    if dates and _match(whole_numbers, _LONG_ENOUGH).any():
        cell = cells[0].as_py()
        doubts.append(f"holds cells such as {cell!r}, read as numbers: write {dates[0]} for a date")
    return doubts


def may_be_dates(numbers: np.ndarray) -> bool:
    """Whether the first numbers may be dates without separators, such as 20240131 and 31.12."""
    some = numbers[:_CELLS_TRIED]
    some = some[~np.isnan(some)]
    is_whole = some == np.floor(some)
    if not len(some) or not (is_whole.all() or not is_whole.any()):
        return False
    low, high = (10101, 21e12) if is_whole[0] else (1, 2100)  # 010101, 2099-12-31 23:59:59; 2099.12
    return bool(low <= some.min() and some.max() < high)


def unit_doubts(column: Text, fmt: NumberFormat) -> list[str]:
    """What is doubtful about multipliers, and about numbers without the unit that others have."""
    if column.plain is not None or fmt.form == CLOCK:
        return []
    values, (_, units, powers) = column.numbers(fmt), column.parse(fmt.form)
    doubts, readable = [], ~np.isnan(values)
    scaled = np.flatnonzero((powers > 0) & readable)
    if len(scaled):
        cell, value = column.cells.distinct[int(scaled[0])].as_py(), values[scaled[0]]
        doubts.append(
            f"holds cells such as {cell!r}, read as {value:.15g}, and numbers without a multiplier "
            "as they are: write numbers out if that is wrong"
        )
    bare = np.asarray(pc.fill_null(pc.equal(units, ""), False)) & readable & (values != 0)
    if fmt.unit and bare.any():
        doubts.append(
            f"holds {quote_cells(column.cells.select(bare))} without the unit {fmt.unit!r} that "
            "other cells have: write the unit, or convert these numbers"
        )
    return doubts


def find_date_format(column: Text) -> tuple[str, bool] | None:
    """How a column writes its dates, and whether 3/4/2025 may be meant either way; None if not."""
    present = column.cells.present(NUMBER_GAPS)
    if not present.any():
        return None
    judged = [(*_count_unreadable(column, column.dates(form)), form) for form in column.date_forms]
    accepted = [(bad, form) for bad, is_accepted, _, form in judged if is_accepted]
    if not accepted:
        return None
    least = min(bad for bad, _ in accepted)
    best, *alternatives = [form for bad, form in accepted if bad == least]
    # Of two NaT, none equals the other.
    differ = [(column.dates(form) != column.dates(best))[present].any() for form in alternatives]
    certain = (UNUSUAL_FORM, TYPED)
    return best, any(d for d, form in zip(differ, alternatives) if form not in certain)


def why_category(column: Text) -> str:
    """What a column that is read as a category could be taken for: numbers or dates, and others.

    Empty where nothing is worth saying.
    """
    cells = column.cells
    present = cells.present(NUMBER_GAPS)
    if column.has_codes or not present.any():
        return ""
    if _all_in_brackets(column):
        return "numbers in brackets alone, whose sign is not clear"
    numbers = (("numbers", column.parse(form)[0]) for form in column.number_forms)
    dates = (("dates", column.dates(form)) for form in column.date_forms)
    for k, (kind, values) in enumerate(chain(numbers, dates)):
        bad, _, unreadable = _count_unreadable(column, values)
        if not bad:
            units = column.parse(column.number_forms[k])[1].filter(pa.array(present))
            named = set(units.to_pylist()) - {""}
            several = len(named) > 1 and not named <= _ORDINALS
            return f"numbers in several units ({quote_cells(sorted(named))})" if several else ""
        is_most = 2 * bad <= cells.counts[present].sum()
        is_token = unreadable.sum() == 1  # of a scale of few numbers, one word says the same
        n_least = _MIN_NUMBERS_BESIDE_TOKEN if is_token else _MIN_READABLE_CELLS
        if is_most and (present & ~unreadable).sum() >= n_least:
            tokens = cells.select(unreadable).to_pylist()
            return f"{kind}, and {quote_cells(tokens)} {rows_of(bad)} {advice_on_tokens(tokens)}"
    return ""


def level_names(cells: DistinctCells, form: str) -> list[str]:
    """Names of levels, however they are written: 3 for 3.0, 2.5 for 2.50, True for TRUE and 1."""
    if form in ("text", "mixed"):  # files with gaps write whole numbers as 3.0
        return pc.replace_substring_regex(cells.distinct, _WHOLE, r"\1").to_pylist()
    names = [_number_name(cell) for cell in cells.distinct.to_pylist()]
    return [TRUTH.get(name, name.capitalize()) for name in names] if form == "boolean" else names


def _number_name(cell: str) -> str:
    try:
        number = int(cell) if cell.lstrip("+-").isdigit() else float(cell)
        return str(int(number)) if number == number // 1 else str(number)
    except (ValueError, OverflowError):
        return cell


def advice_on_tokens(cells: Sequence[str]) -> str:
    """How to say that cells, of which these are some, stand for missing values."""
    return f"(to name a missing value: {argument('na_values', cells[0])})"


def rows_of(count: int) -> str:
    """In how many rows a cell stands."""
    return f"in {count:,} row" if count == 1 else f"in {count:,} rows"


def quote_cells(cells: Any, limit: int = 3) -> str:
    """Some cells, for a message."""
    cells = cells.slice(0, limit + 1).to_pylist() if hasattr(cells, "to_pylist") else list(cells)
    shown = ", ".join(repr(re.sub(r"\s+", " ", cell)[:30]) for cell in cells[:limit])
    return f"{shown}, …" if len(cells) > limit else shown


def is_plain_number(cell: str) -> bool:
    """Whether a cell is a number as Python writes it."""
    try:
        return "_" not in cell and float(cell) is not None  # Python reads 1_2 as 12
    except ValueError:
        return False
