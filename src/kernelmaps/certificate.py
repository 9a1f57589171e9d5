"""Error bounds of maps, with their domain and the way they were obtained."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from typing import Any

import numpy as np

from ._util.schema import Lengths, SchemaError, number, optional, record, saved, text

# Largest rounding error of ⟨φ(x), φ(y)⟩ that was seen, in units of ε √(k(x, x) k(y, y)), for maps
# of up to 21 columns and values from 1e-140 to 1e140: 110 (tables in float64, which follow cosines
# to 80 ε), 50 in float32 (formulas of other array libraries, whose angles are rounded).
_ROUNDING_UNITS = 512


def rounding_error(dtype: Any, n_columns: int, angle: float = 0.0) -> float:
    """Bound on the rounding error of ⟨φ(x), φ(y)⟩ of one feature, relative to √(k(x, x) k(y, y)).

    Parameters
    ----------
    dtype : float32 or float64
        Precision of φ.
    n_columns : int
        Columns of the feature: each adds a product.
    angle : float
        Largest angle ω x of its cosines, where it is not one of log x: the error of its rounding
        is that of a cosine.

    Returns
    -------
    float
        The bound.
    """
    return (_ROUNDING_UNITS + n_columns + 2 * angle) * float(np.finfo(dtype).eps)


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
        "relative"); additive kernels sum it over features. The rounding of float64 is included.
        Infinite where nothing is proved.
    error : str
        "absolute", "relative", "signature" or "weighted".
    domain : str
        Where it holds, in words.
    method : str
        How it was obtained, in words.
    probability : float
        1 for a proof; less for a statement that holds with that probability.
    found : float or None
        The largest error that was found. With a bound it shows how tight that is; without
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

    def with_rounding(self, size: float, n_columns: int, *, angle: float = 0.0) -> Certificate:
        """Return the certificate of φ as it is computed in float64.

        Parameters
        ----------
        size : float
            Largest √(k(x, x) k(y, y)) on the domain, in the units of the error.
        n_columns : int
            Columns of one feature.
        angle : float
            Largest angle of cosines of x.

        Returns
        -------
        Certificate
            The same statement with bounds that include rounding.
        """
        miss = size * rounding_error(np.float64, n_columns, angle)
        inner = (
            None if self.inner is None else self.inner.with_rounding(size, n_columns, angle=angle)
        )
        return replace(self, bound=self.bound + miss, inner=inner)

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
