r"""The trigonometric embedding (additive-classifiers, section 4 and Table 1).

{cos nπt, sin nπt} are orthogonal on [−1, 1], and so are their derivatives, all of the same norm
once divided by n^d: with Ψ_n = {cos(nπt), sin(nπt)}/n^d,

.. math:: \int_{-1}^1 (f^{(d)})^2\,dt = π^{2d}\,\|w\|^2 \qquad\text{for } f = ⟨w, Ψ⟩,

so that ridge on Ψ penalises the d-th derivative. The constant is left to the model's intercept.

These functions have f(−1) = f(1), which is right for angles and hours, and wrong for nearly all
else. Without a period the basis is sin(mπ(t + 1))/m^d for m = ¼, ¾, …: zero at −1, which the
intercept makes up for, and free at 1. The same identity holds, and as many columns reach about the
same frequency.

For Ψ(0) = 0 the paper would keep the sines, all of which vanish at the other end, too. Here it is
sin((n − ½)πt)/(n − ½)^d on [0, 1], the same basis from 0 on.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..arguments import check_count, check_flag
from ..engine import Spec
from ._range import feature_ranges, resolve_zero
from .base import DOMAIN, AdditiveMap

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
        self._check_out_of_domain()
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
