"""Errors and warnings that a user of kernelmaps may want to catch by name."""

from __future__ import annotations

from typing import Any

__all__ = [
    "DesignError",
    "FileFormatError",
    "KernelScaleWarning",
    "MissingTargetWarning",
    "OutOfDomainWarning",
    "SkippedLinesWarning",
    "SuspectColumnWarning",
    "ToleranceError",
    "UnreadableCellWarning",
]


class FileFormatError(ValueError):
    """A file is truncated, damaged, foreign, or written by a newer version."""


class OutOfDomainWarning(UserWarning):
    """Values are outside the domain that a map was fitted to, or beyond a GAM's training rows."""


class KernelScaleWarning(UserWarning):
    """A kernel is numerically constant, or diagonal, on the rows that a map was fitted to."""


class SuspectColumnWarning(UserWarning):
    """A column is probably not a feature (an ID, a copy of the target), or may be misread."""


class MissingTargetWarning(UserWarning):
    """Rows of a file that have no target were left out."""


class SkippedLinesWarning(UserWarning):
    """Lines of a file that have more or fewer cells than its header were left out."""


class UnreadableCellWarning(UserWarning):
    """Cells of a table that do not fit the kind of their column were counted as missing."""


class DesignError(RuntimeError):
    """A map could not be designed as asked.

    Attributes
    ----------
    best : object or None
        The best design that was found before giving up, if there is one.
    """

    def __init__(self, message: str, best: Any = None) -> None:
        super().__init__(message)
        self.best = best


class ToleranceError(ValueError):
    """No map has an error below the tolerance.

    Attributes
    ----------
    best : object
        What is known of the nearest one.
    """

    def __init__(self, message: str, best: Any = None) -> None:
        super().__init__(message)
        self.best = best
