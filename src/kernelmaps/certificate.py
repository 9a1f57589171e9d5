"""Error bounds of maps, with their domain and the way they were obtained."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from typing import Any

from .display import html_of, two_columns
from .schema import Lengths, SchemaError, number, optional, record, saved, text


def _a_certificate(value: Any, where: str, lengths: Lengths) -> None:
    """A certificate, without one of its own."""
    if not isinstance(value, Certificate) or value.inner is not None:
        raise SchemaError(f"{where} must be a certificate of one level")


@record
class Certificate:
    """Bound on the error of a map, with its domain and the way it was obtained.

    Attributes
    ----------
    bound : float
        |⟨φ(x), φ(y)⟩ − k(x, y)| ≤ bound for one feature (times its kernel value if `error` is
        "relative"); additive kernels sum it over features. Infinite where nothing is proved.
    error : str
        "absolute", "relative", "signature" or "weighted".
    domain : str
        Where it holds, in words.
    method : str
        How it was obtained, in words.
    probability : float
        1 for a proof; less for a statement that holds with that probability.
    found : float or None
        The largest error that a search found. With a bound it shows how tight that is; without
        one it is only an estimate.
    inner : Certificate or None
        A smaller bound that holds on a part of the domain: where values are zero or lie in the
        range that the map was fitted to.
    """

    bound: float = saved(number(low=0, finite=False))
    error: str = saved(text())
    domain: str = saved(text())
    method: str = saved(text())
    probability: float = saved(number(0, 1), default=1.0)
    found: float | None = saved(optional(number(low=0, finite=False)), default=None)
    inner: Certificate | None = saved(optional(_a_certificate), default=None)

    @property
    def proved(self) -> bool:
        """Whether there is a bound at all."""
        return isfinite(self.bound)

    def scaled(self, factor: float) -> Certificate:
        """Return the certificate for the kernel in other units.

        Parameters
        ----------
        factor : float
            Factor of the kernel and of all its errors.

        Returns
        -------
        Certificate
            The same statement with all errors multiplied by `factor`.
        """
        return replace(
            self,
            bound=self.bound * factor,
            found=None if self.found is None else self.found * factor,
            inner=None if self.inner is None else self.inner.scaled(factor),
        )

    def __str__(self) -> str:
        sure = "" if self.probability == 1 else f" with probability {self.probability:g}"
        if self.proved:
            head = f"{self.error} error at most {self.bound:.3g} for {self.domain}{sure}"
        elif self.found is not None and self.found < inf:
            head = (
                f"{self.error} error of {self.found:.3g} is the largest found for {self.domain}; "
                "no bound is proved"
            )
        else:
            head = f"no bound on the {self.error} error is known for {self.domain}"
        inner = "" if self.inner is None else f"; {self.inner}"
        return f"{head} ({self.method}){inner}"

    def _repr_html_(self) -> str:
        if self.proved:
            words: dict[str, Any] = {f"{self.error} error at most": float(self.bound)}
        else:
            words = {f"largest {self.error} error found (no bound is proved)": self.found}
        words |= {
            "for": self.domain,
            "with probability": None if self.probability == 1 else float(self.probability),
            "by": self.method,
        }
        if self.inner is not None and self.inner.proved:
            words |= {"and at most": float(self.inner.bound), "for only": self.inner.domain}
        return html_of(two_columns(words, "Certificate"))
