"""Export to SQL: one SELECT that computes the predictions of a GAM in a database.

The statement is a chain of common table expressions, each with all columns of the one before and
some new ones: cells as numbers, levels and dates; places in pairs; terms; scores; predictions.
Curves are the piecewise polynomials that the C header has (`models.gam.functions`). Large factors
and the cells of pairs are tables of values within the statement, which are joined.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import kernelmaps

from .._util.arguments import check_choice, check_flag
from ..data.dates import WEEKDAYS, part_name
from ..data.table_reader import ColumnFormat
from ..data.text_cells import CLOCK, GAPS, TRUTH
from ..models.gam.base import GeneralizedAdditiveModel
from ..models.gam.codebooks import MISSING, OTHER, Codebook
from ..models.gam.functions import Piece, is_interpolated, last_code, pieces_of
from ..models.gam.predictor import AdditivePredictor, FittedTerm
from ..models.shapes import predictor_of

__all__ = ["to_sql"]

_MAX_EXPONENT = 700.0  # beyond it databases overflow, some with an error
_MAX_NAME = 60  # bytes of a name that is made here: PostgreSQL cuts names after 63
_EXACT_INTEGERS = 2.0**53  # levels beyond are compared as text
_BLANKS = [code for code in range(0x3001) if chr(code).isspace()]
_CODES = ", ".join(map(str, _BLANKS))
_CHARACTERS = " || ".join(f"CHR({code})" for code in _BLANKS)
_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


@dataclass(frozen=True)
class Dialect:
    """What databases write in their own way; ``{0}`` is an expression.

    Attributes
    ----------
    number : str
        A cell as a number, NULL if it is none.
    text : str
        A cell as text without blanks around it.
    date : str
        A cell as ``YYYY-MM-DD HH:MM:SS``.
    floor, modulo : str
    materialized : str
        Keeps the database from copying an expression to all places that use its name.
    """

    number: str = "CAST({0} AS DOUBLE PRECISION)"
    text: str = "TRIM(CAST({0} AS VARCHAR(4000)))"
    date: str = "CAST(CAST({0} AS TIMESTAMP) AS VARCHAR(40))"
    floor: str = "CAST(FLOOR({0}) AS INTEGER)"
    modulo: str = "MOD({0}, {1})"
    materialized: str = ""


_NAN = "CAST('NaN' AS DOUBLE PRECISION)"
_DIALECTS = {
    "ansi": Dialect(),
    "sqlite": Dialect(
        # Text that is a number is compared with a number as such, and other text as text.
        number="CASE WHEN TYPEOF({0}) IN ('integer', 'real') OR {0} = CAST({0} AS REAL) "
        "THEN CAST({0} AS REAL) END",
        text=f"TRIM(CAST({{0}} AS TEXT), CHAR({_CODES}))",
        # Its functions take February 30, times without a day and numbers for dates, too.
        date="CASE WHEN DATE(SUBSTR(TRIM({0}), 1, 19), '+0 days') = SUBSTR(TRIM({0}), 1, 10) "
        "THEN DATETIME(SUBSTR(TRIM({0}), 1, 19)) END",
        floor="+CAST({0} AS INTEGER)",  # of what is not negative; + lets it use an index
        modulo="{0} % {1}",
        materialized="MATERIALIZED ",
    ),
    "duckdb": Dialect(
        number=f"NULLIF(TRY_CAST({{0}} AS DOUBLE), {_NAN})",
        text=f"TRIM(CAST({{0}} AS VARCHAR), {_CHARACTERS})",
        date="STRFTIME(TRY_CAST(SUBSTRING(TRIM(CAST({0} AS VARCHAR)), 1, 19) AS TIMESTAMP), "
        "'%Y-%m-%d %H:%M:%S')",
    ),
    "postgres": Dialect(
        number=f"NULLIF(CAST({{0}} AS DOUBLE PRECISION), {_NAN})",
        text=f"BTRIM(CAST({{0}} AS TEXT), {_CHARACTERS})",
        date="TO_CHAR(CAST({0} AS TIMESTAMP), 'YYYY-MM-DD HH24:MI:SS')",
        materialized="MATERIALIZED ",
    ),
}


def to_sql(
    model: Any,
    table: str | Sequence[str],
    dialect: str = "ansi",
    *,
    columns: Sequence[str] | None = None,
    terms: bool = False,
) -> str:
    """Write the predictions of a GAM as one SELECT of a database.

    Parameters
    ----------
    model : fitted AdditiveRegressor or AdditiveClassifier
        A model of an array reads the columns x0, x1, …
    table : str or sequence of str
        Name of the table or view with the rows; ``("schema", "table")`` for one in a schema.
    dialect : {"ansi", "sqlite", "duckdb", "postgres"}, default="ansi"
        The database. The functions of SQLite and DuckDB read text as `predict` does; "ansi" and
        "postgres" need columns that have the type of what they hold. PostgreSQL needs its own: it
        copies the expressions of "ansi" to all places that use them, and does not end.
    columns : sequence of str, optional
        Columns of the table that come before the prediction, in this order: keys, say. By default
        those that the model reads.
    terms : bool, default=False
        Whether the contribution of each term (`eval_terms`) is a column, too: ``f(age)``.

    Returns
    -------
    str
        A statement without a semicolon, for ``CREATE VIEW … AS`` as well. Its last column is
        ``prediction`` (``prediction 2`` if a column is called so), of one unit of exposure; for a
        classifier, its last columns are ``probability_`` and the name of each class. NULL is a
        missing value. A row that `predict` refuses, with an infinite number, has NULL as its
        prediction.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import kernelmaps as km
    >>> flats = pd.DataFrame({"area": np.linspace(20, 90, 50)})
    >>> model = km.AdditiveRegressor().fit(flats, 80 * np.sqrt(flats["area"]))
    >>> print(km.to_sql(model, "flats", columns=["id"]).splitlines()[-1])
    SELECT s."id", s."score 0" AS "prediction" FROM "score" AS s
    """
    predictor = fitted_predictor(model, "to_sql")
    check_choice("to_sql", "dialect", dialect, tuple(_DIALECTS))
    check_flag("to_sql", "terms", terms)
    if columns is None:
        columns = [column.name for column in predictor.reader.columns if column.kind != "left out"]
    path, carried = ([n] if isinstance(n, str) else list(n or ()) for n in (table, columns))
    for argument, names in (("table", path), ("columns", carried)):
        valid = all(isinstance(name, str) and name and "\0" not in name for name in names)
        if not (names and valid):
            raise ValueError(f"to_sql: {argument} must hold names, got {names!r}.")
    select = _Statement(predictor, _DIALECTS[dialect], path, carried).select(terms)
    return "\n".join([*_remarks(predictor, dialect), select])


def fitted_predictor(model: Any, caller: str) -> AdditivePredictor:
    """The fitted object of a GAM whose terms are piecewise polynomials; others are refused."""
    if isinstance(model, GeneralizedAdditiveModel):
        check_is_fitted(model)
    predictor = predictor_of(model)
    if not isinstance(predictor, AdditivePredictor):
        raise TypeError(
            f"{caller} is for GAMs (AdditiveRegressor, AdditiveClassifier): "
            f"{type(model).__name__} has no tables of terms; export it as .onnx or .h."
        )
    for term in predictor.terms:
        if term.kind == "surface":
            raise ValueError(
                f"{caller}: the term {term.name!r} (surface) is no piecewise polynomial of single "
                "columns or of a grid: fit the model without it, or export it as .onnx."
            )
    return predictor


def _remarks(predictor: AdditivePredictor, dialect: str) -> list[str]:
    """What a reader of the statement has to know, as comments of one line each."""
    lines = [
        f"{predictor.estimator} ({predictor.loss}), written by kernelmaps "
        f"{kernelmaps.__version__} for the dialect {dialect}."
    ]
    lines += [
        f"Edited after the fit: {json.dumps(edit, ensure_ascii=False)}" for edit in predictor.edits
    ]
    for column in predictor.reader.columns:
        name, unit = json.dumps(column.name), "hours" if column.form == CLOCK else column.unit
        if column.kind == "date":
            lines.append(f"Column {name} holds dates, or text such as 2024-01-31 17:30:00.")
        elif column.kind == "number" and (column.form != "plain" or column.unit):
            lines.append(f"Column {name} holds numbers, not text{unit and f' ({unit})'}.")
    return [f"-- {line}" for line in lines]


# ---- expressions --------------------------------------------------------------------------------


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _real(value: float) -> str:
    """A number with an exponent, without which databases may take it for a decimal."""
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if text.startswith("-") else text


def _case(branches: Iterable[str], otherwise: str) -> str:
    lines = [*branches, f"ELSE {otherwise}"]
    return "CASE " + "\n".join(lines).replace("\n", "\n  ") + " END"


def _curve(x: str, piece: Piece, k: int) -> str:
    """A function of numbers: one branch for each bin, and for the ends where it is constant."""
    edges, coef, pieces = piece.edges, piece.coef[:, :, k], []
    for left, right, (value, rise) in zip(edges[:-1], edges[1:], coef, strict=True):
        line = f" + ({x} - {_real(left)}) / {_real(right - left)} * {_real(rise)}" if rise else ""
        pieces.append((right, _real(value) + line))
    if np.isfinite(piece.low):
        pieces.insert(0, (edges[0], _real(coef[0, 0])))
    if np.isfinite(piece.high):
        pieces.append((np.inf, _real(coef[-1].sum())))
    missing = f"WHEN {x} IS NULL THEN {_real(piece.missing[k])}"
    infinite = f"WHEN ABS({x}) > {_real(np.finfo(np.float64).max)} THEN NULL"
    branches = [f"WHEN {x} < {_real(end)} THEN {value}" for end, value in pieces[:-1]]
    return _case([missing, infinite, *branches], pieces[-1][1])


def _date_features(column: ColumnFormat, date: str, dialect: Dialect) -> dict[str, str]:
    """The columns that a date is read as, as `data.dates.date_columns` computes them."""
    year, month, day, hour, minute, second = (
        f"CAST(SUBSTRING({date}, {start}, {length}) AS INTEGER)"
        for start, length in ((1, 4), (6, 2), (9, 2), (12, 2), (15, 2), (18, 2))
    )
    of_4, of_100, of_400 = (f"{dialect.modulo.format(year, n)} = 0" for n in (4, 100, 400))
    leap = f"CASE WHEN {of_4} AND (NOT {of_100} OR {of_400}) THEN 1 ELSE 0 END"
    starts = " ".join(f"WHEN {m} THEN {n}" for m, n in enumerate(_DAYS_BEFORE_MONTH, start=1))
    day_of_year = f"CASE {month} {starts} END + CASE WHEN {month} > 2 THEN {leap} ELSE 0 END"
    day_of_year += f" + {day} - 1"
    days = f"CASE WHEN {month} = 2 THEN 28 + {leap} WHEN {month} IN (4, 6, 9, 11) THEN 30 ELSE 31"
    by_4, by_100, by_400 = (dialect.floor.format(f"({year} - 1) / {n}.0e0") for n in (4, 100, 400))
    # The first of January of the year 1 was a Monday.
    number = f"(365 * ({year} - 1) + {by_4} - {by_100} + {by_400} + {day_of_year})"
    names = " ".join(f"WHEN {k} THEN {_string(name)}" for k, name in enumerate(WEEKDAYS))
    seconds = f"({hour} * 3600 + {minute} * 60 + {second})"
    parts = {
        "month": f"{month} + ({day} - 1.0e0) / ({days} END)",
        "weekday": f"CASE {dialect.modulo.format(number, 7)} {names} END",
        "hour": f"{seconds} / 3600.0e0",
    }
    share = f"(({day_of_year}) * 86400.0e0 + {seconds}) / ((365 + {leap}) * 86400.0e0)"
    features = {part_name(column.name, part): parts[part] for part in column.parts}
    return {column.name: f"{year} + {share}"} | features


def _level(text: str, is_boolean: bool) -> str:
    """The name of a level as the model has it; NULL for words that stand for a missing value."""
    words = ", ".join(map(_string, GAPS))
    names = [
        f"WHEN LOWER({text}) IN ('{n}', '{n}.0', '{word.lower()}') THEN '{word}'"
        for n, word in TRUTH.items()
    ]
    return _case([f"WHEN LOWER({text}) IN ({words}) THEN NULL", *names * is_boolean], text)


def _level_keys(book: Codebook, are_numbers: bool) -> list[tuple[str, int]]:
    """What stands for each level in a comparison, and its code."""
    keys: list[tuple[str, int]] = []
    for code, level in enumerate(book.levels, start=OTHER + 1):
        texts = [level, f"{level}.0"] if re.fullmatch(r"[+-]?\d+", level) else [level]
        names = [_real(float(level))] if are_numbers else [_string(text) for text in texts]
        keys += [(name, code) for name in names if "\0" not in name]
    return keys


# ---- the statement ------------------------------------------------------------------------------


class _Statement:
    """Common table expressions, each with new columns next to those of the one before, `s`.

    Parameters
    ----------
    predictor : AdditivePredictor
    dialect : Dialect
    path : list of str
        The table, after its schema.
    carried : list of str
        Columns of the table in the result.
    """

    def __init__(
        self, predictor: AdditivePredictor, dialect: Dialect, path: list[str], carried: list[str]
    ) -> None:
        self.predictor, self.dialect, self.carried = predictor, dialect, carried
        self.expressions: list[str] = []
        self.source = ".".join(map(_identifier, path))  # of the next expression
        self.names = {name.casefold() for name in (*path, *carried, *predictor.reader.names)}
        self.inputs: dict[int, str] = {}  # columns of the model
        self.numbers: dict[int, str] = {}  # those of categories whose levels are numbers

    def unique_name(self, text: str) -> str:
        """An identifier that nothing else has, whatever its capitals, which databases ignore."""
        text = name = text.replace("\0", "").encode()[:_MAX_NAME].decode(errors="ignore")
        for count in itertools.count(2):
            if name.casefold() not in self.names:
                break
            name = f"{text[: _MAX_NAME // 5]} {count}"
        self.names.add(name.casefold())
        return _identifier(name)

    def add(
        self, title: str, columns: Mapping[Any, tuple[str, str]], joins: Sequence[str] = (),
        carried: str = "s.*",
    ) -> dict[Any, str]:  # fmt: skip
        """Add columns, given by name and expression; what later expressions call them."""
        if not columns:
            return {}
        names = [self.unique_name(name) for name, _ in columns.values()]
        items = [f"{value} AS {name}" for name, (_, value) in zip(names, columns.values())]
        source, self.source = self.source, self.unique_name(title)
        body, tables = ",\n ".join([carried, *items]), "\n ".join([f"FROM {source} AS s", *joins])
        head = f"{self.source} AS {self.dialect.materialized}"
        self.expressions.append(f"{head}(\n SELECT {body}\n {tables})")
        return {key: f"s.{name}" for key, name in zip(columns, names)}

    def add_each(self, title: str, values: Iterable[str], joins: Sequence[str] = ()) -> list[str]:
        """Add a column for each expression, numbered; what later expressions call them."""
        columns = {k: (f"{title} {k}", value) for k, value in enumerate(values)}
        return list(self.add(title, columns, joins).values())

    def add_constants(self, title: str, heads: Sequence[str], rows: Iterable[list[str]]) -> str:
        """Add a table of constants; its name."""
        name, values = self.unique_name(title), ",\n ".join(f"({', '.join(row)})" for row in rows)
        self.expressions.append(f"{name}({', '.join(heads)}) AS (VALUES\n {values})")
        return name

    def select(self, with_terms: bool) -> str:
        """The whole statement."""
        predictor, terms = self.predictor, list(self.predictor.terms)
        moved_parts = predictor.moved_parts if with_terms else []
        for part in moved_parts:
            moved = terms[part.single].values + part.term.values
            terms[part.single] = replace(terms[part.single], values=moved)
        values = self.add_functions([*terms, *(part.term for part in moved_parts)])
        for part, moved_values in zip(moved_parts, values[len(terms) :], strict=True):
            pair = zip(values[part.pair], moved_values, strict=True)
            values[part.pair] = [f"{value} - ({moved})" for value, moved in pair]
        labels = [] if predictor.classes is None else [str(label) for label in predictor.classes]
        several = len(predictor.intercept) > 1
        ends = [f" {name}" for name in predictor.output_names] if several else [""]
        contributions = self.add("terms", {
            (t, k): (f"f({term.name}){end}", values[t][k])
            for t, term in enumerate(terms) for k, end in enumerate(ends)
        })  # fmt: skip
        scores = self.add_each("score", [
            " + ".join([_real(intercept), *(contributions[t, k] for t in range(len(terms)))])
            for k, intercept in enumerate(predictor.intercept)
        ])  # fmt: skip
        result = [f"s.{_identifier(name)}" for name in self.carried]
        result += contributions.values() if with_terms else []
        means = ["prediction", "standard_deviation"][: len(ends)]
        names = [f"probability_{label}" for label in labels] or means
        for name, value in zip(names, self.add_predictions(scores), strict=True):
            result.append(f"{value} AS {self.unique_name(name)}")
        expressions = ",\n".join(self.expressions)
        return f"WITH {expressions}\nSELECT {', '.join(result)} FROM {self.source} AS s"

    def add_predictions(self, scores: Sequence[str]) -> list[str]:
        """The inverse of the link; probabilities are sigmoids, scaled to sum to one."""
        link, limit = self.predictor.fitted_loss.link, _real(_MAX_EXPONENT)
        if link == "identity":
            return [scores[0], *(f"EXP({s})" for s in scores[1:])]
        inverse = "1.0e0 / (1.0e0 + EXP(-{0}))"
        if link == "log":
            inverse = "EXP({0})"
        elif link == "cumulative logit":
            thresholds = self.predictor.fitted_loss.thresholds
            scores = self.add_each("above", [f"{_real(t)} - {scores[0]}" for t in thresholds])
        elif link == "softmax" and len(scores) > 1:  # nothing overflows below the largest score
            largest_of = (
                f"WHEN {' AND '.join(f'{s} >= {other}' for other in scores)} THEN {s}"
                for s in scores
            )
            (largest,) = self.add_each("largest", [_case(largest_of, "NULL")])
            scores, inverse = [f"({s} - {largest})" for s in scores], "EXP({0})"
        elif link not in ("logit", "softmax"):
            raise ValueError(f"to_sql: predictions with the link {link!r} have no form in SQL.")
        bounded = self.add_each("bounded", [
            _case([f"WHEN {s} > {limit} THEN {limit}", f"WHEN {s} < -{limit} THEN -{limit}"], s)
            for s in scores
        ])  # fmt: skip
        means = self.add_each("mean", map(inverse.format, bounded))
        if self.predictor.classes is None:
            return means
        if link == "cumulative logit":
            ends = zip([*means, "1.0e0"], ["0.0e0", *means], strict=True)
            return [f"{reached} - {below}" for reached, below in ends]
        if len(means) == 1:
            return [f"1.0e0 - {means[0]}", *means]
        return [f"{p} / ({' + '.join(means)})" for p in means]

    # -- columns ----------------------------------------------------------------------------------

    def add_inputs(self, used: Iterable[int]) -> None:
        """Add the columns of the model that terms are functions of."""
        position = {self.predictor.books[j].name: j for j in used}
        columns = self.predictor.reader.columns
        formats = [column for column in columns if not position.keys().isdisjoint(column.features)]
        cells: dict[tuple[str, str], tuple[str, str]] = {}
        for column in formats:
            kinds = ["text" if column.kind == "category" else column.kind]
            if column.kind == "category" and column.form == "number":
                levels = self.predictor.books[position[column.name]].levels
                exact = all(abs(float(level)) < _EXACT_INTEGERS for level in levels)
                kinds += ["number"] * exact
            for kind in kinds:
                value = getattr(self.dialect, kind).format(f"s.{_identifier(column.name)}")
                cells[column.name, kind] = (f"{column.name} ({kind})", value)
        carried = ",\n ".join(f"s.{_identifier(name)}" for name in dict.fromkeys(self.carried))
        read = self.add("cells", cells, carried=carried)
        values: dict[int, tuple[str, str]] = {}
        for column in formats:
            j = position.get(column.name, -1)
            if column.kind == "date":
                features = _date_features(column, read[column.name, "date"], self.dialect)
                values |= {
                    position[name]: (f"{name} (value)", value)
                    for name, value in features.items() if name in position
                }  # fmt: skip
            elif column.kind == "category":
                level = _level(read[column.name, "text"], column.form == "boolean")
                values[j] = (f"{column.name} (level)", level)
                if (column.name, "number") in read:
                    self.numbers[j] = read[column.name, "number"]
            else:
                self.inputs[j] = read[column.name, "number"]
        self.inputs |= self.add("values", values)

    # -- functions --------------------------------------------------------------------------------

    def add_functions(self, terms: Sequence[FittedTerm]) -> list[list[str]]:
        """Expressions of the terms, by output."""
        self.add_inputs(dict.fromkeys(j for term in terms for j in term.columns))
        values = [
            [self.function(j, piece) for j, piece in zip(term.columns, pieces)]
            for term, pieces in zip(terms, pieces_of(self.predictor.books, terms), strict=True)
        ]
        pairs = [functions for term, functions in zip(terms, values) if term.coarse]
        places = iter(self.add_each("place", [place for sides in pairs for (place,) in sides]))
        return [
            self.pair(term, [next(places), next(places)]) if term.coarse else functions[0]
            for term, functions in zip(terms, values)
        ]

    def function(self, j: int, piece: Piece) -> list[str]:
        """Expressions of a function of one column, by output; large factors are joined."""
        book, x = self.predictor.books[j], self.inputs[j]
        if book.kind == "number":
            return [_curve(x, piece, k) for k in range(len(piece.missing))]
        texts = [[*map(_real, row)] for row in piece.values_at(book.numbers_of_codes)]
        keys, key = _level_keys(book, j in self.numbers), self.numbers.get(j, x)
        if not book.is_large:
            return [
                _case(
                    [f"WHEN {x} IS NULL THEN {missing}",
                     *(f"WHEN {key} = {name} THEN {texts[code][k]}" for name, code in keys)],
                    other,
                )
                for k, (missing, other) in enumerate(zip(texts[MISSING], texts[OTHER]))
            ]  # fmt: skip
        heads = [f"v{k}" for k in range(len(piece.missing))]
        levels = ([name, *texts[code]] for name, code in keys)
        name = self.add_constants(f"levels of {book.name}", ["k", *heads], levels)
        return self.add_each(f"factor {book.name}", [
            f"CASE WHEN {x} IS NULL THEN {missing} ELSE COALESCE(l.{head}, {other}) END"
            for head, missing, other in zip(heads, texts[MISSING], texts[OTHER])
        ], [f"LEFT JOIN {name} AS l ON l.k = {key}"])  # fmt: skip

    def pair(self, term: FittedTerm, places: Sequence[str]) -> list[str]:
        """Expressions of a pair, by output, from places along its columns; cells are joined."""
        axes, codes = [], []
        for axis, place in enumerate(places):
            last, code = last_code(term, axis), self.dialect.floor.format(place)
            codes.append([1, last] if last else range(term.counts.shape[axis]))
            # Cells at both sides of the place, and their shares, as in `functions.term_values`:
            # beyond the last code the share is zero.
            share = f"({place} - {code})"
            sides = [(code, "1.0e0 - " + share), (f"{code} + 1", share)]
            if last:
                sides = [("1", f"1.0e0 - {place}"), (str(last), place)]
            axes.append(sides if is_interpolated(term, axis) else [(code, "1.0e0")])
        heads = [f"v{k}" for k in range(term.values.shape[-1])]
        cells = (
            [*map(str, cell), *map(_real, term.values[cell])] for cell in itertools.product(*codes)
        )
        name = self.add_constants(f"cells of {term.name}", ["i", "j", *heads], cells)
        corners = list(enumerate(itertools.product(*axes)))
        joins = [
            f"LEFT JOIN {name} AS c{n} ON c{n}.i = {i} AND c{n}.j = {j}"
            for n, ((i, _), (j, _)) in corners
        ]
        return self.add_each(term.name, [
            " + ".join(
                f"({share}) * ({other_share}) * COALESCE(c{n}.{head}, 0.0e0)"
                for n, ((_, share), (_, other_share)) in corners
            )
            for head in heads
        ], joins)  # fmt: skip
