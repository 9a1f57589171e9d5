"""Names of arguments in messages, and checks of arguments that many take, in one wording.

`owner` is the name of the function, or the estimator itself. A message names an argument by
`parameter` or `argument`, so that a command prints the option that was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any

from numpy import bool_, inf, ma, timedelta64

MOST = 2**31 - 1
"""The largest count: of columns, which indices of 32 bits number, of rows, or of steps."""

# Kinds of parameters that estimators declare, and what they are called.
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "bool": ((bool, bool_), "True or False"),
    "int": (Integral, "an integer"),
    "float": (Real, "a number"),
    "str": (str, "a string"),
    "None": (type(None), "None"),
}
_EXTREME = (1e-9, 1e9)  # sizes of numbers beyond which they may be the reason for an error

_options: Mapping[str, str] = {}  # options of the running command, by the names of arguments


@contextmanager
def named_as_options(options: Mapping[str, str]) -> Iterator[None]:
    """Let messages name arguments as the options of a command: ``{"max_error": "--max-error"}``."""
    global _options
    before, _options = _options, options
    try:
        yield
    finally:
        _options = before


def parameter(name: str) -> str:
    """A parameter as the subject of a message: ``max_error``, or ``--max-error`` in a command."""
    return _options.get(name, name)


def argument(name: str, value: Any = ...) -> str:
    """An argument to pass: ``loss=`` or ``loss='poisson'``; in a command ``--loss poisson``."""
    option = _options.get(name)
    if value is ...:
        return option or f"{name}="
    return f"{option} {value}" if option else f"{name}={value!r}"


def is_number(value: Any, kind: type = Real) -> bool:
    """Whether a value is a number, or one of a `kind`: no boolean, and no span of time.

    NumPy registers `timedelta64` as an integer.
    """
    return isinstance(value, kind) and not isinstance(value, bool | timedelta64)


def check_choice(owner: Any, name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse what is not one of some words, or of some whole numbers."""
    is_word = isinstance(choices[0], str)
    right_kind = isinstance(value, str) if is_word else is_number(value, Integral)
    if not right_kind or value not in choices:
        words = ", ".join(map(repr, choices))
        raise ValueError(
            f"{_named(owner)}: {parameter(name)} must be one of {words}, got {value!r}."
        )


def check_count(owner: Any, name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`, or a clear error."""
    if not is_number(value, Integral) or value < least:
        raise ValueError(
            f"{_named(owner)}: {parameter(name)} must be an integer >= {least}, got {value!r}."
        )
    if int(value) > MOST:
        raise ValueError(
            f"{_named(owner)}: {parameter(name)} must be at most {MOST}, got {value!r}."
        )
    return int(value)


def check_number(
    owner: Any, name: str, value: Any, requirement: str, holds: Callable[[float], bool]
) -> None:
    """Refuse what is not a number for which `holds` is true; `requirement` says it in words."""
    if not is_number(value) or not holds(float(value)):
        raise ValueError(
            f"{_named(owner)}: {parameter(name)} must be {requirement}, got {value!r}."
        )


def check_positive(
    owner: Any, name: str, value: Any, requirement: str = "a positive number"
) -> None:
    """Refuse what is not a finite number above 0."""
    check_number(owner, name, value, requirement, lambda number: 0 < number < inf)


def check_flag(owner: Any, name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | bool_):
        raise ValueError(
            f"{_named(owner)}: {parameter(name)} must be True or False, got {value!r}."
        )


def refuse_masked(owner: Any, name: str, values: Any) -> None:
    """Refuse arrays of `numpy.ma` with masked entries, whose values would be taken for data."""
    if isinstance(values, list | tuple) and any(isinstance(row, ma.MaskedArray) for row in values):
        values = ma.stack(values)
    if isinstance(values, ma.MaskedArray) and ma.is_masked(values):
        raise ValueError(
            f"{_named(owner)}: {name} is a masked array with {ma.count_masked(values)} masked "
            f"entries. Leave out or impute the rows with such entries; {name}.filled(numpy.nan) "
            "makes them NaN, for models that accept missing values."
        )


def with_parameter(owner: Any, error: Exception) -> Exception:
    """An error of a fit in words that name the parameter which is to blame; else as it is.

    That is one of another kind than the estimator declares (its fields are annotated), or, where
    numbers overflow or memory is short, one of an extreme size.
    """
    given = {item.name: item.type for item in fields(owner) if item.init} if (
        is_dataclass(owner)
    ) else {}  # fmt: skip
    for name, declared in given.items():
        kinds = [_KINDS.get(type_name) for type_name in str(declared).split(" | ")]
        value = getattr(owner, name)
        if name in str(error) or any(kind is None or _is_a(value, kind[0]) for kind in kinds):
            continue
        words = " or ".join(kind[1] for kind in kinds if kind is not None)
        return ValueError(f"{_named(owner)}: {parameter(name)} must be {words}, got {value!r}.")
    extreme = {name: value for name in given if _is_extreme(value := getattr(owner, name))}
    if not extreme or any(name in str(error) for name in extreme):
        return error
    kind = type(error) if type(error) in (TypeError, MemoryError) else ValueError
    reasons = ", ".join(argument(name, value) for name, value in extreme.items())
    return kind(f"{_named(owner)}: {error} Is the reason {reasons}?")


def _is_a(value: Any, kind: type | tuple[type, ...]) -> bool:
    return is_number(value, kind) if kind in (Integral, Real) else isinstance(value, kind)


def _is_extreme(value: Any) -> bool:
    if not is_number(value):
        return False
    least, most = _EXTREME
    return value != 0 and not least <= abs(float(value)) <= most


def _named(owner: Any) -> str:
    return owner if isinstance(owner, str) else type(owner).__name__
