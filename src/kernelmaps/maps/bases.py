r"""Bases of functions of one feature whose squared weights are a penalty (Maji 2012).

**Splines** (section 3). B-splines Φ_1 … Φ_n of degree p on n − p intervals, and the square
difference matrices

.. math:: D_1 = \begin{pmatrix} 1 \\ -1 & 1 \\ & \ddots & \ddots \\ & & -1 & 1 \end{pmatrix},
          \qquad D_2 = D_1^2, \qquad D_0 = I.

A P-spline penalises \|D_d v\|² of f = ⟨v, Φ⟩ (eq. 3).  With v = D_d^{-1} w the penalty is \|w\|²
and f = ⟨w, Ψ⟩, Ψ = D_d^{-T} Φ (eq. 4): ridge on Ψ *is* the P-spline.  With d = 1 the kernel ⟨Ψ, Ψ⟩
at the knots is 1 + (n − 1) min(x, y) for x scaled to [0, 1].

Ψ(0) = 0, which keeps sparse data sparse, is had by Ψ(x) − Ψ(0).  (Dropping the functions that do
not vanish at 0, as the paper suggests, leaves nothing near 0 for p > 1.)  As Σ_i Φ_i = 1, this is
again linear in Φ: Ψ(x) − Ψ(0) = D_d^{-T} (I − Φ(0) 1^T) Φ(x).

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
from scipy import sparse
from scipy.interpolate import BSpline
from scipy.special import factorial

from .._util.arguments import argument_error, check_choice, check_count, check_flag
from .._util.compiling import is_interpreted
from .._util.schema import array
from .._util.sparse import dense
from ..engine import Spec
from ..engine.extent import DOMAIN, Extent
from ..engine.piecewise import spec_of, stored_table
from ..engine.table import AFFINE, Table
from .base import AdditiveMap, differ, feature_ranges, range_of_constant, resolve_zero

ORDERS = (0, 1, 2)


def difference_matrix(n: int, order: int) -> np.ndarray:
    """D_d = D_1^d of the paper: n × n, invertible."""
    return np.linalg.matrix_power(np.eye(n) - np.eye(n, k=-1), order)


@dataclass(eq=False, repr=False)
class SplineMap(AdditiveMap):
    """B-splines whose squared weights are a smoothness penalty.

    Parameters
    ----------
    n_bases : int, default=10
        Basis functions, and output columns, per feature; more than `degree`.
    degree : int, default=3
        Degree of the splines: 1 linear, 2 quadratic, 3 cubic, …
    order : {0, 1, 2}, default=1
        Order d of the differences that are penalised: 0 the weights themselves, 1 slopes,
        2 curvature (slow to train: the condition number grows with n_bases⁴).
    domain : "auto", "data" or (low, high), default="auto"
        Range of the knots. "data" is each feature's own range; "auto" is that, too, but for
        unsigned integers the smallest [0, 2^k − 1] that holds it, so that features share tables.
    zero_at_zero : bool or "auto", default="auto"
        Use Ψ(x) − Ψ(0), so that zeros of sparse data stay zeros. "auto": for CSR input.
    out_of_domain : {"clip", "raise", "extrapolate"}, default="clip"
        Beyond the knots the splines are continued as constants (with a warning), not at all, or
        along their end slopes.
    sparse_output : bool, default=False
        Give CSR also for dense input; for ``order=0``, where each value has degree + 1 non-zeros.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    domain_ : tuple of arrays
        Range of each feature.
    mix_ : ndarray of shape (sets, n_bases, n_bases)
        R with Ψ = R Φ, for all features or one for each set of features that share their knots.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.linspace(0, 1, 11)[:, None]
    >>> Z = km.SplineMap(n_bases=11, degree=1).fit_transform(X)
    >>> bool(np.allclose(Z @ Z.T, 1 + 10 * np.minimum(X, X.T)))
    True
    """

    n_bases: int = 10
    degree: int = 3
    _: KW_ONLY
    order: int = 1
    domain: Any = "auto"
    zero_at_zero: bool | str = "auto"
    out_of_domain: str = "clip"
    sparse_output: bool = False
    n_jobs: int | None = None

    _state = AdditiveMap._state.extended(
        {"domain_": DOMAIN, "mix_": array("f8", "sets bases bases")}
    )

    def _apply(self, X: Any, extent: Extent, out: np.ndarray | None = None) -> Any:
        if not self.sparse_output:
            return super()._apply(X, extent, out)
        if out is not None:
            raise ValueError("SplineMap: out= cannot be used with sparse_output=True.")
        self._check_domain(X)
        return _write_basis(self.spec_, X, self.n_jobs)

    def _learn(self, X: Any) -> Spec:
        n, p = self._check_parameters()
        zero = resolve_zero(self, X)
        low, high = feature_ranges(self, X, self.domain, zero)
        self.domain_ = (low, high)
        # Knots are even: those of features differ by their place and width alone.
        ends, set_of = np.unique(np.stack([low, high], 1), axis=0, return_inverse=True)
        block = _taps(n - p, p)
        mix = np.linalg.inv(difference_matrix(n, self.order)).T[None]
        mix_of = np.zeros(len(ends), np.int32)
        if zero:
            at_zero = [_basis_at(np.linspace(*two, n - p + 1), block, 0.0, n) for two in ends]
            unique, mix_of = np.unique(at_zero, axis=0, return_inverse=True)
            mix = np.stack([mix[0] @ (np.eye(n) - phi[:, None]) for phi in unique])
        self.mix_ = mix
        return self._spec(ends, np.ravel(set_of), block, np.ravel(mix_of), zero)

    def _spec(
        self,
        ends: np.ndarray,
        set_of: np.ndarray,
        block: np.ndarray,
        mix_of: np.ndarray,
        zero: bool,
    ) -> Spec:
        """The table of Ψ, and with it the local basis Φ that training and prediction work on."""
        n, p = self.n_bases, self.degree
        extend = self.out_of_domain == "extrapolate"
        taps = _extend_ends(block) if extend else block
        start = np.clip(np.arange(n - p + 2 * extend) - extend, 0, n - p - 1).astype(np.int32)
        stores_basis = self.order == 0 and not zero
        shared, index = np.unique(mix_of, return_inverse=True)
        dense = [taps if stores_basis else _mix(taps, start, self.mix_[m], n) for m in shared]
        low, high = ends.T
        width = (high - low) / (n - p)
        table = Table.build(
            AFFINE,
            p,
            dense,
            set_of,
            origin=low - extend * width,
            resolution=1 / width,
            width=np.full(len(ends), n),
            first=[start if stores_basis else np.zeros_like(start)] * len(dense),
            clip_low=None if extend else low,
            clip_high=None if extend else high,
            shared=np.ravel(index),
            zero_at_zero=zero,
        )
        spec = spec_of(table)
        basis = {
            "band_coef": taps[None],
            "band_first": start,
            "band_of": np.zeros(len(ends), np.int32),
            "mix": self.mix_,
            "mix_of": mix_of.astype(np.int32),
        }
        return Spec("piecewise", {**spec.arrays, **basis}, spec.numbers)

    def _check_parameters(self) -> tuple[int, int]:
        n = check_count(self, "n_bases", self.n_bases)
        p = check_count(self, "degree", self.degree, least=1)
        if n <= p:
            raise argument_error(self, "n_bases", n, f"larger than degree={p}")
        check_choice(self, "order", self.order, ORDERS)
        if self.sparse_output and (self.order != 0 or self.zero_at_zero is True):
            raise ValueError(
                "SplineMap: sparse_output=True needs order=0 without zero_at_zero=True; "
                "with other orders every column of a feature can be non-zero."
            )
        return n, p


def _taps(n_intervals: int, degree: int) -> np.ndarray:
    """coef[b, k, c]: on interval b, Φ_{b+c} = Σ_k coef[b, k, c] u^k with u in [0, 1]."""
    # Taylor's series at the left ends, where derivatives are those of the interval to the right.
    # (PPoly.from_spline calls FITPACK, which ends the process for degrees beyond 5.)
    knots = np.arange(-degree, n_intervals + degree + 1, dtype=np.float64)
    basis, starts = BSpline(knots, np.eye(n_intervals + degree), degree), np.arange(n_intervals)
    active = starts[:, None] + np.arange(degree + 1)
    coef = np.empty((n_intervals, degree + 1, degree + 1))
    for k in range(degree + 1):
        values = np.take_along_axis(basis(starts, nu=k), active, axis=1)
        coef[:, k] = values / factorial(k)
    return coef


def _extend_ends(block: np.ndarray) -> np.ndarray:
    """One more interval on either side, where the basis goes on along its slope."""
    start, stop = np.zeros_like(block[0]), np.zeros_like(block[0])
    powers = np.arange(block.shape[1])[:, None]
    slope = block[0, 1]
    start[0], start[1] = block[0, 0] - slope, slope  # at u = 1 the value of the first edge
    stop[0], stop[1] = block[-1].sum(0), (powers * block[-1]).sum(0)
    return np.concatenate([start[None], block, stop[None]])


def _basis_at(edges: np.ndarray, block: np.ndarray, x: float, n: int) -> np.ndarray:
    """Φ(x), dense."""
    b = int(np.clip(np.searchsorted(edges, x, "right") - 1, 0, len(edges) - 2))
    u = (x - edges[b]) / (edges[b + 1] - edges[b])
    phi = np.zeros(n)
    phi[b : b + block.shape[2]] = u ** np.arange(block.shape[1]) @ block[b]
    return phi


def _mix(block: np.ndarray, first_column: np.ndarray, mix: np.ndarray, n: int) -> np.ndarray:
    """Coefficients of R Φ, dense in the columns."""
    out = np.empty((*block.shape[:2], n))
    for b, start in enumerate(first_column):
        out[b] = block[b] @ mix[:, start : start + block.shape[2]].T
    return out


def _write_basis(spec: Spec, X: Any, n_jobs: int | None) -> sparse.csr_matrix:
    """CSR of the local basis: every value of X becomes degree + 1 stored columns."""
    from ..engine.apply import apply, stored_columns
    from ..engine.outputs import note_path, output_dtype

    X = dense(X)
    if is_interpreted():
        return sparse.csr_matrix(apply(spec, X))
    dtype = output_dtype(X.dtype)
    table = stored_table(spec, dtype)
    n, d = X.shape
    indptr = np.arange(n + 1, dtype=np.int64) * d
    features = np.tile(np.arange(d, dtype=np.int32), n)
    data = np.ascontiguousarray(X, dtype=dtype).ravel()
    note_path("table:basis")
    return stored_columns(table, data, features, indptr, n_jobs)


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
        check_choice(self, "order", self.order, ORDERS[1:])
        check_flag(self, "periodic", self.periodic)
        zero = resolve_zero(self, X)
        if self.periodic and zero and self.zero_at_zero != "auto":
            raise ValueError(
                "TrigonometricMap: periodic=True and zero_at_zero=True exclude each other; leave "
                "out one of them."
            )
        zero = zero and not self.periodic
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


# Uniform data's correlations have the condition number 1.7e5, fourfold with each more.
_MAX_BASES = 12


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
            words = f"at most {_MAX_BASES} (SplineMap has finer functions)"
            raise argument_error(self, "n_bases", n, words)
        check_choice(self, "order", self.order, ORDERS[1:])
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
