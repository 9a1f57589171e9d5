"""What the command line can ask of a model of a table: terms, pairs, constraints, smoothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..data.kinds import PERIODS, Kind, part_name
from ..models.tables.terms import Term


@dataclass(frozen=True)
class TableOptions:
    """Options as text; None: not asked for.

    Attributes
    ----------
    terms : str
        ``"hour=periodic:24,load=linear,zip=category"``.
    interactions : str
        ``"auto"``, a number of pairs, or ``"hour:load,age:income"``.
    constraints : str
        ``"area=increasing+concave,age=convex"``.
    smoothing : str
        ``"auto"``, a number, or ``"area=100,age=10"``.
    """

    terms: str | None = None
    interactions: str | None = None
    constraints: str | None = None
    smoothing: str | None = None

    @property
    def asked(self) -> list[str]:
        """Names of the options that were given."""
        return [name for name, value in vars(self).items() if value is not None]

    def categories(self) -> list[str]:
        """Columns that are to be read as categories."""
        return [name for name, kind in _items(self.terms, "terms") if kind == "category"]

    def parameters(self, kinds: Mapping[str, Kind]) -> dict[str, Any]:
        """Parameters of an additive estimator, for columns of these kinds."""
        terms: dict[str, Term | None] = {
            part_name(name, part): Term(part_name(name, part), "periodic", period=PERIODS[part])
            for name, kind in kinds.items()
            for part in kind.parts
        }
        terms |= {name: _term(name, kind) for name, kind in _items(self.terms, "terms")}
        shapes = _items(self.constraints, "constraints")
        constraints = {name: tuple(shape.split("+")) for name, shape in shapes}
        return {
            "terms": terms or None,
            "interactions": self._interactions(),
            "constraints": constraints or None,
            "smoothing": self._smoothing(),
        }

    def _interactions(self) -> Any:
        text = self.interactions
        if text is None or text == "auto":
            return text
        if text.strip().isdecimal():
            return int(text)
        pairs = [tuple(map(str.strip, item.split(":"))) for item in text.split(",") if item.strip()]
        if not pairs or any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise ValueError(
                "interactions= must be auto, a number of pairs, or pairs of columns such as "
                f"hour:load,age:income; got {text!r}."
            )
        return pairs

    def _smoothing(self) -> Any:
        text = self.smoothing
        if text is None or text == "auto":
            return "auto"
        if "=" in text:
            return {name: _strength(value) for name, value in _items(text, "smoothing")}
        return _strength(text)


def _items(text: str | None, option: str) -> list[tuple[str, str]]:
    """Names and values between commas: ``a=b,c=d``."""
    found = []
    for item in (text or "").split(","):
        name, equals, value = (part.strip() for part in item.rpartition("="))
        if not item.strip():
            continue
        if not (equals and name and value):
            raise ValueError(f"{option}= must be COLUMN=VALUE with commas between; got {text!r}.")
        found.append((name, value))
    return found


def _term(name: str, text: str) -> Term | None:
    """``linear``, ``periodic:24``, or ``none`` to leave the column out."""
    if text == "none":
        return None
    kind, _, period = text.partition(":")
    if not period:
        return Term(name, kind)
    try:
        return Term(name, kind, period=float(period))
    except ValueError:
        raise ValueError(f"terms=: the period of {name!r} is not a number: {period!r}.") from None


def _strength(text: str) -> Any:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"smoothing= must be auto or numbers, got {text!r}.") from None
