"""Checks of arguments that many functions and estimators take, in one wording.

`owner` is the name of the function, or the estimator itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

from numpy import bool_, inf, ma


def check_choice(owner: Any, name: str, value: Any, known: Sequence[Any]) -> None:
    """Refuse what is not one of some words, or of some whole numbers."""
    kind = str if isinstance(known[0], str) else Integral
    if isinstance(value, bool) or not isinstance(value, kind) or value not in known:
        words = ", ".join(map(repr, known))
        raise ValueError(f"{_named(owner)}: {name} must be one of {words}, got {value!r}.")


def check_count(owner: Any, name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`, or a clear error."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{_named(owner)}: {name} must be an integer >= {least}, got {value!r}.")
    return int(value)


def check_number(
    owner: Any, name: str, value: Any, wanted: str, holds: Callable[[float], bool]
) -> None:
    """Refuse what is not a number, or not such a one; `wanted` says it in words."""
    if isinstance(value, bool) or not isinstance(value, Real) or not holds(float(value)):
        raise ValueError(f"{_named(owner)}: {name} must be {wanted}, got {value!r}.")


def check_positive(owner: Any, name: str, value: Any, wanted: str = "a positive number") -> None:
    """Refuse what is not a finite number above 0."""
    check_number(owner, name, value, wanted, lambda number: 0 < number < inf)


def check_flag(owner: Any, name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | bool_):
        raise ValueError(f"{_named(owner)}: {name} must be True or False, got {value!r}.")


def refuse_masked(owner: Any, name: str, values: Any) -> None:
    """Refuse arrays of `numpy.ma` with masked entries, whose values would be taken for data."""
    if isinstance(values, ma.MaskedArray) and ma.is_masked(values):
        raise ValueError(
            f"{_named(owner)}: {name} is a masked array with {ma.count_masked(values)} masked "
            f"entries. Leave out or impute the rows with such entries; {name}.filled(numpy.nan) "
            "makes them NaN, for models that accept missing values."
        )


def _named(owner: Any) -> str:
    return owner if isinstance(owner, str) else type(owner).__name__
