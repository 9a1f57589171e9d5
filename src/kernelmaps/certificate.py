"""A bound on a map's error, with the domain where it holds and the way it was obtained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .display import html_of, two_columns
from .schema import State, number, text

__all__ = ["Certificate"]


@dataclass(frozen=True)
class Certificate:
    """What is known for sure about a map's error.

    Attributes
    ----------
    bound : float
        |⟨φ(x), φ(y)⟩ − k(x, y)| ≤ bound for one feature (times its kernel value if `error` is
        "relative"); additive kernels sum it over features.
    error : str
        "absolute" or "relative".
    domain : str
        Where it holds, in words.
    method : str
        How it was obtained, in words.
    probability : float
        1 for a proof; less for a statement that holds with that probability over the map's seed.
    """

    _state: ClassVar[State] = State(
        {
            "bound": number(low=0, finite=False),
            "error": text(),
            "domain": text(),
            "method": text(),
        },
        {"probability": number(0, 1)},
    )

    bound: float
    error: str
    domain: str
    method: str
    probability: float = 1.0

    def __str__(self) -> str:
        sure = "" if self.probability == 1 else f" with probability {self.probability:g}"
        return (
            f"{self.error} error at most {self.bound:.3g} for {self.domain}{sure} ({self.method})"
        )

    def _repr_html_(self) -> str:
        words = {
            f"{self.error} error at most": float(self.bound),
            "for": self.domain,
            "with probability": None if self.probability == 1 else float(self.probability),
            "by": self.method,
        }
        return html_of(two_columns(words, "Certificate"))
