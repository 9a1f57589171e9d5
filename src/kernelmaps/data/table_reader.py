"""The one reader of tables: learns how each column is written, and reads later tables likewise.

What a column holds (numbers, categories, dates) is decided once, from the rows of a fit; the
decision is a record, `ColumnFormat`, that a model saves. A frame, a file of text and a file with
types that hold the same data are read as the same columns, bit for bit.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._util.arguments import argument as argument_in_message
from .._util.schema import SchemaError, boolean, instance, many, record, saved, text
from ..exceptions import SuspectColumnWarning, UnreadableCellWarning
from .columns import (
    Categories,
    Column,
    RawColumn,
    RawTable,
    as_text,
    categorical_columns,
    column_position,
    factorized,
    joined_raw,
    level_name,
    typed_number_doubts,
)
from .dates import (
    DATE_FORMS,
    ISO,
    PERIODS,
    TYPED,
    date_columns,
    date_doubts,
    names_of_part,
    part_name,
    varying_parts,
)
from .text_cells import (
    CLOCK,
    GAPS,
    INFINITE,
    NUMBER_FORMS,
    NUMBER_GAPS,
    Cells,
    NumberFormat,
    Text,
    bare_numbers,
    find_date_format,
    find_number_format,
    level_names,
    multiplier_doubts,
    number_doubts,
    quoted,
    why_category,
)

_FORMS = {
    "number": NUMBER_FORMS,
    "category": ("text", "mixed", "number", "boolean"),
    "date": (TYPED, *DATE_FORMS),
    "left out": ("",),
}
_PLURALS = {"number": "numbers", "category": "categories", "date": "dates"}
_FEW_ROWS = 20  # rows below which nothing is taken for an ID
# Names of IDs, and those that pandas gives to a column without a name and to an index in Parquet.
_ID = re.compile(
    r"(?i:(?:^|[_\s.-])(?:id|uuid|guid|key|index|rownames?|row|no|nr)$)|[a-z]I[dD]$"
    r"|^Unnamed: \d+$|^__index_level_\d+__$"
)
_TRUTH = {"0": "False", "1": "True"}  # booleans as numbers
# Kinds of terms whose column must hold numbers.
_CURVES = ("spline", "linear", "parametric", "periodic")
_CONSTANT = "all its values are the same"
_NUMERIC_ID = "its values are all different, and its name is that of an ID"
_DROPPED = "terms leaves it out"
_SHOWN = 5  # names in a message about columns, as in scikit-learn's


def _parts(value: Any, where: str, lengths: dict[str, int]) -> None:
    if not isinstance(value, tuple) or any(date_part not in PERIODS for date_part in value):
        raise SchemaError(f"{where} must hold parts of a date ({', '.join(PERIODS)})")


@record
class ColumnFormat:
    """What one column of a table holds, and how it is written.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "date", "left out"}
    form : str
        Of numbers: "plain", "1,234.5" (digits may be grouped), "1.234,5" (decimal comma) or "hh:mm"
        (hours; durations, too). Of categories: "text", "mixed" (text, of which some levels are
        numbers), "number" (2.50 and 2.5 are one level) or "boolean". Of dates: "typed", or how text
        writes them.
    unit : str
        Currency, percent sign or unit of measurement beside the numbers.
    parts : tuple of str
        Parts of a date that are features beside its trend; see `PERIODS`.
    reason : str
        Why the column is left out.
    """

    name: str = saved(text())
    kind: str = saved(text(tuple(_FORMS)))
    form: str = saved(text(), default="")
    unit: str = saved(text(), default="")
    parts: tuple[str, ...] = saved(_parts, default=())
    reason: str = saved(text(), default="")

    def _check_state(self) -> None:
        if self.form not in _FORMS[self.kind]:
            raise SchemaError(f"column {self.name!r} has the unknown format {self.form!r}")

    @property
    def features(self) -> list[str]:
        """Names of the columns that it is read as."""
        if self.kind == "left out":
            return []
        return [self.name, *(part_name(self.name, date_part) for date_part in self.parts)]

    @property
    def names_rows(self) -> bool:
        """Whether it is left out because its values name the rows."""
        return self.kind == "left out" and self.reason not in (_CONSTANT, _DROPPED)


class ColumnKindError(ValueError):
    """A column holds other things than it did in fit.

    Attributes
    ----------
    column : str
        Its name.
    """

    def __init__(self, owner: str, how: ColumnFormat, what: str) -> None:
        super().__init__(
            f"{owner}: column {how.name!r} held {_PLURALS[how.kind]} in fit, and now holds {what}. "
            "Convert it, or leave it out before fitting."
        )
        self.column = how.name


@dataclass
class ReadingNotes:
    """What was not as expected in tables that were read, block by block or at once.

    Attributes
    ----------
    unexpected : list of str
        Columns that were not there in fit; they were ignored.
    unreadable : dict of str to dict
        Cells that were counted as missing, by column.
    kinds : dict of str to str
        Kinds of these columns.
    refuses : bool
        Whether a column is refused when most of its cells, so far, could not be read.
    doubts : dict of str to str
        What else the cells of a column may mean, by column.
    """

    unexpected: list[str] = field(default_factory=list)
    unreadable: dict[str, dict[str, None]] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    refuses: bool = True
    _readable: dict[str, list[int]] = field(default_factory=dict)

    def add(self, column: ColumnFormat, bad: int, good: int, examples: Iterable[str]) -> bool:
        """Count cells of a column; whether they are accepted."""
        counts = self._readable.setdefault(column.name, [0, 0])
        counts[0] += bad
        counts[1] += good
        if bad:
            self.kinds[column.name] = column.kind
            self.unreadable.setdefault(column.name, {}).update(dict.fromkeys(examples))
        return counts[0] <= counts[1] or not self.refuses

    @property
    def remarks(self) -> list[str]:
        """Sentences about cells that were counted as missing."""
        return [
            f"column {name!r} holds {_PLURALS[self.kinds[name]]}: {quoted(cells)} counted as "
            "missing"
            for name, cells in self.unreadable.items()
        ]

    def warn(self, owner: str, stacklevel: int = 2) -> None:
        """Warn once of columns that were ignored, and once of cells that were not read."""
        if self.unexpected:
            warnings.warn(
                f"{owner}: X has columns that were not there in fit, which are ignored: "
                f"{quoted(self.unexpected, _SHOWN)}.",
                UserWarning,
                stacklevel=stacklevel + 1,
            )
        if self.doubts:
            doubts = "; ".join(self.doubts.values())
            warnings.warn(f"{owner}: {doubts}.", SuspectColumnWarning, stacklevel=stacklevel + 1)
        if self.unreadable:
            remarks = "; ".join(self.remarks)
            warnings.warn(f"{owner}: {remarks}.", UnreadableCellWarning, stacklevel=stacklevel + 1)


@record
class TableReader:
    """How the columns of a table are read; learned from the rows of a fit.

    Attributes
    ----------
    columns : list of ColumnFormat
        One for each column of the table, in its order.
    named : bool
        Whether the table had names of columns (frames and files), or not (arrays).
    """

    columns: list[ColumnFormat] = saved(many(instance((ColumnFormat,)), least=1))
    named: bool = saved(boolean)

    def _check_state(self) -> None:
        for names in (self.names, self.feature_names):
            if len(set(names)) < len(names):
                raise SchemaError("two columns of the table have the same name")
        if not self.feature_names:
            raise SchemaError("the table has no column that is read")

    # ---- learning -------------------------------------------------------------------------------

    @classmethod
    def learn(cls, X: Any, owner: str, categorical: Any = None, terms: Any = None) -> TableReader:
        """Learn how a table is read; arguments as those of `learn_and_read`."""
        return cls.learn_and_read([X], owner, categorical, terms)[0]

    @classmethod
    def learn_and_read(
        cls, chunks: Sequence[Any], owner: str, categorical: Any = None, terms: Any = None,
        column: Callable[[int], Iterable[Any]] | None = None,
    ) -> tuple[TableReader, list[Column]]:  # fmt: skip
        """Learn how a table is read, and read it.

        Parameters
        ----------
        chunks : list of tables
            Frames of pandas, Polars or pyarrow (also the strings of a CSV file), or arrays: rows
            of one table, one below the other.
        owner : str
            Estimator or file, for messages.
        categorical : list of str or int, or mask, optional
            Columns that hold categories though they look like numbers or dates.
        terms : list or mapping, optional
            Terms of the model. Columns that it names are never left out; a column whose term is a
            "category" is read as one; parts of dates that it names, as in "day (weekday)", are
            features. A date that a mapping gives another kind than "auto" ("trend", "linear", None)
            has no parts but those that are named, and neither has one in a list.
        column : callable, optional
            Position of a column → chunks of all its rows, where `chunks` are a sample. Nothing is
            decided from the sample, but that a column of numbers is one, and varies.
        """
        tables = [RawTable.of(chunk, owner) for chunk in chunks]
        names = tables[0].names
        if any(table.names != names for table in tables):
            raise ValueError(f"{owner}: the chunks of X have different columns.")
        requests = _Requests.of(terms, names, owner, categorical)
        formats, columns, about_cells = [], list[Column](), list[str]()
        about_columns, named = requests.remarks_on_names(names), tables[0].named
        for j, name in enumerate(names):
            raw = joined_raw([table.column(j, owner) for table in tables])
            of_numbers = isinstance(raw, np.ndarray) and raw.dtype.kind != "M"
            if column is None or of_numbers:
                how, read, *remarks = _decide(raw, name, requests, owner, named)
            if column is not None and (not of_numbers or how.kind == "left out"):
                parts = [RawTable.of(chunk, owner).column(0, owner) for chunk in column(j)]
                how, read, *remarks = _decide(joined_raw(parts), name, requests, owner, named)
                if read:
                    read = _read(raw, how, owner, ReadingNotes(refuses=False))
            formats.append(how)
            columns += read
            about_columns += remarks[0]
            about_cells += remarks[1]
        reader = cls(formats, named).with_remarks(about_columns, about_cells)
        reader._check_learned(owner)
        return reader, columns

    def with_remarks(self, about_columns: list[str], about_cells: list[str]) -> TableReader:
        """The reader itself; remarks are said once and not saved, as they quote cells."""
        object.__setattr__(self, "_learning", (about_columns, about_cells))
        return self

    def _check_learned(self, owner: str) -> None:
        features = self.feature_names
        if not features:
            why = "; ".join(self._left_out_remarks())
            raise ValueError(
                f"{owner}: X has no column to learn from: {why}. Name columns in "
                f"{argument_in_message('terms')} to use "
                "them all the same."
            )
        twice = [name for name, count in Counter(features).items() if count > 1]
        if twice:
            raise ValueError(
                f"{owner}: the column {twice[0]!r} has the name of a part of a date. Rename it, or "
                "leave it out."
            )

    # ---- what was learned -----------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the columns of the table."""
        return [column.name for column in self.columns]

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns that `read` returns."""
        return [name for column in self.columns for name in column.features]

    @property
    def periods(self) -> dict[str, float]:
        """Length of the circle of each feature that is a part of a date."""
        return {
            part_name(column.name, date_part): PERIODS[date_part]
            for column in self.columns
            for date_part in column.parts
        }

    @property
    def value_names(self) -> dict[str, dict[float, str]]:
        """Names of the values of features that are weekdays or months."""
        return {
            part_name(column.name, date_part): names_of_part(date_part)
            for column in self.columns
            for date_part in column.parts
        }

    @property
    def units(self) -> dict[str, str]:
        """Units of the columns of numbers that have one."""
        return {column.name: column.unit for column in self.columns if column.unit}

    @property
    def left_out(self) -> list[str]:
        """Names of the columns that are not read."""
        return [column.name for column in self.columns if column.kind == "left out"]

    @property
    def positions(self) -> list[int]:
        """Positions, in the table, of the columns that are read."""
        return [j for j, column in enumerate(self.columns) if column.kind != "left out"]

    @property
    def remarks(self) -> list[str]:
        """Sentences about what was decided: columns left out, units, formats, unreadable cells."""
        units = [f"column {name!r} holds numbers in {unit}" for name, unit in self.units.items()]
        return [*self._left_out_remarks(), *units, *self.doubts]

    @property
    def doubts(self) -> list[str]:
        """Of these sentences, those about cells that may mean something else, or nothing."""
        return [*chain.from_iterable(getattr(self, "_learning", ()))]

    def _left_out_remarks(self) -> list[str]:
        columns = [c for c in self.columns if c.kind == "left out" and c.reason != _DROPPED]
        return [f"column {column.name!r} left out: {column.reason}" for column in columns]

    def warn(self, owner: str, stacklevel: int = 2) -> None:
        """Warn of columns left out or of doubtful content and of unread cells, once for all."""
        about_columns, about_cells = getattr(self, "_learning", ([], []))
        left_out = self._left_out_remarks()
        sentences = [*left_out, *about_columns, *about_cells]
        if sentences:
            hint = (
                f" Name columns in {argument_in_message('terms')} to use them all the same."
                if left_out
                else ""
            )
            category = SuspectColumnWarning if left_out or about_columns else UnreadableCellWarning
            warnings.warn(f"{owner}: {'; '.join(sentences)}.{hint}", category, stacklevel + 1)

    def position(self, item: Any, owner: str, argument: str) -> int:
        """Position, among the features, of a column by its name or its position in the table."""
        features, names = self.feature_names, self.names
        if isinstance(item, str) and item in features:
            return features.index(item)
        name = names[column_position(item, names, owner, argument)]
        if name in self.left_out:
            reason = next(column.reason for column in self.columns if column.name == name)
            raise ValueError(
                f"{owner}: {argument} names the column {name!r}, which is left out: {reason}. Name "
                f"it in {argument_in_message('terms')} to use it."
            )
        return features.index(name)

    # ---- reading --------------------------------------------------------------------------------

    def read(
        self, X: Any, owner: str, *, ordered: bool = True, notes: ReadingNotes | None = None
    ) -> list[Column]:
        """Read a table as it was learned.

        Parameters
        ----------
        X : frame or array
        owner : str
            Estimator or file, for messages.
        ordered : bool
            Whether columns must come in the order of fit, as scikit-learn demands of frames; those
            of files are found by name.
        notes : ReadingNotes, optional
            Collects what was not as expected, over several blocks. By default it is warned of.

        Raises
        ------
        ValueError
            If columns are missing; a ColumnKindError, if most cells of a column cannot be read as
            it was learned.
        """
        table = RawTable.of(X, owner)
        all_notes = ReadingNotes() if notes is None else notes
        places = self._places(table, owner, ordered, all_notes)
        columns = []
        for column, place in zip(self.columns, places, strict=True):
            if column.kind == "left out":
                continue
            columns += _read(table.column(place, owner), column, owner, all_notes)
        if notes is None:
            all_notes.warn(owner, stacklevel=3)
        return columns

    def dates(self, X: Any, owner: str) -> dict[str, np.ndarray]:
        """The columns of dates alone, by name."""
        table = RawTable.of(X, owner)
        dates = [column for column in self.columns if column.kind == "date"]
        return {
            column.name: _dates(
                table.column(table.names.index(column.name), owner), column, owner, ReadingNotes()
            )
            for column in dates
        }

    def _places(self, table: RawTable, owner: str, ordered: bool, notes: ReadingNotes) -> list[int]:
        """Where each column is in another table; −1 for one that is left out and not there."""
        if not (self.named and table.named):
            if self.named or table.named:
                with_names = "X has feature names, but" if table.named else (
                    "X does not have valid feature names, but")  # fmt: skip
                fitted = "with" if self.named else "without"
                warnings.warn(
                    f"{with_names} {owner} was fitted {fitted} feature names", UserWarning,
                    stacklevel=4,
                )  # fmt: skip
            if len(table.names) != len(self.columns):
                raise ValueError(
                    f"X has {len(table.names)} features, but {owner} is expecting "
                    f"{len(self.columns)} features as input."
                )
            return list(range(len(self.columns)))
        place = {name: j for j, name in enumerate(table.names)}
        fitted_names, left_out = set(self.names), set(self.left_out)
        missing = [name for name in self.names if name not in place and name not in left_out]
        unexpected = [name for name in table.names if name not in fitted_names]
        places = [place.get(name, -1) for name in self.names]
        used = [j for j, name in zip(places, self.names) if name not in left_out]
        if missing or (ordered and used != sorted(used)):
            raise ValueError(_names_message(missing, unexpected, owner))
        notes.unexpected += [name for name in unexpected if name not in notes.unexpected]
        return places


def _names_message(missing: list[str], unexpected: list[str], owner: str) -> str:
    """What scikit-learn says of names of columns that do not match."""

    def listed(names: list[str]) -> str:
        more = ["..."] if len(names) > _SHOWN else []
        return "".join(f"- {name}\n" for name in [*sorted(names)[:_SHOWN], *more])

    message = "The feature names should match those that were passed during fit.\n"
    if unexpected and missing:
        message += f"Feature names unseen at fit time:\n{listed(unexpected)}"
    if missing:
        return f"{message}Feature names seen at fit time, yet now missing:\n{listed(missing)}"
    return f"{message}Feature names must be in the same order as they were in fit.\n"


# ---- what terms ask for -------------------------------------------------------------------------


@dataclass
class _Requests:
    """What the terms of a model ask of columns, by name.

    Attributes
    ----------
    named : set
        Columns that are used, whatever they hold.
    kinds : dict
        "category", or "number" for a curve.
    parts : dict
        Parts of dates: those that are features, or further ones where `all_parts` is false.
    exact : set
        Dates whose parts are those in `parts`, and no others.
    dropped : set
        Columns without a term of their own.
    """

    named: set[str] = field(default_factory=set)
    kinds: dict[str, str] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, terms: Any, names: list[str], owner: str, categorical: Any = None) -> _Requests:
        requests = cls._of_terms(terms, names, owner)
        forced = categorical_columns(categorical, names, owner)
        requests.kinds |= {names[j]: "category" for j in forced}
        return requests

    @classmethod
    def _of_terms(cls, terms: Any, names: list[str], owner: str) -> _Requests:
        requests = cls()
        if isinstance(terms, Mapping):
            for key, value in terms.items():
                name, date_part = _column_and_part(key, names, owner)
                kind = getattr(value, "kind", value)
                if date_part:
                    requests.parts.setdefault(name, [])
                    requests.parts[name] += [date_part]
                elif kind != "auto":
                    requests.exact.add(name)
                    requests.dropped |= {name} if kind is None else set()
                if kind is not None:
                    requests._note(name, date_part, kind)
        elif isinstance(terms, Sequence) and not isinstance(terms, str):
            items = [item for term in terms for item in (term if _is_pair(term) else [term])]
            for item in items:
                name, date_part = _column_and_part(getattr(item, "column", item), names, owner)
                requests.exact.add(name)
                requests.parts.setdefault(name, [])
                requests.parts[name] += [date_part] if date_part else []
                requests._note(name, date_part, getattr(item, "kind", "auto"))
            requests.dropped = set(names) - requests.named
        return requests

    def _note(self, name: str, date_part: str, kind: Any) -> None:
        self.named.add(name)
        if not date_part and kind == "category":
            self.kinds[name] = "category"
        elif not date_part and kind in _CURVES:
            self.kinds[name] = "number"

    def remarks_on_names(self, names: Sequence[str]) -> list[str]:
        """What to say about a column that has the name of an argument of fit."""
        if "sample_weight" not in names or "sample_weight" in self.named | self.dropped:
            return []
        words = "is a feature: if it holds weights, pass it as sample_weight= (--sample-weight)"
        return [f"column 'sample_weight' {words}"]

    def parts_of(self, name: str, dates: np.ndarray) -> tuple[str, ...]:
        requested = set(self.parts.get(name, []))
        requested |= set() if name in self.exact else set(varying_parts(dates))
        return tuple(date_part for date_part in PERIODS if date_part in requested)


def _is_pair(term: Any) -> bool:
    return isinstance(term, tuple) and len(term) == 2


def _column_and_part(item: Any, names: list[str], owner: str) -> tuple[str, str]:
    """The column that a term names, and the part of a date: "day (weekday)"."""
    if isinstance(item, str) and item not in names:
        name, _, date_part = item.rpartition(" (")
        if name in names and date_part.removesuffix(")") in PERIODS:
            return name, date_part.removesuffix(")")
    return names[column_position(item, names, owner, "terms")], ""


# ---- one column ---------------------------------------------------------------------------------


def _decide(
    raw: RawColumn, name: str, requests: _Requests, owner: str, named: bool
) -> tuple[ColumnFormat, list[Column], list[str], list[str]]:
    """The format of a column, the column itself, and remarks: about it, and about its cells."""
    notes = ReadingNotes()
    how, remark = _learned(raw, name, requests)
    read = _read(raw, how, owner, notes)
    reason = None if name in requests.named else _useless(how, read, named)
    remarks = [*([remark] if remark else []), *notes.doubts.values()]
    if reason is None:
        return how, read, remarks, notes.remarks
    # Why cells are not numbers, or 12 and 12a the same, is said of columns left out, too.
    if how.kind != "category" and reason != _CONSTANT:
        remarks = []
    reason = _DROPPED if name in requests.dropped else reason
    return ColumnFormat(name, "left out", reason=reason), [], remarks, []


def _learned(raw: RawColumn, name: str, requests: _Requests) -> tuple[ColumnFormat, str]:
    """The format of a column, and a remark about it."""
    kind = requests.kinds.get(name)
    if kind == "category" or isinstance(raw, Categories):
        return ColumnFormat(name, "category", _level_form(raw)), ""
    if isinstance(raw, np.ndarray):
        if raw.dtype.kind == "M":
            return ColumnFormat(name, "date", TYPED, parts=requests.parts_of(name, raw)), ""
        return ColumnFormat(name, "number", "plain"), _joined_doubts(name, typed_number_doubts(raw))
    number = find_number_format(raw, codes_too=kind == "number")
    if number is not None:
        doubts = number_doubts(raw, number)
        if number.form == CLOCK and kind is not None:
            doubts = []
        how = ColumnFormat(name, "number", number.form, number.unit)
        return how, _joined_doubts(name, doubts)
    date = find_date_format(raw)
    if date is not None:
        form, ambiguous = date
        parts = requests.parts_of(name, raw.dates(form))
        return ColumnFormat(name, "date", form, parts=parts), _joined_doubts(
            name, date_doubts(form, ambiguous)
        )
    mixture = why_category(raw)
    remark = f"column {name!r} is read as a category: it holds {mixture}" if mixture else ""
    return ColumnFormat(name, "category", _level_form(raw)), remark


def _joined_doubts(name: str, doubts: Iterable[str]) -> str:
    return "; ".join(f"column {name!r} {doubt}" for doubt in doubts)


def _level_form(raw: RawColumn) -> str:
    """How the levels of a category are written."""
    if isinstance(raw, np.ndarray):
        return "number" if raw.dtype.kind != "M" else "text"
    cells = raw.cells
    present = cells.present(GAPS)
    if not present.any():
        return "text"
    if cells.are_words(("true", "false"))[present].all():
        return "boolean"
    if not cells.have_digits[present].any():
        return "number" if cells.are_words(INFINITE)[present].all() else "text"
    levels = Text(cells.distinct.filter(pa.array(present)))
    if levels.has_codes:
        return "text"
    if levels.plain is not None:
        return "number"
    return "mixed" if np.isfinite(levels.numbers(NumberFormat())).any() else "text"


def _read(raw: RawColumn, how: ColumnFormat, owner: str, notes: ReadingNotes) -> list[Column]:
    """A column as numbers or codes of levels; a date as several."""
    if how.kind == "category":
        return [_levels(raw, how, owner)]
    if how.kind == "number":
        return [
            Column(how.name, _finite(_numbers(raw, how, owner, notes), how.name, owner), None, [])
        ]
    dates = date_columns(_dates(raw, how, owner, notes), how.name, how.parts)
    return [Column(name, values, None, []) for name, values in dates.items()]


def _numbers(raw: RawColumn, how: ColumnFormat, owner: str, notes: ReadingNotes) -> np.ndarray:
    if isinstance(raw, np.ndarray):
        if raw.dtype.kind == "M":
            if not np.isnat(raw).all():
                raise ColumnKindError(owner, how, "dates")
            return np.full(len(raw), np.nan)
        if how.unit and not np.isnan(raw).all():
            notes.doubts[how.name] = (
                f"column {how.name!r} held numbers in {how.unit} in fit, and now holds numbers "
                "without a unit: convert them, if they are in another one"
            )
        return raw.astype(np.float64, copy=False)
    column = as_text(raw)
    if how.form == "plain" and not how.unit and column.plain is not None:
        return column.plain
    number = NumberFormat(how.form, how.unit)
    cells, values = column.cells, column.numbers(number)
    _count(cells, np.isnan(values), how, owner, notes)
    doubts = [*bare_numbers(column, number), *multiplier_doubts(column, number)]
    if doubts:
        notes.doubts.setdefault(how.name, _joined_doubts(how.name, doubts))
    return cells.rows(np.append(values, np.nan))


def _dates(raw: RawColumn, how: ColumnFormat, owner: str, notes: ReadingNotes) -> np.ndarray:
    if isinstance(raw, np.ndarray):
        if raw.dtype.kind == "M":
            return raw
        if not np.isnan(raw).all():
            raise ColumnKindError(owner, how, "numbers")
        return np.full(len(raw), np.datetime64("NaT", "s"))
    column = as_text(raw)
    cells, values = column.cells, column.dates(how.form)
    _count(cells, np.isnat(values), how, owner, notes)
    return cells.rows(np.append(values, np.datetime64("NaT", "s")))


def _count(
    cells: Cells, missing: np.ndarray, how: ColumnFormat, owner: str, notes: ReadingNotes
) -> None:
    """Note cells that are neither empty nor of a column's format; refuse a column of such."""
    bad = missing & cells.present(NUMBER_GAPS)
    examples = cells.distinct.filter(pa.array(bad)).slice(0, 10).to_pylist()
    good = int(cells.counts[~missing].sum())
    if not notes.add(how, int(cells.counts[bad].sum()), good, examples):
        typed = how.form == TYPED
        written = "" if how.form == "plain" else f" written as {ISO if typed else how.form}"
        unit = f" in {how.unit}" if how.unit else ""
        what = f"cells such as {quoted(examples)}, which are not {_PLURALS[how.kind]}"
        raise ColumnKindError(owner, how, f"{what}{written}{unit}")


