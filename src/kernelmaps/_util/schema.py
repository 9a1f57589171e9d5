"""Checks of stored values: types, shapes, ranges, and which names belong together.

What compiled loops and models read from a file, a pickle or another process is held to a stated
schema before anything uses it. A *check* is a function ``check(value, where, lengths)`` that raises
`SchemaError`; `where` names the value in messages, and `lengths` holds the lengths that names like
``"sets"`` have stood for so far, so that arrays which share a name in their shapes must agree.
Every check takes time linear in the size of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, dataclass_transform

import numpy as np

Lengths = dict[str, int]
Check = Callable[[Any, str, Lengths], None]


class SchemaError(ValueError):
    """A stored value is not what its schema asks for."""


def check_entries(
    values: Mapping[str, Any],
    required: Mapping[str, Check],
    allowed: Mapping[str, Check],
    where: str,
    lengths: Lengths | None = None,
) -> Lengths:
    """Check named values: all of `required`, any of `allowed`, and no other.

    Returns
    -------
    dict of str to int
        What the names in the shapes stand for.
    """
    lengths = {} if lengths is None else lengths
    missing = sorted(set(required) - set(values))
    if missing:
        raise SchemaError(f"{where} lacks {', '.join(map(repr, missing))}")
    checks = {**required, **allowed}
    unknown = sorted(set(values) - set(checks))
    if unknown:
        raise SchemaError(f"{where} has the unknown entries {', '.join(map(repr, unknown[:5]))}")
    for name, check in checks.items():
        if name in values:
            check(values[name], f"{where}: {name!r}", lengths)
    return lengths


@dataclass(frozen=True)
class State:
    """What the instances of a class save: names, the attributes they stand for, and checks.

    A class states it as its attribute `_state`. Files hold these entries and no other, under names
    that do not depend on how the class is written; what is not stated does not leave the process.

    Attributes
    ----------
    required, allowed : mapping of str to check
        Entries that a fitted instance must have, and may have.
    attributes : mapping of str to str
        Attributes of the entries whose name is another.
    version : int
        Raised when entries change their meaning; files of a later version are refused.
    private : bool
        Whether entries without a trailing underscore stand for attributes with a leading one: of
        an estimator, whose other public attributes are its parameters.
    """

    required: Mapping[str, Check] = field(default_factory=dict)
    allowed: Mapping[str, Check] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    version: int = 1
    private: bool = False

    def extended(
        self,
        required: Mapping[str, Check] | None = None,
        allowed: Mapping[str, Check] | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> State:
        """The state of a subclass: further entries, or some that are always there."""
        required = {**self.required, **(required or {})}
        allowed = {**self.allowed, **(allowed or {})}
        return replace(
            self,
            required=required,
            allowed={name: check for name, check in allowed.items() if name not in required},
            attributes={**self.attributes, **(attributes or {})},
        )

    def attribute(self, name: str) -> str:
        """The attribute that an entry stands for."""
        usual = f"_{name}" if self.private and not name.endswith("_") else name
        return self.attributes.get(name, usual)

    def entries_of(self, owner: Any) -> dict[str, Any]:
        """The entries of an instance; none if it is not fitted."""
        attributes = vars(owner)
        pairs = ((name, self.attribute(name)) for name in (*self.required, *self.allowed))
        return {name: attributes[attribute] for name, attribute in pairs if attribute in attributes}

    def check(self, values: Mapping[str, Any], where: str) -> None:
        """Raise SchemaError unless these are the entries of an instance."""
        check_entries(values, self.required, self.allowed, where)

    def restore(self, owner: Any, values: Mapping[str, Any]) -> None:
        """Check entries, and give them to an instance; an estimator without any is not fitted."""
        if not values and hasattr(owner, "get_params"):
            return
        self.check(values, type(owner).__name__)
        vars(owner).update({self.attribute(name): value for name, value in values.items()})


def saved(check: Check, **options: Any) -> Any:
    """A field of a :func:`record` that a file holds: what it has to be, and as `dataclasses.field`.

    A field with a default may be missing in a file.
    """
    return field(metadata={"check": check}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(saved,))
def record(cls: Any) -> Any:
    """A frozen dataclass whose fields, all made by :func:`saved`, are its state.

    What an instance keeps next to them, such as a cached property, is not pickled.
    """
    made: Any = dataclass(frozen=True)(cls)
    made.__getstate__ = lambda self: {item.name: getattr(self, item.name) for item in fields(self)}
    checks = {item.name: item.metadata["check"] for item in fields(made)}
    needed = {item.name: checks.pop(item.name) for item in fields(made) if item.default is MISSING}
    made._state = State(needed, checks)
    return made


@dataclass(frozen=True)
class array:
    """An array of stated types and shape.

    Parameters
    ----------
    dtypes : str
        Allowed types, separated by blanks: ``"f8"`` or ``"f4 f8"``.
    shape : str
        Lengths separated by blanks: a number, a name (the same length wherever it occurs in a
        schema), or ``_`` for any.
    low, high : float, optional
        Bounds of the values, both included.
    finite : bool
        Whether NaN and infinities are refused. NaN is refused in any case.
    least : int
        Smallest length of the named dimensions.
    increasing : bool
        Whether each number of a vector must be above the one before.
    """

    dtypes: str
    shape: str
    low: float | None = None
    high: float | None = None
    finite: bool = True
    least: int = 1
    increasing: bool = False

    def __call__(self, value: Any, where: str, lengths: Lengths) -> None:
        if not isinstance(value, np.ndarray):
            raise SchemaError(f"{where} must be an array, found {_short(value)}")
        if value.dtype.str[1:] not in self.dtypes.split():
            raise SchemaError(f"{where} must be of type {self.dtypes}, found {value.dtype}")
        self._check_shape(value, where, lengths)
        if value.size == 0 or value.dtype.kind == "b":
            return
        smallest, largest = value.min(), value.max()  # NaN, if there is one
        if value.dtype.kind == "f":
            if np.isnan(smallest):
                raise SchemaError(f"{where} contains NaN")
            if self.finite and not (np.isfinite(smallest) and np.isfinite(largest)):
                raise SchemaError(f"{where} must be finite, found infinity")
        _check_bounds(smallest.item(), self.low, None, where)
        _check_bounds(largest.item(), None, self.high, where)
        if self.increasing and not (value[1:] > value[:-1]).all():
            raise SchemaError(f"{where} must hold increasing numbers")

    def _check_shape(self, value: np.ndarray, where: str, lengths: Lengths) -> None:
        names = self.shape.split()
        if value.ndim != len(names):
            raise SchemaError(f"{where} must have {len(names)} dimensions, found {value.ndim}")
        for name, length in zip(names, value.shape, strict=True):
            if name == "_":
                continue
            expected = int(name) if name.isdigit() else lengths.setdefault(name, length)
            if length != expected or (not name.isdigit() and length < self.least):
                shape = ", ".join(names)
                raise SchemaError(
                    f"{where} must have the shape ({shape}) with {name} = {expected}, "
                    f"found {list(value.shape)}"
                )


@dataclass(frozen=True)
class number:
    """A finite real number (no bool) within bounds; `above` is a bound that is not included."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    finite: bool = True
    whole: bool = False

    def __call__(self, value: Any, where: str, lengths: Lengths) -> None:
        kinds = int | np.integer if self.whole else int | np.integer | float | np.floating
        if isinstance(value, bool) or not isinstance(value, kinds):
            kind = "a whole number" if self.whole else "a number"
            raise SchemaError(f"{where} must be {kind}, found {_short(value)}")
        if not -_LARGEST <= value <= _LARGEST and (self.finite or value != value):
            raise SchemaError(f"{where} must be a finite number, found {_short(value)}")
        if self.above is not None and not value > self.above:
            raise SchemaError(f"{where} must be above {self.above}, found {_short(value)}")
        _check_bounds(value, self.low, self.high, where)


