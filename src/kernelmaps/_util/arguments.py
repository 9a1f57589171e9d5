"""Names of arguments in messages, and checks of arguments that many take, in one wording.

`owner` is the name of the function, or the estimator itself. A message names an argument by
`parameter` or `argument`, so that a command prints the option that was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib import import_module
from numbers import Integral, Real
from shlex import quote
from typing import Any

import numpy as np
from numpy import bool_, inf, ma, timedelta64

MOST = 2**31 - 1
"""The largest count: of columns, which indices of 32 bits number, of rows, or of steps."""

# Kinds of parameters that estimators declare: whether a value is one, and what they are called.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bool": (lambda value: isinstance(value, bool | bool_), "True or False"),
    "int": (lambda value: is_number(value, Integral), "an integer"),
    "float": (lambda value: is_number(value), "a number"),
    "str": (lambda value: isinstance(value, str), "a string"),
    "None": (lambda value: value is None, "None"),
}

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
    return f"{option} {quote(str(value))}" if option else f"{name}={value!r}"


def is_number(value: Any, kind: type = Real) -> bool:
    """Whether a value is a number, or one of a `kind`: no boolean, and no span of time.

    NumPy registers `timedelta64` as an integer.
    """
    return isinstance(value, kind) and not isinstance(value, bool | timedelta64)


def argument_error(owner: Any, name: str, value: Any, requirement: str) -> ValueError:
    """The error of an argument that is not what it must be."""
    owner = owner if isinstance(owner, str) else type(owner).__name__
    return ValueError(f"{owner}: {parameter(name)} must be {requirement}, got {value!r}.")


def check_choice(owner: Any, name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse what is not one of some words, or of some whole numbers."""
    is_word = isinstance(choices[0], str)
    right_kind = isinstance(value, str) if is_word else is_number(value, Integral)
    if not right_kind or value not in choices:
        raise argument_error(owner, name, value, f"one of {', '.join(map(repr, choices))}")


def check_count(owner: Any, name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`, or a clear error."""
    if not is_number(value, Integral) or value < least:
        raise argument_error(owner, name, value, f"an integer >= {least}")
    if int(value) > MOST:
        raise argument_error(owner, name, value, f"at most {MOST}")
    return int(value)


def check_number(
    owner: Any, name: str, value: Any, requirement: str, holds: Callable[[float], bool]
) -> None:
    """Refuse what is not a number for which `holds` is true; `requirement` says it in words."""
    if not is_number(value) or not holds(float(value)):
        raise argument_error(owner, name, value, requirement)


def check_positive(
    owner: Any, name: str, value: Any, requirement: str = "a positive number"
) -> None:
    """Refuse what is not a finite number above 0."""
    check_number(owner, name, value, requirement, lambda number: 0 < number < inf)


def check_flag(owner: Any, name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | bool_):
        raise argument_error(owner, name, value, "True or False")


def refuse_masked(owner: Any, name: str, values: Any) -> None:
    """Refuse arrays of `numpy.ma` with masked entries, whose values would be taken for data."""
    if isinstance(values, list | tuple) and any(isinstance(row, ma.MaskedArray) for row in values):
        values = ma.stack(values)
    if isinstance(values, ma.MaskedArray) and ma.is_masked(values):
        owner = owner if isinstance(owner, str) else type(owner).__name__
        raise ValueError(
            f"{owner}: {name} is a masked array with {ma.count_masked(values)} masked entries. "
            f"Leave them out, impute them, or make them missing values: {name}.filled(numpy.nan)."
        )


def with_parameter(owner: Any, error: Exception) -> Exception:
    """An error of a fit in words that name the parameter which is to blame; else as it is.

    That is one of another kind than the estimator declares (its fields are annotated), or, where
    numbers overflow or memory is short, one of an extreme size.
    """
    parameters = [item for item in fields(owner) if item.init] if is_dataclass(owner) else []
    for item in parameters:
        kinds = [_KINDS.get(type_name) for type_name in str(item.type).split(" | ")]
        name, value = item.name, getattr(owner, item.name)
        if name in str(error) or any(kind is None or kind[0](value) for kind in kinds):
            continue
        words = " or ".join(kind[1] for kind in kinds if kind is not None)
        return argument_error(owner, name, value, words)
    values = {item.name: getattr(owner, item.name) for item in parameters}
    extreme = {
        name: value
        for name, value in values.items()
        if is_number(value) and value != 0 and not 1e-9 <= abs(float(value)) <= 1e9
    }
    if not extreme or any(name in str(error) for name in extreme):
        return error
    kind = type(error) if type(error) in (TypeError, MemoryError) else ValueError
    reasons = ", ".join(argument(name, value) for name, value in extreme.items())
    return kind(f"{type(owner).__name__}: {error} Is the reason {reasons}?")


EXTRA_OF = {
    "matplotlib": "plot", "dask": "dask", "distributed": "dask", "onnx": "onnx",
    "onnxruntime": "onnx", "skl2onnx": "onnx", "skops": "skops", "openpyxl": "excel",
}  # fmt: skip
"""The smallest extra that installs each optional package."""


def install_hint(package: str) -> str:
    """Say how to install a missing package."""
    extra = EXTRA_OF.get(package)
    requirement = f"'kernelmaps[{extra}]'" if extra else package
    return f"{package} is not installed: pip install {requirement}"


def import_optional(package: str) -> Any:
    """Import a package that only some parts need, or say how to get it."""
    name = package.split(".")[0]
    try:
        import_module(name)
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(install_hint(name), name=name) from error


def generator(random_state: Any) -> np.random.Generator:
    """Return the NumPy Generator that a `random_state` stands for.

    Parameters
    ----------
    random_state : None, int >= 0, RandomState or Generator
        None draws fresh entropy; an int gives the same numbers every time; a RandomState or a
        Generator is drawn from, so that two calls give different numbers.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None:
        return np.random.default_rng(fresh_entropy())
    if _is_seed(random_state):
        return np.random.default_rng(int(random_state))
    raise ValueError(
        "random_state must be None, an integer >= 0, a RandomState or a Generator; got "
        f"{random_state!r}"
    )


def fresh_entropy() -> np.random.SeedSequence:
    """Return what ``random_state=None`` draws from: the one source that nobody chose."""
    return np.random.SeedSequence()


def seed_of(random_state: Any) -> int:
    """Return an integer seed for parts that take one; an integer stands for itself."""
    if _is_seed(random_state):
        return int(random_state)
    return int(generator(random_state).integers(2**31 - 1))


def _is_seed(random_state: Any) -> bool:
    is_integer = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    return is_integer and random_state >= 0