def _finite(numbers: np.ndarray, name: str, owner: str) -> np.ndarray:
    bad = np.isinf(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{owner}: column {name!r} of input X contains infinity (row {row}). Replace it, or "
            "use NaN for a missing value."
        )
    return numbers


def _levels(raw: RawColumn, how: ColumnFormat, owner: str) -> Column:
    """Codes of levels, in the order of appearance, or of the categories of a frame."""
    if isinstance(raw, np.ndarray):
        if how.form == "text" and raw.dtype.kind in "fiu" and not np.isnan(raw).all():
            # No level of fit is such a number: 01067 was read as 1067, or words were encoded.
            raise ColumnKindError(owner, how, "numbers, which none of its levels are: pass text")
        codes, names = factorized(raw)
        if how.form == "boolean" and raw.dtype.kind in "fiu":
            if not {"0", "1"}.issuperset(names):
                raise ColumnKindError(owner, how, "numbers other than 0 and 1")
            names = [_TRUTH[level] for level in names]
        return _renumbered(how.name, codes, names)
    cells = raw.cells
    codes, names, present = cells.codes, _level_names(cells, how.form), cells.present(GAPS)
    if isinstance(raw, Categories) and not raw.ordered:
        order = _by_appearance(codes, len(names))
        rank = np.full(len(names) + 1, -1)
        rank[order] = np.arange(len(order))
        codes, names, present = rank[codes], [names[k] for k in order.tolist()], present[order]
    if not present.all():
        codes = np.where(np.append(present, False)[codes], codes, -1)
    return _renumbered(how.name, codes, names)


