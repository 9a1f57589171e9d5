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
from typing import Any

import numpy as np

from .._util.arguments import argument as argument_in_message
from .._util.arguments import parameter
from .._util.schema import SchemaError, boolean, instance, many, record, saved, several, text
from .._util.threads import cached_property
from ..exceptions import SuspectColumnWarning, UnreadableCellWarning
from . import text_cells
from .columns import (
    Column,
    RawColumn,
    RawTable,
    column_position,
    describe_collinear,
    encode_values,
    joined_raw,
    to_text,
    typed_number_doubts,
)
from .dates import (
    DATE_FORMS,
    ISO,
    MONTHS,
    PARTS,
    PERIODS,
    TYPED,
    WEEKDAYS,
    date_columns,
    date_doubts,
    part_name,
    varying_parts,
)
from .targets import LARGEST_EXACT_INTEGER
from .text_cells import (
    CLOCK,
    GAPS,
    NUMBER_GAPS,
    TRUTH,
    Categories,
    DistinctCells,
    NumberFormat,
    Text,
    quote_cells,
    rows_of,
)  # fmt: skip

_FORMS = {
    "number": text_cells.NUMBER_FORMS,
    "category": ("text", "mixed", "number", "boolean"),
    "date": (TYPED, *DATE_FORMS),
    "left out": ("",),
}
_PLURALS = {"number": "numbers", "category": "categories", "date": "dates"}
_FEW_ROWS = 20  # rows below which nothing is taken for an ID
# Of a number without the name of one: so many draws from twice as many all differ with e⁻¹⁹.
_FEW_COUNTED = 50
# Names of IDs, and those that pandas gives to a column without a name and to an index in Parquet.
_ID = re.compile(
    r"(?i:(?:^|[_\s.-])(?:id|uuid|guid|key|index|rownames?|row|no|nr)$)|[a-z]I[dD]$"
    r"|^Unnamed: \d+$|^__index_level_\d+__$"
)
# Kinds of terms whose column must hold numbers.
_CURVES = ("spline", "linear", "parametric", "periodic", "surface")
_CONSTANT, _EMPTY = "all its values are the same", "all its values are missing"
_NUMERIC_ID = "its values are all different, and its name is that of an ID"
_DROPPED = "terms leaves it out"
_SHOWN = 5  # names in a message about columns, as in scikit-learn's


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
        Parts of a date that are features beside its trend; see `PARTS`.
    reason : str
        Why the column is left out.
    is_ordered : bool
        Whether its levels are those of an ordered category of a frame, in their order.
    """

    name: str = saved(text())
    kind: str = saved(text(tuple(_FORMS)))
    form: str = saved(text(), default="")
    unit: str = saved(text(), default="")
    parts: tuple[str, ...] = saved(several(text(PARTS)), default=())
    reason: str = saved(text(), default="")
    is_ordered: bool = saved(boolean, default=False)

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
    def is_id(self) -> bool:
        """Whether it is left out as an ID: a name or a number of each row."""
        return self.kind == "left out" and self.reason not in (_CONSTANT, _EMPTY, _DROPPED)


class ColumnKindError(ValueError):
    """A column holds other things than it did in fit."""

    def __init__(self, owner: str, fmt: ColumnFormat, what: str) -> None:
        super().__init__(
            f"{owner}: column {fmt.name!r} held {_PLURALS[fmt.kind]} in fit, and now holds {what}. "
            "Convert it, or leave it out before fitting."
        )


@dataclass
class ReadingNotes:
    """What was not as expected in tables that were read, block by block or at once.

    Attributes
    ----------
    unexpected : list of str
        Columns that were not there in fit; they were ignored.
    doubts : dict of str to list
        What else the cells of a column may mean, as ends of sentences, by column.
    unreadable : dict of ColumnFormat to dict
        Cells that were counted as missing, by column.
    refuses : bool
        Whether a column is refused when most of its cells, so far, could not be read.
    """

    unexpected: list[str] = field(default_factory=list)
    doubts: dict[str, list[str]] = field(default_factory=dict)
    unreadable: dict[ColumnFormat, dict[str, None]] = field(default_factory=dict)
    refuses: bool = True
    _n_cells: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def check(
        self, fmt: ColumnFormat, cells: DistinctCells, values: np.ndarray, owner: str
    ) -> np.ndarray:
        """Values of the rows; notes cells that cannot be read, and refuses a column of such."""
        missing = np.isnan(values)
        bad = missing & cells.present(NUMBER_GAPS)
        self._n_cells[fmt.name, True] += int(cells.counts[~missing].sum())
        if bad.any():
            self._n_cells[fmt.name, False] += int(cells.counts[bad].sum())
            examples = cells.select(bad).slice(0, 10).to_pylist()
            self.unreadable.setdefault(fmt, {}).update(dict.fromkeys(examples))
            if self.refuses and self._n_cells[fmt.name, False] > self._n_cells[fmt.name, True]:
                form = ISO if fmt.form == TYPED else fmt.form
                written = "" if form == "plain" else f" written as {form}"
                unit = f" in {fmt.unit}" if fmt.unit else ""
                what = f"cells such as {quote_cells(examples)}, which are not {_PLURALS[fmt.kind]}"
                raise ColumnKindError(owner, fmt, f"{what}{written}{unit}")
        return cells.rows(values)

    @property
    def remarks(self) -> list[str]:
        """Sentences about cells that were counted as missing."""
        return [
            f"column {fmt.name!r} holds {_PLURALS[fmt.kind]}: {quote_cells(cells)} "
            f"{rows_of(self._n_cells[fmt.name, False])} counted as missing "
            f"{text_cells.advice_on_tokens(list(cells))}"
            for fmt, cells in self.unreadable.items()
        ]

    @property
    def doubtful(self) -> list[str]:
        """Sentences about columns that may mean something else."""
        return [f"column {name!r} {end}" for name, ends in self.doubts.items() for end in ends]

    def warn(self, owner: str, stacklevel: int = 2, left_out: Sequence[str] = ()) -> None:
        """Warn once each of ignored columns, of columns that are doubtful, and of unread cells."""
        unexpected = quote_cells(self.unexpected, _SHOWN)
        hint = f" Name columns in {argument_in_message('terms')} to use them all the same."
        about = [
            (UserWarning, [f"X has columns that were not there in fit, which are ignored: "
                           f"{unexpected}"] if unexpected else []),
            (SuspectColumnWarning, [*left_out, *self.doubtful]),
            (UnreadableCellWarning, self.remarks),
        ]  # fmt: skip
        for category, sentences in about:
            if sentences:
                end = hint if left_out and category is SuspectColumnWarning else ""
                message = f"{owner}: {'; '.join(sentences)}.{end}"
                warnings.warn(message, category, stacklevel=stacklevel + 1)


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
            features. A date that a mapping leaves out (None) or keeps as a "trend" has no parts but
            those that are named, and neither has one in a list.
        column : callable, optional
            Position of a column → chunks of all its rows, where `chunks` are a sample. Nothing is
            decided from the sample, but that a column of numbers is one, and varies.
        """
        tables = [RawTable.from_data(chunk, owner) for chunk in chunks]
        names, named = tables[0].names, tables[0].named
        if any(table.names != names for table in tables):
            raise ValueError(f"{owner}: the chunks of X have different columns.")
        requests = _Requests.from_terms(terms, names, owner, categorical)
        formats, columns, notes = [], list[Column](), ReadingNotes()
        if "sample_weight" in set(names) - requests.named - requests.dropped:
            notes.doubts["sample_weight"] = [
                "is a feature: if it holds weights, pass it as sample_weight= (--sample-weight)"
            ]
        for j, name in enumerate(names):
            raw = joined_raw([table.column(j, owner) for table in tables])
            of_numbers = isinstance(raw, np.ndarray) and raw.dtype.kind != "M"
            if column is None or of_numbers:
                fmt, read, noted = _decide(raw, name, requests, owner, named)
            if column is not None and (not of_numbers or fmt.kind == "left out"):
                parts = [RawTable.from_data(chunk, owner).column(0, owner) for chunk in column(j)]
                fmt, read, noted = _decide(joined_raw(parts), name, requests, owner, named)
                if read:
                    read = _read(raw, fmt, owner, ReadingNotes(refuses=False))
            formats.append(fmt)
            columns += read
            notes.unreadable |= noted.unreadable
            notes._n_cells += noted._n_cells
            if noted.doubts:
                notes.doubts[name] = [*notes.doubts.get(name, []), *noted.doubts[name]]
        if named and column is None:
            used = [column for column in columns if column.name not in requests.dropped]
            for name, end in describe_collinear(used).items():
                notes.doubts[name] = [*notes.doubts.get(name, []), end]
        reader = cls(formats, named)
        vars(reader)["notes"] = notes
        if not reader.feature_names:
            raise ValueError(
                f"{owner}: X has no column to learn from: {'; '.join(reader._left_out_remarks)}. "
                f"Name columns in {argument_in_message('terms')} to use them all the same."
            )
        twice = [name for name, count in Counter(reader.feature_names).items() if count > 1]
        if twice:
            raise ValueError(
                f"{owner}: the column {twice[0]!r} has the name of a part of a date: rename it."
            )
        return reader, columns

    @cached_property
    def notes(self) -> ReadingNotes:
        """What was noted in fit; it quotes cells, and is not saved."""
        return ReadingNotes()

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
    def _date_parts(self) -> dict[str, str]:
        return {part_name(c.name, part): part for c in self.columns for part in c.parts}

    @property
    def trends(self) -> set[str]:
        """Names of the features that are the trend of a date."""
        return {column.name for column in self.columns if column.kind == "date"}

    @property
    def periods(self) -> dict[str, float]:
        """Length of the circle of each feature that is a part of a date."""
        parts = self._date_parts.items()
        return {name: PERIODS[date_part] for name, date_part in parts if date_part in PERIODS}

    @property
    def value_names(self) -> dict[str, dict[float, str]]:
        """Names of the values of features that are months: where each begins."""
        names = {float(number): month for number, month in enumerate(MONTHS, start=1)}
        return {name: names for name, date_part in self._date_parts.items() if date_part == "month"}

    @property
    def ordered(self) -> set[str]:
        """Features whose levels have an order: weekdays, and ordered categories of a frame."""
        weekdays = {name for name, date_part in self._date_parts.items() if date_part == "weekday"}
        return weekdays | {fmt.name for fmt in self.columns if fmt.is_ordered}

    @property
    def left_out(self) -> list[str]:
        """Names of the columns that are not read."""
        return [column.name for column in self.columns if column.kind == "left out"]

    @property
    def remarks(self) -> list[str]:
        """Sentences about what was decided: columns left out, units, formats, unreadable cells."""
        units = [f"column {c.name!r} holds numbers in {c.unit}" for c in self.columns if c.unit]
        return [*self._left_out_remarks, *units, *self.notes.doubtful, *self.notes.remarks]

    @property
    def _left_out_remarks(self) -> list[str]:
        columns = [c for c in self.columns if c.kind == "left out" and c.reason != _DROPPED]
        return [f"column {column.name!r} left out: {column.reason}" for column in columns]

    def warn(self, owner: str, stacklevel: int = 2) -> None:
        """Warn of columns left out or of doubtful content, and of unread cells."""
        self.notes.warn(owner, stacklevel + 1, self._left_out_remarks)

    def leave_out(self, reasons: Mapping[str, str], owner: str, stacklevel: int = 2) -> TableReader:
        """A reader that leaves columns out, too, which is warned of."""
        left = {name: ColumnFormat(name, "left out", reason=why) for name, why in reasons.items()}
        reader = TableReader([left.get(fmt.name, fmt) for fmt in self.columns], self.named)
        vars(reader)["notes"] = self.notes
        left_out = [f"column {name!r} left out: {reason}" for name, reason in reasons.items()]
        ReadingNotes().warn(owner, stacklevel + 1, left_out)
        return reader

    def position(self, item: Any, owner: str, argument: str) -> int:
        """Position, among the features, of a column by its name or its position in the table."""
        features, names = self.feature_names, self.names
        if isinstance(item, str) and item in features:
            return features.index(item)
        name = names[column_position(item, names, owner, argument)]
        if name in self.left_out:
            reason = next(column.reason for column in self.columns if column.name == name)
            raise ValueError(
                f"{owner}: {parameter(argument)} names the column {name!r}, which is left out: "
                f"{reason}. Name it in {argument_in_message('terms')} to use it."
            )
        return features.index(name)

    # ---- reading --------------------------------------------------------------------------------

    def read(self, X: Any, owner: str, *, notes: ReadingNotes | None = None) -> list[Column]:
        """Read a table as it was learned; its columns are found by name, where it has names.

        Parameters
        ----------
        X : frame or array
        owner : str
            Estimator or file, for messages.
        notes : ReadingNotes, optional
            Collects what was not as expected, over several blocks. By default it is warned of.

        Raises
        ------
        ValueError
            If columns are missing; a ColumnKindError, if most cells of a column cannot be read as
            it was learned.
        """
        table = RawTable.from_data(X, owner)
        all_notes = ReadingNotes() if notes is None else notes
        places = self._places(table, owner, all_notes)
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
        table = RawTable.from_data(X, owner)
        return {
            column.name: _dates(
                table.column(table.names.index(column.name), owner), column, owner, ReadingNotes()
            )
            for column in self.columns
            if column.kind == "date"
        }

    def _places(self, table: RawTable, owner: str, notes: ReadingNotes) -> list[int]:
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
        if missing:
            raise ValueError(_names_message(missing, unexpected))
        notes.unexpected += [name for name in unexpected if name not in notes.unexpected]
        return [place.get(name, -1) for name in self.names]