def integer(low: int = 0, high: int = 2**63 - 1) -> Check:
    """A whole number (no bool) within bounds, by default from 0 to 2⁶³ − 1."""
    return number(low, high, whole=True)


@dataclass(frozen=True)
class size:
    """A whole number of at least 1 that is the length of a name in the shapes of a schema."""

    name: str

    def __call__(self, value: Any, where: str, lengths: Lengths) -> None:
        integer(1)(value, where, lengths)
        _check_length(self.name, value, where, lengths)


@dataclass(frozen=True)
class text:
    """A string; one of `choices`, if there are any."""

    choices: tuple[str, ...] = ()

    def __call__(self, value: Any, where: str, lengths: Lengths) -> None:
        if not isinstance(value, str):
            raise SchemaError(f"{where} must be a string, found {_short(value)}")
        if self.choices and value not in self.choices:
            raise SchemaError(f"{where} must be one of {self.choices}, found {_short(value)}")


@dataclass(frozen=True)
class instance:
    """An instance of a class; the class checked itself when it was made."""

    classes: tuple[type, ...] = field(default=())

    def __call__(self, value: Any, where: str, lengths: Lengths) -> None:
        if not isinstance(value, self.classes):
            names = " or ".join(cls.__name__ for cls in self.classes)
            raise SchemaError(f"{where} must be a {names}, found {_short(value)}")