def _by_appearance(codes: np.ndarray, n_levels: int) -> np.ndarray:
    """The codes that occur, in the order of their first rows; −1 stands for a missing value."""
    n_rows = len(codes)
    first = np.full(n_levels + 1, n_rows)
    first[codes[::-1]] = np.arange(n_rows)[::-1]  # of repeated places, the last value stays
    order = np.argsort(first[:-1], kind="stable")
    return order[: np.count_nonzero(first[:-1] < n_rows)]


def _level_names(cells: Cells, form: str) -> list[str]:
    if form == "boolean":
        levels = pc.utf8_capitalize(pc.utf8_lower(cells.distinct)).to_pylist()
        return [_TRUTH.get(level, level) for level in levels]
    if form == "number":
        return [_number_name(text) for text in cells.texts]
    return level_names(cells)


def _number_name(cell: str) -> str:
    """The name that a number has as a level, however it is written."""
    try:
        return str(int(cell)) if cell.lstrip("+-").isdigit() else level_name(float(cell))
    except (ValueError, OverflowError):
        return cell


def _renumbered(name: str, codes: np.ndarray, names: list[str]) -> Column:
    """A column of codes, whose levels occur, are not missing, and have different names."""
    used = np.zeros(len(names) + 1, bool)
    used[codes] = True
    used[-1] = False
    levels = list(dict.fromkeys(level for level, occurs in zip(names, used.tolist()) if occurs))
    if len(levels) == len(names):
        return Column(name, None, codes, levels)
    place = {level: k for k, level in enumerate(levels)}
    rank = [place[level] if occurs else -1 for level, occurs in zip(names, used.tolist())]
    return Column(name, None, np.array([*rank, -1], np.int64)[codes], levels)


