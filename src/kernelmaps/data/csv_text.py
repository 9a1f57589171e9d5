"""What a cell of text holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

GAPS = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "null", "?"))
"""What stands for a missing value, in small letters."""


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


def _is_gap(cell: str) -> bool:
    return cell.strip().lower() in GAPS


def gaps_of(cells: Sequence[str]) -> np.ndarray:
    """Which cells are missing; "none" is among numbers, while it may be a level among words."""
    found = np.array([_is_gap(cell) for cell in cells], dtype=bool)
    none = np.array([cell.strip().lower() == "none" for cell in cells], dtype=bool)
    if none.any() and all(map(is_number, (cells[i] for i in np.flatnonzero(~(found | none))))):
        return found | none
    return found