@dataclass(frozen=True)
class either:
    """What at least one of several checks accepts; the message is that of the last."""

    checks: tuple[Check, ...]

    def __call__(self, value: Any, where: str, lengths: Lengths) -> None:
        for check in self.checks[:-1]:
            trial = dict(lengths)
            try:
                check(value, where, trial)
            except SchemaError:
                continue
            lengths.update(trial)
            return
        self.checks[-1](value, where, lengths)


@dataclass(frozen=True)
class many:
    """A list or tuple, each item of which passes a check; `count` names its length."""

    check: Check
    count: str = ""
    least: int = 0
    kind: type[list[Any] | tuple[Any, ...]] = list

    def __call__(self, value: Any, where: str, lengths: Lengths) -> None:
        if not isinstance(value, self.kind) or len(value) < self.least:
            raise SchemaError(f"{where} must be a {self.kind.__name__}, found {_short(value)}")
        if self.count:
            _check_length(self.count, len(value), where, lengths)
        for index, item in enumerate(value):
            self.check(item, f"{where}[{index}]", lengths)


@dataclass(frozen=True)
class pair:
    """A tuple of two values, in ascending order wherever they are numbers or arrays."""

    check: Check

    def __call__(self, value: Any, where: str, lengths: Lengths) -> None:
        if not isinstance(value, tuple) or len(value) != 2:
            raise SchemaError(f"{where} must be a pair (low, high), found {_short(value)}")
        for end in value:
            self.check(end, where, lengths)
        if np.shape(value[0]) != np.shape(value[1]) or np.any(value[0] > value[1]):
            raise SchemaError(f"{where} must be a pair with low <= high")


def several(check: Check, count: str = "", least: int = 0) -> Check:
    """A tuple, each item of which passes a check; `count` names its length."""
    return many(check, count, least, tuple)


def optional(*checks: Check) -> Check:
    """None, or what at least one of the checks accepts."""
    return either((instance((type(None),)), *checks))


def boolean(value: Any, where: str, lengths: Lengths) -> None:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise SchemaError(f"{where} must be true or false, found {_short(value)}")


def distinct_labels(value: Any, where: str, lengths: Lengths) -> None:
    """A vector of distinct labels, numbers or strings; its length is named "classes"."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "biufUO":
        raise SchemaError(f"{where} must be a vector of labels, found {_short(value)}")
    if value.dtype.kind == "O" and not all(isinstance(item, str) for item in value):
        raise SchemaError(f"{where} must hold numbers or strings")
    _check_length("classes", len(value), where, lengths)
    if len(set(value.tolist())) < len(value):
        raise SchemaError(f"{where} must be distinct labels")


def labels(value: Any, where: str, lengths: Lengths) -> None:
    """Those in ascending order."""
    distinct_labels(value, where, lengths)
    if len(value) > 1 and not (value[1:] > value[:-1]).all():
        raise SchemaError(f"{where} must be distinct labels in ascending order")


def names(value: Any, where: str, lengths: Lengths) -> None:
    """A vector of strings, one for each feature."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "UO":
        raise SchemaError(f"{where} must be a vector of strings, found {_short(value)}")
    if not all(isinstance(item, str) for item in value.tolist()):
        raise SchemaError(f"{where} must hold strings only")
    _check_length("features", len(value), where, lengths)


def anything(value: Any, where: str, lengths: Lengths) -> None:
    """Whatever a file can hold; nothing is computed from it."""


_LARGEST = float(np.finfo(np.float64).max)


def _check_length(name: str, length: int, where: str, lengths: Lengths) -> None:
    if lengths.setdefault(name, length) != length:
        raise SchemaError(f"{where} must be of {lengths[name]} {name}, found {length}")


def _check_bounds(value: Any, low: Any, high: Any, where: str) -> None:
    if low is not None and value < low:
        raise SchemaError(f"{where} must be at least {low}, found {_short(value)}")
    if high is not None and value > high:
        raise SchemaError(f"{where} must be at most {high}, found {_short(value)}")


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} {list(value.shape)}"
    if isinstance(value, int) and value.bit_length() > 256:
        return "a very large number"
    plain = isinstance(value, bool | int | float | str) or value is None
    return f"{value!r:.60}" if plain else f"a {type(value).__name__}"