# ---- columns that say nothing -------------------------------------------------------------------


def _useless(how: ColumnFormat, read: list[Column], named: bool) -> str | None:
    """Why a column is not used: it has one value, or names the rows; None if it is."""
    if how.kind == "category":
        reason = _names_rows(read[0])
    else:
        is_id = how.kind == "number" and named and _is_id(how.name, read[0].values)
        reason = _NUMERIC_ID if is_id else None
    if reason is None and _is_constant(read[0]):
        reason = _CONSTANT
    return reason


def uninformative_columns(names: Sequence[str], X: np.ndarray) -> dict[str, str]:
    """Columns of numbers that a fit leaves out, and why: they have one value, or name the rows."""
    reasons = {
        name: _useless(ColumnFormat(name, "number"), [Column(name, values, None, [])], True)
        for name, values in zip(names, np.asarray(X).T, strict=True)
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _is_constant(column: Column) -> bool:
    """Whether a column has one value, a missing one counted."""
    if len(column) < 2:  # one row shows nothing
        return False
    values = column.values if column.codes is None else column.codes
    first = values[0]
    if first != first:
        return bool(np.isnan(values).all())
    return bool((values[:100] == first).all() and (values == first).all())


def _names_rows(column: Column) -> str | None:
    """Why text names the rows: most of them have a level of their own."""
    n, levels = len(column), len(column.levels)
    n_present = int(np.count_nonzero(column.codes >= 0))
    if n < _FEW_ROWS:
        return None
    if levels == n_present > _FEW_ROWS:
        return "its values are all different"
    return f"it has {levels:,} levels in {n:,} rows" if 2 * levels > n else None


def _is_id(name: str, values: np.ndarray) -> bool:
    """Whether a column is called an ID and holds whole numbers, all different.

    Numbers that count the rows under another name may be a time, which a model needs.
    """
    n = len(values)
    if n < _FEW_ROWS or not _ID.search(name):
        return False
    return bool((values == np.round(values)).all()) and len(np.unique(values)) == n