def _names_message(missing: list[str], unexpected: list[str]) -> str:
    """What scikit-learn says of names of columns that are missing."""

    def list_names(names: list[str]) -> str:
        more = ["..."] if len(names) > _SHOWN else []
        return "".join(f"- {name}\n" for name in [*sorted(names)[:_SHOWN], *more])

    message = "The feature names should match those that were passed during fit.\n"
    if unexpected:
        message += f"Feature names unseen at fit time:\n{list_names(unexpected)}"
    return f"{message}Feature names seen at fit time, yet now missing:\n{list_names(missing)}"


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
        Parts of dates that are features.
    exact : set
        Dates that have no other parts.
    dropped : set
        Columns without a term of their own.
    """

    named: set[str] = field(default_factory=set)
    kinds: dict[str, str] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)

    @classmethod
    def from_terms(
        cls, terms: Any, names: list[str], owner: str, categorical: Any = None
    ) -> _Requests:
        requests, in_list = cls(), isinstance(terms, Sequence) and not isinstance(terms, str)
        items: list[tuple[Any, Any]] = []
        if isinstance(terms, Mapping):
            items = [(key, getattr(value, "kind", value)) for key, value in terms.items()]
        elif in_list:
            pairs = (term if isinstance(term, tuple) else [term] for term in terms)
            sides = [item for pair in pairs for item in pair]
            items = [(getattr(x, "column", x), getattr(x, "kind", "auto")) for x in sides]
        # The columns of a surface stand in a tuple.
        wide = ((item if isinstance(item, tuple) else (item,), kind) for item, kind in items)
        for item, kind in ((column, kind) for columns, kind in wide for column in columns):
            name, date_part = _column_and_part(item, names, owner)
            if date_part:
                requests.parts.setdefault(name, []).append(date_part)
            elif kind == "category" or kind in _CURVES:
                requests.kinds[name] = "category" if kind == "category" else "number"
            if in_list or (not date_part and kind in ("trend", None)):
                requests.exact.add(name)
            if kind is not None:
                requests.named.add(name)
            elif not date_part:
                requests.dropped.add(name)
        if in_list:
            requests.dropped = set(names) - requests.named
        for j in _categorical_columns(categorical, names, owner):
            requests.kinds[names[j]] = "category"
        return requests

    def parts_of(self, name: str, dates: np.ndarray) -> tuple[str, ...]:
        varying = () if name in self.exact else varying_parts(dates)
        requested = {*self.parts.get(name, []), *varying}
        return tuple(date_part for date_part in PARTS if date_part in requested)


def _categorical_columns(requested: Any, names: list[str], owner: str) -> list[int]:
    """Positions of the columns that `categorical_features` names."""
    if isinstance(requested, str) or (requested is not None and not np.iterable(requested)):
        raise ValueError(
            f"{owner}: categorical_features must be a list of columns or a mask, got {requested!r}."
        )
    items = [] if requested is None else list(requested)
    if len(items) == len(names) and all(isinstance(item, bool | np.bool_) for item in items):
        return np.flatnonzero(items).tolist()
    return [column_position(item, names, owner, "categorical_features") for item in items]


def _column_and_part(item: Any, names: list[str], owner: str) -> tuple[str, str]:
    """The column that a term names, and the part of a date: "day (weekday)"."""
    if isinstance(item, str) and item not in names:
        name, _, date_part = item.rpartition(" (")
        if name in names and date_part.removesuffix(")") in PARTS:
            return name, date_part.removesuffix(")")
    return names[column_position(item, names, owner, "terms")], ""


# ---- one column ---------------------------------------------------------------------------------


def _decide(
    raw: RawColumn, name: str, requests: _Requests, owner: str, named: bool
) -> tuple[ColumnFormat, list[Column], ReadingNotes]:
    """The format of a column, the column itself, and what is noted about it."""
    notes = ReadingNotes()
    fmt, doubts = _learn_format(raw, name, requests)
    read = _read(raw, fmt, owner, notes)
    reason = None if name in requests.named else _useless(fmt, read, named)
    doubts += notes.doubts.get(name, [])
    if reason is not None:
        # Why cells are not numbers, or 12 and 12a the same, is said of columns left out, too.
        doubts = doubts if fmt.kind == "category" or reason == _CONSTANT else []
        reason = _DROPPED if name in requests.dropped else reason
        fmt, read, notes = ColumnFormat(name, "left out", reason=reason), [], ReadingNotes()
    notes.doubts = {name: doubts} if doubts else {}
    return fmt, read, notes


def _learn_format(raw: RawColumn, name: str, requests: _Requests) -> tuple[ColumnFormat, list[str]]:
    """The format of a column, and doubts about it as ends of sentences."""
    kind = requests.kinds.get(name)
    if kind == "category" or isinstance(raw, Categories):
        is_ordered = isinstance(raw, Categories) and raw.ordered
        return ColumnFormat(name, "category", _level_form(raw), is_ordered=is_ordered), []
    if isinstance(raw, np.ndarray):
        if raw.dtype.kind == "M":
            return ColumnFormat(name, "date", TYPED, parts=requests.parts_of(name, raw)), []
        return ColumnFormat(name, "number", "plain"), typed_number_doubts(raw)
    number = text_cells.find_number_format(raw, codes_too=kind == "number")
    if number is not None:
        is_certain = number.form == CLOCK and kind is not None
        doubts = [] if is_certain else text_cells.number_doubts(raw, number)
        return ColumnFormat(name, "number", number.form, number.unit), doubts
    date = text_cells.find_date_format(raw)
    if date is not None:
        parts = requests.parts_of(name, raw.dates(date[0]))
        return ColumnFormat(name, "date", date[0], parts=parts), date_doubts(*date)
    mixture = text_cells.why_category(raw)
    doubts = [f"is read as a category: it holds {mixture}"] if mixture else []
    return ColumnFormat(name, "category", _level_form(raw)), doubts


def _level_form(raw: RawColumn) -> str:
    """How the levels of a category are written."""
    if isinstance(raw, np.ndarray):
        return "number" if raw.dtype.kind != "M" else "text"
    levels = Text(raw.cells.select(raw.cells.present(GAPS)))
    if not len(levels) or levels.has_codes:
        return "text"
    if levels.cells.are_words(("true", "false")).all():
        return "boolean"
    if levels.plain is not None:
        return "number"
    return "mixed" if np.isfinite(levels.numbers(NumberFormat())).any() else "text"


def _read(raw: RawColumn, fmt: ColumnFormat, owner: str, notes: ReadingNotes) -> list[Column]:
    """A column as numbers or codes of levels; a date as several."""
    if fmt.kind == "category":
        return [_levels(raw, fmt, owner)]
    if fmt.kind == "date":
        dates = date_columns(_dates(raw, fmt, owner, notes), fmt.name, fmt.parts)
        return [
            Column(name, None, np.where(np.isnan(values), -1, values).astype(int), list(WEEKDAYS))
            if name == part_name(fmt.name, "weekday")
            else Column(name, values, None, [])
            for name, values in dates.items()
        ]
    numbers = _numbers(raw, fmt, owner, notes)
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        cells = [raw.array[row].as_py()] if isinstance(raw, Text) else []
        token = f" {text_cells.advice_on_tokens(cells)}" if cells else ""
        raise ValueError(
            f"{owner}: column {fmt.name!r} of input X contains infinity (row {row}). Replace it, "
            f"or use NaN for a missing value{token}."
        )
    return [Column(fmt.name, numbers, None, [])]


def _numbers(raw: RawColumn, fmt: ColumnFormat, owner: str, notes: ReadingNotes) -> np.ndarray:
    if isinstance(raw, np.ndarray):
        if raw.dtype.kind == "M":
            if not np.isnat(raw).all():
                raise ColumnKindError(owner, fmt, "dates")
            return np.full(len(raw), np.nan)
        if fmt.unit and not np.isnan(raw).all():
            notes.doubts[fmt.name] = [
                f"held numbers in {fmt.unit} in fit, and now holds numbers without a unit: convert "
                "them, if they are in another one"
            ]
        return raw.astype(np.float64, copy=False)
    column, number = to_text(raw), NumberFormat(fmt.form, fmt.unit)
    if number == NumberFormat() and column.plain is not None:
        return column.plain
    values = notes.check(fmt, column.cells, column.numbers(number), owner)
    if doubts := text_cells.unit_doubts(column, number):
        notes.doubts.setdefault(fmt.name, doubts)
    return values


def _dates(raw: RawColumn, fmt: ColumnFormat, owner: str, notes: ReadingNotes) -> np.ndarray:
    if isinstance(raw, np.ndarray):
        if raw.dtype.kind == "M":
            return raw
        if not np.isnan(raw).all():
            raise ColumnKindError(owner, fmt, "numbers")
        return np.full(len(raw), np.datetime64("NaT", "s"))
    column = to_text(raw)
    return notes.check(fmt, column.cells, column.dates(fmt.form), owner)


def _levels(raw: RawColumn, fmt: ColumnFormat, owner: str) -> Column:
    """Codes of levels, in the order of appearance, or of the ordered categories of a frame."""
    cells = encode_values(raw) if isinstance(raw, np.ndarray) else raw.cells
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "fiu" and len(cells.distinct):
        if fmt.form == "text":
            # No level of fit is such a number: 01067 was read as 1067, or words were encoded.
            raise ColumnKindError(owner, fmt, "numbers, which none of its levels are: pass text")
        if fmt.form == "boolean" and not cells.are_words(tuple(TRUTH)).all():
            raise ColumnKindError(owner, fmt, "numbers other than 0 and 1")
    codes, names = cells.codes, text_cells.level_names(cells, fmt.form)
    present, n_rows = cells.present(GAPS), len(codes)
    first_row = np.full(len(names) + 1, n_rows)
    first_row[codes[::-1]] = np.arange(n_rows)[::-1]  # of repeated places, the last value stays
    is_level = np.append(present, False) & (first_row < n_rows)
    places = np.flatnonzero(is_level)
    occurring = {names[k] for k in places.tolist()}  # two of them may have one name
    if isinstance(raw, Categories) and raw.ordered:
        levels = [name for name in dict.fromkeys(names) if name in occurring]
    else:
        by_row = places[np.argsort(first_row[places])].tolist()
        levels = list(dict.fromkeys(names[k] for k in by_row))
    number = {level: k for k, level in enumerate(levels)}
    rank = np.full(len(is_level), -1)
    rank[places] = [number[names[k]] for k in places.tolist()]
    return Column(fmt.name, None, rank[codes], levels)


# ---- columns that say nothing -------------------------------------------------------------------


def _useless(fmt: ColumnFormat, read: list[Column], named: bool) -> str | None:
    """Why a column is not used: it has one value, or is an ID; None if it is."""
    column, n = read[0], len(read[0])
    if n < 2:  # one row shows nothing
        return None
    if fmt.kind == "category" and n >= _FEW_ROWS:
        n_levels = len(column.levels)
        if n_levels == np.count_nonzero(column.codes >= 0) > _FEW_ROWS:
            return "its values are all different"
        if 2 * n_levels > n:
            return f"it has {n_levels:,} levels in {n:,} rows"
    values = column.values if column.codes is None else column.codes
    may_be_id = fmt.kind == "number" and named and n >= _FEW_ROWS and _ID.search(fmt.name)
    if (
        may_be_id
        and (values == np.round(values)).all()
        and (len(np.unique(values)) == n or np.abs(values).max() > LARGEST_EXACT_INTEGER)
    ):
        # Numbers that count the rows under another name may be a time, which a model needs.
        return _NUMERIC_ID
    value = values[0]
    if value != value:
        return _EMPTY if np.isnan(values).all() else None
    return _CONSTANT if (values[:100] == value).all() and (values == value).all() else None


def numbers_rows(column: Column) -> bool:
    """Whether whole numbers count the rows, in any order, of which some may be missing."""
    values, n = column.values, len(column)
    return (
        column.codes is None and n >= _FEW_COUNTED and np.ptp(values) < 2 * n
        and bool((values == np.round(values)).all()) and len(np.unique(values)) == n
    )  # fmt: skip


def uninformative_columns(names: Sequence[str], X: np.ndarray) -> dict[str, str]:
    """Columns of numbers that a fit leaves out, and why: they have one value, or are IDs."""
    reasons = {
        name: _useless(ColumnFormat(name, "number"), [Column(name, values, None, [])], True)
        for name, values in zip(names, np.asarray(X).T, strict=True)
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}
