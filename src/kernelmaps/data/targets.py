"""The column to predict: numbers or labels, read exactly or refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._util.arguments import argument
from .._util.lazy import pa, pc
from ..exceptions import SuspectColumnWarning
from .columns import RawColumn, to_text, typed_number_doubts
from .text_cells import (
    LABEL_GAPS,
    NUMBER_GAPS,
    NumberFormat,
    Text,
    advice_on_tokens,
    find_date_format,
    find_number_format,
    number_doubts,
    quote_cells,
    rows_of,
    unit_doubts,
    why_category,
)

_WHOLE = r"^[+-]?\d+(\.0*)?$"
LARGEST_EXACT_INTEGER = 2.0**53  # float64 represents all integers up to here
Where = Callable[[int | None], str]  # of None: the table


def target_values(raw: RawColumn, target: str, where: Where) -> tuple[np.ndarray, np.ndarray]:
    """Targets of the rows that have one, and which rows these are.

    Whole numbers become int64, other numbers float64; text stays text, with true and false as
    booleans. `where` says where a row is, for messages.
    """
    if isinstance(raw, np.ndarray):
        if raw.dtype.kind == "M":
            raise ValueError(
                f"{where(0)}: the target {target!r} holds dates. Turn it into a number to predict."
            )
        has_target = ~np.isnan(raw)
        if np.isinf(raw).any():
            row = where(int(np.argmax(np.isinf(raw))))
            raise ValueError(f"{row}: the target {target!r} holds infinity. Leave the row out.")
        _warn_of(typed_number_doubts(raw), f"the target {target!r}", where)
        return _to_integers(raw[has_target]), has_target
    column = to_text(raw)
    if column.plain is None:
        present = np.append(column.cells.present(NUMBER_GAPS), False)
        has_target = present[column.cells.codes]
    else:
        has_target = ~np.isnan(column.plain)
    numeric = pc.utf8_trim_whitespace(column.array.filter(pa.array(has_target)))
    rows = np.flatnonzero(has_target)

    def locate(k: int) -> str:
        """Where the k-th target stands that is refused."""
        return f"{where(int(rows[k]))}: the target {target!r} holds"

    is_plain = Text(numeric).plain is not None and not column.has_codes
    fmt = NumberFormat() if is_plain else find_number_format(column)
    if fmt is not None:
        values = (
            _exact(numeric, locate) if is_plain else _parse_formatted(column, fmt, rows, locate)
        )
        doubts = [*number_doubts(column, fmt), *unit_doubts(column, fmt)]
        _warn_of(doubts, f"the target {target!r}", where)
        return values, has_target
    content = "dates" if find_date_format(column) is not None else why_category(column)
    doubts = [f"is read as labels of classes: it holds {content}"] if content else []
    _warn_of(doubts, f"the target {target!r}", where)
    present = column.cells.present(LABEL_GAPS)
    has_target = np.append(present, False)[column.cells.codes]
    rank = np.cumsum(present) - 1
    words = column.cells.distinct.filter(pa.array(present))
    truth = truth_values(words)
    labels = np.array(words.to_pylist(), dtype=str) if truth is None else truth
    return labels[rank[column.cells.codes[has_target]]], has_target


def _warn_of(doubts: Iterable[str], subject: str, where: Where) -> None:
    """Warn of what else the cells of a column may mean, without the line of one of them."""
    sentences = [f"{subject} {doubt}" for doubt in doubts if doubt]
    if sentences:
        warnings.warn(f"{where(None)}: {'; '.join(sentences)}.", SuspectColumnWarning, stacklevel=4)


def truth_values(words: pa.Array) -> np.ndarray | None:
    """Cells that are all true or false, as booleans; else None."""
    lower = pc.utf8_lower(words)
    if not len(words) or not pc.all(pc.is_in(lower, pa.array(["true", "false"]))).as_py():
        return None
    return pc.equal(lower, "true").to_numpy(zero_copy_only=False)


def _to_integers(values: np.ndarray) -> np.ndarray:
    """Whole numbers as integers, where float64 holds them."""
    if values.dtype.kind != "f":
        return values
    values = values.astype(np.float64)
    are_integers = (values == np.round(values)).all() and (
        np.abs(values) <= LARGEST_EXACT_INTEGER
    ).all()
    return values.astype(np.int64) if are_integers else values


def _exact(numeric: pa.Array, locate: Callable[[int], str]) -> np.ndarray:
    """Plain numbers; one that no type represents exactly is refused."""
    try:
        return pc.replace_substring_regex(numeric, r"\.0*$", "").cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        pass
    values = numeric.cast(pa.float64()).to_numpy(zero_copy_only=False)
    is_integer = pc.match_substring_regex(numeric, _WHOLE).to_numpy(zero_copy_only=False)
    inexact = ~np.isfinite(values) | (is_integer & (np.abs(values) >= LARGEST_EXACT_INTEGER))
    for k in np.flatnonzero(inexact).tolist():
        cell, finite = numeric[k].as_py(), np.isfinite(values[k])
        if finite and int(values[k]) == int(cell.partition(".")[0]):
            continue
        fault = "neither a 64-bit integer nor a float64 represents exactly"
        fault = fault if finite else "is not a finite number"
        raise ValueError(
            f"{locate(k)} {cell[:50]!r}, which {fault}. Rescale it, or put a letter in front if it "
            "names a class."
        )
    return _to_integers(values)


def _parse_formatted(
    column: Text, fmt: NumberFormat, rows: np.ndarray, locate: Callable[[int], str]
) -> np.ndarray:
    """Numbers with units or grouped digits; other cells among them are refused."""
    codes = column.cells.codes[rows]
    values = column.numbers(fmt)[codes]
    bad = np.flatnonzero(np.isnan(values))
    if len(bad):
        cells = column.cells.distinct.take(pa.array(np.unique(codes[bad]))).to_pylist()
        raise ValueError(
            f"{locate(int(bad[0]))} numbers, and {quote_cells(cells)} {rows_of(len(bad))} "
            f"{advice_on_tokens(cells)}. Correct these cells, or put a letter in front of all if "
            "they name classes."
        )
    return values


def finite_numbers(
    text: Text, fmt: NumberFormat | None, column: str, where: Where, advice: str
) -> np.ndarray:
    """Cells of a feature that must all be finite numbers; another cell is refused by its place.

    `fmt` says how the column writes its numbers; None: it has other cells, which the `advice` is
    about, or true and false, which are 1 and 0.
    """
    values, plain = None, fmt is None or fmt == NumberFormat()
    if plain:
        truth = truth_values(text.array) if text.plain is None else None
        values = text.plain if truth is None else truth.astype(np.float64)
    fmt = fmt or NumberFormat()
    if values is None:
        values = text.cells.rows(text.numbers(fmt))
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        cell: Any = text.array[row].as_py()
        place = f"{where(row)}, column {column!r}: the cell"
        if (cell or "").strip().lower() in NUMBER_GAPS:
            raise ValueError(
                f"{place} is empty. Fill it, or leave the column out with {argument('drop')}."
            )
        raise ValueError(f"{place} holds {cell!r}, not a finite number. {advice}")
    doubts = [*number_doubts(text, fmt), *unit_doubts(text, fmt)]
    if text.has_codes:
        doubts.append("holds codes with leading zeros, read as numbers: leave it out if it names "
                      "things")  # fmt: skip
    _warn_of(doubts, f"column {column!r}", where)
    return values


def number_values(raw: RawColumn, column: str, where: Where) -> np.ndarray:
    """A column of numbers (weights, exposures), NaN where one is missing."""
    values, has_target = target_values(raw, column, where)
    if values.dtype.kind not in "iuf":
        row, example = int(np.argmax(has_target)), quote_cells(map(str, values[:1].tolist()))
        raise ValueError(f"{where(row)}: {column} must be numbers, got {example}.")
    out = np.full(len(has_target), np.nan)
    out[has_target] = values
    return out
