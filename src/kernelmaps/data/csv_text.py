"""CSV as text: lines, cells, and what a cell holds."""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from .columns import ADVICE
from .suffixes import data_suffix, open_text

GAPS = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "null", "?"))
"""What stands for a missing value, in small letters."""
_WHOLE = re.compile(r"[+-]?\d+(\.0*)?")


def csv_header(path: Path) -> list[str]:
    """Names of the columns."""
    return _header_of(next(_split(path, []), []))[0]


def _header_of(cells: Sequence[str]) -> tuple[list[str], bool]:
    """Names of the columns, and whether they stand in the first line (which is not all numbers)."""
    if all(is_number(cell) for cell in cells):
        return [f"x{j}" for j in range(len(cells))], False
    return [cell.strip() or f"column {j + 1}" for j, cell in enumerate(cells)], True


def csv_lines(path: Path) -> tuple[list[str], list[list[str]], np.ndarray]:
    """Names of the columns, the cells, and the number of the line that each row begins on."""
    return next(csv_blocks(path, sys.maxsize))


def csv_blocks(path: Path, rows: int) -> Iterator[tuple[list[str], list[list[str]], np.ndarray]]:
    """The same for some rows after the other; the first block may be empty."""
    numbers: list[int] = []
    lines = _split(path, numbers)
    head = next(lines, None)
    if head is None:
        raise ValueError(f"{path} is empty.")
    header, named = _header_of(head)
    twice = sorted(column for column, count in Counter(header).items() if count > 1)
    if twice:
        raise ValueError(f"{path} has the columns {twice} more than once.")
    if named:
        numbers.clear()
    body = lines if named else chain([head], lines)
    block = list(islice(body, rows))
    while True:
        for place, line in enumerate(block):
            if len(line) != len(header):
                raise ValueError(
                    f"{path}, line {numbers[place]}: {len(line)} cells where the header has "
                    f"{len(header)} columns."
                )
        yield header, block, np.array(numbers, np.int64)
        numbers.clear()
        block = list(islice(body, rows))
        if not block:
            return


def _split(path: Path, numbers: list[int]) -> Iterator[list[str]]:
    """The cells of all rows that are not empty; to `numbers` goes the line that each begins on."""
    with open_text(path) as stream:
        try:
            # Not by seeking back, which decompression would pay for twice.
            first = stream.readline()
            tabs = data_suffix(path) == ".tsv"
            delimiter = "\t" if tabs else max(",;\t", key=first.count)
            reader = csv.reader(chain([first], stream), delimiter=delimiter)
            number = 1
            for line in reader:
                if line:
                    numbers.append(number)
                    yield line
                number = reader.line_num + 1
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is not UTF-8 text ({error.reason}, byte {error.start} of a block). Save "
                "it as UTF-8."
            ) from error
        except csv.Error as error:
            raise ValueError(
                f"{path}, line {reader.line_num}: the line cannot be split into cells: {error}."
                " Is a quotation mark missing?"
            ) from error


def number_in(cell: str) -> float | None:
    """A number as Python writes it; None for anything else."""
    try:
        return None if "_" in cell else float(cell)  # Python reads 1_2 as 12
    except ValueError:
        return None


def numbers_in(cells: Sequence[str]) -> np.ndarray | None:
    """All cells as numbers, read at once; None if one of them is not a number."""
    if any("_" in cell for cell in cells):
        return None
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return None


def is_number(cell: str) -> bool:
    """Whether a cell is a number as Python writes it."""
    return number_in(cell) is not None


def is_text(cell: str) -> bool:
    """Whether a cell is neither a number nor missing."""
    return not is_number(cell) and not _is_gap(cell)


def _is_gap(cell: str) -> bool:
    return cell.strip().lower() in GAPS


def gaps_of(cells: Sequence[str]) -> np.ndarray:
    """Which cells are missing; "none" is among numbers, while it may be a level among words."""
    found = np.array([_is_gap(cell) for cell in cells], dtype=bool)
    none = np.array([cell.strip().lower() == "none" for cell in cells], dtype=bool)
    if none.any() and all(map(is_number, (cells[i] for i in np.flatnonzero(~(found | none))))):
        return found | none
    return found


def numbers_of(cells: Sequence[str], column: str, name: str, lines: np.ndarray) -> np.ndarray:
    """Cells as finite numbers; anything else is refused by its place."""
    values = numbers_in(cells)
    if values is not None and np.isfinite(values).all():
        return values
    known = ((i, number_in(cell)) for i, cell in enumerate(cells))
    place = next(i for i, number in known if number is None or not np.isfinite(number))
    found, where = cells[place], f"{name}, line {lines[place]}, column {column!r}: the cell"
    if _is_gap(found) or found.strip().lower() == "none":
        raise ValueError(f"{where} is empty. Fill it, or leave the column out with drop=.")
    raise ValueError(f"{where} holds {found!r}, not a finite number. {ADVICE}")


def labels_of(cells: Sequence[str], target: str, name: str, lines: np.ndarray) -> np.ndarray:
    """Numbers where all cells are numbers (whole ones as integers), else strings."""
    missing = np.flatnonzero(gaps_of(cells))
    if missing.size:
        raise ValueError(
            f"{name}, line {lines[missing[0]]}: the target {target!r} is missing (rows without "
            f"it: {len(missing)})."
        )
    if not all(is_number(cell) for cell in cells):
        return np.array([cell.strip() for cell in cells])
    values = [_exact(cell) for cell in cells]
    if all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    numbers = np.array(values, dtype=np.float64)
    for place, value in enumerate(values):
        if not np.isfinite(numbers[place]) or int(numbers[place]) != int(value):
            fault = "neither a 64-bit integer nor a float64 represents exactly"
            fault = fault if np.isfinite(numbers[place]) else "is not a finite number"
            raise ValueError(
                f"{name}, line {lines[place]}: the target {target!r} holds {cells[place][:50]!r}, "
                f"which {fault}. Rescale it, or put a letter in front if it names a class."
            )
    whole = np.all(numbers == np.round(numbers)) and np.all(np.abs(numbers) <= 2.0**53)
    return numbers.astype(np.int64) if whole else numbers


def _exact(cell: str) -> int | float:
    """An integer where the text is one, because float64 has no others beyond 2⁵³."""
    value = float(cell)
    whole = np.isfinite(value) and _WHOLE.fullmatch(cell.strip())
    return int(cell.strip().partition(".")[0]) if whole else value
