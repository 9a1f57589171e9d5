r"""The trigonometric and the Hermite embedding (Maji 2012, section 4 and Table 1).

**Trigonometric.** {cos nπt, sin nπt} are orthogonal on [−1, 1], and so are their derivatives, all
of the same norm once divided by n^d: with Ψ_n = {cos(nπt), sin(nπt)}/n^d,

.. math:: \int_{-1}^1 (f^{(d)})^2\,dt = π^{2d}\,\|w\|^2 \qquad\text{for } f = ⟨w, Ψ⟩,

so that ridge on Ψ penalises the d-th derivative. The constant is left to the model's intercept.

These functions have f(−1) = f(1), which is right for angles and hours, and wrong for nearly all
else. Without a period the basis is sin(mπ(t + 1))/m^d for m = ¼, ¾, …: zero at −1, which the
intercept makes up for, and free at 1. The same identity holds, and as many columns reach about the
same frequency.

For Ψ(0) = 0 the paper would keep the sines, all of which vanish at the other end, too. Here it is
sin((n − ½)πt)/(n − ½)^d on [0, 1], the same basis from 0 on.

**Hermite.** The probabilists' Hermite polynomials have \int He_m He_n e^{-t²/2} dt =
\sqrt{2π}\,n!\,δ_{mn} (eq. 6) and He_n' = n He_{n−1}, so that derivatives are orthogonal, too. With

.. math:: Ψ^1_n = \frac{He_n}{\sqrt{n · n!}}, \qquad
          Ψ^2_1 = Ψ^1_1,\; Ψ^2_n = \frac{He_n}{\sqrt{n(n-1)\,n!}}

the Gram matrix of the first derivatives under the standard normal density is that of
:math:`\|w\|^2`, that of the second derivatives likewise from n = 2 on.

The range of each feature is laid on the basis' domain [−L, L], L the largest zero of He_{n+1}. It
is the smallest interval that carries any measure μ under which He_0 … He_n are orthogonal with
these norms. The n + 1 nodes of the Gauss–Hermite rule, the zeros of He_{n+1}, are one. Let another
one end at a < L; its mirror image and their mean are such measures, too, so take μ symmetric. Its
moments are those of the normal density up to 2n + 1, and q = He_{n+1}²/(L − t) has degree 2n + 1,
so that \int q dμ is −\int He_{n+1} · He_{n+1}/(t − L) φ dt = 0, as the quotient has degree n. But
q ≥ 0 for t < L: μ would live on the other n zeros, where a polynomial of degree n vanishes whose
square has a positive integral. So on a shorter interval the functions grow parallel (errata: He_1
and He_3 on [−1, 1] correlate by −0.994, and the condition number of uniform data's correlations is
1620 for n = 4, against 5 on [−L, L]), and on a longer one they grow like t^n for nothing. Inside,
they are bounded, \|Ψ^1_n\| ≤ 3.6 for n ≤ 4, whatever the tails of the data. With features divided
by their standard deviation instead, the rare large values of gradient histograms (12 deviations)
and word counts (45) have polynomials of 10^3 … 10^5, which drown all the others.

Taking the constants He_n(0) off gives Ψ(0) = 0 and leaves all derivatives as they are.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import factorial

from .._util.arguments import check_count, check_flag
from .._util.schema import array
from ..engine import Spec
from ..engine.piecewise import spec_of
from ..engine.table import AFFINE, Table
from .base import DOMAIN, AdditiveMap, differ, feature_ranges, range_of_constant, resolve_zero

# Of the variable of a spec for one of t: where all sines vanish again, at t = 2 or 4, is then
# beyond the ends within which a table has to follow them to the last digit.
_UNITS = 4


@dataclass(eq=False, repr=False)
class TrigonometricMap(AdditiveMap):
    """Sines and cosines whose squared weights penalise a derivative.

    Parameters
    ----------
    n_bases : int, default=4
        Frequencies. Each gives a cosine and a sine, or two sines: 2·n_bases columns per feature
        (n_bases with ``zero_at_zero``).
    order : {1, 2}, default=1
        Order d of the derivative that is penalised.
    domain : "auto", "data" or (low, high), default="auto"
        Range that is scaled to [−1, 1] (to [−1, 1] around 0 with ``zero_at_zero``); "auto" is the
        range of the data, for unsigned integers the smallest [0, 2^k − 1] that holds it.
    periodic : bool, default=False
        True is the paper's basis, whose functions have f(low) = f(high): for angles and hours, with
        the whole period as `domain`. False has no such condition, at as many columns (accuracy on
        8×8 digits 93.7 % instead of 88.6 %, on spambase 93.5 % instead of 93.2 %).
    zero_at_zero : bool or "auto", default="auto"
        Half-integer sines with Ψ(0) = 0, so that sparse data stay sparse. "auto": for CSR input,
        unless ``periodic=True``.
    out_of_domain : {"clip", "raise", "extrapolate"}, default="clip"
        Beyond the domain functions are constant (with a warning), refused, or continue as sines.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    domain_ : tuple of arrays
        Range of each feature.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> km.TrigonometricMap(n_bases=4).fit_transform(np.linspace(0, 1, 5)[:, None]).shape
    (5, 8)
    """

    n_bases: int = 4
    order: int = 1
    _: KW_ONLY
    domain: Any = "auto"
    periodic: bool = False
    zero_at_zero: bool | str = "auto"
    out_of_domain: str = "clip"
    n_jobs: int | None = None

    _state = AdditiveMap._state.extended({"domain_": DOMAIN})

    def _learn(self, X: Any) -> Spec:
        n = check_count(self, "n_bases", self.n_bases)
        check_order(self)
        zero = self._zero(X)
        low, high = feature_ranges(self, X, self.domain, zero)
        self.domain_ = (low, high)
        if self.periodic:
            numbers = np.repeat(np.arange(1.0, n + 1), 2)
            phase = np.tile([0.0, -np.pi / 2], n)
            shift, scale = (low + high) / 2, 2 / (high - low)
        elif zero:
            numbers = np.arange(1, n + 1) - 0.5
            phase = np.full(n, -np.pi / 2)
            shift, scale = np.zeros_like(low), 1 / np.maximum(-low, high)
        else:
            numbers = (np.arange(1, 2 * n + 1) - 0.5) / 2
            phase = np.full(2 * n, -np.pi / 2)
            shift, scale = low, 2 / (high - low)
        waves = {
            "amplitude": numbers**-self.order,
            "frequency": np.pi * numbers / _UNITS,
            "phase": phase,
        }
        ranges = {"shift": shift, "scale": _UNITS * scale}
        if self.out_of_domain != "extrapolate":
            ranges |= {"lower": low, "upper": high}
        if all((values == values[0]).all() for values in ranges.values()):
            ranges = {name: values[:1] for name, values in ranges.items()}  # shared by all features
        return Spec("waves", waves | ranges, {})

    def _zero(self, X: Any) -> bool:
        """Whether Ψ(0) = 0."""
        check_flag(self, "periodic", self.periodic)
        zero = resolve_zero(self, X)
        if self.periodic and zero and self.zero_at_zero != "auto":
            raise ValueError(
                "TrigonometricMap: periodic=True and zero_at_zero=True exclude each other; leave "
                "out one of them."
            )
        return zero and not self.periodic


def check_order(owner: Any) -> None:
    """d = 1 or 2."""
    if isinstance(owner.order, bool) or owner.order not in (1, 2):
        raise ValueError(
            f"{type(owner).__name__}: order must be 1 or 2 (the derivative that is penalised), "
            f"got {owner.order!r}."
        )


_MAX_BASES = (
    12  # uniform data's correlations have the condition number 1.7e5, fourfold with each more
)


@dataclass(eq=False, repr=False)
class HermiteMap(AdditiveMap):
    """Hermite polynomials whose squared weights penalise a derivative.

    Parameters
    ----------
    n_bases : int, default=4
        Highest degree, and columns per feature; at most 12.
    order : {1, 2}, default=1
        Order d of the derivative that is penalised.
    zero_at_zero : bool or "auto", default="auto"
        Use Ψ(x) − Ψ(0) of features that are scaled but not shifted, so that sparse data stay
        sparse. "auto": for CSR input.
    out_of_domain : {"clip", "raise", "extrapolate"}, default="clip"
        Beyond the data's range the polynomials are constant (with a warning), refused, or continue.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    center_, scale_ : ndarray
        Features are mapped as (x − center_)/scale_, which takes their range to [−L, L], L the
        largest zero of He_{n+1}; with Ψ(0) = 0 center_ is 0, and the value farthest from 0 goes to
        L or −L. A constant feature has scale 1.
    domain_ : tuple of arrays
        Range of each feature.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> km.HermiteMap(n_bases=3).fit_transform(X).shape
    (100, 6)
    """

    n_bases: int = 4
    order: int = 1
    _: KW_ONLY
    zero_at_zero: bool | str = "auto"
    out_of_domain: str = "clip"
    n_jobs: int | None = None

    _state = AdditiveMap._state.extended(
        {
            "domain_": DOMAIN,
            "center_": array("f8", "features"),
            "scale_": array("f8", "features"),
        }
    )

    def _learn(self, X: Any) -> Spec:
        n = check_count(self, "n_bases", self.n_bases)
        if n > _MAX_BASES:
            raise ValueError(
                f"HermiteMap: n_bases must be at most {_MAX_BASES}, got {n}: higher polynomials "
                "differ by more than their rounding errors. Use SplineMap for finer functions."
            )
        check_order(self)
        zero = resolve_zero(self, X)
        low, high = (np.asarray(end, dtype=np.float64) for end in self._column_range(X))
        self.domain_ = (low, high)
        # Halves first: the difference of the ends may be more than the largest number.
        self.center_ = np.zeros_like(low) if zero else low / 2 + high / 2
        reach = np.maximum(-low, high) if zero else high / 2 - low / 2
        apart = reach > 0 if zero else differ(low, high)
        self.scale_ = np.where(apart, reach / half_width(n), range_of_constant(low, high))
        keys, set_of = np.unique(
            np.stack([self.center_, self.scale_, low, high], 1), axis=0, return_inverse=True
        )
        bounded = self.out_of_domain != "extrapolate"
        table = Table.build(
            AFFINE,
            n,
            [_polynomials(n, self.order, zero)[None]],
            np.ravel(set_of),
            origin=keys[:, 0],
            resolution=1 / keys[:, 1],
            width=np.full(len(keys), n),
            clip_low=keys[:, 2] if bounded else None,
            clip_high=keys[:, 3] if bounded else None,
            shared=np.zeros(len(keys), int),
            zero_at_zero=zero,
        )
        return spec_of(table)


def half_width(n: int) -> float:
    """L: the largest zero of He_{n+1}."""
    return float(np.polynomial.hermite_e.hermegauss(n + 1)[0].max())


def _polynomials(n: int, order: int, zero: bool) -> np.ndarray:
    """coef[k, m − 1] of t^k in Ψ_m, m = 1 … n."""
    coef = np.zeros((n + 1, n))
    for m in range(1, n + 1):
        power = np.polynomial.hermite_e.herme2poly([0] * m + [1])
        norm = m * (m - 1) if order == 2 and m > 1 else m
        coef[: m + 1, m - 1] = power / np.sqrt(norm * factorial(m))
    if zero:
        coef[0] = 0.0
    return coef
